"""Data changes whose scans run on the VM, and many rows on their way from results into tables and files.

A thousandth of the rows is found by a predicate of eleven operations, without an index. Every statement runs inside a transaction that is
rolled back, and PostgreSQL and gpuvm take turns; blocks that it changed are vacuumed and refreshed before the next. The rows changed and a
hash of the table, read inside the transaction, are compared. UPDATE and DELETE of a tablet table with the same rows take turns with PostgreSQL's of the heap.
"""
import time

from workloads import changing, papers

NEAR = ("(uniformf - 10) * (uniformf - 10) + (normalf5 - 3) * (normalf5 - 3) + (normalf20 - 7) * (normalf20 - 7) < 11")
HASH = "SELECT count(*), sum(h >> 32), sum(h & 4294967295) FROM (SELECT hash_record_extended(q, 0) FROM {0} q) x(h)"
STATEMENTS = {
    "UPDATE": (f"UPDATE {papers.TABLE} SET normali5 = normali5 + 1 WHERE {NEAR}", papers.TABLE),
    "DELETE": (f"DELETE FROM {papers.TABLE} WHERE {NEAR}", papers.TABLE),
    "INSERT ... SELECT": (f"INSERT INTO near_rows SELECT * FROM {papers.TABLE} WHERE {NEAR}", "near_rows"),
    "MERGE": (f"MERGE INTO near_totals t USING (SELECT uniformi, count(*) AS n, sum(normali20) AS total FROM {papers.TABLE} WHERE {NEAR} GROUP BY uniformi) s "
              "ON t.uniformi = s.uniformi WHEN MATCHED THEN UPDATE SET n = t.n + s.n, total = t.total + s.total "
              "WHEN NOT MATCHED THEN INSERT VALUES (s.uniformi, s.n, s.total)", "near_totals"),
}
SPEED_UP = {"UPDATE": 8, "DELETE": 8}
TABLETS = "tablet_test"
PAIRS = 5
MANY_PAIRS = 3

FILTER = "(normali20 + 40) > (uniformi - 10)"	# three of four rows
MANY = f"SELECT id, normali5, normali20 FROM {papers.TABLE} WHERE {FILTER}"
# Of one column, which has as many digits as a constant row's.
ONE = f"SELECT id FROM {papers.TABLE} WHERE {FILTER}"
CONSTANT = "SELECT c0, c1, c2 FROM gpuvm_floor"
AGAINST_CONSTANT = 1.1


def run(bench):
    rows = bench.options.rows or papers.ROWS
    bench.load(papers, rows)
    try:
        changes(bench, rows)
        if bench.gpuvm:
            of_tablets(bench, rows)
            many(bench)
    finally:
        # the table is not what the other workloads loaded
        bench.postgres.execute(f"COMMENT ON TABLE {papers.TABLE} IS NULL")
        bench.loaded.pop(papers.TABLE, None)


def keep(bench, label, sql, ms, rows):
    bench.results.append(dict(workload="dml", query=label, sql=sql, ms=ms, figures={}, device=bench.options.device, note="", rows=rows))


def execution(session, sql):
    """Milliseconds of the statement, without the commit."""
    return changing.undone(session, lambda: session.scan(sql)[0])


def changes(bench, rows):
    p = bench.postgres
    p.execute("DROP TABLE IF EXISTS near_rows, near_totals")
    p.execute(f"CREATE TABLE near_rows (LIKE {papers.TABLE})")
    p.execute("CREATE TABLE near_totals (uniformi int PRIMARY KEY, n bigint, total bigint)")
    p.execute("INSERT INTO near_totals SELECT i, 1, 1 FROM generate_series(-99, 0) i")
    for label, (sql, target) in STATEMENTS.items():
        bench.progress(f"dml, {label}")
        count = changing.compare(bench, f"dml, {label}", sql, HASH.format(target), [papers.TABLE])

        def measure(session):
            ms = execution(session, sql)
            changing.clean(bench, [papers.TABLE])
            return ms

        sessions = {s.name: s for s in (p, bench.gpuvm) if s}
        ms, ratios = changing.by_turns({name: lambda s=s: measure(s) for name, s in sessions.items()}, PAIRS)
        keep(bench, label, sql, ms, count)
        if label in SPEED_UP and bench.gpuvm:
            bench.bar(f"{label} of {count:,} of {rows:,} rows, over one PostgreSQL process (median of {PAIRS} pairs)", ratios[p.name], SPEED_UP[label], "x", least=True)
    bench.table(f"dml: {rows:,} rows, changes of those that a predicate without an index finds", "dml")


def of_tablets(bench, rows):
    p, columns = bench.postgres, ", ".join(f"{name} {type}" for name, type in papers.COLUMNS)
    p.execute(f"DROP FOREIGN TABLE IF EXISTS {TABLETS}")
    p.execute(f"CREATE FOREIGN TABLE {TABLETS} ({columns}) SERVER gpuvm")
    p.execute(f"INSERT INTO {TABLETS} SELECT * FROM {papers.TABLE}")
    p.execute(f"SELECT gpuvm.import('{TABLETS}')")
    for label in SPEED_UP:
        heap = STATEMENTS[label][0]
        sql = heap.replace(f" {papers.TABLE} ", f" {TABLETS} ")
        bench.progress(f"dml, {label} of a tablet table")
        found = changing.changed(p, heap, HASH.format(papers.TABLE)), changing.changed(bench.gpuvm, sql, HASH.format(TABLETS))
        bench.checks.append((f"dml, {label} of a tablet table", "gpuvm", "equal" if found[0] == found[1] else f"DIFFERENT: {found[1]}, PostgreSQL {found[0]}"))

        def of_heap():
            ms = execution(p, heap)
            changing.clean(bench, [papers.TABLE])
            return ms

        ms, ratios = changing.by_turns({p.name: of_heap, bench.gpuvm.name: lambda: execution(bench.gpuvm, sql)}, PAIRS)
        keep(bench, f"{label}, a tablet table beside a heap", sql, ms, found[0][0])
        bench.results[-1]["workload"] = "dml, a tablet table"
        bench.bar(f"{label} of {found[0][0]:,} of {rows:,} rows of a tablet table, over one PostgreSQL process on a heap (median of {PAIRS} pairs)", ratios[p.name],
                  SPEED_UP[label], "x", least=True)
    p.execute(f"DROP FOREIGN TABLE {TABLETS}")
    bench.table("dml: the same of a tablet table", "dml, a tablet table")


def many(bench):
    """As many constant rows take the same way from a slot on: what more gpuvm takes is its own."""
    count = int(bench.postgres.value(papers.counted(MANY))[0])
    constant = bench.constant_rows(count)
    forms = {"CREATE TABLE AS": ("CREATE TABLE many_rows AS {}", MANY, CONSTANT, execution),
             "INSERT ... SELECT": ("INSERT INTO many_rows {}", MANY, CONSTANT, execution),
             "COPY (query) TO, one column": ("COPY ({}) TO '/dev/null'", ONE, "SELECT c0 FROM gpuvm_floor", elapsed)}
    bench.postgres.execute("DROP TABLE IF EXISTS many_rows")
    for label, (form, mine, theirs, measure) in forms.items():
        bench.progress(f"dml, {label} of {count:,} rows")
        if label.startswith("INSERT"):
            bench.postgres.execute(f"CREATE TABLE many_rows AS {CONSTANT.replace('gpuvm_floor', 'gpuvm_floor LIMIT 0')}")
        ms, ratios = changing.by_turns({"gpuvm": lambda: measure(bench.gpuvm, form.format(mine)),
                                        constant.name: lambda: measure(constant, form.format(theirs))}, MANY_PAIRS)
        keep(bench, f"{label}, {count:,} rows", form.format(mine), ms, count)
        bench.results[-1]["workload"] = "dml, many rows"
        if label.startswith("CREATE"):
            bench.bar(f"{label} of {count:,} rows, over constant rows (median of {MANY_PAIRS} pairs)", ratios["gpuvm"], AGAINST_CONSTANT, "x")
            same_table(bench, form.format(mine))
    constant.conn.close()
    bench.table("dml: rows of a filter into a table or a file", "dml, many rows")


def elapsed(session, sql):
    started = time.perf_counter()
    session.execute(sql)
    return 1000 * (time.perf_counter() - started)


def same_table(bench, sql):
    found = [changing.changed(s, sql, HASH.format("many_rows")) for s in (bench.postgres, bench.gpuvm)]
    bench.checks.append(("dml, CREATE TABLE AS", "gpuvm", "equal" if found[0] == found[1] else f"DIFFERENT: {found[1]}, PostgreSQL {found[0]}"))
