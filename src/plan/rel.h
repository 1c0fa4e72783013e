/*
 * rel.h: the algebra of whole statements.
 *
 * A tree of GpuvmRel nodes. Columns have identities: a number that is unique in
 * the statement, given by the node that makes the column and kept by all nodes
 * above that hand it on. An expression is PostgreSQL's node tree, in which
 * Var(varno = IR_VAR, varattno = number) is a column. There are neither
 * PlaceHolderVars nor nulling relids: an expression sees the values at the place
 * where it stands, so above an outer join a column may be null that was not below.
 *
 * Nodes are palloc'd, and copied, compared, written and read as PostgreSQL's are.
 */
#ifndef GPUVM_PLAN_REL_H
#define GPUVM_PLAN_REL_H

#include "pg/pg.h"

extern "C" {
#include "nodes/bitmapset.h"
#include "nodes/extensible.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
}

namespace gpuvm {

/* varno of a column, whose number is the varattno. Small, so that sets of varnos are. */
constexpr int IR_VAR = 1001;
/*
 * varno of what a leaf, Union or SetOp itself has, in the expressions of its columns: an attribute of a
 * Scan's relation, the nth column of Values' rows, of an External query, of each arm.
 */
constexpr int IR_OWN = 1002;
/* A column's number is a varattno. */
constexpr int MAX_COLUMNS = PG_INT16_MAX;

/* Fields that are used, beside inputs and columns. */
enum RelOp
{
	REL_STATEMENT,				/* definitions; columns in the order of the output */
	REL_SHARED,					/* definition, read by Sets: id; its columns are the input's */
	REL_BOUND,					/* definition: Param(PARAM_EXEC, id) is the column of its row; null if there is none */
	REL_SCAN,					/* rte, leaves */
	REL_SET,					/* id: the rows of a Shared; its own columns, each made of IR_VAR of the Shared's */
	REL_VALUES,					/* rows */
	REL_EXTERNAL,				/* query: computed by PostgreSQL; refers to nothing outside of itself */
	REL_FILTER,					/* quals, barrier */
	REL_PROJECT,				/* columns made of expressions over the input's */
	REL_JOIN,					/* join, quals, reduces */
	REL_GROUP,					/* keys, sets; columns that it makes are Aggrefs and GroupingFuncs */
	REL_WINDOW,					/* windows; columns that it makes are WindowFuncs */
	REL_SORT,					/* keys, offset, count, ties; without keys a LIMIT */
	REL_UNION,					/* UNION ALL: arms */
	REL_SETOP,					/* setop, arms: different rows */
};

/*
 * The right input may refer to columns of the left one: then the join is a
 * dependent one (rel_is_dependent), whatever its kind.
 */
enum RelJoin
{
	RELJOIN_INNER,
	RELJOIN_LEFT,
	RELJOIN_FULL,				/* quals see both sides, none refers to the other */
	RELJOIN_SEMI,				/* rows of the left with some row of the right for which the quals hold */
	RELJOIN_ANTI,				/* ... with none: where all compare false or null */
	RELJOIN_MARK,				/* all rows of the left, and a boolean: see rel_mark */
	RELJOIN_SINGLE,				/* a left join; an error if a row meets more than one */
};

enum RelSetOp
{
	RELSETOP_INTERSECT,
	RELSETOP_EXCEPT,
};

struct RelFacts;

struct GpuvmRel
{
	ExtensibleNode node;
	int			op;				/* RelOp */
	List	   *inputs;			/* GpuvmRels */
	/*
	 * TargetEntries: resno is the column's number, resname its name, the expression what it is made of; of a column
	 * that is handed on IR_VAR with that number (rel_hands_on). Their order matters in a Statement only.
	 */
	List	   *columns;
	List	   *quals;			/* conditions, all of which must hold */
	bool		barrier;		/* Filter: of the conditions above only leakproof ones may be evaluated below */
	int			join;			/* RelJoin */
	bool		reduces;		/* Join: a semijoin that takes out what comes to nothing above; rows are the same without it */
	List	   *keys;			/* SortGroupClauses, whose tleSortGroupRef is a column's number in the input */
	List	   *sets;			/* grouping sets: IntLists of such numbers; NIL if the keys are all */
	List	   *windows;		/* WindowClauses, their partitions and orders like keys */
	Node	   *offset;			/* of bigint, without columns; null for none */
	Node	   *count;
	bool		ties;			/* FETCH FIRST ... WITH TIES */
	int			setop;			/* RelSetOp */
	List	   *arms;			/* for each input an IntList: the numbers of its columns that are columns 1, 2, ... */
	List	   *rows;			/* Lists of expressions without columns */
	Node	   *query;
	RangeTblEntry *rte;
	List	   *leaves;			/* OIDs of a partitioned table's leaves; NIL if it is none */
	int			id;				/* Shared, Set, Bound */
	List	   *definitions;	/* Statement: Shareds and Bounds; each refers only to those before it */
	int			last_number;	/* Statement: of its columns */

	RelFacts   *facts;			/* derived; neither copied nor written (facts.h) */
};

/* Makes the type known to PostgreSQL; called once when the library is loaded. */
void		rel_register(void);

GpuvmRel   *rel_make(RelOp op, List *inputs = NIL, List *columns = NIL);

inline bool
is_rel(const void *node)
{
	return node != nullptr && IsA(node, ExtensibleNode) &&
		strcmp(static_cast<const ExtensibleNode *>(node)->extnodename, "GpuvmRel") == 0;
}

inline GpuvmRel *
rel_input(const GpuvmRel *rel, int n = 0)
{
	return static_cast<GpuvmRel *>(list_nth(rel->inputs, n));
}

/* The number of a column, if the expression is one; 0 if not. */
inline int
rel_column_of(const Node *expr)
{
	return expr != nullptr && IsA(expr, Var) && static_cast<int>(((const Var *) expr)->varno) == IR_VAR
		? ((const Var *) expr)->varattno : 0;
}

/* Does the entry hand on a column of an input, not make one? */
inline bool
rel_hands_on(const TargetEntry *column)
{
	return rel_column_of((const Node *) column->expr) == column->resno;
}

/* A number for one more column of the statement. */
inline int
rel_next_number(GpuvmRel *statement)
{
	if (statement->last_number == MAX_COLUMNS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a statement has too many columns")));
	return ++statement->last_number;
}

/* The column with this number, or null. */
TargetEntry *rel_find(const GpuvmRel *rel, int number);
/* A reference to the column. */
Var		   *rel_var(const TargetEntry *column);
/* An entry that hands it on. */
TargetEntry *rel_hand_on(const TargetEntry *column);
/* The column that a mark join makes: is it true for a row of the right? Null: for none, but null for some. */
TargetEntry *rel_mark(const GpuvmRel *join);

/* The number, in the input, of what the arm of a Union or SetOp has for its column. */
inline int
rel_arm_column(const GpuvmRel *rel, int arm, const TargetEntry *column)
{
	return list_nth_int(static_cast<List *>(list_nth(rel->arms, arm)), ((const Var *) column->expr)->varattno - 1);
}

/* A Shared of these rows, with an id that none of these definitions has; it is added to none. */
GpuvmRel   *rel_share(GpuvmRel *rows, const List *definitions);

/* A bigint. */
Node	   *rel_bigint(int64 value);

/* The input's rows, to be numbered in this order in each partition; the column is the caller's to add. */
GpuvmRel   *rel_number_rows(GpuvmRel *input, List *partition, List *order, WindowFunc **row_number);

/* Numbers of its columns; of all columns that the expression (or a list) refers to. */
Bitmapset  *rel_numbers(const GpuvmRel *rel);
Bitmapset  *rel_columns_in(const Node *expr);

/* Calls the function for each expression of the node alone; it may change the expression where it stands. */
using RelExpression = void (*)(Node **expr, void *context);
void		rel_each_expression(GpuvmRel *rel, RelExpression visit, void *context);

}  // namespace gpuvm

#endif
