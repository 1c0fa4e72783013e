/* cpu_hash_table.cc: keys as words, and what they find (cpu_hash_table.h). */
#include "vm/cpu_hash_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "vm/join_keys.h"

namespace gpuvm {

namespace {

constexpr uint32_t BLOCK = CPU_VECTOR_ROWS;

/* Calls f(i, value as a word) for the rows [first, first + n); fewer than 64 bits have no sign above them if `packed`. */
template <typename F>
void
each_key(const JoinColumn &column, uint64_t first, uint32_t n, F f)
{
	switch (column.type)
	{
		case Type::Bool:
			for (uint32_t i = 0; i < n; i++)
				f(i, static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(column.values)[first + i]));
			break;
		case Type::I64:
			for (uint32_t i = 0; i < n; i++)
				f(i, static_cast<uint64_t>(reinterpret_cast<const int64_t *>(column.values)[first + i]));
			break;
		case Type::F32:
			for (uint32_t i = 0; i < n; i++)
				f(i, static_cast<uint64_t>(float_key(reinterpret_cast<const uint32_t *>(column.values)[first + i])));
			break;
		case Type::F64:
			for (uint32_t i = 0; i < n; i++)
				f(i, float_key(reinterpret_cast<const uint64_t *>(column.values)[first + i]));
			break;
		default:
			for (uint32_t i = 0; i < n; i++)
				f(i, static_cast<uint64_t>(static_cast<int64_t>(reinterpret_cast<const int32_t *>(column.values)[first + i])));
			break;
	}
}

/* Keys as words whose order is that of the values: the sign last, a negative float's bits the other way round. */
void
order_keys(Type type, uint64_t *keys, uint32_t n)
{
	constexpr uint64_t SIGN64 = uint64_t(1) << 63, SIGN32 = uint64_t(1) << 31;

	switch (type)
	{
		case Type::Bool:
			break;
		case Type::I64:
			for (uint32_t i = 0; i < n; i++)
				keys[i] ^= SIGN64;
			break;
		case Type::F64:
			for (uint32_t i = 0; i < n; i++)
				keys[i] ^= keys[i] & SIGN64 ? UINT64_MAX : SIGN64;
			break;
		case Type::F32:
			for (uint32_t i = 0; i < n; i++)
				keys[i] ^= keys[i] & SIGN32 ? UINT32_MAX : SIGN32;
			break;
		default:
			for (uint32_t i = 0; i < n; i++)
				keys[i] = static_cast<uint32_t>(keys[i]) ^ SIGN32;
			break;
	}
}

int
key_bits(Type t)
{
	return 8 * type_width(t);
}

}  // namespace

bool
join_keys_packed(const JoinColumn *keys, size_t nkeys)
{
	int			bits = 0;

	for (size_t k = 0; k < nkeys; k++)
		bits += key_bits(keys[k].type);
	return bits <= 64;
}

void
join_words(const JoinColumn *keys, size_t nkeys, bool packed, uint64_t first, uint32_t n, uint64_t *out, uint64_t *valid)
{
	for (uint32_t w = 0; w < BLOCK / 64; w++)
		valid[w] = n <= 64 * w ? 0 : low_bits(std::min(n - 64 * w, 64u));
	for (size_t k = 0; k < nkeys; k++)
	{
		const JoinColumn &key = keys[k];

		if (k == 0)
			each_key(key, first, n, [=](uint32_t i, uint64_t v) { out[i] = v; });
		else if (packed)
		{
			const int	bits = key_bits(key.type);

			each_key(key, first, n, [=](uint32_t i, uint64_t v) { out[i] = out[i] << bits | (v & low_bits(bits)); });
		}
		else
			each_key(key, first, n, [=](uint32_t i, uint64_t v) { out[i] = mix(out[i]) + v; });
		if (key.nulls)
			for (uint32_t i = 0; i < n; i++)
				if (bit_get(key.nulls, first + i))
					valid[i / 64] &= ~(uint64_t(1) << i % 64);
	}
}

void
JoinTable::set_rows(std::vector<JoinColumn> keys, std::vector<JoinRun> runs, bool sorted)
{
	keys_ = std::move(keys);
	runs_ = std::move(runs);
	packed_ = join_keys_packed(keys_.data(), keys_.size());
	short_key_ = keys_.size() == 1 && key_bits(keys_[0].type) <= 32;
	sorted_ = sorted;
	exact_ = packed_;
	run_keys_.resize(runs_.size());
}

/*
 * The codes of rows [first, first + n), n <= BLOCK, as a word each, and which of them
 * are not null. As long as there is no form, and if a slot is one row: the key itself.
 */
void
JoinTable::keys_of(const JoinColumn *keys, uint64_t first, uint32_t n, uint64_t *out, uint64_t *valid) const
{
	join_words(keys, keys_.size(), packed_, first, n, out, valid);
	if (sorted_)
		order_keys(keys_[0].type, out, n);
	else if (form_ == Form::Ranges)
		for (uint32_t i = 0; i < n; i++)
			out[i] -= lo_;
	else if (form_ == Form::Hashed && narrow_)
		for (uint32_t i = 0; i < n; i++)
			out[i] = mix(static_cast<uint32_t>(out[i]));
	else if (form_ == Form::Hashed)
		for (uint32_t i = 0; i < n; i++)
			out[i] = mix(out[i]);
}

bool
JoinTable::same_keys(uint32_t row, const JoinColumn *keys, uint32_t lane) const
{
	for (size_t k = 0; k < keys_.size(); k++)
	{
		uint64_t	a = 0, b = 0;

		each_key(keys_[k], row, 1, [&](uint32_t, uint64_t v) { a = v; });
		each_key(keys[k], lane, 1, [&](uint32_t, uint64_t v) { b = v; });
		if (a != b)
			return false;
	}
	return true;
}

uint64_t
JoinTable::memory() const
{
	return slots_.bytes() + filter_.bytes() + entries_.bytes() + order_.bytes() + hashes_.bytes() + runs_.capacity() * sizeof(JoinRun)
		+ run_keys_.capacity() * sizeof(RunKeys) + (counted_.capacity() + splitters_.capacity()) * sizeof(uint64_t)
		+ part_first_.capacity() * sizeof(uint32_t);
}

JoinOrder
JoinTable::order() const
{
	if (form_ == Form::Hashed && narrow_)
		return JoinOrder{&entries_.as<JoinEntry<uint32_t>>()->row, sizeof(JoinEntry<uint32_t>) / sizeof(uint32_t)};
	if (form_ == Form::Hashed)
		return JoinOrder{&entries_.as<JoinEntry<uint64_t>>()->row, sizeof(JoinEntry<uint64_t>) / sizeof(uint32_t)};
	return JoinOrder{form_ < Form::Ranges ? nullptr : order_.as<uint32_t>(), 1};
}

/* Where the entries of a code are, of those of its slot. */
template <typename Code>
static std::pair<uint32_t, uint32_t>
search_slot(const JoinEntry<Code> *entries, uint32_t from, uint32_t end, Code code)
{
	auto		less = [](const JoinEntry<Code> &entry, Code c) { return entry.code < c; };
	auto		greater = [](Code c, const JoinEntry<Code> &entry) { return c < entry.code; };
	uint32_t	to;

	if (end - from > 16)
		from = static_cast<uint32_t>(std::lower_bound(entries + from, entries + end, code, less) - entries);
	while (from < end && entries[from].code < code)
		from++;
	for (to = from; to < end && entries[to].code == code; to++)
		if (to - from == 16)
		{
			to = static_cast<uint32_t>(std::upper_bound(entries + to, entries + end, code, greater) - entries);
			break;
		}
	return {from, to - from};
}

template <typename Code>
void
JoinTable::probe_hashed(const uint64_t *key, const uint64_t *valid, uint32_t n, bool missing, uint32_t *first, uint32_t *count) const
{
	const uint64_t *filter = missing ? filter_.as<uint64_t>() : nullptr;
	uint16_t	lanes[BLOCK];

	if (filter)
	{
		/* most go no further than to a bit, which is nearer than a slot */
		uint32_t	m = 0;

		for (uint32_t i = 0; i < n; i++)
			__builtin_prefetch(filter + (key[i] >> filter_shift_) / 64);
		for (uint32_t i = 0; i < n; i++)
		{
			lanes[m] = static_cast<uint16_t>(i);
			m += bit_get(filter, key[i] >> filter_shift_);
		}
		memset(count, 0, n * sizeof(uint32_t));
		n = m;
	}

	auto		lane = [&](uint32_t j) { return filter ? lanes[j] : j; };
	const uint32_t *slots = slots_.as<uint32_t>();
	const JoinEntry<Code> *entries = entries_.as<JoinEntry<Code>>();

	for (uint32_t j = 0; j < n; j++)
		__builtin_prefetch(slots + slot_of(key[lane(j)]));
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t i = lane(j);

		first[i] = slots[slot_of(key[i])];
		__builtin_prefetch(entries + first[i]);
		__builtin_prefetch(entries + first[i] + JOIN_WINDOW - 1);
	}
	/* All entries are in their codes' order: what is not among the first is not in the slot, or the slot is a long one. */
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t i = lane(j);
		const Code	code = static_cast<Code>(key[i]);
		const JoinEntry<Code> *at = entries + first[i];
		uint32_t	below = 0, equal = 0;

		for (uint32_t k = 0; k < JOIN_WINDOW; k++)
		{
			below += at[k].code < code;
			equal += at[k].code == code;
		}
		if (__builtin_expect(below + equal < JOIN_WINDOW, true))
			first[i] += below;
		else
			std::tie(first[i], equal) = search_slot(entries, first[i], slots[slot_of(key[i]) + 1], code);
		count[i] = equal & -static_cast<uint32_t>(bit_get(valid, i));
	}
}

void
JoinTable::probe(const JoinColumn *keys, uint32_t total, bool *missing, uint32_t *first, uint32_t *count) const
{
	const uint64_t *filter = filter_.as<uint64_t>();
	const uint32_t *slots = slots_.as<uint32_t>();
	uint64_t	key[BLOCK], valid[BLOCK / 64];

	for (uint32_t done = 0; done < total; done += BLOCK, first += BLOCK, count += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, total - done);

		if (form_ == Form::Empty)
		{
			memset(count, 0, n * sizeof(uint32_t));
			continue;
		}
		keys_of(keys, done, n, key, valid);
		switch (form_)
		{
			case Form::Identity:
				for (uint32_t i = 0; i < n; i++)
				{
					const uint64_t slot = key[i] - lo_;

					first[i] = static_cast<uint32_t>(slot);
					count[i] = slot < nslots_ && bit_get(valid, i);
				}
				break;
			case Form::Unique:
				for (uint32_t i = 0; i < n; i++)
				{
					const uint64_t slot = key[i] - lo_;
					const bool	in = slot < nslots_ && (!filter || bit_get(filter, slot));
					const uint32_t row = slots[in ? slot : 0];

					first[i] = row - 1;
					count[i] = in && row != 0 && bit_get(valid, i);
				}
				break;
			case Form::Bits:
				for (uint32_t i = 0; i < n; i++)
				{
					const uint64_t slot = key[i] - lo_;

					first[i] = 0;
					count[i] = slot < nslots_ && bit_get(filter, slot) && bit_get(valid, i);
				}
				break;
			case Form::Ranges:
				for (uint32_t i = 0; i < n; i++)
				{
					const uint64_t slot = key[i];
					const bool	in = slot < nslots_ && bit_get(valid, i) && (!filter || bit_get(filter, slot));
					const uint32_t *range = slots + (in ? slot : 0);

					first[i] = range[0];
					count[i] = in ? range[1] - range[0] : 0;
				}
				break;
			default:
				if (narrow_)
					probe_hashed<uint32_t>(key, valid, n, *missing, first, count);
				else
					probe_hashed<uint64_t>(key, valid, n, *missing, first, count);
				if (filter)
				{
					uint32_t	found = 0;

					for (uint32_t i = 0; i < n; i++)
						found += count[i] > 0;
					*missing = found < n / 4;
				}
				break;
		}
	}
}

/*
 * For each word, how many of the sorted codes are below it (`equal`: or it). All words
 * take a step of the search together, without a branch: they wait for memory at once.
 */
template <typename Code>
void
JoinTable::count_below(const uint64_t *words, uint32_t n, bool equal, uint32_t *out) const
{
	const Code *codes = hashes_.as<Code>();

	memset(out, 0, n * sizeof(uint32_t));
	for (uint32_t left = static_cast<uint32_t>(nvalid_); left > 0;)
	{
		const uint32_t half = (left + 1) / 2;

		if (equal)
			for (uint32_t i = 0; i < n; i++)
				out[i] += half & -static_cast<uint32_t>(codes[out[i] + half - 1] <= static_cast<Code>(words[i]));
		else
			for (uint32_t i = 0; i < n; i++)
				out[i] += half & -static_cast<uint32_t>(codes[out[i] + half - 1] < static_cast<Code>(words[i]));
		left -= half;
	}
}

void
JoinTable::probe_range(const JoinColumn *lo, const JoinColumn *hi, bool lo_strict, bool hi_strict, uint32_t total,
					   uint32_t *first, uint32_t *count) const
{
	uint64_t	key[BLOCK], valid[BLOCK / 64], other[BLOCK / 64];
	uint32_t	end[BLOCK];

	for (uint32_t done = 0; done < total; done += BLOCK, first += BLOCK, count += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, total - done);
		auto		search = [&](bool equal, uint32_t *out) {
			if (narrow_)
				count_below<uint32_t>(key, n, equal, out);
			else
				count_below<uint64_t>(key, n, equal, out);
		};

		if (form_ == Form::Empty)
		{
			memset(count, 0, n * sizeof(uint32_t));
			continue;
		}
		std::fill_n(valid, BLOCK / 64, UINT64_MAX);
		std::fill_n(first, n, 0);
		std::fill_n(end, n, static_cast<uint32_t>(nvalid_));
		if (lo)
		{
			keys_of(lo, done, n, key, valid);
			search(lo_strict, first);
		}
		if (hi)
		{
			keys_of(hi, done, n, key, other);
			for (uint32_t w = 0; w < BLOCK / 64; w++)
				valid[w] &= other[w];
			search(!hi_strict, end);
		}
		for (uint32_t i = 0; i < n; i++)
			count[i] = bit_get(valid, i) && end[i] > first[i] ? end[i] - first[i] : 0;
	}
}

}  // namespace gpuvm
