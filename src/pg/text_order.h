/*
 * text_order.h: by which type and collation values of variable length are compared, and how that is said to gpuvmd
 * (vm/text_order.h), which has no catalogs.
 */
#ifndef GPUVM_PG_TEXT_ORDER_H
#define GPUVM_PG_TEXT_ORDER_H

#include "pg/pg.h"
#include "vm/text_order.h"

namespace gpuvm {

/* What a plan keeps of it. */
struct PlanTextOrder
{
	Oid			type;
	Oid			collation;
};

struct PlanTextOrders
{
	int			n;
	PlanTextOrder orders[PROGRAM_MAX_TEXT_ORDERS];	/* by the numbers that programs and sort keys have */
};

/* The order's number, which may be there already; -1: there are too many. */
int			add_text_order(PlanTextOrders *to, Oid type, Oid collation);

/* TextPatternFlag bits of the type's default order, of types other than texts. */
uint8		value_order_flags(Oid type);

/* Of the type's default order, as the catalogs have it now; nullptr, or why gpuvmd cannot compare so. */
const char *describe_text_order(const PlanTextOrder &order, TextOrderSpec *to);

/* Does it order as bytes are ordered, or is the type's order no matter of a collation? */
bool		orders_as_bytes(Oid collation);

/* One of the same order that PostgreSQL sorts by soonest: it calls strcoll() and abbreviates no keys even where bytes decide, but for C and POSIX. */
Oid			cheapest_collation(Oid collation);

/* The file of the ICU that this server runs with, as it was loaded; nullptr where it has none. */
const char *icu_library(void);

}  // namespace gpuvm

#endif
