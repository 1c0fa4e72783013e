/*
 * open_pages.h: which pages of the arena gpuvmd can write to.
 *
 * A page is open, that is mapped read-write, while somebody needs it so: a session its Job, a job its results, the
 * device library a chunk that it registers. Uses of a page are counted, so that they may overlap; the first
 * opens it, the end of the last closes it. The jobs zone, where nearly all of these pages lie, is always open,
 * and costs nothing. Without such an object all is writable.
 */
#ifndef GPUVM_ENGINE_OPEN_PAGES_H
#define GPUVM_ENGINE_OPEN_PAGES_H

#include <mutex>
#include <utility>
#include <vector>

#include "core/arena_page.h"

namespace gpuvm {

class OpenPages
{
public:
	/* A mapping of so many bytes, all of it read-only so far. `zone`: see open_zone(). */
	OpenPages(char *base, uint64_t size, uint64_t zone);

	/* Opens what lies from the zone's begin on, for ever. Before anything else. */
	bool		open_zone();

	/* The pages of these bytes, which lie in the mapping. False: the system does not let them be opened, and none was. */
	bool		open(uint64_t offset, uint64_t bytes);
	/* Ends a use that open() began. */
	void		close(uint64_t offset, uint64_t bytes);
	/* Needs nobody open what is there? */
	bool always_open(uint64_t offset) const { return offset >= zone_; }

private:
	using Count = uint16_t;

	uint64_t	page_behind(uint64_t end) const;
	bool		protect(uint64_t first, uint64_t end, bool writable);
	template <typename Wanted> bool protect_runs(uint64_t first, uint64_t end, bool writable, Wanted wanted);

	char	   *base_;
	uint64_t	size_;
	uint64_t	zone_;
	std::mutex	mutex_;
	std::vector<Count> uses_;	/* of the pages below the zone */
};

/* Uses that end together. */
class PageUses
{
public:
	PageUses() = default;
	~PageUses();
	PageUses(const PageUses &) = delete;
	PageUses &operator=(const PageUses &) = delete;

	bool		open(OpenPages *pages, uint64_t offset, uint64_t bytes);

private:
	OpenPages  *pages_ = nullptr;
	std::vector<std::pair<uint64_t, uint64_t>> ranges_;	/* offset, bytes: those in the zone are left out */
};

}  // namespace gpuvm

#endif
