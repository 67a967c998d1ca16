// cache stats | get | purge | export | import.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "cache/entry_json.hpp"
#include "cache/store.hpp"
#include "gateway/admin_file.hpp"
#include "gateway/cli/output.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

enum class Access { read, change, fill };

// The store that the configuration names, with its limits: a tool must not evict by others. Reading
// must not make a file: a tool that finds none says so.
Result<std::unique_ptr<Store>> open_cache(const CacheConfig& config, Access access) {
  StoreLimits limits;
  limits.ttl = config.ttl;
  limits.max_bytes = config.max_bytes;
  limits.compress_above = static_cast<std::size_t>(config.compress_above);
  if (!config.redis_url.empty()) {
    RedisStoreOptions options;
    options.url = config.redis_url;
    options.cluster = config.redis_cluster;
    options.ca_file = config.redis_ca_file;
    options.prefix = config.redis_prefix;
    options.timeout = options.tool_timeout;  // a person waits rather than be told of a miss
    options.limits = limits;
    return open_redis_store(options);
  }
  std::error_code code;
  if (access == Access::fill) {
    std::filesystem::create_directories(std::filesystem::absolute(config.path).parent_path(), code);
  } else if (!std::filesystem::exists(config.path, code)) {
    return fail(ErrorCode::not_found, "there is no cache at " + config.path + " yet");
  }
  SqliteStoreOptions options;
  options.path = config.path;
  options.read_only = access == Access::read;
  options.limits = limits;
  return open_sqlite_store(options);
}

std::string place_of(const CacheConfig& config) {
  // Not the URL: it may have a password.
  return config.redis_url.empty() ? config.path : "Redis, keys " + config.redis_prefix + "*";
}

// A running gateway is the file's only writer, and has entries in its memory: then it does the
// work, unless it records or replays.
Result<std::uint64_t> purge(const Config& config, const EntryFilter& filter) {
  if (!config.cache.redis_url.empty()) {
    auto removed = purge_through_gateway(config.data_dir, filter);
    if (removed || removed.error().code != ErrorCode::unreachable) return removed;
  }
  const auto store = open_cache(config.cache, Access::change);
  if (store) return (*store)->purge(filter);
  if (store.error().code == ErrorCode::not_found)
    return fail(store.error().code, store.error().message);
  auto removed = purge_through_gateway(config.data_dir, filter);
  if (!removed && removed.error().code == ErrorCode::unreachable) {
    return fail(store.error().code, store.error().message);
  }
  return removed;
}

// What `arguments` ask for. Errors: invalid.
Result<EntryFilter> filter_of(const PurgeArguments& arguments) {
  EntryFilter filter;
  filter.key = arguments.key;
  filter.model = arguments.model;
  filter.tenant = arguments.tenant;
  if (arguments.key) {
    if (const auto key = parse_key_name(*arguments.key); !key)
      return tl::make_unexpected(key.error());
  }
  if (arguments.older_than) {
    const auto age = parse_age(*arguments.older_than);
    if (!age) return fail(age.error().code, "--older-than: " + age.error().message);
    filter.older_than_ms = now_ms() - *age;
  }
  return filter;
}

std::string plural(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " entry" : " entries");
}

std::string time_or_dash(std::int64_t ms) {
  return ms == 0 ? "-" : format_time(ms);
}

}  // namespace

int cache_stats(const Session& session) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto store = open_cache(config->cache, Access::read);
  if (!store) return report_failure(session, store.error());
  const auto stats = (*store)->stats();
  if (!stats) return report_failure(session, stats.error());
  if (session.json) {
    const auto time = [](std::int64_t ms) { return ms == 0 ? Json(nullptr) : Json(ms); };
    write_json(session, {{"path", place_of(config->cache)},
                         {"entries", stats->entries},
                         {"bytes", stats->bytes},
                         {"stored_bytes", stats->stored_bytes},
                         {"prompt_entries", stats->prompt_entries},
                         {"body_entries", stats->body_entries},
                         {"oldest_ms", time(stats->oldest_ms)},
                         {"newest_ms", time(stats->newest_ms)}});
    return kExitOk;
  }
  session.context.out << "file     " << safe_text(place_of(config->cache)) << '\n'
                      << "entries  " << stats->entries << " (" << stats->prompt_entries
                      << " by prompt, " << stats->body_entries << " by body)\n"
                      << "bytes    " << stats->bytes << ", stored as " << stats->stored_bytes
                      << '\n'
                      << "oldest   " << time_or_dash(stats->oldest_ms) << '\n'
                      << "newest   " << time_or_dash(stats->newest_ms) << '\n';
  return kExitOk;
}

int cache_get(const Session& session, const std::string& key_name) {
  const auto key = parse_key_name(key_name);
  if (!key) return report(session, key.error());
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto store = open_cache(config->cache, Access::read);
  if (!store) return report_failure(session, store.error());
  const auto entry = get_and_wait(**store, *key);
  if (!entry) return report_failure(session, entry.error());
  if (!*entry) {
    return report(session, {ErrorCode::not_found, "the cache has no entry " + key_name});
  }
  const Entry& found = **entry;
  if (session.json) {
    // The body as a string: inside of another document its numbers could lose digits.
    write_json(session, {{"key", found.key.name()},
                         {"tenant", found.tenant},
                         {"endpoint", found.endpoint},
                         {"model", found.model},
                         {"provider", found.provider},
                         {"generation", found.generation},
                         {"created_ms", found.created_ms},
                         {"first_token_ms", found.first_token_ms},
                         {"total_ms", found.total_ms},
                         {"body", *found.body}});
    return kExitOk;
  }
  // The answer's own bytes go to stdout and what is known about them to stderr, so that the answer
  // can be piped to another program as it is.
  session.context.err << "model       " << safe_text(found.model) << '\n'
                      << "provider    " << safe_text(found.provider) << '\n'
                      << "endpoint    " << safe_text(found.endpoint) << '\n'
                      << "tenant      " << safe_text(found.tenant) << '\n'
                      << "generation  " << safe_text(found.generation) << '\n'
                      << "created     " << format_time(found.created_ms) << '\n';
  session.context.out << *found.body << '\n';
  return kExitOk;
}

int cache_purge(const Session& session, const PurgeArguments& arguments) {
  const bool any = arguments.key || arguments.model || arguments.tenant || arguments.older_than;
  if (any == arguments.all) {
    return report(session, {ErrorCode::invalid,
                            "cache purge needs --key, --model, --tenant or --older-than (all given "
                            "ones must hold), or --all alone"});
  }
  const auto filter = filter_of(arguments);
  if (!filter) return report(session, filter.error());
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto removed = purge(*config, *filter);
  if (!removed) return report_failure(session, removed.error());
  if (session.json) {
    write_json(session, {{"removed", *removed}});
  } else {
    session.context.out << "removed " << plural(*removed) << '\n';
  }
  return kExitOk;
}

int cache_export(const Session& session, const PurgeArguments& arguments) {
  const auto filter = filter_of(arguments);
  if (!filter) return report(session, filter.error());
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto store = open_cache(config->cache, Access::read);
  if (!store) return report_failure(session, store.error());
  std::ostream& out = session.context.out;
  std::uint64_t count = 0;
  const auto corrupt = (*store)->for_each(*filter, [&](const Entry& entry) {
    out << entry_to_json(entry) << '\n';
    ++count;
    return bool(out);
  });
  if (!corrupt) return report_failure(session, corrupt.error());
  session.context.err << "exported " << plural(count) << '\n';
  if (*corrupt == 0) return kExitOk;
  return report_failure(session, {ErrorCode::corrupt, plural(*corrupt) + " left out: damaged"});
}

int cache_import(const Session& session, const std::string& path) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  std::ifstream file(path, std::ios::binary);
  if (!file) return report(session, {ErrorCode::not_found, path + " cannot be read"});
  const auto store = open_cache(config->cache, Access::fill);
  if (!store) return report_failure(session, store.error());

  constexpr std::size_t kBetweenFlushes = 16u << 20;  // the store's queue holds more
  const std::int64_t ttl = config->cache.ttl.count();
  const std::int64_t oldest = ttl > 0 ? now_ms() - ttl : std::numeric_limits<std::int64_t>::min();
  std::uint64_t imported = 0, refused = 0, expired = 0, number = 0;
  std::size_t queued = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    auto entry = entry_from_json(line);
    if (!entry) {
      ++refused;
      report(session, {entry.error().code,
                       path + ":" + std::to_string(number) + ": " + entry.error().message});
      continue;
    }
    if (entry->created_ms < oldest) {  // it would be no answer, and could replace one
      ++expired;
      continue;
    }
    queued += entry->body->size() + entry->key.material.size();
    (*store)->put(std::make_shared<const Entry>(std::move(*entry)));
    ++imported;
    if (queued < kBetweenFlushes) continue;
    (*store)->flush();
    queued = 0;
  }
  (*store)->flush();
  const std::uint64_t failed = (*store)->failed_writes();
  imported -= std::min(imported, failed);
  // Redis evicts by itself, and to count what it has is a walk over all of it.
  const auto stats =
      config->cache.redis_url.empty() ? (*store)->stats() : Result<StoreStats>(StoreStats{});
  if (!stats) return report_failure(session, stats.error());
  if (session.json) {
    write_json(session, {{"imported", imported},
                         {"refused", refused},
                         {"failed", failed},
                         {"expired", expired},
                         {"evicted", stats->evicted}});
  } else {
    session.context.out << "imported " << plural(imported) << '\n';
  }
  std::ostream& err = session.context.err;
  if (expired > 0) err << plural(expired) << " left out: older than cache.ttl\n";
  if (stats->evicted > 0) {
    err << plural(stats->evicted) << " evicted: the cache was larger than cache.max_bytes\n";
  }
  if (file.bad()) {
    return report_failure(
        session, {ErrorCode::io, path + ": cannot be read beyond line " + std::to_string(number)});
  }
  if (failed > 0) {
    return report_failure(session, {ErrorCode::io, plural(failed) + " could not be written"});
  }
  if (refused > 0) {
    return report_failure(session, {ErrorCode::corrupt, plural(refused) + " refused"});
  }
  return kExitOk;
}

}  // namespace fixpoint::cli
