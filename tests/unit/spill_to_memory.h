/* spill_to_memory.h: a job's file that is memory, of a job that finds memory short most of the time. */
#ifndef GPUVM_TESTS_SPILL_TO_MEMORY_H
#define GPUVM_TESTS_SPILL_TO_MEMORY_H

#include <sys/uio.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "vm/spill.h"

namespace gpuvm::reference {

/* Memory is short whenever it is asked, or so it says. */
class SpillToMemory : public Spill
{
public:
	explicit SpillToMemory(uint32_t seed) : asked_(seed) {}

	bool wanted(uint64_t) override { return (asked_.fetch_add(1) * 0x9e3779b9u >> 16) % 4 != 0; }
	uint64_t take(uint64_t bytes) override
	{
		std::lock_guard<std::mutex> lock(mutex_);

		bytes_.resize(bytes_.size() + bytes, '?');
		return bytes_.size() - bytes;
	}
	void write(uint64_t at, iovec *pieces, size_t npieces) override
	{
		std::lock_guard<std::mutex> lock(mutex_);

		for (size_t i = 0; i < npieces; at += pieces[i++].iov_len)
			memcpy(bytes_.data() + at, pieces[i].iov_base, pieces[i].iov_len);
	}
	void read(uint64_t at, char *to, size_t bytes) override
	{
		std::lock_guard<std::mutex> lock(mutex_);

		memcpy(to, bytes_.data() + at, bytes);
		nread_ += bytes;
	}

	/* All that was spilled has been read, if all groups have been. */
	uint64_t	nread() const { return nread_; }

private:
	std::atomic<uint32_t> asked_;
	std::mutex	mutex_;
	std::string bytes_;
	uint64_t	nread_ = 0;
};

/* Of one that always does. */
class ShortSpill final : public SpillToMemory
{
public:
	ShortSpill() : SpillToMemory(0) {}

	bool wanted(uint64_t) override { return true; }
};

}  // namespace gpuvm::reference

#endif
