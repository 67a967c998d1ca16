// From an OpenAI request to what the local engine is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/dialects/answer_form.hpp"
#include "local_engine/engine.hpp"

namespace fixpoint {

// A prompt that the answer shows.
struct Echo {
  std::string text;
  bool has_bos = false;  // its first token is not in the text
};

struct LocalRequest {
  // Prompt by prompt, `n` each, which differ in the draw.
  std::vector<engine::GenerateRequest> choices;
  std::size_t n = 1;
  std::vector<Echo> echoes;  // by prompt; empty: the answer does not show them
  // Rendered. Of several prompts each has its length before it, so that no two sets are alike.
  std::string prompt_text;
  std::string prompt_param;      // "messages" or "prompt", for errors
  bool logprobs = false;         // the answer shows them
  std::size_t top_logprobs = 0;  // alternatives that the answer shows
  bool random_seed = false;      // sampled without a seed and not tagged: a new answer each time
  bool limit_left_out = false;   // LocalContext::loose_limit: the context may end the answer
  CacheKey key;
};

struct LocalContext {
  const engine::Engine& engine;
  std::string_view tenant = {};           // cache namespace
  std::string_view client_endpoint = {};  // what the answer's shape is of, for the key
  bool tagged = false;  // reproducible: a missing seed comes from the prompt's hash
  // A limit that reaches beyond the context counts as none. Anthropic's clients must send one, and
  // send a large model's.
  bool loose_limit = false;
  std::uint32_t sample = 0;
  std::size_t log_top_logprobs = 5;  // recorded in the token log whatever the client asked for
};

// Renders, tokenises and checks a request of OpenAI's chat or completions. A member that the engine
// does not implement is refused by name rather than ignored. Errors: 400.
ApiResult<LocalRequest> build_local_request(Endpoint endpoint, const Json& body,
                                            const LocalContext& context);

}  // namespace fixpoint
