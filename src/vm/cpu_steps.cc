/*
 * cpu_steps.cc: steps that are neither arithmetic nor comparisons: logic, choices, lists, maps, texts (see cpu_job.h). Each is
 * entered once a vector.
 */
#include <algorithm>
#include <cstring>

#include "vm/cpu_job.h"
#include "vm/semantics.h"

namespace gpuvm {

alignas(64) static const uint64_t all_zero[CPU_WORDS] = {};

/* Three-valued logic on bitmaps. */
void
CpuProgram::logic(WorkerState &s, const Step &step) const
{
	const uint64_t *a = step.kind == StepKind::IsNull || step.kind == StepKind::NotNull ? all_zero : bits_of(s, step.a);
	const uint64_t *b = step.b >= 0 ? bits_of(s, step.b) : all_zero;
	const uint64_t *an = s.regs[step.a].nulls;
	const uint64_t *bn = step.b >= 0 ? s.regs[step.b].nulls : nullptr;
	uint64_t   *out = s.own_bits[step.dst];
	uint64_t   *out_nulls = s.own_nulls[step.dst];
	RegState   &dst = s.regs[step.dst];

	dst.values = out;
	dst.nulls = nullptr;
	switch (step.kind)
	{
		case StepKind::Not:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~a[w];
			dst.nulls = an;
			return;
		case StepKind::And:
		case StepKind::Or:
			{
				/* OR is AND of the complements */
				const uint64_t flip = step.kind == StepKind::Or ? ~uint64_t(0) : 0;

				if (!an)
					an = all_zero;
				if (!bn)
					bn = all_zero;
				for (int w = 0; w < CPU_WORDS; w++)
				{
					const uint64_t at = (a[w] ^ flip) & ~an[w], af = ~(a[w] ^ flip) & ~an[w];
					const uint64_t bt = (b[w] ^ flip) & ~bn[w], bf = ~(b[w] ^ flip) & ~bn[w];

					out[w] = (at & bt) ^ flip;
					out_nulls[w] = ~((at & bt) | af | bf);
				}
				if (an != all_zero || bn != all_zero)
					dst.nulls = out_nulls;
				return;
			}
		case StepKind::IsTrue:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = a[w] & ~(an ? an[w] : 0);
			return;
		case StepKind::IsFalse:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~a[w] & ~(an ? an[w] : 0);
			return;
		case StepKind::IsNull:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = an ? an[w] : 0;
			return;
		default:
			for (int w = 0; w < CPU_WORDS; w++)
				out[w] = ~(an ? an[w] : 0);
			return;
	}
}

/* Select, Coalesce, Greatest, Least, NullIf, IsDistinct: dst takes a or b by a mask. */
void
CpuProgram::pick(WorkerState &s, const Step &step) const
{
	const void *a = values_of(s, step.a), *b = values_of(s, step.b);
	const uint64_t *an = s.regs[step.a].nulls ? s.regs[step.a].nulls : all_zero;
	const uint64_t *bn = s.regs[step.b].nulls ? s.regs[step.b].nulls : all_zero;
	const bool	nullable = an != all_zero || bn != all_zero;
	uint64_t	take_a[CPU_WORDS];
	uint64_t	nulls[CPU_WORDS];
	RegState   &dst = s.regs[step.dst];

	if (step.kind == StepKind::Select)
	{
		const uint64_t *c = bits_of(s, step.c);
		const uint64_t *cn = s.regs[step.c].nulls;

		for (int w = 0; w < CPU_WORDS; w++)
		{
			take_a[w] = c[w] & ~(cn ? cn[w] : 0);
			nulls[w] = (take_a[w] & an[w]) | (~take_a[w] & bn[w]);
		}
	}
	else if (step.kind == StepKind::Coalesce)
	{
		for (int w = 0; w < CPU_WORDS; w++)
		{
			take_a[w] = ~an[w];
			nulls[w] = an[w] & bn[w];
		}
	}
	else
	{
		/* comparison(a, b), in the type's own way */
		uint64_t	holds[CPU_WORDS];

		comparison(s, step, holds);
		for (int w = 0; w < CPU_WORDS; w++)
		{
			const uint64_t both = ~(an[w] | bn[w]);

			switch (step.kind)
			{
				case StepKind::IsDistinct:
					s.own_bits[step.dst][w] = (an[w] ^ bn[w]) | (both & ~holds[w]);
					break;
				case StepKind::NullIf:
					take_a[w] = ~uint64_t(0);
					nulls[w] = an[w] | (both & holds[w]);
					break;
				default:
					take_a[w] = ~(an[w] | (both & holds[w]));
					nulls[w] = an[w] & bn[w];
					break;
			}
		}
		if (step.kind == StepKind::IsDistinct)
		{
			dst.values = s.own_bits[step.dst];
			dst.nulls = nullptr;
			return;
		}
	}

	if (step.type == Type::Bool)
	{
		uint64_t   *out = s.own_bits[step.dst];
		const uint64_t *av = static_cast<const uint64_t *>(a), *bv = static_cast<const uint64_t *>(b);

		for (int w = 0; w < CPU_WORDS; w++)
			out[w] = (take_a[w] & av[w]) | (~take_a[w] & bv[w]);
		dst.values = out;
	}
	else
		kernels->blend(type_width(step.type), take_a, a, b, s.slots[regs[step.dst].slot]);
	if (nullable || step.kind == StepKind::NullIf)
	{
		memcpy(s.own_nulls[step.dst], nulls, MASK_BYTES);
		dst.nulls = s.own_nulls[step.dst];
	}
	else
		dst.nulls = nullptr;
}

void
CpuProgram::in_list(WorkerState &s, const Step &step) const
{
	const int64_t *list = program->aux() + step.list;
	const void *a = values_of(s, step.a);
	const uint64_t *an = s.regs[step.a].nulls;
	uint64_t   *out = s.own_bits[step.dst];
	RegState   &dst = s.regs[step.dst];

	for (int w = 0; w < CPU_WORDS; w++)
	{
		uint64_t	bits = 0;

		for (int i = 0; i < 64; i++)
		{
			const int64_t v = step.type == Type::I64 ? static_cast<const int64_t *>(a)[64 * w + i]
				: static_cast<const int32_t *>(a)[64 * w + i];
			const int64_t *from = list;

			/* branchless: the last element that is not greater */
			for (int n = step.list_len; n > 1;)
			{
				const int	half = n / 2;

				from += from[half] <= v ? half : 0;
				n -= half;
			}
			bits |= static_cast<uint64_t>(*from == v) << i;
		}
		out[w] = bits;
	}
	dst.values = out;
	dst.nulls = an;
	if (step.has_null)
	{
		uint64_t   *to = s.own_nulls[step.dst];

		for (int w = 0; w < CPU_WORDS; w++)
			to[w] = (an ? an[w] : 0) | ~out[w];
		dst.nulls = to;
	}
}

/*
 * Entries of a map. Lanes that are null or do not live may hold any code, so
 * kernels read the first entry for what lies outside; where there is none, the map
 * holds nothing but its nulls' entry, or nothing at all.
 */
void
CpuProgram::lookup(WorkerState &s, const Step &step) const
{
	const CodeMap &map = maps[step.list];
	const uint32_t all = map.nentries + (step.has_null ? 1 : 0);
	const int32_t *codes = static_cast<const int32_t *>(values_of(s, step.a));
	const uint64_t *an = s.regs[step.a].nulls;
	uint64_t   *nulls = s.own_nulls[step.dst];
	RegState   &dst = s.regs[step.dst];

	dst.nulls = step.has_null ? nullptr : an;
	if (step.type == Type::Bool)
		dst.values = s.own_bits[step.dst];
	if (step.outside)
	{
		for (int w = 0; w < CPU_WORDS; w++)
		{
			uint64_t	out = 0;

			for (int i = 0; i < 64; i++)
				out |= static_cast<uint64_t>(static_cast<uint32_t>(codes[64 * w + i]) >= map.nentries) << i;
			nulls[w] = step.has_null ? out & ~(an ? an[w] : 0) : out | (an ? an[w] : 0);
		}
		dst.nulls = nulls;
	}
	if (all == 0)
	{
		memset(nulls, 0xff, MASK_BYTES);
		dst.nulls = nulls;
		return;
	}
	if (step.has_null && an)
	{
		int32_t    *to = reinterpret_cast<int32_t *>(s.scratch[0]);

		memcpy(to, codes, CPU_VECTOR_ROWS * sizeof(int32_t));
		for (int w = 0; w < CPU_WORDS; w++)
			for (uint64_t m = an[w]; m != 0; m &= m - 1)
				to[64 * w + __builtin_ctzll(m)] = static_cast<int32_t>(map.nentries);
		codes = to;
	}
	if (step.type == Type::Bool)
		kernels->lookup_bytes(codes, static_cast<const uint8_t *>(map.values), all, s.own_bits[step.dst]);
	else
		kernels->lookup(type_width(step.type), codes, map.values, all, s.slots[regs[step.dst].slot]);
	if (map.nulls)
	{
		uint64_t	bits[CPU_WORDS];

		kernels->lookup_bits(codes, map.nulls, all, bits);
		for (int w = 0; w < CPU_WORDS; w++)
			nulls[w] = bits[w] | (dst.nulls ? dst.nulls[w] : 0);
		dst.nulls = nulls;
	}
}

/* Takes over the column's nulls; s.rows are then the lanes of which texts are read, so many: values are long, so only those that live. */
uint32_t
CpuProgram::text_lanes(WorkerState &s, const Step &step) const
{
	const int	column = texts[step.list].column;
	RegState   &dst = s.regs[step.dst];
	uint64_t	lanes[CPU_WORDS];

	dst.nulls = s.regs[columns[column].reg].nulls;
	for (int w = 0; w < CPU_WORDS; w++)
		lanes[w] = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0);
	s.columns[column].touched = true;
	return kernels->select(lanes, s.rows);
}

void
CpuProgram::text_match(WorkerState &s, const Step &step) const
{
	const TextStep &text = texts[step.list];
	const BoundColumn &column = s.columns[text.column];

	s.regs[step.dst].values = s.own_bits[step.dst];
	if (text.order != nullptr)
	{
		text_collate(s, step);
		return;
	}
	kernels->text_match(text.search, column.images, column.width, column.data + static_cast<size_t>(s.row0) * column.width,
						s.rows, text_lanes(s, step), s.own_bits[step.dst]);
}

/* What is left of the other lanes is what lay there. */
void
CpuProgram::text_part(WorkerState &s, const Step &step) const
{
	const TextStep &text = texts[step.list];
	const BoundColumn &column = s.columns[text.column];

	s.errors |= kernels->text_part(text.part, column.images, column.width, column.data + static_cast<size_t>(s.row0) * column.width,
								   s.rows, text_lanes(s, step), reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot]));
}

/* Of the other lanes nothing is read, and what is left there is a key of some vector before, or 0. */
void
CpuProgram::text_key(WorkerState &s, const Step &step) const
{
	const int64_t *references = static_cast<const int64_t *>(values_of(s, step.a));
	RegState   &dst = s.regs[step.dst];
	uint64_t	lanes[CPU_WORDS];

	dst.nulls = s.regs[step.a].nulls;
	for (int w = 0; w < CPU_WORDS; w++)
		lanes[w] = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0);
	if (!text_keys->find(step.list, references, s.rows, kernels->select(lanes, s.rows), reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot])))
		s.errors |= ERR_INT_OVERFLOW;
}

/* Timestamps of one vector lie between two of the table's times mostly: their shift is looked for where one does not. */
void
CpuProgram::shift_zone(WorkerState &s, const Step &step) const
{
	const ZoneTable &table = zones[step.list];
	const int64_t *a = static_cast<const int64_t *>(values_of(s, step.a));
	int64_t    *to = reinterpret_cast<int64_t *>(s.slots[regs[step.dst].slot]);
	RegState   &dst = s.regs[step.dst];

	dst.nulls = s.regs[step.a].nulls;

	uint32_t	errors = kernels->zone_shift(a, table, to);

	if (!step.checked || errors == 0)
		return;
	errors = 0;
	for (int w = 0; w < CPU_WORDS; w++)
		for (uint64_t m = s.live[w] & ~(dst.nulls ? dst.nulls[w] : 0); m != 0; m &= m - 1)
			sem::ZoneShift(a[64 * w + __builtin_ctzll(m)], table, &errors);
	s.errors |= errors;
}

}  // namespace gpuvm
