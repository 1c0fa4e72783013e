/* source_internal.h: between source.cc and source_columns.cc, which has what is declared here. */
#ifndef GPUVM_EXECUTOR_SOURCE_INTERNAL_H
#define GPUVM_EXECUTOR_SOURCE_INTERNAL_H

#include "executor/scan_state.h"

namespace gpuvm {

/* The number that a leaf gives to a column of the partitioned table. */
AttrNumber	leaf_attnum(const ScanSource *source, const ScanLeaf *leaf, AttrNumber attnum);

/* Of a column by its place in the tablets: the longest dictionary of all leaves, nullptr if it has none. */
const Dictionary *source_dictionary(const ScanSource *source, int column);

/* Are the columns that the plan takes for those of variable length still such ones? */
bool		same_variables(const ScanPlan *plan, const ScanSource *source);
/* Have the numerics that the plan reads the scales that it was made for? */
bool		same_scales(const ScanPlan *plan, const ScanSource *source);
/* Is the column of one type in all leaves' tablets? */
bool		is_one_type(const ScanSource *source, uint32 column);
/* Have all leaves' tablets as many columns, and those that are wanted of the same types? */
bool		same_types(const ScanSource *source, const bool *wanted);

/* Which columns the plan's programs read, by their numbers in the tablets; false when one is not there. */
bool		wanted_columns(GpuvmScanState *state, const ScanSource *source, bool *wanted);
/* Whole rows that are in no heap are put together from their columns: are all there, if the plan hands them out? */
bool		has_whole_rows(const ScanPlan *plan, const ScanSource *source);
/* The number of one of the wanted columns that has not one code for each value in all leaves; -1: all have. */
int			mixed_column(const ScanSource *source, const bool *wanted);

}  // namespace gpuvm

#endif
