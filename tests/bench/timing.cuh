/* timing.cuh: what the engine experiments share: checked calls of CUDA, and time by its events. */
#ifndef GPUVM_BENCH_TIMING_CUH
#define GPUVM_BENCH_TIMING_CUH

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) \
	do { \
		cudaError_t rc_ = (call); \
		if (rc_ != cudaSuccess) \
		{ \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(rc_)); \
			exit(1); \
		} \
	} while (0)

struct Timing
{
	double		median_ms;
	double		best_ms;
};

/* run() `reps` times after `warm_ups`, which count only when one repetition is asked for. */
template <typename Run>
Timing
measure(int reps, int warm_ups, Run run)
{
	cudaEvent_t begin, end;
	std::vector<float> ms;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (int i = 0; i < reps + warm_ups; i++)
	{
		float		t;

		CHECK(cudaEventRecord(begin));
		run();
		CHECK(cudaEventRecord(end));
		CHECK(cudaEventSynchronize(end));
		CHECK(cudaEventElapsedTime(&t, begin, end));
		if (i >= warm_ups || reps == 1)
			ms.push_back(t);
	}
	CHECK(cudaEventDestroy(begin));
	CHECK(cudaEventDestroy(end));
	std::sort(ms.begin(), ms.end());
	return Timing{ms[ms.size() / 2], ms[0]};
}

#endif
