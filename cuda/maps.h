/*
 * maps.h: a job's maps (vm/code_map.h) in device memory, for Lookup.
 *
 * On the device a map has two entries more: what a null code gives with LOOKUP_NULL, and a null, which is what all
 * other codes that are not of the map give. So every code is made an entry's number, and there is nothing to ask
 * behind it. Values are as registers hold them; of Bool they are bits.
 *
 * And its patterns (vm/text_match.h), for TextMatch: their addresses, then they themselves.
 */
#ifndef GPUVM_CUDA_MAPS_H
#define GPUVM_CUDA_MAPS_H

#include <string>

#include "device_program.h"
#include "vm/code_map.h"
#include "vm/text_match.h"

namespace gpuvm {
namespace cuda {

/* All maps of a job: what is uploaded for each of its runs. */
constexpr uint64_t MAX_MAP_BYTES = 256ull << 20;

/* Bytes that the first n maps take on the device. */
uint64_t	map_bytes(const CodeMap *maps, uint32_t n);

/* Writes them to `to`, zeroed, which is to lie at `device`, 16-byte aligned, and says where each is. */
void		pack_maps(const CodeMap *maps, uint32_t n, char *to, uint64_t device, DeviceMap *out);

/*
 * All that lowering depends on of the maps, as bytes, for the key of what is lowered. Of large ones that are other bytes
 * each time: to look at every value costs more than lowering.
 */
void		append_map_key(const CodeMap *maps, uint32_t n, std::string *key);

/* Bytes that the first n patterns take on the device. */
uint64_t	pattern_bytes(const TextPattern *const *patterns, uint32_t n);

/* Writes them to `to`, which is to lie at `device`, 8-byte aligned, and begins with their addresses. */
void		pack_patterns(const TextPattern *const *patterns, uint32_t n, char *to, uint64_t device);

}  // namespace cuda
}  // namespace gpuvm

#endif
