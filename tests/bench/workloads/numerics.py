"""Sums of numerics in 1 to 131,072 groups: the time of a row must not jump.

A group is the remainder of a random number, so all groups are met in scattered order. Twice the groups may take
at most twice the time, and 129 hardly more than 128, where another system falls off a cliff. That is the engine's time: what
the rest of a query takes for a group is PostgreSQL's own.
"""
from workloads import generated

ROWS = 8_000_000
TABLE = "numeric_facts"
GROUPS = tuple(sorted([2**k for k in range(18)] + [129, 100_000]))
# Answers are compared at these, and PostgreSQL is timed at two of them: it takes seconds for each.
COMPARED = (1, 129, 4096, 100_000)
TIMED = (1, 100_000)
COLUMNS = [("r", "int", generated.mixed(3)), ("price", "decimal(15,2)", f"{generated.mixed(5)} % 10000000 * 0.01"),
           ("quantity", "decimal(6,0)", f"{generated.mixed(7)} % 50"), ("rate", "decimal(4,2)", f"{generated.mixed(11)} % 11 * 0.01")]


def query(groups):
    return f"SELECT r % {groups} AS g, sum(price), sum(price * (1 - rate)), avg(quantity), count(*) FROM {TABLE} GROUP BY 1"


def run(bench):
    rows = bench.options.rows or ROWS
    generated.load(bench, TABLE, COLUMNS, rows)
    ms = {}
    for groups in GROUPS:
        bench.progress(f"numeric sums, {groups:,} groups")
        sql = query(groups)
        if groups in COMPARED:
            bench.check(f"numerics {groups:,}", sql, others=[bench.duckdb], text=True, truth=bench.parallel)
        engines = [e for e in generated.engines(bench) if groups in TIMED or e not in (bench.postgres, bench.parallel)]
        row = bench.measure("numerics", f"{groups:,} groups", sql, engines, groups=groups)
        if "gpuvm" in row["ms"]:
            ms[groups] = row["ms"]["gpuvm, engine"] = row["figures"]["gpuvm"]["Engine Time"]
    bench.table(f"numerics: {rows:,} rows, two sums and an average of numerics", "numerics")
    for groups in GROUPS:
        if groups in ms and 2 * groups in ms:
            bench.bar(f"numeric sums, {2 * groups:,} groups against {groups:,}", ms[2 * groups] / ms[groups], 2, "x")
    if 128 in ms and 129 in ms:
        bench.bar("numeric sums, 129 groups against 128", ms[129] / ms[128], 1.2, "x")
