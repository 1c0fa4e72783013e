/*
 * verify.cc: is a sealed program well-formed?
 *
 * gpuvmd runs what a backend sends, so nothing in a program is believed: sizes
 * first, then one pass over the operations in program order. Since jumps only
 * go forward, a register written above an operation is the only one that it may
 * read, and one pass suffices. What the engines rely on afterwards:
 *
 *   - every index (register, column, parameter, aux, name, aggregate) is valid,
 *     every operand has the type that its form asks for, every register is
 *     written once;
 *   - every jump goes forward and not past Converge; none but those to Converge
 *     itself passes over Group, so a lane at AggStep has its group;
 *   - a row program has one Result, a grouped one at most one Group, before
 *     every AggStep, and one AggStep an aggregate;
 *   - a join program (more than one cursor) has its pipelines in order, each with
 *     registers of its own; in the main one every cursor is positioned once, in
 *     order, and matched, before the sinks; no jump crosses Seek, Cross or Match.
 */
#include <cstring>

#include "vm/code_map.h"
#include "vm/date_fields.h"
#include "vm/program.h"
#include "vm/text_part.h"

namespace gpuvm {

namespace {

struct Verifier
{
	const Program *program;
	const CursorSchema *cursors;
	const char *failure;
	Type		reg_type[PROGRAM_MAX_REGS];	/* None: not written yet */
	Type		result_type[PROGRAM_MAX_COLUMNS];
	Type		key_type[PROGRAM_MAX_COLUMNS];
	Type		agg_type[PROGRAM_MAX_COLUMNS];	/* of the result; None: no AggStep yet */
	bool		cursor_open[PROGRAM_MAX_CURSORS];
	int			aggopen;
	int			group;
	int			result;
	int			last_crossing;	/* greatest target below Converge of the jumps so far */
	int			converge;		/* of the pipeline that we are in */

	/* joins */
	int			driver;			/* cursor of the pipeline that we are in */
	int			position;		/* greatest cursor that is positioned; -1: none */
	bool		matching;		/* between Seek or Cross and Match of that cursor */
	int			inserted;		/* address of the pipeline's HashInsert, or 0 */
	int			nkeys[PROGRAM_MAX_CURSORS];	/* of the cursor's hash table; 0: not opened */
	bool		sorted[PROGRAM_MAX_CURSORS];
	bool		built[PROGRAM_MAX_CURSORS];
	bool		columns_gone[PROGRAM_MAX_CURSORS];	/* behind Semi or Anti */
	Type		hash_type[PROGRAM_MAX_CURSORS][PROGRAM_MAX_COLUMNS];
	bool		hidden[PROGRAM_MAX_REGS];	/* written, but in another pipeline or in what a Match closed */
	int			condition_reg[PROGRAM_MAX_REGS];	/* registers written since Seek or Cross */
	int			ncondition;

	void		fail(const char *why) { if (!failure) failure = why; }
	void		dst(int r, Type t);
	void		src(int r, Type t);
	void		target(int address, int to);
	bool		aux_range(int64_t first, int64_t n);
	bool		type_allowed(const Op &op);
	void		host_op(int address, const Op &op);
	void		lane_op(int address, const Op &op);
	void		aggstep(const Op &op);
	void		in_list(const Op &op);
	void		cursor_read(int cursor);
	void		hash_keys(const Op &op, bool insert);
	void		range_bounds(const Op &op);
	void		position_cursor(const Op &op);
	void		match(const Op &op);
	void		boundary(int address);
	bool		joins() const { return program->ncursors > 1; }
	int			begin_pipeline(int address, const Op &op);
	void		end_pipeline();
	void		finish();
};

void
Verifier::dst(int r, Type t)
{
	if (r < 0 || r >= program->nregs)
		fail("a register number is out of range");
	else if (reg_type[r] != Type::None)
		fail("a register is written twice");
	else
	{
		reg_type[r] = t;
		if (matching)
			condition_reg[ncondition++] = r;
	}
}

void
Verifier::src(int r, Type t)
{
	if (r < 0 || r >= program->nregs)
		fail("a register number is out of range");
	else if (reg_type[r] == Type::None || hidden[r])
		fail("a register is read before it is written");
	else if (reg_type[r] != t)
		fail("a register has another type than its operation");
}

void
Verifier::target(int address, int to)
{
	if (to <= address || to > converge)
		fail("a jump does not go forward within the pipeline");
	else if (to < converge && to > last_crossing)
		last_crossing = to;
	else if (to == converge && joins())
		fail("a jump leads to Converge");
}

bool
Verifier::aux_range(int64_t first, int64_t n)
{
	if (first < 0 || n < 0 || first > program->naux || n > static_cast<int64_t>(program->naux) - first)
	{
		fail("an operand lies outside the auxiliary area");
		return false;
	}
	return true;
}

char
type_letter(Type t)
{
	switch (t)
	{
		case Type::None: return '-';
		case Type::Bool: return 'B';
		case Type::I16: return 'S';
		case Type::I32: return 'I';
		case Type::I64: return 'L';
		case Type::F32: return 'F';
		case Type::F64: return 'D';
		case Type::I128: return 'X';
		case Type::RowId: return 'R';
	}
	return '?';
}

bool
type_in(Type t, const char *letters)
{
	for (const char *c = letters; *c; c++)
		if (*c == type_letter(t))
			return true;
	return false;
}

bool
Verifier::type_allowed(const Op &op)
{
	return type_in(op.type, opcode_info[static_cast<int>(op.opcode)].types);
}

/* Is the value one that a register of the type can hold? */
bool
value_fits(int64_t v, Type t)
{
	switch (t)
	{
		case Type::Bool: return v == 0 || v == 1;
		case Type::I16: return v == static_cast<int16_t>(v);
		case Type::I32: return v == static_cast<int32_t>(v);
		default: return true;
	}
}

void
Verifier::host_op(int address, const Op &op)
{
	switch (opcode_info[static_cast<int>(op.opcode)].form)
	{
		case OpForm::TABLE:
			if (op.p3 < 0 || op.p3 >= program->ncursors || op.p1 < 0 || op.p1 >= program->ncursors)
				fail("a cursor number is out of range");
			else if (cursor_open[op.p3])
				fail("a cursor is opened twice");
			else
				cursor_open[op.p3] = true;
			break;
		case OpForm::HASHOPEN:
			if (op.p1 < 1 || op.p1 >= program->ncursors)
				fail("a cursor number is out of range");
			else if (nkeys[op.p1] != 0 || op.p2 < 1 || op.p2 > PROGRAM_MAX_COLUMNS)
				fail("a hash table is opened twice or has no keys");
			else if (op.p3 != 0 && (op.p3 != HASH_SORTED || op.p2 != 1))
				fail("a sorted table has several keys, or a table is of an unknown kind");
			else
			{
				nkeys[op.p1] = op.p2;
				sorted[op.p1] = op.p3 == HASH_SORTED;
			}
			break;
		case OpForm::RESCOL:
			if (op.p1 < 0 || op.p1 >= program->nresults)
				fail("a result column number is out of range");
			else if (result_type[op.p1] != Type::None)
				fail("a result column is declared twice");
			else if (op.p4 < 0 || op.p4 >= program->names_len)
				fail("a name lies outside the names area");
			else
				result_type[op.p1] = op.type;
			break;
		case OpForm::AGGOPEN:
			if (aggopen >= 0 || !program->grouped || op.p1 != program->nkeys || op.p2 != program->naggs)
				fail("AggOpen disagrees with the program's header");
			else if (aux_range(op.p3, program->nresults))
				aggopen = address;
			break;
		default:
			fail("an operation stands outside the pipeline");
			break;
	}
}

void
Verifier::in_list(const Op &op)
{
	if (op.p4 < 1)
		fail("an IN list is empty");
	else if (op.p5 & ~IN_HAS_NULL)
		fail("an operation has unknown flags");
	else if (aux_range(op.p3, op.p4))
	{
		const int64_t *v = program->aux() + op.p3;

		for (int64_t i = 0; i < op.p4; i++)
			if (!value_fits(v[i], op.type) || (i > 0 && v[i] < v[i - 1]))
				fail("an IN list is not sorted or has a value out of range");
	}
}

void
Verifier::aggstep(const Op &op)
{
	AggFn		fn = static_cast<AggFn>(op.p5);

	if (aggopen < 0 || op.p1 < 0 || op.p1 >= program->naggs)
	{
		fail("an aggregate number is out of range");
		return;
	}
	if (agg_type[op.p1] != Type::None)
	{
		fail("an aggregate has two AggSteps");
		return;
	}
	if (program->nkeys > 0 && group < 0)
		fail("AggStep stands before Group");
	switch (fn)
	{
		case AggFn::CountStar:
			if (op.type != Type::None || op.p2 != -1)
				fail("count(*) has an argument");
			break;
		case AggFn::Count:
		case AggFn::AnyValue:
			if (op.type == Type::None)
				fail("an aggregate function does not take this type");
			break;
		case AggFn::Sum:
		case AggFn::Min:
		case AggFn::Max:
			if (!type_is_int(op.type) && !type_is_float(op.type))
				fail("an aggregate function does not take this type");
			break;
		case AggFn::BitAnd:
		case AggFn::BitOr:
		case AggFn::BitXor:
			if (!type_is_int(op.type))
				fail("an aggregate function does not take this type");
			break;
		case AggFn::BoolAnd:
		case AggFn::BoolOr:
			if (op.type != Type::Bool)
				fail("an aggregate function does not take this type");
			break;
		case AggFn::MinWide:
		case AggFn::MaxWide:
			if (op.type != Type::I64 || op.p4 < 0 || op.p4 >= program->nregs)
				fail("an extreme of halves does not take these");
			else
				src(static_cast<int>(op.p4), Type::I64);
			break;
		case AggFn::MinText:
		case AggFn::MaxText:
			if (op.type != Type::I64 || op.p4 < 0 || op.p4 >= PROGRAM_MAX_TEXT_ORDERS)
				fail("an extreme of texts does not take these");
			break;
		default:
			fail("an aggregate function is unknown");
			return;
	}
	if (fn != AggFn::CountStar)
		src(op.p2, op.type);
	if (op.p3 != -1)
		src(op.p3, Type::Bool);
	agg_type[op.p1] = agg_result_type(fn, op.type);
}

void
Verifier::lane_op(int address, const Op &op)
{
	const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;
	const Type	t = op.type;

	switch (form)
	{
		case OpForm::COLUMN:
			cursor_read(op.p3);
			if (failure)
				break;
			if (op.p2 < 0 || static_cast<uint32_t>(op.p2) >= cursors[op.p3].ncols)
				fail("a column number is out of range");
			else if (cursors[op.p3].types[op.p2] != t)
				fail("a column has another type than its operation");
			dst(op.p1, t);
			break;
		case OpForm::ROWID:
			cursor_read(op.p3);
			if (joins() && t != Type::I64)
				fail("a row's number in its tablet says nothing in a join program");
			dst(op.p1, t);
			break;
		case OpForm::IMM32:
			if (!value_fits(op.p2, t))
				fail("an immediate value is out of range");
			dst(op.p1, t);
			break;
		case OpForm::IMM64:
		case OpForm::IMMNULL:
			dst(op.p1, t);
			break;
		case OpForm::VARIABLE:
			if (op.p2 < 0 || op.p2 >= program->nparams)
				fail("a parameter number is out of range");
			dst(op.p1, t);
			break;
		case OpForm::CAST:
			if (!type_in(static_cast<Type>(op.p5), "BSILFD"))
				fail("a cast has an unknown source type");
			src(op.p2, static_cast<Type>(op.p5));
			dst(op.p1, t);
			break;
		case OpForm::UNARY:
		case OpForm::COPY:
		case OpForm::LOGIC1:
			src(op.p2, t);
			dst(op.p1, t);
			break;
		case OpForm::UNARY_IL:
			src(op.p2, Type::I32);
			dst(op.p1, t);
			break;
		case OpForm::UNARY_LI:
			src(op.p2, Type::I64);
			dst(op.p1, t);
			break;
		case OpForm::BINARY:
		case OpForm::LOGIC2:
		case OpForm::PICK:
			src(op.p2, t);
			src(op.p3, t);
			dst(op.p1, t);
			break;
		case OpForm::SHIFT:
			src(op.p2, t);
			src(op.p3, Type::I32);
			dst(op.p1, t);
			break;
		case OpForm::FIELD:
			if (!(op.opcode == Opcode::DatePart ? date_part_takes(op.p3) : date_trunc_takes(op.p3)))
				fail("a field of timestamps is unknown");
			src(op.p2, t);
			dst(op.p1, t);
			break;
		case OpForm::LOOKUP:
			if (op.p2 < 0 || op.p2 >= program->nmaps)
				fail("a map number is out of range");
			if (op.p5 & ~LOOKUP_NULL)
				fail("an operation has unknown flags");
			src(op.p3, Type::I32);
			dst(op.p1, t);
			break;
		case OpForm::ZONE:
			if (op.p2 < 0 || op.p2 >= program->nmaps)
				fail("a map number is out of range");
			src(op.p3, t);
			dst(op.p1, t);
			break;
		case OpForm::NULLTEST:
			src(op.p2, t);
			dst(op.p1, Type::Bool);
			break;
		case OpForm::DISTINCT:
			src(op.p2, t);
			src(op.p3, t);
			dst(op.p1, Type::Bool);
			break;
		case OpForm::TEXTMATCH:
		case OpForm::TEXTPART:
			cursor_read(op.p3);
			if (failure)
				break;
			if (op.p2 < 0 || static_cast<uint32_t>(op.p2) >= cursors[op.p3].ncols)
				fail("a column number is out of range");
			else if (cursors[op.p3].types[op.p2] != Type::I64)
				fail("a column has another type than its operation");
			if (op.opcode == Opcode::TextMatch && (op.p4 < 0 || op.p4 >= program->npatterns))
				fail("a pattern number is out of range");
			if (op.opcode == Opcode::TextPart && !is_text_part(op.p4))
				fail("a part of a text is none");
			dst(op.p1, t);
			break;
		case OpForm::TEXTKEY:
			if (op.p3 != -1 && (op.p3 < 1 || op.p3 > TEXT_KEY_MAX_LENGTH))
				fail("values have an unknown length");
			src(op.p2, t);
			dst(op.p1, t);
			break;
		case OpForm::TEXTCOMPARE:
			if (op.p4 < 0 || op.p4 >= PROGRAM_MAX_TEXT_ORDERS)
				fail("texts are compared in an unknown way");
			src(op.p2, t);
			src(op.p3, t);
			dst(op.p1, t);
			break;
		case OpForm::IN:
			src(op.p2, t);
			in_list(op);
			dst(op.p1, Type::Bool);
			break;
		case OpForm::SELECT:
			src(op.p2, t);
			src(op.p3, t);
			if (op.p4 < 0 || op.p4 >= program->nregs)
				fail("a register number is out of range");
			else
				src(static_cast<int>(op.p4), Type::Bool);
			dst(op.p1, t);
			break;
		case OpForm::COMPARE:
			src(op.p1, t);
			src(op.p2, t);
			if (op.p5 == COMPARE_STORES)
			{
				dst(op.p3, Type::Bool);
				break;
			}
			[[fallthrough]];
		case OpForm::BRANCH:
			if (form == OpForm::BRANCH)
				src(op.p1, Type::Bool);
			if (op.p5 & ~JUMP_IF_NULL)
				fail("an operation has unknown flags");
			if (op.p4 != VERDICT_DIES && op.p4 != VERDICT_JUMPS)
				fail("a verdict is unknown");
			if (op.p4 == VERDICT_JUMPS)
				target(address, op.p3);
			else if (op.p3 <= address || op.p3 > converge)
				fail("a jump does not go forward within the pipeline");
			break;
		case OpForm::JUMP:
			target(address, op.p3);
			break;
		case OpForm::INVALID:
			break;
		case OpForm::GROUP:
			if (group >= 0 || aggopen < 0 || op.p1 < 1 || op.p1 != program->nkeys)
				fail("Group disagrees with AggOpen");
			else if (last_crossing > address)
				fail("a jump passes over Group");
			else if (aux_range(op.p2, op.p1))
			{
				group = address;
				for (int i = 0; i < op.p1; i++)
				{
					int64_t		r = program->aux()[op.p2 + i];

					if (r < 0 || r >= program->nregs)
						fail("a register number is out of range");
					else if (!type_in(reg_type[r], "BSILFD") || hidden[r])
						fail("a group key is not written or cannot be grouped by");
					else
						key_type[i] = reg_type[r];
				}
			}
			break;
		case OpForm::AGGSTEP:
			aggstep(op);
			break;
		case OpForm::RESULT:
			if (result >= 0 || program->grouped || op.p2 != program->nresults)
				fail("Result disagrees with the program's header");
			else if (op.p1 < 0 || op.p1 > program->nregs - op.p2)
				fail("a register number is out of range");
			else
			{
				result = address;
				for (int i = 0; i < op.p2; i++)
					src(op.p1 + i, result_type[i]);
			}
			break;
		case OpForm::HASHINSERT:
			if (address >= program->parallel || op.p1 != driver || address != converge - 1)
				fail("HashInsert does not end its table's pipeline");
			else
			{
				boundary(address);
				hash_keys(op, true);
				inserted = address;
			}
			break;
		case OpForm::SEEK:
		case OpForm::SEEKRANGE:
		case OpForm::CROSS:
			boundary(address);
			position_cursor(op);
			break;
		case OpForm::MATCH:
			boundary(address);
			match(op);
			break;
		default:
			fail("a host operation stands within the pipeline");
			break;
	}
	/* sinks come when every cursor is there */
	if ((form == OpForm::GROUP || form == OpForm::AGGSTEP || form == OpForm::RESULT)
		&& (address < program->parallel || matching || position != program->ncursors - 1))
		fail("a sink stands before the last Match");
}

/* ---- joins --------------------------------------------------------------------- */

void
Verifier::cursor_read(int cursor)
{
	if (cursor < 0 || cursor >= program->ncursors || !cursor_open[cursor])
		fail("a cursor number is out of range");
	else if (cursor != driver && (cursor > position || driver != 0))
		fail("a cursor is read where it is not positioned");
	else if (columns_gone[cursor])
		fail("a cursor is read behind its Match");
}

/* What no jump may pass over: at its address, lanes may still become live. */
void
Verifier::boundary(int address)
{
	if (last_crossing > address)
		fail("a jump passes over Seek, Cross, Match or HashInsert");
}

void
Verifier::hash_keys(const Op &op, bool insert)
{
	if (op.p2 < 1 || op.p2 != nkeys[op.p1])
	{
		fail("a hash table has another number of keys");
		return;
	}
	if (!aux_range(op.p3, op.p2))
		return;
	for (int i = 0; i < op.p2 && !failure; i++)
	{
		int64_t		r = program->aux()[op.p3 + i];

		if (r < 0 || r >= program->nregs)
			fail("a register number is out of range");
		else if (!type_in(reg_type[r], "BSILFD") || hidden[r])
			fail("a hash key is not written or cannot be hashed");
		else if (insert)
			hash_type[op.p1][i] = reg_type[r];
		else if (hash_type[op.p1][i] != reg_type[r])
			fail("a key is looked up with another type than it has");
	}
}

void
Verifier::range_bounds(const Op &op)
{
	const int	given = op.p2 & (RANGE_LO | RANGE_HI);

	if (op.p2 & ~(RANGE_LO | RANGE_HI | RANGE_LO_STRICT | RANGE_HI_STRICT) || given == 0
		|| ((op.p2 & RANGE_LO_STRICT) && !(given & RANGE_LO)) || ((op.p2 & RANGE_HI_STRICT) && !(given & RANGE_HI)))
		fail("a range has no bound or unknown flags");
	else if (aux_range(op.p3, 2))
		for (int i = 0; i < 2; i++)
		{
			const int64_t r = program->aux()[op.p3 + i];

			if (!(given & (i == 0 ? RANGE_LO : RANGE_HI)))
			{
				if (r != -1)
					fail("a bound that is not given has a register");
			}
			else if (r < 0 || r >= program->nregs)
				fail("a register number is out of range");
			else
				src(static_cast<int>(r), hash_type[op.p1][0]);
		}
}

void
Verifier::position_cursor(const Op &op)
{
	const bool	seek = op.opcode != Opcode::Cross;
	const bool	range = op.opcode == Opcode::SeekRange;

	if (driver != 0 || matching || op.p1 != position + 1 || op.p1 < 1 || op.p1 >= program->ncursors)
		fail("cursors are not positioned in their order");
	else if (seek != (nkeys[op.p1] != 0))
		fail("a cursor with a hash table is not sought, or one without is");
	else if (seek && sorted[op.p1] != range)
		fail("a sorted table is sought by equal keys, or another one by a range");
	else if (range)
		range_bounds(op);
	else if (seek)
		hash_keys(op, false);
	position++;
	matching = true;
	ncondition = 0;
}

void
Verifier::match(const Op &op)
{
	const JoinKind kind = static_cast<JoinKind>(op.p2);

	if (!matching || op.p1 != position)
	{
		fail("Match is not that of the cursor before it");
		return;
	}
	if (op.p2 < 0 || kind > JoinKind::Full)
		fail("the kind of a join is unknown");
	matching = false;
	if (kind == JoinKind::Inner)
		return;
	columns_gone[op.p1] = kind == JoinKind::Semi || kind == JoinKind::Anti;
	for (int i = 0; i < ncondition; i++)
		hidden[condition_reg[i]] = true;
	/* rows that go on alone have computed nothing */
	if (kind == JoinKind::Full)
		for (int r = 0; r < program->nregs; r++)
			hidden[r] = reg_type[r] != Type::None;
}

/* Parallel; returns the address of its Converge. */
int
Verifier::begin_pipeline(int address, const Op &op)
{
	const bool	main = address == program->parallel;

	converge = op.p3;
	driver = op.p2;
	position = 0;
	matching = false;
	last_crossing = 0;
	inserted = 0;
	memset(columns_gone, 0, sizeof(columns_gone));
	for (int r = 0; r < program->nregs; r++)
		hidden[r] = reg_type[r] != Type::None;
	if (main ? op.p1 != program->ncursors || op.p3 != program->converge || op.p2 != 0
		: op.p1 != 1 || op.p3 <= address || op.p3 >= program->parallel || op.p2 < 1 || op.p2 >= program->ncursors)
		fail("Parallel disagrees with the program's header");
	else if (!main && (nkeys[op.p2] == 0 || built[op.p2]))
		fail("a pipeline fills no hash table, or one that is full already");
	else if (!cursor_open[op.p2])
		fail("a cursor is not opened");
	return converge;
}

void
Verifier::end_pipeline()
{
	if (driver == 0)
	{
		for (int i = 1; i < program->ncursors; i++)
			if (nkeys[i] != 0 && !built[i])
				fail("a hash table is not filled");
		return;
	}
	if (inserted == 0)
		fail("a pipeline has no HashInsert");
	built[driver] = true;
}

void
Verifier::finish()
{
	for (int i = 0; i < program->nresults; i++)
		if (result_type[i] == Type::None)
			fail("a result column is not declared");
	for (int i = 0; i < program->ncursors; i++)
		if (!cursor_open[i])
			fail("a cursor is not opened");
	if (!program->grouped)
	{
		if (result < 0)
			fail("the program has no Result");
		return;
	}
	if (aggopen < 0)
	{
		fail("the program has no AggOpen");
		return;
	}
	if (program->nkeys > 0 && group < 0)
		fail("the program has no Group");
	for (int i = 0; i < program->naggs; i++)
		if (agg_type[i] == Type::None)
			fail("an aggregate has no AggStep");
	if (failure)
		return;
	for (int i = 0; i < program->nresults; i++)
	{
		int64_t		source = program->aux()[program->ops()[aggopen].p3 + i];
		Type		t;

		if (source >= 0 && source < program->nkeys)
			t = key_type[source];
		else if (source >= RESULT_FROM_AGG && result_rest(source) <= MAX_RESULT_REST && (source & RESULT_FROM_AGG) &&
				 source - RESULT_REST * result_rest(source) < RESULT_FROM_AGG + program->naggs)
		{
			t = agg_type[result_agg(source)];
			if (result_rest(source) > 0 && t != Type::F64)
				fail("what is left of a sum is of none of floats");
		}
		else
		{
			fail("a result source is out of range");
			return;
		}
		if (t != result_type[i])
			fail("a result column has another type than its source");
	}
}

/* Header and sizes, before anything behind the header is looked at. */
const char *
verify_header(const Program *p, size_t size, int ncursors)
{
	if (reinterpret_cast<uintptr_t>(p) % alignof(Program) != 0 || size < sizeof(Program))
		return "the program is too short";
	if (p->magic != PROGRAM_MAGIC)
		return "the program has the wrong magic number";
	if (p->nops < 3 || p->nops > PROGRAM_MAX_OPS || p->nregs > PROGRAM_MAX_REGS || p->naux > PROGRAM_MAX_AUX
		|| p->names_len > PROGRAM_MAX_NAMES || p->names_len % 8 != 0 || p->nparams > PROGRAM_MAX_PARAMS || p->nmaps > PROGRAM_MAX_MAPS || p->npatterns > PROGRAM_MAX_PATTERNS
		|| p->nresults > PROGRAM_MAX_COLUMNS || p->nkeys + p->naggs > PROGRAM_MAX_COLUMNS || p->grouped > 1)
		return "the program exceeds a limit";
	if (p->size > size
		|| p->size != sizeof(Program) + sizeof(Op) * p->nops + sizeof(int64_t) * p->naux + p->names_len)
		return "the program's size is wrong";
	if (p->names_len > 0 && p->names()[p->names_len - 1] != '\0')
		return "the names area does not end in a zero byte";
	if (p->hash != hash_program(p))
		return "the program's hash is wrong";
	if (p->ncursors < 1 || p->ncursors > PROGRAM_MAX_CURSORS || p->ncursors != ncursors)
		return "the number of cursors is wrong";
	if (!p->grouped && (p->nkeys > 0 || p->naggs > 0))
		return "a program that ends in rows has aggregates";
	if (p->parallel >= p->converge || p->converge != p->nops - 2)
		return "the pipeline's bounds are wrong";
	return nullptr;
}

}  // namespace

const char *
verify_program(const Program *program, size_t size, const CursorSchema *cursors, int ncursors)
{
	const char *failure = verify_header(program, size, ncursors);

	if (failure)
		return failure;

	Verifier	v = {};

	v.program = program;
	v.cursors = cursors;
	v.aggopen = v.group = v.result = -1;

	/* Where the first pipeline begins; they follow each other up to Finish. */
	int			end = program->parallel;

	if (v.joins())
		for (int i = program->parallel - 1; i >= 0; i--)
			if (program->ops()[i].opcode == Opcode::Parallel)
				end = i;
	for (int i = 0, begin = end; i < program->nops && !v.failure; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode >= Opcode::Count_)
			return "an opcode is unknown";
		if (!v.type_allowed(op))
			return "an operation does not take this type";
		if ((op.opcode == Opcode::Parallel) != (i == begin)
			|| (op.opcode == Opcode::Converge) != (begin < i && i == end)
			|| (op.opcode == Opcode::Finish) != (i == program->nops - 1))
			return "Parallel, Converge or Finish is out of place";
		if (i < begin)
		{
			if (op.opcode != Opcode::Finish)
				v.host_op(i, op);
		}
		else if (i == begin)
			end = v.begin_pipeline(i, op);
		else if (i < end)
			v.lane_op(i, op);
		else if (i == end)
		{
			v.end_pipeline();
			begin = i == program->converge ? program->nops : i + 1;
			end = begin;
		}
	}
	v.finish();
	return v.failure;
}

const char *
verify_params(const Program *program, const ParamValue *params, uint32_t nparams)
{
	if (nparams < program->nparams)
		return "a parameter is missing";
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode != Opcode::Variable)
			continue;
		if (params[op.p2].type != static_cast<uint32_t>(op.type))
			return "a parameter has another type than its Variable";
		if (!params[op.p2].is_null && !value_fits(params[op.p2].value, op.type))
			return "a parameter's value is out of range";
	}
	return nullptr;
}

const char *
verify_patterns(const Program *program, uint32_t npatterns)
{
	return npatterns < program->npatterns ? "a pattern is missing" : nullptr;
}

const char *
verify_maps(const Program *program, const CodeMap *maps, uint32_t nmaps)
{
	if (nmaps < program->nmaps)
		return "a map is missing";
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::ZoneShift && !is_zone_table(maps[op.p2]))
			return "a zone table is malformed";
		if (op.opcode != Opcode::Lookup)
			continue;
		if (maps[op.p2].type != op.type)
			return "a map has another type than its Lookup";
		if ((op.p5 & LOOKUP_NULL) && !maps[op.p2].has_null_entry)
			return "a map has no entry for nulls";
	}
	return nullptr;
}

}  // namespace gpuvm
