/*
 * abi.h: what backends and gpuvmd share: the arena's layout, the job, and the
 * words on the socket.
 *
 * The arena is one memfd mapping; every reference in it is an offset from its
 * first byte. PostgreSQL's side allocates all of it (store/ and pg/shmem.h own
 * the allocator, under an LWLock that gpuvmd never sees); gpuvmd reads
 * programs, tablets and what a cursor names, and writes only into its page of the header, the Job and the result
 * buffers that the job names. Neither side trusts what the other wrote: gpuvmd copies the request before
 * checking it, a backend copies what came back, and keeps what it needs of its own request elsewhere.
 *
 * gpuvmd maps the arena read-only, but for its page of the header and the jobs zone, the arena's last part, where jobs
 * have their memory and tables never do. Where that was full, gpuvmd makes a Job's pages writable while it has
 * the session, and those of the results while the job runs (arena_map.h). So a wild write in gpuvmd changes no
 * table's tablets, versions or dictionaries, nor what backends go by; it can spoil jobs then in the arena, and gpuvmd.
 *
 * A session is one connection of a backend to gpuvmd's Unix socket
 * (pg_stat_tmp/gpuvm.sock, SO_PEERCRED checked), served by a thread of its own.
 * After SessionHello the socket carries only doorbells, one byte each way: a
 * byte to gpuvmd means "look at your job", a byte back means "the job moved".
 * A doorbell is rung only when the other side's `waiting` word says that it
 * sleeps; before sleeping each side sets its word, then looks once more. End of
 * file means that the other process is gone.
 *
 * Life of a job. The backend fills the request, stores state = Submitted
 * (release) and rings. gpuvmd moves it to Running, then to Done or Failed.
 * Rows leave through result buffers: Free -> Filling -> Full by gpuvmd, Full ->
 * Free by the backend, which rings when gpuvmd may be starved (state
 * Suspended). `cancel` asks gpuvmd to stop; the backend frees or reuses the
 * job's memory only when the state is Done or Failed, and that of this submission, the socket is at end of
 * file, or `parting` says that gpuvmd has left. At end of file, if the job was on
 * a device, gpuvmd must also have been reaped (engine_reaped): sockets may close
 * before the driver has stopped the kernels.
 */
#ifndef GPUVM_ENGINE_ABI_H
#define GPUVM_ENGINE_ABI_H

#include <atomic>

#include "core/arena_page.h"
#include "core/types.h"
#include "tablet/format.h"
#include "vm/masked_rows.h"
#include "vm/program.h"
#include "vm/result_layout.h"
#include "vm/text_order.h"
#include "vm/window.h"

namespace gpuvm {

constexpr uint32_t ARENA_MAGIC = 0x41565047;	/* "GPVA" */
constexpr uint32_t ABI_VERSION = 23 ^ INSTRUCTION_SET;
constexpr uint32_t JOB_MAGIC = 0x4a565047;	/* "GPVJ" */
constexpr int JOB_MAX_BUFFERS = 16;
constexpr uint32_t MAX_ENGINE_THREADS = 1024;
constexpr int32_t MAX_PRIORITY = 100;	/* of a job's turn for memory; -MAX_PRIORITY is the lowest */
constexpr uint32_t MAX_SHARE = 1000;	/* of a role's weights */
constexpr uint32_t DEFAULT_SHARE = 100;

/* Sessions that gpuvmd serves at once, and those that wait to be accepted. */
constexpr int MAX_SESSIONS = 2048;
constexpr int SESSION_BACKLOG = 128;

/* gpuvmd ends with this code when a device left it no choice: a CUDA error that its context does not survive. */
constexpr int ENGINE_EXIT_DEVICE = 3;

static_assert(std::atomic<uint32_t>::is_always_lock_free, "shared between processes");

/* How tablets reach a device (gpuvm.transfer). */
enum class Transfer : uint32_t
{
	Auto = 0,
	Serial = 1,					/* copied, then run, then forgotten */
	Stream = 2,					/* the copy of one slice while another runs */
	Mapped = 3,					/* read where it lies, over the bus */
	Cached = 4,					/* copied once and kept */
};

constexpr int MAX_DEVICES = 8;

enum class DeviceState : uint32_t
{
	None = 0,
	Starting = 1,
	Ready = 2,
	Unusable = 3,				/* the sentence says why */
};

/* A CUDA device, for gpuvm.devices and gpuvm.status(). gpuvmd writes, backends read; figures may be a moment old. */
struct DeviceStatus
{
	std::atomic<uint32_t> state;	/* DeviceState; the texts are written before it */
	char		name[64];
	char		sentence[156];
	uint32_t	compute_major, compute_minor;
	uint32_t	multiprocessors;
	uint32_t	reserved;
	std::atomic<uint64_t> memory_total, memory_limit;
	std::atomic<uint64_t> memory_cached;	/* columns and indexes kept */
	std::atomic<uint64_t> memory_indexes;	/* of this, indexes */
	std::atomic<uint64_t> memory_working;	/* group tables, staging, scratch */
	std::atomic<uint64_t> jobs_running, jobs_done, jobs_refused;
	std::atomic<uint64_t> bytes_moved, evictions;
};

/*
 * Pinning of the arena by gpuvmd, chunk by chunk. A pinned chunk's memory must
 * not be given back to the system: the device would keep the old pages. The
 * protocol and the steps that change a word are in pin_words.h.
 */
enum class PinState : uint32_t
{
	Free = 0,
	Punching = 1,
	Pinned = 2,
	UnpinWanted = 3,
	PunchWanted = 4,
};

constexpr uint32_t MAX_PIN_CHUNKS = 4096;
constexpr uint64_t MIN_PIN_CHUNK = 64ull << 20;

/* Bytes of a pin chunk of an arena of that size: whole multiples of MIN_PIN_CHUNK. */
constexpr uint64_t
pin_chunk_bytes(uint64_t arena_size)
{
	return ((arena_size + MAX_PIN_CHUNKS - 1) / MAX_PIN_CHUNKS + MIN_PIN_CHUNK - 1) / MIN_PIN_CHUNK * MIN_PIN_CHUNK;
}

/*
 * Which program ended gpuvmd. The thread that crashes writes it, in a signal handler or where a device leaves it no choice;
 * the supervisor reads it when it has reaped gpuvmd. None is written by a thread that runs no program.
 */
enum class BlameState : uint32_t
{
	None = 0,
	Writing = 1,				/* by one thread, whatever others do */
	Written = 2,
};

struct Blame
{
	std::atomic<uint32_t> state;	/* BlameState */
	std::atomic<uint32_t> signal;	/* 0: a device */
	std::atomic<uint32_t> device;	/* where the program ran: Device */
	uint32_t	reserved;
	std::atomic<uint64_t> program;	/* Job.program_hash */
};

/* Programs that are running: how many, and the exclusive or of their hashes, which is the hash of a single one. */
struct RunningPrograms
{
	std::atomic<uint32_t> count;
	uint32_t	reserved;
	std::atomic<uint64_t> hashes;

	/* The hash of the only one; 0: there are none, or several. */
	uint64_t alone() const
	{
		const uint64_t hash = hashes.load();

		return count.load() == 1 ? hash : 0;
	}
};

/* The first part of the arena's header: what PostgreSQL's side writes, and gpuvmd only reads. */
struct ArenaWords
{
	uint32_t	magic;
	uint32_t	abi_version;
	uint64_t	size;			/* bytes reserved */
	uint64_t	epoch;			/* differs for every life of the shared memory */
	uint64_t	jobs_begin;		/* the jobs zone goes from here, a multiple of ARENA_PAGE, to the end */
	std::atomic<uint32_t> engine_pid;	/* gpuvmd, 0 while there is none */
	std::atomic<uint32_t> engine_generation;	/* counts starts of gpuvmd */
	std::atomic<uint32_t> engine_reaped;	/* the last start whose process is known to be gone, and its devices with it */
	uint32_t	reserved;
	char		engine_status[256];	/* a sentence for gpuvm.status(), written before engine_pid */
	/* bytes, which the supervisor may change at any time: */
	std::atomic<uint64_t> index_limit;	/* for indexes of joins (gpuvm.index_memory); 0: none are kept, on devices neither */
	std::atomic<uint64_t> result_limit;	/* for result sets (gpuvm.result_memory) */
	std::atomic<uint64_t> memory_limit;	/* for gpuvmd's own memory for jobs and what they leave (gpuvm.engine_memory); 0: none is set */
	std::atomic<uint64_t> next_serial;	/* of the next tablet: see TabletHeader.serial */
};

struct ArenaWordsPage : ArenaWords
{
	char		unused[ARENA_PAGE - sizeof(ArenaWords)];
};
static_assert(sizeof(ArenaWordsPage) == ARENA_PAGE, "what gpuvmd writes lies on another page");

/* The second part: what gpuvmd writes. Backends read it as they read a Job: any of it may be garbage. */
struct EngineWords
{
	std::atomic<uint32_t> engine_threads;
	std::atomic<uint32_t> heartbeat;	/* gpuvmd counts, every tenth of a second, whatever else it does */
	char		cuda_status[256];	/* a sentence on the CUDA library; the supervisor's, too, where there is no gpuvmd */
	std::atomic<uint32_t> ndevices;
	std::atomic<uint32_t> cuda_state;	/* DeviceState of the library, with its devices; the sentence is written before it */
	DeviceStatus devices[MAX_DEVICES];
	std::atomic<uint64_t> index_bytes;	/* what indexes of joins take, */
	std::atomic<uint32_t> indexes;	/* and how many there are */
	std::atomic<uint32_t> device_ends;	/* how often a device ended gpuvmd, counted by it before it goes */
	std::atomic<uint64_t> result_bytes;	/* what result sets take, on the host and on devices, */
	std::atomic<uint32_t> sets;	/* and how many all sessions hold */
	std::atomic<uint32_t> awake;	/* sessions that have a job, or wait awake for one */
	std::atomic<uint32_t> most_awake;	/* beyond these nobody waits awake for long: there is other work for the processors */
	uint32_t	reserved2;
	std::atomic<uint64_t> memory_used;	/* of gpuvmd's own memory by jobs and by what they leave, a heartbeat ago */
	Blame		blame;
	RunningPrograms running;
	RunningPrograms on_devices;	/* those of them that a device runs */
	std::atomic<uint32_t> pins[MAX_PIN_CHUNKS];	/* pin_words.h; backends change them, too */
};
static_assert(sizeof(EngineWords) <= ARENA_PAGE, "the header has two pages");

constexpr uint64_t ARENA_HEADER_BYTES = 2 * ARENA_PAGE;

struct ArenaHeader : ArenaWordsPage, EngineWords
{
};
static_assert(sizeof(ArenaHeader) == ARENA_PAGE + sizeof(EngineWords), "the second part begins with its page");

/* First message on the socket, backend to gpuvmd. gpuvmd answers one byte, or closes. */
struct SessionHello
{
	uint32_t	magic;			/* JOB_MAGIC */
	uint32_t	abi_version;
	uint64_t	epoch;
	uint64_t	job;			/* arena offset of the session's Job */
	uint32_t	backend_pid;
	uint32_t	reserved;
};

enum class JobKind : uint32_t
{
	Ping = 0,					/* the empty program */
	Run = 1,
	Prepare = 2,				/* a version was published: pin its tablets; no program */
	Drop = 3,					/* result sets are not needed any more (Job.drop_sets); no program */
	Window = 4,					/* window functions over a result set (JobWindow); no program */
};

/* Of a file in any tablespace; MAXPGPATH is more. */
constexpr uint32_t SPILL_PATH = 256;

/* Job.waits */
constexpr uint32_t WAITS_FOR_PROCESSOR = 1;
constexpr uint32_t WAITS_FOR_MEMORY = 2;

enum class JobState : uint32_t
{
	Idle = 0,
	Submitted = 1,
	Running = 2,
	Suspended = 3,				/* every buffer is Full: ring when one is Free */
	Done = 4,					/* all results are in Full buffers or taken; see `errors` */
	Failed = 5,					/* see `failure`; nothing more will come */
};

enum class Device : uint32_t
{
	Auto = 0,
	Cpu = 1,
	Cuda = 2,
};

/*
 * Who has left a session, in Job.parting. gpuvmd's thread says so as the last thing that it does with the Job. A backend
 * that cannot wait for that says that it has gone, and leaves the Job's memory to the supervisor.
 */
enum class Parting : uint32_t
{
	None = 0,
	Backend = 1,
	Engine = 2,
};

enum class BufferState : uint32_t
{
	Free = 0,
	Filling = 1,
	Full = 2,
};

/*
 * A result tablet: `nrows` rows in the program's result columns, from
 * `offset`: for each result column, in order and 64-byte aligned, a null bitmap
 * (1 = null) of row_capacity bits, then row_capacity values of
 * type_width(type) bytes. row_capacity is a multiple of RESULT_PAD_ROWS (see
 * result_layout). A buffer holds the rows of whole units only.
 */
struct ResultBuffer
{
	std::atomic<uint32_t> state;	/* BufferState */
	uint32_t	nrows;
	uint32_t	unit;			/* row programs: the unit that these rows come from */
	uint32_t	errors;			/* row programs: ErrorBits of the unit; if not 0, nrows is 0
								 * and the backend evaluates the unit by PostgreSQL's own means */
	uint64_t	offset;			/* arena offset of the area, set by the backend */
	uint32_t	part;			/* row programs: which buffer of the unit's it is, from 0; one is all, but for joins */
	uint32_t	last;			/* not 0: the unit has no further part */
};

/*
 * The unit of work and of emission of a row program: rows [u * unit_rows,
 * (u + 1) * unit_rows) of one tablet. Units are numbered through the tablets in
 * order: tablet t has ceil(nrows / unit_rows) of them. unit_rows is a multiple
 * of 1024 and result_capacity is at least unit_rows, so that a unit always
 * fits one buffer.
 *
 * Joins. A program of several cursors has one JobCursor each; units are of cursor
 * 0's rows. A unit may give any number of rows: its buffers are numbered by
 * `part` and filled in this order, and the unit is complete with the one that says
 * `last` and all before (a unit without rows has none). Such a unit cannot be evaluated by itself elsewhere, so
 * an error ends the job: Failed, with the ErrorBits in `errors`. What was handed
 * over before stands; if the backend gave away nothing of it, it may still run
 * the whole query by other means. A full join has one unit more, numbered behind all
 * others and run after them: rows of inner cursors that nothing matched. Units of such
 * a join cannot be skipped. So can none of a join in passes (Job.passes): its rows are all of that last unit, held back
 * until all are made, and in no order; a job that resumes is not made in passes. Where the other cursors' rows
 * and hash tables find no memory, also in passes, the job fails before it hands over
 * a row. An inner side that is all rows of tablets with serials, none masked, may be kept as an index
 * for later jobs; what it takes counts as if the job had built it.
 *
 * A cursor's tablets are those of one table or of several (the leaves of a
 * partitioned one), all with the same columns in the same order; attnums may
 * differ. A tablet with serial 0 was made for this job alone (the rows that the
 * backend read from the heap): it is checked every time and kept nowhere.
 * Masked rows keep their places, so that units are numbered and rows known as
 * ever, but no program sees them.
 */
struct JobCursor
{
	uint64_t	columns;		/* arena offset of ColumnSummary[ncolumns], which cover every tablet */
	uint64_t	tablets;		/* arena offset of uint64[ntablets]: arena offsets of tablets */
	uint64_t	masked;			/* arena offset of MaskedRows[nmasked], ascending and disjoint, of these tablets */
	uint32_t	ncolumns;
	uint32_t	ntablets;
	uint32_t	nmasked;
	uint32_t	set;			/* not 0: the rows of this result set (below), and nothing else is given */
};

/* All rows of the version that lies at the offset. */
inline JobCursor
version_cursor(const TableVersion *version, uint64_t offset)
{
	JobCursor	cursor = {};

	cursor.columns = offset + version->columns;
	cursor.tablets = offset + version->tablets;
	cursor.ncolumns = version->ncols;
	cursor.ntablets = version->ntablets;
	return cursor;
}

/*
 * A map from the codes of a dictionary to values (CodeMap in vm/code_map.h): nentries of them,
 * then the null's own if there is one. Immutable from Submitted on, as tablets are.
 */
struct JobMap
{
	Type		type;			/* as Lookup's */
	uint8_t		reserved[3];
	uint32_t	nentries;		/* at most MAP_MAX_ENTRIES */
	uint32_t	has_null_entry;
	uint32_t	reserved1;
	uint64_t	values;			/* arena offset of nentries + has_null_entry values of type_width(type), aligned to it; Bool: bytes 0 or 1 */
	uint64_t	nulls;			/* arena offset of their null bitmap (1 = null), in whole 8-byte words; 0: none is null */
};
static_assert(sizeof(JobMap) == 32, "sent between processes");

/*
 * Stages. Job.program reads the job's cursors; each stage is a program that reads nothing but what the one before
 * gave. What holds:
 *   - nstages is at most JOB_MAX_STAGES. With stages, Job.program is a grouped one (with keys or without,
 *     over one cursor or, as a join, over several).
 *   - A stage's program has one cursor, whose column i is the result column i of the program before, with its type, but
 *     for sums, which are I64 instead of I128: one that is not, in a column that the stage reads, is ERR_INT_OVERFLOW. Column's p2 is that number. As ever it may leave columns out. Its rows are the groups, in no
 *     particular order. It may not use Rowid. It is a grouped program, or one of rows.
 *   - params and maps are the job's, and shared: Variable and Lookup of all programs mean them by number; each program
 *     checks those that it uses. nparams and nmaps are at least the most that any of them needs. A parameter that
 *     two programs use has one type.
 *   - count_groups, result_capacity, row_limit and the buffers are for the last program, whose result columns they
 *     hold. The other fields are for the first: cursors, unit_rows, expected_pairs. skip_units is 0.
 *   - An error of any program ends the job: Done, with its bits in `errors`. What was handed over is then worth nothing.
 *     Rows of the last program come as units (of unit_rows rows of the groups) whose number says nothing but their order: none can be
 *     skipped or evaluated elsewhere, there is no way to go on with a job that failed, and Job.yielded is never set.
 *   - An order (below) is of the last program's results.
 *   - rows_in, bytes_read, tablets_* and pairs are the first program's; stage_rows counts the groups that went on.
 */
constexpr uint32_t JOB_MAX_STAGES = 1;

struct JobStage
{
	uint64_t	program;		/* arena offset of the sealed Program */
	uint32_t	program_size;
	uint32_t	reserved;
};
static_assert(sizeof(JobStage) == 16, "sent between processes");

/*
 * Order. A job with order keys hands over the rows or groups of its last program sorted by them, the first key first; ties
 * come in any order. What holds:
 *   - A key's column is a result column of the last program, of any type but RowId. Comparison is PostgreSQL's: integers are
 *     signed, false < true, -0 = 0 < NaN = NaN above all other floats. Nulls come last, or first with ORDER_NULLS_FIRST, whatever ORDER_DESC says.
 *   - ORDER_RANKS: the column is I32, of codes, and what is compared is maps[map][code], an I32 or an I64. A code that
 *     the map has no value for is taken for null.
 *   - ORDER_TEXT: the column is I64, of references to values of variable length, which are compared by text_orders[map].
 *   - row_limit is exact, for groups, too: the first row_limit rows come. 0: all.
 *   - Nothing is handed over before all is sorted. An error of any row ends the job: Done, with its bits in `errors` and no
 *     row handed over. So it is with joins.
 *   - Rows come in units numbered 0, 1, 2 ..., each in one part, and a buffer is Full only when those of all units before were.
 *     Nothing else can be said of units: skip_units is 0, and Job.yielded is never set.
 *   - What is sorted and finds no memory goes into the job's file; with a small row_limit, or where it becomes a set, the job is Failed.
 *   - count_groups has no order.
 */
constexpr uint32_t JOB_MAX_ORDER = 16;
constexpr uint32_t ORDER_DESC = 1;
constexpr uint32_t ORDER_NULLS_FIRST = 2;
constexpr uint32_t ORDER_RANKS = 4;
constexpr uint32_t ORDER_TEXT = 8;

struct JobOrderKey
{
	uint32_t	column;
	uint32_t	flags;			/* ORDER_* */
	uint32_t	map;			/* ORDER_RANKS: number of the map; ORDER_TEXT: of the text order */
	uint32_t	reserved;
};
static_assert(sizeof(JobOrderKey) == 16, "sent between processes");

/*
 * Result sets: what one program of a session gave, kept in gpuvmd for later programs of the same session.
 *   - The backend numbers them, from 1 to JOB_MAX_SETS. The end of the session drops all of them.
 *   - With JobSink.set the rows or groups of the last program become that set instead of leaving through
 *     buffers. There must be no such set; with `append` there must be one, with columns of the same types,
 *     and the rows are added to it. nbuffers, skip_units and count_groups are 0. row_limit is 0 without an
 *     order; with one the set is sorted, and the limit exact.
 *   - The job ends Done, with the set complete and rows_out rows added; or Done with bits in `errors`; or
 *     Failed. In the last two cases there is no set, and one that was to be appended to is as it was.
 *     Job.yielded is never set.
 *   - A set has the columns that the sink lists, each made of a result column: its values, a sum (I128) as
 *     I64; or the low or high halves (tablet/wide_halves.h) of a sum or an I64, as I64. A result column may
 *     be listed several times, or not at all. ERR_INT_OVERFLOW where a value does not fit.
 *   - References in a set (COLUMN_VARIABLE) lead into the arena. The backend keeps what they lead to as long
 *     as the set lives.
 *   - Any JobCursor may be a set; its columns are the set's. The program must not use Rowid of it.
 *   - A program of rows whose first cursor is a set is like one that is a stage (above): units cannot be
 *     skipped or evaluated elsewhere, their numbers only order them, and an error of any row ends the job,
 *     Done with its bits. Joins fail, as ever.
 *   - drop_sets is done when the job is over, whatever its outcome. It may name sets that the job reads, or
 *     that do not exist.
 *   - The sets of all sessions take at most ArenaHeader.result_limit. A job that needs more is Failed, "out
 *     of memory for result sets".
 */
constexpr uint32_t JOB_MAX_SETS = 63;

enum class SinkForm : uint16_t
{
	Value = 0,
	Low = 1,
	High = 2,
};

struct SinkColumn
{
	uint16_t	result;
	SinkForm	form;
};

struct JobSink
{
	uint32_t	set;			/* 0: rows leave by buffers */
	uint32_t	append;			/* not 0: they are added to the set */
	uint64_t	known;			/* arena offset of SetColumn[ncolumns], which gpuvmd writes before Done; 0: nobody asks */
	uint32_t	ncolumns;
	uint32_t	reserved;
	SinkColumn	columns[PROGRAM_MAX_COLUMNS];
};

/* What is known of a set's column, over all of its rows. */
struct SetColumn
{
	int64_t		min;			/* as in ColumnSummary */
	int64_t		max;
	uint64_t	null_count;
	Type		type;
	uint8_t		reserved;
	uint16_t	flags;			/* ChunkFlag bits, and COLUMN_VARIABLE */
	int16_t		exp_hi;
	int16_t		exp_lo;
};
static_assert(sizeof(SetColumn) == 32, "sent between processes");

/*
 * Window functions (vm/window.h says which, and of what) over a result set. A job of JobKind::Window reads set `set` and
 * appends the functions' columns to it, in their order.
 *   - Of the request it has window, maps, text_orders, threads, device, device_required and drop_sets. It has no program,
 *     cursors or buffers.
 *   - The set was made by one job, sorted by `keys`: the partition keys, then the order keys, npartition + norder in all. Where
 *     it was not, results are wrong. ORDER_TEXT: see vm/window.h on references.
 *   - The job ends Done, with the columns appended and rows_out the set's rows; or Done with bits in `errors`; or Failed. In the
 *     last two cases the set is as it was. An offset, ntile() or nth_value() that PostgreSQL raises for is Failed.
 *   - The columns are the set's, and what the job takes beside them while it runs counts as the set's, too.
 *   - A set on a device stays there, and gets its columns there, unless it is tiny; what the device refuses the CPU computes, which
 *     brings the set home. A set in gpuvmd's memory is not sent to a device: the CPU computes it, and Device::Cuda has a refusal.
 */
struct JobWindow
{
	uint32_t	set;
	uint32_t	npartition;
	uint32_t	norder;
	uint32_t	nfunctions;
	JobOrderKey keys[JOB_MAX_ORDER];
	WindowFrame	frame;
	uint64_t	known;			/* arena offset of a SetColumn for each column that is appended, which gpuvmd writes before Done; 0: nobody asks */
	WindowFunction functions[WINDOW_MAX_FUNCTIONS];
};

struct Job
{
	/* -- the request, written by the backend before Submitted ---------------- */
	uint32_t	magic;
	JobKind		kind;
	uint64_t	program;		/* arena offset of the sealed Program */
	uint32_t	program_size;
	uint32_t	nparams;
	ParamValue	params[PROGRAM_MAX_PARAMS];
	JobCursor	cursors[PROGRAM_MAX_CURSORS];
	uint32_t	ncursors;
	Device		device;
	uint32_t	threads;		/* at most; 0 means all of the engine's */
	uint32_t	unit_rows;
	uint32_t	result_capacity;	/* rows a result buffer */
	uint32_t	nbuffers;
	uint64_t	skip_units;		/* arena offset of a bitmap of units not to run, or 0 */
	uint32_t	skip_bytes;
	uint32_t	count_groups;	/* grouped programs: one row, its only column the number of groups (I64) */
	Transfer	transfer;
	uint32_t	device_required;	/* not 0, with Device::Cuda: fails with device_refusal instead of running on the CPU */
	uint64_t	row_limit;		/* enough once this many rows were emitted; with an order exact; 0 = no limit */
	uint64_t	expected_pairs;	/* joins: that Seek and Cross are expected to make, for the choice of the engine; 0 = unknown */
	uint64_t	maps;			/* arena offset of JobMap[nmaps] */
	uint32_t	nmaps;			/* at least the program's */
	uint32_t	role;			/* who is logged in: roles share the processors (processors.h), */
	uint64_t	stages;			/* arena offset of JobStage[nstages]: the programs behind `program`, in order */
	uint32_t	nstages;
	uint32_t	npatterns;		/* at least the program's */
	uint64_t	patterns;		/* arena offset of uint64[npatterns]: arena offsets of patterns (vm/text_match.h), aligned to 8 */
	uint32_t	norder;			/* 0: rows come in any order */
	uint32_t	ntext_orders;
	TextOrderSpec text_orders[PROGRAM_MAX_TEXT_ORDERS];	/* that ORDER_TEXT, patterns, TextCompare, MinText and MaxText name by number */
	JobOrderKey order[JOB_MAX_ORDER];
	JobSink		sink;
	uint64_t	window;			/* arena offset of the JobWindow */
	uint64_t	drop_sets;		/* bit n: set n */
	uint64_t	program_hash;	/* that a crash counts against: the program's, a window job's that of what made the set; 0: nobody's */
	uint64_t	submission;		/* differs for every job of the session: its end is known by it */
	uint32_t	share;			/* the role's weight (gpuvm.share), 1 to MAX_SHARE; anything else counts as DEFAULT_SHARE */
	uint64_t	job_memory;		/* of gpuvmd's own memory for the job, at most; 0 = no limit but all's */
	int32_t		priority;		/* of its turn for memory: the highest first */
	uint32_t	queue_timeout;	/* ms that it waits for memory at most; 0 = as long as it takes */
	uint32_t	resumes;		/* joins that end in rows: some were handed out by a job before, and come in the same order for nothing */
	ResultBuffer buffers[JOB_MAX_BUFFERS];

	/* -- the conversation ----------------------------------------------------- */
	std::atomic<uint32_t> state;	/* JobState */
	std::atomic<uint32_t> cancel;
	std::atomic<uint64_t> ended;	/* the submission that Done and Failed are of, stored before them */
	std::atomic<uint32_t> backend_waiting;
	std::atomic<uint32_t> engine_waiting;
	std::atomic<uint32_t> parting;	/* Parting */
	std::atomic<uint32_t> waits;	/* while Running: for what (WAITS_FOR_...), or 0; to be shown */
	std::atomic<uint32_t> looks;	/* how often its thread has looked whether it is to wait on for result sets' memory: a sign of life */
	std::atomic<uint64_t> rows_done;	/* on the CPU, of the last program; likewise */
	std::atomic<uint64_t> rows_to_do;
	std::atomic<uint64_t> spill_wanted;	/* how long the job's temporary file is to be, */
	std::atomic<uint64_t> spill_room;	/* and how long the backend has made it; 0: there is none yet */
	char		spill_path[SPILL_PATH];	/* from the data directory on, set before spill_room */

	/* -- the outcome, valid once Done or Failed -------------------------------- */
	uint32_t	errors;			/* groups and sorted rows: ErrorBits; if not 0 there are no rows. Joins that end in rows: see above */
	Device		ran_on;			/* while Running: where it is, for the case that gpuvmd does not survive it */
	uint32_t	tablets_scanned;
	uint32_t	tablets_skipped;	/* by their zone maps */
	uint64_t	rows_in;
	uint64_t	rows_out;
	uint64_t	bytes_read;
	uint64_t	engine_ns;		/* from Running to Done, waits for buffers left out */
	uint32_t	threads_used;
	uint32_t	device_index;	/* the following if ran_on is Cuda */
	uint64_t	bytes_moved;	/* over the bus, both ways */
	uint64_t	device_ns;		/* by the device's clock */
	uint64_t	pairs;			/* joins: lanes that Seek and Cross made */
	uint64_t	build_rows;		/* joins: rows of the cursors behind the first that their filters left */
	uint64_t	build_bytes;	/* joins: what they and their hash tables took */
	uint32_t	indexes_used;	/* joins: bit c: the inner side of cursor c was an index that had been kept, */
	uint32_t	indexes_made;	/* or was built and is kept as one */
	uint32_t	passes;			/* joins: in so many parts one inner side was built and met by all rows of the first cursor, for want of memory */
	uint64_t	index_bytes;	/* of build_bytes, those of these indexes */
	uint32_t	slices;
	Transfer	transfer_used;
	uint32_t	yielded;		/* row programs, Failed: nobody took rows, so the device went to others; units up to
								 * the last one handed over are done, the rest may be submitted again */
	uint32_t	set_tablets;	/* of the set that was made or added to, all */
	uint64_t	stage_rows;		/* stages: groups of the first program */
	uint64_t	expected_cpu_ns;	/* Device::Auto, where there is a device: what was expected of the engines, idle; else 0 */
	uint64_t	expected_device_ns;
	uint64_t	queue_ns;		/* that it waited for memory, */
	uint32_t	restarts;		/* and how often it was begun again, with more of it or fewer threads */
	uint64_t	memory_peak;	/* bytes of gpuvmd's that it had at most, on the CPU */
	uint64_t	spilled;		/* bytes that it put into its temporary file */
	char		device_refusal[128];	/* why not on a device, if it was asked for or considered */
	char		failure[128];
};

}  // namespace gpuvm

#endif
