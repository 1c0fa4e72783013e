/*
 * vm_text_match_test.cc: patterns against PostgreSQL's MatchText(), images of all forms, patterns and images that make no
 * sense, TextMatch over tables at every level of the kernels, and what a program may not do with it.
 */
#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm_random.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

bool
found(const TextPattern *pattern, const std::string &value)
{
	/* of exactly its size, so that a sanitizer sees the end */
	std::unique_ptr<unsigned char[]> copy(new unsigned char[value.size()]);

	memcpy(copy.get(), value.data(), value.size());
	return text_matches(pattern, copy.get(), static_cast<uint32_t>(value.size()));
}

void
expect_like(const std::string &pattern, const std::string &value, bool utf8)
{
	PatternSet	set;
	const PatternSource source = {TextMatchKind::Like, pattern, utf8};

	if (set.add(source) < 0)
	{
		EXPECT_EQ(pattern.back(), '\\') << pattern;
		return;
	}
	ASSERT_EQ(check_text_pattern(set.patterns[0], set.patterns[0]->size), nullptr) << pattern;
	EXPECT_EQ(found(set.patterns[0], value), source.matches(value)) << "'" << value << "' LIKE '" << pattern << "' " << utf8;
}

/* A table of one column of these texts; "\xff" is a null. */
Table
table_of(const std::vector<std::string> &texts, std::vector<uint32_t> tablet_rows, int attlen = -1)
{
	Table		table;
	Column		column{Type::I64, {}};

	column.attlen = attlen;
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

/* SELECT rowid, column IS NULL, column LIKE pattern 0 [WHERE it does]. */
SealedProgram
match_program(bool only)
{
	auto		b = new_builder();
	const Type	types[] = {Type::RowId, Type::Bool, Type::Bool};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < 3; c++)
		b->emit(Opcode::ResultColumn, types[c], c, 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	column = b->new_reg(Type::I64), like = b->new_reg(Type::Bool), first = b->nregs;

	b->emit(Opcode::Column, Type::I64, column, 0, 0);
	b->emit(Opcode::TextMatch, Type::Bool, like, 0, 0, 0);
	if (only)
		b->emit(Opcode::IfNot, Type::Bool, like, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Rowid, Type::RowId, b->new_reg(Type::RowId), 0, 0);
	b->emit(Opcode::IsNull, Type::I64, b->new_reg(Type::Bool), column, 0);
	b->emit(Opcode::Copy, Type::Bool, b->new_reg(Type::Bool), like, 0);
	b->emit(Opcode::Result, Type::None, first, 3, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

void
expect_table(const Table &table, const PatternSource &source)
{
	PatternSet	set;

	ASSERT_GE(set.add(source), 0) << source.text;
	for (bool only : {false, true})
	{
		const SealedProgram program = match_program(only);
		const CursorSchema schema = {1, table.types.data()};

		ASSERT_EQ(verify_program(program.get(), program.get()->size, &schema, 1), nullptr);

		const std::vector<std::string> expected = rows_text(program.get(), Interpreter(program.get(), table, nullptr, nullptr, &set).run());

		for (int level = 0; level < 3; level++)
		{
			limit_cpu_kernels(level);

			const Outcome got = run_cpu_rows(program.get(), table, {}, 2048, nullptr, &set);

			limit_cpu_kernels(2);
			ASSERT_EQ(got.errors, 0u);
			ASSERT_EQ(rows_text(program.get(), got), expected) << "'" << source.text << "' level " << level << " only " << only;
		}
	}
}

}  // namespace

TEST(VmTextMatch, LikeAsPostgres)
{
	const std::vector<std::string> values = {"", "a", "ab", "abc", "abcabc", "aXbXc", "%", "_", "\\", "a%b", "a_b", "a\\b", "\xc3\xa4", "\xc3\xa4" "b",
		"b\xe2\x82\xac", "\xf0\x9f\x90\x98\xf0\x9f\x90\x98", "the special packages of requests", "special requests", "requests special", "aaaaaaaaab"};
	const std::vector<std::string> patterns = {"", "%", "%%", "_", "__", "_%", "%_", "%_%", "_%_", "a", "a%", "%a", "%a%", "a_", "_b", "a%c", "%b%c", "%ab%ab%",
		"\\%", "\\_", "a\\%b", "%\\_%", "\\\\", "a\\\\b", "\\a\\b", "a\\", "%\\", "%special%requests%", "%special%requests", "special%requests",
		"%a_c%", "%a__", "%_b_", "_\xe2\x82\xac", "__\xe2\x82\xac", "\xc3\xa4_", "%\xf0\x9f\x90\x98", "_\xf0\x9f\x90\x98", "%ab", "%aab", "%a%b", "%a_%b", "%aa_b", "%\\a_"};

	for (const std::string &pattern : patterns)
		for (const std::string &value : values)
			for (bool utf8 : {true, false})
				expect_like(pattern, value, utf8);
}

TEST(VmTextMatch, LikeAtRandom)
{
	Rng			rng(7);
	int			matches = 0;

	for (uint64_t n = setting("GPUVM_TEST_PATTERNS", 30000); n > 0 && !::testing::Test::HasFailure(); n--)
	{
		const std::string pattern = random_like(rng), value = random_text(rng, 12);

		for (bool utf8 : {true, false})
			expect_like(pattern, value, utf8);
		matches += (pattern.empty() || pattern.back() != '\\') && PatternSource{TextMatchKind::Like, pattern}.matches(value);
	}
	EXPECT_GT(matches, 100);
}

/* Walked byte by byte as walked character by character, of one byte and of several; a value may end within one. */
TEST(VmTextMatch, Automata)
{
	Rng			rng(77);
	int			matches = 0;

	for (int n = 0; n < 5000; n++)
	{
		PatternSet	set;
		PatternSource source = {TextMatchKind::Automaton, ""};

		source.automaton = random_automaton(rng, n % 3 > 0);
		source.trim_blanks = n % 5 == 0;
		ASSERT_EQ(set.add(source), 0);
		ASSERT_EQ(check_text_pattern(set.patterns[0], set.patterns[0]->size), nullptr);
		for (int i = 0; i < 20; i++)
		{
			const std::string value = random_text(rng, 8);
			const bool	is = source.matches(value);

			EXPECT_EQ(found(set.patterns[0], value), is) << n << " '" << value << "'";
			matches += is;
			(void) found(set.patterns[0], value.substr(0, rng() % (value.size() + 1)));
		}
	}
	EXPECT_GT(matches, 20000);
	EXPECT_LT(matches, 80000);
}

/* Such as come with a job: each step of what is not refused stays within the tables. */
TEST(VmTextMatch, HostileAutomata)
{
	Rng			rng(78);
	int			refused = 0;

	for (int n = 0; n < 200; n++)
	{
		PatternSet	set;
		PatternSource source = {TextMatchKind::Automaton, ""};

		source.automaton = random_automaton(rng, n % 3 > 0);
		ASSERT_EQ(set.add(source), 0);

		const TextPattern *pattern = set.patterns[0];
		const TextAutomaton *automaton = pattern->automaton();
		const auto	refuses = [&](size_t at, int byte) {
			std::vector<uint64_t> copy(pattern->size / 8 + 1);
			uint8_t    *bytes = reinterpret_cast<uint8_t *>(copy.data());

			memcpy(bytes, pattern, pattern->size);
			bytes[at] = static_cast<uint8_t>(byte);
			if (check_text_pattern(reinterpret_cast<TextPattern *>(bytes), pattern->size) != nullptr)
				return true;
			(void) found(reinterpret_cast<TextPattern *>(bytes), random_text(rng, 8));
			return false;
		};
		const auto	offset_of = [&](const void *field) { return static_cast<size_t>(static_cast<const char *>(field) - reinterpret_cast<const char *>(pattern)); };

		EXPECT_TRUE(refuses(offset_of(&automaton->nstates), automaton->nstates + 1));
		EXPECT_TRUE(refuses(offset_of(&automaton->nclasses), automaton->nclasses - 1));
		EXPECT_TRUE(refuses(offset_of(&automaton->nranges), automaton->nranges + 1));
		EXPECT_TRUE(refuses(offset_of(&automaton->start), automaton->nstates));
		EXPECT_TRUE(refuses(offset_of(&automaton->classes[rng() % 256]), automaton->nclasses));
		EXPECT_EQ(refuses(offset_of(&automaton->classes[rng() % 256]), AUTOMATON_DECODE), automaton->nranges == 0);
		EXPECT_TRUE(refuses(offset_of(automaton->next() + rng() % (automaton->nstates * automaton->nclasses)), automaton->nstates));
		if (automaton->nranges > 0)
		{
			EXPECT_TRUE(refuses(offset_of(automaton->ranges() + rng() % automaton->nranges), automaton->nclasses));
		}
		for (int i = 0; i < 50; i++)
			refused += refuses(offset_of(automaton) + rng() % pattern->nbytes, static_cast<int>(rng()));
	}
	EXPECT_GT(refused, 1000);
	EXPECT_LT(refused, 9999);
}

/* No wildcards but % at the end: what needs no pieces has none. */
TEST(VmTextMatch, Kinds)
{
	PatternSet	set;
	auto		kind_of = [&](const std::string &like) { return set.patterns[static_cast<size_t>(set.add({TextMatchKind::Like, like}))]->kind; };

	EXPECT_EQ(kind_of("abc"), TextMatchKind::Equal);
	EXPECT_EQ(kind_of("a\\%c"), TextMatchKind::Equal);
	EXPECT_EQ(kind_of(""), TextMatchKind::Equal);
	EXPECT_EQ(kind_of("abc%"), TextMatchKind::Prefix);
	EXPECT_EQ(kind_of("abc%%"), TextMatchKind::Prefix);
	EXPECT_EQ(kind_of("abc_"), TextMatchKind::Like);
	EXPECT_EQ(kind_of("abc_%"), TextMatchKind::Like);
	EXPECT_EQ(kind_of("%abc"), TextMatchKind::Like);
	EXPECT_EQ(kind_of("_bc"), TextMatchKind::Like);
	EXPECT_EQ(set.add({TextMatchKind::Like, "abc\\"}), -1);
	EXPECT_EQ(set.add({TextMatchKind::Like, std::string(TEXT_PATTERN_MAX, 'x')}), -1);
	EXPECT_EQ(set.add({TextMatchKind::Equal, std::string(TEXT_PATTERN_MAX, 'x')}), -1);
	EXPECT_EQ(set.add({TextMatchKind::Prefix, std::string(TEXT_PATTERN_MAX, 'x')}), -1);
	EXPECT_GE(set.add({TextMatchKind::Equal, std::string(4000, 'x')}), 0);
	EXPECT_TRUE(found(set.patterns.back(), std::string(4000, 'x')));
	EXPECT_FALSE(found(set.patterns.back(), std::string(3999, 'x')));

	const int	blanks = set.add({TextMatchKind::Equal, "ab  ", true, true});

	EXPECT_TRUE(found(set.patterns[static_cast<size_t>(blanks)], "ab"));
	EXPECT_TRUE(found(set.patterns[static_cast<size_t>(blanks)], "ab     "));
	EXPECT_FALSE(found(set.patterns[static_cast<size_t>(blanks)], " ab"));
	EXPECT_FALSE(found(set.patterns[static_cast<size_t>(blanks)], "ab x"));
}

TEST(VmTextMatch, Images)
{
	std::string images;
	TextValue	value;
	auto		at = [&](uint64_t place) { return reinterpret_cast<const unsigned char *>(images.data()) + place; };

	for (uint32_t n : {0u, 1u, 125u, 126u, 127u, 1000u, 70000u})
	{
		const uint64_t place = append_image(&images, std::string(n, 'x'), -1);

		ASSERT_TRUE(text_value(at(place), images.size() - place, -1, &value)) << n;
		EXPECT_EQ(value.len, n);
		EXPECT_EQ(value.bytes, reinterpret_cast<const unsigned char *>(images.data()) + images.size() - n);
		/* cut off */
		EXPECT_FALSE(text_value(at(place), images.size() - place - 1, -1, &value));
	}
	EXPECT_TRUE(text_value(at(0), 16, 16, &value));
	EXPECT_EQ(value.len, 16u);
	EXPECT_FALSE(text_value(at(0), 15, 16, &value));
	EXPECT_FALSE(text_value(at(0), 0, -1, &value));

	/* pointers to elsewhere, compressed ones, headers that are less than themselves */
	const unsigned char headers[][4] = {{1, 0, 0, 0}, {2, 1, 0, 0}, {6, 0, 0, 0}, {0, 0, 0, 0}, {8, 0, 0, 0}, {0xfc, 0xff, 0xff, 0xff}};

	for (const unsigned char *header : headers)
		EXPECT_FALSE(text_value(header, 4, -1, &value)) << int{header[0]};
}

/* Whatever a pattern says, if it passes the check nothing outside of it or of the value is read. */
TEST(VmTextMatch, PatternsThatMakeNoSense)
{
	Rng			rng(11);
	int			passed = 0;

	for (int n = 0; n < 20000; n++)
	{
		PatternSet	set = random_patterns(rng);
		const TextPattern *from = set.patterns[rng() % set.patterns.size()];
		std::unique_ptr<char[]> copy(new char[from->size]);
		TextPattern *pattern = reinterpret_cast<TextPattern *>(copy.get());

		memcpy(copy.get(), from, from->size);
		for (int changes = 1 + pick_int(rng, 3); changes > 0; changes--)
			copy[rng() % from->size] = static_cast<char>(chance(rng, 50) ? pick_int(rng, 4) : rng());
		if (check_text_pattern(pattern, from->size) != nullptr)
			continue;
		passed++;
		for (int i = 0; i < 4; i++)
			(void) found(pattern, random_text(rng, 12));
		if (pattern->kind != TextMatchKind::Like)
			continue;
		EXPECT_LT(text_search(pattern).rare[0], std::max<int>(1, pattern->pieces()[pattern->search].len));
	}
	EXPECT_GT(passed, 1000);
	EXPECT_NE(check_text_pattern(reinterpret_cast<const TextPattern *>("                        "), 23), nullptr);
}

/* Every width of codes, nulls, values as short and as long as they come, literals at every place. */
TEST(VmTextMatch, Tables)
{
	Rng			rng(3);
	const std::vector<std::string> patterns = {"%special%requests%", "%quest%", "%s%", "%", "%_", "", "special%", "%requests", "requests", "%e_t%", "_pecial%s",
		"%requestsx%", "%\xe2\x82\xac_%", "% special requests %", "%xx%"};

	for (uint32_t n : {1u, 5u, 200u, 3000u})
		for (int most : {0, 2, 6, 40})
			for (int nulls : {0, 30, 100})
			{
				std::vector<std::string> texts;

				for (uint32_t i = 0; i < n; i++)
				{
					static const char *const words[] = {"special", "requests", " ", "s", "re", "quests", "\xe2\x82\xac", "x", "requestsrequests"};
					std::string text;

					for (int k = pick_int(rng, most + 1); k > 0; k--)
						text += words[pick_int(rng, 9)];
					texts.push_back(chance(rng, nulls) ? "\xff" : text);
				}

				const Table table = table_of(texts, n < 3000 ? std::vector<uint32_t>{n} : std::vector<uint32_t>{2000, 1000});

				for (const std::string &pattern : patterns)
				{
					expect_table(table, {TextMatchKind::Like, pattern});
					if (::testing::Test::HasFatalFailure())
						return;
				}
				expect_table(table, {TextMatchKind::Equal, "s"});
				expect_table(table, {TextMatchKind::Equal, ""});
				expect_table(table, {TextMatchKind::Prefix, "re"});
				expect_table(table, {TextMatchKind::Null, ""});
				for (uint64_t seed = 0; seed < 4; seed++)
				{
					PatternSource source = {TextMatchKind::Automaton, ""};
					Rng			automata(seed);

					source.automaton = random_automaton(automata, true);
					expect_table(table, source);
				}
			}
}

TEST(VmTextMatch, LongValues)
{
	std::vector<std::string> texts(1500, "short");

	texts[3] = std::string(1 << 20, 'a') + "b";
	texts[4] = "";
	texts[1499] = std::string(70000, 'b') + "special";
	for (const char *like : {"%ab%", "%special%", "%b", "%special", "%aaab", "a%", "%\\a\\b"})
		expect_table(table_of(texts, {1500}), {TextMatchKind::Like, like});
}

TEST(VmTextMatch, FixedLength)
{
	std::vector<std::string> texts;
	Rng			rng(5);
	PatternSource source = {TextMatchKind::Equal, ""};

	for (int i = 0; i < 1100; i++)
	{
		texts.push_back(i % 7 == 0 ? "\xff" : std::string(16, static_cast<char>(1 + i % 5)));
		for (int k = 0; k < 3 && texts.back().size() == 16; k++)
			texts.back()[rng() % 16] = static_cast<char>(pick_int(rng, 2));
	}
	source.text = texts[1];
	source.attlen = 16;
	expect_table(table_of(texts, {1100}, 16), source);
}

/* References that lie outside of the images or in no order: no crash, and no match outside of a value. */
TEST(VmTextMatch, ReferencesThatMakeNoSense)
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
		for (const char *like : {"%special%", "%a%b%", "special%", "%_"})
		{
			PatternSet	set;
			const SealedProgram program = match_program(false);

			set.add({TextMatchKind::Like, like});
			for (int level = 0; level < 3; level++)
			{
				limit_cpu_kernels(level);
				EXPECT_EQ(run_cpu_rows(program.get(), table, {}, 2048, nullptr, &set).rows.size(), 2000u);
			}
			limit_cpu_kernels(2);
		}
	}
}

/* A column of plain integers has nothing to match. */
TEST(VmTextMatch, OtherColumns)
{
	Table		table;
	PatternSet	set;
	const SealedProgram program = match_program(false);

	table.columns.push_back(Column{Type::I64, std::vector<Value>(100, from_register(int64_t{5}))});
	table.tablet_rows = {100};
	table.build();
	set.add({TextMatchKind::Like, "%a%"});
	EXPECT_NE(run_cpu_rows(program.get(), table, {}, 1024, nullptr, &set).errors, 0u);
}

TEST(VmTextMatch, Verified)
{
	const Type	types[] = {Type::I64, Type::I32};
	const CursorSchema schema = {2, types};
	SealedProgram p = match_program(false);
	Program    *program = const_cast<Program *>(p.get());
	Op		   *op = nullptr;
	DisassembledOp shown;

	for (int i = 0; i < program->nops; i++)
		if (program->ops()[i].opcode == Opcode::TextMatch)
		{
			op = const_cast<Op *>(program->ops()) + i;
			disassemble_op(program, i, &shown);
		}
	ASSERT_NE(op, nullptr);
	EXPECT_STREQ(shown.comment, "r[1] = column 0 of cursor 0 matches pattern 0");
	EXPECT_EQ(program->npatterns, 1);

	auto		wrong = [&]() {
		program->hash = hash_program(program);
		return verify_program(program, program->size, &schema, 1);
	};
	const Op	was = *op;

	EXPECT_EQ(wrong(), nullptr);
	for (int field = 0; field < 7; field++)
	{
		switch (field)
		{
			case 0: op->p2 = 1; break;
			case 1: op->p2 = 2; break;
			case 2: op->p2 = -1; break;
			case 3: op->p3 = 1; break;
			case 4: op->p4 = 1; break;
			case 5: op->p4 = -1; break;
			default: op->type = Type::I64; break;
		}
		EXPECT_NE(wrong(), nullptr) << field;
		*op = was;
	}
	program->npatterns = PROGRAM_MAX_PATTERNS + 1;
	EXPECT_NE(wrong(), nullptr);
	program->npatterns = 1;
	EXPECT_EQ(wrong(), nullptr);
	EXPECT_NE(verify_patterns(program, 0), nullptr);
	EXPECT_EQ(verify_patterns(program, 1), nullptr);
}
