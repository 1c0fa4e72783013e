"""Write skew under SERIALIZABLE: of each pair one must stay on duty; who reads that both are leaves.

Every transaction reads its pair, on the virtual machine where nobody else is writing, and then changes its own half of
it. PostgreSQL fails one of two that would both leave; so must it with gpuvm, for which what a scan has read is locked
before it is looked at (rule 7).
"""
import time

import psycopg2

from session import CONFLICTS, Session, Worker

PAIRS = 8
SETTINGS = {"lock_timeout": "2s", "deadlock_timeout": "200ms", "statement_timeout": "60s", "client_min_messages": "error", "gpuvm.force": "on",
            "default_transaction_isolation": "serializable"}


def create(cur):
    cur.execute("DROP TABLE IF EXISTS d_skew")
    cur.execute("CREATE TABLE d_skew (pair int, half int, duty bool, pad int, PRIMARY KEY (pair, half)) WITH (fillfactor = 50)")
    cur.execute(f"INSERT INTO d_skew SELECT i / 2, i % 2, true, 0 FROM generate_series(0, {2 * PAIRS - 1}) i")
    # other blocks, which stay as they are
    cur.execute("INSERT INTO d_skew SELECT i, 0, true, 0 FROM generate_series(1000, 3000) i")
    cur.execute("SELECT gpuvm.import('d_skew')")


class Skew(Worker):
    def start(self):
        self.session = Session(self.options, {**SETTINGS, "gpuvm.device": self.options.device})
        self.checked = time.time()

    def step(self):
        try:
            self.shift()
        except psycopg2.Error as e:
            if self.session.conn.closed:
                raise
            if e.pgcode in CONFLICTS:
                self.counts["skew conflicts"] += 1
            else:
                self.unexpected(e, "d_skew")
            self.session.end()
        if time.time() > self.checked + 1:
            self.check()
            self.checked = time.time()
        self.pause(self.options.pause / 4)

    def shift(self):
        s, pair, half = self.session, self.rng.randrange(PAIRS), self.rng.randrange(2)
        s.run("BEGIN")
        on = int(s.value(f"SELECT count(*) FROM d_skew WHERE pair = {pair} AND duty"))
        self.pause(0.01)
        s.run(f"UPDATE d_skew SET duty = {on < 2} WHERE pair = {pair} AND half = {half}")
        s.run("COMMIT")
        self.counts["skew shifts"] += 1
        self.counts["skew leaves"] += on >= 2

    def check(self):
        s = self.session
        s.run("SET gpuvm.enabled = off")
        s.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        bad = s.run(f"SELECT pair FROM d_skew WHERE pair < {PAIRS} GROUP BY pair HAVING NOT bool_or(duty)")
        if bad:
            self.fail(f"write skew: nobody is on duty in pairs {bad}")
            s.end()
            s.run(f"UPDATE d_skew SET duty = true WHERE pair < {PAIRS} AND half = 0")
        s.end()
        s.run("SET gpuvm.enabled = on")
        if self.rng.random() < 0.5:
            s.run("VACUUM d_skew")
            s.run("SELECT gpuvm.refresh('d_skew')")
