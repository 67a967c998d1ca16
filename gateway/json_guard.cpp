#include "gateway/json_guard.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/base/json_scanner.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;

// Objects up to this size are searched for duplicates one member after another.
constexpr std::size_t kFewMembers = 32;

// Builds the tree from the scanner's tokens, and stops at the first limit. Members and items of
// open containers lie on two stacks; a container takes its own when it ends, so that it is
// allocated once and at its size.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const JsonLimits& limits)
      : limits_(limits), scanner_(text, *this) {
    frames_.reserve(8);
    values_.reserve(16);
    names_.reserve(16);
  }

  Result<Json> run() {
    if (scanner_.scan()) return std::move(values_.back());
    if (!problem_.empty()) return fail(ErrorCode::invalid, std::move(problem_));
    const auto& error = scanner_.error();
    const bool too_deep = error.starts_with("nested");
    return fail(ErrorCode::invalid, (too_deep ? "is " : "is not JSON: ") + error);
  }

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
    const std::size_t first = values_.size() - frames_.back().members;
    const std::size_t first_name = names_.size() - frames_.back().members;
    Json::object_t object;
    object.reserve(frames_.back().members);
    std::unordered_map<std::string_view, std::size_t> places;  // of names_, once there are many
    for (std::size_t i = 0; i < frames_.back().members; ++i) {
      std::string& name = names_[first_name + i];
      Json& given = values_[first + i];
      if (Json* earlier = find(object, places, name)) {  // the last one counts
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
      return stop("nesting deeper than ", limits_.depth, " levels");
    }
    if (!count()) return false;
    frames_.emplace_back();
    return true;
  }

  bool count() {
    if (!frames_.empty()) ++frames_.back().items;
    return ++values_seen_ <= limits_.values || stop("more than ", limits_.values, " values");
  }

  // The member of that name among those that `object` has already.
  static Json* find(Json::object_t& object,
                    std::unordered_map<std::string_view, std::size_t>& places,
                    const std::string& name) {
    if (object.size() < kFewMembers) {
      for (auto& member : object) {
        if (member.first == name) return &member.second;
      }
      return nullptr;
    }
    // The object was reserved at its full size: its members, and so their names, stay in place.
    const auto members = object.begin();
    while (places.size() < object.size()) {
      const std::size_t i = places.size();
      places.emplace(members[static_cast<std::ptrdiff_t>(i)].first, i);
    }
    const auto found = places.find(name);
    return found == places.end() ? nullptr
                                 : &members[static_cast<std::ptrdiff_t>(found->second)].second;
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

}  // namespace

Result<nlohmann::ordered_json> parse_json(std::string_view text, const JsonLimits& limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // RFC 8259, 8.1: may be ignored
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return TreeBuilder(text, limits).run();
}

}  // namespace fixpoint
