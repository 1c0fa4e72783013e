/*
 * pairs.cc: expressions over two dictionary columns: a || ' ' || b, doc ->> key.
 *
 * PostgreSQL evaluates them beforehand, as it does those over one (maps.cc), once for each pair of entries, if there are
 * not too many. A pair's number is the first code times as many as the second column has, and the second code; a null has the
 * number behind the codes. So what stands for each column is a map, too, which is made when the dictionaries are known.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

#include "compiler/emit.h"
#include "pg/value_form.h"
#include "store/registry.h"

namespace gpuvm {

bool
is_pair(const Compiler *c, const Expr *expr)
{
	return is_pair_expr(expr) && !reads_variable(c->input, expr);
}

static double
entries_with_null(const Compiler *c, const DictionaryRef &ref)
{
	const CompileCursor *cursor = &c->input->cursors[ref.cursor];

	return cursor->table->entries[column_place(cursor, ref.attnum)] + 1.0;
}

int
pair_map(Compiler *c, const Expr *expr)
{
	const bool	derived = value_type(exprType(reinterpret_cast<const Node *>(expr))).form == ValueForm::Dictionary;
	const Var  *columns[2];
	DictionaryRef refs[2];
	double		pairs = 1;

	if (!pair_columns(expr, &columns[0], &columns[1]))
		return refuse(c, "an expression of this kind is not supported");
	for (int i = 0; i < 2; i++)
	{
		if (!dictionary_of(c, reinterpret_cast<const Expr *>(columns[i]), &refs[i]))
			return -1;
		pairs *= entries_with_null(c, refs[i]);
	}
	if (pairs > MAX_PAIRS)
		return refuse(c, "an expression takes two dictionary columns with more than %.0f pairs of values", MAX_PAIRS);
	return add_map(c, PlanMap{derived ? MapKind::PairDerived : MapKind::PairValues, -1, 0, const_cast<Expr *>(expr), InvalidOid, false, refs[0], refs[1], InvalidOid});
}

/* What the column's code adds to the pair's number. */
static int
part_of_number(Compiler *c, const Var *column, MapKind kind, const DictionaryRef &from, const DictionaryRef &to)
{
	const int	code = compile_expr(c, reinterpret_cast<const Expr *>(column));
	int			map;

	if (code < 0)
		return -1;
	if (!same_dictionary(DictionaryRef{c->info[code].map, c->info[code].cursor, c->info[code].attnum}, from))
		return refuse(c, "the column's dictionary is not known");
	map = add_map(c, PlanMap{kind, -1, 0, nullptr, InvalidOid, true, from, to, InvalidOid});
	return map < 0 ? -1 : value(c, Opcode::Lookup, Type::I32, map, code, 0, LOOKUP_NULL);
}

int
compile_pair(Compiler *c, const Expr *expr)
{
	const ValueType type = value_type(exprType(reinterpret_cast<const Node *>(expr)));
	const int	map = pair_map(c, expr);
	const Var  *columns[2];
	DictionaryRef from;
	DictionaryRef to;
	int			first;
	int			second;
	int			number;

	if (map < 0 || !pair_columns(expr, &columns[0], &columns[1]))
		return -1;
	from = c->maps[map].from;
	to = c->maps[map].to;
	first = part_of_number(c, columns[0], MapKind::PairFirst, from, to);
	second = first < 0 ? -1 : part_of_number(c, columns[1], MapKind::PairSecond, to, from);
	number = second < 0 ? -1 : value(c, Opcode::Add, Type::I32, first, second);
	if (number < 0)
		return -1;
	return value(c, Opcode::Lookup, type.type, map, number, 0, 0, type.form == ValueForm::Dictionary ? dictionary_info(DictionaryRef{static_cast<int16>(map), -1, 0}) : NO_INFO);
}

}  // namespace gpuvm
