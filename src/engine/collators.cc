/* collators.cc: see collators.h. */
#include "engine/collators.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <locale.h>
#include <string.h>

#include <cstdio>
#include <new>

namespace gpuvm {

namespace {

class LibcCollator final : public Collator
{
public:
	explicit LibcCollator(locale_t locale) : locale_(locale) {}
	~LibcCollator() override { freelocale(locale_); }

	int compare(const TextValue &a, const TextValue &b) const override
	{
		return strcoll_l(reinterpret_cast<const char *>(a.bytes), reinterpret_cast<const char *>(b.bytes), locale_);
	}
	bool		wants_zero() const override { return true; }
	/* PostgreSQL does not trust strxfrm() to agree with strcoll(), and so it is not asked here. */
	uint64_t	beginning(const TextValue &) const override { return 0; }

private:
	locale_t	locale_;
};

}  // namespace

/* What is used of ICU, whose interface in C is stable; its symbols have the version's number behind their names. */
struct IcuLibrary
{
	using Open = void *(*)(const char *locale, int *error);
	using Close = void (*)(void *collator);
	using GetVersion = void (*)(const void *collator, uint8_t version[4]);
	using Compare = int (*)(const void *collator, const char *a, int32_t alen, const char *b, int32_t blen, int *error);
	using SetText = void (*)(void *iterator, const char *text, int32_t len);
	using KeyPart = int32_t (*)(const void *collator, void *iterator, uint32_t state[2], uint8_t *to, int32_t count, int *error);

	Open		open;
	Close		close;
	GetVersion	get_version;
	Compare		compare;
	SetText		set_text;
	KeyPart		key_part;

	bool		load(const std::string &path);
};

template <typename F>
static bool
find_symbol(void *library, const char *name, const std::string &version, F *to)
{
	void	   *symbol = dlsym(library, (std::string(name) + "_" + version).c_str());

	if (symbol == nullptr)
		symbol = dlsym(library, name);
	*to = reinterpret_cast<F>(symbol);
	return symbol != nullptr;
}

bool
IcuLibrary::load(const std::string &path)
{
	const size_t at = path.rfind(".so.");
	void	   *library = at == std::string::npos ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
	const std::string version = library == nullptr ? "" : path.substr(at + 4, path.find('.', at + 4) - at - 4);

	return library != nullptr && find_symbol(library, "ucol_open", version, &open) && find_symbol(library, "ucol_close", version, &close) &&
		find_symbol(library, "ucol_getVersion", version, &get_version) && find_symbol(library, "ucol_strcollUTF8", version, &compare) &&
		find_symbol(library, "uiter_setUTF8", version, &set_text) && find_symbol(library, "ucol_nextSortKeyPart", version, &key_part);
}

namespace {

/* It fails for want of memory only; warnings are below zero. */
void
check_icu(int error)
{
	if (error > 0)
		throw std::bad_alloc();
}

class IcuCollator final : public Collator
{
public:
	IcuCollator(const IcuLibrary *icu, void *collator) : icu_(icu), collator_(collator) {}
	~IcuCollator() override { icu_->close(collator_); }

	int compare(const TextValue &a, const TextValue &b) const override
	{
		int			error = 0;
		const int	cmp = icu_->compare(collator_, reinterpret_cast<const char *>(a.bytes), static_cast<int32_t>(a.len),
										reinterpret_cast<const char *>(b.bytes), static_cast<int32_t>(b.len), &error);

		check_icu(error);
		return cmp;
	}

	bool		wants_zero() const override { return false; }

	/* The first bytes of the sort key, as PostgreSQL's abbreviated keys have them. */
	uint64_t beginning(const TextValue &value) const override
	{
		alignas(16) char iterator[512];	/* a UCharIterator is a quarter of that */
		uint32_t	state[2] = {0, 0};
		uint8_t		key[8] = {};
		uint64_t	bytes;
		int			error = 0;

		icu_->set_text(iterator, reinterpret_cast<const char *>(value.bytes), static_cast<int32_t>(value.len));
		(void) icu_->key_part(collator_, iterator, state, key, sizeof(key), &error);
		check_icu(error);
		memcpy(&bytes, key, sizeof(bytes));
		return __builtin_bswap64(bytes);
	}

private:
	const IcuLibrary *icu_;
	void	   *collator_;
};

}  // namespace

/* As ICU's u_versionToString() writes it: without the zeroes at the end, but two numbers at least. */
static std::string
version_text(const uint8_t version[4])
{
	int			n = 4;
	std::string text;

	while (n > 2 && version[n - 1] == 0)
		n--;
	for (int i = 0; i < n; i++)
		text += (i > 0 ? "." : "") + std::to_string(version[i]);
	return text;
}

Collators::Collators() = default;
Collators::~Collators() = default;

const IcuLibrary *
Collators::icu()
{
	if (!icu_tried_ && !icu_path_.empty())
	{
		auto		library = std::make_unique<IcuLibrary>();

		if (library->load(icu_path_))
			icu_ = std::move(library);
	}
	icu_tried_ = true;
	return icu_.get();
}

/* nullptr: there is none of this version. */
static locale_t
open_libc(const std::string &locale, const std::string &version)
{
	return version == gnu_get_libc_version() ? newlocale(LC_COLLATE_MASK, locale.c_str(), nullptr) : nullptr;
}

static std::unique_ptr<Collator>
open_icu(const IcuLibrary *icu, const std::string &locale, const std::string &version)
{
	int			error = 0;
	void	   *opened = icu == nullptr ? nullptr : icu->open(locale.c_str(), &error);
	uint8_t		have[4];

	if (opened == nullptr || error > 0)
		return nullptr;

	auto		collator = std::make_unique<IcuCollator>(icu, opened);

	icu->get_version(opened, have);
	return version_text(have) == version ? std::move(collator) : nullptr;
}

const char *
Collators::find(const TextOrderSpec &spec, const Collator **to)
{
	std::lock_guard<std::mutex> lock(mutex_);
	const std::string locale(spec.locale, strnlen(spec.locale, sizeof(spec.locale)));
	const std::string version(spec.version, strnlen(spec.version, sizeof(spec.version)));
	const Key	key = {spec.kind, locale, version};
	const auto	known = opened_.find(key);
	std::unique_ptr<Collator> collator;

	*to = nullptr;
	if (spec.kind == TextOrderKind::Bytes)
		return nullptr;
	if (known != opened_.end())
	{
		*to = known->second.get();
		return nullptr;
	}
	if (spec.kind == TextOrderKind::Icu)
		collator = open_icu(icu(), locale, version);
	else if (locale_t opened = open_libc(locale, version))
		collator = std::make_unique<LibcCollator>(opened);
	if (collator == nullptr)
		return "gpuvmd does not have the collation's locale, or another version of it";
	*to = collator.get();
	opened_[key] = std::move(collator);
	return nullptr;
}

}  // namespace gpuvm
