/* top_rows.cc: see top_rows.h. */
#include "top_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sort.h"
#include "vm/operands.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t MOST_RANKS = 1 << 20;	/* of a map that is sent for the bound's sake */
constexpr uint64_t FEWER = 4;			/* times the wanted rows are in the sample */

TopSizes top_sizes;

/* ---- the sample -------------------------------------------------------------------- */

bool
TopRows::pays() const
{
	const JobOrderKey *key = request_.order;

	return request_.norder > 0 && request_.row_limit != 0 && request_.nothers == 0 && request_.stage == nullptr &&
		!request_.program->grouped && request_.total_rows >= top_sizes.least_rows &&
		request_.row_limit <= request_.total_rows / top_sizes.share / FEWER &&
		request_.row_limit <= static_cast<uint64_t>(top_sizes.most_pads) * TABLET_PAD_ROWS / FEWER &&
		(!(key->flags & ORDER_RANKS) || request_.maps[key->map].nentries <= MOST_RANKS);
}

void
TopRows::list_sample(const Work &all, Work *sample)
{
	const uint32_t npads = static_cast<uint32_t>(all.pads.size());
	const uint32_t step = std::max(top_sizes.share, npads / top_sizes.most_pads);

	*sample = Work{};
	sample->columns = all.columns;
	sample->dead = all.dead;
	sample->dead_pads = all.dead_pads;
	for (uint32_t i = step / 2; i < npads; i += step)
	{
		const WorkTablet &from = all.tablets[all.pads[i].tablet];

		if (sample->tablets.empty() || sample->tablets.back().tablet != from.tablet)
		{
			sample->tablets.push_back(from);
			sample->tablets.back().first_pad = static_cast<uint32_t>(sample->pads.size());
			sample->tablets.back().npads = 0;
			sample->tablets.back().rows = 0;
		}

		WorkTablet &to = sample->tablets.back();
		const uint32_t row = all.pads[i].row, end = std::min(row + TABLET_PAD_ROWS, from.tablet->nrows);

		sample->pads.push_back(DevicePad{static_cast<uint32_t>(sample->tablets.size() - 1), row});
		to.npads++;
		to.rows += end - row - masked_count(from.masked, from.nmasked, row, end);
	}
	for (const WorkTablet &tablet : sample->tablets)
		sample->rows += tablet.rows;
}

/* ---- the bound ----------------------------------------------------------------------- */

/* sort_float_bits(), the other way. */
template <typename U>
static U
float_bits(U v)
{
	constexpr U sign = static_cast<U>(1) << (8 * sizeof(U) - 1);

	return v & sign ? v & ~sign : ~v;
}

/* The last of those that words up to this one may have: false if nothing is behind it. */
static bool
last_value(const SortKey &key, const SortRange &range, uint64_t word, TopValue *last)
{
	const uint32_t first = key.end - key.bits;	/* bit of the value */
	const uint64_t rest = first == 0 ? word : first >= 64 ? ~static_cast<uint64_t>(0) : word << first | ((static_cast<uint64_t>(1) << first) - 1);

	last->type = key.type;
	if (key.may_null && (word >> (64 - first) & 1) != key.nulls_first)
	{
		last->null = true;
		return key.nulls_first;
	}

	const uint128 distance = std::min<uint128>(key.bits == 0 ? 0 : rest >> (64 - key.bits), range.hi - range.lo);
	const uint64_t v = static_cast<uint64_t>(key.desc ? range.hi - distance : range.lo + distance);
	double		number = 0;

	switch (key.type)
	{
		case Type::Bool: last->value = static_cast<int64_t>(v); break;
		case Type::I16: case Type::I32: last->value = static_cast<int32_t>(static_cast<uint32_t>(v) ^ 0x80000000u); break;
		case Type::I64: last->value = static_cast<int64_t>(v ^ 0x8000000000000000u); break;
		case Type::F32:
			{
				const uint32_t bits = float_bits(static_cast<uint32_t>(v));
				float		single;

				memcpy(&single, &bits, sizeof(single));
				number = single;
				memcpy(&last->value, &number, sizeof(number));
				break;
			}
		default:
			last->value = static_cast<int64_t>(float_bits(v));
			memcpy(&number, &last->value, sizeof(number));
			break;
	}
	return !std::isnan(number);
}

TopBound
last_of_words(const SortKeys &keys, const SortRange *ranges, uint64_t word, uint32_t known)
{
	TopBound	bound;

	if (known < 64)
		word |= ~static_cast<uint64_t>(0) >> known;
	/* a key counts where those before it are known to the last bit */
	for (uint32_t k = 0; k < keys.n; k++)
	{
		const SortKey &key = keys.keys[k];
		TopValue	last;

		if (static_cast<uint32_t>(key.end - key.bits - key.may_null) >= known || key.type == Type::I128 || !last_value(key, ranges[k], word, &last))
			break;
		bound.push_back(last);
		if (key.end > known)
			break;
	}
	return bound;
}

/* ---- the program --------------------------------------------------------------------------- */

static bool
jumps(const Op &op)
{
	const OpForm form = form_of(op.opcode);

	return form == OpForm::PARALLEL || form == OpForm::JUMP || form == OpForm::BRANCH || (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES));
}

/* Key by key: behind the bound's value the row dies, before it it is among the first. */
bool
TopRows::take(const TopBound &bound)
{
	const Program *from = request_.program;
	std::vector<Op> ops(from->ops(), from->ops() + from->nops), more;
	int			result = from->parallel, nregs = from->nregs, nmaps = from->nmaps;

	while (ops[static_cast<size_t>(result)].opcode != Opcode::Result)
		result++;
	for (size_t k = 0; k < bound.size(); k++)
	{
		const JobOrderKey &key = request_.order[k];
		const TopValue &last = bound[k];
		const bool	desc = key.flags & ORDER_DESC, nulls_first = key.flags & ORDER_NULLS_FIRST;
		const Opcode constant = type_is_float(last.type) ? Opcode::Float : last.type == Type::I64 ? Opcode::Int64 : Opcode::Integer;
		const bool	in_p2 = constant == Opcode::Integer;
		int			r = ops[static_cast<size_t>(result)].p1 + static_cast<int>(key.column);

		if (key.flags & ORDER_RANKS)
		{
			more.push_back(Op{Opcode::Lookup, last.type, 0, nregs, static_cast<int32_t>(key.map), r, 0});
			r = nregs++;
			nmaps = std::max(nmaps, static_cast<int>(key.map) + 1);
		}
		if (last.null)
		{
			more.push_back(Op{Opcode::NotNull, last.type, 0, nregs, r, 0, 0});
			more.push_back(Op{Opcode::If, Type::Bool, 0, nregs++, 0, from->converge, VERDICT_DIES});
			continue;
		}
		more.push_back(Op{constant, last.type, 0, nregs, in_p2 ? static_cast<int32_t>(last.value) : 0, 0, in_p2 ? 0 : last.value});
		more.push_back(Op{desc ? Opcode::Lt : Opcode::Gt, last.type, static_cast<uint8_t>(nulls_first ? 0 : JUMP_IF_NULL), r, nregs,
						  from->converge, VERDICT_DIES});
		if (k + 1 < bound.size())
			more.push_back(Op{desc ? Opcode::Gt : Opcode::Lt, last.type, static_cast<uint8_t>(nulls_first ? JUMP_IF_NULL : 0), r, nregs,
							  result, VERDICT_JUMPS});
		nregs++;
	}

	const int	n = static_cast<int>(more.size());

	if (ops.size() + more.size() > PROGRAM_MAX_OPS || nregs > PROGRAM_MAX_REGS)
		return false;
	/* who jumped to Result meets the condition; its own jumps do not */
	for (Op &op : ops)
		op.p3 += jumps(op) && op.p3 > result ? n : 0;
	for (Op &op : more)
		op.p3 += jumps(op) ? n : 0;
	ops.insert(ops.begin() + result, more.begin(), more.end());

	const size_t ops_bytes = ops.size() * sizeof(Op), rest_bytes = from->naux * sizeof(int64_t) + from->names_len;

	program_.assign((sizeof(Program) + ops_bytes + rest_bytes + 7) / 8, 0);

	Program    *to = reinterpret_cast<Program *>(program_.data());

	*to = *from;
	to->size = static_cast<uint32_t>(sizeof(Program) + ops_bytes + rest_bytes);
	to->nops = static_cast<uint16_t>(ops.size());
	to->nregs = static_cast<uint16_t>(nregs);
	to->nmaps = static_cast<uint16_t>(nmaps);
	to->converge = static_cast<uint16_t>(from->converge + n);
	memcpy(reinterpret_cast<char *>(to + 1), ops.data(), ops_bytes);
	memcpy(reinterpret_cast<char *>(to + 1) + ops_bytes, from->aux(), rest_bytes);
	to->hash = hash_program(to);
	request_.program = to;
	return true;
}

}  // namespace cuda
}  // namespace gpuvm
