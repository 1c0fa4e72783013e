/*
 * cuda_text_match_test.cc: texts are matched alike by every way to the device, for tablets that are kept and for a job's own;
 * images are kept beside the codes and are not copied again.
 */
#include "cuda_runtime_fixture.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr Transfer WAYS[] = {Transfer::Auto, Transfer::Serial, Transfer::Stream, Transfer::Mapped, Transfer::Cached};

/* A column of texts and one of numbers. */
Table
texts_table(std::vector<uint32_t> tablet_rows, int most, int null_percent)
{
	Table		table;
	Rng			rng(static_cast<uint64_t>(most) * 101 + static_cast<uint64_t>(null_percent));
	Column		texts{Type::I64, {}}, numbers{Type::I32, {}};

	for (uint32_t n : tablet_rows)
		for (uint32_t i = 0; i < n; i++)
		{
			texts.rows.push_back(chance(rng, null_percent) ? Value{} : from_register(int64_t{0}));
			texts.texts.push_back(random_text(rng, most) + (chance(rng, 20) ? "special requests" : ""));
			numbers.rows.push_back(from_register(static_cast<int32_t>(i % 7)));
		}
	table.columns.push_back(std::move(texts));
	table.columns.push_back(std::move(numbers));
	table.tablet_rows = std::move(tablet_rows);
	table.build();
	return table;
}

/* SELECT rowid, number WHERE the text matches pattern 0 and not pattern 1; or count(*), count(text) of these, by number. */
SealedProgram
texts_program(bool grouped)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG, RESULT_FROM_AGG | 1};
	const Type	types[] = {Type::I32, Type::I64, Type::I64};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < (grouped ? 3 : 2); c++)
		b->emit(Opcode::ResultColumn, grouped ? types[c] : c == 0 ? Type::RowId : Type::I32, c, 0, 0, b->add_name("c"));
	if (grouped)
		b->emit(Opcode::AggOpen, Type::None, 1, 2, b->add_aux(sources, 3));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	is = b->new_reg(Type::Bool), isnt = b->new_reg(Type::Bool), number = b->new_reg(Type::I32), text = b->new_reg(Type::I64);

	b->emit(Opcode::TextMatch, Type::Bool, is, 0, 0, 0);
	b->emit(Opcode::IfNot, Type::Bool, is, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::TextMatch, Type::Bool, isnt, 0, 0, 1);
	b->emit(Opcode::If, Type::Bool, isnt, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Column, Type::I32, number, 1, 0);
	if (grouped)
	{
		const int64_t key = number;

		b->emit(Opcode::Column, Type::I64, text, 0, 0);
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, Type::I64, 1, text, -1, 0, static_cast<uint8_t>(AggFn::Count));
	}
	else
	{
		const int	first = b->new_reg(Type::RowId);

		b->emit(Opcode::Rowid, Type::RowId, first, 0, 0);
		b->emit(Opcode::Copy, Type::I32, b->new_reg(Type::I32), number, 0);
		b->emit(Opcode::Result, Type::None, first, 2, 0);
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

PatternSet
two_patterns(const std::string &is, const std::string &isnt)
{
	PatternSet	set;

	EXPECT_EQ(set.add({TextMatchKind::Like, is}), 0);
	EXPECT_EQ(set.add({TextMatchKind::Like, isnt}), 1);
	return set;
}

PatternSet
two_automata(uint64_t seed)
{
	Rng			rng(seed);
	PatternSet	set;

	for (int i = 0; i < 2; i++)
	{
		PatternSource source = {TextMatchKind::Automaton, ""};

		source.automaton = random_automaton(rng, true);
		EXPECT_EQ(set.add(source), i);
	}
	return set;
}

}  // namespace

class CudaTextMatch : public CudaRuntime
{
};

TEST_F(CudaTextMatch, EveryWay)
{
	const PatternSet sets[] = {two_patterns("%special%requests%", "%a_c%"), two_patterns("%", "b%"), two_patterns("_%", "%s"), two_patterns("%b%", ""),
		two_automata(1), two_automata(6)};

	for (const Table &table : {texts_table({9000, 300, 4096}, 6, 20), texts_table({5000}, 0, 0), texts_table({300, 4200}, 90, 60), texts_table({70}, 3, 100)})
		for (uint32_t deltas : {0u, 1u})
		{
			arena.next = align_up(sizeof(ArenaHeader), 4096);
			library.reset();
			open();

			const StoredTable stored = arena.store(table, deltas);

			for (Transfer transfer : WAYS)
				for (const PatternSet &set : sets)
				{
					Ways		ways;

					ways.transfer = transfer;
					ways.patterns = &set;
					expect_rows(texts_program(false).get(), stored, {}, ways);
					expect_groups(texts_program(true).get(), stored, {}, ways);
					ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " deltas " << deltas;
				}
		}
}

/* The second job finds all on the device: nothing of the columns goes over the bus. */
TEST_F(CudaTextMatch, ImagesAreKept)
{
	const Table table = texts_table({20000, 20000}, 12, 10);
	const StoredTable stored = arena.store(table, 0);
	const PatternSet set = two_patterns("%special%", "%requestsx%");
	uint64_t	images = 0;
	Ways		ways;

	for (const auto &tablet : table.tablets)
		images += variable_bytes(tablet_chunks(tablet.get())[0]);
	open();
	ways.transfer = Transfer::Cached;
	ways.patterns = &set;

	const Ran	first = run(texts_program(true).get(), stored, {}, ways), second = run(texts_program(true).get(), stored, {}, ways);

	ASSERT_EQ(first.outcome, DeviceOutcome::Done) << first.reason;
	ASSERT_EQ(second.outcome, DeviceOutcome::Done) << second.reason;
	EXPECT_EQ(first.sorted(), second.sorted());
	EXPECT_GT(first.figures.bytes_moved, images);
	EXPECT_LT(second.figures.bytes_moved, 65536u);
	EXPECT_GE(second.figures.bytes_read, images);
}
