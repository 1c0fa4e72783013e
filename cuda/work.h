/*
 * work.h: what a job is made of before it meets a device: its program lowered,
 * and the pads and units of its tablets that are to be run.
 */
#ifndef GPUVM_CUDA_WORK_H
#define GPUVM_CUDA_WORK_H

#include <string>
#include <vector>

#include "dead_rows.h"
#include "device_program.h"
#include "lower.h"
#include "engine/device_abi.h"

namespace gpuvm {
namespace cuda {

struct RowSet;

struct WorkTablet
{
	const TabletHeader *tablet;
	uint32_t	first_pad;		/* of Work.pads */
	uint32_t	npads;
	uint64_t	rows;			/* in these pads, without those that are masked */
	const MaskedRows *masked;	/* its own */
	uint32_t	nmasked;
	uint32_t	dead_pad;		/* where its bitmap begins; NO_DEAD_ROWS: it needs none */
	bool		carried;		/* a delta so small that it travels with the description (transfer.h) */
	bool		outside;		/* it lies in gpuvmd's own memory, which nothing pins */
	const RowSet *there = nullptr;	/* its columns, by the cursor's numbers, are on the device (result_set.h) */
};
constexpr uint32_t NO_DEAD_ROWS = 0xffffffff;

/* Of a row program. */
struct WorkUnit
{
	uint32_t	number;			/* of the request's units */
	uint32_t	tablet;			/* of Work.tablets */
	uint32_t	first_pad;
	uint32_t	npads;
};

struct Work
{
	std::vector<WorkTablet> tablets;	/* those of which anything is run */
	std::vector<DevicePad> pads;		/* in order, those all of whose rows are masked left out; `tablet` is of `tablets` */
	std::vector<WorkUnit> units;
	std::vector<DeadRange> dead;		/* what is masked in pads that are run, by dead_rows.h */
	uint32_t	dead_pads = 0;	/* of the bitmaps */
	const ColumnSummary *columns = nullptr;	/* the request's */
	uint64_t	rows = 0;
};

/* Are the rows those of a set? */
inline bool
reads_set(const DeviceCursor &cursor)
{
	return cursor.set != nullptr || cursor.of_host_set;
}

/* Do rows leave by units as they come? Else all of them are collected first. */
inline bool
leaves_by_units(const DeviceJobRequest &request)
{
	return !request.program->grouped && request.norder == 0 && !request.sink && !reads_set(request);
}

void		list_work(const DeviceJobRequest &request, Work *work);
/* All rows of a cursor, of which the program reads columns; there are no units. */
void		list_rows(const DeviceCursor &cursor, const Program *program, Work *work);

/* Every tablet gets dead bits: the job will mask rows of its own. */
void		mask_all(Work *work);

/* Rows in pads [first, end), which are the tablet's, without those that are masked. */
uint64_t	rows_of_pads(const Work &work, const WorkTablet &tablet, uint32_t first, uint32_t end);

/* Does the cursor have rows of its own to bring for this program, and so few that they travel with the description? */
bool		carries_delta(const DeviceCursor &cursor, const Program *program);
inline bool
carries_delta(const DeviceJobRequest &request)
{
	return carries_delta(request, request.program);
}

/*
 * The columns of the cursor that the program reads, as lowering takes them. All that lowering depends
 * on of the cursor is appended to `key`, as bytes.
 */
void		bind_columns(const DeviceCursor &cursor, const Program *program, std::vector<ColumnBinding> *bindings, std::string *key);

/* Has some tablet that is run masked rows? */
bool		masks_rows(const DeviceCursor &cursor);

/*
 * The program as a device with that much shared memory a multiprocessor runs it;
 * nullptr, with the reason, if it does not. Each thread remembers its last one of each kind, so that estimate() and run() lower
 * only once; it is valid until the thread asks for another.
 */
enum class LoweredAs
{
	Whole,
	Stage,						/* stage.h */
	Bounded,					/* top_rows.h */
};
const DeviceProgram *lower_request(const DeviceJobRequest &request, uint32_t shared_bytes, const char **reason, LoweredAs as = LoweredAs::Whole);

/* The chunk of a column of DeviceProgram.columns: of a text's images one of bytes, whose base is how many there are. */
inline ColumnChunk
device_chunk(const TabletHeader *tablet, uint16_t table_column)
{
	ColumnChunk chunk = {};

	if (table_column == DEAD_COLUMN)
		return chunk;
	chunk = tablet_chunks(tablet)[table_column & ~(TEXT_CODES | TEXT_IMAGES)];
	if (!(table_column & TEXT_IMAGES))
		return chunk;

	ColumnChunk images = {};

	images.type = Type::Bool;
	images.base = static_cast<int64_t>(variable_bytes(chunk));
	if (images.base == 0)
		return images;
	images.width = 1;
	images.data = variable_at(tablet, chunk);
	images.data_bytes = align_up(variable_bytes(chunk), TABLET_ALIGN);	/* that there are, VARIABLE_SLACK included */
	return images;
}

/* As the residency knows it. */
inline uint32_t
kept_column(uint16_t table_column)
{
	return table_column & ~TEXT_CODES;
}

/* Where a column chunk's bytes lie in its tablet, and how they lie on a device: the null bitmap, then the values. */
struct ChunkBytes
{
	uint64_t	nulls;			/* bytes of the bitmap, 0: absent; a multiple of 512 */
	uint64_t	data;

	uint64_t total() const { return nulls + data; }
};

inline ChunkBytes
chunk_bytes(const TabletHeader *tablet, const ColumnChunk &chunk)
{
	return ChunkBytes{chunk.nulls != 0 ? tablet->padded_rows / 8 : 0, chunk.width != 0 ? chunk.data_bytes : 0};
}

}  // namespace cuda
}  // namespace gpuvm

#endif
