/* cpu_results.cc: result rows of a vector into the job's area. */
#include <cstring>

#include "core/bits.h"
#include "vm/cpu_job.h"
#include "vm/cpu_kernels.h"

namespace gpuvm {

template <typename T>
static void
copy_lanes(const void *from, const uint16_t *lanes, uint32_t n, void *to)
{
	for (uint32_t i = 0; i < n; i++)
		static_cast<T *>(to)[i] = static_cast<const T *>(from)[lanes[i]];
}

static void
copy_values(const void *from, int width, const uint16_t *lanes, uint32_t n, void *to)
{
	if (width == 4)
		copy_lanes<uint32_t>(from, lanes, n, to);
	else
		copy_lanes<uint64_t>(from, lanes, n, to);
}

template <typename T>
static void
copy_codes(const BoundColumn &column, const char *codes, bool sign, const uint16_t *lanes, uint32_t n, void *to)
{
	for (uint32_t i = 0; i < n; i++)
		static_cast<T *>(to)[i] = static_cast<T>(code_value(column, codes, lanes[i], sign));
}

/* A few rows of many columns: of a column that nothing has read yet only their values are looked at. */
void
CpuProgram::emit_few(WorkerState &s) const
{
	const uint32_t n = kernels->select(s.live, s.rows);

	for (size_t c = 0; c < result_regs.size(); c++)
	{
		const int	reg = result_regs[c];
		const RegInfo &info = regs[reg];
		const int	width = type_width(result_types[c]);
		const uint64_t *nulls = s.regs[reg].nulls;
		char	   *to = s.area + s.layout[c].values + static_cast<size_t>(s.emitted) * width;

		if (result_types[c] == Type::Bool)
		{
			const uint64_t *bits = bits_of(s, reg);

			for (uint32_t i = 0; i < n; i++)
				to[i] = bit_get(bits, s.rows[i]);
		}
		else if (info.kind == RegKind::Column && !s.regs[reg].ready)
		{
			const BoundColumn &column = s.columns[info.column];
			const char *codes = column.data + static_cast<size_t>(s.row0) * column.width;
			const bool	sign = column.width == type_natural_width(info.type);

			if (column.direct)
				copy_values(codes, width, s.rows, n, to);
			else if (width == 4)
				copy_codes<int32_t>(column, codes, sign, s.rows, n, to);
			else
				copy_codes<int64_t>(column, codes, sign, s.rows, n, to);
		}
		else
			copy_values(values_of(s, reg), width, s.rows, n, to);
		for (uint32_t i = 0; nulls != nullptr && i < n; i++)
			if (bit_get(nulls, s.rows[i]))
				bit_set(reinterpret_cast<uint64_t *>(s.area + s.layout[c].nulls), s.emitted + i);
	}
	s.emitted += n;
}

/* Result: the live lanes, packed, behind what the area already has. */
void
CpuProgram::emit_rows(WorkerState &s) const
{
	const uint32_t n = kernels->count(s.live);

	if (n < SPARSE_LANES)
	{
		emit_few(s);
		return;
	}
	for (size_t c = 0; c < result_regs.size(); c++)
	{
		const int	reg = result_regs[c];
		const int	width = type_width(result_types[c]);
		const void *values = values_of(s, reg);
		const uint64_t *nulls = s.regs[reg].nulls;
		char	   *to = s.area + s.layout[c].values + static_cast<size_t>(s.emitted) * width;

		if (result_types[c] == Type::Bool)
		{
			char	   *at = to;

			for (int w = 0; w < CPU_WORDS; w++)
				for (uint64_t m = s.live[w]; m != 0; m &= m - 1)
					*at++ = (static_cast<const uint64_t *>(values)[w] >> __builtin_ctzll(m)) & 1;
		}
		else
			kernels->compress(width, s.live, values, to);
		if (nulls)
		{
			uint64_t   *bits = reinterpret_cast<uint64_t *>(s.area + s.layout[c].nulls);
			uint32_t	at = s.emitted;

			for (int w = 0; w < CPU_WORDS; w++)
			{
				const uint64_t m = s.live[w];

				/* the positions of null lanes among the live ones */
				for (uint64_t null = m & nulls[w]; null != 0; null &= null - 1)
					bit_set(bits, at + static_cast<uint32_t>(__builtin_popcountll(m & ((null & -null) - 1))));
				at += static_cast<uint32_t>(__builtin_popcountll(m));
			}
		}
	}
	s.emitted += n;
}

}  // namespace gpuvm
