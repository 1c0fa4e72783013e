/* What jobs take, learned from those that ran (engine/estimates.h), and the choice of an engine. */
#include <gtest/gtest.h>

#include "engine/cost.h"
#include "engine/estimates.h"

using namespace gpuvm;

TEST(Estimates, NothingIsKnownAtFirst)
{
	Estimates	estimates;

	EXPECT_DOUBLE_EQ(estimates.factor(1, Way::Cpu), 1);
	EXPECT_DOUBLE_EQ(estimates.factor(1, Way::Device), 1);
}

TEST(Estimates, AProgramCorrectsItsOwnOnTheEngineThatRanIt)
{
	Estimates	estimates;

	estimates.observe(1, Way::Cpu, 300'000, 118'000'000);
	EXPECT_NEAR(estimates.factor(1, Way::Cpu), 118.0 / 0.3, 1);
	EXPECT_DOUBLE_EQ(estimates.factor(1, Way::Device), 1);

	/* one that was slow for once is forgiven by the next ones */
	for (int i = 0; i < 20; i++)
		estimates.observe(1, Way::Cpu, 300'000, 600'000);
	EXPECT_NEAR(estimates.factor(1, Way::Cpu), 2, 0.1);
}

TEST(Estimates, AllCorrectThoseThatHaveNotRun)
{
	Estimates	estimates;

	estimates.observe(1, Way::Cpu, 1, 1000);
	EXPECT_LT(estimates.factor(2, Way::Cpu), 1.1) << "one says little of others";
	for (uint64_t program = 1; program <= 200; program++)
	{
		estimates.observe(program, Way::Cpu, 1000, 2000);
		estimates.observe(program, Way::Device, 1000, 500);
	}
	EXPECT_NEAR(estimates.factor(1000, Way::Cpu), 2, 0.1);
	EXPECT_NEAR(estimates.factor(1000, Way::Device), 0.5, 0.03);
}

TEST(Estimates, AnEngineThatWasPassedOverForLongIsTriedAgainByOneJob)
{
	Estimates	estimates;
	const auto	pass_over = [&](int runs)
	{
		for (int i = 0; i < runs; i++)
			estimates.observe(1, Way::Cpu, 1000, 5000);
	};

	estimates.observe(1, Way::Device, 1000, 20'000);
	pass_over(63);
	EXPECT_NEAR(estimates.factor(1, Way::Device), 20, 0.01);
	pass_over(1);
	EXPECT_LT(estimates.factor(1, Way::Device), 1.2);
	EXPECT_LT(estimates.factor(1, Way::Device), 1.2) << "to ask is not to try";
	estimates.begin(1, Way::Device);
	EXPECT_NEAR(estimates.factor(1, Way::Device), 20, 0.01) << "while it is tried others do not";

	/* still slow: it takes eight times as long until the next */
	estimates.observe(1, Way::Device, 1000, 30'000);
	EXPECT_NEAR(estimates.factor(1, Way::Device), 30, 0.01);
	pass_over(511);
	EXPECT_NEAR(estimates.factor(1, Way::Device), 30, 0.01);
	pass_over(1);
	EXPECT_LT(estimates.factor(1, Way::Device), 1.2);
	/* quick: what was seen before is forgotten, and how long it was passed over when that goes on */
	estimates.begin(1, Way::Device);
	estimates.observe(1, Way::Device, 1000, 1000);
	EXPECT_NEAR(estimates.factor(1, Way::Device), 1, 0.01);
	estimates.observe(1, Way::Device, 1000, 9000);
	pass_over(64);
	EXPECT_LT(estimates.factor(1, Way::Device), 1.2);
}

TEST(Estimates, CopyingIsAWayOfItsOwnThatIsPassedOverLikewise)
{
	Estimates	estimates;

	estimates.observe(1, Way::DeviceCopies, 1000, 20'000);
	EXPECT_NEAR(estimates.factor(1, Way::DeviceCopies), 20, 0.01);
	EXPECT_NEAR(estimates.factor(1, Way::Device), 1, 0.01);
	for (int i = 0; i < 64; i++)
		estimates.observe(1, Way::Cpu, 1000, 9000);
	EXPECT_LT(estimates.factor(1, Way::DeviceCopies), 1.2);
	for (int i = 0; i < 64; i++)
		estimates.observe(1, Way::DeviceCopies, 1000, 1000);
	EXPECT_LT(estimates.factor(1, Way::Cpu), 1.2);
}

TEST(Estimates, ProgramsOfOnePlaceDoNotEraseEachOther)
{
	Estimates	estimates;

	for (int i = 0; i < 100; i++)
	{
		estimates.observe(1, Way::Cpu, 1000, 8000);
		estimates.observe(1 + Estimates::PROGRAMS, Way::Cpu, 1000, 1000);
	}
	EXPECT_NEAR(estimates.factor(1, Way::Cpu), 8, 0.01);
	EXPECT_NEAR(estimates.factor(1 + Estimates::PROGRAMS, Way::Cpu), 1, 0.01);
	EXPECT_LT(estimates.factor(2, Way::Cpu), 1.1);

	/* many more than there are places: the oldest go */
	for (uint64_t program = 2; program < 4 * Estimates::PROGRAMS; program++)
		estimates.observe(program * 0x9e3779b97f4a7c15, Way::Cpu, 1000, 1000);
	EXPECT_NEAR(estimates.factor(1, Way::Cpu), estimates.factor(3, Way::Cpu), 0.01);
}

TEST(Estimates, WhatTookNoTimeTeachesNothing)
{
	Estimates	estimates;

	estimates.observe(1, Way::Cpu, 0, 1000);
	estimates.observe(1, Way::Cpu, 1000, 0);
	EXPECT_DOUBLE_EQ(estimates.factor(1, Way::Cpu), 1);
}

TEST(Estimates, JobsKnowWhetherTheyWereAlone)
{
	EngineLoad	load;
	RunsOnEngine first(&load);

	EXPECT_TRUE(first.alone());
	{
		RunsOnEngine second(&load);

		EXPECT_FALSE(second.alone());
	}
	EXPECT_FALSE(first.alone()) << "not all the time";
	EXPECT_EQ(load.running.load(), 1u);
}

TEST(Estimates, OthersAddTheirWorkButNoMoreThanOnesOwnEach)
{
	EngineLoad	load;
	RunsOnEngine heavy(&load, 1'000'000);

	EXPECT_DOUBLE_EQ(heavy.added(), 0);
	{
		RunsOnEngine light(&load, 1000), another(&load, 5000);

		EXPECT_DOUBLE_EQ(light.added(), 2000) << "of both others as much as its own";
		EXPECT_DOUBLE_EQ(another.added(), 10000);
		EXPECT_DOUBLE_EQ(heavy.added(), 6000) << "of both others all";
		EXPECT_DOUBLE_EQ(load.added(2'000'000), 1'006'000);
		EXPECT_DOUBLE_EQ(load.added(0), 0) << "what does not keep the engine busy is not slowed down";

		RunsOnEngine forced(&load);

		EXPECT_DOUBLE_EQ(heavy.added(), 1'006'000) << "of one of which nothing is known as much as its own";
		EXPECT_DOUBLE_EQ(forced.added(), 0);
	}
	EXPECT_DOUBLE_EQ(heavy.added(), 0);
	EXPECT_EQ(load.work.load(), 1'000'000u);
}

/* ---- the choice --------------------------------------------------------------------- */

TEST(EngineChoice, WhatIsClearlyBetterIsTakenHoweverBusy)
{
	EXPECT_TRUE(device_is_better(30e6, 30e6, 1e6, 100e6));
	EXPECT_FALSE(device_is_better(20e3, 20e6, 60e3, 60e3));
}

TEST(EngineChoice, WhereThereIsLittleBetweenThemTheSoonerIsTaken)
{
	EXPECT_TRUE(device_is_better(1.5e6, 1.5e6, 1e6, 1e6));
	EXPECT_FALSE(device_is_better(1.5e6, 1.5e6, 1e6, 3e6));
	EXPECT_FALSE(device_is_better(1e6, 1e6, 1.5e6, 1.5e6));
	EXPECT_TRUE(device_is_better(1e6, 4e6, 1.5e6, 1.5e6));
}

TEST(EngineChoice, TheProcessorsTimeIsOfRowsBytesOperationsAndThreads)
{
	const uint64_t cpu = cpu_estimate(1'000'000, 8'000'000, 10, false, 4);

	EXPECT_LT(cpu, cpu_estimate(1'000'000, 8'000'000, 10, true, 4));
	EXPECT_LT(cpu, cpu_estimate(1'000'000, 16'000'000, 10, false, 4));
	EXPECT_LT(cpu, cpu_estimate(1'000'000, 8'000'000, 20, false, 4));
	EXPECT_LT(cpu, cpu_estimate(1'000'000, 8'000'000, 10, false, 2));
}
