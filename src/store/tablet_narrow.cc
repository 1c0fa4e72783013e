/* tablet_narrow.cc: columns in fewer bytes, by loops that compilers make SIMD of. */
#include "store/tablet_narrow.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gpuvm {

template <typename T>
static void
find_range(const T *values, size_t n, int64_t *least, uint64_t *range)
{
	T			lo = values[0];
	T			hi = values[0];

	for (size_t i = 1; i < n; i++)
	{
		lo = std::min(lo, values[i]);
		hi = std::max(hi, values[i]);
	}
	*least = lo;
	*range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
}

template <typename T, typename W>
static void
narrow(const T *values, size_t n, int64_t base, W *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = static_cast<W>(static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(base));
}

template <typename T, typename W>
static void
widen(const W *from, size_t n, int64_t base, T *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = static_cast<T>(static_cast<uint64_t>(base) + from[i]);
}

/* Calls fn with a value of the type that has so many bytes; 0: not at all. */
template <typename Fn>
static void
with_type(int len, const Fn &fn)
{
	switch (len)
	{
		case 1:
			return fn(int8_t());
		case 2:
			return fn(int16_t());
		case 4:
			return fn(int32_t());
		case 8:
			return fn(int64_t());
	}
}

size_t
narrow_size(const NarrowForm &form, size_t n)
{
	return sizeof(form.base) + n * static_cast<size_t>(form.width);
}

NarrowForm
narrow_form(const void *values, size_t n, int len)
{
	NarrowForm	form = {0, len};
	uint64_t	range = 0;

	/* the base alone would take as much */
	if (n * static_cast<size_t>(len) <= sizeof(form.base))
		return form;
	with_type(len, [&](auto type) { find_range(static_cast<const decltype(type) *>(values), n, &form.base, &range); });
	form.width = range == 0 ? 0 : range <= UINT8_MAX ? 1 : range <= UINT16_MAX ? 2 : range <= UINT32_MAX ? 4 : 8;
	if (form.width >= len || narrow_size(form, n) >= n * static_cast<size_t>(len))
		form = {0, len};
	return form;
}

void
narrow_values(const void *values, size_t n, int len, const NarrowForm &form, void *to)
{
	void	   *codes = static_cast<char *>(to) + sizeof(form.base);

	memcpy(to, &form.base, sizeof(form.base));
	with_type(len, [&](auto type) {
		const auto *from = static_cast<const decltype(type) *>(values);

		with_type(form.width, [&](auto code) {
			narrow(from, n, form.base, static_cast<std::make_unsigned_t<decltype(code)> *>(codes));
		});
	});
}

void
widen_values(const void *from, size_t n, int width, int len, void *to)
{
	const void *codes = static_cast<const char *>(from) + sizeof(int64_t);
	int64_t		base;

	memcpy(&base, from, sizeof(base));
	with_type(len, [&](auto type) {
		auto	   *values = static_cast<decltype(type) *>(to);

		if (width == 0)
			std::fill_n(values, n, static_cast<decltype(type)>(base));
		with_type(width, [&](auto code) {
			widen(static_cast<const std::make_unsigned_t<decltype(code)> *>(codes), n, base, values);
		});
	});
}

}  // namespace gpuvm
