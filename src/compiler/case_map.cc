/*
 * case_map.cc: what lower() and upper() make of each character, as PostgreSQL says.
 *
 * The C library's locales know of single characters. ICU makes several of some, and looks at their neighbours: at a word's
 * end for a sigma, and at what stands before and after in some languages, which a line of such texts tells.
 */
#include "pg/pg.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/formatting.h"
#include "utils/memutils.h"
}

#include <algorithm>

#include "compiler/regex.h"
#include "pg/compat.h"

namespace gpuvm {

/* All letters that have a case lie in Unicode's first two planes; the others are ideographs, tags and for private use. */
constexpr uint32 LAST_CHARACTER = 0x1ffff, FIRST_SURROGATE = 0xd800, LAST_SURROGATE = 0xdfff;

struct KeptMap
{
	Oid			collation;
	TextFold	fold;
	CaseMap    *map;			/* NULL: there is none */
	KeptMap    *next;
};

static KeptMap *kept_maps;

/* All characters of the database's encoding that may have a case, each in a line of its own. */
static char *
all_characters(int *len)
{
	const bool	utf8 = GetDatabaseEncoding() == PG_UTF8;
	const uint32 last = utf8 ? LAST_CHARACTER : 255;
	char	   *text = static_cast<char *>(palloc((last + 1) * 5));
	char	   *at = text;

	for (uint32 c = 1; c <= last; c++)
	{
		if (c == '\n')
			continue;
		if (utf8 && c == FIRST_SURROGATE)
			c = LAST_SURROGATE + 1;
		if (utf8)
		{
			unicode_to_utf8(c, reinterpret_cast<unsigned char *>(at));
			at += pg_utf_mblen(reinterpret_cast<unsigned char *>(at));
		}
		else
			*at++ = static_cast<char>(c);
		*at++ = '\n';
	}
	*at = '\0';
	*len = static_cast<int>(at - text);
	return text;
}

static uint32
next_character(const char **at)
{
	const unsigned char *p = reinterpret_cast<const unsigned char *>(*at);

	if (GetDatabaseEncoding() != PG_UTF8)
	{
		++*at;
		return *p;
	}
	*at += pg_utf_mblen(p);
	return utf8_to_unicode(p);
}

/* Is it C's as to ASCII? Turkish's is not. Blanks stay blanks, so lower() of what is trimmed is what lower() gives, trimmed. */
static bool
is_plain(const CaseMap *map, TextFold fold)
{
	int			letters = 0;

	for (int i = 0; i < map->n; i++)
	{
		const uint32 from = map->changes[i].from, *to = map->changes[i].to;
		const uint32 first = fold == TextFold::Lower ? 'A' : 'a';

		for (int k = 0; from >= 128 && k < MAX_CASE_CHARACTERS; k++)
			if (to[k] != 0 && to[k] < 128 && !isalpha(static_cast<int>(to[k])))
				return false;
		if (from >= 128)
			continue;
		if (from < first || from >= first + 26 || to[0] != (from ^ 0x20) || to[1] != 0)
			return false;
		letters++;
	}
	return letters == 26;
}

static char *
change_case(const char *text, int len, Oid collation, TextFold fold)
{
	return fold == TextFold::Lower ? str_tolower(text, len, collation) : str_toupper(text, len, collation);
}

/* The characters up to the line's end, which is passed; false: they are none, or too many. */
static bool
read_line(const char **at, uint32 *to)
{
	int			n = 0;

	for (int i = 0; i < MAX_CASE_CHARACTERS; i++)
		to[i] = 0;
	while (**at != '\0' && **at != '\n' && n < MAX_CASE_CHARACTERS)
		to[n++] = next_character(at);
	return n > 0 && *(*at)++ == '\n';
}

/* All in one call: a line's end has no case, so what a character becomes there depends on no other one. */
static CaseMap *
ask_case_map(Oid collation, TextFold fold)
{
	int			len;
	char	   *all = all_characters(&len);
	char	   *changed = change_case(all, len, collation, fold);
	CaseMap    *map = nullptr;
	int			n = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		const char *from = all;
		const char *to = changed;

		for (n = 0; *from != '\0';)
		{
			CaseChange	change;

			change.from = next_character(&from);
			from++;
			if (!read_line(&to, change.to))
				return nullptr;
			if (change.to[0] == change.from && change.to[1] == 0)
				continue;
			if (pass > 0)
				map->changes[n] = change;
			n++;
		}
		if (*to != '\0')
			return nullptr;
		if (pass == 0)
			map = static_cast<CaseMap *>(MemoryContextAlloc(TopMemoryContext, offsetof(CaseMap, changes) + sizeof(CaseChange) * n));
		map->n = n;
	}
	pfree(all);
	pfree(changed);
	map->final_sigma = false;
	return map;
}

/* Does the text become what its characters become? */
static bool
changes_by_character(const CaseMap *map, const char *text, Oid collation, TextFold fold)
{
	const char *changed = change_case(text, static_cast<int>(strlen(text)), collation, fold);

	while (*text != '\0')
	{
		const uint32 c = next_character(&text);
		const CaseChange same = {c, {c}};
		const CaseChange *end = map->changes + map->n;
		const CaseChange *change = std::lower_bound(map->changes, end, c, [](const CaseChange &a, uint32 b) { return a.from < b; });

		if (change == end || change->from != c)
			change = &same;
		for (int i = 0; i < MAX_CASE_CHARACTERS && change->to[i] != 0; i++)
			if (*changed == '\0' || next_character(&changed) != change->to[i])
				return false;
	}
	return *changed == '\0';
}

/* Unicode's conditions: of dots above i and j in Turkish, Azerbaijani and Lithuanian, of accents in Greek (ICU's own), and of a last sigma. */
static bool
is_known(CaseMap *map, Oid collation, TextFold fold)
{
	if (!is_plain(map, fold))
		return false;
	if (compat_case_by_character(collation))
		return true;
	if (GetDatabaseEncoding() != PG_UTF8 ||
		!changes_by_character(map, "I\u0307 J\u0300 i\u0307 \u03ac\u03c5", collation, fold))
		return false;
	map->final_sigma = !changes_by_character(map, "\u0391\u03a3", collation, fold);
	return true;
}

const CaseMap *
case_map(Oid collation, TextFold fold)
{
	KeptMap    *kept;

	for (kept = kept_maps; kept != nullptr; kept = kept->next)
		if (kept->collation == collation && kept->fold == fold)
			return kept->map;
	CaseMap    *map = ask_case_map(collation, fold);

	if (map != nullptr && !is_known(map, collation, fold))
	{
		pfree(map);
		map = nullptr;
	}
	kept = static_cast<KeptMap *>(MemoryContextAlloc(TopMemoryContext, sizeof(KeptMap)));
	*kept = KeptMap{collation, fold, map, kept_maps};
	kept_maps = kept;
	return map;
}

}  // namespace gpuvm
