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

	/*
	 * Gives the job a program that looks something up, and its maps: one of 100 bytes with an entry for nulls, and one of
	 * 10 int2 that nobody reads.
	 */
	JobMap	   *add_maps(Job *job)
	{
		std::unique_ptr<ProgramBuilder> b(new ProgramBuilder);
		const uint64_t offset = allocate(2 * sizeof(JobMap)), bytes = allocate(101), nulls = allocate(16);
		JobMap	   *maps = at<JobMap>(offset);

		b->init();
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("v"));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		for (Type t : {Type::I32, Type::Bool, Type::I64})
			b->new_reg(t);
		b->emit(Opcode::Integer, Type::I32, 0, 5, 0);
		b->emit(Opcode::Lookup, Type::Bool, 1, 0, 0, 0, LOOKUP_NULL);
		b->emit(Opcode::Column, Type::I64, 2, 0, 0);
		b->emit(Opcode::Result, Type::None, 2, 1, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		job->program = allocate(b->sealed_size());
		job->program_size = b->sealed_size();
		b->seal(at<Program>(job->program));
		memset(at<char>(bytes), 1, 101);
		memset(at<char>(nulls), 0, 16);
		maps[0] = JobMap{Type::Bool, {}, 100, 1, 0, bytes, nulls};
		maps[1] = JobMap{Type::I16, {}, 10, 0, 0, allocate(40), 0};
		memset(at<char>(maps[1].values), 0, 40);
		job->maps = offset;
		job->nmaps = 2;
		return maps;
	}

	/* Sorts what the job gives, and brings maps. */
	void add_order(Job *job)
	{
		add_maps(job);
		job->norder = 2;
		job->order[0] = JobOrderKey{0, ORDER_DESC | ORDER_NULLS_FIRST, UINT32_MAX, 0};
		job->order[1] = JobOrderKey{0, 0, 0, 0};
	}

	/* The first key is of texts. */
	void add_text_order(Job *job)
	{
		job->order[0] = JobOrderKey{0, ORDER_TEXT, 0, 0};
		job->ntext_orders = 1;
		job->text_orders[0] = TextOrderSpec{};
		job->text_orders[0].attlen = -1;
	}

	/* Gives the job a program that matches texts, and its two patterns. There are no tablets, as theirs have no texts. */
	uint64_t   *add_patterns(Job *job)
	{
		std::unique_ptr<ProgramBuilder> b(new ProgramBuilder);
		const uint64_t offset = allocate(2 * sizeof(uint64_t));
		uint64_t   *patterns = at<uint64_t>(offset);

		b->init();
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::Bool, 0, 0, 0, b->add_name("v"));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		b->emit(Opcode::TextMatch, Type::Bool, b->new_reg(Type::Bool), 0, 0, 1);
		b->emit(Opcode::Result, Type::None, 0, 1, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		job->program = allocate(b->sealed_size());
		job->program_size = b->sealed_size();
		b->seal(at<Program>(job->program));
		for (int i = 0; i < 2; i++)
		{
			patterns[i] = allocate(TEXT_PATTERN_MAX);
			EXPECT_TRUE(text_pattern_like(at<TextPattern>(patterns[i]), "%a_b%c", 6, -1, true));
		}
		job->patterns = offset;
		job->npatterns = 2;
		job->cursors[0].ntablets = 0;
		return patterns;
	}
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
	REFUSED(job->kind = static_cast<JobKind>(4));
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

#define REFUSED_MAP(damage) REFUSED(JobMap *maps = test->add_maps(job); (void) maps; damage)

TEST_F(HostileRequest, Maps)
{
	REFUSED_MAP(job->nmaps = 0);
	REFUSED_MAP(job->nmaps = PROGRAM_MAX_MAPS + 1);
	REFUSED_MAP(job->nmaps = UINT32_MAX);
	REFUSED_MAP(job->maps = 0);
	REFUSED_MAP(job->maps += 4);
	REFUSED_MAP(job->maps = ARENA_SIZE - 32);
	REFUSED_MAP(job->maps = UINT64_MAX - 7);
	/* not what the program looks up */
	REFUSED_MAP(maps[0].type = Type::I32; maps[0].nentries = 10);
	REFUSED_MAP(maps[0].has_null_entry = 0);
	/* what no map is */
	REFUSED_MAP(maps[0].type = Type::None);
	REFUSED_MAP(maps[1].type = Type::I128);
	REFUSED_MAP(maps[1].type = Type::RowId);
	REFUSED_MAP(maps[1].type = static_cast<Type>(200));
	REFUSED_MAP(maps[0].has_null_entry = 2);
	REFUSED_MAP(maps[0].nentries = MAP_MAX_ENTRIES + 1);
	REFUSED_MAP(maps[0].nentries = UINT32_MAX);
	/* where it lies */
	REFUSED_MAP(maps[0].values = 0);
	REFUSED_MAP(maps[0].values = 8);
	REFUSED_MAP(maps[0].values = ARENA_SIZE - 100);
	REFUSED_MAP(maps[0].values = UINT64_MAX - 7);
	REFUSED_MAP(maps[1].values += 2);
	REFUSED_MAP(maps[1].values = ARENA_SIZE - 36);
	REFUSED_MAP(maps[0].nulls = 8);
	REFUSED_MAP(maps[0].nulls += 4);
	REFUSED_MAP(maps[0].nulls = ARENA_SIZE - 8);
	/* values that registers cannot hold, the nulls' own included */
	REFUSED_MAP(test->at<char>(maps[0].values)[3] = 2);
	REFUSED_MAP(test->at<char>(maps[0].values)[100] = 2);
	REFUSED_MAP(test->at<int32_t>(maps[1].values)[9] = 40000);

	/* what the refused ones come close to */
	Backend		backend(this);

	backend.prepare();
	add_maps(backend.job);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	add_maps(backend.job)[1].nentries = 0;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
}

#define REFUSED_PATTERN(damage) \
	REFUSED(uint64_t *patterns = test->add_patterns(job); TextPattern *pattern = test->at<TextPattern>(patterns[1]); \
			TextPiece *pieces = const_cast<TextPiece *>(pattern->pieces()); (void) pattern; (void) pieces; damage)

TEST_F(HostileRequest, Patterns)
{
	/* a column that has no texts */
	REFUSED(uint32_t n = job->cursors[0].ntablets; test->add_patterns(job); job->cursors[0].ntablets = n);
	REFUSED_PATTERN(job->npatterns = 0);
	REFUSED_PATTERN(job->npatterns = 1);
	REFUSED_PATTERN(job->npatterns = PROGRAM_MAX_PATTERNS + 1);
	REFUSED_PATTERN(job->npatterns = UINT32_MAX);
	REFUSED_PATTERN(job->patterns = 0);
	REFUSED_PATTERN(job->patterns += 4);
	REFUSED_PATTERN(job->patterns = ARENA_SIZE - 8);
	REFUSED_PATTERN(job->patterns = UINT64_MAX - 7);
	/* where it lies */
	REFUSED_PATTERN(patterns[1] = 0);
	REFUSED_PATTERN(patterns[0] += 2);
	REFUSED_PATTERN(patterns[0] = ARENA_SIZE - 16);
	REFUSED_PATTERN(patterns[0] = UINT64_MAX - 7);
	/* what no pattern is */
	REFUSED_PATTERN(pattern->size = 0);
	REFUSED_PATTERN(pattern->size += 8);
	REFUSED_PATTERN(pattern->size = UINT32_MAX);
	REFUSED_PATTERN(pattern->size = TEXT_PATTERN_MAX + 1);
	REFUSED_PATTERN(pattern->kind = static_cast<TextMatchKind>(6));
	REFUSED_PATTERN(pattern->kind = TextMatchKind::Order);
	REFUSED_PATTERN(pattern->kind = TextMatchKind::Automaton);
	REFUSED_PATTERN(pattern->kind = TextMatchKind::Equal);
	REFUSED_PATTERN(pattern->flags = 8);
	REFUSED_PATTERN(pattern->outcomes = 8);
	REFUSED_PATTERN(pattern->collation = 1);
	REFUSED_PATTERN(pattern->attlen = -2);
	REFUSED_PATTERN(pattern->npieces++);
	REFUSED_PATTERN(pattern->npieces--);
	REFUSED_PATTERN(pattern->npieces = 0);
	REFUSED_PATTERN(pattern->nbytes++);
	REFUSED_PATTERN(pattern->search = pattern->npieces);
	REFUSED_PATTERN(pieces[0].first = 3);
	REFUSED_PATTERN(pieces[0].len = 4);
	REFUSED_PATTERN(pieces[1].len = 0);
	REFUSED_PATTERN(pieces[pattern->npieces - 1].len = 1);
	REFUSED_PATTERN(pieces[0].any = 2);

	/* a collation that the job does not bring */
	REFUSED_PATTERN(EXPECT_TRUE(text_pattern_order(pattern, "x", 1, -1, 0, TEXT_LESS, 1)));
	/* an order of values that there is not, or where none is */
	REFUSED_PATTERN(EXPECT_TRUE(text_pattern_order(pattern, "x", 1, -1, 5 << TEXT_ORDER_SHIFT, TEXT_LESS, 0)));
	REFUSED_PATTERN(pattern->flags |= text_order_flags(ValueOrder::Timetz));

	/* what the refused ones come close to */
	Backend		backend(this);

	backend.prepare();
	add_patterns(backend.job);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
}

#define REFUSED_ORDER(damage) \
	REFUSED(test->add_order(job); damage)

TEST_F(HostileRequest, Order)
{
	REFUSED_ORDER(job->norder = JOB_MAX_ORDER + 1);
	REFUSED_ORDER(job->norder = UINT32_MAX);
	REFUSED_ORDER(job->order[1].column = 1);
	REFUSED_ORDER(job->order[0].column = UINT32_MAX);
	REFUSED_ORDER(job->order[1].flags = 16);
	REFUSED_ORDER(job->order[0].flags = UINT32_MAX);
	/* an int8 has no ranks, and other maps are none */
	REFUSED_ORDER(job->order[0].flags = ORDER_RANKS);
	REFUSED_ORDER(job->order[0].flags = ORDER_RANKS; job->order[0].map = 2);
	REFUSED_ORDER(job->order[0].flags = ORDER_RANKS; job->order[0].map = UINT32_MAX);
	/* texts by an order that the job has, and by nothing else */
	REFUSED_ORDER(job->order[0].flags = ORDER_TEXT);
	REFUSED_ORDER(test->add_text_order(job); job->order[0].map = 1);
	REFUSED_ORDER(test->add_text_order(job); job->order[0].flags |= ORDER_RANKS);
	REFUSED_ORDER(test->add_text_order(job); job->ntext_orders = PROGRAM_MAX_TEXT_ORDERS + 1);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].kind = static_cast<TextOrderKind>(3));
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].flags = 8);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].flags = 5 << TEXT_ORDER_SHIFT);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].flags = 256);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].attlen = -2);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].attlen = 0);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].attlen = INT16_MAX);
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].kind = TextOrderKind::Libc; memset(job->text_orders[0].locale, 'x', sizeof(job->text_orders[0].locale)));
	REFUSED_ORDER(test->add_text_order(job); job->text_orders[0].kind = TextOrderKind::Icu);
	REFUSED_ORDER(job->count_groups = 1);
	REFUSED_ORDER(job->skip_units = test->allocate(8); job->skip_bytes = 1);

	/* what the refused ones come close to */
	Backend		backend(this);

	backend.prepare();
	add_order(backend.job);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
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
