/*
 * vm_text_part_test.cc: parts of texts against what PostgreSQL's functions give, TextPart over tables at every level of the kernels,
 * images that make no sense, and what a program may not ask for.
 */
#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm_random.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr uint8_t UTF8 = TEXT_UTF8, TRIM = TEXT_TRIM_BLANKS;

int64_t
part(TextPartKind kind, uint8_t flags, uint8_t count = 0, uint32_t skip = 0)
{
	return text_part_operand(TextPart{kind, flags, count, skip});
}

int64_t
characters(uint32_t skip, uint8_t count, uint8_t flags = UTF8)
{
	return part(TextPartKind::Packed, flags, count, skip);
}

/* In memory of exactly its size, so that a sanitizer sees the end. */
int64_t
of(int64_t operand, const std::string &value, uint32_t *errors)
{
	std::unique_ptr<unsigned char[]> copy(new unsigned char[value.size()]);

	memcpy(copy.get(), value.data(), value.size());
	return text_part(text_part_of(operand), copy.get(), static_cast<uint32_t>(value.size()), errors);
}

std::string
unpacked(int64_t operand, const std::string &value)
{
	char		bytes[TEXT_PART_BYTES];
	uint32_t	errors = 0;
	const int64_t packed = of(operand, value, &errors);

	return errors != 0 ? "!" : std::string(bytes, static_cast<size_t>(unpack_text(packed, bytes)));
}

/* A table of one column of these texts; "\xff" is a null. */
Table
table_of(const std::vector<std::string> &texts, std::vector<uint32_t> tablet_rows)
{
	Table		table;
	Column		column{Type::I64, {}};

	for (const std::string &text : texts)
	{
		column.rows.push_back(text == "\xff" ? Value{} : from_register(int64_t{0}));
		column.texts.push_back(text);
	}
	table.columns.push_back(std::move(column));
	table.tablet_rows = std::move(tablet_rows);
	table.build();
	return table;
}

/* SELECT rowid, a part [WHERE it is not `without`]. */
SealedProgram
part_program(int64_t operand, const int64_t *without = nullptr)
{
	auto		b = new_builder();
	const Type	types[] = {Type::RowId, Type::I64};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < 2; c++)
		b->emit(Opcode::ResultColumn, types[c], c, 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	taken = b->new_reg(Type::I64), other = b->new_reg(Type::I64), first = b->nregs;

	b->emit(Opcode::TextPart, Type::I64, taken, 0, 0, operand);
	if (without != nullptr)
	{
		b->emit(Opcode::Int64, Type::I64, other, 0, 0, *without);
		b->emit(Opcode::Eq, Type::I64, taken, other, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	}
	b->emit(Opcode::Rowid, Type::RowId, b->new_reg(Type::RowId), 0, 0);
	b->emit(Opcode::Copy, Type::I64, b->new_reg(Type::I64), taken, 0);
	b->emit(Opcode::Result, Type::None, first, 2, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

void
expect_table(const Table &table, const SealedProgram &program)
{
	const CursorSchema schema = {1, table.types.data()};

	ASSERT_EQ(verify_program(program.get(), program.get()->size, &schema, 1), nullptr);

	const Outcome expected = Interpreter(program.get(), table, nullptr).run();

	for (int level = 0; level < 3; level++)
	{
		limit_cpu_kernels(level);

		const Outcome got = run_cpu_rows(program.get(), table, {}, 2048);

		limit_cpu_kernels(2);
		ASSERT_EQ(got.errors, expected.errors);
		if (expected.errors == 0)
		{
			ASSERT_EQ(rows_text(program.get(), got), rows_text(program.get(), expected)) << "level " << level;
		}
	}
}

}  // namespace

TEST(VmTextPart, AsPostgres)
{
	EXPECT_EQ(unpacked(characters(0, 2), "13-345"), "13");
	EXPECT_EQ(unpacked(characters(3, 2), "13-345"), "34");
	EXPECT_EQ(unpacked(characters(5, 2), "13-345"), "5");
	EXPECT_EQ(unpacked(characters(6, 2), "13-345"), "");
	EXPECT_EQ(unpacked(characters(60, 2), "13-345"), "");
	EXPECT_EQ(unpacked(characters(TEXT_PART_MAX_SKIP, 8), "13-345"), "");
	EXPECT_EQ(unpacked(characters(TEXT_PART_MAX_SKIP, 8, 0), "13-345"), "");
	EXPECT_EQ(unpacked(characters(0, 0), "13-345"), "");
	EXPECT_EQ(unpacked(characters(0, 2), ""), "");
	EXPECT_EQ(unpacked(characters(0, 2), "\xc3\xa4\xe2\x82\xac" "b"), "\xc3\xa4\xe2\x82\xac");
	EXPECT_EQ(unpacked(characters(1, 2), "\xc3\xa4\xe2\x82\xac" "b"), "\xe2\x82\xac" "b");
	EXPECT_EQ(unpacked(characters(0, 2), "\xf0\x9f\x90\x98\xf0\x9f\x90\x98" "x"), "\xf0\x9f\x90\x98\xf0\x9f\x90\x98");
	EXPECT_EQ(unpacked(characters(0, 3), "\xf0\x9f\x90\x98\xf0\x9f\x90\x98" "x"), "!");
	EXPECT_EQ(unpacked(characters(0, 3), "\xf0\x9f\x90\x98\xf0\x9f\x90\x98"), "\xf0\x9f\x90\x98\xf0\x9f\x90\x98");
	EXPECT_EQ(unpacked(characters(0, 8), "12345678901"), "12345678");
	EXPECT_EQ(unpacked(characters(0, 2, 0), "\xc3\xa4\xe2"), "\xc3\xa4");
	EXPECT_EQ(unpacked(characters(0, 4), "a   "), "a   ");
	EXPECT_EQ(unpacked(characters(0, 4, UTF8 | TRIM), "a   "), "a");
	EXPECT_EQ(unpacked(characters(0, 4, UTF8 | TRIM), "    "), "");
	EXPECT_EQ(unpacked(characters(0, 4, UTF8 | TRIM), " a b  "), " a b");

	uint32_t	errors = 0;

	EXPECT_EQ(of(part(TextPartKind::Characters, UTF8), "a\xc3\xa4\xe2\x82\xac ", &errors), 4);
	EXPECT_EQ(of(part(TextPartKind::Characters, UTF8 | TRIM), "a\xc3\xa4\xe2\x82\xac ", &errors), 3);
	EXPECT_EQ(of(part(TextPartKind::Characters, 0), "a\xc3\xa4", &errors), 3);
	EXPECT_EQ(of(part(TextPartKind::Bytes, UTF8), "a\xc3\xa4 ", &errors), 4);
	EXPECT_EQ(of(part(TextPartKind::Bytes, TRIM), "  ", &errors), 0);
	EXPECT_EQ(errors, 0u);
}

/* Texts are equal where their numbers are, and none is what no text is. */
TEST(VmTextPart, Random)
{
	Rng			rng(4);
	std::map<int64_t, std::string> texts;

	for (int i = 0; i < 20000; i++)
	{
		const std::string value = random_text(rng, 6);
		const int64_t operand = random_part(rng, 8);
		uint32_t	errors = 0, wanted = 0;
		const int64_t got = of(operand, value, &errors), expected = part_of_text(operand, value, &wanted);

		ASSERT_EQ(errors, wanted) << value;
		ASSERT_EQ(got, expected) << value;
		if (errors == 0 && text_part_of(operand).kind == TextPartKind::Packed)
		{
			EXPECT_NE(got, NO_PACKED_TEXT);
			EXPECT_EQ(texts.emplace(got, unpacked(operand, value)).first->second, unpacked(operand, value));
		}
	}
	EXPECT_GT(texts.size(), 1000u);
}

/* Every width of codes, nulls, texts of all lengths. */
TEST(VmTextPart, Tables)
{
	Rng			rng(3);
	const int64_t operands[] = {characters(0, 2), characters(1, 1), characters(0, 3), characters(2, 8, UTF8 | TRIM), characters(0, 8, 0),
		part(TextPartKind::Characters, UTF8), part(TextPartKind::Characters, TRIM), part(TextPartKind::Bytes, 0)};

	for (uint32_t n : {1u, 5u, 200u, 3000u})
		for (int most : {0, 2, 6, 200})
			for (int nulls : {0, 30, 100})
			{
				std::vector<std::string> texts;

				for (uint32_t i = 0; i < n; i++)
					texts.push_back(chance(rng, nulls) ? "\xff" : random_text(rng, most));

				const Table table = table_of(texts, n < 3000 ? std::vector<uint32_t>{n} : std::vector<uint32_t>{2000, 1000});

				for (int64_t operand : operands)
				{
					const int64_t a = 'a', empty = 0;

					expect_table(table, part_program(operand));
					expect_table(table, part_program(operand, &a));
					expect_table(table, part_program(operand, &empty));
					if (::testing::Test::HasFatalFailure())
						return;
				}
			}
}

/* A value that is too long for an integer raises on lanes that live, and on no others. */
TEST(VmTextPart, TooLong)
{
	std::vector<std::string> texts(3000, "ab");

	texts[2500] = std::string(1 << 20, 'x');
	EXPECT_EQ(run_cpu_rows(part_program(characters(0, 8)).get(), table_of(texts, {3000}), {}, 1024).errors, 0u);
	texts[2500] = "\xf0\x9f\x90\x98\xf0\x9f\x90\x98\xf0\x9f\x90\x98";
	for (uint8_t count : {2, 3})
	{
		Table		table = table_of(texts, {3000});
		const SealedProgram program = part_program(characters(0, count));

		EXPECT_EQ(run_cpu_rows(program.get(), table, {}, 1024).errors, count == 2 ? 0u : uint32_t{ERR_CAST_RANGE});
		expect_table(table, program);

		std::vector<bool> masked(3000);

		masked[2500] = true;
		table.mask(masked);
		EXPECT_EQ(run_cpu_rows(program.get(), table, {}, 1024).errors, 0u);
	}
}

/* References that lie outside of the images or in no order, headers that lie: no crash. */
TEST(VmTextPart, ReferencesThatMakeNoSense)
{
	Rng			rng(9);
	std::vector<std::string> texts;

	for (int i = 0; i < 2000; i++)
		texts.push_back(random_text(rng, 10) + "special");
	for (int round = 0; round < 20; round++)
	{
		Table		table = table_of(texts, {2000});
		const ColumnChunk &chunk = tablet_chunks(table.tablets[0].get())[0];
		char	   *codes = reinterpret_cast<char *>(table.tablets[0].get()) + chunk.data;
		char	   *images = reinterpret_cast<char *>(table.tablets[0].get()) + variable_at(table.tablets[0].get(), chunk);

		for (int n = 1 + pick_int(rng, 500); n > 0; n--)
			(round % 2 ? codes[rng() % (2000u * chunk.width)] : images[rng() % variable_bytes(chunk)]) = static_cast<char>(rng());
		for (int64_t operand : {characters(0, 2), characters(3, 8, UTF8 | TRIM), part(TextPartKind::Characters, UTF8)})
			for (int level = 0; level < 3; level++)
			{
				limit_cpu_kernels(level);

				const Outcome got = run_cpu_rows(part_program(operand).get(), table, {}, 2048);

				EXPECT_TRUE(got.errors != 0 || got.rows.size() == 2000u);
			}
	}
	limit_cpu_kernels(2);
}

TEST(VmTextPart, OtherColumns)
{
	Table		table;

	table.columns.push_back(Column{Type::I64, std::vector<Value>(100, from_register(int64_t{5}))});
	table.tablet_rows = {100};
	table.build();
	EXPECT_NE(run_cpu_rows(part_program(characters(0, 2)).get(), table, {}, 1024).errors, 0u);
}

TEST(VmTextPart, Verified)
{
	const Type	types[] = {Type::I64, Type::I32};
	const CursorSchema schema = {2, types};
	const SealedProgram p = part_program(characters(2, 3, UTF8 | TRIM));
	Program    *program = const_cast<Program *>(p.get());
	Op		   *op = const_cast<Op *>(program->ops());
	DisassembledOp shown;

	while (op->opcode != Opcode::TextPart)
		op++;
	disassemble_op(program, static_cast<int>(op - program->ops()), &shown);
	EXPECT_STREQ(shown.comment, "r[0] = 3 characters behind the first 2 of column 0 of cursor 0 without blanks at the end (int8)");

	const Op	was = *op;
	auto		wrong = [&](auto change) {
		change();
		program->hash = hash_program(program);

		const bool	refused = verify_program(program, program->size, &schema, 1) != nullptr;

		*op = was;
		return refused;
	};

	EXPECT_FALSE(wrong([] {}));
	EXPECT_FALSE(wrong([&] { op->p4 = part(TextPartKind::Bytes, 0); }));
	EXPECT_TRUE(wrong([&] { op->p2 = 1; }));
	EXPECT_TRUE(wrong([&] { op->p2 = 2; }));
	EXPECT_TRUE(wrong([&] { op->p3 = 1; }));
	EXPECT_TRUE(wrong([&] { op->type = Type::I32; }));
	EXPECT_TRUE(wrong([&] { op->p4 = -1; }));
	EXPECT_TRUE(wrong([&] { op->p4 = characters(0, 9); }));
	EXPECT_TRUE(wrong([&] { op->p4 = characters(TEXT_PART_MAX_SKIP + 1, 1); }));
	EXPECT_TRUE(wrong([&] { op->p4 = characters(0, 1, 4); }));
	EXPECT_TRUE(wrong([&] { op->p4 = part(TextPartKind::Bytes, 0, 1); }));
	EXPECT_TRUE(wrong([&] { op->p4 = part(static_cast<TextPartKind>(3), 0); }));
	EXPECT_TRUE(wrong([&] { op->p4 |= int64_t{1} << 60; }));
}
