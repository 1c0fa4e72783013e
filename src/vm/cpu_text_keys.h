/*
 * cpu_text_keys.h: TextKey, which makes integers of values of variable length: equal ones for equal bytes,
 * different ones for different bytes.
 *
 * A job has one table of the values that its TextKey operations have met, each once. What they give is where the first
 * of those with the same bytes lies, which is a reference itself: whoever gets it can read the value. A hash only says
 * where to look: before two values are taken for the same one their bytes are compared, so a bad hash costs time, but
 * never an answer. All threads of a job share the table, without a lock: a slot is taken once and never changes.
 *
 * How many different values come is not known, so the table has levels, each of eight times as many slots as the one before,
 * whose memory is taken when its first value comes. In each but the last a value may have one of a cache line's slots; where
 * others have all of them it belongs in the next level. As slots are never given up, everybody finds a value on the same way.
 */
#ifndef GPUVM_VM_CPU_TEXT_KEYS_H
#define GPUVM_VM_CPU_TEXT_KEYS_H

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "vm/cpu_pages.h"
#include "vm/program.h"
#include "vm/text_order.h"

namespace gpuvm {

class TextKeys
{
public:
	/*
	 * For a verified program whose references are offsets from `arena`, of `bytes` bytes. Each operation meets at most `values`
	 * different values. `hash_mask` is for tests: what it leaves of a hash.
	 */
	TextKeys(const Program *program, const char *arena, uint64_t bytes, uint64_t values, uint64_t hash_mask = ~uint64_t{0});

	/*
	 * keys[i] of every lane i that is listed, of values of this length (TextKey's p3). False where a reference leads to no value,
	 * or there are more values than was said. By any thread. Throws std::bad_alloc.
	 */
	bool		find(int attlen, const int64_t *references, const uint16_t *lanes, uint32_t n, int64_t *keys);

	/* How values are compared, by the numbers that MinText and MaxText have. */
	std::vector<TextOrder> orders;

private:
	/* Each slot is 0, or a reference with bits of the value's hash above it. */
	using Slot = std::atomic<uint64_t>;

	struct Level
	{
		explicit Level(uint64_t nslots) : mask(nslots - 1) {}

		const uint64_t mask;
		std::atomic<Slot *> slots{nullptr};	/* once it has memory */
		Pages		memory;
	};

	/* The values of one kind: varlenas, or those of one fixed length. */
	struct Table
	{
		int			attlen;
		std::deque<Level> levels;
	};

	/* What is looked for. */
	struct Wanted
	{
		uint64_t	reference;
		uint64_t	hash;
		TextValue	value;
	};

	Slot	   *slots_of(Level &level);
	bool		find_few(Table &table, const int64_t *references, const uint16_t *lanes, uint32_t n, int64_t *keys);
	uint64_t	find_in(Slot *slots, uint64_t mask, int attlen, const Wanted &wanted, uint64_t nslots) const;

	const unsigned char *arena_;
	uint64_t	bytes_;
	uint64_t	hash_mask_;
	std::deque<Table> tables_;
	std::mutex	mutex_;			/* whoever gives a level its memory */
};

/* What a program with TextKey needs, or with what names a text order, its patterns included; nullptr for one without. The orders are the caller's to add. */
std::unique_ptr<TextKeys> make_text_keys(const Program *program, const TextPattern *const *patterns, const char *arena, uint64_t bytes, uint64_t values);

}  // namespace gpuvm

#endif
