/* row_programs.cc: programs that hand on rows: their result columns. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
}

#include "compiler/emit.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* The cursor that a Var reads, and the number of its column there. */
int
cursor_of_var(const CompileInput *input, const Var *var, AttrNumber *attnum)
{
	for (int i = 0; i < input->ncursors; i++)
	{
		if (is_column_of(&input->cursors[i], var, attnum))
			return i;
	}
	return -1;
}

/* The register's type of a value of no column's form: a code, a number of microseconds, or what its type says. */
static Type
hidden_type(const Expr *expr)
{
	const ValueType type = value_type(exprType(reinterpret_cast<const Node *>(expr)));

	return is_span(expr) ? Type::I64 : type.form == ValueForm::Dictionary ? Type::I32 : type.type;
}

/* A value that rows are sorted by. */
static int
compile_hidden(Compiler *c, const Expr *expr, Oid collation)
{
	Oid			type = exprType(reinterpret_cast<const Node *>(expr));

	if (is_span(expr))
		return compile_span(c, expr);
	if (value_type(type).form != ValueForm::Dictionary)
		return compile_value(c, expr);
	if (!dictionary_equality(type, exprTypmod(reinterpret_cast<const Node *>(expr)), collation))
		return refuse(c, "values of an expression of type %s may be equal without being the same", format_type_be(type));
	return compile_rank(c, expr, collation);
}

/* A result column for what a subquery below an outer join computes. */
static bool
declare_placeholder(Compiler *c, int i, const PlaceHolderVar *phv)
{
	Oid			of = exprType(reinterpret_cast<const Node *>(phv));
	ValueForm	form = value_type(of).form;
	Type		type = form == ValueForm::Dictionary ? Type::I32 : vm_type(of);

	/* it is shown as it is, with its own decimals */
	if (type == Type::None || (form == ValueForm::Numeric && numeric_scale(c->input, phv->phexpr).mixed))
	{
		refuse(c, "an expression of type %s must be evaluated below the join", format_type_be(of));
		return false;
	}
	emit(c, Opcode::ResultColumn, type, i, 0, 0, c->b->add_name("?column?"));
	c->outputs[i] = CachedColumn{-1, 0, new_reg(c, type)};
	return true;
}

static int
output_placeholder(Compiler *c, const PlaceHolderVar *phv, int to)
{
	int			reg = compile_expr(c, reinterpret_cast<const Expr *>(phv));

	if (reg >= 0 && c->info[reg].shown >= 0)
		return refuse(c, "an expression of type %s must be evaluated below the join", format_type_be(exprType(reinterpret_cast<const Node *>(phv))));
	return reg < 0 ? -1 : convert(c, reg, static_cast<Type>(c->b->reg_type[to]));
}

/* Result columns for the high halves of the outputs that are wide, behind all others: how many; -1 and a reason. */
static int
declare_high_halves(Compiler *c, List *outputs, int extra)
{
	int			at = list_length(outputs);
	ListCell   *lc;

	foreach(lc, outputs)
	{
		const CachedColumn *low = &c->outputs[foreach_current_index(lc)];

		if (!is_wide(c->input, static_cast<const Expr *>(lfirst(lc))))
			continue;
		if (at + extra >= PROGRAM_MAX_COLUMNS)
			return refuse(c, "the query needs more than %d columns", PROGRAM_MAX_COLUMNS - extra);
		emit(c, Opcode::ResultColumn, Type::I64, at, 0, 0, c->b->add_name("?column?"));
		c->outputs[at++] = CachedColumn{low->cursor, static_cast<AttrNumber>(low->cursor < 0 ? 0 : high_half(low->attnum)), new_reg(c, Type::I64)};
	}
	return at - list_length(outputs);
}

/* Its register may be the value's. If it is of a semijoin's inner side, or was first used in a branch, it is not. */
static void
put_output(Compiler *c, const CachedColumn &output, int reg)
{
	if (reg != output.reg)
		emit(c, Opcode::Copy, static_cast<Type>(c->b->reg_type[output.reg]), output.reg, reg, 0);
	c->info[output.reg] = c->info[reg];
}

/* Both halves of the outputs that are wide; behind so many that are shown, of those that are only sorted by. */
static bool
output_halves(Compiler *c, List *outputs, int nshown)
{
	int			high = list_length(outputs);
	ListCell   *lc;

	foreach(lc, outputs)
	{
		const Expr *expr = static_cast<const Expr *>(lfirst(lc));
		const CachedColumn &low = c->outputs[foreach_current_index(lc)];
		WideValue	halves;

		if (!is_wide(c->input, expr))
			continue;
		if (!(foreach_current_index(lc) < nshown ? compile_wide(c, expr, &halves) : compile_wide_value(c, expr, &halves)))
			return false;
		put_output(c, low, halves.low);
		c->info[low.reg] = numeric_info(halves.scale);
		c->info[low.reg].wide = true;
		put_output(c, c->outputs[high++], halves.high);
	}
	return true;
}

static void
form_outputs(const Compiler *c, int n, OutputForm *forms)
{
	int			high = n;

	for (int i = 0; i < n; i++)
	{
		OutputForm *form = &forms[i];

		*form = output_form(c, c->outputs[i].reg);
		if (form->kind != OutputKind::Wide)
			continue;
		form->map = high;
		forms[high++] = HIGH_OUTPUT;
	}
}

static bool
rows_program(CompileInput *input, List *vars, List *hidden, List *collations, CompiledProgram *out)
{
	Compiler   *c = start_program(input);
	int			nvars = list_length(vars);
	int			n = nvars + list_length(hidden);
	/* a row of one relation has its position, one of none of the columns has something */
	const bool	position = input->ncursors == 1 && !input->no_positions;
	int			extra = position || n == 0 ? 1 : 0;
	int			nhigh = 0;
	int			extra_reg = -1;
	int			parallel;
	ListCell   *lc;

	if (n + extra > PROGRAM_MAX_COLUMNS)
	{
		refuse(c, "the query needs more than %d columns", PROGRAM_MAX_COLUMNS - extra);
		return false;
	}
	foreach(lc, vars)
	{
		int			i = foreach_current_index(lc);
		const Var  *var = static_cast<const Var *>(lfirst(lc));
		AttrNumber	attnum = 0;
		int			cursor = IsA(var, Var) ? cursor_of_var(input, var, &attnum) : -1;
		bool		by_position = IsA(var, Var) && is_by_position(input, var);
		int			place = cursor < 0 || by_position ? -1 : column_place(&input->cursors[cursor], attnum);
		Type		type;

		if (IsA(var, PlaceHolderVar))
		{
			if (!declare_placeholder(c, i, (const PlaceHolderVar *) var))
				return false;
			continue;
		}
		if (cursor < 0)
		{
			refuse(c, "a column of another relation is used");
			return false;
		}
		if (place < 0 && !by_position)
		{
			load_column(c, cursor, attnum, var->vartype);	/* says why */
			return false;
		}
		type = by_position ? Type::I64 : static_cast<Type>(input->cursors[cursor].table->types[place]);
		emit(c, Opcode::ResultColumn, type, i, 0, 0,
			 c->b->add_name(cursor_column_name(&input->cursors[cursor], attnum)));
		c->outputs[i] = CachedColumn{cursor, attnum, new_reg(c, type)};
	}
	foreach(lc, hidden)
	{
		int			i = nvars + foreach_current_index(lc);
		Oid			of = exprType(static_cast<Node *>(lfirst(lc)));
		Type		type = hidden_type(static_cast<const Expr *>(lfirst(lc)));

		if (type == Type::None)
		{
			refuse(c, "sorting by type %s is not supported", format_type_be(of));
			return false;
		}
		emit(c, Opcode::ResultColumn, type, i, 0, 0, c->b->add_name("?column?"));
		c->outputs[i] = CachedColumn{-1, 0, new_reg(c, type)};
	}
	nhigh = declare_high_halves(c, list_concat_copy(vars, hidden), extra);
	if (nhigh < 0)
		return false;
	c->noutputs = n + nhigh;
	if (extra > 0)
	{
		Type		type = position ? Type::RowId : Type::Bool;

		emit(c, Opcode::ResultColumn, type, n + nhigh, 0, 0, c->b->add_name(position ? "ctid" : "?column?"));
		extra_reg = new_reg(c, type);
	}

	parallel = compile_source(c, list_concat_copy(vars, hidden));
	if (parallel < 0)
		return false;
	foreach(lc, vars)
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));
		CachedColumn *o = &c->outputs[foreach_current_index(lc)];
		int			reg = is_wide(input, (const Expr *) var) ? o->reg
			: IsA(var, Var) ? load_output(c, o->cursor, var)
			: o->cursor >= 0 ? load_column(c, o->cursor, o->attnum, exprType((const Node *) var)) : output_placeholder(c, (const PlaceHolderVar *) var, o->reg);

		if (reg < 0)
			return false;
		put_output(c, *o, reg);
	}
	foreach(lc, hidden)
	{
		int			to = c->outputs[nvars + foreach_current_index(lc)].reg;
		int			reg = is_wide(input, static_cast<const Expr *>(lfirst(lc))) ? to
			: compile_hidden(c, static_cast<const Expr *>(lfirst(lc)), list_nth_oid(collations, foreach_current_index(lc)));

		if (reg >= 0)
			reg = convert(c, reg, static_cast<Type>(c->b->reg_type[to]));
		if (reg < 0)
			return false;
		put_output(c, c->outputs[nvars + foreach_current_index(lc)], reg);
	}
	if (!output_halves(c, list_concat_copy(vars, hidden), nvars))
		return false;
	if (position)
		emit(c, Opcode::Rowid, Type::RowId, extra_reg, 0, 0);
	else if (extra > 0)
		emit(c, Opcode::Integer, Type::Bool, extra_reg, 1, 0);
	emit(c, Opcode::Result, Type::None, n > 0 ? c->outputs[0].reg : extra_reg, n + nhigh + extra, 0);
	close_pipeline(c, parallel);
	form_outputs(c, n, out->outputs);
	foreach(lc, vars)
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));
		int			i = foreach_current_index(lc);

		if (IsA(var, Var) && is_by_position(input, var))
			out->outputs[i] = OutputForm{OutputKind::Position, -1, c->outputs[i].cursor, var->varattno, -1};
	}
	for (int i = n + nhigh; i < n + nhigh + extra; i++)
		out->outputs[i] = PLAIN_OUTPUT;
	out->noutputs = n + nhigh + extra;
	return finish_program(c, out);
}

/* Registers and operations may run out in the middle of an expression, where nobody says so. */
bool
said_why(CompileInput *input, bool compiled)
{
	if (!compiled && input->reason == nullptr)
		input->reason = TOO_LARGE;
	return compiled;
}

bool
compiles(CompileInput *input, List *exprs)
{
	Compiler   *c = start_program(input);
	bool		all = true;
	ListCell   *lc;

	c->npositioned = input->ncursors;
	foreach(lc, exprs)
	{
		fix_opfuncids(static_cast<Node *>(lfirst(lc)));
		all = all && compile_expr(c, static_cast<const Expr *>(lfirst(lc))) >= 0;
	}
	all = all && !c->b->failed;
	pfree(c->b);
	return all;
}

bool
compile_rows(CompileInput *input, List *vars, List *hidden, List *collations, CompiledProgram *out)
{
	return said_why(input, rows_program(input, vars, hidden, collations, out));
}

}  // namespace gpuvm
