/*
 * collators.h: collations of the C library and of ICU, as gpuvmd holds them for comparing texts (vm/text_order.h).
 *
 * Each is opened once, and is used by all threads: neither strcoll_l() nor ucol_strcollUTF8() changes what it is given.
 * A locale whose version is not what the server sees has no collator here: a library may have been replaced since
 * the server started. ICU is the library that the server itself runs with, loaded when it is first wanted.
 */
#ifndef GPUVM_ENGINE_COLLATORS_H
#define GPUVM_ENGINE_COLLATORS_H

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "vm/text_order.h"

namespace gpuvm {

struct IcuLibrary;

class Collators
{
public:
	Collators();
	~Collators();

	/* Before the first find(): the file libicui18n.so.NN. Without it there are no collators of ICU. */
	void		set_icu(const char *path) { icu_path_ = path; }

	/* *to: nullptr where bytes decide. What is found stays. nullptr, or why it cannot be had. Throws std::bad_alloc. */
	const char *find(const TextOrderSpec &spec, const Collator **to);

private:
	using Key = std::tuple<TextOrderKind, std::string, std::string>;	/* locale, version */

	const IcuLibrary *icu();

	std::mutex	mutex_;
	std::string icu_path_;
	std::unique_ptr<IcuLibrary> icu_;
	bool		icu_tried_ = false;
	std::map<Key, std::unique_ptr<Collator>> opened_;
};

}  // namespace gpuvm

#endif
