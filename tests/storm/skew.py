"""Write skew under SERIALIZABLE: of each pair one must stay on duty; who reads that both are leaves.

Two sessions read the same pair on the virtual machine, a moment apart, and each then changes its own half. PostgreSQL
fails one of them; so must it with gpuvm, for which what a scan reads is locked before it is looked at (rule 7). The pairs
were vacuumed and refreshed since they were changed last, so that most of them are served from tablets.
"""
import threading
import time

import psycopg2

from session import CONFLICTS, Session, Worker

PAIRS = 64
SETTINGS = {"lock_timeout": "2s", "deadlock_timeout": "200ms", "statement_timeout": "60s", "client_min_messages": "error", "gpuvm.force": "on"}


def create(cur):
    cur.execute("DROP TABLE IF EXISTS d_skew")
    # a block for each pair
    cur.execute("CREATE TABLE d_skew (pair int, half int, duty bool, pad char(3500), PRIMARY KEY (pair, half))")
    cur.execute("ALTER TABLE d_skew ALTER COLUMN pad SET STORAGE PLAIN")
    cur.execute(f"INSERT INTO d_skew SELECT i / 2, i % 2, true, '' FROM generate_series(0, {2 * PAIRS - 1}) i")
    cur.execute("SELECT gpuvm.import('d_skew')")


class Skew(Worker):
    def start(self):
        settings = {**SETTINGS, "gpuvm.device": self.options.device}
        self.halves = [Session(self.options, settings) for _ in range(2)]
        self.session = Session(self.options, settings)
        self.pair, self.kept = 0, time.time()

    def step(self):
        self.pair = (self.pair + 1) % PAIRS
        self.seen, self.error, self.by_vm = [None, None], [None, None], 0
        other = threading.Thread(target=self.leave, args=(1, self.rng.random() * 0.02))
        other.start()
        self.leave(0, 0)
        other.join()
        for error in self.error:
            if error and error.pgcode not in CONFLICTS:
                self.unexpected(error, "d_skew")
        left = [half for half in range(2) if self.seen[half] == "2" and not self.error[half]]
        self.counts["rounds"] += 1
        self.counts["both on the VM"] += self.by_vm == 2
        self.counts["one left"] += len(left) == 1
        if len(left) == 2:
            self.fail(f"write skew: both have left pair {self.pair}, each having seen the other on duty")
        try:
            self.session.run(f"UPDATE d_skew SET duty = true WHERE pair = {self.pair} AND NOT duty")
            if time.time() > self.kept + 0.5:
                self.session.run("VACUUM d_skew")
                self.session.run("SELECT gpuvm.refresh('d_skew')")
                self.kept = time.time()
        except psycopg2.Error as e:
            if e.pgcode not in CONFLICTS:
                raise
        self.pause(self.options.pause / 2)

    def leave(self, half, delay):
        s = self.halves[half]
        sql = f"SELECT count(*) FROM d_skew WHERE pair = {self.pair} AND duty"
        try:
            time.sleep(delay)
            s.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
            s.run(f"SET LOCAL gpuvm.require = '{self.options.device}'")
            rows, error = s.attempt(sql)
            if error and error[0] == "55000":
                s.run("SET LOCAL gpuvm.require = 'any'")
                rows, error = s.attempt(sql)
            else:
                self.by_vm += 1
            self.seen[half] = rows[0][0]
            s.run("SET LOCAL gpuvm.require = 'any'")
            s.run(f"UPDATE d_skew SET duty = false WHERE pair = {self.pair} AND half = {half}")
            s.run("COMMIT")
        except psycopg2.Error as e:
            self.error[half] = e
            s.end()
        except Exception as e:	# a conflict that attempt() met
            self.error[half] = e.__cause__
            s.end()
