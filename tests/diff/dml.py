"""Random statements that change tables, or lock their rows: what is read below them is the engine's, what is changed PostgreSQL's.

Each runs in a transaction that is rolled back. Compared are the rows that it returns, and what the target then holds: as PostgreSQL reads whole
rows, and as the engine reads what this transaction itself changed.
"""
from expressions import COMPARISONS
from tables import INTS, TYPES
from typed import generator

MADE = "d_made"
MOVED = 3_000_000				# what is added to an id: no row has it, and tables with ranges of ids put it elsewhere
LOCKS = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE", "FOR UPDATE SKIP LOCKED", "FOR SHARE NOWAIT")


def held(table):
    return [f"SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM {table} t",
            f"SELECT count(*), count(DISTINCT id), sum(id), min(id), max(id) FROM {table}"]


class Dml:
    def __init__(self, queries):
        self.queries = queries

    def query(self, rng, Query):
        self.rng = rng
        self.prepared = rng.random() < 0.12
        self.params = []
        self.target, self.other = self.table(True), self.table(False)
        shape = rng.choices((self.update, self.update_from, self.delete, self.delete_using, self.insert, self.merge, self.returned, self.locked, self.made, self.several),
                            (16, 14, 10, 8, 14, 12, 8, 8, 5, 5))[0]
        self.prepared = self.prepared and shape in (self.update, self.update_from, self.delete, self.delete_using, self.insert)
        first, sql = shape()
        after = held(MADE) if shape == self.made else held(self.target.name)
        if shape != self.made and self.target.foreign and rng.random() < 0.5:		# kept in tablets: the same rows in others
            after += [f"SELECT gpuvm.compact('{self.target.name}') >= 0"] + after
        return Query(sql, params=self.params, raising=True, undo=True, before=first, after=after)

    # -- parts --------------------------------------------------------------------

    def table(self, changes):
        tables = [(t, w) for t, w in zip(self.queries.tables, self.queries.weights) if t.rng is not None or not changes]
        return self.rng.choices([t for t, _ in tables], [w for _, w in tables])[0]

    def generator(self, table, alias):
        """Of all of its columns now and then, else of those that tablets have."""
        left_out = self.rng.random() < 0.1
        g = generator(self.rng, [(f"{alias}.{c.name}", c) for c in table.columns if c.imported or left_out])
        if self.prepared:
            g.params = self.params
        return g

    def condition(self, g, table, alias):
        """Few rows mostly, and not always."""
        rng = self.rng
        parts = [str(g.bool(rng.choice((1, 1, 2)))) for _ in range(rng.choice((0, 1, 1, 2)))]
        if not parts or rng.random() < 0.5:
            m = rng.choice((3, 7, 50, 300))
            parts.append(rng.choice((f"{alias}.id % {m} = {rng.randrange(m)}", f"{alias}.id < {rng.choice((0, 10, 100, 1000))}", f"{alias}.id >= {table.rows // 2}")))
        if rng.random() < 0.25:
            parts.append(self.of_other(alias))
        return " AND ".join(rng.sample(parts, len(parts)))

    def of_other(self, alias):
        """A condition that reads another table, or the target once more."""
        rng, table = self.rng, self.table(False)
        h = self.generator(table, "o")
        rows = f"FROM {table.name} o WHERE {h.bool(1)}"
        return rng.choice((f"{alias}.id IN (SELECT o.id {rows})", f"{alias}.id NOT IN (SELECT o.id {rows})", f"EXISTS (SELECT 1 {rows} AND o.id = {alias}.id)",
                           f"NOT EXISTS (SELECT 1 {rows} AND o.id = {alias}.id)", f"{alias}.id {rng.choice(COMPARISONS)} (SELECT max(o.id) / 2 {rows})",
                           f"{alias}.id < (SELECT count(*) {rows})"))

    def value(self, column, g):
        """A new value of the column; constants of types that only some tables have."""
        rng = self.rng
        if rng.random() < 0.06:
            return "NULL"
        if column.type in TYPES:
            return str(g.any(column.type, rng.choice((0, 1, 2))))
        return f"CASE WHEN {g.bool(1)} THEN {g.literal(column.type)[0] if column.imported else 'NULL'} ELSE t.{column.name} END"

    def sets(self, g):
        rng = self.rng
        columns = self.target.columns[1:]
        chosen = rng.sample(columns, min(len(columns), rng.choice((1, 1, 2, 3))))
        sets = [f"{c.name} = {self.value(c, g)}" for c in chosen]
        if rng.random() < 0.12 or not sets:
            sets.append(f"id = t.id + {MOVED}")
        return ", ".join(sets)

    def rows(self, names):
        """A table of one row for each id at most, with ids of the target: s(id, names)."""
        rng, table = self.rng, self.other
        h = self.generator(table, "o")
        items = ", ".join(f"{h.any(type, rng.choice((0, 1, 2)))} AS {name}" for name, type in names)
        body = f"SELECT o.id, {items} FROM {table.name} o WHERE {self.condition(h, table, 'o')}"
        if rng.random() < 0.15:
            body = f"SELECT o.id / 3 AS id, {', '.join(f'min({h.any(type, 1)}) AS {name}' for name, type in names)} FROM {table.name} o WHERE {self.condition(h, table, 'o')} GROUP BY 1"
        return f"({body}) s"

    def both(self):
        """A generator of the target's columns and two of s, and s."""
        types = self.rng.sample([t for t in TYPES if t != "bool"], 2)
        names = [(f"s{i}", type) for i, type in enumerate(types)]
        s = self.rows(names)
        g = self.generator(self.target, "t")
        return g, s, dict((type, f"s.{name}") for name, type in names)

    def joined(self, sets, of_s):
        """Columns take values of s where there is one of their type."""
        rng = self.rng
        fit = [c for c in self.target.columns[1:] if c.type in of_s]
        return ", ".join(f"{c.name} = {of_s[c.type]}" for c in rng.sample(fit, min(len(fit), rng.choice((1, 2))))) or sets

    def returning(self, g, more=""):
        kind = self.rng.choice(("", "id", "*", "some", "some"))
        if not kind:
            return ""
        return " RETURNING " + ("t.id" if kind == "id" else "t.*" if kind == "*" else f"t.id, {g.any(self.rng.choice(INTS), 1)}") + more

    # -- shapes: (statements before, the statement) --------------------------------------

    def update(self):
        g = self.generator(self.target, "t")
        return [], f"UPDATE {self.target.name} t SET {self.sets(g)} WHERE {self.condition(g, self.target, 't')}{self.returning(g)}"

    def update_from(self):
        g, s, of_s = self.both()
        return [], f"UPDATE {self.target.name} t SET {self.joined(self.sets(g), of_s)} FROM {s} WHERE t.id = s.id AND {self.condition(g, self.target, 't')}{self.returning(g)}"

    def delete(self):
        g = self.generator(self.target, "t")
        return [], f"DELETE FROM {self.target.name} t WHERE {self.condition(g, self.target, 't')}{self.returning(g)}"

    def delete_using(self):
        g, s, of_s = self.both()
        return [], f"DELETE FROM {self.target.name} t USING {s} WHERE t.id = s.id AND {self.condition(g, self.target, 't')}{self.returning(g, f', {next(iter(of_s.values()))}')}"

    def insert(self):
        g = self.generator(self.target, "t")
        columns = [c for c in self.target.columns[1:] if self.rng.random() < 0.8]
        names = ", ".join(["id"] + [c.name for c in columns])
        items = ", ".join([f"t.id + {MOVED}"] + [f"t.{c.name}" if self.rng.random() < 0.6 else self.value(c, g) for c in columns])
        if self.rng.random() < 0.2:
            few = [c for c in columns if c.type in TYPES and c.type != "bool"]
            names = ", ".join(["id"] + [c.name for c in few])
            source = f"SELECT t.id % 50 + {MOVED}{''.join(f', max(t.{c.name})' for c in few)} FROM {self.target.name} t WHERE {self.condition(g, self.target, 't')} GROUP BY 1"
        else:
            source = f"SELECT {items} FROM {self.target.name} t WHERE {self.condition(g, self.target, 't')}"
        return [], f"INSERT INTO {self.target.name} ({names}) {source}{self.rng.choice(('', ' RETURNING id', ' RETURNING *'))}"

    def merge(self):
        rng = self.rng
        g, s, of_s = self.both()
        actions = [f"WHEN MATCHED AND {g.bool(1)} THEN {rng.choice(('DELETE', 'DO NOTHING'))}"] * (rng.random() < 0.5)
        actions += [f"WHEN MATCHED THEN UPDATE SET {self.joined(self.sets(g), of_s)}"] * (rng.random() < 0.7)
        if rng.random() < 0.6 or not actions:
            fit = [c for c in self.target.columns[1:] if c.type in of_s]
            actions.append(f"WHEN NOT MATCHED THEN INSERT ({', '.join(['id'] + [c.name for c in fit])}) VALUES ({', '.join([f's.id + {MOVED}'] + [of_s[c.type] for c in fit])})")
        on = "t.id = s.id" + (f" AND {g.bool(1)}" if rng.random() < 0.3 else "")
        return [], f"MERGE INTO {self.target.name} t USING {s} ON {on} {' '.join(actions)}"

    def returned(self):
        """In a CTE, beside which the target is as it was."""
        rng = self.rng
        _, sql = rng.choice((self.update, self.update_from, self.delete))()
        changed = f"WITH c AS ({sql.split(' RETURNING ')[0]} RETURNING t.id)"
        return [], f"{changed} " + rng.choice(("SELECT count(*), sum(id) FROM c", f"SELECT count(*), sum(t.id) FROM {self.target.name} t JOIN c ON t.id = c.id",
                                               f"SELECT (SELECT count(*) FROM c), count(*), sum(id) FROM {self.target.name}",
                                               f"DELETE FROM {self.target.name} t WHERE t.id IN (SELECT max(id) FROM c) AND false RETURNING t.id"))

    def locked(self):
        rng = self.rng
        g = self.generator(self.target, "t")
        where, lock = self.condition(g, self.target, "t"), rng.choice(LOCKS)
        if rng.random() < 0.35:
            s = self.rows([("s0", "int4")])
            first, _, rest = lock.partition(" SKIP") if "SKIP" in lock else lock.partition(" NOWAIT")
            of = lock.replace(first, f"{first} OF t", 1)
            return [], f"SELECT t.id, s0 FROM {self.target.name} t JOIN {s} ON t.id = s.id WHERE {where} {of}"
        limit = f" ORDER BY t.id LIMIT {rng.choice((1, 10, 100))}" if rng.random() < 0.3 else ""
        return [], f"SELECT t.id, {g.any(rng.choice(INTS), 1)} FROM {self.target.name} t WHERE {where}{limit} {lock}"

    def made(self):
        g = self.generator(self.target, "t")
        items = ", ".join(f"{g.any(type, 2)} AS x{i}" for i, type in enumerate(self.rng.choices(TYPES, k=2)))
        body = f"SELECT t.id, {items} FROM {self.target.name} t WHERE {self.condition(g, self.target, 't')}"
        return [], self.rng.choice((f"CREATE TABLE {MADE} AS {body}", f"CREATE MATERIALIZED VIEW {MADE} AS {body}", body.replace(" FROM ", f" INTO {MADE} FROM ", 1)))

    def several(self):
        """A statement that reads what those before it changed."""
        first = [self.rng.choice((self.update, self.delete, self.insert))()[1].split(" RETURNING ")[0] for _ in range(self.rng.choice((1, 2)))]
        return first, self.rng.choice((self.update, self.update_from, self.delete, self.insert, self.merge))()[1]
