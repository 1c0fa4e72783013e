/* printing.h: what the two ways to print the algebra share. */
#ifndef GPUVM_PLAN_PRINTING_H
#define GPUVM_PLAN_PRINTING_H

#include "pg/pg.h"

extern "C" {
#include "lib/stringinfo.h"
}

#include "plan/rel.h"

namespace gpuvm {

/*
 * Expressions are shown by PostgreSQL's own deparser, as ones over a relation whose columns are all of the
 * statement's, by number, and behind them the bound values, by id.
 */
struct Printing
{
	List	   *context;
	int			columns;		/* numbers there are */
	int			bounds;			/* ids likewise */
	const char **names;			/* of columns, by number; of bound values behind */
};

void		begin_printing(Printing *printing, const GpuvmRel *statement);
const char *print_expr(Printing *printing, const Node *expr);
/* Quoted where SQL wants that. */
const char *print_name(const Printing *printing, int number);
void		print_exprs(StringInfo str, Printing *printing, const List *exprs, const char *between);
void		print_numbers(StringInfo str, const Printing *printing, const List *numbers);
/* Of groups and partitions, or with directions. */
void		print_keys(StringInfo str, const Printing *printing, const List *keys, bool order);
/* PARTITION BY, ORDER BY and the frame. */
void		print_window(StringInfo str, Printing *printing, const WindowClause *window);

}  // namespace gpuvm

#endif
