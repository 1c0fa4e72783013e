/*
 * cuda_join_filter_test.cc: joins of a large table with filtered small ones, whose rows are held against the small ones' keys
 * first (cuda/join_filter.cc): the answers, when it is done, and that nothing is left out that must not be. On the emulated device.
 */
#include "cuda_runtime_fixture.h"

#include "join.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr int SIDES = 3;

/* What stands between the levels. */
struct Shape
{
	JoinKind	kinds[SIDES] = {JoinKind::Inner, JoinKind::Inner, JoinKind::Inner};
	bool		first_filters = false;	/* measure < 900 */
	bool		first_raises = false;	/* measure + measure of two int4, which may overflow */
	bool		tail_raises = false;	/* the same between levels 0 and 1 */
	bool		rows = false;	/* or count(*), sum(measure) */
};

/* Columns: keys of int2, int4 and int8, and the measure, int4. */
Table
facts(Rng &rng, const std::vector<uint32_t> &tablet_rows, int64_t most_measure)
{
	Table		table;

	table.tablet_rows = tablet_rows;
	table.columns = {Column{Type::I16, {}}, Column{Type::I32, {}}, Column{Type::I64, {}}, Column{Type::I32, {}}};
	for (uint32_t t = 0; t < tablet_rows.size(); t++)
	{
		/* so that tablets store them in different widths */
		const int64_t span = t % 3 == 0 ? 200 : t % 3 == 1 ? 5000 : 1;
		const uint64_t nulls = rng() % 2 * 10;

		for (uint32_t r = 0; r < tablet_rows[t]; r++)
			for (int c = 0; c < 4; c++)
			{
				const int64_t v = c == 3 ? static_cast<int64_t>(rng() % static_cast<uint64_t>(most_measure))
					: static_cast<int64_t>(rng() % static_cast<uint64_t>(span)) % 300 + (span == 5000 && rng() % 50 == 0 ? 20000 : 0);

				table.columns[static_cast<size_t>(c)].rows.push_back(c < 3 && rng() % 100 < nulls ? Value{} : from_register(v));
			}
	}
	table.build();
	return table;
}

/* Columns: key (int4; of the last side int8), value. Of 300 keys some, or one row a key and then some twice. */
Table
side(Rng &rng, int number, uint64_t percent, bool twice)
{
	Table		table;
	uint32_t	n = 0;

	table.columns = {Column{number == 2 ? Type::I64 : Type::I32, {}}, Column{Type::I32, {}}};
	for (int64_t key = 0; key < 300; key++)
		for (int i = 0; i < (twice ? 2 : 1); i++)
			if (rng() % 100 < percent)
			{
				table.columns[0].rows.push_back(rng() % 30 == 0 ? Value{} : from_register(key));
				table.columns[1].rows.push_back(from_register(key % 7));
				n++;
			}
	table.tablet_rows = {n};
	table.build();
	return table;
}

SealedProgram
star_program(const Shape &shape)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};
	const Type	key_types[] = {Type::I32, Type::I32, Type::I64};

	for (int k = 0; k <= SIDES; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	for (int k = 1; k <= SIDES; k++)
		b->emit(Opcode::HashOpen, Type::None, k, 1, 0);
	b->emit(Opcode::ResultColumn, shape.rows ? Type::I32 : Type::I64, 0, 0, 0, b->add_name("a"));
	b->emit(Opcode::ResultColumn, shape.rows ? Type::I32 : Type::I128, 1, 0, 0, b->add_name("b"));
	if (!shape.rows)
		b->emit(Opcode::AggOpen, Type::None, 0, 2, b->add_aux(sources, 2));
	for (int k = 1; k <= SIDES; k++)
	{
		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, k, 0);
		const int64_t key = b->new_reg(key_types[k - 1]);

		b->emit(Opcode::Column, key_types[k - 1], static_cast<int>(key), 0, k);
		b->emit(Opcode::HashInsert, Type::None, k, 1, b->add_aux(&key, 1));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, SIDES + 1, 0, 0);
	const int	narrow = b->new_reg(Type::I16), measure = b->new_reg(Type::I32);
	int64_t		keys[SIDES];
	int			value = -1;
	auto		raise = [&] {
		const int	sum = b->new_reg(Type::I32), zero = b->new_reg(Type::I32);

		b->emit(Opcode::Add, Type::I32, sum, measure, measure);
		b->emit(Opcode::Integer, Type::I32, zero, -1, 0);
		b->emit(Opcode::Lt, Type::I32, sum, zero, b->nops + 1, VERDICT_DIES);
	};

	for (int64_t &key : keys)
		key = b->new_reg(key_types[&key - keys]);
	b->emit(Opcode::Column, Type::I16, narrow, 0, 0);
	b->emit(Opcode::Cast, Type::I32, static_cast<int>(keys[0]), narrow, 0, 0, static_cast<uint8_t>(Type::I16));
	b->emit(Opcode::Column, Type::I32, static_cast<int>(keys[1]), 1, 0);
	b->emit(Opcode::Column, Type::I64, static_cast<int>(keys[2]), 2, 0);
	b->emit(Opcode::Column, Type::I32, measure, 3, 0);
	if (shape.first_filters)
	{
		const int	bound = b->new_reg(Type::I32);

		b->emit(Opcode::Integer, Type::I32, bound, 900, 0);
		b->emit(Opcode::Ge, Type::I32, measure, bound, b->nops + 1, VERDICT_DIES);
	}
	if (shape.first_raises)
		raise();
	for (int k = 1; k <= SIDES; k++)
	{
		b->emit(Opcode::Seek, Type::None, k, 1, b->add_aux(&keys[k - 1], 1));
		b->emit(Opcode::Match, Type::None, k, static_cast<int>(shape.kinds[k - 1]), 0);
		if (k == 1 && shape.tail_raises)
			raise();
		/* behind Full nothing is known of what was before */
		if ((value < 0 && shape.kinds[k - 1] == JoinKind::Inner) || shape.kinds[k - 1] == JoinKind::Full)
		{
			value = b->new_reg(Type::I32);
			b->emit(Opcode::Column, Type::I32, value, 1, k);
		}
	}
	if (value < 0)
		value = measure;
	if (shape.rows)
	{
		const int	first = b->new_reg(Type::I32);

		b->emit(Opcode::Copy, Type::I32, first, measure, 0);
		b->emit(Opcode::Copy, Type::I32, b->new_reg(Type::I32), value, 0);
		b->emit(Opcode::Result, Type::None, first, 2, 0);
	}
	else
	{
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, Type::I32, 1, value, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

class CudaJoinFilter : public CudaRuntime
{
protected:
	void SetUp() override
	{
		sizes = cuda::join_sizes;
		cuda::join_sizes.filter_rows = 0;
	}
	void TearDown() override
	{
		cuda::join_sizes = sizes;
		CudaRuntime::TearDown();
	}

	/* Batches of so many pads. */
	static void batches(uint32_t pads) { cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = pads * TABLET_PAD_ROWS; }

	static std::vector<std::string> expected(const SealedProgram &program, const std::vector<const Table *> &tables)
	{
		std::vector<std::string> rows = rows_text(program.get(), Interpreter(program.get(), tables, nullptr, true).run());

		std::sort(rows.begin(), rows.end());
		return rows;
	}

	Ran			run_star(const SealedProgram &program, const std::vector<const Table *> &tables, const Ways &ways = Ways(), uint32_t unnamed = 0)
	{
		std::vector<StoredTable> stored;

		for (const Table *table : tables)
			stored.push_back(arena.store(*table, table == tables[0] ? unnamed : 0));
		return run(program.get(), stored, {}, ways);
	}

	cuda::JoinSizes sizes;
};

/* How many of the facts' rows have a partner in the first so many sides. */
uint64_t
met(const std::vector<const Table *> &tables, int nsides)
{
	uint64_t	n = 0;

	for (uint32_t row = 0; row < tables[0]->nrows(); row++)
	{
		bool		all = true;

		for (int k = 0; k < nsides && all; k++)
		{
			const Value &key = tables[0]->columns[static_cast<size_t>(k)].rows[row];
			const std::vector<Value> &keys = tables[static_cast<size_t>(k) + 1]->columns[0].rows;

			all = std::any_of(keys.begin(), keys.end(), [&](const Value &v) { return !v.null && !key.null && v.i == key.i; });
		}
		n += all;
	}
	return n;
}

}  // namespace

/* Rows that are left of all slices go through the levels together, and nothing but these. */
TEST_F(CudaJoinFilter, OnlyWhatIsLeftIsRun)
{
	Rng			rng(1);
	const Table f = facts(rng, {9000, 12000, 4097, 30000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 20, false), c = side(rng, 2, 40, false);
	const std::vector<const Table *> tables = {&f, &a, &b, &c};
	const SealedProgram program = star_program(Shape());
	uint32_t	slices[2];

	batches(4);
	for (bool filter : {false, true})
	{
		open();
		cuda::join_sizes.filter_rows = filter ? 0 : UINT64_MAX;

		const Ran	ran = run_star(program, tables);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.sorted(), expected(program, tables));
		EXPECT_EQ(ran.figures.rows_in, f.nrows());
		if (filter)
			EXPECT_EQ(ran.figures.pairs, 3 * met(tables, 3));
		else
			EXPECT_EQ(ran.figures.pairs, met(tables, 1) + met(tables, 2) + met(tables, 3));
		slices[filter] = ran.figures.slices;
		library.reset();
	}
	EXPECT_LT(slices[1] + 8, slices[0]);
}

/* What would have raised an error still does, or is looked at at least. */
TEST_F(CudaJoinFilter, ErrorsAreKept)
{
	Rng			rng(2);
	const Table a = side(rng, 0, 30, false), b = side(rng, 1, 20, false), c = side(rng, 2, 40, false);
	const Table tame = facts(rng, {9000, 5000}, 1000), wild = facts(rng, {9000, 5000}, int64_t{1} << 31);
	Shape		shape;

	open();
	batches(2);
	for (bool first : {true, false})
	{
		shape.first_raises = first;
		shape.tail_raises = !first;

		const SealedProgram program = star_program(shape);
		Ran			ran = run_star(program, {&wild, &a, &b, &c});

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_NE(ran.figures.errors, 0u);

		/* ranges tell that nothing is raised */
		ran = run_star(program, {&tame, &a, &b, &c});
		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.sorted(), expected(program, {&tame, &a, &b, &c}));
		EXPECT_EQ(ran.figures.pairs, 3 * met({&tame, &a, &b, &c}, 3));
	}

	/* The one row whose sum overflows has partners in the first side alone. */
	Table		one = facts(rng, {9000}, 1000);

	shape = Shape();
	shape.tail_raises = true;
	for (uint32_t row = 0; row < 9000; row++)
	{
		int64_t		found = -1;

		for (int64_t key = 0; key < 300 && found < 0; key++)
			if (std::none_of(b.columns[0].rows.begin(), b.columns[0].rows.end(), [&](const Value &v) { return !v.null && v.i == key; }))
				found = key;
		one.columns[1].rows[row] = from_register(found);
	}
	one.columns[0].rows[77] = *std::find_if(a.columns[0].rows.begin(), a.columns[0].rows.end(), [](const Value &v) { return !v.null; });
	one.columns[3].rows[77] = from_register(int64_t{INT32_MAX});
	one.build();

	const Ran	ran = run_star(star_program(shape), {&one, &a, &b, &c});

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_NE(ran.figures.errors, 0u);
}

/* Where most rows are left, they are not filtered, and level by level finds the same. */
TEST_F(CudaJoinFilter, NotWhereItLeavesMost)
{
	Rng			rng(3);
	const Table f = facts(rng, {9000, 5000, 20000}, 1000), a = side(rng, 0, 100, false), b = side(rng, 1, 100, true), c = side(rng, 2, 99, false);
	const std::vector<const Table *> tables = {&f, &a, &b, &c};
	const SealedProgram program = star_program(Shape());

	open();
	batches(2);
	EXPECT_EQ(run_star(program, tables).sorted(), expected(program, tables));
}

/* Every kind of join, of table, of row, of way to the device. */
TEST_F(CudaJoinFilter, Everything)
{
	const JoinKind kinds[] = {JoinKind::Inner, JoinKind::Inner, JoinKind::Semi, JoinKind::Left, JoinKind::Anti, JoinKind::Full};
	int			filtered = 0;

	for (uint64_t seed = 1; seed <= 24 && !HasFatalFailure(); seed++)
	{
		Rng			rng(seed);
		Table		f = facts(rng, {1 + static_cast<uint32_t>(rng() % 9000), 1 + static_cast<uint32_t>(rng() % 100), 1 + static_cast<uint32_t>(rng() % 13000)}, 1000);
		Shape		shape;
		Ways		ways;
		std::vector<Table> sides;
		std::vector<const Table *> tables = {&f};

		for (int k = 0; k < SIDES; k++)
		{
			shape.kinds[k] = kinds[rng() % (k == SIDES - 1 ? 6 : 5)];
			sides.push_back(side(rng, k, rng() % 5 == 0 ? 100 : 1 + rng() % 60, rng() % 4 == 0));
			if (rng() % 8 == 0)	/* nothing but nulls */
			{
				for (Value &v : sides.back().columns[0].rows)
					v = Value{};
				sides.back().build();
			}
		}
		for (const Table &table : sides)
			tables.push_back(&table);
		shape.first_filters = rng() % 2;
		shape.rows = rng() % 2 && shape.kinds[2] != JoinKind::Full;
		if (rng() % 2)
			mask_randomly(rng, &f);
		arena.next = align_up(sizeof(ArenaHeader), 4096);
		library.reset();
		open();
		batches(1 + static_cast<uint32_t>(rng() % 3));
		ways.transfer = ALL_TRANSFERS[rng() % 5];
		ways.capacity = 4096;
		gpuvm_emulated::set_seed(seed);

		const SealedProgram program = star_program(shape);
		const uint32_t unnamed = static_cast<uint32_t>(rng() % 3);
		const Ran	ran = run_star(program, tables, ways, unnamed);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << ", seed " << seed;
		ASSERT_EQ(ran.sorted(), expected(program, tables)) << "seed " << seed;
		cuda::join_sizes.filter_rows = UINT64_MAX;
		library.reset();
		open();
		filtered += run_star(program, tables, ways, unnamed).figures.pairs != ran.figures.pairs;
		cuda::join_sizes.filter_rows = 0;
	}
	EXPECT_GT(filtered, 6);
}

/* A limit of rows ends it after the first slices that give them. */
TEST_F(CudaJoinFilter, RowLimit)
{
	Rng			rng(4);
	const Table f = facts(rng, {40000, 40000}, 1000), a = side(rng, 0, 50, false), b = side(rng, 1, 50, false), c = side(rng, 2, 50, false);
	Shape		shape;
	Ways		ways;

	shape.rows = true;
	ways.row_limit = 5;
	ways.capacity = 64;
	open();
	batches(1);

	const Ran	ran = run_star(star_program(shape), {&f, &a, &b, &c}, ways);

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_GE(ran.rows, 5u);
	EXPECT_LT(ran.figures.rows_in, 40000u);
}

TEST_F(CudaJoinFilter, StopsInTheMiddle)
{
	Rng			rng(5);
	const Table f = facts(rng, {20000, 9000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 30, false), c = side(rng, 2, 30, false);
	const SealedProgram program = star_program(Shape());

	open();
	batches(1);
	for (uint64_t asked : {0, 3, 8, 15, 30})
	{
		Ways		ways;

		ways.tell = [&](FakeIo *io) { io->stop_after_asking = asked; };
		EXPECT_EQ(run_star(program, {&f, &a, &b, &c}, ways).outcome, DeviceOutcome::Done);
	}
	EXPECT_EQ(run_star(program, {&f, &a, &b, &c}).sorted(), expected(program, {&f, &a, &b, &c}));
}
