/*
 * The words that keep pinning and punching apart. The threads of the second test
 * play gpuvmd, backends and the supervisor on a few chunks; each "page" knows
 * whether a device has it, and nobody may punch it then.
 */
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/pin_words.h"

using namespace gpuvm;

namespace {

TEST(PinWords, EachStep)
{
	PinWord		word{0};

	EXPECT_EQ(pin_state(word), PinState::Free);

	/* two punch at once; until both have left, nobody pins */
	EXPECT_TRUE(punch_enter(&word));
	EXPECT_TRUE(punch_enter(&word));
	EXPECT_EQ(pin_take(&word), PinTake::Busy);
	punch_leave(&word);
	EXPECT_EQ(pin_take(&word), PinTake::Busy);
	punch_leave(&word);
	EXPECT_EQ(pin_state(word), PinState::Free);

	unpin_wanted(&word);
	EXPECT_EQ(pin_state(word), PinState::Free) << "there is nothing to unpin";

	/* pinned: nobody punches, the supervisor neither */
	EXPECT_EQ(pin_take(&word), PinTake::Taken);
	EXPECT_EQ(pin_take(&word), PinTake::Held);
	EXPECT_FALSE(punch_enter(&word));
	EXPECT_FALSE(punch_enter_wanted(&word));

	/* no longer needed, then needed after all */
	unpin_wanted(&word);
	EXPECT_EQ(pin_state(word), PinState::UnpinWanted);
	EXPECT_FALSE(punch_enter(&word));
	EXPECT_FALSE(punch_enter_wanted(&word));
	EXPECT_EQ(pin_take(&word), PinTake::Held);
	EXPECT_EQ(pin_state(word), PinState::Pinned);

	/* unpinned: the supervisor's turn */
	pin_give_up(&word);
	EXPECT_EQ(pin_state(word), PinState::PunchWanted);
	EXPECT_FALSE(punch_enter(&word));
	EXPECT_TRUE(punch_enter_wanted(&word));
	EXPECT_EQ(pin_take(&word), PinTake::Busy);
	EXPECT_TRUE(punch_enter(&word));
	punch_leave(&word);
	punch_leave(&word);
	EXPECT_EQ(pin_state(word), PinState::Free);
	EXPECT_FALSE(punch_enter_wanted(&word));

	/* or pinned again before its turn came */
	EXPECT_EQ(pin_take(&word), PinTake::Taken);
	pin_give_up(&word);
	EXPECT_EQ(pin_take(&word), PinTake::Taken);

	/* gpuvmd has ended: of what was pinned the supervisor cleans up */
	pin_ended(&word);
	EXPECT_TRUE(punch_enter_wanted(&word));
	pin_ended(&word);
	EXPECT_EQ(pin_state(word), PinState::Punching) << "a backend may still punch";
	punch_leave(&word);
	pin_ended(&word);
	EXPECT_EQ(pin_state(word), PinState::Free);
	EXPECT_EQ(pin_take(&word), PinTake::Taken);
	unpin_wanted(&word);
	pin_ended(&word);
	EXPECT_EQ(pin_state(word), PinState::PunchWanted);
}

/* gpuvmd can write to the words: what it writes by mistake lets nobody punch, and is over with its end. */
TEST(PinWords, Garbage)
{
	for (uint32_t garbage : {5u, 0xffu, 0x100u, 0x103u, 0xffffff01u, pin_word(PinState::Punching), 0xdeadbeefu})
	{
		PinWord		word{garbage};

		EXPECT_FALSE(punch_enter(&word)) << garbage;
		EXPECT_FALSE(punch_enter_wanted(&word)) << garbage;
		pin_ended(&word);
		EXPECT_EQ(word.load(), pin_word(PinState::PunchWanted)) << garbage;
		EXPECT_TRUE(punch_enter_wanted(&word));
		/* and while somebody punches */
		word.store(garbage);
		punch_leave(&word);
		pin_ended(&word);
		EXPECT_EQ(word.load(), pin_word(PinState::PunchWanted)) << garbage;
	}
}

TEST(PinWords, ChunksCoverTheArena)
{
	for (uint64_t size : {uint64_t(1) << 20, MIN_PIN_CHUNK, MIN_PIN_CHUNK + 1, uint64_t(100) << 30, uint64_t(1) << 40, uint64_t(3) << 41})
	{
		uint64_t	chunk = pin_chunk_bytes(size);
		uint64_t	n = pin_chunks(size);

		EXPECT_EQ(chunk % MIN_PIN_CHUNK, 0u);
		EXPECT_LE(n, MAX_PIN_CHUNKS);
		EXPECT_GE(n * chunk, size);
		EXPECT_LT((n - 1) * chunk, size);
	}
}

TEST(PinWords, NobodyPunchesWhatADeviceHas)
{
	constexpr int NCHUNKS = 3;
	constexpr int LOOKS = 20;
	constexpr int TIMES = 200;	/* that each happens at least, however the threads are scheduled */
	const auto	deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);

	struct Chunk
	{
		PinWord		word{0};
		std::atomic<bool> on_device{false};
		std::atomic<int> punching{0};
	};
	Chunk		chunks[NCHUNKS];
	std::atomic<int> wrong{0};
	std::atomic<int> pins{0};
	std::atomic<int> punches{0};
	std::atomic<bool> ended{false};
	std::vector<std::thread> backends;

	auto		punch = [&](Chunk *chunk)
	{
		chunk->punching++;
		/* lets the others run in the middle of it */
		if (punches++ % 4 == 0)
			std::this_thread::sleep_for(std::chrono::microseconds(50));
		for (int look = 0; look < LOOKS; look++)
			wrong += chunk->on_device;
		chunk->punching--;
	};

	std::thread	engine([&]
	{
		for (int i = 0; !ended; i++)
		{
			Chunk	   *chunk = &chunks[i % NCHUNKS];

			/* sometimes it still needs what nobody else does */
			if (pin_state(chunk->word) == PinState::UnpinWanted && i % 8 != 0)
			{
				chunk->on_device = false;
				pin_give_up(&chunk->word);
				/* or it would take it again before the supervisor saw it, time after time */
				std::this_thread::sleep_for(std::chrono::microseconds(20));
				continue;
			}
			switch (pin_take(&chunk->word))
			{
				case PinTake::Taken:
					for (int look = 0; look < LOOKS; look++)
						wrong += chunk->punching;
					chunk->on_device = true;
					pins++;
					break;
				case PinTake::Held:
					wrong += !chunk->on_device;
					break;
				case PinTake::Busy:
					break;
			}
			std::this_thread::yield();
		}
	});
	std::thread	supervisor([&]
	{
		for (int i = 0; !ended; i++)
		{
			Chunk	   *chunk = &chunks[i % NCHUNKS];

			if (punch_enter_wanted(&chunk->word))
			{
				punch(chunk);
				punch_leave(&chunk->word);
			}
			std::this_thread::yield();
		}
	});

	for (int b = 0; b < 2; b++)
		backends.emplace_back([&, b]
		{
			for (int i = b; (pins < TIMES || punches < TIMES) && std::chrono::steady_clock::now() < deadline; i++)
			{
				Chunk	   *chunk = &chunks[i % NCHUNKS];

				if (punch_enter(&chunk->word))
				{
					punch(chunk);
					punch_leave(&chunk->word);
				}
				else
					unpin_wanted(&chunk->word);
				std::this_thread::yield();
			}
		});
	for (std::thread &backend : backends)
		backend.join();
	ended = true;
	engine.join();
	supervisor.join();

	EXPECT_EQ(wrong, 0);
	EXPECT_GE(pins, TIMES);
	EXPECT_GE(punches, TIMES);
	for (Chunk &chunk : chunks)
		EXPECT_NE(pin_state(chunk.word), PinState::Punching);
}

}  // namespace
