/*
 * compile.cc: expressions to operations: calls, comparisons, and the way to
 * everything else (emit.h).
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/timestamp.h"
}

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "compiler/emit.h"
#include "compiler/made_exprs.h"
#include "pg/numeric_scaled.h"

namespace gpuvm {

/* float.c's, for degrees() and radians() */
constexpr double RADIANS_PER_DEGREE = 0.0174532925199432957692;

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

Type
supported_type(Compiler *c, Oid type)
{
	Type		vt = vm_type(type);

	if (vt == Type::None)
		refuse(c, "type %s is not supported", format_type_be(type));
	return vt;
}

/* -- values ------------------------------------------------------------------------ */

static bool
same_info(const RegisterInfo &a, const RegisterInfo &b)
{
	return a.scale == b.scale && a.shown == b.shown && a.cursor == b.cursor && a.attnum == b.attnum && a.map == b.map && a.variable == b.variable &&
		a.packed == b.packed && a.wide == b.wide;
}

int
value(Compiler *c, Opcode op, Type type, int p2, int p3, int64_t p4, uint8_t p5, const RegisterInfo &info)
{
	const OpForm form = opcode_info[static_cast<int>(op)].form;
	const bool	compares = form == OpForm::COMPARE;
	const bool	boolean = compares || form == OpForm::NULLTEST || form == OpForm::DISTINCT || form == OpForm::IN || form == OpForm::TEXTMATCH;
	int			out;

	for (int i = c->nknown - 1; i >= 0; i--)
	{
		const Op   &o = c->b->ops[c->known[i]];

		if (o.opcode != op || o.type != type)
			continue;
		if (compares ? o.p1 == p2 && o.p2 == p3
			: o.p2 == p2 && o.p3 == p3 && o.p4 == p4 && o.p5 == p5 && same_info(c->info[o.p1], info))
			return compares ? o.p3 : o.p1;
	}
	out = new_reg(c, boolean ? Type::Bool : type);
	if (out < 0)
		return -1;
	c->info[out] = info;
	if (!c->b->failed)
		c->known[c->nknown++] = static_cast<int16>(c->b->nops);
	if (compares)
		emit(c, op, type, p2, p3, out, 0, COMPARE_STORES);
	else
		emit(c, op, type, out, p2, p3, p4, p5);
	return out;
}

int
int_value(Compiler *c, Type type, int64_t v, const RegisterInfo &info)
{
	if (type == Type::I64 && v != static_cast<int32_t>(v))
		return value(c, Opcode::Int64, type, 0, 0, v, 0, info);
	return value(c, Opcode::Integer, type, static_cast<int32_t>(v), 0, 0, 0, info);
}

int
float_value(Compiler *c, Type type, double v)
{
	int64_t		bits;

	memcpy(&bits, &v, sizeof(bits));
	return value(c, Opcode::Float, type, 0, 0, bits);
}

int
null_value(Compiler *c, Type type, const RegisterInfo &info)
{
	return value(c, Opcode::Null, type, 0, 0, 0, 0, info);
}

/* The operation that writes a constant into the register, or NULL. */
static const Op *
constant_op(const Compiler *c, int reg)
{
	for (int i = c->b->nops - 1; i >= 0; i--)
	{
		const Op   *o = &c->b->ops[i];

		if (o->p1 == reg && (o->opcode == Opcode::Null || o->opcode == Opcode::Integer || o->opcode == Opcode::Int64))
			return o;
	}
	return nullptr;
}

bool
is_null_value(const Compiler *c, int reg)
{
	const Op   *op = constant_op(c, reg);

	return op != nullptr && op->opcode == Opcode::Null;
}

bool
is_int_value(const Compiler *c, int reg, int64_t *v)
{
	const Op   *op = constant_op(c, reg);

	if (op == nullptr || op->opcode == Opcode::Null)
		return false;
	*v = op->opcode == Opcode::Integer ? op->p2 : op->p4;
	return true;
}

int
compile_value(Compiler *c, const Expr *expr)
{
	ScaleUse	outer = c->scale_use;
	int			reg;

	c->scale_use = ScaleUse::None;
	reg = compile_expr(c, expr);
	c->scale_use = outer;
	return reg;
}

/* -- functions and operators --------------------------------------------------- */

/* `context` is not NULL where PostgreSQL evaluates the expression: then there are no maps. */
static bool can_raise_walker(Node *node, void *context);

static bool
node_can_raise(Node *node, void *context)
{
	Oid			function = InvalidOid;
	List	   *args = NIL;

	if (context != nullptr && (IsA(node, CoerceViaIO) || IsA(node, ArrayCoerceExpr) || IsA(node, CoerceToDomain)))
		return true;
	if (IsA(node, RowCompareExpr))
		return can_raise_walker(reinterpret_cast<Node *>(expand_row_compare((const RowCompareExpr *) node)), context);
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
	if (OidIsValid(function) && !(IsA(node, FuncExpr) && ((FuncExpr *) node)->location == LOCATION_QUIET))
	{
		const FnEntry *fn = lookup_function(function);

		DictionaryComparison comparison;

		/* an error of what PostgreSQL evaluates leads to its own plan, wherever it stands */
		if (fn == nullptr && context == nullptr && is_pair_expr(reinterpret_cast<Expr *>(node)))
			return false;
		if (fn == nullptr && dictionary_clause(node, &comparison))
			return expression_tree_walker(node, reinterpret_cast<bool (*)()>(can_raise_walker), context);
		if ((fn == nullptr || function_can_raise(fn, args == NIL ? Type::None : vm_type(exprType((Node *) linitial(args))))) &&
			(context != nullptr || !is_map_expr(reinterpret_cast<Expr *>(node))) && !evaluated_at_start(reinterpret_cast<Expr *>(node)))
			return true;
		if (fn == nullptr)
			return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(can_raise_walker), context);
}

static bool
can_raise_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, List))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(can_raise_walker), context);
	return find_fact<bool>(context == nullptr ? Fact::CanRaise : Fact::CanRaiseByRows, nullptr, node,
						   [&]() { return node_can_raise(node, context); });
}

bool
can_raise(const Expr *expr)
{
	return can_raise_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), nullptr);
}

bool
can_raise_by_rows(const Expr *expr)
{
	bool		by_rows = true;

	return can_raise_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), &by_rows);
}

static bool
has_exec_param_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	if (IsA(node, List))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_exec_param_walker), context);
	return find_fact<bool>(Fact::HasExecParam, nullptr, node, [&]() {
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_exec_param_walker), context);
	});
}

bool
has_exec_param(const Node *node)
{
	return has_exec_param_walker(const_cast<Node *>(node), nullptr);
}

/*
 * Parameters are bound before the first row, and that of a subquery runs the
 * subquery, which may raise. False, with a reason, for an expression with one
 * that PostgreSQL promises to evaluate only where a condition calls for it.
 */
bool
may_be_conditional(Compiler *c, const Expr *expr)
{
	if (!has_exec_param(reinterpret_cast<const Node *>(expr)))
		return true;
	refuse(c, "a subquery is evaluated for some rows only");
	return false;
}

int
convert(Compiler *c, int reg, Type to)
{
	if (reg < 0 || c->b->reg_type[reg] == to)
		return reg;
	return value(c, Opcode::Cast, to, reg, 0, 0, static_cast<uint8_t>(c->b->reg_type[reg]));
}

/* Can `con` be expressed in `type` without changing the outcome of a comparison with a value of that type? */
static bool
const_fits(const Const *con, Type type)
{
	Type		from = vm_type(con->consttype);

	if (con->constisnull || value_type(con->consttype).form != ValueForm::Plain)
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
		return float_value(c, type, DatumGetFloat8(con->constvalue));
	return int_value(c, type, const_int(con->consttype, con->constvalue));
}

Opcode
commuted(Opcode op)
{
	switch (op)
	{
		case Opcode::Lt: return Opcode::Gt;
		case Opcode::Le: return Opcode::Ge;
		case Opcode::Gt: return Opcode::Lt;
		case Opcode::Ge: return Opcode::Le;
		default: return op;
	}
}

/*
 * The day that a date is on the same side of as of a constant timestamp, which date op
 * timestamp compares it with: most of these are midnights, of a date and an interval.
 */
static bool
date_bound(const Expr *expr, Opcode op, int32_t *day)
{
	const Const *con = (const Const *) expr;
	Timestamp	ts;
	int64		floor;

	if (!IsA(expr, Const) || con->constisnull)
		return false;
	ts = DatumGetTimestamp(con->constvalue);
	if (TIMESTAMP_NOT_FINITE(ts))
		return false;
	floor = ts / USECS_PER_DAY - (ts % USECS_PER_DAY < 0 ? 1 : 0);
	if (ts % USECS_PER_DAY != 0 && (op == Opcode::Eq || op == Opcode::Ne))
		return false;
	*day = static_cast<int32_t>(floor) + (ts % USECS_PER_DAY != 0 && rounds_up(op) ? 1 : 0);
	return true;
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
	int32_t		day;

	*type = fn->operand;
	if (fn->form == ValueForm::Numeric)
		return compile_numeric_operands(c, fn->opcode, args, ra, rb);
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

	if (fn->kind == FnKind::CompareDateLeft && date_bound(b, fn->opcode, &day))
	{
		*type = Type::I32;
		*ra = compile_expr(c, a);
		*rb = *ra < 0 ? -1 : int_value(c, Type::I32, day);
		return *rb >= 0;
	}
	if (fn->kind == FnKind::CompareDateRight && date_bound(a, commuted(fn->opcode), &day))
	{
		*type = Type::I32;
		*rb = compile_expr(c, b);
		*ra = *rb < 0 ? -1 : int_value(c, Type::I32, day);
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

		*date = value(c, Opcode::DateToTimestampSat, Type::I64, *date);
		return *date >= 0;
	}
	*ra = convert(c, *ra, fn->operand);
	*rb = convert(c, *rb, fn->operand);
	return *ra >= 0 && *rb >= 0;
}

bool
is_comparison(const FnEntry *fn)
{
	return fn->kind == FnKind::Compare || fn->kind == FnKind::CompareDateLeft || fn->kind == FnKind::CompareDateRight;
}

static bool
is_dictionary(const void *expr)
{
	return value_type(exprType(static_cast<const Node *>(expr))).form == ValueForm::Dictionary &&
		contain_var_clause(static_cast<Node *>(const_cast<void *>(expr)));
}

/* `collation`: what the function compares by. */
static int
compile_call(Compiler *c, Oid function, List *args, Oid collation)
{
	const FnEntry *fn = lookup_function(function);
	Type		type;
	int			ra;
	int			rb;

	if (fn == nullptr && meets_variable(c, args))
		return compile_text_match(c, function, args, collation);
	if (fn == nullptr)
	{
		const char *why = function_refusal(function);

		if (refuse_variables(c, args))
			return -1;
		if (why != nullptr)
			return refuse(c, "function %s is not supported: %s", format_procedure(function), why);
		if (list_length(args) == 2 && is_dictionary(linitial(args)) && is_dictionary(lsecond(args)))
			return refuse(c, "values of two dictionaries meet in function %s", format_procedure(function));
		return refuse(c, "function %s is not supported", format_procedure(function));
	}
	c->soft_errors = c->soft_errors || function_wraps(fn);
	if (meets_wide(c->input, fn, args))
		return compile_wide_comparison(c, fn->opcode, args);
	if (is_parameter_equality(fn, args))
		return compile_parameter_equality(c, fn, args);
	if (is_comparison(fn) || fn->kind == FnKind::Binary)
	{
		if (!compile_operands(c, fn, args, &type, &ra, &rb))
			return -1;
		return value(c, fn->opcode, type, ra, rb);
	}
	if (fn->kind >= FnKind::TimeOfTimestamp)
		return compile_zone_call(c, fn, args);
	if (fn->kind >= FnKind::Extract)
		return compile_datetime_call(c, fn, args);
	if (fn->kind >= FnKind::NumericBinary)
		return compile_numeric_call(c, fn, args);

	ra = compile_expr(c, static_cast<const Expr *>(linitial(args)));
	if (ra < 0)
		return -1;
	switch (fn->kind)
	{
		case FnKind::Shift:
			rb = compile_expr(c, static_cast<const Expr *>(lsecond(args)));
			return rb < 0 ? -1 : value(c, fn->opcode, fn->operand, ra, rb);
		case FnKind::Same:
			return ra;
		case FnKind::Angle:
			rb = float_value(c, Type::F64, RADIANS_PER_DEGREE);
			return rb < 0 ? -1 : value(c, fn->opcode, Type::F64, ra, rb);
		case FnKind::Cast:
			return convert(c, ra, fn->operand);
		default:				/* Unary, Convert */
			return value(c, fn->opcode, fn->operand, ra);
	}
}

static bool
is_known_value(const void *expr)
{
	return IsA(expr, Const) && !static_cast<const Const *>(expr)->constisnull;
}

static bool
text_key_operands(Compiler *c, const DictionaryComparison &comparison, int *ra, int *rb)
{
	*ra = compile_text_key(c, comparison.sides[0]);
	*rb = *ra < 0 ? -1 : compile_text_key(c, comparison.sides[1]);
	return *rb >= 0;
}

/* Both sides as integers that are equal where the texts are: of whole values, or of characters. False, without a reason: they are neither. */
static bool
are_text_integers(const Compiler *c, const DictionaryComparison &comparison)
{
	return text_keys_meet(c, comparison) || packed_texts_meet(c, comparison);
}

static bool
text_integers(Compiler *c, const DictionaryComparison &comparison, int *ra, int *rb)
{
	if (text_keys_meet(c, comparison))
		return text_key_operands(c, comparison, ra, rb);
	*ra = compile_packed_text(c, comparison.sides[0]);
	*rb = *ra < 0 ? -1 : compile_packed_text(c, comparison.sides[1]);
	return *rb >= 0;
}

static int
compile_distinct(Compiler *c, const DistinctExpr *expr)
{
	const FnEntry *fn = lookup_function(expr->opfuncid);
	DictionaryComparison comparison;
	Type		type;
	int			ra;
	int			rb;

	if (meets_variable(c, expr->args) && (is_known_value(linitial(expr->args)) || is_known_value(lsecond(expr->args))))
	{
		/* a null is distinct from a value */
		ra = compile_text_match(c, expr->opfuncid, expr->args, expr->inputcollid);
		return ra < 0 ? -1 : compile_not(c, value(c, Opcode::IsTrue, Type::Bool, ra));
	}
	if (fn == nullptr && dictionary_comparison(expr->opno, expr->inputcollid, expr->args, &comparison) && are_text_integers(c, comparison))
		return text_integers(c, comparison, &ra, &rb) ? value(c, Opcode::IsDistinct, Type::I64, ra, rb) : -1;
	if (fn == nullptr && dictionary_comparison(expr->opno, expr->inputcollid, expr->args, &comparison))
		return dictionary_operands(c, comparison, &ra, &rb) ? value(c, Opcode::IsDistinct, Type::I32, ra, rb) : -1;
	if (fn == nullptr || !is_comparison(fn))
		return refuse(c, "function %s is not supported", format_procedure(expr->opfuncid));
	if (meets_wide(c->input, fn, expr->args))
		return compile_wide_distinct(c, expr->args);
	if (!compile_operands(c, fn, expr->args, &type, &ra, &rb))
		return -1;
	return value(c, Opcode::IsDistinct, type, ra, rb);
}

/* x op y of two dictionaries' values, or any other call. */
static int
compile_operator(Compiler *c, Oid opno, Oid function, Oid collation, List *args)
{
	DictionaryComparison comparison;
	int			ra;
	int			rb;

	if (is_span_comparison(function, args))
		return compile_span_comparison(c, function, args);
	if (lookup_function(function) == nullptr && dictionary_comparison(opno, collation, args, &comparison))
	{
		if (are_text_integers(c, comparison))
			return text_integers(c, comparison, &ra, &rb) ? value(c, comparison.op, Type::I64, ra, rb) : -1;
		if (!meets_variable(c, args))
			return dictionary_operands(c, comparison, &ra, &rb) ? value(c, comparison.op, Type::I32, ra, rb) : -1;
	}
	return compile_call(c, function, args, collation);
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
	bool		variable = matches_variable(c->input, left);
	int			longest = variable ? PROGRAM_MAX_PATTERNS : MAX_IN_CHAIN;
	ListCell   *lc;

	if (packs_in(c->input, expr))
		return compile_packed_in(c, expr);
	if (!variable && (fn == nullptr ? !is_dictionary(left) : !is_comparison(fn)))
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

		if (!variable && vm_type(elemtype) == Type::None)
			return refuse(c, "type %s is not supported", format_type_be(elemtype));
		get_typlenbyvalalign(elemtype, &len, &byval, &align);
		deconstruct_array(array, elemtype, len, byval, align, &values, &nulls, &n);

		if (fn != nullptr && fn->kind == FnKind::Compare && type_is_int(fn->operand) && fn->opcode == wanted && n > 0 &&
			n <= PROGRAM_MAX_AUX / 2 && !is_wide(c->input, left))
		{
			int64_t    *list = static_cast<int64_t *>(palloc(sizeof(int64_t) * n));
			int			count = 0;
			int			reg = convert(c, compile_value(c, left), fn->operand);
			int			out;

			if (reg < 0)
				return -1;
			for (int i = 0; i < n; i++)
			{
				/* a number with more decimals equals none */
				if (!nulls[i] && fn->form == ValueForm::Numeric)
					count += numeric_at_scale(values[i], c->info[reg].scale, &list[count]);
				else if (!nulls[i])
					list[count++] = const_int(elemtype, values[i]);
			}
			std::sort(list, list + count);
			count = static_cast<int>(std::unique(list, list + count) - list);
			if (count > 0)
			{
				out = value(c, Opcode::In, fn->operand, reg, c->b->add_aux(list, count), count,
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

	if (list_length(elements) > longest)
		return refuse(c, "the list has more than %d elements", longest);
	/* PostgreSQL evaluates what is not compared with anything, too */
	if (elements == NIL && can_raise(left))
		return refuse(c, "an expression that may raise an error is compared with an empty list");
	if (elements == NIL)
		return int_value(c, Type::Bool, expr->useOr ? 0 : 1);
	foreach(lc, elements)
	{
		List	   *pair = list_make2(const_cast<Expr *>(left), lfirst(lc));
		int			reg = compile_operator(c, expr->opno, expr->opfuncid, expr->inputcollid, pair);

		if (reg < 0)
			return -1;
		acc = acc < 0 ? reg : value(c, expr->useOr ? Opcode::Or : Opcode::And, Type::Bool, acc, reg);
	}
	return acc;
}

/* Have the lanes passed the operation that writes the register, so that it can be used again? */
static bool
is_known(const Compiler *c, int reg)
{
	for (int i = c->nknown - 1; i >= 0; i--)
	{
		const Op   &o = c->b->ops[c->known[i]];
		const OpForm form = opcode_info[static_cast<int>(o.opcode)].form;

		if ((form == OpForm::COMPARE ? o.p3 : o.p1) == reg)
			return true;
	}
	return false;
}

static int	compile_node(Compiler *c, const Expr *expr);

/* NULLIF and others compile an operand twice: once each time would take time by the power of the depth. */
int
compile_expr(Compiler *c, const Expr *expr)
{
	const int	number = shared_number(expr);
	/* no expression has such an address */
	const void *fact = number == 0 ? static_cast<const void *>(expr)
		: reinterpret_cast<const void *>(static_cast<uintptr_t>(number) * alignof(std::max_align_t));
	/* what is shared is no numeric */
	const ScaleUse use = number == 0 ? c->scale_use : ScaleUse::One;
	uint64		known;
	int			reg;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (c->b->failed)
		return -1;
	if (IsA(expr, Var) || IsA(expr, Const) || IsA(expr, Param))
		return compile_node(c, expr);
	if (fact_known(Fact::Register, c, fact, &known) && static_cast<ScaleUse>(known >> 32) == use &&
		is_known(c, static_cast<int>(known & PG_UINT32_MAX)))
		return static_cast<int>(known & PG_UINT32_MAX);
	if (is_shared_again(expr))
		return refuse(c, "an expression is shared with what is not computed before it");
	reg = compile_node(c, expr);
	if (reg >= 0)
		fact_note(Fact::Register, c, fact, static_cast<uint64>(use) << 32 | static_cast<uint32>(reg));
	return reg;
}

static int
compile_node(Compiler *c, const Expr *expr)
{
	if (is_map(c, expr))
		return compile_map(c, expr);
	if (evaluated_at_start(expr))
		return compile_param(c, expr);
	if (is_pair(c, expr))
		return compile_pair(c, expr);
	switch (nodeTag(expr))
	{
		case T_Var:
			return compile_var(c, (const Var *) expr);
		case T_Const:
			return compile_const(c, (const Const *) expr);
		case T_Param:
			return compile_param(c, expr);
		case T_PlaceHolderVar:
			return compile_placeholder(c, (const PlaceHolderVar *) expr);
		case T_RelabelType:
			{
				const RelabelType *r = (const RelabelType *) expr;
				ValueType	to = value_type(r->resulttype);
				ValueType	from = value_type(exprType((const Node *) r->arg));

				if (to.type == Type::None || to.type != from.type || to.form != from.form)
					return refuse(c, "type %s is not supported", format_type_be(r->resulttype));
				return compile_expr(c, r->arg);
			}
		case T_CollateExpr:
			return compile_expr(c, ((const CollateExpr *) expr)->arg);
		case T_FuncExpr:
			if (is_text_length(c->input, expr))
				return compile_text_length(c, expr);
			if (which_half(expr) != 0)
				return compile_half(c, static_cast<const Expr *>(linitial(((const FuncExpr *) expr)->args)), which_half(expr) > 0);
			if (is_approximation(expr))
				return compile_approximation(c, static_cast<const Expr *>(linitial(((const FuncExpr *) expr)->args)));
			return compile_call(c, ((const FuncExpr *) expr)->funcid, ((const FuncExpr *) expr)->args, ((const FuncExpr *) expr)->inputcollid);
		case T_OpExpr:
			return compile_operator(c, ((const OpExpr *) expr)->opno, ((const OpExpr *) expr)->opfuncid, ((const OpExpr *) expr)->inputcollid,
									((const OpExpr *) expr)->args);
		case T_BoolExpr:
			if (((const BoolExpr *) expr)->boolop == NOT_EXPR)
				return compile_not(c, compile_expr(c, static_cast<const Expr *>(linitial(((const BoolExpr *) expr)->args))));
			return compile_and_or(c, (const BoolExpr *) expr);
		case T_RowCompareExpr:
			{
				const Expr *expanded = expand_row_compare((const RowCompareExpr *) expr);

				return expanded == nullptr ? refuse(c, "an expression of this kind is not supported") : compile_expr(c, expanded);
			}
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
			return refuse_variables(c, expr) ? -1 : refuse(c, "an expression of this kind is not supported");
	}
}

}  // namespace gpuvm
