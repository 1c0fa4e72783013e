"""TPC-H's 22 queries at --scale on a GPU with less and less memory (gpuvm.device_memory): how long, where they ran, and why not on the GPU.

Each limit has a gpuvmd of its own, as it is read when gpuvmd starts. Queries are forced to gpuvm and meant for --device, but may run on the CPU. Answers are
those without a limit.
"""
import os
import signal
import statistics
import time

import workload
from engines import NotRun, plan_nodes
from workloads import suite, tpch

LIMITS = {"no limit": None, "4 GB": "4GB", "1.5 GB": "1536MB"}
PID = "SELECT substring(detail FROM 'PID ([0-9]+)') FROM gpuvm.status() WHERE backend = 'cpu'"


def begin(bench, limit):
    """A new gpuvmd, whose device has that much memory."""
    p = bench.postgres
    p.execute(f"ALTER SYSTEM SET gpuvm.device_memory = '{limit}'" if limit else "ALTER SYSTEM RESET gpuvm.device_memory")
    p.execute("SELECT pg_reload_conf()")
    time.sleep(1)
    pid = p.value(PID)[0]
    os.kill(int(pid), signal.SIGTERM)
    deadline = time.monotonic() + 60
    while p.value(PID)[0] in (pid, None) and time.monotonic() < deadline:
        time.sleep(0.2)
    bench.wait_for_device(bench.session("admin", require="any"))


def programs(plan):
    return [n for n in plan_nodes(plan) if n.get("Custom Plan Provider") == "GpuVM" and n["Actual Loops"] > 0]


def ask(bench, session, sql):
    """(ms, where, why not on the device), the first execution left out."""
    plans = [session.explain(sql) for _ in range(bench.options.runs + 1)][1:]
    nodes = programs(plans[-1]["Plan"])
    where = ", ".join(sorted({str(n.get("Device", "?")) for n in nodes})) or "none"
    passes = max((int(n.get("Passes", 1)) for n in nodes), default=1)
    why = "; ".join(dict.fromkeys(str(n[key]) for n in nodes for key in ("Fallback", "Device Fallback") if key in n))
    return statistics.median(plan["Execution Time"] for plan in plans), where + (f", {passes} passes" if passes > 1 else ""), why


def run(bench):
    queries = tpch.queries_of(bench)
    if bench.options.queries:
        queries = {label: queries[label] for label in bench.options.queries.split(",")}
    tpch.load_all(bench, tpch.TABLES)
    suite.indexes(bench, tpch.TABLES, workload.TPCH_INDEXES)
    found, answers, totals = {}, {}, {}
    for name, limit in LIMITS.items():
        begin(bench, limit)
        session = bench.session("gpuvm", require="any")
        session.limit = bench.options.peer_seconds
        for label, sql in queries.items():
            bench.progress(f"device memory, {name}, {label}")
            try:
                found[label, name] = ask(bench, session, sql)
                answer = sorted(session.execute(sql), key=str)
            except NotRun as e:
                found[label, name] = (float("nan"), "not run", str(e))
                continue
            same = answer == answers.setdefault(label, answer)
            bench.checks.append((f"device memory, {label}", name, "equal" if same else "DIFFERENT from that without a limit"))
        totals[name] = sum(ms for (_, of), (ms, _, _) in found.items() if of == name and ms == ms)
    begin(bench, None)
    lines = [f"### TPC-H at scale {bench.options.scale:g} by the GPU's memory: ms, and where\n",
             "| query |" + "".join(f" {name} | |" for name in LIMITS) + " why not on the GPU |", "|---|" + "---|---|" * len(LIMITS) + "---|"]
    for label in queries:
        cells = "".join(f" {found[label, name][0]:.1f} | {found[label, name][1]} |" for name in LIMITS)
        why = "; ".join(f"{name}: {found[label, name][2]}" for name in LIMITS if found[label, name][2])
        lines.append(f"| {label} |{cells} {why} |")
    lines.append("| all |" + "".join(f" {totals[name]:.0f} | |" for name in LIMITS) + " |")
    bench.tables.append("\n".join(lines) + "\n")
