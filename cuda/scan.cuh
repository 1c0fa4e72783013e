/* scan.cuh: CUB's exclusive sum, over what a function gives. */
#ifndef GPUVM_CUDA_SCAN_CUH
#define GPUVM_CUDA_SCAN_CUH

#define CCCL_DISABLE_NVTX
#include <cub/device/device_scan.cuh>

#include <iterator>

#include "machine.cuh"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

/* f(0), f(1), ... to read from. F: copyable, with a Value. */
template <typename F>
struct Computed
{
	using iterator_category = std::random_access_iterator_tag;
	using value_type = typename F::Value;
	using difference_type = int64_t;
	using pointer = const value_type *;
	using reference = value_type;

	F			f;
	int64_t		at;

	GPUVM_HD value_type operator*() const { return f(static_cast<uint32_t>(at)); }
	GPUVM_HD value_type operator[](int64_t i) const { return f(static_cast<uint32_t>(at + i)); }
	GPUVM_HD Computed operator+(int64_t n) const { return Computed{f, at + n}; }
	GPUVM_HD Computed operator-(int64_t n) const { return Computed{f, at - n}; }
	GPUVM_HD int64_t operator-(const Computed &other) const { return at - other.at; }
	GPUVM_HD Computed &operator+=(int64_t n) { at += n; return *this; }
	GPUVM_HD Computed &operator++() { at++; return *this; }
	GPUVM_HD bool operator==(const Computed &other) const { return at == other.at; }
	GPUVM_HD bool operator!=(const Computed &other) const { return at != other.at; }
};

/* sums[i] = f(0) + ... + f(i - 1) for i < n. temp_bytes: what there is at least; without `temp` it is what is needed. */
template <typename F>
cudaError_t
exclusive_sum(void *temp, uint64_t *temp_bytes, F f, typename F::Value *sums, uint32_t n, cudaStream_t stream)
{
	size_t		bytes = *temp_bytes;
	cudaError_t rc = cub::DeviceScan::ExclusiveSum(temp, bytes, Computed<F>{f, 0}, sums, static_cast<int>(n), stream);

	if (temp == nullptr)
		*temp_bytes = bytes;
	return rc;
}

/* Bytes that exclusive_sum() of n values needs; 0 where the device does not say. */
template <typename F>
uint64_t
exclusive_sum_bytes(uint32_t n)
{
	uint64_t	bytes = 0;

	return exclusive_sum(nullptr, &bytes, F{}, nullptr, n, nullptr) == cudaSuccess ? align_up(bytes, 256) : 0;
}

}  // namespace cuda
}  // namespace gpuvm

#endif
