/* text_keys.cc: see text_keys.h. */
#include "text_keys.h"

#include <algorithm>

namespace gpuvm {
namespace cuda {

uint64_t	text_hash_mask = ~uint64_t{0};

/* What made the register: the engine has seen that it is a column, or a constant null. */
static const Op *
writer_of(const Program *program, int reg)
{
	const Op   *op = program->ops();

	while (op->opcode != Opcode::Finish && !((op->opcode == Opcode::Column || op->opcode == Opcode::Null) && op->p1 == reg))
		op++;
	return op;
}

std::vector<TextKeyColumn>
text_key_columns(const DeviceJobRequest &request)
{
	const Program *program = request.program;
	std::vector<TextKeyColumn> columns;

	const auto	add = [&](int reg, int attlen, uint32_t flags)
	{
		const Op   *from = writer_of(program, reg);
		const TextKeyColumn column = {static_cast<uint32_t>(from->p3), static_cast<uint16_t>(from->p2), attlen, flags};
		const auto	known = std::find(columns.begin(), columns.end(), column);

		if (from->opcode == Opcode::Column && known == columns.end())
			columns.push_back(column);
		else if (from->opcode == Opcode::Column)
			known->flags |= flags;
	};

	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::TextKey)
			add(op.p2, op.p3, 0);
		if (op.opcode != Opcode::TextCompare)
			continue;

		const TextOrder &order = request.text_orders[op.p4];

		add(op.p2, order.attlen(), order.flags());
		add(op.p3, order.attlen(), order.flags());
	}
	return columns;
}

std::unique_ptr<DeviceProgram>
images_program(const std::vector<TextKeyColumn> &columns, uint32_t cursor)
{
	auto		program = std::make_unique<DeviceProgram>();

	for (const TextKeyColumn &column : columns)
		if (column.cursor == cursor)
			program->columns[program->ncolumns++].table_column = column.column | TEXT_IMAGES;
	return program->ncolumns == 0 ? nullptr : std::move(program);
}

TextKeyFeed::TextKeyFeed(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, const std::vector<TextKeyColumn> &columns,
						 Lane *lane)
	: columns_(columns)
{
	for (uint32_t i = 0; i <= request.nothers; i++)
	{
		const DeviceCursor &cursor = cursor_of(request, i);
		auto		source = std::make_unique<Source>();

		source->cursor = i;
		source->program = images_program(columns, i);
		if (!source->program)
			continue;
		source->work.columns = cursor.columns;
		for (uint32_t t = 0; t < cursor.ntablets; t++)
			if (!cursor.tablets[t].skip)
			{
				const TabletHeader *tablet = cursor.tablets[t].tablet;

				source->work.tablets.push_back(WorkTablet{tablet, 0, 0, tablet->nrows, nullptr, 0, NO_DEAD_ROWS, false, false});
				values_ += static_cast<uint64_t>(tablet->nrows) * source->program->ncolumns;
			}
		source->feed = std::make_unique<TableFeed>(device, arena, *source->program, source->work);
		source->feed->begin(request.transfer, true);
		source->feed->use_lane(lane);
		sources_.push_back(std::move(source));
	}
}

bool
TextKeyFeed::copy_some(uint64_t bytes)
{
	for (const std::unique_ptr<Source> &source : sources_)
		if (!source->feed->all_placed() && source->feed->copy_some(bytes))
			return true;
	return false;
}

void
TextKeyFeed::bring()
{
	for (const std::unique_ptr<Source> &source : sources_)
		source->feed->bring_all();
}

std::vector<TextKeyImages>
TextKeyFeed::images() const
{
	std::vector<TextKeyImages> all;

	for (const std::unique_ptr<Source> &source : sources_)
		for (uint32_t t = 0; t < source->work.tablets.size(); t++)
			for (int c = 0; c < source->program->ncolumns; c++)
			{
				const uint16_t column = source->program->columns[c].table_column & ~TEXT_IMAGES;
				const ColumnChunk &chunk = tablet_chunks(source->work.tablets[t].tablet)[column];
				const uint64_t first = static_cast<uint64_t>(chunk.base);
				const auto	of = std::find(columns_.begin(), columns_.end(), TextKeyColumn{source->cursor, column, 0, 0});

				if (variable_bytes(chunk) != 0)
					all.push_back(TextKeyImages{first, first + variable_bytes(chunk), source->feed->describe(t, c).data, of->attlen, of->flags});
			}
	std::sort(all.begin(), all.end(), [](const TextKeyImages &a, const TextKeyImages &b) { return a.first < b.first; });
	/* two cursors may read one table */
	all.erase(std::unique(all.begin(), all.end(), [](const TextKeyImages &a, const TextKeyImages &b) { return a.first == b.first; }), all.end());
	return all;
}

uint64_t
TextKeyFeed::slots() const
{
	uint64_t	n = 64;

	while (n / 3 * 2 < values_)
		n *= 2;
	return n;
}

uint64_t
TextKeyFeed::bytes() const
{
	uint64_t	bytes = 0;

	for (const std::unique_ptr<Source> &source : sources_)
		bytes += source->feed->bytes();
	return bytes;
}

uint64_t
TextKeyFeed::copied_bytes() const
{
	uint64_t	bytes = 0;

	for (const std::unique_ptr<Source> &source : sources_)
		bytes += source->feed->copied_bytes();
	return bytes;
}

}  // namespace cuda
}  // namespace gpuvm
