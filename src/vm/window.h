/*
 * window.h: window functions over the rows of a sorted result set, for every engine.
 *
 * A window job (engine/abi.h) appends columns to a set, one for each function, or two for a sum or an extreme in
 * halves (tablet/wide_halves.h): the low ones, then the high ones. The set is sorted by the partition keys and, within
 * partitions, by the order keys; what is computed is what PostgreSQL's WindowAgg computes of the rows in that order:
 *   - Rows are of one partition, or peers, if none of the keys tells them apart: nulls are equal, so are -0 and 0, and
 *     NaNs. Without order keys all rows of a partition are peers. Codes with a map of ranks are compared by rank; one
 *     without a rank is a null. References with a text order are compared by it; without one as integers, so that
 *     equal values must have equal ones (TextKey).
 *   - A frame is rows [head, tail) of the partition. One whose end lies before its start is empty.
 *   - Lag, Lead, FirstValue, LastValue and NthValue hand on a value of any type, references included.
 *   - Sum, Min, Max, BoolAnd and BoolOr leave out nulls, and give null if nothing is left. Sums of floats are exact and
 *     rounded once (float_sum.h). avg(x) is Sum and Count, which the backend divides.
 *   - EXCLUDE, IGNORE NULLS and arguments that differ from row to row where a constant is expected are not supported.
 *
 * Errors: ERR_INT_OVERFLOW, a sum or half that does not fit; ERR_SUM_OVERFLOW and ERR_AMBIGUOUS_ZERO, as aggregates
 * have them; ERR_DATETIME_RANGE, a RANGE bound that is no date or timestamp.
 */
#ifndef GPUVM_VM_WINDOW_H
#define GPUVM_VM_WINDOW_H

#include "core/types.h"
#include "vm/code_map.h"
#include "vm/text_order.h"

namespace gpuvm {

constexpr uint32_t WINDOW_MAX_FUNCTIONS = 32;
constexpr uint32_t WINDOW_MAX_RESULTS = 2 * WINDOW_MAX_FUNCTIONS;	/* columns */
constexpr uint32_t WINDOW_NONE = UINT32_MAX;	/* no column, no map */

enum class WindowFn : uint8_t
{
	RowNumber = 0,				/* I64, as the next two */
	Rank = 1,
	DenseRank = 2,
	PercentRank = 3,			/* F64 */
	CumeDist = 4,				/* F64 */
	Ntile = 5,					/* I32 */
	Lag = 6,					/* the argument's type, as the next four */
	Lead = 7,
	FirstValue = 8,
	LastValue = 9,
	NthValue = 10,
	Count = 11,					/* I64; without an argument count(*) */
	Sum = 12,					/* of integers I64 or halves, of floats F64 */
	Min = 13,					/* the argument's type */
	Max = 14,
	BoolAnd = 15,				/* Bool */
	BoolOr = 16,
};

enum class FrameMode : uint8_t
{
	Rows = 0,
	Range = 1,
	Groups = 2,
};

enum class FrameBound : uint8_t
{
	Unbounded = 0,				/* PRECEDING as a start, FOLLOWING as an end */
	CurrentRow = 1,
	Preceding = 2,				/* by an offset */
	Following = 3,
};

/* What a RANGE offset is added to. */
enum class RangeUnit : uint8_t
{
	Number = 0,					/* integers, scaled ones included, and floats */
	Date = 1,					/* I32; days */
	Timestamp = 2,				/* I64; microseconds */
};

/*
 * ROWS and GROUPS: offsets are numbers of rows or groups. RANGE: a distance in the order column's values, as an integer
 * or, of floats, as the bits of a double. No offset is negative or NaN: PostgreSQL raises, so the job is refused.
 */
struct WindowFrame
{
	FrameMode	mode;
	FrameBound	start;
	FrameBound	end;
	RangeUnit	unit;
	uint32_t	reserved;
	int64_t		start_offset;
	int64_t		end_offset;
};
static_assert(sizeof(WindowFrame) == 24, "sent between processes");

struct WindowFunction
{
	WindowFn	fn;
	Type		type;			/* of the result; I128: halves */
	uint8_t		has_default;	/* Lag, Lead: of rows outside the partition; else null */
	uint8_t		reserved;
	uint32_t	column;			/* the argument */
	uint32_t	high;			/* Sum, Min, Max: the high halves of which `column` has the low ones */
	uint32_t	filter;			/* Count ... BoolOr: a Bool; rows where it is not true are left out */
	uint32_t	map;			/* Min, Max: the argument is codes, compared by the ranks of this map */
	uint32_t	reserved1;
	int64_t		number;			/* Ntile: buckets; NthValue: which; both at least 1. Lag, Lead: rows, may be negative */
	int64_t		default_value;	/* as in ParamValue */
};
static_assert(sizeof(WindowFunction) == 40, "sent between processes");

struct WindowKey
{
	uint32_t	column;
	bool		desc;
	bool		nulls_first;
	const CodeMap *ranks;		/* of codes; nullptr: values are compared as they are */
	const TextOrder *text;		/* of references; nullptr: likewise */
};

/* Points to what outlives it. */
struct WindowSpec
{
	const WindowKey *keys;		/* partition keys, then order keys */
	uint32_t	npartition;
	uint32_t	norder;
	WindowFrame	frame;
	const WindowFunction *functions;
	uint32_t	nfunctions;
	const CodeMap *maps;
	uint32_t	nmaps;
};

/* Does the specification fit rows with such columns? Returns nullptr, or what is wrong. */
const char *check_window(const WindowSpec &spec, const Type *types, uint32_t ncols);

/* The types of the columns that a function appends; how many there are. */
int			window_result_types(const WindowFunction &function, Type *types);

inline bool
takes_filter(WindowFn fn)
{
	return fn >= WindowFn::Count;
}

/* Does it hand on a value of some row? */
inline bool
picks_value(WindowFn fn)
{
	return fn >= WindowFn::Lag && fn <= WindowFn::NthValue;
}

/* Is it of the frame, not of the partition? */
inline bool
asks_frame(WindowFn fn)
{
	return fn >= WindowFn::FirstValue;
}

inline bool
has_offset(FrameBound bound)
{
	return bound == FrameBound::Preceding || bound == FrameBound::Following;
}

/* Does such a bound depend on peers? */
inline bool
asks_peers(FrameMode mode, FrameBound bound)
{
	return mode != FrameMode::Rows && bound != FrameBound::Unbounded;
}

/* Does any function, or the frame of one, ask for peers? */
bool		asks_peers(const WindowSpec &spec);

}  // namespace gpuvm

#endif
