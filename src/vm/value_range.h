/*
 * value_range.h: what is known about a register's values before a row is read.
 *
 * Interval analysis over zone maps. From the table-wide summaries it proves
 * which operations cannot overflow (they run unchecked), which registers are
 * never null, how many slots a dense group table needs and which grid a float
 * sum fits; from one tablet's zone maps, whether any row of it can reach a sink.
 * A range speaks of non-null values of rows that computed the register: what
 * lies under a null, or on a lane that was jumped over, may be anything.
 */
#ifndef GPUVM_VM_VALUE_RANGE_H
#define GPUVM_VM_VALUE_RANGE_H

#include <vector>

#include "tablet/format.h"
#include "vm/program.h"

namespace gpuvm {

struct CodeMap;

struct ValueRange
{
	Type		type;
	bool		may_null;
	bool		may_value;		/* may be non-null */
	bool		may_true;		/* Bool */
	bool		may_false;
	bool		may_nan;		/* floats */
	bool		may_inf;
	int			exp_lo;			/* finite floats are multiples of 2^exp_lo, */
	int			exp_hi;			/* and at most 2^exp_hi in magnitude */
	int64_t		lo;				/* integers */
	int64_t		hi;
	double		flo;			/* finite floats */
	double		fhi;
};

ValueRange	full_range(Type type);	/* any value of it */
ValueRange	column_range(const ColumnSummary &column);
ValueRange	column_range(const ColumnChunk &chunk);

/* The reverse, for columns of what a program left: its values are of `type`, as wide as results are. `nullable`: even if the range has no null. */
ColumnSummary range_summary(const ValueRange &range, Type type, bool nullable);

/*
 * Ranges of all registers of a verified program. `columns` are those of the
 * columns that it reads, by column number. errors[address] gets the ErrorBits
 * that the operation may set. Without maps, whatever Lookup's type may hold is expected.
 */
void		analyze_ranges(const Program *program, const ParamValue *params, const ValueRange *columns,
						   ValueRange *regs, uint32_t *errors, const CodeMap *maps = nullptr);

/*
 * Of the result columns of a verified grouped program that takes in at most so many rows. `regs`: as
 * above; nullptr: nothing is known of them.
 */
void		group_ranges(const Program *program, const ValueRange *regs, uint64_t rows, ValueRange *results);

/* What decides whether rows of a verified program reach a sink: these operations alone are looked at for every tablet of a job. */
struct SinkPath
{
	std::vector<uint16_t> ops;	/* addresses, ascending */
	bool		always = true;	/* nothing ever leaves it */
};

/* `errors`: as analyze_ranges() has them for columns that no tablet adds anything to. */
SinkPath	sink_path(const Program *program, const uint32_t *errors);

/* Can a row of these chunks, a tablet's, reach a sink, or an operation that may raise? */
bool		may_reach_sink(const Program *program, const SinkPath &path, const ParamValue *params, const ColumnChunk *chunks, const CodeMap *maps);

}  // namespace gpuvm

#endif
