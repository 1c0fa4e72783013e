/*
 * session.cc: the conversation of one session.
 *
 * Between jobs a session first waits awake. Waking a sleeping thread takes 60 us
 * and more where the processor has to be woken too, which is as much as a whole
 * query on a small table. It waits so for a moment after every job, and as long
 * as busy_wait when the last job came that soon after the one before: a client
 * that sends query after query finds it awake, one that comes now and then pays
 * the wake-up and costs nothing. Nobody waits so long where more than half as many
 * sessions as processors have jobs or wait awake (a session's backend works when
 * the session does not), nor on a processor that another thread wants (Doorbell::spin).
 */
#include "engine/session.h"

#include <sys/socket.h>
#include <sys/time.h>

#include "engine/awake.h"
#include "engine/job_dispatch.h"

namespace gpuvm {

constexpr int HELLO_TIMEOUT_S = 5;
constexpr uint64_t JOB_ALIGN = 64;
constexpr std::chrono::nanoseconds SHORT_SPIN = std::chrono::microseconds(50);

static void
set_receive_timeout(int fd, int seconds)
{
	struct timeval timeout = {seconds, 0};

	(void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

/* The session's Job, writable as long as `uses` lives, or nullptr when the first message is not what it should be. */
static Job *
receive_hello(const ArenaMap &arena, int fd, PageUses *uses)
{
	SessionHello hello;
	ssize_t		n;

	set_receive_timeout(fd, HELLO_TIMEOUT_S);
	n = recv(fd, &hello, sizeof(hello), MSG_WAITALL);
	set_receive_timeout(fd, 0);
	if (n != static_cast<ssize_t>(sizeof(hello)) || hello.magic != JOB_MAGIC ||
		hello.abi_version != ABI_VERSION || hello.epoch != arena.header()->epoch)
		return nullptr;
	return arena.open<Job>(hello.job, sizeof(Job), JOB_ALIGN, uses);
}

/* Waits for the next job, awake for at most `spin`. False at the session's end. */
static bool
next_job(Job *job, Doorbell *doorbell, Awake *awake, std::chrono::nanoseconds spin)
{
	auto		submitted = [job] { return job->state.load() == static_cast<uint32_t>(JobState::Submitted); };

	/* A cancel without a job: the backend is about to hang up. */
	spin = awake->too_many() ? SHORT_SPIN : spin;
	if (Doorbell::spin([&] { return submitted() || job->cancel.load() != 0; }, spin) && submitted())
		return true;
	awake->leave();
	if (!doorbell->sleep(submitted))
		return false;
	awake->enter();
	return true;
}

static void
serve_jobs(EngineContext *context, int fd, Job *job)
{
	Doorbell	doorbell(fd, job);
	SetStore	sets(&context->set_memory);
	SessionShare share;
	std::chrono::nanoseconds spin = SHORT_SPIN;
	auto		since = std::chrono::steady_clock::now();
	Awake		awake(context->arena.header());

	WorkerPool::works_for_session(&share);
	while (next_job(job, &doorbell, &awake, spin))
	{
		spin = std::chrono::steady_clock::now() - since < context->busy_wait ? std::chrono::nanoseconds(context->busy_wait) : SHORT_SPIN;
		const uint64_t submission = job->submission;

		job->state.store(static_cast<uint32_t>(JobState::Running));
		if (share.role != job->role)
			share = SessionShare();
		share.role = job->role;
		share.weight = job->share >= 1 && job->share <= MAX_SHARE ? job->share : DEFAULT_SHARE;

		bool		done = job->kind == JobKind::Ping || run_job(context, &sets, &share, job, &doorbell);

		job->ended.store(submission);
		job->state.store(static_cast<uint32_t>(done ? JobState::Done : JobState::Failed));
		doorbell.ring();
		since = std::chrono::steady_clock::now();
	}
}

void
serve_session(EngineContext *context, int fd)
{
	PageUses	uses;
	Job		   *job = receive_hello(context->arena, fd, &uses);

	if (job == nullptr)
		return;
	if (send(fd, "", 1, MSG_NOSIGNAL) == 1)
		serve_jobs(context, fd, job);
	/* From here on the Job's memory may be somebody else's. */
	if (job->parting.exchange(static_cast<uint32_t>(Parting::Engine)) == static_cast<uint32_t>(Parting::Backend) &&
		context->control_fd >= 0)
		(void) send(context->control_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace gpuvm
