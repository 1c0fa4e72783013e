/* cost.h: what a program costs, in the planner's units. */
#ifndef GPUVM_PLANNER_COST_H
#define GPUVM_PLANNER_COST_H

#include "pg/pg.h"
#include "store/registry.h"
#include "vm/program.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* A microsecond in the planner's units. */
double		cost_of_us(void);

/* No program of the query level costs less; NULL: of the topmost. */
double		least_cost(const PlannerInfo *root);

/* Putting a map's entry into a job, microseconds. */
constexpr double MAP_ENTRY_US = 0.001;

/* Handing a row to the executor, microseconds. */
constexpr double HAND_OUT_US = 0.018;

/* Finding a group of one program among those of another, microseconds. */
constexpr double MERGE_US = 0.05;

/*
 * How many rows a program hands out is an estimate, and of joins often one that is far too small. What it can do with them
 * itself, sorting or grouping, is as good as PostgreSQL's node above it while that costs less by no more than this factor.
 */
constexpr double AS_GOOD = 1.05;

/* Does a LIMIT that costs so much leave out much of what is below it, which would cost that? Then more rows there are no harm. */
inline bool
ends_early(Cost limited, Cost all)
{
	return limited < 0.9 * all;
}

/* Sorting so many rows, of which the first `limit` (0: all) come out; microseconds. `texts`: by values of variable length, too. */
double		sort_us(double rows, double limit, bool texts);

/* Looking at so many entries of a dictionary, and sorting so many values of one (`ranks`), or of two, in the planner's units. */
double		cost_of_entries(double entries);
double		cost_of_order(double values, Oid collation, bool ranks);

/* Reading what no tablets serve, of which `nwanted` columns are asked for. */
double		cost_of_delta(const DeltaSize &size, int nwanted);

/* Expected rows, of each cursor. */
struct ProgramRows
{
	double		scanned[PROGRAM_MAX_CURSORS];	/* in tablets and deltas */
	double		filtered[PROGRAM_MAX_CURSORS];	/* that pass the relation's own conditions */
	double		pairs[PROGRAM_MAX_CURSORS];	/* behind its Seek or Cross */
	double		joined[PROGRAM_MAX_CURSORS];	/* behind its Match */
	bool		repeated[PROGRAM_MAX_CURSORS];	/* its keys are there several times */
	bool		leaves_out[PROGRAM_MAX_CURSORS];	/* a row of cursor 0 that has no partner here comes to nothing, and one column of it tells */
};

/* A relation that is joined to rows, as far as a search for the order needs to know. */
struct JoinStep
{
	double		outer;			/* rows that look for others */
	double		scanned;
	double		filtered;		/* of them, those that pass the relation's own conditions */
	int			keys;			/* 0: each is met with each */
	double		pairs;
	double		joined;
};

/* What it takes, going through the rows that drive, and handing rows to another program within gpuvmd; microseconds. */
double		join_step_us(const JoinStep &step);
double		driver_us(double scanned);
double		kept_rows_us(double rows, double columns);

/* Sets path->startup_cost, total_cost for a program over these rows that hands out `rows_out`. */
void		cost_program(const PlannerInfo *root, Path *path, const Program *program, const ProgramRows &rows, double rows_out);

}  // namespace gpuvm

#endif
