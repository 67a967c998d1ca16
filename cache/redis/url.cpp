#include "cache/redis/url.hpp"

#include <algorithm>
#include <charconv>

namespace fixpoint::redis {
namespace {

constexpr std::size_t kMaxUrl = 2048;
constexpr std::size_t kMaxHost = 253;            // of a DNS name
constexpr std::uint32_t kMaxDatabase = 1 << 20;  // the server knows its own limit

tl::unexpected<Error> bad(std::string_view why) {
  return fail(ErrorCode::invalid, "redis url: " + std::string(why));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool valid_name(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHost &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_';
         });
}

bool valid_ipv6(std::string_view host) {
  return host.find(':') != std::string_view::npos && host.size() <= kMaxHost &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return is_hex(c) || c == ':' || c == '.'; });
}

// The whole text as a number without sign or leading zeros.
template <class Number>
bool parse_number(std::string_view text, Number& number) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  return ec == std::errc() && end == text.data() + text.size();
}

bool percent_decode(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) return false;
    unsigned value = 0;
    std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    out += static_cast<char>(value);
    i += 2;
  }
  return true;
}

Result<void> parse_login(std::string_view text, Url& url) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return bad("what stands before \"@\" is not user:password");
  if (text.find(':', colon + 1) != std::string_view::npos) {
    return bad("a \":\" in the user or password must be written %3A");
  }
  if (!percent_decode(text.substr(0, colon), url.user)) return bad("the user has a stray \"%\"");
  if (!percent_decode(text.substr(colon + 1), url.password)) {
    return bad("the password has a stray \"%\"");
  }
  if (url.password.empty()) return bad("the password is empty");
  return {};
}

Result<void> parse_address(std::string_view text, Url& url) {
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return bad("the host has an unclosed \"[\"");
    url.address.host = text.substr(1, end - 1);
    if (!valid_ipv6(url.address.host)) return bad("the host is not an IPv6 address");
    text.remove_prefix(end + 1);
    has_port = !text.empty();
    if (has_port && text[0] != ':')
      return bad("the host is followed by something else than a port");
    if (has_port) port = text.substr(1);
  } else {
    const std::size_t colon = text.find(':');
    url.address.host = text.substr(0, colon);
    if (!valid_name(url.address.host)) return bad("the host is not a name or an address");
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
  }
  if (has_port && (!parse_number(port, url.address.port) || url.address.port == 0)) {
    return bad("the port is not a number from 1 to 65535");
  }
  return {};
}

}  // namespace

std::string Address::name() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) return bad("longer than 2048 bytes");
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
    return bad("a space, a control character or a byte that must be percent-encoded");
  }
  Url url;
  if (text.starts_with("rediss://")) {
    url.tls = true;
    text.remove_prefix(9);
  } else if (text.starts_with("redis://")) {
    text.remove_prefix(8);
  } else {
    return bad("the scheme is neither redis:// nor rediss://");
  }
  if (text.find_first_of("?#") != std::string_view::npos) {
    return bad("a query or a fragment (\"?\" and \"#\" of a password are %3F and %23)");
  }
  const std::size_t slash = text.find('/');
  std::string_view authority = text.substr(0, slash);
  if (slash != std::string_view::npos) {
    const std::string_view database = text.substr(slash + 1);
    if (!database.empty() &&
        (!parse_number(database, url.database) || url.database > kMaxDatabase)) {
      return bad("the path is not the number of a database");
    }
  }
  const std::size_t at = authority.find('@');
  if (at != std::string_view::npos) {
    if (authority.find('@', at + 1) != std::string_view::npos) {
      return bad("an \"@\" in the user or password must be written %40");
    }
    if (Result<void> login = parse_login(authority.substr(0, at), url); !login) {
      return tl::make_unexpected(login.error());
    }
    authority.remove_prefix(at + 1);
  }
  if (Result<void> address = parse_address(authority, url); !address) {
    return tl::make_unexpected(address.error());
  }
  return url;
}

}  // namespace fixpoint::redis
