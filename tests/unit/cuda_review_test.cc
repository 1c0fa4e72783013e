/*
 * cuda_review_test.cc: what random programs over small tables do not meet: programs
 * lowered for more rows than 32 bits count, and registers that lanes jumped over.
 *
 * GPUVM_TEST_PROGRAMS changes how many random programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_fixture.h"

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
