#include "cache/token_log.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "cache/redaction.hpp"
#include "cache/sqlite/reader_pool.hpp"
#include "cache/sqlite/writer.hpp"
#include "cache/token_log_file.hpp"
#include "cache/token_log_read.hpp"
#include "cache/token_log_tokens.hpp"
#include "cache/token_log_write.hpp"

namespace fixpoint {
namespace {

constexpr std::chrono::seconds kRetentionInterval{60};
// Of max_bytes: after so much growth retention looks at the file, whatever the time.
constexpr std::uint64_t kGrowthShare = 64;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::size_t size_in_queue(const GenerationRecord& record) {
  std::size_t bytes = sizeof(record);
  for (const std::string* text :
       {&record.id, &record.key, &record.prompt_hash, &record.endpoint, &record.model,
        &record.requested_model, &record.provider, &record.route, &record.fingerprint,
        &record.tenant, &record.finish_reason, &record.logprobs_status}) {
    bytes += text->size();
  }
  for (const LoggedToken& token : record.tokens) {
    bytes += sizeof(token) + token.bytes.size();
    for (const LoggedAlternative& other : token.top) bytes += sizeof(other) + other.bytes.size();
  }
  return bytes;
}

Result<void> check_limit(const char* name, std::size_t limit, std::size_t most) {
  if (limit <= most) return {};
  return fail(ErrorCode::invalid, std::string(name) + ": " + std::to_string(limit) +
                                      " rows, at most " + std::to_string(most));
}

// A generation in the queue. Used by the writer's thread only, once it is there.
struct Pending {
  GenerationRecord record;
  bool prepared = false;  // redacted and packed; a generation whose group failed is written again
  std::string packed;
  MarginCounts counts;
};

}  // namespace

struct TokenLog::Impl {
  explicit Impl(const TokenLogOptions& options)
      : max_bytes(options.max_bytes),
        on_damaged(options.on_damaged ? options.on_damaged : [](const std::string&) {}),
        readers([path = options.path]() -> Result<std::unique_ptr<sqlite::Database>> {
          Result<sqlite::Database> database = open_token_log_reader(path);
          if (!database) return tl::make_unexpected(std::move(database.error()));
          return std::make_unique<sqlite::Database>(std::move(*database));
        }) {}

  Result<void> write(Pending& pending);
  bool is_retention_due() const;
  Result<void> retention_step();
  void end_retention_step(const Result<void>& done);
  // What `read` returns for a connection of the pool.
  template <class Read>
  auto with_reader(Read read) -> decltype(read(std::declval<sqlite::Database&>()));

  const std::uint64_t max_bytes;
  const OnDamaged on_damaged;
  std::optional<Redactor> redactor;
  // Closed after the readers: the last one to leave removes the write-ahead log.
  std::optional<TokenLogWriteSide> write_side;
  sqlite::ReaderPool<sqlite::Database> readers;
  std::atomic<std::uint64_t> refused = 0;  // appends to a read-only log
  std::atomic<std::uint64_t> written = 0, removed = 0, redacted_tokens = 0, gave_up = 0;
  // The writer's thread only. The first look comes at once.
  TokenLogWriteSide::Step last_step{.removed = 0, .more = true};
  std::chrono::steady_clock::time_point next_retention;
  std::unique_ptr<sqlite::Writer> writer;  // last: its thread uses the above
};

TokenLog::TokenLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenLog::~TokenLog() = default;

Result<std::unique_ptr<TokenLog>> TokenLog::open(const TokenLogOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (!options.read_only) {
    Result<Redactor> redactor = Redactor::compile(options.redact, options.keep_text);
    if (!redactor) return tl::make_unexpected(std::move(redactor.error()));
    impl->redactor = std::move(*redactor);
    Result<TokenLogWriteSide> opened = TokenLogWriteSide::open(options);
    if (!opened) return tl::make_unexpected(std::move(opened.error()));
    impl->write_side = std::move(*opened);
    impl->writer = std::make_unique<sqlite::Writer>(
        impl->write_side->database(), options.max_queue_bytes, options.on_write_error,
        sqlite::Writer::Upkeep{
            .due = [impl = impl.get()] { return impl->is_retention_due(); },
            .work = [impl = impl.get()] { return impl->retention_step(); },
            .done =
                [impl = impl.get()](const Result<void>& done) { impl->end_retention_step(done); }});
  }
  {
    auto reader = impl->readers.acquire();
    if (!reader) return tl::make_unexpected(std::move(reader.error()));
  }
  return std::unique_ptr<TokenLog>(new TokenLog(std::move(impl)));
}

void TokenLog::append(GenerationRecord record) {
  if (!impl_->writer) {
    ++impl_->refused;
    return;
  }
  const std::size_t bytes = size_in_queue(record);
  const auto pending = std::make_shared<Pending>();
  pending->record = std::move(record);
  impl_->writer->submit(
      bytes, [impl = impl_.get(), pending] { return impl->write(*pending); },
      [impl = impl_.get()](const Result<void>& done) { impl->written += done ? 1 : 0; });
}

Result<void> TokenLog::Impl::write(Pending& pending) {
  if (!pending.prepared) {
    const RedactionOutcome outcome = redactor->redact(pending.record);
    redacted_tokens += outcome.redacted_tokens;
    gave_up += outcome.gave_up;
    pending.packed = pack_tokens(pending.record.tokens);
    pending.counts = count_margins(pending.record.tokens);
    pending.prepared = true;
  }
  return write_side->insert(pending.record, pending.packed, pending.counts);
}

bool TokenLog::Impl::is_retention_due() const {
  return last_step.more || write_side->growth() > max_bytes / kGrowthShare ||
         std::chrono::steady_clock::now() >= next_retention;
}

Result<void> TokenLog::Impl::retention_step() {
  Result<TokenLogWriteSide::Step> step = write_side->retain(now_ms());
  if (!step) return tl::make_unexpected(std::move(step.error()));
  last_step = *step;
  return {};
}

void TokenLog::Impl::end_retention_step(const Result<void>& done) {
  if (!done) last_step = {};  // the next look tries again
  removed += last_step.removed;
  if (last_step.more) return;
  next_retention = std::chrono::steady_clock::now() + kRetentionInterval;
  write_side->take_growth();
}

template <class Read>
auto TokenLog::Impl::with_reader(Read read) -> decltype(read(std::declval<sqlite::Database&>())) {
  auto reader = readers.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  return read(*reader->operator->());
}

Result<std::vector<GenerationRecord>> TokenLog::tail(std::size_t limit) {
  if (Result<void> checked = check_limit("limit", limit, kMaxRows); !checked) {
    return tl::make_unexpected(std::move(checked.error()));
  }
  return impl_->with_reader([&](sqlite::Database& file) { return read_tail(file, limit); });
}

Result<GenerationRecord> TokenLog::show(std::string_view id_or_key) {
  return impl_->with_reader(
      [&](sqlite::Database& file) { return read_generation(file, id_or_key); });
}

Result<void> TokenLog::for_each(const GenerationFilter& filter, bool with_tokens,
                                const std::function<bool(const GenerationRecord&)>& visit) {
  WalkPosition position{filter.since_ms.value_or(INT64_MIN), INT64_MIN};
  for (;;) {
    const WalkPosition before = position;
    const Result<std::vector<GenerationRecord>> page =
        impl_->with_reader([&](sqlite::Database& file) {
          return read_page(file, filter, with_tokens, position, impl_->on_damaged);
        });
    if (!page) return tl::make_unexpected(page.error());
    if (position == before) return {};
    for (const GenerationRecord& record : *page) {
      if (!visit(record)) return {};
    }
  }
}

Result<std::vector<ThinMargin>> TokenLog::thin_margins(const MarginQuery& query) {
  if (Result<void> checked = check_limit("limit", query.limit, kMaxRows); !checked) {
    return tl::make_unexpected(std::move(checked.error()));
  }
  return impl_->with_reader(
      [&](sqlite::Database& file) { return read_thin_margins(file, query, impl_->on_damaged); });
}

Result<std::vector<MarginReport>> TokenLog::margin_report(const MarginReportQuery& query) {
  if (Result<void> checked = check_limit("examples", query.examples, kMaxExamples); !checked) {
    return tl::make_unexpected(std::move(checked.error()));
  }
  return impl_->with_reader(
      [&](sqlite::Database& file) { return read_margin_report(file, query, impl_->on_damaged); });
}

Result<std::vector<SeenFingerprint>> TokenLog::fingerprints() {
  return impl_->with_reader([](sqlite::Database& file) { return read_fingerprints(file); });
}

Result<std::uint64_t> TokenLog::enforce_retention() {
  if (!impl_->writer) return fail(ErrorCode::invalid, "the token log is open for reading only");
  std::uint64_t removed = 0;
  for (bool more = true; more;) {
    const Result<void> done =
        impl_->writer->run([impl = impl_.get()] { return impl->retention_step(); },
                           [&](const Result<void>& outcome) {
                             removed += outcome ? impl_->last_step.removed : 0;
                             more = outcome && impl_->last_step.more;
                             impl_->end_retention_step(outcome);
                           });
    if (!done) return tl::make_unexpected(done.error());
  }
  return removed;
}

void TokenLog::flush() {
  if (impl_->writer) impl_->writer->flush();
}

TokenLogCounters TokenLog::counters() const {
  TokenLogCounters counters;
  counters.written = impl_->written;
  counters.failed = impl_->refused + (impl_->writer ? impl_->writer->failed() : 0);
  counters.removed = impl_->removed;
  counters.redacted_tokens = impl_->redacted_tokens;
  counters.redaction_gave_up = impl_->gave_up;
  return counters;
}

}  // namespace fixpoint
