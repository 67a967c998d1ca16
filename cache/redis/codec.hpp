// The Redis protocol (RESP2): commands to bytes, bytes to replies.
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint::redis {

struct ReplyFree {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyFree>;

inline bool is_error(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ERROR;
}
inline bool is_nil(const redisReply& reply) {
  return reply.type == REDIS_REPLY_NIL;
}
inline bool is_integer(const redisReply& reply) {
  return reply.type == REDIS_REPLY_INTEGER;
}
inline bool is_array(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ARRAY;
}
// A bulk string, a status or an error.
inline bool is_text(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS || is_error(reply);
}
// Empty unless is_text().
inline std::string_view text_of(const redisReply& reply) {
  return is_text(reply) ? std::string_view(reply.str, reply.len) : std::string_view();
}

// An error reply as an Error: overloaded (OOM), unreachable (LOADING, CLUSTERDOWN, MASTERDOWN and
// refused logins), io (READONLY, MISCONF), protocol (the rest). `what` names the command.
Error error_of(const redisReply& reply, std::string_view what);

// Appends one command with its arguments, which may hold any bytes.
void append_command(std::string& out, std::initializer_list<std::string_view> arguments);
std::string command(std::initializer_list<std::string_view> arguments);

// Splits a stream of bytes into replies. What a peer can make it keep is bounded: a reply has at
// most `max_bytes`, an array at most 65,536 elements, a line at most 64 KiB. After an error it can
// only be destroyed.
class ReplyReader {
 public:
  static constexpr std::size_t kMaxReply = std::size_t{256} << 20;

  explicit ReplyReader(std::size_t max_bytes = kMaxReply);
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // Errors: protocol.
  Result<void> feed(std::string_view bytes);
  // The next complete reply, or null: more bytes are needed. Errors: protocol.
  Result<Reply> next();

 private:
  struct Free {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  Result<void> check_rest() const;

  const std::size_t max_bytes_;
  redisReplyObjectFunctions functions_;
  std::unique_ptr<redisReader, Free> reader_;
  std::size_t unfinished_ = 0;  // bytes since the last complete reply
};

}  // namespace fixpoint::redis
