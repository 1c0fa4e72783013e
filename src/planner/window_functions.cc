/* window_functions.cc: see window_functions.h. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "pg/value_form.h"
#include "planner/window_functions.h"

namespace gpuvm {

/* Operators without a symbol. */
constexpr Oid NUMERIC_DIVIDE = 1761;
constexpr Oid FLOAT8_DIVIDE = 593;

Node *
without_relabel(Node *expr)
{
	while (expr != nullptr && IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	return expr;
}

int
list_position(const List *exprs, const Node *expr)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (equal(lfirst(lc), expr))
			return foreach_current_index(lc);
	}
	return -1;
}

/* -- frames ------------------------------------------------------------------------------------- */

/* An expression without columns, as one of the plan's window_values; -1 and a reason. */
static int
add_value(WindowStage *w, const Node *expr)
{
	Node	   *value = resolve(w->l, expr);

	if (value == nullptr || contain_var_clause(value))
	{
		refuse_order(&w->sorting, "an offset or a default of a window function is not the same for all rows");
		return -1;
	}
	w->plan->window_values = lappend(w->plan->window_values, value);
	return list_length(w->plan->window_values) - 1;
}

static FrameBound
bound_of(int options, int unbounded, int current, int preceding)
{
	return options & unbounded ? FrameBound::Unbounded : options & current ? FrameBound::CurrentRow
		: options & preceding ? FrameBound::Preceding : FrameBound::Following;
}

/* What a RANGE's offsets are added to: one key, and they are of a kind that gpuvmd adds. */
static bool
range_unit(WindowStage *w, const WindowClause *clause, const List *order, PlanWindow *window)
{
	const bool	single = list_length(order) == 1 && list_length(clause->orderClause) == 1;
	Node	   *key = single ? without_relabel(static_cast<Node *>(linitial(order))) : nullptr;
	const Oid	type = key != nullptr ? exprType(key) : InvalidOid;

	switch (type)
	{
		case INT2OID: case INT4OID: case INT8OID: case FLOAT8OID:
			window->unit = RangeUnit::Number;
			return true;
		case NUMERICOID:
			window->unit = RangeUnit::Number;
			window->scale = child_column(list_nth_node(List, w->stage.columns, list_position(w->exprs, key))).scale;
			return true;
		case DATEOID:
			window->unit = RangeUnit::Date;
			return true;
		case TIMESTAMPOID: case TIMESTAMPTZOID:
			window->unit = RangeUnit::Timestamp;
			window->zone = type == TIMESTAMPTZOID;
			return true;
		default:
			return refuse_order(&w->sorting, "RANGE with an offset is of one key, a number, a date or a timestamp");
	}
}

bool
window_frame(WindowStage *w, const WindowClause *clause, const List *order, PlanWindow *window)
{
	const int	options = clause->frameOptions;

	if (options & FRAMEOPTION_EXCLUSION)
		return refuse_order(&w->sorting, "EXCLUDE is not supported in a window's frame");
	window->mode = options & FRAMEOPTION_ROWS ? FrameMode::Rows
		: options & FRAMEOPTION_GROUPS ? FrameMode::Groups : FrameMode::Range;
	window->start = bound_of(options, FRAMEOPTION_START_UNBOUNDED_PRECEDING, FRAMEOPTION_START_CURRENT_ROW,
							 FRAMEOPTION_START_OFFSET_PRECEDING);
	window->end = bound_of(options, FRAMEOPTION_END_UNBOUNDED_FOLLOWING, FRAMEOPTION_END_CURRENT_ROW,
						   FRAMEOPTION_END_OFFSET_PRECEDING);
	window->scale = window->start_value = window->end_value = -1;
	if (has_offset(window->start) && (window->start_value = add_value(w, clause->startOffset)) < 0)
		return false;
	if (has_offset(window->end) && (window->end_value = add_value(w, clause->endOffset)) < 0)
		return false;
	if (window->mode != FrameMode::Range || (!has_offset(window->start) && !has_offset(window->end)))
		return true;
	return range_unit(w, clause, order, window);
}

/* -- functions ------------------------------------------------------------------------------------- */

/* How PostgreSQL's function is computed. */
enum class Made
{
	Unknown,
	Number,						/* of rows or peers alone */
	Pick,						/* a value of another row */
	Count,
	Sum,
	Average,
	Extreme,
	Condition,
};

struct KnownFunction
{
	WindowFn	fn;
	Made		made;
};

static bool
is_extreme(Oid function, const char *name)
{
	return get_func_namespace(function) == PG_CATALOG_NAMESPACE && strcmp(get_func_name(function), name) == 0;
}

static KnownFunction
known_function(Oid function)
{
	switch (function)
	{
		case F_ROW_NUMBER: return {WindowFn::RowNumber, Made::Number};
		case F_RANK_: return {WindowFn::Rank, Made::Number};
		case F_DENSE_RANK_: return {WindowFn::DenseRank, Made::Number};
		case F_PERCENT_RANK_: return {WindowFn::PercentRank, Made::Number};
		case F_CUME_DIST_: return {WindowFn::CumeDist, Made::Number};
		case F_NTILE: return {WindowFn::Ntile, Made::Number};
		case F_LAG_ANYELEMENT:
		case F_LAG_ANYELEMENT_INT4:
		case F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE: return {WindowFn::Lag, Made::Pick};
		case F_LEAD_ANYELEMENT:
		case F_LEAD_ANYELEMENT_INT4:
		case F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE: return {WindowFn::Lead, Made::Pick};
		case F_FIRST_VALUE: return {WindowFn::FirstValue, Made::Pick};
		case F_LAST_VALUE: return {WindowFn::LastValue, Made::Pick};
		case F_NTH_VALUE: return {WindowFn::NthValue, Made::Pick};
		case F_COUNT_:
		case F_COUNT_ANY: return {WindowFn::Count, Made::Count};
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_SUM_FLOAT8: return {WindowFn::Sum, Made::Sum};
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_AVG_FLOAT4:
		case F_AVG_FLOAT8: return {WindowFn::Sum, Made::Average};
		case F_BOOL_AND:
		case F_EVERY: return {WindowFn::BoolAnd, Made::Condition};
		case F_BOOL_OR: return {WindowFn::BoolOr, Made::Condition};
		default:
			if (is_extreme(function, "min"))
				return {WindowFn::Min, Made::Extreme};
			if (is_extreme(function, "max"))
				return {WindowFn::Max, Made::Extreme};
			return {WindowFn::RowNumber, Made::Unknown};
	}
}

static Node *
cast_to(Oid function, Oid type, Node *arg)
{
	return (Node *) makeFuncExpr(function, type, list_make1(arg), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST);
}

/* What is read of each row; NULL: nothing. */
static Node *
argument_of(const WindowFunc *f)
{
	Node	   *arg;

	if (f->args == NIL || f->winfnoid == F_NTILE)
		return nullptr;
	arg = without_relabel(static_cast<Node *>(linitial(f->args)));
	/* rows are counted, then */
	if (f->winfnoid == F_COUNT_ANY && IsA(arg, Const) && !((const Const *) arg)->constisnull)
		return nullptr;
	if (f->winfnoid == F_AVG_FLOAT4)
		return cast_to(F_FLOAT8_FLOAT4, FLOAT8OID, arg);
	return arg;
}

/* NULL: it leaves out none. */
static Node *
filter_of(const WindowFunc *f)
{
	const Const *filter = (const Const *) f->aggfilter;

	if (filter != nullptr && IsA(filter, Const) && !filter->constisnull && DatumGetBool(filter->constvalue))
		return nullptr;
	return (Node *) f->aggfilter;
}

List *
window_columns(const WindowFunc *f)
{
	List	   *columns = NIL;

	if (argument_of(f) != nullptr)
		columns = lappend(columns, argument_of(f));
	if (filter_of(f) != nullptr)
		columns = lappend(columns, filter_of(f));
	return columns;
}

static ChildColumn
plain_column(Oid type, Type of)
{
	return ChildColumn{0, of, ValueForm::Plain, -1, false, type, -1, InvalidOid};
}

static ChildColumn
numeric_column(int scale)
{
	return ChildColumn{0, Type::I64, ValueForm::Numeric, scale, false, NUMERICOID, -1, InvalidOid};
}

/* A column more of the stage: its number, from 1. */
static int
add_column(WindowStage *w, PlanWindow *window, const WindowFunc *f, const PlanWindowFunction &function,
		   ChildColumn column)
{
	WindowFunc *result = static_cast<WindowFunc *>(copyObjectImpl(f));

	result->wintype = column.pg_type;
	result->wincollid = column.collation;
	column.attnum = list_length(w->stage.columns) + 1;
	w->stage.columns = lappend(w->stage.columns, child_column_to_list(column));
	w->results = lappend(w->results, result);
	window->functions = lappend(window->functions, plan_window_function_to_list(function));
	return column.attnum;
}

static bool
refuse_function(WindowStage *w, const WindowFunc *f, const char *why)
{
	const char *type = f->args != NIL ? format_type_be(exprType(static_cast<Node *>(linitial(f->args)))) : "";

	return refuse_order(&w->sorting, psprintf("%s(%s) is not computed over a window: %s",
											  get_func_name(f->winfnoid), type, why));
}

/* The second argument, and the third. */
static bool
add_arguments(WindowStage *w, const WindowFunc *f, const ChildColumn &column, PlanWindowFunction *function)
{
	const Node *instead = list_length(f->args) > 2 ? static_cast<const Node *>(lthird(f->args)) : nullptr;

	if (list_length(f->args) > 1 && (function->number = add_value(w, static_cast<const Node *>(lsecond(f->args)))) < 0)
		return false;
	if (instead == nullptr || (IsA(instead, Const) && ((const Const *) instead)->constisnull))
		return true;
	if ((column.form != ValueForm::Plain && column.form != ValueForm::Numeric) || exprType(instead) != column.pg_type)
		return refuse_function(w, f, "a default is a number, a date, or the like");
	function->scale = column.form == ValueForm::Numeric ? column.scale : -1;
	function->instead = add_value(w, instead);
	return function->instead >= 0;
}

/* Sums are of 64 bits: one that is not flags an error. */
static bool
sum_column(WindowStage *w, const PlanWindow *window, const WindowFunc *f, const ChildColumn &argument, ChildColumn *sum)
{
	const bool	average = known_function(f->winfnoid).made == Made::Average;

	switch (argument.form)
	{
		case ValueForm::Numeric:
			*sum = numeric_column(argument.scale);
			return true;
		case ValueForm::Plain:
			break;
		default:
			return refuse_function(w, f, "its argument is of variable length");
	}
	if (argument.pg_type == FLOAT8OID)
	{
		if (window->start != FrameBound::Unbounded)
			return refuse_function(w, f, "the frame moves");
		*sum = plain_column(FLOAT8OID, Type::F64);
		return true;
	}
	if (argument.pg_type != INT2OID && argument.pg_type != INT4OID && argument.pg_type != INT8OID)
		return refuse_function(w, f, "its argument is no number");
	*sum = argument.pg_type == INT8OID && !average ? numeric_column(0) : plain_column(INT8OID, Type::I64);
	return true;
}

static bool
extreme_column(WindowStage *w, const WindowFunc *f, const ChildColumn &argument, PlanWindowFunction *function,
			   ChildColumn *column)
{
	*column = argument;
	column->pg_type = f->wintype;
	column->collation = f->wincollid;
	column->typmod = -1;
	switch (argument.form)
	{
		case ValueForm::Numeric:
			return true;
		case ValueForm::Dictionary:
			if (!dictionary_equality(argument.pg_type, argument.typmod, f->inputcollid))
				return refuse_function(w, f, "values may be equal without being the same");
			function->map = ranks_of_column(&w->sorting, function->column, f->inputcollid);
			return function->map >= 0;
		case ValueForm::Plain:
			switch (argument.pg_type)
			{
				case INT2OID: case INT4OID: case INT8OID: case FLOAT4OID: case FLOAT8OID:
				case DATEOID: case TIMEOID: case TIMESTAMPOID: case TIMESTAMPTZOID:
					return true;
				default:
					break;
			}
			break;
		default:
			break;
	}
	return refuse_function(w, f, "its argument is of another type");
}

/* Does it depend on which of two peers comes first? */
static bool
tells_peers(WindowFn fn, const PlanWindow *window)
{
	const bool	all = window->start == FrameBound::Unbounded && window->end == FrameBound::Unbounded;

	switch (fn)
	{
		case WindowFn::RowNumber: case WindowFn::Ntile:
			return true;
		case WindowFn::Rank: case WindowFn::DenseRank: case WindowFn::PercentRank: case WindowFn::CumeDist:
			return false;
		default:
			return picks_value(fn) || (window->mode == FrameMode::Rows && !all);
	}
}

static WindowFunc *
resolved_function(WindowStage *w, const TargetEntry *column)
{
	return (WindowFunc *) resolve(w->l, (const Node *) column->expr);
}

bool
window_function(WindowStage *w, PlanWindow *window, const TargetEntry *column)
{
	const WindowFunc *f = resolved_function(w, column);
	const KnownFunction known = known_function(f->winfnoid);
	const Node *arg = argument_of(f);
	const Node *filter = filter_of(f);
	PlanWindowFunction function = {known.fn, Type::I64, list_position(w->exprs, arg), list_position(w->exprs, filter),
		-1, -1, -1, -1, f->winfnoid};
	ChildColumn argument = {};
	ChildColumn result = plain_column(f->wintype, Type::I64);
	WindowResult *made = static_cast<WindowResult *>(palloc0(sizeof(WindowResult)));

	if ((arg != nullptr && function.column < 0) || (filter != nullptr && function.filter < 0))
		return refuse_function(w, f, "its argument is no column");
	/* PostgreSQL takes rows that need no sort as they come, and their order is one that somebody may have asked for */
	if (tells_peers(known.fn, window) && (w->ordered || window->npartition + window->norder == 0))
		return refuse_function(w, f, "it depends on the order in which the rows come");
	if (arg != nullptr)
		argument = child_column(list_nth_node(List, w->stage.columns, function.column));
	switch (known.made)
	{
		case Made::Unknown:
			return refuse_function(w, f, "gpuvmd does not know it");
		case Made::Number:
			if (f->winfnoid == F_NTILE)
				function.number = add_value(w, static_cast<const Node *>(linitial(f->args)));
			if (f->winfnoid == F_NTILE && function.number < 0)
				return false;
			result.type = value_type(f->wintype).type;
			break;
		case Made::Pick:
			result = argument;
			result.pg_type = f->wintype;
			result.collation = f->wincollid;
			if (!add_arguments(w, f, result, &function))
				return false;
			break;
		case Made::Count:
			break;
		case Made::Sum:
		case Made::Average:
			if (!sum_column(w, window, f, argument, &result))
				return false;
			break;
		case Made::Extreme:
			if (!extreme_column(w, f, argument, &function, &result))
				return false;
			break;
		case Made::Condition:
			result.type = Type::Bool;
			break;
	}
	function.type = result.type;
	if (known.made == Made::Average)
		function.function = F_SUM_NUMERIC;
	made->number = column->resno;
	made->columns[0] = add_column(w, window, f, function, result);
	if (known.made == Made::Average)
	{
		function.fn = WindowFn::Count;
		function.type = Type::I64;
		function.function = F_COUNT_ANY;
		made->columns[1] = add_column(w, window, f, function, plain_column(INT8OID, Type::I64));
	}
	w->made = lappend(w->made, made);
	return true;
}

/* -- values ---------------------------------------------------------------------------------------- */

static Node *
column_of_stage(const WindowStage *w, int number, int relid)
{
	const ChildColumn column = child_column(list_nth_node(List, w->stage.columns, number - 1));

	return (Node *) makeVar(relid, number, column.pg_type, column.typmod, column.collation, 0);
}

/* As PostgreSQL ends an average: of no values both are null. */
static Node *
average_of(Node *sum, Node *count)
{
	const bool	is_float = exprType(sum) == FLOAT8OID;
	OpExpr	   *division;

	if (exprType(sum) == INT8OID)
		sum = cast_to(F_NUMERIC_INT8, NUMERICOID, sum);
	count = is_float ? cast_to(F_FLOAT8_INT8, FLOAT8OID, count) : cast_to(F_NUMERIC_INT8, NUMERICOID, count);
	division = (OpExpr *) make_opclause(is_float ? FLOAT8_DIVIDE : NUMERIC_DIVIDE, exprType(count), false,
										(Expr *) sum, (Expr *) count, InvalidOid, InvalidOid);
	set_opfuncid(division);
	return (Node *) division;
}

Node *
window_value(const WindowStage *w, const TargetEntry *column, int relid)
{
	ListCell   *lc;

	foreach(lc, w->made)
	{
		const WindowResult *made = static_cast<const WindowResult *>(lfirst(lc));
		Node	   *value;

		if (made->number != column->resno)
			continue;
		value = column_of_stage(w, made->columns[0], relid);
		return made->columns[1] == 0 ? value : average_of(value, column_of_stage(w, made->columns[1], relid));
	}
	return nullptr;
}

}  // namespace gpuvm
