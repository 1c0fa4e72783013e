"""Random joins: two and three relations, of every kind that programs have, and some that they have not.

A relation is bounded by its id where the join has no selective key, so that no
query makes more pairs than PostgreSQL can go through in a moment.
"""
from expressions import Generator
from tables import FLOATS, INTS, TYPES

KINDS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN", "FULL JOIN")
MOST_PAIRS = 400000
# Both sides of an equality: of a type each, possibly of different widths.
KEY_FAMILIES = (INTS, INTS, INTS, FLOATS, FLOATS, ("bool",), ("date",), ("timestamp",), ("timestamptz",), ("date", "timestamp"))


class Side:
    def __init__(self, rng, table, alias, most):
        self.alias, self.table = alias, table
        self.rows = min(table.rows, most)
        self.sql = f"{table.name} {alias}"
        if table.rows > most:
            # a row in so many, or the first ones
            bound = f"id % {table.rows // most + 1} = {rng.randrange(3)}" if rng.random() < 0.5 else f"id < {most}"
            self.sql = f"(SELECT * FROM {table.name} WHERE {bound}) {alias}"
        self.columns = [(f"{alias}.{c.name}", c) for c in table.columns if c.imported]
        self.g = Generator(rng, self.columns)


class Joins:
    def __init__(self, tables, weights):
        self.tables, self.weights = tables, weights

    def side(self, rng, alias, most):
        return Side(rng, rng.choices(self.tables, self.weights)[0], alias, most)

    def equality(self, rng, a, b):
        """a's value = b's, by columns mostly."""
        family = rng.choice(KEY_FAMILIES)
        parts = []
        for side in rng.sample((a, b), 2):
            e = side.g.column(family) if rng.random() < 0.85 else side.g.any(rng.choice(family), 1)
            parts.append(str(e or side.g.leaf(rng.choice(family))))
        return " = ".join(parts)

    def condition(self, rng, a, b, left):
        """The join condition of b with what `left` has, and whether an id is in it."""
        both = Generator(rng, [c for side in left + [b] for c in side.columns])
        parts = []
        by_id = rng.random() < 0.35
        if by_id:
            parts.append(f"{a.alias}.id = {b.alias}.id")
        for _ in range(rng.choice((0, 0, 1)) if by_id else rng.choice((0, 1, 1, 1, 2))):
            parts.append(self.equality(rng, a, b))
        for _ in range(rng.choice((0, 0, 1, 1, 2)) if parts else 1):
            parts.append(str(rng.choice((both, both, a.g, b.g)).bool(rng.choice((1, 1, 2)))))
        rng.shuffle(parts)
        return " AND ".join(parts), by_id

    def bound(self, rng, n):
        """How many rows each of n relations may have."""
        if n == 2:
            return rng.choice(((2000, 200), (600, 600), (100, 2000), (5000, 40), (30, 30)))
        return rng.choice(((300, 40, 30), (1000, 20, 20), (60, 60, 60), (20, 300, 40)))

    def make(self, rng):
        """(FROM clause, WHERE parts, the sides that can be read, does a program join all of it?)"""
        n = 2 if rng.random() < 0.72 else 3
        sides = [self.side(rng, alias, most) for alias, most in zip("abc", self.bound(rng, n))]
        if n == 2 and rng.random() < 0.2:	# no bound: whole tables by a unique key
            sides = [Side(rng, s.table, s.alias, 10**9) for s in sides]
            source = f"{sides[0].sql} {rng.choice(KINDS[:6])} {sides[1].sql} ON a.id = b.id"
            if rng.random() < 0.4:
                source += f" AND {Generator(rng, sides[0].columns + sides[1].columns).bool(1)}"
            return source, [], sides, True
        source, where, visible, program = sides[0].sql, [], [sides[0]], True
        for side in sides[1:]:
            kind = rng.choice(KINDS + ("EXISTS", "EXISTS", "NOT EXISTS", "NOT EXISTS", "IN"))
            on, _ = self.condition(rng, rng.choice(visible), side, visible)
            if kind in ("EXISTS", "NOT EXISTS"):
                where.append(f"{kind} (SELECT FROM {side.sql} WHERE {on})")
                continue
            if kind == "IN":
                type = rng.choice(INTS + FLOATS + ("date",))
                where.append(f"{rng.choice(visible).g.leaf(type)} IN (SELECT {side.g.leaf(type)} FROM {side.sql})")
                program = False			# a list of constants, or no column at all: PostgreSQL has its own ways
                continue
            if kind == "CROSS JOIN":
                source += f" CROSS JOIN {side.sql}"
                if rng.random() < 0.7:
                    where.append(on)
            else:
                source += f" {kind} {side.sql} ON {on}"
            program = program and kind != "FULL JOIN"
            visible = visible + [side]
        # A semijoin behind an outer join, or below one, may be the inner side of it.
        return source, where, visible, program and n == 2

    def query(self, rng, make_query, make_aggregates):
        source, where, visible, program = self.make(rng)
        both = Generator(rng, [c for side in visible for c in side.columns])
        if rng.random() < 0.5:
            where.append(str(rng.choice([both] + [s.g for s in visible]).bool(rng.choice((1, 1, 2)))))
        tail = f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        shape = rng.choices(("rows", "total", "grouped", "counted", "raising"), (4, 8, 4, 4, 1))[0]
        if shape == "raising":			# in what comes out: there the order of the conditions does not matter
            e = both.raising()
            return make_query(f"SELECT {rng.choice((str(e), f'count({e})', f'{visible[0].alias}.id, {e}'))}{tail}", joins=program, raising=True)
        if shape == "rows":
            items = [f"{side.alias}.id AS {side.alias}_id" for side in visible]
            items += [f"{both.any(rng.choice(TYPES), rng.choice((0, 0, 1, 2)))} AS x{i}" for i in range(rng.randint(0, 3))]
            return make_query(f"SELECT {', '.join(items)}{tail}", joins=program)
        if shape == "counted":
            return make_query(f"SELECT count(*){tail}", joins=program)
        aggregates = make_aggregates(both)
        keys = []
        if shape == "grouped":
            keys = [str(both.column((rng.choice(TYPES),)) or both.any("int4", 2)) for _ in range(rng.choice((1, 1, 2)))]
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(1, 3)):
            aggregates.add()
        mine, theirs, kinds = aggregates.lists()
        group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        return make_query(f"SELECT {mine}{tail}{group}", f"SELECT {theirs}{tail}{group}", kinds, joins=program)
