/*
 * checksum.h: CRC-32C of what queries read of an imported table, made when it is
 * complete and stored with it, so that gpuvm.verify() can tell that a byte of it
 * is no longer what it was.
 *
 * A tablet has one for its header and keys and one for each column, a dictionary
 * one for its header and one for its entries, a version's blob one. What may change
 * without changing what is said (reference counts, hints) is in none.
 */
#ifndef GPUVM_STORE_CHECKSUM_H
#define GPUVM_STORE_CHECKSUM_H

#include "pg/pg.h"
#include "tablet/dictionary.h"
#include "tablet/format.h"

extern "C" {
#include "utils/rel.h"
}

namespace gpuvm {

/* A column when it is written; the tablet, without its columns, when it is where it is to stay. */
void		seal_column(TabletHeader *tablet, uint32 column);
void		seal_tablet(TabletHeader *tablet);
/* When they are complete, a version also when it was copied from another. */
void		seal_dictionary(Dictionary *dictionary);
void		seal_dictionary_header(Dictionary *dictionary);
void		seal_version(TableVersion *version);

/* Are they what they were? Of a tablet whose offsets are as check_tablet() wants them; a tablet without its columns. */
bool		tablet_is_sealed(const TabletHeader *tablet);
bool		column_is_sealed(const TabletHeader *tablet, uint32 column);
bool		columns_are_sealed(const TabletHeader *tablet);
/* Of whatever lies at an arena offset that was theirs. What a dictionary's header says of memory is to be used only if it is sealed. */
bool		dictionary_header_is_sealed(uint64 offset);
bool		dictionary_is_sealed(uint64 offset);
bool		version_is_sealed(uint64 offset);
/* Of a version that is sealed: is what says which rows its tablets have, and of which blocks, as it was? */
bool		tablets_are_sealed(const TableVersion *version);

/* A warning, of who finds that something is not: going on from it would seal it anew, so the table is imported anew. */
void		report_damage(Relation rel);

}  // namespace gpuvm

#endif
