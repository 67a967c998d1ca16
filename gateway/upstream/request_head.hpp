// Writes the head of a request to an upstream.
#pragma once

#include <string>

#include "gateway/upstream/client.hpp"

namespace fixpoint {

// What all requests of one upstream share.
struct RequestTarget {
  std::string prefix;     // of the request line's target: the base URL's path, or its absolute form
  bool has_path = false;  // the prefix ends in a path
  std::string host;       // value of Host
  std::string proxy_authorization;  // secret; empty: none
};
// The parts of `url` that requests need, through `proxy` if it is not null.
RequestTarget request_target(const Url& url, const Proxy* proxy);
// The request for a tunnel through the proxy, complete.
std::string connect_head(const Url& url, const Proxy& proxy);

// Request line, fields and the empty line. Fields that the client writes itself (Host, framing,
// hop-by-hop, Accept-Encoding, Expect) are left out. Errors: invalid, for what would break the head
// apart.
Result<std::string> render_request_head(const UpstreamRequest& request,
                                        const RequestTarget& target);

}  // namespace fixpoint
