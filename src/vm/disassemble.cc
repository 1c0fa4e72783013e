/*
 * disassemble.cc: one operation of a program as text.
 *
 * Linked into backends: no allocation, no exceptions; output is truncated to
 * its buffers. The comment is the opcode's synopsis with its operands filled
 * in, followed by what the flags change.
 */
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "vm/date_fields.h"
#include "vm/program.h"
#include "vm/text_part.h"

namespace gpuvm {

namespace {

/* Appends to a fixed buffer. */
struct Text
{
	char	   *buffer;
	size_t		size;
	size_t		len;

	void		put(char c)
	{
		if (len + 1 < size)
		{
			buffer[len++] = c;
			buffer[len] = '\0';
		}
	}
	void		format(const char *fmt, ...) __attribute__((format(printf, 2, 3)));
};

void
Text::format(const char *fmt, ...)
{
	va_list		args;

	va_start(args, fmt);
	int			n = vsnprintf(buffer + len, size - len, fmt, args);

	va_end(args);
	if (n > 0)
		len = len + n < size ? len + n : size - 1;
}

const char *
type_text(Type t)
{
	switch (t)
	{
		case Type::Bool: return "bool";
		case Type::I16: return "int2";
		case Type::I32: return "int4";
		case Type::I64: return "int8";
		case Type::F32: return "float4";
		case Type::F64: return "float8";
		case Type::I128: return "int16";
		case Type::RowId: return "row position";
		default: return "none";
	}
}

const char *
aggregate_text(uint8_t fn)
{
	switch (static_cast<AggFn>(fn))
	{
		case AggFn::CountStar: return "count(*)";
		case AggFn::Count: return "count";
		case AggFn::Sum: return "sum";
		case AggFn::Min: return "min";
		case AggFn::Max: return "max";
		case AggFn::BoolAnd: return "bool_and";
		case AggFn::BoolOr: return "bool_or";
		case AggFn::BitAnd: return "bit_and";
		case AggFn::BitOr: return "bit_or";
		case AggFn::BitXor: return "bit_xor";
		case AggFn::AnyValue: return "any_value";
		case AggFn::MinWide: return "min";
		case AggFn::MaxWide: return "max";
		case AggFn::MinText: return "min";
		case AggFn::MaxText: return "max";
	}
	return "?";
}

const char *
join_text(int32_t kind)
{
	switch (static_cast<JoinKind>(kind))
	{
		case JoinKind::Inner: return "inner";
		case JoinKind::Left: return "left";
		case JoinKind::Semi: return "semi";
		case JoinKind::Anti: return "anti";
		case JoinKind::Full: return "full";
	}
	return "?";
}

/* The registers that aux lists. */
void
key_list(const Program *program, int64_t first, int n, Text *out)
{
	for (int i = 0; i < n && first + i < static_cast<int64_t>(program->naux); i++)
		out->format("%s r[%lld]", i > 0 ? "," : "", static_cast<long long>(program->aux()[first + i]));
}

/* Is the 'p' at s an operand ("p1" .. "p5", not part of a word)? */
bool
is_operand(const char *synopsis, const char *s)
{
	return s[0] == 'p' && s[1] >= '1' && s[1] <= '5' && (s == synopsis || s[-1] == ' ' || s[-1] == '[');
}

void
fill_synopsis(Text *out, const Op &op, const char *p4)
{
	const char *synopsis = opcode_info[static_cast<int>(op.opcode)].synopsis;
	const bool	immediate = op.opcode == Opcode::Float;

	for (const char *s = synopsis; *s; s++)
	{
		if (!is_operand(synopsis, s))
		{
			out->put(*s);
			continue;
		}
		switch (*++s)
		{
			case '1': out->format("%d", op.p1); break;
			case '2': out->format("%d", op.p2); break;
			case '3': out->format("%d", op.p3); break;
			case '4': out->format("%s", p4); break;
			default:
				out->format("%s", op.opcode == Opcode::Cast ? type_text(static_cast<Type>(op.p5)) : aggregate_text(op.p5));
				break;
		}
		/* "p4, the bits of a double": the value says it all */
		if (immediate && *s == '4')
			break;
	}
}

const char *
compare_sign(Opcode opcode)
{
	switch (opcode)
	{
		case Opcode::Eq: return "=";
		case Opcode::Ne: return "<>";
		case Opcode::Lt: return "<";
		case Opcode::Le: return "<=";
		case Opcode::Gt: return ">";
		default: return ">=";
	}
}

/* Comparisons and branches: what happens depends on verdict and flags. */
void
jump_comment(Text *out, const Op &op, OpForm form)
{
	char		condition[64];

	if (form == OpForm::COMPARE)
		snprintf(condition, sizeof(condition), "r[%d] %s r[%d]", op.p1, compare_sign(op.opcode), op.p2);
	else
		snprintf(condition, sizeof(condition), "%sr[%d]", op.opcode == Opcode::IfNot ? "not " : "", op.p1);
	if (op.p5 & COMPARE_STORES)
	{
		out->format("r[%d] = %s", op.p3, condition);
		return;
	}
	out->format("if %s%s ", condition, op.p5 & JUMP_IF_NULL ? " or null" : "");
	if (op.p4 == VERDICT_DIES)
		out->format("the row is not in the result");
	else
		out->format("goto %d", op.p3);
}

void
text_part_comment(Text *out, const Op &op)
{
	const TextPart part = text_part_of(op.p4);

	out->format("r[%d] = ", op.p1);
	if (part.kind == TextPartKind::Packed)
		out->format("%d characters behind the first %u of ", part.count, part.skip);
	else
		out->format("how many %s are in ", part.kind == TextPartKind::Characters ? "characters" : "bytes");
	out->format("column %d of cursor %d%s", op.p2, op.p3, part.flags & TEXT_TRIM_BLANKS ? " without blanks at the end" : "");
}

void
p4_text(const Program *program, const Op &op, OpForm form, Text *out)
{
	switch (form)
	{
		case OpForm::RESCOL:
			if (op.p4 >= 0 && op.p4 < program->names_len)
				out->format("%s", program->names() + op.p4);
			break;
		case OpForm::IMM64:
			if (op.opcode == Opcode::Float)
			{
				double		d;

				memcpy(&d, &op.p4, sizeof(d));
				out->format("%.17g", d);
				break;
			}
			/* an integer as it is */
			[[fallthrough]];
		default:
			out->format("%lld", static_cast<long long>(op.p4));
			break;
	}
}

}  // namespace

void
disassemble_op(const Program *program, int address, DisassembledOp *out)
{
	const Op   &op = program->ops()[address];
	const OpcodeInfo &info = opcode_info[static_cast<int>(op.opcode)];
	Text		p4 = {out->p4, sizeof(out->p4), 0};
	Text		comment = {out->comment, sizeof(out->comment), 0};

	out->address = address;
	out->opcode = info.name;
	out->p1 = op.p1;
	out->p2 = op.p2;
	out->p3 = op.p3;
	out->p4[0] = out->comment[0] = '\0';
	p4_text(program, op, info.form, &p4);

	switch (info.form)
	{
		case OpForm::COMPARE:
		case OpForm::BRANCH:
			jump_comment(&comment, op, info.form);
			break;
		case OpForm::RESCOL:
			comment.format("declare result column %d, %s, named %s", op.p1, type_text(op.type), out->p4);
			return;
		case OpForm::AGGSTEP:
			comment.format("aggregate %d: %s", op.p1, aggregate_text(op.p5));
			if (op.p2 >= 0)
				comment.format(" of r[%d]", op.p2);
			if (agg_is_wide(static_cast<AggFn>(op.p5)))
				comment.format(" * 2^62 + r[%lld]", static_cast<long long>(op.p4));
			if (orders_texts(op))
				comment.format(" by text order %lld", static_cast<long long>(op.p4));
			if (op.p3 >= 0)
				comment.format(" where r[%d] is true", op.p3);
			break;
		case OpForm::GROUP:
			comment.format("the row's group, by");
			key_list(program, op.p2, op.p1, &comment);
			break;
		case OpForm::HASHINSERT:
			comment.format("insert the row into hash table %d, by", op.p1);
			key_list(program, op.p3, op.p2, &comment);
			break;
		case OpForm::SEEK:
			comment.format("a lane for each row of cursor %d with the keys", op.p1);
			key_list(program, op.p3, op.p2, &comment);
			break;
		case OpForm::SEEKRANGE:
			comment.format("a lane for each row of cursor %d with a key", op.p1);
			if (op.p2 & RANGE_LO)
				comment.format(" %s r[%lld]", op.p2 & RANGE_LO_STRICT ? ">" : ">=", static_cast<long long>(program->aux()[op.p3]));
			if (op.p2 & RANGE_HI)
				comment.format("%s %s r[%lld]", op.p2 & RANGE_LO ? " and" : "", op.p2 & RANGE_HI_STRICT ? "<" : "<=",
							   static_cast<long long>(program->aux()[op.p3 + 1]));
			break;
		case OpForm::HASHOPEN:
			comment.format("open %s %d, of the rows of cursor %d, with %d key%s", op.p3 == HASH_SORTED ? "sorted table" : "hash table",
						   op.p1, op.p1, op.p2, op.p2 == 1 ? "" : "s");
			break;
		case OpForm::MATCH:
			comment.format("end of the %s join with cursor %d", join_text(op.p2), op.p1);
			break;
		case OpForm::FIELD:
			comment.format(op.opcode == Opcode::DateTrunc ? "r[%d] = timestamp r[%d] cut to the %s" : "r[%d] = of timestamp r[%d] the %s",
						   op.p1, op.p2, date_field_name(op.p3));
			break;
		case OpForm::LOOKUP:
			fill_synopsis(&comment, op, out->p4);
			if (op.p5 & LOOKUP_NULL)
				comment.format(", or null's own");
			break;
		case OpForm::TEXTMATCH:
			comment.format("r[%d] = column %d of cursor %d matches pattern %s", op.p1, op.p2, op.p3, out->p4);
			return;
		case OpForm::TEXTPART:
			text_part_comment(&comment, op);
			break;
		case OpForm::PARALLEL:
			fill_synopsis(&comment, op, out->p4);
			if (program->ncursors > 1)
				comment.format(", %d driving", op.p2);
			break;
		case OpForm::RESULT:
			if (op.p2 == 0)
				comment.format("emit a result row without columns");
			else
				comment.format("emit r[%d] .. r[%d] as a result row", op.p1, op.p1 + op.p2 - 1);
			break;
		case OpForm::SELECT:
			comment.format("r[%d] = r[%lld] is true ? r[%d] : r[%d]", op.p1, static_cast<long long>(op.p4), op.p2, op.p3);
			break;
		default:
			fill_synopsis(&comment, op, out->p4);
			break;
	}
	if (op.type != Type::None)
		comment.format(" (%s)", type_text(op.type));
}

}  // namespace gpuvm
