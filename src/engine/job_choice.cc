/* job_choice.cc: see job_choice.h. */
#include "engine/job_choice.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/cost.h"

namespace gpuvm {

/* What is expected is said up to a year. */
constexpr double MOST_NS = 3e16;

DeviceCursor
device_cursor(const RequestCursor &cursor, const std::vector<DeviceTabletRef> &tablets)
{
	DeviceCursor to = {};

	to.columns = cursor.columns.data();
	to.ncolumns = static_cast<uint32_t>(cursor.columns.size());
	to.tablets = tablets.data();
	to.ntablets = static_cast<uint32_t>(tablets.size());
	to.total_rows = cursor.total_rows;
	to.set = cursor.set != nullptr ? cursor.set->device() : nullptr;
	to.of_host_set = cursor.set != nullptr && to.set == nullptr;
	return to;
}

DeviceJobRequest
device_request(const EngineContext *context, const Request &request, const JobWork &work)
{
	DeviceJobRequest to = {};

	static_cast<DeviceCursor &>(to) = device_cursor(request, work.tablets);
	to.program = request.program;
	to.params = request.params;
	to.nparams = request.nparams;
	to.maps = request.maps.data();
	to.nmaps = static_cast<uint32_t>(request.maps.size());
	to.patterns = request.patterns.data();
	to.text_orders = request.text_orders.data();
	to.others = work.others.data();
	to.nothers = static_cast<uint32_t>(work.others.size());
	to.expected_pairs = request.expected_pairs;
	to.unit_rows = request.unit_rows;
	to.capacity = request.capacity;
	to.nbuffers = request.nbuffers;
	to.areas = request.areas;
	to.skip_units = request.skip_units.data();
	to.skip_bytes = request.skip_units.size();
	to.row_limit = request.row_limit;
	to.order = request.order.data();
	to.norder = static_cast<uint32_t>(request.order.size());
	to.count_groups = request.count_groups;
	to.stage = request.stage;
	to.sink = request.sink.set != 0;
	to.sink_columns = request.sink.columns;
	to.nsink_columns = request.sink.ncolumns;
	to.sink_limit = request.account->left();
	to.append_to = request.append_to != nullptr ? request.append_to->device() : nullptr;
	to.transfer = request.transfer;
	return to;
}

/* Of the sets that a device has. */
static uint64_t
bytes_on_devices(const Request &request)
{
	const auto	bytes = [](const RequestCursor &cursor)
	{
		return cursor.set != nullptr && cursor.set->device() != nullptr ? cursor.set->device_bytes() : uint64_t{0};
	};
	uint64_t	all = bytes(request);

	for (const RequestCursor &other : request.others)
		all += bytes(other);
	return all;
}

/* What the CPU virtual machine is expected to take. */
static uint64_t
cpu_ns(const Request &request, const JobWork &work, uint32_t threads)
{
	const Op   *ops = request.program->ops();
	const uint64_t home = static_cast<uint64_t>(static_cast<double>(bytes_on_devices(request)) / SET_BYTES_PER_NS);
	/* groups are few */
	const uint64_t sorting = request.order.empty() || request.program->grouped ? 0 : cpu_sort_estimate(work.rows, request.row_limit, threads);

	const bool	crosses = std::any_of(ops, ops + request.program->nops, [](const Op &op) { return op.opcode == Opcode::Cross; });

	return home + sorting +
		(request.others.empty() ? cpu_estimate(work.rows, work.bytes, request.program->nops, request.program->nkeys > 0, threads)
		 : cpu_join_estimate(work.rows, request.expected_pairs, crosses, threads));
}

/* Of the programs, and of what becomes of their rows: jobs alike take alike. */
static uint64_t
job_key(const Request &request)
{
	uint64_t	key = request.program->hash;

	for (uint64_t more : {request.stage != nullptr ? request.stage->hash : 0, static_cast<uint64_t>(request.order.size()),
						  static_cast<uint64_t>(request.sink.set != 0), request.row_limit})
		key = (key ^ more) * 0x9e3779b97f4a7c15 + (key >> 32);
	return key;
}

bool
choose_device(EngineContext *context, const Request &request, const JobWork &work, Job *job, Choice *choice)
{
	char	   *refusal = job->device_refusal;
	const size_t size = sizeof(job->device_refusal);
	DeviceLibrary *library = context->devices.library();

	if (request.device == Device::Cpu)
		return false;
	if (library == nullptr)
	{
		/* Nobody asked for what is not there. */
		if (request.device == Device::Cuda)
			context->devices.reason(refusal, size);
		return false;
	}
	if ((request.others.empty() || request.stage != nullptr) && !request.last()->grouped && request.sink.set == 0 &&
		request.unit_rows % TABLET_PAD_ROWS != 0)
	{
		snprintf(refusal, size, "the job's units are not multiples of %u rows", TABLET_PAD_ROWS);
		return false;
	}
	if (request.device == Device::Cuda)
		return true;

	DeviceEstimate estimate;

	try
	{
		estimate = library->estimate(device_request(context, request, work), refusal);
	}
	catch (const std::bad_alloc &)
	{
		snprintf(refusal, size, "out of memory");
		return false;
	}
	refusal[size - 1] = '\0';
	if (estimate.ns == UINT64_MAX)
		return false;
	refusal[0] = '\0';

	const uint32_t most = most_threads(request, context->pool);
	const double others = context->cpu_load.running.load();

	choice->threads = is_helped(work.rows, request.others.empty() ? 0 : request.expected_pairs, most) ? most : 1;
	choice->job = job_key(request);
	choice->cpu_ns = static_cast<double>(cpu_ns(request, work, most));
	choice->device_ns = static_cast<double>(estimate.ns);
	choice->device_work_ns = static_cast<double>(estimate.work_ns);
	choice->copies = estimate.copies;

	const double cpu = choice->cpu_ns * context->estimates.factor(choice->job, Way::Cpu);
	const double by = context->estimates.factor(choice->job, way_to_device(*choice));
	const double device = choice->device_ns * by;

	job->expected_cpu_ns = static_cast<uint64_t>(std::min(cpu, MOST_NS));
	job->expected_device_ns = static_cast<uint64_t>(std::min(device, MOST_NS));

	const double added = context->device_load.added(choice->device_work_ns) / library->ndevices();
	const bool	better = device_is_better(cpu, cpu * std::max(1.0, (1 + others) * choice->threads / most), device, device + added * by);

	context->estimates.begin(choice->job, better ? way_to_device(*choice) : Way::Cpu);
	return better;
}

}  // namespace gpuvm
