"""Tables of any type, made by the same arithmetic in PostgreSQL and in DuckDB."""
import hashlib


def mixed(salt):
    """A number below 2^31 - 1 that looks random, of the row's number i."""
    term = f"(i * {2 * salt + 1103515245} % 2147483647 + {7919 * salt})"
    return f"({term} * {term} % 2147483647)"


def load(bench, table, columns, rows, steps=()):
    """`columns`: (name, type, expression of i); rows 1 .. rows, in every engine, imported. `steps`: lists of (name, expression) of i
    and of names of the lists before, which columns may use."""
    bench.progress(f"generating {table}, {rows:,} rows")
    select = "SELECT " + ", ".join(f"CAST({e} AS {t}) AS {n}" for n, t, e in columns)
    numbers = "{}"
    for step in steps:
        # OFFSET: or PostgreSQL puts each expression where its name is used.
        numbers = f"(SELECT *, {', '.join(f'{e} AS {n}' for n, e in step)} FROM {numbers} OFFSET 0) step"
    what = hashlib.sha256(f"{select} {numbers} {rows}".encode()).hexdigest()
    p = bench.postgres
    if p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what:
        p.execute(f"DROP TABLE IF EXISTS {table}")
        p.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {t} NOT NULL' for n, t, _ in columns)})")
        p.execute(f"INSERT INTO {table} {select} FROM {numbers.format(f'generate_series(1::bigint, {rows}) i')}")
        p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        p.execute(f"COMMENT ON TABLE {table} IS '{what}'")
    p.execute(f"ALTER TABLE {table} SET (parallel_workers = {bench.options.threads})")
    if bench.loaded.get(table) != what:
        if bench.duckdb:
            bench.duckdb.conn.execute(f"CREATE OR REPLACE TABLE {table} AS {select} FROM {numbers.format(f'range(1, {rows + 1}) t(i)')}")
        if bench.gpuvm:
            p.execute(f"SELECT gpuvm.import('{table}')")
        bench.loaded[table] = what


def engines(bench):
    return [e for e in (bench.postgres, bench.parallel, bench.duckdb, bench.gpuvm) if e]
