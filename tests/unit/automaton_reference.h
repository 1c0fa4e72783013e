/* automaton_reference.h: automata at random, walked character by character as they were made, and as patterns. */
#ifndef GPUVM_TESTS_AUTOMATON_REFERENCE_H
#define GPUVM_TESTS_AUTOMATON_REFERENCE_H

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "vm/text_match.h"

namespace gpuvm {
namespace reference {

struct AutomatonSource
{
	bool		utf8 = true;
	uint32_t	nclasses = 1;
	std::map<uint32_t, uint32_t> classes;	/* of characters from this one on */
	std::vector<std::vector<uint32_t>> next;	/* by state and class */
	std::vector<bool> accepts;
	uint32_t	start = 0;

	uint32_t	class_of(uint32_t character) const { return std::prev(classes.upper_bound(character))->second; }

	bool matches(const std::string &value) const
	{
		uint32_t	state = start;

		for (size_t i = 0; i < value.size();)
		{
			const uint32_t lead = static_cast<unsigned char>(value[i]);
			const size_t n = !utf8 || lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
			uint32_t	c = n == 1 ? lead : lead & (0x7fu >> n);

			for (size_t k = 1; k < n && i + k < value.size(); k++)
				c = c * 64 + (static_cast<unsigned char>(value[i + k]) & 0x3f);
			state = next[state][class_of(c)];
			i += n;
		}
		return accepts[state];
	}

	/* Into TEXT_AUTOMATON_MAX bytes, as compiler/regex.cc does. */
	bool write(TextPattern *to, int attlen, bool trim_blanks) const
	{
		const uint32_t nstates = static_cast<uint32_t>(next.size());
		std::vector<uint32_t> ranges;

		for (auto [from, char_class] : classes)
			if (utf8 && (from >= 128 || std::next(classes.find(from)) == classes.end() || std::next(classes.find(from))->first > 128))
				ranges.push_back(std::max(from, 128u) << 8 | char_class);
		if (!text_pattern_automaton(to, automaton_size(nstates, nclasses + 1, static_cast<uint32_t>(ranges.size())), attlen, trim_blanks))
			return false;

		TextAutomaton *a = const_cast<TextAutomaton *>(to->automaton());

		a->nstates = static_cast<uint16_t>(nstates);
		a->nclasses = static_cast<uint16_t>(nclasses + 1);
		a->nranges = static_cast<uint16_t>(ranges.size());
		a->start = static_cast<uint16_t>(start);
		for (uint32_t b = 0; b < 256; b++)
		{
			const uint32_t more = b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3, first = (b & 0x3f >> more) << 6 * more, last = first + (1u << 6 * more) - 1;

			if (!utf8 || b < 128)
				a->classes[b] = static_cast<uint8_t>(class_of(b));
			else if (b < 0xc2 || b > 0xf4)
				a->classes[b] = static_cast<uint8_t>(nclasses);
			else if (classes.upper_bound(std::max(first, 128u)) == classes.upper_bound(last))
				a->classes[b] = static_cast<uint8_t>(class_of(last));
			else
				a->classes[b] = AUTOMATON_DECODE;
		}
		std::copy(ranges.begin(), ranges.end(), const_cast<uint32_t *>(a->ranges()));

		uint8_t    *at = const_cast<uint8_t *>(a->next());

		for (uint32_t s = 0; s < nstates; s++)
		{
			for (uint32_t c = 0; c < nclasses; c++)
				*at++ = static_cast<uint8_t>(next[s][c]);
			*at++ = static_cast<uint8_t>(s);
		}
		for (uint32_t s = 0; s < nstates; s++)
			*at++ = accepts[s];
		return true;
	}
};

inline AutomatonSource
random_automaton(std::mt19937_64 &rng, bool utf8)
{
	static const uint32_t borders[] = {0x20, 0x5c, 0x61, 0x62, 0x63, 0x64, 0xe4, 0xe5, 0x20ac, 0x20ad, 0x1f418, 0x1f419, 0x80, 0x800, 0xffff};
	AutomatonSource a;
	const uint32_t nstates = 2 + static_cast<uint32_t>(rng() % 6);

	a.utf8 = utf8;
	a.nclasses = 1 + static_cast<uint32_t>(rng() % 5);
	a.classes[0] = 0;
	for (int n = static_cast<int>(rng() % 10); n > 0; n--)
		a.classes[borders[rng() % (sizeof(borders) / sizeof(borders[0]))]] = static_cast<uint32_t>(rng() % a.nclasses);
	a.start = static_cast<uint32_t>(rng() % nstates);
	for (uint32_t s = 0; s < nstates; s++)
	{
		a.next.emplace_back();
		for (uint32_t c = 0; c < a.nclasses; c++)
			a.next[s].push_back(s < 2 ? s : static_cast<uint32_t>(rng() % nstates));
		a.accepts.push_back(s < 2 ? s == AUTOMATON_ALWAYS : rng() % 2 == 0);
	}
	return a;
}

}  // namespace reference
}  // namespace gpuvm

#endif
