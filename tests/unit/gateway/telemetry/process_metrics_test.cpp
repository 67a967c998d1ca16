#include "gateway/telemetry/process_metrics.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace fixpoint {
namespace {

double value_of(const MetricsRegistry& registry, const std::string& name) {
  const std::string text = registry.render();
  const std::size_t at = text.find("\n" + name + " ");
  if (at == std::string::npos) return -1;
  return std::stod(text.substr(at + name.size() + 2));
}

TEST(ProcessMetrics, CountWhatTheProcessUses) {
  MetricsRegistry registry;
  add_process_metrics(registry);
  EXPECT_GT(value_of(registry, "process_resident_memory_bytes"), 1e6);
  EXPECT_GE(value_of(registry, "process_threads"), 1);
  EXPECT_GT(value_of(registry, "process_start_time_seconds"), 1.7e9);
  EXPECT_GE(value_of(registry, "fixpoint_log_lines_dropped_total"), 0);
  const double before = value_of(registry, "process_open_fds");
  EXPECT_LE(before, value_of(registry, "process_max_fds"));
  const int fd = ::open("/dev/null", O_RDONLY);
  EXPECT_EQ(value_of(registry, "process_open_fds"), before + 1);
  ::close(fd);
  EXPECT_EQ(value_of(registry, "process_open_fds"), before);
}

}  // namespace
}  // namespace fixpoint
