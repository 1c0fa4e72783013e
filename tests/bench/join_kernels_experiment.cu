/*
 * join_kernels_experiment: the steps of a join on the device, each by itself: measuring keys,
 * building the table, probing it, expanding pairs, gathering two columns of each
 * side. For every form of table; answers are compared with the CPU's: the number of pairs, and
 * sums over all pairs.
 *
 *   join_kernels_experiment [--rows N] [--reps N]
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "pairs.h"
#include "timing.cuh"

using namespace gpuvm;
using namespace gpuvm::cuda;

namespace {

template <typename T>
T *
device(uint64_t n)
{
	T		   *p;

	CHECK(cudaMalloc(&p, std::max<uint64_t>(n, 1) * sizeof(T)));
	return p;
}

template <typename T>
T *
to_device(const std::vector<T> &from)
{
	T		   *p = device<T>(from.size());

	CHECK(cudaMemcpy(p, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

template <typename T>
std::vector<T>
to_host(const void *from, uint64_t n)
{
	std::vector<T> v(n);

	CHECK(cudaMemcpy(v.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
	return v;
}

template <typename T>
RowColumn
column(Type type, const std::vector<T> &values)
{
	return RowColumn{reinterpret_cast<char *>(to_device(values)), nullptr, type};
}

/* Keys as they are compared, and on the device. */
struct Side
{
	std::vector<int64_t> keys;
	JoinKeys	device;
	std::vector<int64_t> wide;	/* payload: 8 bytes and 4 */
	std::vector<int32_t> narrow;
	RowColumn	wide_column, narrow_column;
};

enum class Keys { I32, I64, F64, I64I32 };

Side
make_side(Keys kind, std::vector<int64_t> keys)
{
	Side		side = {};

	side.keys = std::move(keys);
	side.device.nkeys = 1;
	for (size_t i = 0; i < side.keys.size(); i++)
	{
		side.wide.push_back(static_cast<int64_t>(i) * 7 + 1);
		side.narrow.push_back(static_cast<int32_t>(i % 1000));
	}
	switch (kind)
	{
		case Keys::I32:
			side.device.key[0] = column(Type::I32, std::vector<int32_t>(side.keys.begin(), side.keys.end()));
			break;
		case Keys::F64:
			side.device.key[0] = column(Type::F64, std::vector<double>(side.keys.begin(), side.keys.end()));
			break;
		case Keys::I64I32:
			side.device.key[1] = column(Type::I32, std::vector<int32_t>(side.keys.begin(), side.keys.end()));
			side.device.nkeys = 2;
			[[fallthrough]];
		default:
			side.device.key[0] = column(Type::I64, side.keys);
			break;
	}
	side.wide_column = column(Type::I64, side.wide);
	side.narrow_column = column(Type::I32, side.narrow);
	return side;
}

void
free_side(const Side &side)
{
	for (uint32_t k = 0; k < side.device.nkeys; k++)
		CHECK(cudaFree(side.device.key[k].values));
	CHECK(cudaFree(side.wide_column.values));
	CHECK(cudaFree(side.narrow_column.values));
}

const char *
form_name(const JoinTable &table)
{
	switch (table.form)
	{
		case JoinForm::Identity: return "identity";
		case JoinForm::Slots: return "slots";
		case JoinForm::Ranges: return "ranges";
		case JoinForm::Hashed: return table.narrow ? "hashed, 32 bits" : table.exact ? "hashed, 64 bits" : "hashed, wide";
		case JoinForm::Sorted: return "sorted";
		default: return "empty";
	}
}

struct Sums
{
	uint64_t	pairs = 0, outer = 0, inner = 0;
};

/* For ranges: outer keys are the lower bounds, and hi = lo + width. */
Sums
expected_sums(const Side &inner, const Side &outer, int64_t width)
{
	std::vector<uint32_t> order(inner.keys.size());
	std::vector<int64_t> sorted;
	std::vector<uint64_t> before = {0};
	Sums		sums;

	std::iota(order.begin(), order.end(), 0u);
	std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return inner.keys[a] < inner.keys[b]; });
	for (uint32_t row : order)
	{
		sorted.push_back(inner.keys[row]);
		before.push_back(before.back() + static_cast<uint64_t>(inner.wide[row] + inner.narrow[row]));
	}
	for (size_t o = 0; o < outer.keys.size(); o++)
	{
		const auto	from = std::lower_bound(sorted.begin(), sorted.end(), outer.keys[o]);
		const auto	to = std::upper_bound(from, sorted.end(), outer.keys[o] + width);
		const uint64_t n = static_cast<uint64_t>(to - from);

		sums.pairs += n;
		sums.outer += n * static_cast<uint64_t>(outer.wide[o] + outer.narrow[o]);
		sums.inner += before[static_cast<size_t>(to - sorted.begin())] - before[static_cast<size_t>(from - sorted.begin())];
	}
	return sums;
}

uint64_t
sum(const RowColumn &c, uint64_t n)
{
	uint64_t	total = 0;

	if (c.type == Type::I64)
		for (int64_t v : to_host<int64_t>(c.values, n))
			total += static_cast<uint64_t>(v);
	else
		for (int32_t v : to_host<int32_t>(c.values, n))
			total += static_cast<uint64_t>(v);
	return total;
}

/* width < 0: equality. False: a wrong answer. */
bool
experiment(const char *name, Keys kind, const std::vector<int64_t> &inner_keys, const std::vector<int64_t> &outer_keys, int64_t width, int reps)
{
	const Side	inner = make_side(kind, inner_keys), outer = make_side(kind, outer_keys);
	const uint32_t ninner = static_cast<uint32_t>(inner_keys.size()), nouter = static_cast<uint32_t>(outer_keys.size());
	std::vector<int64_t> upper = outer_keys;
	KeyFacts	facts, *device_facts = device<KeyFacts>(1);
	JoinTableOutcome built, *words = device<JoinTableOutcome>(1);
	JoinTablePlan plan;
	JoinTable	table;
	KeyRange	range = {};
	ProbeOutcome found;
	Probe		p;

	for (int64_t &key : upper)
		key += width;
	if (width >= 0)
		range = KeyRange{outer.device.key[0], column(Type::I64, upper), false, false};

	const Timing measuring = measure(reps, 1, [&] { CHECK(measure_keys(inner.device, ninner, device_facts, &facts, nullptr)); });
	Timing		building;

	plan_join_table(inner.device, ninner, facts, width >= 0, &plan);
	for (;;)
	{
		char	   *table_memory = device<char>(plan.table_bytes), *temp = device<char>(plan.temp_bytes);

		building = measure(reps, 1, [&] { CHECK(build_join_table(plan, inner.device, table_memory, temp, &table, words, &built, nullptr)); });
		CHECK(cudaFree(temp));

		const JoinTableEnd end = finish_join_table(built, &plan, &table);

		if (end == JoinTableEnd::Done)
			break;
		CHECK(cudaFree(table_memory));
		if (end == JoinTableEnd::Collision)
			return false;
	}

	char	   *probe_memory = device<char>(probe_bytes(table, ProbeMode::Pairs, nouter));
	const Timing probing = measure(reps, 1, [&]
	{
		if (width >= 0)
			CHECK(probe_range(table, ProbeMode::Pairs, range, nouter, probe_memory, &p, &found, nullptr));
		else
			CHECK(probe(table, ProbeMode::Pairs, outer.device, nouter, probe_memory, &p, &found, nullptr));
	});
	const uint32_t n = static_cast<uint32_t>(found.npairs);
	uint32_t   *outer_rows = device<uint32_t>(n), *inner_rows = device<uint32_t>(n);
	const Timing expanding = measure(reps, 1, [&] { CHECK(expand_pairs(table, p, 0, n, outer_rows, inner_rows, nullptr)); });
	GatherColumn columns[4] = {
		{outer.wide_column, RowColumn{reinterpret_cast<char *>(device<int64_t>(n)), nullptr, Type::I64}, GatherBy::Outer},
		{outer.narrow_column, RowColumn{reinterpret_cast<char *>(device<int32_t>(n)), nullptr, Type::I32}, GatherBy::Outer},
		{inner.wide_column, RowColumn{reinterpret_cast<char *>(device<int64_t>(n)), nullptr, Type::I64}, GatherBy::Inner},
		{inner.narrow_column, RowColumn{reinterpret_cast<char *>(device<int32_t>(n)), nullptr, Type::I32}, GatherBy::Inner},
	};
	const Timing gathering = measure(reps, 1, [&] { CHECK(gather_rows(columns, 4, outer_rows, inner_rows, n, nullptr)); });
	const Sums	expected = expected_sums(inner, outer, std::max<int64_t>(width, 0));
	const bool	right = n == expected.pairs && sum(columns[0].to, n) + sum(columns[1].to, n) == expected.outer &&
		sum(columns[2].to, n) + sum(columns[3].to, n) == expected.inner;

	printf("%-34s %-16s %9u %9.3f %9.3f %9.3f %9.3f %9.3f  %s\n", name, form_name(table), n, measuring.median_ms, building.median_ms,
		   probing.median_ms, expanding.median_ms, gathering.median_ms, right ? "right" : "WRONG");
	for (const GatherColumn &c : columns)
		CHECK(cudaFree(c.to.values));
	CHECK(cudaFree(outer_rows));
	CHECK(cudaFree(inner_rows));
	CHECK(cudaFree(probe_memory));
	for (void *memory : {static_cast<void *>(table.slots), static_cast<void *>(table.ranges != nullptr ? static_cast<void *>(table.ranges) : table.rows)})
		CHECK(cudaFree(memory));
	CHECK(cudaFree(words));
	CHECK(cudaFree(device_facts));
	if (width >= 0)
		CHECK(cudaFree(range.hi.values));
	free_side(inner);
	free_side(outer);
	return right;
}

}  // namespace

int
main(int argc, char **argv)
{
	int64_t		rows = 8000000;
	int			reps = 7;
	bool		right = true;
	std::mt19937_64 rng(1);

	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--rows") == 0)
			rows = strtoll(argv[i + 1], nullptr, 10);
		else if (strcmp(argv[i], "--reps") == 0)
			reps = atoi(argv[i + 1]);

	const auto	make = [&](int64_t n, auto f)
	{
		std::vector<int64_t> keys;

		for (int64_t i = 0; i < n; i++)
			keys.push_back(f(i));
		return keys;
	};
	const auto	random_below = [&](int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); };
	std::vector<int64_t> in_order = make(rows, [](int64_t i) { return i; }), shuffled = in_order;

	std::shuffle(shuffled.begin(), shuffled.end(), rng);

	const auto	any = make(rows, [&](int64_t) { return random_below(rows); });
	const auto	half = make(rows, [&](int64_t) { return random_below(2 * rows); });
	const auto	tenth = make(rows, [&](int64_t) { return random_below(10 * rows); });
	const auto	small = make(std::max<int64_t>(rows / 1000, 100), [](int64_t i) { return i * 3 % 100000; });
	const auto	in_fours = make(rows, [&](int64_t) { return random_below(rows / 4 + 1); });
	const auto	sparse = [](std::vector<int64_t> keys, int64_t factor)
	{
		for (int64_t &key : keys)
			key *= factor;
		return keys;
	};
	const int64_t by_32 = std::max<int64_t>(1, 2000000000 / (10 * rows)), by_64 = 1000000007;

	printf("%-34s %-16s %9s %9s %9s %9s %9s %9s  (ms, medians)\n", "", "table", "pairs", "measure", "build", "probe", "expand", "gather");
	right &= experiment("primary key in order", Keys::I32, in_order, any, -1, reps);
	right &= experiment("primary key", Keys::I32, shuffled, any, -1, reps);
	right &= experiment("primary key, bigint", Keys::I64, shuffled, any, -1, reps);
	right &= experiment("half of the rows match", Keys::I32, shuffled, half, -1, reps);
	right &= experiment("a tenth of the rows match", Keys::I32, shuffled, tenth, -1, reps);
	right &= experiment("small table", Keys::I32, small, half, -1, reps);
	right &= experiment("four rows a key", Keys::I32, in_fours, make(rows / 4, [&](int64_t) { return random_below(rows / 4); }), -1, reps);
	right &= experiment("sparse keys", Keys::I32, sparse(shuffled, by_32), sparse(half, by_32), -1, reps);
	right &= experiment("sparse keys, bigint", Keys::I64, sparse(shuffled, by_64), sparse(half, by_64), -1, reps);
	right &= experiment("four rows a sparse key", Keys::I64, sparse(in_fours, by_64), sparse(make(rows / 4, [&](int64_t) { return random_below(rows / 4); }), by_64),
						-1, reps);
	right &= experiment("double precision", Keys::F64, shuffled, half, -1, reps);
	right &= experiment("two keys, 96 bits", Keys::I64I32, shuffled, half, -1, reps);
	right &= experiment("ranges of eight keys", Keys::I64, shuffled, make(rows / 8, [&](int64_t) { return random_below(rows); }), 7, reps);
	return right ? 0 : 1;
}
