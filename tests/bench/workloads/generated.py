"""Tables of any type, made by the same arithmetic in PostgreSQL and in DuckDB."""


def mixed(salt):
    """A number below 2^31 - 1 that looks random, of the row's number i."""
    term = f"(i * {2 * salt + 1103515245} % 2147483647 + {7919 * salt})"
    return f"({term} * {term} % 2147483647)"


def load(bench, table, columns, rows):
    """`columns`: (name, type, expression of i); rows 1 .. rows, in every engine, imported."""
    bench.progress(f"generating {table}, {rows:,} rows")
    select = "SELECT " + ", ".join(f"CAST({e} AS {t}) AS {n}" for n, t, e in columns)
    what = f"{select} {rows}"
    p = bench.postgres
    if p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what:
        p.execute(f"DROP TABLE IF EXISTS {table}")
        p.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {t} NOT NULL' for n, t, _ in columns)})")
        p.execute(f"INSERT INTO {table} {select} FROM generate_series(1::bigint, {rows}) i")
        p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        quoted = what.replace("'", "''")
        p.execute(f"COMMENT ON TABLE {table} IS '{quoted}'")
    p.execute(f"ALTER TABLE {table} SET (parallel_workers = {bench.options.threads})")
    if bench.loaded.get(table) != what:
        if bench.duckdb:
            bench.duckdb.conn.execute(f"CREATE OR REPLACE TABLE {table} AS {select} FROM range(1, {rows + 1}) t(i)")
        if bench.gpuvm:
            p.execute(f"SELECT gpuvm.import('{table}')")
        bench.loaded[table] = what


def engines(bench):
    return [e for e in (bench.postgres, bench.parallel, bench.duckdb, bench.gpuvm) if e]
