"""The 13 queries of the Star Schema Benchmark (tests/ssb), on data by its own generator, at --scale.

PostgreSQL, gpuvm and DuckDB read the same files; PostgreSQL has the primary keys. The answers of gpuvm are PostgreSQL's to the last digit.
"""
import math
import os
import sys

import workload
from workloads import suite

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "ssb")
sys.path.append(FOLDER)

import generate  # noqa: E402

TABLES = workload.read_tables(os.path.join(FOLDER, "schema.sql"))
QUERIES = workload.read_queries(os.path.join(FOLDER, "queries.sql"))
MEAN_MS = 2					# geometric mean, on the GPU at scale 10


def run(bench):
    scale = bench.options.scale
    bench.progress(f"generating SSB, scale {scale:g}")
    files = generate.generate(os.path.join(bench.out, f"ssb-{scale:g}"), scale, bench.options.threads)
    for table in TABLES:
        suite.load(bench, TABLES, table, scale, lambda: files[table])
    suite.indexes(bench, TABLES, {})
    rows = suite.run(bench, "ssb", "SSB", QUERIES)
    suite.whole_bars(bench, "SSB", rows)
    ms = [r["ms"]["gpuvm"] for r in rows if "gpuvm" in r["ms"]]
    if ms and bench.options.device == "cuda" and scale == 10:
        bench.bar("SSB, queries on the machine", len(ms), len(QUERIES), "queries", True)
        bench.bar("SSB, geometric mean", math.exp(sum(map(math.log, ms)) / len(ms)), MEAN_MS)
