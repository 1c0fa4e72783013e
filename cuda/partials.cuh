/*
 * partials.cuh: from the lanes' accumulators to the launch's result: lanes, warps
 * and blocks merge in any order with the same bits.
 */
#ifndef GPUVM_CUDA_PARTIALS_CUH
#define GPUVM_CUDA_PARTIALS_CUH

#include "aggregates.cuh"

namespace gpuvm {
namespace cuda {

/* into += from, for any aggregate: associative and commutative. */
GPUVM_D void
merge(AggFn fn, Type type, Partial &into, const Partial &from)
{
	if (fn == AggFn::Count || fn == AggFn::CountStar)
	{
		into.count += from.count;
		return;
	}
	if (fn == AggFn::Sum)
	{
		uint64_t	before = into.lo;

		into.lo += from.lo;
		into.hi += from.hi + (into.lo < before ? 1 : 0);
	}
	else if (fn == AggFn::BitXor)
		into.lo ^= from.lo;
	else if (type == Type::Bool || agg_is_bits(fn))
		into.lo |= from.lo;
	else if (from.count & SUM_SEEN)
	{
		bool		less;		/* from < into */
		bool		equal;

		if (type == Type::F32 || type == Type::F64)
		{
			double		a = type == Type::F32 ? static_cast<double>(from_imm<float>(from.lo)) : from_imm<double>(from.lo);
			double		b = type == Type::F32 ? static_cast<double>(from_imm<float>(into.lo)) : from_imm<double>(into.lo);

			less = sem::Lt<Type::F64>(a, b);
			equal = sem::Eq<Type::F64>(a, b);
		}
		else
		{
			less = static_cast<int64_t>(from.lo) < static_cast<int64_t>(into.lo);
			equal = from.lo == into.lo;
		}
		if (!(into.count & SUM_SEEN) || (fn == AggFn::Min ? less : !less && !equal))
			into.lo = from.lo;
	}
	into.count |= from.count;
}

GPUVM_D Partial
merge_warp(AggFn fn, Type type, Partial mine)
{
	for (int step = 16; step > 0; step /= 2)
	{
		Partial		other;

		other.count = __shfl_xor_sync(~0u, mine.count, step);
		other.lo = __shfl_xor_sync(~0u, mine.lo, step);
		other.hi = __shfl_xor_sync(~0u, mine.hi, step);
		merge(fn, type, mine, other);
	}
	return mine;
}

/* What the lane gathered, as a Partial: narrow sums are extended. */
template <int R>
GPUVM_D Partial
lane_partial(const Machine<R> &m, const DeviceProgram &p, int agg)
{
	Accumulator<R> acc(m, p.sum_slot[agg]);
	AggFn		fn = p.agg_fn[agg];
	Partial		r = {*acc.word, 0, 0};

	if (fn != AggFn::Count && fn != AggFn::CountStar)
	{
		r.lo = *acc.lo;
		if (fn == AggFn::Sum)
			r.hi = p.agg_wide >> agg & 1 ? *acc.hi : static_cast<int64_t>(r.lo) >> 63;
	}
	return r;
}

/* The block that finishes last merges what all have gathered into what earlier launches of the job left. */
template <int R>
GPUVM_D void
publish(const Machine<R> &m, const DeviceProgram &p, LaunchState *state, Partial *partials)
{
	__shared__ Partial block_partials[BLOCK_WARPS];
	__shared__ bool is_last;
	uint32_t	warp = threadIdx.x / 32, warps = blockDim.x / 32;

	for (int i = 0; i < p.naggs; i++)
	{
		Partial		mine = merge_warp(p.agg_fn[i], p.agg_type[i], lane_partial(m, p, i));

		if (m.lane == 0)
			block_partials[warp] = mine;
		__syncthreads();
		if (threadIdx.x == 0)
		{
			for (uint32_t w = 1; w < warps; w++)
				merge(p.agg_fn[i], p.agg_type[i], mine, block_partials[w]);
			partials[blockIdx.x * MAX_AGGS + i] = mine;
		}
		__syncthreads();
	}
	if (threadIdx.x == 0)
	{
		__threadfence();
		is_last = atomicAdd(&state->blocks_done, 1) == gridDim.x - 1;
		__threadfence();
	}
	__syncthreads();
	if (!is_last)
		return;
	for (uint32_t i = warp; i < p.naggs; i += warps)
	{
		Partial		mine = {0, 0, 0};

		for (uint32_t b = m.lane; b < gridDim.x; b += 32)
			merge(p.agg_fn[i], p.agg_type[i], mine, partials[b * MAX_AGGS + i]);
		mine = merge_warp(p.agg_fn[i], p.agg_type[i], mine);
		if (m.lane == 0)
			merge(p.agg_fn[i], p.agg_type[i], state->result[i], mine);
	}
	if (threadIdx.x == 0)
		state->blocks_done = 0;
}

}  // namespace cuda
}  // namespace gpuvm

#endif
