#include "gateway/api/client_request.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cache/base/json_scanner.hpp"
#include "cache/key.hpp"
#include "gateway/json_edit.hpp"

namespace fixpoint {
namespace {

// Bytes of a model's name, which metrics, logs, spans and fingerprints repeat. Those of the
// configuration have up to 128; the longest of today's providers (resource paths) are below it.
constexpr std::size_t kMaxModelName = 512;

// What the values of a checked text can begin with says of what kind they are.
bool is_string(std::string_view value) {
  return value.starts_with('"');
}
bool is_number(std::string_view value) {
  return value[0] == '-' || (value[0] >= '0' && value[0] <= '9');
}
bool is_integer(std::string_view value) {
  return is_number(value) && value.find_first_of(".eE") == std::string_view::npos;
}

ApiError wrong_type(std::string_view name, std::string_view what) {
  return bad_request("'" + std::string(name) + "' must be " + std::string(what), std::string(name));
}

ApiResult<bool> boolean(std::optional<std::string_view> value, std::string_view path) {
  if (!value) return false;
  if (*value == "true" || *value == "false") return *value == "true";
  return refuse(wrong_type(path, "true or false"));
}

// The member that holds the prompt, and what its value may begin with.
struct Prompt {
  std::string_view name, starts, what;
};
Prompt prompt_of(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::chat_completions:
    case Endpoint::messages:
    case Endpoint::count_tokens:
      return {"messages", "[", "an array"};
    case Endpoint::completions:
      return {"prompt", "\"[", "a string or an array"};
    default:
      return {"input", "\"[", "a string or an array"};
  }
}

std::optional<ApiError> check_prompt(const ClientRequest& request) {
  const auto [name, starts, what] = prompt_of(request.endpoint);
  const auto value = request.find(name);
  if (!value) {
    // Responses may continue a stored prompt or conversation without an input of their own.
    if (request.endpoint == Endpoint::responses) return {};
    return bad_request("'" + std::string(name) + "' is required", std::string(name),
                       "missing_required_parameter");
  }
  if (starts.find((*value)[0]) == std::string_view::npos) return wrong_type(name, what);
  if (name == "messages" && value->find_first_not_of(" \t\r\n", 1) == value->size() - 1) {
    return bad_request("'messages' must have at least one message", "messages");
  }
  return {};
}

std::optional<ApiError> read_sampling(ClientRequest& request) {
  request.one_answer =
      request.endpoint == Endpoint::embeddings || request.endpoint == Endpoint::count_tokens;
  if (const auto temperature = request.find("temperature")) {
    if (!is_number(*temperature)) return wrong_type("temperature", "a number");
    double value = 1;
    std::from_chars(temperature->data(), temperature->data() + temperature->size(), value);
    if (value == 0) request.one_answer = true;
  }
  if (const auto seed = request.find("seed")) {
    std::int64_t value = 0;
    const bool fits =
        is_integer(*seed) &&
        std::from_chars(seed->data(), seed->data() + seed->size(), value).ec == std::errc{};
    if (!fits) return wrong_type("seed", "a whole number of 64 bits");
    request.one_answer = true;
  }
  if (request.endpoint == Endpoint::responses) {
    const auto include = request.find("include");
    request.wants_logprobs =
        include && include->find("\"message.output_text.logprobs\"") != std::string_view::npos;
  } else if (const auto logprobs = request.find("logprobs")) {
    // chat: a boolean; completions: a number of alternatives.
    request.wants_logprobs = *logprobs == "true" || is_number(*logprobs);
  }
  return {};
}

std::optional<ApiError> read_streaming(ClientRequest& request) {
  const auto stream = boolean(request.find("stream"), "stream");
  if (!stream) return stream.error();
  const bool streams =
      request.endpoint != Endpoint::embeddings && request.endpoint != Endpoint::count_tokens;
  request.stream = *stream && streams;
  const auto options = request.find("stream_options");
  if (!options) return {};
  if (!options->starts_with('{')) return wrong_type("stream_options", "an object");
  const auto usage = find_member(*options, "include_usage");
  if (!usage) return bad_request(usage.error().message, "stream_options");
  const auto wanted =
      boolean(*usage && **usage != "null" ? *usage : std::nullopt, "stream_options.include_usage");
  if (!wanted) return wanted.error();
  request.include_usage = *wanted;
  return {};
}

}  // namespace

std::optional<std::string> string_value(std::string_view value) {
  if (value.size() < 2 || !is_string(value)) return {};
  const auto raw = value.substr(1, value.size() - 2);
  return decode_json_string({raw, raw.find('\\') == std::string_view::npos});
}

std::optional<std::string_view> ClientRequest::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const JsonMember& member) { return member.name == name; });
  if (found == members.end() || found->value == "null") return {};
  return found->value;
}

ApiResult<ClientRequest> read_request(Endpoint endpoint, const Request& request) {
  ClientRequest read;
  read.endpoint = endpoint;
  CanonicalOptions options;
  options.exclude = excluded_members(endpoint == Endpoint::responses);
  auto canonical = canonical_json(request.body, options, &read.members);
  if (!canonical) {
    return refuse(bad_request("The request body is not acceptable: " + canonical.error().message));
  }
  if (!canonical->starts_with('{')) {
    return refuse(bad_request("The request body must be a JSON object"));
  }
  read.canonical = std::move(*canonical);

  const auto model = read.find("model");
  if (!model) {
    return refuse(bad_request("'model' is required", "model", "missing_required_parameter"));
  }
  read.model = string_value(*model).value_or("");
  if (read.model.empty()) return refuse(wrong_type("model", "a non-empty string"));
  if (read.model.size() > kMaxModelName) {
    return refuse(bad_request("'model' has " + std::to_string(read.model.size()) +
                                  " bytes; at most " + std::to_string(kMaxModelName) +
                                  " are allowed",
                              "model"));
  }

  if (auto error = check_prompt(read)) return refuse(std::move(*error));
  if (auto error = read_streaming(read)) return refuse(std::move(*error));
  if (auto error = read_sampling(read)) return refuse(std::move(*error));

  auto directives = parse_directives(request.headers, read.find("metadata").value_or(""));
  if (!directives) return refuse(directives.error());
  read.directives = std::move(*directives);
  return read;
}

}  // namespace fixpoint
