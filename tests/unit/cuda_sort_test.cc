/*
 * Rows and groups in an order on the (emulated) device: against the CPU's, by the row; limits, ties, nulls,
 * ranks, stages, what is refused.
 */
#include "cuda_order.h"
#include "sort.h"
#include "top_rows.h"

namespace gpuvm {
namespace reference {

namespace {

class CudaSort : public CudaRuntime
{
protected:
	void TearDown() override
	{
		cuda::top_sizes = sizes;
		CudaRuntime::TearDown();
	}

	/* Tables of few pads have samples, too. */
	static void small_samples() { cuda::top_sizes = cuda::TopSizes{0, 2, 256, 50}; }

	/* Rows that the program leaves with a bound: those that are not behind the row by as many keys. */
	void expect_bounded(const Program *program, const Table &table, const Ways &ways, const std::vector<Value> &row, const Outcome &all, uint32_t *nkeys)
	{
		std::vector<Type> types(program->nresults), columns;
		Ways		first;
		DeviceJobRequest request = {};
		cuda::TopBound bound;
		size_t		n = 0;

		program_result_types(program, types.data());
		for (const Column &column : table.columns)
			columns.push_back(column.type);
		first.maps = ways.maps;
		for (const JobOrderKey &key : ways.order)
		{
			const CodeMap *ranks = key.flags & ORDER_RANKS ? &(*ways.maps)[key.map] : nullptr;
			Value		value = row[key.column];
			cuda::TopValue last;

			if (ranks != nullptr)
			{
				const uint32_t code = static_cast<uint32_t>(value.i);

				value.null = value.null || code >= ranks->nentries || (ranks->nulls != nullptr && bit_get(ranks->nulls, code));
				value.i = value.null ? 0 : ranks->type == Type::I64 ? static_cast<const int64_t *>(ranks->values)[code] : static_cast<const int32_t *>(ranks->values)[code];
			}
			if (value.null && !(key.flags & ORDER_NULLS_FIRST))
				break;			/* nothing is behind it */
			last.type = ranks != nullptr ? ranks->type : types[key.column];
			last.null = value.null;
			last.value = value.i;
			if (type_is_float(last.type))
				memcpy(&last.value, &value.d, sizeof(value.d));
			bound.push_back(last);
			first.order.push_back(key);
		}
		if (bound.empty())
			return;
		*nkeys = std::max(*nkeys, static_cast<uint32_t>(bound.size()));
		request.program = program;
		request.order = first.order.data();
		request.norder = static_cast<uint32_t>(first.order.size());

		cuda::TopRows top(request);

		ASSERT_TRUE(top.take(bound));

		const Program *bounded = top.request().program;
		const CursorSchema schema = {static_cast<uint32_t>(columns.size()), columns.data()};

		ASSERT_EQ(verify_program(bounded, bounded->size, &schema, 1), nullptr) << program_text(bounded);

		const Outcome left = Interpreter(bounded, table, nullptr, ways.maps->data()).run();

		for (const std::vector<Value> &other : all.rows)
			n += compare_rows(program, first, other, row) <= 0;
		ASSERT_EQ(left.rows.size(), n) << program_text(bounded);
		for (const std::vector<Value> &other : left.rows)
			ASSERT_LE(compare_rows(program, first, other, row), 0);
	}

	cuda::TopSizes sizes = cuda::top_sizes;

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
	int			limited = 0, sampled = 0;
	int64_t		ranked = 0;
	uint32_t	nkeys = 0;

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
		ways.nbuffers = 2;
		ways.maps = &maps.maps;
		ways.order = random_order(rng, program.get(), maps);
		ranked += std::count_if(ways.order.begin(), ways.order.end(), [](const JobOrderKey &key) { return (key.flags & ORDER_RANKS) != 0; });
		ways.row_limit = chance(rng, 50) ? 1 + rng() % (chance(rng, 50) ? 20 : 2000) : 0;
		limited += ways.row_limit != 0;

		const Outcome expected = run_cpu_rows(program.get(), table, {}, TABLET_PAD_ROWS);
		const Ran	once = run(program.get(), stored, {}, ways);

		expect_sorted(program.get(), expected, once, ways);
		/* once more, with the columns on the device */
		small_samples();

		const Ran	again = run(program.get(), stored, {}, ways);

		expect_sorted(program.get(), expected, again, ways);
		sampled += again.figures.slices > once.figures.slices;
		if (!expected.rows.empty() && expected.errors == 0)
			expect_bounded(program.get(), table, ways, expected.rows[rng() % expected.rows.size()], expected, &nkeys);
		cuda::top_sizes = sizes;
		ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
		EXPECT_EQ(status().memory_working.load(), 0u);
	}
	EXPECT_GT(limited, 5);
	EXPECT_GT(sampled, 3);
	EXPECT_GT(nkeys, 2u);
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

				/* who waits for whom is the same for every limit, and what a limit leaves, however columns came */
				if ((slow && limit != 100) || (transfer != ALL_TRANSFERS[0] && (limit == 1 || limit == 1000000)))
					continue;
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

/* Every order of what few pads show: in the table's order, against it, and all alike. */
TEST_F(CudaSort, Samples)
{
	Table		table = three_columns({12000, 16000, 100, 12000}, 700, 50);
	int64_t		n = 0;

	for (Value &v : table.columns[1].rows)
		v = from_register(n++ * 1000);
	for (size_t i = 0; i < table.columns[2].rows.size(); i += 3)
		table.columns[2].rows[i] = Value{};
	table.build();
	open();
	small_samples();
	cuda::top_sizes.share = 4;

	const StoredTable stored = arena.store(table);

	for (int kept : {600, 3})
	{
		const SealedProgram program = filter_program(kept);
		const Outcome expected = run_cpu_rows(program.get(), table, {}, TABLET_PAD_ROWS);

		for (uint32_t column : {0, 1, 2})
			for (uint32_t flags : {0u, ORDER_DESC, ORDER_NULLS_FIRST, ORDER_DESC | ORDER_NULLS_FIRST})
			{
				static const uint64_t limits[] = {1, 100, 2000, 2500};
				const uint64_t limit = limits[(flags + column + static_cast<uint32_t>(kept)) % 4];
				Ways		ways;

				ways.row_limit = limit;
				ways.capacity = TABLET_PAD_ROWS;
				ways.order = {JobOrderKey{column, flags, 0, 0}, JobOrderKey{1, 0, 0, 0}};
				expect_sorted(program.get(), expected, run(program.get(), stored, {}, ways), ways);
				ASSERT_FALSE(HasFatalFailure()) << "column " << column << " flags " << flags << " limit " << limit;
			}
	}
}

/* A row is not behind the bound of its own leading bits, nor do the bound's begin with more. */
TEST(TopRows, BoundsOfLeads)
{
	const Type	types[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64};
	union Bits { int64_t i; int32_t i32; uint8_t b; float f; double d; };
	Rng			rng(7);
	int			longer = 0;

	for (int round = 0; round < 20000; round++)
	{
		SortKeys	keys = {};
		SortRange	ranges[2];
		Bits		row[2];
		bool		null[2];
		uint64_t	words = 0;

		keys.n = 2;
		for (uint32_t k = 0; k < 2; k++)
		{
			SortKey    &key = keys.keys[k];
			const int	narrow = chance(rng, 50) ? 56 : 0;

			key.type = types[rng() % 6];
			key.desc = rng() % 2;
			key.nulls_first = rng() % 2;
			ranges[k] = SortRange{rng() % 2 == 0, ~static_cast<uint128>(0), 0};
			for (int i = 0; i < 3; i++)
			{
				const int64_t v = static_cast<int64_t>(rng()) >> (narrow + rng() % 8);

				row[k].i = 0;
				if (key.type == Type::F32)
					row[k].f = static_cast<float>(v) / 8;
				else if (key.type == Type::F64)
					row[k].d = static_cast<double>(v) / 8;
				else if (key.type == Type::I64)
					row[k].i = v;
				else if (key.type == Type::Bool)
					row[k].b = v & 1;
				else
					row[k].i32 = key.type == Type::I16 ? static_cast<int16_t>(v) : static_cast<int32_t>(v);
				ranges[k].lo = std::min(ranges[k].lo, sort_bits_at(key.type, &row[k]));
				ranges[k].hi = std::max(ranges[k].hi, sort_bits_at(key.type, &row[k]));
			}
			null[k] = ranges[k].may_null && chance(rng, 30);
		}
		pack_sort_keys(&keys, ranges);
		for (uint32_t k = 0; k < 2; k++)
			words |= sort_key_word(keys.keys[k], &row[k], null[k], 0);

		const uint32_t known = chance(rng, 70) ? cuda::SORT_LEADING_BITS : 1 + rng() % 64;
		const cuda::TopBound bound = cuda::last_of_words(keys, ranges, words, known);
		uint64_t	bounds = 0;

		ASSERT_TRUE(!bound.empty() || ranges[0].may_null);
		longer += bound.size() > 1;
		for (uint32_t k = 0; k < bound.size(); k++)
		{
			const SortKey &key = keys.keys[k];
			Bits		value;
			double		number;

			memcpy(&number, &bound[k].value, sizeof(number));
			value.i = bound[k].value;
			if (key.type == Type::F32)
				value.f = static_cast<float>(number);
			ASSERT_EQ(bound[k].type, key.type);

			const uint64_t last = sort_key_word(key, &value, bound[k].null, 0), mine = sort_key_word(key, &row[k], null[k], 0);

			bounds |= last;
			if (k + 1 < bound.size())
				ASSERT_EQ(last, mine) << "round " << round;
			else
				ASSERT_GE(last, mine) << "round " << round;
		}
		ASSERT_LE(bounds >> (64 - known), words >> (64 - known)) << "round " << round;
	}
	EXPECT_GT(longer, 1000);
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
