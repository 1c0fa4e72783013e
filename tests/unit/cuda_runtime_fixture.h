/*
 * cuda_runtime_fixture.h: the device library's job runtime on the emulated device:
 * tables in an arena, a backend, and results held against the CPU virtual machine's.
 */
#ifndef GPUVM_TESTS_CUDA_RUNTIME_FIXTURE_H
#define GPUVM_TESTS_CUDA_RUNTIME_FIXTURE_H

#include <gtest/gtest.h>

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "engine/device_abi.h"
#include "engine/pin_words.h"
#include "transfer.h"
#include "vm_random.h"

extern "C" gpuvm::DeviceLibrary *gpuvm_open_device_library(const gpuvm::DeviceOptions *options, char *why);

namespace gpuvm {
namespace reference {

constexpr uint64_t ARENA_SIZE = 4 * MIN_PIN_CHUNK;
constexpr Transfer ALL_TRANSFERS[] = {Transfer::Auto, Transfer::Serial, Transfer::Stream, Transfer::Mapped, Transfer::Cached};

struct Fatal
{
	std::string line;
};

/* ---- tables in an arena ------------------------------------------------------------ */

struct StoredTable
{
	const Table *table;
	std::vector<DeviceTabletRef> tablets;
	const DeviceSet *set = nullptr;	/* instead of all that */
	bool		of_host_set = false;
};

class Arena
{
public:
	Arena()
	{
		base = static_cast<char *>(mmap(nullptr, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
		header = new (base) ArenaHeader();
		header->magic = ARENA_MAGIC;
		header->abi_version = ABI_VERSION;
		header->size = ARENA_SIZE;
		header->index_limit.store(ARENA_SIZE);
		next = align_up(sizeof(ArenaHeader), 4096);
	}

	~Arena() { munmap(base, ARENA_SIZE); }

	char	   *get(uint64_t bytes)
	{
		std::lock_guard<std::mutex> lock(mutex);
		char	   *at = base + next;

		next += align_up(bytes, 64);
		EXPECT_LE(next, ARENA_SIZE);
		return at;
	}

	/* Every `unnamed`th tablet has no serial. */
	StoredTable store(const Table &table, uint32_t unnamed = 0)
	{
		StoredTable stored = {&table, {}};

		for (size_t t = 0; t < table.tablets.size(); t++)
		{
			char	   *at = get(table.tablets[t]->size);

			memcpy(at, table.tablets[t].get(), table.tablets[t]->size);
			reinterpret_cast<TabletHeader *>(at)->refs = 1;
			reinterpret_cast<TabletHeader *>(at)->serial = unnamed != 0 && t % unnamed == 0 ? 0 : serial++;
			stored.tablets.push_back(DeviceTabletRef{reinterpret_cast<TabletHeader *>(at), false});
		}
		mask(&stored);
		return stored;
	}

	/* As the table's masks are now. */
	static void mask(StoredTable *stored)
	{
		for (size_t t = 0; t < stored->tablets.size(); t++)
		{
			DeviceTabletRef &ref = stored->tablets[t];

			ref.masked = stored->table->masked_of(t, &ref.nmasked);
			ref.skip = masked_count(ref.masked, ref.nmasked, 0, ref.tablet->nrows) == ref.tablet->nrows;
		}
	}

	/*
	 * The table's last tablet was made for one job: it lies where that of the job before
	 * lay, and the others are those that are stored.
	 */
	StoredTable with_delta(const StoredTable &stored, const Table &table, char *at)
	{
		StoredTable with = {&table, {stored.tablets.begin(), stored.tablets.begin() + static_cast<long>(table.tablets.size()) - 1}};
		const TabletHeader *delta = table.tablets.back().get();

		memcpy(at, delta, delta->size);
		reinterpret_cast<TabletHeader *>(at)->serial = 0;
		with.tablets.push_back(DeviceTabletRef{reinterpret_cast<TabletHeader *>(at), false});
		mask(&with);
		return with;
	}

	char	   *base;
	ArenaHeader *header;
	uint64_t	next;
	uint64_t	serial = 1;
	std::mutex	mutex;
};

/* ---- a backend ---------------------------------------------------------------------- */

struct UnitRows
{
	std::vector<std::string> rows;
	bool		errors = false;
	uint32_t	parts = 0;
	bool		whole = false;	/* the last part came */

	bool operator==(const UnitRows &other) const { return rows == other.rows && errors == other.errors; }
};

using Units = std::map<uint32_t, UnitRows>;

enum class Buffer { Free, Filling, Full };

class FakeIo : public DeviceJobIo
{
public:
	FakeIo(const Program *program, bool count, char *const *areas, uint32_t nbuffers, uint32_t capacity)
		: program(program), count(count), areas(areas), capacity(capacity), buffers(nbuffers, Buffer::Free) {}

	int claim_buffer() override
	{
		for (size_t i = 0; i < buffers.size(); i++)
			if (buffers[i] == Buffer::Free)
			{
				buffers[i] = Buffer::Filling;
				return static_cast<int>(i);
			}
		return -1;
	}

	void publish_part(int buffer, uint32_t unit, uint32_t part, bool last, uint32_t nrows, uint32_t errors) override
	{
		Outcome		out;

		EXPECT_FALSE(has_stopped) << "rows of a stopped job";
		EXPECT_EQ(buffers[static_cast<size_t>(buffer)], Buffer::Filling);
		EXPECT_EQ(part, units.count(unit) != 0 ? units[unit].parts : 0u) << "unit " << unit;
		EXPECT_FALSE(units[unit].whole) << "unit " << unit << " twice";
		EXPECT_TRUE(nrows == 0 || errors == 0);
		EXPECT_LE(nrows, capacity);
		if (count)
			memcpy(&ngroups, areas[buffer] + align_up(capacity / 8, 64), 8);
		else
			read_area(program, areas[buffer], capacity, nrows, &out);

		const std::vector<std::string> text = count ? std::vector<std::string>() : rows_text(program, out);

		units[unit].rows.insert(units[unit].rows.end(), text.begin(), text.end());
		units[unit].errors = errors != 0;
		units[unit].parts++;
		units[unit].whole = last;
		/* the backend has it and may write there again */
		memset(areas[buffer], 0xee, 64);
		buffers[static_cast<size_t>(buffer)] = slow ? Buffer::Full : Buffer::Free;
		published++;
		rows += nrows;
	}

	void unclaim(int buffer) override
	{
		EXPECT_EQ(buffers[static_cast<size_t>(buffer)], Buffer::Filling);
		buffers[static_cast<size_t>(buffer)] = Buffer::Free;
	}

	bool wait_for_buffer() override
	{
		waits++;
		for (Buffer &buffer : buffers)
			if (buffer == Buffer::Full)
			{
				buffer = Buffer::Free;
				return !stopped();
			}
		ADD_FAILURE() << "waits for buffers that it holds itself";
		return false;
	}

	bool stopped() override
	{
		asked++;
		if (when_asked)
			when_asked();
		has_stopped = has_stopped || asked > stop_after_asking || published >= stop_after_publishing || (row_limit != 0 && rows >= row_limit);
		return has_stopped;
	}

	bool		all_free() const
	{
		return std::count(buffers.begin(), buffers.end(), Buffer::Filling) == 0;
	}

	const Program *program;
	bool		count;
	char *const *areas;
	uint32_t	capacity;
	std::vector<Buffer> buffers;
	bool		slow = false;	/* takes a buffer's rows only when the job waits for it */
	uint64_t	stop_after_asking = UINT64_MAX;
	uint64_t	stop_after_publishing = UINT64_MAX;
	uint64_t	row_limit = 0;
	std::function<void()> when_asked;
	uint64_t	asked = 0, published = 0, rows = 0, waits = 0;
	bool		has_stopped = false;
	Units		units;
	uint64_t	ngroups = UINT64_MAX;
};

/* How a job is run; the defaults are plain. */
struct Ways
{
	Transfer	transfer = Transfer::Auto;
	uint32_t	unit_pads = 1;
	uint32_t	nbuffers = 4;
	std::vector<uint8_t> skip_units;
	bool		count_groups = false;
	uint64_t	row_limit = 0;
	std::vector<JobOrderKey> order;	/* rows and groups leave sorted */
	uint32_t	capacity = 0;	/* of buffers of groups */
	uint64_t	expected_pairs = 0;
	uint32_t	passes = 0;
	const std::vector<CodeMap> *maps = nullptr;
	const PatternSet *patterns = nullptr;
	const TextOrder *text_orders = nullptr;
	const Program *stage = nullptr;	/* over the groups of the program */
	bool		sink = false;	/* a set is made, */
	std::vector<SinkColumn> sink_columns;	/* of all results, where none are listed */
	uint64_t	sink_limit = UINT64_MAX;
	DeviceSet  *append_to = nullptr;
	std::function<void(FakeIo *)> tell;
};

struct Ran
{
	DeviceOutcome outcome;
	DeviceJobFigures figures;
	std::string reason;
	Units		units;
	uint64_t	ngroups;
	uint64_t	rows;
	uint64_t	waits;

	/* Of groups, in no order. */
	std::vector<std::string> sorted() const
	{
		std::vector<std::string> all;

		for (const auto &[unit, rows] : units)
			all.insert(all.end(), rows.rows.begin(), rows.rows.end());
		std::sort(all.begin(), all.end());
		return all;
	}
};

/* By this thread's jobs. */
inline thread_local std::string last_logged;

class CudaRuntime : public testing::Test
{
protected:
	void open(uint64_t memory_limit = 0)
	{
		char		why[256] = "";
		DeviceOptions options = {};

		cuda::least_set_tablets = 1;	/* tables have few here */
		options.abi_version = DEVICE_ABI_VERSION;
		options.arena = arena.base;
		options.arena_size = ARENA_SIZE;
		options.header = arena.header;
		options.memory_limit = memory_limit;
		options.log = [](const char *line) { last_logged = line; };
		options.fatal = [](const char *line) { throw Fatal{line}; };
		library.reset(gpuvm_open_device_library(&options, why));
		ASSERT_NE(library, nullptr) << why;
		library->start();
		ASSERT_TRUE(library->ready()) << arena.header->devices[0].sentence;
	}

	void TearDown() override
	{
		library.reset();
		gpuvm_emulated::limit_memory(SIZE_MAX);
		EXPECT_EQ(gpuvm_emulated::allocated_bytes(), 0u) << "device memory was lost";
	}

	DeviceStatus &status() { return arena.header->devices[0]; }

	static DeviceCursor cursor_of(const StoredTable &stored)
	{
		if (stored.set != nullptr)
			return DeviceCursor{stored.set->columns(), stored.set->ncolumns(), nullptr, 0, stored.set->rows(), stored.set, false};
		return DeviceCursor{stored.table->summaries.data(), static_cast<uint32_t>(stored.table->summaries.size()), stored.tablets.data(),
			static_cast<uint32_t>(stored.tablets.size()), stored.table->nrows(), nullptr, stored.of_host_set};
	}

	Ran run(const Program *program, const StoredTable &stored, const std::vector<ParamValue> &params, const Ways &ways)
	{
		return run(program, std::vector<StoredTable>{stored}, params, ways);
	}

	/* A table for each cursor. */
	Ran run(const Program *program, const std::vector<StoredTable> &stored, const std::vector<ParamValue> &params, const Ways &ways)
	{
		const Program *last = ways.stage != nullptr ? ways.stage : program;
		std::vector<DeviceCursor> others;
		std::vector<Type> types(last->nresults);
		std::vector<char *> areas;
		DeviceJobRequest request = {};
		Ran			ran = {};
		char		reason[128] = "";

		program_result_types(last, types.data());
		if (ways.count_groups)
			types.assign(1, Type::I64);
		request.program = program;
		request.stage = ways.stage;
		request.params = params.data();
		request.nparams = static_cast<uint32_t>(params.size());
		static_cast<DeviceCursor &>(request) = cursor_of(stored[0]);
		for (size_t i = 1; i < stored.size(); i++)
			others.push_back(cursor_of(stored[i]));
		request.others = others.data();
		request.nothers = static_cast<uint32_t>(others.size());
		request.expected_pairs = ways.expected_pairs;
		request.force_passes = ways.passes;
		request.unit_rows = ways.unit_pads * TABLET_PAD_ROWS;
		request.capacity = ways.capacity != 0 ? ways.capacity : request.unit_rows;
		request.nbuffers = ways.nbuffers;
		for (uint32_t i = 0; i < ways.nbuffers; i++)
			areas.push_back(arena.get(result_layout(types.data(), static_cast<int>(types.size()), request.capacity, nullptr) + 64));
		request.areas = areas.data();
		request.skip_units = ways.skip_units.data();
		request.skip_bytes = ways.skip_units.size();
		request.row_limit = ways.row_limit;
		request.order = ways.order.data();
		request.norder = static_cast<uint32_t>(ways.order.size());
		request.count_groups = ways.count_groups;
		request.sink = ways.sink;
		request.sink_columns = ways.sink_columns.data();
		request.nsink_columns = static_cast<uint32_t>(ways.sink_columns.size());
		request.sink_limit = ways.sink_limit;
		request.append_to = ways.append_to;
		request.transfer = ways.transfer;
		request.maps = ways.maps ? ways.maps->data() : nullptr;
		request.nmaps = ways.maps ? static_cast<uint32_t>(ways.maps->size()) : 0;

		request.patterns = ways.patterns ? ways.patterns->patterns.data() : nullptr;
		request.text_orders = ways.text_orders;

		FakeIo		io(last, ways.count_groups, areas.data(), ways.nbuffers, request.capacity);

		io.row_limit = ways.row_limit;
		if (ways.tell)
			ways.tell(&io);
		ran.outcome = library->run(request, &io, &ran.figures, reason);
		EXPECT_TRUE(io.all_free()) << "a claimed buffer was kept";
		ran.reason = reason;
		ran.units = io.units;
		ran.ngroups = io.ngroups;
		ran.rows = io.rows;
		ran.waits = io.waits;
		return ran;
	}

	/* The job is done and its units are those of the CPU. */
	void expect_rows(const Program *program, const StoredTable &stored, const std::vector<ParamValue> &params, const Ways &ways)
	{
		const Ran	ran = run(program, stored, params, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;

		const Units expected = cpu_units(program, stored, params, ways);

		ASSERT_EQ(ran.units.size(), expected.size());
		for (const auto &[unit, rows] : expected)
		{
			ASSERT_EQ(ran.units.count(unit), 1u) << "unit " << unit;
			ASSERT_EQ(ran.units.at(unit).errors, rows.errors) << "unit " << unit;
			ASSERT_EQ(ran.units.at(unit).rows, rows.rows) << "unit " << unit;
		}
	}

	Units cpu_units(const Program *program, const StoredTable &stored, const std::vector<ParamValue> &params, const Ways &ways)
	{
		auto		job = CpuJob::create(program, params.data(), static_cast<uint32_t>(params.size()), stored.table->summaries.data(),
										 static_cast<uint32_t>(stored.table->summaries.size()), stored.table->nrows(),
										 ways.maps ? ways.maps->data() : nullptr, ways.patterns ? ways.patterns->patterns.data() : nullptr);
		auto		state = job->new_state();
		const uint32_t unit_rows = ways.unit_pads * TABLET_PAD_ROWS;
		uint32_t	unit = 0;
		Units		units;

		for (const DeviceTabletRef &ref : stored.tablets)
			for (uint32_t first = 0; first < ref.tablet->nrows; first += unit_rows, unit++)
			{
				const uint32_t last = std::min(first + unit_rows, ref.tablet->nrows);
				Area		area(program, last - first);
				Outcome		out;

				if (ref.skip || (unit / 8 < ways.skip_units.size() && (ways.skip_units[unit / 8] >> (unit % 8) & 1)))
					continue;

				const CpuUnitOutcome did = job->run_rows(state.get(), ref.tablet, first, last, area.memory.get(), area.capacity,
														 ref.masked, ref.nmasked);

				if (did.errors == 0 && did.rows == 0)
					continue;
				read_area(program, area.memory.get(), area.capacity, did.errors ? 0 : did.rows, &out);
				units[unit] = UnitRows{rows_text(program, out), did.errors != 0, 1, true};
			}
		return units;
	}

	void expect_groups(const Program *program, const StoredTable &stored, const std::vector<ParamValue> &params, const Ways &ways)
	{
		Rng			rng(1);
		const Outcome expected = run_cpu_groups(program, *stored.table, params, 1024, 1, rng, ways.maps ? ways.maps->data() : nullptr,
											   ways.patterns);
		std::vector<std::string> rows = rows_text(program, expected);
		const Ran	ran = run(program, stored, params, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.figures.errors != 0, expected.errors != 0);
		if (expected.errors)
		{
			ASSERT_TRUE(ran.units.empty());
			return;
		}
		std::sort(rows.begin(), rows.end());
		if (ways.count_groups)
			ASSERT_EQ(ran.ngroups, rows.size());
		else
			ASSERT_EQ(ran.sorted(), rows);
	}

	Arena		arena;
	std::unique_ptr<DeviceLibrary> library;
};

/* ---- programs and tables -------------------------------------------------------------- */

/* k: 0 .. keys - 1; v: any; n: with nulls. */
inline Table
three_columns(const std::vector<uint32_t> &tablet_rows, uint32_t keys, uint64_t seed)
{
	Rng			rng(seed);
	Table		table;

	table.tablet_rows = tablet_rows;
	table.columns = {Column{Type::I32, {}}, Column{Type::I64, {}}, Column{Type::I32, {}}};
	for (uint32_t n : tablet_rows)
		for (uint32_t r = 0; r < n; r++)
		{
			table.columns[0].rows.push_back(from_register(static_cast<int64_t>(rng() % keys)));
			table.columns[1].rows.push_back(from_register(static_cast<int64_t>(rng() % 1000000000000)));
			table.columns[2].rows.push_back(chance(rng, 20) ? Value{} : from_register(static_cast<int64_t>(rng() % 1000)));
		}
	table.build();
	return table;
}

/* Keys of three_columns(), of too wide a range for bits: what has them is not reduced. */
inline void
spread_keys(Table *a, Table *b)
{
	a->columns[0].rows[0] = b->columns[0].rows[0] = from_register(INT32_MAX);
	a->build();
	b->build();
}

/* SELECT k, n, v FROM t WHERE k < limit; with `add`, k + add is evaluated, too. */
inline SealedProgram
filter_program(int limit, int add = 0)
{
	auto		b = new_builder();
	const Type	types[] = {Type::I32, Type::I32, Type::I64};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < 3; c++)
		b->emit(Opcode::ResultColumn, types[c], c, 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	k = b->new_reg(Type::I32), n = b->new_reg(Type::I32), v = b->new_reg(Type::I64);
	const int	bound = b->new_reg(Type::I32), d = b->new_reg(Type::I32), sum = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, k, 0, 0);
	if (add != 0)
	{
		b->emit(Opcode::Integer, Type::I32, d, add, 0);
		b->emit(Opcode::Add, Type::I32, sum, k, d);
	}
	b->emit(Opcode::Integer, Type::I32, bound, limit, 0);
	b->emit(Opcode::Ge, Type::I32, k, bound, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Column, Type::I32, n, 2, 0);
	b->emit(Opcode::Column, Type::I64, v, 1, 0);
	b->emit(Opcode::Result, Type::None, k, 3, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* SELECT [k,] count(*), sum(v), min(n) FROM t [GROUP BY k] */
inline SealedProgram
group_program(bool key)
{
	auto		b = new_builder();
	std::vector<int64_t> sources = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1, RESULT_FROM_AGG | 2};
	std::vector<Type> types = {Type::I64, Type::I128, Type::I32};
	const int64_t keys[] = {0};

	if (key)
	{
		sources.insert(sources.begin(), 0);
		types.insert(types.begin(), Type::I32);
	}
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (size_t c = 0; c < types.size(); c++)
		b->emit(Opcode::ResultColumn, types[c], static_cast<int>(c), 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, key, 3, b->add_aux(sources.data(), static_cast<int>(sources.size())));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	k = b->new_reg(Type::I32), v = b->new_reg(Type::I64), n = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, k, 0, 0);
	b->emit(Opcode::Column, Type::I64, v, 1, 0);
	b->emit(Opcode::Column, Type::I32, n, 2, 0);
	if (key)
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->emit(Opcode::AggStep, Type::I64, 1, v, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->emit(Opcode::AggStep, Type::I32, 2, n, -1, 0, static_cast<uint8_t>(AggFn::Min));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* Bytes of the columns on the device. */
inline uint64_t
column_bytes(const StoredTable &stored)
{
	uint64_t	bytes = 0;

	for (const DeviceTabletRef &ref : stored.tablets)
		for (int c = 0; c < ref.tablet->ncols; c++)
		{
			const ColumnChunk &chunk = tablet_chunks(ref.tablet)[c];

			bytes += chunk.data_bytes + (chunk.nulls ? ref.tablet->padded_rows / 8 : 0);
		}
	return bytes;
}

inline const std::vector<uint32_t> SOME_TABLETS = {9000, 4096, 100, 12000, 5000};

}  // namespace reference
}  // namespace gpuvm

#endif
