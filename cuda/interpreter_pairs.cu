#include "launch.cuh"

namespace gpuvm {
namespace cuda {

/* The loop keeps its values in registers: 64, and four blocks an SM, whose warps have much to do between two waits. */
InterpretFn
pairs_interpreter(OpSet set)
{
	return set != OpSet::All ? interpret<OpSet::Wide, PAIR_ROWS, 4, GridForm::Pairs> : interpret<OpSet::All, PAIR_ROWS, 4, GridForm::Pairs>;
}

}  // namespace cuda
}  // namespace gpuvm
