/*
 * cpu_run.cc: runs the steps over the vectors of a tablet (see cpu_job.h): operands, arithmetic, comparisons, control flow.
 */
#include <algorithm>
#include <cstring>

#include "vm/cpu_job.h"

namespace gpuvm {

constexpr uint32_t PREFETCH_VECTORS = 1;

static bool
any(const uint64_t *mask)
{
	uint64_t	m = 0;

	for (int w = 0; w < CPU_WORDS; w++)
		m |= mask[w];
	return m != 0;
}

/* -- operands ----------------------------------------------------------------------------- */

void
CpuProgram::decode_column(WorkerState &s, int reg) const
{
	const RegInfo &info = regs[reg];
	BoundColumn &column = s.columns[info.column];
	RegState   &state = s.regs[reg];
	const char *codes = column.data + static_cast<size_t>(s.row0) * column.width;

	state.ready = true;
	column.touched = true;
	if (column.direct)
	{
		state.values = codes;
		return;
	}
	if (info.type == Type::Bool)
	{
		state.values = s.own_bits[reg];
		if (column.width == 0)
			memset(s.own_bits[reg], column.base ? 0xff : 0, MASK_BYTES);
		else
			kernels->bits_from_bytes(reinterpret_cast<const uint8_t *>(codes), s.own_bits[reg]);
		return;
	}

	char	   *to = s.slots[info.slot];
	const int	reg_width = type_width(info.type);
	const bool	sign = column.width == type_natural_width(info.type);

	state.values = to;
	if (column.width == 0)
	{
		if (reg_width == 4)
			std::fill_n(reinterpret_cast<int32_t *>(to), CPU_VECTOR_ROWS, static_cast<int32_t>(column.base));
		else
			std::fill_n(reinterpret_cast<int64_t *>(to), CPU_VECTOR_ROWS, column.base);
		return;
	}

	/* Lanes that are dead now stay so unless one is pending. */
	if (s.npending == 0 && kernels->count(s.live) < SPARSE_LANES)
	{
		for (int w = 0; w < CPU_WORDS; w++)
			for (uint64_t m = s.live[w]; m != 0; m &= m - 1)
			{
				const int	i = 64 * w + __builtin_ctzll(m);
				const int64_t v = code_value(column, codes, i, sign);

				if (reg_width == 4)
					reinterpret_cast<int32_t *>(to)[i] = static_cast<int32_t>(v);
				else
					reinterpret_cast<int64_t *>(to)[i] = v;
			}
		return;
	}
	kernels->decode(column.width, reg_width, sign, codes, column.base, to);
}

/* A register as a vector (Bool: as bits). */
const void *
CpuProgram::values_of(WorkerState &s, int reg) const
{
	RegState   &state = s.regs[reg];

	switch (regs[reg].kind)
	{
		case RegKind::Column:
			if (!state.ready)
				decode_column(s, reg);
			break;
		case RegKind::Rowid:
			/* records have it as it was */
			if (s.tablet == nullptr)
				break;
			{
				char	   *to = s.slots[regs[reg].slot];

				for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
				{
					if (regs[reg].type == Type::I64)
						reinterpret_cast<int64_t *>(to)[i] = row_position(s.tablet->place, s.row0 + i);
					else
						reinterpret_cast<uint32_t *>(to)[i] = s.row0 + i;
				}
				return to;
			}
		default:
			break;
	}
	return state.values;
}

const void *
CpuProgram::operand(WorkerState &s, int reg, bool constant) const
{
	return constant ? &s.constants[reg] : values_of(s, reg);
}

const uint64_t *
CpuProgram::bits_of(WorkerState &s, int reg) const
{
	return static_cast<const uint64_t *>(values_of(s, reg));
}

/* The nulls of a strict operation: an operand's own mask where one will do. */
const uint64_t *
CpuProgram::either_null(WorkerState &s, int dst, const uint64_t *a, const uint64_t *b) const
{
	if (!a || !b || a == b)
		return a ? a : b;

	uint64_t   *to = s.own_nulls[dst];

	for (int w = 0; w < CPU_WORDS; w++)
		to[w] = a[w] | b[w];
	return to;
}

/* -- steps ----------------------------------------------------------------------------------- */

void
CpuProgram::arithmetic(WorkerState &s, const Step &step) const
{
	const bool	two = step.kind == StepKind::Binary;
	const void *a = operand(s, step.a, two && step.form == OperandForm::CV);
	const void *b = two ? operand(s, step.b, step.form == OperandForm::VC) : nullptr;
	char	   *to = s.slots[regs[step.dst].slot];
	RegState   &dst = s.regs[step.dst];

	dst.nulls = either_null(s, step.dst, s.regs[step.a].nulls, two ? s.regs[step.b].nulls : nullptr);

	const uint32_t errors = two ? step.binary(a, b, to) : step.unary(a, to);

	if (errors != 0 && step.check)
	{
		uint64_t	mask[CPU_WORDS];

		for (int w = 0; w < CPU_WORDS; w++)
			mask[w] = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0);
		s.errors |= step.check(a, b, mask);
	}
}

/* The truth of a comparison, where neither side is null. */
void
CpuProgram::comparison(WorkerState &s, const Step &step, uint64_t *out) const
{
	if (step.test >= 0)
	{
		const BoundTest &test = s.tests[step.test];

		if (test.mode != TestMode::Range)
		{
			memset(out, test.mode == TestMode::Always ? 0xff : 0, MASK_BYTES);
			return;
		}

		BoundColumn &column = s.columns[regs[step.a].column];

		column.touched = true;
		kernels->range_test(column.width, column.data + static_cast<size_t>(s.row0) * column.width, test.lo, test.span, out);
		if (test.negate)
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~out[w];
		return;
	}
	if (step.type == Type::Bool)
	{
		const uint64_t *a = bits_of(s, step.a), *b = bits_of(s, step.b);

		for (int w = 0; w < CPU_WORDS; w++)
			switch (step.opcode)
			{
				case Opcode::Eq: out[w] = ~(a[w] ^ b[w]); break;
				case Opcode::Ne: out[w] = a[w] ^ b[w]; break;
				case Opcode::Lt: out[w] = ~a[w] & b[w]; break;
				case Opcode::Le: out[w] = ~a[w] | b[w]; break;
				case Opcode::Gt: out[w] = a[w] & ~b[w]; break;
				default: out[w] = a[w] | ~b[w]; break;
			}
		return;
	}

	const void *a = values_of(s, step.a);

	step.compare(a, operand(s, step.b, step.form == OperandForm::VC), out);
}

/* Lanes where the condition holds (or is null, if the step says so) leave. */
void
CpuProgram::leave(WorkerState &s, const Step &step, const uint64_t *condition, const uint64_t *nulls) const
{
	uint64_t	gone[CPU_WORDS];
	uint64_t	some = 0;

	for (int w = 0; w < CPU_WORDS; w++)
	{
		const uint64_t null = nulls ? nulls[w] : 0;

		gone[w] = s.live[w] & ((condition[w] & ~null) | (step.jump_null ? null : 0));
		s.live[w] &= ~gone[w];
		some |= gone[w];
	}
	if (step.label == LABEL_DIES || some == 0)
		return;

	uint64_t   *pending = s.pending[step.label];

	for (int w = 0; w < CPU_WORDS; w++)
		pending[w] |= gone[w];
	if (!s.pending_set[step.label])
	{
		s.pending_set[step.label] = 1;
		s.npending++;
	}
}

/*
 * The processor's own prefetcher starts anew at every page, and a vector reads
 * a quarter of one from several columns in turn: ask for a later vector's lines
 * of the columns that are being read.
 */
void
CpuProgram::prefetch(BoundColumn &column, uint32_t row) const
{
	const char *at = column.data + (static_cast<size_t>(row) + PREFETCH_VECTORS * CPU_VECTOR_ROWS) * column.width;

	if (!column.touched)
		return;
	column.touched = false;
	for (uint32_t i = 0; i < CPU_VECTOR_ROWS * column.width; i += 64)
		__builtin_prefetch(at + i);
}

/* Runs the steps over the lanes of s.live. */
void
CpuProgram::run_vector(WorkerState &s, uint32_t row) const
{
	s.row0 = row;
	for (size_t i = 0; i < columns.size(); i++)
	{
		RegState   &state = s.regs[columns[i].reg];

		if (!s.resident)
			prefetch(s.columns[i], row);
		state.ready = false;
		state.nulls = s.columns[i].nulls ? s.columns[i].nulls + row / 64 : nullptr;
	}

	const int	nsteps = static_cast<int>(steps.size());
	bool		alive = true;

	for (int pc = 0; pc < nsteps; pc++)
	{
		if (!alive)
		{
			/* this step may itself be the label */
			pc = steps[pc].kind == StepKind::Label ? pc : steps[pc].next_label;
			if (pc >= nsteps)
				break;
		}

		const Step &step = steps[pc];
		uint64_t	bits[CPU_WORDS];

		switch (step.kind)
		{
			case StepKind::Binary:
			case StepKind::Unary:
				arithmetic(s, step);
				break;
			case StepKind::FromBool:
				s.regs[step.dst].nulls = s.regs[step.a].nulls;
				kernels->bits_to_values(step.type, bits_of(s, step.a), s.slots[regs[step.dst].slot]);
				break;
			case StepKind::Compare:
				if (step.stores)
				{
					RegState   &dst = s.regs[step.dst];

					comparison(s, step, s.own_bits[step.dst]);
					dst.values = s.own_bits[step.dst];
					dst.nulls = either_null(s, step.dst, s.regs[step.a].nulls, s.regs[step.b].nulls);
				}
				else
				{
					uint64_t	both[CPU_WORDS];
					const uint64_t *an = s.regs[step.a].nulls, *bn = s.regs[step.b].nulls;
					const uint64_t *nulls = an ? an : bn;

					comparison(s, step, bits);
					if (an && bn && an != bn)
					{
						for (int w = 0; w < CPU_WORDS; w++)
							both[w] = an[w] | bn[w];
						nulls = both;
					}
					leave(s, step, bits, nulls);
					alive = any(s.live);
				}
				break;
			case StepKind::And: case StepKind::Or: case StepKind::Not: case StepKind::IsTrue: case StepKind::IsFalse:
			case StepKind::IsNull: case StepKind::NotNull:
				logic(s, step);
				break;
			case StepKind::IsDistinct: case StepKind::Select: case StepKind::Coalesce: case StepKind::Greatest:
			case StepKind::Least: case StepKind::NullIf:
				pick(s, step);
				break;
			case StepKind::Lookup:
				lookup(s, step);
				break;
			case StepKind::TextMatch:
				text_match(s, step);
				break;
			case StepKind::TextPart:
				text_part(s, step);
				break;
			case StepKind::TextCompare:
				text_compare(s, step);
				break;
			case StepKind::TextKey:
				text_key(s, step);
				break;
			case StepKind::Zone:
				shift_zone(s, step);
				break;
			case StepKind::In:
				in_list(s, step);
				break;
			case StepKind::Branch:
				{
					const uint64_t *a = bits_of(s, step.a);

					for (int w = 0; w < CPU_WORDS; w++)
						bits[w] = step.jump_if ? a[w] : ~a[w];
					leave(s, step, bits, s.regs[step.a].nulls);
					alive = any(s.live);
					break;
				}
			case StepKind::Goto:
				memset(bits, 0xff, sizeof(bits));
				leave(s, step, bits, nullptr);
				alive = false;
				break;
			case StepKind::Invalid:
				memset(s.live, 0, sizeof(s.live));
				alive = false;
				break;
			case StepKind::Label:
				if (s.pending_set[step.label])
				{
					for (int w = 0; w < CPU_WORDS; w++)
						s.live[w] |= s.pending[step.label][w];
					memset(s.pending[step.label], 0, MASK_BYTES);
					s.pending_set[step.label] = 0;
					s.npending--;
					alive = true;
				}
				if (!alive)
					pc = step.next_label - 1;
				break;
			case StepKind::Group:
				find_groups(s);
				break;
			case StepKind::AggStep:
				if (keys.empty())
					step_whole(s, aggs[step.a]);
				else
					step_grouped(s, aggs[step.a]);
				break;
			case StepKind::Result:
				emit_rows(s);
				break;
		}
	}
}

/* Clears the lanes of the rows [row, end) that are masked; *at, the first range that ends behind row, moves on. */
static void
mask_lanes(uint64_t *live, uint32_t row, uint32_t end, const MaskedRows **at, const MaskedRows *masked_end)
{
	for (; *at < masked_end && (*at)->first < end; ++*at)
	{
		const uint32_t from = std::max((*at)->first, row) - row, to = std::min((*at)->end, end) - row;

		for (uint32_t w = from / 64; w * 64 < to; w++)
			live[w] &= ~(low_bits(std::min(to - w * 64, 64u)) & ~low_bits(from > w * 64 ? from - w * 64 : 0));
		if ((*at)->end > end)
			return;
	}
}

/*
 * A tablet that contradicts the summaries is not read: the error sends the
 * query to PostgreSQL's own plan.
 */
void
CpuProgram::run(WorkerState &s, const TabletHeader *tablet, uint32_t first, uint32_t last,
				const MaskedRows *masked, uint32_t nmasked) const
{
	last = std::min(last, tablet->nrows);
	if (bind(s, tablet))
		run_bound(s, first, last, masked, nmasked);
	else
		s.errors |= ERR_INT_OVERFLOW;
}

void
CpuProgram::run_bound(WorkerState &s, uint32_t first, uint32_t last, const MaskedRows *masked, uint32_t nmasked, LaneFilter *filter) const
{
	const MaskedRows *at = masked_from(masked, nmasked, first), *const masked_end = masked + nmasked;

	for (uint32_t row = first; row < last; row += CPU_VECTOR_ROWS)
	{
		const uint32_t n = std::min(last - row, CPU_VECTOR_ROWS);

		for (int w = 0; w < CPU_WORDS; w++)
			s.live[w] = n <= 64u * w ? 0 : low_bits(std::min(n - 64u * w, 64u));
		if (at < masked_end && at->first < row + n)
		{
			mask_lanes(s.live, row, row + n, &at, masked_end);
			if (!any(s.live))
				continue;
		}
		if (filter)
		{
			filter->drop(row, s.live);
			if (!any(s.live))
				continue;
		}
		run_vector(s, row);
	}
	s.rows_taken += last > first ? last - first : 0;
}

CpuUnitOutcome
CpuProgram::run_rows(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
					 char *area, uint32_t capacity, const MaskedRows *masked, uint32_t nmasked) const
{
	WorkerState &s = static_cast<WorkerState &>(*state);
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const int	ncols = static_cast<int>(result_types.size());

	result_layout(result_types.data(), ncols, capacity, layout);
	for (int c = 0; c < ncols; c++)
		memset(area + layout[c].nulls, 0, capacity / 8);
	s.area = area;
	s.layout = layout;
	s.emitted = 0;
	s.errors = 0;
	run(s, tablet, first, last, masked, nmasked);
	s.area = nullptr;
	s.layout = nullptr;
	return CpuUnitOutcome{s.emitted, s.errors};
}

void
CpuProgram::run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
					   const MaskedRows *masked, uint32_t nmasked) const
{
	run(static_cast<WorkerState &>(*state), tablet, first, last, masked, nmasked);
}

}  // namespace gpuvm
