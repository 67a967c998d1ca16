#include "gateway/log.hpp"

#include <unistd.h>

#include <algorithm>
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
// How long a flush waits for an output that takes nothing.
constexpr std::chrono::milliseconds kFlushPatience{1000};

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a closed output loses the rest
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string render_line(LogLevel level, LogFormat format, std::string_view text) {
  std::string line;
  if (format == LogFormat::json) {
    line.append("{\"time\":\"").append(log_time()).append("\",\"level\":\"");
    line.append(to_string(level)).append("\",\"message\":");
    append_json_string(line, text);
    line += '}';
  } else {
    line.append(log_time()).append(" ").append(to_string(level)).append(" ");
    line.append(safe_text(text));
  }
  return line;
}

// Owns the output. Only its own thread writes: an output that is slow or stuck (a pipe that nobody
// reads) holds up nobody else, and costs lines. Lives as long as the process, because that thread
// may hang in write() to the end.
class Output {
 public:
  Output() {
    std::thread([this] { run(); }).detach();
  }

  void queue(std::string_view line) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (pending_.size() + line.size() > kMaxLogQueueBytes) {
        ++dropped_;
        return;
      }
      wake = pending_.empty();
      pending_.append(line).append("\n");
      queued_ += line.size() + 1;
    }
    if (wake) wake_.notify_one();
  }

  bool flush() {
    std::unique_lock lock(mutex_);
    const std::uint64_t end = queued_;
    wanted_ = end;
    wake_.notify_one();
    return progress_.wait_for(lock, kFlushPatience, [&] { return written_ >= end; });
  }

  std::uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable wake_, progress_;
  std::string pending_;
  std::uint64_t queued_ = 0, written_ = 0;  // bytes since the start
  std::uint64_t wanted_ = 0;                // up to here somebody waits
  std::uint64_t dropped_ = 0;               // lines
};

struct Log {
  std::atomic<LogLevel> level{LogLevel::info};
  std::atomic<LogFormat> format{LogFormat::text};
  std::mutex mutex;  // of secrets
  std::vector<std::string> secrets;
  Output output;
};

// What is queued when the process ends is still written, if the output takes it.
struct FlushAtExit {
  Output& output;
  ~FlushAtExit() { output.flush(); }
};

Log& instance() {
  static Log* const log = new Log;  // never destroyed: see Output
  static const FlushAtExit at_exit{log->output};
  return *log;
}

void Output::run() {
  std::string batch;
  std::uint64_t told = 0;  // lines that were dropped
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return !pending_.empty(); });
    // One wake-up and one write for all lines of the next milliseconds.
    wake_.wait_for(lock, kGather, [this] { return wanted_ > written_; });
    batch.swap(pending_);
    const std::uint64_t lost = dropped_ - told;  // after what is in the batch
    told = dropped_;
    lock.unlock();
    write_all(batch);
    if (lost > 0 && log_enabled(LogLevel::warning)) {
      const auto text =
          "the log's output was too slow: " + std::to_string(lost) + " lines are lost";
      write_all(render_line(LogLevel::warning, log_format(), text) + "\n");
    }
    lock.lock();
    written_ += batch.size();
    batch.clear();
    progress_.notify_all();
  }
}

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 3)) {
    text.replace(at, what.size(), "***");
  }
}

}  // namespace

void init_log(LogLevel level, std::vector<std::string> secrets, LogFormat format) {
  {
    const std::lock_guard lock(instance().mutex);
    instance().secrets.clear();
  }
  hide_in_log(std::move(secrets));
  set_log(level, format);
}

void hide_in_log(std::vector<std::string> secrets) {
  auto& known = instance().secrets;
  const std::lock_guard lock(instance().mutex);
  for (auto& secret : secrets) {
    const bool is_new = std::find(known.begin(), known.end(), secret) == known.end();
    if (is_new && secret.size() >= kShortestSecret) known.push_back(std::move(secret));
  }
}

void set_log(LogLevel level, LogFormat format) {
  instance().level.store(level, std::memory_order_relaxed);
  instance().format.store(format, std::memory_order_relaxed);
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
  log_soon(render_line(level, log_format(), without_secrets(message)));
}

void log_soon(std::string_view line) {
  instance().output.queue(line);
}

std::uint64_t dropped_log_lines() {
  return instance().output.dropped();
}

bool flush_log() {
  return instance().output.flush();
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

void BurstWarning::operator()(std::string_view message) {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
  auto until = quiet_until_ms_.load(std::memory_order_relaxed);
  if (now < until || !quiet_until_ms_.compare_exchange_strong(until, now + 1000)) return;
  log_warning(message);
}

}  // namespace fixpoint
