/*
 * vm_random.h: random values, tables, masks and maps, for tests that compare an
 * engine with the reference interpreter. Random programs: vm_generator.h.
 */
#ifndef GPUVM_TESTS_VM_RANDOM_H
#define GPUVM_TESTS_VM_RANDOM_H

#include "vm_reference.h"

namespace gpuvm {
namespace reference {

using Rng = std::mt19937_64;

constexpr Type VALUE_TYPES[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64};

inline int
pick_int(Rng &rng, int n)
{
	return static_cast<int>(rng() % static_cast<uint64_t>(n));
}

inline bool
chance(Rng &rng, int percent)
{
	return pick_int(rng, 100) < percent;
}

/* Values that break things, by type. */
std::vector<Value> extreme_values(Type type);
Value		extreme_value(Type type, Rng &rng);

/* A way of filling a column. */
struct Profile
{
	int			kind;			/* 0 constant, 1 small, 2 medium, 3 wide, 4 extreme */
	int			null_percent;
	int64_t		offset;
};

Value		random_value(Type type, const Profile &profile, Rng &rng);

/* Two columns a type; `tame`: no extremes. */
Table		random_table(Rng &rng, bool tame);

/* The columns of random_table(), with so many rows in tablets of at most `most`. */
Table		join_table(Rng &rng, bool tame, uint32_t n, uint32_t most);

/* A column of texts, short and long. */
void		add_texts(Rng &rng, Table *table);

/* What the program gives as a table of one tablet; sums are I64, and `overflows` says which columns have others. */
Table		table_of(const Program *program, const Outcome &outcome, std::vector<bool> *overflows = nullptr);

/* Masks rows of the table: single ones, runs of any length and alignment, whole tablets, or everything. */
void		mask_randomly(Rng &rng, Table *table);

/* Small maps of all types, some empty, some with an entry for nulls; `tame`: no extremes. */
MapSet		random_maps(Rng &rng, bool tame);

std::string	program_text(const Program *program);

inline uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v ? strtoull(v, nullptr, 10) : otherwise;
}

}  // namespace reference
}  // namespace gpuvm

#endif
