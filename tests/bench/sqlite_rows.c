/*
 * sqlite_rows: times SQLite as the papers did. Copies the tables of a database
 * file into a temporary database in memory, then reads SQL from standard input,
 * one statement a line, and for each steps through all rows RUNS times without
 * keeping them. Prints a line "rows milliseconds ..." for each statement; rows
 * of one column and one row print that value after '='.
 *
 * usage: sqlite_rows DATABASE RUNS
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *db;

static void
die(void)
{
	fprintf(stderr, "sqlite_rows: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int
copy_table(void *unused, int n, char **values, char **names)
{
	char	   *sql = sqlite3_mprintf("CREATE TABLE main.\"%w\" AS SELECT * FROM disk.\"%w\"", values[0], values[0]);

	(void) unused, (void) n, (void) names;
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die();
	sqlite3_free(sql);
	return 0;
}

int
main(int argc, char **argv)
{
	char		line[65536];
	char	   *attach;
	int			runs;

	if (argc != 3)
	{
		fprintf(stderr, "usage: sqlite_rows DATABASE RUNS\n");
		return 2;
	}
	runs = atoi(argv[2]);
	attach = sqlite3_mprintf("ATTACH %Q AS disk", argv[1]);
	if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_exec(db, attach, NULL, NULL, NULL) != SQLITE_OK ||
		sqlite3_exec(db, "SELECT name FROM disk.sqlite_master WHERE type = 'table'", copy_table, NULL, NULL) != SQLITE_OK)
		die();

	while (fgets(line, sizeof line, stdin))
	{
		sqlite3_stmt *stmt;
		long		rows = 0;
		char		value[256] = "";

		line[strcspn(line, "\n")] = 0;
		if (sqlite3_prepare_v2(db, line, -1, &stmt, NULL) != SQLITE_OK)
			die();
		for (int i = 0; i < runs; i++)
		{
			double		started = now_ms();
			int			rc;

			rows = 0;
			while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
			{
				if (rows++ == 0 && sqlite3_column_count(stmt) == 1 && sqlite3_column_text(stmt, 0))
					snprintf(value, sizeof value, "%s", (const char *) sqlite3_column_text(stmt, 0));
			}
			if (rc != SQLITE_DONE)
				die();
			printf("%s%.4f", i ? " " : "", now_ms() - started);
			sqlite3_reset(stmt);
		}
		printf(" rows %ld = %s\n", rows, rows == 1 ? value : "");
		fflush(stdout);
		sqlite3_finalize(stmt);
	}
	return 0;
}
