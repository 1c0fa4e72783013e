/*
 * merge.cc: which rows of several programs' results are one group.
 *
 * The programs of a grouping set have the same keys, in the same forms: codes are of the same dictionaries and
 * maps. So keys are compared as the machine has them, floats as PostgreSQL's = does, and values of variable length, of
 * which each job refers to the one that it met first, by their bytes.
 */
#include "pg/pg.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
}

#include <cmath>
#include <cstring>

#include "executor/scan_state.h"

namespace gpuvm {

void
view_chunk(ScanPart *part, const GroupChunk *chunk)
{
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];

	if (part->viewed == chunk)
		return;
	part->viewed = chunk;
	result_layout(part->types, part->ncols, chunk->capacity, layout);
	for (int i = 0; i < part->ncols; i++)
	{
		part->views[i] = ColumnView{part->types[i], reinterpret_cast<const uint64 *>(chunk->area + layout[i].nulls),
			chunk->area + layout[i].values};
	}
}

/* A float's bits, the same ones for values that are equal. */
template <typename T, typename Bits>
static uint64
float_word(const char *at)
{
	T			value;
	Bits		bits;

	memcpy(&value, at, sizeof(value));
	if (std::isnan(value))
		return ~uint64{0};
	value += 0;					/* -0 becomes 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Of a key of variable length, which is not null: what is compared. */
static const unsigned char *
key_bytes(const ScanPart *part, int key, uint32 row, int *len)
{
	Datum		value = reinterpret_cast<const Datum *>(part->views[key].values)[row];

	*len = part->lens[key] > 0 ? part->lens[key] : static_cast<int>(VARSIZE_ANY_EXHDR(DatumGetPointer(value)));
	return reinterpret_cast<const unsigned char *>(part->lens[key] > 0 ? DatumGetPointer(value) : VARDATA_ANY(DatumGetPointer(value)));
}

/* A key as a word; a null has one that values may have, too. Of values of variable length it is a hash. */
static uint64
key_word(const ScanPart *part, int key, uint32 row)
{
	const ColumnView &view = part->views[key];
	const char *at = view.values + static_cast<Size>(row) * type_width(view.type);
	uint64		word = 0;

	if (view_is_null(view, row))
		return 0;
	if (part->plan->outputs[key].kind == OutputKind::Variable)
	{
		int			len;
		const unsigned char *bytes = key_bytes(part, key, row, &len);

		return hash_bytes_extended(bytes, len, 0);
	}
	if (view.type == Type::F32)
		return float_word<float, uint32>(at);
	if (view.type == Type::F64)
		return float_word<double, uint64>(at);
	memcpy(&word, at, type_width(view.type));
	return word;
}

/* The result column of the key's high halves (OutputKind::Wide); the key's own where it has none. */
static int
high_column(const ScanPart *part, int key)
{
	const OutputForm &form = part->plan->outputs[key];

	return form.kind == OutputKind::Wide ? form.map : key;
}

uint32
hash_keys(const ScanPart *part, int nkeys, uint32 row)
{
	uint64		hash = 0;

	for (int i = 0; i < nkeys; i++)
	{
		hash = (hash ^ key_word(part, i, row)) * UINT64CONST(0x9e3779b97f4a7c15) + view_is_null(part->views[i], row);
		hash ^= hash >> 32;
	}
	hash *= UINT64CONST(0xd6e8feb86659fd93);
	return static_cast<uint32>(hash >> 32);
}

bool
same_keys(const ScanPart *a, uint32 a_row, const ScanPart *b, uint32 b_row, int nkeys)
{
	for (int i = 0; i < nkeys; i++)
	{
		bool		null = view_is_null(a->views[i], a_row);

		if (null != view_is_null(b->views[i], b_row))
			return false;
		if (!null && a->plan->outputs[i].kind == OutputKind::Variable)
		{
			int			a_len;
			int			b_len;
			const unsigned char *a_bytes = key_bytes(a, i, a_row, &a_len);
			const unsigned char *b_bytes = key_bytes(b, i, b_row, &b_len);

			if (a_len != b_len || memcmp(a_bytes, b_bytes, a_len) != 0)
				return false;
		}
		else if (key_word(a, i, a_row) != key_word(b, i, b_row) ||
				 key_word(a, high_column(a, i), a_row) != key_word(b, high_column(b, i), b_row))
			return false;
	}
	return true;
}

/* -- the table ------------------------------------------------------------------------------ */

/* A slot has a group's number, from 1, and the hash of its keys in front of it. */
struct MergeTable
{
	ScanPart   *parts;
	int			nkeys;
	GroupMerge *merge;
	uint64		max_groups;
	uint64	   *slots;
	uint64		mask;
};

static uint64
total_rows(const ScanPart *parts, int nparts)
{
	uint64		rows = 0;

	for (int i = 0; i < nparts; i++)
		rows += parts[i].nrows;
	return rows;
}

static uint64
slot_count(const ScanPart *parts, int nparts)
{
	return pg_nextpower2_64(Max(total_rows(parts, nparts), uint64{8}) * 3 / 2);
}

uint64
merge_bytes(const ScanPart *parts, int nparts)
{
	/* most groups are in all parts, and the array of rows doubles when it is full */
	return slot_count(parts, nparts) * sizeof(uint64) + total_rows(parts, nparts) * 2 * sizeof(GroupRow);
}

/* The group's keys are those of the first part that has it. */
static bool
is_group(MergeTable *table, uint64 group, const ScanPart *part, uint32 row)
{
	const GroupRow *rows = &table->merge->rows[group * table->merge->nparts];
	int			i = 0;

	while (rows[i].chunk == NO_GROUP)
		i++;
	if (&table->parts[i] == part)
		return false;			/* a program's groups are different */
	view_chunk(&table->parts[i], table->parts[i].chunks[rows[i].chunk]);
	return same_keys(&table->parts[i], rows[i].row, part, row, table->nkeys);
}

static uint64
new_group(MergeTable *table)
{
	GroupMerge *merge = table->merge;

	if (merge->ngroups == table->max_groups)
	{
		table->max_groups *= 2;
		merge->rows = static_cast<GroupRow *>(repalloc_huge(merge->rows, sizeof(GroupRow) * merge->nparts * table->max_groups));
	}
	for (int i = 0; i < merge->nparts; i++)
		merge->rows[merge->ngroups * merge->nparts + i] = GroupRow{NO_GROUP, 0};
	return merge->ngroups++;
}

static uint64
find_group(MergeTable *table, const ScanPart *part, uint32 row)
{
	uint32		hash = hash_keys(part, table->nkeys, row);

	for (uint64 at = hash;; at++)
	{
		uint64	   *slot = &table->slots[at & table->mask];

		if (*slot == 0)
		{
			uint64		group = new_group(table);

			*slot = uint64{hash} << 32 | (group + 1);
			return group;
		}
		if (*slot >> 32 == hash && is_group(table, (*slot & PG_UINT32_MAX) - 1, part, row))
			return (*slot & PG_UINT32_MAX) - 1;
	}
}

GroupMerge *
merge_groups(MemoryContext context, ScanPart *parts, int nparts)
{
	MergeTable	table = {};
	uint64		nslots = slot_count(parts, nparts);

	table.parts = parts;
	table.merge = static_cast<GroupMerge *>(MemoryContextAllocZero(context, sizeof(GroupMerge)));
	table.merge->nparts = nparts;
	table.max_groups = Max(parts[0].nrows, uint64{8});
	table.merge->rows = static_cast<GroupRow *>(MemoryContextAllocHuge(context, sizeof(GroupRow) * nparts * table.max_groups));
	table.slots = static_cast<uint64 *>(MemoryContextAllocExtended(context, sizeof(uint64) * nslots, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	table.mask = nslots - 1;
	table.nkeys = list_length(parts[0].plan->key_columns);
	for (int p = 0; p < nparts; p++)
	{
		for (uint32 c = 0; c < parts[p].nchunks; c++)
		{
			const GroupChunk *chunk = parts[p].chunks[c];

			CHECK_FOR_INTERRUPTS();
			for (uint32 row = 0; row < chunk->nrows; row++)
			{
				view_chunk(&parts[p], chunk);
				table.merge->rows[find_group(&table, &parts[p], row) * nparts + p] = GroupRow{c, row};
			}
		}
	}
	pfree(table.slots);
	return table.merge;
}

}  // namespace gpuvm
