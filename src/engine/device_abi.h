/*
 * device_abi.h: between gpuvmd and gpuvm_cuda.so, which gpuvmd loads with
 * dlopen and which alone knows CUDA. Both are built from the same tree; the
 * version below tells when they were not.
 *
 * gpuvmd checks a request, chooses the engine, and talks with the backend;
 * the library runs the checked job on a device and hands over results through
 * DeviceJobIo. Several sessions call run() at once, each from its own thread.
 *
 * Outcomes. `Refused` means that nothing was published and that another engine
 * may run the job from the start: the program does not fit the device, its
 * memory is short, it is not ready. A CUDA error that the context does not
 * survive ("sticky") ends gpuvmd by DeviceOptions::fatal: it is started again,
 * and running queries fall back.
 */
#ifndef GPUVM_ENGINE_DEVICE_ABI_H
#define GPUVM_ENGINE_DEVICE_ABI_H

#include "engine/abi.h"
#include "tablet/format.h"
#include "vm/code_map.h"
#include "vm/text_match.h"
#include "vm/text_order.h"
#include "vm/window.h"

namespace gpuvm {

constexpr uint32_t DEVICE_ABI_VERSION = 12 ^ INSTRUCTION_SET;

struct DeviceTabletRef
{
	const TabletHeader *tablet;	/* in the arena */
	bool		skip;			/* its zone maps prove that it does not matter, or every row is masked */
	const MaskedRows *masked = nullptr;	/* its own: rows that are not there */
	uint32_t	nmasked = 0;
};

/*
 * A result set (abi.h) in a device's memory. The library makes it, whoever has it deletes it, which gives the memory
 * back. A set is read or appended to by one job at a time.
 */
class DeviceSet
{
public:
	virtual ~DeviceSet() = default;

	virtual uint32_t device() const = 0;	/* index */
	virtual uint64_t rows() const = 0;
	virtual uint32_t ncolumns() const = 0;
	/* As of a table's columns, but without COLUMN_VARIABLE; the type's own bounds where nothing is known. */
	virtual const ColumnSummary *columns() const = 0;
	virtual uint64_t bytes() const = 0;
};

/* The rows of one cursor. A set in gpuvmd's own memory is tablets without a serial that do not lie in the arena. */
struct DeviceCursor
{
	const ColumnSummary *columns;
	uint32_t	ncolumns;
	const DeviceTabletRef *tablets;
	uint32_t	ntablets;
	uint64_t	total_rows;		/* masked ones included */
	const DeviceSet *set;		/* not nullptr: its rows, and no tablets */
	bool		of_host_set;	/* the tablets are a set's */
};

/* A checked job. All that it points to outlives run(). What is inherited is cursor 0, the only one but in join programs. */
struct DeviceJobRequest : DeviceCursor
{
	const Program *program;
	const ParamValue *params;
	uint32_t	nparams;
	const CodeMap *maps;		/* in the arena; what each holds was checked */
	uint32_t	nmaps;
	const TextPattern *const *patterns;	/* those of the program, checked */
	const TextOrder *text_orders;	/* that TextCompare names */
	const DeviceCursor *others;	/* join programs: the cursors from 1 on */
	uint32_t	nothers;
	uint64_t	expected_pairs;	/* joins, as a guess; 0: unknown */
	uint32_t	force_passes;	/* joins, for tests: reduced, in so many passes, a power of two; 0: as memory asks */
	uint32_t	unit_rows;		/* row programs of one cursor: rows a unit, a multiple of TABLET_PAD_ROWS */
	uint32_t	capacity;		/* rows that a result buffer has room for */
	uint32_t	nbuffers;
	char *const *areas;			/* of the result buffers, in the arena: writable during run() */
	const uint8_t *skip_units;	/* bitmap: units not to run */
	size_t		skip_bytes;
	uint64_t	row_limit;		/* enough once this many rows were emitted; with an order exact; 0 = no limit */
	const JobOrderKey *order;	/* what leaves is sorted by (abi.h), checked */
	uint32_t	norder;
	bool		count_groups;	/* grouped programs: emit one row with the number of groups */
	const Program *stage;		/* reads the groups of `program` (abi.h): rows and groups that leave are its; nullptr: there is none */
	bool		sink;			/* what leaves becomes a result set (abi.h: its columns) instead of being published */
	const SinkColumn *sink_columns;	/* what it has, checked */
	uint32_t	nsink_columns;
	uint64_t	sink_limit;		/* bytes that the set may take, or grow by; the job is refused, or fails, beyond */
	DeviceSet  *append_to;		/* the set is this one, which gets more rows, or stays as it was; nullptr: a new one */
	Transfer	transfer;

	bool skips(uint64_t unit) const
	{
		return unit / 8 < skip_bytes && (skip_units[unit / 8] >> (unit % 8) & 1);
	}
};

/* The job's conversation with its backend. Called by the thread that called run(). */
class DeviceJobIo
{
public:
	virtual ~DeviceJobIo() = default;

	/* A Free buffer, now Filling; -1 when there is none. */
	virtual int claim_buffer() = 0;
	/*
	 * Filling -> Full; with the row limit reached, stopped() is true from then on. Joins publish
	 * all of their rows as parts of unit 0, the last of them marked (which may be empty).
	 */
	virtual void publish_part(int buffer, uint32_t unit, uint32_t part, bool last, uint32_t nrows, uint32_t errors) = 0;
	void publish(int buffer, uint32_t unit, uint32_t nrows, uint32_t errors) { publish_part(buffer, unit, 0, true, nrows, errors); }
	/* Filling -> Free, for nothing was put in. */
	virtual void unclaim(int buffer) = 0;
	/* Sleeps until a buffer is Free or the job is to stop; false: stop. */
	virtual bool wait_for_buffer() = 0;
	/* Cancel, row limit, backend gone: to be asked at least every 5 ms while the device works. */
	virtual bool stopped() = 0;
};

struct DeviceJobFigures
{
	uint32_t	device;			/* index */
	uint32_t	errors;			/* grouped programs and joins: ErrorBits; if not 0, no group was published, and no further row */
	uint64_t	rows_in;
	uint64_t	rows_out;
	uint64_t	bytes_read;		/* column data and null bits that kernels read */
	uint64_t	bytes_moved;	/* over the bus: columns to the device, or read there while mapped; results back */
	uint64_t	device_ns;		/* kernels and copies, by the device's clock */
	uint32_t	slices;			/* launches of the interpreter */
	uint64_t	queue_ns;		/* that it waited for other jobs' clients */
	uint32_t	tablets_scanned;
	Transfer	transfer;		/* what was used; never Auto */
	uint64_t	stage_rows;		/* groups that a stage has read */
	DeviceSet  *set;			/* of a sink: made by a run that is Done without errors and not stopped; append_to, where there is one */
	uint64_t	pairs;			/* joins: these as in Job */
	uint64_t	build_rows;
	uint64_t	build_bytes;
	uint32_t	indexes_used;
	uint32_t	indexes_made;
	uint32_t	passes;			/* 0 is 1 */
	uint64_t	index_bytes;
	uint64_t	set_short;		/* Refused since its set would have had more than sink_limit: so much */
};

enum class DeviceOutcome
{
	Done,						/* or stopped(): the caller knows */
	Refused,					/* see the reason; nothing was published */
	Failed,						/* see the reason; what was published stands */
};

struct DeviceOptions
{
	uint32_t	abi_version;	/* DEVICE_ABI_VERSION */
	char	   *arena;			/* mapped by gpuvmd, for the most part read-only */
	uint64_t	arena_size;
	ArenaHeader *header;
	/* Makes pages of it writable, which may fail, and ends that again. nullptr: all are. Any thread may call them. */
	bool		(*open_pages) (void *pages, uint64_t offset, uint64_t bytes);
	void		(*close_pages) (void *pages, uint64_t offset, uint64_t bytes);
	void	   *pages;
	uint64_t	memory_limit;	/* bytes a device; 0 chooses */
	void		(*log) (const char *line);
	void		(*fatal) (const char *line);	/* does not return */
};

struct DeviceEstimate
{
	uint64_t	ns;			/* on an idle device, data movement included; UINT64_MAX: none can run it */
	uint64_t	work_ns;	/* of it what keeps the device busy: that of others comes on top */
	bool		copies;		/* columns have to be copied there first */
};

class DeviceLibrary
{
public:
	virtual ~DeviceLibrary() = default;

	virtual uint32_t ndevices() const = 0;

	/* Brings the devices up (contexts, kernels, streams, scratch): hundreds of ms. Fills header->devices as it goes. */
	virtual void start() = 0;
	virtual bool ready() const = 0;

	/* Expected time of the job; with a reason (128 bytes) when no device can run it. Cheap: tens of microseconds. */
	virtual DeviceEstimate estimate(const DeviceJobRequest &request, char *reason) = 0;

	/* Runs the job. `reason` has 128 bytes. Throws std::bad_alloc. */
	virtual DeviceOutcome run(const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures, char *reason) = 0;

	/*
	 * Window functions over a sorted set, whose columns are appended to it by a run that is Done without errors and not stopped; else it stays
	 * as it was. The specification was checked; its maps are those of a request. Like run().
	 */
	virtual DeviceOutcome run_window(DeviceSet *set, const WindowSpec &spec, DeviceJobIo *io, DeviceJobFigures *figures, char *reason) = 0;

	/*
	 * Rows [first, first + nrows) of the set to host memory: values[c] of type_natural_width() each, and the null bitmap
	 * (1 = null) nulls[c] from its first bit on, in whole words. Under a null lies 0. False: the device failed.
	 */
	virtual bool copy_set(const DeviceSet *set, uint64_t first, uint64_t nrows, char *const *values, uint64_t *const *nulls) = 0;

	/*
	 * Pins the arena's chunks that hold these bytes, and lets the device's memory
	 * pool grow by as much, ahead of their first use: measured on an H200, pinning
	 * costs 50 ms a GB and growing the pool 14, the copy itself 18. (And: one copy
	 * must not span two pinned chunks, which CUDA refuses as an invalid argument.)
	 */
	virtual void prepare(uint64_t offset, uint64_t bytes) = 0;

	/* Called about every 100 ms: refreshes header->devices, unpins what is asked for, watches for launches that hang. */
	virtual void housekeep() = 0;
};

/* The library's only symbol. nullptr with why (256 bytes): no driver, no device, versions that do not fit. */
using OpenDeviceLibrary = DeviceLibrary *(*) (const DeviceOptions *options, char *why);
constexpr char DEVICE_LIBRARY_SYMBOL[] = "gpuvm_open_device_library";

}  // namespace gpuvm

#endif
