#include <algorithm>
#include <charconv>

#include "gateway/upstream/client.hpp"

namespace fixpoint {
namespace {

bool valid_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_';
  });
}

bool valid_ipv6(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
           c == '.';
  });
}

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid, "base_url \"" + std::string(text) + "\" " + std::string(why));
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  Url url;
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return bad(text, "has no scheme; http or https is needed");
  if (equal_ignoring_case(text.substr(0, scheme), "http")) {
    url.scheme = "http";
    url.port = 80;
  } else if (equal_ignoring_case(text.substr(0, scheme), "https")) {
    url.scheme = "https";
    url.port = 443;
  } else {
    return bad(text, "has a scheme other than http and https");
  }
  const std::string_view rest = text.substr(scheme + 3);
  if (rest.find('?') != std::string_view::npos) return bad(text, "has a query");
  if (rest.find('#') != std::string_view::npos) return bad(text, "has a fragment");
  const std::size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return fail(ErrorCode::invalid,
                "base_url has user info; keys belong in the upstream's api_key");
  }
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return bad(text, "has an unclosed bracket");
    url.host.assign(authority.substr(1, end - 1));
    if (!valid_ipv6(url.host)) return bad(text, "has an invalid IPv6 address");
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') return bad(text, "has an invalid host");
    has_port = !authority.empty();
    if (has_port) port = authority.substr(1);
  } else {
    const std::size_t colon = authority.find(':');
    url.host.assign(authority.substr(0, colon));
    if (!valid_host(url.host)) return bad(text, "has an invalid host");
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
  }
  if (has_port) {
    const auto parsed = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() || url.port == 0) {
      return bad(text, "has an invalid port");
    }
  }
  if (slash != std::string_view::npos) url.path.assign(rest.substr(slash));
  while (url.path.ends_with('/')) url.path.pop_back();
  const bool clean = std::all_of(url.path.begin(), url.path.end(), [](char c) {
    return c > ' ' && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!clean) return bad(text, "has a path with a byte that must be percent-encoded");
  return url;
}

}  // namespace fixpoint
