/*
 * set.h: result sets (engine/abi.h), what one program gave as a table that other programs read. The groups that a
 * stage reads are one, too. Values are as wide as PostgreSQL has them, and lie in tablets of gpuvmd's own memory with
 * the zone maps that any tablet has; or in a device's memory.
 */
#ifndef GPUVM_ENGINE_SET_H
#define GPUVM_ENGINE_SET_H

#include <atomic>
#include <memory>
#include <vector>

#include "engine/arena_map.h"
#include "engine/device_abi.h"
#include "tablet/format.h"
#include "vm/cpu_pages.h"
#include "vm/memory_budget.h"

namespace gpuvm {

constexpr char SET_NO_MEMORY[] = "out of memory for result sets";
constexpr uint32_t SET_TABLET_ROWS = 64 * 1024;
constexpr uint32_t SET_FIRST_ROWS = TABLET_PAD_ROWS;	/* room of a thread's first tablet; later ones have more */

/* What the sets of all sessions take, which ArenaHeader shows. */
class SetMemory
{
public:
	explicit SetMemory(const ArenaMap *arena) : arena_(arena) {}	/* which may be mapped later */

private:
	friend class SetAccount;

	void		follow_limit();

	const ArenaMap *arena_;
	MemoryBudget budget_;
};

/* A session's part of it, which it keeps between its jobs. Who finds no room waits for other sessions (run_with_memory). */
class SetAccount
{
public:
	explicit SetAccount(SetMemory *all) : all_(all), memory_(&all->budget_, JobMemory::Of::Session) {}

	/* False: there is no room, now or ever. */
	bool		take(uint64_t bytes);
	void		give_back(uint64_t bytes);
	/* The most that take() would give. */
	uint64_t	left();
	/* This attempt was refused, or a device has refused it so much, and others may give some back. */
	bool		can_wait() { return memory_.can_wait(); }
	bool		can_wait_for(uint64_t bytes) { return memory_.can_wait_for(bytes); }
	bool		wait_for_more(const std::function<bool()> &ended);

	void		begin_job() { memory_.begin_job(); }
	void		end_job() { memory_.end_job(); }
	void		wait_for_client(bool waits) { memory_.wait_for_client(waits); }
	void		count_sets(int change) { all_->arena_->header()->sets.fetch_add(static_cast<uint32_t>(change)); }

private:
	SetMemory  *all_;
	JobMemory	memory_;
};

/* A part of it, given back at its end. */
class SetShare
{
public:
	SetShare() = default;
	SetShare(SetAccount *account, uint64_t bytes) : account_(account), bytes_(bytes) {}
	SetShare(SetShare &&from) noexcept : account_(from.account_), bytes_(from.bytes_) { from.account_ = nullptr; }
	SetShare   &operator=(SetShare &&from) noexcept
	{
		std::swap(account_, from.account_);
		std::swap(bytes_, from.bytes_);
		return *this;
	}
	~SetShare()
	{
		if (account_ != nullptr)
			account_->give_back(bytes_);
	}

	uint64_t	bytes() const { return bytes_; }

private:
	SetAccount *account_ = nullptr;	/* nullptr: nobody counts */
	uint64_t	bytes_ = 0;
};

/* A set's columns, of a program's results. */
struct SetShape
{
	SetShape() = default;
	/* Of the listed columns, which may make no sense yet; `references`: results that are. */
	SetShape(const Program *program, const SinkColumn *list, uint32_t n, const std::vector<bool> &references);
	/* All results, sums in 64 bits. */
	explicit SetShape(const Program *program);
	/* Columns that are added to a set. */
	SetShape(std::vector<Type> column_types, std::vector<bool> column_references);

	/* nullptr, or why there can be no such set. */
	const char *check() const;
	bool		same_types(const SetShape &other) const { return types == other.types; }

	uint32_t	ncolumns() const { return static_cast<uint32_t>(types.size()); }
	/* Bytes of a tablet with room for so many rows, a multiple of TABLET_PAD_ROWS; where columns lie in it. */
	uint64_t	layout(uint32_t capacity, ResultColumnLayout *out) const;

	std::vector<Type> results;	/* of the program */
	std::vector<SinkColumn> columns;	/* of the set; this and the following are parallel */
	std::vector<Type> types;
	std::vector<bool> references;

private:
	void		add(SinkColumn column, bool reference);
};

/* Rows on their way into a tablet that lies at `base`, zeroed, with room for `capacity` of them. */
class SetTablet
{
public:
	SetTablet(const SetShape *shape, char *base, uint32_t capacity);

	/* The first n rows of an area that result_layout has laid out for `area_rows`. There must be room. */
	void		append(const char *area, uint32_t area_rows, uint32_t n);
	/* There are no more: it is a tablet. */
	const TabletHeader *finish();

	/* For who fills all columns himself: */
	void		fill(uint32_t n) { nrows_ = n; }
	char	   *values(uint32_t column) const { return base_ + at_[column].values; }
	uint64_t   *nulls(uint32_t column) const { return reinterpret_cast<uint64_t *>(base_ + at_[column].nulls); }

	uint32_t	nrows() const { return nrows_; }
	uint32_t	room() const { return capacity_ - nrows_; }
	/* Had a column a value that it cannot hold? */
	bool		overflows(uint32_t column) const { return overflows_[column]; }

private:
	void		append_values(uint32_t column, const char *from, const uint64_t *nulls, uint32_t n);
	template <typename T>
	bool		append_integers(uint32_t column, const char *from, const uint64_t *nulls, uint32_t n);

	const SetShape *shape_;
	char	   *base_;
	uint32_t	capacity_;
	uint32_t	nrows_ = 0;
	ResultColumnLayout at_[PROGRAM_MAX_COLUMNS];
	bool		overflows_[PROGRAM_MAX_COLUMNS] = {};
};

class ResultSet
{
public:
	/* Tablets' memory. */
	struct Block
	{
		Pages		pages;
		SetShare	share;
	};

	explicit ResultSet(SetShape shape);
	/* Of a device, which has made it of such a program; it is deleted with this. */
	ResultSet(SetShape shape, DeviceSet *device, SetShare share);

	const SetShape &shape() const { return shape_; }
	const std::vector<ColumnSummary> &columns() const { return columns_; }
	const std::vector<const TabletHeader *> &tablets() const { return tablets_; }
	uint64_t	nrows() const { return nrows_; }
	DeviceSet  *device() const { return device_.get(); }	/* nullptr: it lies in tablets */

	void		add_block(Block block) { blocks_.push_back(std::move(block)); }
	void		add_tablet(const TabletHeader *tablet);
	/* All rows of another one, which has the same types and lies in tablets, as this does. */
	void		append(ResultSet *from);
	uint64_t	device_bytes() const;
	/* The device's set has got more rows, which take so much, or more columns. */
	void		grown(SetShare share);
	void		grown(const SetShape &more, SetShare share);

	/* More columns of a set in tablets: each tablet's in one of its own, the headers of both, `headers_bytes`, to be in the block, too. */
	uint64_t	headers_bytes(const SetShape &more) const;
	void		add_columns(const SetShape &more, const std::vector<const TabletHeader *> &tablets, char *headers, Block block);

	/* Has the set's rows in tablets, not on a device; nullptr, or why that cannot be. Throws std::bad_alloc. */
	const char *bring_home(DeviceLibrary *library, SetAccount *account);

private:
	void		widen(const SetShape &more);

	SetShape	shape_;
	std::vector<ColumnSummary> columns_;
	std::vector<const TabletHeader *> tablets_;
	std::vector<Block> blocks_;
	uint64_t	nrows_ = 0;
	std::unique_ptr<DeviceSet> device_;
	std::vector<SetShare> shares_;	/* beside those of blocks: of a device's set, wherever its rows are by now */
};

/* A session's sets. Its thread alone comes here. */
class SetStore
{
public:
	explicit SetStore(SetMemory *memory) : account_(memory) {}
	~SetStore() { drop(~uint64_t{0}); }

	/* nullptr: there is none. */
	const std::shared_ptr<ResultSet> &find(uint32_t number) const { return sets_[number]; }
	void		put(uint32_t number, std::shared_ptr<ResultSet> set);
	void		drop(uint64_t numbers);

	SetAccount *account() { return &account_; }

private:
	SetAccount	account_;
	std::shared_ptr<ResultSet> sets_[JOB_MAX_SETS + 1];
};

}  // namespace gpuvm

#endif
