/*
 * cuda_review_test.cc: what random programs over small tables do not meet: programs
 * lowered for more rows than 32 bits count, registers that lanes jumped over, and
 * blocks that really run at once.
 *
 * GPUVM_TEST_PROGRAMS changes how many random programs, GPUVM_TEST_SEED where to start.
 */
#include <thread>

#include "cuda_fixture.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

void
compare(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run, const std::string &where,
		std::map<std::string, int> *seen)
{
	const Outcome expected = Interpreter(program, table, params.data()).run();
	const DeviceResult got = run_device(program, table, params, run);
	std::vector<std::string> expected_rows = rows_text(program, expected), got_rows = rows_text(program, got.outcome);

	(*seen)[got.refused ? got.refused : got.table ? got.table : "no table"]++;
	if (got.refused)
		return;
	ASSERT_EQ(got.outcome.errors != 0, expected.errors != 0) << got.outcome.errors << " " << expected.errors << " " << where;
	if (expected.errors)
		return;
	std::sort(expected_rows.begin(), expected_rows.end());
	std::sort(got_rows.begin(), got_rows.end());
	ASSERT_EQ(got_rows, expected_rows) << where;
}

/*
 * x / y where y is not 0, else x - y; and whether x < y and that is above z. The
 * branches jump over registers that are read behind them. In groups some AggSteps
 * are jumped over, too.
 */
SealedProgram
branches(Type type, bool grouped)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1, RESULT_FROM_AGG | 2, RESULT_FROM_AGG | 3, RESULT_FROM_AGG | 4};
	const Type	agg = agg_result_type(AggFn::Sum, type);
	const std::vector<Type> types = grouped ? std::vector<Type>{Type::I32, agg, Type::I64, agg, Type::I64, type} : std::vector<Type>{type, Type::Bool};
	auto		column = [&](int c, Type t)
	{
		const int	r = b->new_reg(t);

		b->emit(Opcode::Column, t, r, c, 0);
		return r;
	};

	b->grouped = grouped;
	b->ncursors = 1;
	b->nkeys = grouped ? 1 : 0;
	b->naggs = grouped ? 5 : 0;
	b->nresults = static_cast<int>(types.size());
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < b->nresults; c++)
		b->emit(Opcode::ResultColumn, types[c], c, 0, 0, b->add_name("c"));
	if (grouped)
		b->emit(Opcode::AggOpen, Type::None, 1, 5, b->add_aux(sources, 6));
	b->parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	const int	x = column(1, type), y = column(2, type), z = column(3, type);
	const int	zero = b->new_reg(type), there = b->new_reg(Type::Bool), u = b->new_reg(type), v = b->new_reg(type);
	const int	less = b->new_reg(Type::Bool), above = b->new_reg(Type::Bool);

	if (type_is_float(type))
		b->emit(Opcode::Float, type, zero, 0, 0, 0);
	else if (type == Type::I64)
		b->emit(Opcode::Int64, type, zero, 0, 0, 0);
	else
		b->emit(Opcode::Integer, type, zero, 0, 0);
	b->emit(Opcode::Ne, type, y, zero, there, 0, COMPARE_STORES);

	const int	no = b->emit(Opcode::IfNot, Type::Bool, there, 0, 0, VERDICT_JUMPS, JUMP_IF_NULL);

	b->emit(Opcode::Div, type, u, x, y);

	const int	yes = b->emit(Opcode::Goto, Type::None, 0, 0, 0);

	b->ops[no].p3 = b->nops;
	b->emit(Opcode::Sub, type, v, x, y);
	b->ops[yes].p3 = b->nops;

	const int	s = b->new_reg(type), both = b->new_reg(Type::Bool);

	b->emit(Opcode::Select, type, s, u, v, there);
	b->emit(Opcode::Lt, type, x, y, less, 0, COMPARE_STORES);

	const int	past = b->emit(Opcode::IfNot, Type::Bool, less, 0, 0, VERDICT_JUMPS);

	b->emit(Opcode::Gt, type, s, z, above, 0, COMPARE_STORES);
	b->ops[past].p3 = b->nops;
	b->emit(Opcode::And, Type::Bool, both, less, above);
	if (grouped)
	{
		const int64_t key = column(0, Type::I32);

		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);

		const int	over = b->emit(Opcode::If, Type::Bool, both, 0, 0, VERDICT_JUMPS);

		b->emit(Opcode::AggStep, type, 0, s, -1, 0, static_cast<uint8_t>(AggFn::Sum));
		b->emit(Opcode::AggStep, Type::None, 1, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->ops[over].p3 = b->nops;
		b->emit(Opcode::AggStep, type, 2, s, -1, 0, static_cast<uint8_t>(AggFn::Sum));
		b->emit(Opcode::AggStep, Type::None, 3, -1, both, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, type, 4, s, -1, 0, static_cast<uint8_t>(AggFn::Max));
	}
	else
	{
		const int	first = b->new_reg(type), second = b->new_reg(Type::Bool);

		b->emit(Opcode::Copy, type, first, s, 0);
		b->emit(Opcode::Copy, Type::Bool, second, both, 0);
		b->emit(Opcode::Result, Type::None, first, 2, 0);
	}
	b->converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	b->ops[b->parallel].p3 = b->converge;
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

}  // namespace

/* Also where no row of a warp takes a branch. */
TEST(CudaReview, RegistersThatRowsJumpedOver)
{
	std::map<std::string, int> seen;

	for (Type type : {Type::I16, Type::I32, Type::I64, Type::F32, Type::F64})
		for (int nulls : {0, 15})
		{
			Rng			rng(static_cast<uint64_t>(type));
			Table		table;
			Column		key{Type::I32, {}}, x{type, {}}, y{type, {}}, z{type, {}};

			for (int i = 0; i < 9000; i++)
			{
				const bool	zero = i < 3000 || (i >= 6000 && pick_int(rng, 3));

				key.rows.push_back(from_register(pick_int(rng, 9) - 4));
				for (Column *c : {&x, &y, &z})
				{
					const int	k = c == &y && zero ? 0 : pick_int(rng, 200) + (c == &y ? 1 : -100);

					c->rows.push_back(chance(rng, nulls) ? Value{} : type_is_float(type) ? from_register(k / 4.0) : from_register(k));
				}
			}
			table.columns = {key, x, y, z};
			table.tablet_rows = {4500, 4500};
			table.build();
			for (bool grouped : {false, true})
			{
				const SealedProgram sealed = branches(type, grouped);
				const CursorSchema schema = {4, table.types.data()};

				ASSERT_STREQ(verify_program(sealed.get(), sealed.get()->size, &schema, 1), nullptr);
				for (uint16_t lanes : {4, 8, 16})
				{
					compare(sealed.get(), table, {}, DeviceRun{lanes, true, lanes}, std::to_string(lanes) + " rows a lane\n" + program_text(sealed.get()), &seen);
					if (HasFatalFailure())
						return;
				}
			}
		}
	for (const auto &[what, times] : seen)
		printf("  %d: %s\n", times, what.c_str());
}

/* Counters, sums and the mark of a group are wider then. */
TEST(CudaReview, ProgramsForManyRows)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 100), first = setting("GPUVM_TEST_SEED", 1);
	std::map<std::string, int> seen;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		Rng			rng(seed);
		const Table table = random_table(rng, true);
		Generator	generator(rng, table, true);
		const SealedProgram sealed = generator.make(true, 3);
		static const uint16_t lanes[] = {4, 8, 16};
		static const uint64_t rows[] = {1ull << 33, 1ull << 32, (1ull << 32) - 1, 1ull << 31, 1ull << 40};
		const DeviceRun run = {lanes[rng() % 3], (rng() & 3) != 0, rng() % 4, rows[rng() % 5]};

		compare(sealed.get(), table, generator.params, run, "seed " + std::to_string(seed) + "\n" + program_text(sealed.get()), &seen);
		if (HasFatalFailure())
			break;
	}
	for (const auto &[what, times] : seen)
		printf("  %d: %s\n", times, what.c_str());
}

namespace {

/*
 * Groups by launches from several host threads into one table: the emulated device
 * runs a launch's blocks one after another, so that none meets another in the middle
 * of making a row. False: the table overflowed.
 */
bool
groups_at_once(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run, bool hashed, Outcome *out)
{
	constexpr uint32_t nthreads = 3;
	auto		lowered = std::make_unique<cuda::DeviceProgram>();
	DeviceMemory memory;
	cuda::GroupPlan plan;
	cuda::LaunchScratch scratch[nthreads];
	cuda::LaunchShape shape;
	cuda::GroupOutcome outcome = {};
	std::vector<std::thread> threads;

	EXPECT_EQ(lower_for(program, table, params, run, lowered.get()), nullptr);
	EXPECT_EQ(cuda::plan_groups(*lowered, table.nrows(), 1 << 26, 0, &plan), nullptr);
	if (hashed && plan.kind == cuda::GroupTableKind::Dense)
	{
		plan.kind = cuda::GroupTableKind::Hashed;
		plan.key_at = lowered->groups.row_bytes;
		plan.row_bytes = plan.key_at + 8;
		plan.entries = 32768;
		plan.probe_limit = 32768;
		plan.listed = plan.entries + 1;
		plan.table_bytes = 1024 + (plan.entries + 1ull) * plan.row_bytes + 4ull * plan.listed;
		plan.shared_all = false;
		plan.replica_bits = 0;
		plan.shared_slots = 64;
		plan.shared_bytes = cuda::group_area_bytes(lowered->groups.planes, 64, true);
	}

	const cuda::DeviceTable device_table = copy_table(table, *lowered, &memory);
	const cuda::GroupTable groups = cuda::group_table(*lowered, plan, memory.get(plan.table_bytes));

	gpuvm_emulated::set_seed(run.seed);
	EXPECT_EQ(cuda::choose_shape(*lowered, device_table.npads, &shape, plan.shared_bytes), cudaSuccess);
	EXPECT_EQ(cuda::reset_groups(*lowered, groups, nullptr), cudaSuccess);
	for (uint32_t t = 0; t < nthreads; t++)
	{
		EXPECT_EQ(cuda::create_scratch(&scratch[t]), cudaSuccess);
		EXPECT_EQ(cuda::reset_state(scratch[t], nullptr), cudaSuccess);
	}
	for (uint32_t t = 0; t < nthreads; t++)
		threads.emplace_back([&, t]
		{
			for (uint32_t pad = t; pad < device_table.npads; pad += nthreads)
				EXPECT_EQ(cuda::launch_slice(*lowered, shape, scratch[t], cuda::SliceArgs{device_table, pad, 1, nullptr, nullptr, &groups}, nullptr),
						  cudaSuccess);
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(cuda::finish_groups(*lowered, groups, scratch[0].state, &outcome, nullptr), cudaSuccess);
	out->errors = outcome.errors;
	for (uint32_t t = 1; t < nthreads; t++)
		out->errors |= scratch[t].state->errors;
	for (uint64_t at = 0; !outcome.overflow && out->errors == 0 && at < outcome.ngroups;)
	{
		Area		area(program, 4096);
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(area.capacity, outcome.ngroups - at));

		EXPECT_EQ(cuda::emit_groups(*lowered, groups, at, n, area.memory.get(), area.capacity, nullptr), cudaSuccess);
		read_area(program, area.memory.get(), area.capacity, n, out);
		at += n;
	}
	for (cuda::LaunchScratch &s : scratch)
		cuda::destroy_scratch(&s);
	return !outcome.overflow;
}

/* By the columns 0 .. nkeys - 1: count(*), and sum, min and max of the last. */
SealedProgram
grouped_by(const Table &table, int nkeys)
{
	auto		b = new_builder();
	const int	value = static_cast<int>(table.types.size()) - 1;
	const Type	type = table.types[value];
	const AggFn	fns[] = {AggFn::CountStar, AggFn::Sum, AggFn::Min, AggFn::Max};
	std::vector<int64_t> sources, keys;
	std::vector<int> regs;

	b->grouped = true;
	b->ncursors = 1;
	b->nkeys = nkeys;
	b->naggs = 4;
	b->nresults = nkeys + 4;
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < b->nresults; c++)
	{
		b->emit(Opcode::ResultColumn, c < nkeys ? table.types[c] : agg_result_type(fns[c - nkeys], type), c, 0, 0, b->add_name("c"));
		sources.push_back(c < nkeys ? c : RESULT_FROM_AGG | (c - nkeys));
	}
	b->emit(Opcode::AggOpen, Type::None, nkeys, 4, b->add_aux(sources.data(), b->nresults));
	b->parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	for (int c = 0; c <= value; c++)
	{
		regs.push_back(b->new_reg(table.types[c]));
		b->emit(Opcode::Column, table.types[c], regs[c], c, 0);
		if (c < nkeys)
			keys.push_back(regs[c]);
	}
	b->emit(Opcode::Group, Type::None, nkeys, b->add_aux(keys.data(), nkeys), 0);
	for (int i = 0; i < 4; i++)
		b->emit(Opcode::AggStep, i == 0 ? Type::None : type, i, i == 0 ? -1 : regs[value], -1, 0, static_cast<uint8_t>(fns[i]));
	b->converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	b->ops[b->parallel].p3 = b->converge;
	return seal(*b);
}

}  // namespace

/* Rows come in the same order to all threads, so that they make rows of the table for the same keys at the same time. */
TEST(CudaReview, BlocksMeetInATable)
{
	for (int nkeys : {1, 2, 3})
		for (Type type : {Type::I32, Type::I64, Type::F64})
		{
			constexpr int rows = 6 * TABLET_PAD_ROWS;
			Rng			rng(static_cast<uint64_t>(nkeys));
			Table		table;

			for (int c = 0; c < nkeys + 1; c++)
				table.columns.push_back(Column{c == nkeys ? type : Type::I64, {}});
			for (int i = 0; i < rows; i++)
			{
				const int64_t k = i % TABLET_PAD_ROWS / 2;

				for (int c = 0; c < nkeys; c++)
					table.columns[c].rows.push_back(k % 50 == c ? Value{} : from_register(nkeys == 1 ? k : (k * (c + 1) << 48) ^ k));
				table.columns[nkeys].rows.push_back(type == Type::F64 ? from_register(std::ldexp(pick_int(rng, 1000) - 500, pick_int(rng, 200)))
													: from_register(static_cast<int64_t>(pick_int(rng, 2000000000)) - 1000000000));
			}
			table.tablet_rows = {rows};
			table.build();

			const SealedProgram sealed = grouped_by(table, nkeys);
			std::vector<std::string> expected = rows_text(sealed.get(), Interpreter(sealed.get(), table, nullptr).run());

			std::sort(expected.begin(), expected.end());
			for (uint64_t seed = 0; seed < 4; seed++)
			{
				Outcome		got;

				ASSERT_TRUE(groups_at_once(sealed.get(), table, {}, DeviceRun{static_cast<uint16_t>(seed % 2 * 4), true, seed}, seed % 2 == 0, &got));
				EXPECT_EQ(got.errors, 0u);

				std::vector<std::string> got_rows = rows_text(sealed.get(), got);

				std::sort(got_rows.begin(), got_rows.end());
				ASSERT_EQ(got_rows, expected) << nkeys << " keys, seed " << seed;
			}
		}
}
