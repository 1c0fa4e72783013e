/* estimates.cc: see estimates.h. */
#include "engine/estimates.h"

#include <cmath>

namespace gpuvm {

/* Weights of what was seen last: of one program's runs, and of all programs'. */
constexpr float LAST_RUN = 0.25;
constexpr float LAST_OF_ALL = 1.0 / 32;
/* One program's error says no more than this of all. */
constexpr float MOST_OF_ALL = 1.4;
/* How much longer an engine is passed over each time. */
constexpr uint32_t LONGER = 8;
constexpr uint32_t MOST_PATIENCE = 1 << 24;

/* The program's place; else that of the two where another was seen least lately. */
Estimates::Observed *
Estimates::find(uint64_t program)
{
	Observed   *one = &programs_[program % PROGRAMS];
	Observed   *other = &programs_[(program * 0x9e3779b97f4a7c15 >> 32) % PROGRAMS];

	if (one->program == program)
		return one;
	if (other->program == program)
		return other;
	return one->last <= other->last ? one : other;
}

double
Estimates::factor(uint64_t program, Way way)
{
	std::lock_guard<std::mutex> lock(mutex_);
	Observed   *place = find(program);
	const Ratio &ratio = place->ways[index(way)];
	const float	all = all_[index(way)];

	if (place->program != program || !ratio.seen)
		return std::exp(all);
	return std::exp(ratio.passed_over < ratio.patience ? ratio.log : std::min(ratio.log, all));
}

void
Estimates::begin(uint64_t program, Way way)
{
	std::lock_guard<std::mutex> lock(mutex_);
	Observed   *place = find(program);
	Ratio	   *ratio = &place->ways[index(way)];

	if (place->program != program || ratio->passed_over < ratio->patience)
		return;
	/* others wait for what comes of it */
	ratio->passed_over = 0;
	ratio->patience = std::min(ratio->patience * LONGER, MOST_PATIENCE);
	ratio->tried = true;
}

void
Estimates::observe(uint64_t program, Way way, double expected, double took)
{
	if (!(expected > 0) || !(took > 0))
		return;

	const float log = static_cast<float>(std::log(took / expected));
	std::lock_guard<std::mutex> lock(mutex_);
	Observed   *place = find(program);

	if (place->program != program)
	{
		*place = Observed();
		place->program = program;
	}
	place->last = ++clock_;

	Ratio	   *ratio = &place->ways[index(way)];
	float	   *all = &all_[index(way)];

	if (!ratio->seen)
		*all += (std::clamp(log, -MOST_OF_ALL, MOST_OF_ALL) - *all) * LAST_OF_ALL;
	ratio->log += (log - ratio->log) * (!ratio->seen || ratio->tried ? 1 : LAST_RUN);
	/* it is chosen again and again */
	if (ratio->seen && !ratio->tried)
		ratio->patience = Ratio().patience;
	ratio->seen = true;
	ratio->tried = false;
	ratio->passed_over = 0;
	for (Ratio &other : place->ways)
		if ((&other == &place->ways[0]) != (way == Way::Cpu))
			other.passed_over++;
}

}  // namespace gpuvm
