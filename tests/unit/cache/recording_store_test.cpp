#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "tests/unit/cache/store_conformance.hpp"
#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct RecordingBackend {
  TemporaryFolder folder;
  std::unique_ptr<Store> open(const StoreLimits& = {}) {
    Result<std::unique_ptr<RecordingStore>> store = open_recording(folder.file("recorded"));
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Recording, StoreConformance, RecordingBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Recording, PersistentStoreConformance, RecordingBackend);

CacheKey chat_key(const std::string& content, const std::string& rest = "",
                  const std::string& model = "gpt-4o") {
  const std::string request = R"({"model":")" + model +
                              R"(","messages":[{"role":"system","content":)"
                              R"("Be brief."},{"role":"user","content":")" +
                              content + "\"}]" + rest + "}";
  BodyKeyInput input;
  input.provider = "openai";
  input.base_url = "https://api.example/v1";
  input.endpoint = "chat.completions";
  input.request = request;
  return body_key(input).value();
}

Entry chat_entry(const CacheKey& key, const std::string& text) {
  Entry entry = entry_of("", R"({"id":"x","text":")" + text + "\"}");
  entry.key = key;
  entry.model = "gpt-4o";
  return entry;
}

class RecordingStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<RecordingStore> open() {
    Result<std::unique_ptr<RecordingStore>> store = open_recording(directory_);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  Error open_error() {
    Result<std::unique_ptr<RecordingStore>> store = open_recording(directory_);
    return store ? Error{ErrorCode::closed, "opened"} : store.error();
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(directory_)) {
      names.push_back(file.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(directory_ + "/" + name).rdbuf();
    return std::move(text).str();
  }
  void edit(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = read(name);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(directory_ + "/" + name) << text.replace(at, from.size(), to);
  }

  TemporaryFolder folder_;
  std::string directory_ = folder_.file("tests/recorded");
};

TEST_F(RecordingStoreTest, OneFileForEachAnswerWithATellingName) {
  const auto store = open();
  const CacheKey key = chat_key("Hi");
  put(*store, chat_entry(key, "Hello"));
  Entry strange = entry_of("m", "b");
  strange.endpoint = "../..";
  strange.model = "org/model:1 \xC3\xA4";
  put(*store, strange);
  EXPECT_THAT(files(),
              ElementsAre("_._..-org_model_1___-" + strange.key.hex.substr(0, 12) + ".json",
                          "chat.completions-gpt-4o-" + key.hex.substr(0, 12) + ".json"));
  EXPECT_THAT(read(files()[1]), HasSubstr("\"text\": \"Hello\""));
}

TEST_F(RecordingStoreTest, TheSameAnswerAgainChangesNoFile) {
  const auto store = open();
  Entry entry = chat_entry(chat_key("Hi"), "Hello");
  put(*store, entry);
  const std::string before = read(files()[0]);
  entry.created_ms += 1000;
  entry.generation = "gen-other";
  put(*store, entry);
  EXPECT_EQ(read(files()[0]), before);
  put(*store, chat_entry(entry.key, "Another"));
  EXPECT_THAT(read(files()[0]), HasSubstr("Another"));
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(RecordingStoreTest, AnEditedAnswerIsServedAndARenamedFileKept) {
  const CacheKey key = chat_key("Hi");
  put(*open(), chat_entry(key, "Hello"));
  edit(files()[0], "Hello", "Edited");
  std::filesystem::rename(directory_ + "/" + files()[0], directory_ + "/greeting.json");
  const auto store = open();
  EXPECT_EQ(body_of(*store, key), R"({"id":"x","text":"Edited"})");
  put(*store, chat_entry(key, "New"));
  EXPECT_THAT(files(), ElementsAre("greeting.json"));
  EXPECT_THAT(read("greeting.json"), HasSubstr("New"));
}

TEST_F(RecordingStoreTest, ARequestThatDoesNotGiveItsKeyIsAnErrorThatNamesTheFile) {
  put(*open(), chat_entry(chat_key("Hi"), "Hello"));
  const std::string name = files()[0];
  edit(name, "\"Hi\"", "\"Ho\"");
  EXPECT_EQ(open_error().code, ErrorCode::invalid);
  EXPECT_THAT(open_error().message, AllOf(HasSubstr(name), HasSubstr("digest")));
  // White space and the order of members do not matter.
  edit(name, "\"Ho\"", "  \"\\u0048i\"");
  EXPECT_EQ(open_error().message, "opened");
}

TEST_F(RecordingStoreTest, WhatIsNoRecordingIsAnErrorThatNamesTheFile) {
  put(*open(), chat_entry(chat_key("Hi"), "Hello"));
  std::ofstream(directory_ + "/notes.txt") << "not looked at";
  std::ofstream(directory_ + "/half.json.tmp") << "nor this";
  EXPECT_EQ(open_error().message, "opened");
  std::ofstream(directory_ + "/half.json") << "{\"format\":1";
  EXPECT_THAT(open_error().message, HasSubstr("half.json: "));
  std::filesystem::remove(directory_ + "/half.json");
  std::filesystem::copy_file(directory_ + "/" + files()[0], directory_ + "/twice.json");
  EXPECT_THAT(open_error().message,
              AllOf(HasSubstr("twice.json: the same key as in chat.completions-gpt-4o-")));
}

TEST_F(RecordingStoreTest, PurgeRemovesTheFiles) {
  const auto store = open();
  put(*store, chat_entry(chat_key("Hi"), "Hello"));
  put(*store, chat_entry(chat_key("Ho"), "Hello"));
  EntryFilter filter;
  filter.key = chat_key("Hi").name();
  EXPECT_EQ(*store->purge(filter), 1u);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(RecordingStoreTest, AWriteThatFailsIsCountedAndTold) {
  std::vector<std::string> told;
  const auto store = open_recording(directory_, [&](const Error& error) {
                       told.push_back(error.message);
                     }).value();
  std::filesystem::remove_all(directory_);
  put(*store, chat_entry(chat_key("Hi"), "Hello"));
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr(directory_ + "/chat.completions-gpt-4o-"),
                                      HasSubstr("No such file"))));
  EXPECT_EQ(body_of(*store, chat_key("Hi")), "none");
}

TEST_F(RecordingStoreTest, ADirectoryThatCannotBe) {
  std::ofstream(folder_.file("tests")) << "a file";
  EXPECT_EQ(open_error().code, ErrorCode::io);
  EXPECT_EQ(open_recording("").error().code, ErrorCode::invalid);
}

TEST_F(RecordingStoreTest, ExplainsAMissByTheNearestRecording) {
  const auto store = open();
  EXPECT_EQ(store->explain_miss(chat_key("Hi")), "");
  const CacheKey near = chat_key("Why is the sky blue?", R"(,"temperature":0)");
  put(*store, chat_entry(near, "a"));
  put(*store, chat_entry(chat_key("Hi", R"(,"temperature":1,"top_p":0.5)", "other"), "b"));
  const std::string why =
      store->explain_miss(chat_key("Why is the sky red?", R"(,"seed":9007199254740993)"));
  EXPECT_EQ(why, "the nearest recording is chat.completions-gpt-4o-" + near.hex.substr(0, 12) +
                     ".json, which differs in messages[1].content (recorded \"Why is the sky "
                     "blue?\", asked \"Why is the sky red?\"), seed (recorded nothing, asked "
                     "9007199254740993), temperature (recorded 0, asked nothing)");
  EXPECT_EQ(store->explain_miss(*parse_key_name(key_of("x").name())), "");
}

TEST_F(RecordingStoreTest, ExplanationsAreShort) {
  const auto store = open();
  std::string stored = "[", asked = "[";
  for (int i = 0; i < 9; ++i) {
    stored += std::to_string(i) + ",";
    asked += std::to_string(i + 1) + ",";
  }
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xC3\xA4";
  put(*store, chat_entry(chat_key("Hi", ",\"stop\":" + stored + "9]"), "a"));
  const std::string why = store->explain_miss(chat_key(text, ",\"stop\":" + asked + "9]"));
  EXPECT_THAT(why, AllOf(HasSubstr(" and 5 more"), HasSubstr("stop[3] (recorded 3, asked 4)"),
                         Not(HasSubstr("stop[4]")), HasSubstr("\xC3\xA4...)")));
  EXPECT_LT(why.size(), 400u);
}

// Where they differ is shown, however much they have in common before it.
TEST_F(RecordingStoreTest, LongValuesAreShownAroundTheirFirstDifference) {
  const auto store = open();
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xC3\xA4";
  const std::string rest = " and so on, which nobody needs to read in an error message";
  put(*store, chat_entry(chat_key(text + "Answer in French." + rest), "a"));
  const std::string why = store->explain_miss(chat_key(text + "Answer in German." + rest));
  EXPECT_THAT(why, AllOf(HasSubstr("(recorded ...\xC3\xA4"), HasSubstr("Answer in French. and"),
                         HasSubstr(", asked ...\xC3\xA4"), HasSubstr("Answer in German. and")));
  EXPECT_THAT(why, Not(HasSubstr("nobody needs")));
  // All letters are whole.
  EXPECT_NO_THROW((void)nlohmann::json(why).dump());
  EXPECT_THAT(store->explain_miss(chat_key(text)),
              AllOf(HasSubstr("Answer in French"), HasSubstr("\xC3\xA4\")")));
}

TEST_F(RecordingStoreTest, LooksIntoStringsThatHoldJson) {
  const auto store = open();
  const auto arguments = [](const std::string& text) {
    return R"(,"x":{"arguments":)" + nlohmann::json(text).dump() + "}";
  };
  put(*store, chat_entry(chat_key("Hi", arguments(R"({"city":"Paris","days":[1,2]})")), "a"));
  EXPECT_THAT(store->explain_miss(chat_key("Hi", arguments(R"({"city":"Rome","days":[1,3]})"))),
              HasSubstr("differs in x.arguments.city (recorded \"Paris\", asked \"Rome\"), "
                        "x.arguments.days[1] (recorded 2, asked 3)"));
  EXPECT_THAT(store->explain_miss(chat_key("Hi", arguments("Rome"))),
              HasSubstr("differs in x.arguments (recorded \"{"));
  EXPECT_THAT(store->explain_miss(chat_key("Hi", arguments(R"({"city":"Paris", "days":[1,2]})"))),
              HasSubstr("nothing but the spelling of a value"));
  const std::string deep(100'000, '[');
  EXPECT_THAT(store->explain_miss(chat_key("Hi", arguments(deep + std::string(100'000, ']')))),
              HasSubstr("differs in x.arguments (recorded"));
}

// Their parameters are no canonical JSON: a string in the material.
TEST_F(RecordingStoreTest, LocalRequestsAreExplainedByTheirParameters) {
  const auto store = open();
  const std::vector<std::int32_t> tokens{1, 2, 3};
  PromptKeyInput input;
  input.endpoint = "chat.completions";
  input.tokens = tokens;
  input.parameters = R"({"seed":null,"temperature":0.0})";
  Entry entry = entry_of("", "{}");
  entry.key = prompt_key(input);
  put(*store, entry);
  EXPECT_THAT(read(files()[0]), HasSubstr("\"tokens\": [1, 2, 3]"));
  // Those of "1" are.
  for (const char* temperature : {"1.0", "1"}) {
    const std::string parameters = R"({"seed":3,"temperature":)" + std::string(temperature) + "}";
    input.parameters = parameters;
    EXPECT_THAT(store->explain_miss(prompt_key(input)),
                HasSubstr("differs in parameters.seed (recorded null, asked 3), "
                          "parameters.temperature (recorded 0.0, asked " +
                          std::string(temperature) + ")"));
  }
}

// The key has a digest of them.
TEST_F(RecordingStoreTest, HeadersThatDecideAreExplainedByName) {
  const auto store = open();
  const auto key_with = [](const std::string& value, const std::string& text) {
    BodyKeyInput input;
    input.tenant = value;
    const std::string request = R"({"model":"m","x":")" + text + "\"}";
    input.request = request;
    CacheKey key = body_key(input).value();
    if (!value.empty()) key.asked = R"({"headers":{"anthropic-beta":")" + value + "\"}}";
    return key;
  };
  const auto recorded = key_with("a", "x");
  put(*store, chat_entry(recorded, "a"));
  const auto reopened = open();  // what is compared is in the file
  EXPECT_THAT(reopened->explain_miss(key_with("b", "x")),
              HasSubstr("differs in headers.anthropic-beta (recorded \"a\", asked \"b\")"));
  EXPECT_THAT(reopened->explain_miss(key_with("", "x")),
              HasSubstr("differs in headers.anthropic-beta (recorded \"a\", asked nothing)"));
  EXPECT_THAT(reopened->explain_miss(key_with("a", "y")),
              HasSubstr("differs in x (recorded \"x\", asked \"y\")"));
  // A file from before they were shown.
  CacheKey old = key_with("b", "x");
  old.asked.clear();
  EXPECT_THAT(reopened->explain_miss(old),
              HasSubstr("differs in tenant (recorded \"a\", asked \"b\")"));
}

TEST_F(RecordingStoreTest, LocalRequestsAreExplainedByWhatWasAsked) {
  const auto store = open();
  const auto key_of_tokens = [](std::vector<std::int32_t> tokens, const std::string& request,
                                const std::string& fingerprint = "") {
    PromptKeyInput input;
    const std::string endpoint = "responses#digest-of-" + request;
    input.endpoint = endpoint;
    input.fingerprint = fingerprint;
    input.tokens = tokens;
    CacheKey key = prompt_key(input);
    if (!request.empty()) key.asked = R"({"request":)" + request + "}";
    return key;
  };
  const std::string asked = R"({"input":"Hi","metadata":{"a":"b"}})";
  put(*store, chat_entry(key_of_tokens({1, 2}, asked), "a"));
  EXPECT_THAT(read(files()[0]), HasSubstr("\"input\": \"Hi\""));
  const auto reopened = open();
  EXPECT_THAT(
      reopened->explain_miss(key_of_tokens({1, 3}, R"({"input":"Ho","metadata":{"a":"c"}})")),
      HasSubstr("differs in input (recorded \"Hi\", asked \"Ho\"), metadata.a (recorded "
                "\"b\", asked \"c\")"));
  EXPECT_THAT(reopened->explain_miss(key_of_tokens({1, 2}, asked, "other weights")),
              HasSubstr("differs in fingerprint (recorded \"\", asked \"other weights\")"));
  // The same request by another template.
  EXPECT_THAT(reopened->explain_miss(key_of_tokens({1, 3}, asked)),
              HasSubstr("differs in tokens[1] (recorded 2, asked 3)"));
  // An older file, or one of them.
  EXPECT_THAT(reopened->explain_miss(key_of_tokens({1, 3}, "")), HasSubstr("tokens[1]"));
}

TEST_F(RecordingStoreTest, OtherPartsOfTheKeyAreExplainedToo) {
  const auto store = open();
  PromptKeyInput input;
  const std::vector<std::int32_t> tokens{1, 2, 3}, others{1, 5, 3};
  input.endpoint = "chat.completions";
  input.fingerprint = "before";
  input.tokens = tokens;
  Entry entry = entry_of("", "{}");
  entry.key = prompt_key(input);
  put(*store, entry);
  input.fingerprint = "after";
  input.tokens = others;
  EXPECT_THAT(store->explain_miss(prompt_key(input)),
              HasSubstr("differs in fingerprint (recorded \"before\", asked \"after\"), tokens[1] "
                        "(recorded 2, asked 5)"));
}

}  // namespace
}  // namespace fixpoint::test
