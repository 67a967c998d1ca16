#include "gateway/http/request_parser.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/error.hpp>

namespace fixpoint {
namespace {

namespace http = boost::beast::http;

// A body grows as its bytes arrive: a Content-Length alone reserves no more than this.
constexpr std::size_t kFirstReserve = 64 * 1024;

constexpr std::array<std::string_view, 7> kMethods = {"GET",   "HEAD",   "POST",   "PUT",
                                                      "PATCH", "DELETE", "OPTIONS"};

std::optional<RequestError> bad(std::string message) {
  return RequestError{400, "invalid_http", std::move(message)};
}

// Bytes that may stand in a Host field (RFC 3986 reg-name, IP literals, port).
bool valid_host(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~%!$&'()*+;=:[]").find(c) != std::string_view::npos;
  });
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

RequestParser::RequestParser(Request& request, const RequestLimits& limits)
    : request_(request), limits_(limits) {
  eager(true);
  // The scanner has bounded the head already; Beast's own limit would cut lines only.
  header_limit(UINT32_MAX);
  body_limit(limits.body_bytes);
}

std::optional<RequestError> RequestParser::put_head(std::string_view head) {
  error_code ec;
  const std::size_t used = put(boost::asio::buffer(head.data(), head.size()), ec);
  // First: what is refused is logged with its path.
  std::optional<RequestError> wrong_target;
  if (!target_.empty()) wrong_target = check_target();
  if (ec && ec != http::error::need_more) return refuse(ec, head);
  if (!is_header_done() || used != head.size()) return bad("the header ends early");
  keep_alive_ = http::basic_parser<true>::keep_alive();
  if (auto error = check_head()) return error;
  return wrong_target;
}

std::optional<RequestError> RequestParser::put_body(std::string_view bytes, std::size_t& used) {
  error_code ec;
  used = put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  if (ec && ec != http::error::need_more) return refuse(ec, {});
  return std::nullopt;
}

RequestError RequestParser::refuse(const error_code& ec, std::string_view head) const {
  if (ec == http::error::body_limit) {
    return {
        413, "request_too_large",
        "the request body exceeds the limit of " + std::to_string(limits_.body_bytes) + " bytes"};
  }
  if (ec == http::error::bad_version) {
    const std::string_view line = head.substr(0, head.find('\r'));
    const std::size_t space = line.rfind(' ');
    if (space != std::string_view::npos && line.substr(space + 1, 5) == "HTTP/" &&
        line.substr(space + 1) != "HTTP/1.1") {
      return {505, "http_version_not_supported", "only HTTP/1.0 and HTTP/1.1 are served"};
    }
  }
  if (ec == http::error::header_limit) {
    return {400, "invalid_http",
            "a chunk's extensions or the trailer exceed the limit of " +
                std::to_string(limits_.chunk_line_bytes) + " bytes"};
  }
  if (ec == boost::system::errc::value_too_large) {
    return {431, "header_too_large",
            "the request has more than " + std::to_string(limits_.fields) + " header fields"};
  }
  return {400, "invalid_http", "the request is not valid HTTP: " + ec.message()};
}

std::optional<RequestError> RequestParser::check_head() {
  if (auto error = check_framing()) return error;
  const std::string* host = request_.headers.find("Host");
  const std::size_t hosts = request_.headers.count("Host");
  if (hosts > 1) return bad("the request has more than one Host field");
  if (hosts == 0 && !http_1_0_) return bad("the request has no Host field");
  if (host != nullptr && !valid_host(*host)) return bad("the Host field is not valid");
  if (std::find(kMethods.begin(), kMethods.end(), request_.method) == kMethods.end()) {
    return RequestError{501, "method_not_supported", "the method is not supported"};
  }
  if (const std::string* expect = request_.headers.find("Expect")) {
    if (!equal_ignoring_case(*expect, "100-continue")) {
      return RequestError{417, "expectation_failed", "the only known Expect is 100-continue"};
    }
    expects_continue_ = !http_1_0_;
  }
  return std::nullopt;
}

// RFC 9112, section 6: anything about the length that two readers could take differently is
// refused.
std::optional<RequestError> RequestParser::check_framing() const {
  const std::size_t encodings = request_.headers.count("Transfer-Encoding");
  const std::size_t lengths = request_.headers.count("Content-Length");
  if (encodings > 1) return bad("the request has more than one Transfer-Encoding field");
  if (lengths > 1) return bad("the request has more than one Content-Length field");
  if (encodings == 1) {
    if (http_1_0_) return bad("Transfer-Encoding is not allowed in HTTP/1.0");
    if (lengths != 0) return bad("the request has both Transfer-Encoding and Content-Length");
    if (!equal_ignoring_case(*request_.headers.find("Transfer-Encoding"), "chunked")) {
      return bad("the only Transfer-Encoding served is chunked");
    }
  }
  if (lengths == 1 && !all_digits(*request_.headers.find("Content-Length"))) {
    return bad("Content-Length is not a number");
  }
  return std::nullopt;
}

// Splits the target into path and query. Absolute form ("http://host/path") must be taken by every
// server (RFC 9112, 3.2.2); its authority is dropped, since routes do not depend on the host.
std::optional<RequestError> RequestParser::check_target() {
  std::string_view target = target_;
  if (target.size() > limits_.request_line_bytes) {
    return RequestError{414, "uri_too_long",
                        "the request target exceeds the limit of " +
                            std::to_string(limits_.request_line_bytes) + " bytes"};
  }
  const bool clean = std::all_of(target.begin(), target.end(), [](char c) {
    return c > ' ' && static_cast<unsigned char>(c) < 0x7f && c != '#';
  });
  if (!clean) return bad("the request target has a byte that must be percent-encoded");
  const std::size_t scheme = target.find("://");
  if (scheme != std::string_view::npos &&
      (equal_ignoring_case(target.substr(0, scheme), "http") ||
       equal_ignoring_case(target.substr(0, scheme), "https"))) {
    const std::size_t path = target.find_first_of("/?", scheme + 3);
    target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  const std::size_t question = target.find('?');
  request_.path.assign(target.substr(0, question));
  request_.query.assign(question == std::string_view::npos ? std::string_view()
                                                           : target.substr(question + 1));
  if (request_.path.empty()) request_.path.push_back('/');
  if (request_.path.front() != '/' && !(request_.path == "*" && request_.method == "OPTIONS")) {
    return bad("the request target is not a path");
  }
  return std::nullopt;
}

void RequestParser::on_request_impl(http::verb, view method, view target, int version,
                                    error_code&) {
  request_.method.assign(method.data(), method.size());
  target_.assign(target.data(), target.size());
  http_1_0_ = version == 10;
}

void RequestParser::on_field_impl(http::field, view name, view value, error_code& ec) {
  if (!in_head_) {  // a trailer field: never merged into the header
    trailer_bytes_ += name.size() + value.size();
    if (trailer_bytes_ > limits_.chunk_line_bytes) ec = http::error::header_limit;
    return;
  }
  if (request_.headers.size() >= limits_.fields) {
    ec = make_error_code(boost::system::errc::value_too_large);
    return;
  }
  request_.headers.add(std::string(name.data(), name.size()),
                       std::string(value.data(), value.size()));
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& size, error_code&) {
  const std::uint64_t known = size.get_value_or(0);
  request_.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(known, kFirstReserve)));
}

void RequestParser::on_chunk_header_impl(std::uint64_t, view extensions, error_code& ec) {
  if (extensions.size() > limits_.chunk_line_bytes) ec = http::error::header_limit;
}

std::size_t RequestParser::on_body_impl(view body, error_code&) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, view body, error_code&) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

}  // namespace fixpoint
