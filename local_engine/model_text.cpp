#include "local_engine/model_text.hpp"

#include <algorithm>
#include <array>

namespace fixpoint::engine {
namespace {

// Token types of the format.
constexpr std::int64_t kControl = 3;
constexpr std::int64_t kUserDefined = 4;

// Control tokens that end an assistant's turn in published chat formats. Files name one of them as
// EOS and leave out others that the model also emits; as control tokens none is ever text.
constexpr std::array<std::string_view, 7> kTurnEnds = {
    "<|im_end|>",    "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>",
    "<|endoftext|>", "<|end|>",    "</s>"};

const std::string* text_of(const GgufHeader& header, std::string_view key) {
  const GgufValue* value = header.find(key);
  return value ? value->string() : nullptr;
}

Result<const std::vector<std::string>*> strings_of(const GgufHeader& header, std::string_view key) {
  const GgufValue* value = header.find(key);
  const GgufArray* list = value ? value->array() : nullptr;
  if (!list || list->element() != GgufType::string) {
    return fail(ErrorCode::bad_model_file,
                "model metadata \"" + std::string(key) + "\" must be an array of strings");
  }
  return &list->strings();
}

Result<std::optional<TokenId>> token_of(const GgufHeader& header, std::string_view key,
                                        std::size_t vocabulary) {
  const GgufValue* value = header.find(key);
  if (!value) return std::nullopt;
  const auto id = value->unsigned_integer();
  if (!id || *id >= vocabulary) {
    return fail(ErrorCode::bad_model_file, "model metadata \"" + std::string(key) + "\" is " +
                                               value->to_text() + "; the vocabulary has " +
                                               std::to_string(vocabulary) + " tokens");
  }
  return static_cast<TokenId>(*id);
}

// Fills is_special and is_control from the token types. A file without types has only plain tokens.
Result<void> read_token_types(const GgufHeader& header, ModelText& text) {
  const std::size_t count = text.tokenizer.tokens.size();
  text.tokenizer.is_special.assign(count, false);
  text.is_control.assign(count, false);
  const GgufValue* value = header.find("tokenizer.ggml.token_type");
  if (!value) return {};
  const GgufArray* types = value->array();
  if (!types || types->size() != count) {
    return fail(ErrorCode::bad_model_file,
                "model metadata \"tokenizer.ggml.token_type\" must have one integer per token (" +
                    std::to_string(count) + ")");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto type = types->integer(i);
    text.is_control[i] = type == kControl;
    text.tokenizer.is_special[i] = type == kControl || type == kUserDefined;
  }
  return {};
}

Result<void> read_special_ids(const GgufHeader& header, ModelText& text) {
  TokenizerData& data = text.tokenizer;
  auto bos = token_of(header, "tokenizer.ggml.bos_token_id", data.tokens.size());
  if (!bos) return tl::make_unexpected(bos.error());
  auto eos = token_of(header, "tokenizer.ggml.eos_token_id", data.tokens.size());
  if (!eos) return tl::make_unexpected(eos.error());
  data.bos = *bos;
  data.eos = *eos;
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    auto id = token_of(header, key, data.tokens.size());
    if (!id) return tl::make_unexpected(id.error());
    if (*id) data.end_of_turn.push_back(**id);
  }
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (text.is_control[i] &&
        std::find(kTurnEnds.begin(), kTurnEnds.end(), data.tokens[i]) != kTurnEnds.end()) {
      data.end_of_turn.push_back(static_cast<TokenId>(i));
    }
  }
  if (data.bos) text.bos = data.tokens[static_cast<std::size_t>(*data.bos)];
  if (data.eos) text.eos = data.tokens[static_cast<std::size_t>(*data.eos)];
  return {};
}

}  // namespace

Result<ModelText> read_model_text(const GgufHeader& header) {
  const std::string* model = text_of(header, "tokenizer.ggml.model");
  if (!model) {
    return fail(ErrorCode::bad_model_file, "model metadata \"tokenizer.ggml.model\" is missing");
  }
  if (*model != "gpt2") {
    return fail(ErrorCode::unsupported,
                "tokenizer \"" + *model + "\" is not implemented; byte-level BPE (\"gpt2\") is");
  }
  const std::string* pre = text_of(header, "tokenizer.ggml.pre");
  if (!pre) {
    return fail(
        ErrorCode::unsupported,
        "model metadata \"tokenizer.ggml.pre\" is missing, so the pre-tokenizer is unknown");
  }

  ModelText text;
  text.tokenizer.pre_tokenizer = *pre;
  auto tokens = strings_of(header, "tokenizer.ggml.tokens");
  if (!tokens) return tl::make_unexpected(tokens.error());
  auto merges = strings_of(header, "tokenizer.ggml.merges");
  if (!merges) return tl::make_unexpected(merges.error());
  text.tokenizer.tokens = **tokens;
  text.tokenizer.merges = **merges;
  if (auto types = read_token_types(header, text); !types)
    return tl::make_unexpected(types.error());
  if (auto ids = read_special_ids(header, text); !ids) return tl::make_unexpected(ids.error());

  // Converters leave the flag out where the pre-tokenizer implies it: Llama 3's adds BOS, others do
  // not.
  text.tokenizer.add_bos = *pre == "llama-bpe";
  if (const GgufValue* add = header.find("tokenizer.ggml.add_bos_token")) {
    const auto flag = add->boolean();
    if (!flag) {
      return fail(ErrorCode::bad_model_file,
                  "model metadata \"tokenizer.ggml.add_bos_token\" must be a boolean");
    }
    text.tokenizer.add_bos = *flag;
  }
  if (text.tokenizer.add_bos && !text.tokenizer.bos) {
    return fail(ErrorCode::bad_model_file,
                "the tokenizer adds BOS, but \"tokenizer.ggml.bos_token_id\" is missing");
  }
  if (const GgufValue* chat = header.find("tokenizer.chat_template")) {
    if (!chat->string()) {
      return fail(ErrorCode::bad_model_file,
                  "model metadata \"tokenizer.chat_template\" must be a string");
    }
    text.chat_template = *chat->string();
  }
  return text;
}

}  // namespace fixpoint::engine
