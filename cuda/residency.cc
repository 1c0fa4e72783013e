/* residency.cc: see residency.h. */
#include "residency.h"

#include <algorithm>

#include "failure.h"

namespace gpuvm {
namespace cuda {

size_t		most_indexes = 4096;

Residency::~Residency()
{
	for (auto &entry : chunks_)
	{
		(void) cudaEventDestroy(entry.second->copied);
		(void) cudaFree(entry.second->memory);
	}
	for (auto &entry : indexes_)
		for (const JoinIndex::Piece &piece : entry.second->content.pieces)
			(void) cudaFree(piece.memory);
}

/* ---- under the mutex ----------------------------------------------------------- */

void
Residency::show()
{
	status_->memory_cached.store(cached_, std::memory_order_relaxed);
	status_->memory_indexes.store(indexed_, std::memory_order_relaxed);
	status_->memory_working.store(working_, std::memory_order_relaxed);
}

void
Residency::pin(Kept *kept)
{
	if (kept->pins++ == 0)
		pinned_ += kept->bytes;
	kept->used = true;
}

void
Residency::unpin(Kept *kept)
{
	if (--kept->pins == 0)
		pinned_ -= kept->bytes;
}

bool
Residency::has(const ChunkKey &key, uint64_t bytes) const
{
	auto		at = chunks_.find(key);

	return at != chunks_.end() && at->second->bytes == bytes && at->second->state != CachedChunk::State::Claimed;
}

CachedChunk *
Residency::find(const ChunkKey &key, uint64_t bytes)
{
	auto		at = chunks_.find(key);

	if (at == chunks_.end() || at->second->bytes != bytes || at->second->state == CachedChunk::State::Claimed)
		return nullptr;
	pin(at->second.get());
	return at->second.get();
}

void
Residency::add_to_clock(Kept *kept)
{
	kept->place = clock_.size();
	clock_.push_back(kept);
}

/* Off its map and the clock; its last pin has gone. */
std::unique_ptr<Kept>
Residency::take_out(Kept *kept)
{
	std::unique_ptr<Kept> owned;

	if (kept->index)
	{
		auto		at = indexes_.find(static_cast<CachedIndex *>(kept)->key);

		owned = std::move(at->second);
		indexes_.erase(at);
		indexed_ -= kept->bytes;
	}
	else
	{
		auto		at = chunks_.find(static_cast<CachedChunk *>(kept)->key);

		owned = std::move(at->second);
		chunks_.erase(at);
	}
	clock_[kept->place] = clock_.back();
	clock_[kept->place]->place = kept->place;
	clock_.pop_back();
	cached_ -= kept->bytes;
	return owned;
}

void
Residency::evict(uint64_t bytes, Evicted *evicted)
{
	uint64_t	freed = 0;

	drop_idle_sets();
	evicted->reserve(clock_.size());	/* fails before anything is taken out */
	/* Twice around: the first time clears `used`. */
	for (size_t steps = clock_.size() * 2; steps > 0 && freed < bytes && !clock_.empty(); steps--)
	{
		if (hand_ >= clock_.size())
			hand_ = 0;

		Kept	   *kept = clock_[hand_];

		if (kept->pins > 0 || kept->used)
		{
			kept->used = kept->used && kept->pins > 0;
			hand_++;
			continue;
		}
		freed += kept->bytes;
		evicted->push_back(take_out(kept));
	}
}

/* One that is not in use, rather one that was not used lately. There is room in `evicted`. */
void
Residency::evict_index(Evicted *evicted)
{
	CachedIndex *found = nullptr;

	for (const auto &[key, index] : indexes_)
		if (index->pins == 0 && (found == nullptr || (found->used && !index->used)))
			found = index.get();
	if (found == nullptr)
		return;
	if (found->used)
		for (const auto &[key, index] : indexes_)
			index->used = index->pins > 0;
	evicted->push_back(take_out(found));
}

bool
Residency::make_room(uint64_t bytes, Evicted *evicted)
{
	uint64_t	in_use = cached_ + working_;

	if (bytes > limit_)
		return false;
	if (working_ + pinned_ > limit_ - bytes)
		drop_idle_sets();
	if (working_ + pinned_ > limit_ - bytes)
		return false;			/* evicting would not help */
	if (in_use > limit_ - bytes)
		evict(in_use - (limit_ - bytes), evicted);
	return cached_ + working_ <= limit_ - bytes;
}

/* ---- not under the mutex ------------------------------------------------------- */

void
Residency::dispose(Evicted *evicted, cudaStream_t stream)
{
	for (const std::unique_ptr<Kept> &kept : *evicted)
	{
		if (kept->index)
		{
			for (const JoinIndex::Piece &piece : static_cast<CachedIndex *>(kept.get())->content.pieces)
				if (piece.memory != nullptr)
					(void) cudaFreeAsync(piece.memory, stream);
			continue;
		}

		const CachedChunk *chunk = static_cast<CachedChunk *>(kept.get());

		(void) cudaEventDestroy(chunk->copied);
		(void) cudaFreeAsync(chunk->memory, stream);
	}
	status_->evictions.fetch_add(evicted->size(), std::memory_order_relaxed);
	evicted->clear();
}

/*
 * The limit admits the bytes; whether the device has them is another matter, as
 * others use it too. Then as much is evicted, for the pool to serve it from.
 */
char *
Residency::allocate_reserved(uint64_t bytes, cudaStream_t stream)
{
	void	   *memory = nullptr;
	cudaError_t rc = cudaMallocAsync(&memory, bytes, stream);

	while (rc == cudaErrorMemoryAllocation)
	{
		Evicted		evicted;

		(void) cudaGetLastError();
		{
			std::lock_guard<std::mutex> guard(mutex_);

			evict(bytes, &evicted);
			show();
		}
		if (evicted.empty())
			return nullptr;
		dispose(&evicted, stream);
		check(cudaStreamSynchronize(stream), "freeing device memory");
		rc = cudaMallocAsync(&memory, bytes, stream);
	}
	check(rc, "allocating device memory");
	return static_cast<char *>(memory);
}

/* The chunk if it is there, as acquire() has it, or room for it. What had to go is `evicted`, also if this throws. */
CachedChunk *
Residency::find_or_claim(const ChunkKey &key, uint64_t bytes, Evicted *evicted, bool *claimed)
{
	std::unique_lock<std::mutex> guard(mutex_);

	*claimed = false;
	for (;;)
	{
		auto		at = chunks_.find(key);

		if (at == chunks_.end())
			break;
		if (at->second->bytes != bytes)
			return nullptr;
		if (at->second->state != CachedChunk::State::Claimed)
		{
			pin(at->second.get());
			return at->second.get();
		}
		claims_.wait(guard);
	}
	*claimed = make_room(bytes, evicted);
	show();
	if (!*claimed)
		return nullptr;

	auto		owned = std::make_unique<CachedChunk>(key, bytes);
	CachedChunk *chunk = owned.get();

	add_to_clock(chunk);
	try
	{
		chunks_.emplace(key, std::move(owned));
	}
	catch (...)
	{
		clock_.pop_back();
		throw;
	}
	cached_ += bytes;
	expected_ -= std::min(expected_, bytes);
	pin(chunk);
	show();
	return chunk;
}

CachedChunk *
Residency::acquire(const ChunkKey &key, uint64_t bytes, cudaStream_t stream, bool *claimed)
{
	Evicted		evicted;
	CachedChunk *chunk;

	try
	{
		chunk = find_or_claim(key, bytes, &evicted, claimed);
	}
	catch (...)
	{
		dispose(&evicted, stream);
		throw;
	}
	dispose(&evicted, stream);
	if (!*claimed)
		return chunk;
	*claimed = false;
	try
	{
		chunk->memory = allocate_reserved(bytes, stream);
		if (chunk->memory != nullptr)
			check(cudaEventCreateWithFlags(&chunk->copied, cudaEventDisableTiming), "making an event");
	}
	catch (...)
	{
		abandon(chunk, stream);
		throw;
	}
	if (chunk->memory == nullptr)
	{
		abandon(chunk, stream);
		return nullptr;
	}
	*claimed = true;
	return chunk;
}

void
Residency::copying(CachedChunk *chunk, cudaStream_t stream)
{
	check(cudaEventRecord(chunk->copied, stream), "recording an event");
	{
		std::lock_guard<std::mutex> guard(mutex_);

		chunk->state = CachedChunk::State::Copying;
	}
	claims_.notify_all();
}

void
Residency::abandon(CachedChunk *chunk, cudaStream_t stream)
{
	std::unique_ptr<Kept> owned;

	{
		std::lock_guard<std::mutex> guard(mutex_);

		unpin(chunk);
		owned = take_out(chunk);
		show();
	}
	claims_.notify_all();
	if (chunk->copied != nullptr)
		(void) cudaEventDestroy(chunk->copied);
	if (chunk->memory != nullptr)
		(void) cudaFreeAsync(chunk->memory, stream);
}

void
Residency::release(const std::vector<CachedChunk *> &pinned, const std::vector<CachedChunk *> &claimed)
{
	if (pinned.empty())
		return;

	std::lock_guard<std::mutex> guard(mutex_);

	for (CachedChunk *chunk : claimed)
		chunk->state = CachedChunk::State::Resident;
	for (CachedChunk *chunk : pinned)
		unpin(chunk);
}

/* ---- sets ---------------------------------------------------------------------- */

/* Under the mutex, as the next. */
void
Residency::drop_set(size_t at)
{
	for (CachedChunk *chunk : sets_[at]->chunks)
		unpin(chunk);
	sets_[at] = std::move(sets_.back());
	sets_.pop_back();
}

void
Residency::drop_idle_sets()
{
	for (size_t i = sets_.size(); i-- > 0;)
		if (sets_[i]->users == 0)
			drop_set(i);
}

ColumnSet *
Residency::find_set(const std::string &key, bool *again)
{
	std::lock_guard<std::mutex> guard(mutex_);

	*again = false;
	for (const std::unique_ptr<ColumnSet> &set : sets_)
		if (set->key == key)
		{
			set->users++;
			set->last_use = ++uses_;
			return set.get();
		}
	if (asked_.size() >= MOST_SETS)
		asked_.clear();
	*again = !asked_.insert(key).second;
	return nullptr;
}

void
Residency::keep_set(std::unique_ptr<ColumnSet> set) noexcept
{
	std::lock_guard<std::mutex> guard(mutex_);
	bool		keep = true;
	size_t		oldest = sets_.size();

	for (const CachedChunk *chunk : set->chunks)
		keep = keep && chunk->state == CachedChunk::State::Resident;
	for (size_t i = 0; i < sets_.size(); i++)
	{
		keep = keep && sets_[i]->key != set->key;
		if (sets_[i]->users == 0 && (oldest == sets_.size() || sets_[i]->last_use < sets_[oldest]->last_use))
			oldest = i;
	}
	if (keep && sets_.size() >= MOST_SETS && oldest != sets_.size())
		drop_set(oldest);
	keep = keep && sets_.size() < MOST_SETS;
	if (!keep)
	{
		for (CachedChunk *chunk : set->chunks)
			unpin(chunk);
		return;
	}
	asked_.erase(set->key);
	set->last_use = ++uses_;
	sets_.push_back(std::move(set));
}

void
Residency::release_set(ColumnSet *set)
{
	std::lock_guard<std::mutex> guard(mutex_);

	set->users--;
}

/* ---- indexes ------------------------------------------------------------------- */

const CachedIndex *
Residency::find_index(const std::string &key)
{
	std::lock_guard<std::mutex> guard(mutex_);
	auto		at = indexes_.find(key);

	if (at == indexes_.end())
		return nullptr;
	pin(at->second.get());
	return at->second.get();
}

uint64_t
Residency::index_bytes(const std::string &key) const
{
	auto		at = indexes_.find(key);

	return at != indexes_.end() ? at->second->bytes : 0;
}

const CachedIndex *
Residency::keep_index(const std::string &key, const JoinIndex &content, const std::vector<IndexTablet> &tablets, cudaStream_t stream)
{
	auto		owned = std::make_unique<CachedIndex>(key, content, tablets);
	CachedIndex *index = owned.get();
	Evicted		evicted;

	evicted.reserve(1);
	{
		std::lock_guard<std::mutex> guard(mutex_);

		clock_.reserve(clock_.size() + 1);	/* what fails, fails here or in the next line */
		if (!indexes_.emplace(key, std::move(owned)).second)
			return nullptr;
		add_to_clock(index);
		working_ -= index->bytes;
		cached_ += index->bytes;
		indexed_ += index->bytes;
		pin(index);
		if (indexes_.size() > most_indexes)
			evict_index(&evicted);
		show();
	}
	dispose(&evicted, stream);
	return index;
}

void
Residency::release(const std::vector<const CachedIndex *> &pinned)
{
	if (pinned.empty())
		return;

	std::lock_guard<std::mutex> guard(mutex_);

	for (const CachedIndex *index : pinned)
		unpin(const_cast<CachedIndex *>(index));
}

void
Residency::forget_indexes(bool all, cudaStream_t stream)
{
	Evicted		evicted;

	{
		std::lock_guard<std::mutex> guard(mutex_);
		std::vector<Kept *> idle;

		for (const auto &[key, index] : indexes_)
			if (index->pins == 0 && (all || index->gone()))
				idle.push_back(index.get());
		evicted.reserve(idle.size());
		for (Kept *index : idle)
			evicted.push_back(take_out(index));
		show();
	}
	dispose(&evicted, stream);
}

/* ---- working memory ------------------------------------------------------------ */

char *
Residency::allocate(uint64_t bytes, cudaStream_t stream)
{
	Evicted		evicted;
	bool		room;

	{
		std::lock_guard<std::mutex> guard(mutex_);

		room = make_room(bytes, &evicted);
		if (room)
			working_ += bytes;
		show();
	}
	dispose(&evicted, stream);
	if (!room)
		return nullptr;

	char	   *memory = nullptr;

	try
	{
		memory = allocate_reserved(bytes, stream);
	}
	catch (...)
	{
		std::lock_guard<std::mutex> guard(mutex_);

		working_ -= bytes;
		throw;
	}
	if (memory == nullptr)
	{
		std::lock_guard<std::mutex> guard(mutex_);

		working_ -= bytes;
		show();
	}
	return memory;
}

void
Residency::free(char *memory, uint64_t bytes, cudaStream_t stream)
{
	(void) cudaFreeAsync(memory, stream);

	std::lock_guard<std::mutex> guard(mutex_);

	working_ -= bytes;
	show();
}

Residency::Held
Residency::held()
{
	std::lock_guard<std::mutex> guard(mutex_);

	return Held{working_, pinned_};
}

uint64_t
Residency::available(uint64_t wanted)
{
	std::lock_guard<std::mutex> guard(mutex_);
	const auto	left = [this] { return limit_ - std::min(limit_, working_ + pinned_); };

	/* Sets that nobody uses are not in the way; that they are counted matters only where little else is left, or too little. */
	if (left() < limit_ / 2 || (left() < wanted && wanted <= limit_))
		drop_idle_sets();
	return left();
}

void
Residency::expect(uint64_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
	uint64_t	reserved = 0, used = 0, wanted;
	void	   *memory = nullptr;

	{
		std::lock_guard<std::mutex> guard(mutex_);

		/* What was expected before and has not come is ever less likely to be read. */
		expected_ = std::min(expected_ / 2 + bytes, limit_);
		wanted = expected_;
	}
	if (cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess)
		reserved = limit_;
	wanted = reserved - used >= wanted ? 0 : std::min(wanted, limit_ - std::min(reserved, limit_));
	if (wanted > 0 && cudaMallocAsync(&memory, wanted, stream) == cudaSuccess)
		(void) cudaFreeAsync(memory, stream);
	(void) cudaGetLastError();	/* without, it grows as it is used */
}

}  // namespace cuda
}  // namespace gpuvm
