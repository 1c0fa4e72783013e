/* settings.h: the gpuvm.* settings. Defined by settings.cc, read everywhere. */
#ifndef GPUVM_PG_SETTINGS_H
#define GPUVM_PG_SETTINGS_H

#include "pg/pg.h"

namespace gpuvm {

enum DeviceSetting { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };
enum RequireSetting { REQUIRE_ANY, REQUIRE_VM, REQUIRE_CPU, REQUIRE_CUDA };
enum TransferSetting { TRANSFER_AUTO, TRANSFER_SERIAL, TRANSFER_STREAM, TRANSFER_MAPPED, TRANSFER_CACHED };
enum WholeQuerySetting { WHOLE_QUERY_OFF, WHOLE_QUERY_ON, WHOLE_QUERY_SHADOW };
enum JitSetting { JIT_AUTO, JIT_ON, JIT_OFF };
enum FilesSetting { FILES_LOAD, FILES_KEEP, FILES_READ };

extern bool setting_enabled;		/* gpuvm.enabled */
extern int	setting_device;			/* gpuvm.device: DeviceSetting */
extern bool setting_force;			/* gpuvm.force */
extern int	setting_require;		/* gpuvm.require: RequireSetting */
extern int	setting_transfer;		/* gpuvm.transfer: TransferSetting */
extern int	setting_jit;			/* gpuvm.jit: JitSetting */
extern int	setting_files;			/* gpuvm.files: FilesSetting */
extern bool setting_float_sums;		/* gpuvm.float_sums */
extern int	setting_whole_query;	/* gpuvm.whole_query: WholeQuerySetting */
extern int	setting_join_order_seed;	/* gpuvm.join_order_seed; 0: by cost */
extern bool setting_normalise;		/* gpuvm.normalise */
extern int	setting_memory_mb;		/* gpuvm.memory, MB; postmaster */
extern int	setting_engine_timeout;	/* gpuvm.engine_timeout, ms; 0: never */
extern int	setting_index_memory_mb;	/* gpuvm.index_memory, MB */
extern int	setting_result_memory_mb;	/* gpuvm.result_memory, MB */
extern int	setting_engine_memory_mb;	/* gpuvm.engine_memory, MB */
extern int	setting_device_memory_mb;	/* gpuvm.device_memory, MB; 0 = engine's choice */
extern char *setting_cuda_library;	/* gpuvm.cuda_library: "default" = beside gpuvmd, "" = none; postmaster */
extern int	setting_tablet_kb;		/* gpuvm.tablet_size, kB */
extern int	setting_job_memory_mb;	/* gpuvm.job_memory, MB */
extern int	setting_job_priority;	/* gpuvm.job_priority */
extern int	setting_queue_timeout_ms;	/* gpuvm.queue_timeout, ms */
extern int	setting_share;			/* gpuvm.share: the role's weight */
extern int	setting_threads;		/* gpuvm.threads; 0 = all cores */
extern bool setting_refresh;		/* gpuvm.refresh */
extern bool setting_compact;		/* gpuvm.compact */
extern int	setting_refresh_naptime_s;	/* gpuvm.refresh_naptime, s */
extern int	setting_refresh_cost_delay;	/* gpuvm.refresh_cost_delay, ms */
extern bool setting_load_at_start;	/* gpuvm.load_at_start */

/* Defines every setting; called once from _PG_init. */
void		define_settings(void);

}  // namespace gpuvm

#endif
