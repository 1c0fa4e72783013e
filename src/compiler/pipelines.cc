/*
 * pipelines.cc: quals, joins and pipelines around the expressions of compile.cc.
 *
 * A join program has a pipeline for each hash table and then the main one, which
 * the first cursor drives (vm/program.h). What is read of earlier cursors behind
 * a Seek or Cross is fetched before it: a register that is written between it and
 * its Match is lost there if lanes go on that met no row. Behind a full join
 * everything is fetched again.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
}

#include "compiler/emit.h"

namespace gpuvm {

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

		if (op.opcode == Opcode::Bound || op.opcode == Opcode::DatePart || op.opcode == Opcode::ZoneShift ||
			(writes && info.errors != 0 && c->info[op.p1].scale >= 0))
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
int
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

}  // namespace gpuvm
