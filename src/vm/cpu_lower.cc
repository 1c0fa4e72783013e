/*
 * cpu_lower.cc: from a verified program to the steps that the CPU runs.
 *
 * One pass makes the steps in program order; then slots are given to registers
 * by a linear scan over the steps, and the rows of groups are laid out.
 */
#include <algorithm>
#include <cstring>

#include "vm/code_map.h"
#include "vm/cpu_job.h"

namespace gpuvm {

namespace {

constexpr uint64_t MOST_SLOTS = 1 << 28;
/* Where all rows arrive a dense table may have so many times the slots, if there are so many rows for each, and so many bytes. */
constexpr uint64_t DENSE_SLOTS_IF_ALL_ARRIVE = 4;
constexpr uint64_t DENSE_ROWS_A_SLOT = 4;
constexpr uint64_t DENSE_MOST_BYTES = uint64_t(16) << 20;
/* Of each of the fewest parts, as a power of two. */
constexpr int LEAST_SLOT_BITS = 4;
/* Parts of slots have so many at least, if they are not the fewest: their groups fit a cache. */
constexpr int PART_SLOT_BITS = 12;
constexpr uint32_t REPLICATE_BELOW = 256;
constexpr int REPLICAS = 4;
/* As many rows a part, at least: if each is a group of its own its table fits a cache, if there are not too many parts. */
constexpr uint64_t PART_ROWS = 16384;
constexpr int MOST_PART_BITS = 9;

Opcode
swapped(Opcode opcode)
{
	switch (opcode)
	{
		case Opcode::Lt: return Opcode::Gt;
		case Opcode::Le: return Opcode::Ge;
		case Opcode::Gt: return Opcode::Lt;
		case Opcode::Ge: return Opcode::Le;
		default: return opcode;
	}
}

int
aligned(int offset, int to)
{
	return (offset + to - 1) & ~(to - 1);
}

}  // namespace

class Lowering
{
public:
	Lowering(CpuProgram *job, const ColumnSummary *summaries, const uint8_t *scalar)
		: job(job), program(job->program), summaries(summaries), scalar(scalar) {}

	void		analyze();
	void		make_steps();
	void		give_slots();
	void		lay_out_groups();
	void		lay_out_records();

private:
	int			resolve(int reg) const { return alias[reg]; }
	/* The register read by a step as a vector: a constant needs one then. */
	int			read(int reg);
	int			read_operand(int reg, bool may_be_constant);
	bool		is_constant(int reg) const { return job->regs[reg].kind == RegKind::Constant; }
	Step	   &add(StepKind kind, Type type);
	int			label_of(const Op &op) const;
	void		constant(int reg, Type type, bool is_null, int64_t v, double d);
	int			zero_constant(Type type);
	void		column(const Op &op);
	void		text_match(const Op &op);
	void		text_step(StepKind kind, const Op &op, TextStep text);
	void		binary(const Op &op);
	void		unary(const Op &op);
	void		cast(const Op &op);
	void		field(const Op &op);
	void		lookup(const Op &op);
	void		zone(const Op &op);
	void		compare(const Op &op);
	void		compare_regs(Step &step, Opcode opcode, Type type, int a, int b);
	void		simple(StepKind kind, const Op &op, bool second);
	void		lane_op(const Op &op);
	void		use(int reg, int step);
	void		agg_layout(AggInfo *agg, int *offset);
	uint64_t	number_slots();
	bool		all_arrive() const;
	bool		dense_layout(uint64_t slots);

	CpuProgram *job;
	const Program *program;
	const ColumnSummary *summaries;
	const uint8_t *scalar;		/* per column, or nullptr: none is */
	std::vector<int> alias;
	std::vector<int> labels;	/* per address: label or LABEL_DIES */
	uint32_t	op_errors[PROGRAM_MAX_OPS];
	int			address = 0;
	bool		group_lanes = false;	/* every lane that Group had still lives */
};

void
Lowering::analyze()
{
	std::vector<ValueRange> columns(job->ncolumns_of_table);

	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (reads_column(op))
			columns[op.p2] = column_range(summaries[op.p2]);
	}
	job->ranges.resize(PROGRAM_MAX_REGS + 2);
	analyze_ranges(program, job->params.data(), columns.data(), job->ranges.data(), op_errors, job->maps);
	job->path = sink_path(program, op_errors);
}

int
Lowering::read(int reg)
{
	reg = resolve(reg);
	if (is_constant(reg))
		job->regs[reg].broadcast = true;
	return reg;
}

int
Lowering::read_operand(int reg, bool may_be_constant)
{
	return may_be_constant ? resolve(reg) : read(reg);
}

Step &
Lowering::add(StepKind kind, Type type)
{
	Step		step = {};

	step.kind = kind;
	step.type = type;
	step.dst = step.a = step.b = step.c = step.test = -1;
	step.label = LABEL_DIES;
	job->steps.push_back(step);
	return job->steps.back();
}

/* Where a jump goes. Converge: nothing is left to do for the lane. */
int
Lowering::label_of(const Op &op) const
{
	if (op.opcode != Opcode::Goto && op.p4 == VERDICT_DIES)
		return LABEL_DIES;
	return labels[op.p3];
}

void
Lowering::constant(int reg, Type type, bool is_null, int64_t v, double d)
{
	RegInfo    &info = job->regs[reg];

	info.kind = RegKind::Constant;
	info.type = type;
	info.is_null = is_null;
	info.value.i64 = 0;
	switch (type)
	{
		case Type::I64: info.value.i64 = v; break;
		case Type::F32: info.value.f32 = static_cast<float>(d); break;
		case Type::F64: info.value.f64 = d; break;
		default: info.value.i32 = static_cast<int32_t>(v); break;
	}
}

int
Lowering::zero_constant(Type type)
{
	int			reg = static_cast<int>(job->regs.size());

	job->regs.push_back(RegInfo{});
	alias.push_back(reg);
	job->regs[reg].slot = job->regs[reg].first_use = job->regs[reg].last_use = -1;
	constant(reg, type, false, 0, 0);
	return reg;
}

/* The same column again is the same register. */
void
Lowering::column(const Op &op)
{
	for (const UsedColumn &used : job->columns)
		if (used.number == op.p2)
		{
			alias[op.p1] = used.reg;
			return;
		}
	for (const ScalarColumn &used : job->scalars)
		if (used.number == op.p2)
		{
			alias[op.p1] = used.reg;
			return;
		}
	if (scalar && scalar[op.p2])
	{
		constant(op.p1, op.type, false, 0, 0);
		job->regs[op.p1].late = true;
		job->scalars.push_back(ScalarColumn{op.p2, op.p1});
		return;
	}
	job->regs[op.p1].kind = RegKind::Column;
	job->regs[op.p1].column = static_cast<int>(job->columns.size());
	job->columns.push_back(UsedColumn{op.p2, op.type, op.p1, job->ranges[op.p1]});
}

void
Lowering::text_match(const Op &op)
{
	const TextPattern *pattern = job->patterns[op.p4];

	if (pattern->kind == TextMatchKind::Null)
	{
		constant(op.p1, Type::Bool, true, 0, 0);
		return;
	}
	text_step(StepKind::TextMatch, op, TextStep{0, text_search(pattern), {}, pattern->collation == 0 ? nullptr : &job->text_keys->orders[pattern->collation - 1u]});
}

/* It needs no register of the column, but that is where a column's nulls are. */
void
Lowering::text_step(StepKind kind, const Op &op, TextStep text)
{
	size_t		used = 0;

	while (used < job->columns.size() && job->columns[used].number != op.p2)
		used++;
	if (used == job->columns.size())
	{
		const int	reg = zero_constant(Type::I64);

		if (job->ranges.size() <= static_cast<size_t>(reg))
			job->ranges.resize(reg + 1);
		job->ranges[reg] = column_range(summaries[op.p2]);
		job->regs[reg].kind = RegKind::Column;
		job->regs[reg].column = static_cast<int>(used);
		job->columns.push_back(UsedColumn{op.p2, Type::I64, reg, job->ranges[reg]});
	}
	job->columns[used].text = true;

	Step	   &step = add(kind, op.type);

	step.dst = op.p1;
	step.list = static_cast<int>(job->texts.size());
	text.column = static_cast<int>(used);
	job->texts.push_back(text);
}

void
Lowering::binary(const Op &op)
{
	const bool	constant_a = is_constant(resolve(op.p2)), constant_b = is_constant(resolve(op.p3));
	const OperandForm form = constant_b && !constant_a ? OperandForm::VC
		: constant_a && !constant_b ? OperandForm::CV : OperandForm::VV;
	Step	   &step = add(StepKind::Binary, op.type);

	step.dst = op.p1;
	step.form = form;
	step.a = read_operand(op.p2, form == OperandForm::CV);
	step.b = read_operand(op.p3, form == OperandForm::VC);
	step.binary = job->kernels->binary(op.opcode, op.type, form, op_errors[address] != 0);
	step.check = op_errors[address] ? check_binary(op.opcode, op.type, form) : nullptr;
}

void
Lowering::unary(const Op &op)
{
	Step	   &step = add(StepKind::Unary, op.type);

	step.dst = op.p1;
	step.a = read(op.p2);
	step.unary = job->kernels->unary(op.opcode, op.type, op_errors[address] != 0);
	step.check = op_errors[address] ? check_unary(op.opcode, op.type) : nullptr;
}

void
Lowering::cast(const Op &op)
{
	const Type	from = static_cast<Type>(op.p5);

	if (from == op.type)
		alias[op.p1] = resolve(op.p2);
	else if (op.type == Type::Bool)
	{
		int			zero = zero_constant(from);
		Step	   &step = add(StepKind::Compare, from);

		step.dst = op.p1;
		step.stores = true;
		compare_regs(step, Opcode::Ne, from, resolve(op.p2), zero);
	}
	else if (from == Type::Bool)
	{
		Step	   &step = add(StepKind::FromBool, op.type);

		step.dst = op.p1;
		step.a = read(op.p2);
	}
	else
	{
		Step	   &step = add(StepKind::Unary, op.type);

		step.dst = op.p1;
		step.a = read(op.p2);
		step.unary = job->kernels->cast(op.type, from);
		step.check = op_errors[address] ? check_cast(op.type, from) : nullptr;
	}
}

void
Lowering::field(const Op &op)
{
	Step	   &step = add(StepKind::Unary, op.type);

	step.dst = op.p1;
	step.a = read(op.p2);
	step.unary = job->kernels->field(op.opcode, static_cast<DateField>(op.p3), op_errors[address] != 0);
	step.check = op_errors[address] ? check_field(op.opcode, static_cast<DateField>(op.p3)) : nullptr;
}

void
Lowering::lookup(const Op &op)
{
	const ValueRange &code = job->ranges[op.p3];
	Step	   &step = add(StepKind::Lookup, op.type);

	step.dst = op.p1;
	step.a = read(op.p3);
	step.list = op.p2;
	step.has_null = op.p5 & LOOKUP_NULL;
	step.outside = code.may_value && (code.lo < 0 || code.hi >= int64_t(job->maps[op.p2].nentries));
}

/* Of the table, what the operand's range leaves. */
void
Lowering::zone(const Op &op)
{
	const ValueRange &a = job->ranges[op.p3];
	Step	   &step = add(StepKind::Zone, op.type);

	step.dst = op.p1;
	step.a = read(op.p3);
	step.list = static_cast<int>(job->zones.size());
	step.checked = op_errors[address] != 0;
	job->zones.push_back(zone_part(job->maps[op.p2], a.may_value ? a.lo : 0, a.may_value ? a.hi : 0));
}

/* Constants to the right; an integer column against one is tested in the codes' domain. */
void
Lowering::compare_regs(Step &step, Opcode opcode, Type type, int a, int b)
{
	if (is_constant(a) && !is_constant(b))
	{
		std::swap(a, b);
		opcode = swapped(opcode);
	}
	step.opcode = opcode;
	step.form = is_constant(b) && type != Type::Bool ? OperandForm::VC : OperandForm::VV;
	step.a = read(a);
	step.b = read_operand(b, step.form == OperandForm::VC);
	step.compare = job->kernels->compare(opcode, type, step.form);

	const RegInfo &left = job->regs[a], &right = job->regs[b];

	if (!type_is_int(type) || left.kind != RegKind::Column || right.kind != RegKind::Constant || right.late)
		return;

	const int64_t k = type == Type::I64 ? right.value.i64 : right.value.i32;
	ColumnTest	test = {left.column, opcode == Opcode::Ne, false, INT64_MIN, INT64_MAX};

	switch (opcode)
	{
		case Opcode::Lt: test.empty = k == INT64_MIN; test.hi = test.empty ? k : k - 1; break;
		case Opcode::Le: test.hi = k; break;
		case Opcode::Gt: test.empty = k == INT64_MAX; test.lo = test.empty ? k : k + 1; break;
		case Opcode::Ge: test.lo = k; break;
		default: test.lo = test.hi = k; break;
	}
	step.test = static_cast<int>(job->tests.size());
	job->tests.push_back(test);
}

void
Lowering::compare(const Op &op)
{
	Step	   &step = add(StepKind::Compare, op.type);

	step.stores = op.p5 & COMPARE_STORES;
	step.jump_null = op.p5 & JUMP_IF_NULL;
	if (step.stores)
		step.dst = op.p3;
	else
		step.label = label_of(op);
	compare_regs(step, op.opcode, op.type, resolve(op.p1), resolve(op.p2));
}

void
Lowering::simple(StepKind kind, const Op &op, bool second)
{
	Step	   &step = add(kind, op.type);

	step.dst = op.p1;
	step.a = read(op.p2);
	if (second)
		step.b = read(op.p3);
}

void
Lowering::lane_op(const Op &op)
{
	switch (op.opcode)
	{
		case Opcode::Column:
			column(op);
			break;
		case Opcode::Rowid:
			job->regs[op.p1].kind = RegKind::Rowid;
			break;
		case Opcode::Integer:
			constant(op.p1, op.type, false, op.p2, 0);
			break;
		case Opcode::Int64:
			constant(op.p1, op.type, false, op.p4, 0);
			break;
		case Opcode::Float:
			constant(op.p1, op.type, false, 0, bits_double(static_cast<uint64_t>(op.p4)));
			break;
		case Opcode::Null:
			constant(op.p1, op.type, true, 0, 0);
			break;
		case Opcode::Variable:
			{
				const ParamValue &p = job->params[op.p2];

				constant(op.p1, op.type, p.is_null, p.is_null ? 0 : p.value,
						 p.is_null ? 0 : bits_double(static_cast<uint64_t>(p.value)));
				break;
			}
		case Opcode::Copy:
			alias[op.p1] = resolve(op.p2);
			break;
		case Opcode::Cast:
			cast(op);
			break;
		case Opcode::And: simple(StepKind::And, op, true); break;
		case Opcode::Or: simple(StepKind::Or, op, true); break;
		case Opcode::Not: simple(StepKind::Not, op, false); break;
		case Opcode::IsTrue: simple(StepKind::IsTrue, op, false); break;
		case Opcode::IsFalse: simple(StepKind::IsFalse, op, false); break;
		case Opcode::IsNull: simple(StepKind::IsNull, op, false); break;
		case Opcode::NotNull: simple(StepKind::NotNull, op, false); break;
		case Opcode::Coalesce: simple(StepKind::Coalesce, op, true); break;
		case Opcode::IsDistinct:
		case Opcode::NullIf:
		case Opcode::Greatest:
		case Opcode::Least:
			{
				simple(op.opcode == Opcode::IsDistinct ? StepKind::IsDistinct : op.opcode == Opcode::NullIf ? StepKind::NullIf
					   : op.opcode == Opcode::Greatest ? StepKind::Greatest : StepKind::Least, op, true);

				/* is b to be taken instead of a? */
				Step	   &step = job->steps.back();

				step.opcode = op.opcode == Opcode::Greatest ? Opcode::Lt : op.opcode == Opcode::Least ? Opcode::Gt : Opcode::Eq;
				step.compare = job->kernels->compare(step.opcode, op.type, OperandForm::VV);
				break;
			}
		case Opcode::In:
			{
				simple(StepKind::In, op, false);
				job->steps.back().list = op.p3;
				job->steps.back().list_len = static_cast<int>(op.p4);
				job->steps.back().has_null = op.p5 & IN_HAS_NULL;
				break;
			}
		case Opcode::Select:
			{
				simple(StepKind::Select, op, true);
				job->steps.back().c = read(static_cast<int>(op.p4));
				break;
			}
		case Opcode::Eq: case Opcode::Ne: case Opcode::Lt: case Opcode::Le: case Opcode::Gt: case Opcode::Ge:
			group_lanes = group_lanes && (op.p5 & COMPARE_STORES);
			compare(op);
			break;
		case Opcode::If:
		case Opcode::IfNot:
			{
				Step	   &step = add(StepKind::Branch, op.type);

				group_lanes = false;
				step.a = read(op.p1);
				step.jump_if = op.opcode == Opcode::If;
				step.jump_null = op.p5 & JUMP_IF_NULL;
				step.label = label_of(op);
				break;
			}
		case Opcode::Goto:
			group_lanes = false;
			add(StepKind::Goto, op.type).label = label_of(op);
			break;
		case Opcode::Invalid:
			group_lanes = false;
			add(StepKind::Invalid, op.type);
			break;
		case Opcode::Group:
			for (int i = 0; i < op.p1; i++)
			{
				int			reg = static_cast<int>(program->aux()[op.p2 + i]);

				job->keys[i].may_null = job->ranges[reg].may_null;
				job->keys[i].lo = job->ranges[reg].lo;
				job->keys[i].reg = read(reg);
				job->keys[i].type = job->regs[job->keys[i].reg].type;
			}
			add(StepKind::Group, op.type);
			group_lanes = true;
			break;
		case Opcode::AggStep:
			{
				Step	   &step = add(StepKind::AggStep, op.type);
				AggInfo    &agg = job->aggs[op.p1];
				const AggMachine machine = agg_machine(static_cast<AggFn>(op.p5), op.type);

				step.a = op.p1;
				agg.fn = machine.fn;
				agg.tracked = !group_lanes;
				agg.type = machine.type;
				agg.arg = op.p2 >= 0 ? read(op.p2) : -1;
				agg.low = agg_is_wide(machine.fn) ? read(static_cast<int>(op.p4)) : -1;
				agg.order = orders_texts(op) ? &job->text_keys->orders[static_cast<size_t>(op.p4)] : nullptr;
				agg.filter = op.p3 >= 0 ? read(op.p3) : -1;
				break;
			}
		case Opcode::Result:
			for (int i = 0; i < op.p2; i++)
				job->result_regs.push_back(read(op.p1 + i));
			add(StepKind::Result, op.type);
			break;
		default:
			switch (opcode_info[static_cast<int>(op.opcode)].form)
			{
				case OpForm::BINARY:
				case OpForm::SHIFT:
					binary(op);
					break;
				case OpForm::FIELD:
					field(op);
					break;
				case OpForm::LOOKUP:
					lookup(op);
					break;
				case OpForm::TEXTMATCH:
					text_match(op);
					break;
				case OpForm::TEXTPART:
					text_step(StepKind::TextPart, op, TextStep{0, {}, text_part_of(op.p4), nullptr});
					break;
				case OpForm::TEXTCOMPARE:
					simple(StepKind::TextCompare, op, true);
					job->steps.back().list = static_cast<int>(op.p4);
					break;
				case OpForm::TEXTKEY:
					simple(StepKind::TextKey, op, false);
					job->steps.back().list = op.p3;
					break;
				case OpForm::ZONE:
					zone(op);
					break;
				default:
					unary(op);
					break;
			}
			break;
	}
}

void
Lowering::make_steps()
{
	job->regs.resize(program->nregs);
	alias.resize(program->nregs);
	for (int r = 0; r < program->nregs; r++)
	{
		alias[r] = r;
		job->regs[r] = RegInfo{};
		job->regs[r].slot = job->regs[r].first_use = job->regs[r].last_use = -1;
	}
	labels.assign(program->nops + 1, LABEL_DIES);
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];
		const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;
		const bool	jumps = form == OpForm::JUMP
			|| ((form == OpForm::BRANCH || (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES))) && op.p4 == VERDICT_JUMPS);

		if (jumps && op.p3 < program->converge && labels[op.p3] == LABEL_DIES)
			labels[op.p3] = job->nlabels++;

		/* the register's type, while we are here */
		switch (form)
		{
			case OpForm::NULLTEST: case OpForm::DISTINCT: case OpForm::IN:
				job->regs[op.p1].type = Type::Bool;
				break;
			case OpForm::COMPARE:
				if (op.p5 & COMPARE_STORES)
					job->regs[op.p3].type = Type::Bool;
				break;
			case OpForm::BRANCH: case OpForm::JUMP: case OpForm::INVALID: case OpForm::GROUP: case OpForm::AGGSTEP: case OpForm::RESULT:
				break;
			default:
				job->regs[op.p1].type = op.type;
				break;
		}
	}
	for (address = program->parallel + 1; address < program->converge; address++)
	{
		if (labels[address] != LABEL_DIES)
			add(StepKind::Label, Type::None).label = labels[address];
		lane_op(program->ops()[address]);
	}

	int			next = static_cast<int>(job->steps.size());

	for (int i = next - 1; i >= 0; i--)
	{
		job->steps[i].next_label = next;
		if (job->steps[i].kind == StepKind::Label)
			next = i;
	}
}

void
Lowering::use(int reg, int step)
{
	if (reg < 0)
		return;

	RegInfo    &info = job->regs[reg];

	if (info.first_use < 0)
		info.first_use = step;
	info.last_use = std::max(info.last_use, step);
}

void
Lowering::give_slots()
{
	const int	nsteps = static_cast<int>(job->steps.size());

	for (int i = 0; i < nsteps; i++)
	{
		const Step &step = job->steps[i];

		switch (step.kind)
		{
			case StepKind::Group:
				for (const KeyInfo &key : job->keys)
					use(key.reg, i);
				break;
			case StepKind::AggStep:
				use(job->aggs[step.a].arg, i);
				use(job->aggs[step.a].low, i);
				use(job->aggs[step.a].filter, i);
				break;
			case StepKind::Result:
				for (int reg : job->result_regs)
					use(reg, i);
				break;
			default:
				use(step.a, i);
				use(step.b, i);
				use(step.c, i);
				use(step.dst, i);
				break;
		}
	}

	/* Where each register's life begins and ends, then first fit. */
	std::vector<std::vector<int>> begins(nsteps), ends(nsteps);
	std::vector<int> unused;

	for (int r = 0; r < static_cast<int>(job->regs.size()); r++)
	{
		const RegInfo &info = job->regs[r];

		if (info.first_use < 0 || info.type == Type::Bool || info.kind == RegKind::Constant)
			continue;
		begins[info.first_use].push_back(r);
		ends[info.last_use].push_back(r);
	}
	for (int i = 0; i < nsteps; i++)
	{
		for (int r : begins[i])
		{
			if (unused.empty())
				job->regs[r].slot = job->nslots++;
			else
			{
				job->regs[r].slot = unused.back();
				unused.pop_back();
			}
		}
		for (int r : ends[i])
			unused.push_back(job->regs[r].slot);
	}
	for (RegInfo &info : job->regs)
		if (info.kind == RegKind::Constant && info.broadcast && info.type != Type::Bool)
			info.slot = job->nslots++;
}

void
Lowering::agg_layout(AggInfo *agg, int *offset)
{
	const ValueRange *range = agg->arg >= 0 ? &job->ranges[agg->arg] : nullptr;
	const int	log2rows = ceil_log2(job->total_rows + 1);
	int			size = 8, align = 8;

	/* a group whose rows all reach the sum has one that is not null */
	agg->tracked = agg->tracked || agg->filter >= 0 || (range && range->may_null);
	switch (agg->fn)
	{
		case AggFn::CountStar:
		case AggFn::Count:
			agg->kind = AggKind::Count;
			break;
		case AggFn::Sum:
			if (type_is_int(agg->type))
			{
				const int128 m = std::max(int128(range->hi), -int128(range->lo));
				const bool	narrow = m < (int128(1) << 62) >> std::min(log2rows, 62);

				agg->kind = narrow ? AggKind::SumInt64 : AggKind::SumInt128;
				align = narrow ? 8 : 16;
				size = align + (agg->tracked ? 8 : 0);
			}
			else if (!job->keys.empty() && range->exp_hi - range->exp_lo + log2rows <= 120)
			{
				agg->kind = AggKind::SumFixed;
				agg->exp_lo = range->exp_lo;
				align = 16;
				size = 16 + static_cast<int>(sizeof(FloatSumInfo));
			}
			else
			{
				/* one sum alone is split at any exponent (sum_floats) */
				agg->kind = AggKind::SumLimbs;
				agg->window = job->keys.empty() ? FloatSumWindow{0, FLOAT_SUM_LIMBS} : float_sum_window(range->exp_lo, range->exp_hi);
				size = static_cast<int>(sizeof(FloatSumInfo)) + 8 * agg->window.count;
			}
			break;
		case AggFn::Min:
		case AggFn::Max:
			agg->kind = AggKind::Extreme;
			size = 16;
			break;
		case AggFn::MinWide:
		case AggFn::MaxWide:
			agg->kind = AggKind::ExtremeWide;
			align = size = 16;
			break;
		case AggFn::MinText:
		case AggFn::MaxText:
			agg->kind = AggKind::ExtremeText;
			break;
		case AggFn::BitAnd:
		case AggFn::BitOr:
		case AggFn::BitXor:
			agg->kind = AggKind::Bits;
			size = 16;
			break;
		default:
			agg->kind = AggKind::Bools;
			break;
	}
	*offset = aligned(*offset, align);
	agg->offset = *offset;
	*offset += size;
}

/* Slots for every combination of key values; 0: there are too many. */
uint64_t
Lowering::number_slots()
{
	uint64_t	slots = 1;

	for (KeyInfo &key : job->keys)
	{
		const ValueRange &range = job->ranges[key.reg];

		if (type_is_float(key.type))
			return 0;

		const uint64_t values = static_cast<uint64_t>(range.hi) - static_cast<uint64_t>(range.lo) + 1;

		if (values == 0 || values > MOST_SLOTS)
			return 0;
		key.values = static_cast<uint32_t>(values);
		key.stride = static_cast<uint32_t>(slots);
		slots *= values + (key.may_null ? 1 : 0);
		if (slots > MOST_SLOTS)
			return 0;
	}
	return slots;
}

/* May lanes jump from here? */
static bool
lanes_leave(const Step &step)
{
	return step.kind == StepKind::Branch || step.kind == StepKind::Goto || step.kind == StepKind::Invalid ||
		(step.kind == StepKind::Compare && !step.stores);
}

/* Do all of the table's rows come to Group? */
bool
Lowering::all_arrive() const
{
	for (const Step &step : job->steps)
	{
		if (step.kind == StepKind::Group)
			return scalar == nullptr;	/* of rows of a join nobody knows */
		if (lanes_leave(step))
			return false;
	}
	return false;
}

/* A row for every slot, if they are few enough. */
bool
Lowering::dense_layout(uint64_t slots)
{
	const uint64_t most = cpu_group_limits.dense_slots;

	/* A table of few rows is not worth clearing and reading many slots; nor are many of which few may have rows. */
	if (slots == 0 || slots > most * DENSE_SLOTS_IF_ALL_ARRIVE || (slots > 1024 && slots / 16 > job->total_rows) ||
		(slots > most && (slots > job->total_rows / DENSE_ROWS_A_SLOT || !all_arrive())))
		return false;
	job->dense_slots = static_cast<uint32_t>(slots);
	job->replicas = slots < REPLICATE_BELOW ? REPLICAS : 1;
	return true;
}

/*
 * Without Group: one row. Dense: slots x replicas rows, each with a word that
 * says that it is there. Hashed: key null bits, keys, then aggregates.
 */
void
Lowering::lay_out_groups()
{
	const uint64_t slots = job->keys.empty() ? 0 : number_slots();
	int			offset = 0;

	job->dense = dense_layout(slots);
	if (job->dense && job->dense_slots > cpu_group_limits.dense_slots)
	{
		offset = 8;
		for (AggInfo &agg : job->aggs)
			agg_layout(&agg, &offset);
		job->dense = job->dense_slots * static_cast<uint64_t>(aligned(offset, 16)) <= DENSE_MOST_BYTES;
		job->dense_slots = job->dense ? job->dense_slots : 0;
		offset = 0;
	}
	if (job->dense)
		offset = 8;
	else if (!job->keys.empty())
	{
		bool		nullable = false;

		for (const KeyInfo &key : job->keys)
			nullable |= key.may_null;
		job->null_words = nullable ? static_cast<int>(job->keys.size() + 63) / 64 : 0;
		offset = 8 * job->null_words;
		for (KeyInfo &key : job->keys)
		{
			key.offset = offset;
			offset += 8;
		}
	}
	for (AggInfo &agg : job->aggs)
		agg_layout(&agg, &offset);
	job->row_bytes = aligned(std::max(offset, 8), 16);
	job->part_bits = std::clamp(ceil_log2(job->total_rows / PART_ROWS + 1), LEAST_PART_BITS, MOST_PART_BITS);
	if (!job->dense && !job->keys.empty())
	{
		if (ceil_log2(slots) >= LEAST_PART_BITS + LEAST_SLOT_BITS && slots >> INDEX_SLOTS_A_ROW <= job->total_rows)
		{
			job->slot_bits = ceil_log2(slots);
			job->part_bits = std::clamp(job->slot_bits - PART_SLOT_BITS, LEAST_PART_BITS, job->part_bits);
		}
		lay_out_records();
	}
}

/* A block's rows, as a power of two. */
static RowShape
row_shape(int bytes)
{
	RowShape	shape;

	shape.bytes = bytes;
	while (static_cast<size_t>(bytes) << (shape.block_bits + 1) <= BLOCK_BYTES)
		shape.block_bits++;
	return shape;
}

/* What AggStep needs of a row that is put aside, which may be what one before it needs; how much a worker has at once. */
void
Lowering::lay_out_records()
{
	RecordLayout &records = job->records;
	bool		jumps = false, grouped = false;
	int			npresent = 0, offset;
	std::vector<std::pair<int, int>> noted;	/* register, place: what is written once is noted once, if no AggStep is jumped over */
	const auto	take = [&offset](int width) { offset = aligned(offset, width); return (offset += width) - width; };

	for (const Step &step : job->steps)
	{
		grouped |= step.kind == StepKind::Group;
		if (step.kind == StepKind::AggStep)
			records.order.push_back(step.a);
		jumps |= grouped && (step.kind == StepKind::Label || lanes_leave(step));
	}
	for (AggInfo &agg : job->aggs)
	{
		const bool	null = (agg.arg >= 0 && job->ranges[agg.arg].may_null) || (agg.low >= 0 && job->ranges[agg.low].may_null);

		agg.present = jumps || agg.filter >= 0 || null ? npresent++ : -1;
	}
	records.present_words = (npresent + 63) / 64;
	offset = 8 * (job->null_words + records.present_words);
	/* what is wide first: nothing is lost between */
	for (int width : {8, 4, 1})
	{
		for (size_t k = 0; k < job->keys.size(); k++)
		{
			const Type	type = job->keys[k].type;
			const int	key = type_width(type) == 8 || type == Type::Bool ? 8 : 4;

			if (width == 8)
			{
				records.key_at.push_back(0);
				records.key_width.push_back(key == 8 ? 8 : type_is_float(type) ? NO_SIGN : 4);
			}
			if (key == width)
				records.key_at[k] = take(width);
		}
		noted.clear();
		for (const Step &step : job->steps)
		{
			if (step.kind != StepKind::AggStep)
				continue;

			AggInfo    &agg = job->aggs[step.a];

			for (const auto &[reg, at] : {std::pair{agg.arg, &agg.record_at}, std::pair{agg.low, &agg.record_low_at}})
			{
				if (reg < 0 || agg.kind == AggKind::Count || (job->regs[reg].kind == RegKind::Constant && !job->regs[reg].late))
				{
					*at = -1;
					continue;
				}
				if ((job->regs[reg].type == Type::Bool ? 1 : type_width(job->regs[reg].type)) != width)
					continue;

				const auto	before = std::find_if(noted.begin(), noted.end(), [reg = reg](const auto &n) { return n.first == reg; });

				agg.notes = true;
				if (before != noted.end() && !jumps)
				{
					*at = before->second;
					agg.notes = agg.low >= 0;
					continue;
				}
				*at = take(width);
				noted.emplace_back(reg, *at);
			}
		}
	}
	records.rows = row_shape(aligned(offset, job->null_words + records.present_words > 0 ? 8 : 4));
	job->group_rows = row_shape(job->row_bytes);
	/* the rows of a full table: 8 MB at most, but for wide ones */
	job->table_bits = std::min(cpu_group_limits.table_bits, job->row_bytes <= 64 ? 18 : job->row_bytes <= 512 ? 15 : 12);
}

CpuProgram::CpuProgram(const Program *program, const ParamValue *params, uint32_t nparams,
					   const ColumnSummary *columns, uint32_t ncols, uint64_t total_rows, const CodeMap *maps, const uint8_t *scalar,
					   const TextPattern *const *patterns, TextKeys *text_keys)
	: program(program), kernels(cpu_kernels()), params(params, params + nparams), maps(maps), patterns(patterns), text_keys(text_keys), total_rows(total_rows),
	  ncolumns_of_table(static_cast<int>(ncols))
{
	Lowering	lowering(this, columns, scalar);

	result_types.resize(program->nresults);
	program_result_types(program, result_types.data());
	aggs.resize(program->naggs);
	keys.resize(program->nkeys);
	lowering.analyze();
	lowering.make_steps();
	lowering.give_slots();
	if (program->grouped)
		lowering.lay_out_groups();
}

std::unique_ptr<CpuJob>
CpuJob::create(const Program *program, const ParamValue *params, uint32_t nparams,
			   const ColumnSummary *columns, uint32_t ncols, uint64_t total_rows, const CodeMap *maps,
			   const TextPattern *const *patterns, TextKeys *text_keys)
{
	return std::make_unique<CpuProgram>(program, params, nparams, columns, ncols, total_rows, maps, nullptr, patterns, text_keys);
}

}  // namespace gpuvm
