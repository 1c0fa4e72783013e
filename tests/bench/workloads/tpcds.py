"""TPC-DS's 103 queries (tests/tpcds), on data by tpcgen-cli (build/venv/bin, or in PATH), at --scale.

All tables have all of their columns, the types and the primary keys of the specification; PostgreSQL, gpuvm and DuckDB
read the same files. What takes longer than --peer-seconds is given up, on every engine. Up to scale 1, or with
"parallel" among --engines, PostgreSQL is measured, and gpuvm's answers must be its to the last digit; else, and where
it is given up, they are DuckDB's nearly. The queries' texts are in DuckDB's extension, for this python or build/venv's.
"""
import os
import sys

import workload
from workloads import suite

sys.path.append(os.path.join(workload.ROOT, "tests", "tpcds"))

import tpcds_queries as tpcds  # noqa: E402

LATE = 1.5				# times DuckDB's time
ROUNDED = ("Q2", "Q78")


def against_duckdb(bench, rows, name):
    """A table of one line, and the ten worst."""
    over = [r["query"] for r in rows if name in r.get("over", ())]
    both = [(r["ms"][name] / r["ms"]["DuckDB"], r) for r in rows if name in r["ms"] and "DuckDB" in r["ms"]]
    both.sort(key=lambda pair: -pair[0])
    if not both:
        return
    mine, peer = (sum(r["ms"][n] for _, r in both) for n in (name, "DuckDB"))
    ratios = [ratio for ratio, _ in both]
    cells = [len(both), f"{mine:.0f}", f"{peer:.0f}", f"{suite.geometric(ratios):.2f}x", sum(r < 1 for r in ratios),
             sum(r > LATE for r in ratios), f"{len(over)}: {' '.join(over)}"]
    lines = [f"### TPC-DS, scale {bench.options.scale:g}: {name} against DuckDB\n",
             "| queries of both | ms | DuckDB, ms | geometric mean | faster | over 1.5x | given up |", "|" + "---|" * 7,
             "| " + " | ".join(map(str, cells)) + " |", "", "| the worst | ms | DuckDB, ms | |", "|---|---|---|---|"]
    for ratio, r in both[:10]:
        lines.append(f"| {r['query']} | {r['ms'][name]:.3g} | {r['ms']['DuckDB']:.3g} | {ratio:.2f}x |")
    bench.tables.append("\n".join(lines) + "\n")


def run(bench):
    scale, limit = bench.options.scale, bench.options.peer_seconds
    asked = tpcds.queries(scale)
    if bench.options.queries:
        asked = {name: asked[name] for name in bench.options.queries.split(",")}
    folder = os.path.join(bench.out, f"tpcds-{scale:g}")
    bench.progress(f"generating TPC-DS, scale {scale:g}")
    files = workload.generate("tpcds", scale, folder, "--parts", str(bench.options.threads))
    for table in tpcds.TABLES:
        suite.load(bench, tpcds.TABLES, table, scale, lambda: files[table])
    suite.indexes(bench, tpcds.TABLES, {})
    if bench.duckdb:
        bench.duckdb.execute("SET default_null_order = 'postgres'")
        bench.duckdb.execute("SET integer_division = true")
    exact = scale <= 1 or bench.parallel is not None
    rows = suite.run(bench, "tpcds", "TPC-DS", asked, limit=limit, exact=exact, rounded=ROUNDED)
    for name in ("gpuvm", "gpuvm, planned"):
        against_duckdb(bench, rows, name)
