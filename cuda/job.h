/*
 * job.h: runs one job on one device.
 *
 * The job's pads are run in slices of a few milliseconds, at most IN_FLIGHT of
 * them at a time, so that the device always has one to go on with, and a job that is
 * canceled ends soon. The thread that runs the job launches a slice as soon as
 * there is room, and then waits for the oldest by asking the device again and
 * again; now and then it asks whether the job is to stop. To stop means: the abort
 * word is set, by a stream that nothing else holds up, and what is in
 * flight is waited for. What a stopped job's slices left is worth nothing and is not
 * handed out.
 *
 * Rows leave through claimed buffers: a slice takes at most half of the job's, so
 * that the next one runs, and rows of the one before are consumed, at the same time.
 * A unit without rows leaves its buffer to another one.
 */
#ifndef GPUVM_CUDA_JOB_H
#define GPUVM_CUDA_JOB_H

#include <deque>
#include <functional>
#include <vector>

#include "device.h"
#include "pin.h"
#include "transfer.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

/* A lane for as long as this lives. */
class LaneHold
{
public:
	explicit LaneHold(CudaDevice *device) : device_(device) {}
	~LaneHold()
	{
		if (lane_ != nullptr)
			device_->give_lane(lane_);
	}
	LaneHold(const LaneHold &) = delete;
	LaneHold &operator=(const LaneHold &) = delete;

	void take(bool small, DeviceJobIo *io) { lane_ = device_->take_lane(small, io); }
	Lane *get() const { return lane_; }

private:
	CudaDevice *device_;
	Lane	   *lane_ = nullptr;
};

class DeviceJob
{
public:
	DeviceJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, const DeviceProgram &program,
			  const Work &work, DeviceJobIo *io, DeviceJobFigures *figures);
	~DeviceJob();
	DeviceJob(const DeviceJob &) = delete;
	DeviceJob &operator=(const DeviceJob &) = delete;

	/* Throws CudaFailure, Refusal, Stopped, std::bad_alloc. */
	void		run();

	/* Did a row leave? */
	bool published() const { return published_; }

private:
	/* A part of the work that is on the device: pads, or groups that are being emitted. */
	struct Flight
	{
		int			slot;		/* of the lane's events and outcomes */
		uint32_t	first_pad;
		uint32_t	npads;		/* 0: no pads, but groups */
		bool		waits;		/* for copies, at first */
		double		expected_ns;
		uint64_t	first_item;	/* unit or group */
		std::vector<int> buffers;	/* claimed: one an item, or one a buffer full of groups */
	};

	void		run_aggregates();
	void		run_groups();
	bool		try_groups(int attempt);	/* false: the table was too small */
	void		emit_groups(const GroupTable &table, uint64_t ngroups);
	void		publish_count(uint64_t ngroups);
	void		run_rows();
	void		launch_rows(Flight *flight, const RowStaging &staging);
	void		publish_rows(const Flight &flight);

	/* Runs all pads; `behind` is enqueued behind the last slice. */
	void		run_slices(const GroupTable *groups, const std::function<void()> &behind);
	uint32_t	slice_pads(uint32_t first) const;
	double		expected_ns(uint32_t first, uint32_t npads) const;
	double		pad_ns(uint32_t tablet) const;
	Flight	   *open_flight(uint32_t first_pad, uint32_t npads);
	void		launch(Flight *flight, const RowStaging *rows, const GroupTable *groups);
	void		copy_all();
	void		close_flight();
	Flight		land();			/* waits for the oldest */
	void		count(const Flight &flight);

	bool		stopped();
	void		wait_for(cudaEvent_t event);
	void		drain();
	char	   *allocate(uint64_t bytes);
	char	   *try_allocate(uint64_t bytes);
	void		free_working(size_t kept);
	int			claim_or_wait();
	size_t		gather(size_t most);
	void		give_buffers(Flight *flight, size_t n);
	void		unclaim_all(std::vector<int> *buffers);
	void		publish(int buffer, uint32_t unit, uint32_t nrows, uint32_t errors);
	void		map_areas();
	bool		is_small() const;

	struct Working
	{
		char	   *memory;
		uint64_t	bytes;
	};

	CudaDevice *device_;
	const DeviceJobRequest &request_;
	const DeviceProgram &program_;
	const Work &work_;
	DeviceJobIo *io_;
	DeviceJobFigures *figures_;
	std::vector<Type> result_types_;
	uint64_t	result_bytes_ = 0;	/* a row */
	LaneHold	hold_;			/* outlives what uses the lane */
	TableFeed	feed_;
	Lane	   *lane_ = nullptr;
	LaunchShape shape_ = {};
	std::vector<Working> working_;
	std::vector<char *> areas_;	/* device addresses of the result areas */
	std::deque<Flight> flights_;
	std::vector<int> spare_;	/* claimed buffers that nothing was put in */
	uint32_t	most_slice_pads_ = UINT32_MAX;	/* that there are buffers for: GroupPlan.max_slice_rows */
	double		pace_ = 1;		/* measured time of slices by expected time */
	bool		started_ = false;	/* a slice was launched: sizes are no longer a guess */
	bool		stopped_ = false;
	bool		aborting_ = false;
	bool		published_ = false;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
