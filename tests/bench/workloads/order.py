"""ORDER BY: the first rows of many, and all of them.

The bars are for what the engine does before the first row is handed out: the time at which gpuvm's node has it. All rows of a sort
are PostgreSQL's to take one by one, whoever sorted them. Sums of the key times the row's place tell orders apart, but not rows whose keys are equal.
"""
import statistics

from engines import NotRun, plan_nodes
from workloads import generated

ROWS = 8_000_000
TABLE = "ordered_facts"
COLUMNS = [("id", "int", "i"), ("a", "bigint", f"{generated.mixed(3)} * 4"), ("b", "int", f"{generated.mixed(5)} % 1000000"),
           ("c", "varchar(12)", f"'code-' || (1000 + {generated.mixed(7)} % 1024)"), ("n", "decimal(12,2)", f"{generated.mixed(9)} % 100000 * 0.01")]
CODE = "CAST(substr(c, 6) AS int)"
TOP = {"top 100, int4 and int8": "b, a, id", "top 100, int4 descending": "b DESC, id", "top 100, text and int4": "c, b DESC, id", "top 100, numeric and text": "n DESC, c, id"}
FULL = {"int4": ("b", "b"), "int4 and text": ("b, c", f"b * 2000::bigint + {CODE}"), "text and int8 descending": ("c, a DESC", f"{CODE} * 7 + a"), "int8": ("a", "a")}
BARS = {"top 100, int4 and int8": 0.6, "top 100, int4 descending": 0.6, "int4 and text": 4}


def first_row(bench, sql):
    """Milliseconds until gpuvm's node has its first row, once warm."""
    found = []
    for _ in range(3 + max(bench.options.runs, 3)):
        found += [n["Actual Startup Time"] for n in plan_nodes(bench.gpuvm.explain(sql, "ON")["Plan"]) if n.get("Custom Plan Provider") == "GpuVM"]
    return statistics.median(found[3:])


def measure(bench, label, sql, rows):
    bench.postgres.limit = bench.options.peer_seconds
    row = bench.measure("order", label, sql, generated.engines(bench), of=rows)
    bench.postgres.limit = None
    ready(bench, label, row)
    return row


def ready(bench, label, row):
    if "gpuvm" not in row["ms"]:
        return
    row["first row"] = first_row(bench, row["sql"])
    if label in BARS and bench.options.device == "cuda" and row["of"] == ROWS:
        bench.bar(f"ORDER BY, {label}, before rows are handed out", row["first row"], BARS[label])


def run(bench):
    rows = bench.options.rows or ROWS
    generated.load(bench, TABLE, COLUMNS, rows)
    measured = []
    for label, keys in TOP.items():
        sql = f"SELECT id FROM {TABLE} ORDER BY {keys} LIMIT 100"
        bench.progress(f"order, {label}")
        bench.check(f"order, {label}", sql, others=[bench.duckdb], text=True)
        measured.append(measure(bench, label, sql, rows))
    for label, (keys, value) in FULL.items():
        sql = f"SELECT id, a, b, c FROM {TABLE} ORDER BY {keys}"
        bench.progress(f"order, all rows by {label}")
        if bench.gpuvm:
            places = f"SELECT sum(({value})::numeric * place) FROM (SELECT *, row_number() OVER () AS place FROM ({sql} OFFSET 0) o) p"
            try:
                plan = bench.gpuvm.explain(places)["Plan"]
                if any(n["Node Type"] in ("Sort", "Incremental Sort") and n.get("Actual Loops", 0) > 0 for n in plan_nodes(plan)):
                    raise NotRun("PostgreSQL sorts")
            except NotRun as e:
                bench.checks.append((f"order, {label}", "gpuvm", f"not run: {e}"))
            else:
                bench.check_value(f"order, {label}", places, bench.gpuvm)
        measured.append(measure(bench, label, sql, rows))
    bench.table(f"ORDER BY, {rows:,} rows", "order")
    lines = [f"### ORDER BY, {rows:,} rows: until the first row is there, ms\n", "| order | gpuvm |", "|---|---|"]
    lines += [f"| {r['query']} | {r['first row']:.3g} |" for r in measured if "first row" in r]
    bench.tables.append("\n".join(lines) + "\n")
