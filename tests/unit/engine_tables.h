/*
 * engine_tables.h: jobs over random tables on the real CPU virtual machine, from
 * the request to the last buffer.
 */
#ifndef GPUVM_TESTS_ENGINE_TABLES_H
#define GPUVM_TESTS_ENGINE_TABLES_H

#include "engine_fixture.h"

#include "vm_random.h"

namespace {

namespace ref = gpuvm::reference;

class TableJobTest : public EngineJobTest
{
public:
	void SetUp() override
	{
		EngineJobTest::SetUp();
		context_.make_cpu_job = CpuJob::create;
	}

	/*
	 * The table as a job has it that is made of a table's tablets, of another
	 * table's with other attribute numbers, and of a delta. The arena is empty behind
	 * `mark` before.
	 */
	JobCursor put(const ref::Table &table, ref::Rng &rng)
	{
		const uint32_t ndelta = static_cast<uint32_t>(ref::pick_int(rng, static_cast<int>(table.tablets.size())));
		JobCursor	cursor = {};

		cursor.ncolumns = static_cast<uint32_t>(table.summaries.size());
		cursor.columns = copy(table.summaries);
		cursor.ntablets = static_cast<uint32_t>(table.tablets.size());
		cursor.nmasked = static_cast<uint32_t>(table.masked.size());
		cursor.masked = copy(table.masked);

		std::vector<uint64_t> offsets;

		for (uint32_t t = 0; t < cursor.ntablets; t++)
		{
			TabletHeader *to = at<TabletHeader>(offsets.emplace_back(allocate(table.tablets[t]->size)));

			memcpy(to, table.tablets[t].get(), table.tablets[t]->size);
			for (uint32_t c = 0; c < cursor.ncolumns; c++)
				tablet_chunks(to)[c].attnum = static_cast<int16_t>(c + 1 + t * 7);
			to->serial = ++serial_;
			if (t + ndelta >= cursor.ntablets)
			{
				to->serial = 0;
				to->nblocks = 0;
				at<uint32_t>(offsets[t] + to->block_rows)[0] = to->nrows;
			}
		}
		cursor.tablets = copy(offsets);
		return cursor;
	}

	template <typename T>
	uint64_t copy(const std::vector<T> &from)
	{
		uint64_t	offset = allocate(from.size() * sizeof(T) + 64);

		std::copy(from.begin(), from.end(), at<T>(offset));
		return offset;
	}

	/* The maps, as a backend puts them there. */
	void put(const ref::MapSet &maps, Job *job)
	{
		std::vector<JobMap> to;

		for (const CodeMap &map : maps.maps)
		{
			const size_t n = map.nentries + (map.has_null_entry ? 1 : 0), words = (n + 63) / 64;
			JobMap		m = {map.type, {}, map.nentries, map.has_null_entry, 0, allocate(n * 8 + 64), map.nulls ? allocate(words * 8) : 0};

			memcpy(at<char>(m.values), map.values, n * static_cast<size_t>(type_width(map.type)));
			if (map.nulls)
				memcpy(at<char>(m.nulls), map.nulls, words * 8);
			to.push_back(m);
		}
		job->maps = copy(to);
		job->nmaps = static_cast<uint32_t>(to.size());
	}

	/* Free buffers for the program's results, or the number of groups. */
	void give_buffers(const Program *program, uint32_t n, Job *job)
	{
		Type		types[PROGRAM_MAX_COLUMNS];

		program_result_types(program, types);
		job->result_capacity = UNIT_ROWS;
		job->nbuffers = n;
		for (uint32_t i = 0; i < n; i++)
		{
			job->buffers[i].offset = allocate(std::max(result_layout(types, program->nresults, UNIT_ROWS, nullptr),
													   count_at(UNIT_ROWS) + UNIT_ROWS * sizeof(uint64_t)));
			job->buffers[i].state.store(static_cast<uint32_t>(BufferState::Free));
		}
	}

	/* All rows to the end; of a row program, in the order of the units. */
	ref::Outcome run(Backend *backend, const Program *program)
	{
		Job		   *job = backend->job;
		std::map<uint32_t, ref::Outcome> units;
		ref::Outcome all;

		backend->submit();
		for (bool last = false; !last;)
		{
			EXPECT_TRUE(backend->wait([=] { return backend->ended() || backend->full_buffer() >= 0; }));
			last = backend->ended();
			for (int b; (b = backend->full_buffer()) >= 0;)
			{
				ResultBuffer &buffer = job->buffers[b];
				ref::Outcome &unit = units[buffer.unit];

				EXPECT_TRUE(unit.rows.empty() && unit.errors == 0) << "a unit came twice";
				unit.errors = buffer.errors;
				if (job->count_groups)
				{
					EXPECT_EQ(buffer.nrows, 1u);
					groups_counted_ = *at<uint64_t>(buffer.offset + count_at(job->result_capacity));
				}
				else
					ref::read_area(program, at<char>(buffer.offset), job->result_capacity, buffer.nrows, &unit);
				buffer.state.store(static_cast<uint32_t>(BufferState::Free));
				if (backend->state() == JobState::Suspended)
					backend->ring();
			}
		}
		EXPECT_EQ(backend->state(), JobState::Done) << backend->failure();
		for (auto &[number, unit] : units)
		{
			all.errors |= unit.errors;
			all.rows.insert(all.rows.end(), unit.rows.begin(), unit.rows.end());
		}
		all.errors |= job->errors;
		return all;
	}

	static uint64_t count_at(uint32_t capacity)
	{
		Type		type = Type::I64;
		ResultColumnLayout layout;

		result_layout(&type, 1, capacity, &layout);
		return layout.values;
	}

	uint64_t	serial_ = 1000;
	uint64_t	groups_counted_ = 0;
};

}  // namespace

#endif
