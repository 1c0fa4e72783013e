/* quarantine.h: programs that are not run because they have ended gpuvmd. Nothing here raises, but for palloc. */
#ifndef GPUVM_PG_QUARANTINE_H
#define GPUVM_PG_QUARANTINE_H

#include "pg/pg.h"
#include "pg/quarantine_table.h"

namespace gpuvm {

/* Is the program barred from the engine now? */
bool		engine_quarantined(uint64 program, Device device);

/* That start of gpuvmd is gone: has it barred the program? Waits for the supervisor to say so. */
bool		engine_crash_bars(uint64 program, uint32 generation);

/* For the supervisor. */
void		quarantine_note_crash(const BlamedCrash &crash);

/* The program's job has come to its end. */
void		quarantine_note_run(uint64 program, Device device);

/* Of a program, or with 0 of all; returns how many entries there were. */
int			quarantine_forgive(uint64 program);

struct QuarantineRow
{
	BlamedCrash last;
	uint32		crashes;
	int64		last_crash;		/* TimestampTz */
	int64		barred_until;	/* 0: it never was */
};

/* Palloc'd. */
QuarantineRow *quarantine_list(int *count);

}  // namespace gpuvm

#endif
