/* index_store.cc: see index_store.h. What goes is freed when nobody holds the mutex: giving back memory takes long. */
#include "engine/index_store.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace gpuvm {

constexpr uint64_t MEMORY_SHARE = 4;	/* one in so many parts of the machine's */
constexpr int64_t TIDY_MS = 1000;

IndexStore::IndexStore(const ArenaMap *arena)
	: arena_(arena), most_(static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / MEMORY_SHARE) {}

bool
IndexStore::Entry::gone() const
{
	return std::any_of(tablets.begin(), tablets.end(), [](const IndexTablet &of) { return of.gone(); });
}

uint64_t
IndexStore::limit() const
{
	return std::min(arena_->header()->index_limit.load(std::memory_order_relaxed), most_);
}

/* For gpuvm.status(). */
void
IndexStore::count()
{
	arena_->header()->index_bytes.store(bytes_, std::memory_order_relaxed);
	arena_->header()->indexes.store(static_cast<uint32_t>(entries_.size()), std::memory_order_relaxed);
}

void
IndexStore::drop(Entries::iterator entry, Entries *dropped)
{
	bytes_ -= entry->bytes;
	by_key_.erase(entry->key);
	dropped->splice(dropped->end(), entries_, entry);
}

void
IndexStore::drop_gone(Entries *dropped)
{
	for (auto it = entries_.begin(); it != entries_.end();)
	{
		const auto	entry = it++;

		if (!entry->in_use() && entry->gone())
			drop(entry, dropped);
	}
}

/* False: joins use too many. */
bool
IndexStore::drop_down_to(uint64_t most, size_t most_entries, Entries *dropped)
{
	auto		fits = [&] { return bytes_ <= most && entries_.size() <= most_entries; };

	for (auto it = entries_.end(); it != entries_.begin() && !fits();)
	{
		const auto	entry = std::prev(it);

		if (!entry->in_use())
			drop(entry, dropped);
		else
			it = entry;
	}
	return fits();
}

std::shared_ptr<const JoinIndex>
IndexStore::find(const std::string &key)
{
	std::lock_guard<std::mutex> lock(mutex_);
	const auto	it = by_key_.find(key);

	if (it == by_key_.end() || limit() == 0)
		return nullptr;
	entries_.splice(entries_.begin(), entries_, it->second);
	return it->second->index;
}

bool
IndexStore::keep(const std::string &key, const std::shared_ptr<const JoinIndex> &index, const std::vector<JoinTablet> &tablets)
{
	Entries		dropped, added(1);
	Entry	   &entry = added.front();

	entry.key = key;
	entry.index = index;
	for (const JoinTablet &of : tablets)
		entry.tablets.push_back(IndexTablet{of.tablet, of.tablet->serial});
	entry.bytes = index->memory() + sizeof(Entry) + 2 * key.size() + tablets.size() * sizeof(IndexTablet);

	std::lock_guard<std::mutex> lock(mutex_);
	const uint64_t most = limit();
	uint64_t	used = 0;

	if (by_key_.count(key) > 0)
		return false;
	for (const Entry &of : entries_)
		used += of.in_use() ? of.bytes : 0;
	/* for what does not fit nothing has to go */
	if (entry.bytes > most || used > most - entry.bytes)
		return false;
	if (bytes_ > most - entry.bytes || entries_.size() >= MOST_INDEXES)
		drop_gone(&dropped);
	if (!drop_down_to(most - entry.bytes, MOST_INDEXES - 1, &dropped))
		return false;
	by_key_.emplace(key, added.begin());
	entries_.splice(entries_.begin(), added);
	bytes_ += entry.bytes;
	count();
	return true;
}

void
IndexStore::tidy()
{
	const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
	int64_t		next = next_tidy_.load(std::memory_order_relaxed);

	if (now < next || !next_tidy_.compare_exchange_strong(next, now + TIDY_MS))
		return;

	Entries		dropped;
	std::lock_guard<std::mutex> lock(mutex_);

	drop_gone(&dropped);
	(void) drop_down_to(limit(), MOST_INDEXES, &dropped);
	count();
}

void
IndexStore::drop_unused()
{
	Entries		dropped;
	std::lock_guard<std::mutex> lock(mutex_);

	(void) drop_down_to(0, 0, &dropped);
	count();
}

}  // namespace gpuvm
