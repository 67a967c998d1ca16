#include "gateway/api/local_logprobs.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace fixpoint {
namespace {

bool is_whole_utf8(std::string_view bytes) {
  // nlohmann's writer is the validator at hand; a token is a few bytes.
  try {
    Json(std::string(bytes)).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

// A token's text for people. Bytes that are no whole characters are spelled out, as OpenAI does.
std::string token_text(std::string_view bytes) {
  if (is_whole_utf8(bytes)) return std::string(bytes);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "bytes:";
  for (const unsigned char byte : bytes) {
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

Json token_json(std::string_view bytes, float logprob) {
  Json list = Json::array();
  for (const unsigned char byte : bytes) list.push_back(byte);
  return {{"token", token_text(bytes)}, {"logprob", static_cast<double>(logprob)}, {"bytes", list}};
}

}  // namespace

std::size_t count_characters(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(bytes.begin(), bytes.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;  // not a continuation
  }));
}

Json chat_logprobs(const engine::Tokenizer& tokenizer,
                   std::span<const engine::GeneratedToken> tokens, std::size_t top_logprobs) {
  Json content = Json::array();
  for (const auto& token : tokens) {
    Json entry = token_json(tokenizer.bytes(token.id), token.logprob);
    Json tops = Json::array();
    for (std::size_t k = 0; k < std::min(top_logprobs, token.top.size()); ++k) {
      tops.push_back(token_json(tokenizer.bytes(token.top[k].id), token.top[k].logprob));
    }
    entry["top_logprobs"] = std::move(tops);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

void TextLogprobs::add(const engine::GeneratedToken& token, std::size_t offset) {
  tokens_.push_back(token_text(tokenizer_.bytes(token.id)));
  logprobs_.push_back(static_cast<double>(token.logprob));
  Json top = Json::object();
  for (std::size_t k = 0; k < std::min(top_logprobs_, token.top.size()); ++k) {
    top[token_text(tokenizer_.bytes(token.top[k].id))] = static_cast<double>(token.top[k].logprob);
  }
  tops_.push_back(std::move(top));
  offsets_.push_back(offset);
}

void TextLogprobs::add_first(engine::TokenId token, std::size_t offset) {
  tokens_.push_back(token_text(tokenizer_.bytes(token)));
  logprobs_.push_back(nullptr);
  tops_.push_back(nullptr);
  offsets_.push_back(offset);
}

Json TextLogprobs::finish() && {
  Json out = Json::object();
  out["tokens"] = std::move(tokens_);
  out["token_logprobs"] = std::move(logprobs_);
  out["top_logprobs"] = std::move(tops_);
  out["text_offset"] = std::move(offsets_);
  return out;
}

}  // namespace fixpoint
