/* cpu_hash_table.cc: see cpu_hash_table.h. */
#include "vm/cpu_hash_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gpuvm {

namespace {

constexpr uint32_t BLOCK = CPU_VECTOR_ROWS;
constexpr uint64_t COUNT_SLOTS = 1 << 20;	/* a task */
constexpr uint64_t SMALL_RANGE = 1 << 16;
constexpr int PART_BITS = 8;
constexpr uint64_t HUGE_FROM = 4 << 20;

Pages
pages(uint64_t bytes)
{
	return Pages(bytes, bytes >= HUGE_FROM);
}

/* Has an inverse. */
inline uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

inline uint32_t
mix32(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	x ^= x >> 16;
	return x;
}

/* Equal if and only if PostgreSQL's = says so. */
inline uint64_t
float_key(double d)
{
	uint64_t	bits;

	d = d == 0 ? 0.0 : d;
	memcpy(&bits, &d, sizeof(bits));
	return d != d ? 0x7ff8000000000000u : bits;
}

inline uint32_t
float_key(float f)
{
	uint32_t	bits;

	f = f == 0 ? 0.0f : f;
	memcpy(&bits, &f, sizeof(bits));
	return f != f ? 0x7fc00000u : bits;
}

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
				f(i, static_cast<uint64_t>(float_key(reinterpret_cast<const float *>(column.values)[first + i])));
			break;
		case Type::F64:
			for (uint32_t i = 0; i < n; i++)
				f(i, float_key(reinterpret_cast<const double *>(column.values)[first + i]));
			break;
		default:
			for (uint32_t i = 0; i < n; i++)
				f(i, static_cast<uint64_t>(static_cast<int64_t>(reinterpret_cast<const int32_t *>(column.values)[first + i])));
			break;
	}
}

int
key_bits(Type t)
{
	return 8 * type_width(t);
}

bool
is_slot_type(Type t)
{
	return t == Type::Bool || type_is_int(t);
}

}  // namespace

void
JoinTable::set_rows(std::vector<JoinColumn> keys, std::vector<JoinRun> runs)
{
	int			bits = 0;

	keys_ = std::move(keys);
	runs_ = std::move(runs);
	for (const JoinColumn &key : keys_)
		bits += key_bits(key.type);
	packed_ = bits <= 64;
	short_key_ = keys_.size() == 1 && bits <= 32;
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
	for (uint32_t w = 0; w < BLOCK / 64; w++)
		valid[w] = n <= 64 * w ? 0 : low_bits(std::min(n - 64 * w, 64u));
	for (size_t k = 0; k < keys_.size(); k++)
	{
		const JoinColumn &key = keys[k];

		if (k == 0)
			each_key(key, first, n, [=](uint32_t i, uint64_t v) { out[i] = v; });
		else if (packed_)
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
	if (form_ == Form::Ranges)
		for (uint32_t i = 0; i < n; i++)
			out[i] -= lo_;
	else if (form_ == Form::Hashed && narrow_)
		for (uint32_t i = 0; i < n; i++)
			out[i] = mix32(static_cast<uint32_t>(out[i]));
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

/* ---- building -------------------------------------------------------------------- */

void
JoinTable::task_keys(uint32_t number)
{
	const JoinRun &run = runs_[number];
	RunKeys		found = {INT64_MAX, INT64_MIN, 0, 0, true};
	uint64_t	keys[BLOCK], valid[BLOCK / 64];

	for (uint32_t done = 0; done < run.n; done += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, run.n - done);

		keys_of(keys_.data(), run.at + done, n, keys, valid);

		const uint32_t nvalid = bit_count(valid, BLOCK / 64);

		found.valid += nvalid;
		if (nvalid == n)
		{
			int64_t		lo = found.lo, hi = found.hi;
			uint64_t	other = 0;

			if (done == 0)
				found.offset = keys[0] - run.at;
			for (uint32_t i = 0; i < n; i++)
			{
				const int64_t v = static_cast<int64_t>(keys[i]);

				lo = std::min(lo, v);
				hi = std::max(hi, v);
				other |= keys[i] - (run.at + done + i) - found.offset;
			}
			found.lo = lo;
			found.hi = hi;
			found.even = found.even && other == 0;
			continue;
		}
		found.even = false;
		for (uint32_t i = 0; i < n; i++)
			if (bit_get(valid, i))
			{
				found.lo = std::min(found.lo, static_cast<int64_t>(keys[i]));
				found.hi = std::max(found.hi, static_cast<int64_t>(keys[i]));
			}
	}
	run_keys_[number] = found;
}

void
JoinTable::choose_form()
{
	int64_t		lo = INT64_MAX, hi = INT64_MIN;
	bool		even = true;
	uint64_t	at = 0;

	for (size_t i = 0; i < runs_.size(); i++)
	{
		const RunKeys &run = run_keys_[i];

		nvalid_ += run.valid;
		lo = std::min(lo, run.lo);
		hi = std::max(hi, run.hi);
		even = even && run.even && run.offset == run_keys_[0].offset && runs_[i].at == at;
		at = runs_[i].at + runs_[i].n;
	}
	if (nvalid_ == 0)
	{
		form_ = Form::Empty;
		return;
	}
	max_matches_ = 1;

	const uint64_t range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;

	lo_ = static_cast<uint64_t>(lo);
	if (keys_.size() == 1 && is_slot_type(keys_[0].type) && range != 0 && range <= std::max(SMALL_RANGE, 4 * nvalid_))
	{
		nslots_ = range;
		form_ = even && range == nvalid_ ? Form::Identity : Form::Unique;
		return;
	}
	form_ = Form::Hashed;
}

/* Row numbers go to their slots; of equal keys one stays. */
void
JoinTable::task_unique(uint32_t number)
{
	const JoinRun &run = runs_[number];
	uint32_t   *slots = slots_.as<uint32_t>();
	uint64_t	keys[BLOCK], valid[BLOCK / 64];

	for (uint32_t done = 0; done < run.n; done += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, run.n - done);
		const uint32_t row = static_cast<uint32_t>(run.at + done) + 1;

		keys_of(keys_.data(), run.at + done, n, keys, valid);
		for (uint32_t i = 0; i < n; i++)
			if (bit_get(valid, i))
				__atomic_store_n(slots + (keys[i] - lo_), row + i, __ATOMIC_RELAXED);
	}
}

/* Slots of several rows, or hashes: counts, then entries, by the slots' leading bits. */
void
JoinTable::begin_parts()
{
	int			slot_bits;

	if (form_ == Form::Hashed)
	{
		slot_bits = std::max(4, ceil_log2(nvalid_));
		narrow_ = short_key_;
		slot_shift_ = (narrow_ ? 32 : 64) - slot_bits;
		nslots_ = uint64_t(1) << slot_bits;
	}
	else
	{
		slot_bits = ceil_log2(nslots_);
		narrow_ = slot_bits <= 32;
	}
	part_shift_ = std::max(0, slot_bits - PART_BITS);
	nparts_ = static_cast<uint32_t>((nslots_ - 1) >> part_shift_) + 1;
	starts_.assign(runs_.size() * nparts_, 0);
	part_first_.assign(nparts_ + 1, 0);
	slots_ = pages((nslots_ + 1) * sizeof(uint32_t));
	order_ = pages(nvalid_ * sizeof(uint32_t));
	part_codes_ = pages(nvalid_ * code_bytes());
	part_rows_ = pages(nvalid_ * sizeof(uint32_t));
	bytes_ = (nslots_ + 1) * sizeof(uint32_t) + nvalid_ * sizeof(uint32_t);
	if (form_ == Form::Hashed)
	{
		hashes_ = pages(nvalid_ * code_bytes());
		bytes_ += nvalid_ * code_bytes();
	}
	temporary_ = nvalid_ * (code_bytes() + sizeof(uint32_t));
	counted_.assign(nparts_, 0);
}

template <typename Code>
void
JoinTable::task_histogram(uint32_t number, bool scatter)
{
	const JoinRun &run = runs_[number];
	uint32_t   *starts = &starts_[size_t(number) * nparts_];
	Code	   *to_codes = part_codes_.as<Code>();
	uint32_t   *to_rows = part_rows_.as<uint32_t>();
	uint64_t	keys[BLOCK], valid[BLOCK / 64];

	for (uint32_t done = 0; done < run.n; done += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, run.n - done);

		keys_of(keys_.data(), run.at + done, n, keys, valid);
		for (uint32_t i = 0; i < n; i++)
		{
			if (!bit_get(valid, i))
				continue;

			uint32_t	at = starts[slot_of(keys[i]) >> part_shift_]++;

			if (scatter)
			{
				to_codes[at] = static_cast<Code>(keys[i]);
				to_rows[at] = static_cast<uint32_t>(run.at + done + i);
			}
		}
	}
}

/* From counts to places. */
void
JoinTable::prefix_parts()
{
	uint32_t	at = 0;

	for (uint32_t p = 0; p < nparts_; p++)
	{
		part_first_[p] = at;
		for (size_t r = 0; r < runs_.size(); r++)
		{
			const uint32_t n = starts_[r * nparts_ + p];

			starts_[r * nparts_ + p] = at;
			at += n;
		}
	}
	part_first_[nparts_] = at;
}

template <typename Code>
void
JoinTable::task_part(uint32_t part)
{
	const uint64_t first_slot = uint64_t(part) << part_shift_;
	const uint64_t end_slot = std::min(nslots_, first_slot + (uint64_t(1) << part_shift_));
	const uint32_t first = part_first_[part], end = part_first_[part + 1];
	const Code *codes = part_codes_.as<Code>();
	const uint32_t *rows = part_rows_.as<uint32_t>();
	uint32_t   *slots = slots_.as<uint32_t>();
	uint32_t   *order = order_.as<uint32_t>();
	Code	   *hashes = hashes_.as<Code>();
	std::vector<uint32_t> at(end_slot - first_slot);
	uint32_t	next = first, most = 0;

	for (uint32_t i = first; i < end; i++)
		at[slot_of(codes[i]) - first_slot]++;
	for (uint64_t s = first_slot; s < end_slot; s++)
	{
		const uint32_t n = at[s - first_slot];

		slots[s] = at[s - first_slot] = next;
		next += n;
		most = std::max(most, n);
	}
	if (end_slot == nslots_)
		slots[nslots_] = next;
	for (uint32_t i = first; i < end; i++)
	{
		const uint32_t to = at[slot_of(codes[i]) - first_slot]++;

		order[to] = rows[i];
		if (hashes)
			hashes[to] = codes[i];
	}
	if (hashes)
	{
		std::vector<std::pair<Code, uint32_t>> sorted;
		uint32_t	equal = 1;

		most = end > first ? 1 : 0;
		for (uint64_t s = first_slot; s < end_slot; s++)
		{
			const uint32_t from = slots[s], to = s + 1 < end_slot ? slots[s + 1] : next;

			if (to - from < 2)
				continue;
			sorted.clear();
			for (uint32_t i = from; i < to; i++)
				sorted.emplace_back(hashes[i], order[i]);
			std::sort(sorted.begin(), sorted.end());
			for (uint32_t i = from; i < to; i++)
			{
				hashes[i] = sorted[i - from].first;
				order[i] = sorted[i - from].second;
				equal = i > from && hashes[i] == hashes[i - 1] ? equal + 1 : 1;
				most = std::max(most, equal);
			}
		}
	}
	counted_[part] = most;
}

uint32_t
JoinTable::begin_phase()
{
	const uint32_t nruns = static_cast<uint32_t>(runs_.size());

	if (!begun_)
	{
		begun_ = true;
		if (nruns > 0)
			return nruns;		/* Keys */
		phase_ = Phase::Done;
	}
	switch (phase_)
	{
		case Phase::Keys:
			choose_form();
			if (form_ == Form::Unique)
			{
				slots_ = pages(nslots_ * sizeof(uint32_t));
				bytes_ = nslots_ * sizeof(uint32_t);
				phase_ = Phase::Unique;
				return nruns;
			}
			if (form_ == Form::Hashed)
			{
				begin_parts();
				phase_ = Phase::Histogram;
				return nruns;
			}
			phase_ = Phase::Done;
			return 0;
		case Phase::Unique:
			phase_ = Phase::Count;
			counted_.assign((nslots_ + COUNT_SLOTS - 1) / COUNT_SLOTS, 0);
			return static_cast<uint32_t>(counted_.size());
		case Phase::Count:
			{
				uint64_t	used = 0;

				for (uint64_t n : counted_)
					used += n;
				if (used == nvalid_)
				{
					phase_ = Phase::Done;
					return 0;
				}
				form_ = Form::Ranges;
				begin_parts();
				phase_ = Phase::Histogram;
				return nruns;
			}
		case Phase::Histogram:
			prefix_parts();
			phase_ = Phase::Scatter;
			return nruns;
		case Phase::Scatter:
			phase_ = Phase::Parts;
			return nparts_;
		case Phase::Parts:
			max_matches_ = static_cast<uint32_t>(*std::max_element(counted_.begin(), counted_.end()));
			part_codes_ = Pages();
			part_rows_ = Pages();
			temporary_ = 0;
			starts_ = {};
			phase_ = Phase::Done;
			return 0;
		case Phase::Done:
			return 0;
	}
	return 0;
}

void
JoinTable::run_task(uint32_t task)
{
	switch (phase_)
	{
		case Phase::Keys:
			task_keys(task);
			break;
		case Phase::Unique:
			task_unique(task);
			break;
		case Phase::Count:
			{
				const uint32_t *slots = slots_.as<uint32_t>();
				const uint64_t end = std::min(nslots_, (task + 1) * COUNT_SLOTS);
				uint64_t	n = 0;

				for (uint64_t s = task * COUNT_SLOTS; s < end; s++)
					n += slots[s] != 0;
				counted_[task] = n;
				break;
			}
		case Phase::Histogram:
		case Phase::Scatter:
			if (narrow_)
				task_histogram<uint32_t>(task, phase_ == Phase::Scatter);
			else
				task_histogram<uint64_t>(task, phase_ == Phase::Scatter);
			break;
		case Phase::Parts:
			if (narrow_)
				task_part<uint32_t>(task);
			else
				task_part<uint64_t>(task);
			break;
		case Phase::Done:
			break;
	}
}

/* ---- probing ------------------------------------------------------------------------ */

template <typename Code>
void
JoinTable::probe_hashed(const uint64_t *key, const uint64_t *valid, uint32_t n, uint32_t *first, uint32_t *count) const
{
	const uint32_t *slots = slots_.as<uint32_t>();
	const Code *hashes = hashes_.as<Code>();

	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(slots + slot_of(key[i]));
	for (uint32_t i = 0; i < n; i++)
	{
		first[i] = slots[slot_of(key[i])];
		__builtin_prefetch(hashes + first[i]);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		const Code	code = static_cast<Code>(key[i]);
		uint32_t	from = first[i], end = slots[slot_of(key[i]) + 1];
		uint32_t	to;

		count[i] = 0;
		if (!bit_get(valid, i))
			continue;
		if (end - from > 16)
			from = static_cast<uint32_t>(std::lower_bound(hashes + from, hashes + end, code) - hashes);
		while (from < end && hashes[from] < code)
			from++;
		for (to = from; to < end && hashes[to] == code; to++)
			if (to - from == 16)
			{
				to = static_cast<uint32_t>(std::upper_bound(hashes + to, hashes + end, code) - hashes);
				break;
			}
		first[i] = from;
		count[i] = to - from;
	}
}

void
JoinTable::probe(const JoinColumn *keys, uint32_t total, uint32_t *first, uint32_t *count) const
{
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
					const bool	in = slot < nslots_;
					const uint32_t row = slots[in ? slot : 0];

					first[i] = row - 1;
					count[i] = in && row != 0 && bit_get(valid, i);
				}
				break;
			case Form::Ranges:
				for (uint32_t i = 0; i < n; i++)
				{
					const uint64_t slot = key[i];
					const bool	in = slot < nslots_ && bit_get(valid, i);
					const uint32_t *range = slots + (in ? slot : 0);

					first[i] = range[0];
					count[i] = in ? range[1] - range[0] : 0;
				}
				break;
			default:
				if (narrow_)
					probe_hashed<uint32_t>(key, valid, n, first, count);
				else
					probe_hashed<uint64_t>(key, valid, n, first, count);
				break;
		}
	}
}

}  // namespace gpuvm
