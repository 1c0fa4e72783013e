/* vm_generator.cc: whole programs: pipelines, joins, groups, results. See vm_generator.h. */
#include "vm_generator.h"

#include <gtest/gtest.h>

namespace gpuvm {
namespace reference {

SealedProgram
Generator::make(bool grouped, int max_keys)
{
	ProgramBuilder &b = *builder;
	const int	nkeys = grouped ? pick_int(rng, max_keys + 1) : 0;
	const int	naggs = grouped ? pick_int(rng, 5) + (nkeys == 0 ? 1 : 0) : 0;
	const int	nresults = grouped ? nkeys + naggs : pick_int(rng, 5);

	b.emit(Opcode::Table, Type::None, 0, 0, 0);

	/* types are known only later: patched below */
	for (int c = 0; c < nresults; c++)
		b.emit(Opcode::ResultColumn, Type::I32, c, 0, 0, b.add_name("c"));
	if (grouped)
	{
		std::vector<int64_t> sources;

		for (int k = 0; k < nkeys; k++)
			sources.push_back(k);
		for (int a = 0; a < naggs; a++)
			sources.push_back(RESULT_FROM_AGG | a);
		std::shuffle(sources.begin(), sources.end(), rng);
		source_of.assign(sources.begin(), sources.end());
		b.emit(Opcode::AggOpen, Type::None, nkeys, naggs, b.add_aux(sources.data(), static_cast<int>(sources.size())));
	}

	const int	parallel = b.emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (int n = 3 + pick_int(rng, tame ? 20 : 35); n > 0; n--)
		random_op();
	while (!targets.empty())
	{
		close_scopes();
		if (!targets.empty())
			constant(Type::I32);
	}
	if (grouped)
		sinks(nkeys, naggs);
	else
		result(nresults);
	return finish(parallel);
}

SealedProgram
Generator::make_join(bool grouped, int ncursors)
{
	ProgramBuilder &b = *builder;
	const int	nkeys = grouped ? pick_int(rng, 3) : 0;
	const int	naggs = grouped ? pick_int(rng, 4) + (nkeys == 0 ? 1 : 0) : 0;
	const int	nresults = grouped ? nkeys + naggs : pick_int(rng, 5);
	std::vector<std::vector<Type>> key_types(ncursors);
	std::vector<int> order;
	bool		sorted[PROGRAM_MAX_CURSORS] = {};

	joins = true;
	for (int k = 0; k < ncursors; k++)
		b.emit(Opcode::Table, Type::None, k, 0, k);
	for (int k = 1; k < ncursors; k++)
	{
		if (chance(rng, 40))
			continue;
		for (int i = chance(rng, 60) ? 1 : 1 + pick_int(rng, 3); i > 0; i--)
			key_types[k].push_back(chance(rng, 50) ? Type::I32 : value_type("BSILFD"));
		sorted[k] = key_types[k].size() == 1 && chance(rng, 35);
		b.emit(Opcode::HashOpen, Type::None, k, static_cast<int>(key_types[k].size()), sorted[k] ? HASH_SORTED : 0);
		order.push_back(k);
	}
	for (int c = 0; c < nresults; c++)
		b.emit(Opcode::ResultColumn, Type::I32, c, 0, 0, b.add_name("c"));
	if (grouped)
	{
		std::vector<int64_t> sources;

		for (int k = 0; k < nkeys; k++)
			sources.push_back(k);
		for (int a = 0; a < naggs; a++)
			sources.push_back(RESULT_FROM_AGG | a);
		source_of.assign(sources.begin(), sources.end());
		b.emit(Opcode::AggOpen, Type::None, nkeys, naggs, b.add_aux(sources.data(), static_cast<int>(sources.size())));
	}
	std::shuffle(order.begin(), order.end(), rng);
	for (int k : order)
	{
		const int	parallel = begin_pipeline(1, k);

		some_ops(4);

		const int	aux = keys_of(key_types[k]);

		b.emit(Opcode::HashInsert, Type::None, k, static_cast<int>(key_types[k].size()), aux);
		b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = begin_pipeline(ncursors, 0);

	some_ops(6);
	for (int k = 1; k < ncursors; k++)
	{
		const JoinKind kind = static_cast<JoinKind>(chance(rng, 40) ? 0 : pick_int(rng, 5));
		const size_t before = pool.size();

		if (key_types[k].empty())
			b.emit(Opcode::Cross, Type::None, k, 0, 0);
		else if (sorted[k])
		{
			const int	given = 1 + pick_int(rng, 3);
			int64_t		bounds[] = {-1, -1};
			int			flags = given;

			for (int i = 0; i < 2; i++)
				if (given & (i == 0 ? RANGE_LO : RANGE_HI))
				{
					bounds[i] = chance(rng, 70) ? column(key_types[k][0]) : read(key_types[k][0]);
					flags |= chance(rng, 50) ? 0 : i == 0 ? RANGE_LO_STRICT : RANGE_HI_STRICT;
				}

			const int	aux = b.add_aux(bounds, 2);

			b.emit(Opcode::SeekRange, Type::None, k, flags, aux);
		}
		else
		{
			const int	aux = keys_of(key_types[k]);

			b.emit(Opcode::Seek, Type::None, k, static_cast<int>(key_types[k].size()), aux);
		}

		/* now and then only how many rows there are matters, so that these programs are met often enough */
		if (grouped && k == ncursors - 1 && chance(rng, 25))
		{
			b.emit(Opcode::Match, Type::None, k, static_cast<int>(JoinKind::Inner), 0);
			if (chance(rng, 30))
				some_ops(4);
			continue;
		}

		/* the keys' registers may be read behind it, so the pool has grown */
		const size_t known = pool.size();

		cursors.push_back(k);
		if (chance(rng, 30))
		{
			/* something to hoist */
			const int	x = read(Type::I32), y = constant(Type::I32);

			if (!lost({x, y}))
				b.emit(chance(rng, 50) ? Opcode::Lt : Opcode::Gt, Type::I32, x, y, b.nops + 1, VERDICT_DIES);
		}
		if (chance(rng, 70))
			some_ops(5);
		b.emit(Opcode::Match, Type::None, k, static_cast<int>(kind), 0);
		if (kind != JoinKind::Inner)
			pool.resize(std::min(pool.size(), std::min(before, known)));
		if (kind == JoinKind::Full)
			pool.clear();
		if (kind == JoinKind::Semi || kind == JoinKind::Anti)
			cursors.pop_back();
		if (chance(rng, 50))
			some_ops(5);
	}
	if (grouped)
		sinks(nkeys, naggs);
	else
		result(nresults);
	return finish(parallel);
}

SealedProgram
Generator::finish(int parallel)
{
	ProgramBuilder &b = *builder;

	b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
	b.emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b.failed);
	return seal(b);
}

int
Generator::begin_pipeline(int n, int driver)
{
	pool.clear();
	cursors = {driver};
	return builder->emit(Opcode::Parallel, Type::None, n, driver, 0);
}

void
Generator::some_ops(int most)
{
	for (int n = 1 + pick_int(rng, most); n > 0; n--)
		random_op();
	while (!targets.empty())
	{
		close_scopes();
		if (!targets.empty())
			constant(Type::I32);
	}
}

int
Generator::keys_of(const std::vector<Type> &types)
{
	std::vector<int64_t> regs;

	for (Type t : types)
		regs.push_back(chance(rng, 85) ? column(t) : read(t));
	return builder->add_aux(regs.data(), static_cast<int>(regs.size()));
}

int
Generator::any_cursor()
{
	return chance(rng, 60) ? cursors.back() : cursors[pick_int(rng, static_cast<int>(cursors.size()))];
}

void
Generator::declare(int column, Type type)
{
	for (int i = 0; i < builder->nops; i++)
		if (builder->ops[i].opcode == Opcode::ResultColumn && builder->ops[i].p1 == column)
			builder->ops[i].type = type;
}

void
Generator::result(int n)
{
	std::vector<std::pair<int, Type>> sources;

	for (int c = 0; c < n; c++)
	{
		const Type	t = value_type("BSILFD");

		sources.emplace_back(read(t), t);
	}

	int			first = builder->nregs;

	for (int c = 0; c < n; c++)
	{
		if (rowids && chance(rng, 5) && !joins)
		{
			declare(c, Type::RowId);
			emit(Opcode::Rowid, Type::RowId, write(Type::RowId), 0, 0);
			continue;
		}
		declare(c, sources[c].second);
		if (const int from = chance(rng, 30) ? column_of(sources[c].second) : -1; from >= 0)
		{
			emit(Opcode::Column, sources[c].second, write(sources[c].second), from, joins ? any_cursor() : 0);
			continue;
		}
		emit(Opcode::Copy, sources[c].second, write(sources[c].second), sources[c].first, 0);
	}
	emit(Opcode::Result, Type::None, n ? first : 0, n, 0);
}

void
Generator::sinks(int nkeys, int naggs)
{
	std::vector<int64_t> keys;
	std::vector<Type> result_type(nkeys + naggs);

	for (int k = 0; k < nkeys; k++)
	{
		const Type	t = value_type("BSILFD");

		keys.push_back(read(t));
		result_type[k] = t;
	}
	if (nkeys > 0)
		emit(Opcode::Group, Type::None, nkeys, builder->add_aux(keys.data(), nkeys), 0);
	for (int a = 0; a < naggs; a++)
	{
		const AggFn fn = static_cast<AggFn>(pick_int(rng, maps ? 11 : 7));
		const Type	t = fn == AggFn::CountStar ? Type::None
			: value_type(fn == AggFn::Count || fn == AggFn::AnyValue ? "BSILFD" : fn == AggFn::BoolAnd || fn == AggFn::BoolOr ? "B"
						 : fn >= AggFn::BitAnd ? "SIL" : fn == AggFn::Sum && !wide_sums ? "FD" : "SILFD");
		const int	arg = fn == AggFn::CountStar ? -1 : read(t);
		const int	filter = chance(rng, 30) ? read(Type::Bool) : -1;

		result_type[nkeys + a] = agg_result_type(fn, t);
		emit(Opcode::AggStep, t, a, arg, filter, 0, static_cast<uint8_t>(fn));
		if (chance(rng, 15))
		{
			const Type	ct = value_type("BSILFD");
			const int	x = read(ct), y = read(ct);

			builder->emit(Opcode::Lt, ct, x, y, builder->nops + 1, VERDICT_DIES);
		}
	}
	for (size_t c = 0; c < source_of.size(); c++)
		declare(static_cast<int>(c), source_of[c] >= RESULT_FROM_AGG ? result_type[nkeys + (source_of[c] & 0xff)] : result_type[source_of[c]]);
}

}  // namespace reference
}  // namespace gpuvm
