/*
 * cpu_sort_rows.h: rows sorted by their codes. Long stretches are parted in three, so
 * that equal codes take no time and the sort can be stopped.
 */
#ifndef GPUVM_VM_CPU_SORT_ROWS_H
#define GPUVM_VM_CPU_SORT_ROWS_H

#include <algorithm>
#include <utility>
#include <vector>

#include "vm/cpu_join.h"

namespace gpuvm {

template <typename Code>
class RowSort
{
public:
	RowSort(Code *codes, uint32_t *rows, JoinStop *stop) : codes(codes), rows(rows), stop(stop) {}

	/* Sorts [from, to); in no particular order if it is stopped. Throws std::bad_alloc. */
	void		run(uint32_t from, uint32_t to) { sort(from, to, MOST_LEVELS); }

	/* The same where nothing has far to go. */
	void		insert(uint32_t from, uint32_t to)
	{
		for (uint32_t i = from + 1; i < to; i++)
		{
			const Code	code = codes[i];
			const uint32_t row = rows[i];
			uint32_t	j = i;

			for (; j > from && codes[j - 1] > code; j--)
			{
				codes[j] = codes[j - 1];
				rows[j] = rows[j - 1];
			}
			codes[j] = code;
			rows[j] = row;
		}
	}

private:
	static constexpr uint32_t FEW = 16;
	static constexpr uint32_t LONG = 4096;
	static constexpr int MOST_LEVELS = 64;

	void		sort(uint32_t from, uint32_t to, int levels)
	{
		while (to - from > LONG && levels-- > 0)
		{
			if (stop && stop->stopped())
				return;

			const Code	pivot = middle(middle(at(from, to, 1), at(from, to, 2), at(from, to, 3)),
									   middle(at(from, to, 4), at(from, to, 5), at(from, to, 6)),
									   middle(at(from, to, 7), at(from, to, 8), at(from, to, 9)));
			uint32_t	less = 0, equal = 0;

			for (uint32_t i = from; i < to; i++)
			{
				less += codes[i] < pivot;
				equal += codes[i] == pivot;
			}

			uint32_t	places[3] = {0, less, less + equal};

			part.resize(to - from);
			for (uint32_t i = from; i < to; i++)
				part[places[codes[i] < pivot ? 0 : codes[i] == pivot ? 1 : 2]++] = {codes[i], rows[i]};
			for (uint32_t i = from; i < to; i++)
			{
				codes[i] = part[i - from].first;
				rows[i] = part[i - from].second;
			}
			/* the shorter side first, so that calls do not pile up */
			if (less < to - from - less - equal)
			{
				sort(from, from + less, levels);
				from += less + equal;
			}
			else
			{
				sort(from + less + equal, to, levels);
				to = from + less;
			}
		}
		if (to - from > FEW)
			sort_pairs(from, to);
		else
			insert(from, to);
	}

	Code		at(uint32_t from, uint32_t to, uint32_t tenth) const { return codes[from + (to - from) / 10 * tenth]; }
	static Code middle(Code a, Code b, Code c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

	void		sort_pairs(uint32_t from, uint32_t to)
	{
		part.resize(to - from);
		for (uint32_t i = from; i < to; i++)
			part[i - from] = {codes[i], rows[i]};
		std::sort(part.begin(), part.end());
		for (uint32_t i = from; i < to; i++)
		{
			codes[i] = part[i - from].first;
			rows[i] = part[i - from].second;
		}
	}

	Code	   *codes;
	uint32_t   *rows;
	JoinStop   *stop;
	std::vector<std::pair<Code, uint32_t>> part;
};

}  // namespace gpuvm

#endif
