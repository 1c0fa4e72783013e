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
	bool		inner[PROGRAM_MAX_REGS] = {};	/* computed in the loop */
	int			joined = begin;	/* no jump leads beyond */

	auto		reads_inner = [&](const Op &op)
	{
		bool		reads = false;

		each_source(op, [&](int r) { reads |= inner[r] || reg[r].uniform >= 0; });
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
			inner[stores ? op.p3 : op.p1] = true;
		if (!hoisted[i])
			each_source(op, [&](int r)
			{
				if (!inner[r])
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
	g.virtual_pads = !program->grouped && in.options.mark != MarkKind::Rows;
	g.state_at = allocate_lasting(static_cast<int>(sizeof(GridState)) / GRAIN);
	for (int i = 0; i < g.nuniforms; i++)
		g.uniforms[i].values = allocate_lasting((GRID_BLOCK * 8 + GRAIN) / GRAIN);
	g.patches_at = allocate_lasting((npatches * static_cast<int>(sizeof(GridPatch)) + GRAIN - 1) / GRAIN);
	g.loop_at = allocate_lasting((out->nops - loop_begin + 1) * static_cast<int>(sizeof(DeviceOp)) / GRAIN);
}

/* Once the operations have their final form. */
const char *
Lowering::plan_patches()
{
	GridPlan   &g = out->grid;

	g.loop_begin = static_cast<uint16_t>(loop_begin);
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

}  // namespace cuda
}  // namespace gpuvm
