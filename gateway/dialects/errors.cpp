#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/translate.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint {
namespace {

using dialects::has_value;
using dialects::member;
using dialects::object_member;
using dialects::text_member;
using dialects::text_or_empty;
using dialects::to_text;

std::string_view openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 504:
      return "timeout_error";
    case 529:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

// What an error body of any shape says, as far as it can be read.
struct Said {
  std::string message, type, code, param;
};

std::string text_or_number(const Json& object, std::string_view name) {
  const Json* value = member(object, name);
  if (!value || value->is_null()) return {};
  return value->is_string() ? value->get<std::string>() : to_text(*value);
}

Said read_error(const Json& body) {
  Said said;
  const Json* error = object_member(body, "error");
  const Json& inner = error ? *error : body;
  said.message = text_or_empty(inner, "message");
  // {"error": "..."} and {"detail": ...} are what small servers and web frameworks send.
  if (said.message.empty()) said.message = text_or_number(body, error ? "message" : "error");
  if (said.message.empty()) said.message = text_or_number(body, "detail");
  said.type = text_or_empty(inner, "type");
  said.code = text_or_number(inner, "code");
  said.param = text_or_empty(inner, "param");
  return said;
}

}  // namespace

std::string error_body(Api api, int status, std::string_view message, std::string_view type,
                       std::string_view code, std::string_view param, std::string_view request_id) {
  const auto or_null = [](std::string_view text) { return text.empty() ? Json() : Json(text); };
  Json error = Json::object();
  if (api == Api::anthropic) {
    error["type"] = anthropic_type(status);
    error["message"] = message;
    // Anthropic's SDKs look here for what they can recover from.
    if (!code.empty()) error["details"] = {{"error_code", code}};
    Json body = {{"type", "error"}, {"error", std::move(error)}};
    body["request_id"] = or_null(request_id);
    return to_text(body);
  }
  error["message"] = message;
  error["type"] = type.empty() ? openai_type(status) : type;
  error["param"] = or_null(param);
  error["code"] = or_null(code);
  Json body = Json::object();
  body["error"] = std::move(error);
  return to_text(body);
}

std::string translate_error(Api client, int status, const std::string& body,
                            std::string_view request_id) {
  const auto parsed = parse_json(body);
  if (!parsed || !parsed->is_object()) {
    const std::string message =
        "The upstream answered HTTP " + std::to_string(status) + " without a JSON body";
    return error_body(client, status, message, {}, {}, {}, request_id);
  }
  const bool anthropic = text_or_empty(*parsed, "type") == "error";
  if (object_member(*parsed, "error") && anthropic == (client == Api::anthropic)) return body;
  // Responses reports a failure as {"type": "error", "code", ...} or within its response.
  const Json* response = object_member(*parsed, "response");
  const bool within = response && object_member(*response, "error");
  Said said = read_error(within ? *response : *parsed);
  if (said.message.empty()) {
    said.message = "The upstream answered HTTP " + std::to_string(status) + " without a message";
  }
  // Anthropic's types say more than OpenAI's: they become the code.
  if (anthropic && object_member(*parsed, "error")) {
    said.code = std::exchange(said.type, {});
  } else if (anthropic) {
    said.type.clear();
  }
  return error_body(client, status, said.message, said.type, said.code, said.param, request_id);
}

SseEvent error_event(Endpoint endpoint, const std::string& body, std::uint64_t sequence) {
  if (endpoint == Endpoint::messages) return {"error", body};
  if (endpoint != Endpoint::responses) return {{}, body};
  const auto parsed = parse_json(body);
  const Said said = parsed ? read_error(*parsed) : Said{};
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json event = {{"type", "error"}};
  event["code"] = or_null(said.code.empty() ? said.type : said.code);
  event["message"] = said.message;
  event["param"] = or_null(said.param);
  event["sequence_number"] = sequence;
  return {"error", to_text(event)};
}

}  // namespace fixpoint
