/*
 * main.cc: gpuvmd, the process that owns the devices. Started by gpuvm's
 * background worker, never by hand:
 *
 *   gpuvmd --arena-fd=N --control-fd=N --socket=PATH --threads=N
 *          [--device-memory-mb=N] [--cuda-library=PATH | --cuda-off=REASON]
 *
 * It says one byte on the control socket when it listens, and one whenever chunks
 * of the arena wait for the supervisor, and leaves when that socket ends: it lives
 * no longer than the shared memory that it was started for. There is nothing to
 * clean up, so it always leaves by _exit.
 */
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine/blame.h"
#include "engine/device_loader.h"
#include "engine/log.h"
#include "engine/server.h"

using namespace gpuvm;

constexpr int HEARTBEAT_MS = 100;

struct Options
{
	int			arena_fd = -1;
	int			control_fd = -1;
	int			threads = 0;
	int			device_memory_mb = 0;
	const char *socket = nullptr;
	const char *cuda_library = nullptr;
	const char *cuda_off = nullptr;
	const char *icu = nullptr;
};

static bool
text_option(const char *arg, const char *name, const char **value)
{
	size_t		len = strlen(name);

	if (strncmp(arg, name, len) != 0)
		return false;
	*value = arg + len;
	return true;
}

static bool
int_option(const char *arg, const char *name, int *value)
{
	size_t		len = strlen(name);
	char	   *end;

	if (strncmp(arg, name, len) != 0)
		return false;
	*value = static_cast<int>(strtol(arg + len, &end, 10));
	return end != arg + len && *end == '\0';
}

static bool
parse_options(int argc, char **argv, Options *options)
{
	for (int i = 1; i < argc; i++)
	{
		if (!text_option(argv[i], "--socket=", &options->socket) &&
			!text_option(argv[i], "--cuda-library=", &options->cuda_library) &&
			!text_option(argv[i], "--cuda-off=", &options->cuda_off) &&
			!text_option(argv[i], "--icu=", &options->icu) &&
			!int_option(argv[i], "--arena-fd=", &options->arena_fd) &&
			!int_option(argv[i], "--control-fd=", &options->control_fd) &&
			!int_option(argv[i], "--device-memory-mb=", &options->device_memory_mb) &&
			!int_option(argv[i], "--threads=", &options->threads))
			return false;
	}
	return options->arena_fd >= 0 && options->control_fd >= 0 && options->socket != nullptr;
}

static int
choose_threads(int wanted)
{
	int			cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));

	return std::min(wanted > 0 ? wanted : cores, static_cast<int>(MAX_ENGINE_THREADS));
}

/*
 * What jobs take is counted (vm/memory_budget.h), up to half of the machine's memory unless the
 * setting says otherwise. What is not, their lists and stacks, is little; should it be much,
 * a limit on private memory turns that into std::bad_alloc, and thus into a fallback, before
 * the kernel has to end a process.
 *
 * RLIMIT_DATA counts private writable mappings. The address space that CUDA
 * reserves is not writable, and its mappings of device and pinned memory are shared,
 * so neither counts. What its libraries take beside that does: it is added once
 * they are up, or group tables would have that much less.
 */
static std::mutex limiting;
static uint64_t taken_beside = 0, budget_limit = 0;

/* Under the mutex. */
static void
limit_private_memory()
{
	struct rlimit limit;
	const rlim_t memory = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));

	if (getrlimit(RLIMIT_DATA, &limit) != 0)
		return;
	limit.rlim_cur = std::min(limit.rlim_max, std::max(memory / 8 * 5, budget_limit / 8 * 9) + taken_beside);
	(void) setrlimit(RLIMIT_DATA, &limit);
}

static void
add_to_limit(uint64_t taken)
{
	std::lock_guard<std::mutex> lock(limiting);

	taken_beside += taken;
	limit_private_memory();
}

/* As the setting is now. */
static void
set_budget(const ArenaHeader *header, MemoryBudget *memory)
{
	std::lock_guard<std::mutex> lock(limiting);
	const uint64_t limit = header->memory_limit.load(std::memory_order_relaxed);

	if (limit == budget_limit)
		return;
	budget_limit = limit;
	memory->set_limit(limit);
	limit_private_memory();
}

/*
 * Counts heartbeats, and says again what backends go by, which does not change often: a wild write must not have them
 * wait for devices that there are not. Returns only by ending the process.
 */
static void
watch_supervisor(int fd, EngineContext *context, uint32_t threads)
{
	ArenaHeader *header = context->arena.header();

	for (;;)
	{
		struct pollfd p = {fd, POLLIN, 0};
		char		byte;

		if (poll(&p, 1, HEARTBEAT_MS) > 0)
		{
			const ssize_t n = recv(fd, &byte, 1, 0);

			if (n == 0 || (n < 0 && errno != EINTR))
				_exit(0);
		}
		header->engine_threads.store(threads);
		header->cuda_state.store(static_cast<uint32_t>(context->devices.state()));
		header->heartbeat.fetch_add(1);
		header->memory_used.store(context->memory.used());
		set_budget(header, &context->memory);
	}
}

int
main(int argc, char **argv)
{
	Options		options;

	if (!parse_options(argc, argv, &options))
	{
		log_line("gpuvmd is started by the gpuvm extension of PostgreSQL");
		return 2;
	}
	(void) signal(SIGPIPE, SIG_IGN);
	add_to_limit(0);

	/* Both live until _exit: sessions and the watching thread use them to the last moment. */
	static EngineContext context;
	static Server server(&context);
	const char *wrong = context.arena.map(options.arena_fd);

	if (wrong != nullptr)
	{
		log_line("%s", wrong);
		_exit(1);
	}

	blame_install(context.arena.header());

	int			threads = choose_threads(options.threads);
	int			cores = choose_threads(0);

	set_budget(context.arena.header(), &context.memory);
	context.memory.set_yield([] { context.indexes.drop_unused(); });
	context.processors = new Processors(threads);
	context.pool = new WorkerPool(threads - 1, context.processors);
	context.make_cpu_job = CpuJob::create;
	if (options.icu != nullptr)
		context.collators.set_icu(options.icu);
	context.arena.header()->awake.store(0);
	context.arena.header()->most_awake.store(static_cast<uint32_t>(std::max(1, cores / 2)));
	context.control_fd = options.control_fd;
	/* Of two processors one is the backend's: the other is kept for a client that sends query after query only. */
	if (cores <= 2)
		context.busy_wait = std::chrono::milliseconds(2);
	std::thread(watch_supervisor, options.control_fd, &context, static_cast<uint32_t>(threads)).detach();

	wrong = server.listen_at(options.socket);
	if (wrong != nullptr)
	{
		log_line("could not listen at \"%s\": %s: %s", options.socket, wrong, strerror(errno));
		_exit(1);
	}
	context.arena.header()->engine_threads.store(static_cast<uint32_t>(threads));
	if (send(options.control_fd, "", 1, MSG_NOSIGNAL) != 1)
		_exit(1);

	DeviceLoaderOptions devices;

	devices.library = options.cuda_library;
	devices.off = options.cuda_off;
	devices.memory_limit = static_cast<uint64_t>(options.device_memory_mb) << 20;
	devices.control_fd = options.control_fd;
	devices.taken = add_to_limit;
	start_device_loader(&context.arena, &context.devices, devices);
	server.serve();
	_exit(0);
}
