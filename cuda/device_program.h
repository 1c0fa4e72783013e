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
 * A warp's region of shared memory, in this order:
 *
 *   stages   1 or 2 copies of: StageColumn[ncolumns], then for each column the
 *            values of `stage_tiles` tiles exactly as the tablet stores them,
 *            and, if the column has nulls, their bits of the null bitmap. One
 *            bulk copy (cp.async.bulk) an array brings them in; the warp waits
 *            on an mbarrier. No hardware register holds a load in flight.
 *   slots    values of registers, masks, pending masks of jump targets
 *   sums     partial aggregates, one for each lane
 *
 * Addresses in a DeviceOp are in units of 16 bytes from the start of the
 * region; OPERAND_STAGED marks one within the current stage. A staged array is
 * lane-major (lane l's values are R * width consecutive bytes: it mirrors the
 * tablet); a value slot is vector-major (vector k of lane l at (k * 32 + l) *
 * 16 bytes), which has no bank conflicts.
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
constexpr int MAX_COLUMNS = 32;		/* one lane stages one column */
constexpr int MAX_AGGS = 16;
constexpr int BLOCK_THREADS = 256;
constexpr int BLOCK_WARPS = BLOCK_THREADS / 32;

/* Fused operations come first; the rest are GENERIC + opcode * 16 + type. */
enum DeviceCode : uint16_t
{
	CODE_END = 0,				/* the tile is done */
	CODE_JOIN,					/* a jump target: pending lanes live again */
	CODE_FILTER_COLUMN,			/* Column and comparison with constants: imm_a <= column <= imm_b */
	CODE_MULSUM_I32,			/* Mul and AggStep Sum, the product not kept */
	CODE_MULSUM_I64,
	CODE_SET_MASK,				/* dst = imm_a */
	CODE_GENERIC = 16,
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
	DOP_STORES = 8,				/* a comparison writes a mask instead of jumping */
	DOP_JUMP_IF_NULL = 16,
	DOP_NEGATED = 32,			/* CODE_FILTER_COLUMN: outside of the interval */
	DOP_WIDE = 64,				/* AggStep Sum: 128-bit accumulator */
};

constexpr uint16_t OPERAND_NONE = 0xffff;
constexpr uint16_t OPERAND_STAGED = 0x8000;

struct DeviceOp
{
	uint16_t	code;
	uint8_t		flags;
	uint8_t		aux;			/* Cast: from Type; AggStep: AggFn; CODE_FILTER_COLUMN: Type; In: p5 */
	uint16_t	dst, a, b, c;	/* c: Select's condition, AggStep's filter */
	uint16_t	dst_null, a_null, b_null, c_null;
	uint16_t	pending;		/* mask that takes the lanes that jump, or OPERAND_NONE: they die */
	uint16_t	skip;			/* where to go on when no lane of the warp is live */
	uint16_t	column;			/* staged column of Column and CODE_FILTER_COLUMN; AggStep: sum slot */
	uint16_t	count;			/* In: values */
	uint16_t	reserved[2];
	int64_t		imm_a;
	int64_t		imm_b;
};
static_assert(sizeof(DeviceOp) == 48, "kernel parameter");

struct StagePlan				/* of one column */
{
	uint16_t	data;			/* address within a stage */
	uint16_t	nulls;			/* OPERAND_NONE: the column has no nulls in any tablet */
	uint16_t	table_column;
	uint16_t	reserved;
};

struct DeviceProgram
{
	uint16_t	nops;
	uint16_t	ncolumns;
	uint16_t	naggs;
	uint16_t	rows_per_lane;	/* R */
	uint16_t	stages;
	uint16_t	stage_tiles;
	uint16_t	stage_units;	/* size of one stage, in 16-byte units */
	uint16_t	region_units;	/* size of a warp's region */
	uint16_t	sums_begin;		/* zeroed at the start */
	uint16_t	reserved[3];
	StagePlan	columns[MAX_COLUMNS];
	uint16_t	sum_slot[MAX_AGGS];
	AggFn		agg_fn[MAX_AGGS];
	Type		agg_type[MAX_AGGS];
	int16_t		agg_scale[MAX_AGGS];	/* float sums count in units of 2^agg_scale */
	uint16_t	agg_wide;		/* bit i: aggregate i has a 128-bit accumulator */
	DeviceOp	ops[MAX_OPS];
	int64_t		aux[MAX_AUX];
};
static_assert(sizeof(DeviceProgram) < 20000, "kernel parameters end at 32,764 bytes");

/* What the kernel knows about a stage's column: written by the lane that staged it. */
struct StageColumn
{
	int64_t		base;
	uint32_t	width;
	uint32_t	reserved;
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
	uint32_t	first_pad;		/* units of TABLET_PAD_ROWS before this tablet */
	uint32_t	nrows;
};

/*
 * The launch's view of the table: tablets in order, chunks [tablet * ncolumns +
 * program column], and which tablet each TABLET_PAD_ROWS unit belongs to.
 */
struct DeviceTable
{
	const DeviceTablet *tablets;
	const DeviceChunk *chunks;
	const uint32_t *pad_tablet;
	uint32_t	npads;
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
};

struct Partial
{
	uint64_t	count;			/* Count, CountStar: rows; others: SumFlags */
	uint64_t	lo;				/* Sum: low half; Min, Max: the value; BoolAnd, BoolOr: 0 or 1 */
	int64_t		hi;				/* Sum: high half */
};

/* One for each launch, zeroed before it. */
struct LaunchState
{
	uint32_t	errors;
	uint32_t	blocks_done;
	Partial		result[MAX_AGGS];
};

}  // namespace cuda
}  // namespace gpuvm

#endif
