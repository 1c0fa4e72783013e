/*
 * functions.h: the whitelist. What gets pushed down is decided by function OID
 * (operators are functions underneath); everything else stays with PostgreSQL.
 */
#ifndef GPUVM_COMPILER_FUNCTIONS_H
#define GPUVM_COMPILER_FUNCTIONS_H

#include "pg/pg.h"
#include "vm/program.h"

namespace gpuvm {

/* How a function's arguments become an opcode's operands. */
enum class FnKind : uint8_t
{
	Binary,						/* both arguments converted to `operand`; the result is `operand` */
	Shift,						/* first argument of `operand`, second I32 */
	Unary,						/* argument and result of `operand` */
	Same,						/* the argument itself (unary plus) */
	Compare,					/* both arguments converted to `operand`; Bool */
	CompareDateLeft,			/* date with timestamp */
	CompareDateRight,			/* timestamp with date */
	Cast,						/* argument of any supported type to `operand` */
	Convert,					/* an opcode whose result (`operand`) and argument types differ */
};

struct FnEntry
{
	Oid			function;
	FnKind		kind;
	Opcode		opcode;
	Type		operand;
};

/* The function's entry, or NULL when it stays with PostgreSQL. */
const FnEntry *lookup_function(Oid function);

/* The VM type of a PostgreSQL type, or Type::None. */
Type		vm_type(Oid type);

/* Can the opcode of this entry set an error bit? (A widening cast cannot.) */
bool		function_can_raise(const FnEntry *entry, Type argument);

}  // namespace gpuvm

#endif
