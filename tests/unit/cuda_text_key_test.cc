/*
 * cuda_text_key_test.cc: values of variable length as keys on the device: one key for the same bytes and only there, whatever is
 * left of their hashes, by every way to the device; in groups, joins and comparisons, and with images that are none.
 */
#include "cuda_runtime_fixture.h"
#include "tablet/build.h"
#include "text_key_tables.h"
#include "text_keys.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

using Counts = std::map<std::string, int64_t>;

constexpr uint64_t HASH_MASKS[] = {~uint64_t{0}, 0, 0xf, uint64_t{0xffff} << 48};

Table
table_of(std::vector<Column> columns, uint32_t tablet_rows)
{
	Table		table;

	for (uint32_t left = static_cast<uint32_t>(columns[0].rows.size()); left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, tablet_rows));
	table.columns = std::move(columns);
	table.build();
	return table;
}

Table
table_of(const std::vector<std::string> &texts, uint32_t tablet_rows, int attlen = -1)
{
	return table_of(std::vector<Column>{column_of(texts, attlen)}, tablet_rows);
}

/* SELECT number of the row WHERE column 0 = column 1, as keys; of lengths that may differ. */
SealedProgram
equal_program(int attlen0, int attlen1)
{
	auto		b = new_builder();

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::RowId, 0, 0, 0, b->add_name("row"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	int			keys[2];

	for (int c = 0; c < 2; c++)
	{
		const int	column = b->new_reg(Type::I64);

		keys[c] = b->new_reg(Type::I64);
		b->emit(Opcode::Column, Type::I64, column, c, 0);
		b->emit(Opcode::TextKey, Type::I64, keys[c], column, c == 0 ? attlen0 : attlen1);
	}
	b->emit(Opcode::Ne, Type::I64, keys[0], keys[1], b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);

	const int	row = b->new_reg(Type::RowId);

	b->emit(Opcode::Rowid, Type::RowId, row, 0, 0);
	b->emit(Opcode::Result, Type::None, row, 1, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

}  // namespace

class CudaTextKey : public CudaRuntime
{
protected:
	void TearDown() override
	{
		cuda::text_hash_mask = ~uint64_t{0};
		CudaRuntime::TearDown();
	}

	StoredTable store(const Table &table, uint32_t unnamed = 0)
	{
		StoredTable stored = arena.store(table, unnamed);

		for (const DeviceTabletRef &ref : stored.tablets)
			place_tablet(const_cast<TabletHeader *>(ref.tablet), static_cast<uint64_t>(reinterpret_cast<const char *>(ref.tablet) - arena.base));
		return stored;
	}

	/* Rows of groups are "reference,count,". */
	Counts counts_of(const Ran &ran, int attlen)
	{
		Counts		counts;

		for (const std::string &row : ran.sorted())
		{
			const size_t comma = row.find(',');
			const std::string key = row.substr(0, comma);
			TextValue	value = {};
			std::string text = NULL_TEXT;

			if (key != value_text(Type::I64, Value{}))
			{
				EXPECT_TRUE(text_value(reinterpret_cast<unsigned char *>(arena.base) + std::stoll(key), 1 << 21, attlen, &value)) << row;
				text.assign(reinterpret_cast<const char *>(value.bytes), value.len);
			}
			EXPECT_TRUE(counts.try_emplace(text, std::stoll(row.substr(comma + 1))).second) << "two keys of one value";
		}
		return counts;
	}

	void expect_groups(const std::vector<std::string> &texts, const StoredTable &stored, int attlen = -1, const Ways &ways = Ways())
	{
		const Ran	ran = run(group_program(attlen).get(), stored, {}, ways);
		Counts		expected;

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.figures.errors, 0u);
		for (const std::string &text : texts)
			expected[text]++;
		ASSERT_EQ(counts_of(ran, attlen), expected);
	}

	void expect_all_masks(const std::vector<std::string> &texts, uint32_t tablet_rows, int attlen = -1)
	{
		const Table table = table_of(texts, tablet_rows, attlen);
		const StoredTable stored = store(table);

		for (uint64_t mask : HASH_MASKS)
		{
			/* every value meets every other one then */
			if (texts.size() > 1000 && (mask & 0xf) == 0)
				continue;
			cuda::text_hash_mask = mask;
			expect_groups(texts, stored, attlen);
			ASSERT_FALSE(HasFatalFailure()) << "mask " << mask;
		}
	}
};

TEST_F(CudaTextKey, Groups)
{
	Rng			rng(1);

	open();
	for (uint32_t n : {1u, 63u, 1000u, 9000u})
		expect_all_masks(random_texts(rng, n), 4000);
	expect_all_masks(std::vector<std::string>(2000, NULL_TEXT), 1000);
	expect_all_masks(std::vector<std::string>(2000, ""), 1000);
	expect_all_masks(one_byte_texts(), 300);
}

TEST_F(CudaTextKey, EveryWay)
{
	Rng			rng(2);
	const std::vector<std::string> texts = random_texts(rng, 9000);
	const Table table = table_of(texts, 2500);

	for (uint32_t unnamed : {0u, 1u, 3u})
	{
		arena.next = align_up(sizeof(ArenaHeader), 4096);
		library.reset();
		open();

		const StoredTable stored = store(table, unnamed);

		for (Transfer transfer : ALL_TRANSFERS)
		{
			Ways		ways;

			ways.transfer = transfer;
			expect_groups(texts, stored, -1, ways);
			ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " unnamed " << unnamed;
		}
	}
}

/* A megabyte each, alike but for their ends; by the warp, beside short ones. */
TEST_F(CudaTextKey, LongValues)
{
	std::vector<std::string> texts(12, std::string(1 << 20, 'a'));

	for (size_t i = 0; i < texts.size(); i += 2)
		texts[i].back() = static_cast<char>('b' + i % 3);
	texts.push_back("");
	texts.push_back(std::string((1 << 20) - 1, 'a'));
	texts.push_back("a");
	open();
	for (uint64_t mask : {~uint64_t{0}, uint64_t{0}})
	{
		const Table table = table_of(texts, 8);

		cuda::text_hash_mask = mask;
		arena.next = align_up(sizeof(ArenaHeader), 4096);
		expect_groups(texts, store(table, 1));
	}
}

TEST_F(CudaTextKey, FixedLength)
{
	std::vector<std::string> texts;
	Rng			rng(3);

	for (int i = 0; i < 3000; i++)
		texts.push_back(i % 7 == 0 ? NULL_TEXT : std::string(15, 'u') + static_cast<char>(rng() % 200));
	open();
	expect_all_masks(texts, 1100, 16);
}

/* Masked rows have no key, and no value that is met first. */
TEST_F(CudaTextKey, MaskedRows)
{
	Rng			rng(4);
	const std::vector<std::string> texts = random_texts(rng, 6000);
	std::vector<std::string> left;
	Table		table = table_of(texts, 2500);
	std::vector<bool> masked(texts.size());

	for (size_t i = 0; i < texts.size(); i++)
		if (!(masked[i] = rng() % 3 == 0))
			left.push_back(texts[i]);
	table.mask(masked);
	open();
	expect_groups(left, store(table));
}

/* The second job finds all images on the device. */
TEST_F(CudaTextKey, ImagesAreKept)
{
	Rng			rng(5);
	const std::vector<std::string> texts = random_texts(rng, 20000);
	const Table table = table_of(texts, 10000);
	const StoredTable stored = store(table);
	Ways		ways;

	open();
	ways.transfer = Transfer::Cached;

	const Ran	first = run(group_program(-1).get(), stored, {}, ways), second = run(group_program(-1).get(), stored, {}, ways);

	ASSERT_EQ(second.outcome, DeviceOutcome::Done) << second.reason;
	EXPECT_EQ(counts_of(first, -1), counts_of(second, -1));
	EXPECT_GT(first.figures.bytes_moved, 200000u);
	EXPECT_LT(second.figures.bytes_moved, 65536u);
}

TEST_F(CudaTextKey, Equal)
{
	Rng			rng(6);
	std::vector<std::string> a = random_texts(rng, 1200), b = random_texts(rng, 1200);
	std::vector<std::string> fixed;

	for (size_t i = 0; i < a.size(); i += 3)
		b[i] = a[i];
	for (size_t i = 0; i < a.size(); i++)
		fixed.push_back(a[i] == NULL_TEXT ? NULL_TEXT : (a[i] + "0123456789abcdef").substr(0, 16));

	const Table same = table_of({column_of(a), column_of(b)}, 700), other = table_of({column_of(fixed), column_of(fixed, 16)}, 700);
	const StoredTable tables[] = {store(same), store(other)};
	uint64_t	expected = 0;

	for (size_t i = 0; i < a.size(); i++)
		expected += a[i] != NULL_TEXT && a[i] == b[i];
	open();
	for (uint64_t mask : HASH_MASKS)
	{
		cuda::text_hash_mask = mask;

		const Ran	rows = run(equal_program(-1, -1).get(), tables[0], {}, Ways()), none = run(equal_program(-1, 16).get(), tables[1], {}, Ways());

		ASSERT_EQ(rows.outcome, DeviceOutcome::Done) << rows.reason;
		EXPECT_EQ(rows.rows, expected);
		/* of another length, they are never the same */
		ASSERT_EQ(none.outcome, DeviceOutcome::Done) << none.reason;
		EXPECT_EQ(none.rows, 0u);
	}
}

/* By bytes, the only order that a device has; blanks at the end count or do not. */
TEST_F(CudaTextKey, Compare)
{
	Rng			rng(9);
	const auto	[a, b] = text_pairs(rng, 3000);
	const Table table = table_of({column_of(a), column_of(b)}, 1300);
	const StoredTable stored = store(table);

	open();
	for (bool trims : {false, true})
	{
		TextOrderSpec spec = {};
		Ways		ways;
		std::map<std::string, int64_t> counts;

		spec.attlen = -1;
		spec.flags = trims ? TEXT_TRIM_BLANKS : 0;

		const TextOrder order(spec, nullptr, arena.base, arena.next);

		ways.text_orders = &order;

		const Ran	ran = run(compare_program().get(), stored, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.figures.errors, 0u);
		for (const std::string &row : ran.sorted())
			counts[row.substr(0, row.find(','))] = std::stoll(row.substr(row.find(',') + 1));
		EXPECT_EQ(counts, compared_texts(a, b, trims)) << "trims " << trims;
	}
}

/* Keys of two tables are of one job; a table joined with itself is there once. */
TEST_F(CudaTextKey, Join)
{
	Rng			rng(7);
	const std::vector<std::string> texts[2] = {random_texts(rng, 1500), random_texts(rng, 400)};
	const Table tables[2] = {table_of(texts[0], 1000), table_of(texts[1], 300)};
	const StoredTable stored[2] = {store(tables[0]), store(tables[1], 1)};

	open();
	for (int inner : {0, 1})
	{
		int64_t		expected = 0;

		for (const std::string &x : texts[0])
			expected += x == NULL_TEXT ? 0 : std::count(texts[inner].begin(), texts[inner].end(), x);
		for (uint64_t mask : HASH_MASKS)
		{
			cuda::text_hash_mask = mask;

			const Ran	ran = run(join_program().get(), {stored[0], stored[inner]}, {}, Ways());

			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
			ASSERT_EQ(ran.figures.errors, 0u);
			ASSERT_EQ(ran.sorted().size(), 1u);
			EXPECT_NE(ran.sorted()[0].find(std::to_string(expected)), std::string::npos) << ran.sorted()[0] << ", not " << expected;
		}
	}
}

/* An image that is none makes no key, but an error: the query is PostgreSQL's then. */
TEST_F(CudaTextKey, ImagesThatAreNone)
{
	const std::vector<std::string> texts = {"one", "two", "three"};
	const Table table = table_of(texts, 3);
	const StoredTable stored = store(table);
	const ColumnChunk &chunk = tablet_chunks(stored.tablets[0].tablet)[0];
	unsigned char *images = reinterpret_cast<unsigned char *>(arena.base) + chunk.base;

	open();
	for (unsigned char header : {0xff, 0x01, 0x02, 0xfc})
	{
		Ways		ways;

		ways.transfer = Transfer::Stream;
		images[8] = header;

		const Ran	ran = run(group_program(-1).get(), stored, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_NE(ran.figures.errors, 0u) << static_cast<int>(header);
	}
}

/* Too little memory for the table of values: the CPU runs it. */
TEST_F(CudaTextKey, ShortOfMemory)
{
	std::vector<std::string> texts(200000, "text");
	const Table table = table_of(texts, 200000);
	const StoredTable stored = store(table);

	open(2 << 20);

	const Ran	ran = run(group_program(-1).get(), stored, {}, Ways());

	EXPECT_EQ(ran.outcome, DeviceOutcome::Refused);
	EXPECT_EQ(ran.reason.rfind("the device has not enough memory for the job: ", 0), 0u) << ran.reason;
}
