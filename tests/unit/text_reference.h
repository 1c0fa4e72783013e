/*
 * text_reference.h: LIKE as PostgreSQL does it (MatchText() of like_match.c, transcribed), patterns for TextMatch
 * together with what they were made of, images of values, and texts that patterns find something in.
 */
#ifndef GPUVM_TESTS_TEXT_REFERENCE_H
#define GPUVM_TESTS_TEXT_REFERENCE_H

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "automaton_reference.h"
#include "vm/text_part.h"

namespace gpuvm {
namespace reference {

enum class Liked { True, False, Abort, Error };

/* Position and length move on by one character. */
inline void
next_char(const char *&p, int &len, bool utf8)
{
	do
	{
		p++;
		len--;
	} while (utf8 && len > 0 && (*p & 0xC0) == 0x80);
}

inline Liked
match_text(const char *t, int tlen, const char *p, int plen, bool utf8)
{
	if (plen == 1 && *p == '%')
		return Liked::True;
	while (tlen > 0 && plen > 0)
	{
		if (*p == '\\')
		{
			p++;
			plen--;
			if (plen <= 0)
				return Liked::Error;
			if (*p != *t)
				return Liked::False;
		}
		else if (*p == '%')
		{
			char		firstpat;

			p++;
			plen--;
			while (plen > 0)
			{
				if (*p == '%')
				{
					p++;
					plen--;
				}
				else if (*p == '_')
				{
					if (tlen <= 0)
						return Liked::Abort;
					next_char(t, tlen, utf8);
					p++;
					plen--;
				}
				else
					break;
			}
			if (plen <= 0)
				return Liked::True;
			if (*p == '\\')
			{
				if (plen < 2)
					return Liked::Error;
				firstpat = p[1];
			}
			else
				firstpat = *p;
			while (tlen > 0)
			{
				if (*t == firstpat)
				{
					const Liked matched = match_text(t, tlen, p, plen, utf8);

					if (matched != Liked::False)
						return matched;
				}
				next_char(t, tlen, utf8);
			}
			return Liked::Abort;
		}
		else if (*p == '_')
		{
			next_char(t, tlen, utf8);
			p++;
			plen--;
			continue;
		}
		else if (*p != *t)
			return Liked::False;
		t++;
		tlen--;
		p++;
		plen--;
	}
	if (tlen > 0)
		return Liked::False;
	while (plen > 0 && *p == '%')
	{
		p++;
		plen--;
	}
	return plen <= 0 ? Liked::True : Liked::Abort;
}

/* What TextPart is to give. */
inline int64_t
part_of_text(int64_t operand, std::string value, uint32_t *errors)
{
	const TextPart part = text_part_of(operand);
	std::vector<std::string> characters;
	std::string wanted;
	int64_t		packed = 0;

	if (part.flags & TEXT_TRIM_BLANKS)
		value.erase(value.find_last_not_of(' ') + 1);
	for (char c : value)
		if ((part.flags & TEXT_UTF8) && (c & 0xc0) == 0x80 && !characters.empty())
			characters.back() += c;
		else
			characters.emplace_back(1, c);
	if (part.kind != TextPartKind::Packed)
		return static_cast<int64_t>(part.kind == TextPartKind::Bytes ? value.size() : characters.size());
	for (size_t i = part.skip; i < characters.size() && i < part.skip + size_t{part.count}; i++)
		wanted += characters[i];
	if (wanted.size() > 8)
	{
		*errors |= ERR_CAST_RANGE;
		return 0;
	}
	for (char c : wanted)
		packed = static_cast<int64_t>(static_cast<uint64_t>(packed) * 256 + static_cast<unsigned char>(c));
	return packed;
}

/* Of at most so many characters. */
inline int64_t
random_part(std::mt19937_64 &rng, int most)
{
	TextPart	part = {static_cast<TextPartKind>(rng() % 4 < 2 ? 0 : 1 + rng() % 2), static_cast<uint8_t>(rng() % 4), 0, 0};

	if (part.kind == TextPartKind::Packed)
	{
		part.count = static_cast<uint8_t>(rng() % static_cast<uint64_t>(most + 1));
		part.skip = static_cast<uint32_t>(rng() % 3);
	}
	return text_part_operand(part);
}

/* What TextMatch is to find, by the pattern's source. */
struct PatternSource
{
	TextMatchKind kind;
	std::string text;
	bool		utf8 = true;
	bool		trim_blanks = false;
	int			attlen = -1;
	AutomatonSource automaton = {};
	uint8_t		outcomes = 0;	/* of Order */
	ValueOrder	order = ValueOrder::Bytes;

	bool matches(std::string value) const
	{
		if (trim_blanks)
			value.erase(value.find_last_not_of(' ') + 1);
		switch (kind)
		{
			case TextMatchKind::Equal:
				return value == (trim_blanks ? text.substr(0, text.find_last_not_of(' ') + 1) : text);
			case TextMatchKind::Prefix:
				return value.compare(0, text.size(), text) == 0;
			case TextMatchKind::Automaton:
				return automaton.matches(value);
			case TextMatchKind::Order:
				return text_outcome(order == ValueOrder::Bytes ? value.compare(text)
									: value_order(order, reinterpret_cast<const unsigned char *>(value.data()), static_cast<uint32_t>(value.size()),
												  reinterpret_cast<const unsigned char *>(text.data()), static_cast<uint32_t>(text.size()))) & outcomes;
			default:
				return match_text(value.data(), static_cast<int>(value.size()), text.data(), static_cast<int>(text.size()), utf8) == Liked::True;
		}
	}
};

/* Patterns in memory of exactly their size, so that a sanitizer sees the end. */
struct PatternSet
{
	std::vector<PatternSource> sources;
	std::vector<const TextPattern *> patterns;

	/* The pattern's number; -1: there is no such pattern. */
	int			add(const PatternSource &source)
	{
		uint64_t	buffer[TEXT_AUTOMATON_MAX / 8];
		TextPattern *to = reinterpret_cast<TextPattern *>(buffer);
		bool		made = true;

		switch (source.kind)
		{
			case TextMatchKind::Null: text_pattern_null(to); break;
			case TextMatchKind::Equal:
				made = text_pattern_equal(to, source.text.data(), source.text.size(), source.attlen, source.trim_blanks);
				break;
			case TextMatchKind::Prefix: made = text_pattern_prefix(to, source.text.data(), source.text.size(), source.attlen); break;
			case TextMatchKind::Like:
				made = text_pattern_like(to, source.text.data(), source.text.size(), source.attlen, source.utf8);
				break;
			case TextMatchKind::Order:
				made = text_pattern_order(to, source.text.data(), source.text.size(), source.attlen,
										  static_cast<uint8_t>(text_order_flags(source.order) | (source.trim_blanks ? TEXT_TRIM_BLANKS : 0)), source.outcomes, 0);
				break;
			case TextMatchKind::Automaton: made = source.automaton.write(to, source.attlen, source.trim_blanks); break;
		}
		if (!made)
			return -1;

		char	   *copy = static_cast<char *>(malloc(to->size));

		memcpy(copy, to, to->size);
		memory.emplace_back(copy, free);
		patterns.push_back(reinterpret_cast<const TextPattern *>(copy));
		sources.push_back(source);
		return static_cast<int>(sources.size()) - 1;
	}

private:
	std::vector<std::unique_ptr<char, void (*)(void *)>> memory;
};

/* Of few characters, so that much matches; some have several bytes. */
inline std::string
random_text(std::mt19937_64 &rng, int most)
{
	static const char *const pieces[] = {"a", "b", "c", "%", "_", "\\", " ", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\x98", "ab", "special"};
	std::string text;

	for (int n = static_cast<int>(rng() % static_cast<uint64_t>(most + 1)); n > 0; n--)
		text += pieces[rng() % 3 == 0 ? rng() % 12 : rng() % 3];
	return text;
}

inline std::string
random_like(std::mt19937_64 &rng)
{
	std::string pattern;

	for (int n = static_cast<int>(rng() % 6); n > 0; n--)
		switch (rng() % 5)
		{
			case 0: pattern += "%"; break;
			case 1: pattern += "_"; break;
			case 2: pattern += "\\" + random_text(rng, 1); break;
			default: pattern += random_text(rng, 2); break;
		}
	return pattern;
}

inline PatternSet
random_patterns(std::mt19937_64 &rng)
{
	PatternSet	set;

	while (set.sources.size() < 8)
	{
		PatternSource source = {static_cast<TextMatchKind>(rng() % 12 == 0 ? 0 : rng() % 4 == 0 ? 1 + rng() % 2 : 3 + rng() % 3), ""};

		source.automaton = random_automaton(rng, true);
		source.text = source.kind == TextMatchKind::Like ? random_like(rng) : random_text(rng, 3);
		source.trim_blanks = (source.kind == TextMatchKind::Equal || source.kind == TextMatchKind::Automaton || source.kind == TextMatchKind::Order) && rng() % 2;
		source.outcomes = static_cast<uint8_t>(source.kind == TextMatchKind::Order ? 1 + rng() % 7 : 0);
		if (source.kind == TextMatchKind::Order && !source.trim_blanks && rng() % 2)
		{
			source.order = static_cast<ValueOrder>(1 + rng() % 4);
			source.text = random_text(rng, 20);
		}
		set.add(source);
	}
	return set;
}

/* Appends the value's image as tablets have it; returns where. */
inline uint64_t
append_image(std::string *images, const std::string &value, int attlen)
{
	const bool	brief = attlen < 0 && value.size() + 1 <= 0x7f;

	while (!brief && images->size() % 4 != 0)
		images->push_back('\0');

	const uint64_t at = images->size();
	const uint32_t header = static_cast<uint32_t>(value.size() + 4) << 2;

	if (brief)
		images->push_back(static_cast<char>((value.size() + 1) << 1 | 1));
	else if (attlen < 0)
		images->append(reinterpret_cast<const char *>(&header), 4);
	*images += value;
	return at;
}

}  // namespace reference
}  // namespace gpuvm

#endif
