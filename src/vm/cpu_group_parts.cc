/*
 * cpu_group_parts.cc: more groups than the caches have room for.
 *
 * A worker's table does not grow beyond that: when it is full its groups go into parts. Rows may be put aside, as records:
 * keys, what the aggregates take, and which of these take it. Parts are chosen by the first bits of the keys' hash, or slot,
 * and records lie one behind the other. In the end each part becomes groups of its own, from all workers' records and
 * groups, by whoever takes it: no two parts have a group in common, so nobody waits, and the part's table fits a cache.
 *
 * A worker that has many records, or finds no memory for more, makes groups of its own parts before: so they are at most
 * a few times as many as its groups.
 */

#include <algorithm>
#include <cstring>
#include <new>

#include "vm/cpu_job.h"
#include "vm/cpu_join.h"
#include "vm/spill.h"

namespace gpuvm {

CpuGroupLimits cpu_group_limits;

namespace {

/* Records become groups when there is at least so many times the memory that the groups took the last time. */
constexpr size_t UNITED_GROWTH = 4;

/* Of a table of groups, a group: it is at least a quarter full. */
constexpr uint64_t BUCKET_BYTES = 4 * sizeof(uint64_t);

/* Of tables, as many a part. */
constexpr uint64_t MERGED_GROUPS = 8192;

WorkerState &
worker(CpuState *state)
{
	return static_cast<WorkerState &>(*state);
}

template <typename F>
void
each_lane(const uint64_t *mask, F f)
{
	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = mask[w]; m != 0; m &= m - 1)
			f(64u * w + static_cast<uint32_t>(__builtin_ctzll(m)));
}

}  // namespace

/* -- records ------------------------------------------------------------------------------- */

/* Room for n records in any parts; a worker's own become groups first where they are many or there is no memory. */
void
CpuProgram::reserve_records(WorkerState &s, uint32_t n) const
{
	const size_t nparts = size_t(1) << part_bits;
	/* some are left for who makes groups of records where there is no memory */
	const size_t spare = std::max<size_t>(nparts, (CPU_VECTOR_ROWS >> group_rows.block_bits) + 1);
	const size_t blocks = nparts + (n >> records.rows.block_bits) + spare;

	s.parts.resize(nparts);
	s.open.resize(nparts);
	if (s.record_memory.has(blocks))
		return;

	const size_t bytes = s.record_memory.bytes();

	if (bytes >= std::max(cpu_group_limits.united_from, UNITED_GROWTH * s.united_bytes) && unite_own(s, false) &&
		s.record_memory.has(blocks))
		return;
	/* a worker that grows doubles what it has */
	if (s.spill != nullptr && bytes >= cpu_group_limits.spilled_from && s.spill->wanted(bytes) && make_records_fit(s, blocks))
		return;
	try
	{
		s.record_memory.reserve(blocks);
	}
	catch (const std::bad_alloc &)
	{
		if (!make_records_fit(s, blocks))
			throw;
	}
}

/* Without new memory: as groups, or in the file. */
bool
CpuProgram::make_records_fit(WorkerState &s, size_t blocks) const
{
	/* where less becomes free, all groups would be gone through for few records, again and again */
	const size_t least = std::max(blocks, s.record_memory.blocks() / UNITED_GROWTH);

	if (unite_own(s, s.spill != nullptr) && s.record_memory.has(least))
		return true;
	if (s.spill == nullptr || s.record_memory.blocks() < blocks)
		return false;
	spill_parts(s);
	return s.record_memory.has(blocks);
}

/* The first n of s.rows are put aside: AggStep finds their records as it finds groups. */
void
CpuProgram::put_aside(WorkerState &s, const uint16_t *lanes, uint32_t n) const
{
	char	  **const record = s.group_row;

	if (n == 0)
		return;
	reserve_records(s, n);

	RowList    *const open = s.open.data();

	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = lanes[j];

		record[lane] = records.rows.append(&open[part_of(s, lane)], &s.record_memory);
		bit_set(s.aside, lane);
	}
	for (int w = 0; w < null_words + records.present_words; w++)
	{
		const uint64_t *nulls = w < null_words ? s.key_null_words + w * CPU_VECTOR_ROWS : nullptr;

		for (uint32_t j = 0; j < n; j++)
			reinterpret_cast<uint64_t *>(record[lanes[j]])[w] = nulls ? nulls[lanes[j]] : 0;
	}
	for (size_t k = 0; k < keys.size(); k++)
	{
		const uint64_t *values = s.key_values[k];
		const int	at = records.key_at[k];

		if (records.key_width[k] == 8)
			for (uint32_t j = 0; j < n; j++)
				memcpy(record[lanes[j]] + at, values + lanes[j], 8);
		else
			for (uint32_t j = 0; j < n; j++)
				memcpy(record[lanes[j]] + at, values + lanes[j], 4);
	}
	s.naside += n;
}

/* AggStep, of lanes that have been put aside: what it takes, of all of them, */
void
CpuProgram::note_values(WorkerState &s, const AggInfo &agg) const
{
	char	   *const *const record = s.group_row;

	for (const auto &[reg, at] : {std::pair{agg.arg, agg.record_at}, std::pair{agg.low, agg.record_low_at}})
	{
		if (at < 0 || !agg.notes)
			continue;

		const void *v = values_of(s, reg);
		const int	to = at;

		if (regs[reg].type == Type::Bool)
			each_lane(s.aside, [=](uint32_t i) { record[i][to] = bit_get(static_cast<const uint64_t *>(v), i) ? 1 : 0; });
		else if (type_width(regs[reg].type) == 8)
			each_lane(s.aside, [=](uint32_t i) { memcpy(record[i] + to, static_cast<const uint64_t *>(v) + i, 8); });
		else
			each_lane(s.aside, [=](uint32_t i) { memcpy(record[i] + to, static_cast<const uint32_t *>(v) + i, 4); });
	}
}

/* and which of them count. */
void
CpuProgram::note_present(WorkerState &s, const AggInfo &agg, const uint64_t *mask) const
{
	char	   *const *const record = s.group_row;

	if (agg.present < 0)
		return;

	const size_t word = static_cast<size_t>(null_words) + static_cast<size_t>(agg.present) / 64;
	const uint64_t bit = uint64_t(1) << agg.present % 64;

	each_lane(mask, [=](uint32_t i) { reinterpret_cast<uint64_t *>(record[i])[word] |= bit; });
}

/* -- groups of a part ---------------------------------------------------------------------- */

/* Groups of records. */
void
CpuProgram::find_records(WorkerState &s, const char *const *from, uint32_t n) const
{
	for (size_t k = 0; k < keys.size(); k++)
	{
		const int	at = records.key_at[k];
		uint64_t   *values = s.key_values[k];

		if (records.key_width[k] == 8)
			for (uint32_t i = 0; i < n; i++)
				memcpy(&values[i], from[i] + at, 8);
		else if (records.key_width[k] == 4)
			for (uint32_t i = 0; i < n; i++)
				values[i] = static_cast<uint64_t>(int64_t{*reinterpret_cast<const int32_t *>(from[i] + at)});
		else
			for (uint32_t i = 0; i < n; i++)
				values[i] = *reinterpret_cast<const uint32_t *>(from[i] + at);
	}
	load_nulls(s, from, n);
	find_rows_of(s, n);
}

/* Keys' nulls begin records and groups alike. */
void
CpuProgram::load_nulls(WorkerState &s, const char *const *from, uint32_t n) const
{
	for (int w = 0; w < null_words; w++)
	{
		uint64_t   *nulls = s.key_null_words + w * CPU_VECTOR_ROWS;

		for (uint32_t i = 0; i < n; i++)
			nulls[i] = reinterpret_cast<const uint64_t *>(from[i])[w];
	}
	hash_keys(s);
}

/* Whose keys are there. */
void
CpuProgram::find_rows_of(WorkerState &s, uint32_t n) const
{
	for (uint32_t i = 0; i < n; i++)
	{
		/* all of a part have the same first bits */
		if (slot_bits == 0)
			s.hashes[i] <<= s.hash_shift;
		s.rows[i] = static_cast<uint16_t>(i);
	}
	find_rows(s, n);
}

/* A register, as the records have it. */
void
CpuProgram::values_of_records(WorkerState &s, int reg, int at, const char *const *from, uint32_t n) const
{
	RegState   &state = s.regs[reg];

	state.ready = true;
	state.nulls = nullptr;
	if (regs[reg].type == Type::Bool)
	{
		uint64_t   *bits = s.own_bits[reg];

		memset(bits, 0, MASK_BYTES);
		for (uint32_t i = 0; i < n; i++)
			if (from[i][at] != 0)
				bit_set(bits, i);
		state.values = bits;
		return;
	}

	const bool	wide = type_width(regs[reg].type) == 8;
	char	   *to = s.noted[reg].get();

	if (to == nullptr)
	{
		s.noted[reg].reset(static_cast<char *>(calloc(CPU_VECTOR_ROWS, 8)));
		if ((to = s.noted[reg].get()) == nullptr)
			throw std::bad_alloc();
	}
	if (wide)
		for (uint32_t i = 0; i < n; i++)
			memcpy(to + i * 8, from[i] + at, 8);
	else
		for (uint32_t i = 0; i < n; i++)
			memcpy(to + i * 4, from[i] + at, 4);
	state.values = to;
}

void
CpuProgram::take_records(WorkerState &s, const char *const *from, uint32_t n) const
{
	uint64_t	mask[CPU_WORDS];

	find_records(s, from, n);
	for (int number : records.order)
	{
		const AggInfo &agg = aggs[number];

		if (agg.record_at >= 0 && agg.notes)
			values_of_records(s, agg.arg, agg.record_at, from, n);
		if (agg.record_low_at >= 0 && agg.notes)
			values_of_records(s, agg.low, agg.record_low_at, from, n);
		memset(mask, 0, sizeof(mask));
		if (agg.present < 0)
			for (uint32_t w = 0; 64 * w < n; w++)
				mask[w] = low_bits(std::min(n - 64 * w, 64u));
		else
		{
			const size_t word = static_cast<size_t>(null_words) + static_cast<size_t>(agg.present) / 64;

			for (uint32_t i = 0; i < n; i++)
				mask[i / 64] |= (reinterpret_cast<const uint64_t *>(from[i])[word] >> agg.present % 64 & 1) << i % 64;
		}
		step_lanes(s, agg, mask);
	}
}

/* Of groups. */
void
CpuProgram::load_keys(WorkerState &s, const char *const *from, uint32_t n) const
{
	for (size_t k = 0; k < keys.size(); k++)
		for (uint32_t i = 0; i < n; i++)
			s.key_values[k][i] = reinterpret_cast<const uint64_t *>(from[i])[static_cast<size_t>(null_words) + k];
	load_nulls(s, from, n);
}

/* Groups of another table, at most a vector of them. */
void
CpuProgram::take_groups(WorkerState &s, char *const *from, uint32_t n) const
{
	load_keys(s, from, n);
	find_rows_of(s, n);
	for (uint32_t i = 0; i < n; i++)
		merge_row(s.group_row[i], from[i]);
}

/* All rows of a list, a vector at a time. */
template <typename F> static void
each_vector(const RowShape &shape, const RowList &list, F take)
{
	char	   *rows[CPU_VECTOR_ROWS];
	const uint64_t nrows = shape.rows_of(list);

	for (uint64_t first = 0; first < nrows; first += CPU_VECTOR_ROWS)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(CPU_VECTOR_ROWS, nrows - first));

		for (uint32_t i = 0; i < n; i++)
			rows[i] = shape.at(list.blocks, first + i);
		take(rows, n);
	}
}

/*
 * The groups of a worker's table whose tags begin with the part's bits. Their buckets begin at the part's share of the
 * table, may be preceded there by others, and end before the first free bucket behind the share.
 */
void
CpuProgram::take_table(WorkerState &s, const WorkerState &from, uint32_t part, int bits) const
{
	char	   *rows[CPU_VECTOR_ROWS];
	uint32_t	n = 0;

	if (from.ngroups == 0)
		return;

	const uint64_t *buckets = from.buckets.as<uint64_t>();
	const uint64_t share = uint64_t(1) << (from.bucket_bits - bits), mask = low_bits(from.bucket_bits);

	for (uint64_t b = part * share; b < (part + 1) * share || buckets[b & mask] != 0; b++)
	{
		if (buckets[b & mask] == 0 || buckets[b & mask] >> (64 - bits) != part)
			continue;
		rows[n++] = group_rows.at(from.groups.blocks, (buckets[b & mask] & low_bits(32)) - 1);
		if (n == CPU_VECTOR_ROWS)
		{
			take_groups(s, rows, n);
			n = 0;
		}
	}
	take_groups(s, rows, n);
}

void
CpuProgram::take_part(WorkerState &s, const WorkerState &from, size_t number) const
{
	const Part &part = from.parts[number];
	const auto	groups = [&](char *const *rows, uint32_t n) { take_groups(s, rows, n); };
	const auto	taken = [&](char *const *rows, uint32_t n) { take_records(s, rows, n); };

	each_vector(group_rows, part.groups, groups);
	for (const RowList &more : part.more_groups)
		each_vector(group_rows, more, groups);
	if (!from.open.empty())
		each_vector(records.rows, from.open[number], taken);
	for (const RowList &more : part.more_records)
		each_vector(records.rows, more, taken);
}

uint64_t
CpuProgram::part_rows(const WorkerState &from, size_t number) const
{
	const Part &part = from.parts[number];
	uint64_t	rows = group_rows.rows_of(part.groups) + (from.open.empty() ? 0 : records.rows.rows_of(from.open[number]));

	for (const RowList &more : part.more_groups)
		rows += group_rows.rows_of(more);
	for (const RowList &more : part.more_records)
		rows += records.rows.rows_of(more);
	for (const std::vector<SpilledRows> *all : {&part.spilled_groups, &part.spilled_records})
		for (const SpilledRows &list : *all)
			rows += list.rows;
	return rows;
}

/*
 * A worker's own parts, on the way: groups take the place of records. False: there is no memory for those of a part, or they took
 * more than half of what they were before and are to `shrink`: other parts stay as they are.
 */
bool
CpuProgram::unite_own(WorkerState &s, bool shrink) const
{
	WorkerState one(*this);
	uint64_t	before = 0;

	s.united_bytes = 0;
	one.table_memory = &s.record_memory;
	for (size_t p = 0; p < s.parts.size() && (s.stop == nullptr || !s.stop->stopped()); p++)
	{
		Part	   &part = s.parts[p];

		one.begin_table(part_bits);
		if (slot_bits > 0)
			index_slots(one, part_rows(s, p));
		try
		{
			take_part(one, s, p);
		}
		catch (const std::bad_alloc &)
		{
			group_rows.truncate(&one.groups, 0, &s.record_memory);
			return false;
		}
		s.errors |= one.errors;
		before += (part_rows(s, p) - group_rows.rows_of(part.groups)) * static_cast<uint64_t>(records.rows.bytes) +
			group_rows.rows_of(part.groups) * static_cast<uint64_t>(group_rows.bytes);
		group_rows.truncate(&part.groups, 0, &s.record_memory);
		for (RowList &more : part.more_groups)
			group_rows.truncate(&more, 0, &s.record_memory);
		records.rows.truncate(&s.open[p], 0, &s.record_memory);
		for (RowList &more : part.more_records)
			records.rows.truncate(&more, 0, &s.record_memory);
		part.more_groups.clear();
		part.more_records.clear();
		s.united_bytes += one.groups.blocks.size() * s.record_memory.block_bytes();
		part.groups = std::move(one.groups);
		if (shrink && 2 * s.united_bytes > before)
			return false;
	}
	return true;
}

/* The table's groups go into parts, and it begins anew: rows that come now have others. False: there is no memory, it stays. */
bool
CpuProgram::retire_table(WorkerState &s) const
{
	uint64_t   *buckets = s.buckets.as<uint64_t>();
	const uint64_t nbuckets = s.bucket_bits > 0 ? uint64_t(1) << s.bucket_bits : 0;
	const auto	give = [&](size_t part, const char *row) {
		memcpy(group_rows.append(&s.parts[part].groups, &s.record_memory), row, static_cast<size_t>(group_rows.bytes));
	};

	const size_t blocks = (size_t(1) << part_bits) + (s.ngroups >> group_rows.block_bits);

	s.parts.resize(size_t(1) << part_bits);
	s.open.resize(size_t(1) << part_bits);
	try
	{
		s.record_memory.reserve(blocks);
	}
	catch (const std::bad_alloc &)
	{
		if (!make_records_fit(s, blocks))
			return false;
	}
	if (slot_bits > 0)
		for (uint64_t g = 0; g < s.ngroups; g++)
		{
			const char *row = group_rows.at(s.groups.blocks, g);

			give(slot_of_row(row) >> (slot_bits - part_bits), row);
		}
	else
		for (uint64_t i = 0; i < nbuckets; i++)
			if (buckets[i] != 0)
				give(buckets[i] >> (64 - part_bits), group_rows.at(s.groups.blocks, (buckets[i] & low_bits(32)) - 1));
	memset(buckets, 0, nbuckets * sizeof(uint64_t));
	s.bucket_bits = std::min(s.bucket_bits, FIRST_BUCKET_BITS);
	group_rows.truncate(&s.groups, 0, &s.memory);
	s.ngroups = s.table_rows = 0;
	return true;
}

/* Before parts are merged: a table whose hashes do not tell parts has nothing any more. */
void
CpuProgram::retire_last(WorkerState &s) const
{
	if (slot_bits > 0 && s.ngroups > 0 && !retire_table(s))
		throw std::bad_alloc();
}

bool
CpuProgram::has_parts(const WorkerState &s) const
{
	return !s.parts.empty() || s.ndirect > 0;
}

/* -- merging ------------------------------------------------------------------------------- */

/* What is no group. */
void
CpuProgram::merge_rest(WorkerState &to, const WorkerState &from) const
{
	to.errors |= from.errors;
	to.rows_taken += from.rows_taken;
	for (size_t k = 0; k < keys.size(); k++)
		to.key_zeroes[k] |= from.key_zeroes[k];
}

void
CpuProgram::merge_hashed(WorkerState &to, WorkerState &from) const
{
	to.unlimited = true;
	for (const RowList *groups : {&from.groups, &from.direct})
		each_vector(group_rows, *groups, [&](char *const *rows, uint32_t n) { take_groups(to, rows, n); });
	to.unlimited = false;
	if (from.parts.empty())
		return;
	to.parts.resize(from.parts.size());
	for (size_t p = 0; p < from.parts.size(); p++)
	{
		Part	   &part = to.parts[p], &other = from.parts[p];

		part.more_groups.push_back(std::move(other.groups));
		std::move(other.more_groups.begin(), other.more_groups.end(), std::back_inserter(part.more_groups));
		if (!from.open.empty())
			part.more_records.push_back(std::move(from.open[p]));
		std::move(other.more_records.begin(), other.more_records.end(), std::back_inserter(part.more_records));
		part.spilled_groups.insert(part.spilled_groups.end(), other.spilled_groups.begin(), other.spilled_groups.end());
		part.spilled_records.insert(part.spilled_records.end(), other.spilled_records.begin(), other.spilled_records.end());
	}
	to.record_memory.adopt(&from.record_memory);
}

void
CpuProgram::merge(CpuState *into, CpuState *from) const
{
	WorkerState &to = worker(into);
	WorkerState &other = worker(from);

	merge_rest(to, other);
	if (keys.empty())
		merge_row(to.table.as<char>(), other.table.as<char>());
	else if (!dense)
		merge_hashed(to, other);
	else
		merge_dense(to, other, 0, size_t(dense_slots) * replicas);
}

void
CpuProgram::merge_dense(WorkerState &to, const WorkerState &from, size_t first, size_t end) const
{
	for (size_t i = first; i < end; i++)
	{
		char	   *a = to.table.as<char>() + i * row_bytes, *b = from.table.as<char>() + i * row_bytes;

		if (*reinterpret_cast<uint64_t *>(b) == 0)
			continue;
		*reinterpret_cast<uint64_t *>(a) = 1;
		merge_row(a, b);
	}
}

void
CpuProgram::take_numbered(WorkerState &s, const RowList &groups, const std::vector<uint32_t> &numbers) const
{
	char	   *rows[CPU_VECTOR_ROWS];

	for (size_t first = 0; first < numbers.size(); first += CPU_VECTOR_ROWS)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<size_t>(CPU_VECTOR_ROWS, numbers.size() - first));

		for (uint32_t i = 0; i < n; i++)
			rows[i] = group_rows.at(groups.blocks, numbers[first + i]);
		take_groups(s, rows, n);
	}
}

/* Where memory is short for merging, workers give theirs back. */
void
CpuProgram::make_merge_fit(CpuState *const *states, uint32_t n) const
{
	Spill	   *const spill = worker(states[0]).spill;
	uint64_t	most = 0;

	for (size_t p = 0; spill != nullptr && p < size_t(1) << part_bits; p++)
	{
		uint64_t	rows = 0;

		for (uint32_t i = 0; i < n; i++)
			rows += worker(states[i]).parts.empty() ? 0 : part_rows(worker(states[i]), p);
		most = std::max(most, rows);
	}
	if (most == 0 || !spill->wanted(most * (static_cast<uint64_t>(group_rows.bytes) + BUCKET_BYTES)))
		return;
	for (uint32_t i = 0; i < n; i++)
	{
		WorkerState &s = worker(states[i]);

		if (s.ngroups > 0 && retire_table(s))
		{
			s.buckets = Pages();
			s.bucket_bits = 0;
			s.groups = RowList();
			s.memory = RowBlocks(group_rows.block_bytes());
		}
		s.open.resize(s.parts.size());
		spill_parts(s);
		for (size_t p = 0; p < s.parts.size(); p++)
			s.parts[p].groups = s.open[p] = RowList();
		s.record_memory = RowBlocks(s.record_memory.block_bytes());
	}
}

uint32_t
CpuProgram::begin_merge(CpuState *const *states, uint32_t n) const
{
	WorkerState &to = worker(states[0]);
	uint64_t	groups = dense ? n * uint64_t{dense_slots} : 0;
	bool		parted = false;

	for (uint32_t i = 0; i < n; i++)
	{
		groups += worker(states[i]).ngroups;
		parted |= has_parts(worker(states[i]));
	}
	if (!parted && (n == 1 || groups < cpu_group_limits.parts_from))
	{
		for (uint32_t i = 1; i < n; i++)
			merge(states[0], states[i]);
		return 0;
	}
	for (uint32_t i = 1; i < n; i++)
		merge_rest(to, worker(states[i]));
	if (parted)
	{
		for (uint32_t i = 0; i < n; i++)
			retire_last(worker(states[i]));
		make_merge_fit(states, n);
	}
	/* where all are in tables, parts may be as few as these need */
	to.merge_bits = parted ? part_bits : std::clamp(ceil_log2(groups / MERGED_GROUPS), LEAST_PART_BITS, part_bits);
	if (!dense)
	{
		begin_results(to);
		for (uint32_t i = 0; i < n; i++)
			keep_direct(to, worker(states[i]));
	}
	return 1u << to.merge_bits;
}

void
CpuProgram::begin_results(WorkerState &s) const
{
	s.results.resize(size_t(1) << s.merge_bits);
	s.result_memory = std::make_unique<SharedBlocks>(group_rows.block_bytes());
}

void
CpuProgram::merge_part(CpuState *const *states, uint32_t n, uint32_t part) const
{
	const int	bits = worker(states[0]).merge_bits;

	if (dense)
	{
		const size_t rows = size_t(dense_slots) * replicas;

		for (uint32_t i = 1; i < n; i++)
			merge_dense(worker(states[0]), worker(states[i]), rows * part >> bits, rows * (part + 1) >> bits);
		return;
	}

	WorkerState &to = worker(states[0]);
	std::unique_ptr<WorkerState> merger;
	const uint64_t nslots = slot_bits > 0 ? uint64_t(1) << (slot_bits - part_bits) : 0;
	PartGroups &done = to.results[part];
	uint32_t	most = 0;
	uint64_t	nmost = 0, rows = 0;

	{
		std::lock_guard<std::mutex> lock(to.result_memory->mutex);

		if (!to.mergers.empty())
		{
			merger = std::move(to.mergers.back());
			to.mergers.pop_back();
		}
	}
	if (merger == nullptr)
	{
		merger = std::make_unique<WorkerState>(*this);
		merger->memory.share(to.result_memory.get());
		merger->spill = to.spill;
	}

	WorkerState &one = *merger;

	one.begin_table(bits);
	for (uint32_t i = 0; i < n; i++)
	{
		const WorkerState &from = worker(states[i]);
		const uint32_t *index = index_of_part(from, part);
		const uint64_t found = index == nullptr ? 0 : nslots - static_cast<uint64_t>(std::count(index, index + nslots, 0u));

		rows += from.parts.empty() ? 0 : part_rows(from, part);
		/* one has many parts rather than each some: memory of the others is free then */
		if (found > 2 * nmost)
		{
			nmost = found;
			most = i;
		}
	}
	if (nmost > 0)
	{
		/* the others' groups go there */
		one.index = index_of_part(worker(states[most]), part);
		one.first_groups = done.of = &to.directs[most];
		one.nfirst = worker(states[most]).ndirect;
		done.numbers = numbers_of_groups(one.index, nslots);
	}
	else if (slot_bits > 0 && rows > 0)
		index_slots(one, rows);
	for (uint32_t i = 0; i < n; i++)
	{
		const WorkerState &from = worker(states[i]);
		const uint32_t *index = index_of_part(from, part);

		if (index != nullptr && (nmost == 0 || i != most))
			take_numbered(one, to.directs[i], numbers_of_groups(index, nslots));
		take_table(one, from, part, bits);
		if (!from.parts.empty())
		{
			take_part(one, from, part);
			take_spilled(one, from.parts[part]);
		}
	}
	if (can_fail_at_end())
	{
		for (uint32_t g : done.numbers)
			one.errors |= finish_row(group_rows.at(done.of->blocks, g));
		for (uint64_t g = 0; g < one.ngroups; g++)
			one.errors |= finish_row(group_rows.at(one.groups.blocks, g));
	}
	done.ngroups = done.numbers.size() + one.ngroups;
	done.errors = one.errors;
	if (to.spill != nullptr && one.ngroups > 0 && to.spill->wanted(one.groups.blocks.size() * group_rows.block_bytes()))
	{
		done.spilled = spill_rows(to.spill, group_rows, one.groups);
		group_rows.truncate(&one.groups, 0, &one.memory);
	}
	else
		done.rows = std::move(one.groups);

	std::lock_guard<std::mutex> lock(to.result_memory->mutex);

	to.mergers.push_back(std::move(merger));
}

void
CpuProgram::finish_hashed(WorkerState &s) const
{
	if (has_parts(s) && s.results.empty())
	{
		CpuState   *const state = &s;

		retire_last(s);
		s.merge_bits = part_bits;
		begin_results(s);
		keep_direct(s, s);
		for (uint32_t part = 0; part < 1u << part_bits; part++)
			merge_part(&state, 1, part);
	}
	if (s.results.empty())
	{
		if (can_fail_at_end())
			for (uint64_t g = 0; g < s.ngroups; g++)
				s.errors |= finish_row(group_rows.at(s.groups.blocks, g));
		return;
	}
	for (const PartGroups &groups : s.results)
	{
		s.errors |= groups.errors;
		s.result_ends.push_back(groups.ngroups + (s.result_ends.empty() ? 0 : s.result_ends.back()));
	}
	/* all is in the parts' groups */
	s.parts.clear();
	s.open.clear();
	s.indexes.clear();
	s.index_memory.clear();
	free_directs(s);
	s.mergers.clear();
	s.record_memory = RowBlocks();
	s.groups = RowList();
	s.memory = RowBlocks();
	s.buckets = Pages();
}

}  // namespace gpuvm
