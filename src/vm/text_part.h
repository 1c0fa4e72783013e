/*
 * text_part.h: what TextPart takes of values of variable length: a few characters as an integer, or their length.
 *
 * At most eight bytes are packed: they are the digits of a number to the base 256. No text has a byte of zero, so
 * texts are equal just where their numbers are, and a number says what the text is.
 */
#ifndef GPUVM_VM_TEXT_PART_H
#define GPUVM_VM_TEXT_PART_H

#include "vm/text_match.h"

namespace gpuvm {

enum class TextPartKind : uint8_t
{
	Packed = 0,					/* `count` characters behind the first `skip`, or as many of them as there are */
	Characters = 1,				/* how many there are, */
	Bytes = 2,					/* and how many bytes */
};

constexpr int TEXT_PART_BYTES = 8;	/* a text of more cannot be packed: ERR_CAST_RANGE */
constexpr uint32_t TEXT_PART_MAX_SKIP = 1u << 30;

/* No text is packed so: it would have a byte of zero. */
constexpr int64_t NO_PACKED_TEXT = 256;

/* p4 of TextPart */
struct TextPart
{
	TextPartKind kind;
	uint8_t		flags;			/* TextPatternFlag */
	uint8_t		count;			/* at most TEXT_PART_BYTES */
	uint32_t	skip;
};

GPUVM_HD constexpr int64_t
text_part_operand(const TextPart &part)
{
	return int64_t(part.kind) << 48 | int64_t(part.flags) << 40 | int64_t(part.count) << 32 | part.skip;
}

GPUVM_HD constexpr TextPart
text_part_of(int64_t operand)
{
	return TextPart{static_cast<TextPartKind>(operand >> 48 & 0xff), static_cast<uint8_t>(operand >> 40), static_cast<uint8_t>(operand >> 32),
					static_cast<uint32_t>(operand)};
}

/* Is it one that text_part_operand() makes? */
constexpr bool
is_text_part(int64_t operand)
{
	const TextPart part = text_part_of(operand);

	return text_part_operand(part) == operand && part.kind <= TextPartKind::Bytes && (part.flags & ~(TEXT_UTF8 | TEXT_TRIM_BLANKS)) == 0 &&
		part.count <= TEXT_PART_BYTES && part.skip <= TEXT_PART_MAX_SKIP && (part.kind == TextPartKind::Packed || (part.count == 0 && part.skip == 0));
}

/* Bytes that so many characters may have. */
GPUVM_HD constexpr int
text_part_most(const TextPart &part)
{
	return part.count * (part.flags & TEXT_UTF8 ? 4 : 1);
}

GPUVM_HD int64_t
pack_text(const unsigned char *t, uint32_t len)
{
	uint64_t	packed = 0;

	for (uint32_t i = 0; i < len; i++)
		packed = packed << 8 | t[i];
	return static_cast<int64_t>(packed);
}

/* Back: the text's length, its bytes in `to`. */
inline int
unpack_text(int64_t packed, char *to)
{
	const uint64_t bits = static_cast<uint64_t>(packed);
	int			len = 0;

	for (int shift = 56; shift >= 0; shift -= 8)
		if (bits >> shift != 0)
			to[len++] = static_cast<char>(bits >> shift);
	return len;
}

/* TextPart of the value's bytes, as text_substr(), text_left(), text_length(), bpcharlen() and textoctetlen() have it. */
GPUVM_HD int64_t
text_part(const TextPart &part, const unsigned char *t, uint32_t len, uint32_t *errors)
{
	const bool	utf8 = part.flags & TEXT_UTF8;
	uint32_t	from = 0, to;

	if (part.flags & TEXT_TRIM_BLANKS)
		while (len > 0 && t[len - 1] == ' ')
			len--;
	if (part.kind == TextPartKind::Bytes || (part.kind == TextPartKind::Characters && !utf8))
		return len;
	if (part.kind == TextPartKind::Characters)
	{
		int64_t		n = 0;

		for (uint32_t i = 0; i < len; i++)
			n += (t[i] & 0xc0) != 0x80;
		return n;
	}
	if (!text_skip(t, len, part.skip, utf8, &from))
		return 0;
	to = from;
	for (uint32_t i = 0; i < part.count && to < len; i++)
		if (!text_skip(t, len, 1, utf8, &to))
			to = len;
	if (to - from > TEXT_PART_BYTES)
	{
		*errors |= ERR_CAST_RANGE;
		return 0;
	}
	return pack_text(t + from, to - from);
}

}  // namespace gpuvm

#endif
