/* server.h: the Unix socket and the sessions behind it. */
#ifndef GPUVM_ENGINE_SERVER_H
#define GPUVM_ENGINE_SERVER_H

#include <condition_variable>
#include <mutex>

#include "engine/session.h"

namespace gpuvm {

class Server
{
public:
	explicit Server(EngineContext *context) : context_(context) {}

	/* Ends the sessions whose backends have gone; the others must have ended. */
	~Server();

	/* Binds and listens, replacing a socket that an earlier gpuvmd left. nullptr, or what failed (see errno). */
	const char *listen_at(const char *path);

	/* Accepts sessions until stop(). */
	void		serve();
	void		stop();

private:
	bool		start_session(int fd);
	void		session_ended();
	static void *session_main(void *arg);

	EngineContext *context_;
	int			listener_ = -1;
	std::mutex	mutex_;
	std::condition_variable ended_;
	int			nsessions_ = 0;
};

}  // namespace gpuvm

#endif
