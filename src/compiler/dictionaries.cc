/*
 * dictionaries.cc: values of two dictionaries meet: in a comparison, as keys of a
 * join, as arms of a CASE.
 *
 * What an expression's codes are of is known before it is compiled (dictionary_of), so
 * both sides of a key agree though they are compiled in different pipelines. Where equal
 * values have equal bytes, the codes of one side are translated into those of the other; what
 * that one has not gets codes behind its own. Otherwise, and for <, <=, >, >=, both sides become
 * ranks among the entries of both.
 */
#include "pg/pg.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/typcache.h"
}

#include "compiler/emit.h"
#include "pg/value_form.h"
#include "store/registry.h"

namespace gpuvm {

/* -- which dictionary ---------------------------------------------------------------- */

static bool
is_null_const(const Expr *expr)
{
	while (IsA(expr, RelabelType) || IsA(expr, CollateExpr))
		expr = IsA(expr, RelabelType) ? ((const RelabelType *) expr)->arg : ((const CollateExpr *) expr)->arg;
	return IsA(expr, Const) && ((const Const *) expr)->constisnull;
}

static bool
column_dictionary(Compiler *c, const Var *var, DictionaryRef *ref)
{
	for (int i = 0; i < c->input->ncursors; i++)
	{
		const CompileCursor *cursor = &c->input->cursors[i];
		AttrNumber	attnum;
		int			place;

		if (!is_column_of(cursor, var, &attnum))
			continue;
		place = column_place(cursor, attnum);
		if (place >= 0 && cursor->table->variable[place])
			return refuse_variable(c, var) >= 0;
		if (place < 0 || cursor->table->entries[place] == 0)
		{
			/* it says why */
			if (load_column(c, i, attnum, var->vartype) >= 0)
				refuse(c, "column \"%s\" has no dictionary", cursor_column_name(cursor, attnum));
			return false;
		}
		*ref = DictionaryRef{-1, static_cast<int16>(i), attnum};
		return true;
	}
	refuse(c, "a column of another relation is used");
	return false;
}

static bool
map_dictionary(int map, DictionaryRef *ref)
{
	*ref = DictionaryRef{static_cast<int16>(map), -1, 0};
	return map >= 0;
}

/* The dictionaries of all arms together. */
static bool
arms_dictionary(Compiler *c, List *arms, DictionaryRef *ref)
{
	DictionaryUnion all;

	if (!arms_union(c, arms, &all))
		return false;
	*ref = all.all;
	return true;
}

static List *
case_arms(const CaseExpr *expr)
{
	List	   *arms = NIL;
	ListCell   *lc;

	foreach(lc, expr->args)
		arms = lappend(arms, lfirst_node(CaseWhen, lc)->result);
	return expr->defresult == nullptr ? arms : lappend(arms, expr->defresult);
}

bool
dictionary_of(Compiler *c, const Expr *expr, DictionaryRef *ref)
{
	check_stack_depth();
	if (is_map(c, expr))
		return map_dictionary(derived_map(c, expr), ref);
	if (refuse_variables(c, expr))
		return false;
	if (is_pair_expr(expr) && !known_at_start(expr))
		return map_dictionary(pair_map(c, expr), ref);
	switch (nodeTag(expr))
	{
		case T_Var:
			return column_dictionary(c, (const Var *) expr, ref);
		case T_RelabelType:
			return dictionary_of(c, ((const RelabelType *) expr)->arg, ref);
		case T_CollateExpr:
			return dictionary_of(c, ((const CollateExpr *) expr)->arg, ref);
		default:
			break;
	}
	if (known_at_start(expr))
		return map_dictionary(constant_map(c, expr), ref);
	switch (nodeTag(expr))
	{
		case T_CaseExpr:
			return arms_dictionary(c, case_arms((const CaseExpr *) expr), ref);
		case T_CoalesceExpr:
			return arms_dictionary(c, ((const CoalesceExpr *) expr)->args, ref);
		case T_NullIfExpr:
			return dictionary_of(c, static_cast<const Expr *>(linitial(((const NullIfExpr *) expr)->args)), ref);
		case T_FuncExpr:
			refuse(c, "function %s takes more than one dictionary column and constants", format_procedure(((const FuncExpr *) expr)->funcid));
			return false;
		case T_OpExpr:
			refuse(c, "function %s takes more than one dictionary column and constants", format_procedure(((const OpExpr *) expr)->opfuncid));
			return false;
		default:
			refuse(c, "an expression over dictionary columns is not supported");
			return false;
	}
}

/* -- codes of several ------------------------------------------------------------------- */

static bool
add_to_union(Compiler *c, DictionaryUnion *to, const DictionaryRef &ref)
{
	PlanMap		map = {MapKind::Translate, -1, 0, nullptr, InvalidOid, false, ref, to->all};
	int			number;

	for (int i = 0; i < to->n; i++)
	{
		if (same_dictionary(to->refs[i], ref))
			return true;
	}
	if (to->n == MAX_UNION)
	{
		refuse(c, "an expression has more than %d different dictionaries", MAX_UNION);
		return false;
	}
	number = to->n == 0 ? -1 : add_map(c, map);
	if (to->n > 0 && number < 0)
		return false;
	to->refs[to->n] = ref;
	to->maps[to->n++] = number;
	if (number < 0)
		to->all = ref;
	else
		map_dictionary(number, &to->all);
	return true;
}

bool
arms_union(Compiler *c, List *arms, DictionaryUnion *to)
{
	ListCell   *lc;

	*to = DictionaryUnion{};
	to->all = NO_DICTIONARY;
	foreach(lc, arms)
	{
		const Expr *arm = static_cast<const Expr *>(lfirst(lc));
		DictionaryRef ref;

		if (is_null_const(arm))
			continue;
		if (!dictionary_of(c, arm, &ref) || (!same_dictionary(ref, NO_DICTIONARY) && !add_to_union(c, to, ref)))
			return false;
	}
	return true;
}

bool
expr_union(Compiler *c, const Expr *expr, DictionaryUnion *to)
{
	List	   *arms = NIL;

	if (IsA(expr, CaseExpr))
		arms = case_arms((const CaseExpr *) expr);
	else if (IsA(expr, CoalesceExpr))
		arms = ((const CoalesceExpr *) expr)->args;
	return arms_union(c, arms, to);
}

RegisterInfo
dictionary_info(const DictionaryRef &ref)
{
	return RegisterInfo{-1, -1, ref.cursor, ref.attnum, ref.map};
}

static DictionaryRef
dictionary_of_register(const Compiler *c, int reg)
{
	const RegisterInfo *info = &c->info[reg];

	if (info->map >= 0)
		return DictionaryRef{info->map, -1, 0};
	return DictionaryRef{-1, info->cursor, info->attnum};
}

int
translate(Compiler *c, int reg, const DictionaryUnion *to)
{
	DictionaryRef ref;

	if (reg < 0 || is_null_value(c, reg))
		return reg;
	ref = dictionary_of_register(c, reg);
	for (int i = 0; i < to->n; i++)
	{
		if (same_dictionary(to->refs[i], ref))
			return to->maps[i] < 0 ? reg : value(c, Opcode::Lookup, Type::I32, to->maps[i], reg, 0, 0, dictionary_info(to->all));
	}
	return refuse(c, "the column's dictionary is not known");
}

/* -- comparisons -------------------------------------------------------------------------- */

static bool
is_dictionary_type(Oid type)
{
	return value_type(type).form == ValueForm::Dictionary;
}

/* The value as text: of a name, or of a character(n) without its blanks. */
static Expr *
as_text(Expr *expr, Oid function, Oid collation)
{
	return (Expr *) makeFuncExpr(function, TEXTOID, list_make1(expr), exprCollation(reinterpret_cast<Node *>(expr)), collation,
								 COERCE_IMPLICIT_CAST);
}

/* Which of PostgreSQL's comparisons it is, by the default order of the operands' type. */
static bool
find_comparison(Oid opno, Oid type, Opcode *op)
{
	Oid			family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Oid			negator;

	if (!OidIsValid(family))
		return false;
	switch (get_op_opfamily_strategy(opno, family))
	{
		case BTLessStrategyNumber: *op = Opcode::Lt; return true;
		case BTLessEqualStrategyNumber: *op = Opcode::Le; return true;
		case BTEqualStrategyNumber: *op = Opcode::Eq; return true;
		case BTGreaterEqualStrategyNumber: *op = Opcode::Ge; return true;
		case BTGreaterStrategyNumber: *op = Opcode::Gt; return true;
		default: break;
	}
	*op = Opcode::Ne;
	negator = get_negator(opno);
	return OidIsValid(negator) && get_op_opfamily_strategy(negator, family) == BTEqualStrategyNumber;
}

bool
dictionary_comparison(Oid opno, Oid collation, List *args, DictionaryComparison *out)
{
	Oid			type;
	Oid			other;
	int32		typmod;

	if (list_length(args) != 2)
		return false;
	out->collation = collation;
	for (int i = 0; i < 2; i++)
	{
		out->sides[i] = static_cast<Expr *>(list_nth(args, i));
		if (!is_dictionary_type(exprType(reinterpret_cast<Node *>(out->sides[i]))))
			return false;
	}
	type = getBaseType(exprType(reinterpret_cast<Node *>(out->sides[0])));
	other = getBaseType(exprType(reinterpret_cast<Node *>(out->sides[1])));
	typmod = exprTypmod(reinterpret_cast<Node *>(out->sides[0]));
	if (!find_comparison(opno, type, &out->op))
		return false;
	if (type != other)
	{
		if (!(type == NAMEOID && other == TEXTOID) && !(type == TEXTOID && other == NAMEOID))
			return false;
		out->sides[type == NAMEOID ? 0 : 1] = as_text(out->sides[type == NAMEOID ? 0 : 1], F_TEXT_NAME, collation);
		type = TEXTOID;
	}
	else if (type == BPCHAROID && (typmod < 0 || typmod != exprTypmod(reinterpret_cast<Node *>(out->sides[1])) ||
								   (out->op != Opcode::Eq && out->op != Opcode::Ne)))
	{
		/* as many blanks as each has do not count */
		for (int i = 0; i < 2; i++)
			out->sides[i] = as_text(out->sides[i], F_TEXT_BPCHAR, collation);
		type = TEXTOID;
	}
	if (type_is_collatable(type) && !OidIsValid(collation))
		return false;
	out->type = type;
	out->by_bytes = (out->op == Opcode::Eq || out->op == Opcode::Ne) && dictionary_equality(type, typmod, collation);
	return true;
}

bool
dictionary_clause(const Node *clause, DictionaryComparison *out)
{
	const OpExpr *op = (const OpExpr *) clause;

	return IsA(clause, OpExpr) && lookup_function(op->opfuncid != InvalidOid ? op->opfuncid : get_opcode(op->opno)) == nullptr &&
		dictionary_comparison(op->opno, op->inputcollid, op->args, out);
}

/* How many entries, for a choice. */
static double
entries_of(const Compiler *c, const DictionaryRef &ref)
{
	const PlanMap *map;

	if (ref.map < 0)
	{
		const CompileCursor *cursor = &c->input->cursors[ref.cursor];

		return cursor->table->entries[column_place(cursor, ref.attnum)];
	}
	map = &c->maps[ref.map];
	if (map->kind == MapKind::Constant)
		return 1;
	if (map->kind == MapKind::Translate)
		return entries_of(c, map->from) + entries_of(c, map->to);
	if (map->kind == MapKind::PairDerived)
		return entries_of(c, map->from) * entries_of(c, map->to);
	return entries_of(c, DictionaryRef{-1, static_cast<int16>(map->cursor), map->attnum});
}

bool
dictionaries_meet(Compiler *c, const DictionaryComparison &comparison, DictionaryMeeting *out)
{
	DictionaryRef refs[2];

	out->comparison = comparison;
	for (int i = 0; i < 2; i++)
	{
		if (is_null_const(comparison.sides[i]))
		{
			refuse(c, "a comparison with null");
			return false;
		}
		if (!dictionary_of(c, comparison.sides[i], &refs[i]))
			return false;
		/* CASE whose arms are all NULL */
		if (same_dictionary(refs[i], NO_DICTIONARY))
		{
			refuse(c, "a comparison with null");
			return false;
		}
	}
	if (comparison.by_bytes)
	{
		/* what is translated is the smaller one */
		int			first = entries_of(c, refs[0]) < entries_of(c, refs[1]) ? 1 : 0;

		out->all = DictionaryUnion{};
		out->all.all = NO_DICTIONARY;
		return add_to_union(c, &out->all, refs[first]) && add_to_union(c, &out->all, refs[1 - first]);
	}
	for (int i = 0; i < 2; i++)
	{
		PlanMap		map = {MapKind::Order, -1, 0, nullptr, comparison.collation, false, refs[i], refs[1 - i], comparison.type};

		out->orders[i] = add_map(c, map);
		if (out->orders[i] < 0)
			return false;
	}
	return true;
}

int
meeting_side(Compiler *c, const DictionaryMeeting *meeting, int side)
{
	int			reg = compile_expr(c, meeting->comparison.sides[side]);
	const PlanMap *map;

	if (reg < 0 || meeting->comparison.by_bytes)
		return translate(c, reg, &meeting->all);
	map = &c->maps[meeting->orders[side]];
	if (!same_dictionary(dictionary_of_register(c, reg), map->from))
		return refuse(c, "the column's dictionary is not known");
	return value(c, Opcode::Lookup, Type::I32, meeting->orders[side], reg);
}

bool
dictionary_operands(Compiler *c, const DictionaryComparison &comparison, int *ra, int *rb)
{
	DictionaryMeeting meeting;

	if (!dictionaries_meet(c, comparison, &meeting))
		return false;
	*ra = meeting_side(c, &meeting, 0);
	*rb = *ra < 0 ? -1 : meeting_side(c, &meeting, 1);
	return *rb >= 0;
}

/* -- constants ------------------------------------------------------------------------------ */

int
compile_dictionary_constant(Compiler *c, const Expr *expr)
{
	DictionaryRef ref;
	int			code;

	if (!map_dictionary(constant_map(c, expr), &ref))
		return -1;
	code = int_value(c, Type::I32, 0, dictionary_info(ref));
	/* a parameter may be null */
	if (code < 0 || IsA(expr, Const))
		return code;
	return value(c, Opcode::Lookup, Type::I32, ref.map, code, 0, 0, dictionary_info(ref));
}

}  // namespace gpuvm
