#include "cache/json_text.hpp"

#include <nlohmann/json.hpp>

namespace fixpoint {
namespace {

constexpr std::size_t kMaxDepth = 100;
// As much as the gateway takes from an upstream: what it answered can be kept as JSON.
constexpr std::size_t kMaxMembers = 4'000'000, kMaxValues = 16'000'000;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Takes the next token off the front of valid JSON: a string, a number or word, or one of []{},:.
// Empty at the end.
std::string_view take_token(std::string_view& json) {
  while (!json.empty() && is_space(json.front())) json.remove_prefix(1);
  if (json.empty()) return {};
  std::size_t size = 1;
  if (json.front() == '"') {
    while (json[size] != '"') size += json[size] == '\\' ? 2 : 1;
    ++size;
  } else if (std::string_view("[]{},:").find(json.front()) == std::string_view::npos) {
    while (size < json.size() && !is_space(json[size]) &&
           std::string_view("[]{},:").find(json[size]) == std::string_view::npos) {
      ++size;
    }
  }
  const std::string_view token = json.substr(0, size);
  json.remove_prefix(size);
  return token;
}

bool opens(std::string_view token) {
  return token == "{" || token == "[";
}
bool closes(std::string_view token) {
  return token == "}" || token == "]";
}

CanonicalOptions options() {
  CanonicalOptions result;
  result.max_depth = kMaxDepth;
  result.max_members = kMaxMembers;
  result.max_values = kMaxValues;
  return result;
}

// `rest` is what follows a '['.
bool is_array_of_numbers(std::string_view rest) {
  for (;;) {
    const std::string_view token = take_token(rest);
    if (token == "]") return true;
    if (token != "," && token.front() != '-' && (token.front() < '0' || token.front() > '9')) {
      return false;
    }
  }
}

}  // namespace

bool is_json(std::string_view text) {
  return canonical_json(text, options()).has_value();
}

std::string layout_json(std::string_view json, JsonLayout layout) {
  const bool lines = layout == JsonLayout::indented || layout == JsonLayout::readable;
  std::string text;
  text.reserve(json.size());
  std::size_t level = 0;
  std::size_t one_line = 0;  // the level of an array of numbers that is being written; 0: none
  const auto new_line = [&] {
    if (lines && one_line == 0) text.append(1, '\n').append(2 * level, ' ');
  };
  std::string_view previous;
  for (std::string_view token = take_token(json); !token.empty(); token = take_token(json)) {
    if (closes(token)) {
      --level;
      if (!opens(previous)) new_line();  // {} and [] stay together
      if (one_line > level) one_line = 0;
    } else if (opens(previous)) {
      new_line();
    } else if (previous == ",") {
      new_line();
      if (layout == JsonLayout::spaced || one_line != 0) text += ' ';
    } else if (previous == ":" && layout != JsonLayout::compact) {
      text += ' ';
    }
    text += token;
    if (opens(token)) {
      ++level;
      if (layout == JsonLayout::readable && one_line == 0 && token == "[" &&
          is_array_of_numbers(json)) {
        one_line = level;
      }
    }
    previous = token;
  }
  return text;
}

Result<std::vector<JsonMember>> json_members(std::string_view json) {
  // A file has an answer and, a level or two deeper, a request, each within its own limits.
  CanonicalOptions whole = options();
  whole.max_depth += 2;
  whole.max_members *= 2;
  whole.max_values *= 2;
  std::vector<JsonMember> members;
  const Result<std::string> canonical = canonical_json(json, whole, &members);
  if (!canonical) return tl::make_unexpected(canonical.error());
  if (!canonical->starts_with('{')) return fail(ErrorCode::invalid, "no object");
  return members;
}

std::optional<std::string> quote_json(std::string_view text) {
  std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (unquote_json(quoted) != text) return std::nullopt;  // something was replaced
  return quoted;
}

std::optional<std::string> unquote_json(std::string_view json) {
  const nlohmann::json value = nlohmann::json::parse(json, nullptr, false);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

}  // namespace fixpoint
