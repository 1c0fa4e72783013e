"""The operations of the paper on CUDADB (Chang et al.): figures 7 to 10 and 14, and table 14, over table sizes and shares of rows.

Its data: a unique random number, a group of 1 to 100, and a random number of 1 to 65535; no index. SQLite is in memory, its rows are
thrown away. PostgreSQL and gpuvm run prepared statements, execution only, without the commit; what changes data is rolled back everywhere,
vacuumed and refreshed. gpuvm's INSERT of values is PostgreSQL's own, into a table that is imported. Engines take turns.
"""
import math
import os
import statistics
import sys
import tempfile

from engines import Postgres
from workloads import changes, changing, papers

COLUMNS = [("id", "int4"), ("grp", "int4"), ("val", "int4")]
SEED_SQL = papers.SEED_SQL
PEERS = ("SQLite",)
TABLE = "cudadb"
RESULT = "cudadb_result"
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
CHANGED_SIZES = (10_000, 100_000, 1_000_000)
SHARES = (0.1, 0.3, 1, 3, 10)	# percent
INSERTED = 1000
AHEAD = 3

READS = {
    "select": "SELECT id, grp, val FROM {t} WHERE id <= {k}",
    "sort": "SELECT id, grp, val FROM {t} WHERE id <= {k} ORDER BY val",
    "group": "SELECT grp, count(*), sum(val), min(val), max(val), avg(val) FROM {t} WHERE id <= {k} GROUP BY grp",
}
CHANGES = {
    "insert-select": (f"INSERT INTO {RESULT} SELECT id, grp, val FROM {{t}} WHERE id <= {{k}}", RESULT),
    "update": ("UPDATE {t} SET val = val + 1 WHERE id <= {k}", "{t}"),
    "delete": ("DELETE FROM {t} WHERE id <= {k}", "{t}"),
}
CHECK = "SELECT count(*) || ' ' || sum(id) || ' ' || sum(grp) || ' ' || sum(val) || ' ' || sum(id * (val + grp)) FROM {0}"


def create_sql(table):
    return f"CREATE TABLE {table} ({', '.join(f'{name} {type} NOT NULL' for name, type in COLUMNS)})"


def load_sql(rows, table):
    """617923 has no factor in common with the sizes."""
    return (f"INSERT INTO {table} SELECT i * 617923 % {rows} + 1, floor(random() * 100) + 1, floor(random() * 65535) + 1 "
            f"FROM generate_series(1::bigint, {rows}) i")


def name(rows):
    return f"{TABLE}_{rows}"


def run(bench):
    top = bench.options.rows or SIZES[-1]
    sizes = [n for n in SIZES if n <= top]
    module = sys.modules[__name__]
    for rows in sizes:
        bench.load(module, rows, name(rows))
    prepare_result(bench, module)
    for rows in sizes:
        bench.progress(f"cudadb, {rows:,} rows: reading")
        for share in SHARES:
            for op in READS:
                read(bench, op, rows, share)
    for rows in (n for n in CHANGED_SIZES if n <= top):
        bench.progress(f"cudadb, {rows:,} rows: changes")
        insert(bench, rows)
        for share in SHARES:
            for op in CHANGES:
                change(bench, op, rows, share)
    bench.table("cudadb: CUDADB's operations", "cudadb")
    summary(bench)
    clients(bench, [n for n in CHANGED_SIZES if n <= top])


def prepare_result(bench, module):
    """Where INSERT ... SELECT goes: an empty table in every engine."""
    bench.postgres.execute(f"DROP TABLE IF EXISTS {RESULT}")
    bench.postgres.execute(create_sql(RESULT))
    bench.to_others(RESULT, module)


def rounds(rows):
    return 7 if rows <= 100_000 else 3


def sessions(bench):
    return [s for s in (bench.postgres, bench.gpuvm) if s]


def keep(bench, op, rows, share, sql, ms, ratios, count):
    bench.results.append(dict(workload="cudadb", query=f"{op}, {rows:,} rows" + (f", {share:g}%" if share else ""), sql=sql, ms=ms, figures={},
                              device=bench.options.device, note="", rows=count, op=op, size=rows, share=share, ratios=ratios))


def prepared(session, sql):
    session.execute("DEALLOCATE ALL")
    session.execute(f"PREPARE statement AS {sql}")


def read(bench, op, rows, share):
    sql = READS[op].format(t=name(rows), k=int(rows * share / 100))
    bench.check(f"cudadb, {op}, {rows:,} rows, {share:g}%", sql, others=bench.others(sys.modules[__name__]), text=True)
    measures = {}
    times = 9 if rows <= 100_000 else 3
    if bench.sqlite:
        measures["SQLite"] = lambda: statistics.median(bench.sqlite.run(sql)[0])
    for session in sessions(bench):
        prepared(session, sql)
        measures[session.name] = lambda s=session: statistics.median(s.scan("EXECUTE statement")[0] for _ in range(times))
    ms, ratios = changing.by_turns(measures, rounds(rows))
    keep(bench, op, rows, share, sql, ms, ratios, bench.postgres.scan(sql)[1])


def change(bench, op, rows, share):
    form, target = CHANGES[op]
    sql, target = form.format(t=name(rows), k=int(rows * share / 100)), target.format(t=name(rows))
    check = CHECK.format(target).replace("id * (", "id::bigint * (")
    label = f"cudadb, {op}, {rows:,} rows, {share:g}%"
    count = changing.compare(bench, label, sql, check, [name(rows)])
    measures = {}
    if bench.sqlite:
        ours = changing.changed(bench.postgres, sql, check)
        changing.clean(bench, [name(rows)])
        _, number, value = bench.sqlite.run(f"{sql}\t{CHECK.format(target)}")
        same = (number, value) == (ours[0], ours[1][0])
        bench.checks.append((label, "SQLite", "equal" if same else f"DIFFERENT: {number, value}, PostgreSQL {ours}"))
        measures["SQLite"] = lambda: statistics.median(bench.sqlite.run(sql)[0])
    for session in sessions(bench):
        prepared(session, sql)
        measures[session.name] = lambda s=session: execution(bench, s, rows)
    ms, ratios = changing.by_turns(measures, rounds(rows))
    keep(bench, op, rows, share, sql, ms, ratios, count)


def execution(bench, session, rows):
    ms = changing.undone(session, lambda: session.scan("EXECUTE statement")[0])
    changing.clean(bench, [name(rows)])
    return ms


def insert(bench, rows):
    """Of values: nothing of gpuvm's runs, and the table is imported."""
    values = ", ".join(f"({rows + i}, {i % 100 + 1}, {i * 7919 % 65535 + 1})" for i in range(1, INSERTED + 1))
    sql = f"INSERT INTO {name(rows)} VALUES {values}"
    measures = {}
    if bench.sqlite:
        measures["SQLite"] = lambda: statistics.median(bench.sqlite.run(sql)[0])
    prepared(bench.postgres, sql)
    measures[bench.postgres.name] = lambda: execution(bench, bench.postgres, rows)
    if bench.gpuvm:
        writer = Postgres("gpuvm", bench.connect(), {"jit": "off"})
        prepared(writer, sql)
        measures[writer.name] = lambda: execution(bench, writer, rows)
    ms, ratios = changing.by_turns(measures, rounds(rows))
    keep(bench, "insert", rows, 0, f"INSERT of {INSERTED} rows of values", ms, ratios, INSERTED)


# -- what comes of it ------------------------------------------------------------------


def summary(bench):
    """Table 14: at which shares of the rows gpuvm is ahead of SQLite, and the least lead."""
    rows = [r for r in bench.results if r["workload"] == "cudadb" and r["share"] and "SQLite" in r["ratios"] and "gpuvm" in r["ms"]]
    if not rows:
        return
    lines = ["### CUDADB's table 14: gpuvm against SQLite in memory, by the share of rows in the result\n",
             "| operation | rows | " + " | ".join(f"{s:g}%" for s in SHARES) + " | turning point |", "|" + "---|" * (len(SHARES) + 3)]
    for op in (*READS, *CHANGES):
        for size in sorted({r["size"] for r in rows if r["op"] == op}):
            ratios = {r["share"]: r["ratios"]["SQLite"] for r in rows if (r["op"], r["size"]) == (op, size)}
            lines.append(f"| {op} | {size:,} | " + " | ".join(f"{ratios[s]:.2f}x" for s in SHARES) + f" | {turning_point(ratios)} |")
    lines.append("\nThe paper (GeForce 9800 GT): CUDADB is ahead from 1.926% on for select, 2.061% for sort, 0.491% for group, 0.784% for insert-select, "
                 "0.161% for update, 0.784% for delete.")
    bench.tables.append("\n".join(lines) + "\n")
    for op in READS:
        least = min((r for r in rows if r["op"] == op), key=lambda r: r["ratios"]["SQLite"])
        bench.bar(f"cudadb, {op}: least lead over SQLite, at {least['size']:,} rows and {least['share']:g}%", least["ratios"]["SQLite"], AHEAD, "x", least=True)


def turning_point(ratios):
    """Where the lead passes 1, on a line between the logarithms."""
    shares = sorted(ratios)
    if all(ratios[s] >= 1 for s in shares):
        return "ahead at all"
    if all(ratios[s] < 1 for s in shares):
        return "behind at all"
    for a, b in zip(shares, shares[1:]):
        if (ratios[a] >= 1) != (ratios[b] >= 1):
            part = math.log(ratios[a]) / (math.log(ratios[a]) - math.log(ratios[b]))
            return f"ahead {'up to' if ratios[a] >= 1 else 'from'} {math.exp(math.log(a) + part * (math.log(b) - math.log(a))):.2g}%"


def clients(bench, sizes):
    """What a client waits for, with rows sent to it: pgbench, prepared statements, 1% of the rows."""
    lines = ["### cudadb: a prepared statement as a client sees it, rows sent to it, ms (pgbench, 1% of the rows; an empty statement is the first line)\n",
             "| operation | rows | " + " | ".join(s.name for s in sessions(bench)) + " |", "|" + "---|" * (2 + len(sessions(bench)))]
    bench.progress("cudadb, clients")
    for op, rows, sql in [("nothing", 0, "SELECT 1")] + [(op, rows, READS[op].format(t=name(rows), k=rows // 100)) for op in READS for rows in sizes]:
        ms = [latency(bench, sql, session is bench.gpuvm and rows > 0) for session in sessions(bench)]
        lines.append(f"| {op} | {rows:,} | " + " | ".join(f"{m:.3f}" for m in ms) + " |")
    bench.tables.append("\n".join(lines) + "\n")


def latency(bench, sql, vm):
    options = f"-c jit=off -c max_parallel_workers_per_gather=0 -c gpuvm.threads={bench.options.threads}"
    options += f" -c gpuvm.force=on -c gpuvm.device={bench.options.device} -c gpuvm.require={bench.options.device}" if vm else " -c gpuvm.enabled=off"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(sql + ";\n")
        script.flush()
        os.environ["PGOPTIONS"] = options
        try:
            out = changes.pgbench(bench, "-n", "-M", "prepared", "-T", "1", "-f", script.name)
        finally:
            del os.environ["PGOPTIONS"]
    return float(out.split("latency average = ")[1].split()[0])
