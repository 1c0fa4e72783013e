/*
 * text_columns.cc: columns whose values have no codes (Encoding::Variable): which they are, and what needs not
 * compare them with anything that is known.
 *
 * A program has of such a column where each row's value lies. Who only hands it on, or asks whether it is null, needs no more.
 * TextKey makes integers of the values, by which they are grouped and joined, and found equal to each other's.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

#include "compiler/emit.h"
#include "store/registry.h"

namespace gpuvm {

/* -- which columns ------------------------------------------------------------------------- */

static bool
is_variable_column(const CompileInput *input, const Var *var)
{
	for (int i = 0; i < input->ncursors; i++)
	{
		const CompileCursor *cursor = &input->cursors[i];
		AttrNumber	attnum;

		if (is_column_of(cursor, var, &attnum))
		{
			int			place = column_place(cursor, attnum);

			return place >= 0 && cursor->table->variable[place];
		}
	}
	return false;
}

const Var *
variable_var(const CompileInput *input, const Expr *expr)
{
	const Var  *var = bare_column(expr);

	return var != nullptr && is_variable_column(input, var) ? var : nullptr;
}

struct VariableSearch
{
	const CompileInput *input;
	const Var  *found;
};

static bool
find_variable_walker(Node *node, void *context)
{
	VariableSearch *search = static_cast<VariableSearch *>(context);

	if (node == nullptr)
		return false;
	if (!IsA(node, Var))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(find_variable_walker), context);
	if (is_variable_column(search->input, (const Var *) node))
		search->found = (const Var *) node;
	return search->found != nullptr;
}

/* The first such column in an expression, or a list of them; NULL if there is none. */
static const Var *
find_variable(const CompileInput *input, const void *node)
{
	VariableSearch search = {input, nullptr};

	find_variable_walker(static_cast<Node *>(const_cast<void *>(node)), &search);
	return search.found;
}

static bool
reads_variable_walker(Node *node, void *context)
{
	const CompileInput *input = static_cast<const CompileInput *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		return is_variable_column(input, (const Var *) node);
	if (IsA(node, List))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reads_variable_walker), context);
	return find_fact<bool>(Fact::ReadsVariable, input, node, [&]() {
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reads_variable_walker), context);
	});
}

bool
reads_variable(const CompileInput *input, const Expr *expr)
{
	return reads_variable_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), const_cast<CompileInput *>(input));
}

bool
is_map(const Compiler *c, const Expr *expr)
{
	return is_map_expr(expr) && !reads_variable(c->input, expr);
}

/* Are values equal just where their bytes are? */
static bool
text_keys_of(const Var *var)
{
	return value_type(var->vartype).form == ValueForm::Dictionary && dictionary_equality(var->vartype, var->vartypmod, var->varcollid);
}

static const char *
column_name(const CompileInput *input, const Var *var)
{
	const CompileCursor *cursor = input->cursors;
	AttrNumber	attnum;

	while (!is_column_of(cursor, var, &attnum))
		cursor++;
	return cursor_column_name(cursor, attnum);
}

int
refuse_variable(Compiler *c, const Var *var)
{
	const char *name = column_name(c->input, var);
	const char *by = "=, <, IN";
	const char *more = "";

	switch (getBaseType(var->vartype))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
			by = "=, <, IN, LIKE, ILIKE, ~";
			more = ", as can their case and a few characters";
			/* FALLTHROUGH */
		case BYTEAOID:
		case UUIDOID:
		case TIMETZOID:
		case INETOID:
		case CIDROID:
		case MACADDROID:
		case MACADDR8OID:
		case BITOID:
		case VARBITOID:
			return refuse(c, "column \"%s\" has too many, or too large, different values for a dictionary: its values can be read, tested for null, grouped by, compared by = and < with columns like it, and by %s with constants%s",
						  name, getBaseType(var->vartype) == BYTEAOID ? "=, <, IN, LIKE" : by, more);
		default:
			return refuse(c, "column \"%s\" is stored value by value: values of type %s can only be read%s tested for null%s", name, format_type_be(var->vartype),
						  text_keys_of(var) || value_order_flags(var->vartype) != 0 ? "," : " and",
						  text_keys_of(var) ? ", grouped by, and compared by = with columns like it" : value_order_flags(var->vartype) != 0 ? ", sorted by and compared" : "");
	}
}

bool
refuse_variables(Compiler *c, const void *node)
{
	const Var  *var = find_variable(c->input, node);

	return var != nullptr && refuse_variable(c, var) < 0;
}

int
compile_presence(Compiler *c, const Expr *expr)
{
	const Var  *var = variable_var(c->input, expr);

	if (var == nullptr)
		var = packed_column(c->input, expr);
	if (var != nullptr)
		return compile_column(c, var);
	if (is_span(expr))
		return compile_span(c, expr);
	if (is_computed_interval(expr) && !is_map(c, expr))
		return compile_computed_span(c, expr);
	if (IsA(expr, Var) && is_wide(c->input, expr))
		return compile_column(c, (const Var *) expr);
	if (is_wide(c->input, expr))
	{
		WideValue	wide;

		return compile_wide_value(c, expr, &wide) ? wide.low : -1;
	}
	return compile_value(c, expr);
}
/* -- keys ---------------------------------------------------------------------------------- */

bool
text_keys_meet(const Compiler *c, const DictionaryComparison &comparison)
{
	const Var  *a = variable_var(c->input, comparison.sides[0]);
	const Var  *b = variable_var(c->input, comparison.sides[1]);

	return comparison.by_bytes && a != nullptr && b != nullptr && get_typlen(a->vartype) == get_typlen(b->vartype);
}

int
compile_text_key(Compiler *c, const Expr *expr)
{
	const Var  *var = variable_var(c->input, expr);
	Oid			type = exprType(reinterpret_cast<const Node *>(expr));
	Oid			collation = exprCollation(reinterpret_cast<const Node *>(expr));
	int			reg;

	if (value_type(type).form != ValueForm::Dictionary)
		return refuse_variable(c, var);
	if (!dictionary_equality(type, exprTypmod(reinterpret_cast<const Node *>(expr)), collation))
		return refuse(c, "values of column \"%s\" may be equal without being the same", column_name(c->input, var));
	reg = compile_column(c, var);
	return reg < 0 ? -1 : value(c, Opcode::TextKey, Type::I64, reg, get_typlen(var->vartype), 0, 0, c->info[reg]);
}

int
compile_text_order(Compiler *c, const Expr *expr, Oid collation)
{
	const Node *node = reinterpret_cast<const Node *>(expr);
	const PlanTextOrder order = {getBaseType(exprType(node)), collation};
	TextOrderSpec spec;
	const char *failure = describe_text_order(order, &spec);
	int			number;

	if (failure != nullptr)
		return refuse(c, "%s", failure);
	/* of values that are equal and not the same PostgreSQL takes the first that it meets */
	if (!dictionary_equality(exprType(node), exprTypmod(node), collation))
		return refuse(c, "values of column \"%s\" may be equal without being the same", column_name(c->input, variable_var(c->input, expr)));
	number = add_text_order(&c->text_orders, order.type, collation);
	return number >= 0 ? number : refuse(c, "values are ordered in more than %d ways", PROGRAM_MAX_TEXT_ORDERS);
}

}  // namespace gpuvm
