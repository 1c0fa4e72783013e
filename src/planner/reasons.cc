/* reasons.cc: the backend's list of reasons. */
#include "pg/pg.h"

#include "planner/reasons.h"

namespace gpuvm {

bool		reasons_wanted;

struct Reasons
{
	int			count;
	Reason		list[MAX_REASONS];
};

static Reason list[MAX_REASONS];
static int	count;

void
reasons_reset(void)
{
	count = 0;
}

Reasons *
reasons_save(void)
{
	Reasons    *saved = static_cast<Reasons *>(palloc(sizeof(Reasons)));

	saved->count = count;
	memcpy(saved->list, list, sizeof(list));
	return saved;
}

void
reasons_restore(const Reasons *saved)
{
	count = saved->count;
	memcpy(list, saved->list, sizeof(list));
}

void
reasons_add(Oid relid, const char *node, const char *reason, const char *hint)
{
	Reason	   *r;

	for (int i = 0; i < count; i++)
	{
		if (list[i].relid == relid && strcmp(list[i].node, node) == 0 && strncmp(list[i].reason, reason, sizeof(r->reason) - 1) == 0)
			return;
	}
	if (count == MAX_REASONS)
		return;
	r = &list[count++];
	r->relid = relid;
	strlcpy(r->node, node, sizeof(r->node));
	strlcpy(r->reason, reason, sizeof(r->reason));
	strlcpy(r->hint, hint != nullptr ? hint : "", sizeof(r->hint));
}

bool
reasons_have(const char *reason)
{
	for (int i = 0; i < count; i++)
	{
		if (strncmp(list[i].reason, reason, sizeof(list[i].reason) - 1) == 0)
			return true;
	}
	return false;
}

void
reasons_append(const Reasons *saved)
{
	for (int i = 0; i < saved->count; i++)
	{
		const Reason *r = &saved->list[i];

		if (!reasons_have(r->reason))
			reasons_add(r->relid, r->node, r->reason, r->hint[0] != '\0' ? r->hint : nullptr);
	}
}

int
reasons_count(void)
{
	return count;
}

const Reason *
reasons_get(int i)
{
	return &list[i];
}

}  // namespace gpuvm
