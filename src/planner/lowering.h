/*
 * lowering.h: from the algebra of a statement to stages (whole.h): what the lowering*.cc files share.
 *
 * All leaves of all stages, tables and what other stages give, are relations of one planner, numbered through. A column of the
 * algebra is an expression over these (Lowering.values), so a Project is nothing but such expressions.
 */
#ifndef GPUVM_PLANNER_LOWERING_H
#define GPUVM_PLANNER_LOWERING_H

#include "plan/rel.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"

namespace gpuvm {

struct Aggregation;

/* What PostgreSQL evaluates where no program can; each has those before it. */
enum class HoldLevel
{
	Nothing,
	Conditions,					/* and keys and arguments of groups, once for each finer group if that is possible */
	Columns,					/* that any stage reads, for each row */
};

struct Lowering
{
	PlannerInfo *root;			/* of the leaves */
	PlannerInfo *statement_root;
	const GpuvmRel *statement;
	Node	  **values;			/* by column number; NULL: it is not there (yet) */
	int			ncolumns;
	List	   *stages;			/* StageColumns of the leaves that are stages */
	List	   *definitions;	/* SharedRows */
	List	   *shared;			/* paths of the stages that several others read, in the order of their numbers */
	List	   *externals;		/* RangeTblEntrys of tables that are not imported */
	struct JoinBlock *block;	/* whose expressions are being resolved; NULL: no relation can be added */
	const char *reason;			/* why there is no path; the first one */
	/* what PostgreSQL evaluates (lowering_above.cc): */
	const GpuvmRel *last;		/* node of the last stage */
	const GpuvmRel *grouped;	/* node whose rows are being grouped */
	HoldLevel	could_hold;		/* what there is that it could evaluate */
	HoldLevel	hold;			/* what it does if it does not compile */
	bool		may_filter;		/* float_filter.h: may rows be left out in floats before, */
	bool		filters;		/* and are there any that are? */
	List	   *held;			/* conditions of the last stage that are, over the leaves, */
	List	   *grouped_held;	/* and those of rows that are grouped */
	const char *held_reason;	/* why */
	const char *held_node;		/* and what */
	bool		in_arm;			/* an arm of UNION ALL is being lowered */
	bool		rows_last;		/* groups are not the last stage: their rows are, which can be sorted by what is computed of them */
	bool		first_rows;		/* the output of the last stage's rows may not be computed of all of them */
};

/* Relations joined so far: what one program reads. */
struct Piece
{
	ScanShape	shape;
};

/* Inner joins and their conditions, before they are put in an order. */
struct JoinBlock
{
	List	   *items;			/* Pieces */
	List	   *conditions;
	List	   *classes;		/* Lists of expressions that are equal (lowering_order.cc) */
	List	   *bounds;			/* ids of the Bounds that are among the items, and */
	List	   *bound_values;	/* the columns that have their values */
	List	   *held;			/* conditions that are evaluated above (lowering_conditions.cc) */
	List	   *checks;			/* conditions that are true, of what may raise errors for rows that pass all others */
};

/* What the columns of a leaf are made of, for estimates: statistics are of tables. */
struct StageColumns
{
	int			relid;
	List	   *exprs;			/* over tables, as far as that goes; NULL: nothing is known of the column. NIL: of none */
	List	   *shown;			/* CompileCursor.shown */
};

/* Rows that a program makes for another one. */
struct Stage
{
	Path	   *path;
	List	   *columns;		/* ChildColumns */
	List	   *names;
	const List *exprs;			/* that the columns are, over the leaves that it reads */
	List	   *values;			/* what was asked for, over its columns as those of relation 0 (lowering_values.h), */
	List	   *shown;			/* of which some have the display scales of others (CompileCursor.shown) */
	int			ncomputed;		/* so many of the last columns are PostgreSQL's, over what the program gives */
	double		rows;
	int			shared;			/* its number, if it has several readers; else 0 */
};

inline void
note_held(Lowering *l, HoldLevel level)
{
	l->could_hold = Max(l->could_hold, level);
}

/* NULL, having noted the reason. */
Piece	   *lowering_refuse(Lowering *l, const char *reason);

/* -- lowering.cc -- */
/* The rows of a node. */
Piece	   *lower(Lowering *l, const GpuvmRel *rel);
/* An expression of the algebra over the leaves; NULL: refused. */
Node	   *resolve(Lowering *l, const Node *expr);
/* Has it more nodes? */
bool		is_larger_than(Node *expr, int most);
/* Conditions or keys for estimates: over tables, as far as is known. */
List	   *for_estimates(const Lowering *l, const List *exprs);
/* A relation that is no table: what a stage gives; its columns are 1, 2, ... */
Piece	   *piece_of_stage(Lowering *l, const Stage *stage);
/* Conditions on what comes out of the piece. */
void		filter_piece(Lowering *l, Piece *piece, List *quals);
/* The same where it is known that they are the relation's own. */
void		filter_cursor(Lowering *l, ShapeCursor *c, List *quals);
/* PostgreSQL's estimates of groups go by what conditions leave of a relation. */
void		note_rows(Lowering *l, const ShapeCursor *cursor);
/* The rows of the piece with these columns of its relations become those of one relation, wherever they are used from now on. */
Piece	   *materialise(Lowering *l, Piece *piece, const List *vars);
/* The same with the values of a node's columns, which alone are the relation's then: what equals one of them elsewhere, as constants do, is not. */
Piece	   *materialise_columns(Lowering *l, Piece *piece, const List *columns);
/* From now on the expressions are these. */
void		replace_values(Lowering *l, const List *exprs, const List *by);
/* The expression with others in the place of these. */
Node	   *replace_exprs(Node *expr, const List *exprs, const List *by);
/* Which of these, as columns from 1, have the display scales of which (CompileCursor.shown). */
List	   *shown_of_exprs(const Lowering *l, const List *exprs);
/* The values of a node's columns. */
List	   *values_of(const Lowering *l, const List *columns);

/* A leaf among those of the stages. */
RelOptInfo *add_relation(Lowering *l, RangeTblEntry *rte);

/* -- lowering_external.cc -- */
/* The rows of a table that is not imported, a function, or a recursive CTE; of VALUES. */
Piece	   *lower_external(Lowering *l, const GpuvmRel *rel);
Piece	   *lower_values(Lowering *l, const GpuvmRel *rel);
/* planner.cc: PostgreSQL's own plan of a query. */
PlannedStmt *plan_alone(Query *query);

/* -- lowering_shared.cc -- */
/* The rows of a definition, of which its columns have the values then: those of one stage, if they are read several times. */
Piece	   *lower_shared(Lowering *l, const GpuvmRel *definition);

/* -- lowering_joins.cc -- */
/* The rows of a node that is in no block. */
Piece	   *lower_apart(Lowering *l, const GpuvmRel *rel);
Piece	   *lower_block(Lowering *l, const GpuvmRel *rel);
Piece	   *lower_join(Lowering *l, const GpuvmRel *rel);
/* A value that is computed before, as a column of a relation of one row, which is put into the block. */
Node	   *bound_value(Lowering *l, const Param *param);

/* Whether there are rows, as their number. */
Aggref	   *count_of_rows();

/* The relations that were joined. */
Relids		relids_of(const Piece *piece);
/* Puts a relation behind what was joined before. */
Piece	   *append_cursor(Lowering *l, const Piece *outer, const Piece *inner, JoinKind kind, List *on);

/* -- lowering_order.cc -- */
/* The block's items, joined. */
Piece	   *order_block(Lowering *l, JoinBlock *block, const GpuvmRel *rel);
/* The rows of a piece as those of one relation, with what the node gives and the block's conditions read; NULL: refused. */
Piece	   *as_one_relation(Lowering *l, Piece *piece, const GpuvmRel *rel);

/* -- lowering_rows.cc -- */
/* Different values of an expression over all rows of its relations. */
/* Not by an assignment: what computes the value may move the array. */
inline void
set_value(Lowering *l, int number, Node *value)
{
	l->values[number] = value;
}

/* A relation's rows, before any condition. */
double		tuples_of(const Lowering *l, int relid);
double		distinct_values(Lowering *l, const Node *expr);
/* The part of all pairs in which keys, equalities with a relation, hold; and that passes other conditions of a join. */
double		key_selectivity(Lowering *l, List *keys, const Relids inner);
double		condition_selectivity(Lowering *l, List *conditions);
/* The part of the rows that find some of the relation's by these keys. */
double		met_share(Lowering *l, List *keys, const Relids inner, double inner_rows);
double		group_rows(Lowering *l, const List *keys, double rows);

/* -- lowering_union.cc -- */
Piece	   *lower_union(Lowering *l, const GpuvmRel *rel);

/* -- lowering_stages.cc -- */
bool		stage_of_rows(Lowering *l, const Piece *piece, const List *exprs, bool apart, Stage *stage);
/* Values that the columns of these numbers have; NIL, and a reason, where one has none. */
List	   *values_of_numbers(Lowering *l, const List *numbers);
/* A stage of the rows that pass the held conditions: expressions over the piece's columns `raw`, the last ones PostgreSQL's. */
bool		stage_of_computed(Lowering *l, const Piece *piece, List *raw, List *exprs, List *held, Stage *stage);
/* A stage of rows whose columns are these expressions. */
bool		stage_of_columns(Lowering *l, const Piece *piece, List *exprs, Stage *stage);
/* Conditions on the groups that only PostgreSQL can evaluate are asked of them, and the others left. */
Piece	   *lower_group(Lowering *l, const GpuvmRel *rel, List **conditions);
/* Is a subquery's value read? */
bool		has_bound_value(Node *node, void *);
/* The groups of the piece's rows that pass the held conditions: values, and what PostgreSQL computes of the keys. */
bool		stage_of_group_values(Lowering *l, const GpuvmRel *rel, const Piece *piece, const List *values, List *computed,
								  List *held, Stage *stage);
/* The values of its keys. */
List	   *keys_of(const Lowering *l, const GpuvmRel *rel);
/* A number for a column more, with this value. */
int			add_number(Lowering *l, Node *value);
/* A plan that aggregates the piece's rows: the output and HAVING over them, with Aggrefs. The columns that the node makes have values then. */
bool		begin_groups(Lowering *l, const GpuvmRel *rel, Piece **piece);
bool		plan_of_groups(Lowering *l, const GpuvmRel *rel, const Piece *piece, List *exprs, List *having, Aggregation *a, double *ngroups);
/*
 * The program of the piece's rows with these columns and expressions; what is more than a column is computed by it.
 * `hidden`: only to sort by.
 */
bool		plan_of_rows(Lowering *l, const Piece *piece, const List *exprs, List *hidden, ScanPlan *plan);

/* -- lowering_conditions.cc -- */
/* Sides of comparisons that programs do not compute become columns, and other conditions that they do not, held ones. */
bool		hold_conditions(Lowering *l, JoinBlock *block, const GpuvmRel *rel);

/* -- lowering_above.cc -- */
/* Does the expression do nothing but compute, so that its errors can be caught? */
bool		only_computes(Node *expr);
/* Does a program compute it of the piece's rows? If not, held_reason says why. */
bool		is_computed(Lowering *l, const Piece *piece, Node *expr);
/* The expressions over columns of this list, as over the plan's columns of these numbers. */
List	   *over_raw(List *exprs, List *raw);
/* The plan's program gives the raw columns; PostgreSQL evaluates the conditions and the expressions over them. */
void		compute_above(ScanPlan *plan, const Piece *piece, List *raw, List *exprs, List *held);
/* What a program gives of its rows for these expressions, and for the held conditions: columns, and float_filter.h's values. */
List	   *raw_columns(List *exprs, List *held);
/*
 * The piece's rows that pass the held conditions as those of one relation, with the columns that are read in `kept` and
 * what is computed of them: where values, and `also`, read these, they read the relation.
 */
Piece	   *compute_rows(Lowering *l, const Piece *piece, List *kept, List *computed, List *held, List **also = nullptr);
/* The same with those of the node's columns that no program computes. */
Piece	   *compute_columns(Lowering *l, Piece *piece, const GpuvmRel *rel, List *held);
/* Sides of comparisons with other rows that no program computes of the piece's alone, and the rows that have them. */
List	   *unknown_sides(Lowering *l, const Piece *piece, const List *conditions);
Piece	   *compute_sides(Lowering *l, const Piece *piece, const GpuvmRel *rel, const List *sides, List *held,
						  List **conditions);

/* -- lowering_keys.cc -- */
/* Is anything computed that the group is by, or that its aggregates take? */
bool		groups_by_computed(const Lowering *l, const GpuvmRel *rel);
/* Has PostgreSQL compute what no program does for the group, and the held conditions: the piece gives its rows then. */
bool		compute_keys(Lowering *l, const GpuvmRel *rel, List *held, Piece **piece);

/* -- lowering_windows.cc -- */
Piece	   *lower_window(Lowering *l, const GpuvmRel *rel);

}  // namespace gpuvm

#endif
