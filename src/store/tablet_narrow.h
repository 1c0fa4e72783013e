/*
 * tablet_narrow.h: a column's values that are passed by value in fewer bytes: the least of them, and what each is above it.
 *
 * They are taken for integers, whatever their type, so they come back to the last bit.
 */
#ifndef GPUVM_STORE_TABLET_NARROW_H
#define GPUVM_STORE_TABLET_NARROW_H

#include <cstddef>
#include <cstdint>

namespace gpuvm {

struct NarrowForm
{
	int64_t		base;
	int			width;			/* bytes of a value; the type's own: they stay as they are */
};

/* For n values of `len` bytes: 1, 2, 4 or 8. */
NarrowForm	narrow_form(const void *values, size_t n, int len);

/* Bytes of all, with their base, where the form is narrower. */
size_t		narrow_size(const NarrowForm &form, size_t n);
void		narrow_values(const void *values, size_t n, int len, const NarrowForm &form, void *to);

/* Both arrays are aligned for any type. */
void		widen_values(const void *from, size_t n, int width, int len, void *to);

}  // namespace gpuvm

#endif
