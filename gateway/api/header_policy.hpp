// Which headers cross the gateway, and which of them decide an answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

// The headers of the call to the upstream: the client's end-to-end fields, with the configuration's
// key and headers in place of the client's own where it has them. `api_key` null: the client's own
// key passes, unless it is a key of this gateway (`gateway_key`), which goes nowhere.
Headers forwarded_headers(const UpstreamConfig& upstream, const std::string* api_key,
                          const Headers& client, bool gateway_key);

// Everything among the forwarded headers, the client's and the configuration's, that may decide the
// answer or say on whose behalf it is made, as text to be hashed; empty if there is nothing.
// Whatever is not known to be harmless counts. `credentials`: the client's key is one for the
// upstream, and so says on whose behalf.
std::string deciding_headers(const UpstreamConfig& upstream, const Headers& client,
                             bool credentials);

// The client's deciding headers without its credentials, for people who read a recording: a JSON
// object of names and values. The value of a header that is not known to be public may be a secret:
// of that a few digits of its digest.
std::string shown_headers(const Headers& client);

// Response headers that a client may see. Hop-by-hop, framing, cookie and CORS fields stay behind:
// the last would open this gateway to pages that trust the upstream, not us.
Headers visible_headers(const Headers& upstream);

// x-fixpoint-dropped: the request's members that a translation left out; "..." stands for what
// exceeds 1 KiB. None: no field.
void announce_dropped(const std::vector<std::string>& members, Headers& headers);

// A request that a web page of another origin made through its visitor's browser (also by DNS
// rebinding): its Origin, or on a loopback listener its Host, is not this machine.
bool is_foreign_page(const Headers& client, bool loopback_listener);

}  // namespace fixpoint
