// Any bytes as text: every pre-tokenizer's ids decode to the same bytes (qwen2, which composes
// characters, to bytes that encode to the same ids).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "local_engine/text/tokenizer.hpp"

namespace {

using namespace fixpoint::engine;

// All bytes, some merges that overlap, a special token.
std::unique_ptr<Tokenizer> make(const std::string& pre_tokenizer) {
  TokenizerData data;
  data.pre_tokenizer = pre_tokenizer;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const unsigned point = printable ? byte : next++;
    std::string spelling;
    if (point < 0x80) {
      spelling += static_cast<char>(point);
    } else {
      spelling += static_cast<char>(0xC0 | point >> 6);
      spelling += static_cast<char>(0x80 | (point & 0x3F));
    }
    data.tokens.push_back(spelling);
  }
  const std::string space = "\u0120";
  for (const auto& [left, right] :
       std::vector<std::pair<std::string, std::string>>{{"a", "a"},
                                                        {"aa", "a"},
                                                        {"a", "b"},
                                                        {"aa", "aa"},
                                                        {space, "a"},
                                                        {space, space},
                                                        {"\u00cc", "\u0123"},
                                                        {"1", "2"}}) {
    data.tokens.push_back(left + right);
    data.merges.push_back(left + " " + right);
  }
  data.tokens.push_back("<|end|>");
  data.is_special.resize(data.tokens.size());
  data.is_special.back() = true;
  auto created = Tokenizer::create(std::move(data));
  if (!created) std::abort();
  return std::move(*created);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto smollm = make("smollm");
  static const auto gpt2 = make("gpt-2");
  static const auto llama = make("llama-bpe");
  static const auto qwen2 = make("qwen2");
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  for (const bool parse_special : {false, true}) {
    for (const auto* tokenizer : {&smollm, &gpt2, &llama}) {
      if ((*tokenizer)->decode((*tokenizer)->encode(text, parse_special)) != text) std::abort();
    }
    const auto ids = qwen2->encode(text, parse_special);
    if (qwen2->encode(qwen2->decode(ids), parse_special) != ids) std::abort();
  }
  return 0;
}
