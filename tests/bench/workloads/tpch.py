"""TPC-H's 22 queries (tests/tpch), on data by tpcgen-cli (build/venv/bin, or in PATH), at --scale.

All tables have all of their columns, the types and the primary keys of the specification, and indexes on the foreign keys; PostgreSQL, gpuvm and
DuckDB read the same files. The answers of gpuvm are PostgreSQL's to the last digit.
"""
import concurrent.futures
import os
import re

import workload
from workloads import suite

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tpch")
TABLES = workload.read_tables(os.path.join(FOLDER, "schema.sql"))
QUERIES = workload.read_queries(os.path.join(FOLDER, "queries.sql"))
# Milliseconds on the GPU at scale 10; on the CPU so many times as fast as DuckDB.
BARS = {"Q1": 2.5, "Q6": 0.8}
OVER_DUCKDB = 2


def generate(bench, scale, table):
    """The table's files, one for each thread: made once for their scale."""
    parts = ["--parts", str(bench.options.threads)] if table not in ("nation", "region") else []
    folder = os.path.join(bench.out, f"tpch-{table}-{scale:g}-{bench.options.threads}")
    return workload.generate("tpch", scale, folder, "--tables", table, *parts)[table]


def load(bench, scale, table):
    suite.load(bench, TABLES, table, scale, lambda: generate(bench, scale, table))


def bars(bench, label, ms):
    mine, peer = ms.get("gpuvm"), ms.get("DuckDB")
    if label in BARS and mine and bench.options.device == "cuda" and bench.options.scale == 10:
        bench.bar(f"TPC-H {label}, scale 10", mine, BARS[label])
    if label in BARS and mine and peer and bench.options.device == "cpu":
        bench.bar(f"TPC-H {label} over DuckDB, {bench.options.threads} threads each", peer / mine, OVER_DUCKDB, "x", True)


def queries_of(bench):
    # the specification's FRACTION (2.4.11.3)
    fraction = f"{0.0001 / bench.options.scale:.12f}".rstrip("0")
    return {**QUERIES, "Q11": QUERIES["Q11"].replace("0.0001", fraction)}


def load_all(bench, tables):
    with concurrent.futures.ThreadPoolExecutor(bench.options.threads) as pool:
        list(pool.map(lambda table: generate(bench, bench.options.scale, table), tables))
    for table in tables:
        load(bench, bench.options.scale, table)


def run(bench):
    queries, tables = queries_of(bench), TABLES
    if bench.options.queries:
        queries = {label: queries[label] for label in bench.options.queries.split(",")}
        tables = {table: create for table, create in TABLES.items() if any(re.search(rf"\b{table}\b", sql) for sql in queries.values())}
    load_all(bench, tables)
    if not bench.options.queries:
        suite.indexes(bench, tables, workload.TPCH_INDEXES)
    rows = suite.run(bench, "tpch", "TPC-H", queries, bars)
    if not bench.options.queries:
        suite.whole_bars(bench, "TPC-H", rows)
