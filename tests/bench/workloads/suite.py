"""A suite of queries that every engine can be asked: TPC-H's and the Star Schema Benchmark's.

"gpuvm" is forced and must run on --device; "gpuvm, planned" chooses its plans itself, as users have it. What PostgreSQL still runs of
a forced query is in a table of its own.
"""
import concurrent.futures
import functools
import json
import math
import re

import workload
from engines import NotRun, Postgres, TooSlow


def copy(bench, table, path):
    """A file into PostgreSQL, in a session of its own."""
    conn = bench.connect()
    with open(path, "rb") as f, conn.cursor() as cur:
        cur.copy_expert(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)", f, size=1 << 20)
    conn.close()


def load(bench, tables, table, scale, generate):
    """A table in every engine, without indexes, from the files that generate() names; what an earlier run left in PostgreSQL is used again."""
    columns = workload.columns_of(tables[table])
    what = f"scale {scale:g}, {columns}".replace("'", "")
    p = bench.postgres
    missing = p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what
    paths = generate() if missing or bench.duckdb else []
    if missing:
        bench.progress(f"loading {table} into PostgreSQL")
        p.execute(f"DROP TABLE IF EXISTS {table}")
        p.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {t} NOT NULL' for n, t in columns)})")
        with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
            list(pool.map(lambda path: copy(bench, table, path), paths))
        p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        p.execute(f"COMMENT ON TABLE {table} IS '{what}'")
    p.execute(f"ALTER TABLE {table} SET (parallel_workers = {bench.options.threads})")
    if bench.duckdb:
        bench.progress(f"loading {table} into DuckDB")
        types = ", ".join(f"'{n}': '{t}'" for n, t in columns)
        bench.duckdb.conn.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM read_csv({paths}, header = true, columns = {{{types}}})")
    if bench.gpuvm:
        bench.progress(f"importing {table}")
        p.execute(f"SELECT gpuvm.import('{table}')")
    bench.loaded[table] = what


def indexes(bench, tables, indexes):
    """Primary keys and those on foreign keys, for PostgreSQL's plans."""
    jobs = []
    for table, create in tables.items():
        key = re.search(r"(\w+) \w+ PRIMARY KEY", create) or re.search(r"PRIMARY KEY \(([\w, ]+)\)", create)
        jobs += [(table, f"{table}_pkey", f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY ({key[1]})")] if key else []
        jobs += [(table, f"{table}_{i}", f"CREATE INDEX {table}_{i} ON {table} ({columns})") for i, columns in enumerate(indexes.get(table, ()))]
    jobs = [sql for _, name, sql in jobs if bench.postgres.value(f"SELECT to_regclass('{name}')")[0] is None]
    if not jobs:
        return
    bench.progress(f"{len(jobs)} indexes")

    def make(sql):
        conn = bench.connect()
        with conn.cursor() as cur:
            cur.execute("SET maintenance_work_mem = '1GB'")
            cur.execute(sql)
        conn.close()
    # One at a time for a table: ALTER TABLE locks it. PostgreSQL sorts with workers of its own.
    by_table = {}
    for sql in jobs:
        by_table.setdefault(re.search(r"(?:TABLE|ON) (\w+)", sql)[1], []).append(sql)
    with concurrent.futures.ThreadPoolExecutor(max(1, bench.options.threads // 2)) as pool:
        list(pool.map(lambda sqls: [make(sql) for sql in sqls], by_table.values()))
    for table in by_table:
        bench.postgres.execute(f"VACUUM {table}")
        if bench.gpuvm:
            bench.postgres.execute(f"SELECT gpuvm.import('{table}')")


def same(mine, theirs):
    """DuckDB's rows and PostgreSQL's, in order but for ties: numbers nearly, texts but for what pads them."""
    def equal(a, b):
        if a is None or b is None:
            return a is None and b is None
        try:
            return math.isclose(float(str(a)), float(str(b)), rel_tol=1e-6, abs_tol=1e-6)
        except ValueError:
            return str(a).rstrip() == str(b).rstrip()
    def by_row(rows):
        return sorted(rows, key=lambda row: [str(value).rstrip() for value in row])
    return len(mine) == len(theirs) and any(all(len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(one, other))
                                            for one, other in ((mine, theirs), (by_row(mine), by_row(theirs))))


def check_gpuvm(bench, label, sql, expected, planned, settled):
    """The planner's choice must answer as PostgreSQL does, to the last digit; the forced plan where it is all on the device."""
    for engine in (bench.gpuvm, planned):
        if engine:
            try:
                bench.checks.append((label, engine.name, "equal" if sorted(settled(engine.execute(sql)), key=str) == sorted(expected, key=str) else "DIFFERENT"))
            except NotRun:
                pass		# measure() has the reason


def check_duckdb(bench, label, sql, theirs, settled):
    try:
        mine = settled(bench.duckdb.execute(sql))
    except TooSlow as e:
        bench.checks.append((label, "DuckDB", f"too slow to be compared: {e}"))
        return
    bench.checks.append((label, "DuckDB", "equal" if same(mine, theirs) else f"DIFFERENT: {len(mine)} rows, PostgreSQL {len(theirs)}; first {mine[:1]}, {theirs[:1]}"))


def left(bench, sql):
    """(what PostgreSQL runs of a forced query, ms of planning)"""
    anywhere = {"gpuvm.require": "any"}
    workload.set_all(bench.gpuvm.conn, anywhere)
    try:
        plan = json.loads(bench.gpuvm.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}")[0][0])[0]
        return workload.left_to_postgresql(plan["Plan"], bench.options.device), plan["Planning Time"]
    finally:
        workload.set_all(bench.gpuvm.conn, {"gpuvm.require": bench.options.device})


def run(bench, name, title, queries, bars=lambda bench, label, ms: None, settled=lambda label, rows: rows, size=None):
    """Measures them; the rows of results. `settled`: of a query's rows, what is the same in every right answer."""
    size = size or f"scale {bench.options.scale:g}"
    planned = bench.gpuvm and Postgres("gpuvm, planned", bench.connect(), {"jit": "off", "gpuvm.device": bench.options.device, "max_parallel_workers_per_gather": "0",
                                                                          "gpuvm.threads": str(bench.options.threads)})
    # With the costs that PostgreSQL has: told that processes cost nothing it joins by what they can share.
    parallel = bench.parallel and Postgres(bench.parallel.name, bench.connect(), {"jit": "off", "gpuvm.enabled": "off", "max_parallel_workers_per_gather": str(bench.options.threads),
                                                                                 "max_parallel_workers": str(bench.options.threads)})
    truth = parallel or bench.postgres
    engines = [e for e in (bench.postgres, parallel, bench.duckdb, bench.gpuvm, planned) if e]
    bench.postgres.limit = bench.options.peer_seconds
    rows, lines = [], ["### " + title + f", {size}: what PostgreSQL runs of the forced queries\n", "| query | left to PostgreSQL | planning, ms |", "|---|---|---|"]
    for label, sql in queries.items():
        bench.progress(f"{title} {label}")
        of_query = functools.partial(settled, label)
        expected = of_query(truth.execute(sql))
        check_gpuvm(bench, f"{title} {label}", sql, expected, planned, of_query)
        if bench.duckdb:
            check_duckdb(bench, f"{title} {label}", sql, expected, of_query)
        row = bench.measure(name, label, sql, engines)
        rows.append(row)
        bars(bench, label, row["ms"])
        if bench.gpuvm:
            try:
                found, planning = left(bench, sql)
                lines.append(f"| {label} | {', '.join(sorted(found)) or 'nothing'} | {planning:.2f} |")
                row["left"] = sorted(found)
            except NotRun as e:
                lines.append(f"| {label} | not run: {e} | |")
    bench.postgres.limit = None
    bench.table(f"{title}, {size}", name)
    if bench.gpuvm:
        bench.tables.append("\n".join(lines) + "\n")
    for session in (parallel, planned):
        if session:
            session.conn.close()
    return rows


def of_gpuvm(row):
    """The forced plan's, or where that was not all on the device its own choice's."""
    return row["ms"].get("gpuvm") or row["ms"].get("gpuvm, planned")


def whole_bars(bench, title, rows):
    """The suite as a whole against DuckDB, and each query."""
    both = [(r["query"], of_gpuvm(r), r["ms"]["DuckDB"]) for r in rows if of_gpuvm(r) and "DuckDB" in r["ms"]]
    if both:
        mine, peer = sum(m for _, m, _ in both), sum(d for _, _, d in both)
        ratios = [d / m for _, m, d in both]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        worst = min(both, key=lambda b: b[2] / b[1])
        bench.tables.append(f"{title}, {len(both)} queries: gpuvm {mine:.0f} ms, DuckDB {peer:.0f} ms; over DuckDB {mean:.2f}x in geometric mean, least {min(ratios):.2f}x ({worst[0]}).\n")
        if bench.options.device == "cuda" and bench.options.scale == 10:
            bench.bar(f"{title}, {len(both)} queries against DuckDB's time", mine / peer, 0.5, "x")
            bench.bar(f"{title}, the query slowest against DuckDB ({worst[0]})", worst[1] / worst[2], 1.5, "x")
        if bench.options.device == "cpu":
            bench.bar(f"{title} over DuckDB, geometric mean, {bench.options.threads} threads each", mean, 0.8, "x", True)
            bench.bar(f"{title} over DuckDB, the least ({worst[0]})", min(ratios), 0.33, "x", True)
    peers = [n for n in (bench.postgres.name, bench.parallel and bench.parallel.name) if n]
    slower = [r for r in rows if "gpuvm, planned" in r["ms"] and any(n in r["ms"] for n in peers)]
    if slower:
        worst = max(slower, key=lambda r: r["ms"]["gpuvm, planned"] / min(r["ms"][n] for n in peers if n in r["ms"]))
        bench.bar(f"{title}, as planned, the query slowest against PostgreSQL ({worst['query']})",
                  worst["ms"]["gpuvm, planned"] / min(worst["ms"][n] for n in peers if n in worst["ms"]), 1, "x")
