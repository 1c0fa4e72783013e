/* cpu_window_emit.cc: functions of rows whose positions and frames are known (cpu_window.h). */
#include "tablet/wide_halves.h"
#include "vm/cpu_window_job.h"

namespace gpuvm {

namespace {

template <typename T>
T *
target_at(const WindowTarget &target, uint32_t at)
{
	return reinterpret_cast<T *>(target.values) + at;
}

/* ---- what positions say ---------------------------------------------------------------- */

/* T is value(vector, i); never null. */
template <typename T, typename Value>
class PositionEmitter final : public WindowEmitter
{
public:
	PositionEmitter(const WindowTarget &target, Value value) : target_(target), value_(value) {}

	uint32_t emit(const WindowVector &v, uint32_t at) override
	{
		T		   *to = target_at<T>(target_, at);

		for (uint32_t i = 0; i < v.n; i++)
			to[i] = static_cast<T>(value_(v, i));
		return 0;
	}

private:
	WindowTarget target_;
	Value		value_;
};

template <typename T, typename Value>
std::unique_ptr<WindowEmitter>
of_position(const WindowTarget &target, Value value)
{
	return std::unique_ptr<WindowEmitter>(new PositionEmitter<T, Value>(target, value));
}

/* ---- values of other rows -------------------------------------------------------------- */

/* The value of row row(vector, i), a default where that is NO_ROW. T is an integer as wide as the column's values. */
template <typename T, typename Row>
class PickEmitter final : public WindowEmitter
{
public:
	PickEmitter(const WindowCall &call, const WindowTarget &target, Row row)
		: column_(*call.column), target_(target), row_(row), has_default_(call.function.has_default != 0)
	{
		const uint64_t value = window_default_bits(call.function.type, call.function.default_value);

		memcpy(&default_, &value, sizeof(default_));
	}

	uint32_t emit(const WindowVector &v, uint32_t at) override
	{
		T		   *to = target_at<T>(target_, at);

		for (uint32_t i = 0; i < v.n; i++)
		{
			const uint64_t row = row_(v, i);
			const bool	none = row == NO_ROW;

			to[i] = none ? default_ : window_value<T>(column_, row);
			if (none ? !has_default_ : window_null(column_, row))
				bit_set(target_.nulls, at + i);
		}
		return 0;
	}

private:
	const WindowColumn &column_;
	WindowTarget target_;
	Row			row_;
	bool		has_default_;
	T			default_ = 0;
};

template <typename Row>
std::unique_ptr<WindowEmitter>
of_row(const WindowCall &call, const WindowTarget &target, Row row)
{
	switch (type_natural_width(call.column->summary.type))
	{
		case 1: return std::unique_ptr<WindowEmitter>(new PickEmitter<uint8_t, Row>(call, target, row));
		case 2: return std::unique_ptr<WindowEmitter>(new PickEmitter<uint16_t, Row>(call, target, row));
		case 4: return std::unique_ptr<WindowEmitter>(new PickEmitter<uint32_t, Row>(call, target, row));
		default: return std::unique_ptr<WindowEmitter>(new PickEmitter<uint64_t, Row>(call, target, row));
	}
}

/* lag and lead: the row so far behind, if it is in the partition. */
std::unique_ptr<WindowEmitter>
of_row_at(const WindowCall &call, const WindowTarget &target, int64_t distance)
{
	return of_row(call, target, [distance](const WindowVector &v, uint32_t i) {
		return window_row_at(v.first + i, distance, v.part_start[i], v.part_end[i]);
	});
}

/* ---- aggregates ------------------------------------------------------------------------ */

/* Null where nothing counts, else what `value` makes of a frame, written by it. */
template <typename Value>
class FrameEmitter final : public WindowEmitter
{
public:
	FrameEmitter(const WindowCall &call, const WindowTarget *targets, Value value)
		: counts_(call.counts), targets_(targets), columns_(call.function.type == Type::I128 ? 2 : 1), value_(value) {}

	uint32_t emit(const WindowVector &v, uint32_t at) override
	{
		uint32_t	errors = 0;

		for (uint32_t i = 0; i < v.n; i++)
		{
			if (v.head[i] == v.tail[i] || counts_->of(v.head[i], v.tail[i]) == 0)
			{
				for (int c = 0; c < columns_; c++)
					bit_set(targets_[c].nulls, at + i);
				continue;
			}
			errors |= value_(v.head[i], v.tail[i], at + i);
		}
		return errors;
	}

private:
	const WindowCounts *counts_;
	const WindowTarget *targets_;
	int			columns_;
	Value		value_;
};

template <typename Value>
std::unique_ptr<WindowEmitter>
of_frame(const WindowCall &call, const WindowTarget *targets, Value value)
{
	return std::unique_ptr<WindowEmitter>(new FrameEmitter<Value>(call, targets, value));
}

uint32_t
put_halves(const WindowTarget *targets, uint32_t at, int128 value)
{
	*target_at<int64_t>(targets[0], at) = wide_low(value);
	*target_at<int64_t>(targets[1], at) = wide_high(value);
	return 0;
}

std::unique_ptr<WindowEmitter>
sum_emitter(const WindowCall &call, const WindowTarget *targets)
{
	const WindowSums *sums = call.sums;
	const bool	halves = call.function.type == Type::I128;
	uint64_t	last_head = NO_ROW;
	int128		before = 0;

	return of_frame(call, targets, [=](uint64_t head, uint64_t tail, uint32_t at) mutable -> uint32_t {
		if (head != last_head)
			before = sums->before(head);
		last_head = head;

		const int128 sum = static_cast<int128>(static_cast<uint128>(sums->before(tail)) - static_cast<uint128>(before));

		if (halves)
			return put_halves(targets, at, sum) | (wide_fits(sum) ? 0u : static_cast<uint32_t>(ERR_INT_OVERFLOW));
		*target_at<int64_t>(targets[0], at) = static_cast<int64_t>(sum);
		return static_cast<int64_t>(sum) == sum ? 0u : static_cast<uint32_t>(ERR_INT_OVERFLOW);
	});
}

/* Rows come and go, one by one; whatever goes was added before. */
std::unique_ptr<WindowEmitter>
float_emitter(const WindowCall &call, const WindowTarget *targets)
{
	const WindowFloats *floats = call.floats;
	FloatRange	range(floats->window());
	uint64_t	first = 0, end = 0;
	double		sum = 0;
	uint32_t	errors = 0;

	return of_frame(call, targets, [=](uint64_t head, uint64_t tail, uint32_t at) mutable -> uint32_t {
		if (head != first || tail != end)
		{
			/* a frame that shares little with the last is summed anew */
			if (head >= end || head - first > end - head)
			{
				range.clear();
				end = head;
			}
			else
				floats->add(first, head, -1, &range);
			floats->add(end, tail, 1, &range);
			first = head;
			end = tail;
			sum = range.sum();
			errors = range.may_overflow(floats->type()) ? static_cast<uint32_t>(ERR_SUM_OVERFLOW) : 0u;
		}
		*target_at<double>(targets[0], at) = sum;
		return errors;
	});
}

/* From a key's value to the column's. */
uint32_t
put_extreme(const WindowCall &call, const WindowTarget *targets, uint32_t at, int64_t value)
{
	switch (call.function.type)
	{
		case Type::I16:
			*target_at<int16_t>(targets[0], at) = static_cast<int16_t>(value);
			return 0;
		case Type::I32:
			*target_at<int32_t>(targets[0], at) = static_cast<int32_t>(value);
			return 0;
		case Type::I64:
			*target_at<int64_t>(targets[0], at) = value;
			return 0;
		default:
			break;
	}

	const double number = window_unordered(value, call.extremes->has_zero(true));

	if (call.function.type == Type::F32)
		*target_at<float>(targets[0], at) = static_cast<float>(number);
	else
		*target_at<double>(targets[0], at) = number;
	if (value == 0 && call.extremes->has_zero(false) && call.extremes->has_zero(true))
		return ERR_AMBIGUOUS_ZERO;
	return 0;
}

uint32_t
put_extreme(const WindowCall &call, const WindowTarget *targets, uint32_t at, int128 value)
{
	if (call.function.type == Type::I128)
		return put_halves(targets, at, value);
	return put_extreme(call, targets, at, static_cast<int64_t>(value));
}

/* A frame that has only grown asks for its new rows. */
template <typename Key>
std::unique_ptr<WindowEmitter>
extreme_emitter(const WindowCall &call, const WindowExtremes<Key> *extremes, const WindowTarget *targets)
{
	const bool	ranked = call.function.map != WINDOW_NONE;
	uint64_t	last_head = NO_ROW, last_tail = 0;
	Key			last = 0;

	return of_frame(call, targets, [=](uint64_t head, uint64_t tail, uint32_t at) mutable {
		if (head == last_head && tail >= last_tail)
			last = tail > last_tail ? std::min(last, extremes->of(last_tail, tail)) : last;
		else
			last = extremes->of(head, tail);
		last_head = head;
		last_tail = tail;

		const Key	value = extremes->max() ? ~last : last;

		/* below the rank lies the code */
		return put_extreme(call, targets, at, ranked ? static_cast<Key>(static_cast<uint32_t>(value)) : value);
	});
}

std::unique_ptr<WindowEmitter>
bool_emitter(const WindowCall &call, const WindowTarget *targets)
{
	const WindowTrues *trues = call.trues;
	const WindowCounts *counts = call.counts;
	const bool	all = call.function.fn == WindowFn::BoolAnd;

	return of_frame(call, targets, [=](uint64_t head, uint64_t tail, uint32_t at) -> uint32_t {
		const uint64_t n = trues->of(head, tail);

		*target_at<uint8_t>(targets[0], at) = all ? n == counts->of(head, tail) : n > 0;
		return 0;
	});
}

std::unique_ptr<WindowEmitter>
aggregate_emitter(const WindowCall &call, const WindowTarget *targets)
{
	switch (call.function.fn)
	{
		case WindowFn::Count:
			return of_position<int64_t>(targets[0], [counts = call.counts](const WindowVector &v, uint32_t i) {
				return counts->of(v.head[i], v.tail[i]);
			});
		case WindowFn::Sum:
			return call.floats != nullptr ? float_emitter(call, targets) : sum_emitter(call, targets);
		case WindowFn::Min:
		case WindowFn::Max:
			return call.extremes != nullptr ? extreme_emitter(call, call.extremes, targets)
				: extreme_emitter(call, call.wide_extremes, targets);
		default:
			return bool_emitter(call, targets);
	}
}

}  // namespace

std::unique_ptr<WindowEmitter>
make_window_emitter(const WindowCall &call, const WindowTarget *targets)
{
	const WindowTarget &to = targets[0];
	const int64_t number = call.function.number;

	switch (call.function.fn)
	{
		case WindowFn::RowNumber:
			return of_position<int64_t>(to, [](const WindowVector &v, uint32_t i) {
				return window_row_number(v.first + i, v.part_start[i]);
			});
		case WindowFn::Rank:
			return of_position<int64_t>(to, [](const WindowVector &v, uint32_t i) {
				return window_rank(v.peer_start[i], v.part_start[i]);
			});
		case WindowFn::DenseRank:
			return of_position<int64_t>(to, [](const WindowVector &v, uint32_t i) {
				return window_rank(v.group[i], v.part_group[i]);
			});
		case WindowFn::PercentRank:
			return of_position<double>(to, [](const WindowVector &v, uint32_t i) {
				return window_percent_rank(v.peer_start[i], v.part_start[i], v.part_end[i]);
			});
		case WindowFn::CumeDist:
			return of_position<double>(to, [](const WindowVector &v, uint32_t i) {
				return window_cume_dist(v.peer_end[i], v.part_start[i], v.part_end[i]);
			});
		case WindowFn::Ntile:
			return of_position<int32_t>(to, [number](const WindowVector &v, uint32_t i) {
				return window_ntile(v.first + i, v.part_start[i], v.part_end[i], static_cast<uint64_t>(number));
			});
		case WindowFn::Lag:
			return of_row_at(call, to, -number);
		case WindowFn::Lead:
			return of_row_at(call, to, number);
		case WindowFn::FirstValue:
		case WindowFn::LastValue:
		case WindowFn::NthValue:
			return of_row(call, to, [fn = call.function.fn, nth = static_cast<uint64_t>(number)](const WindowVector &v, uint32_t i) {
				return window_row_of_frame(fn, nth, v.head[i], v.tail[i]);
			});
		default:
			return aggregate_emitter(call, targets);
	}
}

}  // namespace gpuvm
