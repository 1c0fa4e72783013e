/* lower.cc: the driver and the first pass; see lower_internal.h. */
#include "lower_internal.h"

#include <memory>
#include <vector>

namespace gpuvm {
namespace cuda {

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
	reg[r].uses++;
	reg[r].last_use = address;
	if (reg[r].column >= 0)
		column_last_use[reg[r].column] = address;
}

/* An operation whose errors must be looked for. */
bool
Lowering::may_err(int address) const
{
	uint32_t	e = in.options.trust_ranges ? errors[address] : opcode_info[static_cast<int>(program->ops()[address].opcode)].errors;

	return e != 0;
}

/* Ranges of all registers, and what each operation may raise, from the columns' summaries. */
void
Lowering::find_ranges()
{
	std::vector<ValueRange> columns(in.ncolumns);

	for (uint32_t i = 0; i < in.ncolumns; i++)
	{
		ColumnSummary summary = in.columns[i].summary;

		if (!in.options.trust_ranges && !type_is_float(summary.type) && summary.min <= summary.max)
		{
			summary.min = summary.type == Type::Bool ? 0 : summary.type == Type::I16 ? INT16_MIN
				: summary.type == Type::I32 ? INT32_MIN : INT64_MIN;
			summary.max = summary.type == Type::Bool ? 1 : summary.type == Type::I16 ? INT16_MAX
				: summary.type == Type::I32 ? INT32_MAX : INT64_MAX;
		}
		columns[i] = column_range(summary);
	}
	analyze_ranges(program, in.params, columns.data(), range, errors, in.maps);
}

const char *
Lowering::analyse_op(const Op &op, int address)
{
	OpForm		form = form_of(op.opcode);

	if (const char *refused = refused_operation(op))
		return refused;
	each_source(op, [&](int r) { use(r, address); });
	if (form == OpForm::JUMP ||
		(((form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES)) || form == OpForm::BRANCH) && op.p4 == VERDICT_JUMPS))
		is_target[op.p3] = true;

	bool		writes = (form >= OpForm::COLUMN && form <= OpForm::IN) || form == OpForm::COPY || form == OpForm::SELECT ||
		form == OpForm::PICK || (form == OpForm::COMPARE && (op.p5 & COMPARE_STORES));

	if (!writes)
		return nullptr;

	int			dst = form == OpForm::COMPARE ? op.p3 : op.p1;
	Register   &r = reg[dst];

	r = Register{};
	r.type = range[dst].type;
	r.nullable = range[dst].may_null;
	r.column = r.uniform = -1;
	switch (form)
	{
		case OpForm::COLUMN:
		{
			const ColumnBinding &c = in.columns[op.p2];

			if (in.options.grid && op.p2 >= in.options.uniform_from)
			{
				r.uniform = add_uniform(op.p2, r.type, r.nullable);
				if (r.uniform < 0)
					return "too many columns for the device";
				break;
			}
			r.column = add_column(op.p2);
			if (r.column < 0)
				return "too many columns for the device";
			r.direct = op.type != Type::Bool && op.type == c.summary.type && c.min_width == c.summary.max_width && c.min_width == type_width(op.type);
			break;
		}
		case OpForm::TEXTMATCH:
		case OpForm::TEXTPART:
			if (in.options.grid)
				return "texts are read before rows are paired";
			if (add_column(op.p2 | TEXT_CODES) < 0 || add_column(op.p2 | TEXT_IMAGES) < 0)
				return "too many columns for the device";
			break;
		case OpForm::ROWID:
			r.is_rowid = true;
			break;
		case OpForm::COPY:
			/* nothing is copied: it is made where rows leave */
			r.is_rowid = reg[op.p2].is_rowid;
			break;
		case OpForm::IMM32:
		case OpForm::IMM64:
		case OpForm::IMMNULL:
		case OpForm::VARIABLE:
			r.is_const = true;
			r.null_const = form == OpForm::IMMNULL || (form == OpForm::VARIABLE && in.params[op.p2].is_null);
			if (!r.null_const)
				r.value = form == OpForm::VARIABLE ? in.params[op.p2].value : form == OpForm::IMM32 ? op.p2 : op.p4;
			if (type_is_float(r.type))
				r.value = bits_of(double_of(r.value, Type::F64), r.type);
			break;
		default:
			break;
	}
	return nullptr;
}

const char *
Lowering::analyse()
{
	if (program->ncursors != 1)
		return "joins do not run on the device yet";
	if (program->naggs > MAX_AGGS)
		return "too many aggregates for the device";
	if (in.options.mark != MarkKind::None && (program->grouped || program->nresults != 0))
		return "a program that marks has no results";
	find_ranges();

	const Program *narrow = narrow_program(in, range, errors, &narrowed);

	if (narrow != program)
	{
		program = narrow;
		find_ranges();
	}
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const char *problem = analyse_op(program->ops()[i], i);

		if (problem)
			return problem;
	}
	/* It needs no place among the columns that are counted. */
	if (in.options.masked)
		out->columns[out->ncolumns++].table_column = DEAD_COLUMN;
	order_columns();
	if (in.options.grid)
		plan_hoists();
	if (divide)
		plan_linear();
	return program->grouped ? analyse_groups() : nullptr;
}

const char *
Lowering::run()
{
	*out = DeviceProgram{};
	out->naggs = program->naggs;
	out->dead = OPERAND_NONE;

	const char *problem = analyse();

	if (!problem)
		problem = lay_out();
	if (!problem)
		problem = emit_all();
	if (problem)
		return problem;
	out->mark = in.options.mark;
	out->sums_begin = out->region_bytes = static_cast<uint16_t>((high_water * GRAIN + 127) / 128 * 128);
	if (program->grouped)
		problem = finish_aggregates();
	if (problem)
		return problem;
	choose_op_set();
	if (!in.options.grid)
		return nullptr;
	out->grid.loop_begin = static_cast<uint16_t>(loop_begin);
	if (plan_pair_loop())
		return nullptr;
	return in.options.mark == MarkKind::Listed ? "pairs are listed only by comparisons" : plan_patches();
}

/*
 * What an operation costs a tile, whatever it does to the rows, is the larger
 * part: as many rows a lane as leave room for three blocks on a multiprocessor,
 * whose 24 warps still keep enough copies in flight.
 */
const char *
lower(const LowerInput &input, DeviceProgram *out)
{
	constexpr int MAX_STAGE_TILES = 4;
	constexpr uint32_t usual_shared = 227 * 1024, block_overhead = 1024;
	uint32_t	shared = input.options.shared_bytes ? input.options.shared_bytes : usual_shared;
	uint32_t	third = shared / 3 - block_overhead;

	/* A grid's tile stays for many inner rows. */
	const bool	grid = input.options.grid;

	if (grid && input.options.rows_per_lane == 4)
		return "programs over pairs have 8 or 16 rows a lane";
	if (grid && input.options.rows_per_lane != 8 && !std::make_unique<Lowering>(input, 16, 1, out, true)->run() && out->grid.pairs)
		return nullptr;
	if (input.options.rows_per_lane)
		return std::make_unique<Lowering>(input, input.options.rows_per_lane, grid ? 1 : MAX_STAGE_TILES, out)->run();

	const char *problem = nullptr;

	for (int rows : {16, 8, 4})
		for (int tiles : {MAX_STAGE_TILES, 1})
		{
			/* Fewer tiles a stage make no difference to a program that has one anyway. */
			if (grid ? tiles > 1 || rows == 4 : tiles == 1 && (problem || out->stage_tiles == 1))
				continue;
			problem = std::make_unique<Lowering>(input, rows, tiles, out)->run();
			if (!problem && program_bytes(out->nops, out->naux) + out->region_bytes * BLOCK_WARPS <= third)
				return nullptr;
		}
	return problem;
}

}  // namespace cuda
}  // namespace gpuvm
