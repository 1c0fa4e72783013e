"""Theta joins in eight sessions, small look-ups in eight others: how long do the small ones wait?

Both are run by pgbench; gpuvm.require makes a query fail that leaves the device. The look-ups' latencies are
those that pgbench logs, one by one, planning and the way to the client included.
"""
import glob
import os
import re
import subprocess

from workloads import joins

SESSIONS = 8
SECONDS = 10
BAR = 5
SMALL_ROWS = 10_000
THETA = joins.THETA["two inequalities"]
SMALL = "SELECT count(*), sum(y) FROM lookups WHERE id = :id"


def run(bench):
    if not bench.gpuvm:
        return
    rows = joins.scaled(bench, 100_000)
    for number, table in enumerate(("theta_a", "theta_b")):
        joins.values_table(bench, table, rows, 10 + 4 * number)
    joins.values_table(bench, "lookups", SMALL_ROWS, 90)
    small = write(bench, "small", f"\\set id random(1, {SMALL_ROWS})\n{SMALL};\n")
    theta = write(bench, "theta", f"{THETA};\n")
    joins.check_value(bench, "joins, sessions: a look-up", SMALL.replace(":id", "77"))
    seconds = min(SECONDS, max(2, SECONDS * bench.options.scale))
    found = {}
    for label, beside in (("look-ups alone", False), ("look-ups beside theta joins", True)):
        bench.progress(f"joins, sessions: {label}")
        joining = start(bench, theta, seconds + 2) if beside else None
        looking = start(bench, small, seconds, log=os.path.join(bench.out, "small"))
        found[label] = latencies(finish(looking), os.path.join(bench.out, "small"))
        if joining:
            found["theta joins"] = float(re.search(r"^tps = ([0-9.]+)", finish(joining), re.M)[1])
    lines = [f"### {SESSIONS} sessions with theta joins of {rows:,} x {rows:,} rows, {SESSIONS} with look-ups in {SMALL_ROWS:,}; ms at the client\n",
             "| what | look-ups/s | p50 | p90 | p99 | p99.9 | slowest |", "|---|---|---|---|---|---|---|"]
    for label in ("look-ups alone", "look-ups beside theta joins"):
        ms = found[label]
        at = {p: ms[min(len(ms) - 1, int(len(ms) * p / 100))] for p in (50, 90, 99, 99.9)}
        lines.append(f"| {label} | {len(ms) / seconds:,.0f} | " + " | ".join(f"{v:.2f}" for v in at.values()) + f" | {ms[-1]:.2f} |")
        bench.results.append(dict(workload="joins, sessions", query=label, sql=SMALL, figures={}, device=bench.options.device, note="", rows=1,
                                  ms={"p50": at[50], "p90": at[90], "p99": at[99], "slowest": ms[-1]}))
    lines.append(f"\n{found['theta joins']:.2f} theta joins/s in {SESSIONS} sessions meanwhile.")
    bench.tables.append("\n".join(lines) + "\n")
    bench.tabled.add("joins, sessions")
    bench.bar("16 sessions, look-ups beside theta joins, p99", bench.results[-1]["ms"]["p99"], BAR)


def write(bench, name, text):
    path = os.path.join(bench.out, f"{name}.sql")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def start(bench, script, seconds, log=None):
    bindir = subprocess.run(["pg_config", "--bindir"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    settings = {"gpuvm.device": bench.options.device, "gpuvm.require": bench.options.device, "gpuvm.force": "on", "jit": "off",
                "max_parallel_workers_per_gather": 0}
    env = dict(os.environ, PGOPTIONS=" ".join(f"-c {k}={v}" for k, v in settings.items()))
    command = [os.path.join(bindir, "pgbench"), "-n", "-h", bench.options.host or bench.cluster.host, "-p", "5432", "-U", "postgres", "-f", script,
               "-c", str(SESSIONS), "-j", str(SESSIONS), "-T", str(int(seconds)), "-M", "prepared", "postgres"]
    if log:
        for old in glob.glob(f"{log}.*"):
            if not old.endswith(".sql"):
                os.remove(old)
        command[1:1] = ["-l", f"--log-prefix={log}"]
    return subprocess.Popen(command, text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    out, err = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"pgbench failed: {out}{err}")
    return out


def latencies(_, log):
    """In ms, sorted; the third column of pgbench's log, in microseconds. The first tenth is warming up."""
    found = []
    for path in glob.glob(f"{log}.*"):
        if path.endswith(".sql"):
            continue
        with open(path, encoding="utf-8") as f:
            found += [(float(fields[4]) + float(fields[5]) / 1e6, int(fields[2]) / 1000) for fields in map(str.split, f)]
        os.remove(path)
    found.sort()
    return sorted(ms for _, ms in found[len(found) // 10:])
