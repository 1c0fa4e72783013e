/* refusals.h: why a statement has no algebra. */
#ifndef GPUVM_PLAN_REFUSALS_H
#define GPUVM_PLAN_REFUSALS_H

namespace gpuvm {

enum Refusal
{
	REFUSED_NOT,
	REFUSED_COMMAND,
	REFUSED_ROW_MARKS,
	REFUSED_MODIFYING_CTE,
	REFUSED_SEARCH_CTE,
	REFUSED_OPEN_RECURSION,
	REFUSED_TARGET_SRF,
	REFUSED_VOLATILE,
	REFUSED_TABLESAMPLE,
	REFUSED_INHERITANCE,
	REFUSED_RELATION_KIND,
	REFUSED_WHOLE_ROW,
	REFUSED_LATERAL_FUNCTION,
	REFUSED_ARRAY_SUBQUERY,
	REFUSED_SUBQUERY_PLACE,
	REFUSED_LATERAL_LIMIT,
	REFUSED_SETOP_ALL,
	REFUSED_GROUPING_SETS,
	REFUSED_NO_EQUALITY,
	REFUSED_WINDOW_EXCLUDE,
	REFUSED_COLUMNS,
	REFUSED_ERROR,				/* an error was raised while translating */
	REFUSED_CHECK,				/* rel_check found fault with the tree: a bug */
	REFUSED_COUNT_
};

/* In gpuvm.translations and gpuvm.algebra's error. */
const char *refusal_text(Refusal refusal);

}  // namespace gpuvm

#endif
