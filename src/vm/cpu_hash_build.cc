/* cpu_hash_build.cc: a join's table is built by phases of tasks (cpu_hash_table.h). */
#include <algorithm>
#include <cstring>

#include "vm/cpu_hash_table.h"
#include "vm/cpu_sort_rows.h"

namespace gpuvm {

namespace {

constexpr uint32_t BLOCK = CPU_VECTOR_ROWS;
constexpr uint64_t COUNT_SLOTS = 1 << 20;	/* a task */
constexpr uint64_t SMALL_RANGE = 1 << 16;
constexpr uint64_t THIN_RANGE = 1 << 24;	/* most slots where most are empty: still less than a hash and a search for each probe */
constexpr uint64_t BITS_A_ROW = 64;	/* of slots that are bits: still less than other tables take */
constexpr uint64_t FILTER_FROM = 1 << 14;	/* rows, or slots: fewer are in the cache by themselves */
constexpr int PART_BITS = 8;		/* for as many parts as tables of some size have; */
constexpr int SMALL_PART_BITS = 12;	/* smaller ones have parts of so many slots, */
constexpr int LARGE_PART_BITS = 15;	/* larger ones of so many, whose entries are sorted in the cache */
constexpr int FILTER_BITS = 3;	/* of the filter a slot, as a power of two */
constexpr uint32_t SHORT_SLOT = 16;
constexpr uint32_t SAMPLES = 4096;	/* of which every SAMPLE_STEPth parts a sorted table */
constexpr uint32_t SAMPLE_STEP = 16;
constexpr uint64_t HUGE_FROM = 4 << 20;

Pages
pages(uint64_t bytes)
{
	return Pages(bytes, bytes >= HUGE_FROM);
}

bool
is_slot_type(Type t)
{
	return t == Type::Bool || type_is_int(t);
}

}  // namespace

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

	if (sorted_)
	{
		form_ = Form::Sorted;
		narrow_ = short_key_;
		return;
	}

	const uint64_t range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;

	lo_ = static_cast<uint64_t>(lo);
	if (exists_only_ && keys_.size() == 1 && is_slot_type(keys_[0].type) && range != 0 && range <= std::max(SMALL_RANGE, BITS_A_ROW * nvalid_))
	{
		nslots_ = range;
		form_ = Form::Bits;
		return;
	}
	if (keys_.size() == 1 && is_slot_type(keys_[0].type) && range != 0
		&& (range <= std::max(SMALL_RANGE, 4 * nvalid_) || (!compact_ && range <= THIN_RANGE && range <= 16 * nvalid_)))
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

/* Which keys there are. Neighbours mostly have neighbours' keys. */
void
JoinTable::task_bits(uint32_t number)
{
	const JoinRun &run = runs_[number];
	uint64_t   *bits = filter_.as<uint64_t>();
	uint64_t	keys[BLOCK], valid[BLOCK / 64];
	uint64_t	at = 0, word = 0;
	const auto	put = [&]
	{
		if ((__atomic_load_n(bits + at, __ATOMIC_RELAXED) & word) != word)
			__atomic_fetch_or(bits + at, word, __ATOMIC_RELAXED);
	};

	for (uint32_t done = 0; done < run.n; done += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, run.n - done);

		keys_of(keys_.data(), run.at + done, n, keys, valid);
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t slot = keys[i] - lo_;

			if (!bit_get(valid, i))
				continue;
			if (slot / 64 != at)
			{
				put();
				at = slot / 64;
				word = 0;
			}
			word |= uint64_t(1) << slot % 64;
		}
	}
	put();
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
	part_shift_ = std::clamp(slot_bits - PART_BITS, SMALL_PART_BITS, LARGE_PART_BITS);
	nparts_ = static_cast<uint32_t>((nslots_ - 1) >> part_shift_) + 1;
	starts_.assign(runs_.size() * nparts_, 0);
	part_first_.assign(nparts_ + 1, 0);
	slots_ = pages((nslots_ + 1) * sizeof(uint32_t));
	entries_ = pages((nvalid_ + JOIN_WINDOW) * entry_bytes());
	bytes_ = (nslots_ + 1) * sizeof(uint32_t);
	if (filter_.as<uint64_t>())
		bytes_ += nslots_ / 8;
	if (form_ == Form::Ranges)
	{
		order_ = pages(nvalid_ * sizeof(uint32_t));
		bytes_ += nvalid_ * sizeof(uint32_t);
		temporary_ = nvalid_ * entry_bytes();
	}
	else
	{
		memset(entries_.as<char>() + nvalid_ * entry_bytes(), 0xff, JOIN_WINDOW * entry_bytes());
		bytes_ += (nvalid_ + JOIN_WINDOW) * entry_bytes();
		if (nvalid_ >= FILTER_FROM)
		{
			/* parts share no word of it */
			const int	bits = slot_bits + FILTER_BITS;

			filter_shift_ = (narrow_ ? 32 : 64) - std::min(bits, narrow_ ? 32 : 64);
			filter_ = pages(uint64_t(1) << (bits - 3));
			bytes_ += uint64_t(1) << (bits - 3);
		}
	}
	counted_.assign(nparts_, 0);
}

/*
 * A sorted table is parted by values of a sample, each of which has a part of its own: what
 * many rows have needs no sorting.
 */
void
JoinTable::begin_sorting()
{
	std::vector<uint64_t> sample;
	uint64_t	rows = 0, at = 0;

	for (const JoinRun &run : runs_)
		rows += run.n;

	const uint64_t step = std::max<uint64_t>(1, rows / SAMPLES);

	for (const JoinRun &run : runs_)
	{
		for (; at < run.n; at += step)
		{
			uint64_t	key, valid[BLOCK / 64];

			keys_of(keys_.data(), run.at + at, 1, &key, valid);
			if (valid[0] & 1)
				sample.push_back(key);
		}
		at -= run.n;
	}
	std::sort(sample.begin(), sample.end());
	for (size_t i = SAMPLE_STEP / 2; i < sample.size(); i += SAMPLE_STEP)
		if (splitters_.empty() || splitters_.back() != sample[i])
			splitters_.push_back(sample[i]);
	nparts_ = 2 * static_cast<uint32_t>(splitters_.size()) + 1;
	starts_.assign(runs_.size() * nparts_, 0);
	part_first_.assign(nparts_ + 1, 0);
	order_ = pages(nvalid_ * sizeof(uint32_t));
	hashes_ = pages(nvalid_ * code_bytes());
	bytes_ = nvalid_ * (code_bytes() + sizeof(uint32_t));
}

uint32_t
JoinTable::part_of(uint64_t code) const
{
	if (form_ != Form::Sorted)
		return static_cast<uint32_t>(slot_of(code) >> part_shift_);

	/* how many are below, without a branch */
	size_t		at = 0;

	for (size_t left = splitters_.size(); left > 0;)
	{
		const size_t half = (left + 1) / 2;

		at += half & -static_cast<size_t>(splitters_[at + half - 1] < code);
		left -= half;
	}
	return 2 * static_cast<uint32_t>(at) + (at < splitters_.size() && splitters_[at] == code);
}

template <typename Code>
void
JoinTable::task_histogram(uint32_t number, bool scatter)
{
	const JoinRun &run = runs_[number];
	uint32_t   *starts = &starts_[size_t(number) * nparts_];
	JoinEntry<Code> *entries = entries_.as<JoinEntry<Code>>();
	Code	   *to_codes = hashes_.as<Code>();
	uint32_t   *to_rows = order_.as<uint32_t>();
	uint64_t	keys[BLOCK], valid[BLOCK / 64];

	for (uint32_t done = 0; done < run.n; done += BLOCK)
	{
		const uint32_t n = std::min(BLOCK, run.n - done);

		keys_of(keys_.data(), run.at + done, n, keys, valid);
		for (uint32_t i = 0; i < n; i++)
		{
			if (!bit_get(valid, i))
				continue;

			const uint32_t at = starts[part_of(keys[i])]++;

			if (!scatter)
				continue;

			const Code	code = static_cast<Code>(keys[i]);
			const uint32_t row = static_cast<uint32_t>(run.at + done + i);

			if (form_ != Form::Sorted)
				entries[at] = {code, row};
			else
			{
				to_codes[at] = code;
				to_rows[at] = row;
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

	/* what sorts the largest part aside */
	if (form_ == Form::Hashed)
		for (uint32_t p = 0; p < nparts_; p++)
			temporary_ = std::max(temporary_, (part_first_[p + 1] - part_first_[p]) * (code_bytes() + sizeof(uint32_t)));
}

template <typename Code>
void
JoinTable::task_part(uint32_t part, JoinStop *stop)
{
	if (form_ == Form::Sorted)
	{
		RowSort<Code> sort(hashes_.as<Code>(), order_.as<uint32_t>(), stop);

		if (part % 2 == 0)
			sort.run(part_first_[part], part_first_[part + 1]);
		return;
	}

	const uint64_t first_slot = uint64_t(part) << part_shift_;
	const uint64_t end_slot = std::min(nslots_, first_slot + (uint64_t(1) << part_shift_));
	const uint32_t first = part_first_[part], end = part_first_[part + 1];
	const bool	hashed = form_ == Form::Hashed;
	JoinEntry<Code> *entries = entries_.as<JoinEntry<Code>>();
	uint32_t   *slots = slots_.as<uint32_t>();
	uint32_t   *order = order_.as<uint32_t>();
	std::vector<uint32_t> at(end_slot - first_slot);
	uint32_t	next = first, most = 0;

	for (uint32_t i = first; i < end; i++)
		at[slot_of(entries[i].code) - first_slot]++;
	for (uint64_t s = first_slot; s < end_slot; s++)
	{
		const uint32_t n = at[s - first_slot];

		slots[s] = at[s - first_slot] = next;
		next += n;
		most = std::max(most, n);
	}
	if (end_slot == nslots_)
		slots[nslots_] = next;
	if (!hashed)
		for (uint32_t i = first; i < end; i++)
			order[at[slot_of(entries[i].code) - first_slot]++] = entries[i].row;
	else
	{
		/* in the cache, and back to where they were */
		std::vector<Code> codes(end - first);
		std::vector<uint32_t> rows(end - first);
		RowSort<Code> sort(codes.data(), rows.data(), stop);
		const bool	is_short = most <= SHORT_SLOT;
		uint32_t	equal = 1;

		for (uint32_t i = first; i < end; i++)
		{
			const uint32_t to = at[slot_of(entries[i].code) - first_slot]++ - first;

			codes[to] = entries[i].code;
			rows[to] = entries[i].row;
		}
		if (filter_.as<uint64_t>())
			for (Code code : codes)
				bit_set(filter_.as<uint64_t>(), code >> filter_shift_);
		if (is_short)
			sort.insert(0, end - first);	/* nothing goes further than its slot is long */
		else
			for (uint64_t s = first_slot; s < end_slot; s++)
				sort.run(slots[s] - first, (s + 1 < end_slot ? slots[s + 1] : next) - first);
		most = end > first ? 1 : 0;
		for (uint32_t i = 1; i < end - first; i++)
		{
			equal = codes[i] == codes[i - 1] ? equal + 1 : 1;
			most = std::max(most, equal);
		}
		for (uint32_t i = first; i < end; i++)
			entries[i] = {codes[i - first], rows[i - first]};
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
			if (form_ == Form::Bits)
			{
				filter_ = pages(align_up(nslots_, 64) / 8);
				bytes_ = align_up(nslots_, 64) / 8;
				phase_ = Phase::Unique;
				return nruns;
			}
			if (form_ == Form::Hashed || form_ == Form::Sorted)
			{
				if (form_ == Form::Sorted)
					begin_sorting();
				else
					begin_parts();
				phase_ = Phase::Histogram;
				return nruns;
			}
			phase_ = Phase::Done;
			return 0;
		case Phase::Unique:
			if (form_ == Form::Bits)
			{
				phase_ = Phase::Done;
				return 0;
			}
			phase_ = Phase::Count;
			if (nslots_ >= FILTER_FROM && nslots_ >= 2 * nvalid_)
			{
				filter_ = pages(align_up(nslots_, 64) / 8);
				bytes_ += nslots_ / 8;
			}
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
				slots_ = Pages();
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
			max_matches_ = static_cast<uint32_t>(form_ == Form::Sorted ? nvalid_ : *std::max_element(counted_.begin(), counted_.end()));
			if (form_ == Form::Ranges)
				entries_ = Pages();
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
JoinTable::run_task(uint32_t task, JoinStop *stop)
{
	switch (phase_)
	{
		case Phase::Keys:
			task_keys(task);
			break;
		case Phase::Unique:
			if (form_ == Form::Bits)
				task_bits(task);
			else
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
				if (uint64_t *filter = filter_.as<uint64_t>())
					for (uint64_t s = task * COUNT_SLOTS; s < end; s++)
						filter[s / 64] |= static_cast<uint64_t>(slots[s] != 0) << s % 64;
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
				task_part<uint32_t>(task, stop);
			else
				task_part<uint64_t>(task, stop);
			break;
		case Phase::Done:
			break;
	}
}

}  // namespace gpuvm
