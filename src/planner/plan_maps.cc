/*
 * plan_maps.cc: what a plan says of dictionaries and numerics, what it may not
 * do with them, and what making its maps costs.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include <cmath>

#include "compiler/compile.h"
#include "pg/value_form.h"
#include "planner/cost.h"
#include "planner/group_rows.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

MapCached	map_cached;
MapFailure	map_failure;

/* Does the clause of a condition have the expression in it? */
static bool
contains(Node *node, void *expr)
{
	if (node == nullptr)
		return false;
	return equal(node, expr) || expression_tree_walker(node, reinterpret_cast<bool (*)()>(contains), expr);
}

/*
 * What is evaluated for entries that a policy hides must not tell of them (rule 22).
 * A policy's own conditions may.
 */
static bool
is_secure(PlannerInfo *root, const ScanShape *shape, const PlanMap *map, ScanPlan *plan)
{
	const RelOptInfo *rel;
	List	   *parts;
	List	   *own = NIL;
	ListCell   *lc;

	if (is_of_pairs(map->kind))
		return root->qual_security_level == 0 || !map_is_leaky(map->expr);
	/* bytes are compared, or a value that is no entry is evaluated; but for an order */
	if (!is_of_column(map))
		return map->kind != MapKind::Order || root->qual_security_level == 0 ||
			get_func_leakproof(lookup_type_cache(map->type, TYPECACHE_CMP_PROC)->cmp_proc);
	/* a child's rows have passed all conditions */
	if (shape->cursors[map->cursor].target.child != nullptr)
		return true;
	rel = find_base_rel(root, bms_singleton_member(shape->cursors[map->cursor].relids));
	parts = make_ands_implicit(map->expr);
	if (root->qual_security_level == 0 || rel->baserestrict_min_security >= root->qual_security_level)
		return true;
	if (may_be_tied(map) && !get_func_leakproof(lookup_type_cache(exprType((Node *) map->expr), TYPECACHE_CMP_PROC)->cmp_proc))
		return false;
	plan->hides_rows = plan->hides_rows || may_be_tied(map);
	if (!map_is_leaky(map->expr))
		return true;
	foreach(lc, rel->baserestrictinfo)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->security_level == rel->baserestrict_min_security)
			own = lappend(own, rinfo->clause);
	}
	/* conditions of one level may have become one (ordered_quals) */
	foreach(lc, parts)
	{
		if (!contains(reinterpret_cast<Node *>(own), lfirst(lc)))
			return false;
	}
	return true;
}

/*
 * A column's place in the table. It has one: whatever column a program reads, or a map is
 * of, the compiler has looked up in this same table, and refuses those that it has not.
 */
static int
place_of(const ImportedTable *table, AttrNumber attnum)
{
	const int	place = imported_column(table, attnum);

	Assert(place >= 0);
	return place;
}

/* Columns of which the plan knows more than their type: it must be so still when it runs. False, with the reason, where the program cannot read one. */
static bool
plan_columns(PlannerInfo *root, const ScanShape *shape, const Program *program, ScanPlan *plan, const char **reason)
{
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];
		const ScanTarget *target;
		Oid			relid;
		int			column;
		List	   *known;

		/* of high halves the low ones say all */
		if (!reads_column(op) || is_high_half(static_cast<int16>(op.p2)))
			continue;
		target = &shape->cursors[op.p3].target;
		/* a child's rows are made as the plan has them, but who reads halves has to know of NaN and infinities */
		if (target->child != nullptr)
		{
			column = place_of(target->table, op.p2);
			if (target->table->wide[column])
				plan->scales = list_append_unique(plan->scales, list_make5_int(op.p3, op.p2, target->table->scales[column], true, false));
			continue;
		}
		relid = entry_of(root, &shape->cursors[op.p3])->relid;
		column = place_of(target->table, op.p2);
		if (target->table->variable[column])
		{
			known = list_make2_int(op.p3, op.p2);
			if (!list_member(plan->variables, known))
				plan->variables = lappend(plan->variables, known);
			continue;
		}
		switch (value_type(get_atttype(relid, op.p2)).form)
		{
			case ValueForm::Numeric:
				known = list_make5_int(op.p3, op.p2, target->table->scales[column], target->table->wide[column], target->table->special[column]);
				if (!list_member(plan->scales, known))
					plan->scales = lappend(plan->scales, known);
				break;
			case ValueForm::Dictionary:
				if (list_length(target->leaves) > 1 && target->table->families[place_of(target->table, op.p2)] == FAMILIES_DIFFER)
				{
					*reason = psprintf("the dictionaries of column \"%s\" in the partitions are not of one family: import them anew", get_attname(relid, op.p2, false));
					return false;
				}
				break;
			default:
				break;
		}
	}
	return true;
}

bool
plan_compiled(PlannerInfo *root, const ScanShape *shape, const CompiledProgram &compiled, ScanPlan *plan, const char **reason, bool ties)
{
	PlanPart   *part = scan_plan_add_part(plan, ties);

	part->is_ties = ties;
	part->program = compiled.program;
	part->noutputs = compiled.noutputs;
	memcpy(part->outputs, compiled.outputs, sizeof(OutputForm) * compiled.noutputs);
	plan->params = compiled.params;
	plan->soft_errors = plan->soft_errors || compiled.soft_errors;
	plan->nmaps = compiled.nmaps;
	memcpy(plan->maps, compiled.maps, sizeof(PlanMap) * compiled.nmaps);
	plan->npatterns = compiled.npatterns;
	memcpy(plan->patterns, compiled.patterns, sizeof(PlanPattern) * compiled.npatterns);
	plan->text_orders = compiled.text_orders;
	for (int i = 0; i < plan->nmaps; i++)
	{
		if (!is_secure(root, shape, &plan->maps[i], plan))
		{
			*reason = "an expression would be evaluated for values that a policy may hide";
			return false;
		}
	}
	return plan_columns(root, shape, compiled.program, plan, reason);
}

/* How many values the codes are of. */
static double
count_entries(const ScanShape *shape, const ScanPlan *plan, const DictionaryRef &ref)
{
	const PlanMap *map = &plan->maps[Max(ref.map, 0)];
	int			cursor = ref.map < 0 ? ref.cursor : map->cursor;
	const ImportedTable *table;

	if (ref.map >= 0 && map->kind == MapKind::Constant)
		return 1;
	if (ref.map >= 0 && is_of_pairs(map->kind))
		return (count_entries(shape, plan, map->from) + 1) * (count_entries(shape, plan, map->to) + 1);
	if (ref.map >= 0 && !is_of_column(map))
		return count_entries(shape, plan, map->from) + count_entries(shape, plan, map->to);
	table = shape->cursors[cursor].target.table;
	return table->entries[place_of(table, ref.map < 0 ? ref.attnum : map->attnum)];
}

/* A map between two dictionaries: a look-up for each value, or a sort of all. */
static double
cost_meeting(const ScanShape *shape, const ScanPlan *plan, const PlanMap *map)
{
	double		from;
	double		all;

	if (map->kind == MapKind::Constant || is_zone(map->kind))
		return 0;
	from = count_entries(shape, plan, map->from);
	all = from + (same_dictionary(map->from, map->to) ? 0 : count_entries(shape, plan, map->to));
	return cost_of_entries(from) +
		(map->kind == MapKind::Order ? cost_of_order(all, map->collation, false) : 0);
}

/* The expression evaluated so many times. */
static double
cost_of_expression(PlannerInfo *root, Expr *expr, double times)
{
	QualCost	cost;

	cost_qual_eval_node(&cost, reinterpret_cast<Node *>(expr), root);
	return cost.startup + times * (cost.per_tuple + cpu_operator_cost + uncharged_of_functions(reinterpret_cast<Node *>(expr)));
}

double
cost_maps(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan)
{
	double		total = 0;

	for (int i = 0; i < plan->nmaps; i++)
	{
		const PlanMap *map = &plan->maps[i];
		const ImportedTable *table;
		double		entries;

		if (is_of_pairs(map->kind))
		{
			total += cost_of_expression(root, map->expr, count_entries(shape, plan, DictionaryRef{static_cast<int16>(i), -1, 0}));
			continue;
		}
		if (!is_of_column(map))
		{
			total += cost_meeting(shape, plan, map);
			continue;
		}
		table = shape->cursors[map->cursor].target.table;
		entries = table->entries[place_of(table, map->attnum)];
		/* what the ranks tell */
		if (map->kind == MapKind::Tied)
			continue;
		/* its values go into the job */
		total += entries * MAP_ENTRY_US * cost_of_us();
		if (shape->cursors[map->cursor].target.child == nullptr && map_cached != nullptr && map_cached(entry_of(root, &shape->cursors[map->cursor])->relid, map))
			continue;
		total += cost_of_expression(root, map->expr, entries);
		if (map->kind == MapKind::Rank)
			total += cost_of_order(entries, map->collation, true);
	}
	return total;
}

/* 0: it is not known. */
static uint64
family_of(const ScanShape *shape, int cursor, AttrNumber attnum)
{
	const ScanTarget *target = &shape->cursors[cursor].target;

	return target->child != nullptr ? 0 : target->table->families[place_of(target->table, attnum)];
}

static uint64
family_of_map(const ScanShape *shape, const PlanMap *map)
{
	if (is_of_column(map))
		return family_of(shape, map->cursor, map->attnum);
	return is_of_pairs(map->kind) ? pair_family(family_of(shape, map->from.cursor, map->from.attnum), family_of(shape, map->to.cursor, map->to.attnum)) : 0;
}

const char *
known_failure(PlannerInfo *root, const ScanShape *shape, const ScanPlan *plan)
{
	if (plan->hides_rows && shows_without_ties(plan))
		return "whether values are equal without being the same would tell of those that a policy may hide";
	for (int i = 0; i < plan->nmaps && map_failure != nullptr; i++)
	{
		const uint64 family = family_of_map(shape, &plan->maps[i]);
		const char *failure = family == 0 ? nullptr : map_failure(family, &plan->maps[i], shown_without_ties(plan, i));

		if (failure != nullptr)
			return psprintf("a column's dictionary: %s", failure);
	}
	return delta_failure(root, shape, plan);
}

bool
is_dictionary_key(Node *key, Oid eqop, const char **reason)
{
	Oid			type = exprType(key);

	*reason = "the type of a group key is not supported";
	if (value_type(type).form != ValueForm::Dictionary || lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr != eqop)
		return false;
	if (OidIsValid(exprCollation(key)) && !get_collation_isdeterministic(exprCollation(key)))
	{
		*reason = "the collation of a group key is not deterministic";
		return false;
	}
	/* values that may be equal without being the same are keys by their ranks (compile_group_key) */
	return true;
}

}  // namespace gpuvm
