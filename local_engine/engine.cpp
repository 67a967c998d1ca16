#include "local_engine/engine.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "local_engine/model_files.hpp"
#include "local_engine/request_check.hpp"
#include "local_engine/scheduler.hpp"
#include "local_engine/sha256.hpp"

namespace fixpoint::engine {
namespace {

// The kernels give the same bits on every CPU, so the device's class is all there is to say of it.
constexpr std::string_view kDeviceClass = "cpu";

// Rows of logits that a step may have besides those of decoding: 64 of 49,152 floats are 13 MB,
// used from the first scored prompt on. With 32 a scored token of that model takes a fifth more
// time on the CPU; more than 64 gain nothing.
constexpr std::size_t kScoringRows = 64;

Result<void> check_options(const EngineOptions& o) {
  const auto refuse = [](const char* field, std::size_t value, std::size_t least,
                         std::size_t most) {
    return fail(ErrorCode::bad_request, std::string("engine option ") + field + " is " +
                                            std::to_string(value) + "; it must be " +
                                            std::to_string(least) + " to " + std::to_string(most));
  };
  if (o.threads < 0 || o.threads > 1024) {
    return fail(ErrorCode::bad_request, "engine option threads is " + std::to_string(o.threads) +
                                            "; it must be 0 (one per core) to 1024");
  }
  if (o.max_batch < 1 || o.max_batch > 1024) return refuse("max_batch", o.max_batch, 1, 1024);
  if (o.prefill_chunk < 1 || o.prefill_chunk > 65'536) {
    return refuse("prefill_chunk", o.prefill_chunk, 1, 65'536);
  }
  if (o.max_queue < 1 || o.max_queue > 1'000'000) {
    return refuse("max_queue", o.max_queue, 1, 1'000'000);
  }
  return {};
}

// Tokens per sequence: no more than the model, the option and the KV memory allow.
Result<std::size_t> effective_context(const ModelConfig& config, const EngineOptions& options) {
  if (options.context > config.context) {
    return fail(ErrorCode::bad_request,
                "engine option context is " + std::to_string(options.context) +
                    "; the model was trained for " + std::to_string(config.context) + " tokens");
  }
  const std::size_t wanted =
      std::min(options.context != 0 ? options.context : config.context, kMaxContext);
  const std::size_t page = KvPool::page_bytes(config);
  const std::size_t held = options.kv_bytes / page * kernels::kLeafTokens;
  if (held == 0) {
    return fail(ErrorCode::bad_request, "engine option kv_bytes is " +
                                            std::to_string(options.kv_bytes) + "; " +
                                            std::to_string(kernels::kLeafTokens) +
                                            " tokens of this model need " + std::to_string(page));
  }
  return std::min(wanted, held);
}

// Everything that decides bits, in one short name.
std::string fingerprint(const std::string& weights_digest, const Tokenizer& tokenizer,
                        const ModelText& text, const std::string& dtypes) {
  Sha256 digest;
  digest.update_part(kernels::kCpuProfile);
  digest.update_part(weights_digest);
  digest.update_part(tokenizer.digest());
  digest.update_part(text.chat_template);
  digest.update_part(dtypes);
  digest.update_part(kDeviceClass);
  return "fp-" + digest.finish().substr(0, 16);
}

}  // namespace

struct Engine::Impl {
  ModelInfo info;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;
  std::unique_ptr<Scheduler>
      scheduler;  // uses the tokenizer: declared, and so destroyed, around it
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(const std::string& path, EngineOptions options) {
  if (auto checked = check_options(options); !checked) return tl::make_unexpected(checked.error());
  auto model_files = load_model_files(path);
  if (!model_files) return tl::make_unexpected(model_files.error());
  auto& [config, text, weights, weights_digest] = *model_files;
  auto context = effective_context(config, options);
  if (!context) return tl::make_unexpected(context.error());

  auto impl = std::make_unique<Impl>();
  auto tokenizer = Tokenizer::create(text.tokenizer);
  if (!tokenizer) return tl::make_unexpected(tokenizer.error());
  impl->tokenizer = *std::move(tokenizer);
  if (!text.chat_template.empty()) {
    auto chat = ChatTemplate::parse(text.chat_template, text.bos, text.eos);
    if (!chat) return tl::make_unexpected(chat.error());
    impl->chat_template = *std::move(chat);
  }

  ModelInfo& info = impl->info;
  info.name = options.name;
  info.architecture = "llama";
  info.file = path;
  info.weights_digest = weights_digest;
  info.fingerprint = fingerprint(info.weights_digest, *impl->tokenizer, text, weights.dtypes);
  info.context = *context;
  info.vocabulary = config.vocabulary;
  info.layers = config.layers;
  info.parameters = weights.parameters;

  // More pages than max_batch full sequences could never be used.
  const std::size_t pages = std::min(options.kv_bytes / KvPool::page_bytes(config),
                                     options.max_batch * KvPool::pages_for(*context));
  auto pool = KvPool::create(config, pages);
  if (!pool) return tl::make_unexpected(pool.error());
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::size_t scoring_rows = std::min(kScoringRows, options.prefill_chunk);
  auto model = std::make_unique<Llama>(
      config, std::move(weights), options.threads != 0 ? options.threads : cores,
      options.max_batch + options.prefill_chunk, options.max_batch + scoring_rows);
  impl->scheduler = std::make_unique<Scheduler>(
      std::move(model), *std::move(pool), Vocabulary{impl->tokenizer.get(), text.is_control},
      SchedulerOptions{*context, options.max_batch, options.prefill_chunk, options.max_queue,
                       scoring_rows});
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Result<std::uint64_t> Engine::submit(GenerateRequest request, GenerateCallback callback) {
  const RequestLimits limits{impl_->info.context, impl_->info.vocabulary};
  if (auto checked = check_request(request, limits); !checked) {
    return tl::make_unexpected(checked.error());
  }
  return impl_->scheduler->submit(std::move(request), std::move(callback));
}

void Engine::cancel(std::uint64_t id) {
  impl_->scheduler->cancel(id);
}
const ModelInfo& Engine::info() const {
  return impl_->info;
}
const Tokenizer& Engine::tokenizer() const {
  return *impl_->tokenizer;
}
const ChatTemplate* Engine::chat_template() const {
  return impl_->chat_template.get();
}

}  // namespace fixpoint::engine
