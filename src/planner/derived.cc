/*
 * derived.cc: relations that are no imported tables, and joins, as cursors of programs: PostgreSQL runs the relation's own path, below
 * ours, and its rows become tablets for one execution (executor/derived.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/prep.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
}

#include "pg/compat.h"
#include "pg/shmem.h"
#include "planner/cost.h"
#include "planner/derived.h"
#include "planner/paths.h"
#include "planner/quiet.h"
#include "planner/reasons.h"
#include "planner/scan_plan.h"
#include "planner/stage_paths.h"
#include "store/registry.h"
#include "tablet/dictionary_builder.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* Of so many the values that are only handed on get no dictionary. */
constexpr double MANY_ROWS = 10000;

/* Of a value that has no fixed length, at least. */
constexpr int VARIABLE_BYTES = 16;

/*
 * A row that becomes one of a tablet, and a value of it by its form, in operators as PostgreSQL charges for them when it hashes such rows: two for
 * one that it adds to a group, which takes it 0.35 us (measured; the row with an integer here: 0.08 us).
 */
constexpr double ROW_OPERATORS = 0.2;
constexpr double PLAIN_OPERATORS = 0.1;
constexpr double NUMERIC_OPERATORS = 0.4;
constexpr double CODE_OPERATORS = 0.8;
constexpr double VARIABLE_OPERATORS = 0.2;

/* What the tablets of a child cost that has no rows, in microseconds. */
constexpr double CHILD_US = 100;

/* Is it UNION ALL, whose arms are relations of the query level themselves? */
static bool
is_union_all(const RelOptInfo *rel, const RangeTblEntry *rte)
{
	return rel->rtekind == RTE_SUBQUERY && rel->subroot == nullptr && rte->inh;
}

/*
 * A subquery is planned to its end twice: once below the alternative, once as the child (detach_child). Which of two
 * plans for a subquery within is taken can be said only once, and rows are locked once.
 */
static bool
can_plan_twice(PlannerInfo *root)
{
	if (root->rowMarks != NIL || root->hasAlternativeSubPlans)
		return false;
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel != nullptr && rel->rtekind == RTE_SUBQUERY && !is_union_all(rel, root->simple_rte_array[i]) &&
			(rel->subroot == nullptr || !can_plan_twice(rel->subroot)))
			return false;
	}
	return true;
}

static bool
has_volatile_condition(List *restrictinfos)
{
	ListCell   *lc;

	foreach(lc, restrictinfos)
	{
		if (contain_volatile_functions((Node *) lfirst_node(RestrictInfo, lc)->clause))
			return true;
	}
	return false;
}

static bool
has_volatile(RelOptInfo *rel, RangeTblEntry *rte)
{
	return has_volatile_condition(rel->baserestrictinfo) || contain_volatile_functions((Node *) rte->subquery) || contain_volatile_functions((Node *) rte->functions) ||
		contain_volatile_functions((Node *) rte->values_lists);
}

/* May one of the conditions raise an error? */
static bool
has_loud_condition(List *restrictinfos)
{
	ListCell   *lc;

	foreach(lc, restrictinfos)
	{
		if (!is_quiet((Node *) lfirst_node(RestrictInfo, lc)->clause))
			return true;
	}
	return false;
}

/* Can each arm that is a subquery be planned twice? */
static bool
arms_can_plan_twice(PlannerInfo *root, Index parent)
{
	ListCell   *lc;

	if (root->rowMarks != NIL || root->hasAlternativeSubPlans)
		return false;
	foreach(lc, root->append_rel_list)
	{
		const AppendRelInfo *arm = lfirst_node(AppendRelInfo, lc);
		const RelOptInfo *rel = arm->parent_relid == parent ? root->simple_rel_array[arm->child_relid] : nullptr;

		if (rel != nullptr && rel->rtekind == RTE_SUBQUERY &&
			!(is_union_all(rel, root->simple_rte_array[arm->child_relid]) ? arms_can_plan_twice(root, arm->child_relid) : rel->subroot != nullptr && can_plan_twice(rel->subroot)))
			return false;
	}
	return true;
}

/* May the relation be read by a plan of its own? An answer that is thrown away must leave nothing behind. */
static bool
is_derived(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	switch (rel->rtekind)
	{
		case RTE_SUBQUERY:
			if (is_union_all(rel, rte) ? !arms_can_plan_twice(root, rel->relid) : rel->subroot == nullptr || !can_plan_twice(rel->subroot))
				return false;
			break;
		case RTE_CTE:
			/* a recursive one may have no end, and be read only as far as LIMIT asks */
			if (rte->self_reference || (root->tuple_fraction > 0 && cte_plan_number(root, rte) == 0))
				return false;
			break;
		case RTE_VALUES:
		case RTE_FUNCTION:
			break;
		case RTE_RELATION:
			if (rte->tablesample != nullptr)
				return false;
			break;
		default:
			return false;
	}
	return rel->reloptkind == RELOPT_BASEREL && !IS_DUMMY_REL(rel) && bms_is_empty(rel->lateral_relids) &&
		static_cast<int>(rel->relid) != root->parse->resultRelation && !bms_is_member(rel->relid, root->all_result_relids) &&
		get_plan_rowmark(root->rowMarks, rel->relid) == nullptr && !has_volatile(rel, rte);
}

/* Its cheapest path, of those that can be planned beside the alternative. */
static Path *
child_path(RelOptInfo *rel)
{
	Path	   *best = nullptr;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = static_cast<Path *>(lfirst(lc));

		if (path->param_info == nullptr && (best == nullptr || path->total_cost < best->total_cost) && can_be_alternative(path))
			best = path;
	}
	return best;
}

/* Is the column shown, or computed with, above the joins? */
static bool
is_shown(const RelOptInfo *rel, const Var *var)
{
	return bms_is_member(0, rel->attr_needed[var->varattno - rel->min_attr]);
}

/* Does nothing but the query's output need the column, row by row? */
static bool
is_only_handed_on(PlannerInfo *root, const RelOptInfo *rel, const Var *var)
{
	const Query *parse = root->parse;

	return is_shown(rel, var) && bms_membership(rel->attr_needed[var->varattno - rel->min_attr]) == BMS_SINGLETON && !parse->hasAggs &&
		parse->groupClause == NIL && parse->groupingSets == NIL && parse->distinctClause == NIL && parse->sortClause == NIL;
}

/* How many different values a column of a dictionary type has. */
static double
expected_entries(PlannerInfo *root, double rows, const Var *var)
{
	rows = Max(rows, 1.0);
	return rows <= MANY_ROWS ? rows : estimate_num_groups(root, list_make1(const_cast<Var *>(var)), rows, nullptr, nullptr);
}

static bool
needs_large_dictionary(PlannerInfo *root, const RelOptInfo *rel, double rows, const Var *var)
{
	double		entries = expected_entries(root, rows, var);

	return entries > DICTIONARY_MAX_ENTRIES / 2 || entries * Max(rel->attr_widths[var->varattno - rel->min_attr], 16) > DICTIONARY_MAX_BYTES / 2;
}

/* In which form a program has the column's values, by this number. `rel`: the column's, of which there are so many rows. */
static ChildColumn
describe_column(PlannerInfo *root, const RelOptInfo *rel, double rows, const Var *var, AttrNumber attnum)
{
	ValueType	type = value_type(var->vartype);
	DecimalScale scale = {-1, false, 0, false};
	bool		numeric;

	if (type.form == ValueForm::Numeric)
	{
		scale = decimal_scale(root, var);
		if (scale.scale < 0 || (!scale.exact && is_only_handed_on(root, rel, var)))
			type.form = ValueForm::None;
	}
	/* a dictionary would be made for this execution: not of values that are only handed on, or are too many */
	if (type.form == ValueForm::Dictionary && ((rows > MANY_ROWS && is_only_handed_on(root, rel, var)) ||
											   needs_large_dictionary(root, rel, rows, var) || is_stored_by_value(root, var)))
		type.form = ValueForm::None;
	if (type.form == ValueForm::None && variable_type(get_typlen(var->vartype), get_typbyval(var->vartype)))
		type = ValueType{Type::I64, ValueForm::Variable};
	numeric = type.form == ValueForm::Numeric;
	return ChildColumn{attnum, type.type, type.form, numeric ? scale.scale : -1, numeric && !scale.exact, numeric && !scale.exact, numeric && scale.wide,
		var->vartype, var->vartypmod, var->varcollid};
}

/* The same of what a subquery below an outer join computes, of which less is known. */
static ChildColumn
describe_placeholder(const PlaceHolderVar *phv, double rows, AttrNumber attnum)
{
	const Node *node = (const Node *) phv;
	Oid			pg_type = exprType(node);
	ValueType	type = value_type(pg_type);

	if (type.form == ValueForm::Numeric || (type.form == ValueForm::Dictionary && rows > MANY_ROWS))
		type.form = ValueForm::None;
	if (type.form == ValueForm::None && variable_type(get_typlen(pg_type), get_typbyval(pg_type)))
		type = ValueType{Type::I64, ValueForm::Variable};
	return ChildColumn{attnum, type.type, type.form, -1, false, false, false, pg_type, exprTypmod(node), exprCollation(node)};
}

uint32
describe_child_column(ImportedTable *table, const ChildColumn &column)
{
	uint32		i = table->ncols++;

	table->attnums[i] = column.attnum;
	table->types[i] = static_cast<uint8>(column.type);
	table->scales[i] = static_cast<int16>(column.scale);
	table->variable[i] = column.form == ValueForm::Variable;
	table->wide[i] = column.wide;
	table->any_scale[i] = column.any_scale;
	table->special[i] = false;
	table->greatest[i] = PG_INT64_MAX;
	table->entries[i] = 0;
	return i;
}

/* What shows a numeric where the column of its values does not know the decimals. */
static ChildColumn
image_of(ChildColumn column)
{
	column.attnum = shown_image(column.attnum);
	column.type = Type::I64;
	column.form = ValueForm::Variable;
	column.scale = -1;
	column.any_scale = column.imaged = column.wide = false;
	return column;
}

/* The columns that are needed of the relation, or join, as if they were a table's. */
static bool
describe_columns(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target)
{
	ImportedTable *table = target->table;
	bool		join = rel->reloptkind == RELOPT_JOINREL;
	ListCell   *lc;

	/* of numerics there may be halves and images, too */
	if (3 * list_length(rel->reltarget->exprs) > static_cast<int>(PROGRAM_MAX_COLUMNS))
		return false;
	foreach(lc, rel->reltarget->exprs)
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));
		ChildColumn column;
		uint32		i;

		if (IsA(var, Var) ? var->varattno <= 0 : !IsA(var, PlaceHolderVar) || !join)
			return false;
		if (IsA(var, Var))
			column = describe_column(root, find_base_rel(root, var->varno), rel->rows, var, join ? foreach_current_index(lc) + 1 : var->varattno);
		else
			column = describe_placeholder((const PlaceHolderVar *) var, rel->rows, foreach_current_index(lc) + 1);
		if (column.form == ValueForm::None)
			return false;
		if (join)
		{
			target->vars = lappend(target->vars, const_cast<Var *>(var));
			target->names = lappend(target->names, makeString(IsA(var, Var) ? get_rte_attribute_name(planner_rt_fetch(var->varno, root), var->varattno)
															  : psprintf("computed_%d", foreach_current_index(lc) + 1)));
		}
		i = describe_child_column(table, column);
		if (column.form == ValueForm::Dictionary)
			table->entries[i] = static_cast<uint32>(Max(expected_entries(root, rel->rows, var), 1.0));
		if (column.imaged)
			describe_child_column(table, image_of(column));
		target->columns = lappend(target->columns, child_column_to_list(column));
	}
	return true;
}

/* -- from path to plan ----------------------------------------------------------------- */

/*
 * A subquery's plan below the alternative and another below the child are finished with one planner. For each, PostgreSQL would
 * shift the same numbers of inheritance once more, which are only for EXPLAIN: there are none.
 */
static void
forget_inheritance(PlannerInfo *root)
{
	root->append_rel_list = NIL;
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];

		if (rel != nullptr && rel->subroot != nullptr)
			forget_inheritance(rel->subroot);
	}
}

void
share_planners(PlannerInfo *root, Plan *plan)
{
	ListCell   *lc;

	/* a condition without columns, or parallel workers, stand above the scan */
	while (plan != nullptr && !IsA(plan, SubqueryScan) && !IsA(plan, Append) && !IsA(plan, MergeAppend))
		plan = plan->lefttree;
	if (plan == nullptr)
		return;
	if (IsA(plan, SubqueryScan))
	{
		forget_inheritance(find_base_rel(root, ((SubqueryScan *) plan)->scan.scanrelid)->subroot);
		return;
	}
	foreach(lc, IsA(plan, Append) ? ((Append *) plan)->appendplans : ((MergeAppend *) plan)->mergeplans)
		share_planners(root, static_cast<Plan *>(lfirst(lc)));
}

/* -- cursors --------------------------------------------------------------------------- */

/* Do its rows fit where they must all be at once? */
static bool
fits(const ScanTarget *target)
{
	double		bytes = 0;
	ListCell   *lc;

	foreach(lc, target->columns)
	{
		const ChildColumn column = child_column(lfirst_node(List, lc));

		bytes += column.form == ValueForm::Variable ? VARIABLE_BYTES : type_natural_width(column.type);
		bytes += (column.wide ? sizeof(int64) : 0) + (column.imaged ? VARIABLE_BYTES : 0);
	}
	return target->tuples * bytes <= static_cast<double>(run_memory_limit());
}

/* Rows of the relation's child, as those of a table. */
static bool
describe_child(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target)
{
	target->child = child_path(rel);
	if (target->child == nullptr || has_too_many_alternatives(target->child))
		return false;
	target->table = static_cast<ImportedTable *>(palloc0(sizeof(ImportedTable)));
	target->table->nrows = static_cast<uint64>(Min(Max(rel->rows, 1.0), 1e15));
	target->tuples = rel->rows;
	return describe_columns(root, rel, target) && fits(target);
}

bool
derived_relation(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);

	target->names = rte->eref->colnames;
	return is_derived(root, rel, rte) && describe_child(root, rel, target);
}

const char *
derived_join(PlannerInfo *root, RelOptInfo *joinrel, ScanTarget *target)
{
	Relids		relids = compat_relations(root, joinrel->relids);
	bool		loud = false;
	int			relid = -1;

	if (!bms_is_empty(joinrel->lateral_relids))
		return "the join depends on another relation (LATERAL)";
	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		RelOptInfo *rel = find_base_rel(root, relid);
		RangeTblEntry *rte = planner_rt_fetch(relid, root);

		/* a subquery's plan would have to be finished twice in the midst of the join's (detach_child) */
		if (rte->rtekind == RTE_SUBQUERY)
			return "the inner side of a join is a join of a subquery";
		if (!is_derived(root, rel, rte) || has_volatile_condition(rel->joininfo))
			return "the inner side of a join is a join that cannot be a plan of its own";
		loud = loud || has_loud_condition(rel->baserestrictinfo) || has_loud_condition(rel->joininfo);
	}
	if (!describe_child(root, joinrel, target))
		return "the inner side of a join is a join whose rows a program cannot read";
	/* where the other side has no row, PostgreSQL evaluates nothing of it; a program of ours gives way before it raises an error */
	if (loud && !is_gpuvm_path(target->child))
		return "the inner side of a join is a join whose conditions may raise an error";
	return nullptr;
}

static double
row_operators(const ScanTarget *target)
{
	double		operators = ROW_OPERATORS;
	ListCell   *lc;

	foreach(lc, target->columns)
	{
		const ChildColumn column = child_column(lfirst_node(List, lc));

		operators += column.imaged ? VARIABLE_OPERATORS : 0;
		switch (column.form)
		{
			case ValueForm::Numeric: operators += NUMERIC_OPERATORS; break;
			case ValueForm::Dictionary: operators += CODE_OPERATORS; break;
			case ValueForm::Variable: operators += VARIABLE_OPERATORS; break;
			default: operators += PLAIN_OPERATORS; break;
		}
	}
	return operators;
}

double
derived_cost(const ScanShape *shape)
{
	double		cost = 0;

	for (int i = 0; i < shape->ncursors; i++)
	{
		const ScanTarget *target = &shape->cursors[i].target;

		if (target->child == nullptr)
			continue;
		/* its rows stay where they are; what making those costs that several read is no reader's */
		if (is_stage_path(target->child))
			cost += target->shared > 0 ? 0 : target->child->total_cost;
		else
			cost += target->child->total_cost + CHILD_US * cost_of_us() + target->child->rows * row_operators(target) * cpu_operator_cost;
	}
	return cost;
}

List *
derived_children(const ScanShape *shape)
{
	List	   *children = NIL;

	for (int i = 0; i < shape->ncursors; i++)
	{
		if (shape->cursors[i].target.child != nullptr && shape->cursors[i].target.shared == 0)
			children = lappend(children, shape->cursors[i].target.child);
	}
	return children;
}

/* Is there one of our programs at the bottom of the path, whose rows need not become PostgreSQL's to be aggregated? */
static bool
reads_ours(const Path *path)
{
	ListCell   *lc;

	if (path == nullptr || is_gpuvm_path(path))
		return path != nullptr;
	switch (nodeTag(path))
	{
		case T_SubqueryScanPath: return reads_ours(((const SubqueryScanPath *) path)->subpath);
		case T_ProjectionPath: return reads_ours(((const ProjectionPath *) path)->subpath);
		case T_AggPath: return reads_ours(((const AggPath *) path)->subpath);
		case T_WindowAggPath: return reads_ours(((const WindowAggPath *) path)->subpath);
		case T_SortPath: return reads_ours(((const SortPath *) path)->subpath);
		case T_LimitPath: return reads_ours(((const LimitPath *) path)->subpath);
		case T_AppendPath:
			foreach(lc, ((const AppendPath *) path)->subpaths)
			{
				if (reads_ours(static_cast<const Path *>(lfirst(lc))))
					return true;
			}
			return false;
		default: return false;
	}
}

/* Is the relation a CTE whose rows one of our programs makes? */
static bool
is_our_cte(PlannerInfo *root, const RelOptInfo *rel)
{
	int			number = rel->rtekind == RTE_CTE ? cte_plan_number(root, planner_rt_fetch(rel->relid, root)) : 0;

	return number > 0 && is_gpuvm_scan(static_cast<const Plan *>(list_nth(root->glob->subplans, number - 1)));
}

void
add_derived_groups(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, PathTarget *target, List *clause, List *having)
{
	Reasons    *reasons;
	ScanTarget	scan = {};
	ScanShape	shape = {};
	ListCell   *lc;

	/* the different rows of sorted arms are merged */
	if (is_union_all(rel, planner_rt_fetch(rel->relid, root)) && root->parse->groupClause == NIL && root->parse->distinctClause != NIL && root->parse->sortClause != NIL)
		return;
	foreach(lc, grouped_rel->pathlist)
	{
		if (is_gpuvm_path(static_cast<const Path *>(lfirst(lc))))
			return;
	}
	if (!derived_relation(root, rel, &scan) || (!reads_ours(scan.child) && !is_our_cte(root, rel)))
		return;
	shape_of_relation(root, rel, &scan, true, &shape);
	/* nobody expects this of it: what stood in the way is not worth telling */
	reasons = reasons_save();
	add_groups_path(root, rel, &shape, grouped_rel, target, root->processed_tlist, clause, having);
	reasons_restore(reasons);
}

bool
loses_decimals(const ScanShape *shape, const Var *var)
{
	AttrNumber	attnum;
	const ShapeCursor *cursor = cursor_of(shape, var, &attnum);
	ListCell   *lc;

	foreach(lc, cursor == nullptr ? NIL : cursor->target.columns)
	{
		const ChildColumn column = child_column(lfirst_node(List, lc));

		if (column.attnum == attnum)
			return column.any_scale;
	}
	return false;
}

Var *
as_image(const Var *var)
{
	Var		   *image = static_cast<Var *>(copyObjectImpl(var));

	image->varattno = shown_image(var->varattno);
	return image;
}

bool
reads_no_program(PlannerInfo *root, const ScanShape *shape)
{
	for (int i = 0; i < shape->ncursors; i++)
	{
		const ShapeCursor *cursor = &shape->cursors[i];

		if (cursor->target.child == nullptr || reads_ours(cursor->target.child) ||
			(bms_membership(cursor->relids) == BMS_SINGLETON && is_our_cte(root, find_base_rel(root, bms_singleton_member(cursor->relids)))))
			return false;
	}
	return true;
}

}  // namespace gpuvm
