/*
 * spill.h: a file where a job puts what it finds no memory for. Its bytes are written once, where take() gave room for them.
 * By any thread. What there is no file for, or no room on its disk, is std::bad_alloc, as where there is no memory.
 */
#ifndef GPUVM_VM_SPILL_H
#define GPUVM_VM_SPILL_H

#include <cstddef>
#include <cstdint>

struct iovec;

namespace gpuvm {

class Spill
{
public:
	virtual ~Spill() = default;

	/* Would memory be short for other threads of the job if this one took so much? */
	virtual bool wanted(uint64_t bytes) = 0;

	/* The offset of so many bytes. */
	virtual uint64_t take(uint64_t bytes) = 0;
	/* May change the pieces. */
	virtual void write(uint64_t at, iovec *pieces, size_t npieces) = 0;
	virtual void read(uint64_t at, char *to, size_t bytes) = 0;
};

}  // namespace gpuvm

#endif
