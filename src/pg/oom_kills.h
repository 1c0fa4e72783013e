/* oom_kills.h: how many processes the kernel has killed for want of memory. */
#ifndef GPUVM_PG_OOM_KILLS_H
#define GPUVM_PG_OOM_KILLS_H

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace gpuvm {

/* The number behind "oom_kill" in such a file as memory.events or /proc/vmstat; -1: there is none. */
inline int64_t
oom_kills_in(const char *path)
{
	FILE	   *file = fopen(path, "re");
	char		line[256];
	long long	count = -1;

	if (file == nullptr)
		return -1;
	while (fgets(line, sizeof(line), file) != nullptr && sscanf(line, "oom_kill %lld", &count) != 1)
		count = -1;
	fclose(file);
	return count;
}

/*
 * In this process's control group, which its children share, those below it included; where there is none, in the whole
 * system. Differences tell; -1 where nothing does.
 */
inline int64_t
oom_kills()
{
	FILE	   *groups = fopen("/proc/self/cgroup", "re");
	char		line[1024];
	int64_t		count = -1;

	while (groups != nullptr && count < 0 && fgets(line, sizeof(line), groups) != nullptr)
	{
		char		path[1200];

		line[strcspn(line, "\n")] = '\0';
		/* version 2, then version 1, whose controllers stand between the colons */
		if (strncmp(line, "0::", 3) == 0)
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", line + 3);
		else if (strstr(line, ":memory:") != nullptr)
			snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.oom_control", strstr(line, ":memory:") + strlen(":memory:"));
		else
			continue;
		count = oom_kills_in(path);
	}
	if (groups != nullptr)
		fclose(groups);
	return count >= 0 ? count : oom_kills_in("/proc/vmstat");
}

}  // namespace gpuvm

#endif
