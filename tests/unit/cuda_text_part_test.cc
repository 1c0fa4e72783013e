/*
 * cuda_text_part_test.cc: parts of texts are taken alike by every way to the device, for tablets that are kept and for a job's own.
 */
#include "cuda_runtime_fixture.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr Transfer WAYS[] = {Transfer::Auto, Transfer::Serial, Transfer::Stream, Transfer::Mapped, Transfer::Cached};

Table
texts_table(std::vector<uint32_t> tablet_rows, int most, int null_percent)
{
	Table		table;
	Rng			rng(static_cast<uint64_t>(most) * 101 + static_cast<uint64_t>(null_percent));
	Column		texts{Type::I64, {}};

	for (uint32_t n : tablet_rows)
		for (uint32_t i = 0; i < n; i++)
		{
			texts.rows.push_back(chance(rng, null_percent) ? Value{} : from_register(int64_t{0}));
			texts.texts.push_back(random_text(rng, most));
		}
	table.columns.push_back(std::move(texts));
	table.tablet_rows = std::move(tablet_rows);
	table.build();
	return table;
}

/* SELECT rowid, a part WHERE it is not `without`; or count(*), sum(length) by the part. */
SealedProgram
part_program(int64_t operand, int64_t without, bool grouped)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG, RESULT_FROM_AGG | 1};
	const Type	types[] = {Type::I64, Type::I64, Type::I128};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < (grouped ? 3 : 2); c++)
		b->emit(Opcode::ResultColumn, grouped ? types[c] : c == 0 ? Type::RowId : Type::I64, c, 0, 0, b->add_name("c"));
	if (grouped)
		b->emit(Opcode::AggOpen, Type::None, 1, 2, b->add_aux(sources, 3));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	part = b->new_reg(Type::I64), other = b->new_reg(Type::I64), length = b->new_reg(Type::I64);

	b->emit(Opcode::TextPart, Type::I64, part, 0, 0, operand);
	b->emit(Opcode::Int64, Type::I64, other, 0, 0, without);
	b->emit(Opcode::Eq, Type::I64, part, other, b->nops + 1, VERDICT_DIES, 0);
	if (grouped)
	{
		const int64_t key = part;

		b->emit(Opcode::TextPart, Type::I64, length, 0, 0, text_part_operand(TextPart{TextPartKind::Characters, TEXT_UTF8, 0, 0}));
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, Type::I64, 1, length, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	}
	else
	{
		const int	first = b->new_reg(Type::RowId);

		b->emit(Opcode::Rowid, Type::RowId, first, 0, 0);
		b->emit(Opcode::Copy, Type::I64, b->new_reg(Type::I64), part, 0);
		b->emit(Opcode::Result, Type::None, first, 2, 0);
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

int64_t
characters(uint32_t skip, uint8_t count, uint8_t flags = TEXT_UTF8)
{
	return text_part_operand(TextPart{TextPartKind::Packed, flags, count, skip});
}

}  // namespace

class CudaTextPart : public CudaRuntime
{
};

/* Three characters may be too many for an integer: then all of them say so. */
TEST_F(CudaTextPart, EveryWay)
{
	const int64_t operands[] = {characters(0, 2), characters(1, 1), characters(1, 8, TEXT_TRIM_BLANKS), characters(0, 3),
		text_part_operand(TextPart{TextPartKind::Bytes, 0, 0, 0})};

	for (const Table &table : {texts_table({9000, 300, 4096}, 6, 20), texts_table({5000}, 0, 0), texts_table({300, 4200}, 90, 60), texts_table({70}, 3, 100)})
		for (uint32_t deltas : {0u, 1u})
		{
			arena.next = align_up(sizeof(ArenaHeader), 4096);
			library.reset();
			open();

			const StoredTable stored = arena.store(table, deltas);

			for (Transfer transfer : WAYS)
				for (int64_t operand : operands)
				{
					Ways		ways;

					ways.transfer = transfer;
					expect_rows(part_program(operand, 'a', false).get(), stored, {}, ways);
					expect_groups(part_program(operand, 'b', true).get(), stored, {}, ways);
					ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " deltas " << deltas;
				}
		}
}
