/*
 * set_codes.cc: what the codes in a result set are of. All arms' columns of a table's column have codes of its dictionary,
 * of which some may have a longer version; a constant gets the code that it has there, or one behind all others.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
}

#include <utility>

#include "executor/set_arms.h"
#include "store/dictionary.h"
#include "tablet/dictionary.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

static const OutputForm *
form_of_sink(const GpuvmScanState *arm, const SetSink *sink, uint32 i)
{
	return &arm->part->plan->outputs[sink->columns[i].result];
}

/*
 * Whose dictionary a result column's codes are of: a column of a table, also where the rows of other programs are in
 * between, which hand codes on as they are.
 */
struct CodeOrigin
{
	Oid			relid;			/* InvalidOid: of none, or of several */
	AttrNumber	attnum;
};

/* The place of the cursor's column among the child's; -1: it is none of these. */
static int
place_in_child(const PlanCursor *cursor, AttrNumber attnum)
{
	ListCell   *lc;

	foreach(lc, cursor->columns)
	{
		if (child_column(lfirst_node(List, lc)).attnum == attnum)
			return foreach_current_index(lc);
	}
	return -1;
}

/* What an arm's program gives for the child's column of this number, from 0; NO_VALUE: more than that of one program. */
static ArmValue
value_in_arm(const GpuvmScanState *arm, int place)
{
	if (arm->css.ss.ps.ps_ProjInfo != nullptr || program_count(arm->plan) != 1)
		return NO_VALUE;
	return scan_value(arm, place + 1);
}

static CodeOrigin
origin_of_result(const GpuvmScanState *scan, int column)
{
	const OutputForm &form = scan->part->plan->outputs[column];
	const PlanCursor *from = &scan->plan->cursors[form.cursor];
	const int	place = place_in_child(from, form.attnum);
	PlanState  *child;
	List	   *arms = NIL;
	const GpuvmScanState *first = nullptr;
	int			result = -1;
	ListCell   *lc;

	check_stack_depth();
	if (from->child == 0)
		return CodeOrigin{from->relid, form.attnum};
	child = from->child > 0 ? scan->children[from->child - 1].state : scan->shared->stages[-from->child - 1].child.state;
	if (place < 0 || !list_arms(child, &arms))
		return CodeOrigin{InvalidOid, 0};
	/* of several arms that are one set all have what the first has; whether they are is seen when they have run */
	foreach(lc, arms)
	{
		const GpuvmScanState *arm = static_cast<const GpuvmScanState *>(lfirst(lc));
		const ArmValue value = value_in_arm(arm, place);

		if (value.column < 0 || value.kind == OutputKind::Map)
			return CodeOrigin{InvalidOid, 0};
		if (value.kind != OutputKind::Dictionary || first != nullptr)
			continue;
		first = arm;
		result = value.column;
	}
	return first == nullptr ? CodeOrigin{InvalidOid, 0} : origin_of_result(first, result);
}

/* How many columns of the arm are constants, or nulls, in which others may have codes of a table's column. */
static int
count_constants(const ScanSource *source, const GpuvmScanState *arm, const SetSink *sink)
{
	int			n = 0;

	for (uint32 i = 0; i < source->ncolumns; i++)
		n += column_form(source, i).form == ValueForm::Dictionary && form_of_sink(arm, sink, i)->kind != OutputKind::Dictionary;
	return n;
}

/* Arms without constants first: their dictionaries are to be known before a constant is given a code. */
static void
order_arms(const ScanSource *source, List *arms, SetSink *sinks)
{
	for (int i = 1; i < list_length(arms); i++)
	{
		for (int k = i; k > 0; k--)
		{
			ListCell   *cell = list_nth_cell(arms, k);
			ListCell   *before = list_nth_cell(arms, k - 1);

			if (count_constants(source, static_cast<const GpuvmScanState *>(lfirst(before)), &sinks[k - 1]) <=
				count_constants(source, static_cast<const GpuvmScanState *>(lfirst(cell)), &sinks[k]))
				break;
			std::swap(lfirst(before), lfirst(cell));
			std::swap(sinks[k - 1], sinks[k]);
		}
	}
}

bool
agree_on_codes(const ScanSource *source, List *arms, SetSink *sinks)
{
	order_arms(source, arms, sinks);
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		CodeOrigin	all = {InvalidOid, 0};
		bool		constants = false;
		ListCell   *lc;

		foreach(lc, list_length(arms) > 1 && column_form(source, i).form == ValueForm::Dictionary ? arms : NIL)
		{
			const GpuvmScanState *arm = static_cast<const GpuvmScanState *>(lfirst(lc));
			const SetSink *sink = &sinks[foreach_current_index(lc)];
			const OutputForm *form = form_of_sink(arm, sink, i);
			CodeOrigin	origin;

			constants = constants || form->kind == OutputKind::Map;
			if (form->kind != OutputKind::Dictionary)
				continue;
			origin = origin_of_result(arm, sink->columns[i].result);
			if (!OidIsValid(all.relid))
				all = origin;
			if (!OidIsValid(origin.relid) || constants || origin.relid != all.relid || origin.attnum != all.attnum)
				return false;
		}
	}
	return true;
}

void
begin_codes(ScanSource *source)
{
	source->entries = static_cast<EntrySource *>(palloc0(sizeof(EntrySource) * Max(source->ncolumns, 1)));
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		const Form_pg_attribute att = TupleDescAttr(source->desc, attribute_of(source->columns[i].attnum) - 1);

		source->entries[i].attlen = att->attlen;
		source->entries[i].byval = att->attbyval;
	}
}

void
begin_arm_codes(ScanSource *source, const GpuvmScanState *arm, SetSink *sink)
{
	/* rows that readers give point to them when the source has been closed */
	MemoryContext old = MemoryContextSwitchTo(arm->css.ss.ps.state->es_query_cxt);

	for (uint32 i = 0; i < sink->ncolumns; i++)
	{
		EntrySource *known = &source->entries[i];

		if (column_form(source, i).form != ValueForm::Dictionary || form_of_sink(arm, sink, i)->kind != OutputKind::Map)
			continue;
		if (known->local == nullptr)
			known->local = local_dictionary(known->base != nullptr ? known->base : empty_dictionary());
		sink->constants[i] = const_cast<LocalDictionary *>(known->local);
	}
	MemoryContextSwitchTo(old);
}

/* The last thing that is done to a register; NULL: nothing, or more than one thing. */
static Op *
writer_of(Program *program, int reg)
{
	Op		   *writer = nullptr;

	for (int i = 0; i < program->nops; i++)
	{
		Op		   *op = const_cast<Op *>(&program->ops()[i]);

		if ((op->opcode != Opcode::Copy && op->opcode != Opcode::Integer) || op->p1 != reg)
			continue;
		if (writer != nullptr)
			return nullptr;
		writer = op;
	}
	return writer;
}

/* The register of a result column. */
static int
register_of_result(const Program *program, int column)
{
	for (int i = 0; i < program->nops; i++)
	{
		if (program->ops()[i].opcode == Opcode::Result)
			return program->ops()[i].p1 + column;
	}
	return -1;
}

/* What the column is copied from, code 0 of the constant's own, gives way to this code. */
static bool
put_code(Program *program, int column, int32 code)
{
	Op		   *op = writer_of(program, register_of_result(program, column));
	const Op   *from = op;

	if (op != nullptr && op->opcode == Opcode::Copy)
		from = writer_of(program, op->p2);
	if (from == nullptr || from->opcode != Opcode::Integer || from->p2 != 0)
		return false;

	const int	to = op->p1;

	*op = *from;
	op->p1 = to;
	op->p2 = code;
	return true;
}

bool
put_constant_codes(const GpuvmScanState *state, const SetSink *sink, Program *program)
{
	ImageBuffer buffer = {};
	bool		put = false;

	for (uint32 i = 0; i < sink->ncolumns; i++)
	{
		const int	column = sink->columns[i].result;
		LocalDictionary *codes = sink->constants[i];
		const char *image;
		uint32		len;
		int32		code;
		const Const *constant;

		if (codes == nullptr)
			continue;
		constant = (const Const *) state->plan->maps[state->part->plan->outputs[column].map].expr;
		if (!dictionary_image(&buffer, constant->constvalue, constant->constlen, constant->constbyval, &image, &len))
			return false;
		code = local_code(codes, image, len);
		if (code == NO_CODE || !put_code(program, column, code))
			return false;
		put = true;
	}
	if (put)
		program->hash = hash_program(program);
	return true;
}

bool
take_codes(ScanSource *source, const GpuvmScanState *arm, const SetSink *sink)
{
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		EntrySource *known = &source->entries[i];
		const EntrySource *entries = &arm->part->entries[sink->columns[i].result];

		if (column_form(source, i).form != ValueForm::Dictionary || form_of_sink(arm, sink, i)->kind != OutputKind::Dictionary)
			continue;
		/* what a delta adds is there only where there is one arm (SetSink.several) */
		if (!sink->several)
			*known = *entries;
		else if (known->base == nullptr)
			known->base = entries->base;
		else if (entries->base == nullptr || known->local != nullptr || known->base->family != entries->base->family)
			return false;
		else if (entries->base->nentries > known->base->nentries)
			known->base = entries->base;
	}
	/* what window functions give of a constant */
	for (uint32 i = sink->ncolumns; i < source->ncolumns; i++)
	{
		for (uint32 k = 0; k < sink->ncolumns; k++)
		{
			if (sink->constants[k] != nullptr && sink->columns[k].result == sink->columns[i].result)
				source->entries[i] = source->entries[k];
		}
	}
	return true;
}

}  // namespace gpuvm
