// HTTP/1.1 responses: Beast's parser with the checks that a proxy needs on top of it.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/http/types.hpp"

namespace fixpoint {

// A chunk's size line with extensions, or all trailer fields of a response.
inline constexpr std::size_t kMaxChunkLine = 16 * 1024;

// Whether a field concerns one connection only and is never forwarded (RFC 9110, 7.6.1), apart from
// those that a Connection field names.
bool is_hop_by_hop(std::string_view name);

// Parses one response; single use. The head must be handed over complete (HeadScanner), the body in
// any pieces. Trailer fields are checked for syntax and dropped.
class ResponseParser : private boost::beast::http::basic_parser<false> {
 public:
  // `no_body`: the answer to a HEAD request. Beyond `body_limit` bytes of body: invalid.
  ResponseParser(Headers& headers, bool no_body, std::size_t body_limit);

  // Errors: protocol, invalid.
  Result<void> put_head(std::string_view head);
  // Appends what it decodes to `body` and returns the bytes used; those not used must be offered
  // again with more. Errors: protocol, invalid.
  Result<std::size_t> put_body(std::string_view bytes, std::string& body);
  // The peer closed its side properly. Errors: closed, unless only that ends the body.
  Result<void> put_end();

  int status() const { return status_; }
  bool done() const { return is_done(); }
  bool keep_alive() const { return keep_alive_; }

 private:
  using error_code = boost::system::error_code;
  using view = boost::beast::string_view;

  Result<void> check_head();
  void remove_hop_by_hop();
  Result<void> translate(const error_code& ec) const;

  void on_request_impl(boost::beast::http::verb, view, view, int, error_code&) override {}
  void on_response_impl(int code, view reason, int version, error_code&) override;
  void on_field_impl(boost::beast::http::field, view name, view value, error_code& ec) override;
  void on_header_impl(error_code&) override { in_head_ = false; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(view body, error_code&) override;
  void on_chunk_header_impl(std::uint64_t, view extensions, error_code& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t, view body, error_code&) override;
  void on_finish_impl(error_code&) override {}

  Headers& headers_;
  std::string* body_ = nullptr;
  const std::size_t body_limit_;
  std::size_t trailer_bytes_ = 0;
  int status_ = 0;
  bool in_head_ = true;
  bool http_1_0_ = false;
  bool keep_alive_ = false;
};

}  // namespace fixpoint
