/*
 * processors.h: whose turn it is to compute.
 *
 * A processor for each of a hundred heavy jobs in turns would end none of them, and none would see in time that it was
 * canceled. So a job computes at once for FREE, as small ones need no more; then it needs a place, of which there are
 * as many as processors. It keeps the place until it ends, waits for its client, or has had it for TURN while others
 * wait. A place goes to the session that has had least; of those that have had as little to the one that came last:
 * under overload it has most of its timeout left, and the others' turn comes before its next one.
 *
 * Helpers of the pool need no place: there are no more of them than processors anyway.
 */
#ifndef GPUVM_ENGINE_PROCESSORS_H
#define GPUVM_ENGINE_PROCESSORS_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace gpuvm {

/* What a session has had of places. Its thread's, but under the lock while it waits. */
struct SessionShare
{
	std::chrono::nanoseconds used{0};
};

class Processors
{
public:
	static constexpr std::chrono::milliseconds FREE{10};
	static constexpr std::chrono::milliseconds TURN{4000};
	/* How often who waits asks whether he is still to. */
	static constexpr std::chrono::milliseconds ASK{20};

	explicit Processors(int places) : free_(places) {}

	/* Waits for a place; false when ended() said so first. */
	bool		take(SessionShare *share, const std::function<bool()> &ended);
	/* The place was had for so long. */
	void		leave(SessionShare *share, std::chrono::nanoseconds had);
	bool		wanted();

private:
	struct Waiter
	{
		SessionShare *share;
		std::condition_variable called;
		bool		has_place = false;
	};

	void		call_next();

	std::mutex	mutex_;
	int			free_;
	std::list<Waiter *> waiting_;	/* the last to come first */
	std::chrono::nanoseconds least_{0};	/* what those have had, at least, whose turn it is: nobody saves up what he did not use */
};

/* A job's place, for its owner alone. */
class Turn
{
public:
	Turn(Processors *processors, SessionShare *share) : processors_(processors), share_(share), began_(used()) {}
	~Turn() { leave(); }

	Turn(const Turn &) = delete;
	Turn &operator=(const Turn &) = delete;

	/* To be called every few milliseconds of computing. May wait, and says for how long. */
	std::chrono::nanoseconds look(const std::function<bool()> &ended);
	/* Before a wait for somebody else. */
	void		leave();

private:
	/* Processor time of this thread. */
	static std::chrono::nanoseconds used();

	Processors *processors_;
	SessionShare *share_;
	std::chrono::nanoseconds began_;
	bool		has_place_ = false;
	std::chrono::steady_clock::time_point since_;
};

}  // namespace gpuvm

#endif
