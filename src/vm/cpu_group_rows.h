/*
 * cpu_group_rows.h: memory for groups and records (cpu_group_parts.cc). Rows of one width lie one behind the other in
 * blocks, which never move and are all of one size: what gives its blocks back makes room for anything. A worker's blocks
 * are cut from a few large pieces. Private to the CPU virtual machine (cpu_*.cc).
 */
#ifndef GPUVM_VM_CPU_GROUP_ROWS_H
#define GPUVM_VM_CPU_GROUP_ROWS_H

#include <cstring>
#include <mutex>
#include <vector>

#include "core/bits.h"
#include "vm/cpu_pages.h"

namespace gpuvm {

constexpr size_t BLOCK_BYTES = 4096;

struct SharedBlocks;

/* One worker's. A row that is longer has a block of its own, of its length: then there are no others. */
class RowBlocks
{
public:
	explicit RowBlocks(size_t least_bytes = 0) : block_bytes_(least_bytes > BLOCK_BYTES ? least_bytes : BLOCK_BYTES) {}

	/* But for those of shared ones. */
	size_t		bytes() const { return bytes_; }
	size_t		block_bytes() const { return block_bytes_; }
	size_t		blocks() const { return bytes_ / block_bytes_; }

	/* Are there as many, without new memory? */
	bool		has(size_t blocks) const { return (last_end_ - last_) / block_bytes_ + returned_.size() >= blocks; }
	/* May throw std::bad_alloc. */
	void		reserve(size_t blocks);

	/* Zeroed; may throw std::bad_alloc. */
	char	   *take();
	void		give_back(char *block) { returned_.push_back(block); }
	/* All that it had is this one's from now on. */
	void		adopt(RowBlocks *from);
	/* From now on its blocks are another one's, who lives longer and is asked by several threads. */
	void		share(SharedBlocks *of) { of_ = of; }

private:
	void		add_piece(size_t bytes, size_t least);
	char	   *new_block();

	size_t		block_bytes_;
	SharedBlocks *of_ = nullptr;
	size_t		bytes_ = 0;
	std::vector<Pages> pieces_;
	size_t		last_ = 0;		/* of the last piece: what has not been taken begins here */
	size_t		last_end_ = 0;
	std::vector<char *> returned_;
};

/* Rows one after the other. */
struct RowList
{
	std::vector<char *> blocks;
	char	   *next = nullptr;	/* in the last block */
	char	   *end = nullptr;
};

struct SharedBlocks
{
	explicit SharedBlocks(size_t least_bytes) : blocks(least_bytes) {}

	std::mutex	mutex;
	RowBlocks	blocks;
};

/* How rows of a width lie in their blocks. */
struct RowShape
{
	int			bytes = 0;
	int			block_bits = 0;	/* rows a block, as a power of two */

	size_t		block_rows() const { return size_t(1) << block_bits; }
	size_t		block_bytes() const { return static_cast<size_t>(bytes) << block_bits; }
	char	   *at(const std::vector<char *> &blocks, uint64_t row) const
	{
		return blocks[row >> block_bits] + (row & (block_rows() - 1)) * static_cast<size_t>(bytes);
	}
	uint64_t	rows_of(const RowList &list) const
	{
		return (list.blocks.size() << block_bits) - static_cast<size_t>(list.end - list.next) / bytes;
	}
	/* A zeroed row. */
	char	   *append(RowList *list, RowBlocks *memory) const
	{
		if (list->next == list->end)
			add_block(list, memory);

		char	   *row = list->next;

		list->next += bytes;
		return row;
	}
	void		add_block(RowList *list, RowBlocks *memory) const;
	/* All rows but the first n go. */
	void		truncate(RowList *list, uint64_t n, RowBlocks *memory) const;
};

}  // namespace gpuvm

#endif
