/*
 * Window functions against PostgreSQL's own answers (window_cases.h): each case is SQL, which is read here as a
 * specification, and the values that PostgreSQL gave. The reference of the other tests has to agree, too.
 */
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "vm/float_sum.h"
#include "window_cases.h"
#include "window_runner.h"

using namespace gpuvm;
using namespace window_reference;

namespace {

const std::string NAMES = "id p i x s f r d t b";
const Type	TYPES[] = {Type::I32, Type::I32, Type::I32, Type::I64, Type::I16, Type::F64, Type::F32, Type::I32, Type::I64, Type::Bool};

std::vector<std::string>
words_of(const std::string &text)
{
	std::istringstream in(text);
	std::vector<std::string> words;

	for (std::string word; in >> word;)
		words.push_back(word);
	return words;
}

uint32_t
column_of(const std::string &name)
{
	const std::vector<std::string> names = words_of(NAMES);

	return static_cast<uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

Value
value_of(Type type, const std::string &text)
{
	if (text == "NULL")
		return none();
	if (type == Type::Bool)
		return number(text == "true");
	if (type_is_float(type))
		return real(type == Type::F32 ? static_cast<double>(std::stof(text)) : std::stod(text));

	/* sums may have more than 64 bits */
	int128		v = 0;

	for (char c : text)
		v = c == '-' ? v : v * 10 + (c - '0');
	return number(text[0] == '-' ? -v : v);
}

Table
case_table()
{
	Table		table;

	for (Type type : TYPES)
		table.push_back(Column{type, {}});
	for (const char *row : CASE_ROWS)
	{
		const std::vector<std::string> words = words_of(row);

		for (size_t c = 0; c < table.size(); c++)
			table[c].values.push_back(value_of(TYPES[c], words[c]));
	}
	return table;
}

/* Words, numbers, quoted strings; parentheses and commas by themselves. */
std::vector<std::string>
tokens_of(const std::string &sql)
{
	std::vector<std::string> tokens;

	for (size_t i = 0; i < sql.size();)
	{
		const size_t end = sql[i] == '\'' ? sql.find('\'', i + 1) + 1 : strchr("(),*", sql[i]) ? i + 1 : std::min(sql.find_first_of(" (),*", i), sql.size());

		if (sql[i] != ' ')
			tokens.push_back(sql.substr(i, end - i));
		i = sql[i] == ' ' ? i + 1 : end;
	}
	return tokens;
}

class Case
{
public:
	explicit Case(const std::string &sql) : tokens_(tokens_of(sql))
	{
		function.high = function.map = WINDOW_NONE;
		read_call();
		function.filter = WINDOW_NONE;
		if (skip("filter"))
		{
			skip("(");
			skip("where");
			function.filter = column_of(next());
			skip(")");
		}
		skip("over");
		skip("(");
		read_keys();
		read_frame();
		spec.keys = keys.data();
		spec.functions = &function;
		spec.nfunctions = 1;
	}

	WindowSpec	spec = {};
	WindowFunction function = {};
	std::vector<WindowKey> keys;

private:
	std::string next() { return at_ < tokens_.size() ? tokens_[at_++] : ""; }
	bool skip(const std::string &word)
	{
		const bool	there = at_ < tokens_.size() && tokens_[at_] == word;

		at_ += there;
		return there;
	}

	void read_call()
	{
		const std::vector<std::string> names = words_of("row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value "
														"nth_value count sum min max bool_and bool_or");
		const std::string name = next();

		function.fn = static_cast<WindowFn>(std::find(names.begin(), names.end(), name) - names.begin());
		function.column = WINDOW_NONE;
		function.number = 1;
		skip("(");
		for (int argument = 0; !skip(")"); argument++)
		{
			const std::string word = next();

			if (word == "*" || word == ",")
				argument -= word == ",";
			else if (argument == 0 && function.fn != WindowFn::Ntile)
				function.column = column_of(word);
			else if (argument == 0 || argument == 1)
				function.number = std::stoll(word);
			else
			{
				const double d = std::stod(word);

				function.has_default = 1;
				function.default_value = type_is_float(TYPES[function.column]) ? static_cast<int64_t>(double_bits(d)) : std::stoll(word);
			}
		}
		switch (function.fn)
		{
			case WindowFn::PercentRank: case WindowFn::CumeDist: function.type = Type::F64; break;
			case WindowFn::Ntile: function.type = Type::I32; break;
			case WindowFn::RowNumber: case WindowFn::Rank: case WindowFn::DenseRank: case WindowFn::Count: function.type = Type::I64; break;
			case WindowFn::Sum:
				function.type = type_is_float(TYPES[function.column]) ? Type::F64 : TYPES[function.column] == Type::I64 ? Type::I128 : Type::I64;
				break;
			default: function.type = TYPES[function.column]; break;
		}
	}

	void read_keys()
	{
		if (skip("partition"))
		{
			skip("by");
			keys.push_back(WindowKey{column_of(next()), false, false, nullptr, nullptr});
			spec.npartition = 1;
		}
		if (!skip("order"))
			return;
		skip("by");
		do
		{
			WindowKey	key = {column_of(next()), false, false, nullptr, nullptr};

			key.desc = skip("desc");
			key.nulls_first = key.desc;
			if (skip("nulls"))
				key.nulls_first = next() == "first";
			keys.push_back(key);
			spec.norder++;
		}
		while (skip(","));
	}

	int64_t offset_of(const std::string &word)
	{
		const std::string text = word[0] == '\'' ? word.substr(1, word.size() - 2) : word;

		if (text.find("second") != std::string::npos)
		{
			spec.frame.unit = RangeUnit::Timestamp;
			return std::stoll(text) * 1000000;
		}
		if (text.find("day") != std::string::npos)
		{
			spec.frame.unit = RangeUnit::Date;
			return std::stoll(text);
		}
		if (spec.frame.mode == FrameMode::Range && type_is_float(TYPES[keys.back().column]))
			return static_cast<int64_t>(double_bits(std::stod(text)));
		return std::stoll(text);
	}

	FrameBound read_bound(int64_t *offset)
	{
		if (skip("unbounded"))
		{
			next();
			return FrameBound::Unbounded;
		}
		if (skip("current"))
		{
			next();
			return FrameBound::CurrentRow;
		}
		*offset = offset_of(next());
		return next() == "preceding" ? FrameBound::Preceding : FrameBound::Following;
	}

	void read_frame()
	{
		spec.frame.mode = FrameMode::Range;
		spec.frame.end = FrameBound::CurrentRow;
		if (skip("rows"))
			spec.frame.mode = FrameMode::Rows;
		else if (skip("groups"))
			spec.frame.mode = FrameMode::Groups;
		else if (!skip("range"))
			return;
		skip("between");
		spec.frame.start = read_bound(&spec.frame.start_offset);
		skip("and");
		spec.frame.end = read_bound(&spec.frame.end_offset);
	}

	std::vector<std::string> tokens_;
	size_t		at_ = 0;
};

/* float4 sums are float4s in PostgreSQL, which the backend makes of them. */
bool
agrees(const Value &got, const Value &expected, const Case &of)
{
	Value		shown = got;

	if (of.function.fn == WindowFn::Sum && TYPES[of.function.column] == Type::F32)
		shown.real = static_cast<double>(static_cast<float>(got.real));
	return same(shown, expected, type_is_float(of.function.type));
}

TEST(VmWindowCases, AsPostgreSQL)
{
	int			errors = 0;

	for (const auto &[sql, answer] : CASES)
	{
		const Case	of(sql);
		Table		table = case_table();
		const char *wrong = check_window(of.spec, TYPES, sizeof(TYPES) / sizeof(*TYPES));

		if (std::string(answer) == "ERROR")
		{
			EXPECT_NE(wrong, nullptr) << sql;
			errors++;
			continue;
		}
		ASSERT_EQ(wrong, nullptr) << sql;
		sort_table(&table, of.keys);

		const Outcome outcome = run_window(of.spec, table);
		const std::vector<Value> reference = Reference(of.spec, table).run(of.function);
		const std::vector<std::string> expected = words_of(answer);

		ASSERT_EQ(outcome.errors, 0u) << sql;
		ASSERT_EQ(expected.size(), reference.size()) << sql;
		for (size_t i = 0; i < reference.size(); i++)
		{
			const size_t id = static_cast<size_t>(table[0].values[i].number);
			const Value value = value_of(of.function.fn == WindowFn::Sum && type_is_float(of.function.type) && TYPES[of.function.column] == Type::F32
										 ? Type::F32 : of.function.type, expected[id - 1]);

			EXPECT_TRUE(agrees(outcome.results[0][i], value, of)) << sql << ", id " << id << ": " << static_cast<int64_t>(outcome.results[0][i].number)
				<< " " << outcome.results[0][i].real << (outcome.results[0][i].null ? " null" : "") << ", PostgreSQL: " << expected[id - 1];
			EXPECT_TRUE(agrees(reference[i], value, of)) << "reference: " << sql << ", id " << id << ", PostgreSQL: " << expected[id - 1];
		}
	}
	EXPECT_EQ(errors, 7);
}

}  // namespace
