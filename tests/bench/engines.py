"""The engines of the bench driver: each loads the same data and times the same SQL.

time(sql, runs) gives (rows out, [execution time in ms of each warm run],
figures), where figures are what EXPLAIN ANALYZE says of gpuvm's node, the
median of the times; value(sql) the text of a one-row answer; answer(sql) a
Multiset of its rows, digest(sql) the same of their values. Slow queries run fewer times: at least twice, and then
until SLOW_SECONDS are over; what takes longer than LONG_SECONDS runs once. With a `limit` in seconds what takes longer is given up, and what takes a
large part of it runs once.
"""
import csv
import json
import os
import re
import sqlite3
import statistics
import subprocess
import threading
import time

REAL = re.compile(r"^(float|real|double)")
SLOW_SECONDS = 2.0
LONG_SECONDS = 3.0
FIGURES = ("Device", "Transfer", "Slices", "Engine Memory", "Spilled", "Passes",
           "Bytes Read", "Bytes Moved", "Engine Time", "Device Time", "VM Rows In", "VM Rows Out",
           "VM Threads", "Tablets Scanned", "Tablets Skipped", "Check Time", "Blocks Served", "Delta Blocks", "Delta Rows", "Delta Time",
           "Pairs", "Build Rows", "Build Bytes")


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


class TooSlow(NotRun):
    """It took longer than the engine's limit."""


def plan_nodes(node):
    yield node
    for child in node.get("Plans", ()):
        yield from plan_nodes(child)


class Postgres:
    """A session of the cluster with settings of its own; `device` is what its plans must name."""

    def __init__(self, name, conn, settings, device=None):
        self.name, self.conn, self.device, self.limit = name, conn, device, None
        self.joins = False  # must one node of gpuvm join all tables?
        self.measures_gpuvm = settings.get("gpuvm.enabled") != "off"
        for key, value in settings.items():
            self.execute(f"SET {key} = '{value}'")

    def execute(self, sql):
        import psycopg2
        with self.conn.cursor() as cur:
            try:
                cur.execute(sql)
            except psycopg2.Error as e:
                if e.pgcode == "57014" and self.limit:
                    raise TooSlow(f"{self.name}: more than {self.limit:g} s") from e
                if e.pgcode == "55000":
                    raise NotRun(f"{e.diag.message_primary} {e.diag.message_detail or ''}".strip()) from e
                raise
            return cur.fetchall() if cur.description else []

    def limited(self, sql):
        if not self.limit:
            return self.execute(sql)
        self.execute(f"SET statement_timeout = {int(1000 * self.limit)}")
        try:
            return self.execute(sql)
        finally:
            self.execute("SET statement_timeout = 0")

    def explain(self, sql, timing="OFF"):
        return json.loads(self.limited(f"EXPLAIN (ANALYZE, TIMING {timing}, FORMAT JSON) {sql}")[0][0])[0]

    def time(self, sql, runs):
        # Three times to warm up where that is short: the first copies to the device, the second may still choose anew.
        first = self.scan(sql)
        if self.limit and first[0] > 200 * self.limit or first[0] > 1000 * LONG_SECONDS:
            return first[1], [first[0]], first[2]
        for _ in range(2 if first[0] < 20 else 0):
            self.scan(sql)
        measured, started = [], time.monotonic()
        while len(measured) < runs and (len(measured) < 2 or time.monotonic() - started < SLOW_SECONDS):
            measured.append(self.scan(sql))
        figures = measured[-1][2]
        if figures:
            # Only with TIMING, which takes time for every row, does EXPLAIN tell the engine's.
            timed = [self.scan(sql, "ON")[2] for _ in range(3 if first[0] < 20 else 1)]
            figures.update({n: statistics.median(f[n] for f in timed) for n in ("Engine Time", "Device Time") if n in timed[0]})
        return measured[-1][1], [m[0] for m in measured], figures

    def scan(self, sql, timing="OFF"):
        """One execution: its time in ms, rows out, and gpuvm's figures."""
        plan = self.explain(sql, timing)
        scans = [n for n in plan_nodes(plan["Plan"]) if n.get("Custom Plan Provider") == "GpuVM" and n["Actual Loops"] > 0]
        devices = ",".join(sorted({str(n.get("Device", "?")) for n in scans}))
        if self.device and devices.lower() != self.device:
            why = "; ".join(str(n[key]) for n in scans for key in ("Fallback", "Device Fallback") if key in n)
            raise NotRun(f"EXPLAIN ANALYZE names the device {devices or 'of no gpuvm node'}, not {self.device}: {why}")
        if self.joins:
            others = [f"{n['Node Type']} {n.get('Relation Name', '')}".strip() for n in plan_nodes(plan["Plan"])
                      if n.get("Actual Loops", 0) > 0 and n not in scans and ("Relation Name" in n or "Join Type" in n)]
            if others or len(scans) != 1:
                raise NotRun(f"not one program: {', '.join(others) or f'{len(scans)} nodes of gpuvm'}")
        figures = {k: v for k, v in scans[0].items() if k in FIGURES} if scans else {}
        return plan["Execution Time"], int(plan["Plan"]["Actual Rows"]), figures

    def digest(self, sql):
        """Equal for equal multisets of rows, and (as good as) only for them; made by the server."""
        return self.value(f"SELECT count(*), sum(h >> 32), sum(h & 4294967295) FROM (SELECT hash_record_extended(q, 0) FROM ({sql}) q) x(h)")

    def answer(self, sql):
        """The rows as PostgreSQL writes them, to the last digit."""
        import psycopg2
        found = Multiset()
        with self.conn.cursor() as cur:
            try:
                cur.copy_expert(f"COPY ({sql}) TO STDOUT", found)
            except psycopg2.errors.ObjectNotInPrerequisiteState as e:
                raise NotRun(f"{e.diag.message_primary} {e.diag.message_detail or ''}".strip()) from e
        return found

    def value(self, sql):
        return self.limited(sql)[0]


class DuckDB:
    name = "DuckDB"
    measures_gpuvm = False
    limit = None

    def __init__(self, threads):
        import duckdb
        self.conn = duckdb.connect(config={"threads": threads})

    def load(self, table, columns, path):
        types = ", ".join(f"'{n}': '{t.upper()}'" for n, t in columns)
        self.conn.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM read_csv('{path}', header = false, "
                          f"nullstr = '', columns = {{{types}}})")

    def time(self, sql, runs):
        times, started = [], time.monotonic()
        while len(times) < runs + 1 and (len(times) < 3 or time.monotonic() - started < SLOW_SECONDS):
            report = json.loads(self.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")[0][1])
            # a bare count(*) of a table has no profile
            times.append(self.clock_ms(sql) if report.get("result") == "error" else self.execution_ms(report))
            if self.limit and times[0] > 200 * self.limit:
                return None, times, {}
        return None, times[1:], {}

    def limited(self, sql):
        return self.execute(sql)

    def execute(self, sql):
        import duckdb
        timer = threading.Timer(self.limit, self.conn.interrupt) if self.limit else None
        if timer:
            timer.start()
        try:
            return self.conn.execute(sql).fetchall()
        except (duckdb.InterruptException, RuntimeError) as e:
            if "interrupt" not in str(e).lower():
                raise
            raise TooSlow(f"{self.name}: more than {self.limit:g} s") from e
        finally:
            if timer:
                timer.cancel()

    def clock_ms(self, sql):
        started = time.perf_counter()
        self.execute(sql)
        return 1000 * (time.perf_counter() - started)

    @staticmethod
    def execution_ms(report):
        """Its own total, planning left out as PostgreSQL's Execution Time leaves it out."""
        if "query" in report:
            planning = sum(report.get(part, {}).get("total_time", 0) for part in ("planner", "optimizer", "physical_planner"))
            return 1000 * (report["query"]["total_time"] - planning)
        planning = sum(report.get(part, 0) for part in ("planner", "cumulative_optimizer_timing", "physical_planner"))
        return 1000 * (report["latency"] - planning)

    def value(self, sql):
        return [None if v is None else str(v) for v in self.execute(sql)[0]]


class SQLite:
    """SQLite in memory, its rows thrown away, as in the papers: tests/bench/sqlite_rows.c.

    build/sqlite_rows (make build/sqlite_rows) needs nothing of the machine that it is carried to.
    """

    name = "SQLite"
    measures_gpuvm = False
    RUNS = 3

    def __init__(self, folder):
        here = os.path.dirname(os.path.abspath(__file__))
        self.program = os.path.join(here, "..", "..", "build", "sqlite_rows")
        self.file = os.path.join(folder, "sqlite.db")
        if not os.path.exists(self.program):
            subprocess.run(["make", "-s", "-C", os.path.join(here, "..", ".."), "build/sqlite_rows"], check=True)
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

    def run(self, sql):
        if self.process is None:
            self.process = subprocess.Popen([self.program, self.file, str(self.RUNS)], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        times, _, rest = line.rstrip("\n").partition(" rows ")
        rows, _, value = rest.partition(" = ")
        return [float(t) for t in times.split()], int(rows), value

    def time(self, sql, runs):
        times, rows, _ = self.run(sql)
        return rows, times[1:], {}

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
