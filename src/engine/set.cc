/* set.cc: see set.h. */
#include "engine/set.h"

#include <algorithm>
#include <cstring>

#include "tablet/build.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* ---- memory ------------------------------------------------------------------ */

/* The settings', now. What sessions keep is to leave room for jobs. */
void
SetMemory::follow_limit()
{
	const uint64_t limit = arena_->header()->result_limit.load(std::memory_order_relaxed);
	const uint64_t memory = arena_->header()->memory_limit.load(std::memory_order_relaxed);

	/* to the budget 0 is none */
	budget_.set_limit(std::max<uint64_t>(memory == 0 ? limit : std::min(limit, memory / 2), 1));
}

bool
SetAccount::take(uint64_t bytes)
{
	all_->follow_limit();
	if (!all_->budget_.take(&memory_, bytes))
		return false;
	all_->arena_->header()->result_bytes.fetch_add(bytes);
	return true;
}

void
SetAccount::give_back(uint64_t bytes)
{
	all_->budget_.give_back(memory_, bytes);
	all_->arena_->header()->result_bytes.fetch_sub(bytes);
}

uint64_t
SetAccount::left()
{
	all_->follow_limit();
	return all_->budget_.left(&memory_);
}

bool
SetAccount::wait_for_more(const std::function<bool()> &ended)
{
	return memory_.wait_for_more([&]
	{
		all_->follow_limit();
		return ended();
	});
}

/* ---- columns ----------------------------------------------------------------- */

SetShape::SetShape(const Program *program, const SinkColumn *list, uint32_t n, const std::vector<bool> &refs)
	: results(program->nresults)
{
	program_result_types(program, results.data());
	for (uint32_t i = 0; i < n; i++)
		add(list[i], list[i].result < refs.size() && refs[list[i].result]);
}

SetShape::SetShape(const Program *program) : results(program->nresults)
{
	program_result_types(program, results.data());
	for (uint16_t i = 0; i < results.size(); i++)
		add(SinkColumn{i, SinkForm::Value}, false);
}

SetShape::SetShape(std::vector<Type> column_types, std::vector<bool> column_references)
	: types(std::move(column_types)), references(std::move(column_references))
{
	results = types;
	for (size_t c = 0; c < types.size(); c++)
		columns.push_back(SinkColumn{static_cast<uint16_t>(c), SinkForm::Value});
}

void
SetShape::add(SinkColumn column, bool reference)
{
	const Type	type = column.result < results.size() ? results[column.result] : Type::None;

	columns.push_back(column);
	types.push_back(type == Type::I128 ? Type::I64 : type);
	references.push_back(reference && column.form == SinkForm::Value);
}

const char *
SetShape::check() const
{
	for (size_t c = 0; c < types.size(); c++)
		if (types[c] < Type::Bool || types[c] > Type::F64 || columns[c].form > SinkForm::High ||
			(columns[c].form != SinkForm::Value && types[c] != Type::I64))
			return "a result set cannot have such a column";
	return nullptr;
}

uint64_t
SetShape::layout(uint32_t capacity, ResultColumnLayout *out) const
{
	uint64_t	at = align_up(sizeof(TabletHeader) + types.size() * sizeof(ColumnChunk), 64);

	for (size_t c = 0; c < types.size(); c++)
	{
		const uint64_t nulls = at, values = align_up(nulls + capacity / 8, 64);

		at = align_up(values + uint64_t(capacity) * static_cast<uint64_t>(type_natural_width(types[c])), 64);
		if (out != nullptr)
			out[c] = ResultColumnLayout{nulls, values};
	}
	return at;
}

/* ---- a tablet ---------------------------------------------------------------- */

SetTablet::SetTablet(const SetShape *shape, char *base, uint32_t capacity)
	: shape_(shape), base_(base), capacity_(capacity)
{
	shape->layout(capacity, at_);
}

/* n bits behind those that are there. */
static void
append_bits(uint64_t *to, uint32_t at, const uint64_t *from, uint32_t n)
{
	const uint32_t shift = at % 64;

	to += at / 64;
	for (uint32_t i = 0; i < n; i += 64, to++, from++)
	{
		const uint64_t bits = n - i < 64 ? *from & ((uint64_t{1} << (n - i)) - 1) : *from;

		to[0] |= bits << shift;
		if (shift != 0 && bits >> (64 - shift) != 0)
			to[1] |= bits >> (64 - shift);
	}
}

static bool
is_null(const uint64_t *nulls, uint32_t row)
{
	return nulls[row / 64] >> row % 64 & 1;
}

/* Integers, or sums, as one of 64 bits or a half. False where one does not fit. */
template <typename T>
bool
SetTablet::append_integers(uint32_t column, const char *from, const uint64_t *nulls, uint32_t n)
{
	const SinkForm form = shape_->columns[column].form;
	int64_t    *to = reinterpret_cast<int64_t *>(values(column)) + nrows_;
	bool		fit = true;

	for (uint32_t i = 0; i < n; i++)
	{
		T			value;

		memcpy(&value, from + i * sizeof(value), sizeof(value));
		if (is_null(nulls, i))
			value = 0;
		to[i] = form == SinkForm::Value ? static_cast<int64_t>(value)
			: form == SinkForm::Low ? wide_low(value) : wide_high(value);
		fit = fit && (form == SinkForm::Value ? to[i] == value : wide_fits(value));
	}
	return fit;
}

void
SetTablet::append_values(uint32_t column, const char *from, const uint64_t *nulls, uint32_t n)
{
	const SinkColumn of = shape_->columns[column];
	const Type	type = shape_->results[of.result];
	const size_t width = static_cast<size_t>(type_natural_width(shape_->types[column]));
	char	   *to = values(column) + nrows_ * width;

	if (type == Type::I128)
		overflows_[column] |= !append_integers<int128>(column, from, nulls, n);
	else if (of.form != SinkForm::Value)
		overflows_[column] |= !append_integers<int64_t>(column, from, nulls, n);
	else if (type == Type::I16)
	{
		/* wider in results than in tablets */
		for (uint32_t i = 0; i < n; i++)
			memcpy(to + i * width, from + i * static_cast<size_t>(type_width(type)), width);
	}
	else
		memcpy(to, from, n * width);
	append_bits(this->nulls(column), nrows_, nulls, n);
}

void
SetTablet::append(const char *area, uint32_t area_rows, uint32_t n)
{
	ResultColumnLayout from[PROGRAM_MAX_COLUMNS];

	result_layout(shape_->results.data(), static_cast<int>(shape_->results.size()), area_rows, from);
	for (uint32_t c = 0; c < shape_->ncolumns(); c++)
	{
		const ResultColumnLayout &at = from[shape_->columns[c].result];

		append_values(c, area + at.values, reinterpret_cast<const uint64_t *>(area + at.nulls), n);
	}
	nrows_ += n;
}

/* What lies under a null is within the column's range, as in any tablet. */
static void
fill_nulls(const ColumnChunk &chunk, const uint64_t *nulls, uint32_t nrows, char *values)
{
	const int64_t fill = type_is_float(chunk.type) ? 0 : chunk.min;

	for (uint32_t word = 0; word < (nrows + 63) / 64; word++)
		for (uint64_t left = nulls[word]; left != 0; left &= left - 1)
		{
			const uint64_t row = word * uint64_t(64) + static_cast<uint32_t>(__builtin_ctzll(left));

			memcpy(values + row * chunk.width, &fill, chunk.width);
		}
}

const TabletHeader *
SetTablet::finish()
{
	TabletHeader *to = reinterpret_cast<TabletHeader *>(base_);
	ColumnChunk *chunks = tablet_chunks(to);
	std::vector<StagedColumn> columns;

	for (uint32_t c = 0; c < shape_->ncolumns(); c++)
		columns.push_back(StagedColumn{shape_->types[c], static_cast<int16_t>(c + 1), values(c), nulls(c)});

	/* The statistics are a tablet's, the places those that the columns have. */
	const StagedTablet staged = {nrows_, shape_->ncolumns(), columns.data(), 0, 0,
		nullptr, nullptr, nullptr, nullptr, 0};

	plan_tablet(staged, to, chunks);
	to->size = shape_->layout(capacity_, nullptr);
	for (uint32_t c = 0; c < shape_->ncolumns(); c++)
	{
		ColumnChunk &chunk = chunks[c];

		chunk.width = static_cast<uint8_t>(type_natural_width(chunk.type));
		chunk.base = 0;
		chunk.data = at_[c].values;
		chunk.data_bytes = uint64_t(to->padded_rows) * chunk.width;
		chunk.nulls = chunk.null_count == 0 ? 0 : at_[c].nulls;
		if (chunk.null_count != 0)
			fill_nulls(chunk, nulls(c), nrows_, values(c));
	}
	return to;
}

/* ---- a set ------------------------------------------------------------------- */

ResultSet::ResultSet(SetShape shape) : shape_(std::move(shape)), columns_(shape_.types.size())
{
	for (size_t c = 0; c < columns_.size(); c++)
	{
		columns_[c].type = shape_.types[c];
		columns_[c].scale = -1;
		columns_[c].flags = shape_.references[c] ? COLUMN_VARIABLE : 0;
	}
}

ResultSet::ResultSet(SetShape shape, DeviceSet *device, SetShare share) : ResultSet(std::move(shape))
{
	device_.reset(device);
	grown(std::move(share));
}

/* That are counted for the device's set. */
uint64_t
ResultSet::device_bytes() const
{
	uint64_t	bytes = 0;

	for (const SetShare &share : shares_)
		bytes += share.bytes();
	return bytes;
}

void
ResultSet::grown(SetShare share)
{
	shares_.push_back(std::move(share));
	nrows_ = device_->rows();
	columns_.assign(device_->columns(), device_->columns() + device_->ncolumns());
	for (size_t c = 0; c < columns_.size(); c++)
		columns_[c].flags |= shape_.references[c] ? COLUMN_VARIABLE : 0;
}

void
ResultSet::grown(const SetShape &more, SetShare share)
{
	widen(more);
	grown(std::move(share));
}

void
ResultSet::widen(const SetShape &more)
{
	shape_.types.insert(shape_.types.end(), more.types.begin(), more.types.end());
	shape_.references.insert(shape_.references.end(), more.references.begin(), more.references.end());
}

void
ResultSet::add_tablet(const TabletHeader *tablet)
{
	for (size_t c = 0; c < columns_.size(); c++)
	{
		const uint16_t reference = columns_[c].flags & COLUMN_VARIABLE;

		summarize_chunk(&columns_[c], tablet_chunks(tablet)[c], tablets_.empty());
		columns_[c].flags |= reference;
		columns_[c].scale = -1;
	}
	tablets_.push_back(tablet);
	nrows_ += tablet->nrows;
}

/* So that adding so many does not throw. */
template <typename T> static void
make_room(std::vector<T> *to, size_t more)
{
	if (to->capacity() < to->size() + more)
		to->reserve(std::max(to->size() + more, 2 * to->size()));
}

void
ResultSet::append(ResultSet *from)
{
	/* all or nothing: who finds no memory begins again */
	make_room(&tablets_, from->tablets_.size());
	make_room(&blocks_, from->blocks_.size());
	make_room(&shares_, from->shares_.size());
	/* what is null everywhere may be a reference or not */
	for (size_t c = 0; c < columns_.size(); c++)
	{
		const bool	mine = columns_[c].null_count < nrows_, its = from->columns_[c].null_count < from->nrows_;

		const bool	reference = (!mine || shape_.references[c]) && (!its || from->shape_.references[c]);
		shape_.references[c] = reference;
		columns_[c].flags = static_cast<uint16_t>(columns_[c].flags & ~COLUMN_VARIABLE);
		if (reference)
			columns_[c].flags |= COLUMN_VARIABLE;
	}
	for (const TabletHeader *tablet : from->tablets_)
		add_tablet(tablet);
	std::move(from->blocks_.begin(), from->blocks_.end(), std::back_inserter(blocks_));
	std::move(from->shares_.begin(), from->shares_.end(), std::back_inserter(shares_));
	from->tablets_.clear();
	from->blocks_.clear();
	from->shares_.clear();
}

/* ---- more columns of it ---------------------------------------------------------- */

static uint64_t
header_bytes(size_t ncolumns)
{
	return align_up(sizeof(TabletHeader) + ncolumns * sizeof(ColumnChunk), 64);
}

uint64_t
ResultSet::headers_bytes(const SetShape &more) const
{
	return tablets_.size() * header_bytes(columns_.size() + more.types.size());
}

/* What the chunks say of another header's tablet, for this one. */
static void
move_chunks(const TabletHeader *from, uint32_t n, const TabletHeader *header, ColumnChunk *to)
{
	const uint64_t distance = reinterpret_cast<uintptr_t>(from) - reinterpret_cast<uintptr_t>(header);

	for (uint32_t c = 0; c < n; c++)
	{
		to[c] = tablet_chunks(from)[c];
		to[c].data += distance;
		to[c].nulls += to[c].nulls != 0 ? distance : 0;
	}
}

void
ResultSet::add_columns(const SetShape &more, const std::vector<const TabletHeader *> &tablets, char *headers, Block block)
{
	const uint32_t old = shape_.ncolumns(), added = more.ncolumns();
	ResultSet	last(more);

	/* all or nothing, likewise */
	last.tablets_.reserve(tablets.size());
	blocks_.reserve(blocks_.size() + 1);
	columns_.reserve(old + added);
	shape_.types.reserve(old + added);
	shape_.references.reserve(old + added);
	for (size_t i = 0; i < tablets.size(); i++, headers += header_bytes(old + added))
	{
		TabletHeader *header = reinterpret_cast<TabletHeader *>(headers);

		*header = *tablets_[i];
		header->ncols = static_cast<uint16_t>(old + added);
		move_chunks(tablets_[i], old, header, tablet_chunks(header));
		move_chunks(tablets[i], added, header, tablet_chunks(header) + old);
		for (uint32_t c = 0; c < added; c++)
			tablet_chunks(header)[old + c].attnum = static_cast<int16_t>(old + c + 1);
		last.add_tablet(tablets[i]);
		tablets_[i] = header;
	}
	add_block(std::move(block));
	for (uint32_t c = 0; c < added; c++)
	{
		columns_.push_back(last.columns_[c]);
		columns_.back().attnum = static_cast<int16_t>(old + c + 1);
	}
	widen(more);
}

const char *
ResultSet::bring_home(DeviceLibrary *library, SetAccount *account)
{
	if (device_ == nullptr)
		return nullptr;

	const uint64_t all = device_->rows(), counted = device_bytes();
	std::vector<uint64_t *> nulls(columns_.size());
	std::vector<char *> values(columns_.size());
	ResultSet	home(shape_);
	const auto	capacity_of = [all](uint64_t first)
	{
		return static_cast<uint32_t>(align_up(std::min<uint64_t>(all - first, SET_TABLET_ROWS), TABLET_PAD_ROWS));
	};
	uint64_t	bytes = 0;
	SetShare	more;

	for (uint64_t first = 0; first < all; first += SET_TABLET_ROWS)
		bytes += shape_.layout(capacity_of(first), nullptr);
	/* the rows are counted already */
	if (bytes > counted)
	{
		if (!account->take(bytes - counted))
			return SET_NO_MEMORY;
		more = SetShare(account, bytes - counted);
	}
	for (uint64_t first = 0; first < all; first += SET_TABLET_ROWS)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(all - first, SET_TABLET_ROWS)), capacity = capacity_of(first);
		ResultSet::Block block = {Pages(shape_.layout(capacity, nullptr), false), {}};
		SetTablet	tablet(&shape_, block.pages.as<char>(), capacity);

		for (uint32_t c = 0; c < columns_.size(); c++)
		{
			values[c] = tablet.values(c);
			nulls[c] = tablet.nulls(c);
		}
		if (library == nullptr || !library->copy_set(device_.get(), first, n, values.data(), nulls.data()))
			return "a result set could not be copied from the device";
		tablet.fill(n);
		home.add_tablet(tablet.finish());
		home.add_block(std::move(block));
	}
	home.shares_.reserve(shares_.size() + 1);
	std::move(shares_.begin(), shares_.end(), std::back_inserter(home.shares_));
	home.shares_.push_back(std::move(more));
	*this = std::move(home);
	return nullptr;
}

/* ---- a session's ------------------------------------------------------------- */

void
SetStore::put(uint32_t number, std::shared_ptr<ResultSet> set)
{
	if (sets_[number] == nullptr)
		account_.count_sets(1);
	sets_[number] = std::move(set);
}

void
SetStore::drop(uint64_t numbers)
{
	for (uint32_t i = 1; i <= JOB_MAX_SETS; i++)
	{
		if (sets_[i] == nullptr || !(numbers >> i & 1))
			continue;
		sets_[i].reset();
		account_.count_sets(-1);
	}
}

}  // namespace gpuvm
