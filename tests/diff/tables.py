"""Tables of the differential suite: columns with known value ranges, and their rows.

Every table has `id`, unique and never null. The expression generator relies on
the ranges recorded here to build expressions that cannot raise.
"""
import datetime
import io
import random
import struct

INT_RANGE = {
    "int2": (-2**15, 2**15 - 1),
    "int4": (-2**31, 2**31 - 1),
    "int8": (-2**63, 2**63 - 1),
}
INTS = tuple(INT_RANGE)
FLOATS = ("float4", "float8")
TIMES = ("date", "timestamp", "timestamptz")
TYPES = INTS + FLOATS + ("bool",) + TIMES

# Finite non-zero magnitudes of floats that arithmetic may use (see Range).
TAME = (2.0**-10, 1.0e4)


class Range:
    """What is known of an expression's non-null values.

    Integers: lo <= v <= hi. Floats: lo <= |v| <= hi for finite non-zero v;
    `finite` says that there is no NaN or infinity. Dates and timestamps: `tame`
    says that all are finite and in 1950..2050. lo is None where nothing is known.
    """

    def __init__(self, lo=None, hi=None, finite=True, tame=True):
        self.lo, self.hi, self.finite, self.tame = lo, hi, finite, tame

    def union(self, other):
        if self.lo is None or other.lo is None:
            return Range(None, None, self.finite and other.finite, self.tame and other.tame)
        return Range(min(self.lo, other.lo), max(self.hi, other.hi), self.finite and other.finite, self.tame and other.tame)


class Column:
    """`value` makes another value as text, within the range; `nulls` is the share of nulls."""

    def __init__(self, name, type, range, imported=True, value=None, nulls=0):
        self.name, self.type, self.range, self.imported, self.value, self.nulls = name, type, range, imported, value, nulls


class Table:
    """`setup` is a list of SQL statements and (COPY statement, data) pairs."""

    typed = False				# has columns of typed_tables.py
    many_tablets = False		# is imported in tablets that are as small as can be
    partly = False				# only its `imported` columns are
    foreign = False				# is a file, or kept in tablets alone

    def __init__(self, name, columns, setup, rows, imports=None, rng=None):
        self.name, self.columns, self.setup, self.rows = name, columns, setup, rows
        self.imports = [name] if imports is None else imports
        self.rng = rng			# what the columns' values come from

    def of_type(self, type):
        return [c for c in self.columns if c.type == type]


def copy_text(value):
    """As COPY reads it."""
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def float4_text(v):
    """The shortest text of the nearest float4 is left to PostgreSQL: nine digits identify it."""
    return "%.9g" % struct.unpack("f", struct.pack("f", v))[0]


SPECIAL_FLOATS = {
    "float4": ["NaN", "Infinity", "-Infinity", "-0", "0", "3.4028235e+38", "-3.4028235e+38", "1e-45", "-1e-45",
               "1.1754944e-38", "16777216", "16777217", "0.1", "-2147483648", "9.223372e+18"],
    "float8": ["NaN", "Infinity", "-Infinity", "-0", "0", "1.7976931348623157e+308", "-1.7976931348623157e+308", "5e-324",
               "-5e-324", "2.2250738585072014e-308", "9007199254740993", "0.1", "2147483647.5", "-9223372036854775808",
               "9223372036854775807"],
}
SPECIAL_TIMES = {
    "date": ["infinity", "-infinity", "4714-11-24 BC", "5874897-12-31", "2000-01-01", "1999-12-31", "0001-01-01 BC"],
    "timestamp": ["infinity", "-infinity", "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999", "2000-01-01 00:00:00",
                  "1999-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC"],
    "timestamptz": ["infinity", "-infinity", "4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00",
                    "2000-01-01 00:00:00+00", "1999-12-31 23:59:59.999999+00", "1970-01-01 00:00:00+00"],
}
INT_PROFILES = ("small", "tiny", "middle", "full", "constant", "skewed")
FLOAT_PROFILES = ("tame", "quarters", "special", "constant")
TIME_PROFILES = ("near", "few", "special", "constant")


def tame_float(rng, type):
    if rng.random() < 0.05:
        return "0"
    v = rng.choice((-1, 1)) * rng.uniform(*rng.choice(((2.0**-9, 1), (1, 100), (1, 9999))))
    return float4_text(v) if type == "float4" else repr(v)


def near_time(rng, type):
    day = datetime.date(1995, 1, 1) + datetime.timedelta(days=rng.randrange(10000))
    if type == "date":
        return day.isoformat()
    text = "%s %02d:%02d:%02d" % (day.isoformat(), rng.randrange(24), rng.randrange(60), rng.randrange(60))
    if rng.random() < 0.5:
        text += ".%06d" % rng.randrange(10**6)
    return text + ("+00" if type == "timestamptz" else "")


def profile(rng, type, name):
    """(function that gives one value as text, Range) of a type's profile."""
    if type == "bool":
        p = {"constant": 1.0, "skewed": 0.98}.get(name, 0.5)
        return (lambda: "t" if rng.random() < p else "f"), Range()
    if type in INTS:
        lo, hi = INT_RANGE[type]
        if name == "full":
            edges = [lo, lo + 1, -1, 0, 1, hi - 1, hi]
            return (lambda: str(rng.choice(edges) if rng.random() < 0.2 else rng.randint(lo, hi))), Range(lo, hi)
        if name == "constant":
            v = rng.choice((0, 1, -7, 100, hi))
            return (lambda: str(v)), Range(v, v)
        if name == "skewed":
            top = min(hi, 10**6) - 1
            return (lambda: str(rng.randint(-5, top) if rng.random() < 0.03 else rng.randint(0, 1))), Range(-5, top)
        lo, hi = {"small": (-99, 99), "tiny": (0, 6), "middle": (-3000, 29000)}[name]
        return (lambda: str(rng.randint(lo, hi))), Range(lo, hi)
    if type in FLOATS:
        if name == "special":
            values = SPECIAL_FLOATS[type]
            return (lambda: rng.choice(values) if rng.random() < 0.4 else tame_float(rng, type)), Range(None, None, finite=False)
        if name == "constant":
            return (lambda: "-2.5"), Range(2.5, 2.5)
        if name == "quarters":
            return (lambda: str(rng.randint(-12, 12) / 4)), Range(0.25, 3.0)
        return (lambda: tame_float(rng, type)), Range(*TAME)
    if name == "special":
        values = SPECIAL_TIMES[type]
        return (lambda: rng.choice(values) if rng.random() < 0.4 else near_time(rng, type)), Range(tame=False)
    if name == "constant":
        v = near_time(rng, type)
        return (lambda: v), Range()
    if name == "few":
        values = [near_time(rng, type) for _ in range(5)]
        return (lambda: rng.choice(values)), Range()
    return (lambda: near_time(rng, type)), Range()


PROFILES = {**{t: INT_PROFILES for t in INTS}, **{t: FLOAT_PROFILES for t in FLOATS}, **{t: TIME_PROFILES for t in TIMES},
            "bool": ("even", "skewed", "constant")}


class Maker:
    """Builds one table's columns and COPY data."""

    def __init__(self, rng, name, rows):
        self.rng, self.name, self.rows = rng, name, rows
        self.columns, self.makers = [], []

    def add(self, type, profile_name, nulls):
        value, range = profile(self.rng, type, profile_name)
        name = f"{type}_{len(self.columns)}"
        self.columns.append(Column(name, type, range, value=value, nulls=nulls))
        self.makers.append((value, nulls))

    def create(self):
        columns = "".join(f", {c.name} {c.type}" for c in self.columns)
        return f"CREATE TABLE {self.name} (id int4 NOT NULL{columns}) WITH (autovacuum_enabled = off)"

    def copy(self, first, rows, columns=None):
        data = io.StringIO()
        for i in range(first, first + rows):
            fields = [str(i)]
            for value, nulls in self.makers:
                fields.append("\\N" if nulls and self.rng.random() < nulls else copy_text(value()))
            data.write("\t".join(fields) + "\n")
        names = ", ".join(["id"] + [c.name for c in (columns or self.columns)])
        return (f"COPY {self.name} ({names}) FROM STDIN", data.getvalue())

    def table(self, setup, rows, imports=None):
        id = Column("id", "int4", Range(0, max(rows - 1, 0)))
        return Table(self.name, [id] + self.columns, setup, rows, imports, self.rng)


def mixed(rng, name, rows, nulls, profiles=None, types=TYPES, each=2):
    m = Maker(rng, name, rows)
    for type in types:
        names = list(PROFILES[type])
        if profiles:
            names = [n for n in names if n in profiles] or names[:1]
        for i in range(each):
            m.add(type, names[i % len(names)] if profiles else rng.choice(names), rng.choice(nulls))
    return m.table([m.create(), m.copy(0, rows)], rows)


def altered(rng, name, rows):
    """Columns dropped and added after some of the rows were there; a column that cannot be imported."""
    m = Maker(rng, name, rows)
    for type in ("int4", "float8", "int8", "date"):
        m.add(type, PROFILES[type][0], 0.1)
    half = rows // 2
    first = m.copy(0, half)
    dropped, kept = m.columns[0], m.columns[1:]
    setup = [m.create(), first, f"ALTER TABLE {name} DROP COLUMN {dropped.name}",
             f"ALTER TABLE {name} ADD COLUMN added_int int2 DEFAULT 7, ADD COLUMN note text DEFAULT 'x', "
             f"ADD COLUMN added_bool bool"]
    m.makers = m.makers[1:]
    setup.append(m.copy(half, rows - half, kept))
    setup.append(f"ALTER TABLE {name} ADD COLUMN added_float float4 DEFAULT 1.5")
    m.columns = kept
    table = m.table(setup, rows)
    table.columns += [Column("added_int", "int2", Range(7, 7), value=lambda: "7"),
                      Column("added_bool", "bool", Range(), value=lambda: rng.choice("tf"), nulls=0.5),
                      Column("added_float", "float4", Range(1.5, 1.5), value=lambda: "1.5"),
                      Column("note", "text", Range(), imported=False, value=lambda: "y" * rng.randrange(30))]
    return table


def partitioned(rng, name, rows):
    m = Maker(rng, name, rows)
    for type in ("int2", "int4", "float8", "bool", "timestamp"):
        m.add(type, PROFILES[type][0], 0.1)
    leaves = [f"{name}_{i}" for i in range(3)]
    setup = [m.create().replace(" WITH (autovacuum_enabled = off)", " PARTITION BY RANGE (id)")]
    bounds = [0, rows // 3, 2 * rows // 3, "MAXVALUE"]
    for i, leaf in enumerate(leaves):
        setup.append(f"CREATE TABLE {leaf} PARTITION OF {name} FOR VALUES FROM ({bounds[i]}) TO ({bounds[i + 1]}) "
                     "WITH (autovacuum_enabled = off)")
    setup.append(m.copy(0, rows))
    return m.table(setup, rows, imports=leaves)


def partly(rng, name, rows):
    """Of each type a column is in tablets and one is not; a column of a type that never is."""
    table = mixed(rng, name, rows, (0, 0.1))
    for column in table.columns[2::2]:
        column.imported = False
    place = Column("place", "pg_lsn", Range(), imported=False, value=lambda: f"{rng.randrange(9)}/{rng.randrange(10**6):X}", nulls=0.1)
    table.columns.append(place)
    table.setup.append(f"ALTER TABLE {name} ADD COLUMN place pg_lsn")
    table.setup.append(f"UPDATE {name} SET place = '3/A0'::pg_lsn + id WHERE id % 10 <> 3")
    table.setup.append(f"VACUUM (FULL) {name}")
    table.partly = True
    return table


def materialised(source, name):
    """A materialised view: another kind of relation that can be imported."""
    return Table(name, source.columns, [f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {source.name} WHERE id % 3 <> 1"],
                 source.rows)


def from_file(source, name):
    """A file of the rows of another table, in the server's data directory; one for each database."""
    columns = ", ".join(f"{c.name} {getattr(c, 'declared', c.type)}" for c in source.columns)
    copy = f"""DO $$ BEGIN
    EXECUTE format('COPY {source.name} TO %L (FORMAT csv, HEADER)', format('%s/{name}_%s.csv', current_setting('data_directory'), current_database()));
    EXECUTE format('CREATE FOREIGN TABLE {name} ({columns}) SERVER gpuvm OPTIONS (filename %L, format ''csv'', header ''true'', encoding ''UTF8'')',
                   format('{name}_%s.csv', current_database()));
END $$"""
    table = Table(name, source.columns, [copy], source.rows)
    table.foreign, table.typed = True, source.typed
    return table


def stored(source, name, rng=None):
    """A foreign table without a file, of the rows of another table as several statements leave them; rng: statements may change it."""
    columns = ", ".join(f"{c.name} {getattr(c, 'declared', c.type)}" for c in source.columns)
    setup = [f"CREATE FOREIGN TABLE {name} ({columns}) SERVER gpuvm OPTIONS (persist 'off')"]
    setup += [f"INSERT INTO {name} SELECT * FROM {source.name} WHERE id % 3 = {i}" for i in range(3)]
    setup += [f"UPDATE {name} SET id = id WHERE id % 10 = 4", f"DELETE FROM {name} WHERE id % 50 = 7"]
    table = Table(name, source.columns, setup, source.rows, rng=rng)
    table.foreign, table.typed = True, source.typed
    return table


MANY_TABLETS = "d_tablets"


def make_tables(seed, rows):
    """The suite's tables for a seed, in the order of creation."""
    def rng(name):
        return random.Random(f"{seed}:{name}")

    many = mixed(rng(MANY_TABLETS), MANY_TABLETS, rows * 8, (0, 0.1), ("small", "tame", "near", "even"), ("int4", "int8", "float8", "bool", "date"), each=1)
    many.many_tablets = True
    common = mixed(rng("d_common"), "d_common", rows, (0, 0.1), ("small", "tiny", "tame", "quarters", "near", "few", "even"))
    return [
        common,
        mixed(rng("d_random"), "d_random", rows, (0, 0, 0.1, 0.5)),
        mixed(rng("d_wild"), "d_wild", rows, (0, 0.1), ("full", "special", "skewed")),
        mixed(rng("d_nulls"), "d_nulls", max(rows // 2, 1), (0.5, 0.9, 1.0)),
        mixed(rng("d_wide"), "d_wide", max(rows // 4, 1), (0, 0.1), each=5),
        mixed(rng("d_empty"), "d_empty", 0, (0, 0.1), each=1),
        mixed(rng("d_one"), "d_one", 1, (0, 0.3), each=1),
        mixed(rng("d_constant"), "d_constant", rows, (0, 0.2), ("constant",), each=1),
        altered(rng("d_altered"), "d_altered", rows),
        partitioned(rng("d_parts"), "d_parts", rows),
        mixed(rng("d_dim"), "d_dim", 40, (0, 0.1), ("small", "tiny", "quarters", "few", "even"), each=1),
        many,
        materialised(common, "d_matview"),
        partly(rng("d_partly"), "d_partly", rows),
        from_file(common, "d_file"),
        stored(common, "d_stored", rng("d_stored")),
    ]
