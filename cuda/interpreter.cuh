/*
 * interpreter.cuh: the kernel. Warps take units (runs of tiles of one tablet)
 * in turn, bring their columns into shared memory by bulk copies, and run the
 * program over each tile.
 *
 * Concurrency. A warp's region belongs to it alone. Lane 0 arms the warp's
 * mbarrier with the bytes to come, then lane i starts the copies of column i.
 * All lanes wait for the barrier's phase. Lanes then read what other lanes'
 * copies brought, and may write over staged columns; the __syncwarp and, after
 * writes, the proxy fence order those accesses before the next copies. One stage is enough: other warps compute while this one waits.
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

/* Finds the unit's tablet and points every column's lane at its first tile. */
template <int R>
GPUVM_D void
begin_unit(const Machine<R> &m, const DeviceProgram &p, const DeviceTable &table)
{
	RegionHeader *header = region_header(m);
	uint32_t	unit = header->unit;
	uint32_t	units_per_pad = TABLET_PAD_ROWS / table.unit_rows;
	uint32_t	pad = unit / units_per_pad;
	uint32_t	tablet = table.pad_tablet[pad];
	DeviceTablet t = table.tablets[tablet];
	uint32_t	first = (pad - t.first_pad) * TABLET_PAD_ROWS + unit % units_per_pad * table.unit_rows;
	uint32_t	bytes = 0;

	if (m.lane < p.ncolumns)
	{
		DeviceChunk chunk = table.chunks[tablet * p.ncolumns + m.lane];
		uint32_t	nulls_at = p.columns[m.lane].nulls;

		if (nulls_at == OPERAND_NONE)
			chunk.nulls = 0;
		else if (chunk.nulls == 0)
			for (uint32_t i = 0; i < R / 4 * p.stage_tiles; i++)
				reinterpret_cast<uint4 *>(shared_memory + m.region + nulls_at)[i] = uint4{0, 0, 0, 0};
		bytes = (chunk.width * (32 * R) + (chunk.nulls != 0 ? 4 * R : 0)) * p.stage_tiles;
		*stage_column(m, m.lane) = StageColumn{chunk.base, chunk.width, 0, chunk.data + static_cast<uint64_t>(first) * chunk.width,
			chunk.nulls != 0 ? chunk.nulls + first / 8 : 0};
	}
	bytes = __reduce_add_sync(~0u, bytes);
	if (m.lane == 0)
	{
		header->first_row = first;
		header->rows = t.nrows > first ? min(t.nrows - first, table.unit_rows) : 0;
		header->stage_bytes = bytes;
	}
	__syncwarp();
	for (uint32_t i = m.lane; i < p.nops; i += 32)
	{
		const DeviceOp &op = reinterpret_cast<const DeviceOp *>(shared_memory)[i];

		if (op.code == CODE_FILTER_COLUMN || op.code == CODE_FILTER_I64)
		{
			const StageColumn *col = stage_column(m, op.column);

			*reinterpret_cast<FilterRange *>(shared_memory + m.region + op.b) = filter_range(op, col->base, col->width);
		}
	}
	__syncwarp();
	/* The unit before may have written what the next copies overwrite. */
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Starts the copies of the next stage. All lanes are done with the stage before. */
template <int R>
GPUVM_D void
fill_stage(const Machine<R> &m, const DeviceProgram &p)
{
	RegionHeader *header = region_header(m);

	/* Orders the lanes' own writes to the stage before the copies'. */
	if (p.writes_stage)
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	if (m.lane == 0)
		barrier_expect(&header->barrier, header->stage_bytes);
	__syncwarp();
	if (m.lane < p.ncolumns)
	{
		StageColumn *col = stage_column(m, m.lane);
		StagePlan	plan = p.columns[m.lane];
		uint32_t	bytes = col->width * (32 * R) * p.stage_tiles, null_bytes = 4 * R * p.stage_tiles;
		uint64_t	data = col->next_data, nulls = col->next_nulls;

		if (bytes != 0)
			bulk_copy(shared_memory + m.region + plan.data, data, bytes, &header->barrier);
		if (nulls != 0)
			bulk_copy(shared_memory + m.region + plan.nulls, nulls, null_bytes, &header->barrier);
		col->next_data = data + bytes;
		col->next_nulls = nulls != 0 ? nulls + null_bytes : 0;
	}
	__syncwarp();
}

/* -- the interpreter -------------------------------------------------------------------- */

template <Opcode O, Type T, int R>
GPUVM_D bool
execute(Machine<R> &m, const OpView &op)
{
	constexpr OpForm form = form_of(O);

	if constexpr (form == OpForm::COLUMN) op_column<T>(m, op);
	else if constexpr (form == OpForm::UNARY || form == OpForm::UNARY_IL || form == OpForm::UNARY_LI) op_unary<O, T>(m, op);
	else if constexpr (form == OpForm::BINARY || form == OpForm::SHIFT) op_binary<O, T>(m, op);
	else if constexpr (form == OpForm::CAST) op_cast<T>(m, op);
	else if constexpr (form == OpForm::LOGIC1 || form == OpForm::LOGIC2) op_logic<O>(m, op);
	else if constexpr (form == OpForm::DISTINCT) op_distinct<T>(m, op);
	else if constexpr (form == OpForm::IN)
		op_in<T>(m, op, reinterpret_cast<const int64_t *>(shared_memory + op.imm_b()));
	else if constexpr (form == OpForm::COMPARE)
		return branch(m, op, compare_mask<O, T>(m, op), mask_read(m, op.a_null()) | mask_read(m, op.b_null()));
	else if constexpr (form == OpForm::COPY) op_copy<T>(m, op);
	else if constexpr (form == OpForm::SELECT || form == OpForm::PICK) op_pick<O, T>(m, op);
	else if constexpr (form == OpForm::AGGSTEP) op_agg<T>(m, op);
	else if constexpr (form == OpForm::NULLTEST)
	{
		uint32_t	nulls = mask_read(m, op.a_null());

		mask_write(m, op.dst(), O == Opcode::IsNull ? nulls : ~nulls & all_rows<R>);
	}
	else if constexpr (form == OpForm::BRANCH)
	{
		uint32_t	bits = mask_read(m, op.a()), nulls = mask_read(m, op.a_null());

		return branch(m, op, O == Opcode::If ? bits : ~(bits | nulls) & all_rows<R>, nulls);
	}
	else if constexpr (form == OpForm::JUMP || form == OpForm::INVALID)
		return branch(m, op, all_rows<R>, 0);
	else if constexpr (form == OpForm::ROWID)
	{
		char	   *to = place_of<uint32_t>(m, op.dst());
		uint32_t	row = region_header(m)->first_row + m.staged_lane * R;

#pragma unroll 1
		for (int k = 0; k < R / 4; k++)
		{
			uint32_t	r[4] = {row + 4 * k, row + 4 * k + 1, row + 4 * k + 2, row + 4 * k + 3};

			store4(to, k, 0, r);
		}
	}
	else
		__builtin_unreachable();	/* host level, or lowered to something else */
	return true;
}

struct Lanes					/* what an operation may change outside of the region */
{
	uint32_t	live;
	uint32_t	any_live;
};

/* The operations that have no case in the tile loop. Arguments and result travel in registers. */
template <int R>
__device__ __noinline__ Lanes
execute_generic(uint32_t pc, uint32_t region, uint32_t staged_lane, uint32_t live)
{
	OpView		op(pc);
	Machine<R>	m = {region, threadIdx.x % 32, staged_lane, live};
	bool		any_live = true;

	switch (op.code())
	{
#define GPUVM_CASE(name, types, letter, T) \
		case generic_code(Opcode::name, T): \
			if constexpr (accepts(types, T)) any_live = execute<Opcode::name, T>(m, op); \
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
	return Lanes{m.live, any_live};
}

template <int R>
GPUVM_D bool
negatable_branch(Machine<R> &m, const OpView &op, uint32_t bits, uint32_t nulls)
{
	return branch(m, op, op.flags() & DOP_NEGATED ? ~bits & all_rows<R> : bits, nulls);
}

template <int R>
GPUVM_D bool
filter(Machine<R> &m, const OpView &op, uint32_t bits)
{
	return negatable_branch(m, op, bits, mask_read(m, op.a_null()));
}

template <Type T, int R>
GPUVM_D bool
less(Machine<R> &m, const OpView &op)
{
	return negatable_branch(m, op, compare_mask<Opcode::Lt, T>(m, op), mask_read(m, op.a_null()) | mask_read(m, op.b_null()));
}

/* Runs the program over one tile. */
template <OpSet SET, int R>
GPUVM_D void
run_tile(Machine<R> &m)
{
	constexpr bool wide = SET != OpSet::Narrow;
	uint32_t	pc = 0;

	for (;;)
	{
		OpView		op(pc);
		bool		any_live = true;

		/*
		 * Adds 0 (aux is less than 128), which the compiler cannot know: else it
		 * computes every case's addresses before the loop, and spills them.
		 */
		m.lane += op.head.x >> 31;
		m.staged_lane += op.head.x >> 31;

/* A case that only the larger kernels have. */
#define GPUVM_WIDE(code, action) \
			case code: \
				if constexpr (wide) action; else __builtin_unreachable(); \
				break;

		switch (op.code())
		{
			case CODE_END:
				return;
			case CODE_COUNT:
				*Accumulator<R>(m, op.column()).word += __popc(m.live);
				break;
			case CODE_FILTER_COLUMN: any_live = filter(m, op, ints_in_range<false>(m, op)); break;
			case CODE_FILTER_F32: any_live = filter(m, op, floats_in_range<float>(m, op)); break;
			GPUVM_WIDE(CODE_FILTER_I64, any_live = filter(m, op, ints_in_range<true>(m, op)))
			GPUVM_WIDE(CODE_FILTER_F64, any_live = filter(m, op, floats_in_range<double>(m, op)))
			case CODE_COLUMN_I32: op_column<Type::I32>(m, op); break;
			case CODE_ADD_I32: op_binary<Opcode::Add, Type::I32>(m, op); break;
			case CODE_ADD_F32: op_binary<Opcode::Add, Type::F32>(m, op); break;
			case CODE_SUB_I32: op_binary<Opcode::Sub, Type::I32>(m, op); break;
			case CODE_SUB_F32: op_binary<Opcode::Sub, Type::F32>(m, op); break;
			case CODE_MUL_I32: op_binary<Opcode::Mul, Type::I32>(m, op); break;
			case CODE_LESS_I32: any_live = less<Type::I32>(m, op); break;
			case CODE_LESS_F32: any_live = less<Type::F32>(m, op); break;
			case CODE_SUM_I32: op_sum<Type::I32>(m, op); break;
			case CODE_MULSUM_I32: op_mulsum<Type::I32>(m, op); break;
			GPUVM_WIDE(CODE_COLUMN_I64, (op_column<Type::I64>(m, op)))
			GPUVM_WIDE(CODE_ADD_I64, (op_binary<Opcode::Add, Type::I64>(m, op)))
			GPUVM_WIDE(CODE_ADD_F64, (op_binary<Opcode::Add, Type::F64>(m, op)))
			GPUVM_WIDE(CODE_SUB_I64, (op_binary<Opcode::Sub, Type::I64>(m, op)))
			GPUVM_WIDE(CODE_SUB_F64, (op_binary<Opcode::Sub, Type::F64>(m, op)))
			GPUVM_WIDE(CODE_MUL_I64, (op_binary<Opcode::Mul, Type::I64>(m, op)))
			GPUVM_WIDE(CODE_MUL_F32, (op_binary<Opcode::Mul, Type::F32>(m, op)))
			GPUVM_WIDE(CODE_MUL_F64, (op_binary<Opcode::Mul, Type::F64>(m, op)))
			GPUVM_WIDE(CODE_LESS_I64, (any_live = less<Type::I64>(m, op)))
			GPUVM_WIDE(CODE_LESS_F64, (any_live = less<Type::F64>(m, op)))
			GPUVM_WIDE(CODE_SUM_I64, (op_sum<Type::I64>(m, op)))
			GPUVM_WIDE(CODE_SUM_F32, (op_sum<Type::F32>(m, op)))
			GPUVM_WIDE(CODE_SUM_F64, (op_sum<Type::F64>(m, op)))
			GPUVM_WIDE(CODE_MULSUM_I64, (op_mulsum<Type::I64>(m, op)))
			case CODE_JOIN:
				m.live |= mask_read(m, op.pending());
				break;
			case CODE_SET_MASK:
				mask_write(m, op.dst(), static_cast<uint32_t>(op.imm_a()) & all_rows<R>);
				break;
			default:
				if constexpr (SET == OpSet::All)
				{
					Lanes		r = execute_generic<R>(pc, m.region, m.staged_lane, m.live);

					m.live = r.live;
					any_live = r.any_live;
				}
				else
					__builtin_unreachable();
		}
#undef GPUVM_WIDE
		pc = any_live ? pc + 1 : op.skip();
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

template <OpSet SET, int R, int BLOCKS>
__global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS)
interpret(const __grid_constant__ DeviceProgram p, const DeviceTable table, LaunchState *state, Partial *partials)
{
	uint32_t	warp = threadIdx.x / 32;
	uint32_t	ops_bytes = p.nops * static_cast<uint32_t>(sizeof(DeviceOp));
	Machine<R>	m;

	/* The tile loop reads operations from shared memory: an indexed constant load is several times slower. */
	for (uint32_t i = threadIdx.x; i < ops_bytes / 4; i += BLOCK_THREADS)
		reinterpret_cast<uint32_t *>(shared_memory)[i] = reinterpret_cast<const uint32_t *>(p.ops)[i];
	for (uint32_t i = threadIdx.x; i < p.naux; i += BLOCK_THREADS)
		reinterpret_cast<int64_t *>(shared_memory + ops_bytes)[i] = p.aux[i];

	m.lane = threadIdx.x % 32;
	m.region = program_bytes(p.nops, p.naux) + warp * p.region_bytes;
	m.staged_lane = m.lane;
	m.live = 0;

	RegionHeader *header = region_header(m);

	if (m.lane == 0)
	{
		barrier_init(&header->barrier);
		header->parity = 0;
		header->errors = 0;
		header->unit = blockIdx.x * BLOCK_WARPS + warp;
	}
	for (uint32_t i = p.sums_begin / 16 + m.lane; i < p.region_bytes / 16u; i += 32)
		reinterpret_cast<uint4 *>(shared_memory + m.region)[i] = uint4{0, 0, 0, 0};
	__syncthreads();
	while (header->unit < table.npads * (TABLET_PAD_ROWS / table.unit_rows))
	{
		begin_unit(m, p, table);
		while (header->rows > 0)
		{
			fill_stage(m, p);
			barrier_wait(&header->barrier, header->parity);
			m.staged_lane = m.lane;
			do
			{
				uint32_t	rows = header->rows, row = m.staged_lane * R;

				m.live = row + R <= rows ? all_rows<R> : row < rows ? (1u << (rows - row)) - 1 : 0;
				run_tile<SET>(m);
				m.staged_lane += 32;
			} while (m.staged_lane < 32u * p.stage_tiles);
			__syncwarp();
			if (m.lane == 0)
			{
				uint32_t	done = 32 * R * p.stage_tiles;

				header->first_row += done;
				header->rows -= min(header->rows, done);
				header->parity ^= 1;
			}
			__syncwarp();
		}
		if (m.lane == 0)
			header->unit += gridDim.x * BLOCK_WARPS;
		__syncwarp();
	}
	if (m.lane == 0 && header->errors != 0)
		atomicOr(&state->errors, header->errors);
	__syncthreads();
	publish(m, p, state, partials);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
