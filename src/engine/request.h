/*
 * request.h: a job's request, copied out of the arena and checked.
 *
 * The backend's half of a Job may be damaged or change while it is read, so
 * everything that decides where gpuvmd reads or writes is copied first and
 * checked in the copy. Tablets are read in place: they are immutable and too
 * large to copy; their layout is checked.
 */
#ifndef GPUVM_ENGINE_REQUEST_H
#define GPUVM_ENGINE_REQUEST_H

#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/abi.h"
#include "engine/arena_map.h"
#include "engine/collators.h"
#include "engine/set.h"
#include "tablet/format.h"
#include "vm/code_map.h"
#include "vm/cpu_text_keys.h"
#include "vm/text_match.h"

namespace gpuvm {

/*
 * Which tablets passed check_tablet, and add nothing to which summaries. A tablet is known by its offset and by a
 * fingerprint of its header and chunks, as its memory may become another tablet.
 * One without a serial was made for one job and is checked every time.
 */
class CheckedTablets
{
public:
	/* nullptr, or what is wrong with the tablet, by itself or as one of a table with these columns. */
	const char *check(const ArenaMap &arena, uint64_t offset, const TabletHeader *tablet, uint64_t tablet_print,
					  const std::vector<ColumnSummary> &columns, uint64_t columns_print);

	/*
	 * Have all of a cursor's tablets that have serials passed with these summaries before? `print` is of their offsets
	 * and prints: asked once for a table, not for each of its tablets.
	 */
	bool		knows(uint64_t print);
	void		remember(uint64_t print);

private:
	struct Prints
	{
		uint64_t	tablet;
		uint64_t	columns;	/* the summaries that it was last held against */
	};
	std::mutex	mutex_;
	std::unordered_map<uint64_t, Prints> prints_;
	std::unordered_set<uint64_t> cursors_;
};

struct RequestTablet
{
	const TabletHeader *tablet;
	const MaskedRows *masked;	/* its ranges, in RequestCursor::masked */
	uint32_t	nmasked;
	uint32_t	masked_rows;	/* so many rows they are */

	bool wholly_masked() const { return masked_rows >= tablet->nrows; }
};

/* The rows of one cursor. */
struct RequestCursor
{
	std::shared_ptr<ResultSet> set;	/* it is this one; the tablets are its, if it is not on a device */
	std::vector<ColumnSummary> columns;
	std::vector<RequestTablet> tablets;
	std::vector<MaskedRows> masked;
	uint64_t	total_rows = 0;	/* those masked included */
};

/* Of JobKind::Window: nothing else of the request but maps, text orders and threads. */
struct RequestWindow
{
	std::shared_ptr<ResultSet> set;
	std::vector<WindowKey> keys;
	std::vector<WindowFunction> functions;
	WindowSpec	spec = {};		/* of these */
	SetShape	shape;			/* of the columns that are appended */
	SetColumn  *known = nullptr;	/* where JobWindow.known leads */
};

/* What is inherited is cursor 0, the only one but in join programs. */
struct Request : RequestCursor
{
	JobKind		kind = JobKind::Run;	/* Prepare: of the following only `tablets` and what belongs to it */
	std::unique_ptr<uint64_t[]> program_copy;
	const Program *program = nullptr;
	std::unique_ptr<uint64_t[]> stage_copy;
	const Program *stage = nullptr;	/* reads the groups of `program`; nullptr: there is none */
	bool		of_set = false;	/* cursor 0 is a set, or the groups that a stage reads: no unit can be evaluated elsewhere */
	ParamValue	params[PROGRAM_MAX_PARAMS];
	uint32_t	nparams = 0;
	std::vector<CodeMap> maps;	/* what they point to lies in the arena */
	std::vector<std::unique_ptr<uint64_t[]>> pattern_copies;
	std::vector<const TextPattern *> patterns;
	std::vector<TextOrder> text_orders;
	std::unique_ptr<TextKeys> text_keys;	/* those of TextKey; nullptr: there is none */
	std::vector<RequestCursor> others;	/* join programs: the cursors from 1 on */
	uint32_t	shortages = 0;	/* how often it found no memory with all there is */
	uint64_t	expected_pairs = 0;
	Device		device = Device::Auto;
	uint32_t	threads = 0;
	uint32_t	unit_rows = 0;
	uint32_t	capacity = 0;
	uint32_t	nbuffers = 0;
	char	   *areas[JOB_MAX_BUFFERS];
	std::vector<uint8_t> skip_units;
	bool		resumes = false;	/* rows of a join: those that came before are to come in the same order */
	uint64_t	row_limit = 0;
	std::vector<JobOrderKey> order;	/* of what leaves; empty: any */
	bool		count_groups = false;
	JobSink		sink = {};
	SetColumn  *known = nullptr;	/* where JobSink.known leads */
	SetShape	shape;			/* of the set that it makes */
	std::shared_ptr<ResultSet> append_to;
	RequestWindow window;
	bool		device_required = false;
	Transfer	transfer = Transfer::Auto;
	SetAccount *account = nullptr;	/* what the session's sets take */
	PageUses	uses;			/* of the memory that the job's results go to */

	/* Whose results leave. */
	const Program *last() const { return stage != nullptr ? stage : program; }
	bool skips(uint64_t unit) const
	{
		return unit / 8 < skip_units.size() && (skip_units[unit / 8] >> (unit % 8) & 1);
	}
};

/* The cursor reads the set's tablets. */
void		list_set(const ResultSet &set, RequestCursor *cursor);

/* What is known of the set's columns from `first` on to where the backend asks for it, or nullptr. */
void		put_columns(const ResultSet &set, size_t first, SetColumn *to);

/* request_window.cc: the JobWindow at the offset; maps and text orders were read. nullptr, or what is wrong. Throws std::bad_alloc. */
const char *read_window(const ArenaMap &arena, uint64_t offset, const SetStore &sets, Request *request);

/* Fills *request; nullptr, or why the job cannot run. Throws std::bad_alloc. */
const char *read_request(const ArenaMap &arena, const Job *job, const SetStore &sets, CheckedTablets *checked, Collators *collators,
						 Request *request);

}  // namespace gpuvm

#endif
