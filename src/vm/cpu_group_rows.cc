/* cpu_group_rows.cc: see cpu_group_rows.h. */
#include "vm/cpu_group_rows.h"

#include <algorithm>
#include <new>

namespace gpuvm {

/* A piece is as large as what there is already, within these: few allocations, and little that is not used. */
constexpr size_t LEAST_PIECE = size_t(16) << 10;
constexpr size_t GREATEST_PIECE = size_t(16) << 20;

/* Blocks that a thread takes of shared ones. */
constexpr size_t SHARED_AT_ONCE = 8;

void
RowBlocks::reserve(size_t blocks)
{
	if (of_ != nullptr && !has(blocks))
	{
		std::lock_guard<std::mutex> lock(of_->mutex);
		const size_t n = std::max(blocks, SHARED_AT_ONCE);

		returned_.reserve(n);
		of_->blocks.reserve(n);
		while (returned_.size() < n)
			returned_.push_back(of_->blocks.new_block());
	}
	while (!has(blocks))
	{
		const size_t missing = (blocks - returned_.size()) * block_bytes_;
		const size_t bytes = std::max(missing, std::clamp(bytes_, LEAST_PIECE, GREATEST_PIECE));

		returned_.reserve(returned_.size() + (last_end_ - last_) / block_bytes_);
		add_piece(bytes, std::max(missing, LEAST_PIECE));
		/* what is left of the one before is zeroed once more when it is taken */
		for (; last_ < last_end_; last_ += block_bytes_)
			returned_.push_back(pieces_[pieces_.size() - 2].as<char>() + last_);
		bytes_ += pieces_.back().bytes();
		last_ = 0;
		last_end_ = pieces_.back().bytes() / block_bytes_ * block_bytes_;
	}
}

/* Of so many bytes, or of the least where memory is short. */
void
RowBlocks::add_piece(size_t bytes, size_t least)
{
	try
	{
		pieces_.emplace_back(bytes, bytes >= HUGE_PAGE);
	}
	catch (const std::bad_alloc &)
	{
		if (bytes <= least)
			throw;
		pieces_.emplace_back(least, least >= HUGE_PAGE);
	}
}

/* Not zeroed; reserve() was called. */
char *
RowBlocks::new_block()
{
	char	   *block;

	if (last_ < last_end_)
	{
		block = pieces_.back().as<char>() + last_;
		last_ += block_bytes_;
		return block;
	}
	block = returned_.back();
	returned_.pop_back();
	return block;
}

char *
RowBlocks::take()
{
	reserve(1);

	const bool	fresh = last_ < last_end_;
	char	   *block = new_block();

	if (!fresh)
		memset(block, 0, block_bytes_);
	return block;
}

void
RowBlocks::adopt(RowBlocks *from)
{
	/* not behind the last, of which there is more to take */
	pieces_.reserve(pieces_.size() + from->pieces_.size());
	pieces_.insert(pieces_.begin(), std::make_move_iterator(from->pieces_.begin()), std::make_move_iterator(from->pieces_.end()));
	bytes_ += from->bytes_;
	from->pieces_.clear();
	from->returned_.clear();
	from->bytes_ = from->last_ = from->last_end_ = 0;
}

void
RowShape::add_block(RowList *list, RowBlocks *memory) const
{
	char	   *block;

	if (list->blocks.size() == list->blocks.capacity())
		list->blocks.reserve(std::max<size_t>(8, 2 * list->blocks.size()));
	block = memory->take();
	list->blocks.push_back(block);
	list->next = block;
	list->end = block + block_bytes();
}

void
RowShape::truncate(RowList *list, uint64_t n, RowBlocks *memory) const
{
	const size_t blocks = (n + block_rows() - 1) >> block_bits;

	for (size_t i = blocks; i < list->blocks.size(); i++)
		memory->give_back(list->blocks[i]);
	list->blocks.resize(blocks);
	list->next = list->end = nullptr;
	if (blocks == 0)
		return;
	list->end = list->blocks.back() + block_bytes();
	list->next = at(list->blocks, n - 1) + bytes;
	memset(list->next, 0, static_cast<size_t>(list->end - list->next));
}

}  // namespace gpuvm
