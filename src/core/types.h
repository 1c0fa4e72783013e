/*
 * types.h: the base types shared by every layer, compiled by g++ and nvcc.
 *
 * A Type names how a value behaves, not how it is stored: narrowing belongs to
 * the tablet (tablet/format.h), register classes to the virtual machine.
 */
#ifndef GPUVM_CORE_TYPES_H
#define GPUVM_CORE_TYPES_H

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define GPUVM_HD __host__ __device__ __forceinline__
#else
#define GPUVM_HD inline __attribute__((always_inline))
#endif

namespace gpuvm {

using int128 = __int128;
using uint128 = unsigned __int128;

/*
 * Value types. int2 is I16: its registers are 32 bits wide, its results are
 * checked against 16. date is I32 (days), timestamp and timestamptz are I64
 * (microseconds): what differs from plain integers are the operators, which
 * have opcodes of their own.
 */
enum class Type : uint8_t
{
	None = 0,
	Bool = 1,
	I16 = 2,
	I32 = 3,
	I64 = 4,
	F32 = 5,
	F64 = 6,
	I128 = 7,					/* results of aggregates only */
	RowId = 8,					/* uint32 row position within a tablet */
};

/* Bytes of a value of this type in a register, a parameter or a result. */
GPUVM_HD constexpr int
type_width(Type t)
{
	switch (t)
	{
		case Type::Bool: return 1;
		case Type::I16: return 4;	/* register class i32 */
		case Type::I32: return 4;
		case Type::I64: return 8;
		case Type::F32: return 4;
		case Type::F64: return 8;
		case Type::I128: return 16;
		case Type::RowId: return 4;
		default: return 0;
	}
}

/* Bytes of a value in PostgreSQL, the widest form in which a tablet stores it. */
GPUVM_HD constexpr int
type_natural_width(Type t)
{
	return t == Type::I16 ? 2 : type_width(t);
}

GPUVM_HD constexpr bool
type_is_int(Type t)
{
	return t == Type::I16 || t == Type::I32 || t == Type::I64;
}

GPUVM_HD constexpr bool
type_is_float(Type t)
{
	return t == Type::F32 || t == Type::F64;
}

/*
 * Why a program's result was dropped. The VM never raises: it sets one of these
 * bits when a live, non-null lane meets the condition, and PostgreSQL's own plan
 * runs and raises (or not) in its own words.
 */
enum ErrorBit : uint32_t
{
	ERR_INT_OVERFLOW = 1u << 0,
	ERR_DIVISION_BY_ZERO = 1u << 1,
	ERR_FLOAT_OVERFLOW = 1u << 2,
	ERR_FLOAT_UNDERFLOW = 1u << 3,
	ERR_DATETIME_RANGE = 1u << 4,
	ERR_CAST_RANGE = 1u << 5,
	ERR_AMBIGUOUS_ZERO = 1u << 6,	/* -0 and 0 in one group key, min or max (rule 16) */
	ERR_SUM_OVERFLOW = 1u << 7,		/* a float sum that PostgreSQL might not be able to form */
	ERR_FLOAT_DOMAIN = 1u << 8,		/* of a number that the function has no value for, as the square root of a negative one */
};

}  // namespace gpuvm

#endif
