#include "gateway/upstream/response_parser.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/error.hpp>
#include <vector>

namespace fixpoint {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kMaxFields = 256;

constexpr std::array<std::string_view, 9> kHopByHop = {
    "Connection", "Keep-Alive", "Proxy-Connection",  "Proxy-Authenticate",
    "TE",         "Trailer",    "Transfer-Encoding", "Proxy-Authorization",
    "Upgrade"};

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::protocol, "the upstream's response " + std::move(message));
}

}  // namespace

bool is_hop_by_hop(std::string_view name) {
  return std::any_of(kHopByHop.begin(), kHopByHop.end(),
                     [name](std::string_view known) { return equal_ignoring_case(name, known); });
}

ResponseParser::ResponseParser(Headers& headers, bool no_body, std::size_t limit)
    : headers_(headers), body_limit_(limit) {
  eager(true);
  header_limit(UINT32_MAX);  // the scanner has bounded the head already
  body_limit(limit);
  skip(no_body);
}

Result<void> ResponseParser::put_head(std::string_view head) {
  error_code ec;
  const std::size_t used = put(boost::asio::buffer(head.data(), head.size()), ec);
  if (ec && ec != http::error::need_more) return translate(ec);
  if (!is_header_done() || used != head.size()) return bad("has a header that ends early");
  keep_alive_ = http::basic_parser<false>::keep_alive();
  return check_head();
}

Result<std::size_t> ResponseParser::put_body(std::string_view bytes, std::string& body) {
  error_code ec;
  body_ = &body;
  const std::size_t used = put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  body_ = nullptr;
  if (ec && ec != http::error::need_more) return tl::make_unexpected(translate(ec).error());
  return used;
}

Result<void> ResponseParser::put_end() {
  error_code ec;
  put_eof(ec);
  if (ec) return fail(ErrorCode::closed, "the upstream closed before the end of its response");
  return {};
}

Result<void> ResponseParser::translate(const error_code& ec) const {
  if (ec == http::error::body_limit) {
    return fail(ErrorCode::invalid,
                "the upstream's response exceeds upstreams[].max_response_bytes of " +
                    std::to_string(body_limit_));
  }
  if (ec == boost::system::errc::value_too_large) {
    return bad("has more than " + std::to_string(kMaxFields) + " header fields");
  }
  return bad("is not valid HTTP: " + ec.message());
}

// What Beast would read in one way and another reader in another way is refused (RFC 9112, 6.3).
Result<void> ResponseParser::check_head() {
  if (status_ < 100 || status_ > 599) return bad("has status " + std::to_string(status_));
  const std::size_t encodings = headers_.count("Transfer-Encoding");
  const std::size_t lengths = headers_.count("Content-Length");
  if (encodings > 1) return bad("has more than one Transfer-Encoding field");
  if (lengths > 1) return bad("has more than one Content-Length field");
  if (encodings == 1) {
    if (http_1_0_) return bad("has Transfer-Encoding in HTTP/1.0");
    if (lengths == 1) return bad("has both Transfer-Encoding and Content-Length");
    if (!equal_ignoring_case(*headers_.find("Transfer-Encoding"), "chunked")) {
      return bad("has a Transfer-Encoding other than chunked");
    }
  }
  if (lengths == 1) {
    const std::string& length = *headers_.find("Content-Length");
    if (length.find_first_not_of("0123456789") != std::string::npos || length.empty()) {
      return bad("has a Content-Length that is not a number");
    }
  }
  // An error says enough by its status, also if nobody can read its body.
  const std::string* encoding = status_ < 400 ? headers_.find("Content-Encoding") : nullptr;
  if (encoding != nullptr && !encoding->empty() && !equal_ignoring_case(*encoding, "identity")) {
    return bad("has Content-Encoding \"" + *encoding + "\" although identity was asked for");
  }
  remove_hop_by_hop();
  return {};
}

void ResponseParser::remove_hop_by_hop() {
  std::vector<std::string> named;  // by Connection
  for (const Header& header : headers_) {
    if (!equal_ignoring_case(header.name, "Connection")) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view name = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
      while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
      named.emplace_back(name);
    }
  }
  for (const std::string_view name : kHopByHop) headers_.remove(name);
  for (const std::string& name : named) headers_.remove(name);
}

void ResponseParser::on_response_impl(int code, view, int version, error_code&) {
  status_ = code;
  http_1_0_ = version == 10;
}

void ResponseParser::on_field_impl(http::field, view name, view value, error_code& ec) {
  if (!in_head_) {  // a trailer field: never merged into the header
    trailer_bytes_ += name.size() + value.size();
    if (trailer_bytes_ > kMaxChunkLine) ec = http::error::header_limit;
    return;
  }
  if (headers_.size() >= kMaxFields) {
    ec = make_error_code(boost::system::errc::value_too_large);
    return;
  }
  headers_.add(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
}

void ResponseParser::on_chunk_header_impl(std::uint64_t, view extensions, error_code& ec) {
  if (extensions.size() > kMaxChunkLine) ec = http::error::header_limit;
}

std::size_t ResponseParser::on_body_impl(view body, error_code&) {
  body_->append(body.data(), body.size());
  return body.size();
}

std::size_t ResponseParser::on_chunk_body_impl(std::uint64_t, view body, error_code&) {
  body_->append(body.data(), body.size());
  return body.size();
}

}  // namespace fixpoint
