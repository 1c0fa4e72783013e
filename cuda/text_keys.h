/*
 * text_keys.h: what a job with TextKey has on the device: the images of all columns that it makes keys of, wherever
 * transfers put them, and the table of the values met.
 *
 * References are arena offsets, on the device as on the CPU: so keys lead to values wherever they come out, and a list of the
 * tablets' images, by their place in the arena, leads kernels to their bytes. Any tablet's values may be compared with any other's, so all
 * images are there before the first launch, and as long as the job.
 */
#ifndef GPUVM_CUDA_TEXT_KEYS_H
#define GPUVM_CUDA_TEXT_KEYS_H

#include <memory>
#include <vector>

#include "transfer.h"

namespace gpuvm {
namespace cuda {

/* A column whose values TextKey makes keys of, or TextCompare compares. */
struct TextKeyColumn
{
	uint32_t	cursor;
	uint16_t	column;
	int32_t		attlen;
	uint32_t	flags;			/* TextPatternFlag bits: what TextCompare leaves out of them */

	bool operator==(const TextKeyColumn &other) const { return cursor == other.cursor && column == other.column; }
};

/* Each once. */
std::vector<TextKeyColumn> text_key_columns(const DeviceJobRequest &request);

/* A program that does nothing but to read these images of the cursor's; nullptr: there are none. */
std::unique_ptr<DeviceProgram> images_program(const std::vector<TextKeyColumn> &columns, uint32_t cursor);

/* The rows of one cursor. */
inline const DeviceCursor &
cursor_of(const DeviceJobRequest &request, uint32_t number)
{
	return number == 0 ? request : request.others[number - 1];
}

/* For tests: what is left of values' hashes. */
extern uint64_t text_hash_mask;

class TextKeyFeed
{
public:
	/* Chooses places as far as it can be done without the lane, which comes next. */
	TextKeyFeed(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, const std::vector<TextKeyColumn> &columns, Lane *lane);

	/* As TableFeed's. */
	bool		copy_some(uint64_t bytes);
	/* What comes next on the lane's stream finds all images where images() says. */
	void		bring();
	std::vector<TextKeyImages> images() const;
	/* Slots for the table: a third stays empty, whatever comes. A power of two. */
	uint64_t	slots() const;
	uint64_t	bytes() const;
	uint64_t	copied_bytes() const;

private:
	struct Source
	{
		uint32_t	cursor;
		std::unique_ptr<DeviceProgram> program;
		Work		work;
		std::unique_ptr<TableFeed> feed;
	};

	std::vector<TextKeyColumn> columns_;
	std::vector<std::unique_ptr<Source>> sources_;
	uint64_t	values_ = 0;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
