"""GROUP BY with few, many and very many groups: three aggregates each."""

ROWS = 8_000_000
TABLE = "facts"
COLUMNS = [("id", "int4"), ("k52", "int4"), ("k10k", "int4"), ("k1m", "int4"), ("amount", "int4"), ("price", "float8")]
SEED_SQL = "SELECT setseed(0.25)"
KEYS = {"52 values": "k52", "10,000 values": "k10k", "1,000,000 values": "k1m"}


def create_sql(table=TABLE):
    return f"CREATE TABLE {table} ({', '.join(f'{name} {type} NOT NULL' for name, type in COLUMNS)})"


def load_sql(rows, table=TABLE):
    return (f"INSERT INTO {table} SELECT i, floor(random() * 52), floor(random() * 10000), floor(random() * 1000000), "
            f"floor(random() * 1000), random() * 100 FROM generate_series(1, {rows}) i")


def query(key):
    return f"SELECT {key}, count(*), sum(amount), avg(amount) FROM {TABLE} GROUP BY {key}"
