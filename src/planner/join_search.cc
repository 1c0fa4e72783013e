/*
 * join_search.cc: the search for the cheapest order of inner joins.
 *
 * Up to ten relations: all trees without cross products, by dynamic programming over sets. Beyond: the cheaper of
 * joining one relation after the other to each of them, and of joining what leaves fewest rows first.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "port/pg_bitutils.h"
}

#include "planner/cost.h"
#include "planner/join_search.h"
#include "vm/program.h"

namespace gpuvm {

/* Of more relations not all trees are looked at. */
constexpr int MOST_FOR_ALL = 10;
/* Columns that a row has, if a program keeps it for another one. */
constexpr double KEPT_COLUMNS = 4;

static Items
one(int item)
{
	return Items{1} << item;
}

static bool
within(Items a, Items b)
{
	return (a & ~b) == 0;
}

static int
first_of(Items items)
{
	return pg_rightmost_one_pos64(items);
}

/* -- rows ----------------------------------------------------------------------------------- */

double
keys_selectivity(double product, double left_distinct, double left_rows, double right_distinct, double right_rows)
{
	const double most = Max(Min(left_distinct, left_rows), Min(right_distinct, right_rows));

	return Max(product, 1 / Max(most, 1.0));
}

/* What joins two sets. */
struct Between
{
	int			keys;
	double		keyed;			/* the part of all pairs that has equal keys, */
	double		selectivity;	/* and that passes all conditions */
};

/* The fewest different values that a set has for the class, and the item that has them. */
static int
fewest(const JoinClass *c, Items items)
{
	Items		left = c->items & items;
	int			best = first_of(left);

	for (; left != 0; left &= left - 1)
	{
		if (c->distinct[first_of(left)] < c->distinct[best])
			best = first_of(left);
	}
	return best;
}

static Between
between(const JoinSearch *s, Items a, Items b)
{
	Between		result = {0, 1, 1};
	double		product = 1;
	double		distinct[2] = {1, 1};
	double		scanned[2] = {1, 1};
	Items		seen[2] = {0, 0};

	for (int i = 0; i < s->nclasses; i++)
	{
		const JoinClass *c = &s->classes[i];
		int			items[2];

		if ((c->items & a) == 0 || (c->items & b) == 0)
			continue;
		items[0] = fewest(c, a);
		items[1] = fewest(c, b);
		product /= Max(c->distinct[items[0]], c->distinct[items[1]]);
		for (int side = 0; side < 2; side++)
		{
			distinct[side] *= c->distinct[items[side]];
			if ((seen[side] & one(items[side])) == 0)
				scanned[side] *= Max(s->items[items[side]].scanned, 1);
			seen[side] |= one(items[side]);
		}
		result.keys++;
	}
	result.keyed = keys_selectivity(product, distinct[0], scanned[0], distinct[1], scanned[1]);
	if (result.keys == 0)
		result.keyed = 1;
	result.selectivity = result.keyed;
	for (int i = 0; i < s->nconditions; i++)
	{
		const JoinCondition *c = &s->conditions[i];

		if (!within(c->all, a | b) || within(c->all, a) || within(c->all, b))
			continue;
		result.selectivity *= c->selectivity;
		if (c->left != 0 && ((within(c->left, a) && within(c->right, b)) || (within(c->left, b) && within(c->right, a))))
		{
			result.keyed *= c->selectivity;
			result.keys++;
		}
	}
	return result;
}

/* -- trees ---------------------------------------------------------------------------------- */

static JoinTree
leaf(const JoinSearch *s, int item)
{
	const JoinItem *i = &s->items[item];

	return JoinTree{one(item), nullptr, nullptr, item, i->rows, i->cursors > 1 ? 0 : driver_us(i->scanned), i->cursors};
}

static Items
neighbours_of(const JoinSearch *s, Items items)
{
	Items		all = 0;

	for (; items != 0; items &= items - 1)
		all |= s->neighbours[first_of(items)];
	return all;
}

/* May the second one be looked up, or gone through, for each row of the first one? */
static bool
can_be_inner(const JoinSearch *s, const JoinTree *t)
{
	return t->outer != nullptr || !s->items[t->item].drives;
}

/* rows: that come out; negative: by what is between them. */
static JoinTree
join(const JoinSearch *s, const JoinTree *outer, const JoinTree *inner, double rows)
{
	const Between b = between(s, outer->items, inner->items);
	const double pairs = outer->rows * inner->rows;
	JoinTree	t = {outer->items | inner->items, outer, inner, -1, rows < 0 ? Max(pairs * b.selectivity, 1) : rows, 0, outer->cursors + 1};
	JoinStep	step = {outer->rows, inner->rows, inner->rows, b.keys, Max(b.keys > 0 ? pairs * b.keyed : pairs, t.rows), t.rows};

	t.us = outer->us;
	if (inner->cursors > 1)
		t.us += inner->us + kept_rows_us(inner->rows, KEPT_COLUMNS);
	else
		step.scanned = s->items[inner->item].scanned;
	if (t.cursors > PROGRAM_MAX_CURSORS)
	{
		t.us += kept_rows_us(outer->rows, KEPT_COLUMNS);
		t.cursors = 2;
	}
	t.us += join_step_us(step);
	return t;
}

static JoinTree *
kept(const JoinTree &t)
{
	JoinTree   *copy = static_cast<JoinTree *>(palloc(sizeof(JoinTree)));

	*copy = t;
	return copy;
}

/* -- which relations meet ------------------------------------------------------------------------- */

static void
connect(JoinSearch *s, Items items)
{
	for (Items left = items; left != 0; left &= left - 1)
		s->neighbours[first_of(left)] |= items & ~one(first_of(left));
}

static Items
component(const JoinSearch *s, int item)
{
	Items		found = one(item);
	Items		before = 0;

	while (found != before)
	{
		before = found;
		found |= neighbours_of(s, found);
	}
	return found;
}

/* Of relations that no condition connects the smallest are crossed. */
static void
find_neighbours(JoinSearch *s)
{
	Items		smallest = 0;
	Items		left = s->nitems == MAX_ITEMS ? ~Items{0} : one(s->nitems) - 1;

	for (int i = 0; i < s->nitems; i++)
		s->neighbours[i] = 0;
	for (int i = 0; i < s->nclasses; i++)
		connect(s, s->classes[i].items);
	for (int i = 0; i < s->nconditions; i++)
	{
		if (pg_popcount64(s->conditions[i].all) == 2)
			connect(s, s->conditions[i].all);
	}
	while (left != 0)
	{
		const Items part = component(s, first_of(left));
		int			best = first_of(part);

		for (Items rest = part; rest != 0; rest &= rest - 1)
		{
			if (s->items[first_of(rest)].rows < s->items[best].rows)
				best = first_of(rest);
		}
		smallest |= one(best);
		left &= ~part;
	}
	if (pg_popcount64(smallest) > 1)
		connect(s, smallest);
}

/* -- all trees -------------------------------------------------------------------------------------- */

static void
try_splits(const JoinSearch *s, JoinTree *best, const Items *neighbours, Items items)
{
	JoinTree   *t = &best[items];

	for (Items inner = (items - 1) & items; inner != 0; inner = (inner - 1) & items)
	{
		const JoinTree *left = &best[items & ~inner];
		const JoinTree *right = &best[inner];

		if (left->items == 0 || right->items == 0 || (neighbours[left->items] & inner) == 0 || !can_be_inner(s, right) ||
			(t->outer != nullptr && left->us >= t->us))
			continue;
		if (t->outer == nullptr)
		{
			/* the same for all trees of a set: by its last relation */
			const JoinTree first = join(s, left, right, -1);

			*t = first;
			continue;
		}

		const JoinTree other = join(s, left, right, t->rows);

		if (other.us < t->us)
			*t = other;
	}
}

static const JoinTree *
search_all(const JoinSearch *s)
{
	const Items all = one(s->nitems) - 1;
	JoinTree   *best = static_cast<JoinTree *>(palloc0(sizeof(JoinTree) * (all + 1)));
	Items	   *neighbours = static_cast<Items *>(palloc0(sizeof(Items) * (all + 1)));

	for (Items items = 1; items <= all; items++)
	{
		neighbours[items] = neighbours[items & (items - 1)] | s->neighbours[first_of(items)];
		if ((items & (items - 1)) == 0)
			best[items] = leaf(s, first_of(items));
		else
			try_splits(s, best, neighbours, items);
	}
	return best[all].items != 0 ? &best[all] : nullptr;
}

/* -- some trees -------------------------------------------------------------------------------------- */

/* One relation after the other behind this one. */
static const JoinTree *
search_behind(const JoinSearch *s, int first)
{
	const JoinTree *t = kept(leaf(s, first));

	while (pg_popcount64(t->items) < s->nitems)
	{
		const Items near = neighbours_of(s, t->items);
		JoinTree	best = {};
		JoinTree	best_inner = {};

		for (int i = 0; i < s->nitems; i++)
		{
			const JoinTree inner = leaf(s, i);

			if ((t->items & one(i)) != 0 || (near & one(i)) == 0 || !can_be_inner(s, &inner))
				continue;

			const JoinTree joined = join(s, t, &inner, -1);

			if (best.items == 0 || joined.rows < best.rows || (joined.rows == best.rows && joined.us < best.us))
			{
				best = joined;
				best_inner = inner;
			}
		}
		if (best.items == 0)
			return nullptr;
		best.inner = kept(best_inner);
		t = kept(best);
	}
	return t;
}

/* The two that cost least to join, again and again. */
static const JoinTree *
search_pairs(const JoinSearch *s)
{
	const JoinTree *trees[MAX_ITEMS];
	int			n = s->nitems;

	for (int i = 0; i < n; i++)
		trees[i] = kept(leaf(s, i));
	while (n > 1)
	{
		JoinTree	best = {};
		int			outer = -1;
		int			inner = -1;

		CHECK_FOR_INTERRUPTS();
		for (int a = 0; a < n; a++)
		{
			const Items near = neighbours_of(s, trees[a]->items);

			for (int b = 0; b < n; b++)
			{
				if (a == b || (near & trees[b]->items) == 0 || !can_be_inner(s, trees[b]))
					continue;

				const JoinTree t = join(s, trees[a], trees[b], -1);

				if (best.items == 0 || t.us < best.us)
				{
					best = t;
					outer = a;
					inner = b;
				}
			}
		}
		if (best.items == 0)
			return nullptr;
		trees[outer] = kept(best);
		trees[inner] = trees[--n];
	}
	return trees[0];
}

const JoinTree *
search_joins(JoinSearch *s)
{
	const JoinTree *best;

	find_neighbours(s);
	if (s->nitems <= MOST_FOR_ALL)
		return search_all(s);
	best = search_pairs(s);
	for (int i = 0; i < s->nitems; i++)
	{
		const JoinTree *t = search_behind(s, i);

		CHECK_FOR_INTERRUPTS();
		if (t != nullptr && (best == nullptr || t->us < best->us))
			best = t;
	}
	return best;
}

/* -- any tree ------------------------------------------------------------------------------------------ */

static uint64
next_random(uint64 *state)
{
	*state = *state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
	return *state >> 33;
}

const JoinTree *
random_joins(JoinSearch *s, uint64 seed)
{
	const JoinTree *trees[MAX_ITEMS];
	uint64		state = seed;
	int			n = s->nitems;

	find_neighbours(s);
	for (int i = 0; i < n; i++)
		trees[i] = kept(leaf(s, i));
	/* what can only drive may be left with no one to drive: then no tree is found in so many tries */
	for (int tries = 0; n > 1 && tries < 100 * s->nitems; tries++)
	{
		const int	a = static_cast<int>(next_random(&state) % n);
		const int	b = static_cast<int>(next_random(&state) % n);

		if (a == b || (neighbours_of(s, trees[a]->items) & trees[b]->items) == 0 || !can_be_inner(s, trees[b]))
			continue;
		trees[a] = kept(join(s, trees[a], trees[b], -1));
		trees[b] = trees[--n];
	}
	return n == 1 ? trees[0] : search_joins(s);
}

}  // namespace gpuvm
