"""The queries of He et al., Relational Query Coprocessing on Graphics Processors: SEL, AGG, ORD, GRP, filters by type as in
their figure 12, and arithmetic of growing length as in their figure 13, here of numerics, too."""
from workloads import generated
from workloads.papers import counted

ROWS = 16_000_000
TABLE = "r"
COLUMNS = [("a1", "int", generated.mixed(1)), ("a2", "int", f"{generated.mixed(2)} % 10000"), ("small", "int", f"{generated.mixed(3)} % 1000"),
           ("real", "real", f"{generated.mixed(4)} % 100000 * 0.125"), ("double", "double precision", f"{generated.mixed(5)} % 100000 * 0.125"),
           ("day", "date", f"DATE '1990-01-01' + CAST({generated.mixed(6)} % 10000 AS int)"), ("amount", "decimal(12,2)", f"{generated.mixed(7)} % 1000000 * 0.01"),
           ("name", "varchar(20)", f"'name' || CAST({generated.mixed(8)} % 10000 AS varchar)")]
LO = 1_000_000_000
# About 1% of the rows, but for SEL.
QUERIES = {
    "SEL, point": f"SELECT a1 FROM r WHERE a1 >= {LO} AND a1 <= {LO}",
    "SEL, range": f"SELECT a1 FROM r WHERE a1 >= {LO} AND a1 <= {LO + 10}",
    "AGG": "SELECT max(a1) FROM r",
    "ORD": f"SELECT a2 FROM r WHERE a1 >= {LO} AND a1 <= {LO + 21_474_836} ORDER BY a1",
    "GRP": "SELECT max(a1) FROM r GROUP BY a2",
}
FILTERS = {
    "int": "small >= 500 AND small < 510", "real": "\"real\" >= 1000 AND \"real\" < 1125", "double": "double >= 1000 AND double < 1125",
    "date": "day >= DATE '2001-01-01' AND day < DATE '2001-04-11'", "numeric": "amount >= 5000.00 AND amount < 5100.00",
    "string, =": "name = 'name4711'", "string, IN": "name IN ('name1', 'name22', 'name333', 'name4444')", "string, range": "name >= 'name50' AND name < 'name51'", "string, LIKE": "name LIKE '%me%77%'",
}
# One round of arithmetic, of a value that it keeps small. DuckDB's int / int is not whole, and a numeric's division not exact: there is none.
ARITHMETIC = {"int": ("small", "({} * 3 % 1009 + 5)", 3), "double": ("double", "({} * 3 / 4 + 5)", 3), "numeric": ("amount", "({} + 17.25 - 4.75)", 2)}
ROUNDS = (1, 2, 4, 8, 16)


def arithmetic(kind, rounds):
    column, form, _ = ARITHMETIC[kind]
    sql = column
    for _ in range(rounds):
        sql = form.format(sql)
    return f"SELECT max({sql}) FROM r"


def run(bench):
    rows = bench.options.rows or ROWS
    generated.load(bench, TABLE, [(f'"{n}"' if n == "real" else n, t, e) for n, t, e in COLUMNS], rows)
    engines, duckdb = generated.engines(bench), [bench.duckdb]
    for label, sql in QUERIES.items():
        bench.progress(f"He et al., {label}")
        bench.check(f"He et al., {label}", sql, others=duckdb)
        bench.measure("relational", label, sql, engines)
    bench.table(f"He et al., {rows:,} rows", "relational")
    for label, condition in FILTERS.items():
        sql = f"SELECT a1 FROM r WHERE {condition}"
        bench.progress(f"He et al., filter of {label}")
        bench.check(f"He et al., filter of {label}", sql, others=duckdb)
        bench.measure("relational filters", label, counted(sql), engines)
    bench.table(f"He et al., figure 12: filters by type, {rows:,} rows, counted", "relational filters")
    for kind, (_, _, operations) in ARITHMETIC.items():
        for rounds in ROUNDS:
            sql = arithmetic(kind, rounds)
            bench.progress(f"He et al., arithmetic of {kind}, {rounds * operations} operations")
            bench.check(f"He et al., {kind}, {rounds * operations} operations", sql, others=duckdb)
            bench.measure("relational arithmetic", f"{kind}, {rounds * operations} operations", sql, engines, operations=rounds * operations)
    bench.table(f"He et al., figure 13: arithmetic, {rows:,} rows", "relational arithmetic")
