/*
 * lower_linear.cc: comparisons of sums and differences across both rows of a pair;
 * see lower_internal.h. Where none of it can overflow, what comes from the outer row goes to
 * one side and what comes from the inner row to the other: a.x - b.x < 5 is a.x - 5 < b.x.
 * The outer side is then computed once a tile, the inner side once for 32 inner rows, and the loop has nothing but a comparison.
 */
#include "lower_internal.h"

#include <climits>

namespace gpuvm {
namespace cuda {

/* form += times * r. False: r is no such sum, or its parts cannot be told apart. */
bool
Lowering::add_linear(int r, int64_t times, Type type, LinearForm *form) const
{
	const Register &x = reg[r];

	if (x.type != type || times > INT32_MAX || times < INT32_MIN)
		return false;
	if (x.is_const)
	{
		form->constant += static_cast<int128>(times) * x.value;
		return !x.null_const;
	}
	if (x.uniform >= 0 || !in_loop[r])
	{
		for (int i = 0; i < form->n; i++)
			if (form->terms[i].reg == r || (x.uniform >= 0 && reg[form->terms[i].reg].uniform == x.uniform))
			{
				form->terms[i].times += times;
				return true;
			}
		if (form->n == LinearForm::MAX_TERMS)
			return false;
		form->terms[form->n++] = {r, times};
		return true;
	}

	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.p1 != r || form_of(op.opcode) == OpForm::COMPARE || may_err(i))
			continue;
		if (op.opcode == Opcode::Add || op.opcode == Opcode::Sub)
			return add_linear(op.p2, times, type, form) && add_linear(op.p3, op.opcode == Opcode::Add ? times : -times, type, form);
		if (op.opcode == Opcode::Neg)
			return add_linear(op.p2, -times, type, form);
		if (op.opcode == Opcode::Mul && (reg[op.p2].is_const || reg[op.p3].is_const))
		{
			const int	c = reg[op.p2].is_const ? op.p2 : op.p3, v = c == op.p2 ? op.p3 : op.p2;

			return !reg[c].null_const && reg[c].value >= INT32_MIN && reg[c].value <= INT32_MAX && reg[v].type == type &&
				add_linear(v, times * reg[c].value, type, form);
		}
	}
	return false;
}

/* Can neither the sum nor its constant overflow? */
bool
Lowering::fits(const LinearForm &form, Type type, ValueRange *sum) const
{
	const int128 least = type == Type::I32 ? INT32_MIN : INT64_MIN, most = type == Type::I32 ? INT32_MAX : INT64_MAX;
	int128		lo = form.constant, hi = form.constant;

	for (int i = 0; i < form.n; i++)
	{
		const int128 times = form.terms[i].times, a = range[form.terms[i].reg].lo * times, b = range[form.terms[i].reg].hi * times;

		lo += a < b ? a : b;
		hi += a < b ? b : a;
	}
	sum->lo = static_cast<int64_t>(lo);
	sum->hi = static_cast<int64_t>(hi);
	return lo >= least && hi <= most && form.constant >= least && form.constant <= most;
}

/* The comparison as one of an outer sum with an inner one. */
bool
Lowering::divide_comparison(int address)
{
	const Op   &op = program->ops()[address];
	LinearForm	form = {};
	LinearComparison &c = linear_of[address];
	GridPlan   &g = out->grid;
	ValueRange	inner_range = {};
	bool		nullable = false;

	if ((op.type != Type::I32 && op.type != Type::I64) || !add_linear(op.p1, 1, op.type, &form) || !add_linear(op.p2, -1, op.type, &form))
		return false;

	/* outer - inner op 0 is outer op inner. */
	for (int i = 0; i < form.n; i++)
	{
		LinearTerm	t = form.terms[i];

		/* What cancels out may still be null. */
		if (t.times == 0)
			return false;
		if (reg[t.reg].uniform < 0)
			c.outer.terms[c.outer.n++] = t;
		else
		{
			t.times = -t.times;
			c.inner_sum.terms[c.inner_sum.n++] = t;
			nullable |= reg[t.reg].nullable;
		}
	}
	c.outer.constant = form.constant;
	c.opcode = op.opcode;
	if (c.outer.n == 0 || c.inner_sum.n == 0)
		return false;
	if (c.inner_sum.n == 1 && c.inner_sum.terms[0].times == -1)
	{
		/* Both sides negated. */
		c.opcode = op.opcode == Opcode::Lt ? Opcode::Gt : op.opcode == Opcode::Le ? Opcode::Ge
			: op.opcode == Opcode::Gt ? Opcode::Lt : op.opcode == Opcode::Ge ? Opcode::Le : op.opcode;
		for (int i = 0; i < c.outer.n; i++)
			c.outer.terms[i].times = -c.outer.terms[i].times;
		c.outer.constant = -c.outer.constant;
		c.inner_sum.terms[0].times = 1;
	}
	if (!fits(c.outer, op.type, &c.outer_range) || !fits(c.inner_sum, op.type, &inner_range))
		return false;
	c.inner = c.inner_sum.terms[0].reg;
	if (c.inner_sum.n == 1 && c.inner_sum.terms[0].times == 1)
		c.inner_sum.n = 0;
	else
	{
		if (g.nuniforms + nsums == MAX_UNIFORMS)
			return false;
		c.inner = new_register(op.type, nullable);
		range[c.inner] = inner_range;
		reg[c.inner].uniform = g.nuniforms + nsums;
		g.uniforms[g.nuniforms + nsums++] = UniformPlan{OPERAND_NONE, 0, OPERAND_NONE, OPERAND_NONE, op.type, nullable};
	}
	return true;
}

/* After plan_hoists(): comparisons of the loop, and what only they needed. */
void
Lowering::plan_linear()
{
	const Op   *ops = program->ops();

	for (int i = program->converge - 1; i > program->parallel; i--)
	{
		const Op   &op = ops[i];
		const OpForm form = form_of(op.opcode);

		if (hoisted[i])
			continue;
		if (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES) && op.p4 == VERDICT_DIES && (in_loop[op.p1] || in_loop[op.p2]))
		{
			linear_of[i].there = divide_comparison(i);
			for (int t = 0; linear_of[i].there && t < linear_of[i].outer.n; t++)
				reg[linear_of[i].outer.terms[t].reg].last_use = INT_MAX;
		}
		else if ((form == OpForm::BINARY || form == OpForm::UNARY) && !may_err(i))
		{
			dropped[i] = true;
			for (int j = i + 1; j < program->converge; j++)
				if (!dropped[j] && !linear_of[j].there)
					each_source(ops[j], [&](int r) { dropped[i] &= r != op.p1; });
		}
	}
}

int
Lowering::new_register(Type type, bool nullable)
{
	const int	r = program->nregs + nnew;

	if (r >= PROGRAM_MAX_REGS)
	{
		full = true;
		return PROGRAM_MAX_REGS - 1;
	}
	nnew++;
	reg[r] = Register{};
	reg[r].type = type;
	reg[r].nullable = nullable;
	reg[r].column = reg[r].uniform = -1;
	reg[r].last_use = INT_MAX;
	return r;
}

int
Lowering::new_constant(Type type, int64_t value)
{
	const int	r = new_register(type, false);

	reg[r].is_const = true;
	reg[r].value = value;
	return r;
}

int
Lowering::emit_value(Opcode opcode, Type type, int a, int b)
{
	const int	r = new_register(type, reg[a].nullable || reg[b].nullable);
	DeviceOp   *d = add(generic_code(opcode, type));

	operand_a(d, a);
	operand_b(d, b);
	place_result(d, Op{opcode, type, 0, r, a, b, 0}, r, false, 0);
	return r;
}

/* The outer sides, as the last of what is hoisted. */
void
Lowering::emit_outer_sums()
{
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		LinearComparison &c = linear_of[i];
		const Type	type = program->ops()[i].type;
		int64_t		left = static_cast<int64_t>(c.outer.constant);
		int			sum = -1;

		if (!c.there)
			continue;
		for (int t = 0; t < c.outer.n; t++)
		{
			int64_t		times = c.outer.terms[t].times;
			int			x = c.outer.terms[t].reg;

			if (times != 1 && times != -1)
			{
				x = emit_value(Opcode::Mul, type, x, new_constant(type, times));
				times = 1;
			}
			if (sum >= 0)
				sum = emit_value(times > 0 ? Opcode::Add : Opcode::Sub, type, sum, x);
			else if (times > 0)
				sum = x;
			else
			{
				sum = emit_value(Opcode::Sub, type, new_constant(type, left), x);
				left = 0;
			}
		}
		if (left != 0)
			sum = emit_value(Opcode::Add, type, sum, new_constant(type, left));
		c.sum = sum;
		if (sum >= program->nregs)
			range[sum] = c.outer_range;
	}
}

/* The inner sides, as the first of the loop; pair_op() knows where values are. */
void
Lowering::emit_inner_sums()
{
	for (int i = program->parallel + 1; i < program->converge; i++)
		for (int t = 0; linear_of[i].there && t < linear_of[i].inner_sum.n; t++)
		{
			const LinearTerm &term = linear_of[i].inner_sum.terms[t];
			const uint16_t sum = static_cast<uint16_t>(reg[linear_of[i].inner].uniform);
			DeviceOp   *d = add(CODE_INNER_SUM);

			d->dst = sum;
			d->a = static_cast<uint16_t>(reg[term.reg].uniform);
			d->b = t > 0 ? sum : OPERAND_NONE;
			d->imm_a = term.times;
		}
}

}  // namespace cuda
}  // namespace gpuvm
