#include "gateway/json_guard.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cache/base/json_scanner.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;

// Objects up to this size are searched for a repeated name one member after another.
constexpr std::size_t kFewMembers = 32;

// Builds the tree from the scanner's tokens, and stops at the first limit. Members and items of
// open containers lie on two stacks; a container takes its own when it ends, so that it is
// allocated once and at its size.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const JsonLimits& limits, bool allow_lone_surrogates)
      : limits_(limits), scanner_(text, *this, allow_lone_surrogates) {
    frames_.reserve(8);
    values_.reserve(16);
    names_.reserve(16);
  }

  Result<Json> run() {
    if (scanner_.scan()) return std::move(values_.back());
    if (!problem_.empty()) return fail(ErrorCode::invalid, std::move(problem_));
    const char* const what = scanner_.too_deep() ? "is " : "is not JSON: ";
    return fail(ErrorCode::invalid, what + scanner_.error());
  }

  bool exact() const { return !scanner_.saw_lone_surrogate(); }

  bool null() { return value(nullptr); }
  bool boolean(bool given) { return value(given); }
  bool string(const JsonString& given) {
    return value(given.plain ? std::string(given.raw) : decode_json_string(given));
  }

  // As nlohmann does: 64 bits where an integer fits, else the nearest double.
  bool number(std::string_view digits, bool is_integer) {
    const char* const end = digits.data() + digits.size();
    if (is_integer && digits.starts_with('-')) {
      std::int64_t whole = 0;
      if (std::from_chars(digits.data(), end, whole).ec == std::errc{}) return value(whole);
    } else if (is_integer) {
      std::uint64_t whole = 0;
      if (std::from_chars(digits.data(), end, whole).ec == std::errc{}) return value(whole);
    }
    double real = 0;
    if (std::from_chars(digits.data(), end, real).ec != std::errc{}) {
      // Beyond the range, or nearer to zero than any double; from_chars does not say which.
      real = std::strtod(std::string(digits).c_str(), nullptr);
      if (!std::isfinite(real)) {
        problem_ = "has a number beyond the range of a double";
        return false;
      }
    }
    return value(real);
  }

  bool key(const JsonString& name) {
    if (++frames_.back().members > limits_.members_per_object) {
      return stop("an object with more than ", limits_.members_per_object, " members");
    }
    if (++members_ > limits_.members) return stop("more than ", limits_.members, " members in all");
    names_.push_back(name.plain ? std::string(name.raw) : decode_json_string(name));
    return true;
  }

  bool start_object() { return open(); }
  bool start_array() { return open(); }

  bool end_object() {
    const std::size_t count = frames_.back().members;
    const std::size_t first = values_.size() - count, first_name = names_.size() - count;
    Json::object_t object;
    object.reserve(count);
    const bool many = count > kFewMembers;
    const std::vector<bool> repeated = many ? settle_repeated(count) : std::vector<bool>();
    for (std::size_t i = 0; i < count; ++i) {
      if (many && repeated[i]) continue;
      std::string& name = names_[first_name + i];
      Json& given = values_[first + i];
      if (Json* earlier = many ? nullptr : find(object, name)) {
        *earlier = std::move(given);
      } else {
        object.emplace_back(std::move(name), std::move(given));
      }
    }
    names_.resize(first_name);
    values_.resize(first);
    frames_.pop_back();
    values_.emplace_back(std::move(object));
    return true;
  }

  bool end_array() {
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(frames_.back().items);
    Json::array_t array(std::make_move_iterator(first), std::make_move_iterator(values_.end()));
    values_.erase(first, values_.end());
    frames_.pop_back();
    values_.emplace_back(std::move(array));
    return true;
  }

 private:
  struct Frame {
    std::size_t members = 0;  // names read, of an object
    std::size_t items = 0;    // values read
  };

  template <class Value>
  bool value(Value&& given) {
    if (!count()) return false;
    values_.emplace_back(std::forward<Value>(given));
    return true;
  }

  bool open() {
    if (frames_.size() == limits_.depth) {
      problem_ = "is nested deeper than " + std::to_string(limits_.depth) + " levels";
      return false;
    }
    if (!count()) return false;
    frames_.emplace_back();
    return true;
  }

  bool count() {
    if (!frames_.empty()) ++frames_.back().items;
    return ++values_seen_ <= limits_.values || stop("more than ", limits_.values, " values");
  }

  static Json* find(Json::object_t& object, const std::string& name) {
    for (auto& member : object) {
      if (member.first == name) return &member.second;
    }
    return nullptr;
  }

  // Of the last `count` members: gives each name's last value to its first place, and marks the
  // others. By sorting: a hash could be made to collide.
  std::vector<bool> settle_repeated(std::size_t count) {
    const std::size_t first = values_.size() - count, first_name = names_.size() - count;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = names_[first_name + a].compare(names_[first_name + b]);
      return compared != 0 ? compared < 0 : a < b;
    });
    std::vector<bool> repeated(count);
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && names_[first_name + order[end]] == names_[first_name + order[begin]]) {
        repeated[order[end++]] = true;
      }
      if (end - begin > 1) {
        values_[first + order[begin]] = std::move(values_[first + order[end - 1]]);
      }
      begin = end;
    }
    return repeated;
  }

  bool stop(const char* what, std::size_t limit, const char* of) {
    problem_ = std::string("has ") + what + std::to_string(limit) + of;
    return false;
  }

  const JsonLimits& limits_;
  JsonScanner<TreeBuilder> scanner_;
  std::vector<Frame> frames_;  // of the open containers
  std::vector<Json> values_;
  std::vector<std::string> names_;
  std::size_t members_ = 0, values_seen_ = 0;
  std::string problem_;
};

// RFC 8259, 8.1: it may be ignored.
std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace

Result<nlohmann::ordered_json> parse_json(std::string_view text, const JsonLimits& limits) {
  return TreeBuilder(without_byte_order_mark(text), limits, false).run();
}

Result<nlohmann::ordered_json> parse_answer(std::string_view text, bool* exact) {
  TreeBuilder builder(without_byte_order_mark(text), kAnswerLimits, true);
  auto answer = builder.run();
  if (exact && !builder.exact()) *exact = false;
  return answer;
}

}  // namespace fixpoint
