/* cpu_pages.h: memory of the CPU virtual machine's tables. */
#ifndef GPUVM_VM_CPU_PAGES_H
#define GPUVM_VM_CPU_PAGES_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace gpuvm {

class MemoryBudget;

constexpr size_t HUGE_PAGE = size_t(1) << 21;

/*
 * Zeroed memory in pages of its own, which cost nothing until touched. `huge`:
 * in huge pages where the system has them, for what is accessed at random. Counted
 * for the job that the thread works for (memory_budget.h).
 */
class Pages
{
public:
	Pages() = default;
	Pages(size_t bytes, bool huge);	/* throws std::bad_alloc */
	/*
	 * Of the heap, with anything in it: where a page's faults would cost more than what is done there; not counted, so for
	 * what is small. Throws std::bad_alloc.
	 */
	static Pages of_heap(size_t bytes);
	/* Zeroed: of the heap where that costs less, or else in pages that are there already. Throws std::bad_alloc. */
	static Pages zeroed(size_t bytes);
	Pages(Pages &&from) noexcept { swap(&from); }
	Pages	   &operator=(Pages &&from) noexcept
	{
		swap(&from);
		return *this;
	}
	~Pages();

	/* Has all pages now, of fresh memory that will be read before it is written. */
	void		touch();

	template <typename T>
	T		   *as() const { return static_cast<T *>(p); }
	size_t		bytes() const { return size; }

private:
	void swap(Pages *with) noexcept
	{
		std::swap(p, with->p);
		std::swap(size, with->size);
		std::swap(heap, with->heap);
		std::swap(budget, with->budget);
		std::swap(taken_by, with->taken_by);
	}

	void	   *p = nullptr;
	size_t		size = 0;
	bool		heap = false;
	MemoryBudget *budget = nullptr;	/* that counts it, */
	uint64_t	taken_by = 0;	/* for the job of this number */
};

}  // namespace gpuvm

#endif
