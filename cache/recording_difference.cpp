#include "cache/recording_difference.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "cache/base/canonical_json.hpp"
#include "cache/entry_json.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 5;
constexpr std::size_t kShownBytes = 60;
constexpr std::size_t kShownBefore = 20;  // of them, what both values begin with

std::string text_of(const json* value) {
  if (value == nullptr) return "nothing";
  return value->dump(-1, ' ', false, json::error_handler_t::replace);
}

// The beginning of the letter that has this byte.
std::size_t letter_at(const std::string& text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

// From `begin` on; kShownBytes at most.
std::string excerpt(const std::string& text, std::size_t begin) {
  if (begin == 0 && text.size() <= kShownBytes) return text;
  std::string shown = begin == 0 ? "" : "...";
  const std::size_t left = kShownBytes - shown.size();
  if (text.size() - begin <= left) return shown + text.substr(begin);
  const std::size_t end = letter_at(text, begin + left - 3);
  return shown + text.substr(begin, end - begin) + "...";
}

std::string both_texts(const json* recorded, const json* asked) {
  const std::string one = text_of(recorded), other = text_of(asked);
  std::size_t begin = 0;
  if (one.size() > kShownBytes && other.size() > kShownBytes) {
    const auto differs = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
    const auto same = static_cast<std::size_t>(differs - one.begin());
    begin = same <= kShownBefore ? 0 : letter_at(one, same - kShownBefore);
  }
  return "recorded " + excerpt(one, begin) + ", asked " + excerpt(other, begin);
}

// What a string holds that is the text of an object or an array; nothing for all else.
std::optional<json> held_in(const json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const bool structure = text.starts_with('{') || text.starts_with('[');
  // With the limits of a request, which it came in.
  if (!structure || !canonical_json(text)) return std::nullopt;
  return json::parse(text, nullptr, false);
}

// Counts the differing members; the first few get a text.
class Differences {
 public:
  // Null: there is no such member. The depth is that of a request, which has a limit, as JSON in a
  // string has.
  void compare(const std::string& path, const json* recorded, const json* asked) {
    if (recorded != nullptr && asked != nullptr && compare_held(path, *recorded, *asked)) return;
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
    texts_ += path + " (" + both_texts(recorded, asked) + ")";
  }
  std::size_t count() const { return count_; }

  std::string text() const {
    if (count_ == 0) return "nothing but the spelling of a value";
    if (count_ <= kShown) return texts_;
    return texts_ + " and " + std::to_string(count_ - kShown) + " more";
  }

 private:
  // What strings hold on one side or both. false: there is nothing to compare in that way.
  bool compare_held(const std::string& path, const json& recorded, const json& asked) {
    if (recorded.is_string() && recorded == asked) return true;
    const std::optional<json> one = held_in(recorded), other = held_in(asked);
    const json& recorded_value = one ? *one : recorded;
    const json& asked_value = other ? *other : asked;
    if ((!one && !other) || recorded_value.type() != asked_value.type()) return false;
    compare(path, &recorded_value, &asked_value);
    return true;
  }
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

// A key's parts, and what its client asked.
struct Parts {
  json material;
  json asked = json::object();
};

Parts parts_of(const CacheKey& key) {
  Parts parts;
  parts.material = json::parse(material_to_json(key.material), nullptr, false);
  if (!key.asked.empty()) parts.asked = json::parse(key.asked, nullptr, false);
  // A recording's key has no tenants: what is there is the digest of the deciding headers.
  const bool none = parts.material.is_object() && parts.material.value("tenant", json()) == "";
  if (none && parts.asked.is_object()) parts.asked.emplace("headers", json::object());
  return parts;
}

// Where both sides have a member of what was asked, it takes the place of what was made of it.
void show_what_was_asked(Parts& one, Parts& other) {
  if (!one.material.is_object() || !other.material.is_object()) return;
  for (const char* name : {"headers", "request"}) {
    if (!one.asked.contains(name) || !other.asked.contains(name)) continue;
    for (Parts* side : {&one, &other}) {
      json& material = side->material;
      material[name] = std::move(side->asked[name]);
      if (name == std::string_view("headers")) {
        material.erase("tenant");
        continue;
      }
      material.erase("tokens");
      material.erase("parameters");
      // Of an answer that echoes its request there is the digest behind it.
      if (json& endpoint = material["endpoint"]; endpoint.is_string()) {
        endpoint = endpoint.get<std::string>().substr(0, endpoint.get<std::string>().find('#'));
      }
    }
  }
}

Differences differences_of(const CacheKey& recorded, const Parts& asked) {
  Parts one = parts_of(recorded), other = asked;
  show_what_was_asked(one, other);
  Differences differences;
  differences.compare("", &one.material, &other.material);
  if (differences.count() == 0) {
    // The same request, of which something else was made.
    one = parts_of(recorded);
    differences.compare("", &one.material, &asked.material);
  }
  return differences;
}

}  // namespace

std::string nearest_difference(
    const CacheKey& key, const std::vector<std::pair<std::string, const CacheKey*>>& recordings) {
  const Parts asked = parts_of(key);
  const std::string* nearest = nullptr;
  Differences fewest;
  for (const auto& [file, recorded] : recordings) {
    Differences differences = differences_of(*recorded, asked);
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
