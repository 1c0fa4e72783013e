/*
 * vm_reference_machine.h: what the interpreter of vm_reference.h keeps while it runs.
 */
#ifndef GPUVM_TESTS_VM_REFERENCE_MACHINE_H
#define GPUVM_TESTS_VM_REFERENCE_MACHINE_H

#include <map>

#include "vm_reference.h"

namespace gpuvm {
namespace reference {

inline bool
is_neg_zero(double d)
{
	return d == 0 && std::signbit(d);
}

class Interpreter::Machine
{
public:
	Machine(const Program *program, const Table &table, const ParamValue *params, const CodeMap *maps,
				const PatternSet *patterns)
		: program(program), table(table), tables({&table}), params(params), maps(maps), patterns(patterns) {}

	/* Joins: plain nested loops. `lazy`: Semi and Anti look no further than the first match. */
	Machine(const Program *program, const std::vector<const Table *> &tables, const ParamValue *params, bool lazy,
				const CodeMap *maps, const PatternSet *patterns)
		: program(program), table(*tables[0]), tables(tables), params(params), maps(maps), patterns(patterns), lazy(lazy) {}

	Outcome		run();

	/* The rows, masked or not, that raise an error by themselves. */
	std::vector<bool> failing_rows();

private:
	struct Group
	{
		std::vector<Value> keys;
		std::vector<std::vector<Value>> inputs;
		std::vector<int64_t> counts;
	};

	/* A row of an inner cursor, with the keys that it was inserted by. */
	struct InnerRow
	{
		uint32_t	row;
		std::vector<Value> keys;
		bool		matched = false;	/* Full: by any lane */
	};

	/* -- lanes (vm_reference.cc) */

	void		run_row(uint32_t row, uint32_t position);

	/* Runs a lane up to an address; false: it died, or became pairs that were run. */
	bool		lane(int pc, int stop, std::vector<Value> &r, Group *group, uint32_t position);

	/* What is written to a register above `end`. */
	Type		reg_type(int64_t reg, int end) const;

	/* -- values (vm_reference_values.cc): of an operation that does no more than write its register */

	Value		computed(const Op &op, const std::vector<Value> &r, uint32_t position, uint32_t *err) const;

	/* -- joins (vm_reference_join.cc) */

	/* What a cursor has for Seek or Cross. */
	void		inner_rows(size_t cursor);

	/* Of the first key that the cursor's rows are inserted by. */
	Type		key_reg_type(int cursor) const;

	/* From Seek or Cross on to the program's end. */
	void		join(int address, int stop, const std::vector<Value> &r, Group *group, uint32_t position);

	/* Full: the rows of the cursor that nothing matched, without any row of the cursors before. */
	void		unmatched_rows(int match, int cursor);

	/* -- groups (vm_reference_groups.cc) */

	Group	   &group_of(const std::vector<Value> &keys);
	void		step(const Op &op, const std::vector<Value> &r, Group *group) const;
	Value		aggregate(const Op &op, const Group &g);
	Value		float_sum(Type type, const std::vector<Value> &in);
	Type		key_type(int k) const;
	void		finish_groups();

	const Program *program;
	const Table &table;
	std::vector<const Table *> tables;
	const ParamValue *params;
	const CodeMap *maps;
	const PatternSet *patterns;
	bool		lazy = false;
	Outcome		outcome;
	std::map<std::string, Group> groups;
	std::vector<InnerRow> inner[PROGRAM_MAX_CURSORS];
	uint32_t	row_of[PROGRAM_MAX_CURSORS] = {};
	bool		no_row[PROGRAM_MAX_CURSORS] = {};	/* the lane has no row of the cursor */
};

}  // namespace reference
}  // namespace gpuvm

#endif
