/* blame.cc: see blame.h. */
#include "engine/blame.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace gpuvm {

constexpr int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t CRASH_STACK = 32 * 1024;

/* Atomic because a handler of the same thread reads them. */
static thread_local std::atomic<uint64_t> my_program{0};
static thread_local std::atomic<Device> my_device{Device::Cpu};
static ArenaHeader *blamed_header;

/* ---- a crash --------------------------------------------------------------- */

/* The first one counts: what others meet may come of it. */
static void
write_blame(ArenaHeader *header, WorksFor whom, int signal)
{
	Blame	   *blame = &header->blame;
	uint32_t	none = static_cast<uint32_t>(BlameState::None);

	if (whom.program == 0 || !blame->state.compare_exchange_strong(none, static_cast<uint32_t>(BlameState::Writing)))
		return;
	blame->signal.store(static_cast<uint32_t>(signal));
	blame->device.store(static_cast<uint32_t>(whom.device));
	blame->program.store(whom.program);
	blame->state.store(static_cast<uint32_t>(BlameState::Written));
}

/* SIGABRT comes from the thread itself; what somebody sends to the process says nothing about the thread that it meets. */
static void
on_crash(int signal, siginfo_t *info, void *)
{
	if (info->si_code != SI_USER)
		write_blame(blamed_header, works_for(), signal);
	/* SA_RESETHAND: the default action, and a core file of the place where it happened */
	(void) raise(signal);
}

void
blame_install(ArenaHeader *header)
{
	struct sigaction action = {};

	blamed_header = header;
	action.sa_sigaction = on_crash;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
	sigemptyset(&action.sa_mask);
	for (int signal : CRASHES)
		(void) sigaction(signal, &action, nullptr);
}

void
blame_device(ArenaHeader *header)
{
	write_blame(header, WorksFor{header->on_devices.alone(), Device::Cuda}, 0);
}

CrashStack::CrashStack()
	: size_(std::max(CRASH_STACK, 4 * static_cast<size_t>(std::max(0L, sysconf(_SC_MINSIGSTKSZ)))))
{
	stack_t		stack = {};

	memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory_ == MAP_FAILED)
		return;
	stack.ss_sp = memory_;
	stack.ss_size = size_;
	(void) sigaltstack(&stack, nullptr);
}

CrashStack::~CrashStack()
{
	stack_t		none = {};

	if (memory_ == MAP_FAILED)
		return;
	none.ss_flags = SS_DISABLE;
	(void) sigaltstack(&none, nullptr);
	(void) munmap(memory_, size_);
}

/* ---- who works for whom ------------------------------------------------------ */

WorksFor
works_for()
{
	return WorksFor{my_program.load(std::memory_order_relaxed), my_device.load(std::memory_order_relaxed)};
}

static void
work_for(WorksFor whom)
{
	my_device.store(whom.device, std::memory_order_relaxed);
	my_program.store(whom.program, std::memory_order_relaxed);
}

HelpsProgram::HelpsProgram(WorksFor whom) : before_(works_for())
{
	work_for(whom);
}

HelpsProgram::~HelpsProgram()
{
	work_for(before_);
}

static void
begin(RunningPrograms *running, uint64_t program)
{
	if (program == 0)
		return;
	running->hashes.fetch_xor(program);
	running->count.fetch_add(1);
}

static void
end(RunningPrograms *running, uint64_t program)
{
	if (program == 0)
		return;
	running->count.fetch_sub(1);
	running->hashes.fetch_xor(program);
}

RunsProgram::RunsProgram(ArenaHeader *header, uint64_t program)
	: helps_(WorksFor{program, Device::Cpu}), running_(&header->running), program_(program)
{
	begin(running_, program_);
}

RunsProgram::~RunsProgram()
{
	end(running_, program_);
}

RunsOnDevice::RunsOnDevice(ArenaHeader *header)
	: helps_(WorksFor{works_for().program, Device::Cuda}), running_(&header->on_devices), program_(works_for().program)
{
	begin(running_, program_);
}

RunsOnDevice::~RunsOnDevice()
{
	end(running_, program_);
}

}  // namespace gpuvm
