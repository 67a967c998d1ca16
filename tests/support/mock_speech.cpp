#include <algorithm>
#include <array>
#include <cstdio>

#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

constexpr int kDeepestSchema = 32;  // schemas that refer to themselves end here

json value_of(const json& schema, const json& root, const std::string& text, int depth) {
  if (!schema.is_object() || depth > kDeepestSchema) return nullptr;
  if (const auto ref = schema.find("$ref"); ref != schema.end()) {
    const json::json_pointer at(ref->get<std::string>().substr(1));  // "#/$defs/name"
    return value_of(root.at(at), root, text, depth + 1);
  }
  if (schema.contains("const")) return schema["const"];
  if (schema.contains("enum")) return schema["enum"][0];
  for (const char* word : {"anyOf", "oneOf", "allOf"}) {
    if (schema.contains(word)) return value_of(schema[word][0], root, text, depth + 1);
  }
  const json named = schema.value("type", json("object"));
  const std::string type = named.is_array() ? named[0] : named;
  if (type == "string") return text;
  if (type == "integer") return 7;
  if (type == "number") return 1.5;
  if (type == "boolean") return true;
  if (type == "null") return nullptr;
  if (type == "array") {
    return json::array({value_of(schema.value("items", json()), root, text, depth + 1)});
  }
  json object = json::object();
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) {
    object[name] = value_of(property, root, text, depth + 1);
  }
  return object;
}

}  // namespace

std::string MockCall::number() const {
  if (!how.has("cut") && !how.has("end") && !how.has("resetat")) return std::to_string(call);
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "%06llu",
                static_cast<unsigned long long>(call % 1'000'000));
  return text.data();
}

std::string MockCall::content() const {
  std::array<char, 17> hash;
  std::snprintf(hash.data(), hash.size(), "%016llx",
                static_cast<unsigned long long>(mock_hash(http.body)));
  std::string text = "mock answer body=" + std::string(hash.data()) + " call=" + number();
  if (how.has("fixed")) text = "mock answer body=0 call=0";
  if (how.has("utf8")) text += " é 漢字 🙂 \u200d👩‍🚀 \u2028";
  for (std::size_t i = mock_tokens(text).size(); i < how.number("stream"); ++i) {
    text += " w" + std::to_string(i);
  }
  if (how.has("big")) text += " " + std::string(how.number("big"), 'x');
  return text;
}

bool MockCall::streams() const {
  return body.contains("stream") && body["stream"] == true;
}

std::vector<std::string> MockSpeech::tokens() const {
  return mock_tokens(content);
}

MockSpeech mock_speech(const MockCall& call, const std::vector<MockTool>& tools,
                       const json& schema) {
  MockSpeech speech;
  const std::string text = call.content();
  speech.content = schema.is_null() ? text : mock_value(schema, text).dump();
  if (call.how.has("reasoning")) speech.reasoning = "mock reasoning before the answer";
  if (tools.empty()) return speech;
  const std::size_t count = std::max<std::size_t>(1, call.how.number("tools"));
  for (std::size_t i = 0; i < count; ++i) {
    const MockTool& tool = tools[i % tools.size()];
    json arguments = mock_value(tool.parameters, text);
    if (!arguments.is_object() || arguments.empty()) arguments = {{"echo", text}};
    speech.tools.push_back(
        {"call_" + call.number() + "_" + std::to_string(i), tool.name, arguments.dump()});
  }
  return speech;
}

std::vector<std::string> mock_tokens(const std::string& content) {
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

std::vector<std::string> mock_pieces(const std::string& text, std::size_t count) {
  std::vector<std::string> pieces;
  const std::size_t step = std::max<std::size_t>(1, text.size() / std::max<std::size_t>(1, count));
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = std::min(start + step, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) ++end;
    pieces.push_back(text.substr(start, end - start));
    start = end;
  }
  return pieces;
}

double mock_logprob(const std::string& token, std::size_t rank) {
  return -0.001 * static_cast<double>(1 + mock_hash(token) % 500) -
         0.75 * static_cast<double>(rank);
}

json mock_bytes(const std::string& text) {
  json bytes = json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

json mock_logprobs(const std::vector<std::string>& tokens, std::size_t top) {
  json content = json::array();
  for (const std::string& token : tokens) {
    json alternatives = json::array();
    for (std::size_t rank = 0; rank < top; ++rank) {
      const std::string text = rank == 0 ? token : token + "~" + std::to_string(rank);
      alternatives.push_back(
          {{"token", text}, {"logprob", mock_logprob(token, rank)}, {"bytes", mock_bytes(text)}});
    }
    content.push_back({{"token", token},
                       {"logprob", mock_logprob(token, 0)},
                       {"bytes", mock_bytes(token)},
                       {"top_logprobs", alternatives}});
  }
  return content;
}

json mock_value(const json& schema, const std::string& text) {
  return value_of(schema, schema, text, 0);
}

}  // namespace fixpoint::test
