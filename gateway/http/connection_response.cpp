// The half of Connection that writes responses.
#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "gateway/http/connection.hpp"

namespace fixpoint {
namespace {

constexpr std::string_view kLastChunk = "0\r\n\r\n";
// The end of a chunk, and the last chunk after it.
constexpr std::string_view kCrlfLastChunk = "\r\n0\r\n\r\n";
constexpr std::string_view kCrlf = "\r\n";

net::const_buffer buffer(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

Task<Result<void>> Connection::send(const Response& response) {
  if (error_) co_return result();
  if (started_) throw std::logic_error("a response was begun twice");
  body_allowed_ = request_->method != "HEAD";
  const std::string_view body = response.body ? std::string_view(*response.body) : "";
  HeadOptions options;
  options.length = body.size();
  options.close = closing();
  options.http_1_0 = parser_ && parser_->http_1_0();
  if (response.status == 204 || response.status == 304) {
    options.framing = Framing::none;
    body_allowed_ = false;
  }
  if (options.close) keep_alive_ = false;
  render_head(head_, response, options, core_->date);
  started_ = true;
  out_ = {buffer(head_), body_allowed_ ? buffer(body) : net::const_buffer()};
  const Result<void> sent = co_await flush();
  finished_ = sent.has_value();
  co_return sent;
}

Task<Result<void>> Connection::begin(const Response& head, std::string_view bytes) {
  if (error_) co_return result();
  if (started_) throw std::logic_error("a response was begun twice");
  HeadOptions options;
  options.http_1_0 = parser_ && parser_->http_1_0();
  if (options.http_1_0) keep_alive_ = false;  // only the end of the connection ends such a body
  chunked_ = !options.http_1_0;
  body_allowed_ = request_->method != "HEAD";
  options.framing = chunked_ ? Framing::chunked : Framing::until_close;
  options.close = closing();
  if (options.close) keep_alive_ = false;
  render_head(head_, head, options, core_->date);
  started_ = true;
  out_ = {buffer(head_)};
  put_piece(bytes, kCrlf);
  const Result<void> sent = co_await flush();
  co_return sent;
}

Task<Result<void>> Connection::write(std::string_view bytes) {
  if (error_) co_return result();
  if (!started_ || finished_) throw std::logic_error("write outside of a streamed response");
  out_ = {};
  put_piece(bytes, kCrlf);
  const Result<void> sent = co_await flush();
  co_return sent;
}

Task<Result<void>> Connection::finish(std::string_view bytes) {
  if (error_) co_return result();
  if (!started_ || finished_) throw std::logic_error("finish outside of a streamed response");
  out_ = {};
  put_piece(bytes, kCrlfLastChunk);
  if (bytes.empty() && chunked_ && body_allowed_) out_[0] = buffer(kLastChunk);
  const Result<void> sent = co_await flush();
  finished_ = sent.has_value();
  co_return sent;
}

// A piece of a streamed body into out_, after what is there at its first place. `tail` ends the
// chunk.
void Connection::put_piece(std::string_view bytes, std::string_view tail) {
  if (bytes.empty() || !body_allowed_) return;
  out_[2] = buffer(bytes);
  if (!chunked_) return;
  const auto end = std::to_chars(chunk_line_.data(), chunk_line_.data() + 16, bytes.size(), 16);
  const auto line_end = std::copy(kCrlf.begin(), kCrlf.end(), end.ptr);
  const auto size = static_cast<std::size_t>(line_end - chunk_line_.data());
  out_[1] = net::const_buffer(chunk_line_.data(), size);
  out_[3] = buffer(tail);
}

// Writes out_ to its end. write_timeout starts again with each piece the client takes.
Task<Result<void>> Connection::flush() {
  error_code ec;
  if (drop_written(0)) co_return result();  // nothing to write
  std::size_t n = stream_.write_now(out_, ec);
  if (ec == net::error::would_block) ec = {};
  while (!ec && !drop_written(n)) {
    enter(Phase::writing, core_->options.write_timeout);
    n = co_await stream_.write_some(out_, ec);
    if (error_) break;
  }
  if (ec || error_) {
    set_error(ErrorCode::closed, "the client closed the connection");
    deadline_.cancel();
    co_return result();
  }
  if (phase_ == Phase::writing) enter(Phase::handling, kWatchInterval);
  co_return result();
}

// Takes what was written off out_. True: nothing is left.
bool Connection::drop_written(std::size_t bytes) {
  bool rest = false;
  for (net::const_buffer& piece : out_) {
    const std::size_t taken = std::min(bytes, piece.size());
    piece += taken;
    bytes -= taken;
    rest = rest || piece.size() > 0;
  }
  return !rest;
}

}  // namespace fixpoint
