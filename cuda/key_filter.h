/*
 * key_filter.h: outer rows that can have no partner, found before anything is made of them.
 *
 * Which keys the inner rows of a level have, as bits; and a kernel that holds rows of a table against the bits of several levels. It
 * reads nothing but the key columns, as tablets store them, of rows that are still there; those that fail die:
 * they get dead bits (dead_rows.h), so that the interpreter, which runs the table's program next, does not know of them; or those that
 * are left are listed, so that they can be fetched (table_rows.h).
 *
 * Asynchronous, no allocation, outcomes: as row_set.h says.
 */
#ifndef GPUVM_CUDA_KEY_FILTER_H
#define GPUVM_CUDA_KEY_FILTER_H

#include "row_set.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t MAX_FILTER_KEYS = 8;
constexpr uint32_t FILTER_PARTS = 8;
constexpr uint64_t MOST_KEY_BITS = uint64_t{1} << 28;	/* 32 MB: what an L2 cache has room for */

/* Keys of an integer type, or Bool. */
struct KeyBits
{
	const uint32_t *bits;		/* is lo + i there? Bit i % 32 of word i / 32; nullptr: it is */
	int64_t		lo;
	uint64_t	n;				/* keys from lo on that there are bits for; 0: none is there */
};

/* Sets the bits of a column's values, nulls left out, all of which are in [lo, lo + n); `bits`: bitmap_bytes(n). */
cudaError_t fill_key_bits(const RowColumn &key, uint32_t nrows, int64_t lo, uint64_t n, uint32_t *bits, cudaStream_t stream);

struct FilterKey
{
	KeyBits		side;
	uint32_t	column;			/* of DeviceTable.chunks: what is compared with them */
	Type		type;			/* its type, which need not be theirs */
};

struct KeyFilter
{
	FilterKey	key[MAX_FILTER_KEYS];	/* in the order in which rows are held against them */
	uint32_t	nkeys;
	uint32_t	ncolumns;		/* of DeviceTable.chunks; */
	uint32_t	dead_column;	/* one of these. Every tablet has dead bits, those of rows that only pad it set */
};

/*
 * Of `npads` pads of the table, `step` apart, from first_pad on. `kill`: rows that fail get dead bits. left[i]: rows that
 * are left of the i-th `part` of these pads; there are at most FILTER_PARTS parts. `rows`, unless nullptr, gets the first `most` of the rows that are
 * left, in any order: place of the pad among these * TABLET_PAD_ROWS + row within it. `words`: device memory for FILTER_WORDS, of which as many as there are
 * parts are copied to `left`.
 */
constexpr uint32_t FILTER_WORDS = FILTER_PARTS + 1;

struct FilterPads
{
	uint32_t	first_pad, npads, step, part;
	bool		kill;
	uint32_t   *rows = nullptr;
	uint32_t	most = 0;
};
cudaError_t filter_rows(const KeyFilter &filter, const DeviceTable &table, const FilterPads &pads, uint32_t *words, uint32_t *left,
						cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
