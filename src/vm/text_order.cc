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
	const int	by_bytes = text_compare(a, b);

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

uint64_t
TextOrder::beginning(const TextValue &value) const
{
	uint64_t	bytes;

	if (collator_ != nullptr)
		return collator_->beginning(value);
	memcpy(&bytes, value.bytes, 8);
	bytes = __builtin_bswap64(bytes);
	return value.len >= 8 ? bytes : value.len == 0 ? 0 : bytes & ~uint64_t{0} << (64 - 8 * value.len);
}

void
TextOrder::prefetch(uint64_t reference) const
{
	if (reference < bytes_)
		__builtin_prefetch(arena_ + reference);
}

}  // namespace gpuvm
