// Purge, export and statistics: over every entry of every master.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cache/redis/record.hpp"
#include "cache/redis/router.hpp"

namespace fixpoint::redis {

// Waits for answers: never on the io_context's thread. Goes in steps (a page of SCAN, some hundred
// tags, about a megabyte of entries), so that look-ups on the same connections wait a millisecond;
// each step has the router's tool_timeout. When a master is lost on the way, that is the result. In
// a cluster that moves slots meanwhile, entries on the move can be missed. Thread-safe.
class Walk {
 public:
  Walk(net::io_context& context, Router& router, std::string prefix)
      : context_(context), router_(router), prefix_(std::move(prefix)) {}

  // As of Store.
  Result<std::uint64_t> purge(const EntryFilter& filter);
  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit);
  Result<StoreStats> stats();

 private:
  struct Item {
    std::string name;  // of the Redis key
    CacheKey key;      // without material
  };
  struct TaggedItem {
    Item item;
    Tag tag;
  };
  using Page = std::vector<Item>;
  using Format = std::function<std::string(const Item&)>;  // an item's command

  // Calls `take` with the names of all entries, or with the filter's own; false ends it.
  Result<void> each_page(const EntryFilter& filter,
                         const std::function<Result<bool>(const Page&)>& take);
  // The page's tags, without those whose entries are gone; `corrupt` counts what has none.
  Result<std::vector<TaggedItem>> tags(const Page& page, std::uint64_t& corrupt);
  Result<std::uint64_t> unlink(const Page& page);

  Result<std::vector<Address>> masters();
  Result<Reply> ask(const Address& master, std::string bytes, const char* what);
  // One command per item, sent together, answered in order. The first error but protocol (a key of
  // another type) is the result.
  Result<std::vector<Result<Reply>>> ask_each(const Page& page, const char* what,
                                              const Format& format);

  net::io_context& context_;
  Router& router_;
  const std::string prefix_;
};

}  // namespace fixpoint::redis
