/*
 * device.h: one CUDA device: its context, its lanes, its memory.
 *
 * A lane is all that a job needs to run beside others: streams, the
 * interpreter's scratch, the abort word, room for the description of its table,
 * a little pinned host memory that kernels write outcomes to, and events. All of it is
 * allocated when the device starts. A job takes a lane for its whole run; one lane
 * is for small jobs alone, so that these never wait for a lane behind large ones.
 *
 * The mutex guards the list of free lanes and the counts of row joins, nothing else,
 * and no other lock is taken under it. What is in a lane belongs to the job that has it; `waiting_since` alone
 * is read by the thread that looks for launches that hang.
 */
#ifndef GPUVM_CUDA_DEVICE_H
#define GPUVM_CUDA_DEVICE_H

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/device_abi.h"
#include "key_filter.h"
#include "launch.h"
#include "pairs.h"
#include "residency.h"
#include "set_columns.h"
#include "sort.h"

namespace gpuvm {
namespace cuda {

constexpr int LANES = 8;		/* for any job */
constexpr int SMALL_LANES = 1;	/* for small ones alone */
constexpr int IN_FLIGHT = 2;	/* slices of a job at a time: more would delay its end when canceled */

/* What the steps of a join tell the host. */
struct JoinOutcomes
{
	struct Side					/* of an inner cursor */
	{
		RowSetState rows;
		KeyFacts	keys;
		JoinTableOutcome table;
	};

	Side		sides[PROGRAM_MAX_CURSORS];
	RowSetState rows;
	ProbeOutcome probe;
	uint32_t	total;			/* of a BitScan */
	uint32_t	errors;			/* LaunchState.errors */
	uint32_t	left[MAX_FILTER_KEYS + 1][FILTER_PARTS];	/* rows, by filters */
};

/* What the device writes for the host to read, and two words that it copies. */
struct LaneOutcomes
{
	LaunchState state;
	GroupOutcome groups;
	UnitOutcome units[IN_FLIGHT][JOB_MAX_BUFFERS];
	JoinOutcomes join;
	RowSetState rows[IN_FLIGHT];	/* that a scan has collected */
	SetColumnFacts set_columns[PROGRAM_MAX_COLUMNS];
	SortFacts	sort;
	uint32_t	window_errors;
	uint32_t	zero, one;
};

struct SliceEvents
{
	cudaEvent_t begin;			/* before the slice waits for its copies */
	cudaEvent_t kernels;		/* after */
	cudaEvent_t end;
};

struct Lane
{
	bool		small;
	cudaStream_t stream;		/* kernels */
	cudaStream_t copies;		/* columns to the device */
	cudaStream_t side;			/* the abort word, while the others are busy */
	LaunchScratch scratch;
	uint32_t   *abort;			/* on the device */
	LaneOutcomes *outcomes;		/* pinned host memory */
	LaneOutcomes *outcomes_at;	/* its address on the device */
	char	   *table;			/* on the device: the job's table (transfer.h) */
	char	   *table_copy;		/* pinned: what is in `table` */
	uint64_t	table_room;		/* bytes of both */
	uint64_t	table_bytes;	/* from the first on, that are the same in both */
	SliceEvents slices[IN_FLIGHT];
	cudaEvent_t copied;
	std::atomic<int64_t> waiting_since{0};	/* ns, while the host waits for the device; 0: it does not */
};

/* Counted as long as it lives. */
class Waiting
{
public:
	explicit Waiting(std::atomic<int> *waiting) : waiting_(waiting) { waiting_->fetch_add(1, std::memory_order_relaxed); }
	~Waiting() { waiting_->fetch_sub(1, std::memory_order_relaxed); }
	Waiting(const Waiting &) = delete;
	Waiting &operator=(const Waiting &) = delete;

private:
	std::atomic<int> *waiting_;
};

class CudaDevice
{
public:
	CudaDevice(uint32_t index, int ordinal, const DeviceOptions &options);
	~CudaDevice();

	uint32_t index() const { return index_; }
	int			ordinal() const { return ordinal_; }
	DeviceStatus *status() const { return status_; }
	Residency  *residency() const { return residency_.get(); }
	bool		ready() const { return status_->state.load(std::memory_order_acquire) == static_cast<uint32_t>(DeviceState::Ready); }

	/* Brings the device up; its status says how that went. */
	void		start();

	/* The calling thread's CUDA calls are this device's from now on. */
	void		use() const;

	/* How many jobs wait for what they run here. */
	std::atomic<int> *waiting() { return &waiting_; }

	/* A free lane; throws Stopped if the job is to stop while it waits for one. */
	Lane	   *take_lane(bool small, DeviceJobIo *io);
	void		give_lane(Lane *lane);

	/*
	 * Joins that end in rows keep their lane until all of these are taken, which may be
	 * never: half of the lanes at most. Waits until one of them ends, unless all wait
	 * for their clients: then it is false. Throws Stopped as take_lane() does.
	 */
	bool		enter_row_join(DeviceJobIo *io);
	void		leave_row_join();
	/* One of them begins or ends to wait for its client. */
	void		row_join_waits(bool waits);

	/* As long as it lives, if there is one. */
	struct RowJoin
	{
		CudaDevice *device = nullptr;
		~RowJoin()
		{
			if (device != nullptr)
				device->leave_row_join();
		}
	};

	/* gpuvm.index_memory is not 0. */
	bool		keeps_indexes() const { return index_limit_->load(std::memory_order_relaxed) != 0; }
	/* Those that nobody will ask for go. */
	void		tidy_indexes();

	/* Makes room for a table's description of that size. */
	void		make_table_room(Lane *lane, uint64_t bytes);

	/* Working memory that no lane's stream uses any more. */
	void		free_working(char *memory, uint64_t bytes) { residency_->free(memory, bytes, keeping_); }

	/* Bytes of the device's memory that nothing writes to; waits for them. Throws CudaFailure. */
	void		fetch(void *to, const void *from, uint64_t bytes);

	/* Ahead of the first use of columns of that size. */
	void		prepare(uint64_t bytes);

	/* A sentence if a job has been waiting for the device for far too long. */
	bool		hangs(int64_t now) const;

private:
	void		choose_limit(uint64_t wanted);
	void		open_lane(Lane *lane, bool small);
	void		close_lane(Lane *lane);
	Lane	   *free_lane(bool small);

	const uint32_t index_;
	const int	ordinal_;
	DeviceStatus *status_;
	const std::atomic<uint64_t> *index_limit_;
	void		(*log_) (const char *line);
	uint64_t	memory_limit_;
	cudaMemPool_t pool_ = nullptr;
	cudaStream_t keeping_ = nullptr;	/* of what belongs to no lane */
	std::unique_ptr<Residency> residency_;
	std::vector<std::unique_ptr<Lane>> lanes_;
	std::atomic<int> waiting_{0};
	std::mutex	mutex_;
	std::condition_variable lane_is_free_;
	std::vector<Lane *> free_;	/* last in, first out: a lane that remembers the table */
	std::condition_variable row_join_left_;
	int			row_joins_ = 0;
	int			row_joins_waiting_ = 0;	/* those of them that wait for their clients */
	std::chrono::steady_clock::time_point row_join_moved_;	/* when one of them last did anything else */
};

int64_t		now_ns();

}  // namespace cuda
}  // namespace gpuvm

#endif
