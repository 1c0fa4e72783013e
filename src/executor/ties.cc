/*
 * ties.cc: which of values that are equal without being the same a group shows.
 *
 * A program of ties (compiler/compile.h) gives, for each group and each tablet, the first or last row that has such a value. Of these the
 * group's is the first or last in the order of PostgreSQL's scan: leaf by leaf, by ctid. What the row's column has is what is shown (rule 16).
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "port/pg_bitutils.h"
}

#include "executor/scan_state.h"
#include "vm/program.h"

namespace gpuvm {

/* A group's row, and the row of the source that it shows a value of. */
struct TiedGroup
{
	GroupRow	at;
	int32		rank;			/* the extreme's; 0: of keys */
	const ScanTablet *tablet;
	uint32		row;
};

struct TieTable
{
	TiedGroup  *groups;
	uint32		ngroups;
	uint32	   *slots;			/* numbers of groups, from 1 */
	uint32		mask;
	ScanPart	known;			/* the part, with views of its own: it is read while another chunk is in the part's */
};

/* -- rows ------------------------------------------------------------------------------------ */

/* Does PostgreSQL's scan come to the row a before b? */
static bool
comes_before(const ScanTablet *a, uint32 a_row, const ScanTablet *b, uint32 b_row)
{
	ItemPointerData a_tid;
	ItemPointerData b_tid;
	uint32		hint = 0;

	if (a == b)
		return a_row < b_row;
	if (a->leaf != b->leaf)
		return a->leaf < b->leaf;
	/* in the order of what was read */
	if (a->of_file || b->of_file)
		return a < b;
	source_ctids(a, &a_row, 1, &hint, &a_tid);
	hint = 0;
	source_ctids(b, &b_row, 1, &hint, &b_tid);
	return ItemPointerCompare(&a_tid, &b_tid) < 0;
}

/* The code that the row has in a column; false: it is null. */
static bool
row_code(const TabletHeader *tablet, int column, uint32 row, uint32 *code)
{
	const ColumnChunk &chunk = tablet_chunks(tablet)[column];
	const char *data = tablet_at<char>(tablet, chunk.data);
	uint32		value = 0;

	if ((chunk.flags & CHUNK_ALL_NULL) != 0 || (chunk.nulls != 0 && (tablet_at<uint64>(tablet, chunk.nulls)[row / 64] >> row % 64 & 1) != 0))
		return false;
	if (chunk.width > 0)
		memcpy(&value, data + Size{row} * chunk.width, chunk.width);
	*code = static_cast<uint32>(chunk.base + value);
	return true;
}

/* -- groups ------------------------------------------------------------------------------------ */

static int
shown_keys(const ScanPart *part)
{
	return list_length(part->plan->key_columns);
}

/* Has the row of a part of ties a place, and a value? Where all rows were looked at it may have none. */
static bool
has_value(const ScanPart *part, int position, uint32 row)
{
	return !view_is_null(part->views[position], row) && (part->plan->ties_columns == NIL || !view_is_null(part->views[shown_keys(part)], row));
}

/* The rank behind a part of ties' keys. */
static int32
rank_of(const ScanPart *part, uint32 row)
{
	return part->plan->ties_columns == NIL ? 0 : reinterpret_cast<const int32 *>(part->views[shown_keys(part)].values)[row];
}

/* The group's slot, which is 0 if there is none; `from` has the keys. */
static uint32 *
find_slot(const ScanPart *ties, const ScanPart *from, uint32 row, int32 rank)
{
	TieTable   *table = ties->ties;
	uint32		at = (hash_keys(from, shown_keys(ties), row) ^ static_cast<uint32>(rank) * 0x9e3779b9u) & table->mask;

	for (;; at = (at + 1) & table->mask)
	{
		const TiedGroup *group = table->slots[at] == 0 ? nullptr : &table->groups[table->slots[at] - 1];

		if (group == nullptr)
			return &table->slots[at];
		if (group->rank != rank)
			continue;
		view_chunk(&table->known, ties->chunks[group->at.chunk]);
		if (same_keys(&table->known, group->at.row, from, row, shown_keys(ties)))
			return &table->slots[at];
	}
}

bool
ties_wanted(const GpuvmScanState *state, const ScanPart *part)
{
	const Program *program = part->plan->program;

	for (int i = 0; i < program->nops && !part->plan->ties_all; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::Lookup && state->plan->maps[op.p2].kind == MapKind::Tied && state->maps[op.p2]->ties)
			return true;
	}
	return part->plan->ties_all;
}

void
ties_take(GpuvmScanState *state, ScanPart *part)
{
	const ScanSource *source = state->sources[part->plan->ties_cursor];
	TieTable   *table = static_cast<TieTable *>(MemoryContextAllocZero(state->group_context, sizeof(TieTable)));
	uint32		nslots = pg_nextpower2_32(Max(part->nrows, uint64{8}) * 2);
	int			column = part->plan->noutputs;

	/* high halves of keys are behind it */
	while (part->plan->outputs[--column].kind == OutputKind::High)
		;
	table->mask = nslots - 1;
	table->slots = static_cast<uint32 *>(MemoryContextAllocExtended(state->group_context, sizeof(uint32) * nslots, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	table->groups = static_cast<TiedGroup *>(MemoryContextAllocHuge(state->group_context, sizeof(TiedGroup) * Max(part->nrows, uint64{1})));
	table->known = *part;
	table->known.viewed = nullptr;
	part->ties = table;
	state->group_bytes += sizeof(uint32) * nslots + sizeof(TiedGroup) * part->nrows;
	for (uint32 c = 0; c < part->nchunks; c++)
	{
		CHECK_FOR_INTERRUPTS();
		view_chunk(part, part->chunks[c]);
		for (uint32 row = 0; row < part->chunks[c]->nrows; row++)
		{
			int64		at = reinterpret_cast<const int64 *>(part->views[column].values)[row];
			TiedGroup	found = {{c, row}, rank_of(part, row), nullptr, position_row(at)};
			uint32	   *slot;
			TiedGroup  *group;

			if (!has_value(part, column, row))
				continue;
			found.tablet = source_row(source, at, nullptr);
			slot = find_slot(part, part, row, found.rank);
			if (*slot == 0)
			{
				table->groups[table->ngroups++] = found;
				*slot = table->ngroups;
				continue;
			}
			group = &table->groups[*slot - 1];
			if (comes_before(found.tablet, found.row, group->tablet, group->row) != part->plan->ties_last)
			{
				group->tablet = found.tablet;
				group->row = found.row;
			}
		}
	}
}

Datum
tied_datum(const GpuvmScanState *state, int ties, const ScanPart *from, int column, uint32 row, int32 rank)
{
	ScanPart   *part = &state->parts[ties];
	const int	number = from->plan->outputs[column].map;
	const PlanMap *plan = &state->plan->maps[number];
	const MapData *map = state->maps[number];
	const uint32 slot = part->ties == nullptr ? 0 : *find_slot(part, from, row, part->plan->ties_columns == NIL ? 0 : rank);
	const TiedGroup *group = slot == 0 ? nullptr : &part->ties->groups[slot - 1];
	uint32		code = 0;
	uint32		item;
	bool		known;

	/* rows that an outer join makes are at no place: what an expression makes of their nulls can be equal to other values */
	known = group != nullptr && row_code(group->tablet->header, source_column(state->sources[plan->cursor], plan->attnum, Type::I32), group->row, &code);
	if (known ? code >= map_count(state, number) : !map->null_entry)
		elog(ERROR, "gpuvm: gpuvmd returned no row that has the group's value");
	item = !known ? map->null_item : map->bare ? code : map->entry_items[code];
	return map->bare ? entry_datum(&state->map_entries[number], item) : map->items[item];
}

}  // namespace gpuvm
