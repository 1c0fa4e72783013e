/*
 * maps.cc: which expressions become a Lookup in what PostgreSQL says of the
 * entries of a dictionary.
 *
 * PostgreSQL evaluates them when execution starts, for every entry: also for those
 * that no row has any more, that another condition keeps out, or that a policy
 * hides. So only functions take part that are built in, do nothing but compute, and are
 * immutable; an error that one raises leads to PostgreSQL's own plan (executor/map_build.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

#include "compiler/emit.h"
#include "compiler/maps.h"
#include "pg/compat.h"
#include "pg/value_form.h"

namespace gpuvm {

static_assert(MAX_MAPS == PROGRAM_MAX_MAPS, "what the machine takes");

/* -- which expressions ------------------------------------------------------------ */

/* Stable only for what a catalog or a setting says, which stays what it is for as long as a statement runs. */
static bool
is_stable_enough(Oid function)
{
	switch (function)
	{
		case F_ENUM_OUT:
		case F_INTERVAL_OUT:
		case F_CONCAT:
		case F_CONCAT_WS:
		case F_TO_CHAR_INTERVAL_TEXT:
		case F_ARRAY_TO_STRING_ANYARRAY_TEXT:
		case F_ARRAY_TO_STRING_ANYARRAY_TEXT_TEXT:
			return true;
		default:
			return false;
	}
}

/* A constant pattern whose last character escapes nothing. */
static bool
is_sound_pattern(const Node *node)
{
	const Const *pattern = (const Const *) node;
	const text *value;
	int			len;

	if (!IsA(node, Const) || pattern->constisnull || pattern->consttype != TEXTOID)
		return false;
	/* a parameter's value may be compressed */
	value = DatumGetTextPP(pattern->constvalue);
	len = VARSIZE_ANY_EXHDR(value);
	return len == 0 || VARDATA_ANY(value)[len - 1] != '\\';
}

static bool
is_not_negative(const Node *node)
{
	const Const *number = (const Const *) node;

	return IsA(node, Const) && !number->constisnull && DatumGetInt32(number->constvalue) >= 0;
}

/* Nothing in an entry can make these raise, though PostgreSQL does not call them leakproof. */
static bool
never_raises(Oid function, List *args)
{
	switch (function)
	{
		case F_LOWER_TEXT:
		case F_UPPER_TEXT:
		case F_INITCAP:
		case F_LENGTH_TEXT:
		case F_LENGTH_BPCHAR:
		case F_CHAR_LENGTH_TEXT:
		case F_CHAR_LENGTH_BPCHAR:
		case F_CHARACTER_LENGTH_TEXT:
		case F_CHARACTER_LENGTH_BPCHAR:
		case F_OCTET_LENGTH_TEXT:
		case F_OCTET_LENGTH_BPCHAR:
		case F_OCTET_LENGTH_BYTEA:
		case F_BTRIM_TEXT:
		case F_LTRIM_TEXT:
		case F_RTRIM_TEXT:
		case F_BTRIM_TEXT_TEXT:
		case F_LTRIM_TEXT_TEXT:
		case F_RTRIM_TEXT_TEXT:
		case F_LEFT:
		case F_RIGHT:
		case F_REVERSE:
		case F_STRPOS:
		case F_POSITION_TEXT_TEXT:
		case F_ASCII:
		case F_SUBSTR_TEXT_INT4:
		case F_SUBSTRING_TEXT_INT4:
		case F_TEXT_BPCHAR:
		case F_TEXT_NAME:
		case F_ENUM_EQ:
		case F_ENUM_NE:
			return true;
		case F_SUBSTR_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_INT4_INT4:
			return is_not_negative(static_cast<Node *>(lthird(args)));
		case F_TEXTLIKE:
		case F_TEXTNLIKE:
		case F_TEXTICLIKE:
		case F_TEXTICNLIKE:
		case F_BPCHARLIKE:
		case F_BPCHARNLIKE:
		case F_NAMELIKE:
			return is_sound_pattern(static_cast<Node *>(lsecond(args)));
		default:
			return false;
	}
}

/* Immutable, it says, but what it computes stands in a catalog, which statements change: how texts are parsed, or converted. */
static bool
reads_catalog(Form_pg_proc proc)
{
	switch (proc->oid)
	{
		case F_CONVERT:
		case F_CONVERT_FROM:
		case F_CONVERT_TO:
			return true;
		default:
			break;
	}
	for (int i = 0; i < proc->pronargs; i++)
	{
		if (proc->proargtypes.values[i] == REGCONFIGOID || proc->proargtypes.values[i] == REGDICTIONARYOID)
			return true;
	}
	return false;
}

struct MapScan
{
	const Var  *column;			/* the first that was met, */
	const Var  *other;			/* and the second, which there may be: */
	bool		pairs;
	bool		settled;		/* all functions are immutable, and mean it */
	bool		leaky;			/* one of them may tell of its arguments by raising */
	bool		conditional;	/* below a node that evaluates some of its arguments only */
};

static bool scan_expr(const Node *node, MapScan *scan);

/* Built in, in C, one value for one call. */
static bool
scan_function(Oid function, List *args, MapScan *scan)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		fits;

	if (!OidIsValid(function) || function >= FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	fits = proc->prolang == INTERNALlanguageId && !proc->proretset && proc->prokind == PROKIND_FUNCTION &&
		(proc->provolatile == PROVOLATILE_IMMUTABLE || is_stable_enough(function));
	scan->settled = scan->settled && proc->provolatile == PROVOLATILE_IMMUTABLE && !reads_catalog(proc);
	scan->leaky = scan->leaky || !(proc->proleakproof || never_raises(function, args));
	ReleaseSysCache(tuple);
	return fits;
}

/* A function with these arguments. */
static bool
scan_call(Oid function, List *args, MapScan *scan)
{
	return scan_expr(reinterpret_cast<Node *>(args), scan) && scan_function(function, args, scan);
}

/* Output and input function of a conversion by way of text. */
static bool
scan_io(const CoerceViaIO *io, MapScan *scan)
{
	Oid			out;
	Oid			in;
	Oid			param;
	bool		varlena;

	getTypeOutputInfo(exprType(reinterpret_cast<const Node *>(io->arg)), &out, &varlena);
	getTypeInputInfo(io->resulttype, &in, &param);
	return scan_expr(reinterpret_cast<const Node *>(io->arg), scan) && scan_function(out, NIL, scan) && scan_function(in, NIL, scan);
}

/* GREATEST, LEAST: by the comparison function of the type. */
static bool
scan_minmax(const MinMaxExpr *expr, MapScan *scan)
{
	TypeCacheEntry *entry = lookup_type_cache(expr->minmaxtype, TYPECACHE_CMP_PROC);

	return scan_call(entry->cmp_proc, expr->args, scan);
}

static bool
scan_conditional(const Node *node, MapScan *scan)
{
	bool		outer = scan->conditional;
	bool		fits;

	scan->conditional = true;
	fits = scan_expr(node, scan);
	scan->conditional = outer;
	return fits;
}

static bool
scan_list(List *list, MapScan *scan)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (!scan_expr(static_cast<Node *>(lfirst(lc)), scan))
			return false;
	}
	return true;
}

/* An element or a slice of an array or of jsonb. */
static bool
scan_subscript(const SubscriptingRef *ref, MapScan *scan)
{
	scan->leaky = true;
	return ref->refassgnexpr == nullptr && ref->refcontainertype < FirstNormalObjectId &&
		scan_expr(reinterpret_cast<Node *>(ref->refexpr), scan) && scan_list(ref->refupperindexpr, scan) && scan_list(ref->reflowerindexpr, scan);
}

static bool
scan_case(const CaseExpr *expr, MapScan *scan)
{
	ListCell   *lc;

	if (!scan_expr(reinterpret_cast<Node *>(expr->arg), scan))
		return false;
	foreach(lc, expr->args)
	{
		const CaseWhen *when = static_cast<const CaseWhen *>(lfirst(lc));

		if (!scan_conditional(reinterpret_cast<Node *>(when->expr), scan) || !scan_conditional(reinterpret_cast<Node *>(when->result), scan))
			return false;
	}
	return scan_conditional(reinterpret_cast<Node *>(expr->defresult), scan);
}

static bool
is_same_column(const Var *a, const Var *b)
{
	return a->varno == b->varno && a->varattno == b->varattno;
}

static bool
scan_column(const Var *var, MapScan *scan)
{
	if (var->varlevelsup != 0 || var->varattno <= 0)
		return false;
	if (scan->column == nullptr)
	{
		if (value_type(var->vartype).form != ValueForm::Dictionary)
			return false;
		scan->column = var;
	}
	if (is_same_column(var, scan->column) || !scan->pairs)
		return is_same_column(var, scan->column);
	if (scan->other == nullptr && value_type(var->vartype).form == ValueForm::Dictionary)
		scan->other = var;
	return scan->other != nullptr && is_same_column(var, scan->other);
}

/* Can the expression be evaluated for each entry of one column's dictionary? */
static bool
scan_expr(const Node *node, MapScan *scan)
{
	if (node == nullptr)
		return true;
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (nodeTag(node))
	{
		case T_Var:
			return scan_column((const Var *) node, scan);
		case T_Const:
		case T_CaseTestExpr:
		case T_SQLValueFunction:
			return true;
		case T_Param:
			/* one of a subquery is evaluated before the first row, which PostgreSQL does only where a condition calls for it */
			return ((const Param *) node)->paramkind == PARAM_EXTERN || (((const Param *) node)->paramkind == PARAM_EXEC && !scan->conditional);
		case T_List:
			return scan_list((List *) const_cast<Node *>(node), scan);
		case T_RelabelType:
			return scan_expr(reinterpret_cast<Node *>(((const RelabelType *) node)->arg), scan);
		case T_CollateExpr:
			return scan_expr(reinterpret_cast<Node *>(((const CollateExpr *) node)->arg), scan);
		case T_FuncExpr:
			return scan_call(((const FuncExpr *) node)->funcid, ((const FuncExpr *) node)->args, scan);
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			set_opfuncid((OpExpr *) const_cast<Node *>(node));
			return scan_call(((const OpExpr *) node)->opfuncid, ((const OpExpr *) node)->args, scan);
		case T_ScalarArrayOpExpr:
			set_sa_opfuncid((ScalarArrayOpExpr *) const_cast<Node *>(node));
			return scan_call(((const ScalarArrayOpExpr *) node)->opfuncid, ((const ScalarArrayOpExpr *) node)->args, scan);
		case T_SubscriptingRef:
			return scan_subscript((const SubscriptingRef *) node, scan);
		case T_ArrayExpr:
			return scan_list(((const ArrayExpr *) node)->elements, scan);
		case T_BoolExpr:
			return ((const BoolExpr *) node)->boolop == NOT_EXPR ? scan_list(((const BoolExpr *) node)->args, scan)
				: scan_conditional(reinterpret_cast<Node *>(((const BoolExpr *) node)->args), scan);
		case T_NullTest:
			return !((const NullTest *) node)->argisrow && scan_expr(reinterpret_cast<Node *>(((const NullTest *) node)->arg), scan);
		case T_BooleanTest:
			return scan_expr(reinterpret_cast<Node *>(((const BooleanTest *) node)->arg), scan);
		case T_CaseExpr:
			return scan_case((const CaseExpr *) node, scan);
		case T_CoalesceExpr:
			return scan_conditional(reinterpret_cast<Node *>(((const CoalesceExpr *) node)->args), scan);
		case T_MinMaxExpr:
			return scan_minmax((const MinMaxExpr *) node, scan);
		case T_CoerceViaIO:
			return scan_io((const CoerceViaIO *) node, scan);
		default:
			return false;
	}
}

const Var *
bare_column(const Expr *expr)
{
	while (IsA(expr, RelabelType) || IsA(expr, CollateExpr))
		expr = IsA(expr, RelabelType) ? ((const RelabelType *) expr)->arg : ((const CollateExpr *) expr)->arg;
	return IsA(expr, Var) ? (const Var *) expr : nullptr;
}

/* Is a column in it that can have no dictionary? Then it is nothing that could be evaluated for entries. */
static bool
has_plain_column(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		return value_type(((const Var *) node)->vartype).form != ValueForm::Dictionary;
	if (IsA(node, List))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_plain_column), context);
	return find_fact<bool>(Fact::HasPlainColumn, nullptr, node, [&]() {
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_plain_column), context);
	});
}

static bool
has_plain_column(const Expr *expr)
{
	return has_plain_column(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), nullptr);
}

static bool
scan_whole(const Expr *expr, MapScan *scan)
{
	*scan = MapScan{nullptr, nullptr, false, true, false, false};
	return !has_plain_column(expr) && scan_expr(reinterpret_cast<const Node *>(expr), scan) && scan->column != nullptr;
}

static bool
scan_pair(const Expr *expr, MapScan *scan)
{
	*scan = MapScan{nullptr, nullptr, true, true, false, false};
	return !has_plain_column(expr) && scan_expr(reinterpret_cast<const Node *>(expr), scan) && scan->other != nullptr;
}

bool
is_map_expr(const Expr *expr)
{
	MapScan		scan;
	ValueForm	form;

	switch (nodeTag(expr))
	{
		case T_Var:
		case T_Const:
		case T_Param:
		case T_List:
			return false;
		case T_NullTest:
			if (bare_column(((const NullTest *) expr)->arg) != nullptr)
				return false;
			break;
		default:
			if (bare_column(expr) != nullptr)
				return false;
			break;
	}
	form = value_type(exprType(reinterpret_cast<const Node *>(expr))).form;
	return (form == ValueForm::Plain || form == ValueForm::Dictionary) && scan_whole(expr, &scan);
}

bool
pair_columns(const Expr *expr, const Var **a, const Var **b)
{
	MapScan		scan;

	if (!scan_pair(expr, &scan))
		return false;
	*a = scan.column;
	*b = scan.other;
	return true;
}

/* What programs compute of its arguments by themselves, a comparison of two columns say, is none. */
bool
is_pair_expr(const Expr *expr)
{
	MapScan		scan;
	DictionaryComparison comparison;
	ValueForm	form;

	switch (nodeTag(expr))
	{
		case T_FuncExpr:
			if (lookup_function(((const FuncExpr *) expr)->funcid) != nullptr)
				return false;
			break;
		case T_OpExpr:
			set_opfuncid((OpExpr *) const_cast<Expr *>(expr));
			if (lookup_function(((const OpExpr *) expr)->opfuncid) != nullptr || is_span_comparison(((const OpExpr *) expr)->opfuncid, ((const OpExpr *) expr)->args))
				return false;
			if (dictionary_clause(reinterpret_cast<const Node *>(expr), &comparison) && !is_pair_expr(comparison.sides[0]) && !is_pair_expr(comparison.sides[1]))
				return false;
			break;
		case T_ScalarArrayOpExpr:
			if (IsA(lsecond(((const ScalarArrayOpExpr *) expr)->args), Const) || IsA(lsecond(((const ScalarArrayOpExpr *) expr)->args), ArrayExpr))
				return false;
			break;
		case T_CoerceViaIO:
		case T_SubscriptingRef:
			break;
		default:
			return false;
	}
	form = value_type(exprType(reinterpret_cast<const Node *>(expr))).form;
	return (form == ValueForm::Plain || form == ValueForm::Dictionary) && scan_pair(expr, &scan);
}

bool
map_is_leaky(const Expr *expr)
{
	MapScan		scan;

	return scan_pair(expr, &scan) ? scan.leaky : scan_whole(expr, &scan) && scan.leaky;
}

bool
map_is_settled(const Expr *expr)
{
	MapScan		scan;

	return scan_pair(expr, &scan) ? scan.settled : scan_whole(expr, &scan) && scan.settled;
}

/* -- into the program ----------------------------------------------------------------- */

int
add_map(Compiler *c, const PlanMap &map)
{
	for (int i = 0; i < c->nmaps; i++)
	{
		const PlanMap *m = &c->maps[i];

		if (m->kind == map.kind && m->cursor == map.cursor && m->attnum == map.attnum && m->collation == map.collation &&
			m->null_entry == map.null_entry && m->type == map.type && same_dictionary(m->from, map.from) && same_dictionary(m->to, map.to) &&
			equal(m->expr, map.expr))
			return i;
	}
	if (c->nmaps == MAX_MAPS)
		return refuse(c, "the query has more than %d expressions over dictionaries", MAX_MAPS);
	c->maps[c->nmaps] = map;
	return c->nmaps++;
}

/* The map of an expression over this column. */
static int
column_map(Compiler *c, const Expr *expr, int cursor, AttrNumber attnum, MapKind kind, Oid collation)
{
	Expr	   *own = const_cast<Expr *>(expr);

	return add_map(c, PlanMap{kind, cursor, attnum, own, collation, contain_nonstrict_functions(reinterpret_cast<Node *>(own)),
							  NO_DICTIONARY, NO_DICTIONARY});
}

int
derived_map(Compiler *c, const Expr *expr)
{
	MapScan		scan;
	DictionaryRef column;

	if (!scan_whole(expr, &scan))
		return refuse(c, "an expression of this kind is not supported");
	if (!dictionary_of(c, (const Expr *) scan.column, &column))
		return -1;
	return column_map(c, expr, column.cursor, column.attnum, MapKind::Derived, InvalidOid);
}

int
constant_map(Compiler *c, const Expr *expr)
{
	return add_map(c, PlanMap{MapKind::Constant, -1, 0, const_cast<Expr *>(expr), InvalidOid, false, NO_DICTIONARY, NO_DICTIONARY});
}

static int
emit_lookup(Compiler *c, const Expr *expr, const Var *column, MapKind kind, Type type, Oid collation)
{
	int			code = compile_expr(c, reinterpret_cast<const Expr *>(column));
	int			map;
	int			out;

	if (code < 0)
		return -1;
	if (c->info[code].attnum == 0 || c->info[code].map >= 0)
		return refuse(c, "the column's dictionary is not known");	/* a semijoin's key in its place, of another type */
	map = column_map(c, expr, c->info[code].cursor, c->info[code].attnum, kind, collation);
	if (map < 0)
		return -1;
	out = new_reg(c, type);
	if (out < 0)
		return -1;
	emit(c, Opcode::Lookup, type, out, map, code, 0, c->maps[map].null_entry ? LOOKUP_NULL : 0);
	if (kind != MapKind::Values && kind != MapKind::Tied)
		c->info[out].map = static_cast<int16>(map);
	return out;
}

int
compile_map(Compiler *c, const Expr *expr)
{
	MapScan		scan;
	ValueType	type = value_type(exprType(reinterpret_cast<const Node *>(expr)));

	if (!scan_whole(expr, &scan))
		return refuse(c, "an expression of this kind is not supported");
	return emit_lookup(c, expr, scan.column, type.form == ValueForm::Dictionary ? MapKind::Derived : MapKind::Values, type.type, InvalidOid);
}

int
compile_rank(Compiler *c, const Expr *expr, Oid collation)
{
	MapScan		scan;
	Oid			type = exprType(reinterpret_cast<const Node *>(expr));

	if (!scan_whole(expr, &scan))
		return refuse(c, "the order of %s is known for expressions over one dictionary column", format_type_be(type));
	if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		return refuse(c, "the collation is not deterministic");
	return emit_lookup(c, expr, scan.column, MapKind::Rank, Type::I32, collation);
}

bool
ranked_dictionary(Compiler *c, const Expr *expr, DictionaryRef *column)
{
	MapScan		scan;

	return scan_whole(expr, &scan) && dictionary_of(c, (const Expr *) scan.column, column);
}

int
compile_tied(Compiler *c, const Expr *expr, Oid collation)
{
	MapScan		scan;

	return scan_whole(expr, &scan) ? emit_lookup(c, expr, scan.column, MapKind::Tied, Type::Bool, collation)
		: refuse(c, "an expression of this kind is not supported");
}

OutputForm
output_form(const Compiler *c, int reg)
{
	const RegisterInfo *info = &c->info[reg];
	OutputForm	form = {OutputKind::Plain, info->scale, info->cursor, info->attnum, info->map};

	if (info->variable)
		form.kind = OutputKind::Variable;
	else if (info->packed)
		form.kind = OutputKind::Packed;
	else if (info->wide)
		form.kind = OutputKind::Wide;
	else if (info->map >= 0)
		form.kind = OutputKind::Map;
	else if (info->attnum != 0)
		form.kind = OutputKind::Dictionary;
	else if (info->scale >= 0)
		form.kind = OutputKind::Numeric;
	return form;
}

}  // namespace gpuvm
