/*
 * cpu_group_parts.cc: more groups than the caches have room for.
 *
 * A worker's table does not grow beyond that. Rows whose group it does not have are put aside, as records: keys, what
 * the aggregates take, and which of these take it. Records lie in parts, by the first bits of their keys' hash, one behind
 * the other. In the end each part becomes groups of its own, from all workers' records and tables, by whoever takes it: no
 * two parts have a group in common, so nobody waits, and the part's table fits a cache.
 *
 * A worker that has many records, or finds no memory for more, makes groups of its own parts before: so they are at most
 * a few times as many as its groups.
 */

#include <algorithm>
#include <cstring>
#include <new>

#include "vm/cpu_job.h"
#include "vm/cpu_join.h"

namespace gpuvm {

CpuGroupLimits cpu_group_limits;

namespace {

/* Records become groups when there is at least so many times the memory that the groups took the last time. */
constexpr size_t UNITED_GROWTH = 4;

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
	if (s.record_memory.bytes() >= std::max(cpu_group_limits.united_from, UNITED_GROWTH * s.united_bytes))
	{
		unite_own(s);
		if (s.record_memory.has(blocks))
			return;
	}
	try
	{
		s.record_memory.reserve(blocks);
	}
	catch (const std::bad_alloc &)
	{
		unite_own(s);
		/* where less becomes free, all groups would be gone through for few records, again and again */
		if (!s.record_memory.has(std::max(blocks, s.record_memory.blocks() / UNITED_GROWTH)))
			throw;
	}
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

		record[lane] = records.rows.append(&open[s.hashes[lane] >> (64 - part_bits)], &s.record_memory);
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
	memset(s.hashes, 0, CPU_VECTOR_ROWS * sizeof(uint64_t));
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
		kernels->hash_step(values, s.hashes);
	}
	find_rows_of(s, from, n);
}

/* Whose keys are there, but for their nulls, which begin records and groups alike. */
void
CpuProgram::find_rows_of(WorkerState &s, const char *const *from, uint32_t n) const
{
	for (int w = 0; w < null_words; w++)
	{
		uint64_t   *nulls = s.key_null_words + w * CPU_VECTOR_ROWS;

		for (uint32_t i = 0; i < n; i++)
			nulls[i] = reinterpret_cast<const uint64_t *>(from[i])[w];
		kernels->hash_step(nulls, s.hashes);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		/* all of a part have the same first bits */
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

/* Groups of another table, at most a vector of them. */
void
CpuProgram::take_groups(WorkerState &s, char *const *from, uint32_t n) const
{
	memset(s.hashes, 0, CPU_VECTOR_ROWS * sizeof(uint64_t));
	for (size_t k = 0; k < keys.size(); k++)
	{
		for (uint32_t i = 0; i < n; i++)
			s.key_values[k][i] = reinterpret_cast<const uint64_t *>(from[i])[static_cast<size_t>(null_words) + k];
		kernels->hash_step(s.key_values[k], s.hashes);
	}
	find_rows_of(s, from, n);
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

	for (const PartGroups &of : part.groups)
		each_vector(group_rows, of.rows, groups);
	if (!from.open.empty())
		each_vector(records.rows, from.open[number], taken);
	for (const RowList &more : part.more)
		each_vector(records.rows, more, taken);
}

/* A worker's own parts, on the way: groups take the place of records. */
void
CpuProgram::unite_own(WorkerState &s) const
{
	s.united_bytes = 0;
	for (size_t p = 0; p < s.parts.size() && (s.stop == nullptr || !s.stop->stopped()); p++)
	{
		Part	   &part = s.parts[p];
		WorkerState one(*this);

		one.unlimited = true;
		one.hash_shift = part_bits;
		one.table_memory = &s.record_memory;
		take_part(one, s, p);
		s.errors |= one.errors;
		for (PartGroups &before : part.groups)
			group_rows.truncate(&before.rows, 0, &s.record_memory);
		part.groups.clear();
		records.rows.truncate(&s.open[p], 0, &s.record_memory);
		for (RowList &more : part.more)
			records.rows.truncate(&more, 0, &s.record_memory);
		part.more.clear();
		s.united_bytes += one.groups.blocks.size() * s.record_memory.block_bytes();
		part.groups.push_back(PartGroups{std::move(one.groups), one.ngroups, 0});
	}
}

/* The table's groups go into parts, and it begins anew: rows that come now have others. */
void
CpuProgram::retire_table(WorkerState &s) const
{
	uint64_t   *buckets = s.buckets.as<uint64_t>();
	const uint64_t nbuckets = uint64_t(1) << s.bucket_bits;
	std::vector<RowList> rows(size_t(1) << part_bits);
	uint64_t	left = 0;

	try
	{
		for (uint64_t i = 0; i < nbuckets; i++)
		{
			if (buckets[i] == 0)
				continue;
			if (left == 0)
			{
				left = CPU_VECTOR_ROWS;
				reserve_records(s, CPU_VECTOR_ROWS);
				s.record_memory.reserve(rows.size() + (left >> group_rows.block_bits));
			}
			left--;
			memcpy(group_rows.append(&rows[buckets[i] >> (64 - part_bits)], &s.record_memory),
				   group_rows.at(s.groups.blocks, (buckets[i] & low_bits(32)) - 1), static_cast<size_t>(group_rows.bytes));
		}
	}
	catch (const std::bad_alloc &)
	{
		/* it stays */
		for (RowList &list : rows)
			group_rows.truncate(&list, 0, &s.record_memory);
		return;
	}
	for (size_t p = 0; p < rows.size(); p++)
	{
		const uint64_t n = group_rows.rows_of(rows[p]);

		if (n > 0)
			s.parts[p].groups.push_back(PartGroups{std::move(rows[p]), n, 0});
	}
	memset(buckets, 0, nbuckets * sizeof(uint64_t));
	s.bucket_bits = std::min(s.bucket_bits, FIRST_BUCKET_BITS);
	group_rows.truncate(&s.groups, 0, &s.memory);
	s.ngroups = s.table_rows = s.table_hits = 0;
	s.full = false;
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
	each_vector(group_rows, from.groups, [&](char *const *rows, uint32_t n) { take_groups(to, rows, n); });
	to.unlimited = false;
	if (from.parts.empty())
		return;
	to.parts.resize(from.parts.size());
	for (size_t p = 0; p < from.parts.size(); p++)
	{
		Part	   &part = to.parts[p];

		if (!from.open.empty())
			part.more.push_back(std::move(from.open[p]));
		part.more.insert(part.more.end(), from.parts[p].more.begin(), from.parts[p].more.end());
		std::move(from.parts[p].groups.begin(), from.parts[p].groups.end(), std::back_inserter(part.groups));
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

uint32_t
CpuProgram::begin_merge(CpuState *const *states, uint32_t n) const
{
	WorkerState &to = worker(states[0]);
	uint64_t	groups = dense ? n * uint64_t{dense_slots} : 0;
	bool		parted = false;

	for (uint32_t i = 0; i < n; i++)
	{
		groups += worker(states[i]).ngroups;
		parted |= !worker(states[i]).parts.empty();
	}
	if (!parted && (n == 1 || groups < cpu_group_limits.parts_from))
	{
		for (uint32_t i = 1; i < n; i++)
			merge(states[0], states[i]);
		return 0;
	}
	for (uint32_t i = 1; i < n; i++)
		merge_rest(to, worker(states[i]));
	/* where all are in tables, parts may be as few as these need */
	to.merge_bits = parted ? part_bits : std::clamp(ceil_log2(groups / MERGED_GROUPS), LEAST_PART_BITS, part_bits);
	if (!dense)
		begin_results(to);
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

	WorkerState one(*this);

	one.unlimited = true;
	one.hash_shift = bits;
	one.memory.share(worker(states[0]).result_memory.get());
	for (uint32_t i = 0; i < n; i++)
	{
		const WorkerState &from = worker(states[i]);

		take_table(one, from, part, bits);
		if (!from.parts.empty())
			take_part(one, from, part);
	}
	if (can_fail_at_end())
		for (uint64_t g = 0; g < one.ngroups; g++)
			one.errors |= finish_row(group_rows.at(one.groups.blocks, g));
	one.memory.give_back_all();
	worker(states[0]).results[part] = PartGroups{std::move(one.groups), one.ngroups, one.errors};
}

void
CpuProgram::finish_hashed(WorkerState &s) const
{
	if (!s.parts.empty() && s.results.empty())
	{
		CpuState   *const state = &s;

		s.merge_bits = part_bits;
		begin_results(s);
		for (uint32_t part = 0; part < s.parts.size(); part++)
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
	s.record_memory = RowBlocks();
	s.groups = RowList();
	s.memory = RowBlocks();
	s.buckets = Pages();
}

}  // namespace gpuvm
