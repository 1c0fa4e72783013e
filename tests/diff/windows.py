"""Random window functions over tables, joins and groups: several windows, all frames, filters, and what reads their columns.

Orders are total (by ids, last) where the answer depends on which of two peers is first. No sums of floats: PostgreSQL's
depend on the order.
"""
from orders import DIRECTIONS
from tables import INTS, TIMES, TYPES
from typed import generator

KEYS = INTS + TIMES + ("bool", "float8", "numeric", "text", "bpchar", "d_mood", "variable text")
RANGES = {"int2": ("0", "1", "100"), "int4": ("0", "3", "1000"), "int8": ("1", "100000"), "float8": ("0.5::float8", "100.0::float8"),
          "date": ("'1 day'::interval", "'100 days'::interval", "'1 month'::interval"),
          "timestamp": ("'1 day'::interval", "'90 minutes'::interval", "'40 days 1 hour'::interval"),
          "timestamptz": ("'1 day'::interval", "'90 minutes'::interval"), "numeric": ("0::numeric", "1.005::numeric", "250::numeric")}


class Windows:
    def __init__(self, queries):
        self.queries = queries

    # -- parts --------------------------------------------------------------------

    def column(self, rng, g, types):
        found = [(n, c) for n, c in g.columns if c.type in types]
        return rng.choice(found) if found else (None, None)

    def bounds(self, rng, preceding, following):
        """A frame's start and end that PostgreSQL takes."""
        points = ["UNBOUNDED PRECEDING", preceding, "CURRENT ROW", following, "UNBOUNDED FOLLOWING"]
        while True:
            a, b = rng.randint(0, 3), rng.randint(1, 4)
            if a <= b and not (a == b and a == 2 and rng.random() < 0.5):
                return f"BETWEEN {points[a]} AND {points[b]}"

    def spec(self, rng, g, ids):
        """(PARTITION BY, ORDER BY, frame or none, do rows have a total order?)"""
        parts = list(dict.fromkeys(n for n, _ in (self.column(rng, g, KEYS) for _ in range(rng.choice((0, 1, 1, 2)))) if n))
        partition = f"PARTITION BY {', '.join(parts)}" if parts else ""
        form = rng.random()
        if form < 0.15:
            return partition, "", "", False
        if form < 0.3:
            name, c = self.column(rng, g, tuple(RANGES))
            if name:
                a, b = (rng.choice(RANGES[c.type]) for _ in range(2))
                return partition, f"ORDER BY {name}{rng.choice(('', ' DESC', ' NULLS FIRST'))}", "RANGE " + self.bounds(rng, f"{a} PRECEDING", f"{b} FOLLOWING"), False
        keys = [f"{n}{rng.choice(DIRECTIONS[:10])}" for n, _ in (self.column(rng, g, KEYS) for _ in range(rng.choice((1, 1, 2)))) if n]
        total = rng.random() < 0.7 or not keys
        keys += [f"{i}{rng.choice(('', ' DESC'))}" for i in ids] if total else []
        mode = rng.choice(("", "", "ROWS", "ROWS", "GROUPS", "RANGE") if total else ("", "", "GROUPS", "RANGE"))
        n = rng.choice((0, 1, 2, 5, 100))
        frame = f"{mode} " + self.bounds(rng, f"{n} PRECEDING", f"{rng.choice((0, 1, 3))} FOLLOWING") if mode in ("ROWS", "GROUPS") else \
            f"RANGE {rng.choice(('BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING', 'BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', 'CURRENT ROW'))}" if mode else ""
        return partition, "ORDER BY " + ", ".join(keys), frame, total

    def call(self, rng, g, total):
        """A function; without a total order one that is the same for peers."""
        any_column = rng.choice([n for n, c in g.columns])
        number, _ = self.column(rng, g, INTS + ("numeric",))
        number = number or "1"
        kind = rng.choice(("rank", "value", "value", "sum", "sum", "extreme", "count", "condition") if total else ("rank", "sum", "sum", "extreme", "count", "condition"))
        filter = f" FILTER (WHERE {g.bool(rng.choice((0, 1)))})" if rng.random() < 0.15 else ""
        if kind == "rank":
            return rng.choice(("rank()", "dense_rank()", "percent_rank()", "cume_dist()") + ("row_number()", "row_number()", f"ntile({rng.choice((1, 3, 100))})") * total)
        if kind == "value":
            n, c = self.column(rng, g, ("int4", "int8", "date"))
            instead = f", {n}, {rng.choice((1, 2))}" if n else ""
            default = {"int4": "-1", "int8": "0::int8", "date": "'2000-01-01'::date"}.get(c.type if c else "", "")
            return rng.choice((f"lag({any_column})", f"lead({any_column}, {rng.choice((0, 1, 2, 7, -1))})", f"first_value({any_column})", f"last_value({any_column})",
                               f"nth_value({any_column}, {rng.choice((1, 2, 5))})") + ((f"lag({instead[2:]}, {default})",) if n and default else ()))
        if kind == "sum":
            return f"{rng.choice(('sum', 'sum', 'avg'))}({number}){filter}"
        if kind == "extreme":
            n, _ = self.column(rng, g, INTS + TIMES + ("float8", "numeric", "text", "time"))
            return f"{rng.choice(('min', 'max'))}({n or number}){filter}"
        if kind == "count":
            return f"count({rng.choice(('*', any_column))}){filter}"
        return f"{rng.choice(('bool_and', 'bool_or', 'every'))}({g.bool(0)}){filter}"

    def calls(self, rng, g, ids):
        specs = [self.spec(rng, g, ids) for _ in range(rng.choice((1, 1, 2, 3)))]
        calls = []
        for _ in range(rng.randint(1, 4)):
            partition, order, frame, total = rng.choice(specs)
            call = self.call(rng, g, total)
            if call.startswith(("first_value", "last_value", "nth_value")) and not total:
                continue
            calls.append(f"{call} OVER ({' '.join(part for part in (partition, order, frame) if part)})")
        return calls or ["count(*) OVER ()"]

    # -- shapes -------------------------------------------------------------------

    def query(self, rng, Query):
        return rng.choices((self.rows, self.joined, self.groups), (5, 3, 3))[0](rng, Query)

    def around(self, rng, Query, sql, n, ids):
        """The rows themselves, or what is made of them."""
        form = rng.random()
        if form < 0.4:
            return Query(sql)
        if form < 0.6:
            return Query(f"{sql} ORDER BY {', '.join(str(i + 1) for i in range(ids))}", ordered=True)
        if form < 0.75:
            return Query(f"SELECT * FROM ({sql}) s WHERE w{rng.randrange(n)} IS NOT NULL AND rn <= {rng.choice((1, 3, 20))}" if "AS rn" in sql else f"SELECT * FROM ({sql}) s WHERE w0 IS NULL")
        if form < 0.9:
            return Query(f"SELECT w0, count(*), count(w{n - 1}) FROM ({sql}) s GROUP BY w0")
        return Query(f"WITH w AS ({sql}) SELECT a.*, b.w0 AS other FROM w a JOIN w b ON a.k0 = b.k0 + 1") if ids == 1 else Query(sql)

    def rows(self, rng, Query):
        table, g = self.queries.source(rng)
        calls = self.calls(rng, g, ["id"])
        number = ", row_number() OVER (ORDER BY id) AS rn" if rng.random() < 0.3 else ""
        items = ", ".join(f"{c} AS w{i}" for i, c in enumerate(calls))
        return self.around(rng, Query, f"SELECT id AS k0, {items}{number} FROM {table.name}{self.queries.where(rng, g)}", len(calls), 1)

    def joined(self, rng, Query):
        joins = self.queries.joins
        while True:
            ctes, source, where, visible, _, many = joins.make(rng)
            if not many:
                break
        g = generator(rng, [c for side in visible for c in side.columns])
        ids = [f"{side.alias}.id" for side in visible]
        calls = self.calls(rng, g, ids)
        items = ", ".join([f"{i} AS k{n}" for n, i in enumerate(ids)] + [f"{c} AS w{i}" for i, c in enumerate(calls)])
        head = f"WITH {', '.join(ctes)} " if ctes else ""
        sql = f"{head}SELECT {items} FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        return self.around(rng, Query, sql, len(calls), len(ids)) if not head else Query(sql)

    def groups(self, rng, Query):
        """Windows over groups."""
        table, g = self.queries.source(rng)
        keys = list(dict.fromkeys(n for n, c in (self.column(rng, g, INTS + ("date", "bool", "text", "numeric")) for _ in range(rng.choice((1, 2, 2)))) if n)) or ["id % 7"]
        number, _ = self.column(rng, g, INTS + ("numeric",))
        number = number or "id"
        part = f"PARTITION BY {rng.choice(keys)}" if rng.random() < 0.6 else ""
        order = f"ORDER BY {', '.join(f'{k}{rng.choice(DIRECTIONS[:10])}' for k in rng.sample(keys, len(keys)))}"
        frame = rng.choice(("", "", "ROWS 2 PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"))
        calls = [f"{f} OVER ({part} {o})" for f, o in (
            (f"sum(sum({number}))", f"{order} {frame}"), ("sum(count(*))", f"{order} {frame}"), (f"avg(sum({number}))", ""), ("max(count(*))", ""),
            ("row_number()", order), ("rank()", "ORDER BY count(*) DESC"), ("lag(count(*))", order), (f"sum({number}) - lag(sum({number}))", order), (f"first_value(min({number}))", order)) if "-" not in f]
        calls = rng.sample(calls, rng.randint(1, 3))
        items = ", ".join([f"{k} AS k{i}" for i, k in enumerate(keys)] + [f"{c} AS w{i}" for i, c in enumerate(calls)])
        having = " HAVING count(*) > 1" if rng.random() < 0.2 else ""
        sql = f"SELECT {items} FROM {table.name}{self.queries.where(rng, g)} GROUP BY {', '.join(keys)}{having}"
        if rng.random() < 0.6:
            return Query(sql)
        # quotients, which programs may leave to PostgreSQL
        condition = rng.choice(("w0 <= 1", "w0 <= 10", "w0 <= 1000", "CASE WHEN w0 > 0 THEN abs(w0 - 7) / w0::numeric END > 0.3", "100 / (w0::numeric + 3) / 7 < 1.5 AND w0 > 1"))
        order = f" ORDER BY {', '.join(str(i + 1) for i in range(len(keys)))}" if rng.random() < 0.3 else ""
        return Query(f"SELECT * FROM ({sql}) s WHERE {condition}{order}", ordered=order != "")
