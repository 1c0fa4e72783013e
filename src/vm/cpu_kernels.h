/*
 * cpu_kernels.h: the loops of the CPU virtual machine, over whole vectors.
 *
 * A kernel always does CPU_VECTOR_ROWS rows: scratch vectors are that long and
 * tablets are padded. Truth values and nulls are bitmaps (CPU_WORDS words).
 *
 * The same source (cpu_kernels_impl.h) is compiled once for each instruction
 * set level, in a file of its own whose pragma sets the target, and one table
 * is chosen at start-up. target_clones would do the same a function at a time,
 * but neither for templates (the clones of a comdat function need an ifunc that
 * is not), nor with intrinsics inside, and would pay an indirect jump through
 * the PLT as well. The inline functions of semantics.h are always_inline, so
 * they take each level's instructions.
 */
#ifndef GPUVM_VM_CPU_KERNELS_H
#define GPUVM_VM_CPU_KERNELS_H

#include "vm/cpu_vm.h"
#include "vm/date_fields.h"
#include "vm/text_part.h"
#include "vm/zone_table.h"

namespace gpuvm {

constexpr int CPU_WORDS = CPU_VECTOR_ROWS / 64;
constexpr size_t MASK_BYTES = CPU_WORDS * 8;

/* Which operand is one value for all rows. */
enum class OperandForm : uint8_t
{
	VV, VC, CV
};

/* Each returns the ErrorBits that any lane met, dead and null ones included. */
using BinaryFn = uint32_t (*)(const void *a, const void *b, void *dst);
using UnaryFn = uint32_t (*)(const void *a, void *dst);
using CompareFn = void (*)(const void *a, const void *b, uint64_t *dst);

/* The ErrorBits of the lanes in `mask` alone: asked only when the above are not 0. */
using CheckFn = uint32_t (*)(const void *a, const void *b, const uint64_t *mask);

/* How a pattern is looked for. */
struct TextSearch
{
	const TextPattern *pattern;
	bool		by_range;		/* the literal of its piece `search` is looked for in all images of a vector at once, */
	bool		contains;		/* and is all that a match needs */
	uint16_t	rare[2];		/* which of its bytes are seldom in texts */
};

TextSearch	text_search(const TextPattern *pattern);

/* With fewer lanes the images between them are not worth reading. */
constexpr uint32_t TEXT_RANGE_LANES = CPU_VECTOR_ROWS / 4;

struct Kernels
{
	const char *level;

	/* nullptr when the opcode does not take the type. `checked` false: no overflow is possible. */
	BinaryFn	(*binary)(Opcode opcode, Type type, OperandForm form, bool checked);
	UnaryFn		(*unary)(Opcode opcode, Type type, bool checked);
	UnaryFn		(*cast)(Type to, Type from);	/* neither is Bool */
	UnaryFn		(*field)(Opcode opcode, DateField field, bool checked);
	CompareFn	(*compare)(Opcode opcode, Type type, OperandForm form);	/* VV or VC; not Bool */

	/* dst[i] = lo <= codes[i] <= lo + span (unsigned, wrapping), for a code of 1, 2, 4 or 8 bytes */
	void		(*range_test)(int width, const void *codes, uint64_t lo, uint64_t span, uint64_t *dst);
	/* dst[i] = base + codes[i] as int32_t (reg_width 4) or int64_t (8); `sign`: codes are signed */
	void		(*decode)(int width, int reg_width, bool sign, const void *codes, int64_t base, void *dst);
	/* bytes (0 or not) to bits and back to values 0 and 1 of the type */
	void		(*bits_from_bytes)(const uint8_t *bytes, uint64_t *dst);
	void		(*bits_to_values)(Type type, const uint64_t *bits, void *dst);

	/* dst[i] = mask[i] ? a[i] : b[i] */
	void		(*blend)(int reg_width, const uint64_t *mask, const void *a, const void *b, void *dst);

	/* dst[i] = values[codes[i]], of the width; the first entry for codes that are not less than n (> 0), as unsigned ones */
	void		(*lookup)(int width, const int32_t *codes, const void *values, uint32_t n, void *dst);
	/* The same of bits: values of Bool as bytes, or a bitmap, to a bitmap. */
	void		(*lookup_bytes)(const int32_t *codes, const uint8_t *values, uint32_t n, uint64_t *dst);
	void		(*lookup_bits)(const int32_t *codes, const uint64_t *bits, uint32_t n, uint64_t *dst);

	/* dst[i] = ts[i] shifted; the errors of all lanes */
	uint32_t	(*zone_shift)(const int64_t *ts, const ZoneTable &table, int64_t *dst);

	uint32_t	(*count)(const uint64_t *mask);
	/* Row numbers of the set bits; returns how many. */
	uint32_t	(*select)(const uint64_t *mask, uint16_t *rows);
	/* Values of the set bits, packed to `dst`, which takes exactly that many; returns how many. */
	uint32_t	(*compress)(int reg_width, const uint64_t *mask, const void *values, void *dst);

	/* Sums of the rows in mask: unsigned codes of 1, 2 or 4 bytes; signed values. */
	uint64_t	(*sum_codes)(int width, const void *codes, const uint64_t *mask);
	int64_t		(*sum_int32)(const int32_t *v, const uint64_t *mask);
	int128		(*sum_int64)(const int64_t *v, const uint64_t *mask);

	/* Extremes of all rows (the caller has blended); floats by their ordered keys. */
	int64_t		(*extreme)(int reg_width, bool max, const void *v);
	/* keys that order as PostgreSQL does: -0 just below 0, NaN (canonical) above all */
	void		(*float_keys)(Type type, const void *v, void *keys);

	/*
	 * Doubles of the rows in mask, 0 elsewhere; returns the greatest magnitude's
	 * bits (infinity and NaN show as such).
	 */
	uint64_t	(*sum_prepare)(Type type, const void *v, const uint64_t *mask, double *dst);
	/*
	 * Splits x[] at the grid of `magic` = 3 * 2^e, |x| <= 2^e: returns the sum of the
	 * parts that are multiples of 2^(e - 51), in these units, and leaves the
	 * rest in x[]; *rest is 0 if nothing is left.
	 */
	int64_t		(*sum_level)(double *x, double magic, uint64_t *rest);

	/* keys[i] = the value, sign-extended, or its canonical bits */
	void		(*group_keys)(Type type, const void *v, uint64_t *keys);
	/* h = mix(h, key) */
	void		(*hash_step)(const uint64_t *keys, uint64_t *hashes);
	/* index[i] += min(v[i] - lo, top) * stride */
	void		(*dense_step)(int reg_width, const void *v, int64_t lo, uint32_t top, uint32_t stride, uint32_t *index);
	/* rows[i] = table + (index[i] * replicas + i % replicas) * row_bytes */
	void		(*dense_rows)(const uint32_t *index, char *table, uint32_t replicas, uint32_t row_bytes, char **rows);

	/* Which of n lanes (ascending, not null) match; codes: places among the images, of 0, 1, 2 or 4 bytes */
	void		(*text_match)(const TextSearch &search, const TextImages &images, int width, const void *codes,
							  const uint16_t *lanes, uint32_t n, uint64_t *dst);
	/* The parts of these lanes; their errors */
	uint32_t	(*text_part)(const TextPart &part, const TextImages &images, int width, const void *codes,
							 const uint16_t *lanes, uint32_t n, int64_t *dst);
};

/* The best level that this machine has, or that limit_cpu_kernels() left. */
const Kernels *cpu_kernels();

/* For tests: at most this level (0 baseline, 1 x86-64-v3, 2 x86-64-v4). */
void		limit_cpu_kernels(int level);

CheckFn		check_binary(Opcode opcode, Type type, OperandForm form);
CheckFn		check_unary(Opcode opcode, Type type);
CheckFn		check_cast(Type to, Type from);
CheckFn		check_field(Opcode opcode, DateField field);

extern const Kernels kernels_base;
#if defined(__x86_64__)
extern const Kernels kernels_v3;
extern const Kernels kernels_v4;
#endif

}  // namespace gpuvm

#endif
