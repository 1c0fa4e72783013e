/*
 * job_window.h: window functions (vm/window.h) over a result set of the device: columns are appended there. What
 * window_kernels.h has in steps is enqueued function by function, so that a job that is to stop does so soon; the set
 * gets its columns when all is well.
 */
#ifndef GPUVM_CUDA_JOB_WINDOW_H
#define GPUVM_CUDA_JOB_WINDOW_H

#include "job.h"
#include "window_kernels.h"

namespace gpuvm {
namespace cuda {

/* Why the device does not compute these of the set; nullptr: it does. */
const char *refuse_window(const StoredSet &set, const WindowSpec &spec);

class WindowJob final : public DeviceJob
{
public:
	/* Of a specification that was checked and is not refused. */
	WindowJob(CudaDevice *device, PinnedArena *arena, StoredSet *set, const WindowSpec &spec, DeviceJobIo *io, DeviceJobFigures *figures);
	~WindowJob() override { drain(); }

	void		run() override;

protected:
	void		run_all(const GroupTable *, const std::function<void()> &) override {}
	void		begin_again() override {}

private:
	enum class InputKind { Counts, Trues, Sums, Keys };

	/* What an argument is made into; functions that have it in common share it. */
	struct Input
	{
		InputKind	kind;
		uint32_t	column, high, filter, map;
		bool		max;
		WindowBits	bits;
		const char *sums;
		bool		wide;
		WindowKeys	keys;

		bool is_like(const Input &o) const
		{
			return kind == o.kind && column == o.column && high == o.high && filter == o.filter && map == o.map && max == o.max;
		}
	};

	bool		enqueue(const std::function<void()> &work);
	RowColumn	column(uint32_t number) const;
	WindowRanks send_ranks(const CodeMap &map);
	WindowArgumentColumns argument(const Input &input);
	WindowBits	allocate_bits();
	void		make_columns();
	void		find_rows();
	void		find_frames();
	void		make_sums(Input *input);
	void		make_keys(Input *input);
	void		make(Input *input);
	const Input &input(InputKind kind, const WindowFunction &function);
	void		emit(const WindowFunction &function, uint32_t result);
	bool		store();

	StoredSet  *of_;
	const WindowSpec &spec_;
	uint32_t	n_;				/* rows */
	std::vector<Type> types_;	/* of the columns that are appended */
	RowSet		results_ = {};	/* these */
	char	   *results_memory_ = nullptr;
	uint64_t	results_bytes_ = 0;
	WindowRows	rows_ = {};
	std::deque<Input> inputs_;
	std::vector<std::pair<const CodeMap *, WindowRanks>> ranks_sent_;
	std::deque<std::vector<char>> ranks_from_;	/* as they are sent */
	uint32_t   *errors_ = nullptr;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
