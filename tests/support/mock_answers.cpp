#include "tests/support/mock_answers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace fixpoint::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::int64_t kCreated = 1700000000;

// The behaviour that a model's name asks for: "mock-<word>" or "mock-<word>-<a>-<b>".
struct Behaviour {
  std::string word;
  std::size_t a = 0;
  std::size_t b = 0;
};

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::optional<Behaviour> behaviour_of(std::string_view model) {
  if (model == "mock") return Behaviour{};
  if (!model.starts_with("mock-")) return std::nullopt;
  std::vector<std::string_view> parts;
  for (std::string_view rest = model.substr(5); !rest.empty();) {
    const std::size_t dash = std::min(rest.find('-'), rest.size());
    parts.push_back(rest.substr(0, dash));
    rest.remove_prefix(std::min(dash + 1, rest.size()));
  }
  if (parts.empty()) return std::nullopt;
  Behaviour result{std::string(parts[0])};
  if (parts.size() > 1) result.a = number(parts[1]);
  if (parts.size() > 2) result.b = number(parts[2]);
  return result;
}

MockAnswer error(int status, const std::string& message, const char* code) {
  MockAnswer answer;
  answer.status = status;
  const json body = {{"error",
                      {{"message", message},
                       {"type", status == 429  ? "rate_limit_error"
                                : status < 500 ? "invalid_request_error"
                                               : "server_error"},
                       {"param", nullptr},
                       {"code", code}}}};
  answer.pieces = {body.dump()};
  if (status == 429) answer.headers.emplace_back("retry-after", "1");
  return answer;
}

// Content in "tokens": a word with the space before it.
std::vector<std::string> tokens_of(const std::string& content) {
  std::vector<std::string> tokens;
  std::size_t start = 0;
  while (start < content.size()) {
    std::size_t end = content.find(' ', start + 1);
    if (end == std::string::npos) end = content.size();
    tokens.push_back(content.substr(start, end - start));
    start = end;
  }
  return tokens;
}

double logprob_of(const std::string& token, std::size_t rank) {
  return -0.001 * static_cast<double>(1 + mock_hash(token) % 500) -
         0.75 * static_cast<double>(rank);
}

json bytes_of(const std::string& text) {
  json bytes = json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

json chat_logprobs(const std::vector<std::string>& tokens, int top) {
  json content = json::array();
  for (const std::string& token : tokens) {
    json alternatives = json::array();
    for (int rank = 0; rank < top; ++rank) {
      const std::string text = rank == 0 ? token : token + "~" + std::to_string(rank);
      alternatives.push_back({{"token", text},
                              {"logprob", logprob_of(token, static_cast<std::size_t>(rank))},
                              {"bytes", bytes_of(text)}});
    }
    content.push_back({{"token", token},
                       {"logprob", logprob_of(token, 0)},
                       {"bytes", bytes_of(token)},
                       {"top_logprobs", alternatives}});
  }
  return {{"content", content}, {"refusal", nullptr}};
}

json text_logprobs(const std::vector<std::string>& tokens, int top) {
  json result = {{"tokens", json::array()},
                 {"token_logprobs", json::array()},
                 {"top_logprobs", json::array()},
                 {"text_offset", json::array()}};
  std::size_t offset = 0;
  for (const std::string& token : tokens) {
    json alternatives = json::object();
    for (int rank = 0; rank < top; ++rank) {
      alternatives[rank == 0 ? token : token + "~" + std::to_string(rank)] =
          logprob_of(token, static_cast<std::size_t>(rank));
    }
    result["tokens"].push_back(token);
    result["token_logprobs"].push_back(logprob_of(token, 0));
    result["top_logprobs"].push_back(alternatives);
    result["text_offset"].push_back(offset);
    offset += token.size();
  }
  return result;
}

// One generation, in the terms that both endpoints and both modes share.
struct Generation {
  bool chat = true;
  std::string model;
  std::string id;
  std::string finish = "stop";
  std::vector<std::string> tokens;
  int top_logprobs = -1;  // -1: none asked for
  std::string tool;       // the tool to call instead of content
  std::string arguments;
  std::size_t choices = 1;
  std::size_t prompt_bytes = 0;

  json usage() const {
    const std::size_t prompt = prompt_bytes / 4;
    const std::size_t completion = tokens.size() * choices;
    return {{"prompt_tokens", prompt},
            {"completion_tokens", completion},
            {"total_tokens", prompt + completion}};
  }
  json frame(bool chunk) const {
    return {{"id", id},
            {"object", !chat   ? "text_completion"
                       : chunk ? "chat.completion.chunk"
                               : "chat.completion"},
            {"created", kCreated},
            {"model", model},
            {"system_fingerprint", "fp_mock"}};
  }
  json logprobs(const std::vector<std::string>& part) const {
    if (top_logprobs < 0) return nullptr;
    return chat ? chat_logprobs(part, top_logprobs) : text_logprobs(part, top_logprobs);
  }
  json tool_calls(bool chunk) const {
    json call = {{"id", "call_" + id},
                 {"type", "function"},
                 {"function", {{"name", tool}, {"arguments", arguments}}}};
    if (chunk) call["index"] = 0;
    return json::array({call});
  }
};

std::string plain_body(const Generation& g) {
  std::string content;
  for (const std::string& token : g.tokens) content += token;
  json body = g.frame(false);
  body["choices"] = json::array();
  for (std::size_t i = 0; i < g.choices; ++i) {
    json choice = {{"index", i}, {"finish_reason", g.finish}, {"logprobs", g.logprobs(g.tokens)}};
    if (!g.chat) {
      choice["text"] = content;
    } else if (!g.tool.empty()) {
      choice["message"] = {
          {"role", "assistant"}, {"content", nullptr}, {"tool_calls", g.tool_calls(false)}};
    } else {
      choice["message"] = {{"role", "assistant"}, {"content", content}, {"refusal", nullptr}};
    }
    body["choices"].push_back(choice);
  }
  body["usage"] = g.usage();
  return body.dump();
}

// The data of each event, without [DONE].
std::vector<std::string> stream_events(const Generation& g, bool include_usage) {
  std::vector<std::string> events;
  const auto add = [&](std::size_t index, json delta, json finish, json logprobs) {
    json chunk = g.frame(true);
    json choice = {{"index", index}, {"finish_reason", finish}, {"logprobs", logprobs}};
    choice.update(delta);
    chunk["choices"] = json::array({choice});
    if (include_usage) chunk["usage"] = nullptr;
    events.push_back(chunk.dump());
  };
  for (std::size_t i = 0; i < g.choices; ++i) {
    if (g.chat) {
      add(i, {{"delta", {{"role", "assistant"}, {"content", ""}}}}, nullptr, nullptr);
    }
    if (!g.tool.empty()) {
      add(i, {{"delta", {{"tool_calls", g.tool_calls(true)}}}}, nullptr, nullptr);
    } else {
      for (const std::string& token : g.tokens) {
        const json logprobs = g.logprobs({token});
        if (g.chat) {
          add(i, {{"delta", {{"content", token}}}}, nullptr, logprobs);
        } else {
          add(i, {{"text", token}}, nullptr, logprobs);
        }
      }
    }
    if (g.chat) {
      add(i, {{"delta", json::object()}}, g.finish, nullptr);
    } else {
      add(i, {{"text", ""}}, g.finish, nullptr);
    }
  }
  if (include_usage) {
    json chunk = g.frame(true);
    chunk["choices"] = json::array();
    chunk["usage"] = g.usage();
    events.push_back(chunk.dump());
  }
  return events;
}

std::string content_of(const Behaviour& how, const std::string& body, std::uint64_t call) {
  std::array<char, 17> hash;
  std::snprintf(hash.data(), hash.size(), "%016llx",
                static_cast<unsigned long long>(mock_hash(body)));
  std::string content =
      "mock answer body=" + std::string(hash.data()) + " call=" + std::to_string(call);
  if (how.word == "stream") {
    for (std::size_t i = tokens_of(content).size(); i < how.a; ++i) {
      content += " w" + std::to_string(i);
    }
  }
  if (how.word == "big") content += " " + std::string(how.a, 'x');
  return content;
}

MockAnswer generate(bool chat, const std::string& body, std::uint64_t call) {
  const json request = json::parse(body, nullptr, false);
  if (!request.is_object()) return error(400, "the body is not a JSON object", "invalid_json");
  const std::string model = request.value("model", "");
  const std::optional<Behaviour> found = behaviour_of(model);
  if (!found) return error(404, "the model \"" + model + "\" does not exist", "model_not_found");
  const Behaviour& how = *found;
  if (how.word == "error") {
    const int status = static_cast<int>(how.a);
    return error(status, "mock error " + std::to_string(status), "mock_error");
  }
  MockAnswer answer;
  if (how.word == "garbage") {
    answer.pieces = {"<html>this is not JSON</html>"};
    return answer;
  }
  Generation g;
  g.chat = chat;
  g.model = model;
  g.id = (chat ? "chatcmpl-mock-" : "cmpl-mock-") + std::to_string(call);
  g.tokens = tokens_of(content_of(how, body, call));
  g.prompt_bytes = body.size();
  g.choices = request.value("n", std::size_t{1});
  if (how.word == "length") g.finish = "length";
  if (how.word == "filter") g.finish = "content_filter";
  if (chat && request.value("logprobs", false)) g.top_logprobs = request.value("top_logprobs", 0);
  if (!chat && request.contains("logprobs") && request["logprobs"].is_number_integer()) {
    g.top_logprobs = request["logprobs"].get<int>();
  }
  if (chat && request.contains("tools") && request["tools"].is_array() &&
      !request["tools"].empty()) {
    g.tool = request["tools"][0].value("/function/name"_json_pointer, std::string("tool"));
    g.arguments = json({{"echo", content_of(how, body, call)}}).dump();
    g.finish = "tool_calls";
  }
  if (how.word == "slow") answer.delay = milliseconds(2000);
  if (how.word == "delay") answer.delay = milliseconds(how.a);
  if (how.word == "cut") answer.cut = how.a;
  answer.reset = how.word == "reset";
  answer.split = how.word == "split";
  answer.headers.emplace_back("x-request-id", "req_" + g.id);
  answer.headers.emplace_back("openai-processing-ms", "1");
  if (!request.value("stream", false)) {
    answer.pieces = {plain_body(g)};
    return answer;
  }
  if (how.word == "stream") answer.between = milliseconds(how.b);
  const json options = request.value("stream_options", json::object());
  std::vector<std::string> events =
      stream_events(g, options.is_object() && options.value("include_usage", false));
  if (how.word != "nodone") events.emplace_back("[DONE]");
  const std::string end = how.word == "crlf" ? "\r\n" : "\n";
  answer.streamed = true;
  answer.content_type = "text/event-stream";
  for (std::string& event : events) answer.pieces.push_back("data: " + event + end + end);
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

bool mock_fast_answer(std::string_view path, std::string_view body, std::uint64_t call,
                      std::string& response) {
  if (!path.ends_with("/chat/completions")) return false;
  // Anything beyond model and messages goes the long way.
  for (const char* word : {"\"stream\"", "\"n\"", "logprobs", "\"tools\""}) {
    if (body.find(word) != std::string_view::npos) return false;
  }
  if (mock_model(body) != "mock") return false;
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

MockAnswer mock_answer(std::string_view method, std::string_view path, const std::string& body,
                       std::uint64_t call) {
  if (path.ends_with("/chat/completions") || path.ends_with("/completions")) {
    if (method != "POST") return error(405, "only POST is allowed", "method_not_allowed");
    return generate(path.ends_with("/chat/completions"), body, call);
  }
  if (path.ends_with("/models") && method == "GET") {
    MockAnswer answer;
    answer.pieces = {json({{"object", "list"},
                           {"data", json::array({{{"id", "mock"},
                                                  {"object", "model"},
                                                  {"created", kCreated},
                                                  {"owned_by", "mock"}}})}})
                         .dump()};
    return answer;
  }
  return error(404, "there is no such path", "not_found");
}

}  // namespace fixpoint::test
