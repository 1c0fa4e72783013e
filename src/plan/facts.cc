/* facts.cc: what is known of the rows of a node. */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
}

#include "pg/compat.h"
#include "plan/facts.h"

namespace gpuvm {

/* -- columns that are read -------------------------------------------------------------- */

static void
add_columns(Node **expr, void *context)
{
	Bitmapset **numbers = static_cast<Bitmapset **>(context);

	*numbers = bms_join(*numbers, rel_columns_in(*expr));
}

static Bitmapset *
outer_columns(const GpuvmRel *rel)
{
	Bitmapset  *outer = nullptr;
	Bitmapset  *there = nullptr;
	ListCell   *lc;

	if (rel->op == REL_SET)
		return nullptr;
	rel_each_expression(const_cast<GpuvmRel *>(rel), add_columns, &outer);
	foreach(lc, rel->inputs)
	{
		const GpuvmRel *input = static_cast<const GpuvmRel *>(lfirst(lc));

		outer = bms_add_members(outer, rel_facts(input)->outer);
		there = bms_join(there, rel_numbers(input));
	}
	outer = bms_del_members(outer, there);
	bms_free(there);
	return outer;
}

bool
rel_is_dependent(const GpuvmRel *join)
{
	return bms_overlap(rel_facts(rel_input(join, 1))->outer, rel_numbers(rel_input(join)));
}

/* -- nulls -------------------------------------------------------------------------------- */

Bitmapset *
rel_rejected_nulls(Node *condition)
{
	Bitmapset  *rejected = nullptr;
	ListCell   *lc;

	if (condition == nullptr)
		return nullptr;
	if (IsA(condition, List) || is_andclause(condition))
	{
		foreach(lc, IsA(condition, List) ? (List *) condition : ((BoolExpr *) condition)->args)
			rejected = bms_join(rejected, rel_rejected_nulls(static_cast<Node *>(lfirst(lc))));
		return rejected;
	}
	if (is_orclause(condition))
	{
		foreach(lc, ((BoolExpr *) condition)->args)
		{
			Bitmapset  *arm = rel_rejected_nulls(static_cast<Node *>(lfirst(lc)));

			rejected = foreach_current_index(lc) == 0 ? arm : bms_int_members(rejected, arm);
		}
		return rejected;
	}
	if (IsA(condition, NullTest))
	{
		const NullTest *test = (const NullTest *) condition;

		if (test->nulltesttype != IS_NOT_NULL || test->argisrow || contain_nonstrict_functions((Node *) test->arg))
			return nullptr;
		return rel_columns_in((Node *) test->arg);
	}
	if (IsA(condition, BooleanTest))
	{
		const BooleanTest *test = (const BooleanTest *) condition;

		if (test->booltesttype != IS_TRUE && test->booltesttype != IS_FALSE)
			return nullptr;
		condition = (Node *) test->arg;
	}
	return contain_nonstrict_functions(condition) ? nullptr : rel_columns_in(condition);
}

static bool
is_not_null_attribute(Oid relid, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid), Int16GetDatum(attnum));
	bool		not_null;

	if (!HeapTupleIsValid(tuple))
		return false;
	/* a snapshot may be older than the declaration */
	not_null = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull && !IsolationUsesXactSnapshot();
	ReleaseSysCache(tuple);
	return not_null;
}

/* Of columns that the node makes itself. */
static Bitmapset *
made_not_null(const GpuvmRel *rel)
{
	Bitmapset  *numbers = nullptr;
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		const Node *expr = (const Node *) column->expr;
		bool		not_null = false;

		if (IsA(expr, Const))
			not_null = !((const Const *) expr)->constisnull;
		else if (IsA(expr, Aggref))
			not_null =
				((const Aggref *) expr)->aggfnoid == F_COUNT_ || ((const Aggref *) expr)->aggfnoid == F_COUNT_ANY;
		else if (rel->op == REL_SCAN)
			not_null = is_not_null_attribute(rel->rte->relid, ((const Var *) expr)->varattno);
		if (not_null)
			numbers = bms_add_member(numbers, column->resno);
	}
	return numbers;
}

static Bitmapset *
arms_not_null(const GpuvmRel *rel)
{
	Bitmapset  *numbers = nullptr;
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		bool		not_null = true;

		for (int i = 0; i < list_length(rel->inputs); i++)
		{
			const int	number = rel_arm_column(rel, i, column);

			not_null = not_null && bms_is_member(number, rel_facts(rel_input(rel, i))->not_null);
		}
		if (not_null)
			numbers = bms_add_member(numbers, column->resno);
	}
	return numbers;
}

static Bitmapset *
not_null_columns(const GpuvmRel *rel)
{
	Bitmapset  *numbers = nullptr;

	switch (static_cast<RelOp>(rel->op))
	{
		case REL_UNION:
		case REL_SETOP:
			return arms_not_null(rel);
		case REL_SCAN:
		case REL_VALUES:
		case REL_EXTERNAL:
		case REL_SET:
			return made_not_null(rel);
		case REL_JOIN:
			if (rel->join == RELJOIN_FULL)
				return nullptr;
			numbers = bms_copy(rel_facts(rel_input(rel))->not_null);
			if (rel->join == RELJOIN_INNER)
				numbers = bms_add_members(numbers, rel_facts(rel_input(rel, 1))->not_null);
			if (rel->join == RELJOIN_INNER || rel->join == RELJOIN_SEMI)
				numbers = bms_join(numbers, rel_rejected_nulls((Node *) rel->quals));
			break;
		default:
			if (rel->sets == NIL)
				numbers = bms_copy(rel_facts(rel_input(rel))->not_null);
			numbers = bms_join(numbers, made_not_null(rel));
			if (rel->op == REL_FILTER)
				numbers = bms_join(numbers, rel_rejected_nulls((Node *) rel->quals));
			break;
	}
	return bms_int_members(numbers, rel_numbers(rel));
}

/* -- unique columns ------------------------------------------------------------------------ */

/* The columns of a unique index, if they are all there, and none can be null. */
static bool
index_columns(const GpuvmRel *rel, const Bitmapset *not_null, Oid indexoid, Bitmapset **numbers)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexoid));
	Form_pg_index index;
	bool		usable;
	ListCell   *lc;

	*numbers = nullptr;
	if (!HeapTupleIsValid(tuple))
		return false;
	index = (Form_pg_index) GETSTRUCT(tuple);
	usable = index->indisunique && index->indimmediate && index->indisvalid &&
			 heap_attisnull(tuple, Anum_pg_index_indpred, nullptr);
	for (int i = 0; usable && i < index->indnkeyatts; i++)
	{
		usable = false;
		foreach(lc, rel->columns)
		{
			const TargetEntry *column = lfirst_node(TargetEntry, lc);
			const Var  *own = (const Var *) column->expr;

			if (own->varattno != index->indkey.values[i] || !bms_is_member(column->resno, not_null))
				continue;
			/* of equal texts there may be several under a collation that tells more apart */
			usable = !OidIsValid(own->varcollid) || get_collation_isdeterministic(own->varcollid);
			*numbers = bms_add_member(*numbers, column->resno);
		}
	}
	ReleaseSysCache(tuple);
	return usable;
}

static List *
scan_unique(const GpuvmRel *rel, const Bitmapset *not_null)
{
	Relation	relation = table_open(rel->rte->relid, NoLock);
	List	   *unique = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(relation))
	{
		Bitmapset  *numbers;

		if (index_columns(rel, not_null, lfirst_oid(lc), &numbers))
			unique = lappend(unique, numbers);
	}
	table_close(relation, NoLock);
	return unique;
}

/* Does an equality of the condition bind all columns of a unique set to columns of the other side? */
static bool
is_bound(const List *quals, const List *unique, const Bitmapset *other)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, unique)
	{
		Bitmapset  *free = bms_copy(static_cast<const Bitmapset *>(lfirst(lc)));

		foreach(lc2, quals)
		{
			const OpExpr *qual = (const OpExpr *) lfirst(lc2);

			if (!IsA(qual, OpExpr) || list_length(qual->args) != 2 ||
				!op_mergejoinable(qual->opno, exprType(static_cast<Node *>(linitial(qual->args)))) ||
				(OidIsValid(qual->inputcollid) && !get_collation_isdeterministic(qual->inputcollid)))
				continue;
			for (int side = 0; side < 2; side++)
			{
				const int	number = rel_column_of(static_cast<Node *>(list_nth(qual->args, side)));

				if (number != 0 &&
					bms_is_subset(rel_columns_in(static_cast<Node *>(list_nth(qual->args, 1 - side))), other))
					free = bms_del_member(free, number);
			}
		}
		if (bms_is_empty(free))
			return true;
	}
	return false;
}

bool
rel_meets_at_most_one(const GpuvmRel *join)
{
	return is_bound(join->quals, rel_facts(rel_input(join, 1))->unique, rel_numbers(rel_input(join)));
}

static List *
join_unique(const GpuvmRel *rel)
{
	const GpuvmRel *left = rel_input(rel);
	const GpuvmRel *right = rel_input(rel, 1);
	const List *left_unique = rel_facts(left)->unique;
	const List *right_unique = rel_facts(right)->unique;
	List	   *unique = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	if (rel->join == RELJOIN_FULL)
		return NIL;
	if ((rel->join != RELJOIN_INNER && rel->join != RELJOIN_LEFT) || rel_meets_at_most_one(rel))
		return list_copy(left_unique);
	if (rel->join == RELJOIN_INNER && is_bound(rel->quals, left_unique, rel_numbers(right)) && !rel_is_dependent(rel))
		unique = list_copy(right_unique);
	/* the rows of a dependent join's right input are so for each row of the left */
	foreach(lc, left_unique)
	{
		foreach(lc2, right_unique)
			unique =
				lappend(unique, bms_union(static_cast<Bitmapset *>(lfirst(lc)), static_cast<Bitmapset *>(lfirst(lc2))));
	}
	return unique;
}

static List *
key_set(const List *keys)
{
	Bitmapset  *numbers = nullptr;
	ListCell   *lc;

	foreach(lc, keys)
		numbers = bms_add_member(numbers, lfirst_node(SortGroupClause, lc)->tleSortGroupRef);
	return list_make1(numbers);
}

/* Conditions that all rows of a node have passed. */
static List *
conditions_on(const GpuvmRel *rel)
{
	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
			return list_concat_copy(rel->quals, conditions_on(rel_input(rel)));
		case REL_PROJECT:
		case REL_SORT:
			return conditions_on(rel_input(rel));
		case REL_JOIN:
			if (rel->join == RELJOIN_FULL)
				return NIL;
			if (rel->join != RELJOIN_INNER)
				return conditions_on(rel_input(rel));
			return list_concat(list_concat_copy(rel->quals, conditions_on(rel_input(rel))), conditions_on(rel_input(rel, 1)));
		default:
			return NIL;
	}
}

/* Of keys that conditions bind to constants there is one group. */
static List *
group_unique(const GpuvmRel *rel)
{
	List	   *keys = key_set(rel->keys);

	return is_bound(conditions_on(rel_input(rel)), keys, nullptr) ? list_make1(nullptr) : keys;
}

static List *
unique_sets(const GpuvmRel *rel, const Bitmapset *not_null)
{
	List	   *unique = NIL;
	List	   *result = NIL;
	Bitmapset  *numbers = rel_numbers(rel);
	ListCell   *lc;

	switch (static_cast<RelOp>(rel->op))
	{
		case REL_SCAN:
			unique = rel->leaves == NIL && rel->rte->relkind == RELKIND_RELATION ? scan_unique(rel, not_null) : NIL;
			break;
		case REL_VALUES:
			unique = list_length(rel->rows) == 1 ? list_make1(nullptr) : NIL;
			break;
		case REL_JOIN:
			unique = join_unique(rel);
			break;
		case REL_GROUP:
			unique = rel->sets == NIL ? group_unique(rel) : NIL;
			break;
		case REL_SETOP:
			unique = list_make1(bms_copy(numbers));
			break;
		case REL_EXTERNAL:
		case REL_SET:
		case REL_UNION:
			break;
		case REL_SORT:
			if (!rel->ties && rel->count != nullptr && IsA(rel->count, Const) &&
				DatumGetInt64(((Const *) rel->count)->constvalue) <= 1)
				return list_make1(nullptr);
			/* FALLTHROUGH */
		default:
			unique = rel_facts(rel_input(rel))->unique;
			break;
	}
	foreach(lc, unique)
	{
		if (bms_is_subset(static_cast<Bitmapset *>(lfirst(lc)), numbers))
			result = lappend(result, lfirst(lc));
	}
	return result;
}

/* -- all of it -------------------------------------------------------------------------------- */

const RelFacts *
rel_facts(const GpuvmRel *rel)
{
	RelFacts   *facts = rel->facts;
	ListCell   *lc;

	if (facts != nullptr)
		return facts;
	check_stack_depth();
	facts = static_cast<RelFacts *>(palloc0(sizeof(RelFacts)));
	facts->outer = outer_columns(rel);
	facts->not_null = not_null_columns(rel);
	facts->unique = unique_sets(rel, facts->not_null);
	if (rel->op == REL_SORT && rel->keys != NIL)
		facts->order = rel->keys;
	else if (rel->op == REL_SORT || rel->op == REL_FILTER || rel->op == REL_PROJECT)
		facts->order = rel_facts(rel_input(rel))->order;
	facts->hides_rows = rel->op == REL_FILTER && rel->barrier;
	foreach(lc, rel->inputs)
		facts->hides_rows |= rel_facts(static_cast<const GpuvmRel *>(lfirst(lc)))->hides_rows;
	const_cast<GpuvmRel *>(rel)->facts = facts;
	return facts;
}

void
rel_forget_facts(GpuvmRel *rel)
{
	ListCell   *lc;

	check_stack_depth();
	rel->facts = nullptr;
	foreach(lc, rel->inputs)
		rel_forget_facts(static_cast<GpuvmRel *>(lfirst(lc)));
	foreach(lc, rel->definitions)
		rel_forget_facts(static_cast<GpuvmRel *>(lfirst(lc)));
}

}  // namespace gpuvm
