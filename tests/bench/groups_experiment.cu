/*
 * groups_experiment: what GROUP BY costs on the device, by number of groups, and
 * whether it is right. No server: columns are made on the host, a program is
 * lowered, and a job run as gpuvmd would: table emptied, one slice, groups listed;
 * a table that overflows is made again larger, in the same time.
 *
 *   SELECT k, count(*), sum(v) FROM t GROUP BY k          int4 key and value
 *
 *   dense    keys 0 .. n - 1, each as often as the next
 *   sparse   the same keys, spread over all positive int4: too many values for a dense table
 *   sorted   rows in the keys' order
 *   skewed   dense, but 9 of 10 rows have one key
 *   two      two keys, the combinations dense
 *
 * Counts and sums are compared with the host's, once a line. Columns of the table:
 * the plan (D dense, H hashed; partitions; or in shared memory: all, or slots, with replicas),
 * attempts, blocks a multiprocessor, best and median time of the whole job, rows a
 * second, and the time relative to the line before, which is to stay below 2.
 *
 *   make build/cuda/bench/groups_experiment
 *   build/cuda/bench/groups_experiment [--rows N,N] [--groups N,N] [--cases NAME,NAME] [--reps N] [--lanes 4|8|16]
 *       [--slots N] [--replicas BITS] [--partitions 0|N] [--masked SHARE] [--csv FILE]
 *
 * --slots makes every shared table one for the first groups that come along, of
 * so many slots (0: none). --partitions: rows go to their groups by so many partitions, a power of
 * two, where it is possible at all; 0: never; else where the plan has it. --masked: that share of
 * the table's blocks of 100 rows is masked; marking them is part of the job's time.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "dead_rows.h"
#include "launch.h"
#include "lower.h"
#include "timing.cuh"

using namespace gpuvm;
using gpuvm::cuda::ColumnBinding;
using gpuvm::cuda::DeviceProgram;

namespace {

struct Settings
{
	std::vector<uint64_t> rows = {8000000, 64000000};
	std::vector<uint64_t> groups = {1, 2, 6, 52, 128, 256, 512, 1000, 2000, 4000, 8000, 10000, 16000, 20000, 32000, 64000, 100000, 200000, 500000,
		1000000, 2000000, 5000000};
	std::vector<std::string> cases = {"dense", "sparse", "sorted", "skewed", "two"};
	int			reps = 5;
	int			lanes = 0;
	int64_t		slots = -1;
	int			replicas = -1;
	int			partition_bits = cuda::PARTITIONS_THAT_PAY;
	double		masked = 0;
	FILE	   *csv = nullptr;
};

/* -- the data ------------------------------------------------------------------------ */

constexpr int32_t LIMIT = 1000000000;

struct Data
{
	std::string name;
	uint64_t	rows, groups;
	int			nkeys;
	double		masked;			/* share of the rows */
	std::vector<int32_t> key[2];
	std::vector<int32_t> value;
	int32_t		lo[2], hi[2];
	/* the answers, by group number */
	std::vector<uint64_t> count;
	std::vector<int64_t> sum;

	uint64_t spread() const { return INT32_MAX / groups; }
	/* The number of a group, from the keys of its result row. */
	uint64_t number(int32_t a, int32_t b) const
	{
		return name == "sparse" ? static_cast<uint64_t>(a) / spread() : nkeys == 2 ? static_cast<uint64_t>(a) * (hi[1] + 1ull) + static_cast<uint64_t>(b)
			: static_cast<uint64_t>(a);
	}
};

uint64_t
mixed(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
	x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
	return x ^ (x >> 33);
}

constexpr uint64_t MASKED_ROWS = 100;	/* side by side: a heap block's */

bool
is_masked(const Data &d, uint64_t row)
{
	return d.masked > 0 && static_cast<double>(mixed(row / MASKED_ROWS + 99) >> 11) * 0x1p-53 < d.masked;
}

template <typename F>
void
in_parallel(uint64_t n, F f)
{
	unsigned	workers = std::max(1u, std::thread::hardware_concurrency());
	std::vector<std::thread> threads;

	for (unsigned w = 0; w < workers; w++)
		threads.emplace_back([=] { f(n * w / workers, n * (w + 1) / workers); });
	for (std::thread &t : threads)
		t.join();
}

void
make_data(Data &d)
{
	const uint64_t g = d.groups;
	const uint64_t second = d.nkeys == 2 ? std::max<uint64_t>(1, std::min<uint64_t>(g, 7)) : 1;

	d.lo[0] = d.lo[1] = 0;
	d.hi[0] = d.name == "sparse" ? INT32_MAX : static_cast<int32_t>((g - 1) / second);
	d.hi[1] = static_cast<int32_t>(second - 1);
	d.value.resize(d.rows);
	for (int k = 0; k < d.nkeys; k++)
		d.key[k].resize(d.rows);
	in_parallel(d.rows, [&d, g, second](uint64_t from, uint64_t to) {
		for (uint64_t i = from; i < to; i++)
		{
			uint64_t	r = mixed(i + 1);
			uint64_t	group = d.name == "sorted" ? static_cast<uint64_t>(static_cast<unsigned __int128>(i) * g / d.rows) : mixed(r) % g;

			if (d.name == "skewed" && r % 10 != 0)
				group = g / 2;
			if (d.name == "sparse")
				d.key[0][i] = static_cast<int32_t>(group * d.spread());
			else
				d.key[0][i] = static_cast<int32_t>(group / second);
			if (d.nkeys == 2)
				d.key[1][i] = static_cast<int32_t>(group % second);
			d.value[i] = static_cast<int32_t>((r >> 20) % (2ull * LIMIT + 1)) - LIMIT;
		}
	});
	d.count.assign(g + 7, 0);
	d.sum.assign(g + 7, 0);
	for (uint64_t i = 0; i < d.rows; i++)
	{
		uint64_t	n = d.number(d.key[0][i], d.nkeys == 2 ? d.key[1][i] : 0);

		if (is_masked(d, i))
			continue;
		d.count[n]++;
		d.sum[n] += d.value[i];
	}
}

/* -- the program ------------------------------------------------------------------------ */

std::vector<char>
compile(int nkeys)
{
	std::unique_ptr<ProgramBuilder> b(new ProgramBuilder);
	int64_t		sources[4], keys[2];
	const Type	types[3] = {Type::I32, Type::I32, Type::I32};

	b->init();
	b->grouped = true;
	b->ncursors = 1;
	b->nkeys = nkeys;
	b->naggs = 2;
	b->nresults = nkeys + 2;
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < b->nresults; c++)
	{
		b->emit(Opcode::ResultColumn, c < nkeys ? Type::I32 : c == nkeys ? Type::I64 : Type::I128, c, 0, 0, b->add_name("c"));
		sources[c] = c < nkeys ? c : RESULT_FROM_AGG | (c - nkeys);
	}
	b->emit(Opcode::AggOpen, Type::None, nkeys, 2, b->add_aux(sources, b->nresults));
	b->parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	for (int k = 0; k < nkeys; k++)
	{
		keys[k] = b->new_reg(Type::I32);
		b->emit(Opcode::Column, Type::I32, static_cast<int>(keys[k]), k, 0);
	}
	b->emit(Opcode::Group, Type::None, nkeys, b->add_aux(keys, nkeys), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));

	int			value = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, value, nkeys, 0);
	b->emit(Opcode::AggStep, Type::I32, 1, value, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	b->ops[b->parallel].p3 = b->converge;

	std::vector<char> sealed(b->sealed_size());
	CursorSchema schema = {static_cast<uint32_t>(nkeys + 1), types};

	b->seal(reinterpret_cast<Program *>(sealed.data()));

	const char *problem = verify_program(reinterpret_cast<Program *>(sealed.data()), sealed.size(), &schema, 1);

	if (b->failed || problem)
	{
		fprintf(stderr, "program: %s\n", problem ? problem : "does not fit");
		exit(1);
	}
	return sealed;
}

/* -- the job ------------------------------------------------------------------------------ */

class Job
{
public:
	Job(const Settings &settings, const Data &data) : settings(settings), d(data), sealed(compile(data.nkeys)), program(new DeviceProgram)
	{
		ColumnBinding columns[3] = {};
		std::vector<cuda::DeviceTablet> tablets;
		std::vector<cuda::DeviceChunk> chunks;
		std::vector<cuda::DevicePad> pads;
		const int	ncolumns = d.nkeys + 1;
		char	   *at[3];

		for (int c = 0; c < ncolumns; c++)
		{
			const std::vector<int32_t> &from = c < d.nkeys ? d.key[c] : d.value;
			ColumnSummary &s = columns[c].summary;

			s.type = Type::I32;
			s.max_width = columns[c].min_width = 4;
			s.min = c < d.nkeys ? d.lo[c] : -LIMIT;
			s.max = c < d.nkeys ? d.hi[c] : LIMIT;
			CHECK(cudaMalloc(&at[c], (d.rows + TABLET_MAX_ROWS) * 4));
			CHECK(cudaMemcpy(at[c], from.data(), d.rows * 4, cudaMemcpyHostToDevice));
			memory.push_back(at[c]);
		}
		/* Tablets but the last are full, so the table's rows are numbered as the bitmaps' are. */
		if (d.masked > 0)
		{
			for (uint64_t first = 0; first < d.rows; first += MASKED_ROWS)
				if (is_masked(d, first))
					dead.push_back({first, std::min(first + MASKED_ROWS, d.rows)});
			dead_pads = static_cast<uint32_t>((d.rows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS);
			if (d.rows % TABLET_PAD_ROWS != 0)
				dead.push_back({d.rows, static_cast<uint64_t>(dead_pads) * TABLET_PAD_ROWS});
			CHECK(cudaMalloc(&dead_bits, dead_pads * cuda::DEAD_PAD_BYTES));
			memory.push_back(dead_bits);
			ranges = upload(dead);
		}
		for (uint64_t first = 0; first < d.rows; first += TABLET_MAX_ROWS)
		{
			uint32_t	n = static_cast<uint32_t>(std::min<uint64_t>(TABLET_MAX_ROWS, d.rows - first));

			for (uint32_t row = 0; row < n; row += TABLET_PAD_ROWS)
				pads.push_back({static_cast<uint32_t>(tablets.size()), row});
			tablets.push_back({n, d.masked > 0});
			for (int c = 0; c < ncolumns; c++)
				chunks.push_back({reinterpret_cast<uint64_t>(at[c]) + first * 4, 0, 0, 4, 0});
			if (d.masked > 0)
				chunks.push_back({0, reinterpret_cast<uint64_t>(dead_bits) + first / 8, 0, 0, 0});
		}
		table = cuda::DeviceTable{upload(tablets), upload(chunks), upload(pads), static_cast<uint32_t>(pads.size()), 0};

		const char *problem = cuda::lower({reinterpret_cast<const Program *>(sealed.data()), nullptr, columns, static_cast<uint32_t>(ncolumns), d.rows,
										  {static_cast<uint16_t>(settings.lanes), true, 0, d.masked > 0}}, program.get());

		if (!problem && d.masked > 0 && program->columns[ncolumns].table_column != cuda::DEAD_COLUMN)
			problem = "dead bits are not the last column";
		if (problem)
		{
			fprintf(stderr, "lowering: %s\n", problem);
			exit(1);
		}
		CHECK(cuda::create_scratch(&scratch));
		CHECK(cudaHostAlloc(&outcome, sizeof(*outcome), cudaHostAllocMapped));
		/* All attempts' memory beforehand: gpuvmd takes it from a pool. */
		CHECK(cudaMalloc(&group_memory, largest_plan()));
		memory.push_back(group_memory);
	}
	~Job()
	{
		for (char *p : memory)
			cudaFree(p);
		cudaFreeHost(outcome);
		cuda::destroy_scratch(&scratch);
	}

	/* Until the groups are listed. */
	void		run()
	{
		CHECK(cuda::fill_dead_rows(dead_bits, dead_pads, ranges, static_cast<uint32_t>(dead.size()), 0));
		for (attempts = 0;; attempts++)
		{
			plan_attempt(attempts);
			groups = cuda::group_table(*program, plan, group_memory);
			CHECK(cuda::choose_shape(*program, table.npads, &shape, groups.shared_bytes));
			CHECK(cuda::reset_groups(*program, groups, 0));
			CHECK(cuda::reset_state(scratch, 0));
			CHECK(cuda::launch_slice(*program, shape, scratch, slice(), 0));
			CHECK(cuda::finish_groups(*program, groups, scratch.state, outcome, 0));
			CHECK(cudaStreamSynchronize(0));
			if (!outcome->overflow)
				return;
		}
	}

	/* The result rows against the host's answers. */
	bool		check()
	{
		constexpr uint32_t capacity = 1 << 20;
		ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
		uint64_t	bytes = result_layout(program->result_type, program->nresults, capacity, layout), there = 0;
		char	   *area;
		bool		right = outcome->errors == 0;

		for (uint64_t n : d.count)
			there += n != 0;
		right &= outcome->ngroups == there;
		CHECK(cudaHostAlloc(&area, bytes, cudaHostAllocMapped));
		for (uint64_t from = 0; from < outcome->ngroups && right; from += capacity)
		{
			uint32_t	n = static_cast<uint32_t>(std::min<uint64_t>(capacity, outcome->ngroups - from));

			CHECK(cuda::emit_groups(*program, groups, from, n, area, capacity, 0));
			CHECK(cudaStreamSynchronize(0));
			for (uint32_t i = 0; i < n; i++)
			{
				int32_t		k[2] = {0, 0};
				int64_t		count;
				__int128	sum;

				for (int c = 0; c < d.nkeys; c++)
					memcpy(&k[c], area + layout[c].values + i * 4ull, 4);
				memcpy(&count, area + layout[d.nkeys].values + i * 8ull, 8);
				memcpy(&sum, area + layout[d.nkeys + 1].values + i * 16ull, 16);

				uint64_t	g = d.number(k[0], k[1]);

				right &= g < d.count.size() && static_cast<uint64_t>(count) == d.count[g] && sum == d.sum[g];
			}
		}
		CHECK(cudaFreeHost(area));
		return right;
	}

	/* The interpreter alone, on a table that is there already: what emptying and listing do not cost. */
	void		run_slice_only()
	{
		CHECK(cuda::launch_slice(*program, shape, scratch, slice(), 0));
	}

	void		mark_only()
	{
		CHECK(cuda::fill_dead_rows(dead_bits, dead_pads, ranges, static_cast<uint32_t>(dead.size()), 0));
	}

	std::string described() const
	{
		std::ostringstream s;

		s << (plan.kind == cuda::GroupTableKind::Dense ? "D " : "H ");
		if (plan.partition_bits)
			s << "part " << (1 << plan.partition_bits);
		else if (plan.shared_all)
			s << "all x" << (1 << plan.replica_bits);
		else if (plan.shared_slots)
			s << plan.shared_slots << "/" << (1 << plan.replica_bits);
		else
			s << "-";
		return s.str();
	}

	int			attempts = 0;
	cuda::LaunchShape shape = {};
	cuda::GroupPlan plan = {};
	std::unique_ptr<DeviceProgram> &lowered() { return program; }

private:
	cuda::SliceArgs slice() const
	{
		cuda::SliceArgs args = {};

		args.table = table;
		args.npads = table.npads;
		args.groups = &groups;
		return args;
	}

	void		plan_attempt(int attempt)
	{
		const char *problem = cuda::plan_groups(*program, d.rows, 60ull << 30, attempt, &plan, settings.partition_bits);

		if (problem)
		{
			fprintf(stderr, "%s\n", problem);
			exit(1);
		}
		if (plan.partition_bits == 0 && settings.slots >= 0)
		{
			plan.shared_all = false;
			plan.replica_bits = static_cast<uint8_t>(std::max(0, settings.replicas));
			plan.shared_slots = static_cast<uint32_t>(settings.slots);
			plan.shared_bytes = cuda::group_area_bytes(program->groups.planes, plan.shared_slots, true);
		}
		else if (settings.replicas >= 0 && plan.shared_all)
		{
			plan.replica_bits = static_cast<uint8_t>(settings.replicas);
			plan.shared_slots = ((plan.entries << settings.replicas) + 3) & ~3u;
			plan.shared_bytes = cuda::group_area_bytes(program->groups.planes, plan.shared_slots, false);
		}
	}

	uint64_t	largest_plan()
	{
		cuda::GroupPlan p;
		uint64_t	most = 0;

		for (int attempt = 0; cuda::plan_groups(*program, d.rows, 60ull << 30, attempt, &p, settings.partition_bits) == nullptr && attempt < 8; attempt++)
			most = std::max(most, p.table_bytes);
		return most;
	}

	template <typename T>
	const T *upload(const std::vector<T> &v)
	{
		char	   *p;

		CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
		memory.push_back(p);
		CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
		return reinterpret_cast<const T *>(p);
	}

	const Settings &settings;
	const Data &d;
	std::vector<char> sealed;
	std::unique_ptr<DeviceProgram> program;
	cuda::DeviceTable table = {};
	cuda::LaunchScratch scratch = {};
	cuda::GroupTable groups = {};
	cuda::GroupOutcome *outcome = nullptr;
	char	   *group_memory = nullptr;
	std::vector<char *> memory;
	std::vector<cuda::DeadRange> dead;
	const cuda::DeadRange *ranges = nullptr;
	char	   *dead_bits = nullptr;
	uint32_t	dead_pads = 0;
};

std::vector<std::string>
split(const char *list)
{
	std::vector<std::string> items;
	std::istringstream in(list);

	for (std::string item; std::getline(in, item, ',');)
		items.push_back(item);
	return items;
}

std::vector<uint64_t>
numbers(const char *list)
{
	std::vector<uint64_t> n;

	for (const std::string &item : split(list))
		n.push_back(strtoull(item.c_str(), nullptr, 10));
	return n;
}

bool
run_case(const Settings &settings, const std::string &name, uint64_t rows)
{
	double		before = 0;
	bool		right = true;

	printf("\n%s, %llu rows\n%10s  %-12s %3s %3s %2s %10s %10s %10s %9s %6s\n", name.c_str(), static_cast<unsigned long long>(rows),
		   "groups", "plan", "try", "R", "b", "slice us", "best us", "median us", "G rows/s", "x");
	for (uint64_t groups : settings.groups)
	{
		Data		d;

		if (groups > rows)
			continue;
		d.name = name;
		d.rows = rows;
		d.groups = groups;
		d.nkeys = name == "two" ? 2 : 1;
		d.masked = settings.masked;
		make_data(d);

		Job			job(settings, d);
		Timing		all = measure(settings.reps, 1, [&] { job.run(); });
		bool		ok = job.check();
		Timing		slice = measure(settings.reps, 1, [&] { job.run_slice_only(); });

		const double best_us = all.best_ms * 1000, median_us = all.median_ms * 1000, slice_us = slice.best_ms * 1000;

		right &= ok;
		printf("%10llu  %-12s %3d %3d %2u %10.1f %10.1f %10.1f %9.1f %6.2f%s\n", static_cast<unsigned long long>(groups), job.described().c_str(),
			   job.attempts + 1, job.lowered()->rows_per_lane, job.shape.blocks_per_sm, slice_us, best_us, median_us,
			   static_cast<double>(rows) / best_us / 1000, before > 0 ? best_us / before : 1.0, ok ? "" : "  WRONG");
		if (settings.masked > 0)
			printf("%10s  marking dead rows: %.1f us\n", "", measure(settings.reps, 1, [&] { job.mark_only(); }).best_ms * 1000);
		fflush(stdout);
		if (settings.csv)
			fprintf(settings.csv, "%s,%llu,%llu,%s,%d,%d,%u,%.1f,%.1f,%.1f,%d\n", name.c_str(), static_cast<unsigned long long>(rows),
					static_cast<unsigned long long>(groups), job.described().c_str(), job.attempts + 1, job.lowered()->rows_per_lane,
					job.shape.blocks_per_sm, slice_us, best_us, median_us, ok ? 1 : 0);
		before = best_us;
	}
	return right;
}

}  // namespace

int
main(int argc, char **argv)
{
	Settings	settings;
	bool		right = true;

	for (int i = 1; i + 1 < argc; i += 2)
	{
		std::string option = argv[i];
		const char *value = argv[i + 1];

		if (option == "--rows")
			settings.rows = numbers(value);
		else if (option == "--groups")
			settings.groups = numbers(value);
		else if (option == "--cases")
			settings.cases = split(value);
		else if (option == "--reps")
			settings.reps = atoi(value);
		else if (option == "--lanes")
			settings.lanes = atoi(value);
		else if (option == "--slots")
			settings.slots = atoll(value);
		else if (option == "--partitions")
			for (settings.partition_bits = 0; 1 << settings.partition_bits < atoi(value);)
				settings.partition_bits++;
		else if (option == "--masked")
			settings.masked = atof(value);
		else if (option == "--replicas")
			settings.replicas = atoi(value);
		else if (option == "--csv")
			settings.csv = fopen(value, "w");
		else
		{
			fprintf(stderr, "unknown option %s\n", option.c_str());
			return 2;
		}
	}
	if (settings.csv)
		fprintf(settings.csv, "case,rows,groups,plan,attempts,rows_per_lane,blocks_per_sm,slice_us,best_us,median_us,right\n");
	for (uint64_t rows : settings.rows)
		for (const std::string &name : settings.cases)
			right &= run_case(settings, name, rows);
	if (settings.csv)
		fclose(settings.csv);
	if (!right)
		printf("\nWRONG RESULTS\n");
	return right ? 0 : 1;
}
