/*
 * pin.h: the arena's chunks that are pinned (page-locked) and mapped into the
 * devices' address space.
 *
 * A chunk is pinned when something first needs it, and stays pinned until
 * PostgreSQL's side asks for it back and no job uses it. The word in the arena's
 * header (engine/pin_words.h) keeps other processes from punching holes into it
 * meanwhile. Each chunk has a mutex of its own, so that chunks are pinned in
 * parallel; nothing else is locked while one is held.
 *
 * The driver registers only what the process may write to, so a chunk is writable for that moment.
 * Devices go by their own page tables, which say that they may write, afterwards, too.
 */
#ifndef GPUVM_CUDA_PIN_H
#define GPUVM_CUDA_PIN_H

#include <cuda_runtime.h>

#include <bitset>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/device_abi.h"

namespace gpuvm {
namespace cuda {

class PinnedArena
{
public:
	/* `ordinals`: CUDA's numbers of the devices, by device index; -1 for those that are not used. */
	PinnedArena(const DeviceOptions &options, const std::vector<int> &ordinals);
	~PinnedArena();

	/* The chunks that a job uses: none of them is unpinned while this lives. */
	class Hold
	{
	public:
		explicit Hold(PinnedArena *arena) : arena_(arena) {}
		~Hold();
		Hold(const Hold &) = delete;
		Hold &operator=(const Hold &) = delete;

		/* Pins what holds these bytes. False: that cannot be done now. */
		bool		take(const void *at, uint64_t bytes);
		/* take(), and they are in one piece on the device. */
		bool		map(uint32_t device, const void *at, uint64_t bytes);
		/* Of what map() found. */
		uint64_t	address(uint32_t device, const void *at) const;

	private:
		PinnedArena *arena_;
		std::bitset<MAX_PIN_CHUNKS> held_;
	};

	/* Of `bytes` from `at` on, how many are in one chunk: a copy must not span two. */
	uint64_t	in_one_chunk(const void *at, uint64_t bytes) const;

	/* Unpins the chunks that are wanted back and that no job uses. */
	void		unpin_wanted();

private:
	struct Chunk
	{
		std::mutex	mutex;
		bool		registered = false;
		bool		failed = false;	/* said so in the log */
		uint32_t	users = 0;
		std::unique_ptr<uint64_t[]> addresses;	/* by device */
	};

	bool		use(uint32_t number);
	void		leave(uint32_t number);
	bool		pin(uint32_t number, Chunk *chunk);
	cudaError_t register_chunk(uint32_t number);
	uint64_t	offset_of(const void *at) const { return static_cast<uint64_t>(static_cast<const char *>(at) - arena_); }
	char	   *chunk_at(uint32_t number) const { return arena_ + number * chunk_bytes_; }
	uint64_t	bytes_of(uint32_t number) const;

	char	   *arena_;
	const uint64_t arena_size_;
	const uint64_t chunk_bytes_;
	ArenaHeader *header_;
	bool		(*open_pages_) (void *pages, uint64_t offset, uint64_t bytes);
	void		(*close_pages_) (void *pages, uint64_t offset, uint64_t bytes);
	void	   *pages_;
	void		(*log_) (const char *line);
	const std::vector<int> ordinals_;
	std::vector<Chunk> chunks_;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
