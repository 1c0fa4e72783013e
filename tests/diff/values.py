"""Random values of groups that other relations' rows meet: averages, quotients, sums shown with a scale of their own, sums of many digits.

Groups are joined, put together by UNION ALL, grouped again, compared with each other and shown, so that no one column of theirs is the value.
"""
from expressions import COMPARISONS
from tables import INTS

OUTER, INNER = 400, 2000


class Values:
    def __init__(self, queries):
        self.queries = queries
        self.joins = queries.joins

    def query(self, rng, Query):
        self.rng = rng
        a, b, c = (self.joins.side(rng, alias, n) for alias, n in zip("abc", (OUTER, INNER, INNER)))
        kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN"))
        body = self.groups(b)
        if rng.random() < 0.3:
            body = f"{body} UNION ALL {self.groups(rng.choice((b, c)))}"
        source, values = f"{a.sql} {kind} ({body}) s ON {self.key(a)} = s.k", ["s.v0", "s.v1"]
        if rng.random() < 0.4:
            source, values = f"{source} {rng.choice(('JOIN', 'LEFT JOIN'))} ({self.groups(c)}) t ON s.k = t.k", values + ["t.v0", "t.v1"]
        if rng.random() < 0.5:
            source += f" WHERE {self.condition(a, values)}"
        with_ = ", ".join(side.cte for side in (a, b, c) if side.cte)
        head = f"WITH {with_} " if with_ else ""
        if rng.random() < 0.5:
            return Query(f"{head}SELECT a.id, s.k, {', '.join(self.shown(rng.choice(values)) for _ in range(rng.choice((1, 2))))} FROM {source}")
        key = rng.choice(("a.id % 5", "s.k", self.key(a)))
        outer = ", ".join(f"{rng.choice(('sum', 'avg', 'count', 'sum'))}({self.shown(rng.choice(values))})" for _ in range(rng.choice((1, 2))))
        return Query(f"{head}SELECT {key} AS g, {outer}, count(*) FROM {source} GROUP BY 1")

    def key(self, side):
        return str(side.g.column(INTS) or f"{side.alias}.id % 40")

    def number(self, side):
        g = side.g
        if side.table.typed and self.rng.random() < 0.7:
            return str(g.any("numeric", self.rng.choice((0, 0, 1))))
        return f"({g.any(self.rng.choice(INTS), 0)}){'::numeric' if self.rng.random() < 0.3 else ''}"

    def aggregate(self, side):
        rng, x = self.rng, self.number(side)
        test = str(side.g.bool(0))
        return rng.choice((f"avg({x})", f"avg({x})", f"sum({x})", f"sum({x}) / count(*)", f"sum({x}) / nullif(count(*) - 2, 0)", f"sum(CASE WHEN {test} THEN {x} ELSE 0 END)",
                           f"sum(CASE WHEN {test} THEN {x}::numeric ELSE 0.50 END)", f"avg(CASE WHEN {test} THEN {x} END)", f"sum({x}::numeric / 2)", f"avg({x}::numeric / 40)",
                           f"sum({x}) + count(*)", f"coalesce(avg({x}), 0)", f"CASE WHEN count(*) > 3 THEN sum({x}) ELSE 0 END", f"sum({x}) FILTER (WHERE {test})",
                           f"avg({x}) FILTER (WHERE {test})", f"max({x})::numeric - min({x})", f"sum({x}) / nullif(sum({self.number(side)}), 0)", f"stddev_samp({x})", f"sum({x}::numeric * 0.125)",
                           f"count(DISTINCT {x})", f"sum(coalesce({x}::numeric, 0.0))"))

    def groups(self, side):
        rng = self.rng
        where = f" WHERE {side.g.bool(1)}" if rng.random() < 0.3 else ""
        having = rng.choice((" HAVING count(*) > 1", f" HAVING avg({self.number(side)}) > 2")) if rng.random() < 0.2 else ""
        # the arms' columns are of one type
        return f"SELECT ({self.key(side)})::int8 AS k, ({self.aggregate(side)})::numeric AS v0, ({self.aggregate(side)})::numeric AS v1 FROM {side.sql}{where} GROUP BY 1{having}"

    def shown(self, value):
        return self.rng.choice((value, value, value, f"{value} * 2", f"{value} + 0.5", f"{value} / 3", f"coalesce({value}, 0)", f"round({value}, 2)", f"- {value}"))

    def condition(self, a, values):
        rng = self.rng
        one, other = rng.choice(values), rng.choice(values)
        return rng.choice((f"{one} {rng.choice(COMPARISONS)} {rng.choice((0, 1, 2.5, '10.00', '0.20000000000000000000 * 100'))}", f"{one} {rng.choice(COMPARISONS)} {other}",
                           f"{self.key(a)} > 0.1 * {one}", f"{one} * 1.2 > {other}", f"CASE WHEN {one} > 0 THEN {other} / {one} END > 1", f"{one} IS NOT NULL", f"{one} / 2 < {other} + 1"))
