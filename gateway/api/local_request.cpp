#include "gateway/api/local_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <random>
#include <string_view>

#include "cache/base/digest.hpp"
#include "gateway/api/local_prompt.hpp"
#include "local_engine/request_check.hpp"

namespace fixpoint {
namespace {

// Prompt tokens that an answer may show log-probabilities of, over all its choices. In the answer
// each takes up to some hundred bytes, with many alternatives more than a thousand.
constexpr std::size_t kMaxScoredTokens = 131'072;

// Members that change nothing about a local answer: accounting, routing and safety of hosted
// services.
constexpr std::array<std::string_view, 12> kIgnored = {"model",
                                                       "messages",
                                                       "prompt",
                                                       "stream",
                                                       "stream_options",
                                                       "user",
                                                       "metadata",
                                                       "store",
                                                       "service_tier",
                                                       "safety_identifier",
                                                       "prompt_cache_key",
                                                       "parallel_tool_calls"};
constexpr std::array<std::string_view, 13> kSampling = {"temperature",
                                                        "top_p",
                                                        "top_k",
                                                        "min_p",
                                                        "seed",
                                                        "max_tokens",
                                                        "max_completion_tokens",
                                                        "stop",
                                                        "n",
                                                        "presence_penalty",
                                                        "frequency_penalty",
                                                        "logit_bias",
                                                        "logprobs"};

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Reads members by name; the first error stays.
class Reader {
 public:
  explicit Reader(const Json& body) : body_(body) {}

  const Json* find(std::string_view name) const {
    const auto found = body_.find(name);
    return found == body_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(std::string_view name, double fallback, double low, double high) {
    const auto* value = find(name);
    if (!value) return fallback;
    if (value->is_number()) {
      const double x = value->get<double>();
      if (x >= low && x <= high) return x;
    }
    fail_range(name, "a number", low, high);
    return fallback;
  }
  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t low,
                       std::int64_t high) {
    const auto* value = find(name);
    if (!value) return fallback;
    if (value->is_number_integer()) {
      const auto x = value->get<std::int64_t>();
      const bool wrapped = value->is_number_unsigned() && x < 0;
      if (!wrapped && x >= low && x <= high) return x;
    }
    fail_range(name, "a whole number", static_cast<double>(low), static_cast<double>(high));
    return fallback;
  }
  bool boolean(std::string_view name) {
    const auto* value = find(name);
    if (value && !value->is_boolean()) fail(name, "must be true or false");
    return value && *value == true;
  }
  void fail(std::string_view name, std::string message) {
    if (!error_) error_ = bad_request("'" + std::string(name) + "' " + message, std::string(name));
  }
  const std::optional<ApiError>& error() const { return error_; }

 private:
  void fail_range(std::string_view name, std::string_view kind, double low, double high) {
    fail(name,
         "must be " + std::string(kind) + " from " + Json(low).dump() + " to " + Json(high).dump());
  }
  const Json& body_;
  std::optional<ApiError> error_;
};

std::vector<std::string> read_stop(Reader& reader) {
  const auto* stop = reader.find("stop");
  if (!stop) return {};
  if (stop->is_string()) return {stop->get<std::string>()};
  std::vector<std::string> stops;
  if (!stop->is_array()) {
    reader.fail("stop", "must be a string or an array of strings");
    return {};
  }
  for (const auto& item : *stop) {
    if (!item.is_string()) {
      reader.fail("stop", "must be a string or an array of strings");
      return {};
    }
    stops.push_back(item.get<std::string>());
  }
  return stops;
}

std::vector<std::pair<engine::TokenId, float>> read_logit_bias(Reader& reader) {
  std::vector<std::pair<engine::TokenId, float>> bias;
  const auto* given = reader.find("logit_bias");
  if (!given) return bias;
  if (!given->is_object()) reader.fail("logit_bias", "must map token ids to numbers");
  for (const auto& [name, value] : given->items()) {
    engine::TokenId id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size() || !value.is_number()) {
      reader.fail("logit_bias", "must map token ids to numbers");
      return {};
    }
    bias.emplace_back(id, value.get<float>());
  }
  std::sort(bias.begin(), bias.end());  // the order of members is not part of the meaning
  return bias;
}

engine::SamplingParams read_sampling(Reader& reader) {
  engine::SamplingParams sampling;
  sampling.temperature = static_cast<float>(reader.number("temperature", 1, 0, 2));
  sampling.top_p = static_cast<float>(reader.number("top_p", 1, 0, 1));
  sampling.min_p = static_cast<float>(reader.number("min_p", 0, 0, 1));
  sampling.top_k = static_cast<int>(reader.integer("top_k", 0, 0, 1'000'000));
  sampling.presence_penalty = static_cast<float>(reader.number("presence_penalty", 0, -2, 2));
  sampling.frequency_penalty = static_cast<float>(reader.number("frequency_penalty", 0, -2, 2));
  sampling.logit_bias = read_logit_bias(reader);
  return sampling;
}

// Members that cannot be honoured are refused, unless they ask for what happens anyway.
std::optional<ApiError> check_unsupported(Endpoint endpoint, const Json& body) {
  const bool chat = endpoint == Endpoint::chat_completions;
  for (const auto& [name, value] : body.items()) {
    if (value.is_null() || is_one_of(kIgnored, name) || is_one_of(kSampling, name)) continue;
    if (chat && name == "top_logprobs") continue;
    if ((name == "tools" || name == "functions") && value.is_array() && value.empty()) continue;
    if (name == "tool_choice" && (value == "none" || value == "auto")) continue;
    if (name == "response_format" && value.is_object() && value.value("type", Json()) == "text")
      continue;
    if (chat && name == "verbosity" && value == "medium") continue;
    if (!chat && name == "echo") continue;
    if (!chat && name == "best_of" && value == 1) continue;
    return bad_request("'" + name + "' is not supported by the local engine", name,
                       "unsupported_parameter");
  }
  return {};
}

void read_logprobs(Endpoint endpoint, Reader& reader, LocalRequest& out) {
  if (endpoint == Endpoint::completions) {
    out.logprobs = reader.find("logprobs") != nullptr;
    out.top_logprobs = static_cast<std::size_t>(reader.integer("logprobs", 0, 0, 20));
    return;
  }
  out.logprobs = reader.boolean("logprobs");
  out.top_logprobs = static_cast<std::size_t>(reader.integer("top_logprobs", 0, 0, 20));
  if (out.top_logprobs > 0 && !out.logprobs) reader.fail("top_logprobs", "needs 'logprobs': true");
}

// None: up to the end of the context. OpenAI's default for completions is 16; there, 0 asks for the
// prompt alone.
std::optional<std::size_t> read_max_tokens(Endpoint endpoint, bool echo, Reader& reader) {
  const std::string_view name =
      reader.find("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  const bool chat = endpoint == Endpoint::chat_completions;
  if (chat && !reader.find(name)) return {};
  return static_cast<std::size_t>(reader.integer(name, 16, echo && !chat ? 0 : 1, 10'000'000));
}

std::uint64_t seed_of_prompt(const std::vector<engine::TokenId>& tokens) {
  std::string bytes = "fixpoint-seed-v1";
  for (const auto token : tokens) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(token >> shift);
  }
  const auto digest = sha256(bytes);
  std::uint64_t seed = 0;
  for (int i = 0; i < 8; ++i) seed = seed << 8 | digest[static_cast<std::size_t>(i)];
  return seed;
}

// A new answer each time: from the system's randomness, since the caller gave no other.
std::uint64_t random_seed() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

// Of several prompts, `tokens` of the key are those of all; their counts here tell them apart.
std::string key_parameters(const LocalRequest& local, const engine::ModelInfo& model) {
  const auto& first = local.choices.front();
  const auto& s = first.sampling;
  nlohmann::json bias = nlohmann::json::array();  // sorted members, unlike Json
  for (const auto& [id, value] : s.logit_bias) bias.push_back({id, value});
  // At temperature 0 nothing is drawn, so a seed cannot matter.
  const nlohmann::json seed = s.temperature == 0  ? nlohmann::json()
                              : local.random_seed ? nlohmann::json("random")
                                                  : nlohmann::json(s.seed);
  nlohmann::json parameters = {{"temperature", s.temperature},
                               {"top_k", s.top_k},
                               {"top_p", s.top_p},
                               {"min_p", s.min_p},
                               {"presence_penalty", s.presence_penalty},
                               {"frequency_penalty", s.frequency_penalty},
                               {"logit_bias", bias},
                               {"seed", seed},
                               {"max_tokens", first.max_tokens.value_or(0)},
                               {"stop", first.stop},
                               {"n", local.n},
                               {"logprobs", local.logprobs},
                               {"top_logprobs", local.top_logprobs},
                               {"model", model.name}};  // the answer says it
  // Then the answer ends where the context does, which is configured.
  if (!first.max_tokens) parameters["context"] = model.context;
  // Only where they are used, so that the answers stored before they were known stay.
  if (!local.echoes.empty()) parameters["echo"] = true;
  if (local.choices.size() > local.n) {
    auto& counts = parameters["prompt_tokens"] = nlohmann::json::array();
    auto& seeds = parameters["seeds"] = nlohmann::json::array();
    for (std::size_t i = 0; i < local.choices.size(); i += local.n) {
      counts.push_back(local.choices[i].prompt.size());
      if (seed.is_number()) seeds.push_back(local.choices[i].sampling.seed);
    }
  }
  return parameters.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ApiResult<LocalRequest> build_local_request(Endpoint endpoint, const Json& body,
                                            const LocalContext& context) {
  const auto& engine = context.engine;
  if (auto error = check_unsupported(endpoint, body)) return refuse(*error);

  LocalRequest local;
  local.prompt_param = endpoint == Endpoint::chat_completions ? "messages" : "prompt";
  Reader reader(body);
  engine::GenerateRequest common;
  common.sampling = read_sampling(reader);
  common.stop = read_stop(reader);
  const bool echo = reader.boolean("echo");
  common.max_tokens = read_max_tokens(endpoint, echo, reader);
  local.n = static_cast<std::size_t>(reader.integer("n", 1, 1, kMaxChoices));
  read_logprobs(endpoint, reader, local);
  if (reader.error()) return refuse(*reader.error());
  common.top_logprobs =
      static_cast<int>(std::max({local.top_logprobs, context.log_top_logprobs, std::size_t{2}}));
  common.prompt_logprobs = echo && local.logprobs;

  auto prompts = read_prompts(endpoint, body, engine, local.n);
  if (!prompts) return refuse(prompts.error());
  const engine::RequestLimits limits{engine.info().context, engine.info().vocabulary};
  const auto* seed = reader.find("seed");
  local.random_seed = !seed && !context.tagged && common.sampling.temperature > 0;
  std::size_t scored = 0;
  std::vector<engine::TokenId> key_tokens;
  for (auto& prompt : *prompts) {
    engine::GenerateRequest request = common;
    request.prompt = std::move(prompt.tokens);
    if (context.loose_limit && request.prompt.size() < limits.context &&
        request.max_tokens > limits.context - request.prompt.size()) {
      request.max_tokens.reset();
      local.limit_left_out = true;
    }
    // Before it is copied: a prompt may be as long as the body, but not as a model's context.
    if (const auto checked = engine::check_request(request, limits); !checked) {
      return refuse(engine_error(checked.error(), local.prompt_param));
    }
    scored += common.prompt_logprobs ? request.prompt.size() * local.n : 0;
    if (seed) {
      request.sampling.seed = static_cast<std::uint64_t>(seed->get<std::int64_t>());
    } else if (context.tagged) {
      request.sampling.seed = seed_of_prompt(request.prompt);
    } else if (local.random_seed) {
      request.sampling.seed = random_seed();
    }
    key_tokens.insert(key_tokens.end(), request.prompt.begin(), request.prompt.end());
    for (std::size_t i = 0; i < local.n; ++i) {
      request.sampling.draw = context.sample + static_cast<std::uint32_t>(i);
      local.choices.push_back(request);
    }
    if (prompts->size() > 1) local.prompt_text += std::to_string(prompt.text.size()) + ":";
    local.prompt_text += prompt.text;
    if (echo) local.echoes.push_back({std::move(prompt.text), prompt.has_bos});
  }
  if (scored > kMaxScoredTokens) {
    return refuse(bad_request("'echo' with 'logprobs' would show " + std::to_string(scored) +
                                  " prompt tokens (of all prompts, times 'n'); the limit is " +
                                  std::to_string(kMaxScoredTokens),
                              "prompt"));
  }

  PromptKeyInput key;
  const auto parameters = key_parameters(local, engine.info());
  key.tenant = context.tenant;
  key.endpoint = context.client_endpoint;
  key.fingerprint = engine.info().fingerprint;
  key.tokens = key_tokens;
  key.parameters = parameters;
  key.sample = context.sample;
  local.key = prompt_key(key);
  return local;
}

}  // namespace fixpoint
