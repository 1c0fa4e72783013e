/*
 * text_part.cc: the first characters, or the length, of a column whose values have no codes (Encoding::Variable).
 *
 * TextPart packs a few characters into an integer that says what the text is (vm/text_part.h), so such texts are compared
 * by = with constants and each other, and are keys of groups and joins, as integers are. Their order is not that of integers.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <algorithm>

#include "compiler/emit.h"
#include "compiler/text_match.h"
#include "vm/text_part.h"

namespace gpuvm {

constexpr int FEW_VALUES = 8;	/* that are as fast to compare with as an integer is looked for */

/* -- which expressions ----------------------------------------------------------------------- */

struct PartCall
{
	const Var  *var;
	TextPart	part;
};

static bool
int_const(const void *node, int32 *value)
{
	const Const *con = static_cast<const Const *>(node);

	if (!IsA(con, Const) || con->constisnull)
		return false;
	*value = DatumGetInt32(con->constvalue);
	return true;
}

bool
text_slice(Oid function, List *args, TextSlice *slice)
{
	int32		start = 1;
	int32		count = 0;

	*slice = TextSlice{};
	switch (function)
	{
		case F_SUBSTR_TEXT_INT4_INT4:
		case F_SUBSTRING_TEXT_INT4_INT4:
			if (!int_const(lsecond(args), &start) || !int_const(lthird(args), &count) || count < 0)
				return false;
			/* places are counted from 1; no text has so many characters that an overflow could matter */
			*slice = TextSlice{SliceForm::Behind, Max(start, 1) - 1, static_cast<int32>(Max(int64{start} + count - Max(start, 1), 0))};
			return true;
		case F_SUBSTR_TEXT_INT4:
		case F_SUBSTRING_TEXT_INT4:
			if (!int_const(lsecond(args), &start))
				return false;
			*slice = TextSlice{SliceForm::Rest, Max(start, 1) - 1, 0};
			return true;
		case F_LEFT:
		case F_RIGHT:
			if (!int_const(lsecond(args), &count) || count == PG_INT32_MIN)
				return false;
			if (function == F_LEFT)
				*slice = count >= 0 ? TextSlice{SliceForm::Behind, 0, count} : TextSlice{SliceForm::ButLast, 0, -count};
			else
				*slice = count >= 0 ? TextSlice{SliceForm::Last, 0, count} : TextSlice{SliceForm::Rest, -count, 0};
			return true;
		default:
			return false;
	}
}

static bool
find_part(Oid function, List *args, TextPart *part)
{
	TextSlice	slice;

	*part = TextPart{};
	if (text_slice(function, args, &slice))
	{
		part->kind = TextPartKind::Packed;
		part->skip = static_cast<uint32_t>(Min(slice.skip, int32{TEXT_PART_MAX_SKIP}));	/* no text has more */
		part->count = static_cast<uint8_t>(Min(slice.count, TEXT_PART_BYTES));
		return slice.form == SliceForm::Behind && slice.count <= TEXT_PART_BYTES;
	}
	switch (function)
	{
		case F_LENGTH_BPCHAR:
		case F_CHAR_LENGTH_BPCHAR:
		case F_CHARACTER_LENGTH_BPCHAR:
			part->flags = TEXT_TRIM_BLANKS;
			part->kind = TextPartKind::Characters;
			return true;
		case F_LENGTH_TEXT:
		case F_CHAR_LENGTH_TEXT:
		case F_CHARACTER_LENGTH_TEXT:
			part->kind = TextPartKind::Characters;
			return true;
		case F_OCTET_LENGTH_TEXT:
		case F_OCTET_LENGTH_BPCHAR:
		case F_OCTET_LENGTH_BYTEA:
		case F_LENGTH_BYTEA:
			part->kind = TextPartKind::Bytes;
			return true;
		default:
			return false;
	}
}

static const Expr *
without_relabels(const Expr *expr)
{
	while (IsA(expr, RelabelType) || IsA(expr, CollateExpr))
		expr = IsA(expr, RelabelType) ? ((const RelabelType *) expr)->arg : ((const CollateExpr *) expr)->arg;
	return expr;
}

/* Is it a part of a column of variable length that programs can take? */
static bool
part_call(const CompileInput *input, const Expr *expr, PartCall *call)
{
	const FuncExpr *fn = (const FuncExpr *) without_relabels(expr);
	const Expr *arg;
	const bool	utf8 = GetDatabaseEncoding() == PG_UTF8;

	if (!IsA(fn, FuncExpr) || !find_part(fn->funcid, fn->args, &call->part))
		return false;
	arg = without_relabels(static_cast<const Expr *>(linitial(fn->args)));
	if (IsA(arg, FuncExpr) && ((const FuncExpr *) arg)->funcid == F_TEXT_BPCHAR)
	{
		call->part.flags |= TEXT_TRIM_BLANKS;
		arg = static_cast<const Expr *>(linitial(((const FuncExpr *) arg)->args));
	}
	call->var = variable_var(input, arg);
	if (call->var == nullptr)
		return false;
	switch (getBaseType(call->var->vartype))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			if (utf8)
				call->part.flags |= TEXT_UTF8;
			return utf8 || pg_database_encoding_max_length() == 1 || call->part.kind == TextPartKind::Bytes;
		case BYTEAOID:
			/* as text, by a cast without a function: it may have bytes of zero, and be of no encoding */
			return call->part.kind == TextPartKind::Bytes;
		default:
			return false;
	}
}

bool
is_text_length(const CompileInput *input, const Expr *expr)
{
	PartCall	call;

	return part_call(input, expr, &call) && call.part.kind != TextPartKind::Packed;
}

bool
is_packed_text(const CompileInput *input, const Expr *expr)
{
	PartCall	call;

	return part_call(input, expr, &call) && call.part.kind == TextPartKind::Packed;
}

const Var *
packed_column(const CompileInput *input, const Expr *expr)
{
	PartCall	call;

	return part_call(input, expr, &call) && call.part.kind == TextPartKind::Packed ? call.var : nullptr;
}

static bool
is_text_const(const Expr *expr)
{
	return IsA(expr, Const) && !((const Const *) expr)->constisnull;
}

/* Whatever its characters are. */
static bool
surely_packs(const CompileInput *input, const Expr *expr)
{
	PartCall	call;

	return part_call(input, expr, &call) && call.part.kind == TextPartKind::Packed && text_part_most(call.part) <= TEXT_PART_BYTES;
}

bool
packed_texts_meet(const Compiler *c, const DictionaryComparison &comparison)
{
	const bool	a = is_packed_text(c->input, comparison.sides[0]);
	const bool	b = is_packed_text(c->input, comparison.sides[1]);

	/* a pattern compares any characters with a constant */
	return comparison.by_bytes && ((a && b) || (surely_packs(c->input, comparison.sides[0]) && is_text_const(comparison.sides[1])) ||
								   (surely_packs(c->input, comparison.sides[1]) && is_text_const(comparison.sides[0])));
}

bool
packs_in(const CompileInput *input, const ScalarArrayOpExpr *expr)
{
	const Expr *left = static_cast<const Expr *>(linitial(expr->args));
	const Const *list = static_cast<const Const *>(lsecond(expr->args));

	if (!is_packed_text(input, left))
		return false;
	/* each value has a pattern */
	return surely_packs(input, left) || (IsA(list, Const) && !list->constisnull && ArrayGetNItems(ARR_NDIM(DatumGetArrayTypeP(list->constvalue)), ARR_DIMS(DatumGetArrayTypeP(list->constvalue))) > FEW_VALUES);
}

/* -- into the program ------------------------------------------------------------------------ */

static RegisterInfo
packed_info()
{
	RegisterInfo info = NO_INFO;

	info.packed = true;
	return info;
}

static int64_t
pack_datum(Datum value)
{
	const struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	const unsigned char *bytes = reinterpret_cast<const unsigned char *>(VARDATA_ANY(text));
	const uint32_t len = VARSIZE_ANY_EXHDR(text);

	/* bytea that texts called bytea, by a cast without a function, are compared with may have bytes of zero */
	return len > TEXT_PART_BYTES || memchr(bytes, 0, len) != nullptr ? NO_PACKED_TEXT : pack_text(bytes, len);
}

static int
compile_part(Compiler *c, const PartCall &call)
{
	const bool	packed = call.part.kind == TextPartKind::Packed;
	const RegisterInfo info = packed ? packed_info() : NO_INFO;
	AttrNumber	attnum;
	bool		absent;
	const int	cursor = cursor_at(c, call.var, &attnum, &absent);

	if (cursor < 0)
		return -1;
	if (absent)
		return null_value(c, Type::I64, info);
	c->soft_errors = c->soft_errors || (packed && text_part_most(call.part) > TEXT_PART_BYTES);
	return value(c, Opcode::TextPart, Type::I64, attnum, cursor, text_part_operand(call.part), 0, info);
}

int
compile_text_length(Compiler *c, const Expr *expr)
{
	PartCall	call;
	const int	reg = part_call(c->input, expr, &call) ? compile_part(c, call) : -1;

	return reg < 0 ? -1 : convert(c, reg, Type::I32);
}

int
compile_packed_text(Compiler *c, const Expr *expr)
{
	PartCall	call;

	if (is_text_const(expr))
		return int_value(c, Type::I64, pack_datum(((const Const *) expr)->constvalue), packed_info());
	return part_call(c->input, expr, &call) ? compile_part(c, call) : -1;
}

int
compile_packed_key(Compiler *c, const Expr *expr)
{
	const Node *node = reinterpret_cast<const Node *>(expr);

	if (!dictionary_equality(exprType(node), exprTypmod(node), exprCollation(node)))
		return refuse(c, "the collation is not deterministic");
	return compile_packed_text(c, expr);
}

int
compile_packed_in(Compiler *c, const ScalarArrayOpExpr *expr)
{
	const Const *right = static_cast<const Const *>(lsecond(expr->args));
	ArrayType  *array;
	Datum	   *values;
	bool	   *nulls;
	int64_t    *list;
	int			count = 0;
	int			reg;
	int			out;
	int			n;

	if (expr->opfuncid != (expr->useOr ? F_TEXTEQ : F_TEXTNE) || !IsA(right, Const) || right->constisnull)
		return refuse(c, "characters of a text are looked for in lists of constants only");
	if (!dictionary_equality(TEXTOID, -1, expr->inputcollid))
		return refuse(c, "the collation is not deterministic");
	array = DatumGetArrayTypeP(right->constvalue);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &n);
	reg = compile_packed_text(c, static_cast<const Expr *>(linitial(expr->args)));
	if (reg < 0)
		return -1;
	if (n == 0)
		return int_value(c, Type::Bool, expr->useOr ? 0 : 1);
	if (n > PROGRAM_MAX_AUX / 2)
		return refuse(c, "the list has more than %d elements", PROGRAM_MAX_AUX / 2);
	list = static_cast<int64_t *>(palloc(sizeof(int64_t) * n));
	for (int i = 0; i < n; i++)
		list[count++] = nulls[i] ? NO_PACKED_TEXT : pack_datum(values[i]);
	std::sort(list, list + count);
	count = static_cast<int>(std::unique(list, list + count) - list);
	out = value(c, Opcode::In, Type::I64, reg, c->b->add_aux(list, count), count, std::find(nulls, nulls + n, true) != nulls + n ? IN_HAS_NULL : 0);
	return expr->useOr ? out : compile_not(c, out);
}

}  // namespace gpuvm
