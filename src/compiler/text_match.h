/*
 * text_match.h: what values of variable length are compared with.
 *
 * A column that has no dictionary (tablet/format.h, Encoding::Variable) is one of references to its values.
 * Programs hand these on, tell whether they are null, and compare the bytes behind them with patterns
 * (vm/text_match.h), which are made of the comparisons' other sides when execution starts (executor/patterns.cc).
 */
#ifndef GPUVM_COMPILER_TEXT_MATCH_H
#define GPUVM_COMPILER_TEXT_MATCH_H

#include "pg/pg.h"
#include "pg/text_order.h"
#include "vm/text_match.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpuvm {

struct PlanPattern
{
	TextMatchKind kind;
	bool		utf8;			/* Like: of characters of UTF-8 */
	bool		trim_blanks;	/* Equal: of bpchar */
	int16		attlen;			/* of the column's type */
	Expr	   *expr;			/* without columns, known when execution starts */
};

/* The pattern of a value of the expression, in TEXT_PATTERN_MAX bytes; or why there is none. */
const char *build_pattern(const PlanPattern *plan, Datum value, bool isnull, TextPattern *to);

}  // namespace gpuvm

#endif
