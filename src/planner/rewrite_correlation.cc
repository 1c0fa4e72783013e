/* rewrite_correlation.cc: by which equalities a subquery depends on the level around it. */
#include "pg/pg.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

/* btree's operator family of floats has no name in PostgreSQL's headers */
constexpr Oid FLOAT_FAMILY = 1970;

bool
is_group_equality(const OpExpr *op, Node *inner)
{
	Oid			eqop;
	bool		hashable;

	get_sort_group_operators(exprType(inner), false, false, false, nullptr, &eqop, nullptr, &hashable);
	return OidIsValid(eqop) && hashable && op->inputcollid == exprCollation(inner) &&
		(op->opno == eqop || get_op_opfamily_strategy(op->opno, INTEGER_BTREE_FAM_OID) == BTEqualStrategyNumber ||
		 get_op_opfamily_strategy(op->opno, FLOAT_FAMILY) == BTEqualStrategyNumber) &&
		op_mergejoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args)))) &&
		op_hashjoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args)))) &&
		is_quiet_function(get_opcode(op->opno), op->args, op->inputcollid);
}

/* Takes a condition that reads the outer level: an equality with it, or the subquery stays. */
static bool
take_equality(const RewriteLevel *level, Correlation *by, Node *condition)
{
	OpExpr	   *op = (OpExpr *) condition;
	Node	   *sides[2];
	int			inner;
	LevelsRead	read[2];

	if (!IsA(condition, OpExpr) || list_length(op->args) != 2)
		return false;
	for (int i = 0; i < 2; i++)
	{
		sides[i] = static_cast<Node *>(list_nth(op->args, i));
		read[i] = levels_read(sides[i]);
		if (read[i].further || (read[i].own && read[i].outer) || checkExprHasSubLink(sides[i]) || !is_quiet(sides[i]))
			return false;
	}
	inner = read[0].own ? 0 : 1;
	if (!read[inner].own || !read[1 - inner].outer || !is_group_equality(op, sides[inner]))
		return false;
	sides[1 - inner] = static_cast<Node *>(copyObjectImpl(sides[1 - inner]));
	IncrementVarSublevelsUp(sides[1 - inner], -1, 1);
	if (reads_loud(level->query, sides[1 - inner]))
		return false;
	by->equal = lappend(by->equal, op);
	by->inner = lappend(by->inner, sides[inner]);
	by->outer = lappend(by->outer, sides[1 - inner]);
	return true;
}

bool
split_correlation(const RewriteLevel *level, Query *body, Correlation *by)
{
	LevelsRead	read;
	ListCell   *lc;

	*by = Correlation{};
	foreach(lc, conjuncts(body->jointree->quals))
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		read = levels_read(condition);
		if (read.outer || read.further)
		{
			if (!take_equality(level, by, condition))
				return false;
		}
		else
			by->stays = lappend(by->stays, condition);
	}
	/* what is left must not know of the outer level */
	read = levels_read((Node *) body->jointree->fromlist);
	if (by->equal == NIL || read.outer || read.further)
		return false;
	foreach(lc, body->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		read = rte->rtekind == RTE_SUBQUERY ? levels_read_by(rte->subquery) : levels_read((Node *) rte->joinaliasvars);
		/* of a subquery the outer level is this one, and it is none of LATERAL */
		if (read.outer || read.further)
			return false;
	}
	return true;
}

}  // namespace gpuvm
