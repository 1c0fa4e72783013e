/* cpu_window_rows.cc: where partitions and peers begin (cpu_window.h). */
#include "vm/cpu_window_job.h"

namespace gpuvm {

/* ---- bits --------------------------------------------------------------------------- */

void
BitCounts::allocate(uint64_t nrows)
{
	nrows_ = nrows;
	words_ = Pages((nrows / 64 + 1) * sizeof(uint64_t), false);
	before_ = Pages((nrows / 64 + 1) * sizeof(uint32_t), false);
	carries_.assign(size_t{window_blocks(nrows)} + 2, 0);
}

void
BitCounts::count(uint32_t block)
{
	const uint64_t first = uint64_t{block} * WINDOW_BLOCK_WORDS;
	/* the word behind the last row, too, if it is the block's: before() may be asked of it */
	const uint64_t end = std::min<uint64_t>(first + WINDOW_BLOCK_WORDS, nrows_ / 64 + 1);
	const uint64_t *words = words_.as<uint64_t>();
	uint32_t   *before = before_.as<uint32_t>();
	uint32_t	n = 0;

	for (uint64_t w = first; w < end; w++)
	{
		before[w] = n;
		n += static_cast<uint32_t>(__builtin_popcountll(words[w]));
	}
	carries_[block + 1] = n;
}

void
BitCounts::carry()
{
	for (size_t b = 1; b < carries_.size(); b++)
		carries_[b] += carries_[b - 1];
}

uint64_t
BitCounts::next_in_block(uint64_t row) const
{
	const uint64_t from = row + 1, block_end = (uint64_t{window_block(row)} + 1) * WINDOW_BLOCK_WORDS;
	const uint64_t end = std::min<uint64_t>(block_end, nrows_ / 64 + 1);
	const uint64_t *words = words_.as<uint64_t>();

	if (window_block(from) != window_block(row))
		return NO_ROW;
	for (uint64_t w = from >> 6, word = words[w] & ~low_bits(from & 63);; word = words[w])
	{
		if (word != 0)
			return w * 64 + static_cast<uint32_t>(__builtin_ctzll(word));
		if (++w >= end)
			return NO_ROW;
	}
}

uint64_t
BitCounts::row_of(uint64_t n) const
{
	const size_t block = static_cast<size_t>(std::upper_bound(carries_.begin(), carries_.end(), n) - carries_.begin()) - 1;
	const uint64_t first = block * WINDOW_BLOCK_WORDS, end = std::min<uint64_t>(first + WINDOW_BLOCK_WORDS, nrows_ / 64 + 1);
	const uint32_t *before = before_.as<uint32_t>();
	const uint32_t left = static_cast<uint32_t>(n - carries_[block]);
	const uint64_t w = static_cast<uint64_t>(std::upper_bound(before + first, before + end, left) - before) - 1;
	uint64_t	word = words_.as<uint64_t>()[w];

	for (uint32_t i = before[w]; i < left; i++)
		word &= word - 1;
	return w * 64 + static_cast<uint32_t>(__builtin_ctzll(word));
}

/* ---- which rows differ from the one before ------------------------------------------- */

namespace {

/* Bytes of 0 or 1 as bits. */
uint64_t
pack_bytes(const uint8_t *bytes)
{
	uint64_t	bits = 0;

	for (int i = 0; i < 8; i++)
	{
		uint64_t	eight;

		memcpy(&eight, bytes + i * 8, sizeof(eight));
		bits |= eight * 0x0102040810204080u >> 56 << (i * 8);
	}
	return bits;
}

/* Notes rows that differ from the one before, in their value or in being null; what is `before` is of the row before the first. */
template <typename T>
void
mark_differences(const T *values, const uint64_t *nulls, uint32_t nrows, T before, bool null_before, uint64_t *words)
{
	for (uint32_t first = 0; first < nrows; first += 64)
	{
		const uint32_t n = std::min(64u, nrows - first);
		uint8_t		bytes[64] = {};

		bytes[0] = window_differ(values[first], first > 0 ? values[first - 1] : before);
		for (uint32_t i = 1; i < n; i++)
			bytes[i] = window_differ(values[first + i], values[first + i - 1]);

		const uint64_t bits = pack_bytes(bytes);

		const uint64_t null = nulls != nullptr ? nulls[first / 64] & low_bits(n) : 0;
		const uint64_t null_of_before = null << 1 | uint64_t{null_before};

		/* what lies under nulls may be anything */
		words[first / 64] |= ((bits & ~null & ~null_of_before) | (null ^ null_of_before)) & low_bits(n);
		null_before = null >> (n - 1) & 1;
	}
}

/* False: the row has none. */
bool
rank_of(const WindowRanks &ranks, const WindowColumn &column, uint64_t row, int64_t *rank)
{
	*rank = 0;
	return !window_null(column, row) && ranks.find(window_value<uint32_t>(column, row), rank);
}

/* From the value of the row before. */
bool
texts_differ(const TextOrder &order, const WindowColumn &column, uint64_t row)
{
	const bool	null = window_null(column, row), null_before = window_null(column, row - 1);

	if (null || null_before)
		return null != null_before;

	const uint64_t text = window_value<uint64_t>(column, row), before = window_value<uint64_t>(column, row - 1);

	return text != before && order.compare(text, before) != 0;
}

}  // namespace

void
WindowRows::mark(const WindowKey &key, uint32_t block, uint64_t *words) const
{
	const WindowColumn &column = columns_[key.column];
	const uint64_t first = window_first(block);
	const uint32_t nrows = window_block_rows(nrows_, block);

	if (key.text != nullptr)
	{
		for (uint32_t i = 0; i < nrows; i++)
			if (first + i > 0 && texts_differ(*key.text, column, first + i))
				bit_set(words, i);
		return;
	}
	if (key.ranks != nullptr)
	{
		const WindowRanks map = window_ranks(*key.ranks);
		std::vector<int64_t> ranks(nrows);
		std::vector<uint64_t> nulls(WINDOW_BLOCK_WORDS);
		int64_t		before = 0;
		const bool	null_before = first > 0 && !rank_of(map, column, first - 1, &before);

		for (uint32_t i = 0; i < nrows; i++)
			if (!rank_of(map, column, first + i, &ranks[i]))
				bit_set(nulls.data(), i);
		mark_differences(ranks.data(), nulls.data(), nrows, before, null_before, words);
		return;
	}
	with_window_type(column.summary.type, [&](auto sample) {
		using T = decltype(sample);
		const bool	null_before = first > 0 && window_null(column, first - 1);
		const T		before = first > 0 ? window_value<T>(column, first - 1) : T{};

		const T    *values = reinterpret_cast<const T *>(column.values[block]);

		mark_differences(values, column.nulls[block], nrows, before, null_before, words);
	});
}

/* ---- partitions and peers ------------------------------------------------------------- */

void
WindowRows::allocate()
{
	const size_t nblocks = window_blocks(nrows_);

	parts_.allocate(nrows_);
	part_before_.assign(nblocks, 0);
	part_after_.assign(nblocks + 1, nrows_);
	if (!any_peers_)
		return;
	peers_.allocate(nrows_);
	peer_before_.assign(nblocks, 0);
	peer_after_.assign(nblocks + 1, nrows_);
}

void
WindowRows::prepare(uint32_t block)
{
	uint64_t   *parts = parts_.words(block);
	const uint32_t nwords = (window_block_rows(nrows_, block) + 63) / 64;

	for (uint32_t k = 0; k < spec_.npartition; k++)
		mark(spec_.keys[k], block, parts);
	if (block == 0)
		bit_set(parts, 0);
	parts_.count(block);
	if (!any_peers_)
		return;

	uint64_t   *peers = peers_.words(block);

	memcpy(peers, parts, nwords * sizeof(uint64_t));
	for (uint32_t k = spec_.npartition; k < spec_.npartition + spec_.norder; k++)
		mark(spec_.keys[k], block, peers);
	peers_.count(block);
}

/* The last row of the block whose bit is set, or NO_ROW. */
static uint64_t
last_in_block(const BitCounts &bits, uint32_t block, uint32_t nrows)
{
	const uint64_t *words = bits.words(block);

	for (uint32_t w = (nrows + 63) / 64; w-- > 0;)
		if (words[w] != 0)
			return window_first(block) + w * 64 + 63 - static_cast<uint32_t>(__builtin_clzll(words[w]));
	return NO_ROW;
}

/* From what blocks say of themselves to what is known of their first rows. */
static void
carry_starts(const BitCounts &bits, uint64_t nrows, std::vector<uint64_t> *before, std::vector<uint64_t> *after)
{
	uint64_t	last = 0;

	for (uint32_t b = 0; b < before->size(); b++)
	{
		const uint64_t first = window_first(b), in_block = last_in_block(bits, b, window_block_rows(nrows, b));

		(*before)[b] = bits.get(first) ? first : last;
		last = in_block != NO_ROW ? in_block : last;
	}
	for (uint32_t b = static_cast<uint32_t>(before->size()); b-- > 0;)
	{
		const uint64_t first = window_first(b), next = bits.get(first) ? first : bits.next_in_block(first);

		(*after)[b] = next != NO_ROW ? next : (*after)[b + 1];
	}
}

void
WindowRows::carry()
{
	parts_.carry();
	carry_starts(parts_, nrows_, &part_before_, &part_after_);
	if (!any_peers_)
		return;
	peers_.carry();
	carry_starts(peers_, nrows_, &peer_before_, &peer_after_);
}

bool
WindowRows::one_partition(uint32_t block) const
{
	return parts_.next_in_block(window_first(block)) == NO_ROW;
}

uint64_t
WindowRows::next(const BitCounts &bits, const std::vector<uint64_t> &after, uint64_t row) const
{
	const uint64_t next = bits.next_in_block(row);

	return next != NO_ROW ? next : after[window_block(row) + 1];
}

uint64_t
WindowRows::next_group(uint64_t row) const
{
	return next(peers_, peer_after_, row);
}

WindowPosition
WindowRows::begin(uint32_t block) const
{
	const uint64_t first = window_first(block);
	WindowPosition at = {};

	at.part_start = part_before_[block];
	at.part_end = next(parts_, part_after_, first);
	if (!any_peers_)
		return at;
	/* what the first row begins is counted when it is met */
	at.peer_start = peer_before_[block];
	at.group = peers_.before(first) - 1;
	at.part_group = peers_.before(at.part_start);
	return at;
}

/* From the bits, without a branch: groups are often of one row. */
void
WindowRows::fill_peers(WindowPosition *at, WindowVector *v) const
{
	const uint64_t *words = peers_.words(0);
	uint64_t	start = at->peer_start, group = at->group, end = next_group(v->first + v->n - 1);

	for (uint32_t i = 0; i < v->n; i++)
	{
		const uint64_t row = v->first + i, starts = words[row >> 6] >> (row & 63) & 1;

		start += (row - start) & (0 - starts);
		group += starts;
		v->peer_start[i] = start;
		v->group[i] = group;
	}
	at->peer_start = start;
	at->group = group;
	for (uint32_t i = v->n; i-- > 0;)
	{
		const uint64_t row = v->first + i;

		v->peer_end[i] = end;
		end += (row - end) & (0 - (words[row >> 6] >> (row & 63) & 1));
	}
}

void
WindowRows::fill(WindowPosition *at, WindowVector *v) const
{
	if (any_peers_)
		fill_peers(at, v);
	for (uint64_t row = v->first, end = row + v->n; row < end;)
	{
		const uint32_t from = static_cast<uint32_t>(row - v->first);

		if (row >= at->part_end)
		{
			at->part_start = row;
			at->part_end = next(parts_, part_after_, row);
			at->part_group = any_peers_ ? v->group[from] : 0;
		}
		row = std::min(at->part_end, end);

		const uint32_t to = static_cast<uint32_t>(row - v->first);

		for (uint32_t i = from; i < to; i++)
		{
			v->part_start[i] = at->part_start;
			v->part_end[i] = at->part_end;
		}
		for (uint32_t i = from; any_peers_ && i < to; i++)
			v->part_group[i] = at->part_group;
	}
}

}  // namespace gpuvm
