/*
 * key_filter_experiment: rows of a large table held against the keys of three filtered small ones (key_filter.h), as in the star of
 * bench.py joins: by each alone, by all in either order; counted only, and with the dead bits written.
 *
 *   key_filter_experiment [--rows N] [--reps N]
 */
#include <cstring>
#include <random>

#include "key_filter.h"
#include "pairs.h"
#include "timing.cuh"

using namespace gpuvm;
using namespace gpuvm::cuda;

namespace {

constexpr uint32_t NKEYS = 3;
constexpr uint32_t TABLET_ROWS = 256 * TABLET_PAD_ROWS;

/* Of keys 1 .. n of the small table, `percent` pass its filter. */
struct Small
{
	const char *name;
	uint32_t	n, percent, width;
};
constexpr Small smalls[NKEYS] = {{"300,000 keys, a fifth", 300000, 20, 4}, {"20,000 keys, a fifth", 20000, 20, 2}, {"2,555 keys, three sevenths", 2555, 43, 2}};

template <typename T>
T *
to_device(const std::vector<T> &from)
{
	T		   *p;

	CHECK(cudaMalloc(&p, from.size() * sizeof(T)));
	CHECK(cudaMemcpy(p, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

}  // namespace

int
main(int argc, char **argv)
{
	uint64_t	rows = 60000000;
	int			reps = 7;
	bool		right = true;
	std::mt19937 rng(1);

	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--rows") == 0)
			rows = strtoull(argv[i + 1], nullptr, 10);
		else if (strcmp(argv[i], "--reps") == 0)
			reps = atoi(argv[i + 1]);

	const uint32_t npads = static_cast<uint32_t>((rows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS);
	std::vector<char> data[NKEYS];
	std::vector<bool> there[NKEYS];
	FilterKey	keys[NKEYS] = {};
	std::vector<uint32_t> dead(npads * TABLET_PAD_ROWS / 32);

	rows = uint64_t{npads} * TABLET_PAD_ROWS;
	for (uint32_t k = 0; k < NKEYS; k++)
	{
		std::vector<int32_t> inner;

		there[k].resize(smalls[k].n + 1);
		for (uint32_t key = 1; key <= smalls[k].n; key++)
			if (rng() % 100 < smalls[k].percent)
			{
				there[k][key] = true;
				inner.push_back(static_cast<int32_t>(key));
			}
		data[k].resize(rows * smalls[k].width);

		const RowColumn column = {reinterpret_cast<char *>(to_device(inner)), nullptr, Type::I32};
		uint32_t   *bits;

		CHECK(cudaMalloc(&bits, bitmap_bytes(smalls[k].n)));

		const Timing filling = measure(reps, 1, [&] { CHECK(fill_key_bits(column, static_cast<uint32_t>(inner.size()), 1, smalls[k].n, bits, nullptr)); });

		printf("%-40s %9.4f ms for the bits\n", smalls[k].name, filling.median_ms);
		keys[k] = FilterKey{KeyBits{bits, 1, smalls[k].n}, k, Type::I32};
	}

	uint64_t	expected[NKEYS + 1] = {};

	for (uint64_t row = 0; row < rows; row++)
	{
		bool		all = true;

		for (uint32_t k = 0; k < NKEYS; k++)
		{
			const uint32_t code = rng() % smalls[k].n;	/* of key 1 + code; 4 bytes are values */
			const uint32_t stored = smalls[k].width == 4 ? code + 1 : code;

			memcpy(data[k].data() + row * smalls[k].width, &stored, smalls[k].width);
			expected[k] += there[k][code + 1];
			all = all && there[k][code + 1];
		}
		expected[NKEYS] += all;
	}

	std::vector<DeviceTablet> tablets;
	std::vector<DeviceChunk> chunks;
	std::vector<DevicePad> pads;
	const char *columns[NKEYS];
	uint32_t   *device_dead = to_device(dead), *words;

	for (uint32_t k = 0; k < NKEYS; k++)
		columns[k] = to_device(data[k]);
	for (uint64_t first = 0; first < rows; first += TABLET_ROWS)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(TABLET_ROWS, rows - first));

		for (uint32_t row = 0; row < n; row += TABLET_PAD_ROWS)
			pads.push_back(DevicePad{static_cast<uint32_t>(tablets.size()), row});
		tablets.push_back(DeviceTablet{n, 1});
		for (uint32_t k = 0; k < NKEYS; k++)
			chunks.push_back(DeviceChunk{reinterpret_cast<uint64_t>(columns[k] + first * smalls[k].width), 0, smalls[k].width == 4 ? 0 : 1,
										 smalls[k].width, 0});
		chunks.push_back(DeviceChunk{0, reinterpret_cast<uint64_t>(device_dead + first / 32), 0, 0, 0});
	}
	CHECK(cudaMalloc(&words, FILTER_PARTS * sizeof(uint32_t)));

	const DeviceTable table = {to_device(tablets), to_device(chunks), to_device(pads), npads, 0};

	const auto	experiment = [&](const char *name, std::vector<uint32_t> order, uint64_t left_expected, bool kill)
	{
		KeyFilter	filter = {};
		uint32_t	left[FILTER_PARTS];
		double		bytes = 0;

		filter.ncolumns = NKEYS + 1;
		filter.dead_column = NKEYS;
		for (uint32_t k : order)
		{
			filter.key[filter.nkeys++] = keys[k];
			bytes += static_cast<double>(rows) * smalls[k].width;
		}

		const Timing t = measure(reps, 1, [&]
		{
			if (kill)
				CHECK(cudaMemsetAsync(device_dead, 0, rows / 8, nullptr));
			CHECK(filter_rows(filter, table, FilterPads{0, npads, 1, npads, kill}, words, left, nullptr));
		});
		const bool	good = left[0] == left_expected;

		right &= good;
		printf("%-40s %9.4f ms, %6.0f GB/s of keys, %u rows left  %s\n", name, t.median_ms, bytes / t.median_ms / 1e6, left[0], good ? "right" : "WRONG");
	};

	for (uint32_t k = 0; k < NKEYS; k++)
		experiment(smalls[k].name, {k}, expected[k], false);
	experiment("all, the small one first", {1, 0, 2}, expected[NKEYS], false);
	experiment("all, the large one first", {0, 1, 2}, expected[NKEYS], false);
	experiment("all, the one that leaves most first", {2, 1, 0}, expected[NKEYS], false);
	experiment("all, dead bits cleared and written", {1, 0, 2}, expected[NKEYS], true);
	return right ? 0 : 1;
}
