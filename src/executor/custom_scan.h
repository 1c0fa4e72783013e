/* custom_scan.h: registers the custom scan and the executor hooks (gpuvm.require). */
#ifndef GPUVM_EXECUTOR_CUSTOM_SCAN_H
#define GPUVM_EXECUTOR_CUSTOM_SCAN_H

namespace gpuvm {

/* Called once from _PG_init, also without preloading. */
void		executor_install(void);

}  // namespace gpuvm

#endif
