// Translating requests in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/dialects/translate.hpp"

namespace fixpoint::test {

constexpr auto kChat = Endpoint::chat_completions;
constexpr auto kMessages = Endpoint::messages;
constexpr auto kResponses = Endpoint::responses;

inline Json translated(Endpoint from, Endpoint to, const std::string& json,
                       std::vector<std::string> dropped = {}) {
  const auto result = translate_request(from, to, Json::parse(json));
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  if (!result) return {};
  EXPECT_EQ(result->dropped, dropped);
  return result->body;
}

// The member that the request is refused for; empty: it is not.
inline std::string refused(Endpoint from, Endpoint to, const Json& body) {
  const auto result = translate_request(from, to, body);
  if (result) return {};
  EXPECT_NE(result.error().message.find("'" + result.error().param + "'"), std::string::npos)
      << result.error().message;
  return result.error().param;
}

inline void expect_same(const Json& actual, const std::string& expected) {
  EXPECT_EQ(nlohmann::json(actual), nlohmann::json::parse(expected)) << actual.dump(1);
}

}  // namespace fixpoint::test
