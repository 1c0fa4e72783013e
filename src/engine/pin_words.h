/*
 * pin_words.h: who may do what to a chunk of the arena (abi.h, PinState).
 *
 * While gpuvmd has a chunk pinned, a device knows its pages by their physical
 * addresses: a hole punched into it would leave the device with pages that the
 * arena no longer has. While somebody punches, gpuvmd must not pin. One word a
 * chunk keeps the two apart:
 *
 *   Free, Punching(n)   not pinned; n processes punch holes. Any process may enter
 *                       and leaves again within milliseconds.
 *   Pinned              gpuvmd's; taken while nobody punches
 *   UnpinWanted         still pinned, but no page of it is in use
 *   PunchWanted         not pinned any more; its free pages may still have memory,
 *                       as what was freed meanwhile could not be punched out
 *
 * A page that is freed while its chunk is pinned keeps its memory and serves the
 * next allocation. What is left when the chunk is unpinned is the supervisor's to
 * clean up, unless gpuvmd takes the chunk again first. Pins end with gpuvmd: the
 * supervisor says so of every word before it starts another one. Nobody waits here
 * but gpuvmd, for Punching(n).
 *
 * The number n stands in the bits above the state. A word that is none of these was written by mistake: nobody punches
 * then, until gpuvmd pins the chunk again, or the supervisor, before it starts another one, takes it for PunchWanted.
 */
#ifndef GPUVM_ENGINE_PIN_WORDS_H
#define GPUVM_ENGINE_PIN_WORDS_H

#include "engine/abi.h"

namespace gpuvm {

using PinWord = std::atomic<uint32_t>;

constexpr uint32_t PIN_STATE_MASK = 0xff;
constexpr uint32_t PIN_ONE_PUNCHER = 0x100;

constexpr uint32_t
pin_word(PinState state)
{
	return static_cast<uint32_t>(state);
}

inline PinState
pin_state(const PinWord &word)
{
	return static_cast<PinState>(word.load() & PIN_STATE_MASK);
}

constexpr uint32_t MOST_PUNCHERS = 1 << 18;	/* as many as PostgreSQL can have processes */

constexpr bool
is_pin_word(uint32_t word)
{
	const uint32_t state = word & PIN_STATE_MASK, punchers = word / PIN_ONE_PUNCHER;

	return state == pin_word(PinState::Punching) ? punchers > 0 && punchers <= MOST_PUNCHERS
		: state <= pin_word(PinState::PunchWanted) && punchers == 0;
}

/* Pin chunks of an arena of that size; the last may be a part. */
constexpr uint32_t
pin_chunks(uint64_t arena_size)
{
	return static_cast<uint32_t>((arena_size + pin_chunk_bytes(arena_size) - 1) / pin_chunk_bytes(arena_size));
}

/* ---- gpuvmd ------------------------------------------------------------------ */

enum class PinTake
{
	Taken,						/* it is Pinned now: pin it, or give it up */
	Held,						/* it was pinned already, and is wanted again */
	Busy,						/* somebody punches: try again in a moment */
};

inline PinTake
pin_take(PinWord *word)
{
	for (uint32_t now = word->load();;)
	{
		switch (static_cast<PinState>(now & PIN_STATE_MASK))
		{
			case PinState::Punching:
				return PinTake::Busy;
			case PinState::Pinned:
				return PinTake::Held;
			default:
				break;
		}
		if (word->compare_exchange_weak(now, pin_word(PinState::Pinned)))
			return now == pin_word(PinState::UnpinWanted) ? PinTake::Held : PinTake::Taken;
	}
}

/* After unpinning, or when pinning failed. */
inline void
pin_give_up(PinWord *word)
{
	word->store(pin_word(PinState::PunchWanted));
}

/* ---- PostgreSQL's side ------------------------------------------------------- */

/* True: holes may be punched into the chunk until punch_leave(). False: it is pinned, or waits for the supervisor. */
inline bool
punch_enter(PinWord *word)
{
	for (uint32_t now = word->load();;)
	{
		uint32_t	next;

		if (now == pin_word(PinState::Free))
			next = pin_word(PinState::Punching) + PIN_ONE_PUNCHER;
		else if ((now & PIN_STATE_MASK) == pin_word(PinState::Punching) && is_pin_word(now))
			next = now + PIN_ONE_PUNCHER;
		else
			return false;
		if (word->compare_exchange_weak(now, next))
			return true;
	}
}

inline void
punch_leave(PinWord *word)
{
	for (uint32_t now = word->load();;)
	{
		uint32_t	next = now - PIN_ONE_PUNCHER;

		if ((now & PIN_STATE_MASK) != pin_word(PinState::Punching) || now < PIN_ONE_PUNCHER)
			return;				/* it is not what punch_enter() left */
		if (next == pin_word(PinState::Punching))
			next = pin_word(PinState::Free);
		if (word->compare_exchange_weak(now, next))
			return;
	}
}

/* No page of the chunk is in use: gpuvmd is to unpin it, if it has. */
inline void
unpin_wanted(PinWord *word)
{
	uint32_t	now = pin_word(PinState::Pinned);

	(void) word->compare_exchange_strong(now, pin_word(PinState::UnpinWanted));
}

/* The supervisor: gpuvmd has ended, and with it the pin. */
inline void
pin_ended(PinWord *word)
{
	uint32_t	now = word->load();

	while (now == pin_word(PinState::Pinned) || now == pin_word(PinState::UnpinWanted) || !is_pin_word(now))
	{
		if (word->compare_exchange_weak(now, pin_word(PinState::PunchWanted)))
			return;
	}
}

/* The supervisor: as punch_enter(), for a chunk that waits for it. */
inline bool
punch_enter_wanted(PinWord *word)
{
	uint32_t	now = pin_word(PinState::PunchWanted);

	return word->compare_exchange_strong(now, pin_word(PinState::Punching) + PIN_ONE_PUNCHER);
}

}  // namespace gpuvm

#endif
