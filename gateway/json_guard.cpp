#include "gateway/json_guard.hpp"

#include <string>
#include <vector>

namespace fixpoint {
namespace {

using nlohmann::json;

// Counts; stops the parser at the first limit.
class Guard : public nlohmann::json_sax<json> {
 public:
  explicit Guard(const JsonLimits& limits) : limits_(limits) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    if (++open_.back() > limits_.members_per_object) {
      return stop("an object with more than ", limits_.members_per_object, " members");
    }
    return ++members_ <= limits_.members || stop("more than ", limits_.members, " members in all");
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (!problem_.empty()) return false;
    // 406: a number that a double cannot hold.
    problem_ = error.id == 406 ? "has a number beyond the range of a double"
                               : "is not JSON (at byte " + std::to_string(position) + ")";
    return false;
  }

 private:
  bool value() {
    return ++values_ <= limits_.values || stop("more than ", limits_.values, " values");
  }
  bool open() {
    open_.push_back(0);
    if (open_.size() > limits_.depth) return stop("nesting deeper than ", limits_.depth, " levels");
    return value();
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool stop(const char* what, std::size_t limit, const char* of) {
    problem_ = std::string("has ") + what + std::to_string(limit) + of;
    return false;
  }

  const JsonLimits& limits_;
  std::vector<std::size_t> open_;  // members of each object (or nothing of each array) still open
  std::size_t members_ = 0, values_ = 0;
  std::string problem_;
};

}  // namespace

Result<nlohmann::ordered_json> parse_json(std::string_view text, const JsonLimits& limits) {
  Guard guard(limits);
  if (!json::sax_parse(text, &guard)) return fail(ErrorCode::invalid, guard.problem());
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

}  // namespace fixpoint
