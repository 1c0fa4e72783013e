/* lower_rows.cc: Result; see lower_internal.h. */
#include "lower_internal.h"

#include <initializer_list>

#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

/*
 * A column that no other operation reads is not staged: Result fetches its values
 * from device memory, for the rows that are left. Staged columns come first.
 */
void
Lowering::order_columns()
{
	bool		staged[MAX_COLUMNS + 1] = {};
	StagePlan	before[MAX_COLUMNS + 1];
	int			last_use[MAX_COLUMNS + 1], place[MAX_COLUMNS + 1] = {}, n = 0;

	for (int i = program->parallel + 1; i < program->converge; i++)
		if (form_of(program->ops()[i].opcode) != OpForm::RESULT)
			each_source(program->ops()[i], [&](int r)
			{
				if (reg[r].column >= 0)
					staged[reg[r].column] = true;
			});
	for (int i = 0; i < out->ncolumns; i++)
		staged[i] |= out->columns[i].table_column == DEAD_COLUMN;
	memcpy(before, out->columns, sizeof(before));
	memcpy(last_use, column_last_use, sizeof(last_use));
	for (bool which : {true, false})
	{
		for (int i = 0; i < out->ncolumns; i++)
			if (staged[i] == which)
			{
				place[i] = n;
				out->columns[n] = before[i];
				column_last_use[n++] = last_use[i];
			}
		if (which)
			out->nstaged = static_cast<uint16_t>(n);
	}
	for (Register &r : reg)
		if (r.column >= 0)
			r.column = place[r.column];
}

/*
 * One operation lists the tile's live rows, and one for each result column
 * gathers their values into the tile's segment of the staging area. Columns are
 * read as the stage has them: widening pays only for rows that leave.
 */
const char *
Lowering::emit_rows(const Op &op)
{
	DeviceOp   *d = add(generic_code(Opcode::Result, Type::None));
	uint16_t	list = allocate_lasting(32 * rows * static_cast<int>(sizeof(uint16_t)) / GRAIN);
	int64_t		row_bytes = 0;
	uint16_t	nullable = 0;

	d->dst = list;
	out->nresults = program->nresults;
	program_result_types(program, out->result_type);
	for (int i = 0; i < out->nresults; i++)
	{
		const Register &r = reg[op.p1 + i];
		int			width = type_width(out->result_type[i]);
		ResultForm	form = ResultForm::Values;

		/* The values' width is all that matters. */
		d = add(generic_code(Opcode::ResultColumn, width == 1 ? Type::Bool : width == 4 ? Type::I32 : Type::I64));
		d->a_null = r.column >= out->nstaged && r.nullable ? 0 : null_mask_of(op.p1 + i);
		d->c = list;
		d->b = nullable;
		d->imm_b = row_bytes;
		if (r.is_const || is_immediate(op.p1 + i))
		{
			form = ResultForm::Constant;
			d->imm_a = immediate(d, 0, op.p1 + i);
		}
		else if (r.is_rowid)
			form = width == type_width(Type::I64) ? ResultForm::Position : ResultForm::Rowid;
		else if (r.column >= 0)
		{
			form = r.column < out->nstaged ? ResultForm::Codes : ResultForm::Late;
			d->a = out->columns[r.column].data;
			d->column = static_cast<uint16_t>(r.column);
			d->count = static_cast<uint16_t>(type_natural_width(r.type));
		}
		else
		{
			form = r.type == Type::Bool ? ResultForm::Mask : ResultForm::Values;
			d->a = r.uniform >= 0 ? truth_mask_of(op.p1 + i) : r.at;
		}
		d->aux = static_cast<uint8_t>(form);
		row_bytes += width;
		if (d->a_null != OPERAND_NONE)
		{
			out->result_nullable[i / 8] |= static_cast<uint8_t>(1u << i % 8);
			nullable++;
		}
	}
	return nullptr;
}

/* Instead of Result: see MarkKind. */
const char *
Lowering::emit_mark(const Op &op)
{
	const bool	gathers = in.options.grid && in.options.mark != MarkKind::Pairs;
	DeviceOp   *d = add(gathers ? static_cast<uint16_t>(CODE_MARK) : generic_code(op.opcode, Type::None));

	if (gathers && in.options.mark == MarkKind::Rows)
		d->dst = out->grid.marked = allocate_lasting(mask_units());
	else if (!gathers)
		d->flags = DOP_STORES;
	return nullptr;
}

}  // namespace cuda
}  // namespace gpuvm
