/* lowering_union.cc: UNION ALL. The arms' rows are those of one stage, so each value is made of the same columns in all of them. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
}

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/stage_paths.h"

namespace gpuvm {

struct UnionArm
{
	const Piece *piece;
	List	   *exprs;			/* that the union's columns are in it */
	CompileInput input;
	RowValues	rows;
};

struct Arms
{
	UnionArm   *arms;
	int			n;
};

/* -- one column --------------------------------------------------------------------------------------- */

/* Columns are numbered from 1 as they come, and listed. */
struct Template
{
	List	   *vars;
};

static Node *
template_mutator(Node *node, void *context)
{
	Template   *t = static_cast<Template *>(context);

	if (node == nullptr)
		return nullptr;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(template_mutator), context);
	t->vars = lappend(t->vars, node);
	return (Node *) makeVar(0, list_length(t->vars), exprType(node), exprTypmod(node), exprCollation(node), 0);
}

/* The scale that the columns are to have where they have different ones; -1: none; -2: there can be none. */
static int
common_scale_of(const Arms *arms, const List *columns)
{
	NumericScale all = {-1, false};
	ListCell   *lc;

	foreach(lc, columns)
	{
		const CompileInput *input = &arms->arms[foreach_current_index(lc)].input;
		const Expr *var = static_cast<const Expr *>(lfirst(lc));

		if (exprType((const Node *) var) != NUMERICOID)
			return -1;
		all = common_scale(all, numeric_scale(input, var));
	}
	if (!all.mixed)
		return -1;
	foreach(lc, columns)
	{
		if (is_wide(&arms->arms[foreach_current_index(lc)].input, static_cast<const Expr *>(lfirst(lc))))
			return -2;
	}
	return all.scale > SCALED_MAX_SCALE ? -2 : all.scale;
}

/* Is it computed in the same way in all arms, of columns? Then the scales that these are to have. */
static bool
is_same_expression(const Arms *arms, int column, List **scales)
{
	Node	   *first = nullptr;
	Template   *templates = static_cast<Template *>(palloc0(sizeof(Template) * arms->n));

	for (int i = 0; i < arms->n; i++)
	{
		Node	   *expr = template_mutator(static_cast<Node *>(list_nth(arms->arms[i].exprs, column)), &templates[i]);

		if (templates[i].vars == NIL || (i > 0 && !equal(expr, first)))
			return false;
		first = expr;
	}
	for (int k = 0; k < list_length(templates[0].vars); k++)
	{
		List	   *columns = NIL;

		for (int i = 0; i < arms->n; i++)
			columns = lappend(columns, list_nth(templates[i].vars, k));
		*scales = lappend_int(*scales, common_scale_of(arms, columns));
	}
	return !list_member_int(*scales, -2);
}

/* The greatest scale of the arms' numerics; *mixed: values have different ones, *large: some arm has numbers of more than 64 bits. */
static int
scale_of_arms(const Arms *arms, int column, bool *mixed, bool *large)
{
	int			scale = -1;

	*mixed = *large = false;
	for (int i = 0; i < arms->n; i++)
	{
		const CompileInput *input = &arms->arms[i].input;
		Node	   *expr = static_cast<Node *>(list_nth(arms->arms[i].exprs, column));
		const NumericScale own = numeric_scale(input, (Expr *) expr);

		if (is_null(expr))
			continue;
		*mixed = *mixed || own.mixed || (scale >= 0 && own.scale != scale);
		*large = *large || is_wide(input, (Expr *) expr);
		scale = Max(scale, own.scale);
	}
	return scale;
}

static void
add_numeric(Arms *arms, int column)
{
	bool		mixed;
	bool		large;
	const int	scale = scale_of_arms(arms, column, &mixed, &large);
	List	   *scales = NIL;
	const bool	parts = (mixed || large) && is_same_expression(arms, column, &scales);

	for (int i = 0; i < arms->n; i++)
	{
		UnionArm   *arm = &arms->arms[i];
		Node	   *expr = static_cast<Node *>(list_nth(arm->exprs, column));

		if (parts)
			add_parts(&arm->rows, &arm->input, expr, scales);
		else if (mixed && !large && scale >= 0 && scale <= SCALED_MAX_SCALE)
			add_with_scale(&arm->rows, expr, scale);
		else if (is_null(expr) && scale >= 0)
			add_at_scale(&arm->rows, expr, scale);
		else
			add_whole(&arm->rows, expr);
	}
}

/*
 * A column that is no numeric. Values of char(n) of different lengths, a text's among them, may be equal without being the
 * same: that their length is not known keeps programs from comparing their bytes.
 */
static void
add_other(Arms *arms, int column)
{
	int32		typmod = -1;
	bool		same = true;
	bool		first = true;

	for (int i = 0; i < arms->n; i++)
	{
		const Node *expr = static_cast<const Node *>(list_nth(arms->arms[i].exprs, column));

		if (is_null(expr) || exprType(expr) != BPCHAROID)
			continue;
		same = first || (same && exprTypmod(expr) == typmod);
		typmod = exprTypmod(expr);
		first = false;
	}
	for (int i = 0; i < arms->n; i++)
	{
		Node	   *expr = static_cast<Node *>(list_nth(arms->arms[i].exprs, column));

		if (!same && is_null(expr))
			expr = (Node *) makeNullConst(exprType(expr), -1, exprCollation(expr));
		else if (!same)
			expr = (Node *) makeRelabelType((Expr *) expr, exprType(expr), -1, exprCollation(expr), COERCE_IMPLICIT_CAST);
		add_whole(&arms->arms[i].rows, expr);
	}
}

/* -- the arms ----------------------------------------------------------------------------------------- */

/* The columns of the arm as they are, if it has no others: its rows are the stage's. */
static bool
is_stage(const UnionArm *arm)
{
	const ShapeCursor *cursor = &arm->piece->shape.cursors[0];
	ListCell   *lc;

	if (arm->piece->shape.ncursors != 1 || cursor->target.child == nullptr || cursor->target.shared != 0 || !is_stage_path(cursor->target.child) || cursor->quals != NIL || cursor->filters != NIL ||
		list_length(arm->rows.columns) != list_length(cursor->target.columns))
		return false;
	foreach(lc, arm->rows.columns)
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));

		if (!IsA(var, Var) || var->varattno != foreach_current_index(lc) + 1)
			return false;
	}
	return true;
}

static bool
stage_of_arm(Lowering *l, UnionArm *arm, Stage *stage)
{
	const ShapeCursor *cursor = &arm->piece->shape.cursors[0];

	stage->shown = list_copy(arm->rows.shown);
	stage->values = arm->rows.values;
	if (!is_stage(arm))
		return stage_of_columns(l, arm->piece, arm->rows.columns, stage);
	stage->path = cursor->target.child;
	stage->columns = list_copy(cursor->target.columns);
	stage->names = cursor->target.names;
	stage->shown = list_concat(stage->shown, shown_of_exprs(l, arm->rows.columns));
	stage->rows = cursor->target.tuples;
	return true;
}

/* Is each column of the same form in both? Where one has numbers of more than 64 bits, both may. */
static bool
unite_columns(Stage *all, const Stage *arm)
{
	ListCell   *lc;
	ListCell   *lc2;

	if (list_length(all->columns) != list_length(arm->columns))
		return false;
	forboth(lc, all->columns, lc2, arm->columns)
	{
		ChildColumn x = child_column(lfirst_node(List, lc));
		const ChildColumn y = child_column(lfirst_node(List, lc2));

		if (x.type != y.type || x.form != y.form || x.scale != y.scale || x.pg_type != y.pg_type)
			return false;
		x.wide = x.wide || y.wide;
		lfirst(lc) = child_column_to_list(x);
	}
	all->shown = list_intersection(all->shown, arm->shown);
	all->rows += arm->rows;
	return true;
}

static bool
begin_arms(Lowering *l, const GpuvmRel *rel, Arms *arms)
{
	const bool	outer = l->in_arm;
	ListCell   *lc;

	arms->n = list_length(rel->inputs);
	arms->arms = static_cast<UnionArm *>(palloc0(sizeof(UnionArm) * arms->n));
	foreach(lc, rel->inputs)
	{
		UnionArm   *arm = &arms->arms[foreach_current_index(lc)];

		l->in_arm = true;
		arm->piece = lower_apart(l, static_cast<const GpuvmRel *>(lfirst(lc)));
		l->in_arm = outer;
		if (arm->piece == nullptr)
			return false;
		arm->exprs = values_of_numbers(l, list_nth_node(List, rel->arms, foreach_current_index(lc)));
		if (l->reason != nullptr)
			return false;
	}
	/* what is found out about expressions is forgotten with each of these */
	for (int i = 0; i < arms->n; i++)
		fill_input(l->root, &arms->arms[i].piece->shape, &arms->arms[i].input);
	return true;
}

static bool
stage_of_union(Lowering *l, Arms *arms, Stage *all)
{
	List	   *paths = NIL;
	const List *exprs = NIL;
	double		most = 0;

	for (int i = 0; i < arms->n; i++)
	{
		Stage		stage = {};

		if (!stage_of_arm(l, &arms->arms[i], &stage))
			return false;
		if (i == 0)
			*all = stage;
		else if (!unite_columns(all, &stage))
			return lowering_refuse(l, "the arms of UNION ALL have values in different forms") != nullptr;
		paths = lappend(paths, stage.path);
		/* statistics are those of the largest arm */
		if (stage.rows > most)
			exprs = stage.exprs;
		most = Max(most, stage.rows);
	}
	all->exprs = exprs;
	all->path = append_stages(paths, all->rows);
	return true;
}

Piece *
lower_union(Lowering *l, const GpuvmRel *rel)
{
	Arms		arms = {};
	Stage		all = {};
	Piece	   *piece;
	const List *values;
	ListCell   *lc;

	if (!begin_arms(l, rel, &arms))
		return nullptr;
	for (int column = 0; column < list_length(arms.arms[0].exprs); column++)
	{
		if (exprType(static_cast<const Node *>(list_nth(arms.arms[0].exprs, column))) == NUMERICOID)
			add_numeric(&arms, column);
		else
			add_other(&arms, column);
	}
	if (!stage_of_union(l, &arms, &all))
		return nullptr;
	piece = piece_of_stage(l, &all);
	values = values_of_relation(all.values, bms_singleton_member(piece->shape.cursors[0].relids));
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		l->values[column->resno] = static_cast<Node *>(list_nth(values, ((const Var *) column->expr)->varattno - 1));
	}
	return piece;
}

}  // namespace gpuvm
