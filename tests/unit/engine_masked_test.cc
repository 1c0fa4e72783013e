/*
 * Jobs with masked rows and tablets of several makes, from the request to the
 * last buffer, on the real CPU virtual machine: random programs against the
 * reference interpreter, which simply passes over the masked rows.
 */
#include "engine_fixture.h"

#include "vm_random.h"

namespace {

namespace ref = gpuvm::reference;

class MaskedJobTest : public EngineJobTest
{
public:
	void SetUp() override
	{
		EngineJobTest::SetUp();
		context_.make_cpu_job = CpuJob::create;
	}

	/*
	 * The table as a job has it that is made of a table's tablets, of another
	 * table's with other attribute numbers, and of a delta. The arena is empty behind
	 * `mark` before.
	 */
	JobCursor put(const ref::Table &table, ref::Rng &rng)
	{
		const uint32_t ndelta = static_cast<uint32_t>(ref::pick_int(rng, static_cast<int>(table.tablets.size())));
		JobCursor	cursor = {};

		cursor.ncolumns = static_cast<uint32_t>(table.summaries.size());
		cursor.columns = copy(table.summaries);
		cursor.ntablets = static_cast<uint32_t>(table.tablets.size());
		cursor.nmasked = static_cast<uint32_t>(table.masked.size());
		cursor.masked = copy(table.masked);

		std::vector<uint64_t> offsets;

		for (uint32_t t = 0; t < cursor.ntablets; t++)
		{
			TabletHeader *to = at<TabletHeader>(offsets.emplace_back(allocate(table.tablets[t]->size)));

			memcpy(to, table.tablets[t].get(), table.tablets[t]->size);
			for (uint32_t c = 0; c < cursor.ncolumns; c++)
				tablet_chunks(to)[c].attnum = static_cast<int16_t>(c + 1 + t * 7);
			to->serial = ++serial_;
			if (t + ndelta >= cursor.ntablets)
			{
				to->serial = 0;
				to->nblocks = 0;
				at<uint32_t>(offsets[t] + to->block_rows)[0] = to->nrows;
			}
		}
		cursor.tablets = copy(offsets);
		return cursor;
	}

	template <typename T>
	uint64_t copy(const std::vector<T> &from)
	{
		uint64_t	offset = allocate(from.size() * sizeof(T) + 64);

		std::copy(from.begin(), from.end(), at<T>(offset));
		return offset;
	}

	/* The maps, as a backend puts them there. */
	void put(const ref::MapSet &maps, Job *job)
	{
		std::vector<JobMap> to;

		for (const CodeMap &map : maps.maps)
		{
			const size_t n = map.nentries + (map.has_null_entry ? 1 : 0), words = (n + 63) / 64;
			JobMap		m = {map.type, {}, map.nentries, map.has_null_entry, 0, allocate(n * 8 + 64), map.nulls ? allocate(words * 8) : 0};

			memcpy(at<char>(m.values), map.values, n * static_cast<size_t>(type_width(map.type)));
			if (map.nulls)
				memcpy(at<char>(m.nulls), map.nulls, words * 8);
			to.push_back(m);
		}
		job->maps = copy(to);
		job->nmaps = static_cast<uint32_t>(to.size());
	}

	/* All rows to the end; of a row program, in the order of the units. */
	ref::Outcome run(Backend *backend, const Program *program)
	{
		Job		   *job = backend->job;
		std::map<uint32_t, ref::Outcome> units;
		ref::Outcome all;

		backend->submit();
		for (bool last = false; !last;)
		{
			EXPECT_TRUE(backend->wait([=] { return backend->ended() || backend->full_buffer() >= 0; }));
			last = backend->ended();
			for (int b; (b = backend->full_buffer()) >= 0;)
			{
				ResultBuffer &buffer = job->buffers[b];
				ref::Outcome &unit = units[buffer.unit];

				EXPECT_TRUE(unit.rows.empty() && unit.errors == 0) << "a unit came twice";
				unit.errors = buffer.errors;
				if (job->count_groups)
				{
					EXPECT_EQ(buffer.nrows, 1u);
					groups_counted_ = *at<uint64_t>(buffer.offset + count_at(job->result_capacity));
				}
				else
					ref::read_area(program, at<char>(buffer.offset), job->result_capacity, buffer.nrows, &unit);
				buffer.state.store(static_cast<uint32_t>(BufferState::Free));
				if (backend->state() == JobState::Suspended)
					backend->ring();
			}
		}
		EXPECT_EQ(backend->state(), JobState::Done) << backend->failure();
		for (auto &[number, unit] : units)
		{
			all.errors |= unit.errors;
			all.rows.insert(all.rows.end(), unit.rows.begin(), unit.rows.end());
		}
		all.errors |= job->errors;
		return all;
	}

	static uint64_t count_at(uint32_t capacity)
	{
		Type		type = Type::I64;
		ResultColumnLayout layout;

		result_layout(&type, 1, capacity, &layout);
		return layout.values;
	}

	void		run_one(Backend *backend, uint64_t seed, bool grouped);

	uint64_t	serial_ = 1000;
	uint64_t	groups_counted_ = 0;
	int			clean_ = 0, with_rows_ = 0, limited_ = 0;
};

void
MaskedJobTest::run_one(Backend *backend, uint64_t seed, bool grouped)
{
	ref::Rng	rng(seed);
	const uint64_t mark = next_;
	const bool	tame = ref::chance(rng, 80);
	ref::Table	table = ref::random_table(rng, tame);
	const ref::MapSet maps = ref::random_maps(rng, tame);
	ref::Generator generator(rng, table, tame, &maps);
	const ref::SealedProgram sealed = generator.make(grouped);
	const Program *program = sealed.get();
	const std::string what = "seed " + std::to_string(seed) + " grouped " + std::to_string(grouped) + "\n" + ref::program_text(program);
	Job		   *job = backend->job;
	Type		types[PROGRAM_MAX_COLUMNS];

	ref::mask_randomly(rng, &table);
	*job->cursors = put(table, rng);
	put(maps, job);
	job->kind = JobKind::Run;
	job->ncursors = 1;
	job->program = copy(sealed.words);
	job->program_size = program->size;
	job->nparams = static_cast<uint32_t>(generator.params.size());
	std::copy(generator.params.begin(), generator.params.end(), job->params);
	job->unit_rows = CPU_VECTOR_ROWS << ref::pick_int(rng, 3);
	job->result_capacity = UNIT_ROWS;
	job->nbuffers = 1 + static_cast<uint32_t>(ref::pick_int(rng, 4));
	job->count_groups = grouped && ref::chance(rng, 25);
	job->row_limit = !grouped && ref::chance(rng, 25) ? 1 + rng() % 2000 : 0;
	job->skip_units = 0;
	job->skip_bytes = 0;
	program_result_types(program, types);
	for (uint32_t i = 0; i < job->nbuffers; i++)
	{
		job->buffers[i].offset = allocate(std::max(result_layout(types, program->nresults, UNIT_ROWS, nullptr),
												   count_at(UNIT_ROWS) + UNIT_ROWS * sizeof(uint64_t)));
		job->buffers[i].state.store(static_cast<uint32_t>(BufferState::Free));
	}

	/* what units are not run is to the interpreter as if it were masked */
	std::vector<bool> bits = table.masked_bits();
	const uint32_t nmasked = static_cast<uint32_t>(std::count(bits.begin(), bits.end(), true));

	if (!grouped && ref::chance(rng, 30))
	{
		std::vector<uint8_t> skip;
		uint32_t	unit = 0, first = 0;

		for (uint32_t n : table.tablet_rows)
		{
			for (uint32_t row = 0; row < n; row += job->unit_rows, unit++)
			{
				skip.resize(unit / 8 + 1);
				if (!ref::chance(rng, 40))
					continue;
				skip[unit / 8] |= static_cast<uint8_t>(1 << unit % 8);
				std::fill(bits.begin() + first + row, bits.begin() + first + std::min(n, row + job->unit_rows), true);
			}
			first += n;
		}
		job->skip_units = copy(skip);
		job->skip_bytes = static_cast<uint32_t>(skip.size());
		table.mask(bits);
	}

	const ref::Outcome got = run(backend, program);
	const ref::Outcome expected = ref::Interpreter(program, table, generator.params.data(), maps.maps.data()).run();

	next_ = mark;
	ASSERT_EQ(backend->state(), JobState::Done) << what;
	EXPECT_EQ(job->ran_on, Device::Cpu);
	EXPECT_LE(job->rows_in, table.nrows() - nmasked);
	/* a limit may be reached before the row that fails */
	if (job->row_limit == 0)
	{
		ASSERT_EQ(got.errors != 0, expected.errors != 0) << what;
	}
	if (expected.errors != 0)
		return;
	clean_++;

	std::vector<std::string> got_rows = ref::rows_text(program, got), expected_rows = ref::rows_text(program, expected);

	if (job->count_groups)
	{
		EXPECT_EQ(groups_counted_, expected_rows.size()) << what;
		return;
	}
	with_rows_ += !expected_rows.empty();
	std::sort(got_rows.begin(), got_rows.end());
	std::sort(expected_rows.begin(), expected_rows.end());
	if (job->row_limit > 0 && got_rows.size() < expected_rows.size())
	{
		limited_++;
		EXPECT_GE(got_rows.size(), job->row_limit) << what;
		EXPECT_TRUE(std::includes(expected_rows.begin(), expected_rows.end(), got_rows.begin(), got_rows.end())) << what;
		return;
	}
	ASSERT_EQ(got_rows.size(), expected_rows.size()) << what;
	for (size_t i = 0; i < got_rows.size(); i++)
		ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << what;
}

TEST_F(MaskedJobTest, RandomPrograms)
{
	const uint64_t n = ref::setting("GPUVM_TEST_PROGRAMS", 150);
	const uint64_t first = ref::setting("GPUVM_TEST_SEED", 1);
	Backend		backend(this);

	/* a program that leaves rows over its limit is rare: some more for it */
	for (uint64_t seed = first; (seed < first + n || (limited_ == 0 && seed < first + 10 * n)) && !HasFailure(); seed++)
		run_one(&backend, seed, seed % 2 == 1);
	if (n >= 100)
	{
		EXPECT_GT(clean_, static_cast<int>(n / 3));
		EXPECT_GT(with_rows_, static_cast<int>(n / 4));
		EXPECT_GT(limited_, 0);
	}
}

/* Enough rows for helpers: every thread finds the ranges of what it runs. */
TEST_F(MaskedJobTest, SeveralThreads)
{
	std::vector<MaskedRows> ranges;
	std::vector<uint64_t> left;
	ref::Rng	rng(7);

	for (uint32_t t = 0; t < NTABLETS; t++)
		for (uint32_t row = 0, end; row < TABLET_ROWS; row = end)
		{
			end = std::min<uint32_t>(TABLET_ROWS, row + 1 + static_cast<uint32_t>(rng() % 900));
			if (ref::chance(rng, 50))
				ranges.push_back(MaskedRows{t, row, end});
			else
				for (uint64_t i = row; i < end; i++)
					left.push_back(uint64_t(t) * TABLET_ROWS + i);
		}
	for (bool grouped : {false, true})
	{
		Backend		backend(this);

		backend.prepare(grouped, 8);
		mask(backend.job, ranges);
		backend.run();
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->rows_in, left.size());
		if (grouped)
		{
			EXPECT_EQ(backend.values, std::vector<uint64_t>{left.size()});
			continue;
		}
		std::sort(backend.values.begin(), backend.values.end());
		EXPECT_TRUE(backend.values == left) << backend.values.size() << " rows, not " << left.size();
	}
}

}  // namespace
