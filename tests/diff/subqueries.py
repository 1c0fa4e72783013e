"""Random subqueries: correlated scalars, IN and EXISTS over groups, relations that are themselves aggregated, groups over groups, CTEs used twice.

What compares with an aggregate's value is exact: integers, extremes, no sum of floats. A correlated subquery runs once for
each row in PostgreSQL, so the outer relation has few. A relation (joins.Side) is a table, a subquery or a CTE.
"""
import copy
import re

from expressions import COMPARISONS
from joins import KEY_FAMILIES, Side
from tables import INTS, TIMES, TYPES, Column, Range
from typed import generator

OUTER, INNER = (12, 60, 150), (2000, 2000, 600)
EXTREMES = (INTS, INTS, ("float4",), ("float8",), ("date",), ("timestamp",), ("timestamptz",))
TYPED_EXTREMES = (("numeric",), ("numeric",), ("text",), ("d_mood",))
COUNT = Range(0, 10**7)


class Subqueries:
    def __init__(self, queries):
        self.queries = queries
        self.joins = queries.joins

    def sides(self, rng, *most):
        found = [self.joins.side(rng, alias, n) for alias, n in zip("abcd", most)]
        for side, n in zip(found, most):
            if rng.random() < 0.8:			# an operation that might raise keeps a subquery from being rewritten
                side.sql, side.cte = (re.sub(r"id % \d+ = \d+", f"id < {n}", text) for text in (side.sql, side.cte))
        return found

    @staticmethod
    def head(sides, *more):
        ctes = [s.cte for s in sides if s.cte] + list(more)
        return f"WITH {', '.join(ctes)} " if ctes else ""

    def query(self, rng, Query, Aggregates):
        shape = rng.choices((self.correlated, self.selected, self.having, self.derived, self.over_groups, self.member, self.shared, self.listed, self.nested, self.raising,
                             self.lateral, self.arms),
                            (18, 10, 4, 16, 14, 14, 9, 6, 7, 5, 9, 9))[0]
        return shape(rng, Query, Aggregates)

    # -- parts --------------------------------------------------------------------

    def aggregate(self, rng, g, typed):
        """(an aggregate, the types of what can be compared with it)"""
        kind = rng.choice(("min", "max", "min", "max", "sum", "sum", "avg", "count", "count(*)", "distinct"))
        filter = f" FILTER (WHERE {g.bool(0)})" if rng.random() < 0.08 else ""
        if kind == "count(*)":
            return f"count(*){filter}", INTS
        if kind == "count":
            return f"count({g.any(rng.choice(TYPES), 1)}){filter}", INTS
        if kind == "distinct":
            return f"count(DISTINCT {g.leaf(rng.choice(INTS + TIMES))}){filter}", INTS
        if kind in ("sum", "avg"):
            family = ("numeric",) if typed and rng.random() < 0.5 else INTS
            return f"{kind}({g.any(rng.choice(family), rng.choice((0, 0, 1)))}){filter}", family
        family = rng.choice(EXTREMES + TYPED_EXTREMES * typed)
        found = [name for name, c in g.columns if c.type in family and getattr(c, "keyable", True)]	# equal values print alike
        if found:
            e = rng.choice(found)
        else:
            family, e = INTS, g.leaf("int4")
        return f"{kind}({e}){filter}", family

    def around(self, rng, agg, family):
        """A function of it that cannot raise."""
        if family not in (INTS, ("numeric",)) or rng.random() < 0.5:
            return agg
        return rng.choice((f"0.5 * {agg}", f"{agg} * 0.2", f"coalesce({agg}, 0)", f"coalesce({agg}, -1)", f"({agg})::numeric + 1", f"nullif({agg}, 1)", f"- ({agg})::numeric",
                           f"CASE WHEN {agg} > 3 THEN {agg} ELSE 0 END", f"CASE WHEN {agg} IS NULL THEN 7 END", f"greatest({agg}, 2)"))

    def scalar(self, rng, outer, inner, middle=None):
        """(a correlated subquery of one value, what compares with it)"""
        agg, family = self.aggregate(rng, inner.g, inner.table.typed)
        where = [self.joins.equality(rng, outer, inner)]
        if rng.random() < 0.2:
            where.append(self.joins.equality(rng, outer, inner))
        if rng.random() < 0.4:
            where.append(str(inner.g.bool(1)))
        if rng.random() < 0.1:				# no grouped relation can have these
            where.append(str(generator(rng, outer.columns + inner.columns).bool(1)) if rng.random() < 0.5 else self.joins.range(rng, outer, inner))
        source = inner.sql
        if middle:
            source = f"{inner.sql} JOIN {middle.sql} ON {self.joins.equality(rng, inner, middle)}"
        form = rng.random()
        tail = f" GROUP BY {inner.alias}.id % 1" if form < 0.04 else f" HAVING count(*) > {rng.choice((0, 2))}" if form < 0.08 else ""
        return f"(SELECT {self.around(rng, agg, family)} FROM {source} WHERE {' AND '.join(where)}{tail})", family

    def compared(self, rng, side, family, value):
        e = side.g.column(family)
        if e is None or rng.random() < 0.15:
            e = side.g.leaf(rng.choice(family)) if family != ("d_mood",) else e
        if e is None:
            return f"{value} IS NOT NULL"
        op = rng.choice(COMPARISONS + ("IS DISTINCT FROM",))
        return f"{e} {op} {value}" if rng.random() < 0.8 else f"{value} {op} {e}"

    def outputs(self, rng, Aggregates, g, ids):
        """A select list, and GROUP BY if it has aggregates."""
        if rng.random() < 0.45:
            items = ids + [f"{g.output(rng.choice((0, 0, 1)))} AS x{i}" for i in range(rng.randint(0, 2))]
            return ", ".join(items), ""
        aggregates = Aggregates(g, rng, float_sums=False)
        keys = [self.queries.group_key(rng, g) for _ in range(rng.choice((0, 0, 1)))]
        for key in keys:
            aggregates.key(key)
        for _ in range(rng.randint(1, 2)):
            aggregates.add()
        return aggregates.lists()[0], f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""

    def grouped(self, rng, side, alias, family=None):
        """(the body of a grouped subquery, the columns that it has under this alias: the key first); of this family, if it has such a column"""
        key = side.g.column(family) if family else None
        if key is None:
            family = rng.choice([f for f in KEY_FAMILIES if side.g.column(f)] or [("int4",)])
            key = side.g.column(family) or side.g.leaf("int4")
        columns = [(n, c) for n, c in side.columns if n == key.sql]
        column = copy.copy(columns[0][1]) if columns else Column("k", "int4", key.range)
        items, found = [f"{key} AS k"], [(f"{alias}.k", column)]
        for i in range(rng.randint(1, 3)):
            agg, _ = self.aggregate(rng, side.g, side.table.typed)
            items.append(f"{agg} AS v{i}")
            if agg.startswith("count") and "FILTER" not in agg:
                found.append((f"{alias}.v{i}", Column(f"v{i}", "int8", COUNT)))
            elif agg[:4] in ("min(", "max(") and agg.endswith(")"):
                of = [c for n, c in side.columns if n == agg[4:-1]]
                if of:
                    found.append((f"{alias}.v{i}", copy.copy(of[0])))
        tail = f" WHERE {side.g.bool(1)}" if rng.random() < 0.4 else ""
        tail += f" GROUP BY {key}"
        if rng.random() < 0.3:
            tail += f" HAVING {rng.choice(('count(*) > 1', 'count(*) < 40', 'min(' + side.alias + '.id) > 5', 'count(*) = 1'))}"
        return f"SELECT {', '.join(items)} FROM {side.sql}{tail}", found

    # -- shapes -------------------------------------------------------------------

    def correlated(self, rng, Query, Aggregates):
        a, b, c = self.sides(rng, rng.choice(OUTER), rng.choice(INNER), 100)
        middle = c if rng.random() < 0.15 else None
        value, family = self.scalar(rng, a, b, middle)
        where = [self.compared(rng, a, family, value)]
        if rng.random() < 0.4:
            where.append(str(a.g.bool(1)))
        if rng.random() < 0.15:
            value, family = self.scalar(rng, a, b)
            where.append(self.compared(rng, a, family, value))
        if rng.random() < 0.1:
            where = [f"({' OR '.join(where + [str(a.g.bool(0))])})"]
        used, source = [a, b] + [c] * (middle is not None), a.sql
        if middle is None and rng.random() < 0.25:
            source, used = f"{a.sql} {rng.choice(('JOIN', 'LEFT JOIN'))} {c.sql} ON a.id = c.id", [a, b, c]
        items, group = self.outputs(rng, Aggregates, a.g, ["a.id"])
        return Query(f"{self.head(used)}SELECT {items} FROM {source} WHERE {' AND '.join(rng.sample(where, len(where)))}{group}")

    def selected(self, rng, Query, Aggregates):
        a, b = self.sides(rng, rng.choice(OUTER), rng.choice(INNER))
        values = [self.scalar(rng, a, b)[0] for _ in range(rng.choice((1, 1, 2)))]
        where = f" WHERE {a.g.bool(1)}" if rng.random() < 0.4 else ""
        return Query(f"{self.head([a, b])}SELECT a.id, {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM {a.sql}{where}")

    def having(self, rng, Query, Aggregates):
        """A value for all groups, of a subquery that does not depend on the row."""
        a, b = self.sides(rng, 2000, 2000)
        agg, family = self.aggregate(rng, a.g, a.table.typed)
        other, _ = self.aggregate(rng, b.g, b.table.typed)
        mine = f"{agg} {rng.choice(COMPARISONS)} (SELECT {agg.replace('a.', 'b.') if a.table is b.table else 'count(*)' if family == INTS else agg.replace('a.', 'b.')} FROM {b.sql})"
        if family != INTS and a.table is not b.table:
            mine = f"count(*) > (SELECT count(*) / 100 FROM {b.sql})"
        key = self.queries.group_key(rng, a.g)
        return Query(f"{self.head([a, b])}SELECT {key} AS k, {agg} AS v, (SELECT {other} FROM {b.sql}) AS w FROM {a.sql} GROUP BY 1 HAVING {mine}")

    def derived(self, rng, Query, Aggregates):
        """A grouped subquery, or one that PostgreSQL does not pull up, joined with tables."""
        a, b, c = self.sides(rng, *rng.choice(((2000, 2000, 60), (600, 2000, 600), (60, 600, 20))))
        families = [f for f in KEY_FAMILIES if a.g.column(f) and b.g.column(f)]
        family = rng.choice(families or [INTS])
        if rng.random() < 0.7:
            body, columns = self.grouped(rng, b, "s", family)
        elif rng.random() < 0.5:
            body, columns = f"SELECT DISTINCT {b.g.column(family) or 'b.id'} AS k FROM {b.sql}", []
        else:
            body, columns = f"SELECT b.id AS k, row_number() OVER (ORDER BY b.id) AS v0 FROM {b.sql}", [("s.v0", Column("v0", "int8", COUNT))]
            family = INTS
        mine = a.g.column(family) or "a.id"
        if " AS k" in body and "b.id AS k" in body:
            mine = "a.id"
        if rng.random() < 0.12:			# texts that no program computes, on both sides
            body, columns = f"SELECT {self.queries.unknown(rng, b.g)} AS k, count(*) AS v0 FROM {b.sql} GROUP BY 1", [("s.v0", Column("v0", "int8", COUNT))]
            mine = f"({a.g.column(INTS) or 'a.id'})::text"
        kind = rng.choice(("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        source, used, all = f"{a.sql} {kind} ({body}) s ON {mine} = s.k", [a, b], a.columns + columns
        if rng.random() < 0.25 and kind != "RIGHT JOIN":
            source, used, all = f"{source} JOIN {c.sql} ON a.id = c.id", [a, b, c], all + c.columns
        g = generator(rng, all)
        where = f" WHERE {g.bool(1)}" if rng.random() < 0.4 else ""
        items, group = self.outputs(rng, Aggregates, g, ["a.id", "s.k"])
        return Query(f"{self.head(used)}SELECT {items} FROM {source}{where}{group}")

    def over_groups(self, rng, Query, Aggregates):
        """Groups of groups, with conditions between."""
        a, = self.sides(rng, 10**9)
        body, columns = self.grouped(rng, a, "s")
        g = generator(rng, columns)
        where = f" WHERE {g.bool(1)}" if rng.random() < 0.35 else ""
        if rng.random() < 0.5:
            key = rng.choice([n for n, _ in columns] + ["s.v0", "s.v0 % 5" if "AS v0" in body and "count(" in body.split(" AS v0")[0] else "s.v0"])
            agg = rng.choice(["count(*)", "count(s.k)", "min(s.v0)", "max(s.v0)", "count(DISTINCT s.k)"])
            return Query(f"{self.head([a])}SELECT {key} AS c, {agg} AS n, count(*) AS m FROM ({body}) s{where} GROUP BY 1", any_decimals=True)
        return Query(f"{self.head([a])}SELECT count(*), min(s.k), max(s.v0), count(s.v0) FROM ({body}) s{where}".replace("min(s.k)", "count(s.k)" if any(c.type in ("bool",) for _, c in columns[:1]) else "min(s.k)"), any_decimals=True)

    def member(self, rng, Query, Aggregates):
        """IN, ANY, ALL and EXISTS, over groups, rows and joins, with nulls and without."""
        a, b = self.sides(rng, rng.choice((60, 600, 2000)), rng.choice((60, 600, 2000)))
        family = rng.choice([f for f in KEY_FAMILIES if a.g.column(f) and b.g.column(f)] or [INTS])
        mine, theirs = (side.g.column(family) or f"{side.alias}.id" for side in (a, b))
        form = rng.choice(("groups", "groups", "not in", "not in", "not null", "any", "by row", "by row", "exists", "ids", "join", "join", "exists join", "exists join"))
        more_sides = []
        if form == "join":
            _, _, c = self.sides(rng, 10, 10, rng.choice((60, 150)))
            more_sides = [c]
            met = self.joins.equality(rng, b, c)
            source, which = rng.choice(((f"{b.sql} JOIN {c.sql} ON {met}", "true"), (f"{b.sql} LEFT JOIN {c.sql} ON {met}", "true"),
                                        (b.sql, f"EXISTS (SELECT FROM {c.sql} WHERE {met})"), (b.sql, f"b.id IN (SELECT c.id FROM {c.sql})")))
            where = f"{mine} {rng.choice(('IN', 'IN', 'IN', 'NOT IN'))} (SELECT {theirs} FROM {source} WHERE {which} AND {b.g.bool(1)})"
        elif form == "exists join":
            _, _, c = self.sides(rng, 10, 10, rng.choice((60, 150)))
            more_sides = [c]
            met = [self.joins.equality(rng, a, b)] + [self.joins.equality(rng, a, rng.choice((b, c)))] * (rng.random() < 0.3)
            where = f"{rng.choice(('', 'NOT '))}EXISTS (SELECT FROM {b.sql} {rng.choice(('JOIN', 'LEFT JOIN'))} {c.sql} ON {self.joins.equality(rng, b, c)} WHERE {' AND '.join(met)} AND {b.g.bool(1)})"
        elif form == "groups":
            where = f"{mine} {rng.choice(('IN', 'IN', 'NOT IN'))} (SELECT {theirs} FROM {b.sql}{f' WHERE {b.g.bool(0)}' if rng.random() < 0.3 else ''} GROUP BY {theirs}" \
                    f"{rng.choice(('', ' HAVING count(*) > 1', ' HAVING count(*) > 20', ' HAVING max(b.id) > 100'))})"
        elif form == "not in":
            where = f"{mine} NOT IN (SELECT {theirs} FROM {b.sql}{f' WHERE {b.g.bool(1)}' if rng.random() < 0.6 else ''})"
        elif form == "not null":
            where = f"{mine} NOT IN (SELECT {theirs} FROM {b.sql} WHERE {theirs} IS NOT NULL) AND {mine} IS NOT NULL"
        elif form == "ids":
            where = f"a.id {rng.choice(('NOT IN', 'NOT IN', 'IN'))} (SELECT b.id FROM {b.sql} WHERE {b.g.bool(1)})"
        elif form == "by row":
            test = rng.choice((f"{mine} {rng.choice(COMPARISONS)} {rng.choice(('ANY', 'ALL'))} (SELECT {theirs}", f"{mine} NOT IN (SELECT {theirs}", f"({mine}, a.id) NOT IN (SELECT {theirs}, b.id"))
            where = f"{test} FROM {b.sql} WHERE {self.joins.equality(rng, a, b)}{f' AND {b.g.bool(1)}' if rng.random() < 0.4 else ''})"
            a, = [a] if a.rows <= 150 else [Side(rng, a.table, "a", 100)]
        elif form == "any":
            where = f"{mine} {rng.choice(COMPARISONS)} {rng.choice(('ANY', 'ALL'))} (SELECT {theirs} FROM {b.sql} WHERE b.id < 40)"
        else:
            where = f"{rng.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {b.sql} WHERE {self.joins.equality(rng, a, b)} GROUP BY b.id % 3 HAVING count(*) > {rng.choice((1, 2))})"
            a, = [a] if a.rows <= 150 else [Side(rng, a.table, "a", 100)]
        more = f" AND {a.g.bool(1)}" if rng.random() < 0.3 else ""
        items, group = self.outputs(rng, Aggregates, a.g, ["a.id"])
        return Query(f"{self.head([a, b] + more_sides)}SELECT {items} FROM {a.sql} WHERE {where}{more}{group}")

    def arms(self, rng, Query, Aggregates):
        """EXISTS and IN as parts of conditions, and as values."""
        a, b = self.sides(rng, rng.choice(OUTER), rng.choice(INNER))
        family = rng.choice([f for f in KEY_FAMILIES if a.g.column(f) and b.g.column(f)] or [INTS])
        mine, theirs = (side.g.column(family) or f"{side.alias}.id" for side in (a, b))
        tests = [f"{rng.choice(('', 'NOT '))}EXISTS (SELECT FROM {b.sql} WHERE {self.joins.equality(rng, a, b)} AND {b.g.bool(1)})",
                 f"{mine} {rng.choice(('IN', 'IN', 'IN', 'NOT IN'))} (SELECT {theirs} FROM {b.sql} WHERE {b.g.bool(1)})"]
        test = rng.choice(tests)
        if rng.random() < 0.25:
            return Query(f"{self.head([a, b])}SELECT a.id, {rng.choice((test, f'CASE WHEN {test} THEN 1 ELSE 2 END'))} AS v FROM {a.sql} WHERE {a.g.bool(0)}")
        if rng.random() < 0.3:
            test = " OR ".join(tests)
        items, group = self.outputs(rng, Aggregates, a.g, ["a.id"])
        return Query(f"{self.head([a, b])}SELECT {items} FROM {a.sql} WHERE {rng.choice((f'{a.g.bool(0)} OR {test}', f'({test} OR {a.g.bool(0)}) AND {a.g.bool(0)}'))}{group}")

    def lateral(self, rng, Query, Aggregates):
        """Aggregates of what belongs to each row of another relation."""
        a, b, c = self.sides(rng, rng.choice(OUTER), rng.choice(INNER), 60)
        if rng.random() < 0.4:
            return self.rows_of_keys(rng, Query, a, b)
        aggs = [self.aggregate(rng, b.g, b.table.typed) for _ in range(rng.choice((1, 2)))]
        values = [self.around(rng, *agg) if rng.random() < 0.2 else agg[0] for agg in aggs]
        source, used = (f"{b.sql} JOIN {c.sql} ON {self.joins.equality(rng, b, c)}", [a, b, c]) if rng.random() < 0.3 else (b.sql, [a, b])
        where = f"{self.joins.equality(rng, a, b)}{f' AND {b.g.bool(1)}' if rng.random() < 0.4 else ''}"
        body = f"(SELECT {', '.join(f'{v} AS v{i}' for i, v in enumerate(values))} FROM {source} WHERE {where}) l"
        test = self.compared(rng, a, aggs[0][1], "l.v0")
        tail = rng.choice((f", LATERAL {body}", f" CROSS JOIN LATERAL {body}", f" LEFT JOIN LATERAL {body} ON true", f" JOIN LATERAL {body} ON {test}", f", LATERAL {body} WHERE {test}",
                           f" LEFT JOIN LATERAL {body} ON true WHERE {a.g.bool(0)}"))
        if rng.random() < 0.3:
            return Query(f"{self.head(used)}SELECT count(*), count(l.v0), min(a.id) FROM {a.sql}{tail}")
        return Query(f"{self.head(used)}SELECT a.id, l.* FROM {a.sql}{tail}")

    def rows_of_keys(self, rng, Query, a, b):
        """Groups, or the first rows, of what belongs to each row of another relation."""
        where = f"{self.joins.equality(rng, a, b)}{f' AND {b.g.bool(1)}' if rng.random() < 0.4 else ''}"
        key = b.g.column(INTS) or "b.id"
        order = f"ORDER BY {rng.choice((key, 'b.id % 5', key))} {rng.choice(('', 'DESC', 'NULLS FIRST'))}, b.id LIMIT {rng.choice((1, 1, 2, 3, 0))}"
        group = f"GROUP BY {key}{rng.choice(('', f' ORDER BY count(*) DESC, {key} LIMIT 2', ' HAVING count(*) > 1'))}"
        body = rng.choice((f"(SELECT b.id AS x, {key} AS y FROM {b.sql} WHERE {where} {order}) l", f"(SELECT {key} AS x, count(*) AS y FROM {b.sql} WHERE {where} {group}) l"))
        tail = rng.choice((f", LATERAL {body}", f" CROSS JOIN LATERAL {body}", f" LEFT JOIN LATERAL {body} ON true", f" LEFT JOIN LATERAL {body} ON l.x > a.id", f" JOIN LATERAL {body} ON l.y > 2 WHERE {a.g.bool(0)}"))
        return Query(f"{self.head([a, b])}SELECT {rng.choice(('a.id, l.*', 'count(*), count(l.x), min(a.id), sum(l.y)'))} FROM {a.sql}{tail}")

    def shared(self, rng, Query, Aggregates):
        """A CTE that is used twice."""
        a, b = self.sides(rng, 2000, rng.choice(OUTER))
        body, columns = self.grouped(rng, a, "s") if rng.random() < 0.7 else (f"SELECT a.id AS k, {a.g.leaf('int4')} AS v0 FROM {a.sql} WHERE {a.g.bool(1)}", [("s.k", Column("k", "int4", Range(0, 10**6)))])
        cte = f"s AS {rng.choice(('', '', 'MATERIALIZED ', 'NOT MATERIALIZED '))}({body})"
        head = self.head([a, b], cte)
        k = columns[0][1]
        near = [n for n, c in b.columns if c.type == k.type and getattr(c, "collation", "") == getattr(k, "collation", "")]
        joined = f"SELECT b.id, s.* FROM {b.sql} JOIN s ON s.k = {rng.choice(near)}" if near else "SELECT s.* FROM s"
        extreme = "count" if k.type in ("bool", "bytea", "uuid", '"char"') else rng.choice(("min", "max"))
        return Query(head + rng.choice((
            f"{joined} WHERE s.v0 = (SELECT max(v0) FROM s)" if "v0" in body and not any(c.type in ("bool", "uuid", "bytea") for n, c in columns if n == "s.v0") else joined,
            "SELECT x.k, y.v0 FROM s x JOIN s y ON x.k = y.k",
            f"SELECT count(*) FROM s x WHERE x.k IN (SELECT k FROM s WHERE v0 IS NOT NULL)",
            f"SELECT k, v0 FROM s WHERE v0 IS NOT NULL UNION ALL SELECT k, v0 FROM s",
            f"{joined} WHERE EXISTS (SELECT FROM s t WHERE t.k = s.k AND t.v0 IS NOT NULL)",
            f"SELECT (SELECT {extreme}(k) FROM s), (SELECT count(*) FROM s), count(*) FROM {b.sql}")))

    def listed(self, rng, Query, Aggregates):
        """VALUES, functions and arrays, joined with a table."""
        a, = self.sides(rng, 2000)
        type = rng.choice(INTS + TIMES)
        mine = a.g.column((type,))
        if mine is None:
            type, mine = "int4", "a.id"
        n = rng.choice((1, 3, 30))
        rows = ", ".join(f"({rng.choice(('NULL::' + type, a.g.literal(type)[0], a.g.literal(type)[0], a.g.literal(type)[0]))}, {i})" for i in range(n))
        s, k = rng.choice(((f"(VALUES {rows}) s (k, n)", mine), (f"(VALUES {rows}) s (k, n)", mine), ("generate_series(0, 30, 2) s (k)", "a.id % 50"), ("unnest('{1,2,2,NULL,7}'::int4[]) s (k)", "a.id % 9"),
                           ("generate_series(1, 300) s (k)", "a.id")))
        kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "EXISTS", "NOT EXISTS"))
        where = f" WHERE {a.g.bool(1)}" if rng.random() < 0.4 else ""
        items, group = self.outputs(rng, Aggregates, a.g, ["a.id"])
        if "EXISTS" in kind:
            return Query(f"{self.head([a])}SELECT {items} FROM {a.sql}{where}{' AND' if where else ' WHERE'} {kind} (SELECT FROM {s} WHERE s.k = {k}){group}")
        return Query(f"{self.head([a])}SELECT {items} FROM {a.sql} {kind} {s} ON s.k = {k}{where}{group}")

    def nested(self, rng, Query, Aggregates):
        """Subqueries in subqueries; the innermost may depend on the outermost."""
        a, b, c = self.sides(rng, rng.choice((12, 40)), rng.choice((60, 150)), rng.choice((60, 600)))
        outer = rng.choice((b, b, a))
        value, family = self.scalar(rng, outer, c)
        test = self.compared(rng, b, family, value)
        condition = self.joins.equality(rng, a, b)
        items, group = self.outputs(rng, Aggregates, a.g, ["a.id"])
        head = self.head([a, b, c])
        agg, _ = self.aggregate(rng, b.g, b.table.typed)
        forms = [f"SELECT {items} FROM {a.sql} WHERE {rng.choice(('', 'NOT '))}EXISTS (SELECT FROM {b.sql} WHERE {condition} AND {test}){group}",
                 f"SELECT {items} FROM {a.sql} WHERE a.id {rng.choice(('IN', 'NOT IN'))} (SELECT b.id FROM {b.sql} WHERE {test}){group}",
                 f"SELECT a.id, (SELECT {agg} FROM {b.sql} WHERE {condition} AND {test}) AS v FROM {a.sql}"]
        if outer is b:
            forms += [f"SELECT count(*), max(s.id) FROM (SELECT b.id FROM {b.sql} WHERE {test}) s JOIN {a.sql} ON a.id = s.id",
                      f"SELECT s.* FROM (SELECT b.id, {value} AS v FROM {b.sql}) s LEFT JOIN {a.sql} ON a.id = s.id"]
        return Query(head + rng.choice(forms))

    def raising(self, rng, Query, Aggregates):
        """What raises for groups that no row asks for must not raise; what a row asks for must."""
        a, b = self.sides(rng, rng.choice(OUTER), rng.choice(INNER))
        e = b.g.raising()
        value = f"(SELECT {rng.choice(('max', 'count', 'count'))}({e}) FROM {b.sql} WHERE {self.joins.equality(rng, a, b)})"
        if value.startswith("(SELECT max") and e.type in ("bool",):
            value = value.replace("max", "count", 1)
        where = "" if rng.random() < 0.5 else f" WHERE a.id < {rng.choice((0, 1, 3))}"
        if rng.random() < 0.5:
            return Query(f"{self.head([a, b])}SELECT a.id, {value} AS v FROM {a.sql}{where}", raising=True)
        return Query(f"{self.head([a, b])}SELECT a.id FROM {a.sql} WHERE {value} IS NOT NULL", raising=True)
