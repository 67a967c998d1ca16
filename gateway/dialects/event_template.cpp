#include "gateway/dialects/event_template.hpp"

#include <algorithm>
#include <array>

namespace fixpoint::dialects {
namespace {

// Walks over valid JSON. Views into the text.
class Walker {
 public:
  Walker(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  // The value at the path, as it is spelled. Of several members with one name the last counts, as
  // for the parser.
  std::optional<std::string_view> find(const JsonPath& path, std::size_t step = 0) {
    space();
    if (step == path.size()) {
      const std::size_t start = at_;
      skip();
      return text_.substr(start, at_ - start);
    }
    const bool array = path[step].empty();
    if (text_[at_] != (array ? '[' : '{')) {
      skip();
      return std::nullopt;
    }
    ++at_;
    std::optional<std::string_view> found;
    for (bool first = true;; first = false) {
      space();
      if (text_[at_] == (array ? ']' : '}')) break;
      if (text_[at_] == ',') {
        ++at_;
        space();
      }
      bool wanted = first;
      if (!array) {
        const std::size_t start = at_;
        skip();
        // Names with escapes are not decoded: such an event is merely parsed.
        wanted = text_.substr(start + 1, at_ - start - 2) == path[step];
        space();
        ++at_;  // the colon
      }
      if (wanted) {
        found = find(path, step + 1);
      } else {
        skip();
      }
    }
    ++at_;
    return found;
  }

 private:
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  void string() {
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }
  void skip() {
    space();
    std::size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
      if (depth == 0 && c != '}' && c != ']') {  // a number or a word
        at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      }
    } while (depth > 0);
  }

  std::string_view text_;
  std::size_t at_;
};

// Length of the UTF-8 character at the front; 0: none (RFC 3629, table of well-formed sequences).
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto next = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return next(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0 && second < 0xA0) return 0;
    if (lead == 0xED && second > 0x9F) return 0;
    return next(1) && next(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0 && second < 0x90) return 0;
    if (lead == 0xF4 && second > 0x8F) return 0;
    return next(1) && next(2) && next(3) ? 4 : 0;
  }
  return 0;
}

constexpr std::string_view kEscaped = "\"\\/bfnrt";
constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";

// Decodes the string body at the front of `text`, up to its closing quote. Its length as spelled;
// nothing: no such string, or one with \u escapes. `out` stays empty if there was nothing to
// decode.
std::optional<std::size_t> string_body(std::string_view text, std::string* out) {
  std::size_t at = 0, copied = 0;
  while (at < text.size() && text[at] != '"') {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20) return std::nullopt;
    if (c >= 0x80) {
      const std::size_t length = character(text.substr(at));
      if (length == 0) return std::nullopt;
      at += length;
    } else if (c == '\\') {
      const std::size_t which =
          at + 1 < text.size() ? kEscaped.find(text[at + 1]) : std::string_view::npos;
      if (which == std::string_view::npos) return std::nullopt;
      if (out) {
        out->append(text, copied, at - copied);
        *out += kMeaning[which];
      }
      at += 2;
      copied = at;
    } else {
      ++at;
    }
  }
  if (at >= text.size()) return std::nullopt;
  if (out && copied > 0) out->append(text, copied, at - copied);
  return at;
}

}  // namespace

void EventTemplate::learn(std::string_view text, const JsonPath& piece,
                          const std::vector<JsonPath>& ignored) {
  forget();
  struct Place {
    std::size_t begin, end;
    Hole hole;
  };
  std::vector<Place> places;
  const auto add = [&](const JsonPath& path, bool is_piece) {
    const auto value = Walker(text, 0).find(path);
    if (!value) return false;
    const auto begin = static_cast<std::size_t>(value->data() - text.data());
    if (value->front() == '"') {
      places.push_back(
          {begin + 1, begin + value->size() - 1, is_piece ? Hole::piece : Hole::string});
      return true;
    }
    // Digits alone: a sign, a point or an exponent would need a number's whole grammar.
    const bool number = value->find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_piece && number) places.push_back({begin, begin + value->size(), Hole::number});
    return false;
  };
  if (!add(piece, true)) return;
  for (const auto& path : ignored) add(path, false);
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  std::size_t at = 0;
  for (const auto& place : places) {
    segments_.push_back({std::string(text.substr(at, place.begin - at)), place.hole});
    at = place.end;
  }
  tail_ = text.substr(at);
}

std::optional<std::string_view> EventTemplate::match(std::string_view text) {
  if (segments_.empty()) return std::nullopt;
  std::string_view piece;
  for (const auto& [literal, hole] : segments_) {
    if (!text.starts_with(literal)) return std::nullopt;
    text.remove_prefix(literal.size());
    std::size_t length = 0;
    if (hole == Hole::number) {
      length = std::min(text.find_first_not_of("0123456789"), text.size());
      // JSON has no leading zeros, and a number of 19 digits is still exact.
      if (length == 0 || length > 19 || (length > 1 && text[0] == '0')) return std::nullopt;
    } else {
      if (hole == Hole::piece) decoded_.clear();
      const auto body = string_body(text, hole == Hole::piece ? &decoded_ : nullptr);
      if (!body) return std::nullopt;
      length = *body;
      // string_body() copies from the first escape on; without one the text stands as it is.
      if (hole == Hole::piece) {
        piece = text.substr(0, length).find('\\') == std::string_view::npos
                    ? text.substr(0, length)
                    : std::string_view(decoded_);
      }
    }
    text.remove_prefix(length);
  }
  if (text != tail_) return std::nullopt;
  return piece;
}

}  // namespace fixpoint::dialects
