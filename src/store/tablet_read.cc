/* tablet_read.cc: the rows of a tablet table that a snapshot sees, one by one. */
#include "store/tablet_image.h"
#include "store/tablets.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

struct TabletReader
{
	Snapshot	snapshot;
	TabletList	list;
	int			next;			/* tablet to be read after this one */
	ImageReader *image;
	bool		reads;			/* a tablet */
	bits8	   *dead;			/* of its rows; NULL: none */
	uint32		row;			/* the last one, counted from 1 */
	MemoryContext context;
	MemoryContext of_tablet;	/* image and dead rows */
};

TabletReader *
tablets_open(Relation rel, Snapshot snapshot, const Bitmapset *wanted)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm tablet reader", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	TabletReader *r = static_cast<TabletReader *>(palloc0(sizeof(TabletReader)));

	r->snapshot = snapshot;
	r->context = context;
	r->of_tablet = AllocSetContextCreate(context, "gpuvm tablet image", ALLOCSET_DEFAULT_SIZES);
	r->list = list_tablets(rel, snapshot);
	r->image = image_reader(RelationGetDescr(rel), wanted, pstrdup(RelationGetRelationName(rel)));
	MemoryContextSwitchTo(old);
	return r;
}

static int
compare_dead(const void *a, const void *b)
{
	int64		x = static_cast<const DeadSet *>(a)->tablet;
	int64		y = static_cast<const DeadSet *>(b)->tablet;

	return x < y ? -1 : x > y;
}

/* The first of the list that is of this tablet, or of a later one. */
static int
first_dead(const TabletList *list, int64 tablet)
{
	int			lo = 0;
	int			hi = list->ndead;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (list->dead[mid].tablet < tablet)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
start_tablet(TabletReader *r)
{
	MemoryContext old;
	const StoredTablet *tablet = &r->list.tablets[r->next];

	CHECK_FOR_INTERRUPTS();
	/* two pairs of side tables, each in order */
	if (r->next == 0 && r->list.ndead > 1)
		qsort(r->list.dead, r->list.ndead, sizeof(DeadSet), compare_dead);
	r->next++;
	MemoryContextReset(r->of_tablet);
	old = MemoryContextSwitchTo(r->of_tablet);
	r->dead = NULL;
	for (int i = first_dead(&r->list, tablet->id); i < r->list.ndead && r->list.dead[i].tablet == tablet->id; i++)
	{
		if (r->dead == NULL)
			r->dead = static_cast<bits8 *>(palloc0((tablet->nrows + 7) / 8));
		add_dead_rows(&r->list.dead[i], r->snapshot, r->dead);
	}
	image_start(r->image, stored_image(tablet, r->snapshot));
	MemoryContextSwitchTo(old);
	r->row = 0;
	r->reads = true;
}

bool
tablets_next(TabletReader *r, Datum *values, bool *nulls)
{
	for (;;)
	{
		while (r->reads && image_next(r->image, values, nulls))
		{
			uint32		row = r->row++;

			if (r->dead == NULL || (r->dead[row / 8] >> row % 8 & 1) == 0)
				return true;
		}
		r->reads = false;
		if (r->next >= r->list.ntablets)
			return false;
		start_tablet(r);
	}
}

ItemPointerData
tablets_ctid(const TabletReader *r)
{
	ItemPointerData ctid;

	ItemPointerSet(&ctid, static_cast<BlockNumber>(r->list.tablets[r->next - 1].id), static_cast<OffsetNumber>(r->row));
	return ctid;
}

void
tablets_rewind(TabletReader *r)
{
	r->next = 0;
	r->reads = false;
}

void
tablets_close(TabletReader *r)
{
	MemoryContextDelete(r->context);
}

}  // namespace gpuvm
