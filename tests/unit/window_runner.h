/* window_runner.h: runs CpuWindow, by several threads, over a table of window_reference.h. */
#ifndef GPUVM_TESTS_WINDOW_RUNNER_H
#define GPUVM_TESTS_WINDOW_RUNNER_H

#include <memory>
#include <thread>

#include "core/bits.h"
#include "tablet/build.h"
#include "vm/cpu_window.h"
#include "window_reference.h"

namespace window_reference {

/* A column's rows as a set has them. */
class Stored
{
public:
	explicit Stored(const Column &column)
	{
		const size_t n = column.values.size(), width = static_cast<size_t>(type_natural_width(column.type));
		const size_t nblocks = (n + WINDOW_BLOCK_ROWS - 1) / WINDOW_BLOCK_ROWS;

		values_.resize(n * width);
		nulls_.resize(nblocks);
		window.summary = {};
		window.summary.type = column.type;
		for (size_t i = 0; i < n; i++)
		{
			/* what lies under a null may be anything */
			put(column.type, column.values[i], values_.data() + i * width);
			if (column.values[i].null)
			{
				memset(values_.data() + i * width, column.type == Type::Bool ? 1 : static_cast<int>(i * 7 % 100), width);
				nulls_[i / WINDOW_BLOCK_ROWS].resize(WINDOW_BLOCK_ROWS / 64);
				bit_set(nulls_[i / WINDOW_BLOCK_ROWS].data(), i % WINDOW_BLOCK_ROWS);
			}
		}
		for (size_t b = 0; b < nblocks; b++)
		{
			const uint32_t nrows = static_cast<uint32_t>(std::min<size_t>(n - b * WINDOW_BLOCK_ROWS, WINDOW_BLOCK_ROWS));

			window.values.push_back(values_.data() + b * WINDOW_BLOCK_ROWS * width);
			window.nulls.push_back(nulls_[b].empty() ? nullptr : nulls_[b].data());

			const StagedColumn staged = {column.type, 1, window.values[b], window.nulls[b]};
			const StagedTablet tablet = {nrows, 1, &staged, 0, 0, nullptr, nullptr, nullptr, nullptr, 0};
			TabletHeader header;
			ColumnChunk chunk;

			plan_tablet(tablet, &header, &chunk);
			summarize_chunk(&window.summary, chunk, b == 0);
		}
	}

	WindowColumn window;

private:
	static void put(Type type, const Value &v, char *to)
	{
		const int64_t bits = static_cast<int64_t>(v.number);
		const float f = static_cast<float>(v.real);

		if (type == Type::F32)
			memcpy(to, &f, sizeof(f));
		else if (type == Type::F64)
			memcpy(to, &v.real, sizeof(v.real));
		else
			memcpy(to, &bits, static_cast<size_t>(type_natural_width(type)));
	}

	std::vector<char> values_;
	std::vector<std::vector<uint64_t>> nulls_;	/* per block */
};

inline Value
stored_value(Type type, const char *at)
{
	int64_t		v = 0;
	float		f;
	double		d;

	switch (type)
	{
		case Type::Bool: return number(*reinterpret_cast<const uint8_t *>(at));
		case Type::I16: return number(*reinterpret_cast<const int16_t *>(at));
		case Type::I32: return number(*reinterpret_cast<const int32_t *>(at));
		case Type::F32: memcpy(&f, at, sizeof(f)); return real(f);
		case Type::F64: memcpy(&d, at, sizeof(d)); return real(d);
		default: memcpy(&v, at, sizeof(v)); return number(v);
	}
}

struct Outcome
{
	uint32_t	errors = 0;
	std::vector<std::vector<Value>> results;	/* per function; halves as numbers */
};

inline Outcome
run_window(const WindowSpec &spec, const Table &table, int nthreads = 1)
{
	const uint64_t nrows = table[0].values.size();
	const size_t nblocks = (nrows + WINDOW_BLOCK_ROWS - 1) / WINDOW_BLOCK_ROWS;
	std::vector<std::unique_ptr<Stored>> stored;
	std::vector<WindowColumn> columns;
	std::vector<Type> types;
	Outcome		outcome;

	for (const Column &column : table)
	{
		stored.emplace_back(new Stored(column));
		columns.push_back(stored.back()->window);
	}
	for (uint32_t f = 0; f < spec.nfunctions; f++)
	{
		Type		of[2];
		const int	n = window_result_types(spec.functions[f], of);

		types.insert(types.end(), of, of + n);
	}

	/* of the size that is promised, so that a sanitizer sees what is beyond */
	std::vector<std::unique_ptr<char[]>> values;
	std::vector<std::unique_ptr<uint64_t[]>> nulls;
	std::vector<WindowTarget> targets;

	for (size_t b = 0; b < nblocks; b++)
		for (Type type : types)
		{
			const size_t rows = (std::min<size_t>(nrows - b * WINDOW_BLOCK_ROWS, WINDOW_BLOCK_ROWS) + 63) / 64 * 64;

			values.emplace_back(new char[rows * static_cast<size_t>(type_natural_width(type))]());
			nulls.emplace_back(new uint64_t[rows / 64]());
			targets.push_back(WindowTarget{values.back().get(), nulls.back().get()});
		}

	CpuWindow	window(spec, columns.data(), nrows);
	uint32_t	ntasks;

	window.set_targets(targets.data());
	while ((ntasks = window.begin_phase()) > 0)
	{
		std::atomic<uint32_t> next{0};
		std::vector<std::thread> threads;
		auto		work = [&] {
			for (uint32_t i = next++; i < ntasks; i = next++)
				window.run_task(i);
		};

		for (int t = 1; t < nthreads; t++)
			threads.emplace_back(work);
		work();
		for (std::thread &thread : threads)
			thread.join();
	}
	outcome.errors = window.errors();

	size_t		c = 0;

	for (uint32_t f = 0; f < spec.nfunctions; f++)
	{
		Type		of[2];
		const int	n = window_result_types(spec.functions[f], of);
		std::vector<Value> rows(nrows);

		for (uint64_t i = 0; i < nrows; i++)
		{
			auto		get = [&](size_t column) {
				const size_t at = i / WINDOW_BLOCK_ROWS * types.size() + column, row = i % WINDOW_BLOCK_ROWS;

				return bit_get(nulls[at].get(), row) ? none()
					: stored_value(types[column], values[at].get() + row * static_cast<size_t>(type_natural_width(types[column])));
			};

			rows[i] = get(c);
			if (n == 2 && !rows[i].null)
				rows[i] = number(wide_value(static_cast<int64_t>(get(c + 1).number), static_cast<int64_t>(rows[i].number)));
		}
		outcome.results.push_back(rows);
		c += static_cast<size_t>(n);
	}
	return outcome;
}

inline bool
same(const Value &a, const Value &b, bool is_float)
{
	if (a.null || b.null)
		return a.null == b.null;
	return is_float ? compare(true, a, b) == 0 : a.number == b.number;
}

}  // namespace window_reference

#endif
