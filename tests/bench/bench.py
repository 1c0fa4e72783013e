#!/usr/bin/env python3
"""Benchmarks: PostgreSQL, DuckDB, SQLite and gpuvm on the same data, in one run.

    tests/setup/install.sh --bench && tests/setup/build.sh
    build/venv/bin/python tests/bench/bench.py WORKLOAD ... --out build/bench

workloads: papers     the papers' thirteen queries, as they are and wrapped in count(*)
           groupby    GROUP BY with 52, 10,000 and 1,000,000 groups
           breakeven  the papers' figures 2 to 4: table size, break-even, rows returned
           small      tables of 100 to 100,000 rows with gpuvm's own choice of plan
           import     gpuvm.import against reading every column once
           roundtrip  the shortest statement through gpuvmd

Times are EXPLAIN (ANALYZE, TIMING OFF)'s or the engine's own, execution only,
warm, the median of several runs. Every answer of gpuvm is compared with
PostgreSQL's, the other engines' by row counts and sums. gpuvm.require and
EXPLAIN ANALYZE's device make sure that the VM ran; what it did not run is "-".
"""
import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "setup"), os.path.join(os.path.dirname(HERE), "diff")]

import compare  # noqa: E402
from engines import DuckDB, NotRun, Postgres, SQLite, export_csv  # noqa: E402
from pgcluster import Cluster  # noqa: E402
from workloads import groupby, papers  # noqa: E402


class Bench:
    def __init__(self, options):
        self.options = options
        self.out = options.out
        os.makedirs(self.out, exist_ok=True)
        memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        self.cluster = None
        settings = dict(shared_buffers=f"{memory_mb // 4}MB", work_mem="256MB", maintenance_work_mem="512MB", max_wal_size="16GB",
                        autovacuum="off", max_worker_processes=str(options.threads + 16), max_parallel_workers=str(options.threads),
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
        self.results, self.checks, self.tables = [], [], []
        one = {"max_parallel_workers_per_gather": "0", "jit": "off"}
        many = {"max_parallel_workers_per_gather": str(options.threads), "parallel_setup_cost": "0", "parallel_tuple_cost": "0",
                "min_parallel_table_scan_size": "0", "jit": "off"}
        self.gpuvm = None
        if "gpuvm" in options.engines:
            admin = Postgres("admin", self.connect(), {})
            admin.execute("CREATE EXTENSION IF NOT EXISTS gpuvm")
            one["gpuvm.enabled"] = many["gpuvm.enabled"] = "off"
            device = options.device
            self.gpuvm = Postgres("gpuvm", self.connect(), {"gpuvm.device": device, "gpuvm.require": device, "gpuvm.force": "on",
                                                            "gpuvm.threads": str(options.threads), "jit": "off"}, device)
        self.postgres = Postgres("PostgreSQL, 1 process", self.connect(), one)
        self.parallel = Postgres(f"PostgreSQL, {options.threads} processes", self.connect(), many) if "parallel" in options.engines else None
        self.duckdb = DuckDB(options.threads) if "duckdb" in options.engines else None
        self.sqlite = SQLite(self.out) if "sqlite" in options.engines else None

    def engines(self):
        return [e for e in (self.sqlite, self.postgres, self.parallel, self.duckdb, self.gpuvm) if e]

    def progress(self, text):
        print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)

    # -- data ---------------------------------------------------------------------

    def load(self, workload, rows, table=None):
        """The workload's table in every engine, and imported."""
        table = table or workload.TABLE
        self.progress(f"loading {table}, {rows:,} rows")
        p = self.postgres
        p.execute(f"DROP TABLE IF EXISTS {table}")
        p.execute(workload.create_sql(table))
        p.execute(workload.SEED_SQL)
        p.execute(workload.load_sql(rows, table))
        p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        self.to_others(table, workload.COLUMNS)
        if self.gpuvm:
            p.execute(f"SELECT gpuvm.import('{table}')")

    def to_others(self, table, columns):
        if not (self.duckdb or self.sqlite):
            return
        path = os.path.join(self.out, f"{table}.csv")
        exact = ", ".join(f"{n}::float8" if t == "float4" else n for n, t in columns)
        export_csv(self.postgres, f"SELECT {exact} FROM {table}", path)
        for engine in (self.duckdb, self.sqlite):
            if engine:
                engine.load(table, columns, path)
        os.remove(path)

    # -- measuring ------------------------------------------------------------------

    def measure(self, workload, label, sql, engines=None, runs=None, **extra):
        """Times a query on every engine, checks the answers, and keeps the result."""
        runs = runs or self.options.runs
        row = dict(workload=workload, query=label, sql=sql, ms={}, device="", note="", **extra)
        for engine in engines or self.engines():
            if engine is None:
                continue
            try:
                rows, times, device = engine.time(sql, runs)
            except NotRun as e:
                row["note"] = str(e)
                continue
            row["ms"][engine.name] = statistics.median(times)
            if engine is self.postgres:
                row["rows"] = rows
            if engine is self.gpuvm:
                row["device"] = device
        self.results.append(row)
        return row

    def check(self, label, sql, float_sum=None):
        """gpuvm's answer is PostgreSQL's, as multisets of rows; the others' counts and sums are."""
        if self.gpuvm:
            try:
                if float_sum:
                    mine = self.gpuvm.value(sql)[0]
                    n, total, magnitude = self.postgres.value(
                        f"SELECT count({float_sum}), sum({float_sum}::float8), sum(abs({float_sum}::float8)) FROM {papers.TABLE}")
                    same = compare.sums_equal("sum float4", mine, total, magnitude, int(n))
                else:
                    same = self.gpuvm.answer(sql) == self.postgres.answer(sql)
                self.checks.append((label, "gpuvm", "equal" if same else "DIFFERENT"))
            except NotRun as e:
                self.checks.append((label, "gpuvm", f"not run: {e}"))
        if self.duckdb:
            names = [f"c{i}" for i in range(self.column_count(sql))]
            digest = ("SELECT count(*)" + "".join(f", sum(CAST({n} AS double precision))" for n in names) +
                      f" FROM ({{}}) q({', '.join(names)})")
            theirs = self.duckdb.value(digest.format(sql))
            # DuckDB sums float4 in double precision.
            ours = self.postgres.value(digest.format(sql.replace(f"sum({float_sum})", f"sum({float_sum}::float8)")))
            same = all(near(a, b) for a, b in zip(theirs, ours))
            self.checks.append((label, "DuckDB", "equal" if same else f"DIFFERENT: {theirs}, PostgreSQL {ours}"))
        if self.sqlite:
            theirs = self.sqlite.run(f"SELECT count(*) FROM ({sql}) q", 1)[2]
            ours = self.postgres.value(f"SELECT count(*) FROM ({sql}) q")[0]
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
        if self.gpuvm:
            for peer, rows_of in (("PostgreSQL, 1 process", "aggregates"), ("DuckDB", "aggregates")):
                chosen = [r for r in self.results if (r["workload"] == "papers, count(*)" or r["workload"] == "papers" and int(r["query"]) > 10)
                          and "gpuvm" in r["ms"] and peer in r["ms"]]
                if chosen:
                    ratios = [r["ms"][peer] / r["ms"]["gpuvm"] for r in chosen]
                    self.tables.append(f"gpuvm over {peer}, {rows_of} and counted filters ({len(ratios)} queries): "
                                       f"geometric mean {geometric(ratios):.1f}x, least {min(ratios):.1f}x.\n")
        self.plot_bars("papers", "papers.png")

    def floor(self, sql):
        """Time of a custom scan that only hands out as many constant rows of as many columns (tests/bench/floor)."""
        if not self.gpuvm:
            return
        columns = self.column_count(sql)
        root = os.path.dirname(os.path.dirname(HERE))
        subprocess.run(["make", "-s", "-C", root, "build/floor.so"], check=True)
        session = Postgres("constant rows", self.connect(), {"gpuvm.enabled": "off", "jit": "off"})
        session.execute(f"LOAD '{os.path.join(root, 'build', 'floor.so')}'")
        session.execute("CREATE TABLE IF NOT EXISTS gpuvm_floor (c0 int, c1 int, c2 int, c3 int)")
        session.execute(f"SET floor.rows = {self.results[-1]['rows']}")
        names = ", ".join(f"c{i}" for i in range(columns))
        self.results[-1]["ms"][session.name] = statistics.median(session.time(f"SELECT {names} FROM gpuvm_floor", self.options.runs)[1])
        session.conn.close()

    def groupby(self):
        rows = self.options.rows or groupby.ROWS
        self.load(groupby, rows)
        for label, key in groupby.KEYS.items():
            self.progress(f"groupby, {label}")
            self.check(f"groupby {label}", groupby.query(key))
            self.measure("groupby", label, groupby.query(key))
        self.table(f"groupby: {rows:,} rows, count(*), sum(int4), avg(int4)", "groupby")

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
        self.plot_curve("table size", "size", "rows in the table", "table-size.png", log=True)
        self.plot_curve("table size", "size", "rows in the table", "break-even.png", log=True, most=10_000)
        self.breakeven_size()
        for x in range(-100, 101, 10):
            query = f"SELECT id, uniformi FROM {papers.TABLE} WHERE uniformi < {x}"
            self.measure("rows returned", f"uniformi < {x}", query)
        for row in self.results:
            if row["workload"] == "rows returned":
                row["returned"] = row["rows"]
        self.table(f"Rows returned, of {sizes[-1]:,}", "rows returned")
        self.plot_curve("rows returned", "returned", "rows returned", "rows-returned.png")

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
        rows = [r for r in self.results if r["workload"] == workload]
        names = [n for n in dict.fromkeys(n for r in rows for n in r["ms"])]
        peers = [n for n in names if n != against]
        ratios_of = peers if against in names else []
        header = ["query", "rows out"] + [f"{n}, ms" for n in names] + [f"{against} over {n}" for n in ratios_of] + ["device"]
        lines = [f"### {title}\n", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        for r in rows:
            cells = [r["query"], f"{r.get('rows', 0):,}"] + [f"{r['ms'][n]:.3g}" if n in r["ms"] else "-" for n in names]
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

    def plot_bars(self, workload, name):
        if not self.gpuvm:
            return
        plt = pyplot()
        rows = [r for r in self.results if r["workload"] == workload and "gpuvm" in r["ms"]]
        peers = [n for n in dict.fromkeys(n for r in rows for n in r["ms"]) if n != "gpuvm"]
        fig, ax = plt.subplots(figsize=(9, 4))
        for i, peer in enumerate(peers):
            ax.bar([x + i * 0.8 / len(peers) for x in range(len(rows))], [r["ms"].get(peer, math.nan) / r["ms"]["gpuvm"] for r in rows],
                   width=0.8 / len(peers), label=peer)
        ax.set_xticks([x + 0.4 for x in range(len(rows))], [r["query"] for r in rows])
        ax.set(xlabel="query", ylabel="speed-up of gpuvm", yscale="log")
        ax.axhline(1, color="black", linewidth=0.5)
        ax.legend()
        fig.savefig(os.path.join(self.out, name), dpi=120, bbox_inches="tight")
        plt.close(fig)

    def plot_curve(self, workload, key, label, name, log=False, most=math.inf):
        if not self.gpuvm:
            return
        plt = pyplot()
        rows = sorted((r for r in self.results if r["workload"] == workload and "gpuvm" in r["ms"] and r[key] <= most), key=lambda r: r[key])
        fig, ax = plt.subplots(figsize=(7, 4))
        for peer in [n for n in dict.fromkeys(n for r in rows for n in r["ms"]) if n != "gpuvm"]:
            ax.plot([r[key] for r in rows], [r["ms"][peer] / r["ms"]["gpuvm"] for r in rows], marker=".", label=f"over {peer}")
        ax.axhline(1, color="black", linewidth=0.5)
        ax.set(xlabel=label, ylabel="speed-up of gpuvm", yscale="log")
        if log:
            ax.set_xscale("log")
        ax.legend()
        fig.savefig(os.path.join(self.out, name), dpi=120, bbox_inches="tight")
        plt.close(fig)

    def report(self):
        version = self.postgres.value("SELECT version()")[0].split(" on ")[0]
        head = [f"# Benchmark: {', '.join(self.options.workloads)}\n",
                f"{cpu_name()}, {os.cpu_count()} cores; {version}; threads = {self.options.threads}; "
                f"median of {self.options.runs} warm runs; gpuvm.device = {self.options.device}.\n"]
        bad = [c for c in self.checks if c[2].startswith("DIFFERENT")]
        unrun = [c for c in self.checks if c[2].startswith("not run")]
        checks = [f"Answers: {len(self.checks) - len(bad) - len(unrun)} of {len(self.checks)} comparisons equal."]
        checks += [f"- {label}, {engine}: {what}" for label, engine, what in bad + unrun]
        text = "\n".join(head + self.tables + checks) + "\n"
        with open(os.path.join(self.out, "results.md"), "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(self.out, "results.json"), "w", encoding="utf-8") as f:
            json.dump({"results": self.results, "checks": self.checks}, f, indent=1)
        print(text)
        return 1 if bad or unrun else 0

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


def pyplot():
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    return plt


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


WORKLOADS = {"papers": Bench.papers, "groupby": Bench.groupby, "breakeven": Bench.breakeven, "small": Bench.small,
             "import": Bench.import_, "roundtrip": Bench.roundtrip}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="+", choices=WORKLOADS, metavar="WORKLOAD")
    parser.add_argument("--rows", type=int, help="instead of the workload's own number")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of gpuvm, DuckDB and the parallel PostgreSQL")
    parser.add_argument("--engines", default="parallel,duckdb,sqlite,gpuvm", help="besides PostgreSQL with one process")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="for gpuvm")
    parser.add_argument("--runs", type=int, default=5, help="after one to warm up (default 5)")
    parser.add_argument("--out", default="build/bench", help="folder for results.md, results.json and the plots")
    parser.add_argument("--host", help="folder of the socket of a running server; otherwise a private cluster is made")
    options = parser.parse_args()
    options.engines = [e for e in options.engines.split(",") if e]
    bench = Bench(options)
    try:
        for name in options.workloads:
            WORKLOADS[name](bench)
        return bench.report()
    finally:
        bench.close()


if __name__ == "__main__":
    sys.exit(main())
