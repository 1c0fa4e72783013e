/*
 * transfer.h: how a job's columns reach the device.
 *
 * A job has the list of its pads, in order, and runs it slice by slice. Before
 * a slice is launched, bring() places the tablets that it reads: decides for each
 * column chunk where kernels find it, and starts the copies that this takes.
 *
 *   Cached   where the device keeps it; if it does not yet, it is copied there now.
 *            What finds no room is read mapped
 *   Mapped   where it lies in the arena, over the bus
 *   Serial   in a copy of the job's own, all of them made before the first slice
 *   Stream   in a copy of the job's own, made beside the kernel of the slice before
 *
 * Tablets without a serial were made for this job (a delta) and are forgotten with
 * it. Whatever the transfer of the others, small ones are carried: they travel with the
 * description, widened where the others' values are as registers hold them, so that a few
 * rows do not change the program for all. Larger ones are read mapped.
 * What cannot be pinned can still be copied, slowly, and so is.
 *
 * Where a job finds all chunks of many tablets on the device for the second time, these become a column set
 * (residency.h), and jobs of the same tablets and columns look at none of them: `set_tablets_` of them, the first ones.
 *
 * The device has a description of the table: pads, tablets, chunks with their
 * addresses, the ranges of dead rows, what is carried. It goes there in one upload, ordered
 * before the first slice on the lane's stream, and the dead rows' bitmaps are made behind it;
 * later tablets' chunks follow when they have been placed, in parts.
 * A tablet is placed once, so the parts never overwrite what a kernel in flight
 * reads. The lane's pinned copy says what is in the device's memory from the job
 * before: what is there already, and stays where it is, is not sent again.
 */
#ifndef GPUVM_CUDA_TRANSFER_H
#define GPUVM_CUDA_TRANSFER_H

#include <vector>

#include "device.h"
#include "pin.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t SERIAL_PART_BYTES = 256ull << 20;	/* copied at a time, a few ms: nothing ends copies that were started */

/* Fewer are looked up one by one as fast. A variable for tests. */
extern uint32_t least_set_tablets;

class TableFeed
{
public:
	TableFeed(CudaDevice *device, PinnedArena *arena, const DeviceProgram &program, const Work &work);
	~TableFeed();				/* the lane is idle */
	TableFeed(const TableFeed &) = delete;
	TableFeed &operator=(const TableFeed &) = delete;

	/*
	 * Finds, and pins, what is on the device already, and chooses the transfer if it is Auto. `copies_deltas`: what is read
	 * in any order, and more than once, is not left to the bus.
	 */
	void		begin(Transfer wanted, bool copies_deltas = false);
	Transfer	transfer() const { return transfer_; }
	bool		all_placed() const { return placed_ == work_.tablets.size(); }
	uint64_t	bytes() const { return bytes_; }	/* of all columns; once it has begun */
	uint64_t	missing_bytes() const { return missing_bytes_; }	/* of those, what was not on the device at first */
	/* `base`: where in the lane's table the description begins; it has begun. */
	void		use_lane(Lane *lane, uint64_t base = 0)
	{
		lane_ = lane;
		base_ = base;
	}
	/* Where that of another table may begin. */
	uint64_t	table_end() const { return align_up(table_bytes(), 256); }
	/* Working memory for the bitmaps of Work.dead_pads pads. */
	void		use_dead_bits(char *bits) { dead_bits_ = bits; }

	/* Bytes that placing the tablet copies, 0 once it is placed; and what kernels read of it, here and over the bus. */
	struct Load
	{
		uint64_t	copies;
		uint64_t	local;
		uint64_t	mapped;
	};
	Load		load(uint32_t tablet) const;

	/* Starts copies of the next tablets, so many bytes or somewhat more; the lane's `copied` is behind them. False: these were the last. */
	bool		copy_some(uint64_t bytes);
	/*
	 * Makes pads [first, first + n) readable for what comes next on the lane's
	 * stream. *waits: the stream waits for copies.
	 */
	void		bring(uint32_t first_pad, uint32_t npads, bool *waits);
	/* All tablets, without a description: where they are, describe() says. */
	void		bring_all();
	DeviceChunk describe(uint32_t tablet, int column) const;
	DeviceTable table() const;

	/* The device is done with all pads before `end`. */
	void		retire(uint32_t end_pad);
	/* The job starts again from the first pad; the lane is idle. */
	void		restart();

	uint64_t	copied_bytes() const { return copied_bytes_; }

private:
	enum class At : uint8_t
	{
		Nowhere,				/* not placed yet */
		Base,					/* there are no bytes */
		Kept,
		Own,					/* the job's copy */
		Arena,
		Carried,				/* in the description */
		There,					/* WorkTablet.there */
	};

	struct Place
	{
		At			at;
		bool		wait;		/* Kept: the copy may be on its way */
		CachedChunk *kept;
		char	   *own;
		uint64_t	carried;	/* from carried_at() on */
	};

	/* A chunk as it is carried: whole stages, null bits, then values. */
	struct CarriedForm
	{
		uint64_t	nulls;		/* bytes */
		uint64_t	data;
		int64_t		base;
		uint32_t	width;
	};

	/* Of tablets behind those of the set. */
	Place	   *places_of(uint32_t tablet) { return &places_[static_cast<size_t>(tablet - set_tablets_) * program_.ncolumns]; }
	const Place *places_of(uint32_t tablet) const { return &places_[static_cast<size_t>(tablet - set_tablets_) * program_.ncolumns]; }
	size_t		nchunks() const { return work_.tablets.size() * program_.ncolumns; }
	ColumnChunk chunk_of(uint32_t tablet, int column) const;
	ChunkBytes	bytes_of(uint32_t tablet, int column) const;
	CarriedForm carried_form(uint32_t tablet, int column) const;
	void		write_carried(uint32_t tablet, int column, char *to) const;
	void		place_delta(uint32_t tablet);
	void		find_set();
	void		make_set();
	void		list_places();
	void		find_kept();
	void		place(uint32_t tablet);
	void		place_chunk(uint32_t tablet, int column);
	bool		place_kept(uint32_t tablet, int column);
	bool		place_mapped(uint32_t tablet, int column);
	bool		place_own(uint32_t tablet, int column);
	void		copy_chunk(uint32_t tablet, int column, char *to);
	void		copy(char *to, const char *from, uint64_t bytes, bool outside);
	bool		await_copies(uint32_t first_tablet, uint32_t end_tablet);
	void		look_ahead(uint32_t end_tablet);
	void		upload(uint32_t end_tablet);
	void		free_own(uint32_t tablet);
	void		upload_all();
	/* Places in the lane's table: the description begins at base_, with the pads. */
	uint64_t	tablets_at() const;
	uint64_t	chunks_at() const;
	uint64_t	ranges_at() const;
	uint64_t	carried_at() const;
	uint64_t	table_bytes() const;

	CudaDevice *device_;
	PinnedArena *arena_;
	const DeviceProgram &program_;
	const Work &work_;
	Lane	   *lane_ = nullptr;
	uint64_t	base_ = 0;
	PinnedArena::Hold pins_;
	Transfer	transfer_ = Transfer::Auto;
	std::vector<Place> places_;
	ColumnSet  *set_ = nullptr;
	std::unique_ptr<ColumnSet> next_set_;	/* to be made at the end: its key */
	uint32_t	set_tablets_ = 0;
	std::vector<CachedChunk *> pinned_;
	std::vector<CachedChunk *> claimed_;
	uint64_t	bytes_ = 0;
	uint64_t	missing_bytes_ = 0;
	uint64_t	copied_bytes_ = 0;
	uint64_t	carried_bytes_ = 0;	/* of the description */
	char	   *dead_bits_ = nullptr;
	uint32_t	placed_ = 0;	/* tablets, from the first */
	uint32_t	uploaded_ = 0;	/* tablets whose chunks the device knows */
	uint32_t	freed_ = 0;		/* tablets whose own copies are gone */
	bool		copying_ = false;	/* copies were started that the stream does not wait for yet */
	bool		begun_ = false;	/* the description is on the device */
	bool		filled_ = false;	/* the dead bits are, too */
};

}  // namespace cuda
}  // namespace gpuvm

#endif
