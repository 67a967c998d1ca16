#include "cache/key_material.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "cache/key.hpp"

namespace fixpoint {
namespace {

TEST(KeyMaterial, TakesAKeysMaterialApart) {
  BodyKeyInput input;
  input.tenant = "team";
  input.provider = "openai";
  input.base_url = "https://api.example/v1";
  input.endpoint = "chat.completions";
  input.request = R"({"model": "m", "a": "line\nbreak"})";
  input.sample = 3;
  const Result<CacheKey> key = body_key(input);
  ASSERT_TRUE(key);
  const std::optional<KeyMaterial> material = parse_material(key->material);
  ASSERT_TRUE(material);
  EXPECT_EQ(material->domain, "fixpoint-key-v1");
  const auto part = [&](const std::string& name) {
    const auto found = std::find_if(material->parts.begin(), material->parts.end(),
                                    [&](const KeyPart& each) { return each.name == name; });
    return found == material->parts.end() ? "missing" : found->value;
  };
  EXPECT_EQ(part("kind"), "body");
  EXPECT_EQ(part("tenant"), "team");
  EXPECT_EQ(part("sample"), "3");
  EXPECT_EQ(part("request"), R"({"a":"line\nbreak","model":"m"})");
  EXPECT_EQ(join_material(*material), key->material);
}

TEST(KeyMaterial, TakesNothingElse) {
  for (const char* text : {"", "x", "domain\nname", "domain\nname 3\nab\n", "domain\nname 1\nab\n",
                           "domain\nname 01\na\n", "domain\nname +1\na\n", "domain\nname -1\na\n",
                           "domain\nname 1\na", "domain\nname 99999999999999999999\na\n",
                           "domain\nname 1 \na\n", "domain\nname 18446744073709551615\na\n"}) {
    EXPECT_FALSE(parse_material(text)) << text;
  }
  EXPECT_TRUE(parse_material("domain\n"));
  EXPECT_TRUE(parse_material("domain\nname 0\n\n"));
}

RC_GTEST_PROP(KeyMaterial, PartsOfAnyBytesComeBack, (const std::vector<std::string>& values)) {
  KeyMaterial material{"d", {}};
  for (const std::string& value : values) material.parts.push_back({"n", value});
  const std::optional<KeyMaterial> back = parse_material(join_material(material));
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->parts.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) RC_ASSERT(back->parts[i].value == values[i]);
}

}  // namespace
}  // namespace fixpoint
