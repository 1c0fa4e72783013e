"""Transactions of another database: every snapshot that is taken meanwhile has an xmin that is as old as they are.

VACUUM goes by the xmin of snapshots in use, an import by what its own snapshot sees.
"""
import argparse

from session import Session, Worker

DATABASE = "d_other"


class Stranger(Worker):
    def start(self):
        self.session = Session(argparse.Namespace(host=self.options.host, database=DATABASE), {})

    def step(self):
        self.session.run("BEGIN")
        self.session.run("SELECT pg_current_xact_id()")
        prepared = self.rng.random() < 0.3
        if prepared:
            self.session.run("PREPARE TRANSACTION 'd_stranger'")
        self.pause(1)
        self.session.run("ROLLBACK PREPARED 'd_stranger'" if prepared else "COMMIT")
        self.counts["prepared" if prepared else "transactions"] += 1
        self.pause(0.3)
