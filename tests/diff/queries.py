"""Random queries over the suite's tables.

A Query is a statement for the engine under test and one for the reference:
they differ where a float sum is compared by the documented rule, for which the
reference also returns the sum of magnitudes. LIMIT stands only under a total
order, and nothing that depends on a float sum decides which rows come out.
"""
import random
from dataclasses import dataclass, field

from dml import Dml
from joins import Joins
from late import Late
from values import Values
from orders import Orders
from subqueries import Subqueries
from tables import FLOATS, INTS, TYPES
from typed import HASHED, HAVE_EXTREMES, TIED, ZONES, TypedGenerator, generator
from windows import Windows

TYPED_SHARE = 0.25			# of all queries, if not told otherwise
PAIRS = ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2")
LEFT_OUT = 0.06				# of the typed ones may read columns that tablets do not have


@dataclass
class Query:
    sql: str
    reference: str = ""
    # How output column i is compared: "exact", or (kind, column of the
    # reference with the exact sum or average as float8, column with sum |x|).
    columns: list = field(default_factory=list)
    ordered: bool = False
    params: list = field(default_factory=list)	# [(type, [value of each execution])]
    raising: bool = False
    shape: str = ""
    joins: bool = False				# one program is to do all of the query's joins
    sorts: bool = False				# one program is to have its rows in order
    any_decimals: bool = False		# of equal numerics PostgreSQL shows the one that came first, from a subquery in any order
    typed: bool = False				# reads a table of typed_tables.py
    undo: bool = False				# it changes tables: in a transaction that is rolled back
    before: list = field(default_factory=list)	# statements there, in this case, whose answers do not count
    after: list = field(default_factory=list)	# and queries whose answers do
    zones: list = field(default_factory=list)	# TimeZone of each execution, in turn; that of the session, if none


class Aggregates:
    """The select list of an aggregate query, for both statements."""

    def __init__(self, generator, rng, float_sums=True):
        self.g, self.rng, self.float_sums = generator, rng, float_sums
        self.items, self.extra, self.kinds = [], [], []

    def key(self, sql):
        self.items.append((sql, sql))
        self.kinds.append(["exact"])

    def add(self):
        rng, g = self.rng, self.g
        if isinstance(g, TypedGenerator) and rng.random() < 0.7:
            return self.exact(g.aggregate())
        filter = f" FILTER (WHERE {g.bool(1)})" if rng.random() < 0.25 else ""
        if rng.random() < 0.08:
            x = g.any(rng.choice(TYPES), rng.choice((0, 0, 1)))
            f = rng.choice(("count", "count", "sum", "avg", "stddev", "var_pop") if x.type in INTS else ("count",))
            return self.exact(f"{f}(DISTINCT {x}){filter}")
        name = rng.choice(("count(*)", "count", "sum", "sum", "avg", "min", "max", "bool", "moment", "pair"))
        if name == "count(*)":
            return self.exact(f"count(*){filter}")
        if name == "bool":
            return self.exact(f"{rng.choice(('bool_and', 'bool_or', 'every'))}({g.bool(2)}){filter}")
        if name in ("count", "min", "max"):
            types = TYPES if name == "count" else [t for t in TYPES if t != "bool"]
            sql = f"{name}({g.any(rng.choice(types), rng.choice((0, 1, 2)))}){filter}"
            if name == "count" and rng.random() < 0.2:
                sql = f"({sql} + {rng.randint(1, 9)})"
            return self.exact(sql)
        if name == "pair":
            x, y = (g.any(rng.choice(FLOATS), rng.choice((0, 0, 1))) for _ in range(2))
            if not self.float_sums or any(e.range.lo is None or max(abs(e.range.lo), abs(e.range.hi)) > 1e60 or "$" in e.sql for e in (x, y)):
                return self.exact(f"regr_count({x}, {y}){filter}")
            name = rng.choice(PAIRS)
            at = len(self.extra)
            self.kinds.append([name] + list(range(at, at + 7)))
            self.extra += [f"{name}({x}, {y}){filter}"] + [f"regr_{m}({x}, {y}){filter}" for m in ("count", "avgx", "avgy", "sxx", "syy", "sxy")]
            self.items.append((f"{name}({x}, {y}){filter}",) * 2)
            return None
        if name == "moment":
            x = g.any(rng.choice(FLOATS), rng.choice((0, 0, 1)))
            name = rng.choice(("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev"))
            if x.range.lo is None or not self.float_sums:
                return self.exact(f"count({x}){filter}")
            self.kinds.append([name, len(self.extra), len(self.extra) + 1])
            self.extra += [f"{name}(({x})::float8){filter}", f"avg(({x})::numeric ^ 2){filter}"]
            self.items.append((f"{name}({x}){filter}", f"{name}(({x})::float8){filter}"))
            return None
        x = g.any(rng.choice(INTS + FLOATS), rng.choice((0, 0, 1, 2)))
        if x.type in INTS:
            sql = f"{name}({x}){filter}"
            if rng.random() < 0.15:
                sql = f"coalesce({sql}, 0)"
            return self.exact(sql)
        if x.range.lo is None or not self.float_sums:
            return self.exact(f"count({x}){filter}")
        # sum(float4) of PostgreSQL accumulates in float4: the reference sums the values as float8.
        reference = f"{name}(({x})::float8){filter}"
        self.kinds.append([f"{name} {x.type}", len(self.extra), len(self.extra) + 1])
        self.extra += [reference, f"sum(abs(({x})::float8)){filter}"]
        self.items.append((f"{name}({x}){filter}", reference + ("::float4" if name == "sum" and x.type == "float4" else "")))

    def exact(self, sql):
        self.items.append((sql, sql))
        self.kinds.append(["exact"])

    def lists(self):
        """(select list, reference's select list, how to compare)."""
        n = len(self.items)
        kinds = [k if k[0] == "exact" else (k[0], *(n + i for i in k[1:])) for k in self.kinds]
        kinds = ["exact" if k == ["exact"] else k for k in kinds]
        return (", ".join(sql for sql, _ in self.items), ", ".join([ref for _, ref in self.items] + self.extra), kinds)


class Queries:
    def __init__(self, seed, tables, only=None, typed_share=TYPED_SHARE):
        self.seed, self.only = seed, only	# the name of a shape, if there is to be no other
        self.by_name = {t.name: t for t in tables}
        self.ordinary, self.typed = [t for t in tables if not t.typed], [t for t in tables if t.typed]
        self.typed_share = typed_share if self.typed else 0
        self.favourite = None			# a table that is to be read more often

    def use(self, tables):
        self.tables = tables
        self.weights = [20 if t is self.favourite else 1 if t.rows < 2 else 2 if t.rows < 100 else 8 for t in tables]
        self.joins = Joins(tables, [2 if t.rows < 2 else 6 if t.rows < 100 else 8 for t in tables])

    def make(self, k):
        rng = random.Random(f"{self.seed}:query:{k}")
        shape = rng.choices(
            (self.rows, self.ordered, self.total, self.grouped, self.spread, self.counted, self.join, self.nested, self.union,
             self.prepared, self.odd, self.raising, self.sets, self.different, self.order, self.subquery, self.late, self.firsts, self.values),
            (23, 5, 20, 18, 8, 4, 12, 6, 3, 8, 1, 8, 8, 6, 6, 5, 2, 4, 3))[0]
        if self.only:
            shape = getattr(self, self.only)
        typed = self.favourite.typed if self.favourite else rng.random() < self.typed_share
        self.use(self.typed if typed else self.ordinary)
        query = shape(rng)
        query.shape, query.typed = shape.__name__, typed
        if typed and rng.random() < 0.4:
            query.zones = rng.sample(ZONES, 3)
            if "d_typed_file" in query.sql and rng.random() < 0.7:
                query.zones = []			# tablets of a file have the zone in which it was read
        if not query.reference:
            query.reference = query.sql
        return query

    # -- parts --------------------------------------------------------------------

    def source(self, rng, prepared=False):
        table = rng.choices(self.tables, self.weights)[0]
        left_out = table.typed and rng.random() < LEFT_OUT
        return table, generator(rng, [(c.name, c) for c in table.columns if c.imported or left_out], prepared)

    def where(self, rng, g, always=False):
        if not always and rng.random() < 0.2:
            return ""
        parts = [g.bool(rng.choice((1, 1, 2, 3))).sql for _ in range(rng.choice((1, 1, 1, 2)))]
        if rng.random() < 0.05:
            parts.insert(rng.randint(0, len(parts)), f"{self.unknown(rng, g)} {rng.choice(('<', '>=', '<>'))} '{rng.choice('0147abcA ')}'")
        return " WHERE " + " AND ".join(parts)

    def outputs(self, rng, g, most=4):
        items = []
        for _ in range(rng.randint(1, most)):
            items.append(str(g.output(rng.choice((0, 0, 1, 2, 3)))))
        return items

    def having(self, rng, g, table):
        """A condition on groups, of one or more parts; one that may raise an error stands alone."""
        def value():
            x = g.column(INTS + ("numeric",)) or g.leaf("int4")
            name = rng.choice(("count(*)", "count", "sum", "sum", "min", "max", "avg"))
            if name == "count(*)":
                return name, rng.choice((0, 1, 10, 30, 300, 10**6))
            return f"{name}({x})", rng.randint(0, 300) if name == "count" else g.literal(x.type)[0]

        def part():
            (a, bound), op = value(), rng.choice(("=", "<>", "<", "<=", ">", ">="))
            kind = rng.choice(("constant", "constant", "constant", "null", "between", "subquery", "or", "case", "two", "other"))
            if kind == "null":
                return f"{a} IS {rng.choice(('', 'NOT '))}NULL"
            if kind == "between":
                return f"{a} BETWEEN {bound} AND {value()[1]}"
            if kind == "subquery":
                return f"{a} {op} (SELECT {a} FROM {table.name} WHERE id % {rng.choice((1, 7, 100))} = 0)"
            if kind == "two":
                return f"{a} {op} {value()[0]}"
            if kind == "other":
                return rng.choice(("bool_or", "bool_and")) + f"({g.bool(1)})"
            other = "{} {} {}".format(*(lambda v: (v[0], op, v[1]))(value()))
            if kind == "or":
                return f"({a} {op} {bound} OR {other})"
            if kind == "case":
                return f"CASE WHEN {other} THEN {a} {op} {bound} ELSE count(*) % 2 = 0 END"
            return f"{a} {op} {bound}"

        if rng.random() < 0.05:
            return f" HAVING 1000 / (count(*) - {rng.randint(1, 30)}) > {rng.randint(-5, 5)}"
        return " HAVING " + " AND ".join(part() for _ in range(rng.choice((1, 1, 2, 3))))

    # -- shapes ---------------------------------------------------------------------

    def rows(self, rng, prepared=False):
        table, g = self.source(rng, prepared)
        items = ["id"] * (rng.random() < 0.7) + self.outputs(rng, g)
        if rng.random() < 0.05:
            items = ["*"]
        sql = f"SELECT {', '.join(items)} FROM {table.name}{self.where(rng, g)}"
        return Query(sql, params=g.params or [])

    def ordered(self, rng):
        """LIMIT under a total order, ORDER BY over what the scan returns."""
        table, g = self.source(rng)
        first = g.order()
        first = f"{first}{rng.choice((' DESC', ' NULLS FIRST', '', ''))}, " if first else ""
        direction = rng.choice((" DESC", ""))
        outputs = ", ".join(f"{o} AS x{i}" for i, o in enumerate(self.outputs(rng, g, 2)))
        sql = f"SELECT id, {outputs} FROM {table.name}{self.where(rng, g)} ORDER BY {first}id{direction}"
        if rng.random() < 0.8:
            sql += f" LIMIT {rng.choice((0, 1, 3, 10, 100))}"
            if rng.random() < 0.3:
                sql += f" OFFSET {rng.choice((1, 5, 50))}"
        return Query(sql, ordered=True)

    def total(self, rng, prepared=False):
        table, g = self.source(rng, prepared)
        aggregates = Aggregates(g, rng)
        for _ in range(rng.randint(1, 4)):
            aggregates.add()
        tail = f" FROM {table.name}{self.where(rng, g)}"
        if rng.random() < 0.08:
            tail += f" HAVING count(*) > {rng.choice((0, 10, 10**6))}"
        mine, theirs, kinds = aggregates.lists()
        return Query(f"SELECT {mine}{tail}", f"SELECT {theirs}{tail}", kinds, params=g.params or [])

    def grouped(self, rng, prepared=False):
        table, g = self.source(rng, prepared)
        aggregates = Aggregates(g, rng)
        keys = []
        for _ in range(rng.choices((1, 2, 3), (5, 3, 1))[0]):
            keys.append(self.group_key(rng, g))
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(0, 3)):
            aggregates.add()
        group = ", ".join(str(i + 1) for i in range(len(keys)))
        tail = f" FROM {table.name}{self.where(rng, g)} GROUP BY {group}"
        if rng.random() < 0.3:
            x = g.leaf(rng.choice(INTS))
            tail += rng.choice((f" HAVING count(*) > {rng.randint(0, 30)}", f" HAVING max({x}) > {g.literal(x.type)[0]}",
                                f" HAVING sum({x}) <> 0 AND count(*) < {rng.randint(1, 500)}", self.having(rng, g, table), self.having(rng, g, table)))
        mine, theirs, kinds = aggregates.lists()
        if table.typed and rng.random() < 0.08 and all(kind == "exact" for kind in kinds):
            tail = tail.replace(f" GROUP BY {group}", f" GROUP BY {rng.choice(('ROLLUP', 'CUBE', 'GROUPING SETS'))} ({group})")
        return Query(f"SELECT {mine}{tail}", f"SELECT {theirs}{tail}", kinds, params=g.params or [])

    def spread_keys(self, rng, g):
        """Group keys of every kind of distribution: few groups, thousands, skew, many columns, floats."""
        n = rng.choice((1, 2, 7, 52, 300, 1021, 5000))
        few = f"id % {n}"
        kind = rng.choice(("few", "unique", "scattered", "skew", "sparse", "wide", "float", "float", "runs"))
        if kind == "few":
            return [few]
        if kind == "unique":
            return ["id"]
        if kind == "scattered":
            return [f"((id::int8 * 2654435761) % {n * 1000003})"]
        if kind == "skew":
            return [f"(CASE WHEN id % 100 < {rng.choice((50, 90, 99))} THEN {rng.choice((0, -1, 'NULL'))} ELSE id END)"]
        if kind == "sparse":
            return [f"(id % {n} * {rng.choice((1000, 400000))})"]
        if kind == "runs":
            return [f"(id / {n})"]
        if kind == "wide":
            columns = [c for c in g.columns if c[1].imported and getattr(c[1], "keyable", True)]
            return [name for name, _ in rng.sample(columns, min(len(columns), rng.randint(3, 8)))]
        e = g.column(FLOATS)
        return [str(e) if e is not None and rng.random() < 0.7 else f"(id % {n} * {rng.choice(('0.5', '-0.25', '1e300'))})::float8"]

    def spread(self, rng):
        """GROUP BY of few to many groups, with aggregates whose states are of several sizes."""
        table, g = self.source(rng)
        aggregates = Aggregates(g, rng)
        keys = self.spread_keys(rng, g)
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(0, 4)):
            aggregates.add()
        group = ", ".join(str(i + 1) for i in range(len(keys)))
        tail = f" FROM {table.name}{self.where(rng, g)} GROUP BY {group}{self.having(rng, g, table) if rng.random() < 0.3 else ''}"
        mine, theirs, kinds = aggregates.lists()
        return Query(f"SELECT {mine}{tail}", f"SELECT {theirs}{tail}", kinds)

    def sets(self, rng, prepared=False):
        """GROUPING SETS, ROLLUP and CUBE, with GROUPING() and HAVING."""
        table, g = self.source(rng, prepared)
        aggregates = Aggregates(g, rng, float_sums=False)
        keys = list(dict.fromkeys(self.group_key(rng, g) for _ in range(rng.choices((1, 2, 3, 4), (2, 5, 4, 1))[0])))
        for key in keys:
            aggregates.key(key)
        if rng.random() < 0.6:
            aggregates.exact(f"grouping({', '.join(rng.sample(keys, rng.randint(1, len(keys))))})")
        for _ in range(rng.randint(0, 3)):
            aggregates.add()
        numbers = [str(i + 1) for i in range(len(keys))]
        kind = rng.choice(("ROLLUP", "CUBE", "GROUPING SETS", "GROUPING SETS", "both"))
        if kind == "GROUPING SETS":
            some = [f"({', '.join(rng.sample(numbers, rng.randint(0, len(keys))))})" for _ in range(rng.randint(0, 3))]
            group = f"GROUPING SETS ({', '.join(rng.sample(some, len(some)) + ['(' + ', '.join(numbers) + ')'])})"
        elif kind == "both":
            group = ", ".join([f"ROLLUP ({', '.join(numbers[:-1])})"] * (len(keys) > 1) + [numbers[-1]])
        else:
            group = f"{kind} ({', '.join(numbers)})"
        tail = f" FROM {table.name}{self.where(rng, g)} GROUP BY {group}"
        if rng.random() < 0.25:
            tail += rng.choice((f" HAVING count(*) > {rng.randint(0, 300)}", f" HAVING grouping({keys[0]}) = {rng.choice((0, 1))}", f" HAVING max(id) > {rng.randint(0, 2000)} OR grouping({keys[-1]}) = 1"))
        mine, theirs, kinds = aggregates.lists()
        return Query(f"SELECT {mine}{tail}", f"SELECT {theirs}{tail}", kinds, params=g.params or [])

    def different(self, rng, prepared=False):
        """Aggregates of different values: several, with conditions, beside others, with groups and without."""
        table, g = self.source(rng, prepared)
        aggregates = Aggregates(g, rng)
        keys = [self.group_key(rng, g) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(1, 3)):
            filter = f" FILTER (WHERE {g.bool(1)})" if rng.random() < 0.3 else ""
            x = g.any(rng.choice(INTS), rng.choice((0, 0, 1)))
            aggregates.exact(rng.choice((f"count(DISTINCT {self.group_key(rng, g)}){filter}", f"count(DISTINCT {x}){filter}", f"{rng.choice(('sum', 'avg', 'stddev'))}(DISTINCT {x}){filter}")))
        for _ in range(rng.choice((0, 1, 2))):
            aggregates.add()
        tail = f" FROM {table.name}{self.where(rng, g)}"
        if keys:
            tail += f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}"
        if rng.random() < 0.1:
            tail += f" HAVING count(*) > {rng.choice((0, 3, 100))}"
        mine, theirs, kinds = aggregates.lists()
        return Query(f"SELECT {mine}{tail}", f"SELECT {theirs}{tail}", kinds, params=g.params or [])

    def counted(self, rng):
        """The number of groups, whatever is computed for each."""
        table, g = self.source(rng)
        keys = self.spread_keys(rng, g) if rng.random() < 0.7 else [self.group_key(rng, g) for _ in range(rng.choice((1, 2)))]
        aggregates = Aggregates(g, rng, float_sums=False)
        for key in keys:
            aggregates.key(key)
        aggregates.add()
        items = ", ".join(f"{sql} AS x{i}" for i, (sql, _) in enumerate(aggregates.items))
        group = ", ".join(str(i + 1) for i in range(len(keys)))
        having = f" HAVING count(*) > {rng.randint(1, 5)}" if rng.random() < 0.1 else ""
        n = rng.choice(("count(*)", "count(*)", "count(*)", "count(*) + 1, count(*)", "count(*), count(x0)"))
        return Query(f"SELECT {n} FROM (SELECT {items} FROM {table.name}{self.where(rng, g)} GROUP BY {group}{having}) s")

    def firsts(self, rng):
        """Keys and extremes of values that are equal and print differently: what shows is the first of its group, or of equal extremes the first or last."""
        table, g = self.source(rng)
        tied = [name for name, c in g.columns if c.imported and c.type in TIED and not c.keyable]
        if not tied:
            return self.grouped(rng)
        extremes = [name for name, c in g.columns if name in tied and c.type in HAVE_EXTREMES]
        tail = f" FROM {table.name}{self.where(rng, g)}"

        def aggregate():
            filter = f" FILTER (WHERE {g.bool(1)})" if rng.random() < 0.3 else ""
            if extremes and rng.random() < 0.7:
                return f"{rng.choice(('min', 'max'))}({rng.choice(extremes)}){filter}"
            return f"{rng.choice(('count(*)', 'min(id)', 'sum(id)', 'bool_and(id > 100)'))}{filter}"

        kind = rng.choice(("groups", "groups", "groups", "total", "distinct", "counts", "sets"))
        if kind == "total":
            return Query(f"SELECT {', '.join(aggregate() for _ in range(rng.randint(1, 4)))}{tail}")
        if kind == "counts":
            return Query(f"SELECT {', '.join(f'count(DISTINCT {name})' for name in tied)}, count(*){tail}")
        keys = rng.sample(tied, rng.randint(1, len(tied)))
        if rng.random() < 0.5:
            # not one that PostgreSQL has to sort by, or that it groups the engine's rows by: any of the equal ones comes first then
            plain = [name for name, c in g.columns if c.imported and getattr(c, "keyable", True) and c.type in HASHED]
            keys.insert(rng.randint(0, len(keys)), rng.choice(plain + [f"id % {rng.choice((2, 7, 60))}"]))
        if rng.random() < 0.2 and any(name == "o_interval" for name, _ in g.columns):
            keys.append(f"coalesce(o_interval, '{rng.choice(('30 days', '24:00:00', '5 days'))}')")
        if kind == "distinct":
            return Query(f"SELECT DISTINCT {', '.join(keys)}{tail}")
        numbers = [str(i + 1) for i in range(len(keys))]
        group = f"GROUPING SETS (({', '.join(numbers)}), {', '.join(rng.sample(numbers, rng.randint(1, len(numbers))))}, ())" if kind == "sets" else ", ".join(numbers)
        having = f" HAVING count(*) > {rng.choice((0, 3, 30))}" if rng.random() < 0.2 else ""
        return Query(f"SELECT {', '.join(keys + [aggregate() for _ in range(rng.randint(0, 3))])}{tail} GROUP BY {group}{having}")

    def group_key(self, rng, g):
        params, g.params = g.params, None	# a parameter in a key could not be repeated by number
        key = self.unknown(rng, g) if rng.random() < 0.15 else g.key()
        g.params = params
        return key

    def unknown(self, rng, g):
        """A text that no program computes, though it does what it is made of."""
        x = g.column(INTS) or g.leaf("int4")
        forms = [f"({x})::text", f"({x} % 7)::text", f"concat({x}, '-', ({x}) % 3)", f"(CASE WHEN {x} <> 0 THEN (10 / {x})::text ELSE 'none' END)"]
        if isinstance(g, TypedGenerator):
            time = g.tame(("date", "timestamp", "timestamp", "timestamptz"))
            texts = [name for name, c in g.typed(("text", "variable text"))]
            if time:
                forms += [f"to_char({time}, '{f}')" for f in ("YYYY-MM", "Day", "IYYY-IW", "YYYY-MM-DD HH24", "HH12 AM", "YYYY-MM-DD HH24:MI")]
            if texts:
                forms += [f"({rng.choice(texts)} || '/' || {rng.choice(texts)})", f"(lower({rng.choice(texts)}) || ({x}))"]
        return rng.choice(forms)

    def join(self, rng):
        return self.joins.query(rng, Query, lambda g: Aggregates(g, rng, float_sums=False))

    def order(self, rng):
        return Orders(self).query(rng, Query, Aggregates)

    def subquery(self, rng):
        return Subqueries(self).query(rng, Query, Aggregates)

    def dml(self, rng):
        return Dml(self).query(rng, Query)

    def window(self, rng):
        return Windows(self).query(rng, Query)

    def late(self, rng):
        return Late(self).query(rng, Query)

    def values(self, rng):
        return Values(self).query(rng, Query)

    def nested(self, rng):
        """Scans below subqueries, CTEs, EXISTS, scalar and correlated subqueries."""
        table, g = self.source(rng)
        other, h = self.source(rng)
        inner = f"SELECT id, {g.any('int4', 2)} AS x, {g.any('float8', 1)} AS y FROM {table.name}{self.where(rng, g)}"
        kind = rng.choice(("from", "cte", "exists", "in", "scalar", "correlated", "lateral", "groups"))
        if kind == "from":
            sql = f"SELECT count(*), sum(x), min(y), max(id) FROM ({inner}) s WHERE x IS NOT NULL"
        elif kind == "cte":
            form = rng.choice(("AS", "AS MATERIALIZED", "AS NOT MATERIALIZED"))
            sql = f"WITH s {form} ({inner}) SELECT id, x FROM s WHERE x > 0 UNION ALL SELECT count(*), max(x) FROM s"
        elif kind == "exists":
            sql = (f"SELECT o.id FROM {other.name} o WHERE {rng.choice(('', 'NOT '))}EXISTS "
                   f"(SELECT 1 FROM ({inner}) s WHERE s.id = o.id) AND o.id < 3000")
        elif kind == "in":
            sql = f"SELECT id FROM {other.name} WHERE id {rng.choice(('IN', 'NOT IN'))} (SELECT id FROM ({inner}) s) AND {h.bool(1)}"
        elif kind == "scalar":
            sql = (f"SELECT count(*), min(id) FROM {other.name} WHERE id > (SELECT max(id) / 2 FROM {table.name}{self.where(rng, g)}) "
                   f"AND {h.bool(1)}")
        elif kind == "correlated":
            sql = (f"SELECT d.id, (SELECT count(*) FROM {table.name} t WHERE t.id % 40 = d.id AND t.id > d.int4_1) "
                   "FROM d_dim d WHERE d.id < 12")
        elif kind == "lateral":
            sql = (f"SELECT d.id, s.n, s.m FROM d_dim d, LATERAL (SELECT count(*) AS n, max(t.id) AS m FROM {table.name} t "
                   "WHERE t.id < d.id * 10) s WHERE d.id < 12")
        else:
            key = self.group_key(rng, g)
            sql = (f"SELECT count(*), max(n) FROM (SELECT {key} AS k, count(*) AS n FROM {table.name}{self.where(rng, g)} "
                   "GROUP BY 1) s")
        return Query(sql)

    def union(self, rng):
        parts = []
        type = rng.choice(TYPES + ("numeric", "text") if self.tables is self.typed else TYPES)
        for _ in range(rng.choice((2, 3))):
            table, g = self.source(rng)
            parts.append(f"SELECT id, {g.any(type, 2)} AS x FROM {table.name}{self.where(rng, g)}")
        # UNION would keep either of -0 and 0, or of two equal values that print differently.
        op = " UNION ALL " if type in FLOATS + ("numeric", "text") else rng.choice((" UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT "))
        return Query(op.join(parts))

    def prepared(self, rng):
        return rng.choice((self.rows, self.rows, self.total, self.total, self.grouped, self.grouped, self.sets, self.different))(rng, prepared=True)

    def odd(self, rng):
        """What the VM does not take: it must stay with PostgreSQL, with a reason."""
        table, g = self.source(rng)
        where = self.where(rng, g, always=True)
        sql = rng.choice((
            f"SELECT ctid, tableoid::regclass, id FROM {table.name}{where}",
            f"SELECT count(DISTINCT {g.leaf('int4')}) FROM {table.name}{where}",
            f"SELECT id, row_number() OVER (ORDER BY id) FROM {table.name}{where}",
            f"SELECT id, {g.leaf('int4')}::text || 'x' FROM {table.name}{where}",
            f"SELECT id, {g.leaf('float8')}::numeric(20, 3) FROM {table.name}{where} AND {g.leaf('float8')} BETWEEN -1000 AND 1000",
            f"SELECT DISTINCT {g.leaf('int4')} FROM {table.name}{where}",
            f"SELECT {g.leaf('int2')}, {g.leaf('bool')}, count(*) FROM {table.name}{where} GROUP BY ROLLUP (1, 2)",
            f"SELECT t, id FROM {table.name} t{where} AND id < 50",
            f"SELECT id FROM {table.name}{where} AND sqrt(id) < 10",
            f"SELECT id, xmin IS NULL FROM {table.name}{where}",
        ))
        return Query(sql, raising="numeric" in sql)

    def raising(self, rng):
        """One operation that may raise, in one place: PostgreSQL decides, and the VM must agree."""
        table, g = self.source(rng)
        if not table.typed and rng.random() < 0.6:	# the extremes of every type are there
            table = self.by_name["d_wild"]
            g = generator(rng, [(c.name, c) for c in table.columns])
        e = g.raising()
        place = rng.choice(("output", "where", "aggregate", "key", "guarded"))
        if place == "output":
            sql = f"SELECT id, {e} FROM {table.name}{self.where(rng, g)}"
        elif place == "where":
            sql = f"SELECT id FROM {table.name} WHERE ({e} IS NOT NULL)"
        elif place == "aggregate":
            sql = f"SELECT count(*), max({e}) FROM {table.name}{self.where(rng, g)}"
        elif place == "key":
            sql = f"SELECT {e} IS NULL, count(*) FROM {table.name}{self.where(rng, g)} GROUP BY 1"
        else:
            sql = f"SELECT id, CASE WHEN {g.bool(1)} THEN {e} END FROM {table.name}{self.where(rng, g)}"
        return Query(sql, raising=True)


def statements(query, sql):
    """What to run for one side of a query: one statement, or PREPARE and several EXECUTE."""
    if not query.params:
        return [sql]
    types = ", ".join(type for type, _ in query.params)
    calls = [f"EXECUTE q ({', '.join(values[i] for _, values in query.params)})" for i in range(len(query.params[0][1]))]
    return [f"PREPARE q ({types}) AS {sql}"] + calls
