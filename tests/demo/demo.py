"""The papers' thirteen queries, by PostgreSQL and by gpuvm; see demo.sh."""
import argparse
import json
import os
import statistics
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, name) for name in ("setup", "diff", "bench")]

import compare  # noqa: E402
import psycopg2  # noqa: E402
from engines import Multiset, plan_nodes  # noqa: E402
from pgcluster import Cluster  # noqa: E402
from workloads import papers  # noqa: E402

RUNS = 3


def execute(conn, sql):
    with conn.cursor() as cur:
        cur.execute(sql)
        return cur.fetchall() if cur.description else []


def answer(conn, sql):
    found = Multiset()
    with conn.cursor() as cur:
        cur.copy_expert(f"COPY ({sql}) TO STDOUT", found)
    return found


def measure(conn, sql):
    """(rows, median execution time in ms, engine) of some warm runs."""
    times = []
    for _ in range(RUNS + 1):
        plan = json.loads(execute(conn, f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}")[0][0])[0]
        times.append(plan["Execution Time"])
    engines = [n.get("Device", "?") for n in plan_nodes(plan["Plan"]) if n.get("Custom Plan Provider") == "GpuVM"]
    return int(plan["Plan"]["Actual Rows"]), statistics.median(times[1:]), ", ".join(engines) or "PostgreSQL"


def import_with_progress(cluster, relation):
    """gpuvm.import, with what gpuvm.import_progress says while it runs."""
    outcome = {}

    def work():
        try:
            conn = cluster.connect()
            execute(conn, "SET client_min_messages = notice")
            outcome["rows"] = int(execute(conn, f"SELECT gpuvm.import('{relation}')")[0][0])
            outcome["notices"] = conn.notices
        except psycopg2.Error as e:
            outcome["error"] = e

    worker = threading.Thread(target=work)
    watcher = cluster.connect()
    started = time.time()
    worker.start()
    shown = None
    while worker.is_alive():
        worker.join(0.05)
        with watcher.cursor() as cur:
            cur.execute("SELECT * FROM gpuvm.import_progress")
            for row in cur.fetchall():
                names = [d.name for d in cur.description]
                text = ", ".join(f"{n} {v}" for n, v in zip(names, row) if n not in ("pid", "datid", "datname", "relid", "relation"))
                if text != shown:
                    shown = text
                    print(f"    {time.time() - started:4.1f} s  {text}", flush=True)
    if "error" in outcome:
        raise outcome["error"]
    for notice in outcome["notices"]:
        print("    " + notice.strip())
    return outcome["rows"], time.time() - started


def check(off, on, number, sql):
    """None, or how gpuvm's answer differs."""
    column = papers.FLOAT_SUMS.get(number)
    if column is None:
        theirs, mine = answer(off, sql), answer(on, sql)
        return None if mine == theirs else f"{mine.lines} rows, PostgreSQL {theirs.lines} rows"
    mine = execute(on, sql)[0][0]
    n, exact, magnitude = execute(off, f"SELECT count({column}), sum({column}::float8), sum(abs({column}::float8)) "
                                       f"FROM {papers.TABLE}")[0]
    if compare.sums_equal("sum float4", mine, exact, magnitude, int(n)):
        return None
    return f"{mine}, but the sum as float8 is {exact}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows

    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    print("Starting a private cluster ...", flush=True)
    cluster = Cluster.create("demo", shared_buffers=f"{min(memory_mb // 4, 2048)}MB", max_wal_size="8GB", work_mem="64MB",
                             max_parallel_workers_per_gather=0)
    off, on = cluster.connect(), cluster.connect()
    execute(off, "CREATE EXTENSION gpuvm")
    execute(off, "SET gpuvm.enabled = off")

    print(f"Loading {rows:,} rows of the papers' data set ...", flush=True)
    execute(off, papers.create_sql())
    execute(off, papers.SEED_SQL)
    execute(off, papers.load_sql(rows))
    print(f"SELECT gpuvm.import('{papers.TABLE}') ...", flush=True)
    imported, seconds = import_with_progress(cluster, papers.TABLE)
    execute(off, f"ANALYZE {papers.TABLE}")
    print(f"    {imported:,} rows imported in {seconds:.1f} s, the vacuum included\n")

    print(f"EXPLAIN (ANALYZE, TIMING OFF), median of {RUNS} warm runs; PostgreSQL with one process.\n")
    print(f"{'query':>5} {'rows':>10} {'PostgreSQL ms':>14} {'gpuvm ms':>10} {'ratio':>8}  {'engine':<10} answers")
    differences = 0
    for number, sql in enumerate(papers.QUERIES, 1):
        count, postgres_ms, _ = measure(off, sql)
        execute(on, "SET gpuvm.require = vm")
        try:
            _, gpuvm_ms, engine = measure(on, sql)
            wrong = check(off, on, number, sql)
        except psycopg2.Error as e:
            differences += 1
            print(f"{number:>5} {count:>10,} {postgres_ms:>14.1f} {'-':>10} {'-':>8}  {'-':<10} {e.pgcode} {e.diag.message_primary}")
            continue
        differences += wrong is not None
        print(f"{number:>5} {count:>10,} {postgres_ms:>14.1f} {gpuvm_ms:>10.2f} {postgres_ms / gpuvm_ms:>7.1f}x  {engine:<10} "
              f"{'DIFFERENT: ' + wrong if wrong else 'equal'}", flush=True)
    print("\nAnswers are compared as multisets of rows; the float sum (query 11) as the exact sum, rounded once:\n"
          "see docs/semantics.md.")

    script = os.path.relpath(os.path.join(TESTS, "setup", "cluster.sh"))
    print(f"\nThe cluster is running. Open psql on it:   {script} psql {os.path.relpath(cluster.directory)}\n"
          f"Stop and remove it:                        {script} drop {os.path.relpath(cluster.directory)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
