/* vm_reference_groups.cc: groups and their aggregates. See vm_reference_machine.h. */
#include "vm_reference_machine.h"

namespace gpuvm {
namespace reference {

double
exact_sum(const std::vector<double> &inputs)
{
	std::vector<double> partials;

	for (double x : inputs)
	{
		size_t		kept = 0;

		for (double y : partials)
		{
			if (std::fabs(x) < std::fabs(y))
				std::swap(x, y);
			volatile double hi = x + y;
			volatile double back = hi - x;
			volatile double lo = y - back;

			if (lo != 0)
				partials[kept++] = lo;
			x = hi;
		}
		partials.resize(kept);
		partials.push_back(x);
	}

	double		hi = 0;
	size_t		n = partials.size();

	if (n == 0)
		return 0;
	hi = partials[--n];

	double		lo = 0;

	while (n > 0)
	{
		const double x = hi, y = partials[--n];

		hi = x + y;
		lo = y - (hi - x);
		if (lo != 0)
			break;
	}
	if (n > 0 && ((lo < 0 && partials[n - 1] < 0) || (lo > 0 && partials[n - 1] > 0)))
	{
		const double y = lo * 2, x = hi + y;

		if (y == x - hi)
			hi = x;
	}
	return hi;
}

/* Keys by their bits, NaNs alike. */
static std::string
key_text(const std::vector<Value> &keys)
{
	std::string text;

	for (const Value &v : keys)
	{
		char		buffer[64];

		snprintf(buffer, sizeof(buffer), "%d/%lld/%s%.17g;", v.null, static_cast<long long>(v.i),
				 v.d != v.d ? "" : std::signbit(v.d) ? "-" : "+", v.d != v.d ? NAN : std::fabs(v.d));
		text += buffer;
	}
	return text;
}

Interpreter::Machine::Group &
Interpreter::Machine::group_of(const std::vector<Value> &keys)
{
	Group	   &g = groups[key_text(keys)];

	if (g.counts.empty() && g.inputs.empty())
	{
		g.keys = keys;
		g.counts.resize(program->naggs);
		g.inputs.resize(program->naggs);
	}
	return g;
}

void
Interpreter::Machine::step(const Op &op, const std::vector<Value> &r, Group *group) const
{
	if (op.p3 >= 0 && (r[op.p3].null || !r[op.p3].i))
		return;
	if (agg_is_wide(static_cast<AggFn>(op.p5)))
	{
		Value		whole = r[op.p2];

		whole.x = wide_value(r[op.p2].i, r[op.p4].i);
		if (!r[op.p2].null && !r[op.p4].null)
			group->inputs[op.p1].push_back(whole);
		return;
	}
	if (op.p2 < 0 || !r[op.p2].null)
		group->counts[op.p1]++;
	if (op.p2 >= 0 && !r[op.p2].null)
		group->inputs[op.p1].push_back(r[op.p2]);
}

Value
Interpreter::Machine::aggregate(const Op &op, const Group &g)
{
	const std::vector<Value> &in = g.inputs[op.p1];
	const AggFn fn = static_cast<AggFn>(op.p5);

	if (fn == AggFn::CountStar || fn == AggFn::Count)
		return from_register(g.counts[op.p1]);
	if (in.empty())
		return Value{};

	Value		v = in[0];

	if (agg_is_wide(fn))
	{
		for (const Value &x : in)
			if (fn == AggFn::MinWide ? x.x < v.x : x.x > v.x)
				v = x;
		return v;
	}
	if (fn == AggFn::BoolAnd || fn == AggFn::BoolOr)
	{
		for (const Value &x : in)
			if ((x.i != 0) == (fn == AggFn::BoolOr))
				v = x;
		return v;
	}
	if (fn == AggFn::Min || fn == AggFn::Max)
	{
		bool		pos = false, neg = false;

		for (const Value &x : in)
		{
			if (compare_values(fn == AggFn::Min ? Opcode::Lt : Opcode::Gt, op.type, x, v))
				v = x;
			pos = pos || (x.d == 0 && !std::signbit(x.d));
			neg = neg || is_neg_zero(x.d);
		}
		if (type_is_float(op.type) && v.d == 0 && pos && neg)
			outcome.errors |= ERR_AMBIGUOUS_ZERO;
		return v;
	}
	if (fn == AggFn::AnyValue)
	{
		/* where rows differ: the greatest integer, any bit of a float */
		for (const Value &x : in)
		{
			uint64_t	a = 0, b = 0;
			float		f = static_cast<float>(v.d), g = static_cast<float>(x.d);

			if (!type_is_float(op.type))
			{
				v.i = std::max(v.i, x.i);
				continue;
			}
			if (op.type == Type::F32)
			{
				memcpy(&a, &f, sizeof(f));
				memcpy(&b, &g, sizeof(g));
				a |= b;
				memcpy(&f, &a, sizeof(f));
				v.d = f;
				continue;
			}
			memcpy(&a, &v.d, sizeof(v.d));
			memcpy(&b, &x.d, sizeof(x.d));
			a |= b;
			memcpy(&v.d, &a, sizeof(v.d));
		}
		return v;
	}
	if (fn == AggFn::BitAnd || fn == AggFn::BitOr || fn == AggFn::BitXor)
	{
		for (size_t i = 1; i < in.size(); i++)
			v.i = fn == AggFn::BitAnd ? v.i & in[i].i : fn == AggFn::BitOr ? v.i | in[i].i : v.i ^ in[i].i;
		return v;
	}
	if (type_is_int(op.type))
	{
		Value		sum;

		sum.null = false;
		for (const Value &x : in)
			sum.x += x.i;
		return sum;
	}
	return float_sum(op.type, in);
}

Value
Interpreter::Machine::float_sum(Type type, const std::vector<Value> &in)
{
	std::vector<double> finite;
	bool		nan = false, pos = false, neg = false, other = false;
	int			exponent = -2000;

	for (const Value &x : in)
	{
		nan = nan || x.d != x.d;
		pos = pos || x.d == INFINITY;
		neg = neg || x.d == -INFINITY;
		other = other || !is_neg_zero(x.d);
		if (!std::isfinite(x.d))
			continue;
		finite.push_back(x.d);
		/* |x| < 2^e; subnormals and zero count as 2^-1022 */
		exponent = std::max(exponent, x.d == 0 ? -1022 : std::max(std::ilogb(x.d) + 1, -1022));
	}

	int			log2n = 0;

	while ((size_t(1) << log2n) < in.size())
		log2n++;
	if (!finite.empty() && (type == Type::F32 ? exponent + log2n > 127 : 2 * (exponent + log2n + 1) > 1023))
		outcome.errors |= ERR_SUM_OVERFLOW;
	if (outcome.errors)
		return Value{};
	if (nan || (pos && neg))
		return from_register(static_cast<double>(NAN));
	if (pos || neg)
		return from_register(static_cast<double>(pos ? INFINITY : -INFINITY));
	if (!other)
		return from_register(-0.0);

	const double sum = exact_sum(finite);

	return from_register(sum == 0 ? 0.0 : sum);
}

void
Interpreter::Machine::finish_groups()
{
	const int64_t *sources = nullptr;
	std::vector<const Op *> steps(program->naggs);

	if (program->nkeys == 0)
		group_of({});
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::AggOpen)
			sources = program->aux() + op.p3;
		if (op.opcode == Opcode::AggStep)
			steps[op.p1] = &op;
	}
	for (int k = 0; k < program->nkeys; k++)
	{
		bool		pos = false, neg = false;

		for (auto &[text, g] : groups)
		{
			/* integers have d = 0 */
			const Type	type = key_type(k);

			if (!type_is_float(type) || g.keys[k].null)
				continue;
			pos = pos || (g.keys[k].d == 0 && !std::signbit(g.keys[k].d));
			neg = neg || is_neg_zero(g.keys[k].d);
		}
		if (pos && neg)
			outcome.errors |= ERR_AMBIGUOUS_ZERO;
	}
	for (auto &[text, g] : groups)
	{
		std::vector<Value> aggs, row;

		for (const Op *op : steps)
			aggs.push_back(aggregate(*op, g));
		for (int c = 0; c < program->nresults; c++)
			row.push_back(sources[c] >= RESULT_FROM_AGG ? aggs[sources[c] - RESULT_FROM_AGG] : g.keys[sources[c]]);
		outcome.rows.push_back(row);
	}
}

Type
Interpreter::Machine::key_type(int k) const
{
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode != Opcode::Group)
			continue;

		return reg_type(program->aux()[op.p2 + k], i);
	}
	return Type::Bool;
}

}  // namespace reference
}  // namespace gpuvm
