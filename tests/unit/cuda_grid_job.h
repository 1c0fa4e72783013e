/*
 * cuda_grid_job.h: two sets of rows with all their pairs, and programs over these run on the emulated device, in slices of
 * outer pads and inner rows.
 */
#ifndef GPUVM_TESTS_CUDA_GRID_JOB_H
#define GPUVM_TESTS_CUDA_GRID_JOB_H

#include "cuda_fixture.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* Two sides with columns of every type, and all their pairs, inner row by inner row. */
struct Sides
{
	Table		outer, inner, pairs;
	MapSet		maps;

	uint16_t	uniform_from() const { return static_cast<uint16_t>(outer.columns.size()); }
};

Profile
random_profile(Rng &rng, bool tame)
{
	Profile		profile = {pick_int(rng, tame ? 4 : 5), pick_int(rng, 3) == 0 ? 0 : pick_int(rng, 4) == 0 ? 100 : pick_int(rng, 40),
		static_cast<int64_t>(rng() % 2000000) - 1000000};

	if (tame && chance(rng, 60))
		profile.offset = 3;
	return profile;
}

void
add_column(Rng &rng, Table *table, Type type, const Profile &profile)
{
	Column		column{type, {}};

	for (uint32_t r = std::accumulate(table->tablet_rows.begin(), table->tablet_rows.end(), 0u); r > 0; r--)
		column.rows.push_back(random_value(type, profile, rng));
	table->columns.push_back(std::move(column));
}

/* The table of all pairs; masked where the outer row is. */
void
make_pairs(Sides *sides)
{
	const uint32_t nouter = sides->outer.nrows(), ninner = sides->inner.nrows();
	const std::vector<bool> masked = sides->outer.masked_bits();
	std::vector<bool> bits;

	sides->pairs = Table();
	sides->pairs.tablet_rows = {nouter * ninner};
	for (const Column &c : sides->outer.columns)
	{
		Column		column{c.type, {}};

		for (uint32_t i = 0; i < ninner; i++)
			column.rows.insert(column.rows.end(), c.rows.begin(), c.rows.end());
		sides->pairs.columns.push_back(std::move(column));
	}
	for (const Column &c : sides->inner.columns)
	{
		Column		column{c.type, {}};

		for (uint32_t i = 0; i < ninner; i++)
			column.rows.insert(column.rows.end(), nouter, c.rows[i]);
		sides->pairs.columns.push_back(std::move(column));
	}
	sides->pairs.build();
	for (uint32_t i = 0; i < ninner; i++)
		bits.insert(bits.end(), masked.begin(), masked.end());
	sides->pairs.mask(bits);
}

Sides
random_sides(Rng &rng, bool tame)
{
	static const uint32_t outer_sizes[] = {1, 63, 512, 700, 2048, 4096, 4500}, inner_sizes[] = {1, 2, 7, 31, 32, 33, 40, 65};
	Sides		sides;
	uint32_t	ninner = inner_sizes[pick_int(rng, 8)], n = 0;

	for (int t = 1 + pick_int(rng, 3); t > 0; t--)
	{
		const uint32_t rows = outer_sizes[pick_int(rng, 7)];

		if (n > 0 && (n + rows) * ninner > 60000)
			continue;
		sides.outer.tablet_rows.push_back(rows);
		n += rows;
	}
	sides.inner.tablet_rows = {std::max(1u, std::min(ninner, 60000 / n))};
	for (Table *side : {&sides.outer, &sides.inner})
	{
		for (Type type : VALUE_TYPES)
			add_column(rng, side, type, random_profile(rng, tame));
		side->build();
	}
	if (chance(rng, 30))
		mask_randomly(rng, &sides.outer);
	make_pairs(&sides);
	sides.maps = random_maps(rng, tame);
	return sides;
}

/* The table's columns as row sets have them: whole, at natural width. */
cuda::DeviceChunk
whole_column(const Column &column, uint32_t capacity, DeviceMemory *memory)
{
	const size_t width = static_cast<size_t>(type_natural_width(column.type));
	std::vector<char> values(std::max<size_t>(1, capacity * width), 0x5a);
	std::vector<uint8_t> nulls((capacity + 7) / 8);
	bool		any = false;

	for (size_t r = 0; r < column.rows.size(); r++)
	{
		const Value &v = column.rows[r];
		const float f = static_cast<float>(v.d);
		const void *from = column.type == Type::F32 ? static_cast<const void *>(&f) : column.type == Type::F64 ? static_cast<const void *>(&v.d) : &v.i;

		if (v.null)
			nulls[r / 8] = static_cast<uint8_t>(nulls[r / 8] | 1u << r % 8);
		else
			memcpy(values.data() + r * width, from, width);
		any |= v.null;
	}
	return cuda::DeviceChunk{reinterpret_cast<uint64_t>(memory->copy(values.data(), values.size())),
		any ? reinterpret_cast<uint64_t>(memory->copy(nulls.data(), nulls.size())) : 0, 0, static_cast<uint32_t>(width), 0};
}

struct GridRun
{
	uint16_t	rows_per_lane;
	bool		trust_ranges;
	bool		row_set;		/* outer rows as whole columns */
	cuda::MarkKind mark;
	uint64_t	total_rows;		/* 0: as many as there are */
	uint64_t	seed;
};

/* A program over pairs: lowered, copied, run in slices of outer pads and inner rows. */
class GridJob
{
public:
	GridJob(const Program *program, const Sides &sides, const std::vector<ParamValue> &params, const GridRun &run)
		: program(program), sides(sides), run_(run), rng(run.seed), lowered(std::make_unique<cuda::DeviceProgram>())
	{
		refused = lower(params);
		if (refused)
			return;
		copy_outer();
		copy_inner();
		gpuvm_emulated::set_seed(run.seed);
		EXPECT_EQ(cuda::create_scratch(&scratch), cudaSuccess);
		EXPECT_EQ(cuda::send_long_lists(*lowered, scratch, nullptr), cudaSuccess);
		send_maps(program, sides.maps.maps.data(), &memory, &scratch);
		EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
	}
	~GridJob()
	{
		cuda::destroy_scratch(&scratch);
	}

	void		run()
	{
		if (run_.mark == cuda::MarkKind::Listed)
			run_lists();
		else if (run_.mark != cuda::MarkKind::None)
			run_marks();
		else if (!program->grouped)
			run_rows();
		else if (cuda::uses_group_table(*lowered))
			run_groups();
		else
			run_aggregates();
	}

	const char *refused;
	std::string table;
	Outcome		outcome;
	std::vector<bool> marks;	/* by outer row, or by pair */
	cuda::OpSet	op_set() const { return lowered->op_set; }
	int			hoisted() const { return lowered->grid.loop_begin - 1; }
	bool		by_eights() const { return lowered->grid.pairs != 0; }

private:
	const char *lower(const std::vector<ParamValue> &params)
	{
		std::vector<cuda::ColumnBinding> columns;
		cuda::LowerOptions options = {run_.rows_per_lane, run_.trust_ranges, 0, !sides.outer.masked.empty()};

		for (const Table *side : {&sides.outer, &sides.inner})
			for (size_t c = 0; c < side->columns.size(); c++)
			{
				cuda::ColumnBinding binding = {side->summaries[c], 8};

				if (side == &sides.inner || run_.row_set)
					binding.summary.max_width = binding.min_width = static_cast<uint8_t>(type_natural_width(side->columns[c].type));
				else
					for (const auto &tablet : side->tablets)
						binding.min_width = std::min(binding.min_width, tablet_chunks(tablet.get())[c].width);
				columns.push_back(binding);
			}
		options.grid = true;
		options.uniform_from = sides.uniform_from();
		options.mark = run_.mark;
		return cuda::lower(cuda::LowerInput{program, params.data(), columns.data(), static_cast<uint32_t>(columns.size()),
						   run_.total_rows ? run_.total_rows : sides.pairs.nrows(), options, sides.maps.maps.data()},
						   lowered.get());
	}

	void		copy_outer()
	{
		if (!run_.row_set)
		{
			device_table = copy_table(sides.outer, *lowered, &memory);
			return;
		}

		const uint32_t nrows = sides.outer.nrows(), npads = (nrows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;
		const cuda::DeviceTablet tablet = {nrows, 0};
		std::vector<cuda::DeviceChunk> chunks;
		std::vector<cuda::DevicePad> pads;

		for (int c = 0; c < lowered->ncolumns; c++)
			chunks.push_back(whole_column(sides.outer.columns[lowered->columns[c].table_column], npads * TABLET_PAD_ROWS, &memory));
		for (uint32_t p = 0; p < npads; p++)
			pads.push_back(cuda::DevicePad{0, p * TABLET_PAD_ROWS});
		device_table = cuda::DeviceTable{memory.copy(&tablet, 1), chunks.empty() ? nullptr : memory.copy(chunks.data(), chunks.size()),
			memory.copy(pads.data(), npads), npads, 0};
	}

	void		copy_inner()
	{
		std::vector<cuda::DeviceChunk> chunks;

		for (int u = 0; u < lowered->grid.nuniforms; u++)
			chunks.push_back(whole_column(sides.inner.columns[lowered->grid.uniforms[u].table_column - sides.uniform_from()],
										  sides.inner.nrows(), &memory));
		inner_columns = chunks.empty() ? nullptr : memory.copy(chunks.data(), chunks.size());
	}

	void		choose_shape(uint32_t group_bytes)
	{
		EXPECT_EQ(cuda::choose_shape(*lowered, device_table.npads, &shape, group_bytes, sides.inner.nrows()), cudaSuccess);
		while (shape.unit_rows < TABLET_PAD_ROWS && chance(rng, 20))
			shape.unit_rows *= 2;
		if (chance(rng, 60))
			shape.unit_inner = 1u << pick_int(rng, 8);
		if (chance(rng, 40))
			shape.blocks = 1;
	}

	/* Calls f(first pad, end, first inner row, end) for the slices. */
	template <typename F>
	void		slices(F f)
	{
		uint32_t	pad = 0;

		for (uint32_t end : random_cuts(device_table.npads, rng))
		{
			uint32_t	row = 0;

			for (uint32_t row_end : random_cuts(sides.inner.nrows(), rng))
			{
				f(pad, end, row, row_end);
				row = row_end;
			}
			pad = end;
		}
	}

	void		launch(uint32_t first, uint32_t end, uint32_t row, uint32_t row_end, const cuda::RowStaging *rows, const cuda::GroupTable *groups,
					   uint32_t *marks_at = nullptr, const cuda::PairList &list = {})
	{
		cuda::SliceArgs args = {device_table, first, end - first, nullptr, rows, groups};

		args.inner_columns = inner_columns;
		args.inner_first = row;
		args.inner_rows = row_end - row;
		args.marks = marks_at;
		args.list = list;
		EXPECT_EQ(cuda::launch_slice(*lowered, shape, scratch, args, nullptr), cudaSuccess);
	}

	uint32_t	state_errors()
	{
		cuda::LaunchState state;

		EXPECT_EQ(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost), cudaSuccess);
		return state.errors;
	}

	void		run_aggregates()
	{
		cuda::LaunchState state;
		Area		area(program, 1);

		choose_shape(0);
		slices([&](uint32_t first, uint32_t end, uint32_t row, uint32_t row_end) { launch(first, end, row, row_end, nullptr, nullptr); });
		EXPECT_EQ(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost), cudaSuccess);
		outcome.errors = cuda::emit_aggregates(*lowered, state, sides.pairs.nrows(), area.memory.get(), area.capacity);
		if (outcome.errors == 0)
			read_area(program, area.memory.get(), area.capacity, 1, &outcome);
	}

	void		run_rows()
	{
		choose_shape(0);
		slices([&](uint32_t first, uint32_t end, uint32_t row, uint32_t row_end)
		{
			const uint32_t npads = (end - first) * (row_end - row), unit_pads = 1 + pick_int(rng, 3);
			DeviceMemory staging_memory;
			const cuda::RowStaging staging = cuda::row_staging(*lowered, npads, staging_memory.get(cuda::row_staging_bytes(*lowered, npads)));
			std::vector<cuda::RowSliceUnit> units;
			std::vector<std::unique_ptr<Area>> areas;

			for (uint32_t pad = 0; pad < npads; pad += unit_pads)
			{
				areas.push_back(std::make_unique<Area>(program, unit_pads * TABLET_PAD_ROWS));
				units.push_back(cuda::RowSliceUnit{areas.back()->memory.get(), pad, std::min(unit_pads, npads - pad)});
			}

			std::vector<cuda::UnitOutcome> outcomes(units.size(), cuda::UnitOutcome{~0u, ~0u});

			launch(first, end, row, row_end, &staging, nullptr);
			EXPECT_EQ(cuda::compact_rows(*lowered, staging, 0, units.data(), static_cast<uint32_t>(units.size()), unit_pads * TABLET_PAD_ROWS,
										 outcomes.data(), nullptr), cudaSuccess);
			for (size_t u = 0; u < units.size(); u++)
			{
				outcome.errors |= outcomes[u].errors;
				if (outcomes[u].errors == 0)
					read_area(program, areas[u]->memory.get(), areas[u]->capacity, outcomes[u].rows, &outcome);
			}
		});
		EXPECT_EQ(outcome.errors, state_errors());
	}

	void		run_groups()
	{
		constexpr uint64_t enough = 64 << 20;

		for (int attempt = 0;; attempt++)
		{
			cuda::GroupPlan plan;
			cuda::GroupOutcome got = {};

			refused = cuda::plan_groups(*lowered, sides.pairs.nrows(), enough, attempt, &plan, chance(rng, 30) ? 2 : cuda::PARTITIONS_THAT_PAY);
			if (refused)
				return;

			DeviceMemory table_memory;
			const cuda::GroupTable groups = cuda::group_table(*lowered, plan, table_memory.get(plan.table_bytes));

			table = plan.partition_bits ? "partitions" : plan.kind == cuda::GroupTableKind::Dense ? "dense groups" : "hashed groups";
			choose_shape(plan.shared_bytes);
			EXPECT_EQ(cuda::reset_groups(*lowered, groups, nullptr), cudaSuccess);
			EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
			slices([&](uint32_t first, uint32_t end, uint32_t row, uint32_t row_end) { launch(first, end, row, row_end, nullptr, &groups); });
			EXPECT_EQ(cuda::finish_groups(*lowered, groups, scratch.state, &got, nullptr), cudaSuccess);
			if (got.overflow)
				continue;
			outcome.errors = got.errors;
			for (uint64_t at = 0; got.errors == 0 && at < got.ngroups;)
			{
				Area		area(program, 4096);
				const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(area.capacity, got.ngroups - at));

				EXPECT_EQ(cuda::emit_groups(*lowered, groups, at, n, area.memory.get(), area.capacity, nullptr), cudaSuccess);
				read_area(program, area.memory.get(), area.capacity, n, &outcome);
				at += n;
			}
			return;
		}
	}

	/* Where the table's outer rows lie among the rows of its pads. */
	std::vector<uint32_t> places() const
	{
		std::vector<uint32_t> at;
		uint32_t	pads = 0, row = 0;

		for (uint32_t n : run_.row_set ? std::vector<uint32_t>{sides.outer.nrows()} : sides.outer.tablet_rows)
		{
			for (uint32_t i = 0; i < n; i++, row++)
				at.push_back(pads * TABLET_PAD_ROWS + i);
			pads += (n + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;
		}
		return at;
	}

	/* Each slice with room for all of its pairs, and once more with too little, which is said. */
	void		run_lists()
	{
		const std::vector<uint32_t> place = places();
		const uint32_t nouter = sides.outer.nrows();

		choose_shape(0);
		marks.assign(sides.pairs.nrows(), false);
		slices([&](uint32_t first, uint32_t end, uint32_t row, uint32_t row_end)
		{
			DeviceMemory lists;
			const uint32_t most = (end - first) * TABLET_PAD_ROWS * (row_end - row);
			cuda::RowSetState state = {};
			cuda::PairList list = {reinterpret_cast<uint32_t *>(lists.get(most * sizeof(uint32_t))), reinterpret_cast<uint32_t *>(lists.get(most * sizeof(uint32_t))),
				lists.copy(&state, 1), most};

			launch(first, end, row, row_end, nullptr, nullptr, nullptr, list);
			EXPECT_EQ(cudaMemcpy(&state, list.state, sizeof(state), cudaMemcpyDeviceToHost), cudaSuccess);
			EXPECT_EQ(state.full, 0u);
			ASSERT_LE(state.nrows, most);

			std::vector<uint32_t> outer(state.nrows), inner(state.nrows);

			EXPECT_EQ(cudaMemcpy(outer.data(), list.outer, state.nrows * sizeof(uint32_t), cudaMemcpyDeviceToHost), cudaSuccess);
			EXPECT_EQ(cudaMemcpy(inner.data(), list.inner, state.nrows * sizeof(uint32_t), cudaMemcpyDeviceToHost), cudaSuccess);
			for (uint32_t i = 0; i < state.nrows; i++)
			{
				const auto	at = std::find(place.begin(), place.end(), outer[i]);

				ASSERT_TRUE(at != place.end() && inner[i] >= row && inner[i] < row_end) << outer[i] << " " << inner[i];

				const size_t pair = inner[i] * nouter + static_cast<size_t>(at - place.begin());

				EXPECT_FALSE(marks[pair]) << "listed twice";
				marks[pair] = true;
			}
			if (state.nrows == 0)
				return;

			const uint32_t all = state.nrows;

			state = {};
			list.room = all - 1;
			EXPECT_EQ(cudaMemcpy(list.state, &state, sizeof(state), cudaMemcpyHostToDevice), cudaSuccess);
			launch(first, end, row, row_end, nullptr, nullptr, nullptr, list);
			EXPECT_EQ(cudaMemcpy(&state, list.state, sizeof(state), cudaMemcpyDeviceToHost), cudaSuccess);
			EXPECT_EQ(state.full, 1u);
			EXPECT_EQ(state.nrows, all);
		});
		outcome.errors = state_errors();
	}

	void		run_marks()
	{
		const std::vector<uint32_t> place = places();
		const uint32_t nouter = sides.outer.nrows();
		const bool	pairs = run_.mark == cuda::MarkKind::Pairs;
		uint32_t   *rows_at = nullptr;
		const size_t row_bytes = device_table.npads * (TABLET_PAD_ROWS / 8);

		choose_shape(0);
		if (!pairs)
		{
			rows_at = reinterpret_cast<uint32_t *>(memory.get(row_bytes));
			EXPECT_EQ(cudaMemset(rows_at, 0, row_bytes), cudaSuccess);
		}
		marks.assign(pairs ? sides.pairs.nrows() : nouter, false);

		auto		bit = [](const std::vector<uint32_t> &words, size_t i) { return (words[i / 32] >> (i % 32) & 1) != 0; };

		slices([&](uint32_t first, uint32_t end, uint32_t row, uint32_t row_end)
		{
			const size_t rows = (end - first) * TABLET_PAD_ROWS, bytes = rows / 8 * (row_end - row);
			DeviceMemory pair_memory;
			uint32_t   *to = pairs ? reinterpret_cast<uint32_t *>(pair_memory.get(bytes)) : rows_at;
			std::vector<uint32_t> words(bytes / 4);
			size_t		set = 0, found = 0;

			EXPECT_EQ(pairs ? cudaMemset(to, 0, bytes) : cudaSuccess, cudaSuccess);
			launch(first, end, row, row_end, nullptr, nullptr, to);
			if (!pairs)
				return;
			EXPECT_EQ(cudaMemcpy(words.data(), to, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
			for (uint32_t word : words)
				set += static_cast<size_t>(__builtin_popcount(word));
			for (uint32_t i = row; i < row_end; i++)
				for (uint32_t o = 0; o < nouter; o++)
					if (place[o] / TABLET_PAD_ROWS >= first && place[o] / TABLET_PAD_ROWS < end &&
						bit(words, (i - row) * rows + place[o] - first * TABLET_PAD_ROWS))
					{
						marks[i * nouter + o] = true;
						found++;
					}
			EXPECT_EQ(set, found) << "marks where there are no rows";
		});
		if (!pairs)
		{
			std::vector<uint32_t> words(row_bytes / 4);

			EXPECT_EQ(cudaMemcpy(words.data(), rows_at, row_bytes, cudaMemcpyDeviceToHost), cudaSuccess);
			for (uint32_t o = 0; o < nouter; o++)
				marks[o] = bit(words, place[o]);
		}
		outcome.errors = state_errors();
	}

	const Program *program;
	const Sides &sides;
	GridRun		run_;
	Rng			rng;
	std::unique_ptr<cuda::DeviceProgram> lowered;
	DeviceMemory memory;
	cuda::DeviceTable device_table = {};
	const cuda::DeviceChunk *inner_columns = nullptr;
	cuda::LaunchShape shape = {};
	cuda::LaunchScratch scratch = {};
};

}  // namespace

#endif
