/*
 * cpu_text_compare.cc: values of variable length compared as a collation has it (vm/text_order.h), lane by lane: what a
 * collation costs is far more than what finds the value.
 */
#include "vm/cpu_job.h"
#include "vm/text_order.h"

namespace gpuvm {

constexpr uint32_t AHEAD = 16;	/* lanes whose values are asked for before they are compared */

/* TextMatch with a pattern that has a collation. */
void
CpuProgram::text_collate(WorkerState &s, const Step &step) const
{
	const TextStep &text = texts[step.list];
	const BoundColumn &column = s.columns[text.column];
	const TextImages &images = column.images;
	const TextPattern *pattern = text.search.pattern;
	const TextValue constant = {pattern->bytes(), pattern->nbytes};
	const char *codes = column.data + static_cast<size_t>(s.row0) * column.width;
	const uint32_t n = text_lanes(s, step);
	uint64_t   *out = s.own_bits[step.dst];

	memset(out, 0, CPU_WORDS * sizeof(uint64_t));
	for (uint32_t k = 0; k < n; k++)
	{
		const uint32_t lane = s.rows[k];
		uint64_t	place = 0;
		TextValue	value;

		memcpy(&place, codes + static_cast<size_t>(lane) * column.width, column.width);
		if (place >= images.nbytes || !text_value(images.bytes + place, images.nbytes - place, pattern->attlen, &value))
			continue;
		text_trim(pattern->flags, &value);
		if (text_outcome(text.order->compare(value, constant)) & pattern->outcomes)
			out[lane / 64] |= uint64_t{1} << lane % 64;
	}
}

/* TextCompare, of bytes, too. Lanes that are null or do not live keep what lay there: less, equal or greater all the same. */
void
CpuProgram::text_compare(WorkerState &s, const Step &step) const
{
	const TextOrder &order = text_keys->orders[static_cast<size_t>(step.list)];
	const int64_t *a = static_cast<const int64_t *>(values_of(s, step.a)), *b = static_cast<const int64_t *>(values_of(s, step.b));
	int64_t    *to = reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot]);
	RegState   &dst = s.regs[step.dst];
	const uint64_t *a_nulls = s.regs[step.a].nulls, *b_nulls = s.regs[step.b].nulls;
	uint64_t	lanes[CPU_WORDS];

	dst.nulls = either_null(s, step.dst, a_nulls, b_nulls);
	for (int w = 0; w < CPU_WORDS; w++)
		lanes[w] = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0);

	const uint32_t n = kernels->select(lanes, s.rows);

	for (uint32_t k = 0; k < n; k++)
	{
		const uint32_t lane = s.rows[k];
		TextValue	x, y;

		if (k + AHEAD < n)
		{
			order.prefetch(static_cast<uint64_t>(a[s.rows[k + AHEAD]]));
			order.prefetch(static_cast<uint64_t>(b[s.rows[k + AHEAD]]));
		}
		if (!order.value(static_cast<uint64_t>(a[lane]), &x) || !order.value(static_cast<uint64_t>(b[lane]), &y))
			s.errors |= ERR_INT_OVERFLOW;	/* as TextKey has it */

		const int	cmp = order.compare(x, y);

		to[lane] = cmp < 0 ? -1 : cmp > 0;
	}
}

}  // namespace gpuvm
