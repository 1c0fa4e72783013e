/*
 * estimates.h: what jobs take on each engine, as those that ran before show it.
 *
 * The constants of cost.h (and a device's) are of the machine that they were
 * measured on, and know little of a program. Each program that ran corrects
 * them for itself, and a little for all others: what it took by what was
 * expected of an idle engine. An engine that was passed over for long is trusted
 * up to twice as much as what was seen of it says, for a job may have been slow
 * for a reason that has gone.
 */
#ifndef GPUVM_ENGINE_ESTIMATES_H
#define GPUVM_ENGINE_ESTIMATES_H

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/abi.h"

namespace gpuvm {

class Estimates
{
public:
	/* Programs that are remembered, at most: one that meets another in its place replaces it. */
	static constexpr size_t PROGRAMS = 4096;

	/* By which an estimate for the engine, Cpu or Cuda, is to be multiplied. */
	double		factor(uint64_t program, Device engine);

	/* An engine was expected to take so many ns, had it been idle, and would have taken so many. */
	void		observe(uint64_t program, Device engine, double expected, double took);

private:
	struct Ratio
	{
		float		log = 0;	/* of what was seen by what was expected */
		bool		seen = false;
		uint16_t	passed_over = 0;	/* runs on the other engine since */
	};

	struct Observed
	{
		uint64_t	program = 0;
		std::array<Ratio, 2> engines;
	};

	static size_t index(Device engine) { return engine == Device::Cuda ? 1 : 0; }

	std::mutex	mutex_;
	std::vector<Observed> programs_;
	std::array<Ratio, 2> all_;
};

/* Jobs of this gpuvmd on one engine. */
struct EngineLoad
{
	std::atomic<uint32_t> running{0};
	std::atomic<uint64_t> begun{0};
};

/* One more, as long as it lives. */
class RunsOnEngine
{
public:
	explicit RunsOnEngine(EngineLoad *load) : load_(load), others_(load->running.fetch_add(1)), begun_(load->begun.fetch_add(1) + 1) {}
	~RunsOnEngine() { load_->running.fetch_sub(1); }
	RunsOnEngine(const RunsOnEngine &) = delete;
	RunsOnEngine &operator=(const RunsOnEngine &) = delete;

	uint32_t others() const { return others_; }	/* when it began */
	bool alone() const { return others_ == 0 && load_->begun.load() == begun_; }

private:
	EngineLoad *load_;
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
