/*
 * text_pattern.cc: patterns of the values that columns of variable length are compared with.
 *
 * What compares bytes is one of bytes. All else becomes a regular expression, and that an automaton (regex.cc): ILIKE is LIKE of
 * the lowered pattern over lowered characters. Automata are kept for the session, since the planner makes one to see whether there is one,
 * and each execution makes it again.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

#include "compiler/text_match.h"

namespace gpuvm {

constexpr int MAX_OTHERS = 255;	/* characters before or behind a slice: what a regular expression counts to */
constexpr int KEPT_PATTERNS = PROGRAM_MAX_PATTERNS;	/* all of a program */

struct KeptPattern
{
	PlanPattern plan;			/* but for the expression */
	int			len;			/* of what was compared with */
	char	   *bytes;
	TextPattern *pattern;
};

static KeptPattern kept[KEPT_PATTERNS];
static int	next_kept;

/* -- as regular expressions ------------------------------------------------------------------ */

/* A character that stands for itself: what is neither letter nor digit does so behind a backslash. */
static void
append_literal(StringInfo to, char c)
{
	if (!IS_HIGHBIT_SET(c) && !isalnum(static_cast<unsigned char>(c)))
		appendStringInfoChar(to, '\\');
	appendStringInfoChar(to, c);
}

/* False where the pattern ends with its escape character. */
static bool
append_like(StringInfo to, const char *bytes, int len)
{
	for (int i = 0; i < len; i++)
	{
		if (bytes[i] == '%')
		{
			while (i + 1 < len && bytes[i + 1] == '%')
				i++;
			appendStringInfoString(to, ".*");
		}
		else if (bytes[i] == '_')
			appendStringInfoChar(to, '.');
		else if (bytes[i] == '\\' && ++i == len)
			return false;
		else
			append_literal(to, bytes[i]);
	}
	return true;
}

static const char *
build_characters(const PlanPattern *plan, const char *bytes, int len, TextPattern *to)
{
	RegexSource source = {bytes, len, false, C_COLLATION_OID, plan->fold, plan->fold_collation, plan->attlen, (plan->trim & (TRIM_PADDING | TRIM_CAST)) != 0};
	const bool	left = (plan->trim & TRIM_LEFT) != 0, right = (plan->trim & TRIM_RIGHT) != 0;
	StringInfoData regex;

	if (len > static_cast<int>(TEXT_PATTERN_MAX))
		return "the pattern is too long";
	if (plan->form == PatternForm::Regex)
	{
		source.ignore_case = plan->ignore_case;
		source.collation = plan->collation;
		return build_regex_pattern(&source, to);
	}
	while ((plan->trim & TRIM_PADDING) != 0 && len > 0 && bytes[len - 1] == ' ')
		len--;
	/* what is trimmed does not begin, or end, with blanks; such a constant equals none */
	if (len > 0 && ((left && bytes[0] == ' ') || (right && bytes[len - 1] == ' ')))
		return "a trimmed text is compared with one that has blanks there";
	if (plan->ignore_case)
	{
		source.regex = str_tolower(bytes, len, plan->fold_collation);
		bytes = source.regex;
		len = static_cast<int>(strlen(bytes));
	}
	initStringInfo(&regex);
	appendStringInfoString(&regex, left ? "^ *" : "^");
	if (plan->form != PatternForm::Like)
		for (int i = 0; i < len; i++)
			append_literal(&regex, bytes[i]);
	else if (!append_like(&regex, bytes, len))
		return "the pattern of LIKE ends with its escape character";
	if (plan->form != PatternForm::Prefix)
		appendStringInfoString(&regex, right ? " *$" : "$");
	source.regex = regex.data;
	source.len = regex.len;
	return build_regex_pattern(&source, to);
}

static const char *
build_like(const PlanPattern *plan, const char *bytes, int len, TextPattern *to)
{
	return text_pattern_like(to, bytes, len, plan->attlen, plan->utf8) ? nullptr : "the pattern of LIKE is too long, or ends with its escape character";
}

static const char *
build_order(const PlanPattern *plan, const char *bytes, int len, TextPattern *to)
{
	const uint8 flags = ((plan->trim & (TRIM_PADDING | TRIM_CAST)) != 0 ? TEXT_TRIM_BLANKS : 0) | ((plan->trim & TRIM_ZEROES) != 0 ? TEXT_TRIM_ZEROES : 0) |
		value_order_flags(exprType(reinterpret_cast<const Node *>(plan->expr)));
	TextValue	value = {reinterpret_cast<const unsigned char *>(bytes), static_cast<uint32>(len)};

	/* a cast is the value's alone */
	text_trim(plan->trim & TRIM_PADDING ? flags : flags & ~TEXT_TRIM_BLANKS, &value);
	return text_pattern_order(to, bytes, value.len, plan->attlen, flags, plan->outcomes, plan->order) ? nullptr : "the value to compare with is too long";
}

/* -- kept ------------------------------------------------------------------------------------ */

static bool
copy_kept(const PlanPattern *plan, const char *bytes, int len, TextPattern *to)
{
	for (const KeptPattern &k : kept)
		if (k.pattern != nullptr && k.len == len && memcmp(k.bytes, bytes, len) == 0 && same_pattern(k.plan, *plan))
		{
			memcpy(to, k.pattern, k.pattern->size);
			return true;
		}
	return false;
}

static void
keep(const PlanPattern *plan, const char *bytes, int len, const TextPattern *pattern)
{
	KeptPattern *k = &kept[next_kept];
	char	   *memory = static_cast<char *>(MemoryContextAlloc(TopMemoryContext, pattern->size + len));

	if (k->pattern != nullptr)
		pfree(k->pattern);
	memcpy(memory, pattern, pattern->size);
	memcpy(memory + pattern->size, bytes, len);
	*k = KeptPattern{*plan, len, memory + pattern->size, reinterpret_cast<TextPattern *>(memory)};
	next_kept = (next_kept + 1) % KEPT_PATTERNS;
}

/* -------------------------------------------------------------------------------------------- */

static const char *
build_bytes(const PlanPattern *plan, const char *bytes, int len, TextPattern *to)
{
	const char *failure;

	if (asks_characters(plan))
	{
		/* as bytes that are called text, by a cast without a function, may be */
		if (!pg_verify_mbstr(GetDatabaseEncoding(), bytes, len, true))
			return "what is compared with is no text of the database's encoding";
		if (plan->form == PatternForm::Regex && !plan->ignore_case && plan->fold == TextFold::None && (plan->trim & ~TRIM_ZEROES) == 0)
		{
			char	   *like = static_cast<char *>(palloc(2 * static_cast<Size>(len) + 3));
			const int	n = regex_as_like(bytes, len, like);

			/* which is searched for faster */
			if (n >= 0 && build_like(plan, like, n, to) == nullptr)
				return nullptr;
		}
		if (copy_kept(plan, bytes, len, to))
			return nullptr;
		failure = build_characters(plan, bytes, len, to);
		if (failure == nullptr)
			keep(plan, bytes, len, to);
		return failure;
	}
	switch (plan->form)
	{
		case PatternForm::Like:
			return build_like(plan, bytes, len, to);
		case PatternForm::Order:
			return build_order(plan, bytes, len, to);
		case PatternForm::Prefix:
			return text_pattern_prefix(to, bytes, len, plan->attlen) ? nullptr : "the prefix is too long";
		default:
			return text_pattern_equal(to, bytes, len, plan->attlen, (plan->trim & TRIM_PADDING) != 0) ? nullptr : "the value to compare with is too long";
	}
}

/* Whole values are matched: by LIKE, or by a regular expression where the slice has no characters. */
static const char *
build_slice(const PlanPattern *plan, const char *bytes, int len, TextPattern *to)
{
	const TextSlice &slice = plan->slice;
	/* bytes that are called text, by a cast without a function, may be none, of which PostgreSQL counts no characters */
	const bool	is_text = pg_verify_mbstr(GetDatabaseEncoding(), bytes, len, true);
	const int	n = is_text ? pg_mbstrlen_with_len(bytes, len) : 0;
	const bool	counted = slice.form == SliceForm::Behind || slice.form == SliceForm::Last;
	const int	others = slice.form == SliceForm::ButLast ? slice.count : slice.skip;
	PlanPattern whole = *plan;
	StringInfoData pattern;

	whole.slice = TextSlice{};
	whole.form = PatternForm::Like;
	initStringInfo(&pattern);
	if (!is_text || (counted && n > slice.count))
	{
		/* its zero: no text has one */
		text_pattern_equal(to, "", 1, plan->attlen, false);
		return nullptr;
	}
	if (others > MAX_OTHERS)
		return "characters so far into a text are not compared";
	if (counted && slice.count == 0)
		appendStringInfoChar(&pattern, '%');
	else if (n == 0)
	{
		whole.form = PatternForm::Regex;
		whole.collation = C_COLLATION_OID;
		appendStringInfo(&pattern, "^.{0,%d}$", others);
	}
	else
	{
		if (slice.form == SliceForm::Last && n == slice.count)
			appendStringInfoChar(&pattern, '%');
		for (int i = 0; i < others && slice.form != SliceForm::ButLast; i++)
			appendStringInfoChar(&pattern, '_');
		for (int i = 0; i < len; i++)
		{
			if (strchr("%_\\", bytes[i]) != nullptr)
				appendStringInfoChar(&pattern, '\\');
			appendStringInfoChar(&pattern, bytes[i]);
		}
		for (int i = 0; i < others && slice.form == SliceForm::ButLast; i++)
			appendStringInfoChar(&pattern, '_');
		if (slice.form == SliceForm::Behind && n == slice.count)
			appendStringInfoChar(&pattern, '%');
	}
	return build_bytes(&whole, pattern.data, pattern.len, to);
}

const char *
build_pattern(const PlanPattern *plan, Datum value, bool isnull, TextPattern *to)
{
	const int	typlen = get_typlen(exprType(reinterpret_cast<const Node *>(plan->expr)));
	const char *failure;
	const char *bytes;
	int			len;

	if (isnull)
	{
		text_pattern_null(to);
		return nullptr;
	}
	if (exprType(reinterpret_cast<const Node *>(plan->expr)) == NAMEOID)
	{
		bytes = NameStr(*DatumGetName(value));
		len = static_cast<int>(strlen(bytes));
	}
	else if (typlen > 0)
	{
		bytes = DatumGetPointer(value);
		len = typlen;
	}
	else
	{
		struct varlena *v = PG_DETOAST_DATUM_PACKED(value);

		bytes = VARDATA_ANY(v);
		len = VARSIZE_ANY_EXHDR(v);
	}
	failure = plan->slice.form == SliceForm::Whole ? build_bytes(plan, bytes, len, to) : build_slice(plan, bytes, len, to);
	if (failure == nullptr && (plan->trim & TRIM_ZEROES) != 0)
		to->flags |= TEXT_TRIM_ZEROES;
	return failure;
}

}  // namespace gpuvm
