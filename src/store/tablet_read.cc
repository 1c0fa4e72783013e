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
tablets_open_list(Relation rel, Snapshot snapshot, const Bitmapset *wanted, const TabletList &list)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm tablet reader", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	TabletReader *r = static_cast<TabletReader *>(palloc0(sizeof(TabletReader)));

	r->snapshot = snapshot;
	r->context = context;
	r->of_tablet = AllocSetContextCreate(context, "gpuvm tablet image", ALLOCSET_DEFAULT_SIZES);
	r->list = list;
	r->image = image_reader(RelationGetDescr(rel), wanted, pstrdup(RelationGetRelationName(rel)));
	MemoryContextSwitchTo(old);
	return r;
}

TabletReader *
tablets_open(Relation rel, Snapshot snapshot, const Bitmapset *wanted)
{
	return tablets_open_list(rel, snapshot, wanted, list_tablets(rel, snapshot));
}

static void
start_tablet(TabletReader *r)
{
	MemoryContext old;
	const StoredTablet *tablet = &r->list.tablets[r->next];

	CHECK_FOR_INTERRUPTS();
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
	return stored_ctid(r->list.tablets[r->next - 1].id, r->row - 1);
}

const StoredTablet *
tablets_at(const TabletReader *r, uint32 *row)
{
	*row = r->row - 1;
	return &r->list.tablets[r->next - 1];
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
