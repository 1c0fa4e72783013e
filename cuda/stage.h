/*
 * stage.h: the groups of one program as the table of another one (engine/abi.h, Stages).
 *
 * The first job's groups become a set (result_set.h), which the second reads. What its columns may hold is known from the first
 * program's ranges, before anything has run: so the second program is lowered, or refused, before the first is run.
 */
#ifndef GPUVM_CUDA_STAGE_H
#define GPUVM_CUDA_STAGE_H

#include <vector>

#include "engine/device_abi.h"

namespace gpuvm {
namespace cuda {

class Stage
{
public:
	/* Of a request that has a stage. */
	explicit Stage(const DeviceJobRequest &request);
	Stage(const Stage &) = delete;
	Stage &operator=(const Stage &) = delete;

	/* For the first program, which makes a set. */
	const DeviceJobRequest &first() const { return first_; }
	/* For the second, as long as there is no set, and then. */
	const DeviceJobRequest &second() const { return second_; }
	const DeviceJobRequest &second(const DeviceSet *groups)
	{
		second_.set = groups;
		return second_;
	}

private:
	DeviceJobRequest first_, second_;
	std::vector<ColumnSummary> columns_;
	std::vector<SinkColumn> sink_;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
