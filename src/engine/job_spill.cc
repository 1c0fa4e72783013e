/* job_spill.cc: see job_spill.h. */
#include "engine/job_spill.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <new>
#include <system_error>

#include "vm/memory_budget.h"

namespace gpuvm {

/* What the file grows by, a quarter within these: asking takes some microseconds, and what is not used counts against temp_file_limit. */
constexpr uint64_t LEAST_STEP = uint64_t(1) << 20;
constexpr uint64_t GREATEST_STEP = uint64_t(8) << 20;
/* What each other thread is to find, beyond what this one takes. */
constexpr uint64_t MARGIN = uint64_t(2) << 20;

JobSpill::~JobSpill()
{
	/* what came before a stage lives until the stage has ended, whose bytes lie where its own lay */
	job_->spilled = std::max(job_->spilled, bytes_.load());
	if (fd_.load() >= 0)
		close(fd_.load());
}

void
JobSpill::fail(const char *what, int error)
{
	char		why[sizeof(Job::failure)];

	snprintf(why, sizeof(why), "could not %s a temporary file: %s", what, std::generic_category().message(error).c_str());
	io_->fail(why);
	throw std::bad_alloc();
}

bool
JobSpill::wanted(uint64_t bytes)
{
	JobMemory  *const job = JobMemory::current();

	return job != nullptr && job->budget()->left(job) < (bytes + MARGIN) * threads_;
}

void
JobSpill::open_file()
{
	const int	fd = open(job_->spill_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		fail("open", errno);
	fd_.store(fd);
}

uint64_t
JobSpill::take(uint64_t bytes)
{
	const uint64_t at = bytes_.fetch_add(bytes);
	std::lock_guard<std::mutex> lock(mutex_);

	if (at + bytes > room_)
	{
		const uint64_t more = std::max(at + bytes, room_ + std::clamp(room_ / 4, LEAST_STEP, GREATEST_STEP));

		if (!io_->grow_spill(more))
			throw std::bad_alloc();
		if (fd_.load() < 0)
			open_file();
		room_ = more;
	}
	return at;
}

void
JobSpill::write(uint64_t at, iovec *pieces, size_t npieces)
{
	while (npieces > 0)
	{
		const ssize_t n = pwritev(fd_.load(), pieces, static_cast<int>(std::min<size_t>(npieces, IOV_MAX)), static_cast<off_t>(at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("write", n < 0 ? errno : ENOSPC);
		at += static_cast<uint64_t>(n);
		for (size_t left = static_cast<size_t>(n); left > 0;)
		{
			const size_t taken = std::min(left, pieces->iov_len);

			pieces->iov_base = static_cast<char *>(pieces->iov_base) + taken;
			pieces->iov_len -= taken;
			left -= taken;
			if (pieces->iov_len == 0)
			{
				pieces++;
				npieces--;
			}
		}
	}
}

void
JobSpill::read(uint64_t at, char *to, size_t bytes)
{
	while (bytes > 0)
	{
		const ssize_t n = pread(fd_.load(), to, bytes, static_cast<off_t>(at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail("read", n < 0 ? errno : EIO);
		at += static_cast<uint64_t>(n);
		to += n;
		bytes -= static_cast<size_t>(n);
	}
}

}  // namespace gpuvm
