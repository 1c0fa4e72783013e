"""The engines of the bench driver: each loads the same data and times the same SQL.

time(sql) gives (rows out, [execution time in ms of each warm run], device);
value(sql) the text of a one-row answer; answer(sql) a Multiset of its rows.
"""
import csv
import json
import os
import re
import sqlite3
import subprocess
import time

REAL = re.compile(r"^(float|real|double)")


class Multiset:
    """Lines that COPY writes: equal for equal multisets, and (as good as) only for them."""

    def __init__(self):
        self.lines, self.sum = 0, 0

    def write(self, line):
        self.lines += 1
        self.sum += hash(line)

    def __eq__(self, other):
        return (self.lines, self.sum) == (other.lines, other.sum)


class NotRun(Exception):
    """gpuvm.require refused the statement: it would not have run on the VM."""


def plan_nodes(node):
    yield node
    for child in node.get("Plans", ()):
        yield from plan_nodes(child)


class Postgres:
    """A session of the cluster with settings of its own; `device` is what its plans must name."""

    def __init__(self, name, conn, settings, device=None):
        self.name, self.conn, self.device = name, conn, device
        for key, value in settings.items():
            self.execute(f"SET {key} = '{value}'")

    def execute(self, sql):
        import psycopg2
        with self.conn.cursor() as cur:
            try:
                cur.execute(sql)
            except psycopg2.Error as e:
                if e.pgcode == "55000":
                    raise NotRun(f"{e.diag.message_primary} {e.diag.message_detail or ''}".strip()) from e
                raise
            return cur.fetchall() if cur.description else []

    def explain(self, sql):
        return json.loads(self.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}")[0][0])[0]

    def time(self, sql, runs):
        times = []
        for _ in range(runs + 1):
            plan = self.explain(sql)
            times.append(plan["Execution Time"])
        scans = [n for n in plan_nodes(plan["Plan"]) if n.get("Custom Plan Provider") == "GpuVM"]
        devices = ",".join(sorted({str(n.get("Device", "?")) for n in scans}))
        if self.device and devices.lower() != self.device:
            raise NotRun(f"EXPLAIN ANALYZE names the device {devices or 'of no gpuvm node'}, not {self.device}")
        return int(plan["Plan"]["Actual Rows"]), times[1:], devices

    def answer(self, sql):
        found = Multiset()
        with self.conn.cursor() as cur:
            cur.copy_expert(f"COPY ({sql}) TO STDOUT", found)
        return found

    def value(self, sql):
        return self.execute(sql)[0]


class DuckDB:
    name = "DuckDB"

    def __init__(self, threads):
        import duckdb
        self.conn = duckdb.connect(config={"threads": threads})

    def load(self, table, columns, path):
        types = ", ".join(f"'{n}': '{t.upper()}'" for n, t in columns)
        self.conn.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM read_csv('{path}', header = false, "
                          f"nullstr = '', columns = {{{types}}})")

    def time(self, sql, runs):
        times = []
        for _ in range(runs + 1):
            report = json.loads(self.conn.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchall()[0][1])
            times.append(self.execution_ms(report))
        return None, times[1:], ""

    @staticmethod
    def execution_ms(report):
        """Its own total, planning left out as PostgreSQL's Execution Time leaves it out."""
        if "query" in report:
            planning = sum(report.get(part, {}).get("total_time", 0) for part in ("planner", "optimizer", "physical_planner"))
            return 1000 * (report["query"]["total_time"] - planning)
        planning = sum(report.get(part, 0) for part in ("planner", "cumulative_optimizer_timing", "physical_planner"))
        return 1000 * (report["latency"] - planning)

    def value(self, sql):
        return [None if v is None else str(v) for v in self.conn.execute(sql).fetchall()[0]]


class SQLite:
    """SQLite in memory, its rows thrown away, as in the papers: tests/bench/sqlite_rows.c."""

    name = "SQLite"

    def __init__(self, folder):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sqlite_rows.c")
        self.program = os.path.join(folder, "sqlite_rows")
        self.file = os.path.join(folder, "sqlite.db")
        subprocess.run(["gcc", "-O2", source, "-o", self.program, "-lsqlite3"], check=True)
        if os.path.exists(self.file):
            os.remove(self.file)
        self.process = None

    def load(self, table, columns, path):
        self.close()
        conn = sqlite3.connect(self.file)
        conn.execute("PRAGMA synchronous = off")
        conn.execute("PRAGMA journal_mode = off")
        conn.execute(f"DROP TABLE IF EXISTS {table}")
        conn.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {self.affinity(t)}' for n, t in columns)})")
        with open(path, newline="") as f:
            conn.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", csv.reader(f))
        conn.commit()
        conn.close()

    @staticmethod
    def affinity(type):
        return "REAL" if REAL.match(type) else "INTEGER"

    def run(self, sql, runs):
        if self.process is None or self.runs != runs:
            self.close()
            self.runs = runs
            self.process = subprocess.Popen([self.program, self.file, str(runs)], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        times, _, rest = line.rstrip("\n").partition(" rows ")
        rows, _, value = rest.partition(" = ")
        return [float(t) for t in times.split()], int(rows), value

    def time(self, sql, runs):
        times, rows, _ = self.run(sql, runs + 1)
        return rows, times[1:], ""

    def value(self, sql):
        # One column: the parts joined, as the program prints a single value.
        raise NotImplementedError

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def export_csv(postgres, query, path):
    """Rows as CSV for the other engines; float4 as the double that it is, so that all see the same numbers."""
    with open(path, "wb") as f, postgres.conn.cursor() as cur:
        started = time.time()
        cur.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT csv)", f)
        return time.time() - started
