#include "gateway/stores.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "cache/sqlite/database.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

// Write errors come in bursts, one for each entry of a group: one line tells of all. `remedy`
// follows an error that tells of damage.
std::function<void(const Error&)> warn(std::string prefix, std::string remedy = {}) {
  // Shared: std::function copies what it holds.
  return [warning = std::make_shared<BurstWarning>(), prefix = std::move(prefix),
          remedy = std::move(remedy)](const Error& error) {
    (*warning)(prefix + error.message + (error.code == ErrorCode::corrupt ? remedy : ""));
  };
}

// Of damage that did not show when the file was opened.
constexpr const char* kBeginAnew = "; move the file away and restart to begin a new one";

// Redis has to see now and then that an entry is used, and another gateway's purge has to be seen
// here.
constexpr std::chrono::minutes kMemoryAge{10};

StoreLimits limits_of(const CacheConfig& config) {
  StoreLimits limits;
  limits.ttl = config.ttl;
  limits.max_bytes = config.max_bytes;
  limits.compress_above = config.compress_above;
  return limits;
}

Result<std::unique_ptr<Store>> open_shared(const CacheConfig& config) {
  RedisStoreOptions options;
  options.url = config.redis_url;
  options.cluster = config.redis_cluster;
  options.ca_file = config.redis_ca_file;
  options.prefix = config.redis_prefix;
  options.timeout = config.redis_timeout;
  options.limits = limits_of(config);
  options.on_error = warn("cache: ");
  return open_redis_store(options);
}

// Whether the file still begins as SQLite's do.
bool was_database(const std::string& path) {
  constexpr std::string_view kBegin("SQLite format 3", 16);  // with its zero byte
  std::string begin(kBegin.size(), ' ');
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<long>(begin.size()));
  return begin == kBegin;
}

// Damage must not keep a gateway from its work: what the file had were copies of answers, or a
// history, and whoever wants them finds them in the file that was set aside.
template <class Open>
auto open_or_begin_anew(const std::string& what, const std::string& path,
                        const std::string& data_dir, Open open) -> decltype(open()) {
  auto opened = open();
  if (opened || opened.error().code != ErrorCode::corrupt) return opened;
  // A path that was mistyped leads to somebody's file.
  if (std::filesystem::path(path).parent_path() != data_dir && !was_database(path)) {
    return fail(ErrorCode::corrupt,
                opened.error().message + "; if it is this gateway's, move it away");
  }
  const auto aside = sqlite::Database::set_aside(path);
  if (!aside) {
    return fail(aside.error().code, opened.error().message + "; " + aside.error().message);
  }
  log_error(what + ": " + opened.error().message + "; it is " + *aside +
            " now, with all its rows, and a new file begins");
  return open();
}

Result<std::unique_ptr<Store>> open_embedded(const Config& all) {
  const CacheConfig& config = all.cache;
  SqliteStoreOptions options;
  options.path = config.path;
  options.limits = limits_of(config);
  options.on_write_error = warn("cache: ", kBeginAnew);
  return open_or_begin_anew("cache", options.path, all.data_dir,
                            [&] { return open_sqlite_store(options); });
}

Result<void> open_recordings(Gateway& gateway, const ServeArguments& arguments) {
  const bool record = arguments.record_dir.has_value();
  const std::string& folder = record ? *arguments.record_dir : *arguments.replay_dir;
  std::error_code code;
  // A new one would have no answer to any request.
  if (!record && !std::filesystem::is_directory(folder, code)) {
    return fail(ErrorCode::not_found, folder + ": there is no such folder to replay");
  }
  // Each one: a recording that is missing shows where nobody remembers this run, in a replay.
  auto recordings = open_recording(
      folder, [](const Error& error) { log_error("not recorded: " + error.message); });
  if (!recordings) return tl::make_unexpected(std::move(recordings.error()));
  gateway.recording = record ? Recording::record : Recording::replay;
  gateway.recordings = recordings->get();
  gateway.store = std::move(*recordings);
  return {};
}

Result<void> open_cache(Gateway& gateway, const ServeArguments& arguments) {
  const auto& config = arguments.config.cache;
  if (arguments.record_dir || arguments.replay_dir) return open_recordings(gateway, arguments);
  if (!config.enabled) return {};
  auto below = config.redis_url.empty() ? open_embedded(arguments.config) : open_shared(config);
  if (!below) return tl::make_unexpected(std::move(below.error()));
  if (config.memory_bytes == 0) {
    gateway.store = std::move(*below);
  } else {
    gateway.store =
        make_tiered_store(make_memory_store(config.memory_bytes, kMemoryAge), std::move(*below));
  }
  return {};
}

Result<void> open_log(Gateway& gateway, const Config& all) {
  const TokenLogConfig& config = all.log;
  if (!config.enabled) return {};
  TokenLogOptions options;
  options.path = config.path;
  options.max_bytes = config.max_bytes;
  options.max_age = config.max_age;
  options.keep_text = config.text == TextCapture::full;
  options.redact = config.redact;
  options.on_write_error = warn("token log: ", kBeginAnew);
  return open_or_begin_anew("token log", options.path, all.data_dir, [&]() -> Result<void> {
    auto log = TokenLog::open(options);
    if (!log) return tl::make_unexpected(std::move(log.error()));
    auto seen = (*log)->fingerprints();
    if (!seen) return tl::make_unexpected(std::move(seen.error()));
    gateway.log = std::move(*log);
    gateway.fingerprints = std::make_unique<FingerprintTracker>(std::move(*seen));
    return {};
  });
}

Result<void> open_tenants(Gateway& gateway, const Config& config) {
  TenantsOptions options;
  options.path = key_file_of(config.data_dir);
  options.prices = config.prices;
  options.on_error = warn("keys: ");
  auto tenants = Tenants::open(std::move(options));
  if (!tenants) {
    Error error = tenants.error();
    if (error.code == ErrorCode::corrupt) {
      // Never begun anew: without its keys a gateway serves whoever asks.
      error.message += "; put a copy of it back (without the file nobody needs a key)";
    }
    return tl::make_unexpected(std::move(error));
  }
  gateway.tenants = std::move(*tenants);
  return {};
}

}  // namespace

bool open_stores(Gateway& gateway, const ServeArguments& arguments) {
  const auto& config = arguments.config;
  // The first start makes the data folder, for this user alone: prompts are personal data. A
  // failure shows in the message of the store that needed it.
  std::error_code code;
  if (std::filesystem::create_directories(config.data_dir, code)) {
    std::filesystem::permissions(config.data_dir, std::filesystem::perms::owner_all, code);
  }
  const auto opened = [](const char* what, const Result<void>& result) {
    if (!result) log_error(std::string(what) + ": " + result.error().message);
    return result.has_value();
  };
  return opened("keys", open_tenants(gateway, config)) &&
         opened("cache", open_cache(gateway, arguments)) &&
         opened("token log", open_log(gateway, config));
}

}  // namespace fixpoint
