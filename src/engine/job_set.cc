/* job_set.cc: see job_set.h. */
#include "engine/job_set.h"

#include <algorithm>
#include <new>

#include "engine/job_run.h"

namespace gpuvm {

constexpr uint64_t HUGE_BYTES = 4 << 20;	/* from so many on */

SetRows::SetRows(SetBuild *build) : area_(Pages::of_heap(build->area_bytes_)) {}

SetBuild::SetBuild(const Request &request, const SetShape &shape, SetAccount *account, JobIo *io, WorkerPool *pool)
	: request_(request), shape_(shape), account_(account), io_(io), pool_(pool),
	area_bytes_(result_layout(shape.results.data(), static_cast<int>(shape.results.size()), AREA_ROWS, nullptr)),
	set_(std::make_unique<ResultSet>(shape)) {}

/* Beyond the limit the job has failed. */
SetShare
SetBuild::charge(uint64_t bytes)
{
	if (account_ == nullptr)
		return {};
	if (account_->take(bytes))
		return SetShare(account_, bytes);
	io_->fail(SET_NO_MEMORY);
	return {};
}

void
SetBuild::take(SetRows *rows, uint32_t n)
{
	uint32_t	capacity = SET_FIRST_ROWS;

	if (n == 0)
		return;
	if (!rows->parts_.empty())
	{
		SetTablet  *last = rows->parts_.back().tablet.get();

		if (last->room() >= n)
		{
			last->append(rows->area(), AREA_ROWS, n);
			return;
		}
		capacity = SET_TABLET_ROWS;
	}
	capacity = std::max(capacity, static_cast<uint32_t>(align_up(n, TABLET_PAD_ROWS)));

	const uint64_t bytes = shape_.layout(capacity, nullptr);
	SetRows::Part part;

	part.block.share = charge(bytes);
	if (io_->stopping())
		return;
	part.block.pages = Pages(bytes, bytes >= HUGE_BYTES);
	part.tablet = std::make_unique<SetTablet>(&shape_, part.block.pages.as<char>(), capacity);
	part.tablet->append(rows->area(), AREA_ROWS, n);
	rows->parts_.push_back(std::move(part));
}

void
SetBuild::close(SetTablet *tablet)
{
	for (uint32_t c = 0; c < shape_.ncolumns(); c++)
		if (tablet->overflows(c))
			overflows_[c].store(true, std::memory_order_relaxed);
}

void
SetBuild::add(std::unique_ptr<SetRows> rows)
{
	for (SetRows::Part &part : rows->parts_)
	{
		const TabletHeader *tablet = part.tablet->finish();

		close(part.tablet.get());

		std::lock_guard<std::mutex> lock(mutex_);

		set_->add_tablet(tablet);
		set_->add_block(std::move(part.block));
	}
}

/* ---- rows whose number is known ------------------------------------------------ */

void
SetBuild::make(uint32_t i, char *area)
{
	const uint64_t first = uint64_t(i) * SET_TABLET_ROWS, end = std::min(nrows_, first + SET_TABLET_ROWS);
	const uint32_t capacity = static_cast<uint32_t>(align_up(end - first, TABLET_PAD_ROWS));
	SetTablet	tablet(&shape_, block_.pages.as<char>() + i * stride_, capacity);

	for (uint64_t at = first; at < end; at += AREA_ROWS)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(end - at, AREA_ROWS));

		if (sort_ != nullptr)
			sort_->gather(at, n, area, AREA_ROWS);
		else if (cpu_->emit_groups(groups_, at, area, AREA_ROWS) < n)
		{
			io_->fail("the engine lost a group");
			return;
		}
		tablet.append(area, AREA_ROWS, n);
	}
	tablets_[i] = tablet.finish();
	close(&tablet);
}

void
SetBuild::work(bool owner)
{
	const Pages	area = Pages::of_heap(area_bytes_);

	while (owner ? !io_->stopped() : !io_->stopping())
	{
		const uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);

		if (i >= tablets_.size())
			break;
		make(i, area.as<char>());
	}
}

void
SetBuild::help() noexcept
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

void
SetBuild::take_known(uint64_t nrows)
{
	/* Whatever leaves this function, no helper may be inside. */
	struct Dismiss
	{
		SetBuild   *build;
		~Dismiss() { build->pool_->dismiss(build); }
	};
	const uint64_t ntablets = (nrows + SET_TABLET_ROWS - 1) / SET_TABLET_ROWS;

	nrows_ = nrows;
	if (nrows == 0)
		return;
	stride_ = shape_.layout(SET_TABLET_ROWS, nullptr);

	const uint64_t last = nrows - (ntablets - 1) * SET_TABLET_ROWS;
	const uint32_t capacity = static_cast<uint32_t>(align_up(last, TABLET_PAD_ROWS));
	const uint64_t bytes = (ntablets - 1) * stride_ + shape_.layout(capacity, nullptr);

	block_.share = charge(bytes);
	if (io_->stopping())
		return;
	block_.pages = Pages(bytes, bytes >= HUGE_BYTES);
	tablets_.resize(ntablets);
	{
		Dismiss		dismiss = {this};

		pool_->invite(this, static_cast<int>(std::min<uint64_t>(ntablets, most_threads(request_, pool_))) - 1);
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
	if (io_->stopping())
		return;
	for (const TabletHeader *tablet : tablets_)
		set_->add_tablet(tablet);
	set_->add_block(std::move(block_));
}

void
SetBuild::take_groups(const CpuJob *cpu, const CpuState *groups)
{
	cpu_ = cpu;
	groups_ = groups;
	take_known(cpu->ngroups(groups));
}

void
SetBuild::take_sorted(const CpuSort *sort)
{
	sort_ = sort;
	take_known(sort->nrows());
}

std::unique_ptr<ResultSet>
SetBuild::finish()
{
	return std::move(set_);
}

}  // namespace gpuvm
