/*
 * cpu_job.h: a program lowered for the CPU, and what a worker runs it with.
 * Private to the CPU virtual machine (cpu_*.cc).
 *
 * A tile is a vector of 1,024 rows. Which lanes live is a bitmap of 16 words;
 * so are nulls and truth values. Masked rows are lanes that never live. Every value opcode runs over the whole vector,
 * dead lanes included (they cost less than picking the live ones would), and
 * only errors look at who lives. Lowering turns the program into steps:
 *
 *   - Column, Rowid and immediates are no steps but kinds of registers. A column
 *     is decoded when a step first needs its values in a vector, so the ones
 *     behind a selective filter may never be, and those stored as they are in a
 *     register are never copied. What only compares, sums, or takes the extremes
 *     of a column works on the stored codes.
 *   - A target is a Label step with a pending mask. When no lane lives, the
 *     machine goes to the next Label. A jump to Converge is a lane's death.
 *   - A register's vector is a slot; slots are reused after a register's last
 *     use. Truth values and null masks are small and keep their own place, so a
 *     null mask may simply be that of an operand.
 *
 * Memory that a jumped-over step did not write holds what was there before:
 * initialised, and never a pointer past its own tablet (bind() resets them).
 */
#ifndef GPUVM_VM_CPU_JOB_H
#define GPUVM_VM_CPU_JOB_H

#include <cstdlib>
#include <utility>
#include <vector>

#include "core/bits.h"
#include "vm/result_layout.h"
#include "vm/cpu_group_rows.h"
#include "vm/cpu_kernels.h"
#include "vm/cpu_pages.h"
#include "vm/cpu_text_keys.h"
#include "vm/float_sum.h"
#include "vm/value_range.h"
#include "vm/zone_table.h"

namespace gpuvm {

enum class StepKind : uint8_t
{
	Binary, Unary, Lookup, TextMatch, TextPart, TextKey, TextCompare, Zone, FromBool, Compare, And, Or, Not, IsTrue, IsFalse, IsNull, NotNull, IsDistinct, In,
	Branch, Goto, Invalid, Select, Coalesce, Greatest, Least, NullIf, Label, Group, AggStep, Result
};

constexpr int LABEL_DIES = -1;

struct Step
{
	StepKind	kind;
	Type		type;			/* of the operands */
	OperandForm form;
	Opcode		opcode;
	bool		stores;			/* Compare: into dst, else a jump */
	bool		jump_null;
	bool		jump_if;		/* Branch: the truth value that leaves */
	bool		has_null;		/* In; Lookup: nulls have an entry */
	bool		outside;		/* Lookup: there may be codes outside of the map */
	bool		checked;		/* Zone: it may raise */
	int			dst;
	int			a;
	int			b;
	int			c;				/* Select: the condition */
	int			label;			/* Label, or where a jump goes; LABEL_DIES */
	int			next_label;		/* the step to go to when no lane lives */
	int			test;			/* Compare of a column with a constant: index of its ColumnTest, or -1 */
	int			list;			/* In: first value in aux. Lookup: number of the map. TextMatch, TextPart: index into texts. TextKey: length of values. TextCompare: number of its order. Zone: index of its table */
	int			list_len;
	BinaryFn	binary;
	UnaryFn		unary;
	CompareFn	compare;
	CheckFn		check;			/* nullptr: cannot raise */
};

enum class RegKind : uint8_t
{
	Computed, Constant, Column, Rowid
};

union RegValue
{
	int32_t		i32;
	int64_t		i64;
	float		f32;
	double		f64;
};

struct RegInfo
{
	RegKind		kind;
	Type		type;
	bool		is_null;		/* Constant */
	bool		broadcast;		/* Constant: a step wants it as a vector */
	bool		late;			/* Constant: a scalar column, whose value comes by set_scalar() */
	int			column;			/* Column: index into used columns */
	int			slot;			/* of its vector; -1: has none */
	int			first_use;
	int			last_use;
	RegValue	value;			/* Constant */
};

/* A column that the program reads. */
struct UsedColumn
{
	int			number;
	Type		type;
	int			reg;
	ValueRange	range;			/* of the table */
	bool		text = false;	/* TextMatch or TextPart reads its images */
};

/* A TextMatch, or a TextPart. */
struct TextStep
{
	int			column;			/* index into used columns */
	TextSearch	search;
	TextPart	part;
	const TextOrder *order;		/* of a pattern with a collation, or nullptr */
};

/* A column that has one value for all lanes of a vector (the row of a nested loop's inner side). */
struct ScalarColumn
{
	int			number;
	int			reg;
};

/* column OP constant, for integers: "value in [lo, hi]", or not. */
struct ColumnTest
{
	int			column;			/* index into used columns */
	bool		negate;
	bool		empty;			/* no value is in it */
	int64_t		lo;
	int64_t		hi;
};

enum class AggKind : uint8_t
{
	Count,						/* int64 */
	SumInt64,					/* int64 sum, int64 rows (if tracked) */
	SumInt128,					/* int128 sum, int64 rows */
	ExtremeWide,				/* uint128: greatest key, 0 when none: the value with its sign turned, Min: the complement */
	ExtremeText,				/* uint64: reference of the value that wins, 0 when none */
	Extreme,					/* uint64: greatest ordered key, 0 when none; byte: ExtremeFlag */
	Bools,						/* byte: BoolFlag */
	Bits,						/* int64: OR, XOR, or for AND the complement's OR; byte: not 0 once there was a value */
	SumFixed,					/* int128 on the grid 2^exp_lo, FloatSumInfo */
	SumLimbs,					/* FloatSumInfo, limbs */
};

enum ExtremeFlag : uint8_t
{
	EXTREME_SEEN = 1,
	EXTREME_POS_ZERO = 2,
	EXTREME_NEG_ZERO = 4,
};

enum BoolFlag : uint8_t
{
	BOOL_SEEN_TRUE = 1,
	BOOL_SEEN_FALSE = 2,
};

struct AggInfo
{
	AggFn		fn;
	Type		type;			/* of the argument */
	AggKind		kind;
	bool		tracked;		/* sums and extremes of integers: the result may be null, so rows are noted */
	int			arg;			/* register, -1: count(*) */
	int			low;			/* MinWide, MaxWide: that of low halves; else -1 */
	const TextOrder *order;		/* MinText, MaxText; else nullptr */
	int			filter;			/* register or -1 */
	int			offset;			/* of its state in a group's row */
	int			record_at;		/* of the argument in a record; -1: is not there */
	int			record_low_at;	/* likewise */
	bool		notes;			/* they are to be written: no AggStep before has */
	int			present;		/* bit of a record: the row is one that counts here; -1: all are */
	int			exp_lo;			/* SumFixed */
	FloatSumWindow window;		/* SumLimbs */
};

struct KeyInfo
{
	int			reg;
	Type		type;
	bool		may_null;
	int			offset;			/* hashed: of its 8 bytes in a group's row */
	int64_t		lo;				/* where slots are numbered (dense, slot_bits): least value */
	uint32_t	values;			/* values, the null after them not counted */
	uint32_t	stride;			/* slots between neighbours */
};

/* What a tablet makes of the used columns. Lives for one run. */
struct BoundColumn
{
	const ColumnChunk *chunk;
	const char *data;			/* at row 0 */
	const uint64_t *nulls;		/* at row 0, or nullptr */
	int			width;
	int64_t		base;
	bool		direct;			/* stored just as a register holds it */
	bool		touched;		/* the vector before this one read it: it will be read again */
	TextImages	images;			/* of a column of texts */
};

/* Below this many live lanes a column's values are fetched one by one. */
constexpr uint32_t SPARSE_LANES = 48;

/* A lane's value of a column that is not direct; `sign`: the codes are as wide as the type. */
inline int64_t
code_value(const BoundColumn &column, const char *codes, uint32_t lane, bool sign)
{
	const char *code = codes + static_cast<size_t>(lane) * column.width;
	int64_t		v;

	switch (column.width)
	{
		case 0: return column.base;
		case 1: v = *reinterpret_cast<const uint8_t *>(code); break;
		case 2: v = sign ? *reinterpret_cast<const int16_t *>(code) : *reinterpret_cast<const uint16_t *>(code); break;
		default: v = *reinterpret_cast<const uint32_t *>(code); break;
	}
	return static_cast<int64_t>(static_cast<uint64_t>(v) + static_cast<uint64_t>(column.base));
}

enum class TestMode : uint8_t
{
	Never, Always, Range
};

struct BoundTest
{
	TestMode	mode;
	bool		negate;
	uint64_t	lo;				/* in the codes' domain */
	uint64_t	span;
};

struct RegState
{
	const void *values;			/* Bool: bits */
	const uint64_t *nulls;		/* nullptr: none is null */
	bool		ready;
};

class CpuProgram;

/* Rows in the job's file, one behind the other. */
struct SpilledRows
{
	uint64_t	at = 0;
	uint64_t	rows = 0;
};

/* Groups of a part. */
struct PartGroups
{
	const RowList *of = nullptr;	/* the first ones are these of a worker's */
	std::vector<uint32_t> numbers;
	RowList		rows;			/* the others, */
	SpilledRows spilled;		/* or they are here */
	uint64_t	ngroups = 0;
	uint32_t	errors = 0;
};

/* What a worker has of a part, besides records that are added to. */
struct Part
{
	RowList		groups;			/* that earlier records have become, or a table had: one may be there more than once */
	std::vector<RowList> more_groups;	/* of workers that were merged */
	std::vector<RowList> more_records;
	std::vector<SpilledRows> spilled_groups;
	std::vector<SpilledRows> spilled_records;
};

/* What is kept of a row until its group is looked for: words of key null bits, words of bits by AggInfo.present, keys, values. */
struct RecordLayout
{
	RowShape	rows;
	int			present_words = 0;
	std::vector<int> order;		/* of the aggregates, as the program has them */
	std::vector<int> key_at;
	std::vector<int> key_width;	/* 4: an integer with its sign, 8, or NO_SIGN: four bytes as they are */
};

constexpr int NO_SIGN = -4;

/* Lanes whose buckets and rows are fetched at once: as many as the L1 cache has room for. */
constexpr uint32_t PROBE_LANES = 64;
/* What follows a full table is another one, or an index of slots, if each group had so many rows. */
constexpr uint64_t WORTH_A_TABLE = 2;
/* Parts are indexed by slots where there are at most so many a row, as a power of two. */
constexpr int INDEX_SLOTS_A_ROW = 4;
/* A piece of an index has so many slots, as a power of two, a huge page; or a part's. */
constexpr int LEAST_INDEX_BITS = 19;
constexpr int LEAST_PART_BITS = 5;

/* A table's buckets in the beginning, as a power of two. */
constexpr int FIRST_BUCKET_BITS = 12;

/* Who takes lanes of a tablet's rows away before a vector is run. */
class LaneFilter
{
public:
	virtual ~LaneFilter() = default;
	virtual void drop(uint32_t row, uint64_t *live) = 0;
};

/* One worker's vectors and, for grouped programs, its groups. */
class WorkerState final : public CpuState
{
public:
	explicit WorkerState(const CpuProgram &program);
	~WorkerState() override;

	/* A contiguous allocation of zeroes, freed with the state. */
	struct FreeDeleter
	{
		void		operator()(void *p) const { free(p); }
	};
	template <typename T> using Zeroed = std::unique_ptr<T, FreeDeleter>;

	/* -- vectors ----------------------------------------------------------- */
	Zeroed<char> arena;			/* everything below that is a pointer into it */
	std::vector<RegState> regs;
	std::vector<uint64_t *> own_nulls;	/* per register */
	std::vector<uint64_t *> own_bits;	/* per Bool register */
	std::vector<char *> slots;
	std::vector<uint64_t *> pending;	/* per label */
	std::vector<uint8_t> pending_set;
	int			npending = 0;	/* labels with a pending lane */
	uint64_t	live[CPU_WORDS];	/* after a vector: the lanes that reached its end */
	std::vector<RegValue> constants;	/* per register */
	char	   *scratch[3];		/* vectors of 8-byte values */
	uint16_t   *rows;			/* selected lanes, ascending */

	/* the vector being run */
	const TabletHeader *tablet = nullptr;
	std::vector<BoundColumn> columns;
	std::vector<BoundTest> tests;
	uint32_t	row0 = 0;
	bool		resident = false;	/* the columns are in the cache: no prefetching */

	/* Per lane, how many rows it stands for; nullptr: one each. Sums of floats do not take them. */
	const uint32_t *weights = nullptr;

	uint32_t	errors = 0;
	uint64_t	rows_taken = 0;

	/* -- where Result writes ------------------------------------------------- */
	char	   *area = nullptr;
	const ResultColumnLayout *layout = nullptr;
	uint32_t	emitted = 0;

	/* -- groups (cpu_groups.cc) ------------------------------------------------ */
	char	  **group_row;		/* per lane */
	uint32_t   *dense_index;
	uint32_t   *dense_part;
	uint64_t   *hashes;
	uint64_t   *key_null_words;	/* per lane and word, hashed */
	std::vector<uint64_t *> key_values;	/* per key */
	uint8_t		key_zeroes[PROGRAM_MAX_COLUMNS] = {};	/* ExtremeFlag bits of float keys */
	Pages		table;			/* dense rows, or the one row of a program without Group */
	RowBlocks	memory;			/* hashed: of the table's rows, */
	RowBlocks  *table_memory = &memory;	/* or where else they are */
	RowList		groups;			/* which these are */
	uint64_t	ngroups = 0;
	Pages		buckets;		/* hash tag << 32 | group number + 1 */
	int			bucket_bits = 0;
	uint64_t	table_rows = 0;	/* that have met the table, since it has been as it is now */
	bool		finished = false;
	std::vector<uint32_t> present;	/* dense slots that have rows, after finish */

	/* many groups (cpu_group_parts.cc): */
	bool		unlimited = false;	/* the table takes them all */
	int			hash_shift = 0;	/* of hashes the first bits that all have in common are left out */
	uint32_t   *index = nullptr;	/* the table is one of a part's slots: the group's number + 1; */
	const RowList *first_groups = nullptr;	/* the first so many of them are here */
	uint32_t	nfirst = 0;
	JoinStop   *stop = nullptr;
	uint64_t	blind_rows = 0;	/* so many more are put aside without a look at it, */
	uint64_t	direct_rows = 0;	/* or go into these */
	uint64_t	direct_groups = 0;	/* that have been made so, since this was decided */
	RowList		direct;			/* these */
	uint32_t	ndirect = 0;
	RowBlocks	direct_memory;	/* of their rows */
	std::vector<uint32_t *> indexes;	/* by slot: the group's number + 1, in pieces of 2^index_bits; nullptr: has no group */
	std::vector<Pages> index_memory;
	bool		indexes_full = false;	/* no more of them */
	uint32_t	naside = 0;		/* of the vector's lanes: have been put aside, and group_row is their record, */
	uint64_t	aside[CPU_WORDS] = {};	/* these */
	std::vector<Part> parts;	/* by the first bits of the keys' hash; empty: there are none */
	std::vector<RowList> open;	/* records of each, to which are added; empty: none have been */
	RowBlocks	record_memory;	/* of all that is in them */
	size_t		united_bytes = 0;	/* of it: groups that records have become */
	Spill	   *spill = nullptr;	/* where they go where memory is short */
	std::vector<Zeroed<char>> noted;	/* by register: what records have of it, as a vector */
	int			merge_bits = 0;	/* by how many parts all is merged, as a power of two, */
	std::vector<RowList> directs;	/* all workers' groups of slots, */
	std::vector<RowBlocks> directs_memory;	/* their memory, */
	std::vector<PartGroups> results;	/* what has become of all, */
	std::unique_ptr<SharedBlocks> result_memory;	/* where they lie, */
	std::vector<std::unique_ptr<WorkerState>> mergers;	/* and who made some and may make more: under its mutex */
	std::vector<uint64_t> result_ends;	/* after finish: groups of a part and of those before */

	/* The table is empty again; its groups have been taken. */
	void		begin_table(int shift)
	{
		groups = RowList();
		buckets = Pages();
		index = nullptr;
		first_groups = nullptr;
		nfirst = 0;
		ngroups = table_rows = 0;
		bucket_bits = 0;
		errors = 0;
		hash_shift = shift;
		unlimited = true;
	}
};

class CpuProgram final : public CpuJob
{
public:
	/* `scalar`, if given: per column, whether it is a scalar one. `patterns`: those of TextMatch. `text_keys`: TextKey's. */
	CpuProgram(const Program *program, const ParamValue *params, uint32_t nparams,
			   const ColumnSummary *columns, uint32_t ncols, uint64_t total_rows, const CodeMap *maps,
			   const uint8_t *scalar = nullptr, const TextPattern *const *patterns = nullptr, TextKeys *text_keys = nullptr);

	bool		can_skip(const TabletHeader *tablet) const override;
	uint64_t	bytes_of(const TabletHeader *tablet) const override;
	std::unique_ptr<CpuState> new_state() const override;
	CpuUnitOutcome run_rows(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
							char *area, uint32_t capacity, const MaskedRows *masked, uint32_t nmasked) const override;
	void		run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						   const MaskedRows *masked, uint32_t nmasked) const override;
	void		merge(CpuState *into, CpuState *from) const override;
	void		set_stop(CpuState *state, JoinStop *stop) const override { static_cast<WorkerState *>(state)->stop = stop; }
	void		set_spill(CpuState *state, Spill *spill) const override { static_cast<WorkerState *>(state)->spill = spill; }
	uint32_t	begin_merge(CpuState *const *states, uint32_t n) const override;
	void		merge_part(CpuState *const *states, uint32_t n, uint32_t part) const override;
	uint32_t	finish(CpuState *state) const override;
	uint64_t	ngroups(const CpuState *state) const override;
	uint32_t	emit_groups(const CpuState *state, uint64_t from, char *area, uint32_t capacity) const override;

	/* -- for joins (cpu_join.cc), which run a program's vectors themselves ------ */

	/* Points the columns at a tablet; false: it contradicts the summaries. */
	bool		bind(WorkerState &s, const TabletHeader *tablet) const;
	/* Points them at vectors of register width, in the cache; their data and nulls are to be set for every vector. */
	void		bind_vectors(WorkerState &s, const ColumnChunk *chunks) const;
	void		set_scalar(WorkerState &s, const ScalarColumn &scalar, const void *value, bool null) const;
	/* Rows [first, last) of the tablet that was bound. */
	void		run_bound(WorkerState &s, uint32_t first, uint32_t last, const MaskedRows *masked, uint32_t nmasked,
						  LaneFilter *filter = nullptr) const;
	/* The lanes of s.live. */
	void		run_vector(WorkerState &s, uint32_t row) const;

	const Program *program;
	const Kernels *kernels;
	std::vector<ParamValue> params;
	const CodeMap *maps;
	const TextPattern *const *patterns;
	TextKeys   *text_keys;
	std::vector<ZoneTable> zones;	/* of Zone steps; parts of maps */
	uint64_t	total_rows;

	std::vector<Step> steps;
	std::vector<RegInfo> regs;
	std::vector<ValueRange> ranges;	/* per register */
	SinkPath	path;
	std::vector<UsedColumn> columns;
	std::vector<ScalarColumn> scalars;
	std::vector<ColumnTest> tests;
	std::vector<TextStep> texts;
	int			nslots = 0;
	int			nlabels = 0;
	int			ncolumns_of_table = 0;
	int			result_first = 0;	/* Result's first register */
	std::vector<int> result_regs;	/* per result column, copies resolved */
	std::vector<Type> result_types;

	/* groups */
	std::vector<AggInfo> aggs;
	std::vector<KeyInfo> keys;
	bool		dense = false;
	uint32_t	dense_slots = 0;
	uint32_t	replicas = 1;	/* rows a slot, power of two: neighbouring lanes do not wait for each other */
	int			null_words = 0;	/* hashed: words of key null bits */
	int			row_bytes = 0;
	RowShape	group_rows;		/* this and the following: hashed */
	int			table_bits = 0;	/* buckets of a worker's table at most, as a power of two */
	int			part_bits = 0;	/* there are so many parts, as a power of two; of dense tables to merge, too */
	int			slot_bits = 0;	/* slots of keys, as a power of two, whose first bits are the part's; 0: they have none */
	RecordLayout records;

private:
	friend class Lowering;

	/* cpu_bind.cc */
	void		bind_rest(WorkerState &s) const;
	void		bind_test(const ColumnTest &test, const BoundColumn &column, BoundTest *out) const;

	/* cpu_run.cc */
	void		run(WorkerState &s, const TabletHeader *tablet, uint32_t first, uint32_t last,
					const MaskedRows *masked, uint32_t nmasked) const;
	void		prefetch(BoundColumn &column, uint32_t row) const;
	const void *values_of(WorkerState &s, int reg) const;
	const void *operand(WorkerState &s, int reg, bool constant) const;
	const uint64_t *bits_of(WorkerState &s, int reg) const;
	void		decode_column(WorkerState &s, int reg) const;
	const uint64_t *either_null(WorkerState &s, int dst, const uint64_t *a, const uint64_t *b) const;
	void		arithmetic(WorkerState &s, const Step &step) const;
	void		comparison(WorkerState &s, const Step &step, uint64_t *out) const;
	void		leave(WorkerState &s, const Step &step, const uint64_t *condition, const uint64_t *nulls) const;

	/* cpu_steps.cc */
	void		logic(WorkerState &s, const Step &step) const;
	void		pick(WorkerState &s, const Step &step) const;
	void		in_list(WorkerState &s, const Step &step) const;
	void		lookup(WorkerState &s, const Step &step) const;
	uint32_t	text_lanes(WorkerState &s, const Step &step) const;
	void		text_match(WorkerState &s, const Step &step) const;
	void		text_part(WorkerState &s, const Step &step) const;
	void		text_key(WorkerState &s, const Step &step) const;
	void		shift_zone(WorkerState &s, const Step &step) const;

	/* cpu_text_compare.cc */
	void		text_collate(WorkerState &s, const Step &step) const;
	void		text_compare(WorkerState &s, const Step &step) const;

	/* cpu_results.cc */
	void		emit_rows(WorkerState &s) const;
	void		emit_few(WorkerState &s) const;

	/* cpu_aggregate.cc */
	bool		agg_mask(WorkerState &s, const AggInfo &agg, uint64_t *mask) const;
	void		step_whole(WorkerState &s, const AggInfo &agg) const;
	void		step_grouped(WorkerState &s, const AggInfo &agg) const;
	void		step_lanes(WorkerState &s, const AggInfo &agg, const uint64_t *mask) const;
	bool		step_weighted(WorkerState &s, const AggInfo &agg, const uint64_t *mask, bool grouped) const;
	void		step_texts(WorkerState &s, const AggInfo &agg, const uint64_t *mask, bool grouped) const;
	void		sum_floats(WorkerState &s, const AggInfo &agg, const uint64_t *mask, char *state) const;
	void		merge_row(char *into, char *from) const;
	uint32_t	finish_row(char *row) const;
	bool		can_fail_at_end() const;
	void		emit_agg(const AggInfo &agg, int rest, char *const *rows, uint32_t n, Type type, char *values, uint64_t *nulls, uint32_t at) const;

	/* cpu_groups.cc */
	friend class WorkerState;
	void		find_groups(WorkerState &s) const;
	void		slots_of_lanes(WorkerState &s) const;
	void		find_dense(WorkerState &s) const;
	void		find_hashed(WorkerState &s) const;
	void		find_rows(WorkerState &s, uint32_t n) const;
	void		hash_keys(WorkerState &s) const;
	void		hash_slots(WorkerState &s) const;
	char	   *new_group(WorkerState &s, uint32_t lane, RowList *groups, RowBlocks *memory) const;
	bool		make_room(WorkerState &s, uint32_t n) const;
	void		grow_table(WorkerState &s, int bits) const;
	void		probe(WorkerState &s, const uint16_t *lanes, uint32_t n) const;
	char	   *insert_or_find(WorkerState &s, uint32_t lane) const;
	bool		same_key(const WorkerState &s, const char *row, uint32_t lane) const;
	void		rows_of_groups(const WorkerState &s, uint64_t first, uint32_t n, char **groups, Pages *read) const;
	void		emit_key(const WorkerState &s, size_t k, uint64_t first, char *const *rows, uint32_t n, Type type,
						 char *values, uint64_t *nulls, uint32_t at) const;

	/* cpu_group_slots.cc */
	uint32_t	slot_of_row(const char *row) const;
	void		find_slots(WorkerState &s, uint32_t n) const;
	bool		find_direct(WorkerState &s, uint32_t n) const;
	bool		add_index(WorkerState &s, size_t piece) const;
	int			index_bits() const { return std::max(slot_bits - part_bits, std::min(slot_bits, LEAST_INDEX_BITS)); }
	void		index_slots(WorkerState &s, uint64_t rows) const;
	void		keep_direct(WorkerState &to, WorkerState &from) const;
	void		free_directs(WorkerState &s) const;
	uint32_t   *index_of_part(const WorkerState &s, uint32_t part) const;

	/* cpu_group_parts.cc */
	void		reserve_records(WorkerState &s, uint32_t n) const;
	void		put_aside(WorkerState &s, const uint16_t *lanes, uint32_t n) const;
	void		note_values(WorkerState &s, const AggInfo &agg) const;
	void		note_present(WorkerState &s, const AggInfo &agg, const uint64_t *mask) const;
	size_t		part_of(const WorkerState &s, uint32_t lane) const
	{
		return slot_bits > 0 ? s.dense_index[lane] >> (slot_bits - part_bits) : s.hashes[lane] >> (64 - part_bits);
	}
	void		load_keys(WorkerState &s, const char *const *from, uint32_t n) const;
	uint64_t	part_rows(const WorkerState &from, size_t number) const;
	void		find_records(WorkerState &s, const char *const *from, uint32_t n) const;
	void		load_nulls(WorkerState &s, const char *const *from, uint32_t n) const;
	void		find_rows_of(WorkerState &s, uint32_t n) const;
	void		values_of_records(WorkerState &s, int reg, int at, const char *const *from, uint32_t n) const;
	void		take_records(WorkerState &s, const char *const *from, uint32_t n) const;
	void		take_groups(WorkerState &s, char *const *from, uint32_t n) const;
	void		take_table(WorkerState &s, const WorkerState &from, uint32_t part, int bits) const;
	void		take_part(WorkerState &s, const WorkerState &from, size_t number) const;
	void		take_spilled(WorkerState &s, const Part &part) const;
	bool		unite_own(WorkerState &s, bool shrink) const;
	bool		make_records_fit(WorkerState &s, size_t blocks) const;
	void		spill_parts(WorkerState &s) const;
	void		make_merge_fit(CpuState *const *states, uint32_t n) const;
	SpilledRows spill_rows(Spill *to, const RowShape &shape, const RowList &list) const;
	bool		retire_table(WorkerState &s) const;
	void		retire_last(WorkerState &s) const;
	void		take_numbered(WorkerState &s, const RowList &groups, const std::vector<uint32_t> &numbers) const;
	bool		has_parts(const WorkerState &s) const;
	void		merge_hashed(WorkerState &to, WorkerState &from) const;
	void		begin_results(WorkerState &s) const;
	void		merge_dense(WorkerState &to, const WorkerState &from, size_t first, size_t end) const;
	void		merge_rest(WorkerState &to, const WorkerState &from) const;
	void		finish_hashed(WorkerState &s) const;
};

/* cpu_group_slots.cc: the groups of an index. */
std::vector<uint32_t> numbers_of_groups(const uint32_t *index, uint64_t nslots);

}  // namespace gpuvm

#endif
