/* cpu_window_inputs.cc: arguments of aggregates made into what answers for ranges of rows (cpu_window.h). */
#include "tablet/wide_halves.h"
#include "vm/cpu_window_job.h"

namespace gpuvm {

/* ---- which rows count ----------------------------------------------------------------- */

void
WindowArgument::counted(uint32_t block, uint32_t nrows, uint64_t *words) const
{
	const uint32_t nwords = (nrows + 63) / 64;

	for (uint32_t w = 0; w < nwords; w++)
		words[w] = low_bits(std::min(64u, nrows - w * 64));
	if (column != nullptr && column->nulls[block] != nullptr)
		for (uint32_t w = 0; w < nwords; w++)
			words[w] &= ~column->nulls[block][w];
	if (filter == nullptr)
		return;
	if (filter->nulls[block] != nullptr)
		for (uint32_t w = 0; w < nwords; w++)
			words[w] &= ~filter->nulls[block][w];

	const uint8_t *passes = reinterpret_cast<const uint8_t *>(filter->values[block]);

	for (uint32_t i = 0; i < nrows; i++)
		words[i / 64] &= ~(uint64_t{passes[i] == 0} << (i % 64));
}

void
WindowCounts::allocate()
{
	all_ = argument_.counts_all();
	if (!all_)
		bits_.allocate(nrows_);
}

void
WindowCounts::prepare(uint32_t block)
{
	if (all_)
		return;
	argument_.counted(block, block_rows(block), bits_.words(block));
	bits_.count(block);
}

void
WindowCounts::carry()
{
	if (!all_)
		bits_.carry();
}

void
WindowTrues::prepare(uint32_t block)
{
	const uint8_t *values = reinterpret_cast<const uint8_t *>(argument_.column->values[block]);
	uint64_t   *words = bits_.words(block);

	argument_.counted(block, block_rows(block), words);
	for (uint32_t i = 0; i < block_rows(block); i++)
		words[i / 64] &= ~(uint64_t{values[i] == 0} << (i % 64));
	bits_.count(block);
}

/* ---- sums of integers ----------------------------------------------------------------- */

/* Up to so far from 0 a block's sum has 64 bits. */
constexpr int64_t NARROW_SUMMAND = INT64_MAX >> WINDOW_BLOCK_BITS;

WindowSums::WindowSums(const WindowArgument &argument, uint64_t nrows) : WindowInput(argument, nrows)
{
	const ColumnSummary &of = argument.column->summary;

	/* min > max: nothing is known */
	narrow_ = argument.high == nullptr && of.min <= of.max && of.min >= -NARROW_SUMMAND && of.max <= NARROW_SUMMAND;
}

void
WindowSums::allocate()
{
	sums_ = Pages(bytes(), bytes() >= WINDOW_HUGE_BYTES);
	carries_.assign(size_t{window_blocks(nrows_)} + 1, 0);
}

template <typename Sum, typename Value>
void
WindowSums::add_up(uint32_t block, Value value)
{
	const uint32_t nrows = block_rows(block);
	Sum		   *to = sums_.as<Sum>() + window_first(block);
	Sum			sum = 0;
	uint64_t	words[WINDOW_BLOCK_WORDS];

	if (argument_.counts_all())
		for (uint32_t i = 0; i < nrows; i++)
		{
			to[i] = sum;
			sum += static_cast<Sum>(value(i));
		}
	else
	{
		argument_.counted(block, nrows, words);
		for (uint32_t i = 0; i < nrows; i++)
		{
			to[i] = sum;
			sum += bit_get(words, i) ? static_cast<Sum>(value(i)) : 0;
		}
	}
	/* the end of all rows has a place, too; that of a whole block is the next one's first row */
	if (nrows < WINDOW_BLOCK_ROWS)
		to[nrows] = sum;
	carries_[block + 1] = static_cast<uint128>(sum);
}

void
WindowSums::prepare(uint32_t block)
{
	const char *values = argument_.column->values[block];

	if (argument_.high == nullptr)
	{
		with_window_type(argument_.column->summary.type, [&](auto sample) {
			using T = decltype(sample);
			const T    *of = reinterpret_cast<const T *>(values);
			auto		value = [of](uint32_t i) { return static_cast<int128>(of[i]); };

			if (narrow_)
				add_up<int64_t>(block, value);
			else
				add_up<int128>(block, value);
		});
		return;
	}

	const int64_t *low = reinterpret_cast<const int64_t *>(values);
	const int64_t *high = reinterpret_cast<const int64_t *>(argument_.high->values[block]);
	uint64_t	words[WINDOW_BLOCK_WORDS];
	uint64_t	most = 0;

	/* no sum of all rows may leave 128 bits, nor have what is no number */
	argument_.counted(block, block_rows(block), words);
	for (uint32_t i = 0; i < block_rows(block); i++)
		if (bit_get(words, i))
			most = std::max(most, static_cast<uint64_t>(high[i] < 0 ? -(high[i] + 1) : high[i]) + 1);
	if (!window_halves_fit(most, nrows_))
		errors_.fetch_or(ERR_INT_OVERFLOW);
	add_up<int128>(block, [=](uint32_t i) { return wide_value(high[i], low[i]); });
}

void
WindowSums::carry()
{
	for (size_t b = 1; b < carries_.size(); b++)
		carries_[b] += carries_[b - 1];
}

/* ---- extremes ------------------------------------------------------------------------- */

constexpr int TREE_BITS = WINDOW_TREE_BITS;
constexpr uint64_t TREE_NODES = WINDOW_TREE_NODES;
constexpr int BLOCK_LEVELS = WINDOW_BLOCK_BITS / TREE_BITS;
static_assert(BLOCK_LEVELS * TREE_BITS == WINDOW_BLOCK_BITS, "a block is a node");

static uint64_t
next_level(uint64_t size)
{
	return (size + TREE_NODES - 1) / TREE_NODES;
}

template <typename Key>
uint64_t
WindowExtremes<Key>::bytes() const
{
	uint64_t	n = 0;

	for (uint64_t size = nrows_;; size = next_level(size))
	{
		n += size;
		if (size <= 1)
			return n * sizeof(Key);
	}
}

template <typename Key>
void
WindowExtremes<Key>::allocate()
{
	uint64_t	at = 0;

	for (uint64_t size = nrows_;; size = next_level(size))
	{
		levels_.push_back(at);
		sizes_.push_back(size);
		at += size;
		if (size <= 1)
			break;
	}
	keys_ = Pages(bytes(), bytes() >= WINDOW_HUGE_BYTES);
}

/* Of the rows of a block, as they are if they count; the column is not of what the template has no room for. */
template <typename Key>
void
WindowExtremes<Key>::make_keys(uint32_t block, Key *to)
{
	const uint32_t nrows = block_rows(block);
	const char *values = argument_.column->values[block];

	if (argument_.ranks != nullptr)
	{
		const WindowRanks ranks = window_ranks(*argument_.ranks);
		const uint32_t *codes = reinterpret_cast<const uint32_t *>(values);

		for (uint32_t i = 0; i < nrows; i++)
			to[i] = window_ranked_key<Key>(ranks, codes[i]);
	}
	else if (argument_.high != nullptr)
	{
		const int64_t *low = reinterpret_cast<const int64_t *>(values);
		const int64_t *high = reinterpret_cast<const int64_t *>(argument_.high->values[block]);

		for (uint32_t i = 0; i < nrows; i++)
			to[i] = static_cast<Key>(wide_value(high[i], low[i]));
	}
	else
		with_window_type(argument_.column->summary.type, [&](auto sample) {
			const auto *from = reinterpret_cast<const decltype(sample) *>(values);

			for (uint32_t i = 0; i < nrows; i++)
				to[i] = window_order(from[i]);
		});
}

/* Which zeroes are among floats that count? */
template <typename T>
static void
find_zeroes(const T *values, const uint64_t *counted, uint32_t nrows, std::atomic<bool> *zeroes)
{
	for (uint32_t i = 0; i < nrows; i++)
		if (values[i] == 0 && bit_get(counted, i))
			zeroes[double_bits(static_cast<double>(values[i])) != 0].store(true, std::memory_order_relaxed);
}

template <typename Key>
void
WindowExtremes<Key>::prepare(uint32_t block)
{
	const uint32_t nrows = block_rows(block);
	Key		   *keys = level(0) + window_first(block);
	uint64_t	words[WINDOW_BLOCK_WORDS];

	argument_.counted(block, nrows, words);
	make_keys(block, keys);
	for (uint32_t i = 0; max_ && i < nrows; i++)
		keys[i] = ~keys[i];
	for (uint32_t w = 0; w < (nrows + 63) / 64; w++)
		for (uint64_t left = ~words[w] & low_bits(std::min(64u, nrows - w * 64)); left != 0; left &= left - 1)
			keys[w * 64 + static_cast<uint32_t>(__builtin_ctzll(left))] = NONE;

	const Type	type = argument_.column->summary.type;

	if (type == Type::F32)
		find_zeroes(reinterpret_cast<const float *>(argument_.column->values[block]), words, nrows, zeroes_);
	else if (type == Type::F64)
		find_zeroes(reinterpret_cast<const double *>(argument_.column->values[block]), words, nrows, zeroes_);

	uint64_t	n = nrows;

	for (size_t k = 1; k < levels_.size() && k <= BLOCK_LEVELS; k++)
	{
		const Key  *from = level(k - 1) + (window_first(block) >> ((k - 1) * TREE_BITS));
		Key		   *to = level(k) + (window_first(block) >> (k * TREE_BITS));

		for (uint64_t i = 0; i < n; i += TREE_NODES)
			to[i / TREE_NODES] = window_least(from + i, from + std::min(i + TREE_NODES, n), NONE);
		n = next_level(n);
	}
}

template <typename Key>
void
WindowExtremes<Key>::carry()
{
	for (size_t k = BLOCK_LEVELS + 1; k < levels_.size(); k++)
		for (uint64_t i = 0; i < sizes_[k - 1]; i += TREE_NODES)
			level(k)[i / TREE_NODES] = window_least(level(k - 1) + i,
													level(k - 1) + std::min(i + TREE_NODES, sizes_[k - 1]), NONE);
}

template <typename Key>
Key
WindowExtremes<Key>::of(uint64_t head, uint64_t tail) const
{
	return window_tree_least<Key>([this](int k) { return level(static_cast<size_t>(k)); }, head, tail);
}

template class WindowExtremes<int64_t>;
template class WindowExtremes<int128>;

}  // namespace gpuvm
