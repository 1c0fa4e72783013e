#!/usr/bin/env python3
"""Benchmarks: PostgreSQL, DuckDB, SQLite and gpuvm on the same data, in one run.

    tests/setup/install.sh --bench && tests/setup/build.sh
    build/venv/bin/python tests/bench/bench.py WORKLOAD ... --out build/bench

workloads: papers       the papers' thirteen queries, as they are and wrapped in count(*)
           groupby      GROUP BY with one to five million groups, as it is and wrapped in count(*)
           breakeven    the papers' figures 2 to 4: table size, break-even, rows returned
           small        tables of 100 to 100,000 rows with gpuvm's own choice of plan
           import       gpuvm.import against reading every column once
           roundtrip    the shortest statement through gpuvmd
           firsttouch   a query on columns that are not on the GPU yet
           concurrency  sixteen sessions against one, their answers compared
           overload     90 heavy sessions with timeouts and cancels, and small ones beside them
           sphyraena    table 1 and figure 1 of the paper on Sphyraena
           virginian    tables 1 and 2, figures 4 to 6 of the paper on Virginian
           joins        joins, and the figures of the grid paper, in the parts that --parts names
           tpch         TPC-H's 22 queries, at --scale
           device_memory  the same on a GPU whose memory is limited to 4 and to 1.5 GB: times, and where they ran
           tpcds        TPC-DS's 103 queries, at --scale, each within --peer-seconds
           ssb          the 13 queries of the Star Schema Benchmark, at --scale
           dbmbench     DBmbench's three queries, at --scale
           clickbench   ClickBench's 43 queries over one table of 105 columns
           like         comparisons of texts without a dictionary: LIKE over TPC-H's comments of orders, at --scale
           numerics     sums of numerics in 1 to 131,072 groups
           distinct     DISTINCT aggregates and grouping sets
           spill        GROUP BY and joins within less memory than they take
           relational   the queries of He et al., filters by type, arithmetic of growing length
           order        ORDER BY with LIMIT 100 and of all rows
           changes      a table that changes: the check, changed blocks, VACUUM, and what writers pay
           dml          UPDATE, DELETE, INSERT ... SELECT and MERGE of rows that the VM finds; many rows into tables and files
           cudadb       the operations of the paper on CUDADB, over table sizes and shares of rows

Times are EXPLAIN (ANALYZE, TIMING OFF)'s or the engine's own, execution only,
warm, the median of several runs. Every answer of gpuvm is compared with
PostgreSQL's, the other engines' by row counts and sums. gpuvm.require and
EXPLAIN ANALYZE's device make sure that the VM ran; what it did not run is "-".
With --device cuda the figures are held against bars, which results.md lists.
Plots are made where matplotlib is; elsewhere by plots.py from results.json.
"""
import argparse
import csv
import hashlib
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "setup"), os.path.join(os.path.dirname(HERE), "diff")]

import compare  # noqa: E402
import plots  # noqa: E402
from engines import DuckDB, NotRun, Postgres, SQLite, TooSlow, export_csv  # noqa: E402
from pgcluster import Cluster  # noqa: E402
from workloads import (changes, changing, clickbench, concurrency, cudadb, dbmbench, device_memory, distinct, dml, figures, firsttouch, groupby, joins, like, loading, numerics, order, overload, papers,  # noqa: E402
                       relational, sessions, spill, ssb, tpcds, tpch)


class Bench:
    def __init__(self, options):
        self.options = options
        self.out = options.out
        os.makedirs(self.out, exist_ok=True)
        memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        self.cluster = None
        settings = dict(shared_buffers=f"{memory_mb // 4}MB", work_mem="256MB", maintenance_work_mem="512MB", max_wal_size="16GB",
                        autovacuum="off", max_connections="200", max_worker_processes=str(options.threads + 16), max_parallel_workers=str(options.threads),
                        max_parallel_workers_per_gather="0")
        if "gpuvm" in options.engines:
            settings["gpuvm.memory"] = f"{memory_mb // 4}MB"
        else:
            settings["shared_preload_libraries"] = ""
        if options.host:
            from pgcluster import connect
            self.connect = lambda: connect(options.host)
        else:
            self.cluster = Cluster.create("tmp_check/bench", **settings)
            self.connect = self.cluster.connect
        self.results, self.checks, self.tables, self.bars = [], [], [], []
        self.tabled = set()  # workloads that have their table
        self.known = {}  # measurements of other engines
        self.loaded = {}  # table -> what is in it, in every engine
        one = {"max_parallel_workers_per_gather": "0", "jit": "off"}
        many = {"max_parallel_workers_per_gather": str(options.threads), "max_parallel_workers": str(options.threads), "parallel_setup_cost": "0",
                "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0", "jit": "off"}
        self.gpuvm = None
        if "gpuvm" in options.engines:
            admin = Postgres("admin", self.connect(), {})
            admin.execute("CREATE EXTENSION IF NOT EXISTS gpuvm")
            one["gpuvm.enabled"] = many["gpuvm.enabled"] = "off"
            self.gpuvm = self.session("gpuvm")
            self.wait_for_device(admin)
        self.postgres = Postgres("PostgreSQL, 1 process", self.connect(), one)
        self.parallel = Postgres(f"PostgreSQL, {options.threads} processes", self.connect(), many) if "parallel" in options.engines else None
        self.duckdb = DuckDB(options.threads) if "duckdb" in options.engines else None
        self.sqlite = SQLite(self.out) if "sqlite" in options.engines else None

    def session(self, name, device=None, **settings):
        """A session of gpuvm that runs on that device (--device) or fails; settings without their "gpuvm."."""
        device = device or self.options.device
        own = {"device": device, "require": device, "force": "on", "threads": str(self.options.threads), **settings}
        return Postgres(name, self.connect(), {"jit": "off", **{f"gpuvm.{k}": v for k, v in own.items()}}, device)

    def wait_for_device(self, admin):
        """A device takes a moment after the server's start."""
        admin.execute("CREATE TABLE IF NOT EXISTS bench_ready (a int)")
        admin.execute("INSERT INTO bench_ready SELECT 1 WHERE NOT EXISTS (SELECT FROM bench_ready)")
        admin.execute("SELECT gpuvm.import('bench_ready')")
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.gpuvm.scan("SELECT count(*) FROM bench_ready")
            except NotRun as e:
                if time.monotonic() > deadline:
                    raise SystemExit(f"gpuvm does not run on the device {self.options.device}: {e}\n" +
                                     "\n".join(" | ".join(r) for r in admin.execute("SELECT * FROM gpuvm.status()"))) from e
                time.sleep(0.2)

    def engines(self):
        return [e for e in (self.sqlite, self.postgres, self.parallel, self.duckdb, self.gpuvm) if e]

    def progress(self, text):
        print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)

    # -- data ---------------------------------------------------------------------

    def load(self, workload, rows, table=None):
        """The workload's table in every engine, and imported; what an earlier run left in PostgreSQL is used again."""
        table = table or workload.TABLE
        self.progress(f"loading {table}, {rows:,} rows")
        p = self.postgres
        what = hashlib.sha256((workload.create_sql(table) + workload.SEED_SQL + workload.load_sql(rows, table)).encode()).hexdigest()
        if p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what:
            p.execute(f"DROP TABLE IF EXISTS {table}")
            p.execute(workload.create_sql(table))
            p.execute(workload.SEED_SQL)
            p.execute(workload.load_sql(rows, table))
            p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
            p.execute(f"COMMENT ON TABLE {table} IS '{what}'")
        if self.loaded.get(table) != what:
            self.to_others(table, workload)
            if self.gpuvm:
                p.execute(f"SELECT gpuvm.import('{table}')")
            self.loaded[table] = what

    def others(self, workload):
        return [e for e in (self.duckdb, self.sqlite) if e and e.name in getattr(workload, "PEERS", ("DuckDB", "SQLite"))]

    def to_others(self, table, workload):
        if not self.others(workload):
            return
        self.progress(f"copying {table} to the other engines")
        path = os.path.join(self.out, f"{table}.csv")
        exact = ", ".join(f"{n}::float8" if t == "float4" else n for n, t in workload.COLUMNS)
        export_csv(self.postgres, f"SELECT {exact} FROM {table}", path)
        for engine in self.others(workload):
            engine.load(table, workload.COLUMNS, path)
        os.remove(path)

    # -- measuring ------------------------------------------------------------------

    def measure(self, workload, label, sql, engines=None, runs=None, **extra):
        """Times a query on every engine, checks the answers, and keeps the result."""
        runs = runs or self.options.runs
        row = dict(workload=workload, query=label, sql=sql, ms={}, figures={}, device="", note="", **extra)
        for engine in engines or self.engines():
            if engine is None or engine is self.postgres and self.parallel and self.parallel.name in row.get("over", ()):
                continue
            try:
                rows, times, found = self.timed(engine, sql, runs)
            except TooSlow:
                row.setdefault("over", {})[engine.name] = 1000 * engine.limit
                continue
            except NotRun as e:
                row["note"] = str(e)
                continue
            row["ms"][engine.name] = statistics.median(times)
            row["rows"] = rows if row.get("rows") is None else row["rows"]
            if rows not in (None, row["rows"]):
                self.checks.append((f"{workload}, {label}", engine.name, f"DIFFERENT: {rows} rows, not {row['rows']}"))
            if found:
                row["figures"][engine.name] = found
                row["device"] = f"{found['Device']} {found.get('Transfer', '')}".strip()
        self.results.append(row)
        return row

    def timed(self, engine, sql, runs):
        """Workloads share queries; what does not depend on gpuvm is measured once for its table."""
        if engine.measures_gpuvm:
            return engine.time(sql, runs)
        key = (engine.name, sql, runs, tuple(sorted(self.loaded.items())))
        if key not in self.known:
            self.known[key] = engine.time(sql, runs)
        return self.known[key]

    def bar(self, what, value, limit, unit="ms", least=False):
        """A figure that must not be above (with `least`, below) its limit."""
        self.bars.append(dict(what=what, value=value, limit=limit, unit=unit, least=least, met=value >= limit if least else value <= limit))

    def check_value(self, label, sql, engine):
        """One value, in a session of its own settings."""
        try:
            found = engine.value(sql), self.postgres.value(sql)
            self.checks.append((label, engine.name, "equal" if found[0] == found[1] else f"DIFFERENT: {found[0]}, PostgreSQL {found[1]}"))
        except NotRun as e:
            self.checks.append((label, engine.name, f"not run: {e}"))

    def check(self, label, sql, float_sum=None, others=None, text=False, truth=None):
        """gpuvm's answer is PostgreSQL's, as multisets of rows, `text` to the last digit; the others' counts and sums are.

        `truth`: PostgreSQL's session that is asked, where one process would take too long."""
        truth = truth or self.postgres
        if self.gpuvm:
            try:
                if float_sum:
                    mine = self.gpuvm.value(sql)[0]
                    n, total, magnitude = truth.value(
                        f"SELECT count({float_sum}), sum({float_sum}::float8), sum(abs({float_sum}::float8)) FROM {papers.TABLE}")
                    same = compare.sums_equal("sum float4", mine, total, magnitude, int(n))
                elif text:
                    same = self.gpuvm.answer(sql) == truth.answer(sql)
                else:
                    same = self.gpuvm.digest(sql) == truth.digest(sql)
                self.checks.append((label, "gpuvm", "equal" if same else "DIFFERENT"))
            except NotRun as e:
                self.checks.append((label, "gpuvm", f"not run: {e}"))
        others = self.others(None) if others is None else others
        if self.duckdb and self.duckdb in others:
            names = [f"c{i}" for i in range(self.column_count(sql))]
            digest = ("SELECT count(*)" + "".join(f", sum(CAST({n} AS double precision))" for n in names) +
                      f" FROM ({{}}) q({', '.join(names)})")
            theirs = self.duckdb.value(digest.format(sql))
            # DuckDB sums float4 in double precision.
            ours = truth.value(digest.format(sql.replace(f"sum({float_sum})", f"sum({float_sum}::float8)")))
            same = all(near(a, b) for a, b in zip(theirs, ours))
            self.checks.append((label, "DuckDB", "equal" if same else f"DIFFERENT: {theirs}, PostgreSQL {ours}"))
        if self.sqlite and self.sqlite in others:
            theirs = self.sqlite.run(f"SELECT count(*) FROM ({sql}) q")[2]
            ours = truth.value(f"SELECT count(*) FROM ({sql}) q")[0]
            self.checks.append((label, "SQLite", "equal" if theirs == ours else f"DIFFERENT: {theirs} rows, PostgreSQL {ours}"))

    def column_count(self, sql):
        with self.postgres.conn.cursor() as cur:
            cur.execute(f"SELECT * FROM ({sql}) q LIMIT 0")
            return len(cur.description)

    # -- workloads --------------------------------------------------------------------

    def papers(self):
        rows = self.options.rows or papers.ROWS
        self.load(papers, rows)
        for number, sql in enumerate(papers.QUERIES, 1):
            self.progress(f"papers, query {number}")
            self.check(f"papers {number}", sql, papers.FLOAT_SUMS.get(number))
            self.measure("papers", str(number), sql)
            if number <= 10:
                self.floor(sql)
                self.measure("papers, count(*)", str(number), papers.counted(sql))
        self.table(f"papers: {rows:,} rows, rows returned", "papers")
        self.table(f"papers: {rows:,} rows, wrapped in count(*)", "papers, count(*)")
        chosen = [r for r in self.results if r["workload"] == "papers, count(*)" or r["workload"] == "papers" and int(r["query"]) > 10]
        for peer in ("SQLite", "PostgreSQL, 1 process", "DuckDB"):
            ratios = [r["ms"][peer] / r["ms"]["gpuvm"] for r in chosen if "gpuvm" in r["ms"] and peer in r["ms"]]
            if ratios:
                self.tables.append(f"gpuvm over {peer}, aggregates and counted filters ({len(ratios)} queries): "
                                   f"geometric mean {geometric(ratios):.1f}x, least {min(ratios):.1f}x.\n")
        if self.options.device == "cuda":
            for r in chosen:
                if "gpuvm" in r["ms"]:
                    self.bar(f"{r['workload']} {r['query']}, {rows:,} rows", r["ms"]["gpuvm"], 0.35)
            self.over_sqlite([r for r in chosen if r["workload"] == "papers"])

    def over_sqlite(self, aggregates):
        """The papers' mean weights queries by their time."""
        both = [r for r in aggregates if "SQLite" in r["ms"] and "gpuvm" in r["ms"]]
        if both:
            self.bar("aggregates, mean speed-up over SQLite", sum(r["ms"]["SQLite"] for r in both) / sum(r["ms"]["gpuvm"] for r in both), 500, "x", True)

    def floor(self, sql):
        """
        A custom scan that only hands out as many constant rows of as many columns (tests/bench/floor), by turns with the query in one session:
        what constant rows alone take differs by more than a half between sessions. Short queries take several sessions.
        """
        row = self.results[-1]
        if "gpuvm" not in row["ms"]:
            return
        names = ", ".join(f"c{i}" for i in range(self.column_count(sql)))
        short = row["ms"]["gpuvm"] < SHORT_MS
        ms, ratios = [], []
        for _ in range(FLOOR_SESSIONS if short else 1):
            mine = self.session("gpuvm")
            constant = self.constant_rows(row["rows"], mine.conn)
            found, against = changing.by_turns({"gpuvm": lambda: mine.scan(sql)[0], constant.name: lambda: constant.scan(f"SELECT {names} FROM gpuvm_floor")[0]},
                                               FLOOR_PAIRS if short else self.options.runs)
            mine.conn.close()
            ms.append(found)
            ratios.append(against["gpuvm"])
        row["ms"].update({name: statistics.median(found[name] for found in ms) for name in ms[0]})
        row["against floor"] = statistics.median(ratios)
        row["against floor, sessions"] = ratios

    def constant_rows(self, rows, conn=None):
        """A session, or another's, whose table gpuvm_floor (c0 to c3, int) is that custom scan."""
        root = os.path.dirname(os.path.dirname(HERE))
        subprocess.run(["make", "-s", "-C", root, "build/floor.so"], check=True)
        session = Postgres("constant rows", conn or self.connect(), {"jit": "off"} if conn else {"gpuvm.enabled": "off", "jit": "off"})
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            library = shutil.copy(os.path.join(root, "build", "floor.so"), folder)
            session.execute(f"LOAD '{library}'")
        session.execute("CREATE TABLE IF NOT EXISTS gpuvm_floor (c0 int, c1 int, c2 int, c3 int)")
        session.execute(f"SET floor.rows = {rows}")
        return session

    def groupby(self):
        rows = self.options.rows or groupby.ROWS
        self.load(groupby, rows)
        engines = [e for e in self.engines() if e is not self.sqlite]
        for groups, key in groupby.KEYS.items():
            self.progress(f"groupby, {groups:,} groups")
            counted = papers.counted(groupby.query(key))
            self.check(f"groupby {groups:,}", groupby.query(key), others=[self.duckdb], text=True)
            self.check(f"groupby {groups:,}, count(*)", counted, others=[])
            if groups in groupby.RETURNED:
                self.measure("groupby", f"{groups:,} groups", groupby.query(key), engines, groups=groups)
            self.measure("groupby, count(*)", f"{groups:,} groups", counted, engines, groups=groups)
        self.table(f"groupby: {rows:,} rows, count(*), sum(int4), avg(int4)", "groupby")
        self.table(f"groupby: {rows:,} rows, wrapped in count(*)", "groupby, count(*)")
        if self.options.device == "cuda":
            self.groupby_bars()

    def groupby_bars(self):
        ms = {r["groups"]: r["ms"]["gpuvm"] for r in self.results if r["workload"] == "groupby, count(*)" and "gpuvm" in r["ms"]}
        for groups, limit in groupby.BARS.items():
            if groups in ms:
                self.bar(f"{groups:,} groups, counted", ms[groups], limit)
        for groups in ms:
            if 2 * groups in ms:
                self.bar(f"{2 * groups:,} groups against {groups:,}", ms[2 * groups] / ms[groups], 2, "x")

    def breakeven(self):
        """The papers' figures: 2 and 3 over table sizes, 4 over rows returned."""
        top = self.options.rows or papers.ROWS
        sql = "SELECT id, uniformi FROM {0} WHERE uniformi < 0"
        sizes = [n for n in (100, 200, 350, 500, 700, 1000, 1300, 1700, 2500, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
                             1_000_000, 2_000_000, 4_000_000, 8_000_000) if n <= top]
        for size in sizes:
            self.load(papers, size)
            self.check(f"breakeven {size}", sql.format(papers.TABLE))
            self.measure("table size", f"{size:,}", sql.format(papers.TABLE), size=size, runs=self.options.runs if size > 100_000 else 41)
        self.table("Table size: SELECT id, uniformi WHERE uniformi < 0", "table size")
        self.breakeven_size()
        for x in range(-100, 101, 10):
            query = f"SELECT id, uniformi FROM {papers.TABLE} WHERE uniformi < {x}"
            row = self.measure("rows returned", f"uniformi < {x}", query)
            row["returned"] = row["rows"]
        self.table(f"Rows returned, of {sizes[-1]:,}", "rows returned")

    def breakeven_size(self):
        """The size from which on gpuvm was no slower than a peer at any larger size measured."""
        for peer in ("SQLite", "PostgreSQL, 1 process", "DuckDB"):
            rows = sorted((r for r in self.results if r["workload"] == "table size" and peer in r["ms"] and "gpuvm" in r["ms"]),
                          key=lambda r: -r["size"])
            size = None
            for row in rows:
                if row["ms"]["gpuvm"] > row["ms"][peer]:
                    break
                size = row["size"]
            if size:
                self.tables.append(f"gpuvm is no slower than {peer} from {size:,} rows on (of the sizes measured).\n")

    def small(self):
        """gpuvm chooses its plan itself: never slower by more than 20% + 0.2 ms."""
        if not self.gpuvm:
            return
        choosing = Postgres("gpuvm, its choice", self.connect(), {"gpuvm.device": self.options.device, "gpuvm.threads": str(self.options.threads),
                                                                 "jit": "off", "max_parallel_workers_per_gather": "0"})
        late = 0
        for size in (100, 1000, 10_000, 100_000):
            self.load(papers, size)
            for number, sql in enumerate(papers.QUERIES, 1):
                for form, text in (("", sql), (" count(*)", papers.counted(sql))):
                    row = self.measure("small", f"{number}{form}, {size:,} rows", text, engines=[self.postgres, choosing], runs=15)
                    a, b = row["ms"][self.postgres.name], row["ms"][choosing.name]
                    if b > 1.2 * a + 0.2:
                        late += 1
                        row["note"] = "slower than 1.2 x PostgreSQL + 0.2 ms"
        self.table("small tables, gpuvm's own choice of plan", "small", against="gpuvm, its choice")
        self.tables.append(f"Slower than 1.2 x PostgreSQL + 0.2 ms: {late}.\n")

    def import_(self):
        """Import (the vacuum before it) against one process reading every column."""
        if not self.gpuvm:
            return
        rows = self.options.rows or papers.ROWS
        self.load(papers, rows)
        columns = ", ".join(f"max({n})" for n, _ in papers.COLUMNS)
        scan = statistics.median(self.postgres.time(f"SELECT {columns} FROM {papers.TABLE}", self.options.runs)[1])
        times = []
        for _ in range(self.options.runs):
            self.postgres.execute(f"SELECT gpuvm.release('{papers.TABLE}')")
            started = time.perf_counter()
            self.postgres.execute(f"SELECT gpuvm.import('{papers.TABLE}', vacuum => false)")
            times.append(1000 * (time.perf_counter() - started))
        self.results.append(dict(workload="import", query=f"{rows:,} rows, 7 columns", ms={"PostgreSQL, 1 process": scan, "gpuvm": statistics.median(times)},
                                 device="", note="", rows=rows, sql=f"SELECT {columns}"))
        self.table("import, against SELECT max(c1), ..., max(c7)", "import")

    def roundtrip(self):
        """The empty program and the shortest statement, from backend to gpuvmd and back."""
        if not self.gpuvm:
            return
        self.postgres.execute("DROP TABLE IF EXISTS one_row")
        self.postgres.execute("CREATE TABLE one_row (a int)")
        self.postgres.execute("INSERT INTO one_row VALUES (1)")
        self.postgres.execute("SELECT gpuvm.import('one_row')")
        lines = ["### roundtrip, microseconds\n", "| what | gap between requests | p50 | p90 | p99 |", "|---|---|---|---|---|"]
        for gap_ms, count in ((0, 1000), (1, 500), (10, 200), (90, 50)):
            times = []
            for _ in range(count):
                time.sleep(gap_ms / 1000)
                times.append(float(self.gpuvm.execute("SELECT gpuvm.ping()")[0][0]))
            lines.append(self.percentiles("the empty program", f"{gap_ms} ms", times))
        _, times, _ = self.gpuvm.time("SELECT count(*) FROM one_row", 1000)
        lines.append(self.percentiles("execution of SELECT count(*) of one row", "0 ms", [1000 * t for t in times]))
        self.tables.append("\n".join(lines) + "\n")

    def percentiles(self, what, gap, times):
        times.sort()
        p50, p90, p99 = (times[int(len(times) * p / 100)] for p in (50, 90, 99))
        self.results.append(dict(workload="roundtrip", query=f"{what}, gap {gap}", sql="", ms={"p50": p50 / 1000, "p90": p90 / 1000, "p99": p99 / 1000},
                                 device=self.options.device, note="", rows=1))
        return f"| {what} | {gap} | {p50:.1f} | {p90:.1f} | {p99:.1f} |"

    # -- output -----------------------------------------------------------------------

    def table(self, title, workload, against="gpuvm"):
        self.tabled.add(workload)
        rows = [r for r in self.results if r["workload"] == workload]
        names = [n for n in dict.fromkeys(n for r in rows for n in (*r["ms"], *r.get("over", ())))]
        peers = [n for n in names if n != against]
        ratios_of = peers if against in names else []
        header = ["query", "rows out"] + [f"{n}, ms" for n in names] + [f"{against} over {n}" for n in ratios_of] + ["device"]
        lines = [f"### {title}\n", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        for r in rows:
            over = r.get("over", {})
            cells = [r["query"], f"{r.get('rows') or 0:,}"]
            cells += [f"{r['ms'][n]:.3g}" if n in r["ms"] else f"over {over[n]:,.0f}" if n in over else "-" for n in names]
            cells += [f"{r['ms'][n] / r['ms'][against]:.2f}x" if n in r["ms"] and against in r["ms"] else "-" for n in ratios_of]
            lines.append("| " + " | ".join(cells + [r["device"] or r["note"] or ""]) + " |")
        if ratios_of and len(rows) > 1:
            means = []
            for n in ratios_of:
                ratios = [r["ms"][n] / r["ms"][against] for r in rows if n in r["ms"] and against in r["ms"]]
                if ratios:
                    means.append(f"{geometric(ratios):.1f}x over {n}")
            lines.append("\nGeometric mean: " + ", ".join(means) + ".")
        self.tables.append("\n".join(lines) + "\n")

    def report(self):
        version = self.postgres.value("SELECT version()")[0].split(" on ")[0]
        head = [f"# Benchmark: {', '.join(self.options.workloads)}\n",
                f"{cpu_name()}, {os.cpu_count()} cores; {version}; threads = {self.options.threads}; "
                f"median of {self.options.runs} warm runs; gpuvm.device = {self.options.device}.\n"]
        bad = [c for c in self.checks if c[2].startswith("DIFFERENT")]
        unrun = [c for c in self.checks if c[2].startswith("not run")]
        checks = [f"Answers: {len(self.checks) - len(bad) - len(unrun)} of {len(self.checks)} comparisons equal."]
        checks += [f"- {label}, {engine}: {what}" for label, engine, what in bad + unrun]
        text = "\n".join(head + self.tables + self.bar_table() + checks) + "\n"
        with open(os.path.join(self.out, "results.md"), "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(self.out, "results.json"), "w", encoding="utf-8") as f:
            json.dump({"device": self.options.device, "results": self.results, "checks": self.checks, "bars": self.bars}, f, indent=1)
        with open(os.path.join(self.out, "results.csv"), "w", encoding="utf-8", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(("workload", "query", "engine", "ms", "rows", "device", "note"))
            for r in self.results:
                device = {e: found.get("Device", "") for e, found in r["figures"].items()} if "figures" in r else {}
                writer.writerows((r["workload"], r["query"], e, f"{ms:.4f}", r.get("rows", ""), device.get(e, ""), r["note"]) for e, ms in r["ms"].items())
        print(text, flush=True)
        plots.draw(self.out, self.out)
        return 1 if bad or unrun else 0

    def bar_table(self):
        if not self.bars:
            return []
        lines = ["### Bars\n", "| what | measured | bar | |", "|---|---|---|---|"]
        for b in self.bars:
            lines.append(f"| {b['what']} | {b['value']:.3g} {b['unit']} | {'at least' if b['least'] else 'at most'} {b['limit']:.3g} {b['unit']} | "
                         f"{'met' if b['met'] else '**missed**'} |")
        return ["\n".join(lines) + "\n"]

    def close(self):
        if self.sqlite:
            self.sqlite.close()
        if self.cluster:
            self.cluster.drop()


def near(a, b):
    if a is None or b is None:
        return a is None and b is None
    return math.isclose(float(a), float(b), rel_tol=1e-6, abs_tol=1e-6)


def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


# Constant rows by turns: the pairs and sessions of queries that take less than this.
SHORT_MS = 5
FLOOR_PAIRS = 41
FLOOR_SESSIONS = 5

WORKLOADS = {"papers": Bench.papers, "groupby": Bench.groupby, "breakeven": Bench.breakeven, "small": Bench.small,
             "import": Bench.import_, "roundtrip": Bench.roundtrip, "firsttouch": firsttouch.run, "concurrency": concurrency.run, "overload": overload.run, "sessions": sessions.run,
             "sphyraena": figures.sphyraena, "virginian": figures.virginian, "joins": joins.run, "changes": changes.run,
             "tpch": tpch.run, "device_memory": device_memory.run, "tpcds": tpcds.run, "ssb": ssb.run, "dbmbench": dbmbench.run, "clickbench": clickbench.run, "like": like.run, "numerics": numerics.run, "distinct": distinct.run, "relational": relational.run, "order": order.run, "spill": spill.run,
             "dml": dml.run, "cudadb": cudadb.run, "loading": loading.run}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="+", choices=WORKLOADS, metavar="WORKLOAD")
    parser.add_argument("--rows", type=int, help="instead of the workload's own number")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of gpuvm, DuckDB and the parallel PostgreSQL")
    parser.add_argument("--engines", default="parallel,duckdb,sqlite,gpuvm", help="besides PostgreSQL with one process")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="for gpuvm")
    parser.add_argument("--runs", type=int, default=5, help="at most, after those to warm up (default 5); at least two")
    parser.add_argument("--parts", default=",".join(joins.PARTS), help="of the workload joins (default %(default)s)")
    parser.add_argument("--queries", help="of tpcds: these, as Q1,Q6; of tpch: these, over no other tables than theirs, without indexes")
    parser.add_argument("--peer-seconds", type=float, default=10, help="after which a peer's join is given up, and any engine's query of tpcds (default %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="of the rows in joins (0.01 tries everything), or TPC-H's, TPC-DS's, SSB's and DBmbench's")
    parser.add_argument("--pairs", type=int, default=10, help="of pgbench runs, in `changes`")
    parser.add_argument("--seconds", type=int, default=60, help="of each of those runs")
    parser.add_argument("--out", default="build/bench", help="folder for results.md, results.json and the plots")
    parser.add_argument("--host", help="folder of the socket of a running server; otherwise a private cluster is made")
    options = parser.parse_args()
    options.engines = [e for e in options.engines.split(",") if e]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bench = Bench(options)
    try:
        for name in options.workloads:
            WORKLOADS[name](bench)
        return bench.report()
    except BaseException:
        # What there is, for whoever set the time limit.
        for workload in dict.fromkeys(r["workload"] for r in bench.results if r["ms"] and r["workload"] not in bench.tabled):
            bench.table(f"{workload} (not finished)", workload)
        bench.report()
        raise
    finally:
        bench.close()


if __name__ == "__main__":
    sys.exit(main())
