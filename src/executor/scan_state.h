/*
 * scan_state.h: the state of a Custom Scan (GpuVM) while it runs.
 *
 * A scan decides at its first row, and again after each rescan, whether the
 * virtual machine or the alternative plan answers. What the machine reads is a
 * source: the tablets without the rows of blocks that they do not serve, and the
 * rows of those blocks, as the snapshot has them, in a delta. Before the first row is
 * handed out any obstacle leads to the alternative. After it (row programs
 * only; groups are taken whole before the first is handed out) the scan goes on
 * by units: a unit that gpuvmd could not finish is evaluated here, from the
 * heap, by PostgreSQL's own expressions (rule 13), so no answer is ever cut
 * short. A join has a source for each relation, and units of the first one's rows.
 * They come in parts and cannot be evaluated from the heap: after the first row
 * units that were not handed out to their end are submitted again, and where that is
 * not possible the statement ends in an error.
 */
#ifndef GPUVM_EXECUTOR_SCAN_STATE_H
#define GPUVM_EXECUTOR_SCAN_STATE_H

#include "engine/abi.h"
#include "executor/finalize.h"
#include "executor/maps.h"
#include "pg/engine_client.h"
#include "pg/stats.h"
#include "planner/scan_plan.h"
#include "store/delta.h"
#include "store/registry.h"

extern "C" {
#include "access/tupconvert.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "utils/tuplestore.h"
}

namespace gpuvm {

enum ScanMode
{
	MODE_START,					/* nothing decided */
	MODE_VM,
	MODE_ALTERNATIVE,
	MODE_END,
};

/* A result buffer's rows, copied out of the arena (groups only). */
struct GroupChunk
{
	char	   *area;			/* laid out for */
	uint32		capacity;
	uint32		nrows;
};

/* Values of variable length: a source's, in this column of its tablets. */
struct ValueColumn
{
	struct ScanSource *source;
	int			column;
};

/* A program of the plan, and the groups that it gave. */
struct ScanPart
{
	const PlanPart *plan;
	int			ncols;			/* result columns */
	Type		types[PROGRAM_MAX_COLUMNS];
	EntrySource entries[PROGRAM_MAX_COLUMNS];	/* of those that are codes */
	int16		lens[PROGRAM_MAX_COLUMNS];	/* pg_attribute.attlen of those that are references */
	List	   *checked[PROGRAM_MAX_COLUMNS];	/* of these: columns (ValueColumn) one of whose values they have to be; NIL: any bytes will do */
	GroupChunk **chunks;
	uint32		nchunks;
	uint32		max_chunks;
	uint64		nrows;
	struct TieTable *ties;		/* of ties that have run (ties.cc); else NULL */
	const GroupChunk *viewed;	/* what the views are of */
	ColumnView	views[PROGRAM_MAX_COLUMNS];
};

/* A group's place among those of a part: the chunk's number, and the row in it. */
struct GroupRow
{
	uint32		chunk;			/* NO_GROUP: the part does not have it */
	uint32		row;
};

constexpr uint32 NO_GROUP = ~uint32{0};

/* The groups of a set's parts, put together by their keys (merge.cc). */
struct GroupMerge
{
	int			nparts;
	uint64		ngroups;
	GroupRow   *rows;			/* nparts for each group */
};

/* What is fetched from the heap for rows that are handed out (fetch.cc). */
struct Fetches;

/* A relation of the source. */
struct ScanLeaf
{
	Oid			relid;
	Relation	rel;
	VersionPin *pin;
	const TableVersion *version;
	ServedCheck check;
	Delta	   *delta;			/* NULL: every block is served */
};

/* A tablet of the source, in the job's order: imported ones, then those of deltas. */
struct ScanTablet
{
	const TabletHeader *header;
	const ItemPointerData *ctids;	/* of a delta's rows; NULL: the tablet has its keys */
	uint32		leaf;
	bool		of_file;		/* its rows are in no heap, */
	bool		stored;			/* but in stored tablets, which they have ctids of (store/tablets.h) */
	uint32		first_unit;		/* rows */
	uint64		place;			/* in the arena: of a delta's, in the current job; of others if source_row() is asked */
};

/*
 * What a program runs over, good for one snapshot: versions do not change, the
 * check of their blocks came after the snapshot, and so did the delta. Where
 * nothing is unserved it is the version's own arrays.
 */
struct ScanSource
{
	MemoryContext context;
	int			cursor;			/* of the program */
	ScanLeaf   *leaves;			/* the relation, or those of a partitioned one */
	int			nleaves;
	Relation	parent;			/* the partitioned table, which numbers the program's columns; else NULL */
	uint64		nrows;			/* at most */
	bool		plain;			/* one version, no masked rows, no delta */
	ScanTablet *tablets;		/* not made for groups over a plain source */
	uint32		ntablets;
	uint32		nimported;		/* of these: not of deltas */
	uint64	   *offsets;		/* where the imported ones are in the arena, in order; made when it is first asked: */
	uint32		noffsets;
	uint32	   *by_place;		/* their numbers, in the order of their places in the arena: of the current job, if rows are found by their positions */
	uint32		ncolumns;
	ColumnSummary *columns;		/* this and the following: not if plain */
	MaskedRows *masked;
	uint32		nmasked;
	uint64		delta_bytes;
	LocalDictionary **locals;	/* for each column: what the deltas add to its dictionary; NULL, or NULL there: nothing */
	/* rows of a child (derived.cc): neither leaves nor masks, all that it has are tablets as a delta's */
	const PlanCursor *derived;	/* NULL: imported tables */
	AttrNumber *attnums;		/* the program's, of each column */
	TupleDesc	desc;			/* the child's */
	/* those that stay in gpuvmd (derived_set.cc), instead of the tablets: */
	uint32		set;			/* the result set, of this session; 0: there is none */
	uint64		set_session;
	uint32		set_tablets;
	EntrySource *entries;		/* per column: of codes */
	struct SharedStage *of;		/* the rows are those of a stage that others read, too: all of this is its source's but the array of tablets. Else NULL */
	uint64		opening;
};

/* Where a job has its memory, as it was submitted. gpuvmd can write to the Job, so that is not asked for it again. */
struct JobMemory
{
	uint64		begin;			/* arena offsets of the session's area: all that the job brings, and its results */
	uint64		end;
	uint64		buffers;		/* the first result buffer's, */
	uint64		buffer_bytes;	/* and what each takes */
	int			nbuffers;
	uint64		known;			/* of a set's columns */
};

/* A Full result buffer, as it was when it was found. Its rows are where JobMemory says. */
struct FullBuffer
{
	int			number;			/* -1: none is */
	uint32		unit;
	uint32		nrows;
	uint32		errors;
	uint32		part;
	bool		last;
};

struct GpuvmScanState;

/* The session whose result sets a scan and its children share (pg/engine_client.h). */
struct SetSpace
{
	uint64		session;
};

/* Where a program's results go, if they stay in gpuvmd, and what became of it. */
struct SetSink
{
	uint32		set;			/* which is added to; 0: it is made, and gets a number */
	uint32		ncolumns;		/* that the program gives; behind them are those of window functions, */
	SinkColumn	columns[PROGRAM_MAX_COLUMNS];	/* which have here what they are codes or references of */
	bool		references;		/* one is of references */
	bool		several;		/* the set is made by several programs, whose codes have to be the same */
	LocalDictionary *constants[PROGRAM_MAX_COLUMNS];	/* of the set's columns: what a constant's code is to be of; NULL: it is none */
	uint64		nrows;
	uint32		tablets;
	SetColumn	known[PROGRAM_MAX_COLUMNS];
	bool		refused;		/* it was not begun */
	bool		gave_way;		/* its rows are no use: what stood in the way stands in their reader's */
};

/* A plan whose rows are read in a table's place. */
struct DerivedChild
{
	PlanState  *state;
	bool		read;			/* it has been run */
};

/* A stage that several programs of a statement read (shared_stages.cc). */
struct SharedStage
{
	DerivedChild child;
	int			nreaders;		/* cursors */
	bool		stays;			/* all of them can read a result set */
	MemoryContext context;
	ScanSource *source;			/* the rows; NULL: they are not there */
	uint64		opening;		/* which rows they are: how many were there before */
	int			users;			/* readers that have them */
	int			left;			/* readers that have not had them yet */
};

struct SharedStages
{
	GpuvmScanState *owner;		/* of the last stage */
	int			nstages;
	SharedStage *stages;
};

/* What EXPLAIN ANALYZE shows, summed over rescans. */
struct ScanFigures
{
	uint64		blocks_served;	/* of the tables that were checked */
	uint64		blocks_unserved;
	uint64		blocks_restamped;
	uint64		delta_rows;
	uint64		check_ns;
	uint64		delta_ns;
	bool		ran;			/* on a virtual machine, at least once */
	Device		device;			/* of the last run, as what follows up to device_refusal */
	uint32		device_index;
	uint32		threads;
	Transfer	transfer;
	char		device_refusal[sizeof(Job::device_refusal)];	/* why not on a device; empty: nothing was refused */
	uint64		slices;
	uint64		bytes_moved;
	uint64		device_ns;
	uint64		expected_cpu_ns;	/* as in Job */
	uint64		expected_device_ns;
	uint64		queue_ns;
	uint64		restarts;
	uint64		memory_peak;	/* the most of any program */
	uint64		spilled;
	uint64		tablets_scanned;
	uint64		tablets_skipped;
	uint64		rows_in;
	uint64		rows_out;
	uint64		bytes_read;
	uint64		pairs;			/* joins: this and what follows, as in Job */
	uint64		build_rows;
	uint64		build_bytes;
	uint32		indexes_used;	/* bit c: the rows of cursor c */
	uint32		indexes_made;
	uint32		passes;
	uint64		index_bytes;
	uint64		engine_ns;
	uint64		map_entries;	/* that maps' expressions were evaluated for */
	uint64		map_ns;
	uint64		heap_fetches;	/* rows of which something was fetched that tablets do not have */
	uint64		units_by_heap;	/* units evaluated by PostgreSQL's expressions */
	bool		stayed;			/* its rows, in a result set: */
	uint64		rows_stayed;
	char		not_stayed[sizeof(Job::failure)];	/* why they did not, though they were to; empty: nothing of the kind */
	bool		unfiltered;		/* all groups were handed out, though the plan has a filter for them, */
	bool		unfiltered_before;	/* which an earlier execution had found out */
	int			fallback;		/* FallbackReason of the last fallback, or -1 */
	char		fallback_detail[160];
};

/*
 * A unit of a join of which parts were handed out, but not the last. gpuvmd's CPU
 * gives a unit's rows in one order, so that after its end the next one's can be
 * dropped up to where the first stopped; the last row tells that they are the same.
 */
struct OpenUnit
{
	uint32		unit;
	uint64		handed;			/* rows */
	uint64		seen;			/* rows that the current job has given */
	uint64		last_row;		/* a hash of the last that was handed out */
};

struct GpuvmScanState
{
	CustomScanState css;		/* must be first */
	ScanPlan   *plan;
	PlanState  *alternative;
	DerivedChild *children;		/* by PlanCursor.child, which counts from 1 */
	int			nchildren;
	SharedStages *shared;		/* of the whole statement; NULL: it is none of one */
	int			shared_stage;	/* the number of the one whose rows it gives; 0: of none */
	int			eflags;
	bool		sketched;		/* the alternative was made for EXPLAIN only: finish_alternative() before it runs */
	List	   *param_states;
	List	   *window_states;	/* ScanPlan.window_values */
	Bitmapset  *param_execs;	/* the parameters of subqueries in them */
	ScanMode	mode;
	bool		emitted;		/* a row was handed out since the last (re)start */
	bool		flagged;		/* an error bit made PostgreSQL evaluate something */
	bool		feeds;			/* a scan of ours reads all of its rows before it gives any: that one runs its alternative, in place of this one: */
	bool		gave_way;
	SetSpace   *space;			/* own_space, or that of the scan whose child it is */
	SetSpace	own_space;
	SetSink    *sink;			/* where results go; NULL: they are handed out */
	const char *no_device;		/* why what is left goes to the CPU although a device was asked for, or NULL */

	/* while MODE_VM, and between rescans if it is not plain */
	ScanSource *sources[PROGRAM_MAX_CURSORS];	/* one for each cursor; units are of the first */
	MemoryContext source_contexts[PROGRAM_MAX_CURSORS];	/* of the sources; made when they are first needed */
	double		delta_cost;		/* what reading the changed rows of the sources is expected to cost */

	/* maps, while MODE_VM (maps.cc) */
	List	   *known;			/* what their expressions have that is known when execution starts */
	List	   *known_states;
	MemoryContext map_context;
	MapData    *maps[MAX_MAPS];
	CachedMap  *cached_maps[MAX_MAPS];
	EntrySource map_entries[MAX_MAPS];	/* whose entries they have */

	/* programs: rows have one */
	ScanPart   *parts;
	ScanPart   *part;			/* the one that runs, or ran last */

	/* patterns, while MODE_VM (patterns.cc) */
	List	   *pattern_states;
	TextPattern *patterns[PROGRAM_MAX_PATTERNS];

	/* the job, while one is in flight */
	EngineSession *session;
	Job		   *job;
	JobMemory	memory;
	int			nvalues;		/* rows: how many of the result columns are row_slot's */
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	ColumnView	views[PROGRAM_MAX_COLUMNS];
	int			buffer;			/* rows: the one being read, or -1 */
	uint32		row;			/* next row of the buffer that is not decoded */
	uint32		nrows;

	/* rows: decoded ahead, row by row, for the scan slot to point into (decode.cc) */
	Datum	   *batch_values;
	bool	   *batch_nulls;
	MemoryContext batch_context;	/* of numerics */
	ItemPointerData *batch_tids;
	uint32		batch_row;
	uint32		batch_rows;
	Fetches    *fetches;		/* NULL: tablets have all that is wanted */

	/* rows: units */
	uint32		unit_rows;
	uint32		buffer_rows;	/* that a result buffer has room for */
	uint32		nunits;
	uint8	   *units_done;		/* bitmap: handed out, or being so, to its last part */
	OpenUnit   *open;			/* joins: this and the following */
	uint32		nopen;
	uint32		max_open;
	bool		full;			/* it has a full join: a unit more, and none can be left out */
	bool		again;			/* the job runs units that were handed out */
	uint32		units_before;	/* the highest unit that the job handed over */
	uint32		next_unit;		/* sorted: they come in order */
	const ScanTablet *tablet;	/* of the current unit */
	uint32		block_hint;
	Oid			row_relid;		/* where the current row is from */

	/* rows: a unit, or all that remain, by the heap */
	bool		by_heap;
	bool		rest_by_heap;
	uint32		heap_unit;
	uint32		heap_row;
	uint32		heap_last;
	const MaskedRows *heap_masked;	/* from the current row on */
	ExprState  *heap_qual;
	TupleTableSlot **heap_slots;	/* of each leaf */
	TupleConversionMap **heap_maps;	/* from the leaf's columns to the partitioned table's, where they differ */
	TupleTableSlot *heap_slot;	/* what maps lead to */
	TupleTableSlot *row_slot;	/* that rows are decoded into: the scan slot, or with `order` the result slot */
	int		   *order;			/* joins whose target list only reorders: the program's column for each of it; else NULL */
	Datum	   *own_values;		/* row_slot's own arrays */
	bool	   *own_nulls;

	/* rows that are held back */
	Tuplestorestate *held;
	TupleTableSlot *held_slot;

	/* groups */
	uint64		group_bytes;	/* that the parts' chunks take */
	int			set_first;		/* the first part of the set that is being handed out, and how many it has */
	int			set_parts;
	GroupMerge *merge;			/* of these, if they are several */
	uint64		group;			/* the set's next */
	GroupRow	next_row;		/* of the only part */
	bool	   *is_count;		/* of raw columns: ScanPlan.counts */
	TupleTableSlot *raw_slot;
	ProjectionInfo *raw_project;
	bool		computes;		/* of a stage: PostgreSQL computes something, and an error of that leads to the alternative */
	ExprState  *having;			/* all of it, */
	ExprState  *having_rest;	/* and what the group filter does not ask */
	bool		unfiltered;		/* the filter flagged an error: this run does without it, and so without the plan's limit */
	MemoryContext group_context;

	ScanFigures figures;
};

constexpr uint32 MIN_BUFFER_ROWS = 1024;
constexpr uint32 MIN_UNIT_ROWS = 16384;
constexpr uint32 MAX_UNIT_ROWS = 131072;
constexpr uint32 MIN_JOIN_UNIT_ROWS = 1024;
constexpr uint32 JOIN_UNITS = 256;	/* rather larger ones than more */
constexpr uint64 MAX_BUFFER_BYTES = 12 * 1024 * 1024;
constexpr int ROW_BUFFERS = 8;
constexpr int GROUP_BUFFERS = 4;

/* -- source.cc, source_columns.cc, source_job.cc: what a program reads ------------- */

/*
 * Pins, checks, and reads the delta, in the order of rule 7. NULL, or a
 * FallbackReason in *reason with *detail (which may stay NULL).
 */
ScanSource *source_open(GpuvmScanState *state, int cursor, int *reason, const char **detail);
void		source_close(ScanSource *source);

/* The source's result set is needed no more. */
void		source_drop_set(ScanSource *source);

/* Numbers the units. */
uint32		source_count_units(ScanSource *source, uint32 unit_rows);

/* Bytes that the cursor's arrays and the deltas take in the arena, and putting them there; `positions`: source_row() will be asked. */
uint64		source_bytes(const ScanSource *source);
JobCursor	source_cursor(ScanSource *source, uint64 at, bool positions);

/* Column of the program's attribute in the tablets, -1 when it is not in them. */
int			source_column(const ScanSource *source, AttrNumber attnum, Type type);

/* The dictionary of a column of a source of one table, and what its delta adds. */
void		source_entries(const ScanSource *source, AttrNumber attnum, EntrySource *entries);

/* Can none of the plan's differences overflow, for any pair of rows (planner/band.h)? False with a detail. The sources are open. */
bool		source_differences_fit(const GpuvmScanState *state, const char **detail);

/* Have the columns of which the plan takes all values for numbers nothing else, changed rows included? False with a detail. The sources are open. */
bool		source_specials_fit(const GpuvmScanState *state, const char **detail);

/* The first range of masked rows that ends behind the row, or one behind the tablet's. */
const MaskedRows *source_masked_from(const ScanSource *source, const ScanTablet *tablet, uint32 row);

/* Is the row masked? Then *row becomes the next one that may not be. */
bool		source_skip_masked(const ScanSource *source, const ScanTablet *tablet, const MaskedRows **at, uint32 *row);

/* ctids of rows of a tablet. */
void		source_ctids(const ScanTablet *tablet, const uint32 *rows, uint32 n, uint32 *block_hint, ItemPointerData *ctids);

/* The tablet of a row's position (tablet/format.h), and its ctid, unless NULL. */
const ScanTablet *source_row(const ScanSource *source, int64 position, ItemPointer ctid);

/* Does the plan hand out what has to be looked up by the positions of the cursor's rows? */
bool		source_has_positions(const ScanPlan *plan, int cursor);

/* pg_attribute.attlen of a column, and its type. */
int16		source_attlen(const ScanSource *source, AttrNumber attnum, Oid *type);
/* Those of this base type, or of one with the same values, behind what the list (of ValueColumn) has already. */
List	   *source_values_of(ScanSource *source, Oid type, List *columns);

/* -- derived.cc: cursors over the rows of other plans ------------------------------------ */

/* Makes the child's rows the source's: in a result set, if they can be and `stays`. */
bool		derived_read(GpuvmScanState *state, ScanSource *source, DerivedChild *child, bool stays, int *reason, const char **detail);

/* The part of source_open() that is theirs: runs the child. */
bool		derived_open(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail);

enum SetOutcome
{
	SET_DONE,					/* the source reads a result set */
	SET_NOT_TRIED,
	SET_FAILED,					/* the child has to be run again */
	SET_GAVE_WAY,				/* as a scan of ours that feeds another one does */
};

/* derived_set.cc: has the child's rows stay in gpuvmd, where that can be done. */
SetOutcome	derived_set(GpuvmScanState *state, ScanSource *source, PlanState *child);

/*
 * Can all of the scan's programs read a set where they read the child's tablets? Of a set no row is found by its place,
 * and no text within a value.
 */
bool		can_read_set(const GpuvmScanState *state, int cursor);

/* external.cc: registers the scan that gives stages the rows of a table that is not imported. */
void		external_install();

/* The custom scan's plans but the first are children. */
void		derived_begin(GpuvmScanState *state, List *plans, int eflags);
void		derived_end(GpuvmScanState *state);

/*
 * May the alternative be made anew when it is to run? Not if a child has run subqueries or a CTE with it that
 * it would take for not begun.
 */
bool		can_be_sketched(const CustomScan *scan);

/* For custom_ps. */
List	   *derived_states(const GpuvmScanState *state, PlanState *alternative);

/* Before the scan is run again: a child whose parameters have changed is read anew. */
void		derived_rescan(GpuvmScanState *state, Bitmapset *changed);

/* -- shared_stages.cc: stages that several programs read --------------------------------- */

/* Of the last stage, whose children are there: the last of its plans are such stages, and the programs of all get to know them. */
void		shared_begin(GpuvmScanState *state, const List *plans, int eflags);
void		shared_end(GpuvmScanState *state);

/* Of the last stage: no rows of theirs are needed any more. */
void		shared_close(GpuvmScanState *state);

/* As derived_open(), of a cursor that reads one. */
bool		shared_open(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail);

/* Are the rows that the source has still those of the stage? And: it needs them no more. */
bool		shared_is_open(const ScanSource *source);
void		shared_let_go(ScanSource *source);

/* -- patterns.cc: what TextMatch compares with ------------------------------------- */

void		patterns_begin(GpuvmScanState *state);

/* Evaluates them. False with a FallbackReason and a detail. */
bool		patterns_build(GpuvmScanState *state, int *reason, const char **detail);

/* Bytes in the arena, and putting them there. */
uint64		patterns_bytes(const GpuvmScanState *state);
void		patterns_to_job(const GpuvmScanState *state, uint64 at, Job *job);

/* -- custom_scan.cc ----------------------------------------------------------------- */

/* What each program's result columns are, with the group filter or without. */
void		describe_parts(GpuvmScanState *state);

/* A walker: the parameters of subqueries in the expression, into a Bitmapset. */
bool		collect_param_execs(Node *node, void *found);

/* subqueries.cc: evaluates those that may raise an error; why PostgreSQL's own plan has to, or NULL. */
const char *subqueries_evaluate(GpuvmScanState *state);

/* -- run.cc: the life of a job ------------------------------------------------- */

/* What reads the part's groups in this run; NULL: they are handed out as they are. */
inline const Program *
run_second_program(const GpuvmScanState *state, const PlanPart *part)
{
	return state->unfiltered ? part->stage : second_program(part);
}

/* Runs the only program into a result set. False if it is not there; the scan has to be rescanned before anything else. */
bool		run_into_set(GpuvmScanState *state, SetSink *sink);

/* Can these columns of the set be what gpuvmd says of them, and of the set? */
bool		sink_can_be(const SetSink *sink, uint32 first, uint32 ncolumns);

/* What a job is given, of any kind. */
ParamValue	param_value(Datum value, bool isnull, Type type);
JobOrderKey job_order_key(const PlanOrderKey &key);
const char *put_text_orders(const ScanPlan *plan, Job *job);
Device		wanted_device(const GpuvmScanState *state);

/* -- windows.cc: window functions of a stage -------------------------------------- */

void		windows_begin(GpuvmScanState *state);

/* Appends their columns to the set that the program's rows are in. NULL, or why not, with the FallbackReason. */
const char *windows_run(GpuvmScanState *state, SetSink *sink, int *fallback);

/* Decides and, for the VM, submits. Returns the mode to go on in. */
ScanMode	run_start(GpuvmScanState *state);

/*
 * Are all rows to be there before the first is handed out? Those of a join in which a flag need
 * not be an error in PostgreSQL, as it need not where conditions are not in its order: before the first row it falls
 * back. Sorted ones are there anyway, but those that have conditions of PostgreSQL's, which may raise an error.
 */
inline bool
holds_rows_back(const ScanPlan *plan)
{
	return plan->kind == SCAN_ROWS && !gives_positions(plan) && (plan->norder == 0 || plan->having != NIL) &&
		(plan->soft_errors || plan->whole);
}

/* Rows: fills the scan slot; false at the end. May change to MODE_ALTERNATIVE (then false, nothing emitted). */
bool		run_next_row(GpuvmScanState *state, TupleTableSlot *slot);

/* Groups: waits for the job and takes its chunks; false when the alternative must run. */
bool		run_collect_groups(GpuvmScanState *state);

/* Ends the job, if any, takes its figures, and gives back what the run holds. */
void		run_stop(GpuvmScanState *state);

/* The same for a scan that may be run again: under the same snapshot a source stays good, and one that is not plain is worth keeping. */
void		run_end(GpuvmScanState *state);

/* Leaves the VM for the alternative; raises 55000 when gpuvm.require forbids it. */
ScanMode	run_fall_back(GpuvmScanState *state, int reason, const char *detail);

/* -- groups.cc: from groups to rows ------------------------------------------------ */

void		groups_begin(GpuvmScanState *state);

/* Rows: is the output computed of them (ScanPlan.exprs)? And making ready for that. */
inline bool
computes_output(const ScanPlan *plan)
{
	return plan->kind == SCAN_ROWS && (plan->whole || plan->exprs != NIL);
}
void		output_begin(GpuvmScanState *state);
/* The output of a row of raw columns; NULL: it does not pass. False: an error leads to the alternative. */
bool		raw_output(GpuvmScanState *state, TupleTableSlot *raw, ExprState *having, TupleTableSlot **output);

/* Goes to the first group. */
void		groups_start(GpuvmScanState *state);

/* The next row; empty at the end. */
TupleTableSlot *groups_next(GpuvmScanState *state);
/* Is there one way to show each key and extreme, whatever row it is of? */
bool		groups_show_alike(ScanPart *part);

/* -- merge.cc ------------------------------------------------------------------------ */

/* Bytes that merging will take, about. */
uint64		merge_bytes(const ScanPart *parts, int nparts);

/* Finds which rows of the parts are one group. */
GroupMerge *merge_groups(MemoryContext context, ScanPart *parts, int nparts);

/* Points the part's views at the chunk. */
void		view_chunk(ScanPart *part, const GroupChunk *chunk);

/* The first `nkeys` result columns of a row of the chunk in view, as keys: values that are equal have equal ones. */
uint32		hash_keys(const ScanPart *part, int nkeys, uint32 row);
bool		same_keys(const ScanPart *a, uint32 a_row, const ScanPart *b, uint32 b_row, int nkeys);

/* -- ties.cc -------------------------------------------------------------------------- */

/* Has the program of ties anything to find? */
bool		ties_wanted(const GpuvmScanState *state, const ScanPart *part);

/* Takes the rows from what it gave, before the next job. */
void		ties_take(GpuvmScanState *state, ScanPart *part);

/* The value that a result column of the group in view shows, whose rank is that of several. `ties`: the number of their program. */
Datum		tied_datum(const GpuvmScanState *state, int ties, const ScanPart *from, int column, uint32 row, int32 rank);

/* -- decode.cc: result buffers to slots ------------------------------------------- */

/* Decodes the next rows of the current buffer; false when it is exhausted. */
bool		decode_batch(GpuvmScanState *state);

/* -- references.cc ----------------------------------------------------------------- */

/* The part's result column is of references, as the form says. All sources are open. */
void		references_begin(GpuvmScanState *state, const OutputForm *form, ScanPart *part, int column);

/*
 * The value that a reference of a result column stands for; *bytes, unless NULL, is the length of its image. Nothing is
 * copied: it is in a tablet, or in what this process has read itself, where gpuvmd cannot write.
 */
Datum		variable_datum(const GpuvmScanState *state, const ScanPart *part, int column, int64 reference, uint32 *bytes);

/* -- fetch.cc: what tablets do not have, from the heap ----------------------------- */

void		fetch_begin(GpuvmScanState *state);

/* In place of positions, of a row that is about to be handed out. */
void		fetch_values(GpuvmScanState *state, Datum *values, bool *nulls);

/* The last row is not looked at any more: its buffers are let go. */
void		fetch_release(GpuvmScanState *state);

/* A slot for the leaf's rows; and a row of a tablet in it, as the snapshot has it: by its ctid from the heap, where there is one. */
TupleTableSlot *fetch_slot(const ScanLeaf *leaf, EState *estate);
void		fetch_row(const ScanLeaf *leaf, const ScanTablet *tablet, uint32 row, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot);

/* Of a heap tuple's slot: a column, by the leaf's number, a system column, or all of it. */
Datum		fetched_value(Relation rel, TupleTableSlot *slot, AttrNumber attnum, bool *isnull);

/* Points the slot at the next decoded row. */
inline void
decode_next(GpuvmScanState *state, TupleTableSlot *slot)
{
	uint32		row = state->batch_row++;

	slot->tts_values = state->batch_values + static_cast<Size>(row) * state->nvalues;
	slot->tts_isnull = state->batch_nulls + static_cast<Size>(row) * state->nvalues;
	slot->tts_tid = state->batch_tids[row];
	if (state->fetches != nullptr)
		fetch_values(state, slot->tts_values, slot->tts_isnull);
}

/* -- heap.cc: a unit by PostgreSQL's own means ------------------------------------ */

void		heap_start_unit(GpuvmScanState *state, uint32 unit);
/* False when the unit is exhausted. */
bool		heap_next_row(GpuvmScanState *state, TupleTableSlot *slot);

/* The tablet of a unit and its first and last (exclusive) row. */
const ScanTablet *unit_range(GpuvmScanState *state, uint32 unit, uint32 *first, uint32 *last);

/* -- filter_memory.cc --------------------------------------------------------------- */

/* Has the part's group filter flagged an error, in this session? And: it has now. */
bool		filter_has_failed(const GpuvmScanState *state);
void		filter_failed(const GpuvmScanState *state);

/* -- explain.cc -------------------------------------------------------------------- */

void		explain_scan(CustomScanState *node, List *ancestors, ExplainState *es);

/* -- require.cc -------------------------------------------------------------------- */

/* Registers the ExecutorStart hook that serves gpuvm.require. */
void		require_install(void);

/*
 * Does gpuvm.require ask anything of the statement? Of one that a trigger runs, and be it that of a foreign key, it does not:
 * that belongs to the change that fired it.
 */
bool		require_holds(void);

/* Raises 55000: the statement would not, or did not, run as gpuvm.require demands. */
[[noreturn]] void require_violation(const char *reason, const char *detail);
/* The same where a scan leaves the VM. */
[[noreturn]] void require_fallback_violation(FallbackReason reason, const char *detail);

}  // namespace gpuvm

#endif
