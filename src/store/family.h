/*
 * family.h: dictionaries of which each is a prefix of the next (tablet/dictionary.h).
 *
 * A family grows at its end alone: a longer dictionary is of the family if it was made from
 * the longest one, and is the first to be published that was. Any other is of a family of its own. So
 * whoever knows an entry of a family knows it for ever.
 *
 * The leaves of a partitioned table have one family for each column, as long as nothing comes between: an import
 * goes on from what the leaves imported before have, and a lock makes one wait for the other.
 */
#ifndef GPUVM_STORE_FAMILY_H
#define GPUVM_STORE_FAMILY_H

#include "pg/pg.h"
#include "tablet/format.h"

extern "C" {
#include "utils/rel.h"
}

namespace gpuvm {

Size		families_shared_size(void);
void		families_startup(void);

/* Before the dictionaries of a leaf grow, until they are published. True if there is something to unlock: an import leaves that to its transaction's end. */
bool		family_lock(Relation rel);
void		family_unlock(Relation rel);

/*
 * The dictionary that an import of the leaf goes on from, or 0: arena offset, held (dictionary_hold)
 * for the caller. May read the catalogs. *damaged: one was passed over, as it does not match its checksum.
 */
uint64		family_base(Relation rel, AttrNumber attnum, bool *damaged);

/* The longest one of the dictionary's family, held for the caller. */
uint64		family_longest(uint64 dictionary);

/*
 * Under the registry lock, exclusively: the version's new dictionaries are about to be seen by all. Fills in what is
 * to be dropped (dictionary_drop) when the lock is released, and returns how many.
 */
int			families_publish(const TableVersion *version, uint64 (&drop)[VERSION_MAX_COLS]);

/*
 * Under the registry lock, exclusively: nobody refers to the block of dictionaries any more. False: it stays, for one
 * of it is the longest of a family that has others. *drop as above.
 */
bool		families_forget(uint64 block, uint64 (&drop)[VERSION_MAX_COLS], int *ndrop);

}  // namespace gpuvm

#endif
