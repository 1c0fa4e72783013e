/*
 * doorbell.h: gpuvmd's end of a session's socket and waiting words (abi.h).
 *
 * A doorbell is rung only when the other side's waiting word is set. The side
 * that goes to sleep sets its word and then looks at what it waits for; the side
 * that moves something does so and then looks at the word. All four accesses are
 * sequentially consistent, so at least one of the two sees the other's.
 */
#ifndef GPUVM_ENGINE_DOORBELL_H
#define GPUVM_ENGINE_DOORBELL_H

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "engine/abi.h"

namespace gpuvm {

inline void
cpu_relax()
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	asm volatile("yield");
#endif
}

class Doorbell
{
public:
	Doorbell(int fd, Job *job) : fd_(fd), job_(job) {}

	/* Wakes the backend if it sleeps. Any thread may call this. */
	void ring()
	{
		if (job_->backend_waiting.load() != 0 && job_->backend_waiting.exchange(0) != 0)
			(void) send(fd_, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}

	/* Has the backend gone? Does not wait. */
	bool gone() const
	{
		struct pollfd p = {fd_, POLLRDHUP, 0};

		return poll(&p, 1, 0) > 0;
	}

	/*
	 * Waits awake for moved(), at most so long; true when it came. Gives the
	 * processor to whoever wants it, and gives up when it was taken again and
	 * again: then processors are busy, and being woken by the doorbell is the
	 * faster way.
	 */
	template <typename Moved>
	static bool spin(Moved moved, std::chrono::nanoseconds limit)
	{
		auto		now = std::chrono::steady_clock::now();
		auto		end = now + limit;
		int			contended = 0;

		do
		{
			for (int i = 0; i < SPIN_CHECKS; i++)
			{
				if (moved())
					return true;
				cpu_relax();
			}

			auto		before = now;

			(void) sched_yield();
			now = std::chrono::steady_clock::now();
			/* Whoever took the processor may be the one that is waited for: not at once. */
			if (now - before > SPIN_CONTENDED && ++contended == MOST_CONTENDED)
				break;
		} while (now < end);
		return moved();
	}

	/* Sleeps until moved(). False when the backend has gone. */
	template <typename Moved>
	bool sleep(Moved moved)
	{
		for (;;)
		{
			char		bytes[64];
			ssize_t		n;

			job_->engine_waiting.store(1);
			if (moved())
			{
				job_->engine_waiting.store(0);
				return true;
			}
			n = recv(fd_, bytes, sizeof(bytes), 0);
			job_->engine_waiting.store(0);
			if (n == 0 || (n < 0 && errno != EINTR))
				return false;
			if (moved())
				return true;
		}
	}

	/* The same for so long at most: moved() tells whether it came. */
	template <typename Moved>
	bool sleep_for(Moved moved, std::chrono::milliseconds limit)
	{
		auto		end = std::chrono::steady_clock::now() + limit;

		for (;;)
		{
			struct pollfd p = {fd_, POLLIN, 0};
			char		bytes[64];
			ssize_t		n;

			job_->engine_waiting.store(1);
			if (!moved())
			{
				auto		left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());

				(void) poll(&p, 1, std::max(0, static_cast<int>(left.count())));
			}
			job_->engine_waiting.store(0);
			n = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
			if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
				return false;
			if (moved() || std::chrono::steady_clock::now() >= end)
				return true;
		}
	}

private:
	static constexpr int SPIN_CHECKS = 32;	/* between two looks at the clock */
	static constexpr std::chrono::microseconds SPIN_CONTENDED{20};
	static constexpr int MOST_CONTENDED = 32;

	int			fd_;
	Job		   *job_;
};

}  // namespace gpuvm

#endif
