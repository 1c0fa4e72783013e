/*
 * checksum.h: CRC-32C of what queries read of an imported table, made when it is
 * complete and stored with it, so that gpuvm.verify() can tell that a byte of it
 * is no longer what it was.
 *
 * A tablet has one for its header and keys and one for each column; a dictionary
 * and a version's blob have one each. What may change without changing what is said
 * (reference counts, hints, a dictionary's family until it is published) is in none.
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
void		seal_version(TableVersion *version);

/* Are they what they were? Of a tablet whose offsets are as check_tablet() wants them; a tablet without its columns. */
bool		tablet_is_sealed(const TabletHeader *tablet);
bool		column_is_sealed(const TabletHeader *tablet, uint32 column);
/* Of whatever lies at an arena offset that was theirs. */
bool		dictionary_is_sealed(uint64 offset);
bool		version_is_sealed(uint64 offset);

/* A warning, of who finds that something is not: going on from it would seal it anew, so the table is imported anew. */
void		report_damage(Relation rel);

}  // namespace gpuvm

#endif
