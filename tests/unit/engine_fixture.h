/*
 * engine_fixture.h: a server over a real socket and a real arena, and a backend
 * to talk to it. The virtual machine is a fake that hands out row numbers and
 * does as it is told, so that jobs stand still where a test wants them to.
 */
#ifndef GPUVM_TESTS_ENGINE_FIXTURE_H
#define GPUVM_TESTS_ENGINE_FIXTURE_H

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "engine/server.h"
#include "tablet/build.h"

using namespace gpuvm;

namespace {

constexpr uint64_t ARENA_SIZE = 64 << 20;
constexpr uint64_t PLENTY = ARENA_SIZE;	/* a limit that nothing comes to */
constexpr uint32_t TABLET_ROWS = 10 * 1024;
constexpr uint32_t NTABLETS = 20;
constexpr uint32_t NROWS = TABLET_ROWS * NTABLETS;
constexpr uint32_t UNIT_ROWS = 4096;
constexpr uint32_t UNITS_PER_TABLET = 3;
constexpr uint32_t NUNITS = UNITS_PER_TABLET * NTABLETS;
constexpr int WAIT_MS = 20000;

/* ---- the fake virtual machine ------------------------------------------------ */

struct FakeKnobs
{
	std::atomic<bool> hold{false};	/* units wait here */
	std::atomic<int> inside{0};		/* units that run */
	std::atomic<int> units{0};		/* units begun */
	std::atomic<bool> no_memory{false};
	std::atomic<bool> empty{false};	/* no row passes */
	std::atomic<uint64_t> error_row{UINT64_MAX};
	std::atomic<uint64_t> groups{1};
	std::atomic<bool> skip_odd{false};
	std::atomic<uint64_t> state_bytes{0};	/* that each state takes */
	std::atomic<int> states{0};		/* that there are */
};

FakeKnobs	knobs;

void
reset_knobs()
{
	knobs.hold = false;
	knobs.inside = 0;
	knobs.units = 0;
	knobs.no_memory = false;
	knobs.empty = false;
	knobs.error_row = UINT64_MAX;
	knobs.groups = 1;
	knobs.skip_odd = false;
	knobs.state_bytes = 0;
	knobs.states = 0;
}

class FakeState : public CpuState
{
public:
	FakeState() : memory(knobs.state_bytes > 0 ? Pages(knobs.state_bytes, false) : Pages()) { knobs.states++; }
	~FakeState() { knobs.states--; }

	Pages		memory;
	uint64_t	rows = 0;
	uint64_t	sum = 0;
};

/* The value of a row is its number in the table; the tablet stores it in its only column. */
uint64_t
first_row(const TabletHeader *tablet)
{
	return static_cast<uint64_t>(tablet->first_block) * TABLET_ROWS;
}

class FakeJob : public CpuJob
{
public:
	static std::unique_ptr<CpuJob> make(const Program *, const ParamValue *, uint32_t, const ColumnSummary *,
										uint32_t, uint64_t, const CodeMap *, const TextPattern *const *, TextKeys *)
	{
		return std::unique_ptr<CpuJob>(new FakeJob);
	}

	bool can_skip(const TabletHeader *tablet) const override
	{
		return knobs.skip_odd && tablet->first_block % 2 == 1;
	}

	uint64_t bytes_of(const TabletHeader *tablet) const override { return tablet->nrows * 8; }

	std::unique_ptr<CpuState> new_state() const override { return std::unique_ptr<CpuState>(new FakeState); }

	static void enter()
	{
		knobs.units++;
		knobs.inside++;
		while (knobs.hold)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		knobs.inside--;
		if (knobs.no_memory)
			throw std::bad_alloc();
	}

	CpuUnitOutcome run_rows(CpuState *, const TabletHeader *tablet, uint32_t first, uint32_t last, char *area,
							uint32_t capacity, const MaskedRows *masked, uint32_t nmasked) const override
	{
		Type		type = Type::I64;
		ResultColumnLayout at;
		uint64_t	row = first_row(tablet) + first;

		enter();
		if (knobs.error_row >= row && knobs.error_row < row + last - first)
			return CpuUnitOutcome{0, ERR_INT_OVERFLOW};
		if (knobs.empty)
			return CpuUnitOutcome{0, 0};
		result_layout(&type, 1, capacity, &at);
		memset(area + at.nulls, 0, capacity / 8);

		uint32_t	n = 0;

		for (uint32_t i = first; i < last; i++, row++)
		{
			if (masked_count(masked, nmasked, i, i + 1) == 0)
				memcpy(area + at.values + n++ * 8, &row, 8);
		}
		return CpuUnitOutcome{n, 0};
	}

	void run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
					const MaskedRows *masked, uint32_t nmasked) const override
	{
		FakeState  *to = static_cast<FakeState *>(state);

		enter();
		for (uint32_t i = first; i < last; i++)
		{
			if (masked_count(masked, nmasked, i, i + 1) != 0)
				continue;
			to->sum += first_row(tablet) + i;
			to->rows++;
		}
	}

	void merge(CpuState *into, CpuState *from) const override
	{
		static_cast<FakeState *>(into)->rows += static_cast<FakeState *>(from)->rows;
		static_cast<FakeState *>(into)->sum += static_cast<FakeState *>(from)->sum;
	}

	uint32_t finish(CpuState *) const override
	{
		return knobs.error_row == UINT64_MAX ? 0u : static_cast<uint32_t>(ERR_SUM_OVERFLOW);
	}

	uint64_t ngroups(const CpuState *) const override { return knobs.groups; }

	/* Group g is sum + g. */
	uint32_t emit_groups(const CpuState *state, uint64_t from, char *area, uint32_t capacity) const override
	{
		uint32_t	n = static_cast<uint32_t>(std::min<uint64_t>(capacity, knobs.groups - from));
		Type		type = Type::I64;
		ResultColumnLayout at;

		result_layout(&type, 1, capacity, &at);
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	value = static_cast<const FakeState *>(state)->sum + from + i;

			memcpy(area + at.values + i * 8, &value, 8);
		}
		return n;
	}
};

/* ---- arena, server, backend ---------------------------------------------------- */

class EngineJobTest : public ::testing::Test
{
public:
	void SetUp() override
	{
		reset_knobs();
		fd_ = memfd_create("arena", MFD_CLOEXEC);
		ASSERT_EQ(ftruncate(fd_, ARENA_SIZE), 0);

		/* Both sides use this one mapping, so that a thread sanitizer sees what they share. */
		base_ = static_cast<char *>(mmap(nullptr, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
		ASSERT_NE(base_, MAP_FAILED);

		ArenaHeader *header = new (base_) ArenaHeader();

		header->magic = ARENA_MAGIC;
		header->abi_version = ABI_VERSION;
		header->size = ARENA_SIZE;
		header->epoch = 42;
		make_table();

		pool_.reset(new WorkerPool(3));
		context_.arena = ArenaMap(base_, ARENA_SIZE);
		context_.pool = pool_.get();
		context_.processors = &processors_;
		context_.make_cpu_job = FakeJob::make;
		context_.client_patience = std::chrono::milliseconds(WAIT_MS);
		server_.reset(new Server(&context_));
		snprintf(path_, sizeof(path_), "engine_job_test.%d.sock", static_cast<int>(getpid()));
		ASSERT_EQ(server_->listen_at(path_), nullptr);
		acceptor_ = std::thread([this] { server_->serve(); });
	}

	void TearDown() override
	{
		server_->stop();
		acceptor_.join();
		server_.reset();
		pool_.reset();
		unlink(path_);
		munmap(base_, ARENA_SIZE);
		close(fd_);
	}

	uint64_t allocate(uint64_t size)
	{
		uint64_t	at = next_;

		next_ = align_up(next_ + size, 4096);
		EXPECT_LE(next_, ARENA_SIZE);
		return at;
	}

	template <typename T>
	T *at(uint64_t offset) { return reinterpret_cast<T *>(base_ + offset); }

	void make_table()
	{
		std::vector<uint64_t> tablets;
		ColumnSummary summary = {};

		for (uint32_t t = 0; t < NTABLETS; t++)
		{
			std::vector<int64_t> values(TABLET_ROWS);
			uint32_t	block_rows[2] = {0, TABLET_ROWS};
			uint64_t	lsn = 1;
			uint32_t	lps = LPS_DENSE;

			for (uint32_t i = 0; i < TABLET_ROWS; i++)
				values[i] = static_cast<int64_t>(t) * TABLET_ROWS + i;

			StagedColumn column = {Type::I64, 1, values.data(), nullptr};
			StagedTablet staged = {TABLET_ROWS, 1, &column, t, 1, block_rows, &lsn, &lps, nullptr, 0};
			TabletHeader header;
			ColumnChunk chunk;
			uint64_t	size = plan_tablet(staged, &header, &chunk);

			tablets.push_back(allocate(size));
			write_tablet(staged, header, &chunk, t + 1, at<char>(tablets.back()));
			summarize_chunk(&summary, chunk, t == 0);
		}
		version_ = allocate(4096);

		TableVersion *version = at<TableVersion>(version_);

		version->magic = VERSION_MAGIC;
		version->ncols = 1;
		version->ntablets = NTABLETS;
		version->nrows = NROWS;
		version->columns = sizeof(TableVersion);
		version->tablets = version->columns + sizeof(ColumnSummary);
		memcpy(at<char>(version_ + version->columns), &summary, sizeof(summary));
		memcpy(at<char>(version_ + version->tablets), tablets.data(), tablets.size() * sizeof(uint64_t));
		first_tablet_ = tablets[0];
	}

	/* The job is not to see these rows. */
	void mask(Job *job, const std::vector<MaskedRows> &ranges)
	{
		job->cursors[0].masked = allocate(ranges.size() * sizeof(MaskedRows));
		job->cursors[0].nmasked = static_cast<uint32_t>(ranges.size());
		std::copy(ranges.begin(), ranges.end(), at<MaskedRows>(job->cursors[0].masked));
	}

	int			fd_;
	char	   *base_;
	uint64_t	next_ = ARENA_HEADER_BYTES;
	uint64_t	version_;
	uint64_t	first_tablet_;
	char		path_[64];
	std::unique_ptr<WorkerPool> pool_;
	Processors	processors_{2};
	EngineContext context_;
	std::unique_ptr<Server> server_;
	std::thread acceptor_;

};

/* One session, as a backend holds it. */
class Backend
{
public:
	explicit Backend(EngineJobTest *test, bool hello = true) : test_(test)
	{
		offset_ = test->allocate(sizeof(Job));
		job = new (test->at<char>(offset_)) Job();
		job->magic = JOB_MAGIC;
		connect_socket();
		if (hello)
		{
			EXPECT_TRUE(say_hello(42, offset_));
		}
	}

	~Backend() { hang_up(); }

	void hang_up()
	{
		if (fd >= 0)
			close(fd);
		fd = -1;
	}

	bool say_hello(uint64_t epoch, uint64_t job_offset)
	{
		SessionHello hello = {JOB_MAGIC, ABI_VERSION, epoch, job_offset, 1, 0};
		char		answer;

		EXPECT_EQ(send(fd, &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
		return recv(fd, &answer, 1, 0) == 1;
	}

	/* A request that returns the only column, or its sum. */
	void prepare(bool grouped = false, uint32_t nbuffers = 2)
	{
		std::unique_ptr<ProgramBuilder> b(new ProgramBuilder);

		b->init();
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("v"));
		if (grouped)
		{
			int64_t		source = RESULT_FROM_AGG;

			b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));
		}

		int			parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		if (grouped)
			b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		else
		{
			int			reg = b->new_reg(Type::I64);

			b->emit(Opcode::Column, Type::I64, reg, 0, 0);
			b->emit(Opcode::Result, Type::None, reg, 1, 0);
		}
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);

		job->kind = JobKind::Run;
		job->program = test_->allocate(b->sealed_size());
		job->program_size = b->sealed_size();
		b->seal(test_->at<Program>(job->program));
		job->ncursors = 1;
		job->cursors[0] = version_cursor(test_->at<TableVersion>(test_->version_), test_->version_);
		job->unit_rows = UNIT_ROWS;
		job->result_capacity = UNIT_ROWS;
		job->nbuffers = nbuffers;

		Type		type = Type::I64;

		for (uint32_t i = 0; i < nbuffers; i++)
		{
			job->buffers[i].offset = test_->allocate(result_layout(&type, 1, UNIT_ROWS, nullptr));
			job->buffers[i].state.store(static_cast<uint32_t>(BufferState::Free));
		}
	}

	void ring()
	{
		if (job->engine_waiting.exchange(0) != 0)
		{
			ASSERT_EQ(send(fd, "", 1, MSG_NOSIGNAL), 1);
		}
	}

	void submit()
	{
		values.clear();
		units.clear();
		parts.clear();
		last_parts.clear();
		job->cancel.store(0);
		job->state.store(static_cast<uint32_t>(JobState::Submitted));
		ring();
	}

	JobState state() const { return static_cast<JobState>(job->state.load()); }
	bool ended() const { return state() == JobState::Done || state() == JobState::Failed; }

	int full_buffer() const
	{
		for (uint32_t i = 0; i < std::min<uint32_t>(job->nbuffers, JOB_MAX_BUFFERS); i++)
		{
			if (job->buffers[i].state.load() == static_cast<uint32_t>(BufferState::Full))
				return static_cast<int>(i);
		}
		return -1;
	}

	/* Sleeps as a backend does until moved(); false after WAIT_MS. */
	template <typename Moved>
	bool wait(Moved moved)
	{
		auto		end = std::chrono::steady_clock::now() + std::chrono::milliseconds(WAIT_MS);

		while (!moved())
		{
			struct pollfd p = {fd, POLLIN, 0};
			char		bytes[64];

			if (std::chrono::steady_clock::now() > end)
				return false;
			job->backend_waiting.store(1);
			if (!moved() && poll(&p, 1, 1000) > 0)
				(void) recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			job->backend_waiting.store(0);
		}
		return true;
	}

	/* Takes every row until the end. */
	void drain()
	{
		for (;;)
		{
			ASSERT_TRUE(wait([this] { return ended() || full_buffer() >= 0; }));

			bool		last = ended();

			for (int b; (b = full_buffer()) >= 0;)
			{
				take(b);
				if (state() == JobState::Suspended)
					ring();
			}
			if (last)
				return;
		}
	}

	void take(int b)
	{
		ResultBuffer &buffer = job->buffers[b];
		Type		type = Type::I64;
		ResultColumnLayout layout;

		result_layout(&type, 1, job->result_capacity, &layout);
		for (uint32_t i = 0; i < buffer.nrows; i++)
		{
			uint64_t	value;

			memcpy(&value, test_->at<char>(buffer.offset + layout.values + i * 8), 8);
			values.push_back(value);
		}
		EXPECT_TRUE(parts[buffer.unit].insert(buffer.part).second) << "a part came twice";
		if (buffer.last)
		{
			EXPECT_EQ(units.count(buffer.unit), 0u) << "a unit came twice";
			units[buffer.unit] = buffer.errors;
			last_parts[buffer.unit] = buffer.part;
		}
		buffer.state.store(static_cast<uint32_t>(BufferState::Free));
	}

	/* Every row of the table once? */
	void expect_whole_table()
	{
		std::set<uint64_t> distinct(values.begin(), values.end());

		EXPECT_EQ(values.size(), NROWS);
		EXPECT_EQ(distinct.size(), NROWS);
		EXPECT_EQ(*distinct.rbegin(), NROWS - 1);
	}

	void run()
	{
		submit();
		drain();
	}

	std::string failure() const { return job->failure; }

	Job		   *job;
	int			fd = -1;
	std::vector<uint64_t> values;
	std::map<uint32_t, uint32_t> units;	/* unit that has its last part to errors */
	std::map<uint32_t, std::set<uint32_t>> parts;	/* unit to its parts so far */
	std::map<uint32_t, uint32_t> last_parts;

private:
	void connect_socket()
	{
		struct sockaddr_un address = {};

		address.sun_family = AF_UNIX;
		strcpy(address.sun_path, test_->path_);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ASSERT_EQ(connect(fd, reinterpret_cast<struct sockaddr *>(&address), sizeof(address)), 0);
	}

	EngineJobTest *test_;
	uint64_t	offset_;
};

template <typename Condition>
bool
eventually(Condition condition)
{
	for (int ms = 0; ms < WAIT_MS; ms++)
	{
		if (condition())
			return true;
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
	return false;
}

}  // namespace

#endif
