/* transfer.cc: see transfer.h. */
#include "transfer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "failure.h"
#include "row_set.h"

namespace gpuvm {
namespace cuda {

uint32_t	least_set_tablets = 16;

/* Copied beside the kernel of the slice before: enough to keep the bus busy while that runs. */
constexpr uint64_t LOOK_AHEAD_BYTES = 64ull << 20;
constexpr uint64_t CARRIED_ALIGN = 128;	/* bulk copies are fastest from whole lines */

TableFeed::TableFeed(CudaDevice *device, PinnedArena *arena, const DeviceProgram &program, const Work &work)
	: device_(device), arena_(arena), program_(program), work_(work), pins_(arena)
{
}

void
TableFeed::list_places()
{
	places_.resize((work_.tablets.size() - set_tablets_) * program_.ncolumns);
	for (uint32_t t = set_tablets_; t < work_.tablets.size(); t++)
		for (int c = 0; c < program_.ncolumns; c++)
		{
			const uint64_t bytes = bytes_of(t, c).total();

			bytes_ += bytes;
			if (work_.tablets[t].carried)
			{
				const CarriedForm form = carried_form(t, c);

				places_of(t)[c].at = At::Carried;
				places_of(t)[c].carried = carried_bytes_;
				carried_bytes_ += align_up(form.nulls, CARRIED_ALIGN) + align_up(form.data, CARRIED_ALIGN);
			}
			else if (work_.tablets[t].there != nullptr)
				places_of(t)[c].at = At::There;
			else if (bytes == 0)
				places_of(t)[c].at = At::Base;
		}
}

TableFeed::~TableFeed()
{
	for (uint32_t t = freed_; t < placed_; t++)
		free_own(t);
	if (set_ != nullptr)
		device_->residency()->release_set(set_);
	if (next_set_ != nullptr)
		make_set();
	device_->residency()->release(pinned_, claimed_);
}

ColumnChunk
TableFeed::chunk_of(uint32_t tablet, int column) const
{
	return device_chunk(work_.tablets[tablet].tablet, program_.columns[column].table_column);
}

ChunkBytes
TableFeed::bytes_of(uint32_t tablet, int column) const
{
	return chunk_bytes(work_.tablets[tablet].tablet, chunk_of(tablet, column));
}

/* ---- what is carried ------------------------------------------------------------ */

/* Values of the width that registers have come so, should some tablet have them so: the program may read them in place. */
TableFeed::CarriedForm
TableFeed::carried_form(uint32_t tablet, int column) const
{
	const uint32_t stage_rows = 32u * program_.rows_per_lane * program_.stage_tiles;
	const uint64_t rows = align_up(work_.tablets[tablet].tablet->nrows, stage_rows);
	const uint16_t table_column = program_.columns[column].table_column;
	const ColumnChunk chunk = chunk_of(tablet, column);
	CarriedForm form = {chunk.nulls != 0 ? rows / 8 : 0, 0, chunk.base, chunk.width};

	/* DEAD_COLUMN has the bit, too, and no data */
	if (table_column & TEXT_IMAGES)
	{
		form.data = chunk.data_bytes;
		return form;
	}
	if (!(table_column & TEXT_CODES) && chunk.type != Type::Bool && chunk.width < type_width(chunk.type) &&
		work_.columns[table_column].max_width == type_width(chunk.type))
	{
		form.base = 0;
		form.width = static_cast<uint32_t>(type_width(chunk.type));
	}
	form.data = rows * form.width;
	return form;
}

/* Codes become values, of width `to_width`. */
static void
widen_codes(const char *from, uint32_t from_width, int64_t base, char *to, uint32_t to_width, uint32_t nrows)
{
	for (uint32_t i = 0; i < nrows; i++)
	{
		uint64_t	value = 0;

		memcpy(&value, from + static_cast<size_t>(i) * from_width, from_width);
		value += static_cast<uint64_t>(base);
		memcpy(to + static_cast<size_t>(i) * to_width, &value, to_width);
	}
}

void
TableFeed::write_carried(uint32_t tablet, int column, char *to) const
{
	const TabletHeader *header = work_.tablets[tablet].tablet;
	const ColumnChunk chunk = chunk_of(tablet, column);
	const CarriedForm form = carried_form(tablet, column);

	if (form.nulls != 0)
		memcpy(to, tablet_at<char>(header, chunk.nulls), form.nulls);
	to += align_up(form.nulls, CARRIED_ALIGN);
	if (form.width == chunk.width && form.data != 0)
		memcpy(to, tablet_at<char>(header, chunk.data), form.data);
	else if (form.data != 0)
		widen_codes(tablet_at<char>(header, chunk.data), chunk.width, chunk.base, to, form.width, header->nrows);
}

/* ---- sets ---------------------------------------------------------------------- */

/* Tablets of the table come first, what was made for this job behind them. */
void
TableFeed::find_set()
{
	uint32_t	n = 0;
	std::string key;
	bool		again;

	while (n < work_.tablets.size() && work_.tablets[n].tablet->serial != 0 && work_.tablets[n].there == nullptr)
		n++;
	if (n < least_set_tablets)
		return;
	key.reserve(n * sizeof(uint64_t) + program_.ncolumns * sizeof(uint16_t));
	for (uint32_t t = 0; t < n; t++)
		key.append(reinterpret_cast<const char *>(&work_.tablets[t].tablet->serial), sizeof(uint64_t));
	for (int c = 0; c < program_.ncolumns; c++)
		key.append(reinterpret_cast<const char *>(&program_.columns[c].table_column), sizeof(uint16_t));
	set_ = device_->residency()->find_set(key, &again);
	if (set_ != nullptr)
	{
		set_tablets_ = placed_ = freed_ = n;
		bytes_ = set_->bytes;
	}
	else if (again)
	{
		next_set_ = std::make_unique<ColumnSet>();
		next_set_->key = std::move(key);
		next_set_->tablet_bytes.resize(n);
	}
}

/* Of what this job has found or brought, if all of it is there. The job's pins become the set's. */
void
TableFeed::make_set()
{
	const uint32_t n = static_cast<uint32_t>(next_set_->tablet_bytes.size());
	bool		whole = claimed_.empty() && placed_ >= n;

	try
	{
		for (uint32_t t = 0; t < n && whole; t++)
			for (int c = 0; c < program_.ncolumns && whole; c++)
			{
				const Place &place = places_of(t)[c];

				whole = place.at == At::Base || place.at == At::Kept;
				if (place.at == At::Kept)
					next_set_->chunks.push_back(place.kept);
				next_set_->described.push_back(describe(t, c));
				next_set_->tablet_bytes[t] += bytes_of(t, c).total();
			}
	}
	catch (const std::bad_alloc &)
	{
		return;
	}
	if (!whole || next_set_->chunks.size() != pinned_.size())
		return;
	for (uint64_t bytes : next_set_->tablet_bytes)
		next_set_->bytes += bytes;
	pinned_.clear();
	device_->residency()->keep_set(std::move(next_set_));
}

/* ---- the choice ---------------------------------------------------------------- */

void
TableFeed::find_kept()
{
	Residency  *residency = device_->residency();

	pinned_.reserve(places_.size());

	std::unique_lock<std::mutex> lock = residency->lock();

	for (uint32_t t = set_tablets_; t < work_.tablets.size(); t++)
		for (int c = 0; c < program_.ncolumns; c++)
		{
			Place	   &place = places_of(t)[c];
			const uint64_t serial = work_.tablets[t].tablet->serial;

			if (place.at != At::Nowhere || serial == 0)
				continue;
			place.kept = residency->find(ChunkKey{serial, kept_column(program_.columns[c].table_column)}, bytes_of(t, c).total());
			if (place.kept == nullptr)
				continue;
			pinned_.push_back(place.kept);
			place.wait = place.kept->state == CachedChunk::State::Copying;
			place.at = At::Kept;
		}
}

void
TableFeed::begin(Transfer wanted, bool copies_deltas)
{
	bool		whole = true;

	transfer_ = wanted;
	if (wanted == Transfer::Auto || wanted == Transfer::Cached)
		find_set();
	list_places();
	if (wanted == Transfer::Auto || wanted == Transfer::Cached)
		find_kept();
	for (uint32_t t = set_tablets_; t < work_.tablets.size(); t++)
	{
		if (work_.tablets[t].tablet->serial == 0 && !work_.tablets[t].outside && !copies_deltas)
			place_delta(t);
		for (int c = 0; c < program_.ncolumns; c++)
			if (places_of(t)[c].at == At::Nowhere)
			{
				whole = false;
				missing_bytes_ += bytes_of(t, c).total();
			}
		if (whole)
			placed_ = t + 1;	/* nothing is left to do but the description */
	}
	if (wanted == Transfer::Auto)
		transfer_ = missing_bytes_ == 0 || missing_bytes_ <= device_->residency()->available(missing_bytes_) ? Transfer::Cached : Transfer::Stream;
}

/* As far as it can be done without a lane. */
void
TableFeed::place_delta(uint32_t tablet)
{
	for (int c = 0; c < program_.ncolumns; c++)
		if (places_of(tablet)[c].at == At::Nowhere)
			(void) place_mapped(tablet, c);
}

TableFeed::Load
TableFeed::load(uint32_t tablet) const
{
	Load		load = {0, 0, 0};

	if (tablet < set_tablets_)
		return Load{0, set_->tablet_bytes[tablet], 0};
	for (int c = 0; c < program_.ncolumns; c++)
	{
		const Place &place = places_of(tablet)[c];
		const uint64_t bytes = bytes_of(tablet, c).total();

		if (place.at == At::Arena || (place.at == At::Nowhere && transfer_ == Transfer::Mapped))
			load.mapped += bytes;
		else
		{
			load.local += bytes;
			if (place.at == At::Nowhere)
				load.copies += bytes;
		}
	}
	return load;
}

/* ---- placing ------------------------------------------------------------------- */

void
TableFeed::copy(char *to, const char *from, uint64_t bytes, bool outside)
{
	copied_bytes_ += bytes;
	copying_ = true;
	while (bytes > 0)
	{
		const uint64_t part = outside ? bytes : arena_->in_one_chunk(from, bytes);

		check(cudaMemcpyAsync(to, from, part, cudaMemcpyHostToDevice, lane_->copies), "copying columns to the device");
		to += part;
		from += part;
		bytes -= part;
	}
}

void
TableFeed::copy_chunk(uint32_t tablet, int column, char *to)
{
	const ColumnChunk chunk = chunk_of(tablet, column);
	const ChunkBytes bytes = bytes_of(tablet, column);
	const char *from = reinterpret_cast<const char *>(work_.tablets[tablet].tablet);
	const bool	outside = work_.tablets[tablet].outside;

	/* If they cannot be pinned, the driver copies them by way of its own memory. */
	if (bytes.nulls != 0 && !outside)
		(void) pins_.take(from + chunk.nulls, bytes.nulls);
	if (bytes.data != 0 && !outside)
		(void) pins_.take(from + chunk.data, bytes.data);
	if (bytes.nulls != 0 && bytes.data != 0 && chunk.nulls + bytes.nulls == chunk.data)
	{
		copy(to, from + chunk.nulls, bytes.total(), outside);
		return;
	}
	if (bytes.nulls != 0)
		copy(to, from + chunk.nulls, bytes.nulls, outside);
	if (bytes.data != 0)
		copy(to + bytes.nulls, from + chunk.data, bytes.data, outside);
}

bool
TableFeed::place_kept(uint32_t tablet, int column)
{
	Residency  *residency = device_->residency();
	Place	   &place = places_of(tablet)[column];
	const uint64_t serial = work_.tablets[tablet].tablet->serial;
	bool		claimed;

	claimed_.reserve(places_.size());
	place.kept = residency->acquire(ChunkKey{serial, kept_column(program_.columns[column].table_column)}, bytes_of(tablet, column).total(),
									lane_->copies, &claimed);
	if (place.kept == nullptr)
		return false;
	if (claimed)
	{
		try
		{
			copy_chunk(tablet, column, place.kept->memory);
			residency->copying(place.kept, lane_->copies);
		}
		catch (...)
		{
			residency->abandon(place.kept, lane_->copies);
			throw;
		}
		claimed_.push_back(place.kept);
	}
	pinned_.push_back(place.kept);
	place.wait = !claimed;
	place.at = At::Kept;
	return true;
}

bool
TableFeed::place_mapped(uint32_t tablet, int column)
{
	const ColumnChunk chunk = chunk_of(tablet, column);
	const ChunkBytes bytes = bytes_of(tablet, column);
	const char *from = reinterpret_cast<const char *>(work_.tablets[tablet].tablet);

	if ((bytes.nulls != 0 && !pins_.map(device_->index(), from + chunk.nulls, bytes.nulls)) ||
		(bytes.data != 0 && !pins_.map(device_->index(), from + chunk.data, bytes.data)))
		return false;
	places_of(tablet)[column].at = At::Arena;
	return true;
}

bool
TableFeed::place_own(uint32_t tablet, int column)
{
	Place	   &place = places_of(tablet)[column];

	place.own = device_->residency()->allocate(bytes_of(tablet, column).total(), lane_->copies);
	if (place.own == nullptr)
		return false;
	place.at = At::Own;
	copy_chunk(tablet, column, place.own);
	return true;
}

void
TableFeed::place_chunk(uint32_t tablet, int column)
{
	bool		done;

	/* place_delta() could not, so it will hardly be possible now. */
	if (work_.tablets[tablet].outside)
		done = place_own(tablet, column);
	else if (work_.tablets[tablet].tablet->serial == 0)
		done = place_own(tablet, column) || place_mapped(tablet, column);
	else switch (transfer_)
	{
		case Transfer::Mapped:
			done = place_mapped(tablet, column) || place_own(tablet, column);
			break;
		case Transfer::Serial:
		case Transfer::Stream:
			done = place_own(tablet, column) || place_mapped(tablet, column);
			break;
		default:
			done = place_kept(tablet, column) || place_mapped(tablet, column) || place_own(tablet, column);
	}
	if (!done)
	{
		char		why[128];

		snprintf(why, sizeof(why), "the device's memory is too small for the table's columns, and they cannot be mapped: %" PRIu64 " bytes",
				 bytes_of(tablet, column).total());
		throw Refusal(why, true);
	}
}

void
TableFeed::place(uint32_t tablet)
{
	/* Counted first: if this fails half way, what it has allocated is freed. */
	placed_ = std::max(placed_, tablet + 1);
	for (int c = 0; c < program_.ncolumns; c++)
		if (places_of(tablet)[c].at == At::Nowhere)
			place_chunk(tablet, c);
}

bool
TableFeed::copy_some(uint64_t bytes)
{
	const uint64_t before = copied_bytes_;

	while (!all_placed() && copied_bytes_ - before < bytes)
		place(placed_);
	check(cudaEventRecord(lane_->copied, lane_->copies), "recording an event");
	return !all_placed();
}

/* The tablets after those of the slice, so that their copies run beside it. */
void
TableFeed::look_ahead(uint32_t end_tablet)
{
	uint64_t	ahead = 0;

	if (transfer_ == Transfer::Mapped || transfer_ == Transfer::Serial)
		return;
	for (uint32_t t = end_tablet; t < work_.tablets.size() && ahead < LOOK_AHEAD_BYTES; t++)
	{
		if (t >= placed_)
			place(t);
		for (int c = 0; c < program_.ncolumns; c++)
			ahead += bytes_of(t, c).total();
	}
}

/* ---- the description ------------------------------------------------------------ */

uint64_t
TableFeed::tablets_at() const
{
	return align_up(base_ + work_.pads.size() * sizeof(DevicePad), 64);
}

uint64_t
TableFeed::chunks_at() const
{
	return align_up(tablets_at() + work_.tablets.size() * sizeof(DeviceTablet), 64);
}

uint64_t
TableFeed::ranges_at() const
{
	return align_up(chunks_at() + nchunks() * sizeof(DeviceChunk), 64);
}

uint64_t
TableFeed::carried_at() const
{
	return align_up(ranges_at() + work_.dead.size() * sizeof(DeadRange), CARRIED_ALIGN);
}

uint64_t
TableFeed::table_bytes() const
{
	return carried_at() + carried_bytes_;
}

DeviceTable
TableFeed::table() const
{
	return DeviceTable{reinterpret_cast<const DeviceTablet *>(lane_->table + tablets_at()),
		reinterpret_cast<const DeviceChunk *>(lane_->table + chunks_at()), reinterpret_cast<const DevicePad *>(lane_->table + base_),
		static_cast<uint32_t>(work_.pads.size()), 0};
}

DeviceChunk
TableFeed::describe(uint32_t tablet, int column) const
{
	if (program_.columns[column].table_column == DEAD_COLUMN)
	{
		const uint32_t dead_pad = work_.tablets[tablet].dead_pad;

		return DeviceChunk{0, dead_pad != NO_DEAD_ROWS ? reinterpret_cast<uint64_t>(dead_bits_ + dead_pad * DEAD_PAD_BYTES) : 0, 0, 0, 0};
	}
	if (tablet < set_tablets_)
		return set_->described[static_cast<size_t>(tablet) * program_.ncolumns + static_cast<size_t>(column)];

	const ColumnChunk chunk = chunk_of(tablet, column);
	const ChunkBytes bytes = bytes_of(tablet, column);
	const Place &place = places_of(tablet)[column];
	DeviceChunk d = {0, 0, chunk.base, chunk.width, 0};
	const char *in_arena = reinterpret_cast<const char *>(work_.tablets[tablet].tablet);
	uint64_t	at;

	switch (place.at)
	{
		case At::Carried:
		{
			const CarriedForm form = carried_form(tablet, column);

			at = reinterpret_cast<uint64_t>(lane_->table + carried_at() + place.carried);
			d.nulls = form.nulls != 0 ? at : 0;
			d.data = form.data != 0 ? at + align_up(form.nulls, CARRIED_ALIGN) : 0;
			d.base = form.base;
			d.width = form.width;
			break;
		}
		case At::Kept:
		case At::Own:
			at = reinterpret_cast<uint64_t>(place.at == At::Kept ? place.kept->memory : place.own);
			d.nulls = bytes.nulls != 0 ? at : 0;
			d.data = bytes.data != 0 ? at + bytes.nulls : 0;
			break;
		case At::Arena:
			d.nulls = bytes.nulls != 0 ? pins_.address(device_->index(), in_arena + chunk.nulls) : 0;
			d.data = bytes.data != 0 ? pins_.address(device_->index(), in_arena + chunk.data) : 0;
			break;
		case At::There:
			return row_set_chunk(work_.tablets[tablet].there->column[program_.columns[column].table_column]);
		default:
			break;
	}
	return d;
}

/* Sends what the device does not know yet of the tablets before `end_tablet`. */
void
TableFeed::upload(uint32_t end_tablet)
{
	const uint32_t first = uploaded_;

	if (begun_ && end_tablet <= uploaded_)
		return;
	uploaded_ = std::max(placed_, end_tablet);
	if (begun_)
	{
		DeviceChunk *chunks = reinterpret_cast<DeviceChunk *>(lane_->table_copy + chunks_at());
		const size_t from = static_cast<size_t>(first) * program_.ncolumns, to = static_cast<size_t>(uploaded_) * program_.ncolumns;

		for (size_t i = from; i < to; i++)
			chunks[i] = describe(static_cast<uint32_t>(i / program_.ncolumns), static_cast<int>(i % program_.ncolumns));
		const uint64_t valid = lane_->table_bytes;

		lane_->table_bytes = 0;	/* unknown, should this fail */
		check(cudaMemcpyAsync(lane_->table + chunks_at() + from * sizeof(DeviceChunk), chunks + from, (to - from) * sizeof(DeviceChunk),
							  cudaMemcpyHostToDevice, lane_->stream), "describing the table");
		lane_->table_bytes = valid;
		return;
	}
	begun_ = true;
	upload_all();
	if (work_.dead_pads != 0 && !filled_)
		check(fill_dead_rows(dead_bits_, work_.dead_pads, reinterpret_cast<const DeadRange *>(lane_->table + ranges_at()),
							 static_cast<uint32_t>(work_.dead.size()), lane_->stream), "marking dead rows");
	filled_ = true;
}

/* All of the description, up to the chunks of `uploaded_` tablets, as far as it is not there. */
void
TableFeed::upload_all()
{
	device_->make_table_room(lane_, table_bytes());

	/* The parts as they are to be; the pads and ranges are there already. */
	std::vector<DeviceTablet> tablets;
	std::vector<DeviceChunk> chunks(nchunks());
	std::vector<char> carried(carried_bytes_);

	tablets.reserve(work_.tablets.size());
	for (uint32_t t = 0; t < work_.tablets.size(); t++)
	{
		const WorkTablet &tablet = work_.tablets[t];

		tablets.push_back(DeviceTablet{tablet.tablet->nrows, tablet.dead_pad != NO_DEAD_ROWS, tablet.tablet->place});
		for (int c = 0; tablet.carried && c < program_.ncolumns; c++)
			write_carried(t, c, carried.data() + places_of(t)[c].carried);
	}
	for (uint32_t t = 0; t < uploaded_; t++)
		for (int c = 0; c < program_.ncolumns; c++)
			chunks[static_cast<size_t>(t) * program_.ncolumns + static_cast<size_t>(c)] = describe(t, c);

	const struct
	{
		uint64_t	at;
		const void *from;
		uint64_t	bytes;
	}			parts[] = {
		{base_, work_.pads.data(), work_.pads.size() * sizeof(DevicePad)},
		{tablets_at(), tablets.data(), tablets.size() * sizeof(DeviceTablet)},
		{chunks_at(), chunks.data(), chunks.size() * sizeof(DeviceChunk)},
		{ranges_at(), work_.dead.data(), work_.dead.size() * sizeof(DeadRange)},
		{carried_at(), carried.data(), carried.size()},
	};
	const uint64_t valid = lane_->table_bytes;
	uint64_t	from = UINT64_MAX, to = 0;

	for (const auto &part : parts)
	{
		const uint64_t end = part.at + part.bytes;

		if (part.bytes == 0 || (end <= valid && memcmp(lane_->table_copy + part.at, part.from, part.bytes) == 0))
			continue;
		memcpy(lane_->table_copy + part.at, part.from, part.bytes);
		from = std::min(from, part.at);
		to = end;
	}
	if (to == 0)
		return;
	if (to > valid)
		from = std::min(from, valid);	/* without a gap: see table_bytes */
	lane_->table_bytes = 0;		/* as above */
	check(cudaMemcpyAsync(lane_->table + from, lane_->table_copy + from, to - from, cudaMemcpyHostToDevice, lane_->stream), "describing the table");
	lane_->table_bytes = std::max(valid, to);
	copied_bytes_ += carried_bytes_;
}

/* What comes next on the lane's stream comes behind the copies of these tablets; false: there were none to wait for. */
bool
TableFeed::await_copies(uint32_t first_tablet, uint32_t end_tablet)
{
	bool		waits = false;

	for (uint32_t t = placed_; t < end_tablet; t++)
		place(t);
	if (copying_)
	{
		check(cudaEventRecord(lane_->copied, lane_->copies), "recording an event");
		check(cudaStreamWaitEvent(lane_->stream, lane_->copied, 0), "waiting for copies");
		copying_ = false;
		waits = true;
	}
	for (uint32_t t = std::max(first_tablet, set_tablets_); t < end_tablet; t++)
		for (int c = 0; c < program_.ncolumns; c++)
		{
			Place	   &place = places_of(t)[c];

			if (!place.wait)
				continue;
			check(cudaStreamWaitEvent(lane_->stream, place.kept->copied, 0), "waiting for copies");
			place.wait = false;
			waits = true;
		}
	return waits;
}

void
TableFeed::bring_all()
{
	(void) await_copies(0, static_cast<uint32_t>(work_.tablets.size()));
}

void
TableFeed::bring(uint32_t first_pad, uint32_t npads, bool *waits)
{
	const uint32_t end_tablet = transfer_ == Transfer::Serial ? static_cast<uint32_t>(work_.tablets.size())
		: work_.pads[first_pad + npads - 1].tablet + 1;

	*waits = await_copies(work_.pads[first_pad].tablet, end_tablet);
	upload(end_tablet);
	if (placed_ < work_.tablets.size())
		look_ahead(end_tablet);
}

void
TableFeed::free_own(uint32_t tablet)
{
	for (int c = 0; c < program_.ncolumns; c++)
	{
		Place	   &place = places_of(tablet)[c];

		if (place.own == nullptr)
			continue;
		device_->residency()->free(place.own, bytes_of(tablet, c).total(), lane_->copies);
		place.own = nullptr;
	}
}

void
TableFeed::retire(uint32_t end_pad)
{
	while (freed_ < placed_ && work_.tablets[freed_].first_pad + work_.tablets[freed_].npads <= end_pad)
		free_own(freed_++);
}

void
TableFeed::restart()
{
	for (uint32_t t = set_tablets_; t < placed_; t++)
	{
		if (t >= freed_)
			free_own(t);
		for (int c = 0; c < program_.ncolumns; c++)
			if (places_of(t)[c].at == At::Own)
				places_of(t)[c].at = At::Nowhere;
	}
	placed_ = freed_ = set_tablets_;
	uploaded_ = 0;
	begun_ = false;
	copying_ = false;
}

}  // namespace cuda
}  // namespace gpuvm
