/* lower_groups.cc: Group and AggStep; see lower_internal.h. */
#include "lower_internal.h"

#include <cmath>

namespace gpuvm {
namespace cuda {

const char *
Lowering::analyse_groups()
{
	return program->nkeys > 0 ? "GROUP BY does not run on the device yet" : nullptr;
}

const char *
Lowering::emit_group(const Op &)
{
	return "GROUP BY does not run on the device yet";
}

const char *
Lowering::emit_agg_grouped(const Op &)
{
	return "GROUP BY does not run on the device yet";
}

const char *
Lowering::emit_agg(const Op &op, const Op *product, int product_address)
{
	AggFn		fn = static_cast<AggFn>(op.p5);
	uint16_t	agg = static_cast<uint16_t>(op.p1);
	DeviceOp   *d;

	if (product)
	{
		d = add(product->type == Type::I32 ? CODE_MULSUM_I32 : CODE_MULSUM_I64);
		operand_a(d, product->p2);
		operand_b(d, product->p3);
		if (may_err(product_address))
			d->flags |= DOP_CHECKED;
	}
	else
	{
		d = add(generic_code(Opcode::AggStep, fn == AggFn::CountStar ? Type::None : op.type));
		if (op.p2 >= 0)
			operand_a(d, op.p2);
		if (op.p3 >= 0)
			d->c = truth_mask_of(op.p3);
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
		const ValueRange &r = range[op.p2];
		int			row_bits = 1;

		while (in.total_rows >> row_bits)
			row_bits++;

		int			bits = r.exp_hi - r.exp_lo + row_bits;

		if (bits > 126 || r.exp_lo < -1000 || r.exp_lo > 1000)
			return "the range of a float sum's values is too wide for a fixed-point sum";
		wide = bits > 62;
		out->agg_scale[agg] = static_cast<int16_t>(r.exp_lo);
		d->imm_b = bits_of(std::ldexp(1.0, -r.exp_lo), Type::F64);
	}
	else
	{
		const ValueRange &r = range[op.p2];
		int128		least = -static_cast<int128>(r.lo), bound = r.hi > least ? r.hi : least;

		wide = bound * static_cast<int128>(in.total_rows) > INT64_MAX;
	}
	if (wide)
	{
		d->flags |= DOP_WIDE;
		out->agg_wide |= static_cast<uint16_t>(1u << agg);
	}
	return nullptr;
}

/* Accumulators lie behind the slots: 128 bytes of words, then 256 a 64-bit half. */
const char *
Lowering::finish_aggregates()
{
	int			at = out->sums_begin;

	for (int i = 0; i < out->naggs; i++)
	{
		bool		counts = out->agg_fn[i] == AggFn::Count || out->agg_fn[i] == AggFn::CountStar;

		out->sum_slot[i] = static_cast<uint16_t>(at);
		at += counts ? 128 : out->agg_wide >> i & 1 ? 640 : 384;
	}
	if (at > MAX_REGION)
		return "the program does not fit the device's shared memory";
	out->region_bytes = static_cast<uint16_t>(at);
	for (int i = 0; i < out->nops; i++)
	{
		DeviceOp   *d = &out->ops[i];

		if (d->code == CODE_MULSUM_I32 || d->code == CODE_MULSUM_I64 ||
			(d->code >= generic_code(Opcode::AggStep, Type::None) && d->code <= generic_code(Opcode::AggStep, Type::RowId)))
			d->column = out->sum_slot[d->column];
	}
	return nullptr;
}

}  // namespace cuda
}  // namespace gpuvm
