#!/usr/bin/env python3
"""Plots of a benchmark's results.json; does nothing where matplotlib is not.

    build/venv/bin/python tests/bench/plots.py FOLDER-OF-RESULTS FOLDER-FOR-PLOTS
"""
import json
import math
import os
import sys

DPI = 110


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def legend(ax):
    """Above the plot, where no bar or curve is."""
    ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)


class Plotter:
    def __init__(self, plt, results, folder):
        self.plt, self.results, self.folder = plt, results, folder

    def of(self, workload):
        return [r for r in self.results if r["workload"] == workload]

    def save(self, fig, name):
        fig.savefig(os.path.join(self.folder, name), dpi=DPI, bbox_inches="tight")
        self.plt.close(fig)

    def bars(self, groups, series, name, level=None, **axes):
        """`series` maps a label to a value for each group; with `level` a bar begins there, above it or below."""
        fig, ax = self.plt.subplots(figsize=(max(9, 0.6 * len(groups)), 4))
        width = 0.8 / max(1, len(series))
        for i, (label, values) in enumerate(series.items()):
            ax.bar([x + i * width for x in range(len(groups))], values if level is None else [v - level for v in values], bottom=level or 0, width=width,
                   label=label, align="edge")
        if level is not None:
            ax.axhline(level, color="black", linewidth=0.5)
        ax.set_xticks([x + 0.4 for x in range(len(groups))], groups)
        ax.set(**axes)
        legend(ax)
        self.save(fig, name)

    def speedups(self, workload, name):
        rows = [r for r in self.of(workload) if "gpuvm" in r["ms"]]
        peers = [n for n in dict.fromkeys(n for r in rows for n in r["ms"]) if n != "gpuvm"]
        if rows and peers:
            self.bars([r["query"] for r in rows], {f"over {p}": [r["ms"].get(p, math.nan) / r["ms"]["gpuvm"] for r in rows] for p in peers},
                      name, xlabel="query", ylabel="speed-up of gpuvm", yscale="log")

    def curve(self, workload, key, label, name, log=False, most=math.inf):
        rows = sorted((r for r in self.of(workload) if "gpuvm" in r["ms"] and r[key] <= most), key=lambda r: r[key])
        if not rows:
            return
        fig, ax = self.plt.subplots(figsize=(7, 4))
        for peer in [n for n in dict.fromkeys(n for r in rows for n in r["ms"]) if n != "gpuvm"]:
            ax.plot([r[key] for r in rows], [r["ms"].get(peer, math.nan) / r["ms"]["gpuvm"] for r in rows], marker=".", label=f"over {peer}")
        ax.axhline(1, color="black", linewidth=0.5)
        ax.set(xlabel=label, ylabel="speed-up of gpuvm", yscale="log")
        if log:
            ax.set_xscale("log")
        legend(ax)
        self.save(fig, name)

    def groupby(self):
        rows = sorted(self.of("groupby, count(*)"), key=lambda r: r["groups"])
        if not rows:
            return
        fig, ax = self.plt.subplots(figsize=(7, 4))
        for name in dict.fromkeys(n for r in rows for n in r["ms"]):
            ax.plot([r["groups"] for r in rows], [r["ms"].get(name, math.nan) for r in rows], marker=".", label=name)
        ax.set(xlabel="groups", ylabel="ms, counted", xscale="log", yscale="log")
        legend(ax)
        self.save(fig, "groupby.png")

    def sphyraena(self):
        """Figure 1: speed-up over SQLite by query, without and with the results' way."""
        full, counted = self.of("sphyraena"), {r["query"]: r for r in self.of("sphyraena, count(*)")}
        rows = [r for r in full if "SQLite" in r["ms"] and "gpuvm" in r["ms"] and "gpuvm" in counted[r["query"]]["ms"]]
        if rows:
            sqlite = [r["ms"]["SQLite"] for r in rows]
            self.bars([r["query"] for r in rows], {
                "no rows out": [s / counted[r["query"]]["ms"]["gpuvm"] for s, r in zip(sqlite, rows)],
                "results in host memory": [s / r["figures"]["gpuvm"]["Engine Time"] for s, r in zip(sqlite, rows)],
                "rows handed out by PostgreSQL": [s / r["ms"]["gpuvm"] for s, r in zip(sqlite, rows)],
            }, "sphyraena-figure1.png", xlabel="query", ylabel="speed-up over SQLite", yscale="log")

    def virginian(self):
        for form, suffix in (("virginian", ""), ("virginian, count(*)", "-counted")):
            rows = self.of(form)
            names = list(dict.fromkeys(n for r in rows for n in r["ms"] if n not in ("Serial", "Stream")))
            if rows:
                self.bars([r["query"] for r in rows], {n: [r["ms"].get(n, math.nan) for r in rows] for n in names},
                          f"virginian-figure4{suffix}.png", xlabel="query", ylabel="ms", yscale="log")
        rows = self.of("virginian")
        modes = [n for n in ("Serial", "Stream", "Mapped", "Cached") if any(n in r["figures"] for r in rows)]
        if modes:
            fig, ax = self.plt.subplots(figsize=(6, 4))
            for i, mode in enumerate(modes):
                of = [r["figures"][mode] for r in rows if mode in r["figures"]]
                engine, device = mean(f["Engine Time"] for f in of), mean(f["Device Time"] for f in of)
                ax.bar(i, device, color="tab:blue", label="device: kernels and copies" if i == 0 else None)
                ax.bar(i, max(0, engine - device), bottom=device, color="tab:gray", label="the rest of the engine's time" if i == 0 else None)
            ax.set_xticks(range(len(modes)), modes)
            ax.set(ylabel="mean ms, results to host memory")
            legend(ax)
            self.save(fig, "virginian-figure5.png")
        rows = self.of("data size")
        if rows:
            fig, ax = self.plt.subplots(figsize=(7, 4))
            sizes = sorted({r["size"] for r in rows})
            for name in dict.fromkeys(n for r in rows for n in r["ms"]):
                ax.plot(sizes, [mean(r["ms"][name] for r in rows if r["size"] == s and name in r["ms"]) for s in sizes], marker=".", label=name)
            ax.set(xlabel="rows in the table", ylabel="mean ms of the ten queries, counted", yscale="log")
            legend(ax)
            self.save(fig, "virginian-figure6.png")

    def primitives(self, path):
        """primitives_experiment's table: one program against one kernel a primitive."""
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as f:
            names, *lines = [line.rstrip("\n").split(",") for line in f]
        rows = [dict(zip(names, line)) for line in lines]
        self.bars([r["query"] for r in rows], {label: [float(r[key]) for r in rows] for key, label in
                                               (("program_ms", "one program"), ("primitives_ms", "one kernel a primitive"))},
                  "primitives.png", xlabel="query", ylabel="ms")

    def times(self, workload, key, label, name, mean_of=None, **axes):
        """Of each engine that ran all `mean_of` queries (or the one) at that point."""
        rows = self.of(workload)
        if not rows:
            return
        fig, ax = self.plt.subplots(figsize=(7, 4))
        points = sorted({r[key] for r in rows})
        for engine in dict.fromkeys(n for r in rows for n in r["ms"]):
            at = {p: [r["ms"][engine] for r in rows if r[key] == p and engine in r["ms"]] for p in points}
            ran = [p for p in points if len(at[p]) == (mean_of or 1)]
            ax.plot(ran, [mean(at[p]) for p in ran], marker=".", label=engine)
        ax.set(xlabel=label, ylabel="ms" if mean_of is None else f"mean ms of the {mean_of} queries", **{"yscale": "log", **axes})
        legend(ax)
        self.save(fig, name)

    def table_1(self, rows, name):
        """The grid paper's means; even queries compute with integers, odd ones with floats."""
        by_number = {int(r["query"]): r["ms"] for r in rows}
        if len(by_number) == 10:
            kinds = {"integer": range(0, 10, 2), "floating point": range(1, 10, 2), "all": range(10)}
            engines = [n for n in dict.fromkeys(n for r in rows for n in r["ms"]) if n != "constant rows"]
            self.bars(list(kinds), {e: [mean(by_number[k].get(e, math.nan) for k in kind) for kind in kinds.values()] for e in engines},
                      name, ylabel="mean ms of the queries", yscale="log", ylim=(0.1, None))

    def joins(self):
        """The grid paper's figures 5 to 8, its table 1 and its open question."""
        for workload, suffix in (("joins, paper", ""), ("joins, paper, count(*)", "-counted")):
            rows = self.of(workload)
            names = list(dict.fromkeys(n for r in rows for n in r["ms"]))
            if rows:
                self.bars([r["query"] for r in rows], {n: [r["ms"].get(n, math.nan) for r in rows] for n in names}, f"joins-figure5a{suffix}.png",
                          xlabel="query", ylabel="ms", yscale="log")
            self.speedups(workload, f"joins-figure5b{suffix}.png")
            self.table_1(rows, f"joins-table1{suffix}.png")
        self.times("joins, sizes", "size", "rows in each table", "joins-figure6.png", mean_of=10)
        self.times("joins, sizes, count(*)", "size", "rows in each table", "joins-figure6-counted.png", mean_of=10, xscale="log")
        self.times("joins, rows out", "returned", "rows out", "joins-figure7.png")
        self.times("joins, restrictive", "size", "rows in each table", "joins-figure8.png", xscale="log")
        self.times("joins, relations", "relations", "relations of the chain, half of all pairs match", "joins-relations.png", xticks=(1, 2, 3))
        self.times("joins, relations, restrictive", "relations", "relations of the chain, two pairs in a thousand match",
                   "joins-relations-restrictive.png", xticks=(1, 2, 3, 4, 5))
        self.times("joins, relations, points", "relations", "relations, as many points in all", "joins-relations-points.png", xticks=(2, 3, 4, 5))

    def suite(self, workload):
        """Every engine's time of every query, and how many times as fast as its peers gpuvm is with the plan of its own choice."""
        rows, mine = self.of(workload), "gpuvm, planned"
        names = list(dict.fromkeys(n for r in rows for n in r["ms"]))
        peers = [n for n in names if not n.startswith("gpuvm")]
        queries = [r["query"] for r in rows]
        if not rows:
            return
        self.bars(queries, {n: [r["ms"].get(n, math.nan) for r in rows] for n in names}, f"{workload}.png", xlabel="query", ylabel="ms", yscale="log")
        if mine in names and peers:
            self.bars(queries, {f"over {p}": [r["ms"].get(p, math.nan) / r["ms"].get(mine, math.nan) for r in rows] for p in peers},
                      f"{workload}-ratio.png", level=1, xlabel="query", ylabel="speed-up of gpuvm, planned", yscale="log")

    def cudadb(self):
        """The paper's figures 7 to 10 over table sizes, and 14 over shares of rows."""
        rows = self.of("cudadb")
        for figure, op in ((7, "insert"), (8, "select"), (9, "group"), (10, "insert-select")):
            at = sorted((r for r in rows if r["op"] == op and r["share"] in (0, 1)), key=lambda r: r["size"])
            if at:
                fig, ax = self.plt.subplots(figsize=(7, 4))
                for name in dict.fromkeys(n for r in at for n in r["ms"]):
                    ax.plot([r["size"] for r in at], [r["ms"].get(name, math.nan) for r in at], marker=".", label=name)
                ax.set(xlabel="rows in the table", ylabel=f"ms, {op} of " + ("1,000 rows" if op == "insert" else "1% of them"), xscale="log", yscale="log")
                legend(ax)
                self.save(fig, f"cudadb-figure{figure}.png")
        rows = [r for r in rows if r["share"] and "SQLite" in r["ratios"] and "gpuvm" in r["ms"]]
        sizes = [n for n in sorted({r["size"] for r in rows}) if any(r["op"] == "update" and r["size"] == n for r in rows)]
        if not sizes:
            return
        fig, axes = self.plt.subplots(1, len(sizes), figsize=(4 * len(sizes), 4), sharey=True, squeeze=False)
        for size, ax in zip(sizes, axes[0]):
            for op in dict.fromkeys(r["op"] for r in rows):
                at = sorted((r for r in rows if r["op"] == op and r["size"] == size), key=lambda r: r["share"])
                ax.plot([r["share"] for r in at], [r["ratios"]["SQLite"] for r in at], marker=".", label=op)
            ax.axhline(1, color="black", linewidth=0.5)
            ax.set(xlabel=f"% of {size:,} rows", xscale="log", yscale="log")
        axes[0][0].set_ylabel("speed-up of gpuvm over SQLite in memory")
        axes[0][0].legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=6, frameon=False)
        self.save(fig, "cudadb-figure14.png")

    def all(self):
        self.speedups("papers", "papers.png")
        self.speedups("papers, count(*)", "papers-counted.png")
        self.curve("table size", "size", "rows in the table", "table-size.png", log=True)
        self.curve("table size", "size", "rows in the table", "break-even.png", log=True, most=10_000)
        self.curve("rows returned", "returned", "rows returned", "rows-returned.png")
        self.groupby()
        self.sphyraena()
        self.virginian()
        self.joins()
        self.cudadb()
        for name in ("tpch", "ssb", "dbmbench"):
            self.suite(name)


def draw(source, folder):
    try:
        import matplotlib
    except ImportError:
        print(f"no matplotlib here: make the plots elsewhere by tests/bench/plots.py {source} FOLDER")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    results = []
    path = os.path.join(source, "results.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            results = json.load(f)["results"]
    plotter = Plotter(plt, results, folder)
    plotter.all()
    plotter.primitives(os.path.join(source, "primitives.csv"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw(sys.argv[1], sys.argv[2])
