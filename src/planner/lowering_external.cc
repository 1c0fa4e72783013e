/*
 * lowering_external.cc: a table that is not imported, as rows for stages: PostgreSQL runs a plan of its own for these
 * (executor/external.cc).
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
#include "planner/lowering.h"
#include "planner/stage_paths.h"

namespace gpuvm {

/* Of so many rows texts get no dictionary. */
constexpr double MANY_ROWS = 10000;
/* Of a value that has no fixed length, at least. */
constexpr int VARIABLE_BYTES = 16;

/* One that this statement's locks are for, and that shows all of its rows. */
static bool
is_readable(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && (rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW) &&
		rte->securityQuals == NIL && rte->tablesample == nullptr;
}

static bool
describe_column(const Node *expr, double rows, AttrNumber attnum, ChildColumn *column)
{
	const Oid	pg_type = exprType(expr);
	ValueType	type = value_type(pg_type);
	const int	scale = type.form == ValueForm::Numeric ? numeric_typmod_scale(exprTypmod(expr)) : -1;

	if ((type.form == ValueForm::Numeric && scale < 0) || (type.form == ValueForm::Dictionary && rows > MANY_ROWS))
		type.form = ValueForm::None;
	if (type.form == ValueForm::None && variable_type(get_typlen(pg_type), get_typbyval(pg_type)))
		type = ValueType{Type::I64, ValueForm::Variable};
	*column = ChildColumn{attnum, type.type, type.form, type.form == ValueForm::Numeric ? scale : -1, false, false, false,
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

/* The stage's columns, and for estimates those of the table. */
static bool
describe_rows(Lowering *l, const Query *query, double rows, Stage *stage)
{
	const RangeTblEntry *rte = linitial_node(RangeTblEntry, query->rtable);
	const RelOptInfo *table = add_relation(l, compat_own_relation(rte, l->root->parse));
	List	   *exprs = NIL;
	double		bytes = 0;
	ListCell   *lc;

	foreach(lc, query->targetList)
	{
		TargetEntry *target = lfirst_node(TargetEntry, lc);
		Node	   *expr = static_cast<Node *>(copyObjectImpl(target->expr));
		ChildColumn column;

		if (!describe_column(expr, rows, target->resno, &column))
			return lowering_refuse(l, "a column of a table that is not imported is of no type of programs") != nullptr;
		if (IsA(expr, Var))
			((Var *) expr)->varno = ((Var *) expr)->varnosyn = table->relid;
		bytes += rows * bytes_of(column);
		stage->columns = lappend(stage->columns, child_column_to_list(column));
		stage->names = lappend(stage->names, makeString(pstrdup(target->resname)));
		exprs = lappend(exprs, expr);
	}
	stage->exprs = exprs;
	stage->rows = rows;
	if (bytes > static_cast<double>(run_memory_limit()))
		return lowering_refuse(l, "a table that is not imported has too many rows") != nullptr;
	return true;
}

Piece *
lower_external(Lowering *l, const GpuvmRel *rel)
{
	Query	   *query = query_of(rel);
	PlannedStmt *stmt;
	Stage		stage = {};
	Piece	   *piece;
	int			relid;
	ListCell   *lc;

	if (!is_readable(linitial_node(RangeTblEntry, query->rtable)))
		return lowering_refuse(l, "a relation that is not imported is read");
	/* programs for single columns, their halves and images */
	if (3 * list_length(query->targetList) > static_cast<int>(PROGRAM_MAX_COLUMNS))
		return lowering_refuse(l, "a stage has too many columns");
	stmt = plan_alone(static_cast<Query *>(copyObjectImpl(query)));
	if (!describe_rows(l, query, Max(stmt->planTree->plan_rows, 1), &stage))
		return nullptr;
	stage.path = make_external_path(stmt, const_cast<List *>(stage.exprs), stage.names);
	piece = piece_of_stage(l, &stage);
	relid = bms_singleton_member(piece->shape.cursors[0].relids);
	planner_rt_fetch(relid, l->root)->eref->aliasname = linitial_node(RangeTblEntry, query->rtable)->eref->aliasname;
	l->externals = lappend(l->externals, linitial(query->rtable));
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		Var		   *own = static_cast<Var *>(copyObjectImpl(column->expr));

		own->varno = own->varnosyn = relid;
		own->varattnosyn = own->varattno;
		l->values[column->resno] = (Node *) own;
	}
	return piece;
}

}  // namespace gpuvm
