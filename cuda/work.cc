/* work.cc: see work.h. */
#include "work.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "maps.h"
#include "result_set.h"

namespace gpuvm {
namespace cuda {

/* A few blocks' rows of some columns: what costs more to bring by itself than to copy twice. */
constexpr uint64_t CARRIED_BYTES = 256 << 10;

namespace {

/* A tablet's pads are added in order, so its ranges are walked once. */
struct PadLister
{
	const DeviceTabletRef &ref;
	const MaskedRows *next;		/* the first range that does not end before the next pad */
	bool		partly = false;	/* a pad was added that has masked rows */

	explicit PadLister(const DeviceTabletRef &r) : ref(r), next(r.masked) {}

	uint32_t	masked_in(uint32_t first, uint32_t end)
	{
		uint32_t	rows = 0;

		while (next < ref.masked + ref.nmasked && next->end <= first)
			next++;
		for (const MaskedRows *at = next; at < ref.masked + ref.nmasked && at->first < end; at++)
			rows += std::min(at->end, end) - std::max(at->first, first);
		return rows;
	}

	/* Returns how many rows there are in them. */
	uint32_t	add(Work *work, uint32_t number, uint32_t first_row, uint32_t end_row)
	{
		const size_t before = work->pads.size();
		const uint32_t most = (end_row - first_row + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;
		uint32_t	n = 0, rows = end_row - first_row;

		work->pads.resize(before + most);

		DevicePad  *to = work->pads.data() + before;

		if (ref.nmasked == 0)
			for (; n < most; n++)
				to[n] = DevicePad{number, first_row + n * TABLET_PAD_ROWS};
		else
			for (uint32_t row = first_row; row < end_row; row += TABLET_PAD_ROWS)
			{
				const uint32_t end = std::min(end_row, row + TABLET_PAD_ROWS), masked = masked_in(row, end);

				rows -= masked;
				if (masked == end - row)
					continue;
				partly |= masked > 0;
				to[n++] = DevicePad{number, row};
			}
		work->pads.resize(before + n);
		return rows;
	}
};

/* Gives the tablet a bitmap. Rows that only pad it are dead, too: of a tile with dead bits nothing else tells. */
void
add_dead_rows(Work *work, WorkTablet *tablet)
{
	const uint64_t first = static_cast<uint64_t>(work->dead_pads) * TABLET_PAD_ROWS;
	const uint32_t nrows = tablet->tablet->nrows, padded = tablet->tablet->padded_rows;

	for (const MaskedRows *range = tablet->masked; range < tablet->masked + tablet->nmasked; range++)
		work->dead.push_back(DeadRange{first + range->first, first + range->end});
	if (nrows < padded)
		work->dead.push_back(DeadRange{first + nrows, first + padded});
	tablet->dead_pad = work->dead_pads;
	work->dead_pads += padded / TABLET_PAD_ROWS;
}

/* `units`: whose units are to be listed, or nullptr. */
void
list_tablets(const DeviceCursor &cursor, const Program *program, const DeviceJobRequest *units, Work *work)
{
	uint64_t	unit = 0;

	const bool	carried = carries_delta(cursor, program);

	work->columns = cursor.columns;
	work->pads.reserve((cursor.total_rows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS + cursor.ntablets);
	work->tablets.reserve(cursor.ntablets);
	for (uint32_t t = 0; t < cursor.ntablets; t++)
	{
		const DeviceTabletRef &ref = cursor.tablets[t];
		const TabletHeader *tablet = ref.tablet;
		const uint32_t number = static_cast<uint32_t>(work->tablets.size());
		WorkTablet	todo = {tablet, static_cast<uint32_t>(work->pads.size()), 0, 0, ref.masked, ref.nmasked, NO_DEAD_ROWS,
			carried && tablet->serial == 0, cursor.of_host_set,
			cursor.set != nullptr ? static_cast<const StoredSet *>(cursor.set)->part(t) : nullptr};
		PadLister	pads(ref);

		if (units == nullptr)
		{
			if (!ref.skip)
				todo.rows = pads.add(work, number, 0, tablet->nrows);
		}
		else
			for (uint32_t first = 0; first < tablet->nrows; first += units->unit_rows, unit++)
			{
				const uint32_t end = std::min(tablet->nrows, first + units->unit_rows);
				const uint32_t first_pad = static_cast<uint32_t>(work->pads.size());

				if (ref.skip || units->skips(unit))
					continue;
				todo.rows += pads.add(work, number, first, end);
				if (work->pads.size() > first_pad)
					work->units.push_back(WorkUnit{static_cast<uint32_t>(unit), number, first_pad,
												   static_cast<uint32_t>(work->pads.size()) - first_pad});
			}
		todo.npads = static_cast<uint32_t>(work->pads.size()) - todo.first_pad;
		if (todo.npads == 0)
			continue;
		if (pads.partly)
			add_dead_rows(work, &todo);
		work->tablets.push_back(todo);
		work->rows += todo.rows;
	}
}

}  // namespace

void
list_work(const DeviceJobRequest &request, Work *work)
{
	list_tablets(request, request.program, leaves_by_units(request) ? &request : nullptr, work);
}

void
list_rows(const DeviceCursor &cursor, const Program *program, Work *work)
{
	list_tablets(cursor, program, nullptr, work);
}

void
mask_all(Work *work)
{
	work->dead.clear();
	work->dead_pads = 0;
	for (WorkTablet &tablet : work->tablets)
		add_dead_rows(work, &tablet);
}

uint64_t
rows_of_pads(const Work &work, const WorkTablet &tablet, uint32_t first, uint32_t end)
{
	uint64_t	rows = 0;

	if (end - first == tablet.npads)
		return tablet.rows;
	for (uint32_t i = first; i < end; i++)
	{
		const uint32_t row = work.pads[i].row, end_row = std::min(row + TABLET_PAD_ROWS, tablet.tablet->nrows);

		rows += end_row - row - masked_count(tablet.masked, tablet.nmasked, row, end_row);
	}
	return rows;
}

bool
carries_delta(const DeviceCursor &cursor, const Program *program)
{
	std::vector<bool> seen(cursor.ncolumns), texts_seen(cursor.ncolumns);
	uint64_t	rows = 0, row_bytes = 0, text_bytes = 0;

	for (uint32_t t = 0; t < cursor.ntablets; t++)
		if (cursor.tablets[t].tablet->serial == 0 && !cursor.tablets[t].skip)
			rows += cursor.tablets[t].tablet->padded_rows;
	if (rows == 0)
		return false;
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		const size_t column = static_cast<size_t>(op.p2);

		if (!reads_column(op) || (reads_text(op) ? texts_seen : seen)[column])
			continue;
		(reads_text(op) ? texts_seen : seen)[column] = true;
		row_bytes += static_cast<uint64_t>(type_natural_width(cursor.columns[column].type)) + 1;
		for (uint32_t t = 0; reads_text(op) && t < cursor.ntablets; t++)
			if (cursor.tablets[t].tablet->serial == 0 && !cursor.tablets[t].skip)
				text_bytes += variable_bytes(tablet_chunks(cursor.tablets[t].tablet)[column]);
	}
	return rows * row_bytes + text_bytes <= CARRIED_BYTES;
}

/* ---- lowering ------------------------------------------------------------------ */

namespace {

struct LastLowered
{
	std::string key;
	std::vector<uint64_t> source;	/* a copy of the program, which the lowered one may refer to */
	DeviceProgram program;
	const char *reason;
};

}  // namespace

bool
masks_rows(const DeviceCursor &cursor)
{
	for (uint32_t t = 0; t < cursor.ntablets; t++)
		if (cursor.tablets[t].nmasked != 0 && !cursor.tablets[t].skip)
			return true;
	return false;
}

void
bind_columns(const DeviceCursor &cursor, const Program *program, std::vector<ColumnBinding> *bindings, std::string *key)
{
	const bool	carried = carries_delta(cursor, program);

	key->append(reinterpret_cast<const char *>(&cursor.total_rows), sizeof(cursor.total_rows));
	key->push_back(masks_rows(cursor) ? 1 : 0);
	bindings->assign(cursor.ncolumns, ColumnBinding{});
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (!reads_column(op))
			continue;

		ColumnBinding &binding = (*bindings)[static_cast<size_t>(op.p2)];

		binding.summary = cursor.columns[op.p2];
		binding.min_width = binding.summary.max_width;
		/* What is carried is widened if need be. */
		for (uint32_t t = 0; t < cursor.ntablets; t++)
			if (!cursor.tablets[t].skip && !(carried && cursor.tablets[t].tablet->serial == 0))
				binding.min_width = std::min(binding.min_width, tablet_chunks(cursor.tablets[t].tablet)[op.p2].width);
		key->append(reinterpret_cast<const char *>(&binding.summary), sizeof(binding.summary));
		key->push_back(static_cast<char>(binding.min_width));
	}
}

const DeviceProgram *
lower_request(const DeviceJobRequest &request, uint32_t shared_bytes, const char **reason, LoweredAs as)
{
	static thread_local std::unique_ptr<LastLowered> lowered[3];
	std::unique_ptr<LastLowered> &last = lowered[static_cast<int>(as)];
	std::vector<ColumnBinding> bindings;
	std::string key(reinterpret_cast<const char *>(request.program), request.program->size);

	key.append(reinterpret_cast<const char *>(request.params), request.nparams * sizeof(ParamValue));
	key.append(reinterpret_cast<const char *>(&shared_bytes), sizeof(shared_bytes));
	bind_columns(request, request.program, &bindings, &key);
	append_map_key(request.maps, request.program->nmaps, &key);

	if (!last)
		last = std::make_unique<LastLowered>();
	if (last->key != key)
	{
		last->key.clear();
		last->source.resize((request.program->size + 7) / 8);
		memcpy(last->source.data(), request.program, request.program->size);
		last->reason = lower(LowerInput{reinterpret_cast<const Program *>(last->source.data()), request.params, bindings.data(),
										request.ncolumns, request.total_rows, LowerOptions{0, true, shared_bytes, masks_rows(request)},
										request.maps},
							 &last->program);
		last->key = std::move(key);
	}
	*reason = last->reason;
	return last->reason == nullptr ? &last->program : nullptr;
}

}  // namespace cuda
}  // namespace gpuvm
