/*
 * cuda_grid_test.cc: grids, which are programs over the pairs of two sets of rows, on
 * the emulated device, against the reference interpreter over a table of all
 * pairs: random programs into rows, aggregates, groups and marks, outer rows in
 * tablets, masked or not, and as whole columns; and small programs by hand.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
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
		if (run_.mark != cuda::MarkKind::None)
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
					   uint32_t *marks_at = nullptr)
	{
		cuda::SliceArgs args = {device_table, first, end - first, nullptr, rows, groups};

		args.inner_columns = inner_columns;
		args.inner_first = row;
		args.inner_rows = row_end - row;
		args.marks = marks_at;
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

struct Tally
{
	int			programs = 0, runs = 0, unfit = 0, clean = 0;
	size_t		rows = 0;
	std::map<std::string, int> seen;

	void		print() const
	{
		printf("%d programs, %d runs, %d did not fit, %d without an error, %zu rows\n", programs, runs, unfit, clean, rows);
		for (const auto &[what, n] : seen)
			printf("  %s: %d times\n", what.c_str(), n);
	}

	/* A test of refusals, of errors or of one way alone would prove little. */
	void		expect(std::initializer_list<const char *> wanted) const
	{
		print();
		if (programs < 40)
			return;
		EXPECT_LE(unfit * 100, runs * 30);
		EXPECT_GT(clean, runs / 3);
		EXPECT_GT(rows, static_cast<size_t>(programs / 2));
		for (const char *what : wanted)
			EXPECT_GT(seen.count(what), 0u) << what;
	}
};

std::string
where(uint64_t seed, const Program *program, const GridRun &run)
{
	return "seed " + std::to_string(seed) + " rows a lane " + std::to_string(run.rows_per_lane) + " trust " + std::to_string(run.trust_ranges) +
		" row set " + std::to_string(run.row_set) + " order " + std::to_string(run.seed) + "\n" + program_text(program);
}

GridRun
random_run(Rng &rng, const Sides &sides, uint16_t rows_per_lane, cuda::MarkKind mark)
{
	return GridRun{rows_per_lane, chance(rng, 50), sides.outer.masked.empty() && chance(rng, 50), mark,
		chance(rng, 20) ? uint64_t{1} << (33 + pick_int(rng, 20)) : 0, rng() % 8};
}

/* How the run went, into the tally. False: there is nothing to compare. */
bool
count_run(const GridJob &job, uint64_t seed, const Program *program, const GridRun &run, Tally *tally)
{
	tally->runs++;
	if (job.refused)
	{
		tally->unfit++;
		tally->seen[std::string("refused: ") + job.refused]++;
		return false;
	}
	tally->seen[job.op_set() == cuda::OpSet::All ? "all operations" : "wide operations"]++;
	tally->seen[job.by_eights() ? "eight inner rows at a time" : "one inner row after the other"]++;
	tally->seen[job.hoisted() > 0 ? "something hoisted" : "nothing hoisted"]++;
	tally->seen[run.row_set ? "outer rows in a row set" : "outer rows in tablets"]++;
	if (!job.table.empty())
		tally->seen[job.table]++;
	return seed != ~uint64_t{0} && program != nullptr;
}

/* Rows, aggregates or groups. */
void
compare(uint64_t seed, const Program *program, const Sides &sides, const std::vector<ParamValue> &params, Rng &rng, Tally *tally)
{
	const Outcome expected = Interpreter(program, sides.pairs, params.data(), sides.maps.maps.data()).run();
	std::vector<std::string> expected_rows = rows_text(program, expected);

	std::sort(expected_rows.begin(), expected_rows.end());
	tally->programs++;
	if (!sides.outer.masked.empty())
		tally->seen["masked rows"]++;
	for (uint16_t rows_per_lane : {8, 16})
	{
		const GridRun run = random_run(rng, sides, rows_per_lane, cuda::MarkKind::None);
		GridJob		job(program, sides, params, run);

		if (!job.refused)
			job.run();
		if (!count_run(job, seed, program, run, tally))
			continue;
		ASSERT_EQ(job.outcome.errors != 0, expected.errors != 0) << job.outcome.errors << " " << expected.errors << " " << where(seed, program, run);
		ASSERT_EQ(job.outcome.errors & ~expected.errors, 0u) << where(seed, program, run);
		if (expected.errors)
			continue;
		tally->clean++;
		tally->rows += expected_rows.size();

		std::vector<std::string> got_rows = rows_text(program, job.outcome);

		std::sort(got_rows.begin(), got_rows.end());
		ASSERT_EQ(got_rows.size(), expected_rows.size()) << where(seed, program, run);
		for (size_t i = 0; i < got_rows.size(); i++)
			ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << where(seed, program, run);
	}
}

/*
 * A program whose one result is the row's number, for the reference, and the same
 * without results, which marks. False: the program cannot be made into such.
 */
bool
make_marking(const SealedProgram &from, SealedProgram *numbered, SealedProgram *marking)
{
	*numbered = from;

	Program    *program = const_cast<Program *>(numbered->get());
	Op		   *ops = const_cast<Op *>(program->ops());

	if (program->grouped || program->nresults != 1)
		return false;
	for (int i = 0; i < program->nops; i++)
	{
		if (ops[i].opcode == Opcode::Rowid)
			return false;
		if (ops[i].opcode == Opcode::ResultColumn)
			ops[i].type = Type::RowId;
		if (ops[i].opcode == Opcode::Result)
			ops[i - 1] = Op{Opcode::Rowid, Type::RowId, 0, ops[i].p1, 0, 0, 0};
	}
	*marking = *numbered;
	program = const_cast<Program *>(marking->get());
	ops = const_cast<Op *>(program->ops());
	program->nresults = 0;
	for (int i = 0; i < program->nops; i++)
		if (ops[i].opcode == Opcode::Result)
			ops[i].p2 = 0;
	return true;
}

void
compare_marks(uint64_t seed, const SealedProgram &numbered, const SealedProgram &marking, const Sides &sides, const std::vector<ParamValue> &params,
			  Rng &rng, Tally *tally)
{
	const Outcome expected = Interpreter(numbered.get(), sides.pairs, params.data(), sides.maps.maps.data()).run();
	const uint32_t nouter = sides.outer.nrows();

	tally->programs++;
	for (cuda::MarkKind mark : {cuda::MarkKind::Rows, cuda::MarkKind::Pairs})
	{
		const GridRun run = random_run(rng, sides, static_cast<uint16_t>(8 << pick_int(rng, 2)), mark);
		GridJob		job(marking.get(), sides, params, run);
		std::vector<bool> marks(mark == cuda::MarkKind::Rows ? nouter : sides.pairs.nrows());

		if (!job.refused)
			job.run();
		if (!count_run(job, seed, marking.get(), run, tally))
			continue;
		/* rows that are marked already need not be looked at again, so their errors may be missed */
		if (mark == cuda::MarkKind::Pairs)
		{
			ASSERT_EQ(job.outcome.errors != 0, expected.errors != 0) << where(seed, marking.get(), run);
		}
		ASSERT_EQ(job.outcome.errors & ~expected.errors, 0u) << where(seed, marking.get(), run);
		if (expected.errors)
			continue;
		tally->clean++;
		tally->rows += expected.rows.size();
		tally->seen[mark == cuda::MarkKind::Rows ? "marks of rows" : "marks of pairs"]++;
		for (const std::vector<Value> &row : expected.rows)
			marks[static_cast<size_t>(row[0].i) % marks.size()] = true;
		for (size_t i = 0; i < marks.size(); i++)
			ASSERT_EQ(job.marks[i], marks[i]) << "mark " << i << " " << where(seed, marking.get(), run);
	}
}

bool
has_rowid(const Program *program)
{
	for (int i = 0; i < program->nops; i++)
		if (program->ops()[i].opcode == Opcode::Rowid)
			return true;
	return false;
}

/*
 * A theta join: comparisons of a value of the outer row with one of the inner row, then
 * counts and sums, or marks (of pairs: a result, for make_marking()).
 */
SealedProgram
theta_join(Rng &rng, const Sides &sides, bool marks)
{
	auto		builder = new_builder();
	ProgramBuilder &b = *builder;
	const int	naggs = marks ? 0 : 1 + pick_int(rng, 4);
	std::vector<int64_t> sources;
	std::vector<int> column_ops;

	auto		column = [&](Type type, bool inner)
	{
		const Table &side = inner ? sides.inner : sides.outer;
		std::vector<int> columns;

		for (size_t c = 0; c < side.columns.size(); c++)
			if (side.columns[c].type == type)
				columns.push_back(static_cast<int>(c) + (inner ? sides.uniform_from() : 0));

		const int	reg = b.new_reg(type);

		b.emit(Opcode::Column, type, reg, columns[static_cast<size_t>(pick_int(rng, static_cast<int>(columns.size())))], 0);
		return reg;
	};

	b.emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < std::max(naggs, 1); c++)
		column_ops.push_back(b.emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b.add_name("c")));
	for (int a = 0; a < naggs; a++)
		sources.push_back(RESULT_FROM_AGG | a);
	if (!marks)
		b.emit(Opcode::AggOpen, Type::None, 0, naggs, b.add_aux(sources.data(), naggs));

	const int	parallel = b.emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (int n = 1 + pick_int(rng, 3); n > 0; n--)
	{
		static const Type types[] = {Type::I16, Type::I32, Type::I32, Type::I64, Type::F32, Type::F64};
		static const Opcode orders[] = {Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge, Opcode::Eq, Opcode::Ne};
		const Type	t = types[pick_int(rng, 6)];
		int			outer = column(t, false);

		if (type_is_int(t) && chance(rng, 30))
		{
			const int	more = column(t, false), reg = b.new_reg(t);

			b.emit(Opcode::BitXor, t, reg, outer, more);
			outer = reg;
		}

		int			inner = column(t, true);
		const bool	swap = chance(rng, 50);

		/* sums across both, some of which can be divided again */
		if ((t == Type::I32 || t == Type::I64) && chance(rng, 50))
		{
			const int	sum = b.new_reg(t), factor = b.new_reg(t), product = b.new_reg(t), number = b.new_reg(t), more = column(t, false);

			b.emit(Opcode::Integer, t, number, pick_int(rng, 200) - 100, 0);
			b.emit(Opcode::Integer, t, factor, chance(rng, 60) ? 1 : pick_int(rng, 5) - 2, 0);
			b.emit(Opcode::Mul, t, product, more, factor);
			b.emit(chance(rng, 50) ? Opcode::Add : Opcode::Sub, t, sum, swap ? inner : outer, swap ? outer : inner);
			outer = sum;
			inner = number;
			if (chance(rng, 40))
			{
				const int	other = chance(rng, 50) ? column(t, true) : number;

				inner = b.new_reg(t);
				b.emit(chance(rng, 50) ? Opcode::Add : Opcode::Sub, t, inner, product, other);
			}
		}

		b.emit(orders[pick_int(rng, 6)], t, swap ? inner : outer, swap ? outer : inner, b.nops + 1, VERDICT_DIES, chance(rng, 50) ? JUMP_IF_NULL : 0);
	}
	for (int a = 0; a < naggs; a++)
	{
		const AggFn fn = static_cast<AggFn>(pick_int(rng, 3));
		const Type	t = fn == AggFn::CountStar ? Type::None : fn == AggFn::Count ? VALUE_TYPES[pick_int(rng, 6)]
			: chance(rng, 30) ? Type::I16 : chance(rng, 50) ? Type::I32 : Type::I64;

		b.emit(Opcode::AggStep, t, a, fn == AggFn::CountStar ? -1 : column(t, chance(rng, 50)), -1, 0, static_cast<uint8_t>(fn));
		b.ops[column_ops[static_cast<size_t>(a)]].type = agg_result_type(fn, t);
	}
	if (marks)
	{
		const int	reg = b.new_reg(Type::I32);

		b.emit(Opcode::Integer, Type::I32, reg, 1, 0);
		b.emit(Opcode::Result, Type::None, reg, 1, 0);
	}
	b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
	b.emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b.failed);
	return seal(b);
}

enum class Sink { Rows, Groups, Marks, Theta };

void
run_random(Sink sink, int programs, std::initializer_list<const char *> wanted)
{
	const char *many = getenv("GPUVM_TEST_PROGRAMS"), *start = getenv("GPUVM_TEST_SEED");
	Tally		tally;
	uint64_t	seed = start ? strtoull(start, nullptr, 10) : 1;

	for (int n = many ? atoi(many) : programs; n > 0; seed++)
	{
		Rng			rng(seed);
		const bool	tame = chance(rng, 70);
		Sides		sides = random_sides(rng, tame);
		Generator	generator(rng, sides.pairs, tame, &sides.maps);
		const bool	marks = sink == Sink::Marks || (sink == Sink::Theta && chance(rng, 30));
		SealedProgram program = sink == Sink::Theta ? theta_join(rng, sides, marks) : generator.make(sink == Sink::Groups), numbered, marking;

		if (marks ? !make_marking(program, &numbered, &marking) : has_rowid(program.get()))
			continue;
		n--;
		if (marks)
			compare_marks(seed, numbered, marking, sides, generator.params, rng, &tally);
		else
			compare(seed, program.get(), sides, generator.params, rng, &tally);
		if (::testing::Test::HasFatalFailure())
			return;
	}
	tally.expect(wanted);
}

}  // namespace

TEST(CudaGridRandom, Rows)
{
	run_random(Sink::Rows, 60, {"all operations", "something hoisted", "masked rows", "outer rows in a row set", "outer rows in tablets"});
}

TEST(CudaGridRandom, Groups)
{
	run_random(Sink::Groups, 60, {"all operations", "something hoisted", "masked rows", "dense groups", "hashed groups", "partitions"});
}

TEST(CudaGridRandom, Marks)
{
	run_random(Sink::Marks, 60, {"all operations", "marks of rows", "marks of pairs", "something hoisted"});
}

TEST(CudaGridRandom, ThetaJoins)
{
	run_random(Sink::Theta, 100, {"eight inner rows at a time", "one inner row after the other", "something hoisted", "marks of rows", "marks of pairs"});
}

/* Marks of a program that is no grid. */
TEST(CudaGridRandom, MarksOfOneTable)
{
	const char *many = getenv("GPUVM_TEST_PROGRAMS");
	int			clean = 0, marked = 0;
	uint64_t	seed = 1;

	for (int n = many ? atoi(many) : 60; n > 0; seed++)
	{
		Rng			rng(seed);
		Table		table = random_table(rng, true);
		const MapSet maps = random_maps(rng, true);
		Generator	generator(rng, table, true, &maps);
		SealedProgram program = generator.make(false), numbered, marking;

		if (table.tablets.size() != 1 || !make_marking(program, &numbered, &marking))
			continue;
		n--;
		if (chance(rng, 30))
			mask_randomly(rng, &table);

		const Outcome expected = Interpreter(numbered.get(), table, generator.params.data(), maps.maps.data()).run();
		cuda::DeviceProgram lowered;
		std::vector<cuda::ColumnBinding> columns;
		cuda::LowerOptions options = {static_cast<uint16_t>(4 << pick_int(rng, 3)), chance(rng, 50), 0, !table.masked.empty()};
		DeviceMemory memory;
		cuda::LaunchScratch scratch;
		cuda::LaunchShape shape;
		cuda::LaunchState state;

		for (size_t c = 0; c < table.columns.size(); c++)
			columns.push_back(cuda::ColumnBinding{table.summaries[c], tablet_chunks(table.tablets[0].get())[c].width});
		options.mark = cuda::MarkKind::Rows;
		if (cuda::lower(cuda::LowerInput{marking.get(), generator.params.data(), columns.data(), static_cast<uint32_t>(columns.size()), table.nrows(),
						options, maps.maps.data()}, &lowered))
			continue;

		cuda::SliceArgs args = {copy_table(table, lowered, &memory), 0, 0, nullptr, nullptr, nullptr};
		std::vector<uint32_t> words(args.table.npads * TABLET_PAD_ROWS / 32);
		std::vector<bool> want(table.nrows());

		args.marks = memory.copy(words.data(), words.size());
		gpuvm_emulated::set_seed(rng() % 8);
		ASSERT_EQ(cuda::create_scratch(&scratch), cudaSuccess);
		ASSERT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
		ASSERT_EQ(cuda::send_long_lists(lowered, scratch, nullptr), cudaSuccess);
		send_maps(marking.get(), maps.maps.data(), &memory, &scratch);
		ASSERT_EQ(cuda::choose_shape(lowered, args.table.npads, &shape), cudaSuccess);
		for (uint32_t end : random_cuts(args.table.npads, rng))
		{
			args.npads = end - args.first_pad;
			ASSERT_EQ(cuda::launch_slice(lowered, shape, scratch, args, nullptr), cudaSuccess);
			args.first_pad = end;
		}
		ASSERT_EQ(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost), cudaSuccess);
		ASSERT_EQ(cudaMemcpy(words.data(), args.marks, words.size() * 4, cudaMemcpyDeviceToHost), cudaSuccess);
		cuda::destroy_scratch(&scratch);
		ASSERT_EQ(state.errors != 0, expected.errors != 0) << "seed " << seed << "\n" << program_text(marking.get());
		if (expected.errors)
			continue;
		clean++;
		for (const std::vector<Value> &row : expected.rows)
			want[static_cast<size_t>(row[0].i)] = true;
		for (size_t i = 0; i < words.size() * 32; i++)
		{
			const bool	got = words[i / 32] >> (i % 32) & 1;

			ASSERT_EQ(got, i < want.size() && want[i]) << "mark " << i << " seed " << seed << "\n" << program_text(marking.get());
			marked += got;
		}
	}
	EXPECT_GT(clean, 10);
	EXPECT_GT(marked, 100);
}
