/* pin.cc: see pin.h. */
#include "pin.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>
#include <thread>

#include "engine/pin_words.h"

namespace gpuvm {
namespace cuda {

/* Punching holes takes milliseconds. */
constexpr std::chrono::milliseconds PUNCH_PATIENCE(50);

PinnedArena::PinnedArena(const DeviceOptions &options, const std::vector<int> &ordinals)
	: arena_(options.arena), arena_size_(options.arena_size), chunk_bytes_(pin_chunk_bytes(options.arena_size)),
	  header_(options.header), open_pages_(options.open_pages), close_pages_(options.close_pages), pages_(options.pages),
	  log_(options.log), ordinals_(ordinals), chunks_(pin_chunks(options.arena_size))
{
}

PinnedArena::~PinnedArena()
{
	for (uint32_t i = 0; i < chunks_.size(); i++)
		if (chunks_[i].registered)
		{
			(void) cudaHostUnregister(chunk_at(i));
			pin_give_up(&header_->pins[i]);
		}
}

uint64_t
PinnedArena::bytes_of(uint32_t number) const
{
	return std::min(chunk_bytes_, arena_size_ - number * chunk_bytes_);
}

uint64_t
PinnedArena::in_one_chunk(const void *at, uint64_t bytes) const
{
	return std::min(bytes, chunk_bytes_ - offset_of(at) % chunk_bytes_);
}

cudaError_t
PinnedArena::register_chunk(uint32_t number)
{
	const uint64_t offset = number * chunk_bytes_, bytes = bytes_of(number);

	if (open_pages_ != nullptr && !open_pages_(pages_, offset, bytes))
		return cudaErrorMemoryAllocation;

	const cudaError_t rc = cudaHostRegister(chunk_at(number), bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);

	if (close_pages_ != nullptr)
		close_pages_(pages_, offset, bytes);
	return rc;
}

/* Under the chunk's mutex. */
bool
PinnedArena::pin(uint32_t number, Chunk *chunk)
{
	PinWord    *word = &header_->pins[number];
	auto		give_up = std::chrono::steady_clock::now() + PUNCH_PATIENCE;

	while (pin_take(word) == PinTake::Busy)
	{
		if (std::chrono::steady_clock::now() > give_up)
			return false;
		std::this_thread::sleep_for(std::chrono::microseconds(100));
	}
	if (chunk->registered)
		return true;			/* it had been wanted back */

	int			current = 0;
	cudaError_t rc = cudaGetDevice(&current);

	chunk->addresses.reset(new (std::nothrow) uint64_t[ordinals_.size()]());
	if (!chunk->addresses)
		rc = cudaErrorMemoryAllocation;

	if (rc == cudaSuccess)
		rc = register_chunk(number);
	if (rc == cudaSuccess)
	{
		for (size_t d = 0; d < ordinals_.size() && rc == cudaSuccess; d++)
		{
			void	   *address = nullptr;

			if (ordinals_[d] < 0)
				continue;
			if ((rc = cudaSetDevice(ordinals_[d])) == cudaSuccess)
				rc = cudaHostGetDevicePointer(&address, chunk_at(number), 0);
			chunk->addresses[d] = reinterpret_cast<uint64_t>(address);
		}
		(void) cudaSetDevice(current);
		if (rc != cudaSuccess)
			(void) cudaHostUnregister(chunk_at(number));
	}
	if (rc != cudaSuccess)
	{
		char		line[200];

		(void) cudaGetLastError();
		pin_give_up(word);
		snprintf(line, sizeof(line), "could not pin chunk %u of the arena: %s", number, cudaGetErrorString(rc));
		if (!chunk->failed)
			log_(line);
		chunk->failed = true;
		return false;
	}
	chunk->registered = true;
	return true;
}

bool
PinnedArena::use(uint32_t number)
{
	Chunk	   *chunk = &chunks_[number];
	std::lock_guard<std::mutex> lock(chunk->mutex);

	if ((!chunk->registered || pin_state(header_->pins[number]) != PinState::Pinned) && !pin(number, chunk))
		return false;
	chunk->users++;
	return true;
}

void
PinnedArena::leave(uint32_t number)
{
	std::lock_guard<std::mutex> lock(chunks_[number].mutex);

	chunks_[number].users--;
}

void
PinnedArena::unpin_wanted()
{
	for (uint32_t i = 0; i < chunks_.size(); i++)
	{
		if (pin_state(header_->pins[i]) != PinState::UnpinWanted)
			continue;

		std::lock_guard<std::mutex> lock(chunks_[i].mutex);

		if (!chunks_[i].registered || chunks_[i].users > 0 || pin_state(header_->pins[i]) != PinState::UnpinWanted)
			continue;
		if (cudaHostUnregister(chunk_at(i)) != cudaSuccess)
		{
			(void) cudaGetLastError();
			continue;			/* it stays pinned, and its word says so */
		}
		chunks_[i].registered = false;
		pin_give_up(&header_->pins[i]);
	}
}

PinnedArena::Hold::~Hold()
{
	for (size_t i = held_._Find_first(); i < held_.size(); i = held_._Find_next(i))
		arena_->leave(static_cast<uint32_t>(i));
}

bool
PinnedArena::Hold::take(const void *at, uint64_t bytes)
{
	uint64_t	first = arena_->offset_of(at) / arena_->chunk_bytes_;
	uint64_t	last = (arena_->offset_of(at) + bytes - 1) / arena_->chunk_bytes_;

	for (uint64_t i = first; i <= last; i++)
	{
		if (held_[i])
			continue;
		if (!arena_->use(static_cast<uint32_t>(i)))
			return false;
		held_[i] = true;
	}
	return true;
}

bool
PinnedArena::Hold::map(uint32_t device, const void *at, uint64_t bytes)
{
	const uint64_t first = arena_->offset_of(at) / arena_->chunk_bytes_;
	const uint64_t last = (arena_->offset_of(at) + bytes - 1) / arena_->chunk_bytes_;

	if (!take(at, bytes))
		return false;
	for (uint64_t i = first; i < last; i++)
		if (arena_->chunks_[i].addresses[device] + arena_->chunk_bytes_ != arena_->chunks_[i + 1].addresses[device])
			return false;
	return true;
}

uint64_t
PinnedArena::Hold::address(uint32_t device, const void *at) const
{
	const uint64_t offset = arena_->offset_of(at);

	return arena_->chunks_[offset / arena_->chunk_bytes_].addresses[device] + offset % arena_->chunk_bytes_;
}

}  // namespace cuda
}  // namespace gpuvm
