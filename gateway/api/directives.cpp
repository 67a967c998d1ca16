#include "gateway/api/directives.hpp"

#include <charconv>
#include <limits>
#include <string_view>

#include "gateway/json_edit.hpp"

namespace fixpoint {
namespace {

constexpr std::string_view kSampleHeader = "x-fixpoint-sample";
constexpr std::string_view kReproHeader = "x-fixpoint-repro";
constexpr std::string_view kReproMetadata = "fixpoint_repro";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class Int>
std::optional<Int> parse_int(std::string_view text) {
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

// Unknown directives are ignored, as RFC 9111 asks; a broken max-age counts as 0 (never stale).
void parse_cache_control(std::string_view value, CacheDirectives& out) {
  while (!value.empty()) {
    const auto comma = value.find(',');
    const auto item = trim(value.substr(0, comma));
    value = comma == std::string_view::npos ? std::string_view{} : value.substr(comma + 1);
    const auto equals = item.find('=');
    const auto name = trim(item.substr(0, equals));
    if (equal_ignoring_case(name, "no-store")) out.no_store = true;
    if (equal_ignoring_case(name, "no-cache")) out.no_cache = true;
    if (equal_ignoring_case(name, "only-if-cached")) out.only_if_cached = true;
    if (equal_ignoring_case(name, "max-age") && equals != std::string_view::npos) {
      auto argument = trim(item.substr(equals + 1));
      if (argument.size() >= 2 && argument.front() == '"' && argument.back() == '"') {
        argument = argument.substr(1, argument.size() - 2);
      }
      const bool digits =
          !argument.empty() && argument.find_first_not_of("0123456789") == std::string_view::npos;
      // Digits beyond 64 bits mean as long as can be (RFC 9111, section 1.2.2).
      constexpr auto kForever = std::numeric_limits<std::int64_t>::max();
      out.max_age_s = digits ? parse_int<std::int64_t>(argument).value_or(kForever) : 0;
    }
  }
}

ApiResult<ReproMode> parse_repro(std::string_view text, std::string_view where) {
  if (text == "required") return ReproMode::required;
  if (text == "preferred") return ReproMode::preferred;
  if (text == "off") return ReproMode::off;
  return refuse(
      bad_request(std::string(where) + " must be required, preferred or off", std::string(where)));
}

}  // namespace

ApiResult<Directives> parse_directives(const Headers& headers, std::string_view metadata) {
  Directives result;
  for (const auto& header : headers) {
    if (equal_ignoring_case(header.name, "cache-control")) {
      parse_cache_control(header.value, result.cache);
    }
  }
  if (const auto* sample = headers.find(kSampleHeader)) {
    result.sample = parse_int<std::uint32_t>(trim(*sample));
    if (!result.sample) {
      return refuse(bad_request("x-fixpoint-sample must be a whole number from 0 to 4294967295",
                                std::string(kSampleHeader)));
    }
  }
  result.in_metadata = metadata.find(kReproMetadata) != std::string_view::npos;
  if (const auto* repro = headers.find(kReproHeader)) {
    const auto mode = parse_repro(trim(*repro), kReproHeader);
    if (!mode) return refuse(mode.error());
    result.repro = *mode;
  } else if (result.in_metadata) {
    const auto given = find_member(metadata, kReproMetadata);
    if (!given || !*given) return result;  // the words are a label's, or metadata is no object
    const auto value = **given;
    const auto text = value.starts_with('"') ? value.substr(1, value.size() - 2) : "";
    const auto mode = parse_repro(text, "metadata.fixpoint_repro");
    if (!mode) return refuse(mode.error());
    result.repro = *mode;
  }
  return result;
}

}  // namespace fixpoint
