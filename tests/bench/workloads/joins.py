"""Joins: the grid paper's ten queries, theta and equality joins, a star, many sessions, and the paper's figures.

Each part can be asked for alone (--parts):

    paper       the ten queries over two tables of 3,500 rows, with all rows out and counted; figure 5 and table 1
    theta       100,000 x 100,000 rows, counted
    relations   theta joins of one to five relations
    equality    8 M x 8 M rows by a unique key in random order, count and sum
    star        60 M rows with three filtered dimensions, grouped by columns of two
    sessions    theta joins in eight sessions, small look-ups in eight others
    figures     figures 6 and 8: the ten queries and a join by the key over table sizes to 1 M x 1 M
    rows        figure 7: break-even over rows out

PostgreSQL may use all processes on tables of any size. A peer's query is given up after --peer-seconds. One
node of gpuvm must join all tables, or the query counts as not run. Answers are compared with PostgreSQL's and
DuckDB's, where those come to an end.
"""
import concurrent.futures

from engines import NotRun, TooSlow
from workloads import papers
from workloads.generated import mixed

PAPER_ROWS = 3500
# What a process of PostgreSQL looks at in a nested loop, and hardly more anywhere.
PAIRS_PER_SECOND = 3e7
# Milliseconds on the GPU; ratios over DuckDB.
BARS = {"paper": 0.5, "floor": 1.3, "theta": 5, "theta cpu": 15, "three": 10, "three over DuckDB": 100, "equality": 1, "equality cpu": 3, "star": 3}

# {0} is the paper's `test`, {1} its `test1`.
QUERIES = [
    "SELECT {0}.id, {1}.uniformi, {0}.normali5 FROM {0}, {1} WHERE {1}.uniformi > 60 AND {0}.normali5 < 0",
    "SELECT {0}.id, {1}.uniformf, {0}.normalf5 FROM {0}, {1} WHERE {1}.uniformf > 60.0 AND {0}.normalf5 < 0.0",
    "SELECT {0}.id, {0}.uniformi, {1}.uniformi FROM {0}, {1} WHERE ({0}.id - {1}.id) < 5 AND ({0}.id - {1}.id) > -5 "
    "AND {0}.uniformi > {1}.uniformi",
    "SELECT {0}.id, {0}.uniformf, {1}.uniformf FROM {0}, {1} WHERE ({0}.id - {1}.id) < 5 AND ({0}.id - {1}.id) > -5 "
    "AND {0}.uniformf > {1}.uniformf",
    "SELECT {0}.id, {1}.uniformi, {0}.normali20 FROM {0}, {1} WHERE ({1}.uniformi < {0}.normali20) "
    "AND ({0}.normali20 + 40) > ({1}.uniformi - 10)",
    "SELECT {0}.id, {1}.uniformf, {0}.normalf20 FROM {0}, {1} WHERE ({1}.uniformf < {0}.normalf20) "
    "AND ({0}.normalf20 + 40.0) > ({1}.uniformf - 10.0)",
    "SELECT {0}.id, {0}.normali5, {1}.normali20 FROM {0}, {1} WHERE {0}.normali5 = {1}.normali5 "
    "AND {0}.normali5 * {1}.normali20 >= -5 AND {0}.normali5 * {1}.normali20 <= 5",
    "SELECT {0}.id, {0}.normalf5, {1}.normalf20 FROM {0}, {1} WHERE {0}.normalf5 = {1}.normalf5 "
    "AND {0}.normalf5 * {1}.normalf20 >= -5.0 AND {0}.normalf5 * {1}.normalf20 <= 5.0",
    "SELECT {0}.id, {1}.uniformi, {0}.normali5, {0}.normali20 FROM {0}, {1} WHERE {1}.uniformi >= -1 AND {1}.uniformi <= 1 "
    "OR {0}.normali5 >= -1 AND {0}.normali5 <= 1 OR {0}.normali20 >= -1 AND {0}.normali20 <= 1",
    "SELECT {0}.id, {1}.uniformf, {0}.normalf5, {0}.normalf20 FROM {0}, {1} WHERE {1}.uniformf >= -1.0 AND {1}.uniformf <= 1.0 "
    "OR {0}.normalf5 >= -1.0 AND {0}.normalf5 <= 1.0 OR {0}.normalf20 >= -1.0 AND {0}.normalf20 <= 1.0",
]


def paper_query(number, tables=("join_test", "join_test1")):
    return QUERIES[number].format(*tables)


class Side:
    """One of the paper's two tables, for bench.load: the data set of papers.py with a seed of its own."""
    COLUMNS, PEERS = papers.COLUMNS, ("DuckDB",)
    create_sql, load_sql = staticmethod(papers.create_sql), staticmethod(papers.load_sql)

    def __init__(self, seed):
        self.SEED_SQL = f"SELECT setseed({seed})"


def load_paper(bench, rows, tables=("join_test", "join_test1")):
    for table, seed in zip(tables, (0.5, 0.25)):
        bench.load(Side(seed), rows, table)
        all_processes(bench, table)


def all_processes(bench, table):
    bench.postgres.execute(f"ALTER TABLE {table} SET (parallel_workers = {bench.options.threads})")


# -- generated tables: the same arithmetic in PostgreSQL and in DuckDB -------------------


def generated(bench, table, columns, rows, order="", sessions=1):
    """`columns`: (name, int4 expression of i) of rows 1 .. rows; in PostgreSQL by several sessions, where order does not matter."""
    bench.progress(f"generating {table}, {rows:,} rows")
    select = "SELECT " + ", ".join(f"CAST({e} AS int) AS {n}" for n, e in columns)
    p = bench.postgres
    what = f"{select} {rows} {order}"
    if p.value(f"SELECT obj_description(to_regclass('{table}'), 'pg_class')")[0] != what:
        p.execute(f"DROP TABLE IF EXISTS {table}")
        p.execute(f"CREATE TABLE {table} ({', '.join(f'{n} int NOT NULL' for n, _ in columns)})")
        shares = [(rows * s // sessions + 1, rows * (s + 1) // sessions) for s in range(sessions)]
        together(bench, [f"INSERT INTO {table} {select} FROM generate_series({a}::bigint, {b}) i {order}" for a, b in shares])
        p.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        quoted = what.replace("'", "''")
        p.execute(f"COMMENT ON TABLE {table} IS '{quoted}'")
    if bench.loaded.get(table) != what:
        if bench.duckdb:
            bench.duckdb.conn.execute(f"CREATE OR REPLACE TABLE {table} AS {select} FROM range(1, {rows + 1}) t(i) {order}")
        if bench.gpuvm:
            p.execute(f"SELECT gpuvm.import('{table}')")
        bench.loaded[table] = what
    all_processes(bench, table)


def together(bench, statements):
    """Each in a session of its own."""
    def one(sql):
        conn = bench.connect()
        with conn.cursor() as cur:
            cur.execute("SET work_mem = '1GB'")
            cur.execute(sql)
        conn.close()
    with concurrent.futures.ThreadPoolExecutor(len(statements)) as pool:
        list(pool.map(one, statements))


# -- measuring and checking ----------------------------------------------------------------


def engines(bench, pairs=0):
    """One process comes after all of them: what those do not end it is not asked for; nor is PostgreSQL, if so many pairs would take it too long."""
    peers = [bench.parallel, bench.postgres]
    if pairs > PAIRS_PER_SECOND * bench.options.peer_seconds * (bench.options.threads if bench.parallel else 1):
        peers = []
    return [e for e in (*peers, bench.duckdb, bench.gpuvm) if e]


def scaled(bench, rows):
    return max(20, int(rows * bench.options.scale))


def measure(bench, workload, label, sql, pairs=0, **extra):
    row = bench.measure(workload, label, sql, engines(bench, pairs), **extra)
    if bench.gpuvm and "gpuvm" not in row["ms"]:
        bench.checks.append((f"{workload}, {label}", "gpuvm", f"not run: {row['note'] or 'too slow'}"))
    return row


def values(engine, sql):
    return tuple(None if v is None else str(v) for v in engine.value(sql))


def check_value(bench, label, sql, row=None):
    """One row of integers: gpuvm's against that of each peer that comes to an end, and did when `row` was measured."""
    if not bench.gpuvm:
        return
    try:
        mine = values(bench.gpuvm, sql)
    except NotRun as e:
        bench.checks.append((label, "gpuvm", f"not run: {e}"))
        return
    compared = 0
    for peer in (bench.duckdb, bench.parallel or bench.postgres):
        try:
            if peer and (row is None or peer.name in row["ms"]):
                theirs = values(peer, sql)
                bench.checks.append((f"{label}, {peer.name}", "gpuvm", "equal" if mine == theirs else f"DIFFERENT: {mine}, not {theirs}"))
                compared += 1
        except TooSlow:
            pass
    if not compared:
        bench.tables.append(f"{label}: no peer came to an end to compare the answer with.\n")


def check_rows(bench, label, sql, columns):
    """All rows: a digest with PostgreSQL, where that comes to an end; count and sums with DuckDB."""
    reference = bench.parallel or bench.postgres
    try:
        try:
            theirs = reference.digest(sql)
            if bench.gpuvm:
                bench.checks.append((label, "gpuvm", "equal" if bench.gpuvm.digest(sql) == theirs else "DIFFERENT"))
        except TooSlow:
            reference = bench.gpuvm
        if bench.duckdb and reference:
            names = [f"c{i}" for i in range(columns)]
            sums = f"SELECT count(*){''.join(f', sum(CAST({n} AS double precision))' for n in names)} FROM ({sql}) q({', '.join(names)})"
            mine, ours = bench.duckdb.value(sums), reference.value(sums)
            same = all(abs(float(a or 0) - float(b or 0)) <= 1e-6 * max(1, abs(float(b or 0))) for a, b in zip(mine, ours))
            bench.checks.append((label, f"DuckDB, {reference.name}", "equal" if same else f"DIFFERENT: {mine}, {reference.name} {ours}"))
    except NotRun as e:
        bench.checks.append((label, "gpuvm", f"not run: {e}"))


def bar(bench, device, what, row, limit, over=None):
    """A time on that device, or a ratio over that peer."""
    if bench.options.device != device or "gpuvm" not in row["ms"]:
        return
    mine = row["ms"]["gpuvm"]
    if over is None:
        bench.bar(what, mine, limit)
    elif over in row["ms"]:
        bench.bar(f"{what}, over {over}", row["ms"][over] / mine, limit, "x", least=True)
    elif over in row.get("over", {}):
        least = row["over"][over] / mine
        if least >= limit:
            bench.bar(f"{what}, over {over}, at least", least, limit, "x", least=True)
        else:
            bench.tables.append(f"{what}: at least {least:.1f}x over {over}, which was stopped; the bar is {limit}x (--peer-seconds).\n")


# -- the paper's queries --------------------------------------------------------------------


def paper(bench):
    rows = scaled(bench, PAPER_ROWS)
    load_paper(bench, rows)
    for number in range(10):
        sql = paper_query(number)
        bench.progress(f"joins, paper's query {number}")
        check_rows(bench, f"joins, paper {number}", sql, bench.column_count(sql))
        full = measure(bench, "joins, paper", str(number), sql)
        if "rows" in full and "gpuvm" in full["ms"]:
            bench.floor(sql)
        counted = measure(bench, "joins, paper, count(*)", str(number), papers.counted(sql))
        bar(bench, "cuda", f"paper's query {number}, {rows:,} x {rows:,}, counted", counted, BARS["paper"])
        if bench.options.device == "cuda" and "constant rows" in full["ms"] and full["ms"]["constant rows"] > 0.01:
            bench.bar(f"paper's query {number}, all rows out, against as many constant rows, by turns "
                      f"(sessions: {', '.join(f'{r:.2f}' for r in full['against floor, sessions'])})", full["against floor"], BARS["floor"], "x")
            if bench.parallel:
                bar(bench, "cuda", f"paper's query {number}, all rows out", full, 1, bench.parallel.name)
    bench.table(f"joins: the paper's queries, {rows:,} x {rows:,} rows, all rows out (figure 5)", "joins, paper")
    bench.table(f"joins: the paper's queries, {rows:,} x {rows:,} rows, wrapped in count(*)", "joins, paper, count(*)")
    for form in ("joins, paper", "joins, paper, count(*)"):
        table_1(bench, form)


def table_1(bench, form):
    """Means by type; even queries compute with integers, odd ones with floats."""
    found = {int(r["query"]): r for r in bench.results if r["workload"] == form}
    names = [n for n in dict.fromkeys(n for r in found.values() for n in r["ms"]) if n != "constant rows"]
    lines = [f"### Table 1 of the grid paper, {'counted' if 'count' in form else 'all rows out'}: mean seconds\n", "| queries | " + " | ".join(names) + " |",
             "|" + "---|" * (len(names) + 1)]
    for kind, numbers in (("Integer", range(0, 10, 2)), ("Floating point", range(1, 10, 2)), ("All", range(10))):
        cells = []
        for n in names:
            ms = [found[k]["ms"].get(n) for k in numbers if k in found]
            cells.append("-" if None in ms or not ms else f"{sum(ms) / len(ms) / 1000:.6f}")
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    lines.append("\nThe paper (Core i7 920; GTX 460; GTX 760): integer 1.183, 0.673, 0.304; floating point 1.127, 0.561, 0.279; all 1.155, 0.617, 0.291.")
    bench.tables.append("\n".join(lines) + "\n")


# -- theta joins ------------------------------------------------------------------------------


def values_table(bench, table, rows, salt):
    generated(bench, table, [("id", "i"), ("x", f"{mixed(salt)} % 1000000"), ("y", f"{mixed(salt + 1)} % 1000000")], rows)


THETA = {
    "two inequalities": "SELECT count(*) FROM theta_a a, theta_b b WHERE a.x < b.x AND a.y > b.y",
    "one inequality": "SELECT count(*) FROM theta_a a, theta_b b WHERE a.x < b.x",
    "the paper's differences": "SELECT count(*) FROM theta_a a, theta_b b WHERE (a.x - b.x) < 5000 AND (a.x - b.x) > -5000 AND a.y > b.y",
    "a sum across both sides": "SELECT count(*), sum(a.x) FROM theta_a a, theta_b b WHERE a.x + b.y < a.y - b.x",
    "not equal": "SELECT count(*) FROM theta_a a, theta_b b WHERE a.x <> b.x AND a.y + 1 <> b.y",
}


def theta(bench):
    rows = scaled(bench, 100_000)
    for number, table in enumerate(("theta_a", "theta_b")):
        values_table(bench, table, rows, 10 + 4 * number)
    for label, sql in THETA.items():
        bench.progress(f"joins, theta: {label}")
        row = measure(bench, "joins, theta", label, sql, rows ** 2)
        check_value(bench, f"joins, theta: {label}", sql, row)
        if label == "one inequality":
            bar(bench, "cuda", f"theta join {rows:,} x {rows:,}", row, BARS["theta"])
            bar(bench, "cpu", f"theta join {rows:,} x {rows:,}", row, BARS["theta cpu"], "DuckDB")
    bench.table(f"joins: theta, {rows:,} x {rows:,} rows, counted", "joins, theta")


def chain(tables, condition):
    """FROM and WHERE of a chain in which each table is held against the one before it."""
    aliases = [f"t{i}" for i in range(len(tables))]
    joins = [condition.format(a, b) for a, b in zip(aliases, aliases[1:])]
    return ", ".join(f"{t} {a}" for t, a in zip(tables, aliases)) + (f" WHERE {' AND '.join(joins)}" if joins else f" WHERE {aliases[0]}.x > 500000")


def relations(bench):
    """The paper's open question: what does a further relation cost?"""
    rows = scaled(bench, 2000)
    names = [f"rel_{k}" for k in range(1, 6)]
    for k, name in enumerate(names):
        values_table(bench, name, rows, 40 + 2 * k)
    for k in range(1, 4):
        label = f"{k} relation{'s' * (k > 1)}"
        sql = f"SELECT count(*) FROM {chain(names[:k], '{0}.x < {1}.y')}"
        row = measure(bench, "joins, relations", label, sql, rows ** k / 2 if k > 1 else 0, relations=k)
        check_value(bench, f"joins, relations: {label}", sql, row)
        if k == 3:
            bar(bench, "cuda", f"theta join of three relations, {rows:,} rows each", row, BARS["three"])
            bar(bench, "cuda", f"theta join of three relations, {rows:,} rows each", row, BARS["three over DuckDB"], "DuckDB")
    bench.table(f"joins: chains of inequalities, {rows:,} rows each, half of all pairs match", "joins, relations")
    for k in range(1, 6):
        label = f"{k} relation{'s' * (k > 1)}"
        sql = f"SELECT count(*) FROM {chain(names[:k], '{0}.x < {1}.y AND {0}.x + 2000 > {1}.y')}"
        row = measure(bench, "joins, relations, restrictive", label, sql, relations=k)
        check_value(bench, f"joins, relations, restrictive: {label}", sql, row)
    bench.table(f"joins: chains of bands, {rows:,} rows each, two pairs in a thousand match", "joins, relations, restrictive")
    points = scaled(bench, 2000) ** 3
    for k in range(2, 6):
        size = round(points ** (1 / k))
        tables = [f"points_{k}_{j}" for j in range(k)]
        for j, table in enumerate(tables):
            values_table(bench, table, size, 60 + 10 * k + 2 * j)
        sql = f"SELECT count(*) FROM {chain(tables, '{0}.x < {1}.y')}"
        row = measure(bench, "joins, relations, points", f"{k} relations of {size:,} rows", sql, points / 2 ** (k - 2), relations=k)
        check_value(bench, f"joins, relations, points: {k}", sql, row)
    bench.table(f"joins: chains of inequalities over as many points, {points:.2g}", "joins, relations, points")


# -- equality joins ------------------------------------------------------------------------------


def equality(bench):
    rows = scaled(bench, 8_000_000)
    generated(bench, "keys_sorted", [("id", "i"), ("v", f"{mixed(3)} % 1000")], rows)
    generated(bench, "keys_random", [("id", "i"), ("v", f"{mixed(4)} % 1000")], rows, order=f"ORDER BY {mixed(5)}, i")
    for label, sql in (("count and sum", "SELECT count(*), sum(r.v) FROM keys_sorted s JOIN keys_random r ON r.id = s.id"),
                       ("count and sums of both sides", "SELECT count(*), sum(r.v), sum(s.v) FROM keys_random r JOIN keys_sorted s ON r.id = s.id"),
                       ("a tenth of one side", "SELECT count(*), sum(s.v) FROM keys_random r JOIN keys_sorted s ON r.id = s.id WHERE r.v < 100"),
                       ("left join, count of partners", "SELECT count(*), count(r.id), sum(r.v) FROM keys_sorted s LEFT JOIN keys_random r ON r.id = s.id AND r.v < 500"),
                       ("EXISTS", "SELECT count(*), sum(s.v) FROM keys_sorted s WHERE EXISTS (SELECT 1 FROM keys_random r WHERE r.id = s.id AND r.v < 500)")):
        bench.progress(f"joins, equality: {label}")
        row = measure(bench, "joins, equality", label, sql)
        check_value(bench, f"joins, equality: {label}", sql, row)
        if label == "count and sum":
            bar(bench, "cuda", f"equality join {rows:,} x {rows:,}", row, BARS["equality"])
            bar(bench, "cpu", f"equality join {rows:,} x {rows:,}", row, BARS["equality cpu"], "DuckDB")
    bench.table(f"joins: equality, {rows:,} x {rows:,} rows, a unique int4 key, one side in random order", "joins, equality")


# -- a star ---------------------------------------------------------------------------------------

STAR = ("SELECT c.nation, d.year, count(*), sum(f.revenue) FROM star_facts f JOIN star_customers c ON f.customer = c.id "
        "JOIN star_suppliers s ON f.supplier = s.id JOIN star_dates d ON f.day = d.id "
        "WHERE c.region = 1 AND s.region = 2 AND d.year BETWEEN 1994 AND 1996 GROUP BY c.nation, d.year")


def star(bench):
    rows = scaled(bench, 60_000_000)
    customers, suppliers, dates = 300_000, 20_000, 7 * 365
    for table, n, salt in (("star_customers", customers, 21), ("star_suppliers", suppliers, 22)):
        generated(bench, table, [("id", "i"), ("nation", f"{mixed(salt)} % 25"), ("region", f"{mixed(salt)} % 5")], n)
    generated(bench, "star_dates", [("id", "i"), ("year", "1992 + (i - 1 - (i - 1) % 365) / 365")], dates)
    generated(bench, "star_facts", [("customer", f"{mixed(31)} % {customers} + 1"), ("supplier", f"{mixed(32)} % {suppliers} + 1"),
                                    ("day", f"{mixed(33)} % {dates} + 1"), ("revenue", f"{mixed(34)} % 10000")], rows, sessions=bench.options.threads)
    bench.progress("joins, star")
    check_rows(bench, "joins, star", STAR, 4)
    row = measure(bench, "joins, star", "three filtered dimensions, two grouped by", STAR)
    bar(bench, "cuda", f"star of {rows:,} rows", row, BARS["star"])
    two = STAR.replace("JOIN star_suppliers s ON f.supplier = s.id ", "").replace("AND s.region = 2 ", "")
    check_rows(bench, "joins, star, two dimensions", two, 4)
    measure(bench, "joins, star", "two filtered dimensions, both grouped by", two)
    bench.table(f"joins: a star of {rows:,} rows; customers {customers:,}, suppliers {suppliers:,}, dates {dates:,}", "joins, star")


def sessions(bench):
    from workloads import join_sessions
    join_sessions.run(bench)


def figures(bench):
    from workloads import join_figures
    join_figures.restrictive(bench)
    join_figures.sizes(bench)


def rows_out(bench):
    from workloads import join_figures
    join_figures.rows_out(bench)


PARTS = {"paper": paper, "theta": theta, "relations": relations, "equality": equality, "star": star, "sessions": sessions, "figures": figures,
         "rows": rows_out}


def run(bench):
    if bench.gpuvm:
        bench.gpuvm.joins = True
        bench.gpuvm.limit = 3 * bench.options.peer_seconds
    for peer in (bench.postgres, bench.parallel, bench.duckdb):
        if peer:
            peer.limit = bench.options.peer_seconds
    try:
        for name in bench.options.parts.split(","):
            PARTS[name](bench)
    finally:
        if bench.gpuvm:
            bench.gpuvm.joins, bench.gpuvm.limit = False, None
        for peer in (bench.postgres, bench.parallel, bench.duckdb):
            if peer:
                peer.limit = None
