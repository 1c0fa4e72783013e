/*
 * bits.h: bitmaps in 64-bit words, bit i of word w for row 64 * w + i.
 */
#ifndef GPUVM_CORE_BITS_H
#define GPUVM_CORE_BITS_H

#include <cstddef>
#include <cstdint>

namespace gpuvm {

inline bool
bit_get(const uint64_t *words, size_t i)
{
	return (words[i >> 6] >> (i & 63)) & 1;
}

inline void
bit_set(uint64_t *words, size_t i)
{
	words[i >> 6] |= uint64_t(1) << (i & 63);
}

/* The n lowest bits, n in [0, 64]. */
constexpr uint64_t
low_bits(unsigned n)
{
	return n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1;
}

inline uint32_t
bit_count(const uint64_t *words, size_t nwords)
{
	uint32_t	n = 0;

	for (size_t i = 0; i < nwords; i++)
		n += static_cast<uint32_t>(__builtin_popcountll(words[i]));
	return n;
}

/* Smallest k with 2^k >= n. */
constexpr int
ceil_log2(uint64_t n)
{
	int			k = 0;

	while (k < 63 && (uint64_t(1) << k) < n)
		k++;
	return k;
}

}  // namespace gpuvm

#endif
