/*
 * vm_map_test.cc: Lookup where a named case says more than a random one: codes outside
 * of the map, nulls, maps of every type, tablets that a map's zone proves away.
 */
#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm_random.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* Two tablets of codes, some of them null or no code of a small map. */
Table
codes_table(bool nulls, int64_t least, int64_t most)
{
	Table		table;
	Column		c{Type::I32, {}};
	Rng			rng(5);

	for (int i = 0; i < 3000; i++)
		c.rows.push_back(nulls && i % 7 == 0 ? Value{} : from_register(least + static_cast<int64_t>(rng() % static_cast<uint64_t>(most - least + 1))));
	table.columns.push_back(c);
	table.tablet_rows = {2000, 1000};
	table.build();
	return table;
}

/* SELECT map[code]; with `only`, of the rows where it is true. */
SealedProgram
lookup_program(Type type, uint8_t flags, bool only = false)
{
	auto		b = new_builder();

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, only ? Type::I32 : type, 0, 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	code = b->new_reg(Type::I32), value = b->new_reg(type);

	b->emit(Opcode::Column, Type::I32, code, 0, 0);
	b->emit(Opcode::Lookup, type, value, 0, code, 0, flags);
	if (only)
		b->emit(Opcode::IfNot, Type::Bool, value, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Result, Type::None, only ? code : value, 1, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

std::vector<Value>
values_of(Type type, int n, bool nulls)
{
	std::vector<Value> values;
	Rng			rng(9);

	for (int i = 0; i < n; i++)
		values.push_back(nulls && i % 5 == 2 ? Value{} : random_value(type, Profile{3, 0, 3}, rng));
	return values;
}

void
expect_as_reference(const SealedProgram &p, const Table &table, const MapSet &maps, const std::string &what)
{
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(p.get(), p.get()->size, &schema, 1);

	ASSERT_EQ(wrong, nullptr) << wrong;
	ASSERT_EQ(verify_maps(p.get(), maps.maps.data(), static_cast<uint32_t>(maps.maps.size())), nullptr);
	for (int level = 0; level < 3; level++)
	{
		limit_cpu_kernels(level);

		const Outcome got = run_cpu_rows(p.get(), table, {}, 2048, maps.maps.data());

		limit_cpu_kernels(2);
		ASSERT_EQ(got.errors, 0u);
		ASSERT_EQ(rows_text(p.get(), got), rows_text(p.get(), Interpreter(p.get(), table, nullptr, maps.maps.data()).run())) << what;
	}
}

}  // namespace

TEST(VmMap, EveryTypeAndNull)
{
	for (Type type : VALUE_TYPES)
		for (int n : {0, 1, 50})
			for (int variant = 0; variant < 16; variant++)
			{
				const bool	null_entry = variant & 1, code_nulls = variant & 2, value_nulls = variant & 4, outside = variant & 8;
				const Table table = codes_table(code_nulls, outside ? -3 : 0, outside ? n + 2 : std::max(n - 1, 0));
				MapSet		maps;

				maps.add(type, values_of(type, n + null_entry, value_nulls), null_entry);
				for (uint8_t flags = 0; flags <= (null_entry ? LOOKUP_NULL : 0); flags++)
					expect_as_reference(lookup_program(type, flags), table, maps, std::to_string(static_cast<int>(type)) + " of " +
										std::to_string(n) + " variant " + std::to_string(variant) + " flags " + std::to_string(flags));
				if (HasFatalFailure())
					return;
			}
}

/* No row of a tablet has a code that the map makes true: it need not be read. */
TEST(VmMap, SkipsTablets)
{
	Table		table;
	Column		c{Type::I32, {}};
	MapSet		maps;
	std::vector<Value> values(10000, truth(false));

	for (int i = 0; i < 3000; i++)
		c.rows.push_back(from_register(static_cast<int64_t>(i < 2000 ? i : 7000 + i)));
	table.columns.push_back(c);
	table.tablet_rows = {2000, 1000};
	table.build();
	values[500] = truth(true);
	values.push_back(truth(true));
	maps.add(Type::Bool, values, true);

	const SealedProgram p = lookup_program(Type::Bool, LOOKUP_NULL, true);
	auto		job = CpuJob::create(p.get(), nullptr, 0, table.summaries.data(), 1, table.nrows(), maps.maps.data());

	EXPECT_FALSE(job->can_skip(table.tablets[0].get()));
	EXPECT_TRUE(job->can_skip(table.tablets[1].get()));
	expect_as_reference(p, table, maps, "one of each");

	/* a null is true, too */
	table.columns[0].rows[2500] = Value{};
	table.build();
	job = CpuJob::create(p.get(), nullptr, 0, table.summaries.data(), 1, table.nrows(), maps.maps.data());
	EXPECT_FALSE(job->can_skip(table.tablets[1].get()));
	expect_as_reference(p, table, maps, "and a null");
}

TEST(VmMap, Ranges)
{
	MapSet		maps;
	std::vector<Value> values;

	for (int64_t i = 0; i < 100; i++)
		values.push_back(i % 10 == 3 ? Value{} : from_register(1000 + i));
	values.push_back(from_register(int64_t(-5)));
	maps.add(Type::I64, values, true);

	const ValueRange all = maps.maps[0].range, some = map_range(maps.maps[0], 50, 53), none = map_range(maps.maps[0], 3, 4);

	EXPECT_EQ(all.lo, 1000);
	EXPECT_EQ(all.hi, 1099);
	EXPECT_TRUE(all.may_null && all.may_value);
	EXPECT_EQ(some.lo, 1050);
	EXPECT_EQ(some.hi, 1052);
	EXPECT_FALSE(some.may_null);
	EXPECT_TRUE(none.may_null && !none.may_value);

	for (uint8_t flags : {uint8_t(0), uint8_t(LOOKUP_NULL)})
	{
		const Table table = codes_table(true, 50, 52);
		const SealedProgram p = lookup_program(Type::I64, flags);
		ValueRange	column = column_range(table.summaries[0]), regs[2];
		uint32_t	errors[16];

		analyze_ranges(p.get(), nullptr, &column, regs, errors, maps.maps.data());
		EXPECT_EQ(regs[1].lo, flags ? -5 : 1050);
		EXPECT_EQ(regs[1].hi, 1052);
		EXPECT_EQ(regs[1].may_null, flags == 0);
	}
}

/* Keys that a map makes few have a table of slots, however many codes there are; groups are those of the values. */
TEST(VmMap, GroupsByValues)
{
	const Table table = codes_table(true, 0, 2999);
	MapSet		maps;
	std::vector<Value> values;
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1}, keys[] = {1};
	Rng			rng(3);

	for (int i = 0; i < 3000; i++)
		values.push_back(i % 100 == 7 ? Value{} : from_register(int64_t(i % 4)));
	values.push_back(from_register(int64_t(9)));
	maps.add(Type::I32, values, true);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I32, 0, 0, 0, b->add_name("k"));
	b->emit(Opcode::ResultColumn, Type::I64, 1, 0, 0, b->add_name("n"));
	b->emit(Opcode::ResultColumn, Type::I32, 2, 0, 0, b->add_name("x"));
	b->emit(Opcode::AggOpen, Type::None, 1, 2, b->add_aux(sources, 3));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	b->new_reg(Type::I32);
	b->new_reg(Type::I32);
	b->emit(Opcode::Column, Type::I32, 0, 0, 0);
	b->emit(Opcode::Lookup, Type::I32, 1, 0, 0, 0, LOOKUP_NULL);
	b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->emit(Opcode::AggStep, Type::I32, 1, 0, -1, 0, static_cast<uint8_t>(AggFn::BitXor));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	const SealedProgram p = seal(*b);
	const Outcome expected = Interpreter(p.get(), table, nullptr, maps.maps.data()).run();
	const Outcome got = run_cpu_groups(p.get(), table, {}, 1024, 3, rng, maps.maps.data());
	std::vector<std::string> expected_rows = rows_text(p.get(), expected), got_rows = rows_text(p.get(), got);

	std::sort(expected_rows.begin(), expected_rows.end());
	std::sort(got_rows.begin(), got_rows.end());
	EXPECT_EQ(got_rows.size(), 6u);
	EXPECT_EQ(got_rows, expected_rows);
}

/* What of maps and of timestamps' fields a program may not have, and how it is shown. */
TEST(VmMap, Verified)
{
	const Type	types[] = {Type::I32, Type::I64, Type::F64};
	const CursorSchema schema = {3, types};
	auto		b = new_builder();

	for (Type t : {Type::I32, Type::I64, Type::F64, Type::Bool, Type::I64, Type::I64, Type::I64})
		b->new_reg(t);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("c"));

	const int64_t source = RESULT_FROM_AGG;

	b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));
	b->emit(Opcode::Parallel, Type::None, 1, 0, 12);
	b->emit(Opcode::Column, Type::I32, 0, 0, 0);
	b->emit(Opcode::Column, Type::I64, 1, 1, 0);
	b->emit(Opcode::Column, Type::F64, 2, 2, 0);
	b->emit(Opcode::Lookup, Type::Bool, 3, 1, 0, 0, LOOKUP_NULL);	/* 7 */
	b->emit(Opcode::DatePart, Type::I64, 4, 1, static_cast<int>(DateField::Year));
	b->emit(Opcode::DateTrunc, Type::I64, 5, 1, static_cast<int>(DateField::Week));
	b->emit(Opcode::TimestampAddMonths, Type::I64, 6, 1, 0);
	b->emit(Opcode::AggStep, Type::I64, 0, 6, 3, 0, static_cast<uint8_t>(AggFn::BitOr));
	b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	auto		verify = [&](const SealedProgram &p) { return verify_program(p.get(), p.get()->size, &schema, 1); };
	auto		refused = [&](int address, auto damage) {
		SealedProgram p = seal(*b);
		Program    *program = reinterpret_cast<Program *>(p.words.data());

		damage(const_cast<Op &>(program->ops()[address]), program);
		program->hash = hash_program(program);
		EXPECT_NE(verify(p), nullptr) << address;
	};
	const SealedProgram p = seal(*b);
	std::string text;

	ASSERT_EQ(verify(p), nullptr) << verify(p);
	EXPECT_EQ(p.get()->nmaps, 2);
	for (int i = 7; i < 12; i++)
	{
		DisassembledOp d;

		disassemble_op(p.get(), i, &d);
		text += std::string(d.opcode) + " | " + d.comment + "\n";
	}
	EXPECT_EQ(text,
			  "Lookup | r[3] = entry r[0] of map 1, or null's own (bool)\n"
			  "DatePart | r[4] = of timestamp r[1] the year (int8)\n"
			  "DateTrunc | r[5] = timestamp r[1] cut to the week (int8)\n"
			  "TimestampAddMonths | r[6] = timestamp r[1] + r[0] months, r[0] an I32 (int8)\n"
			  "AggStep | aggregate 0: bit_or of r[6] where r[3] is true (int8)\n");

	refused(7, [](Op &op, Program *) { op.p2 = 2; });
	refused(7, [](Op &op, Program *) { op.p2 = -1; });
	refused(7, [](Op &op, Program *) { op.p2 = INT32_MAX; });
	refused(7, [](Op &op, Program *) { op.p3 = 1; });
	refused(7, [](Op &op, Program *) { op.p3 = 3; });
	refused(7, [](Op &op, Program *) { op.p5 = 2; });
	refused(7, [](Op &op, Program *) { op.type = Type::I128; });
	refused(7, [](Op &, Program *program) { program->nmaps = 1; });
	refused(7, [](Op &, Program *program) { program->nmaps = PROGRAM_MAX_MAPS + 1; });
	refused(8, [](Op &op, Program *) { op.p3 = static_cast<int>(DateField::Millisecond); });
	refused(8, [](Op &op, Program *) { op.p3 = DATE_FIELDS; });
	refused(8, [](Op &op, Program *) { op.p3 = -1; });
	refused(8, [](Op &op, Program *) { op.p2 = 0; });
	refused(9, [](Op &op, Program *) { op.p3 = static_cast<int>(DateField::IsoYear); });
	refused(9, [](Op &op, Program *) { op.p3 = -1; });
	refused(10, [](Op &op, Program *) { op.p3 = 1; });
	refused(11, [](Op &op, Program *) { op.type = Type::F64; op.p2 = 2; });
	refused(11, [](Op &op, Program *) { op.type = Type::Bool; op.p2 = 3; });
	refused(11, [](Op &op, Program *) { op.p5 = static_cast<uint8_t>(AggFn::MaxText) + 1; });

	/* maps that do not fit it */
	MapSet		maps;
	auto		fits = [&](uint32_t n) { return verify_maps(p.get(), maps.maps.data(), n); };

	maps.add(Type::I16, {}, false);
	maps.add(Type::Bool, {truth(true)}, true);
	EXPECT_EQ(fits(2), nullptr);
	EXPECT_NE(fits(1), nullptr);
	maps.maps[1].has_null_entry = false;
	EXPECT_NE(fits(2), nullptr);
	maps.maps[1] = maps.maps[0];
	maps.maps[1].has_null_entry = true;
	EXPECT_NE(fits(2), nullptr);
}
