/* lower_aggregates.cc: AggStep where lanes have accumulators; see lower_internal.h. */
#include "lower_internal.h"

#include <cmath>

#include "core/bits.h"
#include "vm/float_sum.h"

namespace gpuvm {
namespace cuda {

/*
 * Sums of floats are accumulated in units of the least exponent, in 64 or 128
 * bits. Accumulators know no greatest exponent: PostgreSQL's must be safe from
 * overflow whatever the rows are.
 */
bool
Lowering::fits_accumulator(const Op &op) const
{
	if (static_cast<AggFn>(op.p5) != AggFn::Sum || !type_is_float(op.type))
		return true;

	const ValueRange &v = range[op.p2];
	const FloatSumInfo greatest = {static_cast<int64_t>(in.total_rows), 0, static_cast<int16_t>(v.exp_hi + 1 + 2048), FLOAT_SUM_SEEN, 0};

	return v.exp_hi - v.exp_lo + ceil_log2(in.total_rows + 1) <= 126 && v.exp_lo >= -1000 && v.exp_lo <= 1000 &&
		!float_sum_may_overflow(greatest, op.type);
}

const char *
Lowering::emit_agg(const Op &step, const Op *product, int product_address)
{
	const Op	op = machine_step(step);
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

	const ValueRange &v = range[op.p2];
	bool		wide;

	if (type_is_float(op.type))
	{
		wide = v.exp_hi - v.exp_lo + ceil_log2(in.total_rows + 1) > 62;
		out->agg_scale[agg] = static_cast<int16_t>(v.exp_lo);
		d->imm_b = bits_of(std::ldexp(1.0, -v.exp_lo), Type::F64);
	}
	else
	{
		int128		least = -static_cast<int128>(v.lo), bound = v.hi > least ? v.hi : least;

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
		else if (d->code >= CODE_GROUP_KEY && d->code < CODE_GENERIC)
			d->group_area = program_bytes(out->nops, out->naux);
	}
	return nullptr;
}

}  // namespace cuda
}  // namespace gpuvm
