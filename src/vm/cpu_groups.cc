/*
 * cpu_groups.cc: from key values to a group's row; merging, ending and emitting
 * of groups.
 *
 * Dense: the keys' ranges are known and small, so a slot number is computed
 * from the values, and nothing is compared. Below 256 slots there are four rows
 * a slot, by lane number: additions to one address would wait for each other.
 *
 * Hashed: buckets of (tag, group number + 1), linear probing, at most half
 * full. Rows lie in chunks that never move. A vector's keys are hashed together
 * and its buckets, then its rows, prefetched together: with millions of groups
 * every one of these accesses misses the caches, and only their number in
 * flight matters. A bucket's place is the tag's highest bits, so growing looks
 * at no row.
 */
#include <algorithm>
#include <cstring>
#include <new>

#include "vm/cpu_job.h"

namespace gpuvm {

namespace {

constexpr int MIN_BUCKET_BITS = 12;

template <typename T>
T *
allocate_zeroes(size_t n)
{
	T		   *p = static_cast<T *>(calloc(n, sizeof(T)));

	if (!p)
		throw std::bad_alloc();
	return p;
}

}  // namespace

char *
CpuProgram::hash_row(const WorkerState &s, uint64_t group) const
{
	return s.chunks[group >> chunk_bits].get() + (group & low_bits(chunk_bits)) * row_bytes;
}

void
CpuProgram::find_groups(WorkerState &s) const
{
	if (dense)
		find_dense(s);
	else
		find_hashed(s);
}

void
CpuProgram::find_dense(WorkerState &s) const
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

	kernels->dense_rows(index, s.table.get(), replicas, static_cast<uint32_t>(row_bytes), s.group_row);
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
	probe(s, s.rows, n);
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
		bits++;
	if (bits > 32)
		throw std::bad_alloc();
	if (bits != s.bucket_bits)
	{
		WorkerState::Zeroed<uint64_t> grown(allocate_zeroes<uint64_t>(size_t(1) << bits));
		const uint64_t mask = low_bits(bits);

		for (uint64_t i = 0; s.bucket_bits > 0 && i < uint64_t(1) << s.bucket_bits; i++)
		{
			const uint64_t bucket = s.buckets.get()[i];
			uint64_t	at = bucket >> (64 - bits);

			if (bucket == 0)
				continue;
			while (grown.get()[at] != 0)
				at = (at + 1) & mask;
			grown.get()[at] = bucket;
		}
		s.buckets = std::move(grown);
		s.bucket_bits = bits;
	}
	while (s.chunks.size() << chunk_bits < s.nrows + more)
		s.chunks.emplace_back(allocate_zeroes<char>(static_cast<size_t>(row_bytes) << chunk_bits));
}

/* The row of the lane's key, made if there is none. reserve_groups() was called. */
char *
CpuProgram::insert_or_find(WorkerState &s, uint32_t lane) const
{
	const uint64_t tag = s.hashes[lane] & ~low_bits(32);
	const uint64_t mask = low_bits(s.bucket_bits);
	uint64_t   *buckets = s.buckets.get();

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
	const uint64_t *buckets = s.buckets.get();

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
			__builtin_prefetch(s.group_row[lane], 1);
	}
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = lanes[j];
		char	   *row = s.group_row[lane];

		if (!row || !same_key(s, row, lane))
			s.group_row[lane] = insert_or_find(s, lane);
	}
}

/* Takes from's groups in, a vector of them at a time. */
void
CpuProgram::merge_hashed(WorkerState &to, WorkerState &from) const
{
	if (to.nrows == 0)
	{
		std::swap(to.chunks, from.chunks);
		std::swap(to.buckets, from.buckets);
		std::swap(to.bucket_bits, from.bucket_bits);
		std::swap(to.nrows, from.nrows);
		return;
	}
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
	WorkerState &to = static_cast<WorkerState &>(*into);
	WorkerState &other = static_cast<WorkerState &>(*from);

	to.errors |= other.errors;
	to.rows_taken += other.rows_taken;
	for (size_t k = 0; k < keys.size(); k++)
		to.key_zeroes[k] |= other.key_zeroes[k];
	if (keys.empty())
		merge_row(to.table.get(), other.table.get());
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
}

uint32_t
CpuProgram::finish(CpuState *state) const
{
	WorkerState &s = static_cast<WorkerState &>(*state);
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
	else if (!dense)
		for (uint64_t g = 0; g < s.nrows; g++)
			s.errors |= finish_row(hash_row(s, g));
	else
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
	return s.errors;
}

uint64_t
CpuProgram::ngroups(const CpuState *state) const
{
	const WorkerState &s = static_cast<const WorkerState &>(*state);

	return keys.empty() ? 1 : dense ? s.present.size() : s.nrows;
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
	{
		const Type	type = result_types[c];
		const int	width = type_width(type);
		char	   *values = area + layout[c].values;
		uint64_t   *nulls = reinterpret_cast<uint64_t *>(area + layout[c].nulls);

		memset(nulls, 0, capacity / 8);
		for (uint32_t i = 0; i < n; i++)
		{
			const char *row = keys.empty() ? s.table.get()
				: dense ? s.table.get() + size_t(s.present[from + i]) * replicas * row_bytes : hash_row(s, from + i);

			if (sources[c] >= RESULT_FROM_AGG)
			{
				emit_agg(aggs[sources[c] - RESULT_FROM_AGG], row, type, values, nulls, i);
				continue;
			}

			const size_t k = static_cast<size_t>(sources[c]);
			const KeyInfo &key = keys[k];
			int64_t		v;
			bool		null;

			if (dense)
			{
				const uint32_t code = s.present[from + i] / key.stride % (key.values + (key.may_null ? 1 : 0));

				null = code == key.values;
				v = null ? 0 : static_cast<int64_t>(static_cast<uint64_t>(key.lo) + code);
			}
			else
			{
				null = null_words > 0 && bit_get(reinterpret_cast<const uint64_t *>(row), k);
				memcpy(&v, row + key.offset, sizeof(v));
			}
			memcpy(values + static_cast<size_t>(i) * width, &v, width);
			if (null)
				bit_set(nulls, i);
		}
	}
	return n;
}

}  // namespace gpuvm
