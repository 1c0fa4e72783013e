/*
 * work.h: what a job is made of before it meets a device: its program lowered,
 * and the pads and units of its tablets that are to be run.
 */
#ifndef GPUVM_CUDA_WORK_H
#define GPUVM_CUDA_WORK_H

#include <vector>

#include "device_program.h"
#include "engine/device_abi.h"

namespace gpuvm {
namespace cuda {

struct WorkTablet
{
	const TabletHeader *tablet;
	uint32_t	first_pad;		/* of Work.pads */
	uint32_t	npads;
	uint64_t	rows;			/* in these pads */
};

/* Of a row program. */
struct WorkUnit
{
	uint32_t	number;			/* of the request's units */
	uint32_t	tablet;			/* of Work.tablets */
	uint32_t	first_pad;
	uint32_t	npads;
};

struct Work
{
	std::vector<WorkTablet> tablets;	/* those of which anything is run */
	std::vector<DevicePad> pads;		/* in order; `tablet` is of `tablets` */
	std::vector<WorkUnit> units;
	uint64_t	rows = 0;
};

void		list_work(const DeviceJobRequest &request, Work *work);

/*
 * The program as a device with that much shared memory a multiprocessor runs it;
 * nullptr, with the reason, if it does not. Each thread remembers its last one, so
 * that estimate() and run() lower only once; it is valid until the thread asks for
 * another.
 */
const DeviceProgram *lower_request(const DeviceJobRequest &request, uint32_t shared_bytes, const char **reason);

/* Where a column chunk's bytes lie in its tablet, and how they lie on a device: the null bitmap, then the values. */
struct ChunkBytes
{
	uint64_t	nulls;			/* bytes of the bitmap, 0: absent; a multiple of 512 */
	uint64_t	data;

	uint64_t total() const { return nulls + data; }
};

inline ChunkBytes
chunk_bytes(const TabletHeader *tablet, const ColumnChunk &chunk)
{
	return ChunkBytes{chunk.nulls != 0 ? tablet->padded_rows / 8 : 0, chunk.width != 0 ? chunk.data_bytes : 0};
}

}  // namespace cuda
}  // namespace gpuvm

#endif
