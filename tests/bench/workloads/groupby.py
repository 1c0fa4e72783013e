"""GROUP BY with one to five million groups: three aggregates each."""

ROWS = 8_000_000
TABLE = "facts"
GROUPS = (1, 52, 10_000, 20_000, 100_000, 200_000, 1_000_000, 2_000_000, 5_000_000)
KEYS = {n: f"k{n}" for n in GROUPS}
COLUMNS = [("id", "int4")] + [(key, "int4") for key in KEYS.values()] + [("amount", "int4"), ("price", "float8")]
SEED_SQL = "SELECT setseed(0.25)"
PEERS = ("DuckDB",)
# Measured with the groups handed out, too.
RETURNED = (1, 52, 10_000, 1_000_000)
# Milliseconds on the GPU, wrapped in count(*).
BARS = {1: 0.35, 52: 0.4, 10_000: 0.8, 5_000_000: 5}


def create_sql(table=TABLE):
    return f"CREATE TABLE {table} ({', '.join(f'{name} {type} NOT NULL' for name, type in COLUMNS)})"


def load_sql(rows, table=TABLE):
    """Each key takes all of its values once, in scattered order (1000003 is prime), then random ones."""
    keys = ", ".join(f"CASE WHEN i <= {n} THEN i * 1000003::bigint % {n} ELSE floor(random() * {n}) END" for n in GROUPS)
    return (f"INSERT INTO {table} SELECT i, {keys}, floor(random() * 1000), random() * 100 FROM generate_series(1, {rows}) i")


def query(key):
    return f"SELECT {key}, count(*), sum(amount), avg(amount) FROM {TABLE} GROUP BY {key}"
