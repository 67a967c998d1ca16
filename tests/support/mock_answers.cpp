#include "tests/support/mock_answers.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

struct Path {
  std::string_view end;
  MockApi api;
  MockAnswer (*answer)(const MockCall&);
};
// The first that fits: ".../chat/completions" ends with "/completions" too.
constexpr std::array<Path, 6> kPaths = {{
    {"/chat/completions", MockApi::openai, mock_chat},
    {"/completions", MockApi::openai, mock_completions},
    {"/responses", MockApi::openai, mock_responses},
    {"/embeddings", MockApi::openai, mock_embeddings},
    {"/messages", MockApi::anthropic, mock_messages},
    {"/messages/count_tokens", MockApi::anthropic, mock_count_tokens},
}};

const Path* path_of(std::string_view path) {
  for (const Path& known : kPaths) {
    if (path.ends_with(known.end)) return &known;
  }
  return nullptr;
}

std::string header(const MockRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string() : found->second;
}

// Keys with one of these words in them are refused: 401 and 429.
int refusal_of(const MockRequest& request) {
  const std::string key = header(request, "authorization") + header(request, "x-api-key");
  if (key.find("invalid") != std::string::npos) return 401;
  if (key.find("limited") != std::string::npos) return 429;
  return 0;
}

std::string http_date(std::time_t when) {
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  std::array<char, 40> text;
  std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text.data();
}

void add_retry_headers(const MockBehaviour& how, int status, MockAnswer& answer) {
  if (how.has("retryafter")) {
    answer.headers.emplace_back("retry-after", std::to_string(how.number("retryafter")));
  } else if (how.has("retryafterms")) {
    answer.headers.emplace_back("retry-after-ms", std::to_string(how.number("retryafterms")));
  } else if (how.has("retrydate")) {
    const auto when = std::time(nullptr) + static_cast<std::time_t>(how.number("retrydate"));
    answer.headers.emplace_back("retry-after", http_date(when));
  } else if (status == 429) {
    answer.headers.emplace_back("retry-after", "1");
  }
  if (how.has("shouldretry")) {
    answer.headers.emplace_back("x-should-retry", how.number("shouldretry") ? "true" : "false");
  }
}

// What SDKs and dashboards read, unrenamed.
void add_usual_headers(MockApi api, const MockCall& call, MockAnswer& answer) {
  if (api == MockApi::anthropic) {
    answer.headers.emplace_back("request-id", "req_mock_" + call.number());
    answer.headers.emplace_back("anthropic-ratelimit-requests-remaining", "99");
  } else {
    answer.headers.emplace_back("x-request-id", "req_mock_" + call.number());
    answer.headers.emplace_back("openai-processing-ms", "1");
    answer.headers.emplace_back("openai-version", "2020-10-01");
    answer.headers.emplace_back("x-ratelimit-remaining-requests", "99");
  }
}

MockAnswer generate(const Path& path, const MockRequest& request, std::uint64_t call,
                    std::uint64_t attempt) {
  json body = json::parse(request.body, nullptr, false);
  if (!body.is_object()) {
    return mock_error(path.api, 400, "the body is not a JSON object", "invalid_json");
  }
  const json named = body.value("model", json());
  const std::string model = named.is_string() ? named.get<std::string>() : std::string();
  const auto how = MockBehaviour::of(model);
  if (!how) {
    return mock_error(path.api, 404, "the model \"" + model + "\" does not exist",
                      "model_not_found");
  }
  int status = static_cast<int>(how->number("error"));
  if (how->has("retry") && attempt <= how->number("retry", 0, 1)) {
    status = static_cast<int>(how->number("retry", 1, 503));
  }
  if (const int refused = refusal_of(request); refused != 0) status = refused;
  if (status != 0) {
    MockAnswer answer =
        mock_error(path.api, status, "mock error " + std::to_string(status), "mock_error");
    add_retry_headers(*how, status, answer);
    return answer;
  }
  if (how->has("garbage")) {
    MockAnswer answer;
    answer.pieces = {"<html>this is not JSON</html>"};
    return answer;
  }
  MockCall parsed{request, std::move(body), *how, model, call};
  for (const char* word : {"cut", "end", "resetat"}) {  // the number would change the lengths
    if (how->has(word)) parsed.model = std::string("mock-") + word;
  }
  MockAnswer answer;
  try {
    answer = path.answer(parsed);
  } catch (const json::exception& error) {  // a member of another type than the API's
    return mock_error(path.api, 400, error.what(), "invalid_type");
  }
  if (answer.status == 200) add_usual_headers(path.api, parsed, answer);
  return answer;
}

MockAnswer models(bool anthropic) {
  json model = {{"id", "mock"}, {"object", "model"}, {"created", kMockCreated}};
  json list = {{"object", "list"}};
  if (anthropic) {
    model = {{"id", "mock"},
             {"type", "model"},
             {"display_name", "Mock"},
             {"created_at", "2023-11-14T22:13:20Z"}};
    list = {{"has_more", false}, {"first_id", "mock"}, {"last_id", "mock"}};
  } else {
    model["owned_by"] = "mock";
  }
  list["data"] = json::array({model});
  MockAnswer answer;
  answer.pieces = {list.dump()};
  return answer;
}

}  // namespace

std::uint64_t mock_hash(std::string_view body) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : body) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string mock_model(std::string_view body) {
  const std::size_t at = body.find("\"model\"");
  if (at == std::string_view::npos) return {};
  const std::size_t open = body.find('"', at + 7);
  if (open == std::string_view::npos) return {};
  const std::size_t close = body.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  return std::string(body.substr(open + 1, close - open - 1));
}

bool mock_generates(std::string_view path) {
  return path_of(path) != nullptr;
}

bool mock_fast_answer(const MockRequest& request, std::uint64_t call, std::string& response) {
  const std::string_view body = request.body;
  if (!request.path.ends_with("/chat/completions") || request.method != "POST") return false;
  // Anything beyond model and messages goes the long way.
  for (const char* word : {"\"n\"", "logprobs", "\"tools\"", "\"response_format\""}) {
    if (body.find(word) != std::string_view::npos) return false;
  }
  const std::size_t stream = body.find("\"stream\":");
  if (stream != std::string_view::npos && !body.substr(stream + 9).starts_with("false"))
    return false;
  if (mock_model(body) != "mock" || refusal_of(request) != 0) return false;
  std::array<char, 1024> text;
  const int size = std::snprintf(
      text.data(), text.size(),
      R"({"id":"chatcmpl-mock-%llu","object":"chat.completion","created":1700000000,"model":"mock",)"
      R"("system_fingerprint":"fp_mock","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"mock answer body=%016llx call=%llu","refusal":null},"logprobs":null,)"
      R"("finish_reason":"stop"}],"usage":{"prompt_tokens":%zu,"completion_tokens":4,)"
      R"("total_tokens":%zu}})",
      static_cast<unsigned long long>(call), static_cast<unsigned long long>(mock_hash(body)),
      static_cast<unsigned long long>(call), body.size() / 4, body.size() / 4 + 4);
  response = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_mock\r\n";
  response += "Content-Length: ";
  response += std::to_string(size);
  response += "\r\n\r\n";
  response.append(text.data(), static_cast<std::size_t>(size));
  return true;
}

MockAnswer mock_answer(const MockRequest& request, std::uint64_t call, std::uint64_t attempt) {
  if (const Path* path = path_of(request.path)) {
    if (request.method == "POST") return generate(*path, request, call, attempt);
    return mock_error(path->api, 405, "only POST is allowed", "method_not_allowed");
  }
  const bool anthropic = !header(request, "anthropic-version").empty();
  if (request.path.ends_with("/models") && request.method == "GET") return models(anthropic);
  return mock_error(anthropic ? MockApi::anthropic : MockApi::openai, 404, "there is no such path",
                    "not_found");
}

}  // namespace fixpoint::test
