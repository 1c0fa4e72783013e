"""Tables and figures of the papers by Bakkum and Skadron (Sphyraena) and by Bakkum and Chakradhar (Virginian).

Both used these queries; Sphyraena 5 million rows, Virginian 8 million, which
are used here for both. Three times are told apart, since the papers' engines
handed no row to anyone:

    execution   the statement in PostgreSQL, its rows handed out by the executor
    engine      gpuvmd, from the job's start to its last result in shared memory
    device      the GPU's kernels and copies, by its own clock
"""
from workloads import papers

KINDS = {"Integer": range(1, 11, 2), "Floating point": range(2, 11, 2), "Aggregation": range(11, 14), "All": range(1, 14)}


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def cell(value, form="{:.3f}"):
    return "-" if value is None else form.format(value)


def ratio(a, b, form="{:.1f}x"):
    return "-" if a is None or not b else form.format(a / b)


# -- Sphyraena ------------------------------------------------------------------------


def sphyraena(bench):
    """Table 1 and figure 1: SQLite against the GPU, with and without the way of the results."""
    rows = bench.options.rows or papers.ROWS
    bench.load(papers, rows)
    engines = [e for e in (bench.sqlite, bench.gpuvm) if e]
    for number, sql in enumerate(papers.QUERIES, 1):
        bench.progress(f"sphyraena, query {number}")
        bench.measure("sphyraena", str(number), sql, engines)
        bench.measure("sphyraena, count(*)", str(number), papers.counted(sql) if number <= 10 else sql, engines)
    if not bench.gpuvm:
        return
    full = {int(r["query"]): r for r in bench.results if r["workload"] == "sphyraena"}
    counted = {int(r["query"]): r for r in bench.results if r["workload"] == "sphyraena, count(*)"}
    lines = [f"### Sphyraena, table 1, {rows:,} rows: means, and speed-ups of the means as in the paper\n",
             "| queries | speed-up | with results in host memory | with rows handed out by PostgreSQL | SQLite, s | gpuvm, no rows out, s | "
             "engine with results, s | execution with rows, s | rows returned |", "|" + "---|" * 9]
    for kind, numbers in KINDS.items():
        cpu = mean(full[n]["ms"]["SQLite"] for n in numbers if "SQLite" in full[n]["ms"])
        none = mean(counted[n]["ms"]["gpuvm"] for n in numbers if "gpuvm" in counted[n]["ms"])
        engine = mean(full[n]["figures"]["gpuvm"]["Engine Time"] for n in numbers if "gpuvm" in full[n]["figures"])
        whole = mean(full[n]["ms"]["gpuvm"] for n in numbers if "gpuvm" in full[n]["ms"])
        seconds = [cell(None if v is None else v / 1000, "{:.6f}") for v in (cpu, none, engine, whole)]
        lines.append(f"| {kind} | {ratio(cpu, none)} | {ratio(cpu, engine)} | {ratio(cpu, whole)} | {' | '.join(seconds)} | "
                     f"{mean(full[n]['rows'] for n in numbers):,.0f} |")
    lines.append("\nThe paper (Tesla C1060, 5 million rows): 42x, 59x, 36x and 51x; with the results' transfer 29x, 44x, 36x and 36x.")
    bench.tables.append("\n".join(lines) + "\n")
    bench.table(f"Sphyraena, figure 1: {rows:,} rows, rows returned", "sphyraena")
    bench.table(f"Sphyraena, figure 1: {rows:,} rows, no rows out", "sphyraena, count(*)")
    if bench.options.device == "cuda":
        bench.over_sqlite([full[n] for n in KINDS["Aggregation"]])


# -- Virginian ------------------------------------------------------------------------


def configurations(bench):
    """The paper's categories, and stream, which it compares in its text: name -> session."""
    found = {"Single core": bench.session("Single core", "cpu", threads="1"), "Multi-core": bench.session("Multi-core", "cpu")}
    if bench.options.device == "cuda":
        for transfer in ("serial", "stream", "mapped", "cached"):
            found[transfer.capitalize()] = bench.session(transfer.capitalize(), transfer=transfer)
    return found


def virginian(bench):
    """Tables 1 and 2, figures 4 to 6: ways of execution, and of getting data to the GPU."""
    if not bench.gpuvm:
        return
    rows = bench.options.rows or papers.ROWS
    bench.load(papers, rows)
    sessions = configurations(bench)
    engines = [e for e in bench.engines() if e is not bench.gpuvm] + list(sessions.values())
    for number, sql in enumerate(papers.QUERIES[:10], 1):
        bench.progress(f"virginian, query {number}")
        bench.measure("virginian", str(number), sql, engines)
        bench.measure("virginian, count(*)", str(number), papers.counted(sql), engines)
        bench.check(f"virginian {number}", sql, others=[])
        for engine in sessions.values():
            bench.check_value(f"virginian {number}, counted", papers.counted(sql), engine)
    of = {form: {int(r["query"]): r for r in bench.results if r["workload"] == form} for form in ("virginian", "virginian, count(*)")}
    virginian_tables(bench, rows, of, sessions)
    bench.table(f"Virginian, figure 4: {rows:,} rows, execution with rows handed out", "virginian", against="Cached" if "Cached" in sessions else "Multi-core")
    bench.table(f"Virginian, figure 4: {rows:,} rows, counted", "virginian, count(*)", against="Cached" if "Cached" in sessions else "Multi-core")
    data_size(bench, rows, sessions)


def engine_time(row, name):
    return row["figures"].get(name, {}).get("Engine Time")


def virginian_tables(bench, rows, of, sessions):
    """Table 1 with the engine's time (results in host memory, as in the paper) and with the statement's; table 2 over the first."""
    kinds = {"Integer": KINDS["Integer"], "Floating point": KINDS["Floating point"], "All": range(1, 11)}
    forms = (("engine, results written to host memory", "virginian", engine_time),
             ("execution, counted", "virginian, count(*)", lambda r, name: r["ms"].get(name)),
             ("execution, rows handed out by PostgreSQL", "virginian", lambda r, name: r["ms"].get(name)))
    means = {}
    for form, workload, value in forms:
        names = list(dict.fromkeys(n for r in of[workload].values() for n in r["ms"] if value(r, n) is not None))
        lines = [f"### Virginian, table 1, {rows:,} rows: mean seconds, {form}\n", "| queries | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
        for kind, numbers in kinds.items():
            for name in names:
                means[form, kind, name] = mean(v for v in (value(of[workload][n], name) for n in numbers if n in of[workload]) if v is not None)
            lines.append(f"| {kind} | " + " | ".join(cell(None if means[form, kind, n] is None else means[form, kind, n] / 1000, "{:.6f}") for n in names) + " |")
        bench.tables.append("\n".join(lines) + "\n")
    if "Cached" not in sessions:
        return
    lines = ["### Virginian, table 2: speed-up over a single core and over all of them\n",
             "| queries | form | mapped over single | cached over single | mapped over multi | cached over multi |", "|" + "---|" * 6]
    for form, _, _ in forms:
        for kind in kinds:
            lines.append(f"| {kind} | {form} | " + " | ".join(ratio(means[form, kind, cpu], means[form, kind, gpu], "{:.2f}x")
                                                             for cpu in ("Single core", "Multi-core") for gpu in ("Mapped", "Cached")) + " |")
    lines.append("\nThe paper (GTX 570, 4 cores): 17.5x, 35.9x, 3.9x and 8.1x for all queries.")
    bench.tables.append("\n".join(lines) + "\n")


def data_size(bench, rows, sessions):
    """Figure 6: the mean of the ten queries over table sizes, in the same sessions."""
    for part in range(1, 5):
        size = rows * part // 4
        table = f"test_{part}"
        bench.progress(f"virginian, figure 6: {size:,} rows")
        bench.postgres.execute(f"DROP TABLE IF EXISTS {table}")
        bench.postgres.execute(f"CREATE TABLE {table} AS SELECT * FROM {papers.TABLE} WHERE id <= {size}")
        bench.postgres.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        bench.postgres.execute(f"SELECT gpuvm.import('{table}')")
        for name, engine in sessions.items():
            if name in ("Serial", "Stream"):
                continue
            for number, sql in enumerate(papers.QUERIES[:10], 1):
                text = papers.counted(sql.replace(" FROM test ", f" FROM {table} "))
                bench.measure("data size", f"{size:,} rows, query {number}, {name}", text, [engine], runs=5, size=size)
        bench.postgres.execute(f"DROP TABLE {table}")
    sizes = sorted({r["size"] for r in bench.results if r["workload"] == "data size"})
    names = [n for n in sessions if n not in ("Serial", "Stream")]
    lines = ["### Virginian, figure 6: mean ms of the ten counted queries by the table's rows\n", "| rows | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    for size in sizes:
        at = [r for r in bench.results if r["workload"] == "data size" and r["size"] == size]
        lines.append(f"| {size:,} | " + " | ".join(cell(mean(r["ms"][n] for r in at if n in r["ms"])) for n in names) + " |")
    bench.tables.append("\n".join(lines) + "\n")
