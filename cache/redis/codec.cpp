#include "cache/redis/codec.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <vector>

namespace fixpoint::redis {
namespace {

constexpr int kMaxElements = 65'536;
constexpr std::size_t kMaxLine = 64 * 1024;
constexpr std::size_t kMaxMessage = 200;  // of a server's error text in ours

tl::unexpected<Error> broken(std::string_view why) {
  return fail(ErrorCode::protocol, "a reply of Redis " + std::string(why));
}

// hiredis's own constructor of arrays, which allocates at once whatever the header claims.
void* (*const create_array)(const redisReadTask*, int) = [] {
  const std::unique_ptr<redisReader, void (*)(redisReader*)> reader(redisReaderCreate(),
                                                                    redisReaderFree);
  if (!reader) throw std::bad_alloc();
  return reader->fn->createArray;
}();

void* create_bounded_array(const redisReadTask* task, int elements) {
  return elements <= kMaxElements ? create_array(task, elements) : nullptr;
}

}  // namespace

Error error_of(const redisReply& reply, std::string_view what) {
  const std::string_view text = text_of(reply);
  const std::string_view kind = text.substr(0, text.find(' '));
  ErrorCode code = ErrorCode::protocol;
  if (kind == "OOM") code = ErrorCode::overloaded;
  if (kind == "READONLY" || kind == "MISCONF" || kind == "NOREPLICAS") code = ErrorCode::io;
  for (const char* unreachable :
       {"LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "NOAUTH", "WRONGPASS", "NOPERM"}) {
    if (kind == unreachable) code = ErrorCode::unreachable;
  }
  std::string message = "Redis refuses " + std::string(what) + ": ";
  for (const char c : text.substr(0, kMaxMessage)) message += c >= ' ' && c < 0x7f ? c : '?';
  return {code, std::move(message)};
}

void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
  std::vector<const char*> values;
  std::vector<std::size_t> sizes;
  values.reserve(arguments.size());
  sizes.reserve(arguments.size());
  for (const std::string_view argument : arguments) {
    values.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  char* bytes = nullptr;
  const int size =
      redisFormatCommandArgv(&bytes, static_cast<int>(values.size()), values.data(), sizes.data());
  if (size < 0) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(char*)> owner(bytes, redisFreeCommand);
  out.append(bytes, static_cast<std::size_t>(size));
}

std::string command(std::initializer_list<std::string_view> arguments) {
  std::string out;
  append_command(out, arguments);
  return out;
}

ReplyReader::ReplyReader(std::size_t max_bytes)
    : max_bytes_(max_bytes), reader_(redisReaderCreate()) {
  if (!reader_) throw std::bad_alloc();
  functions_ = *reader_->fn;
  functions_.createArray = create_bounded_array;
  reader_->fn = &functions_;
}

Result<void> ReplyReader::feed(std::string_view bytes) {
  unfinished_ += bytes.size();
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    return broken(std::string("cannot be read: ") + reader_->errstr);
  }
  return {};
}

Result<Reply> ReplyReader::next() {
  void* raw = nullptr;
  if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
    if (reader_->err == REDIS_ERR_OOM) {
      return broken("has an array of more than 65536 elements, or memory ran out");
    }
    return broken(std::string("cannot be read: ") + reader_->errstr);
  }
  if (raw != nullptr) {
    unfinished_ = reader_->len - reader_->pos;
    return Reply(static_cast<redisReply*>(raw));
  }
  if (Result<void> rest = check_rest(); !rest) return tl::make_unexpected(rest.error());
  return Reply();
}

// hiredis waits for the end of whatever a peer began, however long that would get, and searches a
// line from its start again with every piece.
Result<void> ReplyReader::check_rest() const {
  const std::string limit = "is longer than " + std::to_string(max_bytes_) + " bytes";
  if (unfinished_ > max_bytes_) return broken(limit);
  if (reader_->ridx < 0) return {};
  const std::string_view rest(reader_->buf + reader_->pos, reader_->len - reader_->pos);
  if (reader_->rstack[reader_->ridx].type != REDIS_REPLY_STRING) {
    if (rest.size() > kMaxLine) return broken("has a line longer than 64 KiB");
    return {};
  }
  constexpr std::size_t kMaxLength = 24;  // more than the digits of 2^64
  const std::string_view head = rest.substr(0, kMaxLength);
  const std::size_t end = head.find('\r');
  if (end == std::string_view::npos) {
    if (rest.size() > kMaxLength) return broken("has a string without a length");
    return {};
  }
  std::uint64_t length = 0;
  const auto parsed = std::from_chars(head.data(), head.data() + end, length);
  if (parsed.ec == std::errc::result_out_of_range || length > max_bytes_) return broken(limit);
  return {};
}

}  // namespace fixpoint::redis
