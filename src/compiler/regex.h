/* regex.h: patterns of variable-length values that are automata (vm/text_automaton.h), made of PostgreSQL's own regular expressions. */
#ifndef GPUVM_COMPILER_REGEX_H
#define GPUVM_COMPILER_REGEX_H

#include "pg/pg.h"
#include "vm/text_match.h"

namespace gpuvm {

enum class TextFold : uint8
{
	None = 0,
	Lower = 1,
	Upper = 2,
};

constexpr int MAX_CASE_CHARACTERS = 3;	/* that Unicode makes of one */

/* What lower() or upper() makes of single characters (the first ones that are not 0): of all others it makes themselves. */
struct CaseChange
{
	uint32		from;
	uint32		to[MAX_CASE_CHARACTERS];
};

struct CaseMap
{
	bool		final_sigma;	/* at a word's end lower() makes another letter of a capital sigma */
	int			n;
	CaseChange	changes[FLEXIBLE_ARRAY_MEMBER];	/* ascending */
};

/* Of a collation, kept for the session; NULL: what becomes of a character depends on others in more ways. */
const CaseMap *case_map(Oid collation, TextFold fold);

/* What values are matched with. */
struct RegexSource
{
	const char *regex;			/* an advanced regular expression */
	int			len;
	bool		ignore_case;
	Oid			collation;		/* of its classes and cases */
	TextFold	fold;			/* what is done to the value's characters before, */
	Oid			fold_collation; /* by lower() or upper() under this collation */
	int16		attlen;
	bool		trim_blanks;	/* the values' last blanks do not count */
};

/* The pattern, in TEXT_AUTOMATON_MAX bytes; or why there is none. Raises nothing of the expression's. */
const char *build_regex_pattern(const RegexSource *source, TextPattern *to);

/* The LIKE pattern, in 2 * len + 3 bytes, that matches the same; -1: there is no such pattern. Returns its length. */
int			regex_as_like(const char *regex, int len, char *to);

}  // namespace gpuvm

#endif
