/*
 * cpu_sort_runs.cc: rows that find no memory go into the job's file (spill.h) as sorted runs, which are merged when all are
 * collected (cpu_sort.h). A row of a run has its keys' words for all that their types may hold, a bit a column for nulls,
 * then its values.
 */
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/bits.h"
#include "vm/cpu_sort.h"
#include "vm/spill.h"

namespace gpuvm {

constexpr uint64_t RUN_BYTES = uint64_t(4) << 20;	/* of words and numbers while a run is sorted */
constexpr uint64_t MOST_RUN_CHUNKS = 8;	/* sorted within milliseconds, as nobody can stop it */
constexpr size_t WRITE_BYTES = size_t(256) << 10;
constexpr size_t MOST_BLOCK = size_t(256) << 10;	/* of a run, read at a time */
constexpr size_t LEAST_BLOCK = size_t(16) << 10;
constexpr size_t MOST_MERGED = 512;
constexpr uint32_t ASK_ROWS = 4096;

void
CpuSort::set_spill(Spill *spill)
{
	if (keep_ > 0)
		return;
	spill_ = spill;
	run_keys_ = keys_;
	run_nulls_ = keys_.nwords * sizeof(uint64_t);

	uint64_t	at = run_nulls_ + (types_.size() + 63) / 64 * sizeof(uint64_t);

	for (Type type : types_)
	{
		run_values_.push_back(at);
		at += static_cast<uint64_t>(type_width(type));
	}
	run_row_bytes_ = align_up(at, sizeof(uint64_t));
	run_chunk_bytes_ = SORT_CHUNK_ROWS * (keys_.nwords * sizeof(uint64_t) + sizeof(Pair));
	run_chunks_ = std::clamp<uint64_t>(RUN_BYTES / run_chunk_bytes_, 1, MOST_RUN_CHUNKS);
}

/* Is so much more not to be had, with what sorting a run takes, so that all threads find as much? */
bool
CpuSort::short_of(uint64_t bytes)
{
	return spill_->wanted(bytes + run_chunks_ * run_chunk_bytes_);
}

/* -- runs are written ------------------------------------------------------------------------ */

class CpuSort::RunWriter
{
public:
	RunWriter(Spill *to, uint64_t row_bytes, uint64_t rows)
		: to_(to), row_bytes_(row_bytes), run_{to->take(rows * row_bytes), rows}, at_(run_.at),
		most_(static_cast<uint32_t>(std::max<uint64_t>(WRITE_BYTES / row_bytes, 1))), buffer_(Pages::of_heap(most_ * row_bytes)) {}

	/* Where the next row is to be written. */
	char	   *next()
	{
		if (n_ == most_)
			flush();
		return buffer_.as<char>() + n_++ * row_bytes_;
	}

	SortRun		end()
	{
		flush();
		return run_;
	}

private:
	void		flush()
	{
		iovec		piece = {buffer_.as<char>(), n_ * row_bytes_};

		if (n_ > 0)
			to_->write(at_, &piece, 1);
		at_ += n_ * row_bytes_;
		n_ = 0;
	}

	Spill	   *to_;
	const uint64_t row_bytes_;
	SortRun		run_;
	uint64_t	at_;
	const uint32_t most_;
	uint32_t	n_ = 0;
	Pages		buffer_;
};

/* These chunks become one, sorted in `memory`. */
void
CpuSort::write_run(const SortRows::Chunk *chunks, size_t nchunks, const Pages &memory, std::vector<SortRun> *runs)
{
	const uint32_t nwords = keys_.nwords;
	Pair	   *const order = memory.as<Pair>();
	uint64_t   *const words = reinterpret_cast<uint64_t *>(order + nchunks * SORT_CHUNK_ROWS);
	uint64_t	scratch[CPU_VECTOR_ROWS];
	uint64_t	n = 0;

	for (size_t i = 0; i < nchunks; i++)
	{
		uint64_t   *of = words + (i << SORT_CHUNK_BITS) * nwords;

		std::fill_n(of, chunks[i].nrows * nwords, 0);
		for (uint32_t first = 0; first < chunks[i].nrows; first += CPU_VECTOR_ROWS)
			for (uint32_t k = 0; k < keys_.n; k++)
				put_key(k, chunks[i].base, layout_.data(), first, std::min(chunks[i].nrows - first, CPU_VECTOR_ROWS), of + first * nwords, nwords, scratch);
		for (uint32_t row = 0; row < chunks[i].nrows; row++)
			order[n++] = Pair{of[row * nwords], (i << SORT_CHUNK_BITS) + row};
	}
	const auto	before = [=, this](const Pair &a, const Pair &b)
	{
		return a.word != b.word ? a.word < b.word : nwords > 1 && less(words + a.row * nwords + 1, words + b.row * nwords + 1, 1);
	};
	/* a locale's comparison is not trusted to keep within the rows */
	if (any_texts_)
		std::stable_sort(order, order + n, before);
	else
		std::sort(order, order + n, before);

	RunWriter	writer(spill_, run_row_bytes_, n);

	for (uint64_t i = 0; i < n; i++)
	{
		const uint64_t row = order[i].row & (SORT_CHUNK_ROWS - 1);
		const char *base = chunks[order[i].row >> SORT_CHUNK_BITS].base;
		char	   *to = writer.next();

		if (i % ASK_ROWS == 0 && stopped())
			return;
		memset(to + run_nulls_, 0, run_row_bytes_ - run_nulls_);
		memcpy(to, words + order[i].row * nwords, nwords * sizeof(uint64_t));
		for (size_t c = 0; c < types_.size(); c++)
		{
			const size_t width = static_cast<size_t>(type_width(types_[c]));

			memcpy(to + run_values_[c], base + layout_[c].values + row * width, width);
			if (bit_get(reinterpret_cast<const uint64_t *>(base + layout_[c].nulls), row))
				bit_set(reinterpret_cast<uint64_t *>(to + run_nulls_), c);
		}
	}
	runs->push_back(writer.end());
}

/* In runs as long as there is memory to sort them in. What a chunk takes is little. */
void
CpuSort::spill_chunks(const std::vector<SortRows::Chunk> &chunks, std::vector<SortRun> *runs)
{
	uint64_t	most = run_chunks_;
	Pages		memory;

	if (chunks.size() > 1 && most > 1)
		try
		{
			memory = Pages(most * run_chunk_bytes_, false);
		}
		catch (const std::bad_alloc &)
		{
		}
	if (memory.bytes() == 0)
	{
		most = 1;
		memory = Pages::of_heap(run_chunk_bytes_);
	}
	for (size_t first = 0; first < chunks.size() && !stopped(); first += most)
		write_run(chunks.data() + first, std::min<size_t>(most, chunks.size() - first), memory, runs);
}

/* All rows go into the file; their memory is for others to come. */
void
SortRows::spill()
{
	sort_->spill_chunks(chunks_, &runs_);
	for (const Chunk &chunk : chunks_)
		free_.push_back(chunk.base);
	chunks_.clear();
	tail_ = -1;
}

/* -- and merged ------------------------------------------------------------------------------ */

/* A run's rows, one after the other. */
class CpuSort::RunReader
{
public:
	RunReader(Spill *from, const SortRun &run, uint64_t row_bytes, char *block, uint32_t most)
		: from_(from), row_bytes_(row_bytes), run_(run), block_(block), most_(most) { fill(); }

	const char *row() const { return left_ > 0 ? at_ : nullptr; }
	/* Is the block at its end, so that the rows before are overwritten? */
	bool		last() const { return left_ == 1; }
	void		next()
	{
		at_ += row_bytes_;
		if (--left_ == 0)
			fill();
	}

private:
	void		fill()
	{
		left_ = static_cast<uint32_t>(std::min<uint64_t>(most_, run_.rows));
		if (left_ > 0)
			from_->read(run_.at, block_, left_ * row_bytes_);
		run_.at += left_ * row_bytes_;
		run_.rows -= left_;
		at_ = block_;
	}

	Spill	   *from_;
	uint64_t	row_bytes_;
	SortRun		run_;			/* what has not been read */
	char	   *block_;
	uint32_t	most_;			/* rows of a block */
	const char *at_ = nullptr;
	uint32_t	left_ = 0;		/* in the block */
};

/* A tree of losers: each inner node has the run that lost there, the root the least of all. */
class CpuSort::RunMerge
{
public:
	RunMerge(const CpuSort *sort, const SortRun *runs, size_t n) : sort_(sort), losers_(n)
	{
		const uint64_t row_bytes = sort->run_row_bytes_;
		uint64_t	block = MOST_BLOCK;

		while (memory_.bytes() == 0)
		{
			block = std::max(block, row_bytes);
			try
			{
				if (block > LEAST_BLOCK && block > row_bytes && sort->spill_->wanted(n * block))
					block /= 2;
				else
					memory_ = Pages(n * block, false);
			}
			catch (const std::bad_alloc &)
			{
				if (block <= std::max<uint64_t>(LEAST_BLOCK / 4, row_bytes))
					throw;
				block /= 2;
			}
		}
		for (size_t i = 0; i < n; i++)
			readers_.emplace_back(sort->spill_, runs[i], row_bytes, memory_.as<char>() + i * block, static_cast<uint32_t>(block / row_bytes));
		winner_ = n > 1 ? play(1) : 0;
	}

	/* The least row, as long as there is one. */
	const char *row() const { return readers_[winner_].row(); }
	bool		last() const { return readers_[winner_].last(); }
	void		next()
	{
		readers_[winner_].next();
		for (size_t node = (readers_.size() + winner_) / 2; node > 0; node /= 2)
			if (before(losers_[node], winner_))
				std::swap(losers_[node], winner_);
	}

private:
	bool		before(size_t a, size_t b) const
	{
		const char *const x = readers_[a].row(), *const y = readers_[b].row();

		return x != nullptr && (y == nullptr || sort_->less(reinterpret_cast<const uint64_t *>(x), reinterpret_cast<const uint64_t *>(y)));
	}

	size_t		play(size_t node)
	{
		if (node >= readers_.size())
			return node - readers_.size();

		const size_t a = play(2 * node), b = play(2 * node + 1);
		const bool	second = before(b, a);

		losers_[node] = second ? a : b;
		return second ? b : a;
	}

	const CpuSort *sort_;
	Pages		memory_;
	std::vector<RunReader> readers_;
	std::vector<size_t> losers_;
	size_t		winner_ = 0;
};

/* How many runs are merged at a time, each thread having as much. */
size_t
CpuSort::most_merged() const
{
	size_t		most = MOST_MERGED;

	while (most > 2 && spill_->wanted(most * std::max<uint64_t>(LEAST_BLOCK, run_row_bytes_)))
		most /= 2;
	return most;
}

/* All rows go into the file, each thread's by a task. */
uint32_t
CpuSort::begin_spill()
{
	keys_ = run_keys_;
	find_text_words();
	for (Pages *pages : {&elements_, &order_, &ties_, &parts_of_})
		*pages = Pages();
	chunks_.clear();
	first_.clear();
	phase_ = Phase::Spill;
	return static_cast<uint32_t>(rows_.size());
}

void
CpuSort::spill_rest(uint32_t task)
{
	SortRows   &rows = *rows_[task];

	rows.spill();
	rows.free_.clear();
	rows.area_ = nullptr;
	rows.slab_left_ = 0;
	rows.slabs_.clear();
}

/* The next level, until one merge is left. */
uint32_t
CpuSort::begin_merge()
{
	if (phase_ == Phase::Spill)
		for (std::unique_ptr<SortRows> &rows : rows_)
			runs_.insert(runs_.end(), rows->runs_.begin(), rows->runs_.end());
	else
		runs_.assign(merged_runs_.begin(), merged_runs_.end());
	rows_.clear();
	phase_ = Phase::Done;
	if (stopped() || runs_.empty())
		return 0;

	const size_t most = most_merged();

	if (runs_.size() <= most)
	{
		merge_ = std::make_shared<RunMerge>(this, runs_.data(), runs_.size());
		return 0;
	}

	const size_t n = (runs_.size() + most - 1) / most;

	merged_runs_.assign(n, SortRun{0, 0});
	phase_ = Phase::Merge;
	return static_cast<uint32_t>(n);
}

void
CpuSort::merge_runs(uint32_t task)
{
	const size_t n = merged_runs_.size(), first = runs_.size() * task / n, end = runs_.size() * (task + 1) / n;
	uint64_t	rows = 0;

	for (size_t i = first; i < end; i++)
		rows += runs_[i].rows;

	RunMerge	merge(this, runs_.data() + first, end - first);
	RunWriter	writer(spill_, run_row_bytes_, rows);

	for (uint64_t i = 0; i < rows; i++, merge.next())
	{
		if (i % ASK_ROWS == 0 && stopped())
			return;
		memcpy(writer.next(), merge.row(), run_row_bytes_);
	}
	merged_runs_[task] = writer.end();
}

template <typename T>
static void
copy_column(const char *const *rows, uint64_t offset, uint32_t n, char *to)
{
	for (uint32_t i = 0; i < n; i++)
		memcpy(to + i * sizeof(T), rows[i] + offset, sizeof(T));
}

void
CpuSort::emit_rows(const char *const *rows, uint32_t n, char *area, const ResultColumnLayout *layout, uint32_t at) const
{
	for (size_t c = 0; c < types_.size(); c++)
	{
		const size_t width = static_cast<size_t>(type_width(types_[c]));
		char	   *to = area + layout[c].values + at * width;
		uint64_t   *nulls = reinterpret_cast<uint64_t *>(area + layout[c].nulls);

		switch (width)
		{
			case 1: copy_column<uint8_t>(rows, run_values_[c], n, to); break;
			case 4: copy_column<uint32_t>(rows, run_values_[c], n, to); break;
			case 8: copy_column<uint64_t>(rows, run_values_[c], n, to); break;
			default: copy_column<uint128>(rows, run_values_[c], n, to); break;
		}
		for (uint32_t i = 0; has_nulls_[c] && i < n; i++)
			if (bit_get(reinterpret_cast<const uint64_t *>(rows[i] + run_nulls_), c))
				bit_set(nulls, at + i);
	}
}

void
CpuSort::take_merged(uint32_t n, char *area, uint32_t capacity)
{
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const char *rows[CPU_VECTOR_ROWS];
	uint32_t	count = 0;

	result_layout(types_.data(), static_cast<int>(types_.size()), capacity, layout);
	for (size_t c = 0; c < types_.size(); c++)
		memset(area + layout[c].nulls, 0, capacity / 8);
	for (uint32_t i = 0; i < n; i++)
	{
		const bool	last = merge_->last();

		rows[count++] = merge_->row();
		if (last || count == CPU_VECTOR_ROWS || i + 1 == n)
		{
			emit_rows(rows, count, area, layout, i + 1 - count);
			count = 0;
		}
		merge_->next();
	}
}

}  // namespace gpuvm
