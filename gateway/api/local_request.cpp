#include "gateway/api/local_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <random>
#include <string_view>

#include "cache/base/digest.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kMaxChoices = 16;

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

// A message's content as text. Parts other than text are refused: the engine has no eyes.
std::optional<ApiError> flatten_content(Json& message, const std::string& path) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) {
    message["content"] = "";  // templates join it with text
    return {};
  }
  if (found->is_string()) return {};
  if (!found->is_array())
    return bad_request("'" + path + ".content' must be a string or an array", path);
  std::string text;
  for (const auto& part : *found) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) {
      return bad_request("'" + path + ".content': the local engine takes parts of type text only",
                         path);
    }
    text += part["text"].get_ref<const std::string&>();
  }
  *found = std::move(text);
  return {};
}

ApiResult<std::string> render_chat(const Json& body, const engine::Engine& engine) {
  const auto* chat_template = engine.chat_template();
  if (!chat_template) {
    return refuse(
        bad_request("Model '" + engine.info().name + "' has no chat template; use /v1/completions",
                    "messages"));
  }
  engine::ChatInput input;
  input.messages = body["messages"];
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    auto& message = input.messages[i];
    const auto path = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return refuse(bad_request("'" + path + "' must be an object", path));
    if (!message.value("role", Json()).is_string()) {
      return refuse(bad_request("'" + path + ".role' must be a string", path + ".role"));
    }
    for (const auto& [name, value] : message.items()) {
      if (name == "role" || name == "content" || value.is_null()) continue;
      return refuse(bad_request("'" + path + "." + name + "' is not supported by the local engine",
                                path + "." + name, "unsupported_parameter"));
    }
    if (auto error = flatten_content(message, path)) return refuse(*error);
    auto& role = message["role"].get_ref<std::string&>();
    if (role == "developer") role = "system";  // OpenAI's newer name for the same turn
    if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
      return refuse(
          bad_request("'" + path + ".role' must be system, developer, user, assistant or tool",
                      path + ".role"));
    }
  }
  auto rendered = chat_template->render(input);
  if (!rendered) return refuse(engine_error(rendered.error(), "messages"));
  return std::move(*rendered);
}

// The prompt of /v1/completions: text, or token ids; one prompt a request.
ApiResult<std::vector<engine::TokenId>> read_prompt(const Json& prompt,
                                                    const engine::Tokenizer& tokenizer,
                                                    std::string& text) {
  const Json* one = &prompt;
  if (prompt.is_array() && !prompt.empty() && (prompt[0].is_string() || prompt[0].is_array())) {
    if (prompt.size() != 1) {
      return refuse(bad_request("'prompt': the local engine takes one prompt a request", "prompt"));
    }
    one = &prompt[0];
  }
  if (one->is_string()) {
    text = one->get<std::string>();
    return tokenizer.encode(text, false);
  }
  std::vector<engine::TokenId> ids;
  for (const auto& item : *one) {
    const bool in_range = item.is_number_integer() && item.get<std::int64_t>() >= 0 &&
                          item.get<std::int64_t>() < static_cast<std::int64_t>(tokenizer.size());
    if (!in_range) {
      return refuse(bad_request("'prompt': a token id must be a whole number from 0 to " +
                                    std::to_string(tokenizer.size() - 1),
                                "prompt"));
    }
    ids.push_back(item.get<engine::TokenId>());
  }
  text = tokenizer.decode(ids);
  return ids;
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
    if (!chat && name == "echo" && value == false) continue;
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
  const auto* logprobs = reader.find("logprobs");
  if (logprobs && !logprobs->is_boolean()) reader.fail("logprobs", "must be true or false");
  out.logprobs = logprobs && *logprobs == true;
  out.top_logprobs = static_cast<std::size_t>(reader.integer("top_logprobs", 0, 0, 20));
  if (out.top_logprobs > 0 && !out.logprobs) reader.fail("top_logprobs", "needs 'logprobs': true");
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

std::string key_parameters(const LocalRequest& local, const engine::GenerateRequest& first) {
  const auto& s = first.sampling;
  nlohmann::json bias = nlohmann::json::array();  // sorted members, unlike Json
  for (const auto& [id, value] : s.logit_bias) bias.push_back({id, value});
  // At temperature 0 nothing is drawn, so a seed cannot matter.
  const nlohmann::json seed = s.temperature == 0  ? nlohmann::json()
                              : local.random_seed ? nlohmann::json("random")
                                                  : nlohmann::json(s.seed);
  const nlohmann::json parameters = {{"temperature", s.temperature},
                                     {"top_k", s.top_k},
                                     {"top_p", s.top_p},
                                     {"min_p", s.min_p},
                                     {"presence_penalty", s.presence_penalty},
                                     {"frequency_penalty", s.frequency_penalty},
                                     {"logit_bias", bias},
                                     {"seed", seed},
                                     {"max_tokens", first.max_tokens},
                                     {"stop", first.stop},
                                     {"n", local.choices.size()},
                                     {"logprobs", local.logprobs},
                                     {"top_logprobs", local.top_logprobs}};
  return parameters.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ApiResult<LocalRequest> build_local_request(Endpoint endpoint, const Json& body,
                                            const LocalContext& context) {
  const auto& engine = context.engine;
  if (auto error = check_unsupported(endpoint, body)) return refuse(*error);

  LocalRequest local;
  engine::GenerateRequest first;
  if (endpoint == Endpoint::chat_completions) {
    local.prompt_param = "messages";
    auto rendered = render_chat(body, engine);
    if (!rendered) return refuse(rendered.error());
    local.prompt_text = std::move(*rendered);
    first.prompt = engine.tokenizer().encode(local.prompt_text, true);
  } else {
    local.prompt_param = "prompt";
    auto prompt = read_prompt(body["prompt"], engine.tokenizer(), local.prompt_text);
    if (!prompt) return refuse(prompt.error());
    first.prompt = std::move(*prompt);
  }
  const auto bos = engine.tokenizer().bos();
  if (engine.tokenizer().add_bos() && bos &&
      (first.prompt.empty() || first.prompt.front() != *bos)) {
    first.prompt.insert(first.prompt.begin(), *bos);
  }
  if (first.prompt.empty()) {
    return refuse(bad_request("'" + local.prompt_param + "' must have at least one token",
                              local.prompt_param));
  }

  Reader reader(body);
  first.sampling = read_sampling(reader);
  first.stop = read_stop(reader);
  const std::string_view limit_name =
      reader.find("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  const auto fallback = endpoint == Endpoint::completions ? 16 : 0;  // OpenAI's default is 16
  first.max_tokens = static_cast<std::size_t>(reader.integer(limit_name, fallback, 1, 10'000'000));
  const auto n = static_cast<std::size_t>(reader.integer("n", 1, 1, kMaxChoices));
  read_logprobs(endpoint, reader, local);
  if (reader.error()) return refuse(*reader.error());

  first.top_logprobs =
      static_cast<int>(std::max({local.top_logprobs, context.log_top_logprobs, std::size_t{2}}));
  if (const auto* seed = reader.find("seed")) {
    first.sampling.seed = static_cast<std::uint64_t>(seed->get<std::int64_t>());
  } else if (context.tagged) {
    first.sampling.seed = seed_of_prompt(first.prompt);
  } else if (first.sampling.temperature > 0) {
    local.random_seed = true;
    std::random_device device;
    first.sampling.seed = static_cast<std::uint64_t>(device()) << 32 | device();
  }
  for (std::size_t i = 0; i < n; ++i) {
    local.choices.push_back(first);
    local.choices.back().sampling.draw = context.sample + static_cast<std::uint32_t>(i);
  }

  PromptKeyInput key;
  const auto parameters = key_parameters(local, first);
  key.tenant = context.tenant;
  key.endpoint = context.client_endpoint;
  key.fingerprint = engine.info().fingerprint;
  key.tokens = first.prompt;
  key.parameters = parameters;
  key.sample = context.sample;
  local.key = prompt_key(key);
  return local;
}

}  // namespace fixpoint
