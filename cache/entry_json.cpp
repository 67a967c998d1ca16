#include "cache/entry_json.hpp"

#include <openssl/evp.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "cache/base/canonical_json.hpp"
#include "cache/base/digest.hpp"
#include "cache/entry_codec.hpp"
#include "cache/json_text.hpp"
#include "cache/key_material.hpp"

namespace fixpoint {
namespace {

constexpr int kFormat = 1;
constexpr std::array kLayouts{std::pair{"compact", JsonLayout::compact},
                              std::pair{"spaced", JsonLayout::spaced},
                              std::pair{"indented", JsonLayout::indented}};

using Members = std::vector<JsonMember>;

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  // It decodes the padding too, to zeros.
  const std::size_t end = text.find_last_not_of('=');
  const std::size_t padding = end == std::string_view::npos ? 0 : text.size() - 1 - end;
  if (padding > 2) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

// A string, or {"base64": "..."} for what is not UTF-8.
std::string bytes_to_json(std::string_view bytes) {
  if (std::optional<std::string> text = quote_json(bytes)) return std::move(*text);
  return R"({"base64":")" + base64(bytes) + "\"}";
}

std::optional<std::string> bytes_from_json(std::string_view json) {
  if (std::optional<std::string> text = unquote_json(json)) return text;
  const Result<Members> members = json_members(json);
  if (!members || members->size() != 1 || members->front().name != "base64") return std::nullopt;
  const std::optional<std::string> text = unquote_json(members->front().value);
  return text ? from_base64(*text) : std::nullopt;
}

class ObjectWriter {
 public:
  void add_json(std::string_view name, std::string_view json) {
    text_ += text_.empty() ? '{' : ',';
    text_ += *quote_json(name);
    text_ += ':';
    text_ += json;
  }
  void add_bytes(std::string_view name, std::string_view bytes) {
    add_json(name, bytes_to_json(bytes));
  }
  void add_number(std::string_view name, std::int64_t value) {
    add_json(name, std::to_string(value));
  }
  std::string finish() { return text_.empty() ? "{}" : std::move(text_) + "}"; }

 private:
  std::string text_;
};

// 4 bytes each, little-endian: the token ids of a prompt key.
std::string tokens_to_json(std::string_view bytes) {
  std::string json = "[";
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      bits |= std::uint32_t{static_cast<unsigned char>(bytes[i + k])} << 8 * k;
    }
    if (i > 0) json += ',';
    json += std::to_string(static_cast<std::int32_t>(bits));
  }
  return json + ']';
}

std::optional<std::string> tokens_from_json(std::string_view json) {
  std::string bytes;
  const std::string compact = layout_json(json, JsonLayout::compact);
  const char* at = compact.data() + 1;  // after the bracket
  const char* const end = compact.data() + compact.size() - 1;
  while (at < end) {
    std::int32_t token = 0;
    const auto number = std::from_chars(at, end, token);
    if (number.ec != std::errc() || (number.ptr != end && *number.ptr != ',')) return std::nullopt;
    const auto bits = static_cast<std::uint32_t>(token);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255);
    at = number.ptr + 1;
  }
  return bytes;
}

std::optional<std::string> part_from_json(std::string_view name, std::string_view json) {
  if (std::optional<std::string> bytes = bytes_from_json(json)) return bytes;
  if (name == "tokens" && json.starts_with('[')) return tokens_from_json(json);
  Result<std::string> canonical = canonical_json(json);
  if (!canonical) return std::nullopt;
  return std::move(*canonical);
}

std::string part_to_json(const KeyPart& part) {
  if (part.name == "tokens" && part.value.size() % 4 == 0) return tokens_to_json(part.value);
  // Structure comes back in its canonical form: what is spelled otherwise ("0.0") stays a string.
  const bool structure = part.value.starts_with('{') || part.value.starts_with('[');
  if (structure && is_json(part.value) && part_from_json(part.name, part.value) == part.value) {
    return part.value;
  }
  return bytes_to_json(part.value);
}

std::optional<std::string> material_from_json(std::string_view json) {
  if (std::optional<std::string> bytes = bytes_from_json(json)) return bytes;
  const Result<Members> members = json_members(json);
  if (!members) return std::nullopt;
  KeyMaterial material;
  for (const auto& [name, value] : *members) {
    std::optional<std::string> part = part_from_json(name, value);
    if (!part) return std::nullopt;
    if (name == "version") {
      material.domain = std::move(*part);
    } else {
      material.parts.push_back({name, std::move(*part)});
    }
  }
  return join_material(material);
}

}  // namespace

std::string material_to_json(std::string_view material) {
  if (const std::optional<KeyMaterial> parsed = parse_material(material)) {
    ObjectWriter object;
    bool names_are_text = true;
    object.add_bytes("version", parsed->domain);
    for (const KeyPart& part : parsed->parts) {
      if (!quote_json(part.name)) {
        names_are_text = false;
        break;
      }
      object.add_json(part.name, part_to_json(part));
    }
    std::string json = object.finish();
    // What has a name twice would not come back.
    if (names_are_text && is_json(json) && material_from_json(json) == material) return json;
  }
  return bytes_to_json(material);
}

namespace {

void add_answer(ObjectWriter& object, const std::string& body) {
  const std::size_t end = body.find_last_not_of(" \t\r\n") + 1;  // 0 if there is nothing else
  const std::string_view json = std::string_view(body).substr(0, end);
  if (!is_json(json)) {
    object.add_bytes("answer_text", body);
    return;
  }
  object.add_json("answer", layout_json(json, JsonLayout::compact));
  for (const auto& [name, layout] : kLayouts) {
    if (layout_json(json, layout) != json) continue;
    if (layout != JsonLayout::compact) object.add_bytes("answer_layout", name);
    if (end < body.size()) object.add_bytes("answer_end", std::string_view(body).substr(end));
    return;
  }
  object.add_bytes("answer_text", body);
}

std::string checksum_of(const Entry& entry) {
  return sha256_hex(encode_entry(entry, std::numeric_limits<std::size_t>::max()));
}

std::string write_entry(const Entry& entry, bool checksum) {
  ObjectWriter object;
  object.add_number("format", kFormat);
  object.add_bytes("key", entry.key.name());
  object.add_bytes("tenant", entry.tenant);
  object.add_bytes("endpoint", entry.endpoint);
  object.add_bytes("model", entry.model);
  object.add_bytes("provider", entry.provider);
  object.add_bytes("generation", entry.generation);
  object.add_number("created_ms", entry.created_ms);
  object.add_number("first_token_ms", entry.first_token_ms);
  object.add_number("total_ms", entry.total_ms);
  if (!entry.pace.empty()) object.add_bytes("pace", entry.pace);
  if (is_json(entry.key.asked)) object.add_json("asked", entry.key.asked);
  object.add_json("material", material_to_json(entry.key.material));
  add_answer(object, *entry.body);
  if (checksum) object.add_bytes("sha256", checksum_of(entry));
  return object.finish();
}

// Reads members, and remembers the first that is missing or wrong.
class ObjectReader {
 public:
  explicit ObjectReader(Members members) : members_(std::move(members)) {}

  const std::string_view* find(std::string_view name) const {
    for (const auto& [member, value] : members_) {
      if (member == name) return &value;
    }
    return nullptr;
  }
  std::string bytes(std::string_view name) {
    const std::string_view* value = find(name);
    std::optional<std::string> bytes = value ? bytes_from_json(*value) : std::nullopt;
    if (bytes) return std::move(*bytes);
    note(name, "a string");
    return {};
  }
  template <class Integer>
  Integer number(std::string_view name) {
    Integer number = 0;
    if (const std::string_view* value = find(name)) {
      const char* const end = value->data() + value->size();
      const auto read = std::from_chars(value->data(), end, number);
      if (read.ec == std::errc() && read.ptr == end) return number;
    }
    note(name, "a whole number in range");
    return 0;
  }
  void note(std::string_view name, const char* expected) {
    if (problem_.empty()) problem_ = "'" + std::string(name) + "' must be " + expected;
  }
  const std::string& problem() const { return problem_; }

 private:
  Members members_;
  std::string problem_;
};

std::string read_answer(ObjectReader& object) {
  const std::string_view* answer = object.find("answer");
  const bool has_text = object.find("answer_text") != nullptr;
  std::string text = has_text ? object.bytes("answer_text") : "";
  if (answer == nullptr) {
    if (!has_text) object.note("answer", "there");
    return text;
  }
  if (!is_json(*answer)) {
    object.note("answer", "JSON without a member twice, and within the limits of an answer");
    return {};
  }
  std::string compact = layout_json(*answer, JsonLayout::compact);
  if (has_text) {
    // Both say the same, or somebody has changed the readable one.
    const bool same = is_json(text) && layout_json(text, JsonLayout::compact) == compact;
    return same ? text : compact;
  }
  const std::string wanted =
      object.find("answer_layout") != nullptr ? object.bytes("answer_layout") : "compact";
  const std::string end = object.find("answer_end") != nullptr ? object.bytes("answer_end") : "";
  for (const auto& [name, layout] : kLayouts) {
    if (name == wanted) return layout_json(*answer, layout) + end;
  }
  object.note("answer_layout", "compact, spaced or indented");
  return {};
}

Result<Entry> read_entry(std::string_view text, bool checksum) {
  const auto invalid = [](const std::string& what) { return fail(ErrorCode::invalid, what); };
  Result<Members> members = json_members(text);
  if (!members) return invalid("not a recorded entry: " + members.error().message);
  ObjectReader object(std::move(*members));
  const int format = object.number<int>("format");
  if (object.problem().empty() && format != kFormat) {
    return invalid("'format' is " + std::to_string(format) + "; this version knows " +
                   std::to_string(kFormat));
  }
  Entry entry;
  const std::string name = object.bytes("key");
  entry.tenant = object.bytes("tenant");
  entry.endpoint = object.bytes("endpoint");
  entry.model = object.bytes("model");
  entry.provider = object.bytes("provider");
  entry.generation = object.bytes("generation");
  entry.created_ms = object.number<std::int64_t>("created_ms");
  entry.first_token_ms = object.number<std::uint32_t>("first_token_ms");
  entry.total_ms = object.number<std::uint32_t>("total_ms");
  if (object.find("pace") != nullptr) entry.pace = object.bytes("pace");
  entry.body = std::make_shared<const std::string>(read_answer(object));
  std::string asked;
  if (const std::string_view* json = object.find("asked")) {
    asked = canonical_json(*json).value_or("");
    if (!asked.starts_with('{')) object.note("asked", "an object");
  }
  const std::string_view* material_json = object.find("material");
  std::optional<std::string> material =
      material_json ? material_from_json(*material_json) : std::nullopt;
  if (!material) object.note("material", "the parts of a key");
  const std::string digest = checksum ? object.bytes("sha256") : "";
  if (!object.problem().empty()) return invalid(object.problem());

  Result<CacheKey> key = parse_key_name(name);
  if (!key) return invalid("'key': " + key.error().message);
  entry.key = std::move(*key);
  entry.key.material = std::move(*material);
  entry.key.asked = std::move(asked);
  const std::string made = sha256_hex(entry.key.material);
  if (made != entry.key.hex) {
    return invalid("'material' gives the digest " + made.substr(0, 12) + "... and not that of '" +
                   "key'");
  }
  if (checksum && checksum_of(entry) != digest) {
    return fail(ErrorCode::corrupt, "'sha256' is not the entry's");
  }
  return entry;
}

}  // namespace

std::string entry_to_json(const Entry& entry) {
  return write_entry(entry, true);
}
Result<Entry> entry_from_json(std::string_view line) {
  return read_entry(line, true);
}

std::string entry_to_recording(const Entry& entry) {
  return layout_json(write_entry(entry, false), JsonLayout::readable) + '\n';
}
Result<Entry> entry_from_recording(std::string_view text) {
  return read_entry(text, false);
}

}  // namespace fixpoint
