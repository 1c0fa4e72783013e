"""Sixteen sessions, each running the thirteen queries, against one.

Throughput is pgbench's, of EXPLAIN (ANALYZE, TIMING OFF), so that no client
receives rows; gpuvm.require makes a query fail that leaves the device. Answers
are digests of all rows, made by all sessions at the same time.
"""
import os
import re
import subprocess
import threading

from workloads import papers

SESSIONS = 16
ROUNDS = 2
SECONDS = 8
BAR = 0.8


def run(bench):
    if not bench.gpuvm:
        return
    rows = bench.options.rows or papers.ROWS
    bench.load(papers, rows)
    answers(bench)
    for form, queries in (("rows returned", papers.QUERIES), ("counted", [papers.counted(q) for q in papers.QUERIES[:10]] + papers.QUERIES[10:])):
        bench.progress(f"concurrency, {form}")
        script = os.path.join(bench.out, "concurrency.sql")
        with open(script, "w", encoding="utf-8") as f:
            f.writelines(f"EXPLAIN (ANALYZE, TIMING OFF) {q};\n" for q in queries)
        one, many = pgbench(bench, script, 1), pgbench(bench, script, SESSIONS)
        bench.results.append(dict(workload="concurrency", query=form, sql="", figures={}, note="", device=bench.options.device, rows=0,
                                  ms={"1 session": 1000 / one, f"{SESSIONS} sessions": 1000 / many}))
        bench.tables.append(f"### {SESSIONS} sessions, each running the 13 queries, {form}\n\n"
                            f"1 session: {one * 13:.1f} queries/s; {SESSIONS} sessions: {many * 13:.1f} queries/s; ratio {many / one:.2f}.\n")
        if bench.options.device == "cuda":
            bench.bar(f"{SESSIONS} sessions, {form}: throughput against one", many / one, BAR, "x", least=True)


def pgbench(bench, script, sessions):
    """Scripts a second."""
    bindir = subprocess.run(["pg_config", "--bindir"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    settings = {"gpuvm.device": bench.options.device, "gpuvm.require": bench.options.device, "gpuvm.force": "on", "jit": "off",
                "gpuvm.threads": bench.options.threads}
    host = bench.options.host or bench.cluster.host
    env = dict(os.environ, PGOPTIONS=" ".join(f"-c {k}={v}" for k, v in settings.items()))
    done = subprocess.run([os.path.join(bindir, "pgbench"), "-n", "-h", host, "-p", "5432", "-U", "postgres", "-f", script, "-c", str(sessions),
                           "-j", str(min(sessions, 8)), "-T", str(SECONDS), "postgres"], text=True, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    tps = re.search(r"^tps = ([0-9.]+)", done.stdout, re.M)
    if done.returncode != 0 or not tps:
        raise RuntimeError(f"pgbench with {sessions} sessions failed: {done.stdout}{done.stderr}")
    return float(tps[1])


def answer(session, number, sql):
    """A digest over all rows; a float sum's own bits."""
    return session.value(sql) if number in papers.FLOAT_SUMS else session.digest(sql)


def answers(bench):
    """Every session's answers are PostgreSQL's, float sums those of a session alone."""
    bench.progress(f"concurrency, answers of {SESSIONS} sessions")
    texts = dict(enumerate(papers.QUERIES, 1))
    right = {n: answer(bench.gpuvm if n in papers.FLOAT_SUMS else bench.postgres, n, sql) for n, sql in texts.items()}
    wrong, failed = [], []

    def session(index):
        try:
            mine = bench.session(f"gpuvm {index}")
            for _ in range(ROUNDS):
                for n in sorted(texts, key=lambda n: (n + index) % len(texts)):
                    if answer(mine, n, texts[n]) != right[n]:
                        wrong.append(n)
            mine.conn.close()
        except Exception as e:  # a thread's exception would vanish
            failed.append(str(e))

    threads = [threading.Thread(target=session, args=(i,)) for i in range(SESSIONS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    label = f"{SESSIONS} sessions at once, {ROUNDS} x 13 queries each"
    outcome = f"DIFFERENT: queries {sorted(set(wrong))}" if wrong else f"not run: {failed[0]}" if failed else "equal"
    bench.checks.append((label, "gpuvm", outcome))
