/*
 * memory_default.cc: the sizes that gpuvm.memory = 0 and gpuvm.engine_memory = 0 stand
 * for: a quarter and half of the machine's memory, or half and a quarter of what a control
 * group leaves the server, if that is less. Not all of it: PostgreSQL itself lives in the
 * same group, and the kernel would end a process of the server when both fill it.
 */
#include "pg/pg.h"

#include <unistd.h>

#include "pg/startup.h"

namespace gpuvm {

constexpr uint64 MB = 1024 * 1024;
constexpr int DEFAULT_MEMORY_FLOOR_MB = 64;

/* The number in a limit file, or the highest when there is no such file or it says "max". */
static uint64
read_limit(const char *path)
{
	FILE	   *file = fopen(path, "re");
	unsigned long long limit;
	uint64		result = PG_UINT64_MAX;

	if (file == NULL)
		return result;
	if (fscanf(file, "%llu", &limit) == 1)
		result = limit;
	fclose(file);
	return result;
}

/* The lowest limit of a group and its ancestors; inside a container the paths may name groups outside of it. */
static uint64
group_limit(const char *root, char *group, const char *file)
{
	uint64		limit = PG_UINT64_MAX;
	char		path[MAXPGPATH];

	for (;;)
	{
		char	   *slash = strrchr(group, '/');

		if (snprintf(path, sizeof(path), "%s%s/%s", root, group, file) < static_cast<int>(sizeof(path)))
			limit = Min(limit, read_limit(path));
		if (slash == NULL)
			return limit;
		*slash = '\0';
	}
}

static uint64
control_group_limit(void)
{
	FILE	   *file = fopen("/proc/self/cgroup", "re");
	char		line[MAXPGPATH];
	uint64		limit = PG_UINT64_MAX;

	if (file == NULL)
		return limit;
	/* "hierarchy:controllers:path"; version 2 has one line, "0::path" */
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char	   *controllers = strchr(line, ':');
		char	   *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (path == NULL)
			continue;
		*path++ = '\0';
		controllers++;
		path[strcspn(path, "\n")] = '\0';
		if (*controllers == '\0')
			limit = Min(limit, group_limit("/sys/fs/cgroup", path, "memory.max"));
		else if (strcmp(controllers, "memory") == 0)
			limit = Min(limit, group_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
	}
	fclose(file);
	return limit;
}

static int
share_of_memory(uint64 of_machine, uint64 of_group)
{
	uint64		memory = static_cast<uint64>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64>(sysconf(_SC_PAGESIZE));
	uint64		choice = Min(memory / of_machine, control_group_limit() / of_group);

	return static_cast<int>(Max(choice / MB, static_cast<uint64>(DEFAULT_MEMORY_FLOOR_MB)));
}

int
default_memory_mb(void)
{
	return share_of_memory(4, 2);
}

int
default_engine_memory_mb(void)
{
	return share_of_memory(2, 4);
}

}  // namespace gpuvm
