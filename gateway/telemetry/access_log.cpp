#include "gateway/telemetry/access_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "gateway/log.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint {
namespace {

// Appends members to one line, in either form. Names are constants of this file.
class Line {
 public:
  Line(LogFormat format, std::string_view time) : json_(format == LogFormat::json) {
    out_.reserve(512);
    if (json_) {
      out_.append("{\"time\":\"").append(time);
      out_.append("\",\"level\":\"info\",\"event\":\"request\"");
    } else {
      out_.append(time).append(" info request");
    }
  }

  void text(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    begin(name);
    // In text form a value that could be taken for the next field stands in quotes.
    if (!json_ && std::all_of(value.begin(), value.end(), is_plain)) {
      out_ += value;
    } else {
      append_json_string(out_, value);
    }
  }

  void number(std::string_view name, std::int64_t value) {
    if (value < 0) return;
    begin(name);
    append(value);
  }

  void milliseconds(std::string_view name, std::chrono::nanoseconds time) {
    if (time.count() < 0) return;
    begin(name);
    const std::int64_t microseconds = time.count() / 1000;
    append(microseconds / 1000);
    const auto rest = static_cast<int>(microseconds % 1000);
    out_ += '.';
    for (const int digit : {rest / 100, rest / 10 % 10, rest % 10}) {
      out_ += static_cast<char>('0' + digit);
    }
  }

  void dollars(std::string_view name, double value) {
    std::array<char, 32> buffer;
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed,
                      9);  // a token of the cheapest models costs about 1e-8
    if (!std::isfinite(value) || value < 0 || end.ec != std::errc()) return;
    begin(name);
    out_.append(buffer.data(), end.ptr);
  }

  std::string finish() {
    if (json_) out_ += '}';
    return std::move(out_);
  }

 private:
  static bool is_plain(char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '='; }

  void begin(std::string_view name) {
    if (json_) {
      out_.append(",\"").append(name).append("\":");
    } else {
      out_.append(" ").append(name).append("=");
    }
  }

  void append(std::int64_t value) {
    std::array<char, 24> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    out_.append(buffer.data(), end);
  }

  const bool json_;
  std::string out_;
};

std::int64_t bounded(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}

}  // namespace

std::string access_line(const AccessRecord& record, LogFormat format, std::string_view time) {
  Line line(format, time);
  line.text("id", record.id);
  line.text("upstream_request_id", record.upstream_request_id);
  line.text("generation", record.generation);
  line.text("peer", record.peer);
  line.text("tenant", record.tenant);
  line.text("method", record.method);
  line.text("path", record.path);
  line.text("endpoint", record.endpoint);
  line.text("model", record.model);
  line.text("upstream", record.upstream);
  line.number("status", record.status);
  line.milliseconds("ms", record.duration);
  line.milliseconds("first_byte_ms", record.first_byte);
  line.number("bytes_in", bounded(record.bytes_in));
  line.number("bytes_out", bounded(record.bytes_out));
  line.text("cache", record.cache);
  line.number("attempts", record.attempts);
  line.number("prompt_tokens", record.prompt_tokens);
  line.number("completion_tokens", record.completion_tokens);
  line.dollars("cost", record.cost);
  line.text("trace", record.trace_id);
  return line.finish();
}

void log_access(const AccessRecord& record) {
  if (!log_enabled(LogLevel::info)) return;
  // What clients choose could repeat a secret of the configuration.
  const std::string path = without_secrets(record.path), model = without_secrets(record.model);
  AccessRecord shown = record;
  shown.path = path;
  shown.model = model;
  log_soon(access_line(shown, log_format(), log_time()));
}

}  // namespace fixpoint
