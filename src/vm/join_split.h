/*
 * join_split.h: a join program cut into programs of one cursor, which the CPU
 * virtual machine runs as any other.
 *
 * An item is a value that goes from one of these programs to a later one: a
 * column of some cursor, or a computed register. The main pipeline is cut at
 * every Seek, SeekRange and Cross, and at every Match but an inner one:
 *
 *   first      what stands before the first Seek or Cross: a row program over
 *              cursor 0, whose Result is levels[0].carried
 *   for each further cursor, a level:
 *   build      a row program over the cursor: its own pipeline and then, as
 *              Result, the keys and the level's payload. For Cross: what reads
 *              nothing but the cursor, as far as it stands directly behind Cross (not
 *              of Full), and values further behind, if they may be moved
 *   condition  not inner: what stands before Match, over a vector of pairs; the
 *              lanes that live at its end have matched. Absent if nothing does
 *   tail       what stands behind Match (inner: behind Seek or Cross), over a
 *              vector of pairs: a row program whose Result is the next level's
 *              `carried`, or the program's own end
 *
 * What reads nothing but the outer side of a Cross may stand in the program before it.
 *
 * The columns of condition and tail are items: carried ones, and payload.
 * Constants are repeated wherever they are used.
 */
#ifndef GPUVM_VM_JOIN_SPLIT_H
#define GPUVM_VM_JOIN_SPLIT_H

#include <vector>

#include "vm/program.h"

namespace gpuvm {

/* JoinItem.column of a row's position */
constexpr int ROW_POSITION = -1;

struct JoinItem
{
	int			reg;			/* of the join program; -1: a column */
	int			cursor;			/* whose column, */
	int			column;			/* its number, or ROW_POSITION */
	Type		type;
	int			level;			/* where it comes to be: cursors 0 .. level are positioned there */
	bool		payload;		/* it comes with the rows of cursor `level`, not from a tail */
	Opcode		made = Opcode::Column;	/* what makes it of the column: not Column: TextMatch or TextPart, */
	int64_t		p4 = 0;			/* with this p4 */
};

struct JoinStage
{
	std::vector<uint64_t> sealed;	/* empty: there is no such stage */
	std::vector<int> columns;	/* condition and tail: the item that is column i */
	bool		moved = false;	/* what stood in a loop behind it is in it */

	bool		present() const { return !sealed.empty(); }
	const Program *program() const { return reinterpret_cast<const Program *>(sealed.data()); }
};

struct JoinLevel
{
	JoinKind	kind;
	bool		sought;			/* or crossed */
	int32_t		range;			/* sought by SeekRange: its RangeFlag bits; or 0 */
	std::vector<Type> key_types;
	std::vector<int> probe;		/* per key its place in `carried`; of SeekRange the bounds that are given, the lower first */
	std::vector<int> carried;	/* items that come in */
	std::vector<int> payload;	/* items that the cursor's rows have; in build's Result behind the keys */
	JoinStage	build;
	JoinStage	condition;
	JoinStage	tail;
};

struct JoinSplit
{
	std::vector<JoinItem> items;
	JoinStage	first;
	std::vector<JoinLevel> levels;
	const char *failure = nullptr;	/* why the program cannot be cut: it exceeds a limit */
};

/*
 * `program` is verified and has more than one cursor. `moves`: what reads one side of a loop alone goes to that side's program, where
 * it runs for rows that might never have come to it; so nothing may be in `first` and in builds, if they say `moved`, that may set an error.
 * Throws std::bad_alloc.
 */
void		split_join(const Program *program, JoinSplit *split, bool moves);

}  // namespace gpuvm

#endif
