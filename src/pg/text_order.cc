/* text_order.cc: see text_order.h. */
#include "pg/text_order.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"
}

#include <gnu/libc-version.h>
#include <langinfo.h>
#include <link.h>
#include <locale.h>

#include "pg/compat.h"

namespace gpuvm {

int
add_text_order(PlanTextOrders *to, Oid type, Oid collation)
{
	type = getBaseType(type);
	for (int i = 0; i < to->n; i++)
	{
		if (to->orders[i].type == type && to->orders[i].collation == collation)
			return i;
	}
	if (to->n == PROGRAM_MAX_TEXT_ORDERS)
		return -1;
	to->orders[to->n] = PlanTextOrder{type, collation};
	return to->n++;
}

/* ICU is asked once for a locale: opening a collator takes a while. */
static const char *
icu_version(const char *locale)
{
	static char last[sizeof(TextOrderSpec::locale)];
	static char version[sizeof(TextOrderSpec::version)];
	char	   *found;

	if (version[0] != '\0' && strcmp(locale, last) == 0)
		return version;
	version[0] = '\0';
	found = get_collation_actual_version(COLLPROVIDER_ICU, locale);
	if (found == nullptr || strlen(found) >= sizeof(version))
		return nullptr;
	strlcpy(last, locale, sizeof(last));
	strlcpy(version, found, sizeof(version));
	pfree(found);
	return version;
}

/* A locale of the C library without rules, such as C.UTF-8: its strcoll() is strcmp(). Asked once in a row, since opening one takes a while. */
static bool
has_no_rules(const char *name)
{
	static char last[sizeof(TextOrderSpec::locale)];
	static bool without;
	locale_t	locale;

	if (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
		return true;
	if (last[0] != '\0' && strcmp(name, last) == 0)
		return without;
	locale = newlocale(LC_COLLATE_MASK, name, nullptr);
	if (locale == nullptr)
		return false;
	without = static_cast<uint32>(reinterpret_cast<uintptr_t>(nl_langinfo_l(_NL_COLLATE_NRULES, locale))) == 0;
	freelocale(locale);
	/* a longer name is never found again */
	strlcpy(last, name, sizeof(last));
	return without;
}

bool
orders_as_bytes(Oid collation)
{
	char		provider;
	const char *locale = nullptr;

	if (!OidIsValid(collation))
		return true;
	if (!compat_collation(collation, &provider, &locale) || provider == COLLPROVIDER_ICU)
		return false;
	return provider != COLLPROVIDER_LIBC || has_no_rules(locale);
}

Oid
cheapest_collation(Oid collation)
{
	return OidIsValid(collation) && orders_as_bytes(collation) ? C_COLLATION_OID : collation;
}

static const char *
describe_locale(Oid collation, TextOrderSpec *to)
{
	char		provider;
	const char *locale = nullptr;
	const char *version;

	if (!OidIsValid(collation))
		return "the collation is not known";
	if (!get_collation_isdeterministic(collation))
		return "the collation is not deterministic";
	if (!compat_collation(collation, &provider, &locale))
		return "the collation has rules of its own";
	if (orders_as_bytes(collation))
		return nullptr;
	if (provider == COLLPROVIDER_ICU && GetDatabaseEncoding() != PG_UTF8)
		return "collations of ICU are compared by in UTF-8 only";
	version = provider == COLLPROVIDER_ICU ? icu_version(locale) : gnu_get_libc_version();
	if (version == nullptr || strlen(version) >= sizeof(to->version) || strlen(locale) >= sizeof(to->locale))
		return "the collation's locale is not known by a short name and version";
	to->kind = provider == COLLPROVIDER_ICU ? TextOrderKind::Icu : TextOrderKind::Libc;
	strlcpy(to->locale, locale, sizeof(to->locale));
	strlcpy(to->version, version, sizeof(to->version));
	return nullptr;
}

uint8
value_order_flags(Oid type)
{
	switch (getBaseType(type))
	{
		case TIMETZOID: return text_order_flags(ValueOrder::Timetz);
		case INTERVALOID: return text_order_flags(ValueOrder::Interval);
		case INETOID:
		case CIDROID: return text_order_flags(ValueOrder::Network);
		case BITOID:
		case VARBITOID: return text_order_flags(ValueOrder::Bits);
		default: return 0;
	}
}

const char *
describe_text_order(const PlanTextOrder &order, TextOrderSpec *to)
{
	memset(to, 0, sizeof(*to));
	to->kind = TextOrderKind::Bytes;
	to->attlen = get_typlen(order.type);
	switch (order.type)
	{
		case TEXTOID:
		case VARCHAROID:
			return describe_locale(order.collation, to);
		case BPCHAROID:
			to->flags = TEXT_TRIM_BLANKS;
			return describe_locale(order.collation, to);
		case NAMEOID:
			to->flags = TEXT_TRIM_ZEROES;
			return describe_locale(order.collation, to);
		case BYTEAOID:
		case UUIDOID:
		case MACADDROID:
		case MACADDR8OID:
			return nullptr;
		case TIMETZOID:
		case INTERVALOID:
		case INETOID:
		case CIDROID:
		case BITOID:
		case VARBITOID:
			to->flags = value_order_flags(order.type);
			return nullptr;
		default:
			return psprintf("values of type %s that are stored value by value are not ordered", format_type_be(order.type));
	}
}

/* -- the server's ICU ------------------------------------------------------------------ */

static int
find_icu(struct dl_phdr_info *info, size_t, void *path)
{
	if (info->dlpi_name == nullptr || strstr(info->dlpi_name, "/libicui18n.so.") == nullptr)
		return 0;
	*static_cast<const char **>(path) = info->dlpi_name;
	return 1;
}

const char *
icu_library(void)
{
	const char *path = nullptr;

	(void) dl_iterate_phdr(find_icu, &path);
	return path;
}

}  // namespace gpuvm
