/*
 * engine_text_key_test.cc: jobs that group by values of variable length, from the request to the last buffer, by several
 * threads; columns that are none of texts, and a stage that makes keys or reads texts.
 */
#include "engine_tables.h"

#include "tablet/build.h"
#include "text_key_tables.h"

namespace {

using ref::GroupKey;

class TextKeyTest : public TableJobTest
{
public:
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
	std::vector<std::string> texts;
	std::map<std::string, int64_t> expected, got;
	const ref::SealedProgram program = ref::group_program(-1);
	Backend		backend(this);

	for (int i = 0; i < 20000; i++)
		expected[texts.emplace_back(rng() % 10 == 0 ? ref::NULL_TEXT : "value " + std::to_string(rng() % 3000))]++;
	table.columns.push_back(ref::column_of(texts));
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
			got[row[0].null ? ref::NULL_TEXT : std::string(reinterpret_cast<const char *>(value.bytes), value.len)] += row[1].i;
		}
		ASSERT_EQ(got, expected);
	}
}

/* The column is of integers. */
TEST_F(TextKeyTest, NoTexts)
{
	for (GroupKey kind : {GroupKey::Text, GroupKey::Part})
	{
		const ref::SealedProgram program = ref::group_program(-1, kind);
		Backend		backend(this);

		prepare(&backend, program);
		backend.submit();
		EXPECT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), kind == GroupKey::Text ? "keys are made of what is no column of texts" : "texts are read of a column that has none");
	}
}

TEST_F(TextKeyTest, NoStage)
{
	for (GroupKey kind : {GroupKey::Text, GroupKey::Part})
	{
		const ref::SealedProgram program = ref::group_program(-1, GroupKey::Plain), stage = ref::group_program(-1, kind);
		Backend		backend(this);

		prepare(&backend, program);
		backend.job->stages = copy(std::vector<JobStage>{JobStage{copy(stage.words), stage.get()->size, 0}});
		backend.job->nstages = 1;
		backend.submit();
		EXPECT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), kind == GroupKey::Text ? "a stage compares texts" : "a stage has no texts to read");
	}
}

}  // namespace
