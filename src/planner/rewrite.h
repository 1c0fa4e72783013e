/* rewrite.h: subqueries written as joins, so that programs can run them; and what the files that do so share. */
#ifndef GPUVM_PLANNER_REWRITE_H
#define GPUVM_PLANNER_REWRITE_H

#include "pg/pg.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
}

namespace gpuvm {

/* Is there a subquery in the statement that could be rewritten, and an imported table? Nothing is changed. */
bool		has_rewritable(Query *parse, int cursor_options);

/* A cursor whose rows are those of one table's scan, of one of several tables below UNION ALL? WHERE CURRENT OF looks for that scan. */
bool		has_current_row(Query *parse, int cursor_options);

/* In how many ways a query is written that can be rewritten. */
enum class Rewrite
{
	Joins,						/* subqueries as joins; */
	Reduced,					/* those that are grouped for those keys alone that are asked for, where that is known; */
	Inlined,					/* CTEs that are read several times as subqueries; */
	Grouped,					/* groups by keys that no program computes as groups of groups by their columns */
};
constexpr Rewrite REWRITES[] = {Rewrite::Joins, Rewrite::Reduced, Rewrite::Inlined, Rewrite::Grouped};

/* Rewrites what can be, at all query levels, in place: was there anything that this way alone has? */
bool		rewrite_subqueries(Query *parse, Rewrite way);

/* Is a scan of ours in the plan? */
bool		has_gpuvm_scan(const PlannedStmt *stmt);

/* Does PostgreSQL aggregate, group or make rows different in it? */
bool		has_aggregation(const PlannedStmt *stmt);

/* -- one query level ------------------------------------------------------------------------- */

struct RewriteLevel
{
	Query	   *query;
	bool		topmost;
	bool		reduce;
	bool		reduced;		/* out */
	List	   *conditions;		/* that every row of it meets: of WHERE and of inner joins */
	List	   *from;			/* grouped subqueries to join, */
	List	   *quals;			/* and how, with the rest of WHERE */
	List	   *outer_joins;	/* those to left-join: JoinExpr without their left side */
	List	   *outer_quals;	/* conditions above these */
};

/* rewrite_scalar.cc: correlated aggregates of WHERE and the target list become joins with grouped subqueries. */
bool		rewrite_scalars(RewriteLevel *level);

/* By which equalities a subquery depends on the level around it. */
struct Correlation
{
	List	   *stays;			/* conditions without the outer level */
	List	   *equal;			/* OpExpr with the outer level; and its sides: */
	List	   *inner;
	List	   *outer;			/* in the outer level's numbers */
};

/* A subquery of one row of aggregates, that can be grouped by what it is correlated by. */
struct Scalar
{
	Query	   *body;
	Node	   *value;			/* over its aggregates, and the outer level's columns */
	List	   *aggs;			/* those that differ */
	Correlation by;
};
/* What becomes of its aggregates: those of no rows, columns of an inner join's groups, or of a left join's. */
enum class GroupedAs { Empty, Joined, LeftJoined };

/* Is it one? It is not changed. */
bool		analyse_scalar(const RewriteLevel *level, Query *body, Node *value, Scalar *s);
/* The subquery, grouped, joins the level's range table; returns its number there. */
int			add_grouped(RewriteLevel *level, const Scalar *s);
/* The equalities that it was correlated by, now with its columns, of this number. */
List	   *join_conditions(const Scalar *s, int rtindex);
/* The last entry of the range table, as the inner side of a left join, which is the next entry. */
JoinExpr   *left_join(RewriteLevel *level, const Scalar *s, int rtindex);
/* The value at the outer level. */
Node	   *outer_value(const Scalar *s, GroupedAs by, int rtindex, int join_rtindex);

/* rewrite_lateral.cc: LATERAL subqueries of one row of aggregates become left joins with groups, those of groups and first rows joins; were there any? */
bool		rewrite_laterals(RewriteLevel *level);

/* rewrite_reduce.cc: conditions of the subquery that keep only keys which the level's rows have; as many as can be found. `equal`: of OpExpr, inner = outer. */
List	   *reducing_conditions(const RewriteLevel *level, List *equal, List *inner, List *outer);

/* rewrite_not_in.cc: a NOT IN without NULLs as NOT EXISTS; NULL if it is none. */
Node	   *rewrite_not_in(const RewriteLevel *level, Node *condition);

/* rewrite_not_in.cc: is the query's expression never null, in rows that meet the conditions? */
bool		is_not_null(Query *query, List *conditions, Node *node);

/* rewrite_in.cc: a join that a value is IN (by these tests) gives each value once; was it that? */
bool		rewrite_in(const Query *query, Node *condition);
bool		make_distinct_member(Query *body, List *tests);

/* rewrite_in.cc: relations, or a join, of which nothing but the rows' values is asked for? */
bool		is_plain_query(Query *body);
bool		is_plain_join(Query *body);

/* rewrite_exists.cc: EXISTS, or NOT EXISTS, over a join as one over its different keys; NULL if it is none. */
Node	   *rewrite_exists(const RewriteLevel *level, Node *condition);

/* rewrite_compare.cc: a comparison with ALL or ANY values of a subquery that depends on the row as NOT EXISTS or EXISTS; NULL if it is none. */
Node	   *rewrite_comparison(const RewriteLevel *level, Node *condition);

/* rewrite_counts.cc: does PostgreSQL make a join of the condition, as it stands? */
bool		is_joined_by_planner(const Node *condition);

/* rewrite_counts.cc: the INs of a condition where null is as good as false. */
List	   *members_in(Node *condition);

/* rewrite_counts.cc: EXISTS and IN as subqueries of one value, 0 < count(*); NULL if the subquery is more than a join with conditions. */
SubLink    *exists_count(const SubLink *exists);
SubLink    *member_count(const SubLink *member);

/* rewrite_counts.cc: a copy of a subquery's test with what its columns are computed from; `targets`: its target list. */
Node	   *with_columns(Node *test, void *targets);

/* rewrite_correlation.cc: does it depend by such alone, by one at least? The subquery is not changed. */
bool		split_correlation(const RewriteLevel *level, Query *body, Correlation *by);

/* rewrite_correlation.cc: are values that the operator finds equal to one value always of one group, and of no two? */
bool		is_group_equality(const OpExpr *op, Node *inner);

/* rewrite_scalar.cc: groups by the entry, under this number. */
SortGroupClause *group_by(TargetEntry *entry, Index ref);

/* rewrite_setop.cc: INTERSECT and EXCEPT as joins; was it that? Only these are looked at: */
bool		rewrite_setop(Query *query);
bool		is_rewritable_setop(const Node *node);
bool		is_except(const Node *node);

/* rewrite_setop.cc: only different rows are wanted, by the keys of ORDER BY first, as the parser has it. */
void		add_distinct(Query *query);

/* rewrite_union.cc: UNION below ORDER BY as one whose arms are sorted; was it that? Only these are looked at: */
bool		rewrite_union(Query *query);
bool		is_rewritable_union(const Query *query);

/* rewrite_cte.cc: CTEs of the query become subqueries; were there any? Only these are looked at: */
bool		rewrite_ctes(Query *query);
bool		is_inlinable_cte(const CommonTableExpr *cte);

/* rewrite_cte.cc: are equal values of the two the same (is_exact, plan/two_steps.h), being of one type? */
bool		are_exact(Node *a, Node *b);

/* The inner query, with its target list, takes the query's relations over and is the only one that the query reads. */
void		read_subquery(Query *query, Query *inner, const char *name);

/* rewrite_keys.cc: groups by what no program computes as groups of groups; was it that? Only these are looked at: */
bool		rewrite_keys(Query *query);
bool		has_unknown_keys(const Query *query);

/* rewrite_keys.cc: to_char(x, 'YYYY-MM') as that of the day's beginning, which has fewer values. Is it such one? */
Node	   *with_coarser_times(Node *expr);
bool		is_beginning(const Node *node);

/* -- rewrite_reads.cc --------------------------------------------------------------------------- */

/* Which query levels an expression, or list, reads: the one that it stands in, the next one, further ones. */
struct LevelsRead
{
	int			depth;
	bool		own;
	bool		outer;
	bool		further;
};
LevelsRead	levels_read(Node *node);

/* The same of a subquery: `own` is its own level. */
LevelsRead	levels_read_by(Query *query);

/* A condition's parts, ANDs resolved. */
List	   *conjuncts(Node *quals);

/* What all rows that come out of a join tree meet. */
List	   *conditions_of(Query *query);

/* Is the relation in the join tree, and if so: may an outer join make a row of NULLs of it? */
bool		finds_relation(Node *jointree, int varno, bool *nulled);

/* Does the expression of this level read columns of its subqueries that may raise an error where they are computed? */
bool		reads_loud(const Query *query, Node *node);

/* May conditions of the statement raise an error, at whatever level PostgreSQL puts them? */
bool		has_loud_conditions(const Query *topmost);

/* -- rewrite_quiet.cc: what never raises an error, whatever rows it meets ------------------------- */

/* A copy, constants evaluated; NULL where that raises an error: the statement may never come to it. */
Node	   *folded(Node *node);

bool		is_quiet(Node *node);
bool		is_quiet_function(Oid function, List *args, Oid collation);

/* Also whether it gives the same rows each time it runs. `outer`: the level around, of which it may read CTEs, or NULL. */
bool		is_quiet_query(Query *query, bool with_target, const Query *outer);

/* The same of one that the planner has prepared, but for the subqueries that its parameters stand for. */
bool		is_quiet_planned_query(Query *query, bool with_target, const Query *outer);

}  // namespace gpuvm

#endif
