/*
 * lowering_keys.cc: groups by what no program computes, as to_char(day, 'YYYY-MM').
 *
 * A stage groups by what programs know of that, the day, and PostgreSQL computes it once for each group; a further
 * stage puts these together, if the aggregates can be (plan/two_steps.h). What DISTINCT aggregates take is a key of the
 * first stage, too, and conditions that no program evaluates are asked of its groups. Where groups would be about as
 * many as rows, or equal keys not the same, PostgreSQL computes it for each row.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/formatting.h"
}

#include "compiler/emit.h"
#include "plan/two_steps.h"
#include "planner/aggregation.h"
#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/quiet.h"

namespace gpuvm {

/* Groups are worth making where they are less than this part of the rows. */
constexpr double FEWER = 0.5;
/* Larger parts of expressions are not tried as keys. */
constexpr int MOST_NODES = 100;

struct KeyGroups : TwoSteps
{
	Lowering   *l;
	const Piece *piece;
	List	   *aggregates;		/* numbers of the columns that are */
	List	   *known;			/* what programs compute of keys, and of what DISTINCT aggregates take, */
	List	   *unknown;		/* and what they do not, of plain aggregates, too */
	bool		of_rows;		/* a plain aggregate takes something unknown */
	List	   *keys;			/* of the finer groups */
	bool		exact;			/* values of theirs that are equal are the same */
	List	   *parts;			/* aggregates of the finer groups */

	Expr	   *finer(Aggref *agg) override;
	Expr	   *coarser(Aggref *agg) override;
};

Expr *
KeyGroups::finer(Aggref *agg)
{
	parts = list_append_unique(parts, agg);
	return (Expr *) agg;
}

/* It becomes one when what it takes has become columns. */
Expr *
KeyGroups::coarser(Aggref *agg)
{
	return (Expr *) agg;
}

/* -- what is unknown ----------------------------------------------------------------------------- */

static bool
is_plain(const Node *expr)
{
	return expr == nullptr || IsA(expr, Var) || IsA(expr, Const);
}

/* What the aggregate takes. */
static List *
arguments_of(const Aggref *agg)
{
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, agg->args)
		exprs = lappend(exprs, lfirst_node(TargetEntry, lc)->expr);
	return agg->aggfilter == nullptr ? exprs : lappend(exprs, agg->aggfilter);
}

static bool
all_plain(const List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (!is_plain(static_cast<const Node *>(lfirst(lc))))
			return false;
	}
	return true;
}

/* The values that the group makes, which are aggregates, by their numbers. */
static List *
aggregates_of(const Lowering *l, const GpuvmRel *rel)
{
	List	   *numbers = NIL;
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column) && IsA(l->values[column->resno], Aggref))
			numbers = lappend_int(numbers, column->resno);
	}
	return numbers;
}

bool
groups_by_computed(const Lowering *l, const GpuvmRel *rel)
{
	ListCell   *lc;

	if (!all_plain(keys_of(l, rel)))
		return true;
	foreach(lc, aggregates_of(l, rel))
	{
		if (!all_plain(arguments_of((const Aggref *) l->values[lfirst_int(lc)])))
			return true;
	}
	return false;
}

/* Does a program aggregate it? */
static bool
is_aggregated(Lowering *l, const Piece *piece, Aggref *agg)
{
	const char *before = l->reason;
	Aggregation *a;
	double		ngroups;
	bool		aggregated;

	if (all_plain(arguments_of(agg)))
		return true;
	l->reason = nullptr;
	a = static_cast<Aggregation *>(palloc0(sizeof(Aggregation)));
	aggregated = plan_of_groups(l, rel_make(REL_GROUP), piece, list_make1(agg), NIL, a, &ngroups);
	l->reason = before;
	return aggregated;
}

static void
sort_out(KeyGroups *k, Node *expr)
{
	if (!contain_var_clause(expr))
		return;
	if (is_computed(k->l, k->piece, expr))
		k->known = list_append_unique(k->known, expr);
	else
		k->unknown = list_append_unique(k->unknown, expr);
}

static void
find_unknown(KeyGroups *k, const GpuvmRel *rel)
{
	ListCell   *lc;
	ListCell   *arg;

	foreach(lc, keys_of(k->l, rel))
		sort_out(k, static_cast<Node *>(lfirst(lc)));
	foreach(lc, k->aggregates)
	{
		Aggref	   *agg = (Aggref *) k->l->values[lfirst_int(lc)];
		const List *known = list_copy(k->known);

		if (agg->aggdistinct == NIL && is_aggregated(k->l, k->piece, agg))
			continue;
		foreach(arg, arguments_of(agg))
			sort_out(k, static_cast<Node *>(lfirst(arg)));
		if (agg->aggdistinct != NIL)
			continue;
		k->known = const_cast<List *>(known);
		k->of_rows = true;
	}
}

/* -- to_char of a timestamp ------------------------------------------------------------------------ */

/* The unit that the format shows the time in; NULL if that is less than an hour, or the zone. */
static const char *
shown_unit(const Const *format)
{
	char	   *text;

	if (!IsA(format, Const) || format->constisnull)
		return nullptr;
	text = asc_toupper(VARDATA_ANY(DatumGetPointer(format->constvalue)),
					   VARSIZE_ANY_EXHDR(DatumGetPointer(format->constvalue)));
	for (const char *field : {"MI", "SS", "MS", "US", "FF", "TZ", "OF"})
	{
		if (strstr(text, field) != nullptr)
			return nullptr;
	}
	for (const char *field : {"HH", "AM", "PM", "A.M", "P.M"})
	{
		if (strstr(text, field) != nullptr)
			return "hour";
	}
	return "day";
}

/*
 * to_char(x, 'YYYY-MM') as that of the day's beginning: the same text, of fewer values. Local midnight is always of that
 * day, also where clocks go past it; an hour's beginning need not be of that hour where clocks change by half an hour.
 */
static Node *
coarser_times(Node *node, void *context)
{
	const FuncExpr *call = (const FuncExpr *) node;
	const FuncExpr *time;
	const char *unit;
	bool		zoned;
	FuncExpr   *result;
	Const	   *name;

	if (node == nullptr)
		return nullptr;
	/* conditions of a CASE with an argument have its value in them, which no other stage knows */
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != nullptr)
		node = (Node *) searched_case((CaseExpr *) node);
	if (!IsA(node, FuncExpr) ||
		(call->funcid != F_TO_CHAR_TIMESTAMP_TEXT && call->funcid != F_TO_CHAR_TIMESTAMPTZ_TEXT))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(coarser_times), context);
	time = static_cast<const FuncExpr *>(linitial(call->args));
	zoned = call->funcid == F_TO_CHAR_TIMESTAMPTZ_TEXT;
	unit = shown_unit(static_cast<const Const *>(lsecond(call->args)));
	if (unit == nullptr || (zoned && strcmp(unit, "hour") == 0) ||
		(IsA(time, FuncExpr) && (time->funcid == F_TIMESTAMPTZ_DATE || time->funcid == F_TIMESTAMP_DATE)))
		return node;
	name = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum(unit), false, false);
	result = static_cast<FuncExpr *>(copyObjectImpl(call));
	linitial(result->args) =
		makeFuncExpr(zoned ? F_DATE_TRUNC_TEXT_TIMESTAMPTZ : F_DATE_TRUNC_TEXT_TIMESTAMP,
					 zoned ? TIMESTAMPTZOID : TIMESTAMPOID, list_make2(name, linitial(result->args)), InvalidOid,
					 InvalidOid, COERCE_EXPLICIT_CALL);
	return (Node *) result;
}

/* One of the type's values, but for a zone's first day. */
static bool
is_beginning(const Node *node)
{
	const FuncExpr *call = (const FuncExpr *) node;
	const Const *unit;

	if (!IsA(node, FuncExpr) ||
		(call->funcid != F_DATE_TRUNC_TEXT_TIMESTAMP && call->funcid != F_DATE_TRUNC_TEXT_TIMESTAMPTZ))
		return false;
	unit = static_cast<const Const *>(linitial(call->args));
	if (!IsA(unit, Const) || unit->constisnull || !is_quiet(static_cast<Node *>(lsecond(call->args))))
		return false;
	return strcmp(TextDatumGetCString(unit->constvalue), "day") == 0 ||
		strcmp(TextDatumGetCString(unit->constvalue), "hour") == 0;
}

/* -- finer groups ---------------------------------------------------------------------------------- */

static void
add_key(KeyGroups *k, Node *expr)
{
	k->exact = k->exact && is_exact(expr);
	k->keys = list_append_unique(k->keys, expr);
}

static bool
can_be_part(Node *node)
{
	if (IsA(node, List) || IsA(node, CaseWhen) || is_larger_than(node, MOST_NODES) || !contain_var_clause(node))
		return false;
	return is_beginning(node) || is_quiet(node);
}

/* The largest parts of the expression that programs compute; columns alone of what may raise an error. */
static bool
collect_keys(Node *node, void *context)
{
	KeyGroups  *k = static_cast<KeyGroups *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Var) || (can_be_part(node) && is_computed(k->l, k->piece, node)))
	{
		add_key(k, node);
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(collect_keys), context);
}

/* Are there so few finer groups that they are worth making, or is there no other way, and can the aggregates be made of theirs? */
static bool
can_be_finer(KeyGroups *k, List *unknown, List *held, bool needed)
{
	const double rows = k->piece->shape.rows;
	ListCell   *lc;

	if (k->of_rows)
		return false;
	foreach(lc, k->aggregates)
	{
		const Aggref *agg = (const Aggref *) k->l->values[lfirst_int(lc)];

		if (agg->aggdistinct == NIL && !has_two_steps(agg))
			return false;
	}
	k->exact = true;
	foreach(lc, k->known)
		add_key(k, static_cast<Node *>(lfirst(lc)));
	collect_keys((Node *) unknown, k);
	collect_keys((Node *) held, k);
	return k->exact && k->keys != NIL && (needed || group_rows(k->l, k->keys, rows) < rows * FEWER);
}

static SortGroupClause *
key_clause(const Node *key, int number)
{
	SortGroupClause *clause = makeNode(SortGroupClause);

	clause->tleSortGroupRef = number;
	get_sort_group_operators(exprType(key), false, true, false, &clause->sortop, &clause->eqop, nullptr,
							 &clause->hashable);
	return clause;
}

/* The finer groups, with what PostgreSQL computes of them. */
static Piece *
finer_groups(KeyGroups *k, List *unknown, List *held)
{
	Lowering   *l = k->l;
	GpuvmRel   *finer = rel_make(REL_GROUP);
	Stage		stage = {};
	List	   *exprs;
	List	   *values;
	Piece	   *piece;
	ListCell   *lc;

	foreach(lc, k->keys)
	{
		Node	   *key = static_cast<Node *>(lfirst(lc));

		finer->keys = lappend(finer->keys, key_clause(key, add_number(l, key)));
	}
	foreach(lc, k->aggregates)
	{
		Node	  **value = &l->values[lfirst_int(lc)];

		if (((const Aggref *) *value)->aggdistinct == NIL)
			*value = (Node *) in_two_steps(k, (const Aggref *) *value);
	}
	exprs = list_concat_copy(k->known, k->parts);
	if (!stage_of_group_values(l, finer, k->piece, exprs, unknown, held, &stage))
		return nullptr;
	piece = piece_of_stage(l, &stage);
	values = values_of_relation(stage.values, bms_singleton_member(piece->shape.cursors[0].relids));
	replace_values(l, list_concat(exprs, k->unknown), values);
	return piece;
}

/* -- the rows that are grouped ----------------------------------------------------------------------- */

static List *
values_of_group(const Lowering *l, const GpuvmRel *rel, const List *aggregates)
{
	List	   *values = keys_of(l, rel);
	ListCell   *lc;

	foreach(lc, aggregates)
		values = lappend(values, l->values[lfirst_int(lc)]);
	return values;
}

static bool
is_one_table(const Piece *piece)
{
	return piece->shape.ncursors == 1 && piece->shape.cursors[0].target.child == nullptr;
}

bool
compute_keys(Lowering *l, const GpuvmRel *rel, List *held, Piece **piece)
{
	KeyGroups	k = {};
	List	   *unknown;
	List	   *conditions;
	bool		alone;

	k.l = l;
	k.piece = *piece;
	k.aggregates = aggregates_of(l, rel);
	find_unknown(&k, rel);
	if (k.unknown == NIL && held == NIL)
		return true;
	if (!only_computes((Node *) k.unknown))
		return lowering_refuse(l, l->held_reason) != nullptr;
	if (k.unknown != NIL)
		l->held_node = "Aggregate";
	unknown = (List *) coarser_times((Node *) k.unknown, nullptr);
	conditions = (List *) coarser_times((Node *) held, nullptr);
	/* of a table's rows PostgreSQL can make the groups itself */
	alone = rel == l->last && is_one_table(k.piece);
	if (can_be_finer(&k, unknown, conditions, alone))
		*piece = finer_groups(&k, unknown, conditions);
	else if (alone)
		return lowering_refuse(l, l->held_reason) != nullptr;
	else
		*piece = compute_rows(l, k.piece, values_of_group(l, rel, k.aggregates), k.unknown, held);
	return *piece != nullptr;
}

}  // namespace gpuvm
