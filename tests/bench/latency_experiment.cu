/*
 * latency_experiment (GPU half): pinned shared memory and the death of the
 * process that pinned it. The parent never touches CUDA; it owns a memfd, as
 * the server owns the arena, and its children play gpuvmd.
 *
 *   1. kill -9 of a child that has the memfd registered and a kernel running on
 *      it, then registration by a new child, which checks the data
 *   2. cudaHostRegister of a large memfd in chunks, touched before
 *
 *   latency_experiment_cuda [--gb N, default 64]
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call) \
	do { \
		cudaError_t rc_ = (call); \
		if (rc_ != cudaSuccess) \
		{ \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(rc_)); \
			_exit(1); \
		} \
	} while (0)

namespace {

double
now()
{
	timespec	t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void
fail(const char *what)
{
	perror(what);
	exit(1);
}

char *
map(int fd, size_t size)
{
	void	   *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return static_cast<char *>(p);
}

__host__ __device__ uint64_t
pattern(uint64_t i)
{
	return i * 0x9e3779b97f4a7c15ull + 1;
}

__global__ void
count_wrong(const uint64_t *words, uint64_t n, unsigned long long *wrong)
{
	uint64_t	bad = 0;

	for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < n; i += static_cast<uint64_t>(gridDim.x) * blockDim.x)
		bad += words[i] != pattern(i);
	if (bad)
		atomicAdd(wrong, static_cast<unsigned long long>(bad));
}

/* Writes what is there already, for ever: the device uses the memory when the process dies. */
__global__ void
keep_busy(volatile uint64_t *words, uint64_t n)
{
	for (;;)
		for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
			words[i] = pattern(i);
}

/* A child's life: registers, checks, reports, then works until it is killed (or leaves, if it is the last). */
void
engine(int fd, size_t size, int report, bool last)
{
	double		begin = now();

	CHECK(cudaFree(nullptr));

	double		context = now();
	char	   *memory = map(fd, size);

	CHECK(cudaHostRegister(memory, size, cudaHostRegisterMapped | cudaHostRegisterPortable));

	double		registered = now();
	uint64_t   *device;
	unsigned long long *wrong;
	unsigned long long got;

	CHECK(cudaHostGetDevicePointer(reinterpret_cast<void **>(&device), memory, 0));
	CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	count_wrong<<<264, 256>>>(device, size / 8, wrong);
	CHECK(cudaMemcpy(&got, wrong, sizeof(got), cudaMemcpyDeviceToHost));
	printf("pid %d: context %.0f ms, register %.2f GiB %.1f ms, words wrong %llu\n", getpid(), (context - begin) * 1e3,
		   static_cast<double>(size) / (1 << 30), (registered - context) * 1e3, got);
	fflush(stdout);
	if (got != 0)
		_exit(1);
	if (!last)
		keep_busy<<<1, 256>>>(device, 1 << 16);
	if (write(report, "r", 1) != 1)
		_exit(1);
	if (last)
		_exit(0);
	for (;;)
		pause();
}

void
kill_and_register(size_t size)
{
	int			fd = memfd_create("arena", 0);

	if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0)
		fail("memfd_create");

	uint64_t   *words = reinterpret_cast<uint64_t *>(map(fd, size));

	for (uint64_t i = 0; i < size / 8; i++)
		words[i] = pattern(i);
	for (int life = 0; life < 4; life++)
	{
		int			pipes[2];
		char		byte;
		bool		last = life == 3;
		double		begin = now();

		if (pipe(pipes) != 0)
			fail("pipe");

		pid_t		child = fork();

		if (child == 0)
			engine(fd, size, pipes[1], last);
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) != 1)
		{
			fprintf(stderr, "life %d failed\n", life);
			exit(1);
		}
		close(pipes[0]);

		double		ready = now();

		if (!last)
		{
			usleep(50000);
			kill(child, SIGKILL);
		}

		double		killed = now();
		int			status;

		waitpid(child, &status, 0);
		printf("life %d: start to ready %.0f ms, %s to reaped %.0f ms\n", life, (ready - begin) * 1e3, last ? "exit" : "kill -9",
			   (now() - killed) * 1e3);
		fflush(stdout);
	}

	uint64_t	wrong = 0;

	for (uint64_t i = 0; i < size / 8; i++)
		wrong += words[i] != pattern(i);
	printf("after three kills: %llu words wrong\n", static_cast<unsigned long long>(wrong));
	munmap(words, size);
	close(fd);
	if (wrong)
		exit(1);
}

void
register_in_chunks(size_t size)
{
	int			fd = memfd_create("arena", 0);

	if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0)
		fail("memfd_create");

	char	   *memory = map(fd, size);
	int			nthreads = static_cast<int>(std::thread::hardware_concurrency());
	std::vector<std::thread> threads;
	double		begin = now();

	for (int t = 0; t < nthreads; t++)
		threads.emplace_back([=]
							 {
								 size_t		from = size / nthreads / 4096 * 4096 * t;
								 size_t		to = t == nthreads - 1 ? size : size / nthreads / 4096 * 4096 * (t + 1);

								 for (size_t at = from; at < to; at += 4096)
									 memory[at] = 1;
							 });
	for (std::thread &t : threads)
		t.join();
	printf("touch %.0f GiB with %d threads: %.2f s\n", static_cast<double>(size) / (1 << 30), nthreads, now() - begin);
	CHECK(cudaFree(nullptr));
	for (size_t chunk = 256ull << 20; chunk <= 4096ull << 20; chunk *= 4)
	{
		double		start = now(), longest = 0;

		for (size_t at = 0; at < size; at += chunk)
		{
			double		one = now();

			CHECK(cudaHostRegister(memory + at, std::min(chunk, size - at), cudaHostRegisterMapped | cudaHostRegisterPortable));
			longest = std::max(longest, now() - one);
		}

		double		done = now();

		for (size_t at = 0; at < size; at += chunk)
			CHECK(cudaHostUnregister(memory + at));
		printf("register in chunks of %4zu MiB: %.2f s (%.1f GiB/s), longest chunk %.1f ms; unregister %.2f s\n", chunk >> 20, done - start,
			   static_cast<double>(size) / (1 << 30) / (done - start), longest * 1e3, now() - done);
		fflush(stdout);
	}
}

}  // namespace

int
main(int argc, char **argv)
{
	size_t		gb = 64;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--gb") && i + 1 < argc)
			gb = strtoul(argv[++i], nullptr, 10);
	kill_and_register(4ull << 30);

	pid_t		child = fork();
	int			status;

	if (child == 0)
	{
		register_in_chunks(gb << 30);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status == 0 ? 0 : 1;
}
