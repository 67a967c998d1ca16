// A server that does to each command what a test says.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cache/redis/codec.hpp"

namespace fixpoint::test {

class FakeRedis {
 public:
  using Command = std::vector<std::string>;
  class Peer {
   public:
    explicit Peer(int fd) : fd_(fd) {}
    void send(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(n));
      }
    }
    void send_string(const std::string& value) {
      send("$" + std::to_string(value.size()) + "\r\n" + value + "\r\n");
    }
    void close() { ::shutdown(fd_, SHUT_RDWR); }

   private:
    int fd_;
  };
  // Called for each command but PING, which is answered, one at a time for all connections.
  using Handler = std::function<void(Peer&, const Command&)>;

  explicit FakeRedis(Handler handler, bool answer_ping = true)
      : handler_(std::move(handler)), answer_ping_(answer_ping) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("FakeRedis cannot listen");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~FakeRedis() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (Session& session : sessions_) {
      ::shutdown(session.fd, SHUT_RDWR);
      session.thread.join();
      ::close(session.fd);
    }
  }
  FakeRedis(const FakeRedis&) = delete;
  FakeRedis& operator=(const FakeRedis&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }
  // First words of all commands so far, but of PING.
  std::vector<std::string> commands() const {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

 private:
  struct Session {
    int fd;
    std::thread thread;
  };

  void accept_all() {
    for (;;) {
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      ++connections_;
      sessions_.push_back({fd, std::thread([this, fd] { serve(fd); })});
    }
  }

  void serve(int fd) {
    redis::ReplyReader reader;  // commands look like replies
    std::vector<char> buffer(64 * 1024);
    for (;;) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (n <= 0 || !reader.feed({buffer.data(), static_cast<std::size_t>(n)})) return;
      for (;;) {
        const Result<redis::Reply> reply = reader.next();
        if (!reply) return;
        if (!*reply) break;
        Command command;
        for (std::size_t i = 0; i < (*reply)->elements; ++i) {
          command.emplace_back(redis::text_of(*(*reply)->element[i]));
        }
        Peer peer(fd);
        const std::lock_guard lock(mutex_);
        if (command.at(0) == "PING" && answer_ping_) {
          peer.send("+PONG\r\n");
          continue;
        }
        commands_.push_back(command[0]);
        handler_(peer, command);
      }
    }
  }

  const Handler handler_;
  const bool answer_ping_;
  mutable std::mutex mutex_;
  std::vector<std::string> commands_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_ = 0;
  std::list<Session> sessions_;  // of the accepting thread, until it ends
  std::thread thread_;
};

}  // namespace fixpoint::test
