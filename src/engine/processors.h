/*
 * processors.h: whose turn it is to compute.
 *
 * A processor for each of a hundred heavy jobs in turns would end none of them, and none would see in time that it was
 * canceled. So a job computes at once for FREE, as small ones need no more; then it needs a place, of which there are
 * as many as processors. It keeps the place until it ends, waits for its client, or has had it for TURN while others
 * wait.
 *
 * A place goes to the role that has had least by its weight, however many sessions it has, and there to the session that
 * has had least; of those that have had as little to the one that came last: under overload it has most of its timeout
 * left, and the others' turn comes before its next one. A job whose role is AHEAD of one that waits is interrupted, so
 * that nobody waits for another role's turns; it is the first of its role to go on, so that few are half done.
 *
 * Helpers of the pool need no place: there are no more of them than processors anyway. They go to the role that has had
 * least, and what they do counts as had.
 */
#ifndef GPUVM_ENGINE_PROCESSORS_H
#define GPUVM_ENGINE_PROCESSORS_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "engine/abi.h"

namespace gpuvm {

/* What a session has had of places, and for whom. Its thread's, but under the lock while it waits. */
struct SessionShare
{
	std::chrono::nanoseconds used{0};
	uint32_t	role = 0;
	uint32_t	weight = DEFAULT_SHARE;	/* of the role, as the session has it */
	bool		interrupted = false;	/* for another role */
};

class Processors
{
public:
	static constexpr std::chrono::milliseconds FREE{10};
	static constexpr std::chrono::milliseconds TURN{4000};
	/* How often who has a place says so, */
	static constexpr std::chrono::milliseconds SLICE{20};
	/* how much more than others' a role's jobs may have had before they are interrupted, */
	static constexpr std::chrono::milliseconds AHEAD{50};
	/* and how much less than others a role may have had that comes back: between queries it saves up no more. */
	static constexpr std::chrono::milliseconds CREDIT{1000};
	/* How much more a role may have had, at most, when others come: what nobody else wanted costs it no more. */
	static constexpr std::chrono::milliseconds DEBT{4000};
	/* How often who waits asks whether he is still to. */
	static constexpr std::chrono::milliseconds ASK{20};

	explicit Processors(int places) : free_(places) {}

	/* Waits for a place; false when ended() said so first. */
	bool		take(SessionShare *share, const std::function<bool()> &ended);
	/* The place was had for so long, since it was taken or that was last said. True: another role's turn has come. */
	bool		had(SessionShare *share, std::chrono::nanoseconds time);
	/* Likewise, and it is free. */
	void		leave(SessionShare *share, std::chrono::nanoseconds time);
	bool		wanted();

	/* Helpers: has the one's role had less than the other's? For so long they have helped a job of the session's. */
	bool		behind(const SessionShare *one, const SessionShare *other);
	void		helped(SessionShare *share, std::chrono::nanoseconds time);

private:
	struct Waiter
	{
		SessionShare *share;
		std::condition_variable called;
		bool		has_place = false;
	};

	/* What a role's sessions have had, as if it had DEFAULT_SHARE. */
	struct Role
	{
		std::chrono::nanoseconds used{0};
		/* what those sessions have had, at least, whose turn it is: nobody saves up what he did not use */
		std::chrono::nanoseconds least{0};
		int			jobs = 0;	/* that wait or have a place */
	};

	static constexpr size_t ROLES = 1024;	/* that are remembered when they have no jobs */

	Role	   &role_of(const SessionShare *share);
	void		count_for_role(const SessionShare *share, std::chrono::nanoseconds time);
	void		count(SessionShare *share, std::chrono::nanoseconds time);
	bool		before(const SessionShare *a, const SessionShare *b) const;
	void		call_next();

	std::mutex	mutex_;
	int			free_;
	std::list<Waiter *> waiting_;	/* the last to come first */
	std::map<uint32_t, Role> roles_;
	std::chrono::nanoseconds least_{0};	/* what those roles have had, at least, whose turn it is */
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
	std::chrono::steady_clock::time_point counted_;	/* until then the place's time was said */
	std::chrono::nanoseconds turn_{0};	/* had of this turn, which goes on when it was interrupted */
};

}  // namespace gpuvm

#endif
