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

#include "engine/abi.h"
#include "pg/settings.h"
#include "pg/startup.h"
#include "planner/cost.h"
#include "vm/program.h"

namespace gpuvm {

/* Starting a program: the check of the visibility map, the request, the wake-ups, the end. */
constexpr double STARTUP_US = 60.0;
/* One operation on one row, all threads of a small machine. */
constexpr double OP_US = 0.0002;
/* On a GPU that keeps the columns: launches and the wait for them, and the operations. */
constexpr double DEVICE_STARTUP_US = 50.0;
constexpr double DEVICE_OP_US = 0.000001;
/* Handing a row to the executor. */
constexpr double ROW_US = 0.018;

/* May a program run on a GPU that is ready? */
static bool
device_ready(void)
{
	const ArenaHeader *header = arena_header();

	return header != nullptr && setting_device != DEVICE_CPU && setting_require != REQUIRE_CPU &&
		header->cuda_state.load() == static_cast<uint32>(DeviceState::Ready);
}

double
cost_of_us(void)
{
	return 20.0 * (cpu_tuple_cost + cpu_operator_cost);
}

void
cost_program(Path *path, const Program *program, double rows_in, double rows_out)
{
	double		unit = cost_of_us();
	double		run = rows_in * program->nops * OP_US;

	/* gpuvmd takes the better of both. */
	if (device_ready())
		run = Min(run, DEVICE_STARTUP_US + rows_in * program->nops * DEVICE_OP_US);
	path->startup_cost = unit * (STARTUP_US + (program->grouped ? run : 0.0));
	path->total_cost = unit * (STARTUP_US + run + rows_out * ROW_US);
}

}  // namespace gpuvm
