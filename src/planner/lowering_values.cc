/*
 * lowering_values.cc: values of stages. A column of a stage is one value of its program's; what is computed of several, as an
 * average is of a sum and a count, is an expression over such columns, in PostgreSQL's own functions, wherever it is read.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "planner/lowering_values.h"

namespace gpuvm {

/* Operators of numeric and float8, which have no symbols. */
constexpr Oid NUMERIC_DIVIDE = 1761;
constexpr Oid NUMERIC_TIMES = 1760;
constexpr Oid NUMERIC_MINUS = 1759;
constexpr Oid NUMERIC_AT_MOST = 1755;
constexpr Oid INT8_TIMES = 686;
constexpr Oid INT8_AT_MOST = 414;
constexpr Oid INT4_TIMES = 514;
constexpr Oid INT4_PLUS = 551;
constexpr Oid FLOAT8_DIVIDE = 593;
constexpr Oid FLOAT8_PLUS = 591;

/* A numeric's decimals that PostgreSQL may guess to be four fewer than they are (select_div_scale). */
constexpr int QUOTIENT_DIGITS = 16;
constexpr int DIGITS_OF_ONE = 4;
/* Of a root beyond twice its decimals (root_at_own_scale()): variances of sums of 128 bits have roots of at most 20 digits. */
constexpr int ROOT_DIGITS = 24;

/* -- expressions ------------------------------------------------------------------------------------ */

static Expr *
call(Oid function, Oid type, List *args)
{
	return (Expr *) makeFuncExpr(function, type, args, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static Expr *
operation(Oid op, Oid type, Expr *a, Expr *b)
{
	OpExpr	   *expr = (OpExpr *) make_opclause(op, type, false, a, b, InvalidOid, InvalidOid);

	set_opfuncid(expr);
	return (Expr *) expr;
}

static Expr *
integer(int v)
{
	return (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(v), false, true);
}

static Expr *
rounded(Expr *number, Expr *digits)
{
	return call(F_ROUND_NUMERIC_INT4, NUMERICOID, list_make2(number, digits));
}

static Expr *
display_scale(Expr *number)
{
	return call(F_SCALE, INT4OID, list_make1(number));
}

/* -- numbers of one scale --------------------------------------------------------------------------- */

/* x / 2 as x * 0.5, where that has all decimals and so has PostgreSQL's quotient: x is short enough, or flagged; NULL: it has not. */
static Expr *
exact_quotient(const CompileInput *input, Expr *quotient)
{
	const FnEntry *fn;
	List	   *args;
	Expr	   *dividend;
	const Const *divisor;
	int64		by;
	int64		rest;
	int			twos = 0;
	int			fives = 0;
	int			scale;
	int			decimals;
	int			digits;

	fn = called_function(quotient, &args);
	if (fn == nullptr || !is_quotient(quotient))
		return nullptr;
	dividend = static_cast<Expr *>(linitial(args));
	divisor = static_cast<const Const *>(lsecond(args));
	scale = numeric_scale(input, dividend).scale;
	if (is_wide(input, dividend) || scale < 0 || !IsA(divisor, Const) || divisor->constisnull || !numeric_at_scale(divisor->constvalue, 0, &by) || by <= 0)
		return nullptr;
	for (rest = by; rest % 2 == 0; rest /= 2)
		twos++;
	for (; rest % 5 == 0; rest /= 5)
		fives++;
	decimals = Max(twos, fives);
	if (rest != 1 || scale + decimals > QUOTIENT_DIGITS)
		return nullptr;
	/* a quotient of so many digits before the point has as many decimals as are left of 16 */
	digits = Min(((QUOTIENT_DIGITS - scale - decimals) / DIGITS_OF_ONE + 1) * DIGITS_OF_ONE, SCALED_MAX_SCALE - scale);
	dividend = call(F_NUMERIC_NUMERIC_INT4, NUMERICOID, list_make2(dividend, integer(((digits + scale) << 16 | scale) + VARHDRSZ)));
	return operation(NUMERIC_TIMES, NUMERICOID, dividend,
					 (Expr *) makeConst(NUMERICOID, -1, InvalidOid, -1, scaled_to_numeric(scaled_pow10[decimals] / by, decimals), false, false));
}

/* The same numbers, all at one scale, though they may be shown with fewer or more decimals; NULL: there is none. */
static Expr *
at_one_scale(const CompileInput *input, Expr *number)
{
	const int	scale = numeric_scale(input, number).scale;

	if (is_wide(input, number))
		return exact_quotient(input, number);
	return scale < 0 || scale > SCALED_MAX_SCALE ? nullptr : rounded(number, integer(scale));
}

static bool
is_mixed(const CompileInput *input, const Expr *expr)
{
	return exprType((const Node *) expr) == NUMERICOID && numeric_scale(input, expr).mixed;
}

Node *
without_display_scale(const CompileInput *input, Node *number)
{
	const FuncExpr *call = (const FuncExpr *) number;
	Expr	   *same = nullptr;

	if (IsA(number, FuncExpr) && is_shown_apart(input, call->funcid, call->args))
		return static_cast<Node *>(linitial(call->args));
	if (!IsA(number, Var) && is_mixed(input, (Expr *) number))
		same = at_one_scale(input, (Expr *) number);
	return same != nullptr ? (Node *) same : number;
}

/* -- aggregates --------------------------------------------------------------------------------------- */

/* Another aggregate of the same rows. */
static Aggref *
aggregate_like(const Aggref *agg, Oid function, Oid type)
{
	Aggref	   *made = static_cast<Aggref *>(copyObjectImpl(agg));

	made->aggfnoid = function;
	made->aggtype = made->aggtranstype = type;
	return made;
}

static Aggref *
aggregate_of(const Aggref *agg, Oid function, Oid type, Expr *arg)
{
	Aggref	   *made = aggregate_like(agg, function, type);

	linitial_node(TargetEntry, made->args)->expr = arg;
	made->aggargtypes = list_make1_oid(exprType((Node *) arg));
	return made;
}

/* A sum of numerics, whose display scale is the greatest of theirs. */
static Expr *
numeric_sum(GroupValues *groups, const Aggref *agg)
{
	Expr	   *arg = linitial_node(TargetEntry, agg->args)->expr;
	Expr	   *number = agg->aggdistinct == NIL && is_mixed(groups->input, arg) ? at_one_scale(groups->input, arg) : nullptr;
	Expr	   *sum = (Expr *) aggregate_like(agg, F_SUM_NUMERIC, NUMERICOID);
	Expr	   *scale;

	if (number == nullptr)
		return sum;
	sum = (Expr *) aggregate_of(agg, F_SUM_NUMERIC, NUMERICOID, number);
	scale = (Expr *) aggregate_of(agg, F_MAX_INT4, INT4OID, display_scale(arg));
	groups->shown = lappend(groups->shown, list_make2(sum, scale));
	return rounded(sum, scale);
}

/* As numeric_avg() and its kin end it. */
static Expr *
numeric_average(const Aggref *agg, Expr *sum)
{
	Expr	   *count = (Expr *) aggregate_like(agg, F_COUNT_ANY, INT8OID);

	if (exprType((Node *) sum) != NUMERICOID)
		sum = call(F_NUMERIC_INT8, NUMERICOID, list_make1(sum));
	return operation(NUMERIC_DIVIDE, NUMERICOID, sum, call(F_NUMERIC_INT8, NUMERICOID, list_make1(count)));
}

static Expr *
numeric_constant(int64 v)
{
	return (Expr *) makeConst(NUMERICOID, -1, InvalidOid, -1, scaled_to_numeric(v, 0), false, false);
}

static CaseWhen *
case_when(Expr *condition, Expr *result)
{
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = condition;
	when->result = result;
	when->location = -1;
	return when;
}

/*
 * sqrt_var() at the scale of its argument, for which sqrt() may choose a larger one. Rounded twice it is the same where the
 * first result has digits enough: a root of s decimals that is not halfway between two is further from that than 10^-(2s + 22).
 */
static Expr *
root_at_own_scale(Expr *x)
{
	Expr	   *digits = operation(INT4_PLUS, INT4OID, operation(INT4_TIMES, INT4OID, display_scale(x), integer(2)), integer(ROOT_DIGITS));

	return rounded(call(F_SQRT_NUMERIC, NUMERICOID, list_make1(rounded(x, digits))), display_scale(x));
}

/* The sum of the squares, in a type that has them; NULL: there is none. */
static Expr *
sum_of_squares(GroupValues *groups, const Aggref *agg)
{
	Expr	   *arg = linitial_node(TargetEntry, agg->args)->expr;
	const Oid	type = exprType((Node *) arg);

	if (type == INT2OID || type == INT4OID)
	{
		arg = call(type == INT2OID ? F_INT8_INT2 : F_INT8_INT4, INT8OID, list_make1(arg));
		return (Expr *) aggregate_of(agg, F_SUM_INT8, NUMERICOID, operation(INT8_TIMES, INT8OID, arg, arg));
	}
	if (type != NUMERICOID || is_mixed(groups->input, arg) || is_wide(groups->input, arg) || numeric_scale(groups->input, arg).scale < 0 ||
		2 * numeric_scale(groups->input, arg).scale > SCALED_MAX_SCALE)
		return nullptr;
	return (Expr *) aggregate_of(agg, F_SUM_NUMERIC, NUMERICOID, operation(NUMERIC_TIMES, NUMERICOID, arg, arg));
}

/* As numeric_stddev_internal() ends it. */
static Expr *
numeric_variance(GroupValues *groups, Aggref *agg, bool sample, bool root)
{
	const Oid	type = exprType((Node *) linitial_node(TargetEntry, agg->args)->expr);
	Expr	   *squares = agg->aggdistinct == NIL ? sum_of_squares(groups, agg) : nullptr;
	CaseExpr   *expr = makeNode(CaseExpr);
	Expr	   *count = (Expr *) aggregate_like(agg, F_COUNT_ANY, INT8OID);
	Expr	   *n = call(F_NUMERIC_INT8, NUMERICOID, list_make1(count));
	Expr	   *least = (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(sample ? 1 : 0), false, FLOAT8PASSBYVAL);
	Expr	   *sum;
	Expr	   *result;

	if (squares == nullptr)
		return (Expr *) agg;
	if (type == NUMERICOID)
		sum = (Expr *) aggregate_like(agg, F_SUM_NUMERIC, NUMERICOID);
	else
		sum = call(F_NUMERIC_INT8, NUMERICOID, list_make1(aggregate_like(agg, type == INT2OID ? F_SUM_INT2 : F_SUM_INT4, INT8OID)));
	squares = operation(NUMERIC_MINUS, NUMERICOID, operation(NUMERIC_TIMES, NUMERICOID, n, squares), operation(NUMERIC_TIMES, NUMERICOID, sum, sum));
	result = operation(NUMERIC_TIMES, NUMERICOID, n, sample ? operation(NUMERIC_MINUS, NUMERICOID, n, numeric_constant(1)) : n);
	result = operation(NUMERIC_DIVIDE, NUMERICOID, squares, result);
	expr->casetype = NUMERICOID;
	expr->args = list_make2(case_when(operation(INT8_AT_MOST, BOOLOID, count, least), (Expr *) makeNullConst(NUMERICOID, -1, InvalidOid)),
							case_when(operation(NUMERIC_AT_MOST, BOOLOID, squares, numeric_constant(0)), numeric_constant(0)));
	expr->defresult = root ? root_at_own_scale(result) : result;
	expr->location = -1;
	return (Expr *) expr;
}

/* As float8_avg() ends it: the sum starts at 0, so the mean of nothing but -0 is 0. */
static Expr *
float_average(const Aggref *agg)
{
	Const	   *zero = makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(0), false, FLOAT8PASSBYVAL);
	Expr	   *total = operation(FLOAT8_PLUS, FLOAT8OID, (Expr *) aggregate_like(agg, F_SUM_FLOAT8, FLOAT8OID), (Expr *) zero);

	return operation(FLOAT8_DIVIDE, FLOAT8OID, total, call(F_FLOAT8_INT8, FLOAT8OID, list_make1(aggregate_like(agg, F_COUNT_ANY, INT8OID))));
}

/* The aggregate by what is one value each; itself where it is one, or cannot be made of such. */
static Expr *
split_aggregate(GroupValues *groups, Aggref *agg)
{
	switch (agg->aggfnoid)
	{
		case F_SUM_NUMERIC: return numeric_sum(groups, agg);
		case F_AVG_NUMERIC: return numeric_average(agg, numeric_sum(groups, agg));
		case F_AVG_INT2: return numeric_average(agg, (Expr *) aggregate_like(agg, F_SUM_INT2, INT8OID));
		case F_AVG_INT4: return numeric_average(agg, (Expr *) aggregate_like(agg, F_SUM_INT4, INT8OID));
		case F_AVG_INT8: return numeric_average(agg, (Expr *) aggregate_like(agg, F_SUM_INT8, NUMERICOID));
		case F_AVG_FLOAT8: return float_average(agg);
		case F_VAR_SAMP_INT2: case F_VAR_SAMP_INT4: case F_VAR_SAMP_NUMERIC:
		case F_VARIANCE_INT2: case F_VARIANCE_INT4: case F_VARIANCE_NUMERIC: return numeric_variance(groups, agg, true, false);
		case F_VAR_POP_INT2: case F_VAR_POP_INT4: case F_VAR_POP_NUMERIC: return numeric_variance(groups, agg, false, false);
		case F_STDDEV_SAMP_INT2: case F_STDDEV_SAMP_INT4: case F_STDDEV_SAMP_NUMERIC:
		case F_STDDEV_INT2: case F_STDDEV_INT4: case F_STDDEV_NUMERIC: return numeric_variance(groups, agg, true, true);
		case F_STDDEV_POP_INT2: case F_STDDEV_POP_INT4: case F_STDDEV_POP_NUMERIC: return numeric_variance(groups, agg, false, true);
		default: return (Expr *) agg;
	}
}

static Node *
split_mutator(Node *node, void *context)
{
	GroupValues *groups = static_cast<GroupValues *>(context);

	if (node == nullptr || list_member(groups->keys, node))
		return node;
	if (IsA(node, Aggref))
		return (Node *) split_aggregate(groups, (Aggref *) node);
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(split_mutator), context);
}

Node *
split_aggregates(GroupValues *groups, Node *expr)
{
	return split_mutator(expr, groups);
}

/* -- what is read of a stage -------------------------------------------------------------------------- */

struct RawValues
{
	const List *keys;
	List	   *found;
};

static bool
raw_walker(Node *node, void *context)
{
	RawValues  *raw = static_cast<RawValues *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Aggref) || IsA(node, Var) || list_member(raw->keys, node))
	{
		raw->found = list_append_unique(raw->found, node);
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(raw_walker), context);
}

List *
raw_values(const List *exprs, const List *keys)
{
	RawValues	raw = {keys, NIL};

	raw_walker((Node *) const_cast<List *>(exprs), &raw);
	return raw.found;
}

List *
shown_of_groups(const GroupValues *groups, const List *raw)
{
	List	   *shown = NIL;
	ListCell   *lc;

	foreach(lc, groups->shown)
	{
		int			of = 0;
		int			by = 0;
		ListCell   *column;

		foreach(column, raw)
		{
			if (equal(lfirst(column), linitial(lfirst_node(List, lc))))
				of = foreach_current_index(column) + 1;
			if (equal(lfirst(column), lsecond(lfirst_node(List, lc))))
				by = foreach_current_index(column) + 1;
		}
		if (of != 0 && by != 0)
			shown = list_append_unique(shown, list_make2_int(of, by));
	}
	return shown;
}

bool
is_null(const Node *expr)
{
	return IsA(expr, Const) && ((const Const *) expr)->constisnull;
}

bool
null_without_row(Node *expr)
{
	return IsA(expr, Var) || (contain_var_clause(expr) && !contain_nonstrict_functions(expr));
}

/* -- rows -------------------------------------------------------------------------------------------- */

static Var *
column_of_rows(const RowValues *rows, int number)
{
	const Node *expr = static_cast<const Node *>(list_nth(rows->columns, number - 1));

	return makeVar(0, number, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);
}

static Var *
add_column(RowValues *rows, void *expr)
{
	rows->columns = lappend(rows->columns, expr);
	return column_of_rows(rows, list_length(rows->columns));
}

/* A number and its display scale. */
static Node *
add_pair(RowValues *rows, Node *number, Node *scale)
{
	Var		   *of = add_column(rows, number);
	Var		   *by = add_column(rows, scale);

	rows->shown = lappend(rows->shown, list_make2_int(of->varattno, by->varattno));
	return (Node *) rounded((Expr *) of, (Expr *) by);
}

struct ValueParts
{
	RowValues  *rows;
	const CompileInput *input;
	const List *scales;
	int			at;
};

/* The next column, at the scale that it is to have. */
static Node *
next_part(ValueParts *parts, Node *var, bool *scaled)
{
	const int	scale = parts->scales == NIL ? -1 : list_nth_int(parts->scales, parts->at);

	parts->at++;
	*scaled = scale >= 0;
	return *scaled ? (Node *) rounded((Expr *) var, integer(scale)) : var;
}

static Node *
parts_mutator(Node *node, void *context)
{
	ValueParts *parts = static_cast<ValueParts *>(context);
	const FuncExpr *call = (const FuncExpr *) node;
	Node	   *number;
	bool		scaled;

	if (node == nullptr)
		return nullptr;
	if (IsA(node, FuncExpr) && is_shown_apart(parts->input, call->funcid, call->args))
	{
		number = next_part(parts, static_cast<Node *>(linitial(call->args)), &scaled);
		return add_pair(parts->rows, number, next_part(parts, static_cast<Node *>(lsecond(call->args)), &scaled));
	}
	if (!IsA(node, Var))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(parts_mutator), context);
	number = next_part(parts, node, &scaled);
	return scaled ? add_pair(parts->rows, number, (Node *) display_scale((Expr *) node)) : (Node *) add_column(parts->rows, number);
}

void
add_whole(RowValues *rows, Node *expr)
{
	rows->values = lappend(rows->values, add_column(rows, expr));
}

void
add_parts(RowValues *rows, const CompileInput *input, Node *expr, const List *scales)
{
	ValueParts	parts = {rows, input, scales, 0};

	rows->values = lappend(rows->values, parts_mutator(expr, &parts));
}

void
add_with_scale(RowValues *rows, Node *expr, int scale)
{
	rows->values = lappend(rows->values, add_pair(rows, (Node *) rounded((Expr *) expr, integer(scale)), (Node *) display_scale((Expr *) expr)));
}

void
add_at_scale(RowValues *rows, Node *expr, int scale)
{
	add_whole(rows, (Node *) rounded((Expr *) expr, integer(scale)));
}

bool
has_one_scale(const CompileInput *input, Node *expr)
{
	return IsA(expr, Var) || exprType(expr) != NUMERICOID || (!is_mixed(input, (Expr *) expr) && !is_wide(input, (Expr *) expr));
}

void
add_value(RowValues *rows, const CompileInput *input, Node *expr, bool apart)
{
	if (has_one_scale(input, expr))
		add_whole(rows, expr);
	else if (!is_wide(input, (Expr *) expr) && numeric_scale(input, (Expr *) expr).scale <= SCALED_MAX_SCALE)
		add_with_scale(rows, expr, numeric_scale(input, (Expr *) expr).scale);
	else if (apart)
		add_parts(rows, input, expr, NIL);
	else
		add_whole(rows, expr);
}

struct Move
{
	int			from;
	int			to;
};

static Node *
move_mutator(Node *node, void *context)
{
	const Move *move = static_cast<const Move *>(context);
	Var		   *var;

	if (node == nullptr)
		return nullptr;
	if (!IsA(node, Var) || static_cast<int>(((Var *) node)->varno) != move->from)
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(move_mutator), context);
	var = static_cast<Var *>(copyObjectImpl(node));
	var->varno = var->varnosyn = move->to;
	return (Node *) var;
}

List *
move_values(List *values, int from, int to)
{
	Move		move = {from, to};

	return (List *) move_mutator((Node *) values, &move);
}

List *
values_of_relation(List *values, int relid)
{
	return move_values(values, 0, relid);
}

}  // namespace gpuvm
