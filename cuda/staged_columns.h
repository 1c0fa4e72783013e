/* staged_columns.h: where the columns of a RowStaging lie. */
#ifndef GPUVM_CUDA_STAGED_COLUMNS_H
#define GPUVM_CUDA_STAGED_COLUMNS_H

#include "device_program.h"

namespace gpuvm {
namespace cuda {

struct StagedColumn
{
	uint32_t	before;			/* bytes of a row's columns before it */
	uint8_t		width;
	uint8_t		nullable_before;	/* nullable columns before it */
	bool		nullable;
};

/* `columns`: one for each result column. */
inline void
staged_columns(const DeviceProgram &program, StagedColumn *columns)
{
	uint32_t	before = 0;
	uint8_t		nullable_before = 0;

	for (int i = 0; i < program.nresults; i++)
	{
		const uint8_t width = static_cast<uint8_t>(type_width(program.result_type[i]));
		const bool	nullable = program.result_nullable[i / 8] >> i % 8 & 1;

		columns[i] = StagedColumn{before, width, nullable_before, nullable};
		before += width;
		nullable_before = static_cast<uint8_t>(nullable_before + nullable);
	}
}

}  // namespace cuda
}  // namespace gpuvm

#endif
