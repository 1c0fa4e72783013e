/* job_choice.h: which engine runs a job. */
#ifndef GPUVM_ENGINE_JOB_CHOICE_H
#define GPUVM_ENGINE_JOB_CHOICE_H

#include <vector>

#include "engine/context.h"
#include "engine/job_run.h"

namespace gpuvm {

/* What is expected of a job where there is a choice; it is corrected by estimates.h, and taught to it. */
struct Choice
{
	uint64_t	job = 0;		/* that jobs alike are known by */
	uint32_t	threads = 1;	/* that compute it on the CPU */
	double		cpu_ns = 0;		/* on an idle engine, uncorrected; 0: there was no choice */
	double		device_ns = 0;
	double		device_work_ns = 0;	/* of it what keeps the device busy */
	bool		copies = false;	/* device_ns is of columns that have to come first */
};

inline Way
way_to_device(const Choice &choice)
{
	return choice.copies ? Way::DeviceCopies : Way::Device;
}

/* A cursor and a request, as a device takes them. They refer to the tablets, and to `work`. */
DeviceCursor device_cursor(const RequestCursor &cursor, const std::vector<DeviceTabletRef> &tablets);
DeviceJobRequest device_request(const EngineContext *context, const Request &request, const JobWork &work);

/* Is the device to run the job? Else device_refusal is empty or says why it could not. */
bool		choose_device(EngineContext *context, const Request &request, const JobWork &work, Job *job, Choice *choice);

}  // namespace gpuvm

#endif
