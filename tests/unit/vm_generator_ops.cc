/* vm_generator_ops.cc: one operation after the other, and which registers it may read. See vm_generator.h. */
#include "vm_generator.h"

namespace gpuvm {
namespace reference {

void
Generator::close_scopes()
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

int
Generator::emit(Opcode opcode, Type type, int p1, int p2, int p3, int64_t p4, uint8_t p5)
{
	close_scopes();
	return builder->emit(opcode, type, p1, p2, p3, p4, p5);
}

int
Generator::write(Type type)
{
	return builder->new_reg(type);
}

void
Generator::wrote(int reg, Type type)
{
	pool.push_back(Reg{reg, type, builder->nops - 1});
}

int
Generator::constant(Type type)
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

int
Generator::column(Type type)
{
	const int	c = column_of(type);

	if (c < 0)
		return constant(type);

	const int	reg = write(type);

	emit(Opcode::Column, type, reg, c, joins ? any_cursor() : 0);
	wrote(reg, type);
	return reg;
}

int
Generator::column_of(Type type)
{
	std::vector<int> found;

	for (size_t c = 0; c < table.types.size(); c++)
		if (table.types[c] == type && !table.columns[c].is_text())
			found.push_back(static_cast<int>(c));
	return found.empty() ? -1 : found[static_cast<size_t>(pick_int(rng, static_cast<int>(found.size())))];
}

int
Generator::read(Type type)
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

Type
Generator::value_type(const char *letters)
{
	static const char codes[] = "BSILFD";
	std::vector<Type> types;

	for (int i = 0; i < 6; i++)
		if (strchr(letters, codes[i]))
			types.push_back(VALUE_TYPES[i]);
	return types[pick_int(rng, static_cast<int>(types.size()))];
}

bool
Generator::takes_timestamp(Opcode opcode)
{
	return opcode == Opcode::TimestampAddMonths || opcode == Opcode::TimestampAddDays || opcode == Opcode::TimestampAddMicros
		|| opcode == Opcode::TimeAddMicros;
}

int
Generator::timestamp()
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

int
Generator::jump_target()
{
	return builder->nops + 1 + pick_int(rng, 8);
}

void
Generator::random_op()
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

bool
Generator::lost(std::initializer_list<int> operands)
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

void
Generator::jump(Opcode opcode, Type t, int a, int b)
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

}  // namespace reference
}  // namespace gpuvm
