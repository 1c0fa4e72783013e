/*
 * text_order.h: how values of variable length are compared, as PostgreSQL compares them: for what is sorted by
 * them (Order in engine/abi.h), and for MinText and MaxText.
 *
 * A job says by which type and collation (TextOrderSpec); gpuvmd holds the collation itself, of the same provider,
 * locale and version as the server's (engine/collators.h). Collations are deterministic: what a locale
 * takes for equal is ordered by its bytes, so values are equal just where their bytes are.
 */
#ifndef GPUVM_VM_TEXT_ORDER_H
#define GPUVM_VM_TEXT_ORDER_H

#include "vm/text_match.h"

namespace gpuvm {

enum class TextOrderKind : uint32_t
{
	Bytes = 0,					/* without a locale: memcmp(), then the length (collations C and POSIX, bytea, uuid), or as ValueOrder has it */
	Libc = 1,
	Icu = 2,					/* of UTF-8 */
};

/* Sent through the arena. Texts end with a zero. */
struct TextOrderSpec
{
	TextOrderKind kind;
	int16_t		attlen;			/* of the values: -1 varlena, or bytes of a fixed length */
	uint16_t	flags;			/* TextPatternFlag: TEXT_TRIM_BLANKS, TEXT_TRIM_ZEROES, and a ValueOrder */
	char		locale[96];
	char		version[40];	/* of the locale, as the server knows it */
};
static_assert(sizeof(TextOrderSpec) == 144, "sent between processes");

/* A locale's comparison, by any threads at once. Throws std::bad_alloc. */
class Collator
{
public:
	virtual ~Collator() = default;
	/* Of values that have a zero behind them, if it wants one. */
	virtual int	compare(const TextValue &a, const TextValue &b) const = 0;
	virtual bool wants_zero() const = 0;
	/* Of two values the less one's is not greater. */
	virtual uint64_t beginning(const TextValue &value) const = 0;
};

class TextOrder
{
public:
	/* References are offsets from `arena`, of `bytes` bytes. `collator`: of kinds but Bytes; it outlives this. */
	TextOrder(const TextOrderSpec &spec, const Collator *collator, const char *arena, uint64_t bytes);

	/* What of the value counts; false, and an empty one, where the reference leads to none. */
	bool		value(uint64_t reference, TextValue *to) const;
	/* `terminated`: there is a zero behind both. */
	int			compare(const TextValue &a, const TextValue &b, bool terminated = false) const;
	int			compare(uint64_t a, uint64_t b) const;
	uint64_t	beginning(const TextValue &value) const;
	void		prefetch(uint64_t reference) const;
	bool		by_bytes() const { return collator_ == nullptr; }
	/* Where values begin alike, does what follows decide? */
	bool		byte_by_byte() const { return collator_ == nullptr && order() == ValueOrder::Bytes; }
	int			attlen() const { return attlen_; }
	uint32_t	flags() const { return flags_; }

private:
	ValueOrder	order() const { return static_cast<ValueOrder>(flags_ >> TEXT_ORDER_SHIFT); }

	const Collator *collator_;
	const unsigned char *arena_;
	uint64_t	bytes_;
	int			attlen_;
	uint16_t	flags_;
};

}  // namespace gpuvm

#endif
