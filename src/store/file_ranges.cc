/*
 * file_ranges.cc: where may a file be cut for several parsers?
 *
 * Behind a line's end, as COPY's parser (CopyReadLineText) sees it: in csv one outside quotes, in text
 * one with no backslash before it that counts. It decides bytewise, so that is done here as well, for files in encodings that
 * keep ASCII to itself. All lines must end as the first one does; each parser is told how (store/file.cc), and raises where
 * one does not. A file with an error in it may be cut anywhere: it is read again as a whole.
 */
#include "store/file_ranges.h"

#include "store/file.h"
#include "store/internal.h"

#include <fcntl.h>
#include <unistd.h>

extern "C" {
#include "commands/copy.h"
#include "mb/pg_wchar.h"
#include "storage/fd.h"
}

namespace gpuvm {

constexpr uint64 BYTES_PER_PROCESS = 4 * 1024 * 1024;	/* a worker takes some milliseconds to start */
constexpr uint64 MIN_RANGE = 2 * 1024 * 1024;
/* Cutting holds the lock, which nothing interrupts: it must not take long. */
constexpr uint64 MAX_RANGE = 64 * 1024 * 1024;
constexpr uint64 MAX_SEARCH = 16 * 1024 * 1024;
constexpr Size CHUNK = 256 * 1024;

/* -- ends of lines ------------------------------------------------------------- */

/* Reads bytes one after the other, and finds line ends. */
struct LineScan
{
	const FileRanges *ranges;
	bool		in_quote;		/* csv */
	uint32		escapes;		/* so many directly before; csv, within quotes: an escape that counts */
	bool		known;			/* text: their number is, as another byte was seen before */
};

/* csv: to the byte behind the quote that ends the value. */
static const char *
leave_quote(LineScan *scan, const char *at, const char *end)
{
	char		quote = scan->ranges->quote;
	char		escape = scan->ranges->escape;

	if (escape == 0)
	{
		at = static_cast<const char *>(memchr(at, quote, end - at));
		scan->in_quote = at == NULL;
		return at == NULL ? end : at + 1;
	}
	for (; at < end; at++)
	{
		/* what follows is data, whatever it is; it may be in the next chunk */
		if (scan->escapes > 0)
			scan->escapes = 0;
		else if (*at == escape)
			scan->escapes = 1;
		else if (*at == quote)
		{
			scan->in_quote = false;
			return at + 1;
		}
	}
	return end;
}

/* The byte behind the first line end in [from, end), of which all before `from` is skipped; NULL if there is none. */
static const char *
csv_line_end(LineScan *scan, const char *at, const char *from, const char *end)
{
	char		quote = scan->ranges->quote;

	while (at < end)
	{
		if (scan->in_quote)
			at = leave_quote(scan, at, end);
		else if (at < from)
		{
			at = static_cast<const char *>(memchr(at, quote, from - at));
			scan->in_quote = at != NULL;
			at = at == NULL ? from : at + 1;
		}
		else
		{
			if (*at == '\n')
				return at + 1;
			scan->in_quote = *at == quote;
			at++;
		}
	}
	return NULL;
}

static const char *
text_line_end(LineScan *scan, const char *at, const char *end)
{
	for (; at < end; at++)
	{
		if (*at == '\n' && scan->known && scan->escapes % 2 == 0)
			return at + 1;
		scan->known = scan->known || *at != '\\';
		scan->escapes = *at == '\\' ? scan->escapes + 1 : 0;
	}
	return NULL;
}

static ssize_t
read_at(int fd, char *bytes, Size size, uint64 offset)
{
	ssize_t		n;

	do
		n = pread(fd, bytes, size, static_cast<off_t>(offset));
	while (n < 0 && errno == EINTR);
	return n;
}

/* Where a line ends, at `wanted` or later, in a file that has one at `from`; its size if that is not found soon. */
static uint64
cut_at(const FileRanges *ranges, int fd, char *bytes, uint64 from, uint64 wanted)
{
	LineScan	scan = {};
	/* backslashes can be looked at from anywhere, quotes only from where it is known that there is none */
	uint64		offset = ranges->csv ? from : wanted;

	scan.ranges = ranges;
	while (offset < wanted + MAX_SEARCH)
	{
		ssize_t		n = read_at(fd, bytes, CHUNK, offset);
		const char *end = bytes + n;
		const char *found;

		if (n <= 0)
			break;
		if (ranges->csv)
			found = csv_line_end(&scan, bytes, wanted <= offset ? bytes : bytes + Min(wanted - offset, static_cast<uint64>(n)), end);
		else
			found = text_line_end(&scan, bytes, end);
		if (found != NULL)
			return Min(offset + (found - bytes), ranges->size);
		offset += n;
	}
	return ranges->size;
}

/* How does the first line end? False: not as files do that can be cut. */
static bool
find_ending(FileRanges *ranges, const char *bytes, ssize_t n)
{
	bool		in_quote = false;
	bool		escaped = false;

	for (ssize_t i = 0; i < n; i++)
	{
		char		c = bytes[i];

		if (escaped)
			escaped = false;
		else if (ranges->csv ? in_quote && c == ranges->escape : c == '\\')
			escaped = true;
		else if (ranges->csv && c == ranges->quote)
			in_quote = !in_quote;
		else if (!in_quote && (c == '\n' || c == '\r'))
		{
			ranges->crlf = c == '\r';
			return c == '\n' || (i + 1 < n && bytes[i + 1] == '\n');
		}
	}
	return false;
}

/* -- ranges -------------------------------------------------------------------- */

uint32
file_processes(uint64 size)
{
	return static_cast<uint32>(Min(Max(size / BYTES_PER_PROCESS, 1), uint64{PG_INT16_MAX}));
}

uint32
file_max_ranges(uint64 size)
{
	return static_cast<uint32>(size / MIN_RANGE + 1);
}

/* A control character as a quote is more than that to the parser; beyond ASCII it is other bytes in the file. */
static bool
is_plain(const char *c)
{
	return c[0] >= ' ' && c[0] < 0x7f;
}

bool
file_ranges_init(FileRanges *ranges, Relation rel, uint64 size, uint32 processes)
{
	FileOptions options = file_options(rel);
	CopyFormatOptions format = {};
	int			fd;
	char	   *bytes;
	bool		ends;

	memset(static_cast<void *>(ranges), 0, sizeof(*ranges));
	ProcessCopyOptions(NULL, &format, true, options.copy);
	ranges->encoding = format.file_encoding < 0 ? pg_get_client_encoding() : format.file_encoding;
	ranges->csv = format.csv_mode;
	if (format.binary || !PG_VALID_BE_ENCODING(ranges->encoding) || !file_parallel_safe(rel))
		return false;
	if (ranges->csv)
	{
		if (!is_plain(format.quote) || !is_plain(format.escape))
			return false;
		ranges->quote = format.quote[0];
		ranges->escape = format.escape[0] == format.quote[0] ? 0 : format.escape[0];
	}
	fd = OpenTransientFile(options.filename, O_RDONLY | PG_BINARY);
	if (fd < 0)
		return false;
	bytes = static_cast<char *>(palloc(CHUNK));
	ends = find_ending(ranges, bytes, read_at(fd, bytes, CHUNK, 0));
	pfree(bytes);
	CloseTransientFile(fd);
	if (!ends)
		return false;
	ranges->size = size;
	ranges->processes = processes;
	return true;
}

bool
file_ranges_next(FileRanges *ranges, int fd, FileRange *range)
{
	char	   *bytes = static_cast<char *>(palloc(CHUNK));

	LWLockAcquire(&ranges->lock, LW_EXCLUSIVE);
	range->from = range->to = ranges->next;
	range->number = ranges->nranges;
	if (ranges->next < ranges->size)
	{
		/* large ones first, as each one's last tablet is not full; small ones last, so that all end together */
		uint64		wanted = Min(Max((ranges->size - ranges->next) / (2 * ranges->processes), MIN_RANGE), MAX_RANGE);

		range->to = cut_at(ranges, fd, bytes, range->from, range->from + wanted);
		ranges->next = range->to;
		ranges->nranges++;
	}
	LWLockRelease(&ranges->lock);
	pfree(bytes);
	range->last = range->to == ranges->size;
	range->crlf = ranges->crlf;
	range->encoding = ranges->encoding;
	return range->from < range->to;
}

}  // namespace gpuvm
