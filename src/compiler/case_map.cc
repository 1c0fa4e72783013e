/* case_map.cc: what lower() and upper() make of each character, as PostgreSQL says. */
#include "pg/pg.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/formatting.h"
#include "utils/memutils.h"
}

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

/* All characters of the database's encoding that may have a case, one after the other. */
static char *
all_characters(int *len)
{
	char	   *text;
	char	   *at;

	if (GetDatabaseEncoding() != PG_UTF8)
	{
		text = static_cast<char *>(palloc(256));
		for (int c = 1; c < 256; c++)
			text[c - 1] = static_cast<char>(c);
		text[255] = '\0';
		*len = 255;
		return text;
	}
	text = at = static_cast<char *>(palloc(LAST_CHARACTER * 4 + 1));
	for (uint32 c = 1; c <= LAST_CHARACTER; c++)
	{
		if (c == FIRST_SURROGATE)
			c = LAST_SURROGATE + 1;
		unicode_to_utf8(c, reinterpret_cast<unsigned char *>(at));
		at += pg_utf_mblen(reinterpret_cast<unsigned char *>(at));
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
		const CasePair &pair = map->pairs[i];
		const uint32 first = fold == TextFold::Lower ? 'A' : 'a';

		if (pair.from >= 128 && pair.to < 128 && !isalpha(static_cast<int>(pair.to)))
			return false;
		if (pair.from >= 128)
			continue;
		if (pair.from < first || pair.from >= first + 26 || pair.to != (pair.from ^ 0x20))
			return false;
		letters++;
	}
	return letters == 26;
}

/* All in one call, for what a character becomes does not depend on its neighbours. */
static CaseMap *
ask_case_map(Oid collation, TextFold fold)
{
	int			len;
	char	   *all = all_characters(&len);
	char	   *changed = fold == TextFold::Lower ? str_tolower(all, len, collation) : str_toupper(all, len, collation);
	int			n = 0;
	CaseMap    *map = nullptr;

	for (int pass = 0; pass < 2; pass++)
	{
		const char *from = all;
		const char *to = changed;

		for (n = 0; *from != '\0' && *to != '\0';)
		{
			const CasePair pair = {next_character(&from), next_character(&to)};

			if (pair.from == pair.to)
				continue;
			if (pass > 0)
				map->pairs[n] = pair;
			n++;
		}
		if (*from != '\0' || *to != '\0')
			return nullptr;
		if (pass == 0)
			map = static_cast<CaseMap *>(MemoryContextAlloc(TopMemoryContext, offsetof(CaseMap, pairs) + sizeof(CasePair) * n));
		map->n = n;
	}
	pfree(all);
	pfree(changed);
	return is_plain(map, fold) ? map : nullptr;
}

const CaseMap *
case_map(Oid collation, TextFold fold)
{
	KeptMap    *kept;

	for (kept = kept_maps; kept != nullptr; kept = kept->next)
		if (kept->collation == collation && kept->fold == fold)
			return kept->map;
	CaseMap    *map = compat_case_by_character(collation) ? ask_case_map(collation, fold) : nullptr;

	kept = static_cast<KeptMap *>(MemoryContextAlloc(TopMemoryContext, sizeof(KeptMap)));
	*kept = KeptMap{collation, fold, map, kept_maps};
	kept_maps = kept;
	return map;
}

}  // namespace gpuvm
