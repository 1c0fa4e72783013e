/*
 * machine.cuh: a warp's registers: operands, masks and staged columns in its
 * region of shared memory (see device_program.h for the layout).
 */
#ifndef GPUVM_CUDA_MACHINE_CUH
#define GPUVM_CUDA_MACHINE_CUH

#include "device_program.h"
#include "vm/semantics.h"

namespace gpuvm {
namespace cuda {

#define GPUVM_D __device__ __forceinline__

extern __shared__ __align__(128) char shared_regions[];

template <int R>
struct Machine
{
	uint32_t	region;			/* offset of the warp's region in shared_regions */
	uint32_t	lane;
	uint32_t	stage;			/* offset of the current stage from the region */
	uint32_t	tile;			/* within the stage */
	uint32_t	live;
	uint32_t	err;
};

template <int R> constexpr uint32_t all_rows = R == 32 ? ~0u : (1u << R) - 1;

template <typename V>
GPUVM_D V
from_imm(int64_t imm)
{
	V			v;

	memcpy(&v, &imm, sizeof(V));
	return v;
}

/* Where four rows' values of an operand are: vectors of 16 bytes, `stride` apart. */
struct Source
{
	const char *at;
	uint32_t	stride;
};

template <typename V, int R>
GPUVM_D Source
source(const Machine<R> &m, uint16_t operand)
{
	uint32_t	at = m.region + (operand & 0x7fff) * 16u;

	if (operand & OPERAND_STAGED)
		return Source{shared_regions + at + m.stage + (m.tile * 32 + m.lane) * (R * static_cast<uint32_t>(sizeof(V))), 16};
	return Source{shared_regions + at + m.lane * 16, 512};
}

/* Four rows of type V: rows 4k .. 4k + 3 of the lane. */
template <typename V>
GPUVM_D void
load4(const Source &s, int k, V (&v)[4])
{
	if constexpr (sizeof(V) == 4)
		memcpy(v, __builtin_assume_aligned(s.at + k * s.stride, 16), 16);
	else
	{
		memcpy(v, __builtin_assume_aligned(s.at + (2 * k) * s.stride, 16), 16);
		memcpy(v + 2, __builtin_assume_aligned(s.at + (2 * k + 1) * s.stride, 16), 16);
	}
}

template <typename V>
GPUVM_D void
store4(const Source &s, int k, const V (&v)[4])
{
	char	   *at = const_cast<char *>(s.at);

	if constexpr (sizeof(V) == 4)
		memcpy(__builtin_assume_aligned(at + k * s.stride, 16), v, 16);
	else
	{
		memcpy(__builtin_assume_aligned(at + (2 * k) * s.stride, 16), v, 16);
		memcpy(__builtin_assume_aligned(at + (2 * k + 1) * s.stride, 16), v + 2, 16);
	}
}

/* A destination: a slot, or the staged column that an operand leaves for it. */
template <typename V, int R>
GPUVM_D void
store4(const Machine<R> &m, uint16_t dst, int k, const V (&v)[4])
{
	store4(source<V>(m, dst), k, v);
}

/* An operand that is a slot, a staged column or an immediate. */
template <typename V, int R>
struct Operand
{
	Source		from;
	bool		is_imm;
	V			imm;

	GPUVM_D Operand(const Machine<R> &m, uint16_t operand, bool immediate, int64_t value)
		: from(source<V>(m, operand)), is_imm(immediate), imm(from_imm<V>(value)) {}

	GPUVM_D void get(int k, V (&v)[4]) const
	{
		if (is_imm)
			v[0] = v[1] = v[2] = v[3] = imm;
		else
			load4(from, k, v);
	}
};

/* -- masks: R bits a lane; no null mask reads as no nulls --------------------- */

template <int R>
GPUVM_D uint32_t
mask_read(const Machine<R> &m, uint16_t operand)
{
	if (operand == OPERAND_NONE)
		return 0;

	uint32_t	at = m.region + (operand & 0x7fff) * 16u;

	if (operand & OPERAND_STAGED)
	{
		uint32_t	lane = m.tile * 32 + m.lane;

		at += m.stage;
		if constexpr (R == 16)
			return *reinterpret_cast<const uint16_t *>(shared_regions + at + lane * 2);
		else if constexpr (R == 8)
			return *reinterpret_cast<const uint8_t *>(shared_regions + at + lane);
		else
			return *reinterpret_cast<const uint8_t *>(shared_regions + at + lane / 2) >> (lane % 2 * 4) & 15;
	}
	if constexpr (R == 16)
		return *reinterpret_cast<const uint16_t *>(shared_regions + at + m.lane * 2);
	else
		return *reinterpret_cast<const uint8_t *>(shared_regions + at + m.lane);
}

template <int R>
GPUVM_D void
mask_write(const Machine<R> &m, uint16_t slot, uint32_t bits)
{
	uint32_t	at = m.region + slot * 16u;

	if (slot == OPERAND_NONE)
		return;
	if constexpr (R == 16)
		*reinterpret_cast<uint16_t *>(shared_regions + at + m.lane * 2) = static_cast<uint16_t>(bits);
	else
		*reinterpret_cast<uint8_t *>(shared_regions + at + m.lane) = static_cast<uint8_t>(bits);
}

/* -- staged columns ------------------------------------------------------------ */

/* The first bytes of a stage; StageColumn[ncolumns] follows. */
struct StageHeader
{
	uint32_t	first_row;		/* of the stage, within its tablet */
	uint32_t	rows;			/* that exist from there on; the last tile may be ragged */
	uint32_t	reserved[2];
};

template <int R>
GPUVM_D StageColumn
stage_column(const Machine<R> &m, uint32_t column)
{
	return *reinterpret_cast<const StageColumn *>(shared_regions + m.region + m.stage + sizeof(StageHeader) +
												  column * sizeof(StageColumn));
}

/* The lane's R values of W bytes each, as words. */
template <int R, int W>
struct Codes
{
	static constexpr int WORDS = R * W / 4;
	uint32_t	word[WORDS];

	GPUVM_D Codes(const Machine<R> &m, uint16_t operand)
	{
		const char *at = shared_regions + m.region + (operand & 0x7fff) * 16u + m.stage + (m.tile * 32 + m.lane) * (R * W);

		if constexpr (WORDS == 1)
			word[0] = *reinterpret_cast<const uint32_t *>(at);
		else if constexpr (WORDS == 2)
			memcpy(word, __builtin_assume_aligned(at, 8), 8);
		else
		{
#pragma unroll
			for (int i = 0; i < WORDS; i += 4)
				memcpy(word + i, __builtin_assume_aligned(at + i * 4, 16), 16);
		}
	}
	/* Code i, zero-extended, for W < 4. */
	GPUVM_D uint32_t get(int i) const
	{
		constexpr int per_word = 4 / W;

		return word[i / per_word] >> (i % per_word * W * 8) & ((1u << (W * 8)) - 1);
	}
	/* Code i shifted to the top of a word: compares unsigned like the code, whatever lies below it. */
	GPUVM_D uint32_t top(int i) const
	{
		constexpr int per_word = 4 / W;

		return word[i / per_word] << ((per_word - 1 - i % per_word) * W * 8);
	}
};

}  // namespace cuda
}  // namespace gpuvm

#endif
