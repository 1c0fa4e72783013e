/* refresh.cc: re-reads what changed in an imported table. */
#include "store/internal.h"

#include "store/refresher.h"

namespace gpuvm {

/* For now only tells whether there is anything to do: if there is, the table is imported anew. */
bool
refresh_relation(Relation rel, RefreshOutcome *outcome)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	bool		current;

	memset(outcome, 0, sizeof(*outcome));
	if (pin == NULL)
		return false;
	outcome->blocks = pin_version(pin)->nblocks;
	current = pin_matches(pin, rel) && version_unchanged(rel, pin_version(pin), &outcome->left);
	registry_unpin(pin);
	return current;
}

}  // namespace gpuvm
