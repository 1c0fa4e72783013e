/*
 * residency.h: one device's memory: the column chunks and indexes that are kept there,
 * and the working memory of jobs, together inside one limit.
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
 *
 * An index (join_index.h) was the working memory of the job that built it, which hands it
 * over when the device is done with building: there is nothing to wait for. Two jobs may build
 * the same one; the second keeps its own for itself.
 *
 * A column set is the chunks of many tablets' columns, all of them Resident, that a job has used and others
 * will: found by one look-up, with their addresses as kernels take them. It keeps its chunks pinned when nobody
 * uses it; when room is wanted, the sets that nobody uses go first, and their chunks are as all others.
 *
 * A job pins the chunks and indexes that it uses until the device is done with them; what is
 * not pinned is evicted when room is needed, by clock: what was used
 * since the hand last passed gets another round. So go columns of tablets that are no more; their indexes go when somebody looks.
 *
 * One mutex guards all of it; nobody calls CUDA or locks anything else under it.
 * Memory comes from CUDA's pool, in the order of the caller's stream. What is
 * freed is not in use by any stream: the jobs that used it have seen their end.
 */
#ifndef GPUVM_CUDA_RESIDENCY_H
#define GPUVM_CUDA_RESIDENCY_H

#include <cuda_runtime.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device_program.h"
#include "engine/device_abi.h"
#include "join_index.h"

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

/* Indexes that are kept at most, however small: one more pushes out another. A variable for tests. */
extern size_t most_indexes;

/* What is kept: a chunk or an index. */
struct Kept
{
	Kept(uint64_t b, bool is_index) : bytes(b), index(is_index) {}
	virtual ~Kept() = default;

	const uint64_t bytes;
	const bool	index;
	uint32_t	pins = 0;
	bool		used = true;	/* since the clock's hand last passed */
	size_t		place = 0;		/* on the clock */
};

struct CachedChunk final : Kept
{
	enum class State { Claimed, Copying, Resident };

	CachedChunk(const ChunkKey &k, uint64_t b) : Kept(b, false), key(k) {}

	const ChunkKey key;
	char	   *memory = nullptr;
	cudaEvent_t copied = nullptr;	/* recorded behind the copy */
	State		state = State::Claimed;
};

struct CachedIndex final : Kept
{
	CachedIndex(const std::string &k, const JoinIndex &c, const std::vector<IndexTablet> &t)
		: Kept(c.bytes(), true), key(k), content(c), tablets(t) {}

	bool gone() const { return std::any_of(tablets.begin(), tablets.end(), [](const IndexTablet &of) { return of.gone(); }); }

	const std::string key;
	const JoinIndex content;
	const std::vector<IndexTablet> tablets;
};

struct ColumnSet
{
	std::string key;			/* serials of the tablets, columns */
	std::vector<CachedChunk *> chunks;
	std::vector<DeviceChunk> described;	/* by tablet and column; of DEAD_COLUMN nothing */
	std::vector<uint64_t> tablet_bytes;
	uint64_t	bytes = 0;
	uint32_t	users = 0;
	uint64_t	last_use = 0;
};

/* Sets that are kept at most. */
constexpr size_t MOST_SETS = 64;

class Residency
{
public:
	Residency(uint64_t limit, DeviceStatus *status) : limit_(limit), status_(status) { sets_.reserve(MOST_SETS); }
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

	/* The set of that key, for release_set(); nullptr: there is none. *again: it was asked for before, so one is worth making. */
	ColumnSet  *find_set(const std::string &key, bool *again);
	/* Takes over the pins of the set's chunks. */
	void		keep_set(std::unique_ptr<ColumnSet> set) noexcept;
	void		release_set(ColumnSet *set);

	/* The index of that key, pinned; nullptr: there is none. */
	const CachedIndex *find_index(const std::string &key);
	/* Its bytes, 0: there is none. Pins nothing. The caller holds lock(). */
	uint64_t	index_bytes(const std::string &key) const;
	/*
	 * Working memory of the caller's, with which the device is done, becomes an index that the caller has pinned.
	 * nullptr: there is one of that key already, and the memory is the caller's as before. If they are too many now, another one goes.
	 */
	const CachedIndex *keep_index(const std::string &key, const JoinIndex &content, const std::vector<IndexTablet> &tablets, cudaStream_t stream);
	/* The job is done with these. */
	void		release(const std::vector<const CachedIndex *> &pinned);
	/* Those of tablets that are gone go, or `all`, but for those that are pinned. */
	void		forget_indexes(bool all, cudaStream_t stream);

	/* Working memory; nullptr if there is no room, even after evicting. */
	char	   *allocate(uint64_t bytes, cudaStream_t stream);
	void		free(char *memory, uint64_t bytes, cudaStream_t stream);

	/* Bytes that no eviction gives back: working memory, and what jobs have pinned. */
	struct Held
	{
		uint64_t	working, pinned;
	};
	Held		held();

	/* What allocate() or acquire() could give at most, by evicting all that is not pinned; `wanted`: whether it is as much, matters. */
	uint64_t	available(uint64_t wanted = 0);

	/* So many bytes of columns will come soon: lets the pool grow for them, within the limit. */
	void		expect(uint64_t bytes, cudaMemPool_t pool, cudaStream_t stream);

private:
	using Map = std::unordered_map<ChunkKey, std::unique_ptr<CachedChunk>, ChunkKeyHash>;
	using Indexes = std::unordered_map<std::string, std::unique_ptr<CachedIndex>>;
	using Evicted = std::vector<std::unique_ptr<Kept>>;

	void		pin(Kept *kept);
	void		unpin(Kept *kept);
	void		drop_set(size_t at);
	void		drop_idle_sets();
	void		add_to_clock(Kept *kept);
	std::unique_ptr<Kept> take_out(Kept *kept);
	void		evict(uint64_t bytes, Evicted *evicted);
	void		evict_index(Evicted *evicted);
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
	Indexes		indexes_;
	std::vector<std::unique_ptr<ColumnSet>> sets_;
	std::unordered_set<std::string> asked_;	/* keys of sets that there are not */
	uint64_t	uses_ = 0;		/* of sets */
	std::vector<Kept *> clock_;
	size_t		hand_ = 0;
	uint64_t	cached_ = 0;	/* bytes */
	uint64_t	indexed_ = 0;	/* of these, of indexes */
	uint64_t	pinned_ = 0;	/* of the cached ones */
	uint64_t	working_ = 0;
	uint64_t	expected_ = 0;	/* of columns that have not come yet */
};

}  // namespace cuda
}  // namespace gpuvm

#endif
