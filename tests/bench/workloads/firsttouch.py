"""The first query on columns that are not on the GPU yet: at most 5 ms and their bytes at 45 GB/s.

Each measurement imports the table anew (new tablets, which no device has), lets
gpuvmd pin them, and runs one query once.
"""
import statistics
import time

from workloads import papers

ROUNDS = 3
FIXED_MS = 5
BYTES_PER_MS = 45e6
QUERIES = {
    "count(*) of query 1": papers.counted(papers.QUERIES[0]),
    "count(*) of query 2": papers.counted(papers.QUERIES[1]),
    "query 11": papers.QUERIES[10],
    "seven columns": "SELECT max(id), max(uniformi), max(normali5), max(normali20), max(uniformf), max(normalf5), max(normalf20) FROM test",
}


def run(bench):
    if not bench.gpuvm:
        return
    rows = bench.options.rows or papers.ROWS
    bench.load(papers, rows)
    for label, sql in QUERIES.items():
        bench.progress(f"first touch, {label}")
        times, again, figures = [], [], {}
        for _ in range(ROUNDS):
            bench.postgres.execute(f"SELECT gpuvm.release('{papers.TABLE}')")
            bench.postgres.execute(f"SELECT gpuvm.import('{papers.TABLE}', vacuum => false)")
            time.sleep(1)
            bench.gpuvm.scan("SELECT count(*) FROM bench_ready")  # the session is warm, the table is not
            ms, _, figures = bench.gpuvm.scan(sql)
            times.append(ms)
            again.append(min(bench.gpuvm.scan(sql)[0] for _ in range(5)))
        ms = statistics.median(times)
        bench.results.append(dict(workload="firsttouch", query=label, sql=sql, ms={"gpuvm": ms, "gpuvm, again": statistics.median(again)},
                                  figures={"gpuvm": figures}, device=f"{figures['Device']} {figures.get('Transfer', '')}".strip(), note="",
                                  rows=1, bytes=figures.get("Bytes Read", 0)))
        if bench.options.device == "cuda":
            bench.bar(f"first touch, {label} ({figures['Bytes Read'] / 1e6:.0f} MB)", ms, FIXED_MS + figures["Bytes Read"] / BYTES_PER_MS)
    lines = ["### First touch: columns not on the device yet\n", "| query | MB | first, ms | again, ms | limit, ms | |", "|---|---|---|---|---|---|"]
    for r in bench.results:
        if r["workload"] == "firsttouch":
            lines.append(f"| {r['query']} | {r['bytes'] / 1e6:.1f} | {r['ms']['gpuvm']:.2f} | {r['ms']['gpuvm, again']:.2f} | "
                         f"{FIXED_MS + r['bytes'] / BYTES_PER_MS:.2f} | {r['device']} |")
    bench.tables.append("\n".join(lines) + "\n")
