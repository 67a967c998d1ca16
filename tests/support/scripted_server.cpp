#include "tests/support/scripted_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace fixpoint::test {

std::string ScriptedPeer::read_request() {
  for (;;) {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t field = buffer_.find("Content-Length: ");
      const std::size_t body =
          field < end ? std::strtoul(buffer_.c_str() + field + 16, nullptr, 10) : 0;
      if (buffer_.size() >= end + 4 + body) {
        std::string request = buffer_.substr(0, end + 4 + body);
        buffer_.erase(0, request.size());
        return request;
      }
    }
    const std::string bytes = receive();
    if (bytes.empty()) return {};
    buffer_ += bytes;
  }
}

std::string ScriptedPeer::receive() {
  std::array<char, 16384> bytes;
  const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

bool ScriptedPeer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool ScriptedPeer::client_left() {
  for (;;) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, 5000) <= 0) return false;
    std::array<char, 4096> bytes;
    if (::recv(fd_, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

void ScriptedPeer::tunnel_to(std::uint16_t port) {
  const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool open = ::connect(other, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              ::send(other, buffer_.data(), buffer_.size(), MSG_NOSIGNAL) >= 0;
  buffer_.clear();
  while (open) {
    std::array<pollfd, 2> wait = {pollfd{fd_, POLLIN, 0}, pollfd{other, POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), 10'000) <= 0) break;
    for (std::size_t from = 0; open && from < 2; ++from) {
      if (wait[from].revents == 0) continue;
      std::array<char, 16384> bytes;
      const ssize_t n = ::recv(wait[from].fd, bytes.data(), bytes.size(), 0);
      const auto size = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
      open = n > 0 && ::send(wait[1 - from].fd, bytes.data(), size, MSG_NOSIGNAL) == n;
    }
  }
  ::close(other);
}

void ScriptedPeer::reset() {
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

ScriptedServer::ScriptedServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  const int current = current_;
  if (current >= 0) ::shutdown(current, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void ScriptedServer::serve() {
  while (!stopping_) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    current_ = fd;
    const auto index = static_cast<std::size_t>(connections_++);
    ScriptedPeer peer(fd);
    if (!stopping_) scripts_[std::min(index, scripts_.size() - 1)](peer);
    current_ = -1;
    ::close(fd);
  }
}

}  // namespace fixpoint::test
