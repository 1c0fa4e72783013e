/* Whose turn it is to compute (engine/processors.h). */
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/processors.h"

using namespace gpuvm;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

static bool
never()
{
	return false;
}

/* Sessions that wait for the only place, in the order of their creation. */
class ProcessorsTest : public testing::Test
{
protected:
	void SetUp() override { ASSERT_TRUE(processors_.take(&holder_, never)); }

	void TearDown() override
	{
		for (std::thread &thread : threads_)
			thread.join();
	}

	void wait(char name, SessionShare share)
	{
		waiting_++;

		threads_.emplace_back([this, name, share]() mutable
		{
			bool		seen = false;

			ASSERT_TRUE(processors_.take(&share, [this, &seen]
			{
				if (!seen)
					asked_++;
				seen = true;
				return false;
			}));
			order_ += name;
			processors_.leave(&share, seconds(1));
		});
		/* it has asked whether it is still to wait, so it waits */
		while (asked_.load() < waiting_)
			std::this_thread::yield();
	}

	Processors	processors_{1};
	SessionShare holder_;
	std::vector<std::thread> threads_;
	int			waiting_ = 0;
	std::atomic<int> asked_{0};
	std::string order_;			/* by who has the place */
};

TEST_F(ProcessorsTest, WhoHasHadLeastIsNext)
{
	wait('c', {seconds(3)});
	wait('a', {seconds(1)});
	wait('b', {seconds(2)});
	EXPECT_TRUE(processors_.wanted());
	processors_.leave(&holder_, seconds(9));
	TearDown();
	threads_.clear();
	EXPECT_EQ(order_, "abc");
	EXPECT_FALSE(processors_.wanted());
	EXPECT_EQ(holder_.used, seconds(9));
}

TEST_F(ProcessorsTest, OfEqualOnesTheLastToComeIsNext)
{
	wait('a', {seconds(1)});
	wait('b', {seconds(1)});
	wait('c', {seconds(1)});
	processors_.leave(&holder_, seconds(1));
	TearDown();
	threads_.clear();
	EXPECT_EQ(order_, "cba");
}

/* Who comes back after a long time begins where the others are. */
TEST_F(ProcessorsTest, NobodySavesUp)
{
	SessionShare idle;

	processors_.leave(&holder_, seconds(60));
	ASSERT_TRUE(processors_.take(&holder_, never));
	processors_.leave(&holder_, seconds(1));
	ASSERT_TRUE(processors_.take(&idle, never));
	EXPECT_EQ(idle.used, seconds(60));
	processors_.leave(&idle, seconds(0));
}

TEST_F(ProcessorsTest, WhoIsCanceledWaitsNoLonger)
{
	SessionShare share;

	EXPECT_FALSE(processors_.take(&share, [] { return true; }));
	EXPECT_FALSE(processors_.wanted());
	processors_.leave(&holder_, seconds(0));
	EXPECT_TRUE(processors_.take(&share, never));
	processors_.leave(&share, seconds(0));
}

/* An interrupted job goes on before its role's others, and no role waits for another's turn. */
TEST_F(ProcessorsTest, AnotherRoleInterrupts)
{
	holder_.role = 1;
	wait('a', {seconds(0), 1});
	EXPECT_FALSE(processors_.had(&holder_, seconds(9)));
	wait('i', {seconds(5), 1, DEFAULT_SHARE, true});
	wait('b', {seconds(0), 2});
	EXPECT_TRUE(processors_.had(&holder_, seconds(0)));
	EXPECT_TRUE(holder_.interrupted);
	processors_.leave(&holder_, seconds(0));
	TearDown();
	threads_.clear();
	EXPECT_EQ(order_, "bia");
}

/* A role has what it did not use, but not much of it. */
TEST_F(ProcessorsTest, ARoleHasLittleCredit)
{
	SessionShare idle{seconds(0), 2};

	holder_.role = 1;
	processors_.leave(&holder_, seconds(60));
	ASSERT_TRUE(processors_.take(&holder_, never));
	processors_.leave(&holder_, seconds(0));
	ASSERT_TRUE(processors_.take(&idle, never));
	wait('a', {seconds(0), 1});
	EXPECT_FALSE(processors_.had(&idle, Processors::CREDIT + Processors::AHEAD));
	EXPECT_TRUE(processors_.had(&idle, milliseconds(1)));
	processors_.leave(&idle, seconds(0));
}

/* Helpers' time is the role's, and where it has had less they go. */
TEST_F(ProcessorsTest, HelpersCount)
{
	SessionShare other{seconds(0), 2};

	holder_.role = 1;
	EXPECT_FALSE(processors_.behind(&holder_, &other));
	EXPECT_FALSE(processors_.behind(&other, &holder_));
	processors_.helped(&holder_, milliseconds(60));
	EXPECT_TRUE(processors_.behind(&other, &holder_));
	EXPECT_FALSE(processors_.behind(&holder_, &other));
	EXPECT_EQ(holder_.used, seconds(0));
	wait('a', other);
	EXPECT_TRUE(processors_.had(&holder_, seconds(0)));
	processors_.leave(&holder_, seconds(0));
}

/* A role that is not weighted as others: what its sessions have is by that. */
TEST_F(ProcessorsTest, TimeCountsByWeight)
{
	holder_.role = 1;
	holder_.weight = 10 * DEFAULT_SHARE;
	wait('a', {seconds(0), 2});
	EXPECT_FALSE(processors_.had(&holder_, 10 * Processors::AHEAD));
	EXPECT_TRUE(processors_.had(&holder_, milliseconds(10)));
	EXPECT_EQ(holder_.used, 10 * Processors::AHEAD + milliseconds(10));
	processors_.leave(&holder_, seconds(0));
}

/* Sessions that compute turn by turn, for a simulated second each, and come back at once. */
class RolesTest : public testing::Test
{
protected:
	void add(uint32_t role, uint32_t weight, int sessions)
	{
		for (int i = 0; i < sessions; i++)
			threads_.emplace_back([this, role, weight] { compute(role, weight); });
	}

	/* Helpers of a job of the role's, which needs no place. */
	void help(uint32_t role, nanoseconds time)
	{
		SessionShare share{seconds(0), role, DEFAULT_SHARE};

		processors_.helped(&share, time);
	}

	/* How many of so many turns each role gets. */
	std::map<uint32_t, int> turns(int n)
	{
		std::unique_lock<std::mutex> lock(mutex_);
		std::map<uint32_t, int> had;

		/* the place is the test's own until all wait */
		moved_.wait(lock, [this] { return waiting_ == static_cast<int>(threads_.size()); });
		lock.unlock();
		processors_.leave(&nobody_, seconds(0));
		lock.lock();
		for (int i = 0; i < n; i++)
		{
			moved_.wait(lock, [this] { return has_place_ != 0 && waiting_ == static_cast<int>(threads_.size()) - 1; });
			had[has_place_]++;
			has_place_ = 0;
			go_on_ = true;
			moved_.notify_all();
		}
		over_ = true;
		moved_.notify_all();
		lock.unlock();
		for (std::thread &thread : threads_)
			thread.join();
		return had;
	}

	void SetUp() override { ASSERT_TRUE(processors_.take(&nobody_, never)); }

private:
	void compute(uint32_t role, uint32_t weight)
	{
		SessionShare share{seconds(0), role, weight};

		for (;;)
		{
			bool		counted = false;
			const bool	taken = processors_.take(&share, [this, &counted]
			{
				std::lock_guard<std::mutex> lock(mutex_);

				waiting_ += !counted;
				counted = true;
				moved_.notify_all();
				return over_;
			});

			std::unique_lock<std::mutex> lock(mutex_);

			waiting_ -= counted;
			if (taken && !over_)
			{
				has_place_ = role;
				moved_.notify_all();
				moved_.wait(lock, [this] { return go_on_ || over_; });
				go_on_ = false;
			}
			if (over_)
			{
				lock.unlock();
				if (taken)
					processors_.leave(&share, seconds(0));
				return;
			}
			lock.unlock();
			processors_.leave(&share, seconds(1));
		}
	}

	Processors	processors_{1};
	SessionShare nobody_;
	std::vector<std::thread> threads_;
	std::mutex	mutex_;
	std::condition_variable moved_;
	int			waiting_ = 0;
	uint32_t	has_place_ = 0;	/* its role */
	bool		go_on_ = false;
	bool		over_ = false;
};

/* However many sessions a role has. */
TEST_F(RolesTest, RolesShareEqually)
{
	add(1, DEFAULT_SHARE, 6);
	add(2, DEFAULT_SHARE, 2);

	auto		had = turns(40);

	EXPECT_NEAR(had[1], 20, 1);
	EXPECT_NEAR(had[2], 20, 1);
}

TEST_F(RolesTest, WhatARoleHadWhileNobodyWaitedCostsItLittle)
{
	help(1, seconds(600));
	add(1, DEFAULT_SHARE, 2);
	add(2, DEFAULT_SHARE, 6);

	auto		had = turns(40);

	/* four turns less than the other one's, not six hundred */
	EXPECT_NEAR(had[1], 18, 2);
	EXPECT_NEAR(had[2], 22, 2);
}

TEST_F(RolesTest, RolesShareByWeight)
{
	add(1, DEFAULT_SHARE, 6);
	add(2, 3 * DEFAULT_SHARE, 2);

	auto		had = turns(40);

	EXPECT_NEAR(had[1], 10, 1);
	EXPECT_NEAR(had[2], 30, 1);
}

/* Small jobs never ask for a place; larger ones do, and their place is free when they have ended. */
TEST_F(ProcessorsTest, ASmallJobNeedsNoPlace)
{
	SessionShare share;
	int			asked = 0;
	const auto	ended = [&asked] { return ++asked > 0; };

	{
		Turn		turn(&processors_, &share);

		EXPECT_EQ(turn.look(ended), nanoseconds(0));
		EXPECT_EQ(asked, 0);

		const auto	end = std::chrono::steady_clock::now() + 100 * Processors::FREE;

		while (asked == 0 && std::chrono::steady_clock::now() < end)
			(void) turn.look(ended);
		EXPECT_EQ(asked, 1);
		processors_.leave(&holder_, seconds(0));
		(void) turn.look(ended);
		EXPECT_FALSE(processors_.take(&share, [] { return true; }));
	}
	EXPECT_TRUE(processors_.take(&share, never));
	processors_.leave(&share, seconds(0));
}
