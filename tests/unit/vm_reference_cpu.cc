/* vm_reference_cpu.cc: the CPU machine over a whole table, and rows of either as text. See vm_reference.h. */
#include "vm_reference.h"
#include "spill_to_memory.h"

#include <mutex>
#include <thread>

namespace gpuvm {
namespace reference {

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

/* The units of rows of the tablets that the job does not skip: run(tablet, first row, row behind the last, masked rows, their number). */
template <typename Run>
static void
each_unit(const CpuJob *job, const Table &table, uint32_t unit_rows, Run run)
{
	for (size_t t = 0; t < table.tablets.size(); t++)
	{
		uint32_t	nmasked;
		const MaskedRows *masked = table.masked_of(t, &nmasked);

		if (job->can_skip(table.tablets[t].get()))
			continue;
		for (uint32_t first = 0; first < table.tablet_rows[t]; first += unit_rows)
			run(table.tablets[t].get(), first, std::min(first + unit_rows, table.tablet_rows[t]), masked, nmasked);
	}
}

Outcome
run_cpu_rows(const Program *program, const Table &table, const std::vector<ParamValue> &params, uint32_t unit_rows,
			 const CodeMap *maps, const PatternSet *patterns)
{
	auto		job = CpuJob::create(program, params.data(), static_cast<uint32_t>(params.size()), table.summaries.data(),
									 static_cast<uint32_t>(table.summaries.size()), table.nrows(), maps,
									 patterns ? patterns->patterns.data() : nullptr);
	auto		state = job->new_state();
	Outcome		out;

	each_unit(job.get(), table, unit_rows, [&](const TabletHeader *tablet, uint32_t first, uint32_t last, const MaskedRows *masked, uint32_t nmasked) {
		Area		area(program, last - first);
		const CpuUnitOutcome unit = job->run_rows(state.get(), tablet, first, last, area.memory.get(), area.capacity, masked, nmasked);

		out.errors |= unit.errors;
		read_area(program, area.memory.get(), area.capacity, unit.errors ? 0 : unit.rows, &out);
	});
	return out;
}

std::mutex	limits_mutex;

/* A few thousand groups go all the ways that many go. One thread's at a time: the limits are everyone's. */
class FewAreMany
{
public:
	explicit FewAreMany(bool wanted) : lock_(limits_mutex), before_(cpu_group_limits)
	{
		if (wanted)
			cpu_group_limits = CpuGroupLimits{256, 11, 500, size_t(64) << 10, 1500, size_t(16) << 10};
	}
	~FewAreMany() { cpu_group_limits = before_; }

private:
	const std::lock_guard<std::mutex> lock_;
	const CpuGroupLimits before_;
};

std::atomic<uint64_t> bytes_spilled{0};

Outcome
run_cpu_groups(const Program *program, const Table &table, const std::vector<ParamValue> &params, uint32_t unit_rows,
			   int nstates, std::mt19937_64 &rng, const CodeMap *maps, const PatternSet *patterns,
			   TextKeys *text_keys)
{
	const FewAreMany few(rng() % 2 != 0);
	auto		job = CpuJob::create(program, params.data(), static_cast<uint32_t>(params.size()), table.summaries.data(),
									 static_cast<uint32_t>(table.summaries.size()), table.nrows(), maps,
									 patterns ? patterns->patterns.data() : nullptr, text_keys);
	std::vector<std::unique_ptr<CpuState>> states;
	SpillToMemory spill(static_cast<uint32_t>(rng()));
	const bool	spills = rng() % 2 != 0;
	Outcome		out;

	for (int i = 0; i < nstates; i++)
	{
		states.push_back(job->new_state());
		if (spills)
			job->set_spill(states.back().get(), &spill);
	}
	each_unit(job.get(), table, unit_rows, [&](const TabletHeader *tablet, uint32_t first, uint32_t last, const MaskedRows *masked, uint32_t nmasked) {
		job->run_groups(states[rng() % states.size()].get(), tablet, first, last, masked, nmasked);
	});
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
	bytes_spilled += spill.nread();
	return out;
}

}  // namespace reference
}  // namespace gpuvm
