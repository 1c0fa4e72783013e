/*
 * cuda_grid_test.cc: grids, which are programs over the pairs of two sets of rows, on
 * the emulated device, against the reference interpreter over a table of all
 * pairs: random programs into rows, aggregates, groups and marks, outer rows in
 * tablets, masked or not, and as whole columns; and small programs by hand.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_grid_job.h"
#include "vm_generator.h"

namespace {

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
	for (cuda::MarkKind mark : {cuda::MarkKind::Rows, cuda::MarkKind::Pairs, cuda::MarkKind::Listed})
	{
		const GridRun run = random_run(rng, sides, static_cast<uint16_t>(8 << pick_int(rng, 2)), mark);
		GridJob		job(marking.get(), sides, params, run);
		std::vector<bool> marks(mark == cuda::MarkKind::Rows ? nouter : sides.pairs.nrows());

		if (!job.refused)
			job.run();
		/* of loops that compare, and no others */
		if (mark == cuda::MarkKind::Listed && job.refused)
			continue;
		if (!count_run(job, seed, marking.get(), run, tally))
			continue;
		/* rows that are marked already need not be looked at again, so their errors may be missed */
		if (mark != cuda::MarkKind::Rows)
		{
			ASSERT_EQ(job.outcome.errors != 0, expected.errors != 0) << where(seed, marking.get(), run);
		}
		ASSERT_EQ(job.outcome.errors & ~expected.errors, 0u) << where(seed, marking.get(), run);
		if (expected.errors)
			continue;
		tally->clean++;
		tally->rows += expected.rows.size();
		tally->seen[mark == cuda::MarkKind::Rows ? "marks of rows" : mark == cuda::MarkKind::Pairs ? "marks of pairs" : "lists of pairs"]++;
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
	run_random(Sink::Theta, 100, {"eight inner rows at a time", "one inner row after the other", "something hoisted", "marks of rows", "marks of pairs", "lists of pairs"});
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
	EXPECT_GT(clean, 5);
	EXPECT_GT(marked, 100);
}
