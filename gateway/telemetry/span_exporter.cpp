#include "gateway/telemetry/span_exporter.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "gateway/http/asio.hpp"
#include "gateway/json_guard.hpp"
#include "gateway/log.hpp"
#include "gateway/upstream/client.hpp"
#include "gateway/version.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kMaxResponseBytes = 1u << 20;

UpstreamOptions client_options(const TelemetryConfig& config) {
  UpstreamOptions options;
  options.base_url = config.otlp_endpoint;
  options.max_connections = 2;
  options.max_idle_connections = 1;
  options.total_timeout = SpanExporter::kExportTimeout;
  options.max_response_bytes = kMaxResponseBytes;
  return options;
}

// ExportTraceServiceResponse.partial_success.rejected_spans; JSON writes 64-bit numbers as strings.
std::uint64_t rejected_spans(std::string_view body) {
  const auto json = parse_json(body);
  if (!json || !json->is_object()) return 0;
  const auto partial = json->find("partialSuccess");
  if (partial == json->end() || !partial->is_object()) return 0;
  const auto rejected = partial->find("rejectedSpans");
  if (rejected == partial->end()) return 0;
  if (rejected->is_number_unsigned()) return rejected->get<std::uint64_t>();
  std::uint64_t number = 0;
  if (rejected->is_string()) {
    const auto& text = rejected->get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

}  // namespace

struct SpanExporter::Impl {
  explicit Impl(const TelemetryConfig& configuration)
      : config(configuration),
        client(context, client_options(config)),
        wake(context.get_executor()),
        deadline(context.get_executor()) {
    net::co_spawn(context.get_executor(), run(), [this](const std::exception_ptr& failure) {
      if (failure) log_error("telemetry: the exporter of spans ended");
      context.stop();  // also while an idle connection waits
    });
    thread = std::thread([this] { context.run(); });
  }

  ~Impl() {
    net::post(context, [this] {
      stopping = true;
      deadline.expires_after(kShutdownTimeout);
      deadline.async_wait([this](error_code error) {
        if (!error) context.stop();
      });
      wake.cancel();
    });
    thread.join();
  }

  void add(Span span) {
    bool full_batch = false;
    {
      const std::lock_guard lock(mutex);
      if (queue.size() >= kMaxQueue) {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      queue.push_back(std::move(span));
      full_batch = queue.size() == kBatch;
    }
    if (full_batch) net::post(context, [this] { wake.cancel(); });
  }

  std::vector<Span> take_batch() {
    const std::lock_guard lock(mutex);
    std::vector<Span> batch;
    if (queue.size() <= kBatch) {
      batch.swap(queue);
    } else {
      const auto end = queue.begin() + kBatch;
      batch.assign(std::move_iterator(queue.begin()), std::move_iterator(end));
      queue.erase(queue.begin(), end);
    }
    return batch;
  }

  // Wake-ups and the stop arrive on this thread, so none falls between looking at the queue and
  // sleeping, and what was added before the stop is in the last look.
  Task<void> run() {
    while (!stopping) {
      error_code error;
      wake.expires_after(config.interval);
      co_await wake.async_wait(net::redirect_error(use_task, error));
      std::vector<Span> batch = take_batch();
      while (!batch.empty()) {
        co_await send(batch);
        batch = take_batch();
      }
    }
  }

  Task<void> send(std::vector<Span>& batch) {
    const std::size_t count = batch.size();
    UpstreamRequest request;
    request.path = "/v1/traces";
    request.headers.add("Content-Type", "application/json");
    request.headers.add("User-Agent", "fixpoint/" + std::string(kVersion));
    for (const NamedValue& header : config.headers) {
      request.headers.set(header.name, header.value);
    }
    request.body = std::make_shared<const std::string>(otlp_json(batch, config.service_name));
    batch.clear();
    auto response = co_await client.send(request);
    if (!response) {
      lost(count, response.error().message);
      co_return;
    }
    const int status = (*response)->status();
    UpstreamResponse& answer = **response;
    const auto body = co_await UpstreamClient::read_all(answer);
    if (status / 100 != 2) {
      lost(count, "the collector answered " + std::to_string(status));
      co_return;
    }
    const std::uint64_t rejected = body ? std::min<std::uint64_t>(rejected_spans(*body), count) : 0;
    exported.fetch_add(count - rejected, std::memory_order_relaxed);
    if (rejected > 0) {
      lost(rejected, "the collector rejected some");
    } else {
      complained = false;
    }
  }

  // One message for a row of failures.
  void lost(std::uint64_t count, const std::string& why) {
    failed.fetch_add(count, std::memory_order_relaxed);
    if (!complained) log_warning("telemetry: spans are lost: " + why);
    complained = true;
  }

  const TelemetryConfig config;
  net::io_context context{1};
  UpstreamClient client;
  Timer wake;      // of run()
  Timer deadline;  // of the shutdown
  std::mutex mutex;
  std::vector<Span> queue;                    // under the mutex
  bool stopping = false, complained = false;  // of the context's thread
  std::atomic<std::uint64_t> exported{0}, dropped{0}, failed{0};
  std::thread thread;
};

SpanExporter::SpanExporter(const TelemetryConfig& config) : impl_(std::make_unique<Impl>(config)) {}
SpanExporter::~SpanExporter() = default;

void SpanExporter::add(Span span) {
  impl_->add(std::move(span));
}
std::uint64_t SpanExporter::exported() const {
  return impl_->exported.load(std::memory_order_relaxed);
}
std::uint64_t SpanExporter::dropped() const {
  return impl_->dropped.load(std::memory_order_relaxed);
}
std::uint64_t SpanExporter::failed() const {
  return impl_->failed.load(std::memory_order_relaxed);
}

}  // namespace fixpoint
