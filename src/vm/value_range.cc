/* value_range.cc: see value_range.h. */
#include "vm/value_range.h"

#include <algorithm>
#include <cstring>

#include "core/bits.h"
#include "tablet/format.h"
#include "vm/operands.h"
#include "vm/text_part.h"
#include "vm/value_range_internal.h"

namespace gpuvm {

using namespace ranges;

namespace {

template <typename Stats>
ValueRange
stats_range(const Stats &c)
{
	ValueRange	r = full_range(c.type);

	if (c.flags & CHUNK_ALL_NULL)
		return null_range(c.type);
	r.may_null = c.null_count > 0 || (c.flags & CHUNK_HAS_NULLS);
	if (type_is_float(c.type))
	{
		r.may_nan = c.flags & CHUNK_HAS_NAN;
		r.may_inf = c.flags & CHUNK_HAS_INF;
		r.exp_lo = c.exp_lo;
		r.exp_hi = c.exp_hi;
		memcpy(&r.flo, &c.min, sizeof(double));
		memcpy(&r.fhi, &c.max, sizeof(double));
		if (!(r.flo <= r.fhi))
			r.flo = r.fhi = 0;
		if (c.exp_lo > c.exp_hi)
			r.exp_lo = r.exp_hi = type_exp_lo(c.type);
		clamp_exps(&r);
	}
	else if (c.min <= c.max)
	{
		r.lo = c.min;
		r.hi = c.max;
		r.may_true = c.max != 0;
		r.may_false = c.min == 0;
	}
	return r;
}

/* May a < b, and may not? In PostgreSQL's order, NaN above infinity. */
struct Order
{
	bool		less, equal, greater;
};

Order
order_of(const ValueRange &a, const ValueRange &b)
{
	if (a.type == Type::Bool)
		return Order{a.may_false && b.may_true, (a.may_true && b.may_true) || (a.may_false && b.may_false),
			a.may_true && b.may_false};
	if (!type_is_float(a.type))
		return Order{a.lo < b.hi, a.lo <= b.hi && b.lo <= a.hi, a.hi > b.lo};

	const double al = a.may_inf ? -INFINITE : a.flo, ah = a.may_inf ? INFINITE : a.fhi;
	const double bl = b.may_inf ? -INFINITE : b.flo, bh = b.may_inf ? INFINITE : b.fhi;

	return Order{al < bh || b.may_nan, (al <= bh && bl <= ah) || (a.may_nan && b.may_nan), ah > bl || a.may_nan};
}

void
compare_ranges(Opcode opcode, const ValueRange &a, const ValueRange &b, bool *may_true, bool *may_false)
{
	Order		o = {};

	if (a.may_value && b.may_value)
		o = order_of(a, b);
	switch (opcode)
	{
		case Opcode::Eq: *may_true = o.equal; *may_false = o.less || o.greater; break;
		case Opcode::Ne: *may_true = o.less || o.greater; *may_false = o.equal; break;
		case Opcode::Lt: *may_true = o.less; *may_false = o.equal || o.greater; break;
		case Opcode::Le: *may_true = o.less || o.equal; *may_false = o.greater; break;
		case Opcode::Gt: *may_true = o.greater; *may_false = o.less || o.equal; break;
		default: *may_true = o.greater || o.equal; *may_false = o.less; break;
	}
}

void
set_bool(ValueRange *r, bool may_true, bool may_false, bool may_null)
{
	*r = full_range(Type::Bool);
	r->may_true = may_true;
	r->may_false = may_false;
	r->may_null = may_null;
	r->may_value = may_true || may_false;
	r->lo = may_false ? 0 : 1;
	r->hi = may_true ? 1 : 0;
	if (!r->may_value)
		r->lo = r->hi = 0;
}

/* Which values a part of a text may have; the errors that it may raise. */
uint32_t
text_part_range(const Op &op, const ValueRange &column, ValueRange *r)
{
	const TextPart part = text_part_of(op.p4);
	const int	most = text_part_most(part);

	*r = full_range(op.type);
	r->may_null = column.may_null;
	r->may_value = column.may_value;
	if (part.kind != TextPartKind::Packed || most < TEXT_PART_BYTES)
	{
		r->lo = 0;
		r->hi = part.kind == TextPartKind::Packed ? (int64_t{1} << 8 * most) - 1 : int64_t{VARIABLE_MAX_BYTES};
	}
	return part.kind == TextPartKind::Packed && most > TEXT_PART_BYTES ? uint32_t{ERR_CAST_RANGE} : 0;
}

void
logic_range(const Op &op, const ValueRange *regs, ValueRange *r)
{
	const ValueRange &a = regs[op.p2];

	switch (op.opcode)
	{
		case Opcode::And:
			{
				const ValueRange &b = regs[op.p3];

				set_bool(r, a.may_true && b.may_true, a.may_false || b.may_false,
						 (a.may_null && (b.may_null || b.may_true)) || (b.may_null && a.may_true));
				break;
			}
		case Opcode::Or:
			{
				const ValueRange &b = regs[op.p3];

				set_bool(r, a.may_true || b.may_true, a.may_false && b.may_false,
						 (a.may_null && (b.may_null || b.may_false)) || (b.may_null && a.may_false));
				break;
			}
		case Opcode::Not:
			set_bool(r, a.may_false, a.may_true, a.may_null);
			break;
		case Opcode::IsTrue:
			set_bool(r, a.may_true, a.may_false || a.may_null, false);
			break;
		default:
			set_bool(r, a.may_false, a.may_true || a.may_null, false);
			break;
	}
}

/* `columns`: from a column's number to its range. */
template <typename Columns>
uint32_t
op_range(const Program *program, const Op &op, const ParamValue *params, const Columns &columns, ValueRange *regs,
		 const CodeMap *maps)
{
	const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;

	switch (form)
	{
		case OpForm::COLUMN:
			regs[op.p1] = columns(op.p2);
			regs[op.p1].type = op.type;		/* a device may read it narrower, where that fits */
			return 0;
		case OpForm::ROWID:
			regs[op.p1] = full_range(op.type);
			regs[op.p1].may_null = false;
			return 0;
		case OpForm::IMM32:
			regs[op.p1] = int_constant(op.type, op.p2);
			return 0;
		case OpForm::IMM64:
			{
				double		d;

				memcpy(&d, &op.p4, sizeof(d));
				regs[op.p1] = op.opcode == Opcode::Int64 ? int_constant(op.type, op.p4)
					: float_constant(op.type, op.type == Type::F32 ? static_cast<double>(static_cast<float>(d)) : d);
				return 0;
			}
		case OpForm::IMMNULL:
			regs[op.p1] = null_range(op.type);
			return 0;
		case OpForm::VARIABLE:
			{
				const ParamValue &p = params[op.p2];
				double		d;

				memcpy(&d, &p.value, sizeof(d));
				regs[op.p1] = p.is_null ? null_range(op.type)
					: type_is_float(op.type) ? float_constant(op.type, op.type == Type::F32 ? static_cast<double>(static_cast<float>(d)) : d)
					: int_constant(op.type, p.value);
				return 0;
			}
		case OpForm::COPY:
			regs[op.p1] = regs[op.p2];
			return 0;
		case OpForm::LOOKUP:
			regs[op.p1] = maps ? lookup_range(op, maps[op.p2], regs[op.p3]) : full_range(op.type);
			return 0;
		case OpForm::ZONE:
			return zone_range(maps ? &maps[op.p2] : nullptr, regs[op.p3], &regs[op.p1]);
		case OpForm::FIELD:
			return field_range(op, regs[op.p2], &regs[op.p1]);
		case OpForm::LOGIC1:
		case OpForm::LOGIC2:
			logic_range(op, regs, &regs[op.p1]);
			return 0;
		case OpForm::NULLTEST:
			{
				const ValueRange &a = regs[op.p2];
				const bool	is_null = op.opcode == Opcode::IsNull;

				set_bool(&regs[op.p1], is_null ? a.may_null : a.may_value, is_null ? a.may_value : a.may_null, false);
				return 0;
			}
		case OpForm::DISTINCT:
			set_bool(&regs[op.p1], true, true, false);
			return 0;
		case OpForm::TEXTMATCH:
			{
				const bool	may_value = columns(op.p2).may_value;

				set_bool(&regs[op.p1], may_value, may_value, true);
				return 0;
			}
		case OpForm::TEXTPART:
			return text_part_range(op, columns(op.p2), &regs[op.p1]);
		case OpForm::TEXTKEY:
			/* another column's reference, maybe */
			regs[op.p1] = regs[op.p2];
			regs[op.p1].lo = 0;
			regs[op.p1].hi = VARIABLE_MAX_REFERENCE;
			return 0;
		case OpForm::TEXTCOMPARE:
			{
				const ValueRange &a = regs[op.p2], &b = regs[op.p3];
				const bool	may_null = a.may_null || b.may_null, may_value = a.may_value && b.may_value;

				regs[op.p1] = ValueRange{};
				regs[op.p1].type = op.type;
				regs[op.p1].may_null = may_null;
				regs[op.p1].may_value = may_value;
				regs[op.p1].lo = -1;
				regs[op.p1].hi = 1;
				return 0;
			}
		case OpForm::IN:
			{
				const ValueRange &a = regs[op.p2];
				const int64_t *v = program->aux() + op.p3;
				const int64_t *from = std::lower_bound(v, v + op.p4, a.lo);
				const bool	found = a.may_value && from < v + op.p4 && *from <= a.hi;
				const bool	has_null = op.p5 & IN_HAS_NULL;

				set_bool(&regs[op.p1], found, a.may_value && !has_null, a.may_null || (a.may_value && has_null));
				return 0;
			}
		case OpForm::COMPARE:
			if (op.p5 & COMPARE_STORES)
			{
				bool		t, f;

				compare_ranges(op.opcode, regs[op.p1], regs[op.p2], &t, &f);
				set_bool(&regs[op.p3], t, f, regs[op.p1].may_null || regs[op.p2].may_null);
			}
			return 0;
		default:
			break;
	}

	/* The rest are strict, or pick one of their operands. */
	if (form != OpForm::CAST && form != OpForm::UNARY && form != OpForm::UNARY_IL && form != OpForm::UNARY_LI
		&& form != OpForm::BINARY && form != OpForm::SHIFT && form != OpForm::SELECT && form != OpForm::PICK)
		return 0;

	const bool	two = form == OpForm::BINARY || form == OpForm::SHIFT || form == OpForm::SELECT || form == OpForm::PICK;
	const ValueRange &a = regs[op.p2];
	const ValueRange &b = regs[two ? op.p3 : op.p2];
	ValueRange	r = full_range(op.type);
	uint32_t	errors = 0;

	r.may_null = a.may_null || b.may_null;
	switch (form)
	{
		case OpForm::SELECT:
			unite(&r, a, b);
			break;
		case OpForm::PICK:
			r.may_null = op.opcode == Opcode::NullIf || (a.may_null && b.may_null);
			if (op.opcode == Opcode::NullIf)
				unite(&r, a, a);
			else
				unite(&r, a, b);
			break;
		default:
			if (!a.may_value || !b.may_value)
			{
				r = null_range(op.type);
				break;
			}
			if (form == OpForm::CAST)
			{
				bool		may_null = r.may_null;

				errors = cast_range(static_cast<Type>(op.p5), a, &r);
				r.may_null = may_null;
			}
			else if (form == OpForm::UNARY_IL || form == OpForm::UNARY_LI)
				errors = date_cast_range(op.opcode, a, &r);
			else if (form == OpForm::UNARY && type_is_float(op.type) && op.opcode != Opcode::Neg && op.opcode != Opcode::Abs)
				errors = float_function(op.opcode, a, &r);
			else if (form == OpForm::UNARY && type_is_float(op.type))
			{
				r.may_nan = a.may_nan;
				r.may_inf = a.may_inf;
				r.exp_lo = a.exp_lo;
				r.exp_hi = a.exp_hi;
			}
			else if (op.opcode == Opcode::Neg)
				errors = set_interval(&r, -int128(a.hi), -int128(a.lo), ERR_INT_OVERFLOW);
			else if (op.opcode == Opcode::Abs)
				errors = set_interval(&r, a.lo > 0 ? int128(a.lo) : a.hi < 0 ? -int128(a.hi) : int128(0),
									  std::max(int128(a.hi), -int128(a.lo)), ERR_INT_OVERFLOW);
			else if (two && type_is_float(op.type))
				errors = float_arithmetic(op, a, b, &r);
			else if (two)
				errors = int_arithmetic(op, a, b, &r);
			break;
	}
	regs[op.p1] = r;
	return errors;
}

}  // namespace

ValueRange
full_range(Type t)
{
	ValueRange	r = {};

	r.type = t;
	r.may_null = r.may_value = true;
	r.may_true = r.may_false = true;
	r.may_nan = r.may_inf = type_is_float(t);
	r.exp_lo = type_exp_lo(t);
	r.exp_hi = type_exp_hi(t);
	r.lo = type_min(t);
	r.hi = type_max(t);
	r.flo = -INFINITE;
	r.fhi = INFINITE;
	return r;
}

ValueRange
column_range(const ColumnSummary &column)
{
	return stats_range(column);
}

ValueRange
column_range(const ColumnChunk &chunk)
{
	return stats_range(chunk);
}

ColumnSummary
range_summary(const ValueRange &range, Type type, bool nullable)
{
	ColumnSummary s = {};

	s.type = type;
	s.max_width = static_cast<uint8_t>(type_width(type));
	if (range.may_null || nullable)
	{
		s.flags |= CHUNK_HAS_NULLS;
		s.null_count = 1;
	}
	if (!range.may_value)
		s.flags |= CHUNK_ALL_NULL;
	if (type_is_float(type))
	{
		s.flags |= static_cast<uint16_t>((range.may_nan ? CHUNK_HAS_NAN : 0) | (range.may_inf ? CHUNK_HAS_INF : 0) | CHUNK_HAS_NEG_ZERO);
		s.exp_lo = static_cast<int16_t>(range.exp_lo);
		s.exp_hi = static_cast<int16_t>(range.exp_hi);
		memcpy(&s.min, &range.flo, sizeof(s.min));
		memcpy(&s.max, &range.fhi, sizeof(s.max));
	}
	else if (type == Type::Bool)
	{
		s.min = range.may_true && !range.may_false;
		s.max = range.may_true;
	}
	else
	{
		s.min = range.lo;
		s.max = range.hi;
	}
	return s;
}

void
analyze_ranges(const Program *program, const ParamValue *params, const ValueRange *columns,
			   ValueRange *regs, uint32_t *errors, const CodeMap *maps)
{
	const auto	column = [columns](int64_t number) -> const ValueRange & { return columns[number]; };

	for (int i = 0; i < program->nops; i++)
		errors[i] = i > program->parallel && i < program->converge
			? op_range(program, program->ops()[i], params, column, regs, maps) : 0;
}

void
group_ranges(const Program *program, const ValueRange *regs, uint64_t rows, ValueRange *results)
{
	ValueRange	aggs[PROGRAM_MAX_COLUMNS];
	const int64_t *keys = nullptr, *sources = nullptr;

	for (int i = 0; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];
		const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;
		const AggFn fn = static_cast<AggFn>(op.p5);

		if (form == OpForm::AGGOPEN)
			sources = program->aux() + op.p3;
		else if (form == OpForm::GROUP)
			keys = program->aux() + op.p2;
		if (form != OpForm::AGGSTEP)
			continue;

		ValueRange &r = aggs[op.p1];

		/* sums as a stage has them (engine/abi.h) */
		r = full_range(fn == AggFn::Sum && type_is_int(op.type) ? Type::I64 : agg_result_type(fn, op.type));
		if (fn == AggFn::CountStar || fn == AggFn::Count)
		{
			r.may_null = false;
			r.lo = 0;
			r.hi = static_cast<int64_t>(std::min<uint64_t>(rows, INT64_MAX));
		}
		else if ((fn == AggFn::Min || fn == AggFn::Max || (fn == AggFn::AnyValue && !type_is_float(op.type))) && regs != nullptr)
		{
			r = regs[op.p2];
			r.may_null = true;
		}
	}
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode != Opcode::ResultColumn)
			continue;
		if (sources[op.p1] >= RESULT_FROM_AGG)
			results[op.p1] = aggs[result_agg(sources[op.p1])];
		else
			results[op.p1] = regs != nullptr ? regs[keys[sources[op.p1]]] : full_range(op.type);
	}
}

static bool
is_sink(OpForm form)
{
	return form == OpForm::GROUP || form == OpForm::AGGSTEP || form == OpForm::RESULT;
}

static bool
leaves(const Op &op)
{
	const OpForm form = form_of(op);

	return (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES)) || form == OpForm::BRANCH || form == OpForm::JUMP || form == OpForm::INVALID;
}

/* From the end: what lanes leave by, where they may go on, what may raise, and all that these read. */
SinkPath
sink_path(const Program *program, const uint32_t *errors)
{
	bool		wanted[PROGRAM_MAX_REGS] = {}, target[PROGRAM_MAX_OPS + 1] = {};
	SinkPath	path;

	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		if (!leaves(op))
			continue;
		path.always = false;
		if (form_of(op) == OpForm::JUMP || (form_of(op) != OpForm::INVALID && op.p4 == VERDICT_JUMPS))
			target[op.p3] = true;
	}
	for (int i = program->converge - 1; i > program->parallel; i--)
	{
		const Op   &op = program->ops()[i];
		const OpForm form = form_of(op);
		const bool	stores = form == OpForm::COMPARE && (op.p5 & COMPARE_STORES);

		if (is_sink(form))
			path.ops.push_back(static_cast<uint16_t>(i));
		else if (leaves(op) || target[i] || errors[i] != 0 || wanted[stores ? op.p3 : op.p1])
		{
			path.ops.push_back(static_cast<uint16_t>(i));
			each_read(program, op, [&](int reg) { wanted[reg] = true; });
		}
	}
	std::reverse(path.ops.begin(), path.ops.end());
	return path;
}

/*
 * Follows "a lane may be live here" through the pipeline: a target is reached
 * when a jump to it may be taken.
 */
bool
may_reach_sink(const Program *program, const SinkPath &path, const ParamValue *params, const ColumnChunk *chunks, const CodeMap *maps)
{
	const auto	column = [chunks](int64_t number) { return column_range(chunks[number]); };
	ValueRange	regs[PROGRAM_MAX_REGS];	/* written before they are read, as the path has what it reads */
	bool		reached[PROGRAM_MAX_OPS + 1] = {};
	bool		live = true;

	if (path.always)
		return true;
	for (uint16_t i : path.ops)
	{
		const Op   &op = program->ops()[i];
		const OpForm form = form_of(op);
		const uint32_t errors = op_range(program, op, params, column, regs, maps);
		bool		leave = false, stay = true;

		live = live || reached[i];
		if (!live)
			continue;
		if (errors || is_sink(form))
			return true;
		if (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES))
		{
			const bool	may_null = regs[op.p1].may_null || regs[op.p2].may_null;

			compare_ranges(op.opcode, regs[op.p1], regs[op.p2], &leave, &stay);
			(op.p5 & JUMP_IF_NULL ? leave : stay) |= may_null;
		}
		else if (form == OpForm::BRANCH)
		{
			const ValueRange &a = regs[op.p1];

			leave = op.opcode == Opcode::If ? a.may_true : a.may_false;
			stay = op.opcode == Opcode::If ? a.may_false : a.may_true;
			(op.p5 & JUMP_IF_NULL ? leave : stay) |= a.may_null;
		}
		else if (form == OpForm::JUMP)
		{
			leave = true;
			stay = false;
		}
		else if (form == OpForm::INVALID)
			stay = false;
		if (leave && (form == OpForm::JUMP || op.p4 == VERDICT_JUMPS))
			reached[op.p3] = true;
		live = stay;
	}
	return false;
}

}  // namespace gpuvm
