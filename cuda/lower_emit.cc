/* lower_emit.cc: the second pass; see lower_internal.h. */
#include "lower_internal.h"

#include <cmath>
#include <initializer_list>
#include <utility>

namespace gpuvm {
namespace cuda {

DeviceOp *
Lowering::add(uint16_t code)
{
	if (out->nops == MAX_OPS)
	{
		full = true;
		out->nops--;
	}

	DeviceOp   *d = &out->ops[out->nops++];

	*d = DeviceOp{};
	uniform_imm[d - out->ops][0] = uniform_imm[d - out->ops][1] = -1;
	d->code = code;
	d->dst = d->a = d->b = d->c = OPERAND_NONE;
	d->dst_null = d->a_null = d->b_null = d->c_null = d->pending = OPERAND_NONE;
	return d;
}

/* A comparison of a staged column with a constant that is not null (nor NaN). */
bool
Lowering::fuses_with_column(const Op &op) const
{
	if (op.type == Type::Bool)
		return false;

	const Register &a = reg[op.p1], &b = reg[op.p2];
	const Register &c = a.is_const ? a : b, &v = a.is_const ? b : a;

	return c.is_const && !c.null_const && !v.is_const && v.column >= 0 &&
		!(type_is_float(op.type) && std::isnan(double_of(c.value, op.type)));
}

namespace {

Opcode
swapped(Opcode o)
{
	return o == Opcode::Lt ? Opcode::Gt : o == Opcode::Le ? Opcode::Ge : o == Opcode::Gt ? Opcode::Lt
		: o == Opcode::Ge ? Opcode::Le : o;
}

}  // namespace

/* One of those that stand with the rare operations, which have two operands. */
static bool
is_float_function(Opcode o)
{
	return o >= Opcode::Sqrt && o <= Opcode::Sign;
}

/* The comparison as an interval of the column's values, or its complement. */
const char *
Lowering::filter_column(const Op &op)
{
	bool		swap = reg[op.p1].is_const;
	const Register &v = reg[swap ? op.p2 : op.p1];
	int64_t		bits = reg[swap ? op.p1 : op.p2].value;
	Opcode		o = swap ? swapped(op.opcode) : op.opcode;
	DeviceOp   *d = add(op.type == Type::F32 ? CODE_FILTER_F32 : op.type == Type::F64 ? CODE_FILTER_F64
		: op.type == Type::I64 ? CODE_FILTER_I64 : CODE_FILTER_COLUMN);

	/* of what is stored: narrowed programs read I64 as I32 */
	d->aux = static_cast<uint8_t>(type_natural_width(in.columns[out->columns[v.column].table_column].summary.type));
	d->b = type_is_float(op.type) ? OPERAND_NONE : allocate_lasting(static_cast<int>(sizeof(FilterRange)) / GRAIN);
	d->column = static_cast<uint16_t>(v.column);
	d->a = out->columns[v.column].data;
	d->a_null = null_mask_of(swap ? op.p2 : op.p1);
	if (type_is_float(op.type))
	{
		/* NaN is above everything: > and >= are the complements of <= and <. */
		double		c = double_of(bits, op.type), lo = -INFINITY, hi = c;
		double		below = op.type == Type::F32 ? static_cast<double>(std::nextafterf(static_cast<float>(c), -INFINITY))
			: std::nextafter(c, -INFINITY);

		if (o == Opcode::Lt || o == Opcode::Ge)
		{
			hi = below;
			if (std::isinf(c) && c < 0)		/* nothing is below */
			{
				lo = INFINITY;
				hi = -INFINITY;
			}
		}
		if (o == Opcode::Eq || o == Opcode::Ne)
			lo = c;
		if (o == Opcode::Gt || o == Opcode::Ge || o == Opcode::Ne)
			d->flags |= DOP_NEGATED;
		d->imm_a = bits_of(lo, op.type);
		d->imm_b = bits_of(hi, op.type);
		return nullptr;
	}

	const int128 least = op.type == Type::I16 ? INT16_MIN : op.type == Type::I32 ? INT32_MIN : INT64_MIN;
	const int128 most = op.type == Type::I16 ? INT16_MAX : op.type == Type::I32 ? INT32_MAX : INT64_MAX;
	int128		c = bits, lo = least, hi = most;

	if (o == Opcode::Eq || o == Opcode::Ne)
		lo = hi = c;
	else if (o == Opcode::Lt)
		hi = c - 1;
	else if (o == Opcode::Le)
		hi = c;
	else if (o == Opcode::Gt)
		lo = c + 1;
	else
		lo = c;
	if (o == Opcode::Ne)
		d->flags |= DOP_NEGATED;
	if (lo > hi)
	{
		/* An empty interval is the complement of a full one. */
		lo = least;
		hi = most;
		d->flags ^= DOP_NEGATED;
	}
	d->imm_a = static_cast<int64_t>(lo);
	d->imm_b = static_cast<int64_t>(hi);
	return nullptr;
}

const char *
Lowering::compare_or_branch(const Op &op)
{
	OpForm		form = form_of(op.opcode);

	if (form == OpForm::COMPARE && fuses_with_column(op))
		filter_column(op);
	else
	{
		DeviceOp   *d = add(generic_code(op.opcode, op.type));

		if (form == OpForm::COMPARE || form == OpForm::BRANCH)
			operand_a(d, op.p1);
		if (form == OpForm::COMPARE)
			operand_b(d, op.p2);
		if (form == OpForm::COMPARE && in.options.grid && are_near(op.p1, op.p2))
			d->flags |= DOP_NEAR;
	}

	DeviceOp   *d = &out->ops[out->nops - 1];

	if (form == OpForm::COMPARE && (op.p5 & COMPARE_STORES))
	{
		d->flags |= DOP_STORES;
		return place_result(d, op, op.p3, false, 0);
	}
	if (op.p5 & JUMP_IF_NULL)
		d->flags |= DOP_JUMP_IF_NULL;
	if (form == OpForm::JUMP || (form != OpForm::INVALID && op.p4 == VERDICT_JUMPS))
		d->pending = pending[op.p3];
	return nullptr;
}

/* Does somebody need the column's values in register form? Null tests, counts, fused comparisons and Result do not. */
bool
Lowering::used_as_value(int r, int address) const
{
	for (int i = address + 1; i < program->converge; i++)
	{
		const Op   &user = program->ops()[i];
		OpForm		form = form_of(user.opcode);
		bool		reads = false;

		if (form == OpForm::NULLTEST || form == OpForm::RESULT || (counts(user) && user.p3 != r) || (form == OpForm::COMPARE && fuses_with_column(user)))
			continue;
		each_source(user, [&](int s) { reads |= s == r; });
		if (reads)
			return true;
	}
	return false;
}

/*
 * Do only operations that have a form for codes (CODE_*_CODES) need the column's
 * values, and so few that widening it once for all would not be cheaper?
 */
bool
Lowering::read_as_codes(int r, int address) const
{
	int			reads = 0;

	/* A grid widens it once for many inner rows. */
	if (in.options.grid)
		return false;
	for (int i = address + 1; i < program->converge; i++)
	{
		const Op   &user = program->ops()[i];
		OpForm		form = form_of(user.opcode);
		bool		has_form = user.opcode == Opcode::Add || user.opcode == Opcode::Sub || user.opcode == Opcode::Mul ||
			user.opcode == Opcode::Lt || user.opcode == Opcode::Le || user.opcode == Opcode::Gt || user.opcode == Opcode::Ge ||
			user.opcode == Opcode::Lookup || groups_read_codes(user);
		int			here = 0;

		if (form == OpForm::NULLTEST || form == OpForm::RESULT || (counts(user) && user.p3 != r) || (form == OpForm::COMPARE && fuses_with_column(user)))
			continue;
		each_source(user, [&](int s) { here += s == r; });
		if (here > 0 && !has_form)
			return false;
		reads += here;
	}
	return reg[r].type == Type::I32 && reads <= 2;
}

/* Keys and sums of I32, where groups have a table. */
bool
Lowering::groups_read_codes(const Op &user) const
{
	if (user.opcode == Opcode::AggStep)
		return uses_table() && user.type == Type::I32 && static_cast<AggFn>(user.p5) == AggFn::Sum;
	return user.opcode == Opcode::Group && !packed_keys_are_wide(out->groups);
}

/* Mul, then AggStep Sum of it and nothing else: the product needs no place. */
bool
Lowering::fuses_with_sum(int address) const
{
	const Op   &mul = program->ops()[address], &sum = program->ops()[address + 1];

	if (mul.opcode == Opcode::Mul && mul.p5 == MUL_OF_NARROW)
		return true;
	return !uses_table() && !hoisted[address] && mul.opcode == Opcode::Mul && (mul.type == Type::I32 || mul.type == Type::I64) &&
		address + 1 < program->converge && sum.opcode == Opcode::AggStep && static_cast<AggFn>(sum.p5) == AggFn::Sum &&
		sum.p2 == mul.p1 && sum.p3 < 0 && reg[mul.p1].uses == 1 && !is_target[address + 1];
}

const char *
Lowering::emit_column(const Op &op, int address)
{
	Register   &r = reg[op.p1];

	if (r.uniform >= 0)
		return nullptr;

	const StagePlan &c = out->columns[r.column];

	r.nulls_at = c.nulls == OPERAND_NONE ? c.nulls : static_cast<uint16_t>(c.nulls | OPERAND_STAGED);
	r.at = c.data;
	if (r.direct || !used_as_value(op.p1, address))
		return nullptr;
	if (read_as_codes(op.p1, address))
	{
		r.coded = true;
		r.at = static_cast<uint16_t>(c.data | OPERAND_STAGED);
		return nullptr;
	}

	DeviceOp   *d = add(generic_code(op.opcode, op.type));

	d->a = r.at;
	d->a_null = r.nulls_at;
	d->column = static_cast<uint16_t>(r.column);
	r.at = allocate(place_units(op.type));
	r.owns_slot = true;
	d->dst = r.at;
	return nullptr;
}

/* Short lists lie in shared memory behind the operations, long ones in device memory. */
void
Lowering::emit_in(const Op &op, DeviceOp *d)
{
	d->aux = op.p5;
	d->count = static_cast<uint16_t>(op.p4);
	d->imm_b = static_cast<int64_t>(op.p3) * 8;
	if (program->naux > MAX_AUX)
	{
		d->flags |= DOP_LONG_LIST;
		out->long_aux = program->aux();
		out->nlong_aux = static_cast<uint16_t>(program->naux);
	}
	else
	{
		memcpy(out->aux, program->aux(), program->naux * sizeof(int64_t));
		out->naux = static_cast<uint16_t>(program->naux);
	}
}

/* Of the table, the entries that the operand's range leaves. */
const char *
Lowering::emit_zone(const Op &op, int address)
{
	const CodeMap &map = in.maps[op.p2];
	const ValueRange &values = range[op.p3];
	const ZoneTable part = zone_part(map, values.may_value ? values.lo : 0, values.may_value ? values.hi : 0);
	DeviceOp   *d = add(generic_code(op.opcode, op.type));

	operand_a(d, op.p3);
	d->b = 0;
	d->flags |= DOP_B_IMM;		/* there is none: */
	d->imm_b = (part.from - static_cast<const int64_t *>(map.values)) << 32 | part.n;
	d->column = static_cast<uint16_t>(op.p2);
	if (may_err(address))
		d->flags |= DOP_CHECKED;
	return place_result(d, op, op.p1, false, address);
}

const char *
Lowering::emit(const Op &op, int address)
{
	OpForm		form = form_of(op.opcode);

	switch (form)
	{
		case OpForm::COLUMN:
			return emit_column(op, address);
		case OpForm::ROWID:
			if (op.type != Type::I64 || !used_as_value(op.p1, address))
				return nullptr;
			return place_result(add(generic_code(op.opcode, op.type)), op, op.p1, false, address);
		case OpForm::IMM32: case OpForm::IMM64: case OpForm::IMMNULL: case OpForm::VARIABLE:
			return nullptr;
		case OpForm::CAST: case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI:
		case OpForm::LOGIC1: case OpForm::NULLTEST: case OpForm::COPY: case OpForm::IN: case OpForm::TEXTKEY: case OpForm::TEXTCOMPARE:
		case OpForm::BINARY: case OpForm::SHIFT: case OpForm::LOGIC2: case OpForm::DISTINCT:
		case OpForm::SELECT: case OpForm::PICK: case OpForm::FIELD:
		{
			if (form == OpForm::COPY && reg[op.p1].is_rowid)
				return nullptr;

			DeviceOp   *d = add(generic_code(op.opcode, op.type));

			operand_a(d, op.p2);
			if (form == OpForm::BINARY || form == OpForm::SHIFT || form == OpForm::LOGIC2 || form == OpForm::DISTINCT ||
				form == OpForm::TEXTCOMPARE || form == OpForm::SELECT || form == OpForm::PICK)
				operand_b(d, op.p3);
			if (form == OpForm::COPY)
				operand_b(d, op.p2);	/* it is a choice between the same */
			if (form == OpForm::SELECT)
				d->c = truth_mask_of(static_cast<int>(op.p4));
			if (form == OpForm::CAST)
				d->aux = op.p5;
			if (form == OpForm::IN)
				emit_in(op, d);
			if (form == OpForm::UNARY && is_float_function(op.opcode))
			{
				d->b = 0;
				d->flags |= DOP_B_IMM;	/* there is none */
			}
			if (form == OpForm::FIELD)
			{
				d->aux = static_cast<uint8_t>(op.p3);
				d->b = 0;
				d->flags |= DOP_B_IMM;	/* there is none */
			}
			if (may_err(address))
				d->flags |= DOP_CHECKED;
			return place_result(d, op, op.p1, form == OpForm::UNARY || form == OpForm::BINARY || form == OpForm::FIELD, address);
		}
		case OpForm::LOOKUP:
		{
			const int	width = type_width(op.type);
			DeviceOp   *d = add(generic_code(op.opcode, width == 1 ? Type::Bool : width == 4 ? Type::I32 : Type::I64));

			operand_a(d, op.p3);
			d->aux = op.p5;
			d->column = static_cast<uint16_t>(op.p2);
			return place_result(d, op, op.p1, false, address);
		}
		case OpForm::TEXTMATCH:
		case OpForm::TEXTPART:
		{
			DeviceOp   *d = add(generic_code(op.opcode, op.type));

			d->column = static_cast<uint16_t>(add_column(op.p2 | TEXT_CODES));
			d->count = static_cast<uint16_t>(add_column(op.p2 | TEXT_IMAGES));
			d->imm_a = op.p4;
			return place_result(d, op, op.p1, false, address);
		}
		case OpForm::ZONE:
			return emit_zone(op, address);
		case OpForm::COMPARE: case OpForm::BRANCH: case OpForm::JUMP: case OpForm::INVALID:
			return compare_or_branch(op);
		case OpForm::GROUP:
			return emit_group(op);
		case OpForm::AGGSTEP:
			return uses_table() ? emit_agg_grouped(op, nullptr) : emit_agg(op, nullptr, 0);
		case OpForm::RESULT:
			return in.options.mark != MarkKind::None ? emit_mark(op) : emit_rows(op);
		default:
			return "an opcode does not run on the device";
	}
}

const char *
Lowering::emit_divided(int address)
{
	Op			op = program->ops()[address];

	op.opcode = linear_of[address].opcode;
	op.p1 = linear_of[address].sum;
	op.p2 = linear_of[address].inner;
	return compare_or_branch(op);
}

/* The program's operations; of a grid: those that are hoisted, or the others. */
const char *
Lowering::emit_part(bool hoisted_part)
{
	const Op   *ops = program->ops();
	auto		here = [&](int target) { return (target <= hoisted_end) == hoisted_part; };

	if (!hoisted_part)
		emit_inner_sums();
	for (int i = 0; i <= program->converge; i++)
		if (is_target[i] && here(i))
		{
			pending[i] = allocate(mask_units());
			add(CODE_SET_MASK)->dst = pending[i];
		}
	for (int i = program->parallel + 1; i <= program->converge; i++)
	{
		const char *problem;

		if (is_target[i] && here(i))
			add(CODE_JOIN)->pending = pending[i];
		if (i == program->converge)
			break;
		if (hoisted[i] != hoisted_part || dropped[i])
			continue;
		if (fuses_with_sum(i))
		{
			problem = uses_table() ? emit_agg_grouped(ops[i + 1], &ops[i]) : emit_agg(ops[i + 1], &ops[i], i);
			release_dead(ops[i], i);
			i++;
		}
		else
		{
			problem = linear_of[i].there ? emit_divided(i) : emit(ops[i], i);
			release_dead(ops[i], i);
		}
		if (problem)
			return problem;
	}
	if (hoisted_part)
		emit_outer_sums();
	add(CODE_END);
	return nullptr;
}

const char *
Lowering::emit_all()
{
	zeroes = allocate(mask_units());
	ones = allocate(mask_units());
	add(CODE_SET_MASK)->dst = zeroes;

	DeviceOp   *d = add(CODE_SET_MASK);

	d->dst = ones;
	d->imm_a = 0xffff;

	int			masks = out->nops;
	const char *problem = nullptr;

	if (uses_table() && program->nkeys == 0)
		emit_targets();
	if (in.options.grid)
	{
		problem = emit_part(true);
		loop_begin = out->nops;
	}
	if (!problem)
		problem = emit_part(false);
	if (problem)
		return problem;
	if (in.options.grid)
		place_grid();
	if (full)
		return "the program does not fit the device's shared memory";

	/* Nobody reads the constant masks: do not set them. */
	bool		wanted = false;

	for (int i = masks; i < out->nops; i++)
		for (uint16_t operand : {out->ops[i].a, out->ops[i].b, out->ops[i].c, out->ops[i].a_null, out->ops[i].b_null})
			wanted |= operand == zeroes || operand == ones;
	if (!wanted)
	{
		memmove(out->ops, out->ops + masks, (out->nops - masks) * sizeof(DeviceOp));
		memmove(uniform_imm, uniform_imm + masks, (out->nops - masks) * sizeof(uniform_imm[0]));
		out->nops = static_cast<uint16_t>(out->nops - masks);
		loop_begin -= masks;
	}

	uint16_t	next = 0;

	for (int i = out->nops - 1; i >= 0; i--)
	{
		if (out->ops[i].code == CODE_END || out->ops[i].code == CODE_JOIN)
			next = static_cast<uint16_t>(i);
		out->ops[i].skip = next;
	}
	return nullptr;
}

/* The frequent operations' own codes, once everything else is known. */
void
Lowering::choose_code(DeviceOp *d)
{
	auto		is_coded = [](uint16_t operand) { return operand != OPERAND_NONE && (operand & OPERAND_STAGED); };
	const bool	coded = is_coded(d->a) || is_coded(d->b);

	if (d->code == CODE_MULSUM_I32 && coded)
		d->code = CODE_MULSUM_CODES;
	if (d->code < CODE_GENERIC)
		return;

	Opcode		o = static_cast<Opcode>((d->code - CODE_GENERIC) / 16);
	Type		t = static_cast<Type>((d->code - CODE_GENERIC) % 16);
	bool		typed = t == Type::I32 || t == Type::I64 || t == Type::F32 || t == Type::F64;
	auto		by_type = [t](DeviceCode i32, DeviceCode i64, DeviceCode f32, DeviceCode f64)
	{
		return t == Type::I32 ? i32 : t == Type::I64 ? i64 : t == Type::F32 ? f32 : f64;
	};

	if (o == Opcode::In && !(d->flags & DOP_LONG_LIST))
		d->imm_b += out->nops * static_cast<int64_t>(sizeof(DeviceOp));
	else if (o == Opcode::AggStep)
	{
		AggFn		fn = static_cast<AggFn>(d->aux);

		if (fn == AggFn::CountStar && d->c == OPERAND_NONE)
			d->code = CODE_COUNT;
		else if (fn == AggFn::Sum && d->c == OPERAND_NONE && typed)
			d->code = by_type(CODE_SUM_I32, CODE_SUM_I64, CODE_SUM_F32, CODE_SUM_F64);
	}
	else if (typed && (o == Opcode::Lt || o == Opcode::Le || o == Opcode::Gt || o == Opcode::Ge))
	{
		/* a > b is b < a, and a >= b is not a < b: floats are totally ordered too. */
		if (o == Opcode::Gt || o == Opcode::Le)
		{
			uint8_t		imms = static_cast<uint8_t>((d->flags & DOP_A_IMM ? DOP_B_IMM : 0) | (d->flags & DOP_B_IMM ? DOP_A_IMM : 0));

			d->flags = static_cast<uint8_t>((d->flags & ~(DOP_A_IMM | DOP_B_IMM)) | imms);
			std::swap(d->a, d->b);
			std::swap(d->a_null, d->b_null);
			std::swap(d->count, d->c);
			std::swap(d->imm_a, d->imm_b);
			std::swap(uniform_imm[d - out->ops][0], uniform_imm[d - out->ops][1]);
		}
		if (o == Opcode::Le || o == Opcode::Ge)
			d->flags |= DOP_NEGATED;
		d->code = by_type(coded ? CODE_LESS_CODES : CODE_LESS_I32, CODE_LESS_I64, CODE_LESS_F32, CODE_LESS_F64);
	}
	else if (typed && o == Opcode::Add)
		d->code = by_type(coded ? CODE_ADD_CODES : CODE_ADD_I32, CODE_ADD_I64, CODE_ADD_F32, CODE_ADD_F64);
	else if (typed && o == Opcode::Sub)
		d->code = by_type(coded ? CODE_SUB_CODES : CODE_SUB_I32, CODE_SUB_I64, CODE_SUB_F32, CODE_SUB_F64);
	else if (typed && o == Opcode::Mul)
		d->code = by_type(coded ? CODE_MUL_CODES : CODE_MUL_I32, CODE_MUL_I64, CODE_MUL_F32, CODE_MUL_F64);
	else if (o == Opcode::Column && (t == Type::I32 || t == Type::I64))
		d->code = t == Type::I32 ? CODE_COLUMN_I32 : CODE_COLUMN_I64;
}

/* The kernel that has the program's operations. */
void
Lowering::choose_op_set()
{
	out->op_set = OpSet::Narrow;
	for (int i = 0; i < out->nops; i++)
	{
		DeviceOp   *d = &out->ops[i];

		choose_code(d);

		OpSet		set = d->code >= CODE_GROUP_KEY ? OpSet::All : d->code >= CODE_WIDE ? OpSet::Wide : OpSet::Narrow;

		out->op_set = set > out->op_set ? set : out->op_set;
	}
}

}  // namespace cuda
}  // namespace gpuvm
