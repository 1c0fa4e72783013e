/*
 * Which pages of the arena gpuvmd can write to. Whether one is writable, the kernel says: it refuses to write to the
 * memory of this process where the mapping is read-only.
 */
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <random>
#include <thread>

#include "engine_fixture.h"

namespace {

constexpr uint64_t NPAGES = 64;
constexpr uint64_t ZONE_PAGE = 48;
constexpr uint64_t MAPPED_BYTES = NPAGES * ARENA_PAGE;

class EnginePages : public ::testing::Test
{
public:
	void SetUp() override
	{
		arena_ = memfd_create("arena", MFD_CLOEXEC);
		ASSERT_EQ(ftruncate(arena_, MAPPED_BYTES), 0);
		memory_ = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		ASSERT_GE(memory_, 0);
	}

	void TearDown() override
	{
		if (base_ != nullptr)
			munmap(base_, MAPPED_BYTES);
		close(memory_);
		close(arena_);
	}

	void map_read_only()
	{
		void	   *at = mmap(nullptr, MAPPED_BYTES, PROT_READ, MAP_SHARED, arena_, 0);

		ASSERT_NE(at, MAP_FAILED);
		base_ = static_cast<char *>(at);
	}

	bool writable(uint64_t offset)
	{
		const char	byte = 7;

		return pwrite(memory_, &byte, 1, static_cast<off_t>(reinterpret_cast<uintptr_t>(base_ + offset))) == 1;
	}

	/* w: writable, -: not, for each of the pages [first, end). */
	std::string pages(uint64_t first, uint64_t end)
	{
		std::string all;

		for (uint64_t page = first; page < end; page++)
		{
			all += writable(page * ARENA_PAGE) ? 'w' : '-';
			EXPECT_EQ(writable((page + 1) * ARENA_PAGE - 1), all.back() == 'w') << "page " << page << " is so to its end";
		}
		return all;
	}

	int			arena_;
	int			memory_;
	char	   *base_ = nullptr;
};

TEST_F(EnginePages, UsesAreCounted)
{
	map_read_only();

	OpenPages	open(base_, MAPPED_BYTES, ZONE_PAGE * ARENA_PAGE);

	ASSERT_TRUE(open.open_zone());
	EXPECT_EQ(pages(0, NPAGES), std::string(ZONE_PAGE, '-') + std::string(NPAGES - ZONE_PAGE, 'w'));

	/* two sessions whose areas overlap, the second from within a page to within another */
	EXPECT_TRUE(open.open(2 * ARENA_PAGE, 3 * ARENA_PAGE));
	EXPECT_EQ(pages(0, 8), "--www---");
	EXPECT_TRUE(open.open(4 * ARENA_PAGE + 100, 2 * ARENA_PAGE));
	EXPECT_EQ(pages(0, 8), "--wwwww-");
	open.close(2 * ARENA_PAGE, 3 * ARENA_PAGE);
	EXPECT_EQ(pages(0, 8), "----www-");

	/* a chunk is registered meanwhile */
	EXPECT_TRUE(open.open(0, 16 * ARENA_PAGE));
	EXPECT_EQ(pages(0, 17), "wwwwwwwwwwwwwwww-");
	open.close(4 * ARENA_PAGE + 100, 2 * ARENA_PAGE);
	EXPECT_TRUE(open.open(9 * ARENA_PAGE, 1));
	EXPECT_EQ(pages(0, 17), "wwwwwwwwwwwwwwww-");
	open.close(0, 16 * ARENA_PAGE);
	EXPECT_EQ(pages(0, 17), "---------w-------");
	open.close(9 * ARENA_PAGE, 1);

	/* into the zone, and in it */
	EXPECT_TRUE(open.open((ZONE_PAGE - 2) * ARENA_PAGE, 5 * ARENA_PAGE));
	EXPECT_TRUE(open.open((ZONE_PAGE + 1) * ARENA_PAGE, ARENA_PAGE));
	EXPECT_EQ(pages(ZONE_PAGE - 3, ZONE_PAGE + 4), "-wwwwww");
	open.close((ZONE_PAGE - 2) * ARENA_PAGE, 5 * ARENA_PAGE);
	open.close((ZONE_PAGE + 1) * ARENA_PAGE, ARENA_PAGE);
	EXPECT_EQ(pages(0, NPAGES), std::string(ZONE_PAGE, '-') + std::string(NPAGES - ZONE_PAGE, 'w'));
}

TEST_F(EnginePages, UsesEndTogether)
{
	map_read_only();

	OpenPages	open(base_, MAPPED_BYTES, ZONE_PAGE * ARENA_PAGE);

	{
		PageUses	session, job;

		EXPECT_TRUE(session.open(&open, 3 * ARENA_PAGE, 100));
		EXPECT_TRUE(job.open(&open, 3 * ARENA_PAGE + 4096, 100));
		EXPECT_TRUE(job.open(&open, 5 * ARENA_PAGE, ARENA_PAGE));
		EXPECT_EQ(pages(2, 7), "-w-w-");
		{
			PageUses	other;

			EXPECT_TRUE(other.open(&open, 5 * ARENA_PAGE, ARENA_PAGE));
		}
		EXPECT_EQ(pages(2, 7), "-w-w-");
	}
	EXPECT_EQ(pages(2, 7), "-----");
	EXPECT_TRUE(PageUses().open(nullptr, 0, 1)) << "where all is writable there is nothing to do";
}

/* Sessions open and close, and write to what they have open; a chunk is registered again and again. */
TEST_F(EnginePages, ManyThreadsAtOnce)
{
	map_read_only();

	OpenPages	open(base_, MAPPED_BYTES, ZONE_PAGE * ARENA_PAGE);
	std::vector<std::thread> threads;
	std::atomic<int> refused{0};

	ASSERT_TRUE(open.open_zone());
	for (unsigned t = 0; t < 4; t++)
		threads.emplace_back([&, t]
		{
			std::mt19937 random(t);

			for (int i = 0; i < 500; i++)
			{
				const uint64_t first = t == 0 ? 0 : random() % (NPAGES - 4), n = t == 0 ? 16 : 1 + random() % 4;
				const uint64_t last = (first + n) * ARENA_PAGE - 1 - t;

				refused += !open.open(first * ARENA_PAGE, n * ARENA_PAGE);
				__atomic_store_n(base_ + first * ARENA_PAGE + t, char(1), __ATOMIC_RELAXED);
				__atomic_store_n(base_ + last, char(1), __ATOMIC_RELAXED);
				open.close(first * ARENA_PAGE, n * ARENA_PAGE);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(refused, 0);
	EXPECT_EQ(pages(0, NPAGES), std::string(ZONE_PAGE, '-') + std::string(NPAGES - ZONE_PAGE, 'w'));
}

TEST_F(EnginePages, TheArenaAsItIsMapped)
{
	void	   *at = mmap(nullptr, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, arena_, 0);
	ArenaHeader *header = new (at) ArenaHeader();
	ArenaMap	arena;

	header->magic = ARENA_MAGIC;
	header->abi_version = ABI_VERSION;
	header->size = MAPPED_BYTES;
	for (uint64_t wrong : {uint64_t{0}, ARENA_PAGE, ZONE_PAGE * ARENA_PAGE + 4096, MAPPED_BYTES + ARENA_PAGE})
	{
		header->jobs_begin = wrong;
		EXPECT_STREQ(ArenaMap().map(arena_), "the arena's header is damaged") << wrong;
	}
	header->jobs_begin = ZONE_PAGE * ARENA_PAGE;
	ASSERT_STREQ(arena.map(arena_), nullptr);
	base_ = reinterpret_cast<char *>(arena.header());
	EXPECT_EQ(static_cast<void *>(&arena.header()->engine_threads), base_ + ARENA_PAGE)
		<< "what gpuvmd writes begins with its page";
	EXPECT_EQ(pages(0, NPAGES), "-w" + std::string(ZONE_PAGE - 2, '-') + std::string(NPAGES - ZONE_PAGE, 'w'));

	EXPECT_EQ(arena.at<char>(ARENA_HEADER_BYTES - 1), nullptr) << "the header is nobody's";
	{
		PageUses	uses;
		Job		   *job = arena.open<Job>(7 * ARENA_PAGE, sizeof(Job), 64, &uses);

		ASSERT_NE(job, nullptr);
		job->magic = JOB_MAGIC;
		EXPECT_EQ(arena.at<Job>(7 * ARENA_PAGE)->magic, JOB_MAGIC);
		EXPECT_EQ(pages(6, 9), "-w-");
		EXPECT_EQ(arena.open<Job>(MAPPED_BYTES - 64, sizeof(Job), 64, &uses), nullptr);
	}
	EXPECT_EQ(pages(6, 9), "---");
	munmap(at, MAPPED_BYTES);
}

/* gpuvmd as it is, with the arena mapped read-only, and no zone: whatever it writes to has to be opened. */
class ReadOnlyArena : public EngineJobTest
{
public:
	void SetUp() override
	{
		EngineJobTest::SetUp();
		at<ArenaHeader>(0)->jobs_begin = ARENA_SIZE;
		ASSERT_STREQ(context_.arena.map(fd_), nullptr);
		memory_ = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	}

	void TearDown() override
	{
		EngineJobTest::TearDown();
		munmap(context_.arena.header(), ARENA_SIZE);
		close(memory_);
	}

	/* Can gpuvmd write there? What is there stays as it is. */
	bool writable(uint64_t offset)
	{
		char		byte = *at<char>(offset);

		return pwrite(memory_, &byte, 1,
					  static_cast<off_t>(reinterpret_cast<uintptr_t>(context_.arena.header()) + offset)) == 1;
	}

	int			memory_;
};

TEST_F(ReadOnlyArena, AJobOpensWhatItWritesTo)
{
	next_ = align_up(next_, ARENA_PAGE);

	Backend		backend(this), other(this);
	const uint64_t job = static_cast<uint64_t>(reinterpret_cast<char *>(backend.job) - base_);

	EXPECT_TRUE(writable(job));
	EXPECT_FALSE(writable(first_tablet_));
	EXPECT_FALSE(writable(version_));
	next_ = align_up(next_, ARENA_PAGE);
	for (bool grouped : {false, true})
	{
		backend.prepare(grouped);

		const uint64_t area = backend.job->buffers[1].offset;

		EXPECT_FALSE(writable(area));
		knobs.hold = true;
		backend.submit();
		ASSERT_TRUE(eventually([] { return knobs.inside > 0; }));
		EXPECT_TRUE(writable(area));
		/* beside it another one, which ends before */
		knobs.hold = false;
		other.prepare(grouped);
		other.run();
		EXPECT_EQ(other.state(), JobState::Done) << other.failure();
		backend.drain();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		if (!grouped)
			backend.expect_whole_table();
		EXPECT_FALSE(writable(area)) << "the job has ended";
	}
	backend.hang_up();
	other.hang_up();
	EXPECT_TRUE(eventually([&] { return !writable(job); })) << "the session has ended";
}

TEST_F(ReadOnlyArena, WhatIsKnownOfASetIsWritten)
{
	Backend		backend(this);

	at<ArenaHeader>(0)->result_limit.store(PLENTY);
	backend.prepare();
	next_ = align_up(next_, ARENA_PAGE);
	backend.job->nbuffers = 0;
	backend.job->sink.set = 1;
	backend.job->sink.known = allocate(sizeof(SetColumn));
	backend.job->sink.ncolumns = 1;
	backend.job->sink.columns[0] = SinkColumn{0, SinkForm::Value};
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->rows_out, NROWS);
	EXPECT_EQ(at<SetColumn>(backend.job->sink.known)->max, NROWS - 1);
	EXPECT_FALSE(writable(backend.job->sink.known));
}

}  // namespace
