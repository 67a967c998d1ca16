// Where a Redis server is and how to log in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint::redis {

struct Address {
  std::string host;  // a name or an IP address, without brackets
  std::uint16_t port = 6379;
  std::string name() const;  // "host:port", for messages
  auto operator<=>(const Address&) const = default;
};

struct Url {
  Address address;
  bool tls = false;
  std::string user;      // empty: Redis's user "default"
  std::string password;  // empty: no login
  std::uint32_t database = 0;
};

// redis://[[user]:password@]host[:port][/db] or rediss://; user and password are percent-encoded.
// Errors: invalid. A message names the part that is wrong and quotes none of it: in a malformed URL
// any part may hold the password.
Result<Url> parse_url(std::string_view text);

}  // namespace fixpoint::redis
