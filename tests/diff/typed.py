"""Expressions over the types of typed_tables.py: numeric, text and what else is stored by a dictionary, times.

As in expressions.py they cannot raise, by construction. What PostgreSQL says of one value of a dictionary column is
written as a template: {x} is the column, {c} a constant that meets it, {p} and {r} patterns, {n} a small number.
"""
from expressions import COMPARISONS, Expr, Generator
from tables import INTS, TIMES, TYPES, Range

FAMILIES = ("numeric", "text", "bpchar", "blank", "nocase", "name", '"char"', "uuid", "d_mood", "bytea", "inet", "cidr", "macaddr", "interval", "timetz", "bit",
            "varbit", "json", "jsonb", "int4[]", "text[]", "time", "money", "oid", "variable text", "variable bpchar", "variable bytea", "variable uuid", "variable name", "variable",
            "variable timetz", "variable interval", "variable inet", "variable cidr", "variable macaddr", "variable macaddr8", "variable bit", "variable varbit")
PATTERNS = ("%", "a%", "%b", "%b%", "_", "__", "a_c", "x\\%y", "", "%special%requests%", "ä%", "A%", "%\\\\%", "Ab ", "%quick%", "%1%", "\\\\_%", "😀", "%  %",
            "%%", "_%", "%_", "%_%_%", "a%b%c", "%a%b%", "日_語%", "%本%", "😀_", "_😀", "\\%", "\\a%", "%\\_%", "%\\%%", "%ää%", "x%x", "%x", "_" * 126, "_" * 127 + "%", "%special and%", "%requests", "long %",
            "%😀", "%c", "%bab%abc", "z%z", "_b%", "%e\u0301%", "é", "%\n%", "%'%", "%\x01", "%1% 2%", "ab%ab%ab%c")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Europe/Dublin", "EST5EDT,M3.2.0,M11.1.0", "<+05>-5", "-03:30", "America/St_Johns")
REGEXES = ("^a", "b$", "[a-c]+", ".", "^$", "ä|ß", "\\d", "(?i)AB", "^\\s", "\\m[a-z]+\\M", "(a|b)c?", "[[:upper:]]", "^.{2,3}$")
DATE_FIELDS = ("day", "month", "year", "quarter", "week", "dow", "isodow", "doy", "decade", "century", "millennium", "isoyear", "epoch", "julian")
TIME_FIELDS = ("hour", "minute", "second", "milliseconds", "microseconds")
TRUNCATIONS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium")
SHIFTS = ("1 day", "-1 day", "1 mon", "-13 mons", "1 year", "31 days", "02:03:04.5", "1 mon -1 day 00:00:01", "0", "100 years", "-36:00:00", "0.000001 s")

MULTIPLES = ("1 day", "-1 day", "1 mon", "-13 mons", "31 days", "02:03:04.5", "1 mon -1 day 00:00:01", "0", "-36:00:00", "0.000001 s", "1 week")

ORDERED = ("{x} = {c}", "{x} <> {c}", "{x} {cmp} {c}", "{x} {cmp} {c}", "{x} IN ({c}, {c}, {c})", "{x} NOT IN ({c}, {c})", "{x} BETWEEN {c} AND {c}", "{x} IS NULL",
           "{x} IS NOT NULL", "{x} IS DISTINCT FROM {c}", "{x} = ANY (ARRAY[{c}, {c}])", "{x} IN ({c}, NULL)", "{x} IS NOT DISTINCT FROM {c}", "{c} = {x}")
SAME = tuple(t for t in ORDERED if "cmp" not in t and "BETWEEN" not in t) + ("{x} IS NULL", "{x} IS NOT NULL")
WORDS = ORDERED + ("{x} LIKE {p}", "{x} NOT LIKE {p}", "{x} LIKE {p}", "{x} ILIKE {p}", "{x} ~ {r}", "{x} ~* {r}", "{x} !~ {r}", "{x} SIMILAR TO {p}", "starts_with({x}::text, {c}::text)",
                   "length({x}) {cmp} {n}", "upper({x}) = upper({c})", "{x} LIKE ANY (ARRAY[{p}, {p}])", "left({x}, {n}) = left({c}, {n})", "position({c}::text IN {x}::text) > 0")
# of values of variable length: with constants, and with each other
CHARACTERS = ("left({x}, 2) = left({c}, 2)", "substring({x} FROM 1 FOR 2) IN (left({c}, 2), left({c}, 2), '')", "substr({x}, {n}, 1) <> substr({c}, {n}, 1)", "left({x}, {n}) = {c}", "left({x}, 1) NOT IN (left({c}, 1), 'b')",
              "left({x}, 1) = substr({x}, {n}, 1)", "left({x}, 1) IS DISTINCT FROM left({c}, 1)", "length({x}) {cmp} {n}", "octet_length({x}) <> length({x})", "left({x}, 1) IS NULL")
SLICES = ("left({x}, 3) = left({c}, 3)", "left({x}, -{n}) = left({c}, -2)", "right({x}, {n}) = right({c}, {n})", "right({x}, -{n}) <> {c}", "substr({x}, {n}) = substr({c}, {n})", "substr({x}, {n}, 5) IN (substr({c}, {n}, 5), {c}, '')", "left(upper({x}), 4) = left(upper({c}), 4)")
MATCHES = ("{x} ILIKE {p}", "{x} NOT ILIKE {p}", "{x} ~ {r}", "{x} ~* {r}", "{x} !~ {r}", "{x} SIMILAR TO {p}", "lower({x}) = lower({c})", "upper({x}) IN (upper({c}), {c}, {c})", "lower({x}) LIKE {p}", "upper({x}) ~ {r}", "btrim({x}) = btrim({c})", "lower(rtrim({x})) <> {c}")
TRUTHS = {
    "text": WORDS + ("{x} ^@ {c}",), "bpchar": WORDS, "blank": WORDS, "nocase": ORDERED + ("length({x}) > {n}",), "name": ORDERED + ("{x} LIKE {p}", "{x} ~ {r}", "length({x}) {cmp} {n}"),
    '"char"': ORDERED, "uuid": ORDERED, "d_mood": ORDERED, "bytea": ORDERED + ("length({x}) > {n}", "{x} LIKE 'a%'::bytea"),
    "inet": ORDERED + ("{x} << {c}", "{x} >>= {c}", "{x} && {c}", "family({x}) = 4", "masklen({x}) > {n}"), "cidr": ORDERED + ("{x} <<= {c}", "masklen({x}) > 8"),
    "macaddr": ORDERED + ("trunc({x}) = {c}",), "interval": ORDERED + ("{x} > '{n} days'::interval", "extract(day FROM {x}) > {n}"), "timetz": ORDERED,
    "bit": ("{x} = {c}::bit(8)", "{x} < {c}::bit(8)", "({x} & B'10000000') = B'10000000'", "{x} IS NULL", "get_bit({x}, 3) = 1"), "varbit": ORDERED + ("length({x}) > {n}",),
    "json": ("{x} IS NULL", "({x} ->> 'a') = '1'", "({x} -> 'b') IS NOT NULL", "json_typeof({x}) = 'object'", "{x}::text LIKE '%a%'"),
    "jsonb": ("{x} = {c}", "{x} @> '{\"a\": 1}'", "{x} ? 'a'", "({x} ->> 'a') IS NULL", "jsonb_typeof({x}) = 'object'", "{x} IS NULL", "{x} <> {c}"),
    "int4[]": ("{x} = {c}", "1 = ANY ({x})", "{x} @> '{1}'", "array_length({x}, 1) > 1", "{x}[1] = 1", "{x} IS NULL", "{x} && '{2,3}'", "cardinality({x}) < {n}"),
    "text[]": ("{x} = {c}", "'a' = ANY ({x})", "{x}[1] LIKE 'A%'", "{x} IS NULL"),
    "variable text": ORDERED + SAME + ("{x} LIKE {p}", "{x} NOT LIKE {p}", "{x} LIKE {p}", "starts_with({x}, {c})", "{x} ^@ {c}", "NOT starts_with({x}, {c})", "{x} LIKE {p} ESCAPE ''", "{x} LIKE {p} ESCAPE '!'", "({x} LIKE {p}) IS NOT TRUE",
                             "CASE {x} WHEN {c} THEN true WHEN {c} THEN NULL ELSE {x} LIKE {p} END", "coalesce({x} = {c}, true)", "{x} LIKE {c}", "({x} = {c}) = ({x} LIKE {p})", "{x} LIKE ANY (ARRAY[{p}, {p}])") + CHARACTERS + CHARACTERS[:2] + MATCHES + SLICES,
    "variable bpchar": ORDERED + SAME + ("{x} LIKE {p}", "{x} NOT LIKE {p}") + CHARACTERS + MATCHES + SLICES, "variable bytea": ORDERED + SAME + ("{x} LIKE '%a%'::bytea", "{x} LIKE '\\000%'::bytea", "length({x}) {cmp} {n}"), "variable uuid": ORDERED, "variable name": ORDERED + ("{x} LIKE {p}", "{x} NOT LIKE {p}", "starts_with({x}::text, {c}::text)", "{x}::text = {c}::text") + MATCHES + SLICES[:3], "variable": ("{x} IS NULL", "{x} IS NOT NULL"),
    **{f"variable {type}": ORDERED for type in ("timetz", "interval", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit")},
    "time": ORDERED + ("extract(hour FROM {x}) > {n}",), "money": ORDERED, "oid": ORDERED + ("{x}::int8 > {n}",),
}
STRINGS = ("upper({x})", "lower({x})", "initcap({x})", "left({x}, {n})", "right({x}, {n})", "left({x}, -{n})", "substr({x}, {n})", "substring({x} FROM {n} FOR {n})", "btrim({x})", "ltrim({x}, 'ab ')",
           "rtrim({x})", "replace({x}, 'a', 'xy')", "translate({x}, 'abc', 'AB')", "{x} || 'y'", "'z ' || {x}", "repeat({x}, 2)", "reverse({x})", "lpad({x}, 1{n}, '-')", "rpad({x}, {n})", "md5({x})",
           "split_part({x}, ' ', 1{n})", "split_part({x}, 'b', 1)", "coalesce({x}, '?')", "nullif({x}, 'a')", "({x})::varchar(3)", "({x})::char(4)::text", "overlay({x} PLACING 'QQ' FROM 2)", "quote_literal({x})",
           "regexp_replace({x}, '[aeiou]', '.', 'g')", "concat({x}, '!')", "substring({x} FROM '[a-z]+')", "encode(convert_to({x}, 'UTF8'), 'hex')", "(CASE WHEN {x} LIKE {p} THEN {x} ELSE 'other' END)",
           "(CASE WHEN {x} IS NULL THEN 'none' WHEN {x} > 'b' THEN 'high' ELSE 'low' END)", "greatest({x}, 'b')", "least({x}, 'a')", "(CASE {x} WHEN 'a' THEN 'A!' WHEN 'A' THEN NULL ELSE {x} END)")
TEXT_OF = {
    "text": ("{x}",), "bpchar": ("({x})::text", "upper({x})", "{x} || 'y'"), "blank": ("({x})::text",), "nocase": ("upper({x})", "({x} || 'x')"), "name": ("({x})::text", "upper({x}::text)"), '"char"': ("({x})::text",),
    "uuid": ("({x})::text", "left({x}::text, 3)"), "d_mood": ("({x})::text",), "bytea": ("encode({x}, 'hex')", "md5({x})"), "inet": ("host({x})", "abbrev({x})", "({x})::text"), "cidr": ("({x})::text", "host({x})"),
    "macaddr": ("({x})::text",), "bit": ("({x})::text",), "varbit": ("({x})::text",), "json": ("({x} ->> 'a')", "json_typeof({x})"), "jsonb": ("({x} ->> 'a')", "({x})::text"), "text[]": ("array_to_string({x}, ',')", "{x}[1]"),
    "int4[]": ("array_to_string({x}, ',', '-')",), "oid": ("({x})::text",), "timetz": ("({x})::text",), "time": ("({x})::text",), "money": ("({x})::text",), "interval": ("({x})::text",),
}
COUNTS = {
    "text": ("length({x})", "octet_length({x})", "bit_length({x})", "char_length({x})", "position('b' IN {x})", "strpos({x}, ' ')", "ascii({x})", "(CASE WHEN {x} ~ '^[0-9]{1,5}$' THEN {x}::int4 ELSE -1 END)"),
    "bpchar": ("length({x})", "octet_length({x})"), "blank": ("length({x})",), "nocase": ("length({x})",), "name": ("length({x})",), "bytea": ("length({x})", "octet_length({x})", "(CASE WHEN length({x}) > 0 THEN get_byte({x}, 0) END)"),
    "inet": ("family({x})", "masklen({x})"), "cidr": ("masklen({x})",), "int4[]": ("cardinality({x})", "array_length({x}, 1)"), "bit": ("get_bit({x}, 3)",), "varbit": ("length({x})",), "jsonb": ("length({x}::text)",),
    "variable text": ("length({x})", "octet_length({x})"), "variable bpchar": ("length({x})", "octet_length({x})"), "variable bytea": ("length({x})",),
}
PLAIN_VALUES = {	# other results of a value, compared as text
    "inet": ("network({x})", "broadcast({x})", "({x} + 1)", "netmask({x})"), "macaddr": ("trunc({x})",), "interval": ("-({x})", "({x} * 2)", "justify_hours({x})", "extract(month FROM {x})", "date_part('second', {x})"),
    "bit": ("~({x})", "({x} << 1)"), "int4[]": ("{x}[1]",), "jsonb": ("({x} -> 'b')",), "bytea": ("substring({x} FROM 1 FOR 3)", "({x} || '\\x00'::bytea)"), "json": ("({x} -> 'b')",),
    "time": ("({x} + '01:30'::interval)", "({x} - '25:00'::interval)", "extract(hour FROM {x})", "extract(second FROM {x})", "extract(epoch FROM {x})", "date_part('minute', {x})", "({x} - '12:00'::time)", "({x})::interval"),
    "timetz": ("extract(hour FROM {x})",), "oid": ("({x})::int8",), "d_mood": ("({x} = 'ok')",), "uuid": ("({x})",),
}
VARIABLE_KEYS = ("variable text", "variable bpchar", "variable bytea", "variable uuid", "variable timetz", "variable inet", "variable cidr", "variable macaddr", "variable macaddr8", "variable bit", "variable varbit")
VARIABLE_PAIRS = VARIABLE_KEYS + ("variable interval",)	# compared with each other
ORDERED_TYPES = VARIABLE_PAIRS + ("numeric", "text", "bpchar", "blank", "nocase", "name", '"char"', "uuid", "d_mood", "bytea", "inet", "cidr", "macaddr", "interval", "timetz", "varbit", "time", "money", "oid", "int4[]", "jsonb")
TIED = ("interval", "jsonb", "blank")	# of equal values some print differently
HASHED = ("int2", "int4", "int8", "bool", "date", "timestamp", "numeric", "text", "uuid", "d_mood", "int4[]")
HAVE_EXTREMES = ("variable text", "variable bpchar", "variable timetz", "variable inet", "variable cidr", "numeric", "text", "bpchar", "blank", "d_mood", "inet", "interval", "time", "timetz", "money", "oid", "cidr")


def sql_text(text):
    return "'" + text.replace("'", "''") + "'"


class TypedGenerator(Generator):
    """Generator over columns of which some are TypedColumns."""

    def typed(self, families=FAMILIES):
        return [(n, c) for n, c in self.columns if c.type in families]

    def pick(self, families=FAMILIES):
        found = self.typed(families)
        return self.rng.choice(found) if found else None

    def columns_of(self, types):
        return [Expr(name, c.type, c.range, getattr(c, "scale", None)) for name, c in self.columns if c.type in types]

    # -- constants ----------------------------------------------------------------

    def fill(self, template, name, column):
        rng = self.rng
        text = template.replace("{cmp}", rng.choice(COMPARISONS))
        while "{c}" in text:
            text = text.replace("{c}", self.meeting(column), 1)
        while "{n}" in text:
            text = text.replace("{n}", str(rng.randint(0, 9)), 1)
        while "{p}" in text:
            text = text.replace("{p}", self.pattern(), 1)
        while "{r}" in text:
            text = text.replace("{r}", sql_text(rng.choice(REGEXES)), 1)
        return text.replace("{x}", name)

    def pattern(self):
        rng = self.rng
        texts = [rng.choice(PATTERNS) for _ in range(3)]
        if self.params is not None and len(self.params) < 4 and rng.random() < 0.4:
            self.params.append(("text", [sql_text(t) if rng.random() < 0.9 else "NULL" for t in texts]))
            return f"${len(self.params)}::text"
        return sql_text(texts[0])

    def meeting(self, column):
        """A constant that some row may have; now and then a parameter."""
        rng = self.rng
        pool = [v for v in column.pool if len(v) < 100] or [""]
        texts = [rng.choice(pool) if rng.random() < 0.85 or column.type not in ("text", "bpchar") else rng.choice(("b", "zz", "A ", "ä ")) for _ in range(3)]
        cast = f"::{column.cast}"
        if self.params is not None and len(self.params) < 4 and rng.random() < 0.4:
            self.params.append((column.cast, [sql_text(texts[0]) + cast, "NULL" if rng.random() < 0.1 else sql_text(texts[1]) + cast, sql_text(texts[2]) + cast]))
            return f"${len(self.params)}"
        return sql_text(texts[0]) + cast

    def literal(self, type, positive=False):
        rng = self.rng
        if type == "numeric":
            if not positive and rng.random() < 0.02:
                return "'NaN'::numeric", Range(-10**6, 10**6, finite=False)
            scale = rng.choice((0, 1, 2, 2, 3, 5))
            v = rng.choice((rng.randint(1, 9), rng.randint(1, 2000), rng.randint(1, 10**6)))
            text = str(v) if scale == 0 else f"{str(v).rjust(scale + 1, '0')[:-scale]}.{str(v).rjust(scale + 1, '0')[-scale:]}"
            if not positive and rng.random() < 0.3:
                return f"(-{text})", Range(-(v // 10**scale) - 1, 0)
            # a bare whole number would be an integer
            return (text if scale else f"'{text}'::numeric"), Range(0, v // 10**scale + 1)
        if type in FAMILIES:
            found = self.pick((type,))
            no_value = f"NULL::{'text' if type in ('nocase', 'blank') or type.startswith('variable') else type}"
            return (sql_text(self.rng.choice([v for v in found[1].pool if len(v) < 100])) + f"::{found[1].cast}" if found else no_value), Range()
        return super().literal(type, positive)

    def scale_of(self, sql):
        return len(sql.rstrip(")").split(".")[1]) if "." in sql and "'" not in sql else 0 if "NaN" not in sql else None

    def constant(self, type, positive=False):
        if type != "numeric":
            return super().constant(type, positive)
        params, self.params = self.params, self.params if self.rng.random() < 0.3 else None
        e = super().constant(type, positive)
        self.params = params
        return Expr(e.sql, type, e.range, None if e.sql.startswith("$") else self.scale_of(e.sql))

    # -- values -------------------------------------------------------------------

    def operation(self, type, depth):
        if type == "numeric":
            return self.numeric(depth)
        if type == "text":
            return self.text(depth)
        if type in FAMILIES:
            return None
        if type in INTS and self.rng.random() < 0.35:
            return self.counted(type, depth)
        if type in ("timestamp", "timestamptz", "date") and self.rng.random() < 0.3:
            return self.zoned(type)
        if type in ("timestamp", "timestamptz", "date") and self.rng.random() < 0.5:
            return self.moved(type, depth)
        if type == "float8" and self.rng.random() < 0.3:
            return self.date_part(depth)
        return super().operation(type, depth)

    def conditional(self, type, depth):
        if type == "numeric":
            a, b = self.any(type, depth - 1), self.any(type, depth - 1)
            kind, scale, r = self.rng.choice(("case", "coalesce", "nullif", "greatest", "least")), a.scale if a.scale == b.scale else None, a.range.union(b.range)
            if kind == "case":
                otherwise = self.rng.choice((f" ELSE {b}", f" ELSE {b}", " ELSE 0", ""))
                if otherwise == " ELSE 0":
                    scale, r = (0 if a.scale == 0 else None), a.range.union(Range(0, 0))
                return Expr(f"(CASE WHEN {self.bool(depth - 1)} THEN {a}{otherwise} END)", type, r, a.scale if not otherwise else scale)
            return Expr(f"{kind}({a}, {b})", type, a.range if kind == "nullif" else r, a.scale if kind == "nullif" else scale)
        if type in FAMILIES:
            return None if type != "text" else self.text(depth)
        return super().conditional(type, depth)

    def numeric(self, depth):
        rng = self.rng
        kind = rng.choice(("+", "-", "*", "*", "neg", "abs", "%", "round", "round", "trunc", "ceil", "sign", "int", "rescale", "extract", "/", "/", "one minus"))
        if kind == "int":
            a = self.any(rng.choice(INTS), depth - 1)
            return Expr(f"({a})::numeric", "numeric", a.range, 0)
        if kind == "extract":
            return self.extract(depth)
        a = self.any("numeric", depth - 1)
        x = a.range
        if x.lo is None:
            return None
        m = max(abs(x.lo), abs(x.hi))
        if kind == "one minus":
            return Expr(f"(1 {rng.choice('+-')} {a})", "numeric", Range(-m - 1, m + 1, x.finite), a.scale)
        if kind in ("neg", "abs", "sign"):
            sql = {"neg": "(- {})", "abs": "abs({})", "sign": "sign({})"}[kind].format(a)
            return Expr(sql, "numeric", Range(-m, m, x.finite), 0 if kind == "sign" else a.scale)
        if kind == "ceil":
            return Expr(f"{rng.choice(('ceil', 'floor', 'round', 'trunc', 'ceiling'))}({a})", "numeric", Range(-m - 1, m + 1, x.finite), 0)
        if kind in ("round", "trunc"):
            n = rng.choice((0, 1, 2, 3, 4, 8, -1, -3))
            return Expr(f"{kind}({a}, {n})", "numeric", Range(-m - 10000, m + 10000, x.finite), max(n, 0))
        if kind == "rescale":
            if not x.finite:
                return None
            scale = rng.choice((0, 1, 2, 4, 6))
            precision = max(len(str(m + 1)) + scale + rng.choice((0, 0, 3)), 1)
            return Expr(f"({a})::numeric({precision},{scale})", "numeric", Range(-m - 1, m + 1, x.finite), scale) if precision < 60 else None
        b = self.any("numeric", depth - 1) if rng.random() < 0.6 else self.constant("numeric")
        y = b.range
        if y.lo is None:
            return None
        finite, known = x.finite and y.finite, a.scale is not None and b.scale is not None
        if kind in ("/", "%"):
            return Expr(f"({a} {kind} nullif({b}, 0))", "numeric", Range(-m * 10**11, m * 10**11, finite), max(a.scale, b.scale) if known and kind == "%" else None)
        if kind == "*":
            corners = [i * j for i in (x.lo, x.hi) for j in (y.lo, y.hi)]
            return Expr(f"({a} * {b})", "numeric", Range(min(corners), max(corners), finite), a.scale + b.scale if known else None)
        lo, hi = (x.lo + y.lo, x.hi + y.hi) if kind == "+" else (x.lo - y.hi, x.hi - y.lo)
        return Expr(f"({a} {kind} {b})", "numeric", Range(lo, hi, finite), max(a.scale, b.scale) if known else None)

    def field(self, e):
        """A field that a value of this type has, and the scale of extract()'s answer."""
        fields = DATE_FIELDS if e.type == "date" else DATE_FIELDS + TIME_FIELDS + TIME_FIELDS
        f = self.rng.choice(fields)
        scale = {"second": 6, "milliseconds": 3, "epoch": 0 if e.type == "date" else 6, "julian": 0 if e.type == "date" else None}.get(f, 0)
        return f, scale

    def extract(self, depth):
        e = self.extract_of_interval() if self.rng.random() < 0.2 else None
        if e is not None:
            return e
        e = self.any(self.rng.choice(("date", "timestamp", "timestamp", "timestamptz")), depth - 1)
        f, scale = self.field(e)
        return Expr(f"extract({f} FROM {e})", "numeric", Range(-10**13, 10**13, e.range.tame), scale)

    def span(self):
        """The difference of two times, if there are columns for it."""
        rng = self.rng
        type = rng.choice(("timestamp", "timestamp", "timestamptz", "time"))
        if type == "time":
            found = self.pick(("time",))
            return f"({found[0]} - {self.meeting(found[1])})" if found else None
        a, b = self.tame((type,)), self.tame((type, "date") if type == "timestamp" else (type,))
        return f"({a} - {b})" if a and rng.random() < 0.8 else f"({a} - '2001-02-03 04:05:06.7'::{type})" if a else None

    def shift(self):
        """An interval to add to a time: a constant, or one that is computed of a row's values."""
        rng = self.rng
        if rng.random() < 0.6:
            return f"'{rng.choice(SHIFTS)}'::interval"
        number, by = f"({self.leaf(rng.choice(('int4', 'int4', 'int2')))} % {rng.choice((3, 40, 97))})", rng.choice(MULTIPLES)
        forms = [f"({number} * '{by}'::interval)", f"('{by}'::interval * {number})", f"make_interval({rng.choice(('years', 'months', 'weeks', 'days', 'hours', 'mins', 'secs'))} => {number}::int4)",
                 f"({number} || ' {rng.choice(('day', 'days', 'months', 'hours', 'seconds', 'years'))}')::interval", f"({number} / 7.0::float8 * '{rng.choice(('1 day', '01:00', '2 days 00:00:01'))}'::interval)",
                 f"({number} * '{by}'::interval - make_interval(days => {number}::int4, hours => 7))", f"(-({number} * '{by}'::interval))"]
        found = self.pick(("interval",))
        if found and "o_span" in found[0]:
            forms += [found[0], f"({found[0]} * {number})", f"({found[0]} + {number} * '{by}'::interval)"]
        return rng.choice(forms)

    def extract_of_interval(self):
        f, found = self.rng.choice(("epoch", "day", "hour", "minute", "second", "milliseconds", "microseconds", "month", "year")), self.pick(("interval",))
        interval = self.span() if found is None or self.rng.random() < 0.5 else found[0]
        if f in ("year", "month") and self.rng.random() < 0.7:
            type = self.rng.choice(("timestamp", "timestamptz"))
            a, b = (self.tame((type, "date")) for _ in range(2))
            interval = f"age({a}, {b})" if a and b and self.rng.random() < 0.7 else f"age('2004-02-29 12:00'::{type}, {a})" if a else None
        if f == "epoch" and self.rng.random() < 0.4:
            interval = self.shift()
        return Expr(f"extract({f} FROM {interval})", "numeric", Range(-10**16, 10**16), {"second": 6, "milliseconds": 3, "epoch": 6}.get(f, 0)) if interval else None

    def bin(self):
        """A bin of constant width, to group by."""
        rng = self.rng
        e = self.tame(("timestamp", "timestamptz"))
        if e and rng.random() < 0.5:
            return f"date_bin('{rng.choice(('15 min', '1 day', '7 days 00:00:01', '100000 days', '00:00:00.000002'))}', {e}, '{rng.choice(('2000-01-01', '1970-01-01 12:00', '2037-06-07'))}'::{e.type})"
        bounds = [rng.randint(-1000, 1000) / rng.choice((1, 4)) for _ in range(2)]
        if rng.random() < 0.3:
            return f"width_bucket({self.leaf('int4')}::float8 / {rng.choice((1, 3, 7))}, {bounds[0]}, {bounds[1] + (bounds[0] == bounds[1])}, {rng.choice((1, 3, 49, 90))})"
        return f"width_bucket({self.uniform()}::numeric, {bounds[0]}, {bounds[1] + (bounds[0] == bounds[1])}, {rng.choice((1, 3, 7, 100))})"

    def date_part(self, depth):
        e = self.any(self.rng.choice(("date", "timestamp")), depth - 1)
        f, _ = self.field(e)
        if f == "julian" or not e.range.tame:
            return None
        return Expr(f"date_part('{f}', {e})", "float8", Range(1e-7, 1e11))

    def moved(self, type, depth):
        """Dates and times and intervals; only values of this century and the last move."""
        rng = self.rng
        e = self.leaf(type)
        if not e.range.tame:
            return None
        shift = f"({e} {rng.choice('+-')} {self.shift()})"
        kind = rng.choice(("shift", "trunc", "age"))
        if type == "date":
            made = f"make_date(2000 + {self.leaf('int4')} % 100, 1 + abs({self.leaf('int2')} % 12), {rng.randint(1, 28)})"
            return Expr(f"({shift})::date" if rng.random() < 0.8 else made, type, Range(tame=True))
        if kind == "trunc":
            return Expr(f"date_trunc('{rng.choice(TRUNCATIONS)}', {e})", type, Range(tame=True))
        return Expr(shift, type, Range(tame=True))

    def tame(self, types):
        found = [e for e in self.columns_of(types) if e.range.tame]
        return self.rng.choice(found) if found else None

    def zoned(self, type):
        """Of local time, or to it: that of the session, or of a zone that is named."""
        rng = self.rng
        e, zone, field = self.tame(("timestamptz",)), sql_text(rng.choice(ZONES)), rng.choice(TRUNCATIONS)
        if type == "timestamptz":
            local = self.tame(("timestamp", "date"))
            forms = [f"({local})::timestamptz", f"({local.sql}{'::timestamp' * (local.type == 'date')} AT TIME ZONE {zone})"] if local else []
            if e:
                forms += [f"date_trunc('{field}', {e}, {zone})", f"date_trunc('{field}', {e})", f"({e} {rng.choice('+-')} {self.shift()})", f"to_timestamp({self.leaf('int4')}{rng.choice(('', ' / 1000.0', '::float8 / 7'))})", f"(({e} AT TIME ZONE {zone}) AT TIME ZONE {sql_text(rng.choice(ZONES))})"]
            return Expr(rng.choice(forms), type) if forms else None
        if e is None:
            return None
        if type == "date":
            return Expr(rng.choice((f"({e})::date", f"({e} AT TIME ZONE {zone})::date")), type)
        return Expr(rng.choice((f"({e})::timestamp", f"({e} AT TIME ZONE {zone})", f"date_trunc('{field}', ({e})::timestamp)")), type)

    def text(self, depth, column=None):
        found = column or self.pick(("text",) * 5 + tuple(TEXT_OF))
        if found is None:
            return None
        name, c = found
        sql = self.fill(self.rng.choice(TEXT_OF[c.type]), name, c) if c.type in TEXT_OF else name
        for _ in range(self.rng.choice((0, 1, 1, 2)) if c.type != "nocase" else 0):
            sql = self.fill(self.rng.choice(STRINGS), sql, c if c.type == "text" else ANY_TEXT)
        if self.rng.random() < 0.08:		# two columns
            other = self.pick(("text",))
            if other and getattr(c, "collation", "") == other[1].collation:
                o = other[0]
                sql = self.rng.choice((f"({sql} || {o})", f"concat({sql}, '-', {o})", f"(coalesce({sql}, '') || ' ' || {o})", f"left({sql} || {o}, 3)", f"split_part({sql}, {o} || '1', 1)", f"(CASE WHEN {sql} LIKE {o} THEN {sql} ELSE {o} || 'y' END)"))
        return Expr(sql, "text", Range())

    def counted(self, type, depth):
        """An integer that is said of a value of another type."""
        rng = self.rng
        if rng.random() < 0.3:
            a = self.any("numeric", depth - 1)
            if not a.range.finite or a.range.lo is None or not self.fits(type, a.range.lo - 1, a.range.hi + 1):
                return None
            return Expr(f"({a})::{type}", type, Range(a.range.lo - 1, a.range.hi + 1))
        found = self.pick(tuple(COUNTS))
        if found is None or type == "int2":
            return None
        sql = self.fill(rng.choice(COUNTS[found[1].type]), *found)
        return Expr(sql if type == "int4" else f"({sql})::{type}", type, Range(-1, 2**22))

    def output(self, depth):
        """Anything to hand out."""
        rng = self.rng
        kind = rng.choice(("numeric", "numeric", "text", "column", "column", "plain", "truth", "extract", "base"))
        variable = [n for n, c in self.columns if c.type.startswith("variable")]
        if variable and rng.random() < 0.6:
            return Expr(rng.choice(variable), "any")
        if rng.random() < 0.04 and self.tame(("timestamptz",)):
            return Expr(f"({self.zoned('timestamp') or self.tame(('timestamptz',))})::time", "any")
        if kind == "numeric":
            return self.any("numeric", depth)
        if kind == "text":
            return self.text(depth) or self.any("numeric", depth)
        if kind == "truth":
            return self.bool(min(depth, 2))
        if kind == "extract":
            return self.extract(1)
        if kind == "base":
            return self.any(rng.choice(TYPES), depth)
        found = self.pick(FAMILIES if kind == "column" else tuple(PLAIN_VALUES))
        if found is None:
            return self.any(rng.choice(TYPES), depth)
        return Expr(found[0] if kind == "column" else self.fill(rng.choice(PLAIN_VALUES[found[1].type]), *found), "any")

    # -- truth values -------------------------------------------------------------

    def bool(self, depth):
        if self.rng.random() < 0.55:
            e = self.truth(depth)
            if e is not None:
                return e
        return super().bool(depth)

    def truth(self, depth):
        rng = self.rng
        local, zoned = self.tame(("timestamp", "date")), self.tame(("timestamptz",))
        if local and zoned and rng.random() < 0.07:
            return Expr("(" + f" {rng.choice(COMPARISONS)} ".join(rng.sample((str(local), str(zoned)), 2)) + ")", "bool")
        span = self.span() if rng.random() < 0.07 else self.shift() if rng.random() < 0.05 else None
        if span:
            return Expr(f"({span} {rng.choice(COMPARISONS)} {self.shift()})", "bool")
        ends = [self.tame((rng.choice(("timestamp", "timestamptz", "date")),)) for _ in range(4)] if rng.random() < 0.03 else [None]
        if all(ends):
            return Expr(f"(({ends[0]}, {ends[1]}) OVERLAPS ({ends[2]}, {rng.choice((ends[3], f'NULL::{ends[3].type}'))}))", "bool")
        pair = [n for n, c in self.typed(("text",))]
        if len(pair) > 1 and rng.random() < 0.04:
            a, b = rng.sample(pair, 2)
            return Expr(f"({rng.choice((f'{a} || {b} LIKE {sql_text(rng.choice(PATTERNS[:8]))}', f'length({a} || {b}) > 4', f'starts_with({a}, {b})', f'position({b} IN {a}) > 0', f'coalesce({a}, {b}) || {b} IS NULL'))})", "bool")
        variable = self.typed([f for f in FAMILIES if f.startswith("variable")])
        found = rng.choice(variable) if variable and rng.random() < 0.6 else self.pick()
        if found is None:
            return None
        name, c = found
        if c.type == "numeric":
            a = Expr(name, "numeric", c.range, c.scale) if rng.random() < 0.5 else self.any("numeric", depth - 1)
            form = rng.choice(("cmp", "cmp", "cmp", "int", "between", "in", "distinct", "float"))
            if form == "between":
                return Expr(f"({a} BETWEEN {self.constant('numeric')} AND {self.constant('numeric')})", "bool")
            if form == "in":
                return Expr(f"({a} {rng.choice(('IN', 'NOT IN'))} ({', '.join(self.literal('numeric')[0] for _ in range(rng.randint(1, 5)))}{rng.choice(('', '', ', 1', ', NULL'))}))", "bool")
            if form == "distinct":
                return Expr(f"({a} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {self.any('numeric', depth - 1)})", "bool")
            other = {"cmp": lambda: self.any("numeric", depth - 1) if rng.random() < 0.4 else self.constant("numeric"), "int": lambda: self.any(rng.choice(INTS), 0),
                     "float": lambda: "'2.5'::float8"}[form]()
            return Expr(f"({a} {rng.choice(COMPARISONS)} {other})", "bool")
        if rng.random() < 0.1 and depth > 0:
            e = self.text(depth, found if c.type in TEXT_OF else None)
            if e is not None:
                return Expr("(" + self.fill(rng.choice(WORDS), e.sql, ANY_TEXT) + ")", "bool") if c.type != "nocase" else None
        if rng.random() < 0.15 and (c.keyable or c.type in VARIABLE_PAIRS):
            same = [n for n, o in self.typed((c.type,)) if o.collation == c.collation and n != name]
            if same:
                other, form = rng.choice(same), rng.random()
                if c.type in VARIABLE_PAIRS:
                    return Expr(f"({name} {rng.choice(('=', '<>', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM', '<', '<=', '>', '>='))} {other})", "bool")
                if form < 0.6:
                    return Expr(f"({name} {rng.choice(COMPARISONS)} {other})", "bool")
                return Expr(self.fill("(" + rng.choice((f"{name} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {other}", f"{name} IN ({other}, {{c}})", f"coalesce({name}, {other}) = {{c}}", f"nullif({name}, {other}) IS NULL",
                                                        f"(CASE WHEN {name} < {other} THEN {name} ELSE {other} END) <= {{c}}")) + ")", name, c), "bool")
        return Expr("(" + self.fill(rng.choice(TRUTHS[c.type]), name, c) + ")", "bool")

    # -- keys and aggregates --------------------------------------------------------

    def key(self):
        """A value to group by: equal values print the same."""
        rng = self.rng
        kind = rng.choice(("column", "column", "column", "text", "numeric", "extract", "base", "bin", "span", "quotient"))
        if kind == "quotient" and rng.random() < 0.5:
            # by a constant: equal quotients are of equal numbers
            return f"({self.uniform()}::numeric / {rng.choice((3, 7, 100, 0.5, 1.1))})"
        if kind == "bin" and rng.random() < 0.5:
            return self.bin()
        if kind == "span" and rng.random() < 0.5 and (span := self.span()):
            return span
        if kind == "column":
            found = [n for n, c in self.typed(ORDERED_TYPES + ("bit",)) if c.keyable]
            if found:
                return rng.choice(found)
        if kind == "text":
            e = self.text(1, self.pick(("text", "bpchar", "uuid", "d_mood", "bytea", "inet")))
            if e is not None:
                return e.sql
        texts = self.typed(("variable text", "variable bpchar"))
        if kind == "text" and texts:
            return rng.choice(("left({0}, 1)", "left({0}, 2)", "substr({0}, 2, 2)", "length({0})")).format(rng.choice(texts)[0])
        if rng.random() < 0.1:
            two = self.typed(("text",))
            one, other = rng.choice(two) if two else (None, None), rng.choice(two) if two else (None, None)
            if two and one[1].collation == other[1].collation:
                return rng.choice((f"coalesce({one[0]}, {other[0]})", f"(CASE WHEN {self.bool(0)} THEN {one[0]} ELSE {other[0]} END)", f"nullif({one[0]}, {other[0]})"))
            e = self.zoned(rng.choice(("timestamp", "timestamptz", "date")))
            if e is not None:
                return e.sql
        if kind in ("numeric", "extract"):
            for _ in range(4):
                e = self.any("numeric", rng.choice((0, 1, 1, 2))) if kind == "numeric" else self.extract(1)
                if e.scale is not None and not e.sql.startswith("$") and any(n in e.sql for n, _ in self.columns):
                    return e.sql
        return str(self.column(TYPES) or self.leaf("int4"))

    def order(self):
        """What rows are sorted by, before their id."""
        found = [n for n, c in self.typed(ORDERED_TYPES)]
        return self.rng.choice(found) if found else None

    def aggregate(self):
        """An aggregate whose answer does not depend on the order of rows."""
        rng = self.rng
        filter = f" FILTER (WHERE {self.bool(1)})" if rng.random() < 0.2 else ""
        kind = rng.choice(("sum", "sum", "avg", "extreme", "extreme", "count", "variance", "bits", "distinct", "distinct", "distinct", "price", "ratio", "share", "money", "list", "span"))
        if kind in ("sum", "avg"):
            return f"{kind}({self.any('numeric', rng.choice((0, 1, 1, 2)))}){filter}"
        if kind == "extreme":
            found = [n for n, c in self.typed(HAVE_EXTREMES) if c.keyable]
            e = rng.choice(found) if found and rng.random() < 0.7 else self.uniform() if rng.random() < 0.6 else self.text(1, self.pick(("text",)))
            return f"{rng.choice(('min', 'max'))}({e or self.leaf('int4')}){filter}"
        if kind == "count":
            return f"count({self.output(1)}){filter}"
        if kind == "variance":
            f = rng.choice(("stddev", "variance", "var_pop", "var_samp", "stddev_pop", "stddev_samp"))
            return f"{f}({self.leaf(rng.choice(INTS)) if rng.random() < 0.5 else self.any('numeric', rng.choice((0, 1)))}){filter}"
        if kind == "span":
            found = self.pick(("interval",))
            e = self.span() if found is None or "o_interval" in found[0] or rng.random() < 0.6 else found[0]
            form = rng.choice(("sum({})", "avg({})", "min({})", "max({})", "count({})", "count(DISTINCT {})"))
            return (form.format(e) if e else "count(*)") + filter
        found = self.pick(("bit",))
        if kind == "bits" and found and rng.random() < 0.3:
            return f"{rng.choice(('bit_and', 'bit_or', 'bit_xor'))}({found[0]}){filter}"
        if kind == "bits":
            return f"{rng.choice(('bit_and', 'bit_or', 'bit_xor'))}({self.any(rng.choice(INTS), 1)}){filter}"
        if kind == "distinct" and rng.random() < 0.6:
            form = rng.choice(("count", "count", "count", "sum", "avg", "variance", "extreme"))
            if form == "count":
                return f"count(DISTINCT {self.key()}){filter}"
            if form == "extreme":
                return f"{rng.choice(('min', 'max'))}(DISTINCT {self.uniform()}){filter}"
            x = self.leaf(rng.choice(INTS)) if rng.random() < 0.5 else self.uniform()
            return f"{form if form != 'variance' else rng.choice(('stddev', 'variance', 'var_pop', 'stddev_pop'))}(DISTINCT {x}){filter}"
        if kind == "distinct":
            return f"{rng.choice(('count', 'count', 'count', 'max'))}(DISTINCT {rng.choice((self.uniform(), self.uniform(), self.leaf('int4')))}){filter}" if rng.random() < 0.5 else f"count(DISTINCT {self.key()}){filter}"
        if kind == "price":
            return f"sum({self.leaf('numeric')} * (1 - {self.leaf('numeric')}) * (1 + {self.leaf('numeric')})){filter}"
        if kind == "ratio":
            ratio = f"{self.leaf('numeric')} / nullif({self.leaf(rng.choice(('numeric', 'numeric', 'int4', 'int2')))}, 0)"
            return f"{rng.choice(('sum({})', 'avg({})', 'avg({})', 'max({})', 'min({})', 'sum(round({}, 2))', 'sum(100 * {})', 'sum({} * 100)', 'count(*)', 'max(round({}, 3))')).format(ratio)}{filter}"
        if kind == "share":
            return f"round(100.00 * sum(CASE WHEN {self.bool(1)} THEN {self.leaf('numeric')} ELSE 0 END) / nullif(sum({self.leaf('numeric')}), 0), 4)"
        if kind == "money":
            found = self.pick(("money", "interval"))
            # intervals are summed field by field, and print so
            return f"sum({found[0]}){filter}" if found and "fortune" not in found[0] and "o_interval" not in found[0] else f"count(*){filter}"
        found = self.pick(("text",))
        if found is None or len(max(found[1].pool, key=len)) > 500:
            return f"sum({self.leaf('numeric')}){filter}"
        return f"string_agg(DISTINCT {found[0]}, '|'){filter}"

    def uniform(self):
        """A numeric of one display scale, which equal values print alike."""
        for _ in range(5):
            e = self.any("numeric", self.rng.choice((0, 1, 1)))
            if e.scale is not None:
                return e
        return self.leaf("int4")

    # -- what may raise ---------------------------------------------------------------

    def raising(self):
        rng = self.rng
        n = self.column(("numeric",))
        if n is None or rng.random() < 0.2:
            return super().raising()
        kind = rng.choice(("divide", "divide", "modulo", "cast", "precision", "text", "substring", "moved", "byte", "pattern"))
        if kind == "divide":
            return Expr(f"({n} / {self.leaf('numeric')})", "numeric")
        if kind == "modulo":
            return Expr(f"({n} % {self.leaf('numeric')})", "numeric")
        if kind == "cast":
            return Expr(f"({n})::{rng.choice(INTS)}", "int4")
        if kind == "precision":
            return Expr(f"({n})::numeric({rng.choice(('3,1', '5,2', '2,0', '9,4'))})", "numeric")
        found = self.pick(("text",))
        if kind in ("text", "substring") and found:
            return Expr(f"({found[0]})::{rng.choice(('int4', 'numeric', 'date'))}" if kind == "text" else f"substring({found[0]} FROM 1 FOR length({found[0]}) - 2)", "text")
        found = self.pick(("variable text",)) or self.pick(("text",))
        if kind == "pattern" and found:
            return Expr(f"({found[0]} LIKE '{rng.choice(('a', 'ab', '%a', '%', '_', ''))}\\')", "bool")
        found = self.pick(("bytea",))
        if kind == "byte" and found:
            return Expr(f"get_byte({found[0]}, 1)", "int4")
        return Expr(f"({self.leaf('timestamp')} {rng.choice('+-')} '{rng.choice(('250000 years', '300000 mons', '1 day'))}'::interval)", "timestamp")


class AnyText:
    """For constants beside a computed text."""
    type, cast, pool, collation = "text", "text", ("a", "b", "", "A", "abc", "Zebra", "10"), ""


ANY_TEXT = AnyText()


def generator(rng, columns, prepared=False):
    """The generator for these columns."""
    typed = any(getattr(c, "pool", None) is not None for _, c in columns)
    return (TypedGenerator if typed else Generator)(rng, columns, prepared)
