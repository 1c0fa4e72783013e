/* cpu_kernels_base.cc: the kernels for any processor of the architecture. */
#include <cstring>
#include <limits>
#include <type_traits>


#include "vm/cpu_kernels.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"

#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math", "no-math-errno")


#define GPUVM_LEVEL base
#include "vm/cpu_kernels_impl.h"

namespace gpuvm {
const Kernels kernels_base = base::table;
}

