/* Who has how much memory, and who waits for it (vm/memory_budget.h). */
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "vm/cpu_pages.h"
#include "vm/memory_budget.h"

using namespace gpuvm;

constexpr uint64_t MB = uint64_t(1) << 20;

static bool
never()
{
	return false;
}

TEST(MemoryBudget, PagesAreCountedForTheirJobAndUntilTheyGo)
{
	MemoryBudget budget(100 * MB);
	Pages		kept;

	{
		JobMemory	job(&budget);
		JobMemory::Use uses(&job);

		Pages		pages(30 * MB, true);

		EXPECT_EQ(budget.used(), 30 * MB);
		kept = Pages(20 * MB, false);
		EXPECT_EQ(budget.used(), 50 * MB);
		EXPECT_THROW(Pages(51 * MB, false), std::bad_alloc);
		EXPECT_EQ(budget.used(), 50 * MB);
		EXPECT_EQ(job.peak(), 50 * MB);
	}
	EXPECT_EQ(budget.used(), 20 * MB) << "what outlives the job still counts";
	kept = Pages();
	EXPECT_EQ(budget.used(), 0u);

	const Pages	uncounted(200 * MB, false);

	EXPECT_EQ(budget.used(), 0u) << "nobody's is not counted";
}

TEST(MemoryBudget, WhatIsOnlyKeptMakesRoom)
{
	MemoryBudget budget(100 * MB);
	JobMemory	job(&budget);
	bool		kept = true;

	ASSERT_TRUE(budget.take(nullptr, 60 * MB));
	budget.set_yield([&]
	{
		if (kept)
			budget.give_back(0, 60 * MB);
		kept = false;
	});
	EXPECT_TRUE(budget.take(&job, 90 * MB));
	EXPECT_FALSE(kept);
	EXPECT_FALSE(budget.take(&job, 20 * MB));
	EXPECT_FALSE(job.wait_for_more(never)) << "it had all that there is";
	budget.give_back(job.number(), 90 * MB);
}

TEST(MemoryBudget, WhoWasNeverRefusedDoesNotWait)
{
	MemoryBudget budget(100 * MB);
	JobMemory	job(&budget);

	EXPECT_FALSE(job.wait_for_more(never));
}

/* One large job that computes; the others come while it does. */
class MemoryBudgetTest : public testing::Test
{
protected:
	void SetUp() override { ASSERT_TRUE(budget_.take(&large_, 60 * MB)); }

	void TearDown() override
	{
		for (std::thread &thread : threads_)
			thread.join();
	}

	/* A job that is refused, waits, and then takes what it wanted. */
	void wait(char name, uint64_t bytes, int priority = 0)
	{
		waiting_++;
		threads_.emplace_back([this, name, bytes, priority]
		{
			JobMemory	job(&budget_, JobMemory::Of::Job, 0, priority);
			bool		seen = false;

			ASSERT_FALSE(budget_.take(&job, bytes));
			ASSERT_TRUE(job.wait_for_more([&]
			{
				asked_ += !seen;
				seen = true;
				return false;
			}));

			ASSERT_TRUE(budget_.take(&job, bytes)) << "it was kept for it";
			{
				std::lock_guard<std::mutex> lock(mutex_);

				order_ += name;
			}
			budget_.give_back(job.number(), bytes);
		});
		while (asked_.load() < waiting_)
			std::this_thread::yield();
	}

	std::string order()
	{
		std::lock_guard<std::mutex> lock(mutex_);

		return order_;
	}

	MemoryBudget budget_{100 * MB};
	JobMemory	large_{&budget_};
	std::vector<std::thread> threads_;
	std::atomic<int> asked_{0};
	int			waiting_ = 0;
	std::mutex	mutex_;
	std::string order_;
};

TEST_F(MemoryBudgetTest, WhoFindsNoRoomWaitsForItsTurn)
{
	wait('a', 50 * MB);
	wait('b', 45 * MB);
	EXPECT_EQ(order(), "");

	/* small ones go on, what is large has to wait as well, though it would fit */
	JobMemory	small(&budget_), newcomer(&budget_);

	EXPECT_TRUE(budget_.take(&small, MB));
	budget_.give_back(small.number(), MB);
	EXPECT_FALSE(budget_.take(&newcomer, 20 * MB));
	/* who has begun may end */
	EXPECT_TRUE(budget_.take(&large_, 30 * MB));
	budget_.give_back(large_.number(), 90 * MB);
	for (std::thread &thread : threads_)
		thread.join();
	threads_.clear();
	EXPECT_EQ(order(), "ab");
	EXPECT_EQ(budget_.used(), 0u);
	EXPECT_TRUE(budget_.take(&newcomer, 100 * MB)) << "nothing is kept for those that have gone";
	budget_.give_back(newcomer.number(), 100 * MB);
}

TEST_F(MemoryBudgetTest, TheHighestPriorityGoesFirstButForThoseThatHaveWaitedLong)
{
	wait('a', 60 * MB);
	wait('b', 60 * MB, 1);
	wait('c', 60 * MB);
	wait('d', 60 * MB, 5);
	wait('e', 60 * MB, -1);
	std::this_thread::sleep_for(MemoryBudget::AGING + std::chrono::milliseconds(100));
	wait('f', 60 * MB, 1);
	EXPECT_EQ(order(), "");
	budget_.give_back(large_.number(), 60 * MB);
	for (std::thread &thread : threads_)
		thread.join();
	threads_.clear();
	EXPECT_EQ(order(), "dbacfe");
	EXPECT_EQ(budget_.used(), 0u);
}

TEST(MemoryBudget, AJobHasABoundOfItsOwn)
{
	MemoryBudget budget(100 * MB);
	JobMemory	job(&budget, JobMemory::Of::Job, 20 * MB), other(&budget);

	budget.set_yield([] { ADD_FAILURE() << "what others keep is of no use"; });
	EXPECT_EQ(budget.most(&job, 10 * MB), 20 * MB);
	EXPECT_TRUE(budget.take(&job, 15 * MB));
	EXPECT_EQ(budget.left(&job), 5 * MB);
	EXPECT_FALSE(budget.take(&job, 6 * MB));
	EXPECT_FALSE(job.can_wait()) << "it had all that it may have";
	EXPECT_TRUE(budget.take(&job, 5 * MB));
	EXPECT_TRUE(budget.take(&other, 80 * MB));
	budget.give_back(job.number(), 20 * MB);
	budget.give_back(other.number(), 80 * MB);
}

TEST_F(MemoryBudgetTest, WhoIsToEndStopsWaiting)
{
	JobMemory	job(&budget_);
	int			asked = 0;

	ASSERT_FALSE(budget_.take(&job, 50 * MB));
	EXPECT_FALSE(job.wait_for_more([&] { return ++asked == 3; }));
	EXPECT_EQ(asked, 3);
	budget_.give_back(large_.number(), 60 * MB);

	JobMemory	next(&budget_);

	EXPECT_TRUE(budget_.take(&next, 100 * MB)) << "nobody waits any more";
	budget_.give_back(next.number(), 100 * MB);
}

TEST_F(MemoryBudgetTest, ClientsAreNotWaitedFor)
{
	JobMemory	job(&budget_), streams(&budget_);
	std::atomic<bool> stop{false};
	/* one that comes and goes does not make the other one's client quicker */
	std::thread stream([&]
	{
		while (!stop)
		{
			streams.wait_for_client(true);
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
			streams.wait_for_client(false);
		}
	});

	large_.wait_for_client(true);
	ASSERT_FALSE(budget_.take(&job, 50 * MB));

	const auto	since = std::chrono::steady_clock::now();

	EXPECT_FALSE(job.wait_for_more(never)) << "there will not be more";
	EXPECT_GE(std::chrono::steady_clock::now() - since, MemoryBudget::CLIENT_PATIENCE);
	stop = true;
	stream.join();
	large_.wait_for_client(false);
	ASSERT_FALSE(budget_.take(&job, 50 * MB));
	EXPECT_FALSE(job.wait_for_more([&]
	{
		return std::chrono::steady_clock::now() - since > 4 * MemoryBudget::CLIENT_PATIENCE;
	})) << "while it computes it is waited for";
	EXPECT_GE(std::chrono::steady_clock::now() - since, 4 * MemoryBudget::CLIENT_PATIENCE);
	EXPECT_TRUE(budget_.take(&job, 40 * MB));
	budget_.give_back(job.number(), 40 * MB);
	budget_.give_back(large_.number(), 60 * MB);
}

TEST_F(MemoryBudgetTest, WhatIsKeptForAJobIsNotKeptFromSmallOnesNorWhileItsClientIsAway)
{
	JobMemory	job(&budget_), small(&budget_), other(&budget_);

	ASSERT_FALSE(budget_.take(&job, 55 * MB));
	budget_.give_back(large_.number(), 60 * MB);
	ASSERT_TRUE(job.wait_for_more(never));
	ASSERT_TRUE(budget_.take(&job, 55 * MB));
	EXPECT_TRUE(budget_.take(&small, 64 * 1024));
	budget_.give_back(small.number(), 64 * 1024);
	EXPECT_FALSE(budget_.take(&other, 40 * MB)) << "it may yet need it";
	job.wait_for_client(true);
	EXPECT_TRUE(budget_.take(&other, 40 * MB));
	budget_.give_back(other.number(), 40 * MB);
	budget_.give_back(job.number(), 55 * MB);
}

TEST_F(MemoryBudgetTest, WhatStaysOfAJobThatWaitsIsNobodys)
{
	JobMemory	first(&budget_), second(&budget_);
	std::atomic<bool> began{false};

	/* an index that stays, since others use it */
	ASSERT_TRUE(budget_.take(&second, 20 * MB));

	const uint64_t index = second.number();

	ASSERT_FALSE(budget_.take(&first, 60 * MB));
	std::thread waits([&]
	{
		began = first.wait_for_more([&]
		{
			asked_ = 1;
			return false;
		});
	});
	/* the second is to come after it */
	while (asked_ == 0)
		std::this_thread::yield();
	ASSERT_FALSE(budget_.take(&second, 40 * MB));
	std::thread waits_too([&] { EXPECT_TRUE(second.wait_for_more([&] { return false; })); });
	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	budget_.give_back(large_.number(), 60 * MB);
	waits.join();
	EXPECT_TRUE(began) << "80 MB are left, and nobody waits for who waits";
	EXPECT_TRUE(budget_.take(&first, 60 * MB));
	budget_.give_back(first.number(), 60 * MB);
	first.wait_for_client(true);
	waits_too.join();
	budget_.give_back(index, 20 * MB);
	EXPECT_EQ(budget_.used(), 0u);
}

/* As a job that waits for something else does: it is not to find out step by step again what it needs. */
TEST_F(MemoryBudgetTest, WhoStartsOverWantsAsMuchAsHeHad)
{
	JobMemory	job(&budget_), other(&budget_);

	ASSERT_TRUE(budget_.take(&job, 35 * MB));
	budget_.give_back(job.number(), 35 * MB);
	job.start_over();
	ASSERT_TRUE(budget_.take(&other, 30 * MB));
	ASSERT_FALSE(budget_.take(&job, 11 * MB));

	std::thread waits([&] { EXPECT_TRUE(job.wait_for_more(never)); });

	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	budget_.give_back(other.number(), 30 * MB);
	waits.join();
	EXPECT_TRUE(budget_.take(&job, 11 * MB));
	EXPECT_TRUE(budget_.take(&job, 24 * MB)) << "it is kept for it";
	budget_.give_back(job.number(), 35 * MB);
	budget_.give_back(large_.number(), 60 * MB);
}

TEST_F(MemoryBudgetTest, WhereTheSystemHasNoneNobodyBeginsAgain)
{
	JobMemory	job(&budget_);

	ASSERT_TRUE(budget_.take(&job, 30 * MB));
	budget_.fail(&job, 30 * MB, ENOMEM);
	EXPECT_FALSE(job.wait_for_more(never));
	budget_.give_back(large_.number(), 60 * MB);
	EXPECT_EQ(budget_.used(), 0u);
}

TEST(MemoryBudget, ManySmallOnesAreWaitedForAsOneLargeOneIs)
{
	MemoryBudget budget(32 * MB);
	std::list<JobMemory> small;
	JobMemory	job(&budget);
	bool		asked = false;

	for (int i = 0; i < 4; i++)
	{
		small.emplace_back(&budget);
		ASSERT_TRUE(budget.take(&small.back(), 8 * MB));
	}
	ASSERT_FALSE(budget.take(&job, MB));
	EXPECT_TRUE(job.wait_for_more([&]
	{
		if (asked)
			return false;
		asked = true;
		budget.give_back(small.front().number(), 8 * MB);
		return false;
	}));
	EXPECT_TRUE(budget.take(&job, MB));
}

TEST(MemoryBudget, WhoNeedsLessThanTwiceDoesNotWaitForTwice)
{
	MemoryBudget budget(80 * MB);
	JobMemory	computes(&budget), ends(&budget), job(&budget);

	ASSERT_TRUE(budget.take(&computes, 9 * MB));
	ASSERT_TRUE(budget.take(&ends, 40 * MB));
	ASSERT_FALSE(budget.take(&job, 41 * MB));
	budget.give_back(ends.number(), 40 * MB);

	const auto	since = std::chrono::steady_clock::now();

	EXPECT_TRUE(job.wait_for_more(never));
	EXPECT_GE(std::chrono::steady_clock::now() - since, MemoryBudget::AMPLE_PATIENCE);
	EXPECT_TRUE(budget.take(&job, 41 * MB));
	/* and not at all for what there will never be */
	budget.give_back(job.number(), 41 * MB);
	EXPECT_FALSE(budget.take(&job, 81 * MB));
	EXPECT_FALSE(job.wait_for_more(never));
}

/* Sessions that keep what their jobs have made, for their next ones. */
class SessionsBudget : public testing::Test
{
protected:
	static void keep(JobMemory *session, uint64_t bytes)
	{
		session->begin_job();
		ASSERT_TRUE(session->budget()->take(session, bytes));
		session->end_job();
		session->begin_job();
	}

	MemoryBudget budget_{100 * MB};
	JobMemory	first_{&budget_, JobMemory::Of::Session}, second_{&budget_, JobMemory::Of::Session}, third_{&budget_, JobMemory::Of::Session};
};

TEST_F(SessionsBudget, WhatOthersKeepIsWaitedFor)
{
	keep(&first_, 60 * MB);
	second_.begin_job();
	EXPECT_FALSE(second_.can_wait()) << "it was not refused";
	EXPECT_EQ(budget_.left(&second_), 40 * MB);
	ASSERT_FALSE(budget_.take(&second_, 50 * MB));
	EXPECT_TRUE(second_.can_wait());

	std::thread waits([&] { EXPECT_TRUE(second_.wait_for_more(never)); });

	std::this_thread::sleep_for(3 * MemoryBudget::CLIENT_PATIENCE);
	/* what is small does not queue */
	third_.begin_job();
	EXPECT_TRUE(budget_.take(&third_, MB));
	budget_.give_back(third_.number(), MB);
	budget_.give_back(first_.number(), 60 * MB);
	waits.join();
	EXPECT_EQ(budget_.left(&third_), MemoryBudget::SMALL) << "all else is kept for who waited";
	EXPECT_TRUE(budget_.take(&second_, 50 * MB));
	second_.end_job();
	EXPECT_EQ(budget_.left(&third_), 50 * MB) << "until its job has ended";
	EXPECT_EQ(budget_.used(), 50 * MB);
	budget_.give_back(second_.number(), 50 * MB);
}

TEST_F(SessionsBudget, ASessionThatIsIdleIsNotWaitedFor)
{
	keep(&first_, 60 * MB);

	const auto	since = std::chrono::steady_clock::now();

	first_.end_job();
	second_.begin_job();
	ASSERT_FALSE(budget_.take(&second_, 50 * MB));
	EXPECT_FALSE(second_.wait_for_more(never));
	EXPECT_GE(std::chrono::steady_clock::now() - since, MemoryBudget::SESSION_PATIENCE);
	budget_.give_back(first_.number(), 60 * MB);
}

/* Its rows may be taken for hours. */
TEST_F(SessionsBudget, NorIsOneThatHandsOutRows)
{
	std::atomic<bool> stop{false};

	keep(&first_, 60 * MB);

	std::thread streams([&]
	{
		while (!stop)
		{
			first_.wait_for_client(true);
			std::this_thread::sleep_for(std::chrono::milliseconds(5));
			first_.wait_for_client(false);
		}
	});

	second_.begin_job();
	ASSERT_FALSE(budget_.take(&second_, 50 * MB));
	EXPECT_FALSE(second_.wait_for_more(never));
	stop = true;
	streams.join();
	/* its next job is another matter */
	first_.begin_job();
	ASSERT_FALSE(budget_.take(&second_, 50 * MB));

	int			asked = 0;

	EXPECT_FALSE(second_.wait_for_more([&] { return ++asked > 2 * MemoryBudget::CLIENT_PATIENCE / MemoryBudget::ASK; })) << "canceled";
	EXPECT_GT(asked, 2 * MemoryBudget::CLIENT_PATIENCE / MemoryBudget::ASK) << "and only then";
	budget_.give_back(first_.number(), 60 * MB);
}

TEST_F(SessionsBudget, NobodyWaitsForAmpleRoomThatWillNotBe)
{
	keep(&first_, MB);
	keep(&third_, 60 * MB);
	second_.begin_job();
	ASSERT_FALSE(budget_.take(&second_, 51 * MB));
	third_.begin_job();
	budget_.give_back(third_, 60 * MB);

	const auto	since = std::chrono::steady_clock::now();

	EXPECT_TRUE(second_.wait_for_more(never));
	EXPECT_LT(std::chrono::steady_clock::now() - since, MemoryBudget::AMPLE_PATIENCE);
	EXPECT_TRUE(budget_.take(&second_, 51 * MB));
	budget_.give_back(second_, 51 * MB);
	budget_.give_back(first_, MB);
}

/* What a device has refused is waited for likewise. */
TEST_F(SessionsBudget, WhatADeviceRefuses)
{
	second_.begin_job();
	EXPECT_FALSE(second_.can_wait_for(101 * MB)) << "it had all that there is";
	EXPECT_TRUE(second_.can_wait_for(50 * MB)) << "by now there is room";
	EXPECT_TRUE(second_.wait_for_more(never));
	second_.end_job();
	second_.begin_job();
	keep(&first_, 60 * MB);
	EXPECT_TRUE(second_.can_wait_for(50 * MB));

	std::thread waits([&] { EXPECT_TRUE(second_.wait_for_more(never)); });

	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	budget_.give_back(first_, 60 * MB);
	waits.join();
	EXPECT_GE(budget_.left(&second_), 50 * MB);
	EXPECT_LE(budget_.left(&third_), MemoryBudget::SMALL);
	second_.end_job();
	EXPECT_EQ(budget_.left(&third_), 100 * MB);
}

/* The first wants more than is free, but one behind it can end: both get what they want. */
TEST_F(SessionsBudget, WhoCanEndNeedNotBeFirst)
{
	JobMemory	last(&budget_, JobMemory::Of::Session);

	keep(&first_, 10 * MB);
	keep(&second_, 55 * MB);
	keep(&third_, 30 * MB);
	ASSERT_FALSE(budget_.take(&first_, 50 * MB));

	std::thread waits([&]
	{
		EXPECT_TRUE(first_.wait_for_more(never));
		EXPECT_TRUE(budget_.take(&first_, 50 * MB));
		budget_.give_back(first_, 60 * MB);
	});

	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	ASSERT_FALSE(budget_.take(&second_, 15 * MB));

	std::thread ends([&]
	{
		EXPECT_TRUE(second_.wait_for_more(never));
		EXPECT_TRUE(budget_.take(&second_, 15 * MB));
		budget_.give_back(second_, 70 * MB);
		second_.end_job();
	});

	std::this_thread::sleep_for(std::chrono::milliseconds(100));
	budget_.give_back(third_, 30 * MB);
	third_.end_job();
	ends.join();
	waits.join();
	EXPECT_EQ(budget_.used(), 0u);
}

/* But for another one that keeps too little. */
TEST_F(SessionsBudget, NorIsWhatCannotBeEnough)
{
	keep(&first_, 60 * MB);
	first_.end_job();
	keep(&third_, 10 * MB);
	std::this_thread::sleep_for(MemoryBudget::SESSION_PATIENCE + MemoryBudget::ASK);
	second_.begin_job();
	ASSERT_FALSE(budget_.take(&second_, 50 * MB));
	EXPECT_FALSE(second_.wait_for_more(never));
	budget_.give_back(first_.number(), 60 * MB);
	budget_.give_back(third_.number(), 10 * MB);
}

TEST_F(SessionsBudget, WhoKeepsSomethingGoesFirst)
{
	std::atomic<int> asked{0};
	std::mutex	mutex;
	std::string order;
	const auto	wait = [&](JobMemory *session, char name, uint64_t bytes)
	{
		return std::thread([&, session, name, bytes, seen = false]() mutable
		{
			ASSERT_TRUE(session->wait_for_more([&]
			{
				asked += !seen;
				seen = true;
				return false;
			}));
			{
				std::lock_guard<std::mutex> lock(mutex);

				order += name;
			}
			budget_.give_back(session->number(), bytes);
			session->end_job();
		});
	};

	keep(&first_, 60 * MB);
	keep(&second_, 30 * MB);
	third_.begin_job();
	ASSERT_FALSE(budget_.take(&third_, 70 * MB));

	std::thread later = wait(&third_, 't', 0);

	while (asked < 1)
		std::this_thread::yield();
	ASSERT_FALSE(budget_.take(&second_, 20 * MB));

	std::thread sooner = wait(&second_, 's', 30 * MB);

	while (asked < 2)
		std::this_thread::yield();
	budget_.give_back(first_.number(), 60 * MB);
	sooner.join();
	later.join();
	EXPECT_EQ(order, "st");
	EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(SessionsBudget, OfThoseThatWaitForEachOtherOneIsRefused)
{
	keep(&first_, 50 * MB);
	keep(&second_, 40 * MB);
	ASSERT_FALSE(budget_.take(&first_, 30 * MB));

	std::atomic<bool> refused{false};
	std::thread waits([&]
	{
		refused = !first_.wait_for_more(never);
		/* its query runs by other means, and drops what it kept */
		budget_.give_back(first_.number(), 50 * MB);
		first_.end_job();
	});

	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	EXPECT_FALSE(refused) << "the second still computes";
	ASSERT_FALSE(budget_.take(&second_, 30 * MB));
	EXPECT_TRUE(second_.wait_for_more(never));
	EXPECT_TRUE(refused);
	waits.join();
	EXPECT_TRUE(budget_.take(&second_, 30 * MB));
	budget_.give_back(second_.number(), 70 * MB);
	/* and who alone wants more than there is need not wait */
	ASSERT_FALSE(budget_.take(&third_, 101 * MB));
	EXPECT_FALSE(third_.wait_for_more(never));
}

TEST_F(MemoryBudgetTest, WhatAJobFreesOfOthersIsNotItsOwn)
{
	JobMemory	job(&budget_);

	/* an index that an earlier job made goes, by this one's hand */
	ASSERT_TRUE(budget_.take(nullptr, 30 * MB));
	budget_.give_back(0, 30 * MB);
	EXPECT_EQ(budget_.used(), 60 * MB);
	EXPECT_TRUE(budget_.take(&job, 40 * MB));
	EXPECT_FALSE(budget_.take(&job, MB));
	budget_.give_back(job.number(), 40 * MB);
	budget_.give_back(large_.number(), 60 * MB);
}
