#include <gtest/gtest.h>

#include "gateway/dialects/translate.hpp"

namespace fixpoint {
namespace {

TEST(DialectErrors, HaveTheShapeOfTheirApi) {
  EXPECT_EQ(error_body(Api::openai, 400, "m", "", "", "n", "r"),
            R"({"error":{"message":"m","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(error_body(Api::openai, 500, "m", "t", "c", "", ""),
            R"({"error":{"message":"m","type":"t","param":null,"code":"c"}})");
  EXPECT_EQ(
      error_body(Api::anthropic, 529, "m", "t", "", "", "req_1"),
      R"({"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"req_1"})");
  EXPECT_EQ(Json::parse(error_body(Api::anthropic, 400, "m", "t", "c", "", ""))["error"]["details"],
            (Json{{"error_code", "c"}}));
  const std::pair<int, const char*> types[] = {{400, "invalid_request_error"},
                                               {401, "authentication_error"},
                                               {403, "permission_error"},
                                               {404, "not_found_error"},
                                               {405, "invalid_request_error"},
                                               {413, "request_too_large"},
                                               {422, "invalid_request_error"},
                                               {429, "rate_limit_error"},
                                               {500, "api_error"},
                                               {502, "api_error"}};
  for (const auto& [status, type] : types) {
    EXPECT_EQ(Json::parse(error_body(Api::anthropic, status, "", "", "", "", ""))["error"]["type"],
              type);
  }
}

TEST(DialectErrors, OfTheClientsOwnApiPassAsTheyAre) {
  const std::string openai = R"({ "error" : {"message":"m","extra":1e2}})";
  EXPECT_EQ(translate_error(Api::openai, 429, openai, "r"), openai);
  const std::string anthropic = R"({"type":"error", "error":{"type":"x","message":"m"}})";
  EXPECT_EQ(translate_error(Api::anthropic, 429, anthropic, "r"), anthropic);
}

TEST(DialectErrors, AreTranslated) {
  const auto to_openai = Json::parse(translate_error(
      Api::openai, 529, R"({"type":"error","error":{"type":"overloaded_error","message":"Busy"}})",
      "r"));
  EXPECT_EQ(to_openai["error"], (Json{{"message", "Busy"},
                                      {"type", "server_error"},
                                      {"param", nullptr},
                                      {"code", "overloaded_error"}}));
  const auto to_anthropic = Json::parse(
      translate_error(Api::anthropic, 401, R"({"error":{"message":"Bad key","type":"x"}})", "r"));
  EXPECT_EQ(to_anthropic,
            (Json{{"type", "error"},
                  {"error", {{"type", "authentication_error"}, {"message", "Bad key"}}},
                  {"request_id", "r"}}));
  for (const char* body : {R"({"error":"Bad"})", R"({"detail":"Bad"})", R"({"message":"Bad"})",
                           R"({"object":"error","message":"Bad","type":"T","code":400})"}) {
    EXPECT_EQ(Json::parse(translate_error(Api::openai, 400, body, "r"))["error"]["message"], "Bad")
        << body;
  }
  for (const char* body : {"", "<html>", "[]", "null", "{}"}) {
    const auto message =
        Json::parse(translate_error(Api::anthropic, 502, body, "r"))["error"]["message"]
            .get<std::string>();
    EXPECT_NE(message.find("HTTP 502"), std::string::npos) << body;
  }
}

TEST(DialectErrors, WhatStatusTheyMean) {
  const std::pair<const char*, int> bodies[] = {
      {R"({"error":{"code":400,"message":"m","type":"exceed_context_size_error"}})", 400},
      {R"({"error":{"code":"503","type":"invalid_request_error"}})", 503},
      {R"({"object":"error","message":"m","type":"BadRequestError","code":null})", 400},
      {R"({"error":{"type":"tokens","code":"rate_limit_exceeded"}})", 429},
      {R"({"error":{"code":200,"type":"server_error"}})", 500},
      {R"({"type":"error","error":{"type":"invalid_request_error","message":"m"}})", 400},
      {R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})", 529},
      {R"({"type":"error","code":"server_error","message":"m"})", 500},
      {R"({"type":"response.failed","response":{"error":{"code":"invalid_prompt"}}})", 400},
      {R"({"error":{"code":600,"message":"m"}})", 0},
      {R"({"error":{"code":400.5,"message":"m"}})", 0},
      {R"({"error":{"code":-400,"message":"m"}})", 0},
      {R"({"error":{"message":"m","type":"of_another_kind"}})", 0},
      {R"({"error":"bad"})", 0},
      {"[]", 0},
      {"no JSON", 0},
  };
  for (const auto& [body, status] : bodies) EXPECT_EQ(error_status(body), status) << body;
}

TEST(DialectErrors, EndStreams) {
  const std::string body = error_body(Api::openai, 502, "m", "upstream_error", "c", "p", "");
  const auto chat = error_event(Endpoint::chat_completions, body, 7);
  EXPECT_EQ(chat.event, "");
  EXPECT_EQ(chat.data, body);
  const auto response = error_event(Endpoint::responses, body, 7);
  EXPECT_EQ(response.event, "error");
  EXPECT_EQ(Json::parse(response.data), (Json{{"type", "error"},
                                              {"code", "c"},
                                              {"message", "m"},
                                              {"param", "p"},
                                              {"sequence_number", 7}}));
  EXPECT_EQ(error_event(Endpoint::messages, "x", 7).event, "error");
  EXPECT_EQ(error_event(Endpoint::messages, "x", 7).data, "x");
}

}  // namespace
}  // namespace fixpoint
