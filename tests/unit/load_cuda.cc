/*
 * gpuvm_cuda.so itself, as the linker made it: that it loads without the CUDA
 * driver, and says in a sentence why it has no device. On a machine with a GPU
 * it must open. The library's path is in GPUVM_CUDA_LIBRARY.
 */
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "engine/device_abi.h"

using namespace gpuvm;

namespace {

constexpr uint64_t ARENA_SIZE = MIN_PIN_CHUNK;

class LoadCuda : public testing::Test
{
protected:
	static void SetUpTestSuite()
	{
		const char *path = getenv("GPUVM_CUDA_LIBRARY");

		ASSERT_NE(path, nullptr);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		ASSERT_NE(library, nullptr) << dlerror();
		open = reinterpret_cast<OpenDeviceLibrary>(dlsym(library, DEVICE_LIBRARY_SYMBOL));
		ASSERT_NE(open, nullptr) << dlerror();
	}

	void SetUp() override
	{
		ASSERT_NE(open, nullptr);
		arena = static_cast<char *>(mmap(nullptr, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
		ASSERT_NE(arena, MAP_FAILED);

		ArenaHeader *header = new (arena) ArenaHeader();

		header->magic = ARENA_MAGIC;
		header->abi_version = ABI_VERSION;
		header->size = ARENA_SIZE;
		options = DeviceOptions{};
		options.abi_version = DEVICE_ABI_VERSION;
		options.arena = arena;
		options.arena_size = ARENA_SIZE;
		options.header = header;
		options.log = [](const char *line) { printf("%s\n", line); };
		options.fatal = [](const char *line) { printf("%s\n", line); abort(); };
	}

	void TearDown() override
	{
		munmap(arena, ARENA_SIZE);
	}

	static void *library;
	static OpenDeviceLibrary open;
	char	   *arena = nullptr;
	DeviceOptions options;
	char		why[256] = "";
};

void *LoadCuda::library;
OpenDeviceLibrary LoadCuda::open;

/* Whether the driver is there, asked in the driver's own words. */
bool
machine_has_a_device()
{
	void	   *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (driver == nullptr)
		return false;

	auto		init = reinterpret_cast<int (*) (unsigned)>(dlsym(driver, "cuInit"));
	auto		count = reinterpret_cast<int (*) (int *)>(dlsym(driver, "cuDeviceGetCount"));
	int			n = 0;

	return init != nullptr && count != nullptr && init(0) == 0 && count(&n) == 0 && n > 0;
}

TEST_F(LoadCuda, OpensWhereADeviceIsAndElseSaysWhyNot)
{
	std::unique_ptr<DeviceLibrary> devices(open(&options, why));

	if (machine_has_a_device())
	{
		ASSERT_NE(devices, nullptr) << why;
		EXPECT_GT(devices->ndevices(), 0u);
	}
	else
	{
		EXPECT_EQ(devices, nullptr);
		EXPECT_NE(strstr(why, "driver"), nullptr) << why;
	}
}

TEST_F(LoadCuda, RefusesAnotherVersion)
{
	options.abi_version = DEVICE_ABI_VERSION + 1;

	std::unique_ptr<DeviceLibrary> devices(open(&options, why));

	EXPECT_EQ(devices, nullptr);
	EXPECT_NE(strstr(why, "version"), nullptr) << why;
}

/* gpuvmd has functions of the same names, of another engine: none may be taken for another. */
TEST_F(LoadCuda, ExportsNothingOfItsOwnButTheEntry)
{
	std::string command = std::string("nm -D --defined-only '") + getenv("GPUVM_CUDA_LIBRARY") + "'";
	FILE	   *nm = popen(command.c_str(), "r");
	char		line[4096];
	std::string ours;

	ASSERT_NE(nm, nullptr);
	while (fgets(line, sizeof(line), nm))
		if (strstr(line, "gpuvm") || strstr(line, " cuda"))
			ours += line;
	pclose(nm);
	EXPECT_EQ(std::count(ours.begin(), ours.end(), '\n'), 1) << ours;
	EXPECT_NE(ours.find(DEVICE_LIBRARY_SYMBOL), std::string::npos) << ours;
}

}  // namespace
