/* estimates.cc: see estimates.h. */
#include "engine/estimates.h"

#include <algorithm>
#include <cmath>

namespace gpuvm {

/* Weights of what was seen last: of one program's runs, and of all programs'. */
constexpr float LAST_RUN = 0.25;
constexpr float LAST_OF_ALL = 1.0 / 32;
/* One program's error says no more than this of all. */
constexpr float MOST_OF_ALL = 1.4;
/* Passed over so often, an engine is trusted as much as it will be again. */
constexpr uint16_t TRUSTED_AGAIN = 64;

double
Estimates::factor(uint64_t program, Device engine)
{
	std::lock_guard<std::mutex> lock(mutex_);
	const Observed *slot = programs_.empty() ? nullptr : &programs_[program % PROGRAMS];

	if (slot == nullptr || slot->program != program || !slot->engines[index(engine)].seen)
		return std::exp(all_[index(engine)].log);

	const Ratio &ratio = slot->engines[index(engine)];
	const float	trust = static_cast<float>(M_LN2) * ratio.passed_over / TRUSTED_AGAIN;

	return std::exp(ratio.log - std::clamp(ratio.log, 0.0f, trust));
}

void
Estimates::observe(uint64_t program, Device engine, double expected, double took)
{
	if (!(expected > 0) || !(took > 0))
		return;

	const float log = static_cast<float>(std::log(took / expected));
	std::lock_guard<std::mutex> lock(mutex_);

	if (programs_.empty())
		programs_.resize(PROGRAMS);

	Observed   *slot = &programs_[program % PROGRAMS];
	Ratio	   *all = &all_[index(engine)];

	if (slot->program != program)
		*slot = Observed{program, {}};

	Ratio	   *ratio = &slot->engines[index(engine)];
	Ratio	   *other = &slot->engines[1 - index(engine)];

	if (!ratio->seen)
		all->log += (std::clamp(log, -MOST_OF_ALL, MOST_OF_ALL) - all->log) * LAST_OF_ALL;
	ratio->log += (log - ratio->log) * (!ratio->seen ? 1 : LAST_RUN);
	ratio->seen = true;
	ratio->passed_over = 0;
	other->passed_over = std::min<uint16_t>(other->passed_over + 1, TRUSTED_AGAIN);
}

}  // namespace gpuvm
