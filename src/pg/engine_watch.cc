/*
 * engine_watch.cc: tells a gpuvmd that is stopped or hangs from one that is slow.
 *
 * A thread of gpuvmd does nothing but count every tenth of a second (ArenaHeader.heartbeat). Where that stands still for
 * gpuvm.engine_timeout and the kernel says that the process is stopped, it is killed: the sockets of all its sessions
 * end, and the supervisor starts another one. Being starved of processors, or waiting for a disk, is no reason.
 *
 * Whoever looks waits for it, so it hangs where no thread has wanted a processor or a disk for as long, whatever the
 * Job says: a job that waits until its rows are taken is not waited for. One whose own thread looks every few
 * milliseconds whether there is room for its rows, which it does for seconds at most, does not hang. A device
 * computes while all threads sleep, so where there is one that takes DEVICE_PATIENCE times as long. A job that was
 * canceled hangs, too, if it has not stopped when its thread has had CANCEL_SHARE_MS of a processor, as far as these
 * were shared fairly: it asks every few milliseconds of its own time whether it is to stop.
 */
#include "pg/engine_watch.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/startup.h"

namespace gpuvm {

constexpr double CANCEL_SHARE_MS = 5000;
constexpr double DEVICE_PATIENCE = 30;

struct ProcessLine
{
	char		state;			/* as ps shows it; 0: there is none */
	uint64		ticks;			/* of processor time */
};

/* A line of proc(5)'s /proc/PID/stat. */
static ProcessLine
read_line(const char *path)
{
	ProcessLine line = {};
	char		text[1024];
	FILE	   *file = fopen(path, "re");
	const char *behind_name;
	unsigned long user = 0;
	unsigned long system = 0;

	if (file == NULL)
		return line;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	behind_name = strrchr(text, ')');
	if (behind_name != NULL &&
		sscanf(behind_name, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &line.state, &user, &system) < 1)
		line.state = 0;
	line.ticks = user + system;
	return line;
}

/* A thread that runs, wants to, or waits for a disk or for memory. */
static bool
any_thread_at_work(pid_t pid)
{
	char		path[MAXPGPATH];
	DIR		   *dir;
	bool		found = false;

	snprintf(path, sizeof(path), "/proc/%d/task", static_cast<int>(pid));
	dir = opendir(path);
	if (dir == NULL)
		return true;
	while (!found)
	{
		const struct dirent *entry = readdir(dir);
		char		state;

		if (entry == NULL)
			break;
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", static_cast<int>(pid), entry->d_name);
		state = read_line(path).state;
		found = state == 'R' || state == 'D';
	}
	closedir(dir);
	return found;
}

/* Of a processor, the part that each thread gets that wants one. */
static double
fair_share(void)
{
	FILE	   *file = fopen("/proc/loadavg", "re");
	int			running = 0;

	if (file == NULL)
		return 1;
	if (fscanf(file, "%*f %*f %*f %d/", &running) != 1)
		running = 0;
	fclose(file);
	return Min(static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)) / Max(running, 1), 1);
}

void
engine_watch_begin(EngineWatch *watch, int fd)
{
	struct ucred peer = {};
	socklen_t	len = sizeof(peer);

	*watch = EngineWatch{};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		watch->pid = peer.pid;
	watch->looked = std::chrono::steady_clock::now();
	watch->beats = arena_header()->heartbeat.load();
}

/* What is wrong with it; NULL: nothing that is known. */
static const char *
symptom(EngineWatch *watch, const Job *job, double passed_ms)
{
	const double patience = arena_header()->cuda_state.load() == static_cast<uint32_t>(DeviceState::Ready) ? DEVICE_PATIENCE : 1;
	const uint32_t beats = arena_header()->heartbeat.load();
	const uint32_t looks = job == NULL ? 0 : job->looks.load();
	char		path[MAXPGPATH];
	ProcessLine process;

	watch->silent_ms = beats == watch->beats ? watch->silent_ms + passed_ms : 0;
	watch->beats = beats;
	snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(watch->pid));
	process = read_line(path);
	if (watch->silent_ms >= setting_engine_timeout)
		return process.state == 'T' ? "is stopped" : NULL;
	if (process.ticks != watch->ticks || looks != watch->looks || any_thread_at_work(watch->pid))
		watch->asleep_ms = 0;
	else
		watch->asleep_ms += passed_ms;
	watch->ticks = process.ticks;
	watch->looks = looks;
	if (watch->asleep_ms >= setting_engine_timeout * patience)
		return "hangs";
	if (job == NULL || job->cancel.load() == 0)
		return NULL;
	watch->share_ms += passed_ms * fair_share();
	return watch->share_ms >= CANCEL_SHARE_MS * patience ? "does not stop a canceled job" : NULL;
}

bool
engine_watch(EngineWatch *watch, const Job *job)
{
	const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
	const double passed_ms = std::chrono::duration<double, std::milli>(now - watch->looked).count();
	const char *wrong;

	if (setting_engine_timeout == 0 || watch->pid <= 0 || passed_ms < ENGINE_LOOK_MS)
		return false;
	watch->looked = now;
	/* who comes so late was stopped or starved himself, and knows nothing of the time between */
	wrong = symptom(watch, job, Min(passed_ms, 2 * ENGINE_LOOK_MS));
	if (wrong == NULL)
		return false;
	ereport(LOG, (errmsg("gpuvmd (PID %d) %s and is terminated", static_cast<int>(watch->pid), wrong)));
	return kill(watch->pid, SIGKILL) == 0;
}

}  // namespace gpuvm
