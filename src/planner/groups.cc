/*
 * groups.cc: paths that aggregate. One program is enough for plain aggregates; each different argument of DISTINCT
 * aggregates has one of its own, and so has each of several grouping sets (PlanPart).
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/nodeHash.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
}

#include "compiler/compile.h"
#include "compiler/functions.h"
#include "planner/aggregation.h"
#include "planner/cost.h"
#include "planner/group_rows.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"

namespace gpuvm {

/* A CUBE of seven has 128 sets. */
constexpr int MAX_PARTS = 64;

constexpr const char *TOO_MANY = "the query has too many group keys and aggregates";

/* -- raw columns ---------------------------------------------------------------------- */

/* Replaces keys, aggregates and GROUPING()s by Vars over the raw columns. */
static Node *
to_raw(Node *node, void *context)
{
	RawContext *rc = static_cast<RawContext *>(context);
	List	   *const lists[] = {rc->keys, rc->aggs, rc->groupings};
	int			column = 0;
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	for (List *list : lists)
	{
		foreach(lc, list)
		{
			column++;
			if (equal(lfirst(lc), node))
				return (Node *) makeVar(1, column, exprType(node), exprTypmod(node), exprCollation(node), 0);
		}
	}
	if (IsA(node, Aggref) || IsA(node, Var) || IsA(node, PlaceHolderVar) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		IsA(node, GroupingFunc))
	{
		rc->failed = true;
		return node;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(to_raw), context);
}

/* Columns that are neither in a key nor in an aggregate: what is grouped by has them as a function (a primary key's other columns). */
static bool
collect_dependent(Node *node, void *context)
{
	RawContext *rc = static_cast<RawContext *>(context);

	if (node == nullptr || IsA(node, Aggref) || IsA(node, GroupingFunc) || list_member(rc->keys, node))
		return false;
	if (IsA(node, Var) && ((Var *) node)->varlevelsup == 0)
	{
		rc->aggs = list_append_unique(rc->aggs, node);
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(collect_dependent), context);
}

/* The different aggregates and GROUPING()s in the expressions. */
static void
collect_raw(List *exprs, RawContext *raw)
{
	List	   *found = pull_var_clause(reinterpret_cast<Node *>(exprs),
										PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, found)
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		if (IsA(node, Aggref))
			raw->aggs = list_append_unique(raw->aggs, node);
		else if (IsA(node, GroupingFunc))
			raw->groupings = list_append_unique(raw->groupings, node);
	}
}

/* -- parts ------------------------------------------------------------------------------ */

/* False, with the reason. */
static bool
aggregation_refuse(Aggregation *a, const char *reason, const char *hint = nullptr)
{
	a->reason = reason;
	a->hint = hint;
	return false;
}

/* Are two values of it the same group for the machine when the operator says that they are equal? */
static bool
can_be_key(Node *key, Oid eqop, const char **reason)
{
	const FnEntry *fn = lookup_function(get_opcode(eqop));

	return (fn != nullptr && fn->kind == FnKind::Compare && fn->opcode == Opcode::Eq && fn->operand == vm_type(exprType(key))) ||
		is_dictionary_key(key, eqop, reason);
}

/* Does a value count once however often it is there? */
static bool
is_idempotent(const VmAggregate &agg)
{
	switch (agg.fn)
	{
		case AggFn::Min:
		case AggFn::Max:
		case AggFn::MinWide:
		case AggFn::MaxWide:
		case AggFn::MinText:
		case AggFn::MaxText:
		case AggFn::BoolAnd:
		case AggFn::BoolOr:
		case AggFn::BitAnd:
		case AggFn::BitOr:
			return true;
		default:
			return false;
	}
}

/* The aggregate as if it were not DISTINCT; without its filter, too, where that is not to be asked again. */
static Aggref *
plain_aggregate(const Aggref *agg, bool filtered)
{
	Aggref	   *plain = static_cast<Aggref *>(copyObjectImpl(agg));

	plain->aggdistinct = NIL;
	if (!filtered)
		plain->aggfilter = nullptr;
	return plain;
}

/* Sorts them into plain ones and those of each DISTINCT argument. */
static bool
sort_aggregates(Aggregation *a)
{
	ListCell   *lc;

	a->distinct = static_cast<DistinctValues *>(palloc0(sizeof(DistinctValues) * Max(list_length(a->raw.aggs), 1)));
	foreach(lc, a->raw.aggs)
	{
		int			number = foreach_current_index(lc);
		Aggref	   *agg = static_cast<Aggref *>(lfirst(lc));
		AggregatePlan ap;
		Expr	   *arg;
		const char *reason = nullptr;
		int			i;

		if (IsA(lfirst(lc), Var))
		{
			a->plain = lappend_int(a->plain, number);
			continue;
		}
		if (!plan_aggregate(plain_aggregate(agg, true), &a->input, &ap))
			return aggregation_refuse(a, a->input.reason, a->input.hint);
		if (agg->aggfnoid == F_COUNT_ || agg->aggfnoid == F_COUNT_ANY)
			a->plan.counts = lappend_int(a->plan.counts, list_length(a->raw.keys) + number);
		if (agg->aggdistinct == NIL || (ap.nparts == 1 && is_idempotent(ap.parts[0])))
		{
			a->plain = lappend_int(a->plain, number);
			continue;
		}
		arg = linitial_node(TargetEntry, agg->args)->expr;
		if (list_length(agg->args) != 1)
			return aggregation_refuse(a, psprintf("%s(DISTINCT) of several arguments is not supported", get_func_name(agg->aggfnoid)));
		if (!can_be_key((Node *) arg, linitial_node(SortGroupClause, agg->aggdistinct)->eqop, &reason))
			return aggregation_refuse(a, psprintf("%s(DISTINCT): %s", get_func_name(agg->aggfnoid), reason));
		for (i = 0; i < a->ndistinct; i++)
		{
			if (equal(a->distinct[i].arg, arg) && equal(a->distinct[i].filter, agg->aggfilter))
				break;
		}
		if (i == a->ndistinct)
			a->distinct[a->ndistinct++] = DistinctValues{arg, agg->aggfilter, NIL};
		a->distinct[i].aggs = lappend_int(a->distinct[i].aggs, number);
	}
	return true;
}

static int
add_vm_aggregate(VmAggregate *list, int *n, const VmAggregate &agg)
{
	for (int i = 0; i < *n; i++)
	{
		if (same_vm_aggregate(list[i], agg))
			return i;
	}
	if (*n < PROGRAM_MAX_COLUMNS)
		list[*n] = agg;
	return (*n)++;
}

/* A column that depends on the keys. */
static AggregatePlan
any_value(Var *column)
{
	AggregatePlan ap;

	ap.kind = FinalKind::Direct;
	ap.extra = InvalidOid;
	ap.nparts = 1;
	ap.parts[0] = VmAggregate{AggFn::AnyValue, reinterpret_cast<Expr *>(column), nullptr, AggInput::Value, InvalidOid, nullptr, 0};
	return ap;
}

/* What the aggregates with these numbers are made of, and how they are ended, behind nkeys result columns. */
static bool
plan_finals(Aggregation *a, List *numbers, bool distinct, int nkeys, VmAggregate *aggs, int *naggs, PlanPart *part)
{
	ListCell   *lc;

	foreach(lc, numbers)
	{
		AggregatePlan ap;
		List	   *final;

		if (IsA(list_nth(a->raw.aggs, lfirst_int(lc)), Var))
			ap = any_value(static_cast<Var *>(list_nth(a->raw.aggs, lfirst_int(lc))));
		else if (!plan_aggregate(plain_aggregate(list_nth_node(Aggref, a->raw.aggs, lfirst_int(lc)), !distinct), &a->input, &ap))
			return aggregation_refuse(a, a->input.reason, a->input.hint);
		final = list_make2_int(static_cast<int>(ap.kind), static_cast<int>(ap.extra));
		for (int i = 0; i < ap.nparts; i++)
			final = lappend_int(final, nkeys + add_vm_aggregate(aggs, naggs, ap.parts[i]));
		part->finals = lappend(part->finals, final);
		part->final_columns = lappend_int(part->final_columns, list_length(a->raw.keys) + lfirst_int(lc));
	}
	return *naggs + nkeys <= PROGRAM_MAX_COLUMNS || aggregation_refuse(a, TOO_MANY);
}

/* Which rows have what is shown of values that may be equal without being the same. Without it PostgreSQL's plan runs where there are such. */
static void
add_ties(Aggregation *a, const PlanPart *of, List *keys, CompileInput *input, Ties ties, List *columns)
{
	CompiledProgram *compiled = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	const ScanPlan before = a->plan;
	const char *reason = nullptr;
	PlanPart   *part;

	input->before = a->input.before;
	input->reason = nullptr;
	ties.all = a->plan.hides_rows;
	if (a->plan.nties == MAX_PARTS || !compile_ties(input, keys, &ties, compiled))
		return;
	if (!plan_compiled(a->root, a->shape, *compiled, &a->plan, &reason, true))
	{
		a->plan = before;
		return;
	}
	a->input.before = compiled;
	part = &a->plan.parts[program_count(&a->plan) - 1];
	part->set = of->set;
	part->keys = detached(keys, a->shape);
	part->key_columns = of->key_columns;
	part->ties_all = ties.all;
	part->ties_last = ties.last;
	part->ties_cursor = ties.cursor;
	part->ties_columns = columns;
}

/* PostgreSQL's min() and max() of char(n) keep the first of equal values, those of intervals and arrays the last. */
static bool
takes_last(const Aggref *agg)
{
	return agg->aggfnoid != F_MIN_BPCHAR && agg->aggfnoid != F_MAX_BPCHAR;
}

/* The ties of a part's extremes. */
static void
add_extreme_ties(Aggregation *a, int number, List *keys)
{
	const PlanPart of = a->plan.parts[number];
	ListCell   *lc;

	foreach(lc, of.final_columns)
	{
		const int	column = lfirst_int(lc);
		const int	result = list_nth_int(list_nth_node(List, of.finals, foreach_current_index(lc)), FINAL_PARTS);
		CompileInput input = a->input;
		CompileCursor *last = &input.cursors[input.ncursors - 1];
		const Aggref *agg;
		List	   *filter;

		if (ties_of_column(&a->plan, &of, result) != NO_TIES)
			continue;
		agg = list_nth_node(Aggref, a->raw.aggs, column - list_length(a->raw.keys));
		filter = agg->aggfilter == nullptr ? NIL : list_make1(agg->aggfilter);
		if (input.ncursors == 1)
			last->quals = list_concat_copy(last->quals, filter);
		else
			last->filters = list_concat_copy(last->filters, filter);
		add_ties(a, &of, keys, &input, Ties{linitial_node(TargetEntry, agg->args)->expr, agg->inputcollid, takes_last(agg), false, -1}, list_make1_int(column));
	}
}

/* Are keys of several relations ranks? */
static bool
ranks_several(const Aggregation *a, const PlanPart *part)
{
	int			cursor = -1;

	for (int k = 0; k < list_length(part->key_columns); k++)
	{
		if (ties_of_column(&a->plan, part, k) == SHOWS_NO_RANK)
			continue;
		if (cursor >= 0 && cursor != a->plan.maps[part->outputs[k].map].cursor)
			return true;
		cursor = a->plan.maps[part->outputs[k].map].cursor;
	}
	return false;
}

/* The ties of all parts. Those of a set have the same keys, so that any part's are those of all. */
static void
add_all_ties(Aggregation *a)
{
	for (int i = 0; i < a->plan.nparts; i++)
	{
		const PlanPart of = a->plan.parts[i];
		const int	nkeys = list_length(of.key_columns);
		CompileInput input = a->input;
		List	   *keys = NIL;
		ListCell   *lc;

		foreach(lc, of.key_columns)
			keys = lappend(keys, list_nth(a->raw.keys, lfirst_int(lc)));
		for (int k = 0; k < nkeys; k++)
		{
			/* whether only one of several relations has such values would tell of hidden ones */
			if (ties_of_column(&a->plan, &of, k) != NO_TIES || (a->plan.hides_rows && ranks_several(a, &of)))
				continue;
			add_ties(a, &of, keys, &input, Ties{nullptr, InvalidOid, false, false, a->plan.maps[of.outputs[k].map].cursor}, NIL);
		}
		add_extreme_ties(a, i, keys);
	}
}

/* Compiles what groups by the keys, adds it to the plan, and lets the next one share its parameters and maps. */
static PlanPart *
add_program(Aggregation *a, CompileInput *input, List *keys, KeyUse use, const VmAggregate *aggs, int naggs)
{
	CompiledProgram *compiled = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	const char *reason = nullptr;

	if (a->plan.nparts == MAX_PARTS)
	{
		aggregation_refuse(a, psprintf("the query needs more than %d programs for its grouping sets and DISTINCT aggregates", MAX_PARTS));
		return nullptr;
	}
	if (!compile_groups(input, keys, use, aggs, naggs, compiled))
	{
		aggregation_refuse(a, input->reason, input->hint);
		return nullptr;
	}
	a->input.before = compiled;
	if (!plan_compiled(a->root, a->shape, *compiled, &a->plan, &reason))
	{
		aggregation_refuse(a, reason);
		return nullptr;
	}
	return &a->plan.parts[a->plan.nparts - 1];
}

/* The aggregates that are not DISTINCT. */
static PlanPart *
add_plain_part(Aggregation *a, List *keys)
{
	VmAggregate *aggs = static_cast<VmAggregate *>(palloc(sizeof(VmAggregate) * PROGRAM_MAX_COLUMNS));
	int			naggs = 0;
	PlanPart	planned = {};
	PlanPart   *part;

	if (!plan_finals(a, a->plain, false, list_length(keys), aggs, &naggs, &planned))
		return nullptr;
	part = add_program(a, &a->input, keys, KeyUse::Shown, aggs, naggs);
	if (part == nullptr)
		return nullptr;
	part->keys = keys;
	part->finals = planned.finals;
	part->final_columns = planned.final_columns;
	return part;
}

/* How many there are is the number of groups, where nothing else is asked. */
static bool
only_counts(const Aggregation *a, const DistinctValues *values)
{
	ListCell   *lc;

	foreach(lc, values->aggs)
	{
		if (list_nth_node(Aggref, a->raw.aggs, lfirst_int(lc))->aggfnoid != F_COUNT_ANY)
			return false;
	}
	return true;
}

/* 0 for -0, which the machine cannot tell from one another where both are keys, and a count need not. */
static Expr *
one_zero(Expr *arg)
{
	Oid			type = exprType((Node *) arg);
	Oid			plus;
	Const	   *zero;

	if (type != FLOAT4OID && type != FLOAT8OID)
		return arg;
	plus = OpernameGetOprid(list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup("+"))), type, type);
	zero = makeConst(type, -1, InvalidOid, type == FLOAT4OID ? sizeof(float4) : sizeof(float8),
					 type == FLOAT4OID ? Float4GetDatum(0) : Float8GetDatum(0), false, true);
	arg = make_opclause(plus, type, false, arg, (Expr *) zero, InvalidOid, InvalidOid);
	set_opfuncid((OpExpr *) arg);
	return arg;
}

/* Those of one DISTINCT argument: a program makes the values different, a second one (or the number of groups) aggregates them. */
static PlanPart *
add_distinct_part(Aggregation *a, List *keys, const DistinctValues *values)
{
	CompileInput input = a->input;
	CompileCursor *last = &input.cursors[input.ncursors - 1];
	VmAggregate aggs[MAX_AGG_PARTS * 8];
	PlanPart	planned = {};
	bool		count = keys == NIL && only_counts(a, values);
	int			naggs = 0;
	PlanPart   *part;
	ListCell   *lc;

	if (values->filter != nullptr)
		planned.filter = list_make1(values->filter);
	if (count)
	{
		NullTest   *given = makeNode(NullTest);

		given->arg = values->arg;
		given->nulltesttype = IS_NOT_NULL;
		given->location = -1;
		planned.filter = lappend(planned.filter, given);
	}
	if (input.ncursors == 1)
		last->quals = list_concat_copy(last->quals, planned.filter);
	else
		last->filters = list_concat_copy(last->filters, planned.filter);
	planned.keys = lappend(list_copy(keys), only_counts(a, values) ? one_zero(values->arg) : values->arg);
	foreach(lc, keys)
	{
		if (differs_in_scale(&input, static_cast<Expr *>(lfirst(lc))))
		{
			aggregation_refuse(a, "the display scale of a key differs from row to row, beside a DISTINCT aggregate");
			return nullptr;
		}
	}
	part = add_program(a, &input, planned.keys, only_counts(a, values) ? KeyUse::Value : KeyUse::One, nullptr, 0);
	if (part == nullptr)
		return nullptr;
	planned.program = part->program;
	if (count)
	{
		planned.count_groups = true;
		planned.noutputs = 1;
		planned.outputs[0] = OutputForm{OutputKind::Plain, -1, -1, 0, -1};
		foreach(lc, values->aggs)
		{
			planned.finals = lappend(planned.finals, list_make3_int(static_cast<int>(FinalKind::Direct), 0, 0));
			planned.final_columns = lappend_int(planned.final_columns, list_length(a->raw.keys) + lfirst_int(lc));
		}
	}
	else
	{
		CompiledProgram stage = {};

		if (list_length(values->aggs) > 8)
		{
			aggregation_refuse(a, TOO_MANY);
			return nullptr;
		}
		if (!plan_finals(a, values->aggs, true, list_length(keys), aggs, &naggs, &planned))
			return nullptr;
		if (!compile_stage(&a->input, a->input.before, aggs, naggs, &stage))
		{
			aggregation_refuse(a, a->input.reason);
			return nullptr;
		}
		planned.stage = stage.program;
		planned.noutputs = stage.noutputs;
		memcpy(planned.outputs, stage.outputs, sizeof(OutputForm) * stage.noutputs);
		planned.stage_rows = estimate_num_groups(a->root, planned.keys, a->rel->rows, nullptr, nullptr);
	}
	*part = planned;
	return part;
}

/* What the set's parts have in common. */
static void
finish_set(Aggregation *a, int number, List *columns, List *groupings, int first)
{
	for (int i = first; i < a->plan.nparts; i++)
	{
		PlanPart   *part = &a->plan.parts[i];

		part->set = number;
		part->key_columns = part->count_groups ? NIL : columns;
		part->groupings = groupings;
		part->keys = detached(part->keys, a->shape);
		part->filter = detached(part->filter, a->shape);
	}
}

/* The parts of one grouping set: columns are the numbers of its keys. */
static bool
add_set(Aggregation *a, int number, List *columns, List *groupings)
{
	int			first = a->plan.nparts;
	bool		filtered = false;
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, columns)
		keys = lappend(keys, list_nth(a->raw.keys, lfirst_int(lc)));
	for (int i = 0; i < a->ndistinct; i++)
		filtered = filtered || a->distinct[i].filter != nullptr;
	/* What has all groups: a part with a filter need not. */
	if ((a->plain != NIL || a->ndistinct == 0 || (filtered && keys != NIL)) && add_plain_part(a, keys) == nullptr)
		return false;
	for (int i = 0; i < a->ndistinct; i++)
	{
		if (add_distinct_part(a, keys, &a->distinct[i]) == nullptr)
			return false;
	}
	finish_set(a, number, columns, groupings, first);
	return true;
}

/* -- grouping sets --------------------------------------------------------------------- */

/* The place of a clause of GROUP BY among the keys. */
static int
key_of_ref(List *clause, int ref)
{
	ListCell   *lc;

	foreach(lc, clause)
	{
		if (static_cast<int>(lfirst_node(SortGroupClause, lc)->tleSortGroupRef) == ref)
			return foreach_current_index(lc);
	}
	return -1;
}

/* The value of each GROUPING() for a set: a bit for each argument, 1 where the set does not have it. */
static List *
grouping_values(const Aggregation *a, const List *set)
{
	List	   *values = NIL;
	ListCell   *lc;
	ListCell   *ref;

	foreach(lc, a->raw.groupings)
	{
		uint32		value = 0;

		foreach(ref, lfirst_node(GroupingFunc, lc)->refs)
			value = value << 1 | (list_member_int(set, lfirst_int(ref)) ? 0 : 1);
		values = lappend_int(values, static_cast<int>(value));
	}
	return values;
}

static bool
add_sets(Aggregation *a, List *clause)
{
	List	   *columns = NIL;
	List	   *refs = NIL;
	ListCell   *lc;
	ListCell   *other;

	foreach(lc, a->raw.groupings)
	{
		if (lfirst_node(GroupingFunc, lc)->agglevelsup != 0)
			return aggregation_refuse(a, "GROUPING() belongs to an outer query");
	}
	if (a->root->parse->groupingSets == NIL)
	{
		/* a single set has all that GROUPING() may ask for, though keys that depend on others need not be in the clause any more */
		foreach(lc, clause)
			columns = lappend_int(columns, foreach_current_index(lc));
		foreach(lc, a->raw.groupings)
			refs = list_concat_unique_int(refs, lfirst_node(GroupingFunc, lc)->refs);
		return add_set(a, 0, columns, grouping_values(a, refs));
	}
	foreach(lc, a->raw.keys)
	{
		/* the query's other constants that look like it are not the key */
		if (!contain_var_clause(static_cast<Node *>(lfirst(lc))))
			return aggregation_refuse(a, "a key of the grouping sets has no columns");
		/* PostgreSQL keeps the two apart by their place in the query, which expressions over them do not tell */
		for_each_from(other, a->raw.keys, foreach_current_index(lc) + 1)
		{
			if (equal(lfirst(lc), lfirst(other)))
				return aggregation_refuse(a, "two keys of the grouping sets are the same expression");
		}
	}
	foreach(lc, a->root->parse->groupingSets)
	{
		const List *set = lfirst_node(List, lc);
		ListCell   *ref;

		columns = NIL;
		foreach(ref, set)
		{
			int			key = key_of_ref(clause, lfirst_int(ref));

			if (key < 0)
				return aggregation_refuse(a, "a grouping set has a key that is not in GROUP BY");
			columns = lappend_int(columns, key);
		}
		if (!add_set(a, foreach_current_index(lc), columns, grouping_values(a, set)))
			return false;
	}
	return true;
}

/* -- the path ----------------------------------------------------------------------------- */

static void
add_raw_type(ScanPlan *plan, Oid type, int32 typmod, Oid collation)
{
	plan->raw_types = lappend_oid(plan->raw_types, type);
	plan->raw_typmods = lappend_int(plan->raw_typmods, typmod);
	plan->raw_collations = lappend_oid(plan->raw_collations, collation);
}

/* The output and HAVING over raw columns. */
static bool
plan_output(Aggregation *a, List *exprs, List *having)
{
	a->plan.exprs = (List *) to_raw((Node *) exprs, &a->raw);
	a->plan.having = (List *) to_raw((Node *) having, &a->raw);
	if (a->raw.failed)
		return aggregation_refuse(a, "the output needs a column that is neither grouped nor aggregated");
	fix_opfuncids((Node *) a->plan.exprs);
	fix_opfuncids((Node *) a->plan.having);
	return true;
}

static void
plan_raw_types(Aggregation *a)
{
	ListCell   *lc;

	foreach(lc, list_concat(list_concat_copy(a->raw.keys, a->raw.aggs), a->raw.groupings))
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		add_raw_type(&a->plan, exprType(node), exprTypmod(node), exprCollation(node));
	}
}

bool
plan_groups(Aggregation *a, PathTarget *target, List *tlist, List *clause, List *having)
{
	ListCell   *lc;

	fill_input(a->root, a->shape, &a->input);
	foreach(lc, clause)
	{
		SortGroupClause *sgc = lfirst_node(SortGroupClause, lc);
		Node	   *key = get_sortgroupclause_expr(sgc, tlist);
		const char *reason = nullptr;

		if (!can_be_key(key, sgc->eqop, &reason))
			return aggregation_refuse(a, reason);
		a->raw.keys = lappend(a->raw.keys, key);
	}
	collect_raw(list_concat_copy(target->exprs, having), &a->raw);
	collect_dependent((Node *) target->exprs, &a->raw);
	collect_dependent((Node *) having, &a->raw);
	if (!sort_aggregates(a) || !plan_output(a, target->exprs, having) || !add_sets(a, clause))
		return false;
	add_all_ties(a);
	plan_raw_types(a);
	return true;
}

void
add_groups_path(PlannerInfo *root, RelOptInfo *rel, const ScanShape *shape, RelOptInfo *grouped_rel, PathTarget *target, List *tlist, List *clause, List *having)
{
	Aggregation *a = static_cast<Aggregation *>(palloc0(sizeof(Aggregation)));
	Path	   *alternative = alternative_path(grouped_rel);
	ProgramRows rows = {};
	CustomPath *path;
	const char *failure;
	double		map_cost;

	if (alternative == nullptr)
		return;
	a->root = root;
	a->rel = rel;
	a->shape = shape;
	having = ordered_quals(root, having, true);
	if (!plan_groups(a, target, tlist, clause, having))
	{
		note_reason(root, rel, "Aggregate", a->reason, a->hint);
		return;
	}
	a->plan.kind = SCAN_GROUPS;
	failure = known_failure(root, shape, &a->plan);
	if (failure != nullptr)
	{
		note_reason(root, rel, "Aggregate", failure, nullptr);
		return;
	}
	a->plan.fraction = 1;
	fill_cursors(root, shape, &a->plan);
	if (having != NIL)
		plan_group_filter(shape, having, estimate_num_groups(root, a->raw.keys, rel->rows, nullptr, nullptr), &a->plan);
	plan_delta(&a->plan, shape, &rows);
	map_cost = detach_maps(root, shape, &a->plan);
	path = make_path(root, grouped_rel, target, shape, alternative, &a->plan, rows, alternative->rows, map_cost);
	settle_groups(grouped_rel, rel, list_concat_copy(a->raw.keys, a->raw.aggs), &path->path);
	offer_path(grouped_rel, path);
}

}  // namespace gpuvm
