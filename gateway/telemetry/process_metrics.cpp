#include "gateway/telemetry/process_metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gateway/log.hpp"

namespace fixpoint {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return kUnknown;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double entries(const char* folder) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  double count = 0;
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) ++count;
  return error ? kUnknown : count;
}

double max_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknown;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void add_process_metrics(MetricsRegistry& registry) {
  registry.gauge_from("process_resident_memory_bytes", "Memory in use.", {}, resident_bytes);
  // The listing is itself an open descriptor.
  registry.gauge_from("process_open_fds", "Open file descriptors.", {},
                      [] { return entries("/proc/self/fd") - 1; });
  registry.gauge_from("process_max_fds", "Limit of open file descriptors.", {}, max_descriptors);
  registry.gauge_from("process_threads", "Threads.", {}, [] { return entries("/proc/self/task"); });
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  registry.gauge("process_start_time_seconds", "When the process started, in Unix seconds.")
      .set(std::chrono::duration<double>(now).count());
  registry.counter_from("fixpoint_log_lines_dropped_total",
                        "Lines of the log lost because the output was slow.", {},
                        dropped_log_lines);
}

}  // namespace fixpoint
