"""TPC-H's 22 queries (tests/tpch), on data by tpchgen-cli (build/venv/bin, or in PATH), at --scale.

All tables have all of their columns, the types and the primary keys of the specification, and indexes on the foreign keys; PostgreSQL, gpuvm and
DuckDB read the same files. The answers of gpuvm are PostgreSQL's to the last digit.
"""
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys

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
    folder = os.path.join(bench.out, f"tpch-{table}-{scale:g}-{bench.options.threads}")
    if not os.path.exists(folder):
        program = shutil.which("tpchgen-cli", path=os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])))
        if not program:
            raise SystemExit("tpchgen-cli is missing: tests/setup/install.sh --bench")
        bench.progress(f"generating {table}, scale {scale:g}")
        parts = ["--parts", str(bench.options.threads)] if table not in ("nation", "region") else []
        subprocess.run([program, "csv", "-s", f"{scale:g}", "--tables", table, *parts, "--output-dir", folder + ".new"], check=True, stdout=subprocess.DEVNULL)
        os.rename(folder + ".new", folder)
    return sorted(glob.glob(os.path.join(folder, "**", "*.csv"), recursive=True))


def copy(bench, table, path):
    """A file into PostgreSQL, in a session of its own."""
    conn = bench.connect()
    with open(path, "rb") as f, conn.cursor() as cur:
        cur.copy_expert(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)", f, size=1 << 20)
    conn.close()


def load(bench, scale, table):
    """A table in every engine, without indexes."""
    columns = workload.columns_of(TABLES[table])
    what = f"scale {scale:g}, {columns}".replace("'", "")
    p = bench.postgres
    missing = p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what
    paths = generate(bench, scale, table) if missing or bench.duckdb else []
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


def bars(bench, label, ms):
    mine, peer = ms.get("gpuvm"), ms.get("DuckDB")
    if label in BARS and mine and bench.options.device == "cuda" and bench.options.scale == 10:
        bench.bar(f"TPC-H {label}, scale 10", mine, BARS[label])
    if label in BARS and mine and peer and bench.options.device == "cpu":
        bench.bar(f"TPC-H {label} over DuckDB, {bench.options.threads} threads each", peer / mine, OVER_DUCKDB, "x", True)


def run(bench):
    with concurrent.futures.ThreadPoolExecutor(bench.options.threads) as pool:
        list(pool.map(lambda table: generate(bench, bench.options.scale, table), TABLES))
    for table in TABLES:
        load(bench, bench.options.scale, table)
    suite.indexes(bench, TABLES, workload.TPCH_INDEXES)
    rows = suite.run(bench, "tpch", "TPC-H", QUERIES, bars)
    suite.whole_bars(bench, "TPC-H", rows)
