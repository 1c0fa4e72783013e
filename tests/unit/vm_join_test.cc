/*
 * vm_join_test.cc: joins on the CPU virtual machine against the reference
 * interpreter's nested loops, over random programs and tables; and the hash
 * table alone, in all its forms.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include <gtest/gtest.h>

#include "vm/cpu_hash_table.h"
#include "vm/cpu_join.h"
#include "vm/cpu_join_job.h"
#include "vm/cpu_sort_rows.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* Keeps everything. */
struct AllIndexes final : JoinIndexes
{
	std::shared_ptr<const JoinIndex> find(const std::string &key) override
	{
		const auto	it = kept.find(key);

		return it == kept.end() ? nullptr : it->second;
	}
	bool keep(const std::string &key, const std::shared_ptr<const JoinIndex> &index, const std::vector<JoinTablet> &) override
	{
		EXPECT_GT(index->memory(), 0u);
		return kept.emplace(key, index).second;
	}

	std::map<std::string, std::shared_ptr<const JoinIndex>> kept;
};

struct Joined
{
	std::vector<JoinCursor> cursors;
	std::unique_ptr<CpuJoin> join;

	Joined(const Program *program, const std::vector<Table> &tables, const std::vector<ParamValue> &params, const MapSet &maps,
		   Rng &rng, JoinIndexes *indexes = nullptr)
	{
		for (const Table &table : tables)
		{
			JoinCursor	cursor = {table.summaries.data(), static_cast<uint32_t>(table.summaries.size()), {}, table.nrows()};

			for (size_t t = 0; t < table.tablets.size(); t++)
			{
				uint32_t	nmasked;
				const MaskedRows *masked = table.masked_of(t, &nmasked);

				cursor.tablets.push_back(JoinTablet{table.tablets[t].get(), masked, nmasked});
			}
			cursors.push_back(cursor);
		}
		join = CpuJoin::create(program, params.data(), static_cast<uint32_t>(params.size()), cursors.data(), maps.maps.data(),
							   maps.patterns.patterns.data(), indexes, nullptr, cpu_join::join_room != 0);
		build(rng);
	}

	void build(Rng &rng)
	{
		while (const uint32_t n = join->begin_phase())
		{
			std::vector<uint32_t> tasks(n);

			std::iota(tasks.begin(), tasks.end(), 0);
			std::shuffle(tasks.begin(), tasks.end(), rng);
			for (uint32_t task : tasks)
				join->run_task(task);
		}
	}
};

/* Is there one, and has it been built? */
bool
next_pass(Joined *joined, Rng &rng)
{
	if (!joined->join->next_pass())
		return false;
	joined->build(rng);
	EXPECT_EQ(joined->join->refusal(), nullptr);
	EXPECT_EQ(joined->join->build_errors(), 0u);
	return true;
}

Outcome
run_join_rows(const Program *program, const std::vector<Table> &tables, const std::vector<ParamValue> &params, const MapSet &maps, Rng &rng,
			  JoinIndexes *indexes, JoinFigures *figures)
{
	Joined		joined(program, tables, params, maps, rng, indexes);
	Outcome		out;

	EXPECT_EQ(joined.join->refusal(), nullptr);
	*figures = joined.join->figures();
	out.errors = joined.join->build_errors();
	if (out.errors)
		return out;

	std::vector<std::unique_ptr<CpuState>> states;

	for (int i = 1 + pick_int(rng, 2); i > 0; i--)
		states.push_back(joined.join->new_state());

	const uint32_t unit_rows = CPU_VECTOR_ROWS << pick_int(rng, 3);

	do
	{
		for (const JoinTablet &tablet : joined.cursors[0].tablets)
		{
			if (joined.join->can_skip(tablet.tablet))
				continue;
			for (uint32_t first = 0; first < tablet.tablet->nrows; first += unit_rows)
			{
				CpuState   *state = states[rng() % states.size()].get();
				JoinPart	part;

				joined.join->begin_unit(state, tablet.tablet, first, std::min(first + unit_rows, tablet.tablet->nrows), tablet.masked, tablet.nmasked);
				do
				{
					Area		area(program, CPU_VECTOR_ROWS + 64 * static_cast<uint32_t>(pick_int(rng, 20)));

					part = joined.join->run_part(state, area.memory.get(), area.capacity);
					out.errors |= part.errors;
					read_area(program, area.memory.get(), area.capacity, part.errors ? 0 : part.rows, &out);
				} while (!part.done);
			}
		}
		if (joined.join->rest_parts() > 0)
		{
			CpuState   *state = states[rng() % states.size()].get();
			JoinPart	part;

			joined.join->begin_rest(state);
			do
			{
				Area		area(program, CPU_VECTOR_ROWS + 64 * static_cast<uint32_t>(pick_int(rng, 20)));

				part = joined.join->run_part(state, area.memory.get(), area.capacity);
				out.errors |= part.errors;
				read_area(program, area.memory.get(), area.capacity, part.errors ? 0 : part.rows, &out);
			} while (!part.done);
		}
	} while (next_pass(&joined, rng));
	*figures = joined.join->figures();
	return out;
}

Outcome
run_join_groups(const Program *program, const std::vector<Table> &tables, const std::vector<ParamValue> &params, const MapSet &maps, Rng &rng,
			  JoinIndexes *indexes, JoinFigures *figures)
{
	Joined		joined(program, tables, params, maps, rng, indexes);
	Outcome		out;

	EXPECT_EQ(joined.join->refusal(), nullptr);
	*figures = joined.join->figures();
	out.errors = joined.join->build_errors();
	if (out.errors)
		return out;

	std::vector<std::unique_ptr<CpuState>> states;
	std::vector<CpuState *> all;
	const uint32_t unit_rows = CPU_VECTOR_ROWS << pick_int(rng, 3);

	for (int i = 1 + pick_int(rng, 3); i > 0; i--)
	{
		states.push_back(joined.join->new_state());
		all.push_back(states.back().get());
	}
	do
	{
		for (const JoinTablet &tablet : joined.cursors[0].tablets)
		{
			if (joined.join->can_skip(tablet.tablet))
				continue;
			for (uint32_t first = 0; first < tablet.tablet->nrows; first += unit_rows)
				joined.join->run_groups(all[rng() % all.size()], tablet.tablet, first, std::min(first + unit_rows, tablet.tablet->nrows),
										tablet.masked, tablet.nmasked);
		}

		std::vector<uint32_t> rest(joined.join->rest_parts());

		std::iota(rest.begin(), rest.end(), 0);
		std::shuffle(rest.begin(), rest.end(), rng);
		for (uint32_t part : rest)
			joined.join->run_rest_groups(all[rng() % all.size()], part);
	} while (next_pass(&joined, rng));
	*figures = joined.join->figures();
	for (uint32_t parts = joined.join->begin_merge(all.data(), static_cast<uint32_t>(all.size())), i = 0; i < parts; i++)
		joined.join->merge_part(all.data(), static_cast<uint32_t>(all.size()), i);
	out.errors = joined.join->finish(all[0]);
	for (uint64_t at = 0; !out.errors && at < joined.join->ngroups(all[0]);)
	{
		Area		area(program, 192);
		const uint32_t n = joined.join->emit_groups(all[0], at, area.memory.get(), area.capacity);

		read_area(program, area.memory.get(), area.capacity, n, &out);
		at += n;
	}
	return out;
}

bool
has_op(const Program *program, Opcode opcode)
{
	for (int i = 0; i < program->nops; i++)
		if (program->ops()[i].opcode == opcode)
			return true;
	return false;
}

bool
has_full_join(const Program *program)
{
	for (int i = 0; i < program->nops; i++)
		if (program->ops()[i].opcode == Opcode::Match && static_cast<JoinKind>(program->ops()[i].p2) == JoinKind::Full)
			return true;
	return false;
}

struct Tally
{
	int			programs = 0, clean = 0, with_rows = 0, indexes = 0, parted = 0;
	size_t		rows = 0;
};

void
run_one(uint64_t seed, bool grouped, bool masks, uint64_t room, Tally *tally)
{
	static const uint32_t outer[] = {1, 5, 64, 200, 400, 1023, 1025, 2100};
	static const uint32_t inner[] = {1, 2, 7, 30, 64, 130};
	cpu_join::filter_rows = seed % 3 == 0 ? 1 << 20 : 0;	/* rows are left out first, or not */
	cpu_join::join_room = room;

	Rng			rng(seed * 2 + grouped);
	const bool	tame = chance(rng, 80);
	const int	ncursors = 2 + pick_int(rng, chance(rng, 20) ? PROGRAM_MAX_CURSORS - 1 : 2);
	std::vector<Table> tables;
	std::vector<const Table *> pointers;
	std::vector<CursorSchema> schemas;
	uint64_t	points = outer[pick_int(rng, 8)];

	tables.push_back(join_table(rng, tame, static_cast<uint32_t>(points), 1500));
	for (int k = 1; k < ncursors; k++)
	{
		uint32_t	n = inner[pick_int(rng, 6)];

		while (points * n > 30000)
			n = n / 3 + 1;
		points *= n;
		tables.push_back(join_table(rng, tame, n, 40));
	}

	MapSet		maps = random_maps(rng, tame);
	Generator	generator(rng, tables[0], tame, &maps);

	maps.patterns = random_patterns(rng);
	generator.patterns = &maps.patterns;
	for (Table &table : tables)
		add_texts(rng, &table);
	/* one in three was made for this job alone */
	for (uint64_t t = 0, serial = 0; t < tables.size(); t++)
		for (const auto &tablet : tables[t].tablets)
			tablet->serial = (seed + t) % 3 == 0 ? 0 : ++serial;

	const SealedProgram sealed = generator.make_join(grouped, ncursors);
	const Program *program = sealed.get();

	for (Table &table : tables)
	{
		if (masks && chance(rng, 70))
			mask_randomly(rng, &table);
		pointers.push_back(&table);
		schemas.push_back(CursorSchema{static_cast<uint32_t>(table.types.size()), table.types.data()});
	}

	const char *wrong = verify_program(program, program->size, schemas.data(), ncursors);
	const std::string what = "seed " + std::to_string(seed) + " grouped " + std::to_string(grouped) + " masks " +
		std::to_string(masks) + "\n" + program_text(program);

	ASSERT_EQ(wrong, nullptr) << wrong << " " << what;

	/* errors of pairs that need not be looked at may or may not be met */
	const Outcome least = Interpreter(program, pointers, generator.params.data(), true, maps.maps.data(), &maps.patterns).run();
	const Outcome most = Interpreter(program, pointers, generator.params.data(), false, maps.maps.data(), &maps.patterns).run();
	std::vector<std::string> expected = rows_text(program, least);

	std::sort(expected.begin(), expected.end());

	/* the second round finds what the first has kept */
	AllIndexes	indexes;
	JoinFigures before = {}, figures = {};

	for (int round = 0; round < 2; round++)
	{
		limit_cpu_kernels(pick_int(rng, 3));
		before = figures;

		const Outcome got = grouped ? run_join_groups(program, tables, generator.params, maps, rng, &indexes, &figures)
			: run_join_rows(program, tables, generator.params, maps, rng, &indexes, &figures);

		if (room == 0)
		{
			ASSERT_EQ(figures.indexes_used, before.indexes_made) << what;
			ASSERT_EQ(figures.indexes_made != 0, round == 0 && !indexes.kept.empty()) << what;
		}
		if (room == 0 && round == 1 && figures.indexes_used != 0)
		{
			ASSERT_EQ(figures.build_rows, before.build_rows) << what;
			ASSERT_EQ(figures.index_bytes, before.index_bytes) << what;
			tally->indexes++;
		}

		limit_cpu_kernels(2);
		/* where some side has no rows, the others are not looked at; a full join behind it has rows all the same */
		if (least.errors && !got.errors && !has_full_join(program))
		{
			ASSERT_EQ(least.rows.size(), grouped && program->nkeys == 0 ? 1u : 0u) << what;
		}
		/* what reads only the inner row of a nested loop is computed even where no lane comes */
		if (!most.errors && !has_op(program, Opcode::Cross))
		{
			ASSERT_EQ(got.errors, 0u) << what;
		}
		if (got.errors)
			continue;

		std::vector<std::string> rows = rows_text(program, got);

		std::sort(rows.begin(), rows.end());
		ASSERT_EQ(rows.size(), expected.size()) << "round " << round << " " << what;
		for (size_t i = 0; i < rows.size(); i++)
			ASSERT_EQ(rows[i], expected[i]) << "row " << i << " round " << round << " " << what;
		tally->parted += round == 0 && figures.passes > 1;
		tally->clean += round == 0;
		tally->with_rows += round == 0 && !rows.empty();
		tally->rows += rows.size();
	}
	tally->programs++;
}

void
run_many(bool grouped, bool masks, bool passes = false)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 400);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	Tally		tally;

	for (uint64_t seed = first; seed < first + n && !::testing::Test::HasFatalFailure(); seed++)
		run_one(seed, grouped, masks, passes ? 60 + 50 * (seed % 12) : 0, &tally);
	cpu_join::join_room = 0;
	if (tally.programs < 100)
		return;
	EXPECT_GT(tally.clean, tally.programs / 3);
	EXPECT_GT(tally.with_rows, tally.programs / 8);
	if (passes)
	{
		EXPECT_GT(tally.parted, tally.programs / 14);
	}
	else
	{
		EXPECT_GT(tally.indexes, tally.programs / 20);
	}
}

/* Typed values at the width of results. */
struct KeyColumn
{
	Type		type;
	std::vector<int64_t> ints;
	std::vector<double> doubles;
	std::vector<char> bytes;
	std::vector<uint64_t> nulls;

	JoinColumn	column()
	{
		const size_t n = type_is_float(type) ? doubles.size() : ints.size();

		bytes.assign((n + CPU_VECTOR_ROWS) * 8, 0);
		for (size_t i = 0; i < n; i++)
		{
			const int32_t i32 = type_is_float(type) ? 0 : static_cast<int32_t>(ints[i]);
			const float f32 = type_is_float(type) ? static_cast<float>(doubles[i]) : 0;

			switch (type)
			{
				case Type::Bool: bytes[i] = static_cast<char>(ints[i]); break;
				case Type::I64: memcpy(&bytes[i * 8], &ints[i], 8); break;
				case Type::F32: memcpy(&bytes[i * 4], &f32, 4); break;
				case Type::F64: memcpy(&bytes[i * 8], &doubles[i], 8); break;
				default: memcpy(&bytes[i * 4], &i32, 4); break;
			}
		}
		return JoinColumn{type, bytes.data(), nulls.empty() ? nullptr : nulls.data()};
	}

	/* Equal as = says; nothing for nulls. */
	std::string text(size_t i) const
	{
		char		buffer[40];

		if (!nulls.empty() && bit_get(nulls.data(), i))
			return "";
		if (!type_is_float(type))
			return std::to_string(ints[i]) + ",";
		snprintf(buffer, sizeof(buffer), "%a,", doubles[i] != doubles[i] ? NAN : doubles[i] == 0 ? 0.0 : doubles[i]);
		return doubles[i] != doubles[i] ? "nan," : buffer;
	}
};

/* So many rows of these types; `spread` is how far apart integers lie, `skew` gives half of the rows one key. */
void
check_table(Rng &rng, const std::vector<Type> &types, uint32_t nrows, uint64_t values, uint64_t spread, bool skew, bool nulls, bool sorted)
{
	std::vector<KeyColumn> build(types.size()), probe(types.size());
	std::vector<JoinColumn> build_columns, probe_columns;
	std::vector<JoinRun> runs;
	std::map<std::string, std::vector<uint32_t>> expected;
	const uint32_t nprobe = 2000;
	const std::string what = std::to_string(nrows) + " rows, " + std::to_string(values) + " values, types " + std::to_string(types.size());

	for (size_t k = 0; k < types.size(); k++)
		for (int side = 0; side < 2; side++)
		{
			KeyColumn  &column = side == 0 ? build[k] : probe[k];
			const uint32_t n = side == 0 ? nrows : nprobe;

			column.type = types[k];
			if (nulls)
				column.nulls.assign(n / 64 + 1, 0);
			for (uint32_t i = 0; i < n; i++)
			{
				const uint64_t v = sorted && side == 0 ? i : skew && rng() % 2 ? 7 : rng() % values;
				const int64_t x = static_cast<int64_t>(v * spread) - (types[k] == Type::Bool ? 0 : 1000);

				if (type_is_float(types[k]))
					column.doubles.push_back(v == 3 ? NAN : v == 4 ? -0.0 : v == 5 ? 0.0 : static_cast<double>(v) / 8);
				else
					column.ints.push_back(types[k] == Type::Bool ? x & 1 : types[k] == Type::I16 ? static_cast<int16_t>(x)
										  : types[k] == Type::I32 ? static_cast<int32_t>(x) : x);
				if (nulls && rng() % 10 == 0)
					bit_set(column.nulls.data(), i);
			}
		}
	for (size_t k = 0; k < types.size(); k++)
	{
		build_columns.push_back(build[k].column());
		probe_columns.push_back(probe[k].column());
	}
	for (uint32_t at = 0; at < nrows;)
	{
		const uint32_t n = std::min(nrows - at, 1 + static_cast<uint32_t>(rng() % 5000));

		if (sorted || rng() % 8)
			runs.push_back(JoinRun{at, n});
		at += n;
	}
	for (const JoinRun &run : runs)
		for (uint64_t row = run.at; row < run.at + run.n; row++)
		{
			std::string text;
			bool		null = false;

			for (const KeyColumn &column : build)
			{
				null = null || column.text(row).empty();
				text += column.text(row);
			}
			if (!null)
				expected[text].push_back(static_cast<uint32_t>(row));
		}

	JoinTable	table;

	table.set_rows(build_columns, runs);
	while (const uint32_t n = table.begin_phase())
		for (uint32_t i = n; i > 0; i--)
			table.run_task(i - 1);

	std::vector<uint32_t> first(2 * CPU_VECTOR_ROWS), count(2 * CPU_VECTOR_ROWS);
	size_t		most = 0;

	for (const auto &[text, rows] : expected)
		most = std::max(most, rows.size());
	if (table.exact())
	{
		ASSERT_EQ(table.max_matches(), most) << what;
	}
	bool		missing = rng() % 2;

	table.probe(probe_columns.data(), nprobe, &missing, first.data(), count.data());
	for (uint32_t i = 0; i < nprobe; i++)
	{
		std::string text;
		bool		null = false;
		std::vector<uint32_t> got;

		for (const KeyColumn &column : probe)
		{
			null = null || column.text(i).empty();
			text += column.text(i);
		}
		/* all lanes with as many find the same rows: some are looked at one by one */
		if (count[i] > 1000 && i % 16 != 0)
		{
			ASSERT_GE(count[i], null ? 0 : expected[text].size()) << what << " lane " << i << " " << text;
			continue;
		}
		for (uint32_t j = first[i]; j < first[i] + count[i]; j++)
		{
			const uint32_t row = table.order() ? table.order()[j] : j;

			if (table.exact() || table.same_keys(row, probe_columns.data(), i))
				got.push_back(row);
		}
		std::sort(got.begin(), got.end());
		ASSERT_EQ(got, null ? std::vector<uint32_t>() : expected[text]) << what << " lane " << i << " " << text;
	}
	if (!table.exact())
		return;

	/* the same, if it is enough that there is one */
	JoinTable	exists;
	std::vector<uint32_t> any(2 * CPU_VECTOR_ROWS);

	exists.set_rows(build_columns, runs);
	exists.set_exists_only();
	while (const uint32_t n = exists.begin_phase())
		for (uint32_t i = n; i > 0; i--)
			exists.run_task(i - 1);
	missing = rng() % 2;
	exists.probe(probe_columns.data(), nprobe, &missing, first.data(), any.data());
	for (uint32_t i = 0; i < nprobe; i++)
		ASSERT_EQ(any[i] > 0, count[i] > 0) << what << " lane " << i;
}

/* Ranges over so many rows of a type, whose order is PostgreSQL's. */
void
check_ranges(Rng &rng, Type type, uint32_t nrows, uint64_t values, bool skew, bool nulls)
{
	KeyColumn	build, bounds[2];
	std::vector<JoinRun> runs;
	const uint32_t nprobe = 1500;

	for (KeyColumn *column : {&build, &bounds[0], &bounds[1]})
	{
		const uint32_t n = column == &build ? nrows : nprobe;

		column->type = type;
		if (nulls)
			column->nulls.assign(n / 64 + 1, 0);
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t v = skew && rng() % 2 ? 7 : rng() % values;
			const int64_t x = static_cast<int64_t>(v) * (type == Type::I64 ? 1000000007 : 1) - static_cast<int64_t>(values / 2);

			column->doubles.push_back(v == 3 ? NAN : v == 4 ? -0.0 : v == 5 ? 0.0 : v == 6 ? -INFINITY : v == 9 ? INFINITY
									  : static_cast<double>(x) / 8);
			column->ints.push_back(type == Type::Bool ? x & 1 : type == Type::I16 ? static_cast<int16_t>(x) : x);
			if (nulls && rng() % 10 == 0)
				bit_set(column->nulls.data(), i);
		}
		if (!type_is_float(type))
			column->doubles.clear();
		else
			column->ints.clear();
	}
	for (uint32_t at = 0; at < nrows;)
	{
		const uint32_t n = std::min(nrows - at, 1 + static_cast<uint32_t>(rng() % 5000));

		if (rng() % 8)
			runs.push_back(JoinRun{at, n});
		at += n;
	}

	auto		value = [&](const KeyColumn &column, uint64_t i) {
		Value		v;

		v.null = !column.nulls.empty() && bit_get(column.nulls.data(), i);
		v.i = type_is_float(type) ? 0 : column.ints[i];
		v.d = type_is_float(type) ? (type == Type::F32 ? static_cast<float>(column.doubles[i]) : column.doubles[i]) : 0;
		return v;
	};
	std::vector<Value> keys;
	std::vector<uint32_t> rows;
	JoinTable	table;

	for (const JoinRun &run : runs)
		for (uint64_t row = run.at; row < run.at + run.n; row++)
			if (!value(build, row).null)
			{
				keys.push_back(value(build, row));
				rows.push_back(static_cast<uint32_t>(row));
			}
	table.set_rows({build.column()}, runs, true);
	while (const uint32_t n = table.begin_phase())
		for (uint32_t i = n; i > 0; i--)
			table.run_task(i - 1);
	EXPECT_EQ(table.rows(), rows.size());

	const JoinColumn columns[] = {bounds[0].column(), bounds[1].column()};
	std::vector<uint32_t> first(2 * CPU_VECTOR_ROWS), count(2 * CPU_VECTOR_ROWS);

	for (int flags = 1; flags < 16; flags++)
	{
		const bool	lo = flags & RANGE_LO, hi = flags & RANGE_HI;

		if (!lo && !hi)
			continue;
		table.probe_range(lo ? &columns[0] : nullptr, hi ? &columns[1] : nullptr, flags & RANGE_LO_STRICT, flags & RANGE_HI_STRICT,
						  nprobe, first.data(), count.data());
		/* of a large table each kind of range looks at a lane of its own: the reference compares with every row */
		for (uint32_t i = nrows > 2000 ? 97 * flags : 0; i < nprobe; i += nrows > 2000 ? nprobe : 1 + static_cast<uint32_t>(rng() % 5))
		{
			std::vector<uint32_t> expected, got;
			const Value a = value(bounds[0], i), b = value(bounds[1], i);

			for (size_t k = 0; k < rows.size(); k++)
				if ((!lo || (!a.null && compare_values(flags & RANGE_LO_STRICT ? Opcode::Gt : Opcode::Ge, type, keys[k], a)))
					&& (!hi || (!b.null && compare_values(flags & RANGE_HI_STRICT ? Opcode::Lt : Opcode::Le, type, keys[k], b))))
					expected.push_back(rows[k]);
			for (uint32_t j = first[i]; j < first[i] + count[i]; j++)
				got.push_back(table.order()[j]);
			std::sort(got.begin(), got.end());
			ASSERT_EQ(got, expected) << nrows << " rows, " << values << " values, type " << static_cast<int>(type) << " flags " << flags << " lane " << i;
		}
	}
}

}  // namespace

TEST(VmJoin, HashTable)
{
	const std::vector<std::vector<Type>> keys = {{Type::I32}, {Type::I64}, {Type::I16}, {Type::Bool}, {Type::F32}, {Type::F64},
		{Type::I32, Type::I32}, {Type::I32, Type::Bool}, {Type::I64, Type::I32}, {Type::F64, Type::F32, Type::I64}, {Type::I16, Type::F32}};
	Rng			rng(setting("GPUVM_TEST_SEED", 1));

	for (const std::vector<Type> &types : keys)
		for (uint32_t nrows : {0u, 1u, 100u, 1500u, 20000u})
			for (uint64_t values : {1u, 10u, 3000u, 100000u})
				for (uint64_t spread : {1u, 40000u})
				{
					if (nrows > 1500 && (types.size() > 1 || types[0] == Type::Bool))
						continue;
					check_table(rng, types, nrows, values, spread, rng() % 3 == 0, rng() % 2, false);
					if (HasFatalFailure())
						return;
				}
	/* a slot is its row */
	check_table(rng, {Type::I32}, 30000, 40000, 1, false, false, true);
	check_table(rng, {Type::I64}, 3000, 40000, 1, false, true, true);
	check_table(rng, {Type::I64}, 3000, 40000, 1000000007, false, false, true);
}

TEST(VmJoin, SortedTable)
{
	Rng			rng(setting("GPUVM_TEST_SEED", 1));

	for (Type type : {Type::I32, Type::I64, Type::I16, Type::Bool, Type::F32, Type::F64})
		for (uint32_t nrows : {0u, 1u, 2u, 100u, 1500u, 60000u})
			for (uint64_t values : {1u, 10u, 3000u, 100000u})
			{
				check_ranges(rng, type, nrows, values, rng() % 3 == 0, rng() % 2);
				if (HasFatalFailure())
					return;
			}
}

/* A long sort looks at whether to stop. */
TEST(VmJoin, SortingStops)
{
	struct Now final : JoinStop
	{
		bool		stopped() override { asked++; return true; }
		int			asked = 0;
	} now;
	std::vector<uint32_t> codes(100000), rows(100000);
	Rng			rng(1);

	for (uint32_t i = 0; i < codes.size(); i++)
		codes[i] = static_cast<uint32_t>(rng() % 1000), rows[i] = i;

	const std::vector<uint32_t> before = codes;

	RowSort<uint32_t>(codes.data(), rows.data(), &now).run(0, 100000);
	EXPECT_EQ(now.asked, 1);
	EXPECT_EQ(codes, before);
	RowSort<uint32_t>(codes.data(), rows.data(), nullptr).run(0, 100000);
	EXPECT_TRUE(std::is_sorted(codes.begin(), codes.end()));
	for (uint32_t i = 0; i < codes.size(); i++)
		ASSERT_EQ(codes[i], before[rows[i]]);
}

/* What passes the verifier runs, whatever it is: damaged programs, for the sanitizers. */
TEST(VmJoin, DamagedPrograms)
{
	const uint64_t n = 20 * setting("GPUVM_TEST_PROGRAMS", 400);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	int			verified = 0;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		Rng			rng(seed);
		const bool	grouped = seed % 2;
		const int	ncursors = 2 + pick_int(rng, chance(rng, 20) ? PROGRAM_MAX_CURSORS - 1 : 2);
		std::vector<Table> tables;
		std::vector<CursorSchema> schemas;

		for (int k = 0; k < ncursors; k++)
			tables.push_back(join_table(rng, true, 1 + static_cast<uint32_t>(pick_int(rng, k == 0 && chance(rng, 20) ? 300 : 12)), 40));
		MapSet		maps = random_maps(rng, true);
		Generator	generator(rng, tables[0], true, &maps);

		maps.patterns = random_patterns(rng);
		generator.patterns = &maps.patterns;
		for (Table &table : tables)
			add_texts(rng, &table);
		for (const Table &table : tables)
			schemas.push_back(CursorSchema{static_cast<uint32_t>(table.types.size()), table.types.data()});

		SealedProgram sealed = generator.make_join(grouped, ncursors);
		Program    *program = reinterpret_cast<Program *>(sealed.words.data());
		Op		   *ops = const_cast<Op *>(program->ops());

		for (int i = 1 + pick_int(rng, 3); i > 0; i--)
		{
			Op		   &op = ops[pick_int(rng, program->nops)];
			const int	by = pick_int(rng, 5) - 2;

			switch (pick_int(rng, 9))
			{
				case 0: op.opcode = static_cast<Opcode>(pick_int(rng, static_cast<int>(Opcode::Count_))); break;
				case 1: op.type = VALUE_TYPES[pick_int(rng, 6)]; break;
				case 2: op.p5 = static_cast<uint8_t>(pick_int(rng, 8)); break;
				case 3: op.p1 += by; break;
				case 4: op.p2 += by; break;
				case 5: op.p3 += by; break;
				case 6: op.p4 += by; break;
				case 7: std::swap(op, ops[pick_int(rng, program->nops)]); break;
				default:
					if (program->naux > 0)
						const_cast<int64_t *>(program->aux())[pick_int(rng, static_cast<int>(program->naux))] += by;
					break;
			}
		}
		program->hash = hash_program(program);
		if (verify_program(program, program->size, schemas.data(), ncursors)
			|| verify_params(program, generator.params.data(), static_cast<uint32_t>(generator.params.size()))
			|| verify_maps(program, maps.maps.data(), static_cast<uint32_t>(maps.maps.size())))
			continue;
		verified++;

		AllIndexes	indexes;
		JoinFigures figures;

		if (program->grouped)
			run_join_groups(program, tables, generator.params, maps, rng, &indexes, &figures);
		else
			run_join_rows(program, tables, generator.params, maps, rng, &indexes, &figures);
	}
	EXPECT_GT(verified, static_cast<int>(n / 10));
}

TEST(VmJoin, Rows)
{
	run_many(false, false);
}

TEST(VmJoin, Groups)
{
	run_many(true, false);
}

TEST(VmJoin, RowsMasked)
{
	run_many(false, true);
}

TEST(VmJoin, RowsInPasses)
{
	run_many(false, true, true);
}

TEST(VmJoin, GroupsInPasses)
{
	run_many(true, true, true);
}

TEST(VmJoin, GroupsMasked)
{
	run_many(true, true);
}
