/*
 * stage.h: the groups of one program as the table of another one (engine/abi.h, Stages).
 *
 * The first job leaves its groups as a row set in device memory instead of result buffers;
 * then a scan like any other runs over it, whose one tablet is on the device already (transfer.h). What
 * its columns may hold is known from the first program's ranges, before anything has run: so the second
 * program is lowered, or refused, before the first is run.
 */
#ifndef GPUVM_CUDA_STAGE_H
#define GPUVM_CUDA_STAGE_H

#include <vector>

#include "device.h"
#include "row_set.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

class Stage
{
public:
	/* Of a request that has a stage. */
	explicit Stage(const DeviceJobRequest &request);
	~Stage();					/* nothing runs that reads the groups */
	Stage(const Stage &) = delete;
	Stage &operator=(const Stage &) = delete;

	/* For the first program, and for the second. */
	const DeviceJobRequest &first() const { return first_; }
	const DeviceJobRequest &second() const { return second_; }

	/* Of a row set with room for so many groups. */
	uint64_t	bytes(uint64_t ngroups) const;
	/* Its memory, of `device`, which is from now on freed here. The caller fills it. */
	const RowSet &take(CudaDevice *device, uint64_t ngroups, char *memory);
	/* There are no groups. */
	void		take_none() { there_ = true; }
	bool		there() const { return there_; }
	uint64_t	ngroups() const { return ngroups_; }

	/* The second program's work. */
	void		list(Work *work) const;

private:
	void		describe();

	DeviceJobRequest first_, second_;
	std::vector<ColumnSummary> columns_;
	std::vector<Type> types_;
	uint8_t		nullable_[PROGRAM_MAX_COLUMNS / 8] = {};
	bool		there_ = false;
	uint64_t	ngroups_ = 0;
	RowSet		rows_ = {};
	CudaDevice *device_ = nullptr;
	char	   *memory_ = nullptr;
	std::vector<uint64_t> header_;	/* a tablet's header and chunks, as if it lay in the arena */
	DeviceTabletRef tablet_ = {};
};

}  // namespace cuda
}  // namespace gpuvm

#endif
