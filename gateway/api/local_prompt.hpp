// The prompts of a request to the local engine, as text and as tokens.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gateway/api/errors.hpp"
#include "gateway/dialects/answer_form.hpp"
#include "local_engine/engine.hpp"

namespace fixpoint {

// Prompts of a request times its 'n'. Each is a generation that waits in the engine's queue.
inline constexpr std::size_t kMaxChoices = 128;

struct LocalPrompt {
  std::string text;                     // valid UTF-8: rendered, given, or what given ids spell
  std::vector<engine::TokenId> tokens;  // never empty
  bool has_bos = false;                 // a BOS stands before the tokens of `text`
};

// Chat has one prompt, rendered by the model's template; completions have one or several, each text
// or token ids. Text gets a BOS where the model wants one. Ids are taken as they are: a client that
// tokenises counts its own tokens. Errors: 400.
ApiResult<std::vector<LocalPrompt>> read_prompts(Endpoint endpoint, const Json& body,
                                                 const engine::Engine& engine, std::size_t n);

}  // namespace fixpoint
