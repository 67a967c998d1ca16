#include "gateway/api/token_estimate.hpp"

#include <gtest/gtest.h>

#include <string>

namespace fixpoint {
namespace {

const std::string kBytes(2'000'000, 'A');  // base64 of something

std::uint64_t of_content(const std::string& part) {
  return estimate_prompt_tokens(R"({"model":"m","messages":[{"role":"user","content":[)" + part +
                                "]}]}");
}

TEST(TokenEstimate, TextIsATokenForFourBytes) {
  const std::string text(400'000, 'x');
  for (const std::string& part : {R"({"type":"text","text":")" + text + "\"}", '"' + text + '"'}) {
    EXPECT_NEAR(static_cast<double>(of_content(part)), 100'000, 50);
  }
}

TEST(TokenEstimate, ImagesAudioAndFilesCountAFlatNumberEach) {
  const std::string url = R"("data:image/png;base64,)" + kBytes + '"', bytes = '"' + kBytes + '"';
  for (
      const std::string& part : {
          R"({"type":"image_url","image_url":{"url":)" + url + "}}",
          R"({"type":"image_url","image_url":{"detail":"high","url":"https://example.com/a.png"}})" +
              std::string(),
          R"({"type":"input_image","image_url":)" + url + "}",
          R"({"type":"input_audio","input_audio":{"format":"wav","data":)" + bytes + "}}",
          R"({"type":"file","file":{"file_data":)" + url + "}}",
          R"({"type":"input_file","filename":"a.pdf","file_data":)" + bytes + "}",
          R"({"type":"image","source":{"type":"base64","data":)" + bytes + "}}",
          R"({"type":"video_url","video_url":{"url":)" + url + "}}",
      }) {
    EXPECT_NEAR(static_cast<double>(of_content(part)), 1000, 60) << part.substr(0, 60);
    EXPECT_NEAR(static_cast<double>(of_content(part + ',' + part)), 2000, 90);
  }
}

TEST(TokenEstimate, TextInTheirPlacesIsText) {
  std::string text = "data:image/png;base64, is how it begins.";
  while (text.size() < 40'000) text += " And so it goes on.";
  for (const std::string& part :
       {R"({"type":"document","source":{"type":"text","data":")" + text + "\"}}",
        R"({"type":"text","text":")" + text + "\"}",
        R"({"type":"tool_use","input":{"data":")" + std::string(40'000, 'x') + "\"}}"}) {
    EXPECT_GT(of_content(part), 9'900U) << part.substr(0, 60);
  }
}

TokenCounts expected(Endpoint endpoint, const std::string& members) {
  Request request;
  request.body = R"({"model":"m","messages":[{}],"prompt":"x","input":"x")" + members + '}';
  const auto read = read_request(endpoint, request);
  EXPECT_TRUE(read) << members;
  return expected_tokens(*read, request.body);
}

TEST(TokenEstimate, ACompletionIsAsLongAsTheRequestAllows) {
  const auto chat = [](const std::string& members) {
    return expected(Endpoint::chat_completions, members).completion;
  };
  EXPECT_EQ(chat(""), 1000U);
  EXPECT_EQ(chat(R"(,"max_tokens":null)"), 1000U);
  EXPECT_EQ(chat(R"(,"max_tokens":50)"), 50U);
  EXPECT_EQ(chat(R"(,"max_tokens":50,"max_completion_tokens":7)"), 7U);
  EXPECT_EQ(chat(R"(,"max_tokens":4000)"), 4000U);
  EXPECT_EQ(chat(R"(,"max_tokens":32000)"), 4000U);  // a habit, not a length
  EXPECT_EQ(chat(R"(,"max_tokens":50,"n":3)"), 150U);
  EXPECT_EQ(chat(R"(,"n":3)"), 3000U);
  EXPECT_EQ(chat(R"(,"max_tokens":0.5,"n":0)"), 1000U);
  EXPECT_EQ(chat(R"(,"max_tokens":18446744073709551615,"n":18446744073709551615)"),
            kMaxTokensPerAnswer);
  EXPECT_EQ(expected(Endpoint::completions, R"(,"max_tokens":5,"n":2,"best_of":4)").completion,
            20U);
  EXPECT_EQ(expected(Endpoint::responses, R"(,"max_output_tokens":9)").completion, 9U);
  EXPECT_EQ(expected(Endpoint::messages, R"(,"max_tokens":9)").completion, 9U);
  EXPECT_EQ(expected(Endpoint::embeddings, "").completion, 0U);
  EXPECT_EQ(expected(Endpoint::count_tokens, "").completion, 0U);
}

TEST(TokenEstimate, ThePromptIsTheBodys) {
  const std::string text(4000, 'x');
  const auto counts = expected(Endpoint::embeddings, R"(,"user":")" + text + '"');
  EXPECT_NEAR(static_cast<double>(counts.prompt), 1000, 30);
}

}  // namespace
}  // namespace fixpoint
