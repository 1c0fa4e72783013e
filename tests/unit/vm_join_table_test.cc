/* vm_join_table_test.cc: what probes of a join's table find, against all pairs compared: forms, long slots, hashes at the ends. */
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "vm/cpu_hash_table.h"
#include "vm/join_keys.h"

using namespace gpuvm;

namespace {

/* The keys whose hash is `code`. */
uint64_t
unmix(uint64_t code)
{
	uint64_t	inverse = 1;

	/* Newton's steps, each of which has twice as many right bits */
	for (int i = 0; i < 7; i++)
		inverse *= 2 - 0xd6e8feb86659fd93u * inverse;
	code ^= code >> 32;
	code *= inverse;
	code ^= code >> 32;
	code *= inverse;
	return code ^ code >> 32;
}

uint32_t
inverse_of(uint32_t factor)
{
	uint32_t	inverse = 1;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	return inverse;
}

uint32_t
unmix(uint32_t code)
{
	code ^= code >> 16;
	code *= inverse_of(0x846ca68bu);
	code ^= code >> 15 ^ code >> 30;
	code *= inverse_of(0x7feb352du);
	return code ^ code >> 16;
}

template <typename V>
constexpr Type key_type = sizeof(V) == 8 ? Type::I64 : Type::I32;

/* Builds a table of the inner keys (every seventh null, if `nulls`) and compares what each outer key finds, rows and their order. */
template <typename V>
void
check(const std::vector<V> &inner, const std::vector<V> &outer, bool nulls = false)
{
	const uint32_t n = static_cast<uint32_t>(inner.size());
	std::vector<uint64_t> inner_nulls(n / 64 + 1), outer_nulls(outer.size() / 64 + 1);
	std::map<V, std::vector<uint32_t>> rows;
	std::vector<JoinRun> runs;
	std::vector<uint32_t> first(outer.size()), count(outer.size());
	JoinTable	table;
	uint32_t	most = 0;
	bool		missing = false;

	for (uint32_t i = 0; i < n; i++)
		if (nulls && i % 7 == 3)
			bit_set(inner_nulls.data(), i);
		else
			rows[inner[i]].push_back(i);
	for (size_t i = 0; nulls && i < outer.size(); i += 5)
		bit_set(outer_nulls.data(), i);
	for (uint32_t at = 0; at < n; at += 10000)
		runs.push_back(JoinRun{at, std::min(10000u, n - at)});
	table.set_rows({JoinColumn{key_type<V>, reinterpret_cast<const char *>(inner.data()), nulls ? inner_nulls.data() : nullptr}}, runs);
	while (const uint32_t tasks = table.begin_phase())
		for (uint32_t i = tasks; i-- > 0;)
			table.run_task(i);
	for (const auto &[key, of] : rows)
		most = std::max(most, static_cast<uint32_t>(of.size()));
	EXPECT_TRUE(table.exact());
	EXPECT_GE(table.max_matches(), most);

	for (int round = 0; round < 2; round++)	/* with and, if little was found, without the filter's bits */
		for (size_t at = 0; at < outer.size(); at += 2000)
		{
			/* a null's bits begin with a word */
			const uint32_t m = static_cast<uint32_t>(std::min<size_t>(1984, outer.size() - at));
			const JoinColumn keys = {key_type<V>, reinterpret_cast<const char *>(outer.data() + at), nullptr};

			table.probe(&keys, m, &missing, first.data(), count.data());
			for (uint32_t i = 0; i < m; i++)
			{
				const auto	found = rows.find(outer[at + i]);
				std::vector<uint32_t> got;

				for (uint32_t j = 0; j < count[i]; j++)
					got.push_back(table.order() ? table.order()[first[i] + j] : first[i] + j);
				ASSERT_EQ(got, found == rows.end() ? std::vector<uint32_t>() : found->second) << "key " << outer[at + i] << " of " << n;
			}
		}
	if (!nulls || outer.empty())
		return;

	/* nulls find nothing */
	const uint32_t m = static_cast<uint32_t>(std::min<size_t>(2048, outer.size()));
	const JoinColumn keys = {key_type<V>, reinterpret_cast<const char *>(outer.data()), outer_nulls.data()};

	table.probe(&keys, m, &missing, first.data(), count.data());
	for (uint32_t i = 0; i < m; i++)
	{
		const auto	found = rows.find(outer[i]);

		ASSERT_EQ(count[i], i % 5 == 0 || found == rows.end() ? 0 : found->second.size());
	}
}

template <typename V>
void
check_forms()
{
	std::mt19937_64 rng(7);

	for (uint32_t n : {0u, 1u, 5u, 64u, 5000u, 70000u})
		for (uint64_t values : {uint64_t(1), uint64_t(3), uint64_t(n / 40 + 1), uint64_t(n / 3 + 1), uint64_t(n) + 1, UINT64_MAX})
			for (bool spread : {false, true})
			{
				std::vector<V> inner, outer;
				auto		value = [&] { return static_cast<V>((rng() % values) * (spread ? 0x9e3779b97f4a7c15u : 1)); };

				for (uint32_t i = 0; i < n; i++)
					inner.push_back(value());
				for (uint32_t i = 0; i < (values < 100 ? 40 : 3000); i++)
					outer.push_back(i % 3 == 0 && n > 0 ? inner[rng() % n] : value());
				check(inner, outer);
				check(inner, outer, true);
			}
}

/* All codes close to `end`, few to many of them, some several times: all in one slot, the first or the last one. */
template <typename V, typename Code>
void
check_end(Code end, int direction)
{
	for (uint32_t distinct : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 300u})
		for (uint32_t times : {1u, 2u, 4u, 5u, 40u})
		{
			std::vector<V> inner, outer;

			for (uint32_t t = 0; t < times; t++)
				for (uint32_t d = 0; d < distinct; d++)
					inner.push_back(static_cast<V>(unmix(static_cast<Code>(end + static_cast<Code>(direction) * 2 * d))));
			for (uint32_t d = 0; d < 2 * distinct + 3; d++)
				outer.push_back(static_cast<V>(unmix(static_cast<Code>(end + static_cast<Code>(direction) * d))));
			/* as many elsewhere */
			check(inner, outer);
			for (uint32_t i = 0; i < distinct; i++)
				inner.push_back(static_cast<V>(unmix(static_cast<Code>(static_cast<Code>(i) << (8 * sizeof(Code) - 10)))));
			check(inner, outer);
		}
}

}  // namespace

TEST(JoinTable, FormsOfWideKeys)
{
	check_forms<int64_t>();
}

TEST(JoinTable, FormsOfNarrowKeys)
{
	check_forms<int32_t>();
}

TEST(JoinTable, HashesAtTheEnds)
{
	ASSERT_EQ(mix(unmix(uint64_t(0x123456789abcdef))), 0x123456789abcdefu);
	ASSERT_EQ(mix(unmix(0x89abcdefu)), 0x89abcdefu);
	check_end<int64_t, uint64_t>(UINT64_MAX, -1);
	check_end<int64_t, uint64_t>(0, 1);
	check_end<int32_t, uint32_t>(UINT32_MAX, -1);
	check_end<int32_t, uint32_t>(0, 1);
}
