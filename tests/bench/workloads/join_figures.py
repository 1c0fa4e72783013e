"""The grid paper's figures 6 to 8: times over table sizes, and the break-even over rows out."""
from engines import NotRun, TooSlow
from workloads import joins, papers

PAPER_SIZES = range(500, 3501, 1000)
SIZES = (1000, 3500, 10_000, 32_000, 100_000, 316_000, 1_000_000)
TABLES = ("join_left", "join_right")
RUNS = 3


def hopeful(bench, last, size):
    """The engines that, from their time at the size before, may come to an end; `last`: engine -> (size, ms)."""
    found = []
    for engine in (bench.parallel or bench.postgres, bench.duckdb, bench.gpuvm):
        if engine is None:
            continue
        before, ms = last.get(engine.name, (size, 0))
        if 0.5 * ms * (size / before) ** 2 < 1000 * engine.limit:
            found.append(engine)
    return found


def remember(row, last, size):
    for name, ms in row["ms"].items():
        last[name] = (size, ms)
    for name, ms in row.get("over", {}).items():
        last[name] = (size, 10 * ms)


def sizes(bench):
    """Figure 6: the mean of the ten queries, with all rows out at the paper's sizes, and counted up to 1 M x 1 M, as far as an engine gets."""
    for workload, form, all_sizes in (("joins, sizes", str, PAPER_SIZES), ("joins, sizes, count(*)", papers.counted, SIZES)):
        last = {number: {} for number in range(10)}
        for size in sorted({joins.scaled(bench, s) for s in all_sizes}):
            joins.load_paper(bench, size, TABLES)
            for number in range(10):
                bench.progress(f"joins, figure 6: {size:,} rows, query {number}")
                sql = form(joins.paper_query(number, TABLES))
                able = hopeful(bench, last[number], size)
                row = bench.measure(workload, f"{size:,} rows, query {number}", sql, able, runs=RUNS, size=size, number=number)
                remember(row, last[number], size)
                check(bench, workload, row, sql)
        means(bench, workload)


def check(bench, workload, row, sql):
    """One value, with a peer that has just been quick."""
    quick = [e for e in (bench.duckdb, bench.parallel, bench.postgres) if e and e.name in row["ms"]]
    if not quick or "gpuvm" not in row["ms"]:
        return
    counted = sql if "count(*)" in workload else papers.counted(sql)
    try:
        mine, theirs = joins.values(bench.gpuvm, counted), joins.values(quick[0], counted)
        bench.checks.append((f"{workload}, {row['query']}", "gpuvm", "equal" if mine == theirs else f"DIFFERENT: {mine}, {quick[0].name} {theirs}"))
    except TooSlow:
        pass
    except NotRun as e:
        bench.checks.append((f"{workload}, {row['query']}", "gpuvm", f"not run: {e}"))


def means(bench, workload):
    """Only of engines that ran all ten queries at that size."""
    rows = [r for r in bench.results if r["workload"] == workload]
    names = list(dict.fromkeys(n for r in rows for n in r["ms"]))
    lines = [f"### Figure 6 of the grid paper, {'counted' if 'count' in workload else 'all rows out'}: mean ms of the ten queries\n",
             "| rows a table | " + " | ".join(names) + " | " + " | ".join(f"gpuvm over {n}" for n in names if n != "gpuvm") + " |", "|" + "---|" * (2 * len(names))]
    bench.tabled.add(workload)
    for size in sorted({r["size"] for r in rows}):
        at = [r for r in rows if r["size"] == size]
        mean = {n: sum(r["ms"][n] for r in at) / len(at) for n in names if all(n in r["ms"] for r in at)}
        ratios = [f"{mean[n] / mean['gpuvm']:.1f}x" if n in mean and "gpuvm" in mean else "-" for n in names if n != "gpuvm"]
        lines.append(f"| {size:,} | " + " | ".join([f"{mean[n]:.3g}" if n in mean else "-" for n in names] + ratios) + " |")
    bench.tables.append("\n".join(lines) + "\n")


def restrictive(bench):
    """Figure 8: joined by the key, so that as many rows come out as each table has."""
    sql = "SELECT a.id, a.uniformi, b.normali5 FROM {0} a, {1} b WHERE a.id = b.id".format(*TABLES)
    for size in sorted({joins.scaled(bench, s) for s in (*PAPER_SIZES, *SIZES)}):
        joins.load_paper(bench, size, TABLES)
        row = joins.measure(bench, "joins, restrictive", f"{size:,}", sql, size=size, runs=RUNS)
        check(bench, "joins, restrictive", row, sql)
    bench.table("Figure 8 of the grid paper: joined by the key, all rows out", "joins, restrictive")


def rows_out(bench):
    """Figure 7: a theta join of 3,000 x 3,000 rows of which ever more pairs come out."""
    size = joins.scaled(bench, 3000)
    joins.load_paper(bench, size, TABLES)
    for x in (-198, -180, -150, -120, -90, -60, -30, 0, 30, 60, 90, 120, 150, 198):
        sql = "SELECT a.id, b.uniformi, a.normali5 FROM {0} a, {1} b WHERE a.uniformi + b.uniformi < {2}".format(*TABLES, x)
        bench.progress(f"joins, figure 7: below {x}")
        row = joins.measure(bench, "joins, rows out", f"sum below {x}", sql, runs=RUNS)
        row["returned"] = row.get("rows", 0)
        if "gpuvm" in row["ms"]:
            bench.floor(sql)
        check(bench, "joins, rows out", row, sql)
    bench.table(f"Figure 7 of the grid paper: {size:,} x {size:,} rows, by rows out", "joins, rows out")
    for peer in joins.engines(bench):
        rows = sorted((r for r in bench.results if r["workload"] == "joins, rows out" and peer.name in r["ms"] and "gpuvm" in r["ms"]), key=lambda r: r["returned"])
        slower = [r["returned"] for r in rows if r["ms"]["gpuvm"] > r["ms"][peer.name]]
        if peer is not bench.gpuvm and rows:
            bench.tables.append(f"Break-even with {peer.name}: " + (f"gpuvm is slower at {', '.join(f'{n:,}' for n in slower)} rows out" if slower else
                                f"none; gpuvm is faster up to all {rows[-1]['returned']:,} rows") + ".\n")
