#!/usr/bin/python3
"""Writes docs/types.md, the table of what is supported, by asking the planner (with --check: says whether it is up to date).

    docs/support.py [--check] --host SOCKET

A table with a column of every built-in type is imported on a running server; then gpuvm.why_not() is asked about every
type, about every immutable built-in function and operator over these columns, and about every aggregate. So the lists are the
planner's own, and the reasons in its words.
"""
import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "setup")]

from pgcluster import connect  # noqa: E402

DATABASE = "gpuvm_types"
# A value of each type: (as it is called here, its SQL, the value).
TYPES = [(t, t, v) for t, v in (
    ("boolean", "true"), ("smallint", "3"), ("integer", "3"), ("bigint", "3"), ("real", "1.5"), ("double precision", "1.5"), ("numeric(15,2)", "1.25"), ("numeric", "1.5"), ("money", "1.50"),
    ("oid", "16384"), ("date", "2001-02-03"), ("time", "04:05:06"), ("timetz", "04:05:06+01"), ("timestamp", "2001-02-03 04:05:06"), ("timestamptz", "2001-02-03 04:05:06+00"), ("interval", "1 day"),
    ("text", "ab"), ("varchar(20)", "ab"), ("char(10)", "ab"), ("bpchar", "ab"), ("name", "ab"), ('"char"', "a"), ("uuid", "00000000-0000-4000-8000-000000000001"), ("bytea", "\\x6162"), ("inet", "10.0.0.1"),
    ("cidr", "10.0.0.0/8"), ("macaddr", "08:00:2b:01:02:03"), ("macaddr8", "08:00:2b:01:02:03:04:05"), ("bit(8)", "10101010"), ("varbit", "101"), ("json", '{"a": 1}'), ("jsonb", '{"a": 1}'), ("xml", "<a/>"),
    ("integer[]", "{1,2}"), ("text[]", "{a,b}"), ("int4range", "[1,3)"), ("tsvector", "a b"), ("tsquery", "a"), ("point", "(1,2)"), ("box", "(1,2),(3,4)"), ("pg_lsn", "0/1"), ("txid_snapshot", "1:1:"))]
TYPES += [("an enum", "doc_mood", "ok"), ("a domain over text", "doc_word", "ab"), ("a domain over numeric(9,2)", "doc_price", "1.25"), ("numeric(15,2), some NaN", "numeric(15,2)", "NaN"), ("numeric(38,2), more than 64 bits", "numeric(38,2)", "1234567890123456789012.25"), ("text COLLATE \"und-x-icu\"", 'text COLLATE "und-x-icu"', "ab"),
          ("text, a nondeterministic collation", "text COLLATE doc_nocase", "ab"), ("a composite type", "doc_pair", "(1,2)")]
SETUP = """CREATE EXTENSION gpuvm; CREATE TYPE doc_mood AS ENUM ('sad', 'ok'); CREATE DOMAIN doc_word AS text; CREATE DOMAIN doc_price AS numeric(9,2);
CREATE TYPE doc_pair AS (a int, b int); CREATE COLLATION doc_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"""
FIELD = "'day'::text"		# of dates
# What is asked of a type: c is its column, d another of the same type, v a value.
QUESTIONS = (("output", "SELECT {c} FROM t"), ("IS NULL", "SELECT count(*) FROM t WHERE {c} IS NULL"), ("= constant", "SELECT count(*) FROM t WHERE {c} = {v}"), ("< constant", "SELECT count(*) FROM t WHERE {c} < {v}"),
             ("= column", "SELECT count(*) FROM t WHERE {c} = {d}"), ("GROUP BY", "SELECT {c}, count(*) FROM t GROUP BY {c}"), ("min, max", "SELECT min({c}), max({c}) FROM t"), ("join key", "SELECT count(*) FROM t a JOIN t b ON a.{c} = b.{c}"))
MORE_QUESTIONS = (("IN", "SELECT count(*) FROM t WHERE {c} IN ({v}, {v})"), ("LIKE", "SELECT count(*) FROM t WHERE {c} LIKE '%b%'"), ("starts_with", "SELECT count(*) FROM t WHERE starts_with({c}, 'a')"),
                  ("ILIKE", "SELECT count(*) FROM t WHERE {c} ILIKE '%B%'"), ("~, SIMILAR TO", "SELECT count(*) FROM t WHERE {c} ~ '[a-c]+$'"), ("lower, upper, trim, then =", "SELECT count(*) FROM t WHERE upper(trim({c})) = 'AB'"),
                  ("characters", "SELECT left({c}, 2), count(*) FROM t WHERE left({c}, 2) = 'ab' GROUP BY 1"), ("length", "SELECT sum(length({c})) FROM t"), ("ORDER BY", "SELECT {c} FROM t ORDER BY {c}"), ("< column", "SELECT count(*) FROM t WHERE {c} < {d}"))
BY_VALUE = re.compile("stored value by value|values for a dictionary: ")
POLYMORPHIC = {'"any"': "int4", "anyelement": "int4", "anycompatible": "int4", "anyenum": "doc_mood", "anyarray": "int4[]", "anycompatiblearray": "int4[]", "anynonarray": "int4", "anycompatiblenonarray": "int4"}
OWN_NAMES = re.compile(r'"?\b[cd][0-9]+\b"?')
UNLISTED = re.compile(r"^function .* is not supported(: )?")


class Asker:
    def __init__(self, host):
        admin = connect(host)
        with admin.cursor() as cur:
            cur.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
            cur.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
        self.admin, self.conn = admin, connect(host, dbname=DATABASE)
        self.run(SETUP)
        self.run("SET client_min_messages = error; SET gpuvm.force = on; SET gpuvm.device = cpu; SET enable_sort = off")
        self.any = {a: self.run(f"SELECT '{t}'::regtype::oid")[0][0] for a, t in POLYMORPHIC.items()}
        columns, values = [], []
        for i, (_, sql, value) in enumerate(TYPES):
            columns += [f"c{i} {sql}", f"d{i} {sql}"]
            values += [f"'{value}'"] * 2
        self.run(f"CREATE TABLE t ({', '.join(columns)}) WITH (autovacuum_enabled = off)")
        self.run(f"INSERT INTO t SELECT {', '.join(values)} FROM generate_series(1, 3)")
        self.run("ANALYZE t")
        # in a transaction of its own: an older one would keep VACUUM from showing the rows to all, and what tablets have is the form
        self.run("SELECT gpuvm.import('t')")
        # the same again, of so many different values, as the statistics say, that no column gets a dictionary
        self.run("CREATE TABLE many (LIKE t) WITH (autovacuum_enabled = off); INSERT INTO many SELECT * FROM t")
        self.run("ALTER TABLE many " + ", ".join(f"ALTER {a}{i} SET (n_distinct = 2000000)" for i in range(len(TYPES)) for a in "cd"))
        self.run("ANALYZE many; SELECT gpuvm.import('many')")

    def run(self, sql):
        with self.conn.cursor() as cur:
            cur.execute(sql)
            return cur.fetchall() if cur.description else []

    def reason(self, sql):
        """None: programs do it. Else why not; an error of PostgreSQL's own is no answer (False)."""
        try:
            rows = self.run(f"SELECT DISTINCT reason FROM gpuvm.why_not($q${sql}$q$)")
        except Exception:
            return False
        return "; ".join(sorted(r for r, in rows)) if rows else None

    def stores(self, table, column):
        """What tablets do not have can still be shown."""
        return bool(self.run(f"SELECT 1 FROM gpuvm.tables WHERE relation = '{table}'::regclass AND '{column}' = ANY (columns)"))

    def has(self, opcode, sql):
        return any(opcode in row[0] for row in self.run(f"SELECT gpuvm.disassemble($q${sql}$q$)"))

    def close(self, host):
        self.conn.close()
        with self.admin.cursor() as cur:
            cur.execute(f"DROP DATABASE {DATABASE}")


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def types_table(asker):
    """The lines, and {type's oid: (column, literal, in a dictionary?)} of the types that are stored, but for those of values of variable length."""
    lines, stored, notes = [], {}, {}
    oids = dict((name, oid) for name, oid in asker.run("SELECT attname, CASE typtype WHEN 'd' THEN 0 ELSE atttypid END FROM pg_attribute a JOIN pg_type t ON atttypid = t.oid WHERE attrelid = 't'::regclass AND attnum > 0"))
    for i, (title, sql, value) in enumerate(TYPES):
        c, d, v = f"c{i}", f"d{i}", f"'{value}'::{sql.split(' COLLATE')[0]}"
        answers, reasons = [], []
        for label, question in QUESTIONS:
            why = asker.reason(question.format(c=c, d=d, v=v))
            if why:
                why = re.sub(r'"?\b[cd]%d\b"?' % i, "...", why)
                note = notes.setdefault(why, len(notes) + 1)
            answers.append("yes" if why is None else "-" if why is False else f"no ({note})")
        if answers[0] != "yes" or not asker.stores("t", c):
            lines.append(f"| {cell(title)} | left out |" + " - |" * len(QUESTIONS))
            continue
        asks = [q.format(c=c, v=v) for q in (QUESTIONS[2][1], "SELECT count(*) FROM t WHERE {c}::text = 'x'")]
        lookup = any(asker.reason(q) is None and asker.has("Lookup", q) for q in asks)
        referred = any(BY_VALUE.search(asker.reason(q) or "") or (asker.reason(q) is None and asker.has("TextMatch", q)) for q in asks)
        form = "dictionary" if lookup else "references to the values" if referred else "scaled integer in halves" if "64 bits" in title or "NaN" in title else "scaled integer" if "numeric" in title else "the value"
        lines.append(f"| {cell(title)} | {form} | " + " | ".join(answers) + " |")
        if not referred:
            stored.setdefault(oids[c], (c, d, v, lookup))
    used = [why for why, n in notes.items() if any(f"no ({n})" in line for line in lines)]
    lines = [re.sub(r"no \((\d+)\)", lambda m: f"no ({1 + next(k for k, why in enumerate(used) if notes[why] == int(m[1]))})", line) for line in lines]
    legend = [f"{n}. {cell(why)}" for n, why in enumerate(used, 1)]
    return lines, legend, stored


def many_table(asker, types):
    """Of types that have dictionaries: what can be done with a column that has too many different values for one."""
    lines = []
    for i, (title, sql, value) in enumerate(TYPES):
        c, d, v = f"c{i}", f"d{i}", f"'{value}'::{sql.split(' COLLATE')[0]}"
        answers = [asker.reason(question.replace("FROM t", "FROM many").replace("JOIN t", "JOIN many").format(c=c, d=d, v=v)) for _, question in QUESTIONS + MORE_QUESTIONS]
        if answers[0] is None and asker.stores("many", c) and any(line.startswith(f"| {cell(title)} | dictionary |") for line in types):
            lines.append(f"| {cell(title)} | " + " | ".join("yes" if why is None else "-" if why is False else "no" for why in answers) + " |")
    return lines


FUNCTIONS = """SELECT p.oid, proname, array_to_string(ARRAY(SELECT a::regtype::text FROM unnest(proargtypes::oid[]) a), '|'), array_to_string(proargtypes::oid[], '|'), provolatile, coalesce(string_agg(DISTINCT oprname, ' '), '')
FROM pg_proc p LEFT JOIN pg_operator o ON o.oprcode = p.oid AND o.oid < 10000
WHERE prokind = 'f' AND NOT proretset AND provolatile IN ('i', 's') AND prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('internal')) AND p.oid < 10000 AND pronargs BETWEEN 1 AND 4
AND provariadic = 0 AND proname !~ '(_in|_out|_recv|_send|_support|_sortsupport|_typmod_in|sel|joinsel|_transfn|_accum|_combine|_serialize|_deserialize|_larger|_smaller|_final|_inv|out|send|cmp|larger|smaller|_hash|_hash_extended|statefunc|validator)$|^(pg_|bt|hash|gin|gist|brin|spg|in_range|RI_|enum_(in|out)|array_(in|out)|has_|to_reg|inet_|binary_upgrade|acl|makeacl|nameconcatoid)' 
GROUP BY 1, 2, 3, 4, 5 ORDER BY proname, 3"""


def signature(args, column=None):
    """`column`: the only argument that may be one."""
    short = {"double precision": "float8", "real": "float4", "integer": "int4", "bigint": "int8", "smallint": "int2", "boolean": "bool", "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz",
             "time without time zone": "time", "time with time zone": "timetz", "character varying": "varchar", "character": "bpchar", "bit varying": "varbit"}
    names = [short.get(a, a) for a in args]
    return "(" + ", ".join(n if column in (None, k) else f"_{n}_" for k, n in enumerate(names)) + ")"


def functions_tables(asker, stored):
    """Operations of programs: name -> signatures; those of dictionaries: type -> names; refusals: reason -> names."""
    native, maps, refused = (collections.defaultdict(list) for _ in range(3))
    for _, name, args, arg_oids, volatile, operators in asker.run(FUNCTIONS):
        args = args.split("|")
        found = [stored.get(asker.any[a] if a in POLYMORPHIC else o) for a, o in zip(args, arg_oids.split("|"))]
        if not any(found):
            continue
        label = f"`{operators.split(' ')[0]}`" if operators else f"`{name}`"
        constants = [FIELD if a == "text" else f[2] if f else f"NULL::{a}" for f, a in zip(found, args)]
        # all arguments are columns; or one is, at first one that has no dictionary
        tries = [(None, [f[k % 2] for k, f in enumerate(found)])] if all(f and not f[3] for f in found) else []
        tries += [(k, [f[0] if j == k else v for j, v in enumerate(constants)]) for k, f in sorted(enumerate(found), key=lambda e: bool(e[1] and e[1][3]))
                  if f and not (args[k] == "text" and name in ("extract", "date_part", "date_trunc"))]
        first = None
        for k, values in tries:
            why = asker.reason(f"""SELECT count(*) FROM t WHERE pg_catalog."{name}"({', '.join(values)}) IS NOT NULL""")
            if why is None:
                if k is not None and found[k][3]:
                    if label not in maps[args[k]]:
                        maps[args[k]].append(label)
                else:
                    native[label].append(signature(args, None if len(args) == 1 else k))
                break
            first = first or why
        else:
            if first and volatile == "i":
                reason = OWN_NAMES.sub("...", UNLISTED.sub("", first)) or "programs have no operation for it"
                if label not in refused[reason]:
                    refused[reason].append(label)
    return native, maps, refused


AGGREGATES = """SELECT proname, array_to_string(ARRAY(SELECT a::regtype::text FROM unnest(proargtypes::oid[]) a), '|'), array_to_string(proargtypes::oid[], '|') FROM pg_proc p JOIN pg_aggregate a ON aggfnoid = p.oid
WHERE aggkind = 'n' AND p.oid < 10000 ORDER BY proname, 2"""


def aggregates_tables(asker, stored):
    done, refused = collections.defaultdict(list), collections.defaultdict(list)
    for name, args, arg_oids in asker.run(AGGREGATES):
        oids = [asker.any[a] if a in POLYMORPHIC else o for a, o in zip(args.split("|"), arg_oids.split("|"))]
        if args and not all(o in stored for o in oids):
            continue
        why = asker.reason(f"SELECT {name}({', '.join(stored[o][k % 2] for k, o in enumerate(oids)) if args else '*'}) FROM t")
        if why is None:
            done[name].append(signature(args.split("|")) if args else "(*)")
        elif why and (args.split("|")[0] not in refused[name]):
            refused[name].append(args.split("|")[0])
    return done, refused


# Parts of queries: asked as they stand, over a column of integers, of numerics and of text.
FORMS = (("DISTINCT aggregates", "SELECT count(DISTINCT {i}) FROM t"), ("ordered aggregates", "SELECT string_agg({t}, ',' ORDER BY {i}) FROM t"), ("FILTER", "SELECT sum({n}) FILTER (WHERE {i} > 1) FROM t"),
         ("GROUPING SETS, ROLLUP, CUBE", "SELECT {i}, {t}, sum({n}) FROM t GROUP BY ROLLUP ({i}, {t})"), ("HAVING", "SELECT {i}, sum({n}) FROM t GROUP BY {i} HAVING sum({n}) > 1"), ("CASE", "SELECT sum(CASE WHEN {t} = 'a' THEN {n} ELSE 0 END) FROM t"),
         ("LIKE", "SELECT count(*) FROM t WHERE {t} LIKE '%b'"), ("regular expressions", "SELECT count(*) FROM t WHERE {t} ~ 'b$'"), ("IN", "SELECT count(*) FROM t WHERE {t} IN ('a', 'b') AND {n} IN (1, 2.5)"), ("row comparisons", "SELECT count(*) FROM t WHERE ({i}, {t}) > (5, 'b')"), ("concatenation of two columns", "SELECT count(*) FROM t WHERE {t} || {u} = 'ab'"),
         ("quotient of numerics", "SELECT count(*) FROM t WHERE {n} / 3 > 1"), ("the largest quotient", "SELECT max({n} / 3) FROM t"), ("ORDER BY text", "SELECT {t} FROM t WHERE {i} > 0 ORDER BY {t}"), ("extract", "SELECT count(*) FROM t WHERE extract(year FROM {d}) = 2001"), ("differences of times", "SELECT avg({s} - {d}) FROM t WHERE {s} - {d} > interval '1 day'"), ("date_trunc", "SELECT date_trunc('month', {s}), count(*) FROM t GROUP BY 1"))


def forms_table(asker):
    at = {sql: f"c{i}" for i, (_, sql, _) in enumerate(TYPES)}
    names = dict(i=at["integer"], n=at["numeric(15,2)"], t=at["text"], u=at["text"].replace("c", "d"), d=at["date"], s=at["timestamp"])
    lines = []
    for title, sql in FORMS:
        why = asker.reason(sql.format(**names))
        lines.append(f"| {title} | `{cell(sql.format(i='i', n='n', t='t', u='u', d='d', s='s'))}` | {'yes' if why is None else cell(why)} |")
    return lines


def document(asker):
    lines, legend, stored = types_table(asker)
    out = ["# What is supported", "", "Generated by `docs/support.py`, which asks the planner of a running server (`gpuvm.why_not`) about every built-in type, function, operator and aggregate. What is",
           "not here runs on PostgreSQL, for the reason that is named; whatever is said here holds for rows, conditions, keys of groups and arguments of aggregates.", "",
           "## Types", "", "Columns of the types that are left out are no obstacle to queries that do not compute with them: what is only shown comes from the table, for the rows that come out. `-`: PostgreSQL has no such operation.", "",
           "| type | stored as | " + " | ".join(label for label, _ in QUESTIONS) + " |", "|---|---|" + "---|" * len(QUESTIONS)] + lines
    out += ["", "Otherwise:", ""] + legend + [""] if legend else [""]
    labels = [label for label, _ in QUESTIONS + MORE_QUESTIONS]
    out += ["### Columns of many different values", "", "A column has no dictionary if it has more than a million different values, or 64 MB of them, or one of more than 8 kB; a numeric without a scale is no integer if its values",
            "have different display scales or too many digits. Then the column is stored as references to the values, too:", "",
            "| type | " + " | ".join(labels) + " |", "|---|" + "---|" * len(labels)] + many_table(asker, lines) + [""]
    out += ["## Parts of queries", "", "| what | for example | |", "|---|---|---|"] + forms_table(asker)
    native, maps, refused = functions_tables(asker, stored)
    out += ["", "## Functions and operators of every row", "", "These are operations of programs, over columns and anything computed. Arguments in _italics_ are constants.", "", "| function | arguments |", "|---|---|"]
    out += [f"| {cell(name)} | {', '.join(sorted(set(found)))} |" for name, found in sorted(native.items())]
    out += ["", "## Functions and operators of dictionary columns", "", "With one column and constants or parameters, alone and nested in each other: PostgreSQL evaluates the whole expression, once for each entry of the dictionary.", "",
            "| type | functions |", "|---|---|"]
    out += [f"| {cell(type)} | {', '.join(cell(n) for n in names)} |" for type, names in sorted(maps.items())]
    done, missing = aggregates_tables(asker, stored)
    out += ["", "## Aggregates", "", "| aggregate | arguments | not of |", "|---|---|---|"]
    out += [f"| `{name}` | {', '.join(found)} | {', '.join(missing.get(name, []))} |" for name, found in sorted(done.items())]
    out += ["", f"Not at all: {', '.join(f'`{n}`' for n in sorted(missing) if n not in done)}.", "", "## What stays with PostgreSQL, and why", "", "Immutable functions of types that are stored:", "", "| reason | functions |", "|---|---|"]
    out += [f"| {cell(why)} | {', '.join(cell(n) for n in names)} |" for why, names in sorted(refused.items())]
    return "\n".join(line.rstrip() for line in out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--host", required=True, help="folder of the socket of a running server with gpuvm")
    options = parser.parse_args()
    asker = Asker(options.host)
    text = document(asker)
    asker.close(options.host)
    path = ROOT / "docs" / "types.md"
    if not options.check:
        path.write_text(text)
    elif path.read_text() != text:
        (ROOT / "build" / "types.md").write_text(text)
        sys.exit("docs/types.md is not what docs/support.py writes: compare it with build/types.md")


if __name__ == "__main__":
    main()
