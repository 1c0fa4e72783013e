"""TPC-H Q1 and Q6, on data by tpchgen-cli (build/venv/bin, or in PATH), at --scale.

lineitem has all of its columns and the types of the specification; PostgreSQL, gpuvm and DuckDB read the same file. The
answers of gpuvm are PostgreSQL's to the last digit, DuckDB's are compared as numbers (its averages are floating point).
"""
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys

from workloads import generated

TABLE = "lineitem"
COLUMNS = [("l_orderkey", "bigint"), ("l_partkey", "int"), ("l_suppkey", "int"), ("l_linenumber", "int"), ("l_quantity", "decimal(15,2)"),
           ("l_extendedprice", "decimal(15,2)"), ("l_discount", "decimal(15,2)"), ("l_tax", "decimal(15,2)"), ("l_returnflag", "char(1)"),
           ("l_linestatus", "char(1)"), ("l_shipdate", "date"), ("l_commitdate", "date"), ("l_receiptdate", "date"), ("l_shipinstruct", "char(25)"),
           ("l_shipmode", "char(10)"), ("l_comment", "varchar(44)")]
QUERIES = {
    "Q1": "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price, "
          "sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, "
          "avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order FROM lineitem "
          "WHERE l_shipdate <= date '1998-12-01' - interval '90' day GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
    "Q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= date '1994-01-01' "
          "AND l_shipdate < date '1994-01-01' + interval '1' year AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24",
}
NUMBERS = {"Q1": "SELECT sum_qty, sum_base_price, sum_disc_price, sum_charge, avg_qty, avg_price, avg_disc, count_order FROM ({}) q", "Q6": "{}"}
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
        subprocess.run([program, "csv", "-s", f"{scale:g}", "--tables", table, "--parts", str(bench.options.threads), "--output-dir", folder + ".new"],
                       check=True, stdout=subprocess.DEVNULL)
        os.rename(folder + ".new", folder)
    return sorted(glob.glob(os.path.join(folder, "**", "*.csv"), recursive=True))


def copy(bench, table, path):
    """A file into PostgreSQL, in a session of its own."""
    conn = bench.connect()
    with open(path, "rb") as f, conn.cursor() as cur:
        cur.copy_expert(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)", f, size=1 << 20)
    conn.close()


def load(bench, scale, table, columns):
    what = f"scale {scale:g}, {columns}".replace("'", "")
    p = bench.postgres
    missing = p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what
    paths = generate(bench, scale, table) if missing or bench.duckdb else []
    if missing:
        bench.progress("loading PostgreSQL")
        p.execute(f"DROP TABLE IF EXISTS {table}")
        p.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {t} NOT NULL' for n, t in columns)})")
        with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
            list(pool.map(lambda path: copy(bench, table, path), paths))
        p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        p.execute(f"COMMENT ON TABLE {table} IS '{what}'")
    p.execute(f"ALTER TABLE {table} SET (parallel_workers = {bench.options.threads})")
    if bench.duckdb:
        bench.progress("loading DuckDB")
        types = ", ".join(f"'{n}': '{t}'" for n, t in columns)
        bench.duckdb.conn.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM read_csv({paths}, header = true, columns = {{{types}}})")
    if bench.gpuvm:
        bench.progress("importing")
        p.execute(f"SELECT gpuvm.import('{table}')")
    bench.loaded[table] = what


def run(bench):
    scale = bench.options.scale
    load(bench, scale, TABLE, COLUMNS)
    bench.postgres.limit = bench.options.peer_seconds
    for label, sql in QUERIES.items():
        bench.progress(f"TPC-H {label}")
        bench.check(f"TPC-H {label}", sql, others=[], text=True, truth=bench.parallel)
        bench.check(f"TPC-H {label}, numbers", NUMBERS[label].format(sql), others=[bench.duckdb], truth=bench.parallel)
        row = bench.measure("tpch", label, sql, generated.engines(bench))
        mine, peer = row["ms"].get("gpuvm"), row["ms"].get("DuckDB")
        if mine and bench.options.device == "cuda" and scale == 10:
            bench.bar(f"TPC-H {label}, scale 10", mine, BARS[label])
        if mine and peer and bench.options.device == "cpu":
            bench.bar(f"TPC-H {label} over DuckDB, {bench.options.threads} threads each", peer / mine, OVER_DUCKDB, "x", True)
    bench.postgres.limit = None
    bench.table(f"TPC-H, scale {scale:g}", "tpch")
