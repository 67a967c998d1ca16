// Splits the input into the parts of a key and takes the material apart again: the parts that went
// in must come out, so that no two inputs share a material.
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cache/key.hpp"

namespace {

void expect(bool condition) {
  if (!condition) std::abort();
}

void expect_name(const fixpoint::CacheKey& key) {
  const auto parsed = fixpoint::parse_key_name(key.name());
  expect(parsed && parsed->hex == key.hex && parsed->kind == key.kind);
}

// Takes "name length\nvalue\n" off the front and returns the value.
std::string_view take_part(std::string_view& material, std::string_view name) {
  expect(material.substr(0, name.size()) == name && material[name.size()] == ' ');
  material.remove_prefix(name.size() + 1);
  std::size_t length = 0;
  const auto end = std::from_chars(material.data(), material.data() + material.size(), length).ptr;
  material.remove_prefix(static_cast<std::size_t>(end - material.data()) + 1);
  const std::string_view value = material.substr(0, length);
  expect(value.size() == length && material.size() > length && material[length] == '\n');
  material.remove_prefix(length + 1);
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  (void)fixpoint::parse_key_name(rest);
  std::array<std::string_view, 5> parts;
  for (std::string_view& part : parts) {
    if (rest.empty()) break;
    const std::size_t length = static_cast<unsigned char>(rest[0]);
    part = rest.substr(1, length);
    rest.remove_prefix(1 + part.size());
  }
  const auto& [tenant, provider, base_url, endpoint, request] = parts;

  const auto body = fixpoint::body_key({tenant, provider, base_url, endpoint, request, 3});
  if (body) {
    std::string_view material = body->material;
    constexpr std::string_view kDomain = "fixpoint-key-v1\n";
    expect(material.substr(0, kDomain.size()) == kDomain);
    material.remove_prefix(kDomain.size());
    expect(take_part(material, "kind") == "body");
    expect(take_part(material, "tenant") == tenant);
    expect(take_part(material, "provider") == provider);
    expect(take_part(material, "base_url") == base_url);
    expect(take_part(material, "endpoint") == endpoint);
    expect(take_part(material, "sample") == "3");
    const std::string canonical(take_part(material, "request"));
    expect(material.empty());
    expect_name(*body);
    const auto again = fixpoint::body_key({tenant, provider, base_url, endpoint, canonical, 3});
    expect(again && again->hex == body->hex);
  }
  expect_name(fixpoint::prompt_key({tenant, endpoint, provider, {}, request, 0}));
  return 0;
}
