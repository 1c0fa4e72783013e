/* vm_reference.cc: see vm_reference.h. */
#include "vm_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <thread>

#include "tablet/build.h"
#include "tablet/wide_halves.h"

namespace gpuvm {
namespace reference {

/* -- tables --------------------------------------------------------------------------- */

std::vector<bool>
Table::masked_bits() const
{
	std::vector<bool> bits(nrows());

	for (const MaskedRows &r : masked)
	{
		const auto	first = std::accumulate(tablet_rows.begin(), tablet_rows.begin() + r.tablet, bits.begin());

		std::fill(first + r.first, first + r.end, true);
	}
	return bits;
}

void
Table::mask(const std::vector<bool> &bits)
{
	uint32_t	row = 0;

	masked.clear();
	for (uint32_t t = 0; t < tablet_rows.size(); t++)
		for (uint32_t i = 0; i < tablet_rows[t]; i++)
		{
			if (!bits[row++])
				continue;
			if (masked.empty() || masked.back().tablet != t || masked.back().end != i)
				masked.push_back(MaskedRows{t, i, i});
			masked.back().end++;
		}
}

Table
Table::without_masked() const
{
	const std::vector<bool> bits = masked_bits();
	Table		to;
	uint32_t	row = 0;

	for (uint32_t n : tablet_rows)
	{
		const auto	from = bits.begin() + row;

		if (const uint32_t left = static_cast<uint32_t>(std::count(from, from + n, false)))
			to.tablet_rows.push_back(left);
		row += n;
	}
	for (const Column &c : columns)
	{
		to.columns.push_back(Column{c.type, {}});
		to.columns.back().attlen = c.attlen;
		for (uint32_t i = 0; i < row; i++)
			if (!bits[i])
			{
				to.columns.back().rows.push_back(c.rows[i]);
				if (c.is_text())
					to.columns.back().texts.push_back(c.texts[i]);
			}
	}
	to.build();
	return to;
}

void
Table::build()
{
	uint32_t	first = 0;

	types.clear();
	tablets.clear();
	for (const Column &c : columns)
		types.push_back(c.type);
	summaries.assign(columns.size(), ColumnSummary{});
	for (size_t t = 0; t < tablet_rows.size(); t++)
	{
		const uint32_t n = tablet_rows[t];
		std::vector<std::vector<char>> values(columns.size());
		std::vector<std::vector<uint64_t>> nulls(columns.size());
		std::vector<std::string> images(columns.size());
		std::vector<StagedColumn> staged(columns.size());
		const uint32_t block_rows[2] = {0, n};
		const uint64_t lsn = 1;
		const uint32_t lps = LPS_DENSE;

		for (size_t c = 0; c < columns.size(); c++)
		{
			const Type	type = columns[c].type;
			const int	width = type_natural_width(type);
			bool		any = false;

			values[c].resize(static_cast<size_t>(n) * width + 64);
			nulls[c].resize((n + 63) / 64);
			for (uint32_t r = 0; r < n; r++)
			{
				Value	   &v = columns[c].rows[first + r];

				if (columns[c].is_text() && !v.null)
					v.i = static_cast<int64_t>(append_image(&images[c], columns[c].texts[first + r], columns[c].attlen));

				char	   *to = values[c].data() + static_cast<size_t>(r) * width;
				const float f = static_cast<float>(v.d);

				if (v.null)
				{
					nulls[c][r / 64] |= 1ull << (r % 64);
					any = true;
					memset(to, 0x5a, width);
					if (type == Type::Bool)
						*to = 1;
				}
				else if (type == Type::F32)
					memcpy(to, &f, 4);
				else if (type == Type::F64)
					memcpy(to, &v.d, 8);
				else
					memcpy(to, &v.i, width);
			}
			staged[c] = StagedColumn{type, static_cast<int16_t>(c + 1), values[c].data(), any ? nulls[c].data() : nullptr};
			if (columns[c].is_text())
			{
				staged[c].encoding = Encoding::Variable;
				staged[c].images = images[c].data();
				staged[c].nimages = images[c].size();
			}
		}

		StagedTablet st = {n, static_cast<uint32_t>(columns.size()), staged.data(), static_cast<uint32_t>(t), 1,
			block_rows, &lsn, &lps, nullptr, 0};
		TabletHeader header;
		std::vector<ColumnChunk> chunks(columns.size());
		const uint64_t size = plan_tablet(st, &header, chunks.data());
		void	   *memory = aligned_alloc(64, (size + 63) & ~63ull);

		write_tablet(st, header, chunks.data(), 0, static_cast<char *>(memory));
		tablets.emplace_back(static_cast<TabletHeader *>(memory));
		for (size_t c = 0; c < columns.size(); c++)
		{
			summarize_chunk(&summaries[c], chunks[c], t == 0);
			for (uint32_t r = 0; columns[c].is_text() && r < n; r++)
				columns[c].rows[first + r].i += columns[c].rows[first + r].null ? 0 : chunks[c].base;
		}
		first += n;
	}
}

/* -- one operation -------------------------------------------------------------------- */

namespace {

template <Type T>
sem::reg_t<T>
in_register(const Value &v)
{
	if constexpr (type_is_float(T))
		return static_cast<sem::reg_t<T>>(v.d);
	else
		return static_cast<sem::reg_t<T>>(v.i);
}

template <Type T> struct Tag { static constexpr Type type = T; };

template <typename F>
auto
with_type(Type t, F f)
{
	switch (t)
	{
		case Type::Bool: return f(Tag<Type::Bool>{});
		case Type::I16: return f(Tag<Type::I16>{});
		case Type::I64: return f(Tag<Type::I64>{});
		case Type::F32: return f(Tag<Type::F32>{});
		case Type::F64: return f(Tag<Type::F64>{});
		default: return f(Tag<Type::I32>{});
	}
}

bool
is_neg_zero(double d)
{
	return d == 0 && std::signbit(d);
}

}  // namespace

bool
compare_values(Opcode opcode, Type type, const Value &a, const Value &b)
{
	return with_type(type, [&](auto tag) {
		constexpr Type T = decltype(tag)::type;
		auto		x = in_register<T>(a);
		auto		y = in_register<T>(b);

		switch (opcode)
		{
			case Opcode::Eq: return sem::Eq<T>(x, y);
			case Opcode::Ne: return sem::Ne<T>(x, y);
			case Opcode::Lt: return sem::Lt<T>(x, y);
			case Opcode::Le: return sem::Le<T>(x, y);
			case Opcode::Gt: return sem::Gt<T>(x, y);
			default: return sem::Ge<T>(x, y);
		}
	});
}

Value
binary_value(const Op &op, const Value &a, const Value &b, uint32_t *err)
{
	if (a.null || b.null)
		return Value{};
	return with_type(op.type, [&](auto tag) {
		constexpr Type T = decltype(tag)::type;

		if constexpr (T != Type::Bool)
		{
			auto		x = in_register<T>(a);
			auto		y = in_register<T>(b);

			switch (op.opcode)
			{
				case Opcode::Add: return from_register(sem::Add<T>(x, y, err));
				case Opcode::Sub: return from_register(sem::Sub<T>(x, y, err));
				case Opcode::Mul: return from_register(sem::Mul<T>(x, y, err));
				case Opcode::Div: return from_register(sem::Div<T>(x, y, err));
				default: break;
			}
			if constexpr (T == Type::F64)
				switch (op.opcode)
				{
					case Opcode::MulRest: return from_register(sem::MulRest<T>(x, y, err));
					case Opcode::Power: return from_register(sem::Power<T>(x, y, err));
					case Opcode::Atan2: return from_register(sem::Atan2<T>(x, y, err));
					default: break;
				}
			if constexpr (type_is_int(T))
				switch (op.opcode)
				{
					case Opcode::Remainder: return from_register(sem::Remainder<T>(x, y, err));
					case Opcode::BitAnd: return from_register(sem::BitAnd<T>(x, y, err));
					case Opcode::BitOr: return from_register(sem::BitOr<T>(x, y, err));
					case Opcode::BitXor: return from_register(sem::BitXor<T>(x, y, err));
					case Opcode::ShiftLeft: return from_register(sem::ShiftLeft<T>(x, in_register<Type::I32>(b), err));
					case Opcode::ShiftRight: return from_register(sem::ShiftRight<T>(x, in_register<Type::I32>(b), err));
					default: break;
				}
			if constexpr (T == Type::I32)
				switch (op.opcode)
				{
					case Opcode::DateAdd: return from_register(sem::DateAdd(x, y, err));
					case Opcode::DateSub: return from_register(sem::DateSub(x, y, err));
					case Opcode::DateDiff: return from_register(sem::DateDiff(x, y, err));
					default: break;
				}
			if constexpr (T == Type::I64)
				switch (op.opcode)
				{
					case Opcode::DivRound: return from_register(sem::DivRound(x, y, err));
					case Opcode::DivFloor: return from_register(sem::DivFloor(x, y, err));
					case Opcode::Bound: return from_register(sem::Bound(x, y, err));
					case Opcode::NumericLead: return from_register(sem::NumericLead(x, y, err));
					case Opcode::NextDecimals: return from_register(sem::NextDecimals(x, y, err));
					case Opcode::NextRest: return from_register(sem::NextRest(x, y, err));
					case Opcode::RoundDecimals: return from_register(sem::RoundDecimals(x, y, err));
					case Opcode::DecimalsHigh: return from_register(sem::DecimalsHigh(x, y, err));
					case Opcode::DecimalsLow: return from_register(sem::DecimalsLow(x, y, err));
					case Opcode::TimestampAddMonths: return from_register(sem::TimestampAddMonths(x, in_register<Type::I32>(b), err));
					case Opcode::TimestampAddDays: return from_register(sem::TimestampAddDays(x, in_register<Type::I32>(b), err));
					case Opcode::TimestampAddMicros: return from_register(sem::TimestampAddMicros(x, y, err));
					case Opcode::TimeAddMicros: return from_register(sem::TimeAddMicros(x, y, err));
					default: break;
				}
		}
		abort();
		return Value{};
	});
}

Value
lookup_value(const Op &op, const CodeMap &map, const Value &code)
{
	const int64_t entry = !code.null ? code.i : op.p5 & LOOKUP_NULL ? static_cast<int64_t>(map.nentries) : -1;

	if (entry < 0 || (!code.null && entry >= static_cast<int64_t>(map.nentries)) || (map.nulls && bit_get(map.nulls, static_cast<size_t>(entry))))
		return Value{};
	return with_type(map.type, [&](auto tag) {
		return from_register(static_cast<const sem::reg_t<decltype(tag)::type> *>(map.values)[entry]);
	});
}

Value
field_value(const Op &op, const Value &a, uint32_t *err)
{
	const DateField field = static_cast<DateField>(op.p3);

	return a.null ? a : from_register(op.opcode == Opcode::DatePart ? sem::DatePart(a.i, field, err) : sem::DateTrunc(a.i, field, err));
}

Value
unary_value(const Op &op, const Value &a, uint32_t *err)
{
	if (a.null)
		return Value{};
	switch (op.opcode)
	{
		case Opcode::DateToTimestamp: return from_register(sem::DateToTimestamp(static_cast<int32_t>(a.i), err));
		case Opcode::DateToTimestampSat: return from_register(sem::DateToTimestampSat(static_cast<int32_t>(a.i), err));
		case Opcode::TimestampToDate: return from_register(sem::TimestampToDate(a.i, err));
		default: break;
	}
	return with_type(op.type, [&](auto tag) {
		constexpr Type T = decltype(tag)::type;

		if constexpr (T != Type::Bool)
		{
			if (op.opcode == Opcode::Neg)
				return from_register(sem::Neg<T>(in_register<T>(a), err));
			if (op.opcode == Opcode::Abs)
				return from_register(sem::Abs<T>(in_register<T>(a), err));
			if constexpr (type_is_int(T))
				return from_register(sem::BitNot<T>(in_register<T>(a), err));
			if constexpr (T == Type::F64)
				switch (op.opcode)
				{
					case Opcode::Sqrt: return from_register(sem::Sqrt<T>(a.d, err));
					case Opcode::Ceil: return from_register(sem::Ceil<T>(a.d, err));
					case Opcode::Floor: return from_register(sem::Floor<T>(a.d, err));
					case Opcode::Trunc: return from_register(sem::Trunc<T>(a.d, err));
					case Opcode::Round: return from_register(sem::Round<T>(a.d, err));
					case Opcode::Sign: return from_register(sem::Sign<T>(a.d, err));
					case Opcode::Exp: return from_register(sem::Exp<T>(a.d, err));
					case Opcode::Ln: return from_register(sem::Ln<T>(a.d, err));
					case Opcode::Log10: return from_register(sem::Log10<T>(a.d, err));
					case Opcode::Cbrt: return from_register(sem::Cbrt<T>(a.d, err));
					case Opcode::Sin: return from_register(sem::Sin<T>(a.d, err));
					case Opcode::Cos: return from_register(sem::Cos<T>(a.d, err));
					case Opcode::Tan: return from_register(sem::Tan<T>(a.d, err));
					case Opcode::Cot: return from_register(sem::Cot<T>(a.d, err));
					case Opcode::Asin: return from_register(sem::Asin<T>(a.d, err));
					case Opcode::Acos: return from_register(sem::Acos<T>(a.d, err));
					case Opcode::Atan: return from_register(sem::Atan<T>(a.d, err));
					case Opcode::Sinh: return from_register(sem::Sinh<T>(a.d, err));
					case Opcode::Cosh: return from_register(sem::Cosh<T>(a.d, err));
					case Opcode::Tanh: return from_register(sem::Tanh<T>(a.d, err));
					case Opcode::Asinh: return from_register(sem::Asinh<T>(a.d, err));
					case Opcode::Acosh: return from_register(sem::Acosh<T>(a.d, err));
					case Opcode::Atanh: return from_register(sem::Atanh<T>(a.d, err));
					default: break;
				}
		}
		abort();
		return Value{};
	});
}

Value
cast_value(Type to, Type from, const Value &a, uint32_t *err)
{
	if (a.null)
		return Value{};
	return with_type(to, [&](auto to_tag) {
		return with_type(from, [&](auto from_tag) {
			constexpr Type T = decltype(to_tag)::type;
			constexpr Type F = decltype(from_tag)::type;

			return from_register(sem::Cast<T, F>(in_register<F>(a), err));
		});
	});
}

/* -- programs ----------------------------------------------------------------------------- */

double
exact_sum(const std::vector<double> &inputs)
{
	std::vector<double> partials;

	for (double x : inputs)
	{
		size_t		kept = 0;

		for (double y : partials)
		{
			if (std::fabs(x) < std::fabs(y))
				std::swap(x, y);
			volatile double hi = x + y;
			volatile double back = hi - x;
			volatile double lo = y - back;

			if (lo != 0)
				partials[kept++] = lo;
			x = hi;
		}
		partials.resize(kept);
		partials.push_back(x);
	}

	double		hi = 0;
	size_t		n = partials.size();

	if (n == 0)
		return 0;
	hi = partials[--n];

	double		lo = 0;

	while (n > 0)
	{
		const double x = hi, y = partials[--n];

		hi = x + y;
		lo = y - (hi - x);
		if (lo != 0)
			break;
	}
	if (n > 0 && ((lo < 0 && partials[n - 1] < 0) || (lo > 0 && partials[n - 1] > 0)))
	{
		const double y = lo * 2, x = hi + y;

		if (y == x - hi)
			hi = x;
	}
	return hi;
}

class Interpreter::Machine
{
public:
	Machine(const Program *program, const Table &table, const ParamValue *params, const CodeMap *maps,
				const PatternSet *patterns)
		: program(program), table(table), tables({&table}), params(params), maps(maps), patterns(patterns) {}

	/* Joins: plain nested loops. `lazy`: Semi and Anti look no further than the first match. */
	Machine(const Program *program, const std::vector<const Table *> &tables, const ParamValue *params, bool lazy,
				const CodeMap *maps, const PatternSet *patterns)
		: program(program), table(*tables[0]), tables(tables), params(params), maps(maps), patterns(patterns), lazy(lazy) {}

	Outcome		run()
	{
		const std::vector<bool> masked = table.masked_bits();
		uint32_t	row = 0;

		for (size_t k = 1; k < tables.size(); k++)
			inner_rows(k);

		for (uint32_t n : table.tablet_rows)
			for (uint32_t position = 0; position < n; position++, row++)
				if (!masked[row])
					run_row(row, position);
		for (int i = program->parallel; i < program->converge; i++)
			if (program->ops()[i].opcode == Opcode::Match && static_cast<JoinKind>(program->ops()[i].p2) == JoinKind::Full)
				unmatched_rows(i, program->ops()[i].p1);
		if (program->grouped)
			finish_groups();
		return std::move(outcome);
	}

	/* The rows, masked or not, that raise an error by themselves. */
	std::vector<bool> failing_rows()
	{
		std::vector<bool> failing;
		uint32_t	row = 0;

		for (uint32_t n : table.tablet_rows)
			for (uint32_t position = 0; position < n; position++)
			{
				outcome = Outcome{};
				run_row(row++, position);
				failing.push_back(outcome.errors != 0);
			}
		return failing;
	}

private:
	/* A row of an inner cursor, with the keys that it was inserted by. */
	struct InnerRow
	{
		uint32_t	row;
		std::vector<Value> keys;
		bool		matched = false;	/* Full: by any lane */
	};

	/* Full: the rows of the cursor that nothing matched, without any row of the cursors before. */
	void		unmatched_rows(int match, int cursor)
	{
		for (const InnerRow &row : inner[cursor])
		{
			std::vector<Value> r(program->nregs);

			if (row.matched)
				continue;
			std::fill(no_row, no_row + cursor, true);
			row_of[cursor] = row.row;
			lane(match + 1, program->converge, r, program->nkeys == 0 && program->grouped ? &group_of({}) : nullptr, 0);
			std::fill(no_row, no_row + cursor, false);
		}
	}

	/* What a cursor has for Seek or Cross. */
	void		inner_rows(size_t cursor)
	{
		const std::vector<bool> masked = tables[cursor]->masked_bits();
		int			begin = -1;

		for (int i = 0; i < program->parallel; i++)
			if (program->ops()[i].opcode == Opcode::Parallel && program->ops()[i].p2 == static_cast<int>(cursor))
				begin = i;
		for (uint32_t row = 0; row < tables[cursor]->nrows(); row++)
		{
			if (masked[row])
				continue;
			if (begin < 0)
			{
				inner[cursor].push_back(InnerRow{row, {}, false});
				continue;
			}

			std::vector<Value> r(program->nregs);
			const int	insert = program->ops()[begin].p3 - 1;
			InnerRow	to = {row, {}, false};

			row_of[cursor] = row;
			if (!lane(begin + 1, insert, r, nullptr, 0))
				continue;
			for (int k = 0; k < program->ops()[insert].p2; k++)
				to.keys.push_back(r[program->aux()[program->ops()[insert].p3 + k]]);
			inner[cursor].push_back(to);	/* a null key equals nothing */
		}
	}

	static bool same_key(const Value &a, const Value &b)
	{
		return !a.null && !b.null && a.i == b.i && (a.d == b.d || (a.d != a.d && b.d != b.d));
	}

	static bool within(const Op &op, int bound, Type type, const Value &key, const Value &limit)
	{
		const bool	strict = op.p2 & (bound == 0 ? RANGE_LO_STRICT : RANGE_HI_STRICT);

		return !key.null && !limit.null
			&& compare_values(bound == 0 ? (strict ? Opcode::Gt : Opcode::Ge) : strict ? Opcode::Lt : Opcode::Le, type, key, limit);
	}

	/* Of the first key that the cursor's rows are inserted by. */
	Type		key_reg_type(int cursor) const
	{
		int64_t		reg = -1;

		for (int i = 0; i < program->parallel; i++)
			if (program->ops()[i].opcode == Opcode::HashInsert && program->ops()[i].p1 == cursor)
				reg = program->aux()[program->ops()[i].p3];
		return reg_type(reg, program->parallel);
	}

	struct Group;

	/* From Seek or Cross on to the program's end. */
	void		join(int address, int stop, const std::vector<Value> &r, Group *group, uint32_t position);

	struct Group
	{
		std::vector<Value> keys;
		std::vector<std::vector<Value>> inputs;
		std::vector<int64_t> counts;
	};

	/* Keys by their bits, NaNs alike. */
	static std::string key_text(const std::vector<Value> &keys)
	{
		std::string text;

		for (const Value &v : keys)
		{
			char		buffer[64];

			snprintf(buffer, sizeof(buffer), "%d/%lld/%s%.17g;", v.null, static_cast<long long>(v.i),
					 v.d != v.d ? "" : std::signbit(v.d) ? "-" : "+", v.d != v.d ? NAN : std::fabs(v.d));
			text += buffer;
		}
		return text;
	}

	void		run_row(uint32_t row, uint32_t position)
	{
		std::vector<Value> r(program->nregs);

		row_of[0] = row;
		lane(program->parallel + 1, program->converge, r, program->nkeys == 0 && program->grouped ? &group_of({}) : nullptr, position);
	}

	/* Runs a lane up to an address; false: it died, or became pairs that were run. */
	bool		lane(int pc, int stop, std::vector<Value> &r, Group *group, uint32_t position)
	{
		while (pc < stop)
		{
			const Op   &op = program->ops()[pc++];
			uint32_t	err = 0;
			bool		leaves = false;

			switch (opcode_info[static_cast<int>(op.opcode)].form)
			{
				case OpForm::COLUMN:
					r[op.p1] = no_row[op.p3] ? Value{} : tables[op.p3]->columns[op.p2].rows[row_of[op.p3]];
					break;
				case OpForm::SEEK: case OpForm::SEEKRANGE: case OpForm::CROSS:
					join(pc - 1, stop, r, group, position);
					return false;
				case OpForm::ROWID: r[op.p1] = from_register(position); break;
				case OpForm::IMM32: r[op.p1] = from_register(op.p2); break;
				case OpForm::IMM64:
					if (op.opcode == Opcode::Int64)
						r[op.p1] = from_register(op.p4);
					else
						r[op.p1] = float_bits(op.type, op.p4);
					break;
				case OpForm::IMMNULL: r[op.p1] = Value{}; break;
				case OpForm::VARIABLE:
					r[op.p1] = params[op.p2].is_null ? Value{} : type_is_float(op.type) ? float_bits(op.type, params[op.p2].value)
						: from_register(params[op.p2].value);
					break;
				case OpForm::CAST: r[op.p1] = cast_value(op.type, static_cast<Type>(op.p5), r[op.p2], &err); break;
				case OpForm::UNARY: case OpForm::UNARY_IL: case OpForm::UNARY_LI:
					r[op.p1] = unary_value(op, r[op.p2], &err);
					break;
				case OpForm::BINARY: case OpForm::SHIFT:
					r[op.p1] = binary_value(op, r[op.p2], r[op.p3], &err);
					break;
				case OpForm::FIELD: r[op.p1] = field_value(op, r[op.p2], &err); break;
				case OpForm::LOOKUP: r[op.p1] = lookup_value(op, maps[op.p2], r[op.p3]); break;
				case OpForm::ZONE:
					r[op.p1] = r[op.p3].null ? r[op.p3] : from_register(sem::ZoneShift(r[op.p3].i, zone_part(maps[op.p2], INT64_MIN, INT64_MAX), &err));
					break;
				case OpForm::TEXTMATCH:
					{
						const Column &column = tables[op.p3]->columns[op.p2];
						const PatternSource &pattern = patterns->sources[static_cast<size_t>(op.p4)];
						const bool	null = no_row[op.p3] || column.rows[row_of[op.p3]].null || pattern.kind == TextMatchKind::Null;

						r[op.p1] = null ? Value{} : truth(pattern.matches(column.texts[row_of[op.p3]]));
						break;
					}
				case OpForm::TEXTPART:
					{
						const Column &column = tables[op.p3]->columns[op.p2];
						const bool	null = no_row[op.p3] || column.rows[row_of[op.p3]].null;

						r[op.p1] = null ? Value{} : from_register(part_of_text(op.p4, column.texts[row_of[op.p3]], &err));
						break;
					}
				case OpForm::LOGIC1:
					{
						const Value a = r[op.p2];

						if (op.opcode == Opcode::Not)
							r[op.p1] = a.null ? a : truth(!a.i);
						else
							r[op.p1] = truth(!a.null && (a.i != 0) == (op.opcode == Opcode::IsTrue));
						break;
					}
				case OpForm::LOGIC2:
					{
						const Value a = r[op.p2], b = r[op.p3];
						const bool	decisive = op.opcode == Opcode::Or;

						if ((!a.null && (a.i != 0) == decisive) || (!b.null && (b.i != 0) == decisive))
							r[op.p1] = truth(decisive);
						else
							r[op.p1] = a.null || b.null ? Value{} : truth(!decisive);
						break;
					}
				case OpForm::NULLTEST: r[op.p1] = truth(r[op.p2].null == (op.opcode == Opcode::IsNull)); break;
				case OpForm::DISTINCT:
					{
						const Value a = r[op.p2], b = r[op.p3];

						r[op.p1] = truth(a.null || b.null ? a.null != b.null : !compare_values(Opcode::Eq, op.type, a, b));
						break;
					}
				case OpForm::IN:
					{
						const Value a = r[op.p2];
						bool		found = false;

						for (int64_t k = 0; k < op.p4; k++)
							found = found || program->aux()[op.p3 + k] == a.i;
						r[op.p1] = a.null ? a : found ? truth(true) : op.p5 & IN_HAS_NULL ? Value{} : truth(false);
						break;
					}
				case OpForm::COMPARE:
					{
						const Value a = r[op.p1], b = r[op.p2];
						const bool	null = a.null || b.null;
						const bool	holds = !null && compare_values(op.opcode, op.type, a, b);

						if (op.p5 & COMPARE_STORES)
							r[op.p3] = null ? Value{} : truth(holds);
						else
							leaves = null ? (op.p5 & JUMP_IF_NULL) != 0 : holds;
						break;
					}
				case OpForm::BRANCH:
					leaves = r[op.p1].null ? (op.p5 & JUMP_IF_NULL) != 0 : (r[op.p1].i != 0) == (op.opcode == Opcode::If);
					break;
				case OpForm::JUMP:
					pc = op.p3;
					break;
				case OpForm::INVALID:
					return false;
				case OpForm::COPY: r[op.p1] = r[op.p2]; break;
				case OpForm::SELECT:
					r[op.p1] = !r[op.p4].null && r[op.p4].i ? r[op.p2] : r[op.p3];
					break;
				case OpForm::PICK: r[op.p1] = pick(op, r[op.p2], r[op.p3]); break;
				case OpForm::GROUP:
					{
						std::vector<Value> keys;

						for (int k = 0; k < op.p1; k++)
							keys.push_back(r[program->aux()[op.p2 + k]]);
						group = &group_of(keys);
						break;
					}
				case OpForm::AGGSTEP:
					if (op.p3 >= 0 && (r[op.p3].null || !r[op.p3].i))
						break;
					if (agg_is_wide(static_cast<AggFn>(op.p5)))
					{
						Value		whole = r[op.p2];

						whole.x = wide_value(r[op.p2].i, r[op.p4].i);
						if (!r[op.p2].null && !r[op.p4].null)
							group->inputs[op.p1].push_back(whole);
						break;
					}
					if (op.p2 < 0 || !r[op.p2].null)
						group->counts[op.p1]++;
					if (op.p2 >= 0 && !r[op.p2].null)
						group->inputs[op.p1].push_back(r[op.p2]);
					break;
				case OpForm::RESULT:
					outcome.rows.emplace_back(r.begin() + op.p1, r.begin() + op.p1 + op.p2);
					break;
				default:
					abort();
			}
			outcome.errors |= err;
			if (leaves && op.p4 == VERDICT_DIES)
				return false;
			if (leaves)
				pc = op.p3;
		}
		return true;
	}

	static Value float_bits(Type type, int64_t bits)
	{
		double		d;

		memcpy(&d, &bits, sizeof(d));
		return type == Type::F32 ? from_register(static_cast<float>(d)) : from_register(d);
	}

	static Value pick(const Op &op, const Value &a, const Value &b)
	{
		switch (op.opcode)
		{
			case Opcode::Coalesce:
				return a.null ? b : a;
			case Opcode::NullIf:
				return !a.null && !b.null && compare_values(Opcode::Eq, op.type, a, b) ? Value{} : a;
			default:
				if (a.null || b.null)
					return a.null ? b : a;
				return compare_values(op.opcode == Opcode::Greatest ? Opcode::Gt : Opcode::Lt, op.type, b, a) ? b : a;
		}
	}

	Group	   &group_of(const std::vector<Value> &keys)
	{
		Group	   &g = groups[key_text(keys)];

		if (g.counts.empty() && g.inputs.empty())
		{
			g.keys = keys;
			g.counts.resize(program->naggs);
			g.inputs.resize(program->naggs);
		}
		return g;
	}

	Value		aggregate(const Op &op, const Group &g)
	{
		const std::vector<Value> &in = g.inputs[op.p1];
		const AggFn fn = static_cast<AggFn>(op.p5);

		if (fn == AggFn::CountStar || fn == AggFn::Count)
			return from_register(g.counts[op.p1]);
		if (in.empty())
			return Value{};

		Value		v = in[0];

		if (agg_is_wide(fn))
		{
			for (const Value &x : in)
				if (fn == AggFn::MinWide ? x.x < v.x : x.x > v.x)
					v = x;
			return v;
		}
		if (fn == AggFn::BoolAnd || fn == AggFn::BoolOr)
		{
			for (const Value &x : in)
				if ((x.i != 0) == (fn == AggFn::BoolOr))
					v = x;
			return v;
		}
		if (fn == AggFn::Min || fn == AggFn::Max)
		{
			bool		pos = false, neg = false;

			for (const Value &x : in)
			{
				if (compare_values(fn == AggFn::Min ? Opcode::Lt : Opcode::Gt, op.type, x, v))
					v = x;
				pos = pos || (x.d == 0 && !std::signbit(x.d));
				neg = neg || is_neg_zero(x.d);
			}
			if (type_is_float(op.type) && v.d == 0 && pos && neg)
				outcome.errors |= ERR_AMBIGUOUS_ZERO;
			return v;
		}
		if (fn == AggFn::AnyValue)
		{
			/* where rows differ: the greatest integer, any bit of a float */
			for (const Value &x : in)
			{
				uint64_t	a = 0, b = 0;
				float		f = static_cast<float>(v.d), g = static_cast<float>(x.d);

				if (!type_is_float(op.type))
				{
					v.i = std::max(v.i, x.i);
					continue;
				}
				if (op.type == Type::F32)
				{
					memcpy(&a, &f, sizeof(f));
					memcpy(&b, &g, sizeof(g));
					a |= b;
					memcpy(&f, &a, sizeof(f));
					v.d = f;
					continue;
				}
				memcpy(&a, &v.d, sizeof(v.d));
				memcpy(&b, &x.d, sizeof(x.d));
				a |= b;
				memcpy(&v.d, &a, sizeof(v.d));
			}
			return v;
		}
		if (fn == AggFn::BitAnd || fn == AggFn::BitOr || fn == AggFn::BitXor)
		{
			for (size_t i = 1; i < in.size(); i++)
				v.i = fn == AggFn::BitAnd ? v.i & in[i].i : fn == AggFn::BitOr ? v.i | in[i].i : v.i ^ in[i].i;
			return v;
		}
		if (type_is_int(op.type))
		{
			Value		sum;

			sum.null = false;
			for (const Value &x : in)
				sum.x += x.i;
			return sum;
		}
		return float_sum(op.type, in);
	}

	Value		float_sum(Type type, const std::vector<Value> &in)
	{
		std::vector<double> finite;
		bool		nan = false, pos = false, neg = false, other = false;
		int			exponent = -2000;

		for (const Value &x : in)
		{
			nan = nan || x.d != x.d;
			pos = pos || x.d == INFINITY;
			neg = neg || x.d == -INFINITY;
			other = other || !is_neg_zero(x.d);
			if (!std::isfinite(x.d))
				continue;
			finite.push_back(x.d);
			/* |x| < 2^e; subnormals and zero count as 2^-1022 */
			exponent = std::max(exponent, x.d == 0 ? -1022 : std::max(std::ilogb(x.d) + 1, -1022));
		}

		int			log2n = 0;

		while ((size_t(1) << log2n) < in.size())
			log2n++;
		if (!finite.empty() && (type == Type::F32 ? exponent + log2n > 127 : 2 * (exponent + log2n + 1) > 1023))
			outcome.errors |= ERR_SUM_OVERFLOW;
		if (outcome.errors)
			return Value{};
		if (nan || (pos && neg))
			return from_register(static_cast<double>(NAN));
		if (pos || neg)
			return from_register(static_cast<double>(pos ? INFINITY : -INFINITY));
		if (!other)
			return from_register(-0.0);

		const double sum = exact_sum(finite);

		return from_register(sum == 0 ? 0.0 : sum);
	}

	void		finish_groups()
	{
		const int64_t *sources = nullptr;
		std::vector<const Op *> steps(program->naggs);

		if (program->nkeys == 0)
			group_of({});
		for (int i = 0; i < program->nops; i++)
		{
			const Op   &op = program->ops()[i];

			if (op.opcode == Opcode::AggOpen)
				sources = program->aux() + op.p3;
			if (op.opcode == Opcode::AggStep)
				steps[op.p1] = &op;
		}
		for (int k = 0; k < program->nkeys; k++)
		{
			bool		pos = false, neg = false;

			for (auto &[text, g] : groups)
			{
				/* integers have d = 0 */
				const Type	type = key_type(k);

				if (!type_is_float(type) || g.keys[k].null)
					continue;
				pos = pos || (g.keys[k].d == 0 && !std::signbit(g.keys[k].d));
				neg = neg || is_neg_zero(g.keys[k].d);
			}
			if (pos && neg)
				outcome.errors |= ERR_AMBIGUOUS_ZERO;
		}
		for (auto &[text, g] : groups)
		{
			std::vector<Value> aggs, row;

			for (const Op *op : steps)
				aggs.push_back(aggregate(*op, g));
			for (int c = 0; c < program->nresults; c++)
				row.push_back(sources[c] >= RESULT_FROM_AGG ? aggs[sources[c] - RESULT_FROM_AGG] : g.keys[sources[c]]);
			outcome.rows.push_back(row);
		}
	}

	Type		key_type(int k) const
	{
		for (int i = 0; i < program->nops; i++)
		{
			const Op   &op = program->ops()[i];

			if (op.opcode != Opcode::Group)
				continue;

			return reg_type(program->aux()[op.p2 + k], i);
		}
		return Type::Bool;
	}

	/* What is written above `end`. */
	Type		reg_type(int64_t reg, int end) const
	{
		for (int j = 0; j < end; j++)
		{
			const Op   &w = program->ops()[j];
			const OpForm form = opcode_info[static_cast<int>(w.opcode)].form;

			switch (form)
			{
				case OpForm::COMPARE: case OpForm::BRANCH: case OpForm::JUMP: case OpForm::INVALID: case OpForm::TABLE: case OpForm::RESCOL:
				case OpForm::AGGOPEN: case OpForm::PARALLEL: case OpForm::CONVERGE: case OpForm::GROUP: case OpForm::AGGSTEP: case OpForm::RESULT:
				case OpForm::HASHOPEN: case OpForm::HASHINSERT: case OpForm::SEEK: case OpForm::SEEKRANGE: case OpForm::CROSS: case OpForm::MATCH:
					break;
				default:
					if (w.p1 == reg)
						return form == OpForm::NULLTEST || form == OpForm::DISTINCT || form == OpForm::IN ? Type::Bool : w.type;
					break;
			}
		}
		return Type::Bool;		/* stored by a comparison */
	}

	const Program *program;
	const Table &table;
	std::vector<const Table *> tables;
	const ParamValue *params;
	const CodeMap *maps;
	const PatternSet *patterns;
	bool		lazy = false;
	Outcome		outcome;
	std::map<std::string, Group> groups;
	std::vector<InnerRow> inner[PROGRAM_MAX_CURSORS];
	uint32_t	row_of[PROGRAM_MAX_CURSORS] = {};
	bool		no_row[PROGRAM_MAX_CURSORS] = {};	/* the lane has no row of the cursor */
};

void
Interpreter::Machine::join(int address, int stop, const std::vector<Value> &r, Group *group, uint32_t position)
{
	const Op   &op = program->ops()[address];
	const int	cursor = op.p1;
	int			match = address;
	bool		any = false;

	while (program->ops()[match].opcode != Opcode::Match)
		match++;

	const JoinKind kind = static_cast<JoinKind>(program->ops()[match].p2);

	for (InnerRow &row : inner[cursor])
	{
		bool		same = true;

		for (int i = 0; op.opcode == Opcode::SeekRange && i < 2; i++)
			if (op.p2 & (i == 0 ? RANGE_LO : RANGE_HI))
				same = same && within(op, i, key_reg_type(cursor), row.keys[0], r[program->aux()[op.p3 + i]]);
		for (size_t k = 0; op.opcode == Opcode::Seek && k < row.keys.size(); k++)
			same = same && same_key(row.keys[k], r[program->aux()[op.p3 + k]]);
		row_of[cursor] = row.row;
		no_row[cursor] = false;
		if (!same)
			continue;

		std::vector<Value> pair = r;

		if (!lane(address + 1, match, pair, group, position))
			continue;
		any = row.matched = true;
		if (kind == JoinKind::Inner || kind == JoinKind::Left || kind == JoinKind::Full)
			lane(match + 1, stop, pair, group, position);
		else if (lazy)
			break;
	}
	if (any ? kind == JoinKind::Semi : kind == JoinKind::Left || kind == JoinKind::Anti || kind == JoinKind::Full)
	{
		std::vector<Value> alone = r;

		no_row[cursor] = true;
		lane(match + 1, stop, alone, group, position);
	}
	no_row[cursor] = false;
}

Interpreter::Interpreter(const Program *program, const Table &table, const ParamValue *params, const CodeMap *maps, const PatternSet *patterns)
	: machine(std::make_unique<Machine>(program, table, params, maps, patterns))
{
}

Interpreter::Interpreter(const Program *program, const std::vector<const Table *> &tables, const ParamValue *params, bool lazy,
						 const CodeMap *maps, const PatternSet *patterns)
	: machine(std::make_unique<Machine>(program, tables, params, lazy, maps, patterns))
{
}

Interpreter::~Interpreter() = default;

Outcome
Interpreter::run()
{
	return machine->run();
}

std::vector<bool>
Interpreter::failing_rows()
{
	return machine->failing_rows();
}

/* -- result rows ---------------------------------------------------------------------- */

std::string
value_text(Type type, const Value &v)
{
	char		buffer[80];

	if (v.null)
		return "null";
	if (type_is_float(type))
	{
		if (v.d != v.d)
			return "nan";
		snprintf(buffer, sizeof(buffer), "%a", v.d);
	}
	else if (type == Type::I128)
		snprintf(buffer, sizeof(buffer), "%llx:%llx", static_cast<unsigned long long>(v.x >> 64),
				 static_cast<unsigned long long>(v.x));
	else
		snprintf(buffer, sizeof(buffer), "%lld", static_cast<long long>(v.i));
	return buffer;
}

std::vector<std::string>
rows_text(const Program *program, const Outcome &outcome)
{
	std::vector<Type> types(program->nresults);
	std::vector<std::string> rows;

	program_result_types(program, types.data());
	for (const std::vector<Value> &row : outcome.rows)
	{
		std::string text;

		for (int c = 0; c < program->nresults; c++)
			text += value_text(types[c], row[c]) + ",";
		rows.push_back(text);
	}
	return rows;
}

void
read_area(const Program *program, const char *area, uint32_t capacity, uint32_t n, Outcome *out)
{
	std::vector<Type> types(program->nresults);
	std::vector<ResultColumnLayout> layout(program->nresults);

	program_result_types(program, types.data());
	result_layout(types.data(), program->nresults, capacity, layout.data());
	for (uint32_t r = 0; r < n; r++)
	{
		std::vector<Value> row;

		for (int c = 0; c < program->nresults; c++)
		{
			const char *at = area + layout[c].values + static_cast<size_t>(r) * type_width(types[c]);
			Value		v;

			v.null = (area[layout[c].nulls + r / 8] >> (r % 8)) & 1;
			switch (types[c])
			{
				case Type::Bool: v.i = *at; break;
				case Type::I64: memcpy(&v.i, at, 8); break;
				case Type::F32: { float f; memcpy(&f, at, 4); v.d = f; break; }
				case Type::F64: memcpy(&v.d, at, 8); break;
				case Type::I128: memcpy(&v.x, at, 16); break;
				case Type::RowId: { uint32_t u; memcpy(&u, at, 4); v.i = u; break; }
				default: { int32_t i; memcpy(&i, at, 4); v.i = i; break; }
			}
			row.push_back(v);
		}
		out->rows.push_back(row);
	}
}

/* -- the CPU machine over a whole table ------------------------------------------------------- */

Outcome
run_cpu_rows(const Program *program, const Table &table, const std::vector<ParamValue> &params, uint32_t unit_rows,
			 const CodeMap *maps, const PatternSet *patterns)
{
	auto		job = CpuJob::create(program, params.data(), static_cast<uint32_t>(params.size()), table.summaries.data(),
									 static_cast<uint32_t>(table.summaries.size()), table.nrows(), maps,
									 patterns ? patterns->patterns.data() : nullptr);
	auto		state = job->new_state();
	Outcome		out;

	for (size_t t = 0; t < table.tablets.size(); t++)
	{
		uint32_t	nmasked;
		const MaskedRows *masked = table.masked_of(t, &nmasked);

		if (job->can_skip(table.tablets[t].get()))
			continue;
		for (uint32_t first = 0; first < table.tablet_rows[t]; first += unit_rows)
		{
			const uint32_t last = std::min(first + unit_rows, table.tablet_rows[t]);
			Area		area(program, last - first);
			const CpuUnitOutcome unit = job->run_rows(state.get(), table.tablets[t].get(), first, last, area.memory.get(), area.capacity,
													  masked, nmasked);

			out.errors |= unit.errors;
			read_area(program, area.memory.get(), area.capacity, unit.errors ? 0 : unit.rows, &out);
		}
	}
	return out;
}

Outcome
run_cpu_groups(const Program *program, const Table &table, const std::vector<ParamValue> &params, uint32_t unit_rows,
			   int nstates, std::mt19937_64 &rng, const CodeMap *maps, const PatternSet *patterns,
			   TextKeys *text_keys)
{
	auto		job = CpuJob::create(program, params.data(), static_cast<uint32_t>(params.size()), table.summaries.data(),
									 static_cast<uint32_t>(table.summaries.size()), table.nrows(), maps,
									 patterns ? patterns->patterns.data() : nullptr, text_keys);
	std::vector<std::unique_ptr<CpuState>> states;
	Outcome		out;

	for (int i = 0; i < nstates; i++)
		states.push_back(job->new_state());
	for (size_t t = 0; t < table.tablets.size(); t++)
	{
		uint32_t	nmasked;
		const MaskedRows *masked = table.masked_of(t, &nmasked);

		if (job->can_skip(table.tablets[t].get()))
			continue;
		for (uint32_t first = 0; first < table.tablet_rows[t]; first += unit_rows)
			job->run_groups(states[rng() % states.size()].get(), table.tablets[t].get(), first,
							std::min(first + unit_rows, table.tablet_rows[t]), masked, nmasked);
	}
	if (rng() % 2)
	{
		std::vector<CpuState *> all;
		std::vector<uint32_t> parts;

		std::shuffle(states.begin(), states.end(), rng);
		for (const auto &state : states)
			all.push_back(state.get());
		parts.resize(job->begin_merge(all.data(), static_cast<uint32_t>(all.size())));
		std::iota(parts.begin(), parts.end(), 0);
		std::shuffle(parts.begin(), parts.end(), rng);

		auto		every_second = [&](size_t first) {
			for (size_t i = first; i < parts.size(); i += 2)
				job->merge_part(all.data(), static_cast<uint32_t>(all.size()), parts[i]);
		};
		std::thread other(every_second, 1);

		every_second(0);
		other.join();
		out.errors = job->finish(states[0].get());
		states.resize(1);
	}
	while (states.size() > 1)
	{
		std::shuffle(states.begin(), states.end(), rng);

		auto		spent = std::move(states.back());

		states.pop_back();
		job->merge(states[0].get(), spent.get());
	}
	out.errors = job->finish(states[0].get());
	for (uint64_t at = 0; at < job->ngroups(states[0].get());)
	{
		Area		area(program, 192);
		const uint32_t n = job->emit_groups(states[0].get(), at, area.memory.get(), area.capacity);

		read_area(program, area.memory.get(), area.capacity, n, &out);
		at += n;
	}
	return out;
}

}  // namespace reference
}  // namespace gpuvm
