/*
 * fetch.cc: late materialisation: what the output of rows has and tablets have not (columns that were not imported, whole rows,
 * system columns) is fetched from the heap by the row's ctid, when the row is handed out. What that costs.
 */
#include "pg/pg.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
}

#include <cmath>

#include "compiler/compile.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"
#include "store/registry.h"

namespace gpuvm {

/* Measured: a row that is looked up by its position and found in memory takes 2.7 times as long as one of a sequential scan. In microseconds. */
constexpr double FETCH_US = 0.35;

void
plan_fetches(const ScanShape *shape, ScanPlan *plan)
{
	for (int cursor = 0; cursor < plan->ncursors; cursor++)
	{
		const PlanPart *part = &plan->parts[0];
		bool		found = false;

		for (int i = 0; i < part->noutputs; i++)
			found = found || (part->outputs[i].kind == OutputKind::Position && part->outputs[i].cursor == cursor && is_fetched(part->outputs[i].attnum));
		/* rows of foreign tables are put together from tablets */
		if (found)
			plan->fetches = lappend(plan->fetches, list_make2_int(cursor, shape->cursors[cursor].target.table->of_file ? 1
																  : static_cast<int>(Min(Max(shape->cursors[cursor].target.pages, 1.0), 2147483647.0))));
	}
}

/* As PostgreSQL has it for a bitmap heap scan where rows come in the heap's order, and otherwise for an index scan. */
Cost
fetch_cost(PlannerInfo *root, const ScanPlan *plan, double rows, bool in_order)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, plan->fetches)
	{
		double		pages = lsecond_int(lfirst_node(List, lc));
		double		fetched;

		if (in_order)
		{
			fetched = Min(2 * pages * rows / (2 * pages + rows), pages);
			cost += fetched * (random_page_cost - (random_page_cost - seq_page_cost) * std::sqrt(fetched / pages));
		}
		else
		{
			fetched = index_pages_fetched(rows, static_cast<BlockNumber>(pages), 0, root);
			cost += fetched * random_page_cost;
		}
		cost += rows * (FETCH_US * cost_of_us() + cpu_tuple_cost);
	}
	return cost;
}

}  // namespace gpuvm
