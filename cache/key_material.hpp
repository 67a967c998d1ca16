// The parts of a key's material (key.hpp), for people to read and compare.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint {

struct KeyPart {
  std::string name;
  std::string value;  // any bytes
};
struct KeyMaterial {
  std::string domain;  // the first line: the version of the key's form
  std::vector<KeyPart> parts;
};

// Nothing when join_material() would not give the same bytes again.
std::optional<KeyMaterial> parse_material(std::string_view material);
std::string join_material(const KeyMaterial& material);

}  // namespace fixpoint
