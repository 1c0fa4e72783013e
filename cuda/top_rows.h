/*
 * top_rows.h: the first of many rows, without collecting all of them.
 *
 * The job's program runs over a sample of its pads first. What so many of the sample's rows as are wanted do not
 * exceed by the first keys, no row that is wanted exceeds: a bound. The program that then runs over all pads has one
 * condition more, ahead of Result, and behind everything that may raise an error: rows beyond the bound die in it, so that
 * next to nothing is written, collected and sorted. The pads of the sample lie all over the table: one that is in the order of the key
 * is as good as any.
 */
#ifndef GPUVM_CUDA_TOP_ROWS_H
#define GPUVM_CUDA_TOP_ROWS_H

#include <vector>

#include "vm/sort_key.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

/* For tests: what is worth a sample, and which. */
struct TopSizes
{
	uint64_t	least_rows = 2 << 20;
	uint32_t	share = 16;		/* one pad in so many, */
	uint32_t	most_pads = 256;	/* and not many more than these */
	uint32_t	most_spare = 32768;	/* of a sample's rows that may pass a rough bound, and need not */
};
extern TopSizes top_sizes;

/* Of a key of an order. */
struct TopValue
{
	bool		null = false;	/* where nulls come first */
	Type		type = Type::None;	/* of what is compared: the column's or, with ranks, theirs */
	int64_t		value = 0;		/* as an operation's constant: of floats the bits of a double */
};

/* By the first keys of an order: a row behind it need not be looked at. Empty: that is not known of any. */
using TopBound = std::vector<TopValue>;

/* What no row is behind whose first word (sort_key.h) begins with so many bits of this one. `ranges`: what the keys were packed by. */
TopBound	last_of_words(const SortKeys &keys, const SortRange *ranges, uint64_t word, uint32_t known);

class TopRows
{
public:
	explicit TopRows(const DeviceJobRequest &request) : request_(request) {}

	/* Are so few rows wanted, and are there so many, that a sample pays? */
	bool		pays() const;
	/* Of all of the request's pads. */
	static void list_sample(const Work &all, Work *sample);
	/* The request becomes one whose program has the condition. False: there is no room for it. */
	bool		take(const TopBound &bound);
	const DeviceJobRequest &request() const { return request_; }

private:
	DeviceJobRequest request_;
	std::vector<uint64_t> program_;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
