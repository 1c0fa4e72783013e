/*
 * cuda_groups_test.cc: group tables of the CUDA virtual machine, emulated, against
 * the reference interpreter: every kind of table, small memory, slices.
 *
 * GPUVM_TEST_PROGRAMS changes how many random programs, GPUVM_TEST_SEED where to start.
 */
#include <numeric>

#include "cuda_fixture.h"
#include "groups.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* What a run made of the choices that plan_groups has. */
struct Seen
{
	int			dense = 0, hashed = 0, bits = 0, shared_all = 0, tagged = 0, unshared = 0, overflows = 0, tables_without_keys = 0, refused = 0, partitioned = 0;
	int			compared = 0, masked = 0, programs = 0;
	uint64_t	records = 0;	/* of the last slices */
	std::map<std::string, int> reasons;

	void		print() const
	{
		printf("tables: %d dense, %d hashed, %d of bits; %d shared, %d in part, %d not at all; %d overflows, %d without keys, %d refused; %d by partitions, %llu records\n",
			   dense, hashed, bits, shared_all, tagged, unshared, overflows, tables_without_keys, refused, partitioned, static_cast<unsigned long long>(records));
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
	int			partition_bits = 0;	/* 0: no partitions */
	uint32_t	room = 0;		/* records of each region, if the launch has all blocks; 0: as planned */
	bool		bits = false;	/* of programs without aggregates, whatever the number of keys */
};

void
change_plan(const cuda::DeviceProgram &program, const Force &force, int attempt, uint64_t rows, cuda::GroupPlan *plan)
{
	const cuda::GroupLayout &g = program.groups;

	if (force.bits)
	{
		ASSERT_EQ(g.cells[0].kind, cuda::CellKind::Mark);
		*plan = cuda::GroupPlan{};
		plan->kind = cuda::GroupTableKind::Bits;
		plan->entries = static_cast<uint32_t>(g.radix);
		plan->shared_bytes = cuda::group_area_bytes(g.planes, 0, true);
		plan->listed = static_cast<uint32_t>(std::min(rows, g.radix));
		plan->table_bytes = 1024 + g.radix / 8 + 4ull * plan->listed;
		return;
	}
	if (plan->kind == cuda::GroupTableKind::Bits && !force.hashed)
		return;
	if (force.hashed && plan->kind != cuda::GroupTableKind::Hashed && g.nkeys > 0)
	{
		plan->kind = cuda::GroupTableKind::Hashed;
		plan->key_at = g.row_bytes;
		plan->row_bytes = g.row_bytes + 8u;
		plan->entries = 16384;
		plan->probe_limit = 16384;
		plan->shared_all = false;
		plan->replica_bits = 1;
		plan->shared_slots = 256;
		plan->shared_bytes = cuda::group_area_bytes(g.planes, 256, true);
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
	if (force.partition_bits != 0 && partition_groups(program, force.partition_bits, rows, plan) && force.room != 0)
		plan->buffer_records = force.room * (static_cast<uint64_t>(plan->most_writers) << plan->partition_bits);
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
		EXPECT_EQ(cuda::send_long_lists(*lowered, scratch, nullptr), cudaSuccess);
		send_maps(program, run.code_maps(), &memory, &scratch);
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

	void		stopped_slice(const cuda::GroupTable &groups)
	{
		const uint32_t abort = 1;
		cuda::LaunchShape shape;
		cuda::SliceArgs args = {};

		args.table = device_table;
		args.npads = device_table.npads;
		args.abort = &abort;
		args.groups = &groups;
		EXPECT_EQ(cuda::choose_shape(*lowered, device_table.npads, &shape, groups.shared_bytes), cudaSuccess);
		EXPECT_EQ(cuda::reset_groups(*lowered, groups, nullptr), cudaSuccess);
		EXPECT_EQ(cuda::reset_state(scratch, nullptr), cudaSuccess);
		EXPECT_EQ(cuda::launch_slice(*lowered, shape, scratch, args, nullptr), cudaSuccess);
		EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
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

	/* Groups that are only counted. */
	void		expect_as_many(cuda::GroupTable t, uint64_t listed)
	{
		cuda::GroupOutcome counted = {~0ull, ~0u, ~0u};

		t.list = nullptr;
		t.header->ngroups = t.header->blocks_done = 0;
		EXPECT_EQ(cuda::finish_groups(*lowered, t, scratch.state, &counted, nullptr), cudaSuccess);
		EXPECT_EQ(counted.ngroups, listed);
	}

	bool		groups(int attempt, const Force &force, Seen *seen)
	{
		cuda::GroupPlan plan;
		/* A first table that was made smaller is not one that the plan knows of. */
		const char *problem = cuda::plan_groups(*lowered, table.nrows(), 1ull << 26, force.entries ? std::max(0, attempt - 1) : attempt, &plan);

		if (problem)
		{
			result.refused = problem;
			seen->refused++;
			seen->reasons[problem]++;
			return true;
		}
		if (force.hashed || force.entries || force.slots || force.partition_bits || force.bits)
			change_plan(*lowered, force, attempt, table.nrows(), &plan);
		seen->dense += plan.kind == cuda::GroupTableKind::Dense;
		seen->hashed += plan.kind == cuda::GroupTableKind::Hashed;
		seen->bits += plan.kind == cuda::GroupTableKind::Bits;
		seen->shared_all += plan.shared_all;
		seen->tagged += !plan.shared_all && plan.shared_slots > 0;
		seen->unshared += plan.shared_slots == 0;
		seen->tables_without_keys += lowered->groups.nkeys == 0;
		seen->partitioned += plan.partition_bits != 0;

		char	   *at = memory.get(plan.table_bytes);
		const cuda::GroupTable t = cuda::group_table(*lowered, plan, at);
		cuda::GroupOutcome outcome = {~0ull, ~0u, ~0u};

		memset(at, 0xa5, plan.table_bytes);
		if (plan.partition_bits != 0)
		{
			/* A job that is to stop takes no unit, and the next one finds nothing of it. */
			stopped_slice(t);
			memset(t.counts, 0, 4ull * plan.most_writers << plan.partition_bits);
		}
		EXPECT_EQ(cuda::reset_groups(*lowered, t, nullptr), cudaSuccess);
		slices(&t, t.shared_bytes);
		if (plan.partition_bits != 0)
			seen->records += std::accumulate(t.counts, t.counts + (static_cast<uint64_t>(plan.most_writers) << plan.partition_bits), uint64_t{0});
		EXPECT_EQ(cuda::finish_groups(*lowered, t, scratch.state, &outcome, nullptr), cudaSuccess);
		if (outcome.overflow)
			return false;
		if (outcome.errors == 0)
			expect_as_many(t, outcome.ngroups);
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
compare_as_masked(const Program *program, const Table &table, const std::vector<ParamValue> &params, const DeviceRun &run, const Force &force,
				  const std::string &where, Seen *seen)
{
	const Outcome expected = Interpreter(program, table, params.data(), run.code_maps()).run();
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

/* All rows, and every fourth time some of them. */
void
compare(const Program *program, Table *table, const std::vector<ParamValue> &params, const DeviceRun &run, const Force &force,
		const std::string &where, Seen *seen)
{
	Rng			rng(run.seed * 1000 + static_cast<uint64_t>(seen->compared));

	compare_as_masked(program, *table, params, run, force, where, seen);
	if (seen->compared++ % 4 != 0 || ::testing::Test::HasFatalFailure())
		return;
	mask_randomly(rng, table);
	seen->masked += table->masked.empty() ? 0 : 1;
	compare_as_masked(program, *table, params, run, force, where + ", masked", seen);
	table->masked.clear();
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
		Table		table = random_table(rng, tame);
		const MapSet maps = random_maps(rng, tame);
		Generator	generator(rng, table, tame, &maps);
		const SealedProgram sealed = generator.make(true, 3);
		const Program *program = sealed.get();
		const Force &force = forces[seed % forces.size()];
		static const uint16_t rows[] = {4, 8, 16};
		const DeviceRun run = {rows[rng() % 3], (rng() & 1) != 0, rng() % 4, 0, &maps};

		compare(program, &table, generator.params, run, force,
				"seed " + std::to_string(seed) + " rows a lane " + std::to_string(run.rows_per_lane) + " trust " + std::to_string(run.trust_ranges) +
				"\n" + program_text(program), &seen);
		if (::testing::Test::HasFatalFailure())
			break;
	}
	seen.print();
	EXPECT_TRUE(n < 20 || seen.masked > static_cast<int>(n) / 6) << seen.masked;
}

struct Agg
{
	AggFn		fn;
	int			column;			/* -1: count(*) */
	int			filter;			/* column, or -1 */
};

/* Keys and aggregates of whole columns. */
SealedProgram
make_program(const Table &table, const std::vector<int> &keys, const std::vector<Agg> &aggs)
{
	auto		b = new_builder();
	std::vector<int64_t> sources, key_regs;
	std::vector<int> regs;

	b->grouped = true;
	b->ncursors = 1;
	b->nkeys = static_cast<int>(keys.size());
	b->naggs = static_cast<int>(aggs.size());
	b->nresults = b->nkeys + b->naggs;
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < b->nresults; c++)
	{
		const Agg  *agg = c < b->nkeys ? nullptr : &aggs[c - b->nkeys];

		b->emit(Opcode::ResultColumn, !agg ? table.types[keys[c]] : agg_result_type(agg->fn, agg->column < 0 ? Type::None : table.types[agg->column]),
				c, 0, 0, b->add_name("c"));
		sources.push_back(agg ? RESULT_FROM_AGG | (c - b->nkeys) : c);
	}
	b->emit(Opcode::AggOpen, Type::None, b->nkeys, b->naggs, b->add_aux(sources.data(), b->nresults));
	b->parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	for (size_t c = 0; c < table.types.size(); c++)
	{
		regs.push_back(b->new_reg(table.types[c]));
		b->emit(Opcode::Column, table.types[c], regs[c], static_cast<int>(c), 0);
	}
	for (int k : keys)
		key_regs.push_back(regs[k]);
	if (!keys.empty())
		b->emit(Opcode::Group, Type::None, b->nkeys, b->add_aux(key_regs.data(), b->nkeys), 0);
	for (int i = 0; i < b->naggs; i++)
		b->emit(Opcode::AggStep, aggs[i].column < 0 ? Type::None : table.types[aggs[i].column], i, aggs[i].column < 0 ? -1 : regs[aggs[i].column],
				aggs[i].filter < 0 ? -1 : regs[aggs[i].filter], 0, static_cast<uint8_t>(aggs[i].fn));
	b->converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	b->ops[b->parallel].p3 = b->converge;

	SealedProgram sealed = seal(*b);
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(sealed.get(), sealed.get()->size, &schema, 1);

	EXPECT_EQ(wrong, nullptr) << wrong;
	return sealed;
}

Table
make_table(std::vector<Column> columns, std::vector<uint32_t> tablet_rows)
{
	Table		table;

	table.columns = std::move(columns);
	table.tablet_rows = std::move(tablet_rows);
	table.build();
	return table;
}

/* By every form of table, each with another number of rows a lane from program to program. */
void
compare_all(Table *table, const std::vector<int> &keys, const std::vector<Agg> &aggs, const std::string &name, Seen *seen)
{
	const SealedProgram sealed = make_program(*table, keys, aggs);
	const std::vector<Force> forces = {{false, 0, 0}, {true, 0, 0}, {true, 16, 0}, {false, 0, 8}, {false, 0, UINT32_MAX},
		{false, 0, 0, 2}, {false, 0, 0, 3, 1}, {false, 0, 0, 4, 2}, {false, 0, 0, 8, 1}};
	const size_t turn = static_cast<size_t>(seen->programs++);

	for (size_t i = 0; i < (keys.empty() ? 3 : forces.size()); i++)
	{
		static const uint16_t lanes[] = {4, 8, 16};
		const uint16_t lane_rows = lanes[(i + turn) % 3];
		const Force &force = keys.empty() ? forces[0] : forces[i];

		compare(sealed.get(), table, {}, DeviceRun{lane_rows, true, i + 9 * (turn % 2)}, force, name + ", rows a lane " + std::to_string(lane_rows) +
				", table " + std::to_string(&force - forces.data()), seen);
		if (::testing::Test::HasFatalFailure())
			return;
	}
}

}  // namespace

/* Sums whose accumulators depend on the values, and what they end in. */
TEST(CudaGroups, FloatSums)
{
	const std::vector<std::pair<const char *, std::vector<double>>> cases = {
		{"plain", {1.5, -2.25, 1024, 3}},
		{"zero", {1.5, -1.5, 0, -0.0}},
		{"minus zero", {-0.0, -0.0}},
		{"cancels to zero", {-0.0, 1, -1}},
		{"one zero", {-0.0, 0.0}},
		{"small and large", {0x1p30, 0x1p-40, -0x1p30}},
		{"wide", {0x1p100, 0x1p-120, -0x1p100, 0x1.8p-130}},
		{"nan", {1, NAN}},
		{"infinity", {1, INFINITY}},
		{"minus infinity", {-INFINITY, 4}},
		{"both infinities", {INFINITY, -INFINITY, 5}},
		{"may overflow float4", {3e38, 3e38, 1}},
		{"overflows float4 but for the rows", {1e38, 1e-30}},
		{"nothing", {}},
	};
	Seen		seen;

	for (Type type : {Type::F32, Type::F64})
		for (const auto &[name, values] : cases)
			for (int nulls : {0, 1})
				for (int keys : {0, 1})
				{
					Column		key{Type::I32, {}}, filter{Type::Bool, {}}, value{type, {}};

					for (int i = 0; i < 330; i++)
					{
						const bool	null = values.empty() || (nulls && i % 3 == 0);

						key.rows.push_back(from_register(i % 5 - 2));
						filter.rows.push_back(truth(i % 2));
						value.rows.push_back(null || i >= static_cast<int>(values.size()) * 60 ? Value{}
											 : from_register(type == Type::F32 ? static_cast<double>(static_cast<float>(values[i % values.size()]))
															 : values[i % values.size()]));
					}
					if (!nulls)
						for (Value &v : value.rows)
							if (v.null && !values.empty())
								v = from_register(values[0]);

					Table		table = make_table({key, filter, value}, {130, 200});

					compare_all(&table, keys ? std::vector<int>{0} : std::vector<int>{},
								{{AggFn::Sum, 2, -1}, {AggFn::Count, 2, -1}, {AggFn::Sum, 2, 1}, {AggFn::Min, 2, -1}, {AggFn::Max, 2, -1}},
								std::string(name) + (type == Type::F32 ? " float4" : " float8") + (nulls ? " nulls" : "") + (keys ? " keys" : ""), &seen);
					if (HasFatalFailure())
						return;
				}
	seen.print();
	EXPECT_GT(seen.tables_without_keys, 0);
	EXPECT_EQ(seen.refused, 0);
}

/* Doubles of all exponents need all limbs. */
TEST(CudaGroups, FloatSumsOfAllExponents)
{
	Column		key{Type::I16, {}}, value{Type::F64, {}};
	Rng			rng(7);
	Seen		seen;

	for (int i = 0; i < 3000; i++)
	{
		key.rows.push_back(from_register(i % 7));
		value.rows.push_back(from_register(std::ldexp(static_cast<double>(rng() >> 11) * (rng() & 1 ? 1 : -1), pick_int(rng, 1500) - 1074)));
	}

	Table		table = make_table({key, value}, {1000, 2000});

	compare_all(&table, {}, {{AggFn::Sum, 1, -1}}, "no keys", &seen);
	compare_all(&table, {0}, {{AggFn::Sum, 1, -1}, {AggFn::CountStar, -1, -1}}, "keys", &seen);
	seen.print();
	EXPECT_EQ(seen.refused, 0);
}

/* Keys of every type, of one word and of several; and extremes of integers of all ranges. */
TEST(CudaGroups, Keys)
{
	Rng			rng(3);
	Seen		seen;
	std::vector<Column> columns;
	const int	n = 450;

	for (Type type : VALUE_TYPES)
		for (int nulls : {0, 20})
		{
			Column		column{type, {}};

			for (int i = 0; i < n; i++)
				column.rows.push_back(pick_int(rng, 100) < nulls ? Value{} : pick_int(rng, 3) ? random_value(type, Profile{1, 0, 0}, rng) : extreme_value(type, rng));
			/* no row has -0, which would make a key ambiguous */
			for (Value &v : column.rows)
				if (type_is_float(type) && v.d == 0)
					v.d = 0;
			columns.push_back(std::move(column));
		}

	Table		table = make_table(columns, {200, 250});
	const std::vector<std::vector<int>> lists = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {0, 1}, {1, 3}, {6, 7}, {7, 6}, {7, 7}, {7, 11, 9},
		{1, 10, 11}, {5, 4, 3}, {0, 1, 2, 3, 4, 5}, {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}};

	for (const std::vector<int> &keys : lists)
	{
		std::string name = "keys";

		for (int k : keys)
			name += " " + std::to_string(k);
		compare_all(&table, keys, {{AggFn::Min, 7, -1}, {AggFn::Max, 6, -1}, {AggFn::Sum, 7, -1}, {AggFn::Sum, 6, 1}, {AggFn::BoolAnd, 1, -1}, {AggFn::Max, 5, 0}}, name, &seen);
		if (HasFatalFailure())
			return;
		compare_all(&table, keys, {}, name + " alone", &seen);
		if (HasFatalFailure())
			return;
	}
	seen.print();
}

/* More groups than any first table has room for. */
/* Cells of 32 bits and pairs of them, in every table and by partitions; groups without a value, and without one that the filter leaves. */
TEST(CudaGroups, Bits)
{
	Seen		seen;
	Rng			rng(5);
	Column		key{Type::I32, {}}, filter{Type::Bool, {}};
	std::vector<Column> values = {{Type::I16, {}}, {Type::I32, {}}, {Type::I64, {}}, {Type::I64, {}}};

	for (int i = 0; i < 700; i++)
	{
		const int	k = pick_int(rng, 120);

		key.rows.push_back(from_register(k));
		filter.rows.push_back(truth(k % 7 != 0 && chance(rng, 60)));
		for (Column &c : values)
			c.rows.push_back(k % 5 == 0 ? Value{} : random_value(c.type, Profile{4, &c == &values[3] ? 0 : 20, 0}, rng));
	}
	for (Value &v : values[3].rows)
		if (v.null)
			v = from_register(int64_t{-1} << 40);

	Table		table = make_table({key, filter, values[0], values[1], values[2], values[3]}, {300, 400});

	for (AggFn fn : {AggFn::BitAnd, AggFn::BitOr, AggFn::BitXor})
		for (const std::vector<int> &keys : {std::vector<int>{0}, std::vector<int>{0, 1}, std::vector<int>{}})
		{
			compare_all(&table, keys, {{fn, 4, -1}, {fn, 5, 1}}, "bits of 64", &seen);
			compare_all(&table, keys, {{fn, 2, -1}, {fn, 3, 1}, {AggFn::BitXor, 5, -1}}, "bits", &seen);
			if (HasFatalFailure())
				return;
		}
	seen.print();
	EXPECT_GT(seen.records, 0u);
}

/* A column that depends on the key: the bits of its values, those of floats included. */
TEST(CudaGroups, AnyValue)
{
	const Type	types[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64};
	Seen		seen;
	Rng			rng(7);
	std::vector<Column> columns = {{Type::I32, {}}};
	std::vector<std::vector<Value>> of_key;

	for (Type t : types)
	{
		std::vector<Value> values;

		columns.push_back(Column{t, {}});
		for (int k = 0; k < 120; k++)
			values.push_back(k % 9 == 0 ? Value{} : k % 7 == 0 && type_is_float(t) ? from_register(-0.0) : random_value(t, Profile{4, 10, 0}, rng));
		of_key.push_back(values);
	}
	for (int i = 0; i < 900; i++)
	{
		const int	k = pick_int(rng, 120);

		columns[0].rows.push_back(from_register(k));
		for (size_t c = 0; c < of_key.size(); c++)
			columns[c + 1].rows.push_back(of_key[c][static_cast<size_t>(k)]);
	}

	Table		table = make_table({columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]}, {300, 600});

	for (const std::vector<int> &keys : {std::vector<int>{0}, std::vector<int>{0, 1}})
	{
		compare_all(&table, keys, {{AggFn::AnyValue, 1, -1}, {AggFn::AnyValue, 3, -1}, {AggFn::AnyValue, 6, -1}}, "any", &seen);
		compare_all(&table, keys, {{AggFn::AnyValue, 2, -1}, {AggFn::AnyValue, 4, -1}, {AggFn::AnyValue, 5, 1}}, "any", &seen);
		if (HasFatalFailure())
			return;
	}
	seen.print();
	EXPECT_GT(seen.dense, 0);
	EXPECT_GT(seen.hashed, 0);
	EXPECT_EQ(seen.refused, 0);
}

TEST(CudaGroups, ManyGroups)
{
	Seen		seen;

	for (int64_t spread : {1, 3, 70000})
		for (bool wide : {false, true})
		{
			Column		key{Type::I32, {}}, other{Type::I64, {}}, value{Type::I32, {}};
			Rng			rng(11);

			for (int i = 0; i < 3600; i++)
			{
				/* also in the keys' order */
				const int64_t k = spread == 3 ? i / 5 : pick_int(rng, 2400);

				key.rows.push_back(from_register(static_cast<int32_t>(k * spread)));
				other.rows.push_back(from_register(wide ? (k << 50) - (1ll << 62) * (k & 1) : k % 3));
				value.rows.push_back(chance(rng, 10) ? Value{} : from_register(pick_int(rng, 2000000000) - 1000000000));
			}

			Table		table = make_table({key, other, value}, {3600});

			compare_all(&table, {0}, {{AggFn::CountStar, -1, -1}, {AggFn::Sum, 2, -1}, {AggFn::Min, 2, -1}}, "one key", &seen);
			compare_all(&table, {0, 1}, {{AggFn::Count, 2, -1}, {AggFn::Max, 2, -1}}, "two keys", &seen);
			if (HasFatalFailure())
				return;
		}
	seen.print();
	EXPECT_GT(seen.overflows, 0);
}

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
	run_random(true, {{true, 0, 0}, {false, 0, 8}, {false, 0, UINT32_MAX}, {true, 16, 0}, {true, 0, UINT32_MAX}}, 40);
}

TEST(CudaGroups, RandomPartitions)
{
	for (bool tame : {true, false})
	{
		run_random(tame, {{false, 0, 0, 2}, {false, 0, 0, 3, 1}, {false, 0, 0, 4, 1}, {false, 0, 0, 8, 2}}, 30);
		if (HasFatalFailure())
			return;
	}
}

/*
 * Records and their ways out: few and many groups, rows in the keys' order, one group
 * that has most rows, groups that only rows with nulls or outside of filters have.
 */
TEST(CudaGroups, Partitions)
{
	enum Order { Any, Sorted, Hot, OneGroup };

	for (Order order : {Any, Sorted, Hot, OneGroup})
		for (int64_t spread : {int64_t{1}, int64_t{20}})
			for (int nulls : {(order % 2 != 0) == (spread > 1) ? 0 : 10})
			{
				Column		key{Type::I64, {}}, filter{Type::Bool, {}}, value{Type::I32, {}}, wide{Type::I64, {}}, real{Type::F64, {}}, limbs{Type::F64, {}};
				Rng			rng(5);
				Seen		seen;
				const int	n = 4000;

				for (int i = 0; i < n; i++)
				{
					const int64_t k = order == OneGroup ? 1500 : order == Sorted ? i / 7 : order == Hot && i % 10 != 0 ? 700 : pick_int(rng, 3000);
					auto		or_null = [&](Value v) { return pick_int(rng, 100) < nulls ? Value{} : v; };

					key.rows.push_back(or_null(from_register(k * spread)));
					filter.rows.push_back(or_null(truth(pick_int(rng, 2))));
					value.rows.push_back(or_null(from_register(pick_int(rng, 2000000000) - 1000000000)));
					wide.rows.push_back(or_null(from_register(static_cast<int64_t>(rng()) >> (nulls ? 0 : 28))));
					real.rows.push_back(or_null(from_register(static_cast<double>(pick_int(rng, 20001) - 10000) / 16)));
					limbs.rows.push_back(or_null(from_register(rng() % 2 ? 0x1p30 * (1 + pick_int(rng, 100)) : -0x1p-25 * (1 + pick_int(rng, 100)))));
				}
				/* both ends of the keys */
				key.rows[0] = from_register(int64_t{0});
				key.rows[1] = from_register(3000 * spread);

				Table		table = make_table({key, filter, value, wide, real, limbs}, {2500, 1500});
				const std::string name = "order " + std::to_string(order) + " spread " + std::to_string(spread) + " nulls " + std::to_string(nulls);
				const std::vector<std::vector<Agg>> lists = {{{AggFn::CountStar, -1, -1}, {AggFn::Sum, 2, -1}}, {},
					{{AggFn::Sum, 3, -1}, {AggFn::Count, 3, 1}}, {{AggFn::Min, 2, 1}, {AggFn::Max, 2, -1}, {AggFn::BoolOr, 1, -1}},
					{{AggFn::Sum, 4, -1}, {AggFn::CountStar, -1, -1}}, {{AggFn::Sum, 5, -1}}, {{AggFn::Sum, 2, 1}, {AggFn::BoolAnd, 1, -1}},
					{{AggFn::Min, 3, -1}, {AggFn::Max, 4, -1}}};
				const std::vector<Force> forces = {{false, 0, 0, 4}, {false, 0, 0, 6}, {false, 0, 0, 3, 2}, {false, 0, 0, 8, 1}};
				/* each list with each table twice, over all tables of rows */
				size_t		turn = static_cast<size_t>(order) + (spread > 1 ? 2 : 0);

				for (const std::vector<Agg> &aggs : lists)
				{
					const SealedProgram sealed = make_program(table, {0}, aggs);
					const Force &force = forces[turn++ % forces.size()];
					static const uint16_t lanes[] = {4, 8, 16};
					const uint64_t seed = rng();

					compare(sealed.get(), &table, {}, DeviceRun{lanes[seed % 3], true, seed % 100}, force, name, &seen);
					if (HasFatalFailure())
						return;
				}
				EXPECT_GE(seen.partitioned, 6) << name;
				/* of one group there are few: four rows side by side are one update */
				if (order == Any)
				{
					EXPECT_GT(seen.records, 5000u) << name;
				}
				EXPECT_EQ(seen.refused, 0);
			}
}

/* Groups that are nothing but there: bits, of few keys and many, at both ends, of nulls, of one group that has most rows. */
TEST(CudaGroups, PresenceBits)
{
	Seen		seen;
	Rng			rng(13);
	Column		few{Type::I16, {}}, flag{Type::Bool, {}}, many{Type::I32, {}}, big{Type::I64, {}}, hot{Type::I32, {}};
	int			turn = 0;

	for (int i = 0; i < 1200; i++)
	{
		few.rows.push_back(chance(rng, 10) ? Value{} : from_register(pick_int(rng, 40) - 20));
		flag.rows.push_back(chance(rng, 20) ? Value{} : truth(pick_int(rng, 2)));
		many.rows.push_back(from_register(i == 7 ? -5000000 : i == 8 ? 4999999 : pick_int(rng, 1500) * 6000 - 4500000));
		big.rows.push_back(chance(rng, 5) ? Value{} : from_register((1ll << 40) + pick_int(rng, 100000) * 31));
		hot.rows.push_back(from_register(i % 20 ? 123456 : pick_int(rng, 400000)));
	}

	Table		table = make_table({few, flag, many, big, hot}, {500, 700});

	for (const std::vector<int> &keys : std::vector<std::vector<int>>{{0}, {1}, {2}, {3}, {4}, {0, 1}, {1, 4}, {0, 3}, {3, 1, 0}})
		for (bool forced : {false, true})
		{
			const SealedProgram sealed = make_program(table, keys, {});
			static const uint16_t lanes[] = {4, 8, 16};

			compare(sealed.get(), &table, {}, DeviceRun{lanes[turn++ % 3], true, rng() % 100}, Force{false, 0, 0, 0, 0, forced}, "keys from " + std::to_string(keys[0]), &seen);
			if (HasFatalFailure())
				return;
		}
	seen.print();
	EXPECT_GE(seen.bits, 10);
	EXPECT_GE(seen.hashed + seen.dense, 5);
	EXPECT_EQ(seen.refused, 0);
}

TEST(CudaGroups, PresenceBitsWhereTheyPay)
{
	const Table table = make_table({Column{Type::I32, {from_register(0), from_register(999999)}}}, {2});
	const SealedProgram sealed = make_program(table, {0}, {}), counted = make_program(table, {0}, {{AggFn::CountStar, -1, -1}});
	const auto	lowered = std::make_unique<cuda::DeviceProgram>();
	const uint64_t enough = 64ull << 30;
	cuda::GroupPlan plan;
	const auto	kind = [&](uint64_t radix, uint64_t rows, uint64_t limit) {
		lowered->groups.radix = radix;
		EXPECT_EQ(cuda::plan_groups(*lowered, rows, limit, 0, &plan), nullptr);
		return plan.kind;
	};

	ASSERT_EQ(lower_for(sealed.get(), table, {}, DeviceRun{8, true, 0}, lowered.get()), nullptr);
	EXPECT_EQ(kind(1000, 8'000'000, enough), cuda::GroupTableKind::Dense);
	EXPECT_TRUE(plan.shared_all);
	EXPECT_EQ(kind(1'000'000, 8'000'000, enough), cuda::GroupTableKind::Bits);
	EXPECT_EQ(plan.partition_bits, 0);
	EXPECT_EQ(kind((1ull << 31) - 64, 8'000'000, enough), cuda::GroupTableKind::Bits);
	EXPECT_GE(plan.table_bytes, (1ull << 28) + 4 * 8'000'000);
	EXPECT_EQ(kind((1ull << 31) - 63, 8'000'000, enough), cuda::GroupTableKind::Hashed);
	EXPECT_EQ(kind((1ull << 31) - 64, 8'000'000, 256 << 20), cuda::GroupTableKind::Hashed);
	/* Not what other jobs, columns, and what comes behind the groups need, but where a dense table would take more: a join's bound of its pairs makes a list of 8 GB. */
	EXPECT_EQ(kind((1ull << 31) - 64, 8'000'000, 6ull << 30), cuda::GroupTableKind::Bits);
	EXPECT_EQ(kind((1ull << 31) - 64, 8'000'000, 2ull << 30), cuda::GroupTableKind::Hashed);
	EXPECT_EQ(kind((1ull << 31) - 64, 1ull << 43, 16ull << 30), cuda::GroupTableKind::Hashed);
	EXPECT_EQ(kind((1ull << 31) - 64, 1ull << 43, enough), cuda::GroupTableKind::Bits);
	EXPECT_EQ(kind(1'000'000, 1ull << 62, enough), cuda::GroupTableKind::Bits);
	EXPECT_EQ(kind(1'000'000, 8'000'000, 16 << 20), cuda::GroupTableKind::Bits);
	EXPECT_EQ(kind((1ull << 31) - 64, 1'000'000, enough), cuda::GroupTableKind::Hashed);
	EXPECT_EQ(kind(0, 1'000'000, enough), cuda::GroupTableKind::Hashed);
	ASSERT_EQ(lower_for(counted.get(), table, {}, DeviceRun{8, true, 0}, lowered.get()), nullptr);
	EXPECT_EQ(kind(1'000'000, 8'000'000, enough), cuda::GroupTableKind::Dense);
}

TEST(CudaGroups, PartitionsWhereTheyPay)
{
	Column		key{Type::I32, {from_register(0), from_register(999999)}}, value{Type::I32, {from_register(1), from_register(2)}};
	const Table table = make_table({key, value}, {2});
	const SealedProgram sealed = make_program(table, {0}, {{AggFn::CountStar, -1, -1}, {AggFn::Sum, 1, -1}});
	const auto	lowered = std::make_unique<cuda::DeviceProgram>();
	const uint64_t enough = 64ull << 30;
	cuda::GroupPlan plan;

	ASSERT_EQ(lower_for(sealed.get(), table, {}, DeviceRun{8, true, 0}, lowered.get()), nullptr);
	ASSERT_EQ(cuda::plan_groups(*lowered, 64'000'000, enough, 0, &plan), nullptr);
	EXPECT_EQ(plan.kind, cuda::GroupTableKind::Dense);
	EXPECT_GT(plan.partition_bits, 0);
	EXPECT_GE(plan.gather_slots, 1000000u >> plan.partition_bits);
	EXPECT_GE(plan.buffer_records, plan.max_slice_rows);
	EXPECT_EQ(plan.max_slice_rows, 64'000'000u);

	const uint64_t bytes = plan.table_bytes;

	/* less memory: shorter slices, then none */
	ASSERT_EQ(cuda::plan_groups(*lowered, 64'000'000, bytes - 1, 0, &plan), nullptr);
	EXPECT_EQ(plan.max_slice_rows, 32'000'000u);
	EXPECT_LT(plan.table_bytes, bytes);
	ASSERT_EQ(cuda::plan_groups(*lowered, 64'000'000, 40 << 20, 0, &plan), nullptr);
	EXPECT_EQ(plan.partition_bits, 0);
	EXPECT_EQ(plan.max_slice_rows, 0u);
	ASSERT_EQ(cuda::plan_groups(*lowered, 64'000'000, enough, 0, &plan, 0), nullptr);
	EXPECT_EQ(plan.partition_bits, 0);
	ASSERT_EQ(cuda::plan_groups(*lowered, 8'000'000, enough, 0, &plan), nullptr);
	EXPECT_EQ(plan.partition_bits, 0);
	ASSERT_EQ(cuda::plan_groups(*lowered, 8'000'000, enough, 0, &plan, 9), nullptr);
	EXPECT_EQ(plan.partition_bits, 9);

	/* a table that the L2 cache holds; too many keys for a dense table */
	lowered->groups.radix = 100000;
	ASSERT_EQ(cuda::plan_groups(*lowered, 64'000'000, enough, 0, &plan), nullptr);
	EXPECT_EQ(plan.kind, cuda::GroupTableKind::Dense);
	EXPECT_EQ(plan.partition_bits, 0);
	lowered->groups.radix = 1ull << 31;
	ASSERT_EQ(cuda::plan_groups(*lowered, 64'000'000, enough, 1, &plan, 9), nullptr);
	EXPECT_EQ(plan.kind, cuda::GroupTableKind::Hashed);
	EXPECT_EQ(plan.partition_bits, 0);
}
