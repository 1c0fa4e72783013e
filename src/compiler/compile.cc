/*
 * compile.cc: expressions and quals to operations.
 *
 * Each compile_* function emits the operations for one expression and returns
 * the register that holds its value, or -1 with input->reason set. Nothing here
 * has a destructor, so an ereport from PostgreSQL may pass through.
 *
 * A register is only defined on the lanes that were live when it was written.
 * The operands of AND, OR, CASE and COALESCE that can raise are therefore
 * compiled between a jump and its target (an error counts on live lanes only, as
 * PostgreSQL's short circuit has it), and the columns loaded in between are
 * forgotten at the target. Operands that cannot raise are evaluated on every
 * lane: cheaper than a branch, and nobody can tell.
 */
#include "pg/pg.h"

extern "C" {
#include "access/attnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
}

#include <algorithm>
#include <cstring>

#include "compiler/emit.h"
#include "compiler/functions.h"
#include "store/registry.h"

namespace gpuvm {

/* An OR of comparisons in place of In is not worth more registers than this. */
constexpr int MAX_IN_CHAIN = 32;

int
refuse(Compiler *c, const char *fmt, ...)
{
	if (c->input->reason == nullptr)
	{
		StringInfoData buf;
		va_list		args;
		int			needed;

		initStringInfo(&buf);
		do
		{
			va_start(args, fmt);
			needed = appendStringInfoVA(&buf, fmt, args);
			va_end(args);
			if (needed != 0)
				enlargeStringInfo(&buf, needed);
		} while (needed != 0);
		c->input->reason = buf.data;
	}
	return -1;
}

/* The VM's type; None, and the reason noted, when it has none. */
static Type
supported_type(Compiler *c, Oid type)
{
	Type		vt = vm_type(type);

	if (vt == Type::None)
		refuse(c, "type %s is not supported", format_type_be(type));
	return vt;
}

/* -- leaves ------------------------------------------------------------------ */

Type
column_type(const CompileCursor *cursor, AttrNumber attnum)
{
	const ImportedTable *t = cursor->table;

	for (uint32 i = 0; i < t->ncols; i++)
	{
		if (t->attnums[i] == attnum)
			return static_cast<Type>(t->types[i]);
	}
	return Type::None;
}

/* A register for the column, the one that was set aside for it in the result if it stays what it is up to there. */
static int
column_register(Compiler *c, int cursor, AttrNumber attnum, Type type)
{
	if (c->depth == 0 && !c->transient)
	{
		for (int i = 0; i < c->noutputs; i++)
		{
			if (c->outputs[i].cursor == cursor && c->outputs[i].attnum == attnum)
				return c->outputs[i].reg;
		}
	}
	return new_reg(c, type);
}

/*
 * A column of a semijoin's inner side, above it: the planner uses one that is
 * equal to an expression of the other side, in place of that.
 */
static int
load_matched(Compiler *c, const CompileCursor *cursor, AttrNumber attnum, Type type)
{
	ListCell   *lc;

	/* a full join behind it may have made it null */
	for (int i = static_cast<int>(cursor - c->input->cursors) + 1; i < c->npositioned; i++)
	{
		if (c->matched[i] && c->input->cursors[i].kind == JoinKind::Full)
			return refuse(c, "a column of a semijoin's inner side is used above it");
	}
	foreach(lc, cursor->keys)
	{
		Node	   *outer;
		Node	   *inner;

		if (key_sides(static_cast<const Expr *>(lfirst(lc)), cursor->varno, &outer, &inner) && IsA(inner, Var) &&
			((Var *) inner)->varattno == attnum && lookup_function(lfirst_node(OpExpr, lc)->opfuncid)->kind == FnKind::Compare)
			return convert(c, compile_expr(c, reinterpret_cast<Expr *>(outer)), type);
	}
	return refuse(c, "a column of a semijoin's inner side is used above it");
}

int
load_column(Compiler *c, int cursor, AttrNumber attnum, Oid type)
{
	const CompileCursor *from = &c->input->cursors[cursor];
	Type		vt;
	int			reg;

	for (int i = 0; i < c->ncached; i++)
	{
		if (c->cached[i].cursor == cursor && c->cached[i].attnum == attnum)
			return c->cached[i].reg;
	}

	if (attnum <= 0)
		return refuse(c, "system columns and whole rows are not in tablets");
	vt = column_type(from, attnum);
	if (vt == Type::None || vt != vm_type(type))
	{
		c->input->hint = "Import the table with that column, if its type can be imported.";
		return refuse(c, "column \"%s\" was not imported", get_attname(from->relid, attnum, false));
	}

	if (c->matched[cursor] && from->kind == JoinKind::Semi)
		reg = load_matched(c, from, attnum, vt);
	else
		reg = column_register(c, cursor, attnum, vt);
	if (reg < 0)
		return -1;
	/* What an anti join lets go on has met no row of this cursor. */
	if (c->matched[cursor] && from->kind == JoinKind::Anti)
		emit(c, Opcode::Null, vt, reg, 0, 0);
	else if (!c->matched[cursor] || from->kind != JoinKind::Semi)
		emit(c, Opcode::Column, vt, reg, attnum, cursor);
	if (c->ncached < MAX_CACHED_COLUMNS)
		c->cached[c->ncached++] = CachedColumn{cursor, attnum, reg};
	return reg;
}

/* The cursor that reads the relation of this range table entry; -1 if none does, or not yet. */
static int
cursor_of(const Compiler *c, int varno)
{
	for (int i = 0; i < c->npositioned; i++)
	{
		int			cursor = c->first + i;

		if (static_cast<int>(c->input->cursors[cursor].varno) == varno)
			return cursor;
	}
	return -1;
}

static int
emit_int(Compiler *c, Type type, int64_t value)
{
	int			reg = new_reg(c, type);

	if (type == Type::I64 && value != static_cast<int32_t>(value))
		emit(c, Opcode::Int64, type, reg, 0, 0, value);
	else
		emit(c, Opcode::Integer, type, reg, static_cast<int32_t>(value), 0);
	return reg;
}

static int
emit_float(Compiler *c, Type type, double value)
{
	int			reg = new_reg(c, type);
	int64_t		bits;

	memcpy(&bits, &value, sizeof(bits));
	emit(c, Opcode::Float, type, reg, 0, 0, bits);
	return reg;
}

/* A non-null constant of integer class as int64. */
static int64_t
const_int(Oid type, Datum value)
{
	switch (type)
	{
		case BOOLOID:
			return DatumGetBool(value);
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
		case DATEOID:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

static int
compile_const(Compiler *c, const Const *con)
{
	Type		type = supported_type(c, con->consttype);

	if (type == Type::None)
		return -1;
	if (con->constisnull)
	{
		int			reg = new_reg(c, type);

		emit(c, Opcode::Null, type, reg, 0, 0);
		return reg;
	}
	if (type == Type::F32)
		return emit_float(c, type, DatumGetFloat4(con->constvalue));
	if (type == Type::F64)
		return emit_float(c, type, DatumGetFloat8(con->constvalue));
	return emit_int(c, type, const_int(con->consttype, con->constvalue));
}

/* A leaf without Vars whose value is known when execution starts. */
static int
compile_param(Compiler *c, const Expr *expr)
{
	Oid			pgtype = exprType(reinterpret_cast<const Node *>(expr));
	Type		type = vm_type(pgtype);
	int			index = 0;
	int			reg;
	ListCell   *lc;

	if (type == Type::None)
		return refuse(c, "a parameter of type %s is not supported", format_type_be(pgtype));
	foreach(lc, c->params)
	{
		if (equal(lfirst(lc), expr))
			break;
		index++;
	}
	if (lc == nullptr)
	{
		if (index >= PROGRAM_MAX_PARAMS)
			return refuse(c, "the expression has more than %d parameters", PROGRAM_MAX_PARAMS);
		c->params = lappend(c->params, const_cast<Expr *>(expr));
	}
	reg = new_reg(c, type);
	emit(c, Opcode::Variable, type, reg, index, 0);
	return reg;
}

/* -- functions and operators --------------------------------------------------- */

static bool
can_raise_walker(Node *node, void *context)
{
	Oid			function = InvalidOid;
	List	   *args = NIL;

	if (node == nullptr)
		return false;
	if (IsA(node, FuncExpr))
	{
		function = ((FuncExpr *) node)->funcid;
		args = ((FuncExpr *) node)->args;
	}
	else if (IsA(node, OpExpr))
	{
		function = ((OpExpr *) node)->opfuncid;
		args = ((OpExpr *) node)->args;
	}
	if (OidIsValid(function))
	{
		const FnEntry *fn = lookup_function(function);

		if (fn == nullptr || function_can_raise(fn, vm_type(exprType((Node *) linitial(args)))))
			return true;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(can_raise_walker), context);
}

bool
can_raise(const Expr *expr)
{
	return can_raise_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), nullptr);
}

static bool
has_exec_param_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_exec_param_walker), context);
}

/*
 * Parameters are bound before the first row, and that of a subquery runs the
 * subquery, which may raise. False, with a reason, for an expression with one
 * that PostgreSQL promises to evaluate only where a condition calls for it.
 */
bool
may_be_conditional(Compiler *c, const Expr *expr)
{
	if (expr == nullptr || !has_exec_param_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), nullptr))
		return true;
	refuse(c, "a subquery is evaluated for some rows only");
	return false;
}

int
convert(Compiler *c, int reg, Type to)
{
	Type		from;
	int			out;

	if (reg < 0)
		return -1;
	from = c->b->reg_type[reg];
	if (from == to)
		return reg;
	out = new_reg(c, to);
	emit(c, Opcode::Cast, to, out, reg, 0, 0, static_cast<uint8_t>(from));
	return out;
}

/* Can `con` be expressed in `type` without changing the outcome of a comparison with a value of that type? */
static bool
const_fits(const Const *con, Type type)
{
	Type		from = vm_type(con->consttype);

	if (con->constisnull)
		return false;
	if (type_is_int(type) && type_is_int(from))
	{
		int64_t		v = const_int(con->consttype, con->constvalue);

		return type == Type::I16 ? v == static_cast<int16_t>(v)
			: type == Type::I32 ? v == static_cast<int32_t>(v) : true;
	}
	if (type == Type::F32 && from == Type::F64)
	{
		double		v = DatumGetFloat8(con->constvalue);

		return static_cast<double>(static_cast<float>(v)) == v;
	}
	return false;
}

static int
compile_const_as(Compiler *c, const Const *con, Type type)
{
	if (type == Type::F32)
		return emit_float(c, type, DatumGetFloat8(con->constvalue));
	return emit_int(c, type, const_int(con->consttype, con->constvalue));
}

/*
 * Both operands of a comparison. PostgreSQL widens to the operator's type; where
 * one side is a constant that the other side's narrower type can express, the
 * outcome is the same there, and cheaper.
 */
bool
compile_operands(Compiler *c, const FnEntry *fn, List *args, Type *type, int *ra, int *rb)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	Type		ta = vm_type(exprType(reinterpret_cast<const Node *>(a)));
	Type		tb = vm_type(exprType(reinterpret_cast<const Node *>(b)));

	*type = fn->operand;
	if (fn->kind == FnKind::Compare && IsA(b, Const) && ta != fn->operand && const_fits((const Const *) b, ta))
	{
		*type = ta;
		*ra = compile_expr(c, a);
		*rb = *ra < 0 ? -1 : compile_const_as(c, (const Const *) b, ta);
		return *rb >= 0;
	}
	if (fn->kind == FnKind::Compare && IsA(a, Const) && tb != fn->operand && const_fits((const Const *) a, tb))
	{
		*type = tb;
		*rb = compile_expr(c, b);
		*ra = *rb < 0 ? -1 : compile_const_as(c, (const Const *) a, tb);
		return *ra >= 0;
	}

	*ra = compile_expr(c, a);
	if (*ra < 0)
		return false;
	*rb = compile_expr(c, b);
	if (*rb < 0)
		return false;
	if (fn->kind == FnKind::CompareDateLeft || fn->kind == FnKind::CompareDateRight)
	{
		int		   *date = fn->kind == FnKind::CompareDateLeft ? ra : rb;
		int			out = new_reg(c, Type::I64);

		emit(c, Opcode::DateToTimestampSat, Type::I64, out, *date, 0);
		*date = out;
		return true;
	}
	*ra = convert(c, *ra, fn->operand);
	*rb = convert(c, *rb, fn->operand);
	return true;
}

bool
is_comparison(const FnEntry *fn)
{
	return fn->kind == FnKind::Compare || fn->kind == FnKind::CompareDateLeft || fn->kind == FnKind::CompareDateRight;
}

static int
emit_compare(Compiler *c, Opcode op, Type type, int ra, int rb)
{
	int			out = new_reg(c, Type::Bool);

	emit(c, op, type, ra, rb, out, 0, COMPARE_STORES);
	return out;
}

static int
compile_call(Compiler *c, Oid function, List *args)
{
	const FnEntry *fn = lookup_function(function);
	int			ra;
	int			rb;
	int			out;

	if (fn == nullptr)
	{
		if (function == F_NOW && args == NIL)
			return refuse(c, "function now() is evaluated by PostgreSQL");
		return refuse(c, "function %s is not supported", format_procedure(function));
	}
	if (is_comparison(fn) || fn->kind == FnKind::Binary)
	{
		Type		type;

		if (!compile_operands(c, fn, args, &type, &ra, &rb))
			return -1;
		if (is_comparison(fn))
			return emit_compare(c, fn->opcode, type, ra, rb);
		out = new_reg(c, type);
		emit(c, fn->opcode, type, out, ra, rb);
		return out;
	}

	ra = compile_expr(c, static_cast<const Expr *>(linitial(args)));
	if (ra < 0)
		return -1;
	switch (fn->kind)
	{
		case FnKind::Shift:
			rb = compile_expr(c, static_cast<const Expr *>(lsecond(args)));
			if (rb < 0)
				return -1;
			out = new_reg(c, fn->operand);
			emit(c, fn->opcode, fn->operand, out, ra, rb);
			return out;
		case FnKind::Same:
			return ra;
		case FnKind::Cast:
			return convert(c, ra, fn->operand);
		default:				/* Unary, Convert */
			out = new_reg(c, fn->operand);
			emit(c, fn->opcode, fn->operand, out, ra, 0);
			return out;
	}
}

/* -- control -------------------------------------------------------------------- */

Branch
branch_open(Compiler *c, Opcode op, int reg, bool null_jumps)
{
	Branch		br;

	br.jump = emit(c, op, Type::Bool, reg, 0, 0, VERDICT_JUMPS, null_jumps ? JUMP_IF_NULL : 0);
	br.ncached = c->ncached;
	c->depth++;
	return br;
}

void
branch_close(Compiler *c, const Branch &br)
{
	c->b->ops[br.jump].p3 = c->b->nops;
	c->ncached = br.ncached;
	c->depth--;
}

/* AND, OR of n operands: PostgreSQL stops at the first that decides. */
static int
compile_and_or(Compiler *c, const BoolExpr *expr)
{
	bool		is_and = expr->boolop == AND_EXPR;
	int			acc = -1;
	ListCell   *lc;

	foreach(lc, expr->args)
	{
		const Expr *arm = static_cast<const Expr *>(lfirst(lc));
		int			reg;
		int			out;

		if (acc < 0)
		{
			acc = compile_expr(c, arm);
			if (acc < 0)
				return -1;
			continue;
		}
		if (can_raise(arm))
		{
			Branch		br = branch_open(c, is_and ? Opcode::IfNot : Opcode::If, acc, false);

			reg = compile_expr(c, arm);
			branch_close(c, br);
		}
		else
			reg = compile_expr(c, arm);
		if (reg < 0)
			return -1;
		out = new_reg(c, Type::Bool);
		emit(c, is_and ? Opcode::And : Opcode::Or, Type::Bool, out, acc, reg);
		acc = out;
	}
	return acc;
}

static int
compile_not(Compiler *c, int reg)
{
	int			out;

	if (reg < 0)
		return -1;
	out = new_reg(c, Type::Bool);
	emit(c, Opcode::Not, Type::Bool, out, reg, 0);
	return out;
}

/* The register for `expr`, jumped over by lanes where `cond` is true (skip_if) or not true. */
static int
compile_guarded(Compiler *c, const Expr *expr, int cond, bool skip_if)
{
	int			reg;

	if (!can_raise(expr))
		return compile_expr(c, expr);

	Branch		br = branch_open(c, skip_if ? Opcode::If : Opcode::IfNot, cond, !skip_if);

	reg = compile_expr(c, expr);
	branch_close(c, br);
	return reg;
}

/* WHEN number `i` onwards; a CASE with an argument has it as CaseTestExpr in its conditions. */
static int
compile_case_from(Compiler *c, const CaseExpr *expr, int i, Type type)
{
	const CaseWhen *when;
	int			cond;
	int			then;
	int			rest;
	int			out;
	Branch		br;
	bool		guarded = false;

	if (i == list_length(expr->args))
	{
		if (expr->defresult != nullptr)
			return compile_expr(c, expr->defresult);
		out = new_reg(c, type);
		emit(c, Opcode::Null, type, out, 0, 0);
		return out;
	}
	when = static_cast<const CaseWhen *>(list_nth(expr->args, i));
	if ((i > 0 && !may_be_conditional(c, when->expr)) || !may_be_conditional(c, when->result) ||
		!may_be_conditional(c, expr->defresult))
		return -1;
	cond = compile_expr(c, when->expr);
	if (cond < 0)
		return -1;
	then = compile_guarded(c, when->result, cond, false);
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
	rest = compile_case_from(c, expr, i + 1, type);
	if (guarded)
		branch_close(c, br);
	if (rest < 0)
		return -1;
	out = new_reg(c, type);
	emit(c, Opcode::Select, type, out, then, rest, cond);
	return out;
}

static Node *
replace_case_test(Node *node, void *context)
{
	if (node == nullptr)
		return nullptr;
	if (IsA(node, CaseTestExpr))
		return static_cast<Node *>(copyObjectImpl(context));
	/* An inner CASE with an argument has CaseTestExprs of its own, but its argument is ours. */
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != nullptr)
	{
		CaseExpr   *inner = static_cast<CaseExpr *>(copyObjectImpl(node));

		inner->arg = reinterpret_cast<Expr *>(replace_case_test(reinterpret_cast<Node *>(inner->arg), context));
		return reinterpret_cast<Node *>(inner);
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_case_test), context);
}

static int
compile_case(Compiler *c, const CaseExpr *expr)
{
	Type		type = supported_type(c, expr->casetype);

	if (type == Type::None)
		return -1;
	if (expr->arg != nullptr)
	{
		/*
		 * CASE x WHEN v: the conditions take x itself. x is evaluated once in
		 * PostgreSQL and cannot be volatile here, so a copy for each WHEN is the
		 * same value; the column cache makes it cheap.
		 */
		CaseExpr   *copy = static_cast<CaseExpr *>(copyObjectImpl(expr));
		ListCell   *lc;

		foreach(lc, copy->args)
		{
			CaseWhen   *when = static_cast<CaseWhen *>(lfirst(lc));

			when->expr = reinterpret_cast<Expr *>(replace_case_test(reinterpret_cast<Node *>(when->expr), copy->arg));
		}
		copy->arg = nullptr;
		expr = copy;
	}
	return compile_case_from(c, expr, 0, type);
}

static int
compile_coalesce(Compiler *c, const CoalesceExpr *expr)
{
	Type		type = supported_type(c, expr->coalescetype);
	int			acc = -1;
	ListCell   *lc;

	if (type == Type::None)
		return -1;
	foreach(lc, expr->args)
	{
		const Expr *arm = static_cast<const Expr *>(lfirst(lc));
		int			reg;
		int			out;

		if (acc < 0)
		{
			acc = compile_expr(c, arm);
			if (acc < 0)
				return -1;
			continue;
		}
		if (!may_be_conditional(c, arm))
			return -1;
		if (can_raise(arm))
		{
			int			found = new_reg(c, Type::Bool);

			emit(c, Opcode::NotNull, type, found, acc, 0);
			reg = compile_guarded(c, arm, found, true);
		}
		else
			reg = compile_expr(c, arm);
		if (reg < 0)
			return -1;
		out = new_reg(c, type);
		emit(c, Opcode::Coalesce, type, out, acc, reg);
		acc = out;
	}
	return acc;
}

static int
compile_minmax(Compiler *c, const MinMaxExpr *expr)
{
	Type		type = supported_type(c, expr->minmaxtype);
	int			acc = -1;
	ListCell   *lc;

	if (type == Type::None)
		return -1;
	foreach(lc, expr->args)
	{
		int			reg = compile_expr(c, static_cast<const Expr *>(lfirst(lc)));
		int			out;

		if (reg < 0)
			return -1;
		if (acc < 0)
		{
			acc = reg;
			continue;
		}
		out = new_reg(c, type);
		emit(c, expr->op == IS_GREATEST ? Opcode::Greatest : Opcode::Least, type, out, acc, reg);
		acc = out;
	}
	return acc;
}

/* NULLIF(a, b): its operator compares in the operator's type, the result is a. */
static int
compile_nullif(Compiler *c, const NullIfExpr *expr)
{
	const FnEntry *fn = lookup_function(expr->opfuncid);
	const Expr *first = static_cast<const Expr *>(linitial(expr->args));
	Type		type;
	int			ra;
	int			rb;
	int			value;
	int			null;
	int			out;

	if (fn == nullptr || !is_comparison(fn))
		return refuse(c, "function %s is not supported", format_procedure(expr->opfuncid));
	value = compile_expr(c, first);
	if (value < 0 || !compile_operands(c, fn, expr->args, &type, &ra, &rb))
		return -1;
	out = new_reg(c, c->b->reg_type[value]);
	if (fn->kind == FnKind::Compare && type == c->b->reg_type[value])
	{
		emit(c, Opcode::NullIf, type, out, value, rb);
		return out;
	}

	int			equal = emit_compare(c, fn->opcode, type, ra, rb);

	null = new_reg(c, c->b->reg_type[value]);
	emit(c, Opcode::Null, c->b->reg_type[value], null, 0, 0);
	emit(c, Opcode::Select, c->b->reg_type[value], out, null, value, equal);
	return out;
}

static int
compile_distinct(Compiler *c, const DistinctExpr *expr)
{
	const FnEntry *fn = lookup_function(expr->opfuncid);
	Type		type;
	int			ra;
	int			rb;
	int			out;

	if (fn == nullptr || !is_comparison(fn))
		return refuse(c, "function %s is not supported", format_procedure(expr->opfuncid));
	if (!compile_operands(c, fn, expr->args, &type, &ra, &rb))
		return -1;
	out = new_reg(c, Type::Bool);
	emit(c, Opcode::IsDistinct, type, out, ra, rb);
	return out;
}

/*
 * x = ANY (array), x <> ALL (array): an In over the sorted constants when they
 * are integers, otherwise a chain of comparisons.
 */
static int
compile_array_op(Compiler *c, const ScalarArrayOpExpr *expr)
{
	const FnEntry *fn = lookup_function(expr->opfuncid);
	const Expr *left = static_cast<const Expr *>(linitial(expr->args));
	const Expr *right = static_cast<const Expr *>(lsecond(expr->args));
	Opcode		wanted = expr->useOr ? Opcode::Eq : Opcode::Ne;
	List	   *elements = NIL;
	int			acc = -1;
	ListCell   *lc;

	if (fn == nullptr || !is_comparison(fn))
		return refuse(c, "function %s is not supported", format_procedure(expr->opfuncid));

	if (IsA(right, Const) && !((const Const *) right)->constisnull)
	{
		ArrayType  *array = DatumGetArrayTypeP(((const Const *) right)->constvalue);
		Oid			elemtype = ARR_ELEMTYPE(array);
		int16		len;
		bool		byval;
		char		align;
		Datum	   *values;
		bool	   *nulls;
		int			n;

		if (vm_type(elemtype) == Type::None)
			return refuse(c, "type %s is not supported", format_type_be(elemtype));
		get_typlenbyvalalign(elemtype, &len, &byval, &align);
		deconstruct_array(array, elemtype, len, byval, align, &values, &nulls, &n);

		if (fn->kind == FnKind::Compare && type_is_int(fn->operand) && fn->opcode == wanted && n > 0 &&
			n <= PROGRAM_MAX_AUX / 2)
		{
			int64_t    *list = static_cast<int64_t *>(palloc(sizeof(int64_t) * n));
			int			count = 0;
			int			reg = convert(c, compile_expr(c, left), fn->operand);
			int			out;

			if (reg < 0)
				return -1;
			for (int i = 0; i < n; i++)
			{
				if (!nulls[i])
					list[count++] = const_int(elemtype, values[i]);
			}
			std::sort(list, list + count);
			count = static_cast<int>(std::unique(list, list + count) - list);
			if (count > 0)
			{
				out = new_reg(c, Type::Bool);
				emit(c, Opcode::In, fn->operand, out, reg, c->b->add_aux(list, count), count,
					 std::find(nulls, nulls + n, true) != nulls + n ? IN_HAS_NULL : 0);
				return expr->useOr ? out : compile_not(c, out);
			}
		}
		for (int i = 0; i < n; i++)
			elements = lappend(elements, makeConst(elemtype, -1, InvalidOid, len, values[i], nulls[i], byval));
	}
	else if (IsA(right, ArrayExpr) && !((const ArrayExpr *) right)->multidims)
		elements = ((const ArrayExpr *) right)->elements;
	else
		return refuse(c, "the array is not a list of constants or parameters");

	if (list_length(elements) > MAX_IN_CHAIN)
		return refuse(c, "the list has more than %d elements", MAX_IN_CHAIN);
	if (elements == NIL)
		return emit_int(c, Type::Bool, expr->useOr ? 0 : 1);
	foreach(lc, elements)
	{
		List	   *pair = list_make2(const_cast<Expr *>(left), lfirst(lc));
		int			reg = compile_call(c, expr->opfuncid, pair);
		int			out;

		if (reg < 0)
			return -1;
		if (acc < 0)
		{
			acc = reg;
			continue;
		}
		out = new_reg(c, Type::Bool);
		emit(c, expr->useOr ? Opcode::Or : Opcode::And, Type::Bool, out, acc, reg);
		acc = out;
	}
	return acc;
}

static int
compile_boolean_test(Compiler *c, const BooleanTest *expr)
{
	int			reg = compile_expr(c, expr->arg);
	Opcode		op;
	int			out;

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
	out = new_reg(c, Type::Bool);
	emit(c, op, Type::Bool, out, reg, 0);
	if (expr->booltesttype == IS_NOT_TRUE || expr->booltesttype == IS_NOT_FALSE ||
		expr->booltesttype == IS_NOT_UNKNOWN)
		return compile_not(c, out);
	return out;
}

static int
compile_null_test(Compiler *c, const NullTest *expr)
{
	int			reg;
	int			out;

	if (expr->argisrow)
		return refuse(c, "row-valued tests are not supported");
	reg = compile_expr(c, expr->arg);
	if (reg < 0)
		return -1;
	out = new_reg(c, Type::Bool);
	emit(c, expr->nulltesttype == IS_NULL ? Opcode::IsNull : Opcode::NotNull, c->b->reg_type[reg], out, reg, 0);
	return out;
}

int
compile_expr(Compiler *c, const Expr *expr)
{
	check_stack_depth();
	switch (nodeTag(expr))
	{
		case T_Var:
			{
				const Var  *var = (const Var *) expr;

				int			cursor = var->varlevelsup == 0 ? cursor_of(c, var->varno) : -1;

				if (cursor < 0)
					return refuse(c, "a column of another relation is used");
				return load_column(c, cursor, var->varattno, var->vartype);
			}
		case T_Const:
			return compile_const(c, (const Const *) expr);
		case T_Param:
		case T_SQLValueFunction:
			return compile_param(c, expr);
		case T_RelabelType:
			{
				const RelabelType *r = (const RelabelType *) expr;

				if (vm_type(r->resulttype) == Type::None ||
					vm_type(r->resulttype) != vm_type(exprType((const Node *) r->arg)))
					return refuse(c, "type %s is not supported", format_type_be(r->resulttype));
				return compile_expr(c, r->arg);
			}
		case T_FuncExpr:
			{
				const FuncExpr *f = (const FuncExpr *) expr;

				if (f->funcid == F_NOW && f->args == NIL)
					return compile_param(c, expr);
				return compile_call(c, f->funcid, f->args);
			}
		case T_OpExpr:
			return compile_call(c, ((const OpExpr *) expr)->opfuncid, ((const OpExpr *) expr)->args);
		case T_BoolExpr:
			if (((const BoolExpr *) expr)->boolop == NOT_EXPR)
				return compile_not(c, compile_expr(c, static_cast<const Expr *>(linitial(((const BoolExpr *) expr)->args))));
			return compile_and_or(c, (const BoolExpr *) expr);
		case T_NullTest:
			return compile_null_test(c, (const NullTest *) expr);
		case T_BooleanTest:
			return compile_boolean_test(c, (const BooleanTest *) expr);
		case T_CaseExpr:
			return compile_case(c, (const CaseExpr *) expr);
		case T_CoalesceExpr:
			return compile_coalesce(c, (const CoalesceExpr *) expr);
		case T_MinMaxExpr:
			return compile_minmax(c, (const MinMaxExpr *) expr);
		case T_NullIfExpr:
			return compile_nullif(c, (const NullIfExpr *) expr);
		case T_DistinctExpr:
			return compile_distinct(c, (const DistinctExpr *) expr);
		case T_ScalarArrayOpExpr:
			return compile_array_op(c, (const ScalarArrayOpExpr *) expr);
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return refuse(c, "a subquery is evaluated for each row");
		default:
			return refuse(c, "an expression of this kind is not supported");
	}
}

}  // namespace gpuvm
