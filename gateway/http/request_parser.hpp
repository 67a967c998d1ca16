// HTTP/1.1 requests: Beast's parser with the checks that a proxy needs on top of it.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/http/types.hpp"

namespace fixpoint {

struct RequestLimits {
  std::size_t body_bytes = 16u << 20;
  std::size_t fields = 100;
  std::size_t request_line_bytes = 8 * 1024;
  std::size_t chunk_line_bytes = 16 * 1024;  // a chunk's size and extensions; the whole trailer
};

// Parses one request into `request`; single use, as Beast's parsers are. The head must be handed
// over complete (HeadScanner), the body in any pieces. Trailer fields are checked for syntax and
// dropped.
class RequestParser : private boost::beast::http::basic_parser<true> {
 public:
  RequestParser(Request& request, const RequestLimits& limits);

  // `head` ends with its blank line.
  std::optional<RequestError> put_head(std::string_view head);
  // Takes bytes of the body and sets `used`. Bytes that are not used must be offered again with
  // more.
  std::optional<RequestError> put_body(std::string_view bytes, std::size_t& used);

  bool done() const { return is_done(); }
  bool keep_alive() const { return keep_alive_; }
  bool http_1_0() const { return http_1_0_; }
  bool expects_continue() const { return expects_continue_; }

 private:
  using error_code = boost::system::error_code;
  using view = boost::beast::string_view;

  std::optional<RequestError> check_head();
  std::optional<RequestError> check_target();
  std::optional<RequestError> check_framing() const;
  RequestError refuse(const error_code& ec, std::string_view head) const;

  void on_request_impl(boost::beast::http::verb, view method, view target, int version,
                       error_code& ec) override;
  void on_response_impl(int, view, int, error_code&) override {}
  void on_field_impl(boost::beast::http::field, view name, view value, error_code& ec) override;
  void on_header_impl(error_code&) override { in_head_ = false; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& size, error_code&) override;
  std::size_t on_body_impl(view body, error_code&) override;
  void on_chunk_header_impl(std::uint64_t, view extensions, error_code& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t, view body, error_code&) override;
  void on_finish_impl(error_code&) override {}

  Request& request_;
  const RequestLimits& limits_;
  std::string target_;
  std::size_t trailer_bytes_ = 0;
  bool in_head_ = true;
  bool keep_alive_ = false;
  bool http_1_0_ = false;
  bool expects_continue_ = false;
};

}  // namespace fixpoint
