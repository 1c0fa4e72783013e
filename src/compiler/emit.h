/*
 * emit.h: a program in the making, between what compiles expressions and
 * pipelines.cc, row_programs.cc and group_programs.cc (everything around them).
 *
 * Each compile_* function emits the operations for one expression and returns
 * the register that holds its value, or -1 with input->reason set. Nothing here
 * has a destructor, so an ereport from PostgreSQL may pass through.
 *
 * A register is only defined on the lanes that were live when it was written.
 * The operands of AND, OR, CASE and COALESCE that can raise are therefore
 * compiled between a jump and its target (an error counts on live lanes only, as
 * PostgreSQL's short circuit has it), and what is computed in between is
 * forgotten at the target. Operands that cannot raise are evaluated on every
 * lane: cheaper than a branch, and nobody can tell.
 */
#ifndef GPUVM_COMPILER_EMIT_H
#define GPUVM_COMPILER_EMIT_H

#include "compiler/compile.h"
#include "compiler/facts.h"
#include "compiler/functions.h"
#include "compiler/maps.h"
#include "compiler/text_match.h"
#include "vm/date_fields.h"

namespace gpuvm {

constexpr int MAX_CACHED_COLUMNS = 256;

struct CachedColumn
{
	int			cursor;
	AttrNumber	attnum;
	int			reg;
};

/*
 * What is known of a register's values beyond their Type. Numerics are integers
 * times 10^-scale. Codes are of the dictionary of a column, or of one that a map makes; references are to a column's values.
 */
struct RegisterInfo
{
	int16		scale;			/* of a numeric, -1: it is none */
	int16		shown;			/* register with the values' display scales where they differ from row to row; -1: all have `scale` */
	int16		cursor;			/* of codes, and references: whose column, -1: neither */
	AttrNumber	attnum;
	int16		map;			/* of codes of a map's dictionary; -1 */
	bool		variable = false;	/* references */
	bool		packed = false;	/* texts, each as an integer (vm/text_part.h) */
	bool		wide = false;	/* low halves (tablet/wide_halves.h) */
};

constexpr RegisterInfo NO_INFO = {-1, -1, -1, 0, -1};

/* Of a numeric whose arms have different display scales, what is wanted? */
enum class ScaleUse : uint8_t
{
	One,						/* it has to have one, */
	None,						/* it does not matter (a comparison), */
	Each,						/* or it is computed, too (RegisterInfo.shown) */
};

/* The registers of both halves (tablet/wide_halves.h); null where the value is. */
struct WideValue
{
	int			high;
	int			low;
	int			scale;			/* -1: any, as it is no number */
	bool		special = false;	/* of some rows the high half may say that it is no number */
	int			shown = -1;		/* register with the values' display scales where they differ from row to row */
};

/*
 * A quotient in parts, of which each register has its scale: its integer part, which may have some decimals, and the decimals behind it, in one part
 * or two. Sums of each are what a sum of quotients is made of.
 */
constexpr int MAX_QUOTIENT_LIMBS = 3;

struct QuotientLimbs
{
	int			reg[MAX_QUOTIENT_LIMBS];
	int			special;		/* take_special() */
	int			shown;			/* display scales, an I64 */
};

struct Compiler
{
	CompileInput *input;
	ProgramBuilder *b;
	List	   *params;
	int			depth;			/* branches around the current operation */
	int			first;			/* the cursor that drives the pipeline, */
	int			npositioned;	/* and how many from there on can be read */
	bool		transient;		/* registers written here are not read behind the build or the Match that follows */
	bool		matched[PROGRAM_MAX_CURSORS];	/* the cursor's Match was passed */
	int			ncached;
	CachedColumn cached[MAX_CACHED_COLUMNS];
	int			nknown;			/* operations whose values can be used again: their addresses */
	int16		known[PROGRAM_MAX_OPS];
	int			noutputs;		/* registers set aside for result columns, not loaded yet */
	CachedColumn outputs[PROGRAM_MAX_COLUMNS];
	bool		soft_errors;	/* CompiledProgram's, of what its operations do not tell */
	ScaleUse	scale_use;		/* of the numeric that is being compiled */
	const Expr *guard;			/* FILTER of the aggregate whose argument is compiled in a branch of its own; else NULL */
	const Expr *argument;		/* of the aggregate before, where that was in halves */
	const Expr *argument_filter;	/* its registers are defined where this is true; NULL: everywhere */
	ScaleUse	argument_use;
	WideValue	argument_halves;
	const Expr *quotient;		/* the same of a quotient in limbs */
	const Expr *quotient_filter;
	QuotientLimbs quotient_limbs;
	int			position;		/* of a program of ties: the register with the rows' positions (AggInput::Position) */
	int			nmaps;
	PlanMap		maps[MAX_MAPS];
	int			npatterns;
	PlanPattern patterns[PROGRAM_MAX_PATTERNS];
	PlanTextOrders text_orders;
	RegisterInfo info[PROGRAM_MAX_REGS];
};

inline int
emit(Compiler *c, Opcode op, Type type, int p1, int p2, int p3, int64_t p4 = 0, uint8_t p5 = 0)
{
	return c->b->emit(op, type, p1, p2, p3, p4, p5);
}

/* -1, and `failed`, when there is none left. */
inline int
new_reg(Compiler *c, Type type)
{
	int			reg = c->b->new_reg(type);

	if (reg >= 0)
		c->info[reg] = NO_INFO;
	return reg;
}

/* Notes the reason, if it is the first, and returns -1. */
int			refuse(Compiler *c, const char *fmt, ...) pg_attribute_printf(2, 3);

/* -- compile.cc: calls, comparisons, and what leads everywhere else ------------------- */

int			compile_expr(Compiler *c, const Expr *expr);

/* A numeric of which only the value matters, not the digits that are shown. */
int			compile_value(Compiler *c, const Expr *expr);

/*
 * The register with the operation's value: a comparison's as Bool, p2 and p3 are its operands. An equal
 * operation before that the lanes have passed is used again.
 */
int			value(Compiler *c, Opcode op, Type type, int p2, int p3 = 0, int64_t p4 = 0, uint8_t p5 = 0,
				  const RegisterInfo &info = NO_INFO);

int			int_value(Compiler *c, Type type, int64_t v, const RegisterInfo &info = NO_INFO);
int			float_value(Compiler *c, Type type, double v);
int			null_value(Compiler *c, Type type, const RegisterInfo &info = NO_INFO);
bool		is_null_value(const Compiler *c, int reg);
bool		is_int_value(const Compiler *c, int reg, int64_t *v);

int			convert(Compiler *c, int reg, Type to);
bool		compile_operands(Compiler *c, const FnEntry *fn, List *args, Type *type, int *ra, int *rb);
bool		is_comparison(const FnEntry *fn);

/* The comparison with its operands exchanged. */
Opcode		commuted(Opcode op);

/* Of x op bound, where x has not the steps that bound has: does the least step not below bound stand for it? Else the greatest not above. */
inline bool
rounds_up(Opcode op)
{
	return op == Opcode::Lt || op == Opcode::Ge;
}

/* The VM's type; None, and the reason noted, when it has none. */
Type		supported_type(Compiler *c, Oid type);

/* -- leaves.cc: columns, constants, parameters ---------------------------------------- */

/* Place of the column in the imported table, -1: not imported. */
int			column_place(const CompileCursor *cursor, AttrNumber attnum);
int			load_column(Compiler *c, int cursor, AttrNumber attnum, Oid type);
/* maps.cc: the column of whose entries the expression's ranks are; false and a reason. */
bool		ranked_dictionary(Compiler *c, const Expr *expr, DictionaryRef *column);
/* The positions of the cursor's rows, in the cache as the ctid. */
int			compile_position(Compiler *c, int cursor);
/* What a result column of rows is made of: the column, or the row's position (is_by_position). */
int			load_output(Compiler *c, int cursor, const Var *var);
int			compile_var(Compiler *c, const Var *var);
/* What a subquery below an outer join computes, above that join. */
int			compile_placeholder(Compiler *c, const PlaceHolderVar *phv);
/* A column that says of which row it is; of it, whether it is null: no row of the relation is there then. */
bool		is_ctid(const Expr *expr);
int			compile_row(Compiler *c, const Var *ctid);
/* The same, and references to values of variable length: who takes them asks nothing of the values. */
int			compile_column(Compiler *c, const Var *var);
bool		load_wide(Compiler *c, const Var *var, WideValue *to);
/* The cursor that has the column's row here, *absent: there is none (above an anti join). -1 and a reason. */
int			cursor_at(Compiler *c, const Var *var, AttrNumber *attnum, bool *absent);
int			compile_const(Compiler *c, const Const *con);
/* An expression without columns whose value is known when execution starts. */
int			compile_param(Compiler *c, const Expr *expr, const RegisterInfo &info = NO_INFO);
int64_t		const_int(Oid type, Datum value);

/* Does PostgreSQL evaluate it when execution starts, so that it is a parameter? (folding.cc) */
bool		evaluated_at_start(const Expr *expr);

/* Could it, whatever its type? */
bool		known_at_start(const Expr *expr);

/* -- control.cc: what evaluates some of its operands only, and truth values ------------ */

/* (a, b) < (c, d) as conditions that PostgreSQL's rules come out of; NULL: its operators are not what they should be. */
Expr	   *expand_row_compare(const RowCompareExpr *expr);
int			compile_and_or(Compiler *c, const BoolExpr *expr);
int			compile_not(Compiler *c, int reg);
int			compile_case(Compiler *c, const CaseExpr *expr);
/* CASE x WHEN v as CASE WHEN x = v. */
const CaseExpr *searched_case(const CaseExpr *expr);
int			compile_coalesce(Compiler *c, const CoalesceExpr *expr);
int			compile_minmax(Compiler *c, const MinMaxExpr *expr);
int			compile_nullif(Compiler *c, const NullIfExpr *expr);
int			compile_boolean_test(Compiler *c, const BooleanTest *expr);
int			compile_null_test(Compiler *c, const NullTest *expr);

bool		may_be_conditional(Compiler *c, const Expr *expr);

/* Is there a parameter in it that a subquery or an outer node gives? */
bool		has_exec_param(const Node *node);

/* Between branch_open and branch_close, lanes for which `reg` is true (or false: IfNot) are elsewhere. */
struct Branch
{
	int			jump;
	int			ncached;
	int			nknown;
};

Branch		branch_open(Compiler *c, Opcode op, int reg, bool null_jumps);
void		branch_close(Compiler *c, const Branch &br);

/* -- numeric.cc ------------------------------------------------------------------------ */

/* The scale that a numeric expression is computed at. */
struct NumericScale
{
	int			scale;			/* -1: any (NULL), or it does not compile */
	bool		mixed;			/* of some rows the display scale is less */
	bool		longer = false;	/* or more */
};

NumericScale numeric_scale(const CompileInput *input, const Expr *expr);

/* Is it round(x, n), of a column and the one that has its values' display scales (CompileCursor.shown)? There is nothing to round, then. */
bool		is_shown_apart(const CompileInput *input, Oid function, List *args);

/* NULL is of any scale. */
NumericScale common_scale(const NumericScale &a, const NumericScale &b);

int			compile_numeric_const(Compiler *c, const Const *con);
int			compile_numeric_call(Compiler *c, const FnEntry *fn, List *args);

/* Both operands of a comparison, at one scale. */
bool		compile_numeric_operands(Compiler *c, Opcode op, List *args, int *ra, int *rb);

/*
 * The bound at this scale, as an integer, that values of the scale are on the same side of as of the constant, which has more
 * decimals: below 1.505 is below 1.51, and up to 1.505 is up to 1.50. False: no program has numbers of that size.
 */
bool		scaled_bound(Datum bound, int scale, bool up, Datum *out);

/* Is it an equality with a parameter, which is made of two comparisons? */
bool		is_parameter_equality(const FnEntry *fn, List *args);
int			compile_parameter_equality(Compiler *c, const FnEntry *fn, List *args);

/* How many decimals money has under lc_monetary, as it is now. */
int			money_scale();

/* A number of 64 bits as float8, exactly, or flagged. */
int			numeric_to_float(Compiler *c, int reg);

/* INT_MIN: the digits that a call of round() or trunc() names are no constant. */
int			round_digits(List *args);

/* numeric(p, s), of the type modifier that a cast has: -1 if there is none, or if it is of a kind that is not supported. */
int			typmod_scale(List *args, int *precision);

/* The same number at a scale that is no less. */
int			rescale(Compiler *c, int reg, int scale);

/* The register with the display scales, or with the one that all have, which was `scale` before it was rescaled. */
int			shown_scale(Compiler *c, int reg, int scale);

inline RegisterInfo
numeric_info(int scale, int shown = -1)
{
	return RegisterInfo{static_cast<int16>(scale), static_cast<int16>(shown), -1, 0, -1};
}

/* -- numeric_bounds.cc ----------------------------------------------------------------------- */

/* No value of a numeric or an integer is more, as plans know of columns; infinite: nothing is known. */
double		greatest_value(const CompileInput *input, const Expr *expr);

/* -- wide.cc: numerics of more than 64 bits ------------------------------------------------ */

/* Operations over 64 bits; of -1, -1. A shift's constant is an I32. */
int			binary64(Compiler *c, Opcode op, int a, int b);
int			with_constant64(Compiler *c, Opcode op, int a, int64_t constant);
int			select64(Compiler *c, int cond, int then, int otherwise);

/* A number in one register, which is flagged where it has more than 64 bits or is none. */
struct WideFactor
{
	int			reg;
	int			special;		/* take_special() */
	int			scale;
	int			shown;			/* WideValue.shown */
};

/* Is it one as a rule? False: it does not compile. */
bool		is_factor(const CompileInput *input, const Expr *expr);
bool		compile_factor(Compiler *c, const Expr *expr, WideFactor *out);

/* The table that the column is of, and its place there; NULL: none is read that has it. */
const ImportedTable *table_of(const CompileInput *input, const Var *var, int *place);

/* Is it a column of such numbers, or what is computed of one so that it is in halves, too? */
bool		is_wide(const CompileInput *input, const Expr *expr);

/* Is it a comparison of numerics with one on a side, or with NaN or an infinity? */
bool		meets_wide(const CompileInput *input, const FnEntry *fn, List *args);

/* Any numeric expression, in halves; at a scale that is no less than its own. False, with the reason. */
bool		compile_wide(Compiler *c, const Expr *expr, WideValue *out);
/* Where only the value matters, not the digits that are shown. */
bool		compile_wide_value(Compiler *c, const Expr *expr, WideValue *out);
bool		wide_constant(Compiler *c, int128 v, int scale, WideValue *out);
bool		compile_wide_key(Compiler *c, const Expr *expr, int scale, WideValue *out);

/* x op y, x IS DISTINCT FROM y */
int			compare_wide(Compiler *c, Opcode op, const WideValue &a, const WideValue &b);
int			compile_wide_comparison(Compiler *c, Opcode op, List *args);
int			compile_wide_distinct(Compiler *c, List *args);

/* Says what can be done with the column. Returns -1. */
int			refuse_wide(Compiler *c, int cursor, AttrNumber attnum);

/* high * 2^62 + low, of any low, as halves; flagged where they do not hold it. */
bool		normalize_wide(Compiler *c, int high, int low, int scale, WideValue *out);

/* The same number at a scale that is no less; a number is multiplied by so many decimals at a time. */
constexpr int WIDE_PART_DECIMALS = 9;
bool		rescale_wide(Compiler *c, WideValue *a, int scale);

/* -- wide_round.cc -------------------------------------------------------------------------- */

enum class WideRounding : uint8_t
{
	Nearest,					/* halves away from zero */
	ToZero,
	Up,
	Down,
};

/* With so many decimals; with fewer than none, of tens, hundreds and so on. */
bool		round_wide(Compiler *c, WideValue *a, int digits, WideRounding how);

/* Do plans know that the squares of a numeric's values, which have one scale, may have more than 64 bits? */
bool		has_wide_squares(const CompileInput *input, const Expr *expr);

/* As 64 bits; flagged where the number has more, or is none. */
int			narrow_wide(Compiler *c, const WideValue &a);
bool		widen_narrow(Compiler *c, int reg, WideValue *out);
bool		compile_wide_sign(Compiler *c, const Expr *expr, WideValue *out);
bool		compile_wide_typmod(Compiler *c, List *args, WideValue *out);
int			compile_wide_to_int(Compiler *c, const Expr *expr, Type to);
int			compile_wide_to_float(Compiler *c, const Expr *expr);
/* half_of() a number. */
int			compile_half(Compiler *c, const Expr *number, bool high);
/* approximation() of a number of any size. */
int			compile_approximation(Compiler *c, const Expr *number);

/* -- wide_divide.cc -------------------------------------------------------------------------- */

/* A quotient of numerics, of rows: it is in halves whatever is divided. */
bool		is_quotient(const Expr *expr);

/* The scale that it is computed at. */
int			quotient_scale(const CompileInput *input, List *args);
bool		compile_quotient(Compiler *c, List *args, WideValue *out);

/* In how many parts it is summed up: two hold what plans know of the operands' greatest values, or it takes as many as there are. */
int			quotient_limbs(const CompileInput *input, List *args);
bool		compile_quotient_limbs(Compiler *c, List *args, QuotientLimbs *out);

/* -- wide_case.cc --------------------------------------------------------------------------- */

/* Is it a CASE, COALESCE, GREATEST, LEAST or NULLIF (arms_of()) of such numbers? */
bool		has_wide_arms(const CompileInput *input, const Expr *expr);
bool		compile_wide_arms(Compiler *c, const Expr *expr, WideValue *out);

/* -- wide_special.cc: of these, NaN and infinities ------------------------------------------ */

constexpr int NO_SPECIALS = -2;

/* May the constant's, the column's, or the expression's, values be such? */
bool		is_special_const(const void *expr);
bool		is_special_column(const CompileInput *input, const Var *var);
bool		may_be_special(const CompileInput *input, const Expr *expr);

/*
 * Makes the value a number, 0 where it was none. Returns the register with what it was (bits of WideSpecial, 0 of a number; null
 * where the value is), NO_SPECIALS, or -1.
 */
int			take_special(Compiler *c, WideValue *value);

/* The other way round: *value is what `special` says, where it says so. */
bool		put_special(Compiler *c, WideValue *value, int special);

/* What -x, x + y and x times a number of 64 bits are, of what x and y are. */
int			negative_special(Compiler *c, int special);
int			sum_special(Compiler *c, int a, int b);
int			product_special(Compiler *c, int special, int factor);
int			absolute_special(Compiler *c, int special);

/* The same of two that may both be none, both of them numbers now. */
int			product_specials(Compiler *c, const WideValue &a, int of_a, int b, int of_b);

/* Of an integer's two limbs (AggInput::SmallLimbProduct) the i-th product. */
int			small_limb_product(Compiler *c, int reg, int i);

/* -- datetime.cc ------------------------------------------------------------------------ */

int			compile_datetime_call(Compiler *c, const FnEntry *fn, List *args);

/* The display scale of an extract(); -1: its field is not supported. */
int			extract_scale(const FnEntry *fn, List *args);

/* -- intervals.cc: differences of times (spans), and parts of intervals ---------------------- */

int			compile_span(Compiler *c, const Expr *expr);

/* Are intervals compared, spans with each other or with constants? */
bool		is_span_comparison(Oid function, List *args);
int			compile_span_comparison(Compiler *c, Oid function, List *args);

/* Of a span or an interval of a dictionary, for an aggregate. */
int			compile_interval_part(Compiler *c, const Expr *interval, AggInput part);

/* As an integer with the scale that `info` says. */
int			compile_interval_field(Compiler *c, const Expr *interval, DateField field, const RegisterInfo &info);

/* date_part('epoch', a - b) */
int			compile_span_epoch(Compiler *c, const Expr *interval);

/* -- interval_parts.cc: intervals that are computed ------------------------------------------- */

/* A register, or, if it is -1, a constant. */
struct IntervalPart
{
	int			reg;
	int64_t		constant;
};

struct IntervalParts
{
	IntervalPart months;
	IntervalPart days;
	IntervalPart micros;
};

inline bool
is_zero_part(const IntervalPart &part)
{
	return part.reg < 0 && part.constant == 0;
}

/* Is it one that is computed of others, or of numbers, rather than a span, a column or a constant? */
bool		is_computed_interval(const Expr *expr);

/* Of any interval that programs know; false: a reason. */
bool		compile_interval_parts(Compiler *c, const Expr *expr, IntervalParts *out);
bool		negate_interval(Compiler *c, IntervalParts *parts);

/* What it compares as, and its epoch, both in microseconds. */
int			compile_computed_span(Compiler *c, const Expr *expr);
int			compile_computed_epoch(Compiler *c, const Expr *expr, const RegisterInfo &info);

/* Its microseconds, null where the interval is. */
int			compile_interval_time(Compiler *c, const IntervalParts &parts);

/* -- made_times.cc: times that are made of numbers, and periods that overlap ------------------ */

int			compile_to_timestamp(Compiler *c, const Expr *seconds);
int			compile_make_date(Compiler *c, List *args);
int			compile_overlaps(Compiler *c, List *args);

/* -- buckets.cc ---------------------------------------------------------------------------- */

int			compile_date_bin(Compiler *c, List *args);
int			compile_numeric_bucket(Compiler *c, List *args);
int			compile_float_bucket(Compiler *c, List *args);

/* -- age.cc: age(a, b) ------------------------------------------------------------------------ */

bool		is_age(const Expr *expr);

/* Its years or months, as an integer with the scale that `info` says. */
int			compile_age_field(Compiler *c, const Expr *age, DateField field, const RegisterInfo &info);

/* -- text_columns.cc: columns without a dictionary ---------------------------------------- */

/* The column under what changes no bytes, if it is one of variable length; else NULL. */
const Var  *variable_var(const CompileInput *input, const Expr *expr);

/* Is there such a column in the expression? */
bool		reads_variable(const CompileInput *input, const Expr *expr);

/* Is it an expression over a dictionary column, which becomes a map? (is_map_expr goes by types alone) */
bool		is_map(const Compiler *c, const Expr *expr);

/* A value of which only matters whether it is null. */
int			compile_presence(Compiler *c, const Expr *expr);

/* The column's values as integers that are equal where its bytes are (TextKey): what it is grouped, joined and compared by. -1 and a reason. */
int			compile_text_key(Compiler *c, const Expr *expr);

/* The number of the order that MinText and MaxText compare its values by. -1 and a reason. */
int			compile_text_order(Compiler *c, const Expr *expr, Oid collation);

/* Says what can be done with the column. Returns -1. */
int			refuse_variable(Compiler *c, const Var *var);

/* Is one in the expression, or the list of them? Then it says so. */
bool		refuse_variables(Compiler *c, const void *node);

/* -- text_match.cc: of these, comparisons ----------------------------------------------------- */

/* Is it such a column, or what lower(), upper() and trims make of one? */
bool		matches_variable(const CompileInput *input, const Expr *expr);

/* Is one of the arguments? */
bool		meets_variable(const Compiler *c, List *args);
int			compile_text_match(Compiler *c, Oid function, List *args, Oid collation);

/* -- text_part.cc: of these, the length or a few characters --------------------------------- */

/* Is it the length of such a column? Its register is an I32. */
bool		is_text_length(const CompileInput *input, const Expr *expr);
int			compile_text_length(Compiler *c, const Expr *expr);

/* Is it some of the column's characters, so few that an integer holds them? */
bool		is_packed_text(const CompileInput *input, const Expr *expr);

/* The column then; else NULL. */
const Var  *packed_column(const CompileInput *input, const Expr *expr);

/* These, or a constant, as such an integer; and as a key. -1 and a reason. */
int			compile_packed_text(Compiler *c, const Expr *expr);
int			compile_packed_key(Compiler *c, const Expr *expr);

/* x = ANY (array), x <> ALL (array) of them: are they compared as integers? */
bool		packs_in(const CompileInput *input, const ScalarArrayOpExpr *expr);
int			compile_packed_in(Compiler *c, const ScalarArrayOpExpr *expr);

/* -- pairs.cc: expressions over two dictionary columns ------------------------------------ */

/* is_pair_expr(), of columns that have dictionaries. */
bool		is_pair(const Compiler *c, const Expr *expr);

/* Its register, with the value or a code of it; and the number of its map. -1 and a reason. */
int			compile_pair(Compiler *c, const Expr *expr);
int			pair_map(Compiler *c, const Expr *expr);

/* -- dictionaries.cc: values of two dictionaries meet ------------------------------------ */

constexpr int MAX_UNION = 16;

/* Dictionaries together: codes of the first, then what each of the others adds. */
struct DictionaryUnion
{
	int			n;
	DictionaryRef refs[MAX_UNION];
	int			maps[MAX_UNION];	/* the Translate of each; -1: its codes stay */
	DictionaryRef all;
};

/* What the codes of a dictionary type's expression are of; it need not be compiled yet. NO_DICTIONARY: it is null. */
bool		dictionary_of(Compiler *c, const Expr *expr, DictionaryRef *ref);

/* Of the arms, and of those that a CASE or COALESCE has. */
bool		arms_union(Compiler *c, List *arms, DictionaryUnion *to);
bool		expr_union(Compiler *c, const Expr *expr, DictionaryUnion *to);

RegisterInfo dictionary_info(const DictionaryRef &ref);

/* The register with codes of the union in place of those of one of its dictionaries. */
int			translate(Compiler *c, int reg, const DictionaryUnion *to);

/* A comparison between two expressions of dictionary types, neither of them a map of one column with a constant. */
struct DictionaryComparison
{
	Opcode		op;
	Oid			type;
	Oid			collation;
	bool		by_bytes;		/* = or <>, and equal values have equal bytes */
	Expr	   *sides[2];
};

bool		dictionary_comparison(Oid opno, Oid collation, List *args, DictionaryComparison *out);
bool		dictionary_clause(const Node *clause, DictionaryComparison *out);

/* Is it one of two columns of variable length whose bytes decide? Then it is one of their keys. */
bool		text_keys_meet(const Compiler *c, const DictionaryComparison &comparison);

/* Is it one of such characters, with a constant or with others? (text_part.cc) */
bool		packed_texts_meet(const Compiler *c, const DictionaryComparison &comparison);

/* How the codes of both sides become comparable. */
struct DictionaryMeeting
{
	DictionaryComparison comparison;
	DictionaryUnion all;		/* by_bytes */
	int			orders[2];		/* not by_bytes: an Order each */
};

bool		dictionaries_meet(Compiler *c, const DictionaryComparison &comparison, DictionaryMeeting *out);
int			meeting_side(Compiler *c, const DictionaryMeeting *meeting, int side);

/* Both sides, as I32. */
bool		dictionary_operands(Compiler *c, const DictionaryComparison &comparison, int *ra, int *rb);

/* A value that is known when execution starts: a dictionary of one entry. */
int			compile_dictionary_constant(Compiler *c, const Expr *expr);

/* -- zones.cc ---------------------------------------------------------------------------- */

int			compile_zone_call(Compiler *c, const FnEntry *fn, List *args);

/* A timestamp with time zone as the zone's clocks show it, and back; no zone: TimeZone. -1 for -1. */
int			to_local(Compiler *c, int reg, Expr *zone);
int			to_utc(Compiler *c, int reg, Expr *zone);

/* Does the constant name a zone that a table can be made for? False: a reason. */
bool		constant_zone(Compiler *c, const Expr *expr);

/* -- pipelines.cc ------------------------------------------------------------------------ */

constexpr const char *TOO_LARGE = "the query needs a larger program than the virtual machine takes";

/* What all programs begin with, what is around a pipeline, and what they end with. */
Compiler   *start_program(CompileInput *input);
bool		compile_quals(Compiler *c, List *quals);
int			open_pipeline(Compiler *c, int ncursors, int cursor);
void		close_pipeline(Compiler *c, int parallel);
bool		finish_program(Compiler *c, CompiledProgram *out);

/* The main pipeline up to its sink; returns its Parallel, or -1. */
int			compile_source(Compiler *c, List *outputs);

/* The operands of a key (split_seek_keys): the earlier cursors', and that of the relation. False: it is none. */
bool		key_sides(const Expr *clause, const Bitmapset *relids, Node **outer, Node **inner);

/* -- row_programs.cc --------------------------------------------------------------------- */

constexpr OutputForm PLAIN_OUTPUT = {OutputKind::Plain, -1, -1, 0, -1};
constexpr OutputForm HIGH_OUTPUT = {OutputKind::High, -1, -1, 0, -1};

/* The cursor that a Var reads, and the number of its column there. */
int			cursor_of_var(const CompileInput *input, const Var *var, AttrNumber *attnum);

/* Registers and operations may run out in the middle of an expression, where nobody says so. */
bool		said_why(CompileInput *input, bool compiled);

/* -- group_programs.cc ------------------------------------------------------------------- */

/* Of what an aggregate's result column is called after. */
const char *aggregate_name(AggFn fn);

}  // namespace gpuvm

#endif
