/* cpu_sort_collect.cc: rows on their way into a sort, as one thread collects them (cpu_sort.h). */
#include <algorithm>
#include <cstring>

#include "core/bits.h"
#include "vm/cpu_sort.h"
#include "vm/cpu_sort_keys.h"

namespace gpuvm {

constexpr uint32_t FIRST_SLAB_CHUNKS = 2;
constexpr uint64_t SLAB_BYTES = 8 << 20;
constexpr uint32_t MANY_PASSED = 16;	/* one of so many rows */

/* Rows of the same layout copied from `lanes`, ascending, behind those that are there. */
template <typename T>
static void
copy_lanes(const char *from, const uint16_t *lanes, uint32_t n, char *to)
{
	for (uint32_t i = 0; i < n; i++)
		reinterpret_cast<T *>(to)[i] = reinterpret_cast<const T *>(from)[lanes[i]];
}

static void
copy_values(Type type, const char *from, const uint16_t *lanes, uint32_t n, char *to)
{
	switch (type_width(type))
	{
		case 1: copy_lanes<uint8_t>(from, lanes, n, to); break;
		case 4: copy_lanes<uint32_t>(from, lanes, n, to); break;
		case 8: copy_lanes<uint64_t>(from, lanes, n, to); break;
		default: copy_lanes<uint128>(from, lanes, n, to); break;
	}
}

/* Bits [0, n), behind bits [0, at) of `to`; those from `at` on are 0. */
static bool
append_bits(const uint64_t *from, uint32_t n, uint64_t *to, uint32_t at)
{
	uint64_t	any = 0;

	for (uint32_t i = 0; i < n; i += 64)
	{
		const uint64_t bits = from[i / 64] & low_bits(std::min(n - i, 64u));

		any |= bits;
		if (bits == 0)
			continue;
		to[(at + i) / 64] |= bits << (at % 64);
		if (at % 64 != 0 && bits >> (64 - at % 64) != 0)
			to[(at + i) / 64 + 1] |= bits >> (64 - at % 64);
	}
	return any != 0;
}

SortRows::SortRows(CpuSort *sort) : sort_(sort), ranges_(sort->keys_.n), has_nulls_(sort->types_.size())
{
	for (uint32_t k = 0; k < sort->keys_.n; k++)
		ranges_[k] = sort->empty_range(k);
}

/* For the next chunks; false: rows are to go into the file instead. Throws std::bad_alloc. */
bool
SortRows::add_slab()
{
	const bool	first = slabs_.empty(), spills = sort_->spill_ != nullptr && !chunks_.empty();
	const uint32_t n = first ? FIRST_SLAB_CHUNKS : static_cast<uint32_t>(std::max<uint64_t>(1, SLAB_BYTES / sort_->chunk_bytes_));
	const uint64_t bytes = n * sort_->chunk_bytes_;

	if (!first && spills && sort_->short_of(bytes))
		return false;
	try
	{
		slabs_.push_back(first ? Pages::of_heap(bytes) : Pages(bytes, true));
	}
	catch (const std::bad_alloc &)
	{
		if (!spills)
			throw;
		return false;
	}
	slab_left_ = n;
	return true;
}

/* No row is null yet. The first ones are cheap to have (for a sort of few rows, mapping and faults were most of its time), the others to fill. */
char *
SortRows::new_chunk()
{
	char	   *chunk;
	bool		zeroed = false;

	if (free_.empty() && slab_left_ == 0 && !add_slab())
		spill();
	if (free_.empty())
	{
		slab_left_--;
		zeroed = slabs_.size() > 1;
		chunk = slabs_.back().as<char>() + slab_left_ * sort_->chunk_bytes_;
	}
	else
	{
		chunk = free_.back();
		free_.pop_back();
	}
	for (const ResultColumnLayout &column : sort_->layout_)
		if (!zeroed)
			memset(chunk + column.nulls, 0, SORT_CHUNK_ROWS / 8);
	return chunk;
}

char *
SortRows::area()
{
	if (area_ == nullptr)
		area_ = new_chunk();
	return area_;
}

/* The rows in a chunk's place are a chunk. */
void
SortRows::push(char *base, uint32_t n)
{
	chunks_.push_back(Chunk{base, n});
	for (size_t c = 0; c < has_nulls_.size(); c++)
	{
		const uint64_t *nulls = reinterpret_cast<const uint64_t *>(base + sort_->layout_[c].nulls);

		for (uint32_t w = 0; !has_nulls_[c] && w < (n + 63) / 64; w++)
			has_nulls_[c] = nulls[w] != 0;
	}
}

/* Rows that lie elsewhere are copied behind those of the last chunk that has room. */
void
SortRows::append(const char *base, const ResultColumnLayout *layout, uint32_t n)
{
	for (uint32_t done = 0; done < n;)
	{
		if (tail_ < 0)
		{
			char	   *chunk = new_chunk();

			tail_ = static_cast<int>(chunks_.size());
			chunks_.push_back(Chunk{chunk, 0});
		}

		Chunk	   &to = chunks_[static_cast<size_t>(tail_)];
		const uint32_t room = SORT_CHUNK_ROWS - to.nrows;
		/* nulls are taken in whole words */
		const uint32_t take = n - done <= room ? n - done : room / 64 * 64;

		if (take == 0)
		{
			tail_ = -1;
			continue;
		}
		for (size_t c = 0; c < sort_->types_.size(); c++)
		{
			const size_t width = static_cast<size_t>(type_width(sort_->types_[c]));

			memcpy(to.base + sort_->layout_[c].values + to.nrows * width, base + layout[c].values + done * width, take * width);
			if (append_bits(reinterpret_cast<const uint64_t *>(base + layout[c].nulls) + done / 64, take,
							reinterpret_cast<uint64_t *>(to.base + sort_->layout_[c].nulls), to.nrows))
				has_nulls_[c] = 1;
		}
		to.nrows += take;
		done += take;
	}
}

void
SortRows::take(uint32_t n)
{
	if (n == 0)
		return;
	if (sort_->keep_ > 0)
	{
		take_candidates(n);
		return;
	}
	for (uint32_t k = 0; k < sort_->keys_.n; k++)
		sort_->widen(k, area_, sort_->layout_.data(), n, &ranges_[k]);
	/* chunks are to be full or few */
	if (n < SORT_CHUNK_ROWS / 2)
	{
		append(area_, sort_->layout_.data(), n);
		return;
	}
	push(area_, n);
	area_ = nullptr;
}

/* ---- with a limit ----------------------------------------------------------------------- */

/* Keys [from, to) of the area's rows [first, first + n), in their first words. */
void
SortRows::put_first_words(uint32_t from, uint32_t to, uint32_t first, uint32_t n)
{
	for (uint32_t k = from; k < to; k++)
		sort_->put_key(k, area_, sort_->layout_.data(), first, n, words_, 1, scratch_);
}

/* By the first words, or by what the first key is of them. */
uint32_t
SortRows::pass(uint32_t first, uint32_t n, bool whole, uint16_t *lanes)
{
	const uint32_t end = sort_->keys_.keys[0].end;
	const uint64_t bound = sort_->bound_.load(std::memory_order_relaxed) | (whole || end >= 64 ? 0 : low_bits(64 - end));
	uint32_t	npassed = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		lanes[npassed] = static_cast<uint16_t>(first + i);
		npassed += words_[i] <= bound;
	}
	if (!whole || !bounded_ || sort_->keys_.nwords > 1)
		return npassed;

	/* as good as the last of those that are kept is not better */
	uint32_t	better = 0;

	for (uint32_t i = 0; i < npassed; i++)
	{
		lanes[better] = lanes[i];
		better += words_[lanes[i] - first] < bound_[0];
	}
	return better;
}

/* Which of the area's rows [first, first + n) may be among the first. The other keys are looked at where the first one leaves many. */
uint32_t
SortRows::pass(uint32_t first, uint32_t n, uint16_t *lanes)
{
	const uint32_t nkeys = sort_->keys_.n;

	memset(words_, 0, n * sizeof(uint64_t));
	put_first_words(0, 1, first, n);

	const uint32_t npassed = pass(first, n, nkeys == 1, lanes);

	if (nkeys == 1 || npassed <= n / MANY_PASSED)
		return npassed;
	put_first_words(1, nkeys, first, n);
	return pass(first, n, true, lanes);
}

void
SortRows::take_candidates(uint32_t n)
{
	const uint32_t nwords = sort_->keys_.nwords;
	uint16_t	lanes[CPU_VECTOR_ROWS];

	if (store_.base == nullptr)
		for (Store *store : {&store_, &spare_})
			sort_->make_store(store);
	for (uint32_t first = 0; first < n; first += CPU_VECTOR_ROWS)
	{
		const uint32_t count = std::min(n - first, CPU_VECTOR_ROWS);

		uint32_t	npassed = pass(first, count, lanes);

		if (npassed > sort_->room_ - count_)
		{
			keep_best();
			npassed = pass(first, count, lanes);
		}
		if (npassed == 0)
			continue;

		const uint32_t before = count_;

		for (uint32_t i = 0; i < npassed; i++)
		{
			uint64_t   *words = store_.words + size_t(count_) * nwords;

			std::fill_n(words, nwords, 0);
			sort_->put_words(area_, lanes[i], words);
			if (bounded_ && !sort_->less(words, bound_))
				continue;
			lanes[count_++ - before] = lanes[i];
		}
		for (size_t c = 0; c < sort_->types_.size(); c++)
		{
			const size_t width = static_cast<size_t>(type_width(sort_->types_[c]));
			const uint64_t *nulls = reinterpret_cast<const uint64_t *>(area_ + sort_->layout_[c].nulls);
			uint64_t   *to = reinterpret_cast<uint64_t *>(store_.base + sort_->store_layout_[c].nulls);

			copy_values(sort_->types_[c], area_ + sort_->layout_[c].values, lanes, count_ - before,
						store_.base + sort_->store_layout_[c].values + before * width);
			for (uint32_t i = before; i < count_; i++)
				to[i / 64] = (to[i / 64] & ~(uint64_t(1) << (i % 64))) | uint64_t(bit_get(nulls, lanes[i - before])) << (i % 64);
		}
	}
}

/* Leaves the first of the rows, as many as the limit; nothing behind the last of them matters any more. */
void
SortRows::keep_best()
{
	const uint32_t keep = sort_->keep_, nwords = sort_->keys_.nwords;
	std::vector<uint32_t> rows(count_);
	const auto	words = [=](uint32_t row) { return store_.words + size_t(row) * nwords; };

	if (count_ <= keep)
		return;
	for (uint32_t i = 0; i < count_; i++)
		rows[i] = i;
	/* a locale's comparison is not trusted to keep within the rows */
	if (sort_->any_texts_)
		std::stable_sort(rows.begin(), rows.end(), [=](uint32_t a, uint32_t b) { return sort_->less(words(a), words(b)); });
	else
		std::nth_element(rows.begin(), rows.begin() + keep - 1, rows.end(),
						 [=](uint32_t a, uint32_t b) { return sort_words_less(words(a), words(b), nwords); });
	memcpy(bound_, words(rows[keep - 1]), nwords * sizeof(uint64_t));
	bounded_ = true;
	for (uint64_t all = sort_->bound_.load(); bound_[0] < all && !sort_->bound_.compare_exchange_weak(all, bound_[0]);)
		;

	for (uint32_t i = 0; i < keep; i++)
		memcpy(spare_.words + size_t(i) * nwords, words(rows[i]), nwords * sizeof(uint64_t));
	for (size_t c = 0; c < sort_->types_.size(); c++)
	{
		const size_t width = static_cast<size_t>(type_width(sort_->types_[c]));
		const ResultColumnLayout &at = sort_->store_layout_[c];
		const uint64_t *nulls = reinterpret_cast<const uint64_t *>(store_.base + at.nulls);

		memset(spare_.base + at.nulls, 0, (keep + 63) / 64 * sizeof(uint64_t));
		for (uint32_t i = 0; i < keep; i++)
		{
			memcpy(spare_.base + at.values + i * width, store_.base + at.values + rows[i] * width, width);
			if (bit_get(nulls, rows[i]))
				bit_set(reinterpret_cast<uint64_t *>(spare_.base + at.nulls), i);
		}
	}
	std::swap(store_, spare_);
	count_ = keep;
}

/* There will be no more rows. */
void
SortRows::finish()
{
	if (count_ == 0)
		return;
	keep_best();
	for (uint32_t k = 0; k < sort_->keys_.n; k++)
		sort_->widen(k, store_.base, sort_->store_layout_.data(), count_, &ranges_[k]);
	append(store_.base, sort_->store_layout_.data(), count_);
	count_ = 0;
	store_ = Store();
	spare_ = Store();
}

}  // namespace gpuvm
