/*
 * text_match.h: what TextMatch compares variable-length values with.
 *
 * A backend makes a pattern of the constant beside =, <, LIKE or ^@ (text_match.cc), or beside ILIKE or ~ (text_automaton.h), and it comes with the
 * job; gpuvmd copies and checks it. text_matches() is PostgreSQL's MatchText() for valid strings, once for
 * every engine; it reads nothing outside of the value, whatever that holds.
 *
 * A value is an image as a heap tuple would hold it, detoasted (tablet/format.h, Encoding::Variable): a
 * varlena, whose header may be short, or of a fixed length.
 */
#ifndef GPUVM_VM_TEXT_MATCH_H
#define GPUVM_VM_TEXT_MATCH_H

#include <cstring>

#include "tablet/format.h"
#include "vm/program.h"
#include "vm/text_automaton.h"
#include "vm/value_order.h"

namespace gpuvm {

constexpr uint32_t TEXT_PATTERN_MAX = 4096;	/* bytes of a pattern in all, */
constexpr uint32_t TEXT_AUTOMATON_MAX = 65536;	/* but of an automaton */

enum class TextMatchKind : uint8_t
{
	Null = 0,					/* the constant is null, so is every result */
	Equal = 1,					/* the bytes are the value */
	Prefix = 2,					/* the value begins with the bytes */
	Like = 3,
	Automaton = 4,				/* the bytes are a TextAutomaton */
	Order = 5,					/* the value compares with the bytes as TextPattern.outcomes says */
};

enum TextOutcome : uint8_t
{
	TEXT_LESS = 1,
	TEXT_SAME = 2,
	TEXT_GREATER = 4,
};

enum TextPatternFlag : uint8_t
{
	TEXT_UTF8 = 1,				/* Like: _ is a character of UTF-8, or else a byte */
	TEXT_TRIM_BLANKS = 2,		/* blanks at the end do not count (bpchar); Equal: the bytes have none */
	TEXT_TRIM_ZEROES = 4,		/* nor does what is behind a zero (name) */
};

/* Flags' other bits are a ValueOrder. */
constexpr int TEXT_ORDER_SHIFT = 4;

GPUVM_HD constexpr uint8_t
text_order_flags(ValueOrder order)
{
	return static_cast<uint8_t>(static_cast<uint8_t>(order) << TEXT_ORDER_SHIFT);
}

/* Of values that are compared, not of patterns of characters. */
constexpr bool
is_order_flags(uint32_t flags)
{
	return (flags & 15 & ~(TEXT_TRIM_BLANKS | TEXT_TRIM_ZEROES)) == 0 && flags >> TEXT_ORDER_SHIFT <= static_cast<uint32_t>(ValueOrder::Bits);
}

/*
 * LIKE's pattern in pieces: each is literal bytes behind wildcards, `skip` characters that may be anything and,
 * if `any`, any number more. The last piece has no bytes: it is the value's end; all others have.
 */
struct TextPiece
{
	uint16_t	skip;
	uint8_t		any;
	uint8_t		reserved;
	uint16_t	first;			/* into the pattern's bytes */
	uint16_t	len;
};

/* This header, then TextPiece[npieces] (of Like), then the bytes. Position-independent, sent through the arena. */
struct TextPattern
{
	uint32_t	size;			/* bytes in all */
	TextMatchKind kind;
	uint8_t		flags;
	int16_t		attlen;			/* of the values: -1 varlena, or bytes of a fixed length */
	uint16_t	npieces;
	uint16_t	nbytes;
	uint16_t	search;			/* Like: the piece with the longest literal, which a match must have; of "%": the last */
	uint8_t		outcomes;		/* Order: TextOutcome bits */
	uint8_t		collation;		/* Order: the number of the job's text order, from 1 on, that compares; 0: bytes decide */
	uint32_t	min_len;		/* a shorter value does not match */
	uint32_t	reserved;

	GPUVM_HD const TextPiece *pieces() const { return reinterpret_cast<const TextPiece *>(this + 1); }
	GPUVM_HD const unsigned char *bytes() const { return reinterpret_cast<const unsigned char *>(pieces() + npieces); }
	GPUVM_HD const TextAutomaton *automaton() const { return reinterpret_cast<const TextAutomaton *>(this + 1); }
};
static_assert(sizeof(TextPattern) == 24 && sizeof(TextPiece) == 8, "sent between processes");

/*
 * Builders (also linked into backends): `to` has room for TEXT_PATTERN_MAX bytes, or TEXT_AUTOMATON_MAX, and is aligned to 8. False where
 * there is no such pattern: it is too long, or LIKE's ends with its escape character, at which PostgreSQL raises.
 */
bool		text_pattern_equal(TextPattern *to, const char *bytes, size_t len, int attlen, bool trim_blanks);
bool		text_pattern_prefix(TextPattern *to, const char *bytes, size_t len, int attlen);
/* `utf8`: of characters of UTF-8 (text in such a database); false: of bytes (bytea, encodings of single bytes). */
bool		text_pattern_like(TextPattern *to, const char *pattern, size_t len, int attlen, bool utf8);
bool		text_pattern_order(TextPattern *to, const char *bytes, size_t len, int attlen, uint8_t flags, uint8_t outcomes, uint8_t collation);
void		text_pattern_null(TextPattern *to);
/* Whose automaton, of so many bytes, the caller writes behind it. `trim_blanks`: of the values. */
bool		text_pattern_automaton(TextPattern *to, size_t nbytes, int attlen, bool trim_blanks);

/* Nullptr, or what is wrong with a pattern of `size` bytes, its own size included. */
const char *check_text_pattern(const TextPattern *pattern, size_t size);

/* Does a job with so many patterns have all of a verified program? Returns nullptr, or what is wrong. */
const char *verify_patterns(const Program *program, uint32_t npatterns);

/*
 * A column's images in one tablet, checked to lie within it: a value is base plus its image's place among them.
 */
struct TextImages
{
	const unsigned char *bytes;
	uint64_t	nbytes;
};

/* Bytes of a value, or nothing where the image is none that lies in `available` bytes. */
struct TextValue
{
	const unsigned char *bytes;
	uint32_t	len;
};

GPUVM_HD bool
text_value(const unsigned char *image, uint64_t available, int attlen, TextValue *out)
{
	uint32_t	header = 0, total;

	if (attlen >= 0)
		total = static_cast<uint32_t>(attlen);
	else if (available == 0)
		return false;
	else if (image[0] & 1)
	{
		/* a short header; 0 in its other bits is a pointer to elsewhere, which is no image */
		header = 1;
		total = image[0] >> 1;
	}
	else
	{
		if (available < 4 || (image[0] & 2))
			return false;
		header = 4;
		total = (image[0] | uint32_t(image[1]) << 8 | uint32_t(image[2]) << 16 | uint32_t(image[3]) << 24) >> 2;
	}
	if (total < header || total > available)
		return false;
	out->bytes = image + header;
	out->len = total - header;
	return true;
}

/* Of the value that a reference leads to, within `bytes` bytes from `arena`: none is nearer to their end than what may be read behind it. */
GPUVM_HD bool
text_value_at(const unsigned char *arena, uint64_t bytes, uint64_t reference, int attlen, TextValue *out)
{
	return reference != 0 && reference <= VARIABLE_MAX_REFERENCE && reference < bytes && bytes - reference > VARIABLE_SLACK &&
		text_value(arena + reference, bytes - reference - VARIABLE_SLACK, attlen, out) && out->len <= VARIABLE_MAX_IMAGE;
}

/* The n-th next character's begin, up to the end; false where there are fewer. */
GPUVM_HD bool
text_skip(const unsigned char *t, uint32_t len, uint32_t n, bool utf8, uint32_t *at)
{
	uint32_t	p = *at;

	if (!utf8)
	{
		*at = p + n;
		return n <= len - p;
	}
	for (; n > 0; n--)
	{
		if (p >= len)
			return false;
		do
			p++;
		while (p < len && (t[p] & 0xc0) == 0x80);
	}
	*at = p;
	return true;
}

GPUVM_HD bool
text_same(const unsigned char *a, const unsigned char *b, uint32_t len)
{
#ifdef __CUDA_ARCH__
	for (uint32_t i = 0; i < len; i++)
		if (a[i] != b[i])
			return false;
	return true;
#else
	return memcmp(a, b, len) == 0;
#endif
}

GPUVM_HD TextOutcome
text_outcome(int cmp)
{
	return cmp < 0 ? TEXT_LESS : cmp > 0 ? TEXT_GREATER : TEXT_SAME;
}

/* memcmp(), then the length. */
GPUVM_HD int
text_compare(uint8_t flags, const TextValue &a, const TextValue &b)
{
	return value_order(static_cast<ValueOrder>(flags >> TEXT_ORDER_SHIFT), a.bytes, a.len, b.bytes, b.len);
}

/* What of a value counts. */
GPUVM_HD void
text_trim(uint8_t flags, TextValue *value)
{
	uint32_t	len = 0;

	if (flags & TEXT_TRIM_ZEROES)
	{
		while (len < value->len && value->bytes[len] != 0)
			len++;
		value->len = len;
	}
	if (flags & TEXT_TRIM_BLANKS)
		while (value->len > 0 && value->bytes[value->len - 1] == ' ')
			value->len--;
}

/*
 * Moves *at to where the bytes (one at least) are first found from there on; false where nowhere. A window of up to four bytes
 * moves over the text, so that first bytes which are frequent cost no more than others: on a device lanes do not wait for each other's.
 */
struct TextFind
{
	GPUVM_HD bool operator()(const unsigned char *t, uint32_t len, const unsigned char *bytes, uint32_t nbytes, uint32_t *at) const
	{
		const uint32_t n = nbytes < 4 ? nbytes : 4;
		uint32_t	wanted = 0, window = 0, p = *at;

		if (nbytes > len - p)
			return false;
		for (uint32_t i = 0; i < n; i++)
		{
			wanted |= uint32_t(bytes[i]) << (8 * i);
			window |= uint32_t(t[p + i]) << (8 * i);
		}
		for (const uint32_t last = len - nbytes;; p++)
		{
			if (window == wanted && text_same(t + p + n, bytes + n, nbytes - n))
			{
				*at = p;
				return true;
			}
			if (p == last)
				return false;
			window = window >> 8 | uint32_t(t[p + n]) << (8 * (n - 1));
		}
	}
};

/*
 * LIKE. What stands behind a % is looked for from left to right, and the first place will do, as the same
 * characters are left for what follows in any later one; so only a failure within it goes back, to its next place.
 */
template <typename Find>
GPUVM_HD bool
text_like(const TextPattern *pattern, const unsigned char *t, uint32_t len, Find find)
{
	const TextPiece *piece = pattern->pieces();
	const TextPiece *const end = piece + pattern->npieces - 1;
	const TextPiece *again = nullptr;	/* the last one behind a %, */
	uint32_t	next = 0;		/* and where to look for it next */
	const unsigned char *const bytes = pattern->bytes();
	const bool	utf8 = pattern->flags & TEXT_UTF8;
	uint32_t	at = 0;

	for (;; piece++)
	{
		if (!text_skip(t, len, piece->skip, utf8, &at))
			return false;
		if (piece == end && (piece->any || at == len))
			return true;
		if (piece->any)
		{
			again = piece;
			if (!find(t, len, bytes + piece->first, piece->len, &at))
				return false;
		}
		else if (piece == end || piece->len > len - at || !text_same(t + at, bytes + piece->first, piece->len))
		{
			if (again == nullptr)
				return false;
			piece = again;
			at = next;
			if (!find(t, len, bytes + piece->first, piece->len, &at))
				return false;
		}
		if (piece == again)
			next = at + 1;
		at += piece->len;
	}
}

/* Not of kind Null, nor one with a collation. An engine may have a faster Find. */
template <typename Find = TextFind>
GPUVM_HD bool
text_matches(const TextPattern *pattern, const unsigned char *t, uint32_t len, Find find = Find())
{
	TextValue	value = {t, len};

	text_trim(pattern->flags, &value);
	len = value.len;
	switch (pattern->kind)
	{
		case TextMatchKind::Equal: return len == pattern->nbytes && text_same(t, pattern->bytes(), len);
		case TextMatchKind::Prefix: return len >= pattern->nbytes && text_same(t, pattern->bytes(), pattern->nbytes);
		case TextMatchKind::Like: return len >= pattern->min_len && text_like(pattern, t, len, find);
		case TextMatchKind::Order: return text_outcome(text_compare(pattern->flags, value, TextValue{pattern->bytes(), pattern->nbytes})) & pattern->outcomes;
		case TextMatchKind::Automaton: return automaton_matches(pattern->automaton(), t, len);
		default: return false;
	}
}

}  // namespace gpuvm

#endif
