/* cpu_kernels_base.cc: the kernels for any processor of the architecture. */
#include <cstring>
#include <limits>
#include <type_traits>


#include "vm/cpu_kernels.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"

/* A sanitizer's build is for what loops read and compute: unoptimised it compiles in half the time. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#pragma GCC optimize("O3")
#endif
#pragma GCC optimize("fp-contract=off", "no-trapping-math", "no-math-errno")


#define GPUVM_LEVEL base
#include "vm/cpu_kernels_impl.h"

namespace gpuvm {
const Kernels kernels_base = base::table;
}

