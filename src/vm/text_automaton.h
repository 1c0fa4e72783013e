/*
 * text_automaton.h: a pattern as a finite automaton: regular expressions, and what is asked of a value's lower or upper case.
 *
 * A backend makes it of PostgreSQL's own compiled regular expression (compiler/regex.cc). A character has a class, a state and
 * a class lead to the next state, and which states accept at the value's end is known. Two states are final: nothing that follows
 * changes their answer. A byte's class is found at once; only where the characters that begin with a byte have different
 * classes is the character decoded and looked for among ranges. Bytes behind the first of a character change no state, by a class of their own.
 */
#ifndef GPUVM_VM_TEXT_AUTOMATON_H
#define GPUVM_VM_TEXT_AUTOMATON_H

#include "core/types.h"

namespace gpuvm {

constexpr uint32_t AUTOMATON_NEVER = 0;		/* the state from which no value matches, */
constexpr uint32_t AUTOMATON_ALWAYS = 1;	/* and the one from which all do */
constexpr uint32_t AUTOMATON_MAX_STATES = 256;
constexpr uint8_t AUTOMATON_DECODE = 255;	/* no class: the character has to be decoded */
constexpr uint32_t AUTOMATON_MAX_CLASSES = AUTOMATON_DECODE;

/* This header, then ranges, then a byte for each state and class, then one for each state. */
struct TextAutomaton
{
	uint16_t	nstates;
	uint16_t	nclasses;
	uint16_t	nranges;		/* of characters from 128 on, if any byte is AUTOMATON_DECODE: the first character's number * 256 + its class, ascending */
	uint16_t	start;
	uint8_t		classes[256];	/* of bytes */

	GPUVM_HD const uint32_t *ranges() const { return reinterpret_cast<const uint32_t *>(this + 1); }
	GPUVM_HD const uint8_t *next() const { return reinterpret_cast<const uint8_t *>(ranges() + nranges); }
	GPUVM_HD const uint8_t *accepts() const { return next() + nstates * nclasses; }
};
static_assert(sizeof(TextAutomaton) == 264, "sent between processes");

constexpr uint32_t
automaton_size(uint32_t nstates, uint32_t nclasses, uint32_t nranges)
{
	return static_cast<uint32_t>(sizeof(TextAutomaton)) + nranges * 4 + nstates * nclasses + nstates;
}

/* Class of the character whose first byte lies before *at, which moves behind it. */
GPUVM_HD uint32_t
decoded_class(const TextAutomaton *a, const unsigned char *t, uint32_t len, uint32_t *at)
{
	const uint32_t lead = t[*at - 1];
	const uint32_t more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
	uint32_t	c = lead & 0x3f >> more;
	uint32_t	low = 0, high = a->nranges;

	for (uint32_t i = 0; i < more && *at < len; i++, ++*at)
		c = c << 6 | (t[*at] & 0x3f);
	while (high - low > 1)
	{
		const uint32_t middle = (low + high) / 2;

		if (a->ranges()[middle] >> 8 <= c)
			low = middle;
		else
			high = middle;
	}
	return a->ranges()[low] & 0xff;
}

GPUVM_HD bool
automaton_matches(const TextAutomaton *a, const unsigned char *t, uint32_t len)
{
	const uint8_t *next = a->next();
	const uint32_t nclasses = a->nclasses;
	uint32_t	state = a->start, at = 0;

	while (at < len && state > AUTOMATON_ALWAYS)
	{
		uint32_t	c = a->classes[t[at++]];

		if (c == AUTOMATON_DECODE)
			c = decoded_class(a, t, len, &at);
		state = next[state * nclasses + c];
	}
	return a->accepts()[state] != 0;
}

/* Is it one of so many bytes, whose every step stays within it? */
inline bool
is_automaton(const TextAutomaton *a, uint32_t size)
{
	if (size < sizeof(TextAutomaton) || a->nstates < 2 || a->nstates > AUTOMATON_MAX_STATES || a->nclasses == 0 || a->nclasses > AUTOMATON_MAX_CLASSES
		|| a->start >= a->nstates || size != automaton_size(a->nstates, a->nclasses, a->nranges))
		return false;
	for (uint8_t c : a->classes)
		if (c == AUTOMATON_DECODE ? a->nranges == 0 : c >= a->nclasses)
			return false;
	for (uint32_t i = 0; i < a->nranges; i++)
		if ((a->ranges()[i] & 0xff) >= a->nclasses)
			return false;
	for (uint32_t i = 0; i < uint32_t{a->nstates} * a->nclasses; i++)
		if (a->next()[i] >= a->nstates)
			return false;
	return true;
}

}  // namespace gpuvm

#endif
