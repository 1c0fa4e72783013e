/*
 * Sorting: keys as words against a comparison that says PostgreSQL's rules in its own words, and the CPU's sort
 * of many rows, by several threads, against std::stable_sort.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "core/bits.h"
#include "spill_to_memory.h"
#include "vm/code_map.h"
#include "vm/cpu_sort.h"
#include "vm/memory_budget.h"

using namespace gpuvm;

namespace {

using Rng = std::mt19937_64;

const Type	ALL_TYPES[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64, Type::I128};

/* A column of results, as an area has it. */
struct Values
{
	Type		type;
	std::vector<char> bytes;
	std::vector<bool> nulls;

	const char *at(size_t row) const { return bytes.data() + row * static_cast<size_t>(type_width(type)); }
	template <typename T> T get(size_t row) const
	{
		T			v;

		memcpy(&v, at(row), sizeof(v));
		return v;
	}
};

template <typename F>
int
compare_floats(F a, F b)
{
	if (std::isnan(a) || std::isnan(b))
		return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
	return (a > b) - (a < b);
}

template <typename T>
int
compare_numbers(T a, T b)
{
	return (a > b) - (a < b);
}

int
compare_values(const Values &values, size_t a, size_t b)
{
	switch (values.type)
	{
		case Type::Bool: return compare_numbers(values.get<uint8_t>(a), values.get<uint8_t>(b));
		case Type::I16: case Type::I32: return compare_numbers(values.get<int32_t>(a), values.get<int32_t>(b));
		case Type::I64: return compare_numbers(values.get<int64_t>(a), values.get<int64_t>(b));
		case Type::F32: return compare_floats(values.get<float>(a), values.get<float>(b));
		case Type::F64: return compare_floats(values.get<double>(a), values.get<double>(b));
		default: return compare_numbers(values.get<int128>(a), values.get<int128>(b));
	}
}

/* What a code is ranked as; null: nothing. */
struct Ranks
{
	Type		type;
	std::vector<int64_t> ranks;
	std::vector<bool> none;
	std::vector<char> bytes;
	std::vector<uint64_t> bits;
	CodeMap		map;

	void finish()
	{
		bits.assign(ranks.size() / 64 + 1, 0);
		for (size_t i = 0; i < ranks.size(); i++)
		{
			const int32_t narrow = static_cast<int32_t>(ranks[i]);

			if (type == Type::I64)
				bytes.insert(bytes.end(), reinterpret_cast<const char *>(&ranks[i]), reinterpret_cast<const char *>(&ranks[i] + 1));
			else
				bytes.insert(bytes.end(), reinterpret_cast<const char *>(&narrow), reinterpret_cast<const char *>(&narrow + 1));
			if (none[i])
				bit_set(bits.data(), i);
		}
		map = CodeMap{type, false, static_cast<uint32_t>(ranks.size()), bytes.data(),
					  std::count(none.begin(), none.end(), true) > 0 ? bits.data() : nullptr, {}};
		map.range = map_range(map, 0, map.nentries);
	}

	bool null(int32_t code) const { return code < 0 || static_cast<size_t>(code) >= ranks.size() || none[static_cast<size_t>(code)]; }
};

struct Order
{
	SortColumn	column;
	const Ranks *ranks = nullptr;
};

int
compare_rows(const std::vector<Values> &columns, const std::vector<Order> &order, size_t a, size_t b)
{
	for (const Order &by : order)
	{
		const Values &values = columns[by.column.column];
		bool		an = values.nulls[a], bn = values.nulls[b];

		if (by.ranks != nullptr)
		{
			an = an || by.ranks->null(values.get<int32_t>(a));
			bn = bn || by.ranks->null(values.get<int32_t>(b));
		}
		if (an && bn)
			continue;
		if (an || bn)
			return an == by.column.nulls_first ? -1 : 1;

		const int	cmp = by.ranks == nullptr ? compare_values(values, a, b)
			: compare_numbers(by.ranks->ranks[static_cast<size_t>(values.get<int32_t>(a))], by.ranks->ranks[static_cast<size_t>(values.get<int32_t>(b))]);

		if (cmp != 0)
			return by.column.desc ? -cmp : cmp;
	}
	return 0;
}

enum class Spread { Few, Narrow, Any, Outlier, One };

template <typename T>
void
append(Values *values, T v)
{
	values->bytes.insert(values->bytes.end(), reinterpret_cast<const char *>(&v), reinterpret_cast<const char *>(&v + 1));
}

void
append_random(Values *values, Spread spread, Rng &rng)
{
	static const double specials[] = {0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY, 1e-300, -1e-300, 1, -1, 5e-324, 1.7e308, -1.7e308};
	const uint64_t word = rng();
	int64_t		v = 0;
	double		d = 0;

	switch (spread)
	{
		case Spread::Few: v = static_cast<int64_t>(word % 4) - 2; d = specials[word % 13]; break;
		case Spread::Narrow: v = static_cast<int64_t>(word % 5000) - 1234; d = static_cast<double>(v) / 8; break;
		case Spread::Any:
			v = static_cast<int64_t>(word);
			memcpy(&d, &word, sizeof(d));
			break;
		case Spread::Outlier: v = word % 1000 == 0 ? INT64_MAX : static_cast<int64_t>(word % 100000); d = word % 1000 == 0 ? INFINITY : static_cast<double>(v); break;
		case Spread::One: v = 7; d = 7; break;
	}
	switch (values->type)
	{
		case Type::Bool: append<uint8_t>(values, v & 1); break;
		case Type::I16: append<int32_t>(values, static_cast<int16_t>(v)); break;
		case Type::I32: append<int32_t>(values, static_cast<int32_t>(v)); break;
		case Type::I64: append<int64_t>(values, v); break;
		case Type::F32: append<float>(values, static_cast<float>(d)); break;
		case Type::F64: append<double>(values, d); break;
		default: append<int128>(values, spread == Spread::Any ? static_cast<int128>(static_cast<uint128>(word) << 64 | rng()) : int128(v)); break;
	}
	values->nulls.push_back(false);
}

std::vector<Values>
random_columns(const std::vector<Type> &types, size_t nrows, Rng &rng)
{
	std::vector<Values> columns;

	for (Type type : types)
	{
		const Spread spread = static_cast<Spread>(rng() % 5);
		const uint64_t nulls = rng() % 3 == 0 ? 1 + rng() % 4 : 0;
		Values		values{type, {}, {}};

		for (size_t i = 0; i < nrows; i++)
		{
			append_random(&values, spread, rng);
			values.nulls.back() = nulls > 0 && rng() % (nulls * nulls) == 0;
		}
		columns.push_back(std::move(values));
	}
	return columns;
}

Ranks
random_ranks(Rng &rng)
{
	Ranks		ranks{rng() % 2 ? Type::I32 : Type::I64, {}, {}, {}, {}, {}};
	const uint64_t gaps = rng() % 2;

	for (uint64_t n = rng() % 3 == 0 ? 0 : rng() % 300; n > 0; n--)
	{
		ranks.ranks.push_back(static_cast<int64_t>(rng() % 1000) - 500);
		ranks.none.push_back(gaps && rng() % 8 == 0);
	}
	ranks.finish();
	return ranks;
}

std::vector<Order>
random_order(const std::vector<Values> &columns, const Ranks &ranks, Rng &rng)
{
	std::vector<Order> order;

	for (uint64_t n = 1 + rng() % (rng() % 4 == 0 ? 8 : 2); n > 0; n--)
	{
		const uint32_t column = static_cast<uint32_t>(rng() % columns.size());
		const bool	ranked = columns[column].type == Type::I32 && rng() % 2;

		order.push_back(Order{SortColumn{column, rng() % 2 == 0, rng() % 2 == 0, ranked ? &ranks.map : nullptr}, ranked ? &ranks : nullptr});
	}
	return order;
}

/* The words of every row, a row at a time. */
std::vector<uint64_t>
words_of(const SortKeys &keys, const std::vector<Values> &columns, size_t nrows)
{
	std::vector<uint64_t> words(nrows * keys.nwords);

	for (size_t i = 0; i < nrows; i++)
		for (uint32_t k = 0; k < keys.n; k++)
			for (uint32_t w = 0; w < keys.nwords; w++)
				words[i * keys.nwords + w] |= sort_key_word(keys.keys[k], columns[keys.keys[k].column].at(i), columns[keys.keys[k].column].nulls[i], w);
	return words;
}

/* Packed for all that types may hold, and for just what is there: the words' order is the rows'. */
TEST(SortKeys, WordsCompareAsRows)
{
	for (uint64_t seed = 0; seed < 400; seed++)
	{
		Rng			rng(seed);
		std::vector<Type> types;

		for (uint64_t n = 1 + rng() % 4; n > 0; n--)
			types.push_back(ALL_TYPES[rng() % 7]);

		const size_t nrows = 60;
		const std::vector<Values> columns = random_columns(types, nrows, rng);
		const Ranks ranks = random_ranks(rng);
		const std::vector<Order> order = random_order(columns, ranks, rng);
		SortKeys	keys = {};
		SortRange	wide[SORT_MAX_KEYS], narrow[SORT_MAX_KEYS];

		keys.n = static_cast<uint32_t>(order.size());
		for (uint32_t k = 0; k < keys.n; k++)
		{
			SortKey    &key = keys.keys[k];
			const Values &values = columns[order[k].column.column];

			key.column = order[k].column.column;
			key.type = order[k].ranks != nullptr ? ranks.type : values.type;
			key.desc = order[k].column.desc;
			key.nulls_first = order[k].column.nulls_first;
			key.ranked = order[k].ranks != nullptr;
			if (key.ranked)
			{
				key.ranks = ranks.bytes.data();
				key.nranks = ranks.map.nentries;
				key.no_rank = ranks.map.nulls;
			}
			wide[k] = sort_range_of_type(key.type);
			narrow[k] = SortRange{false, ~uint128(0), 0};
			for (size_t i = 0; i < nrows; i++)
			{
				const bool	null = values.nulls[i] || (key.ranked && ranks.null(values.get<int32_t>(i)));

				if (null)
				{
					narrow[k].may_null = true;
					continue;
				}

				const int64_t rank = key.ranked ? ranks.ranks[static_cast<size_t>(values.get<int32_t>(i))] : 0;
				const int32_t rank32 = static_cast<int32_t>(rank);
				const uint128 bits = sort_bits_at(key.type, !key.ranked ? static_cast<const void *>(values.at(i))
												  : key.type == Type::I64 ? static_cast<const void *>(&rank) : static_cast<const void *>(&rank32));

				narrow[k].lo = std::min(narrow[k].lo, bits);
				narrow[k].hi = std::max(narrow[k].hi, bits);
			}
		}
		for (const SortRange *ranges : {wide, narrow})
		{
			pack_sort_keys(&keys, ranges);

			const std::vector<uint64_t> words = words_of(keys, columns, nrows);

			for (size_t a = 0; a < nrows; a++)
				for (size_t b = 0; b < nrows; b++)
					ASSERT_EQ(sort_words_less(&words[a * keys.nwords], &words[b * keys.nwords], keys.nwords),
							  compare_rows(columns, order, a, b) < 0) << "seed " << seed << " rows " << a << ", " << b;
		}
	}
}

TEST(SortKeys, AreAsNarrowAsTheirRanges)
{
	SortKeys	keys = {};

	keys.n = 3;
	for (uint32_t k = 0; k < 3; k++)
		keys.keys[k] = SortKey{k, Type::I32, false, false};

	const SortRange one = {false, 5, 5}, few = {true, 10, 17}, all = sort_range_of_type(Type::I32), none = {true, 1, 0};

	pack_sort_keys(&keys, std::vector<SortRange>{one, few, all}.data());
	EXPECT_EQ(keys.bits, 0u + 4 + 33);
	EXPECT_EQ(keys.nwords, 1u);
	pack_sort_keys(&keys, std::vector<SortRange>{all, all, none}.data());
	EXPECT_EQ(keys.bits, 67u);
	EXPECT_EQ(keys.nwords, 2u);
	keys.n = 1;
	pack_sort_keys(&keys, &one);
	EXPECT_EQ(keys.bits, 0u);
	EXPECT_EQ(keys.nwords, 1u);
}

/* ---- the CPU's sort ------------------------------------------------------------------------ */

class Sorted
{
public:
	Sorted(const std::vector<Values> &columns, const std::vector<Order> &order, uint64_t limit)
		: columns_(columns)
	{
		std::vector<SortColumn> keys;

		for (const Values &values : columns)
			types_.push_back(values.type);
		for (const Order &by : order)
			keys.push_back(by.column);
		sort_ = std::make_unique<CpuSort>(types_.data(), static_cast<int>(types_.size()), keys.data(), static_cast<uint32_t>(keys.size()),
										  limit);
	}

	/* Rows in batches of at most `batch`, dealt to threads. */
	void collect(uint32_t nthreads, uint32_t batch)
	{
		std::vector<std::thread> threads;

		for (uint32_t t = 0; t < nthreads; t++)
			threads.emplace_back([=] { collect_share(t, nthreads, batch); });
		for (std::thread &thread : threads)
			thread.join();
	}

	/* Those of thread t. */
	void collect_share(uint32_t t, uint32_t nthreads, uint32_t batch)
	{
		const size_t nrows = columns_[0].nulls.size();
		auto		rows = std::make_unique<SortRows>(sort_.get());

		for (size_t first = t * size_t(batch); first < nrows; first += nthreads * size_t(batch))
		{
			const uint32_t n = static_cast<uint32_t>(std::min<size_t>(batch, nrows - first));

			fill(rows->area(), first, n);
			rows->take(n);
		}
		sort_->add(std::move(rows));
	}

	/* `room`: that there is to sort everything in memory, 0 for all. */
	void sort(uint32_t nthreads, uint64_t room = 0)
	{
		const auto	begin = [&]
		{
			JobMemory::Use uses(phases_ == 0 && room != 0 ? &memory_ : JobMemory::current());

			return sort_->begin_phase();
		};

		budget_.set_limit(room);
		for (uint32_t n; (n = begin()) > 0; phases_++)
		{
			std::atomic<uint32_t> next{0};
			std::vector<std::thread> threads;

			for (uint32_t t = 0; t < nthreads; t++)
				threads.emplace_back([&] {
					for (uint32_t i; (i = next.fetch_add(1)) < n;)
						sort_->run_task(i);
				});
			for (std::thread &thread : threads)
				thread.join();
		}
	}

	/* The rows that left, with a column of their numbers as the last: the first of them; empty: a value is not the row's. */
	std::vector<size_t> rows(Rng &rng)
	{
		std::vector<size_t> numbers;
		std::vector<ResultColumnLayout> layout(types_.size());
		const uint32_t capacity = 64 << rng() % 8;
		std::vector<uint64_t> area(result_layout(types_.data(), static_cast<int>(types_.size()), capacity, layout.data()) / 8 + 16, ~uint64_t(0));
		char	   *base = reinterpret_cast<char *>(align_up(reinterpret_cast<uintptr_t>(area.data()), 64));

		for (uint64_t first = 0; first < sort_->nrows(); first += capacity)
		{
			const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(capacity, sort_->nrows() - first));

			if (sort_->merges())
				sort_->take_merged(n, base, capacity);
			else
				sort_->gather(first, n, base, capacity);
			for (uint32_t i = 0; i < n; i++)
			{
				int64_t		row;

				memcpy(&row, base + layout.back().values + i * 8, 8);
				numbers.push_back(static_cast<size_t>(row));
				for (size_t c = 0; c < types_.size(); c++)
				{
					const size_t width = static_cast<size_t>(type_width(types_[c]));
					const bool	null = bit_get(reinterpret_cast<const uint64_t *>(base + layout[c].nulls), i);

					if (null != columns_[c].nulls[numbers.back()] ||
						(!null && memcmp(base + layout[c].values + i * width, columns_[c].at(numbers.back()), width) != 0))
						return {};
				}
			}
		}
		return numbers;
	}

	CpuSort    &operator*() { return *sort_; }
	int			phases_ = 0;

private:
	void fill(char *area, size_t first, uint32_t n) const
	{
		std::vector<ResultColumnLayout> layout(types_.size());

		result_layout(types_.data(), static_cast<int>(types_.size()), SORT_CHUNK_ROWS, layout.data());
		for (size_t c = 0; c < types_.size(); c++)
		{
			const size_t width = static_cast<size_t>(type_width(types_[c]));

			memset(area + layout[c].nulls, 0, SORT_CHUNK_ROWS / 8);
			memcpy(area + layout[c].values, columns_[c].at(first), n * width);
			for (uint32_t i = 0; i < n; i++)
				if (columns_[c].nulls[first + i])
					bit_set(reinterpret_cast<uint64_t *>(area + layout[c].nulls), i);
		}
	}

	const std::vector<Values> &columns_;
	std::vector<Type> types_;
	MemoryBudget budget_;
	JobMemory	memory_{&budget_};
	std::unique_ptr<CpuSort> sort_;
};

/* The last column is the row's number. */
void
add_numbers(std::vector<Values> *columns, size_t nrows)
{
	Values		numbers{Type::I64, {}, std::vector<bool>(nrows)};

	for (size_t i = 0; i < nrows; i++)
		append<int64_t>(&numbers, static_cast<int64_t>(i));
	columns->push_back(std::move(numbers));
}

void
expect_sorted(const std::vector<Values> &columns, const std::vector<Order> &order, uint64_t limit, const std::vector<size_t> &got, const std::string &what)
{
	const size_t nrows = columns[0].nulls.size(), n = limit > 0 ? std::min<size_t>(limit, nrows) : nrows;
	std::vector<size_t> expected(nrows);
	std::vector<bool> seen(nrows);

	ASSERT_EQ(got.size(), n) << what;
	for (size_t i = 0; i < nrows; i++)
		expected[i] = i;
	std::stable_sort(expected.begin(), expected.end(), [&](size_t a, size_t b) { return compare_rows(columns, order, a, b) < 0; });
	for (size_t i = 0; i < n; i++)
	{
		ASSERT_EQ(compare_rows(columns, order, got[i], expected[i]), 0) << what << " place " << i;
		ASSERT_FALSE(seen[got[i]]) << what << " a row came twice";
		seen[got[i]] = true;
	}
}

TEST(CpuSort, RandomRows)
{
	int			limited = 0, several = 0;

	for (uint64_t seed = 0; seed < 150; seed++)
	{
		static const size_t sizes[] = {1, 2, 63, 64, 65, 255, 257, 1024, 3000, 20000, 32768, 40000};
		Rng			rng(seed);
		std::vector<Type> types;

		for (uint64_t n = 1 + rng() % 4; n > 0; n--)
			types.push_back(ALL_TYPES[rng() % 7]);

		const size_t nrows = sizes[rng() % 12];
		std::vector<Values> columns = random_columns(types, nrows, rng);
		const Ranks ranks = random_ranks(rng);
		const std::vector<Order> order = random_order(columns, ranks, rng);
		static const uint64_t limits[] = {1, 2, 10, 100, 5000, 70000};
		const uint64_t limit = rng() % 2 ? limits[rng() % 6] : 0;
		const uint32_t nthreads = 1 + static_cast<uint32_t>(rng() % 3);

		add_numbers(&columns, nrows);

		Sorted		sorted(columns, order, limit);

		sorted.collect(nthreads, 1 + static_cast<uint32_t>(rng() % (rng() % 2 ? 500 : SORT_CHUNK_ROWS)));
		sorted.sort(nthreads);
		ASSERT_EQ((*sorted).refusal(), nullptr);
		expect_sorted(columns, order, limit, sorted.rows(rng), "seed " + std::to_string(seed));
		if (HasFatalFailure())
			return;
		limited += limit > 0 && limit < nrows;
		several += nthreads > 1;
	}
	EXPECT_GT(limited, 20);
	EXPECT_GT(several, 20);
}

/* Enough for parts: words that hold the row's number, words that do not, words that are not enough. */
TEST(CpuSort, ManyRows)
{
	struct Case
	{
		std::vector<Type> types;
		Spread		spread;
		size_t		nkeys;
		uint64_t	limit;
	};
	const size_t nrows = 150000;

	for (const Case &c : {Case{{Type::I32}, Spread::Any, 1, 0}, Case{{Type::I32, Type::I16}, Spread::Any, 2, 0}, Case{{Type::I64}, Spread::Any, 1, 0},
						  Case{{Type::I64}, Spread::Outlier, 1, 0}, Case{{Type::I64}, Spread::One, 1, 0}, Case{{Type::F64, Type::F64}, Spread::Few, 2, 0},
						  Case{{Type::I128, Type::I32}, Spread::Any, 2, 0}, Case{{Type::F64, Type::I32}, Spread::Outlier, 2, 70000},
						  Case{{Type::F32, Type::Bool}, Spread::Narrow, 2, 100000}, Case{{Type::I64, Type::F64}, Spread::Any, 2, 1000},
						  Case{{Type::I32}, Spread::One, 1, 60000}, Case{{Type::I32}, Spread::Few, 1, 20}})
	{
		Rng			rng(nrows + c.limit);
		std::vector<Values> columns;
		std::vector<Order> order;

		for (Type type : c.types)
		{
			Values		values{type, {}, {}};

			for (size_t i = 0; i < nrows; i++)
				append_random(&values, c.spread, rng);
			columns.push_back(std::move(values));
		}
		for (uint32_t k = 0; k < c.nkeys; k++)
			order.push_back(Order{SortColumn{k, k % 2 == 1, false, nullptr}});
		add_numbers(&columns, nrows);

		Sorted		sorted(columns, order, c.limit);

		sorted.collect(3, 20000);
		sorted.sort(3);
		EXPECT_EQ(sorted.phases_, c.limit > 0 && c.limit <= 1000 ? 2 : 4) << "parts";
		expect_sorted(columns, order, c.limit, sorted.rows(rng), "case of " + std::to_string(c.limit));
		if (HasFatalFailure())
			return;
	}
}

/* Memory is short most of the time, so that there are many runs, and levels of them. */
TEST(CpuSort, RunsAreMerged)
{
	int			merged = 0, levels = 0;

	for (uint64_t seed = 0; seed < 60; seed++)
	{
		static const size_t sizes[] = {1, 64, 3000, 32768, 70000, 150000, 300000};
		static const uint64_t limits[] = {10, 70000, 100000};
		Rng			rng(seed);
		std::vector<Type> types;

		for (uint64_t n = 1 + rng() % 4; n > 0; n--)
			types.push_back(ALL_TYPES[rng() % 7]);

		const size_t nrows = sizes[rng() % (seed % 4 == 0 ? 7 : 5)];
		std::vector<Values> columns = random_columns(types, nrows, rng);
		const Ranks ranks = random_ranks(rng);
		const std::vector<Order> order = random_order(columns, ranks, rng);
		const uint64_t limit = rng() % 3 ? 0 : limits[rng() % 3];
		const uint32_t nthreads = 1 + static_cast<uint32_t>(rng() % 3);
		reference::SpillToMemory some(static_cast<uint32_t>(seed));
		reference::ShortSpill always;
		reference::SpillToMemory *const spill = seed % 2 == 0 ? &always : &some;

		add_numbers(&columns, nrows);

		Sorted		sorted(columns, order, limit);

		(*sorted).set_spill(spill);
		sorted.collect(nthreads, 1 + static_cast<uint32_t>(rng() % (rng() % 2 ? 500 : SORT_CHUNK_ROWS)));
		sorted.sort(nthreads, limit == 10 ? 0 : 1 << 17);
		ASSERT_EQ((*sorted).refusal(), nullptr);
		merged += (*sorted).merges();
		levels += (*sorted).merges() && sorted.phases_ > 1;
		expect_sorted(columns, order, limit, sorted.rows(rng), "seed " + std::to_string(seed));
		if (HasFatalFailure())
			return;
	}
	EXPECT_GT(merged, 20);
	EXPECT_GT(levels, 5);
}

/* From the last to the first, so that every row is among the first so far. */
TEST(CpuSort, EveryRowIsBetter)
{
	const size_t nrows = 50000;
	std::vector<Values> columns = {{Type::I32, {}, {}}};
	const std::vector<Order> order = {Order{SortColumn{0, false, false, nullptr}}};
	Rng			rng(1);

	for (size_t i = 0; i < nrows; i++)
	{
		append<int32_t>(&columns[0], static_cast<int32_t>(nrows - i));
		columns[0].nulls.push_back(false);
	}
	add_numbers(&columns, nrows);

	Sorted		sorted(columns, order, 1000);

	sorted.collect(1, 3000);
	sorted.sort(1);
	expect_sorted(columns, order, 1000, sorted.rows(rng), "descending");
}

TEST(CpuSort, NoRows)
{
	const std::vector<Values> columns = {{Type::I32, {}, {}}};

	for (uint64_t limit : {0, 10})
	{
		Sorted		sorted(columns, {Order{SortColumn{0, false, false, nullptr}}}, limit);

		sorted.collect(2, 100);
		sorted.sort(1);
		EXPECT_EQ((*sorted).nrows(), 0u);
		EXPECT_EQ((*sorted).refusal(), nullptr);
	}
}

/* A few rows are kept in the same memory however many come. */
TEST(CpuSort, MemoryIsLimited)
{
	const size_t nrows = 400000;
	std::vector<Values> columns = {{Type::I64, {}, {}}};
	const std::vector<Order> order = {Order{SortColumn{0, false, false, nullptr}}};
	Rng			rng(1);

	for (size_t i = 0; i < nrows; i++)
		append_random(&columns[0], Spread::Any, rng);
	add_numbers(&columns, nrows);

	/* shares of so many threads; true: there was memory, and the rows are right */
	const auto	fits = [&](uint64_t limit, uint64_t room, uint32_t nshares)
	{
		MemoryBudget budget(room);
		JobMemory	memory(&budget);
		JobMemory::Use uses(&memory);
		Sorted		sorted(columns, order, limit);

		try
		{
			for (uint32_t t = 0; t < nshares; t++)
				sorted.collect_share(t, nshares, SORT_CHUNK_ROWS);
			sorted.sort(1);
		}
		catch (const std::bad_alloc &)
		{
			return false;
		}
		expect_sorted(columns, order, limit, sorted.rows(rng), "within memory");
		return true;
	};

	EXPECT_FALSE(fits(0, 4 << 20, 1));
	EXPECT_TRUE(fits(0, 64 << 20, 1));
	EXPECT_TRUE(fits(10, 4 << 20, 1));
	/* these take their share, too */
	EXPECT_TRUE(fits(30000, 5500000, 1));
	EXPECT_FALSE(fits(30000, 1 << 20, 1));
	EXPECT_TRUE(fits(30000, 64 << 20, 2));
}

}  // namespace
