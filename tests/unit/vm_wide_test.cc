/*
 * vm_wide_test.cc: numbers of more than 64 bits: their halves, and the extremes that programs find of them, with groups and
 * without, filtered, of nulls alone.
 */
#include <gtest/gtest.h>

#include "tablet/wide_halves.h"
#include "vm_random.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* The greatest and the least number that is stored; aggregates take what halves can say at all. */
constexpr int128 MOST_STORED = (int128{1} << 124) - 1;
constexpr int128 LEAST_STORED = -(int128{1} << 124) + (int128{1} << 62);
constexpr int128 MOST = (int128{1} << 125) - 1;

TEST(Wide, Halves)
{
	for (int128 v : {int128{0}, int128{1}, int128{-1}, int128{WIDE_LOW_MASK}, int128{WIDE_LOW_MASK} + 1, -int128{WIDE_LOW_MASK} - 1, -int128{WIDE_LOW_MASK} - 2,
		 int128{INT64_MAX}, int128{INT64_MIN}, MOST_STORED, LEAST_STORED})
	{
		EXPECT_TRUE(wide_fits(v));
		EXPECT_TRUE(wide_value(wide_high(v), wide_low(v)) == v);
		EXPECT_GE(wide_low(v), 0);
	}
	EXPECT_FALSE(wide_fits(MOST_STORED + 1));
	EXPECT_FALSE(wide_fits(LEAST_STORED - 1));
	EXPECT_FALSE(is_wide_special(wide_high(MOST_STORED)));
	EXPECT_FALSE(is_wide_special(wide_high(LEAST_STORED)));
	for (WideSpecial which : {WIDE_INFINITY, WIDE_MINUS_INFINITY, WIDE_NAN})
	{
		EXPECT_TRUE(is_wide_special(wide_special(which)));
		EXPECT_EQ(wide_special(which) & WIDE_SPECIAL_MASK, which);
	}
	EXPECT_LT(wide_special(WIDE_MINUS_INFINITY), wide_high(LEAST_STORED));
	EXPECT_GT(wide_special(WIDE_INFINITY), wide_high(MOST_STORED));
	EXPECT_GT(wide_special(WIDE_NAN), wide_special(WIDE_INFINITY));
	EXPECT_TRUE(is_high_half(high_half(1)));
	EXPECT_EQ(attribute_of(high_half(1600)), 1600);
	EXPECT_EQ(attribute_of(1600), 1600);
}

/* A key, a truth value, and halves of numbers of all sizes, of which the high ones often are equal; group 3 has nulls alone. */
Table
wide_table()
{
	Table		table;
	Column		key{Type::I32, {}}, filter{Type::Bool, {}}, high{Type::I64, {}}, low{Type::I64, {}};
	Rng			rng(11);

	for (int i = 0; i < 5000; i++)
	{
		const int64_t k = static_cast<int64_t>(rng() % 4);
		const int128 v = i == 100 ? MOST : i == 101 ? -MOST - 1 : ((int128{static_cast<int64_t>(rng())} << 62) >> rng() % 125) + static_cast<int64_t>(rng() % 1000);
		const bool	null = k == 3 || rng() % 10 == 0;

		key.rows.push_back(from_register(k));
		filter.rows.push_back(truth(rng() % 3 == 0));
		high.rows.push_back(null ? Value{} : from_register(wide_high(v)));
		low.rows.push_back(null ? Value{} : from_register(wide_low(v)));
	}
	table.columns = {key, filter, high, low};
	table.tablet_rows = {3000, 2000};
	table.build();
	return table;
}

SealedProgram
extremes(bool grouped, bool filtered)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1, 0}, keys[] = {0};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I128, 0, 0, 0, b->add_name("min"));
	b->emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b->add_name("max"));
	if (grouped)
		b->emit(Opcode::ResultColumn, Type::I32, 2, 0, 0, b->add_name("k"));
	b->emit(Opcode::AggOpen, Type::None, grouped ? 1 : 0, 2, b->add_aux(sources, grouped ? 3 : 2));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (Type t : {Type::I32, Type::Bool, Type::I64, Type::I64})
		b->new_reg(t);
	for (int i = 0; i < 4; i++)
		b->emit(Opcode::Column, static_cast<Type>(b->reg_type[i]), i, i, 0);
	if (grouped)
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, Type::I64, 0, 2, filtered ? 1 : -1, 3, static_cast<uint8_t>(AggFn::MinWide));
	b->emit(Opcode::AggStep, Type::I64, 1, 2, filtered ? 1 : -1, 3, static_cast<uint8_t>(AggFn::MaxWide));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

TEST(Wide, Extremes)
{
	const Table table = wide_table();
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};

	for (bool grouped : {false, true})
		for (bool filtered : {false, true})
		{
			const SealedProgram p = extremes(grouped, filtered);
			Rng			rng(3);

			ASSERT_EQ(verify_program(p.get(), p.get()->size, &schema, 1), nullptr);

			std::vector<std::string> expected = rows_text(p.get(), Interpreter(p.get(), table, nullptr, nullptr).run());
			std::vector<std::string> got = rows_text(p.get(), run_cpu_groups(p.get(), table, {}, 1024, 3, rng, nullptr));

			std::sort(expected.begin(), expected.end());
			std::sort(got.begin(), got.end());
			EXPECT_EQ(got.size(), grouped ? 4u : 1u);
			EXPECT_EQ(got, expected);
		}
}

TEST(Wide, Verified)
{
	const Table table = wide_table();
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const int	address = extremes(false, false).get()->nops - 4;

	for (int damage = 0; damage < 5; damage++)
	{
		SealedProgram p = extremes(false, false);
		Program    *program = reinterpret_cast<Program *>(p.words.data());
		Op		   &op = const_cast<Op &>(program->ops()[address]);

		ASSERT_EQ(op.opcode, Opcode::AggStep);
		switch (damage)
		{
			case 0: op.p4 = -1; break;
			case 1: op.p4 = program->nregs; break;
			case 2: op.p4 = int64_t{1} << 32 | 3; break;
			case 3: op.p4 = 0; break;
			default: op.type = Type::I32; op.p2 = 0; break;
		}
		program->hash = hash_program(program);
		EXPECT_NE(verify_program(p.get(), p.get()->size, &schema, 1), nullptr) << damage;
	}
}

}  // namespace
