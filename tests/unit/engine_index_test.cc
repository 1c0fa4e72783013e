/* Inner sides of joins that gpuvmd keeps: what is found again, what never is, what goes. */
#include "engine_joins.h"

#include "engine/index_store.h"

namespace {

/* ---- the store alone ------------------------------------------------------------- */

std::atomic<int> blobs{0};

struct Blob final : JoinIndex
{
	explicit Blob(uint64_t bytes) : bytes(bytes) { blobs++; }
	~Blob() override { blobs--; }
	uint64_t	memory() const override { return bytes; }

	uint64_t	bytes;
};

class IndexStoreTest : public ::testing::Test
{
public:
	void SetUp() override
	{
		for (TabletHeader &t : tablets)
		{
			t = {};
			t.serial = static_cast<uint64_t>(&t - tablets) + 1;
			t.refs = 1;
		}
		header.index_limit = PLENTY;
	}

	bool keep(const std::string &key, uint64_t bytes, size_t tablet = 0)
	{
		return store.keep(key, std::make_shared<Blob>(bytes), {JoinTablet{&tablets[tablet], nullptr, 0}});
	}

	/* What there is, without being used by that. */
	std::string kept()
	{
		std::string found;

		for (const char *key : {"a", "b", "c", "d"})
			found += store.find(key) ? key : "";
		return found;
	}

	/* tidy() looks once a second. */
	void wait_and_tidy()
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(1100));
		store.tidy();
	}

	ArenaHeader header = {};
	ArenaMap	arena{reinterpret_cast<char *>(&header), sizeof(header)};
	IndexStore	store{&arena};
	TabletHeader tablets[3];
};

TEST_F(IndexStoreTest, FindsWhatItKeeps)
{
	EXPECT_EQ(store.find("a"), nullptr);
	EXPECT_TRUE(keep("a", 1000));
	EXPECT_TRUE(keep("b", 2000));
	EXPECT_EQ(store.find("a")->memory(), 1000u);
	EXPECT_EQ(store.find("b")->memory(), 2000u);
	EXPECT_EQ(store.find("ab"), nullptr);
	EXPECT_EQ(store.find(""), nullptr);

	/* somebody was quicker */
	EXPECT_FALSE(keep("a", 3000));
	EXPECT_EQ(store.find("a")->memory(), 1000u);
	EXPECT_EQ(header.indexes.load(), 2u);
	EXPECT_GE(header.index_bytes.load(), 3000u);
	EXPECT_LT(header.index_bytes.load(), 5000u);
	EXPECT_EQ(blobs, 2);
}

TEST_F(IndexStoreTest, TheLastUsedStays)
{
	header.index_limit = 2500000;
	EXPECT_TRUE(keep("a", 1000000));
	EXPECT_TRUE(keep("b", 1000000));
	EXPECT_NE(store.find("a"), nullptr);
	EXPECT_TRUE(keep("c", 1000000));
	EXPECT_EQ(kept(), "ac");
	EXPECT_EQ(blobs, 2);

	/* too large for all: nothing goes for it */
	EXPECT_FALSE(keep("d", 2500000));
	EXPECT_EQ(kept(), "ac");
	EXPECT_LE(header.index_bytes.load(), 2500000u);

	/* a large one drives out several */
	EXPECT_TRUE(keep("d", 2400000));
	EXPECT_EQ(kept(), "d");
	EXPECT_EQ(blobs, 1);
	EXPECT_EQ(header.indexes.load(), 1u);
}

TEST_F(IndexStoreTest, WhatIsUsedStays)
{
	header.index_limit = 2500000;
	EXPECT_TRUE(keep("a", 1000000));
	EXPECT_TRUE(keep("b", 1000000));

	std::shared_ptr<const JoinIndex> a = store.find("a");

	EXPECT_NE(store.find("b"), nullptr);
	EXPECT_TRUE(keep("c", 1000000));
	EXPECT_EQ(kept(), "ac");

	std::shared_ptr<const JoinIndex> c = store.find("c");

	EXPECT_FALSE(keep("d", 1000000));
	EXPECT_EQ(kept(), "ac");
	store.drop_unused();
	EXPECT_EQ(kept(), "ac");
	EXPECT_EQ(a->memory(), 1000000u);
	a.reset();
	store.drop_unused();
	EXPECT_EQ(kept(), "c");
	EXPECT_TRUE(keep("d", 1000000));
	EXPECT_EQ(kept(), "cd");
}

TEST_F(IndexStoreTest, TheLimitMayChange)
{
	header.index_limit = 0;
	EXPECT_FALSE(keep("a", 1));
	header.index_limit = PLENTY;
	EXPECT_TRUE(keep("a", 1000000));
	EXPECT_TRUE(keep("b", 1000000));
	header.index_limit = 1500000;
	wait_and_tidy();
	EXPECT_EQ(kept(), "b");

	/* at once, and then the memory */
	header.index_limit = 0;
	EXPECT_EQ(kept(), "");
	EXPECT_EQ(blobs, 1);
	wait_and_tidy();
	EXPECT_EQ(blobs, 0);
	EXPECT_EQ(header.indexes.load(), 0u);
	EXPECT_EQ(header.index_bytes.load(), 0u);
}

TEST_F(IndexStoreTest, TabletsThatAreGoneTakeTheirIndexesAlong)
{
	EXPECT_TRUE(keep("a", 1000, 0));
	EXPECT_TRUE(keep("b", 1000, 1));
	EXPECT_TRUE(keep("c", 1000, 2));
	EXPECT_TRUE(store.keep("d", std::make_shared<Blob>(1000), {JoinTablet{&tablets[2], nullptr, 0}, JoinTablet{&tablets[0], nullptr, 0}}));

	/* freed, or another tablet by now */
	tablets[0].refs = 0;
	tablets[1].serial = 77;
	wait_and_tidy();
	EXPECT_EQ(kept(), "c");
	EXPECT_EQ(blobs, 1);

	/* before others, when there is no room */
	header.index_limit = 7000;
	tablets[0].refs = 1;
	EXPECT_TRUE(keep("a", 1000, 0));
	EXPECT_TRUE(keep("b", 1000, 2));
	EXPECT_EQ(kept(), "abc");
	tablets[2].refs = 0;
	EXPECT_TRUE(keep("d", 4000, 0));
	EXPECT_EQ(kept(), "ad");
}

TEST_F(IndexStoreTest, SoManyAndNoMore)
{
	for (size_t i = 0; i < MOST_INDEXES + 10; i++)
		EXPECT_TRUE(keep(std::to_string(i), 10));
	EXPECT_EQ(header.indexes.load(), MOST_INDEXES);
	EXPECT_EQ(store.find("9"), nullptr);
	EXPECT_NE(store.find("10"), nullptr);
}

/* ---- joins ------------------------------------------------------------------------- */

class JoinIndexTest : public EngineJobTest
{
public:
	void SetUp() override
	{
		EngineJobTest::SetUp();
		at<ArenaHeader>(0)->index_limit = PLENTY;
		for (uint32_t t = 0; t < NTABLETS; t++)
			tablet(t)->refs = 1;
	}

	uint64_t *offsets() { return at<uint64_t>(version_ + at<TableVersion>(version_)->tablets); }
	TabletHeader *tablet(uint32_t t) { return at<TabletHeader>(offsets()[t]); }
	uint32_t indexes() { return at<ArenaHeader>(0)->indexes.load(); }

	/* All its values are `value`. */
	uint64_t make_tablet(int64_t value, uint64_t serial, uint32_t rows = TABLET_ROWS)
	{
		std::vector<int64_t> values(rows, value);
		uint32_t	block_rows[2] = {0, rows};
		uint64_t	lsn = 1;
		uint32_t	lps = LPS_DENSE;
		StagedColumn column = {Type::I64, 1, values.data(), nullptr};
		StagedTablet staged = {rows, 1, &column, 0, 1, block_rows, &lsn, &lps, nullptr, 0};
		TabletHeader header;
		ColumnChunk chunk;
		const uint64_t offset = allocate(plan_tablet(staged, &header, &chunk));

		write_tablet(staged, header, &chunk, serial, at<char>(offset));
		at<TabletHeader>(offset)->refs = 1;
		return offset;
	}

	/* The inner side's tablets. */
	void set_inner(Job *job, const std::vector<uint64_t> &tablets)
	{
		job->cursors[1].ntablets = static_cast<uint32_t>(tablets.size());
		job->cursors[1].tablets = allocate(tablets.size() * sizeof(uint64_t));
		std::copy(tablets.begin(), tablets.end(), at<uint64_t>(job->cursors[1].tablets));
	}

	/* How the inner side came to be: "used", "made" or "". */
	std::string run_join(Backend *backend)
	{
		backend->run();
		EXPECT_EQ(backend->state(), JobState::Done) << backend->failure();
		EXPECT_EQ(backend->job->ran_on, Device::Cpu);
		EXPECT_EQ(backend->job->index_bytes > 0, (backend->job->indexes_used | backend->job->indexes_made) != 0);
		EXPECT_EQ(backend->job->indexes_used & ~2u, 0u);
		EXPECT_EQ(backend->job->indexes_made & ~2u, 0u);
		return std::string(backend->job->indexes_used ? "used" : "") + (backend->job->indexes_made ? "made" : "");
	}
};

TEST_F(JoinIndexTest, TheSecondJoinUsesWhatTheFirstHasMade)
{
	Backend		backend(this);
	uint64_t	build_bytes = 0;

	for (const char *how : {"made", "used", "used"})
	{
		prepare_join(&backend, this, true, 0, false);
		EXPECT_EQ(run_join(&backend), how);
		backend.expect_whole_table();
		EXPECT_EQ(backend.job->build_rows, NROWS);
		EXPECT_EQ(backend.job->index_bytes, backend.job->build_bytes);
		EXPECT_TRUE(build_bytes == 0 || build_bytes == backend.job->build_bytes);
		build_bytes = backend.job->build_bytes;
	}
	EXPECT_EQ(indexes(), 1u);

	/* another query, another session, the same keys */
	Backend		other(this);

	prepare_join(&other, this, true, 0, false, nullptr, 2, JoinKind::Left);
	EXPECT_EQ(run_join(&other), "used");
	other.expect_whole_table();

	/* fewer columns are another index */
	for (const char *how : {"made", "used"})
	{
		prepare_join(&other, this, true, 0, true);
		EXPECT_EQ(run_join(&other), how);
		EXPECT_EQ(other.values, std::vector<uint64_t>{NROWS});
	}

	/* partners are noted for each join alone */
	for (int round = 0; round < 2; round++)
	{
		prepare_join(&other, this, true, 0, true, nullptr, 2, JoinKind::Full);
		set_inner(other.job, {offsets()[0], offsets()[1]});
		EXPECT_EQ(run_join(&other), round == 0 ? "made" : "used");
		EXPECT_EQ(other.values, std::vector<uint64_t>{NROWS});
	}

	/* rows without a table of keys are something else */
	const uint64_t few = make_tablet(5, 1000, 3);

	for (const char *how : {"made", "used"})
	{
		prepare_join(&backend, this, false, 0, false);
		set_inner(backend.job, {few});
		EXPECT_EQ(run_join(&backend), how);
		EXPECT_EQ(backend.values, std::vector<uint64_t>(3 * NROWS, 5));
	}
	prepare_join(&backend, this, true, 0, false);
	set_inner(backend.job, {few});
	EXPECT_EQ(run_join(&backend), "made");
	EXPECT_EQ(backend.values, std::vector<uint64_t>(3, 5));
	EXPECT_EQ(indexes(), 5u);

	/* of rows that nobody reads there is nothing to keep */
	prepare_join(&backend, this, false, 0, true);
	EXPECT_EQ(run_join(&backend), "");
	EXPECT_EQ(backend.values, std::vector<uint64_t>{uint64_t{NROWS} * NROWS});
}

TEST_F(JoinIndexTest, OnlyWholeTabletsAreIndexes)
{
	Backend		backend(this);

	for (int round = 0; round < 2; round++)
	{
		prepare_join(&backend, this, true, 1000, true);
		EXPECT_EQ(run_join(&backend), "") << "a condition";
		EXPECT_EQ(backend.values, std::vector<uint64_t>{1000});

		prepare_join(&backend, this, true, 0, true);
		mask(backend.job, {{3, 0, 100}});
		std::swap(backend.job->cursors[0], backend.job->cursors[1]);
		EXPECT_EQ(run_join(&backend), "") << "masked rows";
		EXPECT_EQ(backend.values, std::vector<uint64_t>{NROWS - 100});

		prepare_join(&backend, this, true, 0, true);
		set_inner(backend.job, {offsets()[0], make_tablet(7, 0)});
		EXPECT_EQ(run_join(&backend), "") << "a delta";
		EXPECT_EQ(backend.values, std::vector<uint64_t>{2 * TABLET_ROWS});
	}
	EXPECT_EQ(indexes(), 0u);

	/* masked rows of the others do not matter */
	for (const char *how : {"made", "used"})
	{
		prepare_join(&backend, this, true, 0, true);
		mask(backend.job, {{3, 0, 100}});
		EXPECT_EQ(run_join(&backend), how);
		EXPECT_EQ(backend.values, std::vector<uint64_t>{NROWS - 100});
	}
}

TEST_F(JoinIndexTest, OtherTabletsAreOtherRows)
{
	Backend		backend(this);
	auto		count = [&](const std::vector<uint64_t> &tablets, const std::string &how) {
		prepare_join(&backend, this, true, 0, true);
		set_inner(backend.job, tablets);
		EXPECT_EQ(run_join(&backend), how);
		return backend.values.at(0);
	};
	const uint64_t sevens = make_tablet(7, 1000);

	EXPECT_EQ(count({offsets()[0]}, "made"), TABLET_ROWS);
	EXPECT_EQ(count({offsets()[1]}, "made"), TABLET_ROWS);
	EXPECT_EQ(count({offsets()[0], offsets()[1]}, "made"), 2 * TABLET_ROWS);
	EXPECT_EQ(count({offsets()[1], offsets()[0]}, "made"), 2 * TABLET_ROWS);
	EXPECT_EQ(count({offsets()[0], sevens}, "made"), 2 * TABLET_ROWS);
	EXPECT_EQ(count({offsets()[0]}, "used"), TABLET_ROWS);

	/* in the place of one that is gone, with the same header but for the serial */
	TabletHeader *tablet = at<TabletHeader>(sevens);
	const uint64_t nines = make_tablet(NROWS + 9, 1001);

	EXPECT_EQ(count({sevens}, "made"), TABLET_ROWS);
	memcpy(static_cast<void *>(tablet), at<char>(nines), tablet->size);

	ColumnSummary *summary = at<ColumnSummary>(backend.job->cursors[0].columns);

	summary->max = NROWS + 9;
	EXPECT_EQ(count({sevens}, "made"), 0u);
	EXPECT_EQ(count({sevens}, "used"), 0u);
}

/* What a program was lowered for is a part of it. */
TEST_F(JoinIndexTest, OtherSummariesAreOtherIndexes)
{
	Backend		backend(this);

	prepare_join(&backend, this, true, 0, true);
	EXPECT_EQ(run_join(&backend), "made");
	at<ColumnSummary>(backend.job->cursors[0].columns)->max = int64_t{1} << 40;
	prepare_join(&backend, this, true, 0, true);
	EXPECT_EQ(run_join(&backend), "made");
	EXPECT_EQ(backend.values, std::vector<uint64_t>{NROWS});
	EXPECT_EQ(indexes(), 2u);
}

TEST_F(JoinIndexTest, TheOldestMakesRoom)
{
	Backend		backend(this);
	auto		join = [&](uint32_t t) {
		prepare_join(&backend, this, true, 0, true);
		set_inner(backend.job, {offsets()[t]});

		const std::string how = run_join(&backend);

		EXPECT_EQ(backend.values, std::vector<uint64_t>{TABLET_ROWS});
		return how;
	};

	EXPECT_EQ(join(0), "made");
	at<ArenaHeader>(0)->index_limit = at<ArenaHeader>(0)->index_bytes * 5 / 2;
	EXPECT_EQ(join(1), "made");
	EXPECT_EQ(join(0), "used");
	EXPECT_EQ(join(2), "made");
	EXPECT_EQ(indexes(), 2u);
	EXPECT_EQ(join(0), "used");
	EXPECT_EQ(join(1), "made");
	EXPECT_EQ(join(2), "made");
	at<ArenaHeader>(0)->index_limit = 0;
	EXPECT_EQ(join(0), "");
	EXPECT_LE(at<ArenaHeader>(0)->index_bytes, PLENTY);
}

TEST_F(JoinIndexTest, WhatFailsOrIsCanceledLeavesNothing)
{
	Backend		backend(this);

	const auto	limited = [&](uint64_t limit) {
		prepare_join(&backend, this, true, 0, true);
		backend.job->job_memory = limit;
		backend.run();
		return backend.state() == JobState::Failed ? backend.failure() : backend.job->passes > 1 ? "in passes" : "at once";
	};

	EXPECT_EQ(limited(10000), "out of memory");
	EXPECT_EQ(limited(NROWS * 6), "in passes");
	EXPECT_EQ(backend.values, std::vector<uint64_t>{NROWS});
	EXPECT_EQ(indexes(), 0u);
	EXPECT_EQ(backend.job->indexes_made, 0u);

	/* an index is nobody's */
	prepare_join(&backend, this, true, 0, true);
	backend.job->job_memory = 0;
	EXPECT_EQ(run_join(&backend), "made");
	backend.values.clear();
	EXPECT_EQ(limited(10000), "at once");
	EXPECT_EQ(backend.values, std::vector<uint64_t>{NROWS});
	EXPECT_EQ(backend.job->indexes_used, 2u);
	backend.job->job_memory = 0;

	/* at any moment of building */
	int			canceled = 0;

	for (int round = 0; round < 60; round++)
	{
		at<ArenaHeader>(0)->index_limit = 0;
		prepare_join(&backend, this, true, 0, true);
		EXPECT_EQ(run_join(&backend), "");
		at<ArenaHeader>(0)->index_limit = PLENTY;
		std::reverse(offsets(), offsets() + NTABLETS - round % NTABLETS);
		backend.job->cursors[1].tablets = backend.job->cursors[0].tablets;
		backend.submit();
		std::this_thread::sleep_for(std::chrono::microseconds(round * 40));
		backend.job->cancel.store(1);
		backend.drain();
		canceled += backend.state() == JobState::Failed;
		if (round % 4 != 0)
			continue;
		prepare_join(&backend, this, true, 0, false);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		backend.expect_whole_table();
	}
	EXPECT_GT(canceled, 0);
}

/* Sessions that make, use and drive out the same indexes, while tablets go. */
TEST_F(JoinIndexTest, Sessions)
{
	constexpr int SESSIONS = 4, ROUNDS = 30, SIDES = 5;
	std::vector<std::unique_ptr<Backend>> backends;
	std::vector<uint64_t> sides[SIDES];
	std::vector<std::thread> threads;
	std::atomic<int> used{0}, made{0};

	for (int i = 0; i < SIDES; i++)
		for (int t = 0; t <= i % 3; t++)
			sides[i].push_back(make_tablet(i * 100, static_cast<uint64_t>(2000 + i * 10 + t)));
	for (int s = 0; s < SESSIONS; s++)
	{
		backends.push_back(std::make_unique<Backend>(this));
		prepare_join(backends.back().get(), this, true, 0, true);
		set_inner(backends.back()->job, {0, 0, 0});
	}
	for (int s = 0; s < SESSIONS; s++)
		threads.emplace_back([&, s] {
			Backend	   &backend = *backends[static_cast<size_t>(s)];

			for (int round = 0; round < ROUNDS; round++)
			{
				const int	side = (s + round * (s + 1)) % SIDES;
				Job		   *job = backend.job;

				job->cursors[1].ntablets = static_cast<uint32_t>(sides[side].size());
				std::copy(sides[side].begin(), sides[side].end(), at<uint64_t>(job->cursors[1].tablets));
				backend.run();
				EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
				EXPECT_EQ(backend.values, std::vector<uint64_t>{TABLET_ROWS * sides[side].size()});
				used += job->indexes_used != 0;
				made += job->indexes_made != 0;
			}
		});
	for (int i = 0; i < 40; i++)
	{
		at<ArenaHeader>(0)->index_limit = i % 4 == 0 ? 0 : i % 4 == 1 ? 3 * TABLET_ROWS * 24 : PLENTY;
		__atomic_store_n(&at<TabletHeader>(sides[i % SIDES][0])->refs, i / SIDES % 2 ? 1u : 0u, __ATOMIC_RELAXED);
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	}
	at<ArenaHeader>(0)->index_limit = PLENTY;
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_GT(used, 0);
	EXPECT_GT(made, 0);
}

}  // namespace
