/*
 * engine_client.cc: a backend's sessions with gpuvmd.
 *
 * Sessions live in a list in TopMemoryContext. A Job's memory may be reused only
 * when gpuvmd has stopped writing to it: when its state says so, or when the
 * socket is at its end. The kernel closes a process's sockets only after its
 * last thread has left its address space, and gpuvmd closes a session's socket
 * only after the job has ended, so the end of the socket is proof enough, but for
 * a device: its kernels write results until the driver, at the end of gpuvmd's
 * files, stops them, and nothing says that sockets are not closed before. The memory
 * of a session that lost gpuvmd while its job was on a device, or that ends while
 * gpuvmd does not answer, is abandoned (areas.h): it is freed later.
 *
 * A Job lies where gpuvmd can write, so nothing that was written there is asked for again: what decides about memory
 * is kept in the session, or by whoever submitted the job. A word that says what it cannot, or never comes, ends in
 * the watch (engine_watch.cc), and gpuvmd with it.
 *
 * The end of a session's use: engine_release by its owner; a ResourceOwner's end
 * (errors, cursors); the transaction's abort, which stops all jobs before the
 * transaction callbacks of the other parts free tablets (callbacks run last
 * registered first, and engine_client_install comes last in _PG_init); the end
 * of the process.
 */
#include "pg/engine_client.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "engine/doorbell.h"
#include "pg/activity.h"
#include "pg/areas.h"
#include "pg/compat.h"
#include "pg/engine_watch.h"
#include "pg/job_file.h"
#include "pg/privileges.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/startup.h"

extern "C" {
#include "access/xact.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/resowner.h"
}

namespace gpuvm {

/* Going to sleep and being woken takes about half of this. */
constexpr std::chrono::microseconds SPIN(150);
/* The processors are idle while a device works (EngineWords.awake), and most of its jobs end within this. */
constexpr std::chrono::microseconds DEVICE_SPIN(1000);
constexpr int HELLO_TIMEOUT_MS = 2000;
constexpr int CONNECT_RETRY_MS = 10;
/* A session's end waits so long for gpuvmd's, which by default is enough to end one that is stopped. */
constexpr int HANG_UP_TIMEOUT_MS = 2000;
/* Its doorbell wakes who waits for the end of a canceled job, but a ring may be lost where both move at once. */
constexpr int ABORT_POLL_MS = 1;
/* A session whose drops are not done by then is given up, and gpuvmd drops all that it has. */
constexpr int SETTLE_TIMEOUT_MS = 2000;
constexpr int SETTLE_RING_MS = 250;

struct EngineSession
{
	EngineSession *next;
	int			fd;
	uint32		generation;		/* of the gpuvmd at the other end, at least */
	uint32		last_generation;	/* and at most; nearly always the same */
	uint32		device_ends;	/* of the arena's header, at the last engine_submit */
	bool		in_use;
	bool		in_flight;		/* submitted, and not known to have ended */
	bool		broken;			/* what its Job says cannot be so: it is to end */
	uint64		submission;		/* of the job that was submitted last, */
	int			nbuffers;		/* and what it has */
	ResourceOwner owner;
	uint64		number;			/* differs for every session of this backend */
	uint64		sets;			/* bit n: result set n is there, or its number given out */
	uint64		dropped;		/* of these, those that nobody needs any more */
	ResourceOwner sets_owner;
	File		file;			/* of the job that was submitted last, the owner's; -1: it has asked for none */
	uint64		job;			/* arena offsets */
	uint64		area;
	uint64		area_size;
	AreaTicket	last_area;
	ActivitySlot *activity;	/* or NULL */
	WaitEventSet *events;
};

static EngineSession *sessions = NULL;
static uint64 last_number = 0;
static bool exit_registered = false;

/* The job that was submitted last, and not one before that somebody's garbage had seemed to end. */
static inline bool
job_ended(const EngineSession *session)
{
	const Job  *job = arena_at<Job>(session->job);
	const uint32_t state = job->state.load();

	return (state == static_cast<uint32_t>(JobState::Done) || state == static_cast<uint32_t>(JobState::Failed)) &&
		job->ended.load() == session->submission;
}

/* Is a buffer Full, with this unit if it is not negative? */
static bool
any_full(const EngineSession *session, int64 unit)
{
	const Job  *job = arena_at<Job>(session->job);

	for (int i = 0; i < session->nbuffers; i++)
	{
		if (job->buffers[i].state.load() == static_cast<uint32_t>(BufferState::Full) && (unit < 0 || job->buffers[i].unit == unit))
			return true;
	}
	return false;
}

static bool
wants_room(const EngineSession *session)
{
	return session->in_flight && job_file_wanted(arena_at<Job>(session->job));
}

/* ---- connections ------------------------------------------------------------ */

/* Is the other end still there? Takes stale doorbells from the socket on the way. */
static bool
session_alive(EngineSession *session)
{
	char		bytes[64];
	ssize_t		n;

	if (session->broken)
		return false;
	do
	{
		n = recv(session->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/*
 * Hangs up, and waits until gpuvmd has: until then its thread may still set the
 * Job's waiting word, which would be somebody else's memory. False if it does
 * not come to that in time.
 */
static bool
hang_up(EngineSession *session)
{
	bool		ended = false;
	EngineWatch watch;

	engine_watch_begin(&watch, session->fd);
	/* A session's thread that waits awake looks at this, not at the socket. */
	engine_job(session)->cancel.store(1);
	(void) shutdown(session->fd, SHUT_WR);
	for (int ms = 0; !ended && ms < HANG_UP_TIMEOUT_MS; ms += CONNECT_RETRY_MS)
	{
		struct pollfd p = {session->fd, POLLIN, 0};

		(void) poll(&p, 1, CONNECT_RETRY_MS);
		(void) engine_watch(&watch, engine_job(session));
		ended = !session_alive(session);
	}
	close(session->fd);
	return ended;
}

/* gpuvmd has gone while the job was on a device, for all that is known, which may not have stopped yet. */
static bool
device_may_write(const EngineSession *session)
{
	const Job  *job = arena_at<Job>(session->job);

	return session->events != NULL && !job_ended(session) && job->ran_on != Device::Cpu &&
		arena_header()->engine_reaped.load() < session->last_generation;
}

static void
destroy_session(EngineSession *session)
{
	EngineSession **at = &sessions;

	while (*at != session)
		at = &(*at)->next;
	*at = session->next;
	activity_end(session->activity);
	if (session->fd >= 0 && (!hang_up(session) || device_may_write(session)))
		area_abandon(session->job, session->area, session->last_generation);
	else
	{
		arena_free(session->area);
		arena_free(session->job);
	}
	if (session->events != NULL)
		FreeWaitEventSet(session->events);
	pfree(session);
}

/* Waits for the socket without serving interrupts; false on timeout or when an interrupt is pending. */
static bool
wait_readable(int fd, int timeout_ms)
{
	EngineWatch watch;

	engine_watch_begin(&watch, fd);
	for (int ms = 0; ms < timeout_ms; ms += CONNECT_RETRY_MS)
	{
		struct pollfd p = {fd, POLLIN, 0};

		if (poll(&p, 1, CONNECT_RETRY_MS) > 0)
			return true;
		if (InterruptPending)
			return false;
		(void) engine_watch(&watch, NULL);
	}
	return false;
}

/* A connected socket, or -1 with errno. */
static int
connect_once(void)
{
	struct sockaddr_un address;
	int			fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	strlcpy(address.sun_path, GPUVM_SOCKET_PATH, sizeof(address.sun_path));
	if (connect(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof(address)) != 0)
	{
		int			save_errno = errno;

		close(fd);
		errno = save_errno;
		return -1;
	}
	return fd;
}

static bool
peer_is_ours(int fd)
{
	struct ucred peer;
	socklen_t	len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static bool
say_hello(EngineSession *session)
{
	SessionHello hello = {};
	char		answer;

	hello.magic = JOB_MAGIC;
	hello.abi_version = ABI_VERSION;
	hello.epoch = arena_header()->epoch;
	hello.job = session->job;
	hello.backend_pid = static_cast<uint32_t>(MyProcPid);
	return peer_is_ours(session->fd) &&
		send(session->fd, &hello, sizeof(hello), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(hello)) &&
		wait_readable(session->fd, HELLO_TIMEOUT_MS) &&
		recv(session->fd, &answer, 1, 0) == 1;
}

/* A gpuvmd that was just killed still takes connections for a moment: then, too, the next one is waited for. */
static bool
connect_session(EngineSession *session, int wait_ms, const char **reason)
{
	for (int ms = 0;; ms += CONNECT_RETRY_MS)
	{
		/* Before connecting: a gpuvmd started later can only make the number too low, never too high. */
		session->generation = arena_header()->engine_generation.load();
		session->fd = connect_once();
		session->last_generation = arena_header()->engine_generation.load();
		if (session->fd >= 0 && say_hello(session))
			break;
		*reason = session->fd >= 0 ? "gpuvmd refused the session" : "gpuvmd is not running";
		if (InterruptPending || ms >= wait_ms || (session->fd >= 0 && session_alive(session)))
			return false;
		if (session->fd >= 0)
			close(session->fd);
		session->fd = -1;
		(void) poll(NULL, 0, CONNECT_RETRY_MS);
	}
	session->events = compat_create_wait_event_set(3);
	AddWaitEventToSet(session->events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(session->events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(session->events, WL_SOCKET_READABLE, session->fd, NULL, NULL);
	return true;
}

static EngineSession *
create_session(int wait_ms, const char **reason)
{
	EngineSession *session = static_cast<EngineSession *>(
		MemoryContextAllocExtended(TopMemoryContext, sizeof(EngineSession), MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO));

	if (session == NULL)
	{
		*reason = "out of memory";
		return NULL;
	}
	session->fd = -1;
	session->file = -1;
	session->number = ++last_number;
	session->next = sessions;
	sessions = session;
	session->job = arena_alloc_for_job(sizeof(Job));
	if (session->job == 0)
	{
		*reason = "gpuvm.memory is used up";
		destroy_session(session);
		return NULL;
	}
	new (arena_at<Job>(session->job)) Job();
	session->activity = activity_begin(session->job);
	engine_job(session)->magic = JOB_MAGIC;
	if (!connect_session(session, wait_ms, reason))
	{
		destroy_session(session);
		return NULL;
	}
	return session;
}

static bool settle(EngineSession *session);

static EngineSession *
idle_session(void)
{
	EngineSession *next;

	for (EngineSession *session = sessions; session != NULL; session = next)
	{
		next = session->next;
		if (session->in_use || session->sets != 0)
			continue;
		/* no wait event set: making it raised, out of file descriptors, say */
		if (session->events != NULL && session_alive(session) && settle(session))
			return session;
		destroy_session(session);
	}
	return NULL;
}

/* ---- result sets ----------------------------------------------------------------- */

static EngineSession *
find_session(uint64 number)
{
	EngineSession *session = sessions;

	while (session != NULL && session->number != number)
		session = session->next;
	return session;
}

/*
 * Drops that were sent have been done, which does not take long. The session is not in use. No interrupts. False: its
 * Job does not say so, perhaps because a wild write has changed what it said: the session is good for nothing any more.
 */
static bool
settle(EngineSession *session)
{
	EngineWatch watch;

	if (!session->in_flight)
		return true;
	engine_watch_begin(&watch, session->fd);
	for (int ms = 0; !Doorbell::spin([session] { return job_ended(session); }, SPIN); ms += ABORT_POLL_MS)
	{
		const JobState state = static_cast<JobState>(engine_job(session)->state.load());
		/* much memory takes its time: of that the watch judges */
		const bool	pending = state == JobState::Submitted || state == JobState::Running;

		session->broken = session->broken || (ms >= SETTLE_TIMEOUT_MS && !pending);
		if (!session_alive(session))
			return false;
		/* the word that says who sleeps may be garbage, too */
		if (state == JobState::Submitted && ms > 0 && ms % SETTLE_RING_MS < ABORT_POLL_MS)
			(void) send(session->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		(void) poll(NULL, 0, ABORT_POLL_MS);
		(void) engine_watch(&watch, engine_job(session));
	}
	session->in_flight = false;
	return true;
}

/* Nobody waits for it: whoever uses the session next does. */
static void
send_drops(EngineSession *session)
{
	Job		   *job = engine_job(session);

	if (session->dropped == 0 || session->events == NULL)
		return;
	if (!settle(session))
	{
		/* whoever would use it next ends it, and them with it */
		session->sets = session->dropped = 0;
		return;
	}
	job->kind = JobKind::Drop;
	job->drop_sets = session->dropped;
	job->cancel.store(0);
	session->sets &= ~session->dropped;
	session->dropped = 0;
	engine_submit(session, 0);
}

void
engine_settle(void)
{
	for (EngineSession *session = sessions; session != NULL; session = session->next)
	{
		if (!session->in_use && session->events != NULL)
			(void) settle(session);
	}
}

bool
engine_has_set(uint64 number, uint32 set)
{
	EngineSession *session = find_session(number);

	return session != NULL && (session->sets & ~session->dropped & uint64{1} << set) != 0 && session_alive(session);
}

uint32
engine_new_set(EngineSession *session)
{
	for (uint32 set = 1; set <= JOB_MAX_SETS; set++)
	{
		if ((session->sets & uint64{1} << set) != 0)
			continue;
		if (session->sets == 0)
			session->sets_owner = CurrentResourceOwner;
		session->sets |= uint64{1} << set;
		return set;
	}
	return 0;
}

void
engine_drop_sets(uint64 number, uint64 sets)
{
	EngineSession *session = find_session(number);

	if (session == NULL)
		return;
	session->dropped |= session->sets & sets;
	if (!session->in_use)
		send_drops(session);
}

/* ---- the ends of a session's use ------------------------------------------------- */

static void
end_all_sessions(int, Datum)
{
	while (sessions != NULL)
	{
		engine_abort(sessions);
		destroy_session(sessions);
	}
}

static void
release_owned(ResourceReleasePhase phase, bool, bool, void *)
{
	EngineSession *next;

	if (phase != RESOURCE_RELEASE_BEFORE_LOCKS)
		return;
	for (EngineSession *session = sessions; session != NULL; session = next)
	{
		next = session->next;
		if (session->sets != 0 && session->sets_owner == CurrentResourceOwner)
		{
			session->dropped = session->sets;
			if (!session->in_use)
				send_drops(session);
		}
		if (session->in_use && session->owner == CurrentResourceOwner)
		{
			/* the file is the owner's, who closes it himself: from PostgreSQL 17 on nobody else may */
			engine_abort(session);
			session->file = -1;
			engine_release(session);
		}
	}
}

static void
abort_all(XactEvent event, void *)
{
	if (event != XACT_EVENT_ABORT && event != XACT_EVENT_PARALLEL_ABORT)
		return;
	for (EngineSession *session = sessions; session != NULL; session = session->next)
		engine_abort(session);
}

void
engine_client_install(void)
{
	RegisterResourceReleaseCallback(release_owned, NULL);
	RegisterXactCallback(abort_all, NULL);
}

/* ---- the interface --------------------------------------------------------------- */

static EngineSession *
use_session(EngineSession *session)
{
	Job		   *job = engine_job(session);

	session->in_use = true;
	session->owner = CurrentResourceOwner;
	job->program_hash = 0;
	/* not the current user: SET ROLE would give a role others' shares */
	job->role = GetSessionUserId();
	job->share = static_cast<uint32>(setting_share);
	job->job_memory = static_cast<uint64>(setting_job_memory_mb) << 20;
	job->priority = setting_job_priority;
	job->queue_timeout = static_cast<uint32>(setting_queue_timeout_ms);
	job->rows_to_do.store(0);
	activity_use(session->activity);
	job->cancel.store(0);
	job->ran_on = Device::Cpu;
	job->sink.set = 0;
	job->drop_sets = 0;
	/* what a job does not need, and does not set */
	job->nparams = job->nmaps = job->nstages = job->npatterns = job->norder = job->ntext_orders = 0;
	job->device = Device::Auto;
	job->transfer = Transfer::Auto;
	job->state.store(static_cast<uint32_t>(JobState::Idle));
	return session;
}

EngineSession *
engine_acquire(int wait_ms, const char **reason)
{
	EngineSession *session;

	if (!shmem_available())
	{
		*reason = arena_failure();
		return NULL;
	}
	if (!exit_registered)
	{
		before_shmem_exit(end_all_sessions, 0);
		exit_registered = true;
	}
	session = idle_session();
	if (session == NULL)
		session = create_session(wait_ms, reason);
	return session == NULL ? NULL : use_session(session);
}

EngineSession *
engine_acquire_sets(uint64 *number, int wait_ms, const char **reason)
{
	EngineSession *session = find_session(*number);

	if (session != NULL && session->sets != 0)
	{
		*reason = session->in_use ? "the session with the result sets is in use" : "gpuvmd has gone with its result sets";
		return session->in_use || !session_alive(session) || !settle(session) ? NULL : use_session(session);
	}
	session = engine_acquire(wait_ms, reason);
	if (session != NULL)
		*number = session->number;
	return session;
}

bool
engine_ended_by_device(const EngineSession *session)
{
	return arena_header()->device_ends.load() != session->device_ends;
}

uint32
engine_generation(const EngineSession *session)
{
	return session->generation;
}

Job *
engine_job(EngineSession *session)
{
	return arena_at<Job>(session->job);
}

static void
give_area(EngineSession *session)
{
	if (session->area == 0)
		return;
	session->last_area = area_give(session->area, session->area_size);
	session->area = session->area_size = 0;
}

uint64
engine_area(EngineSession *session, uint64 size)
{
	Assert(!session->in_flight);
	if (size > session->area_size)
	{
		give_area(session);
		session->area_size = size;
		session->area = area_take(&session->area_size, session->last_area);
		activity_memory(session->activity, session->area_size);
	}
	return session->area;
}

static void
ring(EngineSession *session)
{
	Job		   *job = engine_job(session);

	if (job->engine_waiting.load() != 0 && job->engine_waiting.exchange(0) != 0)
		(void) send(session->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
engine_submit(EngineSession *session, int nbuffers)
{
	Assert(nbuffers <= JOB_MAX_BUFFERS);
	job_file_end(&session->file, engine_job(session));
	engine_job(session)->spill_wanted.store(0);
	engine_job(session)->spill_room.store(0);
	session->in_flight = true;
	session->nbuffers = nbuffers;
	engine_job(session)->submission = ++session->submission;
	engine_job(session)->magic = JOB_MAGIC;
	engine_job(session)->nbuffers = static_cast<uint32_t>(nbuffers);
	session->device_ends = arena_header()->device_ends.load();
	activity_submit(session->activity);
	engine_job(session)->state.store(static_cast<uint32_t>(JobState::Submitted));
	ring(session);
}

void
engine_buffer_freed(EngineSession *session)
{
	if (engine_job(session)->state.load() == static_cast<uint32_t>(JobState::Suspended))
		ring(session);
}

EngineWait
engine_wait(EngineSession *session, int64 unit)
{
	Job		   *job = engine_job(session);
	bool		lost = !session->in_flight && !job_ended(session);
	EngineWatch watch;
	/* The end is looked at first: what was published before it is then seen too. */
	auto		moved = [session, unit] { return job_ended(session) || any_full(session, unit) || wants_room(session); };

	/* Many tablets take gpuvmd a moment before a device has the job. */
	if (!lost && !Doorbell::spin(moved, SPIN) && arena_header()->awake.load() <= arena_header()->most_awake.load() &&
		(job->ran_on == Device::Cuda || (job->device != Device::Cpu && !Doorbell::spin(moved, SPIN) && job->ran_on == Device::Cuda)))
		(void) Doorbell::spin(moved, DEVICE_SPIN);
	engine_watch_begin(&watch, session->fd);
	for (;;)
	{
		bool		ended = job_ended(session);
		WaitEvent	events[3];
		int			n;

		if (ended || lost)
			session->in_flight = false;
		if (any_full(session, unit))
			return ENGINE_BUFFER_FULL;
		if (ended)
			return ENGINE_ENDED;
		if (lost)
			return ENGINE_LOST;

		CHECK_FOR_INTERRUPTS();
		if (wants_room(session))
			job_file_grow(&session->file, job, session->owner);
		job->backend_waiting.store(1);
		if (moved())
		{
			job->backend_waiting.store(0);
			continue;
		}
		n = WaitEventSetWait(session->events, ENGINE_LOOK_MS, events, lengthof(events), compat_wait_event("GpuvmJob"));
		job->backend_waiting.store(0);
		(void) engine_watch(&watch, job);
		/* if it sleeps on, the word that says so was changed by mistake */
		if (n == 0 && job->state.load() == static_cast<uint32_t>(JobState::Submitted))
			(void) send(session->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		for (int i = 0; i < n; i++)
		{
			if (events[i].events & WL_LATCH_SET)
				ResetLatch(MyLatch);
			if (events[i].events & WL_SOCKET_READABLE)
				lost = !session_alive(session);
		}
	}
}

void
engine_abort(EngineSession *session)
{
	Job		   *job = engine_job(session);
	EngineWatch watch;

	if (!session->in_flight)
		return;
	job->cancel.store(1);
	(void) Doorbell::spin([session] { return job_ended(session); }, SPIN);
	engine_watch_begin(&watch, session->fd);
	while (!job_ended(session))
	{
		struct pollfd p = {session->fd, POLLIN, 0};

		ring(session);
		job->backend_waiting.store(1);
		if (!job_ended(session))
			(void) poll(&p, 1, ABORT_POLL_MS);
		job->backend_waiting.store(0);
		if (!session_alive(session))
			break;
		(void) engine_watch(&watch, job);
	}
	session->in_flight = false;
}

void
engine_release(EngineSession *session)
{
	engine_abort(session);
	job_file_end(&session->file, engine_job(session));
	engine_job(session)->cancel.store(0);
	session->in_use = false;
	session->owner = NULL;
	activity_release(session->activity);
	if (!session_alive(session))
	{
		destroy_session(session);
		return;
	}
	send_drops(session);
	give_area(session);
}

int64
engine_ping(const char **reason)
{
	EngineSession *session = engine_acquire(0, reason);
	struct timespec start;
	struct timespec end;
	EngineWait	outcome;

	if (session == NULL)
		return -1;
	engine_job(session)->kind = JobKind::Ping;
	clock_gettime(CLOCK_MONOTONIC, &start);
	engine_submit(session, 0);
	outcome = engine_wait(session);
	clock_gettime(CLOCK_MONOTONIC, &end);
	engine_release(session);
	if (outcome != ENGINE_ENDED)
	{
		*reason = "gpuvmd is not running";
		return -1;
	}
	return (static_cast<int64>(end.tv_sec) - start.tv_sec) * 1000000000 + (end.tv_nsec - start.tv_nsec);
}

void
engine_wait_for_devices(int timeout_ms)
{
	for (int ms = 0; ms < timeout_ms; ms += CONNECT_RETRY_MS)
	{
		if (arena_header()->cuda_state.load() != static_cast<uint32_t>(DeviceState::Starting))
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, CONNECT_RETRY_MS, compat_wait_event("GpuvmDevices"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

void
engine_prepare(uint64 version)
{
	const char *reason;
	EngineSession *session;
	Job		   *job;

	if (arena_header()->cuda_state.load() != static_cast<uint32_t>(DeviceState::Ready))
		return;
	session = engine_acquire(0, &reason);
	if (session == NULL)
		return;
	job = engine_job(session);
	job->kind = JobKind::Prepare;
	job->program = 0;
	job->program_size = 0;
	job->cursors[0] = version_cursor(arena_at<TableVersion>(version), version);
	job->ncursors = 1;
	engine_submit(session, 0);
	/* At a subtransaction's abort the version goes before sessions are released: the job must have ended then. */
	PG_TRY();
	{
		(void) engine_wait(session);
	}
	PG_FINALLY();
	{
		engine_release(session);
	}
	PG_END_TRY();
}

uint32
engine_threads(void)
{
	const uint32 threads = arena_header() == NULL ? 0 : arena_header()->engine_threads.load();

	return Min(threads, MAX_ENGINE_THREADS);
}

char *
engine_text(const char *text, size_t size)
{
	char	   *copy = pnstrdup(text, size);

	for (char *c = copy; *c != '\0'; c++)
	{
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	return copy;
}

bool
engine_status_sentence(char *buf, size_t size)
{
	ArenaHeader *header = arena_header();
	uint32_t	pid;

	if (header == NULL)
	{
		snprintf(buf, size, "gpuvmd is not started: %s", arena_failure());
		return false;
	}
	pid = header->engine_pid.load();
	if (pid == 0)
	{
		char		status[sizeof(header->engine_status)];

		strlcpy(status, header->engine_status, sizeof(status));
		snprintf(buf, size, "gpuvmd is not running: %s", status);
		return false;
	}
	snprintf(buf, size, "gpuvmd is running: PID %u, %u threads, start number %u", pid, engine_threads(),
			 header->engine_generation.load());
	if (may_see_all_stats())
		snprintf(buf + strlen(buf), size - strlen(buf), ", " UINT64_FORMAT " of " UINT64_FORMAT " MB of memory in use, " UINT64_FORMAT " MB spare",
				 arena_used() / (1024 * 1024), arena_size() / (1024 * 1024), areas_spare() / (1024 * 1024));
	return true;
}

}  // namespace gpuvm
