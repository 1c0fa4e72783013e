/*
 * lowering_external.cc: a table that is not imported, VALUES, a function or a recursive CTE, as rows for stages:
 * PostgreSQL runs a plan of its own for these (executor/external.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "pg/numeric_scaled.h"
#include "pg/shmem.h"
#include "plan/shadow.h"
#include "planner/lowering.h"
#include "planner/stage_paths.h"

namespace gpuvm {

/* Of so many rows texts get no dictionary. */
constexpr double MANY_ROWS = 10000;
/* Of a value that has no fixed length, at least. */
constexpr int VARIABLE_BYTES = 16;

/* A table that this statement's locks are for, and that shows all of its rows; or no table. */
static bool
is_readable(const RangeTblEntry *rte)
{
	if (rte->rtekind != RTE_RELATION)
		return true;
	return (rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW ||
			rte->relkind == RELKIND_FOREIGN_TABLE) && rte->securityQuals == NIL && rte->tablesample == nullptr;
}

/* Decimals of a numeric: what its type says, or all rows of VALUES show; -1: any. */
static int
scale_of(const RangeTblEntry *rte, const Node *expr)
{
	int			scale = numeric_typmod_scale(exprTypmod(expr));
	ListCell   *lc;

	if (scale >= 0 || rte->rtekind != RTE_VALUES)
		return scale;
	foreach(lc, rte->values_lists)
	{
		const int	column = ((const Var *) expr)->varattno - 1;
		const Node *value = static_cast<const Node *>(list_nth(lfirst_node(List, lc), column));
		int			shown;

		if (IsA(value, Const) && ((const Const *) value)->constisnull)
			continue;
		shown = IsA(value, Const) ? numeric_display_scale(DatumGetPointer(((const Const *) value)->constvalue)) : -1;
		if (shown < 0 || (scale >= 0 && scale != shown))
			return -1;
		scale = shown;
	}
	return scale;
}

static bool
describe_column(const RangeTblEntry *rte, const Node *expr, double rows, AttrNumber attnum, ChildColumn *column)
{
	const Oid	pg_type = exprType(expr);
	ValueType	type = value_type(pg_type);
	const int	scale = type.form == ValueForm::Numeric ? scale_of(rte, expr) : -1;

	if ((type.form == ValueForm::Numeric && scale < 0) || (type.form == ValueForm::Dictionary && rows > MANY_ROWS))
		type.form = ValueForm::None;
	if (type.form == ValueForm::None && variable_type(get_typlen(pg_type), get_typbyval(pg_type)))
		type = ValueType{Type::I64, ValueForm::Variable};
	*column = ChildColumn{attnum, type.type, type.form, type.form == ValueForm::Numeric ? scale : -1, false,
		pg_type, exprTypmod(expr), exprCollation(expr)};
	return type.form != ValueForm::None;
}

static int
bytes_of(const ChildColumn &column)
{
	return column.form == ValueForm::Variable ? VARIABLE_BYTES : type_natural_width(column.type);
}

/* What is asked for of the table; of nothing, how many rows it has. */
static Query *
query_of(const GpuvmRel *rel)
{
	Query	   *query = static_cast<Query *>(copyObjectImpl(rel->query));
	Const	   *zero = makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(0), false, true);

	if (query->targetList == NIL)
		query->targetList = list_make1(makeTargetEntry((Expr *) zero, 1, pstrdup("row"), false));
	return query;
}

/* The stage's columns, and for estimates those of the table; of what is none nothing is known. */
static bool
describe_rows(Lowering *l, const Query *query, double rows, Stage *stage)
{
	const RangeTblEntry *rte = linitial_node(RangeTblEntry, query->rtable);
	const RelOptInfo *table = rte->rtekind != RTE_RELATION ? nullptr
		: add_relation(l, compat_own_relation(rte, l->root->parse));
	List	   *exprs = NIL;
	double		bytes = 0;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *target = lfirst_node(TargetEntry, lc);
		Node	   *expr = static_cast<Node *>(copyObjectImpl(target->expr));
		ChildColumn column;

		if (!describe_column(rte, expr, rows, target->resno, &column))
			return lowering_refuse(l, "a column of a table that is not imported is of no type of programs") != nullptr;
		if (table != nullptr && IsA(expr, Var))
			((Var *) expr)->varno = ((Var *) expr)->varnosyn = table->relid;
		bytes += rows * bytes_of(column);
		stage->columns = lappend(stage->columns, child_column_to_list(column));
		stage->names = lappend(stage->names, makeString(pstrdup(target->resname)));
		exprs = lappend(exprs, table != nullptr ? expr : nullptr);
	}
	stage->exprs = exprs;
	stage->rows = rows;
	if (bytes > static_cast<double>(run_memory_limit()))
		return lowering_refuse(l, "a table that is not imported has too many rows") != nullptr;
	return true;
}

/* Rows of this entry, by PostgreSQL: `columns` are what is asked for of them. */
static Piece *
read_query(Lowering *l, Query *query, const List *columns)
{
	const RangeTblEntry *rte = linitial_node(RangeTblEntry, query->rtable);
	PlannedStmt *stmt;
	Stage		stage = {};
	List	   *exprs = NIL;
	Piece	   *piece;
	int			relid;
	ListCell   *lc;

	/* programs for single columns, their halves and images */
	if (3 * list_length(query->targetList) > static_cast<int>(PROGRAM_MAX_COLUMNS))
		return lowering_refuse(l, "a stage has too many columns");
	stmt = plan_alone(static_cast<Query *>(copyObjectImpl(query)));
	if (!describe_rows(l, query, Max(stmt->planTree->plan_rows, 1), &stage))
		return nullptr;
	foreach(lc, query->targetList)
		exprs = lappend(exprs, lfirst_node(TargetEntry, lc)->expr);
	stage.path = make_external_path(stmt, exprs, stage.names);
	piece = piece_of_stage(l, &stage);
	relid = bms_singleton_member(piece->shape.cursors[0].relids);
	planner_rt_fetch(relid, l->root)->eref->aliasname = rte->eref->aliasname;
	foreach(lc, columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		Var		   *own = static_cast<Var *>(copyObjectImpl(column->expr));

		own->varno = own->varnosyn = relid;
		own->varattnosyn = own->varattno;
		l->values[column->resno] = (Node *) own;
	}
	return piece;
}

Piece *
lower_external(Lowering *l, const GpuvmRel *rel)
{
	Query	   *query = query_of(rel);
	const RangeTblEntry *rte = linitial_node(RangeTblEntry, query->rtable);
	Piece	   *piece;

	if (!is_readable(rte))
		return lowering_refuse(l, "a relation that is not imported is read");
	/* programs may read them where the recursion is planned with the statement */
	if (rte->rtekind == RTE_CTE && tables_read(query).imported)
		return lowering_refuse(l, "a recursive CTE reads imported tables");
	piece = read_query(l, query, rel->columns);
	if (piece != nullptr && rte->rtekind == RTE_RELATION)
		l->externals = lappend(l->externals, linitial(query->rtable));
	return piece;
}

/* Their rows, or in an arm of UNION ALL the one of a FROM clause without tables, which has no columns. */
Piece *
lower_values(Lowering *l, const GpuvmRel *rel)
{
	Query	   *query = makeNode(Query);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	RangeTblRef *reference = makeNode(RangeTblRef);
	GpuvmRel	rows = {};
	List	   *columns = NIL;
	ListCell   *lc;

	/* a statement, or a subquery, without tables: a condition on its value alone is evaluated without rows, too */
	if (linitial(rel->rows) == NIL && !l->in_arm)
		return lowering_refuse(l, "a FROM clause without tables");
	if (has_bound_value((Node *) rel->rows, nullptr) || contain_var_clause((Node *) rel->rows))
		return lowering_refuse(l, "VALUES depend on other rows");
	rte->rtekind = RTE_VALUES;
	rte->eref = rte->alias = makeAlias("values", NIL);
	rte->inFromCl = true;
	rte->values_lists = linitial(rel->rows) != NIL ? static_cast<List *>(copyObjectImpl(rel->rows))
		: list_make1(list_make1(rel_bigint(0)));
	foreach(lc, linitial_node(List, rte->values_lists))
	{
		const Node *value = static_cast<const Node *>(lfirst(lc));
		char	   *name = psprintf("column%d", foreach_current_index(lc) + 1);

		rte->eref->colnames = lappend(rte->eref->colnames, makeString(name));
		rte->coltypes = lappend_oid(rte->coltypes, exprType(value));
		rte->coltypmods = lappend_int(rte->coltypmods, exprTypmod(value));
		rte->colcollations = lappend_oid(rte->colcollations, exprCollation(value));
	}
	reference->rtindex = 1;
	query->commandType = CMD_SELECT;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->rtable = list_make1(rte);
	query->jointree = makeFromExpr(list_make1(reference), nullptr);
	query->stmt_location = query->stmt_len = -1;
	/* some of the columns, by other numbers */
	foreach(lc, rel->columns)
	{
		TargetEntry *column = static_cast<TargetEntry *>(copyObjectImpl(lfirst(lc)));
		Var		   *own = static_cast<Var *>(copyObjectImpl(column->expr));
		const int	number = foreach_current_index(lc) + 1;

		own->varno = own->varnosyn = 1;
		query->targetList = lappend(query->targetList, makeTargetEntry((Expr *) own, number, column->resname, false));
		((Var *) column->expr)->varattno = number;
		columns = lappend(columns, column);
	}
	rows.query = (Node *) query;
	return read_query(l, query_of(&rows), columns);
}

}  // namespace gpuvm
