"""Random queries that hand out what tablets do not have: ctid, tableoid, whole rows and columns that are left out, of few rows or many.

What decides which rows come out is in the tablets mostly, so that the rest can be fetched for those rows alone.
"""
from typed import generator


class Late:
    def __init__(self, queries):
        self.queries = queries

    def query(self, rng, Query):
        self.rng = rng
        shape = rng.choice((self.rows, self.rows, self.first, self.first, self.first, self.joined, self.joined, self.joined, self.below, self.looked_up))
        return shape(Query)

    # -- parts --------------------------------------------------------------------

    def table(self, alias):
        """(the table, a generator of what tablets have of it, what they do not)"""
        rng, queries = self.rng, self.queries
        table = rng.choices(queries.tables, queries.weights)[0]
        if rng.random() < 0.6:				# one with such columns, if there is one
            table = rng.choice([t for t in queries.tables if any(not c.imported for c in t.columns)] or [table])
        g = generator(rng, [(f"{alias}.{c.name}", c) for c in table.columns if c.imported])
        return table, g, [f"{alias}.{c.name}" for c in table.columns if not c.imported]

    def items(self, alias, g, left_out):
        rng = self.rng
        items = [f"{alias}.id"] * (rng.random() < 0.7)
        kinds = ["ctid", "ctid", "tableoid", "row", "output"] + ["left out"] * (6 * bool(left_out))
        for kind in rng.sample(kinds, rng.choice((1, 1, 2, 3))):
            if kind == "left out":
                column = rng.choice(left_out)
                items.append(rng.choice((column, column, column, f"{column} IS NULL", f"length({column}::text)", f"coalesce({column}::text, {alias}.id::text)")))
            else:
                items.append({"ctid": f"{alias}.ctid", "tableoid": f"{alias}.tableoid::regclass", "row": alias, "output": str(g.output(1))}[kind])
        return rng.sample(items, len(items))

    def where(self, alias, g, left_out):
        rng = self.rng
        parts = [str(g.bool(rng.choice((1, 1, 2)))) for _ in range(rng.choice((0, 1, 1, 2)))]
        if rng.random() < 0.6:
            parts.append(f"{alias}.id {rng.choice(('% 50 = 7', '% 7 = 1', '< 20', '> 500', '= 33'))}")
        if rng.random() < 0.06 and left_out:
            parts.append(f"{rng.choice(left_out)} IS {rng.choice(('', 'NOT '))}NULL")
        if rng.random() < 0.08:
            parts.append(rng.choice((f"{alias}.ctid < '(3,1)'::tid", f"{alias}.ctid >= '(1,5)'::tid", f"{alias}.ctid = '(0,3)'::tid", f"{alias}.ctid IS NOT NULL")))
        return f" WHERE {' AND '.join(rng.sample(parts, len(parts)))}" if parts else ""

    def limit(self):
        rng = self.rng
        return f" LIMIT {rng.choice((0, 1, 10, 10, 100))}" + (f" OFFSET {rng.choice((1, 5, 50))}" if rng.random() < 0.3 else "")

    def of_one(self):
        """FROM and WHERE of one table, and its items."""
        table, g, left_out = self.table("t")
        return g, self.items("t", g, left_out), f" FROM {table.name} t{self.where('t', g, left_out)}"

    def of_two(self):
        """The same of a join, of which one side may have no row; t's id is there only once."""
        rng = self.rng
        table, g, left_out = self.table("t")
        other, h, left_out_there = self.table("o")
        kind = rng.choice(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "EXISTS", "NOT EXISTS"))
        items = self.items("t", g, left_out)
        if kind.endswith("EXISTS"):
            where = self.where("t", g, left_out)
            return g, items, f" FROM {table.name} t{where}{' AND' if where else ' WHERE'} {kind} (SELECT FROM {other.name} o WHERE o.id = t.id AND {h.bool(1)})"
        items += self.items("o", h, left_out_there) if rng.random() < 0.7 else []
        on = "t.id = o.id" if kind == "FULL JOIN" else f"t.id = o.id AND {rng.choice((h.bool(1), 'o.id % 3 = 1', g.bool(1)))}"
        return g, items + ["t.id, o.id"], f" FROM {table.name} t {kind} {other.name} o ON {on}" + (self.where("t", g, left_out) if kind != "FULL JOIN" else "")

    # -- shapes -------------------------------------------------------------------

    def rows(self, Query):
        _, items, tail = self.of_one()
        return Query(f"SELECT {', '.join(items)}{tail}")

    def first(self, Query):
        g, items, tail = self.of_one()
        first = g.order()
        return Query(f"SELECT {', '.join(items)}{tail} ORDER BY {f'{first}, ' if first else ''}t.id{self.rng.choice((' DESC', ''))}{self.limit()}", ordered=True)

    def joined(self, Query):
        _, items, tail = self.of_two()
        if self.rng.random() < 0.5:
            return Query(f"SELECT {', '.join(items)}{tail}")
        return Query(f"SELECT {', '.join(items)}{tail} ORDER BY t.id, {'t.id' if 'EXISTS' in tail else 'o.id'}{self.limit()}", ordered=True)

    def below(self, Query):
        """Of a subquery's rows, which are counted or joined again."""
        rng = self.rng
        _, items, tail = rng.choice((self.of_one, self.of_two))()
        items = ", ".join(f"{item} AS x{i}" for i, item in enumerate(items) if ", " not in item or "(" in item)
        fence = rng.choice(("", " OFFSET 0", " ORDER BY t.id LIMIT 20" if " o " not in tail else " OFFSET 0"))
        return Query(f"SELECT count(*), count(x0) FROM (SELECT {items or 't.id AS x0'}{tail}{fence}) s")

    def looked_up(self, Query):
        """Rows of which another scan found the place."""
        rng = self.rng
        table, g, left_out = self.table("t")
        if len(table.imports) > 1:			# a ctid is one of each partition
            return self.rows(Query)
        found = f"SELECT u.ctid FROM {table.name} u WHERE u.id % {rng.choice((7, 50))} = 1"
        by = rng.choice((f"t.ctid IN ({found})", f"t.ctid = ANY (ARRAY({found}))", f"EXISTS ({found} AND u.ctid = t.ctid)", f"t.ctid = ({found} ORDER BY u.id LIMIT 1)"))
        return Query(f"SELECT {', '.join(self.items('t', g, left_out))} FROM {table.name} t WHERE {by} AND {g.bool(1)}")
