/*
 * vm_random.h: random tables and random verified programs, for tests that
 * compare an engine with the reference interpreter.
 */
#ifndef GPUVM_TESTS_VM_RANDOM_H
#define GPUVM_TESTS_VM_RANDOM_H

#include <gtest/gtest.h>

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
inline std::vector<Value>
extreme_values(Type type)
{
	static const double doubles[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324, -5e-324, 1.5, 0x1p63, -0x1p63,
		0x1p-1022, 2147483647.5, 32767.5, 0.5, 2.5};
	static const double floats[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 3.4e38, -3.4e38, 0x1p-149, -0x1p-149, 1.5, 0x1p63, -0x1p31,
		0x1p-126, 2147483648.0, 32767.5, 0.5, 2.5};
	const int64_t least = type == Type::I16 ? INT16_MIN : type == Type::I32 ? INT32_MIN : INT64_MIN;
	const int64_t most = type == Type::I16 ? INT16_MAX : type == Type::I32 ? INT32_MAX : INT64_MAX;
	const int64_t ints[] = {0, 1, -1, least, most, least + 1, most - 1, 2, 31, 32, -7};
	std::vector<Value> values;

	switch (type)
	{
		case Type::Bool:
			values = {truth(false), truth(true)};
			break;
		case Type::F32:
			for (double d : floats)
				values.push_back(from_register(static_cast<double>(static_cast<float>(d))));
			break;
		case Type::F64:
			for (double d : doubles)
				values.push_back(from_register(d));
			break;
		default:
			for (int64_t i : ints)
				values.push_back(from_register(i));
			break;
	}
	return values;
}

inline Value
extreme_value(Type type, Rng &rng)
{
	const std::vector<Value> values = extreme_values(type);

	return values[static_cast<size_t>(pick_int(rng, static_cast<int>(values.size())))];
}

/* A way of filling a column. */
struct Profile
{
	int			kind;			/* 0 constant, 1 small, 2 medium, 3 wide, 4 extreme */
	int			null_percent;
	int64_t		offset;
};

inline Value
random_value(Type type, const Profile &profile, Rng &rng)
{
	if (chance(rng, profile.null_percent))
		return Value{};
	if (profile.kind == 4)
		return extreme_value(type, rng);
	if (type == Type::Bool)
		return truth(profile.kind == 0 ? profile.offset & 1 : rng() & 1);

	const int64_t span = profile.kind == 0 ? 1 : profile.kind == 1 ? 10 : profile.kind == 2 ? 1000 : type == Type::I16 ? 20000 : 100000000;
	const int64_t k = static_cast<int64_t>(rng() % static_cast<uint64_t>(span)) - span / 2 + profile.offset % (type == Type::I16 ? 1000 : 1000000);

	if (type == Type::F32)
		return from_register(static_cast<double>(profile.kind == 3 ? static_cast<float>(k) * 0.37f : static_cast<float>(k) / 8));
	if (type == Type::F64)
		return from_register(profile.kind == 3 ? static_cast<double>(k) * 0.37 * std::ldexp(1.0, pick_int(rng, 60) - 30)
							 : static_cast<double>(k) / 8);
	return from_register(k);
}

/* Two columns a type; `tame`: no extremes. */
inline Table
random_table(Rng &rng, bool tame)
{
	static const uint32_t sizes[] = {1, 63, 64, 1023, 1024, 1025, 2048, 3000, 5000};
	Table		table;
	uint32_t	n = 0;

	for (int t = 1 + pick_int(rng, 3); t > 0; t--)
	{
		table.tablet_rows.push_back(sizes[pick_int(rng, 9)]);
		n += table.tablet_rows.back();
	}
	for (Type type : VALUE_TYPES)
		for (int i = 0; i < 2; i++)
		{
			Column		column{type, {}};
			Profile		profile = {pick_int(rng, tame ? 4 : 5), pick_int(rng, 3) == 0 ? 0 : pick_int(rng, 4) == 0 ? 100 : pick_int(rng, 40),
				static_cast<int64_t>(rng() % 2000000) - 1000000};

			if (tame && chance(rng, 60))
				profile.offset = 3;
			for (uint32_t r = 0; r < n; r++)
				column.rows.push_back(random_value(type, profile, rng));
			table.columns.push_back(std::move(column));
		}
	table.build();
	return table;
}

/* The columns of random_table(), with so many rows in tablets of at most `most`. */
inline Table
join_table(Rng &rng, bool tame, uint32_t n, uint32_t most)
{
	Table		table;

	for (uint32_t left = n; left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, 1 + static_cast<uint32_t>(rng() % most)));
	for (Type type : VALUE_TYPES)
		for (int i = 0; i < 2; i++)
		{
			Column		column{type, {}};
			Profile		profile = {chance(rng, 60) ? 1 : pick_int(rng, tame ? 4 : 5), chance(rng, 50) ? 0 : pick_int(rng, 30),
				chance(rng, 80) ? 3 : static_cast<int64_t>(rng() % 2000000) - 1000000};

			if (chance(rng, 5))
				profile.null_percent = 100;
			for (uint32_t r = 0; r < n; r++)
				column.rows.push_back(random_value(type, profile, rng));
			table.columns.push_back(std::move(column));
		}
	table.build();
	return table;
}

/* A column of texts, short and long. */
inline void
add_texts(Rng &rng, Table *table)
{
	const int	most = chance(rng, 20) ? 200 : 12, null_percent = chance(rng, 30) ? 0 : chance(rng, 10) ? 100 : pick_int(rng, 60);
	Column		column{Type::I64, {}};

	for (uint32_t r = 0, n = table->nrows(); r < n; r++)
	{
		column.rows.push_back(chance(rng, null_percent) ? Value{} : from_register(int64_t{0}));
		column.texts.push_back(random_text(rng, most));
	}
	table->columns.push_back(std::move(column));
	table->build();
}

/* What the program gives as a table of one tablet; sums are I64, and `overflows` says which columns have others. */
inline Table
table_of(const Program *program, const Outcome &outcome, std::vector<bool> *overflows = nullptr)
{
	std::vector<Type> types(program->nresults), results(program->nresults);
	Table	table;

	program_result_types(program, results.data());
	stage_column_types(program, types.data());
	if (overflows)
		overflows->assign(types.size(), false);
	for (size_t c = 0; c < types.size(); c++)
	{
		Column column{types[c], {}};

		for (const std::vector<Value> &row : outcome.rows)
		{
			Value		v = row[c];

			if (results[c] == Type::I128)
				v.i = static_cast<int64_t>(v.x);
			if (results[c] == Type::I128 && !v.null && v.i != v.x && overflows)
				(*overflows)[c] = true;
			column.rows.push_back(v);
		}
		table.columns.push_back(std::move(column));
	}
	if (!outcome.rows.empty())
		table.tablet_rows.push_back(static_cast<uint32_t>(outcome.rows.size()));
	table.build();
	return table;
}

/* Masks rows of the table: single ones, runs of any length and alignment, whole tablets, or everything. */
inline void
mask_randomly(Rng &rng, Table *table)
{
	std::vector<bool> bits(table->nrows());
	uint32_t	tablet_first = 0;

	for (uint32_t n : table->tablet_rows)
	{
		const int	share = pick_int(rng, 5);

		if (share == 0)
			std::fill_n(bits.begin() + tablet_first, n, true);
		else if (share > 1)
			for (int runs = 1 + pick_int(rng, share == 2 ? 3 : 40); runs > 0; runs--)
			{
				/* ends of words and of vectors are of interest */
				const uint32_t step = chance(rng, 30) ? 1024 : chance(rng, 30) ? 64 : 1;
				const uint32_t first = static_cast<uint32_t>(rng() % n) / step * step;
				const uint32_t length = chance(rng, 30) ? 1 : (1 + static_cast<uint32_t>(pick_int(rng, share == 3 ? 70 : 1500))) * step;

				std::fill(bits.begin() + tablet_first + first, bits.begin() + tablet_first + std::min(n, first + length), true);
			}
		tablet_first += n;
	}
	table->mask(bits);

	/* neighbouring ranges need not be one */
	for (size_t i = 0; i < table->masked.size(); i++)
	{
		const MaskedRows r = table->masked[i];

		if (!chance(rng, 10) || r.end - r.first < 2)
			continue;
		table->masked[i].end = r.first + 1 + static_cast<uint32_t>(rng() % (r.end - r.first - 1));
		table->masked.insert(table->masked.begin() + static_cast<long>(i) + 1, MaskedRows{r.tablet, table->masked[i].end, r.end});
	}
}

/* Small maps of all types, some empty, some with an entry for nulls; `tame`: no extremes. */
inline MapSet
random_maps(Rng &rng, bool tame)
{
	static const int sizes[] = {0, 1, 5, 64, 65, 300};
	MapSet		set;

	for (int i = 0; i < 8; i++)
	{
		const Type	type = VALUE_TYPES[pick_int(rng, 6)];
		const Profile profile = {pick_int(rng, tame ? 4 : 5), chance(rng, 50) ? 0 : pick_int(rng, 60), tame ? 3 : pick_int(rng, 1000)};
		const bool	has_null_entry = chance(rng, 50);
		std::vector<Value> values;

		for (int n = sizes[pick_int(rng, 6)] + (has_null_entry ? 1 : 0); n > 0; n--)
			values.push_back(random_value(type, profile, rng));
		set.add(type, values, has_null_entry);
	}
	return set;
}

/*
 * Makes random programs. A register written after a jump is not read behind its
 * target, where some lanes have not written it.
 */
class Generator
{
public:
	/* Without maps there is no Lookup, nor what else came with it. */
	Generator(Rng &rng, const Table &table, bool tame, const MapSet *maps = nullptr)
		: rng(rng), table(table), tame(tame), maps(maps), builder(new_builder()) {}

	SealedProgram make(bool grouped, int max_keys = 3)
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
		b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
		b.emit(Opcode::Finish, Type::None, 0, 0, 0);
		EXPECT_FALSE(b.failed);
		return seal(b);
	}

	/* A join of so many cursors; their tables have the same columns. */
	SealedProgram make_join(bool grouped, int ncursors)
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
		b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
		b.emit(Opcode::Finish, Type::None, 0, 0, 0);
		EXPECT_FALSE(b.failed);
		return seal(b);
	}

	std::vector<ParamValue> params;
	bool		wide_sums = true;	/* sums of integers, whose type no table has */
	bool		rowids = true;
	const PatternSet *patterns = nullptr;	/* or none: no TextMatch */
	bool		library = false;	/* functions that no device runs, too */

private:
	int			begin_pipeline(int n, int driver)
	{
		pool.clear();
		cursors = {driver};
		return builder->emit(Opcode::Parallel, Type::None, n, driver, 0);
	}

	/* No target is left open behind them. */
	void		some_ops(int most)
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

	int			keys_of(const std::vector<Type> &types)
	{
		std::vector<int64_t> regs;

		for (Type t : types)
			regs.push_back(chance(rng, 85) ? column(t) : read(t));
		return builder->add_aux(regs.data(), static_cast<int>(regs.size()));
	}

	int			any_cursor()
	{
		return chance(rng, 60) ? cursors.back() : cursors[pick_int(rng, static_cast<int>(cursors.size()))];
	}

	struct Reg
	{
		int			number;
		Type		type;
		int			address;
	};
	struct Scope
	{
		int			jump;
		int			target;
	};

	void		close_scopes()
	{
		const int	here = builder->nops;

		for (size_t i = 0; i < targets.size();)
		{
			if (targets[i].target > here)
			{
				i++;
				continue;
			}
			/* what was written since the jump is not written on all lanes */
			while (!pool.empty() && pool.back().address > targets[i].jump)
				pool.pop_back();
			targets.erase(targets.begin() + static_cast<long>(i));
		}
	}

	int			emit(Opcode opcode, Type type, int p1, int p2, int p3, int64_t p4 = 0, uint8_t p5 = 0)
	{
		close_scopes();
		return builder->emit(opcode, type, p1, p2, p3, p4, p5);
	}

	int			write(Type type)
	{
		return builder->new_reg(type);
	}

	/* The register is readable once its operation stands. */
	void		wrote(int reg, Type type)
	{
		pool.push_back(Reg{reg, type, builder->nops - 1});
	}

	int			constant(Type type)
	{
		const Value v = chance(rng, tame ? 15 : 40) ? extreme_value(type, rng) : random_value(type, Profile{1, 0, 3}, rng);
		const int	reg = write(type);
		int64_t		bits;
		double		d = v.d;

		memcpy(&bits, &d, sizeof(bits));
		if (chance(rng, 4))
			emit(Opcode::Null, type, reg, 0, 0);
		else if (chance(rng, 15) && params.size() < PROGRAM_MAX_PARAMS)
		{
			params.push_back(ParamValue{type_is_float(type) ? bits : v.i, chance(rng, 5), static_cast<uint32_t>(type)});
			emit(Opcode::Variable, type, reg, static_cast<int>(params.size()) - 1, 0);
		}
		else if (type_is_float(type))
			emit(Opcode::Float, type, reg, 0, 0, bits);
		else if (type == Type::I64)
			emit(Opcode::Int64, type, reg, 0, 0, v.i);
		else
			emit(Opcode::Integer, type, reg, static_cast<int>(v.i), 0);
		wrote(reg, type);
		return reg;
	}

	/* A constant where the table has no such column. */
	int			column(Type type)
	{
		const int	c = column_of(type);

		if (c < 0)
			return constant(type);

		const int	reg = write(type);

		emit(Opcode::Column, type, reg, c, joins ? any_cursor() : 0);
		wrote(reg, type);
		return reg;
	}

	int			column_of(Type type)
	{
		std::vector<int> found;

		for (size_t c = 0; c < table.types.size(); c++)
			if (table.types[c] == type && !table.columns[c].is_text())
				found.push_back(static_cast<int>(c));
		return found.empty() ? -1 : found[static_cast<size_t>(pick_int(rng, static_cast<int>(found.size())))];
	}

	int			read(Type type)
	{
		close_scopes();

		std::vector<int> candidates;

		for (const Reg &r : pool)
			if (r.type == type)
				candidates.push_back(r.number);
		if (!candidates.empty() && chance(rng, 65))
			return candidates[pick_int(rng, static_cast<int>(candidates.size()))];
		return chance(rng, 70) ? column(type) : constant(type);
	}

	Type		value_type(const char *letters)
	{
		static const char codes[] = "BSILFD";
		std::vector<Type> types;

		for (int i = 0; i < 6; i++)
			if (strchr(letters, codes[i]))
				types.push_back(VALUE_TYPES[i]);
		return types[pick_int(rng, static_cast<int>(types.size()))];
	}

	static bool takes_timestamp(Opcode opcode)
	{
		return opcode == Opcode::TimestampAddMonths || opcode == Opcode::TimestampAddDays || opcode == Opcode::TimestampAddMicros
			|| opcode == Opcode::TimeAddMicros;
	}

	/* Something that is a timestamp more often than any I64 is. */
	int			timestamp()
	{
		const int	kind = pick_int(rng, 4);

		if (kind == 0)
			return read(Type::I64);

		const int	a = kind == 1 ? -1 : column(Type::I32);

		if (a >= 0 && lost({a}))
			return read(Type::I64);

		const int	reg = write(Type::I64);

		if (kind == 1)
			emit(Opcode::Int64, Type::I64, reg, 0, 0, chance(rng, 20) ? sem::TS_NOEND : chance(rng, 20) ? sem::TS_MIN + pick_int(rng, 1000)
				 : sem::TS_MIN + static_cast<int64_t>(rng() % static_cast<uint64_t>(sem::TS_LIMIT)));
		else
			emit(Opcode::DateToTimestamp, Type::I64, reg, a, 0);
		wrote(reg, Type::I64);
		return reg;
	}

	/* Where a jump from the next address may go. */
	int			jump_target()
	{
		return builder->nops + 1 + pick_int(rng, 8);
	}

	void		random_op()
	{
		if (builder->nregs > PROGRAM_MAX_REGS - 40)
			return;

		const int	n = static_cast<int>(Opcode::Count_);
		Opcode		opcode;

		do
			opcode = static_cast<Opcode>(pick_int(rng, n));
		while (is_library_function(opcode) && !library);

		/* arithmetic errors end most comparisons: rarer when tame */
		if (tame && opcode_info[static_cast<int>(opcode)].errors && chance(rng, 70))
			opcode = chance(rng, 50) ? Opcode::Lt : Opcode::BitAnd;

		const OpcodeInfo &info = opcode_info[static_cast<int>(opcode)];
		int			a = -1, b = -1, c = -1, r;
		Type		t;

		switch (info.form)
		{
			case OpForm::CAST:
				{
					const Type	from = value_type("BSILFD");

					t = value_type("BSILFD");
					a = read(from);
					if (lost({a, b, c}))
						break;
					r = write(t);
					emit(opcode, t, r, a, 0, 0, static_cast<uint8_t>(from));
					wrote(r, t);
					break;
				}
			case OpForm::UNARY: case OpForm::COPY: case OpForm::LOGIC1:
				t = value_type(info.types);
				a = read(t);
				if (lost({a, b, c}))
					break;
				r = write(t);
				emit(opcode, t, r, a, 0);
				wrote(r, t);
				break;
			case OpForm::FIELD:
				{
					int			field;

					if (!maps)
						break;
					a = timestamp();
					if (lost({a}))
						break;
					do
						field = pick_int(rng, DATE_FIELDS);
					while (!(opcode == Opcode::DatePart ? date_part_takes(field) : date_trunc_takes(field)));
					r = write(Type::I64);
					emit(opcode, Type::I64, r, a, field);
					wrote(r, Type::I64);
					break;
				}
			case OpForm::LOOKUP:
				{
					if (!maps)
						break;

					const int	number = pick_int(rng, static_cast<int>(maps->maps.size()));
					const CodeMap &map = maps->maps[static_cast<size_t>(number)];

					a = read(Type::I32);
					if (lost({a}))
						break;
					r = write(map.type);
					emit(opcode, map.type, r, number, a, 0, map.has_null_entry && chance(rng, 50) ? LOOKUP_NULL : 0);
					wrote(r, map.type);
					break;
				}
			case OpForm::TEXTMATCH:
				{
					std::vector<int> found;

					for (size_t i = 0; patterns && i < table.columns.size(); i++)
						if (table.columns[i].is_text())
							found.push_back(static_cast<int>(i));
					if (found.empty())
						break;
					r = write(Type::Bool);
					emit(opcode, Type::Bool, r, found[static_cast<size_t>(pick_int(rng, static_cast<int>(found.size())))], joins ? any_cursor() : 0,
						 pick_int(rng, static_cast<int>(patterns->patterns.size())));
					wrote(r, Type::Bool);
					break;
				}
			case OpForm::TEXTPART:
				{
					std::vector<int> found;

					for (size_t i = 0; i < table.columns.size(); i++)
						if (table.columns[i].is_text())
							found.push_back(static_cast<int>(i));
					if (found.empty())
						break;
					r = write(Type::I64);
					/* errors of inner rows count though no lane meets them */
					emit(opcode, Type::I64, r, found[static_cast<size_t>(pick_int(rng, static_cast<int>(found.size())))], joins ? any_cursor() : 0,
						 random_part(rng, joins ? 2 : 3));
					wrote(r, Type::I64);
					break;
				}
			case OpForm::UNARY_IL: case OpForm::UNARY_LI:
				t = info.form == OpForm::UNARY_IL ? Type::I64 : Type::I32;
				a = read(info.form == OpForm::UNARY_IL ? Type::I32 : Type::I64);
				if (lost({a, b, c}))
					break;
				r = write(t);
				emit(opcode, t, r, a, 0);
				wrote(r, t);
				break;
			case OpForm::BINARY: case OpForm::LOGIC2: case OpForm::PICK: case OpForm::SHIFT:
				t = value_type(info.types);
				a = takes_timestamp(opcode) ? timestamp() : read(t);
				b = read(info.form == OpForm::SHIFT ? Type::I32 : t);
				if (lost({a, b, c}))
					break;
				r = write(t);
				emit(opcode, t, r, a, b);
				wrote(r, t);
				break;
			case OpForm::NULLTEST:
				t = value_type(info.types);
				a = read(t);
				if (lost({a, b, c}))
					break;
				r = write(Type::Bool);
				emit(opcode, t, r, a, 0);
				wrote(r, Type::Bool);
				break;
			case OpForm::DISTINCT:
				t = value_type(info.types);
				a = read(t);
				b = read(t);
				if (lost({a, b, c}))
					break;
				r = write(Type::Bool);
				emit(opcode, t, r, a, b);
				wrote(r, Type::Bool);
				break;
			case OpForm::IN:
				{
					std::vector<int64_t> list;

					t = value_type(info.types);
					a = read(t);
					for (int i = 1 + pick_int(rng, 12); i > 0; i--)
						list.push_back(chance(rng, 20) ? extreme_value(t, rng).i : random_value(t, Profile{1, 0, 3}, rng).i);
					std::sort(list.begin(), list.end());
					if (lost({a, b, c}))
						break;
					r = write(Type::Bool);
					emit(opcode, t, r, a, builder->add_aux(list.data(), static_cast<int>(list.size())),
						 static_cast<int64_t>(list.size()), chance(rng, 20) ? IN_HAS_NULL : 0);
					wrote(r, Type::Bool);
					break;
				}
			case OpForm::SELECT:
				t = value_type(info.types);
				a = read(t);
				b = read(t);
				c = read(Type::Bool);
				if (lost({a, b, c}))
					break;
				r = write(t);
				emit(opcode, t, r, a, b, c);
				wrote(r, t);
				break;
			case OpForm::COMPARE:
				t = value_type(info.types);
				a = read(t);
				b = read(t);
				if (lost({a, b}))
					break;
				if (chance(rng, 40))
				{
					r = write(Type::Bool);
					emit(opcode, t, a, b, r, 0, COMPARE_STORES);
					wrote(r, Type::Bool);
				}
				else
					jump(opcode, t, a, b);
				break;
			case OpForm::BRANCH:
				a = read(Type::Bool);
				if (lost({a}))
					break;
				jump(opcode, Type::Bool, a, 0);
				break;
			case OpForm::JUMP:
				if (!chance(rng, 20))
					break;
				close_scopes();
				{
					const int	to = jump_target();

					targets.push_back(Scope{builder->nops, to});
					builder->emit(opcode, Type::None, 0, 0, to);
				}
				break;
			case OpForm::INVALID:
				if (chance(rng, 4))
					emit(opcode, Type::None, 0, 0, 0);
				break;
			default:
				break;
		}
	}

	/* Was an operand lost to a target that stands here, before its operation? */
	bool		lost(std::initializer_list<int> operands)
	{
		close_scopes();
		for (int reg : operands)
		{
			bool		there = reg < 0;

			for (const Reg &r : pool)
				there = there || r.number == reg;
			if (!there)
				return true;
		}
		return false;
	}

	void		jump(Opcode opcode, Type t, int a, int b)
	{
		const uint8_t flags = chance(rng, 30) ? JUMP_IF_NULL : 0;

		close_scopes();
		if (chance(rng, 40))
			builder->emit(opcode, t, a, b, builder->nops + 1, VERDICT_DIES, flags);
		else
		{
			const int	to = jump_target();

			targets.push_back(Scope{builder->nops, to});
			builder->emit(opcode, t, a, b, to, VERDICT_JUMPS, flags);
		}
	}

	void		declare(int column, Type type)
	{
		for (int i = 0; i < builder->nops; i++)
			if (builder->ops[i].opcode == Opcode::ResultColumn && builder->ops[i].p1 == column)
				builder->ops[i].type = type;
	}

	void		result(int n)
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

	void		sinks(int nkeys, int naggs)
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

	Rng		   &rng;
	const Table &table;
	bool		tame;
	const MapSet *maps;
	std::unique_ptr<ProgramBuilder> builder;
	std::vector<Reg> pool;
	std::vector<Scope> targets;
	std::vector<int64_t> source_of;
	std::vector<int> cursors = {0};	/* that can be read */
	bool		joins = false;
};

inline std::string
program_text(const Program *program)
{
	std::string text;

	for (int i = 0; i < program->nops; i++)
	{
		DisassembledOp d;
		char		line[400];

		disassemble_op(program, i, &d);
		snprintf(line, sizeof(line), "%3d %-14s %5lld %5lld %5lld %-20s p5=%d %s\n", i, d.opcode, static_cast<long long>(d.p1),
				 static_cast<long long>(d.p2), static_cast<long long>(d.p3), d.p4, program->ops()[i].p5, d.comment);
		text += line;
	}
	return text;
}

inline uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v ? strtoull(v, nullptr, 10) : otherwise;
}

}  // namespace reference
}  // namespace gpuvm

#endif
