/*
 * text_match.cc: a column whose values have no codes (Encoding::Variable), compared with what
 * is known when execution starts: =, <>, IN, LIKE, starts_with.
 *
 * A program has of such a column where each row's value lies. Who only hands it on, or asks whether it is
 * null, needs no more; TextMatch looks at the bytes, and compares them with a pattern of
 * the job, which is made of the other side (executor/patterns.cc). It raises nothing. TextKey
 * makes integers of the values, by which they are grouped, joined and compared with each other.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "compiler/emit.h"
#include "compiler/text_match.h"
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

bool
reads_variable(const CompileInput *input, const Expr *expr)
{
	return find_variable(input, expr) != nullptr;
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
	const char *more = "";

	switch (getBaseType(var->vartype))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			more = ", as can a few of their characters";
			/* FALLTHROUGH */
		case BYTEAOID:
		case UUIDOID:
			return refuse(c, "column \"%s\" has too many, or too large, different values for a dictionary: its values can be read, tested for null, grouped by, and compared by = with columns like it, and by =, IN%s with constants and parameters%s",
						  name, getBaseType(var->vartype) == UUIDOID ? "" : ", LIKE", more);
		default:
			return refuse(c, "column \"%s\" is stored value by value: values of type %s can only be read%s tested for null%s", name, format_type_be(var->vartype),
						  text_keys_of(var) ? "," : " and", text_keys_of(var) ? ", grouped by, and compared by = with columns like it" : "");
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
	if (IsA(expr, Var) && is_wide(c->input, expr))
		return compile_column(c, (const Var *) expr);
	if (is_wide(c->input, expr))
	{
		WideValue	wide;

		return compile_wide_value(c, expr, &wide) ? wide.low : -1;
	}
	return compile_value(c, expr);
}

/* -- which comparisons ----------------------------------------------------------------------- */

struct TextFunction
{
	Oid			function;
	TextMatchKind kind;
	bool		negated;
	bool		text;			/* of characters, under a collation */
};

static const TextFunction functions[] = {
	{F_TEXTEQ, TextMatchKind::Equal, false, true},
	{F_TEXTNE, TextMatchKind::Equal, true, true},
	{F_BPCHAREQ, TextMatchKind::Equal, false, true},
	{F_BPCHARNE, TextMatchKind::Equal, true, true},
	{F_BYTEAEQ, TextMatchKind::Equal, false, false},
	{F_BYTEANE, TextMatchKind::Equal, true, false},
	{F_UUID_EQ, TextMatchKind::Equal, false, false},
	{F_UUID_NE, TextMatchKind::Equal, true, false},
	{F_TEXTLIKE, TextMatchKind::Like, false, true},
	{F_TEXTNLIKE, TextMatchKind::Like, true, true},
	{F_LIKE_TEXT_TEXT, TextMatchKind::Like, false, true},
	{F_NOTLIKE_TEXT_TEXT, TextMatchKind::Like, true, true},
	{F_BPCHARLIKE, TextMatchKind::Like, false, true},
	{F_BPCHARNLIKE, TextMatchKind::Like, true, true},
	{F_BYTEALIKE, TextMatchKind::Like, false, false},
	{F_BYTEANLIKE, TextMatchKind::Like, true, false},
	{F_STARTS_WITH, TextMatchKind::Prefix, false, true},
};

static const TextFunction *
lookup_text_function(Oid function)
{
	for (const TextFunction &f : functions)
	{
		if (f.function == function)
			return &f;
	}
	return nullptr;
}

bool
meets_variable(const Compiler *c, List *args)
{
	return list_length(args) == 2 && (variable_var(c->input, static_cast<const Expr *>(linitial(args))) != nullptr ||
									  variable_var(c->input, static_cast<const Expr *>(lsecond(args))) != nullptr);
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

/* -- patterns ---------------------------------------------------------------------------------- */

const char *
build_pattern(const PlanPattern *plan, Datum value, bool isnull, TextPattern *to)
{
	const char *bytes;
	int			len;

	if (isnull)
	{
		text_pattern_null(to);
		return nullptr;
	}
	if (plan->attlen > 0)
	{
		bytes = DatumGetPointer(value);
		len = plan->attlen;
	}
	else
	{
		struct varlena *v = PG_DETOAST_DATUM_PACKED(value);

		bytes = VARDATA_ANY(v);
		len = VARSIZE_ANY_EXHDR(v);
	}
	switch (plan->kind)
	{
		case TextMatchKind::Like:
			if (!text_pattern_like(to, bytes, len, plan->attlen, plan->utf8))
				return "the pattern of LIKE is too long, or ends with its escape character";
			break;
		case TextMatchKind::Prefix:
			if (!text_pattern_prefix(to, bytes, len, plan->attlen))
				return "the prefix is too long";
			break;
		default:
			if (!text_pattern_equal(to, bytes, len, plan->attlen, plan->trim_blanks))
				return "the value to compare with is too long";
			break;
	}
	return nullptr;
}

/* The number of the pattern; -1 and a reason. */
static int
add_pattern(Compiler *c, const PlanPattern &pattern)
{
	for (int i = 0; i < c->npatterns; i++)
	{
		const PlanPattern *p = &c->patterns[i];

		if (p->kind == pattern.kind && p->utf8 == pattern.utf8 && p->trim_blanks == pattern.trim_blanks && p->attlen == pattern.attlen && equal(p->expr, pattern.expr))
			return i;
	}
	if (c->npatterns == PROGRAM_MAX_PATTERNS)
		return refuse(c, "the query has more than %d patterns", PROGRAM_MAX_PATTERNS);
	c->patterns[c->npatterns] = pattern;
	return c->npatterns++;
}

/* -- into the program ---------------------------------------------------------------------------- */

/* Do the bytes decide, as PostgreSQL compares? */
static bool
bytes_decide(Compiler *c, const TextFunction *fn, const Var *var, Oid collation)
{
	if (!fn->text)
		return true;
	if (!OidIsValid(collation) || !get_collation_isdeterministic(collation))
	{
		refuse(c, "the collation is not deterministic");
		return false;
	}
	if (fn->kind == TextMatchKind::Like && GetDatabaseEncoding() != PG_UTF8 && pg_database_encoding_max_length() > 1)
	{
		refuse(c, "LIKE is supported for UTF-8 and encodings of one byte a character");
		return false;
	}
	return true;
}

int
compile_text_match(Compiler *c, Oid function, List *args, Oid collation)
{
	const TextFunction *fn = lookup_text_function(function);
	const Expr *known = static_cast<const Expr *>(lsecond(args));
	const Var  *var = variable_var(c->input, static_cast<const Expr *>(linitial(args)));
	PlanPattern pattern = {};
	AttrNumber	attnum;
	bool		absent;
	int			cursor;
	int			number;
	int			match;

	if (var == nullptr && fn != nullptr && fn->kind == TextMatchKind::Equal)
	{
		var = variable_var(c->input, known);
		known = static_cast<const Expr *>(linitial(args));
	}
	if (fn == nullptr || var == nullptr || !known_at_start(known))
		return refuse_variable(c, var != nullptr ? var : variable_var(c->input, known));
	if (!bytes_decide(c, fn, var, collation))
		return -1;
	cursor = cursor_at(c, var, &attnum, &absent);
	if (cursor < 0)
		return -1;
	if (absent || (IsA(known, Const) && ((const Const *) known)->constisnull))
		return null_value(c, Type::Bool);

	pattern.kind = fn->kind;
	pattern.utf8 = fn->text && GetDatabaseEncoding() == PG_UTF8;
	pattern.trim_blanks = fn->function == F_BPCHAREQ || fn->function == F_BPCHARNE;
	pattern.attlen = get_typlen(var->vartype);
	pattern.expr = const_cast<Expr *>(known);
	if (IsA(known, Const))
	{
		TextPattern *built = static_cast<TextPattern *>(palloc(TEXT_PATTERN_MAX));
		const char *failure = build_pattern(&pattern, ((const Const *) known)->constvalue, false, built);

		pfree(built);
		if (failure != nullptr)
			return refuse(c, "%s", failure);
	}
	number = add_pattern(c, pattern);
	if (number < 0)
		return -1;
	match = value(c, Opcode::TextMatch, Type::Bool, attnum, cursor, number);
	return fn->negated ? compile_not(c, match) : match;
}

}  // namespace gpuvm
