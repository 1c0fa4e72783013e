/*
 * estimates.h: what jobs take on each engine, as those that ran before show it.
 *
 * The constants of cost.h (and a device's) are of the machine that they were
 * measured on, and know little of a program. Each program that ran corrects
 * them for itself, and a little for all others: what it took by what was
 * expected of an idle engine. A job may have been slow for a reason that has gone,
 * so an engine that was passed over is tried again as if nothing had been seen of
 * it: after 64 runs elsewhere, then after eight times as many, and so on.
 */
#ifndef GPUVM_ENGINE_ESTIMATES_H
#define GPUVM_ENGINE_ESTIMATES_H

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace gpuvm {

/* Where a job may run. Copying columns to a device first takes longer, but each time only where they do not stay. */
enum class Way { Cpu, Device, DeviceCopies };

class Estimates
{
public:
	/* Programs that are remembered, at most. */
	static constexpr size_t PROGRAMS = 4096;

	Estimates() : programs_(PROGRAMS) {}

	/* By which an estimate is to be multiplied. */
	double		factor(uint64_t program, Way way);

	/* A job goes that way. */
	void		begin(uint64_t program, Way way);

	/* It was expected to take so many ns, what others add included, and took so many. */
	void		observe(uint64_t program, Way way, double expected, double took);

private:
	struct Ratio
	{
		float		log = 0;	/* of what was seen by what was expected */
		bool		seen = false;
		uint32_t	passed_over = 0;	/* runs on the other engine since */
		uint32_t	patience = 64;	/* how many of these there are to be, */
		bool		tried = false;	/* until it was tried again: what comes of that replaces what was seen */
	};

	struct Observed
	{
		uint64_t	program = 0;
		uint64_t	last = 0;	/* clock_ when it was seen last */
		std::array<Ratio, 3> ways;
	};

	static size_t index(Way way) { return static_cast<size_t>(way); }
	Observed   *find(uint64_t program);

	std::mutex	mutex_;
	std::vector<Observed> programs_;	/* each has two places to be in */
	uint64_t	clock_ = 0;
	std::array<float, 3> all_ = {};
};

/* Jobs of this gpuvmd on one engine. */
struct EngineLoad
{
	std::atomic<uint32_t> running{0};
	std::atomic<uint64_t> begun{0};
	std::atomic<uint32_t> unknown{0};	/* those of which nobody knows how long they keep the engine busy, */
	std::atomic<uint64_t> work{0};	/* and so many ns all others */

	/* What those that run add to the time of one that keeps the engine busy for so many ns: they share it evenly. */
	double		added(double own) const { return added(own, running.load(), unknown.load(), work.load()); }
	static double added(double own, uint32_t jobs, uint32_t unknown, uint64_t work)
	{
		return std::min(own * jobs, static_cast<double>(work) + own * unknown);
	}
};

/* One more, as long as it lives. */
class RunsOnEngine
{
public:
	explicit RunsOnEngine(EngineLoad *load, uint64_t work = 0)
		: load_(load), work_(work), added_(load->added(static_cast<double>(work))), others_(load->running.fetch_add(1)),
		  begun_(load->begun.fetch_add(1) + 1)
	{
		load->work.fetch_add(work);
		load->unknown.fetch_add(work == 0);
	}
	~RunsOnEngine()
	{
		load_->work.fetch_sub(work_);
		load_->unknown.fetch_sub(work_ == 0);
		load_->running.fetch_sub(1);
	}
	RunsOnEngine(const RunsOnEngine &) = delete;
	RunsOnEngine &operator=(const RunsOnEngine &) = delete;

	/* EngineLoad.added() of the others: at its beginning, or now if that is more. */
	double added() const
	{
		return std::max(added_, EngineLoad::added(static_cast<double>(work_), load_->running.load() - 1, load_->unknown.load(),
												  load_->work.load() - work_));
	}
	bool alone() const { return others_ == 0 && load_->begun.load() == begun_; }

private:
	EngineLoad *load_;
	uint64_t	work_;
	double		added_;
	uint32_t	others_;
	uint64_t	begun_;
};

/* Clearly better on an idle engine. */
constexpr double CLEARLY = 2;

/*
 * Is a device to run it? Each job is to take the engine that has less work with
 * it, or both would get slower under load; where there is little between them it
 * takes the one that will be done sooner. Times in ns: idle, and with what runs there.
 */
inline bool
device_is_better(double cpu, double busy_cpu, double device, double busy_device)
{
	if (device * CLEARLY < cpu)
		return true;
	return cpu * CLEARLY >= device && busy_device < busy_cpu;
}

}  // namespace gpuvm

#endif
