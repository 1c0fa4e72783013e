/* device_loader.cc: loading gpuvm_cuda.so, starting its devices, keeping house. */
#include "engine/device_loader.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <thread>

#include "engine/blame.h"
#include "engine/log.h"
#include "engine/pin_words.h"

namespace gpuvm {

constexpr std::chrono::milliseconds HOUSEKEEPING(100);
constexpr char LIBRARY_NAME[] = "gpuvm_cuda.so";

void
DeviceSlot::set_reason(const char *why)
{
	std::lock_guard<std::mutex> lock(mutex_);

	why_ = why;
}

void
DeviceSlot::reason(char *to, size_t size) const
{
	std::lock_guard<std::mutex> lock(mutex_);

	snprintf(to, size, "%s", why_.c_str());
}

/* ---- what the header says ------------------------------------------------------ */

/* For gpuvm.status() and for sessions. Backends may read the text meanwhile: its last byte stays 0. */
static void __attribute__((format(printf, 4, 5)))
say(const ArenaMap &arena, DeviceSlot *slot, DeviceState state, const char *format, ...)
{
	ArenaHeader *header = arena.header();
	char		text[sizeof(header->cuda_status)];
	va_list		args;

	va_start(args, format);
	(void) vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	slot->set_reason(text);
	memcpy(header->cuda_status, text, strlen(text) + 1);
	slot->set_state(state);
	header->cuda_state.store(static_cast<uint32_t>(state));
}

static void
library_log(const char *line)
{
	log_line("%s", line);
}

static ArenaHeader *fatal_header;

/* Nothing on the device survives, so neither does gpuvmd: the supervisor starts it again. */
[[noreturn]] static void
library_fatal(const char *line)
{
	log_line("%s", line);
	blame_device(fatal_header);
	fatal_header->device_ends.fetch_add(1);
	_exit(ENGINE_EXIT_DEVICE);
}

static bool
open_pages(void *pages, uint64_t offset, uint64_t bytes)
{
	return static_cast<OpenPages *>(pages)->open(offset, bytes);
}

static void
close_pages(void *pages, uint64_t offset, uint64_t bytes)
{
	static_cast<OpenPages *>(pages)->close(offset, bytes);
}

/* ---- loading ---------------------------------------------------------------------- */

/* A name without a folder is one beside gpuvmd; no environment decides what is loaded. */
static std::string
library_path(const char *name)
{
	char		self[4096];
	ssize_t		len;

	if (name == nullptr)
		name = LIBRARY_NAME;
	if (strchr(name, '/') != nullptr)
		return name;
	len = readlink("/proc/self/exe", self, sizeof(self));
	if (len <= 0)
		return std::string("/") + name;

	std::string path(self, static_cast<size_t>(len));

	return path.substr(0, path.rfind('/') + 1) + name;
}

static DeviceLibrary *
open_library(const ArenaMap &arena, DeviceSlot *slot, const DeviceLoaderOptions &options)
{
	const char *given = options.library;

	if (options.off != nullptr)
	{
		say(arena, slot, DeviceState::Unusable, "%s", options.off);
		return nullptr;
	}
	if (given != nullptr && *given == '\0')
	{
		say(arena, slot, DeviceState::None, "gpuvm.cuda_library is empty: no GPU is used");
		return nullptr;
	}

	std::string path = library_path(given);

	if (access(path.c_str(), F_OK) != 0)
	{
		if (given == nullptr)
			say(arena, slot, DeviceState::None, "gpuvm was built without CUDA: %s is not installed", LIBRARY_NAME);
		else
			say(arena, slot, DeviceState::Unusable, "gpuvm.cuda_library does not exist: \"%s\"", path.c_str());
		return nullptr;
	}

	/* Never closed again: what it started cannot be stopped. */
	void	   *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
	OpenDeviceLibrary open;
	DeviceOptions device = {};
	char		why[256] = "";

	if (handle == nullptr)
	{
		say(arena, slot, DeviceState::Unusable, "%s", dlerror());
		return nullptr;
	}
	open = reinterpret_cast<OpenDeviceLibrary>(dlsym(handle, DEVICE_LIBRARY_SYMBOL));
	if (open == nullptr)
	{
		say(arena, slot, DeviceState::Unusable, "\"%s\" is not a library of gpuvm", path.c_str());
		return nullptr;
	}
	device.abi_version = DEVICE_ABI_VERSION;
	device.arena = reinterpret_cast<char *>(arena.header());
	device.arena_size = arena.header()->size;
	device.header = arena.header();
	if (arena.pages() != nullptr)
	{
		device.open_pages = open_pages;
		device.close_pages = close_pages;
		device.pages = arena.pages();
	}
	device.memory_limit = options.memory_limit;
	device.log = library_log;
	device.fatal = library_fatal;
	fatal_header = arena.header();

	DeviceLibrary *library = open(&device, why);

	if (library == nullptr)
		say(arena, slot, DeviceState::Unusable, "%s", why[0] ? why : "the library could not be opened");
	return library;
}

/* Private writable memory of this process, which RLIMIT_DATA counts. */
static uint64_t
private_memory()
{
	FILE	   *file = fopen("/proc/self/status", "re");
	char		line[200];
	unsigned long long kb = 0;

	if (file == nullptr)
		return 0;
	while (fgets(line, sizeof(line), file) != nullptr && sscanf(line, "VmData: %llu kB", &kb) != 1)
		;
	fclose(file);
	return kb * 1024;
}

bool
load_devices(const ArenaMap &arena, DeviceSlot *slot, const DeviceLoaderOptions &options)
{
	uint64_t	before = private_memory();

	try
	{
		DeviceLibrary *library = open_library(arena, slot, options);

		if (library == nullptr)
			return false;
		say(arena, slot, DeviceState::Starting, "starting");
		library->start();

		uint64_t	after = private_memory();

		if (options.taken != nullptr && after > before)
			options.taken(after - before);
		if (library->ready())
			say(arena, slot, DeviceState::Ready, "ready: %u device%s", library->ndevices(),
				library->ndevices() == 1 ? "" : "s");
		else
			say(arena, slot, DeviceState::Unusable, "no CUDA device is usable: see gpuvm.devices");

		/* In this state, too, it may say better than we why it refuses. */
		slot->publish(library);
		return true;
	}
	catch (const std::exception &e)
	{
		say(arena, slot, DeviceState::Unusable, "CUDA could not be started: %s", e.what());
		return false;
	}
}

static bool
any_punch_wanted(const ArenaMap &arena)
{
	ArenaHeader *header = arena.header();

	for (uint32_t i = 0; i < pin_chunks(header->size); i++)
	{
		if (pin_state(header->pins[i]) == PinState::PunchWanted)
			return true;
	}
	return false;
}

void
start_device_loader(const ArenaMap *arena, DeviceSlot *slot, const DeviceLoaderOptions &options)
{
	/* before the first session, which may want to wait for it */
	say(*arena, slot, DeviceState::Starting, "starting");
	std::thread([arena, slot, options]
	{
		if (!load_devices(*arena, slot, options))
			return;
		for (;;)
		{
			std::this_thread::sleep_for(HOUSEKEEPING);
			try
			{
				slot->library()->housekeep();
			}
			catch (const std::bad_alloc &)
			{
				continue;		/* memory is short: later */
			}
			/* Those that it never took up again: one byte is enough until the supervisor has cleaned up. */
			if (any_punch_wanted(*arena))
				(void) send(options.control_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		}
	}).detach();
}

}  // namespace gpuvm
