/*
 * device_program.h: a program as the CUDA interpreter runs it, and what a
 * launch takes and gives. Plain data, shared by host and device.
 *
 * Lowering (lower.h) turns a verified Program into DeviceOps: virtual registers
 * become slots of shared memory, constants become immediates, and common
 * sequences become one fused operation.
 *
 * One warp works on a tile: 32 x R consecutive rows, R = 4, 8 or 16, and lane l
 * owns rows [l * R, (l + 1) * R) of it. Masks (live, null, truth) are therefore
 * R bits a lane. Nothing of the tile loop crosses warps, so there is no block
 * barrier in it and every warp has a program counter of its own.
 *
 * Shared memory of a block: the operations, the values of IN lists, what the
 * block has of a group table (groups.cuh), and for each warp a region:
 *
 *   header   RegionHeader, then StageColumn[ncolumns]
 *   stage    for each column that operations read the values of `stage_tiles`
 *            tiles exactly as the tablet stores them, in whole lines of 128 bytes,
 *            and behind them their bits of the null bitmaps. One bulk copy
 *            (cp.async.bulk) an array brings them in; the warp waits on an
 *            mbarrier. No hardware register holds a load in flight.
 *   slots    values of registers, masks, pending masks of jump targets
 *   sums     partial aggregates, one for each lane
 *
 * Addresses in a DeviceOp are bytes from the start of the region. Every array
 * is lane-major: lane l's values are the R * width bytes from l * R * width.
 * A job with masked rows has one column more, of no values: its null bits are the
 * dead bits of the tablet's rows (dead_rows.h). A tile begins with the others live.
 *
 * With one tile a stage, staged columns and slots are operands alike; with more,
 * only fused and widening operations read staged columns. Lanes visit the chunks
 * of their values in orders that keep them out of each other's banks (Order in
 * machine.cuh).
 */
#ifndef GPUVM_CUDA_DEVICE_PROGRAM_H
#define GPUVM_CUDA_DEVICE_PROGRAM_H

#include "core/types.h"
#include "tablet/format.h"
#include "vm/program.h"

namespace gpuvm {
namespace cuda {

constexpr int MAX_OPS = 256;
constexpr int MAX_AUX = 512;
constexpr int MAX_COLUMNS = 128;
constexpr int MAX_AGGS = 16;
constexpr int MAX_KEYS = 16;
constexpr int MAX_CELLS = 64;
constexpr int BLOCK_THREADS = 256;	/* at most: fewer where regions are large for the device */
constexpr int BLOCK_WARPS = BLOCK_THREADS / 32;

/*
 * Operations that queries are made of have codes of their own, and their cases
 * are inlined in the tile loop; all others are GENERIC + opcode * 16 + type and
 * run in a function that is not inlined. The loop's registers decide how many
 * warps are resident, so the kernel comes in three sizes, and a program runs in
 * the smallest that has its operations: without 64-bit values and float sums;
 * with them; with the call, across which values are spilled.
 */
enum class OpSet : uint8_t
{
	Narrow = 0,
	Wide = 1,
	All = 2,
};

enum DeviceCode : uint16_t
{
	CODE_END = 0,				/* the tile is done */
	CODE_COUNT,					/* AggStep CountStar, no filter */
	CODE_FILTER_COLUMN,			/* Column and comparison with constants: imm_a <= column <= imm_b; I16 and I32 */
	CODE_FILTER_F32,
	CODE_COLUMN_I32,			/* Column that some tablet stores narrowed */
	CODE_ADD_I32, CODE_ADD_F32, CODE_SUB_I32, CODE_SUB_F32, CODE_MUL_I32,
	CODE_LESS_I32, CODE_LESS_F32,	/* with DOP_NEGATED: all four orders */
	CODE_SUM_I32,
	CODE_MULSUM_I32,			/* Mul and AggStep Sum, the product not kept */
	CODE_ADD_CODES,				/* of I32, where an operand is a staged column as the tablet at hand stores it */
	CODE_SUB_CODES,
	CODE_MUL_CODES,
	CODE_LESS_CODES,
	CODE_MULSUM_CODES,
	CODE_JOIN,					/* a jump target: pending lanes live again */
	CODE_SET_MASK,				/* dst = imm_a */
	CODE_WIDE,					/* from here on: not in OpSet::Narrow */
	CODE_FILTER_I64 = CODE_WIDE,
	CODE_FILTER_F64,
	CODE_COLUMN_I64,
	CODE_ADD_I64, CODE_ADD_F64, CODE_SUB_I64, CODE_SUB_F64, CODE_MUL_I64, CODE_MUL_F32, CODE_MUL_F64,
	CODE_LESS_I64, CODE_LESS_F64,
	CODE_SUM_I64, CODE_SUM_F32, CODE_SUM_F64,
	CODE_MULSUM_I64,
	CODE_MARK,					/* of grids only: dst, a mask, takes the live lanes; or MarkKind::Listed */
	CODE_PAIR_LESS_I32 = 40,	/* GridPlan.pairs: a, of the outer row, and b, UniformPlan.values; b_null is at their null bits */
	CODE_PAIR_LESS_I64, CODE_PAIR_LESS_F32, CODE_PAIR_LESS_F64,
	CODE_PAIR_EQUAL_I32, CODE_PAIR_EQUAL_I64, CODE_PAIR_EQUAL_F32, CODE_PAIR_EQUAL_F64,
	CODE_PAIR_COUNT,
	CODE_PAIR_SUM_I32, CODE_PAIR_SUM_I64,
	CODE_PAIR_SUM_INNER_I32, CODE_PAIR_SUM_INNER_I64,
	CODE_PAIR_LESS_NEAR_I32, CODE_PAIR_LESS_NEAR_I64,	/* of values whose difference fits 32 bits */
	CODE_INNER_SUM,				/* first in such a loop: values of the inner rows, dst = b (or 0) + imm_a * a, all UniformPlan.values */
	CODE_GROUP_KEY = 56,		/* in OpSet::All only, out of line: see groups.cuh */
	CODE_GROUP_FIND,
	CODE_GROUP_COUNT,
	CODE_GROUP_SUM,
	CODE_GROUP_EXTREME,
	CODE_GROUP_BOOL,
	CODE_GROUP_FLOAT_SUM,
	CODE_GROUP_BITS,
	CODE_GENERIC = 64,
};

GPUVM_HD constexpr uint16_t
generic_code(Opcode opcode, Type type)
{
	return static_cast<uint16_t>(CODE_GENERIC + static_cast<int>(opcode) * 16 + static_cast<int>(type));
}

enum DeviceOpFlag : uint8_t
{
	DOP_CHECKED = 1,			/* errors of live, non-null lanes count */
	DOP_A_IMM = 2,				/* a is imm_a */
	DOP_B_IMM = 4,				/* b is imm_b */
	DOP_STORES = 8,				/* a comparison writes a mask instead of jumping; CODE_GROUP_COUNT: CellPart::One; Result: marks */
	DOP_JUMP_IF_NULL = 16,
	DOP_NEGATED = 32,			/* CODE_FILTER_*: outside of the interval; CODE_LESS_*: not less */
	DOP_WIDE = 64,				/* AggStep Sum: 128-bit accumulator */
	DOP_NEAR = 64,				/* a comparison of integers whose difference fits 32 bits */
	DOP_SWAPPED = 128,			/* CODE_PAIR_LESS_*: b < a */
	DOP_PRODUCT = 128,			/* CODE_GROUP_SUM: of a and dst, both I32, multiplied in 64 bits */
	DOP_LONG_LIST = 128,		/* In: imm_b is from LaunchArgs.long_aux, not in shared memory */
};

/* Where a ResultColumn operation finds the values of a tile's rows: its aux. */
enum class ResultForm : uint8_t
{
	Values,						/* a: a place of values as registers hold them */
	Mask,						/* a: a mask (Bool) */
	Codes,						/* a: a staged column as the tablet stores it; count: its type's natural width */
	Late,						/* a column that is not staged: the same, from device memory, nulls too */
	Constant,					/* imm_a */
	Rowid,
	Position,					/* Rowid of type I64 */
};

constexpr uint16_t OPERAND_NONE = 0xffff;
constexpr uint16_t OPERAND_STAGED = 0x8000;	/* a staged null mask or column, not a slot */

struct alignas(16) DeviceOp
{
	uint16_t	code;
	uint8_t		flags;
	uint8_t		aux;			/* Cast: from Type; AggStep: AggFn; In, Lookup: p5; DatePart, DateTrunc: field; CODE_FILTER_COLUMN: the type's natural width */
	uint16_t	dst, a, b;		/* CODE_FILTER_COLUMN: b is its FilterRange; ResultColumn: b counts the nullable columns before it */
	uint16_t	dst_null, a_null, b_null;
	uint16_t	c, c_null;		/* Select's condition, AggStep's filter, ResultColumn's list of rows; CODE_*_CODES: column of b; DOP_PRODUCT: c_null is the column of dst */
	uint16_t	pending;		/* mask that takes the lanes that jump, or OPERAND_NONE: they die */
	uint16_t	skip;			/* where to go on when no lane of the warp is live */
	uint16_t	column;			/* staged column of Column and CODE_FILTER_COLUMN; AggStep: sum slot; Lookup, ZoneShift: the map; TextMatch, TextPart: the codes; CODE_GROUP_KEY: column of a */
	uint16_t	count;			/* In: values; CODE_*_CODES, CODE_GROUP_SUM: column of a; TextMatch, TextPart: the images */
	uint32_t	group_area;		/* CODE_GROUP_*: address of the block's GroupArea */
	int64_t		imm_a;			/* TextMatch: the pattern; TextPart: what it takes */
	int64_t		imm_b;			/* In: address of the values in shared memory; ResultColumn: bytes of a row's columns before it */
};
static_assert(sizeof(DeviceOp) == 48 && offsetof(DeviceOp, dst_null) == 10 && offsetof(DeviceOp, b_null) == 14 &&
			  offsetof(DeviceOp, pending) == 20 && offsetof(DeviceOp, column) == 24 && offsetof(DeviceOp, imm_a) == 32,
			  "OpView reads words");

/* Shared memory before the warps' regions. */
GPUVM_HD constexpr uint32_t
program_bytes(uint32_t nops, uint32_t naux)
{
	return (nops * static_cast<uint32_t>(sizeof(DeviceOp)) + naux * 8 + 127) / 128 * 128;
}

struct StagePlan				/* of one column */
{
	uint16_t	data;			/* address in the region; OPERAND_NONE: only ResultColumn reads it */
	uint16_t	nulls;			/* OPERAND_NONE: the column has no nulls in any tablet */
	uint16_t	table_column;	/* or DEAD_COLUMN; of TextMatch and TextPart with TEXT_CODES or TEXT_IMAGES */
	uint16_t	reserved;
};
constexpr uint16_t DEAD_COLUMN = 0xffff;
/* What TextMatch and TextPart read of a column of variable length, neither of it staged: its codes, and as a column of bytes its images. */
constexpr uint16_t TEXT_CODES = 0x2000, TEXT_IMAGES = 0x4000;
static_assert(VERSION_MAX_COLS < TEXT_CODES, "a bit above the columns' numbers");

/*
 * A key of a group: `values` values from lo on (of floats: from the bits 0 on,
 * all NaNs having those of one), and null the value after the last, or, where that
 * would need more than 64 bits, a digit of its own. Digits are packed into words:
 * word += digit * stride.
 */
struct GroupKey
{
	int64_t		lo;
	uint64_t	values;			/* 0: 2^64 */
	uint64_t	stride;
	Type		type;
	uint8_t		nullable;
	uint8_t		word;
	uint8_t		null_word;		/* of the digit that only says whether the key is null, or KEY_NO_WORD */
	uint32_t	null_stride;
};
constexpr uint8_t KEY_NO_WORD = 0xff;

/*
 * A cell: words of a group's row that are updated by one commutative operation,
 * for which 0 is neutral. In a block's shared table they are planes of 32 bits a
 * slot: two for 64 bits.
 */
enum class CellKind : uint8_t
{
	Add32,
	Add64,
	Wide,						/* two 64-bit words: sums of the low and of the high 32 bits */
	Limbs,						/* 64-bit words: see vm/float_sum.h */
	Max32,
	Max64,
	Or32,
	Xor32,
	Mark,						/* 32 bits, not 0 once the group was seen */
};

constexpr uint16_t CELL_NONE = 0xffff;

/* What one row gives a cell. */
enum class CellPart : uint8_t
{
	Whole,
	Low,						/* fits the low 32 bits, of each word */
	One,						/* always 1 */
};

struct CellPlace
{
	uint16_t	at;				/* in the row, bytes; CELL_NONE: there is no such cell */
	uint16_t	plane;
};

struct GroupCell
{
	CellKind	kind;
	uint8_t		limbs;
	CellPlace	place;
	CellPart	part;
};

/* What one row gives BitAnd are the bits that it clears: so 0 is neutral for all of these. */
GPUVM_HD constexpr bool
agg_is_bits(AggFn fn)
{
	return fn == AggFn::BitAnd || fn == AggFn::BitOr || fn == AggFn::BitXor;
}

/* How a row's cells make an aggregate's value. */
struct GroupAgg
{
	int64_t		bias;			/* sums of integers: of each value; extremes: the code's distance from the value */
	CellKind	kind;			/* of `value` */
	uint8_t		limbs;
	int16_t		first;			/* Limbs: number of the first; other sums of floats: exponent of the unit */
	uint16_t	value;			/* places in the row */
	uint16_t	inputs;			/* count of the values taken; CELL_NONE: never 0 and not needed */
	uint16_t	flags;
	uint16_t	max_exp;
	uint8_t		known_flags;	/* FloatSumFlags that hold without looking */
	bool		zero_is_value;	/* extremes: code 0 does not say that there was none */
	uint16_t	high;			/* BitAnd (turned round), BitOr, BitXor of 64 bits: place of the high word; CELL_NONE: 32 bits */
};

/* Groups: what lowering decided. Zero rows: the program has no group table. */
struct GroupLayout
{
	uint16_t	row_bytes;		/* the cells; keys come behind them if the table is hashed */
	uint16_t	planes;			/* of a shared table */
	uint16_t	present;		/* in the row: 32 bits, not 0 once the group was seen; CELL_NONE: it always is */
	uint8_t		nkeys;
	uint8_t		nwords;			/* of a packed key */
	uint8_t		ncells;
	uint8_t		naggs;
	uint8_t		inputs_wide;	/* counts are Add64 */
	uint8_t		reserved;
	uint64_t	radix;			/* packed keys, if one word holds them; 0: 2^64 or more */
	GroupKey	keys[MAX_KEYS];
	GroupCell	cells[MAX_CELLS];
	GroupAgg	aggs[MAX_AGGS];
	uint8_t		sources[PROGRAM_MAX_COLUMNS];	/* of result columns: a key, or GROUP_SOURCE_AGG | an aggregate */
	uint8_t		rests[PROGRAM_MAX_COLUMNS];		/* result_rest() of those of an aggregate */
};
constexpr uint8_t GROUP_SOURCE_AGG = 0x80;

/* Are packed keys of 64 bits? */
GPUVM_HD constexpr bool
packed_keys_are_wide(const GroupLayout &g)
{
	return g.nwords > 1 || g.radix == 0 || g.radix - 1 > UINT32_MAX;
}

/*
 * The record of a row that reaches its group by a partition: the packed key (of a
 * dense table: one word), then what the row gives each cell, in words of 32 bits.
 */
constexpr uint32_t MAX_RECORD_WORDS = 8;

GPUVM_HD constexpr uint32_t
record_words_of(const GroupCell &cell)
{
	if (cell.part == CellPart::One)
		return 0;
	switch (cell.kind)
	{
		case CellKind::Add64:
			return cell.part == CellPart::Low ? 1 : 2;
		case CellKind::Wide:
			return 2;
		case CellKind::Max64:
			return MAX_RECORD_WORDS;	/* in none: its two planes are one */
		case CellKind::Limbs:
			return 2u * cell.limbs;
		default:
			return 1;
	}
}

/* Of a shared table that such a row needs, the first ones: up to the last that a record has a word of. */
GPUVM_HD constexpr uint32_t
record_planes(const GroupLayout &g)
{
	uint32_t	n = 0;

	for (int i = 0; i < g.ncells; i++)
	{
		const uint32_t words = record_words_of(g.cells[i]);
		const uint32_t end = words == 0 ? 0 : g.cells[i].place.plane + (g.cells[i].kind == CellKind::Wide ? 3 : words);

		n = end > n ? end : n;
	}
	return n;
}

/* Even, so that no store is of one word. */
GPUVM_HD constexpr uint32_t
record_words(const GroupLayout &g)
{
	uint32_t	n = 1;

	for (int i = 0; i < g.ncells; i++)
		n += record_words_of(g.cells[i]);
	return (n + 1) / 2 * 2;
}

/*
 * Grids: programs over pairs of an outer row, which a lane has, and an inner row, which
 * is the same for all lanes. Operations before loop_begin read nothing of the inner
 * row and run once a tile; the others are its loop, of which every warp has a copy in
 * its region, to set the inner row's values in: those that read them have them as
 * immediates. The inner row's null bits, and values of Bool, are masks.
 */
constexpr int MAX_UNIFORMS = 32;
constexpr int MAX_PATCHES = 128;
constexpr uint32_t GRID_BLOCK = 32;	/* inner rows whose values are in the region at a time */

struct UniformPlan				/* an inner column */
{
	uint16_t	table_column;	/* of the program's: LowerOptions.uniform_from or above */
	uint16_t	values;			/* in the region: GRID_BLOCK values of 8 bytes, as registers hold them; behind them a word of their null bits */
	uint16_t	null_mask;		/* slots; OPERAND_NONE: nobody reads it */
	uint16_t	truth_mask;
	Type		type;
	uint8_t		nullable;
};

struct GridPatch				/* an immediate that is the inner row's */
{
	uint16_t	at;				/* of the loop's operations, in bytes */
	uint16_t	values;			/* UniformPlan.values */
};

/* A warp's place in the inner rows. */
struct alignas(16) GridState
{
	uint32_t	first, end;		/* of the unit, counted from GridArgs.first_row */
	uint32_t	slice_row;		/* RegionHeader.slice_row for the first inner row of the slice */
	uint32_t	reserved;
};

struct GridPlan
{
	uint16_t	loop_begin;		/* the first operation of the loop; 0: the program is no grid */
	uint16_t	loop_at;		/* in the region: room for the loop's operations and one more, as they begin at a multiple of their size */
	uint16_t	state_at;		/* in the region: GridState */
	uint16_t	patches_at;		/* in the region: a copy of the patches */
	uint16_t	npatches;
	uint16_t	nuniforms;
	uint16_t	masks;			/* some uniform has a mask */
	uint16_t	marked;			/* MarkKind::Rows: mask of the tile's rows that are marked */
	uint8_t		virtual_pads;	/* result rows or MarkKind::Pairs; not a loop that lists pairs */
	uint8_t		pairs;			/* the loop is of CODE_PAIR_* alone: pair_tile.cuh */
	UniformPlan uniforms[MAX_UNIFORMS];
	GridPatch	patches[MAX_PATCHES];
};

/*
 * What a program without result columns leaves of the lanes that live at its end:
 * bits that are ORed into a bitmap, or a list.
 */
enum class MarkKind : uint8_t
{
	None = 0,
	Rows,						/* bit of a row: place of its pad in the table's list * TABLET_PAD_ROWS + row within the pad */
	Pairs,						/* of a grid: (inner row - GridArgs.first_row) * rows of the slice's pads + row within them */
	Listed,						/* of a grid that is GridPlan.pairs: LaunchArgs.list */
};

struct DeviceProgram
{
	uint16_t	nops;
	uint16_t	ncolumns;
	uint16_t	nstaged;		/* of them; the others come behind */
	uint16_t	naggs;
	uint16_t	rows_per_lane;	/* R */
	uint16_t	region_bytes;
	uint16_t	sums_begin;		/* zeroed at the start */
	uint16_t	stage_tiles;	/* a power of two */
	uint16_t	writes_stage;	/* a result takes a staged column's place */
	uint16_t	naux;
	OpSet		op_set;
	uint8_t		max_blocks;		/* a multiprocessor */
	uint16_t	nresults;
	uint16_t	nlong_aux;		/* IN lists that `aux` has no room for, on the host: see LaunchArgs */
	uint16_t	dead;			/* operand: the stage's dead bits; OPERAND_NONE: the job masks no rows */
	const int64_t *long_aux;
	StagePlan	columns[MAX_COLUMNS + 1];
	Type		result_type[PROGRAM_MAX_COLUMNS];
	uint8_t		result_nullable[PROGRAM_MAX_COLUMNS / 8];	/* bitmap */
	uint16_t	sum_slot[MAX_AGGS];
	AggFn		agg_fn[MAX_AGGS];
	Type		agg_type[MAX_AGGS];
	int16_t		agg_scale[MAX_AGGS];	/* float sums count in units of 2^agg_scale */
	uint16_t	agg_wide;		/* bit i: aggregate i has a 128-bit accumulator */
	DeviceOp	ops[MAX_OPS];
	int64_t		aux[MAX_AUX];
	uint64_t	total_rows;		/* at most, that accumulators were sized for */
	GroupLayout groups;
	MarkKind	mark;			/* not None: LaunchArgs.marks */
	GridPlan	grid;
};
static_assert(sizeof(DeviceProgram) < 24000, "kernel parameters end at 32,764 bytes");

struct LaunchArgs;

/*
 * A warp's place in its work. It lives in memory because the tile loop has no
 * hardware register to spare for what is needed once a tile.
 */
struct alignas(16) RegionHeader
{
	uint32_t	first_row;		/* of the stage, within its tablet */
	int32_t		rows;			/* of the unit that exist, from first_row on; less than 0: so many, of which the dead bits tell */
	uint32_t	stage_bytes;	/* that a stage's copies bring */
	uint32_t	parity;			/* of the barrier's next phase */
	uint64_t	barrier;		/* the mbarrier */
	uint32_t	unit;
	uint32_t	errors;			/* ErrorBits that a live, non-null lane raised */
	const LaunchArgs *args;
	uint32_t	slice_row;		/* add it to a row of the tablet: its place in the slice */
	uint32_t	emitted;		/* rows that the tile's Result lists */
};

/* A column of the tablet at hand: written and advanced by the lane that stages it. */
struct alignas(16) StageColumn
{
	int64_t		base;
	uint32_t	width;
	uint32_t	reserved;
	uint64_t	next_data;		/* device addresses of the next stage's values and null bits; not staged: of the tablet's first row's */
	uint64_t	next_nulls;		/* 0: this tablet's chunk has no nulls */
};

/*
 * CODE_FILTER_COLUMN's interval in the domain of the tablet's codes, made once a
 * unit. Codes of 2 bytes are compared in the top bits of a word; codes of 1 byte
 * four to a word, so their bounds are repeated to fill it.
 */
struct alignas(16) FilterRange
{
	uint32_t	width;			/* 1, 2, 4, 8; ALL_ROWS or NO_ROW: nothing to compare */
	uint32_t	lo;				/* width < 8: the first code */
	uint32_t	end;			/* width 2, 4: last code - lo; 1: the code after the last, all ones if there is none */
	uint32_t	end_low;		/* width 1: `end` without the codes' top bits; just the top bits if there is no end */
	uint64_t	wide_lo, wide_span;

	enum : uint32_t { ALL_ROWS = 0, NO_ROW = 3 };
};

/* A column chunk on the device; `data` and `nulls` are device addresses, nulls 0 when absent. */
struct DeviceChunk
{
	uint64_t	data;
	uint64_t	nulls;
	int64_t		base;
	uint32_t	width;
	uint32_t	reserved;
};

struct DeviceTablet
{
	uint32_t	nrows;
	uint32_t	masked;			/* not 0: it has dead bits, for whole pads */
	uint64_t	place;			/* in the arena: rows' positions have it */
};

/* TABLET_PAD_ROWS rows of a tablet, from `row` on. */
struct DevicePad
{
	uint32_t	tablet;
	uint32_t	row;
};

/*
 * A job's view of the table, in device memory: tablets in order, chunks [tablet *
 * ncolumns + program column], and the pads that are to be run.
 */
struct DeviceTable
{
	const DeviceTablet *tablets;
	const DeviceChunk *chunks;
	const DevicePad *pads;
	uint32_t	npads;
	uint32_t	unit_rows;		/* what a warp takes at a time: a stage's rows .. TABLET_PAD_ROWS, from the LaunchShape */
};

/* A map of the job's: device addresses. See maps.h. */
struct DeviceMap
{
	uint64_t	values;
	uint64_t	nulls;			/* bitmap */
	uint32_t	nentries;		/* without the two that lie behind */
	uint32_t	reserved;
};

/* Images of a column in one tablet: where references to them lead, and where they lie on the device. */
struct TextKeyImages
{
	uint64_t	first;			/* arena offsets */
	uint64_t	end;
	uint64_t	data;			/* device address of the first */
	int32_t		attlen;			/* of the values */
	uint32_t	flags;			/* TextPatternFlag bits: what TextCompare leaves out of them */
};

/* What TextKey looks in, a job's: device memory. See text_key.cuh. */
struct TextKeyTable
{
	const TextKeyImages *images;	/* ascending */
	unsigned long long *slots;	/* 0, or a reference with bits of the value's hash above it */
	uint64_t	slot_mask;
	uint64_t	hash_mask;
	uint32_t	nimages;
	uint32_t	reserved;
};

/* Lanes of AggStep's accumulators and the merged state of one aggregate. */
enum SumFlag : uint32_t
{
	SUM_SEEN = 1,
	SUM_NAN = 2,
	SUM_POS_INF = 4,
	SUM_NEG_INF = 8,
	SUM_NEG_ZERO = 16,			/* Min, Max: both zeroes in one result are ambiguous */
	SUM_POS_ZERO = 32,
	SUM_NOT_NEG_ZERO = 64,		/* Sum of floats: an input other than -0 */
};

struct Partial
{
	uint64_t	count;			/* Count, CountStar: rows; others: SumFlags */
	uint64_t	lo;				/* Sum: low half; Min, Max: the value; BoolAnd, BoolOr: 0 or 1 */
	int64_t		hi;				/* Sum: high half */
};

/* Of a job: zeroed before its first launch. `blocks_done` is 0 between launches. */
struct LaunchState
{
	uint32_t	errors;
	uint32_t	blocks_done;
	Partial		result[MAX_AGGS];
};

struct RowSetState;

/*
 * Where a row program's tiles leave their rows: see launch.h. A segment is a
 * tile's, in the order of the slice's rows, and begins with its rows.
 *
 * With `to` it is a row set (row_set.h): a tile's rows go behind those that it has, in any order of tiles. Its columns are as wide
 * as results, and null bits of rows that it does not have are 0.
 */
struct RowStaging
{
	char	   *values;			/* per result column: segments */
	char	   *nulls;			/* per nullable result column: bitmaps of segments */
	uint64_t	rows;			/* that a column has room for */
	uint32_t   *counts;			/* rows of each segment; with `to`: where its rows begin */
	uint32_t   *errors;			/* ErrorBits of each pad; nullptr: only LaunchState has them */
	RowSetState *to;			/* or nullptr */
	uint32_t   *blocks_done;	/* of compact_rows(), by a unit's first pad; 0 between launches */
	uint32_t	segment_rows;
	uint32_t	nsegments;
};

enum class GroupTableKind : uint8_t
{
	Dense = 0,
	Hashed = 1,
	Bits = 2,
};

/* At the begin of a group table's memory, which is all zeroes when it is empty. */
struct GroupHeader
{
	uint32_t	overflow;		/* a row found no place */
	uint32_t	key_zeroes;		/* bits 2k and 2k + 1: key k was 0, was -0 */
	uint32_t	errors;			/* of ending the aggregates */
	uint32_t	ngroups;		/* listed */
	uint32_t	blocks_done;
};

/* The group table in device memory, and what a block has of it: see groups.h. */
struct GroupTable
{
	GroupTableKind kind;
	bool		shared_all;		/* every group has slots in a block's shared table */
	uint8_t		replica_bits;	/* shared slots a group or tag: 2^replica_bits */
	uint8_t		partition_bits;	/* 0: rows go to their groups at once */
	uint32_t	entries;		/* Hashed: a power of two; one more row lies behind them */
	uint32_t	row_bytes;
	uint32_t	key_at;			/* Hashed: in the row */
	uint32_t	probe_limit;
	uint32_t	shared_slots;	/* 0: no shared table */
	uint32_t	slot_scale;		/* unless shared_all: a row's slots are at row * slot_scale / 2^32, before replication */
	uint32_t	shared_bytes;	/* of a block, before the warps' regions: GroupArea, planes, tags */
	GroupHeader *header;
	char	   *rows;
	uint32_t   *list;			/* rows of the groups that there are, once finished */

	/* With partitions */
	uint32_t	record_words;
	uint32_t	gather_slots;	/* in shared memory, of a block that gathers a partition */
	uint32_t	gather_bytes;	/* of shared memory */
	uint32_t	most_writers;	/* blocks that there are counts for */
	uint32_t	writers;		/* of the launch at hand: launch_slice() */
	uint32_t	region_records;	/* room for the records that a writer has for a partition: launch_slice() */
	uint64_t	buffer_records;
	uint32_t   *counts;			/* [partition][writer] */
	uint32_t   *records;		/* [partition][writer][region_records][record_words] */
};

/* In a block's shared memory before the planes and the tags. */
struct alignas(16) GroupArea
{
	GroupTable	table;
	uint32_t	planes_at;		/* addresses in shared memory */
	uint32_t	plane_bytes;
	uint32_t	tags_at;
	uint32_t	hash_shift;
	uint32_t	overflow;
	uint32_t	key_zeroes;
	uint32_t	counters_at;	/* records that the block has for each partition */
	uint32_t	record_tags_at;	/* this and the words of records: of slot 0, if it were one of records */
	uint32_t	record_group;	/* slots from one group of records' slots to the next */
	uint32_t	record_from[MAX_RECORD_WORDS];
	GroupKey	keys[MAX_KEYS];
};

GPUVM_HD uint32_t
group_area_bytes(uint32_t planes, uint32_t slots, bool tagged)
{
	return static_cast<uint32_t>((sizeof(GroupArea) + (planes + (tagged ? 1 : 0)) * slots * 4 + 127) / 128 * 128);
}

/*
 * Slots of a block that writes records: RECORD_GROUP tagged ones, then as many groups of so many as
 * its warps' tiles have rows. Planes of a group lie as those of the tagged slots do, so
 * that a slot's number says where its words are, but there are only those that records
 * need, then the key's and the tags.
 */
constexpr uint32_t RECORD_GROUP = 512;

GPUVM_HD constexpr uint32_t
record_group_planes(const GroupLayout &g)
{
	return record_planes(g) + 2;
}

GPUVM_HD constexpr uint32_t
record_slots(uint32_t rows_per_lane)
{
	return 32 * BLOCK_WARPS * rows_per_lane;
}

GPUVM_HD uint32_t
record_area_bytes(const GroupLayout &g, uint32_t rows_per_lane, uint32_t partition_bits)
{
	return (group_area_bytes(g.planes, RECORD_GROUP, true) + record_slots(rows_per_lane) * record_group_planes(g) * 4 + (4u << partition_bits) + 127) / 128 * 128;
}

/*
 * Grids: a nested loop. The launch's rows are the pairs of the slice's rows with
 * inner rows [first_row, first_row + nrows). A warp takes some outer rows, and then
 * one inner row after the other. Result rows and MarkKind::Pairs see virtual pads,
 * nrows times the slice's: pad (inner row - first_row) * npads + outer pad.
 */
struct GridArgs
{
	const DeviceChunk *columns;	/* device memory: whole columns, in the order of GridPlan.uniforms */
	uint32_t	first_row;
	uint32_t	nrows;
	uint32_t	unit_inner;		/* inner rows that a warp takes at a time: from the LaunchShape */
};

/*
 * Where pairs are listed, in any order: the outer row as MarkKind::Rows counts, and the inner row, behind the `nrows` that there are; the first launch
 * finds 0. What is beyond `room` is missing, but counted, and `full` is set.
 */
struct PairList
{
	uint32_t   *outer;
	uint32_t   *inner;
	RowSetState *state;
	uint32_t	room;
};

/* What a launch of the interpreter gets beside its program. */
struct LaunchArgs
{
	DeviceTable table;
	uint32_t	first_pad;
	uint32_t	npads;
	const uint32_t *abort;		/* or nullptr */
	LaunchState *state;
	Partial    *partials;		/* gridDim.x * MAX_AGGS */
	const int64_t *long_aux;	/* device memory */
	RowStaging	rows;
	GroupTable	groups;
	GridArgs	grid;
	uint32_t   *marks;			/* of a program that marks */
	PairList	list;
	DeviceMap	maps[PROGRAM_MAX_MAPS];
	const uint64_t *patterns;	/* device memory: their addresses */
	TextKeyTable text_keys;
};

/* An instance of the kernel. */
using InterpretFn = void (*) (DeviceProgram program, LaunchArgs args);

}  // namespace cuda
}  // namespace gpuvm

#endif
