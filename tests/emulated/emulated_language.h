/* emulated_language.h: CUDA's keywords, vector types and built-in variables. */
#ifndef GPUVM_EMULATED_LANGUAGE_H
#define GPUVM_EMULATED_LANGUAGE_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
/* One block at a time runs on a host thread. */
#define __shared__ static thread_local
/* Inlining everything into the tile loop would only take the compiler's time. */
#define __forceinline__ inline
/* Nothing: the C++ library's headers have attributes of that name. */
#define __noinline__

#define GPUVM_VECTOR_TYPES(base, name, bytes) \
	struct name##1 { base x; }; \
	struct alignas(2 * (bytes)) name##2 { base x, y; }; \
	struct name##3 { base x, y, z; }; \
	struct alignas(4 * (bytes) > 16 ? 16 : 4 * (bytes)) name##4 { base x, y, z, w; }; \
	inline name##1 make_##name##1(base x) { return name##1{x}; } \
	inline name##2 make_##name##2(base x, base y) { return name##2{x, y}; } \
	inline name##3 make_##name##3(base x, base y, base z) { return name##3{x, y, z}; } \
	inline name##4 make_##name##4(base x, base y, base z, base w) { return name##4{x, y, z, w}; }
GPUVM_VECTOR_TYPES(signed char, char, 1)
GPUVM_VECTOR_TYPES(unsigned char, uchar, 1)
GPUVM_VECTOR_TYPES(short, short, 2)
GPUVM_VECTOR_TYPES(unsigned short, ushort, 2)
GPUVM_VECTOR_TYPES(int, int, 4)
GPUVM_VECTOR_TYPES(unsigned int, uint, 4)
GPUVM_VECTOR_TYPES(float, float, 4)
GPUVM_VECTOR_TYPES(long long, longlong, 8)
GPUVM_VECTOR_TYPES(unsigned long long, ulonglong, 8)
GPUVM_VECTOR_TYPES(double, double, 8)
#undef GPUVM_VECTOR_TYPES

struct dim3
{
	unsigned int x, y, z;

	constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

namespace gpuvm_emulated {

/* The running thread's, set whenever a fiber gets its turn. */
struct BuiltIns
{
	uint3		thread_idx;
	uint3		block_idx;
	dim3		block_dim;
	dim3		grid_dim;
	char	   *dynamic_shared;	/* the running block's, dynamic */
};
extern thread_local BuiltIns built_ins;

}  // namespace gpuvm_emulated

#define threadIdx (gpuvm_emulated::built_ins.thread_idx)
#define blockIdx (gpuvm_emulated::built_ins.block_idx)
#define blockDim (gpuvm_emulated::built_ins.block_dim)
#define gridDim (gpuvm_emulated::built_ins.grid_dim)
constexpr int warpSize = 32;

#endif
