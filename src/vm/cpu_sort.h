/*
 * cpu_sort.h: results sorted on the CPU (Order in engine/abi.h). As in cpu_vm.h, no
 * threads and no I/O: the scheduler brings both.
 *
 * Threads collect rows, each into chunks of its own. With a limit of few rows each keeps
 * only what can still be among the first: it drops what is behind the limit'th of those it has seen, or another
 * thread has. When all is collected, the rows are sorted by words that hold their keys (sort_key.h), packed
 * for what the columns turned out to hold: in phases of tasks, which any thread may
 * run in any order, nobody being inside between two. Then rows leave, gathered by their places in the order.
 *
 * Where memory is short and there is a file (spill.h), what a thread has collected goes there in sorted runs, and in the end all
 * does. Runs are merged, in several levels if there are many, and leave as they are merged. Which of equal rows comes first is nobody's
 * promise.
 *
 * Elements of the sort are a row's first word and its number, in one word where both fit. They are
 * dealt to parts by a sample's splitters, so that no part is long but for equal words; a part is sorted
 * by its bytes, least first, and what is equal in the first word by the others.
 * Measured for 8 M random int4, one thread: 25 ms in parts of 32k, where Boost's pdqsort takes 217, its spreadsort 316.
 */
#ifndef GPUVM_VM_CPU_SORT_H
#define GPUVM_VM_CPU_SORT_H

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "vm/cpu_job.h"
#include "vm/sort_key.h"
#include "vm/text_order.h"

namespace gpuvm {

constexpr int SORT_CHUNK_BITS = 15;
constexpr uint32_t SORT_CHUNK_ROWS = 1u << SORT_CHUNK_BITS;
constexpr uint32_t SORT_SAMPLES = 32;	/* a part */

struct SortColumn
{
	uint32_t	column;			/* of the results */
	bool		desc;
	bool		nulls_first;
	const CodeMap *ranks;		/* of codes; nullptr: values are compared as they are */
	const TextOrder *text = nullptr;	/* of references to values of variable length */
};

class CpuSort;
class Spill;
struct JoinStop;

/* Sorted rows in the job's file. */
struct SortRun
{
	uint64_t	at;
	uint64_t	rows;
};

/* What one thread has collected. */
class SortRows
{
public:
	explicit SortRows(CpuSort *sort);

	/* Where the next rows are to be written, laid out by result_layout for SORT_CHUNK_ROWS rows. Throws std::bad_alloc. */
	char	   *area();
	/* There are so many. Throws std::bad_alloc. */
	void		take(uint32_t n);

private:
	friend class CpuSort;

	struct Chunk
	{
		char	   *base;
		uint32_t	nrows;
	};

	/* Rows that may be among the first. */
	struct Store
	{
		Pages		memory;
		char	   *base = nullptr;
		uint64_t   *words = nullptr;	/* nwords a row */
	};

	char	   *new_chunk();
	bool		add_slab();
	void		spill();
	void		push(char *base, uint32_t n);
	void		append(const char *base, const ResultColumnLayout *layout, uint32_t n);
	void		take_candidates(uint32_t n);
	void		put_first_words(uint32_t from, uint32_t to, uint32_t first, uint32_t n);
	uint32_t	pass(uint32_t first, uint32_t n, bool whole, uint16_t *lanes);
	uint32_t	pass(uint32_t first, uint32_t n, uint16_t *lanes);
	void		keep_best();
	void		finish();

	CpuSort	   *sort_;
	std::vector<Pages> slabs_;
	uint32_t	slab_left_ = 0;	/* chunks */
	char	   *area_ = nullptr;
	int			tail_ = -1;		/* the chunk that has room */
	std::vector<Chunk> chunks_;
	std::vector<char *> free_;	/* of slabs: chunks whose rows have gone into the file, as */
	std::vector<SortRun> runs_;
	std::vector<SortRange> ranges_;	/* of the keys in chunks */
	std::vector<uint8_t> has_nulls_;	/* per column, in chunks */

	/* with a limit */
	Store		store_, spare_;
	uint32_t	count_ = 0;
	bool		bounded_ = false;	/* there were more than the limit: nothing behind bound_ matters */
	uint64_t	bound_[SORT_MAX_WORDS];
	uint64_t	words_[CPU_VECTOR_ROWS];
	uint64_t	scratch_[CPU_VECTOR_ROWS];
};

class CpuSort
{
public:
	/* `limit`: so many rows matter, 0 all. The keys' maps and text orders outlive the sort. */
	CpuSort(const Type *types, int ncols, const SortColumn *keys, uint32_t nkeys, uint64_t limit);

	/* With a limit of few rows: what a thread takes for them; and to keep all rows instead, before there is one. */
	uint64_t	kept_bytes() const { return keep_ > 0 ? 2 * uint64_t(room_) * store_row_bytes_ : 0; }
	void		keep_all() { keep_ = 0; }

	/* Rows that find no memory go there; not with a limit of few rows. It outlives the sort. */
	void		set_spill(Spill *spill);

	/* Asked by any threads before texts are compared, of which one may take a millisecond. Once it stops, the order is none. */
	void		set_stop(JoinStop *stop) { stop_ = stop; }

	/* By any thread, when it has no more. Throws std::bad_alloc. */
	void		add(std::unique_ptr<SortRows> rows);

	/* Begins the next phase: how many tasks it has; 0 when all is sorted. Throws std::bad_alloc. */
	uint32_t	begin_phase();
	void		run_task(uint32_t task);

	/* Why the rows cannot be sorted here, or nullptr. To be asked after take() and begin_phase(). */
	const char *refusal() const { return refused_.load(); }

	/* After the last phase: rows that are to leave; n of them from `first` on into an area of so many rows. */
	uint64_t	nrows() const { return nout_; }
	void		gather(uint64_t first, uint32_t n, char *area, uint32_t capacity) const;

	/* Or, if it is in runs: by one thread, the next n rows. */
	bool		merges() const { return merge_ != nullptr; }
	void		take_merged(uint32_t n, char *area, uint32_t capacity);

private:
	friend class SortRows;

	/* The first word and the row's number below it. */
	struct Packed
	{
		uint64_t	word;
	};
	struct Pair
	{
		uint64_t	word;
		uint64_t	row;
	};
	enum class Phase { Begin, Keys, Classify, Scatter, Sort, Spill, Merge, Done };

	/* Elements dealt together, by one thread. */
	struct Slice
	{
		uint64_t	first, end;
		std::vector<uint64_t> places;	/* per part: how many, then where the next goes */
	};

	/* for SortRows: */
	SortRange	empty_range(uint32_t key) const;
	void		widen(uint32_t key, const char *base, const ResultColumnLayout *layout, uint32_t n, SortRange *range) const;
	void		put_words(const char *base, uint32_t row, uint64_t *words);
	void		put_key(uint32_t key, const char *base, const ResultColumnLayout *layout, uint32_t first, uint32_t n, uint64_t *words,
						uint32_t nwords, uint64_t *scratch);
	void		make_store(SortRows::Store *store);

	bool		begin_keys();
	void		begin_classify();
	void		begin_scatter();
	uint64_t	element_bytes() const { return packed_ ? sizeof(Packed) : sizeof(Pair); }
	void		make_keys(uint64_t number);
	template <typename Element> void choose_splitters();
	template <typename Element> void classify(Slice &slice);
	template <typename Element> void scatter(Slice &slice);
	template <typename Element> void sort_part(uint32_t part);
	template <typename Element> void sort_ties(Element *from, Element *to);
	/* cpu_sort_texts.cc */
	void		put_texts(uint32_t k, const char *values, const uint64_t *nulls, uint32_t first, uint32_t n, uint64_t *words, uint32_t nwords);
	bool		less(const uint64_t *a, const uint64_t *b, uint32_t first = 0) const;
	bool		stopped() const;
	bool		row_less(const Pair &a, const Pair &b) const;
	void		find_text_words();
	void		choose_rows();
	void		classify_rows(Slice &slice);
	struct NearRow;
	bool		near_less(const NearRow &a, const NearRow &b, const Pair *rows, uint32_t k) const;
	static uint32_t common_bytes(const NearRow *rows, size_t n);
	void		bring_near(const Pair *rows, size_t n, uint32_t k, NearRow *near, unsigned char *copies) const;
	void		sort_rows(uint32_t part);

	/* cpu_sort_runs.cc */
	class RunWriter;
	class RunReader;
	class RunMerge;
	bool		short_of(uint64_t bytes);
	void		write_run(const SortRows::Chunk *chunks, size_t nchunks, const Pages &memory, std::vector<SortRun> *runs);
	void		spill_chunks(const std::vector<SortRows::Chunk> &chunks, std::vector<SortRun> *runs);
	size_t		most_merged() const;
	uint32_t	begin_spill();
	void		spill_rest(uint32_t task);
	uint32_t	begin_merge();
	void		merge_runs(uint32_t task);
	void		emit_rows(const char *const *rows, uint32_t n, char *area, const ResultColumnLayout *layout, uint32_t at) const;

	void		find_readable_keys();
	void		gather_column(size_t column, const uint64_t *words, const uint64_t *rows, uint32_t n, char *to, uint64_t *nulls, uint32_t at) const;

	std::vector<Type> types_;
	std::vector<ResultColumnLayout> layout_;	/* of a chunk */
	uint64_t	chunk_bytes_;
	uint64_t	limit_;
	std::atomic<const char *> refused_{nullptr};

	/* with a limit that few rows are kept for: */
	uint32_t	keep_ = 0;		/* the limit; 0: all rows are kept */
	uint32_t	room_ = 0;		/* rows of a store */
	std::vector<ResultColumnLayout> store_layout_;
	uint64_t	store_rows_bytes_ = 0;
	uint64_t	store_row_bytes_ = 0;	/* of one row, with its words */
	std::atomic<uint64_t> bound_{UINT64_MAX};	/* no thread needs what has a greater first word */

	SortKeys	keys_ = {};		/* for all that the types may hold, then for what is there */
	std::vector<SortRange> rank_ranges_;	/* per key that has them */
	std::vector<const TextOrder *> texts_;	/* per key; nullptr: it has none */
	bool		any_texts_ = false;
	JoinStop   *stop_ = nullptr;
	int			key_of_word_[SORT_MAX_WORDS];	/* that the word is a reference of; -1: it is none */

	/* Runs, with keys as words for all that the types may hold. */
	Spill	   *spill_ = nullptr;
	SortKeys	run_keys_ = {};
	uint64_t	run_nulls_ = 0;
	std::vector<uint64_t> run_values_;	/* per column: where it lies in a row */
	uint64_t	run_row_bytes_ = 0;
	uint64_t	run_chunk_bytes_ = 0;	/* to sort a chunk in */
	uint64_t	run_chunks_ = 0;	/* of a run at most */

	std::mutex	mutex_;
	std::vector<std::unique_ptr<SortRows>> rows_;

	/* -- phases; written by begin_phase(), but for what tasks make */
	Phase		phase_ = Phase::Begin;
	std::vector<SortRows::Chunk> chunks_;
	std::vector<uint64_t> first_;	/* element of each chunk's first row */
	std::vector<uint8_t> has_nulls_;
	std::vector<const SortKey *> key_of_;	/* per column: that its values can be read from, or nullptr */
	uint64_t	nrows_ = 0;
	uint64_t	nout_ = 0;
	bool		packed_ = false;
	int			row_bits_ = 0;
	Pages		elements_, order_;
	Pages		ties_;			/* per row number: all words but the first */
	Pages		parts_of_;		/* per element: its part */
	int			part_bits_ = 0;
	std::vector<uint64_t> splitters_;	/* a search tree: that of the root at 1 */
	std::vector<Pair> split_rows_;	/* in their place, with texts */
	std::vector<Slice> slices_;
	std::vector<uint64_t> part_first_;	/* per part, and the end of all */
	std::vector<SortRun> runs_, merged_runs_;	/* of this level and the next */
	std::shared_ptr<RunMerge> merge_;	/* the last one */
};

}  // namespace gpuvm

#endif
