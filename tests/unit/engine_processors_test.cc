/* Whose turn it is to compute (engine/processors.h). */
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/processors.h"

using namespace gpuvm;
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

	void wait(char name, nanoseconds used)
	{
		waiting_++;

		threads_.emplace_back([this, name, used]
		{
			SessionShare share{used};
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
	wait('c', seconds(3));
	wait('a', seconds(1));
	wait('b', seconds(2));
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
	wait('a', seconds(1));
	wait('b', seconds(1));
	wait('c', seconds(1));
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
