/*
 * vm_text_order_test.cc: values of variable length in order: sorts of many rows by several threads, and extremes of groups, against
 * comparisons of strings; under collations that bytes decide and others; and references that lead nowhere.
 */
#include <gtest/gtest.h>

#include <gnu/libc-version.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "core/bits.h"
#include "engine/collators.h"
#include "text_key_tables.h"
#include "vm/cpu_join.h"
#include "vm/cpu_sort.h"
#include "vm/cpu_text_keys.h"
#include "vm/memory_budget.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

int
sign(int v)
{
	return (v > 0) - (v < 0);
}

/* Without capitals, and so with many values that only bytes tell apart; says whether a zero is where it wants one. */
class Caseless final : public Collator
{
public:
	explicit Caseless(bool begins) : begins_(begins) {}
	int compare(const TextValue &a, const TextValue &b) const override
	{
		EXPECT_EQ(a.bytes[a.len], 0);
		EXPECT_EQ(b.bytes[b.len], 0);
		return sign(lower(a).compare(lower(b)));
	}
	bool		wants_zero() const override { return true; }
	uint64_t beginning(const TextValue &value) const override
	{
		const std::string text = lower(value);

		return begins_ && !text.empty() ? uint64_t{static_cast<unsigned char>(text[0])} << 56 : 0;
	}
	static std::string lower(const TextValue &value)
	{
		std::string text(reinterpret_cast<const char *>(value.bytes), value.len);

		for (char &c : text)
			c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
		return text;
	}

private:
	bool		begins_;
};

TextValue
value_of(const std::string &text)
{
	return TextValue{reinterpret_cast<const unsigned char *>(text.data()), static_cast<uint32_t>(text.size())};
}

int
compare_strings(const std::string &a, const std::string &b, bool caseless)
{
	const int	cmp = caseless ? sign(Caseless::lower(value_of(a)).compare(Caseless::lower(value_of(b)))) : 0;

	return cmp != 0 ? cmp : sign(a.compare(b));
}

/* Varlenas side by side, as an arena has them, and where each lies. */
class Texts
{
public:
	explicit Texts(const std::vector<std::string> &texts)
	{
		bytes_.assign(64, 0);
		for (const std::string &text : texts)
		{
			const uint32_t header = static_cast<uint32_t>(text.size() + 4) << 2;

			bytes_.resize((bytes_.size() + 3) / 4 * 4);
			references.push_back(bytes_.size());
			bytes_.insert(bytes_.end(), reinterpret_cast<const char *>(&header), reinterpret_cast<const char *>(&header + 1));
			bytes_.insert(bytes_.end(), text.begin(), text.end());
		}
		bytes_.resize(bytes_.size() + VARIABLE_SLACK + 1, 'z');
	}
	TextOrder order(const Collator *collator, uint16_t flags = 0) const
	{
		TextOrderSpec spec = {};

		spec.kind = collator != nullptr ? TextOrderKind::Libc : TextOrderKind::Bytes;
		spec.attlen = -1;
		spec.flags = flags;
		return TextOrder(spec, collator, bytes_.data(), bytes_.size());
	}

	std::vector<uint64_t> references;

private:
	std::vector<char> bytes_;
};

struct Row
{
	std::string text;
	std::string second;
	bool		null;
	int32_t		number;
};

std::vector<Row>
random_rows(size_t n, Rng &rng)
{
	static const char *const beginnings[] = {"", "a", "A", "https://example.org/", "https://example.org/A", "\xc3\xa9", "zz"};
	std::vector<Row> rows;

	for (size_t i = 0; i < n; i++)
	{
		Row			row = {beginnings[rng() % 7], rng() % 2 ? "x" : "X", rng() % 20 == 0, static_cast<int32_t>(rng() % 5)};

		if (rng() % 8 > 0)
			row.text += std::to_string(rng() % (n / 2 + 1));
		if (rng() % 1000 == 0)
			row.text += std::string(rng() % 3000, 'L') + "b";
		row.second += std::to_string(rng() % 3);
		rows.push_back(row);
	}
	return rows;
}

/* The rows' numbers, sorted by the number if `led`, then by both texts. */
std::vector<size_t>
sorted_rows(const std::vector<Row> &rows, const TextOrder &order, bool led, bool desc, uint64_t limit, const Texts &texts, const Texts &seconds,
			bool no_memory)
{
	const Type	types[] = {Type::I32, Type::I64, Type::I64, Type::I64};
	std::vector<SortColumn> keys = {{1, desc, !desc, nullptr, &order}, {2, !desc, false, nullptr, &order}};

	if (led)
		keys.insert(keys.begin(), SortColumn{0, desc, false, nullptr, nullptr});

	CpuSort		sort(types, 4, keys.data(), static_cast<uint32_t>(keys.size()), limit);
	ResultColumnLayout layout[4];
	std::vector<std::thread> threads;
	std::vector<size_t> numbers;

	result_layout(types, 4, SORT_CHUNK_ROWS, layout);
	for (uint32_t t = 0; t < 3; t++)
		threads.emplace_back([&, t] {
			auto		mine = std::make_unique<SortRows>(&sort);
			constexpr size_t BATCH = 20000;

			for (size_t first = t * BATCH; first < rows.size(); first += 3 * BATCH)
			{
				const size_t n = std::min(BATCH, rows.size() - first);
				char	   *area = mine->area();

				memset(area + layout[1].nulls, 0, SORT_CHUNK_ROWS / 8);
				for (size_t i = 0; i < n; i++)
				{
					const size_t row = first + i;
					const int64_t number = static_cast<int64_t>(row);

					memcpy(area + layout[0].values + i * 4, &rows[row].number, 4);
					memcpy(area + layout[1].values + i * 8, &texts.references[row], 8);
					memcpy(area + layout[2].values + i * 8, &seconds.references[row], 8);
					memcpy(area + layout[3].values + i * 8, &number, 8);
					if (rows[row].null)
						bit_set(reinterpret_cast<uint64_t *>(area + layout[1].nulls), static_cast<uint32_t>(i));
				}
				mine->take(static_cast<uint32_t>(n));
			}
			sort.add(std::move(mine));
		});
	for (std::thread &thread : threads)
		thread.join();
	for (uint32_t n; (n = sort.begin_phase()) > 0;)
	{
		MemoryBudget budget(1);
		JobMemory	memory(&budget);
		JobMemory::Use uses(no_memory ? &memory : nullptr);

		for (uint32_t i = 0; i < n; i++)
			sort.run_task(i);
	}
	EXPECT_EQ(sort.refusal(), nullptr);

	std::vector<char> area(result_layout(types, 4, 1024, layout) + 64);
	char	   *base = reinterpret_cast<char *>(align_up(reinterpret_cast<uintptr_t>(area.data()), 64));

	for (uint64_t first = 0; first < sort.nrows(); first += 1024)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(1024, sort.nrows() - first));

		sort.gather(first, n, base, 1024);
		for (uint32_t i = 0; i < n; i++)
			numbers.push_back(reinterpret_cast<const uint64_t *>(base + layout[3].values)[i]);
	}
	return numbers;
}

TEST(VmTextOrder, Sorts)
{
	const Caseless caseless(false), begins(true);

	for (uint64_t seed = 0; seed < 24; seed++)
	{
		Rng			rng(seed);
		const std::vector<Row> rows = random_rows(seed % 6 == 5 ? 150000 : seed % 3 == 0 ? 40 : 5000, rng);
		std::vector<std::string> first, second;

		for (const Row &row : rows)
		{
			first.push_back(row.text);
			second.push_back(row.second);
		}

		const Texts texts(first), seconds(second);
		const bool	led = seed % 2, desc = rng() % 2;
		const Collator *collator = seed % 3 == 0 ? nullptr : seed % 3 == 1 ? &caseless : static_cast<const Collator *>(&begins);
		const uint64_t limit = rng() % 3 == 0 ? 1 + rng() % 300 : rng() % 3 == 0 ? rows.size() - 1 : 0;
		/* one arena for both columns */
		std::vector<std::string> all = first;

		all.insert(all.end(), second.begin(), second.end());

		Texts		both(all), near = both;

		near.references.assign(both.references.begin() + static_cast<ptrdiff_t>(rows.size()), both.references.end());

		const TextOrder order = both.order(collator);
		const auto	less = [&](size_t a, size_t b) {
			if (led && rows[a].number != rows[b].number)
				return (rows[a].number < rows[b].number) != desc;
			if (rows[a].null != rows[b].null)
				return rows[a].null != desc;

			const int	cmp = rows[a].null ? 0 : compare_strings(rows[a].text, rows[b].text, collator != nullptr);

			return cmp != 0 ? (cmp < 0) != desc : (compare_strings(rows[a].second, rows[b].second, collator != nullptr) < 0) == desc &&
				rows[a].second != rows[b].second;
		};
		std::vector<size_t> expected(rows.size());

		std::iota(expected.begin(), expected.end(), 0);
		std::stable_sort(expected.begin(), expected.end(), less);
		if (limit > 0)
			expected.resize(std::min<size_t>(expected.size(), limit));

		/* without memory values are compared where they lie */
		for (bool no_memory : {false, true})
		{
			const std::vector<size_t> got = sorted_rows(rows, order, led, desc, limit, both, near, no_memory);

			ASSERT_EQ(got.size(), expected.size()) << "seed " << seed;
			for (size_t i = 0; i < got.size(); i++)
				ASSERT_FALSE(less(got[i], expected[i]) || less(expected[i], got[i])) << "seed " << seed << " place " << i;
		}
	}
}

TEST(VmTextOrder, ComparesWhatCounts)
{
	const Texts texts({"a", "a  ", "ab", "a\t", std::string("a\0b", 3), ""});
	const auto	cmp = [&](uint16_t flags, int a, int b) {
		return sign(texts.order(nullptr, flags).compare(texts.references[static_cast<size_t>(a)], texts.references[static_cast<size_t>(b)]));
	};

	EXPECT_EQ(cmp(0, 0, 1), -1);
	EXPECT_EQ(cmp(TEXT_TRIM_BLANKS, 0, 1), 0);
	EXPECT_EQ(cmp(TEXT_TRIM_BLANKS, 1, 3), -1);
	EXPECT_EQ(cmp(0, 1, 3), 1);
	EXPECT_EQ(cmp(TEXT_TRIM_ZEROES, 0, 4), 0);
	EXPECT_EQ(cmp(0, 0, 4), -1);
	EXPECT_EQ(cmp(0, 5, 0), -1);
	EXPECT_EQ(cmp(TEXT_TRIM_BLANKS, 2, 1), 1);
}

/* What leads nowhere is said, and is no value. */
TEST(VmTextOrder, ReferencesThatLeadNowhere)
{
	const Texts texts({"a"});
	const TextOrder order = texts.order(nullptr);
	const Type	type = Type::I64;
	TextValue	value;

	for (uint64_t reference : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 40, texts.references[0] + 8})
	{
		const SortColumn key = {0, false, false, nullptr, &order};
		CpuSort		sort(&type, 1, &key, 1, 0);
		auto		rows = std::make_unique<SortRows>(&sort);
		ResultColumnLayout layout;

		EXPECT_FALSE(order.value(reference, &value));
		result_layout(&type, 1, SORT_CHUNK_ROWS, &layout);
		for (uint64_t *at = reinterpret_cast<uint64_t *>(rows->area() + layout.values), i = 0; i < 3; i++)
			at[i] = i == 1 ? reference : texts.references[0];
		rows->take(3);
		sort.add(std::move(rows));
		for (uint32_t n; (n = sort.begin_phase()) > 0;)
			for (uint32_t i = 0; i < n; i++)
				sort.run_task(i);
		EXPECT_STREQ(sort.refusal(), "a text lies outside the arena");
	}
}

/* A locale may take a millisecond for one comparison of long values: no phase makes another one once the sort is to stop. */
TEST(VmTextOrder, Stops)
{
	struct Counting final : Collator
	{
		mutable int n = 0;
		int compare(const TextValue &a, const TextValue &b) const override
		{
			n++;
			return sign(memcmp(a.bytes, b.bytes, std::min(a.len, b.len)));
		}
		bool		wants_zero() const override { return false; }
		uint64_t	beginning(const TextValue &) const override { return 0; }
	};
	struct After final : JoinStop
	{
		const Counting *collator;
		int			most;
		After(const Counting *c, int m) : collator(c), most(m) {}
		bool		stopped() override { return collator->n >= most; }
	};
	std::vector<std::string> values;
	const Type	type = Type::I64;

	for (int i = 0; i < 1000; i++)
		values.push_back(std::string(i % 2 == 0 ? 10 : 300, 'a') + std::to_string(i * 7919 % 1000));

	const Texts texts(values);

	for (int most : {0, 1, 100, 3000})
	{
		const Counting collator;
		const TextOrder order = texts.order(&collator);
		const SortColumn key = {0, false, false, nullptr, &order};
		CpuSort		sort(&type, 1, &key, 1, 0);
		After		stop(&collator, most);
		auto		rows = std::make_unique<SortRows>(&sort);
		ResultColumnLayout layout;

		sort.set_stop(&stop);
		result_layout(&type, 1, SORT_CHUNK_ROWS, &layout);
		memcpy(rows->area() + layout.values, texts.references.data(), values.size() * sizeof(uint64_t));
		rows->take(static_cast<uint32_t>(values.size()));
		sort.add(std::move(rows));
		for (uint32_t n; (n = sort.begin_phase()) > 0;)
			for (uint32_t i = 0; i < n; i++)
				sort.run_task(i);
		EXPECT_EQ(collator.n, most);
	}
}

/* SELECT min(text), max(text), of the whole or by a number. */
SealedProgram
extremes_program(bool grouped)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG, RESULT_FROM_AGG | 1};
	const int	nkeys = grouped ? 1 : 0, nresults = 2 + nkeys;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < nresults; c++)
		b->emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, nkeys, 2, b->add_aux(sources + 1 - nkeys, nresults));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	text = b->new_reg(Type::I64);
	const int64_t key = b->new_reg(Type::I64);

	b->emit(Opcode::Column, Type::I64, text, 0, 0);
	b->emit(Opcode::Column, Type::I64, static_cast<int>(key), 1, 0);
	if (grouped)
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
	b->emit(Opcode::AggStep, Type::I64, 0, text, -1, 0, static_cast<uint8_t>(AggFn::MinText));
	b->emit(Opcode::AggStep, Type::I64, 1, text, -1, 0, static_cast<uint8_t>(AggFn::MaxText));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

/* References are addresses here, as offsets of an arena that is all memory from this one on. */
volatile uintptr_t first_address = 64;
char	   *const ARENA = reinterpret_cast<char *>(first_address);
constexpr uint64_t ARENA_BYTES = uint64_t{1} << 48;

TEST(VmTextOrder, Extremes)
{
	const Caseless caseless(true);

	for (uint64_t seed = 0; seed < 12; seed++)
	{
		Rng			rng(seed);
		const std::vector<std::string> texts = random_texts(rng, 4000);
		const bool	grouped = seed % 2, by_case = seed % 3 == 0;
		Table		table;
		Column		numbers{Type::I64, {}};
		std::map<int64_t, std::pair<std::string, std::string>> expected;
		TextOrderSpec spec = {};

		for (const std::string &text : texts)
		{
			const int64_t number = grouped ? static_cast<int64_t>(rng() % 700) : 0;

			numbers.rows.push_back(from_register(number));

			auto		found = expected.try_emplace(number, NULL_TEXT, NULL_TEXT).first;

			if (text == NULL_TEXT)
				continue;
			if (found->second.first == NULL_TEXT || compare_strings(text, found->second.first, by_case) < 0)
				found->second.first = text;
			if (found->second.second == NULL_TEXT || compare_strings(text, found->second.second, by_case) > 0)
				found->second.second = text;
		}
		table.columns.push_back(column_of(texts));
		table.columns.push_back(numbers);
		table.tablet_rows = {1500, 1500, 1000};
		table.build();
		for (const auto &tablet : table.tablets)
			place_tablet(tablet.get(), static_cast<uint64_t>(reinterpret_cast<char *>(tablet.get()) - ARENA));

		const SealedProgram program = extremes_program(grouped);
		const CursorSchema schema = {2, table.types.data()};
		TextKeys	keys(program.get(), ARENA, ARENA_BYTES, table.nrows());

		ASSERT_EQ(verify_program(program.get(), program.get()->size, &schema, 1), nullptr);
		spec.attlen = -1;
		keys.orders.emplace_back(spec, by_case ? &caseless : nullptr, ARENA, ARENA_BYTES);

		const Outcome got = run_cpu_groups(program.get(), table, {}, 1024, 3, rng, nullptr, nullptr, &keys);
		const auto	text_of = [&](const Value &value) {
			TextValue	text = {};

			if (value.null)
				return std::string(NULL_TEXT);
			EXPECT_TRUE(keys.orders[0].value(static_cast<uint64_t>(value.i), &text));
			return std::string(reinterpret_cast<const char *>(text.bytes), text.len);
		};

		ASSERT_EQ(got.errors, 0u);
		ASSERT_EQ(got.rows.size(), expected.size());
		for (const std::vector<Value> &row : got.rows)
		{
			const auto &wanted = expected.at(grouped ? static_cast<int64_t>(row[0].i) : 0);

			ASSERT_EQ(text_of(row[row.size() - 2]), wanted.first) << "seed " << seed;
			ASSERT_EQ(text_of(row.back()), wanted.second) << "seed " << seed;
		}
	}
}

TEST(VmTextOrder, Compares)
{
	const Caseless caseless(true);

	for (uint64_t seed = 0; seed < 6; seed++)
	{
		Rng			rng(seed);
		const auto	[a, b] = text_pairs(rng, 3000);
		const bool	trims = seed % 2;
		const SealedProgram program = compare_program();
		Table		table;

		table.columns = {column_of(a), column_of(b)};
		table.tablet_rows = {1500, 700, 800};
		table.build();
		for (const auto &tablet : table.tablets)
			place_tablet(tablet.get(), static_cast<uint64_t>(reinterpret_cast<char *>(tablet.get()) - ARENA));

		const CursorSchema schema = {2, table.types.data()};

		ASSERT_EQ(verify_program(program.get(), program.get()->size, &schema, 1), nullptr);
		/* there are no capitals: the collator compares as bytes do */
		for (const Collator *collator : {static_cast<const Collator *>(nullptr), static_cast<const Collator *>(&caseless)})
		{
			TextKeys	keys(program.get(), ARENA, ARENA_BYTES, table.nrows());
			TextOrderSpec spec = {};
			std::map<std::string, int64_t> counts;

			spec.kind = collator != nullptr ? TextOrderKind::Libc : TextOrderKind::Bytes;
			spec.attlen = -1;
			spec.flags = trims ? TEXT_TRIM_BLANKS : 0;
			keys.orders.emplace_back(spec, collator, ARENA, ARENA_BYTES);

			const Outcome got = run_cpu_groups(program.get(), table, {}, 1024, 3, rng, nullptr, nullptr, &keys);

			ASSERT_EQ(got.errors, 0u);
			for (const std::vector<Value> &row : got.rows)
				counts[value_text(Type::I64, row[0])] += static_cast<int64_t>(row[1].i);
			ASSERT_EQ(counts, compared_texts(a, b, trims)) << "seed " << seed << " collator " << (collator != nullptr);
		}
	}
}

/* ---- collations that gpuvmd has itself ---------------------------------------------------------- */

TextOrderSpec
spec_of(TextOrderKind kind, const char *locale, const char *version)
{
	TextOrderSpec spec = {};

	spec.kind = kind;
	spec.attlen = -1;
	snprintf(spec.locale, sizeof(spec.locale), "%s", locale);
	snprintf(spec.version, sizeof(spec.version), "%s", version);
	return spec;
}

TEST(Collators, OnlyWhatTheServerHas)
{
	Collators	collators;
	const Collator *found = nullptr;

	EXPECT_EQ(collators.find(spec_of(TextOrderKind::Bytes, "", ""), &found), nullptr);
	EXPECT_EQ(found, nullptr);
	EXPECT_NE(collators.find(spec_of(TextOrderKind::Libc, "no_SUCH.UTF-8", gnu_get_libc_version()), &found), nullptr);
	EXPECT_NE(collators.find(spec_of(TextOrderKind::Libc, "C.UTF-8", "1.0"), &found), nullptr);
	EXPECT_EQ(collators.find(spec_of(TextOrderKind::Libc, "C.UTF-8", gnu_get_libc_version()), &found), nullptr);
	EXPECT_NE(found, nullptr);
	/* there is no ICU, or no such file */
	EXPECT_NE(collators.find(spec_of(TextOrderKind::Icu, "en", "153.120"), &found), nullptr);

	Collators	others;

	others.set_icu("/nowhere/libicui18n.so.72");
	EXPECT_NE(others.find(spec_of(TextOrderKind::Icu, "en", "153.120"), &found), nullptr);
}

}  // namespace
