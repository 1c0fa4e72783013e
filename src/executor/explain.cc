/* explain.cc: what EXPLAIN shows of a Custom Scan (GpuVM), all through ExplainProperty*. */
#include "pg/pg.h"

extern "C" {
#include "access/htup.h"
#include "catalog/heap.h"
#include "catalog/pg_collation.h"
#include "commands/explain.h"
#include "nodes/makefuncs.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
}

#include "compiler/compile.h"
#include "compiler/made_exprs.h"
#include "executor/scan_state.h"
#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/settings.h"
#include "pg/startup.h"
#include "planner/plan_windows.h"

namespace gpuvm {

static char *
deparse_list(List *exprs, const char *separator, List *context, bool prefix = false)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, exprs)
	{
		Node	   *expr = static_cast<Node *>(lfirst(lc));

		if (buf.len > 0)
			appendStringInfoString(&buf, separator);
		appendStringInfoString(&buf, is_float_condition(expr) ? "(Filter in float8)" : deparse_expression(expr, context, prefix, false));
	}
	return buf.data;
}

/* A line an operation in text; a list of the same lines otherwise. */
static void
show_program(const Program *program, const char *name, ExplainState *es)
{
	List	   *lines = NIL;

	for (int i = 0; i < program->nops; i++)
	{
		DisassembledOp op;

		disassemble_op(program, i, &op);
		lines = lappend(lines, psprintf("%s %lld %lld %lld %s", op.opcode, (long long) op.p1, (long long) op.p2,
										(long long) op.p3, op.p4));
	}
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyList(name, lines, es);
		return;
	}
	for (int i = 0; i < program->nops; i++)
		ExplainPropertyText(psprintf("%s %d", name, i), static_cast<char *>(list_nth(lines, i)), es);
}

static void
show_programs(const ScanPlan *plan, ExplainState *es)
{
	for (int i = 0; i < plan->nparts; i++)
	{
		const PlanPart *part = &plan->parts[i];

		show_program(part->program, plan->nparts == 1 ? "Program" : psprintf("Program %d,", i + 1), es);
		if (second_program(part) != nullptr)
			show_program(second_program(part), plan->nparts == 1 ? "Stage" : psprintf("Stage %d,", i + 1), es);
	}
	for (int i = 0; i < plan->nties; i++)
		show_program(plan->parts[plan->nparts + i].program, psprintf("Ties %d,", i + 1), es);
}

static const char *
transfer_name(Transfer transfer)
{
	switch (transfer)
	{
		case Transfer::Serial: return "serial";
		case Transfer::Stream: return "stream";
		case Transfer::Mapped: return "mapped";
		case Transfer::Cached: return "cached";
		case Transfer::Auto: break;
	}
	return "none";				/* nothing was moved: no rows to read */
}

static void
show_device(const ScanFigures *f, bool all, ExplainState *es)
{
	if (f->device != Device::Cuda)
		ExplainPropertyText("Device", "cpu", es);
	else if (arena_header()->ndevices.load() > 1)
		ExplainPropertyText("Device", psprintf("cuda:%u", f->device_index), es);
	else
		ExplainPropertyText("Device", "cuda", es);
	if (f->device_refusal[0] != '\0' && f->device != Device::Cuda && all)
		ExplainPropertyText("Device Fallback", f->device_refusal, es);
	ExplainPropertyText("Tier", "interpreter", es);
}

/* What was read from the heap, as changed or new since the tablets were made; the times are shown apart. */
static void
show_delta(const ScanFigures *f, ExplainState *es)
{
	if (f->blocks_unserved == 0 && f->blocks_restamped == 0)
		return;
	ExplainPropertyInteger("Blocks Served", nullptr, f->blocks_served, es);
	if (f->blocks_restamped > 0)
		ExplainPropertyInteger("Blocks Restamped", nullptr, f->blocks_restamped, es);
	ExplainPropertyInteger("Delta Blocks", nullptr, f->blocks_unserved, es);
	ExplainPropertyInteger("Delta Rows", nullptr, f->delta_rows, es);
}

/* Names for the conditions' Vars: those of the cursors. */
static List *
plan_context(const ScanPlan *plan)
{
	PlannedStmt *stmt;
	List	   *names = NIL;

	if (plan->ncursors == 1 && plan->cursors[0].child == 0)
		return deparse_context_for(get_rel_name(plan->cursors[0].relid), plan->cursors[0].relid);
	stmt = makeNode(PlannedStmt);
	for (int i = 0; i < plan->ncursors; i++)
	{
		RangeTblEntry *rte = makeNode(RangeTblEntry);

		rte->rtekind = RTE_RELATION;
		rte->relid = plan->cursors[i].relid;
		rte->relkind = get_rel_relkind(rte->relid);
		rte->rellockmode = AccessShareLock;
		rte->alias = makeAlias(plan->cursors[i].alias, NIL);
		/* rows of another plan: of these the names are all there is */
		if (plan->cursors[i].child != 0)
		{
			rte->rtekind = RTE_CTE;
			rte->ctename = pstrdup(plan->cursors[i].alias);
			rte->alias = makeAlias(plan->cursors[i].alias, plan->cursors[i].names);
		}
		rte->eref = rte->alias;
		rte->inFromCl = true;
		stmt->rtable = lappend(stmt->rtable, rte);
		names = lappend(names, pstrdup(plan->cursors[i].alias));
	}
	return deparse_context_for_plan_tree(stmt, names);
}

/* Where the rows of a cursor come from that reads no table. */
static char *
rows_of(const PlanCursor *cursor)
{
	return cursor->child > 0 ? psprintf("rows of child %d", cursor->child) : psprintf("rows of shared stage %d", -cursor->child);
}

/* A relation's name, the alias if it has one, and what is said of it alone. */
static void
append_cursor(StringInfo buf, const PlanCursor *cursor, List *context)
{
	const char *relname = OidIsValid(cursor->relid) ? get_rel_name(cursor->relid) : cursor->alias;

	appendStringInfoString(buf, quote_identifier(relname));
	if (strcmp(relname, cursor->alias) != 0)
		appendStringInfo(buf, " %s", quote_identifier(cursor->alias));
	if (cursor->child != 0)
		appendStringInfo(buf, " (%s)", rows_of(cursor));
	if (cursor->leaves != NIL)
		appendStringInfo(buf, " (partitions: %d)", list_length(cursor->leaves));
	if (cursor->quals != NIL)
		appendStringInfo(buf, " WHERE %s", deparse_list(cursor->quals, " AND ", context, true));
}

/* The relation that drives, and those that are joined to it in this order: a line each in text, otherwise a list. */
static void
show_joins(const ScanPlan *plan, List *context, ExplainState *es)
{
	static const char *const kinds[] = {"inner", "left", "semi", "anti", "full"};
	StringInfoData buf;
	List	   *joins = NIL;

	for (int i = 0; i < plan->ncursors; i++)
	{
		const PlanCursor *cursor = &plan->cursors[i];
		List	   *on;

		initStringInfo(&buf);
		if (i > 0)
			appendStringInfo(&buf, "%s %s ", cursor->keys != NIL ? "hash" : cursor->range != NIL ? "range" : "nested loop", kinds[static_cast<int>(cursor->kind)]);
		append_cursor(&buf, cursor, context);
		on = list_concat(list_concat_copy(cursor->keys, cursor->range), cursor->conditions);
		if (on != NIL)
			appendStringInfo(&buf, " ON %s", deparse_list(on, " AND ", context, true));
		if (cursor->filters != NIL)
			appendStringInfo(&buf, " THEN %s", deparse_list(cursor->filters, " AND ", context, true));
		if (i == 0 || es->format == EXPLAIN_FORMAT_TEXT)
			ExplainPropertyText(i == 0 ? "Driver" : "Join", buf.data, es);
		else
			joins = lappend(joins, buf.data);
	}
	if (joins != NIL)
		ExplainPropertyList("Joins", joins, es);
}

/* The relations whose rows a join found built, or left built for others. */
static void
show_indexes(const ScanPlan *plan, const char *name, uint32 cursors, ExplainState *es)
{
	List	   *names = NIL;

	for (int i = 1; i < plan->ncursors; i++)
		if (cursors >> i & 1)
			names = lappend(names, pstrdup(plan->cursors[i].alias));
	if (names != NIL)
		ExplainPropertyList(name, names, es);
}

static char *
zone_text(const PlanMap *map)
{
	const char *zone = map->expr == nullptr ? "TimeZone" : quote_literal_cstr(TextDatumGetCString(((const Const *) map->expr)->constvalue));

	return psprintf(map->kind == MapKind::ToLocal ? "UTC to local time (%s)" : "local time (%s) to UTC", zone);
}

/* What the codes are of. */
static char *
dictionary_text(const ScanPlan *plan, List *context, const DictionaryRef &ref)
{
	const PlanMap *map = &plan->maps[Max(ref.map, 0)];
	Node	   *expr = reinterpret_cast<Node *>(map->expr);

	if (ref.map >= 0 && map->kind == MapKind::Translate)
		return psprintf("%s, %s", dictionary_text(plan, context, map->to), dictionary_text(plan, context, map->from));
	if (ref.map < 0)
	{
		const PlanCursor *cursor = &plan->cursors[ref.cursor];
		Oid			type = InvalidOid;
		int32		typmod = -1;
		Oid			collation = InvalidOid;
		ListCell   *lc;

		if (cursor->child == 0)
			get_atttypetypmodcoll(cursor->relid, ref.attnum, &type, &typmod, &collation);
		foreach(lc, cursor->columns)
		{
			const ChildColumn column = child_column(lfirst_node(List, lc));

			if (column.attnum == ref.attnum)
				type = column.pg_type, typmod = column.typmod, collation = column.collation;
		}
		expr = reinterpret_cast<Node *>(makeVar(ref.cursor + 1, ref.attnum, type, typmod, collation, 0));
	}
	return deparse_expression(expr, context, plan->ncursors > 1, false);
}

/* What PostgreSQL evaluates for each entry of a dictionary, and where dictionaries meet. */
static void
show_maps(const ScanPlan *plan, List *context, ExplainState *es)
{
	List	   *lines = NIL;
	ListCell   *lc;

	for (int i = 0; i < plan->nmaps; i++)
	{
		const PlanMap *map = &plan->maps[i];
		char	   *expr;

		if (map->kind == MapKind::PairFirst || map->kind == MapKind::PairSecond)
			continue;
		if (map->kind == MapKind::Order && same_dictionary(map->from, map->to))
			lines = lappend(lines, psprintf("order of %s", dictionary_text(plan, context, map->from)));
		else if (map->kind == MapKind::Translate || map->kind == MapKind::Order)
			lines = lappend(lines, psprintf(map->kind == MapKind::Order ? "order of %s, with %s" : "%s as codes of %s",
											dictionary_text(plan, context, map->from), dictionary_text(plan, context, map->to)));
		else
		{
			expr = is_zone(map->kind) ? zone_text(map) : deparse_expression(reinterpret_cast<Node *>(map->expr), context, plan->ncursors > 1, false);
			lines = lappend(lines, map->kind == MapKind::Rank ? psprintf("order of %s", expr) : map->kind == MapKind::Tied ? psprintf("equal values of %s", expr) : expr);
		}
	}
	if (lines != NIL && es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyList("Maps", lines, es);
	else
	{
		foreach(lc, lines)
			ExplainPropertyText("VM Map", static_cast<char *>(lfirst(lc)), es);
	}
}

/* The register's value is that of which result column of the first program? -1: of none. */
static int
stage_column(const Program *stage, int64 reg)
{
	for (int i = stage->parallel; i < stage->converge; i++)
	{
		if (stage->ops()[i].opcode == Opcode::Column && stage->ops()[i].p1 == reg)
			return stage->ops()[i].p2;
	}
	return -1;
}

/* What the second program groups by: keys of the first, or the names of its aggregates. */
static char *
stage_keys(const PlanPart *part, List *context, bool prefix)
{
	const Program *stage = part->stage;
	const Op   *names = part->program->ops();
	StringInfoData buf;

	while (names->opcode != Opcode::ResultColumn)
		names++;
	initStringInfo(&buf);
	for (int i = stage->parallel; i < stage->converge; i++)
	{
		const Op   &op = stage->ops()[i];

		for (int k = 0; op.opcode == Opcode::Group && k < op.p1; k++)
		{
			int			column = stage_column(stage, stage->aux()[op.p2 + k]);

			appendStringInfoString(&buf, k > 0 ? ", " : "");
			if (column >= 0 && column < list_length(part->keys))
				appendStringInfoString(&buf, deparse_list(list_make1(list_nth(part->keys, column)), ", ", context, prefix));
			else
				appendStringInfoString(&buf, column < 0 ? "an expression" : part->program->names() + names[column].p4);
		}
	}
	return buf.data;
}

/* One of several programs: what it groups by, what its stage then does, and what is asked of that. */
static char *
part_text(const ScanPlan *plan, const PlanPart *part, List *context)
{
	bool		prefix = plan->ncursors > 1;
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfo(&buf, "group by (%s)", deparse_list(part->keys, ", ", context, prefix));
	if (part->filter != NIL)
		appendStringInfo(&buf, " where %s", deparse_list(part->filter, " AND ", context, prefix));
	if (part->stage != nullptr)
		appendStringInfo(&buf, ", then by (%s)", stage_keys(part, context, prefix));
	if (part->count_groups)
		appendStringInfoString(&buf, ", number of groups");
	return buf.data;
}

static void
show_groups(const ScanPlan *plan, List *context, ExplainState *es)
{
	const PlanPart *part = &plan->parts[0];
	List	   *lines = NIL;

	if (plan->nparts == 1 && part->stage == nullptr && part->filter == NIL)
	{
		if (part->keys != NIL)
			ExplainPropertyText("VM Group Key", deparse_list(part->keys, ", ", context, plan->ncursors > 1), es);
		if (part->count_groups)
			ExplainPropertyText("VM Result", "number of groups", es);
		if (plan->filter_quals != NIL)
			ExplainPropertyText(plan->filtered != NIL ? "VM Group Filter" : "Filter",
								deparse_list(plan->filter_quals, " AND ", context, plan->ncursors > 1), es);
		return;
	}
	for (int i = 0; i < plan->nparts; i++)
	{
		lines = lappend(lines, part_text(plan, &plan->parts[i], context));
		if (es->format == EXPLAIN_FORMAT_TEXT)
			ExplainPropertyText(psprintf("VM Program %d", i + 1), static_cast<char *>(llast(lines)), es);
	}
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyList("VM Programs", lines, es);
}

/* As PostgreSQL's Sort has it: ASC and the nulls' usual place go without saying. */
static void
show_order(CustomScanState *node, List *names, List *ancestors, ExplainState *es)
{
	const ScanPlan *plan = reinterpret_cast<GpuvmScanState *>(node)->plan;
	const CustomScan *scan = castNode(CustomScan, node->ss.ps.plan);
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	bool		prefix = compat_explained_relations(es) > 1 || es->verbose;
	List	   *keys = NIL;

	for (int i = 0; i < plan->norder; i++)
	{
		const PlanOrderKey *key = &plan->order[i];
		Node	   *expr = key->target < 0 ? static_cast<Node *>(list_nth(plan->hidden, -1 - key->target))
			: (Node *) static_cast<TargetEntry *>(list_nth(scan->custom_scan_tlist, key->target))->expr;
		Oid			collation = key->flags & ORDER_TEXT ? plan->text_orders.orders[key->map].collation : key->map >= 0 ? plan->maps[key->map].collation : InvalidOid;
		bool		desc = (key->flags & ORDER_DESC) != 0;
		bool		nulls_first = (key->flags & ORDER_NULLS_FIRST) != 0;
		char	   *text;

		/* both halves of a number, one after the other */
		if (i > 0 && key->target == plan->order[i - 1].target)
			continue;
		text = deparse_expression(expr, key->target < 0 ? names : context, key->target < 0 ? plan->ncursors > 1 : prefix, true);

		if (OidIsValid(collation) && collation != DEFAULT_COLLATION_OID)
			text = psprintf("%s COLLATE %s", text, quote_identifier(get_collation_name(collation)));
		keys = lappend(keys, psprintf("%s%s%s", text, desc ? " DESC" : "", nulls_first == desc ? "" : nulls_first ? " NULLS FIRST" : " NULLS LAST"));
	}
	if (keys != NIL)
		ExplainPropertyList("VM Sort Key", keys, es);
}

/* What comes from the heap, row by row. */
static List *
heap_columns(const ScanPlan *plan)
{
	const PlanPart *part = &plan->parts[0];
	List	   *names = NIL;

	for (int i = 0; plan->fetches != NIL && i < part->noutputs; i++)
	{
		const OutputForm *form = &part->outputs[i];
		const PlanCursor *cursor = &plan->cursors[Max(form->cursor, 0)];
		const char *name;

		/* a foreign table's rows are in no heap: their tablets have all of them */
		if (form->kind != OutputKind::Position || !is_fetched(form->attnum) || get_rel_relkind(cursor->relid) == RELKIND_FOREIGN_TABLE)
			continue;
		name = form->attnum == 0 ? "*" : form->attnum < 0 ? NameStr(SystemAttributeDefinition(form->attnum)->attname)
			: quote_identifier(get_attname(cursor->relid, form->attnum, false));
		names = lappend(names, plan->ncursors > 1 ? psprintf("%s.%s", quote_identifier(cursor->alias), name) : pstrdup(name));
	}
	return names;
}

/* How many programs there are in a stage's plan: of one, or of several under Append. */
static int
count_stages(const Plan *plan)
{
	const bool	ours = is_gpuvm_scan(plan);
	int			n = ours ? 1 : 0;
	ListCell   *lc;

	check_stack_depth();
	if (IsA(plan, Append))
	{
		foreach(lc, ((const Append *) plan)->appendplans)
			n += count_stages(static_cast<const Plan *>(lfirst(lc)));
	}
	for_each_from(lc, ours ? ((const CustomScan *) plan)->custom_plans : NIL, 1)
		n += count_stages(static_cast<const Plan *>(lfirst(lc)));
	return n;
}

void
explain_scan(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuvmScanState *state = reinterpret_cast<GpuvmScanState *>(node);
	ScanPlan   *plan = state->plan;
	ScanFigures *f = &state->figures;
	List	   *context = compat_deparse_context(plan_context(plan), node->ss.ps.plan);
	/* Figures of any stage tell of rows that a policy, or a lack of privileges, hides. */
	const bool	all = may_see_all_rows(es->rtable);

	if (plan->whole)
		ExplainPropertyInteger("Stages", nullptr, count_stages(node->ss.ps.plan), es);
	if (state->shared_stage > 0)
	{
		ExplainPropertyInteger("Shared Stage", nullptr, state->shared_stage, es);
		ExplainPropertyInteger("Readers", nullptr, state->shared->stages[state->shared_stage - 1].nreaders, es);
	}
	if (plan->ncursors > 1)
		show_joins(plan, context, es);
	else
	{
		if (!gives_positions(plan) || plan->norder > 0)
			ExplainPropertyText("Relation", plan->cursors[0].child != 0 ? psprintf("%s (%s)", quote_identifier(plan->cursors[0].alias), rows_of(&plan->cursors[0]))
								: quote_identifier(get_rel_name(plan->cursors[0].relid)), es);
		if (plan->cursors[0].leaves != NIL)
			ExplainPropertyInteger("Partitions", nullptr, list_length(plan->cursors[0].leaves), es);
		if (plan->cursors[0].quals != NIL)
			ExplainPropertyText("VM Filter", deparse_list(plan->cursors[0].quals, " AND ", context), es);
	}
	if (plan->kind == SCAN_GROUPS)
		show_groups(plan, context, es);
	else if (plan->filter_quals != NIL)
		ExplainPropertyText("Filter", deparse_list(plan->filter_quals, " AND ", context, plan->ncursors > 1), es);
	show_maps(plan, context, es);
	show_order(node, context, ancestors, es);
	if (plan->windows != NIL)
		ExplainPropertyList("VM Windows", plan_window_texts(plan), es);
	if (heap_columns(plan) != NIL)
		ExplainPropertyList("Heap Columns", heap_columns(plan), es);
	if (plan->limit > 0)
		ExplainPropertyInteger("VM Limit", nullptr, static_cast<int64>(plan->limit), es);
	if (es->verbose)
		show_programs(plan, es);
	if (!es->analyze)
		return;

	/* A LIMIT above may have left the job in flight: its figures count, too. */
	run_stop(state);
	if (f->fallback >= 0)
		ExplainPropertyText("Fallback", f->fallback_detail[0] == '\0' ? fallback_reason_name(static_cast<FallbackReason>(f->fallback))
							: psprintf("%s (%s)", fallback_reason_name(static_cast<FallbackReason>(f->fallback)), f->fallback_detail), es);
	if (!f->ran)
	{
		ExplainPropertyText("Device", "none", es);
		return;
	}
	/* what was read decides where a program runs, if nobody else does */
	if (all || setting_device != DEVICE_AUTO || arena_header()->ndevices.load() == 0)
		show_device(f, all, es);
	if (f->unfiltered)
		ExplainPropertyText("VM Group Filter Fallback", psprintf("%s%s", fallback_reason_name(FALLBACK_ERROR_FLAG),
																 f->unfiltered_before ? " (of an earlier execution)" : ""), es);
	if (!all)
		return;
	show_delta(f, es);
	ExplainPropertyInteger("Tablets Scanned", nullptr, f->tablets_scanned, es);
	ExplainPropertyInteger("Tablets Skipped", nullptr, f->tablets_skipped, es);
	ExplainPropertyInteger("VM Rows In", nullptr, f->rows_in, es);
	if (plan->ncursors > 1)
	{
		ExplainPropertyInteger("Build Rows", nullptr, f->build_rows, es);
		ExplainPropertyInteger("Pairs", nullptr, f->pairs, es);
	}
	if (plan->nmaps > 0)
		ExplainPropertyInteger("Map Entries Evaluated", nullptr, f->map_entries, es);
	ExplainPropertyInteger("VM Rows Out", nullptr, f->rows_out, es);
	if (heap_columns(plan) != NIL)
		ExplainPropertyInteger("Heap Fetches", nullptr, f->heap_fetches, es);
	if (f->stayed)
		ExplainPropertyInteger("Rows Stay", nullptr, f->rows_stayed, es);
	if (f->not_stayed[0] != '\0')
		ExplainPropertyText("Rows Did Not Stay", f->not_stayed, es);
	if (f->units_by_heap > 0)
		ExplainPropertyInteger("Units Evaluated From Heap", nullptr, f->units_by_heap, es);
	if (es->costs)
	{
		ExplainPropertyInteger("Bytes Read", nullptr, f->bytes_read, es);
		if (f->device == Device::Cuda)
		{
			ExplainPropertyText("Transfer", transfer_name(f->transfer), es);
			ExplainPropertyInteger("Slices", nullptr, f->slices, es);
			ExplainPropertyInteger("Bytes Moved", nullptr, f->bytes_moved, es);
		}
		else
		{
			ExplainPropertyInteger("VM Threads", nullptr, f->threads, es);
			ExplainPropertyInteger("Engine Memory", "kB", static_cast<int64>((f->memory_peak + 1023) / 1024), es);
			if (f->spilled > 0)
				ExplainPropertyInteger("Spilled", "kB", static_cast<int64>((f->spilled + 1023) / 1024), es);
			if (f->restarts > 0)
				ExplainPropertyInteger("Restarts for Memory", nullptr, f->restarts, es);
		}
		if (plan->ncursors > 1)
		{
			ExplainPropertyInteger("Build Bytes", nullptr, f->build_bytes, es);
			if (f->passes > 1)
				ExplainPropertyInteger("Passes", nullptr, f->passes, es);
			show_indexes(plan, "Indexes Used", f->indexes_used, es);
			show_indexes(plan, "Indexes Made", f->indexes_made, es);
			if ((f->indexes_used | f->indexes_made) != 0)
				ExplainPropertyInteger("Index Bytes", nullptr, f->index_bytes, es);
		}
	}
	/* Nobody asks for times who turned TIMING or SUMMARY off. */
	if (es->summary && es->timing)
	{
		ExplainPropertyFloat("Check Time", "us", f->check_ns / 1e3, 1, es);
		if (f->delta_ns > 0)
			ExplainPropertyFloat("Delta Time", "ms", f->delta_ns / 1e6, 3, es);
		if (plan->nmaps > 0)
			ExplainPropertyFloat("Map Time", "ms", f->map_ns / 1e6, 3, es);
		ExplainPropertyFloat("Engine Time", "ms", f->engine_ns / 1e6, 3, es);
		if (f->queue_ns > 0)
			ExplainPropertyFloat("Queue Time", "ms", f->queue_ns / 1e6, 3, es);
		if (f->expected_cpu_ns > 0)
			ExplainPropertyText("Expected Time",
								psprintf("cpu %.3f ms, cuda %.3f ms", f->expected_cpu_ns / 1e6, f->expected_device_ns / 1e6), es);
		if (f->device == Device::Cuda)
			ExplainPropertyFloat("Device Time", "ms", f->device_ns / 1e6, 3, es);
	}
}

}  // namespace gpuvm
