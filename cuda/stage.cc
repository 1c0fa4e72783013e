/* stage.cc: see stage.h. */
#include "stage.h"

#include <algorithm>

#include "row_set.h"
#include "vm/operands.h"
#include "vm/result_layout.h"
#include "vm/value_range.h"

namespace gpuvm {
namespace cuda {

Stage::Stage(const DeviceJobRequest &request) : first_(request), second_(request)
{
	const Program *program = request.program;
	/* A join's rows are many, and what is known of its registers is known elsewhere. */
	const bool	known = request.nothers == 0;
	std::vector<ValueRange> columns, regs(PROGRAM_MAX_REGS), results(program->nresults);
	std::vector<uint32_t> errors(PROGRAM_MAX_OPS);
	std::vector<Type> types(program->nresults);

	if (known)
	{
		for (uint32_t c = 0; c < request.ncolumns; c++)
			columns.push_back(column_range(request.columns[c]));
		analyze_ranges(program, request.params, columns.data(), regs.data(), errors.data(), request.maps);
	}
	group_ranges(program, known ? regs.data() : nullptr, known ? request.total_rows : UINT64_MAX, results.data());
	stage_column_types(program, types.data());
	for (size_t c = 0; c < types.size(); c++)
	{
		columns_.push_back(range_summary(results[c], types[c], false));
		columns_[c].max_width = static_cast<uint8_t>(type_natural_width(types[c]));
	}

	/* a sum that nobody reads may be as large as it likes */
	program_result_types(program, types.data());
	for (uint16_t c = 0; c < types.size(); c++)
		sink_.push_back(SinkColumn{c, types[c] == Type::I128 ? SinkForm::Low : SinkForm::Value});
	for (int i = 0; i < request.stage->nops; i++)
		if (reads_column(request.stage->ops()[i]))
			sink_[static_cast<size_t>(request.stage->ops()[i].p2)].form = SinkForm::Value;
	first_.stage = nullptr;
	first_.count_groups = false;
	first_.row_limit = 0;
	first_.order = nullptr;
	first_.norder = 0;
	first_.sink = true;
	first_.sink_columns = sink_.data();
	first_.nsink_columns = static_cast<uint32_t>(sink_.size());
	first_.sink_limit = UINT64_MAX;
	first_.append_to = nullptr;

	second_.program = request.stage;
	second_.stage = nullptr;
	second_.columns = columns_.data();
	second_.ncolumns = static_cast<uint32_t>(columns_.size());
	second_.tablets = nullptr;
	second_.ntablets = 0;
	/* without keys there is a group even of no rows */
	second_.total_rows = known ? std::clamp<uint64_t>(request.total_rows, 1, ROW_SET_MAX_ROWS) : ROW_SET_MAX_ROWS;
	second_.set = nullptr;
	second_.of_host_set = false;
	second_.others = nullptr;
	second_.nothers = 0;
}

}  // namespace cuda
}  // namespace gpuvm
