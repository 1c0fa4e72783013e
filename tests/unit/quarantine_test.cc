/* The table of programs that have ended gpuvmd; who is to blame; the handler that says so. */
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "engine/blame.h"
#include "engine/worker_pool.h"
#include "pg/oom_kills.h"
#include "pg/quarantine_table.h"

using namespace gpuvm;

namespace {

constexpr Microseconds SECOND = 1000000;
constexpr Microseconds MINUTE = 60 * SECOND;
constexpr Microseconds DAY = 24 * 60 * MINUTE;
constexpr Microseconds START = 800 * DAY;

BlamedCrash
of(uint64_t program, Device device = Device::Cpu)
{
	return {program, device, SIGSEGV};
}

const QuarantineEntry *
entry_of(const QuarantineTable &table, uint64_t program)
{
	for (const QuarantineEntry &entry : table)
	{
		if (entry.in_use() && entry.program() == program)
			return &entry;
	}
	return nullptr;
}

}  // namespace

/* ---- the table ---------------------------------------------------------------- */

TEST(Quarantine, TheSecondCrashBars)
{
	auto		table = std::make_unique<QuarantineTable>();

	EXPECT_TRUE(table->empty());
	table->count_crash(of(1), START);
	EXPECT_FALSE(table->empty());
	EXPECT_FALSE(table->barred(1, Device::Cpu, START));
	table->count_crash(of(1), START + SECOND);
	EXPECT_TRUE(table->barred(1, Device::Cpu, START + SECOND));
	EXPECT_TRUE(table->barred(1, Device::Cpu, START + MINUTE));
	EXPECT_FALSE(table->barred(1, Device::Cpu, START + SECOND + MINUTE));
	EXPECT_FALSE(table->barred(2, Device::Cpu, START + SECOND));
	/* the engines apart */
	EXPECT_FALSE(table->barred(1, Device::Cuda, START + SECOND));
	table->count_crash(of(1, Device::Cuda), START + SECOND);
	EXPECT_FALSE(table->barred(1, Device::Cuda, START + SECOND));
}

TEST(Quarantine, BarsDouble)
{
	auto		table = std::make_unique<QuarantineTable>();
	Microseconds now = START;
	Microseconds wanted = MINUTE;

	table->count_crash(of(7), now);
	for (int i = 0; i < 40; i++)
	{
		table->count_crash(of(7), now);
		EXPECT_TRUE(table->barred(7, Device::Cpu, now + wanted - 1)) << i;
		EXPECT_FALSE(table->barred(7, Device::Cpu, now + wanted)) << i;
		now += wanted;
		wanted = std::min(2 * wanted, DAY);
	}
	EXPECT_EQ(wanted, DAY);
	EXPECT_EQ(QuarantineTable::bar(UINT32_MAX), DAY);
}

TEST(Quarantine, RunsForget)
{
	auto		table = std::make_unique<QuarantineTable>();
	Microseconds now = START;

	/* one crash is not forgotten by runs: every second one might crash */
	table->count_crash(of(7), now);
	table->count_run(7, Device::Cpu, now);
	EXPECT_EQ(entry_of(*table, 7)->crashes, 1u);
	table->count_crash(of(7), now);
	table->count_crash(of(7), now);
	/* nor while it is barred: what ends then began before */
	table->count_run(7, Device::Cpu, now);
	EXPECT_EQ(entry_of(*table, 7)->crashes, 3u);
	now += 2 * MINUTE;
	EXPECT_TRUE(table->remembers_bar(7, Device::Cpu, now));
	table->count_run(7, Device::Cuda, now);
	table->count_run(8, Device::Cpu, now);
	EXPECT_EQ(entry_of(*table, 7)->crashes, 3u);
	table->count_run(7, Device::Cpu, now);
	EXPECT_EQ(entry_of(*table, 7)->crashes, 2u);
	table->count_crash(of(7), now);
	EXPECT_TRUE(table->barred(7, Device::Cpu, now + 2 * MINUTE - 1));
	now += 2 * MINUTE;
	for (int i = 0; i < 3; i++)
		table->count_run(7, Device::Cpu, now);
	EXPECT_EQ(entry_of(*table, 7), nullptr);
	EXPECT_TRUE(table->empty());
}

TEST(Quarantine, ADayForgets)
{
	auto		table = std::make_unique<QuarantineTable>();

	table->count_crash(of(7), START);
	table->count_crash(of(7), START + DAY + 1);
	EXPECT_EQ(entry_of(*table, 7)->crashes, 1u);
	table->count_crash(of(7), START + 2 * DAY);
	EXPECT_TRUE(table->barred(7, Device::Cpu, START + 2 * DAY));
	/* a day of its bar is none without a crash */
	for (int i = 0; i < 12; i++)
		table->count_crash(of(7), START + 2 * DAY);
	table->count_crash(of(7), START + 3 * DAY + MINUTE);
	EXPECT_EQ(entry_of(*table, 7)->crashes, 15u);
}

TEST(Quarantine, TheOldestIsReplaced)
{
	auto		table = std::make_unique<QuarantineTable>();
	const uint64_t full = QuarantineTable::ENTRIES;

	/* the first is barred for longer than the others' last crashes are ago */
	table->count_crash(of(1), START);
	table->count_crash(of(1), START);
	for (uint64_t i = 2; i <= full; i++)
		table->count_crash(of(i), START + static_cast<Microseconds>(i));
	table->count_crash(of(full + 1), START + SECOND);
	EXPECT_EQ(entry_of(*table, 2), nullptr);
	EXPECT_NE(entry_of(*table, 1), nullptr);
	EXPECT_NE(entry_of(*table, 3), nullptr);
	ASSERT_NE(entry_of(*table, full + 1), nullptr);
	EXPECT_EQ(entry_of(*table, full + 1)->crashes, 1u);
	EXPECT_TRUE(table->barred(1, Device::Cpu, START + SECOND));
	EXPECT_EQ(table->forgive(0), static_cast<int>(full));
	EXPECT_TRUE(table->empty());
}

TEST(Quarantine, Forgives)
{
	auto		table = std::make_unique<QuarantineTable>();

	for (Device device : {Device::Cpu, Device::Cpu, Device::Cuda, Device::Cuda})
		table->count_crash(of(5, device), START);
	table->count_crash(of(6), START);
	EXPECT_EQ(table->forgive(4), 0);
	EXPECT_TRUE(table->barred(5, Device::Cuda, START));
	EXPECT_EQ(table->forgive(5), 2);
	EXPECT_FALSE(table->barred(5, Device::Cpu, START));
	EXPECT_FALSE(table->barred(5, Device::Cuda, START));
	EXPECT_EQ(table->forgive(0), 1);
}

/* ---- who is to blame ------------------------------------------------------------ */

class Blames : public ::testing::Test
{
protected:
	Blames()
	{
		header = new (mmap(nullptr, sizeof(ArenaHeader), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) ArenaHeader();
	}

	~Blames() override { munmap(static_cast<void *>(header), sizeof(ArenaHeader)); }

	/* What comes of a gpuvmd that does so. */
	template <typename F>
	BlamedCrash after(F crash, bool short_of_memory = false)
	{
		pid_t		pid = fork();
		int			status = 0;

		if (pid == 0)
		{
			CrashStack	stack;

			blame_install(header);
			crash();
			_exit(0);
		}
		EXPECT_EQ(waitpid(pid, &status, 0), pid);
		signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		return blame_crash(*header, signal, WIFEXITED(status) ? WEXITSTATUS(status) : 0, short_of_memory);
	}

	ArenaHeader *header;
	int			signal = 0;
};

static void
crash_by(int signal)
{
	(void) raise(signal);
}

TEST_F(Blames, TheCrashingThread)
{
	for (int how : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
	{
		header->blame.state.store(0);
		BlamedCrash crash = after([&] { RunsProgram runs(header, 17); crash_by(how); });

		EXPECT_EQ(signal, how);
		EXPECT_EQ(crash.program, 17u) << how;
		EXPECT_EQ(crash.cause, static_cast<uint32_t>(how));
		EXPECT_EQ(crash.device, Device::Cpu);
	}
	header->blame.state.store(0);
	EXPECT_EQ(after([&] { RunsProgram runs(header, 17); abort(); }).program, 17u);
	EXPECT_EQ(signal, SIGABRT);
}

/* The kernel sends it, and it comes again if the handler returns. */
TEST_F(Blames, ARealFault)
{
	void	   *nowhere = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	BlamedCrash crash = after([&]
	{
		RunsProgram runs(header, 17);
		RunsOnDevice at_work(header);

		*static_cast<volatile int *>(nowhere) = 1;
	});

	EXPECT_EQ(signal, SIGSEGV);
	EXPECT_EQ(crash.program, 17u);
	EXPECT_EQ(crash.device, Device::Cuda);
}

TEST_F(Blames, NobodyWithoutEvidence)
{
	EXPECT_EQ(after([&] { crash_by(SIGSEGV); }).program, 0u) << "a thread that runs nothing";
	EXPECT_EQ(after([&] { RunsProgram(header, 17); crash_by(SIGSEGV); }).program, 0u) << "nothing any more";
	EXPECT_EQ(after([&] { RunsProgram runs(header, 17); (void) kill(getpid(), SIGSEGV); pause(); }).program, 0u) << "sent to the process";
	EXPECT_EQ(signal, SIGSEGV);
	EXPECT_EQ(after([&] { RunsProgram runs(header, 17); crash_by(SIGKILL); }).program, 0u) << "killed";
	header->running.count.store(0);
	header->running.hashes.store(0);
	/* what was written does not fit the end */
	(void) after([&] { RunsProgram runs(header, 17); crash_by(SIGSEGV); });
	for (int other : {SIGKILL, SIGBUS, SIGTERM, 0})
		EXPECT_EQ(blame_crash(*header, other, ENGINE_EXIT_DEVICE, false).program, 0u) << other;
	EXPECT_EQ(blame_crash(*header, SIGSEGV, 0, false).program, 17u);
	/* what is no hash, for it would have the key of a free entry */
	header->blame.program.store(~uint64_t{0});
	EXPECT_EQ(blame_crash(*header, SIGSEGV, 0, false).program, 0u);
}

TEST_F(Blames, OneThatTheKernelKilledForMemory)
{
	const auto	killed = [] { crash_by(SIGKILL); };
	BlamedCrash crash = after([&] { RunsProgram runs(header, 17); killed(); }, true);

	EXPECT_EQ(crash.program, 17u);
	EXPECT_EQ(crash.cause, CAUSE_OUT_OF_MEMORY);
	EXPECT_EQ(header->running.count.load(), 1u);
	/* beside another one */
	EXPECT_EQ(after([&] { RunsProgram runs(header, 18); killed(); }, true).program, 0u);
	EXPECT_EQ(header->running.count.load(), 2u);
	EXPECT_EQ(blame_crash(*header, SIGSEGV, 0, true).program, 0u);
}

TEST_F(Blames, ADevice)
{
	const auto	fault = [&] { blame_device(header); _exit(ENGINE_EXIT_DEVICE); };
	BlamedCrash crash = after([&] { RunsProgram runs(header, 17); RunsOnDevice at_work(header); fault(); });

	EXPECT_EQ(crash.program, 17u);
	EXPECT_EQ(crash.device, Device::Cuda);
	EXPECT_EQ(crash.cause, CAUSE_DEVICE);
	EXPECT_EQ(blame_crash(*header, 0, 1, false).program, 0u) << "another exit code";
	header->blame.state.store(0);
	EXPECT_EQ(after([&] { RunsProgram runs(header, 18); RunsOnDevice at_work(header); fault(); }).program, 0u) << "one of two";
	header->on_devices.count.store(0);
	EXPECT_EQ(after([&] { RunsProgram runs(header, 18); fault(); }).program, 0u) << "none was there";
}

TEST_F(Blames, AHelper)
{
	struct Task final : PoolTask
	{
		void help() noexcept override { crash_by(SIGSEGV); }
	};

	EXPECT_EQ(after([&]
	{
		WorkerPool	pool(1);
		Task		task;
		RunsProgram runs(header, 17);

		pool.invite(&task, 1);
		pause();
	}).program, 17u);
}

TEST_F(Blames, CountsWhatRuns)
{
	{
		RunsProgram one(header, 17);
		RunsProgram none(header, 0);

		EXPECT_EQ(header->running.alone(), 17u);
		RunsProgram two(header, 18);
		EXPECT_EQ(header->running.alone(), 0u);
		EXPECT_EQ(works_for().program, 18u);
	}
	EXPECT_EQ(header->running.count.load(), 0u);
	EXPECT_EQ(header->running.hashes.load(), 0u);
	EXPECT_EQ(works_for().program, 0u);
}

/* ---- what the kernel counts ------------------------------------------------------- */

TEST(OomKills, AreReadFromWhereTheyStand)
{
	char		path[] = "/tmp/gpuvm-oom.XXXXXX";
	const int	fd = mkstemp(path);
	const char	events[] = "low 0\noom 7\noom_kill_disable 3\noom_kill 5\noom_group_kill 0\n";

	ASSERT_GE(fd, 0);
	EXPECT_EQ(oom_kills_in(path), -1);
	ASSERT_EQ(write(fd, events, sizeof(events) - 1), static_cast<ssize_t>(sizeof(events) - 1));
	close(fd);
	EXPECT_EQ(oom_kills_in(path), 5);
	unlink(path);
	EXPECT_EQ(oom_kills_in(path), -1);
	EXPECT_GE(oom_kills(), 0);
}
