/* Values of timetz, interval, inet and bits in order (vm/value_order.h), against another way to say the same. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "vm/text_order.h"

using namespace gpuvm;

namespace {

std::string
stored(int64_t time, int32_t a)
{
	std::string s(12, '\0');

	memcpy(s.data(), &time, 8);
	memcpy(s.data() + 8, &a, 4);
	return s;
}

std::string
stored(int64_t time, int32_t days, int32_t months)
{
	std::string s = stored(time, days);

	s.append(reinterpret_cast<const char *>(&months), 4);
	return s;
}

std::string
network(bool v6, int bits, const std::string &first)
{
	std::string address = first;

	address.resize(v6 ? 16 : 4);
	return std::string{static_cast<char>(v6 ? 3 : 2), static_cast<char>(bits)} + address;
}

int
sign(int x)
{
	return (x > 0) - (x < 0);
}

int
compare(ValueOrder order, const std::string &a, const std::string &b)
{
	const auto	bytes = [](const std::string &s) { return reinterpret_cast<const unsigned char *>(s.data()); };
	const int	cmp = sign(value_order(order, bytes(a), static_cast<uint32_t>(a.size()), bytes(b), static_cast<uint32_t>(b.size())));

	EXPECT_EQ(cmp, -sign(value_order(order, bytes(b), static_cast<uint32_t>(b.size()), bytes(a), static_cast<uint32_t>(a.size()))));
	return cmp;
}

/* network_cmp_internal() and bitncmp(), bit by bit. */
int
compare_networks(const std::string &a, const std::string &b)
{
	const int	abits = static_cast<unsigned char>(a[1]), bbits = static_cast<unsigned char>(b[1]);
	const auto	bitncmp = [&](int n)
	{
		for (int i = 0; i < n; i++)
		{
			const auto	bit = [i](const std::string &s) { return s[2 + static_cast<size_t>(i) / 8] >> (7 - i % 8) & 1; };

			if (bit(a) != bit(b))
				return bit(a) - bit(b);
		}
		return 0;
	};
	int			order;

	if (a[0] != b[0])
		return a[0] < b[0] ? -1 : 1;
	if ((order = bitncmp(std::min(abits, bbits))) != 0)
		return order;
	return abits != bbits ? sign(abits - bbits) : bitncmp(a[0] == 2 ? 32 : 128);
}

/* Like one another, so that much is compared. */
std::string
random_value(ValueOrder order, std::mt19937_64 &random)
{
	const auto	some_bytes = [&](size_t n)
	{
		std::string bytes;

		while (bytes.size() < n)
			bytes += "\x0a\x0a\x80\xff\x7f"[random() % 5];
		return bytes;
	};

	switch (order)
	{
		case ValueOrder::Timetz:
			return stored(static_cast<int64_t>(random() % 3) * 3600 * ORDER_SECOND, static_cast<int32_t>(random() % 5 - 2) * 3600);
		case ValueOrder::Interval:
			return stored(static_cast<int64_t>(random() % 5 - 2) * ORDER_DAY + static_cast<int64_t>(random() % 3) - 1, static_cast<int32_t>(random() % 61 - 30), static_cast<int32_t>(random() % 3 - 1));
		case ValueOrder::Network:
		{
			const bool	v6 = random() % 2;

			return network(v6, static_cast<int>(random() % (v6 ? 129 : 33)), some_bytes(1 + random() % 2) + std::string(random() % 3 * 3, '\0') + some_bytes(random() % 9));
		}
		default:
		{
			const uint32_t n = static_cast<uint32_t>(random() % 100);
			std::string bytes = some_bytes((n + 7) / 8);

			if (n % 8 != 0)
				bytes.back() = static_cast<char>(bytes.back() & 0xff << (8 - n % 8));
			return std::string(reinterpret_cast<const char *>(&n), 4) + bytes;
		}
	}
}

}  // namespace

/* What sorts compare first says nothing else than the order, which is total. */
TEST(ValueOrder, Beginnings)
{
	std::mt19937_64 random(2);

	for (int i = 0; i < 60000; i++)
	{
		const ValueOrder order = static_cast<ValueOrder>(1 + i % 4);
		TextOrderSpec spec = {};
		std::string values[3] = {random_value(order, random), random_value(order, random), random_value(order, random)};
		uint64_t	first[3];
		int			cmp[3];

		spec.flags = text_order_flags(order);
		for (int v = 0; v < 3; v++)
		{
			const uint32_t len = static_cast<uint32_t>(values[v].size());

			values[v].resize(len + 8, static_cast<char>(random()));
			first[v] = TextOrder(spec, nullptr, nullptr, 0).beginning(TextValue{reinterpret_cast<const unsigned char *>(values[v].data()), len});
			values[v].resize(len);
		}
		for (int v = 0; v < 3; v++)
		{
			cmp[v] = compare(order, values[v], values[(v + 1) % 3]);
			EXPECT_TRUE(first[v] == first[(v + 1) % 3] || (first[v] < first[(v + 1) % 3]) == (cmp[v] < 0));
			EXPECT_TRUE(order == ValueOrder::Interval || (cmp[v] == 0) == (values[v] == values[(v + 1) % 3]));
		}
		EXPECT_FALSE(cmp[0] == cmp[1] && cmp[1] == cmp[2] && cmp[0] != 0);
		if (order == ValueOrder::Network)
			EXPECT_EQ(cmp[0], compare_networks(values[0], values[1]));
	}
}

TEST(ValueOrder, Intervals)
{
	std::mt19937_64 random(1);
	const auto	span = [](int64_t time, int32_t days, int32_t months) { return static_cast<__int128>(time) + (static_cast<__int128>(months) * 30 + days) * 86400000000; };
	const auto	time = [&] { return static_cast<int64_t>(random()) >> random() % 64; };
	const auto	part = [&] { return static_cast<int32_t>(random()) >> random() % 32; };

	EXPECT_EQ(compare(ValueOrder::Interval, stored(0, 30, 0), stored(0, 0, 1)), 0);
	EXPECT_EQ(compare(ValueOrder::Interval, stored(-1, 0, 0), stored(0, 0, 0)), -1);
	EXPECT_EQ(compare(ValueOrder::Interval, stored(INT64_MIN, INT32_MIN, INT32_MIN), stored(INT64_MAX, INT32_MAX, INT32_MAX)), -1);
	for (int i = 0; i < 20000; i++)
	{
		const int64_t ta = time(), tb = i % 3 == 0 ? ta ^ static_cast<int64_t>(random() % 3) : time();
		const int32_t da = part(), db = i % 3 == 0 ? da : part(), ma = part(), mb = i % 3 == 0 ? ma : part();
		const __int128 a = span(ta, da, ma), b = span(tb, db, mb);

		EXPECT_EQ(compare(ValueOrder::Interval, stored(ta, da, ma), stored(tb, db, mb)), (a > b) - (a < b));
	}
}

TEST(ValueOrder, TimesOfZones)
{
	EXPECT_EQ(compare(ValueOrder::Timetz, stored(3600 * ORDER_SECOND, 0), stored(0, 3600)), -1);	/* one instant: the zone decides */
	EXPECT_EQ(compare(ValueOrder::Timetz, stored(0, 3600), stored(3600 * ORDER_SECOND + 1, 0)), -1);
	EXPECT_EQ(compare(ValueOrder::Timetz, stored(0, -3600), stored(0, 3600)), -1);
	EXPECT_EQ(compare(ValueOrder::Timetz, stored(5, 7), stored(5, 7)), 0);
}

TEST(ValueOrder, Networks)
{
	EXPECT_EQ(compare(ValueOrder::Network, network(false, 8, "\x0a"), network(false, 16, "\x0a")), -1);
	EXPECT_EQ(compare(ValueOrder::Network, network(false, 8, "\x0a\xff"), network(false, 16, "\x0a")), -1);	/* the network before the host */
	EXPECT_EQ(compare(ValueOrder::Network, network(false, 8, "\x0a\x01"), network(false, 8, "\x0a\x02")), -1);
	EXPECT_EQ(compare(ValueOrder::Network, network(false, 9, "\x0a\x80"), network(false, 9, "\x0a\x7f")), 1);
	EXPECT_EQ(compare(ValueOrder::Network, network(false, 32, "\xff\xff\xff\xff"), network(true, 0, "")), -1);
	EXPECT_EQ(compare(ValueOrder::Network, network(true, 128, "\x20\x01"), network(true, 128, "\x20\x01")), 0);
	EXPECT_EQ(compare(ValueOrder::Network, std::string("\x02\xff"), network(false, 255, "\x0a")), 0);	/* no address: nothing behind it is read */
}

TEST(ValueOrder, Bits)
{
	const auto	bits = [](int32_t n, const std::string &bytes) { return std::string(reinterpret_cast<const char *>(&n), 4) + bytes; };

	EXPECT_EQ(compare(ValueOrder::Bits, bits(1, "\x80"), bits(2, "\x80")), -1);
	EXPECT_EQ(compare(ValueOrder::Bits, bits(8, "\x80"), bits(2, "\xc0")), -1);
	EXPECT_EQ(compare(ValueOrder::Bits, bits(16, std::string("\x80\0", 2)), bits(8, "\x80")), 1);
	EXPECT_EQ(compare(ValueOrder::Bits, bits(0, ""), bits(1, std::string(1, '\0'))), -1);
	EXPECT_EQ(compare(ValueOrder::Bits, std::string("\x01"), bits(8, "\x80")), -1);	/* too short */
}
