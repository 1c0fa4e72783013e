/*
 * date_fields.h: what DatePart takes out of a timestamp, and what DateTrunc
 * cuts it to. Shared with the compiler.
 *
 * A date counts as the timestamp of its midnight. A time of day is no timestamp:
 * 24:00 has an hour of its own.
 */
#ifndef GPUVM_VM_DATE_FIELDS_H
#define GPUVM_VM_DATE_FIELDS_H

#include <cstdint>

namespace gpuvm {

enum class DateField : int32_t
{
	Microsecond = 0,			/* DatePart: of the minute, seconds included. DateTrunc: all stays */
	Millisecond = 1,			/* DateTrunc only: DatePart's are microseconds at another scale */
	Second = 2,					/* DatePart: whole ones */
	Minute = 3,
	Hour = 4,
	Day = 5,
	Month = 6,
	Quarter = 7,
	Year = 8,					/* there is no year 0: 1 BC is -1 */
	Decade = 9,
	Century = 10,
	Millennium = 11,
	Week = 12,					/* of ISO 8601 */
	IsoYear = 13,				/* this and what follows: DatePart only */
	Dow = 14,					/* Sunday is 0 */
	IsoDow = 15,				/* Monday is 1, Sunday 7 */
	Doy = 16,
	Epoch = 17,					/* microseconds since 1970 */
	Julian = 18,				/* the Julian day, whole */
};

constexpr int DATE_FIELDS = 19;

constexpr bool
date_part_takes(int32_t field)
{
	return field >= 0 && field < DATE_FIELDS && field != static_cast<int32_t>(DateField::Millisecond);
}

constexpr bool
date_trunc_takes(int32_t field)
{
	return field >= 0 && field <= static_cast<int32_t>(DateField::Week);
}

/* For people. */
constexpr const char *
date_field_name(int32_t field)
{
	constexpr const char *names[DATE_FIELDS] = {"microseconds", "milliseconds", "second", "minute", "hour", "day", "month", "quarter",
		"year", "decade", "century", "millennium", "week", "isoyear", "dow", "isodow", "doy", "epoch", "julian"};

	return field >= 0 && field < DATE_FIELDS ? names[field] : "?";
}

}  // namespace gpuvm

#endif
