/*
 * scan_plan.h: what a Custom Scan (GpuVM) carries from planning to execution.
 *
 * Kept as a list of nodes in custom_private, so that plans can be copied and
 * cached. setrefs does not touch it: Vars in conditions and `keys` have the number of the program's cursor, from 1,
 * as varno and attribute numbers of its relation (for a partitioned table its own), Vars in `exprs` and `having` have
 * varno 1 and number the raw columns of a group (keys, then aggregates, then GROUPING()s).
 */
#ifndef GPUVM_PLANNER_SCAN_PLAN_H
#define GPUVM_PLANNER_SCAN_PLAN_H

#include "compiler/maps.h"
#include "compiler/text_match.h"
#include "engine/abi.h"
#include "pg/pg.h"
#include "pg/value_form.h"
#include "vm/program.h"

extern "C" {
#include "executor/execdesc.h"
#include "tcop/dest.h"
#include "commands/explain.h"
#include "nodes/extensible.h"
#include "nodes/pg_list.h"
}

namespace gpuvm {

enum ScanPlanKind
{
	SCAN_ROWS,					/* a filter: rows of the relation, or of a join */
	SCAN_GROUPS,				/* a filter, or a join, and an aggregation */
};

/* Where the parts begin in a list of ScanPlan.finals. */
constexpr int FINAL_PARTS = 2;

/* What one cursor of the program reads. */
struct PlanCursor
{
	Oid			relid;			/* for a partitioned table the leaves are read, in its place */
	List	   *leaves;			/* OIDs, or NIL */
	List	   *quals;
	const char *alias;
	/* of the second and third (compiler/compile.h): */
	JoinKind	kind;
	List	   *keys;
	List	   *range;
	List	   *conditions;
	List	   *filters;
	/* rows that another plan gives, in the place of a table's: */
	int			child;			/* its number among the node's custom_plans; 0: it is an imported table; negative: -1 and so on are the statement's shared stages */
	List	   *columns;		/* what it gives (ChildColumn), each an int list */
	List	   *names;			/* of all columns of the relation, by their numbers */
};

/* A column of the rows that a child gives: in which form a program reads it. */
struct ChildColumn
{
	AttrNumber	attnum;			/* the relation's */
	Type		type;
	ValueForm	form;
	int			scale;			/* of numerics, */
	bool		wide;			/* of more than 64 bits */
	Oid			pg_type;
	int32		typmod;
	Oid			collation;
};

/* A column's name. */
char	   *plan_column_name(const PlanCursor *cursor, AttrNumber attnum);

List	   *child_column_to_list(const ChildColumn &column);
ChildColumn child_column(List *list);

/*
 * A program over the plan's cursors, all that follows is of groups. One execution runs all parts, one after the
 * other. A grouping set each has parts of its own; those of one set have the same keys, and their groups are put
 * together by these: plain aggregates in one, those of each DISTINCT argument in another.
 */
struct PlanPart
{
	const Program *program;
	const Program *stage;		/* reads the groups of `program` (engine/abi.h), or NULL */
	const Program *group_filter;	/* likewise: hands on those that pass a part of HAVING, all columns as they are, but sums in 64 bits; or NULL. Never beside a stage */
	int			noutputs;
	OutputForm	outputs[PROGRAM_MAX_COLUMNS];	/* of each result column of the last program (groups: keys, then the VM's aggregates) */
	int			set;			/* parts of one follow each other */
	bool		count_groups;	/* the one result column is the number of groups */
	List	   *keys;			/* what `program` groups by */
	List	   *filter;			/* conditions of this part alone */
	List	   *key_columns;	/* the raw column, from 0, of each of the last program's keys */
	List	   *finals;			/* for each PostgreSQL aggregate, int list: FinalKind, extra, the result column of each part (compiler/compile.h) */
	List	   *final_columns;	/* the raw column of each */
	List	   *groupings;		/* ints: what the last raw columns, the GROUPING()s, are for the set */
	/* of ties (compiler/compile.h), which stand behind the parts that give the groups of the same set: */
	bool		is_ties;
	bool		ties_last;		/* of an extreme the last row counts, else the first */
	bool		ties_all;		/* it runs whatever the values are */
	int			ties_cursor;	/* whose rows are found */
	List	   *ties_columns;	/* raw columns of the extremes that it is for; NIL: it is for the keys */
	double		stage_rows;		/* while planning: groups that the stage, the filter, or else HAVING is expected to read; 0: as many as come out */
};

/* The program that reads the groups, if there is one. */
inline const Program *
second_program(const PlanPart *part)
{
	return part->stage != nullptr ? part->stage : part->group_filter;
}

/* What rows come out sorted by (engine/abi.h). */
struct PlanOrderKey
{
	int			column;			/* of the last program's results */
	int			flags;			/* ORDER_* */
	int			map;			/* ORDER_RANKS: the number of the map; ORDER_TEXT: of the text order; else -1 */
	int			target;			/* the column of the node's output, from 0, that it is; -1 and below: of ScanPlan.hidden, from its first on */
};

struct ScanPlan
{
	int			kind;			/* ScanPlanKind */
	int			ncursors;
	PlanCursor	cursors[PROGRAM_MAX_CURSORS];
	int			nparts;
	int			nties;			/* programs of ties, behind those */
	PlanPart   *parts;			/* rows: one */
	List	   *params;			/* expressions of the programs' Variables */
	List	   *attnums;		/* rows of one relation: attribute number of each result column but the last (row position) */
	List	   *counts;			/* groups: raw columns that are 0 where a part does not have the group; others are null */
	List	   *raw_types;		/* groups (and rows with `exprs`): OIDs of the raw columns */
	List	   *raw_typmods;
	List	   *raw_collations;
	List	   *exprs;			/* groups: the output columns over the raw columns */
	List	   *having;			/* groups, and the rows of the last stage: qual over the raw columns, */
	List	   *filtered;		/* of which clauses with these numbers are the group filter's, */
	List	   *filter_quals;	/* the same over the cursors, for EXPLAIN */
	int			nmaps;
	PlanMap		maps[MAX_MAPS];	/* by the numbers that Lookup has; Vars as in conditions */
	int			npatterns;
	PlanPattern patterns[PROGRAM_MAX_PATTERNS];	/* by the numbers that TextMatch has */
	PlanTextOrders text_orders;	/* by the numbers that MinText, MaxText and sort keys have */
	List	   *scales;			/* of the numeric columns that the program reads, int lists: cursor, attribute number, scale, whether it is wide, and may be NaN or infinite */
	List	   *variables;		/* the columns of variable length that it reads, int lists: cursor, attribute number */
	List	   *differences;	/* of columns, which must not overflow: int lists: cursor, attribute number, cursor, attribute number, bytes of the result */
	bool		hides_rows;		/* a policy hides rows of a dictionary whose values may be equal without being the same: what is done must not tell whether they are */
	bool		soft_errors;	/* a flag that a program sets need not be an error in PostgreSQL (numerics, fields of dates) */
	double		delta_cost;		/* the part of the plan's cost that is for reading what the tablets do not have, */
	double		delta_io;		/* and of that, for its blocks */
	double		pairs;			/* joins: expected of all */
	double		limit;			/* no more rows than so many are asked for; 0: all may be. Of groups only with an order */
	int			norder;			/* 0: rows come in any order; else there is one part */
	PlanOrderKey order[JOB_MAX_ORDER];
	List	   *fetches;		/* rows: the cursors of which the output has what is fetched from the heap, int lists: cursor, pages */
	List	   *hidden;			/* rows: what they are sorted by and is no column of the output; result columns behind those */
	List	   *loud_subqueries;	/* numbers of parameters, of subqueries that may raise an error, */
	List	   *late_subqueries;	/* and of such that only PostgreSQL's plan can ask for */
	double		fraction;		/* of the rows, that will be fetched: less than 1 under LIMIT, EXISTS, or a cursor */
	/* stages (lowering.h): */
	bool		stage;			/* its rows are for another program alone, and it has no alternative: that one has */
	bool		whole;			/* the last: its rows are the statement's. Of rows: exprs are the output over the program's columns, which are the raw ones */
	List	   *names;			/* of a stage's columns */
	List	   *windows;		/* of a stage: window functions, whose columns are behind the program's (plan_windows.h), */
	List	   *window_values;	/* and the expressions without columns that they are given */
	int			nshared;		/* of the last one: so many of its custom_plans, behind its own children, are stages that several programs read, each of the later ones too */
};

List	   *scan_plan_to_list(const ScanPlan *plan);
ScanPlan   *scan_plan_from_list(List *list);

/* What only one number of the list is asked for. */
double		scan_plan_delta_cost(const List *list);
double		scan_plan_delta_io(const List *list);

/* One more part of the plan; the first of ties is behind the last of all others. */
PlanPart   *scan_plan_add_part(ScanPlan *plan, bool ties = false);

/* How many programs there are, those of ties included. */
inline int
program_count(const ScanPlan *plan)
{
	return plan->nparts + plan->nties;
}

/* Are rows those of one table, so that their last column says where each is? */
inline bool
gives_positions(const ScanPlan *plan)
{
	return plan->kind == SCAN_ROWS && plan->ncursors == 1 && plan->cursors[0].child == 0;
}

/* The ties that say which value the part's result column is to show of those that share the rank; -1: there are none, though there may be such values. -2: it shows none. */
constexpr int NO_TIES = -1;
constexpr int SHOWS_NO_RANK = -2;
int			ties_of_column(const ScanPlan *plan, const PlanPart *part, int column);

/* May values be equal without being the same, so that they share a rank? */
bool		may_be_tied(const PlanMap *map);

/* Is the map that of a column that is shown, and has no ties? */
bool		shown_without_ties(const ScanPlan *plan, int map);

/* Is one of the plan's? */
bool		shows_without_ties(const ScanPlan *plan);

/* Is this plan node one of ours? */
bool		is_gpuvm_scan(const Plan *plan);

/* Set by executor_install, before any planning. */
extern const CustomScanMethods *gpuvm_scan_methods;
/* Of rows that PostgreSQL gives to stages (executor/external.cc). */
extern const CustomScanMethods *gpuvm_external_methods;

}  // namespace gpuvm

#endif
