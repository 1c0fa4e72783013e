/*
 * text_match.h: what values of variable length are compared with.
 *
 * A column that has no dictionary (tablet/format.h, Encoding::Variable) is one of references to its values.
 * Programs hand these on, tell whether they are null, and compare the bytes behind them with patterns
 * (vm/text_match.h), which are made of the comparisons' other sides when execution starts (executor/patterns.cc).
 */
#ifndef GPUVM_COMPILER_TEXT_MATCH_H
#define GPUVM_COMPILER_TEXT_MATCH_H

#include "compiler/regex.h"
#include "pg/text_order.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpuvm {

enum class PatternForm : uint8
{
	Equal = 0,
	Prefix = 1,
	Like = 2,
	Regex = 3,
	Order = 4,
};

enum PatternTrim : uint8
{
	TRIM_PADDING = 1,			/* blanks at the end, of both sides (=, of char(n)), */
	TRIM_CAST = 2,				/* of the value (char(n) as text), */
	TRIM_LEFT = 4,				/* and what ltrim(), rtrim() and btrim() remove */
	TRIM_RIGHT = 8,
	TRIM_ZEROES = 16,			/* what is behind a zero, of both sides (name) */
};

enum class SliceForm : uint8
{
	Whole = 0,
	Behind = 1,					/* `count` characters behind the first `skip`, or as many of them as there are (left, substr), */
	Rest = 2,					/* all behind the first `skip` (substr), */
	Last = 3,					/* the last `count`, or as many as there are (right), */
	ButLast = 4,				/* and all but the last `count` (left of less than 0) */
};

/* Which characters of a value are compared. */
struct TextSlice
{
	SliceForm	form;
	int32		skip;
	int32		count;
};

/* Of left(), right(), substr() and substring() with constants. False, and the whole: it is another function, or PostgreSQL raises. */
bool		text_slice(Oid function, List *args, TextSlice *slice);

struct PlanPattern
{
	PatternForm form;
	bool		ignore_case;	/* ILIKE, ~* */
	TextFold	fold;			/* of the column's values, before they are compared */
	uint8		trim;			/* PatternTrim */
	bool		utf8;			/* Like: of characters of UTF-8 */
	int16		attlen;			/* of the column's type */
	uint8		outcomes;		/* Order: TextOutcome bits */
	uint8		order;			/* Order: TextPattern.collation */
	Oid			collation;		/* what ignores case, and characters' classes, go by */
	Oid			fold_collation;
	TextSlice	slice;			/* Equal: of the value */
	Expr	   *expr;			/* without columns, known when execution starts */
};

/* But for what they compare with. */
inline bool
same_pattern(const PlanPattern &a, const PlanPattern &b)
{
	return a.form == b.form && a.ignore_case == b.ignore_case && a.fold == b.fold && a.trim == b.trim && a.utf8 == b.utf8 && a.attlen == b.attlen &&
		a.outcomes == b.outcomes && a.order == b.order && a.collation == b.collation && a.fold_collation == b.fold_collation &&
		a.slice.form == b.slice.form && a.slice.skip == b.slice.skip && a.slice.count == b.slice.count;
}

/* Must the pattern know of characters, not of bytes alone? Then it is an automaton mostly. */
inline bool
asks_characters(const PlanPattern *plan)
{
	return plan->form != PatternForm::Order &&
		(plan->form == PatternForm::Regex || plan->ignore_case || plan->fold != TextFold::None || (plan->trim & ~(TRIM_PADDING | TRIM_ZEROES)) != 0);
}

/* The pattern of a value of the expression, in TEXT_AUTOMATON_MAX bytes; or why there is none. */
const char *build_pattern(const PlanPattern *plan, Datum value, bool isnull, TextPattern *to);

}  // namespace gpuvm

#endif
