/* rel.cc: nodes of the algebra. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/readfuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

#include <cstddef>

#include "pg/compat.h"
#include "plan/rel.h"

namespace gpuvm {

/* What is copied, compared, written and read: the same for all. */
enum FieldKind { FIELD_INT, FIELD_BOOL, FIELD_NODE };

struct Field
{
	const char *name;
	size_t		offset;
	FieldKind	kind;
};

static const Field FIELDS[] = {
	{"op", offsetof(GpuvmRel, op), FIELD_INT},
	{"inputs", offsetof(GpuvmRel, inputs), FIELD_NODE},
	{"columns", offsetof(GpuvmRel, columns), FIELD_NODE},
	{"quals", offsetof(GpuvmRel, quals), FIELD_NODE},
	{"barrier", offsetof(GpuvmRel, barrier), FIELD_BOOL},
	{"join", offsetof(GpuvmRel, join), FIELD_INT},
	{"reduces", offsetof(GpuvmRel, reduces), FIELD_BOOL},
	{"keys", offsetof(GpuvmRel, keys), FIELD_NODE},
	{"sets", offsetof(GpuvmRel, sets), FIELD_NODE},
	{"windows", offsetof(GpuvmRel, windows), FIELD_NODE},
	{"offset", offsetof(GpuvmRel, offset), FIELD_NODE},
	{"count", offsetof(GpuvmRel, count), FIELD_NODE},
	{"ties", offsetof(GpuvmRel, ties), FIELD_BOOL},
	{"setop", offsetof(GpuvmRel, setop), FIELD_INT},
	{"arms", offsetof(GpuvmRel, arms), FIELD_NODE},
	{"rows", offsetof(GpuvmRel, rows), FIELD_NODE},
	{"query", offsetof(GpuvmRel, query), FIELD_NODE},
	{"rte", offsetof(GpuvmRel, rte), FIELD_NODE},
	{"leaves", offsetof(GpuvmRel, leaves), FIELD_NODE},
	{"id", offsetof(GpuvmRel, id), FIELD_INT},
	{"definitions", offsetof(GpuvmRel, definitions), FIELD_NODE},
	{"last_number", offsetof(GpuvmRel, last_number), FIELD_INT},
};

template <typename T>
static T &
field(const ExtensibleNode *node, const Field &f)
{
	return *reinterpret_cast<T *>(const_cast<char *>(reinterpret_cast<const char *>(node)) + f.offset);
}

static void
copy_rel(ExtensibleNode *to, const ExtensibleNode *from)
{
	for (const Field &f : FIELDS)
	{
		switch (f.kind)
		{
			case FIELD_INT:
				field<int>(to, f) = field<int>(from, f);
				break;
			case FIELD_BOOL:
				field<bool>(to, f) = field<bool>(from, f);
				break;
			case FIELD_NODE:
				field<void *>(to, f) = copyObjectImpl(field<void *>(from, f));
				break;
		}
	}
}

static bool
equal_rels(const ExtensibleNode *a, const ExtensibleNode *b)
{
	for (const Field &f : FIELDS)
	{
		if (f.kind == FIELD_NODE ? !equal(field<void *>(a, f), field<void *>(b, f))
			: f.kind == FIELD_INT ? field<int>(a, f) != field<int>(b, f) : field<bool>(a, f) != field<bool>(b, f))
			return false;
	}
	return true;
}

static void
write_rel(StringInfo str, const ExtensibleNode *node)
{
	for (const Field &f : FIELDS)
	{
		appendStringInfo(str, " :%s ", f.name);
		if (f.kind == FIELD_INT)
			appendStringInfo(str, "%d", field<int>(node, f));
		else if (f.kind == FIELD_BOOL)
			appendStringInfoString(str, field<bool>(node, f) ? "true" : "false");
		else
			outNode(str, field<void *>(node, f));
	}
}

static void
read_rel(ExtensibleNode *node)
{
	for (const Field &f : FIELDS)
	{
		const char *token;
		int			length;

		pg_strtok(&length);		/* the name */
		if (f.kind == FIELD_NODE)
		{
			field<void *>(node, f) = nodeRead(nullptr, 0);
			continue;
		}
		token = pg_strtok(&length);
		if (f.kind == FIELD_INT)
			field<int>(node, f) = atoi(token);
		else
			field<bool>(node, f) = *token == 't';
	}
}

static const ExtensibleNodeMethods METHODS = {"GpuvmRel", sizeof(GpuvmRel), copy_rel, equal_rels, write_rel, read_rel};

void
rel_register(void)
{
	RegisterExtensibleNodeMethods(&METHODS);
}

GpuvmRel *
rel_make(RelOp op, List *inputs, List *columns)
{
	GpuvmRel   *rel = static_cast<GpuvmRel *>(palloc0(sizeof(GpuvmRel)));

	rel->node.type = T_ExtensibleNode;
	rel->node.extnodename = METHODS.extnodename;
	rel->op = op;
	rel->inputs = inputs;
	rel->columns = columns;
	return rel;
}

GpuvmRel *
rel_share(GpuvmRel *rows, const List *definitions)
{
	GpuvmRel   *shared = rel_make(REL_SHARED, list_make1(rows));
	ListCell   *lc;

	foreach(lc, definitions)
		shared->id = Max(shared->id, static_cast<const GpuvmRel *>(lfirst(lc))->id);
	shared->id++;
	foreach(lc, rows->columns)
		shared->columns = lappend(shared->columns, rel_hand_on(lfirst_node(TargetEntry, lc)));
	return shared;
}

Node *
rel_bigint(int64 value)
{
	return (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(value), false, FLOAT8PASSBYVAL);
}

GpuvmRel *
rel_number_rows(GpuvmRel *input, List *partition, List *order, WindowFunc **row_number)
{
	WindowClause *window = makeNode(WindowClause);
	WindowFunc *function = makeNode(WindowFunc);
	GpuvmRel   *rel = rel_make(REL_WINDOW, list_make1(input));

	window->partitionClause = partition;
	window->orderClause = order;
	window->frameOptions = FRAMEOPTION_DEFAULTS;
	window->winref = 1;
	function->winfnoid = F_ROW_NUMBER;
	function->wintype = INT8OID;
	function->winref = 1;
	function->location = -1;
	rel->windows = list_make1(window);
	*row_number = function;
	return rel;
}

TargetEntry *
rel_find(const GpuvmRel *rel, int number)
{
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (column->resno == number)
			return column;
	}
	return nullptr;
}

Var *
rel_var(const TargetEntry *column)
{
	const Node *expr = (const Node *) column->expr;

	return makeVar(IR_VAR, column->resno, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);
}

TargetEntry *
rel_hand_on(const TargetEntry *column)
{
	return makeTargetEntry((Expr *) rel_var(column), column->resno, column->resname, false);
}

TargetEntry *
rel_mark(const GpuvmRel *join)
{
	ListCell   *lc;

	foreach(lc, join->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column))
			return column;
	}
	return nullptr;
}

Bitmapset *
rel_numbers(const GpuvmRel *rel)
{
	Bitmapset  *numbers = nullptr;
	ListCell   *lc;

	foreach(lc, rel->columns)
		numbers = bms_add_member(numbers, lfirst_node(TargetEntry, lc)->resno);
	return numbers;
}

static bool
add_columns(Node *node, Bitmapset **numbers)
{
	if (node == nullptr)
		return false;
	if (rel_column_of(node) != 0)
		*numbers = bms_add_member(*numbers, rel_column_of(node));
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(add_columns), numbers);
}

Bitmapset *
rel_columns_in(const Node *expr)
{
	Bitmapset  *numbers = nullptr;

	add_columns(const_cast<Node *>(expr), &numbers);
	return numbers;
}

static void
each_of_list(List *list, RelExpression visit, void *context)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		if (node != nullptr && IsA(node, List))
			each_of_list((List *) node, visit, context);
		else if (node != nullptr && IsA(node, TargetEntry))
			visit((Node **) &((TargetEntry *) node)->expr, context);
		else
			visit((Node **) &lfirst(lc), context);
	}
}

void
rel_each_expression(GpuvmRel *rel, RelExpression visit, void *context)
{
	ListCell   *lc;

	each_of_list(rel->columns, visit, context);
	each_of_list(rel->quals, visit, context);
	each_of_list(rel->rows, visit, context);
	foreach(lc, rel->windows)
	{
		WindowClause *window = lfirst_node(WindowClause, lc);

		if (window->startOffset != nullptr)
			visit(&window->startOffset, context);
		if (window->endOffset != nullptr)
			visit(&window->endOffset, context);
	}
	if (rel->offset != nullptr)
		visit(&rel->offset, context);
	if (rel->count != nullptr)
		visit(&rel->count, context);
}

}  // namespace gpuvm
