/*
 * control.cc: AND, OR, CASE and what else evaluates some of its operands only
 * (emit.h says how), and tests for truth and null.
 */
#include "pg/pg.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
}

#include "compiler/emit.h"
#include "pg/compat.h"

namespace gpuvm {

Branch
branch_open(Compiler *c, Opcode op, int reg, bool null_jumps)
{
	Branch		br;

	br.jump = emit(c, op, Type::Bool, reg, 0, 0, VERDICT_JUMPS, null_jumps ? JUMP_IF_NULL : 0);
	br.ncached = c->ncached;
	br.nknown = c->nknown;
	c->depth++;
	return br;
}

void
branch_close(Compiler *c, const Branch &br)
{
	c->b->ops[br.jump].p3 = c->b->nops;
	c->ncached = br.ncached;
	c->nknown = br.nknown;
	c->depth--;
}

/* AND, OR of n operands: PostgreSQL stops at the first that decides. */
int
compile_and_or(Compiler *c, const BoolExpr *expr)
{
	bool		is_and = expr->boolop == AND_EXPR;
	int			acc = -1;
	ListCell   *lc;

	foreach(lc, expr->args)
	{
		const Expr *arm = static_cast<const Expr *>(lfirst(lc));
		int			reg;

		if (acc >= 0 && can_raise(arm))
		{
			Branch		br = branch_open(c, is_and ? Opcode::IfNot : Opcode::If, acc, false);

			reg = compile_expr(c, arm);
			branch_close(c, br);
		}
		else
			reg = compile_expr(c, arm);
		if (reg < 0)
			return -1;
		acc = acc < 0 ? reg : value(c, is_and ? Opcode::And : Opcode::Or, Type::Bool, acc, reg);
	}
	return acc;
}

/*
 * a <= c AND (a < c OR b < d): what follows is evaluated where a = c alone, and a null decides nothing but where it
 * is met. Tablets are left out by the first condition.
 */
static Expr *
expand_row_compare_from(const RowCompareExpr *expr, int i)
{
	const Oid	opno = list_nth_oid(expr->opnos, i), family = list_nth_oid(expr->opfamilies, i), collation = list_nth_oid(expr->inputcollids, i);
	const bool	less = compat_is_less(expr);
	Expr	   *left = static_cast<Expr *>(list_nth(expr->largs, i)), *right = static_cast<Expr *>(list_nth(expr->rargs, i));
	Expr	   *rest;
	Expr	   *either;
	Oid			operators[2];
	Expr	   *compared[2];
	Oid			types[2];
	int			strategy;

	if (i == list_length(expr->opnos) - 1)
		return make_opclause(opno, BOOLOID, false, left, right, InvalidOid, collation);
	get_op_opfamily_properties(opno, family, false, &strategy, &types[0], &types[1]);
	operators[0] = get_opfamily_member(family, types[0], types[1], less ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber);
	operators[1] = get_opfamily_member(family, types[0], types[1], less ? BTLessStrategyNumber : BTGreaterStrategyNumber);
	rest = expand_row_compare_from(expr, i + 1);
	if (!OidIsValid(operators[0]) || !OidIsValid(operators[1]) || rest == nullptr)
		return nullptr;
	for (int k = 0; k < 2; k++)
		compared[k] = make_opclause(operators[k], BOOLOID, false, left, right, InvalidOid, collation);
	either = makeBoolExpr(OR_EXPR, list_make2(compared[1], rest), -1);
	return makeBoolExpr(AND_EXPR, list_make2(compared[0], either), -1);
}

Expr *
expand_row_compare(const RowCompareExpr *expr)
{
	Expr	   *expanded = expand_row_compare_from(expr, 0);

	if (expanded != nullptr)
		fix_opfuncids(reinterpret_cast<Node *>(expanded));
	return expanded;
}

int
compile_not(Compiler *c, int reg)
{
	return reg < 0 ? -1 : value(c, Opcode::Not, Type::Bool, reg);
}

/* -- arms: values of which one is taken ------------------------------------------- */

/* What the arms of a CASE, COALESCE, GREATEST have in common. */
struct ArmForm
{
	Type		type;
	int			scale;			/* of numerics; else -1 */
	bool		codes;			/* of dictionaries: these */
	DictionaryUnion all;
};

static bool
arm_form(Compiler *c, const Expr *whole, ArmForm *form)
{
	Oid			type = exprType(reinterpret_cast<const Node *>(whole));
	ValueForm	vf = value_type(type).form;
	NumericScale scale = {-1, false};

	form->type = supported_type(c, type);
	if (form->type == Type::None)
		return false;
	if (vf == ValueForm::Numeric)
	{
		scale = numeric_scale(c->input, whole);
		scale.scale = Max(scale.scale, 0);
		/* which of the greatest is shown depends on how they are compared */
		if (scale.mixed && (c->scale_use == ScaleUse::One || (c->scale_use == ScaleUse::Each && IsA(whole, MinMaxExpr))))
		{
			refuse(c, "the display scale of a numeric differs from row to row");
			return false;
		}
	}
	else if (vf == ValueForm::Dictionary && IsA(whole, MinMaxExpr))
	{
		refuse(c, "codes of a dictionary are in no order");
		return false;
	}
	form->scale = scale.scale;
	form->codes = vf == ValueForm::Dictionary;
	return !form->codes || expr_union(c, whole, &form->all);
}

/* At the common scale; with ScaleUse::Each it is noted if its own one is another. */
static int
compile_arm(Compiler *c, const Expr *expr, const ArmForm &form)
{
	int			reg = compile_expr(c, expr);
	int			out;

	if (form.codes)
		return translate(c, reg, &form.all);
	if (reg < 0 || form.scale < 0 || c->info[reg].scale == form.scale)
		return reg;
	out = rescale(c, reg, form.scale);
	if (out < 0 || c->scale_use != ScaleUse::Each || is_null_value(c, reg) || c->info[out].shown >= 0)
		return out;

	int			shown = shown_scale(c, reg, c->info[reg].scale);

	return shown < 0 ? -1 : value(c, Opcode::Copy, Type::I64, out, 0, 0, 0, numeric_info(form.scale, shown));
}

/* The same, jumped over by lanes where `cond` is true (skip_if) or not true. */
static int
compile_guarded(Compiler *c, const Expr *expr, const ArmForm &form, int cond, bool skip_if)
{
	int			reg;

	if (!can_raise(expr))
		return compile_arm(c, expr, form);

	Branch		br = branch_open(c, skip_if ? Opcode::If : Opcode::IfNot, cond, !skip_if);

	reg = compile_arm(c, expr, form);
	branch_close(c, br);
	return reg;
}

/* What is known of the one of two values that is taken: the first where `cond` is true. */
static bool
merge_info(Compiler *c, const ArmForm &form, int a, int b, int cond, RegisterInfo *info)
{
	const RegisterInfo &ia = c->info[a];
	const RegisterInfo &ib = c->info[b];

	*info = form.codes ? dictionary_info(form.all.all) : is_null_value(c, a) ? ib : ia;
	if (is_null_value(c, a) || is_null_value(c, b))
		return true;
	if (ia.shown != ib.shown)
	{
		int			sa = shown_scale(c, a, ia.scale);
		int			sb = shown_scale(c, b, ib.scale);
		int			shown = sa < 0 || sb < 0 ? -1 : value(c, Opcode::Select, Type::I32, sa, sb, cond);

		if (shown < 0)
			return false;
		info->shown = static_cast<int16>(shown);
	}
	return true;
}

/* WHEN number `i` onwards; a CASE with an argument has it as CaseTestExpr in its conditions. */
static int
compile_case_from(Compiler *c, const CaseExpr *expr, int i, const ArmForm &form)
{
	const CaseWhen *when;
	RegisterInfo info;
	int			cond;
	int			then;
	int			rest;
	Branch		br;
	bool		guarded = false;

	if (i == list_length(expr->args))
	{
		if (expr->defresult != nullptr)
			return compile_arm(c, expr->defresult, form);
		return null_value(c, form.type, form.scale < 0 ? NO_INFO : numeric_info(form.scale));
	}
	when = static_cast<const CaseWhen *>(list_nth(expr->args, i));
	if ((i > 0 && !may_be_conditional(c, when->expr)) || !may_be_conditional(c, when->result) ||
		!may_be_conditional(c, expr->defresult))
		return -1;
	cond = compile_expr(c, when->expr);
	if (cond < 0)
		return -1;
	then = compile_guarded(c, when->result, form, cond, false);
	if (then < 0)
		return -1;

	for (int j = i + 1; j < list_length(expr->args) && !guarded; j++)
	{
		const CaseWhen *later = static_cast<const CaseWhen *>(list_nth(expr->args, j));

		guarded = can_raise(later->expr) || can_raise(later->result);
	}
	if (expr->defresult != nullptr && can_raise(expr->defresult))
		guarded = true;
	if (guarded)
		br = branch_open(c, Opcode::If, cond, false);
	rest = compile_case_from(c, expr, i + 1, form);
	if (guarded)
		branch_close(c, br);
	if (rest < 0 || !merge_info(c, form, then, rest, cond, &info))
		return -1;
	return value(c, Opcode::Select, form.type, then, rest, cond, 0, info);
}

static Node *
replace_case_test(Node *node, void *context)
{
	if (node == nullptr)
		return nullptr;
	if (IsA(node, CaseTestExpr))
		return static_cast<Node *>(context);
	/* An inner CASE with an argument has CaseTestExprs of its own, but its argument is ours. */
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != nullptr)
	{
		CaseExpr   *inner = makeNode(CaseExpr);

		*inner = *(const CaseExpr *) node;
		inner->arg = reinterpret_cast<Expr *>(replace_case_test(reinterpret_cast<Node *>(inner->arg), context));
		return reinterpret_cast<Node *>(inner);
	}
	/* So has a cast of arrays, for their elements. */
	if (IsA(node, ArrayCoerceExpr))
	{
		ArrayCoerceExpr *cast = makeNode(ArrayCoerceExpr);

		*cast = *(const ArrayCoerceExpr *) node;
		cast->arg = reinterpret_cast<Expr *>(replace_case_test(reinterpret_cast<Node *>(cast->arg), context));
		return reinterpret_cast<Node *>(cast);
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_case_test), context);
}

/*
 * CASE x WHEN v: the conditions take x itself. x is evaluated once in
 * PostgreSQL and cannot be volatile here, so it is the same value for each
 * WHEN, which all share it.
 */
const CaseExpr *
searched_case(const CaseExpr *expr)
{
	CaseExpr   *copy;
	ListCell   *lc;

	if (expr->arg == nullptr)
		return expr;
	copy = makeNode(CaseExpr);
	*copy = *expr;
	copy->arg = nullptr;
	copy->args = NIL;
	foreach(lc, expr->args)
	{
		CaseWhen   *when = makeNode(CaseWhen);

		*when = *lfirst_node(CaseWhen, lc);
		when->expr = reinterpret_cast<Expr *>(replace_case_test(reinterpret_cast<Node *>(when->expr), expr->arg));
		copy->args = lappend(copy->args, when);
	}
	return copy;
}

int
compile_case(Compiler *c, const CaseExpr *expr)
{
	ArmForm		form;

	if (!arm_form(c, reinterpret_cast<const Expr *>(expr), &form))
		return -1;
	return compile_case_from(c, searched_case(expr), 0, form);
}

int
compile_coalesce(Compiler *c, const CoalesceExpr *expr)
{
	ArmForm		form;
	int			acc = -1;
	ListCell   *lc;

	if (!arm_form(c, reinterpret_cast<const Expr *>(expr), &form))
		return -1;
	foreach(lc, expr->args)
	{
		const Expr *arm = static_cast<const Expr *>(lfirst(lc));
		RegisterInfo info;
		int			found;
		int			reg;

		if (acc < 0)
		{
			acc = compile_arm(c, arm, form);
			if (acc < 0)
				return -1;
			continue;
		}
		if (!may_be_conditional(c, arm))
			return -1;
		found = can_raise(arm) || c->scale_use == ScaleUse::Each ? value(c, Opcode::NotNull, form.type, acc) : -1;
		reg = compile_guarded(c, arm, form, found, true);
		if (reg < 0 || !merge_info(c, form, acc, reg, found, &info))
			return -1;
		acc = value(c, Opcode::Coalesce, form.type, acc, reg, 0, 0, info);
		if (acc < 0)
			return -1;
	}
	return acc;
}

int
compile_minmax(Compiler *c, const MinMaxExpr *expr)
{
	ArmForm		form;
	int			acc = -1;
	ListCell   *lc;

	if (!arm_form(c, reinterpret_cast<const Expr *>(expr), &form))
		return -1;
	foreach(lc, expr->args)
	{
		int			reg = compile_arm(c, static_cast<const Expr *>(lfirst(lc)), form);

		if (reg < 0)
			return -1;
		acc = acc < 0 ? reg
			: value(c, expr->op == IS_GREATEST ? Opcode::Greatest : Opcode::Least, form.type, acc, reg, 0, 0,
					form.scale < 0 ? NO_INFO : numeric_info(form.scale));
		if (acc < 0)
			return -1;
	}
	return acc;
}

/* NULLIF(a, b): its operator compares in the operator's type, the result is a. */
int
compile_nullif(Compiler *c, const NullIfExpr *expr)
{
	const FnEntry *fn = lookup_function(expr->opfuncid);
	Type		type;
	int			ra;
	int			rb;
	int			equal;
	int			null;
	int			out = compile_expr(c, static_cast<const Expr *>(linitial(expr->args)));
	DictionaryComparison comparison;

	if (fn == nullptr && dictionary_comparison(expr->opno, expr->inputcollid, expr->args, &comparison))
	{
		if (out < 0 || !dictionary_operands(c, comparison, &ra, &rb))
			return -1;
		equal = value(c, Opcode::Eq, Type::I32, ra, rb);
		null = null_value(c, Type::I32);
		if (equal < 0 || null < 0)
			return -1;
		return value(c, Opcode::Select, Type::I32, null, out, equal, 0, c->info[out]);
	}
	if (fn == nullptr || !is_comparison(fn))
		return refuse(c, "function %s is not supported", format_procedure(expr->opfuncid));
	if (out < 0 || !compile_operands(c, fn, expr->args, &type, &ra, &rb))
		return -1;
	if (fn->kind == FnKind::Compare && ra == out)
		return value(c, Opcode::NullIf, type, out, rb, 0, 0, c->info[out]);
	equal = value(c, fn->opcode, type, ra, rb);
	null = null_value(c, c->b->reg_type[out]);
	if (equal < 0 || null < 0)
		return -1;
	return value(c, Opcode::Select, c->b->reg_type[out], null, out, equal, 0, c->info[out]);
}

int
compile_boolean_test(Compiler *c, const BooleanTest *expr)
{
	int			reg = compile_expr(c, expr->arg);
	Opcode		op;

	if (reg < 0)
		return -1;
	switch (expr->booltesttype)
	{
		case IS_TRUE:
		case IS_NOT_TRUE:
			op = Opcode::IsTrue;
			break;
		case IS_FALSE:
		case IS_NOT_FALSE:
			op = Opcode::IsFalse;
			break;
		default:
			op = Opcode::IsNull;
			break;
	}
	reg = value(c, op, Type::Bool, reg);
	if (expr->booltesttype == IS_NOT_TRUE || expr->booltesttype == IS_NOT_FALSE || expr->booltesttype == IS_NOT_UNKNOWN)
		return compile_not(c, reg);
	return reg;
}

int
compile_null_test(Compiler *c, const NullTest *expr)
{
	int			reg;

	if (expr->argisrow)
		return refuse(c, "row-valued tests are not supported");
	reg = is_ctid(expr->arg) ? compile_row(c, (const Var *) expr->arg) : compile_presence(c, expr->arg);
	if (reg < 0)
		return -1;
	return value(c, expr->nulltesttype == IS_NULL ? Opcode::IsNull : Opcode::NotNull, c->b->reg_type[reg], reg);
}

}  // namespace gpuvm
