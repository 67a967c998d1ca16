#include "cache/redis/walk.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <future>
#include <unordered_set>
#include <utility>

namespace fixpoint::redis {
namespace {

constexpr const char* kPageSize = "500";  // keys that a SCAN looks at
constexpr std::uint64_t kGroupBytes = 1 << 20;

// SCAN may show a key twice. 128 bits of its digest tell keys apart.
class Seen {
 public:
  bool insert(const CacheKey& key) {
    Id id{0, 0};
    std::from_chars(key.hex.data(), key.hex.data() + 16, id.first, 16);
    std::from_chars(key.hex.data() + 16, key.hex.data() + 32, id.second, 16);
    if (key.kind == KeyKind::body) ++id.second;
    return ids_.insert(id).second;
  }

 private:
  using Id = std::pair<std::uint64_t, std::uint64_t>;
  struct Hash {
    std::size_t operator()(const Id& id) const { return id.first; }
  };
  std::unordered_set<Id, Hash> ids_;
};

}  // namespace

Result<std::vector<Address>> Walk::masters() {
  const auto promise = std::make_shared<std::promise<Result<std::vector<Address>>>>();
  auto future = promise->get_future();
  net::post(context_, [this, promise] {
    router_.masters([promise](Result<std::vector<Address>> masters) {
      promise->set_value(std::move(masters));
    });
  });
  return future.get();
}

Result<Reply> Walk::ask(const Address& master, std::string bytes, const char* what) {
  const auto promise = std::make_shared<std::promise<Result<Reply>>>();
  auto future = promise->get_future();
  net::post(context_, [this, promise, master, bytes = std::move(bytes), what]() mutable {
    router_.send_to(master, std::move(bytes), what,
                    [promise](Result<Reply> reply) { promise->set_value(std::move(reply)); });
  });
  return future.get();
}

Result<std::vector<Result<Reply>>> Walk::ask_each(const Page& page, const char* what,
                                                  const Format& format) {
  struct Batch {
    std::vector<Result<Reply>> replies;
    std::size_t missing;
    std::promise<void> done;
  };
  struct Command {
    std::string bytes;
    std::uint16_t slot;
  };
  if (page.empty()) return std::vector<Result<Reply>>();
  const auto batch = std::make_shared<Batch>();
  batch->replies.resize(page.size());
  batch->missing = page.size();
  auto future = batch->done.get_future();
  std::vector<Command> commands;
  commands.reserve(page.size());
  for (const Item& item : page) commands.push_back({format(item), key_slot(item.name)});
  net::post(context_, [this, batch, commands = std::move(commands), what]() mutable {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      router_.send(std::move(commands[i].bytes), what, commands[i].slot, Router::Patience::tool,
                   [batch, i](Result<Reply> reply) {
                     batch->replies[i] = std::move(reply);
                     if (--batch->missing == 0) batch->done.set_value();
                   });
    }
  });
  future.wait();
  for (Result<Reply>& reply : batch->replies) {
    if (!reply && reply.error().code != ErrorCode::protocol) {
      return tl::make_unexpected(std::move(reply.error()));
    }
  }
  return std::move(batch->replies);
}

Result<void> Walk::each_page(const EntryFilter& filter,
                             const std::function<Result<bool>(const Page&)>& take) {
  if (filter.key) {
    const Result<CacheKey> key = parse_key_name(*filter.key);
    if (!key) return tl::make_unexpected(key.error());
    const Result<bool> taken = take({{record_key(prefix_, *key), *key}});
    if (!taken) return tl::make_unexpected(taken.error());
    return {};
  }
  const Result<std::vector<Address>> all = masters();
  if (!all) return tl::make_unexpected(all.error());
  const std::string pattern = record_pattern(prefix_);
  for (const Address& master : *all) {
    std::string cursor = "0";
    do {
      const Result<Reply> reply =
          ask(master, command({"SCAN", cursor, "MATCH", pattern, "COUNT", kPageSize}), "SCAN");
      if (!reply) return tl::make_unexpected(reply.error());
      if (!is_array(**reply) || (*reply)->elements != 2 || !is_text(*(*reply)->element[0]) ||
          !is_array(*(*reply)->element[1])) {
        return fail(ErrorCode::protocol, "Redis's answer to SCAN is not a cursor and keys");
      }
      cursor = text_of(*(*reply)->element[0]);
      const redisReply& names = *(*reply)->element[1];
      Page page;
      for (std::size_t i = 0; i < names.elements; ++i) {
        const std::string_view name = text_of(*names.element[i]);
        Result<CacheKey> key = parse_record_key(prefix_, name);
        if (key) page.push_back({std::string(name), std::move(*key)});
      }
      const Result<bool> more = take(page);
      if (!more) return tl::make_unexpected(more.error());
      if (!*more) return {};
    } while (cursor != "0");
  }
  return {};
}

Result<std::vector<Walk::TaggedItem>> Walk::tags(const Page& page, std::uint64_t& corrupt) {
  std::vector<TaggedItem> tagged;
  // First the usual length of all; then, with their own lengths, those that are longer.
  Page longer;
  std::size_t bytes = kUsualTagBytes;
  for (const Page* part = &page; !part->empty();) {
    const std::string last = std::to_string(bytes - 1);
    Result<std::vector<Result<Reply>>> replies = ask_each(*part, "GETRANGE", [&](const Item& item) {
      return command({"GETRANGE", item.name, "0", last});
    });
    if (!replies) return tl::make_unexpected(std::move(replies.error()));
    Page rest;
    std::size_t rest_bytes = 0;
    for (std::size_t i = 0; i < part->size(); ++i) {
      const Result<Reply>& reply = (*replies)[i];
      const std::string_view value = reply ? text_of(**reply) : std::string_view();
      if (reply && value.empty()) continue;  // gone
      const Result<std::size_t> whole = tag_bytes(value);
      if (whole && *whole > bytes) {
        rest.push_back((*part)[i]);
        rest_bytes = std::max(rest_bytes, *whole);
        continue;
      }
      Result<Tag> tag = decode_tag(value);
      if (tag) {
        tagged.push_back({(*part)[i], std::move(*tag)});
      } else {
        ++corrupt;
      }
    }
    longer = std::move(rest);
    bytes = rest_bytes;
    part = &longer;
  }
  return tagged;
}

Result<std::uint64_t> Walk::unlink(const Page& page) {
  const Result<std::vector<Result<Reply>>> replies =
      ask_each(page, "UNLINK", [](const Item& item) { return command({"UNLINK", item.name}); });
  if (!replies) return tl::make_unexpected(replies.error());
  std::uint64_t removed = 0;
  for (const Result<Reply>& reply : *replies) {
    if (!reply) return tl::make_unexpected(reply.error());
    if (is_integer(**reply) && (*reply)->integer > 0) ++removed;
  }
  return removed;
}

Result<std::uint64_t> Walk::purge(const EntryFilter& filter) {
  const bool any = !filter.model && !filter.tenant && !filter.older_than_ms;
  std::uint64_t removed = 0, corrupt = 0;
  const Result<void> walked = each_page(filter, [&](const Page& page) -> Result<bool> {
    Page chosen;
    if (!any) {
      Result<std::vector<TaggedItem>> tagged = tags(page, corrupt);
      if (!tagged) return tl::make_unexpected(std::move(tagged.error()));
      for (TaggedItem& each : *tagged) {
        if (matches(filter, each.tag)) chosen.push_back(std::move(each.item));
      }
    }
    const Result<std::uint64_t> count = unlink(any ? page : chosen);
    if (!count) return tl::make_unexpected(count.error());
    removed += *count;
    return true;
  });
  if (!walked) return tl::make_unexpected(walked.error());
  return removed;
}

Result<std::uint64_t> Walk::for_each(const EntryFilter& filter,
                                     const std::function<bool(const Entry&)>& visit) {
  std::uint64_t corrupt = 0;
  Seen seen;
  const auto take = [&](const Page& group) -> Result<bool> {
    const Result<std::vector<Result<Reply>>> replies =
        ask_each(group, "GET", [](const Item& item) { return command({"GET", item.name}); });
    if (!replies) return tl::make_unexpected(replies.error());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Result<Reply>& reply = (*replies)[i];
      if (reply && is_nil(**reply)) continue;
      const Result<Entry> entry = decode_record(reply ? text_of(**reply) : std::string_view());
      if (!entry || entry->key.name() != group[i].key.name()) {
        ++corrupt;
        continue;
      }
      // It may have been replaced since its tag was read.
      const Tag tag{entry->created_ms, 0, 0, 0, entry->model, entry->tenant};
      if (matches(filter, tag) && !visit(*entry)) return false;
    }
    return true;
  };
  const Result<void> walked = each_page(filter, [&](const Page& page) -> Result<bool> {
    const Result<std::vector<TaggedItem>> tagged = tags(page, corrupt);
    if (!tagged) return tl::make_unexpected(tagged.error());
    Page group;
    std::uint64_t bytes = 0;
    for (const TaggedItem& each : *tagged) {
      if (!matches(filter, each.tag) || !seen.insert(each.item.key)) continue;
      group.push_back(each.item);
      bytes += each.tag.entry_bytes;
      if (bytes < kGroupBytes) continue;
      const Result<bool> more = take(group);
      if (!more || !*more) return more;
      group.clear();
      bytes = 0;
    }
    return take(group);
  });
  if (!walked) return tl::make_unexpected(walked.error());
  return corrupt;
}

Result<StoreStats> Walk::stats() {
  StoreStats stats;
  std::uint64_t corrupt = 0;
  Seen seen;
  const Result<void> walked = each_page({}, [&](const Page& page) -> Result<bool> {
    const Result<std::vector<TaggedItem>> tagged = tags(page, corrupt);
    if (!tagged) return tl::make_unexpected(tagged.error());
    for (const TaggedItem& each : *tagged) {
      if (!seen.insert(each.item.key)) continue;
      ++stats.entries;
      ++(each.item.key.kind == KeyKind::prompt ? stats.prompt_entries : stats.body_entries);
      stats.bytes += each.tag.body_bytes;
      stats.stored_bytes += each.tag.stored_bytes;
      const std::int64_t created = each.tag.created_ms;
      stats.oldest_ms = stats.entries == 1 ? created : std::min(stats.oldest_ms, created);
      stats.newest_ms = stats.entries == 1 ? created : std::max(stats.newest_ms, created);
    }
    return true;
  });
  if (!walked) return tl::make_unexpected(walked.error());
  return stats;
}

}  // namespace fixpoint::redis
