/*
 * cost.cc: a minimal cost rule from measured constants.
 *
 * PostgreSQL's units are relative: a sequential scan with one qual charges
 * cpu_tuple_cost + cpu_operator_cost a row and takes about 50 ns for it, so a
 * microsecond is about 20 rows' worth. The constants are in microseconds and
 * are scaled with the user's own cost settings. Measured figures are in
 * docs/benchmarks.md.
 */
#include "pg/pg.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
}

#include <cmath>

#include "engine/abi.h"
#include "pg/settings.h"
#include "pg/engine_client.h"
#include "pg/startup.h"
#include "pg/text_order.h"
#include "planner/cost.h"
#include "store/delta.h"
#include "vm/program.h"

namespace gpuvm {

/* Starting a program: the check of the visibility map, the request, the wake-ups, the end. */
constexpr double STARTUP_US = 60.0;
/*
 * The same where it is done for each row of another query level: processor time of both processes, which wait awake for each other. 30 us on a quiet machine,
 * but up to 600 where more processes want to run than there are cores, and PostgreSQL takes no longer then.
 */
constexpr double RESTART_US = 400.0;
/* One operation on one row, all threads of a small machine. */
constexpr double OP_US = 0.0002;
/* Rows that a thread has been through before it hands the first ones out, and those of a join's first cursor. */
constexpr double FIRST_ROWS = 65536;
constexpr double FIRST_JOIN_ROWS = 2048;
/* Looking at a text. */
constexpr double TEXT_US = 0.01;
constexpr double TEXT_KEY_US = 0.03;	/* 10 ns of few different values, 50 of many */
/* An extreme of texts: a fifth of what it takes, as PostgreSQL charges its own a tenth. */
constexpr double TEXT_EXTREME_US = 0.005;
constexpr double DEVICE_TEXT_US = 0.0006;
/* On a GPU that keeps the columns: launches and the wait for them, and the operations. */
constexpr double DEVICE_STARTUP_US = 50.0;
constexpr double DEVICE_OP_US = 0.000001;
/* There, joins: the steps of a level, a row of some cursor, a pair of Seek, of a nested loop, and an operation on it. */
constexpr double DEVICE_LEVEL_US = 100.0;
constexpr double DEVICE_ROW_US = 0.00003;
constexpr double DEVICE_PAIR_US = 0.00003;
constexpr double DEVICE_CROSS_US = 0.0000005;
constexpr double DEVICE_CROSS_OP_US = 0.0000002;
/* Of so many rows of cursor 0 those without partners are left out first, by small sides: one of so many rows at most. */
constexpr double DEVICE_FILTERED_ROWS = 4194304;
constexpr double DEVICE_FILTER_SIDE = 32;
constexpr double DEVICE_FILTER_US = 0.000006;
constexpr double DEVICE_FILTER_LEFT = 0.8;
/*
 * A row into a hash table; a look-up in it; a pair that it finds, into a batch; a row that goes on from a join. Processor time of all threads: on two that have
 * a machine for themselves a join takes half as long, and as long as this where others want them too, which is when PostgreSQL's plan takes no longer.
 */
constexpr double BUILD_US = 0.005;
constexpr double PROBE_US = 0.003;
constexpr double PAIR_US = 0.0006;
constexpr double ROW_ON_US = 0.0004;
/* A row into a table that is sorted for ranges, and looking for both ends of a range in it. */
constexpr double SORT_US = 0.1;
constexpr double RANGE_US = 0.01;
/* A pair of a nested loop, and each operation on it: a row against vectors of those that drive, one a thread at least if they fill so many. */
constexpr double CROSS_US = 0.00004;
constexpr double CROSS_OP_US = 0.00002;
constexpr double CROSS_LANES = 2048;
/* Putting a row where it is sorted; and each comparison, of a row that is not known to be beyond the limit. */
constexpr double SORT_ROW_US = 0.03;
constexpr double SORT_COMPARE_US = 0.005;
/* Telling that a row is beyond the limit. */
constexpr double TOP_ROW_US = 0.005;

/* Rows that another program of the statement reads: starting that one, and each value. */
constexpr double KEPT_US = 75;
constexpr double KEPT_VALUE_US = 0.002;
constexpr double KEPT_ON_DEVICE_US = 110;
constexpr double KEPT_DEVICE_VALUE_US = 0.0005;

/* Comparing two entries of a dictionary, for their order, against an operator: collations are slow, but for those of bytes; one dictionary's by their bytes are sorted word by word. */
constexpr double ORDER_OPERATORS = 20;
constexpr double BYTES_ORDER_OPERATORS = 4;
constexpr double BYTES_RANK_OPERATORS = 1;

/* The same on a GPU, all in all. */
constexpr double DEVICE_SORT_ROW_US = 0.0005;
constexpr double DEVICE_TOP_ROW_US = 0.0001;

/* From so many rows on a hash table leaves the caches, and from so many it is nearly all outside of them: then both take so many times as long. */
constexpr double CACHED_ROWS = 65536;
constexpr double UNCACHED_ROWS = 4194304;
constexpr double UNCACHED = 2.5;
/* With keys of several columns, which are compared one by one, each in a column of its own. */
constexpr double UNCACHED_COLUMNS = 8;
/* So a pair's columns, which lie anywhere. */
constexpr double UNCACHED_PAIR = 4;
/* Keys that are there several times take so many times as long to build as different ones. */
constexpr double REPEATED = 1.3;

/*
 * Where memory is short: going over a row in one pass more of a join, and a row that waits in a file, to be grouped or sorted. What an inner side and a
 * group take, for want of anything better: so much a value, and a table's entry.
 */
constexpr double PASS_ROW_US = 0.003;
constexpr double SPILL_ROW_US = 0.04;
constexpr double VALUE_BYTES = 8;
constexpr double ENTRY_BYTES = 26;
/* Of the memory, for inner sides that are met in passes. */
constexpr double PASS_SHARE = 0.75;

/* How many times as long a row takes in a table of so many rows as in a small one, if it takes `most` in a large one. */
static double
cache_factor(double rows, double most)
{
	double		share = log2(Max(rows, 1.0) / CACHED_ROWS) / log2(UNCACHED_ROWS / CACHED_ROWS);

	return 1 + (most - 1) * Min(Max(share, 0.0), 1.0);
}

/* May a program run on a GPU that is ready? */
static bool
device_ready(void)
{
	const ArenaHeader *header = arena_header();

	return header != nullptr && setting_device != DEVICE_CPU && setting_require != REQUIRE_CPU &&
		header->cuda_state.load() == static_cast<uint32>(DeviceState::Ready);
}

/* What a program may take of gpuvmd's memory. */
static double
job_bytes(void)
{
	const int	mb = setting_job_memory_mb > 0 ? Min(setting_job_memory_mb, setting_engine_memory_mb) : setting_engine_memory_mb;

	return static_cast<double>(mb) * 1024 * 1024;
}

/* Inner sides of so many bytes are counted and met in passes if they do not fit, and each goes over so many rows. */
static double
passes_us(double bytes, double rows)
{
	const double passes = ceil(bytes / (PASS_SHARE * job_bytes()));

	return bytes > job_bytes() ? passes * rows * PASS_ROW_US : 0;
}

/* Of so many rows that are kept in so many bytes what does not fit goes into a file. */
static double
spill_us(double bytes, double rows)
{
	return bytes > job_bytes() ? rows * (1 - job_bytes() / bytes) * SPILL_ROW_US : 0;
}

double
cost_of_us(void)
{
	return 20.0 * (cpu_tuple_cost + cpu_operator_cost);
}

/* Is the query level executed again for each row of one around it? Its parameters were found before its paths are made. */
static bool
is_restarted(const PlannerInfo *root)
{
	for (root = root->parent_root; root != nullptr; root = root->parent_root)
	{
		if (root->plan_params != NIL)
			return true;
	}
	return false;
}

static double
start_us(const PlannerInfo *root)
{
	return root != nullptr && is_restarted(root) ? RESTART_US : STARTUP_US;
}

double
least_cost(const PlannerInfo *root)
{
	return cost_of_us() * start_us(root);
}

/* PostgreSQL charges comparisons of texts as those of integers, and takes three to eight times as long for them. So does gpuvmd, so it is left at that. */
double
sort_us(double rows, double limit, bool texts)
{
	double		sorted = limit > 0 ? Min(2 * limit, rows) : rows;

	if (device_ready() && !texts)
		return rows * (limit > 0 ? DEVICE_TOP_ROW_US : DEVICE_SORT_ROW_US);
	return (limit > 0 ? rows * TOP_ROW_US : 0) + sorted * (SORT_ROW_US + std::log2(sorted + 1) * SORT_COMPARE_US)
		+ spill_us(sorted * (VALUE_BYTES + ENTRY_BYTES), sorted);
}

double
cost_of_entries(double entries)
{
	return entries * (MAP_ENTRY_US * cost_of_us() + cpu_operator_cost);
}

double
cost_of_order(double values, Oid collation, bool ranks)
{
	const double bytes = ranks ? BYTES_RANK_OPERATORS : BYTES_ORDER_OPERATORS;

	return values * std::log2(values + 1) * (orders_as_bytes(collation) ? bytes : ORDER_OPERATORS) * cpu_operator_cost;
}

/* The blocks are PostgreSQL's as much as ours, wherever they lie: so they cost what its own scan is charged for them. */
double
cost_of_delta(const DeltaSize &size, int nwanted)
{
	return size.io + cost_of_us() * delta_rows_us(size.rows, nwanted);
}

/* How many such operations there are. */
static int
count_ops(const Program *program, Opcode opcode)
{
	int			n = 0;

	for (int i = 0; i < program->nops; i++)
		n += program->ops()[i].opcode == opcode;
	return n;
}

static int
count_text_extremes(const Program *program)
{
	int			n = 0;

	for (int i = 0; i < program->nops; i++)
		n += orders_texts(program->ops()[i]);
	return n;
}

/* What a large hash table takes more than a small one; of HashInsert and Seek. */
static double
uncached(const Op &op)
{
	return op.p2 > 1 ? UNCACHED_COLUMNS : UNCACHED;
}

/* Each operation by the lanes that reach it; *build: up to the main pipeline. */
static double
join_us(const Program *program, const ProgramRows &rows, double *build)
{
	double		us = 0;
	double		lanes = 0;
	double		live = 0;
	double		op_us = OP_US;
	int			values = 0;
	double		bytes = 0;		/* of all inner sides */
	double		largest = 0;	/* rows to be looked at for one of them */
	bool		sorted[PROGRAM_MAX_CURSORS] = {};

	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		switch (op.opcode)
		{
			case Opcode::Parallel:
				if (i == program->parallel)
					*build = us;
				lanes = rows.scanned[op.p2];
				live = rows.filtered[op.p2];
				op_us = OP_US;
				values = 0;
				break;
			case Opcode::Column:
				values++;
				/* FALLTHROUGH */
			case Opcode::Integer:
			case Opcode::Variable:
				/* of pairs they are there already */
				us += lanes * (op_us < OP_US ? 0 : op_us);
				break;
			case Opcode::TextMatch:
			case Opcode::TextPart:
				us += lanes * TEXT_US;
				break;
			case Opcode::TextKey:
				us += lanes * TEXT_KEY_US;
				break;
			case Opcode::HashOpen:
				sorted[op.p1] = op.p3 != 0;
				break;
			case Opcode::HashInsert:
				bytes += live * (values * VALUE_BYTES + ENTRY_BYTES);
				largest = Max(largest, lanes);
				us += live * (sorted[op.p1] ? SORT_US : BUILD_US * cache_factor(live, uncached(op)) * (rows.repeated[op.p1] ? REPEATED : 1));
				break;
			case Opcode::Seek:
			case Opcode::SeekRange:
				us += live * (op.opcode == Opcode::Seek ? PROBE_US * cache_factor(rows.filtered[op.p1], uncached(op)) : RANGE_US) +
					rows.pairs[op.p1] * PAIR_US * cache_factor(rows.filtered[op.p1], UNCACHED_PAIR);
				lanes = rows.pairs[op.p1];
				op_us = OP_US;
				break;
			case Opcode::Cross:
				lanes = rows.pairs[op.p1];
				us += (rows.scanned[op.p1] + live) * ROW_ON_US + lanes * CROSS_US * Max(CROSS_LANES / Max(live, 1.0), 1.0);
				op_us = CROSS_OP_US;
				break;
			case Opcode::Match:
				lanes = live = rows.joined[op.p1];
				us += op_us < OP_US ? 0 : lanes * ROW_ON_US;
				break;
			default:
				us += lanes * (orders_texts(op) ? TEXT_EXTREME_US : op_us);
				break;
		}
	}
	return us + passes_us(bytes, rows.scanned[0] + largest);
}

/* Which share of cursor 0's rows a GPU expects to be left by this side when it looks for those with partners, before it joins; 1: it does not look here. */
static double
share_left(const ProgramRows &rows, int k)
{
	const double before = k == 1 ? rows.filtered[0] : rows.joined[k - 1];

	if (!rows.leaves_out[k] || rows.scanned[0] < DEVICE_FILTERED_ROWS || rows.filtered[k] * DEVICE_FILTER_SIDE > rows.scanned[0])
		return 1;
	return Min(rows.joined[k] / Max(before, 1.0), 1.0);
}

/* The same on a GPU. */
static double
device_join_us(const Program *program, const ProgramRows &rows)
{
	double		left = 1;		/* of cursor 0's rows, by the sides that are still to come */
	double		us = DEVICE_STARTUP_US;

	for (int k = 1; k < program->ncursors; k++)
		left *= share_left(rows, k);
	if (left > DEVICE_FILTER_LEFT)
		left = 1;

	const bool	filtered = left < 1;

	us += filtered ? rows.scanned[0] * DEVICE_FILTER_US + rows.filtered[0] * left * DEVICE_ROW_US : rows.scanned[0] * DEVICE_ROW_US;
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode != Opcode::Seek && op.opcode != Opcode::SeekRange && op.opcode != Opcode::Cross)
			continue;
		if (filtered)
			left = Min(left / Max(share_left(rows, op.p1), 1e-30), 1.0);
		us += DEVICE_LEVEL_US + rows.scanned[op.p1] * DEVICE_ROW_US;
		us += rows.pairs[op.p1] * left * (op.opcode == Opcode::Cross ? DEVICE_CROSS_US + program->nops * DEVICE_CROSS_OP_US : DEVICE_PAIR_US);
	}
	return us;
}

/* Can a GPU run it? */
static bool
for_device(const Program *program)
{
	for (int i = 0; i < program->nops; i++)
		if ((program->ops()[i].opcode == Opcode::Match && program->ops()[i].p2 == static_cast<int>(JoinKind::Full)) ||
			program->ops()[i].opcode == Opcode::TextKey || orders_texts(program->ops()[i]))
			return false;
	return true;
}

/* Which part of a program's work is done before its first row comes out? */
static double
first_share(const Program *program, double scanned)
{
	const double threads = Max(engine_threads(), 1u);

	return program->grouped ? 1 : Min(threads * (program->ncursors > 1 ? FIRST_JOIN_ROWS : FIRST_ROWS) / Max(scanned, 1.0), 1.0);
}

/* Operations on a row before it is looked up, or into a table, and its values there. */
constexpr double FEW_OPS = 4;
constexpr double FEW_VALUES = 3;

double
driver_us(double scanned)
{
	return device_ready() ? DEVICE_STARTUP_US + scanned * DEVICE_ROW_US : scanned * FEW_OPS * OP_US;
}

double
join_step_us(const JoinStep &step)
{
	const bool	keyed = step.keys > 0;

	if (device_ready())
		return DEVICE_LEVEL_US + (step.scanned + step.joined) * DEVICE_ROW_US + step.pairs * (keyed ? DEVICE_PAIR_US : DEVICE_CROSS_US + 2 * FEW_OPS * DEVICE_CROSS_OP_US);
	if (!keyed)
		return step.scanned * ROW_ON_US + step.pairs * (CROSS_US + FEW_OPS * CROSS_OP_US) + step.joined * (ROW_ON_US + FEW_OPS * OP_US);
	const double most = step.keys > 1 ? UNCACHED_COLUMNS : UNCACHED;

	return step.scanned * FEW_OPS * OP_US + step.filtered * BUILD_US * cache_factor(step.filtered, most) +
		step.outer * PROBE_US * cache_factor(step.filtered, most) + step.pairs * PAIR_US * cache_factor(step.filtered, UNCACHED_PAIR) +
		step.joined * FEW_OPS * OP_US + passes_us(step.filtered * (FEW_VALUES * VALUE_BYTES + ENTRY_BYTES), step.outer + step.scanned);
}

double
kept_rows_us(double rows, double columns)
{
	return device_ready() ? KEPT_ON_DEVICE_US + rows * columns * KEPT_DEVICE_VALUE_US : KEPT_US + rows * columns * KEPT_VALUE_US;
}

void
cost_program(const PlannerInfo *root, Path *path, const Program *program, const ProgramRows &rows, double rows_out)
{
	double		unit = cost_of_us();
	double		ops = rows.scanned[0] * program->nops;
	double		build = 0;
	double		texts = program->ncursors > 1 ? 0 : rows.scanned[0] * (count_ops(program, Opcode::TextMatch) + count_ops(program, Opcode::TextPart));
	/* nearly always behind the conditions */
	double		keys = program->ncursors > 1 ? 0 : rows.filtered[0] * count_ops(program, Opcode::TextKey);
	double		extremes = program->ncursors > 1 ? 0 : rows.scanned[0] * count_text_extremes(program);
	double		run = program->ncursors > 1 ? join_us(program, rows, &build)
		: ops * OP_US + texts * TEXT_US + keys * TEXT_KEY_US + extremes * TEXT_EXTREME_US;
	if (program->grouped)
		run += spill_us(rows_out * (program->nresults * VALUE_BYTES + ENTRY_BYTES),
						program->ncursors > 1 ? rows.joined[program->ncursors - 1] : rows.filtered[0]);

	/* gpuvmd takes the better of both. */
	if (device_ready() && for_device(program))
	{
		const double device = program->ncursors > 1 ? device_join_us(program, rows) : DEVICE_STARTUP_US + ops * DEVICE_OP_US + texts * DEVICE_TEXT_US;

		run = Min(run, device);
		build = Min(build, run);
	}
	path->startup_cost = unit * (start_us(root) + build + (run - build) * first_share(program, rows.scanned[0]));
	path->total_cost = unit * (start_us(root) + run + rows_out * HAND_OUT_US);
}

}  // namespace gpuvm
