/*
 * cpu_run.cc: runs the steps over the vectors of a tablet (see cpu_job.h).
 */
#include <algorithm>
#include <cstring>

#include "vm/cpu_job.h"
#include "vm/semantics.h"

namespace gpuvm {

namespace {

constexpr size_t VECTOR_BYTES = CPU_VECTOR_ROWS * 8;
constexpr size_t MASK_BYTES = CPU_WORDS * 8;

constexpr uint32_t PREFETCH_VECTORS = 1;

alignas(64) const uint64_t all_zero[CPU_WORDS] = {};

bool
any(const uint64_t *mask)
{
	uint64_t	m = 0;

	for (int w = 0; w < CPU_WORDS; w++)
		m |= mask[w];
	return m != 0;
}

}  // namespace

/* -- a worker's memory --------------------------------------------------------------- */

WorkerState::WorkerState(const CpuProgram &p)
{
	const size_t nregs = p.regs.size();
	const size_t nkeys = p.dense ? 0 : p.keys.size();
	size_t		bytes = 64;
	size_t		bool_regs = 0;

	for (const RegInfo &info : p.regs)
		bool_regs += info.type == Type::Bool;
	bytes += (p.nslots + 3 + nkeys) * VECTOR_BYTES;
	bytes += (nregs + bool_regs + p.nlabels) * MASK_BYTES;
	bytes += CPU_VECTOR_ROWS * (sizeof(uint16_t) + sizeof(char *) + 2 * sizeof(uint32_t) + sizeof(uint64_t));
	bytes += VECTOR_BYTES * p.null_words;
	arena.reset(static_cast<char *>(calloc(1, bytes)));
	if (!arena)
		throw std::bad_alloc();

	char	   *at = reinterpret_cast<char *>(align_up(reinterpret_cast<uintptr_t>(arena.get()), 64));
	auto		take = [&at](size_t n) { char *p = at; at += n; return p; };

	for (int i = 0; i < p.nslots; i++)
		slots.push_back(take(VECTOR_BYTES));
	for (char *&s : scratch)
		s = take(VECTOR_BYTES);
	for (size_t i = 0; i < nkeys; i++)
		key_values.push_back(reinterpret_cast<uint64_t *>(take(VECTOR_BYTES)));
	for (const RegInfo &info : p.regs)
	{
		own_nulls.push_back(reinterpret_cast<uint64_t *>(take(MASK_BYTES)));
		own_bits.push_back(info.type == Type::Bool ? reinterpret_cast<uint64_t *>(take(MASK_BYTES)) : nullptr);
	}
	for (int i = 0; i < p.nlabels; i++)
		pending.push_back(reinterpret_cast<uint64_t *>(take(MASK_BYTES)));
	pending_set.resize(p.nlabels);
	rows = reinterpret_cast<uint16_t *>(take(CPU_VECTOR_ROWS * sizeof(uint16_t)));
	group_row = reinterpret_cast<char **>(take(CPU_VECTOR_ROWS * sizeof(char *)));
	dense_index = reinterpret_cast<uint32_t *>(take(CPU_VECTOR_ROWS * sizeof(uint32_t)));
	dense_part = reinterpret_cast<uint32_t *>(take(CPU_VECTOR_ROWS * sizeof(uint32_t)));
	hashes = reinterpret_cast<uint64_t *>(take(CPU_VECTOR_ROWS * sizeof(uint64_t)));
	key_null_words = reinterpret_cast<uint64_t *>(take(VECTOR_BYTES * p.null_words));

	regs.resize(nregs);
	constants.resize(nregs);
	columns.resize(p.columns.size());
	tests.resize(p.tests.size());
	for (size_t r = 0; r < nregs; r++)
	{
		const RegInfo &info = p.regs[r];

		regs[r].values = info.type == Type::Bool ? static_cast<void *>(own_bits[r])
			: info.slot >= 0 ? slots[info.slot] : scratch[0];
		regs[r].nulls = nullptr;
		if (info.kind != RegKind::Constant)
			continue;
		constants[r] = info.value;
		if (info.is_null || info.late)
			memset(own_nulls[r], 0xff, MASK_BYTES);
		if (info.is_null)
			regs[r].nulls = own_nulls[r];
		if (info.type == Type::Bool)
			memset(own_bits[r], info.value.i32 ? 0xff : 0, MASK_BYTES);
		else if (info.slot >= 0)
			for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
				memcpy(slots[info.slot] + i * type_width(info.type), &info.value, type_width(info.type));
	}

	const size_t table_rows = !p.program->grouped ? 0 : p.keys.empty() ? 1 : size_t(p.dense_slots) * p.replicas;

	if (table_rows > 0)
	{
		table.reset(static_cast<char *>(calloc(table_rows, p.row_bytes)));
		if (!table)
			throw std::bad_alloc();
	}
	if (nkeys > 0)
		p.index_slots(*this);
}

WorkerState::~WorkerState() = default;

std::unique_ptr<CpuState>
CpuProgram::new_state() const
{
	return std::make_unique<WorkerState>(*this);
}

/* -- tablets ----------------------------------------------------------------------------- */

/* The test in the codes' domain: lo <= code <= lo + span, wrapping. */
void
CpuProgram::bind_test(const ColumnTest &test, const BoundColumn &column, BoundTest *out) const
{
	const ColumnChunk &chunk = *column.chunk;
	bool		never = test.empty || test.lo > chunk.max || test.hi < chunk.min;
	bool		always = !never && test.lo <= chunk.min && test.hi >= chunk.max;

	out->negate = test.negate;
	if (never || always || column.width == 0)
	{
		if (column.width == 0)
			always = !test.empty && test.lo <= column.base && column.base <= test.hi;
		out->mode = always != test.negate ? TestMode::Always : TestMode::Never;
		return;
	}

	/* Within [min, max] the subtraction cannot leave what a code can be. */
	const int64_t lo = std::max(test.lo, chunk.min), hi = std::min(test.hi, chunk.max);

	out->mode = TestMode::Range;
	out->lo = static_cast<uint64_t>(lo) - static_cast<uint64_t>(column.base);
	out->span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
}

/*
 * Points the columns at the tablet. False when the tablet says of itself what
 * the summaries, for which the program was lowered, exclude.
 */
bool
CpuProgram::bind(WorkerState &s, const TabletHeader *tablet) const
{
	s.tablet = tablet;
	for (size_t i = 0; i < columns.size(); i++)
	{
		const UsedColumn &used = columns[i];
		BoundColumn &bound = s.columns[i];

		if (used.number >= tablet->ncols)
			return false;

		const ColumnChunk &chunk = tablet_chunks(tablet)[used.number];
		const ValueRange range = column_range(chunk);

		if (chunk.type != used.type || (used.text && chunk.encoding != Encoding::Variable)
			|| (range.may_null && !used.range.may_null)
			|| (range.may_value && (!used.range.may_value
									|| (type_is_float(used.type)
										? (range.may_nan && !used.range.may_nan) || (range.may_inf && !used.range.may_inf)
										|| (chunk.exp_lo <= chunk.exp_hi
											&& (range.exp_lo < used.range.exp_lo || range.exp_hi > used.range.exp_hi))
										: range.lo < used.range.lo || range.hi > used.range.hi))))
			return false;
		bound.chunk = &chunk;
		bound.data = tablet_at<char>(tablet, chunk.data);
		bound.nulls = chunk.nulls ? tablet_at<uint64_t>(tablet, chunk.nulls) : nullptr;
		bound.width = chunk.width;
		bound.touched = false;
		bound.base = chunk.base;
		bound.direct = chunk.width == type_width(chunk.type) && chunk.type != Type::Bool;
		bound.images = {};
		if (used.text && !(chunk.flags & CHUNK_ALL_NULL))
			bound.images = TextImages{tablet_at<unsigned char>(tablet, variable_at(tablet, chunk)), variable_bytes(chunk)};
	}
	bind_rest(s);
	return true;
}

void
CpuProgram::bind_vectors(WorkerState &s, const ColumnChunk *chunks) const
{
	s.tablet = nullptr;
	s.resident = true;
	for (size_t i = 0; i < columns.size(); i++)
	{
		BoundColumn &bound = s.columns[i];

		bound.chunk = &chunks[columns[i].number];
		bound.data = nullptr;
		bound.nulls = nullptr;
		bound.width = type_width(columns[i].type);
		bound.touched = false;
		bound.base = 0;
		bound.direct = columns[i].type != Type::Bool;
	}
	bind_rest(s);
}

/* The tests' bounds, and nothing left of the tablet before. */
void
CpuProgram::bind_rest(WorkerState &s) const
{
	for (size_t i = 0; i < tests.size(); i++)
		bind_test(tests[i], s.columns[tests[i].column], &s.tests[i]);

	/* No null mask of another tablet, which may be gone, survives. */
	for (size_t r = 0; r < regs.size(); r++)
		if (regs[r].kind != RegKind::Constant)
			s.regs[r].nulls = nullptr;
	for (int i = 0; i < nlabels; i++)
	{
		memset(s.pending[i], 0, MASK_BYTES);
		s.pending_set[i] = 0;
	}
	s.npending = 0;
}

void
CpuProgram::set_scalar(WorkerState &s, const ScalarColumn &scalar, const void *value, bool null) const
{
	const RegInfo &info = regs[scalar.reg];
	const int	width = type_width(info.type);

	s.regs[scalar.reg].nulls = null ? s.own_nulls[scalar.reg] : nullptr;
	if (info.type == Type::Bool)
	{
		memset(s.own_bits[scalar.reg], *static_cast<const uint8_t *>(value) ? 0xff : 0, MASK_BYTES);
		return;
	}
	memcpy(&s.constants[scalar.reg], value, width);
	if (info.slot < 0)
		return;
	if (width == 4)
		std::fill_n(reinterpret_cast<int32_t *>(s.slots[info.slot]), CPU_VECTOR_ROWS, s.constants[scalar.reg].i32);
	else
		std::fill_n(reinterpret_cast<int64_t *>(s.slots[info.slot]), CPU_VECTOR_ROWS, s.constants[scalar.reg].i64);
}

bool
CpuProgram::can_skip(const TabletHeader *tablet) const
{
	for (const UsedColumn &used : columns)
		if (used.number >= tablet->ncols || tablet_chunks(tablet)[used.number].type != used.type)
			return false;
	return !may_reach_sink(program, path, params.data(), tablet_chunks(tablet), maps);
}

uint64_t
CpuProgram::bytes_of(const TabletHeader *tablet) const
{
	uint64_t	bytes = 0;

	for (const UsedColumn &used : columns)
		if (used.number < tablet->ncols)
		{
			const ColumnChunk &chunk = tablet_chunks(tablet)[used.number];

			bytes += chunk.data_bytes + (chunk.nulls ? tablet->padded_rows / 8 : 0) + (used.text ? variable_bytes(chunk) : 0);
		}
	return bytes;
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

/* Three-valued logic on bitmaps. */
void
CpuProgram::logic(WorkerState &s, const Step &step) const
{
	const uint64_t *a = step.kind == StepKind::IsNull || step.kind == StepKind::NotNull ? all_zero : bits_of(s, step.a);
	const uint64_t *b = step.b >= 0 ? bits_of(s, step.b) : all_zero;
	const uint64_t *an = s.regs[step.a].nulls;
	const uint64_t *bn = step.b >= 0 ? s.regs[step.b].nulls : nullptr;
	uint64_t   *out = s.own_bits[step.dst];
	uint64_t   *out_nulls = s.own_nulls[step.dst];
	RegState   &dst = s.regs[step.dst];

	dst.values = out;
	dst.nulls = nullptr;
	switch (step.kind)
	{
		case StepKind::Not:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~a[w];
			dst.nulls = an;
			return;
		case StepKind::And:
		case StepKind::Or:
			{
				/* OR is AND of the complements */
				const uint64_t flip = step.kind == StepKind::Or ? ~uint64_t(0) : 0;

				if (!an)
					an = all_zero;
				if (!bn)
					bn = all_zero;
				for (int w = 0; w < CPU_WORDS; w++)
				{
					const uint64_t at = (a[w] ^ flip) & ~an[w], af = ~(a[w] ^ flip) & ~an[w];
					const uint64_t bt = (b[w] ^ flip) & ~bn[w], bf = ~(b[w] ^ flip) & ~bn[w];

					out[w] = (at & bt) ^ flip;
					out_nulls[w] = ~((at & bt) | af | bf);
				}
				if (an != all_zero || bn != all_zero)
					dst.nulls = out_nulls;
				return;
			}
		case StepKind::IsTrue:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = a[w] & ~(an ? an[w] : 0);
			return;
		case StepKind::IsFalse:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~a[w] & ~(an ? an[w] : 0);
			return;
		case StepKind::IsNull:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = an ? an[w] : 0;
			return;
		default:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~(an ? an[w] : 0);
			return;
	}
}

/* Select, Coalesce, Greatest, Least, NullIf, IsDistinct: dst takes a or b by a mask. */
void
CpuProgram::pick(WorkerState &s, const Step &step) const
{
	const void *a = values_of(s, step.a), *b = values_of(s, step.b);
	const uint64_t *an = s.regs[step.a].nulls ? s.regs[step.a].nulls : all_zero;
	const uint64_t *bn = s.regs[step.b].nulls ? s.regs[step.b].nulls : all_zero;
	const bool	nullable = an != all_zero || bn != all_zero;
	uint64_t	take_a[CPU_WORDS];
	uint64_t	nulls[CPU_WORDS];
	RegState   &dst = s.regs[step.dst];

	if (step.kind == StepKind::Select)
	{
		const uint64_t *c = bits_of(s, step.c);
		const uint64_t *cn = s.regs[step.c].nulls;

		for (int w = 0; w < CPU_WORDS; w++)
		{
			take_a[w] = c[w] & ~(cn ? cn[w] : 0);
			nulls[w] = (take_a[w] & an[w]) | (~take_a[w] & bn[w]);
		}
	}
	else if (step.kind == StepKind::Coalesce)
	{
		for (int w = 0; w < CPU_WORDS; w++)
		{
			take_a[w] = ~an[w];
			nulls[w] = an[w] & bn[w];
		}
	}
	else
	{
		/* comparison(a, b), in the type's own way */
		uint64_t	holds[CPU_WORDS];

		comparison(s, step, holds);
		for (int w = 0; w < CPU_WORDS; w++)
		{
			const uint64_t both = ~(an[w] | bn[w]);

			switch (step.kind)
			{
				case StepKind::IsDistinct:
					s.own_bits[step.dst][w] = (an[w] ^ bn[w]) | (both & ~holds[w]);
					break;
				case StepKind::NullIf:
					take_a[w] = ~uint64_t(0);
					nulls[w] = an[w] | (both & holds[w]);
					break;
				default:
					take_a[w] = ~(an[w] | (both & holds[w]));
					nulls[w] = an[w] & bn[w];
					break;
			}
		}
		if (step.kind == StepKind::IsDistinct)
		{
			dst.values = s.own_bits[step.dst];
			dst.nulls = nullptr;
			return;
		}
	}

	if (step.type == Type::Bool)
	{
		uint64_t   *out = s.own_bits[step.dst];
		const uint64_t *av = static_cast<const uint64_t *>(a), *bv = static_cast<const uint64_t *>(b);

		for (int w = 0; w < CPU_WORDS; w++)
			out[w] = (take_a[w] & av[w]) | (~take_a[w] & bv[w]);
		dst.values = out;
	}
	else
		kernels->blend(type_width(step.type), take_a, a, b, s.slots[regs[step.dst].slot]);
	if (nullable || step.kind == StepKind::NullIf)
	{
		memcpy(s.own_nulls[step.dst], nulls, MASK_BYTES);
		dst.nulls = s.own_nulls[step.dst];
	}
	else
		dst.nulls = nullptr;
}

void
CpuProgram::in_list(WorkerState &s, const Step &step) const
{
	const int64_t *list = program->aux() + step.list;
	const void *a = values_of(s, step.a);
	const uint64_t *an = s.regs[step.a].nulls;
	uint64_t   *out = s.own_bits[step.dst];
	RegState   &dst = s.regs[step.dst];

	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint64_t	bits = 0;

		for (int i = 0; i < 64; i++)
		{
			const int64_t v = step.type == Type::I64 ? static_cast<const int64_t *>(a)[64 * w + i]
				: static_cast<const int32_t *>(a)[64 * w + i];
			const int64_t *from = list;

			/* branchless: the last element that is not greater */
			for (int n = step.list_len; n > 1;)
			{
				const int	half = n / 2;

				from += from[half] <= v ? half : 0;
				n -= half;
			}
			bits |= static_cast<uint64_t>(*from == v) << i;
		}
		out[w] = bits;
	}
	dst.values = out;
	dst.nulls = an;
	if (step.has_null)
	{
		uint64_t   *to = s.own_nulls[step.dst];

		for (int w = 0; w < CPU_WORDS; w++)
			to[w] = (an ? an[w] : 0) | ~out[w];
		dst.nulls = to;
	}
}

/*
 * Entries of a map. Lanes that are null or do not live may hold any code, so
 * kernels read the first entry for what lies outside; where there is none, the map
 * holds nothing but its nulls' entry, or nothing at all.
 */
void
CpuProgram::lookup(WorkerState &s, const Step &step) const
{
	const CodeMap &map = maps[step.list];
	const uint32_t all = map.nentries + (step.has_null ? 1 : 0);
	const int32_t *codes = static_cast<const int32_t *>(values_of(s, step.a));
	const uint64_t *an = s.regs[step.a].nulls;
	uint64_t   *nulls = s.own_nulls[step.dst];
	RegState   &dst = s.regs[step.dst];

	dst.nulls = step.has_null ? nullptr : an;
	if (step.type == Type::Bool)
		dst.values = s.own_bits[step.dst];
	if (step.outside)
	{
		for (int w = 0; w < CPU_WORDS; w++)
		{
			uint64_t	out = 0;

			for (int i = 0; i < 64; i++)
				out |= static_cast<uint64_t>(static_cast<uint32_t>(codes[64 * w + i]) >= map.nentries) << i;
			nulls[w] = step.has_null ? out & ~(an ? an[w] : 0) : out | (an ? an[w] : 0);
		}
		dst.nulls = nulls;
	}
	if (all == 0)
	{
		memset(nulls, 0xff, MASK_BYTES);
		dst.nulls = nulls;
		return;
	}
	if (step.has_null && an)
	{
		int32_t    *to = reinterpret_cast<int32_t *>(s.scratch[0]);

		memcpy(to, codes, CPU_VECTOR_ROWS * sizeof(int32_t));
		for (int w = 0; w < CPU_WORDS; w++)
			for (uint64_t m = an[w]; m != 0; m &= m - 1)
				to[64 * w + __builtin_ctzll(m)] = static_cast<int32_t>(map.nentries);
		codes = to;
	}
	if (step.type == Type::Bool)
		kernels->lookup_bytes(codes, static_cast<const uint8_t *>(map.values), all, s.own_bits[step.dst]);
	else
		kernels->lookup(type_width(step.type), codes, map.values, all, s.slots[regs[step.dst].slot]);
	if (map.nulls)
	{
		uint64_t	bits[CPU_WORDS];

		kernels->lookup_bits(codes, map.nulls, all, bits);
		for (int w = 0; w < CPU_WORDS; w++)
			nulls[w] = bits[w] | (dst.nulls ? dst.nulls[w] : 0);
		dst.nulls = nulls;
	}
}

/* Takes over the column's nulls; s.rows are then the lanes of which texts are read, so many: values are long, so only those that live. */
uint32_t
CpuProgram::text_lanes(WorkerState &s, const Step &step) const
{
	const int	column = texts[step.list].column;
	RegState   &dst = s.regs[step.dst];
	uint64_t	lanes[CPU_WORDS];

	dst.nulls = s.regs[columns[column].reg].nulls;
	for (int w = 0; w < CPU_WORDS; w++)
		lanes[w] = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0);
	s.columns[column].touched = true;
	return kernels->select(lanes, s.rows);
}

void
CpuProgram::text_match(WorkerState &s, const Step &step) const
{
	const TextStep &text = texts[step.list];
	const BoundColumn &column = s.columns[text.column];

	s.regs[step.dst].values = s.own_bits[step.dst];
	if (text.order != nullptr)
	{
		text_collate(s, step);
		return;
	}
	kernels->text_match(text.search, column.images, column.width, column.data + static_cast<size_t>(s.row0) * column.width,
						s.rows, text_lanes(s, step), s.own_bits[step.dst]);
}

/* What is left of the other lanes is what lay there. */
void
CpuProgram::text_part(WorkerState &s, const Step &step) const
{
	const TextStep &text = texts[step.list];
	const BoundColumn &column = s.columns[text.column];

	s.errors |= kernels->text_part(text.part, column.images, column.width, column.data + static_cast<size_t>(s.row0) * column.width,
								   s.rows, text_lanes(s, step), reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot]));
}

/* Of the other lanes nothing is read, and what is left there is a key of some vector before, or 0. */
void
CpuProgram::text_key(WorkerState &s, const Step &step) const
{
	const int64_t *references = static_cast<const int64_t *>(values_of(s, step.a));
	RegState   &dst = s.regs[step.dst];
	uint64_t	lanes[CPU_WORDS];

	dst.nulls = s.regs[step.a].nulls;
	for (int w = 0; w < CPU_WORDS; w++)
		lanes[w] = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0);
	if (!text_keys->find(step.list, references, s.rows, kernels->select(lanes, s.rows), reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot])))
		s.errors |= ERR_INT_OVERFLOW;
}

/* Timestamps of one vector lie between two of the table's times mostly: their shift is looked for where one does not. */
void
CpuProgram::shift_zone(WorkerState &s, const Step &step) const
{
	const ZoneTable &table = zones[step.list];
	const int64_t *a = static_cast<const int64_t *>(values_of(s, step.a));
	int64_t    *to = reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot]);
	RegState   &dst = s.regs[step.dst];

	dst.nulls = s.regs[step.a].nulls;

	uint32_t	errors = kernels->zone_shift(a, table, to);

	if (!step.checked || errors == 0)
		return;
	errors = 0;
	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0); m != 0; m &= m - 1)
			sem::ZoneShift(a[64 * w + __builtin_ctzll(m)], table, &errors);
	s.errors |= errors;
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
