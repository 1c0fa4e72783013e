"""A connection of the storm, and what its processes tell the one that started them."""
import collections
import os
import random
import signal
import sys
import time
import traceback

import psycopg2

from pgcluster import connect

# What PostgreSQL raises by itself when sessions meet: serialization failure, deadlock, lock timeout.
CONFLICTS = ("40001", "40P01", "55P03")


class Conflict(Exception):
    """The transaction cannot go on, as it could not without gpuvm."""


class Session:
    def __init__(self, options, settings):
        self.conn = connect(options.host, dbname=options.database)
        for name, value in settings.items():
            self.run(f"SET {name} = '{value}'")

    def run(self, sql, *args):
        with self.conn.cursor() as cur:
            cur.execute(sql, *args)
            return cur.fetchall() if cur.description else []

    def value(self, sql):
        return self.run(sql)[0][0]

    def attempt(self, sql):
        """Under a savepoint: (rows, None), or (None, (SQLSTATE, message)). A conflict is raised."""
        self.run("SAVEPOINT attempt")
        try:
            rows = self.run(sql)
            self.run("RELEASE SAVEPOINT attempt")
            return rows, None
        except psycopg2.Error as e:
            if self.conn.closed or e.pgcode is None:
                raise
            if e.pgcode in CONFLICTS:
                raise Conflict(e.pgcode) from e
            detail = e.diag.message_detail
            self.run("ROLLBACK TO SAVEPOINT attempt")
            return None, (e.pgcode, e.diag.message_primary + (f" ({detail})" if detail else ""))

    def end(self, how="ROLLBACK"):
        """Whatever state the transaction is in; ignores what a rollback warns of."""
        if not self.conn.closed:
            self.run(how)

    @property
    def in_transaction(self):
        return self.conn.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE


class Worker:
    """One process of the storm: `step` again and again until the time is over."""

    def __init__(self, number, options, tables, report):
        self.number, self.options, self.tables, self.report = number, options, tables, report
        self.name = f"{type(self).__name__.lower()} {number}"
        self.counts = collections.Counter()

    def main(self, stop):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.rng = random.Random(f"{self.options.seed}:{self.name}")
        try:
            self.start()
            while not stop.is_set() and os.getppid() == self.options.pid:
                self.step()
        except Exception:
            self.fail("failed with\n" + traceback.format_exc())
        self.report.put((self.name, self.counts, None))

    def fail(self, text):
        self.counts["failures"] += 1
        self.report.put((self.name, None, text))

    def pause(self, most):
        time.sleep(self.rng.random() * most)

    def unexpected(self, e, sql):
        """An error that PostgreSQL would not give."""
        self.fail(f"an error that PostgreSQL would not give: {e.pgcode} {str(e).strip()}\n  {sql}")


def shown(value):
    return str(value) if len(str(value)) < 4000 else str(value)[:4000] + " ..."


def log(text):
    print(text, flush=True)
    sys.stdout.flush()
