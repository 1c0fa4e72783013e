/* code_range.h: which codes of a tablet's column have their values in a range. For every engine. */
#ifndef GPUVM_VM_CODE_RANGE_H
#define GPUVM_VM_CODE_RANGE_H

#include "core/types.h"

namespace gpuvm {

/*
 * Of codes of 1, 2 or 4 bytes: those for which code - origin <= last, modulo 2^32; then value - lo is code - origin + slot. int2 and int4 as
 * they are (natural width) are taken with their sign.
 */
struct CodeRange
{
	bool		some;			/* there are such codes */
	uint32_t	origin, last, slot;
};

GPUVM_HD bool
codes_have_sign(Type type, uint32_t width)
{
	return (type == Type::I16 && width == 2) || (type == Type::I32 && width == 4);
}

/* Values in [lo, lo + n); n is at most 2^32, or `slot` means nothing. Integers and Bool. */
GPUVM_HD CodeRange
code_range(Type type, uint32_t width, int64_t base, int64_t lo, uint64_t n)
{
	constexpr uint64_t codes = uint64_t{1} << 32;
	/* With a sign: as codes from the least value on. */
	const uint64_t bias = codes_have_sign(type, width) ? uint64_t{1} << (8 * width - 1) : 0;
	const uint64_t shift = static_cast<uint64_t>(base) - bias - static_cast<uint64_t>(lo);	/* from a code to its value - lo */
	const bool	within = shift < n;	/* code 0 is */
	const uint64_t first = within ? 0 : 0 - shift, rest = within ? n - shift : n;
	CodeRange	range = {false, 0, 0, 0};

	if (rest == 0 || first >= codes)
		return range;
	range.some = true;
	range.origin = static_cast<uint32_t>(first - bias);
	range.last = static_cast<uint32_t>((rest < codes - first ? rest : codes - first) - 1);
	range.slot = within ? static_cast<uint32_t>(shift) : 0;
	return range;
}

}  // namespace gpuvm

#endif
