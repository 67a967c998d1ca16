// A real redis-server of the test's own, on a port of its own, in a temporary folder.
#pragma once

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/redis/codec.hpp"
#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::test {

// Nobody listens there at the moment.
inline std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

class RedisServer {
 public:
  // `arguments` as on the command line of redis-server, in addition to what keeps it to itself.
  explicit RedisServer(std::vector<std::string> arguments = {}, std::string password = "")
      : arguments_(std::move(arguments)), password_(std::move(password)) {
    start();
  }
  ~RedisServer() { kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void pause() { ::kill(pid_, SIGSTOP); }
  void resume() { ::kill(pid_, SIGCONT); }

  // After kill(); on the same port, with nothing in it.
  void start() {
    if (port_ != 0) {
      if (!try_start()) throw std::runtime_error("redis-server does not start again");
      return;
    }
    for (int attempt = 0; attempt < 5; ++attempt) {
      port_ = free_port();
      if (try_start()) return;
    }
    throw std::runtime_error("redis-server does not start");
  }

  // One command on a connection of its own. Null: no answer.
  redis::Reply call(const std::vector<std::string>& command) const {
    const timeval patience{2, 0};
    const std::unique_ptr<redisContext, void (*)(redisContext*)> context(
        redisConnectWithTimeout("127.0.0.1", port_, patience), redisFree);
    if (!context || context->err != 0) return nullptr;
    redisSetTimeout(context.get(), patience);
    if (!password_.empty() && !run(context.get(), {"AUTH", password_})) return nullptr;
    return run(context.get(), command);
  }
  std::string text(const std::vector<std::string>& command) const {
    const redis::Reply reply = call(command);
    return reply ? std::string(redis::text_of(*reply)) : "no answer";
  }

 private:
  static redis::Reply run(redisContext* context, const std::vector<std::string>& command) {
    std::vector<const char*> values;
    std::vector<std::size_t> sizes;
    for (const std::string& each : command) {
      values.push_back(each.data());
      sizes.push_back(each.size());
    }
    return redis::Reply(static_cast<redisReply*>(
        redisCommandArgv(context, static_cast<int>(values.size()), values.data(), sizes.data())));
  }

  bool try_start() {
    std::vector<std::string> all = {
        "redis-server", "--bind",    "127.0.0.1",    "--port",      std::to_string(port_),
        "--save",       "",          "--appendonly", "no",          "--dir",
        folder_.path(), "--logfile", "server.log",   "--daemonize", "no"};
    all.insert(all.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (std::string& each : all) argv.push_back(each.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    for (int i = 0; i < 1000; ++i) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      const redis::Reply pong = call({"PING"});
      if (pong && !redis::text_of(*pong).starts_with("LOADING")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill();
    return false;
  }

  TemporaryFolder folder_;
  const std::vector<std::string> arguments_;
  const std::string password_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace fixpoint::test
