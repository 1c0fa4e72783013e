/*
 * job.h: what a job on a device has, whatever it runs: a lane, working memory,
 * waiting and stopping, result buffers, and the ends of grouped programs.
 * ScanJob (job_scan.h) runs programs of one cursor, JoinJob (join.h) those of several.
 *
 * The thread that runs the job waits for the device by asking it again and again;
 * now and then it asks whether the job is to stop. To stop means: the abort
 * word is set, by a stream that nothing else holds up, and what is in
 * flight is waited for. What a stopped job left is worth nothing and is not
 * handed out.
 */
#ifndef GPUVM_CUDA_JOB_H
#define GPUVM_CUDA_JOB_H

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "device.h"
#include "failure.h"
#include "pin.h"
#include "result_set.h"
#include "text_keys.h"
#include "top_rows.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t SMALL_BYTES = 256ull << 20;	/* to be read by a job that is small */

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
	virtual ~DeviceJob();
	DeviceJob(const DeviceJob &) = delete;
	DeviceJob &operator=(const DeviceJob &) = delete;

	/* Throws CudaFailure, Refusal, Stopped, std::bad_alloc. */
	virtual void run() = 0;
	/* A line for the log of where the time went, or nothing. */
	virtual std::string steps() { return std::string(); }

	/* What leaves becomes parts of the set instead. */
	void		keep_results(StoredSet *set) { set_ = set; }
	/* It has one of the places of CudaDevice::enter_row_join(). */
	void		set_row_join(bool is) { row_join_ = is; }

	/* Did a row leave? */
	bool published() const { return published_; }

	/* Its waits for memory that others have may take so long, all together; one that takes another's place has what that has left. */
	static constexpr std::chrono::seconds MEMORY_PATIENCE{2};
	std::chrono::nanoseconds patience() const { return patience_; }
	void		set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }

	/* run() has thrown, and nobody is throwing any more when it is destroyed. */
	void		give_up() { given_up_ = true; }

protected:
	/* Window functions have no program. */
	DeviceJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures);

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

	/* Runs all of the work of a grouped program, `behind` enqueued behind it; returns when the device is done. */
	virtual void run_all(const GroupTable *groups, const std::function<void()> &behind) = 0;
	/* Nothing was published: run_all() will be called once more. */
	virtual void begin_again() = 0;
	/* A flight of pads has ended. */
	virtual void count_pads(const Flight &, double) {}

	void		begin(bool small);
	/* Grouped programs, from their last operations on. `rows`: at most, of those that aggregates take in. */
	void		run_aggregates(const DeviceProgram &program, bool nothing);
	void		run_groups(const DeviceProgram &program, uint64_t rows, uint64_t missing_bytes, bool nothing);

	Flight	   *open_flight(uint32_t first_pad, uint32_t npads);
	void		begin_flight(const Flight &flight);
	void		close_flight();
	Flight		land();			/* waits for the oldest */

	bool		stopped();
	void		wait_for(cudaEvent_t event);
	void		drain();
	char	   *allocate(uint64_t bytes);
	Refusal		no_room(const char *what, const char *least, uint64_t bytes) const;
	char	   *try_allocate(uint64_t bytes);
	void		free_working(size_t kept);
	void		release(const char *memory);
	void		send_maps();	/* for all of the job's launches, patterns and what TextKey needs, too */
	void		send_patterns();
	void		send_text_keys();

	int			claim_or_wait();
	size_t		gather(size_t most);
	void		give_buffers(Flight *flight, size_t n);
	void		unclaim_all(std::vector<int> *buffers);
	void		publish(int buffer, uint32_t unit, uint32_t nrows, uint32_t errors);
	void		publish_part(int buffer, uint32_t unit, uint32_t part, bool last, uint32_t nrows, uint32_t errors);
	void		map_areas();
	void		take_step(const std::function<void()> &step);
	/* Within a flight: looks at what is to be sorted, `nrows` rows or, `counted`, as many as the row set has, if not more. */
	void		look_at_keys(const RowSet &rows, uint32_t nrows, bool counted);
	/* The flight has landed. Hands the rows over as the request wants them sorted. */
	void		sort_out(const RowSet &rows, uint32_t nrows);
	/* They become a part of the set: `order`: of the list. Waits for all flights. */
	void		store_rows(const RowSet &rows, const uint32_t *order, uint32_t nrows);
	/* The same without handing them over; a flight is open. */
	const uint32_t *sort_first(const RowSet &rows, uint32_t nrows, uint32_t wanted);
	/* No flight is open. */
	TopBound	find_bound(const RowSet &rows, uint32_t nrows, uint32_t wanted);

	struct Working
	{
		char	   *memory;
		uint64_t	bytes;
	};

	CudaDevice *device_;
	PinnedArena *arena_;
	const DeviceJobRequest &request_;
	DeviceJobIo *io_;
	bool		row_join_ = false;
	DeviceJobFigures *figures_;
	std::vector<Type> result_types_;
	uint64_t	result_bytes_ = 0;	/* a row */
	LaneHold	hold_;			/* outlives what uses the lane */
	PinnedArena::Hold pins_;	/* of the result areas */
	Lane	   *lane_ = nullptr;
	std::vector<Working> working_;
	StoredSet  *set_ = nullptr;	/* that takes the results */
	std::vector<char> maps_;	/* as they are uploaded */
	std::vector<char> patterns_;
	std::vector<TextKeyColumn> text_key_columns_;
	std::vector<TextKeyImages> text_key_images_;	/* as they are uploaded */
	std::unique_ptr<TextKeyFeed> text_keys_;	/* what it has on the device stays as long as the job */
	std::vector<char> ranks_;
	SortKeys	sort_keys_ = {};
	SortFacts  *sort_facts_ = nullptr;
	std::vector<char *> areas_;	/* device addresses of the result areas */
	std::deque<Flight> flights_;
	std::vector<int> spare_;	/* claimed buffers that nothing was put in */
	uint64_t	most_slice_rows_ = UINT64_MAX;	/* that there are buffers for: GroupPlan.max_slice_rows */
	uint64_t	rows_taken_ = 0;	/* by aggregates, at most: once all has run */
	bool		busy_ = false;	/* there is work on the device beside the flights */
	bool		stopped_ = false;
	bool		aborting_ = false;
	bool		published_ = false;

private:
	bool		try_groups(const DeviceProgram &program, uint64_t rows, uint64_t missing_bytes, int attempt);	/* false: the table was too small */
	void		emit_groups(const DeviceProgram &program, const GroupTable &table, uint64_t ngroups);
	void		sort_groups(const DeviceProgram &program, const GroupTable &table, uint64_t ngroups);
	void		store_aggregates(const DeviceProgram &program, const LaunchState &state);
	RowSet		group_rows(const DeviceProgram &program, const GroupTable &table, uint64_t ngroups);
	char	   *allocate_part(uint64_t bytes);
	void		publish_count(uint64_t ngroups);
	void		emit_in_order(uint64_t nrows, const std::function<void(uint64_t, uint32_t, char *)> &emit);
	void		send_ranks(const RowSet &rows, SortKeys *keys);
	void		pack_keys(SortRange *ranges);
	void		count_leads(const RowSet &rows, uint32_t nrows);
	const uint32_t *sort_leading(const RowSet &rows, uint32_t nrows, uint32_t n, uint32_t lead, const uint64_t **words);
	uint32_t	leading_rows(const SortFacts &facts, uint32_t wanted, uint32_t *lead);
	void		count(const Flight &flight);

	std::chrono::nanoseconds patience_ = MEMORY_PATIENCE;
	bool		given_up_ = false;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
