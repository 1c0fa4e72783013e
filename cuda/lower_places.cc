/* lower_places.cc: where registers live; see lower_internal.h. */
#include "lower_internal.h"

namespace gpuvm {
namespace cuda {

/* The widest form that a column of DeviceProgram.columns comes in, and whether it has null bits. */
int
Lowering::stored_width(int column) const
{
	const uint16_t table_column = out->columns[column].table_column;

	return table_column == DEAD_COLUMN ? 0 : in.columns[table_column].summary.max_width;
}

bool
Lowering::stored_nulls(int column) const
{
	const uint16_t table_column = out->columns[column].table_column;

	return table_column == DEAD_COLUMN || (in.columns[table_column].summary.flags & CHUNK_HAS_NULLS);
}

const char *
Lowering::lay_out()
{
	out->rows_per_lane = static_cast<uint16_t>(rows);

	/* Several tiles a stage where the columns are narrow, unless one is an operand in place. */
	int			tile_bytes = 0;
	bool		in_place = false;

	/* Dead bits are left out: with them the same form as without. */
	for (int i = 0; i < out->nstaged; i++)
		if (out->columns[i].table_column != DEAD_COLUMN)
			tile_bytes += 32 * out->rows_per_lane * stored_width(i) + (stored_nulls(i) ? 4 * out->rows_per_lane : 0);
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		in_place |= op.opcode == Opcode::Column && reg[op.p1].direct && used_as_value(op.p1, i);
	}
	/* Past about 100 KB of wide columns in flight a multiprocessor reads slower; narrow ones need the warps to compute. */
	int			enough = tile_bytes == 0 ? MAX_BLOCKS : IN_FLIGHT_BYTES / (tile_bytes * BLOCK_WARPS);

	out->max_blocks = static_cast<uint8_t>(enough < MIN_BLOCKS ? MIN_BLOCKS : enough > MAX_BLOCKS ? MAX_BLOCKS : enough);
	out->stage_tiles = 1;
	while (!in_place && out->stage_tiles < max_tiles && tile_bytes * out->stage_tiles * 2 <= STAGE_BYTES &&
		   32 * out->rows_per_lane * out->stage_tiles * 2 <= static_cast<int>(TABLET_PAD_ROWS))
		out->stage_tiles *= 2;

	int			stage_rows = 32 * out->rows_per_lane * out->stage_tiles;
	int			at = static_cast<int>(sizeof(RegionHeader)) + out->ncolumns * static_cast<int>(sizeof(StageColumn));

	/* Bulk copies are 8% slower to places that are not whole lines (H200): values first, in lines, null bits behind them. */
	at = (at + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN;
	for (int i = 0; i < out->ncolumns; i++)
	{
		out->columns[i].data = out->columns[i].nulls = OPERAND_NONE;
		if (i >= out->nstaged)
			continue;
		out->columns[i].data = static_cast<uint16_t>(at);
		at += stored_width(i) * stage_rows;
		if (at >= MAX_PLACES)
			return "the columns do not fit the device's shared memory";
	}
	for (int i = 0; i < out->nstaged; i++)
	{
		if (!stored_nulls(i))
			continue;
		out->columns[i].nulls = static_cast<uint16_t>(at);
		if (out->columns[i].table_column == DEAD_COLUMN)
			out->dead = static_cast<uint16_t>(at | OPERAND_STAGED);
		at += stage_rows / 8;
		if (at >= MAX_PLACES)
			return "the columns do not fit the device's shared memory";
	}
	high_water = at / GRAIN;
	return nullptr;
}

/*
 * A place of a size is taken again only for one of the same size: then every
 * lane's bytes stay its own, and lanes need no order between operations. (A lane's
 * bytes of a mask would be other lanes' bytes of a value.)
 */
uint16_t
Lowering::allocate(int units)
{
	for (int i = nfree - 1; i >= 0; i--)
		if (free_places[i].units == units)
		{
			uint16_t	at = free_places[i].at;

			free_places[i] = free_places[--nfree];
			return at;
		}
	return allocate_lasting(units);
}

/* For what is written once a unit, or what lanes share. */
uint16_t
Lowering::allocate_lasting(int units)
{
	int			at = high_water;

	if (at + units > MAX_PLACES / GRAIN)
	{
		full = true;
		return 0;
	}
	high_water += units;
	return static_cast<uint16_t>(at * GRAIN);
}

void
Lowering::release(uint16_t at, int units)
{
	if (!full)
		free_places[nfree++] = FreePlace{at, static_cast<uint16_t>(units)};
}

/* After an operation: places of registers whose last use it was (or that nobody uses). */
void
Lowering::release_dead(const Op &op, int address)
{
	each_source(op, [&](int s)
	{
		if (reg[s].last_use != address)
			return;
		if (reg[s].owns_slot)
			release(reg[s].at, place_units(reg[s].type));
		if (reg[s].owns_nulls)
			release(reg[s].nulls_at, mask_units());
		reg[s].owns_slot = reg[s].owns_nulls = false;
	});
}

uint16_t
Lowering::null_mask_of(int r)
{
	if (!reg[r].nullable)
		return OPERAND_NONE;
	if (reg[r].is_const)
		return constant_mask(true);
	if (reg[r].uniform >= 0)
		return uniform_mask(&out->grid.uniforms[reg[r].uniform].null_mask);
	return reg[r].nulls_at;
}

uint16_t
Lowering::truth_mask_of(int r)
{
	if (reg[r].uniform >= 0)
		return uniform_mask(&out->grid.uniforms[reg[r].uniform].truth_mask);
	return reg[r].is_const ? constant_mask(reg[r].value != 0 && !reg[r].null_const) : reg[r].at;
}

/* A constant's value; the inner row's is put there later. `which`: 0 for imm_a, 1 for imm_b. */
int64_t
Lowering::immediate(DeviceOp *d, int which, int r)
{
	uniform_imm[d - out->ops][which] = static_cast<int8_t>(reg[r].uniform);
	return reg[r].is_const ? reg[r].value : 0;
}

void
Lowering::operand_a(DeviceOp *d, int r)
{
	if (r < 0)
		return;
	d->a_null = null_mask_of(r);
	if (reg[r].coded)
		d->count = static_cast<uint16_t>(reg[r].column);
	if (is_immediate(r))
	{
		d->a = 0;
		d->flags |= DOP_A_IMM;
		d->imm_a = immediate(d, 0, r);
	}
	else if (reg[r].is_const)
		d->a = constant_mask(reg[r].value != 0);
	else
		d->a = reg[r].uniform >= 0 ? truth_mask_of(r) : reg[r].at;
}

void
Lowering::operand_b(DeviceOp *d, int r)
{
	d->b_null = null_mask_of(r);
	if (reg[r].coded)
		d->c = static_cast<uint16_t>(reg[r].column);
	if (is_immediate(r))
	{
		d->b = 0;
		d->flags |= DOP_B_IMM;
		d->imm_b = immediate(d, 1, r);
	}
	else if (reg[r].is_const)
		d->b = constant_mask(reg[r].value != 0);
	else
		d->b = reg[r].uniform >= 0 ? truth_mask_of(r) : reg[r].at;
}

/* Nobody writes it while the program runs. */
bool
Lowering::lasts(uint16_t mask) const
{
	bool		lasts = mask & OPERAND_STAGED;

	for (int i = 0; i < out->grid.nuniforms; i++)
		lasts |= out->grid.uniforms[i].null_mask == mask;
	return lasts;
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
			if (placed || s < 0 || is_immediate(s) || type_width(reg[s].type) != type_width(result.type))
				continue;
			if (reg[s].owns_slot && reg[s].last_use == address)
			{
				reg[s].owns_slot = false;
				result.owns_slot = true;
				placed = true;
			}
			else if (!in.options.grid && reg[s].direct && column_last_use[reg[s].column] == address && !column_taken[reg[s].column])
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
		result.at = allocate(place_units(result.type));
		result.owns_slot = true;
	}
	d->dst = result.at;
	if (result.nullable)
	{
		/* Null exactly where one column is: no mask of its own. */
		OpForm		form = form_of(op.opcode);
		bool		strict = form == OpForm::UNARY || form == OpForm::BINARY || form == OpForm::SHIFT || form == OpForm::CAST ||
			form == OpForm::FIELD;
		uint16_t	only = d->a_null == OPERAND_NONE ? d->b_null : d->b_null == OPERAND_NONE ? d->a_null : OPERAND_NONE;

		if (strict && only != OPERAND_NONE && lasts(only))
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

}  // namespace cuda
}  // namespace gpuvm
