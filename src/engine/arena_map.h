/*
 * arena_map.h: gpuvmd's mapping of the arena. Every offset that a backend wrote
 * becomes a pointer here or nowhere; what is only read, a constant one, for the mapping is
 * read-only but for the pages that open() has opened.
 */
#ifndef GPUVM_ENGINE_ARENA_MAP_H
#define GPUVM_ENGINE_ARENA_MAP_H

#include <memory>

#include "engine/abi.h"
#include "engine/open_pages.h"

namespace gpuvm {

class ArenaMap
{
public:
	ArenaMap() = default;
	/* All of it is writable. */
	ArenaMap(char *base, uint64_t size) : base_(base), size_(size) {}

	/* Maps the arena's memfd and checks its header; nullptr, or what is wrong. */
	const char *map(int fd);

	/* Of its first part gpuvmd writes nothing. */
	ArenaHeader *header() const { return reinterpret_cast<ArenaHeader *>(base_); }

	/* `bytes` at `offset`, or nullptr unless they lie within the arena, behind its header, and aligned. */
	template <typename T>
	const T *at(uint64_t offset, uint64_t bytes = sizeof(T), uint64_t align = alignof(T)) const
	{
		return reinterpret_cast<const T *>(within(offset, bytes, align));
	}

	/* The same, to be written to as long as `uses` lives. */
	template <typename T>
	T *open(uint64_t offset, uint64_t bytes, uint64_t align, PageUses *uses) const
	{
		char	   *at = within(offset, bytes, align);

		return at != nullptr && uses->open(pages_.get(), offset, bytes) ? reinterpret_cast<T *>(at) : nullptr;
	}

	/* Bytes from `offset` to the arena's end. */
	uint64_t available(uint64_t offset) const { return offset < size_ ? size_ - offset : 0; }

	/* Which pages are open; nullptr: all. */
	OpenPages  *pages() const { return pages_.get(); }

private:
	char *within(uint64_t offset, uint64_t bytes, uint64_t align) const
	{
		if (offset < ARENA_HEADER_BYTES || offset > size_ || bytes > size_ - offset || offset % align != 0)
			return nullptr;
		return base_ + offset;
	}

	char	   *base_ = nullptr;
	uint64_t	size_ = 0;
	std::shared_ptr<OpenPages> pages_;
};

}  // namespace gpuvm

#endif
