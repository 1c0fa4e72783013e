/* A dictionary that several threads fill: one code a value, whoever met it first. */
#include "tablet/dictionary_builder.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace gpuvm;

namespace {

/* An address space like the arena's; what is handed out is full of rubbish. */
constexpr uint64_t SPACE = uint64_t{1} << 30;

struct Arena
{
	char	   *base = static_cast<char *>(mmap(nullptr, SPACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	uint64_t	next = BUILDER_PAGE;
	uint64_t	end = SPACE;
	uint64_t	allocations = 0;

	~Arena() { munmap(base, SPACE); }
};

std::unique_ptr<Arena> arena;

uint64_t
take(uint64_t size)
{
	uint64_t	offset = arena->next;

	size = (size + BUILDER_PAGE - 1) / BUILDER_PAGE * BUILDER_PAGE;
	if (offset + size > arena->end)
		return 0;
	memset(arena->base + offset, 0x5a, size);
	arena->next += size;
	arena->allocations++;
	return offset;
}

class Builder
{
public:
	explicit Builder(uint64_t base = 0)
	{
		builder = reinterpret_cast<DictionaryBuilder *>(arena->base + take(sizeof(DictionaryBuilder)));
		memset(static_cast<void *>(builder), 0, sizeof(*builder));
		arena->allocations = 0;
		builder->base = base;
		if (base != 0)
		{
			const Dictionary *d = reinterpret_cast<const Dictionary *>(arena->base + base);

			builder->base_entries = d->nentries;
			builder->base_bytes = d->bytes;
		}
	}

	/* As store/dictionary.cc does it, counted from 0 behind the base. */
	int32_t code(const std::string &image)
	{
		uint32_t	hash = dictionary_hash(image.data(), image.size());
		int32_t		found = builder_find(arena->base, builder, image.data(), image.size(), hash);

		if (found != NO_CODE)
			return found;
		std::lock_guard<std::mutex> guard(lock);

		found = builder_find(arena->base, builder, image.data(), image.size(), hash);
		if (found != NO_CODE)
			return found;
		return builder_insert({arena->base, take}, builder, image.data(), image.size(), hash);
	}

	uint64_t seal()
	{
		uint64_t	offset = take(builder_size(builder));

		EXPECT_EQ(builder_write(arena->base, builder, arena->base + offset)->size, builder_size(builder));
		return offset;
	}

	DictionaryBuilder *builder;
	std::mutex	lock;
};

const Dictionary *
at(uint64_t offset)
{
	return reinterpret_cast<const Dictionary *>(arena->base + offset);
}

std::string
image(uint64_t value, uint32_t longest)
{
	std::string text = std::to_string(value * 0x9e3779b97f4a7c15ull);
	uint32_t	header;

	if (longest > 0)
		text.resize(value * 2654435761u % (longest + 1) + text.size(), static_cast<char>(value));
	header = static_cast<uint32_t>(text.size() + 4) << 2;
	return std::string(reinterpret_cast<const char *>(&header), 4) + text;
}

void
expect_sealed(const Dictionary *d, const std::vector<std::string> &by_code)
{
	ASSERT_EQ(d->nentries, by_code.size());
	for (uint32_t c = 0; c < by_code.size(); c++)
	{
		ASSERT_EQ(dictionary_find(d, by_code[c].data(), by_code[c].size()), static_cast<int32_t>(c));
		ASSERT_EQ(memcmp(dictionary_entry(d, c), by_code[c].data(), by_code[c].size()), 0);
	}
}

class DictionaryBuilderTest : public testing::Test
{
protected:
	void SetUp() override { arena.reset(new Arena); }
	void TearDown() override { arena.reset(); }
};

}  // namespace

TEST_F(DictionaryBuilderTest, CodesCountUpAndAnEmptyOneSeals)
{
	Builder		b;
	std::vector<std::string> images;

	EXPECT_EQ(builder_find(arena->base, b.builder, "abcd", 4, dictionary_hash("abcd", 4)), NO_CODE);
	expect_sealed(at(b.seal()), {});
	for (uint32_t v = 0; v < 50000; v++)
	{
		images.push_back(image(v, v % 100 == 0 ? 3000 : 0));
		ASSERT_EQ(b.code(images.back()), static_cast<int32_t>(v));
		ASSERT_EQ(b.code(images[v / 2]), static_cast<int32_t>(v / 2));
	}
	expect_sealed(at(b.seal()), images);
}

TEST_F(DictionaryBuilderTest, ThreadsAgreeOnEveryCode)
{
	constexpr int nthreads = 4;
	constexpr uint32_t nvalues = 30000;
	constexpr uint32_t ncalls = 100000;
	Builder		b;
	std::vector<std::string> images;
	std::vector<std::vector<int32_t>> met(nthreads, std::vector<int32_t>(nvalues, NO_CODE));
	std::vector<std::thread> threads;
	std::atomic<int> wrong{0};

	for (uint32_t v = 0; v < nvalues; v++)
		images.push_back(image(v, 40));
	for (int t = 0; t < nthreads; t++)
		threads.emplace_back([&, t] {
			std::mt19937 random(t);

			for (uint32_t i = 0; i < ncalls; i++)
			{
				/* all threads are at about the same values, most of them new */
				uint32_t	v = static_cast<uint64_t>(i) * nvalues / ncalls + random() % 64;
				int32_t		code;

				v = v < nvalues ? v : nvalues - 1;
				code = b.code(images[v]);
				if (code < 0 || (met[t][v] != NO_CODE && met[t][v] != code))
					wrong++;
				met[t][v] = code;
			}
		});
	for (std::thread &t : threads)
		t.join();
	ASSERT_EQ(wrong, 0);

	std::vector<std::string> by_code(b.builder->nadded);
	std::vector<int32_t> codes(nvalues, NO_CODE);

	for (int t = 0; t < nthreads; t++)
		for (uint32_t v = 0; v < nvalues; v++)
		{
			if (met[t][v] == NO_CODE)
				continue;
			ASSERT_TRUE(codes[v] == NO_CODE || codes[v] == met[t][v]);
			codes[v] = met[t][v];
			by_code[codes[v]] = images[v];
		}
	expect_sealed(at(b.seal()), by_code);
}

TEST_F(DictionaryBuilderTest, GoesOnFromADictionary)
{
	Builder		first;
	std::vector<std::string> images;
	uint64_t	base;

	for (uint32_t v = 0; v < 3000; v++)
	{
		images.push_back(image(v, 10));
		first.code(images.back());
	}
	base = first.seal();

	Builder		second(base);

	for (uint32_t v = 3000; v < 9000; v++)
	{
		images.push_back(image(v, 10));
		ASSERT_EQ(second.code(images.back()), static_cast<int32_t>(v - 3000));
	}
	expect_sealed(at(second.seal()), images);
	images.resize(3000);
	expect_sealed(at(base), images);
}

/* As full as a dictionary may be, by the number of entries, of the shortest and of the longest. */
TEST_F(DictionaryBuilderTest, HasRoomForWhatTheLimitsAllow)
{
	{
		Builder		b;

		for (uint32_t v = 0; v < DICTIONARY_MAX_ENTRIES; v++)
		{
			uint64_t	bits = v;

			ASSERT_EQ(b.code(std::string(reinterpret_cast<const char *>(&bits), 8)), static_cast<int32_t>(v));
		}
		EXPECT_LT(b.builder->nsegments, BUILDER_MAX_SEGMENTS);
		EXPECT_EQ(at(b.seal())->nentries, DICTIONARY_MAX_ENTRIES);
	}
	SetUp();
	{
		Builder		b;
		uint32_t	n = 0;

		/* a chunk loses nearly an entry's room at its end each time */
		for (; (n + 1) * uint64_t{DICTIONARY_MAX_IMAGE} <= DICTIONARY_MAX_BYTES; n++)
		{
			std::string i(DICTIONARY_MAX_IMAGE, 'x');
			uint32_t	header = DICTIONARY_MAX_IMAGE << 2;

			memcpy(&i[0], &header, 4);
			memcpy(&i[4], &n, 4);
			ASSERT_EQ(b.code(i), static_cast<int32_t>(n));
		}
		EXPECT_LT(b.builder->nsegments, BUILDER_MAX_SEGMENTS);
		EXPECT_EQ(at(b.seal())->nentries, n);
	}
}

/* Wherever memory ends, what is in stays found, and nothing is in by half. */
TEST_F(DictionaryBuilderTest, MemoryThatEndsChangesNothing)
{
	int			stops = 0;

	for (uint64_t pages = 0; pages < 40; pages++)
	{
		SetUp();
		Builder		b;
		uint32_t	n = 0;

		arena->end = arena->next + pages * BUILDER_PAGE;
		while (n < 20000 && b.code(image(n, 20)) != NO_CODE)
			n++;
		stops += n < 20000;
		ASSERT_EQ(static_cast<uint64_t>(b.builder->nsegments), arena->allocations);
		for (uint32_t v = 0; v < n; v++)
			ASSERT_EQ(b.code(image(v, 20)), static_cast<int32_t>(v));
		arena->end = SPACE;
		EXPECT_EQ(b.builder->nadded, n);
		ASSERT_EQ(b.code(image(n, 20)), static_cast<int32_t>(n));
	}
	EXPECT_GT(stops, 5);
}
