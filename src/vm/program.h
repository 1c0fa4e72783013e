/*
 * program.h: what the compiler produces and every engine runs.
 *
 * A program is a flat list of operations: host opcodes, then one pipeline
 * between Parallel and Converge (joins: several), then Finish. Addresses are
 * indexes into the list; jumps go forward only, to an address not past the
 * pipeline's Converge.
 *
 * Registers are virtual, three-address, and written once in program order
 * (`Select` and `Coalesce` merge the two sides of a branch). A register has one
 * Type for the whole program, given by the operation that writes it. Each engine
 * lowers registers as it likes.
 *
 * Control is by lanes, as in Bakkum and Skadron. Every lane (row) starts live.
 *   COMPARE and BRANCH with target p3: lanes whose condition holds (or, with
 *     JUMP_IF_NULL in p5, is null) leave. p4 = VERDICT_DIES: the row is not in
 *     the result. p4 = VERDICT_JUMPS: the lane is pending at p3 and live again
 *     from there on.
 *   COMPARE with COMPARE_STORES in p5: no jump; p3 is the Bool register that
 *     takes the three-valued result.
 * An operation's error counts only on lanes that are live and whose operands
 * are not null. A register read on a lane that never wrote it (it was jumped
 * over) is unspecified but harmless: AND, OR and CASE select the other side.
 * At Group, AggStep and Result only live lanes take part.
 *
 * The form of an opcode says what its operands are (dst: written register, src:
 * read register):
 *   TABLE     p1 relation index, p3 cursor
 *   RESCOL    p1 result column, p4 offset of its name in the names area
 *   AGGOPEN   p1 number of group keys, p2 number of aggregates,
 *             p3 aux index of ResultSource[number of result columns]
 *   PARALLEL  p1 number of cursors, p2 cursor that drives, p3 address of Converge
 *   COLUMN    p1 dst, p2 column of the cursor, p3 cursor
 *   ROWID     p1 dst, p3 cursor
 *   IMM32     p1 dst, p2 value        IMM64  p1 dst, p4 value       IMMNULL p1 dst
 *   VARIABLE  p1 dst, p2 parameter index
 *   CAST      p1 dst (type), p2 src (Type in p5)
 *   UNARY     p1 dst, p2 src, both of `type`; UNARY_IL: src I32, dst I64; UNARY_LI the reverse
 *   BINARY    p1 dst, p2 src, p3 src, all of `type`
 *   SHIFT     p1 dst, p2 src of `type`, p3 src of I32
 *   FIELD     p1 dst, p2 src, p3 DateField
 *   LOOKUP    p1 dst, p2 map index, p3 src I32, p5 LOOKUP_NULL
 *   ZONE      p1 dst, p2 map index, p3 src
 *   LOGIC1/2  Bool
 *   NULLTEST  p1 dst Bool, p2 src of `type`
 *   DISTINCT  p1 dst Bool, p2 src, p3 src of `type`
 *   TEXTMATCH p1 dst Bool, p2 column of the cursor (I64, of variable length), p3 cursor, p4 pattern index
 *   TEXTPART  p1 dst, p2 column of the cursor (I64, of variable length), p3 cursor, p4 TextPart (vm/text_part.h)
 *   TEXTKEY   p1 dst, p2 src (a reference to a value of variable length), p3 length of all values, -1 for varlenas
 *   TEXTCOMPARE p1 dst, p2 src, p3 src (references to values of variable length), p4 text order
 *   IN        p1 dst Bool, p2 src of `type`, p3 aux index, p4 count (>= 1), p5 IN_HAS_NULL
 *   COMPARE   p1 src, p2 src of `type`, p3 target or dst, p4 verdict, p5 flags
 *   BRANCH    p1 src Bool, p3 target, p4 verdict, p5 flags
 *   JUMP      p3 target; every live lane becomes pending there
 *   COPY      p1 dst, p2 src
 *   SELECT    p1 dst, p2 src, p3 src, of `type`; p4 src Bool (null counts as false)
 *   PICK      p1 dst, p2 src, p3 src, of `type`
 *   GROUP     p1 number of keys, p2 aux index of the key registers
 *   AGGSTEP   p1 aggregate, p2 src of `type` (-1 for CountStar), p3 src Bool filter or -1, p5 AggFn; p4 src of MinWide and MaxWide, text order of MinText and MaxText, else 0
 *   RESULT    p1 first of p2 consecutive registers
 *   HASHOPEN  p1 hash table, which is its cursor's number, p2 number of keys (>= 1), p3 HASH_SORTED or 0
 *   HASHINSERT p1 hash table, p2 number of keys, p3 aux index of the key registers
 *   SEEK      p1 cursor, p2 number of keys, p3 aux index of the registers to look up
 *   SEEKRANGE p1 cursor, p2 RangeFlag bits, p3 aux index of two registers: lower and upper bound, -1 for the one that is not given
 *   CROSS     p1 cursor
 *   MATCH     p1 cursor, p2 JoinKind
 *
 * A program ends in rows (Result) or in groups (AggOpen ... AggStep): not both.
 * With groups, the result columns are taken from the keys and the aggregates as
 * ResultSource says. Without Group there is one group, present even when no row
 * is; with Group, only groups that a live row has.
 *
 * Joins. A program of several cursors describes one point of the product of its
 * tables, as in Angstadt and Harcourt. Cursor 0 drives its main pipeline, the
 * last one; the others are positioned there one after the other, in order:
 *
 *   (Seek | SeekRange | Cross) k
 *                      from here on every lane stands for a pair, of what it was
 *                      before and a row of cursor k, whose columns can be read
 *   ...                the join condition; a lane that dies is a pair that does not match
 *   Match k            Inner: pairs go on. Left: a lane of before Seek or Cross
 *                      that no pair is left of goes on, too, once and with nulls in
 *                      cursor k's columns. Semi: a lane that some pair is left of
 *                      goes on once. Anti: one that none is left of goes on once.
 *                      Full: as Left, and every row of cursor k that no pair of any
 *                      lane is left of goes on, too, once and with nulls in the
 *                      columns of all cursors before
 *
 * Between the two there are value operations and jumps, and a jump may not lead
 * out of them, into them or over them, but up to Match itself (VERDICT_DIES and
 * Invalid are no jumps). A lane that Left, Semi or Anti lets go on has no pair of
 * its own: registers written between the two must not be read behind such a Match;
 * behind that of Full no register that was written before it, constants included.
 * Columns of a Left or Full cursor can be fetched there again, those of Semi and Anti cannot.
 *
 * A cursor that is sought has a hash table (HashOpen) and a pipeline of its own
 * before the main one: Parallel with that cursor driving, value operations on its
 * columns, HashInsert as the last operation. Dead rows are not inserted. Registers
 * belong to their pipeline. Keys are equal as PostgreSQL's = says: NaN is NaN, -0
 * is 0; a null equals nothing. Keys have one type on both sides. A sorted table has one
 * key and is sought by SeekRange: in the order of PostgreSQL's btree, where NaN is above
 * all and equals itself; a null, of a row or of a bound, lies in no range.
 *
 * Maps. A job brings tables of values (CodeMap, vm/code_map.h) that Lookup indexes by codes of a
 * dictionary. A null code gives null, or with LOOKUP_NULL the entry behind the last; a
 * code outside of the map gives null.
 *
 * A zone table (ZoneTable, vm/zone_table.h) is such a map of I64: times at which what is to be added to
 * a timestamp changes, and what that is from each of them on.
 *
 * Patterns. A job brings what TextMatch compares values of variable length with (vm/text_match.h). It reads
 * the column itself, as Column does, and wherever Column may; a null value gives null, and a null pattern nulls.
 * TextPart reads it as TextMatch does. Its error counts where it is read: of an inner cursor, of every row that its quals leave.
 * TextKey takes references, which are columns of variable length, and makes the same one of all that lead to the same
 * bytes: then Group, Seek and = compare values by comparing integers. Of a job, not of a pipeline: so keys of two
 * cursors can meet. Which value's reference it is differs from run to run.
 *
 * TextCompare, MinText and MaxText take references, too; the latter give the one that leads to the least or greatest value.
 *
 * Errors count as ever on lanes that live: a row that is inserted or drives, or a
 * pair that the operations before have left. Rowid has to be I64 there.
 */
#ifndef GPUVM_VM_PROGRAM_H
#define GPUVM_VM_PROGRAM_H

#include "core/types.h"

namespace gpuvm {

enum class Opcode : uint16_t
{
#define GPUVM_OPCODE(name, form, types, errors, synopsis) name,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
	Count_
};

/* FNV-1a; `hash` is what came before. */
constexpr uint32_t
hash_text(uint32_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ static_cast<uint8_t>(*text)) * 16777619u;
	return hash;
}

/*
 * The instruction set as a number: which opcodes there are, in which order, of which forms and types. It is a part of what processes and
 * libraries of two builds know each other by, so that none takes another's programs for its own where nobody has counted a version up.
 */
constexpr uint32_t INSTRUCTION_SET = hash_text(2166136261u,
#define GPUVM_OPCODE(name, form, types, errors, synopsis) #name " " #form " " types "\n"
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
);

enum class OpForm : uint8_t
{
	TABLE, RESCOL, AGGOPEN, PARALLEL, CONVERGE, FINISH,
	COLUMN, ROWID, IMM32, IMM64, IMMNULL, VARIABLE, CAST,
	UNARY, UNARY_IL, UNARY_LI, BINARY, SHIFT, FIELD, LOOKUP, ZONE,
	LOGIC1, LOGIC2, NULLTEST, DISTINCT, TEXTMATCH, TEXTPART, TEXTKEY, TEXTCOMPARE, IN,
	COMPARE, BRANCH, JUMP, INVALID, COPY, SELECT, PICK,
	GROUP, AGGSTEP, RESULT,
	HASHOPEN, HASHINSERT, SEEK, SEEKRANGE, CROSS, MATCH
};

struct OpcodeInfo
{
	const char *name;
	OpForm		form;
	const char *types;
	uint32_t	errors;
	const char *synopsis;
};

/* Indexed by Opcode. */
extern const OpcodeInfo opcode_info[];

enum : int64_t
{
	VERDICT_DIES = 0,
	VERDICT_JUMPS = 1,
};

enum OpFlag : uint8_t			/* p5 of COMPARE and BRANCH */
{
	COMPARE_STORES = 1,			/* COMPARE only */
	JUMP_IF_NULL = 2,
};

enum : uint8_t
{
	IN_HAS_NULL = 1,			/* p5 of IN */
};

enum : uint8_t
{
	LOOKUP_NULL = 1,			/* p5 of LOOKUP: nulls have an entry of their own, behind the others */
};

enum : int32_t
{
	HASH_SORTED = 1,			/* p3 of HASHOPEN */
};

enum RangeFlag : int32_t		/* p2 of SEEKRANGE; at least one bound is given */
{
	RANGE_LO = 1,
	RANGE_HI = 2,
	RANGE_LO_STRICT = 4,		/* the bound itself is out */
	RANGE_HI_STRICT = 8,
};

enum class JoinKind : int32_t	/* p2 of MATCH */
{
	Inner = 0,
	Left = 1,
	Semi = 2,
	Anti = 3,
	Full = 4,
};

/*
 * Aggregate functions. Every one has init, step, merge and final; merge is
 * associative and commutative, so any split of the rows gives the same bits.
 */
enum class AggFn : uint8_t
{
	CountStar = 0,				/* I64 */
	Count = 1,					/* I64: rows where the argument is not null */
	Sum = 2,					/* integers: I128, exact. Floats: F64, the exact sum rounded once
								 * (rule 15). Null when no argument was non-null */
	Min = 3,					/* the argument's type; null when empty */
	Max = 4,
	BoolAnd = 5,				/* Bool; null when empty */
	BoolOr = 6,
	BitAnd = 7,					/* integers; null when empty */
	BitOr = 8,
	BitXor = 9,
	AnyValue = 10,				/* the argument's type, its bits: what all rows of the group have; null when all are. Where they
								 * have not the same, something of theirs (AggMachine), the same for any split of the rows */
	MinWide = 11,				/* I128: the least, and the greatest, of p2 * 2^62 + p4 (tablet/wide_halves.h), of rows where neither is null */
	MaxWide = 12,
	MinText = 13,				/* I64: the reference of the least, and the greatest, value by text order p4 (vm/text_order.h); null when empty */
	MaxText = 14,
};

constexpr int PROGRAM_MAX_TEXT_ORDERS = 8;

constexpr bool
agg_is_wide(AggFn fn)
{
	return fn == AggFn::MinWide || fn == AggFn::MaxWide;
}

constexpr bool
agg_is_text(AggFn fn)
{
	return fn == AggFn::MinText || fn == AggFn::MaxText;
}

constexpr Type
agg_result_type(AggFn fn, Type arg)
{
	return fn == AggFn::CountStar || fn == AggFn::Count ? Type::I64
		: fn == AggFn::Sum ? (type_is_float(arg) ? Type::F64 : Type::I128)
		: agg_is_wide(fn) ? Type::I128
		: arg;
}

/* What the machines compute in its place: AnyValue is an extreme, of floats the bits that some row has. */
struct AggMachine
{
	AggFn		fn;
	Type		type;
};

constexpr AggMachine
agg_machine(AggFn fn, Type arg)
{
	if (fn != AggFn::AnyValue)
		return AggMachine{fn, arg};
	return arg == Type::Bool ? AggMachine{AggFn::BoolOr, arg}
		: arg == Type::F32 ? AggMachine{AggFn::BitOr, Type::I32}
		: arg == Type::F64 ? AggMachine{AggFn::BitOr, Type::I64}
		: AggMachine{AggFn::Max, arg};
}

/* Where a result column of a grouped program comes from. */
enum : int64_t
{
	RESULT_FROM_AGG = 1LL << 32,	/* | aggregate index; otherwise a key index */
	RESULT_REST = 1LL << 40,		/* times 1 or 2: of a sum of floats, what is left when so many columns as it rounds to are taken away */
};

constexpr int MAX_RESULT_REST = 2;
constexpr int result_rest(int64_t source) { return static_cast<int>(source >> 40); }
constexpr int result_agg(int64_t source) { return static_cast<int>(source & 0xffffffff); }

struct Op
{
	Opcode		opcode;
	Type		type;
	uint8_t		p5;
	int32_t		p1;
	int32_t		p2;
	int32_t		p3;
	int64_t		p4;
};
static_assert(sizeof(Op) == 24, "sent between processes");

/* Is it a function of the mathematical library, which is not the same on a device? */
constexpr bool
is_library_function(Opcode o)
{
	return o >= Opcode::Exp && o <= Opcode::Atan2;
}

/* Does it look at the values of column p2 of cursor p3, which is of variable length? */
inline bool
reads_text(const Op &op)
{
	return op.opcode == Opcode::TextMatch || op.opcode == Opcode::TextPart;
}

/* Does it compare values of variable length by text order p4? */
inline bool
orders_texts(const Op &op)
{
	return op.opcode == Opcode::TextCompare || (op.opcode == Opcode::AggStep && agg_is_text(static_cast<AggFn>(op.p5)));
}

/* Does it read column p2 of cursor p3? */
inline bool
reads_column(const Op &op)
{
	return op.opcode == Opcode::Column || reads_text(op);
}

/* Of what type has that column to be? */
inline Type
column_type(const Op &op)
{
	return reads_text(op) ? Type::I64 : op.type;
}

constexpr uint32_t PROGRAM_MAGIC = 0x50565047;	/* "GPVP" */
constexpr int PROGRAM_MAX_OPS = 512;
constexpr int PROGRAM_MAX_REGS = 256;
constexpr int PROGRAM_MAX_AUX = 4096;
constexpr int PROGRAM_MAX_NAMES = 16384;
constexpr int PROGRAM_MAX_PARAMS = 64;
constexpr int PROGRAM_MAX_COLUMNS = 128;	/* result columns, also keys + aggregates */
constexpr int PROGRAM_MAX_CURSORS = 8;
constexpr int PROGRAM_MAX_MAPS = 32;
constexpr int PROGRAM_MAX_PATTERNS = 64;
constexpr int TEXT_KEY_MAX_LENGTH = 1 << 10;	/* of values that all have one length */
constexpr uint32_t MAP_MAX_ENTRIES = 1u << 24;

/*
 * The sealed form: this header, then Op[nops], int64[naux], char[names_len].
 * Position-independent, sent through the arena, hashed for quarantine and
 * caches. gpuvmd copies it before it verifies it.
 */
struct Program
{
	uint32_t	magic;
	uint32_t	size;			/* bytes in all */
	uint16_t	nops;
	uint16_t	nregs;
	uint16_t	nresults;		/* result columns */
	uint16_t	nkeys;
	uint16_t	naggs;
	uint16_t	nparams;
	uint16_t	ncursors;
	uint16_t	parallel;		/* address of Parallel, of the main pipeline where there are several */
	uint16_t	converge;		/* address of its Converge */
	uint16_t	grouped;		/* 1: ends in groups (AggOpen), 0: in rows */
	uint32_t	naux;
	uint32_t	names_len;
	uint16_t	nmaps;			/* that Lookup and ZoneShift read */
	uint16_t	npatterns;		/* that TextMatch matches with */
	uint64_t	hash;			/* of everything after this field */

	const Op   *ops() const { return reinterpret_cast<const Op *>(this + 1); }
	const int64_t *aux() const { return reinterpret_cast<const int64_t *>(ops() + nops); }
	const char *names() const { return reinterpret_cast<const char *>(aux() + naux); }
};
static_assert(sizeof(Program) == 48, "sent between processes");

/* The hash of everything after the header, as seal() stores it. */
uint64_t	hash_program(const Program *program);

/*
 * Builds a program in fixed arrays, without a destructor, so that an ereport in
 * the middle leaks nothing. `failed` is set instead of overrunning an array.
 */
struct ProgramBuilder
{
	Op			ops[PROGRAM_MAX_OPS];
	int64_t		aux[PROGRAM_MAX_AUX];
	char		names[PROGRAM_MAX_NAMES];
	Type		reg_type[PROGRAM_MAX_REGS];
	int			nops, nregs, nresults, nkeys, naggs, nparams, nmaps, npatterns, ncursors;
	int			parallel, converge;
	uint32_t	naux, names_len;
	bool		grouped;
	bool		failed;

	void		init();
	int			emit(Opcode opcode, Type type, int p1, int p2, int p3, int64_t p4 = 0, uint8_t p5 = 0);
	int			new_reg(Type type);		/* -1 and `failed` when there is none left */
	int			add_aux(const int64_t *values, int n);	/* index of the first */
	int			add_name(const char *name);		/* offset */
	/* Bytes that seal() will write. */
	uint32_t	sealed_size() const;
	/* Writes the sealed program to `to`, which has room for sealed_size(). */
	void		seal(Program *to) const;
};

/* The value of a parameter (Variable): integers and Bool as they are, floats as the bits of a double. */
struct ParamValue
{
	int64_t		value;
	uint32_t	is_null;
	uint32_t	type;			/* Type: must equal the Variable's */
};

/*
 * Checks that a program is well-formed: sizes, known opcodes, types, registers
 * written before use (on every path that keeps a lane live up to jumps),
 * forward targets, columns within `columns` (per cursor) and of their type.
 * Returns nullptr, or a sentence that says what is wrong. Never reads past
 * `size`.
 */
struct CursorSchema
{
	uint32_t	ncols;
	const Type *types;			/* Type::None: the column does not exist */
};
const char *verify_program(const Program *program, size_t size, const CursorSchema *cursors, int ncursors);

/* Do these parameters fit a verified program? Returns nullptr, or what is wrong. */
const char *verify_params(const Program *program, const ParamValue *params, uint32_t nparams);

/*
 * Writes one operation as text, for gpuvm.disassemble: opcode, operands and a
 * comment in the words of its synopsis with the operands filled in. Buffers are
 * NUL-terminated and truncated if short.
 */
struct DisassembledOp
{
	int			address;
	const char *opcode;
	int64_t		p1, p2, p3;
	char		p4[64];
	char		comment[160];
};
void		disassemble_op(const Program *program, int address, DisassembledOp *out);

}  // namespace gpuvm

#endif
