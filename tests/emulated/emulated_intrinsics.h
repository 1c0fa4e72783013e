/*
 * emulated_intrinsics.h: collective operations, atomics and the arithmetic
 * functions of device code.
 */
#ifndef GPUVM_EMULATED_INTRINSICS_H
#define GPUVM_EMULATED_INTRINSICS_H

#include <cmath>
#include <type_traits>

#include "emulated_language.h"

namespace gpuvm_emulated {

/* A collective operation: two are the same if they are one object. */
struct Operation
{
	const char *name;
};

/* What a lane brings to it. */
struct Deposit
{
	uint64_t	value;
	int32_t		param;
};

/* Lane `lane`'s result, once the lanes `present` have all come. */
using Resolve = uint64_t (*) (const Deposit *lanes, uint32_t present, uint32_t lane);

/* Waits for the lanes of the mask; `bytes` tells operand types of one operation apart. */
uint64_t	rendezvous(const Operation &operation, uint32_t bytes, uint32_t mask, uint64_t value, int32_t param, Resolve resolve);

/* Waits for the block; returns how many threads brought a true predicate. */
uint32_t	block_barrier(const Operation &operation, bool predicate);

/* Where another lane may go on: sometimes, and when this one had many turns. */
void		may_yield();
void		yield_now();

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

inline constexpr Operation syncwarp_operation = {"__syncwarp"};
inline constexpr Operation syncthreads_operation = {"__syncthreads"};
inline constexpr Operation syncthreads_count_operation = {"__syncthreads_count"};
inline constexpr Operation syncthreads_or_operation = {"__syncthreads_or"};
inline constexpr Operation syncthreads_and_operation = {"__syncthreads_and"};
inline constexpr Operation ballot_sync_operation = {"__ballot_sync"};
inline constexpr Operation shfl_sync_operation = {"__shfl_sync"};
inline constexpr Operation shfl_xor_sync_operation = {"__shfl_xor_sync"};
inline constexpr Operation shfl_up_sync_operation = {"__shfl_up_sync"};
inline constexpr Operation shfl_down_sync_operation = {"__shfl_down_sync"};
inline constexpr Operation match_any_sync_operation = {"__match_any_sync"};
inline constexpr Operation __reduce_add_sync_operation = {"__reduce_add_sync"};
inline constexpr Operation __reduce_min_sync_operation = {"__reduce_min_sync"};
inline constexpr Operation __reduce_max_sync_operation = {"__reduce_max_sync"};
inline constexpr Operation __reduce_and_sync_operation = {"__reduce_and_sync"};
inline constexpr Operation __reduce_or_sync_operation = {"__reduce_or_sync"};
inline constexpr Operation __reduce_xor_sync_operation = {"__reduce_xor_sync"};

/* Reading a lane that takes no part gives no particular value. */
constexpr uint64_t UNSPECIFIED = 0xdeadbeefdeadbeef;

template <typename T>
uint64_t
to_word(T v)
{
	static_assert(std::is_arithmetic<T>::value && sizeof(T) <= 8, "what __shfl_sync takes");
	uint64_t	word = 0;

	memcpy(&word, &v, sizeof(T));
	return word;
}

template <typename T>
T
from_word(uint64_t word)
{
	T			v;

	memcpy(&v, &word, sizeof(T));
	return v;
}

inline uint64_t
value_of_lane(const Deposit *lanes, uint32_t present, uint32_t lane)
{
	return present >> lane & 1 ? lanes[lane].value : UNSPECIFIED;
}

/* A shuffle's lane and width share the parameter. */
inline int32_t
shuffle_param(int by, int width)
{
	if (width < 1 || width > 32 || (width & (width - 1)) != 0)
		fail("shuffle: width %d", width);
	return (by & 0xffff) | width << 16;
}

template <typename T>
T
check_aligned(T p, size_t bytes)
{
	if (reinterpret_cast<uintptr_t>(p) % bytes != 0)
		fail("atomic operation at %p, not a multiple of %zu", static_cast<const void *>(p), bytes);
	return p;
}

}  // namespace gpuvm_emulated

/* -- collectives ------------------------------------------------------------------- */

inline void
__syncwarp(unsigned mask = 0xffffffff)
{
	gpuvm_emulated::rendezvous(gpuvm_emulated::syncwarp_operation, 0, mask, 0, 0,
		[](const gpuvm_emulated::Deposit *, uint32_t, uint32_t) -> uint64_t { return 0; });
}

inline void __syncthreads() { gpuvm_emulated::block_barrier(gpuvm_emulated::syncthreads_operation, false); }
inline int __syncthreads_count(int p) { return static_cast<int>(gpuvm_emulated::block_barrier(gpuvm_emulated::syncthreads_count_operation, p != 0)); }
inline int __syncthreads_or(int p) { return gpuvm_emulated::block_barrier(gpuvm_emulated::syncthreads_or_operation, p != 0) != 0; }
inline int __syncthreads_and(int p) { return gpuvm_emulated::block_barrier(gpuvm_emulated::syncthreads_and_operation, p == 0) == 0; }

/* Hardware may name more lanes than this one, but code must not count on it. */
inline unsigned __activemask() { return 1u << (threadIdx.x % 32); }

inline unsigned
__ballot_sync(unsigned mask, int predicate)
{
	return static_cast<unsigned>(gpuvm_emulated::rendezvous(gpuvm_emulated::ballot_sync_operation, 0, mask, predicate != 0, 0,
		[](const gpuvm_emulated::Deposit *lanes, uint32_t present, uint32_t) -> uint64_t {
			uint64_t	bits = 0;

			for (uint32_t l = 0; l < 32; l++)
				bits |= (present >> l & 1) != 0 && lanes[l].value != 0 ? uint64_t{1} << l : 0;
			return bits;
		}));
}

inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }

template <typename T>
T
__shfl_sync(unsigned mask, T value, int from, int width = 32)
{
	using namespace gpuvm_emulated;
	return from_word<T>(rendezvous(gpuvm_emulated::shfl_sync_operation, sizeof(T), mask, to_word(value), shuffle_param(from, width),
		[](const Deposit *lanes, uint32_t present, uint32_t lane) -> uint64_t {
			uint32_t	w = static_cast<uint32_t>(lanes[lane].param) >> 16;

			return value_of_lane(lanes, present, (lane & ~(w - 1)) | (static_cast<uint32_t>(lanes[lane].param) & (w - 1)));
		}));
}

template <typename T>
T
__shfl_xor_sync(unsigned mask, T value, int by, int width = 32)
{
	using namespace gpuvm_emulated;
	return from_word<T>(rendezvous(gpuvm_emulated::shfl_xor_sync_operation, sizeof(T), mask, to_word(value), shuffle_param(by, width),
		[](const Deposit *lanes, uint32_t present, uint32_t lane) -> uint64_t {
			uint32_t	w = static_cast<uint32_t>(lanes[lane].param) >> 16;
			uint32_t	from = lane ^ (static_cast<uint32_t>(lanes[lane].param) & 31);

			/* a segment above gives no value */
			return value_of_lane(lanes, present, (from & ~(w - 1)) > (lane & ~(w - 1)) ? lane : from);
		}));
}

template <typename T>
T
__shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
	using namespace gpuvm_emulated;
	return from_word<T>(rendezvous(gpuvm_emulated::shfl_up_sync_operation, sizeof(T), mask, to_word(value), shuffle_param(static_cast<int>(by), width),
		[](const Deposit *lanes, uint32_t present, uint32_t lane) -> uint64_t {
			uint32_t	w = static_cast<uint32_t>(lanes[lane].param) >> 16, d = static_cast<uint32_t>(lanes[lane].param) & 0xffff;

			return value_of_lane(lanes, present, (lane & (w - 1)) < d ? lane : lane - d);
		}));
}

template <typename T>
T
__shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
	using namespace gpuvm_emulated;
	return from_word<T>(rendezvous(gpuvm_emulated::shfl_down_sync_operation, sizeof(T), mask, to_word(value), shuffle_param(static_cast<int>(by), width),
		[](const Deposit *lanes, uint32_t present, uint32_t lane) -> uint64_t {
			uint32_t	w = static_cast<uint32_t>(lanes[lane].param) >> 16, d = static_cast<uint32_t>(lanes[lane].param) & 0xffff;

			return value_of_lane(lanes, present, (lane & (w - 1)) + d >= w ? lane : lane + d);
		}));
}

template <typename T>
unsigned
__match_any_sync(unsigned mask, T value)
{
	using namespace gpuvm_emulated;
	return static_cast<unsigned>(rendezvous(gpuvm_emulated::match_any_sync_operation, sizeof(T), mask, to_word(value), 0,
		[](const Deposit *lanes, uint32_t present, uint32_t lane) -> uint64_t {
			uint64_t	bits = 0;

			for (uint32_t l = 0; l < 32; l++)
				bits |= (present >> l & 1) != 0 && lanes[l].value == lanes[lane].value ? uint64_t{1} << l : 0;
			return bits;
		}));
}

template <typename T>
unsigned
__match_all_sync(unsigned mask, T value, int *predicate)
{
	*predicate = __match_any_sync(mask, value) == mask;
	return *predicate ? mask : 0;
}

/* The hardware has these for 32 bits alone. */
#define GPUVM_REDUCE(name, type, expression) \
	inline type \
	name(unsigned mask, type value) \
	{ \
		return static_cast<type>(gpuvm_emulated::rendezvous(gpuvm_emulated::name##_operation, sizeof(type), mask, gpuvm_emulated::to_word(value), 0, \
			[](const gpuvm_emulated::Deposit *lanes, uint32_t present, uint32_t lane) -> uint64_t { \
				type		a = gpuvm_emulated::from_word<type>(lanes[lane].value); \
				\
				for (uint32_t l = 0; l < 32; l++) \
					if ((present >> l & 1) != 0 && l != lane) \
					{ \
						type		b = gpuvm_emulated::from_word<type>(lanes[l].value); \
						\
						a = (expression); \
					} \
				return gpuvm_emulated::to_word(a); \
			})); \
	}
GPUVM_REDUCE(__reduce_add_sync, unsigned, a + b)
GPUVM_REDUCE(__reduce_add_sync, int, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
GPUVM_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
GPUVM_REDUCE(__reduce_min_sync, int, a < b ? a : b)
GPUVM_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
GPUVM_REDUCE(__reduce_max_sync, int, a > b ? a : b)
GPUVM_REDUCE(__reduce_and_sync, unsigned, a & b)
GPUVM_REDUCE(__reduce_or_sync, unsigned, a | b)
GPUVM_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef GPUVM_REDUCE

/* -- memory ------------------------------------------------------------------------- */

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); gpuvm_emulated::may_yield(); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { gpuvm_emulated::yield_now(); }

template <typename T> T __ldg(const T *p) { return *p; }
template <typename T> T __ldca(const T *p) { return *p; }
template <typename T> T __ldcg(const T *p) { gpuvm_emulated::may_yield(); return *p; }
template <typename T> T __ldcs(const T *p) { return *p; }
template <typename T> T __ldcv(const T *p) { gpuvm_emulated::may_yield(); return *p; }
template <typename T> void __stcg(T *p, T v) { *p = v; }
template <typename T> void __stcs(T *p, T v) { *p = v; }
template <typename T> void __stwt(T *p, T v) { *p = v; }

/* Just the overloads that CUDA has, so that nothing compiles here alone. */
#define GPUVM_ATOMIC(name, type, expression) \
	inline type \
	name(type *p, type v) \
	{ \
		type		old, updated; \
		\
		gpuvm_emulated::may_yield(); \
		__atomic_load(gpuvm_emulated::check_aligned(p, sizeof(type)), &old, __ATOMIC_RELAXED); \
		do \
			updated = (expression); \
		while (!__atomic_compare_exchange(p, &old, &updated, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
		return old; \
	}
GPUVM_ATOMIC(atomicAdd, int, static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(v)))
GPUVM_ATOMIC(atomicAdd, unsigned, old + v)
GPUVM_ATOMIC(atomicAdd, unsigned long long, old + v)
GPUVM_ATOMIC(atomicAdd, float, old + v)
GPUVM_ATOMIC(atomicAdd, double, old + v)
GPUVM_ATOMIC(atomicSub, int, static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(v)))
GPUVM_ATOMIC(atomicSub, unsigned, old - v)
#define GPUVM_ATOMIC_INTEGERS(name, expression) \
	GPUVM_ATOMIC(name, int, expression) \
	GPUVM_ATOMIC(name, unsigned, expression) \
	GPUVM_ATOMIC(name, unsigned long long, expression)
GPUVM_ATOMIC_INTEGERS(atomicMin, v < old ? v : old)
GPUVM_ATOMIC(atomicMin, long long, v < old ? v : old)
GPUVM_ATOMIC_INTEGERS(atomicMax, v > old ? v : old)
GPUVM_ATOMIC(atomicMax, long long, v > old ? v : old)
GPUVM_ATOMIC_INTEGERS(atomicAnd, old & v)
GPUVM_ATOMIC_INTEGERS(atomicOr, old | v)
GPUVM_ATOMIC_INTEGERS(atomicXor, old ^ v)
GPUVM_ATOMIC_INTEGERS(atomicExch, v)
GPUVM_ATOMIC(atomicExch, float, v)
GPUVM_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
#undef GPUVM_ATOMIC_INTEGERS
#undef GPUVM_ATOMIC

#define GPUVM_ATOMIC_CAS(type) \
	inline type \
	atomicCAS(type *p, type expected, type v) \
	{ \
		gpuvm_emulated::may_yield(); \
		__atomic_compare_exchange(gpuvm_emulated::check_aligned(p, sizeof(type)), &expected, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return expected; \
	}
GPUVM_ATOMIC_CAS(int)
GPUVM_ATOMIC_CAS(unsigned)
GPUVM_ATOMIC_CAS(unsigned short)
GPUVM_ATOMIC_CAS(unsigned long long)
#undef GPUVM_ATOMIC_CAS

/* -- arithmetic --------------------------------------------------------------------- */

template <typename A, typename B>
constexpr std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, std::common_type_t<A, B>>
min(A a, B b)
{
	using C = std::common_type_t<A, B>;
	return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}

template <typename A, typename B>
constexpr std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, std::common_type_t<A, B>>
max(A a, B b)
{
	using C = std::common_type_t<A, B>;
	return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(v)); }

inline unsigned
__brev(unsigned v)
{
	unsigned	r = 0;

	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}

/* The n'th byte of the eight in y:x, for each nibble of the selector. */
inline unsigned
__byte_perm(unsigned x, unsigned y, unsigned selector)
{
	uint64_t	bytes = static_cast<uint64_t>(y) << 32 | x;
	unsigned	r = 0;

	for (int i = 0; i < 4; i++)
	{
		unsigned	n = selector >> (i * 4) & 15;
		unsigned	byte = static_cast<unsigned>(bytes >> ((n & 7) * 8)) & 0xff;

		r |= (n & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (i * 8);
	}
	return r;
}

inline unsigned
__funnelshift_r(unsigned lo, unsigned hi, unsigned by)
{
	return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) >> (by & 31));
}

inline unsigned
__funnelshift_l(unsigned lo, unsigned hi, unsigned by)
{
	return static_cast<unsigned>((static_cast<uint64_t>(hi) << 32 | lo) << (by & 31) >> 32);
}

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
inline unsigned long long
__umul64hi(unsigned long long a, unsigned long long b)
{
	return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long
__mul64hi(long long a, long long b)
{
	return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}

inline int
__dp4a(int a, int b, int c)
{
	for (int i = 0; i < 4; i++)
		c += static_cast<int8_t>(a >> (i * 8)) * static_cast<int8_t>(b >> (i * 8));
	return c;
}

inline unsigned
__dp4a(unsigned a, unsigned b, unsigned c)
{
	for (int i = 0; i < 4; i++)
		c += (a >> (i * 8) & 0xff) * (b >> (i * 8) & 0xff);
	return c;
}

inline int __float_as_int(float v) { return gpuvm_emulated::from_word<int>(gpuvm_emulated::to_word(v)); }
inline unsigned __float_as_uint(float v) { return gpuvm_emulated::from_word<unsigned>(gpuvm_emulated::to_word(v)); }
inline float __int_as_float(int v) { return gpuvm_emulated::from_word<float>(gpuvm_emulated::to_word(v)); }
inline float __uint_as_float(unsigned v) { return gpuvm_emulated::from_word<float>(gpuvm_emulated::to_word(v)); }
inline long long __double_as_longlong(double v) { return gpuvm_emulated::from_word<long long>(gpuvm_emulated::to_word(v)); }
inline double __longlong_as_double(long long v) { return gpuvm_emulated::from_word<double>(gpuvm_emulated::to_word(v)); }

/* Conversions saturate; NaN becomes the least integer of 64 bits (0 unsigned is not: the hardware gives the top bit). */
namespace gpuvm_emulated {

inline long long
saturated(double v)
{
	return v != v ? INT64_MIN : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : static_cast<long long>(v);
}

inline unsigned long long
saturated_unsigned(double v)
{
	return v != v ? 0x8000000000000000ull : v >= 0x1p64 ? UINT64_MAX : v <= 0 ? 0 : static_cast<unsigned long long>(v);
}

}  // namespace gpuvm_emulated

inline long long __double2ll_rd(double v) { return gpuvm_emulated::saturated(std::floor(v)); }
inline long long __double2ll_ru(double v) { return gpuvm_emulated::saturated(std::ceil(v)); }
inline long long __double2ll_rn(double v) { return gpuvm_emulated::saturated(std::nearbyint(v)); }
inline long long __double2ll_rz(double v) { return gpuvm_emulated::saturated(std::trunc(v)); }
inline unsigned long long __double2ull_rd(double v) { return gpuvm_emulated::saturated_unsigned(std::floor(v)); }
inline unsigned long long __double2ull_rn(double v) { return gpuvm_emulated::saturated_unsigned(std::nearbyint(v)); }
inline unsigned long long __double2ull_rz(double v) { return gpuvm_emulated::saturated_unsigned(std::trunc(v)); }
inline double __ll2double_rn(long long v) { return static_cast<double>(v); }
inline double __ull2double_rn(unsigned long long v) { return static_cast<double>(v); }

#endif
