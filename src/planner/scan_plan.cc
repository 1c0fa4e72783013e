/* scan_plan.cc: a ScanPlan as a list of nodes, and back. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "utils/lsyscache.h"
}

#include <cstring>

#include "planner/scan_plan.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

const CustomScanMethods *gpuvm_scan_methods;
const CustomScanMethods *gpuvm_external_methods;

/* A program travels as a bytea constant, which PostgreSQL knows how to copy. */
static Const *
program_to_const(const Program *program)
{
	bytea	   *b = static_cast<bytea *>(palloc(VARHDRSZ + program->size));

	SET_VARSIZE(b, VARHDRSZ + program->size);
	memcpy(VARDATA(b), program, program->size);
	return makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(b), false, false);
}

/* bytea data is 4-byte aligned, a program's operations want 8. */
static const Program *
program_from_const(const Const *con)
{
	bytea	   *b = DatumGetByteaPP(con->constvalue);
	Size		size = VARSIZE_ANY_EXHDR(b);
	Program    *program = static_cast<Program *>(palloc(size));

	memcpy(static_cast<void *>(program), VARDATA_ANY(b), size);
	return program;
}

static List *
cursor_to_list(const PlanCursor *c)
{
	List	   *list = list_make5(lcons_oid(c->relid, list_copy(c->leaves)), makeString(pstrdup(c->alias)),
								  makeInteger(static_cast<int>(c->kind)), c->quals, c->keys);

	list = lappend(list, c->range);
	list = lappend(list, c->conditions);
	list = lappend(list, c->filters);
	list = lappend(list, makeInteger(c->child));
	list = lappend(list, c->columns);
	return lappend(list, c->names);
}

static void
cursor_from_list(List *list, PlanCursor *c)
{
	List	   *relids = linitial_node(List, list);

	c->relid = linitial_oid(relids);
	c->leaves = list_copy_tail(relids, 1);
	c->alias = strVal(lsecond(list));
	c->kind = static_cast<JoinKind>(intVal(lthird(list)));
	c->quals = static_cast<List *>(list_nth(list, 3));
	c->keys = static_cast<List *>(list_nth(list, 4));
	c->range = static_cast<List *>(list_nth(list, 5));
	c->conditions = static_cast<List *>(list_nth(list, 6));
	c->filters = static_cast<List *>(list_nth(list, 7));
	c->child = intVal(list_nth(list, 8));
	c->columns = static_cast<List *>(list_nth(list, 9));
	c->names = static_cast<List *>(list_nth(list, 10));
}

char *
plan_column_name(const PlanCursor *cursor, AttrNumber attnum)
{
	return cursor->child != 0 ? strVal(list_nth(cursor->names, attribute_of(attnum) - 1)) : get_attname(cursor->relid, attnum, false);
}

List *
child_column_to_list(const ChildColumn &c)
{
	List	   *list = list_make5_int(c.attnum, static_cast<int>(c.type), static_cast<int>(c.form), c.scale, static_cast<int>(c.pg_type));

	list = lappend_int(list, c.wide);
	list = lappend_int(list, c.typmod);
	return lappend_int(list, static_cast<int>(c.collation));
}

ChildColumn
child_column(List *list)
{
	return ChildColumn{static_cast<AttrNumber>(linitial_int(list)), static_cast<Type>(lsecond_int(list)), static_cast<ValueForm>(lthird_int(list)),
		lfourth_int(list), list_nth_int(list, 5) != 0, static_cast<Oid>(list_nth_int(list, 4)), list_nth_int(list, 6), static_cast<Oid>(list_nth_int(list, 7))};
}

static List *
map_to_list(const PlanMap *m)
{
	List	   *numbers = list_make5_int(static_cast<int>(m->kind), m->cursor, m->attnum, static_cast<int>(m->collation), m->null_entry);

	numbers = lappend_int(numbers, m->from.map);
	numbers = lappend_int(numbers, m->from.cursor);
	numbers = lappend_int(numbers, m->from.attnum);
	numbers = lappend_int(numbers, m->to.map);
	numbers = lappend_int(numbers, m->to.cursor);
	numbers = lappend_int(numbers, m->to.attnum);
	numbers = lappend_int(numbers, static_cast<int>(m->type));
	return list_make2(numbers, m->expr);
}

static DictionaryRef
ref_from_list(List *numbers, int at)
{
	return DictionaryRef{static_cast<int16>(list_nth_int(numbers, at)), static_cast<int16>(list_nth_int(numbers, at + 1)),
		static_cast<AttrNumber>(list_nth_int(numbers, at + 2))};
}

static void
map_from_list(List *list, PlanMap *m)
{
	List	   *numbers = linitial_node(List, list);

	m->kind = static_cast<MapKind>(linitial_int(numbers));
	m->cursor = lsecond_int(numbers);
	m->attnum = lthird_int(numbers);
	m->collation = static_cast<Oid>(lfourth_int(numbers));
	m->null_entry = list_nth_int(numbers, 4) != 0;
	m->from = ref_from_list(numbers, 5);
	m->to = ref_from_list(numbers, 8);
	m->type = static_cast<Oid>(list_nth_int(numbers, 11));
	m->expr = static_cast<Expr *>(lsecond(list));
}

static List *
pattern_to_list(const PlanPattern *p)
{
	List	   *numbers = list_make4_int(static_cast<int>(p->form), p->ignore_case, static_cast<int>(p->fold), p->trim);

	numbers = lappend_int(lappend_int(numbers, p->utf8), p->attlen);
	numbers = lappend_int(lappend_int(numbers, p->outcomes), p->order);
	numbers = lappend_int(lappend_int(numbers, static_cast<int>(p->collation)), static_cast<int>(p->fold_collation));
	numbers = lappend_int(lappend_int(lappend_int(numbers, static_cast<int>(p->slice.form)), p->slice.skip), p->slice.count);
	return list_make2(numbers, p->expr);
}

static PlanPattern
pattern_from_list(List *list)
{
	List	   *numbers = linitial_node(List, list);

	return PlanPattern{static_cast<PatternForm>(linitial_int(numbers)), lsecond_int(numbers) != 0, static_cast<TextFold>(lthird_int(numbers)),
		static_cast<uint8>(lfourth_int(numbers)), list_nth_int(numbers, 4) != 0, static_cast<int16>(list_nth_int(numbers, 5)),
		static_cast<uint8>(list_nth_int(numbers, 6)), static_cast<uint8>(list_nth_int(numbers, 7)),
		static_cast<Oid>(list_nth_int(numbers, 8)), static_cast<Oid>(list_nth_int(numbers, 9)),
		TextSlice{static_cast<SliceForm>(list_nth_int(numbers, 10)), list_nth_int(numbers, 11), list_nth_int(numbers, 12)}, static_cast<Expr *>(lsecond(list))};
}

static List *
output_to_list(const OutputForm *o)
{
	return lappend_int(list_make5_int(static_cast<int>(o->kind), o->scale, o->cursor, o->attnum, o->map), o->shown);
}

static OutputForm
output_from_list(List *list)
{
	return OutputForm{static_cast<OutputKind>(linitial_int(list)), lsecond_int(list), lthird_int(list),
		static_cast<AttrNumber>(lfourth_int(list)), list_nth_int(list, 4), list_nth_int(list, 5)};
}

static List *
part_to_list(const PlanPart *p)
{
	List	   *outputs = NIL;
	List	   *list;

	for (int i = 0; i < p->noutputs; i++)
		outputs = lappend(outputs, output_to_list(&p->outputs[i]));
	list = list_make5(program_to_const(p->program), p->stage != nullptr ? program_to_const(p->stage) : nullptr, outputs,
					  list_make2_int(p->set, p->count_groups), p->keys);
	list = lappend(list, p->filter);
	list = lappend(list, p->key_columns);
	list = lappend(list, p->finals);
	list = lappend(list, p->final_columns);
	list = lappend(list, p->groupings);
	list = lappend(list, list_make4_int(p->is_ties, p->ties_last, p->ties_all, p->ties_cursor));
	list = lappend(list, p->ties_columns);
	return lappend(list, p->group_filter != nullptr ? program_to_const(p->group_filter) : nullptr);
}

static void
part_from_list(List *list, PlanPart *p)
{
	int			i = 0;
	auto		next = [&]() { return static_cast<List *>(list_nth(list, i++)); };
	List	   *outputs;
	ListCell   *lc;

	p->program = program_from_const(static_cast<const Const *>(list_nth(list, i++)));
	if (list_nth(list, i++) != nullptr)
		p->stage = program_from_const(static_cast<const Const *>(lsecond(list)));
	outputs = next();
	foreach(lc, outputs)
		p->outputs[p->noutputs++] = output_from_list(lfirst_node(List, lc));
	p->set = linitial_int(static_cast<List *>(list_nth(list, i)));
	p->count_groups = lsecond_int(next()) != 0;
	p->keys = next();
	p->filter = next();
	p->key_columns = next();
	p->finals = next();
	p->final_columns = next();
	p->groupings = next();
	p->is_ties = linitial_int(static_cast<List *>(list_nth(list, i))) != 0;
	p->ties_last = lsecond_int(static_cast<List *>(list_nth(list, i))) != 0;
	p->ties_all = lthird_int(static_cast<List *>(list_nth(list, i))) != 0;
	p->ties_cursor = lfourth_int(next());
	p->ties_columns = next();
	if (list_nth(list, i) != nullptr)
		p->group_filter = program_from_const(static_cast<const Const *>(list_nth(list, i)));
}

PlanPart *
scan_plan_add_part(ScanPlan *plan, bool ties)
{
	PlanPart   *parts = static_cast<PlanPart *>(palloc0(sizeof(PlanPart) * (program_count(plan) + 1)));

	if (program_count(plan) > 0)
		memcpy(parts, plan->parts, sizeof(PlanPart) * program_count(plan));
	plan->parts = parts;
	return &parts[ties ? plan->nparts + plan->nties++ : plan->nparts++];
}

/* The part's raw column that a result column becomes, and whether it is a key; -1: it is neither. */
static int
raw_column(const PlanPart *part, int column, bool *is_key)
{
	ListCell   *lc;
	ListCell   *to;

	*is_key = column < list_length(part->key_columns);
	if (*is_key)
		return list_nth_int(part->key_columns, column);
	forboth(lc, part->finals, to, part->final_columns)
	{
		if (list_nth_int(lfirst_node(List, lc), FINAL_PARTS) == column)
			return lfirst_int(to);
	}
	return -1;
}

bool
may_be_tied(const PlanMap *map)
{
	return map->kind == MapKind::Rank &&
		!dictionary_equality(exprType((Node *) map->expr), exprTypmod((Node *) map->expr), map->collation);
}

int
ties_of_column(const ScanPlan *plan, const PlanPart *part, int column)
{
	const OutputForm *form = &part->outputs[column];
	bool		is_key;
	int			raw;

	if (form->kind != OutputKind::Map || !may_be_tied(&plan->maps[form->map]) || (raw = raw_column(part, column, &is_key)) < 0)
		return SHOWS_NO_RANK;
	for (int i = plan->nparts; i < program_count(plan); i++)
	{
		const PlanPart *ties = &plan->parts[i];

		if (ties->set == part->set && (is_key ? ties->ties_columns == NIL && ties->ties_cursor == plan->maps[form->map].cursor : list_member_int(ties->ties_columns, raw)))
			return i;
	}
	return NO_TIES;
}

bool
shown_without_ties(const ScanPlan *plan, int map)
{
	if (plan->maps[map].kind != MapKind::Rank)
		return false;
	for (int i = 0; i < plan->nparts; i++)
	{
		for (int column = 0; column < plan->parts[i].noutputs; column++)
		{
			const OutputForm *form = &plan->parts[i].outputs[column];

			if (form->kind == OutputKind::Map && form->map == map && ties_of_column(plan, &plan->parts[i], column) == NO_TIES)
				return true;
		}
	}
	return false;
}

bool
shows_without_ties(const ScanPlan *plan)
{
	for (int i = 0; i < plan->nmaps; i++)
	{
		if (shown_without_ties(plan, i))
			return true;
	}
	return false;
}

static List *
text_orders_to_list(const PlanTextOrders *orders)
{
	List	   *list = NIL;

	for (int i = 0; i < orders->n; i++)
		list = lappend(list, list_make2_oid(orders->orders[i].type, orders->orders[i].collation));
	return list;
}

static void
text_orders_from_list(List *list, PlanTextOrders *orders)
{
	ListCell   *lc;

	foreach(lc, list)
		orders->orders[orders->n++] = PlanTextOrder{linitial_oid(lfirst_node(List, lc)), lsecond_oid(lfirst_node(List, lc))};
}

static List *
order_to_list(const ScanPlan *p)
{
	List	   *list = NIL;

	for (int i = 0; i < p->norder; i++)
		list = lappend(list, list_make4_int(p->order[i].column, p->order[i].flags, p->order[i].map, p->order[i].target));
	return list;
}

static void
order_from_list(List *list, ScanPlan *p)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		const List *key = lfirst_node(List, lc);

		p->order[p->norder++] = PlanOrderKey{linitial_int(key), lsecond_int(key), lthird_int(key), lfourth_int(key)};
	}
}

List *
scan_plan_to_list(const ScanPlan *p)
{
	List	   *cursors = NIL;
	List	   *maps = NIL;
	List	   *parts = NIL;
	List	   *patterns = NIL;
	List	   *list;

	for (int i = 0; i < p->nmaps; i++)
		maps = lappend(maps, map_to_list(&p->maps[i]));
	for (int i = 0; i < program_count(p); i++)
		parts = lappend(parts, part_to_list(&p->parts[i]));
	for (int i = 0; i < p->npatterns; i++)
		patterns = lappend(patterns, pattern_to_list(&p->patterns[i]));
	for (int i = 0; i < p->ncursors; i++)
		cursors = lappend(cursors, cursor_to_list(&p->cursors[i]));
	list = list_make5(makeFloat(psprintf("%.17g", p->delta_cost)), makeFloat(psprintf("%.17g", p->delta_io)), makeInteger(p->kind), cursors, parts);
	list = lappend(list, p->params);
	list = lappend(list, p->attnums);
	list = lappend(list, p->counts);
	list = lappend(list, p->raw_types);
	list = lappend(list, p->raw_typmods);
	list = lappend(list, p->raw_collations);
	list = lappend(list, p->exprs);
	list = lappend(list, p->having);
	list = lappend(list, p->filtered);
	list = lappend(list, p->filter_quals);
	list = lappend(list, maps);
	list = lappend(list, patterns);
	list = lappend(list, p->scales);
	list = lappend(list, p->differences);
	list = lappend(list, p->variables);
	list = lappend(list, makeInteger(p->hides_rows));
	list = lappend(list, makeInteger(p->soft_errors));
	list = lappend(list, order_to_list(p));
	list = lappend(list, text_orders_to_list(&p->text_orders));
	list = lappend(list, p->fetches);
	list = lappend(list, p->hidden);
	list = lappend(list, makeFloat(psprintf("%.17g", p->pairs)));
	list = lappend(list, makeFloat(psprintf("%.17g", p->limit)));
	list = lappend(list, makeFloat(psprintf("%.17g", p->fraction)));
	list = lappend(list, p->loud_subqueries);
	list = lappend(list, p->late_subqueries);
	list = lappend(list, list_make3_int(p->stage, p->whole, p->nshared));
	list = lappend(list, p->names);
	list = lappend(list, p->windows);
	return lappend(list, p->window_values);
}

double
scan_plan_delta_cost(const List *list)
{
	return floatVal(linitial(list));
}

double
scan_plan_delta_io(const List *list)
{
	return floatVal(lsecond(list));
}

ScanPlan *
scan_plan_from_list(List *list)
{
	ScanPlan   *p = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));
	int			i = 0;
	auto		next = [&]() { return static_cast<List *>(list_nth(list, i++)); };
	List	   *cursors;
	List	   *maps;
	List	   *parts;
	List	   *patterns;
	ListCell   *lc;

	p->delta_cost = floatVal(next());
	p->delta_io = floatVal(next());
	p->kind = intVal(list_nth(list, i++));
	cursors = next();
	foreach(lc, cursors)
		cursor_from_list(lfirst_node(List, lc), &p->cursors[p->ncursors++]);
	parts = next();
	p->parts = static_cast<PlanPart *>(palloc0(sizeof(PlanPart) * list_length(parts)));
	foreach(lc, parts)
	{
		PlanPart   *part = &p->parts[foreach_current_index(lc)];

		part_from_list(lfirst_node(List, lc), part);
		(part->is_ties ? p->nties : p->nparts)++;
	}
	p->params = next();
	p->attnums = next();
	p->counts = next();
	p->raw_types = next();
	p->raw_typmods = next();
	p->raw_collations = next();
	p->exprs = next();
	p->having = next();
	p->filtered = next();
	p->filter_quals = next();
	maps = next();
	foreach(lc, maps)
		map_from_list(lfirst_node(List, lc), &p->maps[p->nmaps++]);
	patterns = next();
	foreach(lc, patterns)
		p->patterns[p->npatterns++] = pattern_from_list(lfirst_node(List, lc));
	p->scales = next();
	p->differences = next();
	p->variables = next();
	p->hides_rows = intVal(next()) != 0;
	p->soft_errors = intVal(next()) != 0;
	order_from_list(next(), p);
	text_orders_from_list(next(), &p->text_orders);
	p->fetches = next();
	p->hidden = next();
	p->pairs = floatVal(next());
	p->limit = floatVal(next());
	p->fraction = floatVal(list_nth(list, i++));
	p->loud_subqueries = next();
	p->late_subqueries = next();
	p->stage = linitial_int(static_cast<List *>(list_nth(list, i))) != 0;
	p->whole = lsecond_int(static_cast<List *>(list_nth(list, i))) != 0;
	p->nshared = lthird_int(next());
	p->names = next();
	p->windows = next();
	p->window_values = next();
	return p;
}

bool
is_gpuvm_scan(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == gpuvm_scan_methods;
}

}  // namespace gpuvm
