/* emulated_block.h: between a launch and the blocks that run it. */
#ifndef GPUVM_EMULATED_BLOCK_H
#define GPUVM_EMULATED_BLOCK_H

#include <cstdint>

namespace gpuvm_emulated {

struct GridLaunch
{
	uint32_t	blocks, threads, shared_bytes;
	uint64_t	seed;
	bool		backwards;		/* the blocks' order */
	void		(*thread) (void *data);
	void	   *data;
};

void		run_blocks(const GridLaunch &launch);

}  // namespace gpuvm_emulated

#endif
