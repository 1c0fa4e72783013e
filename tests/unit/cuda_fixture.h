/*
 * cuda_fixture.h: runs programs over tables in memory on the emulated device, as
 * the job runtime does: lowered, in slices, with the columns that the program
 * reads copied to device memory, each to the byte.
 */
#ifndef GPUVM_TESTS_CUDA_FIXTURE_H
#define GPUVM_TESTS_CUDA_FIXTURE_H

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include "dead_rows.h"
#include "launch.h"
#include "lower.h"
#include "maps.h"
#include "vm_random.h"
#include "work.h"

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
	uint64_t	total_rows = 0;	/* that the program is lowered for; 0: the table's */
	const MapSet *maps = nullptr;
	const PatternSet *patterns = nullptr;

	const CodeMap *code_maps() const { return maps ? maps->maps.data() : nullptr; }
};

struct DeviceResult
{
	const char *refused = nullptr;
	uint16_t	stage_tiles = 0;
	cuda::OpSet	op_set = cuda::OpSet::Narrow;
	const char *table = nullptr;	/* of groups */
	int			overflows = 0;		/* of it */
	Outcome		outcome;
	std::vector<Outcome> units;		/* of rows */
};

/* The table's masked rows as bitmaps of its tablets: where each begins, 0 where a tablet has none. */
inline std::vector<uint64_t>
copy_dead_rows(const Table &table, DeviceMemory *memory)
{
	std::vector<cuda::DeadRange> ranges;
	std::vector<uint64_t> bitmaps;
	uint32_t	npads = 0;

	for (size_t t = 0; t < table.tablets.size(); t++)
	{
		const TabletHeader *header = table.tablets[t].get();
		const uint64_t first = npads * uint64_t{TABLET_PAD_ROWS};
		uint32_t	n;
		const MaskedRows *masked = table.masked_of(t, &n);

		bitmaps.push_back(n != 0 ? npads * cuda::DEAD_PAD_BYTES + 1 : 0);
		if (n == 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			ranges.push_back(cuda::DeadRange{first + masked[i].first, first + masked[i].end});
		if (header->nrows < header->padded_rows)
			ranges.push_back(cuda::DeadRange{first + header->nrows, first + header->padded_rows});
		npads += header->padded_rows / TABLET_PAD_ROWS;
	}
	if (npads == 0)
		return bitmaps;

	char	   *bits = memory->get(npads * cuda::DEAD_PAD_BYTES);

	EXPECT_EQ(cuda::fill_dead_rows(bits, npads, memory->copy(ranges.data(), ranges.size()), static_cast<uint32_t>(ranges.size()), nullptr),
			  cudaSuccess);
	for (uint64_t &bitmap : bitmaps)
		bitmap = bitmap != 0 ? reinterpret_cast<uint64_t>(bits) + bitmap - 1 : 0;
	return bitmaps;
}

/* Chunks of the columns that the program reads, and the list of all pads. */
inline cuda::DeviceTable
copy_table(const Table &table, const cuda::DeviceProgram &program, DeviceMemory *memory)
{
	const std::vector<uint64_t> dead = copy_dead_rows(table, memory);
	std::vector<cuda::DeviceTablet> tablets;
	std::vector<cuda::DeviceChunk> chunks;
	std::vector<cuda::DevicePad> pads;

	for (size_t t = 0; t < table.tablets.size(); t++)
	{
		const TabletHeader *header = table.tablets[t].get();

		tablets.push_back(cuda::DeviceTablet{header->nrows, dead[t] != 0, header->place});
		for (uint32_t row = 0; row < header->padded_rows; row += TABLET_PAD_ROWS)
			pads.push_back(cuda::DevicePad{static_cast<uint32_t>(t), row});
		for (int c = 0; c < program.ncolumns; c++)
		{
			if (program.columns[c].table_column == cuda::DEAD_COLUMN)
			{
				chunks.push_back(cuda::DeviceChunk{0, dead[t], 0, 0, 0});
				continue;
			}

			const ColumnChunk from = cuda::device_chunk(header, program.columns[c].table_column);
			cuda::DeviceChunk to = {0, 0, from.base, from.width, 0};

			if (from.width != 0)
				to.data = reinterpret_cast<uint64_t>(memory->copy(tablet_at<char>(header, from.data),
																  program.columns[c].table_column & cuda::TEXT_IMAGES ? static_cast<size_t>(from.base)
																  : static_cast<size_t>(header->padded_rows) * from.width));
			if (from.nulls != 0)
				to.nulls = reinterpret_cast<uint64_t>(memory->copy(tablet_at<char>(header, from.nulls), header->padded_rows / 8));
			chunks.push_back(to);
		}
	}

	const uint32_t npads = static_cast<uint32_t>(pads.size());

	return cuda::DeviceTable{memory->copy(tablets.data(), tablets.size()),
		chunks.empty() ? nullptr : memory->copy(chunks.data(), chunks.size()), memory->copy(pads.data(), npads), npads, 0};
}

/* As the job runtime sends them. */
inline void
send_maps(const Program *program, const CodeMap *maps, DeviceMemory *memory, cuda::LaunchScratch *scratch)
{
	std::vector<char> bytes(cuda::map_bytes(maps, program->nmaps));

	if (program->nmaps == 0)
		return;

	char	   *at = memory->get(bytes.size());

	cuda::pack_maps(maps, program->nmaps, bytes.data(), reinterpret_cast<uint64_t>(at), scratch->maps);
	cudaMemcpy(at, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
}

inline void
send_patterns(const Program *program, const PatternSet *patterns, DeviceMemory *memory, cuda::LaunchScratch *scratch)
{
	if (program->npatterns == 0)
		return;

	std::vector<char> bytes(cuda::pattern_bytes(patterns->patterns.data(), program->npatterns));
	char	   *at = memory->get(bytes.size());

	cuda::pack_patterns(patterns->patterns.data(), program->npatterns, bytes.data(), reinterpret_cast<uint64_t>(at));
	cudaMemcpy(at, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
	scratch->patterns = reinterpret_cast<const uint64_t *>(at);
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
	return cuda::lower(cuda::LowerInput{program, params.data(), columns.data(), static_cast<uint32_t>(columns.size()),
					   run.total_rows ? run.total_rows : table.nrows(), cuda::LowerOptions{run.rows_per_lane, run.trust_ranges, 0, !table.masked.empty()},
					   run.code_maps()}, out);
}

/* [0, n) cut into one to three pieces: their ends. */
inline std::vector<uint32_t>
random_cuts(uint32_t n, Rng &rng)
{
	std::vector<uint32_t> ends = {n};

	while (chance(rng, 40) && ends.size() < 3)
		ends.push_back(1 + pick_int(rng, static_cast<int>(n)));
	std::sort(ends.begin(), ends.end());
	ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
	return ends;
}

/* A job: its program lowered, its table copied, and what launches need. */
class DeviceJob
{
public:
	DeviceJob(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run)
		: program(program), table(table), rng(run.seed), lowered(std::make_unique<cuda::DeviceProgram>())
	{
		result.refused = lower_for(program, table, params, run, lowered.get());
		if (result.refused)
			return;
		result.stage_tiles = lowered->stage_tiles;
		result.op_set = lowered->op_set;
		device_table = copy_table(table, *lowered, &memory);
		gpuvm_emulated::set_seed(run.seed);
		EXPECT_EQ(cuda::create_scratch(&scratch), cudaSuccess);
		EXPECT_EQ(cuda::send_long_lists(*lowered, scratch, nullptr), cudaSuccess);
		send_maps(program, run.code_maps(), &memory, &scratch);
		send_patterns(program, run.patterns, &memory, &scratch);
		EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
	}
	~DeviceJob()
	{
		cuda::destroy_scratch(&scratch);
	}

	void		run()
	{
		if (!program->grouped)
			run_rows();
		else if (cuda::uses_group_table(*lowered))
			run_groups();
		else
			run_aggregates();
	}

	/* Without keys, in each lane's own accumulators. */
	void		run_aggregates()
	{
		std::vector<cuda::LaunchState> state(1);
		Area		area(program, 1);
		uint32_t	first = 0;

		choose_shape(0);
		for (uint32_t end : random_cuts(device_table.npads, rng))
		{
			launch(first, end, nullptr, nullptr);
			first = end;
		}
		EXPECT_EQ(cudaMemcpy(state.data(), scratch.state, sizeof(cuda::LaunchState), cudaMemcpyDeviceToHost), cudaSuccess);
		result.outcome.errors = cuda::emit_aggregates(*lowered, state[0], table.nrows(), area.memory.get(), area.capacity);
		if (result.outcome.errors == 0)
			read_area(program, area.memory.get(), area.capacity, 1, &result.outcome);
	}

	/* Rows, unit by unit: a unit is one or more pads of a tablet, a slice one or more units. */
	void		run_rows()
	{
		std::vector<cuda::RowSliceUnit> units;
		std::vector<std::unique_ptr<Area>> areas;
		const uint32_t unit_pads = 1 + pick_int(rng, 3);
		uint32_t	pad = 0, first = 0;

		for (const auto &tablet : table.tablets)
			for (uint32_t left = tablet->padded_rows / TABLET_PAD_ROWS; left > 0;)
			{
				const uint32_t n = std::min(left, unit_pads);

				areas.push_back(std::make_unique<Area>(program, unit_pads * TABLET_PAD_ROWS));
				units.push_back(cuda::RowSliceUnit{areas.back()->memory.get(), pad, n});
				pad += n;
				left -= n;
			}
		choose_shape(0);
		for (uint32_t end : random_cuts(static_cast<uint32_t>(units.size()), rng))
		{
			const uint32_t from = units[first].first_pad, to = units[end - 1].first_pad + units[end - 1].npads;
			std::vector<cuda::UnitOutcome> outcomes(end - first, cuda::UnitOutcome{~0u, ~0u});
			DeviceMemory staging_memory;
			const cuda::RowStaging staging = cuda::row_staging(*lowered, to - from, staging_memory.get(cuda::row_staging_bytes(*lowered, to - from)));

			launch(from, to, &staging, nullptr);
			EXPECT_EQ(cuda::compact_rows(*lowered, staging, from, &units[first], end - first, unit_pads * TABLET_PAD_ROWS,
										 outcomes.data(), nullptr), cudaSuccess);
			for (uint32_t u = first; u < end; u++)
			{
				Outcome		unit;

				unit.errors = outcomes[u - first].errors;
				if (unit.errors == 0)
					read_area(program, areas[u]->memory.get(), areas[u]->capacity, outcomes[u - first].rows, &unit);
				result.outcome.errors |= unit.errors;
				result.outcome.rows.insert(result.outcome.rows.end(), unit.rows.begin(), unit.rows.end());
				result.units.push_back(std::move(unit));
			}
			first = end;
		}
	}

	/*
	 * With keys, or with aggregates that need a table. Sometimes in little memory
	 * first, so that the table overflows and the job begins again.
	 */
	void		run_groups()
	{
		constexpr uint64_t enough = 256 << 20;
		bool		small = chance(rng, 40);

		for (int attempt = 0;;)
		{
			cuda::GroupPlan plan;

			if (small && cuda::plan_groups(*lowered, table.nrows(), 16384 << pick_int(rng, 5), 0, &plan) != nullptr)
				small = false;
			if (!small)
				result.refused = cuda::plan_groups(*lowered, table.nrows(), enough, attempt, &plan);
			if (result.refused)
				return;
			if (try_groups(plan))
				return;
			result.overflows++;
			attempt += small ? 0 : 1;
			small = false;
		}
	}

	DeviceResult result;

private:
	bool		try_groups(const cuda::GroupPlan &plan)
	{
		DeviceMemory table_memory;
		const cuda::GroupTable groups = cuda::group_table(*lowered, plan, table_memory.get(plan.table_bytes));
		cuda::GroupOutcome outcome = {};
		uint32_t	first = 0;

		result.table = plan.kind == cuda::GroupTableKind::Dense ? (plan.shared_all ? "dense, shared" : plan.shared_slots ? "dense, some shared" : "dense")
			: plan.shared_slots ? "hashed, some shared" : "hashed";
		choose_shape(plan.shared_bytes);
		EXPECT_EQ(cuda::reset_groups(*lowered, groups, nullptr), cudaSuccess);
		EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
		for (uint32_t end : random_cuts(device_table.npads, rng))
		{
			launch(first, end, nullptr, &groups);
			first = end;
		}
		EXPECT_EQ(cuda::finish_groups(*lowered, groups, scratch.state, &outcome, nullptr), cudaSuccess);
		if (outcome.overflow)
			return false;
		result.outcome.errors = outcome.errors;
		for (uint64_t at = 0; outcome.errors == 0 && at < outcome.ngroups;)
		{
			Area		area(program, 64 << pick_int(rng, 8));
			const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(area.capacity, outcome.ngroups - at));

			EXPECT_EQ(cuda::emit_groups(*lowered, groups, at, n, area.memory.get(), area.capacity, nullptr), cudaSuccess);
			read_area(program, area.memory.get(), area.capacity, n, &result.outcome);
			at += n;
		}
		return true;
	}

	void		choose_shape(uint32_t group_bytes)
	{
		EXPECT_EQ(cuda::choose_shape(*lowered, device_table.npads, &shape, group_bytes), cudaSuccess);
		/* Tables here are small: units as long as those of large ones, and blocks that have many. */
		while (shape.unit_rows < TABLET_PAD_ROWS && chance(rng, 40))
			shape.unit_rows *= 2;
		if (chance(rng, 40))
			shape.blocks = 1;
	}

	/* Pads [first, end). */
	void		launch(uint32_t first, uint32_t end, const cuda::RowStaging *rows, const cuda::GroupTable *groups)
	{
		EXPECT_EQ(cuda::launch_slice(*lowered, shape, scratch, cuda::SliceArgs{device_table, first, end - first, nullptr, rows, groups}, nullptr),
				  cudaSuccess);
	}

	const Program *program;
	const Table &table;
	Rng			rng;
	std::unique_ptr<cuda::DeviceProgram> lowered;
	DeviceMemory memory;
	cuda::DeviceTable device_table = {};
	cuda::LaunchShape shape = {};
	cuda::LaunchScratch scratch = {};
};

inline DeviceResult
run_device(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run)
{
	DeviceJob	job(program, table, params, run);

	if (!job.result.refused)
		job.run();
	return std::move(job.result);
}

}  // namespace reference
}  // namespace gpuvm

#endif
