/* cpu_join_index.cc: inner sides that were kept by joins before, and are kept for those to come. */
#include "vm/cpu_join_job.h"
#include "vm/join_index.h"

namespace gpuvm::cpu_join {

namespace {

/* All that lowering knew of a column, member by member: between them there is anything. */
void
append_range(std::string *to, const ValueRange &range)
{
	append_key(to, range.type);
	for (bool may : {range.may_null, range.may_value, range.may_true, range.may_false, range.may_nan, range.may_inf})
		append_key(to, may);
	append_key(to, range.exp_lo);
	append_key(to, range.exp_hi);
	append_key(to, range.lo);
	append_key(to, range.hi);
	append_key(to, range.flo);
	append_key(to, range.fhi);
}

/* Are these all rows of tablets that later joins will know again? */
bool
append_tablets(std::string *to, const std::vector<JoinTablet> &tablets)
{
	append_key(to, tablets.size());
	for (const JoinTablet &of : tablets)
	{
		if (of.tablet->serial == 0 || of.nmasked > 0)
			return false;
		append_key(to, of.tablet->serial);
	}
	return !tablets.empty();
}

}  // namespace

uint64_t
InnerRows::memory() const
{
	return sizeof(InnerRows) + pages.bytes() + key_bits.bytes() + table.memory() + columns.capacity() * sizeof(JoinColumn)
		+ runs.capacity() * sizeof(JoinRun);
}

/* Gives the level its inner side, if there is an index; or the key to keep it by, if it can be one. */
void
JoinProgram::find_index(size_t number)
{
	BuildSide  &side = levels_[number]->side;
	std::string key;

	if (indexes_ == nullptr || !append_tablets(&key, cursors_[number + 1].tablets) || !index_key(*levels_[number]->split, &key))
		return;
	/* a table without rows serves others of its kind alone */
	append_key(&key, exists_only(*levels_[number]->split));
	/* how its rows lie: the summaries may be wider than the tablets */
	append_key(&key, side.ranges.size());
	for (const ValueRange &range : side.ranges)
		append_range(&key, range);
	side.key = std::move(key);

	std::shared_ptr<const JoinIndex> found = indexes_->find(side.key);

	if (!found)
		return;
	side.built = std::static_pointer_cast<const InnerRows>(found);
	side.building = nullptr;
	figures_.indexes_used |= 2u << number;
	figures_.index_bytes += side.bytes();
}

/* Everything is built and lowered: nobody changes it from here on. */
void
JoinProgram::keep_indexes()
{
	for (size_t i = 0; i < levels_.size(); i++)
	{
		BuildSide  &side = levels_[i]->side;

		if (side.key.empty() || !side.building || side.built->rows == 0 || side.built->columns.empty())
			continue;
		side.building = nullptr;
		if (!indexes_->keep(side.key, side.built, cursors_[i + 1].tablets))
			continue;
		figures_.indexes_made |= 2u << i;
		figures_.index_bytes += side.built->bytes + side.built->table.bytes();
	}
}

}  // namespace gpuvm::cpu_join
