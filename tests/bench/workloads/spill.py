"""Groups and joins beyond memory: each row is a group of its own, or has a key of its own, within less and less of what that takes.

The first measurement has no limit. Then gpuvm has a quarter (gpuvm.engine_memory) and a sixteenth of what it took, at least 32 MB, and
DuckDB the same share of what it took. PostgreSQL has its work_mem, and spills too.
"""
import json

from workloads import generated

ROWS = 9_000_000
TABLE = "spill_facts"
SHARES = (1, 4, 16)
LEAST_MB = 32
QUERIES = {
    "keys of 31 bits": "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS l, max(k) AS h FROM {t} GROUP BY k ORDER BY n DESC, k LIMIT 10",
    "wide keys": "SELECT w, count(*) AS n, sum(v) AS s, min(v) AS l, max(k) AS h FROM {t} GROUP BY w ORDER BY n DESC, w LIMIT 10",
    "a join, 31 bits": "SELECT count(*) AS n, sum(a.v + b.v) AS s, max(b.w) AS h FROM {t} a JOIN {t} b ON a.k = b.k",
    "a join, wide keys": "SELECT count(*) AS n, sum(a.v + b.v) AS s, max(b.k) AS h FROM {t} a JOIN {t} b ON a.w = b.w",
}
JOIN_BAR = 3  # times what it takes with all of its memory, within a quarter
PEER = "DuckDB"


def columns(rows):
    return [("k", "int", f"i * 1000003 % {rows}"), ("w", "bigint", f"(i * 1000003 % {rows}) * 1000000007"), ("v", "int", f"{generated.mixed(3)} % 1000")]


def limit_gpuvm(bench, mb):
    bench.postgres.execute(f"ALTER SYSTEM SET gpuvm.engine_memory = '{mb}MB'" if mb else "ALTER SYSTEM RESET gpuvm.engine_memory")
    bench.postgres.execute("SELECT pg_reload_conf()")
    bench.postgres.execute("SELECT pg_sleep(1)")


def duckdb_takes(bench, sql):
    """Its peak in MB."""
    report = json.loads(bench.duckdb.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")[0][1])
    return int(report["system_peak_buffer_memory"]) >> 20


def run(bench):
    rows = bench.options.rows or ROWS
    generated.load(bench, TABLE, columns(rows), rows)
    bench.postgres.limit = bench.options.peer_seconds
    # what an earlier query has built is not to be found
    bench.postgres.execute("ALTER SYSTEM SET gpuvm.index_memory = 0")
    lines = []
    for label, sql in QUERIES.items():
        sql = sql.format(t=TABLE)
        gpuvm_mb = duckdb_mb = whole = 0
        for share in SHARES:
            bench.progress(f"spill, {label}, 1/{share}")
            limit_gpuvm(bench, share > 1 and max(LEAST_MB, gpuvm_mb // share))
            if bench.duckdb:
                duckdb_mb = duckdb_mb or duckdb_takes(bench, sql)
                bench.duckdb.conn.execute(f"SET memory_limit = '{max(LEAST_MB, duckdb_mb // share) if share > 1 else 100 * duckdb_mb}MB'")
            bench.known = {}
            bench.check(f"spill, {label}, 1/{share}", sql, others=[bench.duckdb], text=True, truth=bench.parallel)
            row = bench.measure("spill", f"{label}, 1/{share}", sql, generated.engines(bench) if share == 1 else [bench.duckdb, bench.gpuvm])
            found = row["figures"].get("gpuvm", {})
            gpuvm_mb = gpuvm_mb or int(found.get("Engine Memory", 0)) >> 10
            ms = row["ms"]
            times = " | ".join(f"{ms[e.name]:,.0f}" if e.name in ms else "" for e in generated.engines(bench))
            lines.append(f"| {label} | {'all' if share == 1 else f'1/{share}'} | {times}"
                         f" | {int(found.get('Engine Memory', 0)) >> 10} | {int(found.get('Spilled', 0)) >> 10} | {found.get('Passes', 1)} | {max(LEAST_MB, duckdb_mb // share)} |")
            whole = whole or ms.get("gpuvm", 0)
            if share == 4 and whole and "JOIN" in sql:
                bench.bar(f"{label}, 1/{share} of the memory, over all of it", ms["gpuvm"] / whole, JOIN_BAR, "x")
            if "gpuvm" in ms and PEER in ms:
                bench.bar(f"{label}, 1/{share} of the memory, over DuckDB", ms["gpuvm"] / ms[PEER], 1, "x")
    bench.postgres.execute("ALTER SYSTEM RESET gpuvm.index_memory")
    limit_gpuvm(bench, 0)
    bench.postgres.limit = None
    names = " | ".join(e.name for e in generated.engines(bench))
    bench.tables.append(f"### Groups and joins within less memory: {rows:,} rows, as many keys, ms\n\n"
                        f"| keys | memory | {names} | gpuvm took, MB | spilled, MB | passes | DuckDB's limit, MB |\n|---|---|" +
                        "---|" * len(generated.engines(bench)) + "---|---|---|---|\n" + "\n".join(lines) + "\n")
