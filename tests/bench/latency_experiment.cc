/*
 * latency_experiment: what it costs to wake another process, by mechanism and
 * by how long both sides were idle. One process rings, the other answers; the
 * time to the other's first instruction ("wake") and until the answer is seen
 * ("round trip") are taken with CLOCK_MONOTONIC, which both share.
 *
 *   latency_experiment [samples at 0.1 ms, default 1000]
 */
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Shared
{
	alignas(64) std::atomic<uint32_t> ping;
	alignas(64) std::atomic<uint32_t> pong;
	alignas(64) std::atomic<int64_t> woken;	/* when the answering side ran */
};

int64_t
now()
{
	timespec	t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void
fail(const char *what)
{
	perror(what);
	exit(1);
}

void
futex_wait(std::atomic<uint32_t> *word, uint32_t while_value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, while_value, nullptr, nullptr, 0);
}

void
futex_wake(std::atomic<uint32_t> *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/* One direction of a channel: ring() by one process, wait(n) for the n-th ring by the other. */
struct Channel
{
	virtual ~Channel() = default;
	virtual void ring(bool answer, uint32_t n) = 0;
	virtual void wait(bool answer, uint32_t n) = 0;
};

struct SocketChannel : Channel
{
	int			fd[2];

	SocketChannel()
	{
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0)
			fail("socketpair");
	}
	~SocketChannel() override
	{
		close(fd[0]);
		close(fd[1]);
	}
	void ring(bool answer, uint32_t) override
	{
		char		byte = 1;

		if (write(fd[answer], &byte, 1) != 1)
			fail("write");
	}
	void wait(bool answer, uint32_t) override
	{
		char		byte;

		if (read(fd[!answer], &byte, 1) != 1)
			fail("read");
	}
};

struct EventChannel : Channel
{
	int			fd[2];

	EventChannel()
	{
		for (int &f : fd)
			if ((f = eventfd(0, 0)) < 0)
				fail("eventfd");
	}
	~EventChannel() override
	{
		close(fd[0]);
		close(fd[1]);
	}
	void ring(bool answer, uint32_t) override
	{
		uint64_t	one = 1;

		if (write(fd[answer], &one, 8) != 8)
			fail("write");
	}
	void wait(bool answer, uint32_t) override
	{
		uint64_t	count;

		if (read(fd[answer], &count, 8) != 8)
			fail("read");
	}
};

struct FutexChannel : Channel
{
	Shared	   *s;

	explicit FutexChannel(Shared *shared) : s(shared) {}
	void ring(bool answer, uint32_t n) override
	{
		std::atomic<uint32_t> *word = answer ? &s->pong : &s->ping;

		word->store(n, std::memory_order_release);
		futex_wake(word);
	}
	void wait(bool answer, uint32_t n) override
	{
		std::atomic<uint32_t> *word = answer ? &s->pong : &s->ping;

		for (uint32_t v; (v = word->load(std::memory_order_acquire)) != n;)
			futex_wait(word, v);
	}
};

struct SpinChannel : Channel
{
	Shared	   *s;

	explicit SpinChannel(Shared *shared) : s(shared) {}
	void ring(bool answer, uint32_t n) override
	{
		(answer ? s->pong : s->ping).store(n, std::memory_order_release);
	}
	void wait(bool answer, uint32_t n) override
	{
		std::atomic<uint32_t> &word = answer ? s->pong : s->ping;

		while (word.load(std::memory_order_acquire) != n)
			__builtin_ia32_pause();
	}
};

double
percentile(std::vector<int64_t> &v, double p)
{
	std::sort(v.begin(), v.end());
	return static_cast<double>(v[static_cast<size_t>(p * static_cast<double>(v.size() - 1))]) * 1e-3;
}

void
measure(const char *name, Channel &channel, Shared *shared, double gap_ms, int samples)
{
	std::vector<int64_t> wake, trip;

	shared->ping = shared->pong = 0;

	pid_t		child = fork();

	if (child < 0)
		fail("fork");
	if (child == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 1; i <= samples; i++)
		{
			channel.wait(false, static_cast<uint32_t>(i));
			shared->woken.store(now(), std::memory_order_release);
			channel.ring(true, static_cast<uint32_t>(i));
		}
		_exit(0);
	}
	for (int i = 1; i <= samples; i++)
	{
		timespec	gap = {static_cast<time_t>(gap_ms / 1000), static_cast<long>(gap_ms * 1e6) % 1000000000L};

		nanosleep(&gap, nullptr);

		int64_t		begin = now();

		channel.ring(false, static_cast<uint32_t>(i));
		channel.wait(true, static_cast<uint32_t>(i));

		int64_t		end = now();

		wake.push_back(shared->woken.load(std::memory_order_acquire) - begin);
		trip.push_back(end - begin);
	}

	int			status;

	if (waitpid(child, &status, 0) != child || status != 0)
		fail("waitpid");
	printf("%-8s %6.1f ms %6d | %8.1f %8.1f | %8.1f %8.1f\n", name, gap_ms, samples, percentile(wake, 0.5), percentile(wake, 0.99),
		   percentile(trip, 0.5), percentile(trip, 0.99));
	fflush(stdout);
}

}  // namespace

int
main(int argc, char **argv)
{
	int			samples = argc > 1 ? atoi(argv[1]) : 1000;
	void	   *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");

	Shared	   *shared = new (memory) Shared;
	const double gaps[] = {0.1, 1, 10, 100};
	const int	divisor[] = {1, 2, 8, 25};

	printf("%-8s %9s %6s | %8s %8s | %8s %8s   (us, %ld processors)\n", "by", "idle", "n", "wake p50", "p99", "trip p50", "p99",
		   sysconf(_SC_NPROCESSORS_ONLN));
	for (int g = 0; g < 4; g++)
	{
		int			n = std::max(20, samples / divisor[g]);

		{
			SocketChannel c;
			measure("socket", c, shared, gaps[g], n);
		}
		{
			FutexChannel c(shared);
			measure("futex", c, shared, gaps[g], n);
		}
		{
			SpinChannel c(shared);
			measure("spin", c, shared, gaps[g], n);
		}
		{
			EventChannel c;
			measure("eventfd", c, shared, gaps[g], n);
		}
	}
	return 0;
}
