/*
 * quota.h: what the owners of tables may have of gpuvm.memory, as table gpuvm.quotas says.
 *
 * A row is of a role, for the tables that it owns in this database, or (role null) of
 * all tables of the database together; where there are both, both hold. What counts is
 * what the tables' versions take, in whole pages, also those that a transaction will
 * publish when it commits, or that queries still read, and what is shared once. Of a
 * table that is imported again the version that is replaced does not count. No query fails by a quota: what a query loads is
 * loaded in a subtransaction, and read by PostgreSQL if that fails.
 */
#ifndef GPUVM_STORE_QUOTA_H
#define GPUVM_STORE_QUOTA_H

#include "pg/pg.h"
#include "tablet/format.h"

extern "C" {
#include "nodes/pg_list.h"
#include "utils/hsearch.h"
#include "utils/rel.h"
}

namespace gpuvm {

struct Quota
{
	bool		holds;			/* false: none does, and the rest is undefined */
	Oid			role;			/* InvalidOid: all roles of this database together */
	uint64		bytes;
	uint64		used;			/* by all but the current version of the table in question */
};

inline uint64
quota_left(const Quota *quota)
{
	return quota->bytes - Min(quota->used, quota->bytes);
}

/* What was counted, so that memory that versions share counts once; palloc'd. */
HTAB	   *counted_begin(void);
uint64		count_version(HTAB *counted, uint64 version);

/* InvalidOid: the table is gone. */
Oid			owner_of(Oid relid);

/* The quotas that hold for a table, and what is counted for each. May read the catalogs; leaves no snapshot of them. */
struct TableQuotas
{
	Quota		quotas[2];
	HTAB	   *counted[2];
};
void		quotas_of(Relation rel, TableQuotas *quotas);

/* The quota that leaves least; one that does not hold: there is none. */
Quota		tightest_quota(Relation rel);

/* The quota that the table's new version does not fit, with what it takes in *bytes; NULL: it fits. Never raises. */
const Quota *exceeded_quota(const TableQuotas *quotas, uint64 version, uint64 *bytes);

/* at_least: not all of the table has been counted. What all roles have is for pg_read_all_stats. */
[[noreturn]] void raise_quota_exceeded(Relation rel, const Quota *quota, uint64 bytes, bool at_least);

/* Frees the new version and raises if it is larger than the one that it is to replace, and does not fit. */
void		quota_check_growth(Relation rel, const TableQuotas *quotas, const TableVersion *before, uint64 version);

/* Raises if the table's new version does not fit. */
void		quota_check(Relation rel, uint64 version);

/* All rows of gpuvm.quotas: Quota, palloc'd, `used` is 0. */
List	   *list_quotas(void);

}  // namespace gpuvm

#endif
