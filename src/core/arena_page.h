/* arena_page.h: in what the arena is handed out, and is writable for gpuvmd or not: whole pages of every system. */
#ifndef GPUVM_CORE_ARENA_PAGE_H
#define GPUVM_CORE_ARENA_PAGE_H

#include <cstdint>

namespace gpuvm {

constexpr uint64_t ARENA_PAGE = 65536;

}  // namespace gpuvm

#endif
