/* join_index.cc: see join_index.h. */
#include "join_index.h"

#include "work.h"

namespace gpuvm {
namespace cuda {

std::vector<IndexTablet>
index_tablets(const DeviceCursor &cursor)
{
	std::vector<IndexTablet> tablets;

	for (uint32_t t = 0; t < cursor.ntablets; t++)
		if (!cursor.tablets[t].skip)
			tablets.push_back(IndexTablet{cursor.tablets[t].tablet, cursor.tablets[t].tablet->serial});
	return tablets;
}

std::string
index_key(const JoinLevel &level, const DeviceProgram &build, const DeviceCursor &cursor, Transfer transfer)
{
	std::string key;

	/* As with columns: other ways keep nothing. Nor are sets known by serials. */
	if (reads_set(cursor) || (transfer != Transfer::Auto && transfer != Transfer::Cached) || !gpuvm::index_key(level, &key))
		return std::string();
	/* Which columns have bitmaps, what is known of the whole cursor decides. */
	key.append(reinterpret_cast<const char *>(build.result_nullable), (build.nresults + 7u) / 8);
	for (uint32_t t = 0; t < cursor.ntablets; t++)
	{
		const DeviceTabletRef &ref = cursor.tablets[t];

		if (ref.skip)
			continue;
		if (ref.tablet->serial == 0 || ref.nmasked != 0)
			return std::string();
		key.append(reinterpret_cast<const char *>(&ref.tablet->serial), sizeof(ref.tablet->serial));
	}
	return key;
}

}  // namespace cuda
}  // namespace gpuvm
