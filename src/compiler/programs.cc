/*
 * programs.cc: quals, joins, result columns and groups around the expressions
 * of compile.cc.
 *
 * A join program has a pipeline for each hash table and then the main one, which
 * the first cursor drives (vm/program.h). What is read of earlier cursors behind
 * a Seek or Cross is fetched before it: a register that is written between it and
 * its Match is lost there if lanes go on that met no row. Behind a full join
 * everything is fetched again.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "compiler/emit.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

constexpr const char *TOO_LARGE = "the query needs a larger program than the virtual machine takes";

/* More keys than these are conditions. */
constexpr int MAX_SEEK_KEYS = 4;

/* -- quals ----------------------------------------------------------------------- */

static Opcode
inverse(Opcode op)
{
	switch (op)
	{
		case Opcode::Eq: return Opcode::Ne;
		case Opcode::Ne: return Opcode::Eq;
		case Opcode::Lt: return Opcode::Ge;
		case Opcode::Le: return Opcode::Gt;
		case Opcode::Gt: return Opcode::Le;
		default: return Opcode::Lt;
	}
}

/*
 * One conjunct of WHERE: lanes where it is not true die. A comparison becomes
 * the papers' inverted jump; the targets are patched once Converge is known.
 */
static bool
compile_qual(Compiler *c, const Expr *qual)
{
	int			reg;

	if (IsA(qual, RowCompareExpr) && expand_row_compare((const RowCompareExpr *) qual) != nullptr)
		return compile_qual(c, expand_row_compare((const RowCompareExpr *) qual));
	if (IsA(qual, BoolExpr) && ((const BoolExpr *) qual)->boolop == AND_EXPR && !is_map(c, qual))
	{
		ListCell   *lc;

		foreach(lc, ((const BoolExpr *) qual)->args)
		{
			if (!compile_qual(c, static_cast<const Expr *>(lfirst(lc))))
				return false;
		}
		return true;
	}
	if (IsA(qual, OpExpr))
	{
		const OpExpr *op = (const OpExpr *) qual;
		const FnEntry *fn = lookup_function(op->opfuncid);

		if (fn != nullptr && is_comparison(fn) && !is_parameter_equality(fn, op->args) && !meets_wide(c->input, fn, op->args))
		{
			Type		type;
			int			ra;
			int			rb;

			if (!compile_operands(c, fn, op->args, &type, &ra, &rb))
				return false;
			emit(c, inverse(fn->opcode), type, ra, rb, 0, VERDICT_DIES, JUMP_IF_NULL);
			return true;
		}
	}
	reg = compile_expr(c, qual);
	if (reg < 0)
		return false;
	if (c->b->reg_type[reg] != Type::Bool)
	{
		refuse(c, "the condition is not boolean");
		return false;
	}
	emit(c, Opcode::IfNot, Type::Bool, reg, 0, 0, VERDICT_DIES, JUMP_IF_NULL);
	return true;
}

/* The registers of the cursor's keys: of numbers of more than 64 bits there are two. */
static int
count_keys(const CompileInput *input, const CompileCursor *cursor)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, cursor->keys)
	{
		const OpExpr *clause = static_cast<const OpExpr *>(lfirst(lc));

		n += meets_wide(input, lookup_function(clause->opfuncid), clause->args) ? 2 : 1;
	}
	return n;
}

Compiler *
start_program(CompileInput *input)
{
	Compiler   *c = static_cast<Compiler *>(palloc0(sizeof(Compiler)));

	facts_forget();
	c->input = input;
	input->reason = nullptr;
	input->hint = nullptr;
	if (input->before != nullptr)
	{
		c->params = list_copy(input->before->params);
		c->nmaps = input->before->nmaps;
		memcpy(c->maps, input->before->maps, sizeof(PlanMap) * c->nmaps);
		c->npatterns = input->before->npatterns;
		memcpy(c->patterns, input->before->patterns, sizeof(PlanPattern) * c->npatterns);
		c->text_orders = input->before->text_orders;
	}
	c->b = static_cast<ProgramBuilder *>(palloc(sizeof(ProgramBuilder)));
	c->b->init();
	for (int i = 0; i < input->ncursors; i++)
		emit(c, Opcode::Table, Type::None, i, 0, i);
	for (int i = 1; i < input->ncursors; i++)
	{
		const CompileCursor *cursor = &input->cursors[i];

		if (cursor->range != NIL)
			emit(c, Opcode::HashOpen, Type::None, i, 1, 1);
		else if (cursor->keys != NIL)
			emit(c, Opcode::HashOpen, Type::None, i, count_keys(input, cursor), 0);
	}
	return c;
}

/* Is it dear to look at, and nobody can tell whether it was? */
static bool
can_wait(const Compiler *c, const Expr *qual)
{
	return !IsA(qual, NullTest) && reads_variable(c->input, qual) && !can_raise(qual);
}

/*
 * Those that look at values of variable length come after others, where these cannot raise: of
 * rows that are out already no value is looked at.
 */
static List *
texts_last(const Compiler *c, List *quals)
{
	List	   *ordered = NIL;
	List	   *waiting = NIL;
	ListCell   *lc;

	foreach(lc, quals)
	{
		const Expr *qual = static_cast<const Expr *>(lfirst(lc));

		if (can_wait(c, qual))
		{
			waiting = lappend(waiting, lfirst(lc));
			continue;
		}
		if (can_raise(qual))
		{
			ordered = list_concat(ordered, waiting);
			waiting = NIL;
		}
		ordered = lappend(ordered, lfirst(lc));
	}
	return list_concat(ordered, waiting);
}

bool
compile_quals(Compiler *c, List *quals)
{
	ListCell   *lc;

	foreach(lc, texts_last(c, quals))
	{
		const Expr *qual = static_cast<const Expr *>(lfirst(lc));

		/* First, for its reason is the better one. */
		if (!compile_qual(c, qual))
			return false;
		/* PostgreSQL evaluates it once, also where there are no rows. */
		if (can_raise(qual) && !contain_var_clause(reinterpret_cast<Node *>(const_cast<Expr *>(qual))))
		{
			refuse(c, "a condition without columns may raise an error");
			return false;
		}
	}
	return true;
}

/* -- pipelines ---------------------------------------------------------------------- */

int
open_pipeline(Compiler *c, int ncursors, int cursor)
{
	c->first = cursor;
	c->npositioned = 1;
	c->ncached = 0;
	c->nknown = 0;
	return emit(c, Opcode::Parallel, Type::None, ncursors, cursor, 0);
}

void
close_pipeline(Compiler *c, int parallel)
{
	ProgramBuilder *b = c->b;
	int			converge = emit(c, Opcode::Converge, Type::None, 0, 0, 0);

	b->ops[parallel].p3 = converge;
	for (int i = parallel; i < b->nops; i++)
	{
		OpForm		form = opcode_info[static_cast<int>(b->ops[i].opcode)].form;
		bool		jumps = form == OpForm::BRANCH ||
			(form == OpForm::COMPARE && (b->ops[i].p5 & COMPARE_STORES) == 0);

		if (jumps && b->ops[i].p4 == VERDICT_DIES)
			b->ops[i].p3 = converge;
	}
}

/* May an operation flag what PostgreSQL has an answer for? */
static bool
has_soft_errors(const Compiler *c)
{
	for (int i = 0; i < c->b->nops; i++)
	{
		const Op   &op = c->b->ops[i];
		const OpcodeInfo &info = opcode_info[static_cast<int>(op.opcode)];
		bool		writes = info.form == OpForm::BINARY || info.form == OpForm::UNARY;

		if (op.opcode == Opcode::Bound || op.opcode == Opcode::DatePart || op.opcode == Opcode::ZoneShift || (writes && info.errors != 0 && c->info[op.p1].scale >= 0))
			return true;
	}
	return c->soft_errors;
}

bool
finish_program(Compiler *c, CompiledProgram *out)
{
	ProgramBuilder *b = c->b;

	emit(c, Opcode::Finish, Type::None, 0, 0, 0);
	if (b->failed)
	{
		refuse(c, "%s", TOO_LARGE);
		return false;
	}
	out->program = static_cast<Program *>(palloc(b->sealed_size()));
	b->seal(out->program);
	out->params = c->params;
	out->soft_errors = has_soft_errors(c);
	out->nmaps = c->nmaps;
	memcpy(out->maps, c->maps, sizeof(PlanMap) * c->nmaps);
	out->npatterns = c->npatterns;
	memcpy(out->patterns, c->patterns, sizeof(PlanPattern) * c->npatterns);
	out->text_orders = c->text_orders;
	pfree(b);
	pfree(c);
	return true;
}

/* -- joins ----------------------------------------------------------------------------- */

/* Does the expression read these relations and no other (mine), or others only? */
static bool
reads(const Node *expr, const Bitmapset *relids, bool mine)
{
	List	   *vars = pull_var_clause(const_cast<Node *>(expr), PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
									   PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, vars)
	{
		const Node *node = static_cast<const Node *>(lfirst(lc));
		const Relids phrels = IsA(node, PlaceHolderVar) ? ((const PlaceHolderVar *) node)->phrels : nullptr;

		if (IsA(node, Var) ? bms_is_member(((const Var *) node)->varno, relids) != mine
			: phrels == nullptr || (mine ? !bms_is_subset(phrels, relids) : bms_overlap(phrels, relids)))
			return false;
	}
	return vars != NIL;
}

bool
key_sides(const Expr *clause, const Bitmapset *relids, Node **outer, Node **inner)
{
	List	   *args = ((const OpExpr *) clause)->args;
	Node	   *a = static_cast<Node *>(linitial(args));
	Node	   *b = static_cast<Node *>(lsecond(args));
	bool		inner_first = reads(a, relids, true);

	*inner = inner_first ? a : b;
	*outer = inner_first ? b : a;
	return reads(*inner, relids, true) && reads(*outer, relids, false);
}

/* The entry of a comparison of two values; NULL if the clause is none. */
static const FnEntry *
comparison(Expr *clause)
{
	const FnEntry *fn;

	if (!IsA(clause, OpExpr) || list_length(((OpExpr *) clause)->args) != 2)
		return nullptr;
	set_opfuncid((OpExpr *) clause);
	fn = lookup_function(((OpExpr *) clause)->opfuncid);
	return fn != nullptr && is_comparison(fn) ? fn : nullptr;
}

void
split_seek_keys(List *clauses, const Bitmapset *relids, List **keys, List **conditions)
{
	ListCell   *lc;

	*keys = *conditions = NIL;
	foreach(lc, clauses)
	{
		Expr	   *clause = static_cast<Expr *>(lfirst(lc));
		const FnEntry *fn = comparison(clause);
		DictionaryComparison codes;
		bool		equality = fn != nullptr ? fn->opcode == Opcode::Eq
			: dictionary_clause(reinterpret_cast<Node *>(clause), &codes) && codes.op == Opcode::Eq;
		Node	   *outer;
		Node	   *inner;

		if (equality && list_length(*keys) < MAX_SEEK_KEYS && key_sides(clause, relids, &outer, &inner))
			*keys = lappend(*keys, clause);
		else
			*conditions = lappend(*conditions, clause);
	}
}

/* Does the clause bound an expression over the relation? */
static bool
is_bound(Expr *clause, const Bitmapset *relids, Node **outer, Node **inner, uint8_t *flags)
{
	const FnEntry *fn = comparison(clause);
	bool		less;
	bool		strict;

	if (fn == nullptr || fn->opcode == Opcode::Eq || fn->opcode == Opcode::Ne || !key_sides(clause, relids, outer, inner))
		return false;
	less = fn->opcode == Opcode::Lt || fn->opcode == Opcode::Le;
	strict = fn->opcode == Opcode::Lt || fn->opcode == Opcode::Gt;
	if ((*inner == linitial(((OpExpr *) clause)->args)) == less)
		*flags = RANGE_HI | (strict ? RANGE_HI_STRICT : 0);
	else
		*flags = RANGE_LO | (strict ? RANGE_LO_STRICT : 0);
	return true;
}

/* Is the operand a date that is compared as a timestamp? */
static bool
is_widened_date(const OpExpr *clause, const Node *operand)
{
	const FnEntry *fn = lookup_function(clause->opfuncid);

	return fn->kind != FnKind::Compare && (fn->kind == FnKind::CompareDateLeft) == (operand == linitial(clause->args));
}

void
split_range(List *clauses, const Bitmapset *relids, List **range, List **conditions)
{
	Expr	   *one = nullptr;
	Expr	   *two = nullptr;
	ListCell   *lc;
	ListCell   *lc2;

	*range = *conditions = NIL;
	foreach(lc, clauses)
	{
		Expr	   *clause = static_cast<Expr *>(lfirst(lc));
		Node	   *outer;
		Node	   *inner;
		uint8_t		flags;

		if (two != nullptr || !is_bound(clause, relids, &outer, &inner, &flags))
			continue;
		if (one == nullptr)
			one = clause;
		foreach(lc2, clauses)
		{
			Expr	   *other = static_cast<Expr *>(lfirst(lc2));
			Node	   *same;
			uint8_t		more;

			if (is_bound(other, relids, &outer, &same, &more) && (flags & RANGE_LO) != (more & RANGE_LO) && equal(same, inner) &&
				comparison(other)->operand == comparison(clause)->operand &&
				is_widened_date((OpExpr *) other, same) == is_widened_date((OpExpr *) clause, inner))
			{
				one = clause;
				two = other;
				break;
			}
		}
	}
	foreach(lc, clauses)
	{
		if (lfirst(lc) == one || lfirst(lc) == two)
			*range = lappend(*range, lfirst(lc));
		else
			*conditions = lappend(*conditions, lfirst(lc));
	}
}

/* The scale at which the operands of comparisons meet; -1: they are no numerics. */
static int
meeting_scale(const CompileInput *input, List *clauses)
{
	NumericScale all = {-1, false};
	ListCell   *lc;
	ListCell   *arg;

	foreach(lc, clauses)
	{
		const OpExpr *clause = static_cast<const OpExpr *>(lfirst(lc));

		if (lookup_function(clause->opfuncid)->form != ValueForm::Numeric)
			return -1;
		foreach(arg, clause->args)
			all = common_scale(all, numeric_scale(input, static_cast<const Expr *>(lfirst(arg))));
	}
	return Max(all.scale, 0);
}

/* One operand of a comparison, in the type and at the scale that both are compared in; -1 if it does not compile. */
static int
compile_side(Compiler *c, const OpExpr *clause, const Node *operand, int scale)
{
	const FnEntry *fn = lookup_function(clause->opfuncid);
	int			reg = compile_value(c, reinterpret_cast<const Expr *>(operand));

	if (reg < 0)
		return -1;
	if (scale >= 0)
		return rescale(c, reg, scale);
	if (is_widened_date(clause, operand))
		return value(c, Opcode::DateToTimestampSat, fn->operand, reg);
	return convert(c, reg, fn->operand);
}

/* The registers of the keys, of one side, in the type of their equality. False if one does not compile. */
static bool
compile_keys(Compiler *c, const CompileCursor *cursor, bool inner_side, int64_t *regs)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, cursor->keys)
	{
		const OpExpr *clause = static_cast<const OpExpr *>(lfirst(lc));
		DictionaryComparison codes;
		DictionaryMeeting meeting;
		Node	   *outer;
		Node	   *inner;
		int			reg;

		key_sides(reinterpret_cast<const Expr *>(clause), cursor->relids, &outer, &inner);
		if (meets_wide(c->input, lookup_function(clause->opfuncid), clause->args))
		{
			WideValue	halves;

			if (!compile_wide_key(c, reinterpret_cast<Expr *>(inner_side ? inner : outer), meeting_scale(c->input, list_make1(lfirst(lc))), &halves))
				return false;
			regs[n++] = halves.high;
			regs[n++] = halves.low;
			continue;
		}
		if (!dictionary_clause((const Node *) clause, &codes))
			reg = compile_side(c, clause, inner_side ? inner : outer, meeting_scale(c->input, list_make1(lfirst(lc))));
		else if (text_keys_meet(c, codes))
			reg = compile_text_key(c, reinterpret_cast<Expr *>(inner_side ? inner : outer));
		else if (packed_texts_meet(c, codes))
			reg = compile_packed_text(c, codes.sides[(inner == linitial(clause->args)) == inner_side ? 0 : 1]);
		else if (dictionaries_meet(c, codes, &meeting))
			reg = meeting_side(c, &meeting, (inner == linitial(clause->args)) == inner_side ? 0 : 1);
		else
			reg = -1;
		if (reg < 0)
			return false;
		regs[n++] = reg;
	}
	return true;
}

/* The bounds of what is sought, -1 for one that is not there. */
static bool
compile_bounds(Compiler *c, const CompileCursor *cursor, int64_t *regs, uint8_t *flags)
{
	ListCell   *lc;

	regs[0] = regs[1] = -1;
	*flags = 0;
	foreach(lc, cursor->range)
	{
		OpExpr	   *clause = static_cast<OpExpr *>(lfirst(lc));
		Node	   *outer;
		Node	   *inner;
		uint8_t		more;
		int			reg;

		is_bound((Expr *) clause, cursor->relids, &outer, &inner, &more);
		reg = compile_side(c, clause, outer, meeting_scale(c->input, cursor->range));
		if (reg < 0)
			return false;
		regs[(more & RANGE_LO) != 0 ? 0 : 1] = reg;
		*flags |= more;
	}
	return true;
}

/* The pipeline that fills the cursor's hash table, or its sorted one. */
static bool
compile_build(Compiler *c, int k)
{
	const CompileCursor *cursor = &c->input->cursors[k];
	int64_t		regs[2 * MAX_SEEK_KEYS];
	int			nkeys = cursor->range != NIL ? 1 : count_keys(c->input, cursor);
	int			parallel = open_pipeline(c, 1, k);

	c->transient = true;
	if (!compile_quals(c, cursor->quals) || !compile_keys(c, cursor, true, regs))
		return false;
	if (cursor->range != NIL)
	{
		Expr	   *clause = static_cast<Expr *>(linitial(cursor->range));
		Node	   *outer;
		Node	   *inner;

		key_sides(clause, cursor->relids, &outer, &inner);
		regs[0] = compile_side(c, (OpExpr *) clause, inner, meeting_scale(c->input, cursor->range));
		if (regs[0] < 0)
			return false;
	}
	c->transient = false;
	emit(c, Opcode::HashInsert, Type::None, k, nkeys, c->b->add_aux(regs, nkeys));
	close_pipeline(c, parallel);
	return true;
}

/* Columns of the cursors that are positioned. */
static bool
load_columns(Compiler *c, List *exprs)
{
	List	   *vars = pull_var_clause(reinterpret_cast<Node *>(exprs), PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
									   PVC_RECURSE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, vars)
	{
		Var		   *var = lfirst_node(Var, lc);

		for (int i = 0; i < c->npositioned; i++)
		{
			AttrNumber	attnum;

			if (is_column_of(&c->input->cursors[i], var, &attnum) && load_output(c, i, var) < 0)
				return false;
		}
	}
	return true;
}

/* The first full join from cursor k on: nothing that is written before its Match can be read behind it. All cursors if there is none. */
static int
next_full(const Compiler *c, int k)
{
	while (k < c->input->ncursors && c->input->cursors[k].kind != JoinKind::Full)
		k++;
	return k;
}

/* Joins cursor k to those before it; `outputs` is what is read behind all joins. */
static bool
compile_join(Compiler *c, int k, List *outputs)
{
	const CompileCursor *cursor = &c->input->cursors[k];
	bool		inner = cursor->kind == JoinKind::Inner;
	int			full = next_full(c, k);
	int64_t		regs[2 * MAX_SEEK_KEYS];
	int			nkeys = count_keys(c->input, cursor);
	uint8_t		bounds = 0;
	int			ncached;
	int			nknown;

	if (!compile_keys(c, cursor, false, regs) || !load_columns(c, cursor->conditions))
		return false;
	if (cursor->range != NIL && !compile_bounds(c, cursor, regs, &bounds))
		return false;
	for (int j = k; j < c->input->ncursors && j <= full; j++)
	{
		const CompileCursor *later = &c->input->cursors[j];

		if (!load_columns(c, later->keys) || !load_columns(c, later->range) || !load_columns(c, later->conditions) || (j < full && !load_columns(c, later->filters)))
			return false;
	}
	if (full == c->input->ncursors && !load_columns(c, outputs))
		return false;
	ncached = full == k ? 0 : c->ncached;
	nknown = full == k ? 0 : c->nknown;

	if (bounds != 0)
		emit(c, Opcode::SeekRange, Type::None, k, bounds, c->b->add_aux(regs, 2));
	else if (nkeys > 0)
		emit(c, Opcode::Seek, Type::None, k, nkeys, c->b->add_aux(regs, nkeys));
	else
		emit(c, Opcode::Cross, Type::None, k, 0, 0);
	c->npositioned = k + 1;
	c->transient = c->transient || !inner;
	if ((nkeys == 0 && bounds == 0 && !compile_quals(c, cursor->quals)) || !compile_quals(c, cursor->conditions))
		return false;
	c->transient = next_full(c, k + 1) < c->input->ncursors;
	emit(c, Opcode::Match, Type::None, k, static_cast<int>(cursor->kind), 0);
	c->matched[k] = true;
	if (!inner)
	{
		c->ncached = ncached;
		c->nknown = nknown;
	}
	return compile_quals(c, cursor->filters);
}

/* The main pipeline up to its sink; returns its Parallel, or -1. */
static int
compile_source(Compiler *c, List *outputs)
{
	CompileInput *input = c->input;
	int			parallel;

	for (int k = 1; k < input->ncursors; k++)
	{
		if ((input->cursors[k].keys != NIL || input->cursors[k].range != NIL) && !compile_build(c, k))
			return -1;
	}
	parallel = open_pipeline(c, input->ncursors, 0);
	c->transient = next_full(c, 1) < input->ncursors;
	if (!compile_quals(c, input->cursors[0].quals))
		return -1;
	for (int k = 1; k < input->ncursors; k++)
	{
		if (!compile_join(c, k, outputs))
			return -1;
	}
	return parallel;
}

/* -- programs ------------------------------------------------------------------------- */

/* The cursor that a Var reads, and the number of its column there. */
static int
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

constexpr OutputForm HIGH_OUTPUT = {OutputKind::High, -1, -1, 0, -1};

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
		int			reg = is_wide(input, static_cast<const Expr *>(lfirst(lc))) ? to : compile_hidden(c, static_cast<const Expr *>(lfirst(lc)), list_nth_oid(collations, foreach_current_index(lc)));

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

/* Of what type is the VM aggregate's argument? */
static Type
aggregate_type(const CompileInput *input, const VmAggregate &agg)
{
	if (agg.fn == AggFn::CountStar)
		return Type::None;
	if (agg.input == AggInput::Position)
		return Type::I64;
	if (agg.input == AggInput::Square || is_of_halves(agg.input) || is_of_quotient(agg.input) || is_of_interval(agg.input) || is_small_limb(agg.input) || agg.input == AggInput::Bits)
		return Type::I64;
	if (is_double(agg.input))
		return Type::F64;
	if (agg.input == AggInput::Scale || agg.input == AggInput::Rank)
		return Type::I32;
	if (agg_is_text(agg.fn) || (agg.fn == AggFn::AnyValue && variable_var(input, agg.arg) != nullptr))
		return Type::I64;
	return vm_type(exprType(reinterpret_cast<const Node *>(agg.arg)));
}

/* The argument of a statistic of floats. */
static int
double_argument(Compiler *c, const VmAggregate &agg)
{
	const bool	product = agg.input == AggInput::DoubleProduct || agg.input == AggInput::DoubleProductRest;
	const bool	lost = agg.input == AggInput::DoubleSquareRest || agg.input == AggInput::DoubleProductRest;
	int			reg = convert(c, compile_expr(c, agg.arg), Type::F64);
	int			other = agg.other == nullptr || reg < 0 ? reg : compile_expr(c, agg.other);

	if (other < 0)
		return -1;
	if (product)
		return value(c, lost ? Opcode::MulRest : Opcode::Mul, Type::F64, reg, other);
	if (agg.other != nullptr)
	{
		int			null = null_value(c, Type::F64);
		int			there = null < 0 ? -1 : value(c, Opcode::NotNull, c->b->reg_type[other], other);

		reg = there < 0 ? -1 : value(c, Opcode::Select, Type::F64, reg, null, there);
	}
	return reg < 0 || agg.input == AggInput::Double ? reg : value(c, lost ? Opcode::MulRest : Opcode::Mul, Type::F64, reg, reg);
}

/* The i-th product (limb_pair) of parts of 31 bits, of which the uppermost has the sign. */
static int
limb_product(Compiler *c, const WideValue &halves, int i)
{
	const int64_t mask = (int64_t{1} << WIDE_LIMB_BITS) - 1;
	int			limbs[2];

	limb_pair(i, &limbs[0], &limbs[1]);
	for (int &limb : limbs)
	{
		const int	half = limb < WIDE_LIMBS / 2 ? halves.low : halves.high;

		limb = limb % 2 == 0 ? with_constant64(c, Opcode::BitAnd, half, mask) : with_constant64(c, Opcode::ShiftRight, half, WIDE_LIMB_BITS);
	}
	return binary64(c, Opcode::Mul, limbs[0], limbs[1]);
}

int
small_limb_product(Compiler *c, int reg, int i)
{
	const int	low = i == 2 ? -1 : with_constant64(c, Opcode::BitAnd, reg, (int64_t{1} << WIDE_LIMB_BITS) - 1);
	const int	high = i == 0 ? -1 : with_constant64(c, Opcode::ShiftRight, reg, WIDE_LIMB_BITS);

	return binary64(c, Opcode::Mul, i == 2 ? high : low, i == 0 ? low : high);
}

/* The number, or the high half that says what it is instead. */
static int
special_or_narrow(Compiler *c, const WideValue &halves, int special, int high)
{
	int			reg = narrow_wide(c, halves);
	int			is = special == NO_SPECIALS || reg < 0 ? -1 : with_constant64(c, Opcode::Ne, special, 0);

	return special == NO_SPECIALS || is < 0 ? reg : value(c, Opcode::Select, Type::I64, high, reg, is, 0, numeric_info(halves.scale));
}

/* Is a register that is defined where `defined` is true (NULL: everywhere) so on the lanes that an aggregate with the FILTER takes? */
static bool
covers(const Expr *defined, const Expr *filter)
{
	return defined == nullptr || equal(defined, filter);
}

/* May the next part of an aggregate use the registers that are made here? Those of the aggregate's own branch it may, as it has the same FILTER. */
static bool
can_share(const Compiler *c)
{
	return c->depth == (c->guard != nullptr ? 1 : 0);
}

static ScaleUse
argument_use(const VmAggregate &agg)
{
	return agg.input == AggInput::High && agg_is_wide(agg.fn) ? ScaleUse::One : ScaleUse::Each;
}

static bool
has_halves(const Compiler *c, const VmAggregate &agg)
{
	return c->argument != nullptr && c->argument_use == argument_use(agg) && covers(c->argument_filter, agg.filter) && equal(c->argument, agg.arg);
}

static bool
has_quotient(const Compiler *c, const VmAggregate &agg)
{
	return c->quotient != nullptr && covers(c->quotient_filter, agg.filter) && equal(c->quotient, agg.arg);
}

/* Is the argument there, so that all that is left cannot raise, whatever lanes hold that are not in the FILTER? */
static bool
has_argument(const Compiler *c, const VmAggregate &agg)
{
	const bool	plain = agg.input == AggInput::Low || agg.input == AggInput::High || agg.input == AggInput::Special;

	return is_of_quotient(agg.input) ? has_quotient(c, agg) : plain && !agg_is_wide(agg.fn) && has_halves(c, agg);
}

/*
 * The argument in halves: what a sum shows is the greatest of its scales, which is an aggregate of its own. The parts of one sum
 * follow each other, and share the argument: what has branches within is not found again otherwise.
 */
static bool
compile_argument(Compiler *c, const VmAggregate &agg, WideValue *halves)
{
	bool		done;

	if (has_halves(c, agg))
	{
		*halves = c->argument_halves;
		return true;
	}
	c->scale_use = argument_use(agg);
	done = compile_wide(c, agg.arg, halves);
	c->scale_use = ScaleUse::One;
	if (done && can_share(c))
	{
		c->argument = agg.arg;
		c->argument_filter = c->guard;
		c->argument_use = argument_use(agg);
		c->argument_halves = *halves;
	}
	return done;
}

/* With the display scale, or 63 less it, behind the number: of what is none it is 0. */
static bool
pack_shown(Compiler *c, const WideValue &halves, bool up, WideValue *out)
{
	WideValue	number = halves;
	int			special = take_special(c, &number);
	int			shown = halves.shown >= 0 ? convert(c, halves.shown, Type::I64) : int_value(c, Type::I64, halves.scale);

	if (special == -1 || shown < 0)
		return false;
	shown = with_constant64(c, Opcode::Bound, shown, SHOWN_MASK + 1);
	if (!up)
		shown = binary64(c, Opcode::Sub, int_value(c, Type::I64, SHOWN_MASK), shown);
	number.high = with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::Bound, number.high, WIDE_HIGH_LIMIT >> SHOWN_BITS), SHOWN_MASK + 1);
	number.high = binary64(c, Opcode::BitOr, number.high, with_constant64(c, Opcode::ShiftRight, number.low, WIDE_LOW_BITS - SHOWN_BITS));
	number.low = with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::BitAnd, number.low, WIDE_LOW_MASK >> SHOWN_BITS), SHOWN_MASK + 1);
	number.low = binary64(c, Opcode::BitOr, number.low, shown);
	*out = number;
	/* what is larger, and what is shown in different ways, is PostgreSQL's */
	c->soft_errors = true;
	return number.high >= 0 && number.low >= 0 && put_special(c, out, special);
}

static bool
shown_argument(Compiler *c, const VmAggregate &agg, WideValue *out)
{
	WideValue	halves;

	return compile_argument(c, agg, &halves) && pack_shown(c, halves, agg.input == AggInput::ShownUp, out);
}

/* The display scale: 0 of what is no number, and so the same of all of a group. */
static int
number_scale(Compiler *c, const WideValue &halves, int special)
{
	int			scale = halves.shown >= 0 ? halves.shown : int_value(c, Type::I32, halves.scale);
	int			is = special == NO_SPECIALS ? -1 : with_constant64(c, Opcode::Ne, special, 0);

	return special == NO_SPECIALS || is < 0 || scale < 0 ? scale : value(c, Opcode::Select, Type::I32, int_value(c, Type::I32, 0), scale, is);
}

static int
half_argument(Compiler *c, const VmAggregate &agg)
{
	WideValue	halves;
	int			high;
	int			special;

	if (agg.input == AggInput::ShownUp || agg.input == AggInput::ShownDown)
		return shown_argument(c, agg, &halves) ? halves.high : -1;
	if (!compile_argument(c, agg, &halves))
		return -1;
	high = halves.high;
	/* an extreme is taken of the codes, too */
	special = agg_is_wide(agg.fn) ? NO_SPECIALS : take_special(c, &halves);
	if (special == -1)
		return -1;
	switch (agg.input)
	{
		case AggInput::Low:
			return halves.low;
		case AggInput::High:
			return halves.high;
		case AggInput::Special:
			return special == NO_SPECIALS ? int_value(c, Type::I64, 0) : special;
		case AggInput::Narrow:
			return special_or_narrow(c, halves, special, high);
		case AggInput::Scale:
			return number_scale(c, halves, special);
		default:
			return limb_product(c, halves, static_cast<int>(agg.input) - static_cast<int>(AggInput::LimbProduct));
	}
}

static int
low_argument(Compiler *c, const VmAggregate &agg)
{
	WideValue	halves;

	if (agg.input == AggInput::ShownUp || agg.input == AggInput::ShownDown)
		return shown_argument(c, agg, &halves) ? halves.low : -1;
	return compile_argument(c, agg, &halves) ? halves.low : -1;
}

/* A part of a quotient: those of one sum share it, as halves do. */
static int
quotient_argument(Compiler *c, const VmAggregate &agg)
{
	QuotientLimbs limbs = c->quotient_limbs;

	if (!has_quotient(c, agg))
	{
		List	   *args;

		(void) called_function(agg.arg, &args);
		if (!compile_quotient_limbs(c, args, &limbs))
			return -1;
		if (can_share(c))
		{
			c->quotient = agg.arg;
			c->quotient_filter = c->guard;
			c->quotient_limbs = limbs;
		}
	}
	switch (agg.input)
	{
		case AggInput::QuotientScale:
			return limbs.shown;
		case AggInput::QuotientSpecial:
			return limbs.special == NO_SPECIALS ? int_value(c, Type::I64, 0) : limbs.special;
		default:
			return limbs.reg[static_cast<int>(agg.input) - static_cast<int>(AggInput::QuotientLimb)];
	}
}

/* Of the sums of halves: the scale is that of their registers' number. */
static OutputForm
half_output(Compiler *c, const VmAggregate &agg)
{
	WideValue	halves = {};

	(void) compile_argument(c, agg, &halves);
	if (agg_is_wide(agg.fn))
		return OutputForm{OutputKind::Numeric, halves.scale, -1, 0, -1};
	return OutputForm{agg.input == AggInput::Low ? OutputKind::Wide : OutputKind::High, halves.scale, -1, 0, -1};
}

static int
aggregate_argument(Compiler *c, const VmAggregate &agg)
{
	bool		added = agg.fn == AggFn::Sum || agg.input == AggInput::Scale;
	int			reg;

	if (agg.input == AggInput::Rank)
		return compile_rank(c, agg.arg, agg.collation);
	if (agg.input == AggInput::Bits)
		return compile_expr(c, reinterpret_cast<Expr *>(makeFuncExpr(F_INT8_BIT, INT8OID, list_make1(agg.arg), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST)));
	if (is_small_limb(agg.input))
		return small_limb_product(c, compile_expr(c, agg.arg), static_cast<int>(agg.input) - static_cast<int>(AggInput::SmallLimbProduct));
	if (is_of_interval(agg.input))
		return compile_interval_part(c, agg.arg, agg.input);
	if (is_double(agg.input))
		return double_argument(c, agg);
	if (is_of_quotient(agg.input))
		return quotient_argument(c, agg);
	if (is_of_halves(agg.input) || (agg.input == AggInput::Scale && is_wide(c->input, agg.arg)))
		return half_argument(c, agg);
	if (agg.fn == AggFn::AnyValue && is_wide(c->input, agg.arg))
		return compile_expr(c, agg.arg);	/* says why not */
	/* What a sum shows is the greatest of its scales, which is an aggregate of its own; what is counted is not shown. */
	c->scale_use = added ? ScaleUse::Each : agg.fn == AggFn::Count ? ScaleUse::None : ScaleUse::One;
	reg = agg.fn == AggFn::Count ? compile_presence(c, agg.arg)
		: agg_is_text(agg.fn) ? compile_column(c, variable_var(c->input, agg.arg))
		: agg.fn == AggFn::AnyValue ? compile_column(c, reinterpret_cast<const Var *>(agg.arg))
		: compile_expr(c, agg.arg);
	c->scale_use = ScaleUse::One;
	if (reg < 0)
		return -1;
	if (agg.input == AggInput::Scale)
		return shown_scale(c, reg, c->info[reg].scale);
	if (agg.input == AggInput::Square)
	{
		int			scale = c->info[reg].scale;

		reg = convert(c, reg, Type::I64);
		return reg < 0 ? -1 : value(c, Opcode::Mul, Type::I64, reg, reg, 0, 0, scale < 0 ? NO_INFO : numeric_info(2 * scale));
	}
	return reg;
}

/* One VM aggregate over the rows of the groups. */
static bool
compile_aggregate(Compiler *c, const VmAggregate &agg, int number, OutputForm *output)
{
	int			filter = -1;
	int			known = -1;
	int			arg = -1;
	int			more = 0;		/* p4 */
	Branch		br;
	bool		guarded = false;

	*output = PLAIN_OUTPUT;
	if (agg.filter != nullptr)
	{
		filter = compile_expr(c, agg.filter);
		if (filter < 0)
			return false;
		/* PostgreSQL evaluates the argument only where the filter is true. */
		if (!may_be_conditional(c, agg.arg))
			return false;
		/* squares may raise, too */
		guarded = agg.arg != nullptr && (can_raise(agg.arg) || (agg.other != nullptr && can_raise(agg.other)) || is_double(agg.input)) && !has_argument(c, agg);
		if (agg.other != nullptr && !may_be_conditional(c, agg.other))
			return false;
	}
	if (guarded)
	{
		br = branch_open(c, Opcode::IfNot, filter, true);
		c->guard = agg.filter;
	}
	if (agg.input == AggInput::Position)
		arg = c->position;
	if (agg.arg != nullptr)
	{
		arg = aggregate_argument(c, agg);
		if (arg >= 0 && agg.input == AggInput::Scale)
		{
			/* the scale of a null does not count */
			int			reg;

			c->scale_use = ScaleUse::Each;
			reg = is_wide(c->input, agg.arg) ? low_argument(c, agg) : compile_expr(c, agg.arg);
			c->scale_use = ScaleUse::One;
			known = reg < 0 ? -1 : value(c, Opcode::NotNull, c->b->reg_type[reg], reg);
			if (known < 0)
				return false;
		}
		if (arg < 0 || (agg_is_wide(agg.fn) && (more = low_argument(c, agg)) < 0) ||
			(agg_is_text(agg.fn) && (more = compile_text_order(c, agg.arg, agg.collation)) < 0))
			return false;
		if (agg.fn != AggFn::Count)
			*output = agg_is_wide(agg.fn) || agg.input == AggInput::Low || agg.input == AggInput::High ? half_output(c, agg) : output_form(c, arg);
	}
	if (guarded)
	{
		branch_close(c, br);
		c->guard = nullptr;
	}
	/* behind the branch, where rows that jumped over it are not in the filter */
	if (known >= 0)
		filter = filter < 0 ? known : value(c, Opcode::And, Type::Bool, filter, known);
	if (known >= 0 && filter < 0)
		return false;
	emit(c, Opcode::AggStep, arg < 0 ? Type::None : c->b->reg_type[arg], number, arg, filter, more, static_cast<uint8_t>(agg.fn));
	return true;
}

const char *
aggregate_name(AggFn fn)
{
	static const char *const names[] = {"count", "count", "sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor", "any_value", "min", "max", "min", "max"};

	return names[static_cast<int>(fn)];
}

/* The number of the program's aggregate: parts of one sum share it. */
static int
program_aggregate(const VmAggregate *aggs, const int *numbers, int i, int *nsteps)
{
	for (int j = 0; j < i; j++)
	{
		VmAggregate same = aggs[j];

		same.rest = aggs[i].rest;
		if (same_vm_aggregate(same, aggs[i]))
			return numbers[j];
	}
	return (*nsteps)++;
}

static Type
group_key_type(const CompileInput *input, const Node *key)
{
	const Expr *expr = reinterpret_cast<const Expr *>(key);

	return variable_var(input, expr) != nullptr || is_packed_text(input, expr) || is_span(expr) ? Type::I64 : vm_type(exprType(key));
}

bool
is_ranked_key(const CompileInput *input, const Expr *key)
{
	const Node *node = reinterpret_cast<const Node *>(key);

	return variable_var(input, key) == nullptr && !is_packed_text(input, key) && !is_span(key) &&
		value_type(exprType(node)).form == ValueForm::Dictionary && !dictionary_equality(exprType(node), exprTypmod(node), exprCollation(node));
}

static int
compile_group_key(Compiler *c, const Expr *key)
{
	const Node *node = reinterpret_cast<const Node *>(key);

	if (variable_var(c->input, key) != nullptr)
		return compile_text_key(c, key);
	if (is_packed_text(c->input, key))
		return compile_packed_key(c, key);
	if (is_span(key))
		return compile_span(c, key);
	if (!is_ranked_key(c->input, key))
		return compile_expr(c, key);
	if (bare_column(key) == nullptr && !is_map_expr(key))
		return refuse(c, "values of type %s may be equal without being the same", format_type_be(exprType(node)));
	return compile_rank(c, key, exprCollation(node));
}

/* The least and the greatest display scale of a key's values, behind all other aggregates. */
static void
add_key_scales(const CompileInput *input, List *keys, VmAggregate *aggs, int *naggs)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		Expr	   *key = static_cast<Expr *>(lfirst(lc));

		for (AggFn fn : {AggFn::Min, AggFn::Max})
		{
			if (differs_in_scale(input, key) && *naggs < PROGRAM_MAX_COLUMNS)
				aggs[(*naggs)++] = VmAggregate{fn, key, nullptr, AggInput::Scale, InvalidOid, nullptr, 0};
		}
	}
}

/* Is the key a rank of a column of the cursor's? */
static bool
is_ranked_key_of(Compiler *c, const Expr *key, int cursor)
{
	DictionaryRef of;

	return is_ranked_key(c->input, key) && ranked_dictionary(c, key, &of) && of.cursor == cursor;
}

/* Lets those rows pass whose value, or one of whose keys, is equal to others that are not the same. */
static bool
compile_tied_rows(Compiler *c, List *keys, const Ties *ties)
{
	int			any = -1;
	ListCell   *lc;

	foreach(lc, ties->value != nullptr ? list_make1(ties->value) : keys)
	{
		const Expr *expr = static_cast<const Expr *>(lfirst(lc));
		int			reg;

		if (ties->value == nullptr && !is_ranked_key_of(c, expr, ties->cursor))
			continue;
		reg = compile_tied(c, expr, ties->value != nullptr ? ties->collation : exprCollation((const Node *) expr));
		if (reg >= 0)
			any = any < 0 ? reg : value(c, Opcode::Or, Type::Bool, any, reg);
		if (reg < 0 || any < 0)
			return false;
	}
	emit(c, Opcode::IfNot, Type::Bool, any, 0, 0, VERDICT_DIES, JUMP_IF_NULL);
	return true;
}

/* The rank of the ties' value, and the number of the row's tablet. */
static bool
compile_tie_keys(Compiler *c, Ties *ties, int64_t *regs, OutputForm *forms)
{
	int			n = 0;

	if (ties->value != nullptr)
	{
		const int	rank = compile_rank(c, ties->value, ties->collation);

		if (rank < 0)
			return false;
		ties->cursor = c->maps[c->info[rank].map].cursor;
		forms[n] = output_form(c, rank);
		regs[n++] = rank;
	}
	/* PostgreSQL has its own order for those */
	if (c->input->cursors[ties->cursor].names != NIL)
		return refuse(c, "rows of another plan come in any order") >= 0;
	c->position = compile_position(c, ties->cursor);
	if (c->position < 0)
		return false;
	forms[n] = PLAIN_OUTPUT;
	regs[n] = with_constant64(c, Opcode::ShiftRight, c->position, POSITION_ROW_BITS);
	return regs[n] >= 0;
}

static bool
groups_program(CompileInput *input, List *keys, KeyUse use, const VmAggregate *aggs, int naggs, int next_shown, Ties *ties, CompiledProgram *out)
{
	Compiler   *c = start_program(input);
	const int	nshown = list_length(keys);
	const int	nkeys = nshown + (ties == nullptr ? 0 : ties->value != nullptr ? 2 : 1);
	int64_t		sources[PROGRAM_MAX_COLUMNS];
	int64_t		key_regs[PROGRAM_MAX_COLUMNS];
	List	   *outputs = list_copy(keys);
	int			numbers[PROGRAM_MAX_COLUMNS];
	int			nsteps = 0;
	int			nhigh = 0;
	int			high = 0;
	int			parallel;
	ListCell   *lc;

	foreach(lc, keys)
		nhigh += is_wide(input, static_cast<const Expr *>(lfirst(lc))) ? 1 : 0;
	if (nkeys + naggs + nhigh > PROGRAM_MAX_COLUMNS)
	{
		refuse(c, "the query needs more than %d group keys and aggregates", PROGRAM_MAX_COLUMNS);
		return false;
	}
	foreach(lc, keys)
	{
		int			i = foreach_current_index(lc);
		Node	   *key = static_cast<Node *>(lfirst(lc));
		Type		type = group_key_type(input, key);
		const char *name = "?column?";

		if (type == Type::None)
		{
			refuse(c, "grouping by type %s is not supported", format_type_be(exprType(key)));
			return false;
		}
		if (IsA(key, Var))
		{
			AttrNumber	attnum = 0;
			int			cursor = cursor_of_var(input, (Var *) key, &attnum);

			if (attnum > 0)
				name = cursor_column_name(&input->cursors[cursor], attnum);
		}
		emit(c, Opcode::ResultColumn, type, i, 0, 0, c->b->add_name(name));
		sources[i] = i;
	}
	for (int i = nshown; i < nkeys; i++)
	{
		emit(c, Opcode::ResultColumn, i == nkeys - 1 ? Type::I64 : Type::I32, i, 0, 0, c->b->add_name(i == nkeys - 1 ? "tablet" : "rank"));
		sources[i] = i;
	}
	if (ties != nullptr && ties->value != nullptr)
		outputs = lappend(outputs, ties->value);
	for (int i = 0; i < naggs; i++)
	{
		emit(c, Opcode::ResultColumn, agg_result_type(aggs[i].fn, aggregate_type(input, aggs[i])), nkeys + i, 0, 0,
			 c->b->add_name(aggregate_name(aggs[i].fn)));
		outputs = lappend(lappend(lappend(outputs, aggs[i].arg), aggs[i].other), aggs[i].filter);
		numbers[i] = program_aggregate(aggs, numbers, i, &nsteps);
		sources[nkeys + i] = RESULT_FROM_AGG | numbers[i] | RESULT_REST * aggs[i].rest;
	}
	/* the high halves of keys are keys and result columns behind all others */
	for (int i = 0; i < nhigh; i++)
	{
		emit(c, Opcode::ResultColumn, Type::I64, nkeys + naggs + i, 0, 0, c->b->add_name("?column?"));
		sources[nkeys + naggs + i] = nkeys + i;
	}
	emit(c, Opcode::AggOpen, Type::None, nkeys + nhigh, nsteps, c->b->add_aux(sources, nkeys + naggs + nhigh));
	parallel = compile_source(c, outputs);
	if (parallel < 0 || (ties != nullptr && !ties->all && !compile_tied_rows(c, keys, ties)))
		return false;
	foreach(lc, keys)
	{
		const Expr *key = static_cast<Expr *>(lfirst(lc));
		OutputForm *form = &out->outputs[foreach_current_index(lc)];
		const bool	differs = use != KeyUse::One && differs_in_scale(input, key);
		WideValue	halves;
		int			reg;

		c->scale_use = !differs ? ScaleUse::One : use == KeyUse::Shown ? ScaleUse::Each : ScaleUse::None;
		if (is_wide(input, key))
		{
			if (!compile_wide(c, key, &halves))
				return false;
			c->scale_use = ScaleUse::One;
			*form = OutputForm{OutputKind::Wide, halves.scale, -1, 0, nkeys + naggs + high};
			if (differs && use == KeyUse::Shown)
			{
				form->shown = next_shown;
				next_shown += 2;
				c->soft_errors = true;
			}
			out->outputs[nkeys + naggs + high] = HIGH_OUTPUT;
			key_regs[foreach_current_index(lc)] = halves.low;
			key_regs[nkeys + high++] = halves.high;
			continue;
		}
		reg = compile_group_key(c, key);
		c->scale_use = ScaleUse::One;
		if (reg < 0)
			return false;
		key_regs[foreach_current_index(lc)] = reg;
		*form = output_form(c, reg);
		if (differs && use == KeyUse::Shown)
		{
			form->shown = next_shown;
			next_shown += 2;
			c->soft_errors = true;
		}
		if (is_span(key))
			*form = OutputForm{OutputKind::Span, span_has_days(key), -1, 0, -1};
	}
	if (ties != nullptr && !compile_tie_keys(c, ties, &key_regs[nshown], &out->outputs[nshown]))
		return false;
	if (nkeys > 0)
		emit(c, Opcode::Group, Type::None, nkeys + nhigh, c->b->add_aux(key_regs, nkeys + nhigh), 0);
	nsteps = 0;
	for (int i = 0; i < naggs; i++)
	{
		out->outputs[nkeys + i] = PLAIN_OUTPUT;
		if (numbers[i] == nsteps && !compile_aggregate(c, aggs[i], nsteps++, &out->outputs[nkeys + i]))
			return false;
	}
	out->noutputs = nkeys + naggs + nhigh;
	close_pipeline(c, parallel);
	return finish_program(c, out);
}

/* Registers and operations may run out in the middle of an expression, where nobody says so. */
static bool
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

bool
compile_groups(CompileInput *input, List *keys, KeyUse use, const VmAggregate *aggs, int naggs, CompiledProgram *out)
{
	VmAggregate *all = static_cast<VmAggregate *>(palloc(sizeof(VmAggregate) * (PROGRAM_MAX_COLUMNS + naggs)));
	const int	next_shown = list_length(keys) + naggs;

	for (int i = 0; i < naggs; i++)
		all[i] = aggs[i];
	if (use == KeyUse::Shown)
		add_key_scales(input, keys, all, &naggs);
	return said_why(input, groups_program(input, keys, use, all, naggs, next_shown, nullptr, out));
}

bool
compile_ties(CompileInput *input, List *keys, Ties *ties, CompiledProgram *out)
{
	const VmAggregate position = {ties->last ? AggFn::Max : AggFn::Min, nullptr, nullptr, AggInput::Position, InvalidOid, nullptr, 0};

	/* a row that has no partner is not known by its position */
	for (int i = 1; i < input->ncursors; i++)
	{
		if (input->cursors[i].kind == JoinKind::Full)
		{
			input->reason = "rows of a full join are not told apart";
			return false;
		}
	}
	return said_why(input, groups_program(input, keys, KeyUse::One, &position, 1, 0, ties, out));
}

}  // namespace gpuvm
