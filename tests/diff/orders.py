"""Random queries whose order counts: ORDER BY in any direction, LIMIT and OFFSET, DISTINCT and DISTINCT ON, windows, set operations.

Answers of `ordered` queries are compared row by row: their order is total, by the rows' ids or by all keys of the groups.
Where it is not, what comes out does not depend on which of two equal rows is first: only keys are selected, or
WITH TIES has them all.
"""
import re

from tables import INTS, TIMES, TYPES
from typed import ORDERED_TYPES, TypedGenerator, generator

DIRECTIONS = ("", "", "", " DESC", " DESC", " ASC", " NULLS FIRST", " NULLS LAST", " DESC NULLS LAST", " DESC NULLS FIRST", " ASC NULLS FIRST", " USING >", " USING <")
COUNTS = ("0", "1", "2", "3", "10", "10", "100", "100", "1000", "100000", "NULL", "ALL")
OFFSETS = ("0", "1", "5", "50", "1500", "NULL")
COLLATABLE = ("text", "bpchar", "variable text", "variable bpchar")


def limit(rng, often=0.75):
    """LIMIT, OFFSET, both or none, as PostgreSQL or the standard writes them."""
    if rng.random() > often:
        return ""
    n, skipped = rng.choice(COUNTS), rng.choice(OFFSETS)
    form = rng.random()
    if form < 0.6:
        return f" LIMIT {n}"
    if form < 0.85:
        return f" LIMIT {n} OFFSET {skipped}"
    if form < 0.92 or not n.isdigit():
        return f" OFFSET {skipped}"
    return f" OFFSET {skipped} ROWS FETCH FIRST {n} ROWS ONLY"


class Orders:
    def __init__(self, queries):
        self.queries = queries			# which tables, and what WHERE has

    # -- keys ---------------------------------------------------------------------

    def key(self, rng, g):
        """What rows are sorted by: a column mostly, never a bare constant, which would be a position."""
        if isinstance(g, TypedGenerator) and rng.random() < 0.7:
            found = g.typed(ORDERED_TYPES)
            if found:
                name, c = rng.choice(found)
                return name + (f' COLLATE "{rng.choice(("C", "und-x-icu", "de-x-icu"))}"' if c.type in COLLATABLE and rng.random() < 0.2 else "")
        params, g.params = g.params, None		# one in a key could not be repeated by its number
        for _ in range(4):
            e = str(g.column((rng.choice(TYPES),)) if rng.random() < 0.7 else g.any(rng.choice(TYPES), rng.choice((1, 1, 2))))
            if any(re.search(rf"\b{re.escape(name)}\b", e) for name, _ in g.columns):
                break
        else:
            e = "id" if any(name == "id" for name, _ in g.columns) else g.columns[0][0]
        g.params = params
        return e

    def by(self, rng, keys, last=()):
        """ORDER BY of these in random directions, and then of what makes it total."""
        return " ORDER BY " + ", ".join([f"{k}{rng.choice(DIRECTIONS)}" for k in keys] + [f"{k}{rng.choice(('', '', ' DESC'))}" for k in last])

    def keys(self, rng, g):
        return [self.key(rng, g) for _ in range(rng.choices((0, 1, 2, 3), (1, 6, 4, 2))[0])]

    @staticmethod
    def named(items):
        """Without names of their own one may be called id, too."""
        return ", ".join(f"{item} AS x{i}" for i, item in enumerate(items))

    # -- shapes -------------------------------------------------------------------

    def query(self, rng, Query, Aggregates):
        shape = rng.choices((self.rows, self.only_keys, self.ties, self.groups, self.distinct, self.first_of_each, self.windows, self.joined, self.combined,
                             self.inside, self.lateral, self.listed, self.prepared), (16, 5, 4, 14, 7, 7, 9, 10, 7, 6, 3, 4, 8))[0]
        return shape(rng, Query, Aggregates)

    def rows(self, rng, Query, Aggregates, prepared=False):
        table, g = self.queries.source(rng, prepared)
        keys = self.keys(rng, g)
        outputs = [self.named(self.queries.outputs(rng, g, 3))]
        if keys and rng.random() < 0.3:
            outputs.append(f"{keys[0]} AS k")
        shown = ["id"] if rng.random() < 0.7 else []
        where = self.queries.where(rng, g)
        tail = self.by(rng, keys, ["id"])
        if prepared:
            g.params += [("int8", rng.sample(("0", "1", "7", "100", "100000", "NULL"), 3))]
            tail += f" LIMIT ${len(g.params)}"
            if rng.random() < 0.4:
                g.params += [("int8", rng.sample(("0", "1", "20", "3000", "NULL"), 3))]
                tail += f" OFFSET ${len(g.params)}"
            if rng.random() < 0.2:
                tail = tail.replace(" LIMIT $", " LIMIT 2 + $", 1)
        else:
            tail += limit(rng)
        return Query(f"SELECT {', '.join(shown + outputs)} FROM {table.name}{where}{tail}", ordered=True, params=g.params or [], sorts=table.name != "d_parts")

    def prepared(self, rng, Query, Aggregates):
        return self.rows(rng, Query, Aggregates, prepared=True)

    def only_keys(self, rng, Query, Aggregates):
        """Of equal rows any may be among the first: they look the same."""
        table, g = self.queries.source(rng)
        keys = list(dict.fromkeys(self.queries.group_key(rng, g) for _ in range(rng.choice((1, 1, 2)))))
        items = ", ".join(f"{k} AS k{i}" for i, k in enumerate(keys))
        return Query(f"SELECT {items} FROM {table.name}{self.queries.where(rng, g)}{self.by(rng, [f'k{i}' for i in range(len(keys))])}{limit(rng, 0.9)}", ordered=True)

    def ties(self, rng, Query, Aggregates):
        table, g = self.queries.source(rng)
        return Query(f"SELECT id, {self.named(self.queries.outputs(rng, g, 2))} FROM {table.name}{self.queries.where(rng, g)}"
                     f"{self.by(rng, [self.key(rng, g)])} FETCH FIRST {rng.choice(('1', '3', '10', '100'))} ROWS WITH TIES")

    def groups(self, rng, Query, Aggregates):
        """By aggregates, then by the keys."""
        table, g = self.queries.source(rng)
        aggregates = Aggregates(g, rng, float_sums=False)
        keys = list(dict.fromkeys(self.queries.group_key(rng, g) for _ in range(rng.choice((1, 1, 2)))))
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(1, 3)):
            aggregates.add()
        items, _, _ = aggregates.lists()
        n = len(aggregates.items)
        numbers = [str(i + 1) for i in range(len(keys))]
        by = rng.sample([str(i + 1) for i in range(len(keys), n)], rng.choice((0, 1, 1, min(2, n - len(keys)))))
        sorts, last = table.name != "d_parts", rng.sample(numbers, len(numbers))
        if rng.random() < 0.2:
            by = [rng.choice(("count(*)", f"max({g.leaf('int4')})", f"sum({g.leaf('int4')})", "min(id)"))]
        elif rng.random() < 0.4:
            by, sorts = [self.over_aggregates(rng, g) for _ in range(rng.choice((1, 1, 2)))], False
        where, group = self.queries.where(rng, g), ", ".join(numbers)
        if rng.random() < 0.15 and "$" not in "".join(keys):
            group, sorts = f"{rng.choice(('ROLLUP', 'CUBE'))} ({', '.join(keys)})", False
            last += [f"grouping({', '.join(keys)})"]
        having = self.queries.having(rng, g, table) if rng.random() < 0.3 else ""
        return Query(f"SELECT {items} FROM {table.name}{where} GROUP BY {group}{having}{self.by(rng, by, last)}{limit(rng)}", ordered=True,
                     sorts=not having and sorts)

    @staticmethod
    def over_aggregates(rng, g):
        """An expression over aggregates, which no program of groups sorts by; it raises no error."""
        x, y = g.leaf(rng.choice(("int2", "int4"))), g.leaf(rng.choice(("int2", "int4")))
        return rng.choice((f"avg({x})", f"round(avg({x}), 1)", f"sum({x}) * 100 / nullif(count({y}), 0)", f"max({x})::int8 - min({y})",
                           f"coalesce(sum({x}), 0) + count(*)", f"CASE WHEN count({x}) > 3 THEN max({y}) END", "count(*) % 7", f"(sum({x}) > sum({y}))"))

    def distinct(self, rng, Query, Aggregates):
        table, g = self.queries.source(rng)
        keys = [self.queries.group_key(rng, g) for _ in range(rng.choice((1, 1, 2, 3)))]
        items = ", ".join(f"{k} AS k{i}" for i, k in enumerate(keys))
        names = [f"k{i}" for i in range(len(keys))]
        order = self.by(rng, rng.sample(names, len(names))) + limit(rng) if rng.random() < 0.8 else ""
        return Query(f"SELECT DISTINCT {items} FROM {table.name}{self.queries.where(rng, g)}{order}", ordered=order != "")

    def first_of_each(self, rng, Query, Aggregates):
        """DISTINCT ON: the first row of each value."""
        table, g = self.queries.source(rng)
        keys = [self.key(rng, g) for _ in range(rng.choice((1, 1, 2)))]
        outputs = f"id, {self.named(self.queries.outputs(rng, g, 2))}"
        more = [self.key(rng, g)] if rng.random() < 0.5 else []
        return Query(f"SELECT DISTINCT ON ({', '.join(keys)}) {outputs} FROM {table.name}{self.queries.where(rng, g)}{self.by(rng, keys + more, ['id'])}{limit(rng, 0.4)}", ordered=True)

    def windows(self, rng, Query, Aggregates):
        """Frames whose rows are in a total order; ranks of any."""
        table, g = self.queries.source(rng)
        parts = [self.key(rng, g) for _ in range(rng.choice((0, 1, 1, 2)))]
        part = f"PARTITION BY {', '.join(parts)}" if parts else ""
        total = part + self.by(rng, self.keys(rng, g)[:2], ["id"])
        number = str(g.leaf(rng.choice(INTS)))
        frame = rng.choice(("", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING"))
        calls = [f"{f} OVER ({total}{frame})" for f in rng.sample((f"sum({number})", f"count({number})", f"max({number})", "min(id)", "first_value(id)", "last_value(id)"), 2)]
        calls += [f"{f} OVER ({total})" for f in rng.sample(("row_number()", f"lag({number})", "lead(id, 2)", "ntile(4)", "nth_value(id, 3)"), rng.choice((0, 1, 2)))]
        if rng.random() < 0.5:
            calls.append(f"{rng.choice(('rank()', 'dense_rank()', 'count(*)'))} OVER ({part}{self.by(rng, [self.key(rng, g)])})")
        if rng.random() < 0.3:
            calls.append(f"count(*) OVER ({part})")
        sql = f"SELECT id, {', '.join(f'{c} AS w{i}' for i, c in enumerate(calls))} FROM {table.name}{self.queries.where(rng, g)}"
        form = rng.random()
        if form < 0.25:
            return Query(f"{sql}{self.by(rng, ['w0'], ['id'])}{limit(rng)}", ordered=True)
        if form < 0.45:
            return Query(f"SELECT * FROM ({sql}) s WHERE w{len(calls) - 1} <= {rng.choice((1, 3, 20))}")
        return Query(sql)

    def joined(self, rng, Query, Aggregates):
        """Joins, sorted by columns of any side and then by all ids."""
        joins = self.queries.joins
        while True:
            ctes, source, where, visible, program, many = joins.make(rng)
            if not many:
                break
        g = generator(rng, [c for side in visible for c in side.columns])
        ids = [f"{side.alias}.id" for side in visible]
        head = f"WITH {', '.join(ctes)} " if ctes else ""
        tail = f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        if rng.random() < 0.3:
            key = self.queries.group_key(rng, g)
            return Query(f"{head}SELECT {key} AS k, count(*) AS n, max({ids[-1]}) AS m{tail} GROUP BY 1{self.by(rng, rng.sample(('n', 'm'), rng.choice((0, 1, 2))), ['k'])}{limit(rng)}", ordered=True)
        items = ids + [f"{g.output(rng.choice((0, 0, 1)))} AS x{i}" for i in range(rng.randint(0, 2))]
        return Query(f"{head}SELECT {', '.join(items)}{tail}{self.by(rng, self.keys(rng, g), rng.sample(ids, len(ids)))}{limit(rng)}", ordered=True)

    def combined(self, rng, Query, Aggregates):
        """UNION, INTERSECT and EXCEPT, with ALL and without, of values that look as all of their equals do."""
        type = rng.choice(INTS + TIMES + ("bool",))
        parts = []
        known = rng.random() < 0.3				# that no value is null: INTERSECT and EXCEPT may be joins
        for i in range(rng.choice((2, 2, 3))):
            table, g = self.queries.source(rng)
            where = self.queries.where(rng, g)
            e = g.column((type,)) or g.leaf(type)
            if known and rng.random() < 0.9:
                y = rng.choice(("1", "id", "id"))
                parts.append(f"SELECT {e} AS x, {y} AS y FROM {table.name}{where}{' AND' if where else ' WHERE'} id < {rng.choice((20, 500, 5000))} AND {e} IS NOT NULL")
                continue
            e = e if rng.random() < 0.6 else g.any(type, 1)
            form = rng.random()
            if form < 0.5:
                part = f"SELECT {e} AS x, id % {rng.choice((1, 3, 50))} AS y FROM {table.name}{where}"
            elif form < 0.7:
                part = f"SELECT {e} AS x, count(*) AS y FROM {table.name}{where} GROUP BY 1"
            elif form < 0.85:
                part = f"SELECT DISTINCT {e} AS x, 1 AS y FROM {table.name}{where}"
            else:
                part = f"(SELECT {e} AS x, id AS y FROM {table.name}{where}{self.by(rng, [self.key(rng, g)], ['id'])} LIMIT {rng.choice((1, 20, 300))})"
            parts.append(part)
        sql = parts[0]
        for part in parts[1:]:
            sql += rng.choice((" UNION ALL ", " UNION ALL ", " UNION ", " UNION ", " INTERSECT ", " INTERSECT ALL ", " EXCEPT ", " EXCEPT ALL ")) + part
        form = rng.random()
        if form < 0.2:
            return Query(f"SELECT x, count(*), sum(y) FROM ({sql}) s GROUP BY x")
        if form < 0.35:
            return Query(f"SELECT count(*), min(x::text), max(y) FROM ({sql}) s WHERE y >= 0")
        order = self.by(rng, rng.sample(("x", "y"), 2)) + limit(rng) if form < 0.8 else ""
        return Query(sql + order, ordered=order != "")

    def inside(self, rng, Query, Aggregates):
        """ORDER BY and LIMIT below something else."""
        table, g = self.queries.source(rng)
        where = self.queries.where(rng, g)
        inner = f"SELECT id, {g.leaf('int4')} AS x, {g.any(rng.choice(TIMES), 1)} AS y FROM {table.name}{where}{self.by(rng, self.keys(rng, g), ['id'])}{limit(rng, 0.9)}"
        return Query(rng.choice((
            f"SELECT count(*), sum(x), min(y), max(id) FROM ({inner}) s",
            f"SELECT x, count(*) FROM ({inner}) s GROUP BY x HAVING count(*) > 1",
            f"SELECT d.id, s.id, s.x FROM d_dim d JOIN ({inner}) s ON s.id % 40 = d.id",
            f"SELECT id FROM d_common WHERE id IN (SELECT id FROM ({inner}) s) AND id % 2 = 0",
            f"WITH s AS MATERIALIZED ({inner}) SELECT a.id, b.x FROM s a JOIN s b USING (id) WHERE a.x > 0",
            f"SELECT string_agg(id::text, ',' ORDER BY x DESC, id) FROM ({inner}) s",
            f"SELECT string_agg(id::text, ',') FROM ({inner}) s",
            f"SELECT id, x FROM ({inner}) s OFFSET 3",
            f"SELECT (SELECT x FROM ({inner}) s LIMIT 1), count(*) FROM d_dim")))

    def lateral(self, rng, Query, Aggregates):
        """Once for each row: the node is scanned again."""
        table, g = self.queries.source(rng)
        keys = self.keys(rng, g)
        inner = f"SELECT id, {g.leaf('int4')} AS x FROM {table.name} t WHERE {rng.choice(('t.id % 40 = d.id', 't.id > d.id * 10', 't.id < d.id'))}{self.by(rng, keys, ['id'])} LIMIT {rng.choice(('1', '3', 'd.id'))}"
        join, on = rng.choice(((", LATERAL", ""), (" LEFT JOIN LATERAL", " ON true")))
        return Query(f"SELECT d.id, s.* FROM d_dim d{join} ({inner}) s{on} WHERE d.id < 15")

    def listed(self, rng, Query, Aggregates):
        """Aggregates with an order of their own."""
        table, g = self.queries.source(rng)
        keys = ", ".join(f"{k}{rng.choice(DIRECTIONS)}" for k in self.keys(rng, g) + ["id"])
        f = rng.choice((f"array_agg(id ORDER BY {keys})", f"string_agg(id::text, ' ' ORDER BY {keys})", f"(array_agg({g.leaf('int4')} ORDER BY {keys}))[1:3]",
                        f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {g.column(INTS) or 'id'})", "min(id)"))
        group = self.queries.group_key(rng, g)
        return Query(f"SELECT {group} AS k, {f} FROM {table.name}{self.queries.where(rng, g)} GROUP BY 1")
