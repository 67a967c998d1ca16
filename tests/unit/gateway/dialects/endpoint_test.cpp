#include "gateway/dialects/endpoint.hpp"

#include <gtest/gtest.h>

namespace fixpoint {
namespace {

constexpr Endpoint kAll[] = {Endpoint::chat_completions, Endpoint::completions,
                             Endpoint::responses,        Endpoint::embeddings,
                             Endpoint::messages,         Endpoint::count_tokens};

TEST(Endpoints, ArePathsOfTheGatewayAndOfTheirApis) {
  for (const Endpoint endpoint : kAll) {
    const bool openai = api_of(endpoint) == Api::openai;
    const std::string path = (openai ? "/v1" : "") + std::string(endpoint_path(endpoint));
    EXPECT_EQ(endpoint_of_path(path), endpoint) << path;
  }
  EXPECT_EQ(endpoint_path(Endpoint::chat_completions), "/chat/completions");
  EXPECT_EQ(endpoint_path(Endpoint::count_tokens), "/v1/messages/count_tokens");
  EXPECT_EQ(endpoint_name(Endpoint::chat_completions), "chat.completions");
  EXPECT_EQ(endpoint_name(Endpoint::messages), "messages");
}

TEST(Endpoints, NoOthers) {
  for (const char* path : {"", "/", "/v1", "/v1/", "/chat/completions", "/v1/chat/completions/",
                           "/v1/models", "/v1/messages/batches", "/V1/messages"}) {
    EXPECT_EQ(endpoint_of_path(path), std::nullopt) << path;
  }
}

}  // namespace
}  // namespace fixpoint
