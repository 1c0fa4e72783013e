/*
 * order_keys.cc: which result columns a path's sort keys are, and what they are compared by.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include "compiler/compile.h"
#include "pg/compat.h"
#include "pg/value_form.h"
#include "planner/order_keys.h"
#include "planner/scan_plan.h"

namespace gpuvm {

bool
refuse_order(Sorting *s, const char *reason)
{
	s->reason = reason;
	return false;
}

/* -- which column a key is ------------------------------------------------------------ */

static const Expr *
without_relabels(const Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return expr;
}

/* The first of the expressions that is equal to the key's values; -1 if there is none. */
static int
find_key(const Sorting *s, const PathKey *key, List *exprs)
{
	ListCell   *lc;
	ListCell   *lc2;

	if (key->pk_eclass->ec_has_volatile)
		return -1;
	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *em = lfirst_node(EquivalenceMember, lc);

		if (em->em_is_const || (em->em_is_child && !bms_equal(em->em_relids, s->rel->relids)))
			continue;
		foreach(lc2, exprs)
		{
			if (equal(without_relabels(em->em_expr), without_relabels(static_cast<const Expr *>(lfirst(lc2)))))
				return foreach_current_index(lc2);
		}
	}
	return -1;
}

/* An expression over the relation, or join, that has the key's values; NULL if there is none. */
static Expr *
expression_of_key(const Sorting *s, const PathKey *key)
{
	ListCell   *lc;

	if (key->pk_eclass->ec_has_volatile)
		return nullptr;
	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *em = lfirst_node(EquivalenceMember, lc);

		if (!em->em_is_const && !em->em_is_child && !bms_is_empty(em->em_relids) && bms_is_subset(em->em_relids, s->rel->relids))
			return em->em_expr;
	}
	return nullptr;
}

bool
add_hidden(Sorting *s)
{
	ScanShape	single = {};
	const ScanShape *shape = &single;
	ScanTarget	target = {};
	ListCell   *lc;

	foreach(lc, s->pathkeys)
	{
		const PathKey *key = lfirst_node(PathKey, lc);
		int			column = find_key(s, key, s->from->path.pathtarget->exprs);
		Expr	   *expr;

		if (column >= 0)
			continue;
		expr = expression_of_key(s, key);
		if (expr == nullptr)
		{
			note_reason(s->root, s->rel, "Sort", "a sort key is evaluated above", nullptr);
			return false;
		}
		expr = static_cast<Expr *>(copyObjectImpl(expr));
		fix_opfuncids((Node *) expr);
		s->hidden = lappend(s->hidden, expr);
		s->collations = lappend_oid(s->collations, key->pk_eclass->ec_collation);
	}
	if (s->hidden == NIL)
		return true;
	if (s->rel->reloptkind == RELOPT_JOINREL)
		shape = shape_of_join(s->rel);
	else if (usable_relation(s->root, s->rel, &target))
		shape_of_relation(s->root, s->rel, &target, false, &single);
	else
		return false;
	if (shape != nullptr)
		s->from = make_rows_path(s->root, s->rel, shape, static_cast<Path *>(linitial(s->from->custom_paths)), s->hidden, s->collations);
	return shape != nullptr && s->from != nullptr;
}

/* The result column that a raw column of groups is in; of an average, none is in its order. */
static bool
column_of_group(Sorting *s, const Node *raw, bool last, int *column)
{
	const PlanPart *part = &s->plan->parts[0];
	int			number = IsA(raw, Var) ? ((const Var *) raw)->varattno - 1 : -1;
	ListCell   *lc;
	ListCell   *to;

	foreach(lc, part->key_columns)
	{
		if (lfirst_int(lc) == number)
		{
			*column = foreach_current_index(lc);
			return true;
		}
	}
	forboth(lc, part->finals, to, part->final_columns)
	{
		const List *final = lfirst_node(List, lc);

		if (lfirst_int(to) != number)
			continue;
		*column = list_nth_int(final, FINAL_PARTS);
		switch (static_cast<FinalKind>(linitial_int(final)))
		{
			case FinalKind::Direct:
			case FinalKind::SumToInt8:
			case FinalKind::SumToNumeric:
			case FinalKind::WideExtreme:
			case FinalKind::SpecialExtreme:
			case FinalKind::SumToFloat8:
				return true;
			case FinalKind::SumToFloat4:
				/* sums that differ may be rounded to one value: then the following keys decide */
				if (last)
					return true;
				break;
			default:
				break;
		}
		return refuse_order(s, "groups are sorted by keys, counts, sums and extremes, not by what is computed from several of them");
	}
	return refuse_order(s, "groups are sorted by their keys and aggregates, not by expressions over them");
}

/* The result column that an output of a whole statement's rows is, or that they are only sorted by. */
static bool
column_of_row(Sorting *s, const Node *output, int *column)
{
	ListCell   *lc;

	*column = IsA(output, Var) ? ((const Var *) output)->varattno - 1 : -1;
	foreach(lc, *column < 0 ? s->plan->hidden : NIL)
	{
		if (equal(output, lfirst(lc)))
			*column = list_length(s->plan->raw_types) + foreach_current_index(lc);
	}
	return *column >= 0 || refuse_order(s, "a sort key is an expression that is evaluated above");
}

/* -- what it is sorted by ---------------------------------------------------------------- */

/* The number of the map, which may be there already; -1 and a reason. */
static int
add_order_map(Sorting *s, const PlanMap &map)
{
	ScanPlan   *plan = s->plan;

	for (int i = 0; i < plan->nmaps; i++)
	{
		const PlanMap *m = &plan->maps[i];

		if (m->kind == map.kind && m->cursor == map.cursor && m->attnum == map.attnum && m->collation == map.collation &&
			m->from.map == map.from.map && m->from.cursor == map.from.cursor && m->from.attnum == map.from.attnum &&
			m->to.map == map.to.map && m->to.cursor == map.to.cursor && m->to.attnum == map.to.attnum && equal(m->expr, map.expr))
			return i;
	}
	if (plan->nmaps == MAX_MAPS)
	{
		refuse_order(s, psprintf("the query has more than %d expressions over dictionaries", MAX_MAPS));
		return -1;
	}
	plan->maps[plan->nmaps] = map;
	return plan->nmaps++;
}

/* Ranks for the codes of a dictionary, of a column or of a map's values. Values that are equal and not the same share one: that is a map from a dictionary to itself. */
static int
ranks_of(Sorting *s, const DictionaryRef &ref, Oid type, Oid collation)
{
	Oid			cmp = lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc;

	if (s->root->qual_security_level > 0 && !get_func_leakproof(cmp))
	{
		refuse_order(s, "values would be compared that a policy may hide");
		return -1;
	}
	return add_order_map(s, PlanMap{MapKind::Order, -1, 0, nullptr, collation, false, ref, ref, type});
}

/* The type of a cursor's column: a table's, or one that a child gives. */
static ChildColumn
column_of_cursor(const PlanCursor *cursor, AttrNumber attnum)
{
	ChildColumn column = {};
	ListCell   *lc;

	if (OidIsValid(cursor->relid))
		get_atttypetypmodcoll(cursor->relid, attnum, &column.pg_type, &column.typmod, &column.collation);
	foreach(lc, cursor->columns)
	{
		if (child_column(lfirst_node(List, lc)).attnum == attnum)
			column = child_column(lfirst_node(List, lc));
	}
	return column;
}

/* The map for a result column of codes; -1 and a reason. */
static int
rank_map(Sorting *s, const OutputForm *form, Oid collation)
{
	const PlanCursor *cursor;
	ChildColumn column;

	if (form->kind == OutputKind::Map)
	{
		const PlanMap *map = &s->plan->maps[form->map];

		if (map->kind == MapKind::Derived)
			return ranks_of(s, DictionaryRef{static_cast<int16>(form->map), -1, 0}, exprType((Node *) map->expr), collation);
		refuse_order(s, "values of several dictionaries are not sorted");
		return -1;
	}
	cursor = &s->plan->cursors[form->cursor];
	column = column_of_cursor(cursor, form->attnum);
	if (!dictionary_equality(column.pg_type, column.typmod, collation))
		return ranks_of(s, DictionaryRef{-1, static_cast<int16>(form->cursor), form->attnum}, column.pg_type, collation);
	return add_order_map(s, PlanMap{MapKind::Rank, form->cursor, form->attnum,
									(Expr *) makeVar(form->cursor + 1, form->attnum, column.pg_type, column.typmod, column.collation, 0),
									collation, false, NO_DICTIONARY, NO_DICTIONARY, InvalidOid});
}

/* How gpuvmd is to compare values of variable length; -1 and a reason. */
static int
order_of_texts(Sorting *s, Oid type, Oid collation)
{
	TextOrderSpec spec;
	const char *failure = describe_text_order(PlanTextOrder{getBaseType(type), collation}, &spec);
	int			number = failure != nullptr ? -1 : add_text_order(&s->plan->text_orders, type, collation);

	if (number < 0)
		refuse_order(s, failure != nullptr ? failure : psprintf("values are ordered in more than %d ways", PROGRAM_MAX_TEXT_ORDERS));
	return number;
}

int
ranks_of_column(Sorting *s, int column, Oid collation)
{
	return rank_map(s, &s->plan->parts[0].outputs[column], collation);
}

bool
add_column_key(Sorting *s, int column, Oid type, Oid collation, int flags, int target)
{
	ScanPlan   *plan = s->plan;
	const OutputForm *form = &plan->parts[0].outputs[column];
	PlanOrderKey *to = &plan->order[plan->norder];

	if (plan->norder + (form->kind == OutputKind::Wide ? 2 : 1) > static_cast<int>(JOB_MAX_ORDER))
		return refuse_order(s, psprintf("there are more than %u sort keys", JOB_MAX_ORDER));
	*to = PlanOrderKey{column, flags, -1, target};
	switch (form->kind)
	{
		case OutputKind::Plain:
		case OutputKind::Numeric:
		case OutputKind::Span:
			break;
		case OutputKind::Wide:
			plan->norder++;
			to[1] = to[0];
			to[0].column = form->map;	/* the high halves, then the low ones */
			break;
		case OutputKind::High:
			return refuse_order(s, "a half of a number is not sorted");
		case OutputKind::Variable:
			to->flags |= ORDER_TEXT;
			to->map = order_of_texts(s, type, collation);
			if (to->map < 0)
				return false;
			break;
		case OutputKind::Packed:
			return refuse_order(s, "characters of values of variable length are not sorted");
		case OutputKind::Position:
			return refuse_order(s, "values that are not in tablets are not sorted");
		case OutputKind::Map:
			/* an extreme of a dictionary type is its rank already */
			if (plan->maps[form->map].kind == MapKind::Rank)
			{
				if (plan->maps[form->map].collation != collation)
					return refuse_order(s, "the extreme is of another collation than the order");
				break;
			}
			/* FALLTHROUGH */
		case OutputKind::Dictionary:
			to->flags |= ORDER_RANKS;
			to->map = rank_map(s, form, collation);
			if (to->map < 0)
				return false;
			break;
	}
	plan->norder++;
	return true;
}

/* What has to be known of the column to sort by it; false with a reason. */
static bool
add_key(Sorting *s, const PathKey *key, int target, int column)
{
	const Expr *expr = without_relabels(static_cast<const Expr *>(target < 0 ? list_nth(s->hidden, -1 - target) : list_nth(s->from->path.pathtarget->exprs, target)));
	const Oid	type = exprType((const Node *) expr);
	const int	flags = static_cast<int>((compat_is_descending(key) ? ORDER_DESC : 0) | (key->pk_nulls_first ? ORDER_NULLS_FIRST : 0));

	if (lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf != key->pk_opfamily)
		return refuse_order(s, "the order is not the default one of its type");
	return add_column_key(s, column, type, key->pk_eclass->ec_collation, flags, target);
}

bool
add_keys(Sorting *s)
{
	ListCell   *lc;

	if (s->plan->nparts != 1 || s->plan->parts[0].count_groups)
		return refuse_order(s, "the groups of several programs are not sorted");
	foreach(lc, s->pathkeys)
	{
		const PathKey *key = lfirst_node(PathKey, lc);
		int			target = find_key(s, key, s->from->path.pathtarget->exprs);
		int			hidden = target < 0 ? find_key(s, key, s->hidden) : -1;
		int			column = target;

		if (hidden >= 0)
		{
			target = -1 - hidden;
			column = list_length(s->from->path.pathtarget->exprs) + hidden;
		}
		else if (target < 0)
			return refuse_order(s, "a sort key is an expression that is evaluated above");
		if (s->plan->kind == SCAN_GROUPS &&
			!column_of_group(s, static_cast<Node *>(list_nth(s->plan->exprs, target)), lnext(s->pathkeys, lc) == nullptr, &column))
			return false;
		if (s->plan->kind == SCAN_ROWS && s->plan->whole && !column_of_row(s, static_cast<Node *>(list_nth(s->plan->exprs, target)), &column))
			return false;
		if (!add_key(s, key, target, column))
			return false;
	}
	return true;
}

}  // namespace gpuvm
