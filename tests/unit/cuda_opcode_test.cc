/*
 * cuda_opcode_test.cc: every opcode, with every type that opcodes.def gives it,
 * on the emulated CUDA machine: over all pairs of values that break things,
 * nulls among them, from columns and from constants. A row that raises an error
 * is in a tablet with rows that do not, so that errors are compared one by one.
 *
 * GPUVM_TEST_CONSTANTS changes how many constants an operand is given.
 */
#include <functional>

#include "cuda_fixture.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

using Registers = std::vector<int>;

/* A way to use an opcode: its operands, and operations that end in the register that is returned. */
struct Use
{
	std::string name;
	std::vector<Type> operands;
	Type		result;
	std::function<int(ProgramBuilder &, const Registers &)> emit;
	std::shared_ptr<MapSet> maps = nullptr;
};

const Type	ALL_TYPES[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64};

bool
accepts(const OpcodeInfo &info, Type t)
{
	static const char letters[] = "-BSILFDXR";

	return strchr(info.types, letters[static_cast<int>(t)]) != nullptr;
}

int
constant(ProgramBuilder &b, Type type, const Value &v)
{
	const int	reg = b.new_reg(type);
	int64_t		bits;

	memcpy(&bits, &v.d, sizeof(bits));
	if (v.null)
		b.emit(Opcode::Null, type, reg, 0, 0);
	else if (type_is_float(type))
		b.emit(Opcode::Float, type, reg, 0, 0, bits);
	else if (type == Type::I64)
		b.emit(Opcode::Int64, type, reg, 0, 0, v.i);
	else
		b.emit(Opcode::Integer, type, reg, static_cast<int>(v.i), 0);
	return reg;
}

/* `op` writes the register; its result is the row. */
Use
value_use(std::string name, std::vector<Type> operands, Type result, std::function<void(ProgramBuilder &, int to, const Registers &)> op)
{
	return Use{std::move(name), std::move(operands), result, [result, op](ProgramBuilder &b, const Registers &r) {
		const int	to = b.new_reg(result);

		op(b, to, r);
		return to;
	}};
}

/* A jump: rows that take it die, or those that do not. The row is its last operand. */
void
add_jumps(std::vector<Use> *uses, Opcode opcode, Type type, std::vector<Type> operands)
{
	const Type	result = operands.back();

	for (uint8_t flags : {0, static_cast<int>(JUMP_IF_NULL)})
	{
		auto		second = [](const Registers &r) { return r.size() > 1 ? r[1] : 0; };
		const std::string null = flags ? " or null" : "";

		uses->push_back(Use{"dies" + null, operands, result, [=](ProgramBuilder &b, const Registers &r) {
			b.emit(opcode, type, r[0], second(r), b.nops + 1, VERDICT_DIES, flags);
			return r.back();
		}});
		uses->push_back(Use{"jumps" + null, operands, result, [=](ProgramBuilder &b, const Registers &r) {
			b.emit(opcode, type, r[0], second(r), b.nops + 2, VERDICT_JUMPS, flags);
			b.emit(Opcode::Invalid, Type::None, 0, 0, 0);
			return r.back();
		}});
	}
}

/* Aggregates and keys have tests of their own, and every program has the host's opcodes. */
bool
tested_elsewhere(OpForm form)
{
	switch (form)
	{
		case OpForm::TABLE: case OpForm::RESCOL: case OpForm::AGGOPEN: case OpForm::PARALLEL: case OpForm::CONVERGE:
		case OpForm::FINISH: case OpForm::RESULT: case OpForm::GROUP: case OpForm::AGGSTEP:
		case OpForm::HASHOPEN: case OpForm::HASHINSERT: case OpForm::SEEK: case OpForm::SEEKRANGE: case OpForm::CROSS: case OpForm::MATCH:
		case OpForm::TEXTMATCH:	/* cuda_text_match_test */
		case OpForm::TEXTPART:	/* cuda_text_part_test */
		case OpForm::TEXTKEY:	/* cuda_text_key_test */
		case OpForm::TEXTCOMPARE:	/* the same */
			return true;
		default:
			return false;
	}
}

std::vector<Value>
values_and_null(Type type)
{
	std::vector<Value> values = extreme_values(type);

	values.push_back(Value{});
	return values;
}

std::vector<Use>
uses_of(Opcode opcode, Type type)
{
	const OpcodeInfo &info = opcode_info[static_cast<int>(opcode)];
	std::vector<Use> uses;
	auto		operation = [opcode, type](ProgramBuilder &b, int to, const Registers &r) {
		b.emit(opcode, type, to, r[0], r.size() > 1 ? r[1] : 0, r.size() > 2 ? r[2] : 0);
	};

	switch (info.form)
	{
		case OpForm::COLUMN:
			uses.push_back(Use{"", {type}, type, [](ProgramBuilder &, const Registers &r) { return r[0]; }});
			break;
		case OpForm::ROWID:
			uses.push_back(value_use("", {Type::I32}, Type::RowId, [](ProgramBuilder &b, int to, const Registers &) {
				b.emit(Opcode::Rowid, Type::RowId, to, 0, 0);
			}));
			break;
		case OpForm::IMM32: case OpForm::IMM64: case OpForm::IMMNULL:
			for (Value v : extreme_values(type))
			{
				if (info.form == OpForm::IMM32 && v.i != static_cast<int32_t>(v.i))
					continue;
				v.null = info.form == OpForm::IMMNULL;
				uses.push_back(Use{"", {Type::I32}, type, [=](ProgramBuilder &b, const Registers &) {
					const int	to = b.new_reg(type);
					int64_t		bits;

					memcpy(&bits, &v.d, sizeof(bits));
					b.emit(opcode, type, to, info.form == OpForm::IMM32 ? static_cast<int>(v.i) : 0, 0,
						   info.form != OpForm::IMM64 ? 0 : type_is_float(type) ? bits : v.i);
					return to;
				}});
			}
			break;
		case OpForm::VARIABLE:
			for (int i = 0; i <= static_cast<int>(extreme_values(type).size()); i++)
				uses.push_back(value_use("", {Type::I32}, type, [=](ProgramBuilder &b, int to, const Registers &) {
					b.emit(opcode, type, to, i, 0);
				}));
			break;
		case OpForm::CAST:
			for (Type from : ALL_TYPES)
				uses.push_back(value_use("from " + std::to_string(static_cast<int>(from)), {from}, type,
					[=](ProgramBuilder &b, int to, const Registers &r) { b.emit(opcode, type, to, r[0], 0, 0, static_cast<uint8_t>(from)); }));
			break;
		case OpForm::UNARY: case OpForm::LOGIC1: case OpForm::COPY:
			uses.push_back(value_use("", {type}, type, operation));
			break;
		case OpForm::UNARY_IL:
			uses.push_back(value_use("", {Type::I32}, Type::I64, operation));
			break;
		case OpForm::UNARY_LI:
			uses.push_back(value_use("", {Type::I64}, Type::I32, operation));
			break;
		case OpForm::BINARY: case OpForm::LOGIC2: case OpForm::PICK:
			uses.push_back(value_use("", {type, type}, type, operation));
			break;
		case OpForm::SHIFT:
			uses.push_back(value_use("", {type, Type::I32}, type, operation));
			break;
		case OpForm::FIELD:
			for (int field = 0; field < DATE_FIELDS; field++)
				if (opcode == Opcode::DatePart ? date_part_takes(field) : date_trunc_takes(field))
					uses.push_back(value_use(date_field_name(field), {type}, type,
						[=](ProgramBuilder &b, int to, const Registers &r) { b.emit(opcode, type, to, r[0], field); }));
			break;
		case OpForm::LOOKUP:
			/* on the device bitmaps of up to 30 entries are one word */
			for (int n : {0, 1, 2, 30, 31, 300})
				for (int null_entry : {0, 1, 2})
				{
					const std::vector<Value> entries = values_and_null(type);
					std::vector<Value> values;
					auto		maps = std::make_shared<MapSet>();

					for (int i = n + (null_entry ? 1 : 0); i > 0; i--)
						values.push_back(entries[static_cast<size_t>(i) % entries.size()]);
					maps->add(Type::Bool, {}, false);	/* it is not the first */
					maps->add(type, values, null_entry != 0);
					uses.push_back(value_use(std::to_string(n) + " entries, of nulls " + std::to_string(null_entry), {Type::I32}, type,
						[=](ProgramBuilder &b, int to, const Registers &r) { b.emit(opcode, type, to, 1, r[0], 0, null_entry == 2 ? LOOKUP_NULL : 0); }));
					uses.back().maps = maps;
				}
			break;
		case OpForm::ZONE:
			/* offsets that change where timestamps begin, where calendars turn, and not at all */
			for (const std::vector<int64_t> &from : {std::vector<int64_t>{sem::TS_MIN, sem::TS_LIMIT}, {sem::TS_MIN, 0, 662774399999999, sem::TS_LIMIT - 5},
													 {-63113904000000000, -63082281600000000, -1, 0, 1, 5097599999999, 5184000000000}})
			{
				std::vector<Value> values;
				auto		maps = std::make_shared<MapSet>();

				for (int64_t time : from)
					values.push_back(from_register(time));
				for (size_t i = 0; i + 1 < from.size(); i++)
					values.push_back(from_register(i % 2 ? ZONE_MAX_SHIFT : -3599000000 * static_cast<int64_t>(i + 1)));
				values.push_back(from_register(ZONE_UNKNOWN));
				maps->add(type, values, false);
				uses.push_back(value_use(std::to_string(from.size()) + " times", {type}, type,
					[=](ProgramBuilder &b, int to, const Registers &r) { b.emit(opcode, type, to, 0, r[0]); }));
				uses.back().maps = maps;
			}
			break;
		case OpForm::NULLTEST:
			uses.push_back(value_use("", {type}, Type::Bool, operation));
			break;
		case OpForm::DISTINCT:
			uses.push_back(value_use("", {type, type}, Type::Bool, operation));
			break;
		case OpForm::SELECT:
			uses.push_back(value_use("", {type, type, Type::Bool}, type, operation));
			break;
		case OpForm::IN:
			/* the longest do not go into shared memory */
			for (int n : {1, 2, 5, 11, 400, 3000})
				for (int flags : {0, static_cast<int>(IN_HAS_NULL)})
					uses.push_back(value_use(std::to_string(n) + " values", {type}, Type::Bool, [=](ProgramBuilder &b, int to, const Registers &r) {
						std::vector<int64_t> list;

						for (const Value &v : extreme_values(type))
							if (static_cast<int>(list.size()) < n)
								list.push_back(v.i);
						while (static_cast<int>(list.size()) < n)
							list.push_back(static_cast<int64_t>(list.size()) * 5);
						std::sort(list.begin(), list.end());
						b.emit(opcode, type, to, r[0], b.add_aux(list.data(), n), n, static_cast<uint8_t>(flags));
					}));
			break;
		case OpForm::COMPARE:
			uses.push_back(value_use("stores", {type, type}, Type::Bool, [=](ProgramBuilder &b, int to, const Registers &r) {
				b.emit(opcode, type, r[0], r[1], to, 0, COMPARE_STORES);
			}));
			add_jumps(&uses, opcode, type, {type, type});
			break;
		case OpForm::BRANCH:
			add_jumps(&uses, opcode, type, {Type::Bool});
			break;
		case OpForm::JUMP:
			uses.push_back(Use{"", {Type::I32}, Type::I32, [=](ProgramBuilder &b, const Registers &r) {
				b.emit(opcode, type, 0, 0, b.nops + 2);
				b.emit(Opcode::Invalid, Type::None, 0, 0, 0);
				return r[0];
			}});
			break;
		case OpForm::INVALID:
			uses.push_back(Use{"", {Type::I32}, Type::I32, [=](ProgramBuilder &b, const Registers &r) {
				b.emit(opcode, type, 0, 0, 0);
				return r[0];
			}});
			break;
		default:
			break;
	}
	return uses;
}

/* Parameters: the type's extreme values, then null. */
std::vector<ParamValue>
parameters(Type type)
{
	std::vector<ParamValue> params;

	for (const Value &v : extreme_values(type))
	{
		int64_t		bits;

		memcpy(&bits, &v.d, sizeof(bits));
		params.push_back(ParamValue{type_is_float(type) ? bits : v.i, 0, static_cast<uint32_t>(type)});
	}
	params.push_back(ParamValue{0, 1, static_cast<uint32_t>(type)});
	return params;
}

/* The use as a program; `constants` has what an operand is, if it is no column. */
SealedProgram
program_of(const Use &use, const std::vector<const Value *> &constants)
{
	auto		b = new_builder();
	Registers	r;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, use.result, 0, 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (size_t i = 0; i < use.operands.size(); i++)
	{
		if (constants[i])
		{
			r.push_back(constant(*b, use.operands[i], *constants[i]));
			continue;
		}
		r.push_back(b->new_reg(use.operands[i]));
		b->emit(Opcode::Column, use.operands[i], r.back(), static_cast<int>(i), 0);
	}

	const int	value = use.emit(*b, r);
	int			row = value;

	if (use.result != Type::RowId)
	{
		row = b->new_reg(use.result);
		b->emit(Opcode::Copy, use.result, row, value, 0);
	}
	b->emit(Opcode::Result, Type::None, row, 1, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

using Row = std::vector<Value>;

/* All combinations of the operands' values; of a third operand one after the other. */
std::vector<Row>
all_rows_of(Opcode opcode, const std::vector<Type> &types)
{
	std::vector<Row> rows;
	std::vector<Value> a = values_and_null(types[0]);
	const std::vector<Value> b = types.size() > 1 ? values_and_null(types[1]) : std::vector<Value>(1);
	const std::vector<Value> c = types.size() > 2 ? values_and_null(types[2]) : std::vector<Value>(1);
	size_t		n = 0;

	/* The ends of what timestamps are, and days about which calendars turn. */
	if ((opcode >= Opcode::DatePart && opcode <= Opcode::TimeAddMicros) || opcode == Opcode::ZoneShift)
		for (int64_t t : {sem::TS_MIN, sem::TS_MIN - 1, sem::TS_MIN + 86400000000, sem::TS_LIMIT - 1, sem::TS_LIMIT, int64_t{86399999999},
						  int64_t{-63072000000001}, int64_t{5097599999999}, int64_t{5184000000000}, int64_t{-63082281600000000},
						  int64_t{-63113904000000000}, int64_t{-211300000000000000}, int64_t{662774399999999}, int64_t{-31579200000001}})
			a.push_back(from_register(t));
	for (const Value &x : a)
		for (const Value &y : b)
			rows.push_back(Row{x, y, c[n++ % c.size()]});
	for (Row &row : rows)
		row.resize(types.size());
	return rows;
}

Table
table_of(const std::vector<Type> &types, const std::vector<Row> &rows, const std::vector<uint32_t> &tablet_rows)
{
	Table		table;

	for (size_t c = 0; c < types.size(); c++)
	{
		table.columns.push_back(Column{types[c], {}});
		for (const Row &row : rows)
			table.columns.back().rows.push_back(row[c]);
	}
	table.tablet_rows = tablet_rows;
	return table;
}

/* What went wrong, and where, is only worth a text once it did. */
struct Context
{
	const char *opcode;
	Type		type;
	std::string name;
	const Program *program;
	DeviceRun	run;

	std::string text() const
	{
		return std::string(opcode) + " " + std::to_string(static_cast<int>(type)) + " " + name + ", rows a lane " +
			std::to_string(run.rows_per_lane) + " trust " + std::to_string(run.trust_ranges) + " order " + std::to_string(run.seed) + "\n" +
			program_text(program);
	}
};

std::string
row_text(const Row &row, const std::vector<Type> &types)
{
	std::string text;

	for (size_t c = 0; c < row.size(); c++)
		text += value_text(types[c], row[c]) + " ";
	return text;
}

/* Ways to run, one after the other. */
DeviceRun
next_run()
{
	static int	n = 0;
	static const uint16_t lanes[] = {4, 8, 16};
	const DeviceRun run = {lanes[n % 3], n / 3 % 2 != 0, static_cast<uint64_t>(n) % 5};

	n++;
	return run;
}

void
check(const Context &context, const std::vector<Type> &types, std::vector<Row> rows, const std::vector<ParamValue> &params, Rng &rng)
{
	const Program *program = context.program;
	const CursorSchema schema = {static_cast<uint32_t>(types.size()), types.data()};
	const char *wrong = verify_program(program, program->size, &schema, 1);
	std::vector<Row> clean, bad, all;
	std::vector<uint32_t> tablet_rows;

	ASSERT_EQ(wrong, nullptr) << wrong << " " << context.text();
	std::shuffle(rows.begin(), rows.end(), rng);
	for (const Row &row : rows)
	{
		const Table one = table_of(types, {row}, {1});

		(Interpreter(program, one, params.data(), context.run.code_maps()).run().errors ? bad : clean).push_back(row);
	}
	bad.resize(std::min<size_t>(bad.size(), 40));
	for (size_t i = 0; i < clean.size();)
	{
		const size_t n = std::min<size_t>(clean.size() - i, 1 + static_cast<size_t>(pick_int(rng, 150)));

		all.insert(all.end(), clean.begin() + static_cast<long>(i), clean.begin() + static_cast<long>(i + n));
		tablet_rows.push_back(static_cast<uint32_t>(n));
		i += n;
	}
	for (const Row &row : bad)
	{
		std::vector<Row> tablet = {row};

		for (int n = pick_int(rng, 4); n > 0 && !clean.empty(); n--)
			tablet.push_back(clean[static_cast<size_t>(pick_int(rng, static_cast<int>(clean.size())))]);
		std::shuffle(tablet.begin(), tablet.end(), rng);
		all.insert(all.end(), tablet.begin(), tablet.end());
		tablet_rows.push_back(static_cast<uint32_t>(tablet.size()));
	}

	Table		table = table_of(types, all, tablet_rows);

	table.build();

	const DeviceResult got = run_device(program, table, params, context.run);

	ASSERT_EQ(got.refused, nullptr) << got.refused << " " << context.text();
	ASSERT_EQ(got.units.size(), tablet_rows.size());
	for (size_t t = 0, first = 0; t < tablet_rows.size(); first += tablet_rows[t++])
	{
		const std::vector<Row> tablet(all.begin() + static_cast<long>(first), all.begin() + static_cast<long>(first + tablet_rows[t]));
		const Table part = table_of(types, tablet, {tablet_rows[t]});
		const Outcome expected = Interpreter(program, part, params.data(), context.run.code_maps()).run();

		ASSERT_EQ(got.units[t].errors, expected.errors) << row_text(tablet[0], types) << " " << context.text();
		if (expected.errors)
			continue;

		const std::vector<std::string> expected_rows = rows_text(program, expected), got_rows = rows_text(program, got.units[t]);

		ASSERT_EQ(got_rows.size(), expected_rows.size()) << context.text();
		for (size_t i = 0; i < got_rows.size(); i++)
			ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " of " << got_rows.size()
				<< (got_rows.size() == tablet.size() ? ": " + row_text(tablet[i], types) : "") << " " << context.text();
	}
}

void
check_use(Opcode opcode, Type type, const Use &use, Rng &rng)
{
	const OpcodeInfo &info = opcode_info[static_cast<int>(opcode)];
	const std::vector<ParamValue> params = info.form == OpForm::VARIABLE ? parameters(type) : std::vector<ParamValue>();
	const size_t nconstants = setting("GPUVM_TEST_CONSTANTS", 2);
	std::vector<const Value *> constants(use.operands.size());
	const std::vector<Row> rows = all_rows_of(opcode, use.operands);
	auto		check_with = [&](const char *how) {
		const SealedProgram sealed = program_of(use, constants);
		DeviceRun	run = next_run();

		run.maps = use.maps.get();
		check(Context{info.name, type, use.name + how, sealed.get(), run}, use.operands, rows, params, rng);
	};

	check_with("");
	for (size_t i = 0; i < use.operands.size() && !::testing::Test::HasFatalFailure(); i++)
	{
		std::vector<Value> values = values_and_null(use.operands[i]);

		std::shuffle(values.begin(), values.end(), rng);
		if (values.size() > nconstants)
			values.resize(nconstants);
		for (const Value &v : values)
		{
			/* sometimes all operands are constants */
			const Value other = values[static_cast<size_t>(pick_int(rng, static_cast<int>(values.size())))];

			constants[i] = &v;
			if (use.operands.size() == 2 && use.operands[0] == use.operands[1] && chance(rng, 15))
				constants[1 - i] = &other;
			check_with(", a constant");
			std::fill(constants.begin(), constants.end(), nullptr);
			if (::testing::Test::HasFatalFailure())
				return;
		}
	}
}

/* -- aggregates and keys ---------------------------------------------------------------------- */

/* Aggregate `fn` over column 0, where column 1 is true; of groups by column 2 if there is a key. */
SealedProgram
aggregate_program(AggFn fn, Type type, bool filter, Type key)
{
	auto		b = new_builder();
	const bool	star = fn == AggFn::CountStar, keyed = key != Type::None;
	const int64_t sources[] = {RESULT_FROM_AGG, 0};
	int			arg = -1, where = -1;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, agg_result_type(fn, star ? Type::None : type), 0, 0, 0, b->add_name("a"));
	if (keyed)
		b->emit(Opcode::ResultColumn, key, 1, 0, 0, b->add_name("k"));
	b->emit(Opcode::AggOpen, Type::None, keyed, 1, b->add_aux(sources, keyed ? 2 : 1));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	if (!star)
		b->emit(Opcode::Column, type, arg = b->new_reg(type), 0, 0);
	if (filter)
		b->emit(Opcode::Column, Type::Bool, where = b->new_reg(Type::Bool), 1, 0);
	if (keyed)
	{
		const int64_t reg = b->new_reg(key);

		b->emit(Opcode::Column, key, static_cast<int>(reg), 2, 0);
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&reg, 1), 0);
	}
	b->emit(Opcode::AggStep, star ? Type::None : type, 0, arg, where, 0, static_cast<uint8_t>(fn));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

/* Some of the type's values, so that not all tables hold a NaN. */
std::vector<Value>
some_values(Type type, Rng &rng)
{
	std::vector<Value> values = values_and_null(type);

	std::shuffle(values.begin(), values.end(), rng);
	values.resize(1 + static_cast<size_t>(pick_int(rng, static_cast<int>(std::min<size_t>(values.size(), 5)))));
	return values;
}

void
check_aggregate(AggFn fn, Type type, Type key, Rng &rng, std::map<std::string, int> *refusals)
{
	const std::vector<Type> types = {type, Type::Bool, key == Type::None ? Type::Bool : key};
	const SealedProgram sealed = aggregate_program(fn, type, chance(rng, 50), key);
	const Program *program = sealed.get();
	const CursorSchema schema = {3, types.data()};
	const Context context = {"AggStep", type, "function " + std::to_string(static_cast<int>(fn)) + " key " + std::to_string(static_cast<int>(key)),
		program, next_run()};
	std::vector<std::vector<Value>> values;
	std::vector<Row> rows;
	std::vector<uint32_t> tablet_rows;

	ASSERT_EQ(verify_program(program, program->size, &schema, 1), nullptr) << context.text();
	for (Type t : types)
		values.push_back(some_values(t, rng));
	for (int t = 1 + pick_int(rng, 3); t > 0; t--)
		tablet_rows.push_back(1 + static_cast<uint32_t>(pick_int(rng, 700)));
	for (uint32_t n : tablet_rows)
		for (uint32_t i = 0; i < n; i++)
		{
			Row			row;

			for (const std::vector<Value> &v : values)
				row.push_back(v[static_cast<size_t>(pick_int(rng, static_cast<int>(v.size())))]);
			rows.push_back(row);
		}

	Table		table = table_of(types, rows, tablet_rows);

	table.build();

	const DeviceResult got = run_device(program, table, {}, context.run);
	const Outcome expected = Interpreter(program, table, nullptr).run();

	if (got.refused)
	{
		(*refusals)[got.refused]++;
		return;
	}
	ASSERT_EQ(got.outcome.errors, expected.errors) << context.text();
	if (expected.errors)
		return;

	std::vector<std::string> expected_rows = rows_text(program, expected), got_rows = rows_text(program, got.outcome);

	std::sort(expected_rows.begin(), expected_rows.end());
	std::sort(got_rows.begin(), got_rows.end());
	ASSERT_EQ(got_rows, expected_rows) << context.text();
}

void
check_aggregates(bool keyed)
{
	std::map<std::string, int> refusals;
	int			n = 0, refused = 0;
	Rng			rng(setting("GPUVM_TEST_SEED", 1));

	for (AggFn fn : {AggFn::CountStar, AggFn::Count, AggFn::Sum, AggFn::Min, AggFn::Max, AggFn::BoolAnd, AggFn::BoolOr, AggFn::BitAnd, AggFn::BitOr, AggFn::BitXor, AggFn::AnyValue})
		for (Type type : ALL_TYPES)
		{
			const bool	bools = fn == AggFn::BoolAnd || fn == AggFn::BoolOr;

			if ((type == Type::Bool) != bools && fn != AggFn::Count && fn != AggFn::CountStar && fn != AggFn::AnyValue)
				continue;
			if (cuda::agg_is_bits(fn) && !type_is_int(type))
				continue;
			for (Type key : ALL_TYPES)
				for (uint64_t i = setting("GPUVM_TEST_CONSTANTS", 2); i > 0; i--)
				{
					check_aggregate(fn, type, keyed ? key : Type::None, rng, &refusals);
					n++;
					if (::testing::Test::HasFatalFailure())
						return;
				}
		}
	for (const auto &[reason, times] : refusals)
	{
		printf("refused %d times: %s\n", times, reason.c_str());
		refused += times;
	}
	EXPECT_LE(refused * 100, n * 3);
}

}  // namespace

TEST(CudaOpcode, EveryOpcodeAndType)
{
	Rng			rng(setting("GPUVM_TEST_SEED", 1));

	for (int o = 0; o < static_cast<int>(Opcode::Count_); o++)
	{
		const OpcodeInfo &info = opcode_info[o];

		if (tested_elsewhere(info.form) || is_library_function(static_cast<Opcode>(o)))
			continue;
		for (int t = 0; t <= static_cast<int>(Type::RowId); t++)
		{
			if (!accepts(info, static_cast<Type>(t)))
				continue;

			const std::vector<Use> uses = uses_of(static_cast<Opcode>(o), static_cast<Type>(t));

			ASSERT_FALSE(uses.empty()) << info.name << " has a form that this test does not know";
			for (const Use &use : uses)
			{
				check_use(static_cast<Opcode>(o), static_cast<Type>(t), use, rng);
				if (HasFatalFailure())
					return;
			}
		}
	}
}

/* Columns that are stored narrowed, and constants about the ends of what they hold. */
TEST(CudaOpcode, NarrowColumns)
{
	const int	nprograms = static_cast<int>(setting("GPUVM_TEST_CONSTANTS", 2)) * 150;
	Rng			rng(setting("GPUVM_TEST_SEED", 1));

	for (int i = 0; i < nprograms; i++)
	{
		static const Type types[] = {Type::I16, Type::I32, Type::I64};
		static const int64_t spans[] = {0, 1, 100, 127, 128, 254, 255, 256, 32767, 32768, 65534, 65535, 65536, 4294967294, 4294967295, 4294967296};
		const Type	type = types[pick_int(rng, 3)];
		const int64_t least = type == Type::I16 ? INT16_MIN : type == Type::I32 ? INT32_MIN : INT64_MIN;
		const int64_t most = type == Type::I16 ? INT16_MAX : type == Type::I32 ? INT32_MAX : INT64_MAX;
		const int128 span = std::min<int128>(spans[pick_int(rng, 16)], static_cast<int128>(most) - least);
		const int64_t highest_base = static_cast<int64_t>(most - span);
		const int64_t bases[] = {least, highest_base, std::min<int64_t>(0, highest_base), std::max<int64_t>(least, -100), std::min<int64_t>(1000, highest_base)};
		const int64_t base = std::min(highest_base, std::max(least, bases[pick_int(rng, 5)]));
		const int64_t ends[] = {base, static_cast<int64_t>(base + span), base + static_cast<int64_t>(span / 2), least, most};
		std::vector<Row> rows;

		for (int n = 1 + pick_int(rng, 250); n > 0; n--)
		{
			const int128 offset = chance(rng, 30) ? pick_int(rng, 3) : chance(rng, 40) ? span - pick_int(rng, 3) : static_cast<int128>(rng() % 0x200000000);

			rows.push_back(Row{from_register(static_cast<int64_t>(base + std::max<int128>(0, std::min(offset, span)))), Value{}});
			if (chance(rng, 10))
				rows.back()[0] = Value{};
		}

		const Opcode opcode = static_cast<Opcode>(static_cast<int>(Opcode::Eq) + pick_int(rng, 6));
		const std::vector<Use> uses = uses_of(opcode, type);
		const Use  &use = uses[static_cast<size_t>(pick_int(rng, static_cast<int>(uses.size())))];
		const int128 near = static_cast<int128>(ends[pick_int(rng, 5)]) + pick_int(rng, 5) - 2;
		const Value limit = from_register(static_cast<int64_t>(std::max<int128>(least, std::min<int128>(most, near))));
		const bool	first = chance(rng, 30);
		const SealedProgram sealed = program_of(use, {first ? &limit : nullptr, first ? nullptr : &limit});

		if (first)
			for (Row &row : rows)
				std::swap(row[0], row[1]);
		check(Context{opcode_info[static_cast<int>(opcode)].name, type, use.name + " limit " + value_text(type, limit) + " base " +
			  std::to_string(base) + " span " + std::to_string(static_cast<int64_t>(span)), sealed.get(), next_run()}, use.operands, rows, {}, rng);
		if (HasFatalFailure())
			return;
	}
}

TEST(CudaOpcode, Aggregates)
{
	check_aggregates(false);
}

TEST(CudaOpcode, Groups)
{
	check_aggregates(true);
}
