#include "cache/entry_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Entry chat_entry(const std::string& body) {
  BodyKeyInput input;
  input.tenant = "team";
  input.provider = "openai";
  input.base_url = "https://api.example/v1";
  input.endpoint = "chat.completions";
  input.request =
      R"({"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}],"seed":9007199254740993})";
  Entry entry = entry_of("", body);
  entry.key = body_key(input).value();
  entry.tenant = "team";
  return entry;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

constexpr const char* kAnswer =
    R"({"id":"x","choices":[{"logprob":-0.10000000000000001}],"n":1.0})";
constexpr const char* kIndented =
    "{\n  \"id\": \"x\",\n  \"choices\": [],\n  \"a\": [\n    1\n  ]\n}";

const std::vector<std::string>& bodies() {
  static const std::vector<std::string> all{
      kAnswer,
      R"({"id": "x", "n": [1, 2]})",
      kIndented,
      std::string(kIndented) + "\n",
      std::string(kAnswer) + "\r\n \n",
      R"({ "odd" :1})",
      " {}",
      "{\"a\":1,\"a\":2}",  // not for canonical_json()
      "not JSON \xE2\x82\xAC",
      std::string("\xFF\0\x01", 3),
      "",
      " ",
      "17",
      "\"text\"",
      R"({"base64":"AAAA"})",
      "{\"deep\":" + std::string(200, '[') + std::string(200, ']') + "}",
  };
  return all;
}

TEST(EntryJson, EveryBodyComesBackByteForByte) {
  for (const std::string& body : bodies()) {
    const Entry entry = chat_entry(body);
    const std::string line = entry_to_json(entry);
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    const Result<Entry> back = entry_from_json(line);
    ASSERT_TRUE(back) << back.error().message << line;
    expect_equal(*back, entry);
    const Result<Entry> recorded = entry_from_recording(entry_to_recording(entry));
    ASSERT_TRUE(recorded) << recorded.error().message << entry_to_recording(entry);
    expect_equal(*recorded, entry);
  }
}

// The request and the answer each may be as large as the gateway takes them; a file has both.
TEST(EntryJson, TheLargestRequestsAndAnswersComeBack) {
  const auto times = [](std::size_t count, const std::string& value) {
    std::string text = "[" + value;
    for (std::size_t i = 1; i < count; ++i) text += "," + value;
    return text + "]";
  };
  const std::pair<std::string, std::string> sizes[] = {
      {times(90'000, "7"), times(950'000, "0.5")},  // embeddings
      {times(30'000, R"({"a":1,"b":2})"), times(40'000, R"({"token":"a","logprob":-1})")},
      {"[]", times(60'000, R"({"token":"a","logprob":-1})")},
  };
  for (const auto& [input, answer] : sizes) {
    const std::string request = R"({"model":"m","input":)" + input + "}";
    Entry entry = entry_of("", R"({"data":)" + answer + "}");
    BodyKeyInput key;
    key.request = request;
    entry.key = body_key(key).value();
    const std::string line = entry_to_json(entry);
    EXPECT_EQ(line.find("answer_text"), std::string::npos);
    const Result<Entry> back = entry_from_json(line);
    ASSERT_TRUE(back) << back.error().message;
    expect_equal(*back, entry);
    const std::string recording = entry_to_recording(entry);
    EXPECT_EQ(recording.find("answer_text"), std::string::npos);
    const Result<Entry> recorded = entry_from_recording(recording);
    ASSERT_TRUE(recorded) << recorded.error().message;
    expect_equal(*recorded, entry);
  }
}

TEST(EntryJson, AwkwardFieldsComeBack) {
  for (const Entry& entry : awkward_entries()) {
    const Result<Entry> back = entry_from_json(entry_to_json(entry));
    ASSERT_TRUE(back) << back.error().message;
    expect_equal(*back, entry);
    const Result<Entry> recorded = entry_from_recording(entry_to_recording(entry));
    ASSERT_TRUE(recorded) << recorded.error().message;
    expect_equal(*recorded, entry);
  }
}

TEST(EntryJson, KeysOfEveryKindComeBack) {
  const std::vector<std::int32_t> tokens{0, 1, -1, 2147483647, 50256};
  std::vector<CacheKey> keys;
  for (const char* parameters :
       {R"({"temperature":0})", R"({"temperature":0.0})", R"({"a": 1})", R"("{}")", "", "text",
        "[1,", R"({"b":1,"a":2})", R"({"base64":"AA=="})", "\xFF"}) {
    PromptKeyInput input;
    input.endpoint = "completions";
    input.fingerprint = "fp";
    input.tokens = tokens;
    input.parameters = parameters;
    keys.push_back(prompt_key(input));
  }
  for (const char* material :
       {"d\ntokens 3\nabc\n", "d\ntokens 0\n\n", "d\nname 1\na\nname 1\nb\n", "d\nversion 1\na\n",
        "d\n\xFF 1\na\n", "d\n", "plain", "d\ntokens 2\n[]\n", "d\nrequest 2\n[]\n"}) {
    keys.push_back(key_of(material));
  }
  for (const CacheKey& key : keys) {
    Entry entry = entry_of("", "{}");
    entry.key = key;
    const Result<Entry> back = entry_from_json(entry_to_json(entry));
    ASSERT_TRUE(back) << back.error().message << key.material;
    expect_equal(*back, entry);
  }
}

RC_GTEST_PROP(EntryJson, AnyBytesComeBack,
              (const std::string& material, const std::string& body, const std::string& model)) {
  Entry entry = entry_of(material, body);
  entry.model = model;
  const Result<Entry> back = entry_from_json(entry_to_json(entry));
  RC_ASSERT(back.has_value());
  expect_equal(*back, entry);
}

TEST(EntryJson, ALineCanBeReadByOtherPrograms) {
  const json line = json::parse(entry_to_json(chat_entry(kAnswer)));
  EXPECT_EQ(line["format"], 1);
  EXPECT_EQ(line["tenant"], "team");
  EXPECT_EQ(line["material"]["provider"], "openai");
  EXPECT_EQ(line["material"]["request"]["messages"][0]["content"], "Hi");
  EXPECT_EQ(line["answer"]["id"], "x");
}

TEST(EntryJson, ARecordingReadsLikeThis) {
  Entry entry = chat_entry(R"({"id":"chatcmpl-1","choices":[{"text":"Hello"}],"e":[0.5,1]})");
  entry.first_token_ms = 17;
  entry.total_ms = 99;
  entry.pace = "17 40";
  EXPECT_EQ(entry_to_recording(entry), R"({
  "format": 1,
  "key": ")" + entry.key.name() + R"(",
  "tenant": "team",
  "endpoint": "chat.completions",
  "model": "model-1",
  "provider": "upstream",
  "generation": "gen-0123456789abcdef01234567",
  "created_ms": 1700000000123,
  "first_token_ms": 17,
  "total_ms": 99,
  "pace": "17 40",
  "material": {
    "version": "fixpoint-key-v1",
    "kind": "body",
    "tenant": "team",
    "provider": "openai",
    "base_url": "https://api.example/v1",
    "endpoint": "chat.completions",
    "sample": "0",
    "request": {
      "messages": [
        {
          "content": "Hi",
          "role": "user"
        }
      ],
      "model": "gpt-4o",
      "seed": 9007199254740993
    }
  },
  "answer": {
    "id": "chatcmpl-1",
    "choices": [
      {
        "text": "Hello"
      }
    ],
    "e": [0.5, 1]
  }
}
)");
}

// Also where one part is not in canonical form, as the parameters of a local generation are not.
TEST(EntryJson, EachPartIsReadableByItself) {
  const std::vector<std::int32_t> tokens{7, 8};
  PromptKeyInput input;
  input.endpoint = "chat.completions";
  input.fingerprint = "\xFF";
  input.parameters = R"({"temperature":0.0})";
  input.tokens = tokens;
  json material = json::parse(material_to_json(prompt_key(input).material));
  EXPECT_EQ(material["endpoint"], "chat.completions");
  EXPECT_EQ(material["parameters"], R"({"temperature":0.0})");
  EXPECT_EQ(material["tokens"], json::array({7, 8}));
  EXPECT_EQ(material["fingerprint"]["base64"], "/w==");
  input.parameters = R"({"temperature":0})";
  material = json::parse(material_to_json(prompt_key(input).material));
  EXPECT_EQ(material["parameters"]["temperature"], 0);
}

TEST(EntryJson, WhatWasAskedStandsBesideTheKey) {
  Entry entry = chat_entry(kAnswer);
  EXPECT_FALSE(json::parse(entry_to_recording(entry)).contains("asked"));
  entry.key.asked = R"({"request":{"n":9007199254740993}})";
  const std::string text = entry_to_recording(entry);
  EXPECT_THAT(text, HasSubstr("\"n\": 9007199254740993"));
  EXPECT_EQ(entry_from_recording(text)->key.asked, entry.key.asked);
  const Result<Entry> wrong =
      entry_from_recording(replaced(text, "\"asked\": {", "\"asked\": 1, \"x\": {"));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("'asked'"));
}

TEST(EntryJson, AnImportFindsEveryChange) {
  const std::string line = entry_to_json(chat_entry(kAnswer));
  const auto code = [](const std::string& text) {
    const Result<Entry> entry = entry_from_json(text);
    return entry ? ErrorCode::closed : entry.error().code;
  };
  for (const auto& [from, to] :
       {std::pair{"\"id\":\"x\"", "\"id\":\"y\""},
        {"1.0", "1"},
        {"model-1", "model-2"},
        {"\"tenant\":\"team\",\"endpoint", "\"tenant\":\"other\",\"endpoint"},
        {"1700000000123", "1700000000124"},
        {"\"total_ms\":0", "\"total_ms\":1"},
        {"\"sha256\":\"", "\"sha256\":\"0"}}) {
    EXPECT_EQ(code(replaced(line, from, to)), ErrorCode::corrupt) << from;
  }
  for (const auto& [from, to] : {std::pair{"\"format\":1", "\"format\":2"},
                                 {"\"format\":1", "\"format\":\"1\""},
                                 {"\"Hi\"", "\"Ho\""},
                                 {"\"key\":\"body:", "\"key\":\"bodi:"},
                                 {"\"answer\":", "\"a\":"},
                                 {"\"material\":", "\"m\":"},
                                 {"\"sha256\":", "\"s\":"},
                                 {"\"total_ms\":0", "\"total_ms\":-1"},
                                 {"\"total_ms\":0", "\"total_ms\":4294967296"},
                                 {"\"id\":\"x\"", "\"id\":\"x\",\"id\":\"x\""},
                                 {"{", "["},
                                 {"}", ""},
                                 {"\"model\":\"model-1\"", "\"model\":1"}}) {
    EXPECT_EQ(code(replaced(line, from, to)), ErrorCode::invalid) << from;
  }
  EXPECT_THAT(entry_from_json(replaced(line, "\"format\":1", "\"format\":2")).error().message,
              HasSubstr("'format' is 2"));
  EXPECT_THAT(entry_from_json("17").error().message, HasSubstr("no object"));
}

TEST(EntryJson, AnAnswerEditedByHandIsTaken) {
  const auto edited = [](const std::string& body) {
    const std::string text =
        replaced(entry_to_recording(chat_entry(body)), "\"id\": \"x\"", "\"id\": \"edited\"");
    const Result<Entry> entry = entry_from_recording(text);
    EXPECT_TRUE(entry) << entry.error().message;
    return entry ? *entry->body : "";
  };
  EXPECT_EQ(edited(R"({"id":"x","n":1.0})"), R"({"id":"edited","n":1.0})");
  EXPECT_EQ(edited("{\n  \"id\": \"x\"\n}\n"), "{\n  \"id\": \"edited\"\n}\n");
  EXPECT_EQ(edited(R"({ "id":"x"})"), R"({"id":"edited"})");  // its own layout is gone
}

}  // namespace
}  // namespace fixpoint::test
