/*
 * cpu_hash_table.h: from the keys of a join's inner side to its rows.
 *
 * Rows lie in columns (JoinColumn) and have numbers; runs say which numbers there
 * are. Equal keys are neighbours in `order`, so that what a key finds is a range.
 * One integer key whose values lie close together is its own slot: then a slot has
 * one row (its number is stored, or is the slot itself), or a range. Other keys are
 * hashed to 64 bits, and the hashes sorted: slots are their leading bits, and have
 * about one entry each, a hash beside its row's number, so that a probe waits for
 * memory twice, and compares without a branch. The hash of up to 64 bits of keys has an inverse, so that
 * equal hashes are equal keys; with wider keys pairs have to be compared (exact()).
 * One key of 32 bits has a hash of as many. A row's code is its slot or its hash.
 *
 * Where it is enough that a key is there, and one integer key's values do not lie too far apart, slots are bits, and no row is found.
 *
 * A sorted table has all rows in its key's order; what a range finds is a range. Its
 * codes are words in the order of btree.
 */
#ifndef GPUVM_VM_CPU_HASH_TABLE_H
#define GPUVM_VM_CPU_HASH_TABLE_H

#include <vector>

#include "vm/cpu_job.h"

namespace gpuvm {

/* Values at the width of results (Bool: bytes), from row or lane 0 on. */
struct JoinColumn
{
	Type		type;
	const char *values;
	const uint64_t *nulls;		/* nullptr: none is null */
};

struct JoinStop;

/* Entries of a slot that a probe looks at without a branch: few slots have more. */
constexpr uint32_t JOIN_WINDOW = 4;

/* A row's hash beside its number. */
template <typename Code>
struct JoinEntry
{
	Code		code;
	uint32_t	row;
};

/* Which rows entries are of, one after the other; nullptr: entry i is row i. */
struct JoinOrder
{
	const uint32_t *rows;
	uint32_t	step;

	explicit operator bool() const { return rows != nullptr; }
	uint32_t	operator[](uint32_t i) const { return rows[size_t(i) * step]; }
};

/* Rows [at, at + n). */
struct JoinRun
{
	uint64_t	at;
	uint32_t	n;
};

/*
 * Keys of rows [first, first + n), n <= CPU_VECTOR_ROWS, as a word each, equal for equal keys, and which of them have no null. They are
 * exact if they are `packed`: together no wider than a word, or one.
 */
void		join_words(const JoinColumn *keys, size_t nkeys, bool packed, uint64_t first, uint32_t n, uint64_t *out, uint64_t *valid);
bool		join_keys_packed(const JoinColumn *keys, size_t nkeys);

class JoinTable
{
public:
	/* The columns outlive the table. There are fewer than 2^32 - 1 rows. */
	void		set_rows(std::vector<JoinColumn> keys, std::vector<JoinRun> runs, bool sorted = false);
	/* Memory is short: no slots for ranges of which most are empty. 40 bytes a row are enough then. */
	void		set_compact() { compact_ = true; }

	/* Nobody asks which rows, nor how many, a key finds: one is enough, and its number may be any. */
	void		set_exists_only() { exists_only_ = true; }

	/* Building, as in CpuJoin: phases of tasks. */
	uint32_t	begin_phase();
	void		run_task(uint32_t task, JoinStop *stop = nullptr);

	/*
	 * What n lanes find: for each, so many rows, order()[first] and the following. A null finds nothing. *missing is kept from call
	 * to call, false at first: the last lanes found little, so look at the filter before.
	 */
	void		probe(const JoinColumn *keys, uint32_t n, bool *missing, uint32_t *first, uint32_t *count) const;
	/* The same of a sorted table: rows between the bounds, of which one may be nullptr. */
	void		probe_range(const JoinColumn *lo, const JoinColumn *hi, bool lo_strict, bool hi_strict, uint32_t n,
							uint32_t *first, uint32_t *count) const;
	JoinOrder	order() const;

	/* Is what probe() finds equal, or has same_keys() to be asked? */
	bool		exact() const { return exact_; }
	bool		same_keys(uint32_t row, const JoinColumn *keys, uint32_t lane) const;

	uint32_t	max_matches() const { return max_matches_; }
	uint64_t	rows() const { return nvalid_; }
	uint64_t	bytes() const { return bytes_ + temporary_; }
	/* What it holds on to, in whole pages; built. */
	uint64_t	memory() const;

private:
	enum class Form { Empty, Identity, Unique, Bits, Ranges, Hashed, Sorted };
	enum class Phase { Keys, Unique, Count, Histogram, Scatter, Parts, Done };

	struct RunKeys
	{
		int64_t		lo, hi;
		uint64_t	valid;
		uint64_t	offset;		/* key less row number */
		bool		even;		/* the same for all rows, and none is null */
	};

	void		keys_of(const JoinColumn *keys, uint64_t first, uint32_t n, uint64_t *out, uint64_t *valid) const;
	uint64_t	slot_of(uint64_t code) const { return code >> slot_shift_; }
	size_t		code_bytes() const { return narrow_ ? sizeof(uint32_t) : sizeof(uint64_t); }
	size_t		entry_bytes() const { return narrow_ ? sizeof(JoinEntry<uint32_t>) : sizeof(JoinEntry<uint64_t>); }
	void		choose_form();
	void		begin_parts();
	void		begin_sorting();
	uint32_t	part_of(uint64_t code) const;
	void		prefix_parts();
	void		task_keys(uint32_t run);
	void		task_unique(uint32_t run);
	void		task_bits(uint32_t run);
	template <typename Code>
	void		task_histogram(uint32_t run, bool scatter);
	template <typename Code>
	void		task_part(uint32_t part, JoinStop *stop);
	template <typename Code>
	void		count_below(const uint64_t *words, uint32_t n, bool equal, uint32_t *out) const;
	template <typename Code>
	void		probe_hashed(const uint64_t *key, const uint64_t *valid, uint32_t n, bool missing, uint32_t *first, uint32_t *count) const;

	std::vector<JoinColumn> keys_;
	std::vector<JoinRun> runs_;
	std::vector<RunKeys> run_keys_;
	Form		form_ = Form::Empty;
	Phase		phase_ = Phase::Keys;
	bool		begun_ = false;
	bool		exact_ = true;
	bool		packed_ = true;		/* keys fit one word, or there is one */
	bool		short_key_ = false;	/* there is one, of at most 32 bits */
	bool		sorted_ = false;
	bool		compact_ = false;
	bool		exists_only_ = false;
	bool		narrow_ = false;	/* codes have 32 bits */
	uint64_t	nvalid_ = 0;
	uint64_t	lo_ = 0;		/* of the keys that are slots */
	uint64_t	nslots_ = 0;
	int			slot_shift_ = 0;
	int			part_shift_ = 0;
	int			filter_shift_ = 0;
	uint32_t	nparts_ = 0;
	uint32_t	max_matches_ = 0;
	uint64_t	bytes_ = 0;
	uint64_t	temporary_ = 0;	/* bytes while building */
	Pages		slots_;			/* Unique: row number + 1; otherwise where the slot begins in order, and one more */
	Pages		filter_;		/* bits: the slot is not empty; Hashed: by the codes' leading bits. Not where it would gain nothing */
	Pages		entries_;		/* Hashed: and so many more that a probe may read on; Ranges: while building, by part */
	Pages		order_;			/* Ranges and Sorted */
	Pages		hashes_;		/* Sorted: codes beside order */
	std::vector<uint32_t> starts_;	/* per run and part */
	std::vector<uint32_t> part_first_;
	std::vector<uint64_t> splitters_;	/* Sorted: codes that have a part of their own, between the others */
	std::vector<uint64_t> counted_;	/* per task */
};

}  // namespace gpuvm

#endif
