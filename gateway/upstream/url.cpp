#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <optional>

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

// Splits "host[:port]" and checks both. Without a port `port` stays as it is. Returns what is
// wrong, or "".
std::string_view split_authority(std::string_view authority, std::string& host,
                                 std::uint16_t& port) {
  std::string_view digits;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return "has an unclosed bracket";
    host.assign(authority.substr(1, end - 1));
    if (!valid_ipv6(host)) return "has an invalid IPv6 address";
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') return "has an invalid host";
    has_port = !authority.empty();
    if (has_port) digits = authority.substr(1);
  } else {
    const std::size_t colon = authority.find(':');
    host.assign(authority.substr(0, colon));
    if (!valid_host(host)) return "has an invalid host";
    has_port = colon != std::string_view::npos;
    if (has_port) digits = authority.substr(colon + 1);
  }
  if (!has_port) return {};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  return whole && port != 0 ? "" : "has an invalid port";
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto parsed = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (parsed.ptr != text.data() + i + 3) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

std::string base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL writes a NUL, too
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
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
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return fail(ErrorCode::invalid,
                "base_url has user info; keys belong in the upstream's api_key");
  }
  const std::string_view wrong = split_authority(authority, url.host, url.port);
  if (!wrong.empty()) return bad(text, wrong);
  if (slash != std::string_view::npos) url.path.assign(rest.substr(slash));
  while (url.path.ends_with('/')) url.path.pop_back();
  const bool clean = std::all_of(url.path.begin(), url.path.end(), [](char c) {
    return c > ' ' && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!clean) return bad(text, "has a path with a byte that must be percent-encoded");
  return url;
}

std::string Url::authority() const {
  return host_and_port(host, port, scheme == "https" ? 443 : 80);
}

std::string host_and_port(const std::string& host, std::uint16_t port, std::uint16_t standard) {
  std::string text = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  if (port != standard) text += ":" + std::to_string(port);
  return text;
}

Result<Proxy> parse_proxy(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  // The text may hold a password, so no message repeats it.
  if (!equal_ignoring_case(text.substr(0, kScheme.size()), kScheme)) {
    return fail(ErrorCode::invalid, "proxy must begin with http://");
  }
  std::string_view rest = text.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  Proxy proxy;
  const std::size_t at = rest.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    const std::size_t colon = user.find(':');
    const auto name = percent_decode(user.substr(0, colon));
    const auto password = percent_decode(colon == std::string_view::npos ? std::string_view()
                                                                         : user.substr(colon + 1));
    // RFC 7617: the name ends at the first colon, and control characters are not allowed.
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (!name || !password || name->find(':') != std::string::npos ||
        std::any_of(name->begin(), name->end(), is_control) ||
        std::any_of(password->begin(), password->end(), is_control)) {
      return fail(ErrorCode::invalid, "proxy has user info that is not valid");
    }
    proxy.authorization = "Basic " + base64(*name + ":" + *password);
  }
  proxy.port = 80;
  const std::string_view wrong = split_authority(rest, proxy.host, proxy.port);
  if (!wrong.empty()) return fail(ErrorCode::invalid, "proxy " + std::string(wrong));
  return proxy;
}

}  // namespace fixpoint
