#!/usr/bin/python3
"""How much of a workload has an algebra, and how long its translation takes.

    tests/bench/translations.py --host SOCKET SCHEMA QUERIES ...

SCHEMA makes the tables, which stay empty and are imported; QUERIES are files of statements, each behind a line
"-- NAME". Each is planned with gpuvm.whole_query = shadow; gpuvm.translations tells what came of it. Times are of the
fastest of --times plannings, and are those of the clock.
"""
import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "setup")]

from pgcluster import connect  # noqa: E402

DATABASE = "translations"


def statements(path):
    with open(path, encoding="utf-8") as f:
        parts = re.split(r"^-- (Q[\w.]+)\s*$", f.read(), flags=re.M)[1:]
    return [(name, one) for name, text in zip(parts[::2], parts[1::2]) for one in text.split(";") if one.strip()]


def make_tables(host, schema):
    admin = connect(host, dbname="postgres")
    with admin.cursor() as cur:
        cur.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cur.execute(f"CREATE DATABASE {DATABASE}")
    conn = connect(host, dbname=DATABASE)
    cur = conn.cursor()
    with open(schema, encoding="utf-8") as f:
        cur.execute("CREATE EXTENSION gpuvm; " + f.read())
    cur.execute("SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    for (table,) in cur.fetchall():
        cur.execute("SELECT gpuvm.import(%s)", (table,))
    cur.execute("SET gpuvm.whole_query = shadow")
    return cur


def outcomes(cur):
    cur.execute("SELECT outcome, statements, milliseconds FROM gpuvm.translations")
    return {outcome: (int(n), float(ms)) for outcome, n, ms in cur.fetchall()}


def translate(cur, sql, times):
    """(the outcome, the milliseconds)"""
    found = None
    for _ in range(times):
        before = outcomes(cur)
        cur.execute("EXPLAIN " + sql)
        for outcome, (n, ms) in outcomes(cur).items():
            if n > before[outcome][0] and (found is None or ms - before[outcome][1] < found[1]):
                found = outcome, ms - before[outcome][1]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", required=True, help="folder of the socket of a running server with gpuvm")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("schema")
    parser.add_argument("queries", nargs="+")
    options = parser.parse_args()
    cur = make_tables(options.host, options.schema)
    times = []
    done = translated = 0
    for path in options.queries:
        for name, sql in statements(path):
            outcome, ms = translate(cur, sql, options.times)
            done += 1
            times.append((ms, name))
            if outcome == "translated":
                translated += 1
            else:
                print(f"{name}: {outcome}")
    times.sort()
    print(f"{translated} of {done} translated; median {times[len(times) // 2][0]:.3f} ms, most {times[-1][0]:.3f} ms ({times[-1][1]})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
