/*
 * residency.h: one device's memory: the column chunks that are kept there, and
 * the working memory of jobs, together inside one limit.
 *
 * A chunk is one column of one tablet, values and null bitmap, and known by the
 * tablet's serial and the column's number. Its states:
 *
 *   Claimed   one job has room for it and is about to start its copy
 *   Copying   the copy is on its way: others let their streams wait for `copied`
 *   Resident
 *
 * Who claims a chunk starts its copy at once, without waiting for anybody, so
 * waiting for a claim to become a copy is short and cannot be part of a circle.
 * A job pins the chunks that it uses until the device is done with them; what is
 * not pinned is evicted when room is needed, by clock: a chunk that was used
 * since the hand last passed gets another round.
 *
 * One mutex guards all of it; nobody calls CUDA or locks anything else under it.
 * Memory comes from CUDA's pool, in the order of the caller's stream. What is
 * freed is not in use by any stream: the jobs that used it have seen their end.
 */
#ifndef GPUVM_CUDA_RESIDENCY_H
#define GPUVM_CUDA_RESIDENCY_H

#include <cuda_runtime.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/device_abi.h"

namespace gpuvm {
namespace cuda {

struct ChunkKey
{
	uint64_t	serial;			/* of the tablet */
	uint32_t	column;

	bool operator==(const ChunkKey &other) const { return serial == other.serial && column == other.column; }
};

struct ChunkKeyHash
{
	size_t operator()(const ChunkKey &key) const
	{
		return static_cast<size_t>((key.serial * 4096 + key.column) * 0x9e3779b97f4a7c15ull >> 16);
	}
};

struct CachedChunk
{
	enum class State { Claimed, Copying, Resident };

	ChunkKey	key;
	uint64_t	bytes;
	char	   *memory;
	cudaEvent_t copied;			/* recorded behind the copy */
	State		state;
	uint32_t	pins;
	bool		used;			/* since the clock's hand last passed */
	size_t		place;			/* on the clock */
};

class Residency
{
public:
	Residency(uint64_t limit, DeviceStatus *status) : limit_(limit), status_(status) {}
	~Residency();

	uint64_t limit() const { return limit_; }

	/* For many find()s in a row. */
	std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }
	/* The chunk if it is there or on its way, pinned. The caller holds lock(). */
	CachedChunk *find(const ChunkKey &key, uint64_t bytes);
	/* Whether find() would; pins nothing. The caller holds lock(). */
	bool		has(const ChunkKey &key, uint64_t bytes) const;

	/*
	 * The chunk, pinned; nullptr if there is no room. With *claimed, its memory is
	 * there but not its contents: the caller starts the copy on `stream` and then
	 * calls copying(), or abandon() if it could not.
	 */
	CachedChunk *acquire(const ChunkKey &key, uint64_t bytes, cudaStream_t stream, bool *claimed);
	void		copying(CachedChunk *chunk, cudaStream_t stream);
	void		abandon(CachedChunk *chunk, cudaStream_t stream);

	/* The job is done with these; those that it claimed have arrived. */
	void		release(const std::vector<CachedChunk *> &pinned, const std::vector<CachedChunk *> &claimed);

	/* Working memory; nullptr if there is no room, even after evicting. */
	char	   *allocate(uint64_t bytes, cudaStream_t stream);
	void		free(char *memory, uint64_t bytes, cudaStream_t stream);

	/* What allocate() or acquire() could give at most, by evicting all that is not pinned. */
	uint64_t	available();

	/* So many bytes of columns will come soon: lets the pool grow for them, within the limit. */
	void		expect(uint64_t bytes, cudaMemPool_t pool, cudaStream_t stream);

private:
	using Map = std::unordered_map<ChunkKey, std::unique_ptr<CachedChunk>, ChunkKeyHash>;
	using Evicted = std::vector<std::unique_ptr<CachedChunk>>;

	void		pin(CachedChunk *chunk);
	void		unpin(CachedChunk *chunk);
	std::unique_ptr<CachedChunk> take_out(CachedChunk *chunk);
	void		evict(uint64_t bytes, Evicted *evicted);
	bool		make_room(uint64_t bytes, Evicted *evicted);
	void		dispose(Evicted *evicted, cudaStream_t stream);
	CachedChunk *find_or_claim(const ChunkKey &key, uint64_t bytes, Evicted *evicted, bool *claimed);
	char	   *allocate_reserved(uint64_t bytes, cudaStream_t stream);
	void		show();

	const uint64_t limit_;
	DeviceStatus *status_;
	std::mutex	mutex_;
	std::condition_variable claims_;	/* a claimed chunk changed its state or went */
	Map			chunks_;
	std::vector<CachedChunk *> clock_;
	size_t		hand_ = 0;
	uint64_t	cached_ = 0;	/* bytes */
	uint64_t	pinned_ = 0;	/* of the cached ones */
	uint64_t	working_ = 0;
	uint64_t	expected_ = 0;	/* of columns that have not come yet */
};

}  // namespace cuda
}  // namespace gpuvm

#endif
