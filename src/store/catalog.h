/*
 * catalog.h: which tables are imported, as table gpuvm.imports remembers it.
 *
 * One row a table that was imported by name: the relation and the names of its
 * columns, or NULL for all that can be. A partitioned table's row stands for its
 * leaves. The rows are PostgreSQL's: they follow transactions, dumps and replication.
 * The registry says what is in memory, the catalog what should be.
 */
#ifndef GPUVM_STORE_CATALOG_H
#define GPUVM_STORE_CATALOG_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pg_list.h"
#include "utils/array.h"
#include "utils/rel.h"
}

namespace gpuvm {

struct RememberedTable
{
	Oid			relid;
	ArrayType  *columns;		/* name[]; NULL: all that can be imported */
	bool		uncommitted;	/* written by this transaction */
};

/*
 * Writes or removes the row, whatever the caller's rights: those on the table have
 * been checked. Where nothing can be written (standby, read-only transaction) a
 * NOTICE says so, if there was something to write. forget_table: was there a row?
 */
void		remember_table(Relation rel, ArrayType *columns);
bool		forget_table(Relation rel);

/* The extension's table of that name; InvalidOid where there is no extension. */
Oid			extension_table(const char *name);

/* Is the extension in this database? */
bool		catalog_exists(void);

/* The rows, RememberedTable, all palloc'd; NIL also where the extension is not. */
List	   *remembered_tables(void);

/* Is there a row for the relation or, if it is a partition, for a table above it? The nearest decides on the columns. */
bool		remembered_columns(Oid relid, ArrayType **columns);
bool		remembered_itself(Oid relid);

/* What can be imported of these columns (NULL: all), as ascending attribute numbers; palloc'd. Names that no longer fit are left out. */
int16	   *fitting_columns(Relation rel, ArrayType *columns, int *count);

/* name[] of these columns. */
ArrayType  *column_name_array(Relation rel, const int16 *attnums, int count);

/* Tables of a partition tree that hold rows and can be imported, and how many others there are. No locks are taken. */
List	   *importable_leaves(Oid parent, int *others);

/* After ALTER TABLE ... RENAME COLUMN. */
void		catalog_column_renamed(Oid relid, const char *old_name, const char *new_name);

/* import.cc: raises unless the relation is of an importable kind (rule 10). */
void		check_importable(Relation rel);

void		catalog_install(void);

}  // namespace gpuvm

#endif
