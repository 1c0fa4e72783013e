"""What the workloads of data changes share: statements inside transactions that are rolled back, timed by turns."""
import statistics


def clean(bench, tables):
    """Dead rows go, and what changed is read again: what autovacuum and the refresher do."""
    for table in tables:
        bench.postgres.execute(f"VACUUM {table}")
        if bench.gpuvm:
            bench.postgres.execute(f"SELECT gpuvm.refresh('{table}')")


def undone(session, run):
    """What `run` gives; what it did is rolled back."""
    session.execute("BEGIN")
    try:
        return run()
    finally:
        session.execute("ROLLBACK")


def changed(session, sql, check):
    """Rows that the statement changed, and what `check` then gives, read by PostgreSQL."""
    def run():
        with session.conn.cursor() as cur:
            cur.execute(sql)
            rows = cur.rowcount
        if session.measures_gpuvm:
            session.execute("SET LOCAL gpuvm.require = 'any'")
            session.execute("SET LOCAL gpuvm.enabled = off")
        return rows, session.value(check)
    return undone(session, run)


def compare(bench, label, sql, check, tables):
    """gpuvm changed as many rows as PostgreSQL, and left the same table. The number of rows."""
    found = {}
    for session in (s for s in (bench.postgres, bench.gpuvm) if s):
        found[session] = changed(session, sql, check)
        clean(bench, tables)
    if bench.gpuvm:
        same = found[bench.postgres] == found[bench.gpuvm]
        bench.checks.append((label, "gpuvm", "equal" if same else f"DIFFERENT: {found[bench.gpuvm]}, PostgreSQL {found[bench.postgres]}"))
    return found[bench.postgres][0]


def by_turns(measures, rounds):
    """`measures` maps a name to a function that gives milliseconds: the median of each, and of every round's ratios to the last of them."""
    times = {name: [] for name in measures}
    for i in range(rounds + 1):
        for name, measure in measures.items() if i % 2 == 0 else reversed(measures.items()):
            times[name].append(measure())
    # the first round warms up
    times = {name: found[1:] for name, found in times.items()}
    last = times[list(measures)[-1]]
    ratios = {name: statistics.median(a / b for a, b in zip(found, last)) for name, found in times.items()}
    return {name: statistics.median(found) for name, found in times.items()}, ratios
