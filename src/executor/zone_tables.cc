/*
 * zone_tables.cc: what PostgreSQL's time zones add to timestamps, as tables for ZoneShift.
 *
 * A zone's offset changes at the boundaries that pg_next_dst_boundary() names, and is what pg_localtime() says from
 * each of them on. The way back is what DetermineTimeZoneOffset() says of local times: it looks at the next boundary from a
 * day earlier on, so its answer can change only a day after a boundary, and where one of the offsets on its sides puts it.
 *
 * Zones that go on changing for ever have tables that end: of timestamps beyond, PostgreSQL answers.
 */
#include "pg/pg.h"

extern "C" {
#include "parser/scansup.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include <algorithm>

#include "executor/maps.h"
#include "pg/compat.h"
#include "vm/zone_table.h"

namespace gpuvm {

/* Between these, a zone's boundaries are followed: seconds of 1600-01-01 and 2600-01-01, from 1970. */
constexpr pg_time_t FIRST = -11676096000LL;
constexpr pg_time_t LAST = 19880899200LL;
/* So far around a boundary DetermineTimeZoneOffset() may look. */
constexpr pg_time_t MARGIN = 10 * SECS_PER_DAY;
constexpr pg_time_t UNIX_TO_POSTGRES = static_cast<pg_time_t>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;
constexpr int MAX_KEPT = 32;

struct Zone
{
	pg_tz	   *tz;				/* NULL: a fixed offset */
	int			offset;			/* seconds east */
};

struct KeptTable
{
	Zone		zone;
	MapKind		kind;
	MapData    *table;			/* in the session's memory */
};

static KeptTable kept[MAX_KEPT];
static int	nkept;

static int64
micros(pg_time_t unix_time)
{
	return (unix_time - UNIX_TO_POSTGRES) * USECS_PER_SEC;
}

/* Seconds from 1970. */
static pg_time_t
seconds(int64 timestamp)
{
	return timestamp / USECS_PER_SEC + UNIX_TO_POSTGRES;
}

static bool
next_boundary(const Zone *zone, pg_time_t after, pg_time_t *boundary)
{
	long		before_offset;
	long		after_offset;
	int			before_dst;
	int			after_dst;

	if (zone->tz == nullptr)
		return false;
	/* at the last of its list it says that there are no more, also where rules go on */
	for (int again = 0; again < 2; again++, after++)
	{
		if (pg_next_dst_boundary(&after, &before_offset, &before_dst, boundary, &after_offset, &after_dst, zone->tz) == 1)
			return true;
	}
	return false;
}

/* What is added to UTC at this time. */
static int64
offset_at(const Zone *zone, pg_time_t at)
{
	return zone->tz == nullptr ? zone->offset : pg_localtime(&at, zone->tz)->tm_gmtoff;
}

/* What is added to a local time, whose seconds from 1970 these are. */
static int64
offset_back(const Zone *zone, pg_time_t local)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (zone->tz == nullptr)
		return -zone->offset;
	if (timestamp2tm(micros(local), nullptr, &tm, &fsec, nullptr, nullptr) != 0)
		elog(ERROR, "gpuvm: a time zone has a boundary that is no timestamp");
	return DetermineTimeZoneOffset(&tm, zone->tz);
}

/* A table in the making: times in seconds from 1970. */
struct Times
{
	pg_time_t  *at;
	int			n;
	int			capacity;
};

static void
add_time(Times *times, pg_time_t at)
{
	if (times->n == times->capacity)
	{
		times->capacity *= 2;
		times->at = static_cast<pg_time_t *>(repalloc(times->at, sizeof(pg_time_t) * times->capacity));
	}
	times->at[times->n++] = at;
}

/* Where the offset of this way may change, from `first` on, up to `end`. */
static void
find_times(const Zone *zone, MapKind kind, Times *times, pg_time_t *first, pg_time_t *end)
{
	const pg_time_t least = seconds(MIN_TIMESTAMP);
	pg_time_t	boundary;

	*first = next_boundary(zone, least, &boundary) && boundary < FIRST ? FIRST : least;
	*end = next_boundary(zone, LAST, &boundary) ? LAST : seconds(END_TIMESTAMP);
	for (pg_time_t at = *first; next_boundary(zone, at, &boundary) && boundary < *end; at = boundary)
	{
		if (kind == MapKind::ToLocal)
		{
			add_time(times, boundary);
			continue;
		}
		for (pg_time_t near : {SECS_PER_DAY + pg_time_t{0}, pg_time_t{offset_at(zone, boundary - 1)}, pg_time_t{offset_at(zone, boundary)}})
		{
			add_time(times, boundary + near);
			add_time(times, boundary + near + 1);
		}
	}
	if (kind == MapKind::ToUtc)
	{
		*first += *first == least ? 0 : MARGIN;
		*end -= *end == LAST ? MARGIN : 0;
	}
	add_time(times, *first);
	std::sort(times->at, times->at + times->n);
}

static MapData *
make_table(const Zone *zone, MapKind kind, MemoryContext context)
{
	Times		times = {static_cast<pg_time_t *>(palloc(sizeof(pg_time_t) * 64)), 0, 64};
	MapData    *table;
	pg_time_t	first;
	pg_time_t	end;
	int64	   *from;
	int64	   *shift;
	int			n = 0;

	find_times(zone, kind, &times, &first, &end);
	from = static_cast<int64 *>(palloc(sizeof(int64) * (times.n + 1)));
	shift = static_cast<int64 *>(palloc(sizeof(int64) * (times.n + 1)));
	for (int i = 0; i < times.n; i++)
	{
		pg_time_t	at = times.at[i];
		int64		by;

		if (at < first || at >= end || (i > 0 && at == times.at[i - 1]))
			continue;
		by = (kind == MapKind::ToLocal ? offset_at(zone, at) : offset_back(zone, at)) * USECS_PER_SEC;
		if (n > 0 && shift[n - 1] == by)
			continue;
		from[n] = micros(at);
		shift[n++] = by;
	}
	from[n] = micros(end);
	shift[n++] = ZONE_UNKNOWN;
	if (n > static_cast<int>(ZONE_MAX_TIMES))
		return nullptr;

	table = static_cast<MapData *>(MemoryContextAllocZero(context, sizeof(MapData)));
	table->kind = kind;
	table->type = Type::I64;
	table->nentries = 2 * n;
	table->values = static_cast<char *>(MemoryContextAlloc(context, sizeof(int64) * 2 * n));
	memcpy(table->values, from, sizeof(int64) * n);
	memcpy(table->values + sizeof(int64) * n, shift, sizeof(int64) * n);
	return table;
}

/* As timestamptz_zone() finds it. NULL, or why not. */
static const char *
find_zone(const Expr *expr, Zone *zone)
{
	const Const *con = (const Const *) expr;
	char		name[TZ_STRLEN_MAX + 1];
	pg_tz	   *named;
	int			offset;
	int			type;

	*zone = Zone{session_timezone, 0};
	if (expr == nullptr)
		return nullptr;
	text_to_cstring_buffer(DatumGetTextPP(con->constvalue), name, sizeof(name));
	type = compat_decode_timezone_abbrev(downcase_truncate_identifier(name, static_cast<int>(strlen(name)), false), &offset, &named);
	if (type == TZ || type == DTZ)
		*zone = Zone{nullptr, offset};
	else
		*zone = Zone{type == DYNTZ ? nullptr : pg_tzset(name), 0};
	return zone->tz != nullptr || type == TZ || type == DTZ ? nullptr : psprintf("time zone \"%s\" is not one that has a table", name);
}

const char *
zone_table(const PlanMap *plan, MapData **table)
{
	Zone		zone;
	const char *failure = find_zone(plan->expr, &zone);

	if (failure != nullptr)
		return failure;
	for (int i = 0; i < nkept; i++)
	{
		if (kept[i].kind == plan->kind && kept[i].zone.tz == zone.tz && kept[i].zone.offset == zone.offset)
		{
			*table = kept[i].table;
			return nullptr;
		}
	}
	*table = make_table(&zone, plan->kind, nkept < MAX_KEPT ? TopMemoryContext : CurrentMemoryContext);
	if (*table == nullptr)
		return "a time zone changes its offset too often";
	/* what is kept stays: another execution may be about to copy it into its job */
	if (nkept < MAX_KEPT)
		kept[nkept++] = KeptTable{zone, plan->kind, *table};
	return nullptr;
}

}  // namespace gpuvm
