/*
 * interpreter.cuh: the kernel. Warps take units (runs of tiles of one tablet)
 * in turn, bring their columns into shared memory (staging.cuh), and run the
 * program over each tile.
 *
 * Concurrency. A warp's region belongs to it alone, and nothing in the tile loop
 * crosses warps. Once a unit a warp takes its errors out of its region and reads
 * the abort word: a job that is to stop ends within a unit's time.
 *
 * A job is one or more launches on one stream, over parts of its list of pads;
 * what they gather merges in the LaunchState: integer arithmetic throughout, so
 * no order matters.
 */
#ifndef GPUVM_CUDA_INTERPRETER_CUH
#define GPUVM_CUDA_INTERPRETER_CUH

#include "control.cuh"
#include "groups.cuh"
#include "pair_tile.cuh"
#include "partials.cuh"
#include "rare.cuh"
#include "rows.cuh"
#include "staging.cuh"

namespace gpuvm {
namespace cuda {

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
	else if constexpr (form == OpForm::IN) op_in<T>(m, op);
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
	else if constexpr (form == OpForm::ROWID && T == Type::I64) op_position(m, op);
	else if constexpr (form == OpForm::RESULT) op_result(m, op);
	else if constexpr (form == OpForm::RESCOL && (T == Type::Bool || T == Type::I32 || T == Type::I64))
		op_result_column<std::conditional_t<T == Type::Bool, uint8_t, reg_t<T>>>(m, op);
	else
		__builtin_unreachable();	/* host level, or lowered to something else */
	return true;
}

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
			if constexpr (accepts(types, T) && !is_rare(Opcode::name)) any_live = execute<Opcode::name, T>(m, op); \
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

template <Type T, bool CODED = false, int R>
GPUVM_D bool
less(Machine<R> &m, const OpView &op)
{
	return negatable_branch(m, op, compare_mask<Opcode::Lt, T, CODED>(m, op), mask_read(m, op.a_null()) | mask_read(m, op.b_null()));
}

/* What of the programs over pairs an instance of the kernel runs. */
enum class GridForm
{
	None,						/* none, but all others */
	Rows,						/* one inner row after the other: grid.cuh */
	Pairs,						/* comparisons, eight inner rows at a time: pair_tile.cuh */
};

/* Runs the program over one tile, from operation `pc` on. */
template <OpSet SET, GridForm GRID, int R>
GPUVM_D void
run_tile(Machine<R> &m, uint32_t pc = 0)
{
	constexpr bool wide = SET != OpSet::Narrow;

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
			case CODE_ADD_CODES: op_binary<Opcode::Add, Type::I32, true>(m, op); break;
			case CODE_SUB_CODES: op_binary<Opcode::Sub, Type::I32, true>(m, op); break;
			case CODE_MUL_CODES: op_binary<Opcode::Mul, Type::I32, true>(m, op); break;
			case CODE_LESS_CODES: any_live = less<Type::I32, true>(m, op); break;
			case CODE_MULSUM_CODES: op_mulsum<Type::I32, true>(m, op); break;
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
			case CODE_MARK:
				if constexpr (GRID == GridForm::Rows) mask_write(m, op.dst(), mask_read(m, op.dst()) | m.live); else __builtin_unreachable();
				break;
			default:
				if constexpr (SET == OpSet::All)
				{
					if (is_rare_code(op.code()))
					{
						execute_rare<R>(pc, m.region, m.staged_lane, m.live);
						break;
					}

					Lanes		r = op.code() < CODE_GENERIC ? execute_group<R>(pc, m.region, m.staged_lane, m.live)
						: execute_generic<R>(pc, m.region, m.staged_lane, m.live);

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

/* -- grids -------------------------------------------------------------------------------------- */

/* The tile with each of the unit's inner rows: what is hoisted once, then the loop. */
template <OpSet SET, GridForm GRID, int R>
GPUVM_D void
run_grid_tile(Machine<R> &m, const DeviceProgram &p, const LaunchArgs &args)
{
	const uint32_t loop = GRID == GridForm::Rows ? loop_pc(m, p) : 0;
	uint32_t	pc = 0, live = 0, row = grid_state(m, p)->first;

	for (;;)
	{
		run_tile<SET, GRID>(m, pc);
		if (pc == 0)
		{
			live = m.live;
			if (!__any_sync(~0u, live != 0))
				return;
			if (p.mark == MarkKind::Rows)
				mask_write(m, p.grid.marked, marked_rows(m, args));
			pc = loop;
		}
		if constexpr (GRID == GridForm::Pairs)
		{
			run_pair_loop(m, p, args);
			break;
		}
		m.live = live;
		if (p.mark == MarkKind::Rows)
			m.live &= ~mask_read(m, p.grid.marked);
		if (row == grid_state(m, p)->end || !__any_sync(~0u, m.live != 0))
			break;
		set_inner_row(m, p, args, row++);
	}
	if (p.mark == MarkKind::Rows)
		mark_rows(m, args, mask_read(m, p.grid.marked));
}

/* -- the kernel --------------------------------------------------------------------------------- */

/* Finds the unit's rows, and points the columns at them. */
template <int R>
GPUVM_D void
begin_unit(const Machine<R> &m, const DeviceProgram &p, const LaunchArgs &args, uint32_t unit)
{
	RegionHeader *header = region_header(m);
	const DeviceTable &table = args.table;
	uint32_t	units_per_pad = TABLET_PAD_ROWS / table.unit_rows;
	uint32_t	pad_of_slice = unit / units_per_pad;
	DevicePad	pad = table.pads[args.first_pad + pad_of_slice];
	uint32_t	first = pad.row + unit % units_per_pad * table.unit_rows;
	DeviceTablet tablet = table.tablets[pad.tablet];

	bind_columns(m, p, table.chunks + pad.tablet * p.ncolumns, first);
	if (m.lane == 0)
	{
		header->first_row = first;
		header->rows = static_cast<int32_t>(tablet.nrows <= first ? 0 : tablet.masked ? 0 - table.unit_rows : min(tablet.nrows - first, table.unit_rows));
		header->slice_row = pad_of_slice * TABLET_PAD_ROWS - pad.row;
	}
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
	order_writes_before_copies();
}

/*
 * The lane's rows of the tile that are there: all, but at the tablet's end and
 * where it has masked rows. Of those `rows` is less than 0, so that all others need
 * not ask.
 */
template <int R>
GPUVM_D uint32_t
live_rows(const Machine<R> &m, const DeviceProgram &p, int32_t rows)
{
	const int32_t row = static_cast<int32_t>(m.staged_lane * R);

	if (row + R <= rows)
		return all_rows<R>;
	if (rows < 0)
		return ~mask_read(m, p.dead) & all_rows<R>;
	return row < rows ? (1u << (rows - row)) - 1 : 0;
}

/* Takes the errors out of the region (`pad`: of RowStaging), and finds the warp's next unit: none once the job is to stop. */
template <int R>
GPUVM_D void
end_unit(const Machine<R> &m, const LaunchArgs &args, uint32_t pad)
{
	RegionHeader *header = region_header(m);

	if (m.lane == 0)
	{
		if (header->errors != 0)
		{
			atomicOr(&args.state->errors, header->errors);
			if (args.rows.errors)
				atomicOr(&args.rows.errors[pad], header->errors);
			header->errors = 0;
		}
		header->unit += gridDim.x * (blockDim.x / 32);
		if (args.abort && *static_cast<const volatile uint32_t *>(args.abort) != 0)
			header->unit = ~0u;
	}
	__syncwarp();
}

/* A multiprocessor of compute capability 7.5 holds 1,024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int MAX_RESIDENT_BLOCKS = 1024 / BLOCK_THREADS;
#else
constexpr int MAX_RESIDENT_BLOCKS = 1536 / BLOCK_THREADS;
#endif

template <OpSet SET, int R, int BLOCKS, GridForm GRID = GridForm::None>
__global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS < MAX_RESIDENT_BLOCKS ? BLOCKS : MAX_RESIDENT_BLOCKS)
interpret(const __grid_constant__ DeviceProgram p, const __grid_constant__ LaunchArgs args)
{
	uint32_t	warp = threadIdx.x / 32;
	uint32_t	ops_bytes = p.nops * static_cast<uint32_t>(sizeof(DeviceOp));
	Machine<R>	m;

	/* The tile loop reads operations from shared memory: an indexed constant load is several times slower. */
	for (uint32_t i = threadIdx.x; i < ops_bytes / 4; i += blockDim.x)
		reinterpret_cast<uint32_t *>(shared_memory)[i] = reinterpret_cast<const uint32_t *>(p.ops)[i];
	for (uint32_t i = threadIdx.x; i < p.naux; i += blockDim.x)
		reinterpret_cast<int64_t *>(shared_memory + ops_bytes)[i] = p.aux[i];

	m.lane = threadIdx.x % 32;
	m.region = program_bytes(p.nops, p.naux) + args.groups.shared_bytes + warp * p.region_bytes;
	m.staged_lane = m.lane;
	m.live = 0;

	RegionHeader *header = region_header(m);

	if (m.lane == 0)
	{
		init_copies(header);
		header->errors = 0;
		header->args = &args;
		header->unit = blockIdx.x * (blockDim.x / 32) + warp;
	}
	if constexpr (SET == OpSet::All)
		if (args.groups.shared_bytes != 0)
			begin_groups(p, args.groups);
	for (uint32_t i = p.sums_begin / 16 + m.lane; i < p.region_bytes / 16u; i += 32)
		reinterpret_cast<uint4 *>(shared_memory + m.region)[i] = uint4{0, 0, 0, 0};
	__syncthreads();
	if constexpr (GRID == GridForm::Rows)
		copy_loop(m, p);

	constexpr bool pairs = GRID != GridForm::None;

	while (header->unit < outer_units(args) * (pairs ? inner_blocks(args.grid) : 1))
	{
		begin_unit(m, p, args, pairs ? header->unit % outer_units(args) : header->unit);
		if constexpr (pairs)
			begin_inner_rows(m, p, args, header->unit / outer_units(args));
		while (header->rows != 0)
		{
			fill_stage(m, p);
			await_copies(header);
			m.staged_lane = m.lane;
			do
			{
				m.live = live_rows(m, p, header->rows);
				if constexpr (pairs)
					run_grid_tile<SET, GRID>(m, p, args);
				else
					run_tile<SET, GRID>(m);
				m.staged_lane += 32;
			} while (m.staged_lane < 32u * p.stage_tiles);
			__syncwarp();
			if (m.lane == 0)
			{
				int32_t		done = 32 * R * p.stage_tiles;

				header->first_row += done;
				header->rows -= max(min(header->rows, done), -done);
				header->parity ^= 1;
			}
			__syncwarp();
		}
		end_unit(m, args, pairs ? first_virtual_pad(m, args) : header->unit / (TABLET_PAD_ROWS / args.table.unit_rows));
	}
	__syncthreads();
	if constexpr (SET == OpSet::All)
		if (args.groups.shared_bytes != 0)
		{
			end_groups(p, args.groups);
			return;
		}
	publish(m, p, args.state, args.partials);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
