/*
 * cpu_groups.cc: from key values to a group's row; groups that are done.
 *
 * Dense: the keys' ranges are known and small, so a slot number is computed
 * from the values, and nothing is compared. Below 256 slots there are four rows
 * a slot, by lane number: additions to one address would wait for each other.
 *
 * Hashed: buckets of (tag, group number + 1), linear probing, at most half
 * full. A bucket's place is the tag's highest bits, so growing looks at no row.
 * Rows lie in blocks that never move, in order of first appearance: a new group
 * costs no cache miss. A vector's buckets, then its rows, are prefetched
 * together: only the number of accesses in flight matters.
 *
 * A table that has as many groups as the caches have room for gives them away
 * (cpu_group_parts.cc), and rows that come then go into another one, are put
 * aside, or have an index (cpu_group_slots.cc).
 */

#include <algorithm>
#include <cstring>
#include <new>

#include "vm/cpu_job.h"
#include "vm/spill.h"

namespace gpuvm {

namespace {

/* A table grows by large steps: each looks at all buckets. */
constexpr int BUCKET_STEP = 3;
/* A table that has so many is asked whether it is worth its memory before it grows further. */
constexpr int GROWS_FREELY = FIRST_BUCKET_BITS + BUCKET_STEP;

/* A table grows further where of so many rows one has its group there. */
constexpr uint64_t WORTH_GROWING = 32;
/* So many groups, as a table's rows tell their number, have an index that the caches have room for. */
constexpr uint64_t MOST_DIRECT = 1 << 18;

WorkerState &
worker(CpuState *state)
{
	return static_cast<WorkerState &>(*state);
}

}  // namespace

/* Of so many rows so many had met their group before: does that look like at most MOST_DIRECT groups, any of them as often? */
static bool
few_groups(const WorkerState &s)
{
	return (s.table_rows - s.ngroups) * 2 * MOST_DIRECT >= s.ngroups * s.ngroups;
}

/* Does the table take all rows? What is put aside has no weight. */
static bool
takes_all(const WorkerState &s)
{
	return s.unlimited || s.weights != nullptr;
}

void
CpuProgram::find_groups(WorkerState &s) const
{
	if (dense)
		find_dense(s);
	else
		find_hashed(s);
}

/* Into dense_index, of dead lanes as well: some slot. */
void
CpuProgram::slots_of_lanes(WorkerState &s) const
{
	uint32_t   *index = s.dense_index;

	memset(index, 0, CPU_VECTOR_ROWS * sizeof(uint32_t));
	for (const KeyInfo &key : keys)
	{
		const void *v = values_of(s, key.reg);
		const uint64_t *nulls = key.may_null ? s.regs[key.reg].nulls : nullptr;
		int			width = type_width(key.type);
		uint32_t   *part = index;

		if (key.type == Type::Bool)
		{
			kernels->bits_to_values(Type::I64, static_cast<const uint64_t *>(v), s.scratch[0]);
			v = s.scratch[0];
			width = 8;
		}
		if (nulls)
		{
			part = s.dense_part;
			memset(part, 0, CPU_VECTOR_ROWS * sizeof(uint32_t));
		}
		kernels->dense_step(width, v, key.lo, key.values - 1, key.stride, part);
		if (!nulls)
			continue;
		/* nulls come after the values */
		for (int w = 0; w < CPU_WORDS; w++)
			for (uint64_t m = nulls[w]; m != 0; m &= m - 1)
				part[64 * w + __builtin_ctzll(m)] = key.values * key.stride;
		for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
			index[i] += part[i];
	}
}

void
CpuProgram::find_dense(WorkerState &s) const
{
	slots_of_lanes(s);
	kernels->dense_rows(s.dense_index, s.table.as<char>(), replicas, static_cast<uint32_t>(row_bytes), s.group_row);
	if (kernels->count(s.live) == CPU_VECTOR_ROWS)
	{
		for (uint32_t first = 0; first < CPU_VECTOR_ROWS; first += PROBE_LANES)
		{
			for (uint32_t i = first; i < first + PROBE_LANES; i++)
				__builtin_prefetch(s.group_row[i], 1);
			for (uint32_t i = first; i < first + PROBE_LANES; i++)
				*reinterpret_cast<uint64_t *>(s.group_row[i]) = 1;
		}
		return;
	}
	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = s.live[w]; m != 0; m &= m - 1)
			*reinterpret_cast<uint64_t *>(s.group_row[64 * w + __builtin_ctzll(m)]) = 1;
}

void
CpuProgram::find_hashed(WorkerState &s) const
{
	uint64_t   *null_bits = s.key_null_words;

	memset(null_bits, 0, CPU_VECTOR_ROWS * sizeof(uint64_t) * null_words);
	for (size_t k = 0; k < keys.size(); k++)
	{
		const KeyInfo &key = keys[k];
		uint64_t   *values = s.key_values[k];
		const uint64_t *nulls = key.may_null ? s.regs[key.reg].nulls : nullptr;

		kernels->group_keys(key.type, values_of(s, key.reg), values);
		if (nulls)
			for (int w = 0; w < CPU_WORDS; w++)
				for (uint64_t m = nulls[w]; m != 0; m &= m - 1)
				{
					const int	i = 64 * w + __builtin_ctzll(m);

					values[i] = 0;
					null_bits[(k / 64) * CPU_VECTOR_ROWS + i] |= uint64_t(1) << (k % 64);
				}
		if (type_is_float(key.type))
		{
			const uint64_t minus_zero = key.type == Type::F32 ? 0x80000000u : uint64_t(1) << 63;

			for (int w = 0; w < CPU_WORDS; w++)
				for (uint64_t m = s.live[w] & ~(nulls ? nulls[w] : 0); m != 0; m &= m - 1)
				{
					const uint64_t v = values[64 * w + __builtin_ctzll(m)];

					s.key_zeroes[k] |= (v == 0 ? EXTREME_POS_ZERO : 0) | (v == minus_zero ? EXTREME_NEG_ZERO : 0);
				}
		}
	}
	hash_keys(s);
	find_rows(s, kernels->select(s.live, s.rows));
}

/* Of a vector's keys and their nulls; where these have slots only them (hash_slots). */
void
CpuProgram::hash_keys(WorkerState &s) const
{
	uint32_t   *index = s.dense_index;

	if (slot_bits == 0)
	{
		memset(s.hashes, 0, CPU_VECTOR_ROWS * sizeof(uint64_t));
		for (size_t k = 0; k < keys.size(); k++)
			kernels->hash_step(s.key_values[k], s.hashes);
		for (int n = 0; n < null_words; n++)
			kernels->hash_step(s.key_null_words + n * CPU_VECTOR_ROWS, s.hashes);
		return;
	}
	memset(index, 0, CPU_VECTOR_ROWS * sizeof(uint32_t));
	for (size_t k = 0; k < keys.size(); k++)
	{
		const KeyInfo &key = keys[k];
		const uint64_t *nulls = s.key_null_words + k / 64 * CPU_VECTOR_ROWS;
		uint32_t   *part = s.dense_part;

		if (!key.may_null)
		{
			kernels->dense_step(8, s.key_values[k], key.lo, key.values - 1, key.stride, index);
			continue;
		}
		memset(part, 0, CPU_VECTOR_ROWS * sizeof(uint32_t));
		kernels->dense_step(8, s.key_values[k], key.lo, key.values - 1, key.stride, part);
		for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
			index[i] += (nulls[i] >> (k % 64) & 1) != 0 ? key.values * key.stride : part[i];
	}
}

/* Slots that follow each other differ in the first bits. */
void
CpuProgram::hash_slots(WorkerState &s) const
{
	constexpr uint64_t GOLDEN = 0x9e3779b97f4a7c15;

	for (uint32_t i = 0; slot_bits > 0 && i < CPU_VECTOR_ROWS; i++)
		s.hashes[i] = s.dense_index[i] * GOLDEN << s.hash_shift;
}

/*
 * group_row[lane] for the first n lanes of s.rows, whose keys and hashes are there: its group's row, or a record of what is
 * put aside.
 */
void
CpuProgram::find_rows(WorkerState &s, uint32_t n) const
{
	if (s.naside > 0)
		memset(s.aside, 0, sizeof(s.aside));
	s.naside = 0;
	if (s.index != nullptr)
	{
		find_slots(s, n);
		return;
	}
	if (s.direct_rows > 0 && !takes_all(s) && find_direct(s, n))
		return;
	if ((s.blind_rows == 0 || takes_all(s)) && !make_room(s, n))
	{
		/* where each group has few rows, records are written faster than groups */
		const bool	together = s.table_rows >= WORTH_A_TABLE * s.ngroups;
		const bool	direct = slot_bits > 0 && !s.indexes_full && (together || few_groups(s));

		if (!retire_table(s) || !(together || direct))
			s.blind_rows = cpu_group_limits.blind_rows;
		else if (direct)
		{
			s.direct_rows = cpu_group_limits.blind_rows;
			s.direct_groups = 0;
			find_rows(s, n);
			return;
		}
		else
			(void) make_room(s, n);
	}
	if (s.blind_rows > 0 && !takes_all(s))
	{
		s.blind_rows -= std::min<uint64_t>(s.blind_rows, n);
		put_aside(s, s.rows, n);
		return;
	}
	s.table_rows += n;
	hash_slots(s);
	for (uint32_t j = 0; j < n; j += PROBE_LANES)
		probe(s, s.rows + j, std::min(PROBE_LANES, n - j));
}

bool
CpuProgram::same_key(const WorkerState &s, const char *row, uint32_t lane) const
{
	const uint64_t *stored = reinterpret_cast<const uint64_t *>(row);

	for (int n = 0; n < null_words; n++)
		if (*stored++ != s.key_null_words[n * CPU_VECTOR_ROWS + lane])
			return false;
	for (size_t k = 0; k < keys.size(); k++)
		if (*stored++ != s.key_values[k][lane])
			return false;
	return true;
}

/* Room in the table for n rows more, so that probe() need not look. False: it takes no more. */
bool
CpuProgram::make_room(WorkerState &s, uint32_t n) const
{
	while (s.bucket_bits == 0 || uint64_t(1) << s.bucket_bits < 2 * (s.ngroups + n))
	{
		/* if keys have slots, a table of more is no better than an index of them */
		const bool	grows = s.bucket_bits < GROWS_FREELY
			|| ((slot_bits == 0 || s.indexes_full) && s.table_rows - s.ngroups >= s.table_rows / WORTH_GROWING);

		if (!takes_all(s) && s.bucket_bits > 0 && (s.bucket_bits >= table_bits || !grows))
			return false;
		grow_table(s, s.bucket_bits == 0 ? std::min(FIRST_BUCKET_BITS, table_bits)
				   : s.bucket_bits + (s.unlimited || s.bucket_bits >= table_bits ? 1 : BUCKET_STEP));
	}
	s.table_memory->reserve((n >> group_rows.block_bits) + 1);
	return true;
}

void
CpuProgram::grow_table(WorkerState &s, int bits) const
{
	const size_t bytes = sizeof(uint64_t) << bits;

	if (bits > 32)
		throw std::bad_alloc();

	Pages		grown = Pages::zeroed(bytes);
	const uint64_t *from = s.buckets.as<uint64_t>();
	uint64_t   *to = grown.as<uint64_t>();
	const uint64_t mask = low_bits(bits);

	for (uint64_t i = 0; s.bucket_bits > 0 && i < uint64_t(1) << s.bucket_bits; i++)
	{
		uint64_t	at = from[i] >> (64 - bits);

		if (from[i] == 0)
			continue;
		while (to[at] != 0)
			at = (at + 1) & mask;
		to[at] = from[i];
	}
	s.buckets = std::move(grown);
	s.bucket_bits = bits;
}

/* A row with the lane's key. */
char *
CpuProgram::new_group(WorkerState &s, uint32_t lane, RowList *groups, RowBlocks *memory) const
{
	char	   *row = group_rows.append(groups, memory);
	uint64_t   *to = reinterpret_cast<uint64_t *>(row);

	for (int n = 0; n < null_words; n++)
		*to++ = s.key_null_words[n * CPU_VECTOR_ROWS + lane];
	for (size_t k = 0; k < keys.size(); k++)
		*to++ = s.key_values[k][lane];
	return row;
}

/* The row of the lane's key; made if there is none. */
char *
CpuProgram::insert_or_find(WorkerState &s, uint32_t lane) const
{
	const uint64_t tag = s.hashes[lane] & ~low_bits(32);
	const uint64_t mask = low_bits(s.bucket_bits);
	uint64_t   *buckets = s.buckets.as<uint64_t>();

	for (uint64_t at = tag >> (64 - s.bucket_bits);; at = (at + 1) & mask)
	{
		if (buckets[at] == 0)
		{
			char	   *row = new_group(s, lane, &s.groups, s.table_memory);

			buckets[at] = tag | ++s.ngroups;
			return row;
		}
		if ((buckets[at] & ~low_bits(32)) == tag)
		{
			char	   *row = group_rows.at(s.groups.blocks, (buckets[at] & low_bits(32)) - 1);

			if (same_key(s, row, lane))
				return row;
		}
	}
}

/*
 * group_row[lane] for the lanes. A first pass takes the first bucket with the
 * right tag on trust and starts to fetch its row; a second one compares keys.
 */
void
CpuProgram::probe(WorkerState &s, const uint16_t *lanes, uint32_t n) const
{
	const uint64_t mask = low_bits(s.bucket_bits);
	const int	shift = 64 - s.bucket_bits;
	const uint64_t *const buckets = s.buckets.as<uint64_t>(), *const hashes = s.hashes;
	const RowShape shape = group_rows;
	char	  **const group_row = s.group_row;

	for (uint32_t j = 0; j < n; j++)
		__builtin_prefetch(buckets + (hashes[lanes[j]] >> shift));
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = lanes[j];
		const uint64_t tag = hashes[lane] & ~low_bits(32);
		uint64_t	at = tag >> shift, bucket;

		while ((bucket = buckets[at]) != 0 && (bucket & ~low_bits(32)) != tag)
			at = (at + 1) & mask;
		if (bucket == 0)
		{
			group_row[lane] = nullptr;
			continue;
		}

		char	   *row = shape.at(s.groups.blocks, (bucket & low_bits(32)) - 1);

		group_row[lane] = row;
		/* a row may straddle two cache lines */
		__builtin_prefetch(row, 1);
		__builtin_prefetch(row + shape.bytes - 1, 1);
	}
	const uint64_t *const only_key = null_words == 0 && s.key_values.size() == 1 ? s.key_values[0] : nullptr;
	const auto	is_of = [&](const char *row, uint32_t lane) {
		return only_key != nullptr ? *reinterpret_cast<const uint64_t *>(row) == only_key[lane] : same_key(s, row, lane);
	};
	char	   *before = nullptr;

	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = lanes[j];
		char	   *row = group_row[lane];

		/* rows of a new group often follow each other */
		if (row == nullptr || !is_of(row, lane))
			group_row[lane] = row = before != nullptr && is_of(before, lane) ? before : insert_or_find(s, lane);
		before = row;
	}
}

/* -- the end --------------------------------------------------------------------------- */

uint32_t
CpuProgram::finish(CpuState *state) const
{
	WorkerState &s = worker(state);
	const uint8_t both = EXTREME_POS_ZERO | EXTREME_NEG_ZERO;

	if (s.finished)
		return s.errors;
	s.finished = true;

	/* Accumulators were sized for the rows announced. */
	if (s.rows_taken > total_rows)
		s.errors |= ERR_INT_OVERFLOW;
	for (size_t k = 0; k < keys.size(); k++)
		if (s.key_zeroes[k] == both)
			s.errors |= ERR_AMBIGUOUS_ZERO;
	if (keys.empty())
		s.errors |= finish_row(s.table.as<char>());
	else if (dense)
		for (uint32_t slot = 0; slot < dense_slots; slot++)
		{
			char	   *row = s.table.as<char>() + size_t(slot) * replicas * row_bytes;
			uint64_t	there = *reinterpret_cast<uint64_t *>(row);

			for (uint32_t r = 1; r < replicas; r++)
			{
				char	   *replica = row + size_t(r) * row_bytes;

				if (*reinterpret_cast<uint64_t *>(replica) == 0)
					continue;
				merge_row(row, replica);
				there = 1;
			}
			if (!there)
				continue;
			s.present.push_back(slot);
			s.errors |= finish_row(row);
		}
	else
		finish_hashed(s);
	return s.errors;
}

uint64_t
CpuProgram::ngroups(const CpuState *state) const
{
	const WorkerState &s = static_cast<const WorkerState &>(*state);

	return keys.empty() ? 1 : dense ? s.present.size() : s.result_ends.empty() ? s.ngroups : s.result_ends.back();
}

uint32_t
CpuProgram::emit_groups(const CpuState *state, uint64_t from, char *area, uint32_t capacity) const
{
	const WorkerState &s = static_cast<const WorkerState &>(*state);
	const uint64_t total = ngroups(state);
	const uint32_t n = from >= total ? 0 : static_cast<uint32_t>(std::min<uint64_t>(capacity, total - from));
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const int64_t *sources = nullptr;
	Pages		read;

	result_layout(result_types.data(), static_cast<int>(result_types.size()), capacity, layout);
	for (int i = 0; i < program->nops; i++)
		if (program->ops()[i].opcode == Opcode::AggOpen)
			sources = program->aux() + program->ops()[i].p3;
	for (size_t c = 0; c < result_types.size(); c++)
		memset(area + layout[c].nulls, 0, capacity / 8);

	for (uint32_t first = 0; first < n; first += CPU_VECTOR_ROWS)
	{
		const uint32_t count = std::min(n - first, CPU_VECTOR_ROWS);
		char	   *rows[CPU_VECTOR_ROWS];

		rows_of_groups(s, from + first, count, rows, &read);
		for (size_t c = 0; c < result_types.size(); c++)
		{
			const Type	type = result_types[c];
			char	   *values = area + layout[c].values;
			uint64_t   *nulls = reinterpret_cast<uint64_t *>(area + layout[c].nulls);

			if (sources[c] >= RESULT_FROM_AGG)
				emit_agg(aggs[result_agg(sources[c])], result_rest(sources[c]), rows, count, type, values, nulls, first);
			else
				emit_key(s, static_cast<size_t>(sources[c]), from + first, rows, count, type, values, nulls, first);
		}
	}
	return n;
}

/* The rows of groups [first, first + n), at most a vector; what is in the file comes into `read`. */
void
CpuProgram::rows_of_groups(const WorkerState &s, uint64_t first, uint32_t n, char **groups, Pages *read) const
{
	const size_t bytes = static_cast<size_t>(group_rows.bytes);

	if (keys.empty())
		groups[0] = s.table.as<char>();
	else if (dense)
		for (uint32_t i = 0; i < n; i++)
			groups[i] = s.table.as<char>() + size_t(s.present[first + i]) * replicas * row_bytes;
	else if (s.result_ends.empty())
		for (uint32_t i = 0; i < n; i++)
			groups[i] = group_rows.at(s.groups.blocks, first + i);
	else
	{
		size_t		part = static_cast<size_t>(std::upper_bound(s.result_ends.begin(), s.result_ends.end(), first) - s.result_ends.begin());

		for (uint32_t i = 0; i < n; i++)
		{
			while (first + i >= s.result_ends[part])
				part++;

			const PartGroups &result = s.results[part];
			const uint64_t number = first + i - (part == 0 ? 0 : s.result_ends[part - 1]), nfirst = result.numbers.size();

			if (number >= nfirst && result.spilled.rows > 0)
			{
				const uint64_t nread = std::min<uint64_t>(n - i, result.spilled.rows - (number - nfirst));

				if (read->bytes() == 0)
					*read = Pages::of_heap(CPU_VECTOR_ROWS * bytes);
				s.spill->read(result.spilled.at + (number - nfirst) * bytes, read->as<char>() + i * bytes, nread * bytes);
				for (uint64_t k = 0; k < nread; k++)
					groups[i + k] = read->as<char>() + (i + k) * bytes;
				i += static_cast<uint32_t>(nread) - 1;
				continue;
			}
			groups[i] = number < nfirst ? group_rows.at(result.of->blocks, result.numbers[number]) : group_rows.at(result.rows.blocks, number - nfirst);
		}
	}
}

/* Key k of groups [first, first + n), as rows from `at` on of a result column. */
void
CpuProgram::emit_key(const WorkerState &s, size_t k, uint64_t first, char *const *rows, uint32_t n, Type type,
					 char *values, uint64_t *nulls, uint32_t at) const
{
	const KeyInfo &key = keys[k];
	const size_t width = static_cast<size_t>(type_width(type));

	for (uint32_t i = 0; i < n; i++)
	{
		int64_t		v;
		bool		null;

		if (dense)
		{
			const uint32_t code = s.present[first + i] / key.stride % (key.values + (key.may_null ? 1 : 0));

			null = code == key.values;
			v = null ? 0 : static_cast<int64_t>(static_cast<uint64_t>(key.lo) + code);
		}
		else
		{
			null = null_words > 0 && bit_get(reinterpret_cast<const uint64_t *>(rows[i]), k);
			memcpy(&v, rows[i] + key.offset, sizeof(v));
		}
		memcpy(values + (at + i) * width, &v, width);
		if (null)
			bit_set(nulls, at + i);
	}
}

}  // namespace gpuvm
