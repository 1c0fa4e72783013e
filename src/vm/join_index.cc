/* join_index.cc: see join_index.h. */
#include "vm/join_index.h"

#include "vm/operands.h"

namespace gpuvm {

namespace {

/* Does it give the same value of the same row in every query, and every row a value? */
bool
is_plain(const Op &op, bool raises)
{
	switch (form_of(op))
	{
		case OpForm::COLUMN: case OpForm::IMM32: case OpForm::IMM64: case OpForm::IMMNULL: case OpForm::COPY: case OpForm::RESULT:
			return true;
		case OpForm::CAST:
			/* integers that are widened */
			return type_is_int(op.type) && type_is_int(static_cast<Type>(op.p5)) &&
				type_natural_width(op.type) >= type_natural_width(static_cast<Type>(op.p5));
		case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI: case OpForm::BINARY: case OpForm::SHIFT: case OpForm::FIELD:
		case OpForm::LOGIC1: case OpForm::LOGIC2: case OpForm::NULLTEST: case OpForm::DISTINCT: case OpForm::PICK: case OpForm::SELECT:
			return !raises || opcode_info[static_cast<int>(op.opcode)].errors == 0;
		default:
			return false;
	}
}

}  // namespace

/* What the key leaves out are names, and the numbers of parameters and maps, which are the whole join's. */
bool
index_key(const JoinLevel &level, std::string *key)
{
	const Program *program = level.build.program();
	const size_t before = key->size();

	append_key(key, static_cast<uint8_t>(level.sought));
	append_key(key, static_cast<uint8_t>(level.range != 0));
	append_key(key, static_cast<uint16_t>(level.key_types.size()));
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		/* with what was moved nothing may raise */
		if (!is_plain(op, !level.build.moved))
		{
			key->resize(before);
			return false;
		}
		append_key(key, op.opcode);
		append_key(key, op.type);
		append_key(key, op.p5);
		append_key(key, op.p1);
		append_key(key, op.p2);
		append_key(key, op.p3);
		append_key(key, op.p4);
	}
	return true;
}

}  // namespace gpuvm
