// Values of the configuration as text: reading, limits, printing.
#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "gateway/config_keys.hpp"

namespace fixpoint::config {
namespace {

struct Unit {
  std::string_view suffix;
  std::uint64_t scale;
};
// Largest first: printing takes the first one that divides the value.
constexpr std::array kSizes{Unit{"GiB", std::uint64_t{1} << 30}, Unit{"MiB", 1u << 20},
                            Unit{"KiB", 1u << 10}, Unit{"", 1}};
constexpr std::array kDurations{Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1000},
                                Unit{"ms", 1}};

template <class Enum>
struct Choice {
  Enum value;
  std::string_view text;
};
constexpr std::array kPolicies{Choice<CachePolicy>{CachePolicy::automatic, "auto"},
                               Choice<CachePolicy>{CachePolicy::all, "all"},
                               Choice<CachePolicy>{CachePolicy::off, "off"}};
constexpr std::array kReproModes{Choice<ReproMode>{ReproMode::off, "off"},
                                 Choice<ReproMode>{ReproMode::preferred, "preferred"},
                                 Choice<ReproMode>{ReproMode::required, "required"}};
constexpr std::array kLevels{
    Choice<LogLevel>{LogLevel::off, "off"}, Choice<LogLevel>{LogLevel::error, "error"},
    Choice<LogLevel>{LogLevel::warning, "warning"}, Choice<LogLevel>{LogLevel::info, "info"},
    Choice<LogLevel>{LogLevel::debug, "debug"}};

std::span<const Choice<CachePolicy>> choices(CachePolicy) {
  return kPolicies;
}
std::span<const Choice<ReproMode>> choices(ReproMode) {
  return kReproModes;
}
std::span<const Choice<LogLevel>> choices(LogLevel) {
  return kLevels;
}

template <class Enum>
std::string_view choice_text(Enum value) {
  for (const auto& choice : choices(value)) {
    if (choice.value == value) return choice.text;
  }
  return "";
}

template <class Enum>
std::string choice_list(Enum any) {
  std::string list;
  for (const auto& choice : choices(any)) {
    if (!list.empty()) list += ", ";
    list += choice.text;
  }
  return list;
}

template <class Enum>
Result<Enum> parse_choice(std::string_view text, Enum any) {
  for (const auto& choice : choices(any)) {
    if (choice.text == text) return choice.value;
  }
  return fail(ErrorCode::invalid, "must be one of " + choice_list(any));
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
    form = "a duration such as 500ms, 10s, 2m or 1h";
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

Result<void> check_text(const KeyInfo& info, std::string_view text) {
  if (text.size() < info.min) return fail(ErrorCode::invalid, "must not be empty");
  if (text.size() > info.max) {
    return fail(ErrorCode::invalid,
                "is longer than the limit of " + std::to_string(info.max) + " bytes");
  }
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
          [&](std::chrono::milliseconds* target) -> Result<void> {
            const auto parsed = parse_number(info, text);
            if (!parsed) return tl::make_unexpected(parsed.error());
            *target = std::chrono::milliseconds(*parsed);
            return {};
          },
          [&](CachePolicy* target) { return assign(parse_choice(text, *target), *target); },
          [&](std::optional<CachePolicy>* target) {
            return assign(parse_choice(text, CachePolicy::automatic), *target);
          },
          [&](ReproMode* target) { return assign(parse_choice(text, *target), *target); },
          [&](LogLevel* target) { return assign(parse_choice(text, *target), *target); },
          [&](std::vector<NamedValue>*) -> Result<void> {
            return fail(ErrorCode::invalid, "must be a mapping of names to values");
          },
      },
      slot);
}

std::string limits_text(const KeyInfo& info, const Slot& slot) {
  switch (info.type) {
    case KeyType::integer:
    case KeyType::size:
    case KeyType::duration:
      return number_text(info.type, info.min) + " .. " + number_text(info.type, info.max);
    case KeyType::boolean:
      return "true, false";
    case KeyType::choice:
      return std::visit(
          Overloaded{
              [](CachePolicy* any) { return choice_list(*any); },
              [](std::optional<CachePolicy>*) { return choice_list(CachePolicy::automatic); },
              [](ReproMode* any) { return choice_list(*any); },
              [](LogLevel* any) { return choice_list(*any); }, [](auto*) { return std::string(); }},
          slot);
    case KeyType::text:
    case KeyType::name:
    case KeyType::secret:
    case KeyType::headers:
      return "up to " + std::to_string(info.max) + " bytes";
  }
  return "";
}

std::string value_text(const KeyInfo& info, const Slot& slot) {
  return std::visit(Overloaded{
                        [](std::string* value) { return *value; },
                        [](bool* value) { return std::string(*value ? "true" : "false"); },
                        [&](std::uint64_t* value) { return number_text(info.type, *value); },
                        [&](std::chrono::milliseconds* value) {
                          return number_text(info.type, static_cast<std::uint64_t>(value->count()));
                        },
                        [](std::optional<CachePolicy>* value) {
                          return *value ? std::string(choice_text(**value)) : std::string();
                        },
                        [](std::vector<NamedValue>*) { return std::string(); },
                        [](auto* value) { return std::string(choice_text(*value)); },
                    },
                    slot);
}

}  // namespace fixpoint::config

namespace fixpoint {

std::string_view to_string(CachePolicy policy) {
  return config::choice_text(policy);
}
std::string_view to_string(ReproMode mode) {
  return config::choice_text(mode);
}
std::string_view to_string(LogLevel level) {
  return config::choice_text(level);
}

}  // namespace fixpoint
