/*
 * result_layout.h: how result rows lie in a result buffer's area.
 */
#ifndef GPUVM_VM_RESULT_LAYOUT_H
#define GPUVM_VM_RESULT_LAYOUT_H

#include "vm/program.h"

namespace gpuvm {

constexpr uint32_t RESULT_PAD_ROWS = 64;

/* Offsets of result column `col` within a result buffer's area. */
struct ResultColumnLayout
{
	uint64_t	nulls;
	uint64_t	values;
};

constexpr uint64_t
align_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

/*
 * Lays out result columns of the given types for `capacity` rows (a multiple of
 * RESULT_PAD_ROWS); returns the bytes of one buffer's area. `out` may be null.
 */
inline uint64_t
result_layout(const Type *types, int ncols, uint32_t capacity, ResultColumnLayout *out)
{
	uint64_t	at = 0;

	for (int i = 0; i < ncols; i++)
	{
		uint64_t	nulls = at;
		uint64_t	values = align_up(nulls + capacity / 8, 64);

		at = align_up(values + static_cast<uint64_t>(capacity) * type_width(types[i]), 64);
		if (out)
			out[i] = ResultColumnLayout{nulls, values};
	}
	return at;
}

/* The types of a program's result columns, from its ResultColumn operations. */
inline void
program_result_types(const Program *program, Type *types)
{
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::ResultColumn)
			types[op.p1] = op.type;
	}
}

/* Those of the columns that its groups have as a table (engine/abi.h, Stages): sums come as I64. */
inline void
stage_column_types(const Program *program, Type *types)
{
	program_result_types(program, types);
	for (int i = 0; i < program->nresults; i++)
		types[i] = types[i] == Type::I128 ? Type::I64 : types[i];
}

}  // namespace gpuvm

#endif
