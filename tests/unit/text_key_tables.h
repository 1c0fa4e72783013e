/*
 * text_key_tables.h: columns of texts, and programs that make keys of them (TextKey) or compare them (TextCompare).
 */
#ifndef GPUVM_TESTS_TEXT_KEY_TABLES_H
#define GPUVM_TESTS_TEXT_KEY_TABLES_H

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "vm/text_part.h"
#include "vm_random.h"

namespace gpuvm {
namespace reference {

inline const char *const NULL_TEXT = "\xff";

inline Column
column_of(const std::vector<std::string> &texts, int attlen = -1)
{
	Column		column{Type::I64, {}};

	column.attlen = attlen;
	for (const std::string &text : texts)
	{
		column.rows.push_back(text == NULL_TEXT ? Value{} : from_register(int64_t{0}));
		column.texts.push_back(text);
	}
	return column;
}

/* What groups are by: the whole value (TextKey), its first characters (TextPart), or the column as it is. */
enum class GroupKey
{
	Text,
	Part,
	Plain,
};

/* SELECT key, count(*) GROUP BY key, where the key is column 0's. */
inline SealedProgram
group_program(int attlen, GroupKey kind = GroupKey::Text)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < 2; c++)
		b->emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, 1, 1, b->add_aux(sources, 2));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	column = b->new_reg(Type::I64);
	const int64_t key = kind == GroupKey::Plain ? column : b->new_reg(Type::I64);

	b->emit(Opcode::Column, Type::I64, column, 0, 0);
	if (kind == GroupKey::Text)
		b->emit(Opcode::TextKey, Type::I64, static_cast<int>(key), column, attlen);
	if (kind == GroupKey::Part)
		b->emit(Opcode::TextPart, Type::I64, static_cast<int>(key), 0, 0, text_part_operand(TextPart{TextPartKind::Packed, TEXT_UTF8, 2, 0}));
	b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

/* FROM a JOIN b ON a.text = b.text: count(*). */
inline SealedProgram
join_program()
{
	auto		b = new_builder();
	const int64_t source = RESULT_FROM_AGG;

	for (int c = 0; c < 2; c++)
		b->emit(Opcode::Table, Type::None, c, 0, c);
	b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("count"));
	b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));
	for (int c : {1, 0})
	{
		const int	parallel = b->emit(Opcode::Parallel, Type::None, c == 1 ? 1 : 2, c, 0);
		const int	column = b->new_reg(Type::I64);
		const int64_t key = b->new_reg(Type::I64);

		b->emit(Opcode::Column, Type::I64, column, 0, c);
		b->emit(Opcode::TextKey, Type::I64, static_cast<int>(key), column, -1);
		if (c == 1)
			b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
		else
		{
			b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&key, 1));
			b->emit(Opcode::Match, Type::None, 1, static_cast<int>(JoinKind::Inner), 0);
			b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		}
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* SELECT outcome, count(*) GROUP BY outcome, which is how column 0 compares with column 1 by text order 0. */
inline SealedProgram
compare_program()
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < 2; c++)
		b->emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, 1, 1, b->add_aux(sources, 2));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	a = b->new_reg(Type::I64), other = b->new_reg(Type::I64);
	const int64_t outcome = b->new_reg(Type::I64);

	b->emit(Opcode::Column, Type::I64, a, 0, 0);
	b->emit(Opcode::Column, Type::I64, other, 1, 0);
	b->emit(Opcode::TextCompare, Type::I64, static_cast<int>(outcome), a, other, 0);
	b->emit(Opcode::Group, Type::None, 1, b->add_aux(&outcome, 1), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

/* What that gives by bytes, blanks at the end left out if `trims`: how often each outcome comes, as value_text() has it. */
inline std::map<std::string, int64_t>
compared_texts(const std::vector<std::string> &a, const std::vector<std::string> &b, bool trims)
{
	std::map<std::string, int64_t> counts;

	for (size_t i = 0; i < a.size(); i++)
	{
		const size_t na = trims ? a[i].find_last_not_of(' ') + 1 : a[i].size(), nb = trims ? b[i].find_last_not_of(' ') + 1 : b[i].size();
		const int	cmp = a[i].substr(0, na).compare(b[i].substr(0, nb));

		counts[value_text(Type::I64, a[i] == NULL_TEXT || b[i] == NULL_TEXT ? Value{} : from_register(int64_t{(cmp > 0) - (cmp < 0)}))]++;
	}
	return counts;
}

/* Few different ones, all of which have much in common; nulls, and none at all. */
inline std::vector<std::string>
random_texts(Rng &rng, uint32_t n)
{
	std::vector<std::string> texts;

	for (uint32_t i = 0; i < n; i++)
	{
		std::string text(rng() % 40, 'a');

		if (!text.empty() && rng() % 2)
			text[rng() % text.size()] = static_cast<char>('a' + rng() % 3);
		if (rng() % 20 == 0)
			text.resize(text.size() + 120, 'b');	/* has a longer header */
		texts.push_back(rng() % 10 == 0 ? NULL_TEXT : text);
	}
	return texts;
}

/* Pairs of which many are the same but for blanks at the end, or one byte. */
inline std::pair<std::vector<std::string>, std::vector<std::string>>
text_pairs(Rng &rng, uint32_t n)
{
	auto		a = random_texts(rng, n), b = random_texts(rng, n);

	for (uint32_t i = 0; i < n; i++)
	{
		if (rng() % 3 > 0)
			b[i] = a[i];
		if (b[i] != NULL_TEXT && rng() % 3 == 0)
			b[i].append(rng() % 4, ' ');
		if (b[i] != NULL_TEXT && !b[i].empty() && rng() % 4 == 0)
			b[i][rng() % b[i].size()] = "\x01 \x1f\x7f\x80\xfe"[rng() % 6];
	}
	return {a, b};
}

/* Values that differ in one byte only, in every place; and of every length around the steps that a hash takes. Each twice. */
inline std::vector<std::string>
one_byte_texts()
{
	std::vector<std::string> texts;

	for (int len : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 126, 127, 200, 255, 256, 257, 400})
		for (int at = 0; at <= len; at++)
		{
			std::string text(static_cast<size_t>(len), 'x');

			if (at < len)
				text[static_cast<size_t>(at)] = '\0';
			texts.push_back(text);
			texts.push_back(text);
		}
	return texts;
}

}  // namespace reference
}  // namespace gpuvm

#endif
