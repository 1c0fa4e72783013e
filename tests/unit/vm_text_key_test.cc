/*
 * vm_text_key_test.cc: values of variable length as keys. Whatever is left of their hashes, values are one key where their bytes
 * are the same, and only there; by several threads, in groups and in joins, and with references that lead nowhere.
 */
#include <gtest/gtest.h>

#include <map>
#include <new>
#include <numeric>
#include <thread>

#include "tablet/build.h"
#include "text_key_tables.h"
#include "vm/cpu_join.h"
#include "vm/cpu_text_keys.h"
#include "vm/memory_budget.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* References are addresses here, as offsets of an arena that is all memory from this one on. */
volatile uintptr_t first_address = 64;
char	   *const ARENA = reinterpret_cast<char *>(first_address);
constexpr uint64_t ARENA_BYTES = uint64_t{1} << 48;

/* A table of one column of these texts, in tablets of so many rows. */
Table
table_of(const std::vector<std::string> &texts, uint32_t tablet_rows, int attlen = -1)
{
	Table		table;

	table.columns.push_back(column_of(texts, attlen));
	for (uint32_t left = static_cast<uint32_t>(texts.size()); left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, tablet_rows));
	table.build();
	for (const auto &tablet : table.tablets)
		place_tablet(tablet.get(), static_cast<uint64_t>(reinterpret_cast<char *>(tablet.get()) - ARENA));
	return table;
}

std::string
text_at(int64_t reference, int attlen = -1)
{
	TextValue	value = {};

	EXPECT_TRUE(text_value(reinterpret_cast<unsigned char *>(ARENA) + reference, 1 << 21, attlen, &value));
	return std::string(reinterpret_cast<const char *>(value.bytes), value.len);
}

std::vector<int64_t>
references_of(const Table &table)
{
	std::vector<int64_t> references;

	for (const auto &tablet : table.tablets)
	{
		const ColumnChunk &chunk = tablet_chunks(tablet.get())[0];
		const char *codes = tablet_at<char>(tablet.get(), chunk.data);

		for (uint32_t row = 0; row < tablet->nrows; row++)
		{
			uint64_t	code = 0;

			memcpy(&code, codes + static_cast<size_t>(row) * chunk.width, chunk.width);
			references.push_back(chunk.base + static_cast<int64_t>(code));
		}
	}
	return references;
}

using Counts = std::map<std::string, int64_t>;

void
expect_groups(const std::vector<std::string> &texts, uint32_t tablet_rows, int attlen = -1)
{
	const Table table = table_of(texts, tablet_rows, attlen);
	const SealedProgram program = group_program(attlen);
	const CursorSchema schema = {1, table.types.data()};
	Counts		expected;
	Rng			rng(7);

	ASSERT_EQ(verify_program(program.get(), program.get()->size, &schema, 1), nullptr);
	for (const std::string &text : texts)
		expected[text]++;
	for (uint64_t hash_mask : {~uint64_t{0}, uint64_t{0}, uint64_t{0xf}, uint64_t{0xffff} << 48})
	{
		TextKeys	keys(program.get(), ARENA, ARENA_BYTES, table.nrows(), hash_mask);
		const Outcome got = run_cpu_groups(program.get(), table, {}, 1024, 3, rng, nullptr, nullptr, &keys);
		Counts		counts;

		ASSERT_EQ(got.errors, 0u);
		for (const std::vector<Value> &row : got.rows)
			counts[row[0].null ? NULL_TEXT : text_at(row[0].i, attlen)] += row[1].i;
		ASSERT_EQ(got.rows.size(), expected.size()) << "mask " << hash_mask;
		ASSERT_EQ(counts, expected) << "mask " << hash_mask;
	}
}

}  // namespace

TEST(VmTextKey, Groups)
{
	Rng			rng(1);

	for (uint32_t n : {1u, 63u, 1000u, 5000u})
		expect_groups(random_texts(rng, n), 1700);
	expect_groups(std::vector<std::string>(2000, NULL_TEXT), 1000);
	expect_groups(std::vector<std::string>(2000, ""), 1000);
}

TEST(VmTextKey, OneByte)
{
	expect_groups(one_byte_texts(), 300);
}

TEST(VmTextKey, LongValues)
{
	std::vector<std::string> texts(40, std::string(1 << 20, 'a'));

	for (size_t i = 0; i < texts.size(); i += 2)
		texts[i].back() = static_cast<char>('b' + i % 3);
	texts.push_back("");
	texts.push_back(std::string((1 << 20) - 1, 'a'));
	expect_groups(texts, 25);
}

TEST(VmTextKey, FixedLength)
{
	std::vector<std::string> texts;
	Rng			rng(3);

	for (int i = 0; i < 3000; i++)
		texts.push_back(i % 7 == 0 ? NULL_TEXT : std::string(15, 'u') + static_cast<char>(rng() % 200));
	expect_groups(texts, 1100, 16);
}

TEST(VmTextKey, Threads)
{
	Rng			rng(5);
	const Table table = table_of(random_texts(rng, 20000), 20000);
	const SealedProgram program = group_program(-1);
	TextKeys	keys(program.get(), ARENA, ARENA_BYTES, table.nrows(), 0xffff);
	const std::vector<int64_t> references = references_of(table);
	std::vector<std::vector<int64_t>> found(4, std::vector<int64_t>(references.size()));
	std::vector<std::thread> threads;

	for (size_t t = 0; t < found.size(); t++)
		threads.emplace_back([&, t] {
			std::vector<uint16_t> lanes;

			for (uint16_t i = 0; i < 1000; i++)
				lanes.push_back(i);
			/* each begins elsewhere */
			for (size_t k = 0; k < 20; k++)
			{
				const size_t at = (k + 5 * t) % 20 * 1000;
				std::vector<uint16_t> there;

				for (uint16_t i : lanes)
					if (!table.columns[0].rows[at + i].null)
						there.push_back(i);
				EXPECT_TRUE(keys.find(-1, references.data() + at, there.data(), static_cast<uint32_t>(there.size()), found[t].data() + at));
			}
		});
	for (std::thread &thread : threads)
		thread.join();

	std::map<std::string, int64_t> first;

	for (size_t i = 0; i < references.size(); i++)
	{
		if (table.columns[0].rows[i].null)
			continue;
		EXPECT_EQ(first.try_emplace(table.columns[0].texts[i], found[0][i]).first->second, found[0][i]);
		EXPECT_EQ(text_at(found[0][i]), table.columns[0].texts[i]);
		for (const std::vector<int64_t> &others : found)
			ASSERT_EQ(others[i], found[0][i]);
	}
}

/* More than the first levels of the table hold; each value twice, the second time by another thread at the same time. */
TEST(VmTextKey, Levels)
{
	std::vector<std::string> texts;

	for (int i = 0; i < 600000; i++)
		texts.push_back("a value with the number " + std::to_string(i % 300000));

	const Table table = table_of(texts, 600000);
	const SealedProgram program = group_program(-1);
	TextKeys	keys(program.get(), ARENA, ARENA_BYTES, 3000000);
	const std::vector<int64_t> references = references_of(table);
	std::vector<int64_t> found(references.size());
	std::vector<uint16_t> lanes(1000);
	std::vector<std::thread> threads;

	std::iota(lanes.begin(), lanes.end(), 0);
	for (size_t first : {0, 300000})
		threads.emplace_back([&, first] {
			for (size_t at = first; at < first + 300000; at += 1000)
				EXPECT_TRUE(keys.find(-1, references.data() + at, lanes.data(), 1000, found.data() + at));
		});
	for (std::thread &thread : threads)
		thread.join();
	for (size_t i = 0; i < 300000; i++)
	{
		ASSERT_EQ(found[i], found[i + 300000]);
		ASSERT_TRUE(found[i] == references[i] || found[i] == references[i + 300000]);
	}
}

/* What may come is not counted, but what comes; and who found no memory finds it later. */
TEST(VmTextKey, Memory)
{
	std::vector<std::string> texts;

	for (int i = 0; i < 100000; i++)
		texts.push_back("a value with the number " + std::to_string(i));

	const Table table = table_of(texts, 100000);
	const SealedProgram program = group_program(-1);
	const std::vector<int64_t> references = references_of(table);
	std::vector<int64_t> found(references.size());
	std::vector<uint16_t> lanes(1000);
	MemoryBudget budget(1 << 20);
	JobMemory	job(&budget);
	const JobMemory::Use uses(&job);
	TextKeys	keys(program.get(), ARENA, ARENA_BYTES, 1000000000);
	const auto	find = [&](size_t at) { return keys.find(-1, references.data() + at, lanes.data(), 1000, found.data() + at); };
	const auto	find_all = [&]
	{
		for (size_t at = 0; at < references.size(); at += 1000)
			ASSERT_TRUE(find(at));
	};

	std::iota(lanes.begin(), lanes.end(), 0);
	EXPECT_EQ(budget.used(), 0u);
	EXPECT_TRUE(find(0));
	EXPECT_EQ(budget.used(), uint64_t{1 << 19});
	EXPECT_THROW(find_all(), std::bad_alloc);
	budget.set_limit(0);
	find_all();
	EXPECT_EQ(found, references);
	EXPECT_LT(budget.used(), uint64_t{64 << 20});
}

/* FROM a JOIN b ON a.text = b.text: keys of two tables are of one job. */
TEST(VmTextKey, Join)
{
	Rng			rng(9);
	const std::vector<std::string> texts[2] = {random_texts(rng, 3000), random_texts(rng, 700)};
	const Table tables[2] = {table_of(texts[0], 1100), table_of(texts[1], 500)};
	const SealedProgram program = join_program();
	const CursorSchema schemas[2] = {{1, tables[0].types.data()}, {1, tables[1].types.data()}};
	std::vector<JoinCursor> cursors;
	int64_t		expected = 0;

	ASSERT_EQ(verify_program(program.get(), program.get()->size, schemas, 2), nullptr);
	for (const Table &table : tables)
	{
		cursors.push_back(JoinCursor{table.summaries.data(), 1, {}, table.nrows()});
		for (const auto &tablet : table.tablets)
			cursors.back().tablets.push_back(JoinTablet{tablet.get(), nullptr, 0});
	}
	for (const std::string &x : texts[0])
		expected += x == NULL_TEXT ? 0 : std::count(texts[1].begin(), texts[1].end(), x);
	for (uint64_t hash_mask : {~uint64_t{0}, uint64_t{0xf}})
	{
		TextKeys	keys(program.get(), ARENA, ARENA_BYTES, 3700, hash_mask);
		auto		join = CpuJoin::create(program.get(), nullptr, 0, cursors.data(), nullptr, nullptr, nullptr, &keys);
		Outcome		out;

		while (const uint32_t n = join->begin_phase())
			for (uint32_t i = 0; i < n; i++)
				join->run_task(i);

		auto		state = join->new_state();
		Area		area(program.get(), 64);

		for (const auto &tablet : tables[0].tablets)
			join->run_groups(state.get(), tablet.get(), 0, tablet->nrows, nullptr, 0);
		ASSERT_EQ(join->finish(state.get()), 0u);
		ASSERT_EQ(join->emit_groups(state.get(), 0, area.memory.get(), area.capacity), 1u);
		read_area(program.get(), area.memory.get(), area.capacity, 1, &out);
		EXPECT_EQ(out.rows[0][0].i, expected);
	}
}

/* No crash, and no key of what is no value. */
TEST(VmTextKey, ReferencesThatMakeNoSense)
{
	const Table table = table_of({"one", "two", "three"}, 3);
	const SealedProgram program = group_program(-1);
	const std::vector<int64_t> good = references_of(table);
	const uint64_t end = static_cast<uint64_t>(good[2]) + VARIABLE_SLACK + 3;	/* an arena that ends within the third's slack */
	const uint16_t lanes[] = {0};
	int64_t		key;

	for (int64_t bad : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, static_cast<int64_t>(end), static_cast<int64_t>(end) - 1, good[2] + 4})
	{
		TextKeys	keys(program.get(), ARENA, end, 3);

		EXPECT_FALSE(keys.find(-1, &bad, lanes, 1, &key)) << bad;
		EXPECT_TRUE(keys.find(-1, &good[0], lanes, 1, &key));
		EXPECT_EQ(key, good[0]);
		/* no operation of the program has values of such a length */
		EXPECT_FALSE(keys.find(16, &good[0], lanes, 1, &key));
	}
}

TEST(VmTextKey, MoreValuesThanWereSaid)
{
	std::vector<std::string> texts;

	for (int i = 0; i < 1000; i++)
		texts.push_back(std::to_string(i));

	const Table table = table_of(texts, 1000);
	const SealedProgram program = group_program(-1);
	const std::vector<int64_t> references = references_of(table);
	TextKeys	keys(program.get(), ARENA, ARENA_BYTES, 10);
	int64_t		key;
	const uint16_t lanes[] = {0};
	int			taken = 0;

	for (const int64_t &reference : references)
		taken += keys.find(-1, &reference, lanes, 1, &key);
	EXPECT_GE(taken, 10);
	EXPECT_LT(taken, 1000);
	/* those that are in stay */
	EXPECT_TRUE(keys.find(-1, &references[0], lanes, 1, &key));
	EXPECT_EQ(key, references[0]);
}

TEST(VmTextKey, Verified)
{
	const Type	types[] = {Type::I64};
	const CursorSchema schema = {1, types};
	const auto	wrong = [&](void (*change)(Op *)) {
		SealedProgram p = group_program(-1);
		Program    *program = const_cast<Program *>(p.get());

		for (int i = 0; i < program->nops; i++)
			if (program->ops()[i].opcode == Opcode::TextKey)
				change(const_cast<Op *>(program->ops()) + i);
		program->hash = hash_program(program);
		return verify_program(program, program->size, &schema, 1);
	};

	EXPECT_EQ(wrong([](Op *) {}), nullptr);
	EXPECT_EQ(wrong([](Op *op) { op->p3 = 16; }), nullptr);
	EXPECT_STREQ(wrong([](Op *op) { op->p3 = 0; }), "values have an unknown length");
	EXPECT_STREQ(wrong([](Op *op) { op->p3 = -2; }), "values have an unknown length");
	EXPECT_STREQ(wrong([](Op *op) { op->p3 = TEXT_KEY_MAX_LENGTH + 1; }), "values have an unknown length");
	EXPECT_NE(wrong([](Op *op) { op->p2 = 1; }), nullptr);
	EXPECT_NE(wrong([](Op *op) { op->type = Type::I32; }), nullptr);
}
