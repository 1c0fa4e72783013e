#!/usr/bin/env python3
"""Writes docs/opcodes.md from src/vm/opcodes.def (with --check: says whether it is up to date)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = {"B": "bool", "S": "int2", "I": "int4", "L": "int8", "F": "float4", "D": "float8", "X": "int128",
         "R": "row position", "-": ""}


def operands():
    """Form -> what its operands are, from the comment at the top of program.h."""
    text = (ROOT / "src/vm/program.h").read_text()
    forms = {}
    name = None
    for line in text[text.index("The form of an opcode"):text.index("*/")].splitlines()[2:]:
        line = line.lstrip(" *")
        m = re.match(r"([A-Z][A-Z0-9_/]+)\s+(.*)", line)
        if m:
            name = m.group(1)
            forms[name] = m.group(2)
        elif name and line:
            forms[name] += " " + line
        elif not line:
            break
    return forms


def table():
    source = (ROOT / "src/vm/opcodes.def").read_text()
    out = ["# Opcodes", "",
           "Generated from `src/vm/opcodes.def` by `docs/opcodes.py`. `SELECT * FROM gpuvm.opcodes` shows the same on a server,",
           "`gpuvm.disassemble(query)` a program in them."]
    for line in source.splitlines():
        section = re.match(r"/\* -- (.*?) -+ \*/", line)
        if section:
            name = section.group(1)
            out += ["", "## " + name[0].upper() + name[1:], "", "| opcode | types | what it does | may flag |", "|---|---|---|---|"]
            continue
        op = re.match(r'GPUVM_OPCODE\((\w+),\s*(\w+),\s*"([^"]*)",\s*(.*?),\s*"(.*)"\)$', line)
        if op:
            name, form, types, errors, synopsis = op.groups()
            kinds = ", ".join(filter(None, (TYPES[t] for t in types)))
            flags = "" if errors == "0" else errors.replace("ERR_", "").replace("_", " ").lower().replace(" | ", ", ")
            out.append("| `%s` | %s | %s | %s |" % (name, kinds, synopsis.replace("|", "\\|"), flags))
    out += ["", "## Operands by form", "", "| form | operands |", "|---|---|"]
    out += ["| %s | %s |" % (form, text.replace("|", "\\|")) for form, text in operands().items()]
    return "\n".join(out) + "\n"


def main():
    path = ROOT / "docs/opcodes.md"
    text = table()
    if "--check" in sys.argv:
        if path.read_text() != text:
            sys.exit("docs/opcodes.md is not what docs/opcodes.py writes")
        return
    path.write_text(text)


main()
