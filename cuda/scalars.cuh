/*
 * scalars.cuh: the opcode table at compile time, and the scalar function of each
 * elementwise opcode: those of vm/semantics.h, the only rules.
 */
#ifndef GPUVM_CUDA_SCALARS_CUH
#define GPUVM_CUDA_SCALARS_CUH

#include "machine.cuh"

namespace gpuvm {
namespace cuda {

using sem::reg_t;

GPUVM_HD constexpr OpForm
form_of(Opcode o)
{
	constexpr OpForm forms[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) OpForm::form,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
	};
	return forms[static_cast<int>(o)];
}

GPUVM_HD constexpr uint32_t
errors_of(Opcode o)
{
	constexpr uint32_t errors[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) errors,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
	};
	return errors[static_cast<int>(o)];
}

GPUVM_HD constexpr bool
accepts(const char *types, Type t)
{
	char		letter = t == Type::Bool ? 'B' : t == Type::I16 ? 'S' : t == Type::I32 ? 'I' : t == Type::I64 ? 'L'
		: t == Type::F32 ? 'F' : t == Type::F64 ? 'D' : t == Type::RowId ? 'R' : '-';

	for (; *types; types++)
		if (*types == letter)
			return true;
	return false;
}

/* The scalar function of an elementwise opcode. */
template <Opcode O, Type T, typename A>
GPUVM_D auto
apply1(A a, uint32_t *err)
{
	if constexpr (O == Opcode::DateToTimestamp) return sem::DateToTimestamp(a, err);
	else if constexpr (O == Opcode::DateToTimestampSat) return sem::DateToTimestampSat(a, err);
	else if constexpr (O == Opcode::TimestampToDate) return sem::TimestampToDate(a, err);
	else if constexpr (O == Opcode::Neg) return sem::Neg<T>(a, err);
	else if constexpr (O == Opcode::Abs) return sem::Abs<T>(a, err);
	else
	{
		static_assert(O == Opcode::BitNot, "a UNARY opcode has a function in semantics.h");
		return sem::BitNot<T>(a, err);
	}
}

template <Opcode O, Type T, typename A, typename B>
GPUVM_D auto
apply2(A a, B b, uint32_t *err)
{
	if constexpr (O == Opcode::Add) return sem::Add<T>(a, b, err);
	else if constexpr (O == Opcode::Sub) return sem::Sub<T>(a, b, err);
	else if constexpr (O == Opcode::Mul) return sem::Mul<T>(a, b, err);
	else if constexpr (O == Opcode::Div) return sem::Div<T>(a, b, err);
	else if constexpr (O == Opcode::Remainder) return sem::Remainder<T>(a, b, err);
	else if constexpr (O == Opcode::BitAnd) return sem::BitAnd<T>(a, b, err);
	else if constexpr (O == Opcode::BitOr) return sem::BitOr<T>(a, b, err);
	else if constexpr (O == Opcode::BitXor) return sem::BitXor<T>(a, b, err);
	else if constexpr (O == Opcode::ShiftLeft) return sem::ShiftLeft<T>(a, b, err);
	else if constexpr (O == Opcode::ShiftRight) return sem::ShiftRight<T>(a, b, err);
	else if constexpr (O == Opcode::DateAdd) return sem::DateAdd<T>(a, b, err);
	else if constexpr (O == Opcode::DateSub) return sem::DateSub<T>(a, b, err);
	else
	{
		static_assert(O == Opcode::DateDiff, "a BINARY or SHIFT opcode has a function in semantics.h");
		return sem::DateDiff<T>(a, b, err);
	}
}

template <Opcode O, Type T, typename V>
GPUVM_D bool
compare(V a, V b)
{
	if constexpr (O == Opcode::Eq) return sem::Eq<T>(a, b);
	else if constexpr (O == Opcode::Ne) return sem::Ne<T>(a, b);
	else if constexpr (O == Opcode::Lt) return sem::Lt<T>(a, b);
	else if constexpr (O == Opcode::Le) return sem::Le<T>(a, b);
	else if constexpr (O == Opcode::Gt) return sem::Gt<T>(a, b);
	else
	{
		static_assert(O == Opcode::Ge, "a COMPARE opcode has a function in semantics.h");
		return sem::Ge<T>(a, b);
	}
}

/*
 * The same for a row whose errors are looked for only if `doubt` says so after
 * some rows: it may raise doubt without cause, never miss an error. Integer
 * sums and 64-bit products raise it in the sign bit, the others in any bit.
 */
template <Opcode O, Type T, typename A, typename B>
GPUVM_D auto
apply2_in_doubt(A a, B b, uint32_t *doubt)
{
	constexpr bool add = O == Opcode::Add, sub = O == Opcode::Sub;

	if constexpr ((add || sub) && (T == Type::I32 || T == Type::I64))
	{
		uint32_t	ignored = 0;
		A			r = apply2<O, T>(a, b, &ignored);
		A			over = (add ? a ^ r : a ^ b) & (add ? b ^ r : a ^ r);

		*doubt |= static_cast<uint32_t>(static_cast<std::make_unsigned_t<A>>(over) >> (sizeof(A) * 8 - 32));
		return r;
	}
	else if constexpr (O == Opcode::Mul && T == Type::I64)
	{
		/* Two conversions and the product round by less than 2^-22: 2^63 times (1 - 2^-20) is safely below an overflow. */
		float		size = fabsf(static_cast<float>(a)) * fabsf(static_cast<float>(b));

		*doubt |= static_cast<uint32_t>(__float_as_int(0x1.ffffep62f) - __float_as_int(size));
		return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
	}
	else
		return apply2<O, T>(a, b, doubt);
}

template <Opcode O, Type T>
GPUVM_D bool
doubtful(uint32_t doubt)
{
	constexpr bool by_sign = ((O == Opcode::Add || O == Opcode::Sub) && (T == Type::I32 || T == Type::I64)) ||
		(O == Opcode::Mul && T == Type::I64);

	return by_sign ? static_cast<int32_t>(doubt) < 0 : doubt != 0;
}

/* Rows 4k .. 4k + 3 whose bit of `active` is set keep their errors. */
GPUVM_D uint32_t
live_errors(const uint32_t (&e)[4], uint32_t active, int k)
{
	uint32_t	err = 0;

#pragma unroll
	for (int i = 0; i < 4; i++)
		err |= active >> (4 * k + i) & 1 ? e[i] : 0;
	return err;
}

/* Vectors of four rows whose loads are issued together: hides shared memory's latency without spilling. */
template <typename V, int R> constexpr int group_of = sizeof(V) == 4 && R == 8 ? 2 : 1;

}  // namespace cuda
}  // namespace gpuvm

#endif
