/* cpu_join_filter.cc: see cpu_join_filter.h. */
#include "vm/cpu_join_filter.h"

#include <algorithm>
#include <cstring>

#include "vm/cpu_join_job.h"
#include "vm/join_filter.h"

#define GPUVM_LOOP __attribute__((optimize("O3"), target_clones("avx2", "default"), noinline))

namespace gpuvm::cpu_join {

namespace {

constexpr uint64_t BITS_OF_ROW = 32;	/* that a row of cursor 0 is worth at most */
constexpr uint64_t ROWS_OF_SIDE = 4;	/* rows of cursor 0, by inner rows that bits are set for */
constexpr uint32_t SAMPLES = 8;	/* vectors, */
constexpr uint32_t SAMPLE_EACH = 2048;	/* of so many */
constexpr uint32_t SPARSE = VECTOR / 8;
constexpr double MOST_LEFT = 0.8;	/* with more rows left filters are not worth their time, */
constexpr double MOST_LEFT_OF_KEY = 0.95;	/* nor is one of them */

/* Per lane, whether its key is there. */
template <typename V>
GPUVM_LOOP void
find_codes(const V *codes, uint32_t origin, uint32_t last, uint32_t slot, const uint32_t *bits, uint8_t *out)
{
	for (uint32_t i = 0; i < VECTOR; i++)
	{
		const uint32_t code = static_cast<uint32_t>(static_cast<int32_t>(codes[i])) - origin;
		const uint32_t in = code <= last ? ~0u : 0, at = (code + slot) & in;

		out[i] = static_cast<uint8_t>(bits[static_cast<int32_t>(at >> 5)] >> (at & 31) & in & 1);
	}
}

template <typename V>
GPUVM_LOOP void
in_range(const V *codes, uint32_t origin, uint32_t last, uint8_t *out)
{
	for (uint32_t i = 0; i < VECTOR; i++)
		out[i] = static_cast<uint32_t>(static_cast<int32_t>(codes[i])) - origin <= last;
}

void
find_wide(const int64_t *values, int64_t lo, uint64_t n, const uint32_t *bits, uint8_t *out)
{
	for (uint32_t i = 0; i < VECTOR; i++)
	{
		const uint64_t at = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(lo);

		out[i] = at < n && (bits == nullptr || (bits[at / 32] >> at % 32 & 1) != 0);
	}
}

/* Bytes of 0 and 1. */
void
keep(const uint8_t *bytes, uint64_t *live)
{
	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint64_t	mask = 0;

		for (int i = 0; i < 8; i++)
		{
			uint64_t	eight;

			memcpy(&eight, bytes + 64 * w + 8 * i, 8);
			mask |= (eight * 0x0102040810204080) >> 56 << 8 * i;
		}
		live[w] &= mask;
	}
}

uint32_t
count(const uint64_t *live)
{
	return static_cast<uint32_t>(bit_count(live, CPU_WORDS));
}

}  // namespace

uint64_t	filter_rows = 1 << 16;

size_t
used_column(const CpuProgram &program, int number)
{
	for (size_t i = 0; i < program.columns.size(); i++)
		if (program.columns[i].number == number)
			return i;
	return NOT_USED;
}

RowFilter::RowFilter(const std::vector<KeyFilter> &filters) : filters_(filters), tests_(filters.size()), passed_(filters.size()) {}

void
RowFilter::bind(const std::vector<BoundColumn> &columns, bool anew)
{
	if (anew)
		vectors_ = 0;
	for (size_t i = 0; i < filters_.size(); i++)
	{
		const KeyFilter &filter = filters_[i];
		const BoundColumn &column = columns[filter.column];
		const uint64_t at = static_cast<uint64_t>(column.base) - static_cast<uint64_t>(filter.lo);

		tests_[i].column = &column;
		if (column.width == 0)
			tests_[i].always = at < filter.n && filter.has(at);
		else if (column.width < 8)
			tests_[i].range = code_range(column.chunk->type, static_cast<uint32_t>(column.width), column.base, filter.lo, filter.n);
	}
}

/* Takes away lanes whose key is not there. */
void
RowFilter::pass(size_t number, uint32_t row, uint64_t *live) const
{
	const KeyFilter &filter = filters_[number];
	const Test &test = tests_[number];
	const BoundColumn &column = *test.column;
	const char *data = column.data + static_cast<size_t>(row) * static_cast<size_t>(column.width);
	const uint32_t *bits = filter.bits;
	alignas(64) uint8_t found[VECTOR];

	if (column.nulls)
		for (int w = 0; w < CPU_WORDS; w++)
			live[w] &= ~column.nulls[row / 64 + static_cast<uint32_t>(w)];
	if (column.width == 0 ? !test.always : column.width < 8 ? !test.range.some : filter.n == 0)
	{
		memset(live, 0, CPU_WORDS * sizeof(uint64_t));
		return;
	}
	if (column.width == 0)
		return;

	const bool	sign = codes_have_sign(column.chunk->type, static_cast<uint32_t>(column.width));
	const CodeRange &r = test.range;

	if (count(live) < SPARSE)
	{
		for (int w = 0; w < CPU_WORDS; w++)
			for (uint64_t m = live[w]; m != 0; m &= m - 1)
			{
				const int	i = 64 * w + __builtin_ctzll(m);
				uint64_t	at;
				bool		in;

				if (column.width == 8)
				{
					at = static_cast<uint64_t>(reinterpret_cast<const int64_t *>(data)[i]) - static_cast<uint64_t>(filter.lo);
					in = at < filter.n;
				}
				else
				{
					const uint32_t code = (column.width == 1 ? reinterpret_cast<const uint8_t *>(data)[i]
										   : column.width == 4 ? reinterpret_cast<const uint32_t *>(data)[i]
										   : sign ? static_cast<uint32_t>(int32_t{reinterpret_cast<const int16_t *>(data)[i]})
										   : reinterpret_cast<const uint16_t *>(data)[i]) - r.origin;

					in = code <= r.last;
					at = code + r.slot;
				}
				if (!in || !filter.has(at))
					live[w] &= ~(m & (0 - m));
			}
		return;
	}

	const auto	find = [&](const auto *codes)
	{
		if (bits != nullptr)
			find_codes(codes, r.origin, r.last, r.slot, bits, found);
		else
			in_range(codes, r.origin, r.last, found);
	};

	switch (column.width)
	{
		case 1: find(reinterpret_cast<const uint8_t *>(data)); break;
		case 2: sign ? find(reinterpret_cast<const int16_t *>(data)) : find(reinterpret_cast<const uint16_t *>(data)); break;
		case 4: find(reinterpret_cast<const uint32_t *>(data)); break;
		default: find_wide(reinterpret_cast<const int64_t *>(data), filter.lo, filter.n, bits, found); break;
	}
	keep(found, live);
}

/* What is worth it, the one that leaves least first. */
void
RowFilter::choose()
{
	std::vector<std::pair<double, size_t>> left;
	double		all = 1;

	order_.clear();
	for (size_t i = 0; i < filters_.size(); i++)
	{
		const double its = static_cast<double>(passed_[i]) / static_cast<double>(std::max<uint64_t>(seen_, 1));

		if (its > MOST_LEFT_OF_KEY)
			continue;
		left.emplace_back(its, i);
		all *= its;
	}
	if (all > MOST_LEFT)
		return;
	std::sort(left.begin(), left.end());
	for (const auto &[unused, i] : left)
		order_.push_back(i);
}

void
RowFilter::drop(uint32_t row, uint64_t *live)
{
	if (vectors_ < SAMPLES)
	{
		uint64_t	rest[CPU_WORDS];

		if (vectors_ == 0)
		{
			seen_ = 0;
			std::fill(passed_.begin(), passed_.end(), 0);
		}
		seen_ += count(live);
		memcpy(rest, live, sizeof(rest));
		for (size_t i = 0; i < filters_.size(); i++)
		{
			uint64_t	its[CPU_WORDS];

			memcpy(its, live, sizeof(its));
			pass(i, row, its);
			passed_[i] += count(its);
			for (int w = 0; w < CPU_WORDS; w++)
				rest[w] &= its[w];
		}
		memcpy(live, rest, sizeof(rest));
		if (++vectors_ == SAMPLES)
			choose();
		return;
	}
	if (++vectors_ == SAMPLE_EACH)
		vectors_ = 0;
	for (size_t i : order_)
	{
		pass(i, row, live);
		if (count(live) == 0)
			return;
	}
}

/* The inner sides' keys, where they may leave rows of cursor 0 out. */
void
JoinProgram::make_filters()
{
	const std::vector<int> columns = filter_columns(split_);
	std::vector<ValueRange> ranges;

	if (cursors_[0].total_rows < filter_rows)
		return;
	for (uint32_t c = 0; c < cursors_[0].ncols; c++)
		ranges.push_back(column_range(cursors_[0].columns[c]));
	if (may_raise(split_.first.program(), params_, ranges.data(), maps_))
		return;
	for (size_t i = 0; i < levels_.size(); i++)
	{
		Level	   &level = *levels_[i];
		const InnerRows &inner = *level.side.built;
		const size_t column = used_column(*first_, columns[i]);

		/* a pass has other keys than the next: they are not looked for, but their range is */
		if (i == parted_ && by_ == Parting::Value && column != NOT_USED)
		{
			pass_filter_ = filters_.size();
			filters_.push_back(pass_filter(column));
		}
		if (i != parted_ && column != NOT_USED && inner.rows <= cursors_[0].total_rows / ROWS_OF_SIDE)
		{
			const ValueRange &range = level.side.ranges[0];
			KeyFilter	filter = {column, range.lo,
				static_cast<uint64_t>(range.hi) - static_cast<uint64_t>(range.lo) + 1, nullptr, Pages()};

			if (range.type == Type::Bool)
			{
				filter.lo = 0;
				filter.n = 2;
			}
			if (inner.rows == 0 || (range.type != Type::Bool && (!range.may_value || range.lo > range.hi)))
				filter.n = 0;
			/* they take an eighth of the memory that there is at most */
			if (filter.n <= std::min(MOST_KEY_BITS, BITS_OF_ROW * cursors_[0].total_rows) && filter.n <= memory_for(filter.n) &&
				(filter.n != 0 || inner.rows == 0))
			{
				/* an index takes them along, if it is not at work yet */
				Pages	   *to = level.side.building && !level.side.key.empty() ? &level.side.building->key_bits : &filter.own;

				if (inner.key_bits.bytes() == 0)
					fill_filter(inner, filter, to);
				filter.bits = (inner.key_bits.bytes() != 0 ? inner.key_bits : filter.own).as<uint32_t>();
				filters_.push_back(std::move(filter));
			}
		}

		/* What it has to run all rows for. */
		for (const Stage *stage : {&level.condition, &level.tail})
		{
			std::vector<ValueRange> its;

			for (const ColumnChunk &chunk : stage->chunks)
				its.push_back(column_range(chunk));
			if (stage->program && may_raise(stage->program->program, params_, its.data(), maps_))
				return;
		}
	}
}

void
JoinProgram::fill_filter(const InnerRows &rows, const KeyFilter &filter, Pages *bits)
{
	if (filter.n == 0)
		return;

	const JoinColumn &key = rows.columns[0];

	*bits = Pages(align_up(filter.n, 64) / 8, false);
	for (const JoinRun &run : rows.runs)
		for (uint64_t row = run.at; row < run.at + run.n; row++)
		{
			int64_t		v;

			if (key.nulls && bit_get(key.nulls, row))
				continue;
			switch (type_width(key.type))
			{
				case 1: v = reinterpret_cast<const uint8_t *>(key.values)[row]; break;
				case 4: v = reinterpret_cast<const int32_t *>(key.values)[row]; break;
				default: v = reinterpret_cast<const int64_t *>(key.values)[row]; break;
			}

			const uint64_t at = static_cast<uint64_t>(v) - static_cast<uint64_t>(filter.lo);

			bits->as<uint32_t>()[at / 32] |= 1u << at % 32;
		}
}

}  // namespace gpuvm::cpu_join
