/* paths.h: the kinds of path, made by the hooks in planner.cc. */
#ifndef GPUVM_PLANNER_PATHS_H
#define GPUVM_PLANNER_PATHS_H

#include "pg/pg.h"
#include "planner/cost.h"
#include "vm/program.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "utils/hsearch.h"
}

namespace gpuvm {

struct ImportedTable;
struct CompileCursor;
struct CompileInput;
struct CompiledProgram;
struct PlanMap;
struct ScanPlan;
struct ChildColumn;

/* What a program may scan in place of a relation. */
struct ScanTarget
{
	ImportedTable *table;		/* attribute numbers are the relation's */
	List	   *leaves;			/* OIDs of the live leaves, if it is partitioned; else NIL */
	double		pages;			/* now, and the rows in them: what the tablets do not have is read from the heap */
	double		tuples;
	/* rows of another plan in a table's place: */
	Path	   *child;			/* NULL: it is imported */
	int			shared;			/* the child is the last stage's, for several readers, and has this number; 0: it is its reader's own */
	List	   *columns;		/* scan_plan.h: ChildColumn */
	List	   *names;			/* of the relation's columns */
	List	   *shown;			/* of a stage: which columns have display scales of which (compiler/compile.h) */
};

/*
 * The imported table behind a base relation, or the leaves of a partitioned one
 * as if they were one table; false (and a reason noted) where no program may scan it.
 */
bool		usable_relation(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target);

/* dml.cc: NULL, or why a program cannot find the rows of a relation that the statement changes, locks or may recheck. */
const char *identity_refusal(PlannerInfo *root, RelOptInfo *rel);

/* partitions.cc: the leaves, if all are imported with the same columns. */
bool		describe_leaves(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target, const char **reason, const char **hint);

/*
 * partitions.cc: a relation that got a path of ours is no partitioned one until
 * show_partitions, at the end of its query level. A planner within the planner
 * (for a function that is evaluated) begins with nothing hidden.
 */
struct HiddenScheme;
void		hide_partitions(PlannerInfo *root, RelOptInfo *rel);
void		show_partitions(void);
/* How it is partitioned, hidden or not; NULL: it is not. */
PartitionScheme partition_scheme(const RelOptInfo *rel);
HiddenScheme *begin_hiding(void);
void		end_hiding(HiddenScheme *outer);

/* A relation that a program reads, and how its rows meet those of the ones before it (compiler/compile.h). */
struct ShapeCursor
{
	Relids		relids;			/* one */
	ScanTarget	target;
	List	   *quals;
	double		rows;			/* that pass them */
	/* not of the first: */
	JoinKind	kind;
	List	   *keys;
	List	   *range;
	List	   *conditions;
	List	   *filters;
	double		pairs;			/* with equal keys, or in range */
	double		joined;			/* rows that come out */
	bool		counted;		/* of pairs only the number is wanted: they are not made */
	List	   *differences;	/* of columns, which must not overflow for any pair (band.h) */
};

/* The source of a program: a relation, or relations in the order in which they are joined. */
struct ScanShape
{
	int			ncursors;
	ShapeCursor cursors[PROGRAM_MAX_CURSORS];
	double		rows;			/* that come out: PostgreSQL's estimate, or more (join_rows.cc) */
};

/* What is known of a shape's rows. */
ProgramRows expected_rows(const ScanShape *shape);

/* The relation's entry in the range table. */
RangeTblEntry *entry_of(PlannerInfo *root, const ShapeCursor *cursor);

/* What EXPLAIN calls it. */
const char *alias_of(PlannerInfo *root, const ShapeCursor *cursor);

/* The cursor that has the column, and its number there; NULL: none has it. */
const ShapeCursor *cursor_of(const ScanShape *shape, const Var *var, AttrNumber *attnum);

/* For the compiler. */
CompileCursor compile_cursor(PlannerInfo *root, const ShapeCursor *cursor);

void		shape_of_relation(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target, bool with_pseudoconstant, ScanShape *shape);

/* Conditions as bare clauses, in the order in which PostgreSQL evaluates them. */
List	   *ordered_quals(PlannerInfo *root, const List *conditions, bool with_pseudoconstant);

void		note_reason(PlannerInfo *root, RelOptInfo *rel, const char *what, const char *reason, const char *hint);

/* Is this a path of ours? */
bool		is_gpuvm_path(const Path *path);

/*
 * plan_maps.cc: puts the compiled program into the plan, with what that has to know of
 * dictionaries and numerics. False, with the reason, where it cannot be run so.
 */
bool		plan_compiled(PlannerInfo *root, const ScanShape *shape, const CompiledProgram &compiled, ScanPlan *plan, const char **reason, bool ties = false);

/* plan_maps.cc: making the plan's maps, in the planner's units; their expressions have the query's own numbers for relations yet. */
double		cost_maps(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan);

/* Does the session have such a map from an earlier execution? Set by executor_install. */
using MapCached = bool (*) (Oid relid, const PlanMap *map);
extern MapCached map_cached;

/* Why an earlier execution of the session could not make such a map of a dictionary of the family, or, `untied`, one whose values have ranks of their own; NULL: none has tried, or it could. Set by executor_install. */
using MapFailure = const char *(*) (uint64 family, const PlanMap *map, bool untied);
extern MapFailure map_failure;

/* paths.cc: the reason, if what the tablets do not have of a relation is expected to take more memory than an execution allows it. */
const char *delta_failure(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan);

/* plan_maps.cc: the same, or that one of the plan's maps is known to fail. */
const char *known_failure(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan);

/* plan_maps.cc: can it be grouped by codes? False, with the reason. */
bool		is_dictionary_key(Node *key, Oid eqop, const char **reason);

/* alternative.cc: PostgreSQL's cheapest path for the relation, of those that can stand below a custom scan and have the keys: a copy, or NULL. `of_ours`: that of a path of ours is one, too. */
Path	   *alternative_path(RelOptInfo *rel, List *pathkeys = NIL, bool of_ours = false);

/* Is the relation, or join, all that the query level reads? Children of a table that is, too. */
bool		is_all_of_query(PlannerInfo *root, RelOptInfo *rel);

/*
 * A path for the relation's (or join's) rows; NULL, and a reason noted, if something does not compile. `hidden`: what they are to
 * be sorted by and is no column of them, under these collations.
 */
CustomPath *make_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanShape *shape, Path *alternative, List *hidden = NIL, List *collations = NIL);

void		offer_path(RelOptInfo *rel, CustomPath *path);

/* subqueries.cc: notes in the plan which parameters of its programs are of subqueries that may raise an error. */
void		find_loud_subqueries(PlannerInfo *root, ScanPlan *plan);

/* Adds a path that filters the relation, if all of its quals compile; did it? */
bool		add_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target);

/* joins.cc: adds a path that joins, if the join is one that programs can express. */
void		add_join_path(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType jointype,
						  JoinPathExtraData *extra);

/* joins.cc: adds the path for the join of all relations; was there one? */
bool		offer_whole_join(PlannerInfo *root, RelOptInfo *joinrel);

/* joins.cc: how the join is made by a path of ours; NULL if none can. */
const ScanShape *shape_of_join(RelOptInfo *joinrel);

/* joins.cc: notes why joins of this query level stay with PostgreSQL, once all were tried. */
void		note_joins(PlannerInfo *root);

/*
 * joins.cc: the same for a join above which PostgreSQL has a one-time condition: for that one (since 15.4) it asks nobody
 * for paths. Ours evaluate the condition; the orders are those of PostgreSQL's own paths.
 */
void		add_gated_join(PlannerInfo *root, RelOptInfo *joinrel);

/* joins.cc: what is known of joins belongs to one planner; another within it begins anew. Lives where the planner does. */
struct JoinNote;
enum class WantedJoins
{
	Whole,						/* that of all relations, */
	Largest,					/* those of as many as go, */
	All,						/* or any */
};
/* subqueries.cc: which subqueries were asked whether they may raise, and which may not, by the numbers of their plans. */
struct SubqueryNotes
{
	MemoryContext context;
	Bitmapset  *asked;
	Bitmapset  *quiet;
};
/* Of this planner; NULL: there is none. */
SubqueryNotes *subquery_notes();
struct JoinNotes
{
	MemoryContext context;
	SubqueryNotes subqueries;
	HTAB	   *table;			/* RelOptInfo * to JoinNote */
	JoinNote   *newest;
	List	   *tables;			/* ImportedTable, each described once, and their OIDs */
	List	   *relids;
	PlannerInfo *wanted_root;	/* the query level asked last, and the answer */
	WantedJoins	wanted;
	double		missed_share;	/* how many times as much as it seems PostgreSQL's cheapest path costs beside the last of ours, for rows that it does not expect (missed_cost) */
};
JoinNotes  *begin_joins(JoinNotes *mine);
void		end_joins(JoinNotes *outer);

/* The table as the planner met it first; NULL: it is not imported. */
ImportedTable *described_table(Oid relid, Oid named, const RelOptInfo *rel);

/* How many times as many rows the relation has as PostgreSQL expects (join_rows.cc); 1: as many, or nothing is known. */
double		rows_missed(const RelOptInfo *rel);
void		note_missed_share(double share);

/* -- paths.cc: what a path of any kind is made of ---------------------------------------- */

void		fill_input(PlannerInfo *root, const ScanShape *shape, CompileInput *input);

/* What the plan says of its cursors. */
void		fill_cursors(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan);

/* A copy of expression trees in which relations have their cursors' numbers, from 1, and operators know their functions. */
List	   *detached(List *exprs, const ScanShape *shape);

/*
 * Blocks that no tablets serve are read from the heap; what changes later is
 * known when the plan runs. Sets the plan's delta_cost and pairs, and the rows that its programs read.
 */
void		plan_delta(ScanPlan *plan, const ScanShape *shape, ProgramRows *rows);

/* fetch.cc: notes from which relations the plan's rows have something that is fetched from the heap, and what that costs for so many rows. */
void		plan_fetches(const ScanShape *shape, ScanPlan *plan);
Cost		fetch_cost(PlannerInfo *root, const ScanPlan *plan, double rows, bool in_order);

/* Costs the plan's maps, and lets them forget the query's numbers for relations. */
double		detach_maps(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan);

/* map_cost: of what is made before the programs start. The shape may be NULL: it has no children, then. */
CustomPath *make_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, const ScanShape *shape, Path *alternative, ScanPlan *plan, const ProgramRows &rows,
					  double rows_out, double map_cost);

/* -- groups.cc: aggregations --------------------------------------------------------------- */

/* Adds a path that filters or joins, and aggregates by the clauses of GROUP BY or DISTINCT, whose expressions `tlist` has, to the target, if everything compiles. */
void		add_groups_path(PlannerInfo *root, RelOptInfo *rel, const ScanShape *shape, RelOptInfo *grouped_rel, PathTarget *target, List *tlist,
							List *clause, List *having);

}  // namespace gpuvm

#endif
