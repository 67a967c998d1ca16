// Reads tests/golden/*/tokens.json and compares a tokenizer with it.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "local_engine/text/tokenizer.hpp"

namespace fixpoint::test {

inline const std::vector<std::string> kPreTokenizers = {"smollm", "gpt-2", "llama-bpe", "qwen2"};

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(FIXPOINT_SOURCE_DIR "/tests/golden/" + name);
  return nlohmann::json::parse(file);
}

inline std::unique_ptr<engine::Tokenizer> make_tokenizer(engine::TokenizerData data) {
  auto created = engine::Tokenizer::create(std::move(data));
  if (!created) throw std::runtime_error(created.error().message);
  return std::move(*created);
}

inline engine::TokenizerData tiny_bpe(const std::string& pre_tokenizer) {
  const nlohmann::json json = read_golden("tiny_bpe/vocabulary.json");
  engine::TokenizerData data;
  data.tokens = json.at("tokens").get<std::vector<std::string>>();
  data.merges = json.at("merges").get<std::vector<std::string>>();
  data.is_special.resize(data.tokens.size());
  for (const std::size_t id : json.at("special")) data.is_special.at(id) = true;
  data.pre_tokenizer = pre_tokenizer;
  return data;
}

inline void expect_golden_ids(const engine::Tokenizer& tokenizer, const std::string& pre_tokenizer,
                              const nlohmann::json& golden) {
  ASSERT_GT(golden.at("cases").size(), 100U);
  for (const nlohmann::json& item : golden.at("cases")) {
    const auto text = item.at("text").get<std::string>();
    const nlohmann::json& plain = item.at("ids").at(pre_tokenizer);
    const nlohmann::json parsed = item.contains("ids_parse_special")
                                      ? item.at("ids_parse_special").value(pre_tokenizer, plain)
                                      : plain;
    const auto name = item.at("name").get<std::string>();
    EXPECT_EQ(nlohmann::json(tokenizer.encode(text, false)), plain) << name << " " << pre_tokenizer;
    EXPECT_EQ(nlohmann::json(tokenizer.encode(text, true)), parsed) << name << " " << pre_tokenizer;
  }
}

}  // namespace fixpoint::test
