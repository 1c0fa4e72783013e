/*
 * set_arms.h: the programs whose rows become one result set (derived_set.cc), and what their codes are of (set_codes.cc).
 */
#ifndef GPUVM_EXECUTOR_SET_ARMS_H
#define GPUVM_EXECUTOR_SET_ARMS_H

#include "executor/scan_state.h"

namespace gpuvm {

/* What a result column of an arm's program holds. */
struct ArmValue
{
	int			column;			/* -1: nothing that a set can have */
	int			high;			/* of its high halves, or -1 */
	OutputKind	kind;			/* Plain, Numeric, Dictionary, Variable, or Map: of a constant */
	int			scale;
};

constexpr ArmValue NO_VALUE = {-1, -1, OutputKind::Plain, 0};

/* Adds the arms, which are GpuvmScanStates; false if the rows come from anything else, too. */
bool		list_arms(PlanState *ps, List **arms);
/* Of an attribute of the scan tuple. */
ArmValue	scan_value(const GpuvmScanState *scan, AttrNumber attnum);
/* The form of the source's column i. */
ChildColumn column_form(const ScanSource *source, uint32 i);

/* derived.cc: what dictionaries begin with that are no table's: nothing. */
const Dictionary *empty_dictionary(void);

/* -- set_codes.cc -- */

/* Can each column have the codes of one dictionary in all arms? The arms, and their sinks, are in the order in which they are to run then. */
bool		agree_on_codes(const ScanSource *source, List *arms, SetSink *sinks);
/* The source's columns have no entries yet. */
void		begin_codes(ScanSource *source);
/* Before an arm runs: what its constants' codes are to be of. */
void		begin_arm_codes(ScanSource *source, const GpuvmScanState *arm, SetSink *sink);
/* The program gives its constants those codes; false: one cannot have any. */
bool		put_constant_codes(const GpuvmScanState *state, const SetSink *sink, Program *program);
/* After it has run: its entries are the source's. False: they are others than those that there are. */
bool		take_codes(ScanSource *source, const GpuvmScanState *arm, const SetSink *sink);

}  // namespace gpuvm

#endif
