/* cuda_map_test.cc: maps through the device library: each job's own, small and large, counted in the device's memory, and refused beyond. */
#include "cuda_runtime_fixture.h"

#include "maps.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

class CudaMaps : public CudaRuntime
{
};

/* SELECT m1[k] + 1 [, or sum of it by m1[k]] FROM three_columns() WHERE m0[n], nulls by their own entry. */
SealedProgram
map_program(bool grouped)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG | 0};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("m"));
	if (grouped)
	{
		b->emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b->add_name("s"));
		b->emit(Opcode::AggOpen, Type::None, 1, 1, b->add_aux(sources, 2));
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	n = b->new_reg(Type::I32), wanted = b->new_reg(Type::Bool), k = b->new_reg(Type::I32), m = b->new_reg(Type::I64);
	const int	one = b->new_reg(Type::I64), sum = b->new_reg(Type::I64);
	const int64_t key = m;

	b->emit(Opcode::Column, Type::I32, n, 2, 0);
	b->emit(Opcode::Lookup, Type::Bool, wanted, 0, n, 0, LOOKUP_NULL);
	b->emit(Opcode::IfNot, Type::Bool, wanted, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Column, Type::I32, k, 0, 0);
	b->emit(Opcode::Lookup, Type::I64, m, 1, k);
	b->emit(Opcode::Integer, Type::I64, one, 1, 0);
	b->emit(Opcode::Add, Type::I64, sum, m, one);
	if (grouped)
	{
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
		b->emit(Opcode::AggStep, Type::I64, 0, sum, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	}
	else
		b->emit(Opcode::Result, Type::None, sum, 1, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

/* Entries from `base` on, every seventh of them null. */
MapSet
map_set(int entries, int64_t base, bool nulls_wanted)
{
	MapSet		set;
	std::vector<Value> truths, values;

	for (int i = 0; i <= 1000; i++)
		truths.push_back(i == 1000 ? truth(nulls_wanted) : i % 11 == 0 ? Value{} : truth((i + base) % 3 != 0));
	for (int i = 0; i < entries; i++)
		values.push_back(i % 7 == 0 ? Value{} : from_register(base + i % 100));
	set.add(Type::Bool, truths, true);
	set.add(Type::I64, values, false);
	return set;
}

}  // namespace

/*
 * The program is the same each time, and lowered for the ranges of the maps' values: so an
 * overflow is one only with some maps, and the same program runs with others before and after.
 */
TEST_F(CudaMaps, AreEachJobsOwn)
{
	const Table table = three_columns({30000, 9000}, 700, 12);
	const StoredTable stored = arena.store(table);

	open();
	for (bool grouped : {false, true})
		for (int entries : {800, 500, 100000})
		{
			const SealedProgram sealed = map_program(grouped);

			for (int64_t base : {int64_t{0}, INT64_MAX - 99, int64_t{-5000000000}, int64_t{0}})
			{
				const MapSet maps = map_set(entries, base, base == 0);
				Ways		ways;

				ASSERT_EQ(verify_maps(sealed.get(), maps.maps.data(), 2), nullptr);
				ways.maps = &maps.maps;
				if (grouped)
					expect_groups(sealed.get(), stored, {}, ways);
				else
					expect_rows(sealed.get(), stored, {}, ways);
				ASSERT_FALSE(HasFatalFailure()) << "entries " << entries << " base " << base << " grouped " << grouped;

				const Ran	ran = run(sealed.get(), stored, {}, ways);

				EXPECT_GE(ran.figures.bytes_moved, cuda::map_bytes(maps.maps.data(), 2));
				EXPECT_TRUE(base > 0 || ran.rows > 0);
			}
		}
}

TEST_F(CudaMaps, TooLargeOnesAreRefused)
{
	const Table table = three_columns({9000}, 700, 12);
	const StoredTable stored = arena.store(table);
	const SealedProgram sealed = map_program(false);
	MapSet		maps = map_set(1000, 0, true);
	Ways		ways;

	ways.maps = &maps.maps;
	open(8 << 20);
	expect_rows(sealed.get(), stored, {}, ways);

	/* A map as large as the memory: zeroes, of which hardly any is read. */
	const uint32_t entries = 1 << 20;
	std::unique_ptr<char, FreeDeleter> zeroes(static_cast<char *>(calloc(MAP_MAX_ENTRIES + 1ull, 8)));
	CodeMap		map = maps.maps[1];

	map.nulls = nullptr;
	map.values = zeroes.get();
	map.nentries = entries;
	map.range = map_range(map, 0, 1);
	maps.maps[1] = map;

	const Ran	ran = run(sealed.get(), stored, {}, ways);

	EXPECT_EQ(ran.outcome, DeviceOutcome::Refused);
	EXPECT_NE(ran.reason.find("memory"), std::string::npos) << ran.reason;
	EXPECT_TRUE(ran.units.empty());
	library.reset();

	/* However much memory there is. */
	std::vector<CodeMap> many(cuda::MAX_MAP_BYTES / (MAP_MAX_ENTRIES * 8ull), map);	/* and their null bits */

	for (CodeMap &m : many)
		m.nentries = MAP_MAX_ENTRIES;
	EXPECT_GT(cuda::map_bytes(many.data(), static_cast<uint32_t>(many.size())), cuda::MAX_MAP_BYTES);
	open();
	many[0] = maps.maps[0];
	many.push_back(many[1]);
	ways.maps = &many;
	const_cast<Program *>(sealed.get())->nmaps = 3;

	const Ran	refused = run(sealed.get(), stored, {}, ways);

	EXPECT_EQ(refused.outcome, DeviceOutcome::Refused);
	EXPECT_NE(refused.reason.find("too large"), std::string::npos) << refused.reason;

	maps = map_set(1000, 0, true);
	ways.maps = &maps.maps;
	expect_rows(map_program(false).get(), stored, {}, ways);
}
