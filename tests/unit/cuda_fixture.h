/*
 * cuda_fixture.h: runs programs over tables in memory on the emulated device, as
 * the job runtime does: lowered, in slices, with the columns that the program
 * reads copied to device memory, each to the byte.
 */
#ifndef GPUVM_TESTS_CUDA_FIXTURE_H
#define GPUVM_TESTS_CUDA_FIXTURE_H

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include "launch.h"
#include "lower.h"
#include "vm_random.h"

namespace gpuvm {
namespace reference {

/* Device memory, freed at the end. */
class DeviceMemory
{
public:
	~DeviceMemory()
	{
		for (void *p : all)
			cudaFree(p);
	}

	char	   *get(size_t bytes)
	{
		void	   *p = nullptr;

		EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
		all.push_back(p);
		return static_cast<char *>(p);
	}

	template <typename T>
	T		   *copy(const T *from, size_t n)
	{
		char	   *to = get(n * sizeof(T));

		cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyHostToDevice);
		return reinterpret_cast<T *>(to);
	}

private:
	std::vector<void *> all;
};

/* How a program is run. */
struct DeviceRun
{
	uint16_t	rows_per_lane;
	bool		trust_ranges;
	uint64_t	seed;			/* of the lanes' order, and of the slices */
};

struct DeviceResult
{
	const char *refused = nullptr;
	uint16_t	stage_tiles = 0;
	Outcome		outcome;
};

/* Chunks of the columns that the program reads, and the list of all pads. */
inline cuda::DeviceTable
copy_table(const Table &table, const cuda::DeviceProgram &program, DeviceMemory *memory)
{
	std::vector<cuda::DeviceTablet> tablets;
	std::vector<cuda::DeviceChunk> chunks;
	std::vector<cuda::DevicePad> pads;

	for (size_t t = 0; t < table.tablets.size(); t++)
	{
		const TabletHeader *header = table.tablets[t].get();

		tablets.push_back(cuda::DeviceTablet{header->nrows, 0});
		for (uint32_t row = 0; row < header->padded_rows; row += TABLET_PAD_ROWS)
			pads.push_back(cuda::DevicePad{static_cast<uint32_t>(t), row});
		for (int c = 0; c < program.ncolumns; c++)
		{
			const ColumnChunk &from = tablet_chunks(header)[program.columns[c].table_column];
			cuda::DeviceChunk to = {0, 0, from.base, from.width, 0};

			if (from.width != 0)
				to.data = reinterpret_cast<uint64_t>(memory->copy(tablet_at<char>(header, from.data), static_cast<size_t>(header->padded_rows) * from.width));
			if (from.nulls != 0)
				to.nulls = reinterpret_cast<uint64_t>(memory->copy(tablet_at<char>(header, from.nulls), header->padded_rows / 8));
			chunks.push_back(to);
		}
	}

	const uint32_t npads = static_cast<uint32_t>(pads.size());

	return cuda::DeviceTable{memory->copy(tablets.data(), tablets.size()),
		chunks.empty() ? nullptr : memory->copy(chunks.data(), chunks.size()), memory->copy(pads.data(), npads), npads, 0};
}

inline const char *
lower_for(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run,
		  cuda::DeviceProgram *out)
{
	std::vector<cuda::ColumnBinding> columns;

	for (size_t c = 0; c < table.columns.size(); c++)
	{
		uint8_t		width = 8;

		for (const auto &tablet : table.tablets)
			width = std::min(width, tablet_chunks(tablet.get())[c].width);
		columns.push_back(cuda::ColumnBinding{table.summaries[c], width});
	}
	return cuda::lower(cuda::LowerInput{program, params.data(), columns.data(), static_cast<uint32_t>(columns.size()), table.nrows(),
					   cuda::LowerOptions{run.rows_per_lane, run.trust_ranges}}, out);
}

/* [0, npads) cut into one to three slices. */
inline std::vector<uint32_t>
slice_ends(uint32_t npads, Rng &rng)
{
	std::vector<uint32_t> ends = {npads};

	while (chance(rng, 40) && ends.size() < 3)
		ends.push_back(1 + pick_int(rng, static_cast<int>(npads)));
	std::sort(ends.begin(), ends.end());
	ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
	return ends;
}

/* Aggregates without keys. */
inline DeviceResult
run_device_aggregates(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run)
{
	auto		lowered = std::make_unique<cuda::DeviceProgram>();
	DeviceResult result;
	DeviceMemory memory;
	Rng			rng(run.seed);
	cuda::LaunchShape shape;
	cuda::LaunchScratch scratch;
	cuda::LaunchState state;

	result.refused = lower_for(program, table, params, run, lowered.get());
	if (result.refused)
		return result;
	result.stage_tiles = lowered->stage_tiles;

	cuda::DeviceTable device_table = copy_table(table, *lowered, &memory);
	uint32_t	first = 0;

	gpuvm_emulated::set_seed(run.seed);
	EXPECT_EQ(cuda::choose_shape(*lowered, device_table.npads, &shape), cudaSuccess);
	EXPECT_EQ(cuda::create_scratch(&scratch), cudaSuccess);
	EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
	for (uint32_t end : slice_ends(device_table.npads, rng))
	{
		EXPECT_EQ(cuda::launch_slice(*lowered, shape, scratch, cuda::SliceArgs{device_table, first, end - first, nullptr, nullptr, nullptr}, nullptr), cudaSuccess);
		first = end;
	}
	EXPECT_EQ(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost), cudaSuccess);
	cuda::destroy_scratch(&scratch);

	Area		area(program, 1);

	result.outcome.errors = cuda::emit_aggregates(*lowered, state, table.nrows(), area.memory.get(), area.capacity);
	if (result.outcome.errors == 0)
		read_area(program, area.memory.get(), area.capacity, 1, &result.outcome);
	return result;
}

}  // namespace reference
}  // namespace gpuvm

#endif
