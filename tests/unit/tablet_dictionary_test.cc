/* The dictionary's blob: look-ups, growth, families, and the hash that it rests on. */
#include "tablet/dictionary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <unordered_set>
#include <string>
#include <vector>

using namespace gpuvm;

namespace {

/* As a varlena with a 4-byte header has it: its length, shifted, comes first. */
std::string
image(const std::string &text)
{
	uint32_t	header = static_cast<uint32_t>(text.size() + 4) << 2;

	return std::string(reinterpret_cast<const char *>(&header), 4) + text;
}

std::string
padded(const std::string &s)
{
	return s + std::string(dictionary_padded(s.size()) - s.size(), '\0');
}

struct Free
{
	void		operator()(void *p) const { free(p); }
};
using Blob = std::unique_ptr<char, Free>;

uint64_t
bytes_of(const std::vector<std::string> &images)
{
	uint64_t	bytes = 0;

	for (const std::string &i : images)
		bytes += dictionary_padded(i.size());
	return bytes;
}

/* Exactly as many bytes as it should take, so that the sanitizer sees any more. */
Blob
memory(uint32_t nentries, uint64_t bytes)
{
	Blob		blob(static_cast<char *>(malloc(dictionary_size(nentries, bytes))));

	memset(blob.get(), 0x5a, dictionary_size(nentries, bytes));
	return blob;
}

void
append(Dictionary *d, const std::string &i)
{
	dictionary_append(d, padded(i).data(), dictionary_padded(i.size()));
	dictionary_index(d, dictionary_hash(i.data(), i.size()), d->nentries - 1);
}

Blob
make(const std::vector<std::string> &images)
{
	Blob		blob = memory(images.size(), bytes_of(images));
	Dictionary *d = dictionary_begin(blob.get(), images.size(), bytes_of(images));

	for (const std::string &i : images)
		append(d, i);
	return blob;
}

const Dictionary *
of(const Blob &blob)
{
	return reinterpret_cast<const Dictionary *>(blob.get());
}

int32_t
find(const Dictionary *d, const std::string &i)
{
	return dictionary_find(d, i.data(), i.size());
}

void
expect_all(const Dictionary *d, const std::vector<std::string> &images)
{
	ASSERT_EQ(d->nentries, images.size());
	for (uint32_t c = 0; c < images.size(); c++)
	{
		ASSERT_EQ(find(d, images[c]), static_cast<int32_t>(c));
		ASSERT_EQ(memcmp(dictionary_entry(d, c), images[c].data(), images[c].size()), 0);
		ASSERT_EQ((dictionary_entry(d, c) - reinterpret_cast<const char *>(d)) % DICTIONARY_ALIGN, 0u);
	}
}

std::vector<std::string>
random_images(uint32_t n, uint32_t seed, uint32_t max_len)
{
	std::mt19937 random(seed);
	std::unordered_set<std::string> met;
	std::vector<std::string> images;

	while (images.size() < n)
	{
		std::string text(random() % (max_len + 1), '\0');

		for (char &c : text)
			c = static_cast<char>(random() % 3 == 0 ? 0 : random());
		if (met.insert(text).second)
			images.push_back(image(text));
	}
	return images;
}

}  // namespace

TEST(Dictionary, OfNothingFindsNothing)
{
	Blob		blob = make({});

	EXPECT_EQ(of(blob)->nentries, 0u);
	EXPECT_EQ(of(blob)->size, dictionary_size(0, 0));
	EXPECT_EQ(find(of(blob), image("")), NO_CODE);
	EXPECT_EQ(find(of(blob), image("x")), NO_CODE);
}

TEST(Dictionary, FindsEachLengthAroundTheWordsOfTheHash)
{
	std::vector<std::string> images;

	for (int len = 0; len <= 70; len++)
		images.push_back(image(std::string(len, 'a')));
	Blob		blob = make(images);

	expect_all(of(blob), images);
	EXPECT_EQ(find(of(blob), image(std::string(71, 'a'))), NO_CODE);
	for (int len = 1; len <= 70; len++)
		for (int at = 0; at < len; at++)
		{
			std::string other(len, 'a');

			other[at] = 'b';
			ASSERT_EQ(find(of(blob), image(other)), NO_CODE) << len << " " << at;
		}
}

/* What differs only by zeroes at the end has the same padded bytes but for the header. */
TEST(Dictionary, ZeroesAtTheEndCount)
{
	std::vector<std::string> images;

	for (int zeroes = 0; zeroes < 20; zeroes++)
		images.push_back(image(std::string("a") + std::string(zeroes, '\0')));
	Blob		blob = make(images);

	expect_all(of(blob), images);
}

TEST(Dictionary, FixedAndByValueImages)
{
	for (uint32_t len : {6, 8, 12, 16, 64})
	{
		std::vector<std::string> images;

		for (uint64_t v = 0; v < 5000; v++)
		{
			std::string i(len, '\0');
			uint64_t	bits = v * 0x9e3779b97f4a7c15ull;

			memcpy(&i[0], &bits, std::min<size_t>(len, 8));
			images.push_back(i);
		}
		Blob		blob = make(images);

		expect_all(of(blob), images);
	}
}

TEST(Dictionary, RandomValuesAndAsManyThatItHasNot)
{
	for (uint32_t n : {1, 2, 10, 11, 21, 1000, 65536})
	{
		std::vector<std::string> all = random_images(2 * n, n, n < 100 ? 3 : 40);
		std::vector<std::string> images(all.begin(), all.begin() + n);
		Blob		blob = make(images);

		expect_all(of(blob), images);
		EXPECT_GT(of(blob)->nslots, of(blob)->nentries);
		for (uint32_t i = n; i < 2 * n; i++)
			ASSERT_EQ(find(of(blob), all[i]), NO_CODE);
	}
}

/* As a refresh makes it: the entries of the old one and its slots, then more. */
TEST(Dictionary, ALongerOneOfTheFamilyHasTheSameCodes)
{
	std::vector<std::string> images = random_images(7000, 3, 20);
	std::vector<std::string> first(images.begin(), images.begin() + 1500);
	Blob		shorter = make(first);
	Blob		longer = memory(images.size(), bytes_of(images));
	Dictionary *d = dictionary_begin(longer.get(), images.size(), bytes_of(images));

	for (uint32_t c = 0; c < first.size(); c++)
		dictionary_append(d, dictionary_entry(of(shorter), c), dictionary_entry(of(shorter), c + 1) - dictionary_entry(of(shorter), c));
	dictionary_index_all(d, dictionary_at<uint64_t>(of(shorter), of(shorter)->slots), of(shorter)->nslots);
	for (uint32_t c = first.size(); c < images.size(); c++)
		append(d, images[c]);

	expect_all(of(longer), images);
	expect_all(of(shorter), first);
	for (uint32_t c = 0; c < first.size(); c++)
		ASSERT_EQ(memcmp(dictionary_entry(of(shorter), c), dictionary_entry(of(longer), c), first[c].size()), 0);
}

TEST(Dictionary, TwoThirdsOfTheSlotsAtMost)
{
	for (uint32_t n : {0u, 1u, 10u, 11u, 682u, 683u, 1000000u})
	{
		uint32_t	nslots = dictionary_nslots(n);

		EXPECT_EQ(nslots & (nslots - 1), 0u);
		EXPECT_LE(n, nslots / 3 * 2);
		EXPECT_TRUE(nslots == 16 || nslots / 2 / 3 * 2 < n);
	}
}

/* Values that count up, as keys and names in tables do, must not cluster. */
TEST(Dictionary, HashSpreadsValuesThatCountUp)
{
	constexpr uint32_t n = 300000;

	for (int kind = 0; kind < 3; kind++)
	{
		std::vector<std::string> images;
		uint32_t	nslots = dictionary_nslots(n);
		const uint64_t *slots;
		uint32_t	run = 0;
		uint32_t	longest = 0;

		for (uint32_t v = 0; v < n; v++)
		{
			char		text[40];
			uint64_t	bits = kind == 1 ? v : uint64_t{v} << 40;

			snprintf(text, sizeof(text), "Customer#%09u", v);
			images.push_back(kind == 0 ? image(text) : std::string(reinterpret_cast<const char *>(&bits), 8));
		}
		Blob		blob = make(images);

		slots = dictionary_at<uint64_t>(of(blob), of(blob)->slots);
		for (uint32_t i = 0; i < nslots; i++)
		{
			run = slots[i] != 0 ? run + 1 : 0;
			longest = std::max(longest, run);
		}
		/* by chance, with this load: about 100 */
		EXPECT_LT(longest, 400u) << kind;
	}
}
