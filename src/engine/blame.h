/*
 * blame.h: which program each thread works for, so that a crash can be blamed on it (Blame in abi.h).
 *
 * The session's thread says it for its job, the pool says it for its helpers. A thread that works for nobody
 * (waiting sessions, the acceptor, CUDA's own) leaves no evidence when it crashes.
 */
#ifndef GPUVM_ENGINE_BLAME_H
#define GPUVM_ENGINE_BLAME_H

#include "engine/abi.h"

namespace gpuvm {

/* Handles crashes of all threads from now on; they end the process as ever. `header` lives as long as the process. */
void		blame_install(ArenaHeader *header);

/* Of a device fault, by the thread that meets it: the program that was on devices, if there was only one. */
void		blame_device(ArenaHeader *header);

struct WorksFor
{
	uint64_t	program = 0;	/* Job.program_hash; 0: nobody */
	Device		device = Device::Cpu;
};

/* What this thread works for. */
WorksFor	works_for();

/* A helper of somebody else's job, as long as it lives. */
class HelpsProgram
{
public:
	explicit HelpsProgram(WorksFor whom);
	~HelpsProgram();
	HelpsProgram(const HelpsProgram &) = delete;
	HelpsProgram &operator=(const HelpsProgram &) = delete;

private:
	WorksFor	before_;
};

/* The session's thread runs the program, as long as it lives: counted among those that run. 0: a job without a program. */
class RunsProgram
{
public:
	RunsProgram(ArenaHeader *header, uint64_t program);
	~RunsProgram();

private:
	HelpsProgram helps_;
	RunningPrograms *running_;
	uint64_t	program_;
};

/* The device is at work for what this thread runs, as long as it lives. */
class RunsOnDevice
{
public:
	explicit RunsOnDevice(ArenaHeader *header);
	~RunsOnDevice();

private:
	HelpsProgram helps_;
	RunningPrograms *running_;
	uint64_t	program_;
};

/* A stack for the handler of the thread that makes it: the thread's own may be what overflowed. */
class CrashStack
{
public:
	CrashStack();
	~CrashStack();
	CrashStack(const CrashStack &) = delete;
	CrashStack &operator=(const CrashStack &) = delete;

private:
	void	   *memory_;
	size_t		size_;
};

}  // namespace gpuvm

#endif
