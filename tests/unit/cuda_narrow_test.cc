/*
 * cuda_narrow_test.cc: programs in 64-bit integers whose values fit 32 bits (lower_narrow.h), on the emulated device,
 * against the reference interpreter: columns of every stored width, with values up to where 32 bits end and beyond.
 */
#include "cuda_fixture.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

Column
random_column(Rng &rng, int64_t lo, int64_t hi, uint32_t rows, int null_percent)
{
	Column		c = {Type::I64, {}};

	for (uint32_t i = 0; i < rows; i++)
	{
		const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;
		Value		v = from_register(static_cast<int64_t>(static_cast<uint64_t>(lo) + (chance(rng, 10) ? (chance(rng, 50) ? 0 : span - 1) : rng() % span)));

		c.rows.push_back(chance(rng, null_percent) ? Value() : v);
	}
	return c;
}

/* Widths 0, 1, 2, 4 of codes, some from a base, and columns whose sums and products leave 32 bits. */
Table
random_table(Rng &rng)
{
	static const int64_t bounds[][2] = {{0, 10}, {7, 7}, {-100, 155}, {100, 5000}, {90000, 10500000}, {-2147483648LL, 2147483647LL}, {2147483600LL, 2147483647LL},
		{-40000, 40000}, {4000000000LL, 4000000200LL}, {-9000000000LL, 9000000000LL}, {0, 4294967295LL}};
	Table		table;

	for (int t = 1 + pick_int(rng, 2); t > 0; t--)
		table.tablet_rows.push_back(static_cast<uint32_t>(chance(rng, 20) ? 1 + pick_int(rng, 40) : 500 + pick_int(rng, 5000)));

	uint32_t	rows = 0;

	for (uint32_t n : table.tablet_rows)
		rows += n;
	for (const auto &b : bounds)
		table.columns.push_back(random_column(rng, b[0], b[1], rows, chance(rng, 30) ? 20 : 0));
	/* the last one is I32 */
	table.columns.push_back(random_column(rng, -5, 100000, rows, chance(rng, 30) ? 20 : 0));
	table.columns.back().type = Type::I32;
	table.build();
	return table;
}

constexpr uint32_t I32 = static_cast<uint32_t>(Type::I32);
const std::vector<ParamValue> NUMBERS = {{60000, 0, I32}, {-1, 0, I32}, {0, 1, I32}};

/* Arithmetic over the columns, choices and jumps among it, and what reads it. */
SealedProgram
random_program(Rng &rng, const Table &table, bool grouped)
{
	const auto	builder = new_builder();
	ProgramBuilder &b = *builder;
	const int	naggs = 1 + pick_int(rng, 5);
	std::vector<int> values, truths;
	std::vector<int64_t> sources;
	std::vector<std::pair<AggFn, int>> aggs;
	auto		any = [&] { return values[static_cast<size_t>(pick_int(rng, static_cast<int>(values.size())))]; };
	auto		made = [&](int r) { values.push_back(r); return r; };
	const int	ncolumns = static_cast<int>(table.columns.size()) - 1;

	b.emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int i = 0; i < naggs + (grouped ? 1 : 0); i++)
	{
		static const AggFn fns[] = {AggFn::Sum, AggFn::Sum, AggFn::Count, AggFn::Min, AggFn::Max, AggFn::BitXor};

		if (grouped && i == 0)
		{
			sources.push_back(0);
			b.emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b.add_name("k"));
			continue;
		}
		aggs.emplace_back(fns[pick_int(rng, 6)], 0);
		sources.push_back(RESULT_FROM_AGG | static_cast<int64_t>(aggs.size() - 1));
		b.emit(Opcode::ResultColumn, agg_result_type(aggs.back().first, Type::I64), i, 0, 0, b.add_name("a"));
	}
	b.emit(Opcode::AggOpen, Type::None, grouped ? 1 : 0, naggs, b.add_aux(sources.data(), static_cast<int>(sources.size())));

	const int	parallel = b.emit(Opcode::Parallel, Type::None, 1, 0, 0);
	size_t		values_then = 0, truths_then = 0;
	int			jump = -1;

	for (int i = 3 + pick_int(rng, 4); i > 0; i--)
		b.emit(Opcode::Column, Type::I64, made(b.new_reg(Type::I64)), pick_int(rng, ncolumns), 0);
	for (int i = pick_int(rng, 14); i > 0; i--)
	{
		const int	x = any(), y = any();

		switch (pick_int(rng, 13))
		{
			case 0:
				b.emit(Opcode::Integer, Type::I64, made(b.new_reg(Type::I64)), pick_int(rng, 200) - 100, 0);
				break;
			case 1:
				b.emit(Opcode::Int64, Type::I64, made(b.new_reg(Type::I64)), 0, 0, chance(rng, 50) ? 2147483648LL : -2147483648LL);
				break;
			case 2: case 3: case 4:
				b.emit(pick_int(rng, 2) ? Opcode::Add : Opcode::Sub, Type::I64, made(b.new_reg(Type::I64)), x, y);
				break;
			case 5: case 6:
				b.emit(Opcode::Mul, Type::I64, made(b.new_reg(Type::I64)), x, y);
				break;
			case 7:
				b.emit(pick_int(rng, 2) ? Opcode::Neg : Opcode::Abs, Type::I64, made(b.new_reg(Type::I64)), x, 0);
				break;
			case 8:
				{
					const Opcode o[] = {Opcode::Coalesce, Opcode::Greatest, Opcode::Least, Opcode::NullIf};

					b.emit(o[pick_int(rng, 4)], Type::I64, made(b.new_reg(Type::I64)), x, y);
					break;
				}
			case 9:
				{
					const int	truth = b.new_reg(Type::Bool);

					b.emit(pick_int(rng, 2) ? Opcode::Lt : Opcode::Eq, Type::I64, x, y, truth, 0, COMPARE_STORES);
					b.emit(Opcode::Select, Type::I64, made(b.new_reg(Type::I64)), x, y, truth);
					truths.push_back(truth);
					break;
				}
			case 10:
				if (jump < 0 && chance(rng, 50))
				{
					jump = b.emit(Opcode::Gt, Type::I64, x, y, 0, VERDICT_JUMPS);
					values_then = values.size();
					truths_then = truths.size();
				}
				else
					b.emit(Opcode::Lt, Type::I64, x, y, -1, VERDICT_DIES);
				break;
			case 11:
				{
					const int	narrow = b.new_reg(Type::I32);

					if (chance(rng, 30))
						b.emit(Opcode::Column, Type::I32, narrow, ncolumns, 0);
					else if (chance(rng, 50))
						b.emit(Opcode::Variable, Type::I32, narrow, pick_int(rng, 3), 0);
					else
						b.emit(Opcode::Integer, Type::I32, narrow, pick_int(rng, 2) ? 70000 : pick_int(rng, 100), 0);
					b.emit(Opcode::Cast, Type::I64, made(b.new_reg(Type::I64)), narrow, 0, 0, static_cast<uint8_t>(Type::I32));
					break;
				}
			default:
				{
					const int	truth = b.new_reg(Type::Bool);

					if (pick_int(rng, 2))
						b.emit(Opcode::NotNull, Type::I64, truth, x, 0);
					else
						b.emit(Opcode::IsDistinct, Type::I64, truth, x, y);
					truths.push_back(truth);
					break;
				}
		}
	}
	/* What lanes jump over they have not. */
	if (jump >= 0)
	{
		b.ops[jump].p3 = b.nops;
		values.resize(values_then);
		truths.resize(truths_then);
	}
	if (grouped)
	{
		const int64_t key = any();

		b.emit(Opcode::Group, Type::None, 1, b.add_aux(&key, 1), 0);
	}
	for (size_t i = 0; i < aggs.size(); i++)
	{
		int			of = any();

		if (chance(rng, 40))
		{
			const int	x = any(), product = b.new_reg(Type::I64);

			b.emit(Opcode::Mul, Type::I64, product, x, of);
			of = product;
		}
		b.emit(Opcode::AggStep, Type::I64, static_cast<int>(i), of, truths.empty() || chance(rng, 60) ? -1 : truths[rng() % truths.size()], 0,
			   static_cast<uint8_t>(aggs[i].first));
	}

	const int	converge = b.emit(Opcode::Converge, Type::None, 0, 0, 0);

	b.ops[parallel].p3 = converge;
	for (int i = parallel; i < converge; i++)
		if (b.ops[i].opcode == Opcode::Lt && b.ops[i].p3 == -1)
			b.ops[i].p3 = converge;
	b.emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(b);
}

/* The beginning of a program that aggregates columns of one table into results of these types, keys first; returns its Parallel. */
int
open_groups(ProgramBuilder &b, std::initializer_list<Type> results, int nkeys)
{
	std::vector<int64_t> sources;
	int			column = 0;

	b.emit(Opcode::Table, Type::None, 0, 0, 0);
	for (Type type : results)
	{
		sources.push_back(column < nkeys ? column : RESULT_FROM_AGG | (column - nkeys));
		b.emit(Opcode::ResultColumn, type, column++, 0, 0, b.add_name("s"));
	}
	b.emit(Opcode::AggOpen, Type::None, nkeys, column - nkeys, b.add_aux(sources.data(), column));
	return b.emit(Opcode::Parallel, Type::None, 1, 0, 0);
}

/* Its end; returns the Converge. */
int
close_groups(ProgramBuilder &b, int parallel)
{
	const int	converge = b.emit(Opcode::Converge, Type::None, 0, 0, 0);

	b.ops[parallel].p3 = converge;
	b.emit(Opcode::Finish, Type::None, 0, 0, 0);
	return converge;
}

/* A number as I32 that is cast to I64. */
int
cast_number(ProgramBuilder &b, Opcode opcode, int number)
{
	const int	narrow = b.new_reg(Type::I32), wide = b.new_reg(Type::I64);

	b.emit(opcode, Type::I32, narrow, number, 0);
	b.emit(Opcode::Cast, Type::I64, wide, narrow, 0, 0, static_cast<uint8_t>(Type::I32));
	return wide;
}

/* TPC-H's Q1 in little: what is sold, and what it comes to with discount and tax. */
SealedProgram
discounts(const Table &table)
{
	const auto	builder = new_builder();
	ProgramBuilder &b = *builder;
	int			r[12];
	const int	parallel = open_groups(b, {Type::I128, Type::I128, Type::I128, Type::I64}, 0);

	(void) table;
	for (int &reg : r)
		reg = b.new_reg(Type::I64);
	b.emit(Opcode::Column, Type::I64, r[0], 0, 0);
	b.emit(Opcode::AggStep, Type::I64, 0, r[0], -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b.emit(Opcode::Column, Type::I64, r[1], 1, 0);
	b.emit(Opcode::Integer, Type::I64, r[2], 100, 0);
	b.emit(Opcode::Sub, Type::I64, r[3], r[2], r[1]);
	b.emit(Opcode::Mul, Type::I64, r[4], r[0], r[3]);
	b.emit(Opcode::AggStep, Type::I64, 1, r[4], -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b.emit(Opcode::Column, Type::I64, r[5], 2, 0);
	b.emit(Opcode::Add, Type::I64, r[6], r[2], r[5]);
	b.emit(Opcode::Mul, Type::I64, r[7], r[4], r[6]);
	b.emit(Opcode::AggStep, Type::I64, 2, r[7], -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b.emit(Opcode::AggStep, Type::I64, 3, r[0], -1, 0, static_cast<uint8_t>(AggFn::Count));
	close_groups(b, parallel);
	return seal(b);
}

void
compare(const Program *program, const Table &table, const DeviceRun &run, const std::string &where, int *refused)
{
	const Outcome expected = Interpreter(program, table, NUMBERS.data()).run();
	const DeviceResult got = run_device(program, table, NUMBERS, run);

	if (got.refused)
	{
		(*refused)++;
		return;
	}
	ASSERT_EQ(got.outcome.errors != 0, expected.errors != 0) << where;
	if (expected.errors)
		return;

	std::vector<std::string> expected_rows = rows_text(program, expected), got_rows = rows_text(program, got.outcome);

	std::sort(expected_rows.begin(), expected_rows.end());
	std::sort(got_rows.begin(), got_rows.end());
	ASSERT_EQ(got_rows.size(), expected_rows.size()) << where;
	for (size_t i = 0; i < got_rows.size(); i++)
		ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << where;
}

}  // namespace

TEST(CudaNarrow, ComputesIn32BitsWhatFits)
{
	Rng			rng(1);
	Table		table;

	table.tablet_rows = {3000, 900};
	table.columns = {random_column(rng, 90000, 10500000, 3900, 0), random_column(rng, 0, 10, 3900, 0), random_column(rng, 0, 8, 3900, 0)};
	table.build();

	const SealedProgram sealed = discounts(table);
	const auto	lowered = std::make_unique<cuda::DeviceProgram>();
	int			wide = 0, narrow = 0, refused = 0;

	ASSERT_EQ(lower_for(sealed.get(), table, {}, DeviceRun{8, true, 0}, lowered.get()), nullptr);
	for (int i = 0; i < lowered->nops; i++)
	{
		const uint16_t code = lowered->ops[i].code;

		wide += code == cuda::CODE_COLUMN_I64 || code == cuda::CODE_ADD_I64 || code == cuda::CODE_SUB_I64 || code == cuda::CODE_MUL_I64 ||
			code == cuda::CODE_MULSUM_I64;
		narrow += code == cuda::CODE_MUL_I32 || code == cuda::CODE_MUL_CODES;
	}
	/* the last product alone, of 1e11, is wide, and what it takes the tax for */
	EXPECT_EQ(narrow, 1);
	EXPECT_LE(wide, 3);
	for (uint16_t rows : {4, 8, 16})
		compare(sealed.get(), table, DeviceRun{rows, true, rows}, "discounts", &refused);
	EXPECT_EQ(refused, 0);
}

/* The number is an integer that is cast: a parameter, or the answer of a subquery. */
TEST(CudaNarrow, GroupsSumProductsWithANumber)
{
	Rng			rng(2);
	Table		table;
	int			refused = 0;

	table.tablet_rows = {2000, 700};
	table.columns = {random_column(rng, 0, 10, 2700, 0), random_column(rng, 90000, 10500000, 2700, 0)};
	table.build();
	for (Opcode number : {Opcode::Variable, Opcode::Integer})
	{
		const auto	builder = new_builder();
		ProgramBuilder &b = *builder;

		const int	parallel = open_groups(b, {Type::I64, Type::I128}, 1);
		const int	key = b.new_reg(Type::I64), value = b.new_reg(Type::I64), product = b.new_reg(Type::I64);
		const int64_t keys[] = {key};

		b.emit(Opcode::Column, Type::I64, key, 0, 0);
		b.emit(Opcode::Group, Type::None, 1, b.add_aux(keys, 1), 0);
		b.emit(Opcode::Column, Type::I64, value, 1, 0);
		b.emit(Opcode::Mul, Type::I64, product, value, cast_number(b, number, number == Opcode::Variable ? 0 : 70000));
		b.emit(Opcode::AggStep, Type::I64, 0, product, -1, 0, static_cast<uint8_t>(AggFn::Sum));
		close_groups(b, parallel);
		for (uint16_t rows : {4, 8, 16})
			compare(seal(b).get(), table, DeviceRun{rows, true, rows}, "a number", &refused);
	}
	EXPECT_EQ(refused, 0);
}

/* Codes of four bytes are above a base, though values of I32 are not. */
TEST(CudaNarrow, ComparesColumnsWithANumber)
{
	Rng			rng(3);
	Table		table;
	int			refused = 0;

	table.tablet_rows = {2000, 700};
	table.columns = {random_column(rng, -40000, 40000, 2700, 20)};
	table.build();
	for (Opcode opcode : {Opcode::Lt, Opcode::Ge, Opcode::Ne})
	{
		const auto	builder = new_builder();
		ProgramBuilder &b = *builder;

		const int	parallel = open_groups(b, {Type::I64, Type::I128}, 0);
		const int	value = b.new_reg(Type::I64);

		b.emit(Opcode::Column, Type::I64, value, 0, 0);

		const int	wide = cast_number(b, Opcode::Integer, 34);
		const int	compare_at = b.emit(opcode, Type::I64, value, wide, 0, VERDICT_DIES);

		b.emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b.emit(Opcode::AggStep, Type::I64, 1, value, -1, 0, static_cast<uint8_t>(AggFn::Sum));
		b.ops[compare_at].p3 = close_groups(b, parallel);
		for (uint16_t rows : {4, 8, 16})
			compare(seal(b).get(), table, DeviceRun{rows, true, rows}, "a number", &refused);
	}
	EXPECT_EQ(refused, 0);
}

TEST(CudaNarrow, Random)
{
	const char *many = getenv("GPUVM_TEST_PROGRAMS"), *start = getenv("GPUVM_TEST_SEED");
	const uint64_t n = many ? strtoull(many, nullptr, 10) : 60, first = start ? strtoull(start, nullptr, 10) : 1;
	int			refused = 0, changed = 0;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		Rng			rng(seed);
		const Table table = random_table(rng);
		const SealedProgram sealed = random_program(rng, table, chance(rng, 50));
		const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
		const char *wrong = verify_program(sealed.get(), sealed.get()->size, &schema, 1);
		const auto	lowered = std::make_unique<cuda::DeviceProgram>();

		ASSERT_EQ(wrong, nullptr) << wrong << " seed " << seed << "\n" << program_text(sealed.get());
		lower_for(sealed.get(), table, NUMBERS, DeviceRun{8, true, 0}, lowered.get());
		for (int i = 0; i < lowered->nops; i++)
			if (lowered->ops[i].code == cuda::CODE_COLUMN_I32 || lowered->ops[i].code == cuda::CODE_ADD_CODES || lowered->ops[i].code == cuda::CODE_MUL_CODES)
			{
				changed++;
				break;
			}
		for (uint16_t rows : {4, 8, 16})
		{
			compare(sealed.get(), table, DeviceRun{rows, chance(rng, 80), rng() % 8}, "seed " + std::to_string(seed) + " rows a lane " + std::to_string(rows) + "\n" +
					program_text(sealed.get()), &refused);
			if (HasFatalFailure())
				return;
		}
	}
	printf("%d programs, %d narrowed; %d runs refused\n", static_cast<int>(n), changed, refused);
	EXPECT_LT(refused, static_cast<int>(n));
	if (n >= 50)
	{
		EXPECT_GT(changed, static_cast<int>(n) / 5);
	}
}

/* Sums of a constant and of its square, which does not fit 32 bits. */
TEST(CudaNarrow, ConstantsAndTheirSquares)
{
	for (bool grouped : {false, true})
	{
		Rng			rng(3);
		const auto	builder = new_builder();
		ProgramBuilder &b = *builder;
		const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};
		const int64_t key = 0;
		int			refused = 0;
		Table		table;

		table.tablet_rows = {300};
		table.columns = {random_column(rng, 0, 3, 300, 10)};
		table.build();
		b.emit(Opcode::Table, Type::None, 0, 0, 0);
		b.emit(Opcode::ResultColumn, Type::I128, 0, 0, 0, b.add_name("s"));
		b.emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b.add_name("q"));
		b.emit(Opcode::AggOpen, Type::None, grouped ? 1 : 0, 2, b.add_aux(sources, 2));

		const int	parallel = b.emit(Opcode::Parallel, Type::None, 1, 0, 0);

		for (int i = 0; i < 3; i++)
			b.new_reg(Type::I64);

		const int	small = b.new_reg(Type::I32);

		b.emit(Opcode::Column, Type::I64, 0, 0, 0);
		if (grouped)
			b.emit(Opcode::Group, Type::None, 1, b.add_aux(&key, 1), 0);
		b.emit(Opcode::Integer, Type::I32, small, -436405, 0);
		b.emit(Opcode::Cast, Type::I64, 1, small, 0, 0, static_cast<uint8_t>(Type::I32));
		b.emit(Opcode::AggStep, Type::I64, 0, 1, -1, 0, static_cast<uint8_t>(AggFn::Sum));
		b.emit(Opcode::Mul, Type::I64, 2, 1, 1);
		b.emit(Opcode::AggStep, Type::I64, 1, 2, -1, 0, static_cast<uint8_t>(AggFn::Sum));
		b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
		b.emit(Opcode::Finish, Type::None, 0, 0, 0);

		const SealedProgram sealed = seal(b);

		for (uint16_t rows : {4, 8, 16})
			compare(sealed.get(), table, DeviceRun{rows, true, rows}, "constants", &refused);
		EXPECT_EQ(refused, 0);
	}
}
