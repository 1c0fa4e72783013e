/* cpu_window_job.h: the parts of window functions on the CPU; cpu_window.h has the design. */
#ifndef GPUVM_VM_CPU_WINDOW_JOB_H
#define GPUVM_VM_CPU_WINDOW_JOB_H

#include <algorithm>
#include <cstring>

#include "core/bits.h"
#include "vm/cpu_pages.h"
#include "vm/cpu_window.h"
#include "vm/float_sum.h"
#include "vm/window_rules.h"

namespace gpuvm {

constexpr uint32_t WINDOW_BLOCK_WORDS = WINDOW_BLOCK_ROWS / 64;
constexpr uint32_t WINDOW_VECTOR_ROWS = 1024;
constexpr uint64_t NO_ROW = WINDOW_NO_ROW;
constexpr uint64_t WINDOW_HUGE_BYTES = 4 << 20;	/* from so many on in huge pages */

inline uint32_t window_block(uint64_t row) { return static_cast<uint32_t>(row >> WINDOW_BLOCK_BITS); }
inline uint32_t window_offset(uint64_t row) { return static_cast<uint32_t>(row & (WINDOW_BLOCK_ROWS - 1)); }
inline uint64_t window_first(uint32_t block) { return uint64_t{block} << WINDOW_BLOCK_BITS; }

inline uint32_t
window_blocks(uint64_t nrows)
{
	return static_cast<uint32_t>((nrows + WINDOW_BLOCK_ROWS - 1) >> WINDOW_BLOCK_BITS);
}

/* Rows of a block. */
inline uint32_t
window_block_rows(uint64_t nrows, uint32_t block)
{
	return static_cast<uint32_t>(std::min<uint64_t>(nrows - window_first(block), WINDOW_BLOCK_ROWS));
}

template <typename T>
inline T
window_value(const WindowColumn &column, uint64_t row)
{
	return reinterpret_cast<const T *>(column.values[window_block(row)])[window_offset(row)];
}

inline bool
window_null(const WindowColumn &column, uint64_t row)
{
	const uint64_t *nulls = column.nulls[window_block(row)];

	return nulls != nullptr && bit_get(nulls, window_offset(row));
}

inline bool
window_has_nulls(const WindowColumn &column)
{
	return std::any_of(column.nulls.begin(), column.nulls.end(), [](const uint64_t *nulls) { return nulls != nullptr; });
}

/* Bits of a row each, and how many are set before any row. Blocks are filled by themselves, then carried. */
class BitCounts
{
public:
	void		allocate(uint64_t nrows);	/* throws std::bad_alloc */
	static uint64_t bytes(uint64_t nrows) { return (nrows / 64 + 1) * (sizeof(uint64_t) + sizeof(uint32_t)); }

	/* The block's words, all zero at first; bits behind the last row stay so. */
	uint64_t   *words(uint32_t block) { return words_.as<uint64_t>() + uint64_t{block} * WINDOW_BLOCK_WORDS; }
	const uint64_t *words(uint32_t block) const { return words_.as<uint64_t>() + uint64_t{block} * WINDOW_BLOCK_WORDS; }
	void		count(uint32_t block);	/* its words are filled */
	void		carry();		/* all blocks are counted */

	bool get(uint64_t row) const { return bit_get(words_.as<uint64_t>(), row); }
	/* Bits set in rows [0, row), row <= nrows. */
	uint64_t before(uint64_t row) const
	{
		const uint64_t word = words_.as<uint64_t>()[row >> 6] & low_bits(row & 63);

		return carries_[window_block(row)] + before_.as<uint32_t>()[row >> 6] + static_cast<uint32_t>(__builtin_popcountll(word));
	}
	uint64_t block_before(uint32_t block) const { return carries_[block]; }

	/* The first row above `row`, within its block, whose bit is set; NO_ROW: none. */
	uint64_t	next_in_block(uint64_t row) const;
	/* The row of the bit that `n` bits are before; there is one. */
	uint64_t	row_of(uint64_t n) const;

private:
	uint64_t	nrows_ = 0;
	Pages		words_, before_;	/* before_: in the block, per word */
	std::vector<uint64_t> carries_;	/* per block, and one for all */
};

/* ---- partitions and peers ----------------------------------------------------------- */

/* Of a row; `group` numbers the peers' groups of all partitions. */
struct WindowPosition
{
	uint64_t	part_start, part_end;
	uint64_t	peer_start;
	uint64_t	group, part_group;	/* the row's, and its partition's first */
};

/* Consecutive rows of a block: positions, with peers and groups if they are asked for, and frames, head <= tail. */
struct WindowVector
{
	uint64_t	first;
	uint32_t	n;
	uint64_t	part_start[WINDOW_VECTOR_ROWS], part_end[WINDOW_VECTOR_ROWS];
	uint64_t	peer_start[WINDOW_VECTOR_ROWS], peer_end[WINDOW_VECTOR_ROWS];
	uint64_t	group[WINDOW_VECTOR_ROWS], part_group[WINDOW_VECTOR_ROWS];
	uint64_t	head[WINDOW_VECTOR_ROWS], tail[WINDOW_VECTOR_ROWS];
};

class WindowRows
{
public:
	/* `peers`: does anything ask for them? */
	WindowRows(const WindowSpec &spec, const WindowColumn *columns, uint64_t nrows, bool peers)
		: spec_(spec), columns_(columns), nrows_(nrows), any_peers_(peers) {}

	void		allocate();
	static uint64_t bytes(uint64_t nrows) { return 2 * BitCounts::bytes(nrows); }
	void		prepare(uint32_t block);
	void		carry();

	uint64_t nrows() const { return nrows_; }
	/* Is the block wholly of one partition? Once it is prepared. */
	bool		one_partition(uint32_t block) const;
	uint64_t group_row(uint64_t group) const { return peers_.row_of(group); }
	uint64_t next_group(uint64_t row) const;

	/* Positions of a block's rows, vector by vector: where the first begins, and each with the last one's end. */
	WindowPosition begin(uint32_t block) const;
	void		fill(WindowPosition *at, WindowVector *vector) const;

private:
	uint64_t	next(const BitCounts &bits, const std::vector<uint64_t> &after, uint64_t row) const;
	void		mark(const WindowKey &key, uint32_t block, uint64_t *words) const;
	void		fill_peers(WindowPosition *at, WindowVector *vector) const;

	WindowSpec	spec_;
	const WindowColumn *columns_;
	uint64_t	nrows_;
	bool		any_peers_;
	BitCounts	parts_, peers_;		/* rows that begin one */
	/* per block: the last start up to its first row; and, with one for the end, the first start not before it */
	std::vector<uint64_t> part_before_, peer_before_, part_after_, peer_after_;
};

/* ---- frames ------------------------------------------------------------------------- */

/* One end of the frames of a block's rows, which must come in their order. */
class WindowBound
{
public:
	WindowBound(const WindowSpec &spec, const WindowColumn *columns, const WindowRows *rows, bool is_end);

	/* ErrorBits. */
	uint32_t	fill(const WindowVector &vector, uint64_t *to);

private:
	void		fill_groups(const WindowVector &vector, uint64_t *to);
	template <typename T> uint32_t fill_range(const WindowVector &vector, uint64_t *to);
	template <typename T> bool stops(uint64_t row, bool current_null, int128 limit) const;

	const WindowRows *rows_;
	FrameMode	mode_;
	FrameBound	bound_;
	bool		is_end_;
	int64_t		offset_;
	const WindowColumn *column_ = nullptr;	/* RANGE with an offset: what it is over */
	WindowRange range_ = {};
	bool		any_nulls_ = false;

	uint64_t	partition_ = NO_ROW;	/* where the walk is: the partition's first row, */
	uint64_t	place_ = 0;				/* the bound of the last row, */
	uint64_t	place_group_ = 0;		/* and its group */
};

/* ---- arguments of aggregates -------------------------------------------------------- */

/* Whose rows count: the column is not null, and the filter true; nullptr: there is none. */
struct WindowArgument
{
	const WindowColumn *column;
	const WindowColumn *high;
	const WindowColumn *filter;
	const CodeMap *ranks;

	bool operator==(const WindowArgument &o) const
	{
		return column == o.column && high == o.high && filter == o.filter && ranks == o.ranks;
	}
	bool counts_all() const { return filter == nullptr && (column == nullptr || !window_has_nulls(*column)); }
	/* A bit for each row of the block that counts. */
	void		counted(uint32_t block, uint32_t nrows, uint64_t *words) const;
};

/* What an argument is made into by the first phase. */
class WindowInput
{
public:
	WindowInput(const WindowArgument &argument, uint64_t nrows) : argument_(argument), nrows_(nrows) {}
	virtual ~WindowInput() = default;
	virtual uint64_t bytes() const = 0;
	virtual void allocate() = 0;
	virtual void prepare(uint32_t block) = 0;
	virtual void carry() = 0;
	/* ErrorBits that concern all rows, after carry(). */
	virtual uint32_t errors() const { return 0; }

	const WindowArgument &argument() const { return argument_; }
	/* Of the same class and argument: are both the same? */
	bool is_like(const WindowInput &) const { return true; }

protected:
	uint32_t block_rows(uint32_t block) const { return window_block_rows(nrows_, block); }

	WindowArgument argument_;
	uint64_t	nrows_;
};

class WindowCounts final : public WindowInput
{
public:
	using WindowInput::WindowInput;
	uint64_t bytes() const override { return argument_.counts_all() ? 0 : BitCounts::bytes(nrows_); }
	void		allocate() override;
	void		prepare(uint32_t block) override;
	void		carry() override;

	uint64_t of(uint64_t head, uint64_t tail) const { return all_ ? tail - head : bits_.before(tail) - bits_.before(head); }

private:
	bool		all_ = false;
	BitCounts	bits_;
};

/* Of rows that count, how many are true. */
class WindowTrues final : public WindowInput
{
public:
	using WindowInput::WindowInput;
	uint64_t bytes() const override { return BitCounts::bytes(nrows_); }
	void allocate() override { bits_.allocate(nrows_); }
	void		prepare(uint32_t block) override;
	void carry() override { bits_.carry(); }

	uint64_t of(uint64_t head, uint64_t tail) const { return bits_.before(tail) - bits_.before(head); }

private:
	BitCounts	bits_;
};

/*
 * Sums of integers before each row, in the block, and of blocks. Sums of 128 bits wrap; their differences are right
 * where they fit.
 */
class WindowSums final : public WindowInput
{
public:
	WindowSums(const WindowArgument &argument, uint64_t nrows);
	uint64_t bytes() const override { return (nrows_ + 1) * (narrow_ ? sizeof(int64_t) : sizeof(int128)); }
	void		allocate() override;
	void		prepare(uint32_t block) override;
	void		carry() override;
	uint32_t	errors() const override { return errors_.load(); }

	int128 before(uint64_t row) const
	{
		const uint128 block = carries_[window_block(row)];

		return static_cast<int128>(block + static_cast<uint128>(narrow_ ? sums_.as<int64_t>()[row] : sums_.as<int128>()[row]));
	}

private:
	template <typename Sum, typename Value> void add_up(uint32_t block, Value value);

	bool		narrow_;		/* a block's sums have 64 bits */
	Pages		sums_;			/* Sums[nrows + 1] */
	std::vector<uint128> carries_;	/* per block, and one for all */
	std::atomic<uint32_t> errors_{0};
};

/*
 * The least of any range: level k has the least of each 16^k rows, so a block is four levels. A key is the value, and
 * for Max its complement; of what does not count, the greatest.
 */
template <typename Key>
class WindowExtremes final : public WindowInput
{
public:
	WindowExtremes(const WindowArgument &argument, uint64_t nrows, bool max) : WindowInput(argument, nrows), max_(max) {}
	uint64_t	bytes() const override;
	void		allocate() override;
	void		prepare(uint32_t block) override;
	void		carry() override;

	bool max() const { return max_; }
	bool is_like(const WindowExtremes &o) const { return max_ == o.max_; }
	/* The value, or for Max its complement; there is one. */
	Key			of(uint64_t head, uint64_t tail) const;
	/* Floats: the zeroes that there are. */
	bool has_zero(bool negative) const { return zeroes_[negative].load(); }

private:
	static constexpr Key NONE = window_no_key<Key>();

	void		make_keys(uint32_t block, Key *to);
	Key		   *level(size_t k) const { return keys_.template as<Key>() + levels_[k]; }

	bool		max_;
	Pages		keys_;
	std::vector<uint64_t> levels_, sizes_;	/* where each begins, its elements */
	std::atomic<bool> zeroes_[2] = {};
};

/* ---- sums of floats ------------------------------------------------------------------ */

/* The exact sum of some rows, which come and go. */
class FloatRange
{
public:
	explicit FloatRange(FloatSumWindow window) : window_(window) { clear(); }
	void		clear();
	/* False when the value lies outside of the window. */
	bool		add(double value, int sign);
	void		add(const FloatRange &other);
	int64_t n() const { return info_.n; }
	double		sum() const;
	bool may_overflow(Type type) const { return float_sum_may_overflow(info_, type); }

private:
	FloatSumWindow window_;
	FloatSumInfo info_;			/* max_exp: of all that came since clear() */
	int64_t		nan_, infinite_[2], not_negative_zero_;
	int64_t		limbs_[FLOAT_SUM_LIMBS];
};

/* Blocks that are of one partition have their sums, for frames that hold them. */
class WindowFloats final : public WindowInput
{
public:
	WindowFloats(const WindowArgument &argument, uint64_t nrows, const WindowRows *rows);
	uint64_t	bytes() const override;
	void		allocate() override;
	void		prepare(uint32_t block) override;
	void carry() override {}
	uint32_t	errors() const override { return errors_.load(); }

	FloatSumWindow window() const { return window_; }
	Type type() const { return argument_.column->summary.type; }
	/* Adds rows [first, end), or takes them away. */
	void		add(uint64_t first, uint64_t end, int sign, FloatRange *to) const;

private:
	bool		add_rows(uint64_t first, uint64_t end, int sign, FloatRange *to) const;

	const WindowRows *rows_;
	FloatSumWindow window_;
	std::vector<std::unique_ptr<FloatRange>> blocks_;
	mutable std::atomic<uint32_t> errors_{0};
};

/* ---- the job ------------------------------------------------------------------------- */

/* A function with what its argument was made into; nullptr: it needs none. */
struct WindowCall
{
	WindowFunction function;
	int			result;			/* its first column of the results */
	const WindowColumn *column;
	WindowCounts *counts = nullptr;
	WindowTrues *trues = nullptr;
	WindowSums *sums = nullptr;
	WindowFloats *floats = nullptr;
	WindowExtremes<int64_t> *extremes = nullptr;
	WindowExtremes<int128> *wide_extremes = nullptr;
};

/* A block's rows of one function; what it goes on with from vector to vector is in the object. */
class WindowEmitter
{
public:
	virtual ~WindowEmitter() = default;
	/* The vector's rows, which are rows from `at` on of the targets. ErrorBits. */
	virtual uint32_t emit(const WindowVector &vector, uint32_t at) = 0;
};

/* `targets`: of the function's columns. */
std::unique_ptr<WindowEmitter> make_window_emitter(const WindowCall &call, const WindowTarget *targets);

}  // namespace gpuvm

#endif
