/*
 * sqlite_rows: times SQLite as the papers did. Copies the tables of a database
 * file into a temporary database in memory, then reads SQL from standard input,
 * one statement a line, and for each steps through all rows RUNS times without
 * keeping them. Prints a line "milliseconds ... rows N = value" for each statement;
 * one row of one column is the value. What changes data is rolled back each
 * time, the rows are those that it changed, and the value is that of the query
 * that may follow on its line, behind a tab, run before it is rolled back.
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

static void
run(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die();
}

static sqlite3_stmt *
prepare(const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		die();
	return stmt;
}

/* Steps through all rows: their number, and the first one's value if it is the only one of its row. */
static long
step_all(sqlite3_stmt *stmt, char *value, size_t size)
{
	long		rows = 0;
	int			rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
	{
		if (rows++ == 0 && sqlite3_column_count(stmt) == 1 && sqlite3_column_text(stmt, 0))
			snprintf(value, size, "%s", (const char *) sqlite3_column_text(stmt, 0));
	}
	if (rc != SQLITE_DONE)
		die();
	sqlite3_reset(stmt);
	return rows;
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
		sqlite3_stmt *stmt,
				   *check = NULL;
		long		rows = 0;
		char		value[256] = "";
		char	   *tab;
		int			changes;

		line[strcspn(line, "\n")] = 0;
		if ((tab = strchr(line, '\t')) != NULL)
		{
			*tab = 0;
			check = prepare(tab + 1);
		}
		stmt = prepare(line);
		changes = !sqlite3_stmt_readonly(stmt);
		for (int i = 0; i < runs; i++)
		{
			double		started;

			if (changes)
				run("BEGIN");
			started = now_ms();
			rows = step_all(stmt, value, sizeof value);
			printf("%s%.4f", i ? " " : "", now_ms() - started);
			if (!changes)
				continue;
			rows = sqlite3_changes(db);
			if (check && i == runs - 1)
				step_all(check, value, sizeof value);
			run("ROLLBACK");
		}
		printf(" rows %ld = %s\n", rows, rows == 1 || check ? value : "");
		fflush(stdout);
		sqlite3_finalize(stmt);
		sqlite3_finalize(check);
	}
	return 0;
}
