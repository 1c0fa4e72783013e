/*
 * emit.h: a program in the making, between compile.cc (expressions) and
 * programs.cc (everything around them).
 */
#ifndef GPUVM_COMPILER_EMIT_H
#define GPUVM_COMPILER_EMIT_H

#include "compiler/compile.h"
#include "compiler/functions.h"
#include "compiler/maps.h"

namespace gpuvm {

constexpr int MAX_CACHED_COLUMNS = 256;

struct CachedColumn
{
	int			cursor;
	AttrNumber	attnum;
	int			reg;
};

/*
 * What is known of a register's values beyond their Type. Numerics are integers
 * times 10^-scale. Codes are of the dictionary of a column, or of one that a map makes.
 */
struct RegisterInfo
{
	int16		scale;			/* of a numeric, -1: it is none */
	int16		shown;			/* register with the values' display scales where they differ from row to row; -1: all have `scale` */
	int16		cursor;			/* of codes: whose column, -1: no codes */
	AttrNumber	attnum;
	int16		map;			/* of codes of a map's dictionary; -1 */
};

constexpr RegisterInfo NO_INFO = {-1, -1, -1, 0, -1};

/* Of a numeric whose arms have different display scales, what is wanted? */
enum class ScaleUse : uint8_t
{
	One,						/* it has to have one, */
	None,						/* it does not matter (a comparison), */
	Each,						/* or it is computed, too (RegisterInfo.shown) */
};

struct Compiler
{
	CompileInput *input;
	ProgramBuilder *b;
	List	   *params;
	int			depth;			/* branches around the current operation */
	int			first;			/* the cursor that drives the pipeline, */
	int			npositioned;	/* and how many from there on can be read */
	bool		transient;		/* registers written here are not read behind the build or the Match that follows */
	bool		matched[PROGRAM_MAX_CURSORS];	/* the cursor's Match was passed */
	int			ncached;
	CachedColumn cached[MAX_CACHED_COLUMNS];
	int			noutputs;		/* registers set aside for result columns, not loaded yet */
	CachedColumn outputs[PROGRAM_MAX_COLUMNS];
	ScaleUse	scale_use;		/* of the numeric that is being compiled */
	int			nmaps;
	PlanMap		maps[MAX_MAPS];
	RegisterInfo info[PROGRAM_MAX_REGS];
};

inline int
emit(Compiler *c, Opcode op, Type type, int p1, int p2, int p3, int64_t p4 = 0, uint8_t p5 = 0)
{
	return c->b->emit(op, type, p1, p2, p3, p4, p5);
}

/* -1, and `failed`, when there is none left. */
inline int
new_reg(Compiler *c, Type type)
{
	int			reg = c->b->new_reg(type);

	if (reg >= 0)
		c->info[reg] = NO_INFO;
	return reg;
}

/* Notes the reason, if it is the first, and returns -1. */
int			refuse(Compiler *c, const char *fmt, ...) pg_attribute_printf(2, 3);

/* None: not imported. */
Type		column_type(const CompileCursor *cursor, AttrNumber attnum);
int			load_column(Compiler *c, int cursor, AttrNumber attnum, Oid type);

int			compile_expr(Compiler *c, const Expr *expr);
int			convert(Compiler *c, int reg, Type to);
bool		compile_operands(Compiler *c, const FnEntry *fn, List *args, Type *type, int *ra, int *rb);
bool		is_comparison(const FnEntry *fn);

bool		may_be_conditional(Compiler *c, const Expr *expr);

/* The operands of a key (split_seek_keys): the earlier cursors', and that of the relation. False: it is none. */
bool		key_sides(const Expr *clause, Index varno, Node **outer, Node **inner);

/* Between branch_open and branch_close, lanes for which `reg` is true (or false: IfNot) are elsewhere. */
struct Branch
{
	int			jump;
	int			ncached;
};

Branch		branch_open(Compiler *c, Opcode op, int reg, bool null_jumps);
void		branch_close(Compiler *c, const Branch &br);

}  // namespace gpuvm

#endif
