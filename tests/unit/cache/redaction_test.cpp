#include "cache/redaction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <sstream>
#include <thread>

#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kEmail = R"([\w.+-]+@[\w-]+\.[\w.]+)";

Redactor redactor_of(const std::vector<std::string>& patterns, bool keep_text = true) {
  Result<Redactor> redactor = Redactor::compile(patterns, keep_text);
  if (!redactor) throw std::runtime_error(redactor.error().message);
  return std::move(*redactor);
}

// The texts that are left, "#" for a redacted token without text.
std::vector<std::string> left(const GenerationRecord& record) {
  std::vector<std::string> texts;
  for (const LoggedToken& token : record.tokens) {
    texts.push_back(token.redacted && token.bytes.empty() ? "#" : token.bytes);
  }
  return texts;
}

std::vector<std::string> redacted(const Redactor& redactor, const std::vector<std::string>& texts) {
  GenerationRecord record = record_of(1, 1, tokens_of(texts));
  redactor.redact(record);
  return left(record);
}

TEST(Redactor, AMatchOverSeveralTokensTakesThemAll) {
  const Redactor email = redactor_of({kEmail});
  EXPECT_THAT(redacted(email, {"Write", " to", " jo", "e@", "exam", "ple", ".org", ", please"}),
              ElementsAre("Write", " to", "#", "#", "#", "#", "#", ", please"));
  EXPECT_THAT(redacted(email, {"a@b.cd x ", "no", " e@f.gh"}), ElementsAre("#", "no", "#"));
  EXPECT_THAT(redacted(email, {"a@b", " nothing"}), ElementsAre("a@b", " nothing"));
}

TEST(Redactor, ARedactedTokenKeepsNumbersOnly) {
  GenerationRecord record = record_of(1, 1, tokens_of({"key ", "sk-", "1234", "!"}));
  const RedactionOutcome outcome = redactor_of({R"(sk-\d+)"}).redact(record);
  EXPECT_EQ(outcome.redacted_tokens, 2u);
  EXPECT_EQ(outcome.gave_up, 0u);
  const LoggedToken& token = record.tokens[1];
  EXPECT_TRUE(token.redacted);
  EXPECT_EQ(token.bytes, "");
  EXPECT_EQ(token.id, std::nullopt);
  EXPECT_EQ(token.logprob, -0.1f);
  EXPECT_EQ(token.margin, 0.5f);
  ASSERT_EQ(token.top.size(), 2u);
  for (const LoggedAlternative& alternative : token.top) {
    EXPECT_EQ(alternative.bytes, "");
    EXPECT_EQ(alternative.id, std::nullopt);
  }
  EXPECT_EQ(token.top[1].logprob, -0.6f);
  EXPECT_FALSE(record.tokens[0].redacted);
  EXPECT_EQ(record.tokens[3].top[1].bytes, "zz");
}

TEST(Redactor, AnAlternativeThatMatchesLosesItsText) {
  GenerationRecord record = record_of(1, 1, tokens_of({"it is ", "blue"}, "hunter2"));
  EXPECT_EQ(redactor_of({"hunter2"}).redact(record).redacted_tokens, 2u);
  EXPECT_THAT(left(record), ElementsAre("it is ", "blue"));
  EXPECT_TRUE(record.tokens[1].redacted);
  EXPECT_EQ(record.tokens[1].top[0].bytes, "blue");
  EXPECT_EQ(record.tokens[1].top[1].bytes, "");
  EXPECT_EQ(record.tokens[1].top[1].id, std::nullopt);
}

// The alternatives of the second of two tokens that `pattern` leaves, "#" for one that it takes.
std::string alternative_left(const std::string& pattern, const std::string& before,
                             const std::string& alternative) {
  GenerationRecord record = record_of(1, 1, tokens_of({before, "[hidden]"}));
  record.tokens[1].top[1].bytes = alternative;
  redactor_of({pattern}).redact(record);
  EXPECT_THAT(left(record), ElementsAre(before, "[hidden]"));
  EXPECT_EQ(record.tokens[1].top[0].bytes, "[hidden]");
  const std::string& kept = record.tokens[1].top[1].bytes;
  EXPECT_EQ(record.tokens[1].redacted, kept.empty());
  return kept.empty() ? "#" : kept;
}

TEST(Redactor, AnAlternativeIsMatchedWithTheTextBeforeIt) {
  EXPECT_EQ(alternative_left(R"(\d{3}-\d{2}-\d{4})", "SSN 123-45-", "6789"), "#");
  EXPECT_EQ(alternative_left(R"(\d{3}-\d{2}-\d{4})", "SSN 123-45-", "678"), "678");
  EXPECT_EQ(alternative_left(R"(\d{3}-\d{2}-\d{4})", "SSN 12-45-", "6789"), "6789");
  EXPECT_EQ(alternative_left(kEmail, "to joe.smith@", "example.org"), "#");
  EXPECT_EQ(alternative_left(R"((?<=pin )\d+)", "the pin ", "1234"), "#");
  EXPECT_EQ(alternative_left(R"((?<=pin )\d+)", "the pen ", "1234"), "1234");
  EXPECT_EQ(alternative_left(R"(\bcode\b)", "de", "code"), "code");
  EXPECT_EQ(alternative_left(R"(\d{4}$)", "pin 12", "34"), "#");
  EXPECT_EQ(alternative_left("€5", "\xE2\x82", "\xAC\x35"), "#");  // cut inside a letter
  EXPECT_EQ(alternative_left("€5", "€", "\xAC\x35"), "\xAC\x35");
}

TEST(Redactor, AnAlternativesMatchMayBeginFarBefore) {
  const std::string pattern = "(?s)BEGIN.*END";
  EXPECT_EQ(alternative_left(pattern, "x BEGIN" + std::string(1000, '-'), "END"), "#");
  EXPECT_EQ(alternative_left(pattern, "x BEGIN" + std::string(1100, '-'), "END"), "END");
  std::vector<std::string> texts(20'000, " word");
  texts[15'000] = " sk-";
  GenerationRecord record = record_of(1, 1, tokens_of(texts));
  record.tokens[15'001].top[1].bytes = "1";
  record.tokens[15'002].top[1].bytes = "1";
  EXPECT_EQ(redactor_of({R"(sk-\d)"}).redact(record).redacted_tokens, 1u);
  EXPECT_TRUE(record.tokens[15'001].redacted);
}

TEST(Redactor, ChoicesAreTextsOfTheirOwn) {
  GenerationRecord record = record_of(1, 1, tokens_of({"12", "34", "12", "34"}));
  record.tokens[2].choice = record.tokens[3].choice = 1;
  record.tokens[1].bytes = "x";
  redactor_of({R"(\d{4})"}).redact(record);
  EXPECT_THAT(left(record), ElementsAre("12", "x", "#", "#"));
}

TEST(Redactor, SeveralPatternsAndMatchesThatOverlap) {
  EXPECT_THAT(redacted(redactor_of({"abc", "cde"}), {"a", "b", "c", "d", "e", "f"}),
              ElementsAre("#", "#", "#", "#", "#", "f"));
}

TEST(Redactor, BytesThatAreNotUtf8AndHalvesOfCharacters) {
  // The euro sign in two tokens, then a lone byte, then text.
  const Redactor euro = redactor_of({R"(€\d+)"});
  EXPECT_THAT(redacted(euro, {"\xE2\x82", "\xAC", "5", "\xFF", "5"}),
              ElementsAre("#", "#", "#", "\xFF", "5"));
  const Redactor word = redactor_of({R"(\bgeheim\b)"});
  EXPECT_THAT(redacted(word, {"\xFF\xFE", "ge", "heim", "\x80"}),
              ElementsAre("\xFF\xFE", "#", "#", "\x80"));
  EXPECT_THAT(redacted(redactor_of({R"((?i)ÄÖ)"}), {"ä", "ö"}), ElementsAre("#", "#"));
}

TEST(Redactor, EmptyMatchesAreNone) {
  EXPECT_THAT(redacted(redactor_of({"a*", R"(\b)", "x?"}), {"b", "aa", "c"}),
              ElementsAre("b", "#", "c"));
  EXPECT_THAT(redacted(redactor_of({"a"}), {}), ElementsAre());
  EXPECT_THAT(redacted(redactor_of({"ab"}), {"a", "", "b"}), ElementsAre("#", "#", "#"));
}

TEST(Redactor, TextOffTakesEveryTextAndId) {
  GenerationRecord record = record_of(1, 1, tokens_of({"a", "b"}));
  EXPECT_EQ(redactor_of({}, false).redact(record).redacted_tokens, 2u);
  EXPECT_THAT(left(record), ElementsAre("#", "#"));
  EXPECT_EQ(record.tokens[0].id, std::nullopt);
  EXPECT_EQ(record.tokens[0].top[1].bytes, "");
  EXPECT_EQ(record.tokens[0].margin, 0.5f);
  EXPECT_FALSE(redactor_of({}, false).idle());
  EXPECT_TRUE(redactor_of({}).idle());
}

TEST(Redactor, ErrorMessagesToo) {
  GenerationRecord record = record_of(1, 1, {});
  record.finish_reason = "error: no user a@b.cd or e@f.gh here";
  redactor_of({kEmail}).redact(record);
  EXPECT_EQ(record.finish_reason, "error: no user [redacted] or [redacted] here");
  record.finish_reason = "stop";
  redactor_of({"stop"}).redact(record);
  EXPECT_EQ(record.finish_reason, "stop");
}

TEST(Redactor, BadPatternsAreNamed) {
  const Error error = Redactor::compile({"fine", "(open"}).error();
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("redact[1]: '(open' is no PCRE2 pattern: missing closing"));
  EXPECT_THAT(error.message, HasSubstr("at byte 5"));
  EXPECT_THAT(Redactor::compile({""}).error().message, HasSubstr("redact[0]: an empty pattern"));
  EXPECT_THAT(Redactor::compile({R"(a\C)"}).error().message, HasSubstr("redact[0]"));
  EXPECT_THAT(Redactor::compile({std::string(5000, 'a')}).error().message,
              HasSubstr("5000 bytes, at most 4096"));
  EXPECT_THAT(Redactor::compile(std::vector<std::string>(65, "a")).error().message,
              HasSubstr("65 patterns, at most 64"));
  EXPECT_THAT(Redactor::compile({"[z-a]"}).error().message, HasSubstr("redact[0]"));
}

// Patterns that take for ever: the choice is redacted as a whole, the next choice is not.
TEST(Redactor, APatternThatReachesItsLimitRedactsTheChoice) {
  for (const std::string pattern :
       {R"((a+)+$)", R"((a|aa)+$)", R"([ab]*[ac]*[ad]*[ae]*[^a-z]{3})"}) {
    GenerationRecord record = record_of(1, 1, tokens_of({std::string(5'000, 'a'), "c", "fine"}));
    record.tokens[2].choice = 1;
    const RedactionOutcome outcome = redactor_of({pattern}).redact(record);
    EXPECT_EQ(outcome.gave_up, 1u) << pattern;
    EXPECT_THAT(left(record), ElementsAre("#", "#", "fine")) << pattern;
  }
}

TEST(Redactor, LongTextsAreSearchedToTheirEnd) {
  std::vector<std::string> texts(20'000, " word");
  texts[19'999] = " sk-1";
  texts[3] = " sk-2";
  const std::vector<std::string> kept = redacted(redactor_of({R"(sk-\d)"}), texts);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), "#"), 2);
  EXPECT_EQ(kept[19'999], "#");
  EXPECT_EQ(kept[3], "#");
  // At every offset around the borders of what one call searches (4096 bytes).
  for (std::size_t before = 4090; before < 4104; ++before) {
    const std::string dots(before, '.');
    EXPECT_THAT(redacted(redactor_of({"€1"}), {dots, "€", "1"}), ElementsAre(dots, "#", "#"));
    std::string accents(before % 3, '.');
    for (std::size_t i = 0; i < before; i += 2) accents += "é";
    EXPECT_THAT(redacted(redactor_of({"€"}), {accents, "€"}), ElementsAre(accents, "#"));
  }
}

// Cutting a text into tokens changes nothing but the borders: a token is redacted if and only if it
// shares a byte with a match in the whole text.
RC_GTEST_PROP(Redactor, TokensThatAMatchTouches, ()) {
  const auto texts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::element('a', 'b', '1', '2', ' ')));
  std::string whole;
  for (const std::string& text : texts) whole += text;
  std::vector<bool> hidden(whole.size());
  const std::regex pattern("a[ab]*[0-9]+|2 2");
  for (std::sregex_iterator match(whole.begin(), whole.end(), pattern), end; match != end;
       ++match) {
    for (std::ptrdiff_t i = 0; i < match->length(); ++i) {
      hidden[static_cast<std::size_t>(match->position() + i)] = true;
    }
  }
  const std::vector<std::string> kept = redacted(redactor_of({"a[ab]*[0-9]+|2 2"}), texts);
  std::size_t at = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto begin = hidden.begin() + static_cast<std::ptrdiff_t>(at);
    at += texts[i].size();
    if (texts[i].empty()) continue;
    const bool touched = std::find(begin, hidden.begin() + static_cast<std::ptrdiff_t>(at), true) !=
                         hidden.begin() + static_cast<std::ptrdiff_t>(at);
    RC_ASSERT(kept[i] == (touched ? "#" : texts[i]));
  }
}

// An alternative goes if and only if a match, wherever it begins, ends in it.
RC_GTEST_PROP(Redactor, AlternativesThatAMatchEndsIn, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::element('a', 'b', '1', '2', ' '));
  const auto texts = *rc::gen::container<std::vector<std::string>>(text);
  GenerationRecord record = record_of(1, 1, tokens_of(texts));
  for (LoggedToken& token : record.tokens) token.top[1].bytes = *text;
  const GenerationRecord before = record;
  const std::regex pattern("a[ab]*[0-9]+|2 2");
  redactor_of({"a[ab]*[0-9]+|2 2"}).redact(record);
  std::string whole;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& other = before.tokens[i].top[1].bytes;
    const std::string with = whole + other;
    bool ends_in_it = false;
    for (std::size_t at = 0; at < with.size(); ++at) {
      std::smatch match;
      const auto begin = with.begin() + static_cast<std::ptrdiff_t>(at);
      ends_in_it |= std::regex_search(begin, with.end(), match, pattern,
                                      std::regex_constants::match_continuous) &&
                    at + static_cast<std::size_t>(match.length()) > whole.size();
    }
    whole += texts[i];
    const bool touched = record.tokens[i].bytes != texts[i];
    if (touched || texts[i].empty() || other == texts[i]) continue;
    RC_ASSERT(record.tokens[i].top[1].bytes == (ends_in_it ? "" : other));
  }
}

TEST(Redactor, ThreadsShareOne) {
  const Redactor email = redactor_of({kEmail, "(a+)+$"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, copy = email] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_THAT(redacted(copy, {"to ", "a@", "b.cd", " now"}),
                    ElementsAre("to ", "#", "#", " now"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class RedactedLog : public TokenLogFixture {
 protected:
  // Every byte that the log wrote: the file, the write-ahead log and its index.
  std::string bytes_on_disk() const {
    std::string bytes;
    const auto folder = std::filesystem::path(options_.path).parent_path();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      bytes += text.str();
    }
    return bytes;
  }
};

TEST_F(RedactedLog, NothingThatMatchesReachesTheDisk) {
  options_.redact = {kEmail};
  log_ = open(options_);
  for (int i = 0; i < 100; ++i) {
    append(record_of(i, i, tokens_of({"ask ", "joe.", "secret@", "example.org", " now"})));
  }
  log_->flush();
  const std::string live = bytes_on_disk();
  EXPECT_THAT(live, HasSubstr("ask "));  // text is there at all
  for (const char* part : {"joe.", "secret@", "example.org"}) {
    EXPECT_EQ(live.find(part), std::string::npos) << part;
  }
  log_.reset();
  EXPECT_EQ(bytes_on_disk().find("secret@"), std::string::npos);
  log_ = open(options_);
  const Result<GenerationRecord> record = log_->show(id_of(5));
  ASSERT_TRUE(record);
  EXPECT_THAT(left(*record), ElementsAre("ask ", "#", "#", "#", " now"));
  EXPECT_EQ(record->tokens[1].margin, 0.5f);
}

TEST_F(RedactedLog, TextOffKeepsMarginsOnly) {
  options_.keep_text = false;
  log_ = open(options_);
  append(record_of(1, 1, tokens_of({"ordinary", "words"})));
  log_->flush();
  EXPECT_EQ(bytes_on_disk().find("ordinary"), std::string::npos);
  const Result<GenerationRecord> record = log_->show(id_of(1));
  ASSERT_TRUE(record);
  EXPECT_THAT(left(*record), ElementsAre("#", "#"));
  EXPECT_EQ(log_->thin_margins({})->size(), 2u);
  EXPECT_EQ(log_->counters().redacted_tokens, 2u);
}

TEST_F(RedactedLog, ABadPatternStopsTheStart) {
  options_.redact = {"ok", "("};
  const Error error = TokenLog::open(options_).error();
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("redact[1]"));
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

// While the writer's thread is held up nothing is redacted, and append() returns: it does not do
// that work itself.
TEST_F(RedactedLog, AppendDoesNotRedact) {
  std::promise<void> failed, go_on;
  std::once_flag once;
  options_.redact = {kEmail};
  options_.on_write_error = [&](const Error&) {
    std::call_once(once, [&] {
      failed.set_value();
      go_on.get_future().wait();
    });
  };
  log_ = open(options_);
  append(record_of(1, 1, {}));
  append(record_of(1, 1, {}));  // the id is taken
  failed.get_future().wait();
  const std::uint64_t before = log_->counters().redacted_tokens;
  for (int i = 2; i < 500; ++i) append(record_of(i, i, tokens_of({"a@b.cd"})));
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(log_->counters().redacted_tokens, 0u);
  go_on.set_value();
  log_->flush();
  EXPECT_EQ(log_->counters().redacted_tokens, 498u);
}

}  // namespace
}  // namespace fixpoint::test
