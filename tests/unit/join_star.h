/*
 * join_star.h: a large table with three small ones that leave few of its rows, for tests of what leaves them out first.
 */
#ifndef GPUVM_TESTS_JOIN_STAR_H
#define GPUVM_TESTS_JOIN_STAR_H

#include "vm_random.h"

namespace gpuvm {
namespace reference {

constexpr int SIDES = 3;

/* What stands between the levels. */
struct StarShape
{
	JoinKind	kinds[SIDES] = {JoinKind::Inner, JoinKind::Inner, JoinKind::Inner};
	bool		first_filters = false;	/* by the measure: rows for which this holds die, */
	Opcode		first_op = Opcode::Ge;
	int			first_bound = 900;
	bool		first_swapped = false;	/* the bound stands on the left; */
	int			first_column = 3;	/* or by the second key, whose nulls die, too */
	bool		first_raises = false;	/* measure + measure of two int4, which may overflow */
	bool		tail_raises = false;	/* the same between levels 0 and 1 */
	bool		rows = false;	/* or count(*), sum(measure) */
};

/* Columns: keys of int2, int4 and int8, and the measure, int4. */
inline Table
facts(Rng &rng, const std::vector<uint32_t> &tablet_rows, int64_t most_measure)
{
	Table		table;

	table.tablet_rows = tablet_rows;
	table.columns = {Column{Type::I16, {}}, Column{Type::I32, {}}, Column{Type::I64, {}}, Column{Type::I32, {}}};
	for (uint32_t t = 0; t < tablet_rows.size(); t++)
	{
		/* so that tablets store them in different widths */
		const int64_t span = t % 3 == 0 ? 200 : t % 3 == 1 ? 5000 : 1;
		const uint64_t nulls = rng() % 2 * 10;

		for (uint32_t r = 0; r < tablet_rows[t]; r++)
			for (int c = 0; c < 4; c++)
			{
				const int64_t v = c == 3 ? static_cast<int64_t>(rng() % static_cast<uint64_t>(most_measure))
					: static_cast<int64_t>(rng() % static_cast<uint64_t>(span)) % 300 + (span == 5000 && rng() % 50 == 0 ? 20000 : 0);

				table.columns[static_cast<size_t>(c)].rows.push_back(c < 3 && rng() % 100 < nulls ? Value{} : from_register(v));
			}
	}
	table.build();
	return table;
}

/* Columns: key (int4; of the last side int8), value. Of 300 keys some, or one row a key and then some twice. */
inline Table
side(Rng &rng, int number, uint64_t percent, bool twice)
{
	Table		table;
	uint32_t	n = 0;

	table.columns = {Column{number == 2 ? Type::I64 : Type::I32, {}}, Column{Type::I32, {}}};
	for (int64_t key = 0; key < 300; key++)
		for (int i = 0; i < (twice ? 2 : 1); i++)
			if (rng() % 100 < percent)
			{
				table.columns[0].rows.push_back(rng() % 30 == 0 ? Value{} : from_register(key));
				table.columns[1].rows.push_back(from_register(key % 7));
				n++;
			}
	table.tablet_rows = {n};
	table.build();
	return table;
}

inline SealedProgram
star_program(const StarShape &shape)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};
	const Type	key_types[] = {Type::I32, Type::I32, Type::I64};

	for (int k = 0; k <= SIDES; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	for (int k = 1; k <= SIDES; k++)
		b->emit(Opcode::HashOpen, Type::None, k, 1, 0);
	b->emit(Opcode::ResultColumn, shape.rows ? Type::I32 : Type::I64, 0, 0, 0, b->add_name("a"));
	b->emit(Opcode::ResultColumn, shape.rows ? Type::I32 : Type::I128, 1, 0, 0, b->add_name("b"));
	if (!shape.rows)
		b->emit(Opcode::AggOpen, Type::None, 0, 2, b->add_aux(sources, 2));
	for (int k = 1; k <= SIDES; k++)
	{
		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, k, 0);
		const int64_t key = b->new_reg(key_types[k - 1]);

		b->emit(Opcode::Column, key_types[k - 1], static_cast<int>(key), 0, k);
		b->emit(Opcode::HashInsert, Type::None, k, 1, b->add_aux(&key, 1));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, SIDES + 1, 0, 0);
	const int	narrow = b->new_reg(Type::I16), measure = b->new_reg(Type::I32);
	int64_t		keys[SIDES];
	int			value = -1;
	auto		raise = [&] {
		const int	sum = b->new_reg(Type::I32), zero = b->new_reg(Type::I32);

		b->emit(Opcode::Add, Type::I32, sum, measure, measure);
		b->emit(Opcode::Integer, Type::I32, zero, -1, 0);
		b->emit(Opcode::Lt, Type::I32, sum, zero, b->nops + 1, VERDICT_DIES);
	};

	for (int64_t &key : keys)
		key = b->new_reg(key_types[&key - keys]);
	b->emit(Opcode::Column, Type::I16, narrow, 0, 0);
	b->emit(Opcode::Cast, Type::I32, static_cast<int>(keys[0]), narrow, 0, 0, static_cast<uint8_t>(Type::I16));
	b->emit(Opcode::Column, Type::I32, static_cast<int>(keys[1]), 1, 0);
	b->emit(Opcode::Column, Type::I64, static_cast<int>(keys[2]), 2, 0);
	b->emit(Opcode::Column, Type::I32, measure, 3, 0);
	if (shape.first_filters)
	{
		const int	bound = b->new_reg(Type::I32), held = shape.first_column == 3 ? measure : static_cast<int>(keys[1]);

		b->emit(Opcode::Integer, Type::I32, bound, shape.first_bound, 0);
		b->emit(shape.first_op, Type::I32, shape.first_swapped ? bound : held, shape.first_swapped ? held : bound, b->nops + 1, VERDICT_DIES,
				shape.first_column == 3 ? 0 : static_cast<uint8_t>(JUMP_IF_NULL));
	}
	if (shape.first_raises)
		raise();
	for (int k = 1; k <= SIDES; k++)
	{
		b->emit(Opcode::Seek, Type::None, k, 1, b->add_aux(&keys[k - 1], 1));
		b->emit(Opcode::Match, Type::None, k, static_cast<int>(shape.kinds[k - 1]), 0);
		if (k == 1 && shape.tail_raises)
			raise();
		/* behind Full nothing is known of what was before */
		if ((value < 0 && shape.kinds[k - 1] == JoinKind::Inner) || shape.kinds[k - 1] == JoinKind::Full)
		{
			value = b->new_reg(Type::I32);
			b->emit(Opcode::Column, Type::I32, value, 1, k);
		}
	}
	if (value < 0)
		value = measure;
	if (shape.rows)
	{
		const int	first = b->new_reg(Type::I32);

		b->emit(Opcode::Copy, Type::I32, first, measure, 0);
		b->emit(Opcode::Copy, Type::I32, b->new_reg(Type::I32), value, 0);
		b->emit(Opcode::Result, Type::None, first, 2, 0);
	}
	else
	{
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, Type::I32, 1, value, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* How many of the facts' rows have a partner in the first so many sides. */
inline uint64_t
met(const std::vector<const Table *> &tables, int nsides)
{
	uint64_t	n = 0;

	for (uint32_t row = 0; row < tables[0]->nrows(); row++)
	{
		bool		all = true;

		for (int k = 0; k < nsides && all; k++)
		{
			const Value &key = tables[0]->columns[static_cast<size_t>(k)].rows[row];
			const std::vector<Value> &keys = tables[static_cast<size_t>(k) + 1]->columns[0].rows;

			all = std::any_of(keys.begin(), keys.end(), [&](const Value &v) { return !v.null && !key.null && v.i == key.i; });
		}
		n += all;
	}
	return n;
}

/* Sides of every size and shape, joined in every way. `most` rows in the last tablet of facts. */
struct RandomStar
{
	StarShape	shape;
	Table		fact;
	std::vector<Table> sides;
	std::vector<const Table *> tables;

	RandomStar(Rng &rng, uint64_t most)
		: fact(facts(rng, {1 + static_cast<uint32_t>(rng() % 9000), 1 + static_cast<uint32_t>(rng() % 100), 1 + static_cast<uint32_t>(rng() % most)}, 1000))
	{
		const JoinKind kinds[] = {JoinKind::Inner, JoinKind::Inner, JoinKind::Semi, JoinKind::Left, JoinKind::Anti, JoinKind::Full};

		for (int k = 0; k < SIDES; k++)
		{
			shape.kinds[k] = kinds[rng() % (k == SIDES - 1 ? 6 : 5)];
			sides.push_back(side(rng, k, rng() % 5 == 0 ? 100 : 1 + rng() % 60, rng() % 4 == 0));
			if (rng() % 8 == 0)	/* nothing but nulls */
			{
				for (Value &v : sides.back().columns[0].rows)
					v = Value{};
				sides.back().build();
			}
		}
		tables.push_back(&fact);
		for (const Table &table : sides)
			tables.push_back(&table);
		shape.first_filters = rng() % 2;
		if (rng() % 2)
		{
			const Opcode ops[] = {Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge, Opcode::Ne, Opcode::Eq};
			const int bounds[] = {-1, 0, 100, 999, INT32_MAX, INT32_MIN};

			shape.first_op = ops[rng() % 6];
			shape.first_bound = bounds[rng() % 6];
			shape.first_swapped = rng() % 2;
			shape.first_column = rng() % 2 ? 3 : 1;
		}
		shape.rows = rng() % 2 && shape.kinds[2] != JoinKind::Full;
		if (rng() % 2)
			mask_randomly(rng, &fact);
	}
	RandomStar(const RandomStar &) = delete;
};

}  // namespace reference
}  // namespace gpuvm

#endif
