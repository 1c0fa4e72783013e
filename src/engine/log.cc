/* log.cc: gpuvmd's log. */
#include "engine/log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace gpuvm {

void
log_line(const char *format, ...)
{
	char		line[1000];
	va_list		args;
	int			len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	len = std::min(len, static_cast<int>(sizeof(line)) - 2);
	if (len < 0)
		return;
	line[len] = '\n';
	if (write(STDERR_FILENO, line, static_cast<size_t>(len) + 1) < 0)
		return;					/* the supervisor has gone, and with it the log */
}

}  // namespace gpuvm
