"""DBmbench (Shao, Ailamaki, Falsafi), as He et al. have it: a scan, a join and an index, each the essence of a larger workload.

Records of 100 bytes; a1 from 1 to 1.5 million at --scale 1, of which theirs has a tenth, a2 from 1 to 20,000, a3 from 1 to 50. t1.a1 is the
primary key, four rows of t2 on average refer to each, as TPC-H's lineitem does to orders; a2 has an index. 10% of t1 are scanned, 20% joined, 0.1% looked up.
"""
from workloads import generated, suite

KEYS = 1_500_000
OF_T2 = 4
PRIME = 1_000_003			# with which no number of keys has a divisor in common: a1 is every key once, in no order
A2, A3, PADDING = 20_000, 50, 88
LO = 10_000
SELECTIVITY = {"uSS": 0.1, "uNJ": 0.2, "uIDX": 0.001}
QUERIES = {
    "uSS": "SELECT DISTINCT a3 FROM t1 WHERE {lo} < a2 AND a2 < {hi} ORDER BY a3",
    "uNJ": "SELECT avg(t1.a3) FROM t1, t2 WHERE t1.a1 = t2.a1 AND {lo} < t1.a2 AND t1.a2 < {hi}",
    "uIDX": "SELECT avg(a3) FROM t1 WHERE {lo} < a2 AND a2 < {hi}",
}


def columns(a1, salt):
    return [("a1", "int", a1), ("a2", "int", f"1 + {generated.mixed(salt)} % {A2}"), ("a3", "int", f"1 + {generated.mixed(salt + 1)} % {A3}"),
            ("padding", f"char({PADDING})", "'row ' || CAST(i AS varchar)")]


def query(label):
    return QUERIES[label].format(lo=LO, hi=LO + round(A2 * SELECTIVITY[label]) + 1)


def index_duckdb(bench):
    for table, column in (("t1", "a1"), ("t1", "a2"), ("t2", "a1")):
        bench.duckdb.conn.execute(f"CREATE INDEX IF NOT EXISTS {table}_{column} ON {table} ({column})")


def run(bench):
    keys = round(KEYS * bench.options.scale)
    # t2 first: the new t1 must not be what an old t2 refers to.
    generated.load(bench, "t2", columns(f"1 + {generated.mixed(3)} % {keys}", 4), OF_T2 * keys)
    generated.load(bench, "t1", columns(f"1 + i * {PRIME} % {keys}", 1), keys)
    suite.indexes(bench, {"t1": "a1 int PRIMARY KEY", "t2": ""}, {"t1": ["a2"], "t2": ["a1"]})
    if bench.postgres.value("SELECT count(*) FROM pg_constraint WHERE conname = 't2_t1'")[0] == 0:
        bench.postgres.execute("ALTER TABLE t2 ADD CONSTRAINT t2_t1 FOREIGN KEY (a1) REFERENCES t1")
    if bench.duckdb:
        index_duckdb(bench)
    suite.run(bench, "dbmbench", "DBmbench", {label: query(label) for label in QUERIES})
