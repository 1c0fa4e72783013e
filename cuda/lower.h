/*
 * lower.h: from a verified Program to a DeviceProgram. Pure C++: needs no CUDA.
 *
 * A program is lowered for one execution: its parameters become immediates, and
 * the columns' ranges decide which operations need their overflow check.
 */
#ifndef GPUVM_CUDA_LOWER_H
#define GPUVM_CUDA_LOWER_H

#include "device_program.h"
#include "vm/code_map.h"

namespace gpuvm {
namespace cuda {

/* A column of the table: its summary, and the narrowest form that a tablet stores it in. */
struct ColumnBinding
{
	ColumnSummary summary;
	uint8_t		min_width;
};

struct LowerOptions
{
	uint16_t	rows_per_lane;	/* 4, 8 or 16; 0 chooses */
	bool		trust_ranges;	/* leave out checks that the columns' ranges prove needless */
	uint32_t	shared_bytes;	/* a multiprocessor's shared memory; 0: 227 KB */
	bool		masked;			/* some tablet has masked rows */
	/*
	 * A nested loop: columns of the program from uniform_from on are the inner row's. Their
	 * bindings are those of the others, of min_width type_width(); total_rows is of pairs.
	 */
	bool		grid = false;
	uint16_t	uniform_from = 0;
	MarkKind	mark = MarkKind::None;	/* not None: a row program without result columns marks its live lanes */
};

constexpr const char *WIDE_EXTREMES_REFUSED = "extremes of numbers of more than 64 bits are found by the CPU";
constexpr const char *TEXT_EXTREMES_REFUSED = "extremes of texts are found by the CPU";
constexpr const char *LIBRARY_REFUSED = "logarithms, powers and angles, whose last digits are a mathematical library's, are computed by the CPU";

/* Why no device takes the operation, wherever it stands; nullptr: it may. */
inline const char *
refused_operation(const Op &op)
{
	if (is_library_function(op.opcode))
		return LIBRARY_REFUSED;
	if (op.opcode != Opcode::AggStep)
		return nullptr;
	return agg_is_wide(static_cast<AggFn>(op.p5)) ? WIDE_EXTREMES_REFUSED : orders_texts(op) ? TEXT_EXTREMES_REFUSED : nullptr;
}

struct LowerInput
{
	const Program *program;
	const ParamValue *params;
	const ColumnBinding *columns;	/* of the cursor's table version */
	uint32_t	ncolumns;
	uint64_t	total_rows;
	LowerOptions options;
	const CodeMap *maps = nullptr;	/* those of the program */
};

/* Returns nullptr, or why the program does not run on the device. */
const char *lower(const LowerInput &input, DeviceProgram *out);

}  // namespace cuda
}  // namespace gpuvm

#endif
