/* What a damaged backend may write into a request: gpuvmd refuses it and goes on. */
#include "engine_fixture.h"

namespace {

class HostileRequest : public EngineJobTest
{
public:
	/* The request must be refused, and the session must still work. */
	void expect_refused(void (*damage)(Job *job, HostileRequest *test), const char *what)
	{
		Backend		backend(this);

		backend.prepare();
		damage(backend.job, this);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Failed) << what;
		EXPECT_NE(backend.failure(), "") << what;
		EXPECT_EQ(knobs.units, 0) << what;
	}

	TableVersion *version() { return at<TableVersion>(version_); }
	uint64_t   *tablets() { return at<uint64_t>(version_ + version()->tablets); }
	ColumnSummary *summary() { return at<ColumnSummary>(version_ + version()->columns); }
	TabletHeader *tablet() { return at<TabletHeader>(first_tablet_); }
	uint32_t   *block_rows() { return at<uint32_t>(first_tablet_ + tablet()->block_rows); }
};

#define REFUSED(damage) \
	expect_refused([](Job *job, HostileRequest *test) { (void) job; (void) test; damage; }, #damage)

TEST_F(HostileRequest, Job)
{
	REFUSED(job->magic = 0);
	REFUSED(job->program = 0);
	REFUSED(job->program = UINT64_MAX - 7);
	REFUSED(job->program = ARENA_SIZE - 8);
	REFUSED(job->program += 4);
	REFUSED(job->program_size = 0);
	REFUSED(job->program_size = UINT32_MAX);
	REFUSED(job->program_size -= 8);
	REFUSED(job->nparams = PROGRAM_MAX_PARAMS + 1);
	REFUSED(job->ncursors = 0);
	REFUSED(job->ncursors = 2);
	REFUSED(job->kind = static_cast<JobKind>(3));
	REFUSED(job->device = static_cast<Device>(3));
	REFUSED(job->device = static_cast<Device>(77));
	REFUSED(job->transfer = static_cast<Transfer>(5));
	REFUSED(job->transfer = static_cast<Transfer>(UINT32_MAX));
	REFUSED(job->count_groups = 1);
	REFUSED(job->kind = JobKind::Prepare; job->cursors[0].tablets = UINT64_MAX - 7);
	REFUSED(job->kind = JobKind::Prepare; job->ncursors = 0);
	REFUSED(job->unit_rows = 0);
	REFUSED(job->unit_rows = 1000);
	REFUSED(job->unit_rows = 2 * UNIT_ROWS);
	REFUSED(job->result_capacity = UINT32_MAX);
	REFUSED(job->result_capacity = UNIT_ROWS + 1);
	REFUSED(job->nbuffers = 0);
	REFUSED(job->nbuffers = JOB_MAX_BUFFERS + 1);
	REFUSED(job->buffers[1].offset = ARENA_SIZE - 64);
	REFUSED(job->buffers[1].offset = 0);
	REFUSED(job->buffers[1].offset += 8);
	REFUSED(job->skip_units = ARENA_SIZE - 1; job->skip_bytes = 2);
	REFUSED(job->skip_units = 1);
}

TEST_F(HostileRequest, Program)
{
	REFUSED(test->at<Program>(job->program)->nops = 500);
	REFUSED(const_cast<Op *>(test->at<Program>(job->program)->ops())[3].p2 = 1);
}

TEST_F(HostileRequest, Cursor)
{
	REFUSED(job->cursors[0].columns = 0);
	REFUSED(job->cursors[0].columns = 8);
	REFUSED(job->cursors[0].columns = UINT64_MAX - 7);
	REFUSED(job->cursors[0].columns = ARENA_SIZE - 8);
	REFUSED(job->cursors[0].columns += 4);
	REFUSED(job->cursors[0].ncolumns = 0);
	REFUSED(job->cursors[0].ncolumns = 2);
	REFUSED(job->cursors[0].ncolumns = VERSION_MAX_COLS + 1);
	REFUSED(job->cursors[0].ncolumns = UINT32_MAX);
	REFUSED(job->cursors[0].ncolumns = VERSION_MAX_COLS + 1; job->cursors[0].ntablets = 0);
	REFUSED(job->cursors[0].tablets = 0);
	REFUSED(job->cursors[0].tablets = 8);
	REFUSED(job->cursors[0].tablets = UINT64_MAX - 7);
	REFUSED(job->cursors[0].tablets = ARENA_SIZE);
	REFUSED(job->cursors[0].tablets += 4);
	REFUSED(job->cursors[0].ntablets = UINT32_MAX);
}

#define REFUSED_MASK(...) REFUSED(test->mask(job, std::vector<MaskedRows>{__VA_ARGS__}))

TEST_F(HostileRequest, MaskedRows)
{
	const MaskedRows fine = {1, 0, 5};

	/* of no tablet */
	REFUSED_MASK({NTABLETS, 0, 1});
	REFUSED_MASK({UINT32_MAX, 0, 1});
	REFUSED_MASK({0, 0, 5}, {NTABLETS, 0, 1});
	/* not rows of the tablet */
	REFUSED_MASK({0, 0, TABLET_ROWS + 1});
	REFUSED_MASK({0, TABLET_ROWS, TABLET_ROWS + 1});
	REFUSED_MASK({0, 0, UINT32_MAX});
	REFUSED_MASK({0, UINT32_MAX - 1, UINT32_MAX});
	REFUSED_MASK({NTABLETS - 1, TABLET_ROWS - 1, TABLET_ROWS + 1});
	/* empty, or the wrong way round */
	REFUSED_MASK({0, 0, 0});
	REFUSED_MASK({0, 7, 7});
	REFUSED_MASK({0, TABLET_ROWS, TABLET_ROWS});
	REFUSED_MASK({0, 8, 7});
	REFUSED_MASK({0, UINT32_MAX, 0});
	/* not in order */
	REFUSED_MASK({1, 0, 5}, {0, 10, 15});
	REFUSED_MASK({1, 10, 15}, {1, 0, 5});
	REFUSED_MASK({0, 0, 5}, {1, 0, 5}, {0, 10, 15});
	/* not disjoint */
	REFUSED_MASK({1, 0, 5}, {1, 0, 5});
	REFUSED_MASK({1, 0, 5}, {1, 4, 6});
	REFUSED_MASK({1, 0, TABLET_ROWS}, {1, 5, 6});
	REFUSED_MASK({1, 0, TABLET_ROWS}, {1, TABLET_ROWS - 1, TABLET_ROWS});
	/* where they lie */
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].masked = 0);
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].masked = 8);
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].masked += 2);
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].masked = UINT64_MAX - 3);
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].masked = ARENA_SIZE - 8);
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].nmasked = 2);
	REFUSED(test->mask(job, {{1, 0, 5}}); job->cursors[0].nmasked = UINT32_MAX);
	/* also where no program is run */
	REFUSED(job->kind = JobKind::Prepare; test->mask(job, {{NTABLETS, 0, 1}}));

	/* what the refused ones come close to */
	for (const std::vector<MaskedRows> &ranges : {
			std::vector<MaskedRows>{fine},
			std::vector<MaskedRows>{fine, {1, 5, 6}, {1, 7, TABLET_ROWS}, {NTABLETS - 1, TABLET_ROWS - 1, TABLET_ROWS}},
			std::vector<MaskedRows>{{0, 0, TABLET_ROWS}, {1, 0, TABLET_ROWS}}})
	{
		Backend		backend(this);

		backend.prepare();
		mask(backend.job, ranges);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	}
}

TEST_F(HostileRequest, TabletOutside) { REFUSED(test->tablets()[3] = ARENA_SIZE - 64); }
TEST_F(HostileRequest, TabletMisaligned) { REFUSED(test->tablets()[3] += 8); }
TEST_F(HostileRequest, TabletMagic) { REFUSED(test->tablet()->magic = 1); }
TEST_F(HostileRequest, TabletTooLarge) { REFUSED(test->tablet()->size = ARENA_SIZE); }
TEST_F(HostileRequest, TabletManyRows) { REFUSED(test->tablet()->nrows = TABLET_MAX_ROWS); }
TEST_F(HostileRequest, TabletColumnOutside) { REFUSED(tablet_chunks(test->tablet())->data = ARENA_SIZE); }
TEST_F(HostileRequest, TabletBelowTheSummary) { REFUSED(test->summary()->min++); }
TEST_F(HostileRequest, TabletAboveTheSummary) { REFUSED(test->summary()->max--); }
TEST_F(HostileRequest, TabletWiderThanTheSummary) { REFUSED(test->summary()->max_width = 1); }
TEST_F(HostileRequest, TabletWithNullsTheSummaryLacks) { REFUSED(tablet_chunks(test->tablet())->flags |= CHUNK_HAS_NULLS); }
TEST_F(HostileRequest, TabletWithValuesTheSummaryLacks) { REFUSED(test->summary()->flags |= CHUNK_ALL_NULL); }
TEST_F(HostileRequest, TabletOfOtherType) { REFUSED(tablet_chunks(test->tablet())->type = Type::F64); }

/* A tablet that passed is looked at again when its memory holds another one. */
TEST_F(HostileRequest, TabletThatChangesAfterItPassed)
{
	Backend		backend(this);

	backend.prepare();
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done);
	tablet_chunks(tablet())->data = ARENA_SIZE;
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
}

/* Backends count references in the headers of tablets that gpuvmd knows: that is no reason to look again. */
TEST_F(HostileRequest, ReferencesAreNoPartOfATablet)
{
	Backend		backend(this);

	backend.prepare();
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done);
	block_rows()[0] = 1;		/* would be found */
	tablet()->refs++;
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	tablet()->serial = NTABLETS + 1;
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
}

/* A tablet that was made for one job is not known from another. */
TEST_F(HostileRequest, TabletWithoutASerialIsAlwaysLookedAt)
{
	Backend		backend(this);

	tablet()->serial = 0;
	backend.prepare();
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done);
	block_rows()[0] = 1;
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
}

}  // namespace
