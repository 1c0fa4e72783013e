/* arena_map.cc: mapping the arena. */
#include "engine/arena_map.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace gpuvm {

const char *
ArenaMap::map(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || static_cast<uint64_t>(st.st_size) < ARENA_HEADER_BYTES)
		return "the arena's file is too short";

	void	   *at = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		return "the arena could not be mapped";
	(void) madvise(at, static_cast<size_t>(st.st_size), MADV_DONTDUMP);
	(void) madvise(at, static_cast<size_t>(st.st_size), MADV_HUGEPAGE);
	base_ = static_cast<char *>(at);
	size_ = static_cast<uint64_t>(st.st_size);
	if (header()->magic == ARENA_MAGIC && header()->abi_version != ABI_VERSION)
		return "gpuvmd and the gpuvm library have different versions: restart the server after an upgrade";

	const uint64_t zone = header()->jobs_begin;

	if (header()->magic != ARENA_MAGIC || header()->size != size_ ||
		zone < ARENA_HEADER_BYTES || zone > size_ || zone % ARENA_PAGE != 0)
		return "the arena's header is damaged";
	pages_ = std::make_shared<OpenPages>(base_, size_, zone);
	if (!pages_->open_zone() || !pages_->open(ARENA_PAGE, ARENA_HEADER_BYTES - ARENA_PAGE))
		return "the arena could not be made writable";
	return nullptr;
}

}  // namespace gpuvm
