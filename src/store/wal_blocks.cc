/*
 * wal_blocks.cc: a map page's LSN has moved: which heap blocks does what was
 * logged since name?
 *
 * Of newer minor releases (17.11, 18.6) who clears a bit moves the map
 * page's LSN as who sets one does, so LSN and bits do not tell a write of one
 * row from a write of many that VACUUM has swept since. The log does. Each change
 * of a heap page that matters names its block, as does the setting of a bit.
 *
 * Let S be the stamp and L the map page's LSN now, read together with its bits. A
 * block that was served under S, and has its bit now, is as the tablets have it
 * if no record in (S, L] names it: a change would have cleared the bit, and who
 * set it again moved the page's LSN after that, so both records are there. A
 * change that is logged after L has cleared the bit after we read it, and no
 * snapshot taken before can see that; a bit set again after L moves the LSN past L.
 *
 * The log is read once for all pages, from the oldest stamp on. Whatever cannot be read (not written yet, too much, recycled,
 * recovery) or names no blocks (files that are copied or cut) leaves the pages to
 * be looked at one by one.
 */
#include "store/internal.h"

extern "C" {
#include "access/rmgr.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "catalog/storage_xlog.h"
#include "storage/fd.h"
}

namespace gpuvm {

/* The log is read for a map page of so many blocks, which are looked at sooner if they are fewer, and so many bytes of it for each. */
constexpr BlockNumber MIN_BLOCKS = 1024;
constexpr uint64 BYTES_PER_BLOCK = 64;

struct LogFile
{
	XLogRecPtr	end;			/* it is written up to here */
	TimeLineID	timeline;
	XLogSegNo	segment;
	int			fd;				/* -1: none is open */
};

/* The reader's callback: a page, as far as it is written, or -1. Never raises. */
static int
read_log_page(XLogReaderState *reader, XLogRecPtr page, int needed, XLogRecPtr, char *to)
{
	LogFile    *file = static_cast<LogFile *>(reader->private_data);
	XLogSegNo	segment;
	int			length;

	if (page + needed > file->end)
		return -1;
	XLByteToSeg(page, segment, wal_segment_size);
	if (file->fd < 0 || file->segment != segment)
	{
		char		path[MAXPGPATH];

		if (file->fd >= 0)
			CloseTransientFile(file->fd);
		XLogFilePath(path, file->timeline, segment, wal_segment_size);
		file->fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
		if (file->fd < 0)
			return -1;
		file->segment = segment;
	}
	length = static_cast<int>(Min(file->end - page, XLogRecPtr{XLOG_BLCKSZ}));
	if (pg_pread(file->fd, to, length, XLogSegmentOffset(page, wal_segment_size)) != length)
		return -1;
	reader->seg.ws_tli = file->timeline;
	return length;
}

/* Tablespaces are not compared: ALTER DATABASE SET TABLESPACE moves files as they are. */
static bool
same_file(FileNode a, FileNode b)
{
#if PG_VERSION_NUM >= 160000
	return a.dbOid == b.dbOid && a.relNumber == b.relNumber;
#else
	return a.dbNode == b.dbNode && a.relNode == b.relNode;
#endif
}

/* Does the record change pages that it does not name? */
static bool
changes_files(XLogReaderState *reader)
{
	return XLogRecGetRmid(reader) == RM_DBASE_ID ||
		(XLogRecGetRmid(reader) == RM_SMGR_ID && (XLogRecGetInfo(reader) & ~XLR_INFO_MASK) == XLOG_SMGR_TRUNCATE);
}

static void
add_named(Relation rel, XLogReaderState *reader, WalBlocks *found, uint32 *capacity)
{
#if PG_VERSION_NUM >= 150000
	int			last = XLogRecMaxBlockId(reader);
#else
	int			last = reader->max_block_id;
#endif

	for (int id = 0; id <= last; id++)
	{
		FileNode	node;
		ForkNumber	fork;
		BlockNumber block;

		if (!XLogRecHasBlockRef(reader, id))
			continue;
		XLogRecGetBlockTag(reader, static_cast<uint8>(id), &node, &fork, &block);
		if (fork != MAIN_FORKNUM || !same_file(node, RelationFileNode(rel)))
			continue;
		if (found->nblocks == *capacity)
		{
			*capacity = *capacity == 0 ? 64 : *capacity * 2;
			found->blocks = static_cast<LoggedBlock *>(found->blocks == NULL
													   ? palloc(*capacity * sizeof(LoggedBlock))
													   : repalloc(found->blocks, *capacity * sizeof(LoggedBlock)));
		}
		found->blocks[found->nblocks++] = {reader->EndRecPtr, block};
	}
}

/* found->to: where the last record ends that could be read. */
static void
read_log(Relation rel, LogFile *file, WalBlocks *found)
{
	XLogReaderRoutine routine = {};
	XLogReaderState *reader;
	uint32		capacity = 0;
	char	   *message;

	routine.page_read = read_log_page;
	reader = XLogReaderAllocate(wal_segment_size, NULL, &routine, file);
	if (reader == NULL)
		return;
	XLogBeginRead(reader, found->from);
	while (XLogReadRecord(reader, &message) != NULL)
	{
		if (changes_files(reader))
		{
			found->to = InvalidXLogRecPtr;
			break;
		}
		add_named(rel, reader, found, &capacity);
		found->to = reader->EndRecPtr;
	}
	XLogReaderFree(reader);
	if (file->fd >= 0)
		CloseTransientFile(file->fd);
}

void
wal_blocks_read(Relation rel, const TableVersion *version, WalBlocks *found)
{
	LogFile		file = {InvalidXLogRecPtr, 0, 0, -1};

	memset(found, 0, sizeof(*found));
	if (version->nblocks < MIN_BLOCKS || RecoveryInProgress())
		return;
	file.end = GetXLogWriteRecPtr();
	for (uint32 i = 0; i < version->nstamps; i++)
	{
		XLogRecPtr	stamp = version_at<uint64_t>(version, version->stamps)[i];
		BlockNumber covered = Min(version->nblocks - i * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE);

		if (stamp != InvalidXLogRecPtr && stamp < file.end && covered >= MIN_BLOCKS &&
			file.end - stamp <= covered * BYTES_PER_BLOCK &&
			(found->from == InvalidXLogRecPtr || stamp < found->from) && read_vm_page(rel, i, NULL) != stamp)
			found->from = stamp;
	}
	if (found->from == InvalidXLogRecPtr)
		return;
#if PG_VERSION_NUM >= 150000
	file.timeline = GetWALInsertionTimeLine();
#else
	file.timeline = ThisTimeLineID;
#endif
	read_log(rel, &file, found);
}

bool
wal_blocks_unnamed(const WalBlocks *found, XLogRecPtr stamp, XLogRecPtr lsn, BlockNumber first, uint64 *words)
{
	if (stamp == InvalidXLogRecPtr || stamp < found->from || lsn <= stamp || lsn > found->to)
		return false;
	for (uint32 i = 0; i < found->nblocks; i++)
	{
		BlockNumber block = found->blocks[i].block;

		if (found->blocks[i].lsn > stamp && block >= first && block - first < VM_BLOCKS_PER_PAGE)
			words[(block - first) / VM_BLOCKS_PER_WORD] &= ~vm_word_bit(block);
	}
	return true;
}

}  // namespace gpuvm
