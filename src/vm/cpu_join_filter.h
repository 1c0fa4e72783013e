/*
 * cpu_join_filter.h: rows of cursor 0 that have no partner are left out before `first` runs. Private to cpu_join*.cc.
 *
 * Which keys leave out how many rows is not known: the first vectors tell, and others now and then. With them the
 * filters get their order, and those that are not worth it are passed over.
 */
#ifndef GPUVM_VM_CPU_JOIN_FILTER_H
#define GPUVM_VM_CPU_JOIN_FILTER_H

#include <vector>

#include "vm/code_range.h"
#include "vm/cpu_job.h"

namespace gpuvm::cpu_join {

/* The keys of an inner side, as bits, or a range of them. */
struct KeyFilter
{
	size_t		column;			/* of CpuProgram::columns: what is compared with them */
	int64_t		lo;
	uint64_t	n;				/* keys from lo on; 0: none is there */
	const uint32_t *bits;		/* is lo + i there? Bit i % 32 of word i / 32; nullptr: all n are */
	Pages		own;			/* they, unless they are the index's */

	bool		has(uint64_t at) const { return bits == nullptr || (bits[at / 32] >> at % 32 & 1) != 0; }
};

constexpr size_t NOT_USED = SIZE_MAX;

/* Which of CpuProgram::columns is the table's column of that number (-1: none is meant); NOT_USED if the program does not read it. */
size_t		used_column(const CpuProgram &program, int number);

extern uint64_t filter_rows;	/* fewer rows of cursor 0 are not worth it. Tests set it */
constexpr uint64_t MOST_KEY_BITS = uint64_t{1} << 25;	/* 4 MB */

/* A worker's. */
class RowFilter final : public LaneFilter
{
public:
	explicit RowFilter(const std::vector<KeyFilter> &filters);

	/* Of another unit. `anew`: what is chosen for it depends on its rows alone, and so does the order in which its pairs come. */
	void		bind(const std::vector<BoundColumn> &columns, bool anew);
	void		drop(uint32_t row, uint64_t *live) override;

private:
	struct Test
	{
		const BoundColumn *column;
		CodeRange	range;		/* width 1, 2, 4 */
		bool		always;		/* width 0 */
	};

	void		pass(size_t filter, uint32_t row, uint64_t *live) const;
	void		choose();

	const std::vector<KeyFilter> &filters_;
	std::vector<Test> tests_;	/* per filter */
	std::vector<size_t> order_;	/* those that are used */
	uint32_t	vectors_ = 0;	/* since samples were begun */
	uint64_t	seen_ = 0;		/* rows of samples */
	std::vector<uint64_t> passed_;	/* of these, per filter */
};

}  // namespace gpuvm::cpu_join

#endif
