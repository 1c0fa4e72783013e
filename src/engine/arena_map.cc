/* arena_map.cc: mapping the arena. */
#include "engine/arena_map.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace gpuvm {

const char *
ArenaMap::map(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || static_cast<uint64_t>(st.st_size) < sizeof(ArenaHeader))
		return "the arena's file is too short";

	void	   *at = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ | PROT_WRITE,
						  MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		return "the arena could not be mapped";
	(void) madvise(at, static_cast<size_t>(st.st_size), MADV_DONTDUMP);
	(void) madvise(at, static_cast<size_t>(st.st_size), MADV_HUGEPAGE);
	base_ = static_cast<char *>(at);
	size_ = static_cast<uint64_t>(st.st_size);
	if (header()->magic != ARENA_MAGIC || header()->size != size_)
		return "the arena's header is damaged";
	if (header()->abi_version != ABI_VERSION)
		return "gpuvmd and the gpuvm library have different versions: restart the server after an upgrade";
	return nullptr;
}

}  // namespace gpuvm
