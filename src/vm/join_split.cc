/* join_split.cc: see join_split.h. */
#include "vm/join_split.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "vm/operands.h"

namespace gpuvm {

namespace {

bool
is_constant(const Op &op)
{
	const OpForm form = form_of(op);

	return form == OpForm::IMM32 || form == OpForm::IMM64 || form == OpForm::IMMNULL || form == OpForm::VARIABLE;
}

/* Does it give what a row of a cursor has: a column, or its position? */
bool
reads_row(const Op &op)
{
	return reads_column(op) || op.opcode == Opcode::Rowid;
}

/* Does it position a cursor? */
bool
positions(const Op &op)
{
	return op.opcode == Opcode::Seek || op.opcode == Opcode::SeekRange || op.opcode == Opcode::Cross;
}

/* Does the operation send lanes elsewhere? */
bool
jumps(const Op &op)
{
	const OpForm form = form_of(op);

	return form == OpForm::JUMP
		|| ((form == OpForm::BRANCH || (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES))) && op.p4 == VERDICT_JUMPS);
}

/* The register that it writes, as a reference; nullptr if none. */
template <typename O>
auto
written(O &op) -> decltype(&op.p1)
{
	switch (form_of(op))
	{
		case OpForm::COMPARE:
			return op.p5 & COMPARE_STORES ? &op.p3 : nullptr;
		case OpForm::BRANCH: case OpForm::JUMP: case OpForm::INVALID: case OpForm::GROUP: case OpForm::AGGSTEP:
		case OpForm::RESULT: case OpForm::HASHINSERT: case OpForm::SEEK: case OpForm::SEEKRANGE: case OpForm::CROSS: case OpForm::MATCH:
		case OpForm::TABLE: case OpForm::RESCOL: case OpForm::AGGOPEN: case OpForm::HASHOPEN: case OpForm::PARALLEL:
		case OpForm::CONVERGE: case OpForm::FINISH:
			return nullptr;
		default:
			return &op.p1;
	}
}

Type
written_type(const Op &op)
{
	switch (form_of(op))
	{
		case OpForm::NULLTEST: case OpForm::DISTINCT: case OpForm::IN: case OpForm::COMPARE:
			return Type::Bool;
		default:
			return op.type;
	}
}

constexpr int BUILD = -2;		/* a place: of build programs */
constexpr int NOWHERE = -1;

class Splitter
{
public:
	Splitter(const Program *program, JoinSplit *split, bool moves) : program(program), split(split), moves(moves) {}

	void		run();

	/* Where an operation of the main pipeline is run: 2 * level, one more in a condition of its own. */
	int			place[PROGRAM_MAX_OPS];
	int			definition[PROGRAM_MAX_REGS];	/* address of what writes the register */
	const Program *program;
	JoinSplit  *split;
	const bool	moves;			/* what reads one side of a nested loop alone is computed before it */
	std::vector<std::vector<bool>> used_at;	/* per item and place */

	int			item_of(int reg);	/* NOWHERE for a constant */
	int			column_item(const Op &op);
	const Op   &op_at(int address) const { return program->ops()[address]; }

private:
	void		find_places();
	int			hoist(int cross, int match, int cursor);
	int			place_before(const Op &op, int level) const;
	void		move_before(int level, int from, int match, int to);
	void		find_uses();
	void		choose_items();
	void		build_stages();
};

/* Writes one of the programs. */
class StageBuilder
{
public:
	StageBuilder(Splitter *splitter, JoinStage *stage, int place, int table)
		: splitter(splitter), program(splitter->program), stage(stage), place(place), table(table),
		  b(std::make_unique<ProgramBuilder>())
	{
		b->init();
		std::fill(map, map + PROGRAM_MAX_REGS, -1);
		item_reg.assign(splitter->split->items.size(), -1);
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
	}

	void		result_columns(const std::vector<Type> &types)
	{
		for (size_t i = 0; i < types.size(); i++)
			b->emit(Opcode::ResultColumn, types[i], static_cast<int>(i), 0, 0, b->add_name(""));
	}
	/* The program's own end: its host operations. */
	void		own_end()
	{
		for (int i = 0; i < program->parallel; i++)
		{
			Op			op = program->ops()[i];

			if (op.opcode == Opcode::ResultColumn)
				b->emit(op.opcode, op.type, op.p1, 0, 0, b->add_name(""));
			else if (op.opcode == Opcode::AggOpen)
				b->emit(op.opcode, op.type, op.p1, op.p2, b->add_aux(program->aux() + op.p3, program->nresults));
		}
	}
	void		begin() { parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0); }

	/* What of [from, to) belongs here. */
	void		operations(int from, int to)
	{
		for (int i = from; i < to; i++)
		{
			new_address[i] = b->nops;
			if (splitter->place[i] != place)
				continue;
			if (jumps(program->ops()[i]))
				fetch_before(i);
			operation(program->ops()[i]);
		}
		new_address[to] = b->nops;
	}

	/* Result of these registers of the join program, then of these items. */
	void		result(const std::vector<int> &regs, const std::vector<int> &items)
	{
		std::vector<int> from;

		for (int r : regs)
			from.push_back(source(r));
		for (int i : items)
			from.push_back(item_source(i));
		emit_result(from);
	}

	/* Ends the program; false when it exceeds a limit. */
	bool		finish()
	{
		const int	converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);

		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		b->ops[parallel].p3 = converge;
		for (auto &[address, target] : targets)
			b->ops[address].p3 = target < 0 ? converge : new_address[target];
		if (b->failed)
			return false;
		b->nparams = program->nparams;
		b->nmaps = program->nmaps;
		b->npatterns = program->npatterns;
		stage->sealed.assign((b->sealed_size() + 7) / 8, 0);
		b->seal(reinterpret_cast<Program *>(stage->sealed.data()));
		return true;
	}

private:
	int			new_reg(Type type)
	{
		const int	r = b->new_reg(type);

		return r < 0 ? 0 : r;
	}

	/* The register here of one of the join program's: written before, or fetched now. */
	int			source(int reg)
	{
		if (map[reg] >= 0)
			return map[reg];

		const Op   &op = splitter->op_at(splitter->definition[reg]);

		if (is_constant(op))
		{
			map[reg] = new_reg(op.type);
			b->emit(op.opcode, op.type, map[reg], op.p2, op.p3, op.p4, op.p5);
			return map[reg];
		}
		return item_source(splitter->item_of(reg));
	}

	/* Up to where lanes that jump here, or on their way there, may be apart. */
	int			together_again(int address) const
	{
		int			target = program->ops()[address].p3;

		for (int i = address + 1; i < target; i++)
			if (splitter->place[i] == place && jumps(program->ops()[i]))
				target = std::max(target, program->ops()[i].p3);
		return target;
	}

	/* Is it, or what makes the same of the same column, read from there on? */
	bool		read_behind(const Op &made, int address) const
	{
		bool		found = false;

		for (int i = address; i < program->converge; i++)
			each_read(program, program->ops()[i], [&](int r) {
				const Op   &other = splitter->op_at(splitter->definition[r]);

				found |= other.opcode == made.opcode && other.p2 == made.p2 && other.p3 == made.p3 && other.p4 == made.p4;
			});
		return found;
	}

	/*
	 * What is fetched where it is read must be there for all lanes that read it later: what some lanes read on a way of their own is fetched
	 * before they part. Not so what is matched for them alone, which takes long.
	 */
	void		fetch_before(int address)
	{
		const int	target = together_again(address);

		for (int i = address + 1; i < target; i++)
		{
			if (splitter->place[i] != place)
				continue;
			each_read(program, program->ops()[i], [&](int r) {
				const int	from = splitter->definition[r];
				const Op   &made = splitter->op_at(from);

				if (map[r] >= 0 || (from > address && !is_constant(made) && !reads_row(made) && splitter->place[from] == place))
					return;
				if (!reads_text(made) || read_behind(made, target))
					(void) source(r);
			});
		}
	}

	int			item_source(int number)
	{
		const JoinItem &item = splitter->split->items[number];

		/* items may have been added since */
		if (item_reg.size() <= static_cast<size_t>(number))
			item_reg.resize(number + 1, -1);
		if (item_reg[number] >= 0)
			return item_reg[number];
		if (item.reg >= 0 && (map[item.reg] >= 0 || is_constant(splitter->op_at(splitter->definition[item.reg]))))
			return source(item.reg);

		int			column = item.column;

		if (table < 0)
		{
			column = static_cast<int>(stage->columns.size());
			stage->columns.push_back(number);
		}
		item_reg[number] = new_reg(item.type);
		if (table >= 0 && item.column == ROW_POSITION)
			b->emit(Opcode::Rowid, item.type, item_reg[number], 0, 0);
		else if (table >= 0)
			b->emit(item.made, item.type, item_reg[number], column, 0, item.p4);
		else
			b->emit(Opcode::Column, item.type, item_reg[number], column, 0);
		return item_reg[number];
	}

	void		emit_result(const std::vector<int> &from)
	{
		const int	n = static_cast<int>(from.size());
		int			first = b->nregs;

		for (int i = 0; i < n; i++)
		{
			const int	to = new_reg(b->reg_type[from[i]]);

			b->emit(Opcode::Copy, b->reg_type[from[i]], to, from[i], 0);
		}
		b->emit(Opcode::Result, Type::None, n == 0 ? 0 : first, n, 0);
	}

	void		operation(Op op)
	{
		if (is_constant(op) || op.opcode == Opcode::Column || op.opcode == Opcode::Rowid || (reads_text(op) && table < 0))
			return;				/* where they are read */
		if (reads_text(op))
			op.p3 = 0;
		each_operand(op, [this](auto &r) { r = source(static_cast<int>(r)); });
		switch (form_of(op))
		{
			case OpForm::RESULT:
				{
					std::vector<int> from;

					for (int i = 0; i < op.p2; i++)
						from.push_back(source(op.p1 + i));
					emit_result(from);
					return;
				}
			case OpForm::GROUP:
				{
					std::vector<int64_t> keys;

					for (int i = 0; i < op.p1; i++)
						keys.push_back(source(static_cast<int>(program->aux()[op.p2 + i])));
					op.p2 = b->add_aux(keys.data(), op.p1);
					break;
				}
			case OpForm::IN:
				op.p3 = b->add_aux(program->aux() + op.p3, static_cast<int>(op.p4));
				break;
			case OpForm::JUMP: case OpForm::BRANCH: case OpForm::COMPARE:
				if (jumps(op))
					targets.emplace_back(b->nops, op.p3);
				else if (!(form_of(op) == OpForm::COMPARE && (op.p5 & COMPARE_STORES)))
					targets.emplace_back(b->nops, -1);
				break;
			default:
				break;
		}
		if (auto *r = written(op))
		{
			const int	old = *r;

			*r = map[old] = new_reg(written_type(op));
		}
		b->emit(op.opcode, op.type, op.p1, op.p2, op.p3, op.p4, op.p5);
	}

	Splitter   *splitter;
	const Program *program;
	JoinStage  *stage;
	int			place;
	int			table;			/* the cursor whose tablets it reads; -1: a vector of items */
	std::unique_ptr<ProgramBuilder> b;
	int			map[PROGRAM_MAX_REGS];
	std::vector<int> item_reg;
	int			new_address[PROGRAM_MAX_OPS + 1];
	std::vector<std::pair<int, int>> targets;	/* address here, target there; -1: the lane dies */
	int			parallel = 0;
};

/* Of Column, and of what goes from cursor to reader just as a column does. */
int
Splitter::column_item(const Op &op)
{
	const Opcode made = reads_text(op) ? op.opcode : Opcode::Column;
	const int64_t p4 = reads_text(op) ? op.p4 : 0;
	const int	column = op.opcode == Opcode::Rowid ? ROW_POSITION : op.p2;

	for (size_t i = 0; i < split->items.size(); i++)
		if (split->items[i].reg < 0 && split->items[i].cursor == op.p3 && split->items[i].column == column &&
			split->items[i].made == made && split->items[i].p4 == p4)
			return static_cast<int>(i);
	split->items.push_back(JoinItem{-1, op.p3, column, op.type, op.p3, op.p3 > 0, made, p4});
	used_at.emplace_back(2 * program->ncursors, false);
	return static_cast<int>(split->items.size()) - 1;
}

int
Splitter::item_of(int reg)
{
	const int	address = definition[reg];
	const Op   &op = op_at(address);

	if (is_constant(op))
		return NOWHERE;
	if (reads_row(op))
		return column_item(op);
	for (size_t i = 0; i < split->items.size(); i++)
		if (split->items[i].reg == reg)
			return static_cast<int>(i);

	/* hoisted: the place is BUILD - level */
	const bool	hoisted = place[address] <= BUILD;
	const int	level = hoisted ? BUILD - place[address] : place[address] / 2;

	split->items.push_back(JoinItem{reg, 0, 0, written_type(op), level, hoisted});
	used_at.emplace_back(2 * program->ncursors, false);
	return static_cast<int>(split->items.size()) - 1;
}

/*
 * What stands directly behind Cross and reads nothing but the cursor goes into
 * its build program, up to the first operation that does not.
 */
int
Splitter::hoist(int cross, int match, int cursor)
{
	int			i;

	for (i = cross + 1; i < match; i++)
	{
		const Op   &op = op_at(i);
		const OpForm form = form_of(op);
		bool		own = true;

		if (is_constant(op) || form == OpForm::COLUMN || form == OpForm::ROWID || (reads_text(op) && op.p3 != cursor))
			continue;
		if (jumps(op) || form == OpForm::INVALID)
			break;
		each_read(program, op, [&](int r) {
			const Op   &from = op_at(definition[r]);

			own = own && (is_constant(from) || ((from.opcode == Opcode::Column || from.opcode == Opcode::Rowid) && from.p3 == cursor)
						  || place[definition[r]] == BUILD - cursor);
		});
		if (!own)
			break;
		place[i] = BUILD - cursor;
	}
	return i;
}

void
Splitter::find_places()
{
	int			level = 0;
	bool		condition = false;

	std::fill(place, place + PROGRAM_MAX_OPS, NOWHERE);
	for (int i = 0; i < program->converge; i++)
		if (const int *r = written(op_at(i)))
			definition[*r] = i;
	split->levels.resize(program->ncursors - 1);
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = op_at(i);

		if (positions(op))
		{
			int			match = i;

			while (op_at(match).opcode != Opcode::Match)
				match++;

			JoinLevel  &to = split->levels[level++];

			to.kind = static_cast<JoinKind>(op_at(match).p2);
			to.sought = op.opcode != Opcode::Cross;
			to.range = op.opcode == Opcode::SeekRange ? op.p2 : 0;
			condition = to.kind != JoinKind::Inner;
			/* a row that goes on alone goes on whatever the condition says of it */
			if (!to.sought && to.kind != JoinKind::Full)
				i = hoist(i, match, op.p1) - 1;
			continue;
		}
		if (op.opcode == Opcode::Match)
		{
			condition = false;
			continue;
		}
		place[i] = 2 * level + (condition ? 1 : 0);
	}

	for (int i = program->parallel + 1; moves && i < program->converge; i++)
	{
		int			match = i, to = i + 1;

		if (op_at(i).opcode != Opcode::Cross)
			continue;
		while (op_at(match).opcode != Opcode::Match)
			match++;
		while (to < program->converge && !positions(op_at(to)))
			to++;
		move_before(op_at(i).p1, i + 1, match, to);
	}

	/* constants and columns among what was hoisted have no place: they are found by their readers */
	for (int i = 0; i < program->parallel; i++)
		if (op_at(i).opcode == Opcode::Parallel)
			for (int j = i + 1; op_at(j).opcode != Opcode::HashInsert; j++)
				place[j] = BUILD - op_at(i).p2;
}

bool
may_move(const Op &op)
{
	const OpForm form = form_of(op);

	return !is_constant(op) && !reads_row(op) && !jumps(op) && written(op) != nullptr && form != OpForm::COPY && form != OpForm::TEXTKEY &&
		form != OpForm::TEXTCOMPARE;
}

/* Where an operation in the loop of a level may run instead, for what it reads; or NOWHERE. */
int
Splitter::place_before(const Op &op, int level) const
{
	bool		inner = false, outer = false;
	int			last = 0;		/* the last level of what it reads of the outer side */

	each_read(program, op, [&](int r) {
		const Op   &from = op_at(definition[r]);
		const int	at = place[definition[r]];
		const int	of = is_constant(from) ? 0 : reads_row(from) ? from.p3 : at <= BUILD ? BUILD - at : at / 2;

		if (is_constant(from))
			return;
		if (of == level && !(reads_row(from) ? !reads_text(from) : at == BUILD - level))
			inner = outer = true;	/* reads a pair */
		else if (of == level)
			inner = true;
		else
		{
			outer = true;
			last = std::max(last, of);
		}
	});
	if (inner == outer)
		return NOWHERE;
	if (inner)
		return BUILD - level;
	for (level--; level > last && !split->levels[level - 1].sought && split->levels[level - 1].kind != JoinKind::Full;)
		level--;
	return 2 * level;
}

/* Of a nested loop, [from, to): what reads one side alone is computed once a row of that side, and not for each pair. */
void
Splitter::move_before(int level, int from, int match, int to)
{
	const JoinKind kind = split->levels[level - 1].kind;
	int			together = from;	/* before it, lanes may have parted */

	for (int i = from; i < to; i++)
	{
		const Op   &op = op_at(i);

		if (jumps(op))
			together = std::max(together, op.p3);
		if (i < together || place[i] < 2 * level || !may_move(op))
			continue;

		const int	before = place_before(op, level);

		if (before == NOWHERE)
			continue;
		/* a row that goes on alone behind Match has nulls for the other side's columns, but not for what is made of them */
		if (i > match && (kind == JoinKind::Full || (kind != JoinKind::Inner && before < NOWHERE)))
			continue;
		/* of pairs, what may raise is not known yet */
		if (before > 0 && opcode_info[static_cast<int>(op.opcode)].errors != 0)
			continue;
		if (before <= 0)
			(before == 0 ? split->first : split->levels[level - 1].build).moved = true;
		place[i] = before;
	}
}

void
Splitter::find_uses()
{
	int			level = 0;

	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = op_at(i);

		if (op.opcode == Opcode::Seek || op.opcode == Opcode::SeekRange)
		{
			JoinLevel  &to = split->levels[level];

			each_read(program, op, [&](int reg) {
				int			item = item_of(reg);

				if (item == NOWHERE)
				{
					/* a constant, carried like what is computed before */
					split->items.push_back(JoinItem{reg, 0, 0, op_at(definition[reg]).type, level, false});
					used_at.emplace_back(2 * program->ncursors, false);
					item = static_cast<int>(split->items.size()) - 1;
				}
				if (to.range == 0 || to.key_types.empty())
					to.key_types.push_back(split->items[item].type);
				to.probe.push_back(item);	/* choose_items() makes it a place */
				used_at[item][2 * (level + 1)] = true;
			});
		}
		if (positions(op))
			level++;
		if (place[i] < 0 || is_constant(op) || reads_row(op))
			continue;
		each_read(program, op, [&](int r) {
			const int	item = item_of(r);

			if (item != NOWHERE && (split->items[item].reg < 0 || split->items[item].payload || place[definition[r]] != place[i]))
				used_at[item][place[i]] = true;
		});
	}
}

void
Splitter::choose_items()
{
	for (int level = 1; level < program->ncursors; level++)
	{
		JoinLevel  &to = split->levels[level - 1];

		for (size_t i = 0; i < split->items.size(); i++)
		{
			const JoinItem &item = split->items[i];
			bool		used = false;

			for (int p = 2 * level; p < 2 * program->ncursors; p++)
				used = used || used_at[i][p];
			if (!used)
				continue;
			if (item.level < level)
				to.carried.push_back(static_cast<int>(i));
			else if (item.level == level && item.payload)
				to.payload.push_back(static_cast<int>(i));
		}
		/* columns in the table's order, not the query's: so that queries have the same build program */
		std::stable_sort(to.payload.begin(), to.payload.end(), [this](int a, int b) {
			const JoinItem &x = split->items[a], &y = split->items[b];

			return std::make_tuple(x.reg >= 0, x.column, x.made, x.p4) < std::make_tuple(y.reg >= 0, y.column, y.made, y.p4);
		});
		for (int &item : to.probe)
			item = static_cast<int>(std::find(to.carried.begin(), to.carried.end(), item) - to.carried.begin());
	}
}

void
Splitter::build_stages()
{
	bool		ok = true;
	auto		types_of = [this](const std::vector<int> &items) {
		std::vector<Type> types;

		for (int i : items)
			types.push_back(split->items[i].type);
		return types;
	};
	std::vector<int> boundary = {program->parallel + 1};	/* where each level begins */

	for (int i = program->parallel + 1; i < program->converge; i++)
		if (positions(op_at(i)))
			boundary.push_back(i + 1);
	boundary.push_back(program->converge + 1);

	{
		StageBuilder b(this, &split->first, 0, 0);

		b.result_columns(types_of(split->levels[0].carried));
		b.begin();
		b.operations(boundary[0], boundary[1] - 1);
		b.operations(boundary[1], program->converge);
		b.result({}, split->levels[0].carried);
		ok = b.finish() && ok;
	}
	for (int level = 1; level < program->ncursors; level++)
	{
		JoinLevel  &of = split->levels[level - 1];
		const int	from = boundary[level], to = boundary[level + 1] - 1;
		int			match = from, condition_ops = 0;

		while (op_at(match).opcode != Opcode::Match)
			condition_ops += place[match++] == 2 * level + 1 && !is_constant(op_at(match - 1)) && !reads_row(op_at(match - 1));

		/* build */
		{
			StageBuilder b(this, &of.build, BUILD - level, level);
			std::vector<Type> types = of.key_types;
			std::vector<int> keys;

			for (Type t : types_of(of.payload))
				types.push_back(t);
			b.result_columns(types);
			b.begin();
			if (of.sought)
			{
				int			begin = 0;

				while (op_at(begin).opcode != Opcode::Parallel || op_at(begin).p2 != level)
					begin++;

				const int	insert = op_at(begin).p3 - 1;

				b.operations(begin + 1, insert);
				for (int k = 0; k < op_at(insert).p2; k++)
					keys.push_back(static_cast<int>(program->aux()[op_at(insert).p3 + k]));
			}
			else
				b.operations(from, to);
			b.result(keys, of.payload);
			ok = b.finish() && ok;
		}
		if (of.kind != JoinKind::Inner && condition_ops > 0)
		{
			StageBuilder b(this, &of.condition, 2 * level + 1, -1);

			b.begin();
			b.operations(from, match);
			b.result({}, {});
			ok = b.finish() && ok;
		}

		const bool	last = level == program->ncursors - 1;
		StageBuilder b(this, &of.tail, 2 * level, -1);

		if (last)
			b.own_end();
		else
			b.result_columns(types_of(split->levels[level].carried));
		b.begin();
		b.operations(from, to);
		if (!last)
		{
			b.operations(boundary[level + 1], program->converge);
			b.result({}, split->levels[level].carried);
		}
		ok = b.finish() && ok;
	}
	if (!ok)
		split->failure = "the join's program is too large";
}

void
Splitter::run()
{
	find_places();
	find_uses();
	choose_items();
	build_stages();
}

}  // namespace

void
split_join(const Program *program, JoinSplit *split, bool moves)
{
	*split = JoinSplit();
	std::make_unique<Splitter>(program, split, moves)->run();
}

}  // namespace gpuvm
