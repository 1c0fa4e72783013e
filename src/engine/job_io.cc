/* job_io.cc: a running job's conversation with its backend. */
#include "engine/job_io.h"

#include <cstdio>

#include "engine/awake.h"
#include "vm/memory_budget.h"

namespace gpuvm {

constexpr std::chrono::milliseconds LOOK_INTERVAL(1);
constexpr std::chrono::microseconds SPIN_FOR_ROOM(100);

void
JobIo::fail(const char *why)
{
	if (!failed_.exchange(true))
		snprintf(failure_, sizeof(failure_), "%s", why);
	stop();
}

void
JobIo::fail_memory()
{
	if (!failed_.load())
		short_of_memory_.store(true);
	fail(OUT_OF_MEMORY);
}

/* Without the session's sets: who says so of them is not waited for until his job ends. */
static void
wait_with_memory(bool waits)
{
	if (JobMemory::current() != nullptr)
		JobMemory::current()->wait_for_client(waits);
}

/* The backend waits for the job meanwhile, as a rule: if it does not answer, others are to have the processor, and not to wait for the memory. */
bool
JobIo::grow_spill(uint64_t bytes)
{
	const auto	grown = [this, bytes] { return job_->spill_room.load() >= bytes || stopping(); };

	if (job_->spill_wanted.load() < bytes)
		job_->spill_wanted.store(bytes);
	doorbell_->ring();
	if (!Doorbell::spin(grown, SPIN_FOR_ROOM))
	{
		if (turn_ && std::this_thread::get_id() == owner_)
			turn_->leave();
		wait_with_memory(true);
		while (!grown() && !doorbell_->gone())
			std::this_thread::sleep_for(LOOK_INTERVAL);
		wait_with_memory(false);
	}
	return job_->spill_room.load() >= bytes;
}

int
JobIo::claim_buffer()
{
	for (uint32_t i = 0; i < request_.nbuffers; i++)
	{
		uint32_t	expected = static_cast<uint32_t>(BufferState::Free);

		if (job_->buffers[i].state.load(std::memory_order_relaxed) == expected &&
			job_->buffers[i].state.compare_exchange_strong(expected, static_cast<uint32_t>(BufferState::Filling)))
			return static_cast<int>(i);
	}
	return -1;
}

void
JobIo::publish_part(int buffer, uint32_t unit, uint32_t part, bool last, uint32_t nrows, uint32_t errors)
{
	ResultBuffer &to = job_->buffers[buffer];

	published_.store(true);
	to.unit = unit;
	to.nrows = nrows;
	to.errors = errors;
	to.part = part;
	to.last = last;
	to.state.store(static_cast<uint32_t>(BufferState::Full));
	doorbell_->ring();
	if (rows_out_.fetch_add(nrows) + nrows >= request_.row_limit && request_.row_limit > 0)
		stop();
}

void
JobIo::unclaim(int buffer)
{
	job_->buffers[buffer].state.store(static_cast<uint32_t>(BufferState::Free));
}

void
JobIo::unclaim_all()
{
	for (uint32_t i = 0; i < request_.nbuffers; i++)
	{
		uint32_t	expected = static_cast<uint32_t>(BufferState::Filling);

		(void) job_->buffers[i].state.compare_exchange_strong(expected, static_cast<uint32_t>(BufferState::Free));
	}
}

bool
JobIo::stopped()
{
	if (stopping())
		return true;

	auto		now = std::chrono::steady_clock::now();

	if (now < next_look_)
		return false;
	if (turn_)
	{
		waited_ += turn_->look([this]
		{
			job_->waits.store(WAITS_FOR_PROCESSOR, std::memory_order_relaxed);
			return stopping() || doorbell_->gone();
		});
		job_->waits.store(0, std::memory_order_relaxed);
	}
	next_look_ = std::chrono::steady_clock::now() + LOOK_INTERVAL;
	if (doorbell_->gone())
		fail("the backend has gone");
	return stopping();
}

int
JobIo::free_buffers() const
{
	int			n = 0;

	for (uint32_t i = 0; i < request_.nbuffers; i++)
		n += job_->buffers[i].state.load() == static_cast<uint32_t>(BufferState::Free);
	return n;
}

/* Who is short of memory is not to wait for what this job has. */
void
JobIo::wait_for_client(bool waits)
{
	wait_with_memory(waits);
	if (request_.account != nullptr)
		request_.account->wait_for_client(waits);
}

bool
JobIo::wait_for_buffer()
{
	auto		since = std::chrono::steady_clock::now();
	bool		impatient = patience_.count() > 0 && published();
	auto		moved = [this] { return free_buffers() > 0 || job_->cancel.load() != 0; };
	bool		alive;

	if (turn_)
		turn_->leave();
	wait_for_client(true);
	job_->state.store(static_cast<uint32_t>(JobState::Suspended));
	{
		const Awake::Sleeps sleeps;

		alive = impatient ? doorbell_->sleep_for(moved, patience_) : doorbell_->sleep(moved);
	}
	job_->state.store(static_cast<uint32_t>(JobState::Running));
	wait_for_client(false);
	waited_ += std::chrono::steady_clock::now() - since;
	if (!alive)
		fail("the backend has gone");
	else if (impatient && !moved())
	{
		yielded_ = true;
		fail("no rows were taken, and others want the device");
	}
	return !stopping();
}

int
JobIo::claim_or_wait()
{
	int			buffer;

	while (!stopping())
	{
		if ((buffer = claim_buffer()) >= 0)
			return buffer;
		if (!wait_for_buffer())
			break;
	}
	return -1;
}

}  // namespace gpuvm
