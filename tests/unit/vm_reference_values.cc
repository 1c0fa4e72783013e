/* vm_reference_values.cc: the value that an operation computes, opcode by opcode and form by form. See vm_reference.h. */
#include "vm_reference_machine.h"

namespace gpuvm {
namespace reference {

namespace {

template <Type T>
sem::reg_t<T>
in_register(const Value &v)
{
	if constexpr (type_is_float(T))
		return static_cast<sem::reg_t<T>>(v.d);
	else
		return static_cast<sem::reg_t<T>>(v.i);
}

template <Type T> struct Tag { static constexpr Type type = T; };

template <typename F>
auto
with_type(Type t, F f)
{
	switch (t)
	{
		case Type::Bool: return f(Tag<Type::Bool>{});
		case Type::I16: return f(Tag<Type::I16>{});
		case Type::I64: return f(Tag<Type::I64>{});
		case Type::F32: return f(Tag<Type::F32>{});
		case Type::F64: return f(Tag<Type::F64>{});
		default: return f(Tag<Type::I32>{});
	}
}

}  // namespace

bool
compare_values(Opcode opcode, Type type, const Value &a, const Value &b)
{
	return with_type(type, [&](auto tag) {
		constexpr Type T = decltype(tag)::type;
		auto		x = in_register<T>(a);
		auto		y = in_register<T>(b);

		switch (opcode)
		{
			case Opcode::Eq: return sem::Eq<T>(x, y);
			case Opcode::Ne: return sem::Ne<T>(x, y);
			case Opcode::Lt: return sem::Lt<T>(x, y);
			case Opcode::Le: return sem::Le<T>(x, y);
			case Opcode::Gt: return sem::Gt<T>(x, y);
			default: return sem::Ge<T>(x, y);
		}
	});
}

Value
binary_value(const Op &op, const Value &a, const Value &b, uint32_t *err)
{
	if (a.null || b.null)
		return Value{};
	return with_type(op.type, [&](auto tag) {
		constexpr Type T = decltype(tag)::type;

		if constexpr (T != Type::Bool)
		{
			auto		x = in_register<T>(a);
			auto		y = in_register<T>(b);

			switch (op.opcode)
			{
				case Opcode::Add: return from_register(sem::Add<T>(x, y, err));
				case Opcode::Sub: return from_register(sem::Sub<T>(x, y, err));
				case Opcode::Mul: return from_register(sem::Mul<T>(x, y, err));
				case Opcode::Div: return from_register(sem::Div<T>(x, y, err));
				default: break;
			}
			if constexpr (T == Type::F64)
				switch (op.opcode)
				{
					case Opcode::MulRest: return from_register(sem::MulRest<T>(x, y, err));
					case Opcode::Power: return from_register(sem::Power<T>(x, y, err));
					case Opcode::Atan2: return from_register(sem::Atan2<T>(x, y, err));
					default: break;
				}
			if constexpr (type_is_int(T))
				switch (op.opcode)
				{
					case Opcode::Remainder: return from_register(sem::Remainder<T>(x, y, err));
					case Opcode::BitAnd: return from_register(sem::BitAnd<T>(x, y, err));
					case Opcode::BitOr: return from_register(sem::BitOr<T>(x, y, err));
					case Opcode::BitXor: return from_register(sem::BitXor<T>(x, y, err));
					case Opcode::ShiftLeft: return from_register(sem::ShiftLeft<T>(x, in_register<Type::I32>(b), err));
					case Opcode::ShiftRight: return from_register(sem::ShiftRight<T>(x, in_register<Type::I32>(b), err));
					default: break;
				}
			if constexpr (T == Type::I32)
				switch (op.opcode)
				{
					case Opcode::DateAdd: return from_register(sem::DateAdd(x, y, err));
					case Opcode::DateSub: return from_register(sem::DateSub(x, y, err));
					case Opcode::DateDiff: return from_register(sem::DateDiff(x, y, err));
					default: break;
				}
			if constexpr (T == Type::I64)
				switch (op.opcode)
				{
					case Opcode::DivRound: return from_register(sem::DivRound(x, y, err));
					case Opcode::DivFloor: return from_register(sem::DivFloor(x, y, err));
					case Opcode::Bound: return from_register(sem::Bound(x, y, err));
					case Opcode::NumericLead: return from_register(sem::NumericLead(x, y, err));
					case Opcode::NextDecimals: return from_register(sem::NextDecimals(x, y, err));
					case Opcode::NextRest: return from_register(sem::NextRest(x, y, err));
					case Opcode::RoundDecimals: return from_register(sem::RoundDecimals(x, y, err));
					case Opcode::DecimalsHigh: return from_register(sem::DecimalsHigh(x, y, err));
					case Opcode::DecimalsLow: return from_register(sem::DecimalsLow(x, y, err));
					case Opcode::TimestampAddMonths: return from_register(sem::TimestampAddMonths(x, in_register<Type::I32>(b), err));
					case Opcode::TimestampAddDays: return from_register(sem::TimestampAddDays(x, in_register<Type::I32>(b), err));
					case Opcode::TimestampAddMicros: return from_register(sem::TimestampAddMicros(x, y, err));
					case Opcode::TimeAddMicros: return from_register(sem::TimeAddMicros(x, y, err));
					default: break;
				}
		}
		abort();
		return Value{};
	});
}

Value
lookup_value(const Op &op, const CodeMap &map, const Value &code)
{
	const int64_t entry = !code.null ? code.i : op.p5 & LOOKUP_NULL ? static_cast<int64_t>(map.nentries) : -1;

	if (entry < 0 || (!code.null && entry >= static_cast<int64_t>(map.nentries)) || (map.nulls && bit_get(map.nulls, static_cast<size_t>(entry))))
		return Value{};
	return with_type(map.type, [&](auto tag) {
		return from_register(static_cast<const sem::reg_t<decltype(tag)::type> *>(map.values)[entry]);
	});
}

Value
field_value(const Op &op, const Value &a, uint32_t *err)
{
	const DateField field = static_cast<DateField>(op.p3);

	return a.null ? a : from_register(op.opcode == Opcode::DatePart ? sem::DatePart(a.i, field, err) : sem::DateTrunc(a.i, field, err));
}

Value
unary_value(const Op &op, const Value &a, uint32_t *err)
{
	if (a.null)
		return Value{};
	switch (op.opcode)
	{
		case Opcode::DateToTimestamp: return from_register(sem::DateToTimestamp(static_cast<int32_t>(a.i), err));
		case Opcode::DateToTimestampSat: return from_register(sem::DateToTimestampSat(static_cast<int32_t>(a.i), err));
		case Opcode::TimestampToDate: return from_register(sem::TimestampToDate(a.i, err));
		default: break;
	}
	return with_type(op.type, [&](auto tag) {
		constexpr Type T = decltype(tag)::type;

		if constexpr (T != Type::Bool)
		{
			if (op.opcode == Opcode::Neg)
				return from_register(sem::Neg<T>(in_register<T>(a), err));
			if (op.opcode == Opcode::Abs)
				return from_register(sem::Abs<T>(in_register<T>(a), err));
			if constexpr (type_is_int(T))
				return from_register(sem::BitNot<T>(in_register<T>(a), err));
			if constexpr (T == Type::F64)
				switch (op.opcode)
				{
					case Opcode::Sqrt: return from_register(sem::Sqrt<T>(a.d, err));
					case Opcode::Ceil: return from_register(sem::Ceil<T>(a.d, err));
					case Opcode::Floor: return from_register(sem::Floor<T>(a.d, err));
					case Opcode::Trunc: return from_register(sem::Trunc<T>(a.d, err));
					case Opcode::Round: return from_register(sem::Round<T>(a.d, err));
					case Opcode::Sign: return from_register(sem::Sign<T>(a.d, err));
					case Opcode::Exp: return from_register(sem::Exp<T>(a.d, err));
					case Opcode::Ln: return from_register(sem::Ln<T>(a.d, err));
					case Opcode::Log10: return from_register(sem::Log10<T>(a.d, err));
					case Opcode::Cbrt: return from_register(sem::Cbrt<T>(a.d, err));
					case Opcode::Sin: return from_register(sem::Sin<T>(a.d, err));
					case Opcode::Cos: return from_register(sem::Cos<T>(a.d, err));
					case Opcode::Tan: return from_register(sem::Tan<T>(a.d, err));
					case Opcode::Cot: return from_register(sem::Cot<T>(a.d, err));
					case Opcode::Asin: return from_register(sem::Asin<T>(a.d, err));
					case Opcode::Acos: return from_register(sem::Acos<T>(a.d, err));
					case Opcode::Atan: return from_register(sem::Atan<T>(a.d, err));
					case Opcode::Sinh: return from_register(sem::Sinh<T>(a.d, err));
					case Opcode::Cosh: return from_register(sem::Cosh<T>(a.d, err));
					case Opcode::Tanh: return from_register(sem::Tanh<T>(a.d, err));
					case Opcode::Asinh: return from_register(sem::Asinh<T>(a.d, err));
					case Opcode::Acosh: return from_register(sem::Acosh<T>(a.d, err));
					case Opcode::Atanh: return from_register(sem::Atanh<T>(a.d, err));
					default: break;
				}
		}
		abort();
		return Value{};
	});
}

Value
cast_value(Type to, Type from, const Value &a, uint32_t *err)
{
	if (a.null)
		return Value{};
	return with_type(to, [&](auto to_tag) {
		return with_type(from, [&](auto from_tag) {
			constexpr Type T = decltype(to_tag)::type;
			constexpr Type F = decltype(from_tag)::type;

			return from_register(sem::Cast<T, F>(in_register<F>(a), err));
		});
	});
}

/* -- forms of operations -------------------------------------------------------------- */

static Value
float_bits(Type type, int64_t bits)
{
	double		d;

	memcpy(&d, &bits, sizeof(d));
	return type == Type::F32 ? from_register(static_cast<float>(d)) : from_register(d);
}

/* Not, IsTrue, IsFalse */
static Value
logic_value(const Op &op, const Value &a)
{
	if (op.opcode == Opcode::Not)
		return a.null ? a : truth(!a.i);
	return truth(!a.null && (a.i != 0) == (op.opcode == Opcode::IsTrue));
}

/* And, Or */
static Value
logic_value(const Op &op, const Value &a, const Value &b)
{
	const bool	decisive = op.opcode == Opcode::Or;

	if ((!a.null && (a.i != 0) == decisive) || (!b.null && (b.i != 0) == decisive))
		return truth(decisive);
	return a.null || b.null ? Value{} : truth(!decisive);
}

static Value
pick(const Op &op, const Value &a, const Value &b)
{
	switch (op.opcode)
	{
		case Opcode::Coalesce:
			return a.null ? b : a;
		case Opcode::NullIf:
			return !a.null && !b.null && compare_values(Opcode::Eq, op.type, a, b) ? Value{} : a;
		default:
			if (a.null || b.null)
				return a.null ? b : a;
			return compare_values(op.opcode == Opcode::Greatest ? Opcode::Gt : Opcode::Lt, op.type, b, a) ? b : a;
	}
}

static Value
in_value(const Op &op, const int64_t *list, const Value &a)
{
	if (a.null)
		return a;
	if (std::find(list, list + op.p4, a.i) != list + op.p4)
		return truth(true);
	return op.p5 & IN_HAS_NULL ? Value{} : truth(false);
}

Value
Interpreter::Machine::computed(const Op &op, const std::vector<Value> &r, uint32_t position, uint32_t *err) const
{
	/* the column of cursor p3; the lane has no value in it */
	auto		column = [&]() -> const Column & { return tables[op.p3]->columns[op.p2]; };
	auto		absent = [&] { return no_row[op.p3] || column().rows[row_of[op.p3]].null; };

	switch (opcode_info[static_cast<int>(op.opcode)].form)
	{
		case OpForm::COLUMN:
			return no_row[op.p3] ? Value{} : column().rows[row_of[op.p3]];
		case OpForm::ROWID:
			return from_register(position);
		case OpForm::IMM32:
			return from_register(op.p2);
		case OpForm::IMM64:
			return op.opcode == Opcode::Int64 ? from_register(op.p4) : float_bits(op.type, op.p4);
		case OpForm::IMMNULL:
			return Value{};
		case OpForm::VARIABLE:
			if (params[op.p2].is_null)
				return Value{};
			return type_is_float(op.type) ? float_bits(op.type, params[op.p2].value) : from_register(params[op.p2].value);
		case OpForm::CAST:
			return cast_value(op.type, static_cast<Type>(op.p5), r[op.p2], err);
		case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI:
			return unary_value(op, r[op.p2], err);
		case OpForm::BINARY: case OpForm::SHIFT:
			return binary_value(op, r[op.p2], r[op.p3], err);
		case OpForm::FIELD:
			return field_value(op, r[op.p2], err);
		case OpForm::LOOKUP:
			return lookup_value(op, maps[op.p2], r[op.p3]);
		case OpForm::ZONE:
			return r[op.p3].null ? r[op.p3] : from_register(sem::ZoneShift(r[op.p3].i, zone_part(maps[op.p2], INT64_MIN, INT64_MAX), err));
		case OpForm::TEXTMATCH:
			{
				const PatternSource &pattern = patterns->sources[static_cast<size_t>(op.p4)];

				if (absent() || pattern.kind == TextMatchKind::Null)
					return Value{};
				return truth(pattern.matches(column().texts[row_of[op.p3]]));
			}
		case OpForm::TEXTPART:
			return absent() ? Value{} : from_register(part_of_text(op.p4, column().texts[row_of[op.p3]], err));
		case OpForm::LOGIC1:
			return logic_value(op, r[op.p2]);
		case OpForm::LOGIC2:
			return logic_value(op, r[op.p2], r[op.p3]);
		case OpForm::NULLTEST:
			return truth(r[op.p2].null == (op.opcode == Opcode::IsNull));
		case OpForm::DISTINCT:
			if (r[op.p2].null || r[op.p3].null)
				return truth(r[op.p2].null != r[op.p3].null);
			return truth(!compare_values(Opcode::Eq, op.type, r[op.p2], r[op.p3]));
		case OpForm::IN:
			return in_value(op, program->aux() + op.p3, r[op.p2]);
		case OpForm::COPY:
			return r[op.p2];
		case OpForm::SELECT:
			return !r[op.p4].null && r[op.p4].i ? r[op.p2] : r[op.p3];
		case OpForm::PICK:
			return pick(op, r[op.p2], r[op.p3]);
		default:
			abort();
	}
}

}  // namespace reference
}  // namespace gpuvm
