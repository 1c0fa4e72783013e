/* translation.h: what the files of the translator share. */
#ifndef GPUVM_PLAN_TRANSLATION_H
#define GPUVM_PLAN_TRANSLATION_H

#include "plan/refusals.h"
#include "plan/rel.h"

namespace gpuvm {

struct Translation
{
	int			columns;		/* numbers given */
	int			ids;			/* of definitions */
	List	   *definitions;
	List	   *made;			/* by number - 1: the TargetEntry that makes the column */
	Refusal		refusal;		/* the first one; what is returned after it means nothing */
	bool		volatile_allowed;	/* in what is being translated: nothing but the output is above */
};

/* Where an expression of a query level stands: below its groups, or above them. */
enum Phase { PHASE_ROWS, PHASE_GROUPS };

/* A CTE that is computed once, and its columns. */
struct TranslatedCte
{
	GpuvmRel   *shared;
	List	   *columns;
};

/* A level of the query. */
struct Level
{
	Translation *t;
	Level	   *outer;
	const Query *query;
	Phase		phase;			/* of the expression that is being translated */
	bool		correlated;		/* refers to a level outside of it */
	bool		closed;			/* inside an aggregate of this level, written further in: no join can be put here */
	GpuvmRel  **site;			/* where joins and projections for that expression are put */
	GpuvmRel  **leaves;			/* by number in the range table: the Scan or External that makes columns when asked */
	List	  **columns;		/* likewise, of what has all columns from the start: TargetEntries by position */
	TranslatedCte *ctes;
	List	   *sublink_columns;	/* of the SubLink whose test is being translated */
	GpuvmRel   *group;
	List	   *key_exprs;		/* of the groups: expressions of the query ... */
	List	   *key_values;		/* ... what they are translated to ... */
	List	   *key_columns;	/* ... and their columns, TargetEntries */
	List	   *key_refs;		/* their tleSortGroupRefs in the query */
	GpuvmRel   *window;
	List	   *outputs;		/* TargetEntries of the columns that the level gives */
};

/* -- translate.cc -- */
void		refuse(Translation *t, Refusal refusal);
inline bool
refused(const Level *level)
{
	return level->t->refusal != REFUSED_NOT;
}
Level	   *make_level(Translation *t, Level *outer, const Query *query);
/* The rows of a level. Of EXISTS's nobody asks for columns. */
GpuvmRel   *translate_level(Level *level, bool exists);
TargetEntry *make_column(Translation *t, Node *expr, const char *name);
TargetEntry *column_by_number(const Translation *t, int number);
/* The column that has the value of the translated expression at the site, in a Project if need be. */
TargetEntry *column_of_value(Level *level, GpuvmRel **site, Node *value, const char *name, bool fresh = false);
/* The same of an expression of the query at the level's site. */
TargetEntry *column_of(Level *level, Node *expr, const char *name);

/* -- from.cc -- */
/* FROM and WHERE. */
GpuvmRel   *translate_from(Level *level);
/* A subquery's rows; the TargetEntries of its columns. */
GpuvmRel   *translate_subquery(Level *level, const Query *query, List **columns);
/* Adds conditions above. */
void		add_conditions(Level *level, GpuvmRel **site, Node *quals);
/* A condition that is translated. */
void		add_filter(Level *level, GpuvmRel **site, Node *condition);

/* -- leaves.cc -- */
GpuvmRel   *translate_relation(Level *level, int rti);
/* A column of a relation that gives them when asked for. */
TargetEntry *leaf_column(Level *level, int rti, const Var *var);

/* -- translate_expr.cc -- */
/* Constant subexpressions are folded, what is volatile is refused. */
Node	   *translate_expr(Level *level, Node *expr);
/* Part of an expression, as a mutator of trees has it: not folded yet. */
Node	   *translate_argument(Node *node, Level *level);
/* The same as translate_expr, with another place for joins. */
Node	   *translate_expr_at(Level *level, GpuvmRel **site, Node *expr);

/* -- sublinks.cc -- */
Node	   *translate_sublink(Level *level, SubLink *sublink);
/* A condition that is a SubLink, or the negation of one: true if it has become a join. */
bool		add_sublink(Level *level, SubLink *sublink, bool negated);

/* -- groups.cc -- */
void		add_groups(Level *level, GpuvmRel **rel);
void		add_windows(Level *level, GpuvmRel **rel);
/* What the entry of the target list is above the rows, or groups. */
TargetEntry *column_of_target(Level *level, const TargetEntry *target);
/* A key for a column. */
SortGroupClause *key_of(const SortGroupClause *clause, const TargetEntry *column);
/* What the expression is above the groups, if it is a key; else null. */
Node	   *group_key(Level *level, Node *expr);
Node	   *translate_aggregate(Level *level, Aggref *aggregate);
Node	   *translate_grouping(Level *level, GroupingFunc *grouping);
Node	   *translate_window(Level *level, WindowFunc *function);

/* -- setops.cc -- */
GpuvmRel   *translate_setops(Level *level);

}  // namespace gpuvm

#endif
