/*
 * cpu_kernels_impl.h: the kernels' source, compiled for one level. The
 * including file has included every header that this needs before it set its
 * target, and has named the level by GPUVM_LEVEL.
 *
 * Plain loops of fixed length that the compiler vectorises; intrinsics where a
 * bitmap goes in or comes out, because no compiler finds these forms by itself.
 */

namespace gpuvm {
namespace GPUVM_LEVEL {

namespace {

#include "vm/cpu_opcodes.h"

constexpr int N = CPU_VECTOR_ROWS;

/* -- arithmetic -------------------------------------------------------------- */

template <typename Element, Type T, OperandForm form, bool checked>
uint32_t
binary_loop(const void *pa, const void *pb, void *pd)
{
	using A = typename Element::template In<T>;
	using B = typename Element::template In2<T>;
	const A    *__restrict a = static_cast<const A *>(pa);
	const B    *__restrict b = static_cast<const B *>(pb);
	sem::reg_t<T> *__restrict d = static_cast<sem::reg_t<T> *>(pd);
	uint32_t	err = 0;

	for (int i = 0; i < N; i++)
	{
		uint32_t	e = 0;

		d[i] = Element::template f<T>(a[form == OperandForm::CV ? 0 : i], b[form == OperandForm::VC ? 0 : i], &e);
		if (checked)
			err |= e;
	}
	return err;
}

template <typename Element, Type T, bool checked>
uint32_t
unary_loop(const void *pa, void *pd)
{
	using A = typename Element::template In<T>;
	const A    *__restrict a = static_cast<const A *>(pa);
	sem::reg_t<T> *__restrict d = static_cast<sem::reg_t<T> *>(pd);
	uint32_t	err = 0;

	for (int i = 0; i < N; i++)
	{
		uint32_t	e = 0;

		d[i] = Element::template f<T>(a[i], &e);
		if (checked)
			err |= e;
	}
	return err;
}

template <Type To, Type From>
uint32_t
cast_loop(const void *pa, void *pd)
{
	const sem::reg_t<From> *__restrict a = static_cast<const sem::reg_t<From> *>(pa);
	sem::reg_t<To> *__restrict d = static_cast<sem::reg_t<To> *>(pd);
	uint32_t	err = 0;

	for (int i = 0; i < N; i++)
		d[i] = sem::Cast<To, From>(a[i], &err);
	return err;
}

template <typename Element>
struct PickBinary
{
	OperandForm form;
	bool		checked;

	template <Type T>
	BinaryFn operator()() const
	{
		if constexpr (takes(Element::types, letter_of<T>))
		{
			if (checked)
				return form == OperandForm::VV ? binary_loop<Element, T, OperandForm::VV, true>
					: form == OperandForm::VC ? binary_loop<Element, T, OperandForm::VC, true>
					: binary_loop<Element, T, OperandForm::CV, true>;
			return form == OperandForm::VV ? binary_loop<Element, T, OperandForm::VV, false>
				: form == OperandForm::VC ? binary_loop<Element, T, OperandForm::VC, false>
				: binary_loop<Element, T, OperandForm::CV, false>;
		}
		else
			return nullptr;
	}
};

template <typename Element>
struct PickUnary
{
	bool		checked;

	template <Type T>
	UnaryFn operator()() const
	{
		if constexpr (takes(Element::types, letter_of<T>))
			return checked ? unary_loop<Element, T, true> : unary_loop<Element, T, false>;
		else
			return nullptr;
	}
};

template <Type To>
struct PickCast
{
	template <Type From> UnaryFn operator()() const { return cast_loop<To, From>; }
};

struct PickCastTo
{
	Type		from;

	template <Type To> UnaryFn operator()() const { return with_type<UnaryFn>(from, PickCast<To>{}); }
};

#define GPUVM_CASE_BINARY(n) case Opcode::n: return with_type<BinaryFn>(type, PickBinary<n##Element>{form, checked});
#define GPUVM_CASE_UNARY(n) case Opcode::n: return with_type<UnaryFn>(type, PickUnary<n##Element>{checked});

BinaryFn
binary(Opcode opcode, Type type, OperandForm form, bool checked)
{
	switch (opcode)
	{
		GPUVM_CASE_BINARY(Add)
		GPUVM_CASE_BINARY(Sub)
		GPUVM_CASE_BINARY(Mul)
		GPUVM_CASE_BINARY(Div)
		GPUVM_CASE_BINARY(Remainder)
		GPUVM_CASE_BINARY(BitAnd)
		GPUVM_CASE_BINARY(BitOr)
		GPUVM_CASE_BINARY(BitXor)
		GPUVM_CASE_BINARY(ShiftLeft)
		GPUVM_CASE_BINARY(ShiftRight)
		GPUVM_CASE_BINARY(DateAdd)
		GPUVM_CASE_BINARY(DateSub)
		GPUVM_CASE_BINARY(DateDiff)
		GPUVM_CASE_BINARY(DivRound)
		GPUVM_CASE_BINARY(DivFloor)
		GPUVM_CASE_BINARY(Bound)
		GPUVM_CASE_BINARY(NumericLead)
		GPUVM_CASE_BINARY(NextDecimals)
		GPUVM_CASE_BINARY(NextRest)
		GPUVM_CASE_BINARY(RoundDecimals)
		GPUVM_CASE_BINARY(DecimalsHigh)
		GPUVM_CASE_BINARY(DecimalsLow)
		GPUVM_CASE_BINARY(TimestampAddMonths)
		GPUVM_CASE_BINARY(TimestampAddDays)
		GPUVM_CASE_BINARY(TimestampAddMicros)
		GPUVM_CASE_BINARY(TimeAddMicros)
		GPUVM_CASE_BINARY(MulRest)
		GPUVM_CASE_BINARY(Power)
		GPUVM_CASE_BINARY(Atan2)
		default: return nullptr;
	}
}

UnaryFn
unary(Opcode opcode, Type type, bool checked)
{
	switch (opcode)
	{
		GPUVM_CASE_UNARY(Neg)
		GPUVM_CASE_UNARY(Abs)
		GPUVM_CASE_UNARY(BitNot)
		GPUVM_CASE_UNARY(DateToTimestamp)
		GPUVM_CASE_UNARY(DateToTimestampSat)
		GPUVM_CASE_UNARY(TimestampToDate)
		GPUVM_CASE_UNARY(Sqrt)
		GPUVM_CASE_UNARY(Ceil)
		GPUVM_CASE_UNARY(Floor)
		GPUVM_CASE_UNARY(Trunc)
		GPUVM_CASE_UNARY(Round)
		GPUVM_CASE_UNARY(Sign)
		GPUVM_CASE_UNARY(Exp)
		GPUVM_CASE_UNARY(Ln)
		GPUVM_CASE_UNARY(Log10)
		GPUVM_CASE_UNARY(Cbrt)
		GPUVM_CASE_UNARY(Sin)
		GPUVM_CASE_UNARY(Cos)
		GPUVM_CASE_UNARY(Tan)
		GPUVM_CASE_UNARY(Cot)
		GPUVM_CASE_UNARY(Asin)
		GPUVM_CASE_UNARY(Acos)
		GPUVM_CASE_UNARY(Atan)
		GPUVM_CASE_UNARY(Sinh)
		GPUVM_CASE_UNARY(Cosh)
		GPUVM_CASE_UNARY(Tanh)
		GPUVM_CASE_UNARY(Asinh)
		GPUVM_CASE_UNARY(Acosh)
		GPUVM_CASE_UNARY(Atanh)
		default: return nullptr;
	}
}

/*
 * Parts of timestamps, in loops that vectorise: no level divides 64-bit integers. A whole number of less
 * than 51 bits is exact as a double, and so is the floor of its quotient here: a day has 2^13 *
 * 10546875 microseconds, and quotients are further from whole numbers than they are rounded.
 */
inline double
double_of(int64_t v)
{
	const int64_t bits = v + 0x4338000000000000LL;	/* 2^52 + 2^51 */
	double		d;

	memcpy(&d, &bits, sizeof(d));
	return d - 0x1.8p52;
}

/* Of less than 2^31. */
inline int32_t
floor_of(double d)
{
	const double near = d + 0x1.8p52 - 0x1.8p52;

	return static_cast<int32_t>(near - (near > d ? 1.0 : 0.0));
}

inline void
days_of(const int64_t *__restrict ts, int32_t *__restrict day)
{
	for (int i = 0; i < N; i++)
		day[i] = floor_of(double_of(ts[i] >> 13) / 10546875.0);
}

inline uint32_t
no_timestamps(const int64_t *ts)
{
	uint64_t	bad = 0;

	for (int i = 0; i < N; i++)
		bad |= static_cast<uint64_t>(!sem::ts_valid(ts[i]));
	return bad ? ERR_DATETIME_RANGE : 0u;
}

template <DateField f, bool checked>
uint32_t
part_loop(const void *pa, void *pd)
{
	const int64_t *__restrict a = static_cast<const int64_t *>(pa);
	int64_t    *__restrict d = static_cast<int64_t *>(pd);
	int32_t		day[N];
	uint32_t	err = checked ? no_timestamps(a) : 0;

	if constexpr (f == DateField::Epoch)
	{
		for (int i = 0; i < N; i++)
			d[i] = sem::DatePart(a[i], f, &err);
		return err;
	}
	days_of(a, day);
	if constexpr (!sem::field_of_time(f))
		for (int i = 0; i < N; i++)
			d[i] = sem::part_of_day(day[i], f);
	else
		for (int i = 0; i < N; i++)
		{
			const double time = double_of(a[i] - day[i] * sem::US_PER_DAY);

			if constexpr (f == DateField::Hour)
				d[i] = floor_of(time / 3.6e9);
			else if constexpr (f == DateField::Minute)
				d[i] = static_cast<int32_t>(static_cast<uint32_t>(floor_of(time / 6e7)) % 60u);
			else if constexpr (f == DateField::Second)
				d[i] = static_cast<int32_t>(static_cast<uint32_t>(floor_of(time / 1e6)) % 60u);
			else
				d[i] = static_cast<int32_t>(time - 6e7 * floor_of(time / 6e7));
		}
	return err;
}

template <DateField f, bool checked>
uint32_t
trunc_loop(const void *pa, void *pd)
{
	const int64_t *__restrict a = static_cast<const int64_t *>(pa);
	int64_t    *__restrict d = static_cast<int64_t *>(pd);
	int32_t		day[N];
	uint64_t	bad = 0;

	days_of(a, day);
	if constexpr (f == DateField::Microsecond)
		for (int i = 0; i < N; i++)
			d[i] = a[i];
	else if constexpr (sem::field_of_time(f))
		for (int i = 0; i < N; i++)
		{
			const int64_t time = a[i] - day[i] * sem::US_PER_DAY;
			const int64_t unit = sem::unit_of_time(f);

			d[i] = a[i] - time + floor_of(double_of(time) / static_cast<double>(unit)) * unit;
		}
	else
	{
		for (int i = 0; i < N; i++)
			day[i] = sem::trunc_day(day[i], f);
		for (int i = 0; i < N; i++)
			d[i] = day[i] * sem::US_PER_DAY;
	}
	for (int i = 0; i < N; i++)
	{
		const bool	infinite = sem::ts_infinite(a[i]);

		bad |= static_cast<uint64_t>(!infinite & !(sem::ts_valid(a[i]) & sem::ts_valid(d[i])));
		d[i] = infinite ? a[i] : d[i];
	}
	return checked && bad ? ERR_DATETIME_RANGE : 0u;
}

struct PickPart
{
	bool		checked;

	template <DateField f> UnaryFn operator()() const { return checked ? part_loop<f, true> : part_loop<f, false>; }
};

struct PickTrunc
{
	bool		checked;

	template <DateField f> UnaryFn operator()() const { return checked ? trunc_loop<f, true> : trunc_loop<f, false>; }
};

UnaryFn
field(Opcode opcode, DateField f, bool checked)
{
	return opcode == Opcode::DatePart ? with_field<UnaryFn>(f, PickPart{checked}) : with_field<UnaryFn>(f, PickTrunc{checked});
}

UnaryFn
cast(Type to, Type from)
{
	return with_type<UnaryFn>(to, PickCastTo{from});
}

/* -- comparison --------------------------------------------------------------- */

/* 64 bytes, each 0 or 1, to bits. */
inline uint64_t
pack_bytes(const uint8_t *b)
{
#if defined(GPUVM_AVX512)
	return _mm512_test_epi8_mask(_mm512_loadu_si512(b), _mm512_set1_epi8(1));
#elif defined(GPUVM_AVX2)
	__m256i		lo = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(b));
	__m256i		hi = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(b + 32));

	return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(lo, 7)))
		| static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(hi, 7)))) << 32;
#else
	uint64_t	r = 0;

	/* eight bytes 0 or 1: the product gathers them in its highest byte */
	for (int i = 0; i < 8; i++)
	{
		uint64_t	w;

		memcpy(&w, b + 8 * i, 8);
		r |= (w * 0x0102040810204080ull >> 56) << (8 * i);
	}
	return r;
#endif
}

#if defined(GPUVM_AVX512)
template <Opcode op> constexpr int int_predicate = op == Opcode::Eq ? _MM_CMPINT_EQ : op == Opcode::Ne ? _MM_CMPINT_NE
	: op == Opcode::Lt ? _MM_CMPINT_LT : op == Opcode::Le ? _MM_CMPINT_LE
	: op == Opcode::Gt ? _MM_CMPINT_NLE : _MM_CMPINT_NLT;

/*
 * NaN is equal to NaN and above all. With a constant that is not NaN one
 * predicate does it: "not less-or-equal, or unordered" is Gt, and so on.
 */
template <Opcode op> constexpr int float_predicate = op == Opcode::Eq ? _CMP_EQ_OQ : op == Opcode::Ne ? _CMP_NEQ_UQ
	: op == Opcode::Lt ? _CMP_LT_OQ : op == Opcode::Le ? _CMP_LE_OQ
	: op == Opcode::Gt ? _CMP_NLE_UQ : _CMP_NLT_UQ;

template <Opcode op, typename V, typename M, typename Less, typename Same, typename Nan>
inline M
float_mask(V a, V b, Less less, Same same, Nan nan)
{
	if constexpr (op == Opcode::Eq)
		return same(a, b) | (nan(a) & nan(b));
	else if constexpr (op == Opcode::Ne)
		return ~(same(a, b) | (nan(a) & nan(b)));
	else if constexpr (op == Opcode::Lt)
		return less(a, b) | (nan(b) & ~nan(a));
	else if constexpr (op == Opcode::Ge)
		return ~(less(a, b) | (nan(b) & ~nan(a)));
	else if constexpr (op == Opcode::Gt)
		return less(b, a) | (nan(a) & ~nan(b));
	else
		return ~(less(b, a) | (nan(a) & ~nan(b)));
}

template <Opcode op, Type T, bool constant>
inline uint32_t
compare_lanes(const void *pa, const void *pb)
{
	if constexpr (T == Type::I16 || T == Type::I32)
		return _mm512_cmp_epi32_mask(_mm512_loadu_si512(pa), constant ? _mm512_set1_epi32(*static_cast<const int32_t *>(pb))
									 : _mm512_loadu_si512(pb), int_predicate<op>);
	else if constexpr (T == Type::I64)
		return _mm512_cmp_epi64_mask(_mm512_loadu_si512(pa), constant ? _mm512_set1_epi64(*static_cast<const int64_t *>(pb))
									 : _mm512_loadu_si512(pb), int_predicate<op>);
	else if constexpr (T == Type::F32)
	{
		__m512		a = _mm512_loadu_ps(pa);

		if (constant)
			return _mm512_cmp_ps_mask(a, _mm512_set1_ps(*static_cast<const float *>(pb)), float_predicate<op>);
		return float_mask<op, __m512, __mmask16>(a, _mm512_loadu_ps(pb),
			[](__m512 x, __m512 y) { return static_cast<uint32_t>(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ)); },
			[](__m512 x, __m512 y) { return static_cast<uint32_t>(_mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ)); },
			[](__m512 x) { return static_cast<uint32_t>(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q)); });
	}
	else
	{
		__m512d		a = _mm512_loadu_pd(pa);

		if (constant)
			return _mm512_cmp_pd_mask(a, _mm512_set1_pd(*static_cast<const double *>(pb)), float_predicate<op>);
		return float_mask<op, __m512d, __mmask8>(a, _mm512_loadu_pd(pb),
			[](__m512d x, __m512d y) { return static_cast<uint32_t>(_mm512_cmp_pd_mask(x, y, _CMP_LT_OQ)); },
			[](__m512d x, __m512d y) { return static_cast<uint32_t>(_mm512_cmp_pd_mask(x, y, _CMP_EQ_OQ)); },
			[](__m512d x) { return static_cast<uint32_t>(_mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q)); });
	}
}
#endif

template <typename Element, Type T, bool constant>
void
compare_loop(const void *pa, const void *pb, uint64_t *d)
{
	using V = sem::reg_t<T>;
	const V    *a = static_cast<const V *>(pa);
	const V    *b = static_cast<const V *>(pb);

#if defined(GPUVM_AVX512)
	/* a NaN constant takes the loop below */
	if (!constant || *b == *b)
	{
		constexpr int lanes = 64 / sizeof(V);

		for (int w = 0; w < CPU_WORDS; w++)
		{
			uint64_t	bits = 0;

			for (int i = 0; i < 64; i += lanes)
				bits |= static_cast<uint64_t>(compare_lanes<Element::opcode, T, constant>(a + 64 * w + i, constant ? b : b + 64 * w + i)) << i;
			d[w] = bits;
		}
		return;
	}
#endif
	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint8_t		m[64];

		for (int i = 0; i < 64; i++)
			m[i] = Element::template f<T>(a[64 * w + i], b[constant ? 0 : 64 * w + i]);
		d[w] = pack_bytes(m);
	}
}

template <typename Element>
struct PickCompare
{
	OperandForm form;

	template <Type T>
	CompareFn operator()() const
	{
		return form == OperandForm::VV ? compare_loop<Element, T, false> : compare_loop<Element, T, true>;
	}
};

#define GPUVM_CASE_COMPARE(n) case Opcode::n: return with_type<CompareFn>(type, PickCompare<n##Element>{form});

CompareFn
compare(Opcode opcode, Type type, OperandForm form)
{
	switch (opcode)
	{
		GPUVM_CASE_COMPARE(Eq)
		GPUVM_CASE_COMPARE(Ne)
		GPUVM_CASE_COMPARE(Lt)
		GPUVM_CASE_COMPARE(Le)
		GPUVM_CASE_COMPARE(Gt)
		GPUVM_CASE_COMPARE(Ge)
		default: return nullptr;
	}
}

template <typename U>
void
range_loop(const void *codes, uint64_t lo64, uint64_t span64, uint64_t *d)
{
	const U    *c = static_cast<const U *>(codes);
	const U		lo = static_cast<U>(lo64);
	const U		span = static_cast<U>(span64);

	for (int w = 0; w < CPU_WORDS; w++)
	{
#if defined(GPUVM_AVX512)
		const U    *p = c + 64 * w;

		if constexpr (sizeof(U) == 1)
			d[w] = _mm512_cmple_epu8_mask(_mm512_sub_epi8(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(lo))),
										  _mm512_set1_epi8(static_cast<char>(span)));
		else if constexpr (sizeof(U) == 2)
		{
			uint64_t	bits = 0;

			for (int i = 0; i < 64; i += 32)
				bits |= static_cast<uint64_t>(_mm512_cmple_epu16_mask(
					_mm512_sub_epi16(_mm512_loadu_si512(p + i), _mm512_set1_epi16(static_cast<short>(lo))),
					_mm512_set1_epi16(static_cast<short>(span)))) << i;
			d[w] = bits;
		}
		else if constexpr (sizeof(U) == 4)
		{
			uint64_t	bits = 0;

			for (int i = 0; i < 64; i += 16)
				bits |= static_cast<uint64_t>(_mm512_cmple_epu32_mask(
					_mm512_sub_epi32(_mm512_loadu_si512(p + i), _mm512_set1_epi32(static_cast<int>(lo))),
					_mm512_set1_epi32(static_cast<int>(span)))) << i;
			d[w] = bits;
		}
		else
		{
			uint64_t	bits = 0;

			for (int i = 0; i < 64; i += 8)
				bits |= static_cast<uint64_t>(_mm512_cmple_epu64_mask(
					_mm512_sub_epi64(_mm512_loadu_si512(p + i), _mm512_set1_epi64(static_cast<int64_t>(lo))),
					_mm512_set1_epi64(static_cast<int64_t>(span)))) << i;
			d[w] = bits;
		}
#else
		uint8_t		m[64];

		for (int i = 0; i < 64; i++)
			m[i] = static_cast<U>(c[64 * w + i] - lo) <= span;
		d[w] = pack_bytes(m);
#endif
	}
}

void
range_test(int width, const void *codes, uint64_t lo, uint64_t span, uint64_t *d)
{
	switch (width)
	{
		case 1: range_loop<uint8_t>(codes, lo, span, d); break;
		case 2: range_loop<uint16_t>(codes, lo, span, d); break;
		case 4: range_loop<uint32_t>(codes, lo, span, d); break;
		default: range_loop<uint64_t>(codes, lo, span, d); break;
	}
}

/* -- maps ------------------------------------------------------------------------ */

inline uint32_t
entry_of(int32_t code, uint32_t n)
{
	const uint32_t c = static_cast<uint32_t>(code);

	return c < n ? c : 0;
}

template <typename V>
void
lookup_loop(const int32_t *__restrict codes, const V *__restrict values, uint32_t n, V *__restrict d)
{
	for (int i = 0; i < N; i++)
		d[i] = values[entry_of(codes[i], n)];
}

void
lookup(int width, const int32_t *codes, const void *values, uint32_t n, void *d)
{
	if (width == 4)
		lookup_loop(codes, static_cast<const int32_t *>(values), n, static_cast<int32_t *>(d));
	else
		lookup_loop(codes, static_cast<const int64_t *>(values), n, static_cast<int64_t *>(d));
}

void
lookup_bytes(const int32_t *codes, const uint8_t *values, uint32_t n, uint64_t *d)
{
	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint8_t		m[64];

		for (int i = 0; i < 64; i++)
			m[i] = values[entry_of(codes[64 * w + i], n)];
		d[w] = pack_bytes(m);
	}
}

void
lookup_bits(const int32_t *codes, const uint64_t *bits, uint32_t n, uint64_t *d)
{
	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint8_t		m[64];

		for (int i = 0; i < 64; i++)
		{
			const uint32_t e = entry_of(codes[64 * w + i], n);

			m[i] = static_cast<uint8_t>(bits[e / 64] >> (e % 64) & 1);
		}
		d[w] = pack_bytes(m);
	}
}

/* Timestamps of one vector are near each other mostly: they share an entry, or have few. */
uint32_t
zone_shift(const int64_t *__restrict ts, const ZoneTable &table, int64_t *__restrict d)
{
	int64_t		least = ts[0], most = ts[0];
	uint64_t	bad = 0;

	for (int i = 1; i < N; i++)
	{
		least = ts[i] < least ? ts[i] : least;
		most = ts[i] > most ? ts[i] : most;
	}

	const uint32_t first = zone_entry(table, least), last = zone_entry(table, most);
	const ZoneTable part = {table.from + first, table.shift + first, last - first + 1};

	/* sem::ZoneShift() */
	for (int i = 0; i < N; i++)
	{
		const int64_t shift = part.shift[part.n == 1 ? 0 : zone_entry(part, ts[i])];
		const int64_t r = static_cast<int64_t>(static_cast<uint64_t>(ts[i]) + static_cast<uint64_t>(shift));
		const bool	infinite = sem::ts_infinite(ts[i]);

		bad |= static_cast<uint64_t>(!infinite & !((shift != ZONE_UNKNOWN) & (ts[i] >= part.from[0]) & sem::ts_valid(ts[i]) & sem::ts_valid(r)));
		d[i] = infinite ? ts[i] : r;
	}
	return bad ? ERR_DATETIME_RANGE : 0u;
}

/* -- decoding, bitmaps ---------------------------------------------------------- */

template <typename C, typename V>
void
decode_loop(const void *codes, int64_t base, void *dst)
{
	using U = std::make_unsigned_t<V>;
	const C    *__restrict c = static_cast<const C *>(codes);
	V		   *__restrict d = static_cast<V *>(dst);
	const U		b = static_cast<U>(base);

	for (int i = 0; i < N; i++)
		d[i] = static_cast<V>(static_cast<U>(static_cast<V>(c[i])) + b);
}

void
decode(int width, int reg_width, bool sign, const void *codes, int64_t base, void *dst)
{
	if (reg_width == 4)
	{
		switch (width)
		{
			case 1: decode_loop<uint8_t, int32_t>(codes, base, dst); break;
			case 2:
				if (sign)
					decode_loop<int16_t, int32_t>(codes, base, dst);
				else
					decode_loop<uint16_t, int32_t>(codes, base, dst);
				break;
			default: decode_loop<int32_t, int32_t>(codes, base, dst); break;
		}
		return;
	}
	switch (width)
	{
		case 1: decode_loop<uint8_t, int64_t>(codes, base, dst); break;
		case 2: decode_loop<uint16_t, int64_t>(codes, base, dst); break;
		case 4: decode_loop<uint32_t, int64_t>(codes, base, dst); break;
		default: decode_loop<int64_t, int64_t>(codes, base, dst); break;
	}
}

void
bits_from_bytes(const uint8_t *bytes, uint64_t *d)
{
	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint8_t		m[64];

		for (int i = 0; i < 64; i++)
			m[i] = bytes[64 * w + i] != 0;
		d[w] = pack_bytes(m);
	}
}

template <Type T>
void
bits_to_loop(const uint64_t *bits, void *dst)
{
	sem::reg_t<T> *d = static_cast<sem::reg_t<T> *>(dst);

	for (int w = 0; w < CPU_WORDS; w++)
	{
		const uint64_t b = bits[w];

		for (int i = 0; i < 64; i++)
			d[64 * w + i] = static_cast<sem::reg_t<T>>((b >> i) & 1);
	}
}

void
bits_to_values(Type type, const uint64_t *bits, void *dst)
{
	switch (type)
	{
		case Type::I64: bits_to_loop<Type::I64>(bits, dst); break;
		case Type::F32: bits_to_loop<Type::F32>(bits, dst); break;
		case Type::F64: bits_to_loop<Type::F64>(bits, dst); break;
		default: bits_to_loop<Type::I32>(bits, dst); break;
	}
}

template <typename V>
void
blend_loop(const uint64_t *mask, const V *a, const V *b, V *d)
{
	for (int w = 0; w < CPU_WORDS; w++)
	{
		const uint64_t m = mask[w];

		for (int i = 0; i < 64; i += 64 / sizeof(V))
		{
			const int	at = 64 * w + i;

#if defined(GPUVM_AVX512)
			if constexpr (sizeof(V) == 4)
				_mm512_storeu_si512(d + at, _mm512_mask_loadu_epi32(_mm512_loadu_si512(b + at), static_cast<__mmask16>(m >> i), a + at));
			else
				_mm512_storeu_si512(d + at, _mm512_mask_loadu_epi64(_mm512_loadu_si512(b + at), static_cast<__mmask8>(m >> i), a + at));
#else
			for (int k = 0; k < static_cast<int>(64 / sizeof(V)); k++)
			{
				const V		take = static_cast<V>(0) - static_cast<V>((m >> (i + k)) & 1);

				d[at + k] = (a[at + k] & take) | (b[at + k] & ~take);
			}
#endif
		}
	}
}

void
blend(int reg_width, const uint64_t *mask, const void *a, const void *b, void *dst)
{
	if (reg_width == 4)
		blend_loop(mask, static_cast<const uint32_t *>(a), static_cast<const uint32_t *>(b), static_cast<uint32_t *>(dst));
	else
		blend_loop(mask, static_cast<const uint64_t *>(a), static_cast<const uint64_t *>(b), static_cast<uint64_t *>(dst));
}

uint32_t
count(const uint64_t *mask)
{
	uint32_t	n = 0;

	for (int w = 0; w < CPU_WORDS; w++)
		n += static_cast<uint32_t>(__builtin_popcountll(mask[w]));
	return n;
}

uint32_t
select(const uint64_t *mask, uint16_t *rows)
{
	uint32_t	n = 0;

	for (int w = 0; w < CPU_WORDS; w++)
	{
#if defined(GPUVM_AVX512)
		for (int i = 0; i < 64; i += 16)
		{
			const __mmask16 m = static_cast<__mmask16>(mask[w] >> i);
			const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
			const __m512i v = _mm512_maskz_compress_epi32(m, _mm512_add_epi32(iota, _mm512_set1_epi32(64 * w + i)));

			/* up to 16 entries past n: never past the end, which n + 16 <= 64 w + i + 16 keeps */
			_mm256_storeu_si256(reinterpret_cast<__m256i *>(rows + n), _mm512_cvtepi32_epi16(v));
			n += static_cast<uint32_t>(__builtin_popcount(m));
		}
#else
		for (uint64_t m = mask[w]; m != 0; m &= m - 1)
			rows[n++] = static_cast<uint16_t>(64 * w + __builtin_ctzll(m));
#endif
	}
	return n;
}

template <typename V>
uint32_t
compress_loop(const uint64_t *mask, const V *v, V *d)
{
	uint32_t	n = 0;

	for (int w = 0; w < CPU_WORDS; w++)
	{
#if defined(GPUVM_AVX512)
		constexpr int lanes = 64 / sizeof(V);

		for (int i = 0; i < 64; i += lanes)
		{
			const uint32_t m = static_cast<uint32_t>(mask[w] >> i) & ((1u << lanes) - 1);
			const uint32_t count = static_cast<uint32_t>(__builtin_popcount(m));
			const uint32_t fill = (1u << count) - 1;
			const __m512i x = _mm512_loadu_si512(v + 64 * w + i);

			/* compress in a register, then a masked store: compressing stores are microcoded on some processors */
			if constexpr (sizeof(V) == 4)
				_mm512_mask_storeu_epi32(d + n, static_cast<__mmask16>(fill), _mm512_maskz_compress_epi32(static_cast<__mmask16>(m), x));
			else
				_mm512_mask_storeu_epi64(d + n, static_cast<__mmask8>(fill), _mm512_maskz_compress_epi64(static_cast<__mmask8>(m), x));
			n += count;
		}
#else
		if (mask[w] == ~uint64_t(0))
		{
			memcpy(d + n, v + 64 * w, 64 * sizeof(V));
			n += 64;
			continue;
		}
		for (uint64_t m = mask[w]; m != 0; m &= m - 1)
			d[n++] = v[64 * w + __builtin_ctzll(m)];
#endif
	}
	return n;
}

uint32_t
compress(int reg_width, const uint64_t *mask, const void *values, void *dst)
{
	if (reg_width == 4)
		return compress_loop(mask, static_cast<const uint32_t *>(values), static_cast<uint32_t *>(dst));
	return compress_loop(mask, static_cast<const uint64_t *>(values), static_cast<uint64_t *>(dst));
}

/* -- aggregates ------------------------------------------------------------------ */

/* One word's rows: all of them, or those of the mask. */
template <typename C, typename S>
inline S
sum_word(const C *c, uint64_t m)
{
	S			s = 0;

	if (m == ~uint64_t(0))
		for (int i = 0; i < 64; i++)
			s += c[i];
	else
		for (int i = 0; i < 64; i++)
			s += c[i] & (static_cast<C>(0) - static_cast<C>((m >> i) & 1));
	return s;
}

uint64_t
sum_codes(int width, const void *codes, const uint64_t *mask)
{
#if defined(GPUVM_AVX512)
	const __m512i zero = _mm512_setzero_si512();
	__m512i		s = zero, high = zero;

	if (width == 1)
	{
		for (int w = 0; w < CPU_WORDS; w++)
			s = _mm512_add_epi64(s, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(mask[w], static_cast<const uint8_t *>(codes) + 64 * w), zero));
		return static_cast<uint64_t>(_mm512_reduce_add_epi64(s));
	}
	if (width == 2)
	{
		const __m512i low_byte = _mm512_set1_epi16(0xff);

		for (int i = 0; i < N; i += 32)
		{
			__m512i		v = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask[i / 64] >> (i % 64)), static_cast<const uint16_t *>(codes) + i);

			s = _mm512_add_epi64(s, _mm512_sad_epu8(_mm512_and_si512(v, low_byte), zero));
			high = _mm512_add_epi64(high, _mm512_sad_epu8(_mm512_srli_epi16(v, 8), zero));
		}
		return static_cast<uint64_t>(_mm512_reduce_add_epi64(s)) + 256 * static_cast<uint64_t>(_mm512_reduce_add_epi64(high));
	}
	for (int i = 0; i < N; i += 16)
	{
		__m512i		v = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask[i / 64] >> (i % 64)), static_cast<const uint32_t *>(codes) + i);

		s = _mm512_add_epi64(s, _mm512_and_si512(v, _mm512_set1_epi64(0xffffffff)));
		high = _mm512_add_epi64(high, _mm512_srli_epi64(v, 32));
	}
	return static_cast<uint64_t>(_mm512_reduce_add_epi64(_mm512_add_epi64(s, high)));
#else
	uint64_t	s = 0;

	for (int w = 0; w < CPU_WORDS; w++)
	{
		if (mask[w] == 0)
			continue;
		if (width == 1)
			s += sum_word<uint8_t, uint32_t>(static_cast<const uint8_t *>(codes) + 64 * w, mask[w]);
		else if (width == 2)
			s += sum_word<uint16_t, uint32_t>(static_cast<const uint16_t *>(codes) + 64 * w, mask[w]);
		else
			s += sum_word<uint32_t, uint64_t>(static_cast<const uint32_t *>(codes) + 64 * w, mask[w]);
	}
	return s;
#endif
}

int64_t
sum_int32(const int32_t *v, const uint64_t *mask)
{
	int64_t		s = 0;

#if defined(GPUVM_AVX512)
	__m512i		even = _mm512_setzero_si512(), odd = even;

	for (int i = 0; i < N; i += 16)
	{
		__m512i		x = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask[i / 64] >> (i % 64)), v + i);

		even = _mm512_add_epi64(even, _mm512_srai_epi64(_mm512_slli_epi64(x, 32), 32));
		odd = _mm512_add_epi64(odd, _mm512_srai_epi64(x, 32));
	}
	s = _mm512_reduce_add_epi64(_mm512_add_epi64(even, odd));
#else
	for (int w = 0; w < CPU_WORDS; w++)
		if (mask[w] != 0)
			s += sum_word<int32_t, int64_t>(v + 64 * w, mask[w]);
#endif
	return s;
}

/* High and low halves apart: neither sum can overflow. */
int128
sum_int64(const int64_t *v, const uint64_t *mask)
{
	int64_t		high = 0;
	uint64_t	low = 0;

#if defined(GPUVM_AVX512)
	__m512i		h = _mm512_setzero_si512(), l = h;

	for (int i = 0; i < N; i += 8)
	{
		__m512i		x = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask[i / 64] >> (i % 64)), v + i);

		h = _mm512_add_epi64(h, _mm512_srai_epi64(x, 32));
		l = _mm512_add_epi64(l, _mm512_and_si512(x, _mm512_set1_epi64(0xffffffff)));
	}
	high = _mm512_reduce_add_epi64(h);
	low = static_cast<uint64_t>(_mm512_reduce_add_epi64(l));
#else
	for (int w = 0; w < CPU_WORDS; w++)
	{
		const uint64_t m = mask[w];

		if (m == 0)
			continue;
		for (int i = 0; i < 64; i++)
		{
			const int64_t x = v[64 * w + i] & -static_cast<int64_t>((m >> i) & 1);

			high += x >> 32;
			low += static_cast<uint64_t>(x) & 0xffffffff;
		}
	}
#endif
	return static_cast<int128>(high) * (static_cast<int128>(1) << 32) + low;
}

template <typename V, bool max>
int64_t
extreme_loop(const V *v)
{
	V			r = v[0];

	for (int i = 1; i < N; i++)
		r = max ? (v[i] > r ? v[i] : r) : (v[i] < r ? v[i] : r);
	return r;
}

int64_t
extreme(int reg_width, bool max, const void *v)
{
	if (reg_width == 4)
		return max ? extreme_loop<int32_t, true>(static_cast<const int32_t *>(v)) : extreme_loop<int32_t, false>(static_cast<const int32_t *>(v));
	return max ? extreme_loop<int64_t, true>(static_cast<const int64_t *>(v)) : extreme_loop<int64_t, false>(static_cast<const int64_t *>(v));
}

template <typename F, typename I>
void
float_keys_loop(const F *__restrict v, I *__restrict keys)
{
	constexpr I canonical = sizeof(F) == 4 ? static_cast<I>(0x7fc00000) : static_cast<I>(0x7ff8000000000000ll);
	constexpr I low = std::numeric_limits<I>::max();

	for (int i = 0; i < N; i++)
	{
		I			b;

		memcpy(&b, v + i, sizeof(b));
		b = v[i] != v[i] ? canonical : b;
		keys[i] = b ^ ((b >> (sizeof(I) * 8 - 1)) & low);
	}
}

void
float_keys(Type type, const void *v, void *keys)
{
	if (type == Type::F32)
		float_keys_loop(static_cast<const float *>(v), static_cast<int32_t *>(keys));
	else
		float_keys_loop(static_cast<const double *>(v), static_cast<int64_t *>(keys));
}

template <typename F>
uint64_t
sum_prepare_loop(const F *v, const uint64_t *mask, double *d)
{
	uint64_t	greatest = 0;

	for (int w = 0; w < CPU_WORDS; w++)
	{
		const uint64_t m = mask[w];
		const F    *p = v + 64 * w;
		double	   *q = d + 64 * w;

#if defined(GPUVM_AVX512)
		for (int i = 0; i < 64; i += 8)
		{
			if constexpr (sizeof(F) == 4)
				_mm512_storeu_pd(q + i, _mm512_cvtps_pd(_mm256_maskz_loadu_ps(static_cast<__mmask8>(m >> i), p + i)));
			else
				_mm512_storeu_pd(q + i, _mm512_maskz_loadu_pd(static_cast<__mmask8>(m >> i), p + i));
		}
#else
		for (int i = 0; i < 64; i++)
		{
			uint64_t	b = double_bits(p[i]) & (0 - ((m >> i) & 1));

			memcpy(q + i, &b, sizeof(b));
		}
#endif
	}
	for (int i = 0; i < N; i++)
	{
		uint64_t	b;

		memcpy(&b, d + i, sizeof(b));
		b &= 0x7fffffffffffffffull;
		greatest = b > greatest ? b : greatest;
	}
	return greatest;
}

uint64_t
sum_prepare(Type type, const void *v, const uint64_t *mask, double *dst)
{
	return type == Type::F32 ? sum_prepare_loop(static_cast<const float *>(v), mask, dst)
		: sum_prepare_loop(static_cast<const double *>(v), mask, dst);
}

/*
 * x + magic has the exponent of 2^(e + 1), so its bits count units of
 * 2^(e - 51) from those of magic: the integer sum of the bits is the sum of the
 * parts, and x minus the part is exact.
 */
int64_t
sum_level(double *x, double magic, uint64_t *rest)
{
	uint64_t	sum = 0, left = 0;

	for (int i = 0; i < N; i++)
	{
		double		y = x[i] + magic;
		double		r = x[i] - (y - magic);
		uint64_t	yb, rb;

		memcpy(&yb, &y, sizeof(yb));
		memcpy(&rb, &r, sizeof(rb));
		sum += yb;
		left |= rb << 1;
		x[i] = r;
	}
	*rest = left;
	return static_cast<int64_t>(sum - N * double_bits(magic));
}

/* -- grouping ---------------------------------------------------------------------- */

template <typename V>
void
group_keys_loop(const V *__restrict v, uint64_t *__restrict keys)
{
	for (int i = 0; i < N; i++)
	{
		if constexpr (std::is_same_v<V, float>)
		{
			uint32_t	b;

			memcpy(&b, v + i, sizeof(b));
			keys[i] = v[i] != v[i] ? 0x7fc00000u : b;
		}
		else if constexpr (std::is_same_v<V, double>)
		{
			uint64_t	b;

			memcpy(&b, v + i, sizeof(b));
			keys[i] = v[i] != v[i] ? 0x7ff8000000000000ull : b;
		}
		else
			keys[i] = static_cast<uint64_t>(static_cast<int64_t>(v[i]));
	}
}

void
group_keys(Type type, const void *v, uint64_t *keys)
{
	switch (type)
	{
		case Type::Bool: bits_to_loop<Type::I64>(static_cast<const uint64_t *>(v), keys); break;
		case Type::I64: group_keys_loop(static_cast<const int64_t *>(v), keys); break;
		case Type::F32: group_keys_loop(static_cast<const float *>(v), keys); break;
		case Type::F64: group_keys_loop(static_cast<const double *>(v), keys); break;
		default: group_keys_loop(static_cast<const int32_t *>(v), keys); break;
	}
}

void
hash_step(const uint64_t *__restrict keys, uint64_t *__restrict hashes)
{
	for (int i = 0; i < N; i++)
	{
		uint64_t	h = (hashes[i] ^ keys[i]) * 0x9e3779b97f4a7c15ull;

		h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
		hashes[i] = h ^ (h >> 29);
	}
}

template <typename V>
void
dense_loop(const V *__restrict v, int64_t lo, uint32_t top, uint32_t stride, uint32_t *__restrict index)
{
	using U = std::make_unsigned_t<V>;
	const U		l = static_cast<U>(lo);

	for (int i = 0; i < N; i++)
	{
		U			k = static_cast<U>(v[i]) - l;

		index[i] += static_cast<uint32_t>(k > top ? top : k) * stride;
	}
}

void
dense_step(int reg_width, const void *v, int64_t lo, uint32_t top, uint32_t stride, uint32_t *index)
{
	if (reg_width == 4)
		dense_loop(static_cast<const int32_t *>(v), lo, top, stride, index);
	else
		dense_loop(static_cast<const int64_t *>(v), lo, top, stride, index);
}

void
dense_rows(const uint32_t *__restrict index, char *table, uint32_t replicas, uint32_t row_bytes, char **__restrict rows)
{
	for (uint32_t i = 0; i < N; i++)
		rows[i] = table + (index[i] * replicas + (i & (replicas - 1))) * static_cast<uint64_t>(row_bytes);
}

#include "vm/cpu_text_kernels.h"

#define GPUVM_LEVEL_NAME_(x) #x
#define GPUVM_LEVEL_NAME(x) GPUVM_LEVEL_NAME_(x)

constexpr Kernels table = {
	GPUVM_LEVEL_NAME(GPUVM_LEVEL),
	binary, unary, cast, field, compare, range_test, decode, bits_from_bytes, bits_to_values, blend,
	lookup, lookup_bytes, lookup_bits, zone_shift, count, select, compress,
	sum_codes, sum_int32, sum_int64, extreme, float_keys, sum_prepare, sum_level, group_keys, hash_step, dense_step, dense_rows, text_match, text_parts,
};

}  // namespace
}  // namespace GPUVM_LEVEL
}  // namespace gpuvm
