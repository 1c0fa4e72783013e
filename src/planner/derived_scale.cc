/*
 * derived_scale.cc: how many decimals the numerics of a plan's rows will have, as far as that is known
 * before it runs: only then are they integers for a program. What is said here is looked at again, value by value.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <cmath>

#include "compiler/compile.h"
#include "pg/numeric_scaled.h"
#include "planner/derived.h"
#include "store/registry.h"

namespace gpuvm {

/*
 * A quotient is shown with 16 digits at least, of which PostgreSQL may guess four or eight too few before the point (select_div_scale): where it is
 * 0.0001 or more it has no more decimals.
 */
constexpr int QUOTIENT_SCALE = 24;

/* 2^63 with so few decimals is more than halves hold with QUOTIENT_SCALE of them (2^124). */
constexpr int FEW_DECIMALS = 5;

constexpr DecimalScale UNKNOWN = {-1, false, 0, false};

static DecimalScale scale_of(PlannerInfo *root, Node *expr, int depth);
static DecimalScale scale_of_output(PlannerInfo *root, AttrNumber attnum, int depth);
static DecimalScale scale_of_any(PlannerInfo *root, List *exprs, int depth);

/* Does the largest value, where that is known, or a number of so many decimals, take more than 64 bits? */
static bool
is_too_large(const DecimalScale &scale)
{
	return scale.scale > SCALED_MAX_SCALE || (std::isfinite(scale.most) && scale.most * std::pow(10.0, Max(scale.scale, 0)) > 9e18);
}

/* Either of them: the values may be of one or the other. */
static DecimalScale
either(const DecimalScale &a, const DecimalScale &b)
{
	if (a.scale < 0 || b.scale < 0)
		return UNKNOWN;
	return DecimalScale{Max(a.scale, b.scale), a.exact && b.exact && a.scale == b.scale, Max(a.most, b.most), a.wide || b.wide, a.large || b.large};
}

static DecimalScale
scale_of_const(const Const *con)
{
	int			scale = con->constisnull ? -1 : numeric_display_scale(DatumGetPointer(con->constvalue));
	int64		value;

	if (scale < 0 || scale > SCALED_MAX_SCALE || !numeric_at_scale(con->constvalue, scale, &value))
		return UNKNOWN;
	return DecimalScale{scale, true, std::fabs(static_cast<double>(value)) / std::pow(10.0, scale), false};
}

/* A column of the query's own relation. */
static DecimalScale
scale_of_table(Oid relid, const Var *var)
{
	ImportedTable *table = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
	int			prescribed = numeric_typmod_scale(var->vartypmod);
	DecimalScale scale = {prescribed, true, INFINITY, false};

	if (registry_describe(relid, table))
	{
		const int	i = imported_column(table, var->varattno);

		/* references are made of what 64 bits do not hold, and so may be what is computed of it */
		scale.wide = i >= 0 && table->variable[i];
		if (i >= 0 && table->scales[i] >= 0)
			scale = DecimalScale{table->scales[i], true, table->wide[i] ? INFINITY : table->greatest[i] / std::pow(10.0, table->scales[i]), table->wide[i],
				table->wide[i] && !table->special[i]};
	}
	pfree(table);
	return scale;
}

/* A column of the rows of each arm of a set operation. */
static DecimalScale
scale_of_arms(PlannerInfo *root, const Node *node, AttrNumber attnum, int depth)
{
	const SetOperationStmt *set = (const SetOperationStmt *) node;
	const RelOptInfo *arm;

	if (IsA(node, SetOperationStmt))
		return either(scale_of_arms(root, set->larg, attnum, depth), scale_of_arms(root, set->rarg, attnum, depth));
	arm = root->simple_rel_array[((const RangeTblRef *) node)->rtindex];
	return arm == nullptr ? UNKNOWN : scale_of_output(arm->subroot, attnum, depth);
}

/* Of each arm of UNION ALL, or partition, that is a relation of the query level. */
static DecimalScale
scale_of_members(PlannerInfo *root, const Var *var, int depth)
{
	List	   *columns = NIL;

	/* the list of a planner that has made its plan may be empty (share_planners) */
	for (int i = 1; root->append_rel_array != nullptr && i < root->simple_rel_array_size; i++)
	{
		const AppendRelInfo *arm = root->append_rel_array[i];

		if (arm != nullptr && static_cast<int>(arm->parent_relid) == static_cast<int>(var->varno) &&
			var->varattno <= list_length(arm->translated_vars))
			columns = lappend(columns, list_nth(arm->translated_vars, var->varattno - 1));
	}
	return columns == NIL ? UNKNOWN : scale_of_any(root, columns, depth);
}

/* A column of what another planner has planned. */
static DecimalScale
scale_of_output(PlannerInfo *root, AttrNumber attnum, int depth)
{
	ListCell   *lc;

	if (root == nullptr)
		return UNKNOWN;
	if (root->parse->setOperations != nullptr)
		return scale_of_arms(root, root->parse->setOperations, attnum, depth);
	foreach(lc, root->processed_tlist)
	{
		const TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (tle->resno == attnum && !tle->resjunk)
			return scale_of(root, (Node *) tle->expr, depth);
	}
	return UNKNOWN;
}

int
cte_plan_number(PlannerInfo *root, const RangeTblEntry *rte)
{
	ListCell   *lc;

	for (Index level = rte->ctelevelsup; level > 0 && root != nullptr; level--)
		root = root->parent_root;
	if (root == nullptr || rte->self_reference)
		return 0;
	foreach(lc, root->parse->cteList)
	{
		int			at = foreach_current_index(lc);

		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, rte->ctename) != 0)
			continue;
		if (lfirst_node(CommonTableExpr, lc)->cterecursive || at >= list_length(root->cte_plan_ids))
			return 0;
		return Max(list_nth_int(root->cte_plan_ids, at), 0);
	}
	return 0;
}

/* The planner of the CTE that the relation reads. */
static PlannerInfo *
cte_root(PlannerInfo *root, const RangeTblEntry *rte)
{
	int			plan = cte_plan_number(root, rte);

	return plan == 0 ? nullptr : static_cast<PlannerInfo *>(list_nth(root->glob->subroots, plan - 1));
}

bool
is_stored_by_value(PlannerInfo *root, const Var *var)
{
	for (int depth = 0; depth < 100; depth++)
	{
		const RangeTblEntry *rte;
		ImportedTable *table;
		const Var  *below = nullptr;
		bool		variable = false;
		ListCell   *lc;

		if (root == nullptr || !IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0 || var->varno < 1 ||
			static_cast<int>(var->varno) >= root->simple_rel_array_size || root->simple_rel_array[var->varno] == nullptr)
			return false;
		rte = planner_rt_fetch(var->varno, root);
		if (rte->rtekind == RTE_RELATION)
		{
			table = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
			if (registry_describe(rte->relid, table))
			{
				const int	column = imported_column(table, var->varattno);

				variable = column >= 0 && table->variable[column];
			}
			pfree(table);
			return variable;
		}
		if (rte->rtekind != RTE_SUBQUERY && rte->rtekind != RTE_CTE)
			return false;
		root = rte->rtekind == RTE_SUBQUERY ? root->simple_rel_array[var->varno]->subroot : cte_root(root, rte);
		if (root == nullptr || root->parse->setOperations != nullptr)
			return false;
		foreach(lc, root->processed_tlist)
		{
			const TargetEntry *tle = lfirst_node(TargetEntry, lc);

			if (tle->resno == var->varattno && !tle->resjunk)
				below = (const Var *) tle->expr;
		}
		if (below == nullptr)
			return false;
		var = below;
	}
	return false;
}

static DecimalScale
scale_of_values(PlannerInfo *root, const RangeTblEntry *rte, AttrNumber attnum, int depth)
{
	List	   *values = NIL;
	ListCell   *lc;

	foreach(lc, rte->values_lists)
		values = lappend(values, list_nth(lfirst_node(List, lc), attnum - 1));
	return scale_of_any(root, values, depth);
}

static DecimalScale
scale_of_column(PlannerInfo *root, const Var *var, int depth)
{
	RelOptInfo *rel;
	const RangeTblEntry *rte;

	if (var->varlevelsup != 0 || var->varattno <= 0 || var->varno < 1 || static_cast<int>(var->varno) >= root->simple_rel_array_size)
		return UNKNOWN;
	rel = root->simple_rel_array[var->varno];
	rte = planner_rt_fetch(var->varno, root);
	if (rel == nullptr)
		return UNKNOWN;
	switch (rte->rtekind)
	{
		/* what is imported are the partitions */
		case RTE_RELATION: return rte->inh ? scale_of_members(root, var, depth) : scale_of_table(rte->relid, var);
		case RTE_SUBQUERY: return rel->subroot == nullptr && rte->inh ? scale_of_members(root, var, depth) : scale_of_output(rel->subroot, var->varattno, depth);
		case RTE_CTE: return scale_of_output(cte_root(root, rte), var->varattno, depth);
		case RTE_VALUES: return scale_of_values(root, rte, var->varattno, depth);
		default: return UNKNOWN;
	}
}

/* Of round(): as many decimals as that says, if there are any numbers. What has few decimals is short, as a rule. */
static DecimalScale
rounded(const DecimalScale &scale, int digits)
{
	return DecimalScale{digits, true, scale.scale < 0 ? INFINITY : scale.most + 1, (scale.wide && scale.scale <= SCALED_MAX_SCALE) || scale.large, scale.large};
}

/* Of numbers that leave no room for its decimals PostgreSQL makes it: programs would give way to that when they have run. */
static DecimalScale
quotient(const DecimalScale &scale)
{
	if (scale.scale < 0 || (scale.large && scale.scale <= FEW_DECIMALS))
		return DecimalScale{-1, false, 0, false, scale.large};
	return DecimalScale{Max(scale.scale, QUOTIENT_SCALE), false, INFINITY, true};
}

static DecimalScale
scale_of_call(PlannerInfo *root, Oid function, List *args, int depth)
{
	DecimalScale a;
	DecimalScale b;
	const Const *digits;

	switch (function)
	{
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
			return DecimalScale{0, true, INFINITY, false};
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
			return rounded(scale_of(root, static_cast<Node *>(linitial(args)), depth), 0);
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
			digits = static_cast<const Const *>(lsecond(args));
			if (!IsA(digits, Const) || digits->constisnull)
				return UNKNOWN;
			return rounded(scale_of(root, static_cast<Node *>(linitial(args)), depth), Max(DatumGetInt32(digits->constvalue), 0));
		case F_ABS_NUMERIC:
		case F_NUMERIC_ABS:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_UPLUS:
			return scale_of(root, static_cast<Node *>(linitial(args)), depth);
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_DIV:
			a = scale_of(root, static_cast<Node *>(linitial(args)), depth);
			b = scale_of(root, static_cast<Node *>(lsecond(args)), depth);
			if (a.scale < 0 || b.scale < 0)
				return UNKNOWN;
			if (function == F_NUMERIC_DIV)
				return quotient(either(a, b));
			/* 2^126 is too much, too */
			if (function == F_NUMERIC_MUL && a.large && b.large)
				return DecimalScale{-1, false, 0, false, true};
			if (function == F_NUMERIC_MUL)
				return DecimalScale{a.scale + b.scale, a.exact && b.exact, a.most * b.most, a.wide || b.wide};
			return DecimalScale{Max(a.scale, b.scale), (a.exact && b.exact) || (a.exact && a.scale > b.scale) || (b.exact && b.scale > a.scale), a.most + b.most, a.wide || b.wide,
				a.large || b.large};
		default:
			return UNKNOWN;
	}
}

/* `args` are expressions. */
static DecimalScale
scale_of_aggregate(PlannerInfo *root, Oid aggregate, List *args, int depth)
{
	DecimalScale scale;

	switch (aggregate)
	{
		case F_SUM_INT8:
			return DecimalScale{0, true, INFINITY, false};
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
			return quotient(DecimalScale{0, true, INFINITY, false});
		case F_AVG_NUMERIC:
			return quotient(scale_of(root, static_cast<Node *>(linitial(args)), depth));
		case F_MIN_NUMERIC:
		case F_MAX_NUMERIC:
			return scale_of(root, static_cast<Node *>(linitial(args)), depth);
		case F_SUM_NUMERIC:
			scale = scale_of(root, static_cast<Node *>(linitial(args)), depth);
			/* of one row, and so of many */
			scale.wide = scale.wide || is_too_large(scale);
			scale.most = INFINITY;
			return scale;
		default:
			return UNKNOWN;
	}
}

/* Arguments of an aggregate that are not only sorted by. */
static List *
arguments(const Aggref *agg)
{
	List	   *args = NIL;
	ListCell   *lc;

	foreach(lc, agg->args)
	{
		if (!lfirst_node(TargetEntry, lc)->resjunk)
			args = lappend(args, lfirst_node(TargetEntry, lc)->expr);
	}
	return args;
}

/* Of several expressions, each of which the value may be. NULL says nothing. */
static DecimalScale
scale_of_any(PlannerInfo *root, List *exprs, int depth)
{
	DecimalScale scale = UNKNOWN;
	bool		first = true;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		Node	   *expr = static_cast<Node *>(lfirst(lc));
		DecimalScale one;

		if (expr == nullptr || (IsA(expr, Const) && ((const Const *) expr)->constisnull))
			continue;
		one = scale_of(root, expr, depth);
		scale = first ? one : either(scale, one);
		first = false;
	}
	return scale;
}

static DecimalScale
scale_of(PlannerInfo *root, Node *expr, int depth)
{
	DecimalScale scale = UNKNOWN;

	if (expr == nullptr || getBaseType(exprType(expr)) != NUMERICOID || depth > 100)
		return UNKNOWN;
	depth++;
	switch (nodeTag(expr))
	{
		case T_Const:
			return scale_of_const((const Const *) expr);
		case T_Var:
			return scale_of_column(root, (const Var *) expr, depth);
		case T_RelabelType:
			return scale_of(root, (Node *) ((RelabelType *) expr)->arg, depth);
		case T_CoerceToDomain:
			return scale_of(root, (Node *) ((CoerceToDomain *) expr)->arg, depth);
		case T_Aggref:
			return scale_of_aggregate(root, ((const Aggref *) expr)->aggfnoid, arguments((const Aggref *) expr), depth);
		case T_WindowFunc:
			return scale_of_aggregate(root, ((const WindowFunc *) expr)->winfnoid, ((const WindowFunc *) expr)->args, depth);
		case T_OpExpr:
			return scale_of_call(root, get_opcode(((OpExpr *) expr)->opno), ((OpExpr *) expr)->args, depth);
		case T_FuncExpr:
			scale.scale = numeric_typmod_scale(exprTypmod(expr));
			if (scale.scale >= 0)
				return DecimalScale{scale.scale, true, INFINITY, false};
			return scale_of_call(root, ((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args, depth);
		default:
			return scale_of_any(root, arms_of((const Expr *) expr), depth);
	}
}

DecimalScale
decimal_scale(PlannerInfo *root, const Var *var)
{
	DecimalScale scale = scale_of_column(root, var, 0);
	int			prescribed = numeric_typmod_scale(var->vartypmod);

	if (scale.scale < 0 && prescribed >= 0)
		scale = DecimalScale{prescribed, true, INFINITY, false};
	scale.wide = scale.wide || is_too_large(scale);
	return scale.scale > SCALED_MAX_WIDE_SCALE ? UNKNOWN : scale;
}

}  // namespace gpuvm
