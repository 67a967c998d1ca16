#include "gateway/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

#include "gateway/safe_text.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kShortestSecret = 8;  // bytes
// How long a queued line may wait for others to be written with it.
constexpr std::chrono::milliseconds kGather{5};

// A slow or closed output loses the rest: the log is no reason to stop serving.
void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Owns the output. Two locks, so that a thread that queues never waits for one that writes:
// output_ is held while writing, queue_ only to move bytes; output_ is taken first.
class Output {
 public:
  ~Output() {
    {
      const std::lock_guard lock(queue_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (writer_.joinable()) writer_.join();
    flush();
  }

  void write_now(std::string_view line) {
    const std::lock_guard lock(output_);
    write_queued();
    write_all(line);
  }

  void queue(std::string_view line) {
    bool wake = false;
    {
      const std::lock_guard lock(queue_);
      if (pending_.size() + line.size() > kMaxLogQueueBytes) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      wake = pending_.empty();
      pending_.append(line).append("\n");
      if (!writer_.joinable() && !stopping_) writer_ = std::thread([this] { run(); });
    }
    if (wake) wake_.notify_one();
  }

  void flush() {
    const std::lock_guard lock(output_);
    write_queued();
  }

  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void run() {
    while (true) {
      {
        std::unique_lock lock(queue_);
        wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
        // One wake-up and one write for all lines of the next milliseconds.
        if (wake_.wait_for(lock, kGather, [this] { return stopping_; })) return;
      }
      flush();
    }
  }

  // Called with output_ held.
  void write_queued() {
    {
      const std::lock_guard lock(queue_);
      writing_.swap(pending_);
    }
    write_all(writing_);
    writing_.clear();
  }

  std::mutex output_, queue_;
  std::string pending_, writing_;  // of queue_, of output_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread writer_;  // started by the first line that is queued
  std::atomic<std::uint64_t> dropped_{0};
};

struct Log {
  std::atomic<LogLevel> level{LogLevel::info};
  std::atomic<LogFormat> format{LogFormat::text};
  std::mutex mutex;  // of secrets
  std::vector<std::string> secrets;
  Output output;
};

Log& instance() {
  static Log log;
  return log;
}

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 3)) {
    text.replace(at, what.size(), "***");
  }
}

}  // namespace

void init_log(LogLevel level, std::vector<std::string> secrets, LogFormat format) {
  Log& log = instance();
  std::erase_if(secrets, [](const std::string& s) { return s.size() < kShortestSecret; });
  const std::lock_guard lock(log.mutex);
  log.level.store(level, std::memory_order_relaxed);
  log.format.store(format, std::memory_order_relaxed);
  log.secrets = std::move(secrets);
}

bool log_enabled(LogLevel level) {
  return level != LogLevel::off && level <= instance().level.load(std::memory_order_relaxed);
}

LogFormat log_format() {
  return instance().format.load(std::memory_order_relaxed);
}

std::string without_secrets(std::string_view text) {
  Log& log = instance();
  std::string shown(text);
  const std::lock_guard lock(log.mutex);
  for (const std::string& secret : log.secrets) replace_all(shown, secret);
  return shown;
}

void log_line(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  Log& log = instance();
  const std::string text = without_secrets(message);
  std::string line;
  if (log_format() == LogFormat::json) {
    line.append("{\"time\":\"").append(log_time()).append("\",\"level\":\"");
    line.append(to_string(level)).append("\",\"message\":");
    append_json_string(line, text);
    line.append("}\n");
  } else {
    line.append(log_time()).append(" ").append(to_string(level)).append(" ");
    line.append(safe_text(text)).append("\n");
  }
  log.output.write_now(line);
}

void log_soon(std::string_view line) {
  instance().output.queue(line);
}

std::uint64_t dropped_log_lines() {
  return instance().output.dropped();
}

void flush_log() {
  instance().output.flush();
}

std::string log_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t second = ms / 1000;
  // Lines come in bursts: the text of the second is made once.
  thread_local std::time_t last = -1;
  thread_local char text[sizeof "2026-11-29T21:00:00"];
  if (second != last) {
    std::tm parts{};
    ::gmtime_r(&second, &parts);
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    last = second;
  }
  std::string out(text);
  const auto rest = static_cast<int>(ms % 1000);
  out += '.';
  for (const int digit : {rest / 100, rest / 10 % 10, rest % 10}) {
    out += static_cast<char>('0' + digit);
  }
  out += 'Z';
  return out;
}

}  // namespace fixpoint
