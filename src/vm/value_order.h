/*
 * value_order.h: how values of types other than texts compare, as PostgreSQL stores them: timetz_cmp_internal(),
 * interval_cmp_internal(), network_cmp_internal() and bit_cmp().
 *
 * Values come from other processes, so that what is too short for its type is compared by its bytes.
 */
#ifndef GPUVM_VM_VALUE_ORDER_H
#define GPUVM_VM_VALUE_ORDER_H

#include "core/types.h"

namespace gpuvm {

enum class ValueOrder : uint8_t
{
	Bytes = 0,
	Timetz = 1,
	Interval = 2,
	Network = 3,				/* inet, cidr */
	Bits = 4,					/* bit, varbit */
};

constexpr int64_t ORDER_DAY = INT64_C(86400000000), ORDER_SECOND = 1000000;
constexpr uint32_t TIMETZ_BYTES = 12, INTERVAL_BYTES = 16, NETWORK_HEADER = 2, BITS_HEADER = 4;

GPUVM_HD int
order_of(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Little-endian, at any address. */
GPUVM_HD int64_t
stored_int(const unsigned char *at, int bytes)
{
	uint64_t	x = 0;

	for (int i = bytes - 1; i >= 0; i--)
		x = x << 8 | at[i];
	return bytes == 4 ? int64_t{static_cast<int32_t>(x)} : static_cast<int64_t>(x);
}

/* Of the first n bytes. */
GPUVM_HD int
order_of_bytes(const unsigned char *a, const unsigned char *b, uint32_t n)
{
	int			cmp = 0;

#ifdef __CUDA_ARCH__
	for (uint32_t i = 0; i < n && cmp == 0; i++)
		cmp = static_cast<int>(a[i]) - static_cast<int>(b[i]);
#else
	cmp = memcmp(a, b, n);
#endif
	return cmp;
}

/* bitncmp() */
GPUVM_HD int
order_of_bits(const unsigned char *a, const unsigned char *b, uint32_t n)
{
	const int	cmp = order_of_bytes(a, b, n / 8);
	const uint32_t rest = n % 8;

	if (cmp != 0 || rest == 0)
		return cmp;
	return (a[n / 8] >> (8 - rest)) - (b[n / 8] >> (8 - rest));
}

GPUVM_HD int64_t
timetz_instant(const unsigned char *t)
{
	return stored_int(t, 8) + stored_int(t + 8, 4) * ORDER_SECOND;
}

/* Days of thirty to a month and of 24 hours, and what is left of the time: together they are the 128 bits of interval_cmp_value(). */
GPUVM_HD int64_t
interval_days(const unsigned char *t, int64_t *rest)
{
	const int64_t time = stored_int(t, 8);
	const bool	before = time % ORDER_DAY < 0;

	*rest = time % ORDER_DAY + (before ? ORDER_DAY : 0);
	return stored_int(t + 12, 4) * 30 + stored_int(t + 8, 4) + time / ORDER_DAY - before;
}

GPUVM_HD int
network_order(const unsigned char *a, uint32_t alen, const unsigned char *b, uint32_t blen)
{
	const uint32_t most = 8 * ((alen < blen ? alen : blen) - NETWORK_HEADER), bits = a[1] < b[1] ? a[1] : b[1];
	int			cmp;

	if (a[0] != b[0])
		return a[0] - b[0];
	cmp = order_of_bits(a + NETWORK_HEADER, b + NETWORK_HEADER, bits < most ? bits : most);
	if (cmp != 0)
		return cmp;
	return a[1] != b[1] ? a[1] - b[1] : order_of_bits(a + NETWORK_HEADER, b + NETWORK_HEADER, most);
}

/* Less than, equal to or greater than 0. */
GPUVM_HD int
value_order(ValueOrder order, const unsigned char *a, uint32_t alen, const unsigned char *b, uint32_t blen)
{
	const uint32_t len = alen < blen ? alen : blen;
	int64_t		x, y;
	int			cmp;

	if (order == ValueOrder::Timetz && len >= TIMETZ_BYTES)
	{
		cmp = order_of(timetz_instant(a), timetz_instant(b));
		return cmp != 0 ? cmp : order_of(stored_int(a + 8, 4), stored_int(b + 8, 4));
	}
	if (order == ValueOrder::Interval && len >= INTERVAL_BYTES)
	{
		cmp = order_of(interval_days(a, &x), interval_days(b, &y));
		return cmp != 0 ? cmp : order_of(x, y);
	}
	if (order == ValueOrder::Network && len >= NETWORK_HEADER)
		return network_order(a, alen, b, blen);
	if (order == ValueOrder::Bits && len >= BITS_HEADER)
	{
		cmp = order_of_bytes(a + BITS_HEADER, b + BITS_HEADER, len - BITS_HEADER);
		return cmp != 0 ? cmp : order_of(stored_int(a, 4), stored_int(b, 4));
	}
	cmp = order_of_bytes(a, b, len);
	return cmp != 0 ? cmp : order_of(alen, blen);
}

}  // namespace gpuvm

#endif
