/*
 * lower_groups.cc: Group and AggStep where groups have rows in a table: packing
 * of the keys, and each aggregate's cells; see lower_internal.h.
 *
 * A program without keys has a table too, of one row, if the accumulators of
 * lanes cannot hold one of its aggregates.
 */
#include "lower_internal.h"

#include <cmath>
#include <initializer_list>

#include "core/bits.h"
#include "vm/float_sum.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint128 WORD = static_cast<uint128>(1) << 64;

/* The codes of floats end with those of minus infinity: only NaN, which has one code, lies above. */
constexpr uint64_t F32_CODES = 0xff800001, F64_CODES = 0xfff0000000000001;

/* Does an operation make lanes leave, wait or come back? */
bool
moves_lanes(const Op &op)
{
	OpForm		form = form_of(op.opcode);

	return form == OpForm::BRANCH || form == OpForm::JUMP || form == OpForm::INVALID ||
		(form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES));
}

/* Two cells as an immediate: see place_of_cell(). */
int64_t
cell_imm(CellPlace first, CellPlace second)
{
	uint32_t	low = first.at | static_cast<uint32_t>(first.plane) << 16;
	uint32_t	high = second.at | static_cast<uint32_t>(second.plane) << 16;

	return static_cast<int64_t>(low | static_cast<uint64_t>(high) << 32);
}

}  // namespace

/* -- first pass: keys and cells ------------------------------------------------------- */

int
Lowering::add_cell(CellKind kind, CellPart part, int limbs)
{
	if (out->groups.ncells == MAX_CELLS)
	{
		full = true;
		return 0;
	}
	out->groups.cells[out->groups.ncells] = GroupCell{kind, static_cast<uint8_t>(limbs), {CELL_NONE, 0}, part};
	return out->groups.ncells++;
}

/* The count of rows that reach this place, have a value in `arg`, and pass `filter`. */
int
Lowering::counter(int arg, int filter)
{
	if (arg >= 0 && !reg[arg].nullable)
		arg = -1;
	for (int i = 0; i < ncounters; i++)
		if (counters[i].epoch == epoch && counters[i].arg == arg && counters[i].filter == filter)
			return i;
	if (ncounters == MAX_CELLS)
	{
		full = true;
		return 0;
	}
	counters[ncounters] = Counter{epoch, arg, filter, add_cell(in.total_rows >> 32 ? CellKind::Add64 : CellKind::Add32,
															   epoch == 0 && arg < 0 && filter < 0 ? CellPart::One : CellPart::Low), false};
	return ncounters++;
}

/* Packs the keys' digits into as few words as hold them, in the keys' order. */
const char *
Lowering::plan_keys(const Op &group)
{
	GroupLayout &g = out->groups;
	uint128		product[2 * MAX_KEYS];
	auto		place = [&](uint128 radix, uint8_t *word, uint64_t *stride)
	{
		int			w = 0;

		while (w < g.nwords && radix > WORD / product[w])
			w++;
		if (w == g.nwords)
		{
			product[w] = 1;
			g.nwords++;
		}
		*word = static_cast<uint8_t>(w);
		/* A word that is full takes digits that are always 0. */
		*stride = product[w] == WORD ? 1 : static_cast<uint64_t>(product[w]);
		product[w] *= radix;
	};

	if (group.p1 > MAX_KEYS)
		return "too many group keys for the device";
	g.nkeys = static_cast<uint8_t>(group.p1);
	for (int k = 0; k < group.p1; k++)
	{
		int			r = static_cast<int>(program->aux()[group.p2 + k]);
		const ValueRange &v = range[r];
		GroupKey   &key = g.keys[k];
		uint64_t	stride;

		key.type = reg[r].type;
		key.nullable = reg[r].nullable;
		key.null_word = KEY_NO_WORD;
		if (type_is_float(key.type))
			key.values = key.type == Type::F32 ? F32_CODES : F64_CODES;
		else
		{
			key.lo = key.type == Type::Bool ? 0 : v.lo;
			key.values = key.type == Type::Bool ? 2 : static_cast<uint64_t>(v.hi) - static_cast<uint64_t>(v.lo) + 1;
		}

		uint128		values = key.values == 0 ? WORD : key.values;

		if (key.nullable && values == WORD)
		{
			place(values, &key.word, &key.stride);
			place(2, &key.null_word, &stride);
			if (stride >> 32)
				place(WORD, &key.null_word, &stride);
			key.null_stride = static_cast<uint32_t>(stride);
		}
		else
			place(values + (key.nullable ? 1 : 0), &key.word, &key.stride);
	}
	g.radix = g.nwords == 1 && product[0] < WORD ? static_cast<uint64_t>(product[0]) : 0;
	return nullptr;
}

/*
 * In units of the least exponent if 64 bits hold all rows' values, else in limbs.
 * Where PostgreSQL's accumulator might overflow, the greatest exponent and the
 * number of inputs decide, as on the CPU.
 */
const char *
Lowering::plan_float_sum(const Op &op, int inputs)
{
	const ValueRange &v = range[op.p2];
	GroupAgg   &agg = out->groups.aggs[op.p1];
	AggCells   &cells = agg_cells[op.p1];
	const int	log2rows = ceil_log2(in.total_rows + 1);
	const FloatSumInfo greatest = {static_cast<int64_t>(in.total_rows), 0, static_cast<int16_t>(v.exp_hi + 1 + 2048), FLOAT_SUM_SEEN, 0};
	const bool	may_overflow = float_sum_may_overflow(greatest, op.type);
	const bool	narrow = !may_overflow && v.exp_hi - v.exp_lo + log2rows <= 62 && v.exp_lo >= -1000 && v.exp_lo <= 1000;
	const int	column = reg[op.p2].column;

	cells.flags = add_cell(CellKind::Or32);
	if (column >= 0 && !(in.columns[out->columns[column].table_column].summary.flags & CHUNK_HAS_NEG_ZERO))
		agg.known_flags = FLOAT_SUM_NOT_NEG_ZERO;
	cells.counter = may_overflow || inputs >= 0 ? counter(op.p2, op.p3) : -1;
	if (narrow)
	{
		agg.kind = CellKind::Add64;
		agg.first = static_cast<int16_t>(v.exp_lo);
		cells.value = add_cell(CellKind::Add64);
		return nullptr;
	}
	/* Limbs are never carried. */
	if (in.total_rows >= (1u << 31) - 2)
		return "too many rows for an exact sum of floats on the device";

	const int	first = ((v.exp_lo < FLOAT_SUM_GRID ? FLOAT_SUM_GRID : v.exp_lo) - FLOAT_SUM_GRID) >> 5;
	const int	last = ((v.exp_hi > 1024 ? 1024 : v.exp_hi) - FLOAT_SUM_GRID) >> 5;

	agg.kind = CellKind::Limbs;
	agg.first = static_cast<int16_t>(first);
	agg.limbs = static_cast<uint8_t>(last - first + 1);
	cells.value = add_cell(CellKind::Limbs, CellPart::Whole, agg.limbs);
	if (may_overflow)
		cells.max_exp = add_cell(CellKind::Max32);
	return nullptr;
}

const char *
Lowering::plan_agg(const Op &step)
{
	const Op	op = machine_step(step);
	const AggFn fn = static_cast<AggFn>(op.p5);
	GroupAgg   &agg = out->groups.aggs[op.p1];
	AggCells   &cells = agg_cells[op.p1];
	/* Without keys, or behind a jump, a group may have no row that gets here. */
	const bool	may_be_empty = out->groups.nkeys == 0 || epoch != 0 || op.p3 >= 0 || (op.p2 >= 0 && reg[op.p2].nullable);

	out->agg_fn[op.p1] = fn;
	out->agg_type[op.p1] = op.type;
	cells = AggCells{-1, -1, -1, -1, -1};
	if (fn == AggFn::Count || fn == AggFn::CountStar)
	{
		cells.counter = counter(op.p2, op.p3);
		return nullptr;
	}
	if (fn == AggFn::BoolAnd || fn == AggFn::BoolOr)
	{
		agg.kind = CellKind::Or32;
		cells.value = add_cell(agg.kind);
		return nullptr;
	}
	if (agg_is_bits(fn))
	{
		agg.kind = fn == AggFn::BitXor ? CellKind::Xor32 : CellKind::Or32;
		cells.value = add_cell(agg.kind);
		if (op.type == Type::I64)
			cells.high = add_cell(agg.kind);
		if (may_be_empty)
			cells.counter = counter(op.p2, op.p3);
		return nullptr;
	}
	if (fn == AggFn::Sum && type_is_float(op.type))
		return plan_float_sum(op, may_be_empty ? 0 : -1);
	if (type_is_float(op.type))
	{
		agg.kind = op.type == Type::F32 ? CellKind::Max32 : CellKind::Max64;
		cells.value = add_cell(agg.kind);
		cells.flags = add_cell(CellKind::Or32);
		return nullptr;
	}

	const ValueRange &v = range[op.p2];
	CellPart	part = CellPart::Whole;

	if (fn == AggFn::Sum)
	{
		agg.bias = v.lo < 0 ? v.lo : 0;

		uint128		span = static_cast<uint64_t>(v.hi) - static_cast<uint64_t>(agg.bias);
		uint128		most = span * in.total_rows;

		part = span >> 32 ? CellPart::Whole : CellPart::Low;

		agg.kind = !(most >> 32) ? CellKind::Add32 : !(most >> 64) ? CellKind::Add64 : CellKind::Wide;
		if (agg.kind == CellKind::Wide && in.total_rows >> 32)
			return "too many rows for a sum of such values on the device";
		if (may_be_empty || agg.bias != 0)
			cells.counter = counter(op.p2, op.p3);
	}
	else
	{
		/* Codes begin with 1, so that 0 says that there was no value: but for 2^64 values there is no such code. */
		uint64_t	span = static_cast<uint64_t>(v.hi) - static_cast<uint64_t>(v.lo);
		bool		all = span == UINT64_MAX;
		uint64_t	first = fn == AggFn::Max ? static_cast<uint64_t>(v.lo) : static_cast<uint64_t>(v.hi);

		agg.zero_is_value = all;
		agg.kind = span < UINT32_MAX ? CellKind::Max32 : CellKind::Max64;
		agg.bias = static_cast<int64_t>(all ? first : fn == AggFn::Max ? first - 1 : first + 1);
		if (all && may_be_empty)
			cells.counter = counter(op.p2, op.p3);
	}
	cells.value = add_cell(agg.kind, part);
	return nullptr;
}

/* Cells of 64 bits first; planes as they come. */
const char *
Lowering::place_cells()
{
	GroupLayout &g = out->groups;
	uint32_t	at = 0, plane = 0;

	for (bool wide : {true, false})
		for (int i = 0; i < g.ncells; i++)
		{
			GroupCell  &c = g.cells[i];
			bool		is_wide = c.kind == CellKind::Add64 || c.kind == CellKind::Wide || c.kind == CellKind::Limbs || c.kind == CellKind::Max64;
			uint32_t	words = c.kind == CellKind::Wide ? 2 : c.kind == CellKind::Limbs ? c.limbs : 1;

			if (is_wide != wide)
				continue;
			c.place = CellPlace{static_cast<uint16_t>(at), static_cast<uint16_t>(plane)};
			at += words * (wide ? 8 : 4);
			plane += words * (wide ? 2 : 1);
		}
	if (full)
		return "too many aggregates for the device";
	g.row_bytes = static_cast<uint16_t>(at == 0 ? 8 : align_up(at, 8));
	g.planes = static_cast<uint16_t>(plane);
	g.inputs_wide = in.total_rows >> 32 ? 1 : 0;
	for (int i = 0; i < program->naggs; i++)
	{
		const AggCells &cells = agg_cells[i];
		GroupAgg   &agg = g.aggs[i];

		agg.value = cell_place(cells.value).at;
		agg.inputs = cells.counter < 0 ? CELL_NONE : cell_place(counters[cells.counter].cell).at;
		agg.flags = cell_place(cells.flags).at;
		agg.max_exp = cell_place(cells.max_exp).at;
		agg.high = cell_place(cells.high).at;
	}
	return nullptr;
}

CellPlace
Lowering::cell_place(int cell) const
{
	return cell < 0 ? CellPlace{CELL_NONE, 0} : out->groups.cells[cell].place;
}

const char *
Lowering::analyse_groups()
{
	GroupLayout &g = out->groups;
	const Op   *ops = program->ops();
	const char *problem = nullptr;
	bool		accumulators = program->nkeys == 0;

	out->total_rows = in.total_rows;
	out->nresults = program->nresults;
	program_result_types(program, out->result_type);
	for (int i = 0; i < program->nops; i++)
		if (ops[i].opcode == Opcode::AggOpen)
			for (int c = 0; c < program->nresults; c++)
			{
				int64_t		source = program->aux()[ops[i].p3 + c];

				g.sources[c] = static_cast<uint8_t>(source >= RESULT_FROM_AGG ? GROUP_SOURCE_AGG | result_agg(source) : source);
				g.rests[c] = static_cast<uint8_t>(source >= RESULT_FROM_AGG ? result_rest(source) : 0);
			}
	for (int i = program->parallel + 1; i < program->converge; i++)
		if (ops[i].opcode == Opcode::AggStep)
			accumulators &= fits_accumulator(ops[i]);
	if (accumulators)
		return nullptr;

	/* Targets pass no jump: what they were made for is all there ever is. */
	epoch = 0;
	for (int i = program->parallel + 1; i < program->converge && !problem; i++)
	{
		const Op   &op = ops[i];

		if (moves_lanes(op) || is_target[i])
			epoch++;
		if (op.opcode == Opcode::Group)
		{
			problem = plan_keys(op);
			epoch = 0;
		}
		else if (op.opcode == Opcode::AggStep)
			problem = plan_agg(op);
	}
	if (problem)
		return problem;

	/* Somebody counts all rows of a group: that says that it is there. */
	int			all = -1;

	for (int i = 0; i < ncounters; i++)
		if (counters[i].epoch == 0 && counters[i].arg < 0 && counters[i].filter < 0)
			all = i;
	if (g.nkeys > 0 && (all < 0 || out->total_rows >> 32))
		mark = add_cell(CellKind::Mark, CellPart::One);
	problem = place_cells();
	g.present = g.nkeys == 0 ? CELL_NONE : mark >= 0 ? cell_place(mark).at : cell_place(counters[all].cell).at;
	epoch = 0;
	out->naggs = 0;
	g.naggs = static_cast<uint8_t>(program->naggs);
	return problem;
}

/* -- second pass ------------------------------------------------------------------------ */

/* A register's values in a place; constants get one for the operation at hand. */
uint16_t
Lowering::value_place(int r, bool *temporary)
{
	*temporary = is_immediate(r);
	if (reg[r].type == Type::Bool)
		return truth_mask_of(r);
	if (!*temporary)
		return reg[r].at;

	DeviceOp   *d = add(generic_code(Opcode::Copy, reg[r].type));

	operand_a(d, r);
	d->a_null = OPERAND_NONE;
	d->dst = allocate(value_units(reg[r].type));
	return d->dst;
}

/* Without keys there is one row: all targets are alike. */
void
Lowering::emit_targets()
{
	DeviceOp   *d = add(CODE_GROUP_FIND);

	targets = allocate(value_units(Type::I32));
	d->a = 0;
	d->flags = DOP_A_IMM;
	d->dst = targets;
}

const char *
Lowering::emit_group(const Op &op)
{
	const GroupLayout &g = out->groups;
	const bool	wide = packed_keys_are_wide(g);
	const int	units = value_units(wide ? Type::I64 : Type::I32);
	const uint16_t words = allocate(units * g.nwords);
	bool		begun[2 * MAX_KEYS] = {};
	auto		pack = [&](int k, uint8_t word, uint16_t values, uint16_t nulls)
	{
		DeviceOp   *d = add(CODE_GROUP_KEY);

		d->aux = static_cast<uint8_t>(k);
		d->a = values;
		d->column = coded_column(static_cast<int>(program->aux()[op.p2 + k]));
		d->a_null = nulls;
		d->dst = static_cast<uint16_t>(words + word * units * GRAIN);
		d->flags = static_cast<uint8_t>((wide ? DOP_WIDE : 0) | (begun[word] ? 0 : DOP_STORES));
		begun[word] = true;
		return d;
	};

	for (int k = 0; k < op.p1; k++)
	{
		int			r = static_cast<int>(program->aux()[op.p2 + k]);
		bool		temporary;
		uint16_t	values = value_place(r, &temporary);

		pack(k, g.keys[k].word, values, null_mask_of(r));
		if (g.keys[k].null_word != KEY_NO_WORD)
			pack(k, g.keys[k].null_word, values, null_mask_of(r))->flags |= DOP_NEGATED;
		if (temporary)
			release(values, value_units(reg[r].type));
	}
	targets = wide ? allocate(value_units(Type::I32)) : words;

	/* pack_ints() makes targets at once where it can. */
	const GroupKey &last = g.keys[op.p1 - 1];
	const bool	finds = !wide && last.null_word == KEY_NO_WORD && (last.type == Type::I32 || last.type == Type::I16);

	out->ops[out->nops - 1].flags |= finds ? DOP_CHECKED : 0;

	DeviceOp   *d = add(CODE_GROUP_FIND);

	d->a = words;
	d->dst = targets;
	d->aux = g.nwords;
	d->flags = static_cast<uint8_t>((wide ? DOP_WIDE : 0) | (finds ? DOP_CHECKED : 0));
	if (wide)
		release(words, units * g.nwords);
	if (mark >= 0)
	{
		d = add(CODE_GROUP_COUNT);
		d->b = targets;
		d->column = static_cast<uint16_t>(CellKind::Mark);
		d->flags = DOP_STORES;
		d->imm_b = cell_imm(cell_place(mark), {CELL_NONE, 0});
	}
	else
		for (int i = 0; i < ncounters; i++)
			if (cell_place(counters[i].cell).at == g.present)
				emit_count(i);
	return nullptr;
}

void
Lowering::emit_count(int i)
{
	Counter    &c = counters[i];

	if (c.emitted)
		return;
	c.emitted = true;

	DeviceOp   *d = add(CODE_GROUP_COUNT);

	d->b = targets;
	d->a_null = c.arg >= 0 ? null_mask_of(c.arg) : OPERAND_NONE;
	d->c = c.filter >= 0 ? truth_mask_of(c.filter) : OPERAND_NONE;
	d->column = static_cast<uint16_t>(out->groups.cells[c.cell].kind);
	d->flags = out->groups.cells[c.cell].part == CellPart::One ? DOP_STORES : 0;
	d->imm_b = cell_imm(cell_place(c.cell), {CELL_NONE, 0});
}

const char *
Lowering::emit_agg_grouped(const Op &step, const Op *product)
{
	const Op	op = machine_step(step);
	const AggFn fn = static_cast<AggFn>(op.p5);
	const GroupAgg &agg = out->groups.aggs[op.p1];
	const AggCells &cells = agg_cells[op.p1];
	const bool	floats = type_is_float(op.type);
	bool		temporary;

	if (cells.counter >= 0)
		emit_count(cells.counter);
	if (fn == AggFn::Count || fn == AggFn::CountStar)
		return nullptr;

	if (product)
	{
		DeviceOp   *d = add(CODE_GROUP_SUM);

		d->aux = static_cast<uint8_t>(Type::I32);
		d->flags = DOP_PRODUCT;
		d->a = reg[product->p2].at;
		d->count = coded_column(product->p2);
		d->dst = reg[product->p3].at;
		d->c_null = coded_column(product->p3);
		d->b = targets;
		d->column = static_cast<uint16_t>(agg.kind);
		d->imm_a = agg.bias;
		d->imm_b = cell_imm(cell_place(cells.value), cell_place(cells.flags));
		return nullptr;
	}

	const uint16_t values = value_place(op.p2, &temporary);
	DeviceOp   *d = add(fn == AggFn::BoolAnd || fn == AggFn::BoolOr ? CODE_GROUP_BOOL : agg_is_bits(fn) ? CODE_GROUP_BITS
		: fn != AggFn::Sum ? CODE_GROUP_EXTREME : floats ? CODE_GROUP_FLOAT_SUM : CODE_GROUP_SUM);

	d->aux = static_cast<uint8_t>(op.type);
	d->a = values;
	d->count = coded_column(op.p2);
	d->b = targets;
	d->a_null = null_mask_of(op.p2);
	d->c = op.p3 >= 0 ? truth_mask_of(op.p3) : OPERAND_NONE;
	d->column = static_cast<uint16_t>(agg.kind);
	d->imm_a = agg.bias;
	d->imm_b = cell_imm(cell_place(cells.value), cell_place(agg_is_bits(fn) ? cells.high : cells.flags));
	if (fn == AggFn::Min || fn == AggFn::BitAnd)
		d->flags |= DOP_NEGATED;
	if (fn == AggFn::Sum && floats)
	{
		d->count = agg.limbs;
		d->imm_a = agg.kind == CellKind::Add64 ? bits_of(std::ldexp(1.0, -agg.first), Type::F64)
			: cell_imm({static_cast<uint16_t>(agg.first), 0}, cell_place(cells.max_exp));
		if (!(agg.known_flags & FLOAT_SUM_NOT_NEG_ZERO))
			d->flags |= DOP_STORES;
	}
	if (temporary)
		release(values, value_units(op.type));
	return nullptr;
}

}  // namespace cuda
}  // namespace gpuvm
