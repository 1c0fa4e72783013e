/* group_keys.cuh: Group: digits of keys packed into words, and from words to targets. See groups.h. */
#ifndef GPUVM_CUDA_GROUP_KEYS_CUH
#define GPUVM_CUDA_GROUP_KEYS_CUH

#include "group_block.cuh"

namespace gpuvm {
namespace cuda {

/* -- packing keys ------------------------------------------------------------------------- */

/* Row `row` of the lane: an integer, or a float's bits, with one NaN. */
template <int R>
GPUVM_D uint64_t
key_bits(const Machine<R> &m, const OpView &op, Type type, uint32_t truths, int row)
{
	switch (type)
	{
		case Type::Bool:
			return truths >> row & 1;
		case Type::I64:
			return *reinterpret_cast<const uint64_t *>(place_of<uint64_t>(m, op.a()) + row * 8);
		case Type::F32:
		{
			uint32_t	bits = *reinterpret_cast<const uint32_t *>(place_of<uint32_t>(m, op.a()) + row * 4);

			return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
		}
		case Type::F64:
		{
			uint64_t	bits = *reinterpret_cast<const uint64_t *>(place_of<uint64_t>(m, op.a()) + row * 8);

			return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000 ? 0x7ff8000000000000 : bits;
		}
		default:
			return static_cast<uint64_t>(static_cast<int64_t>(*reinterpret_cast<const int32_t *>(place_of<int32_t>(m, op.a()) + row * 4)));
	}
}

/* Which zeroes of a float key there are: they are different keys here, and one in PostgreSQL. */
GPUVM_D void
note_zero(GroupArea *area, uint32_t key, bool negative)
{
	uint32_t	bit = 1u << (2 * key + (negative ? 1 : 0));

	if (!(*static_cast<volatile uint32_t *>(&area->key_zeroes) & bit))
		atomicOr(&area->key_zeroes, bit);
}

/* word (+)= digit * stride; any key, whole words. */
template <typename W, int R>
GPUVM_D void
pack_any(Machine<R> &m, const OpView &op, GroupArea *area)
{
	const GroupKey &key = area->keys[op.aux()];
	uint32_t	nulls = mask_read(m, op.a_null());
	uint32_t	truths = key.type == Type::Bool ? mask_read(m, op.a()) : 0;
	bool		null_digit = op.flags() & DOP_NEGATED;
	W		   *to = reinterpret_cast<W *>(place_of<W>(m, op.dst()));

#pragma unroll 1
	for (int row = 0; row < R; row++)
	{
		bool		null = nulls >> row & 1;
		uint64_t	digit;

		if (null_digit)
			digit = null ? key.null_stride : 0;
		else if (null)
			digit = key.null_word == KEY_NO_WORD ? key.values * key.stride : 0;
		else
		{
			uint64_t	bits = key_bits(m, op, key.type, truths, row);
			uint64_t	top = key.values - 1;

			if (type_is_float(key.type) && (m.live >> row & 1))
			{
				uint64_t	minus_zero = key.type == Type::F32 ? 0x80000000 : 1ull << 63;

				if (bits == 0 || bits == minus_zero)
					note_zero(area, op.aux(), bits != 0);
			}
			digit = bits - static_cast<uint64_t>(key.lo);
			digit = (digit < top ? digit : top) * key.stride;
		}
		to[row] = static_cast<W>((op.flags() & DOP_STORES ? 0 : to[row]) + digit);
	}
}

/*
 * The same for an integer of 32 bits in a word of 32 bits. The last key's makes
 * targets at once (DOP_CHECKED) if all groups are shared.
 */
template <int R>
GPUVM_D void
pack_ints(Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const GroupKey &key = area->keys[op.aux()];
	uint32_t	nulls = mask_read(m, op.a_null());
	uint32_t	lo = static_cast<uint32_t>(key.lo), top = static_cast<uint32_t>(key.values - 1);
	uint32_t	stride = static_cast<uint32_t>(key.stride), null_digit = static_cast<uint32_t>(key.values) * stride;
	const CodedOperand<R> from(m, op.a(), op.column(), false, 0);
	char	   *to = place_of<uint32_t>(m, op.dst());
	bool		first = op.flags() & DOP_STORES;
	bool		finds = (op.flags() & DOP_CHECKED) && area->table.shared_all;
	uint32_t	replica_bits = area->table.replica_bits, replica = m.lane & ((1u << replica_bits) - 1);
	Order<uint32_t, R> order(m);
	uint32_t	nulls_by_visit = order.turn(nulls);

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		int32_t		x[4];
		uint32_t	word[4] = {0, 0, 0, 0};

		from.get(k, order.x, x);
		if (!first)
			load4(to, k, order.x, word);
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			word[i] += nulls_by_visit >> (4 * k + i) & 1 ? null_digit : min(static_cast<uint32_t>(x[i]) - lo, top) * stride;
			if (finds)
				word[i] = TARGET_SHARED | word[i] << replica_bits | replica;
		}
		store4(to, k, order.x, word);
	}
}

/* -- rows by partitions --------------------------------------------------------------- */

/*
 * Four rows of the lane at a time, in an order that keeps lanes out of each
 * other's banks: with 4-byte and 8-byte values alike, chunks of four rows.
 */
template <int R>
struct Chunks
{
	uint32_t	turn;

	GPUVM_D explicit Chunks(const Machine<R> &m) : turn(Order<uint32_t, R>(m).x / 16) {}
	GPUVM_D int chunk(int k) const { return static_cast<int>(static_cast<uint32_t>(k) ^ turn); }
};

/* Where the block has its counters and regions: in registers, for no atomic changes them. */
struct RecordPlaces
{
	uint32_t	counters_at, tags_at, keys_at;
	uint32_t	region;			/* records */
	uint32_t	first, step;	/* the place of partition 0's, and to the next partition's */

	GPUVM_D explicit RecordPlaces(const GroupArea *area)
		: counters_at(area->counters_at), tags_at(area->record_tags_at), keys_at(area->record_from[0]), region(area->table.region_records),
		  first(blockIdx.x * area->table.region_records), step(area->table.writers * area->table.region_records) {}
};

/* The slot, made a record; TARGET_NONE if the partition has no room for one more. */
GPUVM_D uint32_t
record_target(const RecordPlaces &places, uint32_t partition, uint32_t key, uint32_t slot)
{
	uint32_t   *counter = shared_at<uint32_t>(places.counters_at) + partition;
	uint32_t	n = *static_cast<volatile uint32_t *>(counter);

	/* Lanes that add to one counter wait for each other: not where one group has most rows. */
	if (n < places.region)
		n = atomicAdd(counter, 1u);
	if (n >= places.region)
		return TARGET_NONE;
	shared_at<uint32_t>(places.tags_at)[slot] = places.first + partition * places.step + n;
	shared_at<uint32_t>(places.keys_at)[slot] = key;
	return TARGET_SHARED | slot;
}

/*
 * Targets of rows that go by partitions; the records of the tile before leave first.
 * Four rows of one group are no records: they are one update, and tables in the keys'
 * order have many such. Rows for which a region has no room add to the table at once.
 */
template <int R>
GPUVM_D void
find_by_partitions(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const char *words = place_of<uint32_t>(m, op.a());
	char	   *to = place_of<uint32_t>(m, op.dst());
	const RecordPlaces places(area);
	Chunks<R>	chunks(m);

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		const int	at = chunks.chunk(k);
		const uint32_t slot = record_slot(area, R, static_cast<uint32_t>(4 * k));
		const uint32_t bits = m.live >> (4 * at) & 15;
		uint32_t	key[4];
		uint32_t	t[4] = {0, 0, 0, 0};

		load4(words, at, 0, key);

		const bool	alike = bits == 15 && key[0] == key[1] && key[1] == key[2] && key[2] == key[3];

		write_records(area, slot);
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			if (!(bits >> i & 1))
				continue;
			t[i] = alike ? TARGET_NONE : record_target(places, partition_of(area->table, key[i]), key[i], slot + 32 * static_cast<uint32_t>(i));
			if (t[i] == TARGET_NONE)
				t[i] = alike && i > 0 ? t[0] : target_of(area, key[i], m.lane);
		}
		store4(to, at, 0, t);
	}
}

/* -- Group ---------------------------------------------------------------------------------- */

/* A digit more in the packed keys. */
template <int R>
GPUVM_D void
op_group_key(Machine<R> &m, const OpView &op, GroupArea *area)
{
	Type		type = area->keys[op.aux()].type;

	if (op.flags() & DOP_WIDE)
		pack_any<uint64_t>(m, op, area);
	else if ((type == Type::I32 || type == Type::I16) && !(op.flags() & DOP_NEGATED))
		pack_ints(m, op, area);
	else
		pack_any<uint32_t>(m, op, area);
}

/* Rows that found no place die, and the table is to be a larger one. */
template <int R>
GPUVM_D void
fail_rows(Machine<R> &m, GroupArea *area, uint32_t full)
{
	m.live &= ~full;
	if (full)
		*static_cast<volatile uint32_t *>(&area->overflow) = 1;
}

/* Targets in a hashed table, by keys of one word. */
template <typename W, int R>
GPUVM_D void
find_words(Machine<R> &m, const OpView &op, GroupArea *area)
{
	const char *words = place_of<W>(m, op.a());
	char	   *to = place_of<uint32_t>(m, op.dst());
	Chunks<R>	chunks(m);
	uint32_t	full = *static_cast<volatile uint32_t *>(&area->overflow) ? m.live : 0;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		const int	at = chunks.chunk(k);
		uint32_t	bits = (m.live & ~full) >> (4 * at) & 15;
		W			w[4];
		uint32_t	t[4];

		if (bits == 0)
			continue;
		load4(words, at, 0, w);

		const uint64_t word[4] = {w[0], w[1], w[2], w[3]};

		find_rows(area, word, bits, t);
#pragma unroll
		for (int i = 0; i < 4; i++)
			if ((bits >> i & 1) && t[i] == TARGET_NONE)
			{
				full |= 1u << (4 * at + i);
				bits &= ~(1u << i);
			}
		targets_of(area, bits, m.lane, t);
		store4(to, at, 0, t);
	}
	fail_rows(m, area, full);
}

/* By keys of several words. */
template <int R>
GPUVM_D void
find_long_keys(Machine<R> &m, const OpView &op, GroupArea *area)
{
	const char *words = place_of<uint64_t>(m, op.a());
	uint32_t   *to = reinterpret_cast<uint32_t *>(place_of<uint32_t>(m, op.dst()));
	uint32_t	full = *static_cast<volatile uint32_t *>(&area->overflow) ? m.live : 0;

#pragma unroll 1
	for (int row = 0; row < R; row++)
	{
		if (!((m.live & ~full) >> row & 1))
			continue;

		const uint32_t found = find_row(area, words + row * 8, op.aux(), 32 * R * 8);

		if (found == TARGET_NONE)
			full |= 1u << row;
		else
			to[row] = target_of(area, found, m.lane);
	}
	fail_rows(m, area, full);
}

/* From packed keys to targets; false when no row lives any more, for lack of room. */
template <int R>
GPUVM_D bool
op_group_find(Machine<R> &m, const OpView &op, GroupArea *area)
{
	const GroupTable &table = area->table;
	char	   *to = place_of<uint32_t>(m, op.dst());

	if ((op.flags() & DOP_CHECKED) && table.shared_all)
		return true;
	if (table.partition_bits)
	{
		find_by_partitions(m, op, area);
		return true;
	}
	if (table.kind != GroupTableKind::Hashed)
	{
		Operand<uint32_t, R> numbers = operand_a<uint32_t>(m, op);	/* without keys an immediate */
		Order<uint32_t, R> order(m);
		bool		direct = table.shared_all;
		uint32_t	live = order.turn(m.live);
		uint32_t	replica_bits = table.replica_bits, replica = m.lane & ((1u << replica_bits) - 1);

#pragma unroll 1
		for (int k = 0; k < R / 4; k++)
		{
			uint32_t	t[4];

			numbers.get(k, order.x, t);
			if (direct)
			{
#pragma unroll
				for (int i = 0; i < 4; i++)
					t[i] = TARGET_SHARED | t[i] << replica_bits | replica;
			}
			else
				targets_of(area, live >> (4 * k), m.lane, t);
			store4(to, k, order.x, t);
		}
		return true;
	}

	if (op.aux() > 1)
		find_long_keys(m, op, area);
	else if (op.flags() & DOP_WIDE)
		find_words<uint64_t>(m, op, area);
	else
		find_words<uint32_t>(m, op, area);
	return __any_sync(~0u, m.live != 0);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
