#include "launch.cuh"

GPUVM_INSTANTIATE_INTERPRETER(8)
