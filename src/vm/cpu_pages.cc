/* cpu_pages.cc: see cpu_pages.h. */
#include "vm/cpu_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "vm/memory_budget.h"
#include "vm/result_layout.h"

namespace gpuvm {

Pages::Pages(size_t bytes, bool huge)
{
	const size_t slack = huge ? HUGE_PAGE : 0;

	JobMemory  *const job = JobMemory::current();

	size = align_up(bytes, huge ? HUGE_PAGE : 4096);
	if (job != nullptr && !job->budget()->take(job, size))
		throw std::bad_alloc();
	p = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
	{
		const int	error = errno;

		p = nullptr;
		if (job != nullptr)
			job->budget()->fail(job, size, error);
		throw std::bad_alloc();
	}
	if (job != nullptr)
	{
		budget = job->budget();
		taken_by = job->number();
	}
	if (!huge)
		return;

	char	   *from = static_cast<char *>(p);
	char	   *to = reinterpret_cast<char *>(align_up(reinterpret_cast<uintptr_t>(p), HUGE_PAGE));

	if (to > from)
		munmap(from, static_cast<size_t>(to - from));
	if (to < from + slack)
		munmap(to + size, static_cast<size_t>(from + slack - to));
	p = to;
	/* A refusal costs speed only. */
	(void) madvise(p, size, MADV_HUGEPAGE);
}

Pages
Pages::of_heap(size_t bytes)
{
	Pages		pages;

	pages.size = align_up(bytes, 64);
	pages.heap = true;
	pages.p = aligned_alloc(64, pages.size);
	if (pages.p == nullptr)
		throw std::bad_alloc();
	return pages;
}

Pages
Pages::zeroed(size_t bytes)
{
	const bool	small = bytes < HUGE_PAGE;
	Pages		pages = small ? of_heap(bytes) : Pages(bytes, true);

	if (small)
		memset(pages.p, 0, pages.size);
	else
		pages.touch();
	return pages;
}

/*
 * A first read would only map the zero page, and the write after it then make
 * all processors forget that.
 */
void
Pages::touch()
{
	volatile char *at = static_cast<char *>(p);

	for (size_t i = 0; i < size; i += 4096)
		at[i] = 0;
}

Pages::~Pages()
{
	if (heap)
		free(p);
	else if (p)
	{
		munmap(p, size);
		if (budget != nullptr)
			budget->give_back(taken_by, size);
	}
}

}  // namespace gpuvm
