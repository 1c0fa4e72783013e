/*
 * Jobs with masked rows and tablets of several makes, from the request to the
 * last buffer, on the real CPU virtual machine: random programs against the
 * reference interpreter, which simply passes over the masked rows.
 */
#include "engine_tables.h"
#include "vm_generator.h"

namespace {

class MaskedJobTest : public TableJobTest
{
public:
	void		run_one(Backend *backend, uint64_t seed, bool grouped);

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
	give_buffers(program, 1 + static_cast<uint32_t>(ref::pick_int(rng, 4)), job);
	job->count_groups = grouped && ref::chance(rng, 25);
	job->row_limit = !grouped && ref::chance(rng, 25) ? 1 + rng() % 2000 : 0;
	job->skip_units = 0;
	job->skip_bytes = 0;
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
