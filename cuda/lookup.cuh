/* lookup.cuh: values of maps (maps.h). */
#ifndef GPUVM_CUDA_LOOKUP_CUH
#define GPUVM_CUDA_LOOKUP_CUH

#include "scalars.cuh"

namespace gpuvm {
namespace cuda {

/* Entries of the map that the lane's rows have, four at a time: f(k, entries). */
template <int R, typename F>
GPUVM_D void
each_entry(const Machine<R> &m, const OpView &op, const DeviceMap &map, F f)
{
	const auto	codes = source_a<true, int32_t>(m, op);
	const uint32_t nulls = mask_read(m, op.a_null()), none = map.nentries + 1;
	const uint32_t of_null = op.aux() & LOOKUP_NULL ? map.nentries : none;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		int32_t		code[4];
		uint32_t	entry[4];

		codes.get(k, 0, code);
#pragma unroll
		for (int i = 0; i < 4; i++)
			entry[i] = nulls >> (4 * k + i) & 1 ? of_null : static_cast<uint32_t>(code[i]) < map.nentries ? static_cast<uint32_t>(code[i]) : none;
		f(k, entry);
	}
}

/* Four bits of a bitmap. One word is all of a small one. */
GPUVM_D uint32_t
four_bits(const uint32_t *bitmap, bool one_word, const uint32_t (&entry)[4])
{
	uint32_t	word[4], bits = 0;

	word[0] = bitmap[one_word ? 0 : entry[0] / 32];
#pragma unroll
	for (int i = 1; i < 4; i++)
		word[i] = one_word ? word[0] : bitmap[entry[i] / 32];
#pragma unroll
	for (int i = 0; i < 4; i++)
		bits |= (word[i] >> entry[i] % 32 & 1) << i;
	return bits;
}

template <typename V, int R>
GPUVM_D uint32_t
lookup_values(Machine<R> &m, const OpView &op, const DeviceMap &map)
{
	const V    *values = global_memory(reinterpret_cast<const V *>(map.values));
	const uint32_t *null_bits = global_memory(reinterpret_cast<const uint32_t *>(map.nulls));
	const bool	one_word = map.nentries + 2 <= 32, nullable = op.dst_null() != OPERAND_NONE;
	char	   *to = place_of<V>(m, op.dst());
	uint32_t	nulls = 0;

	each_entry(m, op, map, [&](int k, const uint32_t (&entry)[4]) {
		V			v[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
			v[i] = values[entry[i]];
		if (nullable)
			nulls |= four_bits(null_bits, one_word, entry) << (4 * k);
		store4(to, k, 0, v);
	});
	return nulls;
}

template <int R>
GPUVM_D uint32_t
lookup_truths(Machine<R> &m, const OpView &op, const DeviceMap &map)
{
	const uint32_t *truth_bits = global_memory(reinterpret_cast<const uint32_t *>(map.values));
	const uint32_t *null_bits = global_memory(reinterpret_cast<const uint32_t *>(map.nulls));
	const bool	one_word = map.nentries + 2 <= 32, nullable = op.dst_null() != OPERAND_NONE;
	uint32_t	truths = 0, nulls = 0;

	each_entry(m, op, map, [&](int k, const uint32_t (&entry)[4]) {
		truths |= four_bits(truth_bits, one_word, entry) << (4 * k);
		if (nullable)
			nulls |= four_bits(null_bits, one_word, entry) << (4 * k);
	});
	mask_write(m, op.dst(), truths);
	return nulls;
}

/* Lookup; lowering made its type one that is as wide as the map's. */
template <int R>
GPUVM_D void
op_lookup(Machine<R> &m, const OpView &op)
{
	const DeviceMap map = region_header(m)->args->maps[op.column()];

	switch (op.code())
	{
		case generic_code(Opcode::Lookup, Type::Bool):
			mask_write(m, op.dst_null(), lookup_truths(m, op, map));
			break;
		case generic_code(Opcode::Lookup, Type::I32):
			mask_write(m, op.dst_null(), lookup_values<uint32_t>(m, op, map));
			break;
		case generic_code(Opcode::Lookup, Type::I64):
			mask_write(m, op.dst_null(), lookup_values<uint64_t>(m, op, map));
			break;
		default:
			__builtin_unreachable();
	}
}

}  // namespace cuda
}  // namespace gpuvm

#endif
