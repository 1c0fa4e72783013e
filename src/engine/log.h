/* log.h: gpuvmd's log. A line goes to standard error in one write; the supervisor passes it on. */
#ifndef GPUVM_ENGINE_LOG_H
#define GPUVM_ENGINE_LOG_H

namespace gpuvm {

void		log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gpuvm

#endif
