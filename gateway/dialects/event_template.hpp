// Most events of a stream differ from the one before in a piece of text and a number or two.
// Recognising them by the bytes around those holes costs a twentieth of parsing them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::dialects {

// A step into a JSON text: a member by name, or (with no name) an array's first item.
using JsonPath = std::vector<std::string_view>;

// What an event was like whose effect, but for its piece of text, may be repeated any number of
// times without changing anything. Not thread-safe.
class EventTemplate {
 public:
  // `text` is valid JSON. `piece`: the string that differs from event to event. `ignored`: strings
  // and numbers that do not matter; those that are not there are left out. Afterwards the template
  // is empty if `piece` is no string.
  void learn(std::string_view text, const JsonPath& piece, const std::vector<JsonPath>& ignored);
  void forget() { segments_.clear(); }
  // The decoded piece of an event that equals the learned one in everything else. Nothing: it may
  // still be such an event, in a spelling that is not recognised (\u escapes, say).
  // The view lives until the next call.
  std::optional<std::string_view> match(std::string_view text);

 private:
  enum class Hole { piece, string, number };
  struct Segment {
    std::string literal;  // before the hole
    Hole hole;
  };
  std::vector<Segment> segments_;
  std::string tail_;     // after the last hole
  std::string decoded_;  // a piece that had escapes
};

}  // namespace fixpoint::dialects
