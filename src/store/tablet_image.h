/*
 * tablet_image.h: rows as one bytea, column by column, which says itself what it holds.
 *
 * A column that the table got later has no place in it, and one that was dropped is passed over. Values lie as in a
 * heap tuple (short headers, alignment), detoasted, or narrow (tablet_narrow.h); nulls take a bit.
 */
#ifndef GPUVM_STORE_TABLET_IMAGE_H
#define GPUVM_STORE_TABLET_IMAGE_H

#include "pg/pg.h"

extern "C" {
#include "access/tupdesc.h"
#include "nodes/bitmapset.h"
}

namespace gpuvm {

/* A row's number fits the second part of a ctid, counted from 1. */
constexpr uint32 IMAGE_MAX_ROWS = 65535;

/* So large a one is stored, with fewer rows. */
constexpr Size IMAGE_ENOUGH = 8 * 1024 * 1024;

struct ImageBuilder;

/* All that it allocates is in the current memory context. */
ImageBuilder *image_builder(TupleDesc desc);
void		image_add(ImageBuilder *builder, const Datum *values, const bool *nulls);
uint32		image_rows(const ImageBuilder *builder);

/* Bytes of the values, which count as they are, not as they are stored. */
Size		image_values_size(const ImageBuilder *builder);

/* Is it to be taken before another row is added? */
bool		image_is_full(const ImageBuilder *builder);

/* The builder's, until the next one is taken; the builder is empty afterwards. */
bytea	   *image_take(ImageBuilder *builder);

struct ImageReader;

/* wanted: the columns that are read, the others are null; NULL: all. `desc` and `wanted` live as long as the reader. */
ImageReader *image_reader(TupleDesc desc, const Bitmapset *wanted, const char *table);

/*
 * Reads this image from here on: with a 4-byte header, MAXALIGNed, alive as long as its values are used. So is the current memory
 * context, which narrow columns are widened in.
 */
void		image_start(ImageReader *reader, const bytea *image);

/* The next row, values in the image; false at the end. */
bool		image_next(ImageReader *reader, Datum *values, bool *nulls);

}  // namespace gpuvm

#endif
