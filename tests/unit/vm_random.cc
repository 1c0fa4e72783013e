/* vm_random.cc: see vm_random.h. */
#include "vm_random.h"

namespace gpuvm {
namespace reference {

std::vector<Value>
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

Value
extreme_value(Type type, Rng &rng)
{
	const std::vector<Value> values = extreme_values(type);

	return values[static_cast<size_t>(pick_int(rng, static_cast<int>(values.size())))];
}

Value
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

static void
add_column(Table *table, Type type, const Profile &profile, uint32_t n, Rng &rng)
{
	Column		column{type, {}};

	for (uint32_t r = 0; r < n; r++)
		column.rows.push_back(random_value(type, profile, rng));
	table->columns.push_back(std::move(column));
}

Table
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
			Profile		profile = {pick_int(rng, tame ? 4 : 5), pick_int(rng, 3) == 0 ? 0 : pick_int(rng, 4) == 0 ? 100 : pick_int(rng, 40),
				static_cast<int64_t>(rng() % 2000000) - 1000000};

			if (tame && chance(rng, 60))
				profile.offset = 3;
			add_column(&table, type, profile, n, rng);
		}
	table.build();
	return table;
}

Table
join_table(Rng &rng, bool tame, uint32_t n, uint32_t most)
{
	Table		table;

	for (uint32_t left = n; left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, 1 + static_cast<uint32_t>(rng() % most)));
	for (Type type : VALUE_TYPES)
		for (int i = 0; i < 2; i++)
		{
			Profile		profile = {chance(rng, 60) ? 1 : pick_int(rng, tame ? 4 : 5), chance(rng, 50) ? 0 : pick_int(rng, 30),
				chance(rng, 80) ? 3 : static_cast<int64_t>(rng() % 2000000) - 1000000};

			if (chance(rng, 5))
				profile.null_percent = 100;
			add_column(&table, type, profile, n, rng);
		}
	table.build();
	return table;
}

void
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

Table
table_of(const Program *program, const Outcome &outcome, std::vector<bool> *overflows)
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

void
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

MapSet
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

std::string
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

}  // namespace reference
}  // namespace gpuvm
