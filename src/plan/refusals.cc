/* refusals.cc: the texts of refusals. */
#include "pg/pg.h"

#include "plan/refusals.h"

namespace gpuvm {

const char *
refusal_text(Refusal refusal)
{
	switch (refusal)
	{
		case REFUSED_NOT: return "translated";
		case REFUSED_COMMAND: return "not a SELECT";
		case REFUSED_ROW_MARKS: return "rows are locked";
		case REFUSED_MODIFYING_CTE: return "a CTE changes rows";
		case REFUSED_SEARCH_CTE: return "SEARCH or CYCLE";
		case REFUSED_OPEN_RECURSION: return "a recursive CTE refers to what is outside of it";
		case REFUSED_TARGET_SRF: return "set-returning function in the target list";
		case REFUSED_VOLATILE: return "volatile function";
		case REFUSED_TABLESAMPLE: return "TABLESAMPLE";
		case REFUSED_INHERITANCE: return "inheritance";
		case REFUSED_RELATION_KIND: return "kind of relation";
		case REFUSED_WHOLE_ROW: return "whole row";
		case REFUSED_LATERAL_FUNCTION: return "function in FROM of another relation's columns";
		case REFUSED_ARRAY_SUBQUERY: return "ARRAY subquery";
		case REFUSED_SUBQUERY_PLACE: return "place of a subquery";
		case REFUSED_LATERAL_LIMIT: return "LIMIT of a column";
		case REFUSED_SETOP_ALL: return "INTERSECT ALL or EXCEPT ALL";
		case REFUSED_GROUPING_SETS: return "too many grouping sets";
		case REFUSED_NO_EQUALITY: return "grouped by a type without equality";
		case REFUSED_WINDOW_EXCLUDE: return "EXCLUDE in a window frame";
		case REFUSED_COLUMNS: return "too many columns";
		case REFUSED_ERROR: return "error";
		case REFUSED_CHECK: return "inconsistent algebra";
		case REFUSED_COUNT_: break;
	}
	return "unknown";
}

}  // namespace gpuvm
