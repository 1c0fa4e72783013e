/* text_order.cc: see text_order.h. */
#include "vm/text_order.h"

#include <algorithm>
#include <vector>

namespace gpuvm {

constexpr uint32_t SHORT_TEXT = 1024;	/* copies of shorter ones lie on the stack */

namespace {

/* A copy with a zero behind it. */
class Terminated
{
public:
	explicit Terminated(const TextValue &value) : long_(value.len >= SHORT_TEXT ? value.len + 1 : 0)
	{
		unsigned char *to = value.len >= SHORT_TEXT ? long_.data() : short_;

		memcpy(to, value.bytes, value.len);
		to[value.len] = '\0';
		copy_ = TextValue{to, value.len};
	}
	const TextValue &value() const { return copy_; }

private:
	unsigned char short_[SHORT_TEXT];
	std::vector<unsigned char> long_;
	TextValue	copy_;
};

}  // namespace

TextOrder::TextOrder(const TextOrderSpec &spec, const Collator *collator, const char *arena, uint64_t bytes)
	: collator_(collator), arena_(reinterpret_cast<const unsigned char *>(arena)), bytes_(bytes), attlen_(spec.attlen), flags_(spec.flags) {}

bool
TextOrder::value(uint64_t reference, TextValue *to) const
{
	if (!text_value_at(arena_, bytes_, reference, attlen_, to))
	{
		*to = TextValue{arena_, 0};
		return false;
	}
	text_trim(flags_, to);
	return true;
}

/* PostgreSQL's varstr_cmp(): locales are not asked about equal bytes, and what they take for equal is compared by its bytes. */
int
TextOrder::compare(const TextValue &a, const TextValue &b, bool terminated) const
{
	const int	by_bytes = text_compare(static_cast<uint8_t>(flags_), a, b);

	if (collator_ == nullptr || by_bytes == 0)
		return by_bytes;

	const int	cmp = terminated || !collator_->wants_zero() ? collator_->compare(a, b)
		: collator_->compare(Terminated(a).value(), Terminated(b).value());

	return cmp != 0 ? cmp : by_bytes;
}

int
TextOrder::compare(uint64_t a, uint64_t b) const
{
	TextValue	va, vb;

	(void) value(a, &va);
	(void) value(b, &vb);
	return compare(va, vb);
}

/* The first eight bytes. */
static uint64_t
first_bytes(const unsigned char *bytes, uint32_t len)
{
	uint64_t	first;

	memcpy(&first, bytes, 8);
	first = __builtin_bswap64(first);
	return len >= 8 ? first : len == 0 ? 0 : first & ~uint64_t{0} << (64 - 8 * len);
}

/* An integer among those of its size. */
static uint64_t
unsigned_order(int64_t x)
{
	return static_cast<uint64_t>(x) ^ uint64_t{1} << 63;
}

uint64_t
TextOrder::beginning(const TextValue &value) const
{
	int64_t		rest;

	if (collator_ != nullptr)
		return collator_->beginning(value);
	switch (order())
	{
		case ValueOrder::Timetz:
			return value.len < TIMETZ_BYTES ? 0 : unsigned_order(timetz_instant(value.bytes));
		case ValueOrder::Interval:
			return value.len < INTERVAL_BYTES ? 0 : unsigned_order(interval_days(value.bytes, &rest));
		case ValueOrder::Network:
		{
			/* the family, then the network: a host follows its network, and that a larger one that begins alike */
			if (value.len < NETWORK_HEADER)
				return 0;

			const uint32_t bits = value.bytes[1];
			const uint64_t address = first_bytes(value.bytes + NETWORK_HEADER, value.len - NETWORK_HEADER);

			return uint64_t{value.bytes[0]} << 56 | (bits == 0 ? 0 : bits >= 64 ? address : address & ~uint64_t{0} << (64 - bits)) >> 8;
		}
		case ValueOrder::Bits:
			return value.len < BITS_HEADER ? 0 : first_bytes(value.bytes + BITS_HEADER, value.len - BITS_HEADER);
		default:
			return first_bytes(value.bytes, value.len);
	}
}

void
TextOrder::prefetch(uint64_t reference) const
{
	if (reference < bytes_)
		__builtin_prefetch(arena_ + reference);
}

}  // namespace gpuvm
