"""Texts that are compared row by row: TPC-H's comments of orders, at --scale, on data by tpcgen-cli.

Nearly every comment is different from all others: from scale 1 on there is no dictionary, and each one is looked at. The pattern of Q13 is what
the bars are for; the others are easier (a prefix, a value) or harder (two literals that are frequent, single characters).
"""
from workloads import generated, tpch

TABLE = "orders"
CONDITIONS = {
    "special requests": "o_comment LIKE '%special%requests%'",
    "not special requests": "o_comment NOT LIKE '%special%requests%'",
    "frequent literals": "o_comment LIKE '%the%ly%'",
    "single characters": "o_comment LIKE '%r_quest_ %'",
    "a rare literal": "o_comment LIKE '%Customer%'",
    "prefix": "o_comment LIKE 'furiously%'",
    "value": "o_comment = 'furiously special requests'",
    "either": "o_comment LIKE '%pinto%' OR o_comment LIKE '%instructions' OR o_totalprice < 1000",
}
ROWS_OUT = "SELECT o_orderkey, o_comment FROM orders WHERE o_comment LIKE '%special%requests%' AND o_totalprice > 300000"
BAR = "special requests"
# Milliseconds on the GPU at scale 10; on the CPU so many times as fast as DuckDB.
BAR_MS = 10
OVER_DUCKDB = 1


def run(bench):
    scale = bench.options.scale
    tpch.load(bench, scale, TABLE)
    if bench.gpuvm:
        program = bench.gpuvm.execute(f"SELECT gpuvm.disassemble($$SELECT count(*) FROM {TABLE} WHERE o_comment = 'x'$$)")
        if not any("TextMatch" in row[0] for row in program):
            raise SystemExit("the comments are in a dictionary: --scale 1 or more")
    bench.postgres.limit = bench.options.peer_seconds
    for label, condition in CONDITIONS.items():
        bench.progress(f"LIKE, {label}")
        sql = f"SELECT count(*) FROM {TABLE} WHERE {condition}"
        bench.check(f"like, {label}", sql, others=[bench.duckdb], text=True, truth=bench.parallel)
        row = bench.measure("like", label, sql, generated.engines(bench))
        mine, peer = row["ms"].get("gpuvm"), row["ms"].get("DuckDB")
        if mine and label == BAR and bench.options.device == "cuda" and scale == 10:
            bench.bar("LIKE '%special%requests%', scale 10", mine, BAR_MS)
        if mine and peer and label == BAR and bench.options.device == "cpu":
            bench.bar(f"LIKE '%special%requests%' over DuckDB, {bench.options.threads} threads each", peer / mine, OVER_DUCKDB, "x", True)
    bench.check("like, rows", ROWS_OUT, others=[], text=True, truth=bench.parallel)
    bench.measure("like", "rows", ROWS_OUT, generated.engines(bench))
    bench.postgres.limit = None
    bench.table(f"Comparisons of texts, TPC-H's orders at scale {scale:g}", "like")
