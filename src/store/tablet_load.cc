/*
 * tablet_load.cc: stored tablets into tablets in memory, and what of those a later version can share.
 *
 * A block of a tablet in memory is a part of a stored tablet and knows of which (stored_key). What is stored never changes. So the
 * version for another snapshot has the tablets of the last one, masks what this snapshot does not see of them, and only what it sees
 * and they have not is read. A tablet that is masked for a good part is given up, and what it had is read again; so
 * are the last ones while they are small beside what is read, or there would be one for each change.
 */
#include "store/copier.h"

#include <algorithm>

#include "pg/engine_client.h"
#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/family.h"
#include "store/file.h"
#include "store/refresher.h"
#include "store/tablet_image.h"
#include "store/tablets.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

static_assert(IMAGE_MAX_ROWS / KEY_ROWS < KEYS_PER_TABLET, "each row of a stored tablet has a key");

/* A tablet of which more than this part is masked is given up: a range of masked rows takes about as much as a row. */
constexpr uint32 MASKED_PART = 8;

/* The last tablet goes into a new one if it has so many rows at most for each that is read. */
constexpr uint64 TAIL_ROWS = 4;

/* Blocks' numbers are not used again as long as tablets are shared: there may be so many times as many as are needed. */
constexpr uint64 SPARE_BLOCKS = 4;

/* -- rows --------------------------------------------------------------------------------- */

static bool
flush_stored(Copier *c, BlockNumber next_block)
{
	return c->job->strict ? copier_flush(c, next_block) == 0 : flush_or_raise(c, next_block);
}

/* Ends the block that is staged, if there is one. False: the job gives up. */
static bool
end_block(Copier *c, uint64 key)
{
	if (key == 0)
		return true;
	if (!copier_end_block(c))
		return false;
	pg_atomic_fetch_add_u64(&c->job->nrows, c->ntuples);
	progress_add(c->job->progress_slot, 1, c->ntuples);
	return !copy_again(c->job);
}

/* All rows of the reader, in blocks from `block` on. False: the job gives up, or is to begin anew. */
static bool
copy_stored_rows(Copier *c, TabletReader *reader, BlockNumber block)
{
	int			natts = RelationGetDescr(c->rel)->natts;
	Datum	   *values = static_cast<Datum *>(palloc(sizeof(Datum) * Max(natts, 1)));
	bool	   *nulls = static_cast<bool *>(palloc(sizeof(bool) * Max(natts, 1)));
	uint64		key = 0;

	c->first_block = block;
	while (tablets_next(reader, values, nulls))
	{
		uint32		row;
		const StoredTablet *from = tablets_at(reader, &row);
		uint64		of_row = stored_key(from->id, row);
		OffsetNumber offset = static_cast<OffsetNumber>(row % KEY_ROWS + 1);

		if (of_row != key)
		{
			/* a stored tablet is kept together where that is possible */
			uint32		rows = key_tablet(key) == from->id || from->nrows > c->row_capacity ? KEY_ROWS : from->nrows;

			if (!end_block(c, key))
				return false;
			CHECK_FOR_INTERRUPTS();
			refresh_pace();
			if (!copier_has_room(c, rows, c->row_capacity) && !flush_stored(c, block))
				return false;
			copier_begin_block(c);
			c->lsn = key = of_row;
			block++;
		}
		copier_add_row(c, values, nulls);
		c->offsets[c->ntuples - 1] = offset;
		c->dense = c->dense && offset == c->ntuples;
	}
	return end_block(c, key) && flush_stored(c, block);
}

/* The columns that the job stores. */
static Bitmapset *
columns_of_job(const CopyJob *job)
{
	/* no column is not the same as all of them */
	Bitmapset  *columns = bms_make_singleton(0);

	for (uint32 i = 0; i < job->ncols; i++)
		columns = bms_add_member(columns, attribute_of(job->columns[i].attnum));
	return columns;
}

void
copy_stored_table(Relation rel, CopyJob *job)
{
	Copier	   *c = make_copier(rel, job, job->tablet_rows);
	TabletReader *reader = tablets_open(rel, GetActiveSnapshot(), columns_of_job(job));

	(void) copy_stored_rows(c, reader, 0);
	tablets_close(reader);
	free_copier(c);
}

/* -- what can be shared ---------------------------------------------------------------------- */

/* A stored tablet that the snapshot sees. */
struct Listed
{
	bits8	   *dead;			/* its rows that the snapshot does not see; NULL: none */
	uint32		live;			/* how many it does see, */
	uint32		found;			/* and of those tablets that are kept have */
	bool		reads;			/* it is to be read, whatever tablets have of it */
	uint64		seen[KEYS_PER_TABLET / 64];	/* its blocks in tablets that are kept */
};

/* A tablet of the last version. */
struct Kept
{
	bool		keep;
	uint32		nmasked;		/* rows */
	MaskedRows *ranges;			/* `tablet` is not filled in */
	uint32		nranges;
	uint32		capacity;
};

struct Sharing
{
	Relation	rel;
	Snapshot	snapshot;
	const TableVersion *version;
	const uint64_t *tablets;
	TabletList	list;
	Listed	   *listed;
	Kept	   *kept;
	uint64		to_read;		/* rows */
};

static const TabletHeader *
kept_tablet(const Sharing *s, uint32 t)
{
	return arena_at<TabletHeader>(s->tablets[t]);
}

static void
read_dead_rows(Sharing *s)
{
	s->listed = static_cast<Listed *>(palloc_extended(sizeof(Listed) * Max(s->list.ntablets, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	for (int i = 0; i < s->list.ntablets; i++)
	{
		const StoredTablet *tablet = &s->list.tablets[i];
		Listed	   *l = &s->listed[i];
		Size		nbits = (tablet->nrows + 7) / 8;

		l->live = tablet->nrows;
		for (int d = first_dead(&s->list, tablet->id); d < s->list.ndead && s->list.dead[d].tablet == tablet->id; d++)
		{
			CHECK_FOR_INTERRUPTS();
			if (l->dead == NULL)
				l->dead = static_cast<bits8 *>(palloc0(nbits));
			add_dead_rows(&s->list.dead[d], s->snapshot, l->dead);
		}
		if (l->dead != NULL)
			l->live -= static_cast<uint32>(pg_popcount(reinterpret_cast<const char *>(l->dead), static_cast<int>(nbits)));
	}
}

static Listed *
listed_tablet(const Sharing *s, int64 id)
{
	const StoredTablet *first = s->list.tablets;
	const StoredTablet *end = first + s->list.ntablets;
	const StoredTablet *at = std::partition_point(first, end, [id](const StoredTablet &tablet) { return tablet.id < id; });

	return at < end && at->id == id ? &s->listed[at - first] : NULL;
}

static void
mask(Kept *k, uint32 first, uint32 end)
{
	k->nmasked += end - first;
	if (k->nranges > 0 && k->ranges[k->nranges - 1].end == first)
	{
		k->ranges[k->nranges - 1].end = end;
		return;
	}
	if (k->nranges == k->capacity)
	{
		k->capacity = Max(2 * k->capacity, 64);
		k->ranges = static_cast<MaskedRows *>(k->ranges == NULL ? palloc(sizeof(MaskedRows) * k->capacity)
											  : repalloc_huge(k->ranges, sizeof(MaskedRows) * k->capacity));
	}
	k->ranges[k->nranges++] = MaskedRows{0, first, end};
}

/* A row that two tablets have counts in the one that is looked at first. */
static void
look_at_tablet(Sharing *s, uint32 t)
{
	const TabletHeader *tablet = kept_tablet(s, t);
	const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
	const uint64_t *keys = tablet_at<uint64_t>(tablet, tablet->block_lsns);
	const uint32_t *block_lps = tablet_at<uint32_t>(tablet, tablet->block_lps);
	const uint16_t *lps = tablet_at<uint16_t>(tablet, tablet->lps);
	Kept	   *k = &s->kept[t];

	k->nmasked = k->nranges = 0;
	for (uint32 b = 0; b < tablet->nblocks; b++)
	{
		Listed	   *l = listed_tablet(s, key_tablet(keys[b]));
		uint32		number = keys[b] % KEYS_PER_TABLET;
		uint32		first = key_first_row(keys[b]);

		if (l == NULL || l->reads || (l->seen[number / 64] >> number % 64 & 1) != 0)
		{
			mask(k, block_rows[b], block_rows[b + 1]);
			continue;
		}
		l->seen[number / 64] |= uint64{1} << number % 64;
		l->found += block_rows[b + 1] - block_rows[b];
		for (uint32 row = block_rows[b]; l->dead != NULL && row < block_rows[b + 1]; row++)
		{
			uint32		in_block = row - block_rows[b];
			uint32		stored = first + (block_lps[b] == LPS_DENSE ? in_block : lps[block_lps[b] + in_block] - 1u);

			if ((l->dead[stored / 8] >> stored % 8 & 1) == 0)
				continue;
			l->found--;
			mask(k, row, row + 1);
		}
	}
}

/* What the tablets that are kept have; what was read last counts, where there are two. */
static void
look_at_tablets(Sharing *s)
{
	for (int i = 0; i < s->list.ntablets; i++)
	{
		s->listed[i].found = 0;
		memset(s->listed[i].seen, 0, sizeof(s->listed[i].seen));
	}
	for (uint32 t = s->version->ntablets; t-- > 0;)
		if (s->kept[t].keep)
			look_at_tablet(s, t);
}

/* Of the tablets that are kept the last one, if it is small beside what is read. */
static bool
give_up_tail(Sharing *s)
{
	uint32		t = s->version->ntablets;

	while (t > 0 && !s->kept[t - 1].keep)
		t--;
	if (t == 0 || s->to_read == 0 || kept_tablet(s, t - 1)->nrows > Max(TAIL_ROWS * s->to_read, uint64{TABLET_PAD_ROWS}))
		return false;
	s->kept[t - 1].keep = false;
	return true;
}

/* What a step gives up may be the reason for another one. */
static bool
choose_once(Sharing *s)
{
	bool		changed = false;

	look_at_tablets(s);
	s->to_read = 0;
	for (int i = 0; i < s->list.ntablets; i++)
	{
		Listed	   *l = &s->listed[i];

		if (!l->reads && l->found != l->live)
			l->reads = changed = true;
		if (l->reads)
			s->to_read += l->live;
	}
	for (uint32 t = 0; t < s->version->ntablets; t++)
	{
		Kept	   *k = &s->kept[t];

		if (k->keep && k->nmasked > kept_tablet(s, t)->nrows / MASKED_PART)
		{
			k->keep = false;
			changed = true;
		}
	}
	return give_up_tail(s) || changed;
}

/* False: so little can be shared that everything is to be read, into forms that fit it. */
static bool
choose(Sharing *s)
{
	s->kept = static_cast<Kept *>(palloc0(sizeof(Kept) * Max(s->version->ntablets, 1)));
	for (uint32 t = 0; t < s->version->ntablets; t++)
		s->kept[t].keep = true;
	while (choose_once(s))
		;
	return s->to_read <= s->list.rows / 2;
}

/* -- the version ---------------------------------------------------------------------------- */

/* What is to be read, as a list of its own. */
static TabletList
list_to_read(const Sharing *s)
{
	TabletList	list = s->list;

	list.tablets = static_cast<StoredTablet *>(palloc_extended(sizeof(StoredTablet) * Max(list.ntablets, 1), MCXT_ALLOC_HUGE));
	list.ntablets = 0;
	for (int i = 0; i < s->list.ntablets; i++)
		if (s->listed[i].reads)
			list.tablets[list.ntablets++] = s->list.tablets[i];
	return list;
}

/* The rows to read, as tablets from `first_block` on. False: they do not fit the version's columns, or memory is short. */
static bool
read_tablets(const Sharing *s, CopyJob *job, BlockNumber first_block)
{
	Copier	   *c = make_copier(s->rel, job, job->tablet_rows);
	TabletReader *reader = tablets_open_list(s->rel, s->snapshot, columns_of_job(job), list_to_read(s));
	bool		done = copy_stored_rows(c, reader, first_block);

	tablets_close(reader);
	free_copier(c);
	return done && !has_outgrown(job);
}

/* The blocks that there will be, and *first, from where on they are new. False: their numbers are used up. */
static bool
count_blocks(const Sharing *s, BlockNumber *first, BlockNumber *end)
{
	uint64		needed = s->list.rows / KEY_ROWS + s->list.ntablets;
	uint64		added = 0;

	*first = 0;
	for (uint32 t = 0; t < s->version->ntablets; t++)
		if (s->kept[t].keep)
			*first = kept_tablet(s, t)->first_block + kept_tablet(s, t)->nblocks;
	for (int i = 0; i < s->list.ntablets; i++)
		added += s->listed[i].reads ? 1 + s->list.tablets[i].nrows / KEY_ROWS : 0;
	*end = static_cast<BlockNumber>(Min(*first + added, uint64{MaxBlockNumber}));
	return *first + added <= Min(SPARE_BLOCKS * (needed + VM_BLOCKS_PER_PAGE), uint64{MaxBlockNumber});
}

/* Tablets that are kept, then new ones; and the rows that are masked. */
static void
put_together(const Sharing *s, const CopyJob *job, VersionParts *parts)
{
	const uint64 *made = arena_at<uint64>(job->manifest);
	uint32		nmade = pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&job->ntablets));
	uint64	   *tablets = static_cast<uint64 *>(palloc(sizeof(uint64) * (Size{s->version->ntablets} + nmade + 1)));
	uint32		nranges = 0;
	MaskedRows *masked;

	for (uint32 t = 0; t < s->version->ntablets; t++)
		nranges += s->kept[t].keep ? s->kept[t].nranges : 0;
	masked = static_cast<MaskedRows *>(palloc_extended(sizeof(MaskedRows) * Max(nranges, 1), MCXT_ALLOC_HUGE));
	for (uint32 t = 0; t < s->version->ntablets; t++)
	{
		const Kept *k = &s->kept[t];

		if (!k->keep)
			continue;
		for (uint32 i = 0; i < k->nranges; i++)
			masked[parts->nmasked++] = MaskedRows{parts->ntablets, k->ranges[i].first, k->ranges[i].end};
		tablets[parts->ntablets++] = s->tablets[t];
	}
	for (uint32 i = 0; i < nmade; i++)
		tablets[parts->ntablets++] = made[i];
	parts->tablets = tablets;
	parts->masked = masked;
}

/* Publishes the version that has these tablets. */
static bool
publish(const Sharing *s, VersionPin *pin, CopyJob *job)
{
	VersionColumn *columns = static_cast<VersionColumn *>(palloc0(sizeof(VersionColumn) * Max(job->ncols, 1)));
	VersionParts parts = {};
	TableQuotas quotas;
	FileOrigin	origin;
	uint64	   *served;
	uint64		version;

	for (uint32 i = 0; i < job->ncols; i++)
		columns[i] = version_column_of(&job->columns[i]);
	if (!manifest_seal(columns))
		return false;
	(void) file_origin(s->rel, &origin);
	put_together(s, job, &parts);
	served = static_cast<uint64 *>(palloc_extended(Max(served_size(job->nblocks), 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	for (BlockNumber block = 0; block < job->nblocks; block++)
		served[vm_word_of(block)] |= vm_word_bit(block);
	parts.ncols = job->ncols;
	parts.columns = columns;
	parts.nblocks = job->nblocks;
	parts.stamps = static_cast<uint64 *>(palloc0(sizeof(uint64) * Max(vm_pages(job->nblocks), 1)));
	parts.served = served;
	parts.signature.data = const_cast<char *>(version_at<char>(s->version, s->version->signature));
	parts.signature.len = s->version->signature_len;
	parts.origin = &origin;
	quotas_of(s->rel, &quotas);
	version = make_version(&parts);
	if (version == 0)
		return false;
	/* from here the version owns its tablets */
	manifest_end();
	quota_check_growth(s->rel, &quotas, s->version, version);
	if (registry_replace(pin, version, false))
	{
		pin_mark_refreshed(pin);
		engine_prepare(version);
	}
	return true;
}

static bool
build_version(Sharing *s, VersionPin *pin)
{
	CopyJob    *job = successor_job(s->rel, s->version);
	BlockNumber first;
	BlockNumber end;
	bool		damaged = false;

	if (!count_blocks(s, &first, &end))
		return false;
	job->nblocks = end;
	job->tablet_rows = tablet_rows_for(job->columns, static_cast<int>(job->ncols));
	/* one that is to be kept together may leave half of a tablet empty */
	job->max_tablets = static_cast<uint32>(Min(2 * max_tablets_of_slice(end - first, job->tablet_rows) +
											   max_image_tablets(job->columns, static_cast<int>(job->ncols)), uint64{PG_UINT32_MAX}));
	job->manifest = manifest_begin(job->max_tablets, 0);
	if (job->manifest != 0 && successor_dictionaries(s->rel, s->version, job))
	{
		damaged = !bases_are_sealed(job);
		if (!damaged && read_tablets(s, job, first) && publish(s, pin, job))
			return true;
	}
	import_abandon();
	if (damaged)
		report_damage(s->rel);
	return false;
}

bool
load_changes(Relation rel, uint64 *nrows)
{
	VersionPin *pin = is_tablet_table(rel) ? registry_pin_any(RelationGetRelid(rel)) : NULL;
	MemoryContext context;
	MemoryContext old;
	Sharing		s = {};
	bool		locked;
	bool		done = false;

	if (pin == NULL)
		return false;
	if (!tablets_are_sealed(pin_version(pin)))
	{
		registry_unpin(pin);
		report_damage(rel);
		return false;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm tablets shared", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	s.rel = rel;
	s.snapshot = GetActiveSnapshot();
	s.version = pin_version(pin);
	s.tablets = version_at<uint64_t>(s.version, s.version->tablets);
	if (pin_matches(pin, rel) && s.version->origin != 0 && version_at<FileOrigin>(s.version, s.version->origin)->stored)
	{
		s.list = list_tablets(rel, s.snapshot);
		read_dead_rows(&s);
		/* a partition's dictionaries grow with those of the others */
		locked = has_dictionaries(s.version) && family_lock(rel);
		done = choose(&s) && build_version(&s, pin);
		if (locked)
			family_unlock(rel);
	}
	*nrows = s.to_read;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	registry_unpin(pin);
	return done;
}

}  // namespace gpuvm
