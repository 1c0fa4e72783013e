/* joins.h: what joins.cc, join_shapes.cc and join_whole.cc share. */
#ifndef GPUVM_PLANNER_JOINS_H
#define GPUVM_PLANNER_JOINS_H

#include "planner/paths.h"

namespace gpuvm {

/* What is known of a relation or a join while a statement is planned. */
struct JoinNote
{
	RelOptInfo *rel;			/* the key: must be first */
	PlannerInfo *root;
	JoinNote   *older;
	bool		usable;			/* there is a shape */
	ScanShape	shape;
	bool		fits;			/* relations: whatever of it is needed above its scan is in tablets (join_whole.cc) */
	/* joins: */
	Cost		startup;		/* of the shape, by its sketch */
	Cost		total;
	bool		aggregated;		/* the join's rows go into an aggregation: */
	ScanShape	grouped;		/* the shape for that, */
	Cost		grouped_total;	/* and what it costs up to there */
	CustomPath *path;			/* of the shape; NULL: not compiled, or not possible */
	bool		refused;		/* the shape does not compile */
	Path	   *alternative;	/* the cheapest so far */
	Cost		cheapest;		/* of PostgreSQL's paths when it was looked for */
	const char *reason;			/* why an order was not possible */
};

JoinNote   *note_of_relation(PlannerInfo *root, RelOptInfo *rel);

/* join_rows.cc: how many times as many pairs a join by these equalities (RestrictInfos) has as PostgreSQL's statistics say; at least 1. */
double		pairs_underestimate(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *equalities, SpecialJoinInfo *sjinfo);

/* How many relations a join has, outer joins themselves (PostgreSQL 16 on) not counted. */
int			count_relations(PlannerInfo *root, RelOptInfo *joinrel);

/* join_shapes.cc: puts the inner relation behind what the outer shape has joined. Returns why it cannot be, or NULL. */
const char *join_shapes(PlannerInfo *root, RelOptInfo *joinrel, const JoinNote *outer, const JoinNote *inner, JoinType jointype,
						JoinPathExtraData *extra, ScanShape *shape);

/*
 * join_shapes.cc: by what means the last relation of a shape is joined, where there is no key: the cheaper one, and what
 * all costs, without compiling it: orders are many. `counted`: nothing above reads the relation, and all of the rows are aggregated.
 */
void		choose_means(PlannerInfo *root, JoinPathExtraData *extra, ScanShape *shape, bool counted, double rows_out, Cost *startup, Cost *total);

/* join_whole.cc: which joins of this query level are to become programs, as far as is known before any order was tried? */
WantedJoins wanted_joins(PlannerInfo *root);

/* join_whole.cc: is there no further relation that the join's program could have? */
bool		is_largest(PlannerInfo *root, RelOptInfo *joinrel);

}  // namespace gpuvm

#endif
