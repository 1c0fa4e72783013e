/*
 * cpu_bind.cc: a worker's memory, and a tablet's columns and tests as the steps read them (see cpu_job.h).
 */
#include <algorithm>
#include <cstring>

#include "vm/cpu_job.h"

namespace gpuvm {

static constexpr size_t VECTOR_BYTES = CPU_VECTOR_ROWS * 8;

/* -- a worker's memory --------------------------------------------------------------- */

WorkerState::WorkerState(const CpuProgram &p)
	: memory(p.group_rows.block_bytes()), direct_memory(p.group_rows.block_bytes()),
	  record_memory(std::max(p.group_rows.block_bytes(), p.records.rows.block_bytes()))
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
	noted.resize(nkeys > 0 ? nregs : 0);
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
		table = Pages::zeroed(table_rows * static_cast<size_t>(p.row_bytes));
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

}  // namespace gpuvm
