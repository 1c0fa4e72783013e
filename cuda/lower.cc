/*
 * lower.cc: two passes over the pipeline. The first says of every register what
 * is known without running (constant, range, nullable, uses); the second gives
 * registers places and emits operations, fusing where the form allows.
 *
 * Places. A column that every tablet stores as registers hold it is used where
 * the stage put it, with no operation at all. An elementwise result may take
 * the place of an operand that dies with it. The rest are slots, first fit.
 * Jumps go forward only, so a register lives from its operation to its last
 * use in program order.
 */
#include "lower.h"

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace gpuvm {
namespace cuda {

namespace {

OpForm
form_of(Opcode o)
{
	static const OpForm forms[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) OpForm::form,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
	};
	return forms[static_cast<int>(o)];
}

/* Finite values are multiples of 2^lo and less than 2^hi in magnitude. */
struct Exponents
{
	bool		known;
	int			lo, hi;
};

struct Register
{
	Type		type;
	bool		is_const;
	bool		nullable;
	bool		null_const;
	bool		direct;			/* a staged column used in place */
	bool		may_err;		/* the operands' ranges do not exclude an error */
	int64_t		value;			/* of a constant, in the type's own bits */
	int128		lo, hi;			/* integers */
	Exponents	exps;			/* floats */
	int			column;			/* program column, or -1 */
	int			def;			/* address */
	int			uses;
	int			last_use;
	/* places, by the second pass */
	uint16_t	at;
	uint16_t	nulls_at;
	bool		owns_slot;
	bool		owns_nulls;
};

int128
type_min(Type t)
{
	return t == Type::I16 ? INT16_MIN : t == Type::I32 ? INT32_MIN : t == Type::Bool ? 0 : INT64_MIN;
}

int128
type_max(Type t)
{
	return t == Type::I16 ? INT16_MAX : t == Type::I32 ? INT32_MAX : t == Type::Bool ? 1 : INT64_MAX;
}

int64_t
bits_of(double v, Type t)
{
	int64_t		bits = 0;

	if (t == Type::F32)
	{
		float		f = static_cast<float>(v);

		memcpy(&bits, &f, sizeof(f));
	}
	else
		memcpy(&bits, &v, sizeof(v));
	return bits;
}

double
double_of(int64_t bits, Type t)
{
	if (t == Type::F32)
	{
		float		f;

		memcpy(&f, &bits, sizeof(f));
		return f;
	}

	double		d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

Exponents
exponents_of(double v)
{
	int			hi;

	if (!std::isfinite(v))
		return {false, 0, 0};
	if (v == 0)
		return {true, 0, 1};

	double		f = std::frexp(std::fabs(v), &hi);
	int			lo = hi;

	while (f != std::floor(f))
	{
		f *= 2;
		lo--;
	}
	return {true, lo, hi};
}

/* Exponents of a value rounded to `t`: rounding may carry into the next power of two. */
Exponents
rounded(Exponents e, Type t)
{
	e.hi++;
	if (e.lo < (t == Type::F32 ? -149 : -1074))
		e.lo = t == Type::F32 ? -149 : -1074;
	return e;
}

bool
may_overflow(Exponents e, Type t)
{
	return !e.known || e.hi > (t == Type::F32 ? 127 : 1023);
}

bool
may_underflow(Exponents e, Type t)
{
	return !e.known || e.lo < (t == Type::F32 ? -149 : -1074);
}

class Lowering
{
public:
	Lowering(const LowerInput &input, int rows, DeviceProgram *out) : in(input), rows(rows), out(out), program(input.program) {}

	const char *run();

private:
	const char *analyse();
	const char *analyse_op(const Op &op, int address);
	const char *lay_out();
	const char *emit_all();
	const char *emit(const Op &op, int address);

	bool		trust() const { return in.options.trust_ranges; }
	int			add_column(int table_column);
	void		use(int reg, int address);
	void		sources(const Op &op, int (&regs)[4]) const;
	bool		fuses_with_column(const Op &op) const;
	bool		fuses_with_sum(int address) const;
	bool		used_as_value(int r, int address) const;
	void		interval_result(const Op &op, Register &r);

	uint16_t	allocate(int units);
	void		release(uint16_t at, int units);
	void		release_dead(const Op &op, int address);
	int			value_units(Type t) const { return 32 * type_width(t) * out->rows_per_lane / GRAIN; }
	int			mask_units() const { return (out->rows_per_lane == 16 ? 64 : 32) / GRAIN; }
	DeviceOp   *add(uint16_t code);
	void		operand_a(DeviceOp *d, int reg);
	void		operand_b(DeviceOp *d, int reg);
	const char *place_result(DeviceOp *d, const Op &op, int reg, bool in_place_ok, int address);
	const char *filter_column(const Op &op);
	const char *compare_or_branch(const Op &op);
	const char *agg_step(const Op &op, const Op *product);
	void		choose_code(DeviceOp *d);
	uint16_t	null_mask_of(int reg);
	uint16_t	constant_mask(uint32_t bits);

	const LowerInput &in;
	const int	rows;			/* a lane */
	DeviceProgram *out;
	const Program *program;
	Register	reg[PROGRAM_MAX_REGS] = {};
	int			column_last_use[MAX_COLUMNS] = {};
	bool		column_taken[MAX_COLUMNS] = {};
	bool		is_target[PROGRAM_MAX_OPS + 1] = {};
	uint16_t	pending[PROGRAM_MAX_OPS + 1];
	uint16_t	zeroes = OPERAND_NONE, ones = OPERAND_NONE;
	static constexpr int GRAIN = 16;
	static constexpr int MAX_REGION = 28 * 1024;	/* one block of eight warps fills a multiprocessor */
	static constexpr int STAGE_BYTES = 4608;		/* six blocks of eight warps fit if little else is in the region */
	static constexpr int IN_FLIGHT_BYTES = 104 * 1024;
	static constexpr int MIN_BLOCKS = 3, MAX_BLOCKS = 8;
	static constexpr int MAX_UNITS = MAX_REGION / GRAIN;
	bool		used[MAX_UNITS] = {};		/* in units of GRAIN bytes */
	int			slots_begin = 0, high_water = 0;
	bool		full = false;
};

/* -- first pass ------------------------------------------------------------------- */

int
Lowering::add_column(int table_column)
{
	for (int i = 0; i < out->ncolumns; i++)
		if (out->columns[i].table_column == table_column)
			return i;
	if (out->ncolumns == MAX_COLUMNS)
		return -1;
	out->columns[out->ncolumns].table_column = static_cast<uint16_t>(table_column);
	return out->ncolumns++;
}

void
Lowering::use(int r, int address)
{
	if (r < 0)
		return;
	reg[r].uses++;
	reg[r].last_use = address;
	if (reg[r].column >= 0)
		column_last_use[reg[r].column] = address;
}

/* The registers that an operation reads, -1 for none. */
void
Lowering::sources(const Op &op, int (&regs)[4]) const
{
	regs[0] = regs[1] = regs[2] = regs[3] = -1;
	switch (form_of(op.opcode))
	{
		case OpForm::CAST: case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI:
		case OpForm::LOGIC1: case OpForm::NULLTEST: case OpForm::IN: case OpForm::COPY:
			regs[0] = op.p2;
			break;
		case OpForm::BINARY: case OpForm::SHIFT: case OpForm::LOGIC2: case OpForm::DISTINCT: case OpForm::PICK:
			regs[0] = op.p2;
			regs[1] = op.p3;
			break;
		case OpForm::SELECT:
			regs[0] = op.p2;
			regs[1] = op.p3;
			regs[2] = static_cast<int>(op.p4);
			break;
		case OpForm::COMPARE:
			regs[0] = op.p1;
			regs[1] = op.p2;
			break;
		case OpForm::BRANCH:
			regs[0] = op.p1;
			break;
		case OpForm::AGGSTEP:
			regs[0] = op.p2;
			regs[1] = op.p3;
			break;
		default:
			break;
	}
}

/* The range of + - * and unary minus; anything else has its type's. */
void
Lowering::interval_result(const Op &op, Register &r)
{
	const Register &a = reg[op.p2];
	int128		lo = type_min(op.type), hi = type_max(op.type);

	if (op.opcode == Opcode::Neg)
	{
		lo = -a.hi;
		hi = -a.lo;
	}
	else if (form_of(op.opcode) == OpForm::BINARY)
	{
		const Register &b = reg[op.p3];

		if (op.opcode == Opcode::Add)
		{
			lo = a.lo + b.lo;
			hi = a.hi + b.hi;
		}
		else if (op.opcode == Opcode::Sub)
		{
			lo = a.lo - b.hi;
			hi = a.hi - b.lo;
		}
		else if (op.opcode == Opcode::Mul)
		{
			int128		c[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};

			lo = hi = c[0];
			for (int i = 1; i < 4; i++)
			{
				lo = c[i] < lo ? c[i] : lo;
				hi = c[i] > hi ? c[i] : hi;
			}
		}
	}
	r.may_err = lo < type_min(op.type) || hi > type_max(op.type) ||
		!(op.opcode == Opcode::Add || op.opcode == Opcode::Sub || op.opcode == Opcode::Mul || op.opcode == Opcode::Neg);
	r.lo = lo < type_min(op.type) ? type_min(op.type) : lo;
	r.hi = hi > type_max(op.type) ? type_max(op.type) : hi;
}

const char *
Lowering::analyse_op(const Op &op, int address)
{
	int			src[4];
	OpForm		form = form_of(op.opcode);
	bool		any_nullable = false;

	sources(op, src);
	for (int s : src)
	{
		use(s, address);
		any_nullable |= s >= 0 && reg[s].nullable;
	}

	bool		writes = (form >= OpForm::COLUMN && form <= OpForm::IN) || form == OpForm::COPY || form == OpForm::SELECT ||
		form == OpForm::PICK || (form == OpForm::COMPARE && (op.p5 & COMPARE_STORES));

	if ((form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES)) || form == OpForm::BRANCH || form == OpForm::JUMP)
		if (form == OpForm::JUMP || op.p4 == VERDICT_JUMPS)
			is_target[op.p3] = true;
	if (form == OpForm::GROUP)
		return "GROUP BY does not run on the device yet";
	if (form == OpForm::RESULT)
		return "returning rows does not run on the device yet";
	if (!writes)
		return nullptr;

	Register   &r = reg[form == OpForm::COMPARE ? op.p3 : op.p1];

	r = Register{};
	r.type = form == OpForm::COMPARE || form == OpForm::NULLTEST || form == OpForm::DISTINCT || form == OpForm::IN
		? Type::Bool : op.type;
	r.column = -1;
	r.def = address;
	r.nullable = any_nullable;
	r.lo = type_min(r.type);
	r.hi = type_max(r.type);
	switch (form)
	{
		case OpForm::COLUMN:
		{
			const ColumnBinding &c = in.columns[op.p2];

			r.column = add_column(op.p2);
			if (r.column < 0)
				return "too many columns for the device";
			r.nullable = (c.summary.flags & CHUNK_HAS_NULLS) != 0;
			r.direct = op.type != Type::Bool && c.min_width == c.summary.max_width && c.min_width == type_width(op.type);
			if (!type_is_float(op.type) && trust())
			{
				/* What lies under the nulls of an all-null chunk is 0. */
				r.lo = c.summary.min <= c.summary.max ? c.summary.min : 0;
				r.hi = c.summary.min <= c.summary.max ? c.summary.max : 0;
			}
			if (type_is_float(op.type))
				r.exps = c.summary.exp_lo <= c.summary.exp_hi ? Exponents{true, c.summary.exp_lo, c.summary.exp_hi}
					: Exponents{true, 0, 1};
			break;
		}
		case OpForm::IMM32:
		case OpForm::IMM64:
		case OpForm::IMMNULL:
		case OpForm::VARIABLE:
			r.is_const = true;
			if (form == OpForm::VARIABLE)
			{
				r.null_const = in.params[op.p2].is_null != 0;
				r.value = in.params[op.p2].value;
			}
			else
			{
				r.null_const = form == OpForm::IMMNULL;
				r.value = form == OpForm::IMM32 ? op.p2 : op.p4;
			}
			r.nullable = r.null_const;
			if (r.null_const)
				r.value = 0;
			if (type_is_float(r.type))
			{
				double		v = double_of(r.value, Type::F64);

				r.value = bits_of(v, r.type);
				r.exps = exponents_of(double_of(r.value, r.type));
			}
			r.lo = r.hi = r.value;
			break;
		case OpForm::CAST:
		{
			const Register &a = reg[op.p2];
			Type		from = static_cast<Type>(op.p5);

			if (type_is_float(r.type))
			{
				if (type_is_float(from))
					r.exps = r.type == Type::F32 && from == Type::F64 && a.exps.known ? rounded(a.exps, r.type) : a.exps;
				else
					r.exps = Exponents{true, 0, from == Type::I64 ? 64 : 32};
			}
			else if (!type_is_float(from) && a.lo >= r.lo && a.hi <= r.hi)
			{
				r.lo = a.lo;
				r.hi = a.hi;
			}
			break;
		}
		case OpForm::UNARY:
		case OpForm::BINARY:
			if (type_is_float(op.type))
			{
				Exponents	a = reg[op.p2].exps;

				if (form == OpForm::UNARY)
					r.exps = a;
				else
				{
					Exponents	b = reg[op.p3].exps;

					r.exps.known = a.known && b.known && op.opcode != Opcode::Div;
					r.exps.lo = op.opcode == Opcode::Mul ? a.lo + b.lo : a.lo < b.lo ? a.lo : b.lo;
					r.exps.hi = op.opcode == Opcode::Mul ? a.hi + b.hi : (a.hi > b.hi ? a.hi : b.hi) + 1;
					r.may_err = !trust() || may_overflow(r.exps, op.type) ||
						(op.opcode == Opcode::Mul && may_underflow(r.exps, op.type));
					r.exps = rounded(r.exps, op.type);
				}
			}
			else
				interval_result(op, r);
			break;
		case OpForm::NULLTEST:
		case OpForm::DISTINCT:
			r.nullable = false;
			break;
		case OpForm::LOGIC1:
			r.nullable = op.opcode == Opcode::Not && any_nullable;
			break;
		case OpForm::IN:
			r.nullable = any_nullable || (op.p5 & IN_HAS_NULL);
			break;
		case OpForm::SELECT:
			r.nullable = reg[op.p2].nullable || reg[op.p3].nullable;
			break;
		case OpForm::PICK:
			r.nullable = op.opcode == Opcode::NullIf ? true : reg[op.p2].nullable && reg[op.p3].nullable;
			break;
		default:
			break;
	}
	if (form == OpForm::COPY || form == OpForm::SELECT || form == OpForm::PICK)
	{
		const Register &a = reg[op.p2];
		const Register &b = form == OpForm::COPY ? a : reg[op.p3];

		r.lo = a.lo < b.lo ? a.lo : b.lo;
		r.hi = a.hi > b.hi ? a.hi : b.hi;
		r.exps = Exponents{a.exps.known && b.exps.known, a.exps.lo < b.exps.lo ? a.exps.lo : b.exps.lo,
			a.exps.hi > b.exps.hi ? a.exps.hi : b.exps.hi};
	}
	return nullptr;
}

const char *
Lowering::analyse()
{
	if (program->ncursors != 1)
		return "joins do not run on the device yet";
	if (!program->grouped)
		return "returning rows does not run on the device yet";
	if (program->naggs > MAX_AGGS)
		return "too many aggregates for the device";
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];
		const char *problem = analyse_op(op, i);

		if (problem)
			return problem;
	}
	return nullptr;
}

/* -- layout ------------------------------------------------------------------------- */

const char *
Lowering::lay_out()
{
	out->rows_per_lane = static_cast<uint16_t>(rows);

	/* Several tiles a stage where the columns are narrow, unless one is an operand in place. */
	int			tile_bytes = 0;
	bool		in_place = false;

	for (int i = 0; i < out->ncolumns; i++)
	{
		const ColumnSummary &s = in.columns[out->columns[i].table_column].summary;

		tile_bytes += 32 * out->rows_per_lane * s.max_width + (s.flags & CHUNK_HAS_NULLS ? 4 * out->rows_per_lane : 0);
	}
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		in_place |= op.opcode == Opcode::Column && reg[op.p1].direct && used_as_value(op.p1, i);
	}
	/* Past about 100 KB of wide columns in flight a multiprocessor reads slower; narrow ones need the warps to compute. */
	int			enough = tile_bytes == 0 ? MAX_BLOCKS : IN_FLIGHT_BYTES / (tile_bytes * BLOCK_WARPS);

	out->max_blocks = static_cast<uint8_t>(enough < MIN_BLOCKS ? MIN_BLOCKS : enough > MAX_BLOCKS ? MAX_BLOCKS : enough);
	out->stage_tiles = 1;
	while (!in_place && out->stage_tiles < 4 && tile_bytes * out->stage_tiles * 2 <= STAGE_BYTES &&
		   32 * out->rows_per_lane * out->stage_tiles * 2 <= static_cast<int>(TABLET_PAD_ROWS))
		out->stage_tiles *= 2;

	int			stage_rows = 32 * out->rows_per_lane * out->stage_tiles;
	int			at = static_cast<int>(sizeof(RegionHeader)) + out->ncolumns * static_cast<int>(sizeof(StageColumn));

	for (int i = 0; i < out->ncolumns; i++)
	{
		StagePlan  &c = out->columns[i];
		const ColumnSummary &s = in.columns[c.table_column].summary;

		c.data = static_cast<uint16_t>(at);
		at += s.max_width * stage_rows;
		c.nulls = OPERAND_NONE;
		if (s.flags & CHUNK_HAS_NULLS)
		{
			c.nulls = static_cast<uint16_t>(at);
			at += stage_rows / 8;
		}
		if (at >= MAX_REGION)
			return "the columns do not fit the device's shared memory";
	}
	slots_begin = high_water = at / GRAIN;
	return nullptr;
}

uint16_t
Lowering::allocate(int units)
{
	for (int at = slots_begin; at + units <= MAX_UNITS; at++)
	{
		int			i = 0;

		while (i < units && !used[at + i])
			i++;
		if (i < units)
		{
			at += i;
			continue;
		}
		for (i = 0; i < units; i++)
			used[at + i] = true;
		if (at + units > high_water)
			high_water = at + units;
		return static_cast<uint16_t>(at * GRAIN);
	}
	full = true;
	return 0;
}

void
Lowering::release(uint16_t at, int units)
{
	for (int i = 0; i < units; i++)
		used[at / GRAIN + i] = false;
}

/* After an operation: places of registers whose last use it was (or that nobody uses). */
void
Lowering::release_dead(const Op &op, int address)
{
	int			src[4];

	sources(op, src);
	for (int s : src)
	{
		if (s < 0 || reg[s].last_use != address)
			continue;
		if (reg[s].owns_slot)
			release(reg[s].at, reg[s].type == Type::Bool ? mask_units() : value_units(reg[s].type));
		if (reg[s].owns_nulls)
			release(reg[s].nulls_at, mask_units());
		reg[s].owns_slot = reg[s].owns_nulls = false;
	}
}

/* -- second pass ----------------------------------------------------------------------- */

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
	d->code = code;
	d->dst = d->a = d->b = d->c = OPERAND_NONE;
	d->dst_null = d->a_null = d->b_null = d->c_null = d->pending = OPERAND_NONE;
	return d;
}

/* Masks of constants are set at the start of every tile. */
uint16_t
Lowering::constant_mask(uint32_t bits)
{
	return bits ? ones : zeroes;
}

uint16_t
Lowering::null_mask_of(int r)
{
	if (!reg[r].nullable)
		return OPERAND_NONE;
	if (reg[r].is_const)
		return constant_mask(1);
	return reg[r].nulls_at;
}

void
Lowering::operand_a(DeviceOp *d, int r)
{
	if (r < 0)
		return;
	d->a_null = null_mask_of(r);
	if (!reg[r].is_const)
		d->a = reg[r].at;
	else if (reg[r].type == Type::Bool)
		d->a = constant_mask(reg[r].value != 0);
	else
	{
		d->a = 0;
		d->flags |= DOP_A_IMM;
		d->imm_a = reg[r].value;
	}
}

void
Lowering::operand_b(DeviceOp *d, int r)
{
	d->b_null = null_mask_of(r);
	if (!reg[r].is_const)
		d->b = reg[r].at;
	else if (reg[r].type == Type::Bool)
		d->b = constant_mask(reg[r].value != 0);
	else
	{
		d->b = 0;
		d->flags |= DOP_B_IMM;
		d->imm_b = reg[r].value;
	}
}

const char *
Lowering::place_result(DeviceOp *d, const Op &op, int r, bool in_place_ok, int address)
{
	Register   &result = reg[r];
	bool		placed = false;

	if (in_place_ok && result.type != Type::Bool)
	{
		int			src[2] = {op.p2, form_of(op.opcode) == OpForm::BINARY ? op.p3 : -1};

		for (int s : src)
		{
			if (placed || s < 0 || reg[s].is_const || type_width(reg[s].type) != type_width(result.type))
				continue;
			if (reg[s].owns_slot && reg[s].last_use == address)
			{
				reg[s].owns_slot = false;
				result.owns_slot = true;
				placed = true;
			}
			else if (reg[s].direct && column_last_use[reg[s].column] == address && !column_taken[reg[s].column])
			{
				column_taken[reg[s].column] = true;
				out->writes_stage = 1;
				placed = true;
			}
			if (placed)
				result.at = reg[s].at;
		}
	}
	if (!placed)
	{
		result.at = allocate(result.type == Type::Bool ? mask_units() : value_units(result.type));
		result.owns_slot = true;
	}
	d->dst = result.at;
	if (result.nullable)
	{
		/* Null exactly where one staged column is: no mask of its own. */
		OpForm		form = form_of(op.opcode);
		bool		strict = form == OpForm::UNARY || form == OpForm::BINARY || form == OpForm::SHIFT || form == OpForm::CAST;
		uint16_t	only = d->a_null == OPERAND_NONE ? d->b_null : d->b_null == OPERAND_NONE ? d->a_null : OPERAND_NONE;

		if (strict && only != OPERAND_NONE && (only & OPERAND_STAGED))
		{
			result.nulls_at = only;
			return nullptr;
		}
		result.nulls_at = allocate(mask_units());
		result.owns_nulls = true;
		d->dst_null = result.nulls_at;
	}
	return nullptr;
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

Opcode
swapped(Opcode o)
{
	return o == Opcode::Lt ? Opcode::Gt : o == Opcode::Le ? Opcode::Ge : o == Opcode::Gt ? Opcode::Lt
		: o == Opcode::Ge ? Opcode::Le : o;
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

	d->aux = static_cast<uint8_t>(type_natural_width(op.type));
	d->b = type_is_float(op.type) ? OPERAND_NONE : allocate(static_cast<int>(sizeof(FilterRange)) / GRAIN);
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

	int128		c = bits, lo = type_min(op.type), hi = type_max(op.type);

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
		lo = type_min(op.type);
		hi = type_max(op.type);
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

/* Does somebody need the column's values in register form? Null tests and fused comparisons do not. */
bool
Lowering::used_as_value(int r, int address) const
{
	for (int i = address + 1; i < program->converge; i++)
	{
		int			src[4];
		const Op   &user = program->ops()[i];
		OpForm		form = form_of(user.opcode);

		sources(user, src);
		for (int s : src)
			if (s == r && form != OpForm::NULLTEST && !(form == OpForm::COMPARE && fuses_with_column(user)))
				return true;
	}
	return false;
}

/* Mul, then AggStep Sum of it and nothing else: the product needs no place. */
bool
Lowering::fuses_with_sum(int address) const
{
	const Op   &mul = program->ops()[address], &sum = program->ops()[address + 1];

	return mul.opcode == Opcode::Mul && (mul.type == Type::I32 || mul.type == Type::I64) &&
		address + 1 < program->converge && sum.opcode == Opcode::AggStep && static_cast<AggFn>(sum.p5) == AggFn::Sum &&
		sum.p2 == mul.p1 && sum.p3 < 0 && reg[mul.p1].uses == 1 && !is_target[address + 1];
}

const char *
Lowering::agg_step(const Op &op, const Op *product)
{
	AggFn		fn = static_cast<AggFn>(op.p5);
	uint16_t	agg = static_cast<uint16_t>(op.p1);
	DeviceOp   *d;

	if (product)
	{
		d = add(product->type == Type::I32 ? CODE_MULSUM_I32 : CODE_MULSUM_I64);
		operand_a(d, product->p2);
		operand_b(d, product->p3);
		if (reg[op.p2].may_err)
			d->flags |= DOP_CHECKED;
	}
	else
	{
		d = add(generic_code(Opcode::AggStep, fn == AggFn::CountStar ? Type::None : op.type));
		operand_a(d, op.p2);
		if (op.p3 >= 0)
			d->c = reg[op.p3].is_const ? constant_mask(reg[op.p3].value != 0 && !reg[op.p3].null_const) : reg[op.p3].at;
	}
	d->aux = op.p5;
	out->agg_fn[agg] = fn;
	out->agg_type[agg] = op.type;
	d->column = agg;
	if (fn != AggFn::Sum)
		return nullptr;

	bool		wide;

	if (type_is_float(op.type))
	{
		Exponents	e = reg[op.p2].exps;
		int			row_bits = 1;

		while (in.total_rows >> row_bits)
			row_bits++;

		int			bits = e.hi - e.lo + row_bits;

		if (!e.known || bits > 126 || e.lo < -1000 || e.lo > 1000)
			return "the range of a float sum's values is too wide for a fixed-point sum";
		wide = bits > 62;
		out->agg_scale[agg] = static_cast<int16_t>(e.lo);
		d->imm_b = bits_of(std::ldexp(1.0, -e.lo), Type::F64);
	}
	else
	{
		const Register &r = reg[op.p2];
		int128		bound = r.hi > -r.lo ? r.hi : -r.lo;

		wide = bound * static_cast<int128>(in.total_rows) > INT64_MAX;
	}
	if (wide)
	{
		d->flags |= DOP_WIDE;
		out->agg_wide |= static_cast<uint16_t>(1u << agg);
	}
	return nullptr;
}

const char *
Lowering::emit(const Op &op, int address)
{
	OpForm		form = form_of(op.opcode);

	switch (form)
	{
		case OpForm::COLUMN:
		{
			Register   &r = reg[op.p1];
			const StagePlan &c = out->columns[r.column];

			r.nulls_at = c.nulls == OPERAND_NONE ? c.nulls : static_cast<uint16_t>(c.nulls | OPERAND_STAGED);
			r.at = c.data;

			if (r.direct || !used_as_value(op.p1, address))
				return nullptr;

			DeviceOp   *d = add(generic_code(op.opcode, op.type));

			d->a = r.at;
			d->a_null = r.nulls_at;
			d->column = static_cast<uint16_t>(r.column);
			r.at = allocate(op.type == Type::Bool ? mask_units() : value_units(op.type));
			r.owns_slot = true;
			d->dst = r.at;
			return nullptr;
		}
		case OpForm::ROWID:
			return place_result(add(generic_code(op.opcode, op.type)), op, op.p1, false, address);
		case OpForm::IMM32: case OpForm::IMM64: case OpForm::IMMNULL: case OpForm::VARIABLE:
			return nullptr;
		case OpForm::CAST: case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI:
		case OpForm::LOGIC1: case OpForm::NULLTEST: case OpForm::COPY: case OpForm::IN:
		case OpForm::BINARY: case OpForm::SHIFT: case OpForm::LOGIC2: case OpForm::DISTINCT:
		case OpForm::SELECT: case OpForm::PICK:
		{
			DeviceOp   *d = add(generic_code(op.opcode, op.type));
			int			src[4];

			sources(op, src);
			operand_a(d, src[0]);
			if (src[1] >= 0)
				operand_b(d, src[1]);
			if (src[2] >= 0)
			{
				const Register &c = reg[src[2]];

				d->c = c.is_const ? constant_mask(c.value != 0 && !c.null_const) : c.at;
				d->c_null = null_mask_of(src[2]);
			}
			if (form == OpForm::CAST)
				d->aux = op.p5;
			if (form == OpForm::IN)
			{
				if (program->naux > MAX_AUX)
					return "too many IN values for the device";
				memcpy(out->aux, program->aux(), program->naux * sizeof(int64_t));
				out->naux = static_cast<uint16_t>(program->naux);
				d->aux = op.p5;
				d->count = static_cast<uint16_t>(op.p4);
				d->imm_b = op.p3;
			}

			if (reg[op.p1].may_err || (form != OpForm::UNARY && form != OpForm::BINARY))
				d->flags |= DOP_CHECKED;
			return place_result(d, op, op.p1, form == OpForm::UNARY || form == OpForm::BINARY, address);
		}
		case OpForm::COMPARE: case OpForm::BRANCH: case OpForm::JUMP: case OpForm::INVALID:
			return compare_or_branch(op);
		case OpForm::AGGSTEP:
			return agg_step(op, nullptr);
		default:
			return "an opcode does not run on the device";
	}
}

const char *
Lowering::emit_all()
{
	const Op   *ops = program->ops();

	zeroes = allocate(mask_units());
	ones = allocate(mask_units());
	add(CODE_SET_MASK)->dst = zeroes;

	DeviceOp   *d = add(CODE_SET_MASK);

	d->dst = ones;
	d->imm_a = 0xffff;

	int			masks = out->nops;

	for (int i = 0; i <= program->converge; i++)
		if (is_target[i])
		{
			pending[i] = allocate(mask_units());
			add(CODE_SET_MASK)->dst = pending[i];
		}
	for (int i = program->parallel + 1; i <= program->converge; i++)
	{
		const char *problem;

		if (is_target[i])
			add(CODE_JOIN)->pending = pending[i];
		if (i == program->converge)
			break;
		if (fuses_with_sum(i))
		{
			problem = agg_step(ops[i + 1], &ops[i]);
			release_dead(ops[i], i);
			i++;
		}
		else
		{
			problem = emit(ops[i], i);
			release_dead(ops[i], i);
		}
		if (problem)
			return problem;
	}
	add(CODE_END);
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
		out->nops = static_cast<uint16_t>(out->nops - masks);
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
	if (d->code == CODE_MULSUM_I32 || d->code == CODE_MULSUM_I64)
		d->column = out->sum_slot[d->column];
	if (d->code < CODE_GENERIC)
		return;
	if (d->code >= generic_code(Opcode::In, Type::None) && d->code <= generic_code(Opcode::In, Type::RowId))
		d->imm_b = d->imm_b * 8 + out->nops * static_cast<int64_t>(sizeof(DeviceOp));

	Opcode		o = static_cast<Opcode>((d->code - CODE_GENERIC) / 16);
	Type		t = static_cast<Type>((d->code - CODE_GENERIC) % 16);
	bool		typed = t == Type::I32 || t == Type::I64 || t == Type::F32 || t == Type::F64;
	auto		by_type = [t](DeviceCode i32, DeviceCode i64, DeviceCode f32, DeviceCode f64)
	{
		return t == Type::I32 ? i32 : t == Type::I64 ? i64 : t == Type::F32 ? f32 : f64;
	};

	if (o == Opcode::AggStep)
	{
		AggFn		fn = static_cast<AggFn>(d->aux);

		d->column = out->sum_slot[d->column];
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
			std::swap(d->imm_a, d->imm_b);
		}
		if (o == Opcode::Le || o == Opcode::Ge)
			d->flags |= DOP_NEGATED;
		d->code = by_type(CODE_LESS_I32, CODE_LESS_I64, CODE_LESS_F32, CODE_LESS_F64);
	}
	else if (typed && o == Opcode::Add)
		d->code = by_type(CODE_ADD_I32, CODE_ADD_I64, CODE_ADD_F32, CODE_ADD_F64);
	else if (typed && o == Opcode::Sub)
		d->code = by_type(CODE_SUB_I32, CODE_SUB_I64, CODE_SUB_F32, CODE_SUB_F64);
	else if (typed && o == Opcode::Mul)
		d->code = by_type(CODE_MUL_I32, CODE_MUL_I64, CODE_MUL_F32, CODE_MUL_F64);
	else if (o == Opcode::Column && (t == Type::I32 || t == Type::I64))
		d->code = t == Type::I32 ? CODE_COLUMN_I32 : CODE_COLUMN_I64;
}

const char *
Lowering::run()
{
	*out = DeviceProgram{};
	out->naggs = program->naggs;

	const char *problem = analyse();

	if (!problem)
		problem = lay_out();
	if (!problem)
		problem = emit_all();
	if (problem)
		return problem;

	/* Accumulators lie behind the slots: 128 bytes of words, then 256 a 64-bit half. */
	int			at = (high_water * GRAIN + 127) / 128 * 128;

	out->sums_begin = static_cast<uint16_t>(at);
	for (int i = 0; i < out->naggs; i++)
	{
		bool		counts = out->agg_fn[i] == AggFn::Count || out->agg_fn[i] == AggFn::CountStar;

		out->sum_slot[i] = static_cast<uint16_t>(at);
		at += counts ? 128 : out->agg_wide >> i & 1 ? 640 : 384;
	}
	if (at > MAX_REGION)
		return "the program does not fit the device's shared memory";
	out->region_bytes = static_cast<uint16_t>(at);
	out->op_set = OpSet::Narrow;
	for (int i = 0; i < out->nops; i++)
	{
		DeviceOp   *d = &out->ops[i];

		choose_code(d);

		OpSet		set = d->code >= CODE_GENERIC ? OpSet::All : d->code >= CODE_WIDE ? OpSet::Wide : OpSet::Narrow;

		out->op_set = set > out->op_set ? set : out->op_set;
	}
	return nullptr;
}

}  // namespace

/*
 * What an operation costs a tile, whatever it does to the rows, is the larger
 * part: as many rows a lane as leave room for three blocks on a multiprocessor,
 * whose 24 warps still keep enough copies in flight.
 */
const char *
lower(const LowerInput &input, DeviceProgram *out)
{
	constexpr uint32_t three_blocks = 74 * 1024;

	if (input.options.rows_per_lane)
		return Lowering(input, input.options.rows_per_lane, out).run();

	const char *problem = nullptr;

	for (int rows : {16, 8, 4})
	{
		problem = Lowering(input, rows, out).run();
		if (!problem && program_bytes(out->nops, out->naux) + out->region_bytes * BLOCK_WARPS <= three_blocks)
			break;
	}
	return problem;
}

}  // namespace cuda
}  // namespace gpuvm
