/*
 * lower_narrow.cc: see lower_narrow.h.
 *
 * A register of 64 bits may have a twin of 32, or be replaced by it. It can have one if all of its values
 * fit, and its operation computes them from such values without an overflow on the way. Two passes: forwards, which
 * registers can; backwards, which of the two is wanted, by those who read it. Who needs the 64 bits (keys, results,
 * extremes, wider arithmetic) gets the register itself, by a Cast if the twin is there anyway.
 */
#include "lower_narrow.h"

#include <cstring>

#include "lower_internal.h"

namespace gpuvm {
namespace cuda {

namespace {

class Narrowing
{
public:
	Narrowing(const LowerInput &in, const ValueRange *range, const uint32_t *errors)
		: in_(in), program_(in.program), range_(range), errors_(errors), twin_(program_->nregs, -1), can_(program_->nregs, false),
		  is_constant_(program_->nregs, false), reads_(program_->nregs, 0), is_target_(program_->nops + 1u, false), want_narrow_(program_->nregs, false), want_wide_(program_->nregs, false), narrow_op_(program_->nops, false), type_(program_->nregs, Type::None),
		  address_(program_->nops + 1u, 0), nregs_(program_->nregs)
	{
	}

	const Program *run(std::vector<uint64_t> *memory);

private:
	static bool fits(const ValueRange &v) { return v.lo >= INT32_MIN && v.hi <= INT32_MAX; }
	static OpForm form(const Op &op) { return form_of(op.opcode); }
	static bool
	moves_to_target(const Op &op)
	{
		return form(op) == OpForm::JUMP || form(op) == OpForm::BRANCH || (form(op) == OpForm::COMPARE && !(op.p5 & COMPARE_STORES));
	}
	static bool is_sum(const Op &op) { return op.opcode == Opcode::AggStep && op.p5 == static_cast<uint8_t>(AggFn::Sum); }

	bool		can_be_narrow(const Op &op, int address) const;
	void		find_narrow();
	void		find_targets();
	bool		reads_narrow(const Op &op) const;
	bool		is_summed_product(int address) const;
	bool		compares_column(const Op &op) const;
	void		find_wanted();
	void		want(int r, bool narrow);
	int			narrow_register(int r);
	void		rewrite(const Op &op, int address);
	void		emit_wide(const Op &op);

	/* Operands of type `op.type`. */
	template <typename F>
	static void
	each_operand(const Op &op, F f)
	{
		switch (form(op))
		{
			case OpForm::UNARY: case OpForm::COPY: case OpForm::NULLTEST:
				f(op.p2);
				break;
			case OpForm::BINARY: case OpForm::SELECT: case OpForm::PICK: case OpForm::DISTINCT:
				f(op.p2);
				f(op.p3);
				break;
			case OpForm::COMPARE:
				f(op.p1);
				f(op.p2);
				break;
			default:
				break;
		}
	}

	const LowerInput &in_;
	const Program *program_;
	const ValueRange *range_;
	const uint32_t *errors_;
	std::vector<int> twin_;
	std::vector<bool> can_, is_constant_;	/* by register */
	std::vector<int> reads_;
	std::vector<bool> is_target_;	/* by address */
	std::vector<bool> want_narrow_, want_wide_;	/* by register */
	std::vector<bool> narrow_op_;	/* by address: reads (and writes) twins */
	std::vector<Type> type_;		/* of the registers, as they are written */
	std::vector<int> address_;		/* where an operation has gone */
	std::vector<Op> out_;
	int			nregs_;
};

bool
Narrowing::can_be_narrow(const Op &op, int address) const
{
	bool		all = true;

	switch (op.opcode)
	{
		case Opcode::Column:
			{
				const ColumnSummary &summary = in_.columns[op.p2].summary;

				return op.type == Type::I64 && summary.max_width <= 4 && fits(range_[op.p1]);
			}
		case Opcode::Integer:
			return op.type == Type::I64;
		case Opcode::Int64:
			return op.p4 >= INT32_MIN && op.p4 <= INT32_MAX;
		case Opcode::Variable:
			return op.type == Type::I64 && (in_.params[op.p2].is_null || (in_.params[op.p2].value >= INT32_MIN && in_.params[op.p2].value <= INT32_MAX));
		case Opcode::Cast:
			return op.type == Type::I64 && op.p5 == static_cast<uint8_t>(Type::I32);
		case Opcode::Add: case Opcode::Sub: case Opcode::Mul: case Opcode::Neg: case Opcode::Abs:
		case Opcode::Copy: case Opcode::Select: case Opcode::Coalesce: case Opcode::Greatest: case Opcode::Least: case Opcode::NullIf:
			if (op.type != Type::I64 || errors_[address] != 0 || !fits(range_[op.p1]))
				return false;
			each_operand(op, [&](int r) { all &= can_[r]; });
			return all;
		default:
			return false;
	}
}

void
Narrowing::find_narrow()
{
	for (int i = program_->parallel + 1; i < program_->converge; i++)
	{
		const Op   &op = program_->ops()[i];
		const OpForm f = form(op);

		if (f == OpForm::COLUMN || f == OpForm::IMM32 || f == OpForm::IMM64 || f == OpForm::VARIABLE || f == OpForm::CAST || f == OpForm::UNARY ||
			f == OpForm::BINARY || f == OpForm::COPY || f == OpForm::SELECT || f == OpForm::PICK)
		{
			type_[op.p1] = op.type;
			can_[op.p1] = can_be_narrow(op, i);
			/* also if its twin is one: it has no place */
			is_constant_[op.p1] = f == OpForm::IMM32 || f == OpForm::IMM64 || f == OpForm::VARIABLE || (f == OpForm::CAST && is_constant_[op.p2]);
			/* A Cast's twin is its operand. */
			if (can_[op.p1] && op.opcode == Opcode::Cast)
				twin_[op.p1] = op.p2;
		}
	}
}

void
Narrowing::find_targets()
{
	for (int i = program_->parallel + 1; i < program_->converge; i++)
	{
		const Op   &op = program_->ops()[i];

		if (moves_to_target(op))
			is_target_[op.p3] = true;
		each_read(program_, op, [&](int r) { reads_[r]++; });
	}
}

/* A product of two registers that have twins, summed at once and read by nobody else: it needs no register (MUL_OF_NARROW). */
bool
Narrowing::is_summed_product(int address) const
{
	const Op   &mul = program_->ops()[address], &sum = program_->ops()[address + 1];

	return program_->nkeys > 0 && mul.opcode == Opcode::Mul && mul.type == Type::I64 && errors_[address] == 0 && !range_[mul.p1].may_null &&
		can_[mul.p2] && can_[mul.p3] && !is_constant_[mul.p2] && !is_constant_[mul.p3] && is_sum(sum) && sum.p2 == mul.p1 && sum.p3 < 0 &&
		reads_[mul.p1] == 1 && !is_target_[address + 1];
}

/* A column and a constant: an interval of codes, whatever the type. */
bool
Narrowing::compares_column(const Op &op) const
{
	bool		column = false, constant = false;

	each_operand(op, [&](int r) {
		for (int i = program_->parallel + 1; i < program_->converge; i++)
		{
			const Op   &maker = program_->ops()[i];

			if (maker.p1 != r)
				continue;
			column |= maker.opcode == Opcode::Column;
			constant |= maker.opcode == Opcode::Integer || maker.opcode == Opcode::Int64 || maker.opcode == Opcode::Variable;
		}
	});
	return column && constant;
}

/* Of operations that write no register that may have a twin: can they read twins? */
bool
Narrowing::reads_narrow(const Op &op) const
{
	bool		all = true;

	if (op.type != Type::I64)
		return false;
	if (is_sum(op))
		return can_[op.p2];
	if (form(op) != OpForm::NULLTEST && form(op) != OpForm::DISTINCT && form(op) != OpForm::COMPARE)
		return false;
	each_operand(op, [&](int r) { all &= can_[r]; });
	return all && !(form(op) == OpForm::COMPARE && compares_column(op));
}

void
Narrowing::want(int r, bool narrow)
{
	if (narrow)
		want_narrow_[r] = true;
	else
		want_wide_[r] = true;
}

/* From the last to the first: whoever reads a register stands behind it. */
void
Narrowing::find_wanted()
{
	const Op   *ops = program_->ops();

	for (int i = program_->converge - 1; i > program_->parallel; i--)
	{
		const Op   &op = ops[i];
		const OpForm f = form(op);

		switch (f)
		{
			case OpForm::UNARY: case OpForm::BINARY: case OpForm::COPY: case OpForm::SELECT: case OpForm::PICK:
				narrow_op_[i] = (can_[op.p1] && want_narrow_[op.p1]) || (!can_[op.p1] && is_summed_product(i));
				each_operand(op, [&](int r) { want(r, narrow_op_[i]); });
				if (f == OpForm::SELECT)
					want(static_cast<int>(op.p4), false);
				break;
			case OpForm::NULLTEST: case OpForm::DISTINCT: case OpForm::COMPARE:
				narrow_op_[i] = reads_narrow(op);
				each_operand(op, [&](int r) { want(r, narrow_op_[i]); });
				break;
			case OpForm::AGGSTEP:
				narrow_op_[i] = reads_narrow(op);
				if (op.p2 >= 0 && !counts(op))
					want(op.p2, narrow_op_[i]);
				if (op.p3 >= 0)
					want(op.p3, false);
				break;
			default:
				each_read(program_, op, [&](int r) { want(r, false); });
				break;
		}
	}
	/* A count needs to know of nulls only: either will do. */
	for (int i = program_->parallel + 1; i < program_->converge; i++)
		if (counts(ops[i]))
		{
			narrow_op_[i] = want_narrow_[ops[i].p2];
			if (!narrow_op_[i])
				want(ops[i].p2, false);
		}
}

int
Narrowing::narrow_register(int r)
{
	if (twin_[r] < 0)
		twin_[r] = nregs_++;
	return twin_[r];
}

void
Narrowing::emit_wide(const Op &op)
{
	if (want_wide_[op.p1])
		out_.push_back(op);
}

void
Narrowing::rewrite(const Op &op, int address)
{
	Op			narrow = op;

	switch (op.opcode)
	{
		case Opcode::Column:
		case Opcode::Integer:
		case Opcode::Int64:
		case Opcode::Variable:
			if (op.type == Type::I64 && want_narrow_[op.p1])
			{
				narrow.type = Type::I32;
				narrow.p1 = narrow_register(op.p1);
				if (op.opcode == Opcode::Int64)
					narrow.p2 = static_cast<int32_t>(op.p4);
				if (op.opcode == Opcode::Variable && !in_.params[op.p2].is_null)
					narrow.p2 = static_cast<int32_t>(in_.params[op.p2].value);
				if (op.opcode != Opcode::Column)
				{
					narrow.opcode = op.opcode == Opcode::Variable && in_.params[op.p2].is_null ? Opcode::Null : Opcode::Integer;
					narrow.p4 = 0;
				}
				out_.push_back(narrow);
				emit_wide(op);
				return;
			}
			break;
		case Opcode::Cast:
			if (want_narrow_[op.p1] && twin_[op.p1] >= 0)
			{
				emit_wide(op);
				return;
			}
			break;
		default:
			break;
	}
	if (!narrow_op_[address])
	{
		out_.push_back(op);
		return;
	}
	if (!can_[op.p1] && op.opcode == Opcode::Mul)
	{
		narrow.p2 = narrow_register(op.p2);
		narrow.p3 = narrow_register(op.p3);
		narrow.p5 = MUL_OF_NARROW;
		out_.push_back(narrow);
		return;
	}
	narrow.type = Type::I32;
	if (op.opcode == Opcode::AggStep)
		narrow.p2 = narrow_register(op.p2);
	else if (form(op) == OpForm::COMPARE)
	{
		narrow.p1 = narrow_register(op.p1);
		narrow.p2 = narrow_register(op.p2);
	}
	else
	{
		narrow.p2 = narrow_register(op.p2);
		if (form(op) == OpForm::BINARY || form(op) == OpForm::SELECT || form(op) == OpForm::PICK || form(op) == OpForm::DISTINCT)
			narrow.p3 = narrow_register(op.p3);
		if (form(op) != OpForm::NULLTEST && form(op) != OpForm::DISTINCT)
			narrow.p1 = narrow_register(op.p1);
	}
	out_.push_back(narrow);
	if (narrow.p1 != op.p1 && form(op) != OpForm::COMPARE && want_wide_[op.p1])
		out_.push_back(Op{Opcode::Cast, Type::I64, static_cast<uint8_t>(Type::I32), op.p1, narrow.p1, 0, 0});
}

const Program *
Narrowing::run(std::vector<uint64_t> *memory)
{
	const Op   *ops = program_->ops();
	bool		any = false;

	find_narrow();
	find_targets();
	find_wanted();
	for (int r = 0; r < program_->nregs; r++)
		any |= want_narrow_[r];
	if (!any)
		return program_;
	for (int i = 0; i < program_->nops; i++)
	{
		address_[i] = static_cast<int>(out_.size());
		if (i <= program_->parallel || i >= program_->converge)
			out_.push_back(ops[i]);
		else
			rewrite(ops[i], i);
	}
	if (out_.size() > PROGRAM_MAX_OPS || nregs_ > PROGRAM_MAX_REGS)
		return program_;
	for (Op &op : out_)
		if (op.opcode == Opcode::Parallel || moves_to_target(op))
			op.p3 = address_[op.p3];

	const size_t ops_bytes = out_.size() * sizeof(Op), aux_bytes = program_->naux * sizeof(int64_t);
	const size_t bytes = sizeof(Program) + ops_bytes + aux_bytes + program_->names_len;

	memory->assign(bytes / 8 + 1, 0);

	Program    *to = reinterpret_cast<Program *>(memory->data());
	char	   *at = reinterpret_cast<char *>(to + 1);

	*to = *program_;
	to->size = static_cast<uint32_t>(bytes);
	to->nops = static_cast<uint16_t>(out_.size());
	to->nregs = static_cast<uint16_t>(nregs_);
	to->parallel = static_cast<uint16_t>(address_[program_->parallel]);
	to->converge = static_cast<uint16_t>(address_[program_->converge]);
	memcpy(at, out_.data(), ops_bytes);
	memcpy(at + ops_bytes, program_->aux(), aux_bytes);
	memcpy(at + ops_bytes + aux_bytes, program_->names(), program_->names_len);
	return to;
}

}  // namespace

const Program *
narrow_program(const LowerInput &input, const ValueRange *range, const uint32_t *errors, std::vector<uint64_t> *memory)
{
	/* A lowered program goes on using the source's long lists. */
	if (input.options.grid || input.program->naux > MAX_AUX || input.program->ncursors != 1)
		return input.program;
	return Narrowing(input, range, errors).run(memory);
}

}  // namespace cuda
}  // namespace gpuvm
