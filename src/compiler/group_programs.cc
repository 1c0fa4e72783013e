/* group_programs.cc: programs that aggregate: arguments, keys, results, and which of equal values a group shows. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
}

#include "compiler/emit.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* Of what type is the VM aggregate's argument? */
static Type
aggregate_type(const CompileInput *input, const VmAggregate &agg)
{
	if (agg.fn == AggFn::CountStar)
		return Type::None;
	if (agg.input == AggInput::Position)
		return Type::I64;
	if (agg.input == AggInput::Square || is_of_halves(agg.input) || is_of_quotient(agg.input) ||
		is_of_interval(agg.input) || is_small_limb(agg.input) || agg.input == AggInput::Bits)
		return Type::I64;
	if (is_double(agg.input))
		return Type::F64;
	if (agg.input == AggInput::Scale || agg.input == AggInput::Rank)
		return Type::I32;
	if (agg_is_text(agg.fn) || (agg.fn == AggFn::AnyValue && variable_var(input, agg.arg) != nullptr))
		return Type::I64;
	return vm_type(exprType(reinterpret_cast<const Node *>(agg.arg)));
}

/* The argument of a statistic of floats. */
static int
double_argument(Compiler *c, const VmAggregate &agg)
{
	const bool	product = agg.input == AggInput::DoubleProduct || agg.input == AggInput::DoubleProductRest;
	const bool	lost = agg.input == AggInput::DoubleSquareRest || agg.input == AggInput::DoubleProductRest;
	int			reg = convert(c, compile_expr(c, agg.arg), Type::F64);
	int			other = agg.other == nullptr || reg < 0 ? reg : compile_expr(c, agg.other);

	if (other < 0)
		return -1;
	if (product)
		return value(c, lost ? Opcode::MulRest : Opcode::Mul, Type::F64, reg, other);
	if (agg.other != nullptr)
	{
		int			null = null_value(c, Type::F64);
		int			there = null < 0 ? -1 : value(c, Opcode::NotNull, c->b->reg_type[other], other);

		reg = there < 0 ? -1 : value(c, Opcode::Select, Type::F64, reg, null, there);
	}
	return reg < 0 || agg.input == AggInput::Double ? reg : value(c, lost ? Opcode::MulRest : Opcode::Mul, Type::F64, reg, reg);
}

/* The i-th product (limb_pair) of parts of 31 bits, of which the uppermost has the sign. */
static int
limb_product(Compiler *c, const WideValue &halves, int i)
{
	const int64_t mask = (int64_t{1} << WIDE_LIMB_BITS) - 1;
	int			limbs[2];

	limb_pair(i, &limbs[0], &limbs[1]);
	for (int &limb : limbs)
	{
		const int	half = limb < WIDE_LIMBS / 2 ? halves.low : halves.high;

		limb = limb % 2 == 0 ? with_constant64(c, Opcode::BitAnd, half, mask) : with_constant64(c, Opcode::ShiftRight, half, WIDE_LIMB_BITS);
	}
	return binary64(c, Opcode::Mul, limbs[0], limbs[1]);
}

int
small_limb_product(Compiler *c, int reg, int i)
{
	const int	low = i == 2 ? -1 : with_constant64(c, Opcode::BitAnd, reg, (int64_t{1} << WIDE_LIMB_BITS) - 1);
	const int	high = i == 0 ? -1 : with_constant64(c, Opcode::ShiftRight, reg, WIDE_LIMB_BITS);

	return binary64(c, Opcode::Mul, i == 2 ? high : low, i == 0 ? low : high);
}

/* The number, or the high half that says what it is instead. */
static int
special_or_narrow(Compiler *c, const WideValue &halves, int special, int high)
{
	int			reg = narrow_wide(c, halves);
	int			is = special == NO_SPECIALS || reg < 0 ? -1 : with_constant64(c, Opcode::Ne, special, 0);

	return special == NO_SPECIALS || is < 0 ? reg : value(c, Opcode::Select, Type::I64, high, reg, is, 0, numeric_info(halves.scale));
}

/* Is a register that is defined where `defined` is true (NULL: everywhere) so on the lanes that an aggregate with the FILTER takes? */
static bool
covers(const Expr *defined, const Expr *filter)
{
	return defined == nullptr || equal(defined, filter);
}

/* May the next part of an aggregate use the registers that are made here? Those of the aggregate's own branch it may, as it has the same FILTER. */
static bool
can_share(const Compiler *c)
{
	return c->depth == (c->guard != nullptr ? 1 : 0);
}

static ScaleUse
argument_use(const VmAggregate &agg)
{
	return agg.input == AggInput::High && agg_is_wide(agg.fn) ? ScaleUse::One : ScaleUse::Each;
}

static bool
has_halves(const Compiler *c, const VmAggregate &agg)
{
	return c->argument != nullptr && c->argument_use == argument_use(agg) && covers(c->argument_filter, agg.filter) && equal(c->argument, agg.arg);
}

static bool
has_quotient(const Compiler *c, const VmAggregate &agg)
{
	return c->quotient != nullptr && covers(c->quotient_filter, agg.filter) && equal(c->quotient, agg.arg);
}

/* Is the argument there, so that all that is left cannot raise, whatever lanes hold that are not in the FILTER? */
static bool
has_argument(const Compiler *c, const VmAggregate &agg)
{
	const bool	plain = agg.input == AggInput::Low || agg.input == AggInput::High || agg.input == AggInput::Special;

	return is_of_quotient(agg.input) ? has_quotient(c, agg) : plain && !agg_is_wide(agg.fn) && has_halves(c, agg);
}

/*
 * The argument in halves: what a sum shows is the greatest of its scales, which is an aggregate of its own. The parts of one sum
 * follow each other, and share the argument: what has branches within is not found again otherwise.
 */
static bool
compile_argument(Compiler *c, const VmAggregate &agg, WideValue *halves)
{
	bool		done;

	if (has_halves(c, agg))
	{
		*halves = c->argument_halves;
		return true;
	}
	c->scale_use = argument_use(agg);
	done = compile_wide(c, agg.arg, halves);
	c->scale_use = ScaleUse::One;
	if (done && can_share(c))
	{
		c->argument = agg.arg;
		c->argument_filter = c->guard;
		c->argument_use = argument_use(agg);
		c->argument_halves = *halves;
	}
	return done;
}

/* With the display scale, or 63 less it, behind the number: of what is none it is 0. */
static bool
pack_shown(Compiler *c, const WideValue &halves, bool up, WideValue *out)
{
	WideValue	number = halves;
	int			special = take_special(c, &number);
	int			shown = halves.shown >= 0 ? convert(c, halves.shown, Type::I64) : int_value(c, Type::I64, halves.scale);

	if (special == -1 || shown < 0)
		return false;
	shown = with_constant64(c, Opcode::Bound, shown, SHOWN_MASK + 1);
	if (!up)
		shown = binary64(c, Opcode::Sub, int_value(c, Type::I64, SHOWN_MASK), shown);
	number.high = with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::Bound, number.high, WIDE_HIGH_LIMIT >> SHOWN_BITS), SHOWN_MASK + 1);
	number.high = binary64(c, Opcode::BitOr, number.high, with_constant64(c, Opcode::ShiftRight, number.low, WIDE_LOW_BITS - SHOWN_BITS));
	number.low = with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::BitAnd, number.low, WIDE_LOW_MASK >> SHOWN_BITS), SHOWN_MASK + 1);
	number.low = binary64(c, Opcode::BitOr, number.low, shown);
	*out = number;
	/* what is larger, and what is shown in different ways, is PostgreSQL's */
	c->soft_errors = true;
	return number.high >= 0 && number.low >= 0 && put_special(c, out, special);
}

static bool
shown_argument(Compiler *c, const VmAggregate &agg, WideValue *out)
{
	WideValue	halves;

	return compile_argument(c, agg, &halves) && pack_shown(c, halves, agg.input == AggInput::ShownUp, out);
}

/* The display scale: 0 of what is no number, and so the same of all of a group. */
static int
number_scale(Compiler *c, const WideValue &halves, int special)
{
	int			scale = halves.shown >= 0 ? halves.shown : int_value(c, Type::I32, halves.scale);
	int			is = special == NO_SPECIALS ? -1 : with_constant64(c, Opcode::Ne, special, 0);

	return special == NO_SPECIALS || is < 0 || scale < 0 ? scale : value(c, Opcode::Select, Type::I32, int_value(c, Type::I32, 0), scale, is);
}

static int
half_argument(Compiler *c, const VmAggregate &agg)
{
	WideValue	halves;
	int			high;
	int			special;

	if (agg.input == AggInput::ShownUp || agg.input == AggInput::ShownDown)
		return shown_argument(c, agg, &halves) ? halves.high : -1;
	if (!compile_argument(c, agg, &halves))
		return -1;
	high = halves.high;
	/* an extreme is taken of the codes, too */
	special = agg_is_wide(agg.fn) ? NO_SPECIALS : take_special(c, &halves);
	if (special == -1)
		return -1;
	switch (agg.input)
	{
		case AggInput::Low:
			return halves.low;
		case AggInput::High:
			return halves.high;
		case AggInput::Special:
			return special == NO_SPECIALS ? int_value(c, Type::I64, 0) : special;
		case AggInput::Narrow:
			return special_or_narrow(c, halves, special, high);
		case AggInput::Scale:
			return number_scale(c, halves, special);
		default:
			return limb_product(c, halves, static_cast<int>(agg.input) - static_cast<int>(AggInput::LimbProduct));
	}
}

static int
low_argument(Compiler *c, const VmAggregate &agg)
{
	WideValue	halves;

	if (agg.input == AggInput::ShownUp || agg.input == AggInput::ShownDown)
		return shown_argument(c, agg, &halves) ? halves.low : -1;
	return compile_argument(c, agg, &halves) ? halves.low : -1;
}

/* A part of a quotient: those of one sum share it, as halves do. */
static int
quotient_argument(Compiler *c, const VmAggregate &agg)
{
	QuotientLimbs limbs = c->quotient_limbs;

	if (!has_quotient(c, agg))
	{
		List	   *args;

		(void) called_function(agg.arg, &args);
		if (!compile_quotient_limbs(c, args, &limbs))
			return -1;
		if (can_share(c))
		{
			c->quotient = agg.arg;
			c->quotient_filter = c->guard;
			c->quotient_limbs = limbs;
		}
	}
	switch (agg.input)
	{
		case AggInput::QuotientScale:
			return limbs.shown;
		case AggInput::QuotientSpecial:
			return limbs.special == NO_SPECIALS ? int_value(c, Type::I64, 0) : limbs.special;
		default:
			return limbs.reg[static_cast<int>(agg.input) - static_cast<int>(AggInput::QuotientLimb)];
	}
}

/* Of the sums of halves: the scale is that of their registers' number. */
static OutputForm
half_output(Compiler *c, const VmAggregate &agg)
{
	WideValue	halves = {};

	(void) compile_argument(c, agg, &halves);
	if (agg_is_wide(agg.fn))
		return OutputForm{OutputKind::Numeric, halves.scale, -1, 0, -1};
	return OutputForm{agg.input == AggInput::Low ? OutputKind::Wide : OutputKind::High, halves.scale, -1, 0, -1};
}

static int
aggregate_argument(Compiler *c, const VmAggregate &agg)
{
	bool		added = agg.fn == AggFn::Sum || agg.input == AggInput::Scale;
	int			reg;

	if (agg.input == AggInput::Rank)
		return compile_rank(c, agg.arg, agg.collation);
	if (agg.input == AggInput::Bits)
		return compile_expr(c, reinterpret_cast<Expr *>(makeFuncExpr(F_INT8_BIT, INT8OID, list_make1(agg.arg), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST)));
	if (is_small_limb(agg.input))
		return small_limb_product(c, compile_expr(c, agg.arg), static_cast<int>(agg.input) - static_cast<int>(AggInput::SmallLimbProduct));
	if (is_of_interval(agg.input))
		return compile_interval_part(c, agg.arg, agg.input);
	if (is_double(agg.input))
		return double_argument(c, agg);
	if (is_of_quotient(agg.input))
		return quotient_argument(c, agg);
	if (is_of_halves(agg.input) || (agg.input == AggInput::Scale && is_wide(c->input, agg.arg)))
		return half_argument(c, agg);
	if (agg.fn == AggFn::AnyValue && is_wide(c->input, agg.arg))
		return compile_expr(c, agg.arg);	/* says why not */
	/* What a sum shows is the greatest of its scales, which is an aggregate of its own; what is counted is not shown. */
	c->scale_use = added ? ScaleUse::Each : agg.fn == AggFn::Count ? ScaleUse::None : ScaleUse::One;
	reg = agg.fn == AggFn::Count ? compile_presence(c, agg.arg)
		: agg_is_text(agg.fn) ? compile_column(c, variable_var(c->input, agg.arg))
		: agg.fn == AggFn::AnyValue ? compile_column(c, reinterpret_cast<const Var *>(agg.arg))
		: compile_expr(c, agg.arg);
	c->scale_use = ScaleUse::One;
	if (reg < 0)
		return -1;
	if (agg.input == AggInput::Scale)
		return shown_scale(c, reg, c->info[reg].scale);
	if (agg.input == AggInput::Square)
	{
		int			scale = c->info[reg].scale;

		reg = convert(c, reg, Type::I64);
		return reg < 0 ? -1 : value(c, Opcode::Mul, Type::I64, reg, reg, 0, 0, scale < 0 ? NO_INFO : numeric_info(2 * scale));
	}
	return reg;
}

/* One VM aggregate over the rows of the groups. */
static bool
compile_aggregate(Compiler *c, const VmAggregate &agg, int number, OutputForm *output)
{
	int			filter = -1;
	int			known = -1;
	int			arg = -1;
	int			more = 0;		/* p4 */
	Branch		br;
	bool		guarded = false;

	*output = PLAIN_OUTPUT;
	if (agg.filter != nullptr)
	{
		filter = compile_expr(c, agg.filter);
		if (filter < 0)
			return false;
		/* PostgreSQL evaluates the argument only where the filter is true. */
		if (!may_be_conditional(c, agg.arg))
			return false;
		/* squares may raise, too */
		guarded = agg.arg != nullptr && (can_raise(agg.arg) || (agg.other != nullptr && can_raise(agg.other)) || is_double(agg.input)) && !has_argument(c, agg);
		if (agg.other != nullptr && !may_be_conditional(c, agg.other))
			return false;
	}
	if (guarded)
	{
		br = branch_open(c, Opcode::IfNot, filter, true);
		c->guard = agg.filter;
	}
	if (agg.input == AggInput::Position)
		arg = c->position;
	if (agg.arg != nullptr)
	{
		arg = aggregate_argument(c, agg);
		if (arg >= 0 && agg.input == AggInput::Scale)
		{
			/* the scale of a null does not count */
			int			reg;

			c->scale_use = ScaleUse::Each;
			reg = is_wide(c->input, agg.arg) ? low_argument(c, agg) : compile_expr(c, agg.arg);
			c->scale_use = ScaleUse::One;
			known = reg < 0 ? -1 : value(c, Opcode::NotNull, c->b->reg_type[reg], reg);
			if (known < 0)
				return false;
		}
		if (arg < 0 || (agg_is_wide(agg.fn) && (more = low_argument(c, agg)) < 0) ||
			(agg_is_text(agg.fn) && (more = compile_text_order(c, agg.arg, agg.collation)) < 0))
			return false;
		if (agg.fn != AggFn::Count)
			*output = agg_is_wide(agg.fn) || agg.input == AggInput::Low || agg.input == AggInput::High ? half_output(c, agg) : output_form(c, arg);
	}
	if (guarded)
	{
		branch_close(c, br);
		c->guard = nullptr;
	}
	/* behind the branch, where rows that jumped over it are not in the filter */
	if (known >= 0)
		filter = filter < 0 ? known : value(c, Opcode::And, Type::Bool, filter, known);
	if (known >= 0 && filter < 0)
		return false;
	emit(c, Opcode::AggStep, arg < 0 ? Type::None : c->b->reg_type[arg], number, arg, filter, more, static_cast<uint8_t>(agg.fn));
	return true;
}

const char *
aggregate_name(AggFn fn)
{
	static const char *const names[] = {"count", "count", "sum", "min", "max", "bool_and", "bool_or",
		"bit_and", "bit_or", "bit_xor", "any_value", "min", "max", "min", "max"};

	return names[static_cast<int>(fn)];
}

/* The number of the program's aggregate: parts of one sum share it. */
static int
program_aggregate(const VmAggregate *aggs, const int *numbers, int i, int *nsteps)
{
	for (int j = 0; j < i; j++)
	{
		VmAggregate same = aggs[j];

		same.rest = aggs[i].rest;
		if (same_vm_aggregate(same, aggs[i]))
			return numbers[j];
	}
	return (*nsteps)++;
}

static Type
group_key_type(const CompileInput *input, const Node *key)
{
	const Expr *expr = reinterpret_cast<const Expr *>(key);

	return variable_var(input, expr) != nullptr || is_packed_text(input, expr) || is_span(expr) ? Type::I64 : vm_type(exprType(key));
}

bool
is_ranked_key(const CompileInput *input, const Expr *key)
{
	const Node *node = reinterpret_cast<const Node *>(key);

	return variable_var(input, key) == nullptr && !is_packed_text(input, key) && !is_span(key) &&
		value_type(exprType(node)).form == ValueForm::Dictionary && !dictionary_equality(exprType(node), exprTypmod(node), exprCollation(node));
}

static int
compile_group_key(Compiler *c, const Expr *key)
{
	const Node *node = reinterpret_cast<const Node *>(key);

	if (variable_var(c->input, key) != nullptr)
		return compile_text_key(c, key);
	if (is_packed_text(c->input, key))
		return compile_packed_key(c, key);
	if (is_span(key))
		return compile_span(c, key);
	if (!is_ranked_key(c->input, key))
		return compile_expr(c, key);
	if (bare_column(key) == nullptr && !is_map_expr(key))
		return refuse(c, "values of type %s may be equal without being the same", format_type_be(exprType(node)));
	return compile_rank(c, key, exprCollation(node));
}

/* The least and the greatest display scale of a key's values, behind all other aggregates. */
static void
add_key_scales(const CompileInput *input, List *keys, VmAggregate *aggs, int *naggs)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		Expr	   *key = static_cast<Expr *>(lfirst(lc));

		for (AggFn fn : {AggFn::Min, AggFn::Max})
		{
			if (differs_in_scale(input, key) && *naggs < PROGRAM_MAX_COLUMNS)
				aggs[(*naggs)++] = VmAggregate{fn, key, nullptr, AggInput::Scale, InvalidOid, nullptr, 0};
		}
	}
}

/* Is the key a rank of a column of the cursor's? */
static bool
is_ranked_key_of(Compiler *c, const Expr *key, int cursor)
{
	DictionaryRef of;

	return is_ranked_key(c->input, key) && ranked_dictionary(c, key, &of) && of.cursor == cursor;
}

/* Lets those rows pass whose value, or one of whose keys, is equal to others that are not the same. */
static bool
compile_tied_rows(Compiler *c, List *keys, const Ties *ties)
{
	int			any = -1;
	ListCell   *lc;

	foreach(lc, ties->value != nullptr ? list_make1(ties->value) : keys)
	{
		const Expr *expr = static_cast<const Expr *>(lfirst(lc));
		int			reg;

		if (ties->value == nullptr && !is_ranked_key_of(c, expr, ties->cursor))
			continue;
		reg = compile_tied(c, expr, ties->value != nullptr ? ties->collation : exprCollation((const Node *) expr));
		if (reg >= 0)
			any = any < 0 ? reg : value(c, Opcode::Or, Type::Bool, any, reg);
		if (reg < 0 || any < 0)
			return false;
	}
	emit(c, Opcode::IfNot, Type::Bool, any, 0, 0, VERDICT_DIES, JUMP_IF_NULL);
	return true;
}

/* The rank of the ties' value, and the number of the row's tablet. */
static bool
compile_tie_keys(Compiler *c, Ties *ties, int64_t *regs, OutputForm *forms)
{
	int			n = 0;

	if (ties->value != nullptr)
	{
		const int	rank = compile_rank(c, ties->value, ties->collation);

		if (rank < 0)
			return false;
		ties->cursor = c->maps[c->info[rank].map].cursor;
		forms[n] = output_form(c, rank);
		regs[n++] = rank;
	}
	/* PostgreSQL has its own order for those */
	if (c->input->cursors[ties->cursor].names != NIL)
		return refuse(c, "rows of another plan come in any order") >= 0;
	c->position = compile_position(c, ties->cursor);
	if (c->position < 0)
		return false;
	forms[n] = PLAIN_OUTPUT;
	regs[n] = with_constant64(c, Opcode::ShiftRight, c->position, POSITION_ROW_BITS);
	return regs[n] >= 0;
}

static bool
groups_program(CompileInput *input, List *keys, KeyUse use, const VmAggregate *aggs, int naggs, int next_shown, Ties *ties, CompiledProgram *out)
{
	Compiler   *c = start_program(input);
	const int	nshown = list_length(keys);
	const int	nkeys = nshown + (ties == nullptr ? 0 : ties->value != nullptr ? 2 : 1);
	int64_t		sources[PROGRAM_MAX_COLUMNS];
	int64_t		key_regs[PROGRAM_MAX_COLUMNS];
	List	   *outputs = list_copy(keys);
	int			numbers[PROGRAM_MAX_COLUMNS];
	int			nsteps = 0;
	int			nhigh = 0;
	int			high = 0;
	int			parallel;
	ListCell   *lc;

	foreach(lc, keys)
		nhigh += is_wide(input, static_cast<const Expr *>(lfirst(lc))) ? 1 : 0;
	if (nkeys + naggs + nhigh > PROGRAM_MAX_COLUMNS)
	{
		refuse(c, "the query needs more than %d group keys and aggregates", PROGRAM_MAX_COLUMNS);
		return false;
	}
	foreach(lc, keys)
	{
		int			i = foreach_current_index(lc);
		Node	   *key = static_cast<Node *>(lfirst(lc));
		Type		type = group_key_type(input, key);
		const char *name = "?column?";

		if (type == Type::None)
		{
			refuse(c, "grouping by type %s is not supported", format_type_be(exprType(key)));
			return false;
		}
		if (IsA(key, Var))
		{
			AttrNumber	attnum = 0;
			int			cursor = cursor_of_var(input, (Var *) key, &attnum);

			if (attnum > 0)
				name = cursor_column_name(&input->cursors[cursor], attnum);
		}
		emit(c, Opcode::ResultColumn, type, i, 0, 0, c->b->add_name(name));
		sources[i] = i;
	}
	for (int i = nshown; i < nkeys; i++)
	{
		emit(c, Opcode::ResultColumn, i == nkeys - 1 ? Type::I64 : Type::I32, i, 0, 0, c->b->add_name(i == nkeys - 1 ? "tablet" : "rank"));
		sources[i] = i;
	}
	if (ties != nullptr && ties->value != nullptr)
		outputs = lappend(outputs, ties->value);
	for (int i = 0; i < naggs; i++)
	{
		emit(c, Opcode::ResultColumn, agg_result_type(aggs[i].fn, aggregate_type(input, aggs[i])), nkeys + i, 0, 0,
			 c->b->add_name(aggregate_name(aggs[i].fn)));
		outputs = lappend(lappend(lappend(outputs, aggs[i].arg), aggs[i].other), aggs[i].filter);
		numbers[i] = program_aggregate(aggs, numbers, i, &nsteps);
		sources[nkeys + i] = RESULT_FROM_AGG | numbers[i] | RESULT_REST * aggs[i].rest;
	}
	/* the high halves of keys are keys and result columns behind all others */
	for (int i = 0; i < nhigh; i++)
	{
		emit(c, Opcode::ResultColumn, Type::I64, nkeys + naggs + i, 0, 0, c->b->add_name("?column?"));
		sources[nkeys + naggs + i] = nkeys + i;
	}
	emit(c, Opcode::AggOpen, Type::None, nkeys + nhigh, nsteps, c->b->add_aux(sources, nkeys + naggs + nhigh));
	parallel = compile_source(c, outputs);
	if (parallel < 0 || (ties != nullptr && !ties->all && !compile_tied_rows(c, keys, ties)))
		return false;
	foreach(lc, keys)
	{
		const Expr *key = static_cast<Expr *>(lfirst(lc));
		OutputForm *form = &out->outputs[foreach_current_index(lc)];
		const bool	differs = use != KeyUse::One && differs_in_scale(input, key);
		WideValue	halves;
		int			reg;

		c->scale_use = !differs ? ScaleUse::One : use == KeyUse::Shown ? ScaleUse::Each : ScaleUse::None;
		if (is_wide(input, key))
		{
			if (!compile_wide(c, key, &halves))
				return false;
			c->scale_use = ScaleUse::One;
			*form = OutputForm{OutputKind::Wide, halves.scale, -1, 0, nkeys + naggs + high};
			if (differs && use == KeyUse::Shown)
			{
				form->shown = next_shown;
				next_shown += 2;
				c->soft_errors = true;
			}
			out->outputs[nkeys + naggs + high] = HIGH_OUTPUT;
			key_regs[foreach_current_index(lc)] = halves.low;
			key_regs[nkeys + high++] = halves.high;
			continue;
		}
		reg = compile_group_key(c, key);
		c->scale_use = ScaleUse::One;
		if (reg < 0)
			return false;
		key_regs[foreach_current_index(lc)] = reg;
		*form = output_form(c, reg);
		if (differs && use == KeyUse::Shown)
		{
			form->shown = next_shown;
			next_shown += 2;
			c->soft_errors = true;
		}
		if (is_span(key))
			*form = OutputForm{OutputKind::Span, span_has_days(key), -1, 0, -1};
	}
	if (ties != nullptr && !compile_tie_keys(c, ties, &key_regs[nshown], &out->outputs[nshown]))
		return false;
	if (nkeys > 0)
		emit(c, Opcode::Group, Type::None, nkeys + nhigh, c->b->add_aux(key_regs, nkeys + nhigh), 0);
	nsteps = 0;
	for (int i = 0; i < naggs; i++)
	{
		out->outputs[nkeys + i] = PLAIN_OUTPUT;
		if (numbers[i] == nsteps && !compile_aggregate(c, aggs[i], nsteps++, &out->outputs[nkeys + i]))
			return false;
	}
	out->noutputs = nkeys + naggs + nhigh;
	close_pipeline(c, parallel);
	return finish_program(c, out);
}

bool
compile_groups(CompileInput *input, List *keys, KeyUse use, const VmAggregate *aggs, int naggs, CompiledProgram *out)
{
	VmAggregate *all = static_cast<VmAggregate *>(palloc(sizeof(VmAggregate) * (PROGRAM_MAX_COLUMNS + naggs)));
	const int	next_shown = list_length(keys) + naggs;

	for (int i = 0; i < naggs; i++)
		all[i] = aggs[i];
	if (use == KeyUse::Shown)
		add_key_scales(input, keys, all, &naggs);
	return said_why(input, groups_program(input, keys, use, all, naggs, next_shown, nullptr, out));
}

bool
compile_ties(CompileInput *input, List *keys, Ties *ties, CompiledProgram *out)
{
	const VmAggregate position = {ties->last ? AggFn::Max : AggFn::Min, nullptr, nullptr, AggInput::Position, InvalidOid, nullptr, 0};

	/* a row that has no partner is not known by its position */
	for (int i = 1; i < input->ncursors; i++)
	{
		if (input->cursors[i].kind == JoinKind::Full)
		{
			input->reason = "rows of a full join are not told apart";
			return false;
		}
	}
	return said_why(input, groups_program(input, keys, KeyUse::One, &position, 1, 0, ties, out));
}

}  // namespace gpuvm
