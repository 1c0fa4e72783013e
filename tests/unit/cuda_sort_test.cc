/*
 * Rows and groups in an order on the (emulated) device: against the CPU's, by the row; limits, ties, nulls,
 * ranks, stages, what is refused.
 */
#include "cuda_runtime_fixture.h"

#include "engine/abi.h"

namespace gpuvm {
namespace reference {

namespace {

int
compare(Type type, const Value &a, const Value &b)
{
	if (type_is_float(type))
		return a.d != a.d || b.d != b.d ? int(a.d != a.d) - int(b.d != b.d) : (a.d > b.d) - (a.d < b.d);
	return type == Type::I128 ? (a.x > b.x) - (a.x < b.x) : (a.i > b.i) - (a.i < b.i);
}

class CudaSort : public CudaRuntime
{
protected:
	/* The keys of a row, so that rows can be compared: what does not differ by them is a tie. */
	int compare_rows(const Program *program, const Ways &ways, const std::vector<Value> &a, const std::vector<Value> &b)
	{
		std::vector<Type> types(program->nresults);

		program_result_types(program, types.data());
		for (const JobOrderKey &key : ways.order)
		{
			Value		av = a[key.column], bv = b[key.column];

			for (Value *v : {&av, &bv})
				if (key.flags & ORDER_RANKS)
				{
					const CodeMap &map = (*ways.maps)[key.map];
					const uint32_t code = static_cast<uint32_t>(v->i);

					v->null = v->null || code >= map.nentries || (map.nulls != nullptr && bit_get(map.nulls, code));
					v->i = v->null ? 0 : map.type == Type::I64 ? static_cast<const int64_t *>(map.values)[code] : static_cast<const int32_t *>(map.values)[code];
				}
			if (av.null && bv.null)
				continue;
			if (av.null || bv.null)
				return av.null == ((key.flags & ORDER_NULLS_FIRST) != 0) ? -1 : 1;
			if (const int cmp = compare(key.flags & ORDER_RANKS ? Type::I64 : types[key.column], av, bv))
				return key.flags & ORDER_DESC ? -cmp : cmp;
		}
		return 0;
	}

	/* Rows leave in units in order; ties are compared as sets. */
	void expect_sorted(const Program *program, const Outcome &expected, const Ran &ran, const Ways &ways)
	{
		const size_t n = ways.row_limit != 0 ? std::min<size_t>(ways.row_limit, expected.rows.size()) : expected.rows.size();
		std::vector<size_t> order(expected.rows.size());
		const std::vector<std::string> texts = rows_text(program, expected);
		std::vector<std::string> got;

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.figures.errors != 0, expected.errors != 0);
		if (expected.errors != 0)
		{
			ASSERT_TRUE(ran.units.empty());
			return;
		}
		for (const auto &[unit, rows] : ran.units)
		{
			ASSERT_EQ(unit, got.size() / ways.capacity);
			got.insert(got.end(), rows.rows.begin(), rows.rows.end());
		}
		ASSERT_EQ(got.size(), n);
		std::iota(order.begin(), order.end(), 0);
		std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return compare_rows(program, ways, expected.rows[a], expected.rows[b]) < 0; });
		for (size_t first = 0, end; first < n; first = end)
		{
			std::vector<std::string> ties, got_ties;

			for (end = first; end < order.size() && compare_rows(program, ways, expected.rows[order[first]], expected.rows[order[end]]) == 0; end++)
				ties.push_back(texts[order[end]]);
			got_ties.assign(got.begin() + static_cast<long>(first), got.begin() + static_cast<long>(std::min(end, n)));
			std::sort(ties.begin(), ties.end());
			std::sort(got_ties.begin(), got_ties.end());
			ASSERT_TRUE(std::includes(ties.begin(), ties.end(), got_ties.begin(), got_ties.end())) << "rows from " << first;
		}
	}

	/* All columns as they are. */
	SealedProgram all_columns(const Table &table)
	{
		auto		b = new_builder();
		const int	n = static_cast<int>(table.columns.size());

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		for (int c = 0; c < n; c++)
			b->emit(Opcode::ResultColumn, table.columns[static_cast<size_t>(c)].type, c, 0, 0, b->add_name("c"));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		for (int c = 0; c < n; c++)
		{
			const Type	type = table.columns[static_cast<size_t>(c)].type;

			b->emit(Opcode::Column, type, b->new_reg(type), c, 0);
		}
		b->emit(Opcode::Result, Type::None, 0, n, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		return seal(*b);
	}
};

}  // namespace

/* Every type, by any keys. */
TEST_F(CudaSort, RandomOrders)
{
	int			limited = 0, ranked = 0;

	open();
	for (uint64_t seed = 0; seed < 40; seed++)
	{
		Rng			rng(seed);
		Table		table = random_table(rng, seed % 2 == 0);
		const MapSet maps = random_maps(rng, true);

		if (chance(rng, 50))
			mask_randomly(rng, &table);

		const StoredTable stored = arena.store(table, seed + 3);
		const SealedProgram program = all_columns(table);
		Ways		ways;

		ways.capacity = 4 * TABLET_PAD_ROWS;
		ways.maps = &maps.maps;
		for (int n = 1 + pick_int(rng, chance(rng, 20) ? 8 : 2); n > 0; n--)
		{
			JobOrderKey key = {static_cast<uint32_t>(pick_int(rng, program.get()->nresults)), static_cast<uint32_t>(rng()) & (ORDER_DESC | ORDER_NULLS_FIRST), 0, 0};

			for (uint32_t m = 0; m < maps.maps.size(); m++)
				if (table.columns[key.column].type == Type::I32 && (maps.maps[m].type == Type::I32 || maps.maps[m].type == Type::I64) && chance(rng, 50))
				{
					key.flags |= ORDER_RANKS;
					key.map = m;
					ranked++;
					break;
				}
			ways.order.push_back(key);
		}
		ways.row_limit = chance(rng, 50) ? 1 + rng() % (chance(rng, 50) ? 20 : 2000) : 0;
		limited += ways.row_limit != 0;
		expect_sorted(program.get(), run_cpu_rows(program.get(), table, {}, TABLET_PAD_ROWS), run(program.get(), stored, {}, ways), ways);
		ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
		EXPECT_EQ(status().memory_working.load(), 0u);
	}
	EXPECT_GT(limited, 5);
	EXPECT_GT(ranked, 2);
}

TEST_F(CudaSort, EveryTransferAndLimit)
{
	const Table table = three_columns(SOME_TABLETS, 700, 50);
	const StoredTable stored = arena.store(table, 3);
	const SealedProgram program = filter_program(600);
	const Outcome expected = run_cpu_rows(program.get(), table, {}, TABLET_PAD_ROWS);

	open();
	for (Transfer transfer : ALL_TRANSFERS)
		for (uint64_t limit : {0, 1, 100, 5000, 1000000})
			for (bool slow : {false, true})
			{
				Ways		ways;

				ways.transfer = transfer;
				ways.row_limit = limit;
				ways.capacity = TABLET_PAD_ROWS;
				ways.nbuffers = 2;
				ways.order = {JobOrderKey{1, ORDER_DESC, 0, 0}, JobOrderKey{2, 0, 0, 0}};
				ways.tell = [slow](FakeIo *io) { io->slow = slow; };
				expect_sorted(program.get(), expected, run(program.get(), stored, {}, ways), ways);
				ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " limit " << limit;
			}
}

/* Sums are wider in results than where they are sorted. */
TEST_F(CudaSort, Groups)
{
	const Table table = three_columns(SOME_TABLETS, 700, 50);
	const StoredTable stored = arena.store(table, 3);

	open();
	for (bool key : {true, false})
		for (uint64_t limit : {0, 1, 10, 650})
			for (uint32_t column = 0; column < (key ? 4u : 3u); column++)
			{
				const SealedProgram program = group_program(key);
				Rng			rng(1);
				Ways		ways;

				ways.row_limit = limit;
				ways.capacity = 64;
				ways.order = {JobOrderKey{column, column % 2 == 0 ? ORDER_DESC : 0, 0, 0}};
				expect_sorted(program.get(), run_cpu_groups(program.get(), table, {}, 1024, 1, rng), run(program.get(), stored, {}, ways), ways);
				ASSERT_FALSE(HasFatalFailure()) << "column " << column << " limit " << limit;
			}
}

/* The rows of a second program: k, count(*) of the first one's groups. */
TEST_F(CudaSort, SecondPrograms)
{
	const Table table = three_columns(SOME_TABLETS, 7000, 50);
	const StoredTable stored = arena.store(table, 3);
	auto		b = new_builder(), c = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG}, keys[] = {0};
	const Type	types[] = {Type::I32, Type::I64};

	for (ProgramBuilder *to : {b.get(), c.get()})
	{
		to->emit(Opcode::Table, Type::None, 0, 0, 0);
		for (int i = 0; i < 2; i++)
			to->emit(Opcode::ResultColumn, types[i], i, 0, 0, to->add_name("c"));
		if (to == b.get())
			to->emit(Opcode::AggOpen, Type::None, 1, 1, to->add_aux(sources, 2));

		const int	parallel = to->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		for (int i = 0; i < (to == b.get() ? 1 : 2); i++)
			to->emit(Opcode::Column, types[i], to->new_reg(types[i]), i, 0);
		if (to == b.get())
		{
			to->emit(Opcode::Group, Type::None, 1, to->add_aux(keys, 1), 0);
			to->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		}
		else
			to->emit(Opcode::Result, Type::None, 0, 2, 0);
		to->ops[parallel].p3 = to->emit(Opcode::Converge, Type::None, 0, 0, 0);
		to->emit(Opcode::Finish, Type::None, 0, 0, 0);
	}

	const SealedProgram first = seal(*b), second = seal(*c);
	const Outcome groups = Interpreter(first.get(), table, nullptr).run();
	const Outcome expected = Interpreter(second.get(), table_of(first.get(), groups), nullptr).run();

	open();
	for (uint64_t limit : {0, 1, 100, 6000})
	{
		Ways		ways;

		ways.stage = second.get();
		ways.row_limit = limit;
		ways.capacity = TABLET_PAD_ROWS;
		ways.order = {JobOrderKey{1, ORDER_DESC, 0, 0}, JobOrderKey{0, 0, 0, 0}};

		const Ran	ran = run(first.get(), stored, {}, ways);

		expect_sorted(second.get(), expected, ran, ways);
		ASSERT_FALSE(HasFatalFailure()) << "limit " << limit;
		EXPECT_EQ(ran.figures.stage_rows, groups.rows.size());
	}
}

/* Nothing leaves when a row fails, be it the last. */
TEST_F(CudaSort, ErrorsComeBeforeRows)
{
	Table		table = three_columns(SOME_TABLETS, 700, 50);

	table.columns[0].rows.back() = from_register(INT32_MAX);
	table.build();

	const StoredTable stored = arena.store(table, 3);
	const SealedProgram program = filter_program(600, 1);
	Ways		ways;

	open();
	ways.order = {JobOrderKey{0, 0, 0, 0}};
	ways.row_limit = 5;

	const Ran	ran = run(program.get(), stored, {}, ways);

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.figures.errors, uint32_t(ERR_INT_OVERFLOW));
	EXPECT_TRUE(ran.units.empty());
}

TEST_F(CudaSort, StopsAnywhere)
{
	const Table table = three_columns(SOME_TABLETS, 700, 50);
	const StoredTable stored = arena.store(table, 3);
	const SealedProgram program = filter_program(600);

	open();
	for (uint64_t asking = 0; asking < 60; asking += 3)
	{
		Ways		ways;

		ways.capacity = TABLET_PAD_ROWS;
		ways.order = {JobOrderKey{0, 0, 0, 0}};
		ways.tell = [asking](FakeIo *io) { io->stop_after_asking = asking; };
		EXPECT_EQ(run(program.get(), stored, {}, ways).outcome, DeviceOutcome::Done);
		EXPECT_EQ(status().memory_working.load(), 0u);
	}
}

TEST_F(CudaSort, RefusesWhatItHasNoMemoryFor)
{
	const Table table = three_columns(SOME_TABLETS, 700, 50);
	const StoredTable stored = arena.store(table, 3);
	const SealedProgram program = filter_program(600);
	Ways		ways;

	open(1 << 20);
	ways.order = {JobOrderKey{0, 0, 0, 0}};

	const Ran	ran = run(program.get(), stored, {}, ways);

	EXPECT_EQ(ran.outcome, DeviceOutcome::Refused);
	EXPECT_TRUE(ran.units.empty());
}

}  // namespace reference
}  // namespace gpuvm
