#include "local_engine/hf_tokenizer.hpp"

#include <algorithm>
#include <optional>

#include "local_engine/hf_json.hpp"
#include "local_engine/text/pretokenize.hpp"

namespace fixpoint::engine {
namespace {

using Json = nlohmann::json;

constexpr const char* kFile = "tokenizer.json";

tl::unexpected<Error> bad(const std::string& what) {
  return fail(ErrorCode::bad_model_file, std::string(kFile) + ": " + what);
}
tl::unexpected<Error> unsupported(const std::string& what) {
  return fail(ErrorCode::unsupported, std::string(kFile) + ": " + what);
}

bool has_type(const Json& step, const char* type) {
  return hf_member(step, "type") == type;
}
// A flag that the format assumes to be `fallback` where it is left out.
bool is_flag(const Json& step, const char* key, bool wanted, bool fallback) {
  const Json& flag = hf_member(step, key);
  return flag.is_null() ? fallback == wanted : flag == wanted;
}

bool is_byte_level(const Json& step, bool use_regex) {
  return has_type(step, "ByteLevel") && is_flag(step, "add_prefix_space", false, true) &&
         is_flag(step, "use_regex", use_regex, true);
}

// The pattern of a Split step that keeps all pieces; empty if it is none.
std::string split_pattern(const Json& step) {
  const Json& regex = hf_member(hf_member(step, "pattern"), "Regex");
  const bool isolates = has_type(step, "Split") && hf_member(step, "behavior") == "Isolated" &&
                        is_flag(step, "invert", false, false);
  return isolates && regex.is_string() ? regex.get<std::string>() : std::string();
}

// One of PreTokenizer's names, by what the steps do; empty if they are not recognised.
std::string pre_tokenizer_of(const Json& pre) {
  if (is_byte_level(pre, true)) return "gpt-2";
  const Json& steps = hf_member(pre, "pretokenizers");
  if (!has_type(pre, "Sequence") || !steps.is_array() || steps.size() != 2) return {};
  if (has_type(steps[0], "Digits") && is_flag(steps[0], "individual_digits", true, false) &&
      is_byte_level(steps[1], true)) {
    return "smollm";
  }
  if (!is_byte_level(steps[1], false)) return {};
  return std::string(pre_tokenizer_with_pattern(split_pattern(steps[0])));
}

// The normaliser and ignore_merges belong to the family: with another one, other ids would come.
Result<std::string> read_pre_tokenizer(const Json& tokenizer) {
  const Json& pre = hf_member(tokenizer, "pre_tokenizer");
  const std::string name = pre_tokenizer_of(pre);
  if (name.empty()) {
    return unsupported("\"pre_tokenizer\" " + HfObject::shown(pre) +
                       " is none of those implemented (smollm, gpt-2, llama-bpe, qwen2)");
  }
  const Json& normaliser = hf_member(tokenizer, "normalizer");
  const bool composes = has_type(normaliser, "NFC");
  if (composes != (name == "qwen2") || (!composes && !normaliser.is_null())) {
    return unsupported("\"normalizer\" " + HfObject::shown(normaliser) +
                       " is not implemented for the pre-tokenizer " + name);
  }
  const Json& model = hf_member(tokenizer, "model");
  if (!is_flag(model, "ignore_merges", name == "llama-bpe", false)) {
    return unsupported("\"ignore_merges\" " + HfObject::shown(hf_member(model, "ignore_merges")) +
                       " is not implemented for the pre-tokenizer " + name);
  }
  return name;
}

Result<void> check_bpe(const Json& model) {
  if (!has_type(model, "BPE")) {
    return unsupported("model type " + HfObject::shown(hf_member(model, "type")) +
                       " is not implemented; \"BPE\" is");
  }
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& value = hf_member(model, key);
    if (!value.is_null() && value != "") {
      return unsupported('"' + std::string(key) + "\" " + HfObject::shown(value) +
                         " is not implemented");
    }
  }
  if (!is_flag(model, "byte_fallback", false, false)) {
    return unsupported("\"byte_fallback\" is not implemented");
  }
  return {};
}

// Puts a token at its place. The vocabulary and the added tokens may both name it.
Result<void> place_token(TokenizerData& data, const std::string& spelling, const Json& id) {
  const std::size_t count = data.tokens.size();
  if (spelling.empty()) return bad("a token is empty");
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= count) {
    return bad("token " + HfObject::shown(spelling) + " has the id " + HfObject::shown(id) +
               "; the model has ids below " + std::to_string(count));
  }
  std::string& place = data.tokens[id.get<std::size_t>()];
  if (!place.empty() && place != spelling) {
    return bad("id " + HfObject::shown(id) + " is both " + HfObject::shown(place) + " and " +
               HfObject::shown(spelling));
  }
  place = spelling;
  return {};
}

Result<void> read_added_tokens(const Json& added, ModelText& text) {
  if (added.is_null()) return {};
  if (!added.is_array()) return bad("\"added_tokens\" must be a list");
  for (const Json& token : added) {
    const Json& content = hf_member(token, "content");
    const Json& id = hf_member(token, "id");
    if (!content.is_string()) return bad("an added token has no \"content\"");
    auto placed = place_token(text.tokenizer, content.get_ref<const std::string&>(), id);
    if (!placed) return placed;
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (!is_flag(token, flag, false, false)) {
        return unsupported("added token " + HfObject::shown(content) + " with \"" + flag +
                           "\" is not implemented");
      }
    }
    text.tokenizer.is_special[id.get<std::size_t>()] = true;
    text.is_control[id.get<std::size_t>()] = is_flag(token, "special", true, false);
  }
  return {};
}

// Models have more rows than tokens where somebody rounded the size up: tokens that are never text.
void name_unused_ids(ModelText& text) {
  for (std::size_t id = 0; id < text.tokenizer.tokens.size(); ++id) {
    if (!text.tokenizer.tokens[id].empty()) continue;
    text.tokenizer.tokens[id] = "[PAD" + std::to_string(id) + "]";
    text.is_control[id] = true;
  }
}

Result<void> read_tokens(const Json& tokenizer, std::size_t vocabulary, ModelText& text) {
  const Json& vocab = hf_member(hf_member(tokenizer, "model"), "vocab");
  if (!vocab.is_object() || vocab.empty()) return bad("\"vocab\" must be a mapping of tokens");
  text.tokenizer.tokens.resize(vocabulary);
  text.tokenizer.is_special.assign(vocabulary, false);
  text.is_control.assign(vocabulary, false);
  for (const auto& [spelling, id] : vocab.items()) {
    if (auto placed = place_token(text.tokenizer, spelling, id); !placed) return placed;
  }
  if (auto added = read_added_tokens(hf_member(tokenizer, "added_tokens"), text); !added) {
    return added;
  }
  name_unused_ids(text);
  return {};
}

// Each is "left right" or, in newer files, ["left", "right"].
Result<void> read_merges(const Json& merges, TokenizerData& data) {
  if (!merges.is_array()) return bad("\"merges\" must be a list");
  for (const Json& merge : merges) {
    if (merge.is_string()) {
      data.merges.push_back(merge);
      continue;
    }
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) {
      return bad("merge " + std::to_string(data.merges.size()) + " is not two tokens");
    }
    data.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return {};
}

// The token that the post-processor puts before a text; none if it puts none.
Result<std::optional<std::string>> read_leading_token(const Json& step) {
  if (step.is_null() || has_type(step, "ByteLevel")) return std::nullopt;  // only moves offsets
  if (has_type(step, "Sequence") && hf_member(step, "processors").is_array()) {
    std::optional<std::string> leading;
    for (const Json& inner : hf_member(step, "processors")) {
      auto token = read_leading_token(inner);
      if (!token) return token;
      if (leading && *token) return unsupported("\"post_processor\" adds two tokens");
      if (*token) leading = *token;
    }
    return leading;
  }
  const Json& single = hf_member(step, "single");
  if (has_type(step, "TemplateProcessing") && single.is_array() && !single.empty() &&
      hf_member(hf_member(single.back(), "Sequence"), "id") == "A") {
    const Json& token = hf_member(hf_member(single[0], "SpecialToken"), "id");
    if (single.size() == 1) return std::nullopt;
    if (single.size() == 2 && token.is_string()) return token.get<std::string>();
  }
  return unsupported("\"post_processor\" " + HfObject::shown(step) +
                     " is not implemented; nothing, or one token before the text, is");
}

// tokenizer_config.json spells a special token as a text or as an object with "content".
std::string special_spelling(const Json& tokenizer_config, const char* key) {
  const Json& token = hf_member(tokenizer_config, key);
  const Json& spelling = token.is_object() ? hf_member(token, "content") : token;
  return spelling.is_string() ? spelling.get<std::string>() : std::string();
}

std::optional<TokenId> id_of(const TokenizerData& data, const std::string& spelling) {
  const auto found = std::find(data.tokens.begin(), data.tokens.end(), spelling);
  if (found == data.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - data.tokens.begin());
}

Result<void> read_begin(const HfTextFiles& files, ModelText& text) {
  auto leading = read_leading_token(hf_member(files.tokenizer, "post_processor"));
  if (!leading) return tl::make_unexpected(leading.error());
  text.tokenizer.add_bos = leading->has_value();
  text.bos = special_spelling(files.tokenizer_config, "bos_token");
  if (*leading && !text.bos.empty() && **leading != text.bos) {
    return unsupported("\"post_processor\" begins texts with " + HfObject::shown(**leading) +
                       ", which is not the bos_token");
  }
  if (*leading) text.bos = **leading;
  if (text.bos.empty()) return {};
  text.tokenizer.bos = id_of(text.tokenizer, text.bos);
  if (!text.tokenizer.bos) {
    return bad("the bos_token " + HfObject::shown(text.bos) + " is not in the vocabulary");
  }
  return {};
}

Result<void> read_end(const HfTextFiles& files, ModelText& text) {
  const char* file = "generation_config.json";
  const Json* ids = &hf_member(files.generation_config, "eos_token_id");
  if (ids->is_null()) {
    file = "config.json";
    ids = &hf_member(files.config, "eos_token_id");
  }
  if (ids->is_null()) return {};
  const Json list = ids->is_array() ? *ids : Json::array({*ids});
  TokenizerData& data = text.tokenizer;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= data.tokens.size()) {
      return fail(ErrorCode::bad_model_file,
                  std::string(file) + ": \"eos_token_id\" has " + HfObject::shown(id) +
                      "; the model has ids below " + std::to_string(data.tokens.size()));
    }
    if (!data.eos) {
      data.eos = id.get<TokenId>();
    } else {
      data.end_of_turn.push_back(id.get<TokenId>());
    }
  }
  text.eos = special_spelling(files.tokenizer_config, "eos_token");
  if (text.eos.empty() && data.eos) text.eos = data.tokens[static_cast<std::size_t>(*data.eos)];
  return {};
}

Result<void> read_chat_template(const HfTextFiles& files, ModelText& text) {
  text.chat_template = files.chat_template;
  const Json& older = hf_member(files.tokenizer_config, "chat_template");
  if (!text.chat_template.empty() || older.is_null()) return {};
  if (!older.is_string()) {
    return fail(ErrorCode::unsupported,
                "tokenizer_config.json: \"chat_template\" must be one text; a list of named "
                "templates is not implemented");
  }
  text.chat_template = older.get<std::string>();
  return {};
}

}  // namespace

Result<ModelText> read_hf_text(const HfTextFiles& files, std::size_t vocabulary) {
  const Json& model = hf_member(files.tokenizer, "model");
  if (auto checked = check_bpe(model); !checked) return tl::make_unexpected(checked.error());
  auto pre_tokenizer = read_pre_tokenizer(files.tokenizer);
  if (!pre_tokenizer) return tl::make_unexpected(pre_tokenizer.error());
  ModelText text;
  text.tokenizer.pre_tokenizer = *pre_tokenizer;
  auto read = read_tokens(files.tokenizer, vocabulary, text)
                  .and_then([&] { return read_merges(hf_member(model, "merges"), text.tokenizer); })
                  .and_then([&] { return read_begin(files, text); })
                  .and_then([&] { return read_end(files, text); })
                  .and_then([&] { return read_chat_template(files, text); });
  if (!read) return tl::make_unexpected(read.error());
  return text;
}

}  // namespace fixpoint::engine
