"""Which engine gpuvm.device = auto takes of TPC-H's queries (at --scale), idle and under load.

Idle: each query on the CPU, on the GPU and by auto, in one session each, the median of --runs after two to warm up; what was expected of the engine that ran is held
against what it took. Load: pgbench, 1 to 64 sessions that ask the 22 queries at random, each for --seconds; queries that PostgreSQL ran, for want of memory, are counted.
"""
import collections
import json
import os
import re
import statistics
import subprocess
import tempfile

from workloads import tpch

SESSIONS = (1, 2, 4, 8, 16, 32, 64)
DEVICES = ("cpu", "cuda", "auto")
SMALL = "SELECT count(*), sum(s_acctbal) FROM supplier WHERE s_nationkey = 7"
IDLE, WITHIN_TWICE, LOADED = 0.95, 0.90, 0.95


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def explain(session, sql):
    """Milliseconds in all, and of the programs, in the engine: taken, and expected of the engine of the last one, or None."""
    shown = session.value(f"EXPLAIN (ANALYZE, TIMING ON, FORMAT JSON) {sql}")[0]
    shown = (json.loads(shown) if isinstance(shown, str) else shown)[0]
    programs = []
    for node in nodes(shown["Plan"]):
        if "Engine Time" in node:
            expected = re.findall(r"(\w+) ([0-9.]+) ms", node.get("Expected Time", ""))
            programs.append((node["Engine Time"], dict((k, float(v)) for k, v in expected), node["Device"].split(":")[0]))
    return shown["Execution Time"], programs


def idle(bench, queries):
    lines, near, expected = [], [], []
    sessions = {device: bench.session(f"gpuvm, {device}", device, require="vm") for device in DEVICES}
    for label, sql in queries.items():
        runs = {device: [explain(s, sql) for _ in range(2 + bench.options.runs)][2:] for device, s in sessions.items()}
        ms = {device: statistics.median(total for total, _ in of) for device, of in runs.items()}
        engine = {device: statistics.median(sum(p[0] for p in programs) for _, programs in of) for device, of in runs.items()}
        took = [(p[0], p[1][p[2]], p[2]) for _, programs in runs["auto"][-1:] for p in programs if p[1]]
        near.append(ms["auto"] <= 1.25 * min(ms["cpu"], ms["cuda"]))
        expected += [max(t, e) <= 2 * min(t, e) for t, e, _ in took]
        lines.append(f"| {label} | " + " | ".join(f"{ms[d]:.2f} ({engine[d]:.2f})" for d in DEVICES) +
                     f" | {ms['auto'] / min(ms['cpu'], ms['cuda']):.2f} | " + ", ".join(f"{d} {e:.2f}: {t:.2f}" for t, e, d in took) + " |")
    bench.tables.append("### TPC-H, idle: ms in all (in the engine)\n\n| query | cpu | cuda | auto | auto by the better | auto's programs: expected, took |\n"
                        "|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n")
    bench.bar("auto within 1.25 of the better engine, of TPC-H's queries", sum(near) / len(near), IDLE, "", least=True)
    if expected:
        bench.bar("what was expected within twice of what it took, of auto's programs", sum(expected) / len(expected), WITHIN_TWICE, "", least=True)


class PgBench:
    """pgbench with the scripts at random, for --seconds; every statement's time is kept."""

    def __init__(self, bench, scripts, device, sessions):
        bindir = subprocess.run(["pg_config", "--bindir"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
        settings = {"gpuvm.device": device, "gpuvm.force": "on", "jit": "off", "gpuvm.threads": bench.options.threads}
        env = dict(os.environ, PGOPTIONS=" ".join(f"-c {k}={v}" for k, v in settings.items()))
        files = [arg for path in scripts for arg in ("-f", path)]
        self.folder = tempfile.mkdtemp(dir=bench.out)
        self.process = subprocess.Popen(
            [os.path.join(bindir, "pgbench"), "-n", "-h", bench.options.host or bench.cluster.host, "-p", "5432", "-U", "postgres", *files, "-c", str(sessions), "-j",
             str(min(sessions, 8)), "-T", str(bench.options.seconds), "--random-seed=1", "-l", f"--log-prefix={self.folder}/log", "postgres"],
            text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rate(self):
        """Statements a second."""
        out, err = self.process.communicate()
        tps = re.search(r"^tps = ([0-9.]+)", out, re.M)
        if self.process.returncode != 0 or not tps:
            raise RuntimeError(f"pgbench failed: {out}{err}")
        return float(tps[1])

    def percentile(self, share):
        """Of the statements' times, in ms."""
        self.rate()
        times = sorted(int(line.split()[2]) / 1000 for name in os.listdir(self.folder) for line in open(os.path.join(self.folder, name), encoding="utf-8"))
        return times[min(len(times) - 1, int(len(times) * share))]


def fallbacks_so_far(bench):
    """By reason."""
    rows = bench.postgres.execute("SELECT counter, value FROM gpuvm.stats WHERE counter LIKE 'fallbacks:%' AND value > 0")
    return collections.Counter({counter: int(value) for counter, value in rows})


def script(bench, label, sql):
    path = os.path.join(bench.out, f"sessions-{label}.sql")
    with open(path, "w", encoding="utf-8") as f:
        f.write(sql.rstrip().rstrip(";") + ";\n")
    return path


def load(bench, queries):
    scripts = [script(bench, label, sql) for label, sql in queries.items()]
    rates, fallbacks = {}, {}
    for sessions in SESSIONS:
        for device in DEVICES:
            bench.progress(f"{sessions} sessions, {device}")
            before = fallbacks_so_far(bench)
            rates[device, sessions] = PgBench(bench, scripts, device, sessions).rate()
            reasons = fallbacks_so_far(bench) - before
            fallbacks[device, sessions] = reasons.total()
            if reasons:
                bench.progress(f"  by PostgreSQL: {dict(reasons)}")
    lines = [f"| {n} | " + " | ".join(f"{rates[d, n]:.0f}" + (f" ({fallbacks[d, n]} by PostgreSQL)" if fallbacks[d, n] else "") for d in DEVICES) + f" | {rates['auto', n] / max(rates['cpu', n], rates['cuda', n]):.2f} |" for n in SESSIONS]
    bench.tables.append(f"### TPC-H at scale {bench.options.scale:g}: queries a second\n\n| sessions | cpu | cuda | auto | auto by the better |\n|---|---|---|---|---|\n" +
                        "\n".join(lines) + "\n")
    bench.bar("auto by the better engine, least of all numbers of sessions", min(rates["auto", n] / max(rates["cpu", n], rates["cuda", n]) for n in SESSIONS), LOADED, "x", least=True)
    best = max(rates["auto", n] for n in SESSIONS)
    bench.bar("auto with 16, 32 and 64 sessions by its best number", min(rates["auto", n] for n in (16, 32, 64)) / best, LOADED, "x", least=True)


def beside(bench, queries):
    """Small statements beside eight sessions of all of them, and fifteen sessions beside a greedy one."""
    scripts = [script(bench, label, sql) for label, sql in queries.items()]
    small = [script(bench, "small", SMALL)]
    lines = []
    for what, mine, sessions, others, n, share in (("a small query", small, 1, scripts, 8, 0.99), ("Q6 in 15 sessions", [scripts[5]], 15, [scripts[17]], 1, 0.95)):
        bench.progress(f"{what} beside others")
        alone = PgBench(bench, mine, "auto", sessions).percentile(share)
        theirs = PgBench(bench, others, "auto", n)
        with_others = PgBench(bench, mine, "auto", sessions).percentile(share)
        theirs.rate()
        lines.append(f"| {what}: p{share * 100:.0f} | {alone:.2f} | {with_others:.2f} |")
        if sessions == 1:
            bench.bar("p99 of a small query beside 8 sessions of TPC-H", with_others, 1 if bench.options.device == "cuda" else 15)
        else:
            bench.bar("p95 of 15 sessions beside a greedy one, by that without", with_others / alone, 2, "x")
    bench.tables.append("### Beside others, ms\n\n| | alone | beside 8 sessions of all queries; one of Q18 |\n|---|---|---|\n" + "\n".join(lines) + "\n")


def run(bench):
    if not bench.gpuvm:
        return
    queries = tpch.queries_of(bench)
    tpch.load_all(bench, tpch.TABLES)
    idle(bench, queries)
    beside(bench, queries)
    load(bench, queries)
