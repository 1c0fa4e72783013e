"""A csv file into a tablet table and into a file table, against COPY into an unlogged heap table: PostgreSQL's parser is in all of them.

The papers' rows. The engines take turns; what was loaded is compared. With one process that parses, and with two.
"""
import os
import tempfile

from engines import Postgres
from workloads import changing, dml, papers

TABLET, FILE, HEAP = "COPY into a tablet table", "file table, two processes", "COPY into an unlogged table"
SUMS = f"SELECT count(*), {', '.join(f'sum({name})' for name, kind in papers.COLUMNS if kind == 'int4')}, count(normalf20) FROM {{0}}"
PAIRS = 5
BARS = {TABLET: 1.15, FILE: 1.5}	# over HEAP


def run(bench):
    if not bench.gpuvm:
        return
    rows = bench.options.rows or papers.ROWS
    bench.load(papers, rows)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        load(bench, rows, os.path.join(folder, "rows.csv"))


def load(bench, rows, path):
    p = bench.postgres
    bench.progress(f"loading, {rows:,} rows")
    p.execute(f"COPY {papers.TABLE} TO '{path}' (FORMAT csv)")
    p.execute("DROP TABLE IF EXISTS heap_rows")
    p.execute("DROP FOREIGN TABLE IF EXISTS tablet_rows, file_rows")
    columns = ", ".join(f"{name} {kind}" for name, kind in papers.COLUMNS)
    p.execute(f"CREATE UNLOGGED TABLE heap_rows ({columns})")
    p.execute(f"CREATE FOREIGN TABLE tablet_rows ({columns}) SERVER gpuvm OPTIONS (persist 'off')")
    p.execute(f"CREATE FOREIGN TABLE file_rows ({columns}) SERVER gpuvm OPTIONS (filename '{path}', format 'csv')")
    # Processes beside the first that parse a file.
    one, two = (Postgres("loading", bench.connect(), {"max_parallel_maintenance_workers": workers, "gpuvm.threads": "2"}) for workers in "01")

    def copy(table):
        p.execute(f"TRUNCATE {table}")
        p.execute("CHECKPOINT")
        return dml.elapsed(one, f"COPY {table} FROM '{path}' (FORMAT csv)")

    def imported(session):
        p.execute("SELECT gpuvm.release('file_rows')")
        return dml.elapsed(session, "SELECT gpuvm.import('file_rows')")

    measures = {TABLET: lambda: copy("tablet_rows"), "file table, one process": lambda: imported(one), FILE: lambda: imported(two), HEAP: lambda: copy("heap_rows")}
    ms, ratios = changing.by_turns(measures, PAIRS)
    bench.results.append(dict(workload="loading", query=f"{rows:,} rows", sql="COPY", ms=ms, figures={}, device=bench.options.device, note="", rows=rows))
    bench.table("loading: a csv file of the papers' rows", "loading", against=HEAP)
    for name, bar in BARS.items():
        bench.bar(f"{name}, over {HEAP} (median of {PAIRS} rounds)", 1 / ratios[name], bar, "x", least=True)
    expected = p.value(SUMS.format("heap_rows"))
    for table in ("tablet_rows", "file_rows"):
        bench.checks.append((f"loading, {table}", "gpuvm", "equal" if p.value(SUMS.format(table)) == expected else "DIFFERENT"))
    for conn in (one.conn, two.conn):
        conn.close()
