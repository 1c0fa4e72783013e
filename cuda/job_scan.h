/*
 * job_scan.h: runs one job of one cursor on one device.
 *
 * The job's pads are run in slices of a few milliseconds, at most IN_FLIGHT of
 * them at a time, so that the device always has one to go on with, and a job that is
 * canceled ends soon. The thread that runs the job launches a slice as soon as
 * there is room, and then waits for the oldest.
 *
 * Rows leave through claimed buffers: a slice takes at most half of the job's, so
 * that the next one runs, and rows of the one before are consumed, at the same time.
 * A unit without rows leaves its buffer to another one.
 */
#ifndef GPUVM_CUDA_JOB_SCAN_H
#define GPUVM_CUDA_JOB_SCAN_H

#include "job.h"
#include "transfer.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

/* How long slices take, against what was expected. */
class Pace
{
public:
	/* What a slice may be expected to take. */
	double		slice_ns() const;
	void		learn(double expected_ns, double measured_ns);
	void		begin() { started_ = true; }

private:
	double		pace_ = 1;
	bool		started_ = false;	/* a slice was launched: sizes are no longer a guess */
};

/* Expected time of one pad of the tablet, and of pads [first, first + npads). */
double		pad_ns(const DeviceProgram &program, const Work &work, const TableFeed &feed, uint32_t tablet);
double		pads_ns(const DeviceProgram &program, const Work &work, const TableFeed &feed, uint32_t first, uint32_t npads);
/* How many pads from `first` on make a slice of that time. */
uint32_t	slice_pads(const DeviceProgram &program, const Work &work, const TableFeed &feed, uint32_t first, double ns);
/* These pads were run. */
void		count_work(const Work &work, const TableFeed &feed, uint32_t first, uint32_t npads, DeviceJobFigures *figures);

/* For tests: how much a scan takes at a time. */
struct ScanSizes
{
	uint32_t	most_part_pads = (16u << 20) / TABLET_PAD_ROWS;	/* of a slice whose rows become parts of a set */
};
extern ScanSizes scan_sizes;

class ScanJob final : public DeviceJob
{
public:
	ScanJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, const DeviceProgram &program,
			const Work &work, DeviceJobIo *io, DeviceJobFigures *figures);
	~ScanJob() override;

	void		run() override;
	/* Instead, of sorted rows: nothing leaves, but what is known of the first (top_rows.h). */
	TopBound	run_sample();

private:
	void		run_all(const GroupTable *groups, const std::function<void()> &behind) override;
	void		begin_again() override;
	void		count_pads(const Flight &flight, double ns) override;

	void		run_rows();
	RowStaging	make_staging(uint32_t *most, char **temp);
	void		collect_rows();
	bool		store_collected(const RowSet &rows);
	void		launch_rows(Flight *flight, const RowStaging &staging);
	void		publish_rows(const Flight &flight);
	uint32_t	next_slice(uint32_t first) const;
	void		launch(Flight *flight, const RowStaging *rows, const GroupTable *groups);
	void		copy_all();

	const DeviceProgram &program_;
	const Work &work_;
	TableFeed	feed_;
	LaunchShape shape_ = {};
	TopBound   *bound_ = nullptr;	/* run_sample() */
	RowSetState collected_ = {};	/* as the slices that have ended left it */
	Pace		pace_;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
