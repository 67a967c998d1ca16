// What the process itself uses, by the names that Prometheus' client libraries give it.
#pragma once

#include "gateway/metrics.hpp"

namespace fixpoint {

// process_resident_memory_bytes, process_open_fds, process_max_fds, process_threads and
// process_start_time_seconds, and how many lines of the log were lost. Read from /proc at a scrape.
void add_process_metrics(MetricsRegistry& registry);

}  // namespace fixpoint
