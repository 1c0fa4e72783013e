/*
 * cpu_kernels.cc: chooses the kernels for this machine, and holds the check
 * functions: the error bits of single lanes, asked only when a kernel met an
 * error somewhere in its vector.
 */
#include "vm/cpu_kernels.h"

#include <atomic>

#include "vm/semantics.h"

namespace gpuvm {

namespace {

#include "vm/cpu_opcodes.h"

template <typename F>
uint32_t
each_lane(const uint64_t *mask, F f)
{
	uint32_t	err = 0;

	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = mask[w]; m != 0; m &= m - 1)
			f(64 * w + __builtin_ctzll(m), &err);
	return err;
}

template <typename Element, Type T, OperandForm form>
uint32_t
check_binary_lanes(const void *a, const void *b, const uint64_t *mask)
{
	using A = typename Element::template In<T>;
	using B = typename Element::template In2<T>;

	return each_lane(mask, [=](int i, uint32_t *err) {
		Element::template f<T>(static_cast<const A *>(a)[form == OperandForm::CV ? 0 : i],
							   static_cast<const B *>(b)[form == OperandForm::VC ? 0 : i], err);
	});
}

template <typename Element, Type T>
uint32_t
check_unary_lanes(const void *a, const void *, const uint64_t *mask)
{
	using A = typename Element::template In<T>;

	return each_lane(mask, [=](int i, uint32_t *err) { Element::template f<T>(static_cast<const A *>(a)[i], err); });
}

template <Type To, Type From>
uint32_t
check_cast_lanes(const void *a, const void *, const uint64_t *mask)
{
	return each_lane(mask, [=](int i, uint32_t *err) { sem::Cast<To, From>(static_cast<const sem::reg_t<From> *>(a)[i], err); });
}

template <typename Element>
struct PickCheckBinary
{
	OperandForm form;

	template <Type T>
	CheckFn operator()() const
	{
		if constexpr (takes(Element::types, letter_of<T>))
			return form == OperandForm::VV ? check_binary_lanes<Element, T, OperandForm::VV>
				: form == OperandForm::VC ? check_binary_lanes<Element, T, OperandForm::VC>
				: check_binary_lanes<Element, T, OperandForm::CV>;
		else
			return nullptr;
	}
};

template <typename Element>
struct PickCheckUnary
{
	template <Type T>
	CheckFn operator()() const
	{
		if constexpr (takes(Element::types, letter_of<T>))
			return check_unary_lanes<Element, T>;
		else
			return nullptr;
	}
};

template <Type To>
struct PickCheckCast
{
	template <Type From> CheckFn operator()() const { return check_cast_lanes<To, From>; }
};

struct PickCheckCastTo
{
	Type		from;

	template <Type To> CheckFn operator()() const { return with_type<CheckFn>(from, PickCheckCast<To>{}); }
};

std::atomic<int> kernel_limit{2};

}  // namespace

#define GPUVM_CHECK_BINARY(n) case Opcode::n: return with_type<CheckFn>(type, PickCheckBinary<n##Element>{form});
#define GPUVM_CHECK_UNARY(n) case Opcode::n: return with_type<CheckFn>(type, PickCheckUnary<n##Element>{});

CheckFn
check_binary(Opcode opcode, Type type, OperandForm form)
{
	switch (opcode)
	{
		GPUVM_CHECK_BINARY(Add)
		GPUVM_CHECK_BINARY(Sub)
		GPUVM_CHECK_BINARY(Mul)
		GPUVM_CHECK_BINARY(Div)
		GPUVM_CHECK_BINARY(Remainder)
		GPUVM_CHECK_BINARY(DateAdd)
		GPUVM_CHECK_BINARY(DateSub)
		GPUVM_CHECK_BINARY(DateDiff)
		GPUVM_CHECK_BINARY(DivRound)
		GPUVM_CHECK_BINARY(DivFloor)
		GPUVM_CHECK_BINARY(Bound)
		GPUVM_CHECK_BINARY(TimestampAddMonths)
		GPUVM_CHECK_BINARY(TimestampAddDays)
		GPUVM_CHECK_BINARY(TimestampAddMicros)
		GPUVM_CHECK_BINARY(Power)
		default: return nullptr;
	}
}

CheckFn
check_unary(Opcode opcode, Type type)
{
	switch (opcode)
	{
		GPUVM_CHECK_UNARY(Neg)
		GPUVM_CHECK_UNARY(Abs)
		GPUVM_CHECK_UNARY(DateToTimestamp)
		GPUVM_CHECK_UNARY(Sqrt)
		GPUVM_CHECK_UNARY(Exp)
		GPUVM_CHECK_UNARY(Ln)
		GPUVM_CHECK_UNARY(Log10)
		GPUVM_CHECK_UNARY(Sin)
		GPUVM_CHECK_UNARY(Cos)
		GPUVM_CHECK_UNARY(Tan)
		GPUVM_CHECK_UNARY(Cot)
		GPUVM_CHECK_UNARY(Asin)
		GPUVM_CHECK_UNARY(Acos)
		GPUVM_CHECK_UNARY(Sinh)
		GPUVM_CHECK_UNARY(Acosh)
		GPUVM_CHECK_UNARY(Atanh)
		default: return nullptr;
	}
}

CheckFn
check_cast(Type to, Type from)
{
	return with_type<CheckFn>(to, PickCheckCastTo{from});
}

struct CheckPart
{
	template <DateField field> static int64_t f(int64_t ts, uint32_t *err) { return sem::DatePart(ts, field, err); }
};

struct CheckTrunc
{
	template <DateField field> static int64_t f(int64_t ts, uint32_t *err) { return sem::DateTrunc(ts, field, err); }
};

template <typename Element>
struct PickCheckField
{
	template <DateField field>
	CheckFn operator()() const
	{
		return [](const void *a, const void *, const uint64_t *mask) {
			return each_lane(mask, [a](int i, uint32_t *err) { Element::template f<field>(static_cast<const int64_t *>(a)[i], err); });
		};
	}
};

CheckFn
check_field(Opcode opcode, DateField field)
{
	return opcode == Opcode::DatePart ? with_field<CheckFn>(field, PickCheckField<CheckPart>{})
		: with_field<CheckFn>(field, PickCheckField<CheckTrunc>{});
}

void
limit_cpu_kernels(int level)
{
	kernel_limit = level;
}

const Kernels *
cpu_kernels()
{
#if defined(__x86_64__)
	const int	limit = kernel_limit;

	if (limit >= 2 && __builtin_cpu_supports("x86-64-v4"))
		return &kernels_v4;
	if (limit >= 1 && __builtin_cpu_supports("x86-64-v3"))
		return &kernels_v3;
#endif
	return &kernels_base;
}

/* The rarer a byte is in texts, the greater. */
static int
rareness(unsigned char c)
{
	static const char common[] = " etaoinsrhldcumfpgwybvk";
	const char *at = static_cast<const char *>(memchr(common, c, sizeof(common) - 1));

	return at ? static_cast<int>(at - common) : static_cast<int>(sizeof(common));
}

TextSearch
text_search(const TextPattern *pattern)
{
	TextSearch	search = {pattern, false, false, {0, 0}};

	if (pattern->kind != TextMatchKind::Like)
		return search;

	const TextPiece *pieces = pattern->pieces();
	const TextPiece &piece = pieces[pattern->search];
	const unsigned char *bytes = pattern->bytes() + piece.first;

	/* what begins with bytes of its own is refused by these */
	search.by_range = piece.len > 0 && pieces[0].any;
	search.contains = search.by_range && (pattern->flags & TEXT_TRIM_ZEROES) == 0 && pattern->npieces == 2 && pieces[0].skip == 0 && pieces[1].any && pieces[1].skip == 0;
	for (uint16_t i = 1; i < piece.len; i++)
		if (rareness(bytes[i]) > rareness(bytes[search.rare[0]]))
			search.rare[0] = i;

	/* the other is not beside it, as "qu" says no more than "q" */
	search.rare[1] = search.rare[0] < piece.len / 2 ? static_cast<uint16_t>(piece.len - 1) : 0;
	for (uint16_t i = 0; i < piece.len; i++)
		if (std::abs(i - search.rare[0]) > 1 && rareness(bytes[i]) > rareness(bytes[search.rare[1]]))
			search.rare[1] = i;
	return search;
}

}  // namespace gpuvm
