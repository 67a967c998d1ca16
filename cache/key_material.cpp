#include "cache/key_material.hpp"

#include <charconv>

namespace fixpoint {

std::optional<KeyMaterial> parse_material(std::string_view text) {
  std::string_view rest = text;
  const std::size_t line = rest.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  KeyMaterial material;
  material.domain = rest.substr(0, line);
  rest.remove_prefix(line + 1);
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    std::size_t length = 0;
    const char* const digits = rest.data() + space + 1;
    const char* const end = rest.data() + rest.size();
    const auto number = std::from_chars(digits, end, length);
    if (number.ec != std::errc() || number.ptr == end || *number.ptr != '\n') return std::nullopt;
    const std::string_view name = rest.substr(0, space);
    rest.remove_prefix(static_cast<std::size_t>(number.ptr + 1 - rest.data()));
    if (rest.size() <= length || rest[length] != '\n') return std::nullopt;
    material.parts.push_back({std::string(name), std::string(rest.substr(0, length))});
    rest.remove_prefix(length + 1);
  }
  if (join_material(material) != text) return std::nullopt;  // lengths with leading zeros
  return material;
}

std::string join_material(const KeyMaterial& material) {
  std::string text = material.domain + '\n';
  for (const KeyPart& part : material.parts) {
    text += part.name;
    text += ' ';
    text += std::to_string(part.value.size());
    text += '\n';
    text += part.value;
    text += '\n';
  }
  return text;
}

}  // namespace fixpoint
