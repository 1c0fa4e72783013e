/*
 * join_index.h: an inner side of a join that is kept for queries to come: its rows and their table. Which are, vm/join_index.h
 * says; the residency keeps them beside the columns, in the memory that the job built them in. They are read only.
 */
#ifndef GPUVM_CUDA_JOIN_INDEX_H
#define GPUVM_CUDA_JOIN_INDEX_H

#include <string>

#include "engine/device_abi.h"
#include "join_table.h"
#include "vm/join_index.h"

namespace gpuvm {
namespace cuda {

struct JoinIndex
{
	/* Of the device's memory; all that the others point into. */
	struct Piece
	{
		char	   *memory = nullptr;
		uint64_t	bytes = 0;
	};

	Piece		pieces[2];		/* rows; table, which may need none */
	RowSet		side;
	uint32_t	nrows;
	JoinTable	table;			/* of a side that is sought */
	KeyFacts	facts;

	uint64_t	bytes() const { return pieces[0].bytes + pieces[1].bytes; }
};

/* The tablets that it is made of. */
std::vector<IndexTablet> index_tablets(const DeviceCursor &cursor);

/* What an index of these rows, read by this program, is known by on a device; empty: they make none. */
std::string index_key(const JoinLevel &level, const DeviceProgram &build, const DeviceCursor &cursor, Transfer transfer);

}  // namespace cuda
}  // namespace gpuvm

#endif
