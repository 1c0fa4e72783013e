/*
 * interpreter.cuh: the kernel. Warps take stages (runs of tiles of one tablet)
 * in turn, bring their columns into shared memory by bulk copies, and run the
 * program over each tile.
 *
 * Concurrency. A warp's region belongs to it alone. Lane 0 arms the stage's
 * mbarrier with the bytes to come, then lane i starts the copies of column i.
 * All lanes wait for the barrier's phase. Lanes then read what other lanes'
 * copies brought, and may write over staged columns; the __syncwarp and the
 * proxy fence before the stage is filled again order those accesses before the
 * next copies.
 *
 * At the end each block merges its warps' accumulators into one Partial an
 * aggregate, and the block that finishes last merges those of all blocks:
 * integer arithmetic throughout, so the order does not matter.
 */
#ifndef GPUVM_CUDA_INTERPRETER_CUH
#define GPUVM_CUDA_INTERPRETER_CUH

#include "operations.cuh"

namespace gpuvm {
namespace cuda {

/* -- bulk copies and their barriers -------------------------------------------------- */

GPUVM_D uint32_t
shared_address(const void *p)
{
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

GPUVM_D void
barrier_init(uint64_t *barrier)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(barrier)) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

GPUVM_D void
barrier_expect(uint64_t *barrier, uint32_t bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
				 :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}

GPUVM_D void
barrier_wait(uint64_t *barrier, uint32_t parity)
{
	asm volatile("{\n"
				 ".reg .pred done;\n"
				 "wait_%=:\n"
				 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
				 "@!done bra wait_%=;\n"
				 "}" :: "r"(shared_address(barrier)), "r"(parity) : "memory");
}

GPUVM_D void
bulk_copy(void *to, uint64_t from, uint32_t bytes, uint64_t *barrier)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
				 :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}

/* Starts the copies of rows [unit * rows_per_stage, ...) into the stage at `at`. */
template <int R>
GPUVM_D void
fill_stage(const DeviceProgram &p, const DeviceTable &table, uint32_t lane, uint32_t unit, char *at, uint64_t *barrier)
{
	uint32_t	rows = 32 * R * p.stage_tiles;
	uint32_t	units_per_pad = TABLET_PAD_ROWS / rows;
	uint32_t	pad = unit / units_per_pad;
	uint32_t	tablet = table.pad_tablet[pad];
	DeviceTablet t = table.tablets[tablet];
	uint32_t	first = (pad - t.first_pad) * TABLET_PAD_ROWS + unit % units_per_pad * rows;
	DeviceChunk chunk = {};
	uint16_t	nulls_at = OPERAND_NONE;
	uint32_t	bytes = 0;

	if (lane < p.ncolumns)
	{
		chunk = table.chunks[tablet * p.ncolumns + lane];
		nulls_at = p.columns[lane].nulls;
		bytes = chunk.width * rows + (chunk.nulls != 0 && nulls_at != OPERAND_NONE ? rows / 8 : 0);
	}

	uint32_t	total = __reduce_add_sync(~0u, bytes);

	if (lane == 0)
	{
		*reinterpret_cast<StageHeader *>(at) = StageHeader{first, t.nrows > first ? t.nrows - first : 0, {0, 0}};
		barrier_expect(barrier, total);
	}
	__syncwarp();
	if (lane < p.ncolumns)
	{
		reinterpret_cast<StageColumn *>(at + sizeof(StageHeader))[lane] = StageColumn{chunk.base, chunk.width, 0};
		if (chunk.width != 0)
			bulk_copy(at + p.columns[lane].data * 16u, chunk.data + static_cast<uint64_t>(first) * chunk.width,
					  chunk.width * rows, barrier);
		if (nulls_at != OPERAND_NONE)
		{
			if (chunk.nulls != 0)
				bulk_copy(at + nulls_at * 16u, chunk.nulls + first / 8, rows / 8, barrier);
			else
				for (uint32_t i = 0; i < rows / 128; i++)
					reinterpret_cast<uint4 *>(at + nulls_at * 16u)[i] = uint4{0, 0, 0, 0};
		}
	}
	__syncwarp();
}

/* -- the interpreter -------------------------------------------------------------------- */

/* Opcodes that lowering leaves to the interpreter, by form. */
template <Opcode O, Type T, int R>
GPUVM_D bool
execute(Machine<R> &m, const DeviceOp &op, const DeviceProgram &p)
{
	constexpr OpForm form = form_of(O);

	if constexpr (form == OpForm::COLUMN) op_column<T>(m, op);
	else if constexpr (form == OpForm::UNARY || form == OpForm::UNARY_IL || form == OpForm::UNARY_LI) op_unary<O, T>(m, op);
	else if constexpr (form == OpForm::BINARY || form == OpForm::SHIFT) op_binary<O, T>(m, op);
	else if constexpr (form == OpForm::CAST) op_cast<T>(m, op);
	else if constexpr (form == OpForm::LOGIC1 || form == OpForm::LOGIC2) op_logic<O>(m, op);
	else if constexpr (form == OpForm::DISTINCT) op_distinct<T>(m, op);
	else if constexpr (form == OpForm::IN) op_in<T>(m, op, p.aux + op.imm_b);
	else if constexpr (form == OpForm::COMPARE)
		return branch(m, op, compare_mask<O, T>(m, op), mask_read(m, op.a_null) | mask_read(m, op.b_null));
	else if constexpr (form == OpForm::COPY) op_copy<T>(m, op);
	else if constexpr (form == OpForm::SELECT || form == OpForm::PICK) op_pick<O, T>(m, op);
	else if constexpr (form == OpForm::AGGSTEP) op_agg<T>(m, op);
	else if constexpr (form == OpForm::NULLTEST)
	{
		uint32_t	nulls = mask_read(m, op.a_null);

		mask_write(m, op.dst, O == Opcode::IsNull ? nulls : ~nulls & all_rows<R>);
	}
	else if constexpr (form == OpForm::BRANCH)
	{
		uint32_t	bits = mask_read(m, op.a), nulls = mask_read(m, op.a_null);

		return branch(m, op, O == Opcode::If ? bits : ~(bits | nulls) & all_rows<R>, nulls);
	}
	else if constexpr (form == OpForm::JUMP || form == OpForm::INVALID)
		return branch(m, op, all_rows<R>, 0);
	else if constexpr (form == OpForm::ROWID)
	{
		uint32_t	first = reinterpret_cast<const StageHeader *>(shared_regions + m.region + m.stage)->first_row
			+ (m.tile * 32 + m.lane) * R;

#pragma unroll 1
		for (int k = 0; k < R / 4; k++)
		{
			uint32_t	r[4] = {first + 4 * k, first + 4 * k + 1, first + 4 * k + 2, first + 4 * k + 3};

			store4(m, op.dst, k, r);
		}
	}
	else
		__builtin_unreachable();	/* host level, or lowered to something else */
	return true;
}

/* Runs the program over one tile. */
template <int R>
GPUVM_D void
run_tile(Machine<R> &m, const DeviceProgram &p)
{
	uint32_t	pc = 0;

	for (;;)
	{
		const DeviceOp &op = p.ops[pc];
		bool		any_live = true;

		if (op.code < CODE_GENERIC)
		{
			switch (op.code)
			{
				case CODE_END:
					return;
				case CODE_JOIN:
					m.live |= mask_read(m, op.pending);
					break;
				case CODE_FILTER_COLUMN:
				{
					uint32_t	nulls = mask_read(m, op.a_null), bits = column_in_range(m, op);

					any_live = branch(m, op, op.flags & DOP_NEGATED ? ~bits & all_rows<R> : bits, nulls);
					break;
				}
				case CODE_MULSUM_I32:
					op_mulsum<Type::I32>(m, op);
					break;
				case CODE_MULSUM_I64:
					op_mulsum<Type::I64>(m, op);
					break;
				case CODE_SET_MASK:
					mask_write(m, op.dst, static_cast<uint32_t>(op.imm_a) & all_rows<R>);
					break;
				default:
					__builtin_unreachable();
			}
		}
		else
		{
			switch (op.code)
			{
#define GPUVM_CASE(name, types, letter, T) \
				case generic_code(Opcode::name, T): \
					if constexpr (accepts(types, T)) any_live = execute<Opcode::name, T>(m, op, p); \
					else __builtin_unreachable(); \
					break;
#define GPUVM_OPCODE(name, form, types, errors, synopsis) \
				GPUVM_CASE(name, types, '-', Type::None) \
				GPUVM_CASE(name, types, 'B', Type::Bool) \
				GPUVM_CASE(name, types, 'S', Type::I16) \
				GPUVM_CASE(name, types, 'I', Type::I32) \
				GPUVM_CASE(name, types, 'L', Type::I64) \
				GPUVM_CASE(name, types, 'F', Type::F32) \
				GPUVM_CASE(name, types, 'D', Type::F64) \
				GPUVM_CASE(name, types, 'R', Type::RowId)
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
#undef GPUVM_CASE
				default:
					__builtin_unreachable();
			}
		}
		pc = any_live ? pc + 1 : op.skip;
	}
}

/* -- partial aggregates ----------------------------------------------------------------------- */

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
	else if (type == Type::Bool)
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

/* `partials`: gridDim.x * MAX_AGGS of them. */
template <int R>
GPUVM_D void
publish(const Machine<R> &m, const DeviceProgram &p, LaunchState *state, Partial *partials)
{
	__shared__ Partial block_partials[BLOCK_WARPS];
	__shared__ bool is_last;
	uint32_t	warp = threadIdx.x / 32;

	for (int i = 0; i < p.naggs; i++)
	{
		Partial		mine = merge_warp(p.agg_fn[i], p.agg_type[i], lane_partial(m, p, i));

		if (m.lane == 0)
			block_partials[warp] = mine;
		__syncthreads();
		if (threadIdx.x == 0)
		{
			for (int w = 1; w < BLOCK_WARPS; w++)
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
	for (int i = warp; i < p.naggs; i += BLOCK_WARPS)
	{
		Partial		mine = {0, 0, 0};

		for (uint32_t b = m.lane; b < gridDim.x; b += 32)
			merge(p.agg_fn[i], p.agg_type[i], mine, partials[b * MAX_AGGS + i]);
		mine = merge_warp(p.agg_fn[i], p.agg_type[i], mine);
		if (m.lane == 0)
			state->result[i] = mine;
	}
}

/* -- the kernel --------------------------------------------------------------------------------- */

constexpr int STAGES_MAX = 2;

template <int R, int BLOCKS>
__global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS)
interpret(const __grid_constant__ DeviceProgram p, const DeviceTable table, LaunchState *state, Partial *partials)
{
	__shared__ uint64_t barriers[BLOCK_WARPS][STAGES_MAX];
	uint32_t	warp = threadIdx.x / 32;
	Machine<R>	m;

	m.lane = threadIdx.x % 32;
	m.region = warp * p.region_units * 16u;
	m.err = 0;
	if (m.lane == 0)
		for (int s = 0; s < p.stages; s++)
			barrier_init(&barriers[warp][s]);
	for (uint32_t i = p.sums_begin + m.lane; i < p.region_units; i += 32)
		reinterpret_cast<uint4 *>(shared_regions + m.region)[i] = uint4{0, 0, 0, 0};
	__syncwarp();

	uint32_t	stage_bytes = p.stage_units * 16u;
	uint32_t	units = table.npads * (TABLET_PAD_ROWS / (32 * R * p.stage_tiles));
	uint32_t	step = gridDim.x * BLOCK_WARPS;
	uint32_t	unit = blockIdx.x * BLOCK_WARPS + warp;

	for (uint32_t s = 0; s < p.stages; s++)
		if (unit + s * step < units)
			fill_stage<R>(p, table, m.lane, unit + s * step, shared_regions + m.region + s * stage_bytes, &barriers[warp][s]);

	uint32_t	s = 0, parity = 0;

	for (; unit < units; unit += step)
	{
		m.stage = s * stage_bytes;
		barrier_wait(&barriers[warp][s], parity);

		uint32_t	rows = reinterpret_cast<const StageHeader *>(shared_regions + m.region + m.stage)->rows;

		for (m.tile = 0; m.tile < p.stage_tiles; m.tile++)
		{
			uint32_t	row = (m.tile * 32 + m.lane) * R;

			if (m.tile * 32 * R >= rows)
				break;
			m.live = row + R <= rows ? all_rows<R> : row < rows ? (1u << (rows - row)) - 1 : 0;
			run_tile(m, p);
		}
		__syncwarp();
		if (unit + p.stages * step < units)
		{
			asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
			fill_stage<R>(p, table, m.lane, unit + p.stages * step, shared_regions + m.region + m.stage, &barriers[warp][s]);
		}
		if (++s == p.stages)
		{
			s = 0;
			parity ^= 1;
		}
	}
	m.err = __reduce_or_sync(~0u, m.err);
	if (m.lane == 0 && m.err != 0)
		atomicOr(&state->errors, m.err);
	__syncthreads();
	publish(m, p, state, partials);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
