/* leaves.cc: columns, constants and parameters. */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/heap.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

#include <algorithm>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

bool
is_column_of(const Bitmapset *relids, const Var *var, AttrNumber *attnum)
{
	if (var->varlevelsup != 0 || !bms_is_member(var->varno, relids))
		return false;
	*attnum = var->varattno;
	return true;
}

bool
is_column_of(const CompileCursor *cursor, const Var *var, AttrNumber *attnum)
{
	return is_column_of(cursor->relids, var, attnum);
}

char *
cursor_column_name(const CompileCursor *cursor, AttrNumber attnum)
{
	if (attnum == 0)
		return get_rel_name(cursor->relid);
	if (attnum < 0)
		return pstrdup(NameStr(SystemAttributeDefinition(attnum)->attname));
	return cursor->names != NIL ? strVal(list_nth(cursor->names, attribute_of(attnum) - 1)) : get_attname(cursor->relid, attnum, false);
}

int
column_place(const CompileCursor *cursor, AttrNumber attnum)
{
	const int	place = imported_column(cursor->table, attnum);

	return place >= 0 && static_cast<Type>(cursor->table->types[place]) == Type::None ? -1 : place;
}

/* Was the column imported, but had values that tablets cannot store? */
static bool
was_left_out(const ImportedTable *t, AttrNumber attnum)
{
	return imported_column(t, attnum) >= 0;
}

/* Is the column still of the type that was imported? (Its definition may have changed since.) */
static bool
holds(const ImportedTable *t, int place, ValueType wanted)
{
	return !t->variable[place] && static_cast<Type>(t->types[place]) == wanted.type && (t->scales[place] >= 0) == (wanted.form == ValueForm::Numeric) &&
		(t->entries[place] > 0) == (wanted.form == ValueForm::Dictionary);
}

/* A register for the column, the one that was set aside for it in the result if it stays what it is up to there. */
static int
column_register(Compiler *c, int cursor, AttrNumber attnum, Type type)
{
	if (c->depth == 0 && !c->transient)
	{
		for (int i = 0; i < c->noutputs; i++)
		{
			if (c->outputs[i].cursor == cursor && c->outputs[i].attnum == attnum)
				return c->outputs[i].reg;
		}
	}
	return new_reg(c, type);
}

/*
 * A column of a semijoin's inner side, above it: the planner uses one that is
 * equal to an expression of the other side, in place of that.
 */
static int
load_matched(Compiler *c, const CompileCursor *cursor, AttrNumber attnum, Type type, const RegisterInfo &info)
{
	ListCell   *lc;

	/* a full join behind it may have made it null */
	for (int i = static_cast<int>(cursor - c->input->cursors) + 1; i < c->npositioned; i++)
	{
		if (c->matched[i] && c->input->cursors[i].kind == JoinKind::Full)
			return refuse(c, "a column of a semijoin's inner side is used above it");
	}
	foreach(lc, cursor->keys)
	{
		Node	   *outer;
		Node	   *inner;
		AttrNumber	sought;

		if (key_sides(static_cast<const Expr *>(lfirst(lc)), cursor->relids, &outer, &inner) && IsA(inner, Var) &&
			is_column_of(cursor, (Var *) inner, &sought) && sought == attnum && info.attnum == 0 && !info.wide && lookup_function(lfirst_node(OpExpr, lc)->opfuncid)->kind == FnKind::Compare)
		{
			int			reg = compile_expr(c, reinterpret_cast<Expr *>(outer));

			/* equal, but shown with other digits */
			if (reg >= 0 && c->info[reg].scale != info.scale)
				break;
			return convert(c, reg, type);
		}
	}
	return refuse(c, "a column of a semijoin's inner side is used above it");
}

int
load_column(Compiler *c, int cursor, AttrNumber attnum, Oid type)
{
	const CompileCursor *from = &c->input->cursors[cursor];
	ValueType	wanted = value_type(type);
	RegisterInfo info = NO_INFO;
	int			place;
	int			reg;

	for (int i = 0; i < c->ncached; i++)
	{
		if (c->cached[i].cursor == cursor && c->cached[i].attnum == attnum)
			return c->cached[i].reg;
	}

	if (attnum <= 0)
		return refuse(c, "system columns and whole rows are not in tablets");
	place = column_place(from, is_high_half(attnum) ? attribute_of(attnum) : attnum);
	if (place >= 0 && from->table->variable[place] && !get_typbyval(type))
		wanted = ValueType{Type::I64, ValueForm::Variable};
	if (place < 0 && was_left_out(from->table, attnum))
	{
		if (get_rel_relkind(from->relid) == RELKIND_PARTITIONED_TABLE)
			return refuse(c, "column \"%s\" was left out of the import of a partition, or the partitions' values of it are stored in different forms", cursor_column_name(from, attnum));
		c->input->hint = "The NOTICE of gpuvm.import() names the values.";
		return refuse(c, "column \"%s\" was left out of the import: tablets cannot store its values", cursor_column_name(from, attnum));
	}
	if (place < 0 || (wanted.form != ValueForm::Variable && !holds(from->table, place, wanted)))
	{
		c->input->hint = "Import the table with that column, if its type can be imported.";
		return refuse(c, "column \"%s\" was not imported", cursor_column_name(from, attnum));
	}
	if (wanted.form == ValueForm::Numeric)
	{
		info = numeric_info(from->table->scales[place]);
		info.wide = from->table->wide[place];
	}
	else if (wanted.form == ValueForm::Dictionary || wanted.form == ValueForm::Variable)
	{
		info.variable = wanted.form == ValueForm::Variable;
		info.cursor = static_cast<int16>(cursor);
		info.attnum = attnum;
	}

	if (c->matched[cursor] && from->kind == JoinKind::Semi)
		reg = load_matched(c, from, attnum, wanted.type, info);
	else
		reg = column_register(c, cursor, attnum, wanted.type);
	if (reg < 0)
		return -1;
	/* What an anti join lets go on has met no row of this cursor. */
	if (c->matched[cursor] && from->kind == JoinKind::Anti)
		emit(c, Opcode::Null, wanted.type, reg, 0, 0);
	else if (!c->matched[cursor] || from->kind != JoinKind::Semi)
		emit(c, Opcode::Column, wanted.type, reg, attnum, cursor);
	c->info[reg] = info;
	if (c->ncached < MAX_CACHED_COLUMNS)
		c->cached[c->ncached++] = CachedColumn{cursor, attnum, reg};
	return reg;
}

/* Do the tablets have the column, in the form that programs read it in? */
static bool
is_in_tablets(const CompileCursor *from, const Var *var)
{
	int			place = var->varattno <= 0 ? -1 : column_place(from, var->varattno);

	return place >= 0 && ((from->table->variable[place] && !get_typbyval(var->vartype)) || holds(from->table, place, value_type(var->vartype)));
}

/* Do they have every column of the table? */
static bool
has_all_columns(const CompileCursor *from)
{
	for (AttrNumber attnum = 1; SearchSysCacheExists2(ATTNUM, ObjectIdGetDatum(from->relid), Int16GetDatum(attnum)); attnum++)
	{
		/* of a dropped column there is no type */
		if (OidIsValid(get_atttype(from->relid, attnum)) && column_place(from, attnum) < 0)
			return false;
	}
	return true;
}

bool
is_by_position(const CompileInput *input, const Var *var)
{
	const CompileCursor *from = nullptr;
	char		relkind;

	for (int i = 0; i < input->ncursors; i++)
	{
		AttrNumber	attnum;

		if (is_column_of(&input->cursors[i], var, &attnum))
			from = &input->cursors[i];
	}
	if (input->no_fetches || from == nullptr || from->names != NIL || is_in_tablets(from, var))
		return false;
	relkind = get_rel_relkind(from->relid);
	/* rows that are in no heap are put together from the tablets' columns, all of which they need */
	if (from->table->of_file)
		return var->varattno == SelfItemPointerAttributeNumber || var->varattno == TableOidAttributeNumber ||
			(var->varattno == 0 && relkind == RELKIND_FOREIGN_TABLE && has_all_columns(from));
	/* rows of others are in no heap; a partition's row is of another type than the whole */
	return relkind == RELKIND_RELATION || relkind == RELKIND_MATVIEW || (relkind == RELKIND_PARTITIONED_TABLE && var->varattno != 0);
}

int
compile_position(Compiler *c, int cursor)
{
	const AttrNumber attnum = SelfItemPointerAttributeNumber;
	const CompileCursor *from = &c->input->cursors[cursor];
	int			reg;

	for (int i = 0; i < c->ncached; i++)
	{
		if (c->cached[i].cursor == cursor && c->cached[i].attnum == attnum)
			return c->cached[i].reg;
	}
	if (c->matched[cursor] && from->kind == JoinKind::Semi)
		return refuse(c, "a column of a semijoin's inner side is used above it");
	reg = column_register(c, cursor, attnum, Type::I64);
	if (reg < 0)
		return -1;
	if (c->matched[cursor] && from->kind == JoinKind::Anti)
		emit(c, Opcode::Null, Type::I64, reg, 0, 0);
	else
		emit(c, Opcode::Rowid, Type::I64, reg, 0, cursor);
	c->info[reg] = NO_INFO;
	if (c->ncached < MAX_CACHED_COLUMNS)
		c->cached[c->ncached++] = CachedColumn{cursor, attnum, reg};
	return reg;
}

static int
load_position(Compiler *c, int cursor)
{
	const CompileCursor *from = &c->input->cursors[cursor];

	return from->names != NIL ? refuse(c, "a row of \"%s\" has no ctid where it is joined", get_rel_name(from->relid)) : compile_position(c, cursor);
}

/* A column; of a wide one the low halves, and the high ones are loaded, too. */
static int
load_halves(Compiler *c, int cursor, AttrNumber attnum, Oid type)
{
	int			reg = load_column(c, cursor, attnum, type);

	return reg >= 0 && c->info[reg].wide && load_column(c, cursor, high_half(attnum), type) < 0 ? -1 : reg;
}

int
load_output(Compiler *c, int cursor, const Var *var)
{
	AttrNumber	attnum = 0;

	if (is_by_position(c->input, var))
		return load_position(c, cursor);
	is_column_of(&c->input->cursors[cursor], var, &attnum);
	return load_halves(c, cursor, attnum, var->vartype);
}

/* The cursor that reads the column's relation, and the column's number; -1 if none does, or not yet. */
static int
cursor_of(const Compiler *c, const Var *var, AttrNumber *attnum)
{
	for (int i = 0; i < c->npositioned; i++)
	{
		int			cursor = c->first + i;

		if (is_column_of(&c->input->cursors[cursor], var, attnum))
			return cursor;
	}
	return -1;
}

int
compile_column(Compiler *c, const Var *var)
{
	AttrNumber	attnum;
	int			cursor = cursor_of(c, var, &attnum);

	if (cursor < 0)
		return refuse(c, "a column of another relation is used");
	return load_column(c, cursor, attnum, var->vartype);
}

int
compile_var(Compiler *c, const Var *var)
{
	int			reg = compile_column(c, var);

	if (reg >= 0 && c->info[reg].wide)
	{
		AttrNumber	attnum;
		int			cursor = cursor_of(c, var, &attnum);

		return refuse_wide(c, cursor, attnum);
	}
	return reg >= 0 && c->info[reg].variable ? refuse_variable(c, var) : reg;
}

bool
load_wide(Compiler *c, const Var *var, WideValue *to)
{
	AttrNumber	attnum;
	int			cursor = cursor_of(c, var, &attnum);

	if (cursor < 0)
		refuse(c, "a column of another relation is used");
	to->low = cursor < 0 ? -1 : load_column(c, cursor, attnum, var->vartype);
	to->high = to->low < 0 ? -1 : load_column(c, cursor, high_half(attnum), var->vartype);
	to->scale = to->low < 0 ? 0 : c->info[to->low].scale;
	to->special = may_be_special(c->input, reinterpret_cast<const Expr *>(var));
	return to->high >= 0;
}

int
cursor_at(Compiler *c, const Var *var, AttrNumber *attnum, bool *absent)
{
	int			cursor = cursor_of(c, var, attnum);

	*absent = false;
	if (cursor < 0)
		return refuse(c, "a column of another relation is used");
	if (c->matched[cursor] && c->input->cursors[cursor].kind == JoinKind::Semi)
		return refuse(c, "a column of a semijoin's inner side is used above it");
	*absent = c->matched[cursor] && c->input->cursors[cursor].kind == JoinKind::Anti;
	return cursor;
}

bool
is_ctid(const Expr *expr)
{
	return IsA(expr, Var) && ((const Var *) expr)->varattno == SelfItemPointerAttributeNumber;
}

int
compile_row(Compiler *c, const Var *ctid)
{
	AttrNumber	attnum;
	int			cursor = cursor_of(c, ctid, &attnum);

	return cursor < 0 ? refuse(c, "a column of another relation is used") : compile_position(c, cursor);
}

/* Has a join, up to here, made rows in which the cursor has none? */
static bool
may_be_absent(const Compiler *c, int cursor)
{
	if (c->matched[cursor] && c->input->cursors[cursor].kind == JoinKind::Left)
		return true;
	for (int i = cursor; i < c->input->ncursors; i++)
	{
		if (i > 0 && c->matched[i] && c->input->cursors[i].kind == JoinKind::Full)
			return true;
	}
	return false;
}

/*
 * Was it declared when the snapshot was taken, which otherwise sees rows of before? What this transaction has written itself tells
 * nothing of who declared it, and no snapshot lists its own transaction.
 */
static bool
was_declared_not_null(Oid relid, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid), Int16GetDatum(attnum));
	TransactionId declarer;
	bool		found;

	if (!HeapTupleIsValid(tuple))
		return false;
	declarer = HeapTupleHeaderGetXmin(tuple->t_data);
	found = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull && ActiveSnapshotSet() && IsMVCCSnapshot(GetActiveSnapshot()) &&
		!TransactionIdIsCurrentTransactionId(declarer) && !XidInMVCCSnapshot(declarer, GetActiveSnapshot());
	ReleaseSysCache(tuple);
	return found;
}

/* Of all rows of the table: with tables that inherit from it, which need not have its constraints. */
static bool
all_declare_not_null(Oid relid, AttrNumber attnum)
{
	bool		found = was_declared_not_null(relid, attnum);
	const char *name;
	List	   *partitions;
	ListCell   *lc;

	switch (found ? get_rel_relkind(relid) : '\0')
	{
		case RELKIND_RELATION:
			return !has_subclass(relid);
		case RELKIND_PARTITIONED_TABLE:
			/* a partition may be younger than the snapshot, and of a foreign table nobody makes sure that it is so */
			name = get_attname(relid, attnum, false);
			partitions = find_inheritance_children(relid, NoLock);
			foreach(lc, partitions)
				found = found && all_declare_not_null(lfirst_oid(lc), get_attnum(lfirst_oid(lc), name));
			list_free(partitions);
			return found;
		default:
			return false;
	}
}

bool
declared_not_null(Oid relid, AttrNumber attnum, bool inherited)
{
	bool		found = attnum > 0 && (inherited ? all_declare_not_null(relid, attnum) : was_declared_not_null(relid, attnum));

#if PG_VERSION_NUM >= 180000
	if (found)
	{
		Relation	rel = table_open(relid, NoLock);	/* locked since it was parsed */

		/* a constraint may be declared, and not valid yet */
		found = TupleDescCompactAttr(RelationGetDescr(rel), attnum - 1)->attnullability == ATTNULLABLE_VALID;
		table_close(rel, NoLock);
	}
#endif
	return found;
}

AttrNumber
not_null_column(Oid relid, const ImportedTable *table)
{
	for (uint32 i = 0; OidIsValid(relid) && i < table->ncols; i++)
	{
		if (static_cast<Type>(table->types[i]) != Type::None && declared_not_null(relid, table->attnums[i], true))
			return table->attnums[i];
	}
	return 0;
}

/* A column of the cursor that is null just where an outer join has made a row without one of it. */
static Var *
telling_column(const CompileCursor *from)
{
	int			varno = bms_next_member(from->relids, -1);
	AttrNumber	attnum = not_null_column(from->relid, from->table);
	ListCell   *lc;

	if (attnum > 0)
	{
		Oid			type;
		int32		typmod;
		Oid			collation;

		get_atttypetypmodcoll(from->relid, attnum, &type, &typmod, &collation);
		return makeVar(varno, attnum, type, typmod, collation, 0);
	}
	/* a key that is null meets nothing */
	foreach(lc, from->kind == JoinKind::Left ? from->keys : NIL)
	{
		Node	   *outer;
		Node	   *inner;

		if (key_sides(static_cast<const Expr *>(lfirst(lc)), from->relids, &outer, &inner) && IsA(inner, Var))
			return (Var *) inner;
	}
	/* the CPU alone knows */
	return makeVar(varno, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);
}

/*
 * Where no row of the subquery is there, an outer join has made its values null, whatever the expression makes of null columns. A row
 * of it has one of some relation.
 */
int
compile_placeholder(Compiler *c, const PlaceHolderVar *phv)
{
	List	   *present = NIL;
	bool		absent = false;
	CaseExpr   *value;
	CaseWhen   *when;

	/* null with its columns */
	if (!contain_nonstrict_functions((Node *) phv->phexpr) && bms_overlap(pull_varnos(nullptr, (Node *) phv->phexpr), phv->phrels))
		return compile_expr(c, phv->phexpr);
	for (int i = 0; i < c->npositioned; i++)
	{
		int			cursor = c->first + i;
		const CompileCursor *from = &c->input->cursors[cursor];
		NullTest   *test;

		if (!bms_overlap(from->relids, phv->phrels))
			continue;
		if (c->matched[cursor] && (from->kind == JoinKind::Semi || from->kind == JoinKind::Anti))
		{
			absent = absent || from->kind == JoinKind::Anti;
			continue;
		}
		if (!may_be_absent(c, cursor))
			return compile_expr(c, phv->phexpr);
		test = makeNode(NullTest);
		test->arg = (Expr *) telling_column(from);
		test->nulltesttype = IS_NOT_NULL;
		test->location = -1;
		present = lappend(present, test);
	}
	/* what an anti join lets go on has met no row of it */
	if (present == NIL && absent)
		return compile_expr(c, (const Expr *) makeNullConst(exprType((Node *) phv->phexpr), exprTypmod((Node *) phv->phexpr), exprCollation((Node *) phv->phexpr)));
	/* of all relations some one has a row */
	if (present == NIL || list_length(present) == c->npositioned)
		return compile_expr(c, phv->phexpr);
	/* PostgreSQL computes it below the join, for rows that meet none, too */
	if (can_raise(phv->phexpr))
		return refuse(c, "an expression below an outer join may raise an error");
	when = makeNode(CaseWhen);
	when->expr = list_length(present) == 1 ? static_cast<Expr *>(linitial(present)) : makeBoolExpr(OR_EXPR, present, -1);
	when->result = phv->phexpr;
	value = makeNode(CaseExpr);
	value->casetype = exprType((const Node *) phv->phexpr);
	value->casecollid = exprCollation((const Node *) phv->phexpr);
	value->args = list_make1(when);
	value->defresult = (Expr *) makeNullConst(value->casetype, exprTypmod((const Node *) phv->phexpr), value->casecollid);
	return compile_expr(c, (const Expr *) value);
}

/* A non-null constant of integer class as int64. */
int64_t
const_int(Oid type, Datum value)
{
	/* its datums may be sign-extended, its values are not */
	if (getBaseType(type) == OIDOID)
		return DatumGetObjectId(value);
	switch (vm_type(type))
	{
		case Type::Bool:
			return DatumGetBool(value);
		case Type::I16:
			return DatumGetInt16(value);
		case Type::I32:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

int
compile_const(Compiler *c, const Const *con)
{
	Type		type = supported_type(c, con->consttype);
	ValueForm	form = value_type(con->consttype).form;

	if (type == Type::None)
		return -1;
	if (form == ValueForm::Numeric)
		return compile_numeric_const(c, con);
	if (con->constisnull)
		return null_value(c, type);
	if (form == ValueForm::Dictionary)
		return compile_dictionary_constant(c, (const Expr *) con);
	if (type == Type::F32)
		return float_value(c, type, DatumGetFloat4(con->constvalue));
	if (type == Type::F64)
		return float_value(c, type, DatumGetFloat8(con->constvalue));
	return int_value(c, type, const_int(con->consttype, con->constvalue));
}

int
compile_param(Compiler *c, const Expr *expr, const RegisterInfo &info)
{
	Oid			pgtype = exprType(reinterpret_cast<const Node *>(expr));
	ValueType	type = value_type(pgtype);
	int			index = 0;
	int			mask;
	int			reg;
	ListCell   *lc;

	if (type.form == ValueForm::Dictionary)
		return compile_dictionary_constant(c, expr);
	if (type.form != ValueForm::Plain)
		return refuse(c, "a parameter of type %s is not supported", format_type_be(pgtype));
	foreach(lc, c->params)
	{
		if (equal(lfirst(lc), expr))
			break;
		index++;
	}
	if (lc == nullptr)
	{
		if (index >= PROGRAM_MAX_PARAMS)
			return refuse(c, "the expression has more than %d parameters", PROGRAM_MAX_PARAMS);
		c->params = lappend(c->params, const_cast<Expr *>(expr));
	}
	reg = value(c, Opcode::Variable, type.type, index, 0, 0, 0, info);
	if (reg < 0 || getBaseType(pgtype) != OIDOID)
		return reg;
	/* its datum may be sign-extended */
	mask = int_value(c, Type::I64, PG_UINT32_MAX);
	return mask < 0 ? -1 : value(c, Opcode::BitAnd, Type::I64, reg, mask);
}

}  // namespace gpuvm
