#!/usr/bin/python3
"""Fails when an #include goes against the direction of the layers.

    core <- tablet <- vm <- {engine, cuda, compiler}
    pg <- {store, compiler};  compiler <- plan <- planner <- executor <- sqlapi;  store <- fdw

A layer may use itself, the layers that it depends on, and theirs. The layers
without PostgreSQL (core, tablet, vm, engine, cuda) may include neither a
PostgreSQL header nor a layer that does.

Each run first checks that violations of each kind are found.
"""
import os
import re
import sys

# What each layer includes directly.
DEPENDS = {
    "core": [],
    "tablet": ["core"],
    "vm": ["tablet"],
    "engine": ["vm"],
    "cuda": ["vm", "engine"],
    "pg": ["vm"],
    "store": ["pg", "tablet"],
    "compiler": ["vm", "pg", "store"],
    "plan": ["compiler", "store"],
    "planner": ["plan", "store"],
    "executor": ["planner", "store"],
    "fdw": ["store"],
    "sqlapi": ["executor", "fdw", "store"],
}
# The contract between backends and gpuvmd: what engine shares with PostgreSQL's side.
CONTRACT = {"engine/abi.h": ["pg", "store", "compiler", "plan", "planner", "executor", "fdw", "sqlapi"], "engine/doorbell.h": ["pg"],
            "engine/pin_words.h": ["pg"]}
# Loading the extension and making its shared memory starts every layer: these
# files may include the layers' install headers, and those only.
ENTRY_FILES = {"src/pg/module.cc", "src/pg/shmem.cc"}
INSTALL_HEADERS = {"store/store.h", "planner/planner.h", "executor/custom_scan.h"}
NO_POSTGRES = {"core", "tablet", "vm", "engine", "cuda"}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
POSTGRES = re.compile(r"^(postgres|fmgr|miscadmin|pgstat|funcapi|c)\.h$|^(access|catalog|commands|executor|nodes|"
                      r"optimizer|parser|postmaster|storage|tcop|utils|port|lib|libpq|mb|partitioning|replication|rewrite)/")


def reachable(layer):
    seen, todo = set(), [layer]
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo.extend(DEPENDS[at])
    return seen


ALLOWED = {layer: reachable(layer) for layer in DEPENDS}


def problems_of(path, layer, text, own_headers):
    for header in INCLUDE.findall(text):
        target = header.split("/")[0] if "/" in header else None
        if header in own_headers and target in DEPENDS:
            if path in ENTRY_FILES and header in INSTALL_HEADERS:
                continue
            if target not in ALLOWED[layer] and layer not in CONTRACT.get(header, []):
                yield f"{path}: {layer} must not include {header}"
        elif POSTGRES.match(header) and layer in NO_POSTGRES:
            yield f"{path}: {layer} must not include PostgreSQL's {header}"


def sources(root):
    for top, prefix in (("src", "src/"), ("cuda", "")):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".h", ".cc", ".c", ".cu", ".cuh", ".def", ".inc")):
                    full = os.path.join(folder, name)
                    inside = os.path.relpath(full, os.path.join(root, prefix))
                    yield os.path.relpath(full, root), inside.replace(os.sep, "/")


def check(root):
    files = list(sources(root))
    own_headers = {inside for _, inside in files}
    problems, checked = [], 0
    for path, inside in files:
        layer = inside.split("/")[0]
        if layer not in DEPENDS:
            problems.append(f"{path}: not in a known layer")
            continue
        with open(os.path.join(root, path), encoding="utf-8") as f:
            problems += problems_of(path, layer, f.read(), own_headers)
        checked += 1
    return problems, checked


def self_test():
    own = {"vm/program.h", "engine/abi.h", "engine/scheduler.h", "store/store.h", "executor/custom_scan.h", "tablet/format.h"}
    bad = [("tablet", '#include "vm/program.h"'), ("vm", '#include "engine/abi.h"'), ("engine", '#include "postgres.h"'),
           ("core", '#include "utils/rel.h"'), ("pg", '#include "store/store.h"'), ("store", '#include "executor/custom_scan.h"'),
           ("planner", '#include "executor/custom_scan.h"'), ("executor", '#include "engine/scheduler.h"')]
    good = [("vm", '#include "tablet/format.h"'), ("pg", '#include "engine/abi.h"'), ("store", '#include "utils/rel.h"'),
            ("executor", '#include "executor/custom_scan.h"'), ("executor", '#include "executor/tuptable.h"'), ("core", "#include <cstdint>")]
    wrong = [(case, "missed") for case in bad if not list(problems_of("x", *case, own))]
    wrong += [(case, "refused") for case in good if list(problems_of("x", *case, own))]
    for case, what in wrong:
        print(f"check_includes self-test: {what}: {case}")
    return not wrong


def main():
    if not self_test():
        return 1
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    problems, checked = check(root)
    for problem in problems:
        print(problem)
    print(f"{checked} files checked, {len(problems)} includes against the direction")
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
