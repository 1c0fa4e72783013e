/* settings.cc: the gpuvm.* settings; docs/settings.md describes them for users. */
#include "pg/settings.h"

#include "engine/abi.h"
#include "pg/compat.h"
#include "pg/startup.h"

extern "C" {
#include "utils/plancache.h"
}

namespace gpuvm {

constexpr int MIN_MEMORY_MB = 16;
constexpr int MIN_ENGINE_MEMORY_MB = 32;
constexpr int MAX_MEMORY_MB = 16 * 1024 * 1024;
constexpr int INDEX_MEMORY_SHARE = 10;	/* one in so many parts of gpuvm.memory */
constexpr int RESULT_MEMORY_SHARE = 2;
constexpr int DEFAULT_TABLET_KB = 16 * 1024;
constexpr int MIN_TABLET_KB = 64;
constexpr int MAX_TABLET_KB = 1024 * 1024;
constexpr int MAX_THREADS = 1024;
constexpr int DEFAULT_REFRESH_NAPTIME_S = 10;
constexpr int MAX_REFRESH_NAPTIME_S = 24 * 60 * 60;
constexpr int DEFAULT_REFRESH_COST_DELAY = 2;
constexpr int MAX_REFRESH_COST_DELAY = 100;

bool		setting_enabled = true;
int			setting_device = DEVICE_AUTO;
bool		setting_force = false;
int			setting_require = REQUIRE_ANY;
int			setting_transfer = TRANSFER_AUTO;
int			setting_jit = JIT_AUTO;
int			setting_files = FILES_LOAD;
bool		setting_float_sums = true;
int			setting_whole_query = WHOLE_QUERY_ON;
int			setting_join_order_seed = 0;
bool		setting_normalise = true;
int			setting_memory_mb = 0;
int			setting_engine_timeout = 1000;
int			setting_index_memory_mb = -1;
int			setting_result_memory_mb = -1;
int			setting_engine_memory_mb = 0;
int			setting_device_memory_mb = 0;
char	   *setting_cuda_library = NULL;
int			setting_tablet_kb = DEFAULT_TABLET_KB;
int			setting_job_memory_mb = 0;
int			setting_job_priority = 0;
int			setting_queue_timeout_ms = 0;
int			setting_share = DEFAULT_SHARE;
int			setting_threads = 0;
bool		setting_refresh = true;
bool		setting_compact = true;
int			setting_refresh_naptime_s = DEFAULT_REFRESH_NAPTIME_S;
int			setting_refresh_cost_delay = DEFAULT_REFRESH_COST_DELAY;
bool		setting_load_at_start = true;

static const struct config_enum_entry device_options[] = {
	{"auto", DEVICE_AUTO, false},
	{"cpu", DEVICE_CPU, false},
	{"cuda", DEVICE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry require_options[] = {
	{"any", REQUIRE_ANY, false},
	{"vm", REQUIRE_VM, false},
	{"cpu", REQUIRE_CPU, false},
	{"cuda", REQUIRE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry transfer_options[] = {
	{"auto", TRANSFER_AUTO, false},
	{"serial", TRANSFER_SERIAL, false},
	{"stream", TRANSFER_STREAM, false},
	{"mapped", TRANSFER_MAPPED, false},
	{"cached", TRANSFER_CACHED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry jit_options[] = {
	{"auto", JIT_AUTO, false},
	{"on", JIT_ON, false},
	{"off", JIT_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry whole_query_options[] = {
	{"off", WHOLE_QUERY_OFF, false},
	{"on", WHOLE_QUERY_ON, false},
	{"shadow", WHOLE_QUERY_SHADOW, false},
	{NULL, 0, false}
};

static const struct config_enum_entry files_options[] = {
	{"load", FILES_LOAD, false},
	{"keep", FILES_KEEP, false},
	{"read", FILES_READ, false},
	{NULL, 0, false}
};

/* Cached plans were made under the old value (rule 21). Assign hooks also run when nothing changes. */
static void
assign_bool_setting(bool newval, bool oldval)
{
	if (newval != oldval)
		ResetPlanCache();
}

static void
assign_int_setting(int newval, int oldval)
{
	if (newval != oldval)
		ResetPlanCache();
}

static void
assign_enabled(bool newval, void *)
{
	assign_bool_setting(newval, setting_enabled);
}

static void
assign_device(int newval, void *)
{
	assign_int_setting(newval, setting_device);
}

static void
assign_force(bool newval, void *)
{
	assign_bool_setting(newval, setting_force);
}

static void
assign_require(int newval, void *)
{
	assign_int_setting(newval, setting_require);
}

static void
assign_join_order_seed(int newval, void *)
{
	assign_int_setting(newval, setting_join_order_seed);
}

static void
assign_normalise(bool newval, void *)
{
	assign_bool_setting(newval, setting_normalise);
}

static void
assign_files(int newval, void *)
{
	assign_int_setting(newval, setting_files);
}

static void
assign_float_sums(bool newval, void *)
{
	assign_bool_setting(newval, setting_float_sums);
}

static void
assign_threads(int newval, void *)
{
	assign_int_setting(newval, setting_threads);
}

/* 0 is replaced at once, so that SHOW tells the size that is in force. */
static bool
check_memory(int *newval, void **, GucSource)
{
	if (*newval == 0)
		*newval = default_memory_mb();
	else if (*newval < MIN_MEMORY_MB)
	{
		GUC_check_errdetail("\"gpuvm.memory\" must be 0 or at least %d MB.", MIN_MEMORY_MB);
		return false;
	}
	return true;
}

/* So is -1. gpuvm.memory is known before and never changes. */
static bool
check_index_memory(int *newval, void **, GucSource)
{
	if (*newval == -1)
		*newval = setting_memory_mb / INDEX_MEMORY_SHARE;
	return true;
}

static bool
check_result_memory(int *newval, void **, GucSource)
{
	if (*newval == -1)
		*newval = setting_memory_mb / RESULT_MEMORY_SHARE;
	return true;
}

static bool
check_engine_memory(int *newval, void **, GucSource)
{
	if (*newval == 0)
		*newval = default_engine_memory_mb();
	else if (*newval < MIN_ENGINE_MEMORY_MB)
	{
		GUC_check_errdetail("\"gpuvm.engine_memory\" must be 0 or at least %d MB.", MIN_ENGINE_MEMORY_MB);
		return false;
	}
	return true;
}

/* How queries run. */
static void
define_query_settings(void)
{
	DefineCustomBoolVariable("gpuvm.enabled",
							 "Lets queries on imported tables run on the virtual machine.",
							 NULL,
							 &setting_enabled, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_enabled, NULL);
	DefineCustomEnumVariable("gpuvm.device",
							 "Selects the device that runs programs.",
							 NULL,
							 &setting_device, DEVICE_AUTO, device_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_device, NULL);
	DefineCustomBoolVariable("gpuvm.force",
							 "Uses the virtual machine for every query that qualifies, whatever the cost.",
							 NULL,
							 &setting_force, false,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_force, NULL);
	DefineCustomEnumVariable("gpuvm.require",
							 "Raises an error if a statement on imported tables would not run as required.",
							 "Meant for tests and benchmarks.",
							 &setting_require, REQUIRE_ANY, require_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_require, NULL);
	DefineCustomEnumVariable("gpuvm.transfer",
							 "Selects how tablets reach a GPU.",
							 NULL,
							 &setting_transfer, TRANSFER_AUTO, transfer_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuvm.jit",
							 "Selects whether programs are compiled for a GPU in the background.",
							 NULL,
							 &setting_jit, JIT_AUTO, jit_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpuvm.files",
							 "Selects when queries load the files of foreign tables.",
							 "\"load\" loads what is not loaded or has changed, \"keep\" answers from what was loaded though the file has changed, \"read\" loads nothing.",
							 &setting_files, FILES_LOAD, files_options,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_files, NULL);
	DefineCustomBoolVariable("gpuvm.float_sums",
							 "Lets the virtual machine sum floating-point values.",
							 "Its sums are exact and rounded once, so they may differ from PostgreSQL's in the last digits.",
							 &setting_float_sums, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, assign_float_sums, NULL);
	DefineCustomEnumVariable("gpuvm.whole_query",
							 "Selects whether whole statements are run as programs that read each other's rows.",
							 "\"shadow\" only counts in gpuvm.translations which statements translate to gpuvm's algebra.",
							 &setting_whole_query, WHOLE_QUERY_ON, whole_query_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.join_order_seed",
							"Joins the relations of whole statements in orders chosen at random, for tests.",
							"0 joins them in the cheapest order that is found.",
							&setting_join_order_seed, 0, 0, INT_MAX,
							PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL, NULL, assign_join_order_seed, NULL);
	DefineCustomBoolVariable("gpuvm.normalise",
							 "Lets whole statements be written in a better way before they are run, for tests.",
							 NULL,
							 &setting_normalise, true,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL, NULL, assign_normalise, NULL);
}

/* What may be taken, and by whom. */
static void
define_limits(void)
{
	DefineCustomIntVariable("gpuvm.memory",
							"Sets the memory for imported tables and query results.",
							"0 selects a quarter of the memory, less where a control group limits it.",
							&setting_memory_mb, 0, 0, MAX_MEMORY_MB,
							/* without preloading there is no arena to size, and it is too late for PGC_POSTMASTER */
							process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_INTERNAL,
							GUC_UNIT_MB, check_memory, NULL, NULL);
	DefineCustomIntVariable("gpuvm.engine_timeout",
							"Ends gpuvmd when it has been stopped, or hung, for so long while a query waits for it.",
							"0 never does.",
							&setting_engine_timeout, 1000, 0, 60 * 60 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.index_memory",
							"Sets the memory for indexes of joins that are kept for later queries.",
							"-1 selects a tenth of \"gpuvm.memory\". 0 keeps none, on GPUs neither.",
							&setting_index_memory_mb, -1, -1, MAX_MEMORY_MB,
							PGC_SIGHUP, GUC_UNIT_MB, check_index_memory, NULL, NULL);
	DefineCustomIntVariable("gpuvm.result_memory",
							"Sets the memory for rows that one program of a query hands to another.",
							"-1 selects half of \"gpuvm.memory\". 0 has all rows pass through PostgreSQL.",
							&setting_result_memory_mb, -1, -1, MAX_MEMORY_MB,
							PGC_SIGHUP, GUC_UNIT_MB, check_result_memory, NULL, NULL);
	DefineCustomIntVariable("gpuvm.engine_memory",
							"Sets the memory that gpuvmd may use for running programs.",
							"0 selects half of the memory, less where a control group limits it.",
							&setting_engine_memory_mb, 0, 0, MAX_MEMORY_MB,
							PGC_SIGHUP, GUC_UNIT_MB, check_engine_memory, NULL, NULL);
	DefineCustomIntVariable("gpuvm.device_memory",
							"Sets the memory that gpuvm may use on each GPU.",
							"0 lets the engine choose.",
							&setting_device_memory_mb, 0, 0, MAX_MEMORY_MB,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomStringVariable("gpuvm.cuda_library",
							   "Names the library with the CUDA virtual machine.",
							   "\"default\" is gpuvm_cuda.so beside gpuvmd. Empty: no GPU is used.",
							   &setting_cuda_library, "default",
							   /* as gpuvm.memory: without preloading nothing starts gpuvmd */
							   process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_INTERNAL,
							   GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.tablet_size",
							"Sets the size at which an import begins a new tablet.",
							NULL,
							&setting_tablet_kb, DEFAULT_TABLET_KB, MIN_TABLET_KB, MAX_TABLET_KB,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.job_memory",
							"Sets the memory of gpuvmd that one program may use.",
							"What it needs beyond goes into files, or it is run in passes. 0: as much as \"gpuvm.engine_memory\".",
							&setting_job_memory_mb, 0, 0, MAX_MEMORY_MB,
							PGC_SUSET, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.job_priority",
							"Sets whose turn it is where programs wait for memory of gpuvmd.",
							"The highest is first. A step is worth a second of waiting.",
							&setting_job_priority, 0, -MAX_PRIORITY, MAX_PRIORITY,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.queue_timeout",
							"Sets how long a program may wait for memory of gpuvmd.",
							"Then PostgreSQL's own plan runs. 0: as long as it takes.",
							&setting_queue_timeout_ms, 0, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.share",
							"Sets the weight by which the role that is logged in shares the processors with others.",
							NULL,
							&setting_share, DEFAULT_SHARE, 1, MAX_SHARE,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.threads",
							"Sets the number of threads that run a program on the CPU.",
							"0 selects all cores. A session can lower it below the engine's number, not raise it above.",
							&setting_threads, 0, 0, MAX_THREADS,
							PGC_USERSET, GUC_EXPLAIN, NULL, assign_threads, NULL);
}

/* What is done in the background. */
static void
define_refresher_settings(void)
{
	DefineCustomBoolVariable("gpuvm.refresh",
							 "Keeps imported tables up to date in the background.",
							 NULL,
							 &setting_refresh, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpuvm.compact",
							 "Compacts tablet tables in the background, where gpuvm.refresh is on.",
							 NULL,
							 &setting_compact, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.refresh_naptime",
							"Sets the shortest time between two looks at the imported tables of a database.",
							NULL,
							&setting_refresh_naptime_s, DEFAULT_REFRESH_NAPTIME_S, 1, MAX_REFRESH_NAPTIME_S,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuvm.refresh_cost_delay",
							"Sets how long the refresher sleeps whenever it has read as much as \"vacuum_cost_limit\" allows.",
							"0 lets it read without pause.",
							&setting_refresh_cost_delay, DEFAULT_REFRESH_COST_DELAY, 0, MAX_REFRESH_COST_DELAY,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpuvm.load_at_start",
							 "Imports the tables that are remembered as imported when the server has started.",
							 "Also those of a restored or copied database.",
							 &setting_load_at_start, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

void
define_settings(void)
{
	define_query_settings();
	define_limits();
	define_refresher_settings();
	compat_reserve_setting_prefix("gpuvm");
}

}  // namespace gpuvm
