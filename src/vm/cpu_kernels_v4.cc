/* cpu_kernels_v4.cc: the kernels for x86-64-v4. */
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#include "vm/cpu_kernels.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"

/* A sanitizer's build is for what loops read and compute: unoptimised it compiles in half the time. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#pragma GCC optimize("O3")
#endif
#pragma GCC optimize("fp-contract=off", "no-trapping-math", "no-math-errno")
/* g++ 12 takes the undefined operand of its own intrinsics for an uninitialised one (GCC bug 105593). */
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#pragma GCC target("arch=x86-64-v4")

/* said here: the macros of the compiler need not follow the pragma */
#define GPUVM_AVX512
#define GPUVM_LEVEL v4
#include "vm/cpu_kernels_impl.h"

namespace gpuvm {
const Kernels kernels_v4 = v4::table;
}

#endif
