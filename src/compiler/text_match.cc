/*
 * text_match.cc: columns whose values have no codes (text_columns.cc), compared with what is known when
 * execution starts: =, <>, <, IN, LIKE, starts_with; and with each other.
 *
 * TextMatch looks at the bytes, and compares them with a pattern of the job, which is made of the other side
 * (executor/patterns.cc). TextCompare compares two columns' values by a text order. Neither raises anything.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "compiler/emit.h"
#include "compiler/text_match.h"

namespace gpuvm {

/* -- which comparisons ----------------------------------------------------------------------- */

struct TextFunction
{
	Oid			function;
	PatternForm form;
	bool		negated;
	bool		text;			/* of characters, under a collation */
	bool		ignore_case;
	uint8		outcomes;		/* Order: TextOutcome bits of what it is true for */
};

constexpr uint8 LT = TEXT_LESS, LE = TEXT_LESS | TEXT_SAME, GT = TEXT_GREATER, GE = TEXT_GREATER | TEXT_SAME, NE = TEXT_LESS | TEXT_GREATER;

/* Of types that have one order. */
#define ORDERED(type) \
	{F_##type##EQ, PatternForm::Order, false, false, false, TEXT_SAME}, \
	{F_##type##NE, PatternForm::Order, false, false, false, NE}, \
	{F_##type##LT, PatternForm::Order, false, false, false, LT}, \
	{F_##type##LE, PatternForm::Order, false, false, false, LE}, \
	{F_##type##GT, PatternForm::Order, false, false, false, GT}, \
	{F_##type##GE, PatternForm::Order, false, false, false, GE}

static const TextFunction functions[] = {
	{F_TEXTEQ, PatternForm::Equal, false, true, false},
	{F_TEXTNE, PatternForm::Equal, true, true, false},
	{F_BPCHAREQ, PatternForm::Equal, false, true, false},
	{F_BPCHARNE, PatternForm::Equal, true, true, false},
	{F_BYTEAEQ, PatternForm::Equal, false, false, false},
	{F_BYTEANE, PatternForm::Equal, true, false, false},
	{F_UUID_EQ, PatternForm::Equal, false, false, false},
	{F_UUID_NE, PatternForm::Equal, true, false, false},
	{F_TEXTLIKE, PatternForm::Like, false, true, false},
	{F_TEXTNLIKE, PatternForm::Like, true, true, false},
	{F_LIKE_TEXT_TEXT, PatternForm::Like, false, true, false},
	{F_NOTLIKE_TEXT_TEXT, PatternForm::Like, true, true, false},
	{F_BPCHARLIKE, PatternForm::Like, false, true, false},
	{F_BPCHARNLIKE, PatternForm::Like, true, true, false},
	{F_BYTEALIKE, PatternForm::Like, false, false, false},
	{F_BYTEANLIKE, PatternForm::Like, true, false, false},
	{F_STARTS_WITH, PatternForm::Prefix, false, true, false},
	{F_TEXTICLIKE, PatternForm::Like, false, true, true},
	{F_TEXTICNLIKE, PatternForm::Like, true, true, true},
	{F_BPCHARICLIKE, PatternForm::Like, false, true, true},
	{F_BPCHARICNLIKE, PatternForm::Like, true, true, true},
	{F_TEXTREGEXEQ, PatternForm::Regex, false, true, false},
	{F_TEXTREGEXNE, PatternForm::Regex, true, true, false},
	{F_BPCHARREGEXEQ, PatternForm::Regex, false, true, false},
	{F_BPCHARREGEXNE, PatternForm::Regex, true, true, false},
	{F_TEXTICREGEXEQ, PatternForm::Regex, false, true, true},
	{F_TEXTICREGEXNE, PatternForm::Regex, true, true, true},
	{F_BPCHARICREGEXEQ, PatternForm::Regex, false, true, true},
	{F_BPCHARICREGEXNE, PatternForm::Regex, true, true, true},
	{F_TEXT_LT, PatternForm::Order, false, true, false, LT},
	{F_TEXT_LE, PatternForm::Order, false, true, false, LE},
	{F_TEXT_GT, PatternForm::Order, false, true, false, GT},
	{F_TEXT_GE, PatternForm::Order, false, true, false, GE},
	{F_BPCHARLT, PatternForm::Order, false, true, false, LT},
	{F_BPCHARLE, PatternForm::Order, false, true, false, LE},
	{F_BPCHARGT, PatternForm::Order, false, true, false, GT},
	{F_BPCHARGE, PatternForm::Order, false, true, false, GE},
	{F_NAMELT, PatternForm::Order, false, true, false, LT},
	{F_NAMELE, PatternForm::Order, false, true, false, LE},
	{F_NAMEGT, PatternForm::Order, false, true, false, GT},
	{F_NAMEGE, PatternForm::Order, false, true, false, GE},
	{F_NAMELTTEXT, PatternForm::Order, false, true, false, LT},
	{F_NAMELETEXT, PatternForm::Order, false, true, false, LE},
	{F_NAMEGTTEXT, PatternForm::Order, false, true, false, GT},
	{F_NAMEGETEXT, PatternForm::Order, false, true, false, GE},
	{F_TEXTLTNAME, PatternForm::Order, false, true, false, LT},
	{F_TEXTLENAME, PatternForm::Order, false, true, false, LE},
	{F_TEXTGTNAME, PatternForm::Order, false, true, false, GT},
	{F_TEXTGENAME, PatternForm::Order, false, true, false, GE},
	{F_BYTEALT, PatternForm::Order, false, false, false, LT},
	{F_BYTEALE, PatternForm::Order, false, false, false, LE},
	{F_BYTEAGT, PatternForm::Order, false, false, false, GT},
	{F_BYTEAGE, PatternForm::Order, false, false, false, GE},
	{F_UUID_LT, PatternForm::Order, false, false, false, LT},
	{F_UUID_LE, PatternForm::Order, false, false, false, LE},
	{F_UUID_GT, PatternForm::Order, false, false, false, GT},
	{F_UUID_GE, PatternForm::Order, false, false, false, GE},
	{F_TEXT_PATTERN_LT, PatternForm::Order, false, false, false, LT},
	{F_TEXT_PATTERN_LE, PatternForm::Order, false, false, false, LE},
	{F_TEXT_PATTERN_GT, PatternForm::Order, false, false, false, GT},
	{F_TEXT_PATTERN_GE, PatternForm::Order, false, false, false, GE},
	{F_BPCHAR_PATTERN_LT, PatternForm::Order, false, false, false, LT},
	{F_BPCHAR_PATTERN_LE, PatternForm::Order, false, false, false, LE},
	{F_BPCHAR_PATTERN_GT, PatternForm::Order, false, false, false, GT},
	{F_BPCHAR_PATTERN_GE, PatternForm::Order, false, false, false, GE},
	{F_NAMELIKE, PatternForm::Like, false, true, false},
	{F_NAMENLIKE, PatternForm::Like, true, true, false},
	{F_NAMEICLIKE, PatternForm::Like, false, true, true},
	{F_NAMEICNLIKE, PatternForm::Like, true, true, true},
	{F_NAMEREGEXEQ, PatternForm::Regex, false, true, false},
	{F_NAMEREGEXNE, PatternForm::Regex, true, true, false},
	{F_NAMEICREGEXEQ, PatternForm::Regex, false, true, true},
	{F_NAMEICREGEXNE, PatternForm::Regex, true, true, true},
	{F_NAMEEQ, PatternForm::Order, false, true, false, TEXT_SAME},
	{F_NAMENE, PatternForm::Order, false, true, false, NE},
	{F_NAMEEQTEXT, PatternForm::Order, false, true, false, TEXT_SAME},
	{F_NAMENETEXT, PatternForm::Order, false, true, false, NE},
	{F_TEXTEQNAME, PatternForm::Order, false, true, false, TEXT_SAME},
	{F_TEXTNENAME, PatternForm::Order, false, true, false, NE},
	ORDERED(TIMETZ_),
	ORDERED(INTERVAL_),
	ORDERED(NETWORK_),
	ORDERED(MACADDR_),
	ORDERED(MACADDR8_),
	ORDERED(BIT),
	ORDERED(VARBIT),
#if PG_VERSION_NUM >= 150000
	{F_REGEXP_LIKE_TEXT_TEXT, PatternForm::Regex, false, true, false},
#endif
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

/* A column of variable length, or what lower(), upper() and trims make of one. */
struct MatchedValue
{
	const Var  *var;
	TextFold	fold;
	Oid			fold_collation;
	uint8		trim;			/* PatternTrim */
	TextSlice	slice;			/* of what all this gives */
};

static bool
find_value(const CompileInput *input, const Expr *expr, MatchedValue *out)
{
	bool		bare = true;

	*out = MatchedValue{};
	for (;;)
	{
		const FuncExpr *fn;

		out->var = variable_var(input, expr);
		if (out->var != nullptr)
			break;
		while (IsA(expr, RelabelType) || IsA(expr, CollateExpr))
			expr = IsA(expr, RelabelType) ? ((const RelabelType *) expr)->arg : ((const CollateExpr *) expr)->arg;
		fn = (const FuncExpr *) expr;
		if (!IsA(fn, FuncExpr))
			return false;
		if (bare && text_slice(fn->funcid, fn->args, &out->slice))
		{
			expr = static_cast<const Expr *>(linitial(fn->args));
			bare = false;
			continue;
		}
		switch (fn->funcid)
		{
			case F_LOWER_TEXT:
			case F_UPPER_TEXT:
				if (out->fold != TextFold::None)
					return false;
				out->fold = fn->funcid == F_LOWER_TEXT ? TextFold::Lower : TextFold::Upper;
				out->fold_collation = fn->inputcollid;
				break;
			case F_BTRIM_TEXT:
				out->trim |= TRIM_LEFT | TRIM_RIGHT;
				break;
			case F_LTRIM_TEXT:
				out->trim |= TRIM_LEFT;
				break;
			case F_RTRIM_TEXT:
				out->trim |= TRIM_RIGHT;
				break;
			case F_TEXT_BPCHAR:
				out->trim |= TRIM_CAST;
				break;
			case F_TEXT_NAME:
				out->trim |= TRIM_ZEROES;
				break;
			default:
				return false;
		}
		expr = static_cast<const Expr *>(linitial(fn->args));
		bare = false;
	}
	/* not bytea, as text by a cast without a function */
	switch (getBaseType(out->var->vartype))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return true;
		case NAMEOID:
			return bare || (out->trim & TRIM_ZEROES) != 0;
		default:
			return bare;
	}
}

bool
matches_variable(const CompileInput *input, const Expr *expr)
{
	MatchedValue value;

	return find_value(input, expr, &value);
}

bool
meets_variable(const Compiler *c, List *args)
{
	return list_length(args) == 2 && (matches_variable(c->input, static_cast<const Expr *>(linitial(args))) ||
									  matches_variable(c->input, static_cast<const Expr *>(lsecond(args))));
}
/* -- into the program ------------------------------------------------------------------------ */

/* The number of the pattern; -1 and a reason. */
static int
add_pattern(Compiler *c, const PlanPattern &pattern)
{
	for (int i = 0; i < c->npatterns; i++)
	{
		const PlanPattern *p = &c->patterns[i];

		if (same_pattern(*p, pattern) && equal(p->expr, pattern.expr))
			return i;
	}
	if (c->npatterns == PROGRAM_MAX_PATTERNS)
		return refuse(c, "the query has more than %d patterns", PROGRAM_MAX_PATTERNS);
	c->patterns[c->npatterns] = pattern;
	return c->npatterns++;
}

/* Do the bytes, or single characters, decide, as PostgreSQL compares? */
static bool
bytes_decide(Compiler *c, const PlanPattern &pattern, bool text, Oid collation)
{
	if (!text)
		return true;
	if (!OidIsValid(collation) || !get_collation_isdeterministic(collation))
	{
		refuse(c, "the collation is not deterministic");
		return false;
	}
	if ((pattern.form == PatternForm::Like || pattern.slice.form != SliceForm::Whole || asks_characters(&pattern)) && GetDatabaseEncoding() != PG_UTF8 && pg_database_encoding_max_length() > 1)
	{
		refuse(c, "LIKE is supported for UTF-8 and encodings of one byte a character");
		return false;
	}
	/* PostgreSQL raises where such a function is called, that is of rows */
	if (pattern.fold != TextFold::None && !OidIsValid(pattern.fold_collation))
	{
		refuse(c, "no collation is known for lower() or upper()");
		return false;
	}
	return true;
}

/* Do blanks at the end of neither side count? */
static bool
pads(Oid function)
{
	switch (function)
	{
		case F_BPCHAREQ:
		case F_BPCHARNE:
		case F_BPCHARLT:
		case F_BPCHARLE:
		case F_BPCHARGT:
		case F_BPCHARGE:
		case F_BPCHAR_PATTERN_LT:
		case F_BPCHAR_PATTERN_LE:
		case F_BPCHAR_PATTERN_GT:
		case F_BPCHAR_PATTERN_GE:
			return true;
		default:
			return false;
	}
}

/* What is done to the value, and how it is compared; false: no pattern does both. */
static bool
plan_pattern(const TextFunction *fn, const MatchedValue &value, Oid collation, const Expr *known, PlanPattern *pattern)
{
	*pattern = PlanPattern{fn->form, fn->ignore_case, value.fold, value.trim, fn->text && GetDatabaseEncoding() == PG_UTF8, get_typlen(value.var->vartype),
		fn->outcomes, 0, collation, value.fold_collation, value.slice, const_cast<Expr *>(known)};
	if (pads(fn->function))
		pattern->trim |= TRIM_PADDING;
	if (getBaseType(value.var->vartype) == NAMEOID)
		pattern->trim |= TRIM_ZEROES;
	/* what LIKE takes for a character is a byte of text that is called bytea, by a cast without a function: automata know of no such */
	if (!fn->text && fn->form == PatternForm::Like && asks_characters(pattern))
		return false;
	if (value.slice.form != SliceForm::Whole && (fn->form != PatternForm::Equal || !fn->text || (pattern->trim & (TRIM_PADDING | TRIM_LEFT | TRIM_RIGHT)) != 0))
		return false;
	if (fn->form == PatternForm::Order)
	{
		/* nor bytea as text: what a collation makes of zeroes is not known */
		return !(fn->text && getBaseType(value.var->vartype) == BYTEAOID) && value.fold == TextFold::None && (value.trim & (TRIM_LEFT | TRIM_RIGHT)) == 0;
	}
	if (fn->ignore_case && fn->form == PatternForm::Like)
	{
		if (value.fold != TextFold::None)
			return false;
		pattern->fold = TextFold::Lower;
		pattern->fold_collation = collation;
	}
	return fn->form == PatternForm::Equal || (value.trim & (TRIM_LEFT | TRIM_RIGHT)) == 0;
}

/* Of outcomes other than equality: where a collation has to be asked, by which text order. False, with a reason, where it cannot be. */
static bool
plan_order(Compiler *c, const TextFunction *fn, Oid type, Oid collation, uint8 *order)
{
	TextOrderSpec spec;
	const char *failure;
	int			number;

	if (!fn->text || fn->outcomes == TEXT_SAME || fn->outcomes == NE)
		return true;
	failure = describe_text_order(PlanTextOrder{type, collation}, &spec);
	if (failure != nullptr)
		return refuse(c, "%s", failure) >= 0;
	if (spec.kind == TextOrderKind::Bytes)
		return true;
	number = add_text_order(&c->text_orders, type, collation);
	*order = static_cast<uint8>(number + 1);
	return number >= 0 || refuse(c, "values are ordered in more than %d ways", PROGRAM_MAX_TEXT_ORDERS) >= 0;
}

/* The same outcomes with the sides exchanged. */
static uint8
commuted_outcomes(uint8 outcomes)
{
	return (outcomes & TEXT_SAME) | (outcomes & TEXT_LESS ? TEXT_GREATER : 0) | (outcomes & TEXT_GREATER ? TEXT_LESS : 0);
}

static Opcode
comparison_of(uint8 outcomes)
{
	switch (outcomes)
	{
		case LT: return Opcode::Lt;
		case LE: return Opcode::Le;
		case GT: return Opcode::Gt;
		case GE: return Opcode::Ge;
		case NE: return Opcode::Ne;
		default: return Opcode::Eq;
	}
}

/* Of two columns of variable length. */
static int
compile_text_compare(Compiler *c, const TextFunction *fn, List *args, Oid collation)
{
	const Var  *a = variable_var(c->input, static_cast<const Expr *>(linitial(args)));
	const Var  *b = variable_var(c->input, static_cast<const Expr *>(lsecond(args)));
	const Oid	type = getBaseType(a->vartype), other = getBaseType(b->vartype);
	TextOrderSpec spec;
	const char *failure;
	int			number;
	int			ra;
	int			rb;
	int			zero;

	/* blanks at the end count by the column's type: not those of char(n) as text, nor of text as char(n) */
	if (get_typlen(type) != get_typlen(other) || (type == BPCHAROID) != (other == BPCHAROID) || (type == BPCHAROID) != pads(fn->function) ||
		(fn->text && (type == BYTEAOID || other == BYTEAOID)))
		return refuse_variable(c, a);
	failure = describe_text_order(PlanTextOrder{type, fn->text ? collation : C_COLLATION_OID}, &spec);
	if (failure != nullptr)
		return refuse(c, "%s", failure);
	number = add_text_order(&c->text_orders, type, fn->text ? collation : C_COLLATION_OID);
	if (number < 0)
		return refuse(c, "values are ordered in more than %d ways", PROGRAM_MAX_TEXT_ORDERS);
	ra = compile_column(c, a);
	rb = ra < 0 ? -1 : compile_column(c, b);
	if (rb < 0)
		return -1;
	ra = value(c, Opcode::TextCompare, Type::I64, ra, rb, number);
	zero = int_value(c, Type::I64, 0);
	return ra < 0 || zero < 0 ? -1 : value(c, comparison_of(fn->outcomes), Type::I64, ra, zero);
}

int
compile_text_match(Compiler *c, Oid function, List *args, Oid collation)
{
	const TextFunction *fn = lookup_text_function(function);
	const Expr *known = static_cast<const Expr *>(lsecond(args));
	MatchedValue matched;
	PlanPattern pattern;
	AttrNumber	attnum;
	bool		commuted = false;
	bool		absent;
	int			cursor;
	int			number;
	int			match;

	if (fn != nullptr && fn->form == PatternForm::Order && variable_var(c->input, static_cast<const Expr *>(linitial(args))) != nullptr &&
		variable_var(c->input, known) != nullptr)
		return compile_text_compare(c, fn, args, collation);
	if (!find_value(c->input, static_cast<const Expr *>(linitial(args)), &matched))
	{
		find_value(c->input, known, &matched);
		commuted = true;
		if (fn != nullptr && (fn->form == PatternForm::Equal || fn->form == PatternForm::Order))
			known = static_cast<const Expr *>(linitial(args));
		else
			fn = nullptr;
	}
	if (fn == nullptr || !known_at_start(known) || !plan_pattern(fn, matched, collation, known, &pattern))
		return refuse_variable(c, matched.var);
	if (commuted)
		pattern.outcomes = commuted_outcomes(pattern.outcomes);
	if (!bytes_decide(c, pattern, fn->text, collation) || !plan_order(c, fn, getBaseType(matched.var->vartype), collation, &pattern.order))
		return -1;
	cursor = cursor_at(c, matched.var, &attnum, &absent);
	if (cursor < 0)
		return -1;
	if (absent || (IsA(known, Const) && ((const Const *) known)->constisnull))
		return null_value(c, Type::Bool);
	if (IsA(known, Const))
	{
		TextPattern *built = static_cast<TextPattern *>(palloc(TEXT_AUTOMATON_MAX));
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
