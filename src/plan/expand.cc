/*
 * expand.cc: what no program does, as joins and groups that programs do: mark joins, joins that raise if a row meets more than
 * one, and values of subqueries of one row.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "parser/parse_func.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include "plan/expand.h"
#include "plan/facts.h"
#include "plan/normalise.h"
#include "plan/passes.h"

namespace gpuvm {

/* bigint > bigint, bigint < bigint, bigint = bigint and bigint / bigint have no symbols. */
constexpr Oid INT8_GREATER = 413;
constexpr Oid INT8_LESS = 412;
constexpr Oid INT8_EQUAL = 410;
constexpr Oid INT8_DIVIDE = 687;

struct Expansion
{
	GpuvmRel   *statement;
	List	   *shared;			/* definitions that were made, and stand before the one that reads them */
};

/* -- expressions --------------------------------------------------------------------------------- */

static TargetEntry *
new_column(Expansion *expansion, Node *expr, const char *name)
{
	return makeTargetEntry((Expr *) expr, rel_next_number(expansion->statement), pstrdup(name), false);
}

Node *
rel_null_test(Node *expr, NullTestType type)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = (Expr *) expr;
	test->nulltesttype = type;
	test->location = -1;
	return (Node *) test;
}

static Node *
is_there(const TargetEntry *column)
{
	return rel_null_test((Node *) rel_var(column), IS_NOT_NULL);
}

static Node *
is_null(Node *expr)
{
	return rel_null_test(expr, IS_NULL);
}

static Node *
operation(Oid op, Oid type, Node *left, Node *right)
{
	OpExpr	   *expr = (OpExpr *) make_opclause(op, type, false, (Expr *) left, (Expr *) right, InvalidOid, InvalidOid);

	set_opfuncid(expr);
	return (Node *) expr;
}

CaseWhen *
rel_when(Node *condition, Node *result)
{
	CaseWhen   *arm = makeNode(CaseWhen);

	arm->expr = (Expr *) condition;
	arm->result = (Expr *) result;
	arm->location = -1;
	return arm;
}

Node *
rel_case(List *arms, Node *otherwise)
{
	const Node *first = (const Node *) linitial_node(CaseWhen, arms)->result;
	CaseExpr   *expr = makeNode(CaseExpr);

	expr->casetype = exprType(first);
	expr->casecollid = exprCollation(first);
	expr->args = arms;
	expr->defresult = (Expr *) (otherwise != nullptr ? otherwise
								: (Node *) makeNullConst(expr->casetype, exprTypmod(first), expr->casecollid));
	expr->location = -1;
	return (Node *) expr;
}

static Aggref *
aggregate_of(Oid function, Node *argument)
{
	Aggref	   *aggregate = makeNode(Aggref);

	aggregate->aggfnoid = function;
	aggregate->aggtype = aggregate->aggtranstype = argument == nullptr || function == F_COUNT_ANY ? INT8OID : exprType(argument);
	aggregate->aggkind = AGGKIND_NORMAL;
	aggregate->aggsplit = AGGSPLIT_SIMPLE;
	aggregate->aggno = aggregate->aggtransno = -1;
	aggregate->location = -1;
	aggregate->aggstar = argument == nullptr;
	if (argument == nullptr)
		return aggregate;
	aggregate->inputcollid = exprCollation(argument);
	aggregate->aggcollid = function == F_COUNT_ANY ? InvalidOid : aggregate->inputcollid;
	aggregate->aggargtypes = list_make1_oid(exprType(argument));
	aggregate->args = list_make1(makeTargetEntry((Expr *) argument, 1, nullptr, false));
	return aggregate;
}

/* What is the value of the one row, of any number of rows: the least; NULL: the type has none. */
static Aggref *
value_of_rows(const TargetEntry *column)
{
	Node	   *value = (Node *) rel_var(column);
	Oid			type = exprType(value);
	Oid			function;

	if (type == VARCHAROID)
	{
		value = (Node *) makeRelabelType((Expr *) value, TEXTOID, -1, exprCollation(value), COERCE_IMPLICIT_CAST);
		type = TEXTOID;
	}
	function = LookupFuncName(list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup(type == BOOLOID ? "bool_and" : "min"))), 1, &type, true);
	return OidIsValid(function) && get_func_rettype(function) == type ? aggregate_of(function, value) : nullptr;
}

/* The value in its own type. */
static Node *
as_before(const TargetEntry *made, const TargetEntry *before)
{
	Node	   *value = (Node *) rel_var(made);
	const Node *old = (const Node *) before->expr;

	if (exprType(value) == exprType(old))
		return value;
	return (Node *) makeRelabelType((Expr *) value, exprType(old), exprTypmod(old), exprCollation(old), COERCE_IMPLICIT_CAST);
}

Node *
rel_raise_if(Node *condition)
{
	Node	   *divisor = rel_case(list_make1(rel_when(condition, rel_bigint(0))), rel_bigint(1));

	return operation(INT8_EQUAL, BOOLOID, operation(INT8_DIVIDE, INT8OID, rel_bigint(1), divisor), rel_bigint(1));
}

/* True; of more than one row an error is flagged. */
static Node *
at_most_one(const TargetEntry *count)
{
	return rel_raise_if(operation(INT8_GREATER, BOOLOID, (Node *) rel_var(count), rel_bigint(1)));
}

/* -- equalities of both sides ---------------------------------------------------------------------- */

/* left = right, whose right side becomes the column of a group. */
struct Equality
{
	OpExpr	   *op;
	int			side;			/* the argument that is of the right input */
};

static Node *
argument_of(const Equality *e, int side)
{
	return static_cast<Node *>(list_nth(e->op->args, side));
}

/* Rows that are equal by it are of one group of the value: then groups and it agree. */
static bool
groups_agree(const OpExpr *op, const Node *value)
{
	const TypeCacheEntry *type = lookup_type_cache(exprType(value), TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR | TYPECACHE_BTREE_OPFAMILY);

	if (!OidIsValid(type->eq_opr) || !OidIsValid(type->lt_opr) || !OidIsValid(type->btree_opf) ||
		get_op_opfamily_strategy(op->opno, type->btree_opf) != BTEqualStrategyNumber)
		return false;
	return (!OidIsValid(op->inputcollid) || get_collation_isdeterministic(op->inputcollid)) &&
		(!OidIsValid(exprCollation(value)) || get_collation_isdeterministic(exprCollation(value)));
}

static Equality *
equality_of(Node *expr, const Bitmapset *right)
{
	OpExpr	   *op = (OpExpr *) expr;

	if (!IsA(expr, OpExpr) || list_length(op->args) != 2)
		return nullptr;
	for (int side = 0; side < 2; side++)
	{
		Equality	e = {op, side};
		Bitmapset  *inner = rel_columns_in(argument_of(&e, side));

		if (bms_is_empty(inner) || !bms_is_subset(inner, right) || bms_overlap(rel_columns_in(argument_of(&e, 1 - side)), right) ||
			!groups_agree(op, argument_of(&e, side)))
			continue;
		return static_cast<Equality *>(memcpy(palloc(sizeof(Equality)), &e, sizeof(Equality)));
	}
	return nullptr;
}

/* The condition with the column for its right side. */
static Node *
equal_to_column(const Equality *e, const TargetEntry *column)
{
	OpExpr	   *op = static_cast<OpExpr *>(copyObjectImpl(e->op));

	lfirst(list_nth_cell(op->args, e->side)) = rel_var(column);
	return (Node *) op;
}

static SortGroupClause *
group_key(const TargetEntry *column)
{
	const TypeCacheEntry *type = lookup_type_cache(exprType((Node *) column->expr), TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR);
	SortGroupClause *key = makeNode(SortGroupClause);

	key->tleSortGroupRef = column->resno;
	key->eqop = type->eq_opr;
	key->sortop = type->lt_opr;
	key->hashable = op_hashjoinable(type->eq_opr, exprType((Node *) column->expr));
	return key;
}

/* -- the right side ---------------------------------------------------------------------------------- */

/* What it takes to find the rows of the right input that a row of the left one meets. */
struct Meeting
{
	List	   *equalities;		/* that must hold */
	List	   *own;			/* conditions on the right input's rows alone */
};

/* False: it is anything else. */
static bool
add_condition(Meeting *meeting, Node *condition, const Bitmapset *right)
{
	Equality   *e = equality_of(condition, right);

	if (e != nullptr)
		meeting->equalities = lappend(meeting->equalities, e);
	else if (bms_is_subset(rel_columns_in(condition), right))
		meeting->own = lappend(meeting->own, condition);
	else
		return false;
	return true;
}

/* The rows that conditions leave, with the right sides of equalities as columns. */
static GpuvmRel *
rows_with_keys(Expansion *expansion, GpuvmRel *right, const Meeting *meeting, const List *equalities, List **columns)
{
	GpuvmRel   *project;
	ListCell   *lc;

	if (meeting->own != NIL)
	{
		right = rel_make(REL_FILTER, list_make1(right));
		right->quals = meeting->own;
	}
	foreach(lc, equalities)
	{
		const Equality *e = static_cast<const Equality *>(lfirst(lc));

		*columns = lappend(*columns, new_column(expansion, static_cast<Node *>(copyObjectImpl(argument_of(e, e->side))), "key"));
	}
	project = rel_make(REL_PROJECT, list_make1(right));
	project->columns = *columns;
	return project;
}

static GpuvmRel *
groups_by(GpuvmRel *rows, const List *keys)
{
	GpuvmRel   *group = rel_make(REL_GROUP, list_make1(rows));
	ListCell   *lc;

	foreach(lc, keys)
	{
		group->keys = lappend(group->keys, group_key(lfirst_node(TargetEntry, lc)));
		group->columns = lappend(group->columns, rel_hand_on(lfirst_node(TargetEntry, lc)));
	}
	return group;
}

static GpuvmRel *
join_groups(GpuvmRel *left, GpuvmRel *groups, RelJoin kind, const List *equalities, const List *columns)
{
	GpuvmRel   *join = rel_make(REL_JOIN, list_make2(left, groups));
	ListCell   *lc;

	join->join = kind;
	foreach(lc, equalities)
		join->quals = lappend(join->quals, equal_to_column(static_cast<const Equality *>(lfirst(lc)), list_nth_node(TargetEntry, columns, foreach_current_index(lc))));
	return join;
}

/* The rows once more, as columns of their own. */
static GpuvmRel *
read_shared(Expansion *expansion, const GpuvmRel *shared, List **columns)
{
	GpuvmRel   *set = rel_make(REL_SET);
	ListCell   *lc;

	set->id = shared->id;
	*columns = NIL;
	foreach(lc, shared->columns)
		*columns = lappend(*columns, new_column(expansion, (Node *) rel_var(lfirst_node(TargetEntry, lc)), "key"));
	set->columns = *columns;
	return set;
}

static GpuvmRel *
share(Expansion *expansion, GpuvmRel *rows)
{
	GpuvmRel   *shared = rel_share(rows, list_concat_copy(expansion->statement->definitions, expansion->shared));

	expansion->shared = lappend(expansion->shared, shared);
	return shared;
}

/* -- mark joins ------------------------------------------------------------------------------------- */

/*
 * What IN says of a row of the left: true where the value is among the keys; of no rows false; null where it is null itself or a null
 * is among the rows, which are counted by what else must hold.
 */
static Node *
value_of_in(const Equality *test, const TargetEntry *found, const TargetEntry *rows, const TargetEntry *values)
{
	Node	   *none = (Node *) makeBoolExpr(OR_EXPR, list_make2(is_null((Node *) rel_var(rows)), operation(INT8_EQUAL, BOOLOID, (Node *) rel_var(rows), rel_bigint(0))), -1);
	Node	   *unknown = (Node *) makeBoolExpr(OR_EXPR, list_make2(is_null(static_cast<Node *>(copyObjectImpl(argument_of(test, 1 - test->side)))),
																  operation(INT8_LESS, BOOLOID, (Node *) rel_var(values), (Node *) rel_var(rows))), -1);

	return rel_case(list_make3(rel_when(is_there(found), makeBoolConst(true, false)),
							   rel_when(none, makeBoolConst(false, false)),
							   rel_when(unknown, makeBoolConst(false, true))),
					makeBoolConst(false, false));
}

/* The parts of a mark's expression: equalities in IS TRUE say which rows it is about, another one may say what is asked of them (add_to_mark()). */
static bool
read_mark(const TargetEntry *mark, const Bitmapset *right, Meeting *meeting, Equality **test)
{
	ListCell   *lc;

	foreach(lc, make_ands_implicit(mark->expr))
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		if (IsA(condition, BooleanTest) && ((BooleanTest *) condition)->booltesttype == IS_TRUE)
		{
			if (!add_condition(meeting, (Node *) ((BooleanTest *) condition)->arg, right))
				return false;
			continue;
		}
		if (*test != nullptr || (*test = equality_of(condition, right)) == nullptr)
			return false;
	}
	return meeting->equalities != NIL || *test != nullptr;
}

static void
expand_mark(GpuvmRel **cell, Expansion *expansion)
{
	GpuvmRel   *join = *cell;
	const TargetEntry *mark = rel_mark(join);
	GpuvmRel   *rows = rel_input(join, 1);
	GpuvmRel   *result;
	Meeting		meeting = {};
	Equality   *test = nullptr;
	List	   *equalities;
	List	   *columns = NIL;
	Node	   *value;

	if (rel_is_dependent(join) || join->quals != NIL || !read_mark(mark, rel_visible(rows), &meeting, &test))
		return;
	equalities = test != nullptr ? lappend(list_copy(meeting.equalities), test) : meeting.equalities;
	rows = rows_with_keys(expansion, rows, &meeting, equalities, &columns);
	if (test == nullptr)
	{
		result = join_groups(rel_input(join), groups_by(rows, columns), RELJOIN_LEFT, equalities, columns);
		value = is_there(linitial_node(TargetEntry, columns));
	}
	else
	{
		const GpuvmRel *shared = share(expansion, rows);
		TargetEntry *found;
		TargetEntry *nrows;
		TargetEntry *nvalues;
		GpuvmRel   *counts;

		rows = read_shared(expansion, shared, &columns);
		found = llast_node(TargetEntry, columns);
		result = join_groups(rel_input(join), groups_by(rows, columns), RELJOIN_LEFT, equalities, columns);
		rows = read_shared(expansion, shared, &columns);
		nrows = new_column(expansion, (Node *) aggregate_of(F_COUNT_, nullptr), "rows");
		nvalues = new_column(expansion, (Node *) aggregate_of(F_COUNT_ANY, (Node *) rel_var(llast_node(TargetEntry, columns))), "values");
		counts = groups_by(rows, list_truncate(list_copy(columns), list_length(columns) - 1));
		counts->columns = lappend(lappend(counts->columns, nrows), nvalues);
		result = join_groups(result, counts, meeting.equalities != NIL ? RELJOIN_LEFT : RELJOIN_INNER, meeting.equalities, columns);
		value = value_of_in(test, found, nrows, nvalues);
	}
	*cell = rel_make(REL_PROJECT, list_make1(result), list_make1(makeTargetEntry((Expr *) value, mark->resno, mark->resname, false)));
}

/* -- joins of at most one row -------------------------------------------------------------------------- */

static void
expand_single(GpuvmRel **cell, Expansion *expansion)
{
	GpuvmRel   *join = *cell;
	GpuvmRel   *right = rel_input(join, 1);
	const Bitmapset *visible = rel_visible(right);
	Meeting		meeting = {};
	GpuvmRel   *groups;
	GpuvmRel   *filter;
	GpuvmRel   *project = rel_make(REL_PROJECT);
	TargetEntry *count;
	List	   *columns = NIL;
	List	   *made = NIL;
	ListCell   *lc;

	if (rel_is_dependent(join))
		return;
	foreach(lc, join->quals)
	{
		if (!add_condition(&meeting, static_cast<Node *>(lfirst(lc)), visible))
			return;
	}
	foreach(lc, join->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		Aggref	   *value;
		TargetEntry *to;

		if (!bms_is_member(column->resno, visible))
			continue;
		value = value_of_rows(column);
		if (value == nullptr)
			return;
		to = new_column(expansion, (Node *) value, column->resname);
		made = lappend(made, to);
		project->columns = lappend(project->columns, makeTargetEntry((Expr *) as_before(to, column), column->resno, column->resname, false));
	}
	count = new_column(expansion, (Node *) aggregate_of(F_COUNT_, nullptr), "rows");
	groups = groups_by(rows_with_keys(expansion, right, &meeting, meeting.equalities, &columns), columns);
	groups->columns = lappend(list_concat(groups->columns, made), count);
	filter = rel_make(REL_FILTER, list_make1(join_groups(rel_input(join), groups, RELJOIN_LEFT, meeting.equalities, columns)));
	filter->quals = list_make1(at_most_one(count));
	project->inputs = list_make1(filter);
	*cell = project;
}

/* -- values ------------------------------------------------------------------------------------------- */

/* The rows of a Shared that a Set reads; NULL: it is no Set. */
static const GpuvmRel *
rows_of_set(const List *definitions, const GpuvmRel *set)
{
	ListCell   *lc;

	foreach(lc, set->op == REL_SET ? definitions : NIL)
	{
		const GpuvmRel *definition = static_cast<const GpuvmRel *>(lfirst(lc));

		if (definition->op == REL_SHARED && definition->id == set->id)
			return rel_input(definition);
	}
	return nullptr;
}

bool
rel_is_one_group(const List *definitions, const GpuvmRel *rel)
{
	while (rel != nullptr && rel->op != REL_GROUP)
		rel = rel->op == REL_PROJECT ? rel_input(rel) : rows_of_set(definitions, rel);
	return rel != nullptr && rel->keys == NIL && rel->sets == NIL;
}

/* EXISTS asks for one row, and nothing of it. */
static bool
is_exists(const GpuvmRel *bound)
{
	const GpuvmRel *project = rel_input(bound);
	const TargetEntry *column = project->op != REL_PROJECT ? nullptr : rel_find(project, linitial_node(TargetEntry, bound->columns)->resno);

	return column != nullptr && IsA(column->expr, Const) && rel_input(project)->op == REL_SORT;
}

/*
 * The group of the rows, if its keys, which nothing else reads, have one value each; else NULL. What is computed of the
 * group would be computed of a group of no rows, too.
 */
static GpuvmRel *
group_of_constants(const GpuvmRel *bound)
{
	GpuvmRel   *rel = rel_input(bound);
	Bitmapset  *read = bms_make_singleton(linitial_node(TargetEntry, bound->columns)->resno);
	ListCell   *lc;

	for (; rel->op == REL_PROJECT; rel = rel_input(rel))
	{
		foreach(lc, rel->columns)
		{
			if (rel_column_of((Node *) lfirst_node(TargetEntry, lc)->expr) == 0)
				return nullptr;
			read = bms_add_members(read, rel_columns_in((Node *) lfirst_node(TargetEntry, lc)->expr));
		}
	}
	if (rel->op != REL_GROUP || rel->keys == NIL || rel->sets != NIL)
		return nullptr;
	foreach(lc, rel->keys)
	{
		if (bms_is_member(lfirst_node(SortGroupClause, lc)->tleSortGroupRef, read))
			return nullptr;
	}
	return rel;
}

/* Without keys there is a group of no rows, too, which has no value. */
static void
drop_keys(Expansion *expansion, GpuvmRel *bound, GpuvmRel *group)
{
	const TargetEntry *value = linitial_node(TargetEntry, bound->columns);
	TargetEntry *count = new_column(expansion, (Node *) aggregate_of(F_COUNT_, nullptr), "rows");
	Node	   *any = operation(INT8_GREATER, BOOLOID, (Node *) rel_var(count), rel_bigint(0));
	Node	   *if_any = rel_case(list_make1(rel_when(any, (Node *) rel_var(value))), nullptr);
	TargetEntry *made = new_column(expansion, if_any, value->resname);
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, group->columns)
	{
		if (!rel_hands_on(lfirst_node(TargetEntry, lc)))
			columns = lappend(columns, lfirst(lc));
	}
	group->keys = NIL;
	group->columns = lappend(columns, count);
	bound->inputs = list_make1(rel_make(REL_PROJECT, list_copy(bound->inputs), list_make1(made)));
	bound->columns = list_make1(rel_hand_on(made));
}

/* The value of any number of rows is that of groups without keys; their number is the definition's second column. */
static void
expand_bound(GpuvmRel *bound, Expansion *expansion)
{
	const TargetEntry *column = linitial_node(TargetEntry, bound->columns);
	Aggref	   *value;
	GpuvmRel   *groups;
	TargetEntry *made;
	bool		one = false;
	ListCell   *lc;

	if (rel_is_one_group(expansion->statement->definitions, rel_input(bound)) || is_exists(bound))
		return;
	foreach(lc, rel_facts(rel_input(bound))->unique)
		one = one || lfirst(lc) == nullptr;
	groups = one ? group_of_constants(bound) : nullptr;
	if (groups != nullptr)
	{
		drop_keys(expansion, bound, groups);
		return;
	}
	value = value_of_rows(column);
	if (value == nullptr)
		return;
	made = new_column(expansion, (Node *) value, column->resname);
	groups = rel_make(REL_GROUP, list_copy(bound->inputs), list_make1(made));
	bound->inputs = list_make1(groups);
	bound->columns = list_make1(rel_hand_on(made));
	if (exprType((Node *) made->expr) != exprType((Node *) column->expr))
	{
		made = new_column(expansion, as_before(made, column), column->resname);
		bound->inputs = list_make1(rel_make(REL_PROJECT, list_make1(groups), list_make1(made)));
		bound->columns = list_make1(rel_hand_on(made));
	}
	if (one)
		return;
	made = new_column(expansion, (Node *) aggregate_of(F_COUNT_, nullptr), "rows");
	groups->columns = lappend(groups->columns, made);
	bound->columns = lappend(bound->columns, rel_hand_on(made));
}

Node *
rel_check_of_bound(const GpuvmRel *bound)
{
	return list_length(bound->columns) < 2 ? nullptr : at_most_one(lsecond_node(TargetEntry, bound->columns));
}

/* -- the tree -------------------------------------------------------------------------------------------- */

static void
expand(GpuvmRel **cell, Expansion *expansion)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < list_length((*cell)->inputs); i++)
		expand(rel_input_cell(*cell, i), expansion);
	if ((*cell)->op == REL_JOIN && (*cell)->join == RELJOIN_MARK)
		expand_mark(cell, expansion);
	else if ((*cell)->op == REL_JOIN && (*cell)->join == RELJOIN_SINGLE)
		expand_single(cell, expansion);
}

void
rel_expand(GpuvmRel *statement)
{
	Expansion	expansion = {statement, NIL};
	List	   *definitions = NIL;
	ListCell   *lc;

	foreach(lc, statement->definitions)
	{
		GpuvmRel   *definition = static_cast<GpuvmRel *>(lfirst(lc));

		expand(rel_input_cell(definition), &expansion);
		if (definition->op == REL_BOUND)
			expand_bound(definition, &expansion);
		definitions = lappend(list_concat(definitions, list_difference_ptr(expansion.shared, definitions)), definition);
	}
	expand(rel_input_cell(statement), &expansion);
	statement->definitions = list_concat(definitions, list_difference_ptr(expansion.shared, definitions));
	rel_forget_facts(statement);
	prune_columns(statement);
}

}  // namespace gpuvm
