/*
 * regex.cc: PostgreSQL's regular expressions as automata over characters.
 *
 * PostgreSQL compiles an expression to an automaton of its own, whose states may be several at a time, over colors: characters
 * that the expression tells not apart have one color. With nothing to hand out its matcher asks that automaton alone, so what it does (shortest() in
 * rege_dfa.c) is done here with all sets of states that can occur, once, instead of with each value. What it adds to its states, back-references
 * and lookaround, stays with PostgreSQL.
 */
#include "pg/pg.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "regex/regex.h"
#include "regex/regguts.h"
}

#include "compiler/regex.h"

namespace gpuvm {

constexpr uint32 LAST_CHARACTER = 0x10ffff;
constexpr int MAX_NFA_STATES = 2048;
constexpr int SET_WORDS = MAX_NFA_STATES / 64;
constexpr int MAX_CLASS_RANGES = 8192;
constexpr int NO_CLASS = -1;
constexpr uint32 FINAL_SIGMA = 0x3c2, SIGMA = 0x3c3;
/* Of PostgreSQL's arcs followed, which nothing interrupts: tens of milliseconds. Common patterns take some thousands. */
constexpr uint64 MAX_STEPS = 10000000;

static const char *const too_large = "the pattern needs too many states";

/* What a class stands for: the color of a character, or those of the several that lower() or upper() makes of one. */
struct ClassColors
{
	int			n;
	color		of[MAX_CASE_CHARACTERS];
};

struct Automaton
{
	const struct cnfa *nfa;
	struct colormap *colors;
	const CaseMap *fold;
	int			nclasses;
	int			ncolors;
	int		   *class_of_color;	/* or NO_CLASS */
	ClassColors colors_of_class[AUTOMATON_MAX_CLASSES];
	uint8		bytes[256];
	int			nranges;
	uint32		ranges[MAX_CLASS_RANGES];
	int			nstates;
	uint64		steps;
	uint64		sets[AUTOMATON_MAX_STATES][SET_WORDS];	/* of PostgreSQL's states */
	uint8		next[AUTOMATON_MAX_STATES][AUTOMATON_MAX_CLASSES];
	uint8		accepts[AUTOMATON_MAX_STATES];
	uint8		final[AUTOMATON_MAX_STATES];	/* only such as give the same answer are met from it on */
};

/* -- characters ------------------------------------------------------------------------------ */

/* -1: there are too many. */
static int
add_class(Automaton *a, const ClassColors &colors)
{
	/* the last one is that of bytes that change nothing */
	if (a->nclasses == static_cast<int>(AUTOMATON_MAX_CLASSES) - 1)
		return -1;
	a->colors_of_class[a->nclasses] = colors;
	return a->nclasses++;
}

static int
class_of(Automaton *a, uint32 character)
{
	const color co = GETCOLOR(a->colors, character);

	if (a->class_of_color[co] == NO_CLASS)
	{
		const int	added = add_class(a, ClassColors{1, {co}});

		if (added < 0)
			return -1;
		a->class_of_color[co] = added;
	}
	return a->class_of_color[co];
}

/* Of what becomes of a character. */
static int
class_of_change(Automaton *a, const CaseChange &change)
{
	ClassColors colors = {};

	if (change.to[1] == 0)
		return class_of(a, change.to[0]);
	while (colors.n < MAX_CASE_CHARACTERS && change.to[colors.n] != 0)
	{
		colors.of[colors.n] = GETCOLOR(a->colors, change.to[colors.n]);
		colors.n++;
	}
	for (int i = 0; i < a->nclasses; i++)
		if (a->colors_of_class[i].n == colors.n && memcmp(a->colors_of_class[i].of, colors.of, sizeof(colors.of)) == 0)
			return i;
	return add_class(a, colors);
}

/* Ascending; a second one of the same character counts. */
static bool
add_range(Automaton *a, uint32 character, int char_class)
{
	if (char_class < 0)
		return false;
	if (a->nranges > 0 && a->ranges[a->nranges - 1] >> 8 == character)
		a->nranges--;
	if (a->nranges > 0 && (a->ranges[a->nranges - 1] & 0xff) == static_cast<uint32>(char_class))
		return true;
	if (a->nranges == MAX_CLASS_RANGES)
		return false;
	a->ranges[a->nranges++] = character << 8 | char_class;
	return true;
}

/* The next character whose color may be another one. Where classes have columns of their own, that may be each. */
static uint32
next_boundary(const struct colormap *colors, uint32 character)
{
	uint32		next = LAST_CHARACTER + 1;

	if (character <= MAX_SIMPLE_CHR || colors->hiarraycols > 1)
		return character + 1;
	for (int i = 0; i < colors->numcmranges; i++)
	{
		const colormaprange &range = colors->cmranges[i];

		if (range.cmin > character)
			return Min(next, range.cmin);
		if (range.cmax >= character)
			return range.cmax + 1;
	}
	return next;
}

/* Of characters that other bytes begin than ASCII's, and these bytes' classes. */
static bool
classify_utf8(Automaton *a)
{
	int			at = 0;
	int			nchanges = a->fold != nullptr ? a->fold->n : 0;

	for (uint32 c = 128; c <= LAST_CHARACTER;)
	{
		uint32		next = next_boundary(a->colors, c);

		if (!add_range(a, c, class_of(a, c)))
			return false;
		for (; at < nchanges && a->fold->changes[at].from < next; at++)
		{
			const CaseChange &changed = a->fold->changes[at];

			if (changed.from >= 128 && (!add_range(a, changed.from, class_of_change(a, changed)) || !add_range(a, changed.from + 1, class_of(a, c))))
				return false;
		}
		c = next;
	}
	return true;
}

static void
classify_lead_bytes(Automaton *a)
{
	int			at = 0;
	bool		decodes = false;

	for (int lead = 0x80; lead < 0x100; lead++)
	{
		const int	more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
		const uint32 first = Max(static_cast<uint32>(lead & 0x3f >> more) << 6 * more, 128);
		const uint32 last = (static_cast<uint32>(lead & 0x3f >> more) + 1) << 6 * more;

		if (lead < 0xc2 || lead > 0xf4)
		{
			a->bytes[lead] = static_cast<uint8>(a->nclasses);
			continue;
		}
		while (at + 1 < a->nranges && a->ranges[at + 1] >> 8 <= first)
			at++;
		a->bytes[lead] = static_cast<uint8>(a->ranges[at] & 0xff);
		if (at + 1 < a->nranges && a->ranges[at + 1] >> 8 < last)
		{
			a->bytes[lead] = AUTOMATON_DECODE;
			decodes = true;
		}
	}
	if (!decodes)
		a->nranges = 0;
}

static bool
classify(Automaton *a)
{
	const bool	utf8 = GetDatabaseEncoding() == PG_UTF8;
	int			at = 0;

	for (uint32 c = 0; c < (utf8 ? 128 : 256); c++)
	{
		while (a->fold != nullptr && at < a->fold->n && a->fold->changes[at].from < c)
			at++;
		const bool	changes = a->fold != nullptr && at < a->fold->n && a->fold->changes[at].from == c;
		const int	char_class = changes ? class_of_change(a, a->fold->changes[at]) : class_of(a, c);

		if (char_class < 0)
			return false;
		a->bytes[c] = static_cast<uint8>(char_class);
	}
	if (!utf8)
		return true;
	if (!classify_utf8(a))
		return false;
	classify_lead_bytes(a);
	return true;
}

/* -- states ---------------------------------------------------------------------------------- */

/* Where a color leads; `character`: it is that of characters, not of the value's begin or end. */
static void
step(Automaton *a, const uint64 *from, color co, bool character, uint64 *to)
{
	memset(to, 0, sizeof(uint64) * SET_WORDS);
	for (int w = 0; w < SET_WORDS; w++)
		for (uint64 left = from[w]; left != 0; left &= left - 1)
			for (const struct carc *arc = a->nfa->states[w * 64 + __builtin_ctzll(left)]; arc->co != COLORLESS; arc++, a->steps++)
				if (arc->co == co || (arc->co == RAINBOW && character))
					to[arc->to / 64] |= UINT64CONST(1) << arc->to % 64;
}

static bool
has_post(const Automaton *a, const uint64 *set)
{
	return set[a->nfa->post / 64] >> a->nfa->post % 64 & 1;
}

/* The set's number; -1: there are too many. */
static int
state_of(Automaton *a, const uint64 *set)
{
	uint64		any = 0;

	if (has_post(a, set))
		return AUTOMATON_ALWAYS;
	for (int w = 0; w < SET_WORDS; w++)
		any |= set[w];
	if (any == 0)
		return AUTOMATON_NEVER;
	for (int s = AUTOMATON_ALWAYS + 1; s < a->nstates; s++)
		if (memcmp(a->sets[s], set, sizeof(a->sets[s])) == 0)
			return s;
	if (a->nstates == static_cast<int>(AUTOMATON_MAX_STATES))
		return -1;
	memcpy(a->sets[a->nstates], set, sizeof(a->sets[a->nstates]));
	return a->nstates++;
}

/* Where a class leads: through its characters, one after the other; -1: there are too many states. */
static int
next_state(Automaton *a, const uint64 *from, const ClassColors &colors)
{
	uint64		to[SET_WORDS];
	uint64		between[SET_WORDS];

	step(a, from, colors.of[0], true, to);
	for (int i = 1; i < colors.n; i++)
	{
		/* PostgreSQL's matcher goes no further */
		if (has_post(a, to))
			break;
		memcpy(between, to, sizeof(to));
		step(a, between, colors.of[i], true, to);
	}
	return state_of(a, to);
}

static bool
find_states(Automaton *a, int *start)
{
	uint64		set[SET_WORDS] = {0};
	uint64		to[SET_WORDS];

	a->nstates = AUTOMATON_ALWAYS + 1;
	set[a->nfa->pre / 64] |= UINT64CONST(1) << a->nfa->pre % 64;
	step(a, set, a->nfa->bos[1], false, to);
	*start = state_of(a, to);
	for (int s = 0; s < a->nstates; s++)
	{
		const bool	final = s <= static_cast<int>(AUTOMATON_ALWAYS);

		a->accepts[s] = s == AUTOMATON_ALWAYS;
		for (int c = 0; c < a->nclasses; c++)
		{
			int			next = s;

			if (!final)
				next = next_state(a, a->sets[s], a->colors_of_class[c]);
			if (next < 0 || a->steps > MAX_STEPS)
				return false;
			a->next[s][c] = static_cast<uint8>(next);
		}
		if (!final)
		{
			step(a, a->sets[s], a->nfa->eos[1], false, to);
			a->accepts[s] = has_post(a, to);
		}
	}
	return true;
}

/* States that lead only to such as give the same answer as they do themselves are final, so that no more characters are read. */
static void
find_final_states(Automaton *a)
{
	bool		changed = true;

	for (int s = 0; s < a->nstates; s++)
		a->final[s] = true;
	while (changed)
	{
		changed = false;
		for (int s = 0; s < a->nstates; s++)
			for (int c = 0; a->final[s] && c < a->nclasses; c++)
				if (!a->final[a->next[s][c]] || a->accepts[a->next[s][c]] != a->accepts[s])
				{
					a->final[s] = false;
					changed = true;
				}
	}
}

static int
last_of(const Automaton *a, int state)
{
	return a->final[state] ? a->accepts[state] : state;
}

/* -- the pattern ----------------------------------------------------------------------------- */

static const char *
write_pattern(const Automaton *a, int start, const RegexSource *source, TextPattern *to)
{
	const int	nclasses = a->nclasses + 1;
	TextAutomaton *automaton;
	uint8	   *next;

	if (!text_pattern_automaton(to, automaton_size(a->nstates, nclasses, a->nranges), source->attlen, source->trim_blanks))
		return too_large;
	automaton = const_cast<TextAutomaton *>(to->automaton());
	automaton->nstates = static_cast<uint16>(a->nstates);
	automaton->nclasses = static_cast<uint16>(nclasses);
	automaton->nranges = static_cast<uint16>(a->nranges);
	automaton->start = static_cast<uint16>(last_of(a, start));
	memcpy(automaton->classes, a->bytes, sizeof(a->bytes));
	memcpy(automaton + 1, a->ranges, sizeof(uint32) * a->nranges);
	next = const_cast<uint8 *>(automaton->next());
	for (int s = 0; s < a->nstates; s++)
	{
		for (int c = 0; c < a->nclasses; c++)
			*next++ = static_cast<uint8>(last_of(a, a->next[s][c]));
		*next++ = static_cast<uint8>(s);
	}
	memcpy(next, a->accepts, a->nstates);
	return nullptr;
}

/* Nothing in here raises: the expression's memory may be malloc()'s. */
static const char *
automaton_of(regex_t *regex, const RegexSource *source, Automaton *a, int *class_of_color, TextPattern *to)
{
	struct guts *guts = reinterpret_cast<struct guts *>(regex->re_guts);
	int			start;

	if ((regex->re_info & REG_UBACKREF) != 0 || (guts->search.flags & HASLACONS) != 0)
		return "the regular expression has back-references or lookaround";
	if (guts->search.nstates > MAX_NFA_STATES)
		return too_large;
	a->nfa = &guts->search;
	a->colors = &guts->cmap;
	if (a->fold != nullptr && a->fold->final_sigma && GETCOLOR(a->colors, SIGMA) != GETCOLOR(a->colors, FINAL_SIGMA))
		return "the pattern has a sigma, and which one lower() makes of a letter depends on its place in a word";
	a->class_of_color = class_of_color;
	if (!classify(a) || !find_states(a, &start))
		return too_large;
	find_final_states(a);
	return write_pattern(a, start, source, to);
}

const char *
build_regex_pattern(const RegexSource *source, TextPattern *to)
{
	/* as PostgreSQL's, which need not know of parts: it may take a tenth of the time */
	const int	flags = REG_ADVANCED | REG_NOSUB | (source->ignore_case ? REG_ICASE : 0);
	Automaton  *a = static_cast<Automaton *>(palloc(sizeof(Automaton)));
	pg_wchar   *characters = static_cast<pg_wchar *>(palloc(sizeof(pg_wchar) * (source->len + 1)));
	const int	n = pg_mb2wchar_with_len(source->regex, characters, source->len);
	int		   *class_of_color;
	const char *failure;
	regex_t		regex;

	memset(a, 0, offsetof(Automaton, sets));
	if (source->fold != TextFold::None)
	{
		a->fold = case_map(source->fold_collation, source->fold);
		if (a->fold == nullptr)
			return "what lower() and upper() make of a character depends on others under this collation";
	}
	/* all colors that it may have */
	class_of_color = static_cast<int *>(palloc(sizeof(int) * (MAX_COLOR + 1)));
	for (int i = 0; i <= MAX_COLOR; i++)
		class_of_color[i] = NO_CLASS;
	if (pg_regcomp(&regex, characters, n, flags, source->collation) != REG_OKAY)
		return "the regular expression is invalid";
	failure = automaton_of(&regex, source, a, class_of_color, to);
	pg_regfree(&regex);
	pfree(class_of_color);
	pfree(characters);
	pfree(a);
	return failure;
}

/* -- those that are LIKE's ------------------------------------------------------------------- */

int
regex_as_like(const char *regex, int len, char *to)
{
	int			out = 0;
	int			i = 0;

	if (len > 0 && regex[0] == '^')
		i++;
	else
		to[out++] = '%';
	for (; i < len; i++)
	{
		const char	c = regex[i];

		if (c == '$' && i + 1 == len)
			return out;
		if (c == '.' && i + 1 < len && (regex[i + 1] == '*' || regex[i + 1] == '+'))
		{
			if (regex[++i] == '+')
				to[out++] = '_';
			to[out++] = '%';
		}
		else if (c == '.')
			to[out++] = '_';
		else if (strchr("^$*+?{}()[]|\\", c) != nullptr)
			return -1;
		else
		{
			if (c == '%' || c == '_')
				to[out++] = '\\';
			to[out++] = c;
		}
		if (i + 1 < len && strchr("*+?{", regex[i + 1]) != nullptr)
			return -1;
	}
	to[out++] = '%';
	return out;
}

}  // namespace gpuvm
