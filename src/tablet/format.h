/*
 * format.h: the tablet, a self-contained, relocatable, column-major piece of a
 * table (Bakkum and Chakradhar's tablet, with narrowed columns).
 *
 * A tablet holds the rows of a whole number of consecutive heap blocks, in heap
 * order. Every offset is in bytes from the tablet's first byte, which is
 * 64-byte aligned. Four areas, in this order:
 *
 *   meta   TabletHeader, then ncols ColumnChunk
 *   keys   per heap block: first row, page LSN, line pointers where they have gaps; per column: checksum
 *   fixed  per column: null bitmap (if it has nulls), values
 *   var    per variable-length column: the images of its values
 *
 * Value arrays and null bitmaps are 64-byte aligned and padded with zeroes to
 * whole multiples of TABLET_PAD_ROWS rows, so that no engine needs a scalar tail.
 *
 * Stored form of integers (I16, I32, I64) and Bool: width w in {0, 1, 2, 4, 8}.
 *   w = 0                       every row is `base`; there is no array
 *   0 < w < natural width       unsigned w-byte code, value = base + code
 *   w = natural width           the value itself, base = 0 (Bool: 0 or 1, w = 1)
 * Floats are stored as they are (w = 4 or 8, original bits, -0 and NaN payloads
 * included) or, when every row has the same bits, w = 0 with the bits in `base`.
 * A null row stores code 0 (min at the natural width, 0.0 for floats), so
 * whatever lies under a null is a value in [min, max], which an all-null chunk
 * has as [0, 0]: arithmetic on it cannot leave the range that a program was
 * checked for.
 *
 * A variable-length column (Encoding::Variable) is such a column of references, of
 * type I64: the arena offset of the value's image. base = min is the arena offset
 * of the column's images, max that of their last byte, and the code of w = 1, 2 or 4
 * bytes is the image's place among them (w = 0: one byte in all; all null: no
 * images, and base, min and max are 0). Images are in the order of the rows, of
 * rows that are not null, each once: so a range of rows is a range of bytes. An
 * image is what a heap tuple would hold, detoasted: a varlena with a header of one
 * byte where it fits, at any address, else of four, aligned as its type is; another
 * by-reference type as it is, aligned. Gaps are zero bytes, and at least
 * VARIABLE_SLACK of them follow the last image, which may be read.
 */
#ifndef GPUVM_TABLET_FORMAT_H
#define GPUVM_TABLET_FORMAT_H

#include "core/types.h"

namespace gpuvm {

constexpr uint32_t TABLET_MAGIC = 0x54565047;	/* "GPVT" */
constexpr uint16_t TABLET_VERSION = 1;
constexpr uint32_t TABLET_PAD_ROWS = 4096;
constexpr uint32_t TABLET_ALIGN = 64;
constexpr uint32_t TABLET_MAX_ROWS = 1u << 20;

enum class Encoding : uint8_t
{
	Fixed = 0,					/* narrowed integers, floats, bool; scaled numerics and codes of a dictionary are such integers */
	Variable = 3,				/* references: arena offsets of images in the tablet's variable area */
};

constexpr uint32_t VARIABLE_SLACK = 64;
constexpr uint32_t VARIABLE_MAX_IMAGE = (1u << 20) + 4;	/* of one value: a megabyte and a header */
constexpr uint64_t VARIABLE_MAX_BYTES = 1ull << 30;	/* of a column of a tablet */

/* What the summary of a variable-length column says of its references: that they are arena offsets, wherever tablets are put. */
constexpr int64_t VARIABLE_MAX_REFERENCE = (int64_t{1} << 48) - 1;

enum ChunkFlag : uint16_t
{
	CHUNK_HAS_NULLS = 1u << 0,	/* the null bitmap is present */
	CHUNK_ALL_NULL = 1u << 1,
	CHUNK_HAS_NAN = 1u << 2,	/* floats */
	CHUNK_HAS_INF = 1u << 3,
	CHUNK_HAS_NEG_ZERO = 1u << 4,
	COLUMN_LEFT_OUT = 1u << 5,	/* of a summary: the tablets have nulls instead of the values, which do not fit their form */
	COLUMN_VARIABLE = 1u << 6,	/* of a summary: the chunks are of Encoding::Variable */
	COLUMN_WIDE = 1u << 7,		/* of a summary: the low halves of numerics of more than 64 bits (tablet/wide_halves.h) */
};

/*
 * One column of one tablet. min and max are over the non-null rows: integers as
 * they are, floats as the bits of a double over the finite values (min > max
 * when there is none). exp_hi and exp_lo bound the bits of the finite non-zero
 * floats: every one is a multiple of 2^exp_lo and less than 2^exp_hi in
 * magnitude (exp_lo > exp_hi when there is none); float sums choose their grid
 * from them.
 */
struct ColumnChunk
{
	Type		type;
	Encoding	encoding;
	uint8_t		width;
	uint8_t		reserved0;
	uint16_t	flags;
	int16_t		attnum;
	uint32_t	null_count;
	int16_t		exp_hi;
	int16_t		exp_lo;
	int64_t		base;
	int64_t		min;
	int64_t		max;
	uint64_t	data;			/* offset of the value array, 0 when width is 0 */
	uint64_t	data_bytes;
	uint64_t	nulls;			/* offset of the null bitmap (1 = null), 0 when absent */
};
static_assert(sizeof(ColumnChunk) == 64, "part of the format");

struct TabletHeader
{
	uint32_t	magic;
	uint16_t	version;
	uint16_t	ncols;
	uint64_t	size;			/* bytes of the whole tablet */
	uint32_t	nrows;
	uint32_t	padded_rows;	/* nrows rounded up to TABLET_PAD_ROWS */
	uint32_t	first_block;	/* heap blocks [first_block, first_block + nblocks) */
	uint32_t	nblocks;
	uint64_t	block_rows;		/* offset of uint32[nblocks + 1]: first row of each block, then nrows */
	uint64_t	block_lsns;		/* offset of uint64[nblocks]: page LSN when copied */
	uint64_t	block_lps;		/* offset of uint32[nblocks]: index into lps, or LPS_DENSE */
	uint64_t	lps;			/* offset of uint16[]: line pointer of each row of the listed blocks */
	uint32_t	nlps;
	uint32_t	reserved0;
	uint64_t	var;			/* offset of the variable area, 0 when there is none */
	uint64_t	var_bytes;
	uint64_t	serial;			/* unique in the arena's life: tells a tablet from a later one in its place; 0 = none */
	uint64_t	place;			/* arena offset that the references count from: the tablet's own, once it is there (place_tablet) */
	uint32_t	refs;			/* versions that hold the tablet: counted by backends, atomically; no part of its content */
	uint32_t	checksum;		/* of this header but for the two, of the keys and the columns' checksums */
	uint64_t	checksums;		/* offset of uint32[ncols], the columns' (store/checksum.h); all are 0 in tablets without a serial */
	uint32_t	reserved1[2];
};
static_assert(sizeof(TabletHeader) == 128, "part of the format");

/* The rows of the block have the line pointers 1..n: nothing is stored. */
constexpr uint32_t LPS_DENSE = 0xffffffffu;

inline const ColumnChunk *
tablet_chunks(const TabletHeader *t)
{
	return reinterpret_cast<const ColumnChunk *>(t + 1);
}

inline ColumnChunk *
tablet_chunks(TabletHeader *t)
{
	return reinterpret_cast<ColumnChunk *>(t + 1);
}

template <typename T>
inline const T *
tablet_at(const TabletHeader *t, uint64_t offset)
{
	/* of a result set's tablets columns may lie before the header: offsets are modulo 2^64 */
	return reinterpret_cast<const T *>(reinterpret_cast<uintptr_t>(t) + offset);
}

/* The first byte behind the keys, which the columns' checksums are the last of. */
inline uint64_t
tablet_keys_end(const TabletHeader *t)
{
	return t->checksums + uint64_t{t->ncols} * sizeof(uint32_t);
}

/*
 * A row's position: where its tablet lies, and its number there. It says which row it is, to whoever knows the
 * tablets; nobody can compute with it.
 */
constexpr int POSITION_ROW_BITS = 20;
constexpr int POSITION_PLACE_SHIFT = 14;
static_assert(TABLET_MAX_ROWS == 1u << POSITION_ROW_BITS && TABLET_ALIGN == 1u << (POSITION_ROW_BITS - POSITION_PLACE_SHIFT),
			  "a place has room for the row below it");

GPUVM_HD int64_t
row_position(uint64_t place, uint32_t row)
{
	return static_cast<int64_t>(place << POSITION_PLACE_SHIFT | row);
}

GPUVM_HD uint64_t
position_place(int64_t position)
{
	return static_cast<uint64_t>(position) >> POSITION_ROW_BITS << (POSITION_ROW_BITS - POSITION_PLACE_SHIFT);
}

GPUVM_HD uint32_t
position_row(int64_t position)
{
	return static_cast<uint32_t>(position) & (TABLET_MAX_ROWS - 1);
}

/* -- images of variable-length columns ---------------------------------------------- */

/* The first byte of the images, as an offset from the tablet's first; the chunk is not all null. */
inline uint64_t
variable_at(const TabletHeader *t, const ColumnChunk &chunk)
{
	return static_cast<uint64_t>(chunk.base) - t->place;
}

/* Bytes of all images of a chunk, gaps between them included, but not the slack. */
GPUVM_HD uint64_t
variable_bytes(const ColumnChunk &chunk)
{
	return chunk.flags & CHUNK_ALL_NULL ? 0 : static_cast<uint64_t>(chunk.max) - static_cast<uint64_t>(chunk.min) + 1;
}

/* Length of an image, header included, of which at least VARIABLE_SLACK bytes may be read; attlen: its type's. */
GPUVM_HD uint32_t
image_length(const char *image, int attlen)
{
	const unsigned char *b = reinterpret_cast<const unsigned char *>(image);

	if (attlen > 0)
		return static_cast<uint32_t>(attlen);
	if (b[0] & 1)
		return b[0] >> 1;
	return (b[0] | static_cast<uint32_t>(b[1]) << 8 | static_cast<uint32_t>(b[2]) << 16 | static_cast<uint32_t>(b[3]) << 24) >> 2;
}

/* Of a varlena's image: the bytes of its header. */
GPUVM_HD uint32_t
image_header(const char *image)
{
	return *image & 1 ? 1 : 4;
}

/* Table-wide summary of a column: what programs are bound and lowered with. */
struct ColumnSummary
{
	Type		type;
	uint8_t		max_width;		/* widest stored width of any tablet */
	uint16_t	flags;			/* ChunkFlag bits of all tablets, OR-ed (ALL_NULL: AND-ed) */
	int16_t		attnum;
	int16_t		exp_hi;			/* as in ColumnChunk, over all tablets */
	int16_t		exp_lo;
	int16_t		scale;			/* numerics: integers times 10^-scale; -1: no numerics */
	uint32_t	reserved0;
	int64_t		min;
	int64_t		max;
	uint64_t	null_count;
	uint64_t	dictionary;		/* arena offset of the Dictionary (tablet/dictionary.h) that the codes are of, 0: none */
};
static_assert(sizeof(ColumnSummary) == 48, "part of the format");

constexpr uint32_t VERSION_MAGIC = 0x56565047;	/* "GPVV" */
constexpr uint32_t VERSION_MAX_COLS = 1600;

/*
 * A table version: one immutable blob in the arena that names the tablets of an
 * imported table, the stamps that say when they may be served and the blocks
 * that they may be served for (design, section 4). Offsets are from the blob's
 * first byte; only a tablet's own is from the arena's.
 *
 * `served` is laid out as the visibility map's pages are, each without its
 * header: two bits a block, 32 blocks a word. The all-visible bit's place is set
 * if the block's rows are in the tablets as they were under the page's stamp (a
 * block without rows may be in no tablet); the other bit's if the block was read
 * under that stamp, but has a value that no tablet can have: it is not to be read
 * again before the stamp moves.
 *
 * Tablets are in the order of their blocks and share none. A tablet may belong
 * to several versions: it is freed with the last of them.
 */
struct TableVersion
{
	uint32_t	magic;
	uint32_t	ncols;
	uint32_t	ntablets;
	uint32_t	nblocks;		/* heap blocks of the relation when the version was made */
	uint32_t	nstamps;		/* visibility map pages of so many blocks */
	uint32_t	served_blocks;	/* blocks whose bit is set in `served` */
	uint64_t	nrows;
	uint64_t	bytes;			/* this blob, its tablets and dictionaries */
	uint64_t	columns;		/* offset of ColumnSummary[ncols] */
	uint64_t	tablets;		/* offset of uint64[ntablets]: arena offsets */
	uint64_t	stamps;			/* offset of uint64[nstamps]: LSN of each map page, read before its blocks */
	uint64_t	served;			/* offset of uint64[nstamps * words of a map page] */
	uint64_t	page_served;	/* offset of uint32[nstamps]: how many bits each of these pages has set */
	uint64_t	map_buffers;	/* offset of uint32[nstamps]: PostgreSQL's buffer that each map page was last seen in, 0: none.
								 * A hint, and the only thing in here that changes */
	uint64_t	signature;		/* offset of what the columns were (store/signature.cc) */
	uint64_t	signature_len;
	uint64_t	masked;			/* offset of MaskedRows[nmasked] (vm/masked_rows.h): rows of its tablets that are not the table's. Only of versions with an origin */
	uint64_t	nmasked;
	uint64_t	origin;			/* offset of what file the rows are of, and as of when (store/file.h); 0: a heap's */
	uint64_t	size;			/* bytes of this blob alone */
	uint32_t	checksum;		/* of the blob but for map_buffers (store/checksum.h) */
	uint32_t	reserved0;
};

template <typename T>
inline const T *
version_at(const TableVersion *v, uint64_t offset)
{
	return reinterpret_cast<const T *>(reinterpret_cast<const char *>(v) + offset);
}

}  // namespace gpuvm

#endif
