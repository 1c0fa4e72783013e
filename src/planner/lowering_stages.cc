/* lowering_stages.cc: programs of rows and of groups, and their results as relations of further ones. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <cmath>

#include "compiler/emit.h"
#include "plan/normalise.h"
#include "planner/aggregation.h"
#include "planner/cost.h"
#include "planner/float_filter.h"
#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/stage_paths.h"
#include "store/registry.h"
#include "tablet/dictionary_builder.h"

namespace gpuvm {

/* Of 64 bits. */
constexpr double LARGEST = 9e18;
/* PostgreSQL's call of a function between stages, microseconds: some forty on numerics, of a standard deviation, took 8. */
constexpr double CALL_US = 0.2;
/* PostgreSQL evaluates HAVING of these in less time than a program more takes. */
constexpr double FEW_GROUPS = 100;

/* -- in which form a program gives a value ---------------------------------------------------- */

/* False: rows that stay in gpuvmd cannot have it. */
static bool
form_of_output(const ScanPlan *plan, int column, const Node *expr, ChildColumn *form)
{
	const OutputForm &output = plan->parts[0].outputs[column];
	const Oid	type = exprType(expr);
	const ValueType usual = value_type(type);

	*form = ChildColumn{0, usual.type, usual.form, -1, false, type, exprTypmod(expr), exprCollation(expr)};
	if (output.shown >= 0)
		return false;
	switch (output.kind)
	{
		case OutputKind::Plain:
			return usual.form == ValueForm::Plain || (usual.form == ValueForm::Dictionary && is_null(expr));
		case OutputKind::Numeric:
		case OutputKind::Wide:
			form->wide = output.kind == OutputKind::Wide;
			form->scale = output.scale;
			return usual.form == ValueForm::Numeric;
		case OutputKind::Dictionary:
		case OutputKind::Map:
			return usual.form == ValueForm::Dictionary;
		case OutputKind::Variable:
			form->type = Type::I64;
			form->form = ValueForm::Variable;
			return variable_type(get_typlen(type), get_typbyval(type));
		default:
			return false;
	}
}

/* Of an aggregate that is one value of the program's. */
static bool
form_of_aggregate(const ScanPlan *plan, const List *final, const Node *expr, bool wide, ChildColumn *form)
{
	const int	column = list_nth_int(final, FINAL_PARTS);
	const OutputForm &output = plan->parts[0].outputs[column];

	/* two halves; more than these is what is no number, and shown decimals that differ */
	if (list_length(final) != FINAL_PARTS + 1 &&
		(linitial_int(final) != static_cast<int>(FinalKind::WideSum) || list_length(final) > FINAL_PARTS + 2))
		return false;
	switch (static_cast<FinalKind>(linitial_int(final)))
	{
		case FinalKind::WideSum:
		case FinalKind::WideExtreme:
			*form = ChildColumn{0, Type::I64, ValueForm::Numeric, output.scale, true, NUMERICOID, -1, InvalidOid};
			return true;
		case FinalKind::Direct:
			return form_of_output(plan, column, expr, form);
		case FinalKind::SumToInt8:
		case FinalKind::SumToFloat8:
			*form = ChildColumn{0, value_type(exprType(expr)).type, ValueForm::Plain, -1, false, exprType(expr), -1,
				InvalidOid};
			return true;
		case FinalKind::SumToNumeric:
			*form = ChildColumn{0, Type::I64, ValueForm::Numeric, output.kind == OutputKind::Numeric ? output.scale : 0,
				wide, NUMERICOID, -1, InvalidOid};
			return true;
		default:
			return false;
	}
}

/* Of an output of groups: a key or an aggregate. */
static bool
form_of_raw(const ScanPlan *plan, int output, bool wide, ChildColumn *form)
{
	const PlanPart *part = &plan->parts[0];
	const Var  *raw = static_cast<const Var *>(list_nth(plan->exprs, output));
	ListCell   *lc;

	if (!IsA(raw, Var) || plan->nparts != 1 || part->stage != nullptr || part->count_groups)
		return false;
	foreach(lc, part->key_columns)
	{
		if (lfirst_int(lc) == raw->varattno - 1)
			return form_of_output(plan, foreach_current_index(lc), (const Node *) raw, form);
	}
	foreach(lc, part->final_columns)
	{
		if (lfirst_int(lc) == raw->varattno - 1)
			return form_of_aggregate(plan, list_nth_node(List, part->finals, foreach_current_index(lc)), (const Node *) raw, wide, form);
	}
	return false;
}

/* Is it a sum of numbers so large, as the tables have them, that it may have more than 64 bits? */
static bool
is_large_sum(Lowering *l, const Piece *piece, const Node *expr)
{
	const Aggref *agg = (const Aggref *) expr;
	CompileInput input = {};
	const Expr *arg;
	double		most;

	if (!IsA(expr, Aggref) || (agg->aggfnoid != F_SUM_INT8 && agg->aggfnoid != F_SUM_NUMERIC))
		return false;
	arg = linitial_node(TargetEntry, agg->args)->expr;
	fill_input(l->root, &piece->shape, &input);
	most = greatest_value(&input, arg);
	if (agg->aggfnoid == F_SUM_NUMERIC)
		most *= std::pow(10.0, Max(numeric_scale(&input, arg).scale, 0));
	return most < LARGEST && most * piece->shape.rows > LARGEST;
}

/* Is it an aggregate of numerics some of which are NaN or infinite? */
static bool
may_be_no_number(Lowering *l, const Piece *piece, const Node *expr)
{
	const Aggref *agg = (const Aggref *) expr;
	CompileInput input = {};

	if (!IsA(expr, Aggref) || agg->args == NIL)
		return false;
	fill_input(l->root, &piece->shape, &input);
	return may_be_special(&input, linitial_node(TargetEntry, agg->args)->expr);
}

/* Is it computed of texts for some of which no dictionary has room? */
static bool
reads_long_texts(const Piece *piece, Node *expr)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause(expr, PVC_RECURSE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS))
	{
		const Var  *var = lfirst_node(Var, lc);
		AttrNumber	attnum;
		const ShapeCursor *cursor = cursor_of(&piece->shape, var, &attnum);
		const int	i = cursor == nullptr ? -1 : imported_column(cursor->target.table, attnum);

		if (i >= 0 && cursor->target.table->variable[i] && value_type(var->vartype).form == ValueForm::Dictionary)
			return true;
	}
	return false;
}

/* Of what PostgreSQL computes. */
static bool
form_of_computed(Lowering *l, const Piece *piece, Node *expr, ChildColumn *form)
{
	const Oid	type = exprType(expr);
	ValueType	usual = value_type(type);

	if (usual.form == ValueForm::Dictionary &&
		(reads_long_texts(piece, expr) ||
		 group_rows(l, list_make1(expr), piece->shape.rows) > DICTIONARY_MAX_ENTRIES / 2))
		usual.form = ValueForm::None;
	if (usual.form == ValueForm::None && variable_type(get_typlen(type), get_typbyval(type)))
		usual = ValueType{Type::I64, ValueForm::Variable};
	*form = ChildColumn{0, usual.type, usual.form, -1, false, type, exprTypmod(expr), exprCollation(expr)};
	return usual.form != ValueForm::None && usual.form != ValueForm::Numeric;
}

/* Of the plan's output with this number, which is the expression. */
static bool
form_of_column(Lowering *l, const Piece *piece, const ScanPlan *plan, int i, Node *expr, bool computed,
			   ChildColumn *form)
{
	if (computed)
		return form_of_computed(l, piece, expr, form);
	if (plan->kind != SCAN_ROWS)
		return form_of_raw(plan, i, is_large_sum(l, piece, expr), form) &&
			!(form->wide && may_be_no_number(l, piece, expr));
	return form_of_output(plan, plan->exprs == NIL ? i : list_nth_node(Var, plan->exprs, i)->varattno - 1, expr, form);
}

/* From now on the columns of these numbers are what the stage gives. */
static void
take_values(Lowering *l, const List *numbers, const Stage *stage, const Piece *piece)
{
	const List *values = values_of_relation(stage->values, bms_singleton_member(piece->shape.cursors[0].relids));
	ListCell   *lc;

	foreach(lc, numbers)
		l->values[lfirst_int(lc)] = static_cast<Node *>(list_nth(values, foreach_current_index(lc)));
}

/* -- the stage's path ---------------------------------------------------------------------------- */

static List *
stage_names(const List *exprs)
{
	List	   *names = NIL;

	for (int i = 1; i <= list_length(exprs); i++)
		names = lappend(names, makeString(psprintf("c%d", i)));
	return names;
}

/* What all kinds have in common, once the plan has its programs and outputs. */
static bool
finish_stage(Lowering *l, const Piece *piece, ScanPlan *plan, List *exprs, double nrows, Stage *stage)
{
	const char *failure = known_failure(l->root, &piece->shape, plan);
	const int	ncolumns = list_length(exprs) - stage->ncomputed;
	ListCell   *lc;

	if (failure != nullptr)
		return lowering_refuse(l, failure) != nullptr;
	if (exprs == NIL)
		return lowering_refuse(l, "a stage has no columns") != nullptr;
	if (3 * list_length(exprs) > PROGRAM_MAX_COLUMNS)
		return lowering_refuse(l, "a stage has too many columns") != nullptr;
	foreach(lc, exprs)
	{
		const int	i = foreach_current_index(lc);
		ChildColumn form;

		if (!form_of_column(l, piece, plan, i, static_cast<Node *>(lfirst(lc)), i >= ncolumns, &form))
			return lowering_refuse(l, "a value has a form that stages do not hand on yet") != nullptr;
		form.attnum = i + 1;
		stage->columns = lappend(stage->columns, child_column_to_list(form));
	}
	stage->names = stage_names(exprs);
	stage->rows = Max(nrows, 1);
	stage->exprs = exprs;
	plan->names = stage->names;
	plan->fraction = 1;
	stage->path = make_stage_path(l->root, &piece->shape, plan, exprs, stage->rows);
	return true;
}

/* -- rows ------------------------------------------------------------------------------------------ */

/* A column as it is, or what computes the expression for each row. */
static Node *
row_output(Lowering *l, const Piece *piece, Node *expr)
{
	PlaceHolderVar *phv;

	if (IsA(expr, Var))
		return expr;
	phv = makeNode(PlaceHolderVar);
	if (IsA(expr, PlaceHolderVar))
		*phv = *(const PlaceHolderVar *) expr;
	else
	{
		phv->phexpr = (Expr *) expr;
		phv->phid = ++l->root->glob->lastPHId;
	}
	/* nothing makes it null but its own columns: each row has one of some cursor, if not, in a full join, of the first */
	for (int i = 0; i < piece->shape.ncursors; i++)
		phv->phrels = bms_add_members(phv->phrels, piece->shape.cursors[i].relids);
	return (Node *) phv;
}

bool
plan_of_rows(Lowering *l, const Piece *piece, const List *exprs, List *hidden, ScanPlan *plan)
{
	CompileInput input = {};
	CompiledProgram *compiled = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	const char *reason = nullptr;
	List	   *outputs = NIL;
	List	   *collations = NIL;
	ListCell   *lc;

	fill_input(l->root, &piece->shape, &input);
	input.no_positions = piece->shape.cursors[0].target.child != nullptr;
	input.no_fetches = true;
	foreach(lc, exprs)
		outputs = lappend(outputs, row_output(l, piece, static_cast<Node *>(lfirst(lc))));
	foreach(lc, hidden)
		collations = lappend_oid(collations, exprCollation(static_cast<Node *>(lfirst(lc))));
	if (!compile_rows(&input, outputs, hidden, collations, compiled))
		return lowering_refuse(l, input.reason) != nullptr;
	plan->kind = SCAN_ROWS;
	if (!plan_compiled(l->root, &piece->shape, *compiled, plan, &reason))
		return lowering_refuse(l, reason) != nullptr;
	fill_cursors(l->root, &piece->shape, plan);
	return true;
}

bool
stage_of_columns(Lowering *l, const Piece *piece, List *exprs, Stage *stage)
{
	ScanPlan   *plan = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));

	/* only how many there are */
	if (exprs == NIL)
		exprs = list_make1(makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(0), false, true));
	stage->shown = list_concat(stage->shown, shown_of_exprs(l, exprs));
	return plan_of_rows(l, piece, exprs, NIL, plan) && finish_stage(l, piece, plan, exprs, piece->shape.rows, stage);
}

bool
stage_of_rows(Lowering *l, const Piece *piece, const List *exprs, bool apart, Stage *stage)
{
	CompileInput input = {};
	RowValues	rows = {};
	ListCell   *lc;

	fill_input(l->root, &piece->shape, &input);
	foreach(lc, exprs)
		add_value(&rows, &input, static_cast<Node *>(lfirst(lc)), apart);
	stage->values = rows.values;
	stage->shown = rows.shown;
	return stage_of_columns(l, piece, rows.columns, stage);
}

/* How many functions and operators the expressions call. */
static double
calls_in(Lowering *l, List *exprs)
{
	QualCost	cost;

	cost_qual_eval_node(&cost, (Node *) exprs, l->root);
	return cost.per_tuple / Max(cpu_operator_cost, 1e-6);
}

/* What PostgreSQL evaluates of so many rows, and takes and loads them for. */
static void
charge_computed(Lowering *l, Stage *stage, List *exprs, List *held, double rows)
{
	List	   *computed = list_concat_copy(list_copy_tail(exprs, list_length(exprs) - stage->ncomputed), unfiltered(held));
	const Cost	cost = rows * (HAND_OUT_US + CALL_US * calls_in(l, computed)) * cost_of_us();

	stage->path->startup_cost += cost;
	stage->path->total_cost += cost;
}

bool
stage_of_computed(Lowering *l, const Piece *piece, List *raw, List *exprs, List *held, Stage *stage)
{
	ScanPlan   *plan = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));

	stage->shown = shown_of_exprs(l, exprs);
	if (!plan_of_rows(l, piece, raw, NIL, plan))
		return false;
	compute_above(plan, piece, raw, exprs, held);
	if (!finish_stage(l, piece, plan, exprs, piece->shape.rows * condition_selectivity(l, without_filters(held)), stage))
		return false;
	charge_computed(l, stage, exprs, held, piece->shape.rows);
	return true;
}

/* -- groups ------------------------------------------------------------------------------------------ */

bool
begin_groups(Lowering *l, const GpuvmRel *rel, Piece **piece)
{
	List	   *held;
	ListCell   *lc;

	if (rel->sets != NIL)
		return lowering_refuse(l, "grouping sets are not run in stages yet") != nullptr;
	l->grouped = rel_input(rel);
	*piece = lower_apart(l, rel_input(rel));
	held = l->grouped_held;
	l->grouped_held = NIL;
	if (*piece == nullptr)
		return false;
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (rel_hands_on(column))
			continue;
		set_value(l, column->resno, resolve(l, (const Node *) column->expr));
		if (l->reason != nullptr)
			return false;
	}
	if (groups_by_computed(l, rel))
		note_held(l, HoldLevel::Conditions);
	return l->hold == HoldLevel::Nothing || compute_keys(l, rel, held, piece);
}

/* GROUP BY as PostgreSQL has it: clauses that refer to a target list. */
static void
group_clause(const Lowering *l, const GpuvmRel *rel, List **tlist, List **clause, List **keys)
{
	ListCell   *lc;

	foreach(lc, rel->keys)
	{
		SortGroupClause *key = static_cast<SortGroupClause *>(copyObjectImpl(lfirst(lc)));
		Expr	   *expr = (Expr *) l->values[key->tleSortGroupRef];
		TargetEntry *entry = makeTargetEntry(expr, foreach_current_index(lc) + 1, nullptr, false);

		key->tleSortGroupRef = entry->ressortgroupref = foreach_current_index(lc) + 1;
		*tlist = lappend(*tlist, entry);
		/* two columns may have one value */
		if (list_member(*keys, expr))
			continue;
		*clause = lappend(*clause, key);
		*keys = lappend(*keys, expr);
	}
}

/* Equal numbers that UNION ALL, or a sum, shows with different numbers of decimals: which of them a group shows is PostgreSQL's. */
static bool
is_shown_in_several_ways(Lowering *l, const Piece *piece, const List *keys)
{
	CompileInput input = {};
	ListCell   *lc;

	fill_input(l->root, &piece->shape, &input);
	foreach(lc, keys)
	{
		const FuncExpr *key = (const FuncExpr *) lfirst(lc);

		if (IsA(key, FuncExpr) && is_shown_apart(&input, key->funcid, key->args))
			return true;
	}
	return false;
}

bool
plan_of_groups(Lowering *l, const GpuvmRel *rel, const Piece *piece, List *exprs, List *having, Aggregation *a, double *ngroups)
{
	RelOptInfo *input = makeNode(RelOptInfo);
	PathTarget *target = create_empty_pathtarget();
	List	   *tlist = NIL;
	List	   *clause = NIL;
	List	   *keys = NIL;

	group_clause(l, rel, &tlist, &clause, &keys);
	if (is_shown_in_several_ways(l, piece, keys))
		return lowering_refuse(l, "equal numbers are grouped that may show different numbers of decimals") != nullptr;
	input->rows = piece->shape.rows;
	target->exprs = exprs;
	a->root = l->root;
	a->rel = input;
	a->shape = &piece->shape;
	a->plan.kind = SCAN_GROUPS;
	if (!plan_groups(a, target, tlist, clause, having))
		return lowering_refuse(l, a->reason) != nullptr;
	fill_cursors(l->root, &piece->shape, &a->plan);
	*ngroups = group_rows(l, keys, piece->shape.rows);
	return true;
}

static bool
stage_of_groups(Lowering *l, const GpuvmRel *rel, const Piece *piece, List *exprs, List *held, Stage *stage)
{
	Aggregation *a = static_cast<Aggregation *>(palloc0(sizeof(Aggregation)));
	double		ngroups;

	if (!plan_of_groups(l, rel, piece, exprs, held, a, &ngroups))
		return false;
	a->plan.filter_quals = detached(held, &piece->shape);
	if (!finish_stage(l, piece, &a->plan, exprs, ngroups * condition_selectivity(l, held), stage))
		return false;
	if (stage->ncomputed > 0 || held != NIL)
		charge_computed(l, stage, exprs, held, ngroups);
	return true;
}

List *
values_of_numbers(Lowering *l, const List *numbers)
{
	List	   *values = NIL;
	ListCell   *lc;

	foreach(lc, numbers)
	{
		if (l->values[lfirst_int(lc)] == nullptr)
			lowering_refuse(l, "a column has no value where it is read");
		values = lappend(values, l->values[lfirst_int(lc)]);
	}
	return values;
}

List *
keys_of(const Lowering *l, const GpuvmRel *rel)
{
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, rel->keys)
		keys = lappend(keys, l->values[lfirst_node(SortGroupClause, lc)->tleSortGroupRef]);
	return keys;
}

/* What the values are made of are the columns. */
bool
stage_of_group_values(Lowering *l, const GpuvmRel *rel, const Piece *piece, const List *values, List *computed, List *held,
					  Stage *stage)
{
	CompileInput input = {};
	GroupValues groups = {keys_of(l, rel), &input, NIL};
	List	   *columns = NIL;
	List	   *split = NIL;
	List	   *raw;
	ListCell   *lc;

	fill_input(l->root, &piece->shape, &input);
	foreach(lc, values)
		split = lappend(split, split_aggregates(&groups, static_cast<Node *>(lfirst(lc))));
	raw = raw_values(split, groups.keys);
	/* of constants there has to be one for each group */
	if (raw == NIL && groups.keys != NIL)
		raw = list_make1(linitial(groups.keys));
	/* and of no keys there is one group, also where nothing is asked of it */
	else if (raw == NIL)
		raw = list_make1(count_of_rows());
	stage->shown = list_concat(shown_of_groups(&groups, raw), shown_of_exprs(l, raw));
	stage->ncomputed = list_length(computed);
	raw = list_concat(raw, computed);
	foreach(lc, raw)
	{
		const Node *node = static_cast<const Node *>(lfirst(lc));

		columns = lappend(columns, makeVar(0, foreach_current_index(lc) + 1, exprType(node), exprTypmod(node), exprCollation(node), 0));
	}
	stage->values = (List *) replace_exprs((Node *) list_concat(split, computed), raw, columns);
	return stage_of_groups(l, rel, piece, raw, held, stage);
}

/* The statement has more columns than before. */
static void
grow_values(Lowering *l)
{
	const int	known = l->ncolumns;

	l->ncolumns = l->statement->last_number;
	l->values = static_cast<Node **>(repalloc(l->values, sizeof(Node *) * (l->ncolumns + 1)));
	for (int i = known + 1; i <= l->ncolumns; i++)
		l->values[i] = nullptr;
}

int
add_number(Lowering *l, Node *value)
{
	const int	number = rel_next_number(const_cast<GpuvmRel *>(l->statement));

	grow_values(l);
	l->values[number] = value;
	return number;
}

/* A stage is one program, which has no groups of several kinds; NULL: it has none. */
static const GpuvmRel *
in_groups_of_groups(Lowering *l, const GpuvmRel *rel)
{
	GpuvmRel   *split = nullptr;

	/* each makes up to four columns: of finer groups, and of those, a sum and a count */
	if (l->statement->last_number + 4 * list_length(rel->columns) < MAX_COLUMNS)
		split = split_distinct(const_cast<GpuvmRel *>(l->statement), rel);
	if (split != nullptr)
		grow_values(l);
	return split;
}

/* The stage of the groups that pass these conditions, as the relation that has the columns of these numbers. */
static Piece *
piece_of_groups(Lowering *l, const GpuvmRel *rel, const Piece *input, const List *numbers, const List *values, List *held)
{
	Stage		stage = {};
	Piece	   *piece;

	if (!stage_of_group_values(l, rel, input, values, NIL, held, &stage))
		return nullptr;
	piece = piece_of_stage(l, &stage);
	take_values(l, numbers, &stage, piece);
	return piece;
}

/* Those of the conditions on groups that no program evaluates over their stage, as HAVING; the others are left. */
static List *
held_of_groups(Lowering *l, const Piece *piece, List **conditions, const List *having)
{
	List	   *held = NIL;
	List	   *rest = NIL;
	ListCell   *lc;

	foreach(lc, *conditions)
	{
		const Node *condition = static_cast<const Node *>(lfirst(lc));
		Node	   *clause = static_cast<Node *>(list_nth(having, foreach_current_index(lc)));
		Node	   *value = clause == nullptr ? nullptr : resolve(l, condition);
		FloatFilter filter;

		if (value != nullptr && only_computes(value) && !is_computed(l, piece, value) &&
			(piece->shape.rows < FEW_GROUPS || !float_filter(l, piece, value, &filter)))
			held = lappend(held, clause);
		else
			rest = lappend(rest, const_cast<Node *>(condition));
	}
	*conditions = rest;
	return held;
}

Piece *
lower_group(Lowering *l, const GpuvmRel *rel, List **conditions)
{
	const GpuvmRel *split = in_groups_of_groups(l, rel);
	List	   *numbers = NIL;
	List	   *having = NIL;
	List	   *values;
	List	   *held;
	Piece	   *input;
	Piece	   *piece;
	ListCell   *lc;

	if (split != nullptr)
		return lower_apart(l, split);
	foreach(lc, rel->columns)
		numbers = lappend_int(numbers, lfirst_node(TargetEntry, lc)->resno);
	if (!begin_groups(l, rel, &input))
		return nullptr;
	values = values_of_numbers(l, numbers);
	/* subqueries' values are joined to the groups */
	foreach(lc, l->hold == HoldLevel::Nothing ? NIL : *conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		having = lappend(having, has_bound_value(condition, nullptr) ? nullptr : resolve(l, condition));
	}
	piece = piece_of_groups(l, rel, input, numbers, values, NIL);
	if (piece == nullptr || having == NIL)
		return piece;
	held = held_of_groups(l, piece, conditions, having);
	if (held == NIL)
		return piece;
	/* the programs' aggregates are ended as PostgreSQL's are, for which their parts need not be put together */
	l->held_node = "Filter";
	foreach(lc, numbers)
		l->values[lfirst_int(lc)] = static_cast<Node *>(list_nth(values, foreach_current_index(lc)));
	return piece_of_groups(l, rel, input, numbers, values, held);
}

}  // namespace gpuvm
