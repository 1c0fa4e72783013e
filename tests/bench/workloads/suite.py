"""A suite of queries that every engine can be asked: TPC-H's, TPC-DS's and the Star Schema Benchmark's.

"gpuvm" is forced and must run on --device; "gpuvm, planned" chooses its plans itself, as users have it. What PostgreSQL still runs of
a forced query is in a table of its own.
"""
import concurrent.futures
import functools
import json
import math
import os
import re

import workload
from engines import NotRun, Postgres, TooSlow


PIECE = 64 << 20


class Lines:
    """A piece of a file: the lines that begin in it, but for the file's first, which has the names."""

    def __init__(self, path, start):
        self.file = open(path, "rb")
        self.end = start + PIECE
        self.file.seek(max(0, start - 1))
        self.file.readline()

    def read(self, size):
        rest = self.end - self.file.tell()
        if rest > size:
            return self.file.read(size)
        return self.file.read(rest - 1) + self.file.readline() if rest > 0 else b""


def copy(bench, table, path, start):
    """A piece of a file into PostgreSQL, in a session of its own."""
    conn = bench.connect()
    piece = Lines(path, start)
    with piece.file, conn.cursor() as cur:
        cur.copy_expert(f"COPY {table} FROM STDIN (FORMAT csv)", piece, size=1 << 20)
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
        p.execute(f"CREATE TABLE {table} ({', '.join(workload.definitions_of(tables[table]))})")
        pieces = [(path, start) for path in paths for start in range(0, os.path.getsize(path), PIECE)]
        with concurrent.futures.ThreadPoolExecutor(bench.options.threads) as pool:
            list(pool.map(lambda piece: copy(bench, table, *piece), pieces))
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


def same(mine, theirs, nearly=1e-6):
    """DuckDB's rows and PostgreSQL's, in order but for ties: numbers nearly, texts but for blanks, which pad them."""
    def equal(a, b):
        if a is None or b is None:
            return a is None and b is None
        try:
            return math.isclose(float(str(a)), float(str(b)), rel_tol=1e-6, abs_tol=nearly)
        except ValueError:
            return "".join(str(a).split()) == "".join(str(b).split())
    def by_row(rows):
        return sorted(rows, key=lambda row: [str(value).rstrip() for value in row])
    return len(mine) == len(theirs) and any(all(len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(one, other))
                                            for one, other in ((mine, theirs), (by_row(mine), by_row(theirs))))


def answer(engines, sql, limit):
    """(rows, the engine that gave them, those that were too slow): of the first that was fast enough, if any."""
    for i, engine in enumerate(engines):
        try:
            return (engine.limited if limit else engine.execute)(sql), engine, engines[:i]
        except TooSlow:
            pass
    return [], None, engines


def check(bench, label, sql, engines, settled, expected, truth, nearly):
    """gpuvm must answer as PostgreSQL does, to the last digit; DuckDB, and gpuvm where that is the truth, nearly.

    Those that are too slow come back."""
    slow = []
    for engine in engines:
        try:
            mine = settled(engine.limited(sql))
        except TooSlow:
            slow.append(engine)
            continue
        except NotRun:
            continue		# measure() has the reason
        if not truth:
            continue
        if bench.duckdb in (truth, engine):
            equal = same(mine, expected, nearly)
        else:
            equal = sorted(mine, key=str) == sorted(expected, key=str)
        different = f"DIFFERENT: {len(mine)} rows, {truth.name} {len(expected)}; first {mine[:1]}, {expected[:1]}"
        bench.checks.append((label, engine.name, "equal" if equal else different))
    return slow


def explained(bench, engine, sql):
    """(what PostgreSQL runs of a query, ms of planning, gpuvm's programs, ms of execution)"""
    if engine.device:
        workload.set_all(engine.conn, {"gpuvm.require": "any"})
    try:
        found = engine.explain(sql, "ON")
        left = workload.left_to_postgresql(found["Plan"], bench.options.device)
        return left, found["Planning Time"], workload.programs_of(found["Plan"]), found["Execution Time"]
    finally:
        if engine.device:
            workload.set_all(engine.conn, {"gpuvm.require": engine.device})


def explain(bench, engines, row, sql):
    """Lines of the table of what runs where. TIMING, for the programs' own time, makes PostgreSQL's nodes slower."""
    lines, row["programs"] = [], {}
    for engine in engines:
        try:
            left, planning, programs, ms = explained(bench, engine, sql)
        except NotRun as e:
            lines.append(f"| {row['query']} | {engine.name} | not run: {e} | | | | |")
            continue
        if engine is bench.gpuvm:
            row["left"] = sorted(left)
        row["programs"][engine.name] = {"planning_ms": planning, "execution_ms": ms, "programs": programs}
        own = sum(program.get("engine_ms", 0) for program in programs)
        lines.append(f"| {row['query']} | {engine.name} | {', '.join(sorted(left)) or 'nothing'} | {planning:.2f} | "
                     f"{len(programs)} | {own:.3g} | {ms:.3g} |")
    return lines


def run(bench, name, title, queries, bars=lambda bench, label, ms: None, settled=lambda label, rows: rows, size=None,
        limit=None, exact=True, rounded=()):
    """Measures them; the rows of results. `settled`: of a query's rows, what is the same in every right answer.

    `limit`: seconds after which a query is given up, on every engine.
    Not `exact`: PostgreSQL is not asked, and DuckDB's answers are the truth.
    `rounded`: queries of quotients to two digits, which DuckDB computes in double precision before."""
    size = size or f"scale {bench.options.scale:g}"
    own = {"jit": "off", "gpuvm.device": bench.options.device, "max_parallel_workers_per_gather": "0",
           "gpuvm.threads": str(bench.options.threads)}
    planned = bench.gpuvm and Postgres("gpuvm, planned", bench.connect(), own)
    # With the costs that PostgreSQL has: told that processes cost nothing it joins by what they can share.
    own = {"jit": "off", "gpuvm.enabled": "off", "max_parallel_workers_per_gather": str(bench.options.threads),
           "max_parallel_workers": str(bench.options.threads)}
    parallel = bench.parallel and Postgres(bench.parallel.name, bench.connect(), own)
    postgres = [e for e in (bench.postgres, parallel) if e and exact]
    gpuvm = [e for e in (bench.gpuvm, planned) if e]
    others = [e for e in (bench.duckdb, *gpuvm) if e]
    engines = postgres + others
    truths = [parallel or bench.postgres] if exact else []
    truths += [bench.duckdb] if limit and bench.duckdb else []
    limits = {e: e.limit for e in (bench.postgres, *engines)}
    for engine in engines:
        engine.limit = limit
    bench.postgres.limit = bench.options.peer_seconds
    rows = []
    lines = [f"### {title}, {size}: what PostgreSQL runs of gpuvm's plans, and their programs' own time\n",
             "| query | plan | left to PostgreSQL | planning, ms | programs | their ms | of |", "|" + "---|" * 7]
    for label, sql in queries.items():
        bench.progress(f"{title} {label}")
        of_query = functools.partial(settled, label)
        expected, truth, slow = answer(truths, sql, limit)
        unasked = [e for e in others if e is not truth and e not in slow]
        nearly = 0.0101 if label in rounded else 1e-6
        slow = slow + check(bench, f"{title} {label}", sql, unasked, of_query, of_query(expected), truth, nearly)
        over = {e.name: 1000 * e.limit for e in slow}
        row = bench.measure(name, label, sql, [e for e in engines if e not in slow], over=over)
        rows.append(row)
        bars(bench, label, row["ms"])
        lines += explain(bench, [e for e in gpuvm if e not in slow], row, sql)
    for engine, before in limits.items():
        engine.limit = before
    bench.table(f"{title}, {size}", name)
    if bench.gpuvm:
        bench.tables.append("\n".join(lines) + "\n")
    for session in (parallel, planned):
        if session:
            session.conn.close()
    return rows


def geometric(values):
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs))


def of_gpuvm(row):
    """The forced plan's, or where that was not all on the device its own choice's."""
    return row["ms"].get("gpuvm") or row["ms"].get("gpuvm, planned")


def whole_bars(bench, title, rows):
    """The suite as a whole against DuckDB, and each query."""
    both = [(r["query"], of_gpuvm(r), r["ms"]["DuckDB"]) for r in rows if of_gpuvm(r) and "DuckDB" in r["ms"]]
    if both:
        mine, peer = sum(m for _, m, _ in both), sum(d for _, _, d in both)
        ratios = [d / m for _, m, d in both]
        mean = geometric(ratios)
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
