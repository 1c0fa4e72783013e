/*
 * cpu_opcodes.h: the elementwise opcodes as function objects, and the choice of
 * an instantiation by opcode and type, both generated from opcodes.def.
 *
 * Included by each kernel file inside its own namespace.
 */

constexpr bool
takes(const char *types, char letter)
{
	for (; *types; types++)
		if (*types == letter)
			return true;
	return false;
}

/* Calls f.operator()<T>() for the opcode's type, or gives f's empty result. */
template <typename Result, typename F>
Result
with_type(Type t, F f)
{
	switch (t)
	{
		case Type::I16: return f.template operator()<Type::I16>();
		case Type::I32: return f.template operator()<Type::I32>();
		case Type::I64: return f.template operator()<Type::I64>();
		case Type::F32: return f.template operator()<Type::F32>();
		case Type::F64: return f.template operator()<Type::F64>();
		default: return nullptr;
	}
}

/* The same for a field of timestamps. */
template <typename Result, typename F>
Result
with_field(DateField field, F f)
{
	switch (field)
	{
#define GPUVM_FIELD(n) case DateField::n: return f.template operator()<DateField::n>();
		GPUVM_FIELD(Microsecond) GPUVM_FIELD(Millisecond) GPUVM_FIELD(Second) GPUVM_FIELD(Minute) GPUVM_FIELD(Hour)
		GPUVM_FIELD(Day) GPUVM_FIELD(Month) GPUVM_FIELD(Quarter) GPUVM_FIELD(Year) GPUVM_FIELD(Decade)
		GPUVM_FIELD(Century) GPUVM_FIELD(Millennium) GPUVM_FIELD(Week) GPUVM_FIELD(IsoYear) GPUVM_FIELD(Dow)
		GPUVM_FIELD(IsoDow) GPUVM_FIELD(Doy) GPUVM_FIELD(Epoch) GPUVM_FIELD(Julian)
#undef GPUVM_FIELD
	}
	return nullptr;
}

template <Type T> constexpr char letter_of = T == Type::I16 ? 'S' : T == Type::I32 ? 'I' : T == Type::I64 ? 'L'
	: T == Type::F32 ? 'F' : 'D';

/*
 * One struct an opcode: In and In2 are the operands' register types, f the
 * scalar function; `types` stops instantiations that the table does not allow.
 */
#define GPUVM_ELEMENT_TABLE(n, t)
#define GPUVM_ELEMENT_RESCOL(n, t)
#define GPUVM_ELEMENT_AGGOPEN(n, t)
#define GPUVM_ELEMENT_PARALLEL(n, t)
#define GPUVM_ELEMENT_CONVERGE(n, t)
#define GPUVM_ELEMENT_FINISH(n, t)
#define GPUVM_ELEMENT_COLUMN(n, t)
#define GPUVM_ELEMENT_ROWID(n, t)
#define GPUVM_ELEMENT_IMM32(n, t)
#define GPUVM_ELEMENT_IMM64(n, t)
#define GPUVM_ELEMENT_IMMNULL(n, t)
#define GPUVM_ELEMENT_VARIABLE(n, t)
#define GPUVM_ELEMENT_CAST(n, t)
#define GPUVM_ELEMENT_FIELD(n, t)
#define GPUVM_ELEMENT_LOOKUP(n, t)
#define GPUVM_ELEMENT_ZONE(n, t)
#define GPUVM_ELEMENT_LOGIC1(n, t)
#define GPUVM_ELEMENT_LOGIC2(n, t)
#define GPUVM_ELEMENT_NULLTEST(n, t)
#define GPUVM_ELEMENT_DISTINCT(n, t)
#define GPUVM_ELEMENT_TEXTMATCH(n, t)
#define GPUVM_ELEMENT_TEXTPART(n, t)
#define GPUVM_ELEMENT_TEXTKEY(n, t)
#define GPUVM_ELEMENT_TEXTCOMPARE(n, t)
#define GPUVM_ELEMENT_IN(n, t)
#define GPUVM_ELEMENT_BRANCH(n, t)
#define GPUVM_ELEMENT_JUMP(n, t)
#define GPUVM_ELEMENT_INVALID(n, t)
#define GPUVM_ELEMENT_COPY(n, t)
#define GPUVM_ELEMENT_SELECT(n, t)
#define GPUVM_ELEMENT_PICK(n, t)
#define GPUVM_ELEMENT_GROUP(n, t)
#define GPUVM_ELEMENT_AGGSTEP(n, t)
#define GPUVM_ELEMENT_RESULT(n, t)
#define GPUVM_ELEMENT_HASHOPEN(n, t)
#define GPUVM_ELEMENT_SEEKRANGE(n, t)
#define GPUVM_ELEMENT_HASHINSERT(n, t)
#define GPUVM_ELEMENT_SEEK(n, t)
#define GPUVM_ELEMENT_CROSS(n, t)
#define GPUVM_ELEMENT_MATCH(n, t)
#define GPUVM_ELEMENT_BINARY(n, t) \
	struct n##Element \
	{ \
		static constexpr const char *types = t; \
		template <Type T> using In = sem::reg_t<T>; \
		template <Type T> using In2 = sem::reg_t<T>; \
		template <Type T> static GPUVM_HD sem::reg_t<T> f(In<T> a, In2<T> b, uint32_t *err) { return sem::n<T>(a, b, err); } \
	};
#define GPUVM_ELEMENT_SHIFT(n, t) \
	struct n##Element \
	{ \
		static constexpr const char *types = t; \
		template <Type T> using In = sem::reg_t<T>; \
		template <Type T> using In2 = int32_t; \
		template <Type T> static GPUVM_HD sem::reg_t<T> f(In<T> a, In2<T> b, uint32_t *err) { return sem::n<T>(a, b, err); } \
	};
#define GPUVM_ELEMENT_UNARY(n, t) \
	struct n##Element \
	{ \
		static constexpr const char *types = t; \
		template <Type T> using In = sem::reg_t<T>; \
		template <Type T> static GPUVM_HD sem::reg_t<T> f(In<T> a, uint32_t *err) { return sem::n<T>(a, err); } \
	};
#define GPUVM_ELEMENT_UNARY_IL(n, t) \
	struct n##Element \
	{ \
		static constexpr const char *types = t; \
		template <Type T> using In = int32_t; \
		template <Type T> static GPUVM_HD sem::reg_t<T> f(In<T> a, uint32_t *err) { return sem::n(a, err); } \
	};
#define GPUVM_ELEMENT_UNARY_LI(n, t) \
	struct n##Element \
	{ \
		static constexpr const char *types = t; \
		template <Type T> using In = int64_t; \
		template <Type T> static GPUVM_HD sem::reg_t<T> f(In<T> a, uint32_t *err) { return sem::n(a, err); } \
	};
#define GPUVM_ELEMENT_COMPARE(n, t) \
	struct n##Element \
	{ \
		static constexpr Opcode opcode = Opcode::n; \
		template <Type T> static GPUVM_HD bool f(sem::reg_t<T> a, sem::reg_t<T> b) { return sem::n<T>(a, b); } \
	};
#define GPUVM_OPCODE(name, form, types, errors, synopsis) GPUVM_ELEMENT_##form(name, types)
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
