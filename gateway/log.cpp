#include "gateway/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "gateway/safe_text.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kShortestSecret = 8;  // bytes

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::off:
      return spdlog::level::off;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

struct Log {
  std::shared_ptr<spdlog::logger> logger;
  std::vector<std::string> secrets;
};

Log& instance() {
  static Log log = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>("fixpoint", std::move(sink));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    return Log{std::move(logger), {}};
  }();
  return log;
}

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 3)) {
    text.replace(at, what.size(), "***");
  }
}

}  // namespace

void init_log(LogLevel level, std::vector<std::string> secrets) {
  Log& log = instance();
  log.logger->set_level(spdlog_level(level));
  std::erase_if(secrets, [](const std::string& s) { return s.size() < kShortestSecret; });
  log.secrets = std::move(secrets);
}

bool log_enabled(LogLevel level) {
  return level != LogLevel::off && instance().logger->should_log(spdlog_level(level));
}

void log_line(LogLevel level, std::string_view message) {
  if (!log_enabled(level)) return;
  Log& log = instance();
  std::string line(message);
  for (const std::string& secret : log.secrets) replace_all(line, secret);
  log.logger->log(spdlog_level(level), spdlog::string_view_t(safe_text(line)));
}

}  // namespace fixpoint
