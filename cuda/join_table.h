/*
 * join_table.h: from the keys of a join's inner rows to these rows, on the device.
 *
 *   Identity  one integer key that is the row's number and a constant: no memory at all
 *   Slots     one integer key of a narrow range, no duplicates: the row by key - lo
 *   Ranges    the same with duplicates: rows sorted by key, and by key - lo where a key's begin and end
 *   Hashed    any keys: rows sorted by the keys' hash, and by its leading bits where these begin and end.
 *             Keys of 32 (64) bits in all have a hash of as many bits that has an inverse; of wider keys a run of
 *             equal hashes has equal keys, or the table is not used (JoinTableOutcome.collision)
 *   Sorted    one key, for ranges of keys: rows sorted by key, in the order of PostgreSQL's btree
 *
 * Null keys are in none of them. Equality is PostgreSQL's: all NaNs are one, as are both zeroes.
 * Equal keys' rows are in the order of their numbers. What is made depends on the keys alone.
 *
 * How one is built; the host waits where it says so:
 *
 *   measure_keys(), which may be enqueued behind what counts the rows, wait, plan_join_table(); allocate plan.table_bytes and plan.temp_bytes;
 *   build_join_table(), wait, finish_join_table(); on Again: allocate as the plan says now, build again.
 *   The temporary memory is free again then.
 *
 * All functions are asynchronous on the stream unless they have none; none allocates device memory;
 * outcomes are copied as row_set.h says.
 */
#ifndef GPUVM_CUDA_JOIN_TABLE_H
#define GPUVM_CUDA_JOIN_TABLE_H

#include "row_set.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t JOIN_MAX_KEYS = 16;

enum class JoinForm : uint8_t
{
	Empty = 0,					/* no row has a key */
	Identity = 1,
	Slots = 2,
	Ranges = 3,
	Hashed = 4,
	Sorted = 5,
};

/* Columns of keys, of the table's rows or of those that probe it. Types are the same on both sides. */
struct JoinKeys
{
	RowColumn	key[JOIN_MAX_KEYS];
	uint32_t	nkeys;
};

/* What measure_keys() finds out. lo, hi, even: of one key of an integer type or Bool only. */
struct KeyFacts
{
	int64_t		lo, hi;			/* of the live rows' keys; lo > hi: there are none */
	int64_t		least_offset, most_offset;	/* of key - row number, modulo 2^64 */
	uint64_t	live;			/* rows none of whose keys is null */
};

/*
 * `facts`: device memory of the caller, also its place; copied to `outcome`. `counted`: device memory that has the number
 * of rows by then, of which there are `nrows` at most; nullptr: there are so many.
 */
cudaError_t measure_keys(const JoinKeys &keys, uint32_t nrows, KeyFacts *facts, KeyFacts *outcome, cudaStream_t stream,
						 const uint32_t *counted = nullptr);

struct JoinTablePlan
{
	JoinForm	form;
	bool		has_nulls;		/* live < nrows */
	bool		narrow;			/* codes have 32 bits */
	bool		exact;			/* equal codes are equal keys */
	uint32_t	nrows;
	uint32_t	live;
	int64_t		lo;
	uint64_t	nslots;			/* Slots, Ranges: hi - lo + 1; Hashed: a power of two */
	uint8_t		code_bits;		/* that have to be sorted by */
	uint8_t		slot_shift;		/* of a code: to its slot */
	uint64_t	table_bytes;	/* as long as the table is used; 0: it needs none */
	uint64_t	temp_bytes;		/* while it is built; 0: it needs none */
};

/* `sorted`: for ranges of keys; nkeys is 1. Otherwise for equality. */
void		plan_join_table(const JoinKeys &keys, uint32_t nrows, const KeyFacts &facts, bool sorted, JoinTablePlan *plan);

/* As kernels take it. Host code reads form and unique only. */
struct JoinTable
{
	JoinForm	form;
	bool		unique;			/* a key has at most one row: it is known when the table is finished */
	bool		narrow;
	bool		exact;
	uint8_t		slot_shift;
	uint32_t	live;
	int64_t		lo;
	uint64_t	nslots;
	uint32_t   *slots;			/* Slots: row + 1, or 0 */
	uint2	   *ranges;			/* Ranges, Hashed: [x, y) of `rows` by slot; 0, 0: nothing */
	uint32_t   *rows;			/* Ranges, Hashed, Sorted: row numbers, by code */
	void	   *codes;			/* Hashed, Sorted: of `rows`: uint32_t if narrow, else uint64_t */
	JoinKeys	keys;			/* of the table's rows */
};

struct JoinTableOutcome
{
	uint32_t	duplicates;		/* not 0: some key has several rows */
	uint32_t	collision;		/* not 0: keys that differ have one hash */
};

/* `words`: device memory of the caller; copied to `outcome`. */
cudaError_t build_join_table(const JoinTablePlan &plan, const JoinKeys &keys, char *table_memory, char *temp_memory, JoinTable *table,
							 JoinTableOutcome *words, JoinTableOutcome *outcome, cudaStream_t stream);

enum class JoinTableEnd
{
	Done,
	Again,						/* Slots, but keys have several rows: the plan is another one now */
	Collision,					/* no table for these rows */
};
JoinTableEnd finish_join_table(const JoinTableOutcome &outcome, JoinTablePlan *plan, JoinTable *table);

}  // namespace cuda
}  // namespace gpuvm

#endif
