/* numeric_bounds.cc: how large values may be, as plans know of columns (ImportedTable.greatest). For choices alone: rows may have changed since. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
}

#include <cmath>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "store/registry.h"

namespace gpuvm {

static double
greatest_of_column(const CompileInput *input, const Var *var)
{
	int			place;
	const ImportedTable *table = table_of(input, var, &place);

	return table == nullptr || table->wide[place] ? INFINITY
		: static_cast<double>(table->greatest[place]) / std::pow(10.0, Max(table->scales[place], 0));
}

/* No value of the list's is more. */
static double
greatest_of_list(const CompileInput *input, List *exprs)
{
	double		most = 0;
	ListCell   *lc;

	foreach(lc, exprs)
		most = Max(most, greatest_value(input, static_cast<const Expr *>(lfirst(lc))));
	return most;
}

/* By the type: numeric(p, s) has p - s digits before the point. */
static double
greatest_of_type(Oid type, int32 typmod)
{
	if (type == NUMERICOID && typmod >= static_cast<int32>(VARHDRSZ))
		return std::pow(10.0, ((typmod - VARHDRSZ) >> 16 & 0xffff) - numeric_typmod_scale(typmod));
	return type == INT2OID ? -static_cast<double>(PG_INT16_MIN) : type == INT4OID ? -static_cast<double>(PG_INT32_MIN) : INFINITY;
}

static double
greatest_of_call(const CompileInput *input, const FnEntry *fn, List *args)
{
	const double a = greatest_value(input, static_cast<const Expr *>(linitial(args)));

	switch (fn->kind)
	{
		case FnKind::NumericFromInt:
		case FnKind::NumericUnary:
			return a;
		case FnKind::NumericFromMoney:
			return a / std::pow(10.0, money_scale());
		case FnKind::NumericRound:
		case FnKind::NumericCeil:
		case FnKind::NumericTypmod:
			return is_shown_apart(input, fn->function, args) ? a : round_digits(args) < 0 && fn->kind == FnKind::NumericRound ? INFINITY : a + 1;
		case FnKind::NumericBinary:
			return fn->opcode == Opcode::Mul ? a * greatest_value(input, static_cast<const Expr *>(lsecond(args)))
				: fn->opcode == Opcode::Div || fn->opcode == Opcode::Remainder ? INFINITY
				: a + greatest_value(input, static_cast<const Expr *>(lsecond(args)));
		default:
			return INFINITY;
	}
}

static double
find_greatest(const CompileInput *input, const Expr *expr)
{
	const Oid	type = exprType(reinterpret_cast<const Node *>(expr));
	const FnEntry *fn;
	List	   *args;

	if (IsA(expr, Const) && type == NUMERICOID)
		return ((const Const *) expr)->constisnull ? 0 : std::fabs(DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, ((const Const *) expr)->constvalue)));
	if (IsA(expr, RelabelType))
		return greatest_value(input, ((const RelabelType *) expr)->arg);
	if (IsA(expr, Var))
		return Min(greatest_of_column(input, (const Var *) expr), greatest_of_type(type, ((const Var *) expr)->vartypmod));
	args = arms_of(expr);
	if (args != NIL)
		return greatest_of_list(input, args);
	fn = called_function(expr, &args);
	return fn != nullptr && type == NUMERICOID ? greatest_of_call(input, fn, args) : greatest_of_type(type, -1);
}

double
greatest_value(const CompileInput *input, const Expr *expr)
{
	return find_fact<double>(Fact::GreatestValue, input, expr, [&]() { return find_greatest(input, expr); });
}

}  // namespace gpuvm
