/*
 * dictionary.h: values into codes, for tablets (tablet/dictionary.h) and for the
 * rows that one query reads beside them.
 *
 * An import's or refresh's processes fill one DictionaryBuilder a column together;
 * sealed, it is a Dictionary. A query's own additions are a LocalDictionary.
 */
#ifndef GPUVM_STORE_DICTIONARY_H
#define GPUVM_STORE_DICTIONARY_H

#include "pg/pg.h"
#include "tablet/dictionary_builder.h"

extern "C" {
#include "access/tupmacs.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpuvm {

enum class DictionaryFailure : uint32
{
	None,
	Expected,					/* by the planner's statistics there would be too many values */
	TooMany,
	TooLarge,					/* all values together */
	TooLong,					/* one value */
	NoMemory,					/* gpuvm.memory has not room for it */
};

/* Why the column is given up, for a NOTICE: "has more than ... different values". */
const char *dictionary_failure_text(DictionaryFailure failure);

/*
 * Is it known beforehand that the column has too many values? From pg_statistic. Where
 * that says nothing, *rows is how many rows there may be, else 0: for builder_start.
 */
DictionaryFailure dictionary_outlook(Relation rel, AttrNumber attnum, double *rows);

/* -- images ------------------------------------------------------------------------ */

/* Where an image is made; one a process. Begins as zeroes. */
struct ImageBuffer
{
	char	   *made;			/* of IMAGE_MEMORY bytes */
	char	   *detoasted;
};

/*
 * The image of a value as it comes from a tuple (fetchatt()) or anywhere else.
 * Valid until the next call, as long as the value is. False if it is too long. Reads
 * TOAST tables: within detoast_begin, if no snapshot is active, and with no buffer locked.
 */
bool		dictionary_image(ImageBuffer *buffer, Datum value, int16 attlen, bool byval, const char **image, uint32 *len);

/*
 * For who copies blocks without a snapshot: one that keeps what the rows of blocks
 * have in the TOAST table from VACUUM. To be taken before the blocks are looked at: who
 * deletes a row that was visible then is not over for it. NULL where one is active anyway.
 */
Snapshot	detoast_begin(void);
void		detoast_end(Snapshot snapshot);

/* A value again: points at the image, unless it is by value. */
static inline Datum
image_datum(const char *image, int16 attlen, bool byval)
{
	return fetch_att(image, byval, attlen);
}

/* -- builders ------------------------------------------------------------------------ */

/*
 * Makes the manifest's builders in the arena, one for each column, all unused; their
 * arena offset, or 0 when memory is short. The manifest frees them and what is in them.
 */
uint64		builders_begin(uint32 ncolumns);

/* Arena offset of one of them. */
static inline uint64
builder_offset(uint64 builders, uint32 column)
{
	return builders + uint64{column} * sizeof(DictionaryBuilder);
}

/*
 * Takes one into use. base: arena offset of the dictionary that this one is to be
 * a longer one of, held, which builders_free drops, or 0. refreshes: a value that cannot be put in has no code, and the
 * column does not fail but where there are too many. rows: how many are expected, or 0: of a column of many rows where
 * each of the first has a value of its own, it is taken for certain that there are too many.
 */
void		builder_start(DictionaryBuilder *builder, Form_pg_attribute att, uint64 base, bool refreshes, double rows);

/* None: all is well. Set by any process, seen by all; the column's codes mean nothing from then on. */
DictionaryFailure builder_failure(const DictionaryBuilder *builder);
void		builder_fail(DictionaryBuilder *builder, DictionaryFailure failure);

/* One process' use of a builder. */
struct DictionaryWriter
{
	DictionaryBuilder *builder;
	const Dictionary *base;
	uint64		calls;
	uint64		inserted;
};

void		writer_init(DictionaryWriter *writer, DictionaryBuilder *builder);

/*
 * The image's code. NO_CODE: the column is given up, and builder_failure() says why.
 * When memory is short for a builder that refreshes: NO_CODE without a failure.
 */
int32		builder_code(DictionaryWriter *writer, const char *image, uint32 len);

/*
 * The dictionaries of all that was put in, when no other process uses the builders
 * any more; a builder's base if nothing was added, 0 for one that is not used or failed.
 * What is new shares one *block, or 0 if nothing is. False when memory is short.
 */
bool		builders_seal(uint64 builders, uint32 ncolumns, uint64 *dictionaries, uint64 *block);

/* Frees them and what they hold. */
void		builders_free(uint64 builders, uint32 ncolumns);

/* -- one query's ------------------------------------------------------------------------ */

/* Codes from base->nentries on are this one's. In the memory context of its making; entries never move. */
struct LocalDictionary
{
	const Dictionary *base;
	uint32		nadded;
	uint32		nslots;
	uint64	   *slots;			/* codes are counted from 0 here */
	uint32		capacity;		/* of entries */
	const char **entries;
	uint32	   *lengths;
	char	   *chunk;
	Size		chunk_left;
	Size		bytes;			/* in use, all of it */
	MemoryContext context;
};

LocalDictionary *local_dictionary(const Dictionary *base);

/* The code of an image in either, which may be NULL; NO_CODE: in neither. */
int32		entries_find(const Dictionary *base, const LocalDictionary *local, const char *image, uint32 len);

/* NO_CODE: too many values. */
int32		local_code(LocalDictionary *local, const char *image, uint32 len);

/* Entries of both; either may be NULL. */
static inline uint32
local_nentries(const Dictionary *base, const LocalDictionary *local)
{
	return (base != NULL ? base->nentries : 0) + (local != NULL ? local->nadded : 0);
}

/* The image of any code below their number. */
static inline const char *
local_entry(const Dictionary *base, const LocalDictionary *local, uint32 code)
{
	uint32		nbase = local_nentries(base, NULL);

	return code < nbase ? dictionary_entry(base, code) : local->entries[code - nbase];
}

/* References: a version holds its columns' dictionaries. */
void		dictionary_hold(uint64 dictionary);
void		dictionary_drop(uint64 dictionary);

}  // namespace gpuvm

#endif
