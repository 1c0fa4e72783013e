/*
 * text_key.cuh: TextKey. Values of the job's columns are equal where their bytes are; the first one that comes to a slot of
 * the job's table stands for all that have its bytes. A slot is taken once, by an atomic exchange, and never changes; hashes only say
 * where to look. A lane takes every 32nd row of the tile, as TextMatch does; long values are read by the whole warp, one after the other.
 */
#ifndef GPUVM_CUDA_TEXT_KEY_CUH
#define GPUVM_CUDA_TEXT_KEY_CUH

#include "scalars.cuh"
#include "vm/text_match.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t LONG_TEXT = 256;		/* longer ones are the warp's */
constexpr uint32_t LONG_STEP = 1024;	/* bytes that a warp compares before it asks whether they differ */
constexpr int TEXT_TAG_SHIFT = 48;		/* in a slot, bits of the hash above the reference (VARIABLE_MAX_REFERENCE) */

/* Words of four bytes from any address on; the last one is filled up with zeroes. No aligned word is read that has no byte of the text. */
struct TextWords
{
	const uint32_t *at;
	uint32_t	skipped;		/* bytes of the word at hand before the next one to come */
	uint32_t	here;

	GPUVM_D TextWords(const unsigned char *bytes, uint32_t left)
		: skipped(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bytes) & 3))
	{
		at = reinterpret_cast<const uint32_t *>(bytes - skipped);
		here = left > 0 ? *at : 0;
	}
	/* `left`: at least one byte, this word's included */
	GPUVM_D uint32_t next(uint32_t left)
	{
		uint64_t	both = here;

		if (skipped + left > 4)
		{
			here = *++at;
			both |= static_cast<uint64_t>(here) << 32;
		}

		const uint32_t word = static_cast<uint32_t>(both >> (8 * skipped));

		return left < 4 ? word & ((1u << (8 * left)) - 1) : word;
	}
};

GPUVM_D uint64_t
mix_text(uint64_t hash, uint32_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

/* A lane's value. */
GPUVM_D uint64_t
hash_text(const unsigned char *bytes, uint32_t len)
{
	uint64_t	hash = len;
	TextWords	words(bytes, len);

#pragma unroll 1
	for (uint32_t at = 0; at < len; at += 4)
		hash = mix_text(hash, words.next(len - at));
	return mix_text(hash, 0);
}

GPUVM_D bool
same_text(const unsigned char *a, const unsigned char *b, uint32_t len)
{
	TextWords	x(a, len), y(b, len);

#pragma unroll 1
	for (uint32_t at = 0; at < len; at += 4)
		if (x.next(len - at) != y.next(len - at))
			return false;
	return true;
}

GPUVM_D uint32_t
word_of_text(const unsigned char *bytes, uint32_t left)
{
	return TextWords(bytes, left).next(left);
}

/* A value of all lanes: each hashes every 32nd word, from a begin of its own, so that words that are exchanged make a difference. */
GPUVM_D uint64_t
hash_long_text(const unsigned char *bytes, uint32_t len, uint32_t lane)
{
	uint64_t	hash = mix_text(len, lane);

#pragma unroll 4
	for (uint32_t at = 4 * lane; at < len; at += 128)
		hash = mix_text(hash, word_of_text(bytes + at, len - at));
	hash = mix_text(hash, 0);
	for (int by = 16; by > 0; by /= 2)
		hash += __shfl_xor_sync(~0u, static_cast<unsigned long long>(hash), by);
	return mix_text(hash, 0);
}

GPUVM_D bool
same_long_text(const unsigned char *a, const unsigned char *b, uint32_t len, uint32_t lane)
{
#pragma unroll 1
	for (uint32_t from = 0; from < len; from += LONG_STEP)
	{
		const uint32_t end = len - from > LONG_STEP ? from + LONG_STEP : len;
		bool		differ = false;

#pragma unroll 4
		for (uint32_t at = from + 4 * lane; at < end; at += 128)
			differ |= word_of_text(a + at, len - at) != word_of_text(b + at, len - at);
		if (__any_sync(~0u, differ))
			return false;
	}
	return true;
}

/* What a reference leads to. */
struct KeyText
{
	TextValue	value;
	int32_t		attlen;
	uint32_t	flags;
};

/* False where there is none. Mostly it is among the images `near`, where the one before was. */
GPUVM_D bool
text_of_reference(const TextKeyTable &table, uint64_t reference, uint32_t *near, KeyText *out)
{
	const TextKeyImages *all = global_memory(table.images);
	auto		within = [=](const TextKeyImages &images) { return reference >= images.first && reference < images.end; };

	if (table.nimages == 0)
		return false;
	if (!within(all[*near]))
	{
		uint32_t	at = 0;

#pragma unroll 1
		for (uint32_t n = table.nimages; n > 1; n -= n / 2)
			at += all[at + n / 2].first <= reference ? n / 2 : 0;
		if (!within(all[at]))
			return false;
		*near = at;
	}

	const TextKeyImages images = all[*near];
	const unsigned char *bytes = global_memory(reinterpret_cast<const unsigned char *>(images.data));

	out->attlen = images.attlen;
	out->flags = images.flags;
	return text_value(bytes + (reference - images.first), images.end - reference, images.attlen, &out->value);
}

/* What another lane has. */
GPUVM_D const unsigned char *
bytes_of_lane(const unsigned char *bytes, int lane)
{
	return reinterpret_cast<const unsigned char *>(__shfl_sync(~0u, static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(bytes)), lane));
}

/* The key of each lane's reference, 0 where `there` is none; all lanes call. */
GPUVM_D uint64_t
find_text_key(const TextKeyTable &table, bool there, uint64_t reference, uint32_t *near, uint32_t *their_near, uint32_t *errors)
{
	const uint32_t lane = threadIdx.x % 32;
	KeyText		mine = {};

	if (there && !text_of_reference(table, reference, near, &mine))
	{
		*errors |= ERR_INT_OVERFLOW;	/* as on the CPU */
		there = false;
	}

	const bool	is_long = there && mine.value.len > LONG_TEXT;
	uint64_t	hash = there && !is_long ? hash_text(mine.value.bytes, mine.value.len) : 0;

	for (uint32_t left = __ballot_sync(~0u, is_long); left != 0; left &= left - 1)
	{
		const int	of = __ffs(static_cast<int>(left)) - 1;
		const uint64_t its = hash_long_text(bytes_of_lane(mine.value.bytes, of), __shfl_sync(~0u, mine.value.len, of), lane);

		hash = static_cast<int>(lane) == of ? its : hash;
	}
	hash &= table.hash_mask;

	const uint64_t entry = hash >> TEXT_TAG_SHIFT << TEXT_TAG_SHIFT | reference;
	uint64_t	at = hash & table.slot_mask, probes = 0, key = 0;
	unsigned long long *slots = global_memory(table.slots);

	while (__any_sync(~0u, there && key == 0))
	{
		uint64_t	taken = 0;
		KeyText		theirs = {};
		bool		alike = false;

		if (there && key == 0)
		{
			/* the images were there before the job, so a slot's content is all that there is to be seen */
			taken = *static_cast<volatile unsigned long long *>(slots + at);
			if (taken == 0)
				taken = atomicCAS(slots + at, 0ull, static_cast<unsigned long long>(entry));
			if (taken == 0 || taken == entry)
				key = reference;
			else
				alike = (taken ^ entry) >> TEXT_TAG_SHIFT == 0 &&
					text_of_reference(table, taken & VARIABLE_MAX_REFERENCE, their_near, &theirs) &&
					theirs.attlen == mine.attlen && theirs.value.len == mine.value.len;
		}

		bool		same = alike && !is_long && same_text(mine.value.bytes, theirs.value.bytes, mine.value.len);

		for (uint32_t left = __ballot_sync(~0u, alike && is_long); left != 0; left &= left - 1)
		{
			const int	of = __ffs(static_cast<int>(left)) - 1;
			const bool	its = same_long_text(bytes_of_lane(mine.value.bytes, of), bytes_of_lane(theirs.value.bytes, of),
											 __shfl_sync(~0u, mine.value.len, of), lane);

			same |= static_cast<int>(lane) == of && its;
		}
		if (same)
			key = taken & VARIABLE_MAX_REFERENCE;
		at = (at + 1) & table.slot_mask;
		if (there && key == 0 && ++probes > table.slot_mask)
		{
			*errors |= ERR_INT_OVERFLOW;	/* all slots are taken, which only references that are none can lead to */
			there = false;
		}
	}
	return key;
}

/* Out of line for the same reason as execute_rare(). */
template <int R>
__device__ __noinline__ void
execute_text_key(uint32_t pc, uint32_t region, uint32_t staged_lane, uint32_t live)
{
	OpView		op(pc);
	Machine<R>	m = {region, threadIdx.x % 32, staged_lane, live};
	const TextKeyTable &table = region_header(m)->args->text_keys;
	const int64_t *from = reinterpret_cast<const int64_t *>(shared_memory + region + op.a());
	int64_t    *to = reinterpret_cast<int64_t *>(shared_memory + region + op.dst());
	const uint32_t nulls = mask_read(m, op.a_null()), active = live & ~nulls;
	uint32_t	near = 0, their_near = 0, errors = 0;

	/* values are other lanes' before and behind this */
	__syncwarp();
#pragma unroll 1
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t row = i * 32 + m.lane;
		const bool	there = __shfl_sync(~0u, active, static_cast<int>(row / R)) >> row % R & 1;
		const int64_t reference = !there ? 0 : op.flags() & DOP_A_IMM ? op.imm_a() : from[row];
		const uint64_t key = find_text_key(table, there, static_cast<uint64_t>(reference), &near, &their_near, &errors);

		if (there)
			to[row] = static_cast<int64_t>(key);
	}
	__syncwarp();
	mask_write(m, op.dst_null(), nulls);
	raise(m, errors);
}

/* TextCompare by bytes, of the lane's own rows. */
template <int R>
GPUVM_D void
execute_text_compare(Machine<R> &m, const OpView &op)
{
	const TextKeyTable &table = region_header(m)->args->text_keys;
	const Operand<int64_t, R> a = operand_a<int64_t>(m, op), b = operand_b<int64_t>(m, op);
	int64_t    *to = reinterpret_cast<int64_t *>(place_of<int64_t>(m, op.dst()));
	const uint32_t nulls = either_null(m, op);
	uint32_t	near_a = 0, near_b = 0, errors = 0;

#pragma unroll 1
	for (int i = 0; i < R; i++)
	{
		KeyText		x = {}, y = {};

		if (!(m.live >> i & 1) || (nulls >> i & 1))
			continue;
		if (!text_of_reference(table, static_cast<uint64_t>(a.get_one(i, 0)), &near_a, &x) ||
			!text_of_reference(table, static_cast<uint64_t>(b.get_one(i, 0)), &near_b, &y))
			errors |= ERR_INT_OVERFLOW;	/* as on the CPU */
		text_trim(static_cast<uint8_t>(x.flags), &x.value);
		text_trim(static_cast<uint8_t>(y.flags), &y.value);

		const int	cmp = text_compare(static_cast<uint8_t>(x.flags), x.value, y.value);

		to[i] = cmp < 0 ? -1 : cmp > 0;
	}
	mask_write(m, op.dst_null(), nulls);
	raise(m, errors);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
