/*
 * index_store.h: inner sides of joins that are kept for later ones (vm/cpu_join.h says which may be), for all sessions.
 *
 * What was not used for longest goes first, and what belongs to tablets that are gone; what a join uses stays. The store never
 * holds more than ArenaHeader.index_limit, nor a quarter of the machine's memory, nor MOST_INDEXES.
 */
#ifndef GPUVM_ENGINE_INDEX_STORE_H
#define GPUVM_ENGINE_INDEX_STORE_H

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/arena_map.h"
#include "vm/cpu_join.h"
#include "vm/join_index.h"

namespace gpuvm {

constexpr size_t MOST_INDEXES = 4096;	/* each has some mappings, of which a process may have 65,530 */

class IndexStore final : public JoinIndexes
{
public:
	/* `arena` may be mapped later. */
	explicit IndexStore(const ArenaMap *arena);

	std::shared_ptr<const JoinIndex> find(const std::string &key) override;
	bool		keep(const std::string &key, const std::shared_ptr<const JoinIndex> &index, const std::vector<JoinTablet> &tablets) override;

	/* Before a job: what is gone, or is more than the limit has become, goes; looks once a second. */
	void		tidy();
	/* Memory is short. */
	void		drop_unused();

private:
	struct Entry
	{
		std::string key;
		std::shared_ptr<const JoinIndex> index;
		uint64_t	bytes;
		std::vector<IndexTablet> tablets;

		bool in_use() const { return index.use_count() > 1; }
		bool gone() const;
	};
	using Entries = std::list<Entry>;

	uint64_t	limit() const;
	void		drop_gone(Entries *dropped);
	bool		drop_down_to(uint64_t most, size_t most_entries, Entries *dropped);
	void		drop(Entries::iterator entry, Entries *dropped);
	void		count();

	const ArenaMap *arena_;
	const uint64_t most_;		/* a part of the machine's memory */
	std::atomic<int64_t> next_tidy_{0};	/* of the steady clock, in ms */
	std::mutex	mutex_;
	Entries		entries_;		/* the last used first */
	std::unordered_map<std::string, Entries::iterator> by_key_;
	uint64_t	bytes_ = 0;
};

}  // namespace gpuvm

#endif
