/* work.cc: see work.h. */
#include "work.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "lower.h"

namespace gpuvm {
namespace cuda {

namespace {

void
add_pads(Work *work, uint32_t tablet, uint32_t first_row, uint32_t end_row)
{
	const size_t before = work->pads.size(), n = (end_row - first_row + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;

	work->pads.resize(before + n);

	DevicePad  *to = work->pads.data() + before;

	for (uint32_t i = 0; i < n; i++)
		to[i] = DevicePad{tablet, first_row + i * TABLET_PAD_ROWS};
}

}  // namespace

void
list_work(const DeviceJobRequest &request, Work *work)
{
	const bool	grouped = request.program->grouped;
	uint64_t	unit = 0;

	work->pads.reserve((request.total_rows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS + request.ntablets);
	work->tablets.reserve(request.ntablets);
	for (uint32_t t = 0; t < request.ntablets; t++)
	{
		const TabletHeader *tablet = request.tablets[t].tablet;
		const uint32_t number = static_cast<uint32_t>(work->tablets.size());
		WorkTablet	todo = {tablet, static_cast<uint32_t>(work->pads.size()), 0, 0};

		if (grouped)
		{
			if (!request.tablets[t].skip)
			{
				add_pads(work, number, 0, tablet->nrows);
				todo.rows = tablet->nrows;
			}
		}
		else
			for (uint32_t first = 0; first < tablet->nrows; first += request.unit_rows, unit++)
			{
				const uint32_t end = std::min(tablet->nrows, first + request.unit_rows);
				const uint32_t first_pad = static_cast<uint32_t>(work->pads.size());

				if (request.tablets[t].skip || request.skips(unit))
					continue;
				add_pads(work, number, first, end);
				work->units.push_back(WorkUnit{static_cast<uint32_t>(unit), number, first_pad,
											   static_cast<uint32_t>(work->pads.size()) - first_pad});
				todo.rows += end - first;
			}
		todo.npads = static_cast<uint32_t>(work->pads.size()) - todo.first_pad;
		if (todo.npads == 0)
			continue;
		work->tablets.push_back(todo);
		work->rows += todo.rows;
	}
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

/* All that lowering depends on, as bytes. Fills the bindings of the columns that the program reads. */
std::string
lowering_key(const DeviceJobRequest &request, uint32_t shared_bytes, std::vector<ColumnBinding> *bindings)
{
	const Program *program = request.program;
	std::string key(reinterpret_cast<const char *>(program), program->size);

	key.append(reinterpret_cast<const char *>(request.params), request.nparams * sizeof(ParamValue));
	key.append(reinterpret_cast<const char *>(&request.total_rows), sizeof(request.total_rows));
	key.append(reinterpret_cast<const char *>(&shared_bytes), sizeof(shared_bytes));
	bindings->assign(request.ncolumns, ColumnBinding{});
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode != Opcode::Column)
			continue;

		ColumnBinding &binding = (*bindings)[static_cast<size_t>(op.p2)];

		binding.summary = request.columns[op.p2];
		binding.min_width = binding.summary.max_width;
		for (uint32_t t = 0; t < request.ntablets; t++)
			if (!request.tablets[t].skip)
				binding.min_width = std::min(binding.min_width, tablet_chunks(request.tablets[t].tablet)[op.p2].width);
		key.append(reinterpret_cast<const char *>(&binding.summary), sizeof(binding.summary));
		key.push_back(static_cast<char>(binding.min_width));
	}
	return key;
}

}  // namespace

const DeviceProgram *
lower_request(const DeviceJobRequest &request, uint32_t shared_bytes, const char **reason)
{
	static thread_local std::unique_ptr<LastLowered> last;
	std::vector<ColumnBinding> bindings;
	std::string key = lowering_key(request, shared_bytes, &bindings);

	if (!last)
		last = std::make_unique<LastLowered>();
	if (last->key != key)
	{
		last->key.clear();
		last->source.resize((request.program->size + 7) / 8);
		memcpy(last->source.data(), request.program, request.program->size);
		last->reason = lower(LowerInput{reinterpret_cast<const Program *>(last->source.data()), request.params, bindings.data(),
										request.ncolumns, request.total_rows, LowerOptions{0, true, shared_bytes}},
							 &last->program);
		last->key = std::move(key);
	}
	*reason = last->reason;
	return last->reason == nullptr ? &last->program : nullptr;
}

}  // namespace cuda
}  // namespace gpuvm
