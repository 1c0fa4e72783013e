/*
 * rewrite_reduce.cc: a grouped subquery may leave out groups that no row asks for: those with keys that a relation of
 * the outer level does not have where it meets its own conditions. Other rows of the level never get to see them.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "planner/rewrite.h"

namespace gpuvm {

static bool
scalar_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, SubLink))
		return ((SubLink *) node)->subLinkType != ANY_SUBLINK || levels_read_by((Query *) ((SubLink *) node)->subselect).outer ||
			levels_read_by((Query *) ((SubLink *) node)->subselect).further;
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(scalar_walker), context);
}

/* Does it read this relation and nothing else, and can it be evaluated for any of its rows? */
static bool
is_of_relation(Node *node, int varno)
{
	LevelsRead	read = levels_read(node);
	int			only;

	return bms_get_singleton_member(pull_varnos(nullptr, node), &only) && only == varno && !read.outer && !read.further &&
		!scalar_walker(node, nullptr) && is_quiet(node);
}

struct ReplaceVar
{
	const Var  *var;
	Node	   *by;
};

static Node *
replace_var(Node *node, void *context)
{
	const ReplaceVar *r = static_cast<const ReplaceVar *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, Var))
		return equal(node, r->var) ? static_cast<Node *>(copyObjectImpl(r->by)) : node;
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_var), context);
}

/* The key is a column of which a condition says: it is one of a subquery's. So are the keys that are asked for. */
static Node *
member_condition(const RewriteLevel *level, const OpExpr *equality, Node *inner, const Var *outer)
{
	ListCell   *lc;

	foreach(lc, level->conditions)
	{
		SubLink    *member = static_cast<SubLink *>(lfirst(lc));
		const OpExpr *op = IsA(member, SubLink) ? (const OpExpr *) member->testexpr : nullptr;
		ReplaceVar	r = {outer, inner};
		SubLink    *copy;

		if (op == nullptr || member->subLinkType != ANY_SUBLINK || !IsA(op, OpExpr) || op->opno != equality->opno || op->inputcollid != equality->inputcollid ||
			!equal(linitial(op->args), outer) || exprType(inner) != outer->vartype || scalar_walker((Node *) member, nullptr) || !is_quiet((Node *) member))
			continue;
		copy = static_cast<SubLink *>(copyObjectImpl(member));
		copy->testexpr = replace_var(copy->testexpr, &r);
		return (Node *) copy;
	}
	return nullptr;
}

/* inner keys IN (SELECT outer keys FROM the relation WHERE what the level asks of it), for the keys that are its; NULL if it asks nothing. */
static Node *
relation_condition(const RewriteLevel *level, int varno, List *equal, List *inner, List *outer)
{
	const RangeTblEntry *rte = rt_fetch(varno, level->query->rtable);
	Query	   *query = makeNode(Query);
	SubLink    *member = makeNode(SubLink);
	RangeTblRef *ref = makeNode(RangeTblRef);
	List	   *quals = NIL;
	List	   *tests = NIL;
	bool		nulled = false;
	ListCell   *lc;

	/* a row of NULLs is none of the relation's, and may ask for a group, too */
	if (!finds_relation((Node *) level->query->jointree, varno, &nulled) || nulled)
		return nullptr;
	if (rte->rtekind != RTE_RELATION || rte->tablesample != nullptr ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW && rte->relkind != RELKIND_PARTITIONED_TABLE))
		return nullptr;
	foreach(lc, level->conditions)
	{
		if (is_of_relation(static_cast<Node *>(lfirst(lc)), varno))
			quals = lappend(quals, copyObjectImpl(lfirst(lc)));
	}
	if (quals == NIL)
		return nullptr;
	for (int i = 0; i < list_length(equal); i++)
	{
		const OpExpr *op = static_cast<const OpExpr *>(list_nth(equal, i));
		Node	   *key = static_cast<Node *>(list_nth(outer, i));
		bool		inner_first = ::equal(linitial(op->args), list_nth(inner, i));
		Oid			opno = inner_first ? op->opno : get_commutator(op->opno);
		int			resno = list_length(query->targetList) + 1;
		Param	   *param;

		if (!is_of_relation(key, varno) || !OidIsValid(opno))
			continue;
		param = makeNode(Param);
		param->paramkind = PARAM_SUBLINK;
		param->paramid = resno;
		param->paramtype = exprType(key);
		param->paramtypmod = exprTypmod(key);
		param->paramcollid = exprCollation(key);
		param->location = -1;
		tests = lappend(tests, make_opclause(opno, BOOLOID, false, (Expr *) copyObjectImpl(list_nth(inner, i)), (Expr *) param, InvalidOid, op->inputcollid));
		query->targetList = lappend(query->targetList, makeTargetEntry((Expr *) copyObjectImpl(key), resno, psprintf("key%d", resno), false));
	}
	if (tests == NIL)
		return nullptr;
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	compat_copy_relation(level->query, rte, query);
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), (Node *) make_ands_explicit(quals));
	query->hasSubLinks = checkExprHasSubLink((Node *) quals);
	ChangeVarNodes((Node *) query->jointree->quals, varno, 1, 0);
	ChangeVarNodes((Node *) query->targetList, varno, 1, 0);
	member->subLinkType = ANY_SUBLINK;
	member->testexpr = (Node *) make_ands_explicit(tests);
	member->subselect = (Node *) query;
	member->location = -1;
	return (Node *) member;
}

List *
reducing_conditions(const RewriteLevel *level, List *equal, List *inner, List *outer)
{
	List	   *found = NIL;
	Bitmapset  *rest = nullptr;
	int			varno;

	for (int i = 0; i < list_length(equal); i++)
	{
		Node	   *key = static_cast<Node *>(list_nth(outer, i));
		Node	   *member = !IsA(key, Var) ? nullptr
			: member_condition(level, static_cast<const OpExpr *>(list_nth(equal, i)), static_cast<Node *>(list_nth(inner, i)), (const Var *) key);

		if (member != nullptr)
			found = lappend(found, member);
		else if (bms_get_singleton_member(pull_varnos(nullptr, key), &varno))
			rest = bms_add_member(rest, varno);
	}
	varno = -1;
	while (found == NIL && (varno = bms_next_member(rest, varno)) >= 0)
	{
		Node	   *member = relation_condition(level, varno, equal, inner, outer);

		if (member != nullptr)
			found = lappend(found, member);
	}
	return found;
}

}  // namespace gpuvm
