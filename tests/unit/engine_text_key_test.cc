/*
 * engine_text_key_test.cc: jobs that group by values of variable length, from the request to the last buffer, by several
 * threads; columns that are none of texts, and a stage that makes keys or reads texts.
 */
#include "engine_tables.h"

#include "tablet/build.h"

namespace {

enum class Key
{
	Text,						/* TextKey */
	Part,						/* TextPart */
	Plain,
};

class TextKeyTest : public TableJobTest
{
public:
	/* SELECT key, count(*) GROUP BY key; of column 0. */
	static ref::SealedProgram group_program(Key kind = Key::Text)
	{
		auto		b = ref::new_builder();
		const int64_t sources[] = {0, RESULT_FROM_AGG};

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		for (int c = 0; c < 2; c++)
			b->emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b->add_name("c"));
		b->emit(Opcode::AggOpen, Type::None, 1, 1, b->add_aux(sources, 2));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		const int	column = b->new_reg(Type::I64);
		const int64_t key = kind != Key::Plain ? b->new_reg(Type::I64) : column;

		b->emit(Opcode::Column, Type::I64, column, 0, 0);
		if (kind == Key::Part)
			b->emit(Opcode::TextPart, Type::I64, static_cast<int>(key), 0, 0, text_part_operand(TextPart{TextPartKind::Packed, TEXT_UTF8, 2, 0}));
		if (kind == Key::Text)
			b->emit(Opcode::TextKey, Type::I64, static_cast<int>(key), column, -1);
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		return ref::seal(*b);
	}

	void prepare(Backend *backend, const ref::SealedProgram &program, uint32_t nbuffers = 4)
	{
		Job		   *job = backend->job;

		backend->prepare(true, nbuffers);
		job->program = copy(program.words);
		job->program_size = program.get()->size;
		job->count_groups = 0;
		job->skip_units = job->skip_bytes = 0;
		job->row_limit = 0;
		give_buffers(program.get(), nbuffers, job);
	}
};

TEST_F(TextKeyTest, Groups)
{
	ref::Rng	rng(1);
	ref::Table	table;
	ref::Column column{Type::I64, {}};
	std::map<std::string, int64_t> expected, got;
	const ref::SealedProgram program = group_program();
	Backend		backend(this);

	column.attlen = -1;
	for (int i = 0; i < 20000; i++)
	{
		const bool	null = rng() % 10 == 0;

		column.rows.push_back(null ? ref::Value{} : ref::from_register(int64_t{0}));
		column.texts.push_back("value " + std::to_string(rng() % 3000));
		expected[null ? "" : column.texts.back()]++;
	}
	table.columns.push_back(std::move(column));
	table.tablet_rows = {5000, 5000, 5000, 5000};
	table.build();
	for (int round = 0; round < 5; round++)
	{
		prepare(&backend, program);

		JobCursor  &cursor = backend.job->cursors[0] = put(table, rng);

		for (uint32_t t = 0; t < cursor.ntablets; t++)
			place_tablet(at<TabletHeader>(at<uint64_t>(cursor.tablets)[t]), at<uint64_t>(cursor.tablets)[t]);

		const ref::Outcome out = run(&backend, program.get());

		ASSERT_EQ(backend.job->errors, 0u);
		ASSERT_EQ(out.rows.size(), expected.size());
		got.clear();
		for (const std::vector<ref::Value> &row : out.rows)
		{
			TextValue	value = {};

			EXPECT_TRUE(row[0].null || text_value(at<unsigned char>(static_cast<uint64_t>(row[0].i)), 100, -1, &value));
			got[std::string(reinterpret_cast<const char *>(value.bytes), value.len)] += row[1].i;
		}
		ASSERT_EQ(got, expected);
	}
}

/* The column is of integers. */
TEST_F(TextKeyTest, NoTexts)
{
	for (Key kind : {Key::Text, Key::Part})
	{
		const ref::SealedProgram program = group_program(kind);
		Backend		backend(this);

		prepare(&backend, program);
		backend.submit();
		EXPECT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), kind == Key::Text ? "keys are made of what is no column of texts" : "texts are read of a column that has none");
	}
}

TEST_F(TextKeyTest, NoStage)
{
	for (Key kind : {Key::Text, Key::Part})
	{
		const ref::SealedProgram program = group_program(Key::Plain), stage = group_program(kind);
		Backend		backend(this);

		prepare(&backend, program);
		backend.job->stages = copy(std::vector<JobStage>{JobStage{copy(stage.words), stage.get()->size, 0}});
		backend.job->nstages = 1;
		backend.submit();
		EXPECT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), kind == Key::Text ? "a stage compares texts" : "a stage has no texts to read");
	}
}

}  // namespace
