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

#ifdef GPUVM_EMULATED
#define shared_memory (gpuvm_emulated::built_ins.dynamic_shared)
#else
extern __shared__ __align__(128) char shared_memory[];
#endif

template <int R>
struct Machine
{
	uint32_t	region;			/* offset of the warp's region in shared_memory */
	uint32_t	lane;
	uint32_t	staged_lane;	/* lane + 32 * tile within the stage */
	uint32_t	live;
};

/* What an operation out of line may change outside of the region. */
struct Lanes
{
	uint32_t	live;
	uint32_t	any_live;
};

template <int R> constexpr uint32_t all_rows = (1u << R) - 1;

/*
 * An operation in shared memory. Its head, which all cases need, comes in one
 * 16-byte load; the rest is loaded where it is used.
 */
struct OpView
{
	uint4		head;
	uint32_t	at;

	GPUVM_D explicit OpView(uint32_t pc) : at(pc * static_cast<uint32_t>(sizeof(DeviceOp)))
	{
		head = *reinterpret_cast<const uint4 *>(shared_memory + at);
	}
	GPUVM_D uint32_t word(int i) const { return *reinterpret_cast<const uint32_t *>(shared_memory + at + i * 4); }
	GPUVM_D uint32_t code() const { return head.x & 0xffff; }
	GPUVM_D uint32_t flags() const { return head.x >> 16; }		/* bits above the flags are aux's */
	GPUVM_D uint32_t aux() const { return head.x >> 24; }
	GPUVM_D uint32_t dst() const { return head.y & 0xffff; }
	GPUVM_D uint32_t a() const { return head.y >> 16; }
	GPUVM_D uint32_t b() const { return head.z & 0xffff; }
	GPUVM_D uint32_t dst_null() const { return head.z >> 16; }
	GPUVM_D uint32_t a_null() const { return head.w & 0xffff; }
	GPUVM_D uint32_t b_null() const { return head.w >> 16; }
	GPUVM_D uint32_t c() const { return word(4) & 0xffff; }
	GPUVM_D uint32_t c_null() const { return word(4) >> 16; }
	GPUVM_D uint32_t pending() const { return word(5) & 0xffff; }
	GPUVM_D uint32_t skip() const { return word(5) >> 16; }
	GPUVM_D uint32_t column() const { return word(6) & 0xffff; }
	GPUVM_D uint32_t count() const { return word(6) >> 16; }
	GPUVM_D int64_t imm_a() const { return *reinterpret_cast<const int64_t *>(shared_memory + at + 32); }
	GPUVM_D int64_t imm_b() const { return *reinterpret_cast<const int64_t *>(shared_memory + at + 40); }
};

template <typename V>
GPUVM_D V
from_imm(int64_t imm)
{
	V			v;

	memcpy(&v, &imm, sizeof(V));
	return v;
}

/* The lane's R values of type V. */
template <typename V, int R>
GPUVM_D char *
place_of(const Machine<R> &m, uint32_t operand)
{
	return shared_memory + m.region + operand + m.lane * (R * static_cast<uint32_t>(sizeof(V)));
}

/* The same of a staged column. */
template <typename V, int R>
GPUVM_D const char *
staged_place_of(const Machine<R> &m, uint32_t operand)
{
	return shared_memory + m.region + operand + m.staged_lane * (R * static_cast<uint32_t>(sizeof(V)));
}

/*
 * The order in which a lane visits its values of type V. A lane's values are
 * 16-byte chunks side by side, so eight lanes that all begin with their first
 * chunk meet in the same banks. In this order they do not: visit j is of row
 * j ^ (x / sizeof(V)), with an x that differs between lanes of the same banks.
 * Operations that combine widths, or whose rows must come in order, use none.
 */
template <typename V, int R>
struct Order
{
	static constexpr uint32_t bytes = R * sizeof(V);
	uint32_t	x;				/* what offsets within the lane's values are XORed with */

	GPUVM_D explicit Order(const Machine<R> &m) : x(m.lane * (bytes / 8) & (bytes - 16)) {}

	/* Bits by row as bits by visit, and the reverse. */
	GPUVM_D uint32_t turn(uint32_t bits) const
	{
#pragma unroll
		for (uint32_t chunk = 16; chunk < bytes; chunk *= 2)
		{
			constexpr uint32_t ones = 0xffffffff;
			uint32_t	n = chunk / sizeof(V);
			uint32_t	low = n == 2 ? 0x33333333u : n == 4 ? 0x0f0f0f0fu : 0x00ff00ffu;
			uint32_t	turned = (bits & low) << n | (bits >> n & low);

			bits = x & chunk ? turned & (ones >> (32 - R)) : bits;
		}
		return bits;
	}
};

/* Four rows of type V: visits 4k .. 4k + 3 of the lane; x is the Order's, 0 for rows as they lie. */
template <typename V>
GPUVM_D void
load4(const char *at, int k, uint32_t x, V (&v)[4])
{
	if constexpr (sizeof(V) == 4)
		memcpy(v, __builtin_assume_aligned(at + ((k * 16) ^ x), 16), 16);
	else
	{
		memcpy(v, __builtin_assume_aligned(at + ((k * 32) ^ x), 16), 16);
		memcpy(v + 2, __builtin_assume_aligned(at + ((k * 32 + 16) ^ x), 16), 16);
	}
}

template <typename V>
GPUVM_D void
store4(char *at, int k, uint32_t x, const V (&v)[4])
{
	if constexpr (sizeof(V) == 4)
		memcpy(__builtin_assume_aligned(at + ((k * 16) ^ x), 16), v, 16);
	else
	{
		memcpy(__builtin_assume_aligned(at + ((k * 32) ^ x), 16), v, 16);
		memcpy(__builtin_assume_aligned(at + ((k * 32 + 16) ^ x), 16), v + 2, 16);
	}
}

/* What `p` points to lies in global memory, which makes an atomic one instruction. */
template <typename T>
GPUVM_D T *
global_memory(T *p)
{
#ifndef GPUVM_EMULATED
	__builtin_assume(__isGlobal(p));
#endif
	return p;
}

/* -- staged columns ------------------------------------------------------------ */

template <int R>
GPUVM_D StageColumn *
stage_column(const Machine<R> &m, uint32_t column)
{
	return reinterpret_cast<StageColumn *>(shared_memory + m.region + sizeof(RegionHeader)) + column;
}

template <int R>
GPUVM_D RegionHeader *
region_header(const Machine<R> &m)
{
	return reinterpret_cast<RegionHeader *>(shared_memory + m.region);
}

/* An operand that is in memory or an immediate. */
template <typename V, int R>
struct Operand
{
	const char *at;
	bool		is_imm;
	V			imm;

	GPUVM_D Operand(const Machine<R> &m, uint32_t operand, bool immediate, int64_t value)
		: at(place_of<V>(m, operand)), is_imm(immediate), imm(from_imm<V>(value)) {}

	GPUVM_D void get(int k, uint32_t x, V (&v)[4]) const
	{
		if (is_imm)
			v[0] = v[1] = v[2] = v[3] = imm;
		else
			load4(at, k, x, v);
	}
	/* Visit j alone. */
	GPUVM_D V get_one(int j, uint32_t x) const
	{
		return is_imm ? imm : *reinterpret_cast<const V *>(at + ((j * static_cast<uint32_t>(sizeof(V))) ^ x));
	}
};

template <typename V, int R>
GPUVM_D Operand<V, R>
operand_a(const Machine<R> &m, const OpView &op)
{
	bool		imm = op.flags() & DOP_A_IMM;

	return Operand<V, R>(m, op.a(), imm, imm ? op.imm_a() : 0);
}

template <typename V, int R>
GPUVM_D Operand<V, R>
operand_b(const Machine<R> &m, const OpView &op)
{
	bool		imm = op.flags() & DOP_B_IMM;

	return Operand<V, R>(m, op.b(), imm, imm ? op.imm_b() : 0);
}

/*
 * An operand of an operation on I32 that may also be a staged column as the tablet
 * at hand stores it (OPERAND_STAGED): its codes are widened where they are read,
 * four rows from a word or two.
 */
template <int R>
struct CodedOperand
{
	const char *at;
	uint32_t	width;			/* of what is read: 1, 2, 4, codes above imm (which is 0 for values); 0, imm for all */
	int32_t		imm;

	GPUVM_D CodedOperand(const Machine<R> &m, uint32_t operand, uint32_t column, bool immediate, int64_t value)
	{
		if (operand & OPERAND_STAGED)
		{
			const StageColumn *col = stage_column(m, column);

			width = col->width;
			imm = static_cast<int32_t>(col->base);
			at = shared_memory + m.region + (operand & 0x7fff) + m.staged_lane * (R * width);
		}
		else
		{
			width = immediate ? 0 : 4;
			imm = from_imm<int32_t>(value);
			at = place_of<int32_t>(m, operand);
		}
	}
	GPUVM_D void get(int k, uint32_t x, int32_t (&v)[4]) const
	{
		if (width == 4)
		{
			load4(at, k, x, v);
#pragma unroll
			for (int i = 0; i < 4; i++)
				v[i] = static_cast<int32_t>(static_cast<uint32_t>(v[i]) + static_cast<uint32_t>(imm));
		}
		else if (width == 0)
			v[0] = v[1] = v[2] = v[3] = imm;
		else if (width == 1)
		{
			uint32_t	codes = *reinterpret_cast<const uint32_t *>(at + (((k * 16) ^ x) >> 2));

#pragma unroll
			for (int i = 0; i < 4; i++)
				v[i] = imm + static_cast<int32_t>(codes >> (8 * i) & 0xff);
		}
		else
		{
			uint2		codes = *reinterpret_cast<const uint2 *>(at + (((k * 16) ^ x) >> 1));

			v[0] = imm + static_cast<int32_t>(codes.x & 0xffff);
			v[1] = imm + static_cast<int32_t>(codes.x >> 16);
			v[2] = imm + static_cast<int32_t>(codes.y & 0xffff);
			v[3] = imm + static_cast<int32_t>(codes.y >> 16);
		}
	}
	/* Visit j alone. */
	GPUVM_D int32_t get_one(int j, uint32_t x) const
	{
		uint32_t	row = j ^ (x / 4);

		return static_cast<int32_t>(static_cast<uint32_t>(imm) + (width == 4 ? *reinterpret_cast<const uint32_t *>(at + row * 4) : width == 0 ? 0
																  : width == 1 ? *reinterpret_cast<const uint8_t *>(at + row)
																  : *reinterpret_cast<const uint16_t *>(at + row * 2)));
	}
};

/* CODED: the operation may read codes. */
template <bool CODED, typename V, int R>
GPUVM_D auto
source_a(const Machine<R> &m, const OpView &op)
{
	bool		imm = op.flags() & DOP_A_IMM;

	if constexpr (CODED)
		return CodedOperand<R>(m, op.a(), op.count(), imm, imm ? op.imm_a() : 0);
	else
		return operand_a<V>(m, op);
}

template <bool CODED, typename V, int R>
GPUVM_D auto
source_b(const Machine<R> &m, const OpView &op)
{
	bool		imm = op.flags() & DOP_B_IMM;

	if constexpr (CODED)
		return CodedOperand<R>(m, op.b(), op.c(), imm, imm ? op.imm_b() : 0);
	else
		return operand_b<V>(m, op);
}

/* -- masks: R bits a lane; no null mask reads as no nulls --------------------- */

template <int R>
GPUVM_D uint32_t
mask_read(const Machine<R> &m, uint32_t operand)
{
	if (operand == OPERAND_NONE)
		return 0;

	const char *at = shared_memory + m.region + (operand & 0x7fff);
	bool		staged = operand & OPERAND_STAGED;
	uint32_t	lane = staged ? m.staged_lane : m.lane;

	if constexpr (R == 16)
		return *reinterpret_cast<const uint16_t *>(at + lane * 2);
	else if constexpr (R == 8)
		return *reinterpret_cast<const uint8_t *>(at + lane);
	else if (staged)
		return *reinterpret_cast<const uint8_t *>(at + lane / 2) >> (lane % 2 * 4) & 15;
	else
		return *reinterpret_cast<const uint8_t *>(at + lane);
}

template <int R>
GPUVM_D void
mask_write(const Machine<R> &m, uint32_t slot, uint32_t bits)
{
	char	   *at = shared_memory + m.region + slot;

	if (slot == OPERAND_NONE)
		return;
	if constexpr (R == 16)
		*reinterpret_cast<uint16_t *>(at + m.lane * 2) = static_cast<uint16_t>(bits);
	else
		*reinterpret_cast<uint8_t *>(at + m.lane) = static_cast<uint8_t>(bits);
}

/* -- errors, codes of staged columns --------------------------------------------- */

/* Errors are rare, so the loop keeps no hardware register for them. */
template <int R>
GPUVM_D void
raise(const Machine<R> &m, uint32_t errors)
{
	if (errors)
		atomicOr(&region_header(m)->errors, errors);
}

/* The lane's R values of W < 4 bytes each, as words. */
template <int R, int W>
struct Codes
{
	static constexpr int WORDS = R * W / 4;
	uint32_t	word[WORDS];

	GPUVM_D Codes(const Machine<R> &m, uint32_t operand)
	{
		const char *at = shared_memory + m.region + operand + m.staged_lane * (R * W);

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
	/* Code i, zero-extended. */
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
