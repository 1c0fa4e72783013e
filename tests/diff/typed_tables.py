"""Tables of the types that are stored scaled or by a dictionary, and of those that are left out.

A column's `type` is its family, by which the generator picks it; `cast` is the type of its literals, `declared` that of the
column. `scale` is a numeric column's display scale, None where values have several. `pool` has the values of a column by
which constants are made that meet it. Not `keyable` are values that may be equal and print differently. `imported` says
that tablets have the column; what they leave out is read by PostgreSQL, with a reason.
"""
import random

from tables import PROFILES, Column, Maker, Range, from_file, profile, stored

LOW = ("", " ", "a", "A", "b", "B", "ab", "aB", "Ab ", "abc", "abd", "ä", "Ä", "ß", "SS", "é", "e\u0301", "ñ", "Zebra", "zebra", "日本語", "😀", "İ", "ı",
       "x%y", "x_y", "x\\y", "a'b", 'q"q', "10", "9", "-0", "NULL", "special requests", "very special, requests", "tab\tx", "line\nbreak", " lead", "trail  ",
       "a b c", "\\N", "{}", "%", "ﬁ", "\u200b", "\U0010ffff", "\x01")
MIDDLE = tuple(f"{w}{i % 7}{' ' * (i % 3)}{i}" for i, w in enumerate(("carefully", "Furiously ", "quick", "ünïcode", "x", "") * 70))
DIGITS = ("0", "1", "7", "42", "007", "-5", "99999", "12345678901", "x1", "", " 8", "1.5", "1e3")
UUIDS = tuple(f"{i * 2654435761 % 2**32:08x}-{i:04x}-4000-8000-{i * i:012x}" for i in range(40)) + ("00000000-0000-0000-0000-000000000000", "f" * 8 + "-ffff" * 3 + "-" + "f" * 12)
MOODS = ("sad", "ok", "happy", "Ecstatic", "none of these")
BYTES = ("\\x", "\\x00", "\\x0001", "\\xff", "\\x616263", "\\x5c", "\\x" + "ab" * 200, "\\x61")
INETS = ("10.0.0.1", "10.0.0.1/8", "10.0.0.0/8", "192.168.1.77/24", "::1", "2001:db8::/32", "0.0.0.0/0", "255.255.255.254", "::ffff:1.2.3.4/128")
CIDRS = ("10.0.0.0/8", "192.168.1.0/24", "::/0", "2001:db8::/32", "10.1.2.3/32", "10.0.0.0/9")
MACS = ("08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "08:00:2b:ff:02:03")
INTERVALS = ("1 day", "24:00:00", "1 mon", "30 days", "-1 year", "00:00:00", "1 year 2 mons 3 days 04:05:06.789", "-04:05:06", "100000 days", "0.000001 s", "1 day -1 hour",
             "80000000 years")
SPANS = ("1 day", "2 days", "3 mons", "1 year", "-5 days", "10:00:00", "00:00:00.5")	# no two are equal
TIMETZS = ("00:00:00+00", "12:30:00+02", "10:30:00+00", "24:00:00-08", "23:59:59.999999+13", "04:05:06-03:30")
DAYTIMES = ("00:00:00", "24:00:00", "12:00:00", "23:59:59.999999", "04:05:06.789", "00:00:00.000001", "13:37:00")
BITS = ("00000000", "11111111", "10101010", "00000001", "10000000")
VARBITS = ("", "0", "1", "00", "101", "1" * 70)
JSONS = ('{}', '{"a": 1}', '{"a":1}', '{"a": "x", "b": [1, 2, null]}', '[]', 'null', '"text"', '{"a": null}', '3.0', '3', '{"b": {"c": true}, "a": -1.50}')
ARRAYS = ("{}", "{1}", "{1,2,3}", "{NULL}", "{1,NULL,-5}", "[0:1]={1,2}", "{{1,2},{3,4}}")
WORDS = ("{}", "{a}", '{a,"",NULL}', '{"A b",ä}')
MONEY = ("0", "1.00", "-1.00", "12.34", "99999.99", "-92233720368547758.08", "92233720368547758.07")
OIDS = ("0", "1", "4294967295", "2147483648", "1259", "2147483647")
# Beside their types' orders: zones of one instant, periods that are equal and print differently, networks in each other, bits that begin alike.
INSTANTS = TIMETZS + ("11:30:00+01", "24:00:00+00", "24:00:00-15:59", "00:00:00+15:59", "00:00:00-15:59", "00:00:00+00:00:01", "00:00:01+00:00:01")
PERIODS = INTERVALS + ("29 days 24:00:00", "720:00:00", "-1 mon", "-30 days", "178000000 years", "-178000000 years", "2562047788:00:54.775807", "-2562047788:00:54.775807", "1 year -12 mons", "-0.000001 s", "60 days", "2 mons")
NETWORKS = INETS + ("10.0.0.0", "10.0.0.0/16", "10.0.0.1/16", "10.128.0.0/9", "10.128.0.0/10", "::/0", "2001:db8::1/64", "2001:db8::/65", "ffff:" * 7 + "ffff", "::a00:0", "10.0.0.1/31", "10.0.0.0/31")
BLOCKS = CIDRS + ("0.0.0.0/0", "10.0.0.0/16", "10.128.0.0/9", "2001:db8::/33", "2001:db8::1/128")
MACS8 = tuple(m + ":ff:80" for m in MACS) + ("7f:ff:ff:ff:80:00:00:00", "80:00:00:00:7f:ff:ff:ff")
BIT_STRINGS = VARBITS + ("100000000", "10000000", "11111111", "1" * 71, "1" * 69 + "0", "0" * 8, "0" * 9)
# Columns of these are stored value by value: their statistics say that no dictionary would hold the values.
LONGER = ("x" * 126, "x" * 127, "ä" * 63, "ä" * 64, "long " * 300 + "special and requests", "日本語 " * 500 + "😀", "z" * 9000, "ab" * 5000 + "c",
          "".join(chr(97 + i * i % 23) for i in range(8200)))
BOXES = ("(1,2),(3,4)", "(0,0),(0,0)", "(-1.5,2),(7,8)")
COMPOSITES = ("(1,x)", "(,)", '(-7,"a b")', '(2,"")')
MISFITS = ("NaN", "1.5", "2", "-0.125", "123456789012345678901234567890.25", "0.00", "1e40", "Infinity")
RANGES = ("empty", "[1,5)", "(,3)", "[7,)")
CHARS = ("a", "b", "A", "\\x01", "~", " ", "")

COLLATIONS = ("C", "und-x-icu", "de-x-icu", "tr-x-icu")
TYPES_SQL = ["DROP DOMAIN IF EXISTS d_word, d_price CASCADE", "DROP TYPE IF EXISTS d_mood CASCADE", f"CREATE TYPE d_mood AS ENUM {MOODS}",
             "CREATE DOMAIN d_word AS text CHECK (length(value) < 10000)", "CREATE DOMAIN d_price AS numeric(12,2) CHECK (value > -1e9)",
             "DROP TYPE IF EXISTS d_pair CASCADE", "CREATE TYPE d_pair AS (a int4, b text)", "DROP COLLATION IF EXISTS d_nocase",
             # a server without ICU has the names at least
             """DO $$ BEGIN CREATE COLLATION d_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
                EXCEPTION WHEN feature_not_supported THEN """ + " ".join(f'CREATE COLLATION IF NOT EXISTS "{c}" FROM "C";' for c in COLLATIONS[1:] + ("d_nocase",)) + " END $$"]


class TypedColumn(Column):
    def __init__(self, name, type, declared, value, range=None, nulls=0.1, imported=True, cast=None, pool=None, scale=None, collation="", keyable=True):
        super().__init__(name, type, range or Range(), imported, value, nulls)
        self.declared, self.cast, self.pool = declared, cast or type, pool
        self.scale, self.collation, self.keyable = scale, collation, keyable


def decimal(v, scale):
    """The text of v / 10^scale with `scale` digits."""
    sign, digits = "-" if v < 0 else "", str(abs(v)).rjust(scale + 1, "0")
    return sign + (digits if scale <= 0 else digits[:-scale] + "." + digits[-scale:])


class TypedMaker(Maker):
    def append(self, column):
        self.columns.append(column)
        self.makers.append((column.value, column.nulls))

    def create(self):
        columns = "".join(f", {c.name} {getattr(c, 'declared', c.type)}" for c in self.columns)
        return f"CREATE TABLE {self.name} (id int4 NOT NULL{columns}) WITH (autovacuum_enabled = off)"

    def base(self, *types, nulls=0.1, special=False):
        """Columns of the ordinary types beside them."""
        for type in types:
            value, range = profile(self.rng, type, "special" if special else PROFILES[type][0])
            self.append(Column(f"{type}_{len(self.columns)}", type, range, value=value, nulls=nulls))

    def numeric(self, name, declared, scale, lo, hi, values=None, edge=False, special=(), **more):
        """Multiples of 10^-scale from lo to hi (both scaled), edges and what is no number now and then; or some values alone."""
        rng, unit = self.rng, 10**max(scale or 0, 0)
        pool = [decimal(v, scale or 0) for v in ((0, 1, -1, lo, hi, lo + 1, hi - 1) if edge else (0, 1, lo, hi)) if lo <= v <= hi]

        def value():
            if values:
                return rng.choice(values)
            if special and rng.random() < 0.01:
                return rng.choice(special)
            return rng.choice(pool) if rng.random() < (0.2 if edge else 0.02) else decimal(rng.randint(lo, hi), scale)
        bounds = Range(-(-abs(lo) // unit) * (-1 if lo < 0 else 1) - 1, hi // unit + 1, finite=not special and (not values or "NaN" not in values))
        self.append(TypedColumn(name, "numeric", declared, value, bounds, pool=values or pool + list(special), scale=scale, cast="numeric", **more))

    def choice(self, name, type, pool, declared=None, **more):
        rng = self.rng
        self.append(TypedColumn(name, type, declared or type, lambda: rng.choice(pool), pool=pool, **more))

    def vary(self, *names):
        """The steps that make these columns, or all of the families that are stored so, variable."""
        names = names or [c.name for c in self.columns if c.type.startswith("variable")]
        return ["ALTER TABLE " + self.name + " " + ", ".join(f"ALTER {n} SET (n_distinct = 2000000)" for n in names)]

    def unlike(self, name, family, declared, words, nulls=0.1, **more):
        """Texts of which many are different, beside those of a pool."""
        rng = self.rng

        def value():
            return rng.choice(words) if rng.random() < 0.7 else f"{rng.choice(MIDDLE)} {rng.randrange(10**6)} {rng.choice(LOW[:20])}"[:more.pop("most", 10**7)]
        self.append(TypedColumn(name, family, declared, value, pool=words, nulls=nulls, **more))

    def later(self):
        """Is the table filled, so that what comes are changes?"""
        left = [self.rows]

        def told():
            left[0] -= 1
            return left[0] < 0
        return told

    def drifting(self, name, scale):
        """Of one scale, until changes bring another one now and then, or what is no number."""
        rng, later = self.rng, self.later()

        def value():
            if later() and rng.random() < 0.02:
                return rng.choice(("NaN", "1.5", "2", "-0.125", "Infinity", "123456789012345678901.25"))
            return decimal(rng.randint(-900, 900), scale)
        self.append(TypedColumn(name, "numeric", "numeric", value, Range(-10, 10**21, finite=False), pool=("0.00", "1.50", "NaN"), cast="numeric", keyable=False))

    def growing(self, name, type, first, all):
        """Changes bring values that no dictionary has yet."""
        rng, later = self.rng, self.later()
        self.append(TypedColumn(name, type, type, lambda: f"new {rng.randrange(all if later() else first)}", pool=tuple(f"new {i}" for i in range(0, all, 3))))

    def done(self, setup=()):
        return self.table(list(setup) + [self.create(), self.copy(0, self.rows)], self.rows)


def numerics(rng, name, rows):
    m = TypedMaker(rng, name, rows)
    m.numeric("n_money", "numeric(15,2)", 2, -9999999, 9999999)
    m.numeric("n_part", "numeric(4,2)", 2, 0, 10)
    m.numeric("n_four", "numeric(10,4)", 4, -10**6, 10**6, nulls=0)
    m.numeric("n_whole", "numeric(18,0)", 0, -10**6, 10**6)
    m.numeric("n_fine", "numeric(18,10)", 10, -10**13, 10**13)
    m.numeric("n_edge", "numeric(18,2)", 2, -10**18 + 1, 10**18 - 1, edge=True)
    m.numeric("n_free", "numeric", 3, -5000, 5000)
    m.numeric("n_price", "d_price", 2, -10000, 10**7)
    m.numeric("n_few", "numeric(6,1)", 1, -6, 6)
    m.numeric("n_over", "numeric(2,4)", 4, -99, 99)
    m.numeric("n_mixed", "numeric", None, -10**11, 10**11, values=("1", "1.0", "1.00", "2.50", "-3", "0", "0.000", "100.125", "1e10"), imported=False, keyable=False)
    m.numeric("n_nan", "numeric(10,2)", 2, -10**5, 10**5, special=("NaN",))
    m.numeric("n_infinite", "numeric", 1, -500, 500, special=("Infinity", "-Infinity", "NaN"))
    m.numeric("n_vast", "numeric", 0, -10**30, 10**30, edge=True, special=("Infinity", "-Infinity", "NaN"))
    m.numeric("n_wide", "numeric(38,4)", 4, -10**37, 10**37, edge=True)
    m.numeric("n_half", "numeric(20,1)", 1, -10**19, 10**19, edge=True)
    m.numeric("n_huge", "numeric", 0, -10**36, 10**36, values=tuple(str(i * 10**35 + i % 3) for i in range(-5, 6)) + ("4611686018427387904", "-4611686018427387904", "9223372036854775808"))
    m.numeric("n_nothing", "numeric", 0, 0, 0, nulls=1.0)
    m.choice("x_flag", "text", ("A", "N", "R", "ä"))
    m.base("int2", "int4", "int8", "float8", "bool")
    return m.done(TYPES_SQL)


def texts(rng, name, rows):
    m = TypedMaker(rng, name, rows)
    m.choice("t_low", "text", LOW)
    m.choice("t_middle", "text", MIDDLE, nulls=0.05)
    m.choice("t_digits", "text", DIGITS)
    m.choice("t_flag", "text", ("A", "N", "R"), nulls=0)
    m.choice("t_word", "text", LOW[:20], "d_word")
    m.choice("v_low", "text", tuple(v[:20] for v in LOW), "varchar(20)", cast="varchar")
    for i, collation in enumerate(COLLATIONS):
        m.choice(f"t_{collation[:2].lower()}", "text", LOW, f'text COLLATE "{collation}"', collation=collation)
    m.choice("t_nocase", "nocase", LOW, "text COLLATE d_nocase", cast="text", keyable=False)
    m.choice("c_ten", "bpchar", tuple(v[:10].rstrip(" ") for v in LOW), "char(10)")
    m.choice("c_one", "bpchar", ("a", "b", "A", "", "ä"), "char(1)", nulls=0)
    m.choice("c_any", "blank", ("a", "a ", "a  ", "", " ", "b"), "bpchar", cast="bpchar", keyable=False)
    value = (lambda: f"{rng.random()} {rng.random()}")
    m.append(TypedColumn("t_unique", "text", "text", value, pool=("0.5", "0.25 1"), imported=False))
    m.numeric("x_price", "numeric(9,2)", 2, -99999, 99999)
    m.base("int4", "date", "bool")
    return m.done()


def others(rng, name, rows):
    m = TypedMaker(rng, name, rows)
    for name_, type, pool, more in (
            ("o_name", "name", tuple(v[:15] for v in LOW[:20]), {}), ("o_char", '"char"', CHARS[:3] + CHARS[4:6], {}), ("o_uuid", "uuid", UUIDS, {}),
            ("o_mood", "d_mood", MOODS, {}), ("o_bytes", "bytea", BYTES, {}), ("o_inet", "inet", INETS, {}), ("o_cidr", "cidr", CIDRS, {}),
            ("o_mac", "macaddr", MACS, {}), ("o_interval", "interval", INTERVALS, {"keyable": False}), ("o_span", "interval", SPANS, {}),
            ("o_timetz", "timetz", TIMETZS, {}), ("o_bit", "bit", BITS, {"declared": "bit(8)", "cast": "varbit"}), ("o_varbit", "varbit", VARBITS, {}),
            ("o_json", "json", JSONS, {"keyable": False}), ("o_jsonb", "jsonb", JSONS, {"keyable": False}), ("o_ints", "int4[]", ARRAYS, {}),
            ("o_words", "text[]", WORDS, {}), ("o_time", "time", DAYTIMES, {}), ("o_money", "money", MONEY[:5], {}),
            ("o_fortune", "money", MONEY, {}), ("o_oid", "oid", OIDS, {})):
        m.choice(name_, type, pool, **more)
    m.numeric("x_rate", "numeric(5,3)", 3, -9999, 99999)
    m.choice("x_flag", "text", ("A", "N", "R", "ä"))
    m.base("date", "timestamp", "timestamptz", "int8")
    m.base("date", "timestamp", special=True)
    return m.done()


def long_values(rng, name, rows):
    """Few distinct values: compressed, and out of line."""
    m = TypedMaker(rng, name, rows)
    noise = random.Random(f"{name}:noise")
    long = ("", "z" * 7500, "ab" * 3000, "".join(noise.choice("abcdefghij äß") for _ in range(6000)), "short")
    m.choice("l_text", "text", long)
    m.choice("l_huge", "text", ("y" * 1000000, "short", ""), imported=False)
    m.choice("l_bytes", "bytea", ("\\x" + "00" * 5000, "\\x" + bytes(noise.randrange(256) for _ in range(4000)).hex(), "\\x"))
    m.choice("l_c", "text", long, 'text COLLATE "C"', collation="C")
    m.numeric("l_num", "numeric(9,3)", 3, -500, 500)
    m.base("int4")
    return m.done()


def variable(rng, name, rows):
    """Values of any length, and of types that have no other form."""
    m = TypedMaker(rng, name, rows)
    words = LOW + MIDDLE[::20] + LONGER
    m.unlike("y_text", "variable text", "text", words, cast="text")
    m.unlike("y_words", "variable text", "text", LOW + MIDDLE, nulls=0, cast="text")
    m.unlike("y_c", "variable text", 'text COLLATE "C"', words, cast="text", collation="C")
    m.unlike("y_de", "variable text", 'text COLLATE "de-x-icu"', words, cast="text", collation="de-x-icu")
    m.choice("y_varchar", "variable text", tuple(v[:20] for v in LOW), "varchar(20)", cast="varchar")
    m.choice("y_blank", "variable bpchar", tuple(v[:10].rstrip(" ") for v in LOW), "char(10)", cast="bpchar")
    m.choice("y_bytes", "variable bytea", BYTES, cast="bytea", declared="bytea")
    m.choice("y_uuid", "variable uuid", UUIDS, cast="uuid", declared="uuid")
    for name_, type, pool in (("y_json", "json", JSONS), ("y_jsonb", "jsonb", JSONS), ("y_words_array", "text[]", WORDS), ("y_inet", "inet", INETS), ("y_box", "box", BOXES), ("y_pair", "d_pair", COMPOSITES),
                              ("y_misfit", "numeric", MISFITS), ("y_range", "int8range", RANGES)):
        m.choice(name_, "variable", pool, type, cast=type, keyable=False)
    m.choice("y_name", "variable name", tuple(v[:15] for v in LOW[:20]), "name", cast="name", keyable=False)
    m.choice("y_nothing", "variable", ("a",), "text", cast="text", nulls=1.0, keyable=False)
    m.choice("x_flag", "text", ("A", "N", "R", "ä"))
    m.choice("x_low", "text", LOW)
    m.numeric("x_price", "numeric(9,2)", 2, -99999, 99999)
    m.base("int4", "int8", "date", "bool", "timestamptz")
    return m.table([m.create(), *m.vary(), m.copy(0, rows)], rows)


def ordered(rng, name, rows):
    """Types whose values are stored value by value and compared by rules of their own, two columns of each."""
    m = TypedMaker(rng, name, rows)
    for type, pool, declared in (("timetz", INSTANTS, "timetz"), ("interval", PERIODS, "interval"), ("inet", NETWORKS, "inet"), ("cidr", BLOCKS, "cidr"), ("macaddr", MACS, "macaddr"),
                                 ("macaddr8", MACS8, "macaddr8"), ("bit", BITS, "bit(8)"), ("varbit", BIT_STRINGS, "varbit")):
        for i, nulls in ((1, 0.1), (2, 0)):
            m.choice(f"v_{type}{i}", f"variable {type}", pool, declared, cast=declared, nulls=nulls, keyable=type != "interval")
    m.choice("x_flag", "text", ("A", "N", "R", "ä"))
    m.numeric("x_price", "numeric(9,2)", 2, -99999, 99999)
    m.base("int4", "date", "bool")
    return m.table([m.create(), *m.vary(), m.copy(0, rows)], rows)


def huge(rng, name, rows):
    """A megabyte a value, less, and none."""
    m = TypedMaker(rng, name, rows)
    noise = random.Random(f"{name}:noise")
    m.unlike("y_huge", "variable text", "text", ("", "y" * 1000000, "1MB " * 262144, "short", bytes(noise.randrange(97, 123) for _ in range(100000)).decode(), "ä" * 40000 + "b"), cast="text")
    m.unlike("y_main", "variable text", "text", LONGER, cast="text")
    m.choice("y_bytes", "variable bytea", BYTES + ("\\x" + "61" * 100000,), declared="bytea", cast="bytea")
    m.base("int4")
    return m.table([m.create(), f"ALTER TABLE {name} ALTER y_huge SET STORAGE EXTERNAL, ALTER y_main SET STORAGE MAIN", *m.vary(), m.copy(0, rows)], rows)


def mixed_types(rng, name, rows):
    """A few columns of each kind, for joins and small tables."""
    m = TypedMaker(rng, name, rows)
    m.numeric("n_few", "numeric(6,2)", 2, -500, 500)
    m.numeric("n_one", "numeric", 1, -30, 30)
    m.drifting("n_drift", 2)
    m.growing("t_new", "text", 40, 400)
    m.choice("t_low", "text", LOW[:12])
    m.choice("c_one", "bpchar", ("a", "b", "A", ""), "char(1)")
    m.choice("o_mood", "d_mood", MOODS)
    m.choice("o_uuid", "uuid", UUIDS[:6])
    m.choice("o_time", "time", DAYTIMES)
    m.base("int4", "int8", "date", "timestamp", "float8", "bool", "timestamptz")
    return m.done()


def altered_types(rng, name, rows):
    """Columns dropped and added when half of the rows were there: those have the defaults."""
    m = TypedMaker(rng, name, rows // 2)
    m.numeric("n_gone", "numeric(9,3)", 3, -500, 500)
    m.choice("t_gone", "text", LOW)
    m.numeric("n_kept", "numeric(9,3)", 3, -500, 500)
    m.choice("t_kept", "text", LOW[:20])
    m.base("int4", "date")
    setup = [m.create(), m.copy(0, m.rows), f"ALTER TABLE {name} DROP COLUMN n_gone, DROP COLUMN t_gone"]
    m.columns, m.makers = m.columns[2:], m.makers[2:]
    m.numeric("n_added", "numeric(7,2)", 2, -500, 500)
    m.numeric("n_loose", "numeric", 2, -500, 500)
    m.choice("t_added", "text", LOW[:20])
    m.choice("c_added", "bpchar", ("a", "b", ""), "char(3)")
    m.choice("o_added", "uuid", UUIDS[:5])
    m.numeric("n_null", "numeric", 1, -50, 50)
    setup += [f"ALTER TABLE {name} ADD COLUMN n_added numeric(7,2) DEFAULT 7.25, ADD COLUMN n_loose numeric DEFAULT 0.50, ADD COLUMN t_added text DEFAULT 'added', "
              f"ADD COLUMN c_added char(3) DEFAULT 'a', ADD COLUMN o_added uuid DEFAULT '{UUIDS[7]}', ADD COLUMN n_null numeric", m.copy(m.rows, rows - m.rows)]
    return m.table(setup, rows)


def partitioned_types(rng, name, rows):
    """Leaves have dictionaries of one family for each column, and of a numeric without a scale one each; changes make dictionaries longer."""
    m = TypedMaker(rng, name, rows)
    m.numeric("n_fixed", "numeric(9,2)", 2, -5000, 5000)
    m.numeric("n_loose", "numeric", 1, -500, 500)
    m.choice("t_low", "text", LOW[:15])
    m.choice("o_time", "time", DAYTIMES)
    m.choice("o_uuid", "uuid", UUIDS)
    m.choice("c_one", "bpchar", ("a", "b", "A", ""), "char(1)")
    m.growing("t_new", "text", 40, 400)
    m.unlike("y_text", "variable text", "text", LOW + LONGER[:4], cast="text")
    m.base("int4", "timestamp", "timestamptz")
    leaves = [f"{name}_{i}" for i in range(3)]
    setup = [m.create().replace(" WITH (autovacuum_enabled = off)", " PARTITION BY RANGE (id)")]
    for leaf, first, last in zip(leaves, (0, rows // 3, 2 * rows // 3), (rows // 3, 2 * rows // 3, "MAXVALUE")):
        setup.append(f"CREATE TABLE {leaf} PARTITION OF {name} FOR VALUES FROM ({first}) TO ({last}) WITH (autovacuum_enabled = off)")
        setup.append(f"ALTER TABLE {leaf} ALTER y_text SET (n_distinct = 2000000)")
    setup += [m.copy(0, rows), f"UPDATE {leaves[2]} SET n_loose = n_loose * 1.00", f"UPDATE {leaves[1]} SET n_fixed = NULL"]
    m.columns[1].keyable, m.columns[1].scale = False, None
    return m.table(setup, rows, imports=leaves)


def make_typed_tables(seed, rows):
    def rng(name):
        return random.Random(f"{seed}:{name}")

    tables = [
        numerics(rng("d_numerics"), "d_numerics", rows), texts(rng("d_texts"), "d_texts", rows), others(rng("d_others"), "d_others", rows),
        long_values(rng("d_long"), "d_long", max(rows // 40, 1)), mixed_types(rng("d_types"), "d_types", rows * 3),
        altered_types(rng("d_altered_types"), "d_altered_types", rows), partitioned_types(rng("d_typed_parts"), "d_typed_parts", rows),
        variable(rng("d_variable"), "d_variable", rows), ordered(rng("d_ordered"), "d_ordered", rows), huge(rng("d_huge"), "d_huge", max(rows // 50, 1)),
        mixed_types(rng("d_few_types"), "d_few_types", 30), mixed_types(rng("d_no_types"), "d_no_types", 0),
    ]
    for table in tables:
        table.typed = True
    tables += [from_file(tables[4], "d_typed_file"), stored(tables[4], "d_typed_stored")]
    tables[4].many_tablets = True
    return tables
