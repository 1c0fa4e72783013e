/*
 * vm_reference.h: an interpreter of programs that is too simple to be wrong: one
 * row at a time, one operation at a time, with the scalar functions of
 * semantics.h. And what tests need around it: tables in memory with their
 * tablets, result rows as text, a builder of small programs.
 */
#ifndef GPUVM_TESTS_VM_REFERENCE_H
#define GPUVM_TESTS_VM_REFERENCE_H

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tablet/build.h"
#include "tablet/wide_halves.h"
#include "core/bits.h"
#include "vm/code_map.h"
#include "vm/cpu_vm.h"
#include "vm/program.h"
#include "vm/result_layout.h"
#include "vm/semantics.h"
#include "text_reference.h"

namespace gpuvm {
namespace reference {

struct Value
{
	bool		null = true;
	int64_t		i = 0;			/* Bool, integers, RowId */
	double		d = 0;			/* floats (F32 exactly) */
	int128		x = 0;			/* I128 */
};

/* -- tables ------------------------------------------------------------------------ */

struct Column
{
	Type		type;
	std::vector<Value> rows;
	std::vector<std::string> texts;	/* of variable length: what the rows refer to */
	int			attlen = -1;

	bool		is_text() const { return !texts.empty(); }
};

struct FreeDeleter
{
	void		operator()(void *p) const { free(p); }
};

struct Table
{
	std::vector<Column> columns;
	std::vector<uint32_t> tablet_rows;
	std::vector<std::unique_ptr<TabletHeader, FreeDeleter>> tablets;
	std::vector<ColumnSummary> summaries;
	std::vector<Type> types;
	std::vector<MaskedRows> masked;

	/* A tablet's ranges of `masked`. */
	const MaskedRows *masked_of(size_t tablet, uint32_t *n) const
	{
		auto		first = std::partition_point(masked.begin(), masked.end(), [=](const MaskedRows &r) { return r.tablet < tablet; });
		auto		end = std::partition_point(first, masked.end(), [=](const MaskedRows &r) { return r.tablet == tablet; });

		*n = static_cast<uint32_t>(end - first);
		return masked.data() + (first - masked.begin());
	}

	/* Row by row. */
	std::vector<bool> masked_bits() const;

	/* Masks just these. */
	void		mask(const std::vector<bool> &bits);

	/* The table as it is without the masked rows; tablets that lose all of theirs go. */
	Table		without_masked() const;

	uint32_t	nrows() const { return static_cast<uint32_t>(columns.empty() ? 0 : columns[0].rows.size()); }

	/* Cuts the rows into tablets of tablet_rows rows. */
	void		build();
};

/* -- maps ---------------------------------------------------------------------------- */

/* Maps in memory of exactly their size, so that a sanitizer sees the end. */
struct MapSet
{
	std::vector<CodeMap> maps;
	PatternSet	patterns;		/* that come with them */

	/* The last of the values is the nulls' entry, if there is one. Returns the map's number. */
	int			add(Type type, const std::vector<Value> &values, bool has_null_entry)
	{
		const size_t n = values.size(), width = static_cast<size_t>(type_width(type));
		char	   *at = take(n * width);
		uint64_t   *nulls = reinterpret_cast<uint64_t *>(take((n + 63) / 64 * 8));
		bool		any = false;

		memset(nulls, 0, (n + 63) / 64 * 8);
		for (size_t i = 0; i < n; i++)
		{
			const float f = static_cast<float>(values[i].d);

			if (values[i].null)
			{
				bit_set(nulls, i);
				any = true;
				memset(at + i * width, 0, width);
			}
			else if (type == Type::F32)
				memcpy(at + i * width, &f, 4);
			else
				memcpy(at + i * width, type == Type::F64 ? static_cast<const void *>(&values[i].d) : &values[i].i, width);
		}

		CodeMap		map = {type, has_null_entry, static_cast<uint32_t>(n - (has_null_entry ? 1 : 0)), at, any ? nulls : nullptr, {}};

		map.range = map_range(map, 0, map.nentries);
		maps.push_back(map);
		return static_cast<int>(maps.size()) - 1;
	}

private:
	char	   *take(size_t bytes)
	{
		memory.emplace_back(static_cast<char *>(malloc(bytes)));
		return memory.back().get();
	}

	std::vector<std::unique_ptr<char, FreeDeleter>> memory;
};

/* -- one operation -------------------------------------------------------------------- */

template <typename R>
Value
from_register(R r)
{
	Value		v;

	v.null = false;
	if constexpr (std::is_floating_point_v<R>)
		v.d = static_cast<double>(r);
	else
		v.i = r;
	return v;
}

inline Value
truth(bool b)
{
	return from_register(static_cast<uint8_t>(b));
}

bool		compare_values(Opcode opcode, Type type, const Value &a, const Value &b);
Value		binary_value(const Op &op, const Value &a, const Value &b, uint32_t *err);
Value		lookup_value(const Op &op, const CodeMap &map, const Value &code);
Value		field_value(const Op &op, const Value &a, uint32_t *err);
Value		unary_value(const Op &op, const Value &a, uint32_t *err);
Value		cast_value(Type to, Type from, const Value &a, uint32_t *err);

/* Exactly rounded sum by non-overlapping partials (Shewchuk), finite inputs. */
double		exact_sum(const std::vector<double> &inputs);

/* -- programs ----------------------------------------------------------------------------- */

struct Outcome
{
	uint32_t	errors = 0;
	std::vector<std::vector<Value>> rows;
};

/* Of one program over one table, or more for a join. */
class Interpreter
{
public:
	Interpreter(const Program *program, const Table &table, const ParamValue *params, const CodeMap *maps = nullptr,
				const PatternSet *patterns = nullptr);

	/* Joins: plain nested loops. `lazy`: Semi and Anti look no further than the first match. */
	Interpreter(const Program *program, const std::vector<const Table *> &tables, const ParamValue *params, bool lazy,
				const CodeMap *maps = nullptr, const PatternSet *patterns = nullptr);
	~Interpreter();

	Outcome		run();

	/* The rows, masked or not, that raise an error by themselves. */
	std::vector<bool> failing_rows();

private:
	class Machine;

	std::unique_ptr<Machine> machine;
};

/* -- result rows as text, floats by their bits (NaNs alike) --------------------------------- */

std::string value_text(Type type, const Value &v);
std::vector<std::string> rows_text(const Program *program, const Outcome &outcome);

/* Rows of a result area. */
void		read_area(const Program *program, const char *area, uint32_t capacity, uint32_t n, Outcome *out);

/* A piece of memory of exactly the size that the layout asks for, so that a sanitizer sees the end. */
struct Area
{
	std::unique_ptr<char, FreeDeleter> memory;
	uint32_t	capacity;

	Area(const Program *program, uint32_t rows) : capacity((rows + RESULT_PAD_ROWS - 1) / RESULT_PAD_ROWS * RESULT_PAD_ROWS)
	{
		std::vector<Type> types(program->nresults + 1);

		program_result_types(program, types.data());

		const uint64_t bytes = result_layout(types.data(), program->nresults, capacity, nullptr);

		memory.reset(static_cast<char *>(aligned_alloc(64, bytes + 64)));
		memset(memory.get(), 0xa5, bytes + 64);
	}
};

struct SealedProgram
{
	std::vector<uint64_t> words;

	const Program *get() const { return reinterpret_cast<const Program *>(words.data()); }
};

inline SealedProgram
seal(const ProgramBuilder &b)
{
	SealedProgram p;

	p.words.resize(b.sealed_size() / 8);
	b.seal(reinterpret_cast<Program *>(p.words.data()));
	return p;
}

inline std::unique_ptr<ProgramBuilder>
new_builder()
{
	auto		b = std::make_unique<ProgramBuilder>();

	b->init();
	return b;
}

/* Hands on the columns of a table of these types. */
inline SealedProgram
copy_program(const std::vector<Type> &types)
{
	auto		b = new_builder();
	std::vector<int> regs;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (size_t c = 0; c < types.size(); c++)
		b->emit(Opcode::ResultColumn, types[c], static_cast<int>(c), 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (Type type : types)
		regs.push_back(b->new_reg(type));
	for (size_t c = 0; c < types.size(); c++)
		b->emit(Opcode::Column, types[c], regs[c], static_cast<int>(c), 0);
	b->emit(Opcode::Result, Type::None, regs[0], static_cast<int>(types.size()), 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* -- the CPU machine over a whole table ------------------------------------------------------- */

Outcome		run_cpu_rows(const Program *program, const Table &table, const std::vector<ParamValue> &params, uint32_t unit_rows,
						 const CodeMap *maps = nullptr, const PatternSet *patterns = nullptr);

/* What run_cpu_groups() has read of files so far, in all. */
extern std::atomic<uint64_t> bytes_spilled;

/*
 * Units dealt to `nstates` states at random, merged in random order: one by one,
 * or all at once, with what parts there are dealt to two threads.
 */
Outcome		run_cpu_groups(const Program *program, const Table &table, const std::vector<ParamValue> &params, uint32_t unit_rows,
						   int nstates, std::mt19937_64 &rng, const CodeMap *maps = nullptr, const PatternSet *patterns = nullptr,
						   TextKeys *text_keys = nullptr);

}  // namespace reference
}  // namespace gpuvm

#endif
