#include "gateway/api/openai_request.hpp"

#include <optional>

#include "cache/base/canonical_json.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;

// The member, unless it is absent or null: the SDKs send null for what was not set.
const Json* member(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

ApiResult<bool> boolean(const Json& object, std::string_view name, std::string_view path) {
  const auto* value = member(object, name);
  if (!value) return false;
  if (value->is_boolean()) return value->get<bool>();
  return refuse(
      bad_request("'" + std::string(path) + "' must be true or false", std::string(path)));
}

std::optional<ApiError> check_messages(const Json& body) {
  const auto* messages = member(body, "messages");
  if (!messages)
    return bad_request("'messages' is required", "messages", "missing_required_parameter");
  if (!messages->is_array()) return bad_request("'messages' must be an array", "messages");
  if (messages->empty())
    return bad_request("'messages' must have at least one message", "messages");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const auto path = "messages[" + std::to_string(i) + "]";
    const auto& message = (*messages)[i];
    if (!message.is_object()) return bad_request("'" + path + "' must be an object", path);
    const auto* role = member(message, "role");
    if (!role || !role->is_string()) {
      return bad_request("'" + path + ".role' must be a string", path + ".role");
    }
  }
  return {};
}

std::optional<ApiError> check_prompt(const Json& body) {
  const auto* prompt = member(body, "prompt");
  if (!prompt) return bad_request("'prompt' is required", "prompt", "missing_required_parameter");
  if (!prompt->is_string() && !prompt->is_array()) {
    return bad_request("'prompt' must be a string or an array", "prompt");
  }
  return {};
}

}  // namespace

ApiResult<OpenAiRequest> parse_request(Endpoint endpoint, const Headers& headers,
                                       std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed) return refuse(bad_request("The request body " + parsed.error().message));
  // Duplicate members, which a tree hides, and bytes that are no UTF-8.
  if (const auto canonical = canonical_json(text); !canonical) {
    return refuse(
        bad_request("The request body is not acceptable JSON: " + canonical.error().message));
  }
  OpenAiRequest request;
  request.endpoint = endpoint;
  request.body = std::move(*parsed);
  const Json& body = request.body;
  if (!body.is_object()) return refuse(bad_request("The request body must be a JSON object"));

  const auto* model = member(body, "model");
  if (!model)
    return refuse(bad_request("'model' is required", "model", "missing_required_parameter"));
  if (!model->is_string() || model->get_ref<const std::string&>().empty()) {
    return refuse(bad_request("'model' must be a non-empty string", "model"));
  }
  request.model = model->get<std::string>();

  const auto error =
      endpoint == Endpoint::chat_completions ? check_messages(body) : check_prompt(body);
  if (error) return refuse(*error);

  const auto stream = boolean(body, "stream", "stream");
  if (!stream) return refuse(stream.error());
  request.stream = *stream;
  if (const auto* options = member(body, "stream_options")) {
    if (!options->is_object()) {
      return refuse(bad_request("'stream_options' must be an object", "stream_options"));
    }
    const auto usage = boolean(*options, "include_usage", "stream_options.include_usage");
    if (!usage) return refuse(usage.error());
    request.include_usage = *usage;
  }

  if (const auto* temperature = member(body, "temperature")) {
    if (!temperature->is_number()) {
      return refuse(bad_request("'temperature' must be a number", "temperature"));
    }
    request.temperature_zero = temperature->get<double>() == 0;
  }
  if (const auto* seed = member(body, "seed")) {
    if (!seed->is_number_integer()) {
      return refuse(bad_request("'seed' must be a whole number of 64 bits", "seed"));
    }
    request.has_seed = true;
  }
  // chat: a boolean; completions: a number of alternatives.
  const auto* logprobs = member(body, "logprobs");
  request.wants_logprobs =
      logprobs && (logprobs->is_boolean() ? logprobs->get<bool>() : logprobs->is_number());

  auto directives = parse_directives(headers, body);
  if (!directives) return refuse(directives.error());
  request.directives = std::move(*directives);
  return request;
}

}  // namespace fixpoint
