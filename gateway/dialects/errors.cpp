#include <charconv>
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

// An error of either API, which may be within what reports it: Responses has {"type": "error",
// "code", ...} and {"response": {"error": ...}}.
Said read_report(const Json& body) {
  const Json* response = object_member(body, "response");
  return read_error(response && object_member(*response, "error") ? *response : body);
}

// By the names that the APIs and the servers that speak them give to errors. 0: another name.
int status_of_name(std::string_view name) {
  constexpr std::pair<std::string_view, int> kStatuses[] = {
      {"invalid_request_error", 400}, {"BadRequestError", 400},
      {"invalid_prompt", 400},        {"context_length_exceeded", 400},
      {"authentication_error", 401},  {"billing_error", 402},
      {"permission_error", 403},      {"not_found_error", 404},
      {"NotFoundError", 404},         {"request_too_large", 413},
      {"rate_limit_error", 429},      {"rate_limit_exceeded", 429},
      {"insufficient_quota", 429},    {"api_error", 500},
      {"server_error", 500},          {"InternalServerError", 500},
      {"timeout_error", 504},         {"overloaded_error", 529},
  };
  for (const auto& [known, status] : kStatuses) {
    if (known == name) return status;
  }
  return 0;
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
  Said said = read_report(*parsed);
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

int error_status(const std::string& body) {
  const auto parsed = parse_json(body);
  if (!parsed || !parsed->is_object()) return 0;
  const Said said = read_report(*parsed);
  int status = 0;
  const char* end = said.code.data() + said.code.size();
  const auto [read, problem] = std::from_chars(said.code.data(), end, status);
  if (problem == std::errc() && read == end && status >= 400 && status <= 599) return status;
  status = status_of_name(said.code);
  return status != 0 ? status : status_of_name(said.type);
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
