/* join_keys.h: what the keys of joins are in every engine: equal words for equal keys, and how words are hashed. */
#ifndef GPUVM_VM_JOIN_KEYS_H
#define GPUVM_VM_JOIN_KEYS_H

#include <cstdint>

#include "core/types.h"

namespace gpuvm {

/* Of a float's bits: equal if and only if PostgreSQL's = says so of the floats: one NaN, one zero. */
GPUVM_HD uint32_t
float_key(uint32_t bits)
{
	const uint32_t magnitude = bits & 0x7fffffff;

	return magnitude > 0x7f800000 ? 0x7fc00000 : magnitude == 0 ? 0 : bits;
}

GPUVM_HD uint64_t
float_key(uint64_t bits)
{
	const uint64_t magnitude = bits & 0x7fffffffffffffff;

	return magnitude > 0x7ff0000000000000 ? 0x7ff8000000000000 : magnitude == 0 ? 0 : bits;
}

/* Both mixes have an inverse. */
GPUVM_HD uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

GPUVM_HD uint32_t
mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	x ^= x >> 16;
	return x;
}

}  // namespace gpuvm

#endif
