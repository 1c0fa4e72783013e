/* device_scan.cuh: CUB's, of the emulated device: done when the stream gets there. */
#ifndef GPUVM_EMULATED_CUB_DEVICE_SCAN_CUH
#define GPUVM_EMULATED_CUB_DEVICE_SCAN_CUH

#include <iterator>

#include "cuda_runtime.h"

namespace cub {

struct DeviceScan
{
	template <typename InputIterator, typename OutputIterator, typename NumItems>
	static cudaError_t ExclusiveSum(void *temp, size_t &temp_bytes, InputIterator in, OutputIterator out, NumItems n, cudaStream_t stream = nullptr)
	{
		const size_t needed = 64 + static_cast<size_t>(n) / 64;

		if (temp == nullptr)
		{
			temp_bytes = needed;
			return cudaSuccess;
		}
		if (temp_bytes < needed)
			return cudaErrorInvalidValue;
		return gpuvm_emulated::run_queued(stream, [=]
		{
			typename std::iterator_traits<InputIterator>::value_type sum = 0;

			memset(temp, 0xcb, needed);
			for (NumItems i = 0; i < n; i++)
			{
				const auto v = in[i];	/* in and out may be one */

				out[i] = sum;
				sum += v;
			}
		});
	}

	/* Of consecutive values whose keys are equal. */
	template <typename Keys, typename Values, typename Output, typename ScanOp, typename NumItems, typename Equal>
	static cudaError_t InclusiveScanByKey(void *temp, size_t &temp_bytes, Keys keys, Values values, Output out, ScanOp op, NumItems n, Equal equal,
										  cudaStream_t stream = nullptr)
	{
		const size_t needed = 64 + static_cast<size_t>(n) / 64;

		if (temp == nullptr)
		{
			temp_bytes = needed;
			return cudaSuccess;
		}
		if (temp_bytes < needed)
			return cudaErrorInvalidValue;
		return gpuvm_emulated::run_queued(stream, [=]
		{
			typename std::iterator_traits<Values>::value_type so_far{};

			memset(temp, 0xcb, needed);
			for (NumItems i = 0; i < n; i++)
			{
				so_far = i > 0 && equal(keys[i - 1], keys[i]) ? op(so_far, values[i]) : values[i];
				out[i] = so_far;
			}
		});
	}
};

}  // namespace cub

#endif
