// The one table of configuration keys: the parser, the defaults' text, the messages and README's
// key table come from it. Internal to the configuration.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/config.hpp"

namespace fixpoint::config {

// How a key's text is read. The limits of a KeyInfo count bytes of text, or the value's own unit.
enum class KeyType {
  text,    // any text without control characters
  name,    // text without white space
  secret,  // text that no message shows
  integer,
  size,      // bytes; "16MiB"
  duration,  // milliseconds; "10s"
  boolean,
  choice,
  headers,  // a mapping of HTTP field names to values; the values are secret
};
std::string_view to_string(KeyType type);

struct KeyInfo {
  std::string_view name;
  KeyType type;
  std::string_view doc;
  std::uint64_t min = 0, max = 0;  // inclusive; text: bytes
  bool required = false;
  std::string_view default_text = {};  // where the initialiser alone does not say it
};

// The member that a key sets.
using Slot =
    std::variant<std::string*, bool*, std::uint64_t*, std::chrono::milliseconds*, CachePolicy*,
                 std::optional<CachePolicy>*, ReproMode*, LogLevel*, std::vector<NamedValue>*>;

template <class Section>
struct Key {
  KeyInfo info;
  std::variant<std::string Section::*, bool Section::*, std::uint64_t Section::*,
               std::chrono::milliseconds Section::*, CachePolicy Section::*,
               std::optional<CachePolicy> Section::*, ReproMode Section::*, LogLevel Section::*,
               std::vector<NamedValue> Section::*>
      member;

  Slot slot(Section& section) const {
    return std::visit([&](auto pointer) -> Slot { return &(section.*pointer); }, member);
  }
};

// The keys of one section (Config: those at the top level that are plain values).
template <class Section>
std::span<const Key<Section>> keys();
template <>
std::span<const Key<Config>> keys();
template <>
std::span<const Key<ServerConfig>> keys();
template <>
std::span<const Key<CacheConfig>> keys();
template <>
std::span<const Key<TokenLogConfig>> keys();
template <>
std::span<const Key<AccessLogConfig>> keys();
template <>
std::span<const Key<ModelConfig>> keys();
template <>
std::span<const Key<UpstreamConfig>> keys();
template <>
std::span<const Key<RouteConfig>> keys();

// Sets the slot from text. The error's message does not name the key and does not show the text.
Result<void> set_slot(const KeyInfo& info, const Slot& slot, std::string_view text);
// "1 .. 256", "1s .. 24h", "auto, all, off"; empty if there is nothing to say.
std::string limits_text(const KeyInfo& info, const Slot& slot);
// The slot's value as the file would spell it.
std::string value_text(const KeyInfo& info, const Slot& slot);

// Checks between keys: unique names, references, addresses. Calls report with the key's path
// ("routes[1].upstream") and the message.
using Report = std::function<void(const std::string& path, std::string message)>;
void cross_check(const Config& config, const Report& report);

}  // namespace fixpoint::config
