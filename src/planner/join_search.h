/*
 * join_search.h: in which order relations are joined.
 *
 * The search knows relations as numbers, sets of them as bits, and conditions by the sets that they read. What comes of
 * it is a tree: its outer side goes on in the same program, an inner side that is a join is a program of its own.
 */
#ifndef GPUVM_PLANNER_JOIN_SEARCH_H
#define GPUVM_PLANNER_JOIN_SEARCH_H

#include "pg/pg.h"

namespace gpuvm {

using Items = uint64;
constexpr int MAX_ITEMS = 64;

struct JoinItem
{
	double		scanned;
	double		rows;
	int			cursors;		/* several: they are joined already */
	bool		drives;			/* it cannot be an inner side */
};

/* A condition that is no equality of one class. */
struct JoinCondition
{
	Items		all;			/* that it reads */
	Items		left;			/* an equality by which rows are looked up: those of its sides; else 0 */
	Items		right;
	double		selectivity;
};

/* Columns that are equal once their relations are joined. */
struct JoinClass
{
	Items		items;
	double		distinct[MAX_ITEMS];	/* by item */
};

struct JoinTree
{
	Items		items;
	const JoinTree *outer;		/* NULL: one item, with this number: */
	const JoinTree *inner;
	int			item;
	double		rows;
	double		us;
	int			cursors;		/* of the program that has these rows */
};

struct JoinSearch
{
	int			nitems;
	JoinItem	items[MAX_ITEMS];
	int			nconditions;
	JoinCondition *conditions;
	int			nclasses;
	JoinClass  *classes;
	Items		neighbours[MAX_ITEMS];	/* filled by the search */
};

/* The cheapest tree that the search finds; NULL: there is none, with these items that can only drive. */
const JoinTree *search_joins(JoinSearch *search);

/* Any tree, by these numbers. */
const JoinTree *random_joins(JoinSearch *search, uint64 seed);

/* Which part of the pairs of keys match, if both sides have so many different ones and rows: of columns that depend on each other there are no more than rows. */
double		keys_selectivity(double product, double left_distinct, double left_rows, double right_distinct, double right_rows);

}  // namespace gpuvm

#endif
