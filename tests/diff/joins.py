"""Random joins: two to five relations, of every kind that PostgreSQL has.

A relation is bounded by its id where the join has no selective key, so that no
query makes more pairs than PostgreSQL can go through in a moment. It is a table, a
subquery or a CTE; what joins it to those before is a kind of join, EXISTS, IN, or
the negation of one of these.
"""
from expressions import COMPARISONS
from tables import FLOATS, INTS, TIMES
from typed import VARIABLE_KEYS, generator

KINDS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN", "FULL JOIN")
SUBLINKS = ("EXISTS",) * 8 + ("NOT EXISTS",) * 8 + ("IN",) * 5 + ("NOT IN",)
# Both sides of an equality: of a type each, possibly of different widths.
KEY_FAMILIES = (INTS, INTS, INTS, FLOATS, FLOATS, ("bool",), ("date",), ("timestamp",), ("timestamptz",), ("date", "timestamp"))
TYPED_KEYS = (("numeric",), ("text",), ("numeric",), ("d_mood",), ("uuid",), ("time",), ("bpchar",), ("text",), ("text",))
BY_BYTES = ("text", "name") + VARIABLE_KEYS
# Both sides of a comparison that makes a range.
RANGE_FAMILIES = (INTS, INTS, FLOATS, ("date", "timestamp"), ("timestamptz",))
# How many rows each of n relations may have.
GROUP_VALUES = ("avg({x})",) * 4 + ("sum({x})", "max({x})", "round(avg({x}), 2)", "0.5 * avg({x})", "sum({x}) / count({x})::numeric", "coalesce(min({x}), 0)", "floor(avg({x}))")
BOUNDS = {
    2: ((2000, 200), (600, 600), (100, 2000), (5000, 40), (30, 30)),
    3: ((300, 40, 30), (1000, 20, 20), (60, 60, 60), (20, 300, 40)),
    4: ((200, 20, 10, 10), (20, 20, 20, 20), (10, 200, 15, 10)),
    5: ((100, 10, 8, 8, 6), (12, 12, 12, 10, 10), (8, 100, 8, 8, 6)),
}


class Side:
    def __init__(self, rng, table, alias, most):
        self.alias, self.table, self.cte = alias, table, ""
        self.rows = min(table.rows, most)
        self.columns = [(f"{alias}.{c.name}", c) for c in table.columns if c.imported]
        self.g = generator(rng, self.columns)
        self.sql = f"{table.name} {alias}"
        self.shown = []					# what else rows of it have
        conditions = []
        if table.rows > most:
            # a row in so many, or the first ones
            conditions.append(f"id % {table.rows // most + 1} = {rng.randrange(3)}" if rng.random() < 0.5 else f"id < {most}")
        if rng.random() < 0.05:
            conditions.append("id < 0")	# no row
        if not conditions and rng.random() < 0.85:
            return
        body = f"SELECT * FROM {table.name}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
        if rng.random() < 0.05:		# each row is in one arm, or in both
            at = rng.randint(0, most)
            self.sql = f"({body} AND id <= {at} UNION ALL {body} AND {rng.choice(('id >', 'id >', 'id >=', 'id % 3 = 1 AND id <'))} {at}) {alias}" if conditions else self.sql
            return
        if rng.random() < 0.06:
            self.cte = f"{alias}_rows AS {rng.choice(('', '', 'MATERIALIZED ', 'NOT MATERIALIZED '))}({body})"
            self.sql = f"{alias}_rows {alias}"
        else:
            self.sql = f"({body}{rng.choice((' OFFSET 0', '', '', '', '', '', '', '', ''))}) {alias}"

    def is_plain(self):
        return not self.cte and "OFFSET" not in self.sql and "UNION" not in self.sql and not self.table.typed


class Joins:
    def __init__(self, tables, weights):
        self.tables, self.weights = tables, weights

    def side(self, rng, alias, most):
        return Side(rng, rng.choices(self.tables, self.weights)[0], alias, most)

    def equality(self, rng, a, b):
        """a's value = b's, by columns mostly."""
        family = rng.choice(KEY_FAMILIES + TYPED_KEYS if a.table.typed and b.table.typed else KEY_FAMILIES)
        parts = []
        if a.table.typed and b.table.typed and rng.random() < 0.3:
            met = self.texts(rng, a, b)
            if met:
                return met
        for side in rng.sample((a, b), 2):
            e = side.g.column(family) if rng.random() < 0.85 else side.g.any(rng.choice(family), 1)
            parts.append(str(e or side.g.leaf(rng.choice(family))))
        return " = ".join(parts)

    def texts(self, rng, a, b):
        """Texts of two relations, of types that are compared by their bytes, and of one collation."""
        pairs = [(n, m, c) for n, c in a.columns for m, d in b.columns if c.type in BY_BYTES and d.type in BY_BYTES and (c.type == d.type or "variable" not in c.type + d.type) and c.collation == d.collation]
        if not pairs:
            return None
        n, m, c = rng.choice(pairs)
        if c.type in VARIABLE_KEYS:
            return f"{n} {rng.choice(('=',) * 5 + ('IS NOT DISTINCT FROM', '<>'))} {m}"
        if c.type == "text" and rng.random() < 0.25:
            n, m = rng.sample((a.g.fill(rng.choice(("upper({x})", "left({x}, {n})", "coalesce({x}, {c})", "{x} || 'y'")), n, c), m), 2)
        return rng.choice((f"{n} = {m}",) * 4 + (f"coalesce({n}, {m}) = {m}", f"{n} IS NOT DISTINCT FROM {m}", f"{n} IN ({m}, {a.g.meeting(c)})", f"{n} {rng.choice(COMPARISONS)} {m}"))

    def range(self, rng, a, b):
        """A value of one side between bounds of the other, or on one side of a bound."""
        family = rng.choice(RANGE_FAMILIES)
        one, other = rng.sample((a, b), 2)
        value = one.g.column(family) or one.g.leaf(rng.choice(family))
        bounds = [other.g.column(family) if rng.random() < 0.7 else other.g.any(rng.choice(family), 1) for _ in range(2)]
        bounds = [bound or other.g.leaf(rng.choice(family)) for bound in bounds]
        form = rng.random()
        if form < 0.3:
            return f"{value} {rng.choice(COMPARISONS[2:])} {bounds[0]}"
        if form < 0.6:
            return f"{value} BETWEEN {bounds[0]} AND {bounds[1]}"
        return f"{value} {rng.choice(('>', '>='))} {bounds[0]} AND {bounds[1]} {rng.choice(('>', '>='))} {value}"

    def condition(self, rng, a, b, left):
        """The join condition of b with what `left` has."""
        both = generator(rng, [c for side in left + [b] for c in side.columns])
        parts = []
        by_id = rng.random() < 0.35
        if by_id:
            parts.append(f"{a.alias}.id = {b.alias}.id")
        for _ in range(rng.choice((0, 0, 1)) if by_id else rng.choice((0, 1, 1, 1, 2))):
            parts.append(self.equality(rng, a, b))
        if rng.random() < (0.5 if not parts else 0.15):
            parts.append(self.range(rng, a, b))
        for _ in range(rng.choice((0, 0, 1, 1, 2)) if parts else 1):
            parts.append(str(rng.choice((both, both, a.g, b.g)).bool(rng.choice((1, 1, 2)))))
        rng.shuffle(parts)
        return " AND ".join(parts)

    def full_condition(self, rng, a, b):
        """PostgreSQL wants a key for a full join; mostly it gets one, sometimes it refuses."""
        parts = [f"{a.alias}.id = {b.alias}.id" if rng.random() < 0.4 else self.equality(rng, a, b)]
        if rng.random() < 0.4:
            parts.append(str(generator(rng, a.columns + b.columns).bool(1)))
        return " AND ".join(parts)

    def using(self, rng, a, b, visible):
        """Columns that both have by name and type, and nobody else whose name would be ambiguous; or none."""
        mine = {c.name: c.type for c in b.table.columns if c.imported}
        names = [c.name for c in a.table.columns if c.imported and mine.get(c.name) == c.type]
        return [n for n in names if len(visible) == 1] and rng.sample(names, min(len(names), rng.choice((1, 1, 2))))

    def sublink(self, rng, kind, side, visible):
        """(the condition, is it a semijoin or antijoin that programs have?)"""
        left = rng.choice(visible)
        if kind in ("EXISTS", "NOT EXISTS"):
            return f"{kind} (SELECT FROM {side.sql} WHERE {self.condition(rng, left, side, visible)})", True
        type = rng.choice(INTS + FLOATS + TIMES)
        inner = f"SELECT {side.g.leaf(type)} FROM {side.sql}"
        if rng.random() < 0.3:			# one that depends on the row is no join in PostgreSQL
            inner += f" WHERE {side.g.bool(1)}" if rng.random() < 0.8 else f" WHERE {self.equality(rng, left, side)}"
        return f"{left.g.leaf(type)} {kind} ({inner})", False	# a list of constants, or no column at all: PostgreSQL has its own ways

    def make(self, rng):
        """(CTEs, FROM clause, WHERE parts, the sides that can be read, does a program join all of it?, are there too many rows to hand out?)"""
        if rng.random() < 0.06:
            return self.ranges(rng)
        if rng.random() < 0.18:
            return self.bushy(rng)
        if rng.random() < 0.07:
            return self.averages(rng)
        n = rng.choices((2, 3, 4, 5), (50, 25, 13, 12))[0]
        sides = [self.side(rng, alias, most) for alias, most in zip("abcde", rng.choice(BOUNDS[n]))]
        if n == 2 and rng.random() < 0.2:	# no bound: whole tables by a unique key
            sides = [Side(rng, s.table, s.alias, 10**9) for s in sides]
            source = f"{sides[0].sql} {rng.choice(KINDS[:6])} {sides[1].sql} ON a.id = b.id"
            if rng.random() < 0.4:
                source += f" AND {generator(rng, sides[0].columns + sides[1].columns).bool(1)}"
            return [s.cte for s in sides if s.cte], source, [], sides, all(s.is_plain() for s in sides), False
        source, where, visible = sides[0].sql, [], [sides[0]]
        program = all(s.is_plain() for s in sides)
        for side in sides[1:]:
            kind = rng.choice(KINDS + (SUBLINKS if rng.random() < 0.8 else ()))
            if kind in SUBLINKS:
                condition, joins = self.sublink(rng, kind, side, visible)
                where.append(condition)
                program = program and joins
                continue
            a = rng.choice(visible)
            if kind == "CROSS JOIN":
                source += f" CROSS JOIN {side.sql}"
                if rng.random() < 0.7:
                    where.append(self.condition(rng, a, side, visible))
            elif kind == "FULL JOIN":
                source += f" FULL JOIN {side.sql} ON {self.full_condition(rng, a, side)}"
            else:
                names = self.using(rng, a, side, visible) if rng.random() < 0.12 else []
                on = f"USING ({', '.join(names)})" if names else f"ON {self.condition(rng, a, side, visible)}"
                source += f" {kind} {side.sql} {on}"
                program = program and (kind != "RIGHT JOIN" or side is sides[1])	# then its inner side is a join
            visible = visible + [side]
        return [s.cte for s in sides if s.cte], source, where, visible, program, False

    def bushy(self, rng):
        """Joins whose inner sides are joins, of any kind, and EXISTS over joins; now and then an inner side that is read anew for each row."""
        n = rng.choice((3, 3, 3, 4, 4, 5))
        sides = [self.side(rng, alias, most) for alias, most in zip("abcde", rng.choice(BOUNDS[n]))]
        outer = rng.randint(1, n - 1) if rng.random() < 0.4 else n		# the others are below an EXISTS
        source, visible = self.tree(rng, sides[:outer])
        where = []
        if outer < n:
            inner, below = self.tree(rng, sides[outer:])
            where.append(f"{rng.choice(('EXISTS', 'EXISTS', 'NOT EXISTS'))} (SELECT FROM {inner} WHERE {self.between(rng, visible, below)})")
        return [s.cte for s in sides if s.cte], source, where, visible, False, False

    def tree(self, rng, sides):
        """(a FROM item that joins them, with parentheses anywhere; what can be read)"""
        if len(sides) == 1:
            return sides[0].sql, sides
        at = rng.randint(1, len(sides) - 1)
        (left, a), (right, b) = self.tree(rng, sides[:at]), self.tree(rng, sides[at:])
        if len(b) == 1 and not b[0].table.foreign and rng.random() < 0.1:	# a file would be read as often
            lateral = f"LATERAL (SELECT {b[0].alias}.* FROM {right} WHERE {self.between(rng, a, b)} OFFSET 0) {b[0].alias}"
            return f"{left} {rng.choice(('CROSS JOIN ' + lateral, 'LEFT JOIN ' + lateral + ' ON true'))}", a + b
        right = right if len(b) == 1 else f"({right})"
        left = left if len(a) == 1 or rng.random() < 0.5 else f"({left})"
        kind = rng.choice(KINDS)
        if kind == "FULL JOIN":
            return f"{left} FULL JOIN {right} ON {self.full_condition(rng, rng.choice(a), rng.choice(b))}", a + b
        return f"{left} {kind.replace('CROSS', 'INNER')} {right} ON {self.between(rng, a, b)}", a + b

    def between(self, rng, a, b):
        one = rng.choice(b)
        return self.condition(rng, rng.choice(a), one, a + [s for s in b if s is not one and rng.random() < 0.5])

    def ranges(self, rng):
        """Many rows of two tables by a range: with fewer a nested loop is cheaper."""
        sides = [self.side(rng, alias, 2500) for alias in "ab"]
        on = self.range(rng, *sides)
        if rng.random() < 0.2:
            on += f" AND {generator(rng, sides[0].columns + sides[1].columns).bool(1)}"
        kind = rng.choice(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "EXISTS", "NOT EXISTS"))
        program = all(s.is_plain() for s in sides)
        ctes = [s.cte for s in sides if s.cte]
        if kind.endswith("EXISTS"):
            return ctes, sides[0].sql, [f"{kind} (SELECT FROM {sides[1].sql} WHERE {on})"], sides[:1], program, True
        return ctes, f"{sides[0].sql} {kind} {sides[1].sql} ON {on}", [], sides, program, True

    def averages(self, rng):
        """Rows beside averages and the like of groups of rows, which they are compared with."""
        a, b = self.side(rng, "a", 2000), self.side(rng, "b", 2000)
        numbers = [[n for n, c in side.columns if c.type in INTS + ("numeric",)] for side in (a, b)]
        keys = [rng.choice([n for n, c in side.columns if c.type in INTS]) for side in (a, b)]
        values = [rng.choice(GROUP_VALUES).format(x=rng.choice(numbers[1])) for _ in range(2)]
        groups = f"(SELECT {keys[1]} AS k, {values[0]} AS x, {values[1]} AS y FROM {b.sql} GROUP BY 1) q"
        on = f"q.k = {keys[0]}" + (f" AND {rng.choice(numbers[0])} {rng.choice(COMPARISONS)} q.x" if rng.random() < 0.8 else "")
        kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "EXISTS", "NOT EXISTS"))
        ctes = [s.cte for s in (a, b) if s.cte]
        if kind.endswith("EXISTS"):
            return ctes, a.sql, [f"{kind} (SELECT FROM {groups} WHERE {on})"], [a], False, False
        a.shown = rng.choice(([], ["q.x"], ["q.x", "q.y"]))
        where = [f"{rng.choice(numbers[0])} {rng.choice(COMPARISONS)} {rng.choice(('', '1.1 * '))}q.y"] if rng.random() < 0.4 else []
        return ctes, f"{a.sql} {kind} {groups} ON {on}", where, [a], False, False

    def query(self, rng, make_query, make_aggregates):
        ctes, source, where, visible, program, many = self.make(rng)
        both = generator(rng, [c for side in visible for c in side.columns])
        if rng.random() < 0.5:
            where.append(str(rng.choice([both] + [s.g for s in visible]).bool(rng.choice((1, 1, 2)))))
        if "LEFT JOIN" in source and rng.random() < 0.3:	# rows without a partner
            where.append(f"{rng.choice(visible[-1].columns)[0]} IS NULL")
        tail = f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        head = f"WITH {', '.join(ctes)} " if ctes else ""
        shape = rng.choices(("rows", "total", "grouped", "counted", "raising"), (0 if many else 4, 8, 4, 4, 0 if many else 1))[0]
        if shape == "raising":			# in what comes out: there the order of the conditions does not matter
            e = both.raising()
            return make_query(f"{head}SELECT {rng.choice((str(e), f'count({e})', f'{visible[0].alias}.id, {e}'))}{tail}", joins=program, raising=True)
        if shape == "rows":
            items = [f"{side.alias}.id AS {side.alias}_id" for side in visible]
            items += [e for side in visible for e in side.shown]
            items += [f"{both.output(rng.choice((0, 0, 1, 2)))} AS x{i}" for i in range(rng.randint(0, 3))]
            return make_query(f"{head}SELECT {', '.join(items)}{tail}", joins=program)
        if shape == "counted":
            return make_query(f"{head}SELECT count(*){tail}", joins=program)
        aggregates = make_aggregates(both)
        keys = []
        if shape == "grouped":
            keys = [both.key() for _ in range(rng.choice((1, 1, 2)))]
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(1, 3)):
            aggregates.add()
        mine, theirs, kinds = aggregates.lists()
        group = ", ".join(str(i + 1) for i in range(len(keys)))
        if keys:
            group = f" GROUP BY {rng.choice(('ROLLUP', 'CUBE', 'GROUPING SETS'))} ({group})" if rng.random() < 0.15 else f" GROUP BY {group}"
        return make_query(f"{head}SELECT {mine}{tail}{group}", f"{head}SELECT {theirs}{tail}{group}", kinds, joins=program)
