#include "gateway/api/models.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

TEST(Models, AnUnknownOneIsNotFoundInTheClientsShape) {
  const Config config;
  Cores cores(1);
  const Gateway gateway(config, cores);
  const auto settings = gateway.settings();
  const auto anthropic = retrieve_model(*settings, nullptr, "m", Api::anthropic, "req-1");
  EXPECT_EQ(anthropic.status, 404);
  const auto body = nlohmann::json::parse(*anthropic.body);
  EXPECT_EQ(body["error"]["type"], "not_found_error");
  EXPECT_EQ(body["request_id"], "req-1");
  const auto openai = retrieve_model(*settings, nullptr, "m", Api::openai, "req-1");
  EXPECT_EQ(nlohmann::json::parse(*openai.body)["error"]["code"], "model_not_found");
}

// What the SDK's type requires.
TEST(Models, AnthropicsShapeHasItsLifecycle) {
  Config config;
  auto& route = config.routes.emplace_back();
  route.model = "m";
  route.local = "m";
  Cores cores(1);
  const Gateway gateway(config, cores);
  const auto model = retrieve_model(*gateway.settings(), nullptr, "m", Api::anthropic, "req-1");
  EXPECT_EQ(nlohmann::json::parse(*model.body)["lifecycle"], "active");
}

}  // namespace
}  // namespace fixpoint
