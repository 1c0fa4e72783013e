/*
 * quarantine_table.h: which programs have ended gpuvmd, and until when they are not run again.
 *
 * The second crash of a program bars it for a minute, each further one for twice as long, up to a day. A run without a crash
 * after that forgets one, a day without any forgets all. Nothing of PostgreSQL is used here, so that a unit test can have it.
 *
 * One writer at a time, under the caller's lock. Readers have none: while an entry is being replaced they may find a bar
 * that is not theirs, for one execution.
 */
#ifndef GPUVM_PG_QUARANTINE_TABLE_H
#define GPUVM_PG_QUARANTINE_TABLE_H

#include <algorithm>
#include <atomic>
#include <csignal>

#include "engine/abi.h"

namespace gpuvm {

using Microseconds = int64_t;

constexpr Microseconds FIRST_BAR = 60 * 1000000LL;
constexpr Microseconds LONGEST_BAR = 24 * 3600 * 1000000LL;
constexpr uint32_t CRASHES_TO_BAR = 2;

/* What ended gpuvmd: a signal's number, or one of these. */
constexpr uint32_t CAUSE_DEVICE = 0;
constexpr uint32_t CAUSE_OUT_OF_MEMORY = SIGKILL;

/* A crash, and whose fault it was; program 0: nobody's. */
struct BlamedCrash
{
	uint64_t	program;
	Device		device;
	uint32_t	cause;
};

/* Of the others one is nobody's, and one has the key of a free entry. */
inline bool
is_program_hash(uint64_t hash)
{
	return hash != 0 && ~hash != 0;
}

/*
 * gpuvmd ended by the signal, or with the exit code if that is 0. `short_of_memory`: the kernel has killed a process for
 * want of memory meanwhile. What gpuvmd wrote is believed only where it fits how it ended.
 */
inline BlamedCrash
blame_crash(const ArenaHeader &header, int signal, int exit_code, bool short_of_memory)
{
	const Blame &blame = header.blame;
	const bool	written = blame.state.load() == static_cast<uint32_t>(BlameState::Written);
	const bool	device = blame.device.load() == static_cast<uint32_t>(Device::Cuda);
	const uint64_t alone = header.running.alone(), program = blame.program.load();

	if (signal == SIGKILL && short_of_memory && is_program_hash(alone))
		return {alone, header.on_devices.alone() == alone ? Device::Cuda : Device::Cpu, CAUSE_OUT_OF_MEMORY};
	if (signal == SIGKILL || !written || !is_program_hash(program) ||
		blame.signal.load() != static_cast<uint32_t>(signal) ||
		(signal == 0 && (exit_code != ENGINE_EXIT_DEVICE || !device)))
		return {0, Device::Cpu, 0};
	return {program, device ? Device::Cuda : Device::Cpu, static_cast<uint32_t>(signal)};
}

struct QuarantineEntry
{
	std::atomic<uint64_t> key;	/* 0: free */
	std::atomic<Microseconds> barred_until;	/* 0: it never was */
	Microseconds last_crash;
	Device		device;
	uint32_t	crashes;
	uint32_t	cause;			/* of the last */

	uint64_t program() const { return device == Device::Cuda ? ~key.load() : key.load(); }
	bool in_use() const { return key.load() != 0; }
};

class QuarantineTable
{
public:
	static constexpr int ENTRIES = 128;

	/* Nearly always. */
	bool empty() const { return entries_in_use_.load(std::memory_order_relaxed) == 0; }

	bool barred(uint64_t program, Device device, Microseconds now) const
	{
		const QuarantineEntry *entry = find(program, device);

		return entry != nullptr && entry->barred_until.load() > now;
	}

	/* Is there something that a run without a crash changes? */
	bool remembers_bar(uint64_t program, Device device, Microseconds now) const
	{
		const QuarantineEntry *entry = find(program, device);
		const Microseconds until = entry == nullptr ? 0 : entry->barred_until.load();

		return until != 0 && until <= now;
	}

	void count_crash(const BlamedCrash &crash, Microseconds now)
	{
		QuarantineEntry *entry = find(crash.program, crash.device);

		if (entry == nullptr)
		{
			entry = &*std::min_element(entries_, entries_ + ENTRIES,
									   [](const QuarantineEntry &a, const QuarantineEntry &b) { return worth(a) < worth(b); });
			if (entry->in_use())
				clear(entry);
			entries_in_use_.fetch_add(1);
			entry->device = crash.device;
			entry->key.store(key(crash.program, crash.device));
		}
		if (now - std::max(entry->last_crash, entry->barred_until.load()) > LONGEST_BAR)
			entry->crashes = 0;
		entry->crashes++;
		entry->cause = crash.cause;
		entry->last_crash = now;
		if (entry->crashes >= CRASHES_TO_BAR)
			entry->barred_until.store(now + bar(entry->crashes));
	}

	/* The program has run to its end, or was stopped by its backend. */
	void count_run(uint64_t program, Device device, Microseconds now)
	{
		QuarantineEntry *entry = find(program, device);

		if (remembers_bar(program, device, now) && --entry->crashes == 0)
			clear(entry);
	}

	/* The program's entries, or with 0 all; how many there were. */
	int forgive(uint64_t program)
	{
		int			count = 0;

		for (QuarantineEntry &entry : entries_)
		{
			if (!entry.in_use() || (program != 0 && entry.program() != program))
				continue;
			clear(&entry);
			count++;
		}
		return count;
	}

	const QuarantineEntry *begin() const { return entries_; }
	const QuarantineEntry *end() const { return entries_ + ENTRIES; }

	static Microseconds bar(uint32_t crashes)
	{
		return std::min(LONGEST_BAR, FIRST_BAR << std::min(crashes - CRASHES_TO_BAR, 20u));
	}

private:
	/* Where a device ended gpuvmd, the program still has the CPU. */
	static uint64_t key(uint64_t program, Device device) { return device == Device::Cuda ? ~program : program; }

	const QuarantineEntry *find(uint64_t program, Device device) const
	{
		const uint64_t wanted = key(program, device);

		for (const QuarantineEntry &entry : entries_)
		{
			if (entry.key.load(std::memory_order_relaxed) == wanted)
				return &entry;
		}
		return nullptr;
	}

	QuarantineEntry *find(uint64_t program, Device device)
	{
		return const_cast<QuarantineEntry *>(static_cast<const QuarantineTable *>(this)->find(program, device));
	}

	/* The least is replaced: free ones, then those that have not crashed, or been barred, for longest. */
	static Microseconds worth(const QuarantineEntry &entry)
	{
		return entry.in_use() ? std::max(entry.last_crash, entry.barred_until.load()) : 0;
	}

	void clear(QuarantineEntry *entry)
	{
		entries_in_use_.fetch_sub(1);
		entry->barred_until.store(0);
		entry->key.store(0);
		entry->last_crash = 0;
		entry->crashes = 0;
	}

	std::atomic<uint32_t> entries_in_use_;
	QuarantineEntry entries_[ENTRIES];
};

}  // namespace gpuvm

#endif
