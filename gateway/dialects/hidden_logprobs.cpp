#include "gateway/dialects/hidden_logprobs.hpp"

#include <algorithm>
#include <vector>

#include "cache/base/json_scanner.hpp"

namespace fixpoint {
namespace {

// Finds the log-probabilities in an answer's text, and what stands for none in their place.
class Finder {
 public:
  struct Found {
    std::size_t begin, end;
    std::string_view instead;
  };

  explicit Finder(std::string_view text) : scanner_(text, *this, true) {}
  // Nothing for what is no JSON: an end marker.
  std::vector<Found> run() {
    if (!scanner_.scan()) found_.clear();
    return std::move(found_);
  }

  bool null() { return scalar(); }
  bool boolean(bool) { return scalar(); }
  bool number(std::string_view, bool) { return scalar(); }
  bool string(const JsonString&) { return scalar(); }
  bool key(const JsonString& name) {
    name_ = name.plain ? std::string(name.raw) : decode_json_string(name);
    return true;
  }
  bool start_object() { return open(true); }
  bool start_array() { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

 private:
  struct Level {
    bool known = false;  // log-probabilities may be in it
    bool is_object = false;
    bool in_choices = false;
    bool in_list = false;      // an array, or in one
    std::string_view instead;  // of the whole; empty: it stays
    std::size_t begin = 0;
  };

  // What the value that begins here is replaced by.
  std::string_view instead() const {
    if (levels_.empty() || !levels_.back().known || !levels_.back().is_object) return {};
    if (name_ == "logprobs") return levels_.back().in_choices ? "null" : "[]";
    return name_ == "top_logprobs" && !levels_.back().in_list ? "0" : "";
  }
  bool scalar() {
    if (const auto text = instead(); !text.empty()) {
      found_.push_back({scanner_.value_begin(), scanner_.position(), text});
    }
    return true;
  }
  bool open(bool is_object) {
    // Where answers, and the events of a Responses stream, have texts with log-probabilities.
    constexpr std::string_view kNames[] = {"choices",  "output", "content",
                                           "response", "item",   "part"};
    Level level;
    if (levels_.empty()) {
      level.known = is_object;
    } else {
      const Level& outer = levels_.back();
      level = {outer.known, false, outer.in_choices, outer.in_list, {}, 0};
      if (outer.is_object) {
        level.known = outer.known &&
                      std::find(std::begin(kNames), std::end(kNames), name_) != std::end(kNames);
        level.in_choices = outer.in_choices || name_ == "choices";
      }
    }
    level.is_object = is_object;
    level.in_list = level.in_list || !is_object;
    level.instead = instead();
    level.begin = scanner_.value_begin();
    levels_.push_back(level);
    return true;
  }
  bool close() {
    const Level& level = levels_.back();
    if (!level.instead.empty()) {
      found_.push_back({level.begin, scanner_.position(), level.instead});
    }
    levels_.pop_back();
    return true;
  }

  JsonScanner<Finder> scanner_;
  std::vector<Level> levels_;  // of the open containers
  std::string name_;           // of the last member
  std::vector<Found> found_;   // in order, none within another
};

}  // namespace

std::string without_logprobs(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string out;
  std::size_t at = 0;
  for (const auto& [begin, end, instead] : Finder(text).run()) {
    out.append(text.substr(at, begin - at)).append(instead);
    at = end;
  }
  return out.append(text.substr(at));
}

}  // namespace fixpoint
