/*
 * cpu_sort_texts.cc: sorts that have texts among their keys (cpu_sort.h).
 *
 * What a text's bytes say of its place depends on a collation, and may be long. So a key of texts has two words
 * of its own: how the value begins (TextOrder::beginning()), which decides most comparisons, then its reference, and
 * where two references differ their values are compared. Comparing is what such a sort's time goes into:
 * parts are chosen by whole rows, so that none is long but for equal ones, and are merged.
 */
#include <algorithm>

#include "core/bits.h"
#include "vm/cpu_join.h"
#include "vm/cpu_sort.h"

namespace gpuvm {

constexpr uint32_t AHEAD = 16;	/* values that are asked for before they are read */
constexpr uint32_t MOST_COPIED = 256;	/* bytes of a value */
constexpr uint64_t MOST_NEAR = 128 * 1024;	/* rows of a part whose values are copied: longer ones are of rows alike */

/* The words of a key of texts, of rows [first, first + n) of a column, nwords a row. */
void
CpuSort::put_texts(uint32_t k, const char *values, const uint64_t *nulls, uint32_t first, uint32_t n, uint64_t *words, uint32_t nwords)
{
	const SortKey &key = keys_.keys[k];
	const TextOrder &order = *texts_[k];
	const uint64_t *references = reinterpret_cast<const uint64_t *>(values);
	const uint32_t w = key.end / 64 - 2;

	if (w >= nwords)
		return;
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t row = first + i;
		const bool	null = bit_get(nulls, row);
		uint64_t	begins = 0;
		TextValue	value;

		if (i + AHEAD < n)
			order.prefetch(references[row + AHEAD]);
		if (!null && !order.value(references[row], &value))
			refused_.store("a text lies outside the arena");
		else if (!null)
			begins = order.beginning(value) ^ (key.desc ? ~uint64_t{0} : 0);
		if (key.may_null)
			begins = uint64_t(null != key.nulls_first) << 63 | (null ? 0 : begins >> 1);
		words[i * nwords + w] = begins;
		if (w + 1 < nwords)
			words[i * nwords + w + 1] = null ? 0 : references[row];
	}
}

/* Then all rows are alike, so that what sorts them is through soon. */
bool
CpuSort::stopped() const
{
	return stop_ != nullptr && stop_->stopped();
}

/* Is the first row before the second? Of words [first, nwords), which are all that is pointed to. */
bool
CpuSort::less(const uint64_t *a, const uint64_t *b, uint32_t first) const
{
	if (!any_texts_)
		return sort_words_less(a, b, keys_.nwords - first);
	for (uint32_t w = first; w < keys_.nwords; w++)
	{
		const uint64_t x = a[w - first], y = b[w - first];
		const int	k = key_of_word_[w];

		if (x == y)
			continue;
		if (k < 0)
			return x < y;
		if (stopped())
			return false;

		const int	cmp = texts_[k]->compare(x, y);

		if (cmp != 0)
			return keys_.keys[k].desc ? cmp > 0 : cmp < 0;
	}
	return false;
}

bool
CpuSort::row_less(const Pair &a, const Pair &b) const
{
	const uint32_t more = keys_.nwords - 1;

	return a.word != b.word ? a.word < b.word : less(ties_.as<uint64_t>() + a.row * more, ties_.as<uint64_t>() + b.row * more, 1);
}

/* Which words are references, when the keys are packed. */
void
CpuSort::find_text_words()
{
	std::fill_n(key_of_word_, SORT_MAX_WORDS, -1);
	for (uint32_t k = 0; k < keys_.n; k++)
		if (keys_.keys[k].text)
			key_of_word_[keys_.keys[k].end / 64 - 1] = static_cast<int>(k);
}

void
CpuSort::choose_rows()
{
	const size_t nparts = size_t{1} << part_bits_;
	std::vector<Pair> sample(nparts * SORT_SAMPLES);
	uint64_t	random = 1;

	for (Pair &row : sample)
	{
		random = random * 6364136223846793005u + 1442695040888963407u;
		row = elements_.as<Pair>()[static_cast<uint64_t>(static_cast<uint128>(random) * nrows_ >> 64)];
	}
	std::stable_sort(sample.begin(), sample.end(), [this](const Pair &a, const Pair &b) { return row_less(a, b); });
	for (size_t i = 1; i < nparts; i++)
		split_rows_.push_back(sample[i * SORT_SAMPLES]);
}

void
CpuSort::classify_rows(Slice &slice)
{
	for (uint64_t i = slice.first; i < slice.end; i++)
	{
		const auto	above = std::upper_bound(split_rows_.begin(), split_rows_.end(), elements_.as<Pair>()[i],
											 [this](const Pair &a, const Pair &b) { return row_less(a, b); });
		const size_t part = static_cast<size_t>(above - split_rows_.begin());

		parts_of_.as<uint16_t>()[i] = static_cast<uint16_t>(part);
		slice.places[part]++;
	}
}

/* ---- a part ------------------------------------------------------------------------------ */

/* A row of a part, with what the first key of texts is compared by beside it. */
struct CpuSort::NearRow
{
	uint64_t	word;			/* the row's first, or more of what tells it from the others */
	const unsigned char *text;	/* its value, a zero behind it; nullptr: null, or too long to be copied */
	uint32_t	len;
	uint32_t	at;				/* in the part */
};

bool
CpuSort::near_less(const NearRow &a, const NearRow &b, const Pair *rows, uint32_t k) const
{
	const uint32_t w = keys_.keys[k].end / 64 - 1, more = keys_.nwords - 1;
	const uint64_t *ties[2] = {ties_.as<uint64_t>() + rows[a.at].row * more, ties_.as<uint64_t>() + rows[b.at].row * more};

	if (a.word != b.word)
		return a.word < b.word;
	if (a.text == nullptr || b.text == nullptr)
		return less(ties[0], ties[1], 1);
	for (uint32_t i = 1; i + 1 < w; i++)
		if (ties[0][i - 1] != ties[1][i - 1])
			return ties[0][i - 1] < ties[1][i - 1];

	if (stopped())
		return false;

	const int	cmp = texts_[k]->compare(TextValue{a.text, a.len}, TextValue{b.text, b.len}, true);

	return cmp != 0 ? (cmp < 0) != keys_.keys[k].desc : less(ties[0] + w, ties[1] + w, w + 1);
}

/* How many bytes all of the values begin with; 0 if some are not here. */
uint32_t
CpuSort::common_bytes(const NearRow *rows, size_t n)
{
	uint32_t	common = rows[0].len;

	for (size_t i = 0; i < n; i++)
	{
		if (rows[i].text == nullptr)
			return 0;

		uint32_t	same = 0;

		while (same < std::min(common, rows[i].len) && rows[i].text[same] == rows[0].text[same])
			same++;
		common = same;
	}
	return common;
}

/* The part's rows with their values, copied to `copies`, which has room; where bytes decide and there is no key before, words are of the first bytes that differ. */
void
CpuSort::bring_near(const Pair *rows, size_t n, uint32_t k, NearRow *near, unsigned char *copies) const
{
	const uint32_t w = keys_.keys[k].end / 64 - 1, more = keys_.nwords - 1;

	for (size_t i = 0; i < n; i++)
	{
		const uint64_t reference = ties_.as<uint64_t>()[rows[i].row * more + w - 1];
		TextValue	value;

		if (i + AHEAD < n)
			texts_[k]->prefetch(ties_.as<uint64_t>()[rows[i + AHEAD].row * more + w - 1]);
		near[i] = NearRow{rows[i].word, nullptr, 0, static_cast<uint32_t>(i)};
		if (!texts_[k]->value(reference, &value) || value.len > MOST_COPIED)
			continue;
		memcpy(copies, value.bytes, value.len);
		copies[value.len] = '\0';
		near[i].text = copies;
		near[i].len = value.len;
		copies += value.len + 1;
	}
	if (w > 1 || !texts_[k]->byte_by_byte())
		return;

	const uint32_t common = common_bytes(near, n);

	for (size_t i = 0; common > 0 && i < n; i++)
		near[i].word = texts_[k]->beginning(TextValue{near[i].text + common, near[i].len - common}) ^ (keys_.keys[k].desc ? ~uint64_t{0} : 0);
}

/*
 * By merging: that asks for the fewest comparisons, and stays within the part whatever they say. Values lie anywhere, and each is read for some
 * fifteen comparisons, so those of the first key are copied side by side.
 */
void
CpuSort::sort_rows(uint32_t part)
{
	Pair	   *rows = order_.as<Pair>() + part_first_[part];
	const size_t n = part_first_[part + 1] - part_first_[part];
	uint32_t	k = 0;

	while (texts_[k] == nullptr)
		k++;
	if (n <= MOST_NEAR)
		try
		{
			const std::vector<Pair> before(rows, rows + n);
			const Pages copies(n * (MOST_COPIED + 1) + VARIABLE_SLACK, false);	/* taken as used */
			std::vector<NearRow> near(n);

			bring_near(rows, n, k, near.data(), copies.as<unsigned char>());
			std::stable_sort(near.begin(), near.end(), [&](const NearRow &a, const NearRow &b) { return near_less(a, b, before.data(), k); });
			for (size_t i = 0; i < n; i++)
				rows[i] = before[near[i].at];
			return;
		}
		catch (const std::bad_alloc &)
		{
			/* then they are compared where they lie */
		}
	std::stable_sort(rows, rows + n, [this](const Pair &a, const Pair &b) { return row_less(a, b); });
}

}  // namespace gpuvm
