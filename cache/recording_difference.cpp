#include "cache/recording_difference.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/entry_json.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 5;
constexpr std::size_t kShownBytes = 60;

std::string shortened(const json* value) {
  if (value == nullptr) return "nothing";
  std::string text = value->dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kShownBytes) return text;
  std::size_t end = kShownBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole letters
  return text.substr(0, end) + "...";
}

// Counts the differing members; the first few get a text.
class Differences {
 public:
  // Null: there is no such member. The depth is that of a request, which has a limit.
  void compare(const std::string& path, const json* recorded, const json* asked) {
    if (recorded != nullptr && asked != nullptr && recorded->type() == asked->type()) {
      if (recorded->is_object()) {
        compare_objects(path, *recorded, *asked);
        return;
      }
      if (recorded->is_array()) {
        compare_arrays(path, *recorded, *asked);
        return;
      }
      if (*recorded == *asked) return;
    }
    if (recorded != nullptr && asked != nullptr && recorded->is_number() && asked->is_number() &&
        *recorded == *asked) {
      return;
    }
    if (++count_ > kShown) return;
    texts_ += texts_.empty() ? "" : ", ";
    texts_ += path + " (recorded " + shortened(recorded) + ", asked " + shortened(asked) + ")";
  }
  std::size_t count() const { return count_; }

  std::string text() const {
    if (count_ == 0) return "nothing but the spelling of a value";
    if (count_ <= kShown) return texts_;
    return texts_ + " and " + std::to_string(count_ - kShown) + " more";
  }

 private:
  static const json* member(const json& object, const std::string& name) {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }
  void compare_objects(const std::string& path, const json& recorded, const json& asked) {
    std::set<std::string> names;
    for (const auto& [name, value] : recorded.items()) names.insert(name);
    for (const auto& [name, value] : asked.items()) names.insert(name);
    // The request's members stand for themselves: they are what a test's author wrote.
    const std::string prefix = path.empty() || path == "request" ? "" : path + ".";
    for (const std::string& name : names) {
      compare(prefix + name, member(recorded, name), member(asked, name));
    }
  }
  void compare_arrays(const std::string& path, const json& recorded, const json& asked) {
    for (std::size_t i = 0; i < std::max(recorded.size(), asked.size()); ++i) {
      compare(path + "[" + std::to_string(i) + "]", i < recorded.size() ? &recorded[i] : nullptr,
              i < asked.size() ? &asked[i] : nullptr);
    }
  }

  std::size_t count_ = 0;
  std::string texts_;
};

}  // namespace

std::string nearest_difference(
    std::string_view material,
    const std::vector<std::pair<std::string, std::string_view>>& recordings) {
  const json asked = json::parse(material_to_json(material), nullptr, false);
  const std::string* nearest = nullptr;
  Differences fewest;
  for (const auto& [file, recorded_material] : recordings) {
    const json recorded = json::parse(material_to_json(recorded_material), nullptr, false);
    Differences differences;
    differences.compare("", &recorded, &asked);
    const bool nearer = nearest == nullptr || differences.count() < fewest.count() ||
                        (differences.count() == fewest.count() && file < *nearest);
    if (!nearer) continue;
    nearest = &file;
    fewest = std::move(differences);
  }
  if (nearest == nullptr) return "";
  return "the nearest recording is " + *nearest + ", which differs in " + fewest.text();
}

}  // namespace fixpoint
