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
  number,    // with decimals; the limits are whole
  size,      // bytes; "16MiB"
  duration,  // milliseconds; "10s"
  boolean,
  choice,
  texts,    // a list of texts
  names,    // a list of names
  secrets,  // a list of secrets
  mapping,  // of names to texts
  headers,  // a mapping of HTTP field names to values; the values are secret
};
std::string_view to_string(KeyType type);
// No message shows the value, or what a variable put into it.
bool is_secret(KeyType type);

constexpr std::size_t kMaxFileBytes = 1u << 20;
constexpr std::size_t kMaxListItems = 1024;  // of one list or mapping

struct KeyInfo {
  std::string_view name;
  KeyType type;
  std::string_view doc;
  std::uint64_t min = 0, max = 0;  // inclusive; text: bytes
  bool required = false;
  std::string_view default_text = {};  // where the initialiser alone does not say it
};

// A variant of F<T> for every type T that a key may set.
template <template <class> class F>
using ForEachType =
    std::variant<F<std::string>, F<bool>, F<std::uint64_t>, F<double>, F<std::chrono::milliseconds>,
                 F<CachePolicy>, F<std::optional<CachePolicy>>, F<ReproMode>, F<LogLevel>,
                 F<LogFormat>, F<UpstreamKind>, F<LogprobCapture>, F<TextCapture>, F<ReplayPace>,
                 F<std::vector<std::string>>, F<std::vector<NamedValue>>>;
template <class T>
using PointerTo = T*;
template <class Section>
struct MembersOf {
  template <class T>
  using Pointer = T Section::*;
};

// The member that a key sets.
using Slot = ForEachType<PointerTo>;

constexpr bool kAtStart = true;

template <class Section>
struct Key {
  KeyInfo info;
  ForEachType<MembersOf<Section>::template Pointer> member;
  bool at_start = false;  // read once: a change needs a restart

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
std::span<const Key<AdminConfig>> keys();
template <>
std::span<const Key<TelemetryConfig>> keys();
template <>
std::span<const Key<PriceConfig>> keys();
template <>
std::span<const Key<ModelConfig>> keys();
template <>
std::span<const Key<UpstreamConfig>> keys();
template <>
std::span<const Key<RouteConfig>> keys();

// Sets the slot from text. The error's message does not name the key and does not show the text.
Result<void> set_slot(const KeyInfo& info, const Slot& slot, std::string_view text);
// Whether both slots, of one key, hold the same value.
bool same_value(const Slot& a, const Slot& b);
// "1 .. 256", "1s .. 24h", "auto, all, off"; empty if there is nothing to say.
std::string limits_text(const KeyInfo& info, const Slot& slot);
// The slot's value as the file would spell it.
std::string value_text(const KeyInfo& info, const Slot& slot);

// Checks between keys: unique names, references, addresses. Calls report with the key's path
// ("routes[1].upstream") and the message.
using Report = std::function<void(const std::string& path, std::string message)>;
void cross_check(const Config& config, const Report& report);
// The part of them about who answers what: config_check_answers.cpp.
void check_answers(const Config& config, const Report& report);
// The files that it names, read as serve reads them: config_check_files.cpp.
void check_files(const Config& config, const Report& report);
// Names of header fields that a configuration adds to requests.
void check_header_names(const std::vector<NamedValue>& headers, const std::string& path,
                        const Report& report);

}  // namespace fixpoint::config
