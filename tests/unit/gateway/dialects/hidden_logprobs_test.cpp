#include "gateway/dialects/hidden_logprobs.hpp"

#include <gtest/gtest.h>

namespace fixpoint {
namespace {

std::string without(const char* text) {
  Json json = Json::parse(text);
  take_out_logprobs(json);
  return json.dump();
}

TEST(HiddenLogprobs, AreNullInChoices) {
  EXPECT_EQ(without(R"({"choices":[{"logprobs":{"content":[]},"index":0},{"delta":{}}]})"),
            R"({"choices":[{"logprobs":null,"index":0},{"delta":{}}]})");
}

TEST(HiddenLogprobs, AreEmptyInResponses) {
  EXPECT_EQ(without(R"({"top_logprobs":5,"output":[{"content":[{"text":"a","logprobs":[1]}]}]})"),
            R"({"top_logprobs":0,"output":[{"content":[{"text":"a","logprobs":[]}]}]})");
  EXPECT_EQ(without(R"({"type":"response.output_text.delta","delta":"a","logprobs":[1]})"),
            R"({"type":"response.output_text.delta","delta":"a","logprobs":[]})");
  EXPECT_EQ(without(R"({"part":{"text":"a","logprobs":[1]}})"),
            R"({"part":{"text":"a","logprobs":[]}})");
  EXPECT_EQ(without(R"({"item":{"content":[{"logprobs":[1]}]}})"),
            R"({"item":{"content":[{"logprobs":[]}]}})");
  EXPECT_EQ(without(R"({"response":{"output":[{"content":[{"logprobs":[1]}]}]}})"),
            R"({"response":{"output":[{"content":[{"logprobs":[]}]}]}})");
}

TEST(HiddenLogprobs, MembersOfOthersStay) {
  constexpr const char* kAnswer =
      R"({"output":[],"metadata":{"logprobs":"x"},"tools":[{"parameters":{"properties":{"logprobs":{"type":"string"}}}}]})";
  EXPECT_EQ(without(kAnswer), kAnswer);
  EXPECT_EQ(without("[1]"), "[1]");
}

}  // namespace
}  // namespace fixpoint
