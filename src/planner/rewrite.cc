/*
 * rewrite.cc: subqueries that PostgreSQL would run for each row, written as joins before it plans, and others so that programs can
 * run them: on a copy of the query, at all levels. Which plan is better is seen when there are both (planner.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "planner/paths.h"
#include "planner/rewrite.h"
#include "planner/scan_plan.h"
#include "store/registry.h"

namespace gpuvm {

/* -- is there anything to do? ------------------------------------------------------------------ */

struct Look
{
	bool		tables;			/* look at these, */
	bool		imported;
	bool		rewritable;		/* or at subqueries */
	bool		locks;			/* rows that are locked are looked at again */
};

/* Walks expressions only where a level has subqueries in them. */
static bool
look_walker(Node *node, void *context)
{
	Look	   *look = static_cast<Look *>(context);
	ListCell   *lc;

	if (node == nullptr)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (const RangeTblEntry *) node;

		look->rewritable |= rte->rtekind == RTE_SUBQUERY && rte->lateral && (rte->subquery->hasAggs || rte->subquery->groupClause != NIL || rte->subquery->limitCount != nullptr);
		if (look->tables && may_be_imported(rte))
			look->imported = true;
		return false;
	}
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		look->locks |= query->rowMarks != NIL;
		look->rewritable |= has_unknown_keys(query);
		look->rewritable |= query->setOperations != nullptr && (is_rewritable_setop(query->setOperations) || is_rewritable_union(query));
		foreach(lc, query->cteList)
			look->rewritable |= is_inlinable_cte(lfirst_node(CommonTableExpr, lc));
		if (query->hasSubLinks)
			return query_tree_walker(query, reinterpret_cast<bool (*)()>(look_walker), context, QTW_EXAMINE_RTES_BEFORE);
		return range_table_walker(query->rtable, reinterpret_cast<bool (*)()>(look_walker), context, QTW_EXAMINE_RTES_BEFORE) ||
			look_walker((Node *) query->cteList, context);
	}
	if (IsA(node, SubLink))
	{
		const SubLink *sublink = (const SubLink *) node;
		const Query *query = (const Query *) sublink->subselect;

		look->rewritable |= (sublink->subLinkType == EXPR_SUBLINK && query->hasAggs && query->jointree->fromlist != NIL) ||
			sublink->subLinkType == ANY_SUBLINK || sublink->subLinkType == ALL_SUBLINK || sublink->subLinkType == EXISTS_SUBLINK;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(look_walker), context);
}

/* How many tables are in the join tree? */
static int
count_relations(Query *query, Node *jointree)
{
	int			n = 0;
	ListCell   *lc;

	if (IsA(jointree, RangeTblRef))
		return rt_fetch(((RangeTblRef *) jointree)->rtindex, query->rtable)->rtekind == RTE_RELATION;
	if (IsA(jointree, JoinExpr))
		return 2;
	foreach(lc, ((FromExpr *) jointree)->fromlist)
		n += count_relations(query, static_cast<Node *>(lfirst(lc)));
	return n;
}

bool
has_current_row(Query *parse, int cursor_options)
{
	const SetOperationStmt *set = (const SetOperationStmt *) parse->setOperations;

	return (cursor_options & CURSOR_OPT_FAST_PLAN) != 0 && !parse->hasAggs && parse->groupClause == NIL && parse->distinctClause == NIL && parse->sortClause == NIL &&
		(set == nullptr || (set->op == SETOP_UNION && set->all)) && count_relations(parse, (Node *) parse->jointree) < 2;
}

/* The relations of a side of a join, and what stands for its joins. */
static Relids
relations_below(const Node *jointree)
{
	const JoinExpr *join = (const JoinExpr *) jointree;

	if (IsA(jointree, RangeTblRef))
		return bms_make_singleton(((const RangeTblRef *) jointree)->rtindex);
	if (!IsA(jointree, JoinExpr))
		return nullptr;
	return bms_add_member(bms_union(relations_below(join->larg), relations_below(join->rarg)), join->rtindex);
}

/* By keys of both sides, or by no column at all. */
static bool
is_joined_in_full(const JoinExpr *join)
{
	const Relids left = relations_below(join->larg);
	const Relids right = relations_below(join->rarg);
	ListCell   *lc;

	foreach(lc, conjuncts(join->quals))
	{
		const OpExpr *op = static_cast<const OpExpr *>(lfirst(lc));
		Relids		reads[2];

		if (!IsA(op, OpExpr) || list_length(op->args) != 2 || !op_hashjoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args)))))
			continue;
		reads[0] = pull_varnos(nullptr, static_cast<Node *>(linitial(op->args)));
		reads[1] = pull_varnos(nullptr, static_cast<Node *>(lsecond(op->args)));
		if (!bms_is_empty(reads[0]) && !bms_is_empty(reads[1]) &&
			((bms_is_subset(reads[0], left) && bms_is_subset(reads[1], right)) || (bms_is_subset(reads[0], right) && bms_is_subset(reads[1], left))))
			return true;
	}
	return bms_is_empty(pull_varnos(nullptr, join->quals));
}

/*
 * PostgreSQL joins in full by keys only, and refuses other conditions, but for a join that WHERE makes one of another kind. That needs the conditions as
 * they stand: with EXISTS elsewhere in the query the plan would be an error.
 */
static bool
has_full_join_by_where(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(has_full_join_by_where), context, 0);
	if (IsA(node, JoinExpr) && ((JoinExpr *) node)->jointype == JOIN_FULL && !is_joined_in_full((JoinExpr *) node))
		return true;
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_full_join_by_where), context);
}

bool
has_rewritable(Query *parse, int cursor_options)
{
	Look		look = {};

	if ((parse->commandType != CMD_SELECT && parse->commandType != CMD_INSERT) || parse->hasModifyingCTE)
		return false;
	/* UPDATE ... WHERE CURRENT OF finds the scan of a cursor's table, but not below a join */
	if (has_current_row(parse, cursor_options))
		return false;
	look_walker((Node *) parse, &look);
	if (!look.rewritable || look.locks)
		return false;
	look.tables = true;
	look_walker((Node *) parse, &look);
	return look.imported && !has_full_join_by_where((Node *) parse, nullptr);
}

/* -- rewriting ----------------------------------------------------------------------------------- */

/* Conditions of policies and below security barriers come before others: nothing is moved there. */
static bool
may_rewrite(Query *query)
{
	ListCell   *lc;

	if (query->commandType != CMD_SELECT || query->setOperations != nullptr || query->jointree->fromlist == NIL ||
		query->hasRowSecurity)
		return false;
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->securityQuals != NIL || rte->security_barrier)
			return false;
	}
	return true;
}

static bool
rewrite_members(RewriteLevel *level)
{
	List	   *parts = NIL;
	bool		any = false;
	ListCell   *lc;

	foreach(lc, conjuncts(level->query->jointree->quals))
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		Node	   *exists = rewrite_not_in(level, condition);

		if (exists == nullptr)
			exists = rewrite_exists(level, condition);
		if (exists == nullptr)
			exists = rewrite_comparison(level, condition);
		any |= exists != nullptr;
		parts = lappend(parts, exists != nullptr ? exists : condition);
	}
	if (any)
		level->query->jointree->quals = (Node *) make_ands_explicit(parts);
	return any;
}

/* Conditions with subqueries of inner joins that no outer join is above: they are WHERE's. */
static List *
hoist_conditions(Node *jointree)
{
	List	   *hoisted = NIL;
	List	   *rest = NIL;
	ListCell   *lc;

	if (IsA(jointree, FromExpr))
	{
		foreach(lc, ((FromExpr *) jointree)->fromlist)
			hoisted = list_concat(hoisted, hoist_conditions(static_cast<Node *>(lfirst(lc))));
	}
	else if (IsA(jointree, JoinExpr) && ((JoinExpr *) jointree)->jointype == JOIN_INNER)
	{
		JoinExpr   *join = (JoinExpr *) jointree;

		hoisted = list_concat(hoist_conditions(join->larg), hoist_conditions(join->rarg));
		foreach(lc, conjuncts(join->quals))
		{
			Node	   *condition = static_cast<Node *>(lfirst(lc));

			if (checkExprHasSubLink(condition))
				hoisted = lappend(hoisted, condition);
			else
				rest = lappend(rest, condition);
		}
		join->quals = rest == NIL ? nullptr : (Node *) make_ands_explicit(rest);
	}
	return hoisted;
}

/* The join tree again: FROM with the grouped subqueries that filter, then those that only give values. */
static void
put_together(RewriteLevel *level)
{
	FromExpr   *from = level->query->jointree;
	Node	   *item;
	ListCell   *lc;

	/* PostgreSQL tries orders of no more relations than that at once */
	foreach(lc, level->from)
	{
		if (list_length(from->fromlist) >= from_collapse_limit)
			from->fromlist = list_make1(makeFromExpr(from->fromlist, nullptr));
		from->fromlist = lappend(from->fromlist, lfirst(lc));
	}
	from->quals = level->quals == NIL ? nullptr : (Node *) make_ands_explicit(level->quals);
	if (level->outer_joins == NIL)
		return;
	item = list_length(from->fromlist) == 1 && from->quals == nullptr ? static_cast<Node *>(linitial(from->fromlist)) : (Node *) from;
	foreach(lc, level->outer_joins)
	{
		JoinExpr   *join = lfirst_node(JoinExpr, lc);

		join->larg = item;
		item = (Node *) join;
	}
	level->query->jointree = makeFromExpr(list_make1(item), level->outer_quals == NIL ? nullptr : (Node *) make_ands_explicit(level->outer_quals));
}

void
read_subquery(Query *query, Query *inner, const char *name)
{
	ParseState *pstate = make_parsestate(nullptr);
	RangeTblRef *ref = makeNode(RangeTblRef);

	inner->commandType = CMD_SELECT;
	inner->canSetTag = true;
	inner->rtable = query->rtable;
#if PG_VERSION_NUM >= 160000
	inner->rteperminfos = query->rteperminfos;
	query->rteperminfos = NIL;
#endif
	addRangeTableEntryForSubquery(pstate, inner, makeAlias(name, NIL), false, false);
	query->rtable = pstate->p_rtable;
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), nullptr);
}

struct Rewriting
{
	const Query *topmost;
	Rewrite		way;
	bool		any;
	bool		reduced;
	bool		inlined;
	bool		grouped;
	int			most_relations;	/* of a level, with those within, that is rewritten */
	int			loud;			/* has_loud_conditions() of the statement; -1: nobody has asked */
};

/*
 * NOT IN reads its subquery up to three times, a set operation its arms twice: where one is within another that would multiply with each
 * level. What has so many relations more than the whole statement had is left as it is.
 */
constexpr int MOST_GROWTH = 32;

static bool
relation_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	CHECK_FOR_INTERRUPTS();
	if (IsA(node, RangeTblEntry))
	{
		++*static_cast<int *>(context);
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(relation_walker), context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(relation_walker), context);
}

/* Of the query and those within. */
static int
count_all_relations(Query *query)
{
	int			n = 0;

	relation_walker((Node *) query, &n);
	return n;
}

/* Asked once: what is rewritten raises no error that the statement would not. */
static bool
has_loud_conditions(Rewriting *rewriting)
{
	if (rewriting->loud < 0)
		rewriting->loud = has_loud_conditions(rewriting->topmost);
	return rewriting->loud > 0;
}

static void
rewrite_level(Query *query, Rewriting *rewriting)
{
	RewriteLevel level = {query, query == rewriting->topmost, rewriting->way == Rewrite::Reduced};
	List	   *quals;
	Node	   *known;
	ListCell   *lc;

	if (count_all_relations(query) > rewriting->most_relations)
		return;
	/* PostgreSQL moves no condition into a CTE whose rows it keeps */
	if (rewriting->way == Rewrite::Inlined && query->cteList != NIL && !has_loud_conditions(rewriting))
		rewriting->inlined |= rewrite_ctes(query);
	if (query->setOperations != nullptr)
	{
		/* PostgreSQL moves conditions into a DISTINCT, but below no EXCEPT: they are not for rows that it takes away */
		bool		set = query == rewriting->topmost || !is_except(query->setOperations) || !has_loud_conditions(rewriting);

		rewriting->any |= (set && rewrite_setop(query)) || rewrite_union(query);
	}
	if (!may_rewrite(query))
		return;
	level.conditions = conditions_of(query);
	/* what a group's value is compared with may be evaluated for any group */
	if (!has_loud_conditions(rewriting))
		rewriting->any |= rewrite_laterals(&level);
	rewriting->reduced |= level.reduced;
	if (!query->hasSubLinks)
		return;
	quals = list_concat(conjuncts(query->jointree->quals), hoist_conditions((Node *) query->jointree));
	query->jointree->quals = quals == NIL ? nullptr : (Node *) make_ands_explicit(quals);
	/* a level that has no rows has nothing planned */
	known = quals == NIL ? nullptr : folded(query->jointree->quals);
	if (quals != NIL && (known == nullptr || IsA(known, Const)))
		return;
	level.conditions = conditions_of(query);
	foreach(lc, quals)
		rewriting->any |= rewrite_in(query, static_cast<Node *>(lfirst(lc)));
	rewriting->any |= rewrite_members(&level);
	if (rewrite_scalars(&level))
	{
		put_together(&level);
		rewriting->any = true;
	}
	rewriting->reduced |= level.reduced;
}

/* Inner levels first. */
static bool
rewrite_walker(Node *node, void *context)
{
	Rewriting  *rewriting = static_cast<Rewriting *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Query))
	{
		bool		rewritable;

		check_stack_depth();
		CHECK_FOR_INTERRUPTS();
		rewritable = compat_flatten_group_keys((Query *) node);

		query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(rewrite_walker), context, 0);
		if (!rewritable)
			return false;
		rewrite_level((Query *) node, rewriting);
		rewriting->grouped |= rewriting->way == Rewrite::Grouped && rewrite_keys((Query *) node);
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(rewrite_walker), context);
}

bool
rewrite_subqueries(Query *parse, Rewrite way)
{
	Rewriting	rewriting = {parse, way};

	rewriting.most_relations = count_all_relations(parse) + MOST_GROWTH;
	rewriting.loud = -1;
	rewrite_walker((Node *) parse, &rewriting);
	switch (way)
	{
		case Rewrite::Joins: return rewriting.any;
		case Rewrite::Reduced: return rewriting.reduced;
		case Rewrite::Inlined: return rewriting.inlined;
		case Rewrite::Grouped: return rewriting.grouped;
	}
	return false;
}

/* -- what came of it --------------------------------------------------------------------------------- */

/* Is there such a node in the plan, outside of our scans' alternatives? */
static bool
has_node(const Plan *plan, bool (*is_it) (const Plan *))
{
	List	   *below = NIL;
	ListCell   *lc;

	if (plan == nullptr)
		return false;
	check_stack_depth();
	if (is_it(plan))
		return true;
	switch (nodeTag(plan))
	{
		case T_Append: below = ((const Append *) plan)->appendplans; break;
		case T_MergeAppend: below = ((const MergeAppend *) plan)->mergeplans; break;
		/* ours has its alternative first */
		case T_CustomScan: below = list_copy_tail(((const CustomScan *) plan)->custom_plans, is_gpuvm_scan(plan) ? 1 : 0); break;
		case T_SubqueryScan: below = list_make1(((const SubqueryScan *) plan)->subplan); break;
		default: break;
	}
	foreach(lc, below)
	{
		if (has_node(static_cast<const Plan *>(lfirst(lc)), is_it))
			return true;
	}
	return has_node(plan->lefttree, is_it) || has_node(plan->righttree, is_it);
}

static bool
has_node(const PlannedStmt *stmt, bool (*is_it) (const Plan *))
{
	ListCell   *lc;

	foreach(lc, stmt->subplans)
	{
		if (has_node(static_cast<const Plan *>(lfirst(lc)), is_it))
			return true;
	}
	return has_node(stmt->planTree, is_it);
}

bool
has_gpuvm_scan(const PlannedStmt *stmt)
{
	return has_node(stmt, [](const Plan *plan) { return is_gpuvm_scan(plan); });
}

bool
has_aggregation(const PlannedStmt *stmt)
{
	return has_node(stmt, [](const Plan *plan) { return IsA(plan, Agg) || IsA(plan, Group) || IsA(plan, Unique); });
}

}  // namespace gpuvm
