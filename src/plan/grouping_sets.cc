/*
 * grouping_sets.cc: groups of several sets of keys as groups of groups.
 *
 * The finest set is grouped from the rows, each other from the smallest set that has all of its keys, where its
 * aggregates are computed from those exactly; otherwise all are grouped from the rows. The result is a UNION ALL
 * of them, in which keys that a set lacks are null.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

#include "plan/facts.h"
#include "plan/normalise.h"
#include "plan/passes.h"
#include "plan/renumber.h"
#include "plan/two_steps.h"

namespace gpuvm {

/* By a column's number below the groups the one that it has in some rows; of an aggregate by that of the groups' column. */
using Numbers = int *;

/* The groups of one set. */
struct SetGroups
{
	Bitmapset  *keys;
	int			from;			/* the groups that they are made of; -1: the rows */
	int			nreaders;
	GpuvmRel   *rel;
	Numbers		numbers;
	GpuvmRel   *shared;			/* whose rows the readers have, if there are several */
};

struct Splitting
{
	GpuvmRel   *statement;
	int			at;				/* where among the definitions new ones belong: they are read by what stands there */
	GpuvmRel   *group;			/* that is split */
	bool		combines;		/* groups are made of groups */
	SetGroups  *sets;
	int			nsets;
	GpuvmRel   *rows;			/* the Shared of the rows, if they are read several times */
	List	   *made;			/* definitions of this group's */
	int			most;			/* the greatest number that a column may get */
};

static Numbers
no_numbers(const Splitting *s)
{
	return static_cast<Numbers>(palloc0(sizeof(int) * (s->most + 1)));
}

static bool
is_aggregate(const TargetEntry *column)
{
	return IsA(column->expr, Aggref);
}

static bool
all_combine(const GpuvmRel *group)
{
	ListCell   *lc;

	foreach(lc, group->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (is_aggregate(column) && !OidIsValid(combining_aggregate((const Aggref *) column->expr)))
			return false;
	}
	return true;
}

/* -- which set is made of which --------------------------------------------------------------------- */

static int
find_set(const Splitting *s, const Bitmapset *keys)
{
	for (int i = 0; i < s->nsets; i++)
	{
		if (bms_equal(s->sets[i].keys, keys))
			return i;
	}
	return -1;
}

static Bitmapset *
keys_of_set(const List *numbers)
{
	Bitmapset  *keys = nullptr;
	ListCell   *lc;

	foreach(lc, numbers)
		keys = bms_add_member(keys, lfirst_int(lc));
	return keys;
}

static int
compare_sets(const void *a, const void *b)
{
	return bms_num_members(static_cast<const SetGroups *>(b)->keys) - bms_num_members(static_cast<const SetGroups *>(a)->keys);
}

/* The larger ones come first. */
static void
list_sets(Splitting *s)
{
	ListCell   *lc;

	s->sets = static_cast<SetGroups *>(palloc0(sizeof(SetGroups) * list_length(s->group->sets)));
	foreach(lc, s->group->sets)
	{
		Bitmapset  *keys = keys_of_set(lfirst_node(List, lc));

		if (find_set(s, keys) < 0)
			s->sets[s->nsets++] = SetGroups{keys, -1, 0, nullptr, nullptr, nullptr};
	}
	qsort(s->sets, s->nsets, sizeof(SetGroups), compare_sets);
	for (int i = 0; i < s->nsets; i++)
	{
		for (int k = 0; s->combines && k < i; k++)
		{
			if (bms_is_subset(s->sets[i].keys, s->sets[k].keys))
				s->sets[i].from = k;
		}
		if (s->sets[i].from >= 0)
			s->sets[s->sets[i].from].nreaders++;
	}
	foreach(lc, s->group->sets)
		s->sets[find_set(s, keys_of_set(lfirst_node(List, lc)))].nreaders++;
}

/* -- rows that are read several times --------------------------------------------------------------- */

static GpuvmRel *
share(Splitting *s, GpuvmRel *rel)
{
	GpuvmRel   *shared = rel_share(rel, s->statement->definitions);

	s->statement->definitions = list_insert_nth(s->statement->definitions, s->at++, shared);
	s->made = lappend(s->made, shared);
	return shared;
}

/* Its rows, with numbers of their own for its columns. */
static GpuvmRel *
read_shared(Splitting *s, const GpuvmRel *shared, Numbers own)
{
	GpuvmRel   *set = rel_make(REL_SET);
	ListCell   *lc;

	set->id = shared->id;
	foreach(lc, shared->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		const int	number = rel_next_number(s->statement);

		set->columns = lappend(set->columns, makeTargetEntry((Expr *) rel_var(column), number, column->resname, false));
		own[column->resno] = number;
	}
	return set;
}

/* The rows that are grouped, or those of a set's groups. */
static GpuvmRel *
read_rows(Splitting *s, Numbers *numbers)
{
	*numbers = no_numbers(s);
	return s->rows == nullptr ? rel_input(s->group) : read_shared(s, s->rows, *numbers);
}

static GpuvmRel *
read_groups(Splitting *s, const SetGroups *set, Numbers *numbers)
{
	Numbers		own = no_numbers(s);
	GpuvmRel   *rel;
	ListCell   *lc;

	*numbers = set->numbers;
	if (set->shared == nullptr)
		return set->rel;
	rel = read_shared(s, set->shared, own);
	*numbers = no_numbers(s);
	foreach(lc, s->group->keys)
	{
		const int	key = lfirst_node(SortGroupClause, lc)->tleSortGroupRef;

		(*numbers)[key] = own[renumbered(set->numbers, key)];
	}
	foreach(lc, s->group->columns)
	{
		const int	number = lfirst_node(TargetEntry, lc)->resno;

		if (is_aggregate(lfirst_node(TargetEntry, lc)))
			(*numbers)[number] = own[set->numbers[number]];
	}
	return rel;
}

/* -- the groups of a set ---------------------------------------------------------------------------- */

static void
add_keys(Splitting *s, GpuvmRel *rel, const Bitmapset *keys, const Numbers below)
{
	ListCell   *lc;

	foreach(lc, s->group->keys)
	{
		SortGroupClause *key = lfirst_node(SortGroupClause, lc);
		const int	number = key->tleSortGroupRef;

		if (!bms_is_member(number, keys))
			continue;
		key = static_cast<SortGroupClause *>(copyObjectImpl(key));
		key->tleSortGroupRef = renumbered(below, number);
		rel->keys = lappend(rel->keys, key);
		rel->columns = lappend(rel->columns, rel_hand_on(rel_find(rel_input(rel), key->tleSortGroupRef)));
	}
}

/* Over the finer groups' column of this number. */
static Expr *
aggregate_of_column(const Aggref *agg, int number)
{
	return combined_aggregate(agg, (Expr *) makeVar(IR_VAR, number, agg->aggtype, -1, agg->aggcollid, 0));
}

static void
make_groups(Splitting *s, SetGroups *set)
{
	Numbers		below;
	GpuvmRel   *input = set->from < 0 ? read_rows(s, &below) : read_groups(s, &s->sets[set->from], &below);
	ListCell   *lc;

	set->rel = rel_make(REL_GROUP, list_make1(input));
	set->numbers = no_numbers(s);
	add_keys(s, set->rel, set->keys, below);
	foreach(lc, s->group->keys)
	{
		const int	key = lfirst_node(SortGroupClause, lc)->tleSortGroupRef;

		set->numbers[key] = renumbered(below, key);
	}
	foreach(lc, s->group->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		Expr	   *expr = column->expr;

		if (!is_aggregate(column))
			continue;
		expr = set->from < 0 ? (Expr *) renumber_expr((Node *) expr, below) : aggregate_of_column((const Aggref *) expr, below[column->resno]);
		set->numbers[column->resno] = rel_next_number(s->statement);
		set->rel->columns = lappend(set->rel->columns, makeTargetEntry(expr, set->numbers[column->resno], column->resname, false));
	}
	if (set->nreaders > 1)
		set->shared = share(s, set->rel);
}

/* -- the sets together ------------------------------------------------------------------------------ */

/* A bit for each argument that is no key of the set, the last one's the lowest. */
static Expr *
grouping_of(const GroupingFunc *grouping, const Bitmapset *keys)
{
	int32		bits = 0;
	ListCell   *lc;

	foreach(lc, grouping->refs)
		bits = (bits << 1) | !bms_is_member(lfirst_int(lc), keys);
	return (Expr *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(bits), false, true);
}

/* One set's groups with all columns of the whole; their numbers. */
static GpuvmRel *
arm_of_set(Splitting *s, const SetGroups *set, List **arm)
{
	Numbers		numbers;
	GpuvmRel   *input = read_groups(s, set, &numbers);
	GpuvmRel   *project = rel_make(REL_PROJECT, list_make1(input));
	ListCell   *lc;

	foreach(lc, s->group->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		const Node *expr = (const Node *) column->expr;
		TargetEntry *own;

		if (is_aggregate(column) || bms_is_member(column->resno, set->keys))
			own = rel_hand_on(rel_find(input, numbers[column->resno]));
		else if (IsA(expr, GroupingFunc))
			own = makeTargetEntry(grouping_of((const GroupingFunc *) expr, set->keys), rel_next_number(s->statement), column->resname, false);
		else
			own = makeTargetEntry((Expr *) makeNullConst(exprType(expr), exprTypmod(expr), exprCollation(expr)), rel_next_number(s->statement), column->resname, false);
		if (rel_find(project, own->resno) == nullptr)
			project->columns = lappend(project->columns, own);
		*arm = lappend_int(*arm, own->resno);
	}
	return project;
}

/* Keys have other numbers above: there they may be null. */
static GpuvmRel *
union_of_sets(Splitting *s, int *above)
{
	GpuvmRel   *all = rel_make(REL_UNION);
	ListCell   *lc;

	foreach(lc, s->group->sets)
	{
		List	   *arm = NIL;

		all->inputs = lappend(all->inputs, arm_of_set(s, &s->sets[find_set(s, keys_of_set(lfirst_node(List, lc)))], &arm));
		all->arms = lappend(all->arms, arm);
	}
	foreach(lc, s->group->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		const Node *expr = (const Node *) column->expr;
		Var		   *own = makeVar(IR_OWN, foreach_current_index(lc) + 1, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);
		int			number = column->resno;

		if (rel_hands_on(column))
			number = above[column->resno] = rel_next_number(s->statement);
		all->columns = lappend(all->columns, makeTargetEntry((Expr *) own, number, column->resname, false));
	}
	return all;
}

static int
count_from_rows(const Splitting *s)
{
	int			n = 0;

	for (int i = 0; i < s->nsets; i++)
		n += s->sets[i].from < 0;
	return n;
}

/* Of each set's groups and their readers, and of the rows. */
static int
most_columns(const Splitting *s)
{
	const int	each = list_length(s->group->columns) + list_length(s->group->keys) + list_length(rel_input(s->group)->columns);

	return Min(s->statement->last_number + each * (4 * list_length(s->group->sets) + 2), MAX_COLUMNS);
}

static void
split_group(Splitting *s, GpuvmRel **cell)
{
	int		   *above;

	s->group = *cell;
	s->combines = all_combine(s->group);
	s->nsets = 0;
	s->rows = nullptr;
	s->made = NIL;
	s->most = most_columns(s);
	above = no_numbers(s);
	list_sets(s);
	if (count_from_rows(s) > 1)
		s->rows = share(s, rel_input(s->group));
	for (int i = 0; i < s->nsets; i++)
		make_groups(s, &s->sets[i]);
	*cell = union_of_sets(s, above);
	renumber_rel(s->statement, above, lappend(s->made, *cell));
}

/* Each set takes a stage. */
constexpr int MOST_SETS = 64;

static void
split(Splitting *s, GpuvmRel **cell)
{
	GpuvmRel   *rel = *cell;

	check_stack_depth();
	for (int i = 0; i < list_length(rel->inputs); i++)
		split(s, rel_input_cell(rel, i));
	if (rel->op != REL_GROUP || rel->sets == NIL || list_length(rel->sets) > MOST_SETS)
		return;
	/* a definition has no columns from outside */
	rel_forget_facts(rel);
	if (bms_is_empty(rel_facts(rel)->outer))
		split_group(s, cell);
}

void
split_grouping_sets(GpuvmRel *statement)
{
	Splitting	s = {};

	s.statement = statement;
	for (s.at = 0; s.at < list_length(statement->definitions); s.at++)
		split(&s, rel_input_cell(static_cast<GpuvmRel *>(list_nth(statement->definitions, s.at))));
	split(&s, rel_input_cell(statement));
}

}  // namespace gpuvm
