"""DISTINCT aggregates and grouping sets: several programs in one node.

Five of eight values are different, and scattered over 31 bits. Aggregated by a key they take the groups of key and value, and a
second program over these: that should cost little more than the groups alone.
"""
from workloads import generated

ROWS = 8_000_000
TABLE = "distinct_facts"
WHOLE = "count, 5 of 8 rows different"
GROUPED = "count by 100 keys"
BOTH = "groups of key and value"
# Milliseconds on the GPU; the engine's time for GROUPED over that for BOTH.
BAR_MS = 3
BAR_OVER_GROUPS = 1.2
QUERIES = {
    WHOLE: "SELECT count(DISTINCT x) FROM {t}",
    BOTH: "SELECT count(*) FROM (SELECT g, x FROM {t} GROUP BY g, x) q",
    GROUPED: "SELECT g, count(DISTINCT x) FROM {t} GROUP BY g",
    "sum by 100 keys": "SELECT g, sum(DISTINCT x), count(DISTINCT x) FROM {t} GROUP BY g",
    "count by 100,000 keys": "SELECT h, count(DISTINCT g) FROM {t} GROUP BY h",
    "with plain aggregates": "SELECT h, count(DISTINCT g), count(*), sum(x) FROM {t} GROUP BY h",
    "three arguments": "SELECT g, count(DISTINCT c), count(DISTINCT d), sum(DISTINCT n) FROM {t} GROUP BY g",
    "texts": "SELECT count(DISTINCT c), count(DISTINCT d) FROM {t}",
    "some of the rows": "SELECT count(DISTINCT x) FILTER (WHERE g < 50), count(*) FROM {t} WHERE h < 50000",
    "rollup": "SELECT g, h % 30, count(*), sum(x) FROM {t} GROUP BY ROLLUP (g, h % 30)",
    "cube": "SELECT g, h % 30, h % 7, count(*), sum(n) FROM {t} WHERE g < 10 GROUP BY CUBE (g, h % 30, h % 7) HAVING count(*) > 20",
}


def columns(rows):
    return [("x", "int", f"(i * 1000003 % {rows * 5 // 8}) * {2**31 // (rows * 5 // 8)}"), ("g", "int", f"{generated.mixed(3)} % 100"), ("h", "int", f"{generated.mixed(5)} % 100000"),
            ("c", "varchar(8)", f"'w' || ({generated.mixed(7)} % 50)"), ("d", "date", f"CAST('2020-01-01' AS date) + CAST({generated.mixed(11)} % 30 AS int)"),
            ("n", "decimal(12,2)", f"{generated.mixed(13)} % 1000 * 0.01")]


def run(bench):
    rows = bench.options.rows or ROWS
    ms = {}
    generated.load(bench, TABLE, columns(rows), rows)
    bench.postgres.limit = bench.options.peer_seconds
    for label, sql in QUERIES.items():
        bench.progress(f"distinct, {label}")
        sql = sql.format(t=TABLE)
        bench.check(f"distinct, {label}", sql, others=[bench.duckdb], text=True, truth=bench.parallel)
        row = bench.measure("distinct", label, sql, generated.engines(bench))
        if "gpuvm" in row["ms"]:
            ms[label] = row["ms"]["gpuvm"], row["figures"]["gpuvm"]["Engine Time"]
    bench.postgres.limit = None
    bench.table(f"distinct: {rows:,} rows", "distinct")
    if WHOLE in ms and bench.options.device == "cuda" and rows == ROWS:
        bench.bar("count(DISTINCT x), 5 M values in 8 M rows", ms[WHOLE][0], BAR_MS)
    if GROUPED in ms and BOTH in ms:
        bench.bar("count(DISTINCT x) by 100 keys, over the groups of both", ms[GROUPED][1] / ms[BOTH][1], BAR_OVER_GROUPS, "x")
