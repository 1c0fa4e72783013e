"""The data set and the thirteen queries of Bakkum and Skadron's paper on Sphyraena.

One uniform and two normal columns (sigma 5 and 20) as int4, and again as
float4. `NOT x` on a number, which SQLite allows, is `x = 0`.
"""

ROWS = 8_000_000
TABLE = "test"
COLUMNS = [("id", "int4"), ("uniformi", "int4"), ("normali5", "int4"), ("normali20", "int4"),
           ("uniformf", "float4"), ("normalf5", "float4"), ("normalf20", "float4")]


def create_sql(table=TABLE):
    return f"CREATE TABLE {table} ({', '.join(f'{name} {type} NOT NULL' for name, type in COLUMNS)})"


def load_sql(rows, table=TABLE):
    """Reproducible: setseed in the same session first. 1 - random() is never 0."""
    normal = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())"
    return (f"INSERT INTO {table} SELECT i, floor(random() * 199) - 99, round(5 * {normal}), round(20 * {normal}), "
            f"random() * 198 - 99, 5 * {normal}, 20 * {normal} FROM generate_series(1, {rows}) i")


SEED_SQL = "SELECT setseed(0.5)"

# Queries whose answer is one float sum, compared by the documented rule: number -> column.
FLOAT_SUMS = {11: "normalf20"}

QUERIES = [
    "SELECT id, uniformi, normali5 FROM test WHERE uniformi > 60 AND normali5 < 0",
    "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > 60 AND normalf5 < 0",
    "SELECT id, uniformi, normali5 FROM test WHERE uniformi > -60 AND normali5 < 5",
    "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > -60 AND normalf5 < 5",
    "SELECT id, normali5, normali20 FROM test WHERE (normali20 + 40) > (uniformi - 10)",
    "SELECT id, normalf5, normalf20 FROM test WHERE (normalf20 + 40) > (uniformf - 10)",
    "SELECT id, normali5, normali20 FROM test WHERE normali5 * normali20 BETWEEN -5 AND 5",
    "SELECT id, normalf5, normalf20 FROM test WHERE normalf5 * normalf20 BETWEEN -5 AND 5",
    "SELECT id, uniformi, normali5, normali20 FROM test WHERE uniformi = 0 OR normali5 = 0 OR normali20 = 0",
    "SELECT id, uniformf, normalf5, normalf20 FROM test WHERE uniformf = 0 OR normalf5 = 0 OR normalf20 = 0",
    "SELECT sum(normalf20) FROM test",
    "SELECT avg(uniformi) FROM test WHERE uniformi > 0",
    "SELECT max(normali5), min(normali5) FROM test",
]


def counted(sql):
    """The same, wrapped in count(*): what the filter costs without handing out rows."""
    return f"SELECT count(*) FROM ({sql}) q"
