/* result_set.cc: see result_set.h. */
#include "result_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "failure.h"
#include "tablet/build.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

/* No tablet of the arena has it, so nothing of a set is looked for among the columns that are kept. */
constexpr uint64_t NO_SERIAL = UINT64_MAX;

static SetForm
form_of(Type type, SinkForm form)
{
	return form == SinkForm::Low ? SetForm::Low : form == SinkForm::High ? SetForm::High : type == Type::I128 ? SetForm::Narrow : SetForm::Plain;
}

StoredSet::StoredSet(CudaDevice *device, const Program *program, const SinkColumn *columns, uint32_t ncolumns) : device_(device), columns_(ncolumns)
{
	std::vector<Type> results(program->nresults);

	program_result_types(program, results.data());
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		const Type	type = results[columns[c].result];

		types_.push_back(type == Type::I128 ? Type::I64 : type);
		sources_.push_back(SetColumnSource{static_cast<uint8_t>(columns[c].result), type == Type::I128, form_of(type, columns[c].form)});
	}
	summarize();
}

/* Every job that knew the memory has seen its end. */
StoredSet::~StoredSet()
{
	if (parts_.empty())
		return;
	(void) cudaSetDevice(device_->ordinal());
	for (const std::unique_ptr<Part> &part : parts_)
		for (const Memory &memory : part->memory)
			device_->free_working(memory.at, memory.bytes);
}

/* ---- making ---------------------------------------------------------------------- */

void
StoredSet::nullable_columns(const RowSet &rows, uint8_t *nullable) const
{
	memset(nullable, 0, PROGRAM_MAX_COLUMNS / 8);
	for (size_t c = 0; c < types_.size(); c++)
		if (rows.column[sources_[c].column].nulls != nullptr)
			nullable[c / 8] |= static_cast<uint8_t>(1 << c % 8);
}

uint64_t
StoredSet::part_bytes(const RowSet &rows, uint32_t n) const
{
	uint8_t		nullable[PROGRAM_MAX_COLUMNS / 8];

	nullable_columns(rows, nullable);
	return row_set_bytes(types_.data(), nullable, ncolumns(), n);
}

RowSet
StoredSet::part(const RowSet &rows, uint32_t n, char *memory) const
{
	uint8_t		nullable[PROGRAM_MAX_COLUMNS / 8];

	nullable_columns(rows, nullable);
	return row_set(types_.data(), nullable, ncolumns(), n, memory);
}

bool
StoredSet::take(const RowSet &rows, uint32_t n, char *memory, uint64_t bytes, const SetColumnFacts *facts)
{
	for (size_t c = 0; c < types_.size(); c++)
		if (facts[c].flags & SET_MISFIT)
			return false;

	auto		part = std::make_unique<Part>();

	part->rows = rows;
	part->nrows = n;
	part->memory.push_back(Memory{memory, bytes});
	describe(part.get(), 0, facts);
	parts_.reserve(parts_.size() + 1);
	tablets_.reserve(tablets_.size() + 1);
	tablets_.push_back(DeviceTabletRef{reinterpret_cast<const TabletHeader *>(part->header.data()), false});
	parts_.push_back(std::move(part));
	nrows_ += n;
	bytes_ += bytes;
	summarize();
	return true;
}

void
StoredSet::add_columns(const std::vector<Type> &types, const RowSet &columns, char *memory, uint64_t bytes, const SetColumnFacts *facts)
{
	const size_t old = types_.size();

	types_.insert(types_.end(), types.begin(), types.end());
	columns_.resize(types_.size());
	for (size_t c = old; c < types_.size(); c++)
		sources_.push_back(SetColumnSource{static_cast<uint8_t>(c), false, SetForm::Plain});
	if (!parts_.empty())
	{
		Part	   *part = parts_.front().get();

		part->memory.push_back(Memory{memory, bytes});
		std::copy_n(columns.column, types.size(), part->rows.column + old);
		part->rows.ncolumns = ncolumns();
		describe(part, old, facts);
		tablets_.front().tablet = reinterpret_cast<const TabletHeader *>(part->header.data());
		bytes_ += bytes;
	}
	summarize();
}

void
StoredSet::append(StoredSet *from)
{
	parts_.reserve(parts_.size() + from->parts_.size());
	tablets_.reserve(tablets_.size() + from->tablets_.size());
	std::move(from->parts_.begin(), from->parts_.end(), std::back_inserter(parts_));
	tablets_.insert(tablets_.end(), from->tablets_.begin(), from->tablets_.end());
	nrows_ += from->nrows_;
	bytes_ += from->bytes_;
	from->parts_.clear();
	from->tablets_.clear();
	from->nrows_ = from->bytes_ = 0;
	summarize();
}

/* ---- what is known of the columns --------------------------------------------------- */

/* A finite float's order bits, as those of the double. */
static int64_t
double_of_order(uint64_t bits)
{
	constexpr uint64_t sign = 0x8000000000000000u;

	return static_cast<int64_t>(bits & sign ? bits & ~sign : ~bits);
}

static int64_t
bits_of(double value)
{
	int64_t		bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* As a tablet's builder has it: plan_tablet(). */
static void
describe_values(const SetColumnFacts &facts, ColumnChunk *chunk)
{
	const bool	is_float = type_is_float(chunk->type), known = (facts.flags & SET_HAS_VALUE) != 0;

	if (is_float)
	{
		chunk->flags |= static_cast<uint16_t>(facts.flags & (CHUNK_HAS_NAN | CHUNK_HAS_INF | CHUNK_HAS_NEG_ZERO));
		chunk->min = known ? double_of_order(~facts.not_least) : bits_of(HUGE_VAL);
		chunk->max = known ? double_of_order(facts.most) : bits_of(-HUGE_VAL);
		chunk->exp_lo = facts.exp_lo != 0 ? static_cast<int16_t>(SET_EXP_ORIGIN - static_cast<int>(facts.exp_lo)) : INT16_MAX;
		chunk->exp_hi = facts.exp_hi != 0 ? static_cast<int16_t>(static_cast<int>(facts.exp_hi) - SET_EXP_ORIGIN) : INT16_MIN;
	}
	else if (known)
	{
		chunk->min = static_cast<int64_t>(set_order_bits(static_cast<int64_t>(~facts.not_least)));
		chunk->max = static_cast<int64_t>(set_order_bits(static_cast<int64_t>(facts.most)));
	}
}

void
StoredSet::describe(Part *part, size_t first, const SetColumnFacts *facts) const
{
	part->header.resize((sizeof(TabletHeader) + types_.size() * sizeof(ColumnChunk)) / sizeof(uint64_t));

	TabletHeader *header = reinterpret_cast<TabletHeader *>(part->header.data());

	header->ncols = static_cast<uint16_t>(types_.size());
	header->nrows = part->nrows;
	header->padded_rows = part->rows.capacity;
	header->serial = NO_SERIAL;
	for (size_t c = first; c < types_.size(); c++, facts++)
	{
		ColumnChunk &chunk = tablet_chunks(header)[c];

		chunk.type = types_[c];
		chunk.width = static_cast<uint8_t>(type_natural_width(types_[c]));
		chunk.attnum = static_cast<int16_t>(c + 1);
		chunk.data_bytes = static_cast<uint64_t>(part->rows.capacity) * chunk.width;
		chunk.null_count = facts->nulls;
		if (facts->nulls == 0)
			part->rows.column[c].nulls = nullptr;
		else
		{
			chunk.flags |= CHUNK_HAS_NULLS | (facts->nulls == part->nrows ? CHUNK_ALL_NULL : 0);
			chunk.nulls = sizeof(TabletHeader);	/* only whether there are any is asked */
		}
		describe_values(*facts, &chunk);
	}
}

void
StoredSet::summarize()
{
	for (size_t c = 0; c < types_.size(); c++)
	{
		columns_[c] = ColumnSummary{};
		columns_[c].type = types_[c];
		columns_[c].max_width = static_cast<uint8_t>(type_natural_width(types_[c]));
		for (size_t t = 0; t < tablets_.size(); t++)
			summarize_chunk(&columns_[c], tablet_chunks(tablets_[t].tablet)[c], t == 0);
		columns_[c].scale = -1;
	}
}

/* ---- to the host ------------------------------------------------------------------- */

/* Bits of the part's rows [first, first + n) are added to a bitmap of zeroes, from bit `to` on. */
void
StoredSet::copy_nulls(const Part &part, uint32_t first, uint32_t n, uint32_t column, uint64_t to, uint64_t *nulls) const
{
	const uint32_t *from = part.rows.column[column].nulls;
	const uint32_t word = first / 32, nwords = (first % 32 + n + 31) / 32;
	std::vector<uint32_t> words(nwords);

	if (from == nullptr)
		return;
	device_->fetch(words.data(), from + word, nwords * sizeof(uint32_t));
	for (uint32_t w = 0; w < nwords; w++)
		for (uint32_t left = words[w]; left != 0; left &= left - 1)
		{
			const uint64_t row = uint64_t{w} * 32 + static_cast<uint32_t>(__builtin_ctz(left));

			if (row >= first % 32 && row < first % 32 + uint64_t{n})
				nulls[(to + row - first % 32) / 64] |= uint64_t{1} << ((to + row - first % 32) % 64);
		}
}

void
StoredSet::copy(uint64_t first, uint64_t nrows, char *const *values, uint64_t *const *nulls) const
{
	uint64_t	at = 0;			/* the part's first row */

	device_->use();
	for (uint32_t c = 0; c < ncolumns(); c++)
		std::fill_n(nulls[c], (nrows + 63) / 64, uint64_t{0});
	for (const std::unique_ptr<Part> &part : parts_)
	{
		const uint64_t begin = std::max(first, at), end = std::min(first + nrows, at + part->nrows);

		for (uint32_t c = 0; begin < end && c < ncolumns(); c++)
		{
			const uint64_t width = static_cast<uint64_t>(type_natural_width(types_[c]));

			device_->fetch(values[c] + (begin - first) * width, part->rows.column[c].values + (begin - at) * width, (end - begin) * width);
			copy_nulls(*part, static_cast<uint32_t>(begin - at), static_cast<uint32_t>(end - begin), c, begin - first, nulls[c]);
		}
		at += part->nrows;
	}
}

/* ---- requests ------------------------------------------------------------------------ */

static void
give_tablets(DeviceCursor *cursor)
{
	if (cursor->set == nullptr)
		return;

	const StoredSet *set = static_cast<const StoredSet *>(cursor->set);

	cursor->tablets = set->tablets().data();
	cursor->ntablets = static_cast<uint32_t>(set->tablets().size());
	cursor->total_rows = set->rows();
}

SetRequest::SetRequest(const DeviceJobRequest &request) : request_(request), others_(request.others, request.others + request.nothers)
{
	give_tablets(&request_);
	for (DeviceCursor &other : others_)
		give_tablets(&other);
	request_.others = others_.data();
}

int
SetRequest::device() const
{
	int			found = NONE;

	const auto	look = [&](const DeviceSet *set)
	{
		const int	its = set == nullptr ? found : static_cast<int>(set->device());

		found = found == NONE || found == its ? its : SEVERAL;
	};

	look(request_.set);
	look(request_.append_to);
	for (const DeviceCursor &other : others_)
		look(other.set);
	return found;
}

}  // namespace cuda
}  // namespace gpuvm
