/* open_pages.cc: see open_pages.h. */
#include "engine/open_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>

#include "engine/abi.h"

namespace gpuvm {

OpenPages::OpenPages(char *base, uint64_t size, uint64_t zone)
	: base_(base), size_(size), zone_(zone), uses_((std::min(zone, size) + ARENA_PAGE - 1) / ARENA_PAGE)
{
	/* a Job, its buffers, what is known of its set; and chunks, which are registered one after the other */
	static_assert(MAX_SESSIONS * (JOB_MAX_BUFFERS + 2) + 1 <= std::numeric_limits<Count>::max(),
				  "uses of a page can be counted");
}

bool
OpenPages::open_zone()
{
	return zone_ >= size_ || protect(zone_ / ARENA_PAGE, (size_ + ARENA_PAGE - 1) / ARENA_PAGE, true);
}

/* Of what ends there, the first page behind; none of the zone. */
uint64_t
OpenPages::page_behind(uint64_t end) const
{
	return std::min<uint64_t>((end - 1) / ARENA_PAGE + 1, uses_.size());
}

/* Pages [first, end). */
bool
OpenPages::protect(uint64_t first, uint64_t end, bool writable)
{
	const uint64_t from = first * ARENA_PAGE;

	return mprotect(base_ + from, std::min(end * ARENA_PAGE, size_) - from,
					writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

/* Each run of pages that are wanted, by one call. */
template <typename Wanted>
bool
OpenPages::protect_runs(uint64_t first, uint64_t end, bool writable, Wanted wanted)
{
	bool		all = true;

	while (first < end)
	{
		uint64_t	behind = first;

		while (behind < end && wanted(uses_[behind]))
			behind++;
		if (behind > first)
			all = protect(first, behind, writable) && all;
		first = behind + 1;
	}
	return all;
}

bool
OpenPages::open(uint64_t offset, uint64_t bytes)
{
	if (always_open(offset) || bytes == 0)
		return true;

	const uint64_t first = offset / ARENA_PAGE, end = page_behind(offset + bytes);
	std::lock_guard<std::mutex> lock(mutex_);
	const auto	closed = [](Count uses) { return uses == 0; };

	if (!protect_runs(first, end, true, closed))
	{
		(void) protect_runs(first, end, false, closed);
		return false;
	}
	for (uint64_t page = first; page < end; page++)
		uses_[page]++;
	return true;
}

void
OpenPages::close(uint64_t offset, uint64_t bytes)
{
	if (always_open(offset) || bytes == 0)
		return;

	const uint64_t first = offset / ARENA_PAGE, end = page_behind(offset + bytes);
	std::lock_guard<std::mutex> lock(mutex_);

	/* if the system lacks memory for more mappings, a page stays writable: no worse than it was */
	(void) protect_runs(first, end, false, [](Count uses) { return uses == 1; });
	for (uint64_t page = first; page < end; page++)
		uses_[page]--;
}

PageUses::~PageUses()
{
	for (const auto &[offset, bytes] : ranges_)
		pages_->close(offset, bytes);
}

bool
PageUses::open(OpenPages *pages, uint64_t offset, uint64_t bytes)
{
	if (pages == nullptr || pages->always_open(offset))
		return true;
	ranges_.reserve(ranges_.size() + 1);
	if (!pages->open(offset, bytes))
		return false;
	pages_ = pages;
	ranges_.emplace_back(offset, bytes);
	return true;
}

}  // namespace gpuvm
