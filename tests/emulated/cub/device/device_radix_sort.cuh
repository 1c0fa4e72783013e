/* device_radix_sort.cuh: CUB's, of the emulated device: done when the stream gets there. */
#ifndef GPUVM_EMULATED_CUB_DEVICE_RADIX_SORT_CUH
#define GPUVM_EMULATED_CUB_DEVICE_RADIX_SORT_CUH

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

namespace cub {

template <typename T>
struct DoubleBuffer
{
	T		   *d_buffers[2];
	int			selector = 0;

	DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate} {}
	T *Current() { return d_buffers[selector]; }
	T *Alternate() { return d_buffers[selector ^ 1]; }
};

struct DeviceRadixSort
{
	/* Stable. As with the real one few values take one pass, more a pass for eight bits, which decides where the result is; the other buffers are spoilt. */
	template <typename Key, typename Value, typename NumItems>
	static cudaError_t SortPairs(void *temp, size_t &temp_bytes, DoubleBuffer<Key> &keys, DoubleBuffer<Value> &values, NumItems n,
								 int begin_bit = 0, int end_bit = sizeof(Key) * 8, cudaStream_t stream = nullptr)
	{
		static_assert(std::is_unsigned<Key>::value, "bits are compared as they are");
		const size_t needed = 1024;

		if (temp == nullptr)
		{
			temp_bytes = needed;
			return cudaSuccess;
		}
		if (temp_bytes < needed || end_bit > static_cast<int>(sizeof(Key) * 8))
			return cudaErrorInvalidValue;

		Key		   *keys_in = keys.Current();
		Value	   *values_in = values.Current();

		if (n <= 500 || (end_bit - begin_bit + 7) / 8 % 2 != 0)
		{
			keys.selector ^= 1;
			values.selector ^= 1;
		}

		Key		   *keys_out = keys.Current(), *keys_spoilt = keys.Alternate();
		Value	   *values_out = values.Current(), *values_spoilt = values.Alternate();

		return gpuvm_emulated::run_queued(stream, [=]
		{
			const Key	mask = static_cast<Key>((end_bit - begin_bit >= static_cast<int>(sizeof(Key) * 8) ? ~Key(0) : (Key(1) << (end_bit - begin_bit)) - 1) << begin_bit);
			std::vector<std::pair<Key, Value>> sorted;

			memset(temp, 0xcb, needed);
			for (NumItems i = 0; i < n; i++)
				sorted.emplace_back(keys_in[i], values_in[i]);
			std::stable_sort(sorted.begin(), sorted.end(), [mask](const auto &a, const auto &b) { return (a.first & mask) < (b.first & mask); });
			if (n > 0)
			{
				memset(keys_spoilt, 0xcb, n * sizeof(Key));
				memset(values_spoilt, 0xcb, n * sizeof(Value));
			}
			for (NumItems i = 0; i < n; i++)
			{
				keys_out[i] = sorted[static_cast<size_t>(i)].first;
				values_out[i] = sorted[static_cast<size_t>(i)].second;
			}
		});
	}
};

}  // namespace cub

#endif
