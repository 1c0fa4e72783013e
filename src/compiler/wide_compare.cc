/* wide_compare.cc: comparisons and join keys of numerics in two registers (tablet/wide_halves.h), with columns, constants and parameters. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"
}

#include <utility>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

bool
compile_wide_value(Compiler *c, const Expr *expr, WideValue *out)
{
	ScaleUse	outer = c->scale_use;
	bool		done;

	c->scale_use = ScaleUse::None;
	done = compile_wide(c, expr, out);
	c->scale_use = outer;
	return done;
}

int
compare_wide(Compiler *c, Opcode op, const WideValue &a, const WideValue &b)
{
	const bool	less = op == Opcode::Lt || op == Opcode::Le;
	int			high;
	int			low;

	if (op == Opcode::Eq || op == Opcode::Ne)
	{
		high = value(c, op, Type::I64, a.high, b.high);
		low = high < 0 ? -1 : value(c, op, Type::I64, a.low, b.low);
		return low < 0 ? -1 : value(c, op == Opcode::Eq ? Opcode::And : Opcode::Or, Type::Bool, high, low);
	}
	high = value(c, Opcode::Eq, Type::I64, a.high, b.high);
	low = high < 0 ? -1 : value(c, op, Type::I64, a.low, b.low);
	low = low < 0 ? -1 : value(c, Opcode::And, Type::Bool, high, low);
	high = low < 0 ? -1 : value(c, less ? Opcode::Lt : Opcode::Gt, Type::I64, a.high, b.high);
	return high < 0 ? -1 : value(c, Opcode::Or, Type::Bool, high, low);
}

static Expr *
call(Oid function, Oid type, List *args)
{
	return reinterpret_cast<Expr *>(makeFuncExpr(function, type, args, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
}

static Expr *
numeric_const(int64_t v)
{
	return reinterpret_cast<Expr *>(makeConst(NUMERICOID, -1, InvalidOid, -1, scaled_to_numeric(v, 0), false, false));
}

/*
 * A value that is known when execution starts, times 10^scale, rounded up or down, in halves, which PostgreSQL computes: div() and mod()
 * round towards zero. Where it does not fit, or is no number, that raises, and PostgreSQL's own plan runs: the high half is doubled on its way,
 * so that one where the codes of NaN and infinities lie is none of 64 bits.
 */
static bool
parameter_bound(Compiler *c, const Expr *expr, int scale, bool up, WideValue *out)
{
	Expr	   *bound = const_cast<Expr *>(expr);
	Expr	   *low;
	Expr	   *high;

	for (int rest = scale; rest > 0; rest -= SCALED_MAX_SCALE)
		bound = call(F_NUMERIC_MUL, NUMERICOID, list_make2(bound, numeric_const(scaled_pow10[Min(rest, SCALED_MAX_SCALE)])));
	bound = call(up ? F_CEIL_NUMERIC : F_FLOOR_NUMERIC, NUMERICOID, list_make1(bound));
	low = call(F_MOD_NUMERIC_NUMERIC, NUMERICOID, list_make2(bound, numeric_const(WIDE_LOW_MASK + 1)));
	low = call(F_NUMERIC_ADD, NUMERICOID, list_make2(low, numeric_const(WIDE_LOW_MASK + 1)));
	low = call(F_MOD_NUMERIC_NUMERIC, NUMERICOID, list_make2(low, numeric_const(WIDE_LOW_MASK + 1)));
	high = call(F_DIV, NUMERICOID, list_make2(call(F_NUMERIC_SUB, NUMERICOID, list_make2(bound, low)), numeric_const(WIDE_LOW_MASK + 1)));
	high = call(F_INT8_NUMERIC, INT8OID, list_make1(call(F_NUMERIC_MUL, NUMERICOID, list_make2(high, numeric_const(2)))));
	high = call(F_INT8DIV, INT8OID, list_make2(high, makeConst(INT8OID, -1, InvalidOid, 8, Int64GetDatum(2), false, FLOAT8PASSBYVAL)));
	out->low = compile_param(c, call(F_INT8_NUMERIC, INT8OID, list_make1(low)));
	out->high = out->low < 0 ? -1 : compile_param(c, high);
	out->scale = scale;
	return out->high >= 0;
}

/* Of a constant that has more decimals than the values, the bound at theirs that these are on the same side of. */
static bool
constant_bound(Compiler *c, const Const *con, int scale, bool up, WideValue *out)
{
	Datum		bound;
	int128		v;

	return scaled_bound(con->constvalue, scale, up, &bound) && numeric_at_wide_scale(bound, 0, &v) && wide_constant(c, v, scale, out);
}

int
compile_wide_comparison(Compiler *c, Opcode op, List *args)
{
	const Expr *one = static_cast<const Expr *>(linitial(args));
	const Expr *other = static_cast<const Expr *>(lsecond(args));
	const bool	equality = op == Opcode::Eq || op == Opcode::Ne;
	WideValue	a;
	WideValue	b;

	if (!is_wide(c->input, one))
	{
		std::swap(one, other);
		op = commuted(op);
	}
	if (!compile_wide_value(c, one, &a))
		return -1;
	if (!IsA(other, Const) && known_at_start(other))
	{
		int			lower;
		int			upper;

		if (!equality)
			return parameter_bound(c, other, a.scale, rounds_up(op), &b) ? compare_wide(c, op, a, b) : -1;
		/* what equals it lies between it rounded up and rounded down */
		lower = parameter_bound(c, other, a.scale, true, &b) ? compare_wide(c, Opcode::Ge, a, b) : -1;
		upper = lower >= 0 && parameter_bound(c, other, a.scale, false, &b) ? compare_wide(c, Opcode::Le, a, b) : -1;
		upper = upper < 0 ? -1 : value(c, Opcode::And, Type::Bool, lower, upper);
		return op == Opcode::Ne ? compile_not(c, upper) : upper;
	}
	if (!equality && IsA(other, Const) && !((const Const *) other)->constisnull && !is_special_const(other) && constant_bound(c, (const Const *) other, a.scale, rounds_up(op), &b))
		return compare_wide(c, op, a, b);
	if (!compile_wide_value(c, other, &b) || !rescale_wide(c, &a, Max(a.scale, b.scale)) || !rescale_wide(c, &b, Max(a.scale, b.scale)))
		return -1;
	return compare_wide(c, op, a, b);
}

int
compile_wide_distinct(Compiler *c, List *args)
{
	WideValue	a;
	WideValue	b;
	int			high;
	int			low;

	if (!compile_wide_value(c, static_cast<const Expr *>(linitial(args)), &a) || !compile_wide_value(c, static_cast<const Expr *>(lsecond(args)), &b) ||
		!rescale_wide(c, &a, Max(a.scale, b.scale)) || !rescale_wide(c, &b, Max(a.scale, b.scale)))
		return -1;
	high = value(c, Opcode::IsDistinct, Type::I64, a.high, b.high);
	low = high < 0 ? -1 : value(c, Opcode::IsDistinct, Type::I64, a.low, b.low);
	return low < 0 ? -1 : value(c, Opcode::Or, Type::Bool, high, low);
}

bool
compile_wide_key(Compiler *c, const Expr *expr, int scale, WideValue *out)
{
	if (!compile_wide_value(c, expr, out) || !rescale_wide(c, out, scale))
		return false;
	if (out->scale != scale)
		refuse(c, "the sides of a join's key have other decimals than expected");
	return out->scale == scale;
}

}  // namespace gpuvm
