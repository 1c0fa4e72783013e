/*
 * job_join.cc: the phases of a join's building, each one's tasks dealt to threads by
 * a counter. What follows is a job like any other (job_run.cc).
 */
#include "engine/job_join.h"

#include <algorithm>
#include <new>

#include "engine/job_run.h"
#include "engine/job_sort.h"

namespace gpuvm {

static JoinCursor
join_cursor(const RequestCursor &from)
{
	JoinCursor	to = {from.columns.data(), static_cast<uint32_t>(from.columns.size()), {}, from.total_rows};

	for (const RequestTablet &of : from.tablets)
		to.tablets.push_back(JoinTablet{of.tablet, of.masked, of.nmasked});
	return to;
}

/* Rows that go on from others are to come as these did, whatever memory there was. */
bool
may_pass(const Request &request)
{
	return request.program->grouped || request.sink.set != 0 || !request.order.empty() || (!request.resumes && any_key(request) >= 0);
}

JoinBuild::JoinBuild(const Request &request, Job *job, JobIo *io, WorkerPool *pool, JoinIndexes *indexes)
	: request_(request), job_(job), io_(io), pool_(pool)
{
	cursors_.push_back(join_cursor(request));
	for (const RequestCursor &other : request.others)
		cursors_.push_back(join_cursor(other));
	join_ = CpuJoin::create(request.program, request.params, request.nparams, cursors_.data(),
							request.maps.data(), request.patterns.data(), indexes, request.text_keys.get(), may_pass(request), request.shortages);
}

void
JoinBuild::work(bool owner)
{
	/* What sorting asks within a task. */
	struct Stop final : JoinStop
	{
		Stop(JobIo *io, bool owner) : io(io), owner(owner) {}
		bool stopped() override { return owner ? io->stopped() : io->stopping(); }

		JobIo	   *io;
		bool		owner;
	};
	Stop		stop(io_, owner);

	while (owner ? !io_->stopped() : !io_->stopping())
	{
		const uint32_t task = next_.fetch_add(1, std::memory_order_relaxed);

		if (task >= ntasks_)
			break;
		join_->run_task(task, &stop);
	}
}

void
JoinBuild::help() noexcept
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

bool
JoinBuild::next_pass()
{
	return join_->next_pass() && build();
}

bool
JoinBuild::run()
{
	if (!build())
		return false;
	job_->passes = join_->figures().passes;
	job_->indexes_used = join_->figures().indexes_used;
	job_->indexes_made = join_->figures().indexes_made;
	job_->index_bytes = join_->figures().index_bytes;
	return true;
}

bool
JoinBuild::build()
{
	/* Whatever leaves this function, no helper may be inside. */
	struct Dismiss
	{
		JoinBuild  *build;
		~Dismiss() { build->pool_->dismiss(build); }
	};

	while ((ntasks_ = join_->begin_phase()) > 0)
	{
		Dismiss		dismiss = {this};

		next_.store(0);
		pool_->invite(this, static_cast<int>(std::min(ntasks_, most_threads(request_, pool_))) - 1);
		try
		{
			work(true);
		}
		catch (const std::bad_alloc &)
		{
			/* helpers are to stop, and the job has failed */
			io_->fail_memory();
		}
		pool_->dismiss(this);
		if (io_->stopping())
			return false;
	}
	job_->build_rows = join_->figures().build_rows;
	job_->build_bytes = join_->figures().build_bytes;
	if (join_->refusal() != nullptr)
	{
		io_->fail(join_->refusal());
		return false;
	}
	if (join_->build_errors() != 0)
	{
		job_->errors = join_->build_errors();
		if (!request_.program->grouped && request_.order.empty())
			io_->fail("an operation of the join raised an error");
		return false;
	}
	return true;
}

}  // namespace gpuvm
