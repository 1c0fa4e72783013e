/* engine_spill_test.cc: a job's temporary file, with a backend that makes it longer, or does not. */
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "engine/job_spill.h"
#include "vm/memory_budget.h"

using namespace gpuvm;

namespace {

constexpr uint32_t THREADS = 4;
constexpr size_t BYTES = 3000000;	/* that one writes at a time: more than the pieces of one call */

class EngineSpillTest : public ::testing::Test
{
public:
	void SetUp() override
	{
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
		job_ = std::make_unique<Job>();
		doorbell_ = std::make_unique<Doorbell>(ends_[0], job_.get());
		io_ = std::make_unique<JobIo>(request_, job_.get(), doorbell_.get(), &processors_, nullptr);
	}

	void TearDown() override
	{
		stop_ = true;
		if (backend_.joinable())
			backend_.join();
		for (int end : ends_)
			if (end >= 0)
				close(end);
		if (!path_.empty())
			unlink(path_.c_str());
	}

	/* A backend whose file is this one; empty: a new one. */
	void begin_backend(const std::string &path = "")
	{
		char		name[] = "/tmp/spill-XXXXXX";

		if (path.empty())
		{
			const int	fd = mkstemp(name);

			ASSERT_GE(fd, 0);
			close(fd);
			path_ = name;
		}
		snprintf(job_->spill_path, sizeof(job_->spill_path), "%s", path.empty() ? name : path.c_str());
		backend_ = std::thread([this]
		{
			while (!stop_)
			{
				if (job_->spill_wanted > job_->spill_room)
				{
					grown_++;
					job_->spill_room.store(job_->spill_wanted);
				}
				std::this_thread::sleep_for(std::chrono::microseconds(100));
			}
		});
	}

	/* Why not; empty: it has been written. */
	std::string write(JobSpill *spill, std::string bytes, uint64_t *at)
	{
		std::vector<iovec> pieces;

		for (size_t i = 0; i < bytes.size(); i += 1000)
			pieces.push_back({bytes.data() + i, std::min<size_t>(1000, bytes.size() - i)});
		try
		{
			*at = spill->take(bytes.size());
			spill->write(*at, pieces.data(), pieces.size());
		}
		catch (const std::bad_alloc &)
		{
			return io_->failure() != nullptr ? io_->failure() : "nothing was said";
		}
		return "";
	}

	int			ends_[2] = {-1, -1};
	Processors	processors_{2};
	Request		request_;
	std::unique_ptr<Job> job_;
	std::unique_ptr<Doorbell> doorbell_;
	std::unique_ptr<JobIo> io_;
	std::thread backend_;
	std::atomic<bool> stop_{false};
	std::atomic<int> grown_{0};
	std::string path_;
};

std::string
bytes_of(uint32_t thread, uint32_t i)
{
	std::string bytes(BYTES + thread, ' ');

	for (size_t at = 0; at < bytes.size(); at++)
		bytes[at] = static_cast<char>(at * 7 + thread * 31 + i * 3);
	return bytes;
}

}  // namespace

TEST_F(EngineSpillTest, WhatSeveralThreadsWriteIsRead)
{
	begin_backend();

	JobSpill	spill(job_.get(), io_.get(), THREADS);
	std::vector<std::thread> threads;

	for (uint32_t t = 0; t < THREADS; t++)
		threads.emplace_back([&, t]
		{
			for (uint32_t i = 0; i < 5; i++)
			{
				const std::string bytes = bytes_of(t, i);
				std::string read(bytes.size(), ' ');
				uint64_t	at = 0;

				EXPECT_EQ(write(&spill, bytes, &at), "");
				spill.read(at, read.data(), read.size());
				EXPECT_TRUE(read == bytes);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(spill.take(0), 5 * (THREADS * BYTES + 6));
	EXPECT_EQ(io_->failure(), nullptr);
	/* not for each piece */
	EXPECT_GT(grown_, 1);
	EXPECT_LT(grown_, 20);
}

/* The file of a job's next program is behind that of the one before, and the job knows what went there, also where it fails. */
TEST_F(EngineSpillTest, ProgramsHaveOneFile)
{
	uint64_t	at = 0;

	begin_backend();
	{
		JobSpill	spill(job_.get(), io_.get(), THREADS);

		EXPECT_EQ(write(&spill, "12345", &at), "");
	}
	EXPECT_EQ(job_->spilled, 5u);
	{
		JobSpill	spill(job_.get(), io_.get(), THREADS);
		char		bytes[5];

		EXPECT_EQ(write(&spill, "67890", &at), "");
		EXPECT_EQ(at, 5u);
		spill.read(0, bytes, 5);
		EXPECT_EQ(std::string(bytes, 5), "12345");
	}
	EXPECT_EQ(job_->spilled, 10u);
}

TEST_F(EngineSpillTest, AFullDiskIsSaid)
{
	begin_backend("/dev/full");

	JobSpill	spill(job_.get(), io_.get(), THREADS);
	uint64_t	at = 0;

	EXPECT_EQ(write(&spill, bytes_of(0, 0), &at), "could not write a temporary file: No space left on device");
	EXPECT_FALSE(io_->short_of_memory());
	EXPECT_TRUE(io_->stopping());
}

TEST_F(EngineSpillTest, AFileThatIsNotThereIsSaid)
{
	begin_backend("/nonexistent/spill");

	JobSpill	spill(job_.get(), io_.get(), THREADS);
	uint64_t	at = 0;

	EXPECT_EQ(write(&spill, bytes_of(0, 0), &at), "could not open a temporary file: No such file or directory");
}

TEST_F(EngineSpillTest, WhatIsNotThereIsNotRead)
{
	begin_backend();

	JobSpill	spill(job_.get(), io_.get(), THREADS);
	char		bytes[10];
	uint64_t	at = 0;

	EXPECT_EQ(write(&spill, "12345", &at), "");
	EXPECT_THROW(spill.read(at, bytes, sizeof(bytes)), std::bad_alloc);
	EXPECT_STREQ(io_->failure(), "could not read a temporary file: Input/output error");
}

/* The backend does not answer any more: who asks does not wait for ever. */
TEST_F(EngineSpillTest, NobodyWaitsForABackendThatCancels)
{
	JobSpill	spill(job_.get(), io_.get(), THREADS);
	std::thread cancels([this]
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		job_->cancel.store(1);
	});

	EXPECT_THROW((void) spill.take(10), std::bad_alloc);
	cancels.join();
}

TEST_F(EngineSpillTest, NorForOneThatHasGone)
{
	JobSpill	spill(job_.get(), io_.get(), THREADS);
	std::thread goes([this]
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		close(ends_[1]);
		ends_[1] = -1;
	});

	EXPECT_THROW((void) spill.take(10), std::bad_alloc);
	goes.join();
}

/* As much as every thread may take is left, or it is wanted. */
TEST_F(EngineSpillTest, IsWantedWhereMemoryIsShort)
{
	MemoryBudget budget(uint64_t(64) << 20);
	JobMemory	job(&budget);
	JobSpill	spill(job_.get(), io_.get(), THREADS);

	EXPECT_FALSE(spill.wanted(uint64_t(1) << 30));

	JobMemory::Use uses(&job);

	EXPECT_FALSE(spill.wanted(uint64_t(14) << 20));
	EXPECT_TRUE(spill.wanted(uint64_t(15) << 20));
	ASSERT_TRUE(budget.take(&job, uint64_t(32) << 20));
	EXPECT_TRUE(spill.wanted(uint64_t(14) << 20));
}
