/*
 * lower_internal.h: lowering, by parts.
 *
 *   lower.cc         the driver; the first pass: what is known of every register
 *                    without running (constant, range, nullable, uses)
 *   lower_narrow.cc  64-bit arithmetic whose values fit 32 bits: before the first pass
 *   lower_places.cc  where registers live
 *   lower_emit.cc    the second pass: operations, fused where the form allows
 *   lower_rows.cc    Result
 *   lower_aggregates.cc  AggStep without a group table
 *   lower_groups.cc  Group and AggStep with one
 *   lower_grid.cc    programs over pairs: what the inner row decides, what is hoisted
 *   lower_linear.cc  their comparisons of sums of both rows, divided
 *
 * Places. A column that every tablet stores as registers hold it is used where
 * the stage put it, with no operation at all. An elementwise result may take
 * the place of an operand that dies with it. The rest are slots.
 * Jumps go forward only, so a register lives from its operation to its last
 * use in program order.
 */
#ifndef GPUVM_CUDA_LOWER_INTERNAL_H
#define GPUVM_CUDA_LOWER_INTERNAL_H

#include <cstring>
#include <vector>

#include "lower.h"
#include "lower_narrow.h"
#include "vm/operands.h"
#include "vm/value_range.h"

namespace gpuvm {
namespace cuda {

/* Of its argument it reads the nulls only. */
inline bool
counts(const Op &op)
{
	return op.opcode == Opcode::AggStep && static_cast<AggFn>(op.p5) == AggFn::Count;
}

/* AggStep as the machine runs it. */
inline Op
machine_step(Op op)
{
	const AggMachine machine = agg_machine(static_cast<AggFn>(op.p5), op.type);

	op.p5 = static_cast<uint8_t>(machine.fn);
	op.type = machine.type;
	return op;
}

/* A float constant as an immediate: bits of the type. */
inline int64_t
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

inline double
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

struct Register
{
	Type		type;
	bool		is_const;
	bool		nullable;
	bool		null_const;
	bool		direct;			/* a staged column used in place */
	bool		coded;			/* a staged column that its operations read as it is stored */
	bool		is_rowid;
	int64_t		value;			/* of a constant, in the type's own bits */
	int			column;			/* of DeviceProgram.columns, or -1 */
	int			uniform;		/* of GridPlan.uniforms, or -1 */
	int			uses;
	int			last_use;
	/* places, by the second pass */
	uint16_t	at;
	uint16_t	nulls_at;
	bool		owns_slot;
	bool		owns_nulls;
};

/* Registers times numbers, and a constant. */
struct LinearTerm
{
	int			reg;
	int64_t		times;
};
struct LinearForm
{
	static constexpr int MAX_TERMS = 8;
	LinearTerm	terms[MAX_TERMS];
	int			n;
	int128		constant;
};
struct LinearComparison			/* instead of a comparison of the program */
{
	bool		there;
	Opcode		opcode;
	int			inner;			/* a register: a column of the inner row, or a sum of such */
	LinearForm	inner_sum;		/* n is 0: it is a column */
	LinearForm	outer;
	ValueRange	outer_range;
	int			sum;			/* the register that it is in */
};

class Lowering
{
public:
	/* `divide`: comparisons of a grid, for a loop of nothing else. */
	Lowering(const LowerInput &input, int rows, int max_tiles, DeviceProgram *out, bool divide = false)
		: in(input), rows(rows), max_tiles(max_tiles), divide(divide), out(out), program(input.program) {}

	const char *run();

private:
	/* first pass */
	const char *analyse();
	const char *analyse_op(const Op &op, int address);
	void		find_ranges();
	int			add_column(int table_column);
	void		use(int reg, int address);
	template <typename F> void each_source(const Op &op, F f) const { each_read(program, op, f); }
	bool		may_err(int address) const;

	/* places */
	int			stored_width(int column) const;
	bool		stored_nulls(int column) const;
	const char *lay_out();
	uint16_t	allocate(int units);
	uint16_t	allocate_lasting(int units);
	void		release(uint16_t at, int units);
	void		release_dead(const Op &op, int address);
	int			value_units(Type t) const { return 32 * type_width(t) * out->rows_per_lane / GRAIN; }
	int			mask_units() const { return (out->rows_per_lane == 16 ? 64 : 32) / GRAIN; }
	int			place_units(Type t) const { return t == Type::Bool ? mask_units() : value_units(t); }
	void		operand_a(DeviceOp *d, int reg);
	void		operand_b(DeviceOp *d, int reg);
	uint16_t	null_mask_of(int reg);
	uint16_t	truth_mask_of(int reg);	/* of a Bool register; null counts as false */
	bool		lasts(uint16_t mask) const;		/* a null mask that other registers may have, too */
	int64_t		immediate(DeviceOp *d, int which, int reg);
	bool		is_immediate(int reg) const { return (this->reg[reg].is_const || this->reg[reg].uniform >= 0) && this->reg[reg].type != Type::Bool; }
	uint16_t	constant_mask(bool bits) const { return bits ? ones : zeroes; }
	const char *place_result(DeviceOp *d, const Op &op, int reg, bool in_place_ok, int address);

	/* operations */
	DeviceOp   *add(uint16_t code);
	const char *emit_all();
	const char *emit_part(bool hoisted_part);
	const char *emit(const Op &op, int address);
	const char *emit_column(const Op &op, int address);
	void		emit_in(const Op &op, DeviceOp *d);
	const char *emit_zone(const Op &op, int address);
	const char *filter_column(const Op &op);
	const char *compare_or_branch(const Op &op);
	bool		fuses_with_column(const Op &op) const;
	bool		fuses_with_sum(int address) const;
	bool		used_as_value(int r, int address) const;
	bool		read_as_codes(int r, int address) const;
	bool		groups_read_codes(const Op &user) const;
	void		choose_code(DeviceOp *d);
	void		choose_op_set();

	/* grids: lower_grid.cc */
	int			add_uniform(int table_column, Type type, bool nullable);
	void		plan_hoists();
	uint16_t	uniform_mask(uint16_t *mask);
	void		place_grid();
	const char *plan_patches();
	bool		pair_op(int address, DeviceOp *op) const;
	bool		are_near(int a, int b) const;
	bool		plan_pair_loop();
	bool		add_linear(int r, int64_t times, Type type, LinearForm *form) const;
	bool		divide_comparison(int address);
	void		plan_linear();
	int			new_register(Type type, bool nullable);
	int			new_constant(Type type, int64_t value);
	int			emit_value(Opcode opcode, Type type, int a, int b);
	void		emit_outer_sums();
	void		emit_inner_sums();
	bool		fits(const LinearForm &form, Type type, ValueRange *sum) const;
	const char *emit_divided(int address);

	/* rows */
	void		order_columns();
	const char *emit_rows(const Op &op);
	const char *emit_mark(const Op &op);

	/* aggregates without a group table: lower_aggregates.cc */
	const char *emit_agg(const Op &op, const Op *product, int product_address);	/* product: the Mul to fuse, or nullptr */
	const char *finish_aggregates();		/* after the second pass: what lies behind the slots */
	bool		fits_accumulator(const Op &op) const;

	/* with one: lower_groups.cc */
	bool		uses_table() const { return out->groups.row_bytes != 0; }
	const char *analyse_groups();			/* after the first pass of a grouped program */
	const char *plan_keys(const Op &group);
	const char *plan_agg(const Op &op);
	const char *plan_float_sum(const Op &op, int inputs);
	const char *place_cells();
	int			counter(int arg, int filter);
	int			add_cell(CellKind kind, CellPart part = CellPart::Whole, int limbs = 1);
	CellPlace	cell_place(int cell) const;
	uint16_t	value_place(int reg, bool *temporary);
	void		emit_targets();				/* of a program without keys */
	const char *emit_group(const Op &op);	/* Group */
	void		emit_count(int counter);
	const char *emit_agg_grouped(const Op &op, const Op *product);	/* AggStep; product: the Mul to fuse, or nullptr */
	uint16_t	coded_column(int r) const { return static_cast<uint16_t>(reg[r].coded ? reg[r].column : 0); }

	const LowerInput &in;
	const int	rows;			/* a lane */
	const int	max_tiles;		/* a stage */
	const bool	divide;
	DeviceProgram *out;
	const Program *program;			/* the input's, or what `narrowed` holds */
	std::vector<uint64_t> narrowed;
	Register	reg[PROGRAM_MAX_REGS] = {};
	ValueRange	range[PROGRAM_MAX_REGS] = {};
	uint32_t	errors[PROGRAM_MAX_OPS] = {};	/* that the operation at an address may raise */
	int			column_last_use[MAX_COLUMNS + 1] = {};
	bool		column_taken[MAX_COLUMNS + 1] = {};
	bool		is_target[PROGRAM_MAX_OPS + 1] = {};
	uint16_t	pending[PROGRAM_MAX_OPS + 1];
	uint16_t	zeroes = OPERAND_NONE, ones = OPERAND_NONE;
	bool		hoisted[PROGRAM_MAX_OPS] = {};	/* operations of a grid that run once a tile */
	bool		dropped[PROGRAM_MAX_OPS] = {};	/* that nobody needs any more */
	bool		in_loop[PROGRAM_MAX_REGS] = {};	/* registers that are computed for each inner row */
	LinearComparison linear_of[PROGRAM_MAX_OPS] = {};
	int			nnew = 0;		/* registers beside the program's */
	int			nsums = 0;		/* uniforms behind GridPlan.nuniforms: sums of others */
	int			hoisted_end = -1;	/* all up to here */
	int			loop_begin = 0;	/* of the emitted operations */
	int8_t		uniform_imm[MAX_OPS][2];	/* uniforms that imm_a and imm_b are, or -1 */

	/*
	 * Group tables. Rows that reach two AggSteps are the same if no operation
	 * between them moves lanes, so that one count serves both: epochs number
	 * what lies between such operations.
	 */
	struct Counter
	{
		int			epoch, arg, filter;		/* registers, or -1 */
		int			cell;
		bool		emitted;
	};
	struct AggCells					/* cells, or -1 */
	{
		int			value, counter, flags, max_exp, high;
	};
	Counter		counters[MAX_CELLS] = {};
	int			ncounters = 0;
	int			epoch = 0;
	int			mark = -1;			/* the cell of rows that only says that there are some */
	AggCells	agg_cells[MAX_AGGS] = {};
	uint16_t	targets = OPERAND_NONE;
	static constexpr int GRAIN = 16;
	static constexpr int STAGE_ALIGN = 128;
	static constexpr int MAX_PLACES = 32 * 1024;	/* OPERAND_STAGED is the bit above */
	static constexpr int MAX_REGION = 65520;
	static constexpr int STAGE_BYTES = 4608;		/* six blocks of eight warps fit if little else is in the region */
	static constexpr int IN_FLIGHT_BYTES = 104 * 1024;
	static constexpr int MIN_BLOCKS = 3, MAX_BLOCKS = 8;
	struct FreePlace
	{
		uint16_t	at;
		uint16_t	units;		/* of GRAIN bytes */
	};
	FreePlace	free_places[MAX_PLACES / GRAIN];
	int			nfree = 0;
	int			high_water = 0;	/* in units of GRAIN bytes */
	bool		full = false;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
