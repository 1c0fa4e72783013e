/* facts.cc: a hash table of facts, of which those of another generation are none. */
#include "compiler/facts.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpuvm {

struct Slot
{
	const void *expr;
	const void *input;
	uint64		value;
	uint32		generation;
	Fact		fact;
};

constexpr uint32 FIRST_SLOTS = 256;

/* More of them are not kept from one query to the next: 640 kB. */
constexpr uint32 MOST_SLOTS_KEPT = 16384;

static Slot *slots;
static uint32 nslots;			/* a power of two */
static uint32 nused;			/* of this generation */
static uint32 generation = 1;
static bool active;

bool
facts_begin()
{
	const bool	outer = active;

	active = true;
	facts_forget();
	return outer;
}

void
facts_end(bool outer)
{
	active = outer;
	facts_forget();
	if (nslots > MOST_SLOTS_KEPT)
	{
		pfree(slots);
		slots = nullptr;
		nslots = 0;
	}
}

void
facts_forget()
{
	nused = 0;
	if (++generation == 0)
	{
		if (slots != nullptr)
			memset(static_cast<void *>(slots), 0, sizeof(Slot) * nslots);
		generation = 1;
	}
}

/* Where it is, or would be. */
static Slot *
slot_of(Fact fact, const void *input, const void *expr)
{
	const uint64 key = reinterpret_cast<uintptr_t>(expr) / 8 * 31 + reinterpret_cast<uintptr_t>(input) / 8 +
		static_cast<uint64>(fact) * 7919;
	uint32		i = static_cast<uint32>(key * UINT64CONST(0x9E3779B97F4A7C15) >> 32) & (nslots - 1);

	while (slots[i].generation == generation &&
		   (slots[i].expr != expr || slots[i].input != input || slots[i].fact != fact))
		i = (i + 1) & (nslots - 1);
	return &slots[i];
}

bool
fact_known(Fact fact, const void *input, const void *expr, uint64 *value)
{
	const Slot *slot;

	if (!active || nused == 0)
		return false;
	slot = slot_of(fact, input, expr);
	*value = slot->value;
	return slot->generation == generation;
}

static void
grow()
{
	const Slot *old = slots;
	const uint32 n = nslots;

	nslots = Max(2 * n, FIRST_SLOTS);
	slots = static_cast<Slot *>(MemoryContextAllocExtended(TopMemoryContext, sizeof(Slot) * nslots,
														   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	for (uint32 i = 0; i < n; i++)
	{
		if (old[i].generation == generation)
			*slot_of(old[i].fact, old[i].input, old[i].expr) = old[i];
	}
	if (old != nullptr)
		pfree(const_cast<Slot *>(old));
}

void
fact_note(Fact fact, const void *input, const void *expr, uint64 value)
{
	Slot	   *slot;

	if (!active)
		return;
	if (2 * nused >= nslots)
		grow();
	slot = slot_of(fact, input, expr);
	if (slot->generation != generation)
		nused++;
	*slot = Slot{expr, input, value, generation, fact};
}

}  // namespace gpuvm
