/*
 * whole.h: plans for whole statements (gpuvm.whole_query).
 *
 * The algebra of the statement becomes stages, programs each of which reads tables and what other stages gave, and the last of
 * which gives the statement's rows. They are one path beside PostgreSQL's for the whole statement, with the cheapest of these
 * as its alternative: whatever stands in the way of any stage leads there, before the first row.
 */
#ifndef GPUVM_PLANNER_WHOLE_H
#define GPUVM_PLANNER_WHOLE_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

struct GpuvmRel;

/* A statement that may be run in stages, and what has come of it while it was planned. */
struct WholeStatement
{
	const Query *query;			/* as it was before it was planned */
	int			level;			/* 0: the outermost, else the number of one below (levels.cc) */
	GpuvmRel   *algebra;		/* of the query, where it was looked at */
	bool		cheap;			/* PostgreSQL's plan costs less than the start of a program */
	bool		made;			/* there is a path of stages, */
	bool		several;		/* of more programs than one, */
	bool		external;		/* which read tables that are not imported */
};

/*
 * INSERT ... SELECT as it is planned with stages (levels.cc): a copy, below which the SELECT, `whole`, stays a level.
 * NULL: it has none.
 */
Query	   *insert_with_level(const Query *parse, WholeStatement *whole);

/*
 * A copy of a statement that has no stages of its own, with the levels below that may have some: a list of
 * WholeStatements. NULL: there are none.
 */
Query	   *with_levels(const Query *parse, List **levels);

/* The one that this level is; NULL: none. */
WholeStatement *whole_of_level(const List *levels, const PlannerInfo *root);

/* Adds the path to the level's final ones. `input`: what LIMIT is above; `sorts`: the last stage may sort. */
void		add_whole_path(PlannerInfo *root, WholeStatement *whole, RelOptInfo *input, RelOptInfo *final_rel,
						   const FinalPathExtraData *extra, bool sorts);

/* Is a scan of ours in the plan? */
bool		has_gpuvm_scan(const PlannedStmt *stmt);

/* Is it a plan of stages, below Sort and Limit? */
bool		is_whole_plan(const PlannedStmt *stmt);

/* PostgreSQL's own plan beside its stages. */
Plan	   *alternative_of_stages(const PlannedStmt *stmt);

/* Does more of it than the alternative of a plan of stages read the values of subqueries? */
bool		runs_subplans(const PlannedStmt *stmt);

/* Is one program all of it, but for Sort, Limit and the output? */
bool		is_one_program(const PlannedStmt *stmt);

}  // namespace gpuvm

#endif
