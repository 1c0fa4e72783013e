"""A table that changes: what the check costs, one row, a VACUUM, one block in a hundred, and what writers pay.

The refresher is off for all but the last: what is measured is what queries do themselves.
pgbench runs in pairs, on a table that is imported and on the same table when it is not,
in an order that changes from pair to pair.
"""
import math
import os
import re
import statistics
import subprocess

from workloads import papers

CHECK_US_PER_GB = 10
ONE_ROW_MS = 0.15
AFTER_VACUUM_MS = 15
SPEED_UP = 20
TPS_RATIO = 0.97
ROUNDS = 5
SCALE = 10
# Aggregates: no row is handed out, so that what changes is the reading.
QUERIES = {f"query {n}": papers.QUERIES[n - 1] for n in (11, 12, 13)}
QUERIES.update({f"count(*) of query {n}": papers.counted(papers.QUERIES[n - 1]) for n in (1, 4, 7)})
# Of Student's t, two-sided 95%, by degrees of freedom.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05}


def run(bench):
    if not bench.gpuvm:
        return
    rows = bench.options.rows or papers.ROWS
    refresher(bench, "off")
    bench.load(papers, rows)
    try:
        check(bench)
        one_row(bench, rows)
        after_vacuum(bench, rows)
        hundredth(bench)
    finally:
        # the table is not what the other workloads loaded
        bench.postgres.execute(f"COMMENT ON TABLE {papers.TABLE} IS NULL")
        bench.loaded.pop(papers.TABLE, None)
    refresher(bench, "on")
    try:
        writers(bench)
    finally:
        refresher(bench, "DEFAULT")


def refresher(bench, value):
    bench.postgres.execute(f"ALTER SYSTEM SET gpuvm.refresh = {value}")
    bench.postgres.execute("SELECT pg_reload_conf(), pg_sleep(1)")


def least(session, sql, runs=25):
    """Differences of a tenth of a millisecond drown in a median's noise."""
    return min(session.scan(sql)[0] for _ in range(runs))


def keep(bench, label, sql, ms, **extra):
    bench.results.append(dict(workload="changes", query=label, sql=sql, ms=ms, figures={}, device=bench.options.device, note="", rows=1, **extra))


def check(bench):
    """Microseconds for a gigabyte of heap, as EXPLAIN ANALYZE tells them."""
    bench.progress("changes, check of a clean table")
    gb = int(bench.postgres.value(f"SELECT pg_relation_size('{papers.TABLE}')")[0]) / 2**30
    times = [bench.gpuvm.scan(QUERIES["query 12"], "ON")[2]["Check Time"] for _ in range(20)]
    us = statistics.median(times)
    keep(bench, f"check of {gb:.2f} GB", QUERIES["query 12"], {"gpuvm": us / 1000})
    bench.bar(f"check of a clean table ({us:.1f} us for {gb:.2f} GB)", us / gb, CHECK_US_PER_GB, "us/GB")


def one_row(bench, rows):
    """What one updated row adds to a query, of which two blocks are then not served."""
    bench.progress("changes, one row updated")
    clean = {label: least(bench.gpuvm, sql) for label, sql in QUERIES.items()}
    bench.postgres.execute(f"UPDATE {papers.TABLE} SET normali5 = normali5 + 1 WHERE id = {rows // 2}")
    for label, sql in QUERIES.items():
        changed = least(bench.gpuvm, sql)
        keep(bench, f"{label}, one row updated", sql, {"gpuvm": changed, "gpuvm, unchanged": clean[label]})
        bench.bar(f"one row updated: added to {label}", changed - clean[label], ONE_ROW_MS)
        bench.check(f"one row updated, {label}", sql, papers.FLOAT_SUMS.get(11) if label == "query 11" else None, others=[])


def after_vacuum(bench, rows):
    """The first query after a VACUUM, which has moved the map's LSN, finds out by itself that all blocks but two are unchanged."""
    bench.progress("changes, first query after VACUUM")
    sql = QUERIES["query 12"]
    clean = least(bench.gpuvm, sql)
    first = []
    for i in range(ROUNDS):
        bench.postgres.execute(f"UPDATE {papers.TABLE} SET normali5 = normali5 + 1 WHERE id = {rows // 3 + i * 1000}")
        bench.postgres.execute(f"VACUUM {papers.TABLE}")
        bench.gpuvm.scan("SELECT count(*) FROM bench_ready")
        first.append(bench.gpuvm.scan(sql)[0])
    keep(bench, "first query after VACUUM", sql, {"gpuvm": statistics.median(first), "gpuvm, unchanged": clean})
    bench.bar("first query after VACUUM: added", statistics.median(first) - clean, AFTER_VACUUM_MS)
    bench.check("after VACUUM", sql, others=[])


def hundredth(bench):
    """A row in each hundredth block."""
    bench.progress("changes, 1% of the blocks")
    p = bench.postgres
    p.execute(f"SELECT gpuvm.import('{papers.TABLE}')")
    blocks = int(p.value(f"SELECT pg_relation_size('{papers.TABLE}') / current_setting('block_size')::int")[0])
    tids = ",".join(f'"({b},1)"' for b in range(0, blocks, 100))
    p.execute(f"UPDATE {papers.TABLE} SET normali5 = normali5 WHERE ctid = ANY ('{{{tids}}}'::tid[])")
    ratios = []
    for label, sql in QUERIES.items():
        row = bench.measure("changes", f"{label}, 1% of {blocks:,} blocks changed", sql, engines=[bench.postgres, bench.gpuvm])
        bench.check(f"1% changed, {label}", sql, papers.FLOAT_SUMS.get(11) if label == "query 11" else None, others=[])
        if len(row["ms"]) == 2:
            ratios.append(row["ms"][p.name] / row["ms"]["gpuvm"])
            bench.bar(f"1% of blocks changed: {label} over one PostgreSQL process", ratios[-1], SPEED_UP, "x", least=True)
    bench.table("a table that changes", "changes")


# -- writers -------------------------------------------------------------------------


def writers(bench):
    """TPS of pgbench -c 2, imported against not imported, pair by pair."""
    o = bench.options
    if not o.pairs:
        return
    bench.progress(f"changes, pgbench: {o.pairs} pairs of {o.seconds} s")
    pgbench(bench, "-i", "-q", "-s", str(SCALE))
    bench.postgres.execute("VACUUM (FREEZE, ANALYZE) pgbench_accounts")
    ratios, lines = [], ["### pgbench -c 2, pgbench_accounts imported and not\n", "| pair | not imported, TPS | imported, TPS | ratio |", "|---|---|---|---|"]
    for i in range(o.pairs):
        tps = {}
        for imported in ((False, True) if i % 2 == 0 else (True, False)):
            bench.postgres.execute("SELECT gpuvm.%s('pgbench_accounts')" % ("import" if imported else "release"))
            bench.postgres.execute("CHECKPOINT")
            tps[imported] = float(re.search(r"^tps = ([0-9.]+)", pgbench(bench, "-n", "-c", "2", "-j", "2", "-T", str(o.seconds)), re.M)[1])
        ratios.append(tps[True] / tps[False])
        lines.append(f"| {i + 1} | {tps[False]:.0f} | {tps[True]:.0f} | {ratios[-1]:.3f} |")
        bench.progress(lines[-1])
    mean, n = statistics.mean(ratios), len(ratios)
    bound = mean - T95[max(d for d in T95 if d <= n - 1)] * statistics.stdev(ratios) / math.sqrt(n) if n > 1 else float("nan")
    lines.append(f"\nMean ratio {mean:.3f}; lower 95% bound {bound:.3f}.")
    bench.tables.append("\n".join(lines) + "\n")
    bench.bar(f"TPS imported / not imported, {n} pairs of {o.seconds} s: lower 95% bound", bound, TPS_RATIO, "", least=True)


def pgbench(bench, *args):
    bindir = subprocess.run(["pg_config", "--bindir"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    done = subprocess.run([os.path.join(bindir, "pgbench"), *args, "-h", bench.options.host or bench.cluster.host, "-p", "5432", "-U", "postgres", "postgres"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pgbench failed: {done.stdout}{done.stderr}")
    return done.stdout
