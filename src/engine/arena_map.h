/*
 * arena_map.h: gpuvmd's mapping of the arena. Every offset that a backend wrote
 * becomes a pointer here or nowhere.
 */
#ifndef GPUVM_ENGINE_ARENA_MAP_H
#define GPUVM_ENGINE_ARENA_MAP_H

#include "engine/abi.h"

namespace gpuvm {

class ArenaMap
{
public:
	ArenaMap() = default;
	ArenaMap(char *base, uint64_t size) : base_(base), size_(size) {}

	/* Maps the arena's memfd and checks its header; nullptr, or what is wrong. */
	const char *map(int fd);

	ArenaHeader *header() const { return reinterpret_cast<ArenaHeader *>(base_); }

	/* `bytes` at `offset`, or nullptr unless they lie within the arena, behind its header, and aligned. */
	template <typename T>
	T *at(uint64_t offset, uint64_t bytes = sizeof(T), uint64_t align = alignof(T)) const
	{
		if (offset < sizeof(ArenaHeader) || offset > size_ || bytes > size_ - offset || offset % align != 0)
			return nullptr;
		return reinterpret_cast<T *>(base_ + offset);
	}

	/* Bytes from `offset` to the arena's end. */
	uint64_t available(uint64_t offset) const { return offset < size_ ? size_ - offset : 0; }

private:
	char	   *base_ = nullptr;
	uint64_t	size_ = 0;
};

}  // namespace gpuvm

#endif
