/*
 * supervisor.cc: the background worker that keeps gpuvmd running.
 *
 * gpuvmd is a child of this worker, started by fork and exec, and tied to it in
 * three ways: it reads a socketpair whose end of file makes it leave; the kernel
 * kills it when the worker dies (PR_SET_PDEATHSIG); and the worker kills it when
 * it leaves in order. It can therefore crash, hang or be killed without taking
 * the cluster along, and cannot outlive it.
 *
 * What gpuvmd writes to its standard error goes through a pipe into the server
 * log. One byte on the socketpair says that it listens; only then do the
 * arena's header and thereby gpuvm.status() call it running.
 *
 * A gpuvmd that lived for a second is restarted at once. One that ends sooner is
 * given more and more time, up to ten seconds, so that a broken installation
 * does not flood the log. One that CUDA ended (its exit code says so, or it crashed
 * while CUDA started) several times in a row is from then on started without: the
 * CPU's virtual machine must not suffer from a GPU that is broken for good.
 *
 * Before each start the arena's pins (engine/pin_words.h) are forgotten: the old
 * gpuvmd has been reaped, so no device has its pages any more. While one runs, a
 * byte on the socketpair says that it has unpinned chunks, whose free pages are
 * then given back here, or left a session that its backend had abandoned (areas.h).
 */
#include "pg/pg.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pg/areas.h"
#include "pg/compat.h"
#include "pg/engine_client.h"
#include "pg/oom_kills.h"
#include "pg/quarantine.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "pg/text_order.h"

extern "C" {
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

PGDLLEXPORT void gpuvm_supervisor_main(Datum arg);
}

namespace gpuvm {

constexpr int ARENA_FD = 3;		/* in gpuvmd */
constexpr int CONTROL_FD = 4;
constexpr int STABLE_MS = 1000;
constexpr int FIRST_DELAY_MS = 100;
constexpr int MAX_DELAY_MS = 10000;
constexpr int STOP_MS = 1000;
constexpr int ORPHAN_MS = 5000;
constexpr int CUDA_STABLE_MS = 60000;	/* what happens after that does not count as in a row */
constexpr int MOST_CUDA_ENDS = 3;

struct Engine
{
	pid_t		pid;			/* 0: none */
	int			control;
	int			log;
	bool		ready;
	int64		oom_kills;		/* that the kernel had counted when it was started */
	TimestampTz started;
	WaitEventSet *events;
	char		line[1000];		/* of its log, not yet ended */
	int			line_len;
};

static Engine engine = {0, -1, -1, false, 0, 0, NULL, {0}, 0};
static int	delay_ms = 0;		/* before the next start */
static TimestampTz next_start = 0;
static int	cuda_ends = 0;		/* in a row */
static SupervisorTask task = NULL;

static void
set_status(const char *text)
{
	strlcpy(arena_header()->engine_status, text, sizeof(arena_header()->engine_status));
}

static void
set_cuda_status(const char *text)
{
	ArenaHeader *header = arena_header();

	strlcpy(header->cuda_status, text, sizeof(header->cuda_status));
	header->cuda_state.store(static_cast<uint32_t>(DeviceState::None));
	header->ndevices.store(0);
	for (DeviceStatus &device : header->devices)
		device.state.store(static_cast<uint32_t>(DeviceState::None));
}

/* ---- in the child, between fork and exec ---------------------------------- */

[[noreturn]] static void
exec_failed(const char *what)
{
	char		message[MAXPGPATH + 200];
	int			len = snprintf(message, sizeof(message), "%s: %s\n", what, strerror(errno));

	if (write(STDERR_FILENO, message, Min(static_cast<size_t>(len), sizeof(message))) < 0)
		_exit(126);
	_exit(127);
}

[[noreturn]] static void
become_engine(const char *path, char *const argv[], pid_t parent, int control, int log)
{
	struct sigaction action;
	sigset_t	none;
	int			arena;
	int			null;
	int			oom;

	/* The parent blocked all signals before the fork: no PostgreSQL handler ever runs here. */
	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	for (int sig = 1; sig < NSIG; sig++)
		(void) sigaction(sig, &action, NULL);

	/* PostgreSQL signals whole process groups. */
	(void) setsid();

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);

	oom = open("/proc/self/oom_score_adj", O_WRONLY);
	if (oom >= 0)
	{
		/* When memory is short, the engine is the process that queries survive. */
		ssize_t		rc = write(oom, "500", 3);

		/* A server that is to be killed even sooner stays so. */
		(void) rc;
		(void) close(oom);
	}

	/* Out of the way of the numbers that they are to have, then there. */
	null = open("/dev/null", O_RDWR);
	null = fcntl(null, F_DUPFD, 10);
	arena = fcntl(arena_fd(), F_DUPFD, 10);
	control = fcntl(control, F_DUPFD, 10);
	log = fcntl(log, F_DUPFD, 10);
	if (dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 ||
		dup2(arena, ARENA_FD) < 0 || dup2(control, CONTROL_FD) < 0)
		exec_failed("could not arrange file descriptors");
	if (syscall(SYS_close_range, CONTROL_FD + 1, ~0U, 0) != 0)
	{
		long		max = sysconf(_SC_OPEN_MAX);

		for (int fd = CONTROL_FD + 1; fd < max; fd++)
			(void) close(fd);
	}

	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	execv(path, argv);
	exec_failed(path);
}

/* ---- starting and ending -------------------------------------------------- */

static void
schedule_next_start(void)
{
	bool		stable = TimestampDifferenceExceeds(engine.started, GetCurrentTimestamp(), STABLE_MS);

	delay_ms = stable ? 0 : delay_ms == 0 ? FIRST_DELAY_MS : Min(delay_ms * 2, MAX_DELAY_MS);
	next_start = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay_ms);
}

/* gpuvmd lies beside the library that this code is in: $libdir, unless dynamic_library_path led elsewhere. */
static void
engine_path(char *path, size_t size)
{
	Dl_info		info;
	const char *slash = NULL;

	if (dladdr(reinterpret_cast<void *>(engine_path), &info) != 0 && info.dli_fname != NULL)
		slash = strrchr(info.dli_fname, '/');
	if (slash != NULL)
		snprintf(path, size, "%.*s/gpuvmd", static_cast<int>(slash - info.dli_fname), info.dli_fname);
	else
		snprintf(path, size, "%s/gpuvmd", pkglib_path);
}

/* The option that says where the CUDA library is, if it is not beside gpuvmd, or why there is to be none; NULL: neither. */
static char *
cuda_option(void)
{
	if (cuda_ends >= MOST_CUDA_ENDS)
		return psprintf("--cuda-off=CUDA ended gpuvmd %d times in a row and is off until the server is restarted; "
						"the server log has its words", cuda_ends);
	if (strcmp(setting_cuda_library, "default") == 0)
		return NULL;
	return psprintf("--cuda-library=%s", setting_cuda_library);
}

/* Nothing runs, and nobody is to blame. */
static void
forget_programs(void)
{
	ArenaHeader *header = arena_header();

	for (RunningPrograms *running : {&header->running, &header->on_devices})
	{
		running->count.store(0);
		running->hashes.store(0);
	}
	header->blame.state.store(static_cast<uint32_t>(BlameState::None));
}

static void
start_engine(void)
{
	static char path[MAXPGPATH];
	char	   *argv[] = {
		pstrdup("gpuvmd"),
		psprintf("--arena-fd=%d", ARENA_FD),
		psprintf("--control-fd=%d", CONTROL_FD),
		psprintf("--threads=%d", setting_threads),
		psprintf("--device-memory-mb=%d", setting_device_memory_mb),
		pstrdup("--socket=" GPUVM_SOCKET_PATH),
		NULL,
		NULL,
		NULL
	};
	char	  **option = argv + lengthof(argv) - 3;
	const char *icu = icu_library();
	int			control[2];
	int			log[2];
	sigset_t	all;
	sigset_t	before;
	pid_t		parent = getpid();
	pid_t		pid;

	if (icu != NULL)
		*option++ = psprintf("--icu=%s", icu);
	*option = cuda_option();
	engine.started = GetCurrentTimestamp();
	engine_path(path, sizeof(path));

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0)
	{
		ereport(LOG, (errmsg("could not start gpuvmd: socketpair failed: %m")));
		schedule_next_start();
		return;
	}
	if (pipe2(log, O_CLOEXEC) != 0)
	{
		ereport(LOG, (errmsg("could not start gpuvmd: pipe failed: %m")));
		close(control[0]);
		close(control[1]);
		schedule_next_start();
		return;
	}

	set_status("it is starting");
	set_cuda_status("gpuvmd is starting");
	arena_forget_pins();
	arena_header()->indexes.store(0);
	arena_header()->index_bytes.store(0);
	arena_header()->sets.store(0);
	arena_header()->result_bytes.store(0);
	forget_programs();
	engine.oom_kills = oom_kills();
	arena_header()->engine_generation.fetch_add(1);
	sigfillset(&all);
	(void) sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		become_engine(path, argv, parent, control[1], log[1]);
	(void) sigprocmask(SIG_SETMASK, &before, NULL);
	close(control[1]);
	close(log[1]);
	for (int i = 0; argv[i] != NULL; i++)
		pfree(argv[i]);

	if (pid < 0)
	{
		ereport(LOG, (errmsg("could not start gpuvmd: fork failed: %m")));
		set_status("the last fork failed");
		close(control[0]);
		close(log[0]);
		schedule_next_start();
		return;
	}

	engine.pid = pid;
	engine.control = control[0];
	engine.log = log[0];
	engine.ready = false;
	engine.line_len = 0;
	(void) fcntl(engine.control, F_SETFL, O_NONBLOCK);
	(void) fcntl(engine.log, F_SETFL, O_NONBLOCK);

	engine.events = compat_create_wait_event_set(4);
	AddWaitEventToSet(engine.events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(engine.events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(engine.events, WL_SOCKET_READABLE, engine.control, NULL, NULL);
	AddWaitEventToSet(engine.events, WL_SOCKET_READABLE, engine.log, NULL, NULL);
}

static void
log_line(void)
{
	engine.line[engine.line_len] = '\0';
	if (engine.line_len > 0)
		ereport(LOG, (errmsg("gpuvmd: %s", engine.line)));
	engine.line_len = 0;
}

/* Passes on what the log pipe holds; false at its end. */
static bool
forward_log(void)
{
	char		buf[4096];
	ssize_t		n;

	while ((n = read(engine.log, buf, sizeof(buf))) > 0)
	{
		for (ssize_t i = 0; i < n; i++)
		{
			if (buf[i] == '\n' || engine.line_len == static_cast<int>(sizeof(engine.line)) - 1)
				log_line();
			if (buf[i] != '\n')
				engine.line[engine.line_len++] = buf[i];
		}
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Takes what gpuvmd says on the socketpair; false at its end. */
static bool
read_control(void)
{
	char		buf[16];
	ssize_t		n = recv(engine.control, buf, sizeof(buf), 0);

	if (n > 0 && !engine.ready)
	{
		engine.ready = true;
		ereport(LOG, (errmsg("gpuvmd started (PID %d, %u threads)", static_cast<int>(engine.pid),
							 engine_threads())));
		set_status("it is running");
		arena_header()->engine_pid.store(static_cast<uint32_t>(engine.pid));
	}
	/* What it has unpinned, and at its start what the one before it had pinned; and sessions that it has left. */
	if (n > 0)
	{
		arena_clean_chunks();
		areas_reclaim();
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Did CUDA end it? SIGKILL and SIGTERM come from elsewhere. */
static bool
ended_by_cuda(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == ENGINE_EXIT_DEVICE;
	return arena_header()->cuda_state.load() == static_cast<uint32_t>(DeviceState::Starting) &&
		(WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGBUS ||
		 WTERMSIG(status) == SIGFPE || WTERMSIG(status) == SIGILL);
}

static void
count_cuda_end(void)
{
	if (TimestampDifferenceExceeds(engine.started, GetCurrentTimestamp(), CUDA_STABLE_MS))
		cuda_ends = 0;
	if (++cuda_ends == MOST_CUDA_ENDS)
		ereport(LOG, (errmsg("gpuvmd is started without CUDA from now on, as CUDA ended it %d times in a row", cuda_ends)));
}

/* Whose fault it was, if anybody's: that program is barred sooner or later. */
static void
blame_end(int status)
{
	const int	signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	const BlamedCrash crash = blame_crash(*arena_header(), signal, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
										  signal == SIGKILL && oom_kills() > engine.oom_kills);

	if (crash.program == 0)
		return;
	ereport(LOG, (errmsg("gpuvmd was running program %016llx, which counts as the cause",
						 static_cast<unsigned long long>(crash.program))));
	quarantine_note_crash(crash);
}

static void
reap_engine(bool expected)
{
	int			status;
	pid_t		rc;
	char		text[100];
	char		status_text[120];

	arena_header()->engine_pid.store(0);
	do
	{
		rc = waitpid(engine.pid, &status, 0);
	} while (rc < 0 && errno == EINTR);
	/* before anybody is told that it is gone */
	if (rc > 0 && !expected)
		blame_end(status);
	arena_header()->engine_reaped.store(arena_header()->engine_generation.load());
	areas_reclaim();

	(void) forward_log();
	log_line();
	if (rc < 0)
		snprintf(text, sizeof(text), "ended");
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "was terminated by signal %d", WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "ended with exit code %d", WEXITSTATUS(status));
	if (!expected)
		ereport(LOG, (errmsg("gpuvmd (PID %d) %s", static_cast<int>(engine.pid), text)));
	snprintf(status_text, sizeof(status_text), "it %s", text);
	set_status(status_text);
	if (rc > 0 && !expected && ended_by_cuda(status))
		count_cuda_end();
	set_cuda_status("gpuvmd is not running");

	FreeWaitEventSet(engine.events);
	close(engine.control);
	close(engine.log);
	engine.pid = 0;
	engine.events = NULL;
	engine.control = engine.log = -1;
}

/* End of file on the socketpair asks it to leave; SIGKILL if it does not. */
static void
stop_engine(int, Datum)
{
	siginfo_t	info;

	if (engine.pid == 0)
		return;
	(void) shutdown(engine.control, SHUT_RDWR);
	for (int ms = 0; ms < STOP_MS; ms += 5)
	{
		info.si_pid = 0;
		if (waitid(P_PID, static_cast<id_t>(engine.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
			info.si_pid != 0)
			break;
		pg_usleep(5000);
	}
	(void) kill(engine.pid, SIGKILL);
	reap_engine(true);
	set_status("the server is shutting down");
}

static void
wait_for_engine(long timeout_ms)
{
	WaitEvent	events[4];
	int			n = WaitEventSetWait(engine.events, timeout_ms, events, lengthof(events), compat_wait_event("GpuvmEngine"));
	bool		alive = true;

	for (int i = 0; i < n; i++)
	{
		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
		else if (events[i].fd == engine.control)
			alive = read_control() && alive;
		else if (events[i].fd == engine.log)
			alive = forward_log() && alive;
	}
	if (!alive)
	{
		/* Either it is ending, or it closed what ties it to us. */
		(void) kill(engine.pid, SIGKILL);
		reap_engine(false);
		schedule_next_start();
	}
}

/*
 * A supervisor that ended out of order has left gpuvmd to be killed by the kernel.
 * Until that is done its devices have pages of the arena.
 */
static void
wait_for_orphan(void)
{
	pid_t		pid = static_cast<pid_t>(arena_header()->engine_pid.exchange(0));

	for (int ms = 0; pid != 0 && kill(pid, 0) == 0 && ms < ORPHAN_MS; ms += 10)
		pg_usleep(10000);
	arena_header()->engine_reaped.store(arena_header()->engine_generation.load());
	areas_reclaim();
}

static void
wait_for_next_start(long timeout_ms)
{
	long		ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next_start);

	if (ms > 0)
	{
		if (timeout_ms >= 0)
			ms = Min(ms, timeout_ms);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, compat_wait_event("GpuvmRestart"));
		ResetLatch(MyLatch);
	}
	if (!ShutdownRequestPending && GetCurrentTimestamp() >= next_start)
		start_engine();
}

void
supervisor_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "gpuvm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "gpuvm_supervisor_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "gpuvm supervisor", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "gpuvm supervisor", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

void
supervisor_set_task(SupervisorTask new_task)
{
	task = new_task;
}

/* The postmaster tells so that a worker has started or ended; by default that is ignored. */
static void
wake_up(SIGNAL_ARGS)
{
	int			save_errno = errno;

	SetLatch(MyLatch);
	errno = save_errno;
}

/* What gpuvmd reads of it as it runs. */
static void
publish_settings(void)
{
	arena_header()->index_limit.store(static_cast<uint64>(setting_index_memory_mb) << 20);
	arena_header()->result_limit.store(static_cast<uint64>(setting_result_memory_mb) << 20);
	arena_header()->memory_limit.store(static_cast<uint64>(setting_engine_memory_mb) << 20);
}

static void
leave_areas(int, Datum)
{
	areas_set_supervisor(NULL);
}

/* Of two timeouts; less than 0 is none. */
static long
sooner(long a, long b)
{
	return a < 0 ? b : b < 0 ? a : Min(a, b);
}

static void
supervise(void)
{
	/* Without an arena there is nothing to do; exit code 0 means: do not start again. */
	if (!shmem_available())
		proc_exit(0);

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGUSR1, wake_up);
	BackgroundWorkerUnblockSignals();
	before_shmem_exit(stop_engine, 0);
	before_shmem_exit(leave_areas, 0);
	areas_set_supervisor(MyLatch);
	wait_for_orphan();
	publish_settings();

	while (!ShutdownRequestPending)
	{
		long		timeout_ms;

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			publish_settings();
		}
		timeout_ms = sooner(task == NULL ? -1 : task(), areas_trim());
		if (engine.pid == 0)
			wait_for_next_start(timeout_ms);
		else
			wait_for_engine(timeout_ms);
	}
	proc_exit(1);
}

}  // namespace gpuvm

void
gpuvm_supervisor_main(Datum)
{
	gpuvm::supervise();
}
