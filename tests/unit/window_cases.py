#!/usr/bin/env python3
"""Writes window_cases.h: window functions with what PostgreSQL answers, for vm_window_cases_test.cc.

    PGHOST=... PGUSER=... tests/unit/window_cases.py > tests/unit/window_cases.h

Ties are in the order of id, for PostgreSQL as for the test. Dates and timestamps are shown as they are stored.
"""
import re
import subprocess

# id, p, i, x, s, f, r, d, t, b
ROWS = """
1  1    1    10                    1     0.5        0.25   2024-01-01  '2024-01-01 00:00:00'  true
2  1    2    20                    -5    -Infinity  1.5    2024-01-03  '2024-01-01 00:00:30'  false
3  1    2    -30                   7     NaN        NULL   2024-01-03  '2024-01-01 00:01:00'  NULL
4  1    3    40                    NULL  1.5        -2     2024-01-09  '2024-01-01 00:01:30'  true
5  1    5    9223372036854775807   3     Infinity   8      infinity    infinity               true
6  1    5    1                     3     2.5        NaN    2024-01-10  '2024-01-01 12:00:00'  false
7  1    NULL 60                    32767 NULL       0.5    NULL        NULL                   true
8  1    NULL NULL                  2     4          0.5    -infinity   -infinity              false
9  1    9    9223372036854775807   1     NaN        0.75   2024-02-01  '2024-03-01 00:00:00'  true
10 2    -1   5                     NULL  1          1      2020-02-29  '2020-02-29 00:00:00'  false
11 2    -1   NULL                  NULL  1          2      2020-03-01  '2020-02-29 00:00:10'  false
12 2    0    -9223372036854775808  NULL  2          3      2020-03-01  '2020-02-29 00:00:10'  NULL
13 2    0    -1                    NULL  3          4      2020-03-02  '2020-02-29 00:00:11'  NULL
14 2    7    2                     NULL  Infinity   5      NULL        NULL                   false
15 3    100  7                     9     -Infinity  -1     2000-01-01  '2000-01-01 00:00:00'  true
16 NULL 4    3                     4     0.25       0.125  2001-01-01  '2001-01-01 00:00:00'  true
17 NULL 4    4                     6     0.25       0.25   2001-01-02  '2001-01-02 00:00:00'  true
18 NULL 6    NULL                  8     NULL       NULL   2001-01-02  '2001-01-02 00:00:00'  NULL
19 NULL NULL 2                     5     -8         0.5    NULL        NULL                   true
20 1    2147483647 6               0     3.5        16     2024-01-04  '2024-01-01 00:00:31'  false
21 1    -2147483648 8              0     -3.5       32     2023-12-31  '2023-12-31 23:59:59'  NULL
22 2    1    9                     4     0          6      2020-02-28  '2020-02-28 23:59:59'  true
""".strip().splitlines()

PO = "partition by p order by i"

CASES = f"""
row_number() over (partition by p order by i, id)
row_number() over (order by x desc nulls last)
rank() over ({PO})
rank() over (order by f)
rank() over (order by f desc nulls last)
rank() over (order by p, b desc)
dense_rank() over ({PO} desc)
dense_rank() over (order by r nulls first)
dense_rank() over ()
percent_rank() over ({PO})
percent_rank() over (order by s)
percent_rank() over ()
cume_dist() over ({PO})
cume_dist() over (order by f desc)
cume_dist() over ()
ntile(1) over (order by id)
ntile(3) over (partition by p order by id)
ntile(4) over (order by id)
ntile(7) over (order by id)
ntile(100) over (order by id)
lag(i) over (partition by p order by id)
lag(x, 2) over (partition by p order by id)
lag(x, 0) over (order by id)
lag(i, -2) over (partition by p order by id)
lag(i, 3, 77) over (partition by p order by id)
lag(f, 2, 0.5) over (partition by p order by id)
lead(b) over (partition by p order by id)
lead(s, 4) over (order by id)
lead(i, 1, -1) over (partition by p order by id)
lead(i, 2147483647, 5) over (order by id)
lag(i, -2147483648) over (order by id)
first_value(x) over ({PO})
last_value(x) over (partition by p order by id)
last_value(x) over ({PO} range between unbounded preceding and unbounded following)
nth_value(x, 2) over (partition by p order by id)
nth_value(i, 3) over (partition by p order by id rows between 1 preceding and 1 following)
first_value(i) over (partition by p order by id rows between 2 following and 3 following)
last_value(i) over (partition by p order by id rows between 3 preceding and 2 preceding)
count(*) over ()
count(*) over ({PO})
count(x) over (partition by p)
count(*) filter (where b) over ({PO})
count(s) filter (where b) over (order by id rows between 3 preceding and current row)
sum(i) over (partition by p)
sum(i) over ({PO})
sum(i) over (partition by p order by id rows between unbounded preceding and current row)
sum(i) over (partition by p order by id rows between 1 preceding and 1 following)
sum(i) over (partition by p order by id rows between current row and unbounded following)
sum(x) over (order by id)
sum(x) over (order by id rows between 2 preceding and current row)
sum(s) over (order by id rows between 10 preceding and 8 preceding)
sum(s) filter (where b) over (partition by p order by id)
sum(f) over (order by id rows between unbounded preceding and current row)
sum(f) over (partition by p order by id)
sum(f) over (order by id rows between 1 preceding and current row)
sum(r) over (partition by p order by id)
min(x) over ({PO})
max(x) over ({PO} desc)
min(f) over (partition by p order by id)
max(f) over (partition by p order by id rows between 1 preceding and 1 following)
max(f) over (partition by p order by id rows between 1 following and unbounded following)
min(s) over (order by id rows between 2 preceding and 1 preceding)
max(r) filter (where b) over (order by id rows between 5 preceding and current row)
bool_and(b) over (partition by p order by id)
bool_or(b) over (partition by p order by id rows between 1 preceding and current row)
bool_and(b) over (order by p rows between 1 following and 2 following)
count(*) over (order by i range between 2 preceding and current row)
count(*) over (order by i range between 2 preceding and 2 following)
count(*) over (order by i desc range between 2 preceding and current row)
count(*) over (order by i nulls first range between 1 following and 3 following)
count(*) over (order by i desc nulls last range between 1 following and unbounded following)
count(*) over (order by i range between unbounded preceding and 1 preceding)
count(*) over (order by i range between 2147483647 preceding and 2147483647 following)
count(*) over (order by i range between 9223372036854775807 preceding and 9223372036854775807 following)
sum(i) over ({PO} range between 1 preceding and 3 following)
count(*) over (order by x range between 9223372036854775807 preceding and current row)
count(*) over (order by x desc range between 9223372036854775807 preceding and 1 preceding)
count(*) over (order by x range between 1 following and 9223372036854775807 following)
count(*) over (order by s range between 2 preceding and 40000 following)
count(*) over (order by f range between 1.5 preceding and 1 following)
count(*) over (order by f desc range between 1.5 preceding and 1 following)
count(*) over (order by f range between 'Infinity' preceding and current row)
count(*) over (order by f range between current row and 'Infinity' following)
count(*) over (order by f range between 'Infinity' preceding and 'Infinity' preceding)
count(*) over (order by f range between 'Infinity' following and 'Infinity' following)
count(*) over (order by f desc range between 'Infinity' following and 'Infinity' following)
count(*) over (order by f desc nulls last range between 'Infinity' preceding and 'Infinity' preceding)
count(*) over (order by f nulls first range between 0 preceding and 0 following)
count(*) over (order by r range between 0.25 preceding and 0.5 following)
count(*) over (order by r desc range between 0.1 preceding and 0.1 following)
count(*) over (order by d range between '2 days' preceding and '1 day' following)
count(*) over (order by d desc range between '2 days' preceding and '1 day' following)
first_value(id) over (order by d range between '7 days' preceding and current row)
last_value(id) over (partition by p order by d nulls first range between '1 day' following and '400 days' following)
count(*) over (order by t range between '30 seconds' preceding and '1 second' following)
count(*) over (order by t desc range between '30 seconds' preceding and '1 second' following)
count(*) over (order by i groups between 1 preceding and current row)
count(*) over (order by i groups between 2 preceding and 1 preceding)
count(*) over (order by i desc groups between 1 following and 2 following)
count(*) over ({PO} groups between current row and 1 following)
sum(x) over (partition by p order by d groups between 1 preceding and 1 following)
first_value(id) over (order by b groups between 1 preceding and unbounded following)
count(*) over (order by i groups between 9223372036854775807 preceding and 9223372036854775807 following)
count(*) over (order by id rows between 9223372036854775807 following and 9223372036854775807 following)
count(*) over (order by id rows between 9223372036854775807 preceding and 3 preceding)
count(*) over (order by id rows between 3 following and 1 following)
count(*) over (order by id rows between 1 preceding and 3 preceding)
sum(i) over (order by id rows between -1 preceding and current row)
count(*) over (order by id rows between current row and -2 following)
count(*) over (order by i range between -1 preceding and current row)
count(*) over (order by f range between 'NaN' preceding and current row)
count(*) over (order by i groups between -1 preceding and current row)
ntile(0) over (order by id)
nth_value(i, 0) over (order by id)
""".strip().splitlines()


def literal(text, column):
    text = text.strip("'")
    if text == "NULL":
        return "NULL"
    return f"'{text}'::{column}"


def psql(sql):
    run = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", "\n".join(SETUP + [sql])], capture_output=True, text=True)
    return "ERROR" if run.returncode != 0 and "ERROR" in run.stderr else run.stdout.strip()


TYPES = dict(zip("id p i x s f r d t b".split(), "int4 int4 int4 int8 int2 float8 float4 date timestamp bool".split()))
SETUP = ["CREATE TEMP TABLE w (" + ", ".join(f"{c} {t}" for c, t in TYPES.items()) + ");"]
for row in ROWS:
    values = re.findall(r"'[^']*'|\S+", row)
    SETUP.append("INSERT INTO w VALUES (" + ", ".join(literal(v, t) for v, t in zip(values, TYPES.values())) + ");")

DAYS = "CASE WHEN d IS NULL THEN NULL WHEN isfinite(d) THEN d - date '2000-01-01' WHEN d > date '2000-01-01' THEN 2147483647 ELSE -2147483648 END"
MICROSECONDS = ("CASE WHEN t IS NULL THEN NULL WHEN isfinite(t) THEN (extract(epoch FROM t - timestamp '2000-01-01') * 1000000)::int8 "
                "WHEN t > timestamp '2000-01-01' THEN 9223372036854775807 ELSE -9223372036854775808 END")
COLUMNS = [{"d": DAYS, "t": MICROSECONDS}.get(c, c) for c in TYPES]


def quoted(text):
    return '"' + text.replace('"', '\\"') + '"'


def answer(case):
    over = case[case.index("over (") + 6:-1]
    over = re.sub(r"\b(rows|range|groups) between.*", "", over).strip()
    partition = re.match(r"partition by (\w+)", over)
    order = re.search(r"order by (.*)", over)
    keys = ([partition.group(1)] if partition else []) + ([order.group(1)] if order else []) + ["id"]
    return psql(f"SELECT string_agg(coalesce(v::text, 'NULL'), ' ' ORDER BY id) FROM (SELECT id, {case} AS v "
                f"FROM (SELECT * FROM w ORDER BY {', '.join(keys)} OFFSET 0) q) z")


print("/* window_cases.h: written by window_cases.py; PostgreSQL", psql("SHOW server_version").split()[0], "*/")
print("static const char *const CASE_ROWS[] = {")
for line in psql("SELECT concat_ws(' ', " + ", ".join(f"coalesce(({c})::text, 'NULL')" for c in COLUMNS) + ") FROM w ORDER BY id").splitlines():
    print(f"\t{quoted(line)},")
print("};\n")
print("/* What was asked, and the values in the order of id. */")
print("static const char *const CASES[][2] = {")
for case in CASES:
    print(f"\t{{{quoted(case)},\n\t {quoted(answer(case))}}},")
print("};")
