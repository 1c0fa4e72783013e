/*
 * wide_special.cc: NaN and infinities of numerics in two registers (tablet/wide_halves.h).
 *
 * As codes they compare, group and sort as numbers do. What computes takes them out first, computes with numbers alone,
 * and puts into the result what PostgreSQL's rules make of them: by three bits, so that OR gives what a sum is.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
}

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

bool
is_special_const(const void *expr)
{
	const Const *con = static_cast<const Const *>(expr);
	WideSpecial which;

	return IsA(con, Const) && con->consttype == NUMERICOID && !con->constisnull && numeric_special(con->constvalue, &which);
}

static bool
find_special_walker(Node *node, void *input)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		return is_special_column(static_cast<const CompileInput *>(input), (const Var *) node);
	if (IsA(node, Const))
		return is_special_const(node);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(find_special_walker), input);
}

bool
may_be_special(const CompileInput *input, const Expr *expr)
{
	return find_special_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), const_cast<CompileInput *>(input));
}

int
take_special(Compiler *c, WideValue *wide)
{
	int			is_special;
	int			special;

	if (!wide->special)
		return NO_SPECIALS;
	/* beyond 2^62 in magnitude the bit of that is not the sign: 1, or 0 of a number */
	is_special = binary64(c, Opcode::BitXor, with_constant64(c, Opcode::ShiftRight, wide->high, WIDE_LOW_BITS),
						with_constant64(c, Opcode::ShiftRight, wide->high, WIDE_LOW_BITS + 1));
	special = is_special < 0 ? -1 : value(c, Opcode::Neg, Type::I64, is_special);
	special = binary64(c, Opcode::BitAnd, with_constant64(c, Opcode::BitAnd, wide->high, WIDE_SPECIAL_MASK), special);
	wide->high = special < 0 ? -1 : binary64(c, Opcode::BitAnd, wide->high, with_constant64(c, Opcode::Sub, is_special, 1));
	wide->special = false;
	wide->scale = Max(wide->scale, 0);
	return wide->high < 0 ? -1 : special;
}

/* Null where the value is: a Select takes null for false. */
static int
null_as(Compiler *c, int special, int value)
{
	return binary64(c, Opcode::BitOr, special, with_constant64(c, Opcode::BitAnd, value, 0));
}

bool
put_special(Compiler *c, WideValue *wide, int special)
{
	int			zero = int_value(c, Type::I64, 0);
	int			code;
	int			cond;

	if (special == NO_SPECIALS)
		return true;
	if (special < 0 || zero < 0)
		return false;
	special = null_as(c, special, wide->high);
	code = select64(c, with_constant64(c, Opcode::Eq, special, WIDE_MINUS_INFINITY), int_value(c, Type::I64, wide_special(WIDE_MINUS_INFINITY)),
				  int_value(c, Type::I64, wide_special(WIDE_NAN)));
	code = select64(c, with_constant64(c, Opcode::Eq, special, WIDE_INFINITY), int_value(c, Type::I64, wide_special(WIDE_INFINITY)), code);
	cond = binary64(c, Opcode::Ne, special, zero);
	wide->high = select64(c, cond, code, wide->high);
	wide->low = select64(c, cond, zero, wide->low);
	wide->special = true;
	return wide->high >= 0 && wide->low >= 0;
}

int
negative_special(Compiler *c, int special)
{
	int			minus;
	int			plus;

	if (special < 0)
		return special;
	minus = with_constant64(c, Opcode::ShiftLeft, with_constant64(c, Opcode::BitAnd, special, WIDE_INFINITY), 1);
	plus = with_constant64(c, Opcode::ShiftRight, with_constant64(c, Opcode::BitAnd, special, WIDE_MINUS_INFINITY), 1);
	return binary64(c, Opcode::BitOr, with_constant64(c, Opcode::BitAnd, special, WIDE_NAN), binary64(c, Opcode::BitOr, minus, plus));
}

int
sum_special(Compiler *c, int a, int b)
{
	if (a == NO_SPECIALS || b == NO_SPECIALS)
		return a == NO_SPECIALS ? b : a;
	return binary64(c, Opcode::BitOr, a, b);
}

/* An infinity times 0 is NaN, which three bits are, too. */
int
product_special(Compiler *c, int special, int factor)
{
	int			negative = negative_special(c, special);

	if (special < 0)
		return special;
	return select64(c, with_constant64(c, Opcode::Gt, factor, 0), special,
				  select64(c, with_constant64(c, Opcode::Lt, factor, 0), negative, binary64(c, Opcode::BitOr, special, negative)));
}

int
absolute_special(Compiler *c, int special)
{
	int			plus;

	if (special < 0)
		return special;
	plus = with_constant64(c, Opcode::ShiftRight, with_constant64(c, Opcode::BitAnd, special, WIDE_MINUS_INFINITY), 1);
	return binary64(c, Opcode::BitOr, with_constant64(c, Opcode::BitAnd, special, WIDE_INFINITY | WIDE_NAN), plus);
}

/* -1, 0, 1, as what is no number counts for its sign. */
static int
sign_of(Compiler *c, int negative, int positive, int special)
{
	int			sign = select64(c, positive, int_value(c, Type::I64, 1), select64(c, negative, int_value(c, Type::I64, -1), int_value(c, Type::I64, 0)));

	if (special < 0)
		return sign;
	sign = select64(c, with_constant64(c, Opcode::Ne, special, 0), int_value(c, Type::I64, 1), sign);
	return select64(c, with_constant64(c, Opcode::Eq, special, WIDE_MINUS_INFINITY), int_value(c, Type::I64, -1), sign);
}

int
product_specials(Compiler *c, const WideValue &a, int of_a, int b, int of_b)
{
	int			any = sum_special(c, of_a, of_b);
	int			zero = int_value(c, Type::I64, 0);
	int			sign;
	int			code;

	if (of_b == NO_SPECIALS)
		return product_special(c, of_a, b);
	if (any < 0)
		return any;
	/* either half says that the number is not 0 */
	code = binary64(c, Opcode::BitOr, a.high, a.low);
	sign = binary64(c, Opcode::Mul, sign_of(c, with_constant64(c, Opcode::Lt, a.high, 0), with_constant64(c, Opcode::Gt, code, 0), of_a),
					sign_of(c, with_constant64(c, Opcode::Lt, b, 0), with_constant64(c, Opcode::Gt, b, 0), of_b));
	code = select64(c, with_constant64(c, Opcode::Lt, sign, 0), int_value(c, Type::I64, WIDE_MINUS_INFINITY), int_value(c, Type::I64, WIDE_NAN));
	code = select64(c, with_constant64(c, Opcode::Gt, sign, 0), int_value(c, Type::I64, WIDE_INFINITY), code);
	code = binary64(c, Opcode::BitOr, code, with_constant64(c, Opcode::BitAnd, any, WIDE_NAN));
	return select64(c, binary64(c, Opcode::Ne, any, zero), code, zero);
}

}  // namespace gpuvm
