// cache stats | get | purge.
#include <filesystem>

#include "cache/store.hpp"
#include "gateway/admin.hpp"
#include "gateway/cli/output.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

// The configuration's cache file. Opening must not make one: a tool that finds none says so.
Result<std::unique_ptr<Store>> open_cache(const std::string& path, bool read_only) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    return fail(ErrorCode::not_found, "there is no cache at " + path + " yet");
  }
  SqliteStoreOptions options;
  options.path = path;
  options.read_only = read_only;
  return open_sqlite_store(options);
}

// A running gateway is the cache's only writer: then it does the work.
Result<std::uint64_t> purge(const std::string& path, const PurgeFilter& filter) {
  const auto store = open_cache(path, false);
  if (store) return (*store)->purge(filter);
  if (store.error().code == ErrorCode::not_found)
    return fail(store.error().code, store.error().message);
  auto removed = purge_through_gateway(path, filter);
  if (!removed && removed.error().code == ErrorCode::not_found) {
    return fail(store.error().code, store.error().message);
  }
  return removed;
}

std::string time_or_dash(std::int64_t ms) {
  return ms == 0 ? "-" : format_time(ms);
}

}  // namespace

int cache_stats(const Session& session) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto store = open_cache(config->cache.path, true);
  if (!store) return report_failure(session, store.error());
  const auto stats = (*store)->stats();
  if (!stats) return report_failure(session, stats.error());
  if (session.json) {
    const auto time = [](std::int64_t ms) { return ms == 0 ? Json(nullptr) : Json(ms); };
    write_json(session, {{"path", config->cache.path},
                         {"entries", stats->entries},
                         {"bytes", stats->bytes},
                         {"prompt_entries", stats->prompt_entries},
                         {"body_entries", stats->body_entries},
                         {"oldest_ms", time(stats->oldest_ms)},
                         {"newest_ms", time(stats->newest_ms)}});
    return kExitOk;
  }
  session.context.out << "file     " << safe_text(config->cache.path) << '\n'
                      << "entries  " << stats->entries << " (" << stats->prompt_entries
                      << " by prompt, " << stats->body_entries << " by body)\n"
                      << "bytes    " << stats->bytes << '\n'
                      << "oldest   " << time_or_dash(stats->oldest_ms) << '\n'
                      << "newest   " << time_or_dash(stats->newest_ms) << '\n';
  return kExitOk;
}

int cache_get(const Session& session, const std::string& key_name) {
  const auto key = parse_key_name(key_name);
  if (!key) return report(session, key.error());
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto store = open_cache(config->cache.path, true);
  if (!store) return report_failure(session, store.error());
  const auto entry = (*store)->get(*key);
  if (!entry) return report_failure(session, entry.error());
  if (!*entry) {
    return report(session, {ErrorCode::not_found, "the cache has no entry " + key_name});
  }
  const Entry& found = **entry;
  if (session.json) {
    // The body as a string: inside of another document its numbers could lose digits.
    write_json(session, {{"key", found.key.name()},
                         {"endpoint", found.endpoint},
                         {"model", found.model},
                         {"provider", found.provider},
                         {"generation", found.generation},
                         {"created_ms", found.created_ms},
                         {"body", *found.body}});
    return kExitOk;
  }
  // The answer's own bytes go to stdout and what is known about them to stderr, so that the answer
  // can be piped to another program as it is.
  session.context.err << "model       " << safe_text(found.model) << '\n'
                      << "provider    " << safe_text(found.provider) << '\n'
                      << "endpoint    " << safe_text(found.endpoint) << '\n'
                      << "generation  " << safe_text(found.generation) << '\n'
                      << "created     " << format_time(found.created_ms) << '\n';
  session.context.out << *found.body << '\n';
  return kExitOk;
}

int cache_purge(const Session& session, const PurgeArguments& arguments) {
  const bool any = arguments.key || arguments.model || arguments.older_than;
  if (any == arguments.all) {
    return report(session, {ErrorCode::invalid,
                            "cache purge needs --key, --model or --older-than (all given ones must "
                            "hold), or --all alone"});
  }
  PurgeFilter filter;
  filter.model = arguments.model;
  if (arguments.key) {
    if (const auto key = parse_key_name(*arguments.key); !key) return report(session, key.error());
    filter.key = arguments.key;
  }
  if (arguments.older_than) {
    const auto age = parse_age(*arguments.older_than);
    if (!age) return report(session, {age.error().code, "--older-than: " + age.error().message});
    filter.older_than_ms = now_ms() - *age;
  }
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto removed = purge(config->cache.path, filter);
  if (!removed) return report_failure(session, removed.error());
  if (session.json) {
    write_json(session, {{"removed", *removed}});
  } else {
    session.context.out << "removed " << *removed << (*removed == 1 ? " entry\n" : " entries\n");
  }
  return kExitOk;
}

}  // namespace fixpoint::cli
