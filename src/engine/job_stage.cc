/* job_stage.cc: see job_stage.h. Threads make the groups a table of tablets; then it is a job like any other (job_run.cc). */
#include "engine/job_stage.h"

#include <algorithm>
#include <new>

#include "engine/job_run.h"
#include "vm/cpu_stage.h"

namespace gpuvm {

namespace {

/* The tablets, dealt to threads by a counter. */
class StageBuild final : public PoolTask
{
public:
	StageBuild(const Request &request, StageTable *table, JobIo *io, WorkerPool *pool)
		: request_(request), table_(table), io_(io), pool_(pool) {}

	void run()
	{
		/* Whatever leaves this function, no helper may be inside. */
		struct Dismiss
		{
			StageBuild *build;
			~Dismiss() { build->pool_->dismiss(build); }
		};
		Dismiss		dismiss = {this};

		pool_->invite(this, static_cast<int>(std::min(table_->ntablets(), most_threads(request_, pool_))) - 1);
		try
		{
			work(true);
		}
		catch (const std::bad_alloc &)
		{
			/* helpers are to stop, and the job has failed */
			io_->fail_memory();
		}
	}

	void help() noexcept override
	{
		try
		{
			work(false);
		}
		catch (const std::bad_alloc &)
		{
			io_->fail_memory();
		}
	}

private:
	void work(bool owner)
	{
		while (owner ? !io_->stopped() : !io_->stopping())
		{
			const uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);

			if (i >= table_->ntablets())
				break;
			table_->make(i);
		}
	}

	const Request &request_;
	StageTable *table_;
	JobIo	   *io_;
	WorkerPool *pool_;
	std::atomic<uint32_t> next_{0};
};

/* As if a backend had asked for it. */
void
request_stage(const Request &request, const StageTable &table, Request *to)
{
	to->program = request.stage;
	to->of_stage = true;
	std::copy(request.params, request.params + request.nparams, to->params);
	to->nparams = request.nparams;
	to->maps = request.maps;
	to->threads = request.threads;
	to->unit_rows = request.unit_rows;
	to->capacity = request.capacity;
	to->nbuffers = request.nbuffers;
	std::copy(request.areas, request.areas + request.nbuffers, to->areas);
	to->row_limit = request.row_limit;
	to->order = request.order;
	to->text_orders = request.text_orders;
	to->build_limit = request.build_limit;
	to->count_groups = request.count_groups;
	to->columns = table.summaries();
	for (uint32_t i = 0; i < table.ntablets(); i++)
		to->tablets.push_back(RequestTablet{table.tablet(i), nullptr, 0, 0});
	to->total_rows = table.nrows();
}

}  // namespace

void
run_stage(EngineContext *context, const Request &request, const CpuJob *first, std::unique_ptr<CpuState> groups, Job *job, JobIo *io)
{
	if (request.stage == nullptr || groups == nullptr || io->stopped())
		return;

	StageTable	table(request.program, first, groups.get());

	job->stage_rows = table.nrows();
	StageBuild(request, &table, io, context->pool).run();
	if (io->stopped())
		return;
	groups.reset();
	for (int i = 0; i < request.stage->nops; i++)
	{
		const Op   &op = request.stage->ops()[i];

		if (reads_column(op) && table.overflows(op.p2))
			job->errors |= ERR_INT_OVERFLOW;
	}
	if (job->errors != 0)
		return;

	Request		stage;

	request_stage(request, table, &stage);

	const std::unique_ptr<CpuJob> cpu = context->make_cpu_job(stage.program, stage.params, stage.nparams, stage.columns.data(),
															  static_cast<uint32_t>(stage.columns.size()), stage.total_rows,
															  stage.maps.data(), nullptr, nullptr);
	const JobWork work = plan_work(*cpu, stage);
	const uint64_t rows_in = job->rows_in, bytes_read = job->bytes_read, pairs = job->pairs;
	const uint32_t scanned = job->tablets_scanned, threads = job->threads_used;

	JobRun(stage, work, cpu.get(), job, io, context->pool).run();
	job->rows_in = rows_in;
	job->bytes_read = bytes_read;
	job->pairs = pairs;
	job->tablets_scanned = scanned;
	job->threads_used = std::max(job->threads_used, threads);
}

}  // namespace gpuvm
