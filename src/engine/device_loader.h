/*
 * device_loader.h: how gpuvmd comes by gpuvm_cuda.so, and sessions by it.
 *
 * CUDA takes hundreds of milliseconds to come up, and may never. So a thread of
 * its own loads the library and starts the devices, while sessions are served by
 * the CPU virtual machine; then it keeps house.
 */
#ifndef GPUVM_ENGINE_DEVICE_LOADER_H
#define GPUVM_ENGINE_DEVICE_LOADER_H

#include <mutex>
#include <string>

#include "engine/arena_map.h"
#include "engine/device_abi.h"

namespace gpuvm {

/* Where sessions find the library once its devices are up, and until then why not. */
class DeviceSlot
{
public:
	/* nullptr until it has been published; lives to the end of the process. */
	DeviceLibrary *library() const { return library_.load(std::memory_order_acquire); }

	void publish(DeviceLibrary *library) { library_.store(library, std::memory_order_release); }

	/* What the header says, too, where a wild write may change it. */
	DeviceState state() const { return state_.load(std::memory_order_acquire); }

	void set_state(DeviceState state) { state_.store(state, std::memory_order_release); }

	void		set_reason(const char *why);

	/* Why there is no library; 0-terminated in `size` bytes. */
	void		reason(char *to, size_t size) const;

private:
	std::atomic<DeviceLibrary *> library_{nullptr};
	std::atomic<DeviceState> state_{DeviceState::None};
	mutable std::mutex mutex_;
	std::string why_ = "there is no CUDA device";
};

struct DeviceLoaderOptions
{
	const char *library = nullptr;	/* path; nullptr: gpuvm_cuda.so beside gpuvmd; empty: none */
	const char *off = nullptr;		/* no library, for this reason */
	uint64_t	memory_limit = 0;	/* bytes a device; 0 chooses */
	int			control_fd = -1;	/* a byte there asks the supervisor to clean up unpinned chunks */
	void		(*taken) (uint64_t bytes) = nullptr;	/* so much private memory CUDA took to start */
};

/* Starts the thread. `arena` and `slot` live to the end of the process. */
void		start_device_loader(const ArenaMap *arena, DeviceSlot *slot, const DeviceLoaderOptions &options);

/* What the thread does first, for tests too: true when the library is published; else the slot and the header say why not. */
bool		load_devices(const ArenaMap &arena, DeviceSlot *slot, const DeviceLoaderOptions &options);

}  // namespace gpuvm

#endif
