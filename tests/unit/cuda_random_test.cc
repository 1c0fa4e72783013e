/*
 * cuda_random_test.cc: the CUDA virtual machine, emulated, against the reference
 * interpreter, over random programs and random tables, whole and with masked rows.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_fixture.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

struct Tally
{
	int			programs = 0, refused = 0, runs = 0, clean = 0, unfit = 0, overflows = 0;
	size_t		rows = 0;
	std::map<std::string, int> reasons;
	std::map<std::string, int> seen;

	void		print() const
	{
		printf("%d programs, %d refused; %d runs, %d without an error, %d with so many rows a lane did not fit\n", programs, refused, runs,
			   clean, unfit);
		for (const auto &[reason, n] : reasons)
			printf("  refused %d times: %s\n", n, reason.c_str());
		for (const auto &[what, n] : seen)
			printf("  %s: %d times\n", what.c_str(), n);
	}

	/* A test of refusals, of errors or of one way alone would prove little. */
	void		expect(std::initializer_list<const char *> wanted) const
	{
		print();
		if (programs < 100)
			return;
		EXPECT_LE(refused * 100, programs * 5);
		EXPECT_GT(clean, runs / 3);
		EXPECT_GT(rows, static_cast<size_t>(programs / 2));
		for (const char *what : wanted)
			EXPECT_GT(seen.count(what), 0u) << what;
	}
};

/* Runs the program with so many rows a lane, and compares. */
void
run_program(uint64_t seed, const Program *program, const Table &table, const std::vector<ParamValue> &params, const MapSet *maps, const PatternSet *patterns, Rng &rng,
			std::initializer_list<uint16_t> rows_a_lane, Tally *tally)
{
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(program, program->size, &schema, 1);
	const bool	grouped = program->grouped;

	ASSERT_EQ(wrong, nullptr) << wrong << " seed " << seed << "\n" << program_text(program);

	const Outcome expected = Interpreter(program, table, params.data(), maps ? maps->maps.data() : nullptr, patterns).run();
	std::vector<std::string> expected_rows = rows_text(program, expected);

	if (grouped)
		std::sort(expected_rows.begin(), expected_rows.end());
	tally->programs++;
	{
		cuda::DeviceProgram lowered;
		const char *reason = lower_for(program, table, params, DeviceRun{0, true, 0, 0, maps, patterns}, &lowered);

		if (reason)
		{
			tally->refused++;
			tally->reasons[reason]++;
		}
	}
	for (uint16_t rows_per_lane : rows_a_lane)
	{
		const DeviceRun run = {rows_per_lane, chance(rng, 50), rng() % 8, 0, maps, patterns};
		const DeviceResult got = run_device(program, table, params, run);
		const std::string where = "seed " + std::to_string(seed) + " rows a lane " + std::to_string(rows_per_lane) + " trust " +
			std::to_string(run.trust_ranges) + " order " + std::to_string(run.seed) + " masked ranges " + std::to_string(table.masked.size()) +
			"\n" + program_text(program);

		tally->runs++;
		if (got.refused)
		{
			tally->unfit++;
			continue;
		}
		tally->seen[std::to_string(got.stage_tiles) + " tiles a stage"]++;
		tally->seen[got.op_set == cuda::OpSet::Narrow ? "narrow operations" : got.op_set == cuda::OpSet::Wide ? "wide operations" : "all operations"]++;
		if (got.table)
			tally->seen[got.table]++;
		if (got.overflows)
			tally->seen["overflow"]++;
		/* behind an operation that failed values are unspecified, and may fail others */
		ASSERT_EQ(got.outcome.errors != 0, expected.errors != 0) << got.outcome.errors << " " << expected.errors << " " << where;
		ASSERT_EQ(got.outcome.errors & ~expected.errors, 0u) << where;
		if (expected.errors)
			continue;
		tally->clean++;
		tally->rows += expected.rows.size();

		std::vector<std::string> got_rows = rows_text(program, got.outcome);

		if (grouped)
			std::sort(got_rows.begin(), got_rows.end());
		ASSERT_EQ(got_rows.size(), expected_rows.size()) << where;
		for (size_t i = 0; i < got_rows.size(); i++)
			ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << where;
	}
}

/* With every number of rows a lane; then without some rows; then, if there are such, without those that fail, which makes errors results. */
void
run_program(uint64_t seed, const Program *program, Table &table, const std::vector<ParamValue> &params, const MapSet *maps, const PatternSet *patterns, Rng &rng, Tally *tally)
{
	const uint16_t some = static_cast<uint16_t>(4 << pick_int(rng, 3));

	run_program(seed, program, table, params, maps, patterns, rng, {4, 8, 16}, tally);
	if (::testing::Test::HasFatalFailure())
		return;
	mask_randomly(rng, &table);
	tally->seen["masked rows"] += table.masked.empty() ? 0 : 1;
	run_program(seed, program, table, params, maps, patterns, rng, {some}, tally);
	if (::testing::Test::HasFatalFailure())
		return;
	table.mask(Interpreter(program, table, params.data(), maps ? maps->maps.data() : nullptr, patterns).failing_rows());
	if (table.masked.empty())
		return;
	tally->seen["masked rows that fail"]++;
	run_program(seed, program, table, params, maps, patterns, rng, {some}, tally);
}

void
run_random(uint64_t seed, bool grouped, int max_keys, Tally *tally)
{
	Rng			rng(seed);
	const bool	tame = chance(rng, 70);
	Table		table = random_table(rng, tame);
	const MapSet maps = random_maps(rng, tame);
	const PatternSet patterns = random_patterns(rng);
	Generator	generator(rng, table, tame, &maps);

	add_texts(rng, &table);
	generator.patterns = &patterns;

	const SealedProgram sealed = generator.make(grouped, max_keys);

	run_program(seed, sealed.get(), table, generator.params, &maps, &patterns, rng, tally);
	if (sealed.get()->nmaps != 0)
		tally->seen["maps"]++;
	if (sealed.get()->npatterns != 0)
		tally->seen["patterns"]++;
}

/* Many columns, most of them just returned, behind filters that leave all rows, some, few or none. */
void
run_wide(uint64_t seed, Tally *tally)
{
	Rng			rng(seed);
	Table		table;
	auto		b = new_builder();
	const int	ncolumns = 1 + pick_int(rng, 30), nresults = pick_int(rng, chance(rng, 20) ? 100 : 12);
	std::vector<Type> results;
	uint32_t	nrows = 0;

	for (int t = 1 + pick_int(rng, 3); t > 0; t--)
		table.tablet_rows.push_back(1 + static_cast<uint32_t>(pick_int(rng, 4500)));
	for (uint32_t n : table.tablet_rows)
		nrows += n;
	for (int c = 0; c < ncolumns; c++)
	{
		const Type	type = VALUE_TYPES[pick_int(rng, 6)];
		const Profile profile = {pick_int(rng, 5), chance(rng, 50) ? 0 : pick_int(rng, 101), static_cast<int64_t>(rng() % 2000) - 1000};

		table.columns.push_back(Column{type, {}});
		for (uint32_t r = 0; r < nrows; r++)
			table.columns.back().rows.push_back(random_value(type, profile, rng));
	}
	table.build();

	b->emit(Opcode::Table, Type::None, 0, 0, 0);

	const int	declared = b->nops;

	for (int c = 0; c < nresults; c++)
		b->emit(Opcode::ResultColumn, Type::I32, c, 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (int n = pick_int(rng, 4); n > 0; n--)
	{
		const int	c = pick_int(rng, ncolumns);
		const Type	type = table.types[static_cast<size_t>(c)];
		const Value &v = table.columns[static_cast<size_t>(c)].rows[rng() % nrows];
		const int	a = b->new_reg(type), limit = b->new_reg(type);
		int64_t		bits;

		memcpy(&bits, &v.d, sizeof(bits));
		b->emit(Opcode::Column, type, a, c, 0);
		if (type_is_float(type))
			b->emit(Opcode::Float, type, limit, 0, 0, bits);
		else if (type == Type::I64)
			b->emit(Opcode::Int64, type, limit, 0, 0, v.i);
		else
			b->emit(Opcode::Integer, type, limit, static_cast<int>(v.i), 0);
		b->emit(static_cast<Opcode>(static_cast<int>(Opcode::Eq) + pick_int(rng, 6)), type, a, limit, b->nops + 1, VERDICT_DIES,
				chance(rng, 50) ? JUMP_IF_NULL : 0);
	}

	const int	first = b->nregs;

	for (int c = 0; c < nresults; c++)
	{
		const int	from = pick_int(rng, ncolumns);
		const bool	rowid = chance(rng, 5);
		const Type	type = rowid ? Type::RowId : table.types[static_cast<size_t>(from)];

		b->ops[declared + c].type = type;
		b->emit(rowid ? Opcode::Rowid : chance(rng, 5) ? Opcode::Null : Opcode::Column, type, b->new_reg(type), rowid ? 0 : from, 0);
	}
	b->emit(Opcode::Result, Type::None, nresults ? first : 0, nresults, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	ASSERT_FALSE(b->failed);

	const SealedProgram sealed = seal(*b);

	run_program(seed, sealed.get(), table, {}, nullptr, nullptr, rng, tally);
}

/*
 * What queries are made of: filters, arithmetic, comparisons, sums and counts, of
 * four bytes and sometimes of eight: the operations that have codes of their own.
 */
void
run_frequent(uint64_t seed, Tally *tally)
{
	Rng			rng(seed);
	Table		table;
	auto		b = new_builder();
	const bool	wide = chance(rng, 50);
	const std::vector<Type> types = wide ? std::vector<Type>{Type::I32, Type::I64, Type::F32, Type::F64} : std::vector<Type>{Type::I32, Type::F32};
	const int	ncolumns = 1 + pick_int(rng, 6), naggs = 1 + pick_int(rng, 4);
	std::map<Type, std::vector<int>> pool;
	std::vector<int64_t> sources;
	uint32_t	nrows = 0;
	auto		read = [&](Type type) {
		const std::vector<int> &regs = pool[type];

		return regs[static_cast<size_t>(pick_int(rng, static_cast<int>(regs.size())))];
	};

	for (int t = 1 + pick_int(rng, 3); t > 0; t--)
		table.tablet_rows.push_back(1 + static_cast<uint32_t>(pick_int(rng, 6000)));
	for (uint32_t n : table.tablet_rows)
		nrows += n;
	for (int c = 0; c < ncolumns; c++)
	{
		const Type	type = types[rng() % types.size()];
		const Profile profile = {chance(rng, 4) ? 4 : pick_int(rng, 4), chance(rng, 60) ? 0 : pick_int(rng, 60), static_cast<int64_t>(rng() % 2000) - 1000};

		table.columns.push_back(Column{type, {}});
		for (uint32_t r = 0; r < nrows; r++)
			table.columns.back().rows.push_back(random_value(type, profile, rng));
	}
	table.build();

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int a = 0; a < naggs; a++)
	{
		sources.push_back(RESULT_FROM_AGG | a);
		b->emit(Opcode::ResultColumn, Type::I64, a, 0, 0, b->add_name("a"));
	}
	b->emit(Opcode::AggOpen, Type::None, 0, naggs, b->add_aux(sources.data(), naggs));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (int c = 0; c < ncolumns; c++)
	{
		const Type	type = table.types[static_cast<size_t>(c)];

		pool[type].push_back(b->new_reg(type));
		b->emit(Opcode::Column, type, pool[type].back(), c, 0);
	}
	for (int n = 1 + pick_int(rng, 8); n > 0; n--)
	{
		auto		at = pool.begin();

		std::advance(at, pick_int(rng, static_cast<int>(pool.size())));

		const Type	type = at->first;
		const int	what = pick_int(rng, 10), to = b->new_reg(type);
		const Value v = random_value(type, Profile{1, 0, 3}, rng);
		int64_t		bits;

		memcpy(&bits, &v.d, sizeof(bits));
		if (what < 3)
		{
			b->emit(type_is_float(type) ? Opcode::Float : type == Type::I64 ? Opcode::Int64 : Opcode::Integer, type, to,
					type == Type::I32 ? static_cast<int>(v.i) : 0, 0, type_is_float(type) ? bits : type == Type::I64 ? v.i : 0);
			pool[type].push_back(to);
		}
		else if (what < 7)
		{
			const Opcode opcode = static_cast<Opcode>(static_cast<int>(Opcode::Add) + pick_int(rng, 3));

			b->emit(opcode, type, to, read(type), read(type));
			pool[type].push_back(to);
		}
		else
			b->emit(static_cast<Opcode>(static_cast<int>(Opcode::Lt) + pick_int(rng, 4)), type, read(type), read(type), b->nops + 1, VERDICT_DIES,
					chance(rng, 50) ? JUMP_IF_NULL : 0);
	}
	for (int a = 0; a < naggs; a++)
	{
		auto		at = pool.begin();

		std::advance(at, pick_int(rng, static_cast<int>(pool.size())));

		const bool	star = chance(rng, 25);
		const Type	type = star ? Type::None : at->first;

		b->emit(Opcode::AggStep, type, a, star ? -1 : read(type), -1, 0, static_cast<uint8_t>(star ? AggFn::CountStar : AggFn::Sum));
		b->ops[1 + a].type = agg_result_type(star ? AggFn::CountStar : AggFn::Sum, type);
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	ASSERT_FALSE(b->failed);

	const SealedProgram sealed = seal(*b);

	run_program(seed, sealed.get(), table, {}, nullptr, nullptr, rng, tally);
}

template <typename F>
Tally
run_many(F run_one)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 100);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	Tally		tally;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		run_one(seed, &tally);
		if (::testing::Test::HasFatalFailure())
			break;
	}
	return tally;
}

}  // namespace

TEST(CudaRandom, Aggregates)
{
	run_many([](uint64_t seed, Tally *tally) { run_random(seed, true, 0, tally); }).expect({"1 tiles a stage", "2 tiles a stage", "4 tiles a stage", "masked rows", "masked rows that fail", "maps", "patterns"});
}

TEST(CudaRandom, Rows)
{
	run_many([](uint64_t seed, Tally *tally) { run_random(seed, false, 0, tally); }).expect({"1 tiles a stage", "2 tiles a stage", "4 tiles a stage", "masked rows", "masked rows that fail", "maps", "patterns"});
}

TEST(CudaRandom, Groups)
{
	run_many([](uint64_t seed, Tally *tally) { run_random(seed, true, 3, tally); })
		.expect({"masked rows that fail", "maps", "patterns", "1 tiles a stage", "4 tiles a stage", "dense, shared", "hashed", "hashed, some shared"});
}

/* A program that reads no column has nothing in its stages but dead bits. */
TEST(CudaRandom, CountWithoutColumns)
{
	auto		b = new_builder();
	const int64_t source = RESULT_FROM_AGG;
	Rng			rng(1);
	Tally		tally;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	const SealedProgram sealed = seal(*b);

	for (uint64_t seed = 1; seed <= 20 && !HasFatalFailure(); seed++)
	{
		Table		table = random_table(rng, true);

		run_program(seed, sealed.get(), table, {}, nullptr, nullptr, rng, &tally);
	}
	EXPECT_EQ(tally.clean, tally.runs);
	EXPECT_GT(tally.seen["masked rows"], 10);
}

TEST(CudaRandom, ManyColumns)
{
	run_many(run_wide).expect({"masked rows"});
}

TEST(CudaRandom, FrequentOperations)
{
	run_many(run_frequent).expect({"narrow operations", "wide operations", "all operations", "masked rows that fail"});
}
