/*
 * join_steps.h: where a join's time goes. With GPUVM_LOG_JOINS=MS in gpuvmd's environment each join that
 * took so many milliseconds has a line in its log.
 */
#ifndef GPUVM_CUDA_JOIN_STEPS_H
#define GPUVM_CUDA_JOIN_STEPS_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "device.h"

namespace gpuvm {
namespace cuda {

enum class JoinStep
{
	Start,						/* columns, a lane, memory */
	Build,						/* inner rows and tables */
	Plan,						/* programs over pairs, memory for a batch, result areas */
	Filter,						/* cursor 0's rows against the inner keys */
	First,						/* its program */
	Levels,						/* pairs, and what is made of them */
	End,						/* groups, rows that leave */
};

class JoinSteps
{
public:
	JoinSteps() : started_(now_ns()), entered_(started_) {}

	/* What comes now is this step's. */
	void enter(JoinStep step)
	{
		const int64_t now = now_ns();

		steps_[static_cast<int>(step_)].all_ns += now - entered_;
		entered_ = now;
		step_ = step;
	}
	/* The device was waited for, which had so much to do. */
	void waited(double device_ns)
	{
		steps_[static_cast<int>(step_)].device_ns += device_ns;
		steps_[static_cast<int>(step_)].waits++;
	}
	/* An inner side is there: it was kept, or has been built. */
	void has_side(bool kept)
	{
		sides_++;
		kept_ += kept;
	}
	/* Its rows were counted before there was room for them. */
	void counted() { counted_++; }
	void filtered(uint64_t rows, uint64_t left)
	{
		rows_ += rows;
		left_ += left;
	}

	/* Empty: not worth a line. */
	std::string text()
	{
		static const char *const least = getenv("GPUVM_LOG_JOINS");
		static const char *const names[] = {"start", "build", "plan", "filter", "first", "levels", "end"};
		const double ms = static_cast<double>(now_ns() - started_) / 1e6;
		std::string line;
		char		part[200];

		if (least == nullptr || ms < atof(least))
			return line;
		enter(step_);
		snprintf(part, sizeof(part), "join: %.3f ms", ms);
		line = part;
		for (int i = 0; i <= static_cast<int>(JoinStep::End); i++)
		{
			if (steps_[i].all_ns == 0)
				continue;
			snprintf(part, sizeof(part), "; %s %.3f (device %.3f, %u waits)", names[i], static_cast<double>(steps_[i].all_ns) / 1e6,
					 steps_[i].device_ns / 1e6, steps_[i].waits);
			line += part;
		}
		snprintf(part, sizeof(part), "; %u of %u inner sides kept", kept_, sides_);
		line += part;
		if (counted_ != 0)
			line += "; " + std::to_string(counted_) + " counted first";
		if (rows_ != 0)
		{
			snprintf(part, sizeof(part), "; filters left %llu of %llu rows", static_cast<unsigned long long>(left_),
					 static_cast<unsigned long long>(rows_));
			line += part;
		}
		return line;
	}

private:
	struct Step
	{
		int64_t		all_ns = 0;
		double		device_ns = 0;
		uint32_t	waits = 0;
	};

	Step		steps_[static_cast<int>(JoinStep::End) + 1];
	JoinStep	step_ = JoinStep::Start;
	int64_t		started_, entered_;
	uint64_t	rows_ = 0, left_ = 0;
	uint32_t	sides_ = 0, kept_ = 0, counted_ = 0;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
