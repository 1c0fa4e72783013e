"""The storm's writers: transactions of random changes, committed or not, VACUUM, DDL, and gpuvm's own functions."""
import io
import time

import psycopg2

from changes import Changes
from session import CONFLICTS, Session, Worker, shown

# "tuple concurrently updated": two commands that change one catalog row; PostgreSQL has no better code for it.
CATALOG_RACE = "tuple concurrently"
# What gpuvm.refresh says when another writer has released the table.
RELEASED = "is not imported\nHINT:  Import it with gpuvm.import()"
# Every table is left alone for so long, then for twice as long not: some are served without a delta.
QUIET_SECONDS = 4
SETTINGS = {"lock_timeout": "400ms", "deadlock_timeout": "200ms", "statement_timeout": "60s", "client_min_messages": "error",
            "gpuvm.enabled": "off"}
# Of every second writer programs find the rows that it changes.
BY_PROGRAMS = {"gpuvm.enabled": "on", "gpuvm.force": "on"}
# Statements on their own, and how often.
ALONE = {"vacuum": 24, "freeze": 5, "refresh": 12, "import": 6, "release": 2, "truncate": 1, "refill": 1, "add_column": 1, "drop_column": 1,
         "cut_tail": 2, "rewrite": 1, "analyze": 1, "lock_rows": 6, "prepared": 3, "size": 6, "import_rollback": 2}
# What is done to tables that are left alone, too.
UPKEEP = ("vacuum", "freeze", "refresh", "analyze")


class Writer(Worker):
    def start(self):
        self.session = Session(self.options, {**SETTINGS, **BY_PROGRAMS} if self.number % 2 else SETTINGS)
        self.changes = Changes(f"{self.options.seed}:{self.name}", self.tables, self.blocks)
        self.tables = self.changes.tables
        self.prepares = self.session.value("SHOW max_prepared_transactions") != "0"

    def blocks(self, relation):
        return int(self.session.value(f"SELECT pg_relation_size('{relation}') / current_setting('block_size')::int"))

    def step(self):
        self.pause(self.options.pause)
        table = self.choose()
        self.sql = []
        try:
            if self.rng.random() < 0.6:
                self.transaction(table)
            else:
                name = self.rng.choices(list(ALONE), ALONE.values())[0]
                if name in UPKEEP:
                    table = self.rng.choice(self.tables)
                self.counts[name] += 1
                getattr(self, name)(table)
        except psycopg2.Error as e:
            if self.session.conn.closed:
                raise
            if e.pgcode in CONFLICTS or CATALOG_RACE in str(e) or RELEASED in str(e):
                self.counts["conflicts"] += 1
            else:
                self.unexpected(e, shown("; ".join(self.sql)))
            self.session.end()

    def choose(self):
        phase = int(time.time() / QUIET_SECONDS)
        return self.rng.choices(self.tables, [0 if (phase + i) % 3 == 0 else 1 if t.rows < 100 else 4 for i, t in enumerate(self.tables)])[0]

    def do(self, sql, data=None):
        self.sql.append(sql)
        if data is None:
            return self.session.run(sql)
        with self.session.conn.cursor() as cur:
            return cur.copy_expert(sql, io.StringIO(data))

    def transaction(self, table):
        """One to five changes; some are rolled back to a savepoint, or at the end."""
        rng = self.rng
        level = rng.choice(("READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"))
        self.do(f"BEGIN ISOLATION LEVEL {level}")
        for _ in range(rng.choice((1, 1, 2, 5))):
            saved = rng.random() < 0.25
            if saved:
                self.do("SAVEPOINT s")
            if rng.random() < 0.1:
                self.do(*self.changes.copy(table, rng.choice((1, 10, 100))))
            else:
                self.do(self.changes.change(table))
            if saved:
                self.do(rng.choice(("ROLLBACK TO SAVEPOINT s", "RELEASE SAVEPOINT s")))
            if rng.random() < 0.2:
                self.pause(0.1)
            if rng.random() < 0.2:
                table = self.choose()
        end = "COMMIT" if rng.random() < 0.75 else "ROLLBACK"
        self.do(end)
        self.counts[end.lower()] += 1

    # -- on their own ---------------------------------------------------------------

    def relation(self, table):
        return self.rng.choice(table.imports)

    def vacuum(self, table):
        self.do(f"VACUUM {self.relation(table)}")

    def freeze(self, table):
        self.do(f"VACUUM (FREEZE{self.rng.choice(('', ', DISABLE_PAGE_SKIPPING'))}) {self.relation(table)}")

    def analyze(self, table):
        self.do(f"ANALYZE {self.relation(table)}")

    def rewrite(self, table):
        relation = self.relation(table)
        self.do(self.rng.choice((f"VACUUM FULL {relation}", f"CLUSTER {relation} USING {relation}_pkey")))

    def refresh(self, table):
        self.do(f"SELECT gpuvm.refresh('{self.relation(table)}')")

    def import_(self, table):
        self.do(f"SET gpuvm.tablet_size = '{self.rng.choice(self.options.tablet_sizes)}'")
        self.do(f"SELECT gpuvm.import('{self.relation(table)}'{self.rng.choice(('', ', vacuum => false'))})")

    def import_rollback(self, table):
        """Beside changes of the same transaction; and not published."""
        self.do("BEGIN")
        if self.rng.random() < 0.5:
            self.do(self.changes.change(table))
        self.do(f"SELECT gpuvm.import('{self.relation(table)}')")
        self.pause(0.05)
        self.do(self.rng.choice(("ROLLBACK", "COMMIT")))

    def release(self, table):
        """And imported again, so that there is something to be served."""
        relation = self.relation(table)
        self.do(f"SELECT gpuvm.release('{relation}')")
        self.pause(0.3)
        self.do(f"SELECT gpuvm.import('{relation}')")

    def truncate(self, table):
        self.do("BEGIN")
        self.do(f"TRUNCATE {self.relation(table)}")
        if self.rng.random() < 0.5:
            self.do(self.changes.insert(table))
        self.do(self.rng.choice(("COMMIT", "ROLLBACK", "ROLLBACK")))

    def refill(self, table):
        """TRUNCATE and COPY FREEZE, twice: the second adds rows to pages that are all-visible already."""
        if table.imports != [table.name]:
            return
        self.do("BEGIN")
        self.do(f"TRUNCATE {table.name}")
        for _ in range(2):
            sql, data = self.changes.copy(table, table.rows // 2)
            self.do(sql + " (FREEZE)", data)
        self.do("COMMIT")

    def add_column(self, table):
        """A name of its own, so that one comes as often as one goes; some are rolled back: only the default tells."""
        self.do("BEGIN")
        self.do(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS extra_{self.number} int DEFAULT {self.rng.randrange(100)}")
        self.do(self.rng.choice(("COMMIT", "ROLLBACK")))

    def drop_column(self, table):
        self.do(f"ALTER TABLE {table.name} DROP COLUMN IF EXISTS extra_{self.number}")

    def cut_tail(self, table):
        """Pages at the end without rows: VACUUM gives them back, and the next rows go to new ones."""
        relation = self.relation(table)
        self.do(f"DELETE FROM {relation} WHERE ctid >= '({int(self.blocks(relation) * 0.8)},0)'::tid")
        self.do(f"VACUUM {relation}")
        if self.rng.random() < 0.5:
            self.do(*self.changes.copy(table, table.rows // 10))

    def lock_rows(self, table):
        relation = self.relation(table)
        how = self.rng.choice(("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"))
        self.do("BEGIN")
        self.do(f"SELECT count(*) FROM (SELECT FROM {relation} WHERE {self.changes.where(relation)} FOR {how}) q")
        self.do(self.rng.choice(("COMMIT", "ROLLBACK")))

    def prepared(self, table):
        if not self.prepares:
            return
        name = f"storm {self.options.pid} {self.number}"
        self.do("BEGIN")
        self.do(self.changes.change(table))
        self.do(f"PREPARE TRANSACTION '{name}'")
        self.pause(0.2)
        self.do(f"{self.rng.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{name}'")

    def size(self, table):
        """Keeps the table near its first number of rows."""
        rows = int(self.session.value(f"SELECT count(*) FROM {table.name}"))
        if rows > 1.3 * table.rows + 20:
            self.do(f"DELETE FROM {table.name} WHERE id % 10 < {self.rng.choice((2, 4))}")
        elif rows < 0.8 * table.rows:
            self.do(*self.changes.copy(table, table.rows - rows))


setattr(Writer, "import", Writer.import_)
