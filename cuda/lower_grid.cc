/* lower_grid.cc: programs over pairs (GridPlan); see lower_internal.h. */
#include "lower_internal.h"

#include <climits>
#include <initializer_list>

namespace gpuvm {
namespace cuda {

int
Lowering::add_uniform(int table_column, Type type, bool nullable)
{
	GridPlan   &g = out->grid;

	for (int i = 0; i < g.nuniforms; i++)
		if (g.uniforms[i].table_column == table_column)
			return i;
	if (g.nuniforms == MAX_UNIFORMS)
		return -1;
	g.uniforms[g.nuniforms] = UniformPlan{static_cast<uint16_t>(table_column), 0, OPERAND_NONE, OPERAND_NONE, type, nullable};
	return g.nuniforms++;
}

/* The mask's slot, once somebody reads it. It is set for each inner row, and lanes share nothing of it. */
uint16_t
Lowering::uniform_mask(uint16_t *mask)
{
	if (*mask == OPERAND_NONE)
		*mask = allocate_lasting(mask_units());
	out->grid.masks = 1;
	return *mask;
}

/*
 * Which operations run once a tile. All before the first that reads something of the
 * inner row, up to where no jump is on its way: the lanes that they leave are those of
 * every inner row. Behind it values that come from the outer row alone, unless
 * their errors are looked for: those are for the lanes that are left there.
 *
 * What the loop reads of it stays: such a register is used to the end of time.
 */
void
Lowering::plan_hoists()
{
	const Op   *ops = program->ops();
	const int	begin = program->parallel + 1;
	int			joined = begin;	/* no jump leads beyond */

	auto		reads_inner = [&](const Op &op)
	{
		bool		reads = false;

		each_source(op, [&](int r) { reads |= in_loop[r] || reg[r].uniform >= 0; });
		return reads;
	};
	auto		is_sink = [](OpForm form) { return form == OpForm::GROUP || form == OpForm::AGGSTEP || form == OpForm::RESULT; };

	hoisted_end = begin;
	for (int i = begin; i < program->converge; i++)
	{
		const Op   &op = ops[i];
		const OpForm form = form_of(op.opcode);

		if (joined <= i)
			hoisted_end = i;
		if (is_sink(form) || reads_inner(op))
			break;
		if (form == OpForm::JUMP ||
			(((form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES)) || form == OpForm::BRANCH) && op.p4 == VERDICT_JUMPS))
			joined = op.p3 > joined ? op.p3 : joined;
	}
	for (int i = begin; i < program->converge; i++)
	{
		const Op   &op = ops[i];
		const OpForm form = form_of(op.opcode);
		const bool	stores = form == OpForm::COMPARE && (op.p5 & COMPARE_STORES);
		const bool	value = (form >= OpForm::COLUMN && form <= OpForm::IN) || form == OpForm::COPY || form == OpForm::SELECT ||
			form == OpForm::PICK || stores;

		hoisted[i] = i < hoisted_end || (value && !reads_inner(op) && !may_err(i));
		if (value && !hoisted[i])
			in_loop[stores ? op.p3 : op.p1] = true;
		if (!hoisted[i])
			each_source(op, [&](int r)
			{
				if (!in_loop[r])
					reg[r].last_use = INT_MAX;
			});
	}
}

/* Behind the slots: what the loop needs beside them. */
void
Lowering::place_grid()
{
	GridPlan   &g = out->grid;
	int			npatches = 0;

	for (int i = 0; i < out->nops; i++)
		npatches += (uniform_imm[i][0] >= 0) + (uniform_imm[i][1] >= 0);
	g.virtual_pads = !program->grouped && (in.options.mark == MarkKind::None || in.options.mark == MarkKind::Pairs);
	g.state_at = allocate_lasting(static_cast<int>(sizeof(GridState)) / GRAIN);
	for (int i = 0; i < g.nuniforms + nsums; i++)
		g.uniforms[i].values = allocate_lasting((GRID_BLOCK * 8 + GRAIN) / GRAIN);
	g.patches_at = allocate_lasting((npatches * static_cast<int>(sizeof(GridPatch)) + GRAIN - 1) / GRAIN);
	g.loop_at = allocate_lasting((out->nops - loop_begin + 1) * static_cast<int>(sizeof(DeviceOp)) / GRAIN);
}

/* Once the operations have their final form. */
const char *
Lowering::plan_patches()
{
	GridPlan   &g = out->grid;

	for (int i = loop_begin; i < out->nops; i++)
		for (int which : {0, 1})
		{
			if (uniform_imm[i][which] < 0)
				continue;
			if (g.npatches == MAX_PATCHES)
				return "the program reads the inner row in too many places";

			const size_t field = which == 0 ? offsetof(DeviceOp, imm_a) : offsetof(DeviceOp, imm_b);

			g.patches[g.npatches++] = GridPatch{static_cast<uint16_t>(static_cast<size_t>(i - loop_begin) * sizeof(DeviceOp) + field),
				g.uniforms[uniform_imm[i][which]].values};
		}
	return nullptr;
}

/* Integers whose difference fits 32 bits, whichever are compared. */
bool
Lowering::are_near(int a, int b) const
{
	const ValueRange &x = range[a], &y = range[b];

	return type_is_int(reg[a].type) && static_cast<int128>(x.hi) - y.lo <= INT32_MAX && static_cast<int128>(x.lo) - y.hi >= INT32_MIN &&
		static_cast<int128>(y.hi) - x.lo <= INT32_MAX && static_cast<int128>(y.lo) - x.hi >= INT32_MIN;
}

/*
 * Makes an operation of the loop one on pairs (pair_tile.cuh): a comparison of a value of
 * the outer row with one of the inner row that decides what dies, or something that takes
 * what is left. False: it is something else.
 */
bool
Lowering::pair_op(int address, DeviceOp *op) const
{
	static constexpr DeviceCode less[] = {CODE_LESS_I32, CODE_LESS_I64, CODE_LESS_F32, CODE_LESS_F64};
	static constexpr Type types[] = {Type::I32, Type::I64, Type::F32, Type::F64};
	auto		by_type = [](DeviceCode i32, Type t)
	{
		return static_cast<uint16_t>(i32 + (t == Type::I64 ? 1 : t == Type::F32 ? 2 : t == Type::F64 ? 3 : 0));
	};
	const bool	a_inner = uniform_imm[address][0] >= 0, b_inner = uniform_imm[address][1] >= 0;
	uint16_t	code = op->code;
	int			uniform = a_inner ? uniform_imm[address][0] : uniform_imm[address][1];

	if (code == CODE_END || code == CODE_MARK)
		return true;
	if (code == CODE_INNER_SUM)
	{
		for (uint16_t *uniform : {&op->dst, &op->a, &op->b})
			if (*uniform != OPERAND_NONE)
				*uniform = out->grid.uniforms[*uniform].values;
		return true;
	}

	/* Back to the opcode and its type. */
	for (int t = 0; t < 4; t++)
		if (op->code == less[t])
			code = generic_code(Opcode::Lt, types[t]);
	if (op->code == CODE_SUM_I32 || op->code == CODE_SUM_I64)
		code = generic_code(Opcode::AggStep, op->code == CODE_SUM_I32 ? Type::I32 : Type::I64);
	if (op->code == CODE_COUNT)
		code = generic_code(Opcode::AggStep, Type::None);
	if (code < CODE_GENERIC)
		return false;

	const Opcode o = static_cast<Opcode>((code - CODE_GENERIC) / 16);
	const Type	t = static_cast<Type>((code - CODE_GENERIC) % 16);

	if (o == Opcode::AggStep)
	{
		const AggFn fn = static_cast<AggFn>(op->aux);
		const bool	counts = fn == AggFn::Count || fn == AggFn::CountStar;

		if (op->c != OPERAND_NONE || !(counts || (fn == AggFn::Sum && type_is_int(t) && (a_inner || !(op->flags & DOP_A_IMM)))))
			return false;
		/* A count reads nothing but null bits. */
		for (int i = 0; i < out->grid.nuniforms; i++)
			if (op->a_null != OPERAND_NONE && op->a_null == out->grid.uniforms[i].null_mask)
				uniform = i;
		op->code = counts ? static_cast<uint16_t>(CODE_PAIR_COUNT) : by_type(a_inner ? CODE_PAIR_SUM_INNER_I32 : CODE_PAIR_SUM_I32, t);
	}
	else if (o >= Opcode::Eq && o <= Opcode::Ge && t != Type::Bool)
	{
		bool		swapped = a_inner, negated = op->flags & DOP_NEGATED;

		if (a_inner == b_inner || op->flags & (a_inner ? DOP_B_IMM : DOP_A_IMM) || op->flags & DOP_STORES || op->pending != OPERAND_NONE)
			return false;
		if (a_inner)
		{
			op->a = op->b;
			op->a_null = op->b_null;
		}
		swapped ^= o == Opcode::Gt || o == Opcode::Le;
		negated ^= o == Opcode::Ge || o == Opcode::Le || o == Opcode::Ne;

		const bool	near = op->flags & DOP_NEAR, equal = o == Opcode::Eq || o == Opcode::Ne;

		op->flags = static_cast<uint8_t>((op->flags & DOP_JUMP_IF_NULL) | (negated ? DOP_NEGATED : 0) | (swapped ? DOP_SWAPPED : 0));
		op->code = by_type(equal ? CODE_PAIR_EQUAL_I32 : near ? CODE_PAIR_LESS_NEAR_I32 : CODE_PAIR_LESS_I32, t);
	}
	else
		return false;
	op->b = op->b_null = OPERAND_NONE;
	if (uniform >= 0)
	{
		const UniformPlan &u = out->grid.uniforms[uniform];

		op->b = u.values;
		op->b_null = u.nullable ? static_cast<uint16_t>(u.values + GRID_BLOCK * 8) : OPERAND_NONE;
		if (op->a_null == u.null_mask)
			op->a_null = OPERAND_NONE;
	}
	return true;
}

/* False: the loop is something else, and as it was. */
bool
Lowering::plan_pair_loop()
{
	DeviceOp	loop[MAX_OPS];

	for (int i = loop_begin; i < out->nops; i++)
	{
		loop[i] = out->ops[i];
		if (rows != 16 || !pair_op(i, &loop[i]))
			return false;
	}
	memcpy(out->ops + loop_begin, loop + loop_begin, static_cast<size_t>(out->nops - loop_begin) * sizeof(DeviceOp));
	out->op_set = OpSet::Wide;
	for (int i = 0; i < loop_begin; i++)
		if (out->ops[i].code >= CODE_GROUP_KEY)
			out->op_set = OpSet::All;
	out->grid.pairs = 1;
	return true;
}

}  // namespace cuda
}  // namespace gpuvm
