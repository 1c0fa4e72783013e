/*
 * pairs.h: probing join tables, and the pairs (outer row, inner row) that come of it:
 *
 *   probe()         finds what each outer row finds; says how many pairs there are
 *   expand_pairs()  a part of these pairs, in the order of outer rows, then of inner rows
 *   gather_rows()   columns of pairs: the outer rows' and the inner rows' columns by number
 *   mark_rows()     which rows have a pair that passed the join's condition: bitmaps
 *   scan_bits()     from a bitmap to the numbers of its ones (or zeroes): emit_rows(), emit_pairs(), emit_grid_pairs()
 *
 * Bitmaps: bit i of word i / 32; whole words, 16-byte aligned (BITMAP_BYTES); bits behind the last row are unspecified and
 * ignored. Indexes are uint32_t. Asynchronous, no allocation, outcomes: as row_set.h says. Memory is 256-byte aligned.
 */
#ifndef GPUVM_CUDA_PAIRS_H
#define GPUVM_CUDA_PAIRS_H

#include "join_table.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t
bitmap_bytes(uint64_t n)
{
	return (n + 2047) / 2048 * 256;
}

/* ---- probing ---------------------------------------------------------------- */

enum class ProbeMode : uint8_t
{
	Pairs,						/* an outer row and each of its partners */
	Kept,						/* also outer rows without one, paired with NO_ROW (Left, Full without condition) */
	Bits,						/* which outer rows have a partner, and no more (Semi, Anti without condition) */
	Count,						/* the same, and how many pairs there are (count(*)) */
};

GPUVM_HD bool
lists_pairs(ProbeMode mode)
{
	return mode == ProbeMode::Pairs || mode == ProbeMode::Kept;
}

/* A range of keys, for Sorted tables: columns of the outer rows, of the key's type. A null bound finds nothing. */
struct KeyRange
{
	RowColumn	lo, hi;			/* values nullptr: no such bound */
	bool		lo_strict, hi_strict;	/* the bound itself is outside */
};

struct ProbeOutcome
{
	uint64_t	npairs;			/* not with Bits; with Count: without outer rows that have no partner */
	uint32_t	matched;		/* outer rows that have a partner */
	uint32_t	reserved;
};

/*
 * What a probe leaves for expand_pairs(). Host code reads `single` and matched_bits, and `first` where single and npairs == nrows: then
 * pair i is (i, first[i]), and nothing need be expanded.
 */
struct Probe
{
	ProbeMode	mode;
	bool		single;			/* an outer row has at most one pair: there are no entries */
	uint32_t	nrows;
	uint32_t   *first;			/* per row: where its partners begin in JoinTable.rows (single: its partner) */
	uint32_t   *count;			/* per row: how many; not if single */
	uint32_t   *matched_bits;	/* the rows that have a partner */
	uint32_t   *before;			/* per word of matched_bits: matched rows before it */
	uint32_t   *entry_row;		/* not single: the rows that have a pair, in order; nullptr: all */
	uint64_t   *entry_begin;	/* pairs before each of them; behind the last: all pairs */
	ProbeOutcome *outcome;		/* device */
};

/* Bytes of memory for a probe of so many rows, temporary memory of CUB included. */
uint64_t	probe_bytes(const JoinTable &table, ProbeMode mode, uint32_t nrows);

/*
 * Probes a table with equality by `keys`, columns of nrows outer rows. *probe points into `memory`, of probe_bytes(), which is in use until its
 * pairs have been expanded.
 */
cudaError_t probe(const JoinTable &table, ProbeMode mode, const JoinKeys &keys, uint32_t nrows, char *memory, Probe *probe,
				  ProbeOutcome *outcome, cudaStream_t stream);

/* The same with ranges of keys, of a Sorted table. */
cudaError_t probe_range(const JoinTable &table, ProbeMode mode, const KeyRange &range, uint32_t nrows, char *memory, Probe *probe,
						ProbeOutcome *outcome, cudaStream_t stream);

/*
 * Pairs [first_pair, first_pair + npairs) of those that there are. With ProbeMode::Kept inner[] may be NO_ROW.
 * If the probe is single, `outer` may be nullptr.
 */
cudaError_t expand_pairs(const JoinTable &table, const Probe &probe, uint64_t first_pair, uint32_t npairs, uint32_t *outer, uint32_t *inner,
						 cudaStream_t stream);

/* ---- columns of pairs ---------------------------------------------------------- */

enum class GatherBy : uint8_t
{
	Outer,						/* by the first list */
	Inner,						/* by the second */
	Nothing,					/* nulls: `from` is not looked at */
};

struct GatherColumn
{
	RowColumn	from, to;		/* of one type. to.nulls may be nullptr only where nothing can be null: no null, no NO_ROW */
	GatherBy	by;
};

/*
 * to[i] = from[list[i]] for i < n, n >= 0; null for NO_ROW. A list that is nullptr is 0, 1, 2, ... All columns in one launch (64 at a
 * time), written to the end of the last word of null bits, where there are none behind the last row (rows may be appended).
 */
cudaError_t gather_rows(const GatherColumn *columns, uint32_t ncolumns, const uint32_t *outer, const uint32_t *inner, uint32_t n,
						cudaStream_t stream);

/* ---- bitmaps ------------------------------------------------------------------ */

/* Sets bit rows[i] of `marked` for each i < n whose bit in `live` is 1 (nullptr: for each); NO_ROW is passed over. */
cudaError_t mark_rows(const uint32_t *live, const uint32_t *rows, uint32_t n, uint32_t *marked, cudaStream_t stream);

/* A bitmap whose ones (want) or zeroes (!want) are numbered. */
struct BitScan
{
	const uint32_t *bits;
	uint32_t	flip;			/* all ones: zeroes are wanted */
	uint32_t	nbits;
	uint32_t   *before;			/* device: wanted bits before each word, and in all */
};

/* nbits is at most ROW_SET_MAX_ROWS. `memory`: bit_scan_bytes(), in use as long as *scan. `total`, unless nullptr: copied there. */
uint64_t	bit_scan_bytes(uint32_t nbits);
cudaError_t scan_bits(const uint32_t *bits, uint32_t nbits, bool want, char *memory, BitScan *scan, uint32_t *total, cudaStream_t stream);

/*
 * The wanted bits' numbers: those from the first'th on, at most n of them (n may be more than there are: so there need be no wait for the
 * total where there is room for all).
 */
cudaError_t emit_rows(const BitScan &scan, uint32_t first, uint32_t n, uint32_t *rows, cudaStream_t stream);

/* The same of a bitmap over pairs: the pairs that are wanted. `outer` or `inner` nullptr: not that side. Not in place. */
cudaError_t emit_pairs(const BitScan &scan, uint32_t first, uint32_t n, const uint32_t *outer, const uint32_t *inner,
					   uint32_t *outer_out, uint32_t *inner_out, cudaStream_t stream);

/*
 * The same of a grid launch's bitmap: bit i is of outer row first_outer + i % outer_rows and inner row
 * first_inner + i / outer_rows.
 */
cudaError_t emit_grid_pairs(const BitScan &scan, uint32_t first, uint32_t n, uint32_t outer_rows, uint32_t first_outer, uint32_t first_inner,
							uint32_t *outer_out, uint32_t *inner_out, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
