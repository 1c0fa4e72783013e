"""Random expressions that cannot raise, by construction.

Each expression carries the Range of its values; an operation is built only if
its result stays in range for all of them. So an error in either engine is a
difference, whatever the order of evaluation. `raising` builds the opposite: one
operation that some row may well fail in.
"""
from dataclasses import dataclass, field

from tables import FLOATS, INT_RANGE, INTS, SPECIAL_FLOATS, SPECIAL_TIMES, TIMES, TYPES, Range, near_time

range_ = range					# `range` is what an Expr knows of its values

FLOAT_LIMIT = {"float4": (1e-35, 1e36), "float8": (1e-290, 1e290)}
EPSILON = {"float4": 2.0**-23, "float8": 2.0**-52}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass
class Expr:
    sql: str
    type: str
    range: Range = field(default_factory=Range)
    scale: object = None	# a numeric's display scale, if all of its values have one

    def __str__(self):
        return self.sql


def quoted(type, text):
    return f"'{text}'::{type}"


class Generator:
    """Expressions over the columns of one FROM list; `alias` prefixes their names."""

    def __init__(self, rng, columns, prepared=False):
        self.rng = rng
        self.columns = columns		# [(sql name, Column)]
        self.params = [] if prepared else None	# [(type, [values as SQL])]

    # -- leaves -----------------------------------------------------------------

    def columns_of(self, types):
        return [Expr(name, c.type, c.range) for name, c in self.columns if c.type in types]

    def column(self, types):
        found = self.columns_of(types)
        return self.rng.choice(found) if found else None

    def literal(self, type, positive=False):
        """(SQL, Range) of a constant; a positive one is not zero either."""
        rng = self.rng
        if type == "bool":
            return rng.choice(("true", "false")), Range()
        if type in INTS:
            lo, hi = INT_RANGE[type]
            v = rng.choice((rng.randint(-10, 10), rng.randint(-100, 100), rng.randint(-30000, 30000)))
            if rng.random() < 0.03:
                v = rng.choice((lo, hi))
            if positive:
                v = max(1, abs(v) % 1000)
            sql = str(v) if type == "int4" and v >= 0 else quoted(type, v)
            return sql, Range(v, v)
        if type in FLOATS:
            if not positive and rng.random() < 0.08:
                return quoted(type, rng.choice(SPECIAL_FLOATS[type])), Range(None, None, finite=False)
            v = rng.choice((rng.randint(1, 50) / 4, rng.randint(1, 9000) / 8, float(rng.randint(1, 10))))
            range = Range(v, v)
            if not positive and rng.random() < 0.4:
                v = -v
            return (str(v) if type == "float8" and rng.random() < 0.3 else quoted(type, v)), range
        if rng.random() < 0.08:
            return quoted(type, rng.choice(SPECIAL_TIMES[type])), Range(tame=False)
        return quoted(type, near_time(rng, type)), Range()

    def constant(self, type, positive=False):
        sql, range = self.literal(type, positive)
        if self.params is None or len(self.params) >= 4 or self.rng.random() < 0.4:
            # A bare decimal is numeric; only next to a float8 does it become one.
            if type == "float8" and not sql.endswith("float8"):
                sql = quoted(type, sql)
            return Expr(sql, type, range)
        values = [sql]
        for _ in range_(2):
            sql, other = self.literal(type, positive)
            range = range.union(other)
            values.append("NULL" if self.rng.random() < 0.1 else sql)
        self.params.append((type, values))
        return Expr(f"${len(self.params)}", type, range)

    def leaf(self, type):
        e = self.column((type,)) if self.rng.random() < 0.8 else None
        return e or self.constant(type)

    # -- what a query asks for -----------------------------------------------------

    def output(self, depth):
        return self.any(self.rng.choice(TYPES), depth)

    def key(self):
        if self.rng.random() < 0.65:
            return str(self.column((self.rng.choice(TYPES),)) or self.leaf("int4"))
        return str(self.any(self.rng.choice(TYPES), 2))

    def order(self):
        columns = [e for e in self.columns_of(INTS) if e.sql != "id"]	# a bare constant would be a position
        return str(self.rng.choice(columns)) if columns and self.rng.random() < 0.4 else None

    # -- values -----------------------------------------------------------------

    def any(self, type, depth):
        if depth <= 0 or self.rng.random() < 0.2:
            return self.leaf(type)
        for _ in range_(6):
            e = self.conditional(type, depth) if self.rng.random() < 0.25 else self.operation(type, depth)
            if e is not None:
                return e
        return self.leaf(type)

    def operation(self, type, depth):
        if type in INTS:
            return self.integer(type, depth)
        if type in FLOATS:
            return self.float(type, depth)
        if type == "bool":
            return self.bool(depth)
        return self.time(type, depth)

    def conditional(self, type, depth):
        kind = self.rng.choice(("case", "case", "simple case", "coalesce", "nullif", "greatest", "least"))
        a, b = self.any(type, depth - 1), self.any(type, depth - 1)
        r = a.range.union(b.range)
        if kind == "case":
            whens = f"WHEN {self.bool(depth - 1)} THEN {a}"
            if self.rng.random() < 0.3:
                c = self.any(type, depth - 1)
                r = r.union(c.range)
                whens += f" WHEN {self.bool(depth - 1)} THEN {c}"
            return Expr(f"(CASE {whens}{'' if self.rng.random() < 0.2 else f' ELSE {b}'} END)", type, r)
        if kind == "simple case":
            t = self.rng.choice(INTS + ("bool", "date"))
            return Expr(f"(CASE {self.any(t, depth - 1)} WHEN {self.constant(t)} THEN {a} ELSE {b} END)", type, r)
        if kind == "nullif":
            return Expr(f"nullif({a}, {b})", type, a.range)
        more = f", {self.leaf_in(type, r)}" if self.rng.random() < 0.2 else ""
        return Expr(f"{kind}({a}, {b}{more})", type, r)

    def leaf_in(self, type, range):
        """A third argument that does not widen the range: a column of the type already within it, or NULL."""
        for e in self.columns_of((type,)):
            if e.range.lo is not None and range.lo is not None and type in INTS and e.range.lo >= range.lo and e.range.hi <= range.hi:
                return e
        return f"NULL::{type}"

    def fits(self, type, lo, hi):
        return INT_RANGE[type][0] <= lo and hi <= INT_RANGE[type][1]

    def integer(self, type, depth):
        rng = self.rng
        kind = rng.choice(("+", "-", "*", "/", "%", "neg", "abs", "bits", "bits", "not", "shift", "cast", "date"))
        at = INTS.index(type)
        if kind in ("+", "-", "*", "/", "%"):
            ta, tb = type, rng.choice(INTS[:at + 1])
            if rng.random() < 0.5:
                ta, tb = tb, ta
            a = self.any(ta, depth - 1)
            if kind in ("/", "%"):
                b = self.divisor(tb, depth - 1)
                if b is None or a.range.lo == INT_RANGE[type][0]:
                    return None
                m = max(abs(a.range.lo), abs(a.range.hi))
                return Expr(f"({a} {kind} {b})", type, Range(-m, m))
            b = self.any(tb, depth - 1)
            x, y = a.range, b.range
            if kind == "+":
                lo, hi = x.lo + y.lo, x.hi + y.hi
            elif kind == "-":
                lo, hi = x.lo - y.hi, x.hi - y.lo
            else:
                corners = [i * j for i in (x.lo, x.hi) for j in (y.lo, y.hi)]
                lo, hi = min(corners), max(corners)
            return Expr(f"({a} {kind} {b})", type, Range(lo, hi)) if self.fits(type, lo, hi) else None
        if kind == "cast":
            source = rng.choice([t for t in INTS + FLOATS + ("bool",) if t != type])
            if source == "bool":
                return Expr(f"({self.bool(depth - 1)})::int4", type, Range(0, 1)) if type == "int4" else None
            a = self.any(source, depth - 1)
            if source in FLOATS:
                if not a.range.finite or a.range.lo is None or a.range.hi + 1 > min(INT_RANGE[type][1], 2**62):
                    return None
                m = int(a.range.hi) + 1
                return Expr(f"({a})::{type}", type, Range(-m, m))
            return Expr(f"({a})::{type}", type, a.range) if self.fits(type, a.range.lo, a.range.hi) else None
        if kind == "date":
            a, b = self.any("date", depth - 1), self.any("date", depth - 1)
            if type != "int4" or not (a.range.tame and b.range.tame):
                return None
            return Expr(f"({a} - {b})", type, Range(-40000, 40000))
        a = self.any(type, depth - 1)
        lo, hi = a.range.lo, a.range.hi
        if kind == "neg":
            return Expr(f"(- {a})", type, Range(-hi, -lo)) if self.fits(type, -hi, -lo) else None
        if kind == "abs":
            return Expr(f"abs({a})", type, Range(0, max(abs(lo), abs(hi)))) if self.fits(type, 0, max(abs(lo), abs(hi))) else None
        if kind == "not":
            return Expr(f"(~ {a})", type, Range(-hi - 1, -lo - 1))
        if kind == "shift":
            width = 8 << (at + 1)
            n = rng.randrange(width) if rng.random() < 0.9 else rng.randrange(64)
            op = rng.choice(("<<", ">>"))
            r = Range(min(lo, -1), max(hi, 0)) if op == ">>" and n < width else Range(*INT_RANGE[type])
            by = f"({self.column(('int4',))} & {rng.choice((7, 15))})" if rng.random() < 0.2 and self.column(("int4",)) else n
            if by is not n:
                r = Range(*INT_RANGE[type]) if op == "<<" else Range(min(lo, -1), max(hi, 0))
            return Expr(f"({a} {op} {by})", type, r)
        b = self.any(type, depth - 1)
        bits = max(v.bit_length() for v in (lo, hi, b.range.lo, b.range.hi))
        bits = min(bits, (8 << (at + 1)) - 1)
        return Expr(f"({a} {rng.choice('&|#')} {b})", type, Range(-2**bits, 2**bits - 1))

    def divisor(self, type, depth):
        """A value that is never zero; null where it would be."""
        kind = self.rng.choice(("constant", "nullif", "abs"))
        if kind == "constant":
            return self.constant(type, positive=True)
        b = self.any(type, depth)
        if kind == "nullif":
            # -1 is left out too: the smallest value / -1 overflows.
            return Expr(f"nullif(nullif({b}, {quoted(type, 0)}), {quoted(type, -1)})", type, b.range)
        m = max(abs(b.range.lo), abs(b.range.hi)) + 1
        return Expr(f"(abs({b}) + {quoted(type, 1)})", type, Range(1, m)) if self.fits(type, 1, m) else None

    def float(self, type, depth):
        rng = self.rng
        low, high = FLOAT_LIMIT[type]
        kind = rng.choice(("+", "-", "*", "/", "neg", "abs", "cast", "cast", "library"))
        if kind == "library":
            return self.library(depth) if type == "float8" else None
        if kind == "cast":
            source = rng.choice([t for t in INTS + FLOATS if t != type])
            a = self.any(source, depth - 1)
            if source in INTS:
                m = float(max(abs(a.range.lo), abs(a.range.hi), 1))
                return Expr(f"({a})::{type}", type, Range(1.0, m))
            if a.range.lo is None and type == "float4":
                return None
            if a.range.lo is not None and (a.range.lo < low or a.range.hi > high):
                return None
            return Expr(f"({a})::{type}", type, a.range)
        if kind in ("neg", "abs"):
            a = self.any(type, depth - 1)
            return Expr(f"(- {a})" if kind == "neg" else f"abs({a})", type, a.range)
        types = [type, type]
        if type == "float8" and rng.random() < 0.3:
            types[rng.randrange(2)] = rng.choice(INTS + ("float4",))
        a, b = (self.as_float(self.any(t, depth - 1)) for t in types)
        if a.range.lo is None or b.range.lo is None:
            return None
        x, y = a.range, b.range
        finite = x.finite and y.finite
        if kind == "/":
            if rng.random() < 0.5 or types[1] in INTS:
                b = self.constant(type, positive=True)
            else:
                b = Expr(f"(abs({b}) + {quoted(type, 1)})", type, Range(1.0, y.hi + 1, finite))
            y = b.range
            lo, hi = x.lo / y.hi, x.hi / y.lo
        elif kind == "*":
            lo, hi = x.lo * y.lo, x.hi * y.hi
        else:
            lo, hi = min(x.lo, y.lo) * EPSILON[type], x.hi + y.hi
        if lo < low or hi > high:
            return None
        return Expr(f"({a} {kind} {b})", type, Range(lo, hi, finite))

    def library(self, depth):
        """A function of the mathematical library that is defined for all numbers, and where it is not 0 is not too small either."""
        a = self.any("float8", depth - 1)
        if a.range.lo is None:
            return None
        x, e = a.range, EPSILON["float8"]
        odd = min(x.lo, 1.0) / 2
        sql, lo, hi = self.rng.choice((("atan({})", odd, 1.6), ("tanh({})", odd, 1.0), ("asinh({})", odd, 800.0), ("cbrt({})", x.lo ** (1 / 3) / 2, x.hi ** (1 / 3) * 2), ("sin(atan({}))", odd / 2, 1.0), ("ln(abs({}) + 1)", e / 2, 800.0),
                                       ("log(abs({}) + 1)", e / 4, 310.0), ("exp(tanh({}))", 0.3, 3.0), ("(abs({}) + 1) ^ 0.5", 1.0, x.hi ** 0.5 * 2 + 2), ("power(2, atan({}))", 0.3, 3.1), ("acos(tanh({}))", e / 4, 3.2), ("cosh(atan({}))", 1.0, 3.0), ("atan2({}, 2)", odd / 4, 1.6)))
        return Expr(f"({sql.format(a)})", "float8", Range(lo, hi, x.finite)) if lo > FLOAT_LIMIT["float8"][0] else None

    @staticmethod
    def as_float(e):
        if e.type in INTS:
            return Expr(e.sql, e.type, Range(1.0, float(max(abs(e.range.lo), abs(e.range.hi), 1))))
        return e

    def time(self, type, depth):
        rng = self.rng
        if type == "date":
            if rng.random() < 0.3:
                a = self.any("timestamp", depth - 1)
                return Expr(f"({a})::date", type, a.range)
            a, b = self.any("date", depth - 1), self.any(rng.choice(("int4", "int2")), depth - 1)
            if not a.range.tame or b.range.lo < -1000 or b.range.hi > 1000:
                return None
            form = f"({a} + {b})" if rng.random() < 0.5 else f"({a} - {b})"
            return Expr(form, type, Range(tame=depth > 0))
        if type == "timestamp" and rng.random() < 0.6:
            a = self.any("date", depth - 1)
            return Expr(f"({a})::timestamp", type) if a.range.tame else None
        return self.conditional(type, depth)

    # -- truth values -------------------------------------------------------------

    def comparable(self, depth):
        """Two expressions that have a comparison operator, possibly across types."""
        rng = self.rng
        family = rng.choice((INTS, INTS, FLOATS, FLOATS, INTS + FLOATS, ("bool",), ("date",), ("timestamp", "date"), ("timestamptz",)))
        ta, tb = rng.choice(family), rng.choice(family)
        a = self.column((ta,)) if rng.random() < 0.5 else None
        a = a or self.any(ta, depth - 1)
        b = self.constant(tb) if rng.random() < 0.6 else self.any(tb, depth - 1)
        if tb == "float8" and ta in FLOATS and b.sql.endswith("::float8") and b.range.finite and rng.random() < 0.3:
            b = Expr(b.sql[1:-len("'::float8")], tb, b.range)	# a bare decimal, as people write it
        return a, b

    def bool(self, depth):
        rng = self.rng
        kind = rng.choices(
            ("compare", "and", "or", "not", "null", "truth", "distinct", "between", "in", "any", "column", "cast", "rows"),
            (30, 14, 14, 6, 6, 5, 5, 8, 8, 2, 4, 1, 4))[0]
        if depth <= 0 and kind in ("and", "or", "not", "truth", "cast"):
            kind = "compare"
        if kind == "compare":
            a, b = self.comparable(depth)
            return Expr(f"({a} {rng.choice(COMPARISONS)} {b})", "bool")
        if kind == "rows":
            pairs = [self.comparable(depth - 1) for _ in range_(rng.choice((2, 2, 3)))]
            left, right = (", ".join(str(pair[i]) for pair in pairs) for i in (0, 1))
            return Expr(f"(({left}) {rng.choice(('<', '<=', '>', '>='))} ({right}))", "bool")
        if kind in ("and", "or"):
            parts = [str(self.bool(depth - 1)) for _ in range_(rng.choice((2, 2, 3)))]
            return Expr("(" + f" {kind.upper()} ".join(parts) + ")", "bool")
        if kind == "not":
            return Expr(f"(NOT {self.bool(depth - 1)})", "bool")
        if kind == "null":
            return Expr(f"({self.any(rng.choice(TYPES), depth - 1)} IS {rng.choice(('NULL', 'NOT NULL'))})", "bool")
        if kind == "truth":
            return Expr(f"({self.bool(depth - 1)} IS {rng.choice(('', 'NOT '))}{rng.choice(('TRUE', 'FALSE', 'UNKNOWN'))})", "bool")
        if kind == "distinct":
            a, b = self.comparable(depth)
            return Expr(f"({a} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {b})", "bool")
        if kind == "between":
            a, b = self.comparable(depth)
            c = self.constant(b.type)
            form = rng.choice(("BETWEEN", "BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"))
            return Expr(f"({a} {form} {b} AND {c})", "bool")
        if kind == "in":
            t = rng.choice(INTS + INTS + FLOATS + TIMES)
            items = [self.literal(t)[0] for _ in range_(rng.randint(1, 12))]
            if rng.random() < 0.15:
                items.append("NULL")
            return Expr(f"({self.any(t, depth - 1)} {rng.choice(('IN', 'NOT IN'))} ({', '.join(items)}))", "bool")
        if kind == "any":
            items = ",".join(str(rng.randint(-100, 100)) for _ in range_(rng.randint(1, 20)))
            form = rng.choice(("= ANY", "<> ALL"))
            return Expr(f"({self.any('int4', depth - 1)} {form} ('{{{items}}}'::int4[]))", "bool")
        if kind == "cast":
            return Expr(f"({self.any('int4', depth - 1)})::bool", "bool")
        return self.column(("bool",)) or Expr("true", "bool")

    # -- expressions that may raise -----------------------------------------------

    def raising(self):
        """One operation, on columns as they are, that raises for some values."""
        rng = self.rng
        kind = rng.choice(("overflow", "overflow", "divide", "divide", "modulo", "negate", "cast", "float", "float", "float", "float cast", "date"))
        t = rng.choice(INTS)
        a, b = self.leaf(t), self.leaf(t)
        edge = quoted(t, rng.choice(INT_RANGE[t]))
        if kind == "overflow":
            b = edge if rng.random() < 0.3 else b
            return Expr(f"({a} {rng.choice('+-*')} {b})", t)
        if kind == "divide":
            b = quoted(t, -1) if rng.random() < 0.3 else b	# the smallest value / -1 overflows
            return Expr(f"({a} / {b})", t)
        if kind == "modulo":
            return Expr(f"({a} % {b})", t)
        if kind == "negate":
            return Expr(rng.choice((f"(- {a})", f"abs({a})")), t)
        if kind == "cast":
            return Expr(f"({self.leaf('int8')})::{rng.choice(('int2', 'int4'))}", "int4")
        f = rng.choice(FLOATS)
        x, y = self.leaf(f), self.column((f,)) or self.leaf(f)
        if kind == "float":
            return Expr(f"({x} {rng.choice('+-**/')} {y})", f)
        if kind == "float cast":
            return Expr(f"({x})::{rng.choice(INTS)}", "int4") if rng.random() < 0.7 else Expr(f"({self.leaf('float8')})::float4", "float4")
        return Expr(rng.choice((f"({self.leaf('date')} - {self.leaf('date')})", f"({self.leaf('date')} + {self.leaf('int4')})",
                                f"({self.leaf('date')})::timestamp")), "int4")
