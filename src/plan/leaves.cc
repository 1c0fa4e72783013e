/* leaves.cc: what stands in FROM: relations, subqueries, CTEs, VALUES, functions. */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "plan/translation.h"
#include "store/registry.h"

namespace gpuvm {

/* -- does a query refer to what is outside of it? ----------------------------------- */

struct Outside
{
	int			depth;			/* of the query that is looked at */
	bool		ctes;			/* those of the level outside are there */
};

static bool
outside_walker(Node *node, Outside *outside)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		return static_cast<int>(((Var *) node)->varlevelsup) >= outside->depth;
	if (IsA(node, Aggref))
	{
		if (static_cast<int>(((Aggref *) node)->agglevelsup) >= outside->depth)
			return true;
	}
	else if (IsA(node, GroupingFunc))
	{
		if (static_cast<int>(((GroupingFunc *) node)->agglevelsup) >= outside->depth)
			return true;
	}
	else if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (RangeTblEntry *) node;

		return rte->rtekind == RTE_CTE &&
			   static_cast<int>(rte->ctelevelsup) >= outside->depth + (outside->ctes ? 1 : 0);
	}
	else if (IsA(node, Query))
	{
		bool		result;

		outside->depth++;
		result = query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(outside_walker), outside,
								   QTW_EXAMINE_RTES_BEFORE);
		outside->depth--;
		return result;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(outside_walker), outside);
}

bool
refers_outside(Node *node, bool ctes)
{
	Outside		outside = {0, ctes};

	return outside_walker(node, &outside);
}

/* -- External ------------------------------------------------------------------------- */

/* SELECT (columns that are asked for) FROM the one relation. */
static GpuvmRel *
external(const Level *level, const RangeTblEntry *rte, List *ctes)
{
	GpuvmRel   *rel = rel_make(REL_EXTERNAL);
	Query	   *query = makeNode(Query);
	RangeTblRef *reference = makeNode(RangeTblRef);

	query->commandType = CMD_SELECT;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->cteList = static_cast<List *>(copyObjectImpl(ctes));
	query->hasRecursive = ctes != NIL && level->query->hasRecursive;
	query->hasSubLinks = level->query->hasSubLinks;
	query->hasRowSecurity = level->query->hasRowSecurity;
	compat_copy_relation(level->query, rte, query);
	reference->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(reference), nullptr);
	query->stmt_location = query->stmt_len = -1;
	rel->query = (Node *) query;
	return rel;
}

static TargetEntry *
external_column(Level *level, GpuvmRel *rel, const Var *var, const char *name)
{
	Query	   *query = (Query *) rel->query;
	Var		   *own = static_cast<Var *>(copyObjectImpl(var));
	TargetEntry *column;

	own->varno = 1;
	own->varnosyn = 1;
	own->varlevelsup = 0;
	query->targetList = lappend(
		query->targetList, makeTargetEntry((Expr *) own, list_length(query->targetList) + 1, pstrdup(name), false));
	column = make_column(
		level->t,
		(Node *) makeVar(IR_OWN, list_length(query->targetList), var->vartype, var->vartypmod, var->varcollid, 0),
		name);
	rel->columns = lappend(rel->columns, column);
	return column;
}

/* -- columns --------------------------------------------------------------------------- */

static const char *
column_name(const RangeTblEntry *rte, AttrNumber attnum)
{
	if (attnum > 0 && attnum <= list_length(rte->eref->colnames))
		return strVal(list_nth(rte->eref->colnames, attnum - 1));
	return attnum < 0 && rte->rtekind == RTE_RELATION ? get_attname(rte->relid, attnum, false) : "column";
}

/* Which of a leaf's own columns is it? */
static AttrNumber
own_column(const GpuvmRel *leaf, const TargetEntry *column)
{
	const Var  *own = (const Var *) column->expr;

	if (leaf->op == REL_SCAN)
		return own->varattno;
	return ((const Var *) list_nth_node(TargetEntry, ((const Query *) leaf->query)->targetList, own->varattno - 1)
				->expr)
		->varattno;
}

TargetEntry *
leaf_column(Level *level, int rti, const Var *var)
{
	GpuvmRel   *leaf = level->leaves[rti];
	const char *name = column_name(rt_fetch(rti, level->query->rtable), var->varattno);
	TargetEntry *column;
	Var		   *own;
	ListCell   *lc;

	foreach(lc, leaf->columns)
	{
		column = lfirst_node(TargetEntry, lc);
		if (own_column(leaf, column) == var->varattno)
			return column;
	}
	if (leaf->op == REL_EXTERNAL)
		return external_column(level, leaf, var, name);
	own = makeVar(IR_OWN, var->varattno, var->vartype, var->vartypmod, var->varcollid, 0);
	column = make_column(level->t, (Node *) own, name);
	leaf->columns = lappend(leaf->columns, column);
	return column;
}

/* -- relations ----------------------------------------------------------------------------- */

/* All leaves of a partitioned table; NIL unless all are imported. */
static List *
imported_leaves(Oid relid)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(relid, NoLock, nullptr))
	{
		const Oid	leaf = lfirst_oid(lc);

		if (get_rel_relkind(leaf) == RELKIND_PARTITIONED_TABLE)
			continue;
		if (!registry_known(leaf))
			return NIL;
		leaves = lappend_oid(leaves, leaf);
	}
	return leaves;
}

static GpuvmRel *
table(Level *level, int rti, const RangeTblEntry *rte)
{
	const bool	partitioned = rte->relkind == RELKIND_PARTITIONED_TABLE;
	List	   *leaves = partitioned && rte->inh ? imported_leaves(rte->relid) : NIL;
	GpuvmRel   *rel;
	ListCell   *lc;

	if (rte->tablesample != nullptr)
		refuse(level->t, REFUSED_TABLESAMPLE);
	else if (!partitioned && rte->inh && has_subclass(rte->relid))
		refuse(level->t, REFUSED_INHERITANCE);
	if (refused(level))
		return nullptr;
	if (partitioned ? leaves == NIL : !registry_known(rte->relid))
	{
		if (refers_outside((Node *) rte->securityQuals, false))
			refuse(level->t, REFUSED_RELATION_KIND);
		return level->leaves[rti] = external(level, rte, NIL);
	}
	rel = level->leaves[rti] = rel_make(REL_SCAN);
	rel->rte = static_cast<RangeTblEntry *>(palloc(sizeof(RangeTblEntry)));
	*rel->rte = *rte;
	rel->rte->securityQuals = NIL;
	rel->rte = static_cast<RangeTblEntry *>(copyObjectImpl(rel->rte));
	rel->leaves = leaves;
	/* each level of security is a barrier for what is above it */
	foreach(lc, rte->securityQuals)
	{
		rel = rel_make(REL_FILTER, list_make1(rel));
		add_conditions(level, &rel, static_cast<Node *>(lfirst(lc)));
		if (refused(level))
			return nullptr;
		if (rel->op != REL_FILTER)
			rel = rel_make(REL_FILTER, list_make1(rel));
		rel->barrier = true;
	}
	return rel;
}

static GpuvmRel *
subquery(Level *level, int rti, const RangeTblEntry *rte)
{
	GpuvmRel   *rel = translate_subquery(level, rte->subquery, &level->columns[rti]);

	if (rel != nullptr && rte->security_barrier)
	{
		rel = rel_make(REL_FILTER, list_make1(rel));
		rel->barrier = true;
	}
	return rel;
}

/* -- VALUES and functions ---------------------------------------------------------------- */

static List *
values_columns(Level *level, int rti, const RangeTblEntry *rte)
{
	ListCell   *type;
	ListCell   *typmod;
	ListCell   *collation;

	forthree(type, rte->coltypes, typmod, rte->coltypmods, collation, rte->colcollations)
	{
		const int	n = foreach_current_index(type) + 1;
		Var		   *own = makeVar(IR_OWN, n, lfirst_oid(type), lfirst_int(typmod), lfirst_oid(collation), 0);

		level->columns[rti] = lappend(level->columns[rti], make_column(level->t, (Node *) own, column_name(rte, n)));
	}
	return list_copy(level->columns[rti]);
}

/* Its rows as a UNION ALL, where they refer to columns or have subqueries. */
static GpuvmRel *
lateral_values(Level *level, int rti, const RangeTblEntry *rte)
{
	GpuvmRel   *rel = rel_make(REL_UNION);
	ListCell   *lc;

	foreach(lc, rte->values_lists)
	{
		GpuvmRel   *arm = rel_make(REL_VALUES);
		List	   *numbers = NIL;
		ListCell   *lc2;

		arm->rows = list_make1(NIL);
		foreach(lc2, lfirst_node(List, lc))
		{
			Node	   *value = translate_expr_at(level, &arm, static_cast<Node *>(lfirst(lc2)));

			if (refused(level))
				return nullptr;
			numbers = lappend_int(
				numbers, column_of_value(level, &arm, value, column_name(rte, list_length(numbers) + 1), true)->resno);
		}
		rel->inputs = lappend(rel->inputs, arm);
		rel->arms = lappend(rel->arms, numbers);
	}
	rel->columns = values_columns(level, rti, rte);
	return rel;
}

static GpuvmRel *
values(Level *level, int rti, const RangeTblEntry *rte)
{
	GpuvmRel   *rel = rel_make(REL_VALUES);
	ListCell   *lc;

	if (contain_var_clause((Node *) rte->values_lists) || refers_outside((Node *) rte->values_lists, false) ||
		checkExprHasSubLink((Node *) rte->values_lists))
		return lateral_values(level, rti, rte);
	foreach(lc, rte->values_lists)
	{
		List	   *row = NIL;
		ListCell   *lc2;

		foreach(lc2, lfirst_node(List, lc))
			row = lappend(row, translate_expr(level, static_cast<Node *>(lfirst(lc2))));
		rel->rows = lappend(rel->rows, row);
	}
	rel->columns = values_columns(level, rti, rte);
	return rel;
}

static GpuvmRel *
function(Level *level, int rti, const RangeTblEntry *rte)
{
	Node	   *calls = rte->rtekind == RTE_FUNCTION ? (Node *) rte->functions : (Node *) rte->tablefunc;

	if (refers_outside(calls, false))
		refuse(level->t, REFUSED_LATERAL_FUNCTION);
	else if (contain_volatile_functions(calls))
		refuse(level->t, REFUSED_VOLATILE);
	return level->leaves[rti] = external(level, rte, NIL);
}

/* -- CTEs ---------------------------------------------------------------------------------- */

/* All CTEs of the level, computed by PostgreSQL wherever one of them is read. */
static GpuvmRel *
recursive(Level *definer, Level *level, int rti, const RangeTblEntry *rte)
{
	RangeTblEntry *copy = static_cast<RangeTblEntry *>(copyObjectImpl(rte));

	copy->ctelevelsup = 0;
	copy->self_reference = false;
	if (refers_outside((Node *) definer->query->cteList, true))
		refuse(level->t, REFUSED_OPEN_RECURSION);
	else if (contain_volatile_functions((Node *) definer->query->cteList))
		refuse(level->t, REFUSED_VOLATILE);
	return level->leaves[rti] = external(definer, copy, definer->query->cteList);
}

static TargetEntry *
read_column(Level *level, GpuvmRel *set, const TargetEntry *column)
{
	TargetEntry *own = make_column(level->t, (Node *) rel_var(column), column->resname);

	set->columns = lappend(set->columns, own);
	return own;
}

static GpuvmRel *
cte(Level *level, int rti, const RangeTblEntry *rte)
{
	Level	   *definer = level;
	const CommonTableExpr *expr = nullptr;
	TranslatedCte *done = nullptr;
	GpuvmRel   *rel;
	Level	   *sub;
	ListCell   *lc;

	for (Index up = rte->ctelevelsup; up > 0; up--)
		definer = definer->outer;
	foreach(lc, definer->query->cteList)
	{
		expr = lfirst_node(CommonTableExpr, lc);
		done = &definer->ctes[foreach_current_index(lc)];
		if (strcmp(expr->ctename, rte->ctename) == 0)
			break;
	}
	if (expr->search_clause != nullptr || expr->cycle_clause != nullptr)
		refuse(level->t, REFUSED_SEARCH_CTE);
	if (refused(level))
		return nullptr;
	if (expr->cterecursive)
		return recursive(definer, level, rti, rte);
	if (done->shared == nullptr)
	{
		sub = make_level(level->t, definer, castNode(Query, expr->ctequery));
		rel = translate_level(sub, false);
		if (refused(level))
			return nullptr;
		if (sub->correlated || expr->ctematerialized == CTEMaterializeNever ||
			(expr->ctematerialized == CTEMaterializeDefault && expr->cterefcount == 1))
		{
			for (Level *between = level; sub->correlated && between != definer; between = between->outer)
				between->correlated = true;
			level->columns[rti] = sub->outputs;
			return rel;
		}
		done->shared = rel_make(REL_SHARED, list_make1(rel));
		done->shared->id = ++level->t->ids;
		foreach(lc, sub->outputs)
			done->columns = lappend(done->columns, lfirst(lc));
		level->t->definitions = lappend(level->t->definitions, done->shared);
	}
	rel = rel_make(REL_SET);
	rel->id = done->shared->id;
	foreach(lc, done->columns)
		level->columns[rti] = lappend(level->columns[rti], read_column(level, rel, lfirst_node(TargetEntry, lc)));
	return rel;
}

GpuvmRel *
translate_relation(Level *level, int rti)
{
	const RangeTblEntry *rte = rt_fetch(rti, level->query->rtable);
	GpuvmRel   *rel;

	switch (rte->rtekind)
	{
		case RTE_RELATION:
			return table(level, rti, rte);
		case RTE_SUBQUERY:
			return subquery(level, rti, rte);
		case RTE_VALUES:
			return values(level, rti, rte);
		case RTE_FUNCTION:
		case RTE_TABLEFUNC:
			return function(level, rti, rte);
		case RTE_CTE:
			return cte(level, rti, rte);
		case RTE_RESULT:
			rel = rel_make(REL_VALUES);
			rel->rows = list_make1(NIL);
			return rel;
		default:
			refuse(level->t, REFUSED_RELATION_KIND);
			return nullptr;
	}
}

}  // namespace gpuvm
