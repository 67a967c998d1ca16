#include "gateway/dialects/hidden_logprobs.hpp"

#include <gtest/gtest.h>

namespace fixpoint {
namespace {

constexpr auto without = without_logprobs;

TEST(HiddenLogprobs, AreNullInChoices) {
  EXPECT_EQ(without(R"({"choices":[{"logprobs":{"content":[]},"index":0},{"delta":{}}]})"),
            R"({"choices":[{"logprobs":null,"index":0},{"delta":{}}]})");
  EXPECT_EQ(without("{\"choices\":[{\"log\\u0070robs\":{\"a\":[1]}},{\"logprobs\":null}]}"),
            "{\"choices\":[{\"log\\u0070robs\":null},{\"logprobs\":null}]}");
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
  EXPECT_EQ(without("[DONE]"), "[DONE]");
}

TEST(HiddenLogprobs, AllElseStaysAsItIsSpelled) {
  EXPECT_EQ(without("\xEF\xBB\xBF{ \"big\": 123456789012345678901234567890, \"g\":1e-400,\r\n"
                    "\"choices\":[ {\"logprobs\": {\"content\": []} ,\"t\":\"\\ud83d\\/\"} ] }"),
            "{ \"big\": 123456789012345678901234567890, \"g\":1e-400,\r\n"
            "\"choices\":[ {\"logprobs\": null ,\"t\":\"\\ud83d\\/\"} ] }");
}

}  // namespace
}  // namespace fixpoint
