// OpenAI's embeddings. Equal texts have equal vectors, whoever asks and when.
#include <cstring>

#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

constexpr std::size_t kDimensions = 8;

std::vector<float> vector_of(const json& input, std::size_t dimensions) {
  std::vector<float> values;
  std::uint64_t state = mock_hash(input.dump());
  for (std::size_t i = 0; i < dimensions; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<float>(static_cast<double>(state >> 40) / (1 << 24)) - 0.5F);
  }
  return values;
}

// The vector's IEEE floats, little-endian as on every machine that runs this, in base64.
std::string base64(const std::vector<float>& values) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63u];
    }
  }
  return text;
}

}  // namespace

MockAnswer mock_embeddings(const MockCall& call) {
  const json input = call.body.value("input", json());
  json inputs = json::array({input});
  if (input.is_array() && !input.empty() && !input[0].is_number()) inputs = input;
  const auto dimensions = call.body.value("dimensions", kDimensions);
  const bool encoded = call.body.value("encoding_format", json()) == "base64";
  json data = json::array();
  for (const json& one : inputs) {
    const std::vector<float> values = vector_of(one, dimensions);
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", encoded ? json(base64(values)) : json(values)}});
  }
  MockAnswer answer;
  answer.pieces = {
      json({{"object", "list"},
            {"data", data},
            {"model", call.model},
            {"usage",
             {{"prompt_tokens", call.prompt_tokens()}, {"total_tokens", call.prompt_tokens()}}}})
          .dump()};
  apply_behaviour(call, answer);
  return answer;
}

}  // namespace fixpoint::test
