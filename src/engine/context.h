/* context.h: what all sessions of gpuvmd share. */
#ifndef GPUVM_ENGINE_CONTEXT_H
#define GPUVM_ENGINE_CONTEXT_H

#include <atomic>
#include <chrono>
#include <memory>

#include "engine/arena_map.h"
#include "engine/collators.h"
#include "engine/device_loader.h"
#include "engine/estimates.h"
#include "engine/index_store.h"
#include "engine/processors.h"
#include "engine/request.h"
#include "engine/set.h"
#include "engine/worker_pool.h"
#include "vm/cpu_vm.h"
#include "vm/memory_budget.h"

namespace gpuvm {

using MakeCpuJob = std::unique_ptr<CpuJob> (*)(const Program *program, const ParamValue *params, uint32_t nparams,
											   const ColumnSummary *columns, uint32_t ncols, uint64_t total_rows,
											   const CodeMap *maps, const TextPattern *const *patterns, TextKeys *text_keys);

struct EngineContext
{
	ArenaMap	arena;
	WorkerPool *pool;
	Processors *processors;
	CheckedTablets checked;
	MakeCpuJob	make_cpu_job;
	Collators	collators;
	MemoryBudget memory;
	IndexStore	indexes{&arena};
	SetMemory	set_memory{&arena};
	DeviceSlot	devices;
	Estimates	estimates;
	EngineLoad	cpu_load;
	EngineLoad	device_load;
	int			control_fd = -1;	/* a byte there asks the supervisor to look what can be given back */
	/* A session whose last two jobs came within this time waits awake so long. */
	std::chrono::milliseconds busy_wait{100};
	/* A cursor that is not read on must not keep a device's streams and memory from others for longer. */
	std::chrono::milliseconds client_patience{20};
};

}  // namespace gpuvm

#endif
