/*
 * result_set.h: result sets (engine/abi.h) in a device's memory, and how jobs read them.
 *
 * A set is row sets of just their size, its parts, each of which is a tablet to whoever reads it: a header with zone maps
 * on the host, columns as wide as PostgreSQL has them on the device (WorkTablet.there). A job that makes one adds a part whenever
 * its rows take much room, and appends to a set by making one of its own, whose parts go over when all is well: so a
 * job that fails leaves nothing. What a set takes is working memory of the device until it is deleted. The groups that a stage
 * reads (stage.h) are a set as well.
 */
#ifndef GPUVM_CUDA_RESULT_SET_H
#define GPUVM_CUDA_RESULT_SET_H

#include <memory>
#include <vector>

#include "device.h"
#include "row_set.h"
#include "set_columns.h"

namespace gpuvm {
namespace cuda {

class StoredSet final : public DeviceSet
{
public:
	/* Empty, for the program's results. */
	StoredSet(CudaDevice *device, const Program *program, const SinkColumn *columns, uint32_t ncolumns);
	~StoredSet() override;		/* nothing runs that reads it */
	StoredSet(const StoredSet &) = delete;
	StoredSet &operator=(const StoredSet &) = delete;

	uint32_t device() const override { return device_->index(); }
	uint64_t rows() const override { return nrows_; }
	uint32_t ncolumns() const override { return static_cast<uint32_t>(types_.size()); }
	const ColumnSummary *columns() const override { return columns_.data(); }
	uint64_t bytes() const override { return bytes_; }

	/* A part of n rows of such a row set, whose columns are the program's results: its memory, and what is to be stored in it. */
	uint64_t	part_bytes(const RowSet &rows, uint32_t n) const;
	RowSet		part(const RowSet &rows, uint32_t n, char *memory) const;
	const SetColumnSource *sources() const { return sources_.data(); }
	/* It is stored, in the device's working memory, which is from now on freed here. False: a sum did not fit, and it is not taken. */
	bool		take(const RowSet &part, uint32_t n, char *memory, uint64_t bytes, const SetColumnFacts *facts);

	/*
	 * More columns (window_kernels.h) of a set of one part, or of no rows: they are stored, in the device's working memory, which is freed
	 * here. `facts`: of each.
	 */
	void		add_columns(const std::vector<Type> &types, const RowSet &columns, char *memory, uint64_t bytes, const SetColumnFacts *facts);

	/* All parts of another set, which has none then. Types must be the same. */
	void		append(StoredSet *from);
	bool		same_types(const StoredSet &other) const { return types_ == other.types_; }

	/* As DeviceLibrary::copy_set(). Throws CudaFailure. */
	void		copy(uint64_t first, uint64_t nrows, char *const *values, uint64_t *const *nulls) const;

	/* As a cursor has them; those of cursors' tablets by number. */
	const std::vector<DeviceTabletRef> &tablets() const { return tablets_; }
	const RowSet *part(uint32_t tablet) const { return &parts_[tablet]->rows; }
	uint32_t	nparts() const { return static_cast<uint32_t>(parts_.size()); }

private:
	struct Memory
	{
		char	   *at;
		uint64_t	bytes;
	};

	struct Part
	{
		RowSet		rows;
		uint32_t	nrows;
		std::vector<Memory> memory;
		std::vector<uint64_t> header;	/* a tablet's header and chunks */
	};

	void		nullable_columns(const RowSet &rows, uint8_t *nullable) const;
	/* Columns from `first` on. */
	void		describe(Part *part, size_t first, const SetColumnFacts *facts) const;
	void		summarize();
	void		copy_nulls(const Part &part, uint32_t first, uint32_t n, uint32_t column, uint64_t to, uint64_t *nulls) const;

	CudaDevice *device_;
	std::vector<Type> types_;
	std::vector<SetColumnSource> sources_;
	std::vector<ColumnSummary> columns_;
	std::vector<std::unique_ptr<Part>> parts_;
	std::vector<DeviceTabletRef> tablets_;
	uint64_t	nrows_ = 0;
	uint64_t	bytes_ = 0;
};

/* A request as jobs want it: sets that cursors read have tablets. */
class SetRequest
{
public:
	explicit SetRequest(const DeviceJobRequest &request);
	SetRequest(const SetRequest &) = delete;
	SetRequest &operator=(const SetRequest &) = delete;

	const DeviceJobRequest &get() const { return request_; }
	/* The device that all sets are on. */
	static constexpr int NONE = -1, SEVERAL = -2;
	int			device() const;

private:
	DeviceJobRequest request_;
	std::vector<DeviceCursor> others_;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
