/* wide_case.cc: CASE, COALESCE, GREATEST, LEAST and NULLIF of numerics in two registers (tablet/wide_halves.h). */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

#include "compiler/emit.h"

namespace gpuvm {

List *
arms_of(const Expr *expr)
{
	List	   *arms = NIL;
	ListCell   *lc;

	switch (nodeTag(expr))
	{
		case T_CaseExpr:
			foreach(lc, ((const CaseExpr *) expr)->args)
				arms = lappend(arms, static_cast<const CaseWhen *>(lfirst(lc))->result);
			if (((const CaseExpr *) expr)->defresult != nullptr)
				arms = lappend(arms, ((const CaseExpr *) expr)->defresult);
			return arms;
		case T_CoalesceExpr:
			return ((const CoalesceExpr *) expr)->args;
		case T_MinMaxExpr:
			return ((const MinMaxExpr *) expr)->args;
		case T_NullIfExpr:
			return list_make1(linitial(((const NullIfExpr *) expr)->args));
		default:
			return NIL;
	}
}

bool
has_wide_arms(const CompileInput *input, const Expr *expr)
{
	ListCell   *lc;

	foreach(lc, arms_of(expr))
	{
		if (is_wide(input, static_cast<const Expr *>(lfirst(lc))))
			return true;
	}
	return false;
}

/* At the common scale; with ScaleUse::Each it is noted if its own one is another. */
static bool
compile_arm(Compiler *c, const Expr *expr, int scale, WideValue *out)
{
	int			own;

	if (!compile_wide(c, expr, out))
		return false;
	own = out->scale;
	if (!rescale_wide(c, out, scale))
		return false;
	if (out->scale != scale)
	{
		refuse(c, "a numeric has more than %d decimals", scale);
		return false;
	}
	if (c->scale_use != ScaleUse::Each || own < 0 || own == scale || out->shown >= 0)
		return true;
	out->shown = int_value(c, Type::I32, own);
	return out->shown >= 0;
}

/* The same, jumped over by lanes where `cond` is true (skip_if) or not true. */
static bool
compile_guarded(Compiler *c, const Expr *expr, int scale, int cond, bool skip_if, WideValue *out)
{
	bool		done;

	if (!can_raise(expr))
		return compile_arm(c, expr, scale, out);

	Branch		br = branch_open(c, skip_if ? Opcode::If : Opcode::IfNot, cond, !skip_if);

	done = compile_arm(c, expr, scale, out);
	branch_close(c, br);
	return done;
}

/* The first where `cond` is true, else the second. */
static bool
pick(Compiler *c, int cond, const WideValue &a, const WideValue &b, WideValue *out)
{
	int			shown = -1;

	if (a.shown != b.shown)
	{
		int			sa = a.shown >= 0 ? a.shown : int_value(c, Type::I32, a.scale);
		int			sb = b.shown >= 0 ? b.shown : int_value(c, Type::I32, b.scale);

		shown = sa < 0 || sb < 0 ? -1 : value(c, Opcode::Select, Type::I32, sa, sb, cond);
		if (shown < 0)
			return false;
	}
	*out = WideValue{select64(c, cond, a.high, b.high), select64(c, cond, a.low, b.low), a.scale, a.special || b.special, shown};
	return out->high >= 0 && out->low >= 0;
}

static bool
null_wide(Compiler *c, int scale, WideValue *out)
{
	int			null = null_value(c, Type::I64);

	*out = WideValue{null, null, scale};
	return null >= 0;
}

/* WHEN number `i` onwards. */
static bool
compile_case_from(Compiler *c, const CaseExpr *expr, int i, int scale, WideValue *out)
{
	const CaseWhen *when;
	WideValue	then;
	WideValue	rest;
	int			cond;
	Branch		br;
	bool		guarded;
	bool		done;

	if (i == list_length(expr->args))
		return expr->defresult != nullptr ? compile_arm(c, expr->defresult, scale, out) : null_wide(c, scale, out);
	when = static_cast<const CaseWhen *>(list_nth(expr->args, i));
	if ((i > 0 && !may_be_conditional(c, when->expr)) || !may_be_conditional(c, when->result) || !may_be_conditional(c, expr->defresult))
		return false;
	cond = compile_expr(c, when->expr);
	if (cond < 0 || !compile_guarded(c, when->result, scale, cond, false, &then))
		return false;

	guarded = expr->defresult != nullptr && can_raise(expr->defresult);
	for (int j = i + 1; j < list_length(expr->args) && !guarded; j++)
	{
		const CaseWhen *later = static_cast<const CaseWhen *>(list_nth(expr->args, j));

		guarded = can_raise(later->expr) || can_raise(later->result);
	}
	if (guarded)
		br = branch_open(c, Opcode::If, cond, false);
	done = compile_case_from(c, expr, i + 1, scale, &rest);
	if (guarded)
		branch_close(c, br);
	return done && pick(c, cond, then, rest, out);
}

static bool
compile_coalesce(Compiler *c, List *args, int scale, WideValue *out)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		const Expr *arm = static_cast<const Expr *>(lfirst(lc));
		WideValue	before = *out;
		WideValue	next;
		int			found;

		if (foreach_current_index(lc) == 0)
		{
			if (!compile_arm(c, arm, scale, out))
				return false;
			continue;
		}
		found = may_be_conditional(c, arm) ? value(c, Opcode::NotNull, Type::I64, before.low) : -1;
		if (found < 0 || !compile_guarded(c, arm, scale, found, true, &next) || !pick(c, found, before, next, out))
			return false;
	}
	return true;
}

/* Nulls do not count: x is taken where it is more, or the other one is null. */
static bool
compile_minmax(Compiler *c, const MinMaxExpr *expr, int scale, WideValue *out)
{
	ListCell   *lc;

	foreach(lc, expr->args)
	{
		WideValue	before = *out;
		WideValue	next;
		int			more;
		int			null;

		if (!compile_arm(c, static_cast<const Expr *>(lfirst(lc)), scale, &next))
			return false;
		if (foreach_current_index(lc) == 0)
		{
			*out = next;
			continue;
		}
		more = compare_wide(c, expr->op == IS_GREATEST ? Opcode::Gt : Opcode::Lt, next, before);
		null = more < 0 ? -1 : value(c, Opcode::IsNull, Type::I64, before.low);
		more = null < 0 ? -1 : value(c, Opcode::Or, Type::Bool, more, null);
		if (more < 0 || !pick(c, more, next, before, out))
			return false;
	}
	return true;
}

static bool
compile_nullif(Compiler *c, const NullIfExpr *expr, WideValue *out)
{
	const FnEntry *fn = lookup_function(expr->opfuncid);
	WideValue	a;
	WideValue	null;
	int			equal = fn == nullptr || !is_comparison(fn) ? refuse(c, "function with OID %u is not supported", expr->opfuncid)
		: compile_wide_comparison(c, fn->opcode, expr->args);

	return equal >= 0 && compile_wide(c, static_cast<const Expr *>(linitial(expr->args)), &a) && null_wide(c, a.scale, &null) && pick(c, equal, null, a, out);
}

bool
compile_wide_arms(Compiler *c, const Expr *expr, WideValue *out)
{
	const NumericScale scale = numeric_scale(c->input, expr);

	if (IsA(expr, NullIfExpr))
		return compile_nullif(c, (const NullIfExpr *) expr, out);
	/* which of the greatest is shown depends on how they are compared */
	if (scale.mixed && (c->scale_use == ScaleUse::One || (c->scale_use == ScaleUse::Each && IsA(expr, MinMaxExpr))))
	{
		refuse(c, "the display scale of a numeric differs from row to row");
		return false;
	}
	if (IsA(expr, CaseExpr))
		return compile_case_from(c, searched_case((const CaseExpr *) expr), 0, Max(scale.scale, 0), out);
	if (IsA(expr, CoalesceExpr))
		return compile_coalesce(c, ((const CoalesceExpr *) expr)->args, Max(scale.scale, 0), out);
	return compile_minmax(c, (const MinMaxExpr *) expr, Max(scale.scale, 0), out);
}

}  // namespace gpuvm
