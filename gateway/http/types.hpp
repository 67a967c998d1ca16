// Requests, responses and the coroutine types that every part of the gateway shares.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint {

namespace net = boost::asio;

// One concrete executor everywhere: no type erasure on the request path (facts: 40 % of
// throughput).
using Executor = net::io_context::executor_type;
template <class T>
using Task = net::awaitable<T, Executor>;

struct Header {
  std::string name;   // as received
  std::string value;  // without surrounding white space
};

// A small ordered list; names compare without case.
class Headers {
 public:
  void add(std::string name, std::string value);
  void set(std::string name, std::string value);  // replaces every field of that name
  void remove(std::string_view name);
  void clear() { fields_.clear(); }
  // The first value, or nullptr.
  const std::string* find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  std::size_t size() const { return fields_.size(); }

 private:
  std::vector<Header> fields_;
};

bool equal_ignoring_case(std::string_view a, std::string_view b);

struct Request {
  std::string method;
  std::string path;   // percent-encoding as received, without the query
  std::string query;  // without '?'
  Headers headers;    // as they stood before the body; trailers are dropped
  std::string body;
  std::string peer;  // "127.0.0.1:50000"
};
// Whoever keeps one keeps the request as it is: its connection takes another for the next.
using RequestPtr = std::shared_ptr<const Request>;

// A request that is refused before a handler sees it.
struct RequestError {
  int status = 400;
  std::string code;     // the "code" member of the JSON error
  std::string message;  // one sentence
};

struct Response {
  int status = 200;
  Headers headers;  // without framing fields (Content-Length, Transfer-Encoding, Connection, Date)
  std::string content_type = "application/json";
  std::shared_ptr<const std::string> body;  // null: empty
};

}  // namespace fixpoint
