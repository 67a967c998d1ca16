// Values of the configuration as text: reading, limits, printing.
#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "gateway/config_keys.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::config {
namespace {

struct Unit {
  std::string_view suffix;
  std::uint64_t scale;
};
// Largest first: printing takes the first one that divides the value.
constexpr std::array kSizes{Unit{"GiB", std::uint64_t{1} << 30}, Unit{"MiB", 1u << 20},
                            Unit{"KiB", 1u << 10}, Unit{"", 1}};
constexpr std::array kDurations{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                                Unit{"s", 1000}, Unit{"ms", 1}};

// The texts of an enumeration, in the order in which messages list them.
template <class Enum>
struct Choice {
  Enum value;
  std::string_view text;
};
template <class Enum>
constexpr int choices = 0;  // no enumeration of the configuration
template <>
constexpr std::array choices<CachePolicy>{Choice<CachePolicy>{CachePolicy::automatic, "auto"},
                                          Choice<CachePolicy>{CachePolicy::all, "all"},
                                          Choice<CachePolicy>{CachePolicy::off, "off"}};
template <>
constexpr std::array choices<ReproMode>{Choice<ReproMode>{ReproMode::off, "off"},
                                        Choice<ReproMode>{ReproMode::preferred, "preferred"},
                                        Choice<ReproMode>{ReproMode::required, "required"}};
template <>
constexpr std::array choices<LogLevel>{
    Choice<LogLevel>{LogLevel::off, "off"}, Choice<LogLevel>{LogLevel::error, "error"},
    Choice<LogLevel>{LogLevel::warning, "warning"}, Choice<LogLevel>{LogLevel::info, "info"}};
template <>
constexpr std::array choices<LogFormat>{Choice<LogFormat>{LogFormat::text, "text"},
                                        Choice<LogFormat>{LogFormat::json, "json"}};
template <>
constexpr std::array choices<UpstreamKind>{
    Choice<UpstreamKind>{UpstreamKind::openai, "openai"},
    Choice<UpstreamKind>{UpstreamKind::anthropic, "anthropic"}};
template <>
constexpr std::array choices<LogprobCapture>{
    Choice<LogprobCapture>{LogprobCapture::off, "off"},
    Choice<LogprobCapture>{LogprobCapture::client, "client"},
    Choice<LogprobCapture>{LogprobCapture::inject, "inject"}};
template <>
constexpr std::array choices<TextCapture>{Choice<TextCapture>{TextCapture::off, "off"},
                                          Choice<TextCapture>{TextCapture::full, "full"}};
template <>
constexpr std::array choices<ReplayPace>{Choice<ReplayPace>{ReplayPace::full, "full"},
                                         Choice<ReplayPace>{ReplayPace::recorded, "recorded"}};

template <class T>
concept ConfigEnum = std::is_enum_v<T>;

template <ConfigEnum Enum>
std::string_view choice_text(Enum value) {
  for (const auto& choice : choices<Enum>) {
    if (choice.value == value) return choice.text;
  }
  return "";
}

template <ConfigEnum Enum>
std::string choice_list() {
  std::string list;
  for (const auto& choice : choices<Enum>) {
    if (!list.empty()) list += ", ";
    list += choice.text;
  }
  return list;
}

template <ConfigEnum Enum>
Result<Enum> parse_choice(std::string_view text) {
  for (const auto& choice : choices<Enum>) {
    if (choice.text == text) return choice.value;
  }
  return fail(ErrorCode::invalid, "must be one of " + choice_list<Enum>());
}

std::string number_text(KeyType type, std::uint64_t value) {
  if (type == KeyType::size && value != 0) {
    for (const Unit& unit : kSizes) {
      if (value % unit.scale == 0) {
        return std::to_string(value / unit.scale) + std::string(unit.suffix);
      }
    }
  }
  if (type == KeyType::duration) {
    if (value == 0) return "0s";
    for (const Unit& unit : kDurations) {
      if (value % unit.scale == 0) {
        return std::to_string(value / unit.scale) + std::string(unit.suffix);
      }
    }
  }
  return std::to_string(value);
}

// A whole number and, for sizes and durations, its unit. Text such as "18446744073709551616" or
// "99999999GiB" is out of range, not wrapped.
Result<std::uint64_t> parse_number(const KeyInfo& info, std::string_view text) {
  std::string_view form = "a whole number";
  std::span<const Unit> units;
  if (info.type == KeyType::size) {
    form = "a size such as 65536, 64KiB, 16MiB or 2GiB";
    units = kSizes;
  } else if (info.type == KeyType::duration) {
    form = "a duration such as 500ms, 10s, 2m, 1h or 30d";
    units = kDurations;
  }
  const std::string range =
      number_text(info.type, info.min) + " .. " + number_text(info.type, info.max);
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code == std::errc::invalid_argument) {
    return fail(ErrorCode::invalid, "must be " + std::string(form) + " in " + range);
  }
  const std::string_view suffix(end, static_cast<std::size_t>(last - end));
  std::uint64_t scale = 1;
  if (info.type == KeyType::integer) {
    if (!suffix.empty()) {
      return fail(ErrorCode::invalid, "must be " + std::string(form) + " in " + range);
    }
  } else {
    const auto unit =
        std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.suffix == suffix; });
    if (unit == units.end()) {
      return fail(ErrorCode::invalid, "must be " + std::string(form) + " in " + range);
    }
    scale = unit->scale;
  }
  if (code == std::errc::result_out_of_range || value > info.max / scale ||
      value * scale < info.min) {
    return fail(ErrorCode::invalid, "is out of range: must be in " + range);
  }
  return value * scale;
}

std::string decimal_text(double value) {
  char buffer[32];  // the shortest form of any double fits
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

// A decimal number without an exponent: "2.5", "0.075".
Result<double> parse_decimal(const KeyInfo& info, std::string_view text) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value, std::chars_format::fixed);
  // The first condition keeps "inf" and "nan" out, which from_chars() takes.
  const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const std::string range =
      number_text(info.type, info.min) + " .. " + number_text(info.type, info.max);
  if (!digit || code != std::errc() || end != last) {
    return fail(ErrorCode::invalid, "must be a decimal number in " + range);
  }
  if (value < static_cast<double>(info.min) || value > static_cast<double>(info.max)) {
    return fail(ErrorCode::invalid, "is out of range: must be in " + range);
  }
  return value;
}

Result<void> check_text(const KeyInfo& info, std::string_view text) {
  if (text.size() < info.min) return fail(ErrorCode::invalid, "must not be empty");
  if (text.size() > info.max) {
    return fail(ErrorCode::invalid,
                "is longer than the limit of " + std::to_string(info.max) + " bytes");
  }
  // Also where it comes from a variable: names become labels of metrics and header fields.
  if (!is_utf8(text)) return fail(ErrorCode::invalid, "must be UTF-8");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      return fail(ErrorCode::invalid, "must not contain control characters");
    }
    if (c == ' ' && info.type != KeyType::text) {
      return fail(ErrorCode::invalid, "must not contain spaces");
    }
  }
  return {};
}

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

template <class Value, class Target>
Result<void> assign(Result<Value> parsed, Target& target) {
  if (!parsed) return tl::make_unexpected(std::move(parsed.error()));
  target = std::move(*parsed);
  return {};
}

}  // namespace

Result<void> set_slot(const KeyInfo& info, const Slot& slot, std::string_view text) {
  return std::visit(
      Overloaded{
          [&](std::string* target) -> Result<void> {
            auto checked = check_text(info, text);
            if (checked) *target = text;
            return checked;
          },
          [&](bool* target) -> Result<void> {
            if (text != "true" && text != "false") {
              return fail(ErrorCode::invalid, "must be true or false");
            }
            *target = text == "true";
            return {};
          },
          [&](std::uint64_t* target) { return assign(parse_number(info, text), *target); },
          [&](double* target) { return assign(parse_decimal(info, text), *target); },
          [&](std::chrono::milliseconds* target) -> Result<void> {
            const auto parsed = parse_number(info, text);
            if (!parsed) return tl::make_unexpected(parsed.error());
            *target = std::chrono::milliseconds(*parsed);
            return {};
          },
          [&](std::optional<CachePolicy>* target) {
            return assign(parse_choice<CachePolicy>(text), *target);
          },
          [&]<ConfigEnum Enum>(Enum* target) { return assign(parse_choice<Enum>(text), *target); },
          [&]<class T>(std::vector<T>*) -> Result<void> {
            throw std::logic_error("lists and mappings are set item by item");
          },
      },
      slot);
}

bool same_value(const Slot& a, const Slot& b) {
  return std::visit([&]<class T>(T* value) { return *value == **std::get_if<T*>(&b); }, a);
}

std::string limits_text(const KeyInfo& info, const Slot& slot) {
  const std::string bytes = "up to " + std::to_string(info.max) + " bytes";
  switch (info.type) {
    case KeyType::integer:
    case KeyType::number:
    case KeyType::size:
    case KeyType::duration:
      return number_text(info.type, info.min) + " .. " + number_text(info.type, info.max);
    case KeyType::boolean:
      return "true, false";
    case KeyType::choice:
      return std::visit(
          Overloaded{
              []<ConfigEnum Enum>(Enum*) { return choice_list<Enum>(); },
              []<ConfigEnum Enum>(std::optional<Enum>*) { return choice_list<Enum>(); },
              [](auto*) { return std::string(); },
          },
          slot);
    case KeyType::text:
    case KeyType::name:
    case KeyType::secret:
      return bytes;
    case KeyType::texts:
    case KeyType::names:
    case KeyType::secrets:
    case KeyType::mapping:
    case KeyType::headers:
      return "up to " + std::to_string(kMaxListItems) + " of " + bytes;
  }
  return "";
}

std::string value_text(const KeyInfo& info, const Slot& slot) {
  return std::visit(
      Overloaded{
          [](std::string* value) { return *value; },
          [](bool* value) { return std::string(*value ? "true" : "false"); },
          [&](std::uint64_t* value) { return number_text(info.type, *value); },
          [](double* value) { return decimal_text(*value); },
          [&](std::chrono::milliseconds* value) {
            return number_text(info.type, static_cast<std::uint64_t>(value->count()));
          },
          [](std::optional<CachePolicy>* value) {
            return *value ? std::string(choice_text(**value)) : std::string();
          },
          []<ConfigEnum Enum>(Enum* value) { return std::string(choice_text(*value)); },
          []<class T>(std::vector<T>*) { return std::string(); },
      },
      slot);
}

}  // namespace fixpoint::config

namespace fixpoint {

std::string_view to_string(CachePolicy value) {
  return config::choice_text(value);
}
std::string_view to_string(ReproMode value) {
  return config::choice_text(value);
}
std::string_view to_string(LogLevel value) {
  return config::choice_text(value);
}
std::string_view to_string(LogFormat value) {
  return config::choice_text(value);
}
std::string_view to_string(UpstreamKind value) {
  return config::choice_text(value);
}
std::string_view to_string(LogprobCapture value) {
  return config::choice_text(value);
}
std::string_view to_string(TextCapture value) {
  return config::choice_text(value);
}
std::string_view to_string(ReplayPace value) {
  return config::choice_text(value);
}

}  // namespace fixpoint
