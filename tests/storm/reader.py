"""The storm's readers: a generated query with gpuvm off and on, under one snapshot; the answers must be equal."""
import json
import re

import psycopg2

import compare
from changes import Changes
from queries import Queries, statements
from session import CONFLICTS, Conflict, Session, Worker, shown

# As in tests/diff/run; and no index, whose order decides which of two equal keys PostgreSQL prints.
SETTINGS = {
    "TimeZone": "UTC", "DateStyle": "ISO, MDY", "max_parallel_workers_per_gather": "0", "jit": "off", "enable_sort": "off", "enable_memoize": "off",
    "enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off", "synchronize_seqscans": "off",
    "client_min_messages": "error", "lock_timeout": "2s", "deadlock_timeout": "200ms", "statement_timeout": "60s", "gpuvm.enabled": "off",
    "gpuvm.force": "on",
}
MODES = {"repeatable": 40, "own": 25, "committed": 15, "serializable": 8, "cursor": 12}
NOT_RUN_THERE = "55000"
EXPLAINED = 0.4
MOST_ROWS = 10**5


class Reader(Worker):
    def start(self):
        self.session = Session(self.options, {**SETTINGS, "gpuvm.device": self.options.device})
        self.other = Session(self.options, SETTINGS)
        self.changes = Changes(f"{self.options.seed}:{self.name}", self.tables, self.blocks)
        self.queries = Queries(f"{self.options.seed}:{self.name}", self.tables)
        self.k = 0

    def blocks(self, relation):
        return int(self.session.value(f"SELECT pg_relation_size('{relation}') / current_setting('block_size')::int"))

    def step(self):
        mode = self.rng.choices(list(MODES), MODES.values())[0]
        self.did = []
        try:
            getattr(self, mode)()
            self.counts[f"{mode} transactions"] += 1
        except Conflict:
            self.counts["conflicts"] += 1
        except psycopg2.Error as e:
            if self.session.conn.closed or self.other.conn.closed:
                raise
            if e.pgcode in CONFLICTS:
                self.counts["conflicts"] += 1
            else:
                self.unexpected(e, shown("; ".join(self.did)))
        for session in (self.session, self.other):
            if session.in_transaction:
                session.end()

    def make(self):
        self.k += 1
        return self.queries.make(self.k)

    def do(self, sql, data=None):
        self.did.append(sql)
        return self.session.run(sql)

    def lock(self, session, sql):
        """So that a TRUNCATE, which no snapshot sees, comes before both executions or after."""
        names = sorted(t.name for t in self.tables if re.search(rf"\b{t.name}\b", sql))
        if names:
            session.run(f"LOCK TABLE {', '.join(names)} IN ACCESS SHARE MODE")

    # -- one query, both ways -----------------------------------------------------------

    def answers(self, session, query, sql):
        if query.params:
            session.run("DEALLOCATE ALL")  # of a query that a conflict cut short, too
        return [session.attempt(s) for s in statements(query, sql)]

    def on_vm(self, query, sql):
        """On the VM if it can be; and why it was not."""
        s, found, reason = self.session, [], None
        if query.params:
            s.run("DEALLOCATE ALL")
        s.run(f"SET LOCAL gpuvm.enabled = on; SET LOCAL gpuvm.require = '{self.options.device}'")
        for statement in statements(query, sql):
            rows, error = s.attempt(statement)
            if error and error[0] == NOT_RUN_THERE:
                reason = error[1]
                s.run("SET LOCAL gpuvm.require = 'any'")
                rows, error = s.attempt(statement)
                s.run(f"SET LOCAL gpuvm.require = '{self.options.device}'")
            found.append((rows, error))
        s.run("SET LOCAL gpuvm.enabled = off; SET LOCAL gpuvm.require = 'any'")
        return found, reason

    def compare(self, query=None):
        query = query or self.make()
        self.lock(self.session, query.sql)
        if self.rng.random() < 0.5:
            want = self.answers(self.session, query, query.reference)
            got, reason = self.on_vm(query, query.sql)
        else:
            got, reason = self.on_vm(query, query.sql)
            self.pause(0.02)
            want = self.answers(self.session, query, query.reference)
        found = self.difference(query, got, want, lambda: self.answers(self.session, query, query.sql), lambda: self.adds_rows(query))
        self.judge(query, found, reason, any(e for _, e in got))

    @staticmethod
    def difference(query, got, want, own=None, adds_rows=None):
        if query.shape in ("join", "order", "subquery"):
            # where PostgreSQL joins, in the order that it likes
            got, want = compare.plain_zeroes(got), compare.plain_zeroes(want)
        return compare.compare_answers(query, got, want, MOST_ROWS, own, adds_rows)

    def judge(self, query, found, reason, raised, explain=True):
        self.counts["compared"] += 1
        if raised:
            self.counts["raised"] += 1
        if reason is not None:
            self.counts["not on the VM"] += 1
            self.counts["reason: " + re.sub(r"(Table|Scan on) .*?:|\d+ of \d+|\(\d.*?\)", "", reason)[:110]] += 1
        plan = None
        if explain and not raised and not query.params and (found or self.rng.random() < EXPLAINED):
            plan = self.explain(query)
        if found:
            self.counts["differences"] += 1
            did = shown(";\n  ".join(self.did))
            state = self.session.run("SELECT * FROM gpuvm.tables") if not self.session.conn.closed else ""
            self.report.put((self.name, None, f"DIFFERENCE ({query.shape})\n  {did}\n" + "".join(f"  {s};\n" for s in statements(query, query.sql)) +
                             f"{found}\n  not on the VM: {reason}\n  gpuvm.tables now: {state}\n  plan: {plan}"))

    def adds_rows(self, query):
        """Does the engine hand rows to PostgreSQL's aggregation?"""
        plan = None if query.params else self.explain(query)
        return not isinstance(plan, list) or any("Relation Name" in node for node in plan)

    def explain(self, query):
        """What EXPLAIN ANALYZE says of gpuvm's nodes, under the same snapshot; counted."""
        s = self.session
        s.run("SET LOCAL gpuvm.enabled = on")
        rows, error = s.attempt(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query.sql}")
        s.run("SET LOCAL gpuvm.enabled = off")
        if error:
            return error
        nodes = []

        def walk(node):
            if node.get("Custom Plan Provider") == "GpuVM" and node.get("Actual Loops", 0) > 0:
                nodes.append({k: v for k, v in node.items() if k not in ("Plans", "VM Filter", "Output")})
            for child in node.get("Plans", ()):
                walk(child)
        walk(json.loads(rows[0][0])[0]["Plan"])
        self.counts["explained"] += 1
        served = [n for n in nodes if str(n.get("Device", "none")).lower().startswith(self.options.device)]
        if served:
            self.counts["explained: served"] += 1
            self.counts["explained: with a delta"] += any(n.get("Delta Blocks", 0) > 0 for n in served)
            self.counts["explained: re-stamped"] += any(n.get("Blocks Restamped", 0) > 0 for n in served)
        return nodes

    # -- transactions ---------------------------------------------------------------------

    def some(self, most):
        for _ in range(self.rng.randint(1, most)):
            self.compare()
            self.pause(self.options.pause)

    def repeatable(self):
        self.do("BEGIN ISOLATION LEVEL REPEATABLE READ" + self.rng.choice(("", " READ ONLY")))
        self.do("SELECT pg_current_snapshot()")
        if self.rng.random() < 0.5:
            self.pause(0.4)		# the world moves on before the first query
        self.some(5)
        self.do("COMMIT")

    def serializable(self):
        self.do("BEGIN ISOLATION LEVEL SERIALIZABLE")
        self.some(3)
        if self.rng.random() < 0.5:
            self.do(self.changes.change(self.rng.choice(self.changes.tables)))
            self.some(2)
        self.do("COMMIT")

    def own(self):
        """What the transaction itself has changed, and not committed."""
        rng = self.rng
        table = rng.choice(self.changes.tables)
        self.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
        truncated = False		# what has a new file cannot be imported
        self.queries.favourite = table
        try:
            for _ in range(rng.choice((1, 2, 3))):
                saved = rng.random() < 0.4
                if saved:
                    self.do("SAVEPOINT s")
                kind = rng.random()
                if kind < 0.03:
                    truncated = True
                    self.do(f"TRUNCATE {rng.choice(table.imports)}")
                elif kind < 0.06:
                    self.do(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS own_{self.number} int DEFAULT {rng.randrange(100)}")
                elif kind < 0.1 and not truncated:
                    self.do(f"SELECT gpuvm.import('{rng.choice(table.imports)}')")
                else:
                    self.do(self.changes.change(table))
                if rng.random() < 0.6:
                    self.compare()
                if saved:
                    self.do(rng.choice(("ROLLBACK TO SAVEPOINT s", "ROLLBACK TO SAVEPOINT s", "RELEASE SAVEPOINT s")))
                self.compare()
        finally:
            self.queries.favourite = None
        self.do(rng.choice(("ROLLBACK", "ROLLBACK", "COMMIT")))

    def committed(self):
        """READ COMMITTED: the statement itself exports the snapshot that it runs under, and another session takes it."""
        self.session.run("BEGIN; SET LOCAL gpuvm.enabled = on")
        for _ in range(self.rng.randint(1, 4)):
            query = self.make()
            while query.params or query.raising or "FULL JOIN" in query.sql:  # PostgreSQL has no plan for some
                query = self.make()
            self.lock(self.session, query.sql)
            sql = (f"SELECT s.snapshot, q.* FROM (SELECT pg_export_snapshot() AS snapshot OFFSET 0) s "
                   f"LEFT JOIN (SELECT true AS present, q.* FROM ({query.sql}) q) q ON true")
            reason = None
            try:
                self.session.run(f"SET LOCAL gpuvm.require = '{self.options.device}'")
                rows = self.session.run(sql)
            except psycopg2.Error as e:
                if e.pgcode != NOT_RUN_THERE:
                    raise
                # A snapshot cannot be exported from a subtransaction, so there is no savepoint: once more.
                reason = e.diag.message_primary + f" ({e.diag.message_detail})"
                self.session.end()
                self.session.run("BEGIN; SET LOCAL gpuvm.enabled = on")
                self.lock(self.session, query.sql)
                rows = self.session.run(sql)
            self.other.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self.other.run(f"SET TRANSACTION SNAPSHOT '{rows[0][0]}'")
            want = self.answers(self.other, query, query.reference)
            own = self.answers(self.other, query, query.sql) if query.columns else want
            self.other.run("COMMIT")
            got = [([row[2:] for row in rows if row[1]], None)]
            query.ordered = False
            found = self.difference(query, got, want, lambda: own, lambda: True)
            self.judge(query, found, reason, False, explain=False)
        self.do("COMMIT")

    def cursor(self):
        """Opened, and read to its end later: it goes on with what it has seen, WITH HOLD beyond the end of the transaction."""
        rng = self.rng
        hold = rng.random() < 0.3
        query = self.make()
        while query.params or query.raising or query.columns or "FULL JOIN" in query.sql:
            query = self.make()
        self.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.lock(self.session, query.sql)
        self.session.run("SET LOCAL gpuvm.enabled = on")
        self.do(f"DECLARE c CURSOR {'WITH HOLD ' if hold else ''}FOR {query.sql}")
        rows, late = [], rng.random() < 0.3
        if not late:
            rows += self.session.run(f"FETCH {rng.choice((0, 1, 10, 1000))} FROM c")
        self.pause(0.3)
        self.session.run("SET LOCAL gpuvm.enabled = off")
        if rng.random() < 0.3:
            # Changes after the cursor was opened are not the cursor's.
            want = self.answers(self.session, query, query.sql)
            self.do(self.changes.change(rng.choice(self.changes.tables)))
        else:
            want = self.answers(self.session, query, query.sql)
        if hold:
            self.do("COMMIT")
            self.pause(0.3)
        rows += self.session.run("FETCH ALL FROM c")
        found = self.difference(query, [(rows, None)], want)
        self.judge(query, found, None, False, explain=False)
        self.do("CLOSE c")
        if not hold:
            self.do("COMMIT")
