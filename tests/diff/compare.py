"""Whether two answers are equal: as multisets of text, float sums by the rule.

The rule (docs/semantics.md): the VM returns the exact sum, rounded once;
PostgreSQL's own additions may be off by n * 2^-53 * sum |x|. So an engine's sum
s is right if |s - r| <= n * 2^-53 * sum |x| for the reference r, and its
average likewise, divided by n. sum(float4) is compared with the float4 nearest
to such a sum. Variances are compared by what their condition makes of 8 n * 2^-53.
"""
import math
import re
import struct


def float4(v):
    try:
        return struct.unpack("f", struct.pack("f", v))[0]
    except OverflowError:
        return math.copysign(math.inf, v)


def variances_equal(kind, got, reference, mean_square, rows):
    """`mean_square` of the values; of a sample the divisor is less by one, which at most doubles what it may be off by."""
    if got is None or reference is None:
        return got is None and reference is None
    g, r, m = float(got), float(reference), 2 * float(mean_square)
    if not (math.isfinite(g) and math.isfinite(r) and math.isfinite(m)):
        return got == reference
    if kind.startswith("stddev"):
        g, r = g * g, r * r
    u = 8 * rows * 2.0**-53
    return abs(g - r) <= u * math.sqrt(m * r) + u * u * m + 2.0**-50 * r


def pairs_equal(kind, got, reference, moments):
    """Of two variables: `moments` are regr_count, regr_avgx, regr_avgy, regr_sxx, regr_syy and regr_sxy of PostgreSQL."""
    if got is None or reference is None:
        n, sx, sy = (float(moments[i] or 0) for i in (0, 3, 4))
        # what PostgreSQL makes of values that are all equal may be no zero
        return got == reference or kind in ("corr", "regr_r2", "regr_slope", "regr_intercept") and min(abs(sx), abs(sy)) <= 64 * n * 2.0**-53 * n * max(float(moments[1]) ** 2, float(moments[2]) ** 2)
    g, r = float(got), float(reference)
    n, ax, ay, sxx, syy, sxy = (float(m) for m in moments)
    if not all(map(math.isfinite, (g, r, n, ax, ay, sxx, syy, sxy))):
        return got == reference
    u = 8 * n * 2.0**-53
    qx, qy = sxx + n * ax * ax, syy + n * ay * ay
    dx, dy = u * math.sqrt(qx * sxx) + u * u * qx, u * math.sqrt(qy * syy) + u * u * qy
    dxy = u * (math.sqrt(qx * syy) + math.sqrt(qy * sxx)) + u * u * math.sqrt(qx * qy)
    few = 2.0**-49 * abs(r)
    if kind in ("regr_avgx", "regr_avgy"):
        return abs(g - r) <= 2.0**-52 * n * math.sqrt((qx if kind == "regr_avgx" else qy) / n) + few
    if kind in ("regr_sxx", "regr_syy"):
        return abs(g - r) <= (dx if kind == "regr_sxx" else dy) + few
    if kind in ("regr_sxy", "covar_pop", "covar_samp"):
        return abs(g - r) <= dxy / {"regr_sxy": 1, "covar_pop": n, "covar_samp": max(n - 1, 1)}[kind] + few
    if sxx <= 4 * dx or syy <= 4 * dy:		# noise by noise
        return True
    slope = 2 * (dxy / sxx + abs(sxy / sxx) * dx / sxx)
    corr = 2 * (dxy / math.sqrt(sxx * syy) + dx / sxx + dy / syy)
    return abs(g - r) <= {"regr_slope": slope, "regr_intercept": slope * abs(ax) + 2.0**-50 * n * (abs(ay) + abs(ax * sxy / sxx)), "corr": corr, "regr_r2": 2 * corr + corr * corr}[kind] + few


def sums_equal(kind, got, reference, magnitude, rows, loose=False):
    """`reference` is PostgreSQL's float8 sum or average, `magnitude` sum |x|, `rows` at least n.

    `loose`: PostgreSQL may have added the values, in any order; it adds float4 in float4.
    """
    if got is None or reference is None:
        return got is None and reference is None
    g, r, m = float(got), float(reference), float(magnitude)
    if not (math.isfinite(g) and math.isfinite(r)):
        return got == reference
    slack = rows * 2.0**-53 * m
    if kind.startswith("avg"):
        slack = 2.0**-53 * (m + 2 * abs(r))	# the sum's slack / n, and both divisions round
    if kind == "sum float4":
        if loose:
            slack += rows * 2.0**-24 * m
        return float4(r - slack) <= float4(g) <= float4(r + slack)
    return abs(g - r) <= slack


def sort_key(row):
    return [(v is None, v or "") for v in row]


def difference(query, got, reference, rows, loose=False):
    """None, or a few lines that show where the answers differ. `loose`: PostgreSQL may have grouped rows in any order, too."""
    if loose:		# of -0 and 0, or equal numerics, a group shows the one that came first
        (got, _), (reference, _) = plain_decimals(plain_zeroes([(got, None), (reference, None)]))
    inexact = [i for i, kind in enumerate(query.columns) if kind != "exact"]
    if not inexact:
        if not query.ordered:
            got, reference = sorted(got, key=sort_key), sorted(reference, key=sort_key)
        return None if got == reference else show(got, reference)
    exact = [i for i in range(len(query.columns)) if i not in inexact]

    def key(row):
        return sort_key([row[i] for i in exact])

    got, reference = sorted(got, key=key), sorted(reference, key=key)
    if [key(r) for r in got] != [key(r) for r in reference]:
        return show([tuple(r[i] for i in exact) for r in got], [tuple(r[i] for i in exact) for r in reference])
    for a, b in zip(got, reference):
        for i in inexact:
            kind, total, magnitude, *more = query.columns[i]
            near = pairs_equal(kind, a[i], b[total], [b[magnitude]] + [b[j] for j in more]) if more else \
                variances_equal(kind, a[i], b[total], b[magnitude], rows) if kind.startswith(("var", "stddev")) \
                else sums_equal(kind, a[i], b[total], b[magnitude], rows, loose)
            if not near:
                return f"  column {i + 1} ({kind}): {a[i]}\n  reference: {b[total]}, sum |x| = {b[magnitude]}\n  row: {a}"
    return None


class Plain:
    """A query whose columns are all compared as text."""
    columns, ordered = [], False


def of_value(state):
    """Is it the SQLSTATE of an error that a value raises: class 22, or that of a cast of a numeric NaN or infinity?"""
    return state[:2] == "22" or state == "0A000"


def compare_answers(query, got, reference, most_rows, own=None, adds_rows=None):
    """Of all executions, each (rows, None) or (None, (SQLSTATE, message)): None, or text.

    Where PostgreSQL itself added the floats (a fallback, partitions), its own bits are right, too: own() gives its
    answers to the engine's statement. adds_rows() tells that it may have added rows that the engine handed it, in the
    engine's order: those of changed blocks come last. Then it may also meet another error first, or another zero of a group.
    """
    mine_too = None
    for i, (mine, theirs) in enumerate(zip(got, reference)):
        at = f"  execution {i}\n" if query.params and i else ""
        if mine[1] or theirs[1]:
            a, b = (mine[1] or ("answers",))[0], (theirs[1] or ("answers",))[0]
            if a != b and not (adds_rows and query.raising and mine[1] and theirs[1] and of_value(a) and of_value(b)):
                return f"{at}  the engine: {mine[1] or 'answers'}\n  PostgreSQL: {theirs[1] or 'answers'}"
            continue
        found = difference(query, mine[0], theirs[0], most_rows)
        if found and query.columns and own:
            mine_too = mine_too or own()
            if mine_too[i][1] is None and difference(Plain, mine[0], mine_too[i][0], most_rows) is None:
                found = None
        if found and adds_rows and adds_rows() and difference(query, mine[0], theirs[0], most_rows, loose=True) is None:
            found = None
        if found:
            return at + found
    return None if len(got) == len(reference) else f"  {len(got)} answers, reference {len(reference)}"


def plain_zeroes(answers):
    """Which of two equal keys, 0 and -0, is printed is up to the plan that PostgreSQL runs where the engine leaves it to it."""
    return [(rows and [tuple("0" if v == "-0" else v for v in row) for row in rows], error) for rows, error in answers]


def plain_decimals(answers):
    """Numerics as trim_scale() has them."""
    return [(rows and [tuple(re.sub(r"(\.\d*?)0+$", r"\1", v).rstrip(".") if v and re.fullmatch(r"-?\d+\.\d+", v) else v for v in row) for row in rows], error)
            for rows, error in answers]


def show(got, reference, most=8):
    extra, missing = list(got), []
    counts = {}
    for r in got:
        counts[r] = counts.get(r, 0) + 1
    for r in reference:
        if counts.get(r, 0) > 0:
            counts[r] -= 1
        else:
            missing.append(r)
    extra = [r for r, n in counts.items() for _ in range(n)]
    lines = [f"  {len(got)} rows, reference {len(reference)} rows"]
    if not extra and not missing:
        lines.append("  the same rows in another order")
        at = next(i for i, (a, b) in enumerate(zip(got, reference)) if a != b)
        lines.append(f"  from row {at + 1}: {got[at:at + 3]}\n  reference: {reference[at:at + 3]}")
    for name, rows in (("only in the engine's answer", extra), ("only in PostgreSQL's", missing)):
        for r in rows[:most]:
            lines.append(f"  {name}: {r}")
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more {name}")
    return "\n".join(lines)


def self_test():
    """The comparison must see what it is there to see."""
    class Q:
        columns, ordered = ["exact"], False
    assert difference(Q, [("1",), (None,)], [(None,), ("1",)], 2) is None
    assert difference(Q, [("-0",)], [("0",)], 1) is not None
    assert difference(Q, [("1",), ("1",)], [("1",)], 2) is not None
    Q.ordered = True
    assert difference(Q, [("1",), ("2",)], [("2",), ("1",)], 2) is not None

    class S:
        columns, ordered = ["exact", ("sum float8", 2, 3)], False
    assert difference(S, [("a", "1.0000000000000002")], [("a", "1", "1", "3")], 10) is None
    assert difference(S, [("a", "1.00000001")], [("a", "1", "1", "3")], 10) is not None
    assert difference(S, [("b", "1")], [("a", "1", "1", "3")], 10) is not None
    assert difference(S, [("a", None)], [("a", "1", "1", "3")], 10) is not None
    assert sums_equal("sum float4", "0.1", "0.1", "0.1", 4) and not sums_equal("sum float4", "0.10000002", "0.1", "0.1", 4)
    ones = ("5", "3", "6", "10", "40", "20")
    assert pairs_equal("corr", "0.9999999999999998", "1", ones) and not pairs_equal("corr", "0.99999999", "1", ones) and not pairs_equal("corr", None, "1", ones)
    assert pairs_equal("regr_slope", "2.0000000000000004", "2", ones) and not pairs_equal("regr_sxy", "20.000001", "20", ones) and not pairs_equal("regr_intercept", "1e-6", "0", ones)
    assert not sums_equal("sum float8", "NaN", "1", "1", 4) and sums_equal("sum float8", "NaN", "NaN", "NaN", 4)
