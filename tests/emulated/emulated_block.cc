/*
 * emulated_block.cc: blocks of fibers.
 *
 * One fiber runs at a time, warp after warp, each until it waits or ends, and
 * hands over to the next one that can run; the last one to the host thread that
 * launched them. A lane that comes to a
 * collective leaves its deposit; the last of the mask works out everybody's result
 * and makes them all ready again. Lanes that ended are not waited for. Lanes that
 * wait for one another in different collectives are found when nobody can run.
 *
 * All state belongs to the host thread, so several may launch at once. Fibers are
 * kept for the next block: their function loops. Sanitizers do not know of them, so
 * this file is compiled without.
 */
#include <boost/context/detail/fcontext.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cuda_runtime.h"

#include "emulated_block.h"

namespace gpuvm_emulated {

thread_local BuiltIns built_ins;

namespace {

namespace ctx = boost::context::detail;

constexpr size_t STACK_BYTES = 512 << 10;
constexpr uint32_t MAX_THREADS = 1024;
/* Atomics in a row after which a lane must be waiting for another one. */
constexpr uint32_t PATIENCE = 64;

enum class State : uint8_t
{
	Ready, InCollective, AtBarrier, Ended,
};

/* splitmix64 */
uint64_t
next_random(uint64_t *state)
{
	uint64_t	z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/*
 * Each stack begins at an offset of its own, modulo what the processor's caches are indexed by: all lanes of a block
 * run the same code, and the same few lines of 32 stacks of one alignment would drive one another out.
 */
class Stack
{
public:
	explicit Stack(uint32_t number)
		: top_(STACK_BYTES - number % 64 * 576)
	{
		size_t		page = static_cast<size_t>(getpagesize());

		base_ = static_cast<char *>(mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
		if (base_ == MAP_FAILED || mprotect(base_, page, PROT_NONE) != 0)
			fail("no memory for a fiber's stack");
	}
	~Stack()
	{
		munmap(base_, STACK_BYTES);
	}
	Stack(const Stack &) = delete;
	Stack &operator=(const Stack &) = delete;
	char	   *top() const { return base_ + top_; }
	size_t		bytes() const { return top_; }

private:
	char	   *base_;
	size_t		top_;
};

struct Fiber
{
	explicit Fiber(uint32_t n) : stack(n), number(n) {}

	Stack		stack;
	ctx::fcontext_t context = nullptr;

	State		state = State::Ended;
	const uint32_t number;			/* threadIdx.x */
	uint32_t	turns = 0;			/* chances to yield since it last waited */
	/* at a barrier or in a collective */
	const Operation *operation = nullptr;
	uint32_t	bytes = 0, mask = 0;
	Resolve		resolve = nullptr;
	bool		predicate = false;
	uint64_t	result = 0;
};

/* Order of n <= 2^k things: i -> (i * odd + shift) mod 2^k, skipping those that are not. */
struct Shuffle
{
	uint32_t	odd = 1, shift = 0, size = 1;

	Shuffle() = default;
	Shuffle(uint32_t n, uint64_t random)
	{
		while (size < n)
			size *= 2;
		if (random != 0)
		{
			odd = static_cast<uint32_t>(random >> 32) | 1;
			shift = static_cast<uint32_t>(random);
		}
	}
	uint32_t operator()(uint32_t i) const { return (i * odd + shift) & (size - 1); }
};

class Machine
{
public:
	void		run_block(const GridLaunch &launch, uint32_t block);

	uint64_t	rendezvous(const Operation &operation, uint32_t bytes, uint32_t mask, uint64_t value, int32_t param, Resolve resolve);
	uint32_t	barrier(const Operation &operation, bool predicate);
	void		may_yield();
	void		wait();
	bool		running() const { return current_ != nullptr; }
	void		describe(FILE *to) const;

private:
	Fiber	   *next();
	void		hand_over(Fiber *to);
	void		left(ctx::fcontext_t context);
	static void enter(ctx::transfer_t from);
	void		fiber_loop();
	bool		in_collective_of(uint32_t thread, const Fiber &f) const;
	bool		try_complete(const Fiber &f);
	void		complete_without_ended(uint32_t warp);
	void		release_barrier();

	std::vector<std::unique_ptr<Fiber>> fibers_;
	std::vector<Deposit> deposits_;
	const GridLaunch *launch_ = nullptr;
	uint32_t	block_ = 0;
	uint32_t	ended_ = 0, at_barrier_ = 0;
	const Operation *barrier_operation_ = nullptr;
	uint32_t	lanes_[MAX_THREADS / 32];			/* by warp: that have not ended */
	uint32_t	in_collective_[MAX_THREADS / 32];	/* that wait in one */
	Fiber	   *current_ = nullptr, *previous_ = nullptr;	/* nullptr: the host thread */
	ctx::fcontext_t host_ = nullptr;
	uint64_t	random_ = 0;
	/* where the turn is: all warps in some order, and of each all lanes; did any run in this round? */
	uint32_t	nwarps_ = 0, turn_ = 0;
	Shuffle		warps_, lanes_order_;
	bool		progress_ = false;
};

Machine &
machine()
{
	static thread_local Machine m;

	return m;
}

/* -- switching ------------------------------------------------------------------------ */

/* First run of a fiber, on its own stack. */
void
Machine::enter(ctx::transfer_t from)
{
	Machine    *m = static_cast<Machine *>(from.data);

	m->left(from.fctx);
	m->fiber_loop();
}

void
Machine::fiber_loop()
{
	Fiber	   *self = current_;

	for (;;)
	{
		launch_->thread(launch_->data);
		self->state = State::Ended;
		ended_++;
		lanes_[self->number / 32] &= ~(1u << self->number % 32);
		complete_without_ended(self->number / 32);
		release_barrier();
		wait();
	}
}

/* Whose turn it is; nullptr if all have ended. */
Fiber *
Machine::next()
{
	while (ended_ < launch_->threads)
	{
		if (turn_ == warps_.size * 32)
		{
			if (!progress_)
				fail("no thread of block %u can go on", block_);
			progress_ = false;
			turn_ = 0;
		}
		if (turn_ == 0)
			warps_ = Shuffle(nwarps_, random_ == 0 ? 0 : next_random(&random_));
		if (turn_ % 32 == 0)
			lanes_order_ = Shuffle(32, random_ == 0 ? 0 : next_random(&random_));

		const uint32_t warp = warps_(turn_ / 32);

		if (warp >= nwarps_)
		{
			turn_ += 32;
			continue;
		}

		const uint32_t n = warp * 32 + lanes_order_(turn_++ % 32);

		if (n < launch_->threads && fibers_[n]->state == State::Ready)
		{
			progress_ = true;
			return fibers_[n].get();
		}
	}
	return nullptr;
}

/* What ran before has stopped here. */
void
Machine::left(ctx::fcontext_t context)
{
	if (previous_ != nullptr)
		previous_->context = context;
	else
		host_ = context;
}

/* To a fiber, or nullptr: the host thread. */
void
Machine::hand_over(Fiber *to)
{
	if (to == current_)
		return;
	previous_ = current_;
	current_ = to;
	if (to != nullptr)
		built_ins.thread_idx = uint3{to->number, 0, 0};
	left(ctx::jump_fcontext(to != nullptr ? to->context : host_, this).fctx);
}

/* The running fiber, until its next turn. */
void
Machine::wait()
{
	current_->turns = 0;
	hand_over(next());
}

/* -- collectives ---------------------------------------------------------------------- */

/* Does that thread wait in the same collective as `f`, a lane of the same warp? */
bool
Machine::in_collective_of(uint32_t thread, const Fiber &f) const
{
	const Fiber &other = *fibers_[thread];

	return other.state == State::InCollective && other.mask == f.mask && other.bytes == f.bytes && other.operation == f.operation;
}

uint64_t
Machine::rendezvous(const Operation &operation, uint32_t bytes, uint32_t mask, uint64_t value, int32_t param, Resolve resolve)
{
	Fiber	   *self = current_;

	if (self == nullptr)
		fail("%s outside of a kernel", operation.name);

	uint32_t	warp = self->number / 32, lane = self->number % 32;

	if (!(mask >> lane & 1))
		fail("%s: thread %u is not in its mask %08x", operation.name, self->number, mask);
	self->state = State::InCollective;
	self->operation = &operation;
	self->bytes = bytes;
	self->mask = mask;
	self->resolve = resolve;
	deposits_[self->number] = Deposit{value, param};
	in_collective_[warp] |= 1u << lane;
	if (!try_complete(*self))
		wait();
	return self->result;
}

/* If all lanes of the collective that `f` waits in have come, or ended, they have their results. */
bool
Machine::try_complete(const Fiber &f)
{
	uint32_t	warp = f.number / 32, present = f.mask & lanes_[warp];
	uint64_t	results[32];

	if ((in_collective_[warp] & present) != present)
		return false;
	for (uint32_t l = 0; l < 32; l++)
		if ((present >> l & 1) != 0 && !in_collective_of(warp * 32 + l, f))
			return false;
	for (uint32_t l = 0; l < 32; l++)
		if (present >> l & 1)
			results[l] = f.resolve(&deposits_[warp * 32], present, l);
	for (uint32_t l = 0; l < 32; l++)
		if (present >> l & 1)
		{
			fibers_[warp * 32 + l]->result = results[l];
			fibers_[warp * 32 + l]->state = State::Ready;
		}
	in_collective_[warp] &= ~present;
	return true;
}

/* A lane ended: others may have waited for it alone. */
void
Machine::complete_without_ended(uint32_t warp)
{
	for (uint32_t l = 0; l < 32; l++)
		if (in_collective_[warp] >> l & 1)
			try_complete(*fibers_[warp * 32 + l]);
}

uint32_t
Machine::barrier(const Operation &operation, bool predicate)
{
	Fiber	   *self = current_;

	if (self == nullptr)
		fail("%s outside of a kernel", operation.name);
	if (at_barrier_ != 0 && barrier_operation_ != &operation)
		fail("thread %u in %s, others in %s", self->number, operation.name, barrier_operation_->name);
	barrier_operation_ = &operation;
	self->state = State::AtBarrier;
	self->operation = &operation;
	self->predicate = predicate;
	at_barrier_++;
	release_barrier();
	if (self->state == State::AtBarrier)
		wait();
	return static_cast<uint32_t>(self->result);
}

void
Machine::release_barrier()
{
	uint32_t	count = 0;

	if (at_barrier_ == 0 || at_barrier_ + ended_ < launch_->threads)
		return;
	for (uint32_t n = 0; n < launch_->threads; n++)
		count += fibers_[n]->state == State::AtBarrier && fibers_[n]->predicate;
	for (uint32_t n = 0; n < launch_->threads; n++)
		if (fibers_[n]->state == State::AtBarrier)
		{
			fibers_[n]->result = count;
			fibers_[n]->state = State::Ready;
		}
	at_barrier_ = 0;
}

void
Machine::may_yield()
{
	if (current_ == nullptr)
		return;
	if (++current_->turns >= PATIENCE || (random_ != 0 && next_random(&random_) % 8 == 0))
		wait();
}

/* -- blocks --------------------------------------------------------------------------- */

void
Machine::run_block(const GridLaunch &launch, uint32_t block)
{
	uint32_t	nwarps = (launch.threads + 31) / 32;
	void	   *shared = nullptr;

	/* Exactly as long as was asked for; never nullptr. */
	if (posix_memalign(&shared, 1024, launch.shared_bytes) != 0)
		fail("no memory for a block's shared memory");
	memset(shared, 0xa5, launch.shared_bytes);
	launch_ = &launch;
	block_ = block;
	ended_ = at_barrier_ = 0;
	random_ = launch.seed == 0 ? 0 : (launch.seed + block + 1) * 0x2545f4914f6cdd1d | 1;
	built_ins.block_idx = uint3{block, 0, 0};
	built_ins.block_dim = dim3(launch.threads);
	built_ins.grid_dim = dim3(launch.blocks);
	built_ins.dynamic_shared = static_cast<char *>(shared);
	deposits_.resize(MAX_THREADS);
	while (fibers_.size() < launch.threads)
	{
		std::unique_ptr<Fiber> f(new Fiber(static_cast<uint32_t>(fibers_.size())));

		f->context = ctx::make_fcontext(f->stack.top(), f->stack.bytes(), enter);
		fibers_.push_back(std::move(f));
	}
	for (uint32_t n = 0; n < launch.threads; n++)
		fibers_[n]->state = State::Ready;
	for (uint32_t w = 0; w < nwarps; w++)
	{
		lanes_[w] = launch.threads - w * 32 >= 32 ? ~0u : (1u << (launch.threads - w * 32)) - 1;
		in_collective_[w] = 0;
	}

	nwarps_ = nwarps;
	turn_ = 0;
	progress_ = true;
	hand_over(next());
	built_ins.dynamic_shared = nullptr;
	launch_ = nullptr;
	free(shared);
}

/* Threads in equal states together. */
void
Machine::describe(FILE *to) const
{
	if (launch_ == nullptr)
		return;
	fprintf(to, "block %u of %u:\n", block_, launch_->blocks);
	for (uint32_t n = 0, first = 0; n < launch_->threads; n++)
	{
		const Fiber &f = *fibers_[n];
		bool		last = n + 1 == launch_->threads;
		const Fiber &next = *fibers_[last ? n : n + 1];
		bool		waits = f.state == State::InCollective || f.state == State::AtBarrier;

		if (!last && next.state == f.state && (!waits || (next.operation == f.operation && next.mask == f.mask)))
			continue;
		fprintf(to, "  threads %u to %u: %s", first, n, f.state == State::Ended ? "ended" : f.state == State::Ready ? "can run" : f.operation->name);
		if (f.state == State::InCollective)
			fprintf(to, "(%08x)", f.mask);
		fprintf(to, "\n");
		first = n + 1;
	}
}

}  // namespace

void
fail(const char *format, ...)
{
	va_list		args;

	fprintf(stderr, "emulated device: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	machine().describe(stderr);
	abort();
}

uint64_t
rendezvous(const Operation &operation, uint32_t bytes, uint32_t mask, uint64_t value, int32_t param, Resolve resolve)
{
	return machine().rendezvous(operation, bytes, mask, value, param, resolve);
}

uint32_t
block_barrier(const Operation &operation, bool predicate)
{
	return machine().barrier(operation, predicate);
}

void
may_yield()
{
	machine().may_yield();
}

void
yield_now()
{
	if (machine().running())
		machine().wait();
}

void
run_blocks(const GridLaunch &launch)
{
	Shuffle		order(launch.blocks, launch.seed * 0x9e3779b97f4a7c15);

	if (machine().running())
		fail("a kernel cannot launch kernels");
	for (uint32_t i = 0; i < order.size; i++)
	{
		const uint32_t block = order(launch.backwards ? order.size - 1 - i : i);

		if (block < launch.blocks)
			machine().run_block(launch, block);
	}
}

}  // namespace gpuvm_emulated
