/* decode.cc: see decode.h. */
#include "tablet/decode.h"

#include <cstring>

namespace gpuvm {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define GPUVM_LOOP __attribute__((optimize("O3"), target_clones("avx2", "default"), noinline))
#else
#define GPUVM_LOOP __attribute__((noinline))
#endif

constexpr uint32_t WORD_BITS = 64;

/* W: the code's type, unsigned; T: the value's, unsigned, so that sums wrap. */
template <typename W, typename T>
GPUVM_HD void
widen(const W *from, uint32_t n, T base, T *to)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = static_cast<T>(base + static_cast<T>(from[i]));
}

#define GPUVM_WIDEN(W, T) \
GPUVM_LOOP static void \
widen_##W##_##T(const W *from, uint32_t n, T base, T *to) \
{ \
	widen(from, n, base, to); \
}

GPUVM_WIDEN(uint8_t, uint16_t)
GPUVM_WIDEN(uint8_t, uint32_t)
GPUVM_WIDEN(uint16_t, uint32_t)
GPUVM_WIDEN(uint8_t, uint64_t)
GPUVM_WIDEN(uint16_t, uint64_t)
GPUVM_WIDEN(uint32_t, uint64_t)
#undef GPUVM_WIDEN

template <typename T>
static void
fill(int64_t base, uint32_t n, T *to)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = static_cast<T>(base);
}

void
decode_values(const TabletHeader *tablet, const ColumnChunk &chunk, uint32_t first, uint32_t n, void *values, uint32_t to)
{
	uint32_t	natural = type_natural_width(chunk.type);
	const char *from = reinterpret_cast<const char *>(tablet) + chunk.data + uint64_t{first} * chunk.width;
	char	   *out = static_cast<char *>(values) + uint64_t{to} * natural;
	uint64_t	base = static_cast<uint64_t>(chunk.base);

	if (n == 0)
		return;
	if (chunk.width == natural)
	{
		memcpy(out, from, uint64_t{n} * natural);
		return;
	}
	if (chunk.width == 0)
	{
		/* floats: their bits, which `base` has too */
		switch (natural)
		{
			case 1:
				fill(chunk.base, n, reinterpret_cast<uint8_t *>(out));
				break;
			case 2:
				fill(chunk.base, n, reinterpret_cast<uint16_t *>(out));
				break;
			case 4:
				fill(chunk.base, n, reinterpret_cast<uint32_t *>(out));
				break;
			default:
				fill(chunk.base, n, reinterpret_cast<uint64_t *>(out));
				break;
		}
		return;
	}

	switch (natural * 16 + chunk.width)
	{
		case 2 * 16 + 1:
			widen_uint8_t_uint16_t(reinterpret_cast<const uint8_t *>(from), n, static_cast<uint16_t>(base),
								   reinterpret_cast<uint16_t *>(out));
			break;
		case 4 * 16 + 1:
			widen_uint8_t_uint32_t(reinterpret_cast<const uint8_t *>(from), n, static_cast<uint32_t>(base),
								   reinterpret_cast<uint32_t *>(out));
			break;
		case 4 * 16 + 2:
			widen_uint16_t_uint32_t(reinterpret_cast<const uint16_t *>(from), n, static_cast<uint32_t>(base),
									reinterpret_cast<uint32_t *>(out));
			break;
		case 8 * 16 + 1:
			widen_uint8_t_uint64_t(reinterpret_cast<const uint8_t *>(from), n, base, reinterpret_cast<uint64_t *>(out));
			break;
		case 8 * 16 + 2:
			widen_uint16_t_uint64_t(reinterpret_cast<const uint16_t *>(from), n, base, reinterpret_cast<uint64_t *>(out));
			break;
		case 8 * 16 + 4:
			widen_uint32_t_uint64_t(reinterpret_cast<const uint32_t *>(from), n, base, reinterpret_cast<uint64_t *>(out));
			break;
		default:
			__builtin_unreachable();	/* no such width: check_tablet */
	}
}

/* n (1 .. 64) bits of a bitmap from bit `at` on. */
static uint64_t
bits_at(const uint64_t *bitmap, uint32_t at, uint32_t n)
{
	uint32_t	shift = at % WORD_BITS;
	uint64_t	bits = bitmap[at / WORD_BITS] >> shift;

	if (shift + n > WORD_BITS)
		bits |= bitmap[at / WORD_BITS + 1] << (WORD_BITS - shift);
	return n == WORD_BITS ? bits : bits & ((uint64_t{1} << n) - 1);
}

bool
decode_nulls(const TabletHeader *tablet, const ColumnChunk &chunk, uint32_t first, uint32_t n, uint64_t *nulls, uint32_t to)
{
	const uint64_t *bitmap = tablet_at<uint64_t>(tablet, chunk.nulls);
	uint64_t	any = 0;

	if (!(chunk.flags & CHUNK_HAS_NULLS))
		return false;
	while (n > 0)
	{
		/* up to the end of the word that is written */
		uint32_t	step = WORD_BITS - to % WORD_BITS;
		uint64_t	bits;

		if (step > n)
			step = n;
		bits = bits_at(bitmap, first, step);
		nulls[to / WORD_BITS] |= bits << (to % WORD_BITS);
		any |= bits;
		first += step;
		to += step;
		n -= step;
	}
	return any != 0;
}

}  // namespace gpuvm
