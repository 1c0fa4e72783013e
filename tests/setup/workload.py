"""Fixed queries over fixed data, PostgreSQL's answers against gpuvm's: what TPC-H's, TPC-DS's and SSB's suites share.

Each query's answer must be PostgreSQL's, row by row and to the last digit, when the machine is forced and when the
planner decides. EXPLAIN ANALYZE of the forced one tells what PostgreSQL still ran itself. The suite has a list of that:
what is not in it is a regression, and what is in it but did not run must leave it.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import psycopg2

from pgcluster import Cluster, connect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What PostgreSQL's nodes do. Of the others Append, Limit, Hash, Materialize and their like only pass on what these find.
KINDS = {"Seq Scan": "scan", "Index Scan": "scan", "Index Only Scan": "scan", "Bitmap Heap Scan": "scan", "Tid Scan": "scan", "CTE Scan": "cte",
         "Hash Join": "join", "Merge Join": "join", "Nested Loop": "join", "Aggregate": "aggregate", "Group": "aggregate", "Unique": "aggregate",
         "SetOp": "setop", "WindowAgg": "window", "Sort": "sort", "Incremental Sort": "sort"}
# One process each: EXPLAIN counts a node's loops over all workers.
SETTINGS = {"jit": "off", "work_mem": "64MB", "max_parallel_workers_per_gather": "0", "statement_timeout": "120s", "client_min_messages": "warning",
            "DateStyle": "ISO, MDY", "TimeZone": "UTC"}
# TPC-H's foreign keys, as PostgreSQL's users have them.
TPCH_INDEXES = {"nation": ["n_regionkey"], "supplier": ["s_nationkey"], "customer": ["c_nationkey"], "partsupp": ["ps_suppkey"],
                "orders": ["o_custkey"], "lineitem": ["l_partkey, l_suppkey", "l_suppkey"]}
OFF = {"gpuvm.enabled": "off", "gpuvm.force": "off", "gpuvm.require": "any"}
PLANNED = {"gpuvm.enabled": "on", "gpuvm.force": "off", "gpuvm.require": "any", "gpuvm.whole_query": "on"}
FORCED = {"forced": {"gpuvm.enabled": "on", "gpuvm.force": "on", "gpuvm.whole_query": "off"},
          "in stages": {"gpuvm.enabled": "on", "gpuvm.force": "on", "gpuvm.whole_query": "on"}}


def read_queries(path):
    """{name: query} of a file where a line "-- NAME" stands above each."""
    with open(path, encoding="utf-8") as f:
        parts = re.split(r"^-- (Q[\d.]+b?)$", f.read(), flags=re.M)[1:]
    return {name: sql.strip().rstrip(";") for name, sql in zip(parts[::2], parts[1::2])}


def read_tables(path):
    """{table: its CREATE TABLE} of a schema."""
    with open(path, encoding="utf-8") as f:
        return {m[1]: m[0] for m in re.finditer(r"^CREATE TABLE (\w+) \(.*?\);$", f.read(), re.M | re.S)}


def definitions_of(create):
    """[column's definition] of a CREATE TABLE, without its keys."""
    body = create[create.index("(") + 1:create.rindex(")")]
    parts = (" ".join(part.split()) for part in re.split(r",(?![^(]*\))", body))
    return [part.replace(" PRIMARY KEY", " NOT NULL") for part in parts if not part.startswith("PRIMARY KEY")]


def columns_of(create):
    """[(name, type)] of a CREATE TABLE."""
    return [tuple(definition.split()[:2]) for definition in definitions_of(create)]


def generate(benchmark, scale, folder, *options):
    """{table: its files} by the generator of TPC-H and TPC-DS, made once."""
    if not os.path.exists(folder):
        places = (os.path.join(ROOT, "build", "venv", "bin"), os.path.dirname(sys.executable), os.environ["PATH"])
        program = shutil.which("tpcgen-cli", path=os.pathsep.join(places))
        if not program:
            raise SystemExit(f"tpcgen-cli is missing: tests/setup/install.sh --{benchmark}")
        shutil.rmtree(folder + ".new", ignore_errors=True)
        subprocess.run([program, benchmark, "csv", "-s", f"{scale:g}", *options, "--output-dir", folder + ".new"],
                       check=True, stdout=subprocess.DEVNULL)
        os.rename(folder + ".new", folder)
    files = {}
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.csv"), recursive=True)):
        files.setdefault(os.path.basename(path).split(".")[0], []).append(path)
    return files


def set_all(conn, settings):
    with conn.cursor() as cur:
        for name, value in settings.items():
            cur.execute(f"SET {name} = '{value}'")


def load(host, database, tables, files, indexes, threads):
    """A database with these tables, their rows, and what PostgreSQL would like to have; all imported."""
    admin = connect(host)
    with admin.cursor() as cur:
        cur.execute(f"DROP DATABASE IF EXISTS {database}")
        cur.execute(f"CREATE DATABASE {database} TEMPLATE template0")
    admin.close()
    conn = connect(host, dbname=database)
    with conn.cursor() as cur:
        cur.execute("CREATE EXTENSION gpuvm")
        for create in tables.values():
            cur.execute(create)
    conn.close()

    def in_a_session(step):
        def run(table):
            own = connect(host, dbname=database)
            with own.cursor() as cur:
                step(cur, table)
            own.close()
        return run

    def fill(cur, table):
        for path in files[table]:
            with open(path, "rb") as f:
                cur.copy_expert(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)", f, size=1 << 20)
        for index in indexes.get(table, ()):
            cur.execute(f"CREATE INDEX ON {table} ({index})")

    def vacuum(cur, table):
        cur.execute(f"VACUUM (FREEZE) {table}")

    def take(cur, table):
        cur.execute(f"ANALYZE {table}")
        cur.execute(f"SELECT gpuvm.import('{table}'), (SELECT count(*) FROM {table})")
        imported, rows = cur.fetchone()
        if imported != rows:
            raise SystemExit(f"gpuvm.import('{table}') imported {imported} of {rows} rows")
    # One step after the other: a COPY or ANALYZE would keep a VACUUM from finding rows visible to all. The largest tables
    # first: with two processors the others fit beside them.
    largest = sorted(tables, key=lambda t: -sum(map(os.path.getsize, files[t])))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for step in (fill, vacuum, take):
            list(pool.map(in_a_session(step), largest))


def nodes(plan, subplan=False):
    yield plan, subplan
    for child in plan.get("Plans", ()):
        yield from nodes(child, child.get("Parent Relationship") == "SubPlan")


FIGURES = {"device": "Device", "engine_ms": "Engine Time", "device_ms": "Device Time", "rows_in": "VM Rows In",
           "rows_out": "VM Rows Out"}


def programs_of(plan):
    """What EXPLAIN (ANALYZE, FORMAT JSON) says of each of gpuvm's nodes that ran: [{one of FIGURES: value}]"""
    ran = (n for n, _ in nodes(plan) if n.get("Custom Plan Provider") == "GpuVM" and n.get("Actual Loops", 0) > 0)
    return [{name: node[shown] for name, shown in FIGURES.items() if shown in node} for node in ran]


def left_to_postgresql(plan, device):
    """What is not the machine's of an executed plan: a set of KINDS, of "subplan" for one that runs for each row, and of why a node of ours did not run."""
    found = set()
    for node, subplan in nodes(plan):
        loops = node.get("Actual Loops", 0)
        if loops == 0:
            continue
        if subplan and loops > 1:
            found.add("subplan")
        if node.get("Custom Plan Provider") == "GpuVM":
            ran = str(node.get("Device", "not shown")).lower().split(":")[0]
            if ran != device:
                found.add(f"device {ran} ({node.get('Fallback') or node.get('Device Fallback')})")
        elif node["Node Type"] in KINDS:
            found.add(KINDS[node["Node Type"]])
    return found


class Session:
    def __init__(self, host, database):
        self.conn = connect(host, dbname=database)
        set_all(self.conn, SETTINGS)

    def ask(self, sql, settings):
        """(rows, seconds); an error is its text in place of the rows."""
        set_all(self.conn, settings)
        started = time.time()
        try:
            with self.conn.cursor() as cur:
                cur.execute(sql)
                rows = cur.fetchall()
        except psycopg2.Error as e:
            rows = str(e).strip()
        return rows, time.time() - started


def difference(mine, theirs):
    if mine == theirs:
        return None
    if isinstance(mine, str) or isinstance(theirs, str):
        return f"  gpuvm: {mine if isinstance(mine, str) else f'{len(mine)} rows'}\n  PostgreSQL: {theirs if isinstance(theirs, str) else f'{len(theirs)} rows'}"
    for i in range(max(len(mine), len(theirs))):
        if mine[i:i + 1] != theirs[i:i + 1]:
            return f"  row {i + 1} of {len(theirs)} (gpuvm has {len(mine)})\n  gpuvm: {mine[i:i + 1]}\n  PostgreSQL: {theirs[i:i + 1]}"


def loops(allowed):
    return {"enable_nestloop": "on" if allowed else "off"}


def left_by(session, sql, settings, device, wrong):
    """What PostgreSQL itself runs of the query: a set of KINDS and reasons."""
    plan, _ = session.ask("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + sql, settings)
    if isinstance(plan, str):
        wrong.append(plan)
        return {"error"}
    tree = json.loads(plan[0][0])[0]["Plan"]
    left = left_to_postgresql(tree, device)
    if not any(n.get("Custom Plan Provider") == "GpuVM" for n, _ in nodes(tree)):
        left.add("everything")
    return left


def check(options, host, database, queries, expected, without_loops):
    """Asks all; the failures. `expected`: {mode of FORCED: for each query what is left to PostgreSQL}."""
    session = Session(host, database)
    failures = 0
    whole = dict.fromkeys(expected, 0)
    if options.only:
        queries = {name: queries[name] for name in options.only}
    for name, sql in queries.items():
        wrong, figures = [], []
        own = loops(without_loops is None or name not in without_loops)
        theirs, by_postgresql = session.ask(sql, {**OFF, **loops(without_loops is None)})
        if isinstance(theirs, str):
            wrong.append(f"PostgreSQL: {theirs}")
        elif not theirs:
            wrong.append("no rows: an answer that says nothing")
        for mode, settings in {**{m: FORCED[m] for m in expected}, "as planned": PLANNED}.items():
            may = set(expected[mode].get(name, "").split()) if mode in expected else None
            settings = {**settings, "gpuvm.device": options.device, **own}
            if may is not None:
                settings["gpuvm.require"] = "any" if "scan" in may else options.device
            mine, seconds = session.ask(sql, settings)
            figures.append(f"{mode} {seconds * 1e3:.0f} ms")
            found = difference(mine, theirs)
            if found:
                wrong.append(f"{mode}:\n{found}")
            if may is None:
                continue
            left = left_by(session, sql, settings, options.device, wrong)
            whole[mode] += not left
            figures[-1] += f" (left to PostgreSQL: {', '.join(sorted(left)) or 'nothing'})"
            if left - may:
                wrong.append(f"{mode}, left to PostgreSQL is more than was: {', '.join(sorted(left - may))}")
            elif may - left:
                wrong.append(f"{mode}, its list can be shorter: {', '.join(sorted(may - left))} is not left to PostgreSQL any more")
            if options.show:
                print(sql)
                with session.conn.cursor() as cur:
                    cur.execute("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " + sql)
                    print("\n".join(row[0] for row in cur.fetchall()))
        print(f"{name}: PostgreSQL {by_postgresql * 1e3:.0f} ms, {', '.join(figures)}", flush=True)
        for text in wrong:
            print(f"DIFFERENCE in {name}: {text}", flush=True)
        failures += bool(wrong)
    return len(queries), failures, whole


def main(doc, database, scale, prepare, queries, expected, without_loops=None, in_stages=None):
    """Makes the tables and asks the queries, as the command line says; the exit status.

    `prepare(options)`: (tables, files, indexes). `queries(scale)`: {name: query}.
    `expected`: {query: what of it is left to PostgreSQL}; `in_stages`: the same for whole statements in stages.
    `without_loops`: gpuvm is asked these without nested loops, which would take too long, and PostgreSQL all."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", help="folder of the socket of a running server with gpuvm; otherwise a private cluster is made")
    parser.add_argument("--device", default=os.environ.get("GPUVM_TEST_DEVICE", "cpu"), choices=("cpu", "cuda"), help="default: GPUVM_TEST_DEVICE, or cpu")
    parser.add_argument("--scale", type=float, default=scale, help="scale factor (default %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="QUERY", help="these alone")
    parser.add_argument("--show", action="store_true", help="print plans")
    parser.add_argument("--loaded", action="store_true", help="the database is there from the run before")
    options = parser.parse_args()
    queries = queries(options.scale)
    if set(options.only or ()) - set(queries):
        parser.error(f"there is no {', '.join(sorted(set(options.only) - set(queries)))}")
    expected = {"forced": expected} if in_stages is None else {"forced": expected, "in stages": in_stages}
    started = time.time()
    cluster = None if options.host else Cluster.create(f"tmp_check/{database}", shared_buffers="256MB", autovacuum="off", gpuvm__refresh="off")
    host = options.host or cluster.host
    try:
        if not options.loaded:
            load(host, database, *prepare(options), threads=os.cpu_count())
            print(f"{database}, scale {options.scale:g}, loaded and imported in {time.time() - started:.1f} s", flush=True)
        n, failures, whole = check(options, host, database, queries, expected, without_loops)
        every = ", ".join(f"{mode} {count}" for mode, count in whole.items())
        print(f"{n} queries, {failures} failures; every part on the machine: {every} ({time.time() - started:.1f} s)")
        return 1 if failures else 0
    finally:
        if cluster:
            cluster.drop()
