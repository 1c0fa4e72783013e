/*
 * facts.h: what is asked of expressions again and again is found out once.
 *
 * Whoever compiles an expression asks the same questions of it and then of each part of it, and answers are made of
 * those for the parts: without a memory, nested expressions would take time by the power of their depth. Facts are
 * known by the expression's address, so they last only while no expression is freed: from facts_forget() to the next.
 */
#ifndef GPUVM_COMPILER_FACTS_H
#define GPUVM_COMPILER_FACTS_H

#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/nodes.h"
}

#include <cstring>

namespace gpuvm {

enum class Fact : uint8_t
{
	KnownAtStart,
	HasExecParam,
	CanRaise,
	CanRaiseByRows,
	HasPlainColumn,
	ReadsVariable,
	NumericScale,
	GreatestValue,
	IsWide,
	Register,
};

/* While a query is planned facts are kept; returns what to end with. */
bool		facts_begin();
void		facts_end(bool outer);

void		facts_forget();

/* `input`: what the fact depends on beside the expression, or NULL. */
bool		fact_known(Fact fact, const void *input, const void *expr, uint64 *value);
void		fact_note(Fact fact, const void *input, const void *expr, uint64 value);

/* The fact, or what `find()` says it is. */
template <typename T, typename F>
T
find_fact(Fact fact, const void *input, const void *expr, F find)
{
	uint64		bits = 0;
	T			value;

	static_assert(sizeof(T) <= sizeof(bits), "a fact has 64 bits");
	switch (nodeTag(expr))
	{
		/* quicker to be asked */
		case T_Var:
		case T_Const:
		case T_Param:
			return find();
		default:
			break;
	}
	if (fact_known(fact, input, expr, &bits))
	{
		memcpy(static_cast<void *>(&value), &bits, sizeof(T));
		return value;
	}
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	value = find();
	memcpy(&bits, &value, sizeof(T));
	fact_note(fact, input, expr, bits);
	return value;
}

}  // namespace gpuvm

#endif
