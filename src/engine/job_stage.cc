/* job_stage.cc: see job_stage.h. The groups become a set; then it is a job like any other (job_run.cc). */
#include "engine/job_stage.h"

#include <algorithm>

#include "engine/job_run.h"

namespace gpuvm {

namespace {

/* As if a backend had asked for it. */
void
request_stage(const Request &request, const ResultSet &table, Request *to)
{
	to->program = request.stage;
	to->of_set = true;
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
	to->count_groups = request.count_groups;
	to->sink = request.sink;
	list_set(table, to);
}

}  // namespace

void
run_stage(EngineContext *context, const Request &request, const CpuJob *first, std::unique_ptr<CpuState> groups, Job *job, JobIo *io,
		  SetBuild *set)
{
	if (request.stage == nullptr || groups == nullptr || io->stopped())
		return;

	const SetShape shape(request.program);
	SetBuild	build(request, shape, nullptr, io, context->pool);

	job->stage_rows = first->ngroups(groups.get());
	build.take_groups(first, groups.get());
	if (io->stopped())
		return;
	groups.reset();
	for (int i = 0; i < request.stage->nops; i++)
	{
		const Op   &op = request.stage->ops()[i];

		if (reads_column(op) && build.overflows(static_cast<uint32_t>(op.p2)))
			job->errors |= ERR_INT_OVERFLOW;
	}
	if (job->errors != 0)
		return;

	const std::unique_ptr<ResultSet> table = build.finish();
	Request		stage;

	request_stage(request, *table, &stage);

	const std::unique_ptr<CpuJob> cpu = context->make_cpu_job(stage.program, stage.params, stage.nparams, stage.columns.data(),
															  static_cast<uint32_t>(stage.columns.size()), stage.total_rows,
															  stage.maps.data(), nullptr, nullptr);
	const JobWork work = plan_work(*cpu, stage);
	const uint64_t rows_in = job->rows_in, bytes_read = job->bytes_read, pairs = job->pairs;
	const uint32_t scanned = job->tablets_scanned, threads = job->threads_used;

	JobRun(stage, work, cpu.get(), job, io, context->pool, set).run();
	job->rows_in = rows_in;
	job->bytes_read = bytes_read;
	job->pairs = pairs;
	job->tablets_scanned = scanned;
	job->threads_used = std::max(job->threads_used, threads);
}

}  // namespace gpuvm
