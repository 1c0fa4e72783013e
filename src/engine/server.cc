/* server.cc: accepting sessions, each served by a thread of its own. */
#include "engine/server.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "engine/blame.h"
#include "engine/log.h"

namespace gpuvm {

constexpr size_t SESSION_STACK = 1024 * 1024;
constexpr useconds_t ACCEPT_RETRY_US = 10000;

namespace {

struct SessionArg
{
	Server	   *server;
	int			fd;
};

}  // namespace

static bool
same_user(int fd)
{
	struct ucred peer;
	socklen_t	len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

const char *
Server::listen_at(const char *path)
{
	struct sockaddr_un address;
	mode_t		mask;
	int			rc;

	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(address.sun_path))
		return "the socket's path is too long";
	strcpy(address.sun_path, path);

	listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener_ < 0)
		return "socket";
	(void) unlink(path);
	mask = umask(0177);
	rc = bind(listener_, reinterpret_cast<struct sockaddr *>(&address), sizeof(address));
	(void) umask(mask);
	if (rc != 0)
		return "bind";
	if (listen(listener_, SESSION_BACKLOG) != 0)
		return "listen";
	return nullptr;
}

void
Server::session_ended()
{
	std::lock_guard<std::mutex> lock(mutex_);

	nsessions_--;
	ended_.notify_all();
}

void *
Server::session_main(void *arg)
{
	SessionArg	session = *static_cast<SessionArg *>(arg);
	CrashStack	stack;

	delete static_cast<SessionArg *>(arg);
	serve_session(session.server->context_, session.fd);
	close(session.fd);
	session.server->session_ended();
	return nullptr;
}

bool
Server::start_session(int fd)
{
	pthread_attr_t attr;
	pthread_t	thread;
	bool		started;

	{
		std::lock_guard<std::mutex> lock(mutex_);

		if (nsessions_ >= MAX_SESSIONS)
			return false;
		nsessions_++;
	}
	SessionArg *arg = new SessionArg{this, fd};

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SESSION_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attr, session_main, arg) == 0;
	pthread_attr_destroy(&attr);
	if (!started)
	{
		delete arg;
		session_ended();
	}
	return started;
}

void
Server::serve()
{
	for (;;)
	{
		int			fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);

		if (fd < 0)
		{
			if (errno == EINVAL)	/* stop() */
				return;
			if (errno != EINTR && errno != ECONNABORTED)
				usleep(ACCEPT_RETRY_US);	/* out of descriptors, say */
			continue;
		}
		if (!same_user(fd))
		{
			log_line("refused a connection of another user");
			close(fd);
		}
		else if (!start_session(fd))
		{
			log_line("refused a session: there are too many");
			close(fd);
		}
	}
}

void
Server::stop()
{
	(void) shutdown(listener_, SHUT_RDWR);
}

Server::~Server()
{
	std::unique_lock<std::mutex> lock(mutex_);

	ended_.wait(lock, [this] { return nsessions_ == 0; });
	if (listener_ >= 0)
		close(listener_);
}

}  // namespace gpuvm
