/* text_match.cc: making and checking patterns. Linked into backends: no allocation, no exceptions. */
#include "vm/text_match.h"

namespace gpuvm {

static void
begin_pattern(TextPattern *to, TextMatchKind kind, int attlen)
{
	*to = TextPattern{};
	to->size = sizeof(TextPattern);
	to->kind = kind;
	to->attlen = static_cast<int16_t>(attlen);
}

static bool
plain_pattern(TextPattern *to, TextMatchKind kind, const char *bytes, size_t len, int attlen)
{
	if (len > TEXT_PATTERN_MAX - sizeof(TextPattern))
		return false;
	begin_pattern(to, kind, attlen);
	to->nbytes = static_cast<uint16_t>(len);
	to->min_len = to->nbytes;
	to->size += to->nbytes;
	memcpy(to + 1, bytes, len);
	return true;
}

bool
text_pattern_equal(TextPattern *to, const char *bytes, size_t len, int attlen, bool trim_blanks)
{
	while (trim_blanks && len > 0 && bytes[len - 1] == ' ')
		len--;
	if (!plain_pattern(to, TextMatchKind::Equal, bytes, len, attlen))
		return false;
	to->flags = trim_blanks ? TEXT_TRIM_BLANKS : 0;
	return true;
}

bool
text_pattern_prefix(TextPattern *to, const char *bytes, size_t len, int attlen)
{
	return plain_pattern(to, TextMatchKind::Prefix, bytes, len, attlen);
}

/* `bytes` have been trimmed as the flags say. */
bool
text_pattern_order(TextPattern *to, const char *bytes, size_t len, int attlen, uint8_t flags, uint8_t outcomes, uint8_t collation)
{
	if (!plain_pattern(to, TextMatchKind::Order, bytes, len, attlen))
		return false;
	to->min_len = 0;
	to->flags = flags;
	to->outcomes = outcomes;
	to->collation = collation;
	return true;
}

void
text_pattern_null(TextPattern *to)
{
	begin_pattern(to, TextMatchKind::Null, -1);
}

bool
text_pattern_automaton(TextPattern *to, size_t nbytes, int attlen, bool trim_blanks)
{
	if (nbytes > TEXT_AUTOMATON_MAX - sizeof(TextPattern))
		return false;
	begin_pattern(to, TextMatchKind::Automaton, attlen);
	to->flags = trim_blanks ? TEXT_TRIM_BLANKS : 0;
	to->nbytes = static_cast<uint16_t>(nbytes);
	to->size += to->nbytes;
	return true;
}

/*
 * Two passes over the pattern, as pieces come before the bytes: the first (to == nullptr) counts, the second
 * writes. False where the pattern ends with an escape.
 */
static bool
split_like(const char *pattern, size_t len, TextPattern *to, unsigned char *bytes, uint32_t *npieces, uint32_t *nbytes)
{
	TextPiece	piece = {};

	*npieces = *nbytes = 0;
	for (size_t i = 0; i < len; i++)
	{
		char		c = pattern[i];

		if (c == '%' || c == '_')
		{
			if (piece.len > 0)
			{
				if (to)
					const_cast<TextPiece *>(to->pieces())[*npieces] = piece;
				++*npieces;
				piece = TextPiece{0, 0, 0, static_cast<uint16_t>(*nbytes), 0};
			}
			if (c == '%')
				piece.any = 1;
			else
				piece.skip++;
			continue;
		}
		if (c == '\\')
		{
			if (++i == len)
				return false;
			c = pattern[i];
		}
		if (to)
			bytes[*nbytes] = static_cast<unsigned char>(c);
		++*nbytes;
		piece.len++;
	}
	for (int last = piece.len > 0 ? 0 : 1; last < 2; last++)
	{
		if (to)
			const_cast<TextPiece *>(to->pieces())[*npieces] = piece;
		++*npieces;
		piece = TextPiece{0, 0, 0, static_cast<uint16_t>(*nbytes), 0};
	}
	return true;
}

bool
text_pattern_like(TextPattern *to, const char *pattern, size_t len, int attlen, bool utf8)
{
	uint32_t	npieces, nbytes;

	if (len > TEXT_PATTERN_MAX || !split_like(pattern, len, nullptr, nullptr, &npieces, &nbytes))
		return false;

	const size_t size = sizeof(TextPattern) + npieces * sizeof(TextPiece) + nbytes;

	if (size > TEXT_PATTERN_MAX)
		return false;
	begin_pattern(to, TextMatchKind::Like, attlen);
	to->flags = utf8 ? TEXT_UTF8 : 0;
	to->size = static_cast<uint32_t>(size);
	to->npieces = static_cast<uint16_t>(npieces);
	to->nbytes = static_cast<uint16_t>(nbytes);
	split_like(pattern, len, to, const_cast<unsigned char *>(to->bytes()), &npieces, &nbytes);

	const TextPiece *pieces = to->pieces();

	for (uint32_t i = 0; i < npieces; i++)
	{
		to->min_len += pieces[i].skip + pieces[i].len;
		if (pieces[i].len > pieces[to->search].len)
			to->search = static_cast<uint16_t>(i);
	}
	if (npieces > 2 || pieces[0].any || pieces[0].skip > 0 || pieces[npieces - 1].skip > 0)
		return true;

	/* no wildcards but perhaps % at the end: the same bytes behind no pieces */
	char		literal[TEXT_PATTERN_MAX];
	const bool	prefix = pieces[npieces - 1].any;

	memcpy(literal, to->bytes(), nbytes);
	return plain_pattern(to, prefix ? TextMatchKind::Prefix : TextMatchKind::Equal, literal, nbytes, attlen);
}

const char *
check_text_pattern(const TextPattern *p, size_t size)
{
	if (size < sizeof(TextPattern) || p->size != size || size > (p->kind == TextMatchKind::Automaton ? TEXT_AUTOMATON_MAX : TEXT_PATTERN_MAX))
		return "a pattern has the wrong size";
	if (p->kind > TextMatchKind::Order || (p->kind == TextMatchKind::Order ? !is_order_flags(p->flags) : (p->flags & ~(TEXT_UTF8 | TEXT_TRIM_BLANKS | TEXT_TRIM_ZEROES)) != 0) || p->attlen < -1
		|| (p->outcomes & ~(TEXT_LESS | TEXT_SAME | TEXT_GREATER)) || (p->collation != 0 && p->kind != TextMatchKind::Order)
		|| (p->kind == TextMatchKind::Like) != (p->npieces > 0)
		|| size != sizeof(TextPattern) + p->npieces * sizeof(TextPiece) + p->nbytes)
		return "a pattern is malformed";
	for (uint32_t i = 0; i < p->npieces; i++)
	{
		const TextPiece &piece = p->pieces()[i];

		if (piece.any > 1 || uint32_t(piece.first) + piece.len > p->nbytes || (piece.len == 0) != (i + 1 == p->npieces))
			return "a pattern is malformed";
	}
	if (p->npieces > 0 && p->search >= p->npieces)
		return "a pattern is malformed";
	if (p->kind == TextMatchKind::Automaton && !is_automaton(p->automaton(), p->nbytes))
		return "a pattern is malformed";
	return nullptr;
}

}  // namespace gpuvm
