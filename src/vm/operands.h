/* operands.h: which registers an operation reads, for whatever walks over programs: by the forms of program.h. */
#ifndef GPUVM_VM_OPERANDS_H
#define GPUVM_VM_OPERANDS_H

#include "vm/program.h"

namespace gpuvm {

inline OpForm
form_of(Opcode opcode)
{
	return opcode_info[static_cast<int>(opcode)].form;
}

inline OpForm
form_of(const Op &op)
{
	return form_of(op.opcode);
}

/* Calls f(int32_t &) or f(int64_t &) for every register that an operation reads where its own fields say it. */
template <typename F>
void
each_operand(Op &op, F f)
{
	switch (form_of(op))
	{
		case OpForm::CAST: case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI: case OpForm::FIELD:
		case OpForm::LOGIC1: case OpForm::NULLTEST: case OpForm::TEXTKEY: case OpForm::IN: case OpForm::COPY:
			f(op.p2);
			break;
		case OpForm::BINARY: case OpForm::SHIFT: case OpForm::LOGIC2: case OpForm::DISTINCT: case OpForm::PICK:
		case OpForm::TEXTCOMPARE:
			f(op.p2);
			f(op.p3);
			break;
		case OpForm::LOOKUP:
		case OpForm::ZONE:
			f(op.p3);
			break;
		case OpForm::SELECT:
			f(op.p2);
			f(op.p3);
			f(op.p4);
			break;
		case OpForm::COMPARE:
			f(op.p1);
			f(op.p2);
			break;
		case OpForm::BRANCH:
			f(op.p1);
			break;
		case OpForm::AGGSTEP:
			if (op.p2 >= 0)
				f(op.p2);
			if (op.p3 >= 0)
				f(op.p3);
			if (agg_is_wide(static_cast<AggFn>(op.p5)))
				f(op.p4);
			break;
		default:
			break;
	}
}

/* All registers that it reads. */
template <typename F>
void
each_read(const Program *program, const Op &op, F f)
{
	Op			copy = op;

	each_operand(copy, [&](auto &r) { f(static_cast<int>(r)); });
	switch (form_of(op))
	{
		case OpForm::GROUP:
			for (int i = 0; i < op.p1; i++)
				f(static_cast<int>(program->aux()[op.p2 + i]));
			break;
		case OpForm::SEEK:
		case OpForm::HASHINSERT:
			for (int i = 0; i < op.p2; i++)
				f(static_cast<int>(program->aux()[op.p3 + i]));
			break;
		case OpForm::SEEKRANGE:
			for (int i = 0; i < 2; i++)
				if (program->aux()[op.p3 + i] >= 0)
					f(static_cast<int>(program->aux()[op.p3 + i]));
			break;
		case OpForm::RESULT:
			for (int i = 0; i < op.p2; i++)
				f(op.p1 + i);
			break;
		default:
			break;
	}
}

}  // namespace gpuvm

#endif
