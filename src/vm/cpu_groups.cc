/*
 * cpu_groups.cc: from key values to a group's row; merging, ending and emitting
 * of groups.
 *
 * Dense: the keys' ranges are known and small, so a slot number is computed
 * from the values, and nothing is compared. Below 256 slots there are four rows
 * a slot, by lane number: additions to one address would wait for each other.
 *
 * Indexed: as many slots as the table has rows, or somewhat more. Four bytes a
 * slot hold the number of its group's row, so memory follows the groups that
 * there are, and still no key is hashed or compared.
 *
 * Hashed: buckets of (tag, group number + 1), linear probing, at most half
 * full. A bucket's place is the tag's highest bits, so growing looks at no row.
 *
 * Indexed and hashed rows lie in chunks that never move, in order of first
 * appearance: a new group costs no cache miss. A vector's slots or buckets, then
 * its rows, are prefetched together: with millions of groups every one of these
 * accesses misses the caches, and only their number in flight matters; huge
 * pages spare them a miss of the TLB each.
 *
 * Many groups of several states are merged by parts: ranges of slots, or of the
 * tag's highest bits, so that in every table a part is a range of memory. Rows
 * stay where they are: what a state has in common with an earlier one is added
 * there and marked as gone; nothing is copied, and what only one state has is
 * not even looked at. Parts have nothing in common, so any thread may take any:
 * it writes rows and marks of its part alone.
 */

#include <algorithm>
#include <cstring>
#include <new>

#include "vm/cpu_job.h"

namespace gpuvm {

namespace {

/* A table grows by large steps: each looks at all buckets and takes fresh pages. The first are small, then comes a huge page; memory counts in large ones. */
constexpr int MIN_BUCKET_BITS = 12;
constexpr int HUGE_BUCKET_BITS = 18;
constexpr int LARGE_BUCKET_BITS = 24;

/* Lanes whose buckets and rows are fetched at once: as many as the L1 cache has room for. */
constexpr uint32_t PROBE_LANES = 64;

/* At most that many slots are indexed, and per row of the table. */
constexpr uint64_t INDEX_MAX_SLOTS = uint64_t(1) << 24;
constexpr uint64_t INDEX_SLOTS_PER_ROW = 4;

/* Chunks are larger than the program's, to have huge pages. */
constexpr int HUGE_CHUNK_BITS = 2;

/* From that many groups of all states on a merge has parts, of about that many. */
constexpr uint64_t PARTS_FROM_GROUPS = 32768;
constexpr uint64_t GROUPS_PER_PART = 65536;
constexpr int MIN_PART_BITS = 4;
constexpr int MAX_PART_BITS = 8;

WorkerState &
worker(CpuState *state)
{
	return static_cast<WorkerState &>(*state);
}

}  // namespace

char *
CpuProgram::hash_row(const std::vector<Pages> &chunks, uint64_t group) const
{
	const int	bits = chunk_bits + HUGE_CHUNK_BITS;

	return chunks[group >> bits].as<char>() + (group & low_bits(bits)) * row_bytes;
}

void
CpuProgram::find_groups(WorkerState &s) const
{
	if (dense)
		find_dense(s);
	else if (s.nslots > 0)
		find_indexed(s);
	else
		find_hashed(s);
}

/* Numbers the combinations of key values, if they are few enough to index. */
void
CpuProgram::index_slots(WorkerState &s) const
{
	const uint64_t most = std::min(INDEX_MAX_SLOTS, INDEX_SLOTS_PER_ROW * total_rows);
	std::vector<KeyInfo> slot_keys = keys;
	uint64_t	slots = 1;

	for (KeyInfo &key : slot_keys)
	{
		const ValueRange &range = ranges[key.reg];
		const uint64_t values = static_cast<uint64_t>(range.hi) - static_cast<uint64_t>(range.lo) + 1;

		if (type_is_float(key.type) || values == 0 || values > most)
			return;
		key.values = static_cast<uint32_t>(values);
		key.stride = static_cast<uint32_t>(slots);
		slots *= values + (key.may_null ? 1 : 0);
		if (slots > most)
			return;
	}
	s.index = Pages(slots * sizeof(uint32_t), slots * sizeof(uint32_t) >= HUGE_PAGE);
	s.index.touch();
	s.slot_keys = std::move(slot_keys);
	s.nslots = static_cast<uint32_t>(slots);
}

/* Into dense_index, of dead lanes as well: some slot. */
void
CpuProgram::slots_of_lanes(WorkerState &s, const std::vector<KeyInfo> &slot_keys) const
{
	uint32_t   *index = s.dense_index;

	memset(index, 0, CPU_VECTOR_ROWS * sizeof(uint32_t));
	for (const KeyInfo &key : slot_keys)
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
	slots_of_lanes(s, keys);
	kernels->dense_rows(s.dense_index, s.table.get(), replicas, static_cast<uint32_t>(row_bytes), s.group_row);
	if (kernels->count(s.live) == CPU_VECTOR_ROWS)
	{
		for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
			*reinterpret_cast<uint64_t *>(s.group_row[i]) = 1;
		return;
	}
	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = s.live[w]; m != 0; m &= m - 1)
			*reinterpret_cast<uint64_t *>(s.group_row[64 * w + __builtin_ctzll(m)]) = 1;
}

void
CpuProgram::find_indexed(WorkerState &s) const
{
	const uint32_t n = kernels->select(s.live, s.rows);
	const uint32_t *slots = s.dense_index;
	uint32_t   *index = s.index.as<uint32_t>();

	slots_of_lanes(s, s.slot_keys);
	reserve_rows(s, n);
	for (uint32_t first = 0; first < n; first += PROBE_LANES)
	{
		const uint32_t last = std::min(first + PROBE_LANES, n);

		for (uint32_t j = first; j < last; j++)
			__builtin_prefetch(index + slots[s.rows[j]], 1);
		for (uint32_t j = first; j < last; j++)
		{
			const uint32_t lane = s.rows[j];
			const uint32_t number = index[slots[lane]];

			if (number == 0)
			{
				s.group_row[lane] = new_indexed_row(s, slots[lane]);
				continue;
			}

			char	   *row = hash_row(s, number - 1);

			/* a row may straddle two cache lines */
			__builtin_prefetch(row, 1);
			__builtin_prefetch(row + row_bytes - 1, 1);
			s.group_row[lane] = row;
		}
	}
}

/* reserve_rows() was called. */
char *
CpuProgram::new_indexed_row(WorkerState &s, uint32_t slot) const
{
	char	   *row = hash_row(s, s.nrows);

	for (size_t k = 0; k < s.slot_keys.size(); k++)
	{
		const KeyInfo &key = s.slot_keys[k];
		const uint32_t code = slot / key.stride % (key.values + (key.may_null ? 1 : 0));

		if (code == key.values)
			bit_set(reinterpret_cast<uint64_t *>(row), k);
		else
			*reinterpret_cast<uint64_t *>(row + key.offset) = static_cast<uint64_t>(key.lo) + code;
	}
	s.index.as<uint32_t>()[slot] = static_cast<uint32_t>(++s.nrows);
	return row;
}

uint32_t
CpuProgram::slot_of_row(const WorkerState &s, const char *row) const
{
	uint32_t	slot = 0;

	for (size_t k = 0; k < s.slot_keys.size(); k++)
	{
		const KeyInfo &key = s.slot_keys[k];
		const bool	null = null_words > 0 && bit_get(reinterpret_cast<const uint64_t *>(row), k);
		const uint64_t value = *reinterpret_cast<const uint64_t *>(row + key.offset);

		slot += key.stride * (null ? key.values : static_cast<uint32_t>(value - static_cast<uint64_t>(key.lo)));
	}
	return slot;
}

/* Room for as many rows more. */
void
CpuProgram::reserve_rows(WorkerState &s, uint64_t more) const
{
	const int	bits = chunk_bits + HUGE_CHUNK_BITS;

	/* Few rows are not worth the clearing of a huge page. */
	while (s.chunks.size() << bits < s.nrows + more)
		s.chunks.emplace_back(static_cast<size_t>(row_bytes) << bits, !s.chunks.empty());
}

void
CpuProgram::find_hashed(WorkerState &s) const
{
	uint64_t   *null_bits = s.key_null_words;

	memset(s.hashes, 0, CPU_VECTOR_ROWS * sizeof(uint64_t));
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
		kernels->hash_step(values, s.hashes);
	}
	for (int n = 0; n < null_words; n++)
		kernels->hash_step(null_bits + n * CPU_VECTOR_ROWS, s.hashes);

	const uint32_t n = kernels->select(s.live, s.rows);

	reserve_groups(s, n);
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

/* Room for as many groups more, so that probe() need not look. */
void
CpuProgram::reserve_groups(WorkerState &s, uint64_t more) const
{
	int			bits = std::max(s.bucket_bits, MIN_BUCKET_BITS);

	while ((uint64_t(1) << bits) < 2 * (s.nrows + more))
		bits += bits < HUGE_BUCKET_BITS ? 3 : bits < LARGE_BUCKET_BITS ? 2 : 1;
	if (bits > 32)
		throw std::bad_alloc();
	if (bits != s.bucket_bits)
	{
		const size_t bytes = sizeof(uint64_t) << bits;
		Pages		grown(bytes, bytes >= HUGE_PAGE);
		const uint64_t *from = s.buckets.as<uint64_t>();
		uint64_t   *to = grown.as<uint64_t>();
		const uint64_t mask = low_bits(bits);

		grown.touch();
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
	reserve_rows(s, more);
}

/* The row of the lane's key, made if there is none. reserve_groups() was called. */
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
			char	   *row = hash_row(s, s.nrows);
			uint64_t   *to = reinterpret_cast<uint64_t *>(row);

			for (int n = 0; n < null_words; n++)
				*to++ = s.key_null_words[n * CPU_VECTOR_ROWS + lane];
			for (size_t k = 0; k < keys.size(); k++)
				*to++ = s.key_values[k][lane];
			buckets[at] = tag | ++s.nrows;
			return row;
		}
		if ((buckets[at] & ~low_bits(32)) == tag)
		{
			char	   *row = hash_row(s, (buckets[at] & low_bits(32)) - 1);

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
	const uint64_t *buckets = s.buckets.as<uint64_t>();

	for (uint32_t j = 0; j < n; j++)
		__builtin_prefetch(buckets + (s.hashes[lanes[j]] >> shift));
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = lanes[j];
		const uint64_t tag = s.hashes[lane] & ~low_bits(32);
		uint64_t	at = tag >> shift;

		while (buckets[at] != 0 && (buckets[at] & ~low_bits(32)) != tag)
			at = (at + 1) & mask;
		s.group_row[lane] = buckets[at] != 0 ? hash_row(s, (buckets[at] & low_bits(32)) - 1) : nullptr;
		if (s.group_row[lane])
		{
			/* a row may straddle two cache lines */
			__builtin_prefetch(s.group_row[lane], 1);
			__builtin_prefetch(s.group_row[lane] + row_bytes - 1, 1);
		}
	}
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = lanes[j];
		char	   *row = s.group_row[lane];

		if (!row || !same_key(s, row, lane))
			s.group_row[lane] = insert_or_find(s, lane);
	}
}

/* -- merging ------------------------------------------------------------------------- */

/* Takes from's groups in. */
void
CpuProgram::merge_indexed(WorkerState &to, WorkerState &from) const
{
	reserve_rows(to, from.nrows);
	for (uint64_t g = 0; g < from.nrows; g++)
	{
		char	   *row = hash_row(from, g);
		const uint32_t slot = slot_of_row(from, row);
		const uint32_t number = to.index.as<uint32_t>()[slot];

		merge_row(number == 0 ? new_indexed_row(to, slot) : hash_row(to, number - 1), row);
	}
}

/* Takes from's groups in, a vector of them at a time. */
void
CpuProgram::merge_hashed(WorkerState &to, WorkerState &from) const
{
	for (uint64_t first = 0; first < from.nrows; first += CPU_VECTOR_ROWS)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(CPU_VECTOR_ROWS, from.nrows - first));

		memset(to.hashes, 0, CPU_VECTOR_ROWS * sizeof(uint64_t));
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t *stored = reinterpret_cast<const uint64_t *>(hash_row(from, first + i));

			to.rows[i] = static_cast<uint16_t>(i);
			for (int w = 0; w < null_words; w++)
				to.key_null_words[w * CPU_VECTOR_ROWS + i] = *stored++;
			for (size_t k = 0; k < keys.size(); k++)
				to.key_values[k][i] = *stored++;
		}
		for (size_t k = 0; k < keys.size(); k++)
			kernels->hash_step(to.key_values[k], to.hashes);
		for (int w = 0; w < null_words; w++)
			kernels->hash_step(to.key_null_words + w * CPU_VECTOR_ROWS, to.hashes);
		reserve_groups(to, n);
		probe(to, to.rows, n);
		for (uint32_t i = 0; i < n; i++)
			merge_row(to.group_row[i], hash_row(from, first + i));
	}
}

void
CpuProgram::merge(CpuState *into, CpuState *from) const
{
	WorkerState &to = worker(into);
	WorkerState &other = worker(from);

	to.errors |= other.errors;
	to.rows_taken += other.rows_taken;
	for (size_t k = 0; k < keys.size(); k++)
		to.key_zeroes[k] |= other.key_zeroes[k];
	if (keys.empty())
		merge_row(to.table.get(), other.table.get());
	else if (to.nslots > 0)
		merge_indexed(to, other);
	else if (!dense)
		merge_hashed(to, other);
	else
		for (size_t i = 0; i < size_t(dense_slots) * replicas; i++)
		{
			char	   *a = to.table.get() + i * row_bytes, *b = other.table.get() + i * row_bytes;

			if (*reinterpret_cast<uint64_t *>(b) == 0)
				continue;
			*reinterpret_cast<uint64_t *>(a) = 1;
			merge_row(a, b);
		}
	other.nrows = 0;
}

uint32_t
CpuProgram::begin_merge(CpuState *const *states, uint32_t n) const
{
	WorkerState &to = worker(states[0]);
	uint64_t	groups = 0;
	int			bits = MIN_PART_BITS;

	for (uint32_t i = 0; i < n; i++)
		groups += worker(states[i]).nrows;
	if (groups < PARTS_FROM_GROUPS || n == 1)
	{
		for (uint32_t i = 1; i < n; i++)
			merge(states[0], states[i]);
		return 0;
	}

	for (uint32_t i = 1; i < n; i++)
	{
		WorkerState &from = worker(states[i]);

		to.errors |= from.errors;
		to.rows_taken += from.rows_taken;
		for (size_t k = 0; k < keys.size(); k++)
			to.key_zeroes[k] |= from.key_zeroes[k];
		from.gone.resize(from.nrows);
		to.others.push_back(&from);
	}
	while (bits < MAX_PART_BITS && groups >> bits > GROUPS_PER_PART)
		bits++;
	to.part_bits = bits;
	return 1u << bits;
}

void
CpuProgram::merge_part(CpuState *const *states, uint32_t n, uint32_t part) const
{
	if (worker(states[0]).nslots > 0)
		merge_indexed_part(states, n, part);
	else
		for (uint32_t i = 1; i < n; i++)
			merge_hashed_part(states, i, part);
}

/* A range of slots, a vector of them at a time. */
void
CpuProgram::merge_indexed_part(CpuState *const *states, uint32_t n, uint32_t part) const
{
	const uint64_t nslots = worker(states[0]).nslots;
	const int	bits = worker(states[0]).part_bits;
	const uint32_t last = static_cast<uint32_t>(nslots * (part + 1) >> bits);

	for (uint32_t first = static_cast<uint32_t>(nslots * part >> bits); first < last; first += CPU_VECTOR_ROWS)
	{
		const uint32_t count = std::min(last - first, CPU_VECTOR_ROWS);
		char	   *rows[CPU_VECTOR_ROWS] = {};	/* of the first state that has the group */

		for (uint32_t i = 0; i < n; i++)
		{
			WorkerState &from = worker(states[i]);
			const uint32_t *numbers = from.index.as<uint32_t>() + first;

			for (uint32_t j = 0; j < count; j++)
				if (numbers[j] != 0 && rows[j])
				{
					__builtin_prefetch(rows[j], 1);
					__builtin_prefetch(hash_row(from, numbers[j] - 1));
				}
			for (uint32_t j = 0; j < count; j++)
			{
				if (numbers[j] == 0)
					continue;

				char	   *row = hash_row(from, numbers[j] - 1);

				if (!rows[j])
				{
					rows[j] = row;
					continue;
				}
				merge_row(rows[j], row);
				from.gone[numbers[j] - 1] = 1;
			}
		}
	}
}

/* The row of the next bucket with the tag, or nullptr. */
char *
CpuProgram::next_tagged(const WorkerState &s, uint64_t tag, uint64_t *at) const
{
	const uint64_t *buckets = s.buckets.as<uint64_t>();

	for (;;)
	{
		const uint64_t bucket = buckets[*at];

		if (bucket == 0)
			return nullptr;
		*at = (*at + 1) & low_bits(s.bucket_bits);
		if ((bucket & ~low_bits(32)) == tag)
			return hash_row(s, (bucket & low_bits(32)) - 1);
	}
}

/* They are few: a call costs more than they do. */
static inline bool
same_words(const char *a, const char *b, size_t n)
{
	const uint64_t *x = reinterpret_cast<const uint64_t *>(a);
	const uint64_t *y = reinterpret_cast<const uint64_t *>(b);

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

/*
 * The groups of states[i] whose tags begin with the part's bits. Their buckets
 * begin at the part's share of the table, may be preceded there by others, and
 * end before the first free bucket behind the share.
 */
void
CpuProgram::merge_hashed_part(CpuState *const *states, uint32_t i, uint32_t part) const
{
	struct Lane
	{
		uint64_t	bucket;
		uint64_t	at;
		char	   *row;
		char	   *match;
	};
	WorkerState &from = worker(states[i]);
	const int	bits = worker(states[0]).part_bits;
	const size_t key_words = null_words + keys.size();
	Lane		lanes[CPU_VECTOR_ROWS];

	if (from.nrows == 0)
		return;

	const uint64_t *buckets = from.buckets.as<uint64_t>();
	const uint64_t share = uint64_t(1) << (from.bucket_bits - bits);
	const uint64_t mask = low_bits(from.bucket_bits);
	bool		more = true;

	for (uint64_t b = part * share; more;)
	{
		uint32_t	n = 0;

		for (; n < CPU_VECTOR_ROWS && (more = b < (part + 1) * share || buckets[b & mask] != 0); b++)
			if (buckets[b & mask] != 0 && buckets[b & mask] >> (64 - bits) == part)
				lanes[n++].bucket = buckets[b & mask];
		for (uint32_t k = 0; k < i && n > 0; k++)
		{
			const WorkerState &to = worker(states[k]);
			uint32_t	left = 0;

			if (to.nrows == 0)
				continue;
			for (uint32_t j = 0; j < n; j++)
			{
				Lane	   &lane = lanes[j];

				lane.at = lane.bucket >> (64 - to.bucket_bits);
				lane.match = next_tagged(to, lane.bucket & ~low_bits(32), &lane.at);
				if (!lane.match)
					continue;
				lane.row = hash_row(from, (lane.bucket & low_bits(32)) - 1);
				__builtin_prefetch(lane.match, 1);
				__builtin_prefetch(lane.row);
			}
			/* those without a match here go on to the next state */
			for (uint32_t j = 0; j < n; j++)
			{
				Lane		lane = lanes[j];

				while (lane.match && !same_words(lane.match, lane.row, key_words))
					lane.match = next_tagged(to, lane.bucket & ~low_bits(32), &lane.at);
				if (!lane.match)
				{
					lanes[left++] = lane;
					continue;
				}
				merge_row(lane.match, lane.row);
				from.gone[(lane.bucket & low_bits(32)) - 1] = 1;
			}
			n = left;
		}
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
		s.errors |= finish_row(s.table.get());
	else if (dense)
		for (uint32_t slot = 0; slot < dense_slots; slot++)
		{
			char	   *row = s.table.get() + size_t(slot) * replicas * row_bytes;
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
	{
		for (WorkerState *other : s.others)
		{
			WorkerState::OthersRows &rows = s.others_rows.emplace_back();

			for (uint64_t g = 0; g < other->nrows; g++)
				if (!other->gone[g])
					rows.numbers.push_back(static_cast<uint32_t>(g));
			rows.chunks = std::move(other->chunks);
		}
		if (can_fail_at_end())
		{
			for (uint64_t g = 0; g < s.nrows; g++)
				s.errors |= finish_row(hash_row(s, g));
			for (const WorkerState::OthersRows &rows : s.others_rows)
				for (uint32_t g : rows.numbers)
					s.errors |= finish_row(hash_row(rows.chunks, g));
		}
	}
	return s.errors;
}

uint64_t
CpuProgram::ngroups(const CpuState *state) const
{
	const WorkerState &s = static_cast<const WorkerState &>(*state);

	uint64_t	n = keys.empty() ? 1 : dense ? s.present.size() : s.nrows;

	for (const WorkerState::OthersRows &rows : s.others_rows)
		n += rows.numbers.size();
	return n;
}

uint32_t
CpuProgram::emit_groups(const CpuState *state, uint64_t from, char *area, uint32_t capacity) const
{
	const WorkerState &s = static_cast<const WorkerState &>(*state);
	const uint64_t total = ngroups(state);
	const uint32_t n = from >= total ? 0 : static_cast<uint32_t>(std::min<uint64_t>(capacity, total - from));
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const int64_t *sources = nullptr;

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

		rows_of_groups(s, from + first, count, rows);
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

/* The rows of groups [first, first + n). */
void
CpuProgram::rows_of_groups(const WorkerState &s, uint64_t first, uint32_t n, char **rows) const
{
	if (keys.empty())
		rows[0] = s.table.get();
	else if (dense)
		for (uint32_t i = 0; i < n; i++)
			rows[i] = s.table.get() + size_t(s.present[first + i]) * replicas * row_bytes;
	else
	{
		uint32_t	i = 0;

		for (; i < n && first + i < s.nrows; i++)
			rows[i] = hash_row(s, first + i);
		first -= s.nrows;		/* may wrap: only first + i is used */
		for (const WorkerState::OthersRows &others : s.others_rows)
		{
			for (; i < n && first + i < others.numbers.size(); i++)
				rows[i] = hash_row(others.chunks, others.numbers[first + i]);
			first -= others.numbers.size();
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
