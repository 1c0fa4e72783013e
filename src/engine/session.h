/* session.h: one backend's connection, served by a thread of its own. */
#ifndef GPUVM_ENGINE_SESSION_H
#define GPUVM_ENGINE_SESSION_H

#include "engine/context.h"

namespace gpuvm {

/* Serves the session on `fd` until its end; does not close it. Never throws. */
void		serve_session(EngineContext *context, int fd);

}  // namespace gpuvm

#endif
