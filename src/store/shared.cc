/* shared.cc: requests and finds the store's part of shared memory; installs its callbacks. */
#include "store/store.h"

#include "store/catalog.h"
#include "store/family.h"
#include "store/internal.h"
#include "store/refresher.h"
#include "store/tablets.h"

extern "C" {
#include "storage/ipc.h"
#include "storage/shmem.h"
}

namespace gpuvm {

static const char lock_tranche[] = "gpuvm_store";
static const char dictionary_tranche[] = "gpuvm_dictionary";

static RegistryShared *registry = NULL;
static ProgressShared *progress = NULL;
static LWLockPadded *locks = NULL;
static LWLockPadded *dictionary_locks = NULL;

RegistryShared *
registry_shared(void)
{
	return registry;
}

ProgressShared *
progress_shared(void)
{
	return progress;
}

LWLock *
registry_lock(void)
{
	return &locks[0].lock;
}

LWLock *
progress_lock(void)
{
	return &locks[1].lock;
}

LWLock *
dictionary_lock(uint32 which)
{
	return &dictionary_locks[which].lock;
}

void
store_shmem_request(void)
{
	RequestAddinShmemSpace(add_size(add_size(registry_shared_size(), progress_shared_size()), add_size(registry_hash_size(), families_shared_size())));
	RequestNamedLWLockTranche(lock_tranche, 2);
	RequestNamedLWLockTranche(dictionary_tranche, DICTIONARY_LOCKS);
}

void
store_shmem_startup(void)
{
	bool		found;

	registry = static_cast<RegistryShared *>(ShmemInitStruct("gpuvm registry", registry_shared_size(), &found));
	if (!found)
		registry_init(registry);
	progress = static_cast<ProgressShared *>(ShmemInitStruct("gpuvm import progress", progress_shared_size(), &found));
	if (!found)
		progress_init(progress);
	registry_hash_startup();
	families_startup();
	locks = GetNamedLWLockTranche(lock_tranche);
	dictionary_locks = GetNamedLWLockTranche(dictionary_tranche);
}

void
store_install(void)
{
	registry_install();
	catalog_install();
	tablets_install();
	refresher_install();
}

}  // namespace gpuvm
