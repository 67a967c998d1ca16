#include "tests/support/raw_http.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

namespace fixpoint::test {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<long long>(0, left.count()));
}

void parse_head(RawReply& reply) {
  reply.status = std::atoi(reply.head.substr(std::min<std::size_t>(9, reply.head.size())).c_str());
  std::size_t at = reply.head.find("\r\n") + 2;
  while (at < reply.head.size()) {
    const std::size_t end = reply.head.find("\r\n", at);
    if (end == std::string::npos || end == at) break;
    const std::string line = reply.head.substr(at, end - at);
    const std::size_t colon = std::min(line.find(':'), line.size());
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string value = line.substr(std::min(colon + 1, line.size()));
    value.erase(0, value.find_first_not_of(' '));
    reply.headers[name] = value;
    at = end + 2;
  }
}

}  // namespace

RawClient::RawClient(std::uint16_t port, int receive_buffer) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0) {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    throw std::runtime_error("cannot connect to 127.0.0.1:" + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawClient::send(std::string_view bytes) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
  while (!bytes.empty()) {
    pollfd wait{fd_, POLLOUT, 0};
    if (::poll(&wait, 1, milliseconds_until(deadline)) <= 0) return false;
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void RawClient::finish_sending() {
  ::shutdown(fd_, SHUT_WR);
}

void RawClient::reset() {
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::close(fd_);
  fd_ = -1;
}

int RawClient::fill(Clock::time_point deadline) {
  pollfd wait{fd_, POLLIN, 0};
  if (::poll(&wait, 1, milliseconds_until(deadline)) <= 0) return -1;
  std::array<char, 65536> bytes;
  const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (n <= 0) return n == 0 ? 0 : -1;
  buffer_.append(bytes.data(), static_cast<std::size_t>(n));
  return 1;
}

RawReply RawClient::read_reply(bool to_head, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  RawReply reply;
  std::size_t end = std::string::npos;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (fill(deadline) != 1) return reply;
  }
  reply.head = buffer_.substr(0, end + 4);
  buffer_.erase(0, end + 4);
  parse_head(reply);
  if (to_head || reply.status / 100 == 1 || reply.status == 204 || reply.status == 304) {
    reply.complete = true;
    return reply;
  }
  if (reply.headers.contains("transfer-encoding")) {
    for (;;) {
      std::size_t line = std::string::npos;
      while ((line = buffer_.find("\r\n")) == std::string::npos) {
        if (fill(deadline) != 1) return reply;
      }
      const std::size_t size = std::strtoul(buffer_.c_str(), nullptr, 16);
      while (buffer_.size() < line + 2 + size + 2) {
        if (fill(deadline) == 1) continue;
        reply.body += buffer_.substr(line + 2, size);
        return reply;
      }
      reply.body += buffer_.substr(line + 2, size);
      buffer_.erase(0, line + 2 + size + 2);
      if (size == 0) break;
      ++reply.chunks;
    }
    reply.complete = true;
    return reply;
  }
  if (const auto length = reply.headers.find("content-length"); length != reply.headers.end()) {
    const std::size_t size = std::stoul(length->second);
    while (buffer_.size() < size) {
      if (fill(deadline) != 1) break;
    }
    reply.complete = buffer_.size() >= size;
    reply.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return reply;
  }
  int got = 1;
  while (got == 1) got = fill(deadline);
  reply.complete = got == 0;
  reply.body = std::move(buffer_);
  buffer_.clear();
  return reply;
}

std::string RawClient::read_all(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  while (fill(deadline) == 1) {
  }
  return std::move(buffer_);
}

bool RawClient::ends_cleanly(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  int got = 1;
  while (got == 1) {
    buffer_.clear();
    got = fill(deadline);
  }
  return got == 0;
}

bool RawClient::closed_within(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, milliseconds_until(deadline)) <= 0) return false;
    std::array<char, 4096> bytes;
    if (::recv(fd_, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

RawReply raw_exchange(std::uint16_t port, std::string_view bytes) {
  RawClient client(port);
  client.send(bytes);
  return client.read_reply();
}

}  // namespace fixpoint::test
