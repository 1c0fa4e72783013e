/* plan_windows.cc: see plan_windows.h. */
#include "pg/pg.h"

extern "C" {
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
}

#include "planner/plan_windows.h"
#include "planner/scan_plan.h"

namespace gpuvm {

List *
plan_window_to_list(const PlanWindow &w)
{
	List	   *list = list_make3_int(w.npartition, w.norder, static_cast<int>(w.mode));

	list = lappend_int(list, static_cast<int>(w.start));
	list = lappend_int(list, static_cast<int>(w.end));
	list = lappend_int(list, static_cast<int>(w.unit));
	list = lappend_int(list, w.zone);
	list = lappend_int(list, w.scale);
	list = lappend_int(list, w.start_value);
	list = lappend_int(list, w.end_value);
	return list_make2(list, w.functions);
}

PlanWindow
plan_window(List *list)
{
	const List *numbers = linitial_node(List, list);
	PlanWindow	w = {};

	w.npartition = linitial_int(numbers);
	w.norder = lsecond_int(numbers);
	w.mode = static_cast<FrameMode>(lthird_int(numbers));
	w.start = static_cast<FrameBound>(lfourth_int(numbers));
	w.end = static_cast<FrameBound>(list_nth_int(numbers, 4));
	w.unit = static_cast<RangeUnit>(list_nth_int(numbers, 5));
	w.zone = list_nth_int(numbers, 6) != 0;
	w.scale = list_nth_int(numbers, 7);
	w.start_value = list_nth_int(numbers, 8);
	w.end_value = list_nth_int(numbers, 9);
	w.functions = lsecond_node(List, list);
	return w;
}

List *
plan_window_function_to_list(const PlanWindowFunction &f)
{
	List	   *list = list_make5_int(static_cast<int>(f.fn), static_cast<int>(f.type), f.column, f.filter, f.map);

	list = lappend_int(list, f.number);
	list = lappend_int(list, f.instead);
	list = lappend_int(list, f.scale);
	return lappend_int(list, static_cast<int>(f.function));
}

PlanWindowFunction
plan_window_function(const List *list)
{
	PlanWindowFunction f = {};

	f.fn = static_cast<WindowFn>(linitial_int(list));
	f.type = static_cast<Type>(lsecond_int(list));
	f.column = lthird_int(list);
	f.filter = lfourth_int(list);
	f.map = list_nth_int(list, 4);
	f.number = list_nth_int(list, 5);
	f.instead = list_nth_int(list, 6);
	f.scale = list_nth_int(list, 7);
	f.function = static_cast<Oid>(list_nth_int(list, 8));
	return f;
}

int
plan_window_columns(const ScanPlan *plan)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, plan->windows)
		n += list_length(plan_window(lfirst_node(List, lc)).functions);
	return n;
}

int
plan_program_columns(const ScanPlan *plan)
{
	return list_length(plan->names) - plan_window_columns(plan);
}

/* -- EXPLAIN ------------------------------------------------------------------------------- */

static const char *
name_of(const ScanPlan *plan, int column)
{
	return quote_identifier(strVal(list_nth(plan->names, column)));
}

static char *
value_text(const ScanPlan *plan, int value)
{
	return deparse_expression(static_cast<Node *>(list_nth(plan->window_values, value)), NIL, false, false);
}

static void
append_keys(StringInfo buf, const ScanPlan *plan, const char *what, int from, int n, bool ordered)
{
	for (int i = from; i < from + n; i++)
	{
		const PlanOrderKey *key = &plan->order[i];
		const bool	desc = ordered && (key->flags & ORDER_DESC) != 0;
		const bool	nulls_first = ordered && (key->flags & ORDER_NULLS_FIRST) != 0;

		appendStringInfo(buf, "%s%s%s", i > from ? ", " : what, name_of(plan, key->column), desc ? " DESC" : "");
		if (desc != nulls_first)
			appendStringInfoString(buf, nulls_first ? " NULLS FIRST" : " NULLS LAST");
	}
}

static void
append_bound(StringInfo buf, const ScanPlan *plan, FrameBound bound, int value, const char *unbounded)
{
	switch (bound)
	{
		case FrameBound::Unbounded:
			appendStringInfo(buf, "UNBOUNDED %s", unbounded);
			break;
		case FrameBound::CurrentRow:
			appendStringInfoString(buf, "CURRENT ROW");
			break;
		case FrameBound::Preceding:
		case FrameBound::Following:
			appendStringInfo(buf, "%s %s", value_text(plan, value),
							 bound == FrameBound::Preceding ? "PRECEDING" : "FOLLOWING");
			break;
	}
}

static char *
window_text(const ScanPlan *plan, const PlanWindow &window)
{
	static const char *const modes[] = {"ROWS", "RANGE", "GROUPS"};
	const bool	usual = window.mode == FrameMode::Range && window.start == FrameBound::Unbounded &&
		window.end == FrameBound::CurrentRow;
	StringInfoData buf;

	initStringInfo(&buf);
	append_keys(&buf, plan, "PARTITION BY ", 0, window.npartition, false);
	append_keys(&buf, plan, window.npartition > 0 ? " ORDER BY " : "ORDER BY ", window.npartition, window.norder, true);
	if (!usual)
	{
		appendStringInfo(&buf, "%s%s BETWEEN ", buf.len > 0 ? " " : "", modes[static_cast<int>(window.mode)]);
		append_bound(&buf, plan, window.start, window.start_value, "PRECEDING");
		appendStringInfoString(&buf, " AND ");
		append_bound(&buf, plan, window.end, window.end_value, "FOLLOWING");
	}
	return buf.data;
}

static char *
function_text(const ScanPlan *plan, const PlanWindowFunction &f)
{
	StringInfoData buf;
	const char *separator = "";

	initStringInfo(&buf);
	appendStringInfo(&buf, "%s(", get_func_name(f.function));
	if (f.column >= 0)
		appendStringInfoString(&buf, name_of(plan, f.column));
	else if (f.fn == WindowFn::Count)
		appendStringInfoChar(&buf, '*');
	if (f.column >= 0)
		separator = ", ";
	if (f.number >= 0)
		appendStringInfo(&buf, "%s%s", separator, value_text(plan, f.number));
	if (f.instead >= 0)
		appendStringInfo(&buf, ", %s", value_text(plan, f.instead));
	appendStringInfoChar(&buf, ')');
	if (f.filter >= 0)
		appendStringInfo(&buf, " FILTER (WHERE %s)", name_of(plan, f.filter));
	return buf.data;
}

List *
plan_window_texts(const ScanPlan *plan)
{
	int			column = plan_program_columns(plan);
	List	   *texts = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, plan->windows)
	{
		const PlanWindow window = plan_window(lfirst_node(List, lc));

		foreach(lc2, window.functions)
		{
			const PlanWindowFunction function = plan_window_function(lfirst_node(List, lc2));

			texts = lappend(texts, psprintf("%s = %s OVER (%s)", name_of(plan, column++), function_text(plan, function),
											window_text(plan, window)));
		}
	}
	return texts;
}

}  // namespace gpuvm
