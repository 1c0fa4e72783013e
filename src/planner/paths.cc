/*
 * paths.cc: Custom Scan paths, each with PostgreSQL's own path as its
 * alternative (design, section 4; rule 20).
 */
#include "pg/pg.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/facts.h"
#include "compiler/functions.h"
#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/settings.h"
#include "planner/cost.h"
#include "planner/flagged.h"
#include "planner/order.h"
#include "planner/paths.h"
#include "planner/reasons.h"
#include "planner/scan_plan.h"
#include "planner/stage_paths.h"
#include "planner/warm.h"
#include "store/delta.h"
#include "store/file.h"
#include "store/refresher.h"

namespace gpuvm {

constexpr const char *DELTA_HINT = "Refresh the table with gpuvm.refresh(), or raise work_mem.";

static Plan *plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
							  List *clauses, List *custom_plans);

static const CustomPathMethods path_methods = {
	"GpuVM",
	plan_custom_path,
	nullptr,					/* not for partitionwise use */
};

void
note_reason(PlannerInfo *root, RelOptInfo *rel, const char *what, const char *reason, const char *hint)
{
	char		node[NAMEDATALEN + 32];
	int			len = snprintf(node, sizeof(node), "%s on", what);
	const char *separator = " ";
	Relids		relids = compat_relations(root, rel->relids);
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0 && len < static_cast<int>(sizeof(node)))
	{
		len += snprintf(node + len, sizeof(node) - len, "%s%s", separator, planner_rt_fetch(relid, root)->eref->aliasname);
		separator = ", ";
	}
	reasons_add(rel->relid > 0 ? planner_rt_fetch(rel->relid, root)->relid : InvalidOid, node, reason, hint);
}

bool
usable_relation(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	const char *reason = nullptr;
	const char *hint = nullptr;

	if (rel->rtekind != RTE_RELATION)
		return false;
	if (rte->relkind == RELKIND_PARTITIONED_TABLE)
	{
		/* a partitioned leaf is read with the whole */
		if (rel->reloptkind != RELOPT_BASEREL || !rte->inh)
			return false;
		if (!describe_leaves(root, rel, target, &reason, &hint))
		{
			if (reason != nullptr)
				note_reason(root, rel, "Scan", reason, hint);
			return false;
		}
	}
	else
	{
		if ((rel->reloptkind != RELOPT_BASEREL && rel->reloptkind != RELOPT_OTHER_MEMBER_REL) ||
			(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW && rte->relkind != RELKIND_FOREIGN_TABLE) || rte->inh)
			return false;
		if (rte->relkind == RELKIND_FOREIGN_TABLE && (reasons_wanted || registry_known(rte->relid)) &&
			(reason = file_not_ready(rte->relid)) != nullptr)
		{
			note_reason(root, rel, "Scan", reason, nullptr);
			return false;
		}
		if (!reasons_wanted && !registry_known(rte->relid))
			return false;
		target->table = described_table(rte->relid, named_table(root, rel->relid), rel);
		if (target->table == nullptr)
		{
			if (reasons_wanted && rte->relkind != RELKIND_FOREIGN_TABLE)
				note_reason(root, rel, "Scan", why_not_in_memory(rte->relid), psprintf("SELECT gpuvm.import('%s');", get_rel_name(rte->relid)));
			return false;
		}
		/* all of a file is in the tablets, and its pages are none of a heap */
		target->pages = rte->relkind == RELKIND_FOREIGN_TABLE ? target->table->served_blocks : rel->pages;
		target->tuples = rel->tuples;
	}

	if (rte->tablesample != nullptr)
		reason = "TABLESAMPLE is not supported";
	else if (identity_refusal(root, rel) != nullptr)
		reason = identity_refusal(root, rel);
	else if (!bms_is_empty(rel->lateral_relids))
		reason = "the scan depends on another relation (LATERAL)";
	else if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL && root->append_rel_array != nullptr &&
			 root->append_rel_array[rel->relid] != nullptr &&
			 planner_rt_fetch(root->append_rel_array[rel->relid]->parent_relid, root)->relid == rte->relid)
		reason = "an inheritance parent's own rows are read by PostgreSQL";
	if (reason != nullptr)
	{
		note_reason(root, rel, "Scan", reason, nullptr);
		return false;
	}
	return true;
}

/*
 * Conditions as bare clauses, in the order in which
 * PostgreSQL would evaluate them (order_qual_clauses): by security level (rule
 * 22), then the cheap ones first, so that a cheap condition guards a dear one
 * that may raise in both. Conditions without a column gate a scan from a node of
 * their own above it; joins and aggregations have no such node, and take them first.
 */
List *
ordered_quals(PlannerInfo *root, const List *conditions, bool with_pseudoconstant)
{
	struct Item
	{
		Expr	   *clause;
		int			level;
		Cost		cost;
	};
	Item	   *items = static_cast<Item *>(palloc(sizeof(Item) * Max(list_length(conditions), 1)));
	int			n = 0;
	List	   *quals = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		const RestrictInfo *rinfo = static_cast<const RestrictInfo *>(lfirst(lc));
		QualCost	cost;

		cost_qual_eval_node(&cost, static_cast<Node *>(lfirst(lc)), root);
		/* HAVING is bare clauses */
		if (!IsA(rinfo, RestrictInfo))
			items[n++] = Item{static_cast<Expr *>(lfirst(lc)), 0, cost.per_tuple};
		else if (!rinfo->pseudoconstant || with_pseudoconstant)
			items[n++] = Item{rinfo->clause, rinfo->pseudoconstant ? -1 : static_cast<int>(rinfo->security_level), cost.per_tuple};
	}
	std::stable_sort(items, items + n, [](const Item &a, const Item &b) {
		return a.level != b.level ? a.level < b.level : a.cost < b.cost;
	});
	for (int i = 0; i < n; i++)
	{
		Expr	   *clause = items[i].clause;

		/* over one dictionary column they are one, so that the second is evaluated only for entries that pass the first */
		while (i + 1 < n && items[i + 1].level == items[i].level && is_map_expr(clause) && is_map_expr(items[i + 1].clause))
		{
			Expr	   *both = make_andclause(list_make2(clause, items[i + 1].clause));

			if (!is_map_expr(both))
				break;
			clause = both;
			i++;
		}
		quals = lappend(quals, clause);
	}
	pfree(items);
	return quals;
}

const ShapeCursor *
cursor_of(const ScanShape *shape, const Var *var, AttrNumber *attnum)
{
	for (int i = 0; i < shape->ncursors; i++)
	{
		if (is_column_of(shape->cursors[i].relids, var, attnum))
			return &shape->cursors[i];
	}
	return nullptr;
}

RangeTblEntry *
entry_of(PlannerInfo *root, const ShapeCursor *cursor)
{
	return planner_rt_fetch(bms_singleton_member(cursor->relids), root);
}

const char *
alias_of(PlannerInfo *root, const ShapeCursor *cursor)
{
	return entry_of(root, cursor)->eref->aliasname;
}

static Node *
renumber(Node *node, void *context)
{
	const ScanShape *shape = static_cast<const ScanShape *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, PlaceHolderVar))
		return renumber((Node *) ((PlaceHolderVar *) node)->phexpr, context);
	if (IsA(node, Var))
	{
		Var		   *var = static_cast<Var *>(copyObjectImpl(node));

		AttrNumber	attnum = var->varattno;
		const ShapeCursor *cursor = cursor_of(shape, (const Var *) node, &attnum);

		/* EXPLAIN goes by the names of the query's own text */
		if (cursor != nullptr)
			var->varno = var->varnosyn = static_cast<int>(cursor - shape->cursors) + 1;
		var->varattno = var->varattnosyn = attnum;
		return (Node *) var;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(renumber), context);
}

List *
detached(List *exprs, const ScanShape *shape)
{
	List	   *copy = (List *) renumber((Node *) exprs, const_cast<ScanShape *>(shape));

	fix_opfuncids(reinterpret_cast<Node *>(copy));
	return copy;
}

/* The numbers of the columns that the plan's programs read of a cursor. */
static Bitmapset *
columns_read(const ScanPlan *plan, int cursor)
{
	Bitmapset  *columns = nullptr;

	for (int p = 0; p < plan->nparts; p++)
	{
		const Program *program = plan->parts[p].program;

		for (int i = 0; i < program->nops; i++)
		{
			const Op   &op = program->ops()[i];

			if (reads_column(op) && op.p3 == cursor)
				columns = bms_add_member(columns, op.p2);
		}
	}
	return columns;
}

/* Is the only key of cursor k a column of cursor 0, of a type that devices filter by, without which nothing comes of its rows? */
static bool
leaves_out_rows(const ScanShape *shape, int k)
{
	const ShapeCursor *c = &shape->cursors[k];
	ListCell   *lc;

	if ((c->kind != JoinKind::Inner && c->kind != JoinKind::Semi) || list_length(c->keys) != 1 || !is_opclause(linitial(c->keys)))
		return false;
	foreach(lc, ((OpExpr *) linitial(c->keys))->args)
	{
		Node	   *side = static_cast<Node *>(lfirst(lc));

		while (IsA(side, RelabelType))
			side = (Node *) ((RelabelType *) side)->arg;
		if (IsA(side, Var) && bms_is_member(((Var *) side)->varno, shape->cursors[0].relids))
		{
			const Oid	type = ((Var *) side)->vartype;

			return get_typbyval(type) && type != FLOAT4OID && type != FLOAT8OID;
		}
	}
	return false;
}

ProgramRows
expected_rows(const ScanShape *shape)
{
	ProgramRows rows = {};

	for (int i = 0; i < shape->ncursors; i++)
	{
		const ShapeCursor *c = &shape->cursors[i];

		rows.scanned[i] = Max(c->target.tuples, static_cast<double>(c->target.table->nrows));
		rows.filtered[i] = c->rows;
		rows.pairs[i] = c->counted ? 0 : c->pairs;
		/* a lane whose pairs are counted goes on once, if it has any */
		rows.joined[i] = !c->counted ? c->joined : Min(c->joined, i == 1 ? rows.filtered[0] : rows.joined[i - 1]);
		rows.repeated[i] = i > 0 && c->keys != NIL && c->pairs > 1.5 * (i == 1 ? c[-1].rows : c[-1].joined);
		rows.leaves_out[i] = i > 0 && leaves_out_rows(shape, i);
	}
	return rows;
}

void
plan_delta(ScanPlan *plan, const ScanShape *shape, ProgramRows *rows)
{
	*rows = expected_rows(shape);
	for (int i = 0; i < shape->ncursors; i++)
	{
		const ImportedTable *table = shape->cursors[i].target.table;

		plan->delta_io += table->delta.io;
		if (table->delta.io + table->delta.rows > 0)
			plan->delta_cost += cost_of_delta(table->delta, bms_num_members(columns_read(plan, i)));
		rows->scanned[i] = table->nrows - table->delta.masked + table->delta.rows;
		plan->pairs += shape->cursors[i].pairs;
	}
}

/* Bytes of a column's values that lie beside it, on average, in the leaf that has the longest. */
static int
variable_width(Oid relid, const List *leaves, AttrNumber attnum)
{
	const char *name;
	int			most = 0;
	ListCell   *lc;

	if (leaves == NIL)
		return get_attavgwidth(relid, attnum);
	name = get_attname(relid, attnum, false);
	foreach(lc, leaves)
		most = Max(most, get_attavgwidth(lfirst_oid(lc), get_attnum(lfirst_oid(lc), name)));
	return most;
}

/* Bytes of a row of a cursor's delta. */
static double
delta_width(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan, int cursor)
{
	const ScanTarget *target = &shape->cursors[cursor].target;
	const ImportedTable *table = target->table;
	const Bitmapset *columns = columns_read(plan, cursor);
	double		width = plan->kind == SCAN_ROWS && shape->ncursors == 1 ? sizeof(ItemPointerData) : 0;
	int			attnum = -1;

	while ((attnum = bms_next_member(columns, attnum)) >= 0)
	{
		/* of a wide column's halves the low one counts for both */
		const int	i = imported_column(table, attnum);

		if (i < 0)
			continue;
		width += table->widths[i];
		if (table->variable[i])
			width += variable_width(entry_of(root, &shape->cursors[cursor])->relid, target->leaves, attnum);
	}
	return width;
}

const char *
delta_failure(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan)
{
	for (int i = 0; i < shape->ncursors && !setting_force; i++)
	{
		const double rows = shape->cursors[i].target.table->delta.rows;

		if (rows > 0 && !delta_may_fit(rows * delta_width(root, shape, plan, i)))
			return psprintf("the rows of \"%s\" that changed since its import do not fit in memory",
							get_rel_name(entry_of(root, &shape->cursors[i])->relid));
	}
	return nullptr;
}

CompileCursor
compile_cursor(PlannerInfo *root, const ShapeCursor *from)
{
	const RangeTblEntry *rte = entry_of(root, from);

	return CompileCursor{from->relids, rte->relid, from->target.table,
		from->quals, from->kind, from->keys, from->range, from->conditions, from->filters,
		from->target.names, from->target.shown};
}

void
fill_input(PlannerInfo *root, const ScanShape *shape, CompileInput *input)
{
	facts_forget();
	input->ncursors = shape->ncursors;
	for (int i = 0; i < shape->ncursors; i++)
		input->cursors[i] = compile_cursor(root, &shape->cursors[i]);
}

/* The cursor's number of a column's relation, and its attribute number. */
static List *
column_place(const ScanShape *shape, const Var *var, List *list)
{
	AttrNumber	attnum;
	int			cursor = static_cast<int>(cursor_of(shape, var, &attnum) - shape->cursors);

	return lappend_int(lappend_int(list, cursor), attnum);
}

void
fill_cursors(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan)
{
	ListCell   *lc;

	int			nchildren = 0;

	plan->ncursors = shape->ncursors;
	for (int i = 0; i < shape->ncursors; i++)
	{
		const ShapeCursor *from = &shape->cursors[i];
		const RangeTblEntry *rte = entry_of(root, from);
		int			child = from->target.shared > 0 ? -from->target.shared : from->target.child != nullptr ? ++nchildren : 0;

		plan->cursors[i] = PlanCursor{rte->relid, from->target.leaves, detached(from->quals, shape), alias_of(root, from),
			from->kind, detached(from->keys, shape), detached(from->range, shape), detached(from->conditions, shape), detached(from->filters, shape),
			child, from->target.columns, from->target.names};
		foreach(lc, from->differences)
		{
			const OpExpr *op = lfirst_node(OpExpr, lc);
			List	   *list = column_place(shape, static_cast<const Var *>(linitial(op->args)), NIL);

			list = column_place(shape, static_cast<const Var *>(lsecond(op->args)), list);
			plan->differences = lappend(plan->differences, lappend_int(list, get_typlen(op->opresulttype)));
		}
	}
}

bool
is_all_of_query(PlannerInfo *root, RelOptInfo *rel)
{
	return bms_membership(root->all_baserels) == BMS_SINGLETON || bms_is_subset(root->all_baserels, rel->relids);
}

/*
 * LIMIT, where it stands directly above the rows and is a constant: what the
 * planner has in limit_tuples may be an estimate.
 */
static double
known_limit(PlannerInfo *root, RelOptInfo *rel)
{
	const Query *parse = root->parse;

	if (root->limit_tuples <= 0 || root->query_pathkeys != NIL || !is_all_of_query(root, rel) || parse->rowMarks != NIL ||
		parse->limitOption != LIMIT_OPTION_COUNT || !IsA(parse->limitCount, Const) ||
		(parse->limitOffset != nullptr && !IsA(parse->limitOffset, Const)))
		return 0;
	return Min(root->limit_tuples, 1e18);
}

/*
 * How much of the relation's rows the query is expected to fetch, where nothing
 * above the scan has to see them all.
 */
static double
fetched_fraction(PlannerInfo *root, RelOptInfo *rel)
{
	const Query *parse = root->parse;

	if (root->tuple_fraction <= 0 || root->query_pathkeys != NIL || !is_all_of_query(root, rel) ||
		parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs || root->hasHavingQual ||
		parse->groupClause != NIL || parse->groupingSets != NIL || parse->distinctClause != NIL)
		return 1;
	return root->tuple_fraction < 1 ? root->tuple_fraction : Min(1, root->tuple_fraction / Max(rel->rows, 1));
}

double
detach_maps(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan)
{
	double		cost = cost_maps(root, shape, plan);

	for (int i = 0; i < plan->nmaps; i++)
		plan->maps[i].expr = static_cast<Expr *>(linitial(detached(list_make1(plan->maps[i].expr), shape)));
	return cost;
}

/* The programs one after the other, those over groups of others too, and what putting groups together takes. */
static void
cost_parts(const PlannerInfo *root, Path *path, const ScanPlan *plan, const ProgramRows &rows, double rows_out)
{
	path->startup_cost = path->total_cost = 0;
	for (int i = 0; i < plan->nparts; i++)
	{
		const PlanPart *part = &plan->parts[i];
		bool		merged = i > 0 && part->set == part[-1].set;
		Path		one = {};

		/* without another program PostgreSQL looks at all groups */
		cost_program(root, &one, part->program, rows, i > 0 ? 0 : second_program(part) != nullptr ? rows_out : Max(rows_out, part->stage_rows));
		path->startup_cost += one.startup_cost;
		path->total_cost += one.total_cost;
		if (second_program(part) != nullptr)
		{
			ProgramRows groups = {};

			groups.scanned[0] = groups.filtered[0] = part->stage_rows;
			cost_program(root, &one, second_program(part), groups, 0);
			path->startup_cost += one.startup_cost;
			path->total_cost += one.total_cost;
		}
		if (merged)
		{
			path->startup_cost += 2 * rows_out * MERGE_US * cost_of_us();
			path->total_cost += 2 * rows_out * MERGE_US * cost_of_us();
		}
	}
}

CustomPath *
make_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, const ScanShape *shape, Path *alternative, ScanPlan *plan, const ProgramRows &rows,
		  double rows_out, double map_cost)
{
	CustomPath *path = makeNode(CustomPath);
	double		before = plan->delta_cost + map_cost + (shape != nullptr ? children_cost(shape) : 0);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->path.rows = rows_out;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = lcons(alternative, shape != nullptr ? child_paths(shape) : NIL);
	find_loud_subqueries(root, plan);
	path->custom_private = scan_plan_to_list(plan);
	path->methods = &path_methods;
	cost_parts(root, &path->path, plan, rows, rows_out);
	path->path.startup_cost += before;
	path->path.total_cost += before;
	/* it would run until the flag, and PostgreSQL's plan then */
	if (plan_will_flag(plan))
	{
		path->path.startup_cost += alternative->total_cost;
		path->path.total_cost += alternative->total_cost;
	}
	/* PostgreSQL charges for evaluating the target wherever it is evaluated: so do we. */
	path->path.startup_cost += target->cost.startup;
	path->path.total_cost += target->cost.startup + target->cost.per_tuple * rows_out;
	return path;
}

bool
is_gpuvm_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/*
 * PostgreSQL compares what its own paths cost with pages to be read, and ours has none, or is charged for them as a sequential scan is. Where one of them costs
 * less than ours once all their pages are in memory, ours costs more in the same proportion. Look-ups for rows that PostgreSQL does not expect are among
 * what it costs.
 */
static void
charge_as_warm(const RelOptInfo *rel, CustomPath *path)
{
	double		factor = 1;
	double		share = 1;
	Cost		least = 0;
	const Cost	ours = path->path.total_cost - saved_by_delta(path->custom_private);
	ListCell   *lc;

	foreach(lc, lappend(list_copy(rel->pathlist), linitial(path->custom_paths)))
	{
		const Path *other = static_cast<const Path *>(lfirst(lc));
		Cost		warm;
		Cost		whole;

		if (other->param_info != nullptr || IsA(other, CustomPath))
			continue;
		warm = warm_cost(other);
		whole = warm + missed_cost(other);
		if (least == 0 || warm < least)
		{
			least = warm;
			share = whole / Max(warm, 1e-10);
		}
		if (other->total_cost > path->path.total_cost && whole < ours)
			factor = Max(factor, other->total_cost / whole);
	}
	note_missed_share(share);
	path->path.startup_cost *= factor;
	path->path.total_cost *= factor;
}

/* gpuvm.force leaves no other path to choose; PostgreSQL's is still there as the alternative. */
void
offer_path(RelOptInfo *rel, CustomPath *path)
{
	charge_as_warm(rel, path);
	remember_path(rel, path);
	if (setting_force)
	{
		rel->pathlist = list_make1(path);
		rel->partial_pathlist = NIL;
	}
	else
		add_path(rel, &path->path);
}

/* What a subquery below an outer join gives of a column of its own, which is null where the subquery has no row: that column. */
static Node *
bare_placeholder(PlaceHolderVar *phv)
{
	return IsA(phv->phexpr, Var) && bms_is_member(((Var *) phv->phexpr)->varno, phv->phrels) ? (Node *) phv->phexpr : (Node *) phv;
}

CustomPath *
make_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanShape *shape, Path *alternative, List *hidden, List *collations)
{
	CompileInput input = {};
	CompiledProgram compiled;
	ScanPlan	plan = {};
	ProgramRows rows = {};
	const char *what = hidden != NIL ? "Sort" : shape->ncursors == 1 ? "Scan" : "Join";
	const char *reason = nullptr;
	CustomPath *path;
	double		map_cost;
	List	   *outputs = NIL;
	ListCell   *lc;

	fill_input(root, shape, &input);
	/* What the custom scan's tuple holds is what the alternative's target list holds. */
	foreach(lc, rel->reltarget->exprs)
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		if (IsA(node, PlaceHolderVar) && shape->ncursors > 1)
			node = bare_placeholder((PlaceHolderVar *) node);
		outputs = lappend(outputs, node);
		if (IsA(node, PlaceHolderVar) && shape->ncursors > 1)
			continue;
		if (!IsA(node, Var))
		{
			note_reason(root, rel, what, shape->ncursors == 1 ? "an expression must be evaluated at the scan"
						: "an expression must be evaluated below the join", nullptr);
			return nullptr;
		}
		if (((Var *) node)->varattno <= 0 && !is_by_position(&input, (Var *) node))
		{
			note_reason(root, rel, what, "system columns and whole rows are not in tablets", nullptr);
			return nullptr;
		}
		if (shape->ncursors == 1)
			plan.attnums = lappend_int(plan.attnums, ((Var *) node)->varattno);
	}

	if (!compile_rows(&input, outputs, hidden, collations, &compiled))
	{
		note_reason(root, rel, what, input.reason, input.hint);
		return nullptr;
	}
	plan.kind = SCAN_ROWS;
	plan.hidden = detached(hidden, shape);
	plan.limit = known_limit(root, rel);
	plan.fraction = fetched_fraction(root, rel);
	if (!plan_compiled(root, shape, compiled, &plan, &reason))
	{
		note_reason(root, rel, what, reason, nullptr);
		return nullptr;
	}
	reason = delta_failure(root, shape, &plan);
	if (reason != nullptr)
	{
		note_reason(root, rel, what, reason, DELTA_HINT);
		return nullptr;
	}
	fill_cursors(root, shape, &plan);
	plan_delta(&plan, shape, &rows);
	map_cost = detach_maps(root, shape, &plan);
	plan_fetches(shape, &plan);
	path = make_path(root, rel, rel->reltarget, shape, alternative, &plan, rows, Max(shape->rows, rel->rows), map_cost);
	path->path.total_cost += fetch_cost(root, &plan, path->path.rows, shape->ncursors == 1);
	return path;
}

void
shape_of_relation(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target, bool with_pseudoconstant, ScanShape *shape)
{
	/* a child's rows have passed them */
	List	   *quals = target->child != nullptr ? NIL : ordered_quals(root, rel->baserestrictinfo, with_pseudoconstant);

	shape->ncursors = 1;
	shape->rows = rel->rows;
	shape->cursors[0] = ShapeCursor{rel->relids, *target, quals,
		rel->rows, JoinKind::Inner, NIL, NIL, NIL, NIL, 0, 0, false};
}

bool
add_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target)
{
	Path	   *alternative = alternative_path(rel);
	ScanShape	shape = {};
	CustomPath *path;

	if (alternative == nullptr)
		return false;
	shape_of_relation(root, rel, target, false, &shape);
	path = make_rows_path(root, rel, &shape, alternative);
	if (path != nullptr)
		offer_path(rel, path);
	return path != nullptr;
}

/* -- from path to plan ----------------------------------------------------------------- */

static Plan *
plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ScanPlan   *plan = scan_plan_from_list(best_path->custom_private);
	Plan	   *alternative = static_cast<Plan *>(linitial(custom_plans));

	scan->scan.plan.targetlist = tlist;
	/* The program has evaluated every clause, and so has the alternative. */
	scan->scan.plan.qual = NIL;
	/* 0 for a join: its rows are of no relation; nor is one that is sorted the current row of a scan */
	scan->scan.scanrelid = plan->kind == SCAN_ROWS && plan->norder == 0 ? rel->relid : 0;
	scan->flags = best_path->flags;
	scan->custom_plans = custom_plans;
	scan->custom_private = best_path->custom_private;
	/* behind what the alternative is asked for (the path itself may have been given a target above it) may be what a sort has computed for itself */
	scan->custom_scan_tlist = list_truncate(static_cast<List *>(copyObjectImpl(alternative->targetlist)),
											list_length(static_cast<Path *>(linitial(best_path->custom_paths))->pathtarget->exprs));
	if (plan->whole && root->parse->setOperations != nullptr)
		name_columns(root, scan);
	scan->methods = gpuvm_scan_methods;
	return &scan->scan.plan;
}

}  // namespace gpuvm
