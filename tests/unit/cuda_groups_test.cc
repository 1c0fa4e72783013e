/*
 * cuda_groups_test.cc: group tables of the CUDA virtual machine, emulated, against
 * the reference interpreter: every kind of table, small memory, slices.
 *
 * GPUVM_TEST_PROGRAMS changes how many random programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_fixture.h"
#include "groups.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* What a run made of the choices that plan_groups has. */
struct Seen
{
	int			dense = 0, hashed = 0, shared_all = 0, tagged = 0, unshared = 0, overflows = 0, tables_without_keys = 0, refused = 0;
	std::map<std::string, int> reasons;

	void		print() const
	{
		printf("tables: %d dense, %d hashed; %d shared, %d in part, %d not at all; %d overflows, %d without keys, %d refused\n",
			   dense, hashed, shared_all, tagged, unshared, overflows, tables_without_keys, refused);
		for (const auto &[reason, n] : reasons)
			printf("  refused %d times: %s\n", n, reason.c_str());
	}
};

/* Ways to make plans other than the usual ones. */
struct Force
{
	bool		hashed;			/* no dense table */
	uint32_t	entries;		/* of the first hashed table; 0: as planned */
	uint32_t	slots;			/* of a tagged shared table; 0: as planned, UINT32_MAX: none */
};

void
change_plan(const cuda::DeviceProgram &program, const Force &force, int attempt, uint64_t rows, cuda::GroupPlan *plan)
{
	const cuda::GroupLayout &g = program.groups;

	if (force.hashed && plan->kind == cuda::GroupTableKind::Dense && g.nkeys > 0)
	{
		cuda::GroupPlan dense = *plan;

		plan->kind = cuda::GroupTableKind::Hashed;
		plan->key_at = g.row_bytes;
		plan->row_bytes = g.row_bytes + 8u;
		plan->entries = 16384;
		plan->probe_limit = 16384;
		plan->shared_all = false;
		plan->replica_bits = 1;
		plan->shared_slots = 256;
		plan->shared_bytes = cuda::group_area_bytes(g.planes, 256, true);
		(void) dense;
	}
	if (plan->kind == cuda::GroupTableKind::Hashed && force.entries != 0 && attempt == 0)
	{
		plan->entries = force.entries;
		plan->probe_limit = 8;
	}
	if (force.slots != 0 && !(plan->kind == cuda::GroupTableKind::Dense && plan->entries == 1))
	{
		plan->shared_all = false;
		plan->replica_bits = 0;
		plan->shared_slots = force.slots == UINT32_MAX ? 0 : force.slots;
		plan->shared_bytes = cuda::group_area_bytes(g.planes, plan->shared_slots, true);
	}
	plan->listed = static_cast<uint32_t>(std::max<uint64_t>(rows, plan->entries + 1ull));
	plan->table_bytes = 1024 + (plan->entries + 1ull) * plan->row_bytes + 4ull * plan->listed;
}

class GroupRun
{
public:
	GroupRun(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run, const Force &force, Seen *seen)
		: program(program), table(table), rng(run.seed), lowered(std::make_unique<cuda::DeviceProgram>())
	{
		result.refused = lower_for(program, table, params, run, lowered.get());
		if (result.refused)
		{
			seen->refused++;
			seen->reasons[result.refused]++;
			return;
		}
		device_table = copy_table(table, *lowered, &memory);
		gpuvm_emulated::set_seed(run.seed);
		EXPECT_EQ(cuda::create_scratch(&scratch), cudaSuccess);
		if (!cuda::uses_group_table(*lowered))
			whole();
		else
			for (int attempt = 0; !groups(attempt, force, seen); attempt++)
				seen->overflows++;
		cuda::destroy_scratch(&scratch);
	}

	DeviceResult result;

private:
	void		slices(const cuda::GroupTable *groups, uint32_t shared_bytes)
	{
		cuda::LaunchShape shape;
		uint32_t	first = 0;

		EXPECT_EQ(cuda::choose_shape(*lowered, device_table.npads, &shape, shared_bytes), cudaSuccess);
		EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
		while (first < device_table.npads)
		{
			const uint32_t n = 1 + static_cast<uint32_t>(pick_int(rng, static_cast<int>(device_table.npads - first)));
			cuda::SliceArgs args = {};

			args.table = device_table;
			args.first_pad = first;
			args.npads = n;
			args.groups = groups;
			EXPECT_EQ(cuda::launch_slice(*lowered, shape, scratch, args, nullptr), cudaSuccess);
			first += n;
		}
	}

	void		whole()
	{
		std::vector<cuda::LaunchState> state(1);
		Area		area(program, 1);

		slices(nullptr, 0);
		EXPECT_EQ(cudaMemcpy(state.data(), scratch.state, sizeof(cuda::LaunchState), cudaMemcpyDeviceToHost), cudaSuccess);
		result.outcome.errors = cuda::emit_aggregates(*lowered, state[0], table.nrows(), area.memory.get(), area.capacity);
		if (result.outcome.errors == 0)
			read_area(program, area.memory.get(), area.capacity, 1, &result.outcome);
	}

	bool		groups(int attempt, const Force &force, Seen *seen)
	{
		cuda::GroupPlan plan;
		const char *problem = cuda::plan_groups(*lowered, table.nrows(), 1ull << 26, attempt, &plan);

		if (problem)
		{
			result.refused = problem;
			seen->refused++;
			seen->reasons[problem]++;
			return true;
		}
		if (force.hashed || force.entries || force.slots)
			change_plan(*lowered, force, attempt, table.nrows(), &plan);
		seen->dense += plan.kind == cuda::GroupTableKind::Dense;
		seen->hashed += plan.kind == cuda::GroupTableKind::Hashed;
		seen->shared_all += plan.shared_all;
		seen->tagged += !plan.shared_all && plan.shared_slots > 0;
		seen->unshared += plan.shared_slots == 0;
		seen->tables_without_keys += lowered->groups.nkeys == 0;

		char	   *at = memory.get(plan.table_bytes);
		const cuda::GroupTable t = cuda::group_table(*lowered, plan, at);
		cuda::GroupOutcome outcome = {~0ull, ~0u, ~0u};

		memset(at, 0xa5, plan.table_bytes);
		EXPECT_EQ(cuda::reset_groups(*lowered, t, nullptr), cudaSuccess);
		slices(&t, t.shared_bytes);
		EXPECT_EQ(cuda::finish_groups(*lowered, t, scratch.state, &outcome, nullptr), cudaSuccess);
		if (outcome.overflow)
			return false;
		result.outcome.errors = outcome.errors;
		if (outcome.errors != 0)
			return true;
		for (uint64_t from = 0; from < outcome.ngroups;)
		{
			Area		area(program, 192);
			const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(1 + static_cast<uint64_t>(pick_int(rng, 192)), outcome.ngroups - from));

			memset(area.memory.get(), 0xff, 64);
			EXPECT_EQ(cuda::emit_groups(*lowered, t, from, n, area.memory.get(), area.capacity, nullptr), cudaSuccess);
			read_area(program, area.memory.get(), area.capacity, n, &result.outcome);
			from += n;
		}
		return true;
	}

	const Program *program;
	const Table &table;
	Rng			rng;
	std::unique_ptr<cuda::DeviceProgram> lowered;
	DeviceMemory memory;
	cuda::DeviceTable device_table = {};
	cuda::LaunchScratch scratch = {};
};

void
compare(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run, const Force &force,
		const std::string &where, Seen *seen)
{
	const Outcome expected = Interpreter(program, table, params.data()).run();
	const GroupRun got(program, table, params, run, force, seen);
	const Outcome &outcome = got.result.outcome;
	std::vector<std::string> expected_rows = rows_text(program, expected), got_rows = rows_text(program, outcome);

	if (got.result.refused)
		return;
	/* behind an operation that failed values are unspecified, and may fail others */
	ASSERT_EQ(outcome.errors != 0, expected.errors != 0) << outcome.errors << " " << expected.errors << " " << where;
	ASSERT_EQ(outcome.errors & ~expected.errors, 0u) << where;
	if (expected.errors)
		return;
	std::sort(expected_rows.begin(), expected_rows.end());
	std::sort(got_rows.begin(), got_rows.end());
	ASSERT_EQ(got_rows.size(), expected_rows.size()) << where;
	for (size_t i = 0; i < got_rows.size(); i++)
		ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << where;
}

void
run_random(bool tame, const std::vector<Force> &forces, uint64_t programs)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", programs);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	Seen		seen;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		Rng			rng(seed);
		const Table table = random_table(rng, tame);
		Generator	generator(rng, table, tame);
		const SealedProgram sealed = generator.make(true, 3);
		const Program *program = sealed.get();
		const Force &force = forces[seed % forces.size()];
		static const uint16_t rows[] = {4, 8, 16};
		const DeviceRun run = {rows[rng() % 3], (rng() & 1) != 0, rng() % 4};

		compare(program, table, generator.params, run, force,
				"seed " + std::to_string(seed) + " rows a lane " + std::to_string(run.rows_per_lane) + " trust " + std::to_string(run.trust_ranges) +
				"\n" + program_text(program), &seen);
		if (::testing::Test::HasFatalFailure())
			break;
	}
	seen.print();
}

}  // namespace

TEST(CudaGroups, RandomAsPlanned)
{
	run_random(true, {{false, 0, 0}}, 60);
}

TEST(CudaGroups, RandomExtremeValues)
{
	run_random(false, {{false, 0, 0}}, 40);
}

TEST(CudaGroups, RandomOtherTables)
{
	run_random(true, {{true, 0, 0}, {false, 0, 8}, {false, 0, UINT32_MAX}, {true, 16, 0}, {true, 0, UINT32_MAX}}, 60);
}
