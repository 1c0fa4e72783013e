"""Many heavy sessions whose time runs out, some of them canceled, and small ones beside them.

The heavy statements take some hundred milliseconds to seconds each, alone; their sessions have a statement_timeout of
TIMEOUT ms, and every tenth of a second one of them is canceled. What is late is measured from the timeout to the error
at the client. Ends of gpuvmd are counted by its process id; answers are PostgreSQL's, asked before and after.
"""
import random
import threading
import time

import psycopg2

ROWS = 4_000_000
TIMEOUT = 8000
HEAVY = ("SELECT a, count(*), sum(b) FROM overload_big GROUP BY a ORDER BY 2 DESC, 1 LIMIT 5",
         "SELECT count(*) FROM overload_big x JOIN overload_big y ON x.b = y.b AND x.a < y.a",
         "SELECT sum(c) FROM (SELECT b, a, c FROM overload_big ORDER BY c, a LIMIT 100000) q",
         "SELECT count(*) FROM overload_mid x, overload_mid y WHERE x.a < y.b + 3",
         "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY b ORDER BY a) r FROM overload_big) q",
         "SELECT count(DISTINCT a) FROM overload_big")
SMALL = "SELECT count(*), sum(b) FROM overload_tiny WHERE a < 50"
# heavy sessions, small ones, seconds between two cancels (0: none)
LOADS = ((8, 10, 0), (90, 10, 0.1))


def load(bench):
    rows = bench.options.rows or ROWS
    admin = bench.session("admin", require="any")
    for name, n, columns in (("overload_big", rows, "(hashint8(i) & 1048575)::int a, (hashint8(i + 7) & 65535)::int b, hashint8extended(i, 3) c"),
                             ("overload_mid", rows // 66, "i a, (hashint8(i) & 65535)::int b"), ("overload_tiny", 10_000, "i a, i % 10 b")):
        bench.progress(f"loading {name}")
        admin.execute(f"DROP TABLE IF EXISTS {name}")
        admin.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM generate_series(1, {n}) i")
        admin.execute(f"SELECT gpuvm.import('{name}')")
    return admin


def engine_pid(admin):
    return admin.value("SELECT substring(detail FROM 'PID (\\d+)') FROM gpuvm.status() WHERE backend = 'cpu'")


class Load:
    """Sessions for some seconds, and what became of their statements."""

    def __init__(self, bench, heavy, small, every, seconds):
        self.bench, self.every, self.seconds, self.end = bench, every, seconds, 0.0
        self.done, self.late, self.small, self.failed, self.pids = 0, [], [], [], {}
        self.lock = threading.Lock()
        # all are connected, and have planned a statement
        self.begin = threading.Barrier(heavy + small, self.set_end)
        threads = [threading.Thread(target=self.run_heavy, args=(i,)) for i in range(heavy)]
        threads += [threading.Thread(target=self.run_small) for _ in range(small)]
        threads += [threading.Thread(target=self.cancel)] * (every > 0)
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def set_end(self):
        self.end = time.monotonic() + self.seconds

    def cursor(self):
        session = self.bench.session("load", require="any")
        cursor = session.conn.cursor()
        cursor.execute(SMALL)
        return session.conn, cursor

    def run_heavy(self, number):
        conn, cursor = self.cursor()
        cursor.execute(f"SET statement_timeout = {TIMEOUT}")
        self.pids[number] = conn.info.backend_pid
        choice = random.Random(number)
        self.begin.wait()
        while time.monotonic() < self.end:
            begin = time.monotonic()
            try:
                cursor.execute(choice.choice(HEAVY))
                cursor.fetchall()
                with self.lock:
                    self.done += 1
            except psycopg2.errors.QueryCanceled as e:
                if "timeout" in str(e):
                    self.late.append((time.monotonic() - begin) * 1000 - TIMEOUT)
            except psycopg2.Error as e:
                self.failed.append(str(e))
                break
        conn.close()

    def run_small(self):
        conn, cursor = self.cursor()
        self.begin.wait()
        while time.monotonic() < self.end:
            begin = time.monotonic()
            cursor.execute(SMALL)
            cursor.fetchall()
            self.small.append((time.monotonic() - begin) * 1000)
            time.sleep(0.05)
        conn.close()

    def cancel(self):
        conn, cursor = self.cursor()
        choice = random.Random(7)
        while self.end == 0 or time.monotonic() < self.end:
            time.sleep(self.every)
            if self.pids:
                cursor.execute("SELECT pg_cancel_backend(%s)", (choice.choice(list(self.pids.values())),))
        conn.close()


def at(values, share):
    return f"{sorted(values)[min(int(len(values) * share), len(values) - 1)]:.0f}" if values else "-"


def run(bench):
    if not bench.gpuvm:
        return
    admin = load(bench)
    right = [bench.postgres.digest(sql) for sql in (SMALL, HEAVY[0])]
    seconds = bench.options.seconds
    lines = [f"### Overload: statement_timeout {TIMEOUT / 1000:g} s, {seconds} s each\n",
             "| heavy sessions | small ones | heavy statements a second | small ones: p50, p99, ms | timeouts, late by p50, p99, ms | ends of gpuvmd |",
             "|---|---|---|---|---|---|"]
    for heavy, small, every in LOADS:
        bench.progress(f"{heavy} heavy sessions, {small} small ones")
        before = engine_pid(admin)
        took = Load(bench, heavy, small, every, seconds)
        if took.failed:
            raise RuntimeError(f"a session failed: {took.failed[0]}")
        ended = engine_pid(admin) != before
        lines.append(f"| {heavy} | {small} | {took.done / seconds:.2f} | {at(took.small, .5)}, {at(took.small, .99)} | "
                     f"{len(took.late)}: {at(took.late, .5)}, {at(took.late, .99)} | {'some' if ended else 0} |")
        for sql, rows in zip((SMALL, HEAVY[0]), right):
            same = bench.gpuvm.digest(sql) == rows
            bench.checks.append((f"after {heavy} heavy sessions: {sql}", "gpuvm", "equal" if same else "DIFFERENT"))
    bench.tables.append("\n".join(lines) + "\n")
