/*
 * vm_generator.h: makes random verified programs over a table, for tests that
 * compare an engine with the reference interpreter.
 */
#ifndef GPUVM_TESTS_VM_GENERATOR_H
#define GPUVM_TESTS_VM_GENERATOR_H

#include "vm_random.h"

namespace gpuvm {
namespace reference {

/*
 * Makes random programs. A register written after a jump is not read behind its
 * target, where some lanes have not written it.
 */
class Generator
{
public:
	/* Without maps there is no Lookup, nor what else came with it. */
	Generator(Rng &rng, const Table &table, bool tame, const MapSet *maps = nullptr)
		: rng(rng), table(table), tame(tame), maps(maps), builder(new_builder()) {}

	SealedProgram make(bool grouped, int max_keys = 3);

	/* A join of so many cursors; their tables have the same columns. */
	SealedProgram make_join(bool grouped, int ncursors);

	std::vector<ParamValue> params;
	bool		wide_sums = true;	/* sums of integers, whose type no table has */
	bool		rowids = true;
	const PatternSet *patterns = nullptr;	/* or none: no TextMatch */
	bool		library = false;	/* functions that no device runs, too */

private:
	int			begin_pipeline(int n, int driver);
	SealedProgram finish(int parallel);

	/* No target is left open behind them. */
	void		some_ops(int most);
	int			keys_of(const std::vector<Type> &types);
	int			any_cursor();

	struct Reg
	{
		int			number;
		Type		type;
		int			address;
	};
	struct Scope
	{
		int			jump;
		int			target;
	};

	void		close_scopes();
	int			emit(Opcode opcode, Type type, int p1, int p2, int p3, int64_t p4 = 0, uint8_t p5 = 0);
	int			write(Type type);

	/* The register is readable once its operation stands. */
	void		wrote(int reg, Type type);
	int			constant(Type type);

	/* A constant where the table has no such column. */
	int			column(Type type);
	int			column_of(Type type);
	int			read(Type type);
	Type		value_type(const char *letters);
	static bool takes_timestamp(Opcode opcode);

	/* Something that is a timestamp more often than any I64 is. */
	int			timestamp();

	/* Where a jump from the next address may go. */
	int			jump_target();
	void		random_op();

	/* Was an operand lost to a target that stands here, before its operation? */
	bool		lost(std::initializer_list<int> operands);
	void		jump(Opcode opcode, Type t, int a, int b);
	void		declare(int column, Type type);
	void		result(int n);
	void		sinks(int nkeys, int naggs);

	Rng		   &rng;
	const Table &table;
	bool		tame;
	const MapSet *maps;
	std::unique_ptr<ProgramBuilder> builder;
	std::vector<Reg> pool;
	std::vector<Scope> targets;
	std::vector<int64_t> source_of;
	std::vector<int> cursors = {0};	/* that can be read */
	bool		joins = false;
};

}  // namespace reference
}  // namespace gpuvm

#endif
