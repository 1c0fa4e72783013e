/*
 * join_filter.h: which levels of a join leave out rows of cursor 0 by one key alone, so that an engine may hold the rows against the
 * inner side's keys before anything else is made of them: a row that such a level has no partner for comes to nothing.
 */
#ifndef GPUVM_VM_JOIN_FILTER_H
#define GPUVM_VM_JOIN_FILTER_H

#include "vm/code_map.h"
#include "vm/join_split.h"
#include "vm/value_range.h"

namespace gpuvm {

/*
 * Per level: cursor 0's column that its one key, of an integer type or Bool, is (be it widened), or -1. What stands before the level must
 * not raise errors: then the rows that it leaves out would have to be run as far as there.
 */
std::vector<int> filter_columns(const JoinSplit &split);

/* Cursor 0's column that the lanes' first key of a level is (be it widened), or -1. */
int			key_column(const JoinSplit &split, size_t level);

/* What brings a level's key: a result of the program over a cursor before it (`first` or a build program); of cursor -1: it is computed on the way. */
struct KeySource
{
	int			cursor, result;
};
KeySource	key_source(const JoinSplit &split, size_t level, size_t key);

/* Values of a column from `lo` to `hi`; nulls are not among them. */
struct ColumnInterval
{
	int			column;
	int64_t		lo, hi;			/* lo > hi: none */
};

/* A row program of one cursor that only leaves out rows, by intervals of integer columns, and hands on columns. */
struct PlainRows
{
	std::vector<ColumnInterval> kept;	/* what a row has to be in: one for each column that matters */
	std::vector<int> results;	/* columns; integers may have been widened */
};

/* The column that result `c` of a row program is; -1 if it is computed, but for integers that were widened. */
int			result_column(const Program *program, int c);

/* Is the program one? `columns` as in analyze_ranges(). */
bool		plain_rows(const Program *program, const ParamValue *params, const ValueRange *columns, PlainRows *rows);

/* May some operation set an error? `columns` as in analyze_ranges(). */
bool		may_raise(const Program *program, const ParamValue *params, const ValueRange *columns, const CodeMap *maps);

}  // namespace gpuvm

#endif
