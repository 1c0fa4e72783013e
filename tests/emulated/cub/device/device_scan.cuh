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
};

}  // namespace cub

#endif
