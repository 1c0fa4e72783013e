/*
 * vm_program_test.cc: the builder, the verifier and the disassembler.
 */
#include <gtest/gtest.h>

#include "vm_reference.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr Type PAPER_COLUMNS[] = {Type::I32, Type::I32, Type::I32};
const CursorSchema PAPER_SCHEMA = {3, PAPER_COLUMNS};

/*
 * SELECT id, uniformi, normali5 FROM test WHERE uniformi > 60 AND normali5 < 0,
 * as the papers compile it.
 */
std::unique_ptr<ProgramBuilder>
paper_filter()
{
	auto		b = new_builder();

	for (Type t : {Type::I32, Type::I32, Type::I32, Type::I32, Type::I32, Type::I32, Type::I32})
		b->new_reg(t);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I32, 0, 0, 0, b->add_name("id"));
	b->emit(Opcode::ResultColumn, Type::I32, 1, 0, 0, b->add_name("uniformi"));
	b->emit(Opcode::ResultColumn, Type::I32, 2, 0, 0, b->add_name("normali5"));
	b->emit(Opcode::Parallel, Type::None, 1, 0, 14);
	b->emit(Opcode::Column, Type::I32, 3, 1, 0);
	b->emit(Opcode::Integer, Type::I32, 0, 60, 0);
	b->emit(Opcode::Le, Type::I32, 3, 0, 12, VERDICT_DIES);
	b->emit(Opcode::Column, Type::I32, 4, 2, 0);
	b->emit(Opcode::Integer, Type::I32, 1, 0, 0);
	b->emit(Opcode::Lt, Type::I32, 4, 1, 12, VERDICT_JUMPS);
	b->emit(Opcode::Invalid, Type::None, 0, 0, 0);
	b->emit(Opcode::Column, Type::I32, 2, 0, 0);
	b->emit(Opcode::Result, Type::None, 2, 3, 0);
	b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return b;
}

const char *
verify(const Program *p, const CursorSchema &schema = PAPER_SCHEMA)
{
	return verify_program(p, p->size, &schema, 1);
}

/* sum and count by key, with a filter. */
std::unique_ptr<ProgramBuilder>
grouped_program()
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};
	const int64_t keys[] = {0};

	for (int i = 0; i < 3; i++)
		b->new_reg(Type::I32);
	b->new_reg(Type::Bool);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I32, 0, 0, 0, b->add_name("k"));
	b->emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b->add_name("sum"));
	b->emit(Opcode::ResultColumn, Type::I64, 2, 0, 0, b->add_name("count"));
	b->emit(Opcode::AggOpen, Type::None, 1, 2, b->add_aux(sources, 3));
	b->emit(Opcode::Parallel, Type::None, 1, 0, 13);
	b->emit(Opcode::Column, Type::I32, 0, 0, 0);
	b->emit(Opcode::Column, Type::I32, 1, 1, 0);
	b->emit(Opcode::Integer, Type::I32, 2, 5, 0);
	b->emit(Opcode::Gt, Type::I32, 1, 2, 3, 0, COMPARE_STORES);
	b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, Type::I32, 0, 1, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->emit(Opcode::AggStep, Type::None, 1, -1, 3, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return b;
}

/*
 * SELECT a.c0, b.c1, c.c1 FROM a JOIN b ON a.c0 = b.c0 AND b.c2 > a.c1 LEFT JOIN c ON
 * c.c2 < b.c1 WHERE b.c1 > 5; the last is checked after the joins. The last cursor's kind is an argument.
 */
std::unique_ptr<ProgramBuilder>
join_program(JoinKind last = JoinKind::Left)
{
	auto		b = new_builder();
	const int64_t build_keys[] = {0}, probe_keys[] = {2};

	for (int i = 0; i < 11; i++)
		b->new_reg(Type::I32);
	for (int i = 0; i < 3; i++)
		b->emit(Opcode::Table, Type::None, i, 0, i);
	b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I32, 0, 0, 0, b->add_name("x"));
	b->emit(Opcode::ResultColumn, Type::I32, 1, 0, 0, b->add_name("y"));
	/* 6 */
	b->emit(Opcode::Parallel, Type::None, 1, 1, 11);
	b->emit(Opcode::Column, Type::I32, 0, 0, 1);
	b->emit(Opcode::Integer, Type::I32, 1, 5, 0);
	b->emit(Opcode::Le, Type::I32, 0, 1, 10, VERDICT_JUMPS);
	b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(build_keys, 1));
	b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	/* 12 */
	b->emit(Opcode::Parallel, Type::None, 3, 0, 26);
	b->emit(Opcode::Column, Type::I32, 2, 0, 0);
	b->emit(Opcode::Column, Type::I32, 3, 1, 0);
	b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(probe_keys, 1));
	b->emit(Opcode::Column, Type::I32, 4, 2, 1);
	b->emit(Opcode::Le, Type::I32, 4, 3, 18, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(JoinKind::Inner), 0);
	b->emit(Opcode::Column, Type::I32, 5, 1, 1);
	b->emit(Opcode::Cross, Type::None, 2, 0, 0);
	b->emit(Opcode::Column, Type::I32, 6, 2, 2);
	b->emit(Opcode::Ge, Type::I32, 6, 5, 23, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Match, Type::None, 2, static_cast<int>(last), 0);
	b->emit(Opcode::Column, Type::I32, 7, 1, last == JoinKind::Left || last == JoinKind::Full ? 2 : 1);
	b->emit(Opcode::Result, Type::None, 7, 2, 0);
	b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	/* the second of Result's registers is written, too */
	b->ops[14].p1 = 8;
	b->ops[17].p2 = 8;
	if (last == JoinKind::Full)
	{
		/* nothing from before is read behind it */
		b->ops[25].p1 = 9;
		b->ops[24].p1 = 9;
		for (int i = 27; i > 25; i--)
			b->ops[i + 1] = b->ops[i];
		b->ops[26] = b->ops[25];
		b->ops[25] = Op{Opcode::Column, Type::I32, 0, 10, 1, 1, 0};
		b->ops[12].p3++;
		b->nops++;
		b->converge++;
	}
	return b;
}

const char *
verify_join(const ProgramBuilder &b)
{
	const CursorSchema schemas[] = {PAPER_SCHEMA, PAPER_SCHEMA, PAPER_SCHEMA};
	const SealedProgram p = seal(b);

	return verify_program(p.get(), p.get()->size, schemas, 3);
}

void
expect_join_refused(const char *why, int address, void (*change)(Op &), JoinKind last = JoinKind::Left)
{
	auto		b = join_program(last);

	change(b->ops[address]);
	EXPECT_STREQ(verify_join(*b), why) << "address " << address;
}

/* Changes one operation of a good program and expects a refusal. */
void
expect_refused(const ProgramBuilder &good, int address, void (*change)(Op &))
{
	auto		b = std::make_unique<ProgramBuilder>(good);

	change(b->ops[address]);
	EXPECT_NE(verify(seal(*b).get()), nullptr) << "address " << address;
}

}  // namespace

TEST(VmProgram, JoinsAreVerified)
{
	ASSERT_EQ(verify_join(*join_program()), nullptr);
	ASSERT_EQ(verify_join(*join_program(JoinKind::Inner)), nullptr);
	ASSERT_EQ(verify_join(*join_program(JoinKind::Semi)), nullptr);
	ASSERT_EQ(verify_join(*join_program(JoinKind::Anti)), nullptr);
	ASSERT_EQ(verify_join(*join_program(JoinKind::Full)), nullptr);

	const char *read = "a register is read before it is written";
	const char *header = "Parallel disagrees with the program's header";
	const char *jump = "a jump passes over Seek, Cross, Match or HashInsert";
	const char *place = "a cursor is read where it is not positioned";
	const char *order = "cursors are not positioned in their order";
	const char *kinds = "a cursor with a hash table is not sought, or one without is";

	expect_join_refused("a cursor number is out of range", 3, [](Op &op) { op.p1 = 0; });
	expect_join_refused("a cursor number is out of range", 3, [](Op &op) { op.p1 = 3; });
	expect_join_refused("a pipeline fills no hash table, or one that is full already", 3, [](Op &op) { op.p1 = 2; });
	expect_join_refused("a hash table is opened twice or has no keys", 3, [](Op &op) { op.p2 = 0; });
	expect_join_refused("a hash table has another number of keys", 3, [](Op &op) { op.p2 = 2; });
	expect_join_refused(header, 6, [](Op &op) { op.p1 = 2; });
	expect_join_refused(header, 6, [](Op &op) { op.p2 = 0; });
	expect_join_refused(header, 6, [](Op &op) { op.p2 = 3; });
	expect_join_refused(header, 6, [](Op &op) { op.p3 = 26; });
	expect_join_refused("Parallel, Converge or Finish is out of place", 6, [](Op &op) { op.p3 = 8; });
	expect_join_refused(place, 7, [](Op &op) { op.p3 = 0; });
	expect_join_refused(place, 7, [](Op &op) { op.p3 = 2; });
	expect_join_refused("a jump leads to Converge", 9, [](Op &op) { op.p3 = 11; });
	expect_join_refused("HashInsert does not end its table's pipeline", 10, [](Op &op) { op.p1 = 2; });
	expect_join_refused("a pipeline has no HashInsert", 10, [](Op &op) { op = Op{Opcode::Invalid, Type::None}; });
	expect_join_refused("an operand lies outside the auxiliary area", 10, [](Op &op) { op.p3 = 2; });
	expect_join_refused(header, 12, [](Op &op) { op.p1 = 1; });
	expect_join_refused(header, 12, [](Op &op) { op.p2 = 1; });
	expect_join_refused("a cursor is read where it is not positioned", 13, [](Op &op) { op.p3 = 1; });
	expect_join_refused("a row's number in its tablet says nothing in a join program", 13, [](Op &op) { op.opcode = Opcode::Rowid; op.type = Type::RowId; });
	expect_join_refused(order, 15, [](Op &op) { op.p1 = 2; });
	expect_join_refused(order, 15, [](Op &op) { op.p1 = 0; });
	expect_join_refused(kinds, 15, [](Op &op) { op.opcode = Opcode::Cross; });
	expect_join_refused("a key is looked up with another type than it has", 13, [](Op &op) { op = Op{Opcode::Null, Type::I64, 0, 2, 0, 0, 0}; });
	expect_join_refused(read, 17, [](Op &op) { op.p1 = 0; });	/* of the other pipeline */
	expect_join_refused(jump, 17, [](Op &op) { op.p3 = 19; op.p4 = VERDICT_JUMPS; });
	expect_join_refused("Match is not that of the cursor before it", 18, [](Op &op) { op.p1 = 2; });
	expect_join_refused("the kind of a join is unknown", 18, [](Op &op) { op.p2 = 5; });
	expect_join_refused("the kind of a join is unknown", 18, [](Op &op) { op.p2 = -1; });
	expect_join_refused(order, 18, [](Op &op) { op = Op{Opcode::Invalid, Type::None}; });
	expect_join_refused(kinds, 20, [](Op &op) { op.opcode = Opcode::Seek; op.p2 = 1; });
	expect_join_refused(order, 20, [](Op &op) { op.p1 = 1; });
	expect_join_refused("a sink stands before the last Match", 23, [](Op &op) { op = Op{Opcode::Invalid, Type::None}; });
	expect_join_refused("a cursor is read behind its Match", 24, [](Op &op) { op.p3 = 2; }, JoinKind::Semi);
	expect_join_refused("a cursor is read behind its Match", 24, [](Op &op) { op.p3 = 2; }, JoinKind::Anti);
	/* r[6] is of the condition */
	expect_join_refused(read, 24, [](Op &op) { op = Op{Opcode::Copy, Type::I32, 0, 7, 6, 0, 0}; });
	/* r[5] is of cursor 1's, before; r[6] of the condition */
	expect_join_refused(read, 25, [](Op &op) { op = Op{Opcode::Copy, Type::I32, 0, 10, 5, 0, 0}; }, JoinKind::Full);
	expect_join_refused(read, 25, [](Op &op) { op = Op{Opcode::Copy, Type::I32, 0, 10, 6, 0, 0}; }, JoinKind::Full);
	expect_join_refused("a sink stands before the last Match", 20, [](Op &op) { op = Op{Opcode::Result, Type::None, 0, 4, 2, 0, 0}; });

	/* a row program's Result does not care which Match its registers come from, where it is an inner one */
	auto		b = join_program(JoinKind::Inner);

	b->ops[24] = Op{Opcode::Copy, Type::I32, 0, 7, 6, 0, 0};
	EXPECT_EQ(verify_join(*b), nullptr);
}

TEST(VmProgram, RangesAreVerified)
{
	auto		program = [](int32_t flags, int64_t lo, int64_t hi) {
		auto		b = join_program();
		const int64_t bounds[] = {lo, hi};

		b->ops[3].p3 = HASH_SORTED;
		b->ops[15] = Op{Opcode::SeekRange, Type::None, 0, 1, flags, b->add_aux(bounds, 2), 0};
		return b;
	};
	auto		expect = [&](const char *why, int32_t flags, int64_t lo, int64_t hi) { EXPECT_STREQ(verify_join(*program(flags, lo, hi)), why); };
	const char *flags = "a range has no bound or unknown flags";
	const char *not_given = "a bound that is not given has a register";

	expect(nullptr, RANGE_LO | RANGE_HI | RANGE_LO_STRICT | RANGE_HI_STRICT, 2, 8);
	expect(nullptr, RANGE_LO | RANGE_LO_STRICT, 2, -1);
	expect(nullptr, RANGE_HI, -1, 2);
	expect(flags, 0, -1, -1);
	expect(flags, RANGE_LO | RANGE_HI_STRICT, 2, -1);
	expect(flags, RANGE_HI | RANGE_LO_STRICT, -1, 2);
	expect(flags, RANGE_LO | 16, 2, -1);
	expect(not_given, RANGE_LO, 2, 8);
	expect(not_given, RANGE_HI, 2, 8);
	expect("a register number is out of range", RANGE_LO, -1, -1);
	expect("a register number is out of range", RANGE_HI, -1, 100);
	expect("a register is read before it is written", RANGE_LO, 0, -1);	/* of the other pipeline */
	expect("a register is read before it is written", RANGE_LO, 5, -1);

	auto		b = program(RANGE_LO, 2, -1);

	b->ops[13] = Op{Opcode::Null, Type::I64, 0, 2, 0, 0, 0};
	EXPECT_STREQ(verify_join(*b), "a register has another type than its operation");
	b = program(RANGE_LO, 2, -1);
	b->ops[15].p3 = PROGRAM_MAX_AUX;
	EXPECT_STREQ(verify_join(*b), "an operand lies outside the auxiliary area");
	b = program(RANGE_LO, 2, -1);
	b->ops[3].p3 = 0;
	EXPECT_STREQ(verify_join(*b), "a sorted table is sought by equal keys, or another one by a range");
	b = join_program();
	b->ops[3].p3 = HASH_SORTED;
	EXPECT_STREQ(verify_join(*b), "a sorted table is sought by equal keys, or another one by a range");
	b->ops[3].p3 = 2;
	EXPECT_STREQ(verify_join(*b), "a sorted table has several keys, or a table is of an unknown kind");

	const SealedProgram p = seal(*program(RANGE_LO | RANGE_HI | RANGE_HI_STRICT, 2, 8));
	DisassembledOp d;

	disassemble_op(p.get(), 15, &d);
	EXPECT_STREQ(d.comment, "a lane for each row of cursor 1 with a key >= r[2] and < r[8]");
	disassemble_op(p.get(), 3, &d);
	EXPECT_STREQ(d.comment, "open sorted table 1, of the rows of cursor 1, with 1 key");
}

TEST(VmProgram, DisassemblesJoins)
{
	const SealedProgram p = seal(*join_program());
	const int	addresses[] = {3, 6, 10, 12, 15, 18, 20, 23};
	std::string text;

	for (int i : addresses)
	{
		DisassembledOp d;

		disassemble_op(p.get(), i, &d);
		text += std::string(d.opcode) + " | " + d.comment + "\n";
	}
	EXPECT_EQ(text,
			  "HashOpen | open hash table 1, of the rows of cursor 1, with 1 key\n"
			  "Parallel | run what follows, up to Converge at 11, for every row of 1 cursors, 1 driving\n"
			  "HashInsert | insert the row into hash table 1, by r[0]\n"
			  "Parallel | run what follows, up to Converge at 26, for every row of 3 cursors, 0 driving\n"
			  "Seek | a lane for each row of cursor 1 with the keys r[2]\n"
			  "Match | end of the inner join with cursor 1\n"
			  "Cross | the lane becomes one lane for each row of cursor 2\n"
			  "Match | end of the left join with cursor 2\n");
}

TEST(VmProgram, DisassemblesThePapersFilter)
{
	const SealedProgram p = seal(*paper_filter());
	std::string text;

	ASSERT_EQ(verify(p.get()), nullptr);
	for (int i = 0; i < p.get()->nops; i++)
	{
		DisassembledOp d;
		char		line[300];

		disassemble_op(p.get(), i, &d);
		snprintf(line, sizeof(line), "%d: %s %lld %lld %lld %s | %s\n", d.address, d.opcode, static_cast<long long>(d.p1),
				 static_cast<long long>(d.p2), static_cast<long long>(d.p3), d.p4, d.comment);
		text += line;
	}
	EXPECT_EQ(text,
			  "0: Table 0 0 0 0 | open relation 0 as cursor 0\n"
			  "1: ResultColumn 0 0 0 id | declare result column 0, int4, named id\n"
			  "2: ResultColumn 1 0 0 uniformi | declare result column 1, int4, named uniformi\n"
			  "3: ResultColumn 2 0 0 normali5 | declare result column 2, int4, named normali5\n"
			  "4: Parallel 1 0 14 0 | run what follows, up to Converge at 14, for every row of 1 cursors\n"
			  "5: Column 3 1 0 0 | r[3] = column 1 of cursor 0 (int4)\n"
			  "6: Integer 0 60 0 0 | r[0] = 60 (int4)\n"
			  "7: Le 3 0 12 0 | if r[3] <= r[0] the row is not in the result (int4)\n"
			  "8: Column 4 2 0 0 | r[4] = column 2 of cursor 0 (int4)\n"
			  "9: Integer 1 0 0 0 | r[1] = 0 (int4)\n"
			  "10: Lt 4 1 12 1 | if r[4] < r[1] goto 12 (int4)\n"
			  "11: Invalid 0 0 0 0 | the row is not in the result\n"
			  "12: Column 2 0 0 0 | r[2] = column 0 of cursor 0 (int4)\n"
			  "13: Result 2 3 0 0 | emit r[2] .. r[4] as a result row\n"
			  "14: Converge 0 0 0 0 | end of the parallel part: publish its partial state\n"
			  "15: Finish 0 0 0 0 | end of the program\n");
}

TEST(VmProgram, DisassemblesIntoShortBuffers)
{
	auto		b = paper_filter();
	const std::string longest(1000, 'x');

	b->ops[1].p4 = b->add_name(longest.c_str());

	const SealedProgram p = seal(*b);
	DisassembledOp d;

	disassemble_op(p.get(), 1, &d);
	EXPECT_EQ(std::string(d.p4), longest.substr(0, sizeof(d.p4) - 1));
	EXPECT_LT(strlen(d.comment), sizeof(d.comment));
}

TEST(VmProgram, SealIsDeterministicAndHashed)
{
	const SealedProgram a = seal(*paper_filter()), b = seal(*paper_filter());
	auto		other = paper_filter();

	EXPECT_EQ(a.words, b.words);
	other->ops[6].p2 = 61;
	EXPECT_NE(seal(*other).get()->hash, a.get()->hash);
}

TEST(VmProgram, BuilderFailsInsteadOfOverrunning)
{
	auto		b = new_builder();

	for (int i = 0; i < PROGRAM_MAX_REGS; i++)
		EXPECT_EQ(b->new_reg(Type::I32), i);
	EXPECT_FALSE(b->failed);
	EXPECT_EQ(b->new_reg(Type::I32), -1);
	EXPECT_TRUE(b->failed);

	b->init();
	for (int i = 0; i < PROGRAM_MAX_OPS; i++)
		b->emit(Opcode::Invalid, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	b->emit(Opcode::Invalid, Type::None, 0, 0, 0);
	EXPECT_TRUE(b->failed);

	b->init();

	std::vector<int64_t> values(PROGRAM_MAX_AUX);

	EXPECT_EQ(b->add_aux(values.data(), PROGRAM_MAX_AUX), 0);
	EXPECT_FALSE(b->failed);
	b->add_aux(values.data(), 1);
	EXPECT_TRUE(b->failed);

	b->init();
	b->add_name(std::string(PROGRAM_MAX_NAMES - 1, 'x').c_str());
	EXPECT_FALSE(b->failed);
	b->add_name("");
	EXPECT_TRUE(b->failed);
}

TEST(VmVerify, RefusesWhatDoesNotHold)
{
	auto		rows = paper_filter();
	auto		groups = grouped_program();

	ASSERT_EQ(verify(seal(*groups).get()), nullptr);
	expect_refused(*rows, 0, [](Op &op) { op.p3 = 1; });
	expect_refused(*rows, 1, [](Op &op) { op.p4 = 1 << 20; });
	expect_refused(*rows, 1, [](Op &op) { op.p1 = 1; });
	expect_refused(*rows, 1, [](Op &op) { op.type = Type::I64; });
	expect_refused(*rows, 4, [](Op &op) { op.p3 = 13; });
	expect_refused(*rows, 5, [](Op &op) { op.p2 = 3; });
	expect_refused(*rows, 5, [](Op &op) { op.p2 = -1; });
	expect_refused(*rows, 5, [](Op &op) { op.p3 = 1; });
	expect_refused(*rows, 5, [](Op &op) { op.type = Type::I64; });
	expect_refused(*rows, 5, [](Op &op) { op.p1 = 300; });
	expect_refused(*rows, 5, [](Op &op) { op.p1 = 0; });	/* written twice */
	expect_refused(*rows, 6, [](Op &op) { op.type = Type::Bool; });
	expect_refused(*rows, 7, [](Op &op) { op.p2 = 1; });	/* read before written */
	expect_refused(*rows, 7, [](Op &op) { op.p3 = 15; });	/* past Converge */
	expect_refused(*rows, 7, [](Op &op) { op.p3 = 7; });	/* backward */
	expect_refused(*rows, 7, [](Op &op) { op.p4 = 2; });
	expect_refused(*rows, 7, [](Op &op) { op.p5 = 4; });
	expect_refused(*rows, 7, [](Op &op) { op.p5 = COMPARE_STORES | JUMP_IF_NULL; });
	expect_refused(*rows, 11, [](Op &op) { op.opcode = Opcode::Group; });
	expect_refused(*rows, 11, [](Op &op) { op.opcode = Opcode::Count_; });
	expect_refused(*rows, 11, [](Op &op) { op.opcode = Opcode::Table; });
	expect_refused(*rows, 13, [](Op &op) { op.p1 = 5; });
	expect_refused(*rows, 13, [](Op &op) { op.p2 = 2; });
	expect_refused(*rows, 13, [](Op &op) { op.opcode = Opcode::Invalid; });
	expect_refused(*rows, 14, [](Op &op) { op.opcode = Opcode::Invalid; });
	expect_refused(*rows, 15, [](Op &op) { op.opcode = Opcode::Converge; });
	expect_refused(*groups, 2, [](Op &op) { op.type = Type::I64; });
	expect_refused(*groups, 4, [](Op &op) { op.p3 = 2; });
	expect_refused(*groups, 4, [](Op &op) { op.p1 = 2; });
	expect_refused(*groups, 10, [](Op &op) { op.p2 = 100; });
	expect_refused(*groups, 11, [](Op &op) { op.p5 = 99; });
	expect_refused(*groups, 11, [](Op &op) { op.p5 = static_cast<uint8_t>(AggFn::BoolAnd); });
	expect_refused(*groups, 11, [](Op &op) { op.p1 = 1; });
	expect_refused(*groups, 11, [](Op &op) { op.p3 = 1; });
	expect_refused(*groups, 12, [](Op &op) { op.p2 = 0; });

	auto		source = grouped_program();

	source->aux[0] = 1;
	EXPECT_NE(verify(seal(*source).get()), nullptr);
	source->aux[0] = RESULT_FROM_AGG | 2;
	EXPECT_NE(verify(seal(*source).get()), nullptr);

	auto		over_group = grouped_program();

	over_group->ops[8] = Op{Opcode::Goto, Type::None, 0, 0, 0, 12, 0};
	over_group->ops[9] = Op{Opcode::Null, Type::Bool, 0, 3, 0, 0, 0};
	EXPECT_NE(verify(seal(*over_group).get()), nullptr);
	over_group->ops[8].p3 = 13;
	EXPECT_EQ(verify(seal(*over_group).get()), nullptr);
}

TEST(VmVerify, ReadsNothingPastTheSize)
{
	const SealedProgram p = seal(*grouped_program());
	const size_t size = p.get()->size;

	for (size_t n = 0; n < size; n += 4)
	{
		/* exactly n bytes, so that a sanitizer sees a read behind them */
		std::unique_ptr<char, FreeDeleter> copy(static_cast<char *>(malloc(n ? n : 1)));

		memcpy(copy.get(), p.get(), n);
		EXPECT_NE(verify_program(reinterpret_cast<const Program *>(copy.get()), n, &PAPER_SCHEMA, 1), nullptr);
	}
	EXPECT_NE(verify_program(reinterpret_cast<const Program *>(reinterpret_cast<const char *>(p.get()) + 4), size, &PAPER_SCHEMA, 1), nullptr);
}

TEST(VmVerify, Params)
{
	auto		b = paper_filter();
	ParamValue	param = {60, 0, static_cast<uint32_t>(Type::I32)};

	b->ops[6] = Op{Opcode::Variable, Type::I32, 0, 0, 0, 0, 0};
	b->nparams = 1;

	const SealedProgram p = seal(*b);

	ASSERT_EQ(verify(p.get()), nullptr);
	EXPECT_NE(verify_params(p.get(), nullptr, 0), nullptr);
	EXPECT_EQ(verify_params(p.get(), &param, 1), nullptr);
	param.value = int64_t(1) << 40;
	EXPECT_NE(verify_params(p.get(), &param, 1), nullptr);
	param.is_null = 1;
	EXPECT_EQ(verify_params(p.get(), &param, 1), nullptr);
	param.type = static_cast<uint32_t>(Type::I64);
	EXPECT_NE(verify_params(p.get(), &param, 1), nullptr);
}

/* Whatever a bit flip makes of a program, it is refused, or it runs without harm. */
TEST(VmVerify, SurvivesBitFlips)
{
	std::mt19937_64 rng(7);
	Table		table;
	int			accepted = 0;

	for (int c = 0; c < 3; c++)
	{
		Column		column{Type::I32, {}};

		for (int r = 0; r < 1500; r++)
			column.rows.push_back(rng() % 9 == 0 ? Value{} : from_register(static_cast<int32_t>(rng() % 100) - 50));
		table.columns.push_back(column);
	}
	table.tablet_rows = {1500};
	table.build();
	for (int round = 0; round < 6000; round++)
	{
		SealedProgram p = seal(*(round % 2 ? grouped_program() : paper_filter()));
		char	   *bytes = reinterpret_cast<char *>(p.words.data());
		Program    *program = reinterpret_cast<Program *>(bytes);
		const size_t size = program->size;

		for (int flips = 1 + static_cast<int>(rng() % 3); flips > 0; flips--)
			bytes[rng() % size] ^= static_cast<char>(1 << (rng() % 8));
		/* with a right seal, or the hash would catch them all */
		if (program->size == size)
			program->hash = hash_program(program);
		if (verify_program(program, size, &PAPER_SCHEMA, 1))
			continue;
		accepted++;

		std::vector<ParamValue> params(PROGRAM_MAX_PARAMS);

		if (verify_params(program, params.data(), PROGRAM_MAX_PARAMS))
			continue;
		for (int i = 0; i < program->nops; i++)
		{
			DisassembledOp d;

			disassemble_op(program, i, &d);
		}
		if (program->grouped)
			run_cpu_groups(program, table, params, 1024, 2, rng);
		else
			run_cpu_rows(program, table, params, 1024);
	}
	EXPECT_GT(accepted, 100);
	EXPECT_LT(accepted, 5500);
}

/* A lane that does not live may hold what an int4 left where an int2 is expected. */
TEST(Semantics, DivisionTrapsForNoValue)
{
	for (volatile int32_t a : {INT32_MIN, -32769, -32768, -1, 0, 32767, INT32_MAX})
		for (volatile int32_t b : {INT32_MIN, -32768, -1, 0, 1, INT32_MAX})
		{
			uint32_t	errors = 0;

			sem::int_div<Type::I16>(a, b, &errors);
			sem::int_rem<Type::I16>(a, b, &errors);
			sem::int_div<Type::I32>(a, b, &errors);
			sem::int_rem<Type::I32>(a, b, &errors);
			EXPECT_EQ((errors & ERR_DIVISION_BY_ZERO) != 0, b == 0);
		}
}
